/* Rows from where they lie to a sink, in the canonical order, and from a feed to whoever takes them: row_order.h and row_code.h put together. */
#ifndef IVM__ROW_STREAM_H
#define IVM__ROW_STREAM_H

#include "row_code.h"
#include "row_order.h"
#include "saver.h"

/* A payload behind each row: what saver.h says of it. `save` NULL: none. */
typedef struct ivm__row_payload {
    ivm__row_save *save;
    const void *context;
    const ivm__store *store; /* whose rows these are */
} ivm__row_payload;

/* All rows, by the shape's columns and order; with a payload no two are equal in it. The arena is gone back in after each chunk, and `sort_bytes` are
 * held besides (row_order.h). Overflow where equal rows weigh more than an int64 together, corrupt where one weighs what no reader would take. */
ivm_status ivm__rows_save(ivm__sink *sink, ivm__arena *arena, const ivm__row_pages *rows, const ivm__row_shape *shape, size_t sort_bytes,
                          ivm__row_payload payload) IVM_MUST_CHECK;

/* Fills in the error for what it failed with, but for the sink's own failures. Gives the status back. */
ivm_status ivm__rows_save_tell(ivm_error *error, ivm_status status) IVM_MUST_CHECK;

/* Rows that were chosen, in their order: for whoever writes rows chunk by chunk. */
typedef struct ivm__row_chunk {
    uint32_t count;
    ivm__row_id ids[IVM__CHUNK_ROWS];
    int64_t weights[IVM__CHUNK_ROWS];
} ivm__row_chunk;
/* All chunks of a section but its last are full; ivm__rows_write_end() ends them. */
ivm_status ivm__rows_save_chunk(ivm__sink *sink, ivm__arena *arena, const ivm__row_pages *rows, const ivm__row_shape *shape,
                                const ivm__row_chunk *chosen, const ivm__row_payload *payload) IVM_MUST_CHECK;

/* Takes a chunk, and its rows' payloads from the feed. Of what it finds wrong it says so in from->error. */
typedef ivm_status ivm__rows_take(void *context, const ivm__chunk *chunk, ivm__feed *from);
/* All rows, chunk by chunk, in the arena, which is gone back in after each. Texts are not held: who takes them does. */
ivm_status ivm__rows_load(ivm__feed *feed, ivm__arena *arena, ivm__texts *texts, const ivm__row_shape *shape, ivm__rows_take *take,
                          void *context) IVM_MUST_CHECK;

#endif
