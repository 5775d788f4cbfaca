/* Numbers drawn for tests, the same on every machine: the seed of a test that fails is all it takes to see it fail again. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

/* 64 bits. The state is not 0. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* 31 bits, of any state. */
static inline uint64_t random_short(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* A number below this one. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
    return random_short(state) % below;
}

#endif
