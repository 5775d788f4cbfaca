/* Accumulators: states of one line, sums and counts past 128 bits, averages and variances rounded once, distinct values, saving and going
 * back. */
#include "accumulator.h"

#include <criterion/criterion.h>
#include <math.h>

#include "allocator.h"
#include "join_case.h"

#define TWO_TO(n) ((ivm__wide)1 << (n))

static hand it;
static test_allocator allocator;
static ivm__accumulators accumulators;

enum { COUNT, SUM, AVG, MIN, MAX, COUNT_DISTINCT, SUM_DISTINCT, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, NUMERIC_FUNCTIONS };
enum { STATE_MAX = 1024 };

static ivm_type result_of(ivm__aggregate_function function, ivm_type type)
{
    switch (function) {
    case IVM__COUNT:
    case IVM__COUNT_DISTINCT:
        return IVM_INT64;
    case IVM__MIN:
    case IVM__MAX:
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        return type;
    case IVM__SUM:
    case IVM__SUM_DISTINCT:
        return ivm__type_is_wide(type) ? IVM_DECIMAL(38, IVM_TYPE_SCALE(type)) : type;
    default:
        return IVM_FLOAT64;
    }
}

static void open_functions(const ivm__aggregate_function *functions, uint32_t count, ivm_type type)
{
    ivm__aggregate_spec specs[NUMERIC_FUNCTIONS];
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = (ivm__aggregate_spec){ functions[i], case_column(&it, 0, type), NULL, result_of(functions[i], type), "a" };
    }
    cr_assert_eq(ivm__accumulators_init(&accumulators, &it.engine->memory, &it.engine->texts, specs, count), IVM_OK);
    cr_assert_eq(ivm__accumulators_reserve(&accumulators, 4), IVM_OK);
    for (uint32_t group = 0; group < 4; group++) {
        ivm__group_clear(&accumulators, group);
    }
}

/* Every aggregate over column 0 of this type: those of numbers by their names above. */
static void open_over(ivm_type type)
{
    static const ivm__aggregate_function numeric[NUMERIC_FUNCTIONS] = { IVM__COUNT,        IVM__SUM,        IVM__AVG,
                                                                        IVM__MIN,          IVM__MAX,        IVM__COUNT_DISTINCT,
                                                                        IVM__SUM_DISTINCT, IVM__VAR_POP,    IVM__VAR_SAMP,
                                                                        IVM__STDDEV_POP,   IVM__STDDEV_SAMP };
    static const ivm__aggregate_function others[] = { IVM__COUNT, IVM__MIN, IVM__MAX, IVM__COUNT_DISTINCT };
    bool sums = type == IVM_INT64 || type == IVM_FLOAT64 || ivm__type_is_wide(type);
    open_functions(sums ? numeric : others, sums ? NUMERIC_FUNCTIONS : 4, type);
}

static void open_engine(void)
{
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    hand_open(&it, &functions);
}

static void close_engine(void)
{
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
    hand_close(&it);
    cr_assert(test_allocator_is_clean(&allocator));
}

TestSuite(operators_accumulator, .init = open_engine, .fini = close_engine);

/* Adds one row to a group. */
static ivm_status add_cell(ivm_type type, uint32_t group, ivm__wide cell, ivm__weight weight)
{
    uint64_t word = (uint64_t)cell;
    uint8_t failed = 0;
    ivm__vector column = { type, ivm__type_is_wide(type) ? (void *)&cell : (void *)&word, NULL };
    ivm__chunk chunk = { 1, 1, &column, &weight };
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    ivm_status status = ivm__accumulate(&accumulators, &step, IVM__AGGREGATE_ROWS, &chunk, &group, &failed);
    cr_assert_eq(failed, 0);
    ivm__arena_reset(&it.engine->scratch);
    return status;
}

static void add(ivm_type type, uint32_t group, ivm__wide cell, ivm__weight weight)
{
    cr_assert_eq(add_cell(type, group, cell, weight), IVM_OK);
}

static void add_float(uint32_t group, double value, ivm__weight weight)
{
    add(IVM_FLOAT64, group, (ivm__wide)ivm__float_word(value), weight);
}

