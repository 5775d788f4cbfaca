/* tests engine/read/snapshot_sort.c and chunks: rows come in the order of their values, whatever brought them there; chunk n is what the cursor gives there. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "snapshot_case.h"

TestSuite(engine_snapshot_sort, .init = snapshot_open, .fini = snapshot_close);

/* ---- A model of the order ----------------------------------------------------------------------------------------------------------------- */

static int value_compare(const ivm_value *a, const ivm_value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null - b->is_null;
    }
    if (IVM_TYPE_KIND(a->type) == IVM_STRING) {
        size_t size = a->as.string.size < b->as.string.size ? a->as.string.size : b->as.string.size;
        int order = memcmp(a->as.string.bytes, b->as.string.bytes, size);
        return order ? order : (a->as.string.size > b->as.string.size) - (a->as.string.size < b->as.string.size);
    }
    if (IVM_TYPE_KIND(a->type) == IVM_DECIMAL_KIND) {
        __int128 x = (__int128)a->as.decimal.high << 64 | a->as.decimal.low, y = (__int128)b->as.decimal.high << 64 | b->as.decimal.low;
        return (x > y) - (x < y);
    }
    if (a->type == (ivm_type)IVM_FLOAT64) {
        bool x = a->as.float64 != a->as.float64, y = b->as.float64 != b->as.float64;
        return x || y ? x - y : (a->as.float64 > b->as.float64) - (a->as.float64 < b->as.float64);
    }
    int64_t x = a->type == (ivm_type)IVM_BOOL ? a->as.boolean : a->type == (ivm_type)IVM_DATE ? a->as.date : a->as.int64;
    int64_t y = b->type == (ivm_type)IVM_BOOL ? b->as.boolean : b->type == (ivm_type)IVM_DATE ? b->as.date : b->as.int64;
    return (x > y) - (x < y);
}

static const uint32_t *model_columns; /* that rows ascend by */

static int number_compare(const void *a, const void *b)
{
    ivm_value left[SNAPSHOT_COLUMNS], right[SNAPSHOT_COLUMNS];
    char texts[2][32];
    int order = 0;
    snapshot_row_of(*(const uint64_t *)a, left, texts[0]);
    snapshot_row_of(*(const uint64_t *)b, right, texts[1]);
    for (uint32_t i = 0; !order && i < SNAPSHOT_COLUMNS; i++) {
        order = value_compare(&left[model_columns[i]], &right[model_columns[i]]);
    }
    return order;
}

/* The numbers first .. first + count, in order. */
static uint64_t *numbers_sorted(uint64_t first, uint64_t count, const uint32_t *columns)
{
    uint64_t *numbers = malloc(count * sizeof *numbers);
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = first + i;
    }
    model_columns = columns;
    qsort(numbers, count, sizeof *numbers, number_compare);
    return numbers;
}

static void sort(ivm_snapshot *snapshot)
{
    cr_assert_eq(ivm_snapshot_sort(snapshot, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
}

/* What cursor and chunks give are these rows with this weight, in this order; the cursor starts anew behind the end. */
static void assert_order(ivm_snapshot *snapshot, const uint64_t *numbers, uint64_t count, int64_t weight)
{
    uint64_t seen = 0;
    ivm_rows rows;
    for (; ivm_snapshot_next(snapshot, &rows); seen += rows.rows_count) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            cr_assert(seen + i < count && rows.weights[i] == weight && snapshot_is_row(&rows, i, numbers[seen + i]), "row %llu of %llu",
                      (unsigned long long)(seen + i), (unsigned long long)count);
        }
    }
    cr_assert_eq(seen, count);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), count);
    cr_assert_eq(ivm_snapshot_chunks_count(snapshot), (count + 1023) / 1024);
    for (size_t chunk = ivm_snapshot_chunks_count(snapshot); chunk-- > 0;) {
        cr_assert_eq(ivm_snapshot_chunk(snapshot, chunk, &rows, &snapshot_error), IVM_OK);
        cr_assert_eq(rows.rows_count, count - chunk * 1024 < 1024 ? count - chunk * 1024 : 1024);
        for (size_t i = 0; i < rows.rows_count; i++) {
            cr_assert(snapshot_is_row(&rows, i, numbers[chunk * 1024 + i]));
        }
    }
}

