/* Weights inside plans: past int64 at any node is an overflow, whatever stands above it, and nothing below that is one. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define BILLIONS 4000000000
#define MOST INT64_MAX

static fixture it;
static ivm_table *a, *b, *s;

static void open_tables(void)
{
    fixture_open(&it);
    a = fixture_table(&it, "a", "k int64; x int64", NULL);
    b = fixture_table(&it, "b", "k int64; y int64", NULL);
    ivm_column_definition columns[] = { { "k", IVM_INT64, false }, { "z", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .allow_negative = true };
    cr_assert_eq(ivm_table_create(it.engine, "s", &options, &s, &it.error), IVM_OK, "%s", it.error.message);
}

static void close_tables(void)
{
    fixture_close(&it);
}

TestSuite(plan_weights, .init = open_tables, .fini = close_tables);

/* One row of this weight, in a batch of its own. */
static ivm_status put(ivm_table *table, int64_t weight, int64_t k, int64_t x)
{
    ivm_batch *batch = NULL;
    ivm_value values[] = { ivm_int64(k), ivm_int64(x) };
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK, "%s", it.error.message);
    (void)ivm_batch_row(batch, table, IVM_WEIGHTED, weight, values, 2);
    return ivm_push_batch(it.engine, batch, NULL, &it.error);
}

static void puts_fine(ivm_table *table, int64_t weight, int64_t k, int64_t x)
{
    cr_assert_eq(put(table, weight, k, x), IVM_OK, "%s", it.error.message);
}

static void overflows(ivm_status status, const char *part)
{
    cr_assert_eq(status, IVM_OVERFLOW, "%s: %s", ivm_status_name(status), it.error.message);
    cr_assert_not_null(strstr(it.error.message, part), "\"%s\" is not in \"%s\"", part, it.error.message);
}

static ivm_status create(const char *name, ivm_plan *plan)
{
    ivm_view *view = NULL;
    return ivm_view_create(it.engine, name, plan, NULL, &view, &it.error);
}

static ivm_plan *a_with_b(void)
{
    return ivm_plan_join(scan_of("a", NULL), scan_of("b", NULL), "a.k = b.k");
}

static ivm_plan *keys_of(ivm_plan *input)
{
    return ivm_plan_distinct(ivm_plan_project(input, "a.k"));
}

/* Rows that fit though their sum does not are judged apart; one that does not fit rejects the batch, and all is as it was. */
Test(plan_weights, a_sum_past_int64_is_no_row_past_it)
{
    ivm_view *view = fixture_make(&it, "v", keys_of(a_with_b()));
    for (int64_t k = 1; k <= 3; k++) {
        puts_fine(a, 2 * BILLIONS / 2, k, 0);
        puts_fine(b, 2000000000, k, 0);
    }
    cr_assert_str_eq(fixture_view(&it, view), "1*1 1*2 1*3");
    overflows(put(a, 1000000000, 2, 1), "view v");
    cr_assert_str_eq(fixture_view(&it, view), "1*1 1*2 1*3");
    cr_assert_str_eq(fixture_changes(&it, view), "1*3", "a push that failed does not count");
    puts_fine(a, -BILLIONS, 1, 0);
    cr_assert_str_eq(fixture_changes(&it, view), "-1*1");
    overflows(put(a, 1000000000, 2, 1), "within the plan");
    puts_fine(b, -1000000000, 2, 0);
    puts_fine(a, 1000000000, 2, 1);
    cr_assert_str_eq(fixture_view(&it, view), "1*2 1*3");
}

Test(plan_weights, a_view_is_not_made_over_rows_that_weigh_too_much)
{
    puts_fine(a, BILLIONS, 1, 0);
    puts_fine(b, BILLIONS, 1, 0);
    overflows(create("v", keys_of(a_with_b())), "view v");
    overflows(create("v", ivm_plan_add(ivm_plan_aggregate(a_with_b(), NULL), "m", "max", ivm_column("x"))), "view v");
    overflows(create("v", a_with_b()), "view v");
    cr_assert_null(it.engine->views);
    ivm_view *view = fixture_make(&it, "v", keys_of(ivm_plan_join_where(a_with_b(), call_of(">", "x", 0))));
    cr_assert_str_eq(fixture_view(&it, view), "");
}

