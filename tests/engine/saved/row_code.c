/* Tests of engine/saved/row_code.c and row_read.c: random rows of every type are read as they were written; whatever else is read, were it ever so
 * damaged, is either refused or is rows that would be written just so. */
#include "row_code.h"
#include "row_stream.h"

#include <criterion/criterion.h>

#include "chunk_arrays.h"
#include "row_model.h"

static const ivm_type all_types[] = { IVM_BOOL, IVM_INT64,     IVM_FLOAT64,        IVM_STRING,
                                      IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(38, 4), IVM_DECIMAL(9, 2) };
#define ALL_TYPES (sizeof all_types / sizeof *all_types)

/* All rows of the model, as they stand. */
static void rows_write(row_model *with, const ivm__row_shape *shape, ivm__memory_sink *sink)
{
    ivm__memory_sink_init(sink, &with->memory);
    for (uint32_t i = 0, count; i < with->rows_count; i += count) {
        count = with->rows_count - i < IVM__CHUNK_ROWS ? with->rows_count - i : IVM__CHUNK_ROWS;
        cr_assert_eq(ivm__rows_write(&sink->sink, shape, row_model_chunk(with, i, count)), IVM_OK);
        ivm__arena_reset(&with->arena);
    }
    cr_assert_eq(ivm__rows_write_end(&sink->sink), IVM_OK);
}

/* Reads rows and holds them against the model's, or, where `again` is given, writes them again there. */
static ivm_status rows_read(row_model *with, const ivm__row_shape *shape, const uint8_t *bytes, size_t size, ivm__memory_sink *again)
{
    ivm__row_reader reader;
    ivm__memory_feed feed;
    ivm__chunk *chunk = NULL;
    uint32_t done = 0;
    with->error = (ivm_error)IVM_ERROR_INIT;
    ivm__memory_feed_init(&feed, bytes, size, &with->error);
    ivm_status status = ivm__row_reader_init(&reader, &with->memory, &with->texts, shape, &feed.feed);
    while (status == IVM_OK && (status = ivm__row_reader_next(&reader, &with->arena, &chunk)) == IVM_OK && chunk) {
        if (again) {
            status = ivm__rows_write(&again->sink, shape, chunk);
        } else {
            cr_assert(row_model_chunk_is(with, chunk, done), "rows from %u on", done);
        }
        done += chunk->rows_count;
        ivm__arena_reset(&with->arena);
    }
    if (status == IVM_OK && again) {
        status = ivm__rows_write_end(&again->sink);
    }
    ivm__row_reader_deinit(&reader);
    cr_assert(again || status != with->error.status || status || (done == with->rows_count && feed.at == feed.end));
    cr_assert_eq(status, with->error.status);
    ivm__arena_reset(&with->arena);
    return status;
}

static ivm__row_shape shape_of(const row_model *with, ivm__weights_kind weights)
{
    return (ivm__row_shape){ .types = with->types, .columns_count = with->columns_count, .weights = weights };
}

static void round_trip(uint64_t seed, const ivm_type *types, uint32_t columns_count, uint32_t rows_count)
{
    static const uint32_t nulls[] = { 0, 3, 100, 50 };
    row_model with;
    ivm__memory_sink sink;
    row_model_open(&with, seed, types, columns_count);
    with.domain = rows_count + 20;
    with.nulls_per_cent = columns_count > 1 ? nulls[seed % 4] : 0;
    ivm__weights_kind weights = (ivm__weights_kind)(seed % 3);
    row_model_fill(&with, rows_count, weights);
    row_model_sort(&with, NULL, 0);
    for (uint32_t i = 0; weights == IVM__WEIGHTS_ONE && i < with.rows_count; i++) {
        with.rows[i].weight = 1;
    }
    ivm__row_shape shape = shape_of(&with, weights);
    rows_write(&with, &shape, &sink);
    cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, NULL), IVM_OK, "seed %lu: %s", (unsigned long)seed,
                 with.error.message);
    ivm__memory_sink_deinit(&sink);
    row_model_close(&with);
}

