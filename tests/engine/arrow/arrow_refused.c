/* tests engine/arrow/arrow_batch.c, arrow_read.c and their like: what is refused, with what words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_case.h"
#include "batch.h"

static arrow_host to;
static arrow_case made;

/* The array made is refused when it is added, and released at once; so is the push. */
static void refused_with(ivm_change change, const ivm_arrow_options *options, ivm_status status, const char *message)
{
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, change, &made.array, &made.schema, options), status, "%s", message);
    cr_assert_null(made.array.release);
    cr_assert_eq(made.released, 1, "%s", message);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), status);
    cr_assert_str_eq(to.error.message, message);
    cr_assert_eq(to.table->store.rows_live, 0);
    arrow_host_batch(&to);
}

static void refused(ivm_status status, const char *message)
{
    refused_with(IVM_INSERT, NULL, status, message);
}

/* ---- Schemas ----------------------------------------------------------------------------------------------------------------------------- */

Test(engine_arrow_refused, schemas)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.schema.release = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: the schema was released");
    arrow_case_good(&made);
    made.schema.format = "+w:3";
    refused(IVM_INVALID_ARGUMENT, "table t: rows are a struct (format \"+s\"), not \"+w:3\"");
    arrow_case_good(&made);
    made.schema.format = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: rows are a struct (format \"+s\"), not \"\"");
    arrow_case_good(&made);
    made.schema.dictionary = &made.schemas[0];
    refused(IVM_INVALID_ARGUMENT, "table t: rows are a struct (format \"+s\"), not \"+s\" with a dictionary");
    arrow_case_good(&made);
    made.schema.n_children = -1;
    refused(IVM_INVALID_ARGUMENT, "table t: a schema of -1 children");
    arrow_case_good(&made);
    made.schema.children = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: a schema of 3 children that are NULL");
    arrow_case_good(&made);
    made.schema_children[1] = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: child 1 of the schema is NULL");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_I].release = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the schema of field i was released");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_I].format = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the schema of field i has no format");
    arrow_case_good(&made);
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(to.batch->mistake.message, "table t: the schema is NULL");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, fields)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].name = "z";
    refused(IVM_TYPE_MISMATCH, "table t: field \"z\" is none of its columns");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].name = NULL;
    refused_with(IVM_INSERT, &(ivm_arrow_options){ .fields_ignored = true }, IVM_TYPE_MISMATCH, "table t, column s: no field of this name");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].name = "n";
    made.schemas[ARROW_FIELD_N].name = "s";
    made.schemas[ARROW_FIELD_I].name = "s";
    refused(IVM_TYPE_MISMATCH, "table t, column i: no field of this name");
    arrow_case_good(&made);
    arrow_case_values(&made, "i", "l", (int64_t[]){ 1, 2, 3 }, 24);
    refused(IVM_TYPE_MISMATCH, "table t, column i: two fields of this name");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].format = "l";
    refused(IVM_TYPE_MISMATCH, "table t, column s: a field of format \"l\", where string is wanted");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_N].format = "g";
    refused(IVM_TYPE_MISMATCH, "table t, column n: a field of format \"g\", where decimal(4,1) is wanted");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, formats)
{
    static const char *const formats[] = { "",       "e",        "tts",    "ttu",    "tDs",        "tiM",      "w:16",   "+l",
                                           "+L",     "+s",       "+m",     "+r",     "+ud:0,1",    "ll",       "ts",     "tsu",
                                           "tsx:",   "td",       "d:",     "d:4",    "d:4,",       "d:0,0",    "d:39,0", "d:4,5",
                                           "d:4,-1", "d:4,1,16", "d:4,1,", "d:4,1x", "d:4,1,128x", "d:0004,1", NULL };
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    for (const char *const *format = formats; *format; format++) {
        char message[128];
        arrow_case_good(&made);
        made.schemas[ARROW_FIELD_N].format = *format;
        (void)snprintf(message, sizeof message, "table t, column n: field n is of Arrow's format \"%s\", which is not supported", *format);
        refused(IVM_UNSUPPORTED, message);
    }
    arrow_host_close(&to);
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_arrow_refused, the_struct)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.array.length = -1;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of length -1, offset 0 and 0 nulls");
    arrow_case_good(&made);
    made.array.offset = -5;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of length 3, offset -5 and 0 nulls");
    arrow_case_good(&made);
    made.array.offset = INT64_MAX;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of length 3, offset 9223372036854775807 and 0 nulls");
    arrow_case_good(&made);
    made.array.null_count = -2;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of length 3, offset 0 and -2 nulls");
    arrow_case_good(&made);
    made.array.length = (int64_t)IVM_BATCH_ROWS_MAX + 1;
    refused(IVM_OVERFLOW, "table t: 2147483649 rows in one batch, at most 2147483648");
    arrow_case_good(&made);
    made.array.n_buffers = 2;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of 2 buffers, where a struct has one");
    arrow_case_good(&made);
    made.array.buffers = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of 1 buffers that are NULL, where a struct has one");
    arrow_case_good(&made);
    made.array.dictionary = &made.arrays[0];
    refused(IVM_INVALID_ARGUMENT, "table t: an array of 1 buffers and a dictionary, where a struct has one");
    arrow_case_good(&made);
    made.array.n_children = 2;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of 2 children, where its schema has 3");
    arrow_case_good(&made);
    made.array.children = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t: an array of 3 children that are NULL, where its schema has 3");
    arrow_case_good(&made);
    arrow_case_buffer(&made, &made.array, &(uint8_t){ 0x0d }, 1);
    made.array.offset = 1;
    made.array.length = 2;
    made.array.null_count = -1;
    made.arrays[0].length = made.arrays[1].length = made.arrays[2].length = 3;
    refused(IVM_NULL_VIOLATION, "table t: row 0 of the array is null as a whole");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, children)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.children[ARROW_FIELD_S] = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: the array is NULL");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_S].release = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: the array was released");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_S].length = -3;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: an array of length -3 and offset 0");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_S].offset = INT64_MAX / 2;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: an array of length 3 and offset 4611686018427387903");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_S].length = 2;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: an array of length 2, where rows 0 to 3 are wanted");
    arrow_case_good(&made);
    made.array.offset = 1;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: an array of length 3, where rows 1 to 4 are wanted");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].null_count = 4;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: 4 nulls in an array of length 3");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].null_count = -2;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: -2 nulls in an array of length 3");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].null_count = 1;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the array has nulls and no validity buffer");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].n_children = 1;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the array has children, which its format has not");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].dictionary = &made.arrays[ARROW_FIELD_S];
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the array has a dictionary, which its schema has not");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, buffers)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_S].n_buffers = 2;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: an array of 2 buffers, where its format has 3");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].n_buffers = 3;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: an array of 3 buffers, where its format has 2");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].format = "vu";
    made.arrays[ARROW_FIELD_S].n_buffers = 2;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: an array of 2 buffers, where its format has 3");
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_I].format = "n";
    refused(IVM_INVALID_ARGUMENT, "table t, column i: an array of 2 buffers, where its format has 0");
    arrow_case_good(&made);
    made.arrays[ARROW_FIELD_I].buffers = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column i: the array has no list of buffers");
    for (int field = ARROW_FIELD_I; field <= ARROW_FIELD_N; field++) {
        arrow_case_good(&made);
        const void *block = made.buffers[field][1];
        made.buffers[field][1] = NULL;
        refused(IVM_INVALID_ARGUMENT, field == ARROW_FIELD_I   ? "table t, column i: the array has no buffer of values"
                                      : field == ARROW_FIELD_S ? "table t, column s: the array has no buffer of offsets"
                                                               : "table t, column n: the array has no buffer of values");
        free((void *)(uintptr_t)block);
    }
    arrow_host_close(&to);
}

