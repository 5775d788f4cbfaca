/* Numbers in expressions, at the edges of their types: which rows fail, and that no other does. */
#include "columns.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

COLUMNS_SUITE(operators_expression_number);

/* ---- Int64 ------------------------------------------------------------------------------------------------------------------------------ */

Test(operators_expression_number, int64_arithmetic_fails_where_it_overflows_and_nowhere_else)
{
    CELLS(0, IVM_INT64, MAX, MAX, MIN, MIN, NIL, 1, -1, 3037000500);
    CELLS(1, IVM_INT64, 1, 0, -1, 1, MIN, NIL, MIN, 3037000500);
    compute(call2(IVM__ADD, IVM_INT64, column(0), column(1)));
    EXPECT(FAIL, MAX, FAIL, MIN + 1, NIL, NIL, FAIL, 6074001000);
    compute(call2(IVM__SUBTRACT, IVM_INT64, column(0), column(1)));
    EXPECT(MAX - 1, MAX, MIN + 1, FAIL, NIL, NIL, MAX, 0); /* a null less MIN does not fail */
    compute(call2(IVM__MULTIPLY, IVM_INT64, column(0), column(1)));
    EXPECT(MAX, 0, FAIL, MIN, NIL, NIL, FAIL, FAIL);
    compute(call1(IVM__NEGATE, IVM_INT64, column(1)));
    EXPECT(-1, 0, 1, -1, FAIL, NIL, FAIL, -3037000500);
    compute(call1(IVM__ABS, IVM_INT64, column(0)));
    EXPECT(MAX, MAX, FAIL, FAIL, NIL, 1, 1, 3037000500);
}

Test(operators_expression_number, div_and_remainder_truncate_and_zero_gives_null)
{
    CELLS(0, IVM_INT64, 7, -7, 7, -7, 7, MIN, MIN, NIL);
    CELLS(1, IVM_INT64, 2, 2, -2, -2, 0, -1, 1, 0);
    compute(call2(IVM__DIV, IVM_INT64, column(0), column(1)));
    EXPECT(3, -3, -3, 3, NIL, FAIL, MIN, NIL);
    compute(call2(IVM__REMAINDER, IVM_INT64, column(0), column(1)));
    EXPECT(1, -1, 1, -1, NIL, 0, 0, NIL);
    compute(call2(IVM__DIV, IVM_INT64, column(0), literal(IVM_INT64, 0)));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    compute(call2(IVM__DIV, IVM_INT64, literal(IVM_INT64, -9), column(1)));
    EXPECT(-4, -4, 4, 4, NIL, 9, -9, NIL);
}

Test(operators_expression_number, literals_stand_on_either_side)
{
    CELLS(0, IVM_INT64, 1, 2, 3, 4, 5, NIL, 7, 8);
    compute(call2(IVM__SUBTRACT, IVM_INT64, column(0), literal(IVM_INT64, 3)));
    EXPECT(-2, -1, 0, 1, 2, NIL, 4, 5);
    compute(call2(IVM__SUBTRACT, IVM_INT64, literal(IVM_INT64, 3), column(0)));
    EXPECT(2, 1, 0, -1, -2, NIL, -4, -5);
    compute(call2(IVM__MULTIPLY, IVM_INT64, literal(IVM_INT64, 3), literal(IVM_INT64, -4)));
    EXPECT(-12, -12, -12, -12, -12, -12, -12, -12);
    compute(call2(IVM__ADD, IVM_INT64, literal(IVM_INT64, MAX), literal(IVM_INT64, 1)));
    EXPECT(FAIL, FAIL, FAIL, FAIL, FAIL, FAIL, FAIL, FAIL);
    compute(call2(IVM__LESS, IVM_BOOL, literal(IVM_INT64, 3), column(0)));
    EXPECT(0, 0, 0, 1, 1, NIL, 1, 1);
    compute(call2(IVM__LESS_EQUAL, IVM_BOOL, column(0), literal(IVM_INT64, 3)));
    EXPECT(1, 1, 1, 0, 0, NIL, 0, 0);
    compute(call2(IVM__ADD, IVM_INT64, column(0), literal(IVM_INT64, NIL)));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    compute(literal(IVM_BOOL, 1));
    EXPECT(1, 1, 1, 1, 1, 1, 1, 1);
    compute(literal(BROAD, 15));
    EXPECT(15, 15, 15, 15, 15, 15, 15, 15);
}