Test(engine_row_code, every_type_is_read_as_it_was_written)
{
    static const uint32_t counts[] = { 0, 1, 2, 7, 8, 9, 500, 1500, 5000 };
    for (uint64_t seed = 1; seed <= 12; seed++) {
        for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            round_trip(seed, all_types, ALL_TYPES, counts[i]);
        }
        for (uint32_t t = 0; t < ALL_TYPES; t++) {
            round_trip(seed, &all_types[t], 1, 200);
        }
    }
}

/* Distinct integers, so that there are just as many. */
/* A checkpoint that nobody could read again would be found out when it is too late. */
Test(engine_row_code, weights_that_no_reader_takes_are_not_written)
{
    static const struct {
        ivm__weights_kind kind;
        int64_t weight;
        ivm_status status;
    } cases[] = { { IVM__WEIGHTS_ONE, 1, IVM_OK },     { IVM__WEIGHTS_ONE, 2, IVM_CORRUPT },      { IVM__WEIGHTS_ONE, -1, IVM_CORRUPT },
                  { IVM__WEIGHTS_ABOVE_0, 2, IVM_OK }, { IVM__WEIGHTS_ABOVE_0, -1, IVM_CORRUPT }, { IVM__WEIGHTS_NOT_0, -1, IVM_OK } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        row_model with;
        ivm__memory_sink sink;
        ivm_error error = IVM_ERROR_INIT;
        row_model_open(&with, 1, all_types, 2);
        row_model_fill(&with, 1, IVM__WEIGHTS_ONE);
        with.rows[0].weight = cases[i].weight;
        ivm__row_shape shape = shape_of(&with, cases[i].kind);
        ivm__memory_sink_init(&sink, &with.memory);
        ivm_status status = ivm__rows_write(&sink.sink, &shape, row_model_chunk(&with, 0, 1));
        cr_expect_eq(status, cases[i].status, "case %zu: %s", i, ivm_status_name(status));
        ivm__memory_sink_deinit(&sink);
        row_model_close(&with);
        cr_expect(status == IVM_OK || (ivm__rows_save_tell(&error, status) == status && error.message[0]));
    }
}

Test(engine_row_code, numbers_of_rows_about_a_chunk)
{
    static const uint32_t counts[] = { 0, 1, 1023, 1024, 1025, 2047, 2048, 2049 };
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const ivm_type types[] = { IVM_INT64, IVM_STRING };
        row_model with;
        ivm__memory_sink sink;
        row_model_open(&with, 3, types, 2);
        row_model_fill(&with, counts[i], IVM__WEIGHTS_ONE);
        for (uint32_t row = 0; row < counts[i]; row++) {
            with.rows[row].cells[0] = row;
            with.rows[row].nulls[0] = false;
        }
        ivm__row_shape shape = shape_of(&with, IVM__WEIGHTS_ONE);
        rows_write(&with, &shape, &sink);
        cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, NULL), IVM_OK, "%u rows", counts[i]);
        ivm__memory_sink_deinit(&sink);
        row_model_close(&with);
    }
}

/* Rows in no order, equal ones apart, in chunks of any number: loose ones are read so, others are not. */
Test(engine_row_code, loose_rows_come_as_they_stand)
{
    static const uint32_t counts[] = { 1, 700, 1024, 3, 372 };
    row_model with;
    ivm__memory_sink sink;
    row_model_open(&with, 11, all_types, ALL_TYPES);
    with.domain = 50;
    with.nulls_per_cent = 20;
    row_model_fill(&with, 2100, IVM__WEIGHTS_NOT_0);
    ivm__row_shape shape = shape_of(&with, IVM__WEIGHTS_NOT_0);
    ivm__memory_sink_init(&sink, &with.memory);
    for (uint32_t i = 0, first = 0; i < sizeof counts / sizeof *counts; first += counts[i++]) {
        cr_assert_eq(ivm__rows_write(&sink.sink, &shape, row_model_chunk(&with, first, counts[i])), IVM_OK);
        ivm__arena_reset(&with.arena);
    }
    cr_assert_eq(ivm__rows_write_end(&sink.sink), IVM_OK);
    cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, NULL), IVM_CORRUPT);
    shape.loose = true;
    cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, NULL), IVM_OK, "%s", with.error.message);
    ivm__memory_sink_deinit(&sink);
    row_model_close(&with);
}

