/* An engine on the counting allocator with tables declared in one line each, for the tests of plan/. */
#ifndef TEST_PLAN_FIXTURE_H
#define TEST_PLAN_FIXTURE_H

#include "allocator.h"
#include "plan.h"

typedef struct fixture {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error; /* of the last call that failed */
} fixture;

void fixture_open(fixture *it);
/* Closes the engine and asserts that nothing is left of it. */
void fixture_close(fixture *it);
/* "id int64 not null; price decimal(10,2)"; key as ivm_table_options has it. */
ivm_table *fixture_table(fixture *it, const char *name, const char *columns, const char *key);
/* The same with all other options of `like`. */
ivm_table *fixture_table_like(fixture *it, const char *name, const char *columns, const ivm_table_options *like);
/* By name; they must be there. */
ivm_table *fixture_table_find(fixture *it, const char *name);
ivm_view *fixture_view_find(fixture *it, const char *name);

/* Frees the plan and the cause a builder left, if it is NULL. */
ivm_status fixture_check(fixture *it, ivm_plan *plan, ivm__node **node);
/* Asserts that the plan, which is freed, is refused with this code by a builder or the check, with `part` in the message, and that no
 * memory is left of it. */
void fixture_refuses(fixture *it, ivm_plan *plan, ivm_status status, const char *part);
/* Asserts that the plan, which is freed, is accepted. */
ivm__node *fixture_accepts(fixture *it, ivm_plan *plan);

/* The snapshot's rows, closed, sorted, as "2*1,a 1*2,null": weight, then the values. Valid until the next call. */
const char *fixture_rows(ivm_snapshot *snapshot);
const char *fixture_view(fixture *it, ivm_view *view);
const char *fixture_changes(fixture *it, ivm_view *view);
/* Makes a view that must come about. */
ivm_view *fixture_make(fixture *it, const char *name, ivm_plan *plan);
ivm_view *fixture_make_with(fixture *it, const char *name, ivm_plan *plan, const ivm_view_options *options);
/* Declares a foreign key of this trust, which must be one. */
ivm_fact *fixture_fact(fixture *it, ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust);
/* Pushes rows of a change, written as "1,a 2,null", one batch; weights of IVM_INSERT and IVM_DELETE. */
ivm_status fixture_push(fixture *it, ivm_table *table, ivm_change change, const char *rows);

ivm_plan *scan_of(const char *table, const char *alias);
ivm_expr *call_of(const char *function, const char *column, int64_t literal);

#endif
