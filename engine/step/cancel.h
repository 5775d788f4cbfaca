/* Cancelling: a count of requests, which only grows, and each call's own look at it.
 *
 *     cancelled = the count has grown since the call began
 *
 * So nothing need be cleared, and a request made before a call began does not end it. Cost of a look: a load and a comparison (in a build with
 * assertions looks are counted, too). */
#ifndef IVM__CANCEL_H
#define IVM__CANCEL_H

#include "memory.h"

typedef struct ivm__cancel {
    const _Atomic uint64_t *requests; /* NULL: nobody asks */
    uint64_t seen;                    /* when the call began */
} ivm__cancel;

/* Of a call that begins now. */
static inline ivm__cancel ivm__cancel_from_now(const _Atomic uint64_t *requests)
{
    return (ivm__cancel){ requests, atomic_load_explicit(requests, memory_order_relaxed) };
}

#ifndef NDEBUG
/* For tests: looks so far, in all engines, and the one from which on each finds a request (0: none does). */
extern _Atomic uint64_t ivm__cancel_looks, ivm__cancel_looks_end;

static inline bool ivm__cancel_look(void)
{
    uint64_t look = atomic_fetch_add_explicit(&ivm__cancel_looks, 1, memory_order_relaxed) + 1;
    uint64_t end = atomic_load_explicit(&ivm__cancel_looks_end, memory_order_relaxed);
    return end && look >= end;
}
#endif

/* NULL: nobody asks. */
static inline bool ivm__cancel_asked(const ivm__cancel *cancel)
{
    if (!cancel || !cancel->requests) {
        return false;
    }
#ifndef NDEBUG
    if (ivm__cancel_look()) {
        return true;
    }
#endif
    return ivm__unlikely(atomic_load_explicit(cancel->requests, memory_order_relaxed) != cancel->seen);
}

/* Rows between two looks, where a loop looks as it goes. */
#define IVM__ROWS_UNASKED 4096u

ivm_status ivm__fail_cancelled(ivm_error *error);

static inline ivm_status ivm__cancel_poll(const ivm__cancel *cancel, ivm_error *error)
{
    return ivm__cancel_asked(cancel) ? ivm__fail_cancelled(error) : IVM_OK;
}

#endif
