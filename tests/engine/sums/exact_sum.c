/* Tests of engine/sums/exact_sum.c: hard cases worked out in exact fractions, and random streams against a model of 2880 bits that multiplies
 * bit by bit and is asked only whether a double is the nearest to it. */
#include "exact_sum.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "numbers.h"

static const struct {
    const char *additions, *count;
    uint64_t sum, average;
} cases[] = {
#include "exact_sum_cases.inc"
};

/* ---- The model: a number in two's complement, in units of 2^-1074 ------------------------------------------------------------------ */

#define MODEL_LIMBS 45

typedef struct model {
    uint64_t limb[MODEL_LIMBS];
} model;

/* += or -= mantissa << shift */
static void model_add_shifted(model *to, uint64_t mantissa, uint32_t shift, bool negative)
{
    unsigned __int128 placed = (unsigned __int128)mantissa << shift % 64, carry = 0;
    for (uint32_t i = shift / 64; i < MODEL_LIMBS; i++) {
        uint64_t part = i == shift / 64 ? (uint64_t)placed : i == shift / 64 + 1 ? (uint64_t)(placed >> 64) : 0;
        carry = negative ? (unsigned __int128)to->limb[i] - part - (uint64_t)carry : (unsigned __int128)to->limb[i] + part + carry;
        to->limb[i] = (uint64_t)carry;
        carry = (carry >> 64) & 1;
    }
}

/* An infinity counts as 2^1024, the double that would follow the greatest. */
static void model_add(model *to, double value, ivm__weight weight)
{
    int exponent = 0;
    double fraction = isinf(value) ? 0.5 : frexp(fabs(value), &exponent);
    exponent = isinf(value) ? 1025 : exponent;
    uint64_t mantissa = (uint64_t)ldexp(fraction, 53);
    int shift = exponent - 53 + 1074;
    if (shift < 0) {
        mantissa >>= -shift; /* a subnormal: only zeros go */
        shift = 0;
    }
    bool negative = (weight < 0) != (value < 0);
    unsigned __int128 size = weight < 0 ? -(unsigned __int128)weight : (unsigned __int128)weight;
    for (uint32_t bit = 0; bit < 128; bit++) {
        if (size >> bit & 1) {
            model_add_shifted(to, mantissa, (uint32_t)shift + bit, negative);
        }
    }
}

/* The sign of 2 * model - count * (a + b). */
static int model_side(const model *sum, ivm__weight count, double a, double b)
{
    model difference = { { 0 } };
    uint64_t carry = 0, any = 0;
    for (uint32_t i = 0; i < MODEL_LIMBS; i++) {
        difference.limb[i] = sum->limb[i] << 1 | carry;
        carry = sum->limb[i] >> 63;
    }
    model_add(&difference, a, -count);
    model_add(&difference, b, -count);
    for (uint32_t i = 0; i < MODEL_LIMBS; i++) {
        any |= difference.limb[i];
    }
    return difference.limb[MODEL_LIMBS - 1] >> 63 ? -1 : any != 0;
}

/* Whether `value` is the double nearest to model / count, the even one of two. */
static bool model_rounds_to(const model *sum, ivm__weight count, double value)
{
    if (isinf(value)) {
        int side = model_side(sum, count, copysign(DBL_MAX, value), value);
        return value > 0 ? side >= 0 : side <= 0;
    }
    bool even = !(word_of(value) & 1);
    int above = model_side(sum, count, value, nextafter(value, INFINITY));
    int below = model_side(sum, count, value, nextafter(value, -INFINITY));
    return word_of(value) != 1ull << 63 && (above < 0 || (even && above == 0)) && (below > 0 || (even && below == 0));
}

/* ---- Tests -------------------------------------------------------------------------------------------------------------------------- */

