/* Words of covers: see cover_words.h. Robin Hood probing: no word stands before one whose home comes earlier, so that a search ends at the first
 * word that is nearer to its own home. Two slots of each key are compared without a branch, then two more of the few not found there, and again;
 * both lines are sent for where the first four lie in two. What lies further yet, less than one in a hundred, is searched for. Branches that go by
 * what is in a slot would be guessed wrong for every third key, which costs more than all the comparing. Cost: one line a key, 12 to 15 bytes; at
 * load a half instead of 0.66 16 to 20. A key that comes or goes moves the words up to the next free slot. */
#include "cover_words.h"

#include "store_inside.h"

#define BLOCK_KEYS 64u
#define SLOTS_AT_ONCE 2u

/* Where a key's word is looked for first, and what it is there but for its code. */
typedef struct aim {
    uint32_t home[BLOCK_KEYS];
    uint64_t word[BLOCK_KEYS];
} aim;

static inline uint64_t word_of(const ivm__cover_words *it, uint64_t hash, uint32_t *home)
{
    uint64_t product = (hash >> 32) * it->capacity;
    *home = (uint32_t)(product >> 32);
    uint64_t rest = (uint64_t)((uint32_t)product >> it->shift) << 32 | (uint32_t)hash;
    return rest << (IVM__WORD_DISTANCE_BITS + it->codes.bits);
}

static inline uint32_t distance_of(const ivm__cover_words *it, uint64_t word)
{
    return (uint32_t)(word >> it->codes.bits) & (IVM__WORD_DISTANCES - 1);
}

static inline bool word_is(const ivm__cover_words *it, uint64_t word, uint64_t wanted)
{
    return (word ^ wanted) >> it->codes.bits == 0;
}

static inline uint64_t distance_one(const ivm__cover_words *it)
{
    return (uint64_t)1 << it->codes.bits;
}

static uint64_t hash_of(const ivm__cover_words *it, uint32_t at)
{
    uint64_t word = it->words[at], rest = word >> (IVM__WORD_DISTANCE_BITS + it->codes.bits);
    uint64_t low = rest >> 32 << it->shift, home = at - distance_of(it, word);
    uint64_t upper = ((home << 32 | low) + it->capacity - 1) / it->capacity;
    return upper << 32 | (uint32_t)rest;
}

/* ---- Probing ----------------------------------------------------------------------------------------------------------------------- */

/* The key's word, from its slot with this distance on; 0: it has none. A word's code is not 0. */
static uint64_t word_find(const ivm__cover_words *it, uint32_t home, uint64_t wanted, uint32_t distance)
{
    wanted += distance * distance_one(it);
    for (; distance < IVM__WORD_DISTANCES; distance++, wanted += distance_one(it)) {
        uint64_t word = it->words[home + distance];
        if (word_is(it, word, wanted) && word != 0) {
            return word;
        }
        if (word == 0 || distance_of(it, word) < distance) {
            return 0;
        }
    }
    return 0;
}

static void aim_send(const ivm__cover_words *it, const ivm__keys *keys, uint32_t first, aim *at)
{
    uint32_t left = keys->rows_count - first, count = left < BLOCK_KEYS ? left : BLOCK_KEYS;
    for (uint32_t i = 0; i < count; i++) {
        at->word[i] = word_of(it, keys->hashes[first + i], &at->home[i]);
        __builtin_prefetch(&it->words[at->home[i]]);
        __builtin_prefetch(&it->words[at->home[i] + 2 * SLOTS_AT_ONCE - 1]);
    }
}

/* All bits where the word is the one wanted, else none. Arithmetic: of a choice the compiler makes a branch. */
static inline uint64_t word_mask(uint64_t word, uint64_t wanted, uint32_t bits)
{
    return (uint64_t)((int64_t)(((word ^ wanted) >> bits) - 1) >> 63);
}

/* Compares a few slots from this distance on of each key listed, without a branch on what is there: their words, 0 where none of them has the key.
 * Lists those: how many. */
