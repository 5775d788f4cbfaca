/* tests engine/index/cover.c */
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

static uint64_t draw(world *it, uint64_t below)
{
    it->random = it->random * 6364136223846793005u + 1442695040888963407u;
    return (it->random >> 33) % below;
}

static void remember(world *it)
{
    memcpy(it->a_before, it->a, sizeof it->a);
    memcpy(it->row_before, it->row, sizeof it->row);
}

static world *begin(uint64_t seed)
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

static void end(world *it)
{
    ivm__store_deinit(&it->store);
    ivm__layout_release(it->layout);
    ivm__arena_deinit(&it->arena);
    cr_assert(test_allocator_is_clean(&it->counted));
    free(it);
}

static void covers_make(world *it)
{
    for (uint32_t c = 0; c < COVERS; c++) {
        cr_assert_eq(ivm__index_cover(it->index, 1 + c, &it->covers[c]), IVM_OK);
        cr_assert(it->covers[c]->words || it->covers[c]->free == it->key[c]);
    }
}

/* ---- Against the model ------------------------------------------------------------------------------------------------------------- */

/* Those that are not there, but for the ones that are to be skipped. */
static void absent_check(const world *it, const ivm__cover *cover, ivm__keys keys)
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
static void cover_check(world *it, const ivm__cover *cover)
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

static void check(world *it)
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

static void body_write(world *it, uint32_t i, uint8_t *row)
{
    uint64_t words[] = { it->key[i], it->a[i], ~it->a[i] };
    for (uint32_t c = 0; c < 3; c++) {
        memcpy(row + it->layout->offsets[c], &words[c], sizeof words[c]);
    }
}

/* There is room. `append`: untouched at the end, as a batch of new rows comes. */
static void key_insert(world *it, uint32_t i, bool append)
{
    it->a[i] = draw(it, it->values);
    it->row[i] = append ? ivm__store_append(&it->store, 1) : ivm__store_put(&it->store, 1);
    body_write(it, i, ivm__store_row(&it->store, it->row[i]));
    ivm__store_link(&it->store, it->row[i]);
}

static void key_delete(world *it, uint32_t i)
{
    cr_assert_eq(ivm__store_weight_add(&it->store, it->row[i], -1), IVM_OK);
    it->a[i] = ABSENT;
}

static void key_replace(world *it, uint32_t i)
{
    uint8_t body[64];
    cr_assert_leq(it->layout->stride, sizeof body);
    it->a[i] = draw(it, it->values);
    body_write(it, i, body);
    cr_assert_eq(ivm__store_update(&it->store, it->row[i], body, &it->row[i]), IVM_OK);
}

static void fill(world *it, uint32_t first, uint32_t last)
{
    cr_assert_eq(ivm__store_reserve(&it->store, last - first), IVM_OK);
    for (uint32_t i = first; i < last; i++) {
        key_insert(it, i, true);
    }
}

static void commit(world *it)
{
    ivm__store_commit(&it->store);
    remember(it);
}

static void undo(world *it)
{
    ivm__store_undo(&it->store);
    memcpy(it->a, it->a_before, sizeof it->a);
    memcpy(it->row, it->row_before, sizeof it->row);
}

/* Every key at most once in a step, as a table's net delta has it; the two special ones often. */
static void step(world *it, uint32_t changes)
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

/* ---- Tests ------------------------------------------------------------------------------------------------------------------------- */

Test(engine_cover, follows_its_index_through_steps_and_undone_ones)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        world *it = begin(seed);
        it->values = seed > 6 ? FEW : MANY;
        if (seed % 2) {
            fill(it, 0, 5000);
            commit(it);
        }
        covers_make(it);
        check(it);
        for (uint32_t n = 0; n < 60; n++) {
            step(it, (uint32_t)draw(it, n % 10 ? 50 : 3000));
            if (draw(it, 3)) {
                commit(it);
            } else {
                undo(it);
            }
            check(it);
        }
        end(it);
    }
}

/* From nothing to all keys: new rows can be found before the step ends. */
Test(engine_cover, grows_and_empties)
{
    world *it = begin(11);
    covers_make(it);
    check(it);
    for (uint32_t i = 0; i < KEYS; i += 50) {
        fill(it, i, i + 50);
        check(it);
        commit(it);
    }
    uint64_t bytes = ivm__cover_bytes(it->covers[0]);
    cr_assert_geq(bytes, 2 * KEYS * sizeof(ivm__cover_slot));
    const ivm__cover *larger = it->covers[0]->larger; /* half more than those in use */
    uint64_t beside = larger ? sizeof *larger + larger->capacity * sizeof(ivm__cover_slot) : 0;
    cr_assert_leq(bytes - beside, 3 * KEYS * sizeof(ivm__cover_slot) + 1024);
    cr_assert_leq(2 * beside, 3 * (bytes - beside) + 1024);
    for (uint32_t i = 0; i < KEYS; i++) {
        key_delete(it, i);
        if (i % 500 == 499) {
            commit(it);
            check(it);
        }
    }
    cr_assert_eq(it->covers[0]->used, 0);
    end(it);
}

