/* Views over views: chains and diamonds, made, pushed through, refreshed, dropped. */
#include "shop.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(plan_chain, .init = shop_open, .fini = shop_close);

static ivm_view *make_deferred(const char *name, ivm_plan *plan)
{
    return fixture_make_with(&shop, name, plan, &(ivm_view_options){ .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED });
}

static void refresh(ivm_view *view)
{
    cr_assert_eq(ivm_refresh_view(view, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
}

static ivm_plan *totals(void)
{
    ivm_plan *plan = ivm_plan_aggregate(scan_of("sale", NULL), "product");
    return ivm_plan_count(ivm_plan_add(plan, "total", "sum", ivm_column("amount")), "n");
}

/* totals, and above it twice: what is large, and how many sales; both met again. */
typedef struct diamond {
    ivm_view *totals, *large, *counts, *both;
} diamond;

static diamond make_diamond(void)
{
    diamond made = { .totals = fixture_make(&shop, "totals", totals()) };
    made.large = fixture_make(&shop, "large", ivm_plan_filter(ivm_plan_scan_view(made.totals, "t"), call_of(">", "total", 10)));
    made.counts = fixture_make(&shop, "counts", ivm_plan_project(scan_of("totals", NULL), "product, n"));
    ivm_plan *join = ivm_plan_join(scan_of("large", "l"), ivm_plan_scan_view(made.counts, "c"), "l.product = c.product");
    made.both = fixture_make(&shop, "both", ivm_plan_project(join, "l.product, l.total, c.n"));
    return made;
}

/* ---- Pushed through ------------------------------------------------------------------------------------------------------------------ */

Test(plan_chain, a_diamond_is_kept_with_its_own_changes_at_every_corner)
{
    push(sale, IVM_INSERT, "1,20 2,5");
    diamond made = make_diamond();
    cr_assert_str_eq(fixture_view(&shop, made.both), "1*1,20,1");
    push(sale, IVM_INSERT, "2,8 3,1");
    cr_assert_str_eq(fixture_changes(&shop, made.totals), "-1*2,5,1 1*2,13,2 1*3,1,1");
    cr_assert_str_eq(fixture_changes(&shop, made.large), "1*2,13,2");
    cr_assert_str_eq(fixture_changes(&shop, made.counts), "-1*2,1 1*2,2 1*3,1");
    cr_assert_str_eq(fixture_changes(&shop, made.both), "1*2,13,2");
    push(sale, IVM_DELETE, "1,20");
    cr_assert_str_eq(fixture_view(&shop, made.both), "1*2,13,2");
    cr_assert_str_eq(fixture_changes(&shop, made.both), "-1*1,20,1");
    push(sale, IVM_INSERT, "3,0");
    cr_assert_str_eq(fixture_changes(&shop, made.large), "");
    cr_assert_str_eq(fixture_changes(&shop, made.both), "");
}

Test(plan_chain, a_group_whose_value_is_unchanged_changes_nothing_above)
{
    push(sale, IVM_INSERT, "1,20 1,5");
    ivm_view *low =
        fixture_make(&shop, "low", ivm_plan_add(ivm_plan_aggregate(scan_of("sale", NULL), "product"), "m", "max", ivm_column("amount")));
    ivm_view *high = fixture_make(&shop, "high", ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_view(low, NULL), "m"), "n"));
    push(sale, IVM_DELETE, "1,5");
    cr_assert_str_eq(fixture_changes(&shop, low), "");
    cr_assert_str_eq(fixture_changes(&shop, high), "");
    push(sale, IVM_INSERT, "2,20");
    cr_assert_str_eq(fixture_changes(&shop, high), "-1*20,1 1*20,2");
}

Test(plan_chain, a_push_that_fails_high_up_leaves_all_as_they_were)
{
    ivm_view *low = fixture_make(&shop, "low", ivm_plan_project(scan_of("sale", NULL), "amount"));
    ivm_expr *twice = ivm_call2("*", ivm_column("amount"), ivm_literal(ivm_int64(2)));
    ivm_plan *plan = ivm_plan_compute(ivm_plan_project(ivm_plan_scan_view(low, NULL), NULL), "twice", twice);
    ivm_view *middle = fixture_make(&shop, "middle", ivm_plan_distinct(scan_of("low", NULL)));
    ivm_view *high = fixture_make(&shop, "high", plan);
    push(sale, IVM_INSERT, "1,4");
    cr_assert_eq(fixture_push(&shop, sale, IVM_INSERT, "1,5 1,9000000000000000000"), IVM_OVERFLOW);
    cr_assert_not_null(strstr(shop.error.message, "high"), "%s", shop.error.message);
    cr_assert_str_eq(fixture_view(&shop, low), "1*4");
    cr_assert_str_eq(fixture_view(&shop, middle), "1*4");
    cr_assert_str_eq(fixture_view(&shop, high), "1*8");
    cr_assert_str_eq(fixture_changes(&shop, middle), "1*4");
    push(sale, IVM_INSERT, "1,5");
    cr_assert_str_eq(fixture_view(&shop, high), "1*10 1*8");
}