/* One aggregate's value of one group. */
static ivm_status value_of(uint32_t which, uint32_t group, ivm__wide *cell, bool *is_null)
{
    ivm__wide wide = 0;
    uint64_t word = 0;
    uint8_t null = 2;
    ivm_type type = accumulators.list[which].type;
    ivm__vector out = { type, ivm__type_is_wide(type) ? (void *)&wide : (void *)&word, &null };
    ivm_status status = ivm__accumulator_values(&accumulators, which, &group, 1, &out);
    *cell = ivm__type_is_wide(type) ? wide : (ivm__wide)(int64_t)word;
    *is_null = null;
    return status;
}

static ivm__wide number(uint32_t which, uint32_t group)
{
    ivm__wide cell;
    bool is_null;
    cr_assert_eq(value_of(which, group, &cell, &is_null), IVM_OK);
    cr_assert_not(is_null);
    return cell;
}

static double real(uint32_t which, uint32_t group)
{
    return ivm__word_float((uint64_t)number(which, group));
}

static bool overflows(uint32_t which, uint32_t group)
{
    ivm__wide cell;
    bool is_null;
    return value_of(which, group, &cell, &is_null) == IVM_OVERFLOW;
}

/* Whether the state's sums and counts are those of a group that never had a row. */
static bool is_blank(uint32_t group)
{
    uint8_t blank[STATE_MAX];
    cr_assert_lt(accumulators.stride, sizeof blank);
    memset(blank, 0, sizeof blank);
    ivm__group_tail_of(&accumulators, blank)->row = IVM__ROW_NONE;
    return memcmp(ivm__group_state(&accumulators, group), blank, accumulators.stride) == 0;
}

/* ---- States --------------------------------------------------------------------------------------------------------------------------- */

static uint32_t stride_of(const ivm__aggregate_function *functions, const ivm_type *types, uint32_t count)
{
    ivm__aggregate_spec specs[8];
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = (ivm__aggregate_spec){ functions[i], types[i] ? case_column(&it, 0, types[i]) : NULL, NULL,
                                          types[i] ? types[i] : IVM_INT64, "a" };
    }
    ivm__accumulators made;
    cr_assert_eq(ivm__accumulators_init(&made, &it.engine->memory, &it.engine->texts, specs, count), IVM_OK);
    uint32_t stride = made.stride;
    ivm__accumulators_deinit(&made, 0, &it.engine->texts);
    return stride;
}

Test(operators_accumulator, count_and_one_sum_are_a_cache_line)
{
    open_over(IVM_INT64);
    const ivm__aggregate_function functions[] = { IVM__COUNT, IVM__SUM, IVM__SUM };
    cr_assert_eq(stride_of(functions, (const ivm_type[]){ 0, IVM_INT64 }, 2), 64u);
    cr_assert_eq(stride_of(functions, (const ivm_type[]){ 0, IVM_FLOAT64 }, 2), 64u);
    cr_assert_eq(stride_of(functions, (const ivm_type[]){ 0, IVM_DECIMAL(18, 2) }, 2), 64u);
    cr_assert_eq(stride_of(functions, (const ivm_type[]){ 0 }, 1), 32u);
    cr_assert_eq(stride_of(functions, (const ivm_type[]){ 0, IVM_INT64, IVM_INT64 }, 3), 128u);
}

/* ---- Integers ----------------------------------------------------------------------------------------------------------------------------- */

Test(operators_accumulator, an_int64_sum_is_checked_when_it_is_read)
{
    open_over(IVM_INT64);
    add(IVM_INT64, 1, INT64_MAX, INT64_MAX);
    add(IVM_INT64, 1, INT64_MAX, INT64_MAX);
    cr_assert(overflows(SUM, 1));
    cr_assert(overflows(COUNT, 1));
    cr_assert_eq(real(AVG, 1), (double)INT64_MAX);
    add(IVM_INT64, 1, INT64_MIN, INT64_MAX);
    add(IVM_INT64, 1, INT64_MIN, INT64_MAX - 1);
    cr_assert_eq(number(SUM, 1), 2 * (ivm__wide)INT64_MAX * INT64_MAX + (2 * (ivm__wide)INT64_MAX - 1) * INT64_MIN);
    cr_assert(overflows(COUNT, 1));
    cr_assert_eq(number(MIN, 1), INT64_MIN);
    cr_assert_eq(number(MAX, 1), INT64_MAX);
    add(IVM_INT64, 1, INT64_MAX, -2 * (ivm__wide)INT64_MAX);
    add(IVM_INT64, 1, INT64_MIN, -2 * (ivm__wide)INT64_MAX + 2);
    cr_assert_eq(number(COUNT, 1), 1);
    cr_assert_eq(number(SUM, 1), INT64_MIN);
    cr_assert_eq(number(MAX, 1), INT64_MIN);
    add(IVM_INT64, 1, INT64_MIN, -1);
    cr_assert(is_blank(1));
}

