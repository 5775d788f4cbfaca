/* A store beside a model of it in plain arrays by row id, for randomized tests: every operation is done to both, and a check compares all that
 * can be read. Content is drawn from few values, so that keys repeat, nulls and texts are shared, and rows meet old ones under free ids. */
#ifndef STORE_MODEL_H
#define STORE_MODEL_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "index.h"

#define MODEL_ROWS 6000u
#define MODEL_TEXTS 5u
#define MODEL_INDEXES 5u

enum { COLUMN_A, COLUMN_B, COLUMN_TEXT, COLUMN_WIDE, COLUMN_KEY, COLUMNS };

typedef struct model_row {
    bool stands; /* has a weight, or had or got one in this step */
    bool b_null;
    int text; /* -1: null */
    uint64_t a, b, key;
    ivm__wide wide;
    ivm__weight before, after;
} model_row;

typedef struct model_change {
    ivm__row_id row;
    ivm__weight weight;
} model_change;

typedef struct model {
    uint64_t random;
    test_allocator counted;
    ivm__memory memory;
    ivm__arena arena;
    ivm__texts texts;
    const ivm__text *text[MODEL_TEXTS];
    ivm__layout *layout;
    ivm__store store;
    uint32_t keys_count; /* COLUMN_KEY is below it */
    model_row *rows, *rows_before;
    uint32_t rows_end, rows_end_before;
    model_change *last; /* of the step last committed */
    uint32_t last_count;
    int gone[MODEL_TEXTS]; /* references of rows that the last step took out */
    ivm__index *indexes[MODEL_INDEXES];
} model;

static const ivm_type model_types[COLUMNS] = { IVM_INT64, IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 2), IVM_INT64 };
static const bool model_nullable[COLUMNS] = { false, true, true, false, false };
static const struct {
    uint32_t columns[3], count;
    bool unique;
} model_index[MODEL_INDEXES] = { { { COLUMN_KEY }, 1, true },
                                 { { COLUMN_A }, 1, false },
                                 { { COLUMN_B, COLUMN_TEXT }, 2, false },
                                 { { COLUMN_WIDE, COLUMN_A }, 2, false },
                                 { { COLUMN_KEY, COLUMN_B }, 2, true } };

/* The seed of the test that runs; 0 once it went through. As a test's .fini it tells which one failed. */
static uint64_t model_seed;

static inline void model_seed_tell(void)
{
    if (model_seed) {
        fprintf(stderr, "failed with seed %llu\n", (unsigned long long)model_seed);
    }
}

static inline uint64_t model_random(model *self, uint64_t below)
{
    uint64_t x = self->random += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (x ^ x >> 31) % below;
}

static inline model *model_begin(uint64_t seed)
{
    model *self = calloc(1, sizeof *self);
    self->random = model_seed = seed;
    self->keys_count = 400;
    self->rows = calloc(MODEL_ROWS, sizeof *self->rows);
    self->rows_before = calloc(MODEL_ROWS, sizeof *self->rows);
    self->last = calloc(MODEL_ROWS, sizeof *self->last);
    test_allocator_init(&self->counted);
    ivm_allocator functions = test_allocator_functions(&self->counted);
    ivm__memory_init(&self->memory, &functions);
    ivm__arena_init(&self->arena, &self->memory);
    ivm__texts_init(&self->texts, &self->memory, seed);
    for (uint32_t i = 0; i < MODEL_TEXTS; i++) {
        char bytes[2] = { (char)('a' + i), 0 };
        cr_assert_eq(ivm__texts_intern(&self->texts, bytes, 1, &self->text[i]), IVM_OK);
    }
    cr_assert_eq(ivm__layout_create(&self->memory, model_types, model_nullable, COLUMNS, true, &self->layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&self->store, &self->memory, &self->texts, seed, self->layout), IVM_OK);
    return self;
}

static inline void model_end(model *self)
{
    ivm__store_deinit(&self->store);
    for (uint32_t i = 0; i < MODEL_TEXTS; i++) {
        cr_assert_eq(self->text[i]->references, 0, "text %u is still held", i);
    }
    ivm__layout_release(self->layout);
    ivm__arena_deinit(&self->arena);
    ivm__texts_deinit(&self->texts);
    cr_assert(test_allocator_is_clean(&self->counted));
    free(self->rows);
    free(self->rows_before);
    free(self->last);
    free(self);
    model_seed = 0;
}

static inline ivm_status model_index_make(model *self, uint32_t nth)
{
    return ivm__store_index(&self->store, model_index[nth].columns, model_index[nth].count, model_index[nth].unique, &self->indexes[nth]);
}

