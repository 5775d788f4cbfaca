/* A batch of the library's from changes of the oracle's: rows one by one, or arrays of columns, as drawn. */
#ifndef FUZZ_OPERATIONS_BATCH_H
#define FUZZ_OPERATIONS_BATCH_H

#include "operations.h"

/* May have a position, too. The arrays are of the pool. */
ivm_batch *operations_batch(operations *it, const naive_change *changes, size_t count);
/* The position of the batch made last is the engine's now. */
void operations_position_keep(operations *it);

#endif
