/* Expressions over chunks: which rows are computed at all, which are selected, and what holds of every function. Random expressions are held
 * against the oracle in tests/plan/check/check_expression.c. */
#include "columns.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

COLUMNS_SUITE(operators_expression);

/* ---- Untyped nulls ---------------------------------------------------------------------------------------------------------------------- */

Test(operators_expression, untyped_nulls_are_null_vectors_of_8_byte_cells)
{
    compute(literal(0, NIL));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    compute(call2(IVM__MULTIPLY, 0, literal(0, NIL), literal(0, NIL)));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    compute(call1(IVM__NEGATE, 0, call1(IVM__ABS, 0, literal(0, NIL))));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    compute(call1(IVM__CAST, BROAD, call2(IVM__COALESCE, 0, literal(0, NIL), literal(0, NIL))));
    EXPECT(NIL, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
    /* and their arguments fail all the same */
    CELLS(0, IVM_INT64, MAX, 1, 2, 3, NIL, 5, 6, MAX);
    ivm__expression *sum = call2(IVM__ADD, IVM_INT64, column(0), literal(IVM_INT64, 1));
    compute(call1(IVM__NEGATE, 0, CALL(IVM__CASE, 0, call1(IVM__IS_NULL, IVM_BOOL, sum), literal(0, NIL), literal(0, NIL))));
    EXPECT(FAIL, NIL, NIL, NIL, NIL, NIL, NIL, FAIL);
}

/* ---- What is not computed --------------------------------------------------------------------------------------------------------------- */

Test(operators_expression, and_and_or_stop_at_what_decides)
{
    CELLS(0, IVM_BOOL, 0, 1, NIL, 0, 1, NIL, 0, 1);
    CELLS(1, IVM_INT64, MAX, MAX, MAX, 1, 1, 1, NIL, -5);
    compute(call2(IVM__AND, IVM_BOOL, column(0), plus_one_positive(1)));
    EXPECT(0, FAIL, FAIL, 0, 1, NIL, 0, 0);
    compute(call2(IVM__OR, IVM_BOOL, column(0), plus_one_positive(1)));
    cr_expect_eq(failed[1], 0);
    EXPECT(FAIL, 1, FAIL, 1, 1, 1, NIL, 1);
    /* the order counts */
    compute(call2(IVM__AND, IVM_BOOL, plus_one_positive(1), column(0)));
    cr_expect_eq(failed[0], 1);
    cr_expect_eq(failed[3], 0);
}

Test(operators_expression, coalesce_and_in_stop_at_what_decides)
{
    CELLS(0, IVM_INT64, 7, NIL, 3, NIL, MAX, 1, 2, NIL);
    CELLS(1, IVM_INT64, MAX, MAX, 1, 1, MAX, NIL, MAX, NIL);
    compute(CALL(IVM__COALESCE, IVM_INT64, column(0), plus_one(1), literal(IVM_INT64, 9)));
    cr_expect_eq(failed[1], 1);
    failed[1] = 0; /* goes on as null, and so takes the next */
    EXPECT(7, 9, 3, 2, MAX, 1, 2, 9);
    compute(CALL(IVM__IN, IVM_BOOL, column(0), literal(IVM_INT64, 7), column(0), plus_one(1)));
    EXPECT(1, NIL, 1, NIL, 1, 1, 1, NIL);
    compute(CALL(IVM__IN, IVM_BOOL, column(0), literal(IVM_INT64, 7), plus_one(1)));
    EXPECT(1, NIL, 0, NIL, FAIL, NIL, FAIL, NIL);
}

Test(operators_expression, case_computes_one_branch)
{
    CELLS(0, IVM_BOOL, 1, 0, NIL, 0, 1, 0, 0, 1);
    CELLS(1, IVM_BOOL, 0, 1, 0, NIL, 1, 1, 0, NIL);
    CELLS(2, IVM_INT64, MAX, MAX, MAX, 3, 4, 5, MAX, 7);
    compute(CALL(IVM__CASE, IVM_INT64, column(0), plus_one(2), column(1), literal(IVM_INT64, -1), column(2)));
    EXPECT(FAIL, -1, MAX, 3, 5, -1, MAX, 8);
    compute(
        CALL(IVM__CASE, IVM_INT64, column(0), literal(IVM_INT64, 1), plus_one_positive(2), literal(IVM_INT64, 2), literal(IVM_INT64, 3)));
    EXPECT_FAILED(0, 1, 1, 0, 0, 0, 1, 0); /* a failed condition is null: the row goes on to the else */
    memset(failed, 0, sizeof failed);
    EXPECT(1, 3, 3, 2, 1, 2, 3, 1);
}

Test(operators_expression, subsets_of_subsets_fail_at_their_own_rows)
{
    CELLS(0, IVM_BOOL, 1, 1, 1, 0, 1, 1, 0, 1);
    CELLS(1, IVM_BOOL, 1, 0, 1, 1, 1, NIL, 1, 1);
    CELLS(2, IVM_INT64, MAX, MAX, 2, MAX, 4, 5, 6, MAX);
    ivm__wide big[ROWS] = { 1, 2, ten(38) - 1, 4, 5, 6, 7, 8 };
    wides(3, NARROW, big);
    ivm__expression *inner = CALL(IVM__CASE, NARROW, column(1), call2(IVM__ADD, NARROW, column(3), plus_one(2)), column(3));
    compute(CALL(IVM__CASE, NARROW, column(0), inner, literal(NARROW, 0)));
    EXPECT(FAIL, 2, FAIL, 0, 10, 6, 0, FAIL);
    EXPECT_FAILED(1, 0, 1, 0, 0, 0, 0, 1);
}

Test(operators_expression, marks_are_never_cleared)
{
    CELLS(0, IVM_INT64, MAX, 1, 2, 3, 4, 5, 6, 7);
    ivm__expression *sum = plus_one(0);
    memset(failed, 0, sizeof failed);
    failed[3] = 1;
    cr_assert_eq(ivm__expression_compute(sum, &step, &chunk, &result, failed), IVM_OK);
    EXPECT_FAILED(1, 0, 0, 1, 0, 0, 0, 0);
    ivm__expression_free(sum, &memory, &texts);
}

/* Few enough rows to be gathered: what they read and give is 8 and 16 bytes wide, with and without nulls. */
Test(operators_expression, a_few_rows_of_many_fail_at_their_own_places)
{
    enum { MANY = 100 };
    static uint64_t flag[MANY], number[MANY];
    static ivm__wide big[MANY];
    static uint8_t no_number[MANY], marks[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        flag[i] = i % 20 == 3;
        number[i] = i == 43 ? (uint64_t)MAX : i == 63 ? 0 : i;
        no_number[i] = i == 63;
        big[i] = i == 83 ? ten(38) - 1 : 1000;
    }
    ivm__vector columns[] = { { IVM_BOOL, flag, NULL }, { IVM_INT64, number, no_number }, { NARROW, big, NULL } };
    ivm__chunk many = { .rows_count = MANY, .columns_count = 3, .columns = columns };
    memcpy(vectors, columns, sizeof columns);
    ivm__expression *node = CALL(IVM__CASE, NARROW, column(0), call2(IVM__ADD, NARROW, column(2), plus_one(1)), column(2));
    cr_assert_eq(ivm__expression_compute(node, &step, &many, &result, marks), IVM_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        bool fails = i == 43 || i == 83, null = fails || i == 63;
        cr_assert_eq(marks[i], fails, "row %u", i);
        cr_assert_eq(ivm__is_null(&result, i), null, "row %u", i);
        cr_assert(ivm__wide_cell(&result, i) == (null ? 0 : i % 20 == 3 ? 1001 + i : big[i]), "row %u", i);
    }
    ivm__expression_free(node, &memory, &texts);
    cr_assert_eq(ivm__expression_compute(node = CALL(IVM__AND, IVM_BOOL, column(0), plus_one_positive(1)), &step, &many, &result, marks),
                 IVM_OK);
    cr_expect_eq(ivm__word(&result, 3), 1u);
    cr_expect(ivm__is_null(&result, 63));
    cr_expect_eq(ivm__word(&result, 4), 0u);
    ivm__expression_free(node, &memory, &texts);
}

/* ---- Selecting, reading ----------------------------------------------------------------------------------------------------------------- */

static void expect_selected(ivm__expression *condition, const char *wanted)
{
    uint32_t rows[ROWS], count = 99;
    char got[ROWS + 1] = "";
    cr_assert_eq(ivm__expression_select(condition, &step, &chunk, rows, &count, ivm__expression_is_fallible(condition) ? failed : NULL),
                 IVM_OK);
    cr_assert_leq(count, ROWS);
    for (uint32_t i = 0; i < count; i++) {
        got[i] = (char)('0' + rows[i]);
    }
    cr_expect_str_eq(got, wanted);
    ivm__expression_free(condition, &memory, &texts);
}

Test(operators_expression, select_gives_the_rows_that_are_true_and_did_not_fail)
{
    CELLS(0, IVM_BOOL, 1, 0, NIL, 1, 1, NIL, 0, 1);
    CELLS(1, IVM_INT64, 1, 2, 3, MAX, -9, 6, MAX, MAX);
    expect_selected(column(0), "0347");
    memset(failed, 0, sizeof failed);
    expect_selected(call2(IVM__OR, IVM_BOOL, plus_one_positive(1), column(0)), "01245"); /* true after a failure is no row */
    EXPECT_FAILED(0, 0, 0, 1, 0, 0, 1, 1);
    memset(failed, 0, sizeof failed);
    failed[0] = 1;
    expect_selected(call2(IVM__AND, IVM_BOOL, column(0), plus_one_positive(1)), "");
    expect_selected(literal(IVM_BOOL, 1), "01234567");
    expect_selected(literal(0, NIL), "");
}

Test(operators_expression, a_column_is_the_chunks_own_vector)
{
    CELLS(4, IVM_INT64, 1, 2, 3, 4, 5, 6, 7, 8);
    compute(column(4));
    cr_expect_eq(result.cells, vectors[4].cells);
    cr_expect_eq(result.nulls, vectors[4].nulls);
    vectors[0].cells = NULL; /* not carried, and not asked for */
    bool read[COLUMNS] = { false };
    CELLS(1, IVM_INT64, 1, 1, 1, 1, 1, 1, 1, 1);
    ivm__expression *sum = call2(IVM__ADD, IVM_INT64, plus_one(4), column(1));
    ivm__expression_mark_columns(sum, read);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_expect_eq(read[c], c == 1 || c == 4, "column %u", c);
    }
    compute(sum);
    EXPECT(3, 4, 5, 6, 7, 8, 9, 10);
}

