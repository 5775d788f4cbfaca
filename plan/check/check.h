/* Checking, inside: what check*.c, node.c and needed.c share, and view.c with them. */
#ifndef IVM__CHECK_H
#define IVM__CHECK_H

#include "names.h"

typedef struct ivm__check {
    ivm_engine *engine;
    ivm__memory *memory;
    ivm_error *error;
    const ivm__scan_heading *headings; /* of the scans of tables to come, in reading order; NULL: each has its table's as it is now */
    uint32_t headings_left;
} ivm__check;

/* ---- Nodes (node.c): arrays of exact size, zeroed, counts set. Each fails for memory alone; ivm__node_free() takes what is half made. -- */

ivm__node *ivm__node_make(ivm__memory *memory, ivm__plan_op op);
ivm_status ivm__node_columns(ivm__node *node, ivm__memory *memory, uint32_t count) IVM_MUST_CHECK; /* and `needed` */
ivm_status ivm__node_inputs(ivm__node *node, ivm__memory *memory, uint32_t count) IVM_MUST_CHECK;
ivm_status ivm__node_expressions(ivm__node *node, ivm__memory *memory, uint32_t count) IVM_MUST_CHECK;
/* The column takes a copy of the name. */
ivm_status ivm__node_column_set(ivm__node *node, ivm__memory *memory, uint32_t column, const char *name, ivm_type type) IVM_MUST_CHECK;
/* All columns as the other node has them. */
ivm_status ivm__node_columns_copy(ivm__node *node, ivm__memory *memory, const ivm__node *from) IVM_MUST_CHECK;

/* ---- Checking ---------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__check_node(ivm__check *check, const ivm_plan *plan, ivm__node **node) IVM_MUST_CHECK;
/* A condition over these columns: type_mismatch unless it is a bool or an untyped null. */
ivm_status ivm__check_condition(ivm__check *check, const ivm_expr *expr, ivm__names *names, ivm__expression **condition) IVM_MUST_CHECK;
/* No two columns of one name. */
ivm_status ivm__check_twins(ivm__check *check, const ivm__named_column *columns, uint32_t columns_count, const char *advice) IVM_MUST_CHECK;
/* An untyped null becomes one of this type. */
ivm_status ivm__check_settle(ivm__check *check, ivm__expression **expression, ivm_type type) IVM_MUST_CHECK;
/* The plan's condition over the columns of its node, whose first expression it becomes. */
ivm_status ivm__check_where(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;
/* The plan's one input, as the node's. */
ivm_status ivm__check_input(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;
/* A named expression over these columns, as column `at` of the node. */
ivm_status ivm__check_named(ivm__check *check, const ivm__plan_column *named, ivm__names *names, ivm__node *node, uint32_t at,
                            ivm__expression **expression) IVM_MUST_CHECK;

/* Operators, a function each: the node holds what is made so far and is freed by the caller where one fails. */
ivm_status ivm__check_aggregate(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;
ivm_status ivm__check_set(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;
ivm_status ivm__check_top_k(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;
/* An inner join and the inner joins nested in it, as one, or an outer, semi or anti join; the node may become a project above it. */
ivm_status ivm__check_join(ivm__check *check, const ivm_plan *plan, ivm__node *node) IVM_MUST_CHECK;

/* What a join and the inner joins nested in it come to; of an outer join its two inputs. Columns are numbered through all leaves. */
typedef struct ivm__join_pair {
    uint32_t a, b;
    ivm_type type; /* in which they are compared */
} ivm__join_pair;

typedef struct ivm__join_parts {
    ivm__node *leaves[IVM_JOIN_LEAVES_MAX]; /* owned */
    uint32_t leaf_first[IVM_JOIN_LEAVES_MAX];
    uint32_t leaves_count;
    ivm__named_column *columns; /* names are the leaves' */
    uint32_t columns_count, columns_capacity;
    ivm__join_pair *pairs;
    uint32_t pairs_count, pairs_capacity;
    ivm__expression *residual;
    uint32_t *place; /* where unlike pairs were made alike: of each column, its position among the leaves' new columns; else NULL */
} ivm__join_parts;

/* Gives pairs of unlike types computed columns of one type (check_alike.c); pairs and residual are numbered anew. */
ivm_status ivm__join_make_alike(ivm__check *check, ivm__join_parts *parts) IVM_MUST_CHECK;
/* column += shift, or column = place[column] where that is given. */
void ivm__expression_renumber(ivm__expression *expression, uint32_t shift, const uint32_t *place);

/* What can be said of the weights of a node's rows (weights.c); its inputs are marked. */
void ivm__weights_mark(ivm__node *node);
/* Marks what each node's reader needs of it, from the root down (needed.c). */
ivm_status ivm__needed_mark(ivm__node *root, ivm__memory *memory) IVM_MUST_CHECK;

#endif
