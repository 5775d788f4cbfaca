/* The pool: threads that wait for a body to run, and the two bodies there are. See pool.h.
 *
 *     caller: open the body, run it too, shut it, wait for those inside          thread: wait for a body not yet seen, run it
 *
 * One lock for all: it is held for a few instructions a task of some hundred microseconds. */
#include "pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_A_THREAD 2u /* one being worked on, one waiting to be taken */
#define SLOTS_MAX (SLOTS_A_THREAD * IVM_THREADS_MAX)

typedef enum slot_state { SLOT_WORKING, SLOT_DONE, SLOT_LEFT } slot_state;

/* The line under way. Items are numbered through; item i is in slot i % slots. */
typedef struct line_state {
    const ivm__line *line;
    uint64_t head, tail; /* the next to be taken, the next to be made */
    bool ended;          /* no item is made any more */
    slot_state states[SLOTS_MAX];
} line_state;

typedef struct run_state {
    ivm__pool_work *work;
    void *context;
    uint32_t count;
    _Atomic uint32_t next;
} run_state;

struct ivm__pool {
    ivm__memory *memory;
    pid_t process;          /* that the threads are in */
    uint32_t threads_count; /* made; the caller is one more */
    pthread_t threads[IVM_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t wake;  /* there is a body, or the pool closes */
    pthread_cond_t ready; /* for the caller: an item is ready, or nobody is inside */
    pthread_cond_t room;  /* for the threads: a slot is free, or the line has ended */
    void (*body)(ivm__pool *pool);
    uint64_t bodies; /* opened so far */
    uint32_t inside; /* threads that run the body */
    bool closing;
    run_state run;
    line_state line;
    ivm__arena scratches[SLOTS_MAX];
};

/* ---- Threads --------------------------------------------------------------------------------------------------------------------- */

static void *thread_main(void *subject)
{
    ivm__pool *pool = subject;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (!pool->body || pool->bodies == seen) {
            pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        seen = pool->bodies;
        pool->inside++;
        void (*body)(ivm__pool *) = pool->body;
        pthread_mutex_unlock(&pool->lock);
        body(pool);
        pthread_mutex_lock(&pool->lock);
        if (--pool->inside == 0) {
            pthread_cond_signal(&pool->ready);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void body_open(ivm__pool *pool, void (*body)(ivm__pool *))
{
    pthread_mutex_lock(&pool->lock);
    assert(!pool->body && pool->inside == 0);
    pool->body = body;
    pool->bodies++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void body_shut(ivm__pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->body = NULL;
    while (pool->inside > 0) {
        pthread_cond_wait(&pool->ready, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void threads_end(ivm__pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->threads_count; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->ready);
    pthread_cond_destroy(&pool->room);
}

void ivm__pool_close(ivm__pool *pool)
{
    if (!pool) {
        return;
    }
    if (getpid() == pool->process) { /* else there is nobody to join, and what they waited on can only be let go */
        threads_end(pool);
    }
    for (uint32_t i = 0; i < SLOTS_MAX; i++) {
        ivm__arena_deinit(&pool->scratches[i]);
    }
    ivm__release(pool->memory, pool, sizeof *pool);
}

/* A host's signal handlers run on the host's threads. */
static bool threads_make(ivm__pool *pool, uint32_t count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->threads_count < count && pthread_create(&pool->threads[pool->threads_count], NULL, thread_main, pool) == 0) {
        pool->threads_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool->threads_count == count;
}

ivm_status ivm__pool_open(ivm__memory *memory, uint32_t threads, ivm__pool **pool)
{
    assert(threads >= 2 && threads <= IVM_THREADS_MAX);
    ivm__pool *made = ivm__allocate_zeroed(memory, sizeof *made);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->memory = memory;
    made->process = getpid();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->wake, NULL);
    pthread_cond_init(&made->ready, NULL);
    pthread_cond_init(&made->room, NULL);
    for (uint32_t i = 0; i < SLOTS_MAX; i++) {
        ivm__arena_init(&made->scratches[i], memory);
    }
    if (!threads_make(made, threads - 1)) {
        ivm__pool_close(made);
        return IVM_OUT_OF_MEMORY;
    }
    *pool = made;
    return IVM_OK;
}

bool ivm__pool_spreads(const ivm__pool *pool, uint64_t rows)
{
    return pool && rows >= IVM__SPREAD_ROWS_MIN && getpid() == pool->process;
}

uint32_t ivm__pool_slots(const ivm__pool *pool)
{
    return SLOTS_A_THREAD * (pool->threads_count + 1);
}

ivm__arena *ivm__pool_scratch(ivm__pool *pool, uint32_t slot)
{
    assert(slot < ivm__pool_slots(pool));
    return &pool->scratches[slot];
}

void ivm__pool_settle(ivm__pool *pool)
{
    for (uint32_t i = 0; pool && i < SLOTS_MAX; i++) {
        ivm__arena_reset(&pool->scratches[i]);
    }
}

/* ---- Runs ------------------------------------------------------------------------------------------------------------------------ */

static void run_body(ivm__pool *pool)
{
    run_state *run = &pool->run;
    for (uint32_t task; (task = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed)) < run->count;) {
        run->work(run->context, task);
    }
}

void ivm__pool_run(ivm__pool *pool, ivm__pool_work *work, void *context, uint32_t count)
{
    assert(count < UINT32_MAX - IVM_THREADS_MAX);
    pool->run.work = work;
    pool->run.context = context;
    pool->run.count = count;
    atomic_store_explicit(&pool->run.next, 0, memory_order_relaxed);
    body_open(pool, run_body);
    run_body(pool);
    body_shut(pool);
}

/* ---- Lines: the lock is held where nothing else is said ---------------------------------------------------------------------------- */

static void line_end(ivm__pool *pool)
{
    pool->line.ended = true;
    pthread_cond_broadcast(&pool->room);
}

static bool has_room(const ivm__pool *pool)
{
    return !pool->line.ended && pool->line.tail - pool->line.head < ivm__pool_slots(pool);
}

/* Makes an item and works on it, without the lock. */
static void item_make(ivm__pool *pool)
{
    line_state *state = &pool->line;
    const ivm__line *line = state->line;
    uint32_t slot = (uint32_t)(state->tail % ivm__pool_slots(pool));
    if (!line->next(line->context, slot)) {
        line_end(pool);
        return;
    }
    state->tail++;
    state->states[slot] = SLOT_WORKING;
    pthread_mutex_unlock(&pool->lock);
    bool done = line->work(line->context, slot);
    pthread_mutex_lock(&pool->lock);
    state->states[slot] = done ? SLOT_DONE : SLOT_LEFT;
}

static void line_body(ivm__pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (!pool->line.ended) {
        if (has_room(pool)) {
            item_make(pool);
            pthread_cond_signal(&pool->ready);
        } else {
            pthread_cond_wait(&pool->room, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

/* The caller takes what is ready, makes items where nothing is, and waits where it can do neither. */
static ivm_status line_take(ivm__pool *pool, uint32_t *left)
{
    line_state *state = &pool->line;
    const ivm__line *line = state->line;
    ivm_status status = IVM_OK;
    while (status == IVM_OK && !(state->ended && state->head == state->tail)) {
        uint32_t slot = (uint32_t)(state->head % ivm__pool_slots(pool));
        if (state->head < state->tail && state->states[slot] == SLOT_LEFT) {
            *left = slot;
            return IVM_OK;
        }
        if (state->head < state->tail && state->states[slot] == SLOT_DONE) {
            pthread_mutex_unlock(&pool->lock);
            status = line->take(line->context, slot);
            pthread_mutex_lock(&pool->lock);
            state->head++;
            pthread_cond_signal(&pool->room);
        } else if (has_room(pool)) {
            item_make(pool);
        } else {
            pthread_cond_wait(&pool->ready, &pool->lock);
        }
    }
    return status;
}

ivm_status ivm__pool_line(ivm__pool *pool, const ivm__line *line, uint32_t *left)
{
    pool->line = (line_state){ .line = line };
    *left = IVM__SLOT_NONE;
    body_open(pool, line_body);
    pthread_mutex_lock(&pool->lock);
    ivm_status status = line_take(pool, left);
    line_end(pool);
    pthread_mutex_unlock(&pool->lock);
    body_shut(pool);
    return status;
}
