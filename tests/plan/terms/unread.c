/* Columns that nobody reads: by row an update of them leaves a join's leaf no delta, whatever the leaf is, so that no term runs; and what is left of a
 * batch is added up by the columns that are read. Under other settings that holds of leaves which are no bare scan. */
#include "shop.h"

#include <criterion/criterion.h>

static void open_tables(void)
{
    shop_open_with("; note string", "; shelf int64; note string");
}

TestSuite(plan_unread, .init = open_tables, .fini = shop_close);

/* sale joined with this, by its id, its names counted; both with rows. */
static ivm_view *joined_with(ivm_plan *leaf)
{
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), leaf, "s.product = id");
    ivm_plan *sums = ivm_plan_add(ivm_plan_aggregate(join, "name"), "total", "sum", ivm_column("amount"));
    ivm_view *view = fixture_make(&shop, "v", sums);
    push(product, IVM_INSERT, "1,ax,5,a 2,saw,5,b");
    push(sale, IVM_INSERT, "1,10,x 2,20,y 2,2,z");
    return view;
}

static uint64_t rows_left(const ivm_view *view, uint32_t leaf)
{
    return view->planned->plans[0]->last->leaves[leaf].rows_count;
}

/* Of leaf 1, which reads product's id and name; `narrow`: its delta is brought down to them. */
static void unread_are_no_change(ivm_view *view, bool narrow)
{
    ivm_stats before, after;
    push(product, IVM_UPSERT, "2,hammer,5,b");
    cr_assert_eq(rows_left(view, 1), 2u, "its name is read");
    ivm_engine_stats(shop.engine, &before);
    push(product, IVM_UPSERT, "1,ax,6,c 2,hammer,7,d");
    ivm_engine_stats(shop.engine, &after);
    cr_assert_eq(rows_left(view, 1), narrow ? 0u : 4u, "%lu rows", (unsigned long)rows_left(view, 1));
    cr_assert(!narrow || after.terms_run == before.terms_run);
    push(product, IVM_UPSERT, "1,adze,6,e 2,hammer,8,f");
    cr_assert_eq(rows_left(view, 1), narrow ? 2u : 4u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*adze,10 1*hammer,22");
}

static ivm_plan *bare(void)
{
    return scan_of("product", NULL);
}

static ivm_plan *filtered(void)
{
    return ivm_plan_filter(scan_of("product", NULL), call_of(">", "id", 0));
}

static ivm_plan *projected(void)
{
    return ivm_plan_project(scan_of("product", NULL), "shelf, name, id");
}

static ivm_plan *grouped(void)
{
    return ivm_plan_aggregate(scan_of("product", NULL), "id, name");
}

static void with_every_pruning(ivm_plan *(*leaf)(void))
{
    for (int pruning = IVM_FK_PRUNING_ROW; pruning <= IVM_FK_PRUNING_OFF; pruning++) {
        ivm_planner_options options = { (ivm_fk_pruning)pruning, IVM_JOIN_AUTO, false };
        cr_assert_eq(ivm_engine_planner_set(shop.engine, &options, &shop.error), IVM_OK);
        ivm_view *view = joined_with(leaf());
        unread_are_no_change(view, pruning == IVM_FK_PRUNING_ROW || leaf != bare);
        cr_assert_eq(ivm_view_drop(view, &shop.error), IVM_OK);
        push(sale, IVM_DELETE, "1,10,x 2,20,y 2,2,z");
        push(product, IVM_DELETE, "1,adze,6,e 2,hammer,8,f");
    }
}

Test(plan_unread, of_a_table)
{
    with_every_pruning(bare);
}

Test(plan_unread, of_a_table_that_is_filtered)
{
    with_every_pruning(filtered);
}

Test(plan_unread, of_a_table_that_is_projected)
{
    with_every_pruning(projected);
}

Test(plan_unread, of_an_aggregate)
{
    with_every_pruning(grouped);
}

Test(plan_unread, of_a_table_to_which_a_foreign_key_leads)
{
    cr_assert_eq(ivm_foreign_key_declare(sale, "product", product, "id", IVM_RELY, NULL, &shop.error), IVM_OK);
    with_every_pruning(bare);
    with_every_pruning(filtered);
}

Test(plan_unread, of_a_view)
{
    ivm_view *all = fixture_make(&shop, "all", ivm_plan_filter(scan_of("product", NULL), call_of(">", "id", 0)));
    unread_are_no_change(joined_with(ivm_plan_scan_view(all, NULL)), true);
}

/* A column that came to the table since is one that the view does not read, though its leaf reads all that it knows. */
Test(plan_unread, of_a_table_that_has_grown_a_column)
{
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "p.id, p.name, p.shelf, p.note"));
    ivm_column_definition column = { "color", IVM_INT64, false };
    push(product, IVM_INSERT, "1,ax,5,a");
    push(sale, IVM_INSERT, "1,10,x");
    cr_assert_eq(ivm_table_column_add(product, &column, &shop.error), IVM_OK);
    push(product, IVM_UPSERT, "1,ax,5,a,3");
    cr_assert_eq(rows_left(view, 1), 0u, "%lu rows", (unsigned long)rows_left(view, 1));
    push(product, IVM_UPSERT, "1,adze,5,a,4");
    cr_assert_eq(rows_left(view, 1), 2u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*1,adze,5,a");
}