static inline uint32_t slots_compare(const ivm__cover_words *it, const aim *at, uint32_t distance, const uint8_t *listed, uint32_t count,
                                     uint64_t *restrict words, uint8_t *restrict left)
{
    const uint64_t *all = it->words + distance;
    uint64_t one = distance_one(it), add = distance * one;
    uint32_t left_count = 0, bits = it->codes.bits;
    for (uint32_t j = 0; j < count; j++) {
        uint32_t i = listed ? listed[j] : j;
        const uint64_t *slot = &all[at->home[i]];
        uint64_t wanted = at->word[i] + add, word = 0;
        for (uint32_t s = 0; s < SLOTS_AT_ONCE; s++) {
            word |= slot[s] & word_mask(slot[s], wanted + s * one, bits);
        }
        words[i] = word;
        left[left_count] = (uint8_t)i;
        left_count += word == 0;
    }
    return left_count;
}

/* The word of each key of a block, 0 where it has none. */
static void block_words(const ivm__cover_words *it, const aim *at, uint32_t count, uint64_t *restrict words)
{
    uint8_t left[BLOCK_KEYS], further[BLOCK_KEYS];
    uint32_t left_count = slots_compare(it, at, 0, NULL, count, words, left);
    uint32_t further_count = slots_compare(it, at, SLOTS_AT_ONCE, left, left_count, words, further);
    left_count = slots_compare(it, at, 2 * SLOTS_AT_ONCE, further, further_count, words, left);
    for (uint32_t j = 0; j < left_count; j++) {
        uint32_t i = left[j];
        words[i] = word_find(it, at->home[i], at->word[i], 3 * SLOTS_AT_ONCE);
    }
}

uint32_t ivm__cover_words_probe(const ivm__cover_words *it, const ivm__keys *keys, uint64_t *restrict cells, uint16_t *restrict codes)
{
    aim aims[2];
    uint64_t words[BLOCK_KEYS], mask = distance_one(it) - 1;
    const uint64_t *restrict by_code = it->codes.cells;
    uint32_t turn = 0, hits = 0, rows_count = keys->rows_count;
    aim_send(it, keys, 0, &aims[0]);
    for (uint32_t first = 0; first < rows_count; first += BLOCK_KEYS, turn ^= 1) {
        uint32_t left = rows_count - first, count = left < BLOCK_KEYS ? left : BLOCK_KEYS;
        aim_send(it, keys, first + count, &aims[turn ^ 1]);
        block_words(it, &aims[turn], count, words);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t code = words[i] & mask;
            cells[first + i] = by_code[code];
            codes[first + i] = (uint16_t)code;
            hits += code != 0;
        }
    }
    return hits;
}

uint32_t ivm__cover_words_absent(const ivm__cover_words *it, const ivm__keys *keys, uint32_t *absent)
{
    aim aims[2];
    uint64_t words[BLOCK_KEYS], mask = distance_one(it) - 1;
    uint32_t turn = 0, absent_count = 0, rows_count = keys->rows_count;
    aim_send(it, keys, 0, &aims[0]);
    for (uint32_t first = 0; first < rows_count; first += BLOCK_KEYS, turn ^= 1) {
        uint32_t left = rows_count - first, count = left < BLOCK_KEYS ? left : BLOCK_KEYS;
        aim_send(it, keys, first + count, &aims[turn ^ 1]);
        block_words(it, &aims[turn], count, words);
        for (uint32_t i = 0; i < count; i++) {
            absent[absent_count] = first + i;
            absent_count += (words[i] & mask) == 0 && !(keys->skip && keys->skip[first + i]);
        }
    }
    return absent_count;
}

/* ---- Keys come and go ------------------------------------------------------------------------------------------------------------------ */

/* Where the word stands or is to stand: before the first one nearer to its home. *is: it stands there. */
static uint32_t slot_of(const ivm__cover_words *it, uint32_t home, uint64_t wanted, bool *is)
{
    uint32_t distance = 0;
    for (; distance < IVM__WORD_DISTANCES; distance++, wanted += distance_one(it)) {
        uint64_t word = it->words[home + distance];
        *is = word != 0 && word_is(it, word, wanted);
        if (*is || word == 0 || distance_of(it, word) < distance) {
            break;
        }
    }
    return home + distance;
}

