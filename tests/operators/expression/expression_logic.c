/* Three-valued logic and strings in expressions. */
#include "columns.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

COLUMNS_SUITE(operators_expression_logic);

/* ---- Logic ------------------------------------------------------------------------------------------------------------------------------ */

/* Of 0, 1 and NIL, as SQL has it. */
static ivm__wide logic_of(ivm__function function, const ivm__wide *values, uint32_t count)
{
    ivm__wide stop = function == IVM__OR, all = !stop;
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] == stop) {
            return stop;
        }
        all = values[i] == NIL ? NIL : all;
    }
    return all;
}

Test(operators_expression_logic, and_and_or_of_three_follow_the_tables)
{
    static const ivm__wide values[] = { 0, 1, NIL };
    for (uint32_t first = 0; first < 27; first += ROWS) {
        ivm__wide in[3][ROWS], wanted[2][ROWS];
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t k = (first + i) % 27;
            ivm__wide three[] = { values[k % 3], values[k / 3 % 3], values[k / 9] };
            for (uint32_t c = 0; c < 3; c++) {
                in[c][i] = three[c];
            }
            wanted[0][i] = logic_of(IVM__AND, three, 3);
            wanted[1][i] = logic_of(IVM__OR, three, 3);
        }
        for (uint32_t c = 0; c < 3; c++) {
            wides(c, IVM_BOOL, in[c]);
        }
        compute(CALL(IVM__AND, IVM_BOOL, column(0), column(1), column(2)));
        expect_cells(__FILE__, __LINE__, wanted[0]);
        compute(CALL(IVM__OR, IVM_BOOL, column(0), column(1), column(2)));
        expect_cells(__FILE__, __LINE__, wanted[1]);
    }
}

Test(operators_expression_logic, not_and_is_null)
{
    CELLS(0, IVM_BOOL, 0, 1, NIL, 0, 1, NIL, 1, 0);
    compute(call1(IVM__NOT, IVM_BOOL, column(0)));
    EXPECT(1, 0, NIL, 1, 0, NIL, 0, 1);
    compute(call1(IVM__IS_NULL, IVM_BOOL, column(0)));
    EXPECT(0, 0, 1, 0, 0, 1, 0, 0);
    compute(call1(IVM__IS_NOT_NULL, IVM_BOOL, column(0)));
    EXPECT(1, 1, 0, 1, 1, 0, 1, 1);
    vectors[0].nulls = NULL;
    compute(call1(IVM__IS_NOT_NULL, IVM_BOOL, column(0)));
    EXPECT(1, 1, 1, 1, 1, 1, 1, 1);
}

Test(operators_expression_logic, in_is_null_where_a_null_could_decide)
{
    CELLS(0, IVM_INT64, 1, 2, 3, NIL, 1, NIL, 5, 6);
    CELLS(1, IVM_INT64, 1, NIL, 4, 1, NIL, NIL, NIL, 7);
    compute(CALL(IVM__IN, IVM_BOOL, column(0), column(1), literal(IVM_INT64, 1), literal(IVM_INT64, 6)));
    EXPECT(1, NIL, 0, NIL, 1, NIL, NIL, 1);
    compute(CALL(IVM__IN, IVM_BOOL, column(0), literal(IVM_INT64, NIL), column(1)));
    EXPECT(1, NIL, NIL, NIL, NIL, NIL, NIL, NIL);
}

/* ---- Texts ------------------------------------------------------------------------------------------------------------------------------ */