/* Small ones of many sizes, so that pairs often lie past the end of the slots and removals move them back over it. */
Test(engine_cover, small_ones_lose_their_rows_in_any_order)
{
    for (uint32_t size = 2; size <= 32; size++) {
        world *it = begin(100 + size);
        for (uint32_t round = 0; round < 5; round++) {
            cr_assert_eq(ivm__store_reserve(&it->store, size), IVM_OK);
            for (uint32_t n = 0; n < size; n++) {
                uint32_t i = (uint32_t)draw(it, KEYS);
                if (it->a[i] == ABSENT) {
                    key_insert(it, i, false);
                }
            }
            commit(it);
            covers_make(it);
            for (uint32_t first = (uint32_t)draw(it, KEYS), n = 0; n < KEYS; n++) {
                uint32_t i = (first + n * 7) % KEYS;
                if (it->a[i] != ABSENT) {
                    key_delete(it, i);
                    commit(it);
                    check(it);
                }
            }
        }
        end(it);
    }
}

Test(engine_cover, made_in_a_step)
{
    for (int undone = 0; undone < 2; undone++) {
        world *it = begin(21);
        fill(it, 0, 3000);
        commit(it);
        fill(it, 3000, 5000);
        covers_make(it);
        check(it);
        if (undone) {
            undo(it);
        } else {
            commit(it);
        }
        check(it);
        end(it);
    }
}

/* Room that was made before the cover counts for it too. */
Test(engine_cover, made_between_reserving_and_linking)
{
    world *it = begin(22);
    cr_assert_eq(ivm__store_reserve(&it->store, KEYS), IVM_OK);
    covers_make(it);
    for (uint32_t i = 0; i < KEYS; i++) {
        key_insert(it, i, true);
    }
    check(it);
    commit(it);
    check(it);
    end(it);
}

Test(engine_cover, cleared_with_its_store)
{
    world *it = begin(31);
    covers_make(it);
    for (int round = 0; round < 3; round++) {
        fill(it, 0, round == 1 ? KEYS : 100);
        commit(it);
        check(it);
        ivm__store_clear(&it->store);
        memset(it->a, 0xff, sizeof it->a);
        remember(it);
        check(it);
    }
    end(it);
}

Test(engine_cover, one_a_column)
{
    world *it = begin(41);
    covers_make(it);
    for (uint32_t c = 0; c < COVERS; c++) {
        ivm__cover *again;
        cr_assert_eq(ivm__index_cover(it->index, 1 + c, &again), IVM_OK);
        cr_assert_eq(again, it->covers[c]);
    }
    cr_assert_neq(it->covers[0], it->covers[1]);
    end(it);
}

/* Making covers and growing them: where a call fails, what was there answers as before. */
Test(engine_cover, out_of_memory_at_every_call)
{
    world *it = begin(51);
    fill(it, 0, 4096);
    commit(it);
    for (uint32_t c = 0; c < COVERS; c++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            test_allocator_arm(&it->counted, n);
            ivm_status status = ivm__index_cover(it->index, 1 + c, &it->covers[c]);
            failed = test_allocator_disarm(&it->counted);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        }
    }
    check(it);
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        test_allocator_arm(&it->counted, failures + 1);
        ivm_status status = ivm__store_update_reserve(&it->store, 30000);
        failed = test_allocator_disarm(&it->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        check(it);
        if (failed) {
            undo(it);
        }
    }
    cr_assert_geq(failures, COVERS + 2);
    step(it, 1000);
    commit(it);
    check(it);
    end(it);
}

/* ---- In words ------------------------------------------------------------------------------------------------------------------------ */

/* What a word's hash is made of, taken back: another word cannot have it. The seed goes in by an exclusive or at the start. */
static uint64_t hash_undone(uint64_t hash)
{
    const uint64_t prime = 0x9FB21C651E98DF25ull;
    uint64_t inverse = prime, out = hash;
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - prime * inverse;
    }
    out ^= out >> 28 ^ out >> 56;
    out *= inverse;
    out ^= (out >> 35) + 8;
    out *= inverse;
    /* x ^ x <<< 49 ^ x <<< 24 has the order 64: the 63rd power takes the first one back. */
    for (int i = 0; i < 63; i++) {
        out ^= (out << 49 | out >> 15) ^ (out << 24 | out >> 40);
    }
    return out << 32 | out >> 32;
}

