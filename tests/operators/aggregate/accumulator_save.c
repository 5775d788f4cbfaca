/* States of groups as bytes: whatever they went through, equal content gives equal bytes, and what is read is what was written. Cells and weights
 * are those at the ends of their ranges. */
#include <criterion/criterion.h>
#include <math.h>

#include "accumulator.h"
#include "holdings.h"
#include "join_case.h"

#define GROUPS 3u
#define FUNCTIONS 16u
#define CELLS_MAX 12u
#define TWO_TO(n) ((ivm__wide)1 << (n))

enum { FIRST, READ, OTHER };

static hand it;
static ivm__accumulators accumulators;
static ivm_type type;

static bool sums(ivm_type of)
{
    return of == IVM_INT64 || of == IVM_FLOAT64 || ivm__type_is_wide(of);
}

/* Every function that the type has. */
static void open_over(ivm_type of, bool negative)
{
    static const ivm__aggregate_function functions[] = { IVM__COUNT, IVM__MIN,     IVM__MAX,      IVM__COUNT_DISTINCT, IVM__SUM,
                                                         IVM__AVG,   IVM__VAR_POP, IVM__VAR_SAMP, IVM__STDDEV_POP,     IVM__SUM_DISTINCT };
    ivm__aggregate_spec specs[FUNCTIONS];
    uint32_t count = sums(of) ? 10 : 4;
    type = of;
    hand_open(&it, NULL);
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = (ivm__aggregate_spec){ functions[i], case_column(&it, 0, of), NULL, of, "a" };
    }
    if (of == IVM_BOOL) {
        specs[count++] = (ivm__aggregate_spec){ IVM__BOOL_AND, case_column(&it, 0, of), NULL, of, "a" };
        specs[count++] = (ivm__aggregate_spec){ IVM__BOOL_OR, case_column(&it, 0, of), NULL, of, "a" };
    }
    specs[count++] = (ivm__aggregate_spec){ IVM__COUNT, NULL, NULL, IVM_INT64, "a" };
    cr_assert_eq(ivm__accumulators_init(&accumulators, &it.engine->memory, &it.engine->texts, specs, count), IVM_OK);
    if (negative) {
        ivm__accumulators_negative(&accumulators);
    }
    cr_assert_eq(ivm__accumulators_reserve(&accumulators, GROUPS), IVM_OK);
    for (uint32_t group = 0; group < GROUPS; group++) {
        ivm__group_clear(&accumulators, group);
    }
}

static void close_all(void)
{
    ivm__accumulators_deinit(&accumulators, GROUPS, &it.engine->texts);
    hand_close(&it);
}

static void commit(void)
{
    for (uint32_t i = 0; i < accumulators.count; i++) {
        if (accumulators.list[i].ordered.memory) {
            ivm__ordered_commit(&accumulators.list[i].ordered);
        }
    }
    ivm__engine_settle(it.engine);
}

static void add(uint32_t group, ivm__wide cell, ivm__weight weight)
{
    uint64_t word = (uint64_t)cell;
    uint8_t failed = 0;
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    if (type == IVM_STRING) {
        const ivm__text *text;
        char bytes[2] = { (char)('a' + cell % 3), 0 };
        cr_assert_eq(ivm__texts_intern(&it.engine->texts, bytes, (size_t)(cell % 2), &text), IVM_OK);
        word = (uint64_t)(uintptr_t)text;
    }
    ivm__vector column = { .type = type, .cells = ivm__type_is_wide(type) ? (void *)&cell : (void *)&word };
    ivm__chunk chunk = { 1, 1, &column, &weight };
    for (uint32_t port = 0; port < (accumulators.negative ? 3u : 1u); port++) {
        cr_assert_eq(ivm__accumulate(&accumulators, &step, port, &chunk, &group, &failed), IVM_OK);
    }
    ivm__arena_reset(&it.engine->scratch);
}

