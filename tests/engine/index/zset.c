/* tests engine/index/zset.c, store_chunk.c */
#include "zset.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocator.h"

/* ---- A model: every possible row's weight ------------------------------------------------------------------------------------------- */

#define VALUES 4u /* of each column: 0 is null where it may be */
#define COLUMNS 3u
#define ROWS (VALUES * VALUES * VALUES)

typedef struct model {
    uint64_t random;
    test_allocator counted;
    ivm__memory memory;
    ivm__arena arena;
    ivm__texts texts;
    const ivm__text *text[VALUES];
    ivm__layout *layout;
    ivm__zset zset;
    ivm__index *others[2];
    bool nullable;
    ivm__weight before[ROWS], after[ROWS];
} model;

static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(38, 0) };
static uint64_t seed_running;

static void seed_tell(void)
{
    if (seed_running) {
        fprintf(stderr, "failed with seed %llu\n", (unsigned long long)seed_running);
    }
}

static uint64_t below(model *self, uint64_t bound)
{
    uint64_t x = self->random += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (x ^ x >> 31) % bound;
}

static model *model_begin(uint64_t seed, bool nullable)
{
    model *self = calloc(1, sizeof *self);
    self->random = seed_running = seed;
    self->nullable = nullable;
    test_allocator_init(&self->counted);
    ivm_allocator functions = test_allocator_functions(&self->counted);
    ivm__memory_init(&self->memory, &functions);
    ivm__arena_init(&self->arena, &self->memory);
    ivm__texts_init(&self->texts, &self->memory, seed);
    for (uint32_t i = 0; i < VALUES; i++) {
        char byte = (char)('a' + i);
        cr_assert_eq(ivm__texts_intern(&self->texts, &byte, 1, &self->text[i]), IVM_OK);
    }
    bool none[COLUMNS] = { false, false, false };
    cr_assert_eq(ivm__layout_create(&self->memory, types, nullable ? NULL : none, COLUMNS, true, &self->layout), IVM_OK);
    cr_assert_eq(ivm__zset_init(&self->zset, &self->memory, &self->texts, seed, self->layout), IVM_OK);
    return self;
}

static void model_end(model *self)
{
    ivm__zset_deinit(&self->zset);
    ivm__layout_release(self->layout);
    for (uint32_t i = 0; i < VALUES; i++) {
        cr_assert_eq(self->text[i]->references, 0);
    }
    ivm__arena_deinit(&self->arena);
    ivm__texts_deinit(&self->texts);
    cr_assert(test_allocator_is_clean(&self->counted));
    free(self);
    seed_running = 0;
}

/* Row number `row` has value row / VALUES^c % VALUES in column c. */
static uint32_t value_of(uint32_t row, uint32_t column)
{
    return row / (column == 0 ? 1 : column == 1 ? VALUES : VALUES * VALUES) % VALUES;
}

static void cell_write(const model *self, ivm__vector *out, uint32_t at, uint32_t column, uint32_t value)
{
    bool null = self->nullable && value == 0;
    if (out->nulls) {
        out->nulls[at] = null;
    }
    if (column == 2) {
        ((ivm__wide *)out->cells)[at] = null ? 0 : ((ivm__wide)value << 90) - 1;
    } else {
        uint64_t word = column == 1 ? (uint64_t)(uintptr_t)self->text[value] : value - 1;
        ((uint64_t *)out->cells)[at] = null ? 0 : word;
    }
}

static uint32_t cell_value(const model *self, const ivm__vector *in, uint32_t at, uint32_t column)
{
    for (uint32_t value = 0; value < VALUES; value++) {
        bool null = self->nullable && value == 0;
        if (null != ivm__is_null(in, at)) {
            continue;
        }
        uint64_t word = column == 1 ? (uint64_t)(uintptr_t)self->text[value] : value - 1;
        if (null || (column == 2 ? ivm__wide_cell(in, at) == ((ivm__wide)value << 90) - 1 : ivm__word(in, at) == word)) {
            return value;
        }
    }
    cr_assert(false, "no value of the model");
    return 0;
}

