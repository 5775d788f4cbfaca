/* Rows as bytes, a chunk at a time, column by column.
 *
 *     rows    = chunk of 1024 rows*, chunk of fewer (left out where there are none), 0 u16
 *     chunk   = rows u16 | weights: u8 (0: all 1; 1: an int64 each) | column*
 *     column  = u8 (1: some are null: a bit a row, 1 = null) | cells of the others: bool a bit, date 4 bytes, decimal 16, string its size in
 *               u32 and then, after the sizes of all, its bytes; else 8
 *
 * Rows ascend by the columns of an order, each by ivm__cell_compare and nulls last, no two equal in all of them: rows that are equal as a set have
 * equal bytes, and whoever reads finds what is doubled. (Loose rows: as they come.) Where each row has a payload, those of a chunk follow it, one after the other; that is
 * between its writer and its reader. */
#ifndef IVM__ROW_CODE_H
#define IVM__ROW_CODE_H

#include "bytes.h"

typedef enum ivm__weights_kind { IVM__WEIGHTS_ONE, IVM__WEIGHTS_ABOVE_0, IVM__WEIGHTS_NOT_0 } ivm__weights_kind;

/* What rows are like. The arrays are the caller's and stay. */
typedef struct ivm__row_shape {
    const ivm_type *types;
    const bool *nullable; /* by column; NULL: all may be null */
    uint32_t columns_count;
    const uint32_t *order; /* columns that rows ascend by; NULL: all, as they stand */
    uint32_t order_count;
    ivm__weights_kind weights;
    bool loose; /* rows in any order, equal ones apart, in chunks of any number */
} ivm__row_shape;

static inline uint32_t ivm__row_shape_order(const ivm__row_shape *shape, uint32_t i)
{
    return shape->order ? shape->order[i] : i;
}
static inline uint32_t ivm__row_shape_order_count(const ivm__row_shape *shape)
{
    return shape->order ? shape->order_count : shape->columns_count;
}

/* A chunk of 1..IVM__CHUNK_ROWS rows, its columns all carried. It is not checked whether it is in its place. Cost: about 1 ns a cell, 10 a string. */
ivm_status ivm__rows_write(ivm__sink *sink, const ivm__row_shape *shape, const ivm__chunk *chunk) IVM_MUST_CHECK;
ivm_status ivm__rows_write_end(ivm__sink *sink) IVM_MUST_CHECK;

typedef struct ivm__row_reader {
    ivm__row_shape shape;
    ivm__memory *memory;
    ivm__texts *texts;
    ivm__feed *feed;
    ivm__bytes bytes; /* of strings on their way into a text */
    ivm__wide *last;  /* the row before the chunk, in the order's columns */
    uint8_t *last_nulls;
    bool some, full; /* there was one; the chunk before was a whole one */
} ivm__row_reader;

/* Deinit it, whatever the outcome. */
ivm_status ivm__row_reader_init(ivm__row_reader *reader, ivm__memory *memory, ivm__texts *texts, const ivm__row_shape *shape,
                                ivm__feed *feed) IVM_MUST_CHECK;
/* The next chunk, in the arena; NULL at the end. Corrupt where rows are not as the shape says, or not as one writer alone would write them. Texts are
 * not held. Memory: a column's, once its first byte is there; a string's as it comes. */
ivm_status ivm__row_reader_next(ivm__row_reader *reader, ivm__arena *arena, ivm__chunk **chunk) IVM_MUST_CHECK;
void ivm__row_reader_deinit(ivm__row_reader *reader); /* a zeroed one is fine */

#endif