static ivm__weight weight_parse(const char *text, char **end)
{
    ivm__weight weight = 0;
    bool negative = *text == '-';
    for (text += negative; (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'); text++) {
        weight = weight * 16 + (*text <= '9' ? *text - '0' : *text - 'a' + 10);
    }
    *end = (char *)(uintptr_t)text;
    return negative ? -weight : weight;
}

Test(engine_exact_sum, cases_from_exact_fractions)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ivm__exact_sum *sum = NULL;
        for (char *at = (char *)(uintptr_t)cases[i].additions; *at;) {
            double value = ivm__word_float(strtoull(at, &at, 16));
            ivm__weight weight = weight_parse(at + 1, &at);
            cr_assert_eq(ivm__exact_sum_add(&memory, &sum, value, weight), IVM_OK);
        }
        char *end;
        uint64_t word = word_of(ivm__exact_sum_value(sum));
        cr_assert_eq(word, cases[i].sum, "sum %zu: %016lx, not %016lx", i, (unsigned long)word, (unsigned long)cases[i].sum);
        word = word_of(ivm__exact_sum_average(sum, weight_parse(cases[i].count, &end)));
        cr_assert_eq(word, cases[i].average, "average %zu: %016lx, not %016lx", i, (unsigned long)word, (unsigned long)cases[i].average);
        ivm__exact_sum_free(&memory, sum);
    }
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_exact_sum, random_streams_equal_the_model)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        test_allocator allocator;
        ivm__memory memory;
        memory_open(&memory, &allocator);
        ivm__exact_sum *sum = NULL;
        model expected = { { 0 } };
        for (uint32_t i = 0; i < 60; i++) {
            double value = random_value(&state, seed);
            ivm__weight weight = random_weight(&state);
            ivm__weight count =
                1 + (ivm__weight)random_next(&state) * (i % 3 == 0) + ((ivm__weight)random_next(&state) << 30) * (i % 6 == 0);
            cr_assert_eq(ivm__exact_sum_add(&memory, &sum, value, weight), IVM_OK);
            model_add(&expected, value, weight);
            cr_assert(model_rounds_to(&expected, 1, ivm__exact_sum_value(sum)), "seed %lu, sum %u", (unsigned long)seed, i);
            cr_assert(model_rounds_to(&expected, count, ivm__exact_sum_average(sum, count)), "seed %lu, average %u", (unsigned long)seed,
                      i);
        }
        ivm__exact_sum_free(&memory, sum);
        cr_assert(test_allocator_is_clean(&allocator), "seed %lu", (unsigned long)seed);
    }
}

/* The carries are moved many times, and the sum outgrows its window at the top. */
Test(engine_exact_sum, long_streams_equal_the_model)
{
    static const struct {
        double value;
        ivm__weight weight;
    } streams[] = { { 0x1.fffffffffffffp17, 1 },
                    { 0x1.fffffffffffffp17, -1 },
                    { 0x1.fffffffffffffp17, 0xffffffff },
                    { -0x1.fffffffffffffp3, ((ivm__weight)1 << 96) - 1 },
                    { DBL_MAX, ((ivm__weight)1 << 100) - 1 },
                    { -5e-324, 1 } };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        test_allocator allocator;
        ivm__memory memory;
        memory_open(&memory, &allocator);
        ivm__exact_sum *sum = NULL;
        uint32_t times = 20000;
        for (uint32_t j = 0; j < times; j++) {
            cr_assert_eq(ivm__exact_sum_add(&memory, &sum, streams[i].value, streams[i].weight), IVM_OK);
        }
        model expected = { { 0 } };
        model_add(&expected, streams[i].value, streams[i].weight * times);
        cr_assert(model_rounds_to(&expected, 1, ivm__exact_sum_value(sum)), "stream %zu", i);
        cr_assert(model_rounds_to(&expected, 77, ivm__exact_sum_average(sum, 77)), "stream %zu", i);
        for (uint32_t j = 0; j < times; j++) {
            cr_assert_eq(ivm__exact_sum_add(&memory, &sum, streams[i].value, -streams[i].weight), IVM_OK);
        }
        cr_assert_eq(word_of(ivm__exact_sum_value(sum)), 0, "stream %zu leaves something", i);
        ivm__exact_sum_free(&memory, sum);
        cr_assert(test_allocator_is_clean(&allocator));
    }
}

