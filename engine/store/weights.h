/* The range of weights at the end of a step: in flight they have 128 bits, in state 64. */
#ifndef IVM__WEIGHTS_H
#define IVM__WEIGHTS_H

#include "store.h"

static inline bool ivm__weight_fits(ivm__weight weight)
{
    return weight == (int64_t)weight;
}

/* Whether every row that the step touched may be committed. Appended rows weigh less than 2^30. */
static inline bool ivm__touched_weights_fit(const ivm__store *store)
{
    bool fit = true;
    for (uint32_t i = 0; i < store->touched_count; i++) {
        fit &= ivm__weight_fits(store->touched[i].after);
    }
    return fit;
}

#endif
