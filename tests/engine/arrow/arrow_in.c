/* tests engine/arrow/arrow_batch.c, arrow_read.c, arrow_strings.c and arrow_dictionary.c: what is read, and how. */
#include <criterion/criterion.h>
#include <string.h>

#include "arrow_case.h"
#include "batch.h"

static arrow_host to;
static arrow_case made;
static char text[ARROW_TEXT_SIZE];

/* An engine with a table of one column of this type, "v", and an empty batch. */
static void begin(ivm_type type)
{
    arrow_host_open(&to, &(ivm_column_definition){ "v", type }, 1);
}

/* Pushes the array made, as insertions; the table then has these rows. */
static void pushed(const char *rows)
{
    ivm_status status = ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL);
    cr_assert_eq(status, IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_null(made.array.release, "taken");
    cr_assert_eq(made.released, 0, "its buffers are borrowed until the push");
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK, "%s", to.error.message);
    cr_assert_eq(made.released, 1);
    arrow_table_text(to.table, text);
    cr_assert_str_eq(text, rows);
    arrow_host_batch(&to);
}

/* One column of values of a format, with validity bits where not 0, and what the table holds then. */
static void of_values(ivm_type type, const char *format, const void *values, size_t size, const char *rows)
{
    begin(type);
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "v", format, values, size);
    pushed(rows);
    arrow_case_init(&made, 3);
    struct ArrowArray *array = arrow_case_field(&made, "v", format);
    arrow_case_buffer(&made, array, &(uint8_t){ 5 }, 1);
    arrow_case_buffer(&made, array, values, size);
    array->null_count = -1;
    array->length = 3;
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_DELETE, &made.array, &made.schema, NULL), IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_ROW_NOT_FOUND, "its second row is null: %s", to.error.message);
    cr_assert_eq(made.released, 1);
    arrow_host_batch(&to);
    arrow_host_close(&to);
}

#define OF_VALUES(type, format, item, rows, ...)                                                                                           \
    of_values(type, format, (const item[]){ __VA_ARGS__ }, sizeof((const item[]){ __VA_ARGS__ }), rows)

Test(engine_arrow_in, integers_of_every_width)
{
    OF_VALUES(IVM_INT64, "c", int8_t, "(-128)(0)(127)", -128, 0, 127);
    OF_VALUES(IVM_INT64, "C", uint8_t, "(0)(7)(255)", 0, 7, 255);
    OF_VALUES(IVM_INT64, "s", int16_t, "(-32768)(0)(32767)", -32768, 0, 32767);
    OF_VALUES(IVM_INT64, "S", uint16_t, "(0)(7)(65535)", 0, 7, 65535);
    OF_VALUES(IVM_INT64, "i", int32_t, "(-2147483648)(0)(2147483647)", INT32_MIN, 0, INT32_MAX);
    OF_VALUES(IVM_INT64, "I", uint32_t, "(0)(7)(4294967295)", 0, 7, UINT32_MAX);
    OF_VALUES(IVM_INT64, "l", int64_t, "(-9223372036854775808)(0)(9223372036854775807)", INT64_MIN, 0, INT64_MAX);
    OF_VALUES(IVM_INT64, "L", uint64_t, "(0)(7)(9223372036854775807)", 0, 7, INT64_MAX);
}

Test(engine_arrow_in, floats_and_numbers_that_are_exact_in_them)
{
    OF_VALUES(IVM_FLOAT64, "g", double, "(-1.5)(0)(1e300)", -1.5, -0.0, 1e300);
    OF_VALUES(IVM_FLOAT64, "f", float, "(-1.5)(0.1875)(2)", -1.5f, 0.1875f, 2.0f);
    OF_VALUES(IVM_FLOAT64, "l", int64_t, "(-3)(0)(9007199254740992)", -3, 0, 9007199254740992);
}

Test(engine_arrow_in, dates)
{
    OF_VALUES(IVM_DATE, "tdD", int32_t, "(1969-12-31)(1970-01-01)(2026-11-30)", -1, 0, 20787);
    OF_VALUES(IVM_DATE, "tdm", int64_t, "(1969-12-31)(1970-01-01)(2026-11-30)", -86400000, 0, 20787 * 86400000ll);
}

