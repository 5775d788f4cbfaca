/* tests engine/arrow/arrow_read.c and its like against rows added one by one: random formats, offsets at both levels, nulls, dictionaries, buffers that are not aligned. A failure names its seed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "arrow_case.h"
#include "batch.h"

#define SEEDS 600u
#define POSITIONS_MAX 64

typedef struct random_format {
    const char *format;
    ivm_type type;
    uint32_t width; /* of a value; 0: bits, strings */
    int64_t factor; /* what a number of the column is times in the array */
} random_format;

static const random_format formats[] = {
    { "c", IVM_INT64, 1, 1 },
    { "S", IVM_INT64, 2, 1 },
    { "l", IVM_INT64, 8, 1 },
    { "d:20,3", IVM_INT64, 16, 1000 },
    { "i", IVM_FLOAT64, 4, 1 },
    { "f", IVM_FLOAT64, 4, 1 },
    { "g", IVM_FLOAT64, 8, 1 },
    { "b", IVM_BOOL, 0, 1 },
    { "tdD", IVM_DATE, 4, 1 },
    { "tdm", IVM_DATE, 8, 86400000 },
    { "tsu:", IVM_TIMESTAMP, 8, 1 },
    { "tsn:Z", IVM_TIMESTAMP, 8, 1000 },
    { "d:9,3,32", IVM_DECIMAL(10, 2), 4, 10 },
    { "d:10,2", IVM_DECIMAL(10, 2), 16, 1 },
    { "d:10,2,256", IVM_DECIMAL(10, 2), 32, 1 },
    { "u", IVM_STRING, 0, 1 },
    { "z", IVM_STRING, 0, 1 },
    { "U", IVM_STRING, 0, 1 },
    { "vz", IVM_STRING, 0, 1 },
};

static uint64_t state;
static uint64_t below(uint64_t bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 29)) % bound;
}

/* What lies at each position of an array: a number, or a null. */
typedef struct positions {
    size_t count;
    int64_t number[POSITIONS_MAX];
    bool null[POSITIONS_MAX];
    char word[POSITIONS_MAX][32]; /* for strings */
} positions;

static void positions_draw(positions *it, size_t count, bool nulls)
{
    it->count = count;
    for (size_t i = 0; i < count; i++) {
        it->number[i] = (int64_t)below(60);
        it->null[i] = nulls && below(4) == 0;
        (void)snprintf(it->word[i], sizeof it->word[i], "%.*s%d", (int)below(24), "abcdefghijklmnopqrstuvwxyz", (int)it->number[i]);
    }
}

/* ---- Into buffers ------------------------------------------------------------------------------------------------------------------------ */

static void validity_emit(arrow_case *it, struct ArrowArray *array, const positions *from, bool nulls)
{
    uint8_t bits[POSITIONS_MAX / 8] = { 0 };
    for (size_t i = 0; i < from->count; i++) {
        bits[i / 8] |= (uint8_t)(!from->null[i] << (i % 8));
    }
    array->null_count = nulls || below(2) ? -1 : 0;
    arrow_case_buffer(it, array, nulls ? bits : NULL, (from->count + 7) / 8);
}

static void strings_emit(arrow_case *it, struct ArrowArray *array, const positions *from, size_t width)
{
    char bytes[POSITIONS_MAX * 32];
    uint8_t offsets[(POSITIONS_MAX + 1) * 8] = { 0 };
    uint64_t used = below(3);
    memcpy(offsets, &used, width);
    memset(bytes, '?', sizeof bytes);
    for (size_t i = 0; i < from->count; i++) {
        size_t size = strlen(from->word[i]);
        memcpy(bytes + used, from->word[i], size);
        used += size;
        memcpy(offsets + (i + 1) * width, &used, width);
    }
    arrow_case_buffer(it, array, offsets, (from->count + 1) * width);
    arrow_case_buffer(it, array, bytes, used);
}

static void views_emit(arrow_case *it, struct ArrowArray *array, const positions *from)
{
    int32_t views[POSITIONS_MAX][4];
    char bytes[2][POSITIONS_MAX * 32];
    int64_t used[2] = { 0, 0 };
    memset(views, 0xa5, sizeof views); /* of nulls: anything */
    for (size_t i = 0; i < from->count; i++) {
        int32_t size = (int32_t)strlen(from->word[i]), buffer = (int32_t)below(2);
        if (from->null[i]) {
            continue;
        }
        views[i][0] = size;
        memcpy(&views[i][1], from->word[i], size < 12 ? (size_t)size : 12);
        if (size > 12) {
            views[i][2] = buffer;
            views[i][3] = (int32_t)used[buffer];
            memcpy(bytes[buffer] + used[buffer], from->word[i], (size_t)size);
            used[buffer] += size;
        }
    }
    arrow_case_buffer(it, array, views, from->count * sizeof views[0]);
    arrow_case_buffer(it, array, bytes[0], (size_t)used[0]);
    arrow_case_buffer(it, array, bytes[1], (size_t)used[1]);
    arrow_case_buffer(it, array, used, sizeof used);
}