static void state_write(uint32_t group, holdings *to)
{
    ivm__memory_sink sink;
    commit();
    ivm__memory_sink_init(&sink, &it.engine->memory);
    cr_assert_eq(ivm__group_write(&accumulators, group, &sink.sink), IVM_OK);
    holdings_copy(to, &(holdings){ .bytes = sink.bytes.at, .size = sink.bytes.size });
    ivm__memory_sink_deinit(&sink);
}

static ivm_status state_read(uint32_t group, const holdings *from)
{
    static const ivm__operator_class class = { .name = "aggregate" };
    ivm__operator self = { .class = &class, .view = "v" };
    ivm__memory_feed feed;
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    ivm__memory_feed_init(&feed, from->bytes, from->size, &it.error);
    ivm__group_reading reading = { &self, &step, &feed.feed, { .memory = &it.engine->memory } };
    ivm_status status = ivm__group_read(&accumulators, group, &reading);
    ivm__bytes_deinit(&reading.text);
    commit();
    return status;
}

static void assert_equal(uint32_t one, uint32_t other, const char *what, uint64_t seed)
{
    holdings a, b;
    state_write(one, &a);
    state_write(other, &b);
    cr_assert(holdings_equal(&b, &a), "%s, seed %llu", what, (unsigned long long)seed);
    holdings_free(&a);
    holdings_free(&b);
}

static uint32_t cells_of(ivm_type of, ivm__wide cells[CELLS_MAX])
{
    static const double reals[] = {
        0.1, -0x1p1023 * 1.5, 0x1.fffffffffffffp1023, 0x1p-1074, -0x1p-1022, 0, NAN, INFINITY, -INFINITY, 3, -3
    };
    static const ivm__wide words[] = { 0, 1, 7, -7, INT64_MAX, INT64_MIN };
    ivm__wide most = ivm__type_is_wide(of) ? ivm__power_of_ten(IVM_TYPE_PRECISION(of)) - 1 : 0;
    const ivm__wide wides[] = { 0, 1, -1, most, -most, most / 3, -most / 7 };
    uint32_t count = of == IVM_FLOAT64 ? 11 : ivm__type_is_wide(of) ? 7 : of == IVM_BOOL ? 2 : of == IVM_STRING || of == IVM_DATE ? 3 : 6;
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = of == IVM_FLOAT64       ? (ivm__wide)ivm__float_word(reals[i])
                   : ivm__type_is_wide(of) ? wides[i]
                                           : (ivm__wide)(uint64_t)words[i];
    }
    return count;
}

/* What is added to one state in any order, and to the other with much that comes and goes in between, in another. */
static void run(ivm_type of, bool negative, uint64_t seed)
{
    static const ivm__weight weights[] = { 1, 1, 2, INT64_MAX, (ivm__weight)INT64_MAX + 1, 3 };
    ivm__wide cells[CELLS_MAX];
    uint32_t count = cells_of(of, cells), added[8];
    ivm__weight weighs[8];
    uint64_t random = seed * 77 + 1;
    open_over(of, negative);
    uint32_t rows = hand_below(&random, 9);
    for (uint32_t i = 0; i < rows; i++) {
        added[i] = hand_below(&random, count);
        weighs[i] = weights[hand_below(&random, 6)] * (negative && hand_below(&random, 2) ? -1 : 1);
        add(FIRST, cells[added[i]], weighs[i]);
    }
    for (uint32_t i = rows; i-- > 0;) {
        ivm__wide noise = cells[hand_below(&random, count)];
        ivm__weight weight = TWO_TO(hand_below(&random, 126));
        add(OTHER, noise, weight);
        add(OTHER, cells[added[i]], weighs[i]);
        if (hand_below(&random, 2)) {
            commit();
        }
        add(OTHER, noise, -weight);
    }
    assert_equal(FIRST, OTHER, "in another order", seed);
    holdings held;
    state_write(FIRST, &held);
    cr_assert_eq(state_read(READ, &held), IVM_OK, "%s", it.error.message);
    holdings_free(&held);
    assert_equal(FIRST, READ, "read", seed);
    for (uint32_t i = 0; i < 3; i++) {
        ivm__wide cell = cells[hand_below(&random, count)];
        ivm__weight weight = rows && hand_below(&random, 2) ? -weighs[i % rows] : 5;
        add(FIRST, cell, weight);
        add(READ, cell, weight);
    }
    assert_equal(FIRST, READ, "taken on", seed);
    close_all();
}

