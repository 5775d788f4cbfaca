/* Covers: a unique index over one 8-byte key and one 8-byte column in one table, so that a probe that reads that column alone costs one cache line
 * instead of two. Where the column has few values, as those grouped by have, it is a word of 8 bytes a key with a code for the cell (cover_words.h);
 * else pairs {key, cell}, until there are so many keys that words have codes enough, at load a third to a half, where three of four are found in their home slot. The capacity is no power of
 * two, so that the table is no larger than it must be. Many pairs grow a piece at a time (growth.h). A cover follows its index row by row. While a step holds an old and a new row of one key its cell is that of either:
 * it is asked only where no row is touched.
 *
 * Built when a large index is first probed for one column; freed with the index. */
#ifndef IVM__COVER_H
#define IVM__COVER_H

#include "cover_words.h"
#include "index.h"

typedef struct ivm__cover_slot {
    uint64_t key, cell;
} ivm__cover_slot;

typedef struct ivm__cover {
    ivm__index *index;
    struct ivm__cover *next; /* of the same index */
    uint32_t column;         /* of the store: where cells come from */
    ivm__cover_words *words; /* instead of all that follows; NULL: pairs */
    uint64_t free;           /* the key of a free slot, drawn from the seed */
    bool has_free;           /* the key that equals it is there: it lies here */
    uint64_t free_cell;
    ivm__cover_slot *slots;
    uint32_t capacity, used;
    struct ivm__cover *larger; /* pairs alone, filled beside; NULL: none. The key that free slots have is not in it */
    ivm__growth growth;        /* while there are */
    uint64_t words_tried;      /* for so many rows words would not do: with more codes they might, for which there must be more rows */
} ivm__cover;

/* Indexes of fewer rows are in the cache as they are; from here on a cover is worth it for the codes that it gives. */
#define IVM__COVER_ROWS_MIN 256u
/* An index has so many covers at most, for the columns first asked for: each costs every change of the table a write. */
#define IVM__COVERS_MAX 4u

/* The index's cover of this column, built if there is none; NULL where the index has as many as it may. Only for an index for which
 * ivm__index_reads() holds of the column. */
ivm_status ivm__index_cover(ivm__index *index, uint32_t column, ivm__cover **cover) IVM_MUST_CHECK;
/* The same without building: false where it would have to be built, or made again. */
bool ivm__index_cover_find(const ivm__index *index, uint32_t column, ivm__cover **cover);
/* One of the index's covers that can be asked; NULL: there is none. */
const ivm__cover *ivm__index_cover_any(const ivm__index *index);
/* cells[i]: the cell of key i (anything where it is not there); codes[i]: 0 where it is not there, else its cell's code, where the cover is of
 * words (ivm__cover_codes()), or 1. Returns how many were found. */
uint32_t ivm__cover_probe(const ivm__cover *cover, const ivm__keys *keys, uint64_t *cells, uint16_t *codes);
/* What its codes stand for; NULL: they say no more than whether the key is there. */
static inline const ivm__codes *ivm__cover_codes(const ivm__cover *cover)
{
    return cover->words ? &cover->words->codes : NULL;
}
/* Prefetches the lines that a probe of these keys will read first. */
void ivm__cover_send(const ivm__cover *cover, const ivm__keys *keys);
/* The keys that are not there, those to be skipped left out: their positions, in order, and how many. */
uint32_t ivm__cover_absent(const ivm__cover *cover, const ivm__keys *keys, uint32_t *absent);

/* The index's side. */
void ivm__index_covers_drop(ivm__index *index);
ivm_status ivm__cover_reserve(ivm__cover *cover, uint64_t rows) IVM_MUST_CHECK;
void ivm__cover_link(ivm__cover *cover, ivm__row_id row, uint64_t hash);
/* `remaining`: another row of the key, IVM__ROW_NONE where there is none. */
void ivm__cover_unlink(ivm__cover *cover, ivm__row_id row, uint64_t hash, ivm__row_id remaining);
void ivm__cover_clear(ivm__cover *cover);
uint64_t ivm__cover_bytes(const ivm__cover *cover);
/* Every invariant of pairs that grow, for tests: NULL or what is wrong. */
const char *ivm__cover_validate(const ivm__cover *cover);

#endif