Test(engine_arrow_in, timestamps_of_every_unit_and_any_zone)
{
    const char *rows = "(1969-12-31T23:59:59.000000Z)(1970-01-01T00:00:00.000000Z)(1970-01-01T00:00:02.000000Z)";
    OF_VALUES(IVM_TIMESTAMP, "tss:", int64_t, rows, -1, 0, 2);
    OF_VALUES(IVM_TIMESTAMP, "tsm:Europe/Berlin", int64_t, rows, -1000, 0, 2000);
    OF_VALUES(IVM_TIMESTAMP, "tsu:", int64_t, rows, -1000000, 0, 2000000);
    OF_VALUES(IVM_TIMESTAMP, "tsu:+05:30", int64_t, rows, -1000000, 0, 2000000);
    OF_VALUES(IVM_TIMESTAMP, "tsn:UTC", int64_t, rows, -1000000000, 0, 2000000000);
}

Test(engine_arrow_in, decimals_of_every_width_and_scale)
{
    const char *rows = "(-1.50)(0.00)(20.25)";
    OF_VALUES(IVM_DECIMAL(10, 2), "d:9,2,32", int32_t, rows, -150, 0, 2025);
    OF_VALUES(IVM_DECIMAL(10, 2), "d:18,2,64", int64_t, rows, -150, 0, 2025);
    OF_VALUES(IVM_DECIMAL(10, 2), "d:10,2", ivm__wide, rows, -150, 0, 2025);
    OF_VALUES(IVM_DECIMAL(10, 2), "d:38,2,128", ivm__wide, rows, -150, 0, 2025);
    OF_VALUES(IVM_DECIMAL(10, 2), "d:38,4,128", ivm__wide, rows, -15000, 0, 202500);
    const ivm__wide upper = -1;
    OF_VALUES(IVM_DECIMAL(10, 2), "d:38,2,256", ivm__wide, rows, -150, upper, 0, 0, 2025, 0);
    OF_VALUES(IVM_DECIMAL(10, 2), "d:9,1,32", int32_t, "(-1.50)(0.00)(20.20)", -15, 0, 202);
    OF_VALUES(IVM_DECIMAL(10, 2), "i", int32_t, "(-1.00)(0.00)(20.00)", -1, 0, 20);
    OF_VALUES(IVM_INT64, "d:38,0", ivm__wide, "(-1)(0)(20)", -1, 0, 20);
    OF_VALUES(IVM_INT64, "d:38,1", ivm__wide, "(-1)(0)(20)", -10, 0, 200);
}

/* Booleans are bits, at an offset too. */
Test(engine_arrow_in, booleans_are_bits)
{
    begin(IVM_BOOL);
    arrow_case_init(&made, 3);
    struct ArrowArray *array = arrow_case_field(&made, "v", "b");
    arrow_case_buffer(&made, array, (uint8_t[]){ 0xff, 0x02 }, 2); /* the row at 8 is null */
    arrow_case_buffer(&made, array, (uint8_t[]){ 0x80, 0x01 }, 2); /* 7 and 8 are set */
    array->offset = 7;
    array->null_count = 1;
    pushed("(false)(true)(null)");
    arrow_host_close(&to);
}

/* Offsets count at both levels, in every buffer: rows 3 and 4 of what lies there. */
Test(engine_arrow_in, offsets_count_at_both_levels)
{
    const int64_t numbers[] = { 10, 11, 12, 13, 14 };
    const int32_t offsets[] = { 0, 1, 2, 3, 5, 7 };
    const ivm_column_definition columns[] = { { "n", IVM_INT64 }, { "s", IVM_STRING }, { "w", IVM_FLOAT64 } };
    ivm_table *wide;
    begin(IVM_INT64);
    cr_assert_eq(ivm_table_create(to.engine, "w", &(ivm_table_options){ .columns = columns, .columns_count = 3 }, &wide, NULL), IVM_OK);
    arrow_case_init(&made, 2);
    made.array.offset = 2;
    struct ArrowArray *n = arrow_case_field(&made, "n", "l");
    arrow_case_buffer(&made, n, &(uint8_t){ 0x0f }, 1);
    arrow_case_buffer(&made, n, numbers, sizeof numbers);
    struct ArrowArray *s = arrow_case_strings(&made, "s", offsets, sizeof offsets, "abcDDEE");
    struct ArrowArray *w = arrow_case_values(&made, "w", "i", (int32_t[]){ 0, 0, 0, 4, 5 }, 5 * sizeof(int32_t));
    n->offset = s->offset = w->offset = 1;
    n->length = s->length = w->length = 4;
    to.table = wide;
    pushed("(13,\"DD\",4)(null,\"EE\",5)");
    arrow_host_close(&to);
}

