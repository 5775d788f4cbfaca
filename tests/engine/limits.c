/* Named limits of tables and batches, at the edge and one beyond. Those of plans and views: tests/plan/limits.c. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "catalog.h"
#include "ivm/batch.h"
#include "ivm/view.h"
#include "utf8.h"

static test_allocator allocator;
static ivm_engine *engine;
static ivm_error error;

static void begin(void)
{
    test_allocator_init(&allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&allocator);
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OK);
}

static void end(void)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
    cr_assert(test_allocator_is_clean(&allocator));
}

static void failed(ivm_status status, ivm_status wanted, const char *part)
{
    cr_assert_eq(status, wanted, "%s, not %s: %s", ivm_status_name(status), ivm_status_name(wanted), error.message);
    cr_assert_eq(error.status, wanted);
    cr_assert_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
}

static ivm_table *table_of(const char *name, const char *key)
{
    ivm_table *table = NULL;
    ivm_column_definition columns[] = { { "a", IVM_INT64, key != NULL }, { "s", IVM_STRING, false } };
    ivm_table_options options = { .version = 1, .columns = columns, .columns_count = 2, .key = key };
    cr_assert_eq(ivm_table_create(engine, name, &options, &table, &error), IVM_OK, "%s", error.message);
    return table;
}

static ivm_batch *batch_of(void)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK);
    return batch;
}

/* ---- Rows of a batch ------------------------------------------------------------------------------------------------------------------------------ */

/* So many rows of arrays that are not there: whoever reads them ends the test. */
static ivm_status rows_add(ivm_batch *batch, ivm_table *table, ivm_change change, size_t count, bool weighted)
{
    void *nowhere = NULL;
    memset(&nowhere, 8, 1);
    ivm_column_data columns[] = { { .values = nowhere }, { .values = nowhere, .offsets = nowhere } };
    ivm_rows rows = { .rows_count = count, .columns_count = 2, .columns = columns, .weights = weighted ? nowhere : NULL };
    return ivm_batch_columns(batch, table, change, &rows);
}

/* A push of so many rows at the edge is not refused for their number: it finds no memory before it reads one. */
static void at_the_edge(ivm_batch *batch)
{
    cr_assert_eq(ivm_engine_memory_limit(engine, 1 << 20, &error), IVM_OK);
    failed(ivm_push_batch(engine, batch, NULL, &error), IVM_OUT_OF_MEMORY, "limit is 1048576 bytes");
    cr_assert_eq(ivm_engine_memory_limit(engine, 0, &error), IVM_OK);
}

Test(engine_limits, rows_of_one_part, .init = begin, .fini = end)
{
    ivm_table *keyed = table_of("keyed", "a"), *bag = table_of("bag", NULL);
    static const size_t beyond[] = { IVM_BATCH_ROWS_MAX + (size_t)1, (size_t)1 << 33, ((size_t)1 << 62) + 1, SIZE_MAX };
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        ivm_batch *batch = batch_of();
        cr_assert_eq(rows_add(batch, bag, i % 2 ? IVM_INSERT : IVM_WEIGHTED, beyond[i], i % 2 == 0), IVM_OVERFLOW);
        failed(ivm_push_batch(engine, batch, NULL, &error), IVM_OVERFLOW, "table bag: ");
        cr_assert_not_null(strstr(error.message, "at most 2147483648"), "%s", error.message);
    }
    ivm_batch *batch = batch_of();
    cr_assert_eq(rows_add(batch, bag, IVM_INSERT, IVM_BATCH_ROWS_MAX, false), IVM_OK);
    at_the_edge(batch);
    batch = batch_of();
    cr_assert_eq(rows_add(batch, keyed, IVM_DELETE, IVM_BATCH_ROWS_MAX, false), IVM_OK);
    at_the_edge(batch);
}

