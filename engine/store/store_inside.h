/* What the files of the store share among themselves. */
#ifndef IVM__STORE_INSIDE_H
#define IVM__STORE_INSIDE_H

#include "store.h"

/* gcc takes a function that only prefetches for one without effect and drops calls of it; the empty asm is an effect. */
static inline void ivm__prefetch(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("" : : "r"(at));
}
static inline void ivm__prefetch_write(const void *at)
{
    __builtin_prefetch(at, 1);
    __asm__ volatile("" : : "r"(at));
}

/* Ids to give again; there is room for those that are added. */
static inline ivm__row_id *ivm__store_free_at(const ivm__store *store, uint32_t at)
{
    return ivm__items_at(&store->free, at);
}
static inline void ivm__store_free_add(ivm__store *store, ivm__row_id row)
{
    assert(store->free_count < store->free_capacity);
    *ivm__store_free_at(store, store->free_count++) = row;
}
ivm_status ivm__store_free_reserve(ivm__store *store, uint64_t count) IVM_MUST_CHECK;

static inline ivm__row_header *ivm__row_header_at(uint8_t *at)
{
    return (ivm__row_header *)(void *)at;
}

/* Whether the row stands in the indexes and holds its texts: it has a weight, or had or got one in the step under way. Rows taken out by
 * earlier steps have neither weight nor touch. */
static inline bool ivm__row_is_linked(const uint8_t *at)
{
    return ivm__row_header_of(at) != 0;
}

/* A weight without its sign; that of the least one is one short. */
static inline ivm__weight ivm__weight_size(ivm__weight weight)
{
    const ivm__weight most = (ivm__weight)(~(unsigned __int128)0 >> 1);
    return weight >= 0 ? weight : weight < -most ? most : -weight;
}
static inline void ivm__weight_note(ivm__store *store, ivm__weight weight)
{
    ivm__weight size = ivm__weight_size(weight);
    if (size > store->weight_max) {
        store->weight_max = size;
    }
}

/* Room for so many more touches beyond those that reserved rows may take. */
ivm_status ivm__store_touches_reserve(ivm__store *store, uint64_t rows) IVM_MUST_CHECK;
/* ivm__store_link_rows() for all indexes but one, in which the rows stand already. */
void ivm__store_link_others(ivm__store *store, const ivm__row_id *rows, uint32_t count, const struct ivm__index *linked);
/* The list of rows overwritten at the ends of a step, and at the store's. */
void ivm__store_overwritten_commit(ivm__store *store);
void ivm__store_overwritten_undo(ivm__store *store);
void ivm__store_overwritten_free(ivm__store *store);
/* Takes the rows out of every index; they keep their texts. */
void ivm__store_unlink_rows(ivm__store *store, const ivm__row_id *rows, uint32_t count);
void ivm__store_texts_acquire(ivm__store *store, const uint8_t *at);
void ivm__store_texts_release(ivm__store *store, const uint8_t *at);

#endif
