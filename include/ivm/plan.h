/* Plans: what a view computes, built by calls or read from JSON.
 *
 * A builder takes the plans and expressions it is given, whatever the outcome. One that fails (no memory, a bad argument) frees them and
 * returns NULL, and every builder passes NULL on, so that one check at ivm_view_create() is enough: its error names the first cause seen
 * by this thread. Strings are copied.
 *
 * Column names: after a scan "alias.column"; after a project or an aggregate the given name; after a set operation the first input's,
 * without alias. A reference may drop the alias where only one column bears the name. A view's own columns have no alias: where two would
 * bear one name it is ambiguous_column, and a project names them.
 *
 * Nulls. In an expression and in a join's condition null is unknown, as in SQL: a comparison with null is null, `and` with a false argument
 * is false, `or` with a true one true. A filter, a join's condition and `having` keep only rows for which they are true, so that null keys
 * never join. Rows and groups are compared with null equal to null: in group_by, distinct, set operations and the order of top_k.
 *
 * Mistakes. Arithmetic on int64 that leaves its range, and a decimal past 38 digits, fail the push with overflow. Division and remainder by
 * zero give null. An expression is computed for the rows that its node has before or after a push, never for other pairs of rows. */
#ifndef IVM_PLAN_H
#define IVM_PLAN_H

#include "ivm/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a view computes. */
typedef struct ivm_plan ivm_plan;
/* A value computed from a row: a column, a literal, a function. */
typedef struct ivm_expr ivm_expr;

/* ---- Expressions ----------------------------------------------------------------------------------------------------------------- */

/* A column by its name, as said above. */
IVM_API ivm_expr *ivm_column(const char *name);
/* The same value for every row. A string is copied. */
IVM_API ivm_expr *ivm_literal(ivm_value value);
/* A function by its name. ivm_call() takes the expressions in the array, which stays the caller's.
 *
 *   + - * /  abs          numbers; - of one argument negates. int64 with int64 gives int64, decimal with decimal or int64 a decimal of 38
 *                         digits (of the larger scale; for * of the sum of both), anything with float64 float64. / always gives float64
 *   div %                 int64, cut towards zero: -7 div 2 is -3, -7 % 2 is -1
 *   = <> < <= > >=  in    bool; numbers of unlike types are compared by value. in: whether the first is equal to one of the others
 *   and or not            bool
 *   is_null is_not_null   bool, never null
 *   coalesce              the first that is not null
 *   case                  when, then, ..., else: the branch of the first condition that is true
 *   least greatest        nulls are passed over: null only where all are
 *   concat                null where one is
 *   lower upper length    of strings: lower and upper change ASCII alone, length counts code points
 *
 * Any argument that is null makes the result null, but for what is said here and above. `and`, `or`, `coalesce`, `in` and `case` compute
 * their arguments from left to right and stop at the one that decides; all others compute all. Mixtures of types that are not said here are
 * type_mismatch when the view is made; a null without a type takes that of what stands beside it. */
IVM_API ivm_expr *ivm_call(const char *function, ivm_expr **arguments, size_t arguments_count);
IVM_API ivm_expr *ivm_call1(const char *function, ivm_expr *a);
IVM_API ivm_expr *ivm_call2(const char *function, ivm_expr *a, ivm_expr *b);
/* bool to int64 or float64; int64 to float64 or decimal; a decimal to float64, or to a decimal of no smaller scale. A value too large for
 * the decimal is an overflow; another cast is a type_mismatch. */
IVM_API ivm_expr *ivm_cast(ivm_expr *value, ivm_type type);
/* Frees an expression that no builder has taken. NULL is fine. */
IVM_API void ivm_expr_free(ivm_expr *expr);

/* ---- Plans ----------------------------------------------------------------------------------------------------------------------- */

/* A table's rows. `alias` NULL: the table's name. */
IVM_API ivm_plan *ivm_plan_scan(ivm_table *table, const char *alias);
/* The same by name, of a table or a view, looked up when the view is made. */
IVM_API ivm_plan *ivm_plan_scan_name(const char *table, const char *alias);
/* A view's rows: a view over a view. */
IVM_API ivm_plan *ivm_plan_scan_view(ivm_view *view, const char *alias);
/* The rows for which the condition is true. */
IVM_API ivm_plan *ivm_plan_filter(ivm_plan *input, ivm_expr *where);

/* Columns one after the other: ivm_plan_project(input, "f.id, d.name") takes columns as they are, ivm_plan_compute() adds one named
 * expression to a project. */
IVM_API ivm_plan *ivm_plan_project(ivm_plan *input, const char *columns);
IVM_API ivm_plan *ivm_plan_compute(ivm_plan *project, const char *name, ivm_expr *value);