Test(operators_accumulator, an_average_may_have_more_rows_than_64_bits_count)
{
    open_over(IVM_INT64);
    for (uint32_t i = 0; i < 3; i++) {
        add(IVM_INT64, 0, 7, INT64_MAX);
        add(IVM_INT64, 2, i == 0 ? 30 : 0, INT64_MAX);
    }
    cr_assert_eq(real(AVG, 0), 7.0);
    cr_assert_eq(real(AVG, 2), 10.0);
}

/* 16 * 2^126 * 2^62 = 2^192. */
Test(operators_accumulator, a_decimal_sum_past_192_bits_is_no_small_number)
{
    ivm_type type = IVM_DECIMAL(38, 0);
    open_over(type);
    for (uint32_t i = 1; i <= 64; i++) {
        add(type, 0, TWO_TO(126), TWO_TO(62));
        cr_assert(overflows(SUM, 0), "after %u rows", i);
        cr_assert_eq(real(AVG, 0), 0x1p126, "after %u rows", i);
        add(type, 2, -TWO_TO(126) + 1, TWO_TO(62));
        cr_assert(overflows(SUM, 2));
        cr_assert_eq(real(AVG, 2), -0x1p126);
    }
    add(type, 0, TWO_TO(126), -64 * TWO_TO(62) + 1);
    add(type, 2, -TWO_TO(126) + 1, -64 * TWO_TO(62) + 1);
    cr_assert(overflows(SUM, 0) == false && number(SUM, 0) == TWO_TO(126));
    cr_assert_eq(number(SUM, 2), -TWO_TO(126) + 1);
}

Test(operators_accumulator, a_decimal_sum_has_38_digits)
{
    ivm_type type = IVM_DECIMAL(38, 5);
    open_over(type);
    ivm__wide most = ivm__power_of_ten(38) - 1;
    add(type, 0, most, 1);
    cr_assert_eq(number(SUM, 0), most);
    add(type, 0, 1, 1);
    cr_assert(overflows(SUM, 0));
    add(type, 0, -1, 2);
    cr_assert_eq(number(SUM, 0), most - 1);
    add(type, 0, -most, 2);
    cr_assert(overflows(SUM, 0));
    add(type, 0, 1, 1);
    cr_assert_eq(number(SUM, 0), -most);
}

Test(operators_accumulator, averages_of_decimals_are_rounded_once)
{
    ivm_type type = IVM_DECIMAL(20, 2);
    open_over(type);
    add(type, 0, 10, 1);
    add(type, 0, 20, 1);
    add(type, 0, 0, 1);
    cr_assert_eq(real(AVG, 0), 0.1);
    add(type, 1, 1, 1);
    add(type, 1, 0, 2);
    cr_assert_eq(real(AVG, 1), 1.0 / 300.0);
}