/* ---- Values ------------------------------------------------------------------------------------------------------------------------------ */

/* One column of "v" in place of i, of three values. */
static void value_refused(ivm_type type, const char *format, const void *values, size_t size, const char *message)
{
    ivm_table *narrow;
    const ivm_column_definition column = { "v", type };
    cr_assert_eq(ivm_table_create(to.engine, "x", &(ivm_table_options){ .columns = &column, .columns_count = 1 }, &narrow, NULL), IVM_OK);
    ivm_table *before = to.table;
    to.table = narrow;
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "v", format, values, size);
    refused(IVM_TYPE_MISMATCH, message);
    cr_assert_eq(ivm_table_drop(narrow, NULL), IVM_OK);
    to.table = before;
}

#define VALUE_REFUSED(type, format, item, message, ...)                                                                                    \
    value_refused(type, format, (const item[]){ __VA_ARGS__ }, sizeof((const item[]){ __VA_ARGS__ }), message)

Test(engine_arrow_refused, values_that_are_not_exact)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    VALUE_REFUSED(IVM_INT64, "L", uint64_t, "table x, column v: 9223372036854775808 of format \"L\" in row 1 is no int64", 0, 1ull << 63,
                  0);
    VALUE_REFUSED(IVM_INT64, "d:38,0", ivm__wide, "table x, column v: 9223372036854775808 of format \"d:38,0\" in row 0 is no int64",
                  (ivm__wide)1 << 63, 0, 0);
    VALUE_REFUSED(IVM_INT64, "d:5,1", ivm__wide, "table x, column v: 2.5 of format \"d:5,1\" in row 2 is no int64", 10, 20, 25);
    VALUE_REFUSED(IVM_FLOAT64, "l", int64_t, "table x, column v: 9007199254740993 of format \"l\" in row 2 is no float64", 0, 1,
                  (1ll << 53) + 1);
    VALUE_REFUSED(IVM_FLOAT64, "L", uint64_t, "table x, column v: 18446744073709551615 of format \"L\" in row 0 is no float64", UINT64_MAX,
                  0, 1);
    VALUE_REFUSED(IVM_DATE, "tdm", int64_t, "table x, column v: 86400001 of format \"tdm\" in row 1 is no whole number of days", 0,
                  86400001, 0);
    VALUE_REFUSED(IVM_DATE, "tdm", int64_t, "table x, column v: 371085174374400000 of format \"tdm\" in row 1 is no date", 0,
                  86400000ll << 32, 0);
    VALUE_REFUSED(IVM_TIMESTAMP, "tsn:", int64_t, "table x, column v: 1001 of format \"tsn:\" in row 1 is no whole number of microseconds",
                  0, 1001, 0);
    VALUE_REFUSED(IVM_TIMESTAMP, "tss:", int64_t, "table x, column v: 9223372036854775807 of format \"tss:\" in row 2 is no timestamp", 0,
                  0, INT64_MAX);
    VALUE_REFUSED(IVM_TIMESTAMP, "tsm:Z", int64_t, "table x, column v: -9223372036854775808 of format \"tsm:Z\" in row 0 is no timestamp",
                  INT64_MIN, 0, 0);
    VALUE_REFUSED(IVM_DECIMAL(4, 1), "d:9,2,32", int32_t, "table x, column v: 0.05 of format \"d:9,2,32\" in row 1 is no decimal(4,1)", 10,
                  5, 10);
    VALUE_REFUSED(IVM_DECIMAL(4, 1), "d:9,2,32", int32_t, "table x, column v: 1000.00 of format \"d:9,2,32\" in row 1 is no decimal(4,1)",
                  10, 100000, 10);
    VALUE_REFUSED(IVM_DECIMAL(38, 37), "d:38,0", ivm__wide,
                  "table x, column v: 1267650600228229401496703205376 of format \"d:38,0\" in row 0 is no decimal(38,37)",
                  (ivm__wide)1 << 100, 0, 0);
    VALUE_REFUSED(IVM_DECIMAL(38, 0), "d:38,0,256", ivm__wide,
                  "table x, column v: a number of more than 38 digits of format \"d:38,0,256\" in row 1 is no decimal(38,0)", 0, 0, 0, 1,
                  -1, 0);
    VALUE_REFUSED(IVM_DECIMAL(4, 1), "s", int16_t, "table x, column v: 1000 of format \"s\" in row 2 is no decimal(4,1)", 0, 999, 1000);
    arrow_host_close(&to);
}

