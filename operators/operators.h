/* The operators, one a file, as plan/ makes them. Each create function takes the expressions it is given, whatever the outcome, copies
 * everything else, and gives an operator that the program takes. */
#ifndef IVM__OPERATORS_H
#define IVM__OPERATORS_H

#include "catalog.h"
#include "expression.h"
#include "ivm/plan.h"

/* ---- scan: delta(scan T) = delta(T) ---------------------------------------------------------------------------------------------- */
/* Emits the table's delta at its finish(), under the table's heading or an older one; columns dropped since are not carried. */
ivm_status ivm__scan_create(ivm__memory *memory, ivm_table *table, const ivm__heading *heading, ivm__operator **operator) IVM_MUST_CHECK;
/* Emits the table's rows as they were before the step (step->loading must be set). */
ivm_status ivm__scan_load(ivm__operator *scan, ivm__step *step) IVM_MUST_CHECK;
/* The same of a view's rows. */
ivm_status ivm__scan_view_create(ivm__memory *memory, ivm_view *view, ivm__operator **operator) IVM_MUST_CHECK;
ivm__source ivm__scan_source(const ivm__operator *scan);
/* In the step that begins, rows set aside (NULL: none are) come last, with step->aside set. For a scan that only filters and projects part
 * from a join's leaf: the join says so in its begin(). `aside` must last as long as the step. */
void ivm__scan_aside(ivm__operator *scan, const ivm__aside *aside);
/* The scan carries these of its columns alone from now on: what is not read may be dropped, and nobody above may remember it. */
ivm_status ivm__scan_carry(ivm__operator *scan, ivm__memory *memory, const bool *columns) IVM_MUST_CHECK;

/* ---- filter: delta(filter R) = filter(delta R) ------------------------------------------------------------------------------------ */
ivm_status ivm__filter_create(ivm__memory *memory, ivm__texts *texts, const ivm_type *types, uint32_t columns_count,
                              ivm__expression *condition, ivm__operator **operator) IVM_MUST_CHECK;

/* ---- project: delta(project R) = project(delta R) ---------------------------------------------------------------------------------- */
ivm_status ivm__project_create(ivm__memory *memory, ivm__texts *texts, ivm__expression **columns, uint32_t columns_count,
                               ivm__operator **operator) IVM_MUST_CHECK;

/* What its columns are called, for messages; `of` lasts as long as the operator. */
void ivm__project_name(ivm__operator *project, const char *(*name)(const void *of, uint32_t column), const void *of);

/* ---- aggregate --------------------------------------------------------------------------------------------------------------------- */
typedef enum ivm__aggregate_function {
    IVM__COUNT,
    IVM__SUM,
    IVM__AVG,
    IVM__MIN,
    IVM__MAX,
    IVM__COUNT_DISTINCT,
    IVM__SUM_DISTINCT,
    IVM__BOOL_AND,
    IVM__BOOL_OR,
    IVM__VAR_POP,
    IVM__VAR_SAMP,
    IVM__STDDEV_POP,
    IVM__STDDEV_SAMP
} ivm__aggregate_function;

/* Ports of an aggregate whose input may have negative weights: count, sum, avg and the variances take the rows as they are, min, max, bool_and,
 * bool_or and the distinct family those of weight above 0, and a group is there while a row of it has a weight that is not 0. A signs
 * operator below sends all three; where weights cannot be negative everything comes through the first. */
enum { IVM__AGGREGATE_ROWS, IVM__AGGREGATE_PRESENT, IVM__AGGREGATE_SUPPORT };

typedef struct ivm__aggregate_spec {
    ivm__aggregate_function function;
    ivm__expression *argument; /* NULL: count of rows */
    ivm__expression *where;    /* NULL: all rows */
    ivm_type type;             /* of the result */
    const char *name;          /* of its column, for messages; lasts as long as the operator */
} ivm__aggregate_spec;

/* Emits the group expressions' values, then the aggregates'. `having` reads those; NULL: all groups. Without groups one row always
 * exists. The argument arrays are copied, the expressions taken. As a root it gives the view's result itself: a row a group whose group
 * passes `having`; a group that changes its value is one row gone and one come. */
ivm_status ivm__aggregate_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__expression **groups, uint32_t groups_count,
                                 const ivm__aggregate_spec *aggregates, uint32_t aggregates_count, ivm__expression *having,
                                 ivm__operator **operator) IVM_MUST_CHECK;
ivm__store *ivm__aggregate_result(ivm__operator *aggregate);
/* Weights of the input's rows in all groups together, between steps. */
ivm__weight ivm__aggregate_rows(const ivm__operator *aggregate);

/* The same over an input that may have negative weights. */
ivm_status ivm__aggregate_negative(ivm__operator *aggregate) IVM_MUST_CHECK;

