/* Covers whose column has few values, in a word of 8 bytes a key: what the hash says beyond the word's place, and the number of the cell. A hash of
 * one word is a permutation of the words, so that the whole hash tells the key.
 *
 *     hash >> 32 = x     x * capacity = home << 32 | low          word = {low >> log2(capacity), hash's lower half | distance from home | code}
 *
 * Two hashes with one home have `low` at least the capacity apart: the bits kept of it tell them apart. Words stand in the order of their
 * homes, where at load two thirds none is ever far from its own, and the array ends that far behind the last home: nothing wraps. Many words grow
 * a piece at a time (growth.h); as nothing wraps, from the first home on. */
#ifndef IVM__COVER_WORDS_H
#define IVM__COVER_WORDS_H

#include "codes.h"
#include "index.h"

#define IVM__WORD_DISTANCE_BITS 6u
#define IVM__WORD_DISTANCES (1u << IVM__WORD_DISTANCE_BITS)

typedef struct ivm__cover_words {
    ivm__memory *memory;
    uint64_t seed;
    uint64_t *words; /* 0: free */
    uint32_t capacity, used;
    uint32_t shift; /* log2 of the capacity, rounded down */
    bool failed;    /* no more codes, or a word too far from its home: it says nothing any more, and takes nothing in */
    ivm__codes codes;
    struct ivm__cover_words *larger; /* words alone, filled beside; NULL: none */
    ivm__growth growth;              /* while there are */
} ivm__cover_words;

/* Room for so many keys. *made is NULL where such words cannot hold a code. */
ivm_status ivm__cover_words_make(ivm__memory *memory, uint64_t seed, uint64_t rows, ivm__cover_words **made) IVM_MUST_CHECK;
/* So many bits a code would have; 0: none. */
uint32_t ivm__cover_words_bits(uint64_t rows);
void ivm__cover_words_free(ivm__cover_words *words); /* NULL is fine */
ivm_status ivm__cover_words_reserve(ivm__cover_words *words, uint64_t rows) IVM_MUST_CHECK;
/* Adds a key, by its hash, or gives it another cell. */
void ivm__cover_words_put(ivm__cover_words *words, uint64_t hash, uint64_t cell);
/* The key is there. */
void ivm__cover_words_remove(ivm__cover_words *words, uint64_t hash);
void ivm__cover_words_clear(ivm__cover_words *words);
/* As ivm__cover_probe() and ivm__cover_absent(). codes[i]: of the cell of key i, 0 where it is not there. */
uint32_t ivm__cover_words_probe(const ivm__cover_words *words, const ivm__keys *keys, uint64_t *cells, uint16_t *codes);
uint32_t ivm__cover_words_absent(const ivm__cover_words *words, const ivm__keys *keys, uint32_t *absent);
uint64_t ivm__cover_words_bytes(const ivm__cover_words *words);
/* Every invariant, for tests: NULL or what is wrong. */
const char *ivm__cover_words_validate(const ivm__cover_words *words);

#endif
