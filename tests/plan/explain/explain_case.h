/* What explain tells, parsed and checked: every documented member is there, of its type, and agrees with the others. */
#ifndef TEST_PLAN_EXPLAIN_CASE_H
#define TEST_PLAN_EXPLAIN_CASE_H

#include <jansson.h>

#include "shop.h"

/* The first join. */
const json_t *explain_join(const json_t *root);
const char *explain_text_of(const json_t *object, const char *name);
/* Asserts that a member of the object equals this JSON. */
void explain_member(const json_t *object, const char *name, const char *want);

/* ---- A star --------------------------------------------------------------------------------------------------------------------------- */

/* The shop with sale(product, day, amount), a bag, with product(id, name) and day(id, week), which its facts lead to, and a view that joins the three
 * as s, p and d. */
extern ivm_table *day;
extern ivm_view *star;

void star_open(void);
void star_close(void);
ivm_plan *star_plan(void);
/* A fact to the parent's id, relied on. */
ivm_fact *declare(ivm_table *child, const char *columns, ivm_table *parent);
void set_planner(ivm_fk_pruning pruning, ivm_join_rule rule, bool run_empty);
/* Behind the terms of a text. */
extern const char explain_legend[];
/* The text, which the caller frees with ivm_text_free(). */
char *explain(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format);
/* The JSON, with everything checked that can be without knowing what it is about: leaves, facts, counts and masks, terms. The options of
 * the planner must be those of the step. The caller gives it back with json_decref(). */
json_t *explained(ivm_view *view, const ivm_explain_options *stated);
const json_t *leaf_at(const json_t *join, size_t leaf);

#endif