static bool is_cell(const ivm__vector *in, uint32_t row, const ivm_value *value)
{
    if (ivm__is_null(in, row)) {
        return value->is_null;
    }
    switch (IVM_TYPE_KIND(in->type)) {
    case IVM_BOOL:
        return value->as.boolean == ivm__word(in, row);
    case IVM_DATE:
        return value->as.date == (int32_t)ivm__word(in, row);
    case IVM_STRING:
        return value->as.string.size == ivm__text_cell(in, row)->size &&
               memcmp(value->as.string.bytes, ivm__text_cell(in, row)->bytes, value->as.string.size) == 0;
    case IVM_DECIMAL_KIND:
        return (ivm__wide)((unsigned __int128)(uint64_t)value->as.decimal.high << 64 | value->as.decimal.low) == ivm__wide_cell(in, row);
    default:
        return (uint64_t)value->as.int64 == ivm__word(in, row);
    }
}

Test(engine_row_code, chunks_are_arrays_of_the_same_values)
{
    row_model with;
    ivm_rows rows;
    row_model_open(&with, 12, all_types, ALL_TYPES);
    with.domain = 500;
    with.nulls_per_cent = 20;
    row_model_fill(&with, 300, IVM__WEIGHTS_NOT_0);
    const ivm__chunk *chunk = row_model_chunk(&with, 0, 300);
    cr_assert_eq(ivm__chunk_arrays(&with.arena, chunk, 13, 200, &rows), IVM_OK);
    cr_assert(rows.rows_count == 200 && rows.columns_count == ALL_TYPES);
    for (uint32_t i = 0; i < 200; i++) {
        cr_assert_eq(rows.weights ? rows.weights[i] : 1, ivm__chunk_weight(chunk, 13 + i));
        for (uint32_t c = 0; c < ALL_TYPES; c++) {
            ivm_value value = ivm_rows_value(&rows, all_types[c], i, c);
            cr_assert(value.is_null == ivm__is_null(&chunk->columns[c], 13 + i) && is_cell(&chunk->columns[c], 13 + i, &value),
                      "row %u, column %u", i, c);
        }
    }
    ivm__arena_reset(&with.arena);
    row_model_close(&with);
}

static void row_set(row_model *with, uint32_t at, ivm__wide first, ivm__wide second)
{
    with->rows[at].nulls[1] = false;
    with->rows[at].cells[0] = (uint64_t)first;
    with->rows[at].cells[1] = (uint64_t)second;
}

/* By its key a table's rows are unique: rows that differ elsewhere are refused. */
Test(engine_row_code, rows_ascend_strictly_by_the_order_s_columns)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    static const uint32_t by_second[] = { 1 }, by_both[] = { 1, 0 };
    row_model with;
    row_model_open(&with, 1, types, 2);
    with.nulls_per_cent = 0;
    row_model_fill(&with, 2000, IVM__WEIGHTS_ONE);
    for (uint32_t at = 1; at < 2000; at += at == 1022 ? 1 : at == 1025 ? 900 : at < 1022 ? 1021 : 1) {
        for (uint32_t way = 0; way < 6; way++) {
            for (uint32_t i = 0; i < 2000; i++) {
                row_set(&with, i, -(ivm__wide)i, i);
            }
            if (way < 2) { /* like the row before in the second column, in the first too */
                row_set(&with, at, with.rows[at - 1].cells[0] - (way == 1), at - 1);
            } else if (way == 2) {
                row_set(&with, at, 7, (ivm__wide)at - 2);
            } else if (way == 3) {
                with.rows[at].nulls[1] = true;
                with.rows[at].cells[1] = 0;
            }
            with.nulls_per_cent = way == 3;
            ivm__memory_sink sink;
            ivm__row_shape shape = shape_of(&with, IVM__WEIGHTS_ONE);
            shape.order = way % 2 ? by_both : by_second;
            shape.order_count = way % 2 ? 2 : 1;
            rows_write(&with, &shape, &sink);
            bool last = way == 3 && at + 1 == 2000;
            bool fine = way >= 4 || last;
            cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, NULL), fine ? IVM_OK : IVM_CORRUPT, "row %u, way %u", at,
                         way);
            ivm__memory_sink_deinit(&sink);
        }
    }
    row_model_close(&with);
}

