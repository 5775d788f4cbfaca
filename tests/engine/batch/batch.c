/* tests engine/batch/batch.c and engine/batch/batch_rows.c */
#include "batch.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "allocator.h"

static test_allocator counted;
static ivm_engine *engine;
static ivm_table *bag, *keyed;
static ivm_batch *batch;
static ivm_error error;

#define KINDS 7u
static const ivm_type kinds[KINDS] = { IVM_INT64, IVM_STRING, IVM_FLOAT64, IVM_BOOL, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(10, 2) };

static void begin(void)
{
    static const char *const names[KINDS] = { "i", "s", "f", "b", "d", "t", "n" };
    ivm_column_definition columns[KINDS];
    for (uint32_t c = 0; c < KINDS; c++) {
        columns[c] = (ivm_column_definition){ names[c], kinds[c], c == 0 };
    }
    test_allocator_init(&counted);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&counted);
    cr_assert_eq(ivm_engine_open(&options, &engine, NULL), IVM_OK);
    ivm_table_options bag_options = { .columns = columns, .columns_count = KINDS };
    cr_assert_eq(ivm_table_create(engine, "bag", &bag_options, &bag, NULL), IVM_OK);
    ivm_table_options keyed_options = { .columns = columns, .columns_count = 3, .key = "s, i" };
    cr_assert_eq(ivm_table_create(engine, "keyed", &keyed_options, &keyed, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
}

/* The push must fail, and with the remembered mistake; another batch takes its place. */
static void refused(ivm_status status, const char *message)
{
    cr_assert_eq(batch->mistake.status, status, "%s: %s", ivm_status_name(batch->mistake.status), batch->mistake.message);
    cr_assert_eq(ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("x"), ivm_null()), status, "later calls do nothing");
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), status);
    cr_assert_eq(error.status, status);
    cr_assert_str_eq(error.message, message);
    cr_assert_eq(bag->store.rows_live + keyed->store.rows_live, 0);
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
}

static void end(void)
{
    ivm_batch_free(batch);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    cr_assert(test_allocator_is_clean(&counted));
}

static void push(void)
{
    ivm_status status = ivm_push_batch(engine, batch, NULL, &error);
    cr_assert_eq(status, IVM_OK, "%s", error.message);
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
}

/* ---- Mistakes -------------------------------------------------------------------------------------------------------------------- */

Test(engine_batch, mistakes_in_rows_are_remembered)
{
    begin();
    cr_assert_eq(ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("a")), IVM_TYPE_MISMATCH);
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0: 3 values are wanted, not 2");
    ivm_batch_insert(batch, keyed, ivm_string("5"), ivm_string("a"), ivm_float64(1));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column i: string \"5\" is no int64");
    ivm_batch_insert(batch, keyed, ivm_float64(1.5), ivm_string("a"), ivm_float64(1));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column i: float64 1.5 is no int64");
    ivm_batch_insert(batch, keyed, ivm_float64(1), ivm_string("a"), ivm_float64(1));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column i: float64 1 is no int64");
    ivm_batch_upsert(batch, keyed, ivm_int64(1), ivm_int64(2), ivm_null());
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column s: int64 2 is no string");
    ivm_batch_delete(batch, keyed, ivm_null(), ivm_string("a"), ivm_null());
    refused(IVM_NULL_VIOLATION, "table keyed, row 0, column i: null where none may be");
    ivm_batch_delete(batch, keyed, ivm_null(), ivm_string("a"), ivm_bool(true));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column f: bool true is no float64");
    ivm_batch_delete_key(batch, keyed, ivm_int64(1), ivm_string("a"));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0, column s: int64 1 is no string");
    ivm_batch_delete_key(batch, keyed, ivm_string("a"));
    refused(IVM_TYPE_MISMATCH, "table keyed, row 0: 2 values are wanted, not 1");
    ivm_batch_upsert(batch, bag, ivm_int64(1));
    refused(IVM_INVALID_ARGUMENT, "table bag has no key to upsert by");
    ivm_batch_delete_key(batch, bag, ivm_int64(1));
    refused(IVM_INVALID_ARGUMENT, "table bag has no key to delete by");
    ivm_batch_row(batch, bag, (ivm_change)9, 1, NULL, 0);
    refused(IVM_INVALID_ARGUMENT, "table bag: 9 is no change");
    ivm_batch_row(batch, NULL, IVM_INSERT, 1, NULL, 0);
    refused(IVM_INVALID_ARGUMENT, "a change without a table");
    ivm_batch_row(batch, bag, IVM_INSERT, 1, NULL, KINDS);
    refused(IVM_INVALID_ARGUMENT, "table bag, row 0: 7 values are wanted, not NULL");
    ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("a"), ivm_null());
    char bytes[80] = "only the first bytes of it are read, for the message";
    ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string_sized(bytes, (size_t)1 << 31), ivm_null());
    cr_assert_eq(batch->mistake.status, IVM_TYPE_MISMATCH, "a string past the limit");
    cr_assert_str_eq(batch->mistake.message, "table keyed, row 1, column s: a string of 2147483648 bytes, at most 2147483647");
    end();
}

