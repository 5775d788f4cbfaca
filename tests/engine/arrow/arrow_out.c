/* tests engine/arrow/arrow_stream.c, arrow_build.c and arrow_schema.c: what is given out, and that it comes back as it went. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arrow_case.h"
#include "batch.h"
#include "snapshot.h"

static test_allocator counted;
static ivm_engine *engine;
static ivm_table *table;
static ivm_error error;
static struct ArrowArrayStream stream;
static struct ArrowSchema schema;
static struct ArrowArray array;
static char text[ARROW_TEXT_SIZE], expected[ARROW_TEXT_SIZE];

#define KINDS 7u
static const ivm_type kinds[KINDS] = { IVM_INT64, IVM_STRING, IVM_FLOAT64, IVM_BOOL, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(20, 2) };
static const char *const names[KINDS] = { "i", "s", "f", "b", "d", "t", "n" };

static ivm_table *table_make(const char *name, uint32_t columns_count, bool allow_negative)
{
    ivm_column_definition columns[KINDS];
    ivm_table *made;
    for (uint32_t c = 0; c < columns_count; c++) {
        columns[c] = (ivm_column_definition){ names[c], kinds[c] };
    }
    const ivm_table_options options = { .columns = columns, .columns_count = columns_count, .allow_negative = allow_negative };
    cr_assert_eq(ivm_table_create(engine, name, &options, &made, &error), IVM_OK, "%s", error.message);
    return made;
}

/* An engine with a bag of the first columns. */
static void begin(uint32_t columns_count)
{
    test_allocator_init(&counted);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&counted);
    cr_assert_eq(ivm_engine_open(&options, &engine, NULL), IVM_OK);
    table = table_make("t", columns_count, false);
}

static void end(void)
{
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    cr_assert(test_allocator_is_clean(&counted));
}

static void put(ivm_table *into, ivm_value i, ivm_value s, int64_t weight)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    const ivm_value values[] = { i, s };
    ivm_batch_row(batch, into, IVM_WEIGHTED, weight, values, into->columns_count);
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
}

/* So many rows of all types, some of them with nulls, and equal ones. */
static void fill(uint32_t rows)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    for (uint32_t r = 0; r < rows; r++) {
        char word[32];
        (void)snprintf(word, sizeof word, "%.*s%u", (int)(r % 7), "aaaaaaa", r / 2);
        ivm_value values[KINDS] = { ivm_int64((int64_t)r - 5),
                                    ivm_string(word),
                                    ivm_float64(r * 0.25),
                                    ivm_bool(r % 3 == 0),
                                    ivm_date((int32_t)r * 9 - 20),
                                    ivm_timestamp(r * 1000003ll),
                                    ivm_decimal(kinds[6], (ivm_int128){ r, -1 }) };
        for (uint32_t c = 0; c < KINDS; c++) {
            if ((r + c) % 5 == 0) {
                values[c] = ivm_null();
            }
        }
        ivm_batch_row(batch, table, IVM_WEIGHTED, r % 4 ? 1 : 3, values, KINDS);
    }
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
}

static ivm_snapshot *read(ivm_table *from)
{
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(from, &snapshot, NULL), IVM_OK);
    return snapshot;
}

static void open_stream(ivm_table *from, ivm_arrow_options options)
{
    options.table = options.names ? NULL : from;
    cr_assert_eq(ivm_snapshot_arrow_stream(read(from), &options, &stream, &error), IVM_OK, "%s", error.message);
}

/* ---- Schemas ----------------------------------------------------------------------------------------------------------------------------- */

static void schema_is(const char *string, bool weighted)
{
    const char *const formats[KINDS + 1] = { "l", string, "g", "b", "tdD", "tsu:UTC", "d:20,2", "l" };
    cr_assert_str_eq(schema.format, "+s");
    cr_assert_eq(schema.n_children, KINDS + weighted);
    for (uint32_t c = 0; c < KINDS + weighted; c++) {
        cr_assert_str_eq(schema.children[c]->format, formats[c]);
        cr_assert_str_eq(schema.children[c]->name, c < KINDS ? names[c] : "weight");
        cr_assert_eq(schema.children[c]->flags, c < KINDS ? ARROW_FLAG_NULLABLE : 0);
        cr_assert_null(schema.children[c]->dictionary);
    }
}

