/* The ends of the ranges: what fits to the last number is held, one more is refused whole and named, and what only passes an end within a batch is
 * not. Weights and counts end with int64, sums of int64 too, decimals with 38 digits; what adds them up has 128 bits and more. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "fixture.h"
#include "ivm/ivm.h"

#define MOST INT64_MAX
#define LEAST INT64_MIN

/* One batch of rows of a table of two columns, each with a weight. */
typedef struct weighted {
    int64_t weight, a, b;
} weighted;

static ivm_status push(fixture *it, ivm_table *table, const weighted *rows, size_t count)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, rows[i].weight, IVM_VALUES(ivm_int64(rows[i].a), ivm_int64(rows[i].b))),
                     IVM_OK);
    }
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}
#define PUSH(...) push(&it, table, (weighted[]){ __VA_ARGS__ }, sizeof((weighted[]){ __VA_ARGS__ }) / sizeof(weighted))

static void holds(fixture *it, ivm_view *view, const char *rows)
{
    const char *got = fixture_view(it, view);
    cr_assert_str_eq(got, rows, "%s: \"%s\", not \"%s\"", ivm_view_name(view), got, rows);
}

static void refused(fixture *it, ivm_status status, const char *part)
{
    cr_assert_eq(status, IVM_OVERFLOW, "%s", ivm_status_name(status));
    cr_assert_not_null(strstr(it->error.message, part), "\"%s\" is not in \"%s\"", part, it->error.message);
}

static ivm_table *signed_table(fixture *it, const char *name)
{
    return fixture_table_like(it, name, "a int64; b int64", &(ivm_table_options){ .allow_negative = true });
}

/* ---- Weights --------------------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_ends, weights_of_a_table)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "bag", "a int64; b int64", NULL);
    ivm_view *view = fixture_make(&it, "v", scan_of("bag", NULL));
    cr_assert_eq(PUSH({ MOST - 1, 1, 1 }, { 1, 1, 1 }), IVM_OK, "%s", it.error.message);
    holds(&it, view, "9223372036854775807*1,1");
    refused(&it, PUSH({ 1, 1, 1 }), "bag");
    refused(&it, PUSH({ MOST, 1, 1 }, { -MOST, 1, 1 }, { 1, 1, 1 }), "bag");
    cr_assert_eq(PUSH({ MOST, 1, 1 }, { -MOST, 1, 1 }), IVM_OK, "%s", it.error.message);
    cr_assert_eq(PUSH({ LEAST, 1, 1 }, { 1, 1, 1 }), IVM_OK, "%s", it.error.message);
    holds(&it, view, "");
    cr_assert_eq(PUSH({ LEAST, 1, 1 }), IVM_ROW_NOT_FOUND);
    fixture_close(&it);
}

Test(plan_ends, weights_below_zero)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = signed_table(&it, "feed");
    ivm_view *view = fixture_make(&it, "v", scan_of("feed", NULL));
    ivm_view *count = fixture_make(&it, "n", ivm_plan_count(ivm_plan_aggregate(scan_of("feed", NULL), "a"), "n"));
    cr_assert_eq(PUSH({ LEAST, 1, 1 }), IVM_OK, "%s", it.error.message);
    holds(&it, view, "-9223372036854775808*1,1");
    holds(&it, count, "1*1,-9223372036854775808");
    refused(&it, PUSH({ -1, 1, 1 }), "feed");
    refused(&it, PUSH({ -1, 1, 2 }), "view n");
    refused(&it, PUSH({ MOST, 1, 1 }, { 1, 1, 1 }), "the batch's weight");
    cr_assert_eq(PUSH({ MOST, 1, 1 }), IVM_OK, "%s", it.error.message);
    cr_assert_eq(PUSH({ 1, 1, 1 }, { MOST, 1, 2 }), IVM_OK, "%s", it.error.message);
    holds(&it, view, "9223372036854775807*1,2");
    holds(&it, count, "1*1,9223372036854775807");
    fixture_close(&it);
}

/* Each operator adds weights up where they still fit. */
Test(plan_ends, weights_that_operators_add_up)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; b int64", NULL);
    ivm_plan *both[] = { ivm_plan_project(scan_of("t", "x"), "x.a"), ivm_plan_project(scan_of("t", "y"), "y.a") };
    ivm_view *all = fixture_make(&it, "all", ivm_plan_set(IVM_UNION_ALL, both, 2));
    ivm_view *distinct = fixture_make(&it, "distinct", ivm_plan_distinct(scan_of("t", NULL)));
    ivm_view *top =
        fixture_make(&it, "top", ivm_plan_order_by(ivm_plan_top_k(scan_of("t", NULL), UINT64_MAX, 2), ivm_column("a"), false, false));
    cr_assert_eq(PUSH({ MOST / 2, 1, 1 }), IVM_OK, "%s", it.error.message);
    holds(&it, all, "9223372036854775806*1");
    holds(&it, distinct, "1*1,1");
    holds(&it, top, "4611686018427387901*1,1");
    refused(&it, PUSH({ 1, 1, 1 }), "view all");
    refused(&it, PUSH({ 1, 1, 2 }), "view all");
    cr_assert_eq(PUSH({ MOST, 2, 2 }, { -MOST, 2, 2 }, { -1, 1, 1 }, { 1, 1, 2 }), IVM_OK, "%s", it.error.message);
    holds(&it, all, "9223372036854775806*1");
    holds(&it, distinct, "1*1,1 1*1,2");
    fixture_close(&it);
}