static inline bool model_has_unique(const model *self)
{
    return self->indexes[0] || self->indexes[4];
}

/* ---- Content --------------------------------------------------------------------------------------------------------------------- */

static inline model_row model_row_random(model *self)
{
    static const uint64_t words[] = { 0, 1, 2, 3, UINT64_MAX, 1ull << 63 };
    model_row row = { .stands = true };
    row.a = words[model_random(self, 6)] + model_random(self, 2) * 1000;
    row.b_null = model_random(self, 3) == 0;
    row.b = row.b_null ? 0 : model_random(self, 3);
    row.text = (int)model_random(self, MODEL_TEXTS + 1) - 1;
    row.wide = (ivm__wide)model_random(self, 3) << 64 | model_random(self, 2);
    row.key = model_random(self, self->keys_count);
    return row;
}

static inline void model_body_write(model *self, ivm__row_id id)
{
    const model_row *row = &self->rows[id];
    uint64_t a = row->a, b = row->b, text = row->text < 0 ? 0 : (uint64_t)(uintptr_t)self->text[row->text], key = row->key;
    ivm__wide wide = row->wide;
    uint8_t b_null = row->b_null, text_null = row->text < 0;
    ivm__vector vectors[COLUMNS] = { { IVM_INT64, &a, NULL },
                                     { IVM_INT64, &b, &b_null },
                                     { IVM_STRING, &text, &text_null },
                                     { model_types[COLUMN_WIDE], &wide, NULL },
                                     { IVM_INT64, &key, NULL } };
    ivm__chunk chunk = { .rows_count = 1, .columns_count = COLUMNS, .columns = vectors };
    uint8_t *at = ivm__store_row(&self->store, id);
    ivm__layout_scatter(self->layout, &chunk, NULL, 0, 1, &at);
}

static inline bool model_keys_equal(const model_row *a, const model_row *b, uint32_t nth)
{
    switch (nth) {
    case 0:
        return a->key == b->key;
    case 1:
        return a->a == b->a;
    case 2:
        return a->b_null == b->b_null && a->b == b->b && a->text == b->text;
    case 3:
        return a->wide == b->wide && a->a == b->a;
    default:
        return a->key == b->key && a->b_null == b->b_null && a->b == b->b;
    }
}

/* ---- Operations ------------------------------------------------------------------------------------------------------------------ */

static inline ivm__weight model_weight_random(model *self)
{
    static const int64_t weights[] = { 1,
                                       1,
                                       1,
                                       2,
                                       -1,
                                       -IVM__WEIGHT_HEAVY - 1,
                                       IVM__WEIGHT_HEAVY,
                                       IVM__WEIGHT_HEAVY + 1,
                                       INT64_MAX,
                                       INT64_MIN,
                                       -IVM__WEIGHT_HEAVY,
                                       -5000000000,
                                       7 };
    return weights[model_random(self, sizeof weights / sizeof weights[0])];
}

/* A row of non-zero weight after, or IVM__ROW_NONE. */
static inline ivm__row_id model_row_chosen(model *self)
{
    for (uint32_t tries = 0; self->rows_end && tries < 20; tries++) {
        ivm__row_id row = (ivm__row_id)model_random(self, self->rows_end);
        if (self->rows[row].stands && self->rows[row].after != 0) {
            return row;
        }
    }
    return IVM__ROW_NONE;
}

static inline ivm_status model_weight_set(model *self, ivm__row_id row, ivm__weight after)
{
    if (model_random(self, 2)) {
        unsigned __int128 difference = (unsigned __int128)after - (unsigned __int128)self->rows[row].after;
        IVM_TRY(ivm__store_weight_add(&self->store, row, (ivm__weight)difference));
    } else {
        IVM_TRY(ivm__store_touch(&self->store, row));
        ivm__store_weight_set(&self->store, row, after);
    }
    self->rows[row].after = after;
    return IVM_OK;
}

/* Takes out what has the key, so that the key may come again. */
static inline ivm_status model_key_clear(model *self, uint64_t key)
{
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        if (self->rows[i].stands && self->rows[i].key == key && self->rows[i].after != 0) {
            IVM_TRY(model_weight_set(self, i, 0));
        }
    }
    return IVM_OK;
}

