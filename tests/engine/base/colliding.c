/* tests engine/base/hash.h as the engine seeds it: keys and texts crafted so that all hash alike under one seed are as good as random ones under another.
 *
 * XXH3 of 8 bytes is a bijection for a known seed: going backwards through it gives a key for every hash there is, so that 2^16 keys whose hashes agree in
 * the half that an index goes by cost nothing to make. What they cost an engine is counted in slots looked at, not timed. */
#include "catalog.h"
#include "finder.h"
#include "index_inside.h"

#include <criterion/criterion.h>

#define KEYS 65536u
#define KEYS_SLOW 4096u /* under the seed that they are made for */
#define ENEMY 0x5eedull /* the seed that he counts on, where it is not 0 */
#define CHUNK 4096u

/* ---- XXH3 of 8 bytes, backwards ------------------------------------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static uint64_t shift_undo(uint64_t word, unsigned by)
{
    uint64_t undone = word;
    for (unsigned done = by; done < 64; done += by) {
        undone = word ^ undone >> by;
    }
    return undone;
}

/* Of an odd factor, modulo 2^64: each round doubles the bits that are right. */
static uint64_t inverse(uint64_t factor)
{
    uint64_t found = factor;
    for (int round = 0; round < 6; round++) {
        found *= 2 - factor * found;
    }
    return found;
}

/* word ^ rotations by 49 and 24 is a polynomial in x with x^64 = 1; its 64th power is 1, so its 63rd undoes it. */
static uint64_t rotations_undo(uint64_t word)
{
    for (int i = 0; i < 63; i++) {
        word ^= rotate(word, 49) ^ rotate(word, 24);
    }
    return word;
}

static uint64_t mix_undo(uint64_t hash)
{
    const uint64_t factor = inverse(0x9FB21C651E98DF25ull);
    hash = shift_undo(hash, 28) * factor;
    hash ^= (hash >> 35) + 8; /* changes none of the bits it reads */
    return rotations_undo(hash * factor);
}

/* The word whose hash under the seed this is. The two halves of a word are swapped before it is mixed with what the seed makes, which the hash of a word
 * tells: that of 0. */
static uint64_t word_of(uint64_t hash, uint64_t seed)
{
    uint64_t swapped = mix_undo(hash) ^ mix_undo(ivm__hash_word(0, seed));
    return rotate(swapped, 32);
}

/* Word i of those whose hashes under the seed have one upper half (an index's slots) or one lower half (slots of texts). */
static uint64_t crafted(uint32_t i, uint64_t seed, bool upper)
{
    uint64_t hash = upper ? 0x0badcafe00000000ull | i : (uint64_t)i << 32 | 0x0badcafeu;
    uint64_t word = word_of(hash, seed);
    cr_assert_eq(ivm__hash_word(word, seed), hash);
    return word;
}

static uint64_t random_word(uint32_t i)
{
    uint64_t word = (i + 1) * 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    return (word ^ word >> 27) * 0x94d049bb133111ebull;
}

/* ---- What they cost ------------------------------------------------------------------------------------------------------------------- */

typedef struct costs {
    uint64_t index, texts, finder; /* slots from home to place, of all keys, of all texts, and of all keys in a finder */
} costs;

static uint64_t index_steps(const ivm__index *index)
{
    uint64_t steps = 0;
    for (uint64_t at = 0; at < index->slots_capacity; at++) {
        uint64_t slot = ivm__index_slot(index, (uint32_t)at);
        if (slot) {
            uint64_t hash = ivm__index_row_hash(index, ivm__store_row(index->store, ivm__slot_row(slot)));
            steps += 1 + ivm__index_distance(index, ivm__index_aim(index, hash).home, (uint32_t)at);
        }
    }
    return steps;
}

static uint64_t texts_steps(const ivm__texts *texts)
{
    uint64_t steps = 0;
    for (uint32_t at = 0; at < texts->capacity; at++) {
        steps += texts->slots[at].text ? 1 + ((at - (uint32_t)texts->slots[at].hash) & (texts->capacity - 1)) : 0;
    }
    return steps;
}