Test(plan_ends, weights_that_joins_multiply)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; b int64", NULL);
    ivm_table *other = fixture_table(&it, "u", "a int64; b int64", NULL);
    ivm_plan *inner = ivm_plan_join(scan_of("t", NULL), scan_of("u", NULL), "t.a = u.a");
    ivm_view *join = fixture_make(&it, "join", ivm_plan_compute(ivm_plan_project(inner, "t.a, t.b"), "c", ivm_column("u.b")));
    ivm_plan *left = ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("t", NULL), scan_of("u", NULL), "t.a = u.a");
    ivm_view *outer = fixture_make(&it, "outer", ivm_plan_compute(ivm_plan_project(left, "t.a, t.b"), "c", ivm_column("u.b")));
    cr_assert_eq(push(&it, other, (weighted[]){ { 7, 1, 5 } }, 1), IVM_OK);
    cr_assert_eq(PUSH({ MOST / 7, 1, 1 }), IVM_OK, "%s", it.error.message); /* 7 divides 2^63 - 1 */
    holds(&it, join, "9223372036854775807*1,1,5");
    holds(&it, outer, "9223372036854775807*1,1,5");
    refused(&it, PUSH({ 1, 1, 1 }), "view join");
    refused(&it, push(&it, other, (weighted[]){ { 1, 1, 5 } }, 1), "view join");
    cr_assert_eq(PUSH({ 1, 1, 2 }, { MOST, 3, 3 }), IVM_OK, "%s", it.error.message);
    holds(&it, join, "7*1,2,5 9223372036854775807*1,1,5");
    holds(&it, outer, "7*1,2,5 9223372036854775807*1,1,5 9223372036854775807*3,3,null");
    fixture_close(&it);
}

