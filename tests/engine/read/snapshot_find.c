/* Lookup in snapshots: by keys of every type, by leading columns of a key, of values as they are stored. */
#include "snapshot_case.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(engine_snapshot_find, .init = snapshot_open, .fini = snapshot_close);

Test(engine_snapshot_find, a_key_of_any_type_finds_its_row)
{
    for (uint32_t c = 0; c < SNAPSHOT_COLUMNS; c++) {
        ivm_column_definition columns[] = { { "x", IVM_INT64, false }, { "k", snapshot_every[c].type, true } };
        ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "k" };
        ivm_table *table = NULL;
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
        cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
        uint64_t count = snapshot_every[c].type == (ivm_type)IVM_BOOL ? 2 : 1500;
        for (uint64_t i = 0; i < count; i++) {
            ivm_value values[SNAPSHOT_COLUMNS];
            char text[32];
            snapshot_row_of(i, values, text);
            if (!values[c].is_null) {
                cr_assert_eq(ivm_batch_row(batch, table, IVM_UPSERT, 1, (ivm_value[]){ ivm_int64((int64_t)i), values[c] }, 2), IVM_OK);
            }
        }
        cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
        ivm_snapshot *snapshot = snapshot_read(table);
        for (uint64_t i = 0; i < count; i++) {
            ivm_value values[SNAPSHOT_COLUMNS];
            char text[32];
            ivm_rows rows;
            snapshot_row_of(i, values, text);
            ivm_status status = ivm_snapshot_find(snapshot, &values[c], 1, &rows, &snapshot_error);
            if (values[c].is_null) {
                cr_assert_eq(status, IVM_ROW_NOT_FOUND);
                continue;
            }
            cr_assert_eq(status, IVM_OK, "type %u, row %llu: %s", c, (unsigned long long)i, snapshot_error.message);
            ivm_value key = ivm_rows_value(&rows, snapshot_every[c].type, 0, 1);
            cr_assert(rows.rows_count == 1 && rows.weights[0] == 1 && snapshot_same_value(&key, &values[c]));
        }
        ivm_snapshot_close(snapshot);
        cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
    }
}

static ivm_status find(ivm_snapshot *snapshot, size_t *count, const ivm_value *values, size_t values_count)
{
    ivm_rows rows = { 0 };
    ivm_status status = ivm_snapshot_find(snapshot, values, values_count, &rows, &snapshot_error);
    cr_assert(status == IVM_OK || snapshot_error.status == status);
    *count = rows.rows_count;
    return status;
}

Test(engine_snapshot_find, values_are_found_as_they_are_stored)
{
    ivm_column_definition columns[] = { { "f", IVM_FLOAT64, false }, { "m", IVM_DECIMAL(10, 2), false }, { "s", IVM_STRING, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 3 };
    ivm_table *table = NULL;
    ivm_batch *batch = NULL;
    size_t count;
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    const ivm_value five = ivm_decimal(IVM_DECIMAL(10, 2), (ivm_int128){ 500, 0 });
    cr_assert_eq(ivm_batch_insert(batch, table, ivm_float64(0.0), five, ivm_string("a")), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, table, ivm_float64(NAN), ivm_null(), ivm_null()), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, table, ivm_null(), five, ivm_string("a")), IVM_OK);
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    ivm_snapshot *snapshot = snapshot_read(table);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_float64(-0.0) }, 1), IVM_OK);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_int64(0), ivm_int64(5) }, 2), IVM_OK, "an int64 that is exact");
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_float64(-NAN) }, 1), IVM_OK);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_float64(NAN), ivm_null(), ivm_null() }, 3), IVM_OK);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_null(), five, ivm_string("a") }, 3), IVM_OK);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_null(), ivm_null() }, 2), IVM_ROW_NOT_FOUND);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_null(), five, ivm_string("A") }, 3), IVM_ROW_NOT_FOUND);
    ivm_value typed_null = ivm_string("x");
    typed_null.is_null = true;
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_float64(NAN), ivm_null(), typed_null }, 3), IVM_OK);
    ivm_value wrong_null = ivm_int64(0);
    wrong_null.is_null = true;
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_float64(NAN), ivm_null(), wrong_null }, 3), IVM_TYPE_MISMATCH);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_string("0") }, 1), IVM_TYPE_MISMATCH);
    cr_expect_str_eq(snapshot_error.message, "ivm_snapshot_find: value 1 of the key: string \"0\" is no float64");
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_null(), ivm_int64(INT64_MAX) }, 2), IVM_TYPE_MISMATCH);
    cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_null(), ivm_null(), ivm_int64(1) }, 3), IVM_TYPE_MISMATCH);
    cr_expect_str_eq(snapshot_error.message, "ivm_snapshot_find: value 3 of the key: int64 1 is no string");
    ivm_value four[4] = { ivm_null(), ivm_null(), ivm_null(), ivm_null() };
    cr_assert_eq(find(snapshot, &count, four, 4), IVM_INVALID_ARGUMENT);
    cr_assert_eq(find(snapshot, &count, four, 0), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_find(NULL, four, 1, NULL, &snapshot_error), IVM_INVALID_ARGUMENT);
    ivm_snapshot_close(snapshot);
}