/* Moves the words from here to the next free slot on by one. Not where one would come too far from its home. */
static bool slot_open(ivm__cover_words *it, uint32_t at)
{
    uint32_t end = at;
    for (; it->words[end] != 0; end++) {
        if (distance_of(it, it->words[end]) == IVM__WORD_DISTANCES - 1) {
            return false;
        }
    }
    for (; end > at; end--) {
        it->words[end] = it->words[end - 1] + distance_one(it);
    }
    return true;
}

static bool word_put(ivm__cover_words *it, uint64_t hash, uint32_t code)
{
    uint32_t home;
    uint64_t wanted = word_of(it, hash, &home);
    bool is = false;
    uint32_t at = slot_of(it, home, wanted, &is);
    if (!is && (at - home == IVM__WORD_DISTANCES || !slot_open(it, at))) {
        return false;
    }
    it->words[at] = (wanted + (at - home) * distance_one(it)) | code;
    it->used += !is;
    return true;
}

/* Whether the larger words beside, if there are any, have those of the hash's home. */
static bool is_done(const ivm__cover_words *it, uint64_t hash)
{
    uint32_t home;
    word_of(it, hash, &home);
    return home < it->growth.done && !it->larger->failed;
}

void ivm__cover_words_put(ivm__cover_words *it, uint64_t hash, uint64_t cell)
{
    if (it->failed) {
        return;
    }
    uint32_t code = ivm__codes_give(&it->codes, cell, it->seed);
    it->failed = code == 0 || !word_put(it, hash, code);
    if (ivm__unlikely(it->larger != NULL) && !it->failed && is_done(it, hash)) {
        it->larger->failed = !word_put(it->larger, hash, code);
    }
}

static void word_remove(ivm__cover_words *it, uint64_t hash)
{
    uint32_t home;
    uint64_t wanted = word_of(it, hash, &home);
    bool is = false;
    uint32_t at = slot_of(it, home, wanted, &is);
    assert(is);
    for (uint64_t next; (next = it->words[at + 1]) != 0 && distance_of(it, next) > 0; at++) {
        it->words[at] = next - distance_one(it);
    }
    it->words[at] = 0;
    it->used--;
}

void ivm__cover_words_remove(ivm__cover_words *it, uint64_t hash)
{
    if (it->failed) {
        return;
    }
    word_remove(it, hash);
    if (ivm__unlikely(it->larger != NULL) && is_done(it, hash)) {
        word_remove(it->larger, hash);
    }
}

/* ---- Room ---------------------------------------------------------------------------------------------------------------------------- */

/* Past the last home: a search and a removal look one slot past the furthest word. */
#define WORDS_BEHIND (IVM__WORD_DISTANCES + 1)

static size_t words_bytes(uint32_t capacity)
{
    return capacity ? ((size_t)capacity + WORDS_BEHIND) * sizeof(uint64_t) : 0;
}

/* For so many keys; that the words fill a block puts off the next growth. */
static uint64_t capacity_for(uint64_t keys)
{
    uint64_t least = keys * 50 / 33 + 1;
    return least > UINT32_MAX ? least : ivm__bytes_fitting(words_bytes((uint32_t)least)) / sizeof(uint64_t) - WORDS_BEHIND;
}

static void capacity_set(ivm__cover_words *it, uint64_t *words, uint32_t capacity)
{
    it->words = words;
    it->capacity = capacity;
    it->shift = 31 - (uint32_t)__builtin_clz(capacity);
    it->used = 0;
}

static void larger_drop(ivm__cover_words *it)
{
    if (it->larger) {
        ivm__release(it->memory, it->larger->words, words_bytes(it->larger->capacity));
        ivm__release(it->memory, it->larger, sizeof *it->larger);
        it->larger = NULL;
    }
}