/* Room for it is reserved. */
static inline void model_row_comes(model *self, model_row row)
{
    ivm__store *store = &self->store;
    ivm__row_id id;
    row.before = 0;
    row.after = model_weight_random(self);
    uint64_t how = model_random(self, 3);
    if (how == 0 && row.after > IVM__WEIGHT_HEAVY && row.after < -IVM__WEIGHT_HEAVY) {
        id = ivm__store_append(store, (int32_t)row.after);
        cr_assert_eq(id, self->rows_end);
    } else {
        id = how == 1 ? ivm__store_insert(store, row.after) : ivm__store_put(store, row.after);
    }
    cr_assert(id <= self->rows_end && id < MODEL_ROWS);
    cr_assert(id == self->rows_end || !self->rows[id].stands);
    self->rows_end += id == self->rows_end;
    self->rows[id] = row;
    model_body_write(self, id);
    if (model_random(self, 2)) {
        ivm__store_link(store, id);
    } else {
        ivm__store_link_rows(store, &id, 1);
    }
}

static inline ivm_status model_rows_come(model *self, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t together = 1 + (uint32_t)model_random(self, 4);
        model_row rows[4];
        IVM_TRY(ivm__store_reserve(&self->store, together));
        for (uint32_t j = 0; j < together; j++) {
            rows[j] = model_row_random(self);
            if (model_has_unique(self)) {
                IVM_TRY(model_key_clear(self, rows[j].key));
            }
            model_row_comes(self, rows[j]);
        }
        i += together;
    }
    return IVM_OK;
}

static inline ivm_status model_rows_change(model *self, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = model_row_chosen(self);
        if (row == IVM__ROW_NONE) {
            continue;
        }
        ivm__weight after = model_weight_random(self) * (ivm__weight)model_random(self, 3);
        if (model_random(self, 8) == 0) {
            after *= INT64_MAX; /* passing through */
        }
        IVM_TRY(model_weight_set(self, row, after));
    }
    return IVM_OK;
}

/* Rows outside int64 may not commit. */
static inline ivm_status model_weights_narrow(model *self)
{
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        if (self->rows[i].stands && (self->rows[i].after > INT64_MAX || self->rows[i].after < INT64_MIN)) {
            IVM_TRY(model_weight_set(self, i, self->rows[i].after > 0 ? INT64_MAX : 0));
        }
    }
    return IVM_OK;
}

static inline void model_step_begin(model *self)
{
    memcpy(self->rows_before, self->rows, MODEL_ROWS * sizeof *self->rows);
    self->rows_end_before = self->rows_end;
}

static inline void model_commit(model *self)
{
    ivm__store_commit(&self->store);
    self->last_count = 0;
    memset(self->gone, 0, sizeof self->gone);
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        model_row *row = &self->rows[i];
        if (!row->stands) {
            continue;
        }
        if (row->after != row->before) {
            self->last[self->last_count++] = (model_change){ i, row->after - row->before };
        }
        row->stands = row->after != 0;
        if (!row->stands && row->text >= 0) {
            self->gone[row->text]++;
        }
        row->before = row->after;
    }
}

static inline void model_undo(model *self)
{
    ivm__store_undo(&self->store);
    memcpy(self->rows, self->rows_before, MODEL_ROWS * sizeof *self->rows);
    self->rows_end = self->rows_end_before;
}

/* ---- Checks ---------------------------------------------------------------------------------------------------------------------- */

static inline void model_scan_check(model *self, ivm__reading reading)
{
    ivm__row_id rows[97];
    ivm__weight weights[97];
    uint32_t next = 0, expected = 0, capacity = 1 + (uint32_t)model_random(self, 97);
    for (uint32_t count; (count = ivm__store_scan(&self->store, reading, &next, capacity, rows, weights)) > 0;) {
        for (uint32_t i = 0; i < count; i++, expected++) {
            for (; expected < rows[i]; expected++) {
                const model_row *row = &self->rows[expected];
                cr_assert(!row->stands || (reading == IVM__READ_OLD ? row->before : row->after) == 0, "row %u left out", expected);
            }
            const model_row *row = &self->rows[rows[i]];
            cr_assert(expected == rows[i] && row->stands);
            cr_assert((reading == IVM__READ_OLD ? row->before : row->after) == weights[i], "row %u", rows[i]);
        }
    }
    for (; expected < self->rows_end; expected++) {
        const model_row *row = &self->rows[expected];
        cr_assert(!row->stands || (reading == IVM__READ_OLD ? row->before : row->after) == 0);
    }
}

typedef uint32_t model_walk(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights);

