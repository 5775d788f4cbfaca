/* One aggregate of the oracle over its values. Numbers are integers over a common denominator: 10^scale for decimals, 2^DYADIC_BITS for
 * floats, of which others than small multiples of 2^-DYADIC_BITS are not judged. */
#include "naive.h"

#include <math.h>

#define DYADIC_BITS 24
#define DYADIC_MAX 0x1p52

typedef struct moments {
    naive_int count, sum, squares; /* each weighted */
    naive_int denominator;         /* of a value */
    naive_int nan, above, below;   /* weights of floats that are no numbers */
} moments;

static ivm_status float_integer(double value, naive_int *integer)
{
    double scaled = ldexp(value, DYADIC_BITS);
    if (fabs(scaled) > DYADIC_MAX || scaled != trunc(scaled)) {
        return NAIVE_UNJUDGED;
    }
    *integer = (naive_int)scaled;
    return IVM_OK;
}

static ivm_status moments_add(moments *sums, const ivm_value *value, naive_int weight, bool squares)
{
    naive_int integer = 0, part;
    bool fits = naive_add(sums->count, weight, &sums->count);
    if (value->type == IVM_FLOAT64 && !isfinite(value->as.float64)) {
        naive_int *special = isnan(value->as.float64) ? &sums->nan : value->as.float64 > 0 ? &sums->above : &sums->below;
        *special += weight;
    } else if (value->type == IVM_FLOAT64) {
        NAIVE_TRY(float_integer(value->as.float64, &integer));
    } else {
        integer = naive_integer(value);
    }
    fits &= naive_multiply(integer, weight, &part) && naive_add(sums->sum, part, &sums->sum);
    fits &= !squares || (naive_multiply(integer, part, &part) && naive_add(sums->squares, part, &sums->squares));
    return fits ? IVM_OK : NAIVE_UNJUDGED;
}

/* By the net numbers of NaN and infinities; false where all cancel. */
static bool special_sum(const moments *sums, double *sum)
{
    bool up = sums->above > 0 || sums->below < 0, down = sums->above < 0 || sums->below > 0;
    *sum = sums->nan || (up && down) ? NAN : up ? INFINITY : -INFINITY;
    return sums->nan || sums->above || sums->below;
}

static ivm_status sum_value(ivm_type type, const moments *sums, ivm_value *out)
{
    double special;
    if (IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND) {
        return naive_number(IVM_DECIMAL(38, naive_scale(type)), sums->sum, out);
    }
    if (type == IVM_INT64) {
        return naive_number(type, sums->sum, out);
    }
    *out = naive_float(special_sum(sums, &special) ? special : naive_quotient(sums->sum, sums->denominator));
    return IVM_OK;
}

/* (n ss - s^2) / (n n'), n' = n or n - 1. */
static ivm_status variance(naive_aggregate_function function, const moments *sums, ivm_value *out)
{
    bool sample = function == NAIVE_VAR_SAMP || function == NAIVE_STDDEV_SAMP;
    naive_int n = sums->count, a, b, below, square;
    bool fits = naive_multiply(n, sums->squares, &a) && naive_multiply(sums->sum, sums->sum, &b) && naive_add(a, -b, &a);
    fits &= naive_multiply(n, sample ? n - 1 : n, &below) && naive_multiply(sums->denominator, sums->denominator, &square) &&
            naive_multiply(below, square, &below) && below >> 125 == 0;
    if (!fits) {
        return NAIVE_UNJUDGED;
    }
    double value = naive_quotient(a, below);
    if (function == NAIVE_STDDEV_POP || function == NAIVE_STDDEV_SAMP) {
        *out = value < 0 ? ivm_null() : naive_float(sqrt(value));
    } else {
        *out = naive_float(value);
    }
    return IVM_OK;
}