static void numbers_emit(arrow_case *it, struct ArrowArray *array, const random_format *format, const positions *from)
{
    uint8_t bytes[POSITIONS_MAX * 32] = { 0 };
    for (size_t i = 0; i < from->count; i++) {
        ivm__wide wide[2] = { (ivm__wide)from->number[i] * format->factor, 0 };
        float narrow = (float)from->number[i];
        double real = (double)from->number[i];
        const void *value = *format->format == 'f' ? (const void *)&narrow : *format->format == 'g' ? (const void *)&real : wide;
        if (*format->format == 'b') {
            bytes[i / 8] |= (uint8_t)((from->number[i] & 1) << (i % 8));
        } else if (from->null[i]) {
            memset(bytes + i * format->width, 0xee, format->width);
        } else {
            memcpy(bytes + i * format->width, value, format->width);
        }
    }
    arrow_case_buffer(it, array, bytes, format->width ? from->count * format->width : (from->count + 7) / 8);
}

static void array_emit(arrow_case *it, struct ArrowArray *array, const random_format *format, const positions *from, bool nulls)
{
    validity_emit(it, array, from, nulls);
    if (format->type != IVM_STRING) {
        numbers_emit(it, array, format, from);
    } else if (*format->format == 'v') {
        views_emit(it, array, from);
    } else {
        strings_emit(it, array, from, *format->format == 'U' ? 8 : 4);
    }
}

/* ---- One case ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_value value_at(const random_format *format, const positions *from, size_t at)
{
    int64_t number = from->number[at];
    if (from->null[at]) {
        return ivm_null();
    }
    switch (IVM_TYPE_KIND(format->type)) {
    case IVM_BOOL:
        return ivm_bool(number & 1);
    case IVM_STRING:
        return ivm_string(from->word[at]);
    case IVM_DATE:
        return ivm_date((int32_t)number);
    case IVM_TIMESTAMP:
        return ivm_timestamp(number);
    case IVM_DECIMAL_KIND:
        return ivm_decimal(format->type, (ivm_int128){ (uint64_t)number, 0 });
    default:
        return ivm_int64(number);
    }
}

static ivm_table *table_make(ivm_engine *engine, const char *name, ivm_type type)
{
    const ivm_column_definition column = { "v", type };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(engine, name, &(ivm_table_options){ .columns = &column, .columns_count = 1 }, &table, NULL), IVM_OK);
    return table;
}

/* Fills an array of `length` rows and adds the same rows one by one. */
static void case_make(arrow_case *it, const random_format *format, ivm_batch *batch, ivm_table *rows)
{
    positions values, indexes;
    bool nulls = below(2), coded = below(3) == 0;
    size_t length = below(20), outer = below(9), inner = below(9), total = outer + inner + length + below(4);
    arrow_case_init(it, (int64_t)length);
    it->shift = below(2);
    it->array.offset = (int64_t)outer;
    struct ArrowArray *array = arrow_case_field(it, "v", coded ? "S" : format->format);
    array->offset = (int64_t)inner;
    array->length = (int64_t)(total - inner);
    size_t shift = coded ? below(4) : 0, distinct = 1 + below(6);
    positions_draw(&values, coded ? shift + distinct : total, nulls);
    positions_draw(&indexes, total, nulls);
    if (coded) {
        static const random_format of_indexes = { "S", IVM_INT64, 2, 1 };
        for (size_t i = 0; i < total; i++) {
            indexes.number[i] = (int64_t)below(distinct);
        }
        array_emit(it, array, &of_indexes, &indexes, nulls);
        array = arrow_case_dictionary(it, format->format, (int64_t)distinct);
        array->offset = (int64_t)shift;
    }
    array_emit(it, array, format, &values, nulls);
    for (size_t r = 0; r < length; r++) {
        size_t at = outer + inner + r;
        ivm_value value =
            coded && indexes.null[at] ? ivm_null() : value_at(format, &values, coded ? shift + (size_t)indexes.number[at] : at);
        cr_assert_eq(ivm_batch_row(batch, rows, IVM_INSERT, 1, &value, 1), IVM_OK);
    }
}

Test(engine_arrow_random, as_rows_added_one_by_one)
{
    static arrow_case made;
    static char text[ARROW_TEXT_SIZE], expected[ARROW_TEXT_SIZE];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        ivm_engine *engine;
        ivm_batch *batch;
        ivm_error error = IVM_ERROR_INIT;
        state = seed;
        const random_format *format = &formats[below(sizeof formats / sizeof formats[0])];
        cr_assert_eq(ivm_engine_open(NULL, &engine, NULL), IVM_OK);
        ivm_table *arrays = table_make(engine, "arrays", format->type), *rows = table_make(engine, "rows", format->type);
        cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
        case_make(&made, format, batch, rows);
        ivm_status status = ivm_batch_arrow(batch, arrays, IVM_INSERT, &made.array, &made.schema, NULL);
        cr_assert_eq(status, IVM_OK, "seed %llu, format %s: %s", (unsigned long long)seed, format->format, batch->mistake.message);
        cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "seed %llu: %s", (unsigned long long)seed, error.message);
        cr_assert_eq(made.released, 1);
        arrow_table_text(arrays, text);
        arrow_table_text(rows, expected);
        cr_assert_str_eq(text, expected, "seed %llu, format %s: %s, not %s", (unsigned long long)seed, format->format, text, expected);
        cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    }
}
