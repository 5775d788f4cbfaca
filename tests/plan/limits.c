/* Named limits of plans and views, at the edge and one beyond. Those of tables and batches: tests/engine/limits.c. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_case.h"
#include "utf8.h"

static const char *name_of(const char *format, uint32_t a, uint32_t b)
{
    static char names[8][32];
    static uint32_t next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], format, a, b);
    return name;
}

static ivm_value zero_of(ivm_type type)
{
    return type == IVM_BOOL ? ivm_bool(false) : type == IVM_DATE ? ivm_date(0) : ivm_int64(0);
}

/* Table t<nth> of so many columns t<nth>_0, ... of this type, the first an int64, and a row of zeros in it. */
static ivm_table *table_wide(fixture *it, uint32_t nth, uint32_t columns_count, ivm_type type)
{
    ivm_column_definition *columns = calloc(columns_count, sizeof *columns);
    ivm_value *values = calloc(columns_count, sizeof *values);
    ivm_batch *batch;
    ivm_table *table = NULL;
    for (uint32_t i = 0; i < columns_count; i++) {
        columns[i] = (ivm_column_definition){ strdup(name_of("t%u_%u", nth, i)), i ? type : IVM_INT64, i == 0 };
        values[i] = zero_of(columns[i].type);
    }
    ivm_table_options options = { .version = 1, .columns = columns, .columns_count = columns_count };
    cr_assert_eq(ivm_table_create(it->engine, name_of("t%u", nth, 0), &options, &table, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    cr_assert_eq(ivm_batch_row(batch, table, IVM_INSERT, 1, values, columns_count), IVM_OK);
    cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
    for (uint32_t i = 0; i < columns_count; i++) {
        free((void *)columns[i].name);
    }
    free(columns);
    free(values);
    return table;
}

/* Tables t0, t1, ... joined along their first columns. */
static ivm_plan *joined(uint32_t leaves)
{
    ivm_plan *inputs[IVM_JOIN_LEAVES_MAX + 1];
    char on[(IVM_JOIN_LEAVES_MAX + 1) * 32] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < leaves; i++) {
        inputs[i] = scan_of(name_of("t%u", i, 0), NULL);
        if (i) {
            size += (size_t)snprintf(on + size, sizeof on - size, "%st0.t0_0 = t%u.t%u_0", i > 1 ? ", " : "", i, i);
        }
    }
    return ivm_plan_join_many(inputs, leaves, on);
}

static ivm_status view_make(fixture *it, ivm_plan *plan, ivm_view **view)
{
    return ivm_view_create(it->engine, "v", plan, NULL, view, &it->error);
}

static void refused(fixture *it, ivm_plan *plan, ivm_status status, const char *part)
{
    ivm_view *view = NULL;
    cr_assert_eq(view_make(it, plan, &view), status, "%s", it->error.message);
    cr_assert_not_null(strstr(it->error.message, part), "\"%s\" is not in \"%s\"", part, it->error.message);
}

static uint64_t rows_of(ivm_snapshot *snapshot)
{
    uint64_t count = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        count += rows.rows_count;
    }
    ivm_snapshot_close(snapshot);
    return count;
}

/* The view's one row goes with one of t1's and comes back, and all of it comes back from a checkpoint. */
static void lives(fixture *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    tape saved = { 0 };
    ivm_table *table = fixture_table_find(it, "t1");
    uint32_t columns_count = (uint32_t)ivm_table_columns_count(table);
    ivm_value *values = calloc(columns_count, sizeof *values);
    for (uint32_t i = 0; i < columns_count; i++) {
        values[i] = zero_of(ivm_table_column_type(table, i));
    }
    for (int64_t weight = -1; weight <= 1; weight += 2) {
        ivm_batch *batch;
        cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
        cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, weight, values, columns_count), IVM_OK);
        cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
        cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK);
        cr_assert_eq(rows_of(snapshot), weight > 0 ? 1u : 0u);
    }
    free(values);
    case_save(it, &saved);
    cr_assert_eq(case_restore(it, &saved), IVM_OK, "%s", it->error.message);
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK);
    cr_assert_eq(rows_of(snapshot), 1u);
    tape_free(&saved);
}

