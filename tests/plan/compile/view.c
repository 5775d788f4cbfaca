/* Views through the public API: made full, kept, dropped, and nothing left of one that failed. */
#include "shop.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(plan_view, .init = shop_open, .fini = shop_close);

static ivm_plan *sales_joined(void)
{
    return ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
}

static ivm_plan *sales_by_name(void)
{
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(sales_joined(), "p.name"), "total", "sum", ivm_column("amount"));
    return ivm_plan_count(plan, "n");
}

/* ---- Made ------------------------------------------------------------------------------------------------------------------------- */

Test(plan_view, over_existing_rows_starts_full)
{
    push(product, IVM_INSERT, "1,ax 2,saw 3,nail");
    push(sale, IVM_INSERT, "1,10 1,10 2,5 9,1 null,1");
    ivm_view *joined = fixture_make(&shop, "joined", sales_joined());
    ivm_view *totals = fixture_make(&shop, "totals", sales_by_name());
    ivm_view *all = fixture_make(&shop, "all", scan_of("product", NULL));
    cr_assert_str_eq(fixture_view(&shop, joined), "1*2,5,2,saw 2*1,10,1,ax");
    cr_assert_str_eq(fixture_view(&shop, totals), "1*ax,20,2 1*saw,5,1");
    cr_assert_str_eq(fixture_view(&shop, all), "1*1,ax 1*2,saw 1*3,nail");
    push(sale, IVM_INSERT, "3,7 2,5");
    cr_assert_str_eq(fixture_view(&shop, totals), "1*ax,20,2 1*nail,7,1 1*saw,10,2");
    cr_assert_str_eq(fixture_changes(&shop, joined), "1*2,5,2,saw 1*3,7,3,nail");
    push(product, IVM_UPSERT, "1,axe");
    cr_assert_str_eq(fixture_view(&shop, totals), "1*axe,20,2 1*nail,7,1 1*saw,10,2");
    cr_assert_str_eq(fixture_changes(&shop, all), "-1*1,ax 1*1,axe");
}

Test(plan_view, making_one_is_no_change_of_it)
{
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,10 2,5");
    ivm_view *joined = fixture_make(&shop, "joined", sales_joined());
    ivm_view *totals = fixture_make(&shop, "totals", sales_by_name());
    cr_assert_str_eq(fixture_changes(&shop, joined), "");
    cr_assert_str_eq(fixture_changes(&shop, totals), "");
    ivm_stats stats;
    ivm_engine_stats(shop.engine, &stats);
    cr_assert_eq(stats.batches, 2u);
    cr_assert_eq(stats.terms_run, 0u);
    cr_assert_eq(stats.rows_out, 0u);
}

Test(plan_view, an_aggregate_out_of_range_is_named)
{
    fixture_make(&shop, "totals", sales_by_name());
    push(product, IVM_INSERT, "1,ax");
    fixture_make(&shop, "sum", ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(sale, NULL), NULL), "all", "sum", ivm_column("amount")));
    push(product, IVM_INSERT, "2,saw 3,null");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,5 2,9223372036854775807 2,1 3,7"), IVM_OVERFLOW);
    cr_assert_str_eq(shop.error.message, "view totals: aggregate total of group (\"saw\") is out of range");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,9223372036854775807 4,1"), IVM_OVERFLOW);
    cr_assert_str_eq(shop.error.message, "view sum: aggregate all of all rows is out of range");
}

/* Of two that may be, too. */
Test(plan_view, a_projected_column_out_of_range_is_named)
{
    ivm_plan *plan = ivm_plan_project(ivm_plan_scan(sale, NULL), "product");
    plan = ivm_plan_compute(plan, "more", ivm_call2("+", ivm_column("amount"), ivm_literal(ivm_int64(1))));
    plan = ivm_plan_compute(plan, "twice", ivm_call2("*", ivm_column("amount"), ivm_literal(ivm_int64(2))));
    fixture_make(&shop, "computed", plan);
    push(product, IVM_INSERT, "1,ax");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,5 1,5000000000000000000"), IVM_OVERFLOW);
    cr_assert_str_eq(shop.error.message, "view computed: a result in projected column twice is out of range");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,5 1,9223372036854775807"), IVM_OVERFLOW);
    cr_assert_str_eq(shop.error.message, "view computed: a result in projected column more is out of range");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,5"), IVM_OK, "%s", shop.error.message);
}

Test(plan_view, names_and_types_drop_the_alias)
{
    ivm_view *view = fixture_make(&shop, "joined", sales_joined());
    cr_assert_str_eq(ivm_view_name(view), "joined");
    cr_assert_eq(ivm_view_columns_count(view), 4u);
    static const char *const names[] = { "product", "amount", "id", "name" };
    for (size_t i = 0; i < 4; i++) {
        cr_assert_str_eq(ivm_view_column_name(view, i), names[i]);
        cr_assert_eq(ivm_view_column_type(view, i), (ivm_type)(i == 3 ? IVM_STRING : IVM_INT64));
    }
    cr_assert_null(ivm_view_column_name(view, 4));
    cr_assert_eq(ivm_view_column_type(view, 4), 0u);
    ivm_view *found = fixture_view_find(&shop, "joined");
    cr_assert_eq(found, view);
}