Test(engine_cover, a_hash_has_one_word)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t mixed = hash_undone(ivm__hash_word(0, seed * seed));
        for (uint64_t i = 1; i < 100; i++) {
            uint64_t word = i % 2 ? i : i * 0x9E3779B97F4A7C15ull;
            cr_assert_eq(hash_undone(ivm__hash_word(word, seed * seed)) ^ mixed, word);
        }
    }
}

Test(engine_cover, few_values_take_a_word_a_key)
{
    world *it = begin(61);
    it->values = FEW;
    fill(it, 0, 3000);
    commit(it);
    covers_make(it);
    for (uint32_t i = 3000; i < KEYS; i += 50) {
        fill(it, i, i + 50);
        check(it);
        commit(it);
    }
    cr_assert_not_null(it->covers[0]->words);
    cr_assert_leq(ivm__cover_bytes(it->covers[0]), KEYS * sizeof(uint64_t) * 5 / 2 + 4096);
    for (uint32_t i = 0; i < KEYS; i++) {
        key_delete(it, i);
        if (i % 500 == 499) {
            commit(it);
            check(it);
        }
    }
    cr_assert_eq(it->index->used, 0);
    cr_assert_leq(ivm__index_bytes(it->index), 16384, "what keys that went took has come back");
    end(it);
}

/* More values than there are codes: the cover says nothing any more, until it is asked for and made again in pairs. */
Test(engine_cover, values_become_many)
{
    for (int undone = 0; undone < 2; undone++) {
        world *it = begin(62);
        it->values = FEW;
        fill(it, 0, 5000);
        commit(it);
        covers_make(it);
        check(it);
        const ivm__cover_words *words = it->covers[0]->words;
        cr_assert_not_null(words);
        it->values = MANY;
        step(it, 3000);
        cr_assert(words->failed);
        cr_assert_null(ivm__index_cover_any(it->index));
        uint32_t absent[1];
        ivm__vector vector = { .type = IVM_INT64, .cells = &it->key[5999] };
        ivm__chunk chunk = { .rows_count = 1, .columns_count = 1, .columns = &vector };
        ivm__keys keys;
        cr_assert_eq(ivm__index_keys(it->index, &it->arena, &chunk, NULL, false, &keys), IVM_OK);
        cr_assert_eq(ivm__index_absent(it->index, &keys, absent), it->a[5999] == ABSENT);
        if (undone) {
            undo(it);
        } else {
            commit(it);
        }
        check(it);
        cr_assert_eq(it->covers[0]->words != NULL, undone);
        step(it, 1000);
        commit(it);
        check(it);
        end(it);
    }
}

/* The same while larger words are filled beside: what said nothing any more says nothing when those take its place. */
Test(engine_cover, values_become_many_while_words_grow)
{
    world *it = begin(63);
    it->values = FEW;
    fill(it, 0, 2000);
    commit(it);
    covers_make(it);
    const ivm__cover_words *words = it->covers[0]->words;
    cr_assert_not_null(words);
    uint32_t next = 2000;
    for (; !words->larger; next++) {
        cr_assert_lt(next, KEYS);
        fill(it, next, next + 1);
        commit(it);
    }
    it->values = UINT32_MAX;
    while (!words->failed) {
        step(it, 1);
        commit(it);
    }
    cr_assert_not_null(words->larger);
    it->values = FEW;
    for (next = 0; next < KEYS; next++) {
        if (it->a[next] == ABSENT) {
            fill(it, next, next + 1);
            commit(it);
            cr_assert(words->failed);
            cr_assert_null(ivm__index_cover_any(it->index));
        }
    }
    check(it);
    end(it);
}

/* A small index has words with few codes, and so pairs; they become words when there are many keys, in the middle of a step too, and stay pairs
 * where memory runs out. */
Test(engine_cover, pairs_become_words_as_keys_come)
{
    for (int undone = 0; undone < 2; undone++) {
        world *it = begin(64);
        it->values = FEW;
        fill(it, 0, 400);
        commit(it);
        covers_make(it);
        cr_assert(!it->covers[0]->words && it->covers[0]->capacity > 0);
        check(it);
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            test_allocator_arm(&it->counted, n);
            ivm_status status = ivm__store_reserve(&it->store, 3000);
            failed = test_allocator_disarm(&it->counted);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
            check(it);
        }
        cr_assert(it->covers[0]->words && it->covers[0]->capacity == 0);
        for (uint32_t i = 400; i < 3400; i++) {
            key_insert(it, i, true);
        }
        check(it);
        if (undone) {
            undo(it);
        } else {
            commit(it);
        }
        check(it);
        step(it, 500);
        commit(it);
        check(it);
        end(it);
    }
}