Test(engine_arrow_in, sliced_large_strings)
{
    begin(IVM_STRING);
    const int64_t offsets[] = { 0, 3, 5, 9, 9 };
    arrow_case_init(&made, 2);
    made.array.offset = 1;
    struct ArrowArray *array = arrow_case_field(&made, "v", "U");
    arrow_case_buffer(&made, array, &(uint8_t){ 0x0b }, 1);
    arrow_case_buffer(&made, array, offsets, sizeof offsets);
    arrow_case_buffer(&made, array, "abcdeFGHI", 9);
    array->length = 3;
    array->offset = 1; /* rows 2 and 3: a null and "" */
    pushed("(\"\")(null)");
    arrow_host_close(&to);
}

/* Bytes of large strings stay where they are: an offset past 32 bits is none to be had in a test, one that does not begin at 0 is. */
Test(engine_arrow_in, large_strings_and_binary)
{
    begin(IVM_STRING);
    const int64_t offsets[] = { 2, 5, 5, 6 };
    for (const char **format = (const char *[]){ "U", "Z", NULL }; *format; format++) {
        arrow_case_init(&made, 3);
        struct ArrowArray *array = arrow_case_values(&made, "v", *format, offsets, sizeof offsets);
        arrow_case_buffer(&made, array, "??abc!", 6);
        pushed(**format == 'U' ? "(\"\")(\"!\")(\"abc\")" : "(\"\")*2(\"!\")*2(\"abc\")*2");
    }
    arrow_host_close(&to);
}

/* Where no string has a byte offsets may be any: they are not followed. */
Test(engine_arrow_in, large_offsets_of_no_byte)
{
    begin(IVM_STRING);
    arrow_case_init(&made, 2);
    struct ArrowArray *array = arrow_case_values(&made, "v", "U", (int64_t[]){ INT64_MAX, INT64_MAX, INT64_MAX }, 24);
    arrow_case_buffer(&made, array, "abc", 3);
    pushed("(\"\")*2");
    arrow_host_close(&to);
}

/* Bytes that are no UTF-8 are strings as others are. */
Test(engine_arrow_in, strings_are_bytes)
{
    begin(IVM_STRING);
    const int32_t offsets[] = { 0, 2, 3, 3 };
    for (const char **format = (const char *[]){ "u", "z", NULL }; *format; format++) {
        arrow_case_init(&made, 3);
        struct ArrowArray *array = arrow_case_values(&made, "v", *format, offsets, sizeof offsets);
        arrow_case_buffer(&made, array, "\xff\xc0z", 3);
        pushed(**format == 'u' ? "(\"\")(\"z\")(\"\xff\xc0\")" : "(\"\")*2(\"z\")*2(\"\xff\xc0\")*2");
    }
    arrow_host_close(&to);
}

typedef struct string_view {
    int32_t size;
    char prefix[4];
    int32_t buffer, offset;
} string_view;

Test(engine_arrow_in, string_views)
{
    begin(IVM_STRING);
    string_view views[5] = { { 3 }, { 13, "long", 1, 2 }, { 12 }, { 0 }, { 99, "null", 77, 7 } };
    memcpy(views[0].prefix, "abc", 3);
    memcpy(views[2].prefix, "twelve bytes", 12);
    arrow_case_init(&made, 5);
    struct ArrowArray *array = arrow_case_field(&made, "v", "vu");
    arrow_case_buffer(&made, array, &(uint8_t){ 0x0f }, 1); /* a null's view is nobody's business */
    arrow_case_buffer(&made, array, views, sizeof views);
    arrow_case_buffer(&made, array, "other", 5);
    arrow_case_buffer(&made, array, "??longer string", 15);
    arrow_case_buffer(&made, array, (int64_t[]){ 5, 15 }, 16);
    pushed("(\"\")(\"abc\")(\"longer string\")(\"twelve bytes\")(null)");
    arrow_host_close(&to);
}