/* Random rows, with room for columns that the Z-set does not take; order[c] is where column c went. */
static ivm__chunk *chunk_random(model *self, uint32_t rows_count, const uint32_t *order, uint32_t *rows)
{
    ivm_type chunk_types[COLUMNS + 1] = { IVM_BOOL, IVM_BOOL, IVM_BOOL, IVM_BOOL };
    for (uint32_t c = 0; c < COLUMNS; c++) {
        chunk_types[order[c]] = types[c];
    }
    ivm__chunk *chunk = ivm__chunk_make(&self->arena, chunk_types, COLUMNS + 1);
    chunk->rows_count = rows_count;
    uint32_t values = 1 + (uint32_t)below(self, VALUES);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_assert(ivm__vector_make(&self->arena, &chunk->columns[order[c]], types[c], rows_count, self->nullable));
    }
    for (uint32_t i = 0; i < rows_count; i++) {
        rows[i] = (uint32_t)(below(self, values) + below(self, values) * VALUES + below(self, values) * VALUES * VALUES);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            cell_write(self, &chunk->columns[order[c]], i, c, value_of(rows[i], c));
        }
    }
    if (below(self, 3)) {
        static const int64_t weights[] = { 1, -1, 0, 2, -2, INT32_MAX, INT32_MIN, 1ll << 40, -(1ll << 40) };
        chunk->weights = ivm__arena_allocate(&self->arena, rows_count * sizeof *chunk->weights);
        for (uint32_t i = 0; i < rows_count; i++) {
            chunk->weights[i] = weights[below(self, 9)];
        }
    }
    return chunk;
}

static ivm_status chunk_add(model *self, uint32_t rows_count)
{
    static const uint32_t orders[][COLUMNS] = { { 0, 1, 2 }, { 2, 0, 1 }, { 3, 1, 0 }, { 0, 1, 2 } };
    uint32_t which = (uint32_t)below(self, 4);
    uint32_t *rows = calloc(rows_count, sizeof *rows);
    ivm__chunk *chunk = chunk_random(self, rows_count, orders[which], rows);
    int sign = below(self, 2) ? 1 : -1;
    ivm_status status = ivm__zset_add(&self->zset, &self->arena, chunk, which ? orders[which] : NULL, sign);
    for (uint32_t i = 0; status == IVM_OK && i < rows_count; i++) {
        self->after[rows[i]] += sign * ivm__chunk_weight(chunk, i);
    }
    free(rows);
    return status;
}

static void add(model *self, uint32_t rows_count)
{
    cr_assert_eq(chunk_add(self, rows_count), IVM_OK);
    ivm__arena_reset(&self->arena);
}

static void chunk_read(const model *self, const ivm__chunk *chunk, ivm__weight *weights)
{
    cr_assert(chunk->rows_count > 0 && chunk->rows_count <= IVM__CHUNK_ROWS);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        uint32_t row = cell_value(self, &chunk->columns[0], i, 0) + cell_value(self, &chunk->columns[1], i, 1) * VALUES +
                       cell_value(self, &chunk->columns[2], i, 2) * VALUES * VALUES;
        cr_assert(weights[row] == 0 && ivm__chunk_weight(chunk, i) != 0, "row %u twice", row);
        weights[row] = ivm__chunk_weight(chunk, i);
    }
}

static ivm_status chunk_next(const model *self, uint32_t what, ivm__arena *arena, uint32_t *next, ivm__chunk **chunk)
{
    switch (what) {
    case 0:
        return ivm__store_chunk(&self->zset.store, arena, IVM__READ_OLD, next, chunk);
    case 1:
        return ivm__store_chunk(&self->zset.store, arena, IVM__READ_CUR, next, chunk);
    default:
        return ivm__store_change_chunk(&self->zset.store, arena, next, chunk);
    }
}

static void check(model *self)
{
    for (uint32_t what = 0; what < 3; what++) {
        ivm__weight weights[ROWS] = { 0 };
        uint32_t next = 0;
        for (;;) {
            ivm__chunk *chunk;
            cr_assert_eq(chunk_next(self, what, &self->arena, &next, &chunk), IVM_OK);
            if (!chunk) {
                break;
            }
            chunk_read(self, chunk, weights);
        }
        for (uint32_t row = 0; row < ROWS; row++) {
            ivm__weight expected[] = { self->before[row], self->after[row], self->after[row] - self->before[row] };
            cr_assert(weights[row] == expected[what], "row %u, reading %u", row, what);
        }
        ivm__arena_reset(&self->arena);
    }
    for (const ivm__index *index = self->zset.store.indexes; index; index = index->next_of_store) {
        const char *wrong = ivm__index_validate(index);
        cr_assert_null(wrong, "%s", wrong);
    }
}

