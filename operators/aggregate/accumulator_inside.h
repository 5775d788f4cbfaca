/* Accumulators inside: what lies in a state, and the loops that each kind of aggregate has. */
#ifndef IVM__ACCUMULATOR_INSIDE_H
#define IVM__ACCUMULATOR_INSIDE_H

#include "accumulator.h"
#include "moments.h"

typedef struct ivm__sum_state {
    ivm__wide sum;
    ivm__weight values; /* non-nulls */
} ivm__sum_state;

typedef struct ivm__bool_state {
    ivm__weight falses, trues;
} ivm__bool_state;

static inline ivm__weight *ivm__group_rows(uint8_t *state)
{
    return &((ivm__group *)(void *)state)->rows;
}
static inline ivm__weight *ivm__state_count(uint8_t *state, uint32_t offset)
{
    return (ivm__weight *)(void *)(state + offset);
}
static inline ivm__sum_state *ivm__state_sum(const ivm__accumulator *accumulator, uint8_t *state)
{
    return (ivm__sum_state *)(void *)(state + accumulator->wide_offset);
}
static inline ivm__bool_state *ivm__state_bools(const ivm__accumulator *accumulator, uint8_t *state)
{
    return (ivm__bool_state *)(void *)(state + accumulator->wide_offset);
}
static inline ivm__moments *ivm__state_moments(const ivm__accumulator *accumulator, uint8_t *state)
{
    return (ivm__moments *)(void *)(state + accumulator->wide_offset);
}
/* floats_count of them. */
static inline ivm__exact_sum **ivm__state_floats(const ivm__accumulator *accumulator, uint8_t *state)
{
    return (ivm__exact_sum **)(void *)(state + accumulator->tail_offset);
}

/* What a sum has above its 128 bits. */
static inline ivm__wide ivm__state_carry(const ivm__accumulator *accumulator, const uint8_t *state)
{
    ivm__wide wide;
    int64_t word;
    if (accumulator->carries_wide) {
        memcpy(&wide, state + accumulator->tail_offset, sizeof wide);
        return wide;
    }
    memcpy(&word, state + accumulator->tail_offset, sizeof word);
    return word;
}

static inline bool ivm__function_is_variance(ivm__aggregate_function function)
{
    return function >= IVM__VAR_POP && function <= IVM__STDDEV_SAMP;
}

/* Weights in flight have 128 bits and may wrap in a sum of them; then the others of the step bring them back. */
static inline void ivm__weight_add(ivm__weight *to, ivm__weight weight)
{
    *to = (ivm__weight)((unsigned __int128)*to + (unsigned __int128)weight);
}

/* Adds the rows' weights to a count at `offset` of their groups' states; of those that are not null where values are given. */
void ivm__accumulator_count(uint32_t offset, const ivm__chunk *chunk, const ivm__vector *values, uint8_t *const *states);
/* Adds to the weight of a value of min, max or the distinct family. */
ivm_status ivm__accumulator_value_add(ivm__accumulators *accumulators, ivm__accumulator *accumulator, uint32_t group, ivm__wide cell,
                                      ivm__weight weight) IVM_MUST_CHECK;
/* Adds the rows that the condition let in, their arguments' values computed; none for a count of rows. Fails for memory alone. */
ivm_status ivm__accumulator_add(ivm__accumulators *accumulators, ivm__accumulator *accumulator, const ivm__chunk *chunk,
                                const ivm__vector *values, const ivm__targets *targets) IVM_MUST_CHECK;

#endif