/* Weights in flight have 128 bits: what comes and goes in one step may pass them in a sum, and comes back. */
Test(operators_accumulator, weights_in_flight_wrap_and_come_back)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(38, 3), IVM_DECIMAL(10, 0), IVM_FLOAT64, IVM_STRING };
    for (uint32_t t = 0; t < 5; t++) {
        const ivm__text *text;
        cr_assert_eq(ivm__texts_intern(&it.engine->texts, "x", 1, &text), IVM_OK);
        ivm__wide cells[2] = { 3, -5 };
        if (types[t] == IVM_FLOAT64) {
            cells[0] = (ivm__wide)ivm__float_word(NAN);
            cells[1] = (ivm__wide)ivm__float_word(-INFINITY);
        } else if (types[t] == IVM_STRING) {
            cells[0] = cells[1] = (ivm__wide)(uintptr_t)text;
        }
        open_over(types[t]);
        for (uint32_t i = 0; i < 10; i++) {
            add(types[t], 0, cells[i % 2], TWO_TO(126));
            add(types[t], 1, cells[i % 2], -TWO_TO(126));
        }
        for (uint32_t i = 0; i < 10; i++) {
            add(types[t], 0, cells[i % 2], -TWO_TO(126) + 1);
            add(types[t], 1, cells[i % 2], TWO_TO(126) + 1);
        }
        for (uint32_t group = 0; group < 2; group++) {
            cr_assert_eq(number(COUNT, group), 10);
            cr_assert_eq(number(types[t] == IVM_STRING ? 3 : COUNT_DISTINCT, group), types[t] == IVM_STRING ? 1 : 2);
            if (types[t] == IVM_FLOAT64) {
                cr_assert(isnan(real(SUM, group)) && isnan(real(AVG, group)) && isnan(real(MAX, group)) && isinf(real(MIN, group)));
                cr_assert(isnan(real(SUM_DISTINCT, group)) && isnan(real(VAR_POP, group)) && isnan(real(STDDEV_SAMP, group)));
            } else if (types[t] != IVM_STRING) {
                cr_assert_eq(number(SUM, group), -10);
                cr_assert_eq(number(SUM_DISTINCT, group), -2);
                double scale = t == 1 ? 1e6 : 1; /* five times 3, five times -5 */
                cr_assert_eq(real(VAR_POP, group), 16 / scale);
                cr_assert_eq(real(VAR_SAMP, group), 160 / (9 * scale));
                cr_assert_eq(real(STDDEV_POP, group), sqrt(16 / scale));
                cr_assert_eq(real(STDDEV_SAMP, group), sqrt(160 / (9 * scale)));
                cr_assert_eq(number(MIN, group), -5);
            }
            add(types[t], group, cells[0], -5);
            add(types[t], group, cells[1], -5);
        }
        for (uint32_t i = 0; i < accumulators.count; i++) {
            if (accumulators.list[i].ordered.memory) {
                ivm__ordered_commit(&accumulators.list[i].ordered);
                cr_assert_eq(accumulators.list[i].ordered.entries_count, 0u);
            }
        }
        cr_assert(types[t] == IVM_FLOAT64 || (is_blank(0) && is_blank(1)));
        if (t < 4) {
            ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
        }
    }
}

/* ---- Saving -------------------------------------------------------------------------------------------------------------------------------- */

static void values_read(ivm__wide cells[NUMERIC_FUNCTIONS], bool nulls[NUMERIC_FUNCTIONS])
{
    for (uint32_t i = 0; i < NUMERIC_FUNCTIONS; i++) {
        cr_assert_eq(value_of(i, 0, &cells[i], &nulls[i]), IVM_OK);
    }
}

/* A state goes back to what it was, whatever came in between, and a group that was new loses what it made. */
static void goes_back(ivm_type type, const ivm__wide *before, uint32_t before_count, const ivm__wide *between, uint32_t between_count)
{
    ivm__wide cells[NUMERIC_FUNCTIONS], cells_after[NUMERIC_FUNCTIONS];
    bool nulls[NUMERIC_FUNCTIONS], nulls_after[NUMERIC_FUNCTIONS];
    open_over(type);
    for (uint32_t i = 0; i < before_count; i++) {
        add(type, 0, before[i], 3);
    }
    for (uint32_t i = 0; i < accumulators.count; i++) {
        if (accumulators.list[i].ordered.memory) {
            ivm__ordered_commit(&accumulators.list[i].ordered);
        }
    }
    values_read(cells, nulls);
    uint8_t state[STATE_MAX];
    memcpy(state, ivm__group_state(&accumulators, 0), accumulators.stride);
    void *saved = ivm__group_save(&accumulators, 0, &it.engine->arena);
    cr_assert_not_null(saved);
    for (uint32_t i = 0; i < between_count; i++) {
        add(type, 0, between[i], (ivm__weight)INT64_MAX * (i % 2 ? -7 : 7));
    }
    ivm__group_restore(&accumulators, 0, saved);
    for (uint32_t i = 0; i < accumulators.count; i++) {
        if (accumulators.list[i].ordered.memory) {
            ivm__ordered_undo(&accumulators.list[i].ordered);
        }
    }
    values_read(cells_after, nulls_after);
    for (uint32_t i = 0; i < NUMERIC_FUNCTIONS; i++) {
        cr_assert(cells[i] == cells_after[i] && nulls[i] == nulls_after[i], "aggregate %u", i);
    }
    cr_assert(type == IVM_FLOAT64 || memcmp(state, ivm__group_state(&accumulators, 0), accumulators.stride) == 0);
    cr_assert(before_count || is_blank(0), "a new group holds nothing");
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
}