Test(engine_cover, out_of_memory_at_every_call_in_words)
{
    world *it = begin(63);
    it->values = FEW;
    fill(it, 0, 4096);
    commit(it);
    for (uint32_t c = 0; c < COVERS; c++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            test_allocator_arm(&it->counted, n);
            ivm_status status = ivm__index_cover(it->index, 1 + c, &it->covers[c]);
            failed = test_allocator_disarm(&it->counted);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        }
        cr_assert_not_null(it->covers[c]->words);
    }
    check(it);
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        test_allocator_arm(&it->counted, failures + 1);
        ivm_status status = ivm__store_update_reserve(&it->store, 30000);
        failed = test_allocator_disarm(&it->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        check(it);
        if (failed) {
            undo(it);
        }
    }
    cr_assert_geq(failures, COVERS + 2);
    it->values = MANY;
    step(it, 1000);
    commit(it);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        test_allocator_arm(&it->counted, n);
        ivm_status status = ivm__index_cover(it->index, 1, &it->covers[0]);
        failed = test_allocator_disarm(&it->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
    }
    check(it);
    end(it);
}

/* ---- Growth a piece at a time ------------------------------------------------------------------------------------------------------ */

/* Room for a row, once memory has run out at every allocation that takes: how often it did. */
static uint32_t room_make(world *it, ivm_status (*reserve)(ivm__store *store, uint64_t rows))
{
    for (uint32_t n = 1;; n++) {
        test_allocator_arm(&it->counted, n);
        ivm_status status = reserve(&it->store, 1);
        bool failed = test_allocator_disarm(&it->counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        if (!failed) {
            return n - 1;
        }
    }
}

/* Rows come, change and go a few at a time, in steps that are undone and steps that are not, while larger pairs or words are filled beside; memory
 * runs out at every step of that; cleared and freed in the middle of it, nothing is left. */
static void grow_slowly(uint64_t values)
{
    world *it = begin(values);
    it->values = values;
    fill(it, 0, 600);
    commit(it);
    covers_make(it);
    uint32_t beside = 0, failures = 0, gone = 0;
    for (uint32_t i = 600; i < KEYS; i++) {
        const ivm__cover *cover = it->covers[0];
        bool grows = cover->words ? cover->words->larger != NULL : cover->larger != NULL;
        beside += grows;
        failures += room_make(it, ivm__store_reserve);
        key_insert(it, i, true);
        if (i % 16 == 3) {
            undo(it);
            continue;
        }
        commit(it);
        uint32_t other = (uint32_t)draw(it, i);
        failures += room_make(it, ivm__store_update_reserve);
        if (it->a[other] != ABSENT && draw(it, 4) == 0) {
            key_delete(it, other);
            gone += grows;
        } else if (it->a[other] != ABSENT) {
            key_replace(it, other);
        }
        if (i % 32 == 5) {
            undo(it);
        } else {
            commit(it);
        }
        if (i % 32 == 0) {
            check(it);
        }
    }
    check(it);
    cr_assert(beside > 100 && gone > 10 && failures > 10, "%u %u %u", beside, gone, failures);
    end(it);
}

Test(engine_cover, pairs_follow_while_they_grow)
{
    grow_slowly(MANY);
}

Test(engine_cover, words_follow_while_they_grow)
{
    grow_slowly(FEW);
}

/* No reserve of a row moves more than some pairs; cleared in the middle of it, a cover begins anew. */
Test(engine_cover, pairs_grow_a_piece_at_a_time)
{
    world *it = begin(9);
    it->values = ABSENT; /* any */
    fill(it, 0, 600);
    commit(it);
    covers_make(it);
    uint64_t before = 0, most = 0;
    for (uint32_t i = 600; i < 4000 || !it->covers[0]->larger; i++) {
        cr_assert(i < KEYS);
        fill(it, i, i + 1);
        commit(it);
        uint64_t done = it->covers[0]->larger ? it->covers[0]->growth.done : 0;
        most = done > before && done - before > most ? done - before : most;
        before = done;
    }
    check(it);
    cr_assert(!it->covers[0]->words && it->covers[0]->larger && most > 0 && most < 300, "%llu", (unsigned long long)most);
    ivm__store_clear(&it->store);
    for (uint32_t i = 0; i < KEYS; i++) {
        it->a[i] = ABSENT;
    }
    remember(it);
    cr_assert(!it->covers[0]->larger);
    check(it);
    end(it);
}
