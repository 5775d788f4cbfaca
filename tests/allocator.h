/* An allocator for tests: counts what lives, fails the n-th call when told to, and checks the sizes it is given back. Every test of running
 * out of memory is a loop over n = 1, 2, ... until the work goes through without a call having failed:
 *
 *     for (uint64_t n = 1, done = 0; !done; n++) {
 *         test_allocator_arm(&allocator, n);
 *         ... work; on IVM_OUT_OF_MEMORY assert that nothing has changed ...
 *         done = !test_allocator_disarm(&allocator);
 *     }
 *
 * It may be called from any thread. */
#ifndef TEST_ALLOCATOR_H
#define TEST_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ivm/engine.h"

typedef struct test_allocator {
    _Atomic int64_t blocks;  /* that live */
    _Atomic int64_t bytes;   /* of them, as asked for */
    _Atomic uint64_t calls;  /* of allocate and resize, ever */
    _Atomic uint64_t asked;  /* bytes that these gave, ever */
    _Atomic uint64_t faults; /* blocks given back with a wrong size, twice, or never given out; calls that ask for nothing */
    _Atomic int64_t fuse;    /* calls until one fails; 0: none will */
    _Atomic bool failed;     /* one has, since armed */
    _Atomic int64_t bell;    /* calls until one rings; 0: none will */
    void (*ring)(void *context);
    void *ring_context;
} test_allocator;

void test_allocator_init(test_allocator *allocator);
/* The functions to hand to an engine; `allocator` must outlive it. */
ivm_allocator test_allocator_functions(test_allocator *allocator);
/* The n-th call from now on fails (1: the next), once. */
void test_allocator_arm(test_allocator *allocator, uint64_t n);
/* No call fails any more; whether one has since it was armed. Each that has is counted (figure.h). */
bool test_allocator_disarm(test_allocator *allocator);
/* The n-th call from now on calls `ring` before it does anything, once. */
void test_allocator_ring(test_allocator *allocator, uint64_t n, void (*ring)(void *context), void *context);
/* No call rings any more; whether one has since. */
bool test_allocator_unring(test_allocator *allocator);
/* Nothing lives and nothing was wrong. */
bool test_allocator_is_clean(const test_allocator *allocator);

#endif
