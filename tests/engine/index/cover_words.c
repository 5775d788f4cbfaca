/* tests engine/index/cover_words.c, and covers that grow a piece at a time */
#include "cover_case.h"

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

Test(engine_cover_words, a_hash_has_one_word)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t mixed = hash_undone(ivm__hash_word(0, seed * seed));
        for (uint64_t i = 1; i < 100; i++) {
            uint64_t word = i % 2 ? i : i * 0x9E3779B97F4A7C15ull;
            cr_assert_eq(hash_undone(ivm__hash_word(word, seed * seed)) ^ mixed, word);
        }
    }
}

Test(engine_cover_words, few_values_take_a_word_a_key)
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
Test(engine_cover_words, values_become_many)
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
Test(engine_cover_words, values_become_many_while_words_grow)
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
Test(engine_cover_words, pairs_become_words_as_keys_come)
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

Test(engine_cover_words, out_of_memory_at_every_call_in_words)
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

Test(engine_cover_words, pairs_follow_while_they_grow)
{
    grow_slowly(MANY);
}

Test(engine_cover_words, words_follow_while_they_grow)
{
    grow_slowly(FEW);
}

/* No reserve of a row moves more than some pairs; cleared in the middle of it, a cover begins anew. */
Test(engine_cover_words, pairs_grow_a_piece_at_a_time)
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
