/* tests engine/base/layout.c */
#include "layout.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "allocator.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__arena arena;

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

static ivm__layout *layout_of(const ivm_type *types, const bool *nullable, uint32_t count, bool packed)
{
    ivm__layout *layout;
    cr_assert_eq(ivm__layout_create(&memory, types, nullable, count, packed, &layout), IVM_OK);
    return layout;
}

Test(engine_layout, strides_are_narrow_and_aligned, .init = begin, .fini = end)
{
    ivm_type types[20];
    bool none[20] = { false };
    for (uint32_t i = 0; i < 20; i++) {
        types[i] = IVM_INT64;
    }
    static const struct {
        uint32_t columns, packed, keyed, nulls_packed, nulls_keyed;
    } expected[] = { { 1, 12, 16, 20, 20 },  { 2, 20, 20, 28, 28 },   { 3, 28, 28, 36, 64 }, { 5, 44, 64, 52, 64 },
                     { 7, 60, 64, 68, 128 }, { 8, 68, 128, 76, 128 }, { 0, 4, 16, 4, 16 },   { 20, 164, 192, 172, 192 } };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        uint32_t columns = expected[i].columns;
        uint32_t strides[4];
        for (uint32_t form = 0; form < 4; form++) {
            ivm__layout *layout = layout_of(types, form < 2 ? none : NULL, columns, form % 2 == 0);
            strides[form] = layout->stride;
            cr_assert_eq(layout->body_bytes, columns * 8 + layout->null_words * 8);
            ivm__layout_release(layout);
        }
        cr_assert_eq(strides[0], expected[i].packed);
        cr_assert_eq(strides[1], expected[i].keyed);
        cr_assert_eq(strides[2], expected[i].nulls_packed);
        cr_assert_eq(strides[3], expected[i].nulls_keyed);
    }
}

Test(engine_layout, cells_stand_in_column_order, .init = begin, .fini = end)
{
    const ivm_type types[] = { IVM_STRING, IVM_DECIMAL(10, 2), IVM_BOOL, IVM_STRING };
    const bool nullable[] = { false, true, false, false };
    ivm__layout *layout = layout_of(types, nullable, 4, true);
    const uint32_t offsets[] = { 12, 20, 36, 44 };
    cr_assert_arr_eq(layout->offsets, offsets, sizeof offsets);
    cr_assert_eq(layout->texts_count, 2);
    cr_assert(layout->texts[0] == 12 && layout->texts[1] == 44);
    cr_assert_eq(ivm__layout_acquire(layout), layout);
    ivm__layout_release(layout);
    cr_assert_eq(counted.blocks, 1);
    ivm__layout_release(layout);
    ivm__layout_release(NULL);
}

Test(engine_layout, failed_allocation, .init = begin, .fini = end)
{
    const ivm_type types[] = { IVM_INT64 };
    ivm__layout *layout;
    test_allocator_arm(&counted, 1);
    cr_assert_eq(ivm__layout_create(&memory, types, NULL, 1, true, &layout), IVM_OUT_OF_MEMORY);
}

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

#define COLUMNS_MAX 140u

typedef struct sample {
    uint32_t columns_count, rows_count;
    ivm_type types[COLUMNS_MAX];
    bool nullable[COLUMNS_MAX];
    uint32_t columns[COLUMNS_MAX]; /* where in the chunk: backwards */
    ivm__chunk *chunk;
} sample;

static void sample_make(sample *s, uint32_t *seed)
{
    s->columns_count = 1 + draw(seed) % (draw(seed) % 4 ? 8 : COLUMNS_MAX);
    s->rows_count = 1 + draw(seed) % IVM__CHUNK_ROWS;
    bool any_null = draw(seed) % 2;
    ivm_type chunk_types[COLUMNS_MAX];
    for (uint32_t c = 0; c < s->columns_count; c++) {
        s->types[c] = draw(seed) % 3 ? IVM_INT64 : IVM_DECIMAL(38, 0);
        s->nullable[c] = any_null && draw(seed) % 2;
        s->columns[c] = s->columns_count - 1 - c;
        chunk_types[s->columns[c]] = s->types[c];
    }
    s->chunk = ivm__chunk_make(&arena, chunk_types, s->columns_count);
    s->chunk->rows_count = s->rows_count;
    for (uint32_t c = 0; c < s->columns_count; c++) {
        ivm__vector *vector = &s->chunk->columns[s->columns[c]];
        cr_assert(ivm__vector_make(&arena, vector, s->types[c], s->rows_count, s->nullable[c]));
        uint32_t words = ivm__type_words(s->types[c]);
        for (uint32_t i = 0; i < s->rows_count; i++) {
            bool null = s->nullable[c] && draw(seed) % 3 == 0;
            for (uint32_t w = 0; w < words; w++) {
                ((uint64_t *)vector->cells)[i * words + w] = null ? 0 : (uint64_t)draw(seed) << 40 ^ draw(seed);
            }
            if (vector->nulls) {
                vector->nulls[i] = null;
            }
        }
    }
}

static void column_check(const sample *s, const ivm__layout *layout, uint32_t c, uint32_t first, uint8_t *const *rows)
{
    const ivm__vector *in = &s->chunk->columns[s->columns[c]];
    uint32_t count = s->rows_count - first;
    ivm__vector out;
    cr_assert(ivm__vector_make(&arena, &out, s->types[c], count, true));
    memset(out.nulls, 9, count);
    ivm__layout_gather(layout, c, (const uint8_t *const *)rows, count, &out);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(out.nulls[i], ivm__is_null(in, first + i));
        cr_assert_eq(ivm__row_is_null(layout, rows[i], c), ivm__is_null(in, first + i));
        if (ivm__type_is_wide(in->type)) {
            cr_assert(ivm__wide_cell(&out, i) == ivm__wide_cell(in, first + i));
            cr_assert(ivm__row_wide(layout, rows[i], c) == ivm__wide_cell(in, first + i));
        } else {
            cr_assert_eq(ivm__word(&out, i), ivm__word(in, first + i));
            cr_assert_eq(ivm__row_word(layout, rows[i], c), ivm__word(in, first + i));
        }
    }
    out.nulls = NULL;
    ivm__layout_gather(layout, c, (const uint8_t *const *)rows, count, &out);
}

/* What is scattered is gathered again, and nothing but the bodies is written. */
static void random_run(uint32_t seed)
{
    sample s;
    sample_make(&s, &seed);
    bool packed = draw(&seed) % 2;
    uint32_t first = draw(&seed) % s.rows_count, count = s.rows_count - first;
    ivm__layout *layout = layout_of(s.types, s.nullable, s.columns_count, packed);
    uint8_t *bytes = ivm__arena_allocate(&arena, (size_t)count * layout->stride);
    memset(bytes, 0xee, (size_t)count * layout->stride);
    uint8_t *rows[IVM__CHUNK_ROWS];
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = bytes + (size_t)(count - 1 - i) * layout->stride;
    }
    ivm__layout_scatter(layout, s.chunk, s.columns, first, count, rows);
    for (uint32_t c = 0; c < s.columns_count; c++) {
        column_check(&s, layout, c, first, rows);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t b = 0; b < layout->stride; b++) {
            if (b < IVM__ROW_HEADER || b >= IVM__ROW_HEADER + layout->body_bytes) {
                cr_assert_eq(rows[i][b], 0xee);
            }
        }
    }
    ivm__layout_release(layout);
    ivm__arena_reset(&arena);
}

Test(engine_layout, random_scatter_and_gather, .init = begin, .fini = end)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        fprintf(stderr, "seed %u\n", seed);
        random_run(seed);
    }
}