Test(plan_view, a_group_is_found_by_its_group_columns)
{
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,10");
    cr_assert_eq(fixture_make(&shop, "totals", sales_by_name())->key_count, 1u);
    cr_assert_eq(fixture_make(&shop, "joined", sales_joined())->key_count, 4u);
}

Test(plan_view, each_table_is_read_once_however_often_it_is_scanned)
{
    ivm_plan *plan = ivm_plan_join(scan_of("sale", "a"), scan_of("sale", "b"), "a.product = b.amount");
    ivm_view *view = fixture_make(&shop, "pairs", ivm_plan_compute(ivm_plan_project(plan, NULL), "x", ivm_column("a.amount")));
    cr_assert_eq(view->tables_count, 1u);
    cr_assert_eq(sale->readers_count, 1u);
    cr_assert_eq(product->readers_count, 0u);
}

/* ---- Dropped ------------------------------------------------------------------------------------------------------------------------ */

Test(plan_view, a_dropped_one_frees_its_name_and_tables)
{
    push(product, IVM_INSERT, "1,ax");
    ivm_view *view = fixture_make(&shop, "all", scan_of("product", NULL));
    cr_assert_eq(ivm_table_drop(product, &shop.error), IVM_IN_USE);
    cr_assert_not_null(strstr(shop.error.message, "all"));
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &shop.error), IVM_OK);
    cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
    cr_assert_eq(ivm_table_drop(product, &shop.error), IVM_OK);
    cr_assert_str_eq(fixture_rows(snapshot), "1*1,ax");
    cr_assert_eq(ivm_view_find(shop.engine, "all", &view, &shop.error), IVM_UNKNOWN_VIEW);
    fixture_make(&shop, "all", scan_of("sale", NULL));
}

Test(plan_view, one_dropped_between_others_leaves_them)
{
    ivm_view *a = fixture_make(&shop, "a", scan_of("product", NULL));
    ivm_view *b = fixture_make(&shop, "b", scan_of("product", NULL));
    ivm_view *c = fixture_make(&shop, "c", scan_of("product", NULL));
    cr_assert_eq(ivm_view_drop(b, &shop.error), IVM_OK);
    push(product, IVM_INSERT, "1,ax");
    cr_assert_str_eq(fixture_view(&shop, a), "1*1,ax");
    cr_assert_str_eq(fixture_view(&shop, c), "1*1,ax");
    cr_assert_eq(product->readers_count, 2u);
}

Test(plan_view, none_is_no_view_to_drop)
{
    cr_assert_eq(ivm_view_drop(NULL, &shop.error), IVM_INVALID_ARGUMENT);
}

/* ---- Refused ------------------------------------------------------------------------------------------------------------------------ */

Test(plan_view, names_that_cannot_be)
{
    fixture_make(&shop, "all", scan_of("product", NULL));
    create_fails("all", scan_of("product", NULL), IVM_ALREADY_EXISTS, "all");
    create_fails("sale", scan_of("product", NULL), IVM_ALREADY_EXISTS, "sale");
    create_fails("", scan_of("product", NULL), IVM_INVALID_ARGUMENT, "name");
    create_fails(NULL, scan_of("product", NULL), IVM_INVALID_ARGUMENT, "name");
}

Test(plan_view, columns_of_one_name_want_a_project)
{
    ivm_plan *plan = ivm_plan_join(scan_of("product", "a"), scan_of("product", "b"), "a.id = b.id");
    create_fails("v", plan, IVM_AMBIGUOUS_COLUMN, "id");
}

Test(plan_view, a_plan_that_is_none_tells_the_builder_s_cause)
{
    create_fails("v", NULL, IVM_INVALID_PLAN, "plan");
    ivm_plan *plan = ivm_plan_join(scan_of("sale", NULL), scan_of("product", NULL), "product - id");
    create_fails("v", ivm_plan_filter(plan, ivm_column("x")), IVM_INVALID_PLAN, "product - id");
    create_fails("v", NULL, IVM_INVALID_PLAN, "plan"); /* the cause was told */
}

Test(plan_view, options_of_another_version)
{
    ivm_view *view = NULL;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION + 1 };
    ivm_status status = ivm_view_create(shop.engine, "v", scan_of("sale", NULL), &options, &view, &shop.error);
    cr_assert_eq(status, IVM_INVALID_ARGUMENT);
    options.version = 0;
    status = ivm_view_create(shop.engine, "v", scan_of("sale", NULL), &options, &view, &shop.error);
    cr_assert_eq(status, IVM_OK, "%s", shop.error.message);
}

static ivm_plan *doubled(void)
{
    ivm_expr *value = ivm_call2("*", ivm_column("amount"), ivm_literal(ivm_int64(2)));
    return ivm_plan_compute(ivm_plan_project(sales_joined(), "p.name"), "double", value);
}

