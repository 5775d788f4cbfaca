/* Cancelling: a count of requests, which only grows, and each call's own look at it.
 *
 *     cancelled = the count has grown since the call began
 *
 * So nothing need be cleared, and a request made before a call began does not end it. Cost of a look: a load and a comparison. */
#ifndef IVM__CANCEL_H
#define IVM__CANCEL_H

#include "memory.h"

typedef struct ivm__cancel {
    const _Atomic uint64_t *requests; /* NULL: nobody asks */
    uint64_t seen;                    /* when the call began */
} ivm__cancel;

static inline bool ivm__cancel_asked(const ivm__cancel *cancel)
{
    return ivm__unlikely(cancel->requests && atomic_load_explicit(cancel->requests, memory_order_relaxed) != cancel->seen);
}

ivm_status ivm__fail_cancelled(ivm_error *error);

static inline ivm_status ivm__cancel_poll(const ivm__cancel *cancel, ivm_error *error)
{
    return ivm__cancel_asked(cancel) ? ivm__fail_cancelled(error) : IVM_OK;
}

#endif