/* ---- Bytes that cannot be -------------------------------------------------------------------------------------------------------------- */

typedef struct bytes_case {
    ivm_type type;
    ivm__weights_kind weights;
    ivm_status status;
    const char *bytes;
    size_t size;
} bytes_case;

#define CASE(type, weights, status, bytes)                                                                                                 \
    {                                                                                                                                      \
        type, IVM__WEIGHTS_##weights, IVM_##status, bytes, sizeof bytes - 1                                                                \
    }
#define ZERO_7 "\0\0\0\0\0\0\0"
#define ONES_8 "\377\377\377\377\377\377\377\377"

/* One column, not null in the even cases. */
static const bytes_case bytes_cases[] = {
    CASE(IVM_INT64, ONE, OK, "\0\0"),
    CASE(IVM_INT64, ONE, OK, "\0\0"),
    CASE(IVM_INT64, ONE, OK, "\1\0\0\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ONE, OK, "\2\0\0\1\2\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ONE, CORRUPT, "\2\0\0\1\2\5" ZERO_7 "\0\0"), /* a null where none may be */
    CASE(IVM_INT64, ONE, CORRUPT, "\2\0\0\1\1\5" ZERO_7 "\0\0"), /* nulls are last */
    CASE(IVM_INT64, ONE, CORRUPT, "\1\0\0\2\5" ZERO_7 "\0\0"),   /* an unknown tag */
    CASE(IVM_INT64, ONE, CORRUPT, "\1\0\0\1\0\5" ZERO_7 "\0\0"), /* no null, but the tag */
    CASE(IVM_INT64, ONE, CORRUPT, "\1\0\0\0\5" ZERO_7),          /* no end */
    CASE(IVM_INT64, ONE, CORRUPT, "\2\0\0\1\6\5" ZERO_7 "\0\0"), /* a bit past the last row */
    CASE(IVM_INT64, ONE, CORRUPT, "\1\0\1\2" ZERO_7 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ABOVE_0, CORRUPT, "\1\0\1\1" ZERO_7 "\0\5" ZERO_7 "\0\0"), /* weights that are all 1 */
    CASE(IVM_INT64, ABOVE_0, OK, "\1\0\1\2" ZERO_7 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ABOVE_0, CORRUPT, "\1\0\1\0" ZERO_7 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ABOVE_0, CORRUPT, "\1\0\1" ONES_8 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, NOT_0, OK, "\1\0\1" ONES_8 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, NOT_0, CORRUPT, "\1\0\1\0" ZERO_7 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, NOT_0, CORRUPT, "\1\0\2" ONES_8 "\0\5" ZERO_7 "\0\0"),
    CASE(IVM_INT64, ONE, CORRUPT, "\1\0\0\0\5" ZERO_7 "\1\0\0\0\6" ZERO_7 "\0\0"), /* a chunk that was not full, and one more */
    CASE(IVM_INT64, ONE, CORRUPT, "\1\4\0\0"),                                     /* 1025 rows */
    CASE(IVM_INT64, ONE, CORRUPT, "\2\0\0\0\5" ZERO_7 "\5" ZERO_7 "\0\0"),         /* twice */
    CASE(IVM_INT64, ONE, CORRUPT, "\2\0\0\0\5" ZERO_7 "\4" ZERO_7 "\0\0"),
    CASE(IVM_FLOAT64, ONE, CORRUPT, "\1\0\0\0\0\0\0\0\0\0\0\200\0\0"), /* -0.0 */
    CASE(IVM_FLOAT64, ONE, CORRUPT, "\1\0\0\0\1\0\0\0\0\0\370\177\0\0"),
    CASE(IVM_FLOAT64, ONE, OK, "\1\0\0\0\0\0\0\0\0\0\370\177\0\0"),
    CASE(IVM_FLOAT64, ONE, CORRUPT, "\1\0\0\0\0\0\0\0\0\0\370\377\0\0"),
    CASE(IVM_BOOL, ONE, OK, "\2\0\0\0\2\0\0"),
    CASE(IVM_BOOL, ONE, CORRUPT, "\2\0\0\0\6\0\0"),
    CASE(IVM_BOOL, ONE, CORRUPT, "\2\0\0\0\1\0\0"),
    CASE(IVM_DECIMAL(2, 1), ONE, OK, "\1\0\0\0\143" ZERO_7 ZERO_7 "\0\0\0"),
    CASE(IVM_DECIMAL(2, 1), ONE, CORRUPT, "\1\0\0\0\144" ZERO_7 ZERO_7 "\0\0\0"),
    CASE(IVM_DECIMAL(2, 1), ONE, CORRUPT, "\1\0\0\0" ZERO_7 "\0" ZERO_7 "\200\0\0"),
    CASE(IVM_DECIMAL(2, 1), ONE, OK, "\1\0\0\0\235\377\377\377\377\377\377\377" ONES_8 "\0\0"),
    CASE(IVM_STRING, ONE, OK, "\2\0\0\0\0\0\0\0\2\0\0\0a\0\0\0"),
    CASE(IVM_STRING, ONE, CORRUPT, "\2\0\0\0\2\0\0\0\1\0\0\0a\0a\0\0"),
    CASE(IVM_STRING, ONE, CORRUPT, "\1\0\0\0\0\0\0\200\0\0"), /* 2^31 */
    CASE(IVM_STRING, ONE, CORRUPT, "\1\0\0\0\377\377\377\177\0\0"),
};