/* Whether a walk gives each of the expected changes once. */
static inline void model_changes_check(model *self, model_walk *walk, const model_change *expected, uint32_t expected_count)
{
    ivm__weight *seen = calloc(MODEL_ROWS, sizeof *seen);
    ivm__row_id rows[61];
    ivm__weight weights[61];
    uint32_t next = 0, total = 0, capacity = 1 + (uint32_t)model_random(self, 61);
    for (uint32_t count; (count = walk(&self->store, &next, capacity, rows, weights)) > 0; total += count) {
        for (uint32_t i = 0; i < count; i++) {
            cr_assert(weights[i] != 0 && seen[rows[i]] == 0);
            seen[rows[i]] = weights[i];
        }
    }
    cr_assert_eq(total, expected_count);
    for (uint32_t i = 0; i < expected_count; i++) {
        cr_assert(seen[expected[i].row] == expected[i].weight, "row %u", expected[i].row);
    }
    free(seen);
}

static inline void model_step_changes_check(model *self)
{
    model_change *changes = calloc(MODEL_ROWS, sizeof *changes);
    uint32_t count = 0;
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        const model_row *row = &self->rows[i];
        if (row->stands && row->after != row->before) {
            changes[count++] = (model_change){ i, row->after - row->before };
        }
    }
    model_changes_check(self, ivm__store_changes, changes, count);
    free(changes);
}

static inline void model_texts_check(const model *self)
{
    int references[MODEL_TEXTS];
    memcpy(references, self->gone, sizeof references);
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        if (self->rows[i].stands && self->rows[i].text >= 0) {
            references[self->rows[i].text]++;
        }
    }
    for (uint32_t i = 0; i < MODEL_TEXTS; i++) {
        cr_assert_eq(self->text[i]->references, references[i], "text %u: %u for %d", i, self->text[i]->references, references[i]);
    }
}

static inline void model_cells_check(model *self)
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        ivm__row_id rows[200];
        uint32_t count = 0;
        while (count < 200 && self->rows_end) {
            ivm__row_id row = model_row_chosen(self);
            if (row == IVM__ROW_NONE) {
                break;
            }
            rows[count++] = row;
        }
        ivm__vector out;
        cr_assert(ivm__vector_make(&self->arena, &out, model_types[c], count, model_nullable[c]));
        ivm__store_gather(&self->store, rows, count, c, &out);
        for (uint32_t i = 0; i < count; i++) {
            const model_row *row = &self->rows[rows[i]];
            uint64_t text = row->text < 0 ? 0 : (uint64_t)(uintptr_t)self->text[row->text];
            uint64_t words[COLUMNS] = { row->a, row->b, text, 0, row->key };
            bool null = c == COLUMN_B ? row->b_null : c == COLUMN_TEXT && row->text < 0;
            cr_assert(ivm__is_null(&out, i) == null);
            cr_assert(c == COLUMN_WIDE ? ivm__wide_cell(&out, i) == row->wide : ivm__word(&out, i) == words[c]);
        }
    }
    ivm__arena_reset(&self->arena);
}

/* The pairs of one probe against all rows that stand. keys: model rows that hold the keys. */
static inline void model_pairs_check(const model *self, uint32_t nth, const model_row *keys, uint32_t keys_count, const uint32_t *positions,
                                     const ivm__row_id *rows, uint32_t count)
{
    uint32_t expected = 0;
    for (uint32_t k = 0; k < keys_count; k++) {
        for (ivm__row_id i = 0; i < self->rows_end; i++) {
            expected += self->rows[i].stands && model_keys_equal(&self->rows[i], &keys[k], nth);
        }
    }
    cr_assert_eq(count, expected, "index %u: %u pairs for %u", nth, count, expected);
    bool *seen = calloc(MODEL_ROWS, 1);
    for (uint32_t i = 0; i < count; i++) {
        if (i && positions[i] != positions[i - 1]) {
            cr_assert(positions[i] > positions[i - 1]);
            memset(seen, 0, MODEL_ROWS);
        }
        cr_assert(!seen[rows[i]] && self->rows[rows[i]].stands && model_keys_equal(&self->rows[rows[i]], &keys[positions[i]], nth));
        seen[rows[i]] = true;
    }
    free(seen);
}