/* A key of three columns in an order of its own: any number of leading ones finds all that have them. */
Test(engine_snapshot_find, leading_columns_of_a_key_find_all_their_rows)
{
    ivm_column_definition columns[] = { { "x", IVM_INT64, false }, { "y", IVM_INT64, false }, { "z", IVM_STRING, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "y, z, x" };
    ivm_table *table = NULL;
    ivm_batch *batch = NULL;
    size_t count;
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (int64_t i = 0; i < 10000; i++) {
        cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(i), ivm_int64(i % 2), ivm_string(i % 4 < 2 ? "a" : "b")), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    ivm_snapshot *snapshot = snapshot_read(table);
    ivm_rows rows;
    cr_assert(ivm_snapshot_next(snapshot, &rows));
    for (uint32_t round = 0; round < 2; round++) { /* the hash is made anew where the number of columns changes */
        cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_int64(1), ivm_string("a"), ivm_int64(5) }, 3), IVM_OK);
        cr_assert_eq(count, 1u);
        cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_int64(1), ivm_string("a") }, 2), IVM_OK);
        cr_assert_eq(count, 2500u, "all of them, not a thousand: %zu", count);
        cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_int64(1) }, 1), IVM_OK);
        cr_assert_eq(count, 5000u);
        cr_assert_eq(find(snapshot, &count, (ivm_value[]){ ivm_int64(1), ivm_string("a"), ivm_int64(6) }, 3), IVM_ROW_NOT_FOUND);
    }
    bool given[10000] = { false };
    cr_assert_eq(ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_int64(0) }, 1, &rows, &snapshot_error), IVM_OK);
    for (size_t at = 0; at < rows.rows_count; at++) {
        int64_t x = ivm_rows_value(&rows, IVM_INT64, at, 0).as.int64;
        ivm_value z = ivm_rows_value(&rows, IVM_STRING, at, 2);
        cr_assert(x >= 0 && x < 10000 && x % 2 == 0 && !given[x]);
        cr_assert(z.as.string.size == 1 && z.as.string.bytes[0] == (x % 4 < 2 ? 'a' : 'b'));
        given[x] = true;
    }
    uint64_t rest = 0;
    while (ivm_snapshot_next(snapshot, &rows)) {
        rest += rows.rows_count;
    }
    cr_assert_eq(rest + IVM__CHUNK_ROWS, 10000u, "the cursor goes on where it was");
    ivm_snapshot_close(snapshot);
}

Test(engine_snapshot_find, out_of_memory_finding_is_told_and_goes_by)
{
    ivm_table *table = snapshot_table("t", NULL);
    snapshot_push(table, IVM_INSERT, 0, 100);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm_snapshot *snapshot = snapshot_read(table);
        ivm_value values[SNAPSHOT_COLUMNS];
        char text[32];
        ivm_rows rows = { 0 };
        snapshot_row_of(50, values, text);
        test_allocator_arm(&snapshot_allocator, n);
        ivm_status status = ivm_snapshot_find(snapshot, values, 3, &rows, &snapshot_error);
        done = !test_allocator_disarm(&snapshot_allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(ivm_snapshot_find(snapshot, values, 3, &rows, &snapshot_error), IVM_OK);
        cr_assert(rows.rows_count == 1 && snapshot_is_row(&rows, 0, 50));
        ivm_snapshot_close(snapshot);
    }
    cr_assert_gt(n, 20u);
}
