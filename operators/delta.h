/* A delta on its way out: rows of a store with weights, or what a step changed in it, a chunk at a time. */
#ifndef IVM__DELTA_H
#define IVM__DELTA_H

#include "program.h"

typedef struct ivm__delta {
    ivm__operator *from;
    const ivm__store *store; /* its first columns are what `from` emits */
    uint32_t count;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
} ivm__delta;

static inline void ivm__delta_init(ivm__delta *delta, ivm__operator *from, const ivm__store *store)
{
    delta->from = from;
    delta->store = store;
    delta->count = 0;
}
/* Both may emit and fail as that does; a weight of 0 is nothing. */
ivm_status ivm__delta_add(ivm__delta *delta, ivm__step *step, ivm__row_id row, ivm__weight weight) IVM_MUST_CHECK;
/* What is left. */
ivm_status ivm__delta_finish(ivm__delta *delta, ivm__step *step) IVM_MUST_CHECK;

/* What the step changed in a store, all its columns, handed to `send` with the ids of the rows, or emitted (NULL). Scratch goes back to where it
 * was after each chunk. out_of_memory without a message where the chunks themselves have no room. */
typedef ivm_status (*ivm__delta_send)(ivm__operator *from, ivm__step *step, const ivm__chunk *chunk, const ivm__row_id *ids);
ivm_status ivm__delta_changes(ivm__operator *from, ivm__step *step, const ivm__store *store, ivm__delta_send send) IVM_MUST_CHECK;

#endif