Test(engine_limits, rows_of_several_parts, .init = begin, .fini = end)
{
    ivm_table *keyed = table_of("keyed", "a"), *bag = table_of("bag", NULL);
    for (size_t more = 0; more < 2; more++) {
        ivm_batch *batch = batch_of();
        cr_assert_eq(rows_add(batch, bag, IVM_INSERT, IVM_BATCH_ROWS_MAX - 5, false), IVM_OK);
        cr_assert_eq(rows_add(batch, keyed, IVM_INSERT, IVM_BATCH_ROWS_MAX, false), IVM_OK, "of another table");
        cr_assert_eq(rows_add(batch, bag, IVM_INSERT, 5 + more, more > 0), IVM_OK);
        if (more) {
            failed(ivm_push_batch(engine, batch, NULL, &error), IVM_OVERFLOW, "table bag: more than 2147483648 rows in one batch");
        } else {
            at_the_edge(batch);
        }
        batch = batch_of();
        cr_assert_eq(rows_add(batch, keyed, IVM_UPSERT, IVM_BATCH_ROWS_MAX / 2 + more, false), IVM_OK);
        if (more) {
            failed(ivm_push_batch(engine, batch, NULL, &error), IVM_OVERFLOW, "table keyed: more than 2147483648 rows in one batch");
        } else {
            at_the_edge(batch);
        }
    }
    ivm_batch *batch = batch_of();
    ivm_shape shape;
    cr_assert_eq(rows_add(batch, bag, IVM_WEIGHTED, IVM_BATCH_ROWS_MAX, false), IVM_OK);
    cr_assert_eq(rows_add(batch, bag, IVM_WEIGHTED, IVM_BATCH_ROWS_MAX, true), IVM_OK, "its weights are not read");
    failed(ivm_batch_shape(batch, bag, &shape, &error), IVM_OVERFLOW, "table bag: more than");
    ivm_batch_free(batch);
}

/* Rows that a table is said to have are enough to see what it refuses. */
Test(engine_limits, rows_of_a_table, .init = begin, .fini = end)
{
    ivm_table *tables[] = { table_of("keyed", "a"), table_of("bag", NULL) };
    for (size_t t = 0; t < 2; t++) {
        ivm__store *store = &tables[t]->store;
        for (int64_t rows = 2; rows > 0; rows--) {
            store->rows_live = IVM_TABLE_ROWS_MAX - 1;
            ivm_batch *batch = batch_of();
            for (int64_t i = 0; i < rows; i++) {
                ivm_batch_insert(batch, tables[t], ivm_int64(i), ivm_null());
            }
            ivm_status status = ivm_push_batch(engine, batch, NULL, &error);
            if (rows == 2) {
                failed(status, IVM_OVERFLOW, "more than 4000000000 rows");
            } else {
                cr_assert_eq(status, IVM_OK, "%s", error.message);
            }
        }
        store->rows_live = 1;
    }
}

/* ---- Columns --------------------------------------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_wide(uint32_t columns_count, ivm_status wanted)
{
    static ivm_column_definition columns[IVM_TABLE_COLUMNS_MAX + 1];
    static char names[IVM_TABLE_COLUMNS_MAX + 1][16];
    ivm_table *table = NULL;
    for (uint32_t i = 0; i < columns_count; i++) {
        snprintf(names[i], sizeof names[i], "c%u", i);
        columns[i] = (ivm_column_definition){ names[i], i % 3 == 2 ? IVM_STRING : i % 3 ? IVM_DECIMAL(38, 2) : IVM_INT64, i == 0 };
    }
    ivm_table_options options = { .version = 1, .columns = columns, .columns_count = columns_count, .key = "c0" };
    cr_assert_eq(ivm_table_create(engine, "wide", &options, &table, &error), wanted, "%s", error.message);
    return table;
}

Test(engine_limits, columns_of_a_table, .init = begin, .fini = end)
{
    ivm_value values[IVM_TABLE_COLUMNS_MAX];
    ivm_snapshot *snapshot;
    ivm_rows rows;
    (void)table_wide(IVM_TABLE_COLUMNS_MAX + 1, IVM_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "1 to 1024 columns, not 1025"), "%s", error.message);
    ivm_table *table = table_wide(IVM_TABLE_COLUMNS_MAX, IVM_OK);
    failed(ivm_table_column_add(table, &(ivm_column_definition){ "more", IVM_BOOL, false }, &error), IVM_INVALID_ARGUMENT, "1024 columns");
    for (uint32_t i = 0; i < IVM_TABLE_COLUMNS_MAX; i++) {
        ivm_int128 unscaled = { i, i % 2 ? 0 : -1 };
        values[i] = i % 7 == 6   ? ivm_null()
                    : i % 3 == 2 ? ivm_string("a text of some length")
                    : i % 3      ? ivm_decimal(IVM_DECIMAL(38, 2), unscaled)
                                 : ivm_int64(i);
    }
    for (int change = 0; change < 2; change++) {
        ivm_batch *batch = batch_of();
        values[IVM_TABLE_COLUMNS_MAX - 1] = ivm_int64(change);
        cr_assert_eq(ivm_batch_row(batch, table, change ? IVM_UPSERT : IVM_INSERT, 1, values, IVM_TABLE_COLUMNS_MAX), IVM_OK);
        cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
    }
    cr_assert_eq(ivm_read_table(table, &snapshot, &error), IVM_OK);
    cr_assert_eq(ivm_snapshot_find(snapshot, values, 1, &rows, &error), IVM_OK, "%s", error.message);
    cr_assert(rows.rows_count == 1 && rows.columns_count == IVM_TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < IVM_TABLE_COLUMNS_MAX; i++) {
        ivm_value value = ivm_rows_value(&rows, ivm_table_column_type(table, i), 0, i);
        char got[IVM_VALUE_TEXT_SIZE], want[IVM_VALUE_TEXT_SIZE];
        ivm_value_format(&value, got, sizeof got);
        ivm_value_format(&values[i], want, sizeof want);
        cr_assert_str_eq(got, want, "column %u", i);
    }
    ivm_snapshot_close(snapshot);
}

/* ---- Names and texts ------------------------------------------------------------------------------------------------------------------------------------- */

