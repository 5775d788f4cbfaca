/* Numbers of 256 bits: the exact product of two cells of 128, so that sums and comparisons of decimals of different scale never round.
 * Two's complement modulo 2^256. Cost: four 64-bit products a multiplication, four additions a sum. */
#include "wide.h"

typedef unsigned __int128 magnitude;

#define TEN_TO_19 10000000000000000000ull

static magnitude magnitude_of(ivm__wide value)
{
    return value < 0 ? -(magnitude)value : (magnitude)value;
}

ivm__int256 ivm__int256_from(ivm__wide value)
{
    uint64_t sign = value < 0 ? UINT64_MAX : 0;
    return (ivm__int256){ { (uint64_t)value, (uint64_t)((magnitude)value >> 64), sign, sign } };
}

ivm__int256 ivm__int256_negate(ivm__int256 a)
{
    ivm__int256 result;
    uint64_t carry = 1;
    for (int i = 0; i < 4; i++) {
        result.limb[i] = ~a.limb[i] + carry;
        carry = carry && !result.limb[i];
    }
    return result;
}

ivm__int256 ivm__int256_multiply(ivm__wide a, ivm__wide b)
{
    magnitude x = magnitude_of(a), y = magnitude_of(b);
    uint64_t x_low = (uint64_t)x, x_high = (uint64_t)(x >> 64);
    uint64_t y_low = (uint64_t)y, y_high = (uint64_t)(y >> 64);
    magnitude low = (magnitude)x_low * y_low;
    magnitude middle = (magnitude)x_low * y_high + (uint64_t)(low >> 64);
    magnitude crossed = (magnitude)x_high * y_low + (uint64_t)middle;
    magnitude high = (magnitude)x_high * y_high + (uint64_t)(middle >> 64) + (uint64_t)(crossed >> 64);
    ivm__int256 product = { { (uint64_t)low, (uint64_t)crossed, (uint64_t)high, (uint64_t)(high >> 64) } };
    assert(!(product.limb[3] >> 63)); /* magnitudes are at most 2^127, their product at most 2^254 */
    return (a < 0) != (b < 0) ? ivm__int256_negate(product) : product;
}

ivm__int256 ivm__int256_add(ivm__int256 a, ivm__int256 b)
{
    ivm__int256 sum;
    magnitude carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (magnitude)a.limb[i] + b.limb[i];
        sum.limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return sum;
}

bool ivm__int256_narrow(ivm__int256 a, ivm__wide *value)
{
    uint64_t sign = a.limb[1] >> 63 ? UINT64_MAX : 0;
    if (a.limb[2] != sign || a.limb[3] != sign) {
        return false;
    }
    *value = (ivm__wide)((magnitude)a.limb[1] << 64 | a.limb[0]);
    return true;
}

ivm__wide ivm__power_of_ten(uint32_t exponent)
{
    static const uint64_t power[20] = {
        1ull,
        10ull,
        100ull,
        1000ull,
        10000ull,
        100000ull,
        1000000ull,
        10000000ull,
        100000000ull,
        1000000000ull,
        10000000000ull,
        100000000000ull,
        1000000000000ull,
        10000000000000ull,
        100000000000000ull,
        1000000000000000ull,
        10000000000000000ull,
        100000000000000000ull,
        1000000000000000000ull,
        TEN_TO_19,
    };
    assert(exponent <= 38);
    return exponent < 20 ? (ivm__wide)power[exponent] : (ivm__wide)TEN_TO_19 * (ivm__wide)power[exponent - 19];
}