static ivm_status average(naive_aggregate_function function, ivm_type type, const moments *sums, ivm_value *out)
{
    bool sample = function == NAIVE_VAR_SAMP || function == NAIVE_STDDEV_SAMP;
    double special;
    naive_int below;
    *out = ivm_null();
    if (sums->count <= 0 || (sample && sums->count < 2)) {
        return IVM_OK;
    }
    if (type == IVM_FLOAT64 && special_sum(sums, &special)) {
        *out = ivm_float64(function == NAIVE_AVG ? special : NAN);
        return IVM_OK;
    }
    if (function != NAIVE_AVG) {
        return variance(function, sums, out);
    }
    if (!naive_multiply(sums->count, sums->denominator, &below) || below >> 125) {
        return NAIVE_UNJUDGED;
    }
    *out = naive_float(naive_quotient(sums->sum, below));
    return IVM_OK;
}

static ivm_status numbers(naive_aggregate_function function, ivm_type type, const naive_relation *values, ivm_value *out)
{
    moments sums = { .denominator = type == IVM_FLOAT64 ? (naive_int)1 << DYADIC_BITS : naive_power(naive_scale(type)) };
    bool sum = function == NAIVE_SUM, squares = !sum && function != NAIVE_AVG;
    for (size_t r = 0; r < values->count; r++) {
        NAIVE_TRY(moments_add(&sums, naive_row(values, r), values->weights[r], squares));
    }
    return sum ? sum_value(type, &sums, out) : average(function, type, &sums, out);
}

static ivm_value extreme(naive_aggregate_function function, const naive_relation *values)
{
    bool least = function == NAIVE_MIN || function == NAIVE_BOOL_AND;
    ivm_value best = values->cells[0];
    for (size_t r = 1; r < values->count; r++) {
        int order = naive_compare(naive_row(values, r), &best);
        best = (least ? order < 0 : order > 0) ? *naive_row(values, r) : best;
    }
    return best;
}

/* Over rows that are there alone: those of weight above 0. */
static ivm_status of_present(naive_aggregate_function function, ivm_type type, const naive_relation *present, ivm_value *out)
{
    naive_relation distinct;
    naive_relation_init(&distinct, 1);
    *out = ivm_null();
    if (function != NAIVE_COUNT_DISTINCT && function != NAIVE_SUM_DISTINCT) {
        *out = present->count ? extreme(function, present) : ivm_null();
        return IVM_OK;
    }
    ivm_status status = naive_rows_add(&distinct, present, 1);
    naive_consolidate(&distinct);
    for (size_t r = 0; r < distinct.count; r++) {
        distinct.weights[r] = 1;
    }
    if (function == NAIVE_COUNT_DISTINCT) {
        *out = ivm_int64((int64_t)distinct.count);
    } else if (status == IVM_OK && distinct.count) {
        status = numbers(NAIVE_SUM, type, &distinct, out);
    }
    naive_relation_free(&distinct);
    return status;
}

ivm_status naive_accumulate(naive_aggregate_function function, ivm_type type, const naive_relation *values, ivm_value *out)
{
    naive_relation present;
    switch (function) {
    case NAIVE_COUNT: {
        naive_int count = 0;
        for (size_t r = 0; r < values->count; r++) {
            count += values->weights[r];
        }
        return naive_number(IVM_INT64, count, out);
    }
    case NAIVE_MIN:
    case NAIVE_MAX:
    case NAIVE_BOOL_AND:
    case NAIVE_BOOL_OR:
    case NAIVE_COUNT_DISTINCT:
    case NAIVE_SUM_DISTINCT: {
        naive_relation_init(&present, 1);
        for (size_t r = 0; r < values->count; r++) {
            if (values->weights[r] > 0) {
                NAIVE_TRY(naive_row_add(&present, naive_row(values, r), values->weights[r]));
            }
        }
        ivm_status status = of_present(function, type, &present, out);
        naive_relation_free(&present);
        return status;
    }
    default:
        *out = ivm_null();
        return values->count ? numbers(function, type, values, out) : IVM_OK;
    }
}