Test(operators_expression_logic, functions_of_strings)
{
    CELLS(0, IVM_STRING, text("Ab c"), NIL, text(""), text("Zo\xc3\xab"), text("@[`{"), text("\xe6\x97\xa5\xe6\x9c\xac"), text("az"),
          text("AZ"));
    CELLS(1, IVM_STRING, text("x"), text("y"), NIL, text(""), text("b"), text("c"), text("d"), text("e"));
    compute(call1(IVM__LOWER, IVM_STRING, column(0)));
    EXPECT_TEXTS("ab c", NULL, "", "zo\xc3\xab", "@[`{", "\xe6\x97\xa5\xe6\x9c\xac", "az", "az");
    compute(call1(IVM__UPPER, IVM_STRING, column(0)));
    EXPECT_TEXTS("AB C", NULL, "", "ZO\xc3\xab", "@[`{", "\xe6\x97\xa5\xe6\x9c\xac", "AZ", "AZ");
    compute(call1(IVM__LENGTH, IVM_INT64, column(0)));
    EXPECT(4, NIL, 0, 3, 4, 2, 2, 2);
    compute(CALL(IVM__CONCAT, IVM_STRING, column(0), literal(IVM_STRING, text("/")), column(1)));
    EXPECT_TEXTS("Ab c/x", NULL, NULL, "Zo\xc3\xab/", "@[`{/b", "\xe6\x97\xa5\xe6\x9c\xac/c", "az/d", "AZ/e");
    compute(call1(IVM__CONCAT, IVM_STRING, column(1)));
    EXPECT_TEXTS("x", "y", NULL, "", "b", "c", "d", "e");
}

Test(operators_expression_logic, strings_compare_by_bytes)
{
    CELLS(0, IVM_STRING, text("a"), text("ab"), text(""), text("\xc3\xab"), text("a"), NIL, text("B"), text("abc"));
    CELLS(1, IVM_STRING, text("b"), text("a"), text("a"), text("z"), text("a"), text("a"), text("a"), text("abd"));
    compute(call2(IVM__LESS, IVM_BOOL, column(0), column(1)));
    EXPECT(1, 0, 1, 0, 0, NIL, 1, 1);
    compute(call2(IVM__GREATER_EQUAL, IVM_BOOL, column(0), column(1)));
    EXPECT(0, 1, 0, 1, 1, NIL, 0, 0);
    compute(call2(IVM__EQUAL, IVM_BOOL, column(0), literal(IVM_STRING, text("a"))));
    EXPECT(1, 0, 0, 0, 1, NIL, 0, 0);
    compute(call2(IVM__GREATEST, IVM_STRING, column(0), column(1)));
    EXPECT_TEXTS("b", "ab", "a", "\xc3\xab", "a", "a", "a", "abd");
    compute(CALL(IVM__LEAST, IVM_STRING, column(0), column(1), literal(IVM_STRING, text("aa"))));
    EXPECT_TEXTS("a", "a", "", "aa", "a", "a", "B", "aa");
}

Test(operators_expression_logic, texts_are_made_for_the_rows_alone_that_need_them)
{
    CELLS(0, IVM_BOOL, 1, 0, 0, 0, 0, 0, 0, 0);
    CELLS(1, IVM_STRING, text("A"), text("B"), text("C"), text("D"), text("E"), text("F"), text("G"), text("H"));
    uint32_t before = texts.count;
    compute(CALL(IVM__CASE, IVM_STRING, column(0), call1(IVM__LOWER, IVM_STRING, column(1)), column(1)));
    EXPECT_TEXTS("a", "B", "C", "D", "E", "F", "G", "H");
    cr_expect_eq(texts.count, before + 1);
}

Test(operators_expression_logic, a_literal_holds_its_text_until_it_is_freed)
{
    const ivm__text *held = (const ivm__text *)(uintptr_t)text("held");
    ivm__expression *node = call1(IVM__UPPER, IVM_STRING, literal(IVM_STRING, (ivm__wide)(uintptr_t)held));
    cr_expect_eq(held->references, 1u);
    ivm__expression_free(node, &memory, &texts);
    cr_expect_eq(held->references, 0u);
    node = CALL(IVM__CONCAT, IVM_STRING, literal(IVM_STRING, (ivm__wide)(uintptr_t)held), NULL);
    cr_expect_null(node);
    cr_expect_eq(held->references, 0u);
}