/* Packs the keys of model rows for an index, as values. */
static inline ivm__keys model_keys(model *self, uint32_t nth, const model_row *keys, uint32_t count)
{
    ivm__chunk *chunk = ivm__chunk_make(&self->arena, model_types, COLUMNS);
    chunk->rows_count = count;
    for (uint32_t c = 0; c < COLUMNS; c++) {
        ivm__vector *out = &chunk->columns[c];
        cr_assert(ivm__vector_make(&self->arena, out, model_types[c], count, model_nullable[c]));
        for (uint32_t i = 0; i < count; i++) {
            uint64_t text = keys[i].text < 0 ? 0 : (uint64_t)(uintptr_t)self->text[keys[i].text];
            uint64_t words[COLUMNS] = { keys[i].a, keys[i].b, text, 0, keys[i].key };
            if (c == COLUMN_WIDE) {
                ((ivm__wide *)out->cells)[i] = keys[i].wide;
            } else {
                ((uint64_t *)out->cells)[i] = words[c];
            }
            if (out->nulls) {
                out->nulls[i] = c == COLUMN_B ? keys[i].b_null : keys[i].text < 0;
            }
        }
    }
    ivm__keys packed;
    cr_assert_eq(ivm__index_keys(self->indexes[nth], &self->arena, chunk, model_index[nth].columns, true, &packed), IVM_OK);
    return packed;
}

static inline void model_probe_check(model *self, uint32_t nth)
{
    uint32_t keys_count = 1 + (uint32_t)model_random(self, 80), capacity = 1 + (uint32_t)model_random(self, 200), count = 0;
    model_row *keys = calloc(keys_count, sizeof *keys);
    for (uint32_t i = 0; i < keys_count; i++) {
        ivm__row_id row = model_random(self, 3) ? model_row_chosen(self) : IVM__ROW_NONE;
        keys[i] = row != IVM__ROW_NONE ? self->rows[row] : model_row_random(self);
    }
    ivm__keys packed = model_keys(self, nth, keys, keys_count);
    uint32_t *positions = calloc((size_t)keys_count * MODEL_ROWS + capacity, sizeof *positions);
    ivm__row_id *rows = calloc((size_t)keys_count * MODEL_ROWS + capacity, sizeof *rows);
    for (ivm__probe probe = { 0 }; probe.key < keys_count;) {
        uint32_t found = ivm__index_probe(self->indexes[nth], &packed, &probe, capacity, positions + count, rows + count);
        cr_assert(found <= capacity && (found == capacity || probe.key == keys_count));
        count += found;
    }
    model_pairs_check(self, nth, keys, keys_count, positions, rows, count);
    count = 0;
    for (uint32_t k = 0; k < keys_count; k++) {
        uint32_t next = 0;
        const uint64_t *words = packed.words + (size_t)k * packed.words_count;
        for (ivm__row_id row; (row = ivm__index_find(self->indexes[nth], words, packed.hashes[k], &next)) != IVM__ROW_NONE;) {
            positions[count] = k;
            rows[count++] = row;
        }
    }
    model_pairs_check(self, nth, keys, keys_count, positions, rows, count);
    free(keys);
    free(positions);
    free(rows);
    ivm__arena_reset(&self->arena);
}

static inline void model_check(model *self)
{
    cr_assert_eq(self->store.rows_end, self->rows_end);
    uint64_t live = 0;
    for (ivm__row_id i = 0; i < self->rows_end; i++) {
        live += self->rows[i].stands && self->rows[i].after != 0;
        cr_assert(!self->rows[i].stands || self->rows[i].after <= self->store.weight_max);
    }
    cr_assert_eq(self->store.rows_live, live);
    model_scan_check(self, IVM__READ_OLD);
    model_scan_check(self, IVM__READ_CUR);
    model_step_changes_check(self);
    model_changes_check(self, ivm__store_changes_last, self->last, self->last_count);
    model_texts_check(self);
    model_cells_check(self);
    for (uint32_t i = 0; i < MODEL_INDEXES; i++) {
        if (self->indexes[i]) {
            const char *wrong = ivm__index_validate(self->indexes[i]);
            cr_assert_null(wrong, "index %u: %s", i, wrong);
            model_probe_check(self, i);
        }
    }
}

/* A step of random operations: the status of the first that failed. */
static inline ivm_status model_step(model *self, uint32_t operations)
{
    for (uint32_t i = 0; i < operations; i++) {
        uint64_t what = model_random(self, 20);
        if (what < 9) {
            IVM_TRY(model_rows_come(self, 1 + (uint32_t)model_random(self, 8)));
        } else if (what < 19) {
            IVM_TRY(model_rows_change(self, 1 + (uint32_t)model_random(self, 12)));
        } else {
            uint32_t nth = (uint32_t)model_random(self, MODEL_INDEXES);
            if (!model_index[nth].unique) {
                IVM_TRY(model_index_make(self, nth));
            }
        }
    }
    return model_weights_narrow(self);
}

#endif