/* Rows are counted of each table, however they came. */
Test(engine_batch, a_batch_says_what_is_wrong_with_it_and_in_which_row)
{
    begin();
    int64_t cells[3] = { 1, 2, 3 };
    int32_t offsets[4] = { 0, 1, 2, 3 };
    double floats[3] = { 1, 2, 3 };
    ivm_column_data columns[3] = { { .values = cells }, { .values = "abc", .offsets = offsets }, { .values = floats } };
    ivm_rows rows = { 3, 3, columns, NULL };
    cr_assert_eq(ivm_batch_status(batch, &error), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, keyed, ivm_int64(0), ivm_string("x"), ivm_null()), IVM_OK);
    cr_assert_eq(ivm_batch_columns(batch, keyed, IVM_INSERT, &rows), IVM_OK);
    cr_assert_eq(ivm_batch_delete_key(batch, keyed, ivm_string("c"), ivm_int64(3)), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, bag, ivm_int64(0)), IVM_TYPE_MISMATCH);
    error = (ivm_error)IVM_ERROR_INIT;
    cr_assert_eq(ivm_batch_status(batch, &error), IVM_TYPE_MISMATCH);
    cr_assert_eq(error.status, IVM_TYPE_MISMATCH);
    cr_assert_str_eq(error.message, "table bag, row 0: 7 values are wanted, not 1");
    cr_assert_eq(ivm_batch_status(batch, NULL), IVM_TYPE_MISMATCH);
    refused(IVM_TYPE_MISMATCH, "table bag, row 0: 7 values are wanted, not 1");
    ivm_batch_insert(batch, keyed, ivm_int64(0), ivm_string("x"), ivm_null());
    ivm_batch_columns(batch, keyed, IVM_INSERT, &rows);
    ivm_batch_upsert(batch, keyed, ivm_int64(0), ivm_string("y"), ivm_null());
    cr_assert_eq(ivm_batch_insert(batch, keyed, ivm_int64(0), ivm_null(), ivm_null()), IVM_NULL_VIOLATION);
    cr_assert_eq(ivm_batch_insert(batch, keyed, ivm_int64(0), ivm_int64(0), ivm_null()), IVM_NULL_VIOLATION, "the first mistake stays");
    cr_assert_eq(ivm_batch_status(batch, &error), IVM_NULL_VIOLATION);
    cr_assert_str_eq(error.message, "table keyed, row 5, column s: null where none may be");
    refused(IVM_NULL_VIOLATION, "table keyed, row 5, column s: null where none may be");
    cr_assert_eq(ivm_batch_status(NULL, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "ivm_batch_status: batch is NULL");
    end();
}