/* ---- Leaves and columns ------------------------------------------------------------------------------------------------------------------------------ */

Test(plan_limits, leaves_of_a_join)
{
    fixture it;
    ivm_view *view = NULL;
    fixture_open(&it);
    for (uint32_t i = 0; i <= IVM_JOIN_LEAVES_MAX; i++) {
        table_wide(&it, i, 1, IVM_INT64);
    }
    refused(&it, joined(IVM_JOIN_LEAVES_MAX + 1), IVM_UNSUPPORTED, "64");
    cr_assert_eq(view_make(&it, joined(IVM_JOIN_LEAVES_MAX), &view), IVM_OK, "%s", it.error.message);
    lives(&it, view);
    fixture_close(&it);
}

Test(plan_limits, columns_of_a_table_in_a_view)
{
    fixture it;
    ivm_view *view = NULL;
    ivm_snapshot *snapshot = NULL;
    ivm_rows rows;
    ivm_value values[IVM_TABLE_COLUMNS_MAX + 1];
    fixture_open(&it);
    table_wide(&it, 0, IVM_TABLE_COLUMNS_MAX, IVM_INT64);
    table_wide(&it, 1, IVM_TABLE_COLUMNS_MAX, IVM_INT64);
    cr_assert_eq(view_make(&it, joined(2), &view), IVM_OK, "%s", it.error.message);
    fixture_make(&it, "d", ivm_plan_distinct(scan_of("t0", NULL)));
    fixture_make(&it, "k", ivm_plan_top_k(scan_of("t0", NULL), 1, 0));
    fixture_make(&it, "o", ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("t0", NULL), scan_of("t1", NULL), "t0.t0_1 = t1.t1_1"));
    lives(&it, view);
    for (uint32_t i = 0; i <= IVM_TABLE_COLUMNS_MAX; i++) {
        values[i] = ivm_int64(0);
    }
    cr_assert_eq(ivm_read_view(view, &snapshot, &it.error), IVM_OK);
    cr_assert_eq(ivm_snapshot_find(snapshot, values, IVM_TABLE_COLUMNS_MAX, &rows, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(rows.rows_count, 1u);
    cr_assert_eq(ivm_snapshot_find(snapshot, values, IVM_TABLE_COLUMNS_MAX + 1, &rows, &it.error), IVM_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(it.error.message, "1 to 1024 key values are wanted, not 1025"), "%s", it.error.message);
    ivm_snapshot_close(snapshot);
    fixture_close(&it);
}

/* A project of the join with so many columns more. */
static ivm_plan *joined_and(uint32_t leaves, uint32_t more)
{
    ivm_plan *one = scan_of("more", NULL);
    one = ivm_plan_project(one, NULL);
    for (uint32_t i = 0; i < more; i++) {
        one = ivm_plan_compute(one, name_of("more%u_%u", i, 0), ivm_column("a"));
    }
    return ivm_plan_join_kind(IVM_LEFT_JOIN, joined(leaves), one, "t0.t0_0 = more0_0");
}

Test(plan_limits, columns_of_a_view)
{
    fixture it;
    ivm_view *view = NULL;
    uint32_t tables = IVM_VIEW_COLUMNS_MAX / IVM_TABLE_COLUMNS_MAX;
    fixture_open(&it);
    fixture_table(&it, "more", "a int64", NULL);
    for (uint32_t i = 0; i < tables; i++) {
        table_wide(&it, i, i + 1 < tables ? IVM_TABLE_COLUMNS_MAX : IVM_TABLE_COLUMNS_MAX - 1, i % 2 ? IVM_BOOL : IVM_DATE);
    }
    refused(&it, joined_and(tables, 2), IVM_UNSUPPORTED, "65537 columns in the plan, at most 65536");
    cr_assert_eq(view_make(&it, joined_and(tables, 1), &view), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_view_columns_count(view), IVM_VIEW_COLUMNS_MAX);
    lives(&it, view);
    fixture_close(&it);
}

Test(plan_limits, bytes_of_a_row)
{
    fixture it;
    ivm_view *view = NULL;
    uint32_t tables = IVM_ROW_BYTES_MAX / 16 / IVM_TABLE_COLUMNS_MAX;
    fixture_open(&it);
    fixture_table(&it, "more", "a int64", NULL);
    for (uint32_t i = 0; i < tables; i++) {
        table_wide(&it, i, i + 1 < tables ? IVM_TABLE_COLUMNS_MAX : IVM_TABLE_COLUMNS_MAX - 1, IVM_DECIMAL(38, 0));
    }
    refused(&it, joined_and(tables, 35), IVM_UNSUPPORTED, "524296 bytes in the plan, at most 524288");
    cr_assert_eq(view_make(&it, joined_and(tables, 34), &view), IVM_OK, "%s", it.error.message);
    lives(&it, view);
    fixture_close(&it);
}

/* ---- Depth, on a small stack ---------------------------------------------------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (8u << 20) /* frames are several times as large */
#else
#define STACK_BYTES (512u << 10)
#endif

/* A plan of so many levels over a scan, each made by one of these. */
typedef ivm_plan *level(ivm_plan *input);

static ivm_plan *level_filter(ivm_plan *input)
{
    return ivm_plan_filter(input, ivm_call2(">", ivm_column("a"), ivm_literal(ivm_int64(0))));
}

static ivm_plan *level_project(ivm_plan *input)
{
    return ivm_plan_compute(ivm_plan_project(input, NULL), "a", ivm_call2("+", ivm_column("a"), ivm_literal(ivm_int64(0))));
}

static ivm_plan *level_distinct(ivm_plan *input)
{
    return ivm_plan_distinct(input);
}

static ivm_plan *level_union(ivm_plan *input)
{
    ivm_plan *inputs[] = { input, ivm_plan_project(scan_of("none", NULL), "a") };
    return ivm_plan_set(IVM_UNION_ALL, inputs, 2);
}

static ivm_plan *level_except(ivm_plan *input)
{
    ivm_plan *inputs[] = { input, ivm_plan_project(scan_of("none", NULL), "a") };
    return ivm_plan_set(IVM_EXCEPT_ALL, inputs, 2);
}

static ivm_plan *level_top(ivm_plan *input)
{
    return ivm_plan_order_by(ivm_plan_top_k(input, 1000, 0), ivm_column("a"), false, false);
}

static ivm_plan *level_aggregate(ivm_plan *input)
{
    return ivm_plan_count(ivm_plan_aggregate(input, "a"), "n");
}

static ivm_plan *level_join(ivm_plan *input)
{
    return ivm_plan_project(ivm_plan_join(ivm_plan_distinct(input), scan_of("t", NULL), "a = t.b"), "t.a");
}

static ivm_plan *level_semi(ivm_plan *input)
{
    return ivm_plan_join_kind(IVM_SEMI_JOIN, input, scan_of("t", NULL), "a = t.b");
}

static ivm_plan *level_left(ivm_plan *input)
{
    return ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, input, scan_of("none", NULL), "a = none.b"), "a");
}