Test(engine_row_code, bytes_that_cannot_be_are_refused)
{
    for (uint32_t i = 0; i < sizeof bytes_cases / sizeof *bytes_cases; i++) {
        const bytes_case *it = &bytes_cases[i];
        row_model with;
        ivm__memory_sink again;
        bool nullable = i % 2;
        row_model_open(&with, 1, &it->type, 1);
        ivm__memory_sink_init(&again, &with.memory);
        ivm__row_shape shape = shape_of(&with, it->weights);
        shape.nullable = &nullable;
        cr_assert_eq(rows_read(&with, &shape, (const uint8_t *)it->bytes, it->size, &again), it->status, "case %u", i);
        if (it->status == IVM_OK) {
            cr_assert(again.bytes.size == it->size && memcmp(again.bytes.at, it->bytes, it->size) == 0, "case %u", i);
        }
        ivm__memory_sink_deinit(&again);
        row_model_close(&with);
    }
}

/* A string of 2 GB where 200 KB come: memory is asked for as they come (bytes.c's test looks at how much), not before. */
Test(engine_row_code, lengths_that_were_made_up_cost_nothing)
{
    enum { BYTES = 200000 };
    static const ivm_type type = IVM_STRING;
    static uint8_t bytes[BYTES] = "\2\0\0\0\377\377\377\177\377\377\377\177";
    row_model with;
    row_model_open(&with, 1, &type, 1);
    ivm__memory_sink again;
    ivm__memory_sink_init(&again, &with.memory);
    ivm__row_shape shape = shape_of(&with, IVM__WEIGHTS_ONE);
    uint64_t calls = with.allocator.calls;
    cr_assert_eq(rows_read(&with, &shape, bytes, BYTES, &again), IVM_CORRUPT);
    cr_assert_leq(with.allocator.calls - calls, 8u);
    ivm__memory_sink_deinit(&again);
    row_model_close(&with);
}

