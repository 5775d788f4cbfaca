/* Accumulators: reading aggregates' values from groups' states.
 *
 *     avg = sum / count of non-nulls        variance: moments.h        deviation = the root of the rounded variance
 *
 * Each is rounded once, from exact sums; ranges are checked here, where nothing is in flight any more. Cost: an average takes one division
 * of big integers, a variance that and products of a few limbs; min and max a descent. */
#include <math.h>
#include <stddef.h>

#include "accumulator_inside.h"

typedef unsigned __int128 magnitude;

static ivm_status count_value(const ivm__accumulator *accumulator, uint8_t *state, uint64_t *cell)
{
    ivm__weight count = accumulator->counts_rows ? *ivm__group_rows(state) : *ivm__state_count(state, accumulator->wide_offset);
    if (count != (int64_t)count) {
        return IVM_OVERFLOW;
    }
    *cell = (uint64_t)(int64_t)count;
    return IVM_OK;
}

static ivm_status sum_value(const ivm__accumulator *accumulator, uint8_t *state, ivm__vector *out, uint32_t at)
{
    const ivm__sum_state *sum = ivm__state_sum(accumulator, state);
    ivm__wide carry = ivm__state_carry(accumulator, state);
    if (IVM_TYPE_KIND(accumulator->type) == IVM_DECIMAL_KIND) {
        ((ivm__wide *)out->cells)[at] = sum->sum;
        return carry == 0 && ivm__decimal_fits(sum->sum, IVM_DECIMAL_PRECISION_MAX) ? IVM_OK : IVM_OVERFLOW;
    }
    ((uint64_t *)out->cells)[at] = (uint64_t)(int64_t)sum->sum;
    return carry == 0 && sum->sum == (int64_t)sum->sum ? IVM_OK : IVM_OVERFLOW;
}

static uint32_t scale_of(ivm_type type)
{
    return ivm__type_is_wide(type) ? IVM_TYPE_SCALE(type) : 0;
}

static double average_value(const ivm__accumulator *accumulator, uint8_t *state)
{
    const ivm__sum_state *sum = ivm__state_sum(accumulator, state);
    magnitude carry = (magnitude)ivm__state_carry(accumulator, state);
    ivm__int256 above = { { 0, 0, (uint64_t)carry, (uint64_t)(carry >> 64) } };
    return ivm__decimal_to_double(ivm__int256_add(ivm__int256_from(sum->sum), above), scale_of(accumulator->argument_type), sum->values);
}

static void cell_write(ivm__vector *out, uint32_t at, bool is_null, ivm__wide cell)
{
    out->nulls[at] = is_null;
    if (ivm__type_is_wide(out->type)) {
        ((ivm__wide *)out->cells)[at] = is_null ? 0 : cell;
    } else {
        ((uint64_t *)out->cells)[at] = is_null ? 0 : (uint64_t)cell;
    }
}

static void float_write(ivm__vector *out, uint32_t at, bool is_null, double value)
{
    cell_write(out, at, is_null, (ivm__wide)ivm__float_word(value));
}

/* A sum or an average of groups: null without a value; a sum of rows of negative weights too has one where any of them has. */
static ivm_status sum_or_average(const ivm__accumulator *accumulator, uint8_t *state, ivm__vector *out, uint32_t at)
{
    const ivm__sum_state *sum = ivm__state_sum(accumulator, state);
    bool average = accumulator->function == IVM__AVG;
    out->nulls[at] = accumulator->support_offset ? *ivm__state_count(state, accumulator->support_offset) == 0 : sum->values <= 0;
    if (out->nulls[at]) {
        cell_write(out, at, true, 0);
    } else if (accumulator->is_float) {
        const ivm__exact_sum *total = *ivm__state_floats(accumulator, state);
        float_write(out, at, false, average ? ivm__exact_sum_average(total, sum->values) : ivm__exact_sum_value(total));
    } else if (average) {
        float_write(out, at, false, average_value(accumulator, state));
    } else {
        return sum_value(accumulator, state, out, at);
    }
    return IVM_OK;
}