static const char *const broken[] = { "\x80",         "a\xff",   "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xf0\x9f\x8c", "\xe2\x82" };
static const char *const whole[] = { "\xc3\xa4",         "\xe2\x82\xac", "\xf0\x9f\x8c\xb2", "\xed\x9f\xbf", "\xee\x80\x80",
                                     "\xf4\x8f\xbf\xbf", "a b" };

Test(engine_limits, names_are_utf8, .init = begin, .fini = end)
{
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ivm_table *table = NULL;
        ivm_column_definition column = { "a", IVM_INT64, false };
        ivm_table_options options = { .version = 1, .columns = &column, .columns_count = 1 };
        failed(ivm_table_create(engine, broken[i], &options, &table, &error), IVM_INVALID_ARGUMENT, "no UTF-8");
        column.name = broken[i];
        failed(ivm_table_create(engine, "t", &options, &table, &error), IVM_INVALID_ARGUMENT, "no UTF-8");
        cr_assert(ivm__utf8_is(error.message), "what is told is");
    }
    ivm_table *first = NULL;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        ivm_table *table = table_of(whole[i], NULL);
        first = first ? first : table;
        cr_assert_eq(ivm_table_column_rename(table, "a", whole[i], &error), IVM_OK, "%s", error.message);
    }
    failed(ivm_table_column_rename(first, "s", "\xff", &error), IVM_INVALID_ARGUMENT, "no UTF-8");
    failed(ivm_table_column_add(first, &(ivm_column_definition){ "b\x80", IVM_INT64, false }, &error), IVM_INVALID_ARGUMENT, "no UTF-8");
}

/* Strings are bytes: they come back as they were, and messages that tell of them are UTF-8. */
Test(engine_limits, strings_are_bytes, .init = begin, .fini = end)
{
    ivm_table *table = table_of("t", "a");
    ivm_snapshot *snapshot;
    ivm_rows rows;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        ivm_batch *batch = batch_of();
        ivm_batch_insert(batch, table, ivm_int64((int64_t)i), ivm_string(broken[i]));
        cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK);
        batch = batch_of();
        ivm_batch_delete(batch, table, ivm_int64((int64_t)i + 100), ivm_string(broken[i]));
        failed(ivm_push_batch(engine, batch, NULL, &error), IVM_ROW_NOT_FOUND, "table t");
        cr_assert(ivm__utf8_is(error.message), "%zu", i);
        ivm_value key = ivm_int64((int64_t)i);
        cr_assert_eq(ivm_read_table(table, &snapshot, &error), IVM_OK);
        cr_assert_eq(ivm_snapshot_find(snapshot, &key, 1, &rows, &error), IVM_OK);
        ivm_value value = ivm_rows_value(&rows, IVM_STRING, 0, 1);
        cr_assert_eq(value.as.string.size, strlen(broken[i]));
        cr_assert_eq(memcmp(value.as.string.bytes, broken[i], value.as.string.size), 0);
        ivm_snapshot_close(snapshot);
    }
}

Test(engine_limits, bytes_of_a_string, .init = begin, .fini = end)
{
    static const char text[64] = "no text is that long";
    ivm_table *table = table_of("t", "a");
    ivm_batch *batch = batch_of();
    ivm_batch_insert(batch, table, ivm_int64(1), ivm_string_sized(text, (size_t)IVM_STRING_SIZE_MAX + 1));
    failed(ivm_push_batch(engine, batch, NULL, &error), IVM_TYPE_MISMATCH, "column s");
}