/* ---- Order --------------------------------------------------------------------------------------------------------------------------------- */

Test(engine_snapshot_sort, rows_ascend_by_the_key_then_by_the_others)
{
    static const struct {
        const char *key;
        uint32_t columns[SNAPSHOT_COLUMNS];
    } keys[] = { { NULL, { 0, 1, 2, 3, 4, 5, 6, 7 } }, { "id", { 0, 1, 2, 3, 4, 5, 6, 7 } } };
    static const uint64_t counts[] = { 0, 1, 1023, 1024, 1025, 4000 };
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            ivm_table *table = snapshot_table("t", keys[k].key);
            snapshot_push(table, IVM_INSERT, 0, counts[n] + 50);
            snapshot_push(table, IVM_DELETE, 0, 50);
            uint64_t *numbers = numbers_sorted(50, counts[n], keys[k].columns);
            ivm_snapshot *snapshot = snapshot_read(table);
            snapshot_push(table, IVM_INSERT, 90000, 20);
            ivm_rows rows;
            cr_assert_eq(ivm_snapshot_next(snapshot, &rows), counts[n] > 0);
            sort(snapshot);
            assert_order(snapshot, numbers, counts[n], 1);
            sort(snapshot);
            assert_order(snapshot, numbers, counts[n], 1);
            ivm_snapshot_close(snapshot);
            free(numbers);
            cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
        }
    }
}

Test(engine_snapshot_sort, a_key_of_its_own_order_comes_first)
{
    ivm_column_definition columns[] = { { "x", IVM_INT64, false }, { "y", IVM_INT64, true }, { "z", IVM_STRING, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "z, y" };
    ivm_table *table = NULL;
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (int64_t i = 0; i < 3000; i++) {
        char z[2] = { (char)('a' + i * 7 % 26), 0 };
        cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(-i), ivm_int64(i * 1237 % 3000), ivm_string(z)), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    ivm_snapshot *snapshot = snapshot_read(table);
    sort(snapshot);
    int64_t last = -1;
    char letter = 'a';
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t y = ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64;
            char z = ivm_rows_value(&rows, IVM_STRING, i, 2).as.string.bytes[0];
            cr_assert(z == letter ? y > last : z > letter);
            last = y;
            letter = z;
        }
    }
    ivm_rows rows;
    cr_assert_eq(ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_string("a"), ivm_int64(0) }, 2, &rows, &snapshot_error), IVM_OK);
    ivm_snapshot_close(snapshot);
}

/* ---- Equal rows ---------------------------------------------------------------------------------------------------------------------------- */

static void weighted_push(ivm_table *table, uint64_t count, int64_t weight)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (uint64_t i = 0; i < count; i++) {
        ivm_value values[SNAPSHOT_COLUMNS];
        char text[32];
        snapshot_row_of(i, values, text);
        cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, weight, values, SNAPSHOT_COLUMNS), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
}

