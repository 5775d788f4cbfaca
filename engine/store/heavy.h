/* The heavy list from the step's side. Between steps it is in row order and holds exactly the rows whose header says IVM__WEIGHT_HEAVY. */
#ifndef IVM__HEAVY_H
#define IVM__HEAVY_H

#include "store.h"

/* Whether the weight fits a row's header. */
static inline bool ivm__weight_is_narrow(ivm__weight weight)
{
    return weight > IVM__WEIGHT_HEAVY && weight < -IVM__WEIGHT_HEAVY;
}

/* The header that tells of this weight. */
static inline ivm__row_header ivm__header_of_any(ivm__weight weight)
{
    return ivm__header_of_weight(ivm__weight_is_narrow(weight) ? (int32_t)weight : IVM__WEIGHT_HEAVY);
}

/* Room for so many that the store may write, made at the beginning of a step; a list that a snapshot shares is copied once one of them changes. On failure nothing has
 * changed. */
ivm_status ivm__heavies_reserve(ivm__store *store, uint64_t needed) IVM_MUST_CHECK;
/* Gives most of the room back that a large step left behind, where `needed` is far below it. The allocator may refuse: then it stays. */
void ivm__heavies_trim(ivm__store *store, uint64_t needed);
/* A list with room for so many, for rows that no store holds. NULL: out of memory. */
ivm__heavies *ivm__heavies_create(ivm__memory *memory, uint32_t capacity);
/* A reference to the list as it is between steps, NULL where it is empty; and giving it back from any thread. */
ivm__heavies *ivm__heavies_acquire(ivm__store *store);
ivm__heavies *ivm__heavies_hold(ivm__heavies *heavies);                /* one more, on any thread that has one; NULL is fine */
void ivm__heavies_release(ivm__heavies *heavies, ivm__memory *memory); /* NULL is fine */

/* At the end of a step: changes the entry of a row that is among the first `sorted`, or appends one. Room was reserved. Weight 0: the entry
 * goes away. The list is in order again only after ivm__heavy_settle(). */
void ivm__heavy_change(ivm__store *store, uint32_t sorted, ivm__row_id row, int64_t weight);
void ivm__heavy_append(ivm__store *store, ivm__row_id row, int64_t weight);
void ivm__heavy_settle(ivm__store *store, uint32_t sorted);

#endif
