/* How often calls look whether they are cancelled: of each loop over rows that is the only long one in some call, that there is a look every so many
 * rows. Counted in builds with assertions. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

#define ROWS 50000

#ifdef NDEBUG
#define LOOKS() (cr_skip_test("looks are not counted"), (uint64_t)0)
#else
#define LOOKS() ((uint64_t)ivm__cancel_looks)
#endif

/* Looks in a loop that has one every IVM__ROWS_UNASKED rows. */
#define SOME (ROWS / IVM__ROWS_UNASKED)

/* Rows (i, i % 100, 7) of three int64 columns. */
static void rows_push(fixture *it, ivm_table *table)
{
    int64_t *cells = malloc(3 * ROWS * sizeof *cells);
    ivm_batch *batch;
    for (int64_t i = 0; i < ROWS; i++) {
        cells[i] = i;
        cells[ROWS + i] = i % 100;
        cells[2 * ROWS + i] = 7;
    }
    ivm_column_data columns[] = { { .values = cells }, { .values = cells + ROWS }, { .values = cells + 2 * ROWS } };
    ivm_rows rows = { .rows_count = ROWS, .columns_count = 3, .columns = columns };
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    cr_assert_eq(ivm_batch_columns(batch, table, IVM_INSERT, &rows), IVM_OK);
    cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
    free(cells);
}

static ivm_table *rows_open(fixture *it, const char *key)
{
    fixture_open(it);
    ivm_table *table = fixture_table(it, "f", "id int64; d int64; x int64", key);
    rows_push(it, table);
    return table;
}

