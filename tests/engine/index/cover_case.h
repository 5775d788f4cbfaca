/* A keyed store with covers of two columns and the model that they are held to, for tests of covers. */
#ifndef TEST_ENGINE_COVER_CASE_H
#define TEST_ENGINE_COVER_CASE_H

#include "cover.h"

#include <criterion/criterion.h>

#include "allocator.h"

#define KEYS 6000u
#define COVERS 2u
#define ABSENT UINT64_MAX
#define FEW 20u
#define MANY 1000u

/* A keyed store {key, a, b} with covers of a and b, and what must be in it: by the number of a key its a and its row (b = ~a). Keys 0 and 1
 * are those that stand for a free slot in the covers, and the rest lie apart or close together. */
typedef struct world {
    test_allocator counted;
    ivm__memory memory;
    ivm__arena arena;
    ivm__layout *layout;
    ivm__store store;
    ivm__index *index;
    ivm__cover *covers[COVERS];
    uint64_t random;
    uint64_t values;                             /* a is less; so few that covers are made in words, or so many that they are not */
    uint64_t key[KEYS], a[KEYS], a_before[KEYS]; /* ABSENT: not there */
    ivm__row_id row[KEYS], row_before[KEYS];
} world;

static inline uint64_t draw(world *it, uint64_t below)
{
    it->random = it->random * 6364136223846793005u + 1442695040888963407u;
    return (it->random >> 33) % below;
}

static inline void remember(world *it)
{
    memcpy(it->a_before, it->a, sizeof it->a);
    memcpy(it->row_before, it->row, sizeof it->row);
}

static inline world *begin(uint64_t seed)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64, IVM_INT64 };
    static const bool nullable[] = { false, false, false };
    uint32_t column = 0;
    world *it = calloc(1, sizeof *it);
    it->random = seed;
    it->values = MANY;
    test_allocator_init(&it->counted);
    ivm_allocator functions = test_allocator_functions(&it->counted);
    ivm__memory_init(&it->memory, &functions);
    ivm__arena_init(&it->arena, &it->memory);
    cr_assert_eq(ivm__layout_create(&it->memory, types, nullable, 3, false, &it->layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&it->store, &it->memory, NULL, seed, it->layout), IVM_OK);
    cr_assert_eq(ivm__store_index(&it->store, &column, 1, true, &it->index), IVM_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        it->key[i] = i < COVERS ? ivm__hash_word(1 + i, seed) : i % 3 ? i : (uint64_t)i << 40;
        it->a[i] = ABSENT;
    }
    remember(it);
    return it;
}

static inline void end(world *it)
{
    ivm__store_deinit(&it->store);
    ivm__layout_release(it->layout);
    ivm__arena_deinit(&it->arena);
    cr_assert(test_allocator_is_clean(&it->counted));
    free(it);
}

static inline void covers_make(world *it)
{
    for (uint32_t c = 0; c < COVERS; c++) {
        cr_assert_eq(ivm__index_cover(it->index, 1 + c, &it->covers[c]), IVM_OK);
        cr_assert(it->covers[c]->words || it->covers[c]->free == it->key[c]);
    }
}

/* ---- Against the model ------------------------------------------------------------------------------------------------------------- */

/* Those that are not there, but for the ones that are to be skipped. */
static inline void absent_check(const world *it, const ivm__cover *cover, ivm__keys keys)
{
    static uint32_t absent[KEYS];
    static uint8_t skip[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        skip[i] = i % 5 == 1;
    }
    for (keys.skip = NULL;; keys.skip = skip) {
        uint32_t count = ivm__cover_absent(cover, &keys, absent);
        uint32_t at = 0;
        for (uint32_t i = 0; i < KEYS; i++) {
            bool told = it->a[i] == ABSENT && !(keys.skip && skip[i]);
            cr_assert(!told || absent[at] == i, "key %u", i);
            at += told;
        }
        cr_assert_eq(count, at);
        if (keys.skip) {
            return;
        }
    }
}

