/* Threads of an engine, for work that one push hands out: made when the engine opens, asleep between runs, joined when it closes. No signal
 * is delivered to them. In a child of fork() they do not exist: there all is done by the calling thread.
 *
 *     run     tasks that do not depend on each other, in any order, and a barrier
 *     line    items computed by all threads and taken by the calling one in their order, so that what takes them need know no threads and
 *             every result, count and first error is that of one thread
 *
 * Nothing is allocated by a run. Waking costs the caller a microsecond or so; a thread that wakes too late finds nothing to do and nobody waits
 * for it. Who has fewer rows than IVM__SPREAD_ROWS_MIN asks for neither. */
#ifndef IVM__POOL_H
#define IVM__POOL_H

#include "memory.h"

/* So many are 200 microseconds of probes. Tests build with less. */
#ifndef IVM__SPREAD_ROWS_MIN
#define IVM__SPREAD_ROWS_MIN 4096u
#endif

typedef struct ivm__pool ivm__pool;

/* `threads`, the calling one among them: 2 to IVM_THREADS_MAX. out_of_memory where the system gives no more threads, too. */
ivm_status ivm__pool_open(ivm__memory *memory, uint32_t threads, ivm__pool **pool) IVM_MUST_CHECK;
void ivm__pool_close(ivm__pool *pool); /* NULL is fine */

/* Whether it is worth while to hand out work over so many rows. A pool that is NULL has the calling thread alone. */
bool ivm__pool_spreads(const ivm__pool *pool, uint64_t rows);

/* Calls work(context, i) for each i below `count`, on any thread, and returns when all have returned. One run or line at a time. */
typedef void ivm__pool_work(void *context, uint32_t task);
void ivm__pool_run(ivm__pool *pool, ivm__pool_work *work, void *context, uint32_t count);

/* A line has ivm__pool_slots() slots; each holds one item from `next` to `take`. */
typedef struct ivm__line {
    void *context;
    bool (*next)(void *context, uint32_t slot); /* puts the next item into the slot; false: there is none. One call at a time, in order */
    bool (*work)(void *context, uint32_t slot); /* on any thread. False: the item is left to the caller */
    ivm_status (*take)(void *context, uint32_t slot); /* on the calling thread, in the items' order */
} ivm__line;
#define IVM__SLOT_NONE UINT32_MAX

uint32_t ivm__pool_slots(const ivm__pool *pool);
/* A slot's own memory, for `next` and `work`: last in, first out, emptied when the step ends. */
ivm__arena *ivm__pool_scratch(ivm__pool *pool, uint32_t slot);
void ivm__pool_settle(ivm__pool *pool); /* the step ends; NULL is fine */
/* Ends with the last item; or where `take` fails; or before an item that was left, all before it having been taken: *left is its slot (else
 * IVM__SLOT_NONE), and what came after it is lost. */
ivm_status ivm__pool_line(ivm__pool *pool, const ivm__line *line, uint32_t *left) IVM_MUST_CHECK;

#endif
