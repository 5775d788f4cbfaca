/* tests engine/base/value.c */
#include <criterion/criterion.h>
#include <math.h>

#include "allocator.h"
#include "catalog.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__texts texts;

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__texts_init(&texts, &memory, 7);
}

static void end(void)
{
    ivm__texts_deinit(&texts);
    cr_assert(test_allocator_is_clean(&counted));
}

static ivm_int128 unscaled(ivm__wide value)
{
    return (ivm_int128){ .low = (uint64_t)value, .high = (int64_t)(value >> 64) };
}

/* Whether the value is a cell of the type; the cell must then be this one. */
static bool gives(ivm_type type, ivm_value value, ivm__wide expected)
{
    ivm__wide cell = 12345;
    ivm_status status = ivm__value_cell(&texts, type, &value, &cell);
    cr_assert(status == IVM_OK || status == IVM_TYPE_MISMATCH);
    cr_assert(status != IVM_OK || cell == expected);
    return status == IVM_OK;
}

Test(engine_value, cells_of_their_own_type, .init = begin, .fini = end)
{
    cr_assert(gives(IVM_BOOL, ivm_bool(true), 1));
    cr_assert(gives(IVM_BOOL, ivm_bool(false), 0));
    cr_assert(gives(IVM_INT64, ivm_int64(-1), (ivm__wide)UINT64_MAX));
    cr_assert(gives(IVM_DATE, ivm_date(-1), (ivm__wide)UINT64_MAX));
    cr_assert(gives(IVM_TIMESTAMP, ivm_timestamp(INT64_MIN), (ivm__wide)1 << 63));
    cr_assert(gives(IVM_FLOAT64, ivm_float64(-0.0), 0));
    cr_assert(gives(IVM_FLOAT64, ivm_float64(-NAN), ivm__float_word(NAN)));
    cr_assert(gives(IVM_DECIMAL(3, 2), ivm_decimal(IVM_DECIMAL(3, 2), unscaled(-999)), -999));
    cr_assert(!gives(IVM_DECIMAL(3, 2), ivm_decimal(IVM_DECIMAL(3, 2), unscaled(1000)), 0));
    cr_assert(!gives(IVM_DECIMAL(38, 2), ivm_decimal(IVM_DECIMAL(38, 2), (ivm_int128){ 0, INT64_MIN }), 0));
}

Test(engine_value, other_types_are_refused, .init = begin, .fini = end)
{
    const ivm_value values[] = { ivm_bool(true),
                                 ivm_int64(1),
                                 ivm_float64(1),
                                 ivm_string("1"),
                                 ivm_date(1),
                                 ivm_timestamp(1),
                                 ivm_decimal(IVM_DECIMAL(5, 1), unscaled(1)) };
    const ivm_type types[] = {
        IVM_BOOL, IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(5, 1), IVM_DECIMAL(6, 1)
    };
    for (size_t v = 0; v < 7; v++) {
        for (size_t t = 0; t < 8; t++) {
            bool widened = values[v].type == IVM_INT64 && (types[t] == IVM_FLOAT64 || IVM_TYPE_KIND(types[t]) == IVM_DECIMAL_KIND);
            ivm__wide cell;
            ivm_status status = ivm__value_cell(&texts, types[t], &values[v], &cell);
            cr_assert_eq(status, v == t || widened ? IVM_OK : IVM_TYPE_MISMATCH, "value %zu, type %zu", v, t);
        }
    }
    cr_assert(!gives(99, (ivm_value){ .type = 99 }, 0));
    cr_assert(!gives(IVM_INT64, (ivm_value){ 0 }, 0));
}

Test(engine_value, int64_fits_where_it_is_exact, .init = begin, .fini = end)
{
    const int64_t odd = ((int64_t)1 << 53) + 1;
    cr_assert(gives(IVM_FLOAT64, ivm_int64(odd - 1), ivm__float_word(0x1p53)));
    cr_assert(!gives(IVM_FLOAT64, ivm_int64(odd), 0));
    cr_assert(!gives(IVM_FLOAT64, ivm_int64(-odd), 0));
    cr_assert(!gives(IVM_FLOAT64, ivm_int64(INT64_MAX), 0));
    cr_assert(gives(IVM_FLOAT64, ivm_int64(INT64_MIN), ivm__float_word(-0x1p63)));
    cr_assert(gives(IVM_DECIMAL(5, 2), ivm_int64(-999), -99900));
    cr_assert(!gives(IVM_DECIMAL(5, 2), ivm_int64(1000), 0));
    cr_assert(gives(IVM_DECIMAL(38, 19), ivm_int64(INT64_MAX), (ivm__wide)INT64_MAX * 10000000000000000000ull));
    cr_assert(gives(IVM_DECIMAL(38, 38), ivm_int64(0), 0));
    cr_assert(!gives(IVM_DECIMAL(38, 38), ivm_int64(1), 0));
    cr_assert(!gives(IVM_DECIMAL(38, 38), ivm_int64(INT64_MAX), 0));
}

