/* Numbers wider than the machine's: 256-bit products, and the correctly rounded double of
 * a quotient of big integers. */
#ifndef IVM__WIDE_H
#define IVM__WIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "chunk.h"

/* Two's complement, low limb first. */
typedef struct ivm__int256 {
    uint64_t limb[4];
} ivm__int256;

ivm__int256 ivm__int256_from(ivm__wide value);
ivm__int256 ivm__int256_multiply(ivm__wide a, ivm__wide b);
ivm__int256 ivm__int256_add(ivm__int256 a, ivm__int256 b);
ivm__int256 ivm__int256_negate(ivm__int256 a);
/* Whether it fits 128 bits; *value is then set. */
bool ivm__int256_narrow(ivm__int256 a, ivm__wide *value);

/* A number of any size: +-limb[0..count) * 2^exponent, low limb first, the last of them not 0. Holds the square of an exact float sum, and
 * a count times a sum of squares. */
#define IVM__BIG_LIMBS_MAX 84u
typedef struct ivm__big {
    bool negative;
    int32_t exponent;
    uint32_t count; /* 0: the number is 0 */
    uint64_t limb[IVM__BIG_LIMBS_MAX];
} ivm__big;

/* 10^exponent for 0..38. */
ivm__wide ivm__power_of_ten(uint32_t exponent);
/* |value| < 10^precision */
static inline bool ivm__decimal_fits(ivm__wide value, uint32_t precision)
{
    ivm__wide bound = ivm__power_of_ten(precision);
    return value < bound && value > -bound;
}

/* The double nearest to numerator / denominator, ties to even, infinity past the range, subnormals right; both are magnitudes, low limb
 * first; the denominator is not 0. Neither has more than IVM__QUOTIENT_LIMBS_MAX limbs. Cost: one step of long division. */
#define IVM__QUOTIENT_LIMBS_MAX 88u
double ivm__quotient_round(bool negative, const uint64_t *numerator, uint32_t numerator_limbs, const uint64_t *denominator,
                           uint32_t denominator_limbs);
/* The same of +-numerator / denominator * 2^exponent. */
typedef struct ivm__quotient {
    bool negative;
    int32_t exponent;
    const uint64_t *numerator, *denominator;
    uint32_t numerator_limbs, denominator_limbs;
} ivm__quotient;
double ivm__quotient_double(const ivm__quotient *quotient);
/* The double nearest to (bits + rest) * 2^exponent, rest being 0 or else a fraction above 0 of the last bit; bits has 63 significant
 * bits at least where there is a rest. Ties to even, infinity past the range, subnormals right, never -0.0. */
double ivm__double_round(bool negative, uint64_t bits, bool rest, int32_t exponent);
/* value / (10^scale * count), correctly rounded; count > 0. */
double ivm__decimal_to_double(ivm__int256 value, uint32_t scale, ivm__weight count);
#endif