/* ---- Counts and sums ------------------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_ends, counts)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; b int64", NULL);
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(scan_of("t", NULL), "a"), "n");
    ivm_view *rows = fixture_make(&it, "rows", ivm_plan_add(plan, "c", "count", ivm_column("b")));
    ivm_view *all = fixture_make(&it, "all", ivm_plan_count(ivm_plan_aggregate(scan_of("t", NULL), ""), "n"));
    cr_assert_eq(PUSH({ MOST - 1, 1, 1 }, { 1, 1, 2 }), IVM_OK, "%s", it.error.message);
    holds(&it, rows, "1*1,9223372036854775807,9223372036854775807");
    holds(&it, all, "1*9223372036854775807");
    refused(&it, PUSH({ 1, 1, 3 }), "view rows");
    refused(&it, PUSH({ 1, 2, 3 }), "view all");
    cr_assert_eq(PUSH({ MOST, 2, 3 }, { -(MOST - 1), 1, 1 }, { -1, 1, 2 }), IVM_OK, "%s", it.error.message);
    holds(&it, rows, "1*2,9223372036854775807,9223372036854775807");
    fixture_close(&it);
}

Test(plan_ends, sums_of_int64)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; b int64", NULL);
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(scan_of("t", NULL), "a"), "s", "sum", ivm_column("b"));
    ivm_view *sums = fixture_make(&it, "sums", ivm_plan_add(plan, "m", "avg", ivm_column("b")));
    cr_assert_eq(PUSH({ 1, 1, MOST }, { 1, 2, LEAST }), IVM_OK, "%s", it.error.message);
    holds(&it, sums, "1*1,9223372036854775807,9.223372036854776e18 1*2,-9223372036854775808,-9.223372036854776e18");
    refused(&it, PUSH({ 1, 1, 1 }), "view sums");
    refused(&it, PUSH({ 1, 2, -1 }), "view sums");
    cr_assert_eq(PUSH({ 1, 1, 1 }, { 1, 1, -1 }, { 1, 2, -1 }, { 1, 2, 1 }), IVM_OK, "%s", it.error.message);
    /* Three times 2^126 is more than 128 bits hold: the sum passes their end, and comes back. */
    cr_assert_eq(PUSH({ MOST, 3, MOST }, { MOST, 3, MOST - 1 }, { MOST, 3, MOST - 2 }, { MOST, 3, -MOST }, { MOST, 3, 1 - MOST },
                      { MOST, 3, 2 - MOST }, { 1, 3, 3 }),
                 IVM_OK, "%s", it.error.message);
    holds(&it, sums,
          "1*1,9223372036854775807,3.0744573456182584e18 1*2,-9223372036854775808,-3.0744573456182584e18 1*3,3,5.421010862427522e-20");
    refused(&it, PUSH({ -MOST, 3, -MOST }), "view sums");
    cr_assert_eq(PUSH({ -MOST, 3, MOST }, { -MOST, 3, MOST - 1 }, { -MOST, 3, -MOST }, { -MOST, 3, 1 - MOST }), IVM_OK, "%s",
                 it.error.message);
    holds(&it, sums,
          "1*1,9223372036854775807,3.0744573456182584e18 1*2,-9223372036854775808,-3.0744573456182584e18 1*3,3,1.6263032587282567e-19");
    fixture_close(&it);
}

Test(plan_ends, sums_of_decimals)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; d decimal(38,0)", NULL);
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(scan_of("t", NULL), "a"), "s", "sum", ivm_column("d"));
    ivm_view *sums = fixture_make(&it, "sums", plan);
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, "1,99999999999999999999999999999999999999 2,-99999999999999999999999999999999999999"),
                 IVM_OK, "%s", it.error.message);
    refused(&it, fixture_push(&it, table, IVM_INSERT, "1,1"), "view sums");
    refused(&it, fixture_push(&it, table, IVM_INSERT, "2,-1"), "view sums");
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, "1,1 1,-1 2,5"), IVM_OK, "%s", it.error.message);
    holds(&it, sums, "1*1,99999999999999999999999999999999999999 1*2,-99999999999999999999999999999999999994");
    fixture_close(&it);
}

/* Float sums have no end but the infinities, and come back from beyond them. */
Test(plan_ends, sums_of_floats)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; x float64", NULL);
    ivm_view *sums = fixture_make(&it, "sums", ivm_plan_add(ivm_plan_aggregate(scan_of("t", NULL), "a"), "s", "sum", ivm_column("x")));
    const char *greatest = "1,1.7976931348623157e308 1,1.7976931348623157e308 1,5e-324";
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, greatest), IVM_OK, "%s", it.error.message);
    holds(&it, sums, "1*1,Infinity");
    cr_assert_eq(fixture_push(&it, table, IVM_DELETE, "1,1.7976931348623157e308 1,1.7976931348623157e308"), IVM_OK, "%s", it.error.message);
    holds(&it, sums, "1*1,5e-324");
    fixture_close(&it);
}
