/* The double nearest to a quotient of big integers, rounded once: averages, variances, decimals as floats.
 *
 *     N / D = q * 2^e + rest,   q of 63 or 64 bits from one step of long division,   rest above 0 or not: enough to round to nearest even
 *
 * Numerator and denominator are shifted so that D fills whole limbs and N has 63 bits more: then q is one limb, guessed from the leading
 * limbs and at most two too great (Knuth, The Art of Computer Programming, 4.3.1, theorem B). Cost: one pass over the limbs of either. */
#include "wide.h"

#include <math.h>

typedef unsigned __int128 magnitude;

enum { LEADING_MAX = 1023, LEADING_MIN = -1022, MANTISSA_BITS = 53 };

double ivm__double_round(bool negative, uint64_t bits, bool rest, int32_t exponent)
{
    assert(!rest || bits >> 62);
    if (!bits) {
        return 0;
    }
    uint32_t zeros = (uint32_t)__builtin_clzll(bits);
    bits <<= zeros;
    int64_t leading = (int64_t)exponent + 63 - zeros;
    if (leading > LEADING_MAX) {
        return negative ? -INFINITY : INFINITY;
    }
    int64_t kept = leading >= LEADING_MIN ? MANTISSA_BITS : MANTISSA_BITS - (LEADING_MIN - leading);
    if (kept < 0) {
        return 0;
    }
    uint32_t dropped = 64 - (uint32_t)kept;
    uint64_t mantissa = kept ? bits >> dropped : 0;
    uint64_t half = 1ull << (dropped - 1);
    uint64_t below = bits & (half | (half - 1));
    mantissa += below > half || (below == half && (rest || (mantissa & 1)));
    if (!mantissa) {
        return 0; /* never -0.0 */
    }
    /* The mantissa's leading bit adds 1 to the exponent field, and so does a carry out of it: into the first normal, or infinity. */
    uint64_t word = leading >= LEADING_MIN ? ((uint64_t)(leading - LEADING_MIN) << 52) + mantissa : mantissa;
    return ivm__word_float(negative ? word | 1ull << 63 : word);
}

static uint32_t limbs_trim(const uint64_t *limbs, uint32_t count)
{
    while (count && !limbs[count - 1]) {
        count--;
    }
    return count;
}

/* out[0..out_count) = in << bits; the result fits. */
static void limbs_shift(const uint64_t *in, uint32_t in_count, uint32_t bits, uint64_t *out, uint32_t out_count)
{
    uint32_t whole = bits / 64, part = bits % 64;
    assert(in_count + whole <= out_count + 1);
    memset(out, 0, out_count * sizeof *out);
    for (uint32_t i = 0; i < in_count; i++) {
        magnitude shifted = (magnitude)in[i] << part;
        out[i + whole] |= (uint64_t)shifted;
        if (shifted >> 64) {
            assert(i + whole + 1 < out_count);
            out[i + whole + 1] = (uint64_t)(shifted >> 64);
        }
    }
}

/* remainder[0..count] -= factor * divisor[0..count). Whether it went below 0. */
static bool limbs_subtract_product(uint64_t *remainder, const uint64_t *divisor, uint32_t count, uint64_t factor)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < count; i++) {
        magnitude product = (magnitude)divisor[i] * factor + carry;
        uint64_t low = (uint64_t)product;
        carry = (uint64_t)(product >> 64) + (remainder[i] < low);
        remainder[i] -= low;
    }
    bool below = remainder[count] < carry;
    remainder[count] -= carry;
    return below;
}

/* remainder[0..count] += divisor[0..count). Whether it came back from below 0. */
static bool limbs_add_back(uint64_t *remainder, const uint64_t *divisor, uint32_t count)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < count; i++) {
        magnitude sum = (magnitude)remainder[i] + divisor[i] + carry;
        remainder[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
    uint64_t before = remainder[count];
    remainder[count] += carry;
    return remainder[count] < before;
}

/* remainder (count + 1 limbs) / divisor (count limbs, the top bit set), the quotient one limb; what is left stays in remainder. */
static uint64_t limbs_divide(uint64_t *remainder, const uint64_t *divisor, uint32_t count)
{
    uint64_t top = divisor[count - 1];
    assert(top >> 63 && remainder[count] < top);
    uint64_t quotient = (uint64_t)(((magnitude)remainder[count] << 64 | remainder[count - 1]) / top);
    bool below = limbs_subtract_product(remainder, divisor, count, quotient);
    for (int i = 0; below; i++) {
        assert(i < 2);
        quotient--;
        below = !limbs_add_back(remainder, divisor, count);
    }
    return quotient;
}

static uint32_t limbs_bits(const uint64_t *limbs, uint32_t count)
{
    return 64 * count - (uint32_t)__builtin_clzll(limbs[count - 1]);
}

double ivm__quotient_double(const ivm__quotient *quotient)
{
    uint32_t numerator_limbs = limbs_trim(quotient->numerator, quotient->numerator_limbs);
    uint32_t denominator_limbs = limbs_trim(quotient->denominator, quotient->denominator_limbs);
    assert(denominator_limbs);
    if (!numerator_limbs) {
        return 0;
    }
    uint32_t numerator_bits = limbs_bits(quotient->numerator, numerator_limbs);
    uint32_t denominator_bits = limbs_bits(quotient->denominator, denominator_limbs);
    uint32_t count = numerator_bits > 64 * denominator_limbs + 63 ? numerator_bits / 64 : denominator_limbs;
    uint64_t remainder[IVM__QUOTIENT_LIMBS_MAX + 1], divisor[IVM__QUOTIENT_LIMBS_MAX];
    assert(count <= IVM__QUOTIENT_LIMBS_MAX);
    uint32_t numerator_shift = 64 * count + 63 - numerator_bits, denominator_shift = 64 * count - denominator_bits;
    limbs_shift(quotient->numerator, numerator_limbs, numerator_shift, remainder, count + 1);
    limbs_shift(quotient->denominator, denominator_limbs, denominator_shift, divisor, count);
    uint64_t bits = limbs_divide(remainder, divisor, count);
    bool rest = limbs_trim(remainder, count + 1) != 0;
    return ivm__double_round(quotient->negative, bits, rest, (int32_t)denominator_shift - (int32_t)numerator_shift + quotient->exponent);
}

double ivm__quotient_round(bool negative, const uint64_t *numerator, uint32_t numerator_limbs, const uint64_t *denominator,
                           uint32_t denominator_limbs)
{
    return ivm__quotient_double(&(ivm__quotient){ .negative = negative,
                                                  .numerator = numerator,
                                                  .denominator = denominator,
                                                  .numerator_limbs = numerator_limbs,
                                                  .denominator_limbs = denominator_limbs });
}

double ivm__decimal_to_double(ivm__int256 value, uint32_t scale, ivm__weight count)
{
    assert(count > 0);
    bool negative = value.limb[3] >> 63;
    ivm__int256 numerator = negative ? ivm__int256_negate(value) : value;
    ivm__int256 divisor = ivm__int256_multiply(ivm__power_of_ten(scale), count);
    return ivm__quotient_round(negative, numerator.limb, 4, divisor.limb, 4);
}