static void commit(model *self)
{
    ivm__store_commit(&self->zset.store);
    for (uint32_t row = 0; row < ROWS; row++) {
        self->before[row] = self->after[row];
    }
}

static void undo(model *self)
{
    ivm__store_undo(&self->zset.store);
    memcpy(self->after, self->before, sizeof self->after);
}

static void others_make(model *self)
{
    static const uint32_t one[] = { 1 }, two[] = { 2, 0 };
    cr_assert_eq(ivm__store_index(&self->zset.store, one, 1, false, &self->others[0]), IVM_OK);
    cr_assert_eq(ivm__store_index(&self->zset.store, two, 2, false, &self->others[1]), IVM_OK);
}

Test(engine_zset, random_chunks_equal_a_model, .fini = seed_tell)
{
    for (uint64_t seed = 1; seed <= 80; seed++) {
        model *self = model_begin(seed, seed % 2);
        for (uint32_t step = 0; step < 12; step++) {
            if (step == seed % 20) {
                others_make(self);
            }
            for (uint32_t chunks = (uint32_t)below(self, 4); chunks > 0; chunks--) {
                add(self, 1 + (uint32_t)below(self, seed % 4 ? 20 : 1000));
            }
            check(self);
            if (below(self, 3)) {
                commit(self);
            } else {
                undo(self);
            }
            check(self);
        }
        model_end(self);
    }
}

/* A chunk of any rows and its opposite leave nothing, whatever lay in between. */
Test(engine_zset, opposite_leaves_nothing)
{
    model *self = model_begin(3, true);
    static const uint32_t order[COLUMNS] = { 0, 1, 2 };
    uint32_t rows[300];
    ivm__arena kept;
    ivm__arena_init(&kept, &self->memory);
    ivm__chunk *chunk = chunk_random(self, 300, order, rows);
    cr_assert_eq(ivm__zset_add(&self->zset, &kept, chunk, NULL, 1), IVM_OK);
    ivm__store_commit(&self->zset.store);
    cr_assert(self->zset.whole->used > 0);
    cr_assert_eq(ivm__zset_add(&self->zset, &kept, chunk, NULL, -1), IVM_OK);
    ivm__store_commit(&self->zset.store);
    cr_assert_eq(self->zset.store.rows_live, 0);
    cr_assert_eq(self->zset.whole->used, 0);
    ivm__arena_deinit(&kept);
    model_end(self);
}

/* 128 bits overflow on the way and come back. */
Test(engine_zset, sums_past_128_bits_come_back)
{
    model *self = model_begin(5, false);
    static const uint32_t order[COLUMNS] = { 0, 1, 2 };
    uint32_t rows[1];
    ivm__chunk *chunk = chunk_random(self, 1, order, rows);
    ivm__weight weight = (ivm__weight)1 << 126;
    chunk->weights = &weight;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(ivm__zset_add(&self->zset, &self->arena, chunk, NULL, 1), IVM_OK);
    }
    weight = ((ivm__weight)1 << 126) - 2;
    cr_assert_eq(ivm__zset_add(&self->zset, &self->arena, chunk, NULL, -1), IVM_OK);
    weight = (ivm__weight)1 << 126;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ivm__zset_add(&self->zset, &self->arena, chunk, NULL, -1), IVM_OK);
    }
    cr_assert(ivm__store_weight(&self->zset.store, 0, IVM__READ_CUR) == 2);
    ivm__store_undo(&self->zset.store);
    model_end(self);
}

Test(engine_zset, fresh_rows_are_appended_untouched)
{
    model *self = model_begin(7, true);
    static const uint32_t order[COLUMNS] = { 0, 1, 2 };
    uint32_t rows[500];
    ivm__chunk *chunk = chunk_random(self, 500, order, rows);
    chunk->weights = NULL;
    cr_assert_eq(ivm__zset_add(&self->zset, &self->arena, chunk, NULL, 1), IVM_OK);
    cr_assert_eq(self->zset.store.touched_count, 0);
    ivm__store_undo(&self->zset.store);
    cr_assert_eq(self->zset.store.rows_end, 0);
    model_end(self);
}

/* ---- Other shapes ------------------------------------------------------------------------------------------------------------------ */