static const struct {
    const char *name;
    level *add;
    uint32_t depth; /* of one level */
} levels[] = {
    { "filter", level_filter, 1 }, { "project", level_project, 1 }, { "distinct", level_distinct, 1 },   { "union_all", level_union, 1 },
    { "except", level_except, 1 }, { "top_k", level_top, 1 },       { "aggregate", level_aggregate, 1 }, { "join", level_join, 3 },
    { "semi", level_semi, 1 },     { "left", level_left, 2 },
};

/* Made, pushed to, audited, explained, saved, restored and dropped. */
static void view_live(fixture *it, ivm_table *table, const char *name, ivm_plan *plan)
{
    ivm_view *view = NULL;
    ivm_snapshot *differences = NULL;
    tape saved = { 0 };
    char *text = NULL;
    cr_assert_not_null(plan, "%s", name);
    cr_assert_eq(ivm_view_create(it->engine, name, plan, NULL, &view, &it->error), IVM_OK, "%s: %s", name, it->error.message);
    cr_assert_eq(fixture_push(it, table, IVM_INSERT, "2,2 3,3"), IVM_OK, "%s: %s", name, it->error.message);
    cr_assert_eq(fixture_push(it, table, IVM_DELETE, "2,2"), IVM_OK, "%s: %s", name, it->error.message);
    cr_assert_eq(ivm_audit_view(view, &differences, &it->error), IVM_OK, "%s: %s", name, it->error.message);
    cr_assert_eq(rows_of(differences), 0u, "%s", name);
    cr_assert_eq(ivm_explain(view, NULL, IVM_EXPLAIN_JSON, &text, &it->error), IVM_OK, "%s: %s", name, it->error.message);
    ivm_text_free(text);
    case_save(it, &saved);
    cr_assert_eq(case_restore(it, &saved), IVM_OK, "%s: %s", name, it->error.message);
    case_assert_saved_as(it, &saved, name);
    tape_free(&saved);
    cr_assert_eq(fixture_push(it, table, IVM_DELETE, "3,3"), IVM_OK, "%s: %s", name, it->error.message);
    cr_assert_eq(ivm_view_drop(view, &it->error), IVM_OK);
}

