/* What explain tells, parsed and checked: every documented member is there, of its type, and agrees with the others. */
#ifndef TEST_PLAN_EXPLAIN_CASE_H
#define TEST_PLAN_EXPLAIN_CASE_H

#include <jansson.h>

#include "fixture.h"

/* The text, which the caller frees with ivm_text_free(). */
char *explain_told(fixture *it, ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format);
/* The JSON, with everything checked that can be without knowing what it is about: leaves, facts, counts and masks, terms. The options of
 * the planner must be those of the step. The caller gives it back with json_decref(). */
json_t *explain_checked(fixture *it, ivm_view *view, const ivm_explain_options *stated);
/* The first join. */
const json_t *explain_join(const json_t *root);
const char *explain_text_of(const json_t *object, const char *name);
/* Asserts that a member of the object equals this JSON. */
void explain_member(const json_t *object, const char *name, const char *want);

#endif