/* One byte changed, or the end cut off: refused, or read as rows that are written so. */
static void damage(uint64_t seed, ivm__weights_kind weights)
{
    row_model with;
    ivm__memory_sink sink, again;
    row_model_open(&with, seed, all_types, ALL_TYPES);
    with.nulls_per_cent = seed % 2 ? 30 : 0;
    row_model_fill(&with, 12, weights);
    row_model_sort(&with, NULL, 0);
    for (uint32_t i = 0; weights == IVM__WEIGHTS_ONE && i < with.rows_count; i++) {
        with.rows[i].weight = 1;
    }
    ivm__row_shape shape = shape_of(&with, weights);
    rows_write(&with, &shape, &sink);
    uint32_t refused = 0;
    for (size_t at = 0; at < sink.bytes.size; at++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            sink.bytes.at[at] ^= (uint8_t)(1 << bit);
            ivm__memory_sink_init(&again, &with.memory);
            ivm_status status = rows_read(&with, &shape, sink.bytes.at, sink.bytes.size, &again);
            cr_assert(status == IVM_OK || status == IVM_CORRUPT);
            /* a smaller number of rows ends before the end: the section's reader finds what is left */
            size_t size = status == IVM_OK ? again.bytes.size : 0;
            cr_assert(size <= sink.bytes.size && (!size || memcmp(again.bytes.at, sink.bytes.at, size) == 0), "byte %zu, bit %u", at, bit);
            refused += status == IVM_CORRUPT;
            ivm__memory_sink_deinit(&again);
            sink.bytes.at[at] ^= (uint8_t)(1 << bit);
        }
        ivm__memory_sink_init(&again, &with.memory);
        cr_assert_eq(rows_read(&with, &shape, sink.bytes.at, at, &again), IVM_CORRUPT, "cut at %zu", at);
        ivm__memory_sink_deinit(&again);
    }
    cr_assert_gt(refused, 50);
    ivm__memory_sink_deinit(&sink);
    row_model_close(&with);
}

Test(engine_row_code, damaged_bytes_are_refused_or_are_other_rows)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        damage(seed, (ivm__weights_kind)(seed % 3));
    }
}

Test(engine_row_code, memory_failing_leaves_nothing)
{
    row_model with;
    ivm__memory_sink sink;
    row_model_open(&with, 9, all_types, ALL_TYPES);
    with.domain = 3000;
    row_model_fill(&with, 2500, IVM__WEIGHTS_NOT_0);
    row_model_sort(&with, NULL, 0);
    ivm__row_shape shape = shape_of(&with, IVM__WEIGHTS_NOT_0);
    rows_write(&with, &shape, &sink);
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm__arena_deinit(&with.arena);
        ivm__texts_deinit(&with.texts);
        ivm__arena_init(&with.arena, &with.memory);
        ivm__texts_init(&with.texts, &with.memory, 1);
        int64_t bytes = with.allocator.bytes;
        ivm__memory_sink again;
        ivm__memory_sink_init(&again, &with.memory);
        with.error = (ivm_error)IVM_ERROR_INIT;
        ivm__row_reader reader;
        ivm__memory_feed feed;
        ivm__chunk *chunk = NULL;
        ivm__memory_feed_init(&feed, sink.bytes.at, sink.bytes.size, &with.error);
        test_allocator_arm(&with.allocator, n);
        ivm_status status = ivm__row_reader_init(&reader, &with.memory, &with.texts, &shape, &feed.feed);
        while (status == IVM_OK && (status = ivm__row_reader_next(&reader, &with.arena, &chunk)) == IVM_OK && chunk) {
            ivm__arena_reset(&with.arena);
        }
        ivm__row_reader_deinit(&reader);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(status, with.error.status);
        ivm__arena_deinit(&with.arena);
        ivm__texts_deinit(&with.texts);
        cr_assert_eq(with.allocator.bytes, bytes, "call %lu", (unsigned long)n);
        ivm__arena_init(&with.arena, &with.memory);
        ivm__texts_init(&with.texts, &with.memory, 1);
    }
    ivm__memory_sink_deinit(&sink);
    row_model_close(&with);
}
