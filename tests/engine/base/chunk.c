/* tests engine/base/chunk.c */
#include "chunk.h"

#include <criterion/criterion.h>
#include <math.h>

#include "allocator.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__arena arena;

static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(38, 4), IVM_FLOAT64, IVM_DATE };
#define COLUMNS 4u
#define ROWS 1000u

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__arena_init(&arena, &memory);
}

static void end(void)
{
    ivm__arena_deinit(&arena);
    cr_assert(test_allocator_is_clean(&counted));
}

/* Column 0 plain, 1 wide with nulls, 2 with nulls, 3 not carried; weights. NULL: out of memory. */
static ivm__chunk *sample(void)
{
    ivm__chunk *chunk = ivm__chunk_make(&arena, types, COLUMNS);
    if (!chunk || !ivm__vector_make(&arena, &chunk->columns[0], types[0], ROWS, false) ||
        !ivm__vector_make(&arena, &chunk->columns[1], types[1], ROWS, true) ||
        !ivm__vector_make(&arena, &chunk->columns[2], types[2], ROWS, true)) {
        return NULL;
    }
    chunk->rows_count = ROWS;
    chunk->weights = ivm__arena_allocate(&arena, ROWS * sizeof *chunk->weights);
    if (!chunk->weights) {
        return NULL;
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        bool null = i % 7 == 0;
        ((uint64_t *)chunk->columns[0].cells)[i] = i * 5;
        ((ivm__wide *)chunk->columns[1].cells)[i] = null ? 0 : ((ivm__wide)i << 70) + i;
        ((uint64_t *)chunk->columns[2].cells)[i] = null ? 0 : ivm__float_word(i * 0.5);
        chunk->columns[1].nulls[i] = chunk->columns[2].nulls[i] = null;
        chunk->weights[i] = (ivm__weight)i * -3;
    }
    return chunk;
}

static void row_check(const ivm__chunk *chunk, uint32_t row, uint32_t i)
{
    bool null = i % 7 == 0;
    cr_assert_eq(ivm__word(&chunk->columns[0], row), i * 5);
    cr_assert(!ivm__is_null(&chunk->columns[0], row));
    cr_assert_eq(ivm__is_null(&chunk->columns[1], row), null);
    cr_assert_eq(ivm__is_null(&chunk->columns[2], row), null);
    cr_assert(ivm__wide_cell(&chunk->columns[1], row) == (null ? 0 : ((ivm__wide)i << 70) + i));
    cr_assert_eq(ivm__word(&chunk->columns[2], row), null ? 0 : ivm__float_word(i * 0.5));
    cr_assert(ivm__chunk_weight(chunk, row) == (ivm__weight)i * -3);
}

Test(engine_chunk, made_columns_are_not_carried, .init = begin, .fini = end)
{
    ivm__chunk *chunk = ivm__chunk_make(&arena, types, COLUMNS);
    cr_assert_eq(chunk->rows_count, 0);
    cr_assert_null(chunk->weights);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_assert(chunk->columns[c].type == types[c] && !chunk->columns[c].cells && !chunk->columns[c].nulls);
    }
}

Test(engine_chunk, gather_takes_rows_in_any_order, .init = begin, .fini = end)
{
    const ivm__chunk *chunk = sample();
    uint32_t rows[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = i * 37 % ROWS;
    }
    const ivm__chunk *out = ivm__chunk_gather(&arena, chunk, rows, ROWS);
    cr_assert(out->rows_count == ROWS && out->columns_count == COLUMNS);
    cr_assert(!out->columns[0].nulls && !out->columns[3].cells && out->columns[3].type == IVM_DATE);
    for (uint32_t i = 0; i < ROWS; i++) {
        row_check(out, i, rows[i]);
    }
    const uint32_t twice[] = { 8, 8, 14 };
    out = ivm__chunk_gather(&arena, chunk, twice, 3);
    cr_assert_eq(out->rows_count, 3);
    row_check(out, 1, 8);
    row_check(out, 2, 14);
}

Test(engine_chunk, gather_clears_nulls_it_was_given, .init = begin, .fini = end)
{
    const ivm__chunk *chunk = sample();
    ivm__vector out;
    uint32_t row = 9;
    cr_assert(ivm__vector_make(&arena, &out, IVM_INT64, 1, true));
    out.nulls[0] = 1;
    ivm__vector_gather(&chunk->columns[0], &row, 1, &out);
    cr_assert_eq(ivm__word(&out, 0), 45);
    cr_assert_eq(out.nulls[0], 0);
}

Test(engine_chunk, every_failed_allocation_gives_null, .init = begin, .fini = end)
{
    const uint32_t rows[] = { 3, 1 };
    bool done = false;
    uint64_t n = 1;
    for (; !done; n++) {
        ivm__arena_deinit(&arena);
        test_allocator_arm(&counted, n);
        ivm__chunk *chunk = sample();
        /* fill up, so that gathering needs a block of its own */
        bool made = chunk && ivm__arena_allocate(&arena, 60000) && ivm__chunk_gather(&arena, chunk, rows, 2);
        done = !test_allocator_disarm(&counted);
        cr_assert_eq(made, done);
    }
    cr_assert_gt(n, 3);
}

static int compare(ivm_type type, ivm__wide a, ivm__wide b)
{
    int order = ivm__cell_compare(type, a, b), back = ivm__cell_compare(type, b, a);
    cr_assert_eq((order > 0) - (order < 0), (back < 0) - (back > 0));
    return (order > 0) - (order < 0);
}

Test(engine_chunk, cells_compare_in_their_type)
{
    uint64_t minus = (uint64_t)-5;
    cr_assert_eq(compare(IVM_INT64, minus, 3), -1);
    cr_assert_eq(compare(IVM_INT64, (uint64_t)INT64_MIN, (uint64_t)INT64_MAX), -1);
    cr_assert_eq(compare(IVM_DATE, minus, minus), 0);
    cr_assert_eq(compare(IVM_TIMESTAMP, 2, minus), 1);
    cr_assert_eq(compare(IVM_BOOL, 0, 1), -1);
    cr_assert_eq(compare(IVM_DECIMAL(38, 0), -((ivm__wide)1 << 100), 1), -1);
    cr_assert_eq(compare(IVM_DECIMAL(38, 0), (ivm__wide)1 << 100, 1), 1);
    static const double ascending[] = { -INFINITY, -1e300, -1, 0, 5e-324, 1, INFINITY, NAN };
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            cr_assert_eq(compare(IVM_FLOAT64, ivm__float_word(ascending[i]), ivm__float_word(ascending[j])), (i > j) - (i < j));
        }
    }
}

Test(engine_chunk, equal_floats_have_equal_words)
{
    cr_assert_eq(ivm__float_word(-0.0), ivm__float_word(0.0));
    cr_assert_eq(ivm__float_word(-NAN), ivm__float_word(NAN));
    cr_assert_eq(ivm__float_word(ivm__word_float(0xfff8000000000123ull)), ivm__float_word(NAN));
    cr_assert_eq(ivm__word_float(ivm__float_word(-1.5)), -1.5);
}
