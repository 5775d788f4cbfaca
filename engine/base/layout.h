/* Layouts: how a row lies in state. A row is
 *     header of 4 bytes | null words | cells        (see store.h for the header)
 * with one null bit a column where any column is nullable, cells of 8 or 16 bytes in column order: nothing behind the header is aligned to more than 4
 * bytes. What follows the header is the body: equal rows have equal bodies, byte for byte. Strides of keyed rows are 16, 20, 28 or multiples of 64 so
 * that a row seldom straddles a cache line (a probe of rows that often do costs 40 to 60 % more; of 20 bytes one in four does, and three of them lie
 * where two of 32 would); bags are packed to 4 bytes, 44 for five int64 columns. */
#ifndef IVM__LAYOUT_H
#define IVM__LAYOUT_H

#include "chunk.h"

typedef struct ivm__layout {
    ivm__memory *memory;
    _Atomic uint32_t references;
    uint32_t columns_count;
    uint32_t stride;      /* bytes from row to row */
    uint32_t null_words;  /* 0: no column is nullable */
    uint32_t body_bytes;  /* a multiple of 8, without padding */
    uint32_t texts_count; /* string columns */
    ivm_type *types;
    uint32_t *offsets; /* of each column's cell from the row's start */
    uint32_t *texts;   /* offsets of the string cells */
    bool *nullable;    /* by column: may it hold nulls; an index over columns that may not needs no null word */
} ivm__layout;

#define IVM__ROW_HEADER 4u

/* `nullable` NULL: every column may be null. `packed`: a bag's stride. One reference is the caller's. */
ivm_status ivm__layout_create(ivm__memory *memory, const ivm_type *types, const bool *nullable, uint32_t columns_count, bool packed,
                              ivm__layout **layout) IVM_MUST_CHECK;
ivm__layout *ivm__layout_acquire(ivm__layout *layout);
void ivm__layout_release(ivm__layout *layout); /* NULL is fine; any thread */

static inline bool ivm__row_is_null(const ivm__layout *layout, const uint8_t *row, uint32_t column)
{
    return layout->null_words && (row[IVM__ROW_HEADER + column / 8] >> (column % 8) & 1); /* little endian */
}
static inline uint64_t ivm__row_word(const ivm__layout *layout, const uint8_t *row, uint32_t column)
{
    uint64_t word;
    memcpy(&word, row + layout->offsets[column], sizeof word);
    return word;
}
static inline ivm__wide ivm__row_wide(const ivm__layout *layout, const uint8_t *row, uint32_t column)
{
    ivm__wide wide;
    memcpy(&wide, row + layout->offsets[column], sizeof wide);
    return wide;
}

/* Writes the bodies of `count` rows of a chunk, from `first` on, column by column; rows[i] is where row first + i goes. `columns[c]` is the
 * chunk's column that layout column c takes (NULL: column c). Rows' headers are left alone. A null in a column that the layout holds
 * not null is an assertion: check before. */
void ivm__layout_scatter(const ivm__layout *layout, const ivm__chunk *chunk, const uint32_t *columns, uint32_t first, uint32_t count,
                         uint8_t *const *rows);
/* Writes one column over what `count` rows have in it, null bits too; in->nulls NULL: no nulls. changed[i] is set, never cleared, where row i
 * had something else. */
void ivm__layout_write(const ivm__layout *layout, uint32_t column, const ivm__vector *in, uint32_t count, uint8_t *const *rows,
                       uint8_t *changed);
/* Reads one column of `count` rows; out->cells has room, out->nulls is given where the column may be null (else may be NULL). */
void ivm__layout_gather(const ivm__layout *layout, uint32_t column, const uint8_t *const *rows, uint32_t count, ivm__vector *out);

#endif
