/* Moments: the state of variances over integers and decimals, and the variance that moments of any kind come to.
 *
 *     variance = (n * sum of squares - sum^2) / (n * n)        or, of a sample, / (n * (n - 1))
 *
 * Both sums are exact modulo a power of two so large that what 2^64 rows come to fits: on the way they may wrap, and come back. */
#ifndef IVM__MOMENTS_H
#define IVM__MOMENTS_H

#include "exact_sum.h"

/* Two's complement, low part first. */
typedef struct ivm__moments {
    ivm__weight count; /* of values, n; by weights */
    unsigned __int128 sum[2];
    unsigned __int128 squares[3];
} ivm__moments;

/* A value and weight whose products do not fit 128 bits. */
void ivm__moments_add_wide(ivm__moments *moments, ivm__wide value, ivm__weight weight);

/* number += value, of `parts` parts. */
static inline void ivm__moments_sum(unsigned __int128 *number, uint32_t parts, ivm__wide value)
{
    unsigned __int128 before = number[0];
    number[0] = before + (unsigned __int128)value;
    int carry = (number[0] < before) - (value < 0);
    for (uint32_t i = 1; ivm__unlikely(carry != 0) && i < parts; i++) {
        number[i] += (unsigned __int128)(ivm__wide)carry;
        carry = carry > 0 ? number[i] == 0 : -(number[i] == ~(unsigned __int128)0);
    }
}

/* Cost: two products and two additions where they are small, as nearly all are. */
static inline void ivm__moments_add(ivm__moments *moments, ivm__wide value, ivm__weight weight)
{
    ivm__wide product, square;
    moments->count = (ivm__weight)((unsigned __int128)moments->count + (unsigned __int128)weight);
    if (ivm__likely(value == (int64_t)value && !__builtin_mul_overflow(value, weight, &product) &&
                    !__builtin_mul_overflow(value * value, weight, &square))) {
        ivm__moments_sum(moments->sum, 2, product);
        ivm__moments_sum(moments->squares, 3, square);
    } else {
        ivm__moments_add_wide(moments, value, weight);
    }
}

/* What a variance is computed from, exponents being multiples of 64; values were scaled by 10^scale. */
typedef struct ivm__moments_read {
    ivm__big sum, squares;
    ivm__weight count;
    uint32_t scale;
} ivm__moments_read;

void ivm__moments_read_whole(const ivm__moments *moments, uint32_t scale, ivm__moments_read *read);
/* Of an exact sum of values and one of their squares. */
void ivm__moments_read_floats(const ivm__exact_sum *sum, const ivm__exact_sum *squares, ivm__weight count, ivm__moments_read *read);
/* Rounded once; the count must be above 0, of a sample above 1. *below: it is below 0, as with negative weights it may be, even where it
 * rounds to 0. Cost: products of a few limbs and one division. */
double ivm__moments_variance(const ivm__moments_read *read, bool sample, bool *below);

#endif
