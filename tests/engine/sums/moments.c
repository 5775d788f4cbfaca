/* Tests of engine/sums/moments.c: hard cases worked out in exact fractions, in any order; moments that come back to nothing. */
#include "moments.h"

#include <criterion/criterion.h>

#include "numbers.h"

static const struct {
    bool floats, below;
    uint32_t scale;
    const char *additions;
    uint64_t variance, sample;
} cases[] = {
#include "moments_cases.inc"
};

enum { ADDITIONS_MAX = 64 };

typedef struct addition {
    ivm__wide value;
    ivm__weight weight;
} addition;

static ivm__wide number_parse(const char *text, char **end)
{
    unsigned __int128 number = 0;
    bool negative = *text == '-';
    for (text += negative; (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'); text++) {
        number = number * 16 + (unsigned)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    }
    *end = (char *)(uintptr_t)text;
    return (ivm__wide)(negative ? -number : number);
}

/* "value*weight value*weight ..." */
static uint32_t additions_parse(const char *text, addition additions[ADDITIONS_MAX])
{
    uint32_t count = 0;
    for (char *at = (char *)(uintptr_t)text; *at; count++) {
        cr_assert_lt(count, (uint32_t)ADDITIONS_MAX);
        additions[count].value = number_parse(at + (*at == ' '), &at);
        additions[count].weight = number_parse(at + 1, &at);
    }
    return count;
}

/* What a case is added to. */
typedef struct moments_state {
    bool floats;
    ivm__memory *memory;
    ivm__moments moments;
    ivm__exact_sum *sum, *squares;
} moments_state;

static ivm_status state_add(moments_state *it, ivm__wide value, ivm__weight weight)
{
    if (!it->floats) {
        ivm__moments_add(&it->moments, value, weight);
        return IVM_OK;
    }
    double number = ivm__word_float((uint64_t)value);
    it->moments.count = (ivm__weight)((unsigned __int128)it->moments.count + (unsigned __int128)weight);
    IVM_TRY(ivm__exact_sum_add(it->memory, &it->sum, number, weight));
    return ivm__exact_sum_add_square(it->memory, &it->squares, number, weight);
}

static double state_variance(const moments_state *it, uint32_t scale, bool sample, bool *below)
{
    ivm__moments_read read;
    if (it->floats) {
        ivm__moments_read_floats(it->sum, it->squares, it->moments.count, &read);
    } else {
        ivm__moments_read_whole(&it->moments, scale, &read);
    }
    return ivm__moments_variance(&read, sample, below);
}

static void assert_case(const moments_state *it, size_t i, uint32_t turn)
{
    bool below = !cases[i].below;
    uint64_t word = word_of(state_variance(it, cases[i].scale, false, &below));
    cr_assert_eq(word, cases[i].variance, "case %zu, turn %u: %016lx, not %016lx", i, turn, (unsigned long)word,
                 (unsigned long)cases[i].variance);
    cr_assert_eq(below, cases[i].below, "case %zu", i);
    if (it->moments.count > 1) {
        word = word_of(state_variance(it, cases[i].scale, true, &below));
        cr_assert_eq(word, cases[i].sample, "case %zu of a sample, turn %u: %016lx, not %016lx", i, turn, (unsigned long)word,
                     (unsigned long)cases[i].sample);
        cr_assert_eq(below, cases[i].below, "case %zu", i);
    }
}

/* Forwards, backwards, and from the middle on; then all leave in yet another order. */
Test(engine_moments, cases_from_exact_fractions)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        addition additions[ADDITIONS_MAX];
        uint32_t count = additions_parse(cases[i].additions, additions);
        for (uint32_t turn = 0; turn < 3; turn++) {
            moments_state it = { .floats = cases[i].floats, .memory = &memory };
            for (uint32_t j = 0; j < count; j++) {
                uint32_t at = turn == 0 ? j : turn == 1 ? count - 1 - j : (j + count / 2) % count;
                cr_assert_eq(state_add(&it, additions[at].value, additions[at].weight), IVM_OK);
            }
            assert_case(&it, i, turn);
            for (uint32_t j = 0; j < count; j++) {
                uint32_t at = turn == 0 ? (j + 1) % count : j;
                cr_assert_eq(state_add(&it, additions[at].value, -additions[at].weight), IVM_OK);
            }
            static const ivm__moments nothing;
            ivm__big number;
            cr_assert_eq(memcmp(&it.moments, &nothing, sizeof nothing), 0, "case %zu leaves something", i);
            ivm__exact_sum_number(it.sum, false, &number);
            cr_assert_eq(number.count, 0u, "case %zu leaves something", i);
            ivm__exact_sum_number(it.squares, true, &number);
            cr_assert_eq(number.count, 0u, "case %zu leaves something", i);
            ivm__exact_sum_free(&memory, it.sum);
            ivm__exact_sum_free(&memory, it.squares);
        }
    }
    cr_assert(test_allocator_is_clean(&allocator));
}

/* Small numbers against arithmetic of 128 bits, through either road of addition. */
Test(engine_moments, small_numbers_equal_plain_arithmetic)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t random = seed * 0x9e3779b97f4a7c15ull;
        ivm__moments moments = { 0 }, wide = { 0 };
        __int128 count = 0, sum = 0, squares = 0;
        for (uint32_t i = 0; i < 30; i++) {
            int64_t value = (int64_t)(random_next(&random) % 2000001) - 1000000, weight = (int64_t)(random_next(&random) % 9) - 3;
            ivm__moments_add(&moments, value, weight);
            wide.count += weight;
            ivm__moments_add_wide(&wide, value, weight);
            count += weight;
            sum += (__int128)value * weight;
            squares += (__int128)value * value * weight;
            cr_assert_eq(memcmp(&moments, &wide, sizeof wide), 0, "seed %lu, after %u", (unsigned long)seed, i);
        }
        cr_assert(moments.count == count && (__int128)moments.sum[0] == sum && (__int128)moments.squares[0] == squares, "seed %lu",
                  (unsigned long)seed);
        if (count > 1) {
            ivm__moments_read read;
            bool below;
            ivm__moments_read_whole(&moments, 0, &read);
            __int128 numerator = count * squares - sum * sum;
            double got = ivm__moments_variance(&read, true, &below);
            /* A quotient of 113 bits, rounded again: right but for one in 2^60. */
            cr_assert_eq(got, (double)((__float128)numerator / (__float128)(count * (count - 1))), "seed %lu", (unsigned long)seed);
            cr_assert_eq(below, numerator < 0);
        }
    }
}

/* Both ends of carries through all parts of a sum. */
Test(engine_moments, carries_go_all_the_way)
{
    ivm__moments moments = { 0 };
    ivm__moments_add(&moments, -1, 1);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(moments.sum[i] == ~(unsigned __int128)0);
    }
    ivm__moments_add(&moments, 1, 1);
    cr_assert(moments.sum[0] == 0 && moments.sum[1] == 0 && moments.squares[0] == 2);
    ivm__moments_add(&moments, 3, -1);
    cr_assert((__int128)moments.squares[0] == -7 && moments.squares[1] == ~(unsigned __int128)0 &&
              moments.squares[2] == ~(unsigned __int128)0);
    ivm__moments_add(&moments, 3, 1);
    cr_assert(moments.squares[0] == 2 && moments.squares[1] == 0 && moments.squares[2] == 0);
}
