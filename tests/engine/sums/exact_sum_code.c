/* Tests of exact sums as bytes (engine/sums/exact_sum.c): equal sums write equal bytes, however they came to be, and what is read goes on as what was
 * written would; numbers that no sum can be are refused. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "bytes.h"
#include "exact_sum.h"
#include "numbers.h"

typedef ivm_status sum_add(ivm__memory *memory, ivm__exact_sum **sum, double value, ivm__weight weight);
typedef ivm_status sum_read(ivm__memory *memory, ivm__exact_sum **sum, ivm__feed *feed);

static const struct {
    sum_add *add;
    sum_read *read;
} sums[] = { { ivm__exact_sum_add, ivm__exact_sum_read }, { ivm__exact_sum_add_square, ivm__exact_sum_read_squares } };

static bool numbers_are_equal(const ivm__exact_sum *a, const ivm__exact_sum *b, bool squares)
{
    ivm__big left, right;
    double special[2] = { 0 };
    ivm__exact_sum_number(a, squares, &left);
    ivm__exact_sum_number(b, squares, &right);
    bool equal = ivm__exact_sum_special(a, &special[0]) == ivm__exact_sum_special(b, &special[1]);
    equal &= word_of(special[0]) == word_of(special[1]) && left.negative == right.negative && !left.count == !right.count;
    uint32_t zeros = 0; /* a window that is wider at the bottom */
    while (left.count && zeros < left.count && !left.limb[zeros]) {
        zeros++;
    }
    uint32_t trimmed = left.count - zeros;
    uint32_t right_zeros = right.count - (trimmed < right.count ? trimmed : right.count);
    for (uint32_t i = 0; equal && i < right_zeros; i++) {
        equal = !right.limb[i];
    }
    equal &= right.count - right_zeros == trimmed;
    equal &= !trimmed || left.exponent + 64 * (int32_t)zeros == right.exponent + 64 * (int32_t)right_zeros;
    return equal && !memcmp(left.limb + zeros, right.limb + right_zeros, trimmed * sizeof *left.limb);
}

/* Two sums of the same values that came and went in other ways; a third is read from what the first wrote. */
static void codes_agree_once(uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull;
    uint32_t kind = seed & 1, count = seed % 7 == 0 ? 0 : 30;
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__exact_sum *sum[3] = { NULL };
    ivm__memory_sink sink[3];
    double values[30], noise[30];
    ivm__weight weights[30];
    for (uint32_t i = 0; i < 30; i++) {
        values[i] = seed % 3 == 0 && i % 9 == 4 ? (i & 1 ? INFINITY : NAN) : random_value(&state, seed / 2);
        noise[i] = random_value(&state, 5);
        weights[i] = random_weight(&state) % ((ivm__weight)1 << 63);
    }
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(sums[kind].add(&memory, &sum[0], values[i], weights[i]), IVM_OK);
        cr_assert_eq(sums[kind].add(&memory, &sum[1], noise[i], 3), IVM_OK);
        cr_assert_eq(sums[kind].add(&memory, &sum[1], values[count - 1 - i], weights[count - 1 - i]), IVM_OK);
    }
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(sums[kind].add(&memory, &sum[1], noise[i], -3), IVM_OK);
    }
    for (uint32_t i = 0; i < 3; i++) {
        ivm__memory_sink_init(&sink[i], &memory);
        if (i == 2) {
            ivm__memory_feed feed;
            ivm__memory_feed_init(&feed, sink[0].bytes.at, sink[0].bytes.size, NULL);
            cr_assert_eq(sums[kind].read(&memory, &sum[2], &feed.feed), IVM_OK, "seed %lu", (unsigned long)seed);
            cr_assert_eq(feed.at, feed.end);
        }
        cr_assert_eq(ivm__exact_sum_write(sum[i], &sink[i].sink), IVM_OK);
        cr_assert_eq(sink[i].bytes.size, sink[0].bytes.size, "seed %lu, %u", (unsigned long)seed, i);
        cr_assert_arr_eq(sink[i].bytes.at, sink[0].bytes.at, sink[0].bytes.size, "seed %lu, %u", (unsigned long)seed, i);
    }
    cr_assert(numbers_are_equal(sum[0], sum[2], kind), "seed %lu", (unsigned long)seed);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(sums[kind].add(&memory, &sum[2], values[i], -weights[i]), IVM_OK);
    }
    ivm__big number;
    double special;
    ivm__exact_sum_number(sum[2], kind, &number);
    cr_assert(number.count == 0 && !ivm__exact_sum_special(sum[2], &special), "what went in did not come out, seed %lu",
              (unsigned long)seed);
    for (uint32_t i = 0; i < 3; i++) {
        ivm__exact_sum_free(&memory, sum[i]);
        ivm__memory_sink_deinit(&sink[i]);
    }
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_exact_sum_code, equal_sums_write_equal_bytes_and_are_read_again)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        codes_agree_once(seed);
    }
}

