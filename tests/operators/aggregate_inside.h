/* The head of an aggregate's struct, for tests that look at what it keeps: as in operators/aggregate.c. */
#ifndef TEST_AGGREGATE_INSIDE_H
#define TEST_AGGREGATE_INSIDE_H

#include "accumulator.h"

typedef struct aggregate_inside {
    ivm__operator base;
    ivm__memory *memory;
    ivm__texts *texts;
    ivm__expression **groups;
    uint32_t groups_count;
    ivm__accumulators accumulators;
    ivm__expression *having;
    ivm__store keys;
    ivm__index *by_key;
} aggregate_inside;

#endif