/* ---- Everything at once ----------------------------------------------------------------------------------------------------------------- */

/* One node of every kind, each over columns. */
static ivm__expression *every_function(uint32_t i)
{
    static const ivm__function sums[] = { IVM__ADD, IVM__SUBTRACT, IVM__MULTIPLY }, signs[] = { IVM__NEGATE, IVM__ABS };
    static const ivm__function comparisons[] = { IVM__EQUAL, IVM__NOT_EQUAL, IVM__LESS, IVM__LESS_EQUAL, IVM__GREATER, IVM__GREATER_EQUAL };
    switch (i) {
    case 0 ... 2:
        return call2(sums[i], IVM_INT64, column(0), column(1));
    case 3 ... 5:
        return call2(sums[i - 3], IVM_FLOAT64, column(2), column(2));
    case 6 ... 7:
        return call2(sums[i - 6], BROAD, column(3), column(4));
    case 8 ... 9:
        return call1(signs[i - 8], IVM_INT64, column(0));
    case 10 ... 11:
        return call1(signs[i - 10], BROAD, column(4));
    case 12 ... 17:
        return call2(comparisons[i - 12], IVM_BOOL, column(3), column(4));
    case 18 ... 23:
        return call2(comparisons[i - 18], IVM_BOOL, column(5), column(5));
    case 24:
        return call2(IVM__DIV, IVM_INT64, column(0), column(1));
    case 25:
        return call2(IVM__DIVIDE, IVM_FLOAT64, column(2), column(2));
    case 26:
        return CALL(IVM__AND, IVM_BOOL, column(6), plus_one_positive(0), column(6));
    case 27:
        return CALL(IVM__IN, IVM_BOOL, column(3), column(0), column(4), plus_one(0));
    case 28:
        return CALL(IVM__COALESCE, IVM_INT64, column(0), plus_one(1), column(1));
    case 29:
        return CALL(IVM__CASE, BROAD, column(6), call2(IVM__ADD, BROAD, column(3), column(4)), column(4));
    case 30:
        return CALL(IVM__LEAST, BROAD, column(3), column(4), column(0));
    case 31:
        return CALL(IVM__CONCAT, IVM_STRING, column(5), column(5), literal(IVM_STRING, text("new")));
    case 32:
        return call1(IVM__UPPER, IVM_STRING, column(5));
    case 33:
        return call1(IVM__CAST, IVM_DECIMAL(5, 2), column(0));
    case 34:
        return call1(IVM__NOT, IVM_BOOL, call1(IVM__IS_NULL, IVM_BOOL, call1(IVM__LENGTH, IVM_INT64, column(5))));
    case 35:
        return call2(IVM__REMAINDER, IVM_INT64, column(0), column(1));
    default:
        return NULL;
    }
}