static ivm_status larger_make(ivm__cover_words *it, uint64_t capacity)
{
    uint64_t *words = capacity > UINT32_MAX ? NULL : ivm__allocate(it->memory, words_bytes((uint32_t)capacity));
    ivm__cover_words *larger = ivm__allocate(it->memory, sizeof *larger);
    if (!larger || !words) {
        ivm__release(it->memory, words, words ? words_bytes((uint32_t)capacity) : 0);
        ivm__release(it->memory, larger, sizeof *larger);
        return IVM_OUT_OF_MEMORY;
    }
    *larger = *it; /* of the codes it reads the bits alone */
    capacity_set(larger, words, (uint32_t)capacity);
    it->larger = larger;
    it->growth = (ivm__growth){ .capacity = it->capacity };
    return IVM_OK;
}

/* At the end of a move of so many slots. */
static void larger_take(ivm__cover_words *it, uint64_t slots)
{
    ivm__cover_words *larger = it->larger;
    assert(!it->failed && (larger->failed || larger->used == it->used));
    ivm__growth_release(it->memory, it->words, words_bytes(it->capacity), slots);
    it->words = larger->words;
    it->capacity = larger->capacity;
    it->shift = larger->shift;
    it->failed = larger->failed;
    it->larger = NULL;
    ivm__release(it->memory, larger, sizeof *larger);
}

/* The larger ones are clear. So many slots, up to a free one. Words come in the order of their homes and so go near the end of what is there, but for
 * those of homes before, which are there. */
static void words_move(ivm__cover_words *it, uint64_t slots)
{
    uint64_t at = it->growth.done, end = (uint64_t)it->capacity + IVM__WORD_DISTANCES, least = slots < end - at ? at + slots : end;
    for (; at < end && (at < least || it->words[at] != 0) && !it->larger->failed; at++) {
        uint64_t word = it->words[at];
        if (word != 0 && at - distance_of(it, word) >= it->growth.done) {
            uint32_t code = (uint32_t)(word & (distance_one(it) - 1));
            it->larger->failed = !word_put(it->larger, hash_of(it, (uint32_t)at), code);
        }
    }
    it->growth.done = at < end ? at + 1 : end;
    if (at >= end || it->larger->failed) {
        larger_take(it, slots);
    }
}

static void larger_move(ivm__cover_words *it, uint64_t slots)
{
    if (ivm__growth_zero(&it->growth, it->larger->words, words_bytes(it->larger->capacity), slots)) {
        words_move(it, slots);
    }
}

/* Words that failed lack keys, and so would larger ones filled from them, which know of no failure. */
ivm_status ivm__cover_words_reserve(ivm__cover_words *it, uint64_t rows)
{
    if (ivm__unlikely(it->failed)) {
        larger_drop(it);
        return IVM_OK;
    }
    uint64_t needed = it->used + rows, capacity = capacity_for(needed);
    bool meanwhile = ivm__grows_for(it->capacity, rows) && needed <= (uint64_t)it->capacity * 33 / 50 + ivm__grows_meanwhile(it->capacity);
    if (ivm__unlikely(it->larger != NULL)) {
        larger_move(it, meanwhile ? ivm__moved_for(rows) : IVM__MOVED_ALL);
    }
    if (it->failed || it->larger || capacity <= it->capacity) { /* larger ones may have failed as they took their place */
        return IVM_OK;
    }
    IVM_TRY(larger_make(it, capacity));
    if (!meanwhile) {
        larger_move(it, IVM__MOVED_ALL);
    }
    return IVM_OK;
}

/* All that is left of 64. */
static uint32_t bits_for(uint64_t capacity)
{
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(capacity) - IVM__WORD_DISTANCE_BITS;
    return bits < IVM__CODE_BITS_MAX ? bits : IVM__CODE_BITS_MAX;
}

static bool has_codes(uint64_t capacity)
{
    return capacity >= 4 << IVM__WORD_DISTANCE_BITS && capacity <= UINT32_MAX;
}

