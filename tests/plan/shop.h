/* The shop: sales of products, for tests that drive views through the public API. A test has one. */
#ifndef TEST_PLAN_SHOP_H
#define TEST_PLAN_SHOP_H

#include "fixture.h"

extern fixture shop;
extern ivm_table *sale, *product;

/* sale(product, amount), a bag, and product(id, name) by its id. */
void shop_open(void);
/* The same with more columns behind these, as "; note string". */
void shop_open_with(const char *more_of_sale, const char *more_of_product);
void shop_close(void);

/* Pushes that must go through. */
void push(ivm_table *table, ivm_change change, const char *rows);
/* Asserts that there can be no such view, for this reason. */
void create_fails(const char *name, ivm_plan *plan, ivm_status status, const char *part);

#endif