Test(operators_expression_number, loops_end_where_the_rows_do)
{
    static int64_t a[IVM__CHUNK_ROWS + 1], b[IVM__CHUNK_ROWS + 1];
    for (uint32_t rows_count = 1; rows_count <= IVM__CHUNK_ROWS; rows_count += rows_count < 70 ? 1 : 53) {
        for (uint32_t i = 0; i <= IVM__CHUNK_ROWS; i++) {
            a[i] = i < rows_count ? i : MAX; /* a row too many would overflow */
            b[i] = 2 * (int64_t)i + 1;
        }
        ivm__vector two[] = { { IVM_INT64, a, NULL }, { IVM_INT64, b, NULL } };
        ivm__chunk long_chunk = { .rows_count = rows_count, .columns_count = 2, .columns = two };
        ivm__expression *sum =
            call2(IVM__ADD, IVM_INT64, ivm__expression_column(&memory, 0, IVM_INT64), ivm__expression_column(&memory, 1, IVM_INT64));
        uint8_t none[IVM__CHUNK_ROWS] = { 0 };
        cr_assert_eq(ivm__expression_compute(sum, &step, &long_chunk, &result, none), IVM_OK);
        cr_expect_null(result.nulls);
        for (uint32_t i = 0; i < rows_count; i++) {
            cr_assert_eq(ivm__word(&result, i), 3 * (uint64_t)i + 1, "row %u of %u", i, rows_count);
        }
        ivm__expression_free(sum, &memory, &texts);
        ivm__arena_reset(&scratch);
    }
}

/* ---- Float64 ---------------------------------------------------------------------------------------------------------------------------- */

Test(operators_expression_number, float_results_have_no_negative_zero_and_one_nan)
{
    FLOATS(0, 0, -1, INFINITY, NAN, 1e308, -5e-324, 1, -0.0);
    FLOATS(1, -1, 0, -INFINITY, 1, 1e308, 0.5, -1, 5);
    compute(call2(IVM__MULTIPLY, IVM_FLOAT64, column(0), column(1)));
    EXPECT_FLOATS(0, 0, -INFINITY, NAN, INFINITY, 0, -1, 0);
    compute(call2(IVM__ADD, IVM_FLOAT64, column(0), column(1)));
    EXPECT_FLOATS(-1, -1, NAN, NAN, INFINITY, 0.5, 0, 5);
    compute(call2(IVM__SUBTRACT, IVM_FLOAT64, column(0), column(1)));
    EXPECT_FLOATS(1, -1, INFINITY, NAN, 0, -0.5, 2, -5);
    compute(call1(IVM__NEGATE, IVM_FLOAT64, column(0)));
    EXPECT_FLOATS(0, 1, -INFINITY, NAN, -1e308, 5e-324, -1, 0);
    compute(call1(IVM__ABS, IVM_FLOAT64, column(1)));
    EXPECT_FLOATS(1, 0, INFINITY, 1, 1e308, 0.5, 1, 5);
    compute(call2(IVM__DIVIDE, IVM_FLOAT64, column(0), column(1)));
    cr_expect(result.nulls && result.nulls[1]);
    EXPECT_FLOATS(0, 0, NAN, NAN, 1, -1e-323, -1, 0);
    compute(call2(IVM__DIVIDE, IVM_FLOAT64, column(0), literal(IVM_FLOAT64, ivm__float_word(2))));
    EXPECT_FLOATS(0, -0.5, INFINITY, NAN, 5e307, 0, 0.5, 0);
}