/* The n-th mistake that only a push finds. */
static void mistake_fill(size_t n, const ivm_value whole[KINDS], const ivm_rows *rows)
{
    switch (n) {
    case 0:
        ivm_batch_delete_key(batch, keyed, ivm_string("a"), ivm_int64(1));
        ivm_batch_row(batch, bag, IVM_INSERT, 1, whole, KINDS);
        ivm_batch_delete_key(batch, keyed, ivm_string("b"), ivm_int64(2));
        ivm_batch_delete_key(batch, keyed, ivm_string("z"), ivm_int64(9));
        break;
    case 1:
        ivm_batch_insert(batch, keyed, ivm_int64(7), ivm_string("n"), ivm_float64(1));
        ivm_batch_row(batch, bag, IVM_DELETE, 1, whole, KINDS);
        ivm_batch_columns(batch, keyed, IVM_DELETE, rows);
        ivm_batch_columns(batch, keyed, IVM_INSERT, rows);
        ivm_batch_insert(batch, keyed, ivm_int64(7), ivm_string("n"), ivm_float64(2));
        break;
    case 2:
        ivm_batch_insert(batch, keyed, ivm_int64(2), ivm_string("b"), ivm_null());
        break;
    case 3:
        ivm_batch_delete(batch, keyed, ivm_int64(2), ivm_string("b"), ivm_float64(0));
        ivm_batch_delete(batch, keyed, ivm_int64(2), ivm_string("b"), ivm_float64(4));
        break;
    case 4:
        ivm_batch_delete(batch, keyed, ivm_int64(2), ivm_string("q"), ivm_null());
        break;
    default:
        ivm_batch_row(batch, bag, IVM_INSERT, 1, whole, KINDS);
        ivm_batch_row(batch, bag, IVM_WEIGHTED, -3, whole, KINDS);
        ivm_batch_row(batch, bag, IVM_WEIGHTED, -2, whole, KINDS);
        break;
    }
}

/* What the push finds wrong. Three rows are in each table, keyed 1 to 3. */
Test(engine_batch, a_push_says_which_row_is_at_fault)
{
    begin();
    int64_t cells[4] = { 1, 2, 3, 2 };
    int32_t offsets[5] = { 0, 1, 2, 3, 4 };
    double floats[4] = { 1, -0.0, 3, 2.5 };
    ivm_column_data columns[3] = { { .values = cells }, { .values = "abcb", .offsets = offsets }, { .values = floats } };
    ivm_rows rows = { 3, 3, columns, NULL };
    ivm_value whole[KINDS] = { ivm_int64(1), ivm_string("a"), ivm_float64(2), ivm_bool(true), ivm_date(4), ivm_timestamp(5), ivm_int64(6) };
    ivm_batch_columns(batch, keyed, IVM_INSERT, &rows);
    ivm_batch_row(batch, bag, IVM_WEIGHTED, 3, whole, KINDS);
    push();
    struct {
        ivm_status status;
        const char *message;
    } wanted[] = {
        { IVM_ROW_NOT_FOUND, "table keyed, row 3: no row with key (\"z\", 9)" },
        { IVM_DUPLICATE_KEY, "table keyed, row 4: a second row with key (\"n\", 7)" },
        { IVM_DUPLICATE_KEY, "table keyed, row 1: a second row with key (\"b\", 2)" },
        { IVM_ROW_NOT_FOUND, "table keyed, row 2: no row (2, \"b\", 4) is left to delete" },
        { IVM_ROW_NOT_FOUND, "table keyed, row 1: no row with key (\"q\", 2)" },
        { IVM_ROW_NOT_FOUND,
          "table bag, row 2: no row (1, \"a\", 2, true, 1970-01-05, 1970-01-01T00:00:00.000005Z, 6.00) is left to delete" },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        rows.rows_count = 1;
        ivm_batch_upsert(batch, keyed, ivm_int64(8), ivm_string("m"), ivm_null());
        mistake_fill(i, whole, &rows);
        cr_assert_eq(ivm_batch_status(batch, NULL), IVM_OK);
        cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), wanted[i].status, "%zu: %s", i, error.message);
        cr_assert_str_eq(error.message, wanted[i].message);
        cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    }
    rows.rows_count = 4;
    ivm_batch_upsert(batch, keyed, ivm_int64(8), ivm_string("m"), ivm_null());
    offsets[3] = 1;
    ivm_batch_columns(batch, keyed, IVM_UPSERT, &rows);
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "table keyed, row 3, column s: its offsets are wrong");
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    end();
}