Test(plan_weights, halves_add_up_in_a_union_of_all)
{
    ivm_plan *both[] = { scan_of("a", NULL), scan_of("b", NULL) };
    ivm_view *view = fixture_make(&it, "v", ivm_plan_distinct(ivm_plan_set(IVM_UNION_ALL, both, 2)));
    puts_fine(a, MOST, 1, 0);
    puts_fine(b, MOST, 2, 0);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,0 1*2,0");
    overflows(put(b, 1, 1, 0), "within the plan");
    puts_fine(a, -1, 1, 0);
    puts_fine(b, 1, 1, 0);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,0 1*2,0");
}

Test(plan_weights, outer_joins_multiply_too)
{
    ivm_plan *left = ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("a", NULL), scan_of("b", NULL), "a.k = b.k");
    ivm_view *view = fixture_make(&it, "v", ivm_plan_add(ivm_plan_aggregate(left, NULL), "m", "max", ivm_column("y")));
    puts_fine(a, BILLIONS, 1, 0);
    puts_fine(a, MOST, 2, 0);
    overflows(put(b, BILLIONS, 1, 7), "view v");
    cr_assert_str_eq(fixture_view(&it, view), "1*null");
    puts_fine(b, 2000000000, 1, 7);
    puts_fine(b, 2000000000, 1, 6);
    cr_assert_str_eq(fixture_view(&it, view), "1*7");
    overflows(put(b, BILLIONS, 1, 8), "view v");
    cr_assert_str_eq(fixture_view(&it, view), "1*7");
}

/* Rows that lie apart in their table are one in the join. */
Test(plan_weights, equal_rows_that_came_apart_are_one_row)
{
    ivm_view *view = fixture_make(&it, "v", ivm_plan_add(ivm_plan_aggregate(a_with_b(), "a.k"), "m", "min", ivm_column("y")));
    puts_fine(b, BILLIONS, 1, 5);
    puts_fine(a, 2000000000, 1, 0);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,5");
    overflows(put(a, 2000000000, 1, 0), "view v");
    cr_assert_str_eq(fixture_view(&it, view), "1*1,5");
    puts_fine(a, 300000000, 1, 0);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,5");
}

/* What cancels in the sum may not hide a row: where weights are negative magnitudes are added up. */
Test(plan_weights, negative_weights_hide_no_row)
{
    ivm_plan *plan = ivm_plan_filter(ivm_plan_project(scan_of("s", NULL), "k"), call_of(">", "k", 0));
    ivm_view *view = fixture_make(&it, "v", ivm_plan_add(ivm_plan_aggregate(plan, NULL), "m", "min", ivm_column("k")));
    puts_fine(s, -MOST, 5, 1);
    puts_fine(s, MOST, 4, 1);
    cr_assert_str_eq(fixture_view(&it, view), "1*4");
    overflows(put(s, 1, 4, 2), "view v");
    overflows(put(s, -2, 5, 2), "view v");
    puts_fine(s, -1, 4, 1);
    puts_fine(s, 1, 4, 2);
    cr_assert_str_eq(fixture_view(&it, view), "1*4");
    cr_assert_str_eq(fixture_changes(&it, view), "");
}

