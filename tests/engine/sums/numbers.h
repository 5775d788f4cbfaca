/* Numbers and the counted memory that they are added up in, for the tests of sums. */
#ifndef TEST_ENGINE_NUMBERS_H
#define TEST_ENGINE_NUMBERS_H

#include <string.h>

#include "allocator.h"
#include "random.h"
#include "wide.h"

static inline uint64_t word_of(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static inline void memory_open(ivm__memory *memory, test_allocator *allocator)
{
    test_allocator_init(allocator);
    ivm_allocator functions = test_allocator_functions(allocator);
    ivm__memory_init(memory, &functions);
}

/* A double whose exponent lies in a range of this seed's. */
static inline double random_value(uint64_t *state, uint64_t seed)
{
    uint32_t width = seed % 5 == 0 ? 2047 : seed % 5 == 1 ? 1 : seed % 5 == 2 ? 8 : 80;
    uint32_t low = seed * 37 % (2048 - width);
    uint64_t exponent = low + random_next(state) % width;
    return ivm__word_float((random_next(state) & 0x800fffffffffffffull) | exponent << 52);
}

static inline ivm__weight random_weight(uint64_t *state)
{
    uint64_t kind = random_next(state) % 8;
    if (kind < 6) {
        return kind < 4 ? 1 : -1;
    }
    ivm__weight weight = (ivm__weight)random_next(state) << 36 >> random_next(state) % 100;
    return kind == 6 ? weight : -weight;
}

#endif