Test(operators_accumulator, a_saved_state_comes_back)
{
    const ivm__wide small[] = { 1, 2, -9 }, great[] = { INT64_MAX, INT64_MIN, INT64_MAX - 5, 17 };
    const ivm__wide wide[] = { ivm__power_of_ten(38) - 1, 1 - ivm__power_of_ten(38), ivm__power_of_ten(37) };
    ivm__wide floats[4], specials[5];
    static const double values[] = { 0.1, 1e300, -0x1p-1074, 3.5 }, odd[] = { NAN, 1e-300, INFINITY, -INFINITY, 1e308 };
    for (uint32_t i = 0; i < 5; i++) {
        floats[i % 4] = (ivm__wide)ivm__float_word(values[i % 4]);
        specials[i] = (ivm__wide)ivm__float_word(odd[i]);
    }
    goes_back(IVM_INT64, small, 3, great, 4);
    goes_back(IVM_INT64, NULL, 0, great, 4);
    goes_back(IVM_DECIMAL(38, 1), small, 3, wide, 3);
    goes_back(IVM_DECIMAL(38, 1), NULL, 0, wide, 3);
    goes_back(IVM_FLOAT64, floats, 4, specials, 5);
    goes_back(IVM_FLOAT64, floats, 1, floats, 4);
    goes_back(IVM_FLOAT64, NULL, 0, floats, 4);
    goes_back(IVM_FLOAT64, NULL, 0, specials, 5);
    goes_back(IVM_FLOAT64, specials, 3, floats, 4);
    open_over(IVM_INT64);
}

Test(operators_accumulator, floats_leave_as_they_came)
{
    open_over(IVM_FLOAT64);
    for (int i = 0; i < 1000; i++) {
        add_float(0, 0.1 * i, 1);
        add_float(0, i % 3 ? 1e300 : -INFINITY, 2);
    }
    cr_assert_eq(real(SUM, 0), -INFINITY);
    for (int i = 0; i < 1000; i++) {
        add_float(0, i % 3 ? 1e300 : -INFINITY, -2);
    }
    add_float(0, 1.5, 1);
    for (int i = 0; i < 1000; i++) {
        add_float(0, 0.1 * i, -1);
    }
    cr_assert_eq(real(SUM, 0), 1.5);
    cr_assert_eq(real(AVG, 0), 1.5);
    cr_assert_eq(number(COUNT, 0), 1);
}

/* ---- Distinct values -------------------------------------------------------------------------------------------------------------------------- */

Test(operators_accumulator, a_value_counts_once_while_it_is_there)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(20, 3), IVM_FLOAT64 };
    for (uint32_t t = 0; t < 3; t++) {
        ivm__wide cells[3] = { -7, 100, 3 };
        for (uint32_t i = 0; types[t] == IVM_FLOAT64 && i < 3; i++) {
            cells[i] = (ivm__wide)ivm__float_word((double)cells[i]);
        }
        open_over(types[t]);
        for (uint32_t i = 0; i < 9; i++) {
            add(types[t], 0, cells[i % 3], 1 + i);
        }
        cr_assert_eq(number(COUNT_DISTINCT, 0), 3);
        cr_assert_eq(types[t] == IVM_FLOAT64 ? (ivm__wide)real(SUM_DISTINCT, 0) : number(SUM_DISTINCT, 0), 96);
        add(types[t], 0, cells[1], -11);
        cr_assert_eq(number(COUNT_DISTINCT, 0), 3, "one of it is left");
        add(types[t], 0, cells[1], -4);
        cr_assert_eq(number(COUNT_DISTINCT, 0), 2);
        cr_assert_eq(types[t] == IVM_FLOAT64 ? (ivm__wide)real(SUM_DISTINCT, 0) : number(SUM_DISTINCT, 0), -4);
        add(types[t], 0, cells[0], -12);
        add(types[t], 0, cells[2], -18);
        ivm__wide cell;
        bool is_null;
        cr_assert_eq(number(COUNT_DISTINCT, 0), 0);
        cr_assert_eq(value_of(SUM_DISTINCT, 0, &cell, &is_null), IVM_OK);
        cr_assert(is_null && cell == 0);
        if (t < 2) {
            ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
        }
    }
}