/* Rows of a bag that become equal, or cancel, are one, or none. */
Test(plan_unread, rows_of_a_bag_are_added_up)
{
    ivm_view *view = joined_with(bare());
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(shop.engine, &batch, &shop.error), IVM_OK);
    ivm_batch_insert(batch, sale, ivm_int64(1), ivm_int64(3), ivm_string("one"));
    ivm_batch_insert(batch, sale, ivm_int64(1), ivm_int64(3), ivm_string("two"));
    ivm_batch_delete(batch, sale, ivm_int64(2), ivm_int64(20), ivm_string("y"));
    ivm_batch_insert(batch, sale, ivm_int64(2), ivm_int64(20), ivm_string("yes"));
    cr_assert_eq(ivm_push_batch(shop.engine, batch, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
    cr_assert_eq(rows_left(view, 0), 1u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*ax,16 1*saw,22");
}

static uint64_t sell_notes(uint32_t count, ivm_view *view)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(shop.engine, &batch, &shop.error), IVM_OK);
    for (uint32_t i = 0; i < count; i++) {
        ivm_batch_insert(batch, sale, ivm_int64(1 + i % 2), ivm_int64(1), ivm_string(i % 3 ? "one" : "two"));
    }
    cr_assert_eq(ivm_push_batch(shop.engine, batch, NULL, &shop.error), IVM_OK, "%s", shop.error.message);
    return rows_left(view, 0);
}

/* So are those of a small batch that only brings rows; of a large one each row drives. */
Test(plan_unread, rows_of_a_bag_that_only_come_are_added_up_while_they_are_few)
{
    ivm_view *view = joined_with(bare());
    cr_assert_eq(sell_notes(1, view), 1u);
    cr_assert_eq(sell_notes(40, view), 2u);
    cr_assert_eq(sell_notes(1000, view), 1000u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*ax,531 1*saw,542");
    push(sale, IVM_INSERT, "2,7,a 2,7,a 2,7,b");
    cr_assert_eq(rows_left(view, 0), 1u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*ax,531 1*saw,563");
}

Test(plan_unread, rows_of_a_bag_that_are_equal_are_added_up_where_all_is_read)
{
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    ivm_view *view = fixture_make(&shop, "v", ivm_plan_project(join, "s.product, s.amount, s.note"));
    push(product, IVM_INSERT, "1,ax,5,a");
    push(sale, IVM_INSERT, "1,7,a 1,7,a 1,8,a");
    cr_assert_eq(rows_left(view, 0), 2u);
    cr_assert_str_eq(fixture_view(&shop, view), "1*1,8,a 2*1,7,a");
}