Test(engine_zset, one_column_and_none)
{
    model *self = model_begin(9, false);
    for (uint32_t columns = 0; columns < 2; columns++) {
        ivm_type type = IVM_INT64;
        bool nullable = false;
        ivm__layout *layout;
        ivm__zset zset;
        cr_assert_eq(ivm__layout_create(&self->memory, &type, &nullable, columns, false, &layout), IVM_OK);
        cr_assert_eq(ivm__zset_init(&zset, &self->memory, NULL, 1, layout), IVM_OK);
        uint64_t words[] = { 4, 5, 4, 6, 4 };
        ivm__vector vector = { type, words, NULL };
        ivm__chunk chunk = { .rows_count = 5, .columns_count = columns, .columns = &vector };
        cr_assert_eq(ivm__zset_add(&zset, &self->arena, &chunk, NULL, 1), IVM_OK);
        cr_assert_eq(ivm__zset_add(&zset, &self->arena, &chunk, NULL, 1), IVM_OK);
        cr_assert_eq(zset.store.rows_live, columns ? 3 : 1);
        cr_assert(ivm__store_weight(&zset.store, 0, IVM__READ_CUR) == (columns ? 6 : 10));
        cr_assert(!columns || ivm__row_word(layout, ivm__store_row(&zset.store, 2), 0) == 6);
        ivm__store_commit(&zset.store);
        cr_assert_null(ivm__index_validate(zset.whole));
        ivm__zset_deinit(&zset);
        ivm__layout_release(layout);
    }
    model_end(self);
}

/* ---- Running out of memory ---------------------------------------------------------------------------------------------------------- */

static bool adding_survives(uint64_t seed, uint64_t n)
{
    enum { CHUNKS = 3, CHUNK_ROWS = 200 };
    static const uint32_t order[COLUMNS] = { 0, 1, 2 };
    model *self = model_begin(seed, true);
    others_make(self);
    add(self, 30);
    commit(self);
    uint32_t rows[CHUNKS][CHUNK_ROWS];
    ivm__chunk *chunks[CHUNKS];
    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunks[i] = chunk_random(self, CHUNK_ROWS, order, rows[i]);
    }
    ivm__pages *held = ivm__pages_acquire(&self->zset.store);
    ivm__arena scratch;
    ivm__arena_init(&scratch, &self->memory);
    test_allocator_arm(&self->counted, n);
    ivm_status status = IVM_OK;
    for (uint32_t i = 0; status == IVM_OK && i < CHUNKS; i++) {
        status = ivm__zset_add(&self->zset, &scratch, chunks[i], NULL, 1);
        for (uint32_t row = 0; status == IVM_OK && row < CHUNK_ROWS; row++) {
            self->after[rows[i][row]] += ivm__chunk_weight(chunks[i], row);
        }
    }
    bool failed = test_allocator_disarm(&self->counted);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
    ivm__arena_deinit(&scratch);
    ivm__arena_reset(&self->arena);
    if (!failed) {
        check(self);
    }
    undo(self);
    check(self);
    ivm__pages_release(held, &self->memory);
    model_end(self);
    return failed;
}

Test(engine_zset, nth_allocation_failing_changes_nothing, .fini = seed_tell)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint64_t n = 1;
        while (adding_survives(seed, n)) {
            n++;
        }
        cr_assert(n > 5, "%d", (int)n);
    }
}

Test(engine_zset, nth_allocation_failing_makes_no_zset_or_chunk)
{
    model *self = model_begin(1, true);
    add(self, 40);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        ivm__zset zset;
        int64_t bytes = self->counted.bytes;
        test_allocator_arm(&self->counted, n);
        ivm_status status = ivm__zset_init(&zset, &self->memory, &self->texts, 1, self->layout);
        failed = test_allocator_disarm(&self->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        ivm__zset_deinit(&zset);
        cr_assert_eq(self->counted.bytes, bytes);
    }
    failed = true;
    for (uint64_t n = 1; failed; n++) {
        ivm__arena arena;
        ivm__arena_init(&arena, &self->memory);
        ivm__chunk *chunk;
        uint32_t next = 0;
        test_allocator_arm(&self->counted, n);
        ivm_status status = ivm__store_chunk(&self->zset.store, &arena, IVM__READ_CUR, &next, &chunk);
        failed = test_allocator_disarm(&self->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        cr_assert_eq(chunk != NULL, !failed);
        ivm__arena_deinit(&arena);
    }
    ivm__store_undo(&self->zset.store);
    model_end(self);
}