/* Read in place: found when the batch is pushed, where the array is released. */
static void refused_by_push(ivm_status status, const char *message)
{
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_eq(made.released, 0);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), status);
    cr_assert_eq(made.released, 1);
    cr_assert_str_eq(to.error.message, message);
    arrow_host_batch(&to);
}

Test(engine_arrow_refused, offsets_that_decrease)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    ((int32_t *)(uintptr_t)made.buffers[ARROW_FIELD_S][1])[2] = 0;
    refused_by_push(IVM_INVALID_ARGUMENT, "table t, row 1, column s: its offsets are wrong");
    arrow_case_good(&made);
    ((int32_t *)(uintptr_t)made.buffers[ARROW_FIELD_S][1])[0] = -1;
    refused_by_push(IVM_INVALID_ARGUMENT, "table t, row 0, column s: its offsets are wrong");
    arrow_case_good(&made);
    free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][2]);
    made.buffers[ARROW_FIELD_S][2] = NULL;
    refused_by_push(IVM_INVALID_ARGUMENT, "table t, row 0, column s: its offsets are wrong");
    for (int64_t *wrong = (int64_t[]){ 0, 2, -1, 0, 1, 1, 0 }; *wrong != 1 || wrong[1] != 1; wrong += 2) {
        arrow_case_good(&made);
        made.schemas[ARROW_FIELD_S].format = "U";
        made.arrays[ARROW_FIELD_S].n_buffers = 1;
        free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][1]);
        free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][2]);
        arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], (int64_t[]){ wrong[0], wrong[1], 1, 1 }, 32);
        arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], "abb", 3);
        refused(IVM_INVALID_ARGUMENT,
                wrong[0] < 0 ? "table t, column s: offsets of row 0 are wrong" : "table t, column s: offsets of row 1 are wrong");
    }
    arrow_host_close(&to);
}