/* Every key in one probe, those that are not there too. */
static inline void cover_check(world *it, const ivm__cover *cover)
{
    static uint64_t cells[KEYS];
    static uint16_t found[KEYS];
    ivm__vector vector = { .type = IVM_INT64, .cells = it->key };
    ivm__chunk chunk = { .rows_count = KEYS, .columns_count = 1, .columns = &vector };
    ivm__keys keys;
    uint32_t there = 0;
    cr_assert_eq(ivm__index_keys(it->index, &it->arena, &chunk, NULL, false, &keys), IVM_OK);
    uint32_t hits = ivm__cover_probe(cover, &keys, cells, found);
    for (uint32_t i = 0; i < KEYS; i++) {
        bool is = it->a[i] != ABSENT;
        cr_assert_eq(found[i] != 0, is, "key %u", i);
        cr_assert(!is || cells[i] == (cover->column == 1 ? it->a[i] : ~it->a[i]), "key %u", i);
        there += is;
    }
    cr_assert_eq(hits, there);
    absent_check(it, cover, keys);
    if (cover->words) {
        const char *wrong = ivm__cover_words_validate(cover->words);
        cr_assert_null(wrong, "%s", wrong);
        cr_assert_eq(cover->words->used, there);
        cr_assert(cover->words->used <=
                  cover->words->capacity * 33ull / 50 + (cover->words->larger ? ivm__grows_meanwhile(cover->words->capacity) : 0));
    } else {
        cr_assert_eq(cover->used + cover->has_free, there);
        cr_assert(cover->used <= cover->capacity / 2 + (cover->larger ? ivm__grows_meanwhile(cover->capacity) : 0));
        const char *wrong = ivm__cover_validate(cover);
        cr_assert_null(wrong, "%s", wrong);
    }
    ivm__arena_reset(&it->arena);
}

static inline void check(world *it)
{
    for (uint32_t c = 0; c < COVERS; c++) {
        if (it->index->doubles == 0) {
            cr_assert_eq(ivm__index_cover(it->index, 1 + c, &it->covers[c]), IVM_OK); /* as one asks: made again where it must be */
        }
        cover_check(it, it->covers[c]);
    }
    const char *wrong = ivm__index_validate(it->index);
    cr_assert_null(wrong, "%s", wrong);
}

static inline void body_write(world *it, uint32_t i, uint8_t *row)
{
    uint64_t words[] = { it->key[i], it->a[i], ~it->a[i] };
    for (uint32_t c = 0; c < 3; c++) {
        memcpy(row + it->layout->offsets[c], &words[c], sizeof words[c]);
    }
}

/* There is room. `append`: untouched at the end, as a batch of new rows comes. */
static inline void key_insert(world *it, uint32_t i, bool append)
{
    it->a[i] = draw(it, it->values);
    it->row[i] = append ? ivm__store_append(&it->store, 1) : ivm__store_put(&it->store, 1);
    body_write(it, i, ivm__store_row(&it->store, it->row[i]));
    ivm__store_link(&it->store, it->row[i]);
}

static inline void key_delete(world *it, uint32_t i)
{
    cr_assert_eq(ivm__store_weight_add(&it->store, it->row[i], -1), IVM_OK);
    it->a[i] = ABSENT;
}

static inline void key_replace(world *it, uint32_t i)
{
    uint8_t body[64];
    cr_assert_leq(it->layout->stride, sizeof body);
    it->a[i] = draw(it, it->values);
    body_write(it, i, body);
    cr_assert_eq(ivm__store_update(&it->store, it->row[i], body, &it->row[i]), IVM_OK);
}

static inline void fill(world *it, uint32_t first, uint32_t last)
{
    cr_assert_eq(ivm__store_reserve(&it->store, last - first), IVM_OK);
    for (uint32_t i = first; i < last; i++) {
        key_insert(it, i, true);
    }
}

static inline void commit(world *it)
{
    ivm__store_commit(&it->store);
    remember(it);
}

static inline void undo(world *it)
{
    ivm__store_undo(&it->store);
    memcpy(it->a, it->a_before, sizeof it->a);
    memcpy(it->row, it->row_before, sizeof it->row);
}

/* Every key at most once in a step, as a table's net delta has it; the two special ones often. */
static inline void step(world *it, uint32_t changes)
{
    static bool done[KEYS];
    memset(done, 0, sizeof done);
    cr_assert_eq(ivm__store_update_reserve(&it->store, changes), IVM_OK);
    for (uint32_t n = 0; n < changes; n++) {
        uint32_t i = (uint32_t)draw(it, draw(it, 8) ? KEYS : COVERS);
        if (done[i]) {
            continue;
        }
        done[i] = true;
        if (it->a[i] == ABSENT) {
            key_insert(it, i, false);
        } else if (draw(it, 2)) {
            key_delete(it, i);
        } else {
            key_replace(it, i);
        }
    }
}

#endif