static void *levels_live(void *subject)
{
    fixture *it = subject;
    ivm_table *table = fixture_table(it, "t", "a int64; b int64", NULL);
    fixture_table(it, "none", "a int64; b int64", NULL);
    cr_assert_eq(fixture_push(it, table, IVM_INSERT, "1,1 5,5"), IVM_OK);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        ivm_plan *plan = ivm_plan_project(scan_of("t", NULL), "a");
        for (uint32_t depth = 2; depth + levels[i].depth <= IVM_PLAN_DEPTH_MAX; depth += levels[i].depth) {
            plan = levels[i].add(plan);
        }
        view_live(it, table, levels[i].name, plan);
    }
    return NULL;
}

static void on_a_small_stack(void *(*body)(void *), void *subject)
{
    pthread_t thread;
    pthread_attr_t attributes;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, body, subject), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

Test(plan_limits, depth_of_plans)
{
    fixture it;
    fixture_open(&it);
    on_a_small_stack(levels_live, &it);
    fixture_close(&it);
}

static ivm_expr *expression_of(const char *function, uint32_t depth)
{
    ivm_expr *made = ivm_column("a");
    for (uint32_t i = strcmp(function, "case") == 0 ? 2 : 1; i < depth; i++) {
        if (strcmp(function, "case") == 0) {
            ivm_expr *arguments[] = { ivm_call2(">", ivm_column("b"), ivm_literal(ivm_int64(0))), made, ivm_column("b") };
            made = ivm_call("case", arguments, 3);
        } else if (strcmp(function, "-") == 0) {
            made = ivm_call1("-", made);
        } else {
            made = ivm_call2(function, made, ivm_column("b"));
        }
    }
    return made;
}

static void *expressions_live(void *subject)
{
    static const char *const functions[] = { "-", "+", "coalesce", "case", "least" };
    fixture *it = subject;
    ivm_table *table = fixture_table(it, "t", "a int64; b int64", NULL);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        ivm_expr *deepest = expression_of(functions[i], IVM_PLAN_DEPTH_MAX);
        cr_assert_not_null(deepest, "%s", functions[i]);
        view_live(it, table, functions[i], ivm_plan_compute(ivm_plan_project(scan_of("t", NULL), NULL), "x", deepest));
        ivm_plan *beyond =
            ivm_plan_compute(ivm_plan_project(scan_of("t", NULL), NULL), "x", expression_of(functions[i], IVM_PLAN_DEPTH_MAX + 1));
        refused(it, beyond, IVM_INVALID_PLAN, "1000 deep");
    }
    return NULL;
}