Test(plan_view, an_overflow_while_it_is_filled_leaves_nothing)
{
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,5000000000000000000");
    create_fails("v", doubled(), IVM_OVERFLOW, "v");
    int64_t blocks = shop.allocator.blocks;
    create_fails("v", doubled(), IVM_OVERFLOW, "v");
    cr_assert_eq(shop.allocator.blocks, blocks);
    cr_assert_eq(sale->readers_count, 0u);
    cr_assert_null(shop.engine->views);
    push(sale, IVM_DELETE, "1,5000000000000000000");
    push(sale, IVM_INSERT, "1,4");
    cr_assert_str_eq(fixture_view(&shop, fixture_make(&shop, "v", doubled())), "1*ax,8");
}

static ivm_plan *names_but_nobody_s(void)
{
    return ivm_plan_filter(sales_by_name(), ivm_call2("<>", ivm_column("name"), ivm_literal(ivm_string("nobody"))));
}

/* What is held once a view has been made and dropped: indexes of the tables and the arenas stay. */
static int64_t blocks_at_rest(void)
{
    ivm_view *view = fixture_make(&shop, "v", names_but_nobody_s());
    cr_assert_str_eq(fixture_view(&shop, view), "1*ax,10,1 1*saw,5,1");
    cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
    return shop.allocator.blocks;
}

Test(plan_view, a_failed_allocation_leaves_nothing)
{
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,10 2,5");
    int64_t blocks = blocks_at_rest();
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_view *view = NULL;
        ivm_plan *plan = names_but_nobody_s();
        test_allocator_arm(&shop.allocator, failures + 1);
        ivm_status status = ivm_view_create(shop.engine, "v", plan, NULL, &view, &shop.error);
        failed = test_allocator_disarm(&shop.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, shop.error.message);
        if (failed) {
            cr_assert_null(shop.engine->views);
            cr_assert_eq(sale->readers_count + product->readers_count, 0u);
        } else {
            cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
        }
        /* Not one more; one less where an arena gave back what no step had used for long. */
        cr_assert_leq(blocks_at_rest(), blocks, "allocation %lu", (unsigned long)failures);
    }
    cr_assert_geq(failures, 60u);
}

/* ---- Equalities of unlike types ------------------------------------------------------------------------------------------------------- */

Test(plan_view, int64_equals_float64_as_float64)
{
    ivm_table *f = fixture_table(&shop, "f", "x float64", NULL);
    push(f, IVM_INSERT, "1 2.5 9007199254740992 NaN null -0.0");
    push(product, IVM_INSERT, "1,a 2,b 9007199254740992,c 9007199254740993,d 0,e");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_join(scan_of("f", NULL), scan_of("product", NULL), "x = id"));
    cr_assert_eq(ivm_view_columns_count(view), 3u);
    cr_assert_str_eq(fixture_view(&shop, view),
                     "1*0,0,e 1*1,1,a 1*9007199254740992,9007199254740992,c 1*9007199254740992,9007199254740993,d");
    push(product, IVM_DELETE_KEY, "0");
    push(f, IVM_INSERT, "2");
    cr_assert_str_eq(fixture_changes(&shop, view), "1*2,2,b");
}

Test(plan_view, decimals_of_unlike_scale_are_equal_by_value)
{
    ivm_table *a = fixture_table(&shop, "a", "x decimal(38,0)", NULL), *b = fixture_table(&shop, "b", "y decimal(38,37)", NULL);
    push(a, IVM_INSERT, "3 30 -3 99999999999999999999999999999999999999 null");
    push(b, IVM_INSERT, "3 -3.0000000000000000000000000000000000000 3.1 9.9999999999999999999999999999999999999 null");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_join(scan_of("a", NULL), scan_of("b", NULL), "x = y"));
    cr_assert_str_eq(fixture_view(&shop, view),
                     "1*-3,-3.0000000000000000000000000000000000000 1*3,3.0000000000000000000000000000000000000");
    push(product, IVM_INSERT, "3,c 9223372036854775807,m -9223372036854775808,n 10,t");
    ivm_plan *plan = ivm_plan_join(scan_of("product", NULL), scan_of("b", NULL), "id = y");
    cr_assert_str_eq(fixture_view(&shop, fixture_make(&shop, "w", plan)), "1*3,c,3.0000000000000000000000000000000000000");
}

/* ---- Conditions of nested joins --------------------------------------------------------------------------------------------------------- */

Test(plan_view, what_a_nested_join_s_condition_does_not_let_through_is_no_row_of_the_outer_join)
{
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,null 2,7000000000000000000 2,4");
    ivm_expr *small = call_of("<", "amount", 100);
    ivm_plan *inner = ivm_plan_join_where(sales_joined(), small);
    ivm_expr *fallible = ivm_call2(">", ivm_call2("*", ivm_column("amount"), ivm_literal(ivm_int64(2))), ivm_literal(ivm_int64(0)));
    ivm_plan *outer = ivm_plan_join_where(ivm_plan_join(inner, scan_of("product", "q"), "q.id = s.product"), fallible);
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(outer, "amount, q.name"));
    cr_assert_str_eq(fixture_view(&shop, view), "1*4,saw");
    push(sale, IVM_INSERT, "1,6000000000000000000");
    cr_assert_str_eq(fixture_changes(&shop, view), "");
}