/* Nulls are the array's and the dictionary's own; indexes at nulls are anything. */
Test(engine_arrow_in, dictionaries_of_strings)
{
    begin(IVM_STRING);
    arrow_case_init(&made, 5);
    struct ArrowArray *array = arrow_case_field(&made, "v", "C");
    arrow_case_buffer(&made, array, &(uint8_t){ 0x2c }, 1);
    arrow_case_buffer(&made, array, (uint8_t[]){ 0, 200, 2, 1, 0, 0 }, 6);
    array->offset = 1;
    made.schema_children[0]->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    made.arrays[0].null_count = -1;
    struct ArrowArray *dictionary = arrow_case_dictionary(&made, "u", 3);
    arrow_case_buffer(&made, dictionary, &(uint8_t){ 0x0a }, 1);
    arrow_case_buffer(&made, dictionary, (int32_t[]){ 0, 8, 11, 11, 14 }, 20);
    arrow_case_buffer(&made, dictionary, "sliced  xxxzzz!", 15);
    dictionary->offset = 1; /* "xxx", null, "zzz" */
    pushed("(\"xxx\")(\"zzz\")(null)*3");
    arrow_host_close(&to);
}

Test(engine_arrow_in, dictionaries_of_other_types)
{
    begin(IVM_BOOL);
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "v", "l", (int64_t[]){ 1, 0, 1 }, 24);
    struct ArrowArray *dictionary = arrow_case_dictionary(&made, "b", 2);
    arrow_case_buffer(&made, dictionary, NULL, 0);
    arrow_case_buffer(&made, dictionary, &(uint8_t){ 2 }, 1);
    pushed("(false)(true)*2");
    arrow_host_close(&to);
    begin(IVM_DECIMAL(5, 1));
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "v", "s", (int16_t[]){ 1, 0, 1 }, 6);
    dictionary = arrow_case_dictionary(&made, "i", 2);
    arrow_case_buffer(&made, dictionary, NULL, 0);
    arrow_case_buffer(&made, dictionary, (int32_t[]){ 7, -8 }, 8);
    pushed("(-8.0)*2(7.0)");
    arrow_host_close(&to);
}

Test(engine_arrow_in, all_null)
{
    for (const ivm_type *type = (const ivm_type[]){ IVM_BOOL, IVM_INT64, IVM_STRING, IVM_DATE, IVM_DECIMAL(4, 2), 0 }; *type; type++) {
        begin(*type);
        arrow_case_init(&made, 3);
        arrow_case_field(&made, "v", "n")->null_count = 3;
        pushed("(null)*3");
        arrow_host_close(&to);
    }
}

/* Buffers need no alignment: converted, in place and of weights. */
Test(engine_arrow_in, buffers_may_be_unaligned)
{
    begin(IVM_DECIMAL(10, 2));
    uint8_t bytes[1 + 2 * sizeof(ivm__wide)] = { 0 };
    const ivm__wide cells[2] = { 125, -250 };
    memcpy(bytes + 1, cells, sizeof cells);
    uint8_t weights[1 + 2 * sizeof(int64_t)] = { 0 };
    memcpy(weights + 1, (int64_t[]){ 2, 3 }, 16);
    arrow_case_init(&made, 2);
    arrow_case_values(&made, "v", "d:10,2", bytes, sizeof bytes);
    arrow_case_values(&made, "weight", "l", weights, sizeof weights);
    const void *block[2] = { made.buffers[0][1], made.buffers[1][1] };
    made.buffers[0][1] = (const uint8_t *)block[0] + 1;
    made.buffers[1][1] = (const uint8_t *)block[1] + 1;
    const ivm_arrow_options options = { .weight = "weight" };
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_WEIGHTED, &made.array, &made.schema, &options), IVM_OK);
    ivm_shape shape;
    cr_assert_eq(ivm_batch_shape(to.batch, to.table, &shape, &to.error), IVM_OK, "%s", to.error.message);
    made.buffers[0][1] = block[0]; /* to be freed */
    made.buffers[1][1] = block[1];
    ivm_batch_free(to.batch);
    cr_assert_eq(shape, IVM_INSERT_ONLY);
    cr_assert_eq(made.released, 1, "by the batch that was never pushed");
    arrow_host_batch(&to);
    arrow_host_close(&to);
}

