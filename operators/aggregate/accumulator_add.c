/* Accumulators: adding rows to groups' states, a loop for each kind of aggregate.
 *
 *     count' = count + w        sum' = sum + v * w        a value is distinct while its weight is above 0
 *
 * Integer and decimal sums have 128 bits and a carry above them, of 64 bits or, for long decimals, 128: what is in a group at the end fits,
 * and on the way all of it may wrap, for additions modulo a power of two do not mind. Cost: a few nanoseconds a row and sum, about ten a
 * variance; O(log n) a row for min, max and the distinct family. */
#include "accumulator_inside.h"

typedef unsigned __int128 magnitude;

void ivm__accumulator_count(uint32_t offset, const ivm__chunk *chunk, const ivm__vector *values, uint8_t *const *states)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!values || !ivm__is_null(values, i)) {
            ivm__weight_add(ivm__state_count(states[i], offset), ivm__chunk_weight(chunk, i));
        }
    }
}

static inline ivm__wide number_at(const ivm__vector *values, bool wide, uint32_t row)
{
    return wide ? ivm__wide_cell(values, row) : (ivm__wide)(int64_t)ivm__word(values, row);
}

/* ---- Sums ---------------------------------------------------------------------------------------------------------------------------- */

/* The stored sum is signed: sum + carry * 2^128, so that a change of its sign moves the carry. */
static void sum_add_wide(const ivm__accumulator *accumulator, uint8_t *state, ivm__wide value, ivm__weight weight)
{
    ivm__wide *sum = &ivm__state_sum(accumulator, state)->sum;
    ivm__int256 product = ivm__int256_multiply(value, weight);
    magnitude before = (magnitude)*sum, after = before + (product.limb[0] | (magnitude)product.limb[1] << 64);
    magnitude above =
        (product.limb[2] | (magnitude)product.limb[3] << 64) + (after < before) + (magnitude)(after >> 127) - (magnitude)(before >> 127);
    *sum = (ivm__wide)after;
    uint8_t *carry = state + accumulator->tail_offset;
    if (accumulator->carries_wide) {
        magnitude wide;
        memcpy(&wide, carry, sizeof wide);
        wide += above;
        memcpy(carry, &wide, sizeof wide);
    } else {
        uint64_t word;
        memcpy(&word, carry, sizeof word);
        word += (uint64_t)above;
        memcpy(carry, &word, sizeof word);
    }
}

static inline void sum_add(const ivm__accumulator *accumulator, uint8_t *state, ivm__wide value, ivm__weight weight)
{
    ivm__sum_state *sum = ivm__state_sum(accumulator, state);
    ivm__wide product, total;
    if (ivm__likely(!__builtin_mul_overflow(value, weight, &product) && !__builtin_add_overflow(sum->sum, product, &total))) {
        sum->sum = total;
    } else {
        sum_add_wide(accumulator, state, value, weight);
    }
    ivm__weight_add(&sum->values, weight);
}

/* int64 once each, no nulls: the loop of a star's facts. */
static void add_int64_plain(const ivm__accumulator *accumulator, const int64_t *values, uint8_t *const *states, uint32_t count)
{
    uint32_t wide = accumulator->wide_offset;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *state = states[i];
        ivm__sum_state *sum = (ivm__sum_state *)(void *)(state + wide);
        ivm__wide total;
        if (ivm__likely(!__builtin_add_overflow(sum->sum, (ivm__wide)values[i], &total))) {
            sum->sum = total;
        } else {
            sum_add_wide(accumulator, state, values[i], 1);
        }
        sum->values++;
    }
}

static void add_sums(const ivm__accumulator *accumulator, const ivm__chunk *chunk, const ivm__vector *values, uint8_t *const *states)
{
    bool wide = ivm__type_is_wide(accumulator->argument_type);
    if (!wide && !values->nulls && !chunk->weights) {
        add_int64_plain(accumulator, values->cells, states, chunk->rows_count);
        return;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            uint8_t *state = states[i];
            sum_add(accumulator, state, number_at(values, wide, i), ivm__chunk_weight(chunk, i));
        }
    }
}

static ivm_status add_floats(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const ivm__chunk *chunk,
                             const ivm__vector *values, uint8_t *const *states)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            uint8_t *state = states[i];
            ivm__weight weight = ivm__chunk_weight(chunk, i);
            double value = ivm__word_float(ivm__word(values, i));
            IVM_TRY(ivm__exact_sum_add(accumulators->memory, ivm__state_floats(accumulator, state), value, weight));
            ivm__weight_add(&ivm__state_sum(accumulator, state)->values, weight);
        }
    }
    return IVM_OK;
}

/* ---- Variances ------------------------------------------------------------------------------------------------------------------------- */

