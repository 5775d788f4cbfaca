/* Building, inside: what build.c, build_expr.c and json.c share. Not for other files.
 *
 * Plans and expressions belong to no engine: their memory is malloc's, through one ivm__memory of their own. An array of n items has
 * room for the next power of two, so that its count alone tells its size. */
#ifndef IVM__BUILD_H
#define IVM__BUILD_H

#include "plan.h"

#define IVM__BUILDER_DEPTH_MAX 1000u /* expressions in expressions, plans in plans; all walks are recursive */

extern ivm__memory ivm__builder_memory;

/* ---- Causes (build_expr.c) ----------------------------------------------------------------------------------------------------------- */

/* Whether a builder of this thread has failed and its cause was not taken. */
bool ivm__builder_has_failed(void);
void ivm__builder_fail_memory(void);
/* Sets another cause (status IVM_OK: none) and gives the one that was. */
ivm_error ivm__builder_cause_exchange(ivm_error cause);

/* ---- Pieces (build_expr.c); NULL with the cause set where memory ends ----------------------------------------------------------------- */

char *ivm__builder_text(const char *text, size_t size);
void ivm__builder_text_free(char *text);
/* The array with room for one item more than count. */
void *ivm__builder_grow(void *array, size_t count, size_t item_size);
void ivm__builder_array_free(void *array, size_t count, size_t item_size);
/* A column by a name that does not end with a null byte. */
ivm_expr *ivm__expr_column(const char *name, size_t size);

/* ---- Plans (build.c); like the public builders they take the plan and give it back, or NULL ------------------------------------------- */

/* A plain column as one more of a project's columns or an aggregate's groups. */
ivm_plan *ivm__plan_keep(ivm_plan *plan, const char *name, size_t size);
/* One more pair that a join equates. */
ivm_plan *ivm__plan_equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size);

#endif