Test(plan_weights, a_refresh_overflows_and_leaves_what_is_pending)
{
    ivm_view *view = NULL;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    ivm_status status = ivm_view_create(it.engine, "v", keys_of(a_with_b()), &options, &view, &it.error);
    cr_assert_eq(status, IVM_OK, "%s", it.error.message);
    puts_fine(a, BILLIONS, 1, 0);
    puts_fine(b, BILLIONS, 1, 0);
    puts_fine(b, 2000000000, 2, 0);
    puts_fine(a, 2000000000, 2, 0);
    overflows(ivm_refresh_view(view, NULL, &it.error), "view v");
    cr_assert_str_eq(fixture_view(&it, view), "");
    puts_fine(b, -2000000000, 1, 0);
    cr_assert_eq(ivm_refresh_view(view, NULL, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_str_eq(fixture_view(&it, view), "1*1 1*2");
    cr_assert_str_eq(fixture_changes(&it, view), "1*1 1*2");
}

Test(plan_weights, views_that_are_read_bring_their_weights)
{
    ivm_view *low = fixture_make(&it, "low", ivm_plan_project(scan_of("a", NULL), "k"));
    ivm_plan *pairs = ivm_plan_join(ivm_plan_scan_view(low, "l"), scan_of("b", NULL), "l.k = b.k");
    ivm_view *high = fixture_make(&it, "high", ivm_plan_distinct(ivm_plan_project(pairs, "l.k")));
    puts_fine(a, BILLIONS, 1, 0);
    puts_fine(b, 2000000000, 1, 0);
    cr_assert_str_eq(fixture_view(&it, high), "1*1");
    overflows(put(a, BILLIONS, 1, 1), "view high");
    cr_assert_str_eq(fixture_view(&it, low), "4000000000*1");
    cr_assert_str_eq(fixture_changes(&it, low), "", "nothing of the push that failed is left");
}

/* A program that judges is compiled when it is asked for: tables may have gained and lost columns since. */
Test(plan_weights, columns_that_came_and_went_are_no_matter)
{
    ivm_table *wide = fixture_table(&it, "w", "gone int64; k int64; x int64", NULL);
    ivm_plan *join = ivm_plan_join(scan_of("w", NULL), scan_of("b", NULL), "w.k = b.k");
    ivm_view *view = fixture_make(&it, "v", ivm_plan_distinct(ivm_plan_project(join, "w.x")));
    ivm_column_definition more = { "more", IVM_STRING, false };
    cr_assert_eq(ivm_table_column_add(wide, &more, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_drop(wide, "gone", &it.error), IVM_OK, "%s", it.error.message);
    puts_fine(b, BILLIONS, 1, 0);
    for (int64_t x = 1; x <= 4; x++) {
        ivm_batch *batch = NULL;
        ivm_value values[] = { ivm_int64(1), ivm_int64(x < 4 ? x : 3), ivm_string(x < 4 ? "one" : "two") };
        cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
        (void)ivm_batch_row(batch, wide, IVM_WEIGHTED, 2000000000, values, 3);
        ivm_status status = ivm_push_batch(it.engine, batch, NULL, &it.error);
        cr_assert_eq(status, x < 4 ? IVM_OK : IVM_OVERFLOW, "%s", it.error.message);
    }
    cr_assert_str_eq(fixture_view(&it, view), "1*1 1*2 1*3");
}

Test(plan_weights, a_failed_allocation_while_rows_are_judged_leaves_nothing)
{
    ivm_view *view = fixture_make(&it, "v", keys_of(a_with_b()));
    puts_fine(b, BILLIONS, 1, 0);
    puts_fine(b, BILLIONS, 2, 0);
    puts_fine(a, 2000000000, 1, 0);
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_batch *batch = NULL;
        ivm_value values[] = { ivm_int64(2), ivm_int64(0) };
        cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
        (void)ivm_batch_row(batch, a, IVM_WEIGHTED, 2000000000, values, 2);
        test_allocator_arm(&it.allocator, failures + 1);
        ivm_status status = ivm_push_batch(it.engine, batch, NULL, &it.error);
        failed = test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, it.error.message);
        cr_assert_str_eq(fixture_view(&it, view), failed ? "1*1" : "1*1 1*2", "allocation %lu", (unsigned long)failures);
    }
    cr_assert_geq(failures, 30u);
}

/* The join keeps of a filtered leaf what is read alone, and so rows add up there that are apart in the plan. */
Test(plan_weights, rows_that_differ_where_nobody_looks_are_apart_all_the_same)
{
    ivm_plan *join = ivm_plan_join(scan_of("a", NULL), ivm_plan_filter(scan_of("b", NULL), call_of(">", "k", 0)), "a.k = b.k");
    ivm_view *view = fixture_make(&it, "v", ivm_plan_add(ivm_plan_aggregate(join, "a.k"), "m", "max", ivm_column("x")));
    puts_fine(b, 3000000000, 1, 1);
    puts_fine(b, 3000000000, 1, 2);
    puts_fine(a, 2000000000, 1, 7);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,7");
    overflows(put(b, BILLIONS, 1, 2), "view v");
    puts_fine(b, BILLIONS, 1, 3);
    puts_fine(b, 3 * BILLIONS, 2, 0);
    puts_fine(a, -1, 1, 7);
    cr_assert_str_eq(fixture_view(&it, view), "1*1,7");
}