Test(engine_arrow_out, schemas_outlive_the_engine)
{
    begin(KINDS);
    open_stream(table, (ivm_arrow_options){ .weight = "weight" });
    cr_assert_eq(stream.get_schema(&stream, &schema), 0);
    stream.release(&stream);
    cr_assert_null(stream.release);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    schema_is("u", true);
    struct ArrowSchema moved = *schema.children[1];
    schema.children[1]->release = NULL;
    schema.release(&schema);
    cr_assert_null(schema.release);
    cr_assert_str_eq(moved.name, "s");
    moved.release(&moved);
    cr_assert(test_allocator_is_clean(&counted));
}

Test(engine_arrow_out, schemas_as_asked_for)
{
    begin(KINDS);
    open_stream(table, (ivm_arrow_options){ .strings_binary = true });
    cr_assert_eq(stream.get_schema(&stream, &schema), 0);
    schema_is("z", false);
    schema.release(&schema);
    stream.release(&stream);
    const char *const others[KINDS] = { "A", "B", "C", "D", "E", "F", "" };
    open_stream(table, (ivm_arrow_options){ .names = others });
    cr_assert_eq(stream.get_schema(&stream, &schema), 0);
    cr_assert_str_eq(schema.children[1]->name, "B");
    cr_assert_str_eq(schema.children[6]->name, "");
    schema.release(&schema);
    stream.release(&stream);
    cr_assert_eq(ivm_snapshot_arrow_stream(read(table), NULL, &stream, NULL), IVM_OK);
    cr_assert_eq(stream.get_schema(&stream, &schema), 0);
    cr_assert_str_eq(schema.children[6]->name, "column_6");
    schema.release(&schema);
    stream.release(&stream);
    end();
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------------------------- */

/* Every type with nulls goes out and comes back, in arrays of whatever size; with weights, or each row as often as it is there. */
Test(engine_arrow_out, rows_come_back)
{
    static const uint32_t sizes[] = { 0, 1, 7, 1024, 1500 };
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        bool weighted = i % 2;
        begin(KINDS);
        fill(i < 4 ? 100 : 40);
        const ivm_arrow_options options = { .weight = weighted ? "w" : NULL, .chunk_rows = sizes[i / 2] };
        ivm_table *other = table_make("other", KINDS, false);
        ivm_batch *batch;
        cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
        open_stream(table, options);
        ivm_status status = ivm_batch_arrow_stream(batch, other, weighted ? IVM_WEIGHTED : IVM_INSERT, &stream, &options);
        cr_assert_eq(status, IVM_OK, "%s", batch->mistake.message);
        cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
        arrow_table_text(table, expected);
        arrow_table_text(other, text);
        cr_assert_str_eq(text, expected);
        cr_assert_gt(strlen(text), 1000);
        end();
    }
}

Test(engine_arrow_out, arrays_of_so_many_rows)
{
    begin(2);
    for (int i = 0; i < 5; i++) {
        put(table, ivm_int64(i), i == 3 ? ivm_null() : ivm_string("xy"), i == 1 ? 6 : 1);
    }
    const int64_t lengths[] = { 4, 4, 2, 0 };
    open_stream(table, (ivm_arrow_options){ .chunk_rows = 4 });
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(stream.get_next(&stream, &array), 0);
        cr_assert_eq(array.release != NULL, lengths[i] > 0);
        if (array.release) {
            cr_assert_eq(array.length, lengths[i]);
            cr_assert_eq(array.n_buffers, 1);
            cr_assert_null(array.buffers[0]);
            cr_assert_eq(array.n_children, 2);
            cr_assert_eq(array.children[0]->n_buffers, 2);
            cr_assert_eq(array.children[1]->n_buffers, 3);
            cr_assert_eq(array.children[1]->null_count, i == 2, "row 3 is in the last");
            cr_assert_eq(array.children[1]->buffers[0] != NULL, i == 2);
            cr_assert_eq(((const int32_t *)array.children[1]->buffers[1])[0], 0);
            array.release(&array);
        }
    }
    cr_assert_eq(stream.get_next(&stream, &array), 0, "the end stays");
    cr_assert_null(array.release);
    cr_assert_null(stream.get_last_error(&stream));
    stream.release(&stream);
    end();
}