/* ---- signs: rows told apart by the signs of their weights ----------------------------------------------------------------------------- */
/* For inputs that may have negative weights. Keeps the input's whole rows with their net weights w and sends, at its finish(), to the ports of its
 * reader that are wanted (UINT32_MAX: not): the rows as they came, what is present (weight w where w > 0), the support (weight 1 where
 * w is not 0). */
typedef struct ivm__signs_ports {
    uint32_t rows, present, support;
} ivm__signs_ports;
ivm_status ivm__signs_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                             ivm__signs_ports ports, ivm__operator **operator) IVM_MUST_CHECK;

/* ---- union_all: delta(A + B) = delta A + delta B ----------------------------------------------------------------------------------------- */
ivm_status ivm__union_all_create(ivm__memory *memory, const ivm_type *types, uint32_t columns_count,
                                 ivm__operator **operator) IVM_MUST_CHECK;

/* ---- set: distinct and the set operations -------------------------------------------------------------------------------------------- */
typedef enum ivm__set_kind {
    IVM__SET_DISTINCT,
    IVM__SET_UNION_ALL, /* no set operator: ivm__union_all_create() */
    IVM__SET_UNION,
    IVM__SET_EXCEPT_ALL,
    IVM__SET_EXCEPT,
    IVM__SET_INTERSECT_ALL,
    IVM__SET_INTERSECT
} ivm__set_kind;
/* One port an input, weights never negative; the weight of a row is a function of its weights in the inputs, folded from left to right. */
ivm_status ivm__set_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__set_kind kind, const ivm_type *types,
                           uint32_t columns_count, uint32_t inputs_count, ivm__operator **operator) IVM_MUST_CHECK;
const char *ivm__set_validate(const ivm__operator *set); /* for tests, between steps: NULL or what is wrong */

/* ---- top_k ----------------------------------------------------------------------------------------------------------------------------- */
typedef struct ivm__order_key {
    ivm__expression *value;
    bool descending, nulls_first;
} ivm__order_key;
typedef struct ivm__top_spec {
    const ivm_type *types;
    uint32_t columns_count;
    ivm__expression **partitions;
    uint32_t partitions_count;
    const ivm__order_key *orders;
    uint32_t orders_count;
    uint64_t limit, offset;
} ivm__top_spec;
/* Weights never negative. Takes the spec's expressions, whatever the outcome. overflow where one cannot be computed for a row that is there. */
ivm_status ivm__top_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__top_spec *spec,
                           ivm__operator **operator) IVM_MUST_CHECK;
const char *ivm__top_validate(const ivm__operator *top); /* for tests, between steps: NULL or what is wrong */

/* ---- outer: left, right, full, semi and anti joins -------------------------------------------------------------------------------------- */
enum { IVM__OUTER_LEFT, IVM__OUTER_RIGHT }; /* ports */
typedef struct ivm__outer_spec {
    ivm_join_kind kind;
    const ivm_type *left_types, *right_types;
    uint32_t left_count, right_count;
    const uint32_t *left_keys, *right_keys; /* paired, of equal types; a null matches nothing */
    uint32_t keys_count;
    ivm__expression *condition; /* over left and right columns, numbered through; NULL: none. Taken. */
} ivm__outer_spec;
ivm_status ivm__outer_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__outer_spec *spec,
                             ivm__operator **operator) IVM_MUST_CHECK;

/* ---- weigh and judge: whether a row inside a plan weighs more than int64 ------------------------------------------------------------------ */
/* Who looks closer where all rows together weigh more: overflow where one row does, by this step's end. Called from weigh's finish(). */
typedef struct ivm__weigher {
    ivm_status (*judge)(void *context, ivm__step *step);
    void *context;
} ivm__weigher;
/* Both pass on what their one input sends; weigh borrows its types. */
ivm_status ivm__weigh_create(ivm__memory *memory, const ivm_type *types, uint32_t columns_count, bool negative, ivm__weigher weigher,
                             ivm__operator **operator) IVM_MUST_CHECK;
/* Whether it is a weigh operator; of one whose weights are not negative, just made: rows of so much weight are there already. */
bool ivm__operator_weighs(const ivm__operator *operator);
void ivm__weigh_begin(ivm__operator *weigh, ivm__weight standing);
ivm_status ivm__judge_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                             ivm__operator **operator) IVM_MUST_CHECK;

/* ---- materialize: a view's rows as a Z-set ----------------------------------------------------------------------------------------- */
/* The root where the operator below keeps no rows of its own. overflow where a row's net weight leaves int64. Weights may be negative only
 * where the plan's may. */
ivm_status ivm__materialize_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                                   ivm__operator **operator) IVM_MUST_CHECK;
ivm__store *ivm__materialize_result(ivm__operator *materialize);

#endif
