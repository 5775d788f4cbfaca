/* Tables and looks at trees, for tests of checking plans. */
#ifndef TEST_PLAN_CHECK_CASE_H
#define TEST_PLAN_CHECK_CASE_H

#include "fixture.h"

extern fixture it;

/* t(id, name) and u(id, t, ok), both by id, and n(i, f, d, e, w, s) of every kind of number, a bag. */
void check_open(void);
void check_close(void);
ivm_plan *t_and_u(const char *on);
void column_is(const ivm__node *node, uint32_t column, const char *name, ivm_type type);
/* "101": the first and the last of three columns. */
void needed_is(const ivm__node *node, const char *needed);

#endif
