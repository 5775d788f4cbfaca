/* What the measurements share: a clock, medians, seeded random numbers and one way to print a figure. */
#ifndef IVM_BENCH_MEASURE_H
#define IVM_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNS_MAX 64

uint64_t clock_nanoseconds(void);
/* Sorts the values. */
double median(double *values, size_t count);

typedef struct random_state {
    uint64_t state; /* never 0 */
} random_state;

static inline uint64_t random_next(random_state *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

static inline uint32_t random_below(random_state *random, uint32_t limit)
{
    return (uint32_t)(((random_next(random) >> 32) * limit) >> 32);
}

/* One figure: {"bench": ..., "metric": ..., "value": ...} on a line, with `parameter` as a further member unless NULL. */
typedef struct figure {
    const char *bench, *metric;
    double value;
    const char *parameter;
    uint64_t parameter_value;
} figure;
void figure_print(const figure *f);

#endif
