/* Z-sets: a store whose rows are found by their whole content, so that equal rows add up. Views, leaves of joins that keep their rows,
 * deltas with negative rows and failed evaluations are Z-sets. */
#ifndef IVM__ZSET_H
#define IVM__ZSET_H

#include "index.h"

typedef struct ivm__zset {
    ivm__store store;
    ivm__index *whole; /* over all columns */
} ivm__zset;

/* Takes a reference to the layout. On failure it is a zeroed one. */
ivm_status ivm__zset_init(ivm__zset *zset, ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__layout *layout) IVM_MUST_CHECK;
/* The same with a layout of its own, over columns of these types. */
ivm_status ivm__zset_init_typed(ivm__zset *zset, ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types,
                                uint32_t columns_count, bool packed) IVM_MUST_CHECK;
void ivm__zset_deinit(ivm__zset *zset); /* a zeroed one is fine */

/* Adds the chunk's rows, times `sign`, as part of the store's step. columns[c]: the chunk's column for layout column c (NULL: c).
 * Fails for memory alone; what was added so far is undone by the store's undo. Cost: one lookup a row. */
ivm_status ivm__zset_add(ivm__zset *zset, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, int sign) IVM_MUST_CHECK;

/* The same for a store with a unique index over all its columns in their order. */
ivm_status ivm__store_add(ivm__store *store, ivm__index *whole, ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns,
                          int sign) IVM_MUST_CHECK;
/* The rows of the store with non-zero weight under the reading, as chunks in the arena of at most IVM__CHUNK_ROWS rows; *next as in
 * ivm__store_scan. *chunk is NULL at the end. */
ivm_status ivm__store_chunk(const ivm__store *store, ivm__arena *arena, ivm__reading reading, uint32_t *next,
                            ivm__chunk **chunk) IVM_MUST_CHECK;
/* The same for what the step changed so far. */
ivm_status ivm__store_change_chunk(const ivm__store *store, ivm__arena *arena, uint32_t *next, ivm__chunk **chunk) IVM_MUST_CHECK;
/* Of what the step changed so far, the rows that are set aside, or those that are not. */
ivm_status ivm__store_change_chunk_aside(const ivm__store *store, ivm__arena *arena, const ivm__aside *aside, bool wanted, uint32_t *next,
                                         ivm__chunk **chunk) IVM_MUST_CHECK;

/* A store of another layout with the rows of `old` under the same ids: column c of it is column from[c] of the old, or null in every row where that
 * is IVM__COLUMN_NEW. Its indexes are those whose columns are all still there, but for `whole` (which may be NULL). Not in a step. */
#define IVM__COLUMN_NEW UINT32_MAX
ivm_status ivm__store_rewrite(ivm__store *old, const ivm__index *whole, ivm__layout *layout, const uint32_t *from, ivm__arena *scratch,
                              ivm__store *made) IVM_MUST_CHECK;
/* A chunk of the old columns as one of the new, nothing copied. NULL: out of memory. */
ivm__chunk *ivm__chunk_rewrite(ivm__arena *arena, const ivm__chunk *chunk, const ivm__layout *layout, const uint32_t *from);
/* The store becomes the one made, which is taken. Cannot fail. */
void ivm__store_replace(ivm__store *store, ivm__store *made);
/* Each becomes the other, indexes and all. Cannot fail. */
void ivm__store_exchange(ivm__store *a, ivm__store *b);

#endif
