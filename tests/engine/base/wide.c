/* Tests of engine/base/wide.c: against schoolbook arithmetic in bytes, which shares nothing with it. */
#include <criterion/criterion.h>

#include "random.h"
#include "wide.h"

/* Of any length, and often of long runs of equal bits. */
static ivm__wide random_wide(uint64_t *state)
{
    unsigned __int128 bits = (unsigned __int128)random_next(state) << 64 | random_next(state);
    uint32_t shift = random_next(state) % 128;
    switch (random_next(state) % 4) {
    case 0:
        bits >>= shift;
        break;
    case 1:
        bits = (unsigned __int128)1 << shift;
        break;
    case 2:
        bits = ~(unsigned __int128)0 << shift;
        break;
    default:
        break;
    }
    return (ivm__wide)bits;
}

typedef struct bytes32 {
    uint8_t byte[32];
} bytes32;

static bytes32 bytes_of(ivm__int256 value)
{
    bytes32 bytes;
    memcpy(bytes.byte, value.limb, sizeof bytes.byte);
    return bytes;
}

static bytes32 bytes_from(ivm__wide value)
{
    bytes32 bytes;
    memset(bytes.byte, value < 0 ? 0xff : 0, sizeof bytes.byte);
    memcpy(bytes.byte, &value, sizeof value);
    return bytes;
}

static bytes32 bytes_add(bytes32 a, bytes32 b)
{
    uint32_t carry = 0;
    for (int i = 0; i < 32; i++) {
        carry += a.byte[i] + b.byte[i];
        a.byte[i] = (uint8_t)carry;
        carry >>= 8;
    }
    return a;
}

/* Modulo 2^256, where two's complement needs no signs. */
static bytes32 bytes_multiply(bytes32 a, bytes32 b)
{
    bytes32 product = { { 0 } };
    for (int i = 0; i < 32; i++) {
        uint32_t carry = 0;
        for (int j = 0; i + j < 32; j++) {
            carry += product.byte[i + j] + a.byte[i] * b.byte[j];
            product.byte[i + j] = (uint8_t)carry;
            carry >>= 8;
        }
    }
    return product;
}

static bool bytes_equal(bytes32 a, bytes32 b)
{
    return memcmp(a.byte, b.byte, sizeof a.byte) == 0;
}

Test(engine_wide, products_equal_schoolbook)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        ivm__wide a = random_wide(&state), b = random_wide(&state);
        bytes32 expected = bytes_multiply(bytes_from(a), bytes_from(b));
        cr_assert(bytes_equal(bytes_of(ivm__int256_multiply(a, b)), expected), "seed %lu", (unsigned long)seed);
    }
}

Test(engine_wide, product_of_the_least_numbers)
{
    ivm__wide least = (ivm__wide)((unsigned __int128)1 << 127);
    ivm__int256 square = ivm__int256_multiply(least, least);
    cr_assert(square.limb[3] == 1ull << 62 && !square.limb[2] && !square.limb[1] && !square.limb[0]);
    ivm__int256 same = ivm__int256_multiply(least, 1);
    ivm__wide value = 0;
    cr_assert(ivm__int256_narrow(same, &value) && value == least);
}

Test(engine_wide, sums_and_negation_equal_schoolbook)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        ivm__int256 a = ivm__int256_multiply(random_wide(&state), random_wide(&state));
        ivm__int256 b = ivm__int256_multiply(random_wide(&state), random_wide(&state));
        cr_assert(bytes_equal(bytes_of(ivm__int256_add(a, b)), bytes_add(bytes_of(a), bytes_of(b))), "seed %lu", (unsigned long)seed);
        ivm__int256 none = ivm__int256_add(a, ivm__int256_negate(a));
        cr_assert(!(none.limb[0] | none.limb[1] | none.limb[2] | none.limb[3]), "seed %lu", (unsigned long)seed);
    }
}

Test(engine_wide, narrow_keeps_what_fits)
{
    ivm__wide greatest = (ivm__wide)(~(unsigned __int128)0 >> 1), least = -greatest - 1, value;
    ivm__wide some[] = { 0, 1, -1, greatest, least, (ivm__wide)1 << 64, -((ivm__wide)1 << 64) };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        value = ~some[i];
        cr_assert(ivm__int256_narrow(ivm__int256_from(some[i]), &value) && value == some[i]);
    }
    ivm__int256 one = ivm__int256_from(1), minus_one = ivm__int256_from(-1);
    cr_assert_not(ivm__int256_narrow(ivm__int256_add(ivm__int256_from(greatest), one), &value));
    cr_assert_not(ivm__int256_narrow(ivm__int256_add(ivm__int256_from(least), minus_one), &value));
    cr_assert_not(ivm__int256_narrow(ivm__int256_multiply(greatest, 4), &value));
    cr_assert_not(ivm__int256_narrow(ivm__int256_multiply(least, 4), &value));
}

Test(engine_wide, powers_of_ten)
{
    ivm__wide power = 1;
    for (uint32_t exponent = 0; exponent <= 38; exponent++) {
        cr_assert(ivm__power_of_ten(exponent) == power, "10^%u", exponent);
        if (exponent < 38) {
            power *= 10;
        }
    }
}

Test(engine_wide, decimals_fit_their_precision)
{
    for (uint32_t precision = 1; precision <= 38; precision++) {
        ivm__wide bound = ivm__power_of_ten(precision);
        cr_assert(ivm__decimal_fits(bound - 1, precision) && ivm__decimal_fits(1 - bound, precision));
        cr_assert(!ivm__decimal_fits(bound, precision) && !ivm__decimal_fits(-bound, precision));
    }
}
