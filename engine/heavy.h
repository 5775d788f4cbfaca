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

/* At the end of a step: changes the entry of a row that is among the first `sorted`, or appends one. Room was reserved. Weight 0: the entry
 * goes away. The list is in order again only after ivm__heavy_settle(). */
void ivm__heavy_change(ivm__store *store, uint32_t sorted, ivm__row_id row, int64_t weight);
void ivm__heavy_append(ivm__store *store, ivm__row_id row, int64_t weight);
void ivm__heavy_settle(ivm__store *store, uint32_t sorted);

#endif
