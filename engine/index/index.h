/* Indexes: from a key to the rows of a store that hold it. Slots of 8 bytes {32 bits of the hash, row id + 1} with linear probing; the home
 * slot comes from those 32 bits, so that growing and removing never touch a row. Those of a unique index have 4 bytes up to some million rows
 * (index_narrow.c). Load at most three quarters, or four fifths where slots are narrow, and a sixteenth more while a large one
 * grows, which it does a piece at a time (growth.h); at least 0.6 once it has grown.
 * A unique index gives every row a slot; while a step holds an old and a new row of one key, `doubles` > 0 and probes look past a match that the
 * step touched or appended, as it did both of them. Any other index has one slot a distinct key, and the rows of a key that has several stand in a
 * list of blocks of one cache line.
 * Keys compare null equal to null; a join skips null keys before it probes. */
#ifndef IVM__INDEX_H
#define IVM__INDEX_H

#include "growth.h"
#include "hash.h"
#include "segments.h"
#include "store.h"

/* Rows of one key, packed from the front; a list of such blocks holds them all. */
#define IVM__BLOCK_ROWS 14u
#define IVM__BLOCK_NONE ((1u << 28) - 1)
typedef struct ivm__block {
    uint32_t next : 28; /* IVM__BLOCK_NONE: the last; of a free block: the next free one */
    uint32_t count : 4;
    uint32_t previous; /* IVM__BLOCK_NONE: the first */
    ivm__row_id rows[IVM__BLOCK_ROWS];
} ivm__block;

typedef struct ivm__index {
    ivm__store *store;
    struct ivm__index *next_of_store;
    uint32_t *columns;
    uint32_t columns_count;
    uint32_t words_count; /* of a packed key: cells, then, where a key column is nullable, a null word for every 64 columns */
    uint32_t null_words;  /* of these */
    bool nullable;
    bool contiguous; /* the key's cells lie side by side in a row, in the key's order */
    bool unique;
    uint32_t doubles; /* unique: rows that share their key with another */
    uint64_t *slots;
    uint32_t *narrow;          /* instead of them where it serves; see index_narrow.c */
    uint64_t slots_capacity;   /* at most 2^32; 0: none yet */
    uint32_t row_bits;         /* of a narrow slot */
    uint32_t far;              /* narrow slots that are 64 or more from their homes */
    uint32_t used;             /* slots in use */
    struct ivm__index *larger; /* slots alone, filled beside; NULL: none. See index_grow.c */
    ivm__growth growth;        /* while there are */
    uint64_t wanted;           /* the most that the step under way has asked for room for */
    struct ivm__cover *covers; /* unique: see cover.h */
    ivm__segments places;      /* uint32_t by row id: block * 16 + where in it; IVM__ROW_NONE: the only row of its key. None where unique */
    ivm__segments blocks;
    uint32_t blocks_count;                   /* ever given */
    uint32_t blocks_free, blocks_free_count; /* the first of those given back */
} ivm__index;

/* Keys of `rows_count` rows, packed: words_count words each, and their hashes. skip[i]: the key has a null (NULL: none has). */
typedef struct ivm__keys {
    uint32_t rows_count, words_count;
    const uint64_t *words;
    uint64_t *hashes;
    const uint8_t *skip;
} ivm__keys;

/* Packs the keys of a chunk's rows for this index from the chunk's columns `columns` (types equal to the index's; NULL: its first ones).
 * Buffers come from the (scratch) arena; one plain 8-byte column is not copied. `null_is_value`: nulls get their null bit and no skip; else
 * rows with a null are skipped. */
ivm_status ivm__index_keys(const ivm__index *index, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, bool null_is_value,
                           ivm__keys *keys) IVM_MUST_CHECK;

/* Where a probe stands; zeroed at first. Done when key == keys->rows_count. */
typedef struct ivm__probe {
    uint32_t key;
    uint32_t next; /* where in the key's list or slots to go on; 0: look the key up */
} ivm__probe;

/* Finds the rows of each key, in the keys' order: pairs (positions[i], rows[i]), until all keys are done or `capacity` (>= 1) pairs are
 * written. Rows of weight 0 under some reading are among them. Slots and rows are prefetched ahead. */
uint32_t ivm__index_probe(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                          ivm__row_id *rows);
/* Prefetch what a probe of these keys will read: slots, and once they are there, rows. */
void ivm__index_send_slots(const ivm__index *index, const ivm__keys *keys);
void ivm__index_send_rows(const ivm__index *index, const ivm__keys *keys);
/* The two steps of a star's probe in one pass over the rows: finds the row of each key and reads cells of it. Only for an index for which
 * ivm__index_reads() holds of the columns. positions[j]: the j-th key that was found; cells[c][j]: its columns[c]. How many were found, or
 * IVM__ROW_NONE where a row was touched by the step, is not there under the reading or does not weigh 1: what was written says nothing then. */
#define IVM__READ_COLUMNS_MAX 16u
bool ivm__index_reads(const ivm__index *index, const uint32_t *columns, uint32_t columns_count);
uint32_t ivm__index_probe_cells(const ivm__index *index, const ivm__keys *keys, ivm__reading reading, const uint32_t *columns,
                                uint32_t columns_count, uint64_t *const *cells, uint32_t *positions);
/* Keys without a null of which a unique index has no row, neither from before the step nor of it: absent[] their positions, in order, and how many. Of
 * a chunk's keys. Cost: a slot and a row a key, or a line of a cover. */
uint32_t ivm__index_absent(const ivm__index *index, const ivm__keys *keys, uint32_t *absent);
/* The rows of one key one by one: IVM__ROW_NONE at the end. *next is 0 at first. */
ivm__row_id ivm__index_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *next);

/* The store's side. Reserve makes room for `rows` more ids so that linking cannot fail. */
ivm_status ivm__index_create(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique,
                             ivm__index **index) IVM_MUST_CHECK;
void ivm__index_free(ivm__index *index);
ivm_status ivm__index_reserve(ivm__index *index, uint64_t rows) IVM_MUST_CHECK;
void ivm__index_link(ivm__index *index, ivm__row_id row);
/* The same for many rows, with slots and rows prefetched: several times as fast where the index is larger than the cache. */
void ivm__index_link_rows(ivm__index *index, const ivm__row_id *rows, uint32_t count);
/* Of every index of the store from `first` on but one (NULL: none): few rows go through all of them side by side. */
void ivm__indexes_link_rows(ivm__index *first, const ivm__index *but, const ivm__row_id *rows, uint32_t count);
void ivm__indexes_unlink_rows(ivm__index *first, const ivm__row_id *rows, uint32_t count);
void ivm__index_clear(ivm__index *index);
/* The step has ended: slots far more than it or the rows that are there need are exchanged for fewer, and covers, which are as large, dropped until
 * they are asked for. Where memory is wanting the slots stay. Cost: a pass over the slots, which as many rows that went, or never came, have paid for. */
#define IVM__SLOTS_KEPT_MAX 1024u /* whatever an index holds */
void ivm__index_trim_large(ivm__index *index);
static inline void ivm__index_trim(ivm__index *index)
{
    if (index->slots_capacity > IVM__SLOTS_KEPT_MAX) {
        ivm__index_trim_large(index);
    }
    index->wanted = 0;
}
uint64_t ivm__index_bytes(const ivm__index *index);
/* Every invariant, for tests: NULL or what is wrong. */
const char *ivm__index_validate(const ivm__index *index);

#endif
