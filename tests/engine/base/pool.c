/* tests engine/base/pool.c */
#include "pool.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "allocator.h"

#define TASKS 5000u
#define ITEMS 3000u

static test_allocator counted;
static ivm__memory memory;
static ivm__pool *pool;

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
}

static void open_four(void)
{
    begin();
    cr_assert_eq(ivm__pool_open(&memory, 4, &pool), IVM_OK);
}

static void close_clean(void)
{
    ivm__pool_close(pool);
    cr_assert(test_allocator_is_clean(&counted));
}

/* ---- Opening ----------------------------------------------------------------------------------------------------------------------- */

Test(engine_pool, opens_and_closes_with_any_number, .init = begin)
{
    for (uint32_t threads = 2; threads <= IVM_THREADS_MAX; threads++) {
        cr_assert_eq(ivm__pool_open(&memory, threads, &pool), IVM_OK);
        cr_assert_geq(ivm__pool_slots(pool), threads);
        close_clean();
    }
    ivm__pool_close(NULL);
    ivm__pool_settle(NULL);
}

Test(engine_pool, memory_failing_leaves_nothing, .init = begin)
{
    test_allocator_arm(&counted, 1);
    cr_assert_eq(ivm__pool_open(&memory, 2, &pool), IVM_OUT_OF_MEMORY);
    cr_assert(test_allocator_disarm(&counted));
    cr_assert(test_allocator_is_clean(&counted));
}

Test(engine_pool, no_pool_spreads_nothing, .init = open_four, .fini = close_clean)
{
    cr_assert_not(ivm__pool_spreads(NULL, UINT64_MAX));
    cr_assert(ivm__pool_spreads(pool, IVM__SPREAD_ROWS_MIN));
    cr_assert_not(ivm__pool_spreads(pool, IVM__SPREAD_ROWS_MIN - 1));
}

/* ---- Runs -------------------------------------------------------------------------------------------------------------------------- */

typedef struct tally {
    uint32_t times[TASKS];
    _Atomic uint32_t signals_open; /* tasks that ran where a signal could come */
    pthread_t caller;
} tally;

static void task(void *context, uint32_t number)
{
    tally *it = context;
    it->times[number]++;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    it->signals_open += !pthread_equal(pthread_self(), it->caller) && !sigismember(&blocked, SIGTERM);
}

Test(engine_pool, each_task_runs_once, .init = open_four, .fini = close_clean)
{
    static tally it;
    uint64_t calls = counted.calls;
    it.caller = pthread_self();
    for (uint32_t round = 1; round <= 200; round++) {
        uint32_t count = round % 5 ? round : TASKS;
        memset(it.times, 0, sizeof it.times);
        ivm__pool_run(pool, task, &it, count);
        for (uint32_t i = 0; i < TASKS; i++) {
            cr_assert_eq(it.times[i], i < count, "task %u of %u", i, count);
        }
    }
    ivm__pool_run(pool, task, &it, 0);
    cr_assert_eq(it.signals_open, 0);
    cr_assert_eq(counted.calls, calls, "a run allocates nothing");
}

/* ---- Lines ------------------------------------------------------------------------------------------------------------------------- */

/* Items are numbers from `next` to ITEMS; each is worked out in its slot's memory. */
typedef struct numbers {
    uint32_t next, taken;
    uint32_t left_at, fail_at; /* numbers; UINT32_MAX: none */
    uint64_t *items[2 * IVM_THREADS_MAX];
    pthread_t caller;
} numbers;

static bool number_next(void *context, uint32_t slot)
{
    numbers *it = context;
    ivm__arena *scratch = ivm__pool_scratch(pool, slot);
    if (it->next == ITEMS) {
        return false;
    }
    ivm__arena_back(scratch, (ivm__arena_mark){ NULL, 0 });
    it->items[slot] = ivm__arena_allocate(scratch, sizeof(uint64_t));
    cr_assert(it->items[slot]);
    *it->items[slot] = it->next++;
    return true;
}

static bool number_work(void *context, uint32_t slot)
{
    numbers *it = context;
    uint64_t number = *it->items[slot];
    *it->items[slot] = number * number;
    return number != it->left_at;
}

static ivm_status number_take(void *context, uint32_t slot)
{
    numbers *it = context;
    cr_assert(pthread_equal(pthread_self(), it->caller));
    cr_assert_eq(*it->items[slot], (uint64_t)it->taken * it->taken, "item %u", it->taken);
    return it->taken++ == it->fail_at ? IVM_OVERFLOW : IVM_OK;
}

static ivm_status line_run(numbers *it, uint32_t *left)
{
    ivm__line line = { it, number_next, number_work, number_take };
    it->caller = pthread_self();
    return ivm__pool_line(pool, &line, left);
}

Test(engine_pool, items_are_taken_in_order, .init = open_four, .fini = close_clean)
{
    numbers it = { .left_at = UINT32_MAX, .fail_at = UINT32_MAX };
    uint32_t left;
    cr_assert_eq(line_run(&it, &left), IVM_OK);
    cr_assert(it.taken == ITEMS && left == IVM__SLOT_NONE);
    cr_assert_eq(line_run(&it, &left), IVM_OK, "none");
    cr_assert(it.taken == ITEMS && left == IVM__SLOT_NONE);
    ivm__pool_settle(pool);
}

Test(engine_pool, item_left_ends_the_line_before_it, .init = open_four, .fini = close_clean)
{
    for (uint32_t at = 0; at < ITEMS; at += 1 + at / 3) {
        numbers it = { .left_at = at, .fail_at = UINT32_MAX };
        uint32_t left;
        cr_assert_eq(line_run(&it, &left), IVM_OK);
        cr_assert_eq(it.taken, at);
        cr_assert_eq(*it.items[left], (uint64_t)at * at);
        it.next = at;
        it.left_at = UINT32_MAX;
        cr_assert_eq(line_run(&it, &left), IVM_OK, "goes on");
        cr_assert(it.taken == ITEMS && left == IVM__SLOT_NONE);
    }
}

Test(engine_pool, first_failure_is_told, .init = open_four, .fini = close_clean)
{
    for (uint32_t at = 0; at < ITEMS; at += 1 + at / 3) {
        numbers it = { .left_at = at + 1, .fail_at = at };
        uint32_t left;
        cr_assert_eq(line_run(&it, &left), IVM_OVERFLOW);
        cr_assert(it.taken == at + 1 && left == IVM__SLOT_NONE);
    }
}