Test(plan_limits, depth_of_expressions)
{
    fixture it;
    fixture_open(&it);
    on_a_small_stack(expressions_live, &it);
    fixture_close(&it);
}

#define CHAIN 2000u

/* Views over views have no limit but memory: nothing recurs along them. */
static void *chain_lives(void *subject)
{
    fixture *it = subject;
    ivm_view *last = NULL;
    ivm_snapshot *snapshot = NULL;
    tape saved = { 0 };
    ivm_table *table = fixture_table(it, "t", "a int64; b int64", NULL);
    for (uint32_t i = 0; i < CHAIN; i++) {
        last = fixture_make(it, name_of("v%u", i, 0), level_filter(scan_of(i ? name_of("v%u", i - 1, 0) : "t", NULL)));
    }
    cr_assert_eq(fixture_push(it, table, IVM_INSERT, "1,1 0,0"), IVM_OK, "%s", it->error.message);
    cr_assert_eq(ivm_read_view(last, &snapshot, &it->error), IVM_OK);
    cr_assert_eq(rows_of(snapshot), 1u);
    cr_assert_eq(ivm_audit_view(last, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert_eq(rows_of(snapshot), 0u);
    case_save(it, &saved);
    cr_assert_eq(case_restore(it, &saved), IVM_OK, "%s", it->error.message);
    case_assert_saved_as(it, &saved, "restored");
    tape_free(&saved);
    return NULL;
}

Test(plan_limits, depth_of_views_over_views)
{
    fixture it;
    fixture_open(&it);
    on_a_small_stack(chain_lives, &it);
    fixture_close(&it);
}

/* ---- Names and texts --------------------------------------------------------------------------------------------------------------------------------------- */

/* Tables that refer to the one before, and a view of each that joins the two. */
static void chain_made(fixture *it, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        static const ivm_column_definition columns[] = { { "k", IVM_INT64, true }, { "up", IVM_INT64, false } };
        ivm_table_options options = { .version = 1, .columns = columns, .columns_count = 2, .key = "k" };
        ivm_table *table, *above;
        ivm_view *view;
        cr_assert_eq(ivm_table_create(it->engine, name_of("t%u", i, 0), &options, &table, &it->error), IVM_OK);
        cr_assert_eq(ivm_table_find(it->engine, name_of("t%u", i ? i - 1 : 0, 0), &above, &it->error), IVM_OK);
        cr_assert_eq(ivm_foreign_key_declare(table, "up", above, "k", IVM_RELY, NULL, &it->error), IVM_OK);
        ivm_plan *plan = ivm_plan_join(ivm_plan_scan(table, "a"), ivm_plan_scan(above, "b"), "a.up = b.k");
        plan = ivm_plan_project(plan, "a.k");
        cr_assert_eq(ivm_view_create(it->engine, name_of("v%u", i, 0), plan, NULL, &view, &it->error), IVM_OK, "%s", it->error.message);
    }
}

static void chain_dropped(fixture *it, uint32_t first, uint32_t end)
{
    for (uint32_t i = end; i-- > first;) {
        ivm_table *table;
        ivm_view *view;
        cr_assert_eq(ivm_view_find(it->engine, name_of("v%u", i, 0), &view, &it->error), IVM_OK);
        cr_assert_eq(ivm_view_drop(view, &it->error), IVM_OK);
        cr_assert_eq(ivm_table_find(it->engine, name_of("t%u", i, 0), &table, &it->error), IVM_OK);
        cr_assert_eq(ivm_table_drop(table, &it->error), IVM_OK);
    }
}

static uint32_t tables_count(const fixture *it)
{
    uint32_t count = 0;
    for (ivm_table *table = NULL; (table = ivm_table_next(it->engine, table));) {
        cr_assert_str_eq(ivm_table_name(table), name_of("t%u", count, 0));
        count++;
    }
    return count;
}

/* Not a limit: who walks lists of all there is would make minutes of it. */
Test(plan_limits, a_catalog_of_thousands)
{
    enum { FEW = 400, MANY = 20000 };
    fixture it;
    fixture_open(&it);
    chain_made(&it, 0, MANY);
    cr_assert_eq(tables_count(&it), (uint32_t)MANY);
    chain_dropped(&it, FEW, MANY);
    cr_assert_eq(tables_count(&it), (uint32_t)FEW);
    chain_made(&it, FEW, 2 * FEW);
    chain_dropped(&it, 0, 2 * FEW);
    cr_assert_null(ivm_table_next(it.engine, NULL));
    cr_assert_null(ivm_view_next(it.engine, NULL));
    cr_assert_null(ivm_fact_next(it.engine, NULL));
    fixture_close(&it);
}

Test(plan_limits, names_in_plans_are_utf8)
{
    fixture it;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "a int64; s string", NULL);
    refused(&it, scan_of("t", "al\xffias"), IVM_INVALID_PLAN, "no UTF-8");
    cr_assert(ivm__utf8_is(it.error.message));
    refused(&it, ivm_plan_compute(ivm_plan_project(scan_of("t", NULL), NULL), "\xe2\x82", ivm_column("a")), IVM_INVALID_PLAN, "no UTF-8");
    refused(&it, ivm_plan_count(ivm_plan_aggregate(scan_of("t", NULL), "a"), "n\x80"), IVM_INVALID_PLAN, "no UTF-8");
    refused(&it, ivm_plan_project(scan_of("t", NULL), "\x80"), IVM_UNKNOWN_COLUMN, "?");
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_create(it.engine, "v\xff", scan_of("t", NULL), NULL, &view, &it.error), IVM_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(it.error.message, "no UTF-8"), "%s", it.error.message);
    (void)table;
    fixture_close(&it);
}

