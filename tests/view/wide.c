/* Wide: views whose rows have more columns than one null word has bits, with nulls in any of them. */
#include "allocator.h"
#include "ivm/ivm.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define COLUMNS 150u

typedef struct wide {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_table *table;
} wide;

static void wide_open(wide *it)
{
    static char names[COLUMNS][8];
    ivm_column_definition columns[COLUMNS];
    static const ivm_type types[] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 2), IVM_BOOL };
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        snprintf(names[c], sizeof names[c], "c%u", c);
        columns[c] = (ivm_column_definition){ names[c], types[c % 4], false };
    }
    ivm_table_options of = { .columns = columns, .columns_count = COLUMNS };
    cr_assert_eq(ivm_table_create(it->engine, "t", &of, &it->table, &it->error), IVM_OK);
}

static void wide_close(wide *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* Row i: column c is null where i divides c, but never the first; all else alike. */
static void row_of(uint32_t i, ivm_value values[COLUMNS])
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        values[c] = c % 4 == 0   ? ivm_int64(c)
                    : c % 4 == 1 ? ivm_string("a text")
                    : c % 4 == 2 ? ivm_decimal(IVM_DECIMAL(20, 2), (ivm_int128){ c, 0 })
                                 : ivm_bool(c % 8 == 3);
        if (c && i && c % i == 0) {
            values[c] = ivm_null();
        }
    }
}

static void push(wide *it, uint32_t first, uint32_t count, int64_t weight)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (uint32_t i = first; i < first + count; i++) {
        ivm_value values[COLUMNS];
        row_of(i, values);
        cr_assert_eq(ivm_batch_row(batch, it->table, IVM_WEIGHTED, weight * (i + 1), values, COLUMNS), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
}

static ivm_view *make(wide *it, const char *name, ivm_plan *plan)
{
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_create(it->engine, name, plan, NULL, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

/* Each row of first .. first + count is a group of its own, found by all columns or some. */
static void assert_groups(wide *it, ivm_view *view, uint32_t first, uint32_t count)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), count);
    for (uint32_t i = first; i < first + count; i++) {
        ivm_value values[COLUMNS];
        ivm_rows rows;
        row_of(i, values);
        cr_assert_eq(ivm_snapshot_find(snapshot, values, COLUMNS, &rows, &it->error), IVM_OK, "row %u", i);
        cr_assert_eq(rows.rows_count, 1u);
        cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, COLUMNS).as.int64, (int64_t)i + 1);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            cr_assert_eq(ivm_rows_value(&rows, values[c].is_null ? (ivm_type)IVM_INT64 : values[c].type, 0, c).is_null, values[c].is_null);
        }
    }
    ivm_snapshot_close(snapshot);
}

Test(view_wide, groups_of_many_columns)
{
    wide it;
    char by[COLUMNS * 8] = "";
    size_t size = 0;
    wide_open(&it);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        size += (size_t)snprintf(by + size, sizeof by - size, "%sc%u", c ? ", " : "", c);
    }
    push(&it, 1, 40, 1);
    ivm_view *view = make(&it, "v", ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(it.table, NULL), by), "n"));
    assert_groups(&it, view, 1, 40);
    push(&it, 41, 60, 1);
    assert_groups(&it, view, 1, 100);
    push(&it, 1, 70, -1);
    assert_groups(&it, view, 71, 30);
    push(&it, 1, 70, 1);
    push(&it, 71, 30, -1);
    assert_groups(&it, view, 1, 70);
    wide_close(&it);
}

/* 300 columns, joined by two of the later ones. */
Test(view_wide, joined_rows_of_many_columns)
{
    wide it;
    wide_open(&it);
    ivm_plan *join = ivm_plan_join(ivm_plan_scan(it.table, "a"), ivm_plan_scan(it.table, "b"), "a.c148 = b.c148, a.c73 = b.c73");
    ivm_plan *plan = ivm_plan_project(join, NULL);
    for (uint32_t c = 0; c < 2 * COLUMNS; c++) {
        char name[16], column[16];
        snprintf(name, sizeof name, "x%u", c);
        snprintf(column, sizeof column, "%c.c%u", c < COLUMNS ? 'a' : 'b', c % COLUMNS);
        plan = ivm_plan_compute(plan, name, ivm_column(column));
    }
    ivm_view *view = make(&it, "v", plan);
    push(&it, 1, 20, 1);
    push(&it, 5, 5, -1);
    uint64_t pairs = 0;
    int64_t weights = 0, want = 0;
    for (uint32_t i = 1; i <= 20; i++) {
        for (uint32_t j = 1; j <= 20; j++) {
            bool there = (i < 5 || i > 9) && (j < 5 || j > 9) && 148 % i && 148 % j && 73 % i && 73 % j;
            pairs += there;
            want += there ? (i + 1) * (j + 1) : 0;
        }
    }
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it.error), IVM_OK);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), pairs);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++) {
            weights += rows.weights[at];
            cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, at, 2 * COLUMNS - 2).as.int64, 148);
            cr_assert_not(ivm_rows_value(&rows, IVM_INT64, at, 0).is_null);
        }
    }
    cr_assert_eq(weights, want);
    ivm_snapshot_close(snapshot);
    wide_close(&it);
}