Test(engine_batch, mistakes_in_columns_are_remembered)
{
    begin();
    int64_t cells[2] = { 1, 2 };
    double floats[2] = { 1, 2 };
    int32_t offsets[3] = { 0, 1, 2 };
    ivm_column_data columns[3] = { { .values = cells }, { .values = "ab", .offsets = offsets }, { .values = floats } };
    ivm_rows rows = { 2, 3, columns, NULL };
    ivm_batch_columns(batch, keyed, IVM_INSERT, NULL);
    refused(IVM_INVALID_ARGUMENT, "table keyed: no rows are given");
    ivm_batch_columns(batch, keyed, IVM_DELETE_KEY, &rows);
    refused(IVM_TYPE_MISMATCH, "table keyed: 2 columns are wanted, not 3");
    ivm_batch_columns(batch, bag, IVM_UPSERT, &rows);
    refused(IVM_INVALID_ARGUMENT, "table bag has no key to upsert by");
    columns[0].values = NULL;
    ivm_batch_columns(batch, keyed, IVM_INSERT, &rows);
    refused(IVM_INVALID_ARGUMENT, "table keyed, column i: no array of values");
    columns[0].values = cells;
    columns[1].offsets = NULL;
    ivm_batch_columns(batch, keyed, IVM_INSERT, &rows);
    refused(IVM_INVALID_ARGUMENT, "table keyed, column s: no array of offsets");
    columns[1].offsets = offsets;
    rows.columns = NULL;
    ivm_batch_columns(batch, keyed, IVM_INSERT, &rows);
    refused(IVM_INVALID_ARGUMENT, "table keyed: rows without columns");
    rows.rows_count = 0;
    cr_assert_eq(ivm_batch_columns(batch, keyed, IVM_INSERT, &rows), IVM_OK, "no rows, nothing to look at");
    rows = (ivm_rows){ 2, 3, columns, NULL };
    cr_assert_eq(ivm_batch_columns(batch, keyed, IVM_WEIGHTED, &rows), IVM_OK, "without weights each row counts once");
    push();
    cr_assert_eq(keyed->store.rows_live, 2);
    end();
}