/* Strings are bytes to all functions; explain and messages are UTF-8 whatever they are. */
Test(plan_limits, texts_that_are_no_utf8)
{
    fixture it;
    char *text = NULL;
    fixture_open(&it);
    ivm_table *table = fixture_table(&it, "t", "s string", NULL);
    ivm_plan *plan = ivm_plan_filter(scan_of("t", NULL), ivm_call2("<>", ivm_column("s"), ivm_literal(ivm_string("\xff\xfe"))));
    plan = ivm_plan_compute(ivm_plan_project(plan, NULL), "n", ivm_call1("length", ivm_column("s")));
    plan = ivm_plan_compute(plan, "low", ivm_call1("lower", ivm_column("s")));
    plan = ivm_plan_compute(plan, "up", ivm_call1("upper", ivm_column("s")));
    plan = ivm_plan_compute(plan, "both", ivm_call2("concat", ivm_column("s"), ivm_literal(ivm_string("\x80z"))));
    ivm_view *view = fixture_make(&it, "v", plan);
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, "\xff\xfe A\xe2\x82 \x80\xbf\xc3\xa4Z"), IVM_OK, "%s", it.error.message);
    cr_assert_str_eq(fixture_view(&it, view),
                     "1*2,a\xe2\x82,A\xe2\x82,A\xe2\x82\x80z 1*2,\x80\xbf\xc3\xa4z,\x80\xbf\xc3\xa4Z,\x80\xbf\xc3\xa4Z\x80z");
    for (uint32_t format = IVM_EXPLAIN_TEXT; format <= IVM_EXPLAIN_DOT; format++) {
        cr_assert_eq(ivm_explain(view, NULL, (ivm_explain_format)format, &text, &it.error), IVM_OK, "%s", it.error.message);
        cr_assert(ivm__utf8_is(text), "%s", text);
        ivm_text_free(text);
    }
    fixture_close(&it);
}
