/* The operators, one a file, as plan/ makes them. Each create function takes the expressions it is given, whatever the outcome, copies
 * everything else, and gives an operator that the program takes. */
#ifndef IVM__OPERATORS_H
#define IVM__OPERATORS_H

#include "catalog.h"
#include "expression.h"

/* ---- scan: delta(scan T) = delta(T) ---------------------------------------------------------------------------------------------- */
/* Emits the table's delta at its finish(). */
ivm_status ivm__scan_create(ivm__memory *memory, ivm_table *table, ivm__operator **operator) IVM_MUST_CHECK;
/* Emits the table's rows as they were before the step (step->loading must be set). */
ivm_status ivm__scan_load(ivm__operator *scan, ivm__step *step) IVM_MUST_CHECK;
/* The same of a view's rows. */
ivm_status ivm__scan_view_create(ivm__memory *memory, ivm_view *view, ivm__operator **operator) IVM_MUST_CHECK;
ivm__source ivm__scan_source(const ivm__operator *scan);

/* ---- filter: delta(filter R) = filter(delta R) ------------------------------------------------------------------------------------ */
ivm_status ivm__filter_create(ivm__memory *memory, ivm__texts *texts, const ivm_type *types, uint32_t columns_count,
                              ivm__expression *condition, ivm__operator **operator) IVM_MUST_CHECK;

/* ---- project: delta(project R) = project(delta R) ---------------------------------------------------------------------------------- */
ivm_status ivm__project_create(ivm__memory *memory, ivm__texts *texts, ivm__expression **columns, uint32_t columns_count,
                               ivm__operator **operator) IVM_MUST_CHECK;

/* ---- aggregate --------------------------------------------------------------------------------------------------------------------- */
typedef enum ivm__aggregate_function { IVM__COUNT, IVM__SUM, IVM__AVG, IVM__MIN, IVM__MAX } ivm__aggregate_function;

typedef struct ivm__aggregate_spec {
    ivm__aggregate_function function;
    ivm__expression *argument; /* NULL: count of rows */
    ivm__expression *where;    /* NULL: all rows */
    ivm_type type;             /* of the result */
} ivm__aggregate_spec;

/* Emits the group expressions' values, then the aggregates'. `having` reads those; NULL: all groups. Without groups one row always
 * exists. The argument arrays are copied, the expressions taken. As a root it gives the view's result itself: a row a group whose group
 * passes `having`; a group that changes its value is one row gone and one come. */
ivm_status ivm__aggregate_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__expression **groups, uint32_t groups_count,
                                 const ivm__aggregate_spec *aggregates, uint32_t aggregates_count, ivm__expression *having,
                                 ivm__operator **operator) IVM_MUST_CHECK;
ivm__store *ivm__aggregate_result(ivm__operator *aggregate);

/* ---- materialize: a view's rows as a Z-set ----------------------------------------------------------------------------------------- */
/* The root where the operator below keeps no rows of its own. overflow where a row's net weight leaves int64. */
ivm_status ivm__materialize_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                                   ivm__operator **operator) IVM_MUST_CHECK;
ivm__store *ivm__materialize_result(ivm__operator *materialize);

#endif
