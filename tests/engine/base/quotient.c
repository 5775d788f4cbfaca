/* Tests of engine/base/quotient.c: hard cases worked out in exact fractions, the machine's own division, and the C library's reading of
 * decimals. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"
#include "wide.h"

static const struct {
    const char *numerator, *denominator;
    uint64_t expected;
} cases[] = {
#include "quotient_cases.inc"
};

/* Hexadecimal digits as limbs, low limb first; how many. */
static uint32_t limbs_parse(const char *text, uint64_t limbs[IVM__QUOTIENT_LIMBS_MAX])
{
    uint32_t size = (uint32_t)strlen(text);
    memset(limbs, 0, IVM__QUOTIENT_LIMBS_MAX * sizeof *limbs);
    for (uint32_t i = 0; i < size; i++) {
        char digit[2] = { text[size - 1 - i], 0 };
        limbs[i / 16] |= (uint64_t)strtoul(digit, NULL, 16) << 4 * (i % 16);
    }
    return (size + 15) / 16;
}

Test(engine_quotient, cases_from_exact_fractions)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t numerator[IVM__QUOTIENT_LIMBS_MAX], denominator[IVM__QUOTIENT_LIMBS_MAX];
        uint32_t numerator_limbs = limbs_parse(cases[i].numerator, numerator);
        uint32_t denominator_limbs = limbs_parse(cases[i].denominator, denominator);
        uint64_t word = word_of(ivm__quotient_round(false, numerator, numerator_limbs, denominator, denominator_limbs));
        cr_assert_eq(word, cases[i].expected, "case %zu: %016lx, not %016lx", i, (unsigned long)word, (unsigned long)cases[i].expected);
        uint64_t sign = cases[i].expected ? 1ull << 63 : 0;
        word = word_of(ivm__quotient_round(true, numerator, numerator_limbs, denominator, denominator_limbs));
        cr_assert_eq(word, cases[i].expected | sign, "case %zu, negated", i);
        word = word_of(ivm__quotient_round(false, numerator, IVM__QUOTIENT_LIMBS_MAX, denominator, IVM__QUOTIENT_LIMBS_MAX));
        cr_assert_eq(word, cases[i].expected, "case %zu, with leading limbs of 0", i);
    }
}

Test(engine_quotient, equals_the_machines_division)
{
    for (uint64_t seed = 1; seed <= 200000; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        uint64_t numerator = random_next(&state) >> (11 + random_next(&state) % 53);
        uint64_t denominator = random_next(&state) >> (11 + random_next(&state) % 53);
        denominator += !denominator;
        double expected = (double)numerator / (double)denominator;
        cr_assert_eq(word_of(ivm__quotient_round(false, &numerator, 1, &denominator, 1)), word_of(expected), "seed %lu",
                     (unsigned long)seed);
    }
}

Test(engine_quotient, double_round_at_the_edges)
{
    double least = 4.9406564584124654e-324;
    cr_assert_eq(ivm__double_round(false, 1, false, -1074), least);
    cr_assert_eq(word_of(ivm__double_round(true, 1, false, -1075)), 0);
    cr_assert_eq(ivm__double_round(false, 1ull << 63, true, -1075 - 63), least);
    cr_assert_eq(ivm__double_round(true, 3, false, -1075), -2 * least);
    cr_assert_eq(word_of(ivm__double_round(true, UINT64_MAX, true, -1074 - 66)), 0);
    cr_assert_eq(ivm__double_round(false, UINT64_MAX, true, -1086), 2.2250738585072014e-308);
    cr_assert_eq(ivm__double_round(false, UINT64_MAX << 11, true, 960), 1.7976931348623157e308);
    cr_assert_eq(ivm__double_round(true, UINT64_MAX << 10, false, 960), -(double)INFINITY);
    cr_assert_eq(ivm__double_round(false, 1, false, 1024), (double)INFINITY);
    cr_assert_eq(word_of(ivm__double_round(true, 0, false, 0)), 0);
}

/* Digits with a point before the last `scale`, as strtod reads them. */
static double decimal_read(bool negative, const char *digits, uint32_t scale)
{
    char text[128];
    snprintf(text, sizeof text, "%s%se-%u", negative ? "-" : "", digits, scale);
    double value = strtod(text, NULL);
    return value == 0 ? 0 : value;
}

Test(engine_quotient, decimals_read_as_the_library_reads_their_digits)
{
    for (uint64_t seed = 1; seed <= 50000; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        uint32_t size = 1 + random_next(&state) % 38, scale = random_next(&state) % 39;
        bool negative = random_next(&state) & 1;
        char digits[40] = { 0 };
        ivm__wide value = 0;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t digit = random_next(&state) % 10;
            digits[i] = (char)('0' + digit);
            value = value * 10 + digit;
        }
        double expected = decimal_read(negative, digits, scale);
        double given = ivm__decimal_to_double(ivm__int256_from(negative ? -value : value), scale, 1);
        cr_assert_eq(word_of(given), word_of(expected), "seed %lu: %se-%u", (unsigned long)seed, digits, scale);
    }
}

/* value * count / (10^scale * count) is value / 10^scale, and needs all 256 bits. */
Test(engine_quotient, decimals_are_divided_by_the_count)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        uint64_t count = random_next(&state) >> random_next(&state) % 64;
        count += !count;
        uint32_t scale = random_next(&state) % 39;
        ivm__wide value = (ivm__wide)((unsigned __int128)random_next(&state) << 64 | random_next(&state)) >> random_next(&state) % 120;
        double expected = ivm__decimal_to_double(ivm__int256_from(value), scale, 1);
        double given = ivm__decimal_to_double(ivm__int256_multiply(value, (ivm__wide)count), scale, count);
        cr_assert_eq(word_of(given), word_of(expected), "seed %lu", (unsigned long)seed);
    }
    cr_assert_eq(ivm__decimal_to_double(ivm__int256_from(-1), 0, 3), -1.0 / 3.0);
    cr_assert_eq(ivm__decimal_to_double(ivm__int256_from(25), 2, 10), 0.025);
}