static void add_moments(const ivm__accumulator *accumulator, const ivm__chunk *chunk, const ivm__vector *values, uint8_t *const *states)
{
    bool wide = ivm__type_is_wide(accumulator->argument_type);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            ivm__moments *moments = ivm__state_moments(accumulator, states[i]);
            ivm__moments_add(moments, number_at(values, wide, i), ivm__chunk_weight(chunk, i));
        }
    }
}

static ivm_status add_float_moments(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const ivm__chunk *chunk,
                                    const ivm__vector *values, uint8_t *const *states)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            uint8_t *state = states[i];
            ivm__exact_sum **sums = ivm__state_floats(accumulator, state);
            ivm__weight weight = ivm__chunk_weight(chunk, i);
            double value = ivm__word_float(ivm__word(values, i));
            IVM_TRY(ivm__exact_sum_add(accumulators->memory, &sums[0], value, weight));
            IVM_TRY(ivm__exact_sum_add_square(accumulators->memory, &sums[1], value, weight));
            ivm__weight_add(ivm__state_count(state, accumulator->wide_offset), weight);
        }
    }
    return IVM_OK;
}

/* ---- Conditions, extremes and distinct values ------------------------------------------------------------------------------------------- */

static void add_bools(const ivm__accumulator *accumulator, const ivm__chunk *chunk, const ivm__vector *values, uint8_t *const *states)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            ivm__bool_state *bools = ivm__state_bools(accumulator, states[i]);
            ivm__weight_add(ivm__word(values, i) ? &bools->trues : &bools->falses, ivm__chunk_weight(chunk, i));
        }
    }
}

/* A cell as the ordered Z-sets take it. */
static inline ivm__wide cell_at(const ivm__vector *values, bool wide, uint32_t row)
{
    return wide ? ivm__wide_cell(values, row) : (ivm__wide)ivm__word(values, row);
}

/* A value came to be there once (1), or went (-1). */
static ivm_status cross(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, uint8_t *state, ivm__wide cell,
                        int crossed)
{
    if (accumulator->function == IVM__COUNT_DISTINCT) {
        ivm__weight_add(ivm__state_count(state, accumulator->wide_offset), crossed);
        return IVM_OK;
    }
    if (accumulator->is_float) {
        ivm__weight_add(&ivm__state_sum(accumulator, state)->values, crossed);
        return ivm__exact_sum_add(accumulators->memory, ivm__state_floats(accumulator, state), ivm__word_float((uint64_t)cell), crossed);
    }
    sum_add(accumulator, state, ivm__type_is_wide(accumulator->argument_type) ? cell : (ivm__wide)(int64_t)cell, crossed);
    return IVM_OK;
}

ivm_status ivm__accumulator_value_add(ivm__accumulators *accumulators, ivm__accumulator *accumulator, uint32_t group, ivm__wide cell,
                                      ivm__weight weight)
{
    int crossed;
    bool extreme = accumulator->function == IVM__MIN || accumulator->function == IVM__MAX;
    IVM_TRY(ivm__ordered_add_crossing(&accumulator->ordered, group, cell, weight, &crossed));
    return crossed && !extreme ? cross(accumulators, accumulator, ivm__group_state(accumulators, group), cell, crossed) : IVM_OK;
}

static ivm_status add_values(ivm__accumulators *accumulators, ivm__accumulator *accumulator, const ivm__chunk *chunk,
                             const ivm__vector *values, const uint32_t *groups)
{
    bool wide = ivm__type_is_wide(values->type);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            ivm__wide cell = cell_at(values, wide, i);
            IVM_TRY(ivm__accumulator_value_add(accumulators, accumulator, groups[i], cell, ivm__chunk_weight(chunk, i)));
        }
    }
    return IVM_OK;
}

ivm_status ivm__accumulator_add(ivm__accumulators *accumulators, ivm__accumulator *accumulator, const ivm__chunk *chunk,
                                const ivm__vector *values, const ivm__targets *targets)
{
    switch (accumulator->function) {
    case IVM__COUNT:
        ivm__accumulator_count(accumulator->wide_offset, chunk, values, targets->states);
        return IVM_OK;
    case IVM__SUM:
    case IVM__AVG:
        if (accumulator->is_float) {
            return add_floats(accumulators, accumulator, chunk, values, targets->states);
        }
        add_sums(accumulator, chunk, values, targets->states);
        return IVM_OK;
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        add_bools(accumulator, chunk, values, targets->states);
        return IVM_OK;
    case IVM__COUNT_DISTINCT:
    case IVM__SUM_DISTINCT:
    case IVM__MIN:
    case IVM__MAX:
        return add_values(accumulators, accumulator, chunk, values, targets->groups);
    default:
        assert(ivm__function_is_variance(accumulator->function));
        if (accumulator->is_float) {
            return add_float_moments(accumulators, accumulator, chunk, values, targets->states);
        }
        add_moments(accumulator, chunk, values, targets->states);
        return IVM_OK;
    }
}