Test(operators_accumulator, a_sum_of_distinct_values_is_checked_when_it_is_read)
{
    open_over(IVM_INT64);
    add(IVM_INT64, 0, INT64_MAX, 5);
    cr_assert_eq(number(SUM_DISTINCT, 0), INT64_MAX);
    add(IVM_INT64, 0, 1, 1);
    cr_assert(overflows(SUM_DISTINCT, 0));
    add(IVM_INT64, 0, INT64_MAX - 1, 1);
    add(IVM_INT64, 0, INT64_MIN, 9);
    add(IVM_INT64, 0, INT64_MIN + 1, 9);
    cr_assert_eq(number(SUM_DISTINCT, 0), -1);
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
    ivm_type type = IVM_DECIMAL(38, 2);
    ivm__wide most = ivm__power_of_ten(38) - 1;
    open_over(type);
    for (uint32_t i = 0; i < 10; i++) {
        add(type, 0, most - i, 2);
        cr_assert(overflows(SUM_DISTINCT, 0) == (i > 0));
    }
    for (uint32_t i = 1; i < 10; i++) {
        add(type, 0, i - most, 2);
    }
    cr_assert_eq(number(SUM_DISTINCT, 0), most);
}

Test(operators_accumulator, a_float_sum_of_distinct_values_is_exact)
{
    open_over(IVM_FLOAT64);
    static const double values[] = { 1e300, 0.1, -1e300, 0.2, 5e-324, INFINITY, 0.3 };
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 7; i++) {
            add_float(0, values[i], 2);
        }
    }
    cr_assert_eq(real(SUM_DISTINCT, 0), INFINITY);
    add_float(0, INFINITY, -4);
    cr_assert_eq(real(SUM_DISTINCT, 0), 0.6);
    add_float(0, NAN, 1);
    add_float(0, NAN, 1);
    cr_assert_eq(number(COUNT_DISTINCT, 0), 7, "NaN is one value");
    cr_assert(isnan(real(SUM_DISTINCT, 0)));
}

/* ---- Variances ----------------------------------------------------------------------------------------------------------------------------------- */

static bool is_null_of(uint32_t which, uint32_t group)
{
    ivm__wide cell;
    bool is_null;
    cr_assert_eq(value_of(which, group, &cell, &is_null), IVM_OK);
    return is_null;
}

/* By weights: three rows of one value are a sample, minus one are none. */
Test(operators_accumulator, variances_want_values_and_samples_two)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(38, 38), IVM_FLOAT64 };
    for (uint32_t t = 0; t < 3; t++) {
        ivm__wide one = types[t] == IVM_FLOAT64 ? (ivm__wide)ivm__float_word(0.1) : 1;
        open_over(types[t]);
        for (int64_t n = -1; n < 4; n++) {
            if (n == -1) {
                add(types[t], 0, one, -1);
            } else {
                add(types[t], 0, one, 1);
            }
            cr_assert_eq(is_null_of(VAR_POP, 0), n < 1);
            cr_assert_eq(is_null_of(STDDEV_POP, 0), n < 1);
            cr_assert_eq(is_null_of(VAR_SAMP, 0), n < 2);
            cr_assert_eq(is_null_of(STDDEV_SAMP, 0), n < 2);
            cr_assert(n < 1 || real(VAR_POP, 0) == 0);
            cr_assert(n < 2 || real(STDDEV_SAMP, 0) == 0);
        }
        if (t < 2) {
            ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
        }
    }
}

