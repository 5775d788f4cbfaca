/* Pairs of rows that a probe found: their columns, and how many keys looked for them. Cost: a load and a store a cell, rows prefetched. */
#include "pairs.h"

bool ivm__pairs_column(ivm__arena *arena, const ivm__store *store, uint32_t column, const ivm__row_id *rows, uint32_t count,
                       ivm__vector *out)
{
    if (!ivm__vector_make(arena, out, store->layout->types[column], count, store->layout->nullable[column])) {
        return false;
    }
    ivm__store_gather(store, rows, count, column, out);
    if (out->nulls && !memchr(out->nulls, 1, count)) {
        out->nulls = NULL;
    }
    return true;
}

uint32_t ivm__keys_skipped(const ivm__keys *keys)
{
    uint32_t skipped = 0;
    for (uint32_t i = 0; keys->skip && i < keys->rows_count; i++) {
        skipped += keys->skip[i] != 0;
    }
    return skipped;
}