/* 2^64 rows of the greatest weight and value are less than what may be read. */
Test(engine_exact_sum_code, the_greatest_sums_are_read_again)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            test_allocator allocator;
            ivm__memory memory;
            memory_open(&memory, &allocator);
            ivm__exact_sum *sum = NULL, *read = NULL;
            ivm__memory_sink sink;
            ivm__memory_feed feed;
            ivm__memory_sink_init(&sink, &memory);
            for (uint32_t i = 0; i < 4; i++) {
                cr_assert_eq(sums[kind].add(&memory, &sum, DBL_MAX, sign * (ivm__weight)(~(unsigned __int128)0 >> 1)), IVM_OK);
            }
            cr_assert_eq(ivm__exact_sum_write(sum, &sink.sink), IVM_OK);
            ivm__memory_feed_init(&feed, sink.bytes.at, sink.bytes.size, NULL);
            cr_assert_eq(sums[kind].read(&memory, &read, &feed.feed), IVM_OK);
            cr_assert(numbers_are_equal(sum, read, kind));
            ivm__exact_sum_free(&memory, sum);
            ivm__exact_sum_free(&memory, read);
            ivm__memory_sink_deinit(&sink);
            cr_assert(test_allocator_is_clean(&allocator));
        }
    }
}

static ivm_status bytes_read(sum_read *read, const char *bytes, size_t size)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm_error error = IVM_ERROR_INIT;
    ivm__memory_feed feed;
    ivm__exact_sum *sum = NULL;
    ivm__memory_feed_init(&feed, bytes, size, &error);
    ivm_status status = read(&memory, &sum, &feed.feed);
    cr_assert_eq(status, error.status);
    cr_assert(status == IVM_OK || !sum);
    ivm__exact_sum_free(&memory, sum);
    cr_assert(test_allocator_is_clean(&allocator));
    return status;
}

#define READ(kind, bytes) bytes_read(sums[kind].read, bytes, sizeof bytes - 1)
#define NONE_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

Test(engine_exact_sum_code, numbers_that_cannot_be_are_refused)
{
    cr_assert_eq(READ(0, "\0\0\0\0\0"), IVM_OK);
    cr_assert_eq(READ(0, "\0\42\0\1\0\1\0\0\0"), IVM_OK);
    cr_assert_eq(READ(0, "\1\107\0\1\0\1\0\0\0"), IVM_OK);
    cr_assert_eq(READ(0, "\1\110\0\1\0\1\0\0\0"), IVM_CORRUPT, "past the range");
    cr_assert_eq(READ(1, "\1\211\0\1\0\1\0\0\0"), IVM_OK);
    cr_assert_eq(READ(1, "\1\212\0\1\0\1\0\0\0"), IVM_CORRUPT, "past the range of squares");
    cr_assert_eq(READ(0, "\1\0\0\0\0"), IVM_CORRUPT, "0 below 0");
    cr_assert_eq(READ(0, "\0\1\0\0\0"), IVM_CORRUPT, "0 somewhere");
    cr_assert_eq(READ(0, "\4\0\0\0\0"), IVM_CORRUPT, "an unknown flag");
    cr_assert_eq(READ(0, "\0\42\0\2\0\0\0\0\0\1\0\0\0"), IVM_CORRUPT, "0 at the bottom");
    cr_assert_eq(READ(0, "\0\42\0\2\0\1\0\0\0\0\0\0\0"), IVM_CORRUPT, "0 at the top");
    cr_assert_eq(READ(0, "\0\0\0\377\377"), IVM_CORRUPT, "more digits than there are");
    cr_assert_eq(READ(0, "\2\0\0\0\0" NONE_16 NONE_16 "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), IVM_OK);
    cr_assert_eq(READ(0, "\2\0\0\0\0" NONE_16 NONE_16 NONE_16), IVM_CORRUPT, "special by nothing");
    cr_assert_eq(READ(1, "\2\0\0\0\0" NONE_16 NONE_16 "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), IVM_CORRUPT, "a special square");
    for (size_t size = 0; size < 9; size++) {
        cr_assert_eq(bytes_read(ivm__exact_sum_read, "\0\42\0\1\0\1\0\0\0", size), IVM_CORRUPT, "cut at %zu", size);
    }
}

Test(engine_exact_sum_code, memory_failing_reads_nothing)
{
    static const char bytes[] = "\2\42\0\1\0\1\0\0\0" NONE_16 NONE_16 "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm_error error = IVM_ERROR_INIT;
        ivm__memory_feed feed;
        ivm__exact_sum *sum = NULL;
        ivm__memory_feed_init(&feed, bytes, sizeof bytes - 1, &error);
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm__exact_sum_read(&memory, &sum, &feed.feed);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(!sum, !done);
        ivm__exact_sum_free(&memory, sum);
        cr_assert(test_allocator_is_clean(&allocator));
    }
}