Test(engine_exact_sum, order_of_leaving_does_not_matter)
{
    enum { VALUES = 500 };
    uint64_t state = 4711;
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    double values[VALUES];
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 0.1, 1), IVM_OK);
    for (uint32_t i = 0; i < VALUES; i++) {
        values[i] = i % 50 == 0 ? (i % 100 ? INFINITY : NAN) : random_value(&state, 5);
        cr_assert_eq(ivm__exact_sum_add(&memory, &sum, values[i], 1), IVM_OK);
    }
    cr_assert_eq(word_of(ivm__exact_sum_value(sum)), 0x7ff8000000000000ull);
    for (uint32_t i = 0; i < VALUES; i++) {
        cr_assert_eq(ivm__exact_sum_add(&memory, &sum, values[(i * 77 + 13) % VALUES], -1), IVM_OK);
    }
    cr_assert_eq(ivm__exact_sum_value(sum), 0.1);
    ivm__exact_sum_free(&memory, sum);
    cr_assert(test_allocator_is_clean(&allocator));
}

/* One stream that is saved, goes on, and goes back. */
static void images_restore_once(uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull;
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    double value_saved = 0, average_saved = 0;
    size_t size = 0;
    void *image = NULL;
    for (uint32_t i = 0; i < 40; i++) {
        if (i == seed % 20) {
            value_saved = ivm__exact_sum_value(sum);
            average_saved = ivm__exact_sum_average(sum, 3);
            size = ivm__exact_sum_image_size(sum);
            image = malloc(size + 1);
            ivm__exact_sum_save(sum, image);
        }
        double value = random_next(&state) % 16 == 0 ? (i & 1 ? INFINITY : NAN) : random_value(&state, seed);
        cr_assert_eq(ivm__exact_sum_add(&memory, &sum, value, random_weight(&state)), IVM_OK);
    }
    ivm__exact_sum_restore(&memory, &sum, image, size);
    cr_assert_eq(!sum, !size, "seed %lu", (unsigned long)seed);
    cr_assert_eq(word_of(ivm__exact_sum_value(sum)), word_of(value_saved), "seed %lu", (unsigned long)seed);
    cr_assert_eq(word_of(ivm__exact_sum_average(sum, 3)), word_of(average_saved), "seed %lu", (unsigned long)seed);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 0.5, 1), IVM_OK);
    free(image);
    ivm__exact_sum_free(&memory, sum);
    cr_assert(test_allocator_is_clean(&allocator), "seed %lu", (unsigned long)seed);
}

Test(engine_exact_sum, images_restore_what_was)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        images_restore_once(seed);
    }
}

static void add_times(ivm__memory *memory, ivm__exact_sum **sum, double value, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        cr_assert_eq(ivm__exact_sum_add(memory, sum, value, 1), IVM_OK);
    }
}

/* Growing and going back must not forget that carries wait; reading asserts that no digit waits too long. */
Test(engine_exact_sum, carries_are_remembered)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    double value = 0x1.fffffffffffffp17;
    uint8_t image[256];
    add_times(&memory, &sum, value, 4000);
    add_times(&memory, &sum, 0x1p90, 1);
    add_times(&memory, &sum, value, 4000);
    cr_assert_eq(ivm__exact_sum_value(sum), 0x1p90);
    cr_assert_leq(ivm__exact_sum_image_size(sum), sizeof image);
    for (uint32_t waiting = 0; waiting < 4096; waiting += 1000) {
        size_t size = ivm__exact_sum_image_size(sum);
        ivm__exact_sum_save(sum, image);
        add_times(&memory, &sum, value, 4200);
        ivm__exact_sum_restore(&memory, &sum, image, size);
        add_times(&memory, &sum, value, 3800);
        cr_assert_eq(ivm__exact_sum_value(sum), 0x1p90);
        ivm__exact_sum_restore(&memory, &sum, image, size);
        add_times(&memory, &sum, value, 1000);
    }
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 0x1p90, -1), IVM_OK);
    cr_assert_eq(ivm__exact_sum_value(sum), 13000 * value);
    ivm__exact_sum_free(&memory, sum);
    cr_assert(test_allocator_is_clean(&allocator));
}

