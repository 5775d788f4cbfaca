/* See shop.h. */
#include "shop.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

fixture shop;
ivm_table *sale, *product;

void shop_open_with(const char *more_of_sale, const char *more_of_product)
{
    char columns[128];
    fixture_open(&shop);
    cr_assert_lt(snprintf(columns, sizeof columns, "product int64; amount int64%s", more_of_sale), (int)sizeof columns);
    sale = fixture_table(&shop, "sale", columns, NULL);
    cr_assert_lt(snprintf(columns, sizeof columns, "id int64; name string%s", more_of_product), (int)sizeof columns);
    product = fixture_table(&shop, "product", columns, "id");
}

void shop_open(void)
{
    shop_open_with("", "");
}

void shop_close(void)
{
    fixture_close(&shop);
}

void push(ivm_table *table, ivm_change change, const char *rows)
{
    cr_assert_eq(fixture_push(&shop, table, change, rows), IVM_OK, "%s", shop.error.message);
}

void create_fails(const char *name, ivm_plan *plan, ivm_status status, const char *part)
{
    ivm_view *view = NULL;
    ivm_status given = ivm_view_create(shop.engine, name, plan, NULL, &view, &shop.error);
    cr_assert_eq(given, status, "%s, not %s: %s", ivm_status_name(given), ivm_status_name(status), shop.error.message);
    cr_assert_eq(shop.error.status, status);
    cr_assert_not_null(strstr(shop.error.message, part), "\"%s\" is not in \"%s\"", part, shop.error.message);
    cr_assert_null(view);
}
