/* Hashes of keys: XXH3 inlined at constant length, seeded per engine, then one multiply and fold for each further word. Never stored
 * or printed. */
#ifndef IVM__HASH_H
#define IVM__HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdint.h>

static inline uint64_t ivm__hash_word(uint64_t word, uint64_t seed)
{
    return XXH3_64bits_withSeed(&word, sizeof word, seed);
}

static inline uint64_t ivm__hash_fold(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0x9E3779B97F4A7C15ull;
    uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    return folded ^ (hash << 31 | hash >> 33);
}

/* The words need not be aligned. */
static inline uint64_t ivm__hash_words(const void *words, uint32_t count, uint64_t seed)
{
    const uint8_t *at = words;
    uint64_t word = 0;
    if (count) {
        memcpy(&word, at, sizeof word);
    }
    uint64_t hash = ivm__hash_word(word, seed);
    for (uint32_t i = 1; i < count; i++) {
        memcpy(&word, at + i * sizeof word, sizeof word);
        hash = ivm__hash_fold(hash, word);
    }
    return count > 1 ? ivm__hash_word(hash, seed) : hash;
}

static inline uint64_t ivm__hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

#endif