static ivm_view *view_make(fixture *it, ivm_plan *plan)
{
    ivm_view *view;
    cr_assert_eq(ivm_view_create(it->engine, "v", plan, NULL, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

/* A parent no row refers to: its change finds that there is no index. */
Test(plan_cancel_looks, an_index_that_a_join_builds)
{
    fixture it;
    (void)rows_open(&it, "id");
    ivm_table *parent = fixture_table(&it, "d", "id int64; n int64", "id");
    view_make(&it,
              ivm_plan_count(
                  ivm_plan_aggregate(ivm_plan_join(ivm_plan_scan_name("f", NULL), ivm_plan_scan_name("d", NULL), "f.d = d.id"), "n"), "c"));
    uint64_t before = LOOKS();
    cr_assert_eq(fixture_push(&it, parent, IVM_INSERT, "1000,1"), IVM_OK, "%s", it.error.message);
    cr_expect_geq(LOOKS() - before, (uint64_t)SOME);
    fixture_close(&it);
}

Test(plan_cancel_looks, an_index_of_a_bags_rows)
{
    fixture it;
    ivm_table *table = rows_open(&it, NULL);
    uint64_t before = LOOKS();
    cr_assert_eq(fixture_push(&it, table, IVM_DELETE, "5,5,7"), IVM_OK, "%s", it.error.message);
    cr_expect_geq(LOOKS() - before, (uint64_t)SOME);
    fixture_close(&it);
}

Test(plan_cancel_looks, an_index_of_who_refers_to_a_parent)
{
    fixture it;
    ivm_table *table = rows_open(&it, "id"), *parent = fixture_table(&it, "d", "id int64", "id");
    for (int i = 0; i <= 100; i++) {
        char row[16];
        snprintf(row, sizeof row, "%d", i);
        cr_assert_eq(fixture_push(&it, parent, IVM_INSERT, row), IVM_OK);
    }
    cr_assert_eq(ivm_foreign_key_declare(table, "d", parent, "id", IVM_ENFORCED, NULL, &it.error), IVM_OK, "%s", it.error.message);
    uint64_t before = LOOKS();
    cr_assert_eq(fixture_push(&it, parent, IVM_DELETE, "100"), IVM_OK, "%s", it.error.message);
    cr_expect_geq(LOOKS() - before, (uint64_t)SOME);
    fixture_close(&it);
}

Test(plan_cancel_looks, rows_that_a_new_fact_counts)
{
    fixture it;
    ivm_table *table = rows_open(&it, "id"), *parent = fixture_table(&it, "d", "id int64", "id");
    uint64_t before = LOOKS();
    cr_assert_eq(ivm_foreign_key_declare(table, "d", parent, "id", IVM_TRACKED, NULL, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_geq(LOOKS() - before, (uint64_t)SOME);
    fixture_close(&it);
}

Test(plan_cancel_looks, rows_that_a_parents_leaving_counts)
{
    fixture it;
    ivm_table *table = rows_open(&it, "id"), *parent = fixture_table(&it, "d", "id int64", "id");
    cr_assert_eq(fixture_push(&it, parent, IVM_INSERT, "100"), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(table, "d", parent, "id", IVM_TRACKED, NULL, &it.error), IVM_OK, "%s", it.error.message);
    uint64_t before = LOOKS();
    cr_assert_eq(fixture_push(&it, parent, IVM_DELETE, "100"), IVM_OK, "%s", it.error.message);
    cr_expect_geq(LOOKS() - before, (uint64_t)SOME);
    fixture_close(&it);
}

/* The window is filled, and each of the two columns that tell nothing read, before the third is sorted. */
Test(plan_cancel_looks, a_sorting_window)
{
    fixture it;
    ivm_snapshot *snapshot;
    (void)rows_open(&it, NULL);
    ivm_view *view = view_make(&it, ivm_plan_project(ivm_plan_scan_name("f", NULL), "x, d, id"));
    cr_assert_eq(ivm_read_view(view, &snapshot, &it.error), IVM_OK);
    uint64_t before = LOOKS();
    cr_assert_eq(ivm_snapshot_sort(snapshot, &it.error), IVM_OK);
    cr_expect_geq(LOOKS() - before, (uint64_t)(3 * SOME));
    ivm_snapshot_close(snapshot);
    fixture_close(&it);
}

/* The rows are read in chunks, and sorted in 15 passes; the passes of the shortest runs look at each of these. */
Test(plan_cancel_looks, the_first_rows_of_each_partition)
{
    fixture it;
    (void)rows_open(&it, "id");
    uint64_t before = LOOKS();
    ivm_plan *plan = ivm_plan_top_k(ivm_plan_scan_name("f", NULL), 1, 0);
    view_make(&it, ivm_plan_order_by(plan, ivm_column("id"), true, false));
    cr_expect_geq(LOOKS() - before, (uint64_t)(ROWS / IVM__CHUNK_ROWS + 15 * SOME));
    fixture_close(&it);
}

/* As its child's rows are judged or counted. */
static void declare_cancelled(ivm_trust trust)
{
#ifndef NDEBUG
    fixture it;
    ivm_table *table = rows_open(&it, "id"), *parent = fixture_table(&it, "d", "id int64", "id");
    if (trust == IVM_ENFORCED) {
        ivm_batch *batch;
        cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
        for (int64_t i = 0; i < 100; i++) {
            ivm_batch_insert(batch, parent, ivm_int64(i));
        }
        cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK);
    }
    ivm_status status = IVM_CANCELLED;
    uint64_t n = 1;
    for (; status == IVM_CANCELLED; n++) {
        ivm__cancel_looks_end = ivm__cancel_looks + n;
        status = ivm_foreign_key_declare(table, "d", parent, "id", trust, NULL, &it.error);
        ivm__cancel_looks_end = 0;
        cr_assert(status == IVM_OK || (status == IVM_CANCELLED && !it.engine->facts), "%s", ivm_status_name(status));
    }
    cr_expect_gt(n, (uint64_t)SOME);
    cr_expect_not_null(it.engine->facts);
    fixture_close(&it);
#else
    (void)trust;
#endif
}

Test(plan_cancel_looks, a_fact_is_declared_or_not)
{
    declare_cancelled(IVM_TRACKED);
    declare_cancelled(IVM_ENFORCED);
}

/* Ended by a request from its own thread's first look on: nothing is sorted, and later it is. */
Test(plan_cancel_looks, a_sort_that_is_cancelled_changes_nothing)
{
#ifndef NDEBUG
    fixture it;
    ivm_snapshot *snapshot;
    ivm_table *table = rows_open(&it, NULL);
    ivm_status status = IVM_CANCELLED;
    for (uint64_t n = 1; status == IVM_CANCELLED; n += 7) {
        cr_assert_eq(ivm_read_table(table, &snapshot, &it.error), IVM_OK);
        ivm__cancel_looks_end = ivm__cancel_looks + n;
        status = ivm_snapshot_sort(snapshot, &it.error);
        ivm__cancel_looks_end = 0;
        cr_assert(status == IVM_OK || (status == IVM_CANCELLED && n > 0));
        cr_assert_eq(ivm_snapshot_rows_count(snapshot), (uint64_t)ROWS);
        cr_assert_eq(ivm_snapshot_sort(snapshot, &it.error), IVM_OK);
        cr_assert_eq(ivm_snapshot_rows_count(snapshot), (uint64_t)ROWS);
        ivm_snapshot_close(snapshot);
    }
    fixture_close(&it);
#endif
}