/* An array outlives stream, snapshot and engine; so does a child that was moved out of it, its parent. */
Test(engine_arrow_out, arrays_outlive_the_engine)
{
    begin(2);
    put(table, ivm_int64(7), ivm_string("seven"), 1);
    open_stream(table, (ivm_arrow_options){ .weight = "w" });
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_IN_USE, "the stream has a snapshot");
    cr_assert_eq(stream.get_next(&stream, &array), 0);
    stream.release(&stream);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    cr_assert_eq(*(const int64_t *)array.children[0]->buffers[1], 7);
    cr_assert_eq(*(const int64_t *)array.children[2]->buffers[1], 1);
    struct ArrowArray moved = *array.children[1];
    array.children[1]->release = NULL;
    array.release(&array);
    cr_assert_null(array.release);
    cr_assert_arr_eq(moved.buffers[2], "seven", 5);
    moved.release(&moved);
    cr_assert_null(moved.release);
    cr_assert(test_allocator_is_clean(&counted));
}

/* A struct is moved by copying it: nothing of it may be known by its address. */
Test(engine_arrow_out, bases_that_are_moved)
{
    begin(2);
    put(table, ivm_int64(7), ivm_string("seven"), 1);
    open_stream(table, (ivm_arrow_options){ .weight = NULL });
    struct ArrowArrayStream moved = stream;
    memset(&stream, 0xa5, sizeof stream);
    cr_assert_eq(moved.get_schema(&moved, &schema), 0);
    cr_assert_eq(moved.get_next(&moved, &array), 0);
    struct ArrowSchema moved_schema = schema;
    struct ArrowArray moved_array = array, child = *array.children[1];
    array.children[1]->release = NULL; /* moved out of the array that is moved */
    memset(&schema, 0xa5, sizeof schema);
    memset(&array, 0xa5, sizeof array);
    cr_assert_eq(moved.get_next(&moved, &array), 0);
    cr_assert_null(array.release, "the end");
    moved.release(&moved);
    cr_assert_str_eq(moved_schema.children[1]->name, "s");
    cr_assert_eq(*(const int64_t *)moved_array.children[0]->buffers[1], 7);
    moved_schema.release(&moved_schema);
    moved_array.release(&moved_array);
    cr_assert_arr_eq(child.buffers[2], "seven", 5);
    child.release(&child);
    cr_assert(!moved.release && !moved_schema.release && !moved_array.release && !child.release);
    end();
}

Test(engine_arrow_out, weights_below_zero)
{
    begin(1);
    ivm_table *signed_rows = table_make("signed", 1, true);
    put(signed_rows, ivm_int64(1), ivm_null(), 2);
    put(signed_rows, ivm_int64(2), ivm_null(), -3);
    open_stream(signed_rows, (ivm_arrow_options){ .weight = "w" });
    cr_assert_eq(stream.get_next(&stream, &array), 0);
    cr_assert_eq(array.length, 2);
    int64_t sum = 0;
    for (int r = 0; r < 2; r++) {
        sum += ((const int64_t *)array.children[0]->buffers[1])[r] * ((const int64_t *)array.children[1]->buffers[1])[r];
    }
    cr_assert_eq(sum, 2 - 6);
    array.release(&array);
    stream.release(&stream);
    open_stream(signed_rows, (ivm_arrow_options){ .chunk_rows = 2 });
    for (int i = 0; i < 2; i++) {
        int code = stream.get_next(&stream, &array);
        if (code == 0) {
            array.release(&array);
            code = stream.get_next(&stream, &array);
        }
        cr_assert_eq(code, EINVAL, "and again");
        cr_assert_str_eq(stream.get_last_error(&stream), "a row of weight -3, and no field for weights is asked for");
    }
    stream.release(&stream);
    end();
}

