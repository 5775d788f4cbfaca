/* Terms dropped before they run: a changed row of an outrigger that no dimension row refers to costs a lookup, and no index over the facts is made
 * for it; once one refers to it the term runs and is right. */
#include "catalog.h"
#include "ivm/ivm.h"

#include <criterion/criterion.h>

static ivm_engine *engine;
static ivm_error error;
static ivm_table *region, *shop, *sale;
static ivm_view *by_region;
static ivm_stats stats;

static ivm_table *table(const char *name, const char *const *names, size_t count, const char *key)
{
    ivm_column_definition columns[3];
    ivm_table *made = NULL;
    for (size_t i = 0; i < count; i++) {
        columns[i] = (ivm_column_definition){ names[i], IVM_INT64, false };
    }
    ivm_table_options options = { .columns = columns, .columns_count = count, .key = key };
    cr_assert_eq(ivm_table_create(engine, name, &options, &made, &error), IVM_OK, "%s", error.message);
    return made;
}

static void view(const char *name, ivm_plan *plan, ivm_view **made)
{
    cr_assert_eq(ivm_view_create(engine, name, plan, NULL, made, &error), IVM_OK, "%s", error.message);
}

static void change(ivm_table *of, ivm_change kind, int64_t a, int64_t b)
{
    ivm_batch *batch = NULL;
    ivm_value values[] = { ivm_int64(a), ivm_int64(b) };
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK);
    cr_assert_eq(ivm_batch_row(batch, of, kind, 1, values, 2), IVM_OK);
    cr_assert_eq(ivm_push_batch(engine, batch, &stats, &error), IVM_OK, "%s", error.message);
}

/* sale -> shop -> region; the view of shops alone makes the index that finds a region's shops. */
static void open_snowflake(void)
{
    ivm_view *shops;
    error = (ivm_error)IVM_ERROR_INIT;
    cr_assert_eq(ivm_engine_open(NULL, &engine, &error), IVM_OK);
    region = table("region", (const char *const[]){ "id", "rank" }, 2, "id");
    shop = table("shop", (const char *const[]){ "id", "region" }, 2, "id");
    sale = table("sale", (const char *const[]){ "shop", "amount" }, 2, NULL);
    cr_assert_eq(ivm_foreign_key_declare(sale, "shop", shop, "id", IVM_RELY, NULL, &error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(shop, "region", region, "id", IVM_RELY, NULL, &error), IVM_OK);
    view("shops", ivm_plan_project(ivm_plan_join(ivm_plan_scan(shop, "h"), ivm_plan_scan(region, "r"), "h.region = r.id"), "h.id, rank"),
         &shops);
    ivm_plan *inputs[] = { ivm_plan_scan(sale, "s"), ivm_plan_scan(shop, "h"), ivm_plan_scan(region, "r") };
    ivm_plan *joined = ivm_plan_join_many(inputs, 3, "s.shop = h.id, h.region = r.id");
    view("by_region", ivm_plan_add(ivm_plan_aggregate(joined, "rank"), "total", "sum", ivm_column("amount")), &by_region);
    change(region, IVM_INSERT, 1, 10);
    change(region, IVM_INSERT, 2, 20);
    change(shop, IVM_INSERT, 7, 1);
    change(sale, IVM_INSERT, 7, 5);
}

static void close_snowflake(void)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
}

TestSuite(view_dropped, .init = open_snowflake, .fini = close_snowflake);

static int64_t total_of(int64_t rank)
{
    ivm_snapshot *now = NULL;
    ivm_rows rows;
    ivm_value wanted = ivm_int64(rank);
    cr_assert_eq(ivm_read_view(by_region, &now, &error), IVM_OK);
    bool found = ivm_snapshot_find(now, &wanted, 1, &rows, &error) == IVM_OK;
    int64_t total = found ? ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64 : 0;
    ivm_snapshot_close(now);
    return total;
}

Test(view_dropped, no_index_is_made_for_a_row_that_nobody_refers_to)
{
    change(region, IVM_UPSERT, 2, 21);
    cr_assert_eq(stats.terms_dropped, 1u, "the view of shops, whose turn is first, has made the index");
    cr_assert_eq(stats.terms_run, 2u);
    cr_assert_null(sale->store.indexes);
    change(region, IVM_UPSERT, 2, 22);
    cr_assert_eq(stats.terms_dropped, 1u);
    cr_assert_null(sale->store.indexes);
    cr_assert_eq(total_of(10), 5);
}

Test(view_dropped, a_row_that_is_referred_to_runs)
{
    change(region, IVM_UPSERT, 2, 21);
    change(region, IVM_UPSERT, 1, 11);
    cr_assert_eq(stats.terms_dropped, 0u);
    cr_assert_not_null(sale->store.indexes);
    cr_assert_eq(total_of(11), 5);
    cr_assert_eq(total_of(10), 0);
    change(region, IVM_UPSERT, 2, 22);
    cr_assert_eq(stats.terms_dropped, 0u, "no index is missing: the probe itself finds nothing");
}
