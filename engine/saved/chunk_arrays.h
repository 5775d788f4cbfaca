/* Chunks as column arrays, for whoever pushes rows that the engine itself wrote. */
#ifndef IVM__CHUNK_ARRAYS_H
#define IVM__CHUNK_ARRAYS_H

#include "chunk.h"

/* The rows first .. first + count - 1 of a chunk that carries all columns, as ivm_batch_columns() takes them. Cells that are arrays already are given
 * as they lie, the others are copied into the arena; weights only where one is not 1. Fails for memory, and with overflow where the strings of a column are
 * longer than an array of them may be: fewer rows may fit. */
ivm_status ivm__chunk_arrays(ivm__arena *arena, const ivm__chunk *chunk, uint32_t first, uint32_t count, ivm_rows *rows) IVM_MUST_CHECK;

#endif
