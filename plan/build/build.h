/* Building, inside: what build*.c and json*.c share. Not for other files.
 *
 * Plans and expressions belong to no engine: their memory is malloc's, through one ivm__memory of their own. An array of n items has
 * room for the next power of two, so that its count alone tells its size. */
#ifndef IVM__BUILD_H
#define IVM__BUILD_H

#include "plan.h"

extern ivm__memory ivm__builder_memory;

/* ---- Causes (build_memory.c) ----------------------------------------------------------------------------------------------------------- */

void ivm__builder_fail_memory(void);
/* Sets another cause (status IVM_OK: none) and gives the one that was. */
ivm_error ivm__builder_cause_exchange(ivm_error cause);

/* ---- Pieces (build_memory.c, build_expr.c); NULL with the cause set where memory ends ----------------------------------------------------------------- */

char *ivm__builder_text(const char *text, size_t size);
void ivm__builder_text_free(char *text);
/* The array with room for one item more than count. */
void *ivm__builder_grow(void *array, size_t count, size_t item_size);
void ivm__builder_array_free(void *array, size_t count, size_t item_size);
/* A column by a name that does not end with a null byte. */
ivm_expr *ivm__expr_column(const char *name, size_t size);

/* ---- Plans (build*.c); like the public builders they take the plan and give it back, or NULL ------------------------------------------- */

ivm_plan *ivm__plan_drop(ivm_plan *plan); /* frees it and gives NULL */
/* A plan over one input, and over two or more, which are taken, whatever the outcome. */
ivm_plan *ivm__plan_over(ivm__plan_op op, const char *builder, ivm_plan *input);
ivm_plan *ivm__plan_many(ivm__plan_op op, const char *builder, ivm_plan **inputs, size_t inputs_count);
/* A plan that a builder adds to must be there and of the right op. */
bool ivm__plan_is(const ivm_plan *plan, ivm__plan_op op, const char *builder, const char *wanted);
/* One condition more: all must be true. Takes it, whatever the outcome. */
bool ivm__plan_where_add(ivm_plan *plan, ivm_expr *where);
/* Takes the column's pieces, whatever the outcome. */
bool ivm__plan_column_add(ivm__plan_column **columns, size_t *count, ivm__plan_column column);
void ivm__plan_column_deinit(ivm__plan_column *column);
/* A named expression as one more column; takes it. */
ivm_plan *ivm__plan_name(ivm_plan *plan, const char *builder, const char *name, ivm_expr *value);
/* The list's names as plain columns. */
bool ivm__plan_keep_all(ivm_plan *plan, const char *builder, const char *list);
bool ivm__list_is_blank(const char *list); /* NULL is */
/* A plain column as one more of a project's columns or an aggregate's groups. */
ivm_plan *ivm__plan_keep(ivm_plan *plan, const char *name, size_t size);
/* An aggregate of this name without an argument: whether the function is one of rows is for the check to say. */
ivm_plan *ivm__plan_add_rows(ivm_plan *aggregate, const char *name, const char *function);
/* One more pair that a join equates. */
ivm_plan *ivm__plan_equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size);

#endif
