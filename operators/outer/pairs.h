/* What every kind of join does with the pairs that a probe finds. */
#ifndef IVM__PAIRS_H
#define IVM__PAIRS_H

#include "index.h"

/* One column of these rows as a vector in the arena, without nulls where none is null. False: out of memory. */
bool ivm__pairs_column(ivm__arena *arena, const ivm__store *store, uint32_t column, const ivm__row_id *rows, uint32_t count,
                       ivm__vector *out);
/* How many keys have a null and look for nothing. */
uint32_t ivm__keys_skipped(const ivm__keys *keys);

#endif
