/* One change at a time against operators over many rows (`ivm bench operators`): operator_tables.c keeps the tables and pushes changes,
 * operator_plans.c has a plan for each operator, operators.c measures. */
#ifndef IVM_BENCH_OPERATORS_H
#define IVM_BENCH_OPERATORS_H

#include "ivm/ivm.h"
#include "measure.h"

/* ---- Tables (operator_tables.c) -------------------------------------------------------------------------------------------------- */

#define PARTNERS 8 /* rows of f that refer to one row of d */

/* f (id, k, v, x, rank), keyed by id, and d (id, a), keyed by id, one row of it for PARTNERS rows of f. v and a are random and below the
 * count of f's rows, so that most values are there once or twice; x is a random double; ranks are distinct and those of f's rows that are
 * there are one span. */
typedef struct operator_tables {
    ivm_engine *engine;
    ivm_table *f, *d;
    uint32_t rows, d_rows;
    int64_t *v, *a, *rank;
    double *x;
    uint32_t *ranked; /* the row of rank r stands at r modulo the count */
    int64_t rank_first;
    random_state random;
} operator_tables;

void operator_tables_open(operator_tables *tables, uint32_t rows);
void operator_tables_close(operator_tables *tables);

/* Which row a change takes away and brings back with new values: any of f, any of d, or the one of f with the smallest rank, which comes
 * back with the greatest. */
typedef enum changed_row { ANY_ROW, PARTNER_ROW, FIRST_ROW } changed_row;

/* Nanoseconds of a push (and of the refresh of `deferred`, unless NULL): of one that deletes, and of one that inserts, halved; of the first
 * row only of the deletion. Adds to *changes how many rows of views changed. */
double operator_change(operator_tables *tables, changed_row which, ivm_view *deferred, uint64_t *changes);

/* Ends the process with one line if the status is not IVM_OK. */
void operator_must(ivm_status status, const ivm_error *error);

/* ---- Plans (operator_plans.c) -------------------------------------------------------------------------------------------------------- */

typedef struct operator_case {
    const char *name;
    ivm_plan *(*plan)(void);  /* NULL: the tables alone */
    ivm_plan *(*under)(void); /* of a view "under" that the plan reads */
    changed_row which;
    bool deferred;
} operator_case;
extern const operator_case operator_cases[]; /* ends with a NULL name */

#endif
