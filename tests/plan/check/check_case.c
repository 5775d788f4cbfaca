/* See check_case.h. */
#include "check_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

fixture it;

void check_open(void)
{
    fixture_open(&it);
    fixture_table(&it, "t", "id int64; name string", "id");
    fixture_table(&it, "u", "id int64; t int64; ok bool", "id");
    fixture_table(&it, "n", "i int64; f float64; d decimal(10,2); e decimal(12,2); w decimal(38,30); s string", NULL);
}

void check_close(void)
{
    fixture_close(&it);
}

ivm_plan *t_and_u(const char *on)
{
    return ivm_plan_join(scan_of("t", NULL), scan_of("u", NULL), on);
}

void column_is(const ivm__node *node, uint32_t column, const char *name, ivm_type type)
{
    cr_assert_lt(column, node->columns_count);
    cr_assert_str_eq(node->columns[column].name, name);
    char text[IVM_TYPE_TEXT_SIZE];
    ivm_type_format(node->columns[column].type, text);
    cr_assert_eq(node->columns[column].type, type, "%s is %s", name, text);
}

void needed_is(const ivm__node *node, const char *needed)
{
    cr_assert_eq(strlen(needed), node->columns_count);
    for (uint32_t i = 0; i < node->columns_count; i++) {
        cr_assert_eq(node->needed[i], needed[i] == '1', "column %s", node->columns[i].name);
    }
}