Test(plan_chain, a_view_read_twice_in_one_join_meets_itself)
{
    diamond made = make_diamond();
    ivm_plan *pairs = ivm_plan_join(ivm_plan_scan_view(made.totals, "a"), ivm_plan_scan_view(made.totals, "b"), "a.n = b.n");
    ivm_view *view = fixture_make(
        &shop, "pairs",
        ivm_plan_project(ivm_plan_compute(ivm_plan_project(pairs, "a.product"), "other", ivm_column("b.product")), "product, other"));
    cr_assert_eq(view->views_count, 1u);
    cr_assert_eq(made.totals->readers_count, 3u);
    push(sale, IVM_INSERT, "1,1 2,1");
    cr_assert_str_eq(fixture_view(&shop, view), "1*1,1 1*1,2 1*2,1 1*2,2");
    push(sale, IVM_INSERT, "2,1 3,1");
    cr_assert_str_eq(fixture_view(&shop, view), "1*1,1 1*1,3 1*2,2 1*3,1 1*3,3");
}

Test(plan_chain, a_view_s_columns_lose_their_alias_and_take_the_scan_s)
{
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    ivm_view *low = fixture_make(&shop, "low", join);
    push(product, IVM_INSERT, "1,ax");
    push(sale, IVM_INSERT, "1,5");
    ivm_view *high = fixture_make(&shop, "high", ivm_plan_project(ivm_plan_scan_view(low, "l"), "l.name, amount"));
    cr_assert_str_eq(fixture_view(&shop, high), "1*ax,5");
    create_fails("none", ivm_plan_project(ivm_plan_scan_view(low, "l"), "p.name"), IVM_UNKNOWN_COLUMN, "p.name");
    create_fails("none", ivm_plan_join(ivm_plan_scan_view(low, NULL), scan_of("low", NULL), NULL), IVM_AMBIGUOUS_COLUMN, "low.");
}

/* A foreign key says nothing of a view over its tables. */
Test(plan_chain, facts_do_not_prune_what_a_view_stands_between)
{
    fixture_fact(&shop, sale, "product", product, "id", IVM_RELY);
    ivm_view *low = fixture_make(&shop, "low", scan_of("product", NULL));
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), ivm_plan_scan_view(low, "l"), "s.product = l.id");
    ivm_view *high = fixture_make(&shop, "high", ivm_plan_project(join, "s.amount, l.name"));
    push(product, IVM_INSERT, "1,ax");
    cr_assert_eq(high->planned->plans[0]->last->skip, 0u);
    push(sale, IVM_INSERT, "1,5");
    cr_assert_str_eq(fixture_view(&shop, high), "1*5,ax");
}

/* ---- Deferred ------------------------------------------------------------------------------------------------------------------------ */

Test(plan_chain, an_immediate_view_over_a_deferred_one_moves_when_that_is_refreshed)
{
    ivm_view *low = make_deferred("low", totals());
    ivm_view *high = fixture_make(&shop, "high", ivm_plan_filter(ivm_plan_scan_view(low, NULL), call_of(">", "total", 10)));
    push(sale, IVM_INSERT, "1,20 2,5");
    push(sale, IVM_INSERT, "2,6");
    cr_assert_str_eq(fixture_view(&shop, high), "");
    refresh(low);
    cr_assert_str_eq(fixture_changes(&shop, low), "1*1,20,1 1*2,11,2");
    cr_assert_str_eq(fixture_changes(&shop, high), "1*1,20,1 1*2,11,2");
    push(sale, IVM_DELETE, "2,6");
    cr_assert_str_eq(fixture_changes(&shop, high), "");
    cr_assert_str_eq(fixture_view(&shop, high), "1*1,20,1 1*2,11,2");
    refresh(high);
    cr_assert_str_eq(fixture_view(&shop, high), "1*1,20,1 1*2,11,2", "nothing to do for an immediate view");
    refresh(low);
    cr_assert_str_eq(fixture_changes(&shop, high), "-1*2,11,2");
}

Test(plan_chain, deferred_views_take_what_they_read_as_it_stands)
{
    ivm_view *low = make_deferred("low", totals());
    ivm_view *high = make_deferred("high", ivm_plan_project(ivm_plan_scan_view(low, NULL), "total"));
    push(sale, IVM_INSERT, "1,20");
    refresh(high);
    cr_assert_str_eq(fixture_view(&shop, high), "");
    refresh(low);
    cr_assert_str_eq(fixture_view(&shop, high), "");
    push(sale, IVM_INSERT, "1,1");
    refresh(high);
    cr_assert_str_eq(fixture_view(&shop, high), "1*20");
}

Test(plan_chain, a_refresh_that_is_none_is_refused)
{
    ivm_view *view = NULL;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = (ivm_refresh)2 };
    cr_assert_eq(ivm_view_create(shop.engine, "v", totals(), &options, &view, &shop.error), IVM_INVALID_ARGUMENT);
    cr_assert_null(view);
}