/* The variance of a state of a count large enough. */
static double variance_compute(const ivm__accumulator *accumulator, uint8_t *state, bool sample, bool *below)
{
    ivm__exact_sum *const *sums = accumulator->is_float ? ivm__state_floats(accumulator, state) : NULL;
    ivm__moments_read read;
    double special;
    *below = false;
    if (!sums) {
        ivm__moments_read_whole(ivm__state_moments(accumulator, state), scale_of(accumulator->argument_type), &read);
    } else if (ivm__exact_sum_special(sums[0], &special)) {
        return (double)NAN;
    } else {
        ivm__moments_read_floats(sums[0], sums[1], *ivm__state_count(state, accumulator->wide_offset), &read);
    }
    return ivm__moments_variance(&read, sample, below);
}

static void variance_value(const ivm__accumulator *accumulator, uint8_t *state, ivm__vector *out, uint32_t at)
{
    ivm__aggregate_function function = accumulator->function;
    bool sample = function == IVM__VAR_SAMP || function == IVM__STDDEV_SAMP;
    bool deviation = function == IVM__STDDEV_POP || function == IVM__STDDEV_SAMP, below;
    static_assert(offsetof(ivm__moments, count) == 0, "moments begin with the count that a float variance has alone");
    if (*ivm__state_count(state, accumulator->wide_offset) <= sample) {
        cell_write(out, at, true, 0);
        return;
    }
    double variance = variance_compute(accumulator, state, sample, &below);
    float_write(out, at, deviation && below, deviation && !below ? sqrt(variance) : variance);
}

static void bool_value(const ivm__accumulator *accumulator, uint8_t *state, ivm__vector *out, uint32_t at)
{
    const ivm__bool_state *bools = ivm__state_bools(accumulator, state);
    bool value = accumulator->function == IVM__BOOL_AND ? bools->falses == 0 : bools->trues != 0;
    cell_write(out, at, bools->falses == 0 && bools->trues == 0, value);
}

static void extreme_value(const ivm__accumulator *accumulator, uint32_t group, ivm__vector *out, uint32_t at)
{
    ivm__wide cell = 0;
    bool found = accumulator->function == IVM__MIN ? ivm__ordered_first(&accumulator->ordered, group, &cell)
                                                   : ivm__ordered_last(&accumulator->ordered, group, &cell);
    cell_write(out, at, !found, cell);
}

/* int64 sums without a carry, as nearly all are; the first that is of another kind stops it. How many were read. */
static uint32_t plain_sums(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const uint32_t *groups,
                           uint32_t count, ivm__vector *out)
{
    uint64_t *cells = out->cells;
    if (accumulator->function != IVM__SUM || accumulator->support_offset || accumulator->type != IVM_INT64) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *state = ivm__group_state(accumulators, groups[i]);
        const ivm__sum_state *sum = ivm__state_sum(accumulator, state);
        if (ivm__state_carry(accumulator, state) != 0 || sum->sum != (int64_t)sum->sum || sum->values <= 0) {
            return i;
        }
        cells[i] = (uint64_t)(int64_t)sum->sum;
        out->nulls[i] = 0;
    }
    return count;
}

ivm_status ivm__accumulator_values(const ivm__accumulators *accumulators, uint32_t which, const uint32_t *groups, uint32_t count,
                                   ivm__vector *out)
{
    const ivm__accumulator *accumulator = &accumulators->list[which];
    for (uint32_t i = plain_sums(accumulators, accumulator, groups, count, out); i < count; i++) {
        uint8_t *state = ivm__group_state(accumulators, groups[i]);
        switch (accumulator->function) {
        case IVM__COUNT:
        case IVM__COUNT_DISTINCT:
            out->nulls[i] = 0;
            IVM_TRY(count_value(accumulator, state, &((uint64_t *)out->cells)[i]));
            break;
        case IVM__SUM:
        case IVM__AVG:
        case IVM__SUM_DISTINCT:
            IVM_TRY(sum_or_average(accumulator, state, out, i));
            break;
        case IVM__MIN:
        case IVM__MAX:
            extreme_value(accumulator, groups[i], out, i);
            break;
        case IVM__BOOL_AND:
        case IVM__BOOL_OR:
            bool_value(accumulator, state, out, i);
            break;
        default:
            variance_value(accumulator, state, out, i);
        }
    }
    return IVM_OK;
}