Test(engine_snapshot_sort, equal_rows_of_a_bag_come_as_one)
{
    static const uint32_t columns[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    ivm_table *table = snapshot_table("t", NULL);
    uint64_t *numbers = numbers_sorted(0, 1500, columns);
    int64_t sum = 0;
    for (int64_t weight = 1; weight <= 3000000000; weight = weight * 1000 + 1) {
        weighted_push(table, 1500, weight);
        weighted_push(table, 1500, 1);
        sum += weight + 1;
        ivm_snapshot *snapshot = snapshot_read(table);
        cr_assert_gt(ivm_snapshot_rows_count(snapshot), 1500u);
        sort(snapshot);
        assert_order(snapshot, numbers, 1500, sum);
        ivm_snapshot_close(snapshot);
    }
    weighted_push(table, 1, INT64_MAX - sum);
    ivm_snapshot *snapshot = snapshot_read(table);
    sort(snapshot);
    ivm_snapshot_close(snapshot);
    free(numbers);
}

Test(engine_snapshot_sort, heavy_weights_come_along)
{
    static const uint32_t columns[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    ivm_table *table = snapshot_table("t", NULL);
    uint64_t *numbers = numbers_sorted(0, 1500, columns);
    weighted_push(table, 1500, 5000000000);
    ivm_snapshot *snapshot = snapshot_read(table);
    sort(snapshot);
    assert_order(snapshot, numbers, 1500, 5000000000);
    ivm_snapshot_close(snapshot);
    free(numbers);
}

/* ---- Chunks -------------------------------------------------------------------------------------------------------------------------------- */

Test(engine_snapshot_sort, chunks_are_all_rows_once_and_leave_the_cursor_alone)
{
    ivm_table *table = snapshot_table("t", "id");
    snapshot_push(table, IVM_INSERT, 0, 5000);
    snapshot_push(table, IVM_DELETE, 1024, 1500);
    ivm_snapshot *snapshot = snapshot_read(table);
    static bool given[5000];
    memset(given, 0, sizeof given);
    ivm_rows rows;
    uint64_t seen = 0, cursor = 0, empty = 0;
    cr_assert_eq(ivm_snapshot_chunks_count(snapshot), 5u);
    for (size_t n = 0; n < 5; n++) {
        cursor += ivm_snapshot_next(snapshot, &rows) ? rows.rows_count : 0;
        cr_assert_eq(ivm_snapshot_chunk(snapshot, n * 3 % 5, &rows, &snapshot_error), IVM_OK);
        empty += rows.rows_count == 0;
        cr_assert(rows.rows_count <= 1024 && rows.columns_count == SNAPSHOT_COLUMNS);
        for (size_t i = 0; i < rows.rows_count; i++, seen++) {
            uint64_t number = (uint64_t)ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64 * 0xF1DE83E19937733Du;
            cr_assert(number < 5000 && !given[number] && snapshot_is_row(&rows, i, number));
            given[number] = true;
        }
    }
    cr_assert_eq(seen, 3500u);
    cr_assert_eq(empty, 1u);
    cr_assert_eq(cursor, 3500u, "the cursor gave all meanwhile");
    cr_assert_eq(ivm_snapshot_chunk(snapshot, 5, &rows, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(snapshot_error.message, "ivm_snapshot_chunk: chunk 5 of 5");
    cr_assert_eq(ivm_snapshot_chunk(NULL, 0, &rows, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_chunk(snapshot, 0, NULL, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_sort(NULL, &snapshot_error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_chunks_count(NULL), 0u);
    ivm_snapshot_close(snapshot);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------------------- */

Test(engine_snapshot_sort, out_of_memory_leaves_the_order_as_it_was)
{
    static const uint32_t columns[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    ivm_table *table = snapshot_table("t", NULL);
    weighted_push(table, 1200, 1);
    weighted_push(table, 1200, 2);
    uint64_t *numbers = numbers_sorted(0, 1200, columns), n = 1;
    for (bool done = false; !done; n++) {
        ivm_snapshot *snapshot = snapshot_read(table);
        test_allocator_arm(&snapshot_allocator, n);
        ivm_status status = ivm_snapshot_sort(snapshot, &snapshot_error);
        done = !test_allocator_disarm(&snapshot_allocator);
        cr_assert(status == IVM_OK || (status == IVM_OUT_OF_MEMORY && !done));
        if (status == IVM_OK) {
            assert_order(snapshot, numbers, 1200, 3);
        } else {
            cr_assert_eq(ivm_snapshot_rows_count(snapshot), 2400u);
            cr_assert_eq(ivm_snapshot_chunks_count(snapshot), 3u);
        }
        ivm_snapshot_close(snapshot);
    }
    cr_assert_gt(n, 5u);
    free(numbers);
}

Test(engine_snapshot_sort, an_order_takes_four_bytes_a_row)
{
    ivm_table *table = snapshot_table("t", "id");
    snapshot_push(table, IVM_INSERT, 0, 5000);
    ivm_snapshot *snapshot = snapshot_read(table);
    int64_t before = snapshot_allocator.bytes;
    sort(snapshot);
    cr_assert_eq(snapshot_allocator.bytes - before, 20000);
    ivm_snapshot_close(snapshot);
}