/* ---- Dropped ------------------------------------------------------------------------------------------------------------------------- */

Test(plan_chain, what_is_read_is_in_use)
{
    diamond made = make_diamond();
    cr_assert_eq(ivm_view_drop(made.totals, &shop.error), IVM_IN_USE);
    cr_assert_not_null(strstr(shop.error.message, "totals is read by view large"), "%s", shop.error.message);
    cr_assert_eq(ivm_view_drop(made.counts, &shop.error), IVM_IN_USE);
    cr_assert_eq(ivm_table_drop(sale, &shop.error), IVM_IN_USE);
    cr_assert_eq(ivm_view_drop(made.both, &shop.error), IVM_OK);
    cr_assert_eq(ivm_view_drop(made.counts, &shop.error), IVM_OK);
    cr_assert_eq(ivm_view_drop(made.totals, &shop.error), IVM_IN_USE);
    cr_assert_eq(ivm_view_drop(made.large, &shop.error), IVM_OK);
    cr_assert_eq(ivm_view_drop(made.totals, &shop.error), IVM_OK);
    cr_assert_eq(ivm_table_drop(sale, &shop.error), IVM_OK);
}

Test(plan_chain, a_dropped_view_is_unknown_to_a_plan_that_had_its_handle)
{
    ivm_view *low = fixture_make(&shop, "low", totals());
    ivm_plan *by_handle = ivm_plan_scan_view(low, NULL), *by_name = scan_of("low", NULL);
    cr_assert_eq(ivm_view_drop(low, &shop.error), IVM_OK);
    create_fails("v", scan_of("low", NULL), IVM_UNKNOWN_TABLE, "low");
    fixture_make(&shop, "low", scan_of("product", NULL));
    create_fails("v", by_handle, IVM_UNKNOWN_TABLE, "as the plan knew it");
    ivm_view *view = fixture_make(&shop, "v", by_name);
    cr_assert_eq(ivm_view_columns_count(view), 2u);
}

/* Names and numbers of the other engine's are the same as here. */
Test(plan_chain, a_handle_of_another_engine_is_refused)
{
    ivm_engine *other;
    ivm_table *theirs;
    ivm_view *low;
    ivm_column_definition column = { "id", IVM_INT64, true };
    cr_assert_eq(ivm_engine_open(NULL, &other, &shop.error), IVM_OK);
    cr_assert_eq(ivm_table_create(other, "sale", &(ivm_table_options){ .columns = &column, .columns_count = 1 }, &theirs, &shop.error),
                 IVM_OK);
    cr_assert_eq(ivm_view_create(other, "low", ivm_plan_scan(theirs, NULL), NULL, &low, &shop.error), IVM_OK);
    fixture_make(&shop, "low", totals());
    create_fails("v", ivm_plan_scan(theirs, NULL), IVM_INVALID_ARGUMENT, "sale is of another engine");
    create_fails("v", ivm_plan_scan_view(low, NULL), IVM_INVALID_ARGUMENT, "low is of another engine");
    cr_assert_eq(ivm_engine_close(other, &shop.error), IVM_OK);
}

Test(plan_chain, a_view_whose_columns_would_bear_one_name_is_told_what_to_do)
{
    ivm_plan *both = ivm_plan_join(scan_of("sale", "s"), scan_of("sale", "t"), "s.product = t.product");
    create_fails("v", both, IVM_AMBIGUOUS_COLUMN, "in the view, without their aliases: a project names them");
}

/* A plan that was given up leaves no cause for the next one that fails. */
Test(plan_chain, causes_of_plans_given_up_are_forgotten)
{
    cr_assert_null(ivm_plan_filter(totals(), ivm_column(NULL)));
    fixture_make(&shop, "low", totals());
    create_fails("v", NULL, IVM_INVALID_PLAN, "a plan is wanted");
}

Test(plan_chain, a_failed_allocation_while_one_is_made_leaves_the_others)
{
    push(sale, IVM_INSERT, "1,20 2,5");
    diamond made = make_diamond();
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_plan *join =
            ivm_plan_join_kind(IVM_FULL_JOIN, ivm_plan_scan_view(made.large, "l"), ivm_plan_scan_view(made.counts, "c"), "l.n = c.n");
        ivm_view *view = NULL;
        ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
        ivm_plan *plan = ivm_plan_distinct(ivm_plan_project(join, "total, c.product"));
        test_allocator_arm(&shop.allocator, failures + 1);
        ivm_status status = ivm_view_create(shop.engine, "v", plan, &options, &view, &shop.error);
        failed = test_allocator_disarm(&shop.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, shop.error.message);
        cr_assert_eq(made.large->readers_count, failed ? 1u : 2u);
        cr_assert_eq(made.counts->readers_count, failed ? 1u : 2u);
        if (!failed) {
            cr_assert_str_eq(fixture_view(&shop, view), "1*20,1 1*20,2");
        }
    }
    cr_assert_geq(failures, 60u);
}
