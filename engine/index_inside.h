/* What the files of the index share: slots, and keys as they lie in rows. A row's key hashes and compares as its packed words would. */
#ifndef IVM__INDEX_INSIDE_H
#define IVM__INDEX_INSIDE_H

#include "index.h"
#include "store_inside.h"

/* ---- Slots ----------------------------------------------------------------------------------------------------------------------- */

static inline uint32_t ivm__slot_tag(uint64_t slot)
{
    return (uint32_t)(slot >> 32);
}
/* IVM__ROW_NONE for a free slot. */
static inline ivm__row_id ivm__slot_row(uint64_t slot)
{
    return (uint32_t)slot - 1;
}
static inline uint32_t ivm__index_mask(const ivm__index *index)
{
    return (uint32_t)(((uint64_t)1 << index->slots_log2) - 1);
}
/* There must be slots. */
static inline uint32_t ivm__index_home(const ivm__index *index, uint32_t tag)
{
    return (uint32_t)((uint64_t)tag << index->slots_log2 >> 32);
}
/* The first slot from the tag's home on that has the tag or is free: what a key's row is looked for in first. */
static inline uint64_t ivm__index_candidate(const ivm__index *index, uint32_t tag)
{
    uint32_t mask = ivm__index_mask(index);
    for (uint32_t at = ivm__index_home(index, tag);; at = (at + 1) & mask) {
        uint64_t slot = index->slots[at];
        if (slot == 0 || ivm__slot_tag(slot) == tag) {
            return slot;
        }
    }
}

/* ---- Keys in rows ---------------------------------------------------------------------------------------------------------------- */

static inline uint64_t ivm__word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}
static inline const uint8_t *ivm__index_cell(const ivm__index *index, const uint8_t *row, uint32_t nth)
{
    return row + index->store->layout->offsets[index->columns[nth]];
}
static inline uint32_t ivm__index_cell_words(const ivm__index *index, uint32_t nth)
{
    return ivm__type_words(index->store->layout->types[index->columns[nth]]);
}

uint64_t ivm__index_row_hash_words(const ivm__index *index, const uint8_t *row);
/* Packs the row's key: index->words_count words. */
void ivm__index_row_pack(const ivm__index *index, const uint8_t *row, uint64_t *words);
bool ivm__index_row_has_words(const ivm__index *index, const uint8_t *row, const uint64_t *words);
bool ivm__index_rows_equal_words(const ivm__index *index, const uint8_t *a, const uint8_t *b);

static inline uint64_t ivm__index_row_hash(const ivm__index *index, const uint8_t *row)
{
    if (ivm__likely(index->words_count == 1)) {
        return ivm__hash_word(ivm__word_at(ivm__index_cell(index, row, 0)), index->store->seed);
    }
    return ivm__index_row_hash_words(index, row);
}
/* Whether the row's key is this packed one. */
static inline bool ivm__index_row_has(const ivm__index *index, const uint8_t *row, const uint64_t *words)
{
    if (ivm__likely(index->words_count == 1)) {
        return ivm__word_at(ivm__index_cell(index, row, 0)) == *words;
    }
    return ivm__index_row_has_words(index, row, words);
}
static inline bool ivm__index_rows_equal(const ivm__index *index, const uint8_t *a, const uint8_t *b)
{
    if (ivm__likely(index->words_count == 1)) {
        return ivm__word_at(ivm__index_cell(index, a, 0)) == ivm__word_at(ivm__index_cell(index, b, 0));
    }
    return ivm__index_rows_equal_words(index, a, b);
}

/* ---- Lists ----------------------------------------------------------------------------------------------------------------------- */

static inline ivm__block *ivm__block_at(const ivm__index *index, uint32_t place)
{
    return &index->blocks[place >> 4];
}
/* The place after this one in its list, or IVM__ROW_NONE. */
static inline uint32_t ivm__place_next(const ivm__index *index, uint32_t place)
{
    const ivm__block *block = ivm__block_at(index, place);
    if ((place & 15) + 1 < block->count) {
        return place + 1;
    }
    return block->next == IVM__BLOCK_NONE ? IVM__ROW_NONE : block->next * 16;
}

/* Room for so many more rows. */
ivm_status ivm__lists_reserve(ivm__index *index, uint64_t rows) IVM_MUST_CHECK;
void ivm__lists_free(ivm__index *index);
void ivm__lists_clear(ivm__index *index);
uint64_t ivm__lists_bytes(const ivm__index *index);
/* Adds a row to those of the key that `representative` stands for in the slots. Returns the row that is to stand there from now on. */
ivm__row_id ivm__list_push(ivm__index *index, ivm__row_id representative, ivm__row_id row);
/* Takes a row out of its list. Returns the row that is to stand in the slots in its place, or IVM__ROW_NONE where it does not stand there. */
ivm__row_id ivm__list_remove(ivm__index *index, ivm__row_id row);

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

/* Links a row whose hash is known; there is room. Unlinks one. */
void ivm__index_link_hashed(ivm__index *index, ivm__row_id row, uint64_t hash);
void ivm__index_unlink_hashed(ivm__index *index, ivm__row_id row, uint64_t hash);

#endif
