/* See snapshot_case.h. */
#include "snapshot_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

test_allocator snapshot_allocator;
ivm_engine *snapshot_engine;
ivm_error snapshot_error;

void snapshot_open(void)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    test_allocator_init(&snapshot_allocator);
    options.allocator = test_allocator_functions(&snapshot_allocator);
    options.hash_seed = 3;
    cr_assert_eq(ivm_engine_open(&options, &snapshot_engine, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
}

void snapshot_close(void)
{
    cr_assert_eq(ivm_engine_close(snapshot_engine, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    cr_assert(test_allocator_is_clean(&snapshot_allocator), "%ld blocks left", (long)snapshot_allocator.blocks);
}

const ivm_column_definition snapshot_every[SNAPSHOT_COLUMNS] = {
    { "id", IVM_INT64, false }, { "b", IVM_BOOL, false },      { "f", IVM_FLOAT64, false },        { "s", IVM_STRING, false },
    { "d", IVM_DATE, false },   { "t", IVM_TIMESTAMP, false }, { "m", IVM_DECIMAL(38, 4), false }, { "n", IVM_DECIMAL(9, 0), false },
};

ivm_table *snapshot_table(const char *name, const char *key)
{
    ivm_table *table = NULL;
    ivm_table_options options = { .columns = snapshot_every, .columns_count = SNAPSHOT_COLUMNS, .key = key };
    cr_assert_eq(ivm_table_create(snapshot_engine, name, &options, &table, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    return table;
}

void snapshot_row_of(uint64_t i, ivm_value values[SNAPSHOT_COLUMNS], char text[32])
{
    static const double floats[] = { 0.0, NAN, INFINITY, -INFINITY, 1e-300 };
    memset(text, 0, 32);
    snprintf(text, 32, i % 3 ? "text %llu" : "", (unsigned long long)(i / 2));
    values[0] = ivm_int64((int64_t)(i * 0x9E3779B97F4A7C15u));
    values[1] = ivm_bool(i % 2);
    values[2] = ivm_float64(i % 6 < 5 ? floats[i % 6] : (double)i / 7);
    values[3] = ivm_string(text);
    values[4] = ivm_date((int32_t)(i % 5000) - 2500);
    values[5] = ivm_timestamp(-(int64_t)i * 1000003);
    values[6] = ivm_decimal(IVM_DECIMAL(38, 4), (ivm_int128){ i * 77, i % 2 ? (int64_t)i : -(int64_t)i });
    values[7] = ivm_decimal(IVM_DECIMAL(9, 0), (ivm_int128){ i % 100000, 0 });
    for (uint32_t c = 1; c < SNAPSHOT_COLUMNS; c++) {
        if ((i + c) % 11 == 0) {
            values[c] = ivm_null();
        }
    }
}

void snapshot_push(ivm_table *table, ivm_change change, uint64_t first, uint64_t count)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (uint64_t i = first; i < first + count; i++) {
        ivm_value values[SNAPSHOT_COLUMNS];
        char text[32];
        snapshot_row_of(i, values, text);
        cr_assert_eq(ivm_batch_row(batch, table, change, 1, values, SNAPSHOT_COLUMNS), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
}

ivm_snapshot *snapshot_read(ivm_table *table)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_table(table, &snapshot, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    return snapshot;
}

bool snapshot_same_value(const ivm_value *a, const ivm_value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null && b->is_null;
    }
    switch (IVM_TYPE_KIND(a->type)) {
    case IVM_BOOL:
        return a->as.boolean == b->as.boolean;
    case IVM_FLOAT64:
        return a->as.float64 == b->as.float64 || (isnan(a->as.float64) && isnan(b->as.float64));
    case IVM_STRING:
        return a->as.string.size == b->as.string.size && memcmp(a->as.string.bytes, b->as.string.bytes, a->as.string.size) == 0;
    case IVM_DATE:
        return a->as.date == b->as.date;
    case IVM_DECIMAL_KIND:
        return a->as.decimal.low == b->as.decimal.low && a->as.decimal.high == b->as.decimal.high;
    default:
        return a->as.int64 == b->as.int64;
    }
}

bool snapshot_is_row(const ivm_rows *rows, size_t at, uint64_t i)
{
    ivm_value values[SNAPSHOT_COLUMNS];
    char text[32];
    snapshot_row_of(i, values, text);
    bool same = rows->columns_count == SNAPSHOT_COLUMNS;
    for (size_t c = 0; c < SNAPSHOT_COLUMNS; c++) {
        ivm_value value = ivm_rows_value(rows, snapshot_every[c].type, at, c);
        same &= value.type == snapshot_every[c].type && snapshot_same_value(&value, &values[c]);
    }
    return same;
}