static void fill_columns(void)
{
    CELLS(0, IVM_INT64, MAX, 1, NIL, 3, MIN, 5, 6, 7);
    CELLS(1, IVM_INT64, 1, NIL, 3, MIN, -1, 0, 7, MAX);
    FLOATS(2, 1, NAN, 0, INFINITY, -1, 5, 6, 7);
    CELLS(3, NARROW, ten(37), 1, NIL, -ten(37), 5, 6, 7, 8);
    CELLS(4, BROAD, 1, NIL, 3, 4, ten(37), 6, 70, 8);
    CELLS(5, IVM_STRING, text("a"), text("b"), NIL, text("Zo\xc3\xab"), text(""), text("x"), text("y"), text("z"));
    CELLS(6, IVM_BOOL, 1, 0, NIL, 1, 0, NIL, 1, 0);
}

Test(operators_expression, arguments_are_only_read)
{
    static ivm__wide cells_before[COLUMNS][ROWS];
    static uint8_t nulls_before[COLUMNS][ROWS];
    fill_columns();
    memcpy(cells_before, cells, sizeof cells);
    memcpy(nulls_before, nulls, sizeof nulls);
    uint32_t count = 0;
    for (ivm__expression *node; (node = every_function(count)); count++) {
        compute(node);
        cr_assert_arr_eq(cells, cells_before, sizeof cells, "function %u", count);
        cr_assert_arr_eq(nulls, nulls_before, sizeof nulls, "function %u", count);
    }
    cr_expect_eq(count, 36u);
}

