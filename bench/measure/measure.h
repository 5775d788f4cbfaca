/* What the measurements share: a clock, medians with their spread, seeded random numbers, and the figures of a run. */
#ifndef IVM_BENCH_MEASURE_H
#define IVM_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RUNS_MAX 64

/* ---- Time ------------------------------------------------------------------------------------------------------------------------ */

/* WALL: time that passes. CPU: time this thread was running, for machines that others use too: on one of its own both tell the same, but for
 * some 300 ns that each reading of the latter takes. */
typedef enum clock_kind { CLOCK_WALL, CLOCK_CPU } clock_kind;
void clock_select(clock_kind kind);
uint64_t clock_nanoseconds(void);

/* Sorts the values. */
double median(double *values, size_t count);

typedef struct spread {
    double median, low, high; /* the least and the greatest */
} spread;
/* Sorts the values. */
spread spread_of(double *values, size_t count);

/* ---- Random numbers -------------------------------------------------------------------------------------------------------------- */

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

/* ---- Figures --------------------------------------------------------------------------------------------------------------------- */

/* One figure is one line {"bench": ..., "metric": ..., "value": ...}; further members where they are set: `parameter` under its own name,
 * "variant", and of a median "low", "high" and "runs", and "rows", how many were pushed. */
typedef struct figure {
    const char *bench, *metric;
    double value;
    const char *parameter;
    uint64_t parameter_value;
    const char *variant;
    double low, high;
    uint64_t runs, rows;
} figure;

/* Prints the line. */
void figure_print(const figure *f);
/* Keeps the figure until the process ends, and prints its line where figures_json() asked for lines. Strings are copied. */
void figure_add(const figure *f);
void figures_json(bool lines);
/* Figures kept so far. */
size_t figures_count(void);
/* Writes a line for each figure from position `first` on. */
void figures_write(FILE *file, size_t first);
/* The latest one of this name, NULL where there is none; `variant` NULL matches every variant. */
const figure *figures_find(const char *bench, const char *metric, const char *variant);

#endif