/* Else it would overflow after enough of them. */
Test(engine_exact_sum, the_top_digit_carries_into_a_new_one)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    for (uint32_t i = 0; i < 20000; i++) {
        cr_assert_eq(ivm__exact_sum_add(&memory, &sum, 0x1.fffffffffffffp19, 0xffffffff), IVM_OK);
        cr_assert_eq(allocator.bytes, 16 + 8 * (i < 4096 ? 4 : 5));
    }
    ivm__exact_sum_free(&memory, sum);
}

Test(engine_exact_sum, nothing_added_makes_nothing)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, -0.0, 1), IVM_OK);
    cr_assert_eq(ivm__exact_sum_add(&memory, &sum, NAN, 0), IVM_OK);
    cr_assert_null(sum);
    cr_assert_eq(word_of(ivm__exact_sum_value(sum)), 0);
    cr_assert_eq(word_of(ivm__exact_sum_average(sum, 1)), 0);
    cr_assert_eq(ivm__exact_sum_image_size(sum), 0);
    cr_assert_eq(allocator.calls, 0);
}

Test(engine_exact_sum, memory_is_a_few_digits_for_one_magnitude)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum = NULL;
    for (uint32_t i = 1; i < 30000; i++) {
        cr_assert_eq(ivm__exact_sum_add(&memory, &sum, i * 0.01, 1), IVM_OK);
    }
    cr_assert_leq(allocator.bytes, 16 + 8 * 5);
    ivm__exact_sum_free(&memory, sum);
}

Test(engine_exact_sum, running_out_of_memory_changes_nothing)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    uint64_t failures = 0;
    for (uint64_t n = 1, done = 0; !done; n++) {
        uint64_t state = 99;
        ivm__exact_sum *sum = NULL;
        test_allocator_arm(&allocator, n);
        for (uint32_t i = 0; i < 30000; i++) {
            double value = i % 3000 == 7 ? random_value(&state, 5) : i == 20000 ? INFINITY : 0x1.fffffffffffffp17;
            uint64_t before = word_of(ivm__exact_sum_value(sum));
            if (ivm__exact_sum_add(&memory, &sum, value, i % 3000 ? 1 : 0xffffffff) != IVM_OK) {
                cr_assert_eq(word_of(ivm__exact_sum_value(sum)), before, "n %lu", (unsigned long)n);
                failures++;
                break;
            }
        }
        ivm__exact_sum_free(&memory, sum);
        done = !test_allocator_disarm(&allocator);
        cr_assert(test_allocator_is_clean(&allocator), "n %lu", (unsigned long)n);
    }
    cr_assert_gt(failures, 4);
}

/* ---- Squares ------------------------------------------------------------------------------------------------------------------------- */

/* The sum of squares of integers, which fits 128 bits. */
static __int128 squares_of(const ivm__exact_sum *squares)
{
    ivm__big number;
    ivm__exact_sum_number(squares, true, &number);
    unsigned __int128 size = 0;
    for (uint32_t i = 0; i < number.count; i++) {
        int32_t shift = number.exponent + 64 * (int32_t)i;
        cr_assert(shift % 64 == 0 && (number.limb[i] == 0 || (shift >= 0 && shift < 128)), "a part of an integer sum is no integer");
        size += shift >= 0 && shift < 128 ? (unsigned __int128)number.limb[i] << shift : 0;
    }
    return number.negative ? -(__int128)size : (__int128)size;
}