Test(engine_value, nulls_are_zero_bits, .init = begin, .fini = end)
{
    ivm_value null_int64 = { .type = IVM_INT64, .is_null = true, .as.int64 = 5 };
    cr_assert(gives(IVM_STRING, ivm_null(), 0));
    cr_assert(gives(IVM_INT64, null_int64, 0));
    cr_assert(gives(IVM_FLOAT64, null_int64, 0));
    cr_assert(gives(IVM_DECIMAL(4, 4), null_int64, 0));
    cr_assert(!gives(IVM_DATE, null_int64, 0));
    cr_assert(gives(IVM_STRING, ivm_string(NULL), 0));
    cr_assert(!gives(IVM_BOOL, ivm_string(NULL), 0));
    cr_assert(ivm_string_sized(NULL, 5).is_null);
    cr_assert_eq(ivm_string_sized(NULL, 5).as.string.size, 0);
    cr_assert(!ivm_string_sized(NULL, 0).is_null);
}

Test(engine_value, strings_become_texts, .init = begin, .fini = end)
{
    const ivm__text *text;
    cr_assert_eq(ivm__texts_intern(&texts, "abc", 3, &text), IVM_OK);
    cr_assert(gives(IVM_STRING, ivm_string_sized("abcd", 3), (uintptr_t)text));
    ivm_value value = ivm_string("new one");
    ivm__wide cell;
    test_allocator_arm(&counted, 1);
    cr_assert_eq(ivm__value_cell(&texts, IVM_STRING, &value, &cell), IVM_OUT_OF_MEMORY);
    cr_assert(!gives(IVM_STRING, ivm_string_sized("", (size_t)IVM_STRING_SIZE_MAX + 1), 0));
}

/* Arrays that start at an odd address, with an offset: nothing may lean on alignment. */
Test(engine_value, rows_are_read_at_any_address)
{
    static uint8_t space[6][200];
    const int64_t integers[] = { 7, -8, 9 };
    const double floats[] = { 0.5, -1.5, 2.5 };
    const int32_t dates[] = { 1, -2, 3 }, bounds[] = { 0, 2, 2, 5 };
    const ivm_int128 decimals[] = { unscaled(1), unscaled(-2), unscaled((ivm__wide)3 << 90) };
    memcpy(space[0] + 1, integers, sizeof integers);
    memcpy(space[1] + 1, floats, sizeof floats);
    memcpy(space[2] + 1, dates, sizeof dates);
    memcpy(space[3] + 1, decimals, sizeof decimals);
    memcpy(space[4] + 1, bounds, sizeof bounds);
    const uint8_t bools[] = { 0x05 }, validity[] = { 0x05 };
    const ivm_column_data columns[] = {
        { space[0] + 1, NULL, NULL, 1 },     { space[1] + 1, NULL, NULL, 1 }, { space[2] + 1, NULL, NULL, 1 },
        { space[3] + 1, NULL, NULL, 1 },     { bools, NULL, NULL, 1 },        { "abcde", NULL, (int32_t *)(void *)(space[4] + 1), 1 },
        { space[0] + 1, validity, NULL, 1 },
    };
    const ivm_rows rows = { .rows_count = 2, .columns_count = 7, .columns = columns };
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 0).as.int64, -8);
    ivm_value below = ivm_rows_value(&rows, IVM_INT64, rows.rows_count, 0),
              beside = ivm_rows_value(&rows, IVM_INT64, 0, rows.columns_count);
    cr_assert(below.is_null && below.type == 0 && beside.is_null && beside.type == 0, "no such cell");
    cr_assert_eq(ivm_rows_value(&rows, IVM_TIMESTAMP, 1, 0).as.timestamp, 9);
    cr_assert_eq(ivm_rows_value(&rows, IVM_FLOAT64, 1, 1).as.float64, 2.5);
    cr_assert_eq(ivm_rows_value(&rows, IVM_DATE, 0, 2).as.date, -2);
    ivm_value decimal = ivm_rows_value(&rows, IVM_DECIMAL(38, 1), 1, 3);
    cr_assert(decimal.type == IVM_DECIMAL(38, 1) && decimal.as.decimal.high == (int64_t)3 << 26 && decimal.as.decimal.low == 0);
    cr_assert(!ivm_rows_value(&rows, IVM_BOOL, 0, 4).as.boolean);
    cr_assert(ivm_rows_value(&rows, IVM_BOOL, 1, 4).as.boolean);
    cr_assert_eq(ivm_rows_value(&rows, IVM_STRING, 0, 5).as.string.size, 0);
    ivm_value string = ivm_rows_value(&rows, IVM_STRING, 1, 5);
    cr_assert(string.as.string.size == 3 && memcmp(string.as.string.bytes, "cde", 3) == 0);
    ivm_value null = ivm_rows_value(&rows, IVM_INT64, 0, 6), value = ivm_rows_value(&rows, IVM_INT64, 1, 6);
    cr_assert(null.is_null && null.type == IVM_INT64);
    cr_assert(!value.is_null && value.as.int64 == 9);
}