/* The arena's first block comes from the allocator, and so does each new text. */
Test(operators_expression, the_nth_allocation_failing_is_told)
{
    fill_columns();
    ivm__expression *node;
    for (uint32_t i = 0; (node = every_function(i)); i++) {
        bool done = false;
        for (uint64_t n = 1; !done; n++) {
            ivm__arena_deinit(&scratch);
            ivm__arena_init(&scratch, &memory);
            texts.epoch++;
            ivm__texts_sweep(&texts, 0);
            memset(failed, 0, sizeof failed);
            test_allocator_arm(&allocator, n);
            ivm_status status = ivm__expression_compute(node, &step, &chunk, &result, failed);
            done = !test_allocator_disarm(&allocator);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "function %u, call %u", i, (unsigned)n);
        }
        ivm__expression_free(node, &memory, &texts);
    }
}

Test(operators_expression, making_nodes_without_memory_leaves_nothing)
{
    fill_columns();
    bool done = false;
    int64_t blocks = allocator.blocks;
    for (uint64_t n = 1; !done; n++) {
        const ivm__text *kept = (const ivm__text *)(uintptr_t)text("kept");
        ivm__texts_acquire(&texts, kept);
        if (n == 1) {
            blocks = allocator.blocks;
        }
        test_allocator_arm(&allocator, n);
        ivm__expression *node = CALL(IVM__CASE, IVM_STRING, column(6), literal(IVM_STRING, (ivm__wide)(uintptr_t)kept),
                                     call2(IVM__CONCAT, IVM_STRING, column(5), literal(IVM_STRING, (ivm__wide)(uintptr_t)kept)));
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(node != NULL, done, "call %u", (unsigned)n);
        ivm__expression_free(node, &memory, &texts);
        cr_assert_eq(kept->references, 1u, "call %u", (unsigned)n);
        cr_assert_eq(allocator.blocks, blocks, "call %u", (unsigned)n);
        ivm__texts_release(&texts, kept);
    }
}