Test(operators_expression_number, nan_equals_nan_and_is_above_every_number)
{
    FLOATS(0, NAN, NAN, INFINITY, 1, 0, -1, NAN, 2);
    FLOATS(1, NAN, INFINITY, NAN, 2, 0, -2, -INFINITY, 2);
    compute(call2(IVM__EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(1, 0, 0, 0, 1, 0, 0, 1);
    compute(call2(IVM__NOT_EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 1, 1, 1, 0, 1, 1, 0);
    compute(call2(IVM__LESS, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 0, 1, 1, 0, 0, 0, 0);
    compute(call2(IVM__LESS_EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(1, 0, 1, 1, 1, 0, 0, 1);
    compute(call2(IVM__GREATER, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 1, 0, 0, 0, 1, 1, 0);
    compute(call2(IVM__GREATER_EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(1, 1, 0, 0, 1, 1, 1, 1);
    compute(call2(IVM__LEAST, IVM_FLOAT64, column(0), column(1)));
    EXPECT_FLOATS(NAN, INFINITY, INFINITY, 1, 0, -2, -INFINITY, 2);
    compute(call2(IVM__GREATEST, IVM_FLOAT64, column(0), column(1)));
    EXPECT_FLOATS(NAN, NAN, NAN, 2, 0, -1, NAN, 2);
}

/* ---- Decimals --------------------------------------------------------------------------------------------------------------------------- */

Test(operators_expression_number, decimal_sums_are_exact_to_38_digits)
{
    ivm__wide top = ten(38) - 1;
    CELLS(0, NARROW, top, -top, top, ten(37), 175 * ten(35), -175 * ten(35), NIL, 99 * ten(36));
    CELLS(1, BROAD, 0, 0, 10, -1, -99 * ten(36), 99 * ten(36), 5, -top);
    CELLS(2, NARROW, 1, -1, -1, 0, 1, 1, 1, 99 * ten(36));
    compute(call2(IVM__ADD, NARROW, column(0), column(2)));
    EXPECT(FAIL, FAIL, top - 1, ten(37), 175 * ten(35) + 1, -175 * ten(35) + 1, NIL, FAIL);
    /* at scale 1: 10^38 - 1 comes back into range, and so does what passes 2^127 on the way */
    compute(call2(IVM__ADD, BROAD, column(0), column(1)));
    EXPECT(FAIL, FAIL, FAIL, ten(38) - 1, 76 * ten(36), -76 * ten(36), NIL, FAIL);
    compute(call2(IVM__SUBTRACT, BROAD, column(1), column(0)));
    EXPECT(FAIL, FAIL, FAIL, FAIL, FAIL, FAIL, NIL, FAIL);
    compute(call1(IVM__NEGATE, NARROW, column(0)));
    EXPECT(-top, top, -top, -ten(37), -175 * ten(35), 175 * ten(35), NIL, -99 * ten(36));
    compute(call1(IVM__ABS, BROAD, column(1)));
    EXPECT(0, 0, 10, 1, 99 * ten(36), 99 * ten(36), 5, top);
}

Test(operators_expression_number, decimal_products_are_exact_to_38_digits)
{
    ivm_type ninth = IVM_DECIMAL(38, 9);
    CELLS(0, ninth, ten(19), -ten(19), ten(37), ten(37), -3, NIL, 0, ten(20));
    CELLS(1, ninth, ten(18), ten(19), 9, -10, 7, 1, ten(37), ten(30));
    compute(call2(IVM__MULTIPLY, IVM_DECIMAL(38, 18), column(0), column(1)));
    EXPECT(ten(37), FAIL, 9 * ten(37), FAIL, -21, NIL, 0, FAIL);
    CELLS(2, IVM_INT64, 10, -1, 0, 9, MAX, 2, 3, NIL);
    compute(call2(IVM__MULTIPLY, ninth, column(0), column(2)));
    EXPECT(ten(20), ten(19), 0, 9 * ten(37), -3 * (ivm__wide)MAX, NIL, 0, NIL);
}

Test(operators_expression_number, what_fits_by_its_type_is_not_checked_and_right)
{
    ivm_type cents = IVM_DECIMAL(6, 2), mills = IVM_DECIMAL(4, 3);
    CELLS(0, cents, 1010, -5, 150, 999999, -999999, NIL, 0, 1);
    CELLS(1, mills, 125, 1000, NIL, 9999, 9999, 1, -9999, -1);
    compute(call2(IVM__MULTIPLY, IVM_DECIMAL(38, 5), column(0), column(1)));
    EXPECT(126250, -5000, NIL, 9998990001, -9998990001, NIL, 0, -1);
    compute(call2(IVM__ADD, IVM_DECIMAL(38, 3), column(0), column(1)));
    EXPECT(10225, 950, NIL, 10009989, -9989991, NIL, -9999, 9);
    compute(call2(IVM__SUBTRACT, IVM_DECIMAL(38, 3), column(1), column(0)));
    EXPECT(-9975, 1050, NIL, -9989991, 10009989, NIL, -9999, -11);
    compute(call2(IVM__SUBTRACT, IVM_DECIMAL(38, 2), literal(IVM_INT64, 1), column(0)));
    EXPECT(-910, 105, -50, -999899, 1000099, NIL, 100, 99);
}

Test(operators_expression_number, decimals_of_different_scale_compare_exactly)
{
    ivm_type fine = IVM_DECIMAL(38, 38);
    ivm__wide top = ten(38) - 1;
    CELLS(0, NARROW, top, -top, 0, 1, -1, 0, NIL, 2);
    CELLS(1, fine, top, top, 1, top, -top, 0, 1, NIL);
    compute(call2(IVM__LESS, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 1, 1, 0, 1, 0, NIL, NIL);
    compute(call2(IVM__LESS, IVM_BOOL, column(1), column(0)));
    EXPECT(1, 0, 0, 1, 0, 0, NIL, NIL);
    compute(call2(IVM__EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 0, 0, 0, 0, 1, NIL, NIL);
    CELLS(2, IVM_DECIMAL(5, 2), 150, -150, 100, 99, 0, NIL, 1, 700);
    CELLS(3, IVM_INT64, 1, -1, 1, 1, 0, 1, 0, 7);
    compute(call2(IVM__GREATER, IVM_BOOL, column(2), column(3)));
    EXPECT(1, 0, 0, 0, 0, NIL, 1, 0);
    compute(call2(IVM__GREATER_EQUAL, IVM_BOOL, column(3), column(2)));
    EXPECT(0, 1, 1, 1, 1, NIL, 0, 1);
    compute(call2(IVM__EQUAL, IVM_BOOL, column(2), literal(IVM_INT64, -1)));
    EXPECT(0, 0, 0, 0, 0, NIL, 0, 0);
    compute(CALL(IVM__IN, IVM_BOOL, column(3), column(2), literal(BROAD, 10), literal(IVM_DECIMAL(1, 0), 7)));
    EXPECT(1, 0, 1, 1, 1, 1, 0, 1);
}

Test(operators_expression_number, least_and_greatest_fail_only_where_what_is_left_does_not_fit)
{
    CELLS(0, NARROW, ten(37), ten(37) - 1, -ten(37), ten(37), NIL, NIL, 5, -ten(37));
    CELLS(1, BROAD, 50, 50, 50, NIL, 7, NIL, 50, -51);
    compute(call2(IVM__LEAST, BROAD, column(0), column(1)));
    EXPECT(50, 50, FAIL, FAIL, 7, NIL, 50, FAIL);
    compute(call2(IVM__GREATEST, BROAD, column(0), column(1)));
    EXPECT(FAIL, ten(38) - 10, 50, FAIL, 7, NIL, 50, -51);
    CELLS(2, IVM_INT64, 4, 5, 6, 7, NIL, NIL, 6, -5);
    compute(CALL(IVM__GREATEST, BROAD, column(2), column(1), literal(IVM_INT64, -6)));
    EXPECT(50, 50, 60, 70, 7, -60, 60, -50);
}

Test(operators_expression_number, casts)
{
    CELLS(0, IVM_INT64, MAX, MIN, 9007199254740993, 0, NIL, 12, -99, 100);
    compute(call1(IVM__CAST, IVM_FLOAT64, column(0)));
    EXPECT_FLOATS(9223372036854775808.0, -9223372036854775808.0, 9007199254740992.0, 0, 0, 12, -99, 100);
    compute(call1(IVM__CAST, IVM_DECIMAL(4, 2), column(0)));
    EXPECT(FAIL, FAIL, FAIL, 0, NIL, 1200, -9900, FAIL);
    CELLS(1, IVM_DECIMAL(6, 2), 999999, 10, -10, 15, NIL, 0, 1, 29);
    compute(call1(IVM__CAST, IVM_FLOAT64, column(1)));
    EXPECT_FLOATS(9999.99, 0.1, -0.1, 0.15, 0, 0, 0.01, 0.29);
    compute(call1(IVM__CAST, IVM_DECIMAL(6, 3), column(1)));
    EXPECT(FAIL, 100, -100, 150, NIL, 0, 10, 290);
    compute(call1(IVM__CAST, IVM_DECIMAL(7, 2), column(1)));
    EXPECT(999999, 10, -10, 15, NIL, 0, 1, 29);
    CELLS(2, IVM_BOOL, 1, 0, NIL, 1, 1, 0, 0, 1);
    compute(call1(IVM__CAST, IVM_INT64, column(2)));
    EXPECT(1, 0, NIL, 1, 1, 0, 0, 1);
    compute(call1(IVM__CAST, IVM_FLOAT64, column(2)));
    EXPECT_FLOATS(1, 0, 0, 1, 1, 0, 0, 1);
}