Test(operators_accumulator, a_variance_below_zero_has_no_deviation)
{
    open_over(IVM_INT64);
    add(IVM_INT64, 0, 1, 3);
    add(IVM_INT64, 0, 10, -1);
    cr_assert_eq(real(VAR_POP, 0), -60.75); /* (2 * (3 - 100) - 49) / 4 */
    cr_assert_eq(real(VAR_SAMP, 0), -121.5);
    cr_assert(is_null_of(STDDEV_POP, 0) && is_null_of(STDDEV_SAMP, 0));
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
    open_over(IVM_FLOAT64);
    add_float(0, 0, 3);
    add_float(0, 5e-324, -1);
    cr_assert(real(VAR_POP, 0) == 0 && !signbit(real(VAR_POP, 0)), "it rounds to 0");
    cr_assert(is_null_of(STDDEV_POP, 0), "but is below");
}

Test(operators_accumulator, variances_at_the_ends_of_the_ranges)
{
    open_over(IVM_INT64);
    add(IVM_INT64, 0, INT64_MAX, INT64_MAX);
    add(IVM_INT64, 0, INT64_MIN, INT64_MAX);
    cr_assert_eq(real(VAR_POP, 0), 0x1p126); /* (2^64 - 1)^2 / 4 */
    cr_assert_eq(real(STDDEV_POP, 0), 0x1p63);
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
    ivm_type type = IVM_DECIMAL(38, 0);
    open_over(type);
    for (uint32_t i = 0; i < 100; i++) {
        add(type, 0, ivm__power_of_ten(38) - 1, INT64_MAX);
        add(type, 0, 1 - ivm__power_of_ten(38), INT64_MAX);
    }
    cr_assert_eq(real(VAR_POP, 0), 1e76);
    cr_assert_eq(real(STDDEV_POP, 0), 1e38);
    ivm__accumulators_deinit(&accumulators, 4, &it.engine->texts);
    open_over(IVM_FLOAT64);
    add_float(0, 0x1.fffffffffffffp1023, 1);
    add_float(0, -0x1.fffffffffffffp1023, 1);
    cr_assert(real(VAR_POP, 0) == INFINITY && real(STDDEV_POP, 0) == INFINITY);
    add_float(0, 0x1.fffffffffffffp1023, -1);
    add_float(0, -0x1.fffffffffffffp1023, -1);
    add_float(0, 0x1p-537, 1);
    add_float(0, -0x1p-537, 1);
    cr_assert_eq(real(VAR_POP, 0), 0x1p-1074);
    cr_assert_eq(real(STDDEV_POP, 0), 0x1p-537);
    add_float(0, INFINITY, 1);
    cr_assert(isnan(real(VAR_POP, 0)) && isnan(real(STDDEV_SAMP, 0)));
    add_float(0, INFINITY, -1);
    cr_assert_eq(real(VAR_SAMP, 0), 0x1p-1073);
}

/* ---- Conditions ------------------------------------------------------------------------------------------------------------------------------------ */

Test(operators_accumulator, bools_by_the_numbers_of_either)
{
    static const ivm__aggregate_function functions[] = { IVM__BOOL_AND, IVM__BOOL_OR };
    open_functions(functions, 2, IVM_BOOL);
    cr_assert(is_null_of(0, 0) && is_null_of(1, 0));
    add(IVM_BOOL, 0, 1, 2);
    cr_assert(number(0, 0) == 1 && number(1, 0) == 1);
    add(IVM_BOOL, 0, 0, TWO_TO(126));
    add(IVM_BOOL, 0, 0, TWO_TO(126));
    cr_assert(number(0, 0) == 0 && number(1, 0) == 1);
    add(IVM_BOOL, 0, 1, -2);
    cr_assert(number(0, 0) == 0 && number(1, 0) == 0);
    add(IVM_BOOL, 0, 0, -TWO_TO(126));
    add(IVM_BOOL, 0, 0, -TWO_TO(126));
    cr_assert(is_null_of(0, 0) && is_null_of(1, 0));
    cr_assert(is_blank(0));
}