uint32_t ivm__cover_words_bits(uint64_t rows)
{
    uint64_t capacity = capacity_for(rows);
    return has_codes(capacity) ? bits_for(capacity) : 0;
}

ivm_status ivm__cover_words_make(ivm__memory *memory, uint64_t seed, uint64_t rows, ivm__cover_words **made)
{
    *made = NULL;
    uint64_t capacity = capacity_for(rows);
    if (!has_codes(capacity)) {
        return IVM_OK;
    }
    ivm__cover_words *it = ivm__allocate_zeroed(memory, sizeof *it);
    if (!it) {
        return IVM_OUT_OF_MEMORY;
    }
    it->memory = memory;
    it->seed = seed;
    uint64_t *words = ivm__allocate_zeroed(memory, words_bytes((uint32_t)capacity));
    capacity_set(it, words, (uint32_t)capacity);
    ivm_status status = ivm__codes_init(&it->codes, memory, bits_for(capacity));
    if (status != IVM_OK || !it->words) {
        ivm__cover_words_free(it);
        return IVM_OUT_OF_MEMORY;
    }
    *made = it;
    return IVM_OK;
}

void ivm__cover_words_free(ivm__cover_words *it)
{
    if (it) {
        larger_drop(it);
        ivm__release(it->memory, it->words, words_bytes(it->capacity));
        ivm__codes_deinit(&it->codes, it->memory);
        ivm__release(it->memory, it, sizeof *it);
    }
}

void ivm__cover_words_clear(ivm__cover_words *it)
{
    larger_drop(it);
    memset(it->words, 0, words_bytes(it->capacity));
    ivm__codes_clear(&it->codes, it->memory);
    it->used = 0;
    it->failed = false;
}

uint64_t ivm__cover_words_bytes(const ivm__cover_words *it)
{
    uint64_t larger = it->larger ? sizeof *it->larger + words_bytes(it->larger->capacity) : 0;
    return sizeof *it + words_bytes(it->capacity) + ivm__codes_bytes(&it->codes) + larger;
}

static const char *words_validate(const ivm__cover_words *it, uint32_t codes_count)
{
    uint32_t used = 0;
    uint64_t home_before = 0;
    for (uint64_t at = 0; at <= (uint64_t)it->capacity + IVM__WORD_DISTANCES; at++) {
        uint64_t word = it->words[at], distance = distance_of(it, word), code = word & (distance_one(it) - 1);
        if (word == 0) {
            continue;
        }
        used++;
        if (distance > at || at - distance >= it->capacity || at - distance < home_before) {
            return "a cover's word out of the order of homes";
        }
        if (distance > 0 && it->words[at - 1] == 0) {
            return "a free slot between a cover's word and its home";
        }
        if (code == 0 || code > codes_count) {
            return "a cover's word with a code that stands for nothing";
        }
        home_before = at - distance;
    }
    return it->failed || used == it->used ? NULL : "a cover that counts other words than it has";
}

/* The larger ones have the words of homes that are done, and no others. */
static const char *larger_validate(const ivm__cover_words *it)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < it->capacity + IVM__WORD_DISTANCES; at++) {
        uint64_t word = it->words[at], hash = word ? hash_of(it, at) : 0;
        if (word == 0 || !is_done(it, hash)) {
            continue;
        }
        uint32_t home;
        uint64_t wanted = word_of(it->larger, hash, &home);
        if (((word_find(it->larger, home, wanted, 0) ^ word) & (distance_one(it) - 1)) != 0) {
            return "a cover's word that is not among the larger ones";
        }
        count++;
    }
    return it->larger->failed || count == it->larger->used ? words_validate(it->larger, it->codes.count)
                                                           : "larger words of a cover that it has not itself";
}

const char *ivm__cover_words_validate(const ivm__cover_words *it)
{
    const char *wrong = words_validate(it, it->codes.count);
    return wrong || !it->larger || it->failed || it->growth.cleared < words_bytes(it->larger->capacity) ? wrong : larger_validate(it);
}