Test(engine_batch, null_arguments_are_refused)
{
    begin();
    ivm_rows rows = { 0 };
    ivm_shape shape;
    cr_assert_eq(ivm_batch_create(NULL, &batch, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_create(engine, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_row(NULL, bag, IVM_INSERT, 1, NULL, 0), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_columns(NULL, bag, IVM_INSERT, &rows), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_state_shape(NULL, bag, IVM_MIXED), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_shape(batch, NULL, &shape, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_state_shape(batch, bag, (ivm_shape)3), IVM_INVALID_ARGUMENT);
    refused(IVM_INVALID_ARGUMENT, "table bag: 3 is no shape");
    ivm_batch_free(NULL);
    end();
}

Test(engine_batch, belongs_to_one_engine)
{
    begin();
    ivm_engine *other;
    ivm_table *table;
    ivm_column_definition column = { "i", IVM_INT64, false };
    ivm_table_options options = { .columns = &column, .columns_count = 1 };
    cr_assert_eq(ivm_engine_open(NULL, &other, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(other, "elsewhere", &options, &table, NULL), IVM_OK);
    ivm_batch_insert(batch, table, ivm_int64(1));
    refused(IVM_INVALID_ARGUMENT, "table elsewhere is of another engine");
    ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("a"), ivm_null());
    cr_assert_eq(ivm_push_batch(other, batch, NULL, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_engine_close(other, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    end();
}

Test(engine_batch, outlives_its_engine)
{
    begin();
    ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("a"), ivm_null());
    ivm_batch_state_shape(batch, keyed, IVM_INSERT_ONLY);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    ivm_batch_free(batch);
    cr_assert(test_allocator_is_clean(&counted));
}

/* ---- Values ---------------------------------------------------------------------------------------------------------------------- */

static ivm_value cell(const ivm__part *part, ivm_type type, size_t row, size_t column)
{
    ivm_rows rows = { part->rows_count, part->columns_count, part->columns, NULL };
    return ivm_rows_value(&rows, type, row, column);
}

/* Row i of the test below: every kind, with nulls here and there. */
static void values_of(uint32_t i, ivm_value values[KINDS], char text[32])
{
    snprintf(text, 32, "%.*s%u", (int)(i % 20), "abcdefghijklmnopqrst", i);
    values[0] = ivm_int64((int64_t)i * -7);
    values[1] = ivm_string(text);
    values[2] = ivm_float64(i * 0.25);
    values[3] = ivm_bool(i % 3 == 0);
    values[4] = ivm_date((int32_t)i - 500);
    values[5] = ivm_timestamp((int64_t)i << 40);
    values[6] = ivm_decimal(IVM_DECIMAL(10, 2), (ivm_int128){ i, 0 });
    for (uint32_t c = 1; c < KINDS; c++) {
        if (i > 40 && i % (c + 5) == 0) {
            values[c] = ivm_null();
        }
    }
}

Test(engine_batch, owned_rows_keep_every_value_while_they_grow)
{
    begin();
    char text[32];
    ivm_value values[KINDS];
    for (uint32_t i = 0; i < 3000; i++) {
        values_of(i, values, text);
        cr_assert_eq(ivm_batch_row(batch, bag, IVM_WEIGHTED, i < 100 ? 1 : (int64_t)i, values, KINDS), IVM_OK);
        memset(text, '?', sizeof text); /* values are copied */
    }
    const ivm__part *part = batch->parts;
    cr_assert(part && !part->next && part->rows_count == 3000 && part->change == IVM_WEIGHTED);
    for (uint32_t i = 0; i < 3000; i++) {
        values_of(i, values, text);
        cr_assert_eq(part->weights[i], i < 100 ? 1 : i);
        for (uint32_t c = 0; c < KINDS; c++) {
            ivm_value got = cell(part, kinds[c], i, c);
            char a[64], b[64];
            ivm_value_format(&got, a, sizeof a);
            ivm_value_format(&values[c], b, sizeof b);
            cr_assert_str_eq(a, b, "row %u, column %u", i, c);
        }
    }
    end();
}

Test(engine_batch, integers_fit_where_they_are_exact)
{
    begin();
    ivm_value values[KINDS] = { ivm_int64(1), ivm_null(), ivm_int64((int64_t)1 << 53), ivm_null(),
                                ivm_null(),   ivm_null(), ivm_int64(-99999999) };
    cr_assert_eq(ivm_batch_row(batch, bag, IVM_INSERT, 1, values, KINDS), IVM_OK);
    cr_assert_eq(cell(batch->parts, IVM_FLOAT64, 0, 2).as.float64, 0x1p53);
    cr_assert_eq((int64_t)cell(batch->parts, IVM_DECIMAL(10, 2), 0, 6).as.decimal.low, -9999999900);
    values[6] = ivm_int64(100000000);
    ivm_batch_row(batch, bag, IVM_INSERT, 1, values, KINDS);
    refused(IVM_TYPE_MISMATCH, "table bag, row 1, column n: int64 100000000 is no decimal(10,2)");
    values[6] = ivm_null();
    values[2] = ivm_int64(((int64_t)1 << 53) + 1);
    ivm_batch_row(batch, bag, IVM_INSERT, 1, values, KINDS);
    refused(IVM_TYPE_MISMATCH, "table bag, row 0, column f: int64 9007199254740993 is no float64");
    values[2] = ivm_decimal(IVM_DECIMAL(10, 2), (ivm_int128){ 5, 0 });
    ivm_batch_row(batch, bag, IVM_INSERT, 1, values, KINDS);
    refused(IVM_TYPE_MISMATCH, "table bag, row 0, column f: decimal(10,2) 0.05 is no float64");
    end();
}

/* ---- Parts ----------------------------------------------------------------------------------------------------------------------- */

static void keyed_row(ivm_change change, int64_t i)
{
    ivm_value values[] = { ivm_int64(i), ivm_string("a"), ivm_null() };
    ivm_value key[] = { ivm_string("a"), ivm_int64(i) };
    bool by_key = change == IVM_DELETE_KEY;
    cr_assert_eq(ivm_batch_row(batch, keyed, change, 1, by_key ? key : values, by_key ? 2 : 3), IVM_OK);
}

static void bag_row(ivm_change change)
{
    ivm_value values[KINDS] = { ivm_int64(1) };
    for (uint32_t c = 1; c < KINDS; c++) {
        values[c] = ivm_null();
    }
    cr_assert_eq(ivm_batch_row(batch, bag, change, 1, values, KINDS), IVM_OK);
}

static uint32_t parts_count(void)
{
    uint32_t count = 0;
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        count++;
    }
    return count;
}

Test(engine_batch, rows_join_their_tables_last_part)
{
    begin();
    for (int i = 0; i < 10; i++) {
        keyed_row(IVM_INSERT, i);
        bag_row(IVM_INSERT);
        keyed_row(IVM_DELETE, i);
        bag_row(IVM_DELETE);
    }
    cr_assert_eq(parts_count(), 2, "insertions and deletions of two tables, in turns");
    cr_assert(batch->parts->rows_count == 20 && batch->parts->weights[18] == 1 && batch->parts->weights[19] == -1);
    keyed_row(IVM_UPSERT, 1);
    bag_row(IVM_INSERT);
    keyed_row(IVM_UPSERT, 2);
    cr_assert_eq(parts_count(), 3);
    keyed_row(IVM_DELETE_KEY, 1);
    keyed_row(IVM_DELETE_KEY, 2);
    cr_assert_eq(parts_count(), 4);
    bag_row(IVM_INSERT);
    keyed_row(IVM_DELETE, 3);
    cr_assert_eq(parts_count(), 5, "an upsert or a deleted key ends what could be joined");
    keyed_row(IVM_DELETE_KEY, 1);
    ivm_table *more[9];
    ivm_column_definition column = { "i", IVM_INT64, false };
    ivm_table_options options = { .columns = &column, .columns_count = 1 };
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        cr_assert_eq(ivm_table_create(engine, name, &options, &more[i], NULL), IVM_OK);
    }
    for (int i = 0; i < 45; i++) {
        ivm_batch_insert(batch, more[i % 9], ivm_int64(i));
    }
    uint64_t rows = 0;
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        rows += part->rows_count;
    }
    cr_assert_eq(rows, 20 + 20 + 1 + 2 + 2 + 1 + 1 + 1 + 45, "none is lost where tables share a place");
    end();
}

Test(engine_batch, a_deleted_key_keeps_its_place_among_other_tables)
{
    begin();
    keyed_row(IVM_INSERT, 1);
    push();
    keyed_row(IVM_DELETE_KEY, 1);
    bag_row(IVM_INSERT);
    keyed_row(IVM_DELETE_KEY, 2);
    cr_assert_eq(parts_count(), 3);
    end();
}

Test(engine_batch, borrowed_arrays_are_not_joined)
{
    begin();
    int64_t cells[2] = { 4, 5 };
    double floats[2] = { 1, 2 };
    int32_t offsets[3] = { 0, 1, 2 };
    ivm_column_data columns[3] = { { .values = cells }, { .values = "ab", .offsets = offsets }, { .values = floats } };
    ivm_rows rows = { 2, 3, columns, NULL };
    keyed_row(IVM_INSERT, 1);
    cr_assert_eq(ivm_batch_columns(batch, keyed, IVM_INSERT, &rows), IVM_OK);
    keyed_row(IVM_INSERT, 2);
    cr_assert_eq(parts_count(), 3);
    cr_assert_eq(batch->parts->next->columns[0].values, cells);
    columns[0].values = NULL; /* the descriptors were copied */
    push();
    cr_assert_eq(keyed->store.rows_live, 4);
    end();
}

/* The second string's memory is refused, so that the test does not take two gigabytes. */
Test(engine_batch, strings_past_int32_begin_another_part)
{
    begin();
    ivm_batch_insert(batch, keyed, ivm_int64(1), ivm_string("a"), ivm_null());
    test_allocator_arm(&counted, 4); /* after a part, its owner and its block */
    ivm_batch_insert(batch, keyed, ivm_int64(2), ivm_string_sized("b", INT32_MAX), ivm_null());
    cr_assert(test_allocator_disarm(&counted));
    cr_assert_eq(batch->mistake.status, IVM_OUT_OF_MEMORY);
    cr_assert_eq(parts_count(), 2);
    cr_assert_eq(batch->parts->rows_count, 1);
    end();
}

/* ---- Stated shapes --------------------------------------------------------------------------------------------------------------- */

static ivm_status pushed_as(ivm_shape shape, bool inserts, bool deletes)
{
    cr_assert_eq(ivm_batch_state_shape(batch, keyed, IVM_UNCHANGED), IVM_OK);
    cr_assert_eq(ivm_batch_state_shape(batch, keyed, shape), IVM_OK, "the last word counts");
    if (deletes) {
        keyed_row(IVM_DELETE, 1);
    }
    if (inserts) {
        keyed_row(IVM_INSERT, 7);
    }
    ivm_status status = ivm_push_batch(engine, batch, NULL, &error);
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    return status;
}

Test(engine_batch, stated_shapes_are_checked)
{
    begin();
    keyed_row(IVM_INSERT, 1);
    push();
    cr_assert_eq(pushed_as(IVM_UNCHANGED, true, false), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "table keyed: its part is stated unchanged but is insert_only");
    cr_assert_eq(pushed_as(IVM_INSERT_ONLY, true, true), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "table keyed: its part is stated insert_only but is mixed");
    cr_assert_eq(keyed->store.rows_live, 1);
    cr_assert_eq(pushed_as(IVM_UNCHANGED, false, false), IVM_OK);
    cr_assert_eq(pushed_as(IVM_INSERT_ONLY, true, false), IVM_OK);
    cr_assert_eq(pushed_as(IVM_MIXED, false, true), IVM_OK);
    ivm_batch_state_shape(batch, bag, IVM_INSERT_ONLY);
    bag_row(IVM_INSERT);
    bag_row(IVM_DELETE);
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_INVALID_ARGUMENT, "what cancels was not net");
    cr_assert_str_eq(error.message, "table bag: its part is stated net but has equal rows");
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    ivm_batch_state_shape(batch, keyed, IVM_MIXED);
    keyed_row(IVM_UPSERT, 7);
    keyed_row(IVM_UPSERT, 7);
    push(); /* of upserts it is not said which rows are equal */
    ivm_batch_state_shape(batch, keyed, IVM_MIXED);
    ivm_value values[] = { ivm_int64(7), ivm_string("a"), ivm_null() };
    ivm_batch_row(batch, keyed, IVM_WEIGHTED, 0, values, 3);
    keyed_row(IVM_DELETE, 7);
    push(); /* a row of weight 0 is no row */
    end();
}

Test(engine_batch, a_shape_can_be_asked_for)
{
    begin();
    ivm_shape shape = IVM_MIXED;
    cr_assert_eq(ivm_batch_shape(batch, keyed, &shape, &error), IVM_OK);
    cr_assert_eq(shape, IVM_UNCHANGED);
    keyed_row(IVM_INSERT, 1);
    keyed_row(IVM_DELETE, 1);
    bag_row(IVM_INSERT);
    cr_assert_eq(ivm_batch_shape(batch, keyed, &shape, &error), IVM_OK);
    cr_assert_eq(shape, IVM_UNCHANGED);
    cr_assert_eq(ivm_batch_shape(batch, bag, &shape, &error), IVM_OK);
    cr_assert_eq(shape, IVM_INSERT_ONLY);
    cr_assert_eq(bag->store.rows_live, 0, "asking changes nothing");
    keyed_row(IVM_DELETE, 2);
    cr_assert_eq(ivm_batch_shape(batch, keyed, &shape, &error), IVM_ROW_NOT_FOUND);
    cr_assert_eq(ivm_batch_shape(batch, bag, &shape, &error), IVM_OK, "another table's trouble");
    ivm_batch_row(batch, bag, IVM_INSERT, 1, NULL, 1);
    cr_assert_eq(ivm_batch_shape(batch, bag, &shape, &error), IVM_TYPE_MISMATCH, "the batch's mistake");
    end();
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status batch_of_much(void)
{
    ivm_batch *made;
    ivm_status status = ivm_batch_create(engine, &made, NULL);
    if (status != IVM_OK) {
        return status;
    }
    for (uint32_t i = 0; i < 50; i++) {
        ivm_value values[KINDS];
        char text[32];
        values_of(i, values, text);
        (void)ivm_batch_row(made, bag, IVM_INSERT, 1, values, KINDS);
        (void)ivm_batch_upsert(made, keyed, ivm_int64(i), ivm_string("some text that fills a buffer"), ivm_null());
    }
    (void)ivm_batch_state_shape(made, keyed, IVM_MIXED);
    ivm_status before = made->mistake.status;
    status = ivm_batch_state_shape(made, bag, IVM_MIXED);
    cr_assert(before == IVM_OK || status == before, "remembered");
    ivm_batch_free(made);
    return status;
}

Test(engine_batch, every_allocation_may_fail)
{
    begin();
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        test_allocator_arm(&counted, n);
        ivm_status status = batch_of_much();
        done = !test_allocator_disarm(&counted);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "allocation %llu", (unsigned long long)n);
    }
    cr_assert_gt(n, 10);
    end();
}
