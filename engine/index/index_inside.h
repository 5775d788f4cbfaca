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
static inline uint32_t ivm__index_next(const ivm__index *index, uint32_t at)
{
    return at + (uint64_t)1 == index->slots_capacity ? 0 : at + 1;
}
/* How many slots on from `from` the slot `to` is. */
static inline uint64_t ivm__index_distance(const ivm__index *index, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + index->slots_capacity - from;
}
/* How many of so many slots may be in use. */
static inline uint64_t ivm__slots_limit(uint64_t capacity, bool narrow)
{
    return capacity == (uint64_t)1 << 32 ? IVM_TABLE_ROWS_MAX : narrow ? capacity / 5 * 4 : capacity / 4 * 3;
}

static inline size_t ivm__slots_bytes(uint64_t capacity, bool narrow)
{
    return capacity * (narrow ? sizeof(uint32_t) : sizeof(uint64_t));
}
static inline size_t ivm__slots_held(const ivm__index *index)
{
    return ivm__slots_bytes(index->slots_capacity, index->narrow != NULL);
}
/* Of those in use, while larger ones are filled beside. */
static inline uint64_t ivm__slots_limit_meanwhile(const ivm__index *index)
{
    return ivm__slots_limit(index->slots_capacity, index->narrow != NULL) +
           (index->larger ? ivm__grows_meanwhile(index->slots_capacity) : 0);
}

#define IVM__NARROW_HASH_BITS 25u
#define IVM__NARROW_HOME_SHIFT 26u /* the 6 bits above tell the home */
#define IVM__NARROW_ROW_BITS_MAX 21u

static inline uint32_t ivm__narrow_row_bits(uint64_t capacity)
{
    return 64 - (uint32_t)__builtin_clzll(capacity);
}

/* Where the slots of a hash begin, and what they keep of it. */
typedef struct ivm__slot_aim {
    uint32_t home, tag;
} ivm__slot_aim;

/* There must be slots. */
static inline ivm__slot_aim ivm__aim_wide(const ivm__index *index, uint64_t hash)
{
    return (ivm__slot_aim){ (uint32_t)((hash >> 32) * index->slots_capacity >> 32), (uint32_t)(hash >> 32) };
}
static inline ivm__slot_aim ivm__aim_narrow(const ivm__index *index, uint64_t hash)
{
    uint64_t product = (hash >> (64 - IVM__NARROW_HASH_BITS)) * index->slots_capacity;
    uint32_t tag = (uint32_t)(product >> (index->row_bits - 1)) & (UINT32_MAX >> index->row_bits);
    return (ivm__slot_aim){ (uint32_t)(product >> IVM__NARROW_HASH_BITS), tag };
}
static inline ivm__slot_aim ivm__index_aim(const ivm__index *index, uint64_t hash)
{
    return index->narrow ? ivm__aim_narrow(index, hash) : ivm__aim_wide(index, hash);
}
static inline uint64_t ivm__slot_of_narrow(const ivm__index *index, uint32_t narrow)
{
    uint64_t tag = narrow >> index->row_bits;
    return tag << 32 | (narrow & (((uint32_t)1 << index->row_bits) - 1));
}
/* A slot as if it were wide. */
static inline uint64_t ivm__index_slot(const ivm__index *index, uint32_t at)
{
    return index->narrow ? ivm__slot_of_narrow(index, index->narrow[at]) : index->slots[at];
}
static inline const void *ivm__index_home_at(const ivm__index *index, uint64_t hash)
{
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    return index->narrow ? (const void *)&index->narrow[aim.home] : (const void *)&index->slots[aim.home];
}
/* The first slot from the hash's home on that has its tag or is free: what a key's row is looked for in first. */
static inline uint64_t ivm__index_candidate(const ivm__index *index, uint64_t hash)
{
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    for (uint32_t at = aim.home;; at = ivm__index_next(index, at)) {
        uint64_t slot = ivm__index_slot(index, at);
        if (slot == 0 || ivm__slot_tag(slot) == aim.tag) {
            return slot;
        }
    }
}