/* Of what readers look keys up in. */
static uint64_t finder_steps(const ivm_table *table)
{
    ivm__row_pages rows = ivm__store_row_pages(&table->store);
    ivm__finder *finder =
        ivm__finder_make(&table->engine->memory, &rows, &(ivm__find_key){ table->key, table->key_count, table->engine->seed });
    uint64_t steps = 0;
    cr_assert_not_null(finder);
    for (uint32_t at = 0; at <= finder->mask; at++) {
        uint64_t slot = atomic_load(&finder->slots[at]);
        steps += slot ? 1 + ((at - (uint32_t)(slot >> 32)) & finder->mask) : 0;
    }
    ivm__finder_release(finder, &table->engine->memory);
    return steps;
}

static void keys_push(ivm_table *table, uint32_t first, uint32_t count, bool craft, uint64_t craft_seed)
{
    ivm_batch *batch;
    ivm_error error = IVM_ERROR_INIT;
    cr_assert_eq(ivm_batch_create(table->engine, &batch, NULL), IVM_OK);
    for (uint32_t i = first; i < first + count; i++) {
        uint64_t key = craft ? crafted(i, craft_seed, true) : random_word(i);
        uint64_t text = craft ? crafted(i, craft_seed, false) : random_word(~i);
        ivm_value row[] = { ivm_int64((int64_t)key), ivm_int64((int64_t)key), ivm_string_sized((const char *)&text, sizeof text) };
        cr_assert_eq(ivm_batch_row(batch, table, IVM_INSERT, 1, row, 3), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(table->engine, batch, NULL, &error), IVM_OK, "%s", error.message);
}

/* A table with a key, and a second index of several rows a key as a join has, filled with so many keys. */
static costs fill(uint64_t hash_seed, uint32_t keys_count, bool craft, uint64_t craft_seed)
{
    static const ivm_column_definition columns[] = { { "k", IVM_INT64, true }, { "r", IVM_INT64, true }, { "s", IVM_STRING, true } };
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *engine;
    ivm_table *table;
    ivm__index *second;
    options.hash_seed = hash_seed;
    cr_assert_eq(ivm_engine_open(&options, &engine, NULL), IVM_OK);
    ivm_table_options as = { .columns = columns, .columns_count = 3, .key = "k" };
    cr_assert_eq(ivm_table_create(engine, "t", &as, &table, NULL), IVM_OK);
    cr_assert_eq(ivm__store_index(&table->store, (uint32_t[]){ 1 }, 1, false, &second), IVM_OK);
    for (uint32_t i = 0; i < keys_count; i += CHUNK) {
        keys_push(table, i, CHUNK, craft, craft_seed);
    }
    cr_assert_null(ivm__index_validate(table->key_index));
    costs found = { index_steps(table->key_index) + index_steps(second), texts_steps(&engine->texts), finder_steps(table) };
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    return found;
}

/* ---- Tests ---------------------------------------------------------------------------------------------------------------------------- */

Test(engine_colliding, a_word_is_had_from_its_hash)
{
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t hash = random_word(i), seed = i % 3 ? random_word(i + 1000) : 0;
        cr_assert_eq(ivm__hash_word(word_of(hash, seed), seed), hash);
    }
}

/* For every seed that an engine draws: three of them. */
Test(engine_colliding, keys_of_one_slot_under_another_seed_cost_what_random_ones_cost)
{
    for (uint64_t craft_seed = 0; craft_seed <= 2 * ENEMY; craft_seed += ENEMY) {
        costs usual = fill(0, KEYS, false, 0), enemy = fill(0, KEYS, true, craft_seed);
        cr_expect_lt(enemy.index, 2 * usual.index, "%lu slots, not %lu", (unsigned long)enemy.index, (unsigned long)usual.index);
        cr_expect_lt(enemy.texts, 2 * usual.texts, "%lu slots of texts, not %lu", (unsigned long)enemy.texts, (unsigned long)usual.texts);
        cr_expect_lt(enemy.finder, 2 * usual.finder, "%lu slots of a finder, not %lu", (unsigned long)enemy.finder,
                     (unsigned long)usual.finder);
    }
}

/* What the others are spared: a program that tells its seed has this to fear, and right results still. */
Test(engine_colliding, keys_of_one_slot_under_a_seed_that_is_known_stand_in_one_run)
{
    costs enemy = fill(ENEMY, KEYS_SLOW, true, ENEMY);
    cr_expect_gt(enemy.index, (uint64_t)KEYS_SLOW * KEYS_SLOW / 2);
    cr_expect_gt(enemy.texts, (uint64_t)KEYS_SLOW * KEYS_SLOW / 4);
}