/* Which rows are null says the bitmap, whatever null_count has; without one none is, whatever it leaves open. */
Test(engine_arrow_in, nulls_are_those_of_the_bitmap)
{
    static const struct {
        int64_t null_count;
        uint8_t bits;
        const char *rows;
    } cases[] = { { 0, 5, "(7)(9)(null)" }, { -1, 7, "(7)(8)(9)" }, { 2, 7, "(7)(8)(9)" }, { 1, 0, "(null)*3" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int narrow = 0; narrow < 2; narrow++) { /* converted, and in place */
            begin(IVM_INT64);
            arrow_case_init(&made, 3);
            struct ArrowArray *array = arrow_case_field(&made, "v", narrow ? "c" : "l");
            arrow_case_buffer(&made, array, &cases[i].bits, 1);
            arrow_case_buffer(&made, array, narrow ? (const void *)(int8_t[]){ 7, 8, 9 } : (const void *)(int64_t[]){ 7, 8, 9 },
                              narrow ? 3 : 24);
            array->null_count = cases[i].null_count;
            pushed(cases[i].rows);
            arrow_host_close(&to);
        }
    }
    begin(IVM_INT64);
    arrow_case_init(&made, 3);
    arrow_case_values(&made, "v", "l", (int64_t[]){ 7, 8, 9 }, 24)->null_count = -1;
    pushed("(7)(8)(9)");
    arrow_host_close(&to);
}

/* Without rows no buffer need be there. */
Test(engine_arrow_in, empty_arrays)
{
    begin(IVM_STRING);
    arrow_case_init(&made, 0);
    struct ArrowArray *array = arrow_case_field(&made, "v", "u");
    array->n_buffers = 3;
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_eq(made.released, 1, "at once");
    arrow_case_init(&made, 0);
    array = arrow_case_field(&made, "v", "c");
    array->n_buffers = 2;
    arrow_case_dictionary(&made, "vu", 0)->n_buffers = 3;
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_INSERT, &made.array, &made.schema, NULL), IVM_OK, "%s", to.batch->mistake.message);
    cr_assert_eq(made.released, 1);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK);
    arrow_host_batch(&to);
    arrow_host_close(&to);
}

/* Weights by name, wherever the field stands, of any integer's width, sliced. */
Test(engine_arrow_in, weights)
{
    begin(IVM_INT64);
    const ivm_arrow_options options = { .weight = "w", .fields_ignored = true };
    for (int pass = 0; pass < 2; pass++) {
        arrow_case_init(&made, 3);
        made.array.offset = 1;
        struct ArrowArray *w = pass ? arrow_case_values(&made, "w", "c", (int8_t[]){ 0, 1, -2, 0 }, 4)
                                    : arrow_case_values(&made, "w", "l", (int64_t[]){ 0, 5, 3, 0 }, 32);
        arrow_case_field(&made, "other", "+l");
        struct ArrowArray *v = arrow_case_values(&made, "v", "l", (int64_t[]){ 9, 1, 2, 3 }, 32);
        w->length = v->length = 4;
        cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_WEIGHTED, &made.array, &made.schema, &options), IVM_OK, "%s",
                     to.batch->mistake.message);
        cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK, "%s", to.error.message);
        arrow_table_text(to.table, text);
        cr_assert_str_eq(text, pass ? "(1)*6(2)" : "(1)*5(2)*3");
        arrow_host_batch(&to);
    }
    arrow_host_close(&to);
}

/* By key: the key's columns alone, in whatever order. */
Test(engine_arrow_in, upserts_and_deletions_by_key)
{
    begin(IVM_INT64);
    const ivm_column_definition columns[] = { { "a", IVM_INT64 }, { "b", IVM_STRING }, { "v", IVM_INT64 } };
    const ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "b, a" };
    cr_assert_eq(ivm_table_create(to.engine, "keyed", &options, &to.table, NULL), IVM_OK);
    arrow_case upserts;
    arrow_case_init(&upserts, 2);
    arrow_case_values(&upserts, "v", "l", (int64_t[]){ 5, 6 }, 16);
    arrow_case_strings(&upserts, "b", (int32_t[]){ 0, 1, 2 }, 12, "xy");
    arrow_case_values(&upserts, "a", "C", (uint8_t[]){ 1, 2 }, 2);
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_UPSERT, &upserts.array, &upserts.schema, NULL), IVM_OK, "%s",
                 to.batch->mistake.message);
    arrow_case_init(&made, 1);
    arrow_case_values(&made, "a", "l", (int64_t[]){ 1 }, 8);
    arrow_case_strings(&made, "b", (int32_t[]){ 0, 1 }, 8, "x");
    cr_assert_eq(ivm_batch_arrow(to.batch, to.table, IVM_DELETE_KEY, &made.array, &made.schema, NULL), IVM_OK, "%s",
                 to.batch->mistake.message);
    cr_assert_eq(ivm_push_batch(to.engine, to.batch, NULL, &to.error), IVM_OK, "%s", to.error.message);
    cr_assert_eq(made.released + upserts.released, 2);
    arrow_table_text(to.table, text);
    cr_assert_str_eq(text, "(2,\"y\",6)");
    arrow_host_batch(&to);
    arrow_host_close(&to);
}