Test(engine_arrow_refused, strings_of_more_than_two_gigabytes)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    arrow_case_good(&made);
    made.schemas[ARROW_FIELD_S].format = "Z";
    made.arrays[ARROW_FIELD_S].n_buffers = 1;
    free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][1]);
    free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][2]);
    arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], (int64_t[]){ 0, 1, 1, 1ll << 31 }, 32);
    arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], "abb", 3);
    refused(IVM_OVERFLOW, "table t, column s: an array whose strings come to more than 2147483647 bytes");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, views_that_lie_nowhere)
{
    static const int32_t wrong[][4] = {
        { -1 }, { 13, 0, 1, 0 }, { 13, 0, -1, 0 }, { 13, 0, 0, -1 }, { 13, 0, 0, 3 }, { INT32_MAX, 0, 0, 2 }
    };
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int32_t views[3][4] = { { 0 } };
        memcpy(views[1], wrong[i], sizeof views[1]);
        arrow_case_good(&made);
        made.schemas[ARROW_FIELD_S].format = "vz";
        made.arrays[ARROW_FIELD_S].n_buffers = 1;
        free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][1]);
        free((void *)(uintptr_t)made.buffers[ARROW_FIELD_S][2]);
        arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], views, sizeof views);
        arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], "fifteen letters", 15);
        arrow_case_buffer(&made, &made.arrays[ARROW_FIELD_S], (int64_t[]){ 15 }, 8);
        refused(IVM_INVALID_ARGUMENT, "table t, column s: the view of row 1 is wrong");
    }
    arrow_host_close(&to);
}