static const ivm_type all_types[] = { IVM_INT64, IVM_FLOAT64, IVM_DECIMAL(12, 2), IVM_DECIMAL(38, 3), IVM_STRING,
                                      IVM_BOOL,  IVM_DATE,    IVM_TIMESTAMP,      IVM_DECIMAL(24, 0) };
#define TYPES (sizeof all_types / sizeof *all_types)

Test(operators_accumulator_save, equal_content_is_equal_bytes)
{
    for (uint64_t seed = 1; seed <= 60 * TYPES; seed++) {
        run(all_types[seed % TYPES], seed / TYPES % 2, seed);
    }
}

/* All that came is gone: the bytes of nothing. */
Test(operators_accumulator_save, what_comes_and_goes_leaves_the_bytes_of_nothing)
{
    for (size_t t = 0; t < TYPES; t++) {
        ivm__wide cells[CELLS_MAX];
        uint32_t count = cells_of(all_types[t], cells);
        open_over(all_types[t], false);
        for (int sign = 1; sign >= -1; sign -= 2) {
            for (uint32_t i = 0; i < count; i++) {
                add(FIRST, cells[i], sign * TWO_TO(10 * i));
                add(FIRST, cells[i], sign * ((ivm__weight)INT64_MAX + 1));
            }
            commit();
        }
        assert_equal(FIRST, OTHER, "nothing", t);
        close_all();
    }
}

/* sum + carry * 2^128 at the border of either sign. */
Test(operators_accumulator_save, sums_about_powers_of_two)
{
    open_over(IVM_DECIMAL(38, 3), false);
    for (uint32_t power = 60; power < 126; power++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            holdings held;
            ivm__group_free(&accumulators, FIRST);
            ivm__group_free(&accumulators, READ);
            add(FIRST, sign * TWO_TO(power), TWO_TO(126));
            add(FIRST, -sign, 1);
            state_write(FIRST, &held);
            add(FIRST, sign * TWO_TO(power), -TWO_TO(126)); /* values in order are no part of what is cleared */
            add(FIRST, -sign, -1);
            cr_assert_eq(state_read(READ, &held), IVM_OK);
            add(READ, sign * TWO_TO(power), -TWO_TO(126));
            add(READ, -sign, -1);
            holdings_free(&held);
            assert_equal(FIRST, READ, "after a carry", power);
            assert_equal(READ, OTHER, "nothing", power);
        }
    }
    close_all();
}

/* ---- Bytes that no state is written as ----------------------------------------------------------------------------------------------------- */

typedef struct bytes_of {
    uint8_t bytes[128];
    size_t size;
} bytes_of;