Test(engine_exact_sum, squares_equal_plain_products)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        test_allocator allocator;
        ivm__memory memory;
        memory_open(&memory, &allocator);
        ivm__exact_sum *squares = NULL;
        __int128 expected = 0;
        for (uint32_t i = 0; i < (seed == 1 ? 30000 : 100); i++) {
            int64_t value = (int64_t)random_next(&state) >> (20 + random_next(&state) % 40);
            int64_t weight = random_next(&state) % 3 ? 1 - 2 * (int64_t)(i % 2) : (int64_t)(random_next(&state) % (1 << 20)) - (1 << 19);
            cr_assert_eq(ivm__exact_sum_add_square(&memory, &squares, (double)value, weight), IVM_OK);
            expected += (__int128)value * value * weight;
            cr_assert(i % 100 != 99 || squares_of(squares) == expected, "seed %lu, after %u", (unsigned long)seed, i);
        }
        ivm__exact_sum_free(&memory, squares);
        cr_assert(test_allocator_is_clean(&allocator));
    }
}

/* Reading asserts that no digit waits too long. */
Test(engine_exact_sum, carries_of_squares_are_moved)
{
    const int64_t value = (1ll << 53) - 1;
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *squares = NULL;
    for (uint32_t i = 1; i <= 20000; i++) {
        cr_assert_eq(ivm__exact_sum_add_square(&memory, &squares, (double)value, 1), IVM_OK);
        cr_assert(i % 1000 || squares_of(squares) == (__int128)value * value * i);
    }
    ivm__exact_sum_free(&memory, squares);
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_exact_sum, squares_of_the_ends_of_the_range_leave_as_they_came)
{
    static const double values[] = { DBL_MAX, -DBL_MAX, DBL_TRUE_MIN, DBL_MIN, 1.5, -0x1.fffffffffffffp700, NAN, INFINITY, 0 };
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *squares = NULL;
    for (uint32_t i = 0; i < 30000; i++) {
        ivm__weight weight = i % 4 ? 1 : ((ivm__weight)1 << 120) + i;
        cr_assert_eq(ivm__exact_sum_add_square(&memory, &squares, values[i % 9], weight), IVM_OK);
    }
    cr_assert_eq(ivm__exact_sum_add_square(&memory, &squares, 3, 2), IVM_OK);
    for (uint32_t i = 30000; i-- > 0;) {
        ivm__weight weight = i % 4 ? 1 : ((ivm__weight)1 << 120) + i;
        cr_assert_eq(ivm__exact_sum_add_square(&memory, &squares, values[i % 9], -weight), IVM_OK);
    }
    cr_assert(squares_of(squares) == 18);
    ivm__exact_sum_free(&memory, squares);
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_exact_sum, squares_that_run_out_of_memory_change_nothing)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    uint64_t failures = 0;
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm__exact_sum *squares = NULL;
        __int128 expected = 0;
        test_allocator_arm(&allocator, n);
        for (uint32_t i = 0; i < 9000; i++) {
            int64_t value = i % 3000 ? 0x1fffff : 1ll << (10 + i / 300);
            if (ivm__exact_sum_add_square(&memory, &squares, (double)value, i % 1000 ? 1 : 0xffffffff) != IVM_OK) {
                cr_assert(squares_of(squares) == expected, "n %lu", (unsigned long)n);
                failures++;
                break;
            }
            expected += (__int128)value * value * (i % 1000 ? 1 : 0xffffffff);
        }
        ivm__exact_sum_free(&memory, squares);
        done = !test_allocator_disarm(&allocator);
        cr_assert(test_allocator_is_clean(&allocator), "n %lu", (unsigned long)n);
    }
    cr_assert_gt(failures, 1);
}