/* Puts a dictionary with these indexes in the place of s; its values are "a" and "bb". */
static void dictionary_make(int8_t second)
{
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "i", "l", (int64_t[]){ 1, 2, 3 }, 24);
    arrow_case_values(&made, "n", "l", (int64_t[]){ 1, 2, 3 }, 24);
    arrow_case_values(&made, "s", "c", (int8_t[]){ 0, second, 1 }, 3);
    struct ArrowArray *dictionary = arrow_case_dictionary(&made, "u", 2);
    arrow_case_buffer(&made, dictionary, NULL, 0);
    arrow_case_buffer(&made, dictionary, (int32_t[]){ 0, 1, 3 }, 12);
    arrow_case_buffer(&made, dictionary, "abb", 3);
}

Test(engine_arrow_refused, dictionaries)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    for (const int8_t *index = (const int8_t[]){ 2, -1, 127, -128, 0 }; *index; index++) {
        dictionary_make(*index);
        refused(IVM_INVALID_ARGUMENT, "table t, column s: the index of row 1 is outside the dictionary, which has 2 values");
    }
    dictionary_make(0);
    made.schema_children[2]->format = "g";
    refused(IVM_INVALID_ARGUMENT, "table t, column s: field s has a dictionary and indexes of format \"g\", which are no integers");
    dictionary_make(0);
    made.schema_children[2]->dictionary->format = "+l";
    refused(IVM_UNSUPPORTED, "table t, column s: field s has a dictionary of format \"+l\", which is not supported");
    dictionary_make(0);
    made.schema_children[2]->dictionary->dictionary = &made.schemas[0];
    refused(IVM_UNSUPPORTED, "table t, column s: field s has a dictionary whose values have one");
    dictionary_make(0);
    made.children[2]->dictionary = NULL;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: the array has no dictionary, or one that was released or of a length that none has");
    dictionary_make(0);
    made.children[2]->dictionary->length = -1;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: the array has no dictionary, or one that was released or of a length that none has");
    dictionary_make(1);
    ((int32_t *)(uintptr_t)made.children[2]->dictionary->buffers[1])[2] = 0;
    refused(IVM_INVALID_ARGUMENT, "table t, column s: the dictionary's offsets of value 1, of row 1, are wrong");
    arrow_host_close(&to);
}

Test(engine_arrow_refused, weights)
{
    arrow_host_open(&to, arrow_columns_good, ARROW_FIELDS_GOOD);
    const ivm_arrow_options options = { .weight = "w" };
    arrow_case_good(&made);
    refused_with(IVM_INSERT, &options, IVM_INVALID_ARGUMENT, "table t, weight w: weights are for IVM_WEIGHTED alone");
    arrow_case_good(&made);
    refused_with(IVM_WEIGHTED, &options, IVM_TYPE_MISMATCH, "table t, weight w: no field of this name");
    arrow_case_good(&made);
    refused_with(IVM_WEIGHTED, &(ivm_arrow_options){ .weight = "i" }, IVM_INVALID_ARGUMENT, "table t, weight i: a column has this name");
    arrow_case_good(&made);
    struct ArrowArray *w = arrow_case_field(&made, "w", "l");
    arrow_case_buffer(&made, w, &(uint8_t){ 3 }, 1);
    arrow_case_buffer(&made, w, (int64_t[]){ 1, 1, 1 }, 24);
    refused_with(IVM_WEIGHTED, &options, IVM_NULL_VIOLATION, "table t, weight w: null in row 2");
    arrow_case_good(&made);
    arrow_case_values(&made, "w", "L", (uint64_t[]){ 1, 1ull << 63, 1 }, 24);
    refused_with(IVM_WEIGHTED, &options, IVM_TYPE_MISMATCH, "table t, weight w: 9223372036854775808 of format \"L\" in row 1 is no int64");
    arrow_case_good(&made);
    refused_with(IVM_INSERT, &(ivm_arrow_options){ .version = 9 }, IVM_UNSUPPORTED,
                 "table t: Arrow options of version 9, at most 1 is known");
    arrow_host_close(&to);
}