static void put(bytes_of *to, const void *bytes, size_t size)
{
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_wide(bytes_of *to, ivm__wide wide)
{
    put(to, &wide, sizeof wide);
}

static void put_entry(bytes_of *to, uint8_t tag, ivm__wide cell, size_t size, ivm__weight weight)
{
    put(to, &tag, 1);
    put(to, &cell, size);
    if (tag != 1) {
        put_wide(to, weight);
    }
}

/* A state of min alone. */
static ivm_status min_read(ivm_type of, const bytes_of *from)
{
    hand_open(&it, NULL);
    ivm__aggregate_spec spec = { IVM__MIN, case_column(&it, 0, of), NULL, of, "a" };
    cr_assert_eq(ivm__accumulators_init(&accumulators, &it.engine->memory, &it.engine->texts, &spec, 1), IVM_OK);
    cr_assert_eq(ivm__accumulators_reserve(&accumulators, GROUPS), IVM_OK);
    for (uint32_t group = 0; group < GROUPS; group++) {
        ivm__group_clear(&accumulators, group);
    }
    ivm_status status = state_read(FIRST, &(holdings){ .bytes = (uint8_t *)from->bytes, .size = from->size });
    close_all();
    return status;
}

Test(operators_accumulator_save, entries_that_cannot_be_are_corrupt)
{
    const ivm__wide nan = (ivm__wide)0x7ff8000000000000ull, other_nan = nan + 1, minus_zero = (ivm__wide)0x8000000000000000ull;
    const struct {
        ivm_type type;
        size_t size;
        uint8_t tags[2];
        ivm__wide cells[2];
        ivm__weight weight;
        ivm_status status;
    } cases[] = {
        { IVM_INT64, 8, { 1, 1 }, { 1, 2 }, 0, IVM_OK },
        { IVM_INT64, 8, { 1, 2 }, { (uint64_t)-1, 2 }, TWO_TO(100), IVM_OK },
        { IVM_INT64, 8, { 1, 1 }, { 2, 1 }, 0, IVM_CORRUPT },
        { IVM_INT64, 8, { 1, 1 }, { 1, 1 }, 0, IVM_CORRUPT },
        { IVM_INT64, 8, { 1, 1 }, { 1, (uint64_t)-1 }, 0, IVM_CORRUPT },
        { IVM_INT64, 8, { 1, 2 }, { 1, 2 }, 0, IVM_CORRUPT },
        { IVM_INT64, 8, { 1, 2 }, { 1, 2 }, 1, IVM_CORRUPT },
        { IVM_INT64, 8, { 1, 3 }, { 1, 2 }, 5, IVM_CORRUPT },
        { IVM_BOOL, 8, { 1, 1 }, { 0, 1 }, 0, IVM_OK },
        { IVM_BOOL, 8, { 1, 1 }, { 0, 2 }, 0, IVM_CORRUPT },
        { IVM_DATE, 8, { 1, 1 }, { 0, INT32_MAX }, 0, IVM_OK },
        { IVM_DATE, 8, { 1, 1 }, { 0, (ivm__wide)INT32_MAX + 1 }, 0, IVM_CORRUPT },
        { IVM_FLOAT64, 8, { 1, 1 }, { 0, nan }, 0, IVM_OK },
        { IVM_FLOAT64, 8, { 1, 1 }, { 0, other_nan }, 0, IVM_CORRUPT },
        { IVM_FLOAT64, 8, { 1, 1 }, { minus_zero, nan }, 0, IVM_CORRUPT },
        { IVM_DECIMAL(3, 1), 16, { 1, 1 }, { -999, 999 }, 0, IVM_OK },
        { IVM_DECIMAL(3, 1), 16, { 1, 1 }, { -999, 1000 }, 0, IVM_CORRUPT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes_of bytes = { .size = 0 };
        put_wide(&bytes, 1);
        for (uint32_t e = 0; e < 2; e++) {
            put_entry(&bytes, cases[i].tags[e], cases[i].cells[e], cases[i].size, cases[i].weight);
        }
        put(&bytes, &(uint8_t){ 0 }, 1);
        cr_assert_eq(min_read(cases[i].type, &bytes), cases[i].status, "case %zu", i);
    }
}

Test(operators_accumulator_save, strings_that_cannot_be_are_corrupt)
{
    static const uint32_t sizes[] = { 1, 2, 1000, INT32_MAX, UINT32_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bytes_of bytes = { .size = 0 };
        put_wide(&bytes, 1);
        put(&bytes, &(uint8_t){ 1 }, 1);
        put(&bytes, &sizes[i], sizeof sizes[i]);
        put(&bytes, "a", 1);
        put(&bytes, &(uint8_t){ 0 }, 1);
        cr_assert_eq(min_read(IVM_STRING, &bytes), i ? IVM_CORRUPT : IVM_OK, "%u bytes", sizes[i]);
    }
}