/* One slot more, for a row of this hash; there is room. */
void ivm__slot_put(ivm__index *index, ivm__row_id row, uint64_t hash);
/* Where the row's slot is; it has one. */
uint32_t ivm__slot_of(const ivm__index *index, ivm__row_id row, uint64_t hash);
void ivm__slot_remove(ivm__index *index, uint32_t at);
void ivm__slot_row_set(ivm__index *index, uint32_t at, ivm__row_id row); /* wide */

/* Makes sure of slots for so many more rows. */
ivm_status ivm__slots_reserve(ivm__index *index, uint64_t rows) IVM_MUST_CHECK;
/* The same without larger slots beside; where they must grow, for `better` rows. */
ivm_status ivm__slots_reserve_at_once(ivm__index *index, uint64_t rows, uint64_t better) IVM_MUST_CHECK;
void ivm__slots_release(ivm__index *index);
/* Fewer slots, for twice so many rows; as many as before where there is no memory for that. */
void ivm__slots_trim(ivm__index *index, uint64_t rows);
/* The larger slots beside follow; there are some. A row has come, has gone, or another stands for its key. */
void ivm__larger_link(ivm__index *index, ivm__row_id row, uint64_t hash);
void ivm__larger_unlink(ivm__index *index, ivm__row_id row, uint64_t hash);
void ivm__larger_replace(ivm__index *index, ivm__row_id row, ivm__row_id by, uint64_t hash);
void ivm__larger_drop(ivm__index *index);
const char *ivm__larger_validate(const ivm__index *index); /* for tests */

/* Narrow slots: whether so many serve, for row ids of ivm__narrow_row_bits(). */
bool ivm__narrow_serves(const ivm__index *index, uint64_t capacity);
/* Adds a slot behind those of its home; there is room. */
void ivm__narrow_put(ivm__index *index, ivm__slot_aim aim, ivm__row_id row);
void ivm__narrow_remove(ivm__index *index, uint32_t at);
/* What a slot's place and contents tell of its hash: its upper IVM__NARROW_HASH_BITS at least. */
uint64_t ivm__narrow_hash(const ivm__index *index, uint32_t at);
const char *ivm__narrow_validate(const ivm__index *index); /* of slots whose rows stand; for tests */

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

#define IVM__SEGMENT_PLACES (IVM__SEGMENT_BYTES / (uint32_t)sizeof(uint32_t))
#define IVM__SEGMENT_BLOCKS (IVM__SEGMENT_BYTES / (uint32_t)sizeof(ivm__block))

/* Where it is said which place the row has. */
static inline uint32_t *ivm__index_place(const ivm__index *index, ivm__row_id row)
{
    return (uint32_t *)(void *)index->places.at[row / IVM__SEGMENT_PLACES] + row % IVM__SEGMENT_PLACES;
}
static inline ivm__block *ivm__index_block(const ivm__index *index, uint32_t block)
{
    return (ivm__block *)(void *)index->blocks.at[block / IVM__SEGMENT_BLOCKS] + block % IVM__SEGMENT_BLOCKS;
}
static inline ivm__block *ivm__block_at(const ivm__index *index, uint32_t place)
{
    return ivm__index_block(index, place >> 4);
}
static inline uint64_t ivm__index_places_room(const ivm__index *index)
{
    return ivm__segments_room(&index->places) / sizeof(uint32_t);
}
static inline uint64_t ivm__index_blocks_room(const ivm__index *index)
{
    return ivm__segments_room(&index->blocks) / sizeof(ivm__block);
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
/* The same, the search for its slot begun here: from its home up to here no slot was free or had its tag when rows began to be linked. */
void ivm__index_link_at(ivm__index *index, ivm__row_id row, uint64_t hash, uint32_t at);
void ivm__index_unlink_hashed(ivm__index *index, ivm__row_id row, uint64_t hash);

#endif