/* ---- Tables of schemas ------------------------------------------------------------------------------------------------------------------- */

Test(engine_arrow_in, a_table_of_a_schema)
{
    begin(IVM_INT64);
    arrow_case_init(&made, 0);
    const char *formats[] = { "S", "f", "Z", "tdm", "tsn:X", "d:20,3,256", "b", "l" };
    const char *names[] = { "a", "b", "c", "d", "e", "f", "g", "weight" };
    const ivm_type types[] = { IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(20, 3), IVM_BOOL };
    for (int i = 0; i < 8; i++) {
        arrow_case_field(&made, names[i], formats[i]);
    }
    arrow_case_field(&made, "h", "i");
    arrow_case_dictionary(&made, "vu", 0);
    made.schema_children[1]->flags = 0;
    const ivm_arrow_options arrow = { .weight = "weight" };
    const ivm_table_options options = { .key = "a" };
    cr_assert_eq(ivm_table_create_arrow(to.engine, "of", &made.schema, &options, &arrow, &to.table, &to.error), IVM_OK, "%s",
                 to.error.message);
    cr_assert_eq(ivm_table_columns_count(to.table), 8);
    for (size_t i = 0; i < 7; i++) {
        cr_assert_str_eq(ivm_table_column_name(to.table, i), names[i]);
        cr_assert_eq(ivm_table_column_type(to.table, i), types[i]);
        cr_assert_eq(to.table->columns[i].nullable, i > 1, "not the key, not what says that it is not");
    }
    cr_assert_str_eq(ivm_table_column_name(to.table, 7), "h");
    cr_assert_eq(ivm_table_column_type(to.table, 7), IVM_STRING);
    cr_assert_eq(ivm_table_key(to.table, NULL, 0), 1);
    arrow_case_free(&made);
    arrow_host_close(&to);
}

static void schema_refused(ivm_status status, const char *message, const ivm_table_options *options)
{
    cr_assert_eq(ivm_table_create_arrow(to.engine, "of", &made.schema, options, NULL, &to.table, &to.error), status);
    cr_assert_str_eq(to.error.message, message);
    arrow_case_free(&made);
}

Test(engine_arrow_in, schemas_that_make_no_table)
{
    begin(IVM_INT64);
    arrow_case_init(&made, 0);
    arrow_case_field(&made, "a", "+l");
    schema_refused(IVM_UNSUPPORTED, "table of: field a is of Arrow's format \"+l\", which is not supported", NULL);
    arrow_case_init(&made, 0);
    arrow_case_field(&made, "a", "n");
    schema_refused(IVM_UNSUPPORTED, "table of: field a is all null and makes a column of no type", NULL);
    arrow_case_init(&made, 0);
    arrow_case_field(&made, "a", "d:76,10,256");
    schema_refused(IVM_UNSUPPORTED, "table of: field a is of Arrow's format \"d:76,10,256\", which is not supported", NULL);
    arrow_case_init(&made, 0);
    arrow_case_field(&made, "a", "l");
    const ivm_column_definition column = { "a", IVM_INT64 };
    schema_refused(IVM_INVALID_ARGUMENT, "ivm_table_create_arrow: columns are the schema's",
                   &(ivm_table_options){ .columns = &column, .columns_count = 1 });
    arrow_case_init(&made, 0);
    made.schema.format = "l";
    schema_refused(IVM_INVALID_ARGUMENT, "table of: rows are a struct (format \"+s\"), not \"l\"", NULL);
    arrow_case_init(&made, 0);
    made.schema.release = NULL;
    schema_refused(IVM_INVALID_ARGUMENT, "table of: the schema was released", NULL);
    arrow_host_close(&to);
}