/* Inner join. `on`: "f.product_id = p.product_id, f.day = w.day", pairs of columns that must be equal; NULL or "": a cross product.
 * Joins nested in joins are planned as one join of all their leaves, at most IVM_JOIN_LEAVES_MAX. */
IVM_API ivm_plan *ivm_plan_join(ivm_plan *left, ivm_plan *right, const char *on);
IVM_API ivm_plan *ivm_plan_join_many(ivm_plan **inputs, size_t inputs_count, const char *on);
/* Joins of two inputs: INNER, as ivm_plan_join(); those that keep what finds no partner (LEFT, RIGHT, FULL, padded with nulls) or give the
 * left rows that have one (SEMI) or none (ANTI). A condition added to it is part of what makes a partner. */
typedef enum ivm_join_kind { IVM_INNER_JOIN, IVM_LEFT_JOIN, IVM_RIGHT_JOIN, IVM_FULL_JOIN, IVM_SEMI_JOIN, IVM_ANTI_JOIN } ivm_join_kind;
IVM_API ivm_plan *ivm_plan_join_kind(ivm_join_kind kind, ivm_plan *left, ivm_plan *right, const char *on);
/* Adds a further condition to a join. */
IVM_API ivm_plan *ivm_plan_join_where(ivm_plan *join, ivm_expr *where);

/* Groups by `group_by`, names with commas between them; NULL or "": one group that always exists. Then add groups and aggregates one by
 * one: ivm_plan_count() counts rows, ivm_plan_add() computes a function of an argument, and ivm_plan_add_where() lets only the rows for
 * which the condition is true into the aggregate added last. ivm_plan_having() keeps the groups for which a condition over their columns is
 * true. A group whose last row goes is gone.
 * Functions: count (of values that are not null), sum, avg, min, max, count_distinct, sum_distinct, var_pop, var_samp, stddev_pop,
 * stddev_samp, bool_and, bool_or. Nulls are passed over. Over no values a count is 0, any other null; var_samp and stddev_samp of one value
 * are null too. Counts are int64; sum, min and max have their argument's type, sums of decimals 38 digits; avg, variances and deviations are
 * float64. Sums of int64 and decimals are exact or an overflow; a sum of float64 is the correctly rounded sum of what is in the group now, and
 * avg, variances and deviations are computed from exact sums and rounded once. */
IVM_API ivm_plan *ivm_plan_aggregate(ivm_plan *input, const char *group_by);
IVM_API ivm_plan *ivm_plan_group(ivm_plan *aggregate, const char *name, ivm_expr *value);
IVM_API ivm_plan *ivm_plan_count(ivm_plan *aggregate, const char *name);
IVM_API ivm_plan *ivm_plan_add(ivm_plan *aggregate, const char *name, const char *function, ivm_expr *argument);
IVM_API ivm_plan *ivm_plan_add_where(ivm_plan *aggregate, ivm_expr *where);
IVM_API ivm_plan *ivm_plan_having(ivm_plan *aggregate, ivm_expr *where);

/* Each row once, however often it is there. */
IVM_API ivm_plan *ivm_plan_distinct(ivm_plan *input);
/* Two inputs or more of equal column types, folded from left to right: UNION, EXCEPT and INTERSECT give each row once; UNION_ALL, EXCEPT_ALL
 * and INTERSECT_ALL count copies. Columns are named as the first input's. */
typedef enum ivm_set_operation { IVM_UNION_ALL, IVM_UNION, IVM_EXCEPT_ALL, IVM_EXCEPT, IVM_INTERSECT_ALL, IVM_INTERSECT } ivm_set_operation;
IVM_API ivm_plan *ivm_plan_set(ivm_set_operation operation, ivm_plan **inputs, size_t inputs_count);

/* The first rows of each partition in an order: `offset` are passed over, then `limit` kept, copies counted. Ties go by the whole row,
 * ascending, nulls last. Partitions and orders are added one by one. */
IVM_API ivm_plan *ivm_plan_top_k(ivm_plan *input, uint64_t limit, uint64_t offset);
IVM_API ivm_plan *ivm_plan_partition_by(ivm_plan *top_k, ivm_expr *value);
IVM_API ivm_plan *ivm_plan_order_by(ivm_plan *top_k, ivm_expr *value, bool descending, bool nulls_first);

/* Frees a plan that no builder and no view has taken. NULL is fine. */
IVM_API void ivm_plan_free(ivm_plan *plan);

/* Reads a plan from JSON. Every form stands in tests/scenario.md, under "Plans" and "Values" (of the sources; also in share/doc/ivm where
 * ivm is installed). The caller owns *plan. invalid_plan (unknown_table of a scan without a name) says what is wrong; unsupported where the
 * library was built without JSON. A member that the format does not have, a misspelled one above all, is invalid_plan: the message names it
 * and the operator. */
IVM_API ivm_status ivm_plan_from_json(const char *text, size_t size, ivm_plan **plan, ivm_error *error) IVM_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