/* The caller's snapshot stays open, and is read from its first row on. */
Test(engine_arrow_out, borrowed)
{
    begin(1);
    put(table, ivm_int64(1), ivm_null(), 1);
    ivm_snapshot *snapshot = read(table);
    ivm_rows rows;
    cr_assert(ivm_snapshot_next(snapshot, &rows));
    const ivm_arrow_options options = { .borrowed = true };
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ivm_snapshot_arrow_stream(snapshot, &options, &stream, NULL), IVM_OK);
        cr_assert_eq(stream.get_next(&stream, &array), 0);
        cr_assert_eq(array.length, 1);
        array.release(&array);
        stream.release(&stream);
    }
    cr_assert_eq(ivm_snapshot_arrow_stream(snapshot, &options, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), 1, "still open");
    ivm_snapshot_close(snapshot);
    end();
}

/* ---- Mistakes and memory ----------------------------------------------------------------------------------------------------------------- */

static void refused(const ivm_arrow_options *options, ivm_status status, const char *message)
{
    cr_assert_eq(ivm_snapshot_arrow_stream(read(table), options, &stream, &error), status);
    cr_assert_str_eq(error.message, message);
}

Test(engine_arrow_out, mistakes)
{
    begin(2);
    ivm_table *other = table_make("other", 3, false);
    const ivm_column_definition columns[] = { { "i", IVM_INT64 }, { "s", IVM_INT64 } };
    ivm_table *third;
    cr_assert_eq(ivm_table_create(engine, "third", &(ivm_table_options){ .columns = columns, .columns_count = 2 }, &third, NULL), IVM_OK);
    refused(&(ivm_arrow_options){ .table = other }, IVM_INVALID_ARGUMENT, "other has 3 columns, the snapshot 2");
    refused(&(ivm_arrow_options){ .table = third }, IVM_INVALID_ARGUMENT, "third has another type in column s than the snapshot");
    refused(&(ivm_arrow_options){ .table = table, .weight = "s" }, IVM_INVALID_ARGUMENT, "weight s: a column has this name");
    refused(&(ivm_arrow_options){ .names = (const char *const[]){ "a", NULL } }, IVM_INVALID_ARGUMENT, "the name of column 1 is NULL");
    refused(&(ivm_arrow_options){ .version = 2 }, IVM_UNSUPPORTED, "Arrow options of version 2, at most 1 is known");
    cr_assert_eq(ivm_snapshot_arrow_stream(NULL, NULL, &stream, &error), IVM_INVALID_ARGUMENT);
    end(); /* what was refused was closed */
}

/* One reading of the stream; what ran out. */
static int drain(const ivm_arrow_options *options, int64_t *rows)
{
    ivm_snapshot *snapshot;
    *rows = 0;
    if (ivm_read_table(table, &snapshot, NULL) != IVM_OK || ivm_snapshot_arrow_stream(snapshot, options, &stream, NULL) != IVM_OK) {
        return ENOMEM;
    }
    int code = stream.get_schema(&stream, &schema);
    if (code == 0) {
        schema.release(&schema);
    }
    for (bool more = true; code == 0 && more;) {
        code = stream.get_next(&stream, &array);
        more = code == 0 && array.release;
        if (more) {
            *rows += array.length;
            array.release(&array);
        }
    }
    if (code) {
        cr_assert_str_eq(stream.get_last_error(&stream), "out of memory");
    }
    stream.release(&stream);
    return code;
}

Test(engine_arrow_out, memory_that_runs_out)
{
    const ivm_arrow_options options = { .weight = "w", .chunk_rows = 100 };
    begin(KINDS);
    fill(150);
    int64_t rows;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        test_allocator_arm(&counted, n);
        int code = drain(&options, &rows);
        done = !test_allocator_disarm(&counted);
        cr_assert_eq(code, done ? 0 : ENOMEM);
        cr_assert_lt(n, 1000);
    }
    cr_assert_eq(rows, 150);
    end();
}
