/* The oracle in C: what an engine must hold, computed from scratch by loops over arrays of values. It shares nothing with the engine but
 * include/ivm: values, types, names of kinds and statuses.
 *
 *     naive_pool (memory) -> naive_plan (a plan, made by hand) -> naive_plan_build() -> ivm_plan
 *                                      |
 *     naive_database (tables, facts, views) -> naive_push(), naive_refresh() -> naive_view.rows
 *
 * Every view is its plan computed anew after each push. Weights are 128 bits wide inside and judged as int64 at each node of a plan. Cost does
 * not matter: joins are nested loops, rows are sorted to be added up.
 *
 * What it cannot compute exactly it does not guess: sums of floats that are no small dyadic numbers, numbers past 128 bits, more than
 * NAIVE_ROWS_MAX rows. It then says NAIVE_UNJUDGED, and whatever an engine says is right. */
#ifndef NAIVE_H
#define NAIVE_H

#include "ivm/ivm.h"

typedef __int128 naive_int;

/* An ivm_status or this. */
#define NAIVE_UNJUDGED IVM_STATUS_COUNT
#define NAIVE_ROWS_MAX 20000u
#define NAIVE_ROWS_KEPT_MAX 2000u /* of what a node gives: enough for what two of them come to */
#define NAIVE_KEY_MAX 4u          /* columns of a key, pairs of a fact */

#define NAIVE_TRY(call)                                                                                                                    \
    do {                                                                                                                                   \
        ivm_status naive_status = (call);                                                                                                  \
        if (naive_status != IVM_OK) {                                                                                                      \
            return naive_status;                                                                                                           \
        }                                                                                                                                  \
    } while (0)

/* ---- Memory (pool.c) ------------------------------------------------------------------------------------------------------------- */

/* Given out piece by piece, freed at once. All zero is an empty pool. A process that gets no memory ends. */
typedef struct naive_pool {
    struct naive_block *blocks;
} naive_pool;
void *naive_take(naive_pool *pool, size_t size); /* zeroed */
char *naive_text(naive_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void naive_pool_free(naive_pool *pool);
/* As realloc() of `count` items. */
void *naive_grow(void *items, size_t count, size_t size);

/* ---- Values (value.c) ------------------------------------------------------------------------------------------------------------ */

/* Order of two values of one type: nulls last, NaN above every number. */
int naive_compare(const ivm_value *a, const ivm_value *b);
/* An int64's or a decimal's integer; its scale is that of the type. */
naive_int naive_integer(const ivm_value *value);
int naive_scale(ivm_type type);
/* An int64 or decimal value of the type; overflow if it does not fit. */
ivm_status naive_number(ivm_type type, naive_int integer, ivm_value *value);
ivm_value naive_float(double value); /* without a -0.0 */
/* Any number, correctly rounded. */
double naive_double(const ivm_value *value);
/* numerator / denominator, correctly rounded; denominator > 0. */
double naive_quotient(naive_int numerator, naive_int denominator);
/* 10^exponent, at most 38. */
naive_int naive_power(int exponent);
/* The value in a column of the type: as it is, or an int64 that is exact as float64 or decimal. type_mismatch. */
ivm_status naive_column_value(ivm_type type, const ivm_value *value, ivm_value *out);
/* a*b and a+b; false past 128 bits. */
bool naive_multiply(naive_int a, naive_int b, naive_int *product);
bool naive_add(naive_int a, naive_int b, naive_int *sum);

/* ---- Relations (relation.c) ------------------------------------------------------------------------------------------------------ */

/* Rows with weights. Cells of row r begin at r * width. Strings are of a pool that lives longer. */
typedef struct naive_relation {
    size_t width, count, capacity;
    ivm_value *cells;
    naive_int *weights;
} naive_relation;
void naive_relation_init(naive_relation *relation, size_t width);
void naive_relation_free(naive_relation *relation);
/* Adds a row; overflow past NAIVE_ROWS_MAX is NAIVE_UNJUDGED. */
ivm_status naive_row_add(naive_relation *relation, const ivm_value *cells, naive_int weight);
ivm_status naive_rows_add(naive_relation *relation, const naive_relation *rows, naive_int times);
/* Sorts, adds equal rows up, drops zeros. */
void naive_consolidate(naive_relation *relation);
/* overflow unless all weights are int64. */
ivm_status naive_weights_check(const naive_relation *relation);
const ivm_value *naive_row(const naive_relation *relation, size_t row);
int naive_rows_compare(const ivm_value *a, const ivm_value *b, size_t width);
/* The weight of a row in a relation; 0 if it is not there. */
naive_int naive_weight(const naive_relation *relation, const ivm_value *cells);
bool naive_relations_equal(const naive_relation *a, const naive_relation *b);

/* ---- Plans (plan.c, build.c, bind.c) --------------------------------------------------------------------------------------------- */

typedef struct naive_column {
    const char *name; /* "alias.column" or "column" */
    ivm_type type;
} naive_column;

typedef enum naive_kind { NAIVE_COLUMN, NAIVE_LITERAL, NAIVE_CAST, NAIVE_CALL } naive_kind;
typedef enum naive_function {
    NAIVE_ADD,
    NAIVE_SUBTRACT,
    NAIVE_NEGATE,
    NAIVE_MULTIPLY,
    NAIVE_DIVIDE,
    NAIVE_DIV,
    NAIVE_REMAINDER,
    NAIVE_EQUAL,
    NAIVE_UNEQUAL,
    NAIVE_LESS,
    NAIVE_AT_MOST,
    NAIVE_MORE,
    NAIVE_AT_LEAST,
    NAIVE_AND,
    NAIVE_OR,
    NAIVE_NOT,
    NAIVE_IS_NULL,
    NAIVE_IS_NOT_NULL,
    NAIVE_COALESCE,
    NAIVE_CASE,
    NAIVE_IN,
    NAIVE_LEAST,
    NAIVE_GREATEST,
    NAIVE_ABS,
    NAIVE_CONCAT,
    NAIVE_LOWER,
    NAIVE_UPPER,
    NAIVE_LENGTH,
    NAIVE_FUNCTIONS_COUNT
} naive_function;
extern const char *const naive_function_names[NAIVE_FUNCTIONS_COUNT];

typedef struct naive_expr {
    naive_kind kind;
    const char *name;  /* a column's */
    ivm_value literal; /* its type is that of the value; 0: an untyped null */
    ivm_type target;   /* of a cast */
    naive_function function;
    struct naive_expr **arguments;
    size_t arguments_count;
    /* Bound: */
    ivm_type type; /* 0: an untyped null */
    size_t position;
} naive_expr;

typedef struct naive_named {
    const char *name; /* NULL: of a plain column, which is then called as it is without its alias */
    naive_expr *value;
} naive_named;

typedef enum naive_aggregate_function {
    NAIVE_COUNT,
    NAIVE_SUM,
    NAIVE_AVG,
    NAIVE_MIN,
    NAIVE_MAX,
    NAIVE_COUNT_DISTINCT,
    NAIVE_SUM_DISTINCT,
    NAIVE_VAR_POP,
    NAIVE_VAR_SAMP,
    NAIVE_STDDEV_POP,
    NAIVE_STDDEV_SAMP,
    NAIVE_BOOL_AND,
    NAIVE_BOOL_OR,
    NAIVE_AGGREGATES_COUNT
} naive_aggregate_function;
extern const char *const naive_aggregate_names[NAIVE_AGGREGATES_COUNT];

typedef struct naive_aggregate {
    const char *name;
    naive_aggregate_function function;
    naive_expr *argument; /* NULL: rows are counted */
    naive_expr *where;    /* may be NULL */
    ivm_type type;        /* bound */
} naive_aggregate;

typedef struct naive_pair {
    const char *left, *right;
    /* Bound: positions in the join's heading, and the type in which they are compared. */
    size_t a, b;
    ivm_type type;
} naive_pair;

typedef struct naive_order {
    naive_expr *value;
    bool descending, nulls_first;
} naive_order;

typedef enum naive_operator {
    NAIVE_SCAN,
    NAIVE_FILTER,
    NAIVE_PROJECT,
    NAIVE_JOIN,
    NAIVE_AGGREGATE,
    NAIVE_DISTINCT,
    NAIVE_SET,
    NAIVE_TOP_K
} naive_operator;

typedef struct naive_plan {
    naive_operator op;
    struct naive_plan **inputs;
    size_t inputs_count;
    const char *table, *alias; /* of a scan; alias NULL: the table's name */
    naive_expr *where;         /* of a filter or a join; what a group must hold (having); may be NULL but in a filter */
    naive_named *columns;      /* of a project, or the groups of an aggregate */
    size_t columns_count;
    naive_aggregate *aggregates;
    size_t aggregates_count;
    ivm_join_kind join;
    naive_pair *on;
    size_t on_count;
    ivm_set_operation set;
    naive_expr **partitions;
    size_t partitions_count;
    naive_order *orders;
    size_t orders_count;
    uint64_t limit, offset;
    /* Bound: */
    naive_column *heading;
    size_t width;
    uint32_t *ids; /* a scan's columns */
} naive_plan;

struct naive_database;
naive_plan *naive_plan_make(naive_pool *pool, naive_operator op, size_t inputs_count);
naive_expr *naive_expr_column(naive_pool *pool, const char *name);
naive_expr *naive_expr_literal(naive_pool *pool, ivm_value value);
naive_expr *naive_expr_cast(naive_pool *pool, naive_expr *value, ivm_type type);
/* Arguments are to be filled in by the caller. */
naive_expr *naive_expr_call(naive_pool *pool, naive_function function, size_t arguments_count);
/* A column's name without its alias. */
const char *naive_bare_name(const char *name);

/* Looks names up and gives types, from the leaves up; what is bound already is left alone. The statuses of ivm_view_create(). */
ivm_status naive_bind(naive_pool *pool, const struct naive_database *database, naive_plan *plan);
/* An expression over a heading (bind_expression.c). `condition`: must be a bool. */
ivm_status naive_bind_expr(naive_expr *expr, const naive_column *heading, size_t width);
ivm_status naive_bind_condition(naive_expr *expr, const naive_column *heading, size_t width);
ivm_status naive_find_column(const char *name, const naive_column *heading, size_t width, size_t *position);
/* The common type of two operands, 0 for an untyped null. type_mismatch. */
ivm_status naive_unify(ivm_type a, ivm_type b, ivm_type *type);

/* The same plan through the library's builders. NULL as they give it. */
ivm_plan *naive_plan_build(const naive_plan *plan);
/* Whether it reads a table or view of this name itself. */
bool naive_plan_reads(const naive_plan *plan, const char *name);

/* ---- Computing (compute*.c, join.c, aggregate.c, set.c, evaluate.c) --------------------------------------------------------------- */

/* The value of a bound expression for a row. Strings it makes are of the pool. overflow, NAIVE_UNJUDGED. */
ivm_status naive_compute(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value);
/* Functions that compute all their arguments first (compute_function.c). */
ivm_status naive_call(naive_pool *pool, const naive_expr *expr, const ivm_value *arguments, ivm_value *value);
/* From one type to another that naive_unify() or a cast allows. */
ivm_status naive_convert(const ivm_value *value, ivm_type from, ivm_type to, ivm_value *out);
/* Whether a condition is true; NULL is. */
ivm_status naive_holds(naive_pool *pool, const naive_expr *condition, const ivm_value *row, bool *holds);

/* What a bound plan gives. `part`: it is an inner join within another, whose weights are not judged. The caller frees *out, which is nothing
 * after an error. */
ivm_status naive_evaluate(naive_pool *pool, const struct naive_database *database, const naive_plan *plan, bool part, naive_relation *out);
/* The operators, over what their inputs gave. They add to *out, consolidated by the caller. */
ivm_status naive_join(naive_pool *pool, const naive_plan *plan, const naive_relation *inputs, naive_relation *out);
ivm_status naive_aggregate_rows(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out);
ivm_status naive_set(const naive_plan *plan, const naive_relation *inputs, naive_relation *out);
ivm_status naive_top_k(naive_pool *pool, const naive_plan *plan, const naive_relation *input, naive_relation *out);

/* One aggregate over values (none of them null, all of `type`) with their weights (accumulate.c). */
ivm_status naive_accumulate(naive_aggregate_function function, ivm_type type, const naive_relation *values, ivm_value *out);

/* ---- Databases (database.c, stage.c, push.c) -------------------------------------------------------------------------------------- */

typedef struct naive_table_column {
    const char *name;
    ivm_type type;
    bool not_null;
    uint32_t id; /* for good: none is used twice */
} naive_table_column;

typedef struct naive_table {
    const char *name;
    naive_table_column *columns;
    size_t columns_count;
    size_t key[NAIVE_KEY_MAX];
    size_t key_count;
    bool append_only, allow_negative, transient;
    bool came;           /* a push has changed it */
    naive_relation rows; /* of a transient table too: all that ever came */
} naive_table;

typedef struct naive_fact {
    const char *child, *parent;
    uint32_t child_ids[NAIVE_KEY_MAX]; /* paired with: */
    uint32_t parent_ids[NAIVE_KEY_MAX];
    size_t count;
    ivm_trust trust;
} naive_fact;

typedef struct naive_view {
    const char *name;
    naive_plan *plan;
    bool deferred;
    bool unjudged; /* what it holds is not known; `rows` is empty */
    naive_relation rows, changes;
} naive_view;

/* Everything in order of declaration. Names, plans and strings are of the pool, which copies share. */
typedef struct naive_database {
    naive_pool *pool;
    naive_table *tables;
    size_t tables_count;
    naive_fact *facts;
    size_t facts_count;
    naive_view *views;
    size_t views_count;
    uint32_t ids;
} naive_database;

void naive_database_copy(const naive_database *database, naive_database *copy);
void naive_database_free(naive_database *database); /* but for the pool */
naive_table *naive_table_find(const naive_database *database, const char *name);
naive_view *naive_view_find(const naive_database *database, const char *name);
const naive_relation *naive_source(const naive_database *database, const char *name);

/* As the library's functions of these names; the statuses too, where more than one could be given any of them. */
ivm_status naive_table_create(naive_database *database, const char *name, const ivm_table_options *options, const char *const *key,
                              size_t key_count);
ivm_status naive_table_drop(naive_database *database, const char *name);
ivm_status naive_fact_declare(naive_database *database, const char *child, const char *const *columns, const char *parent,
                              const char *const *parent_columns, size_t count, ivm_trust trust);
void naive_fact_remove(naive_database *database, size_t fact);
/* Columns come at the end, null in all rows; the facts that name a dropped one go with it. What may be dropped is not judged here. */
void naive_column_add(naive_database *database, naive_table *table, const char *name, ivm_type type);
void naive_column_rename(naive_table *table, size_t column, const char *name);
void naive_column_drop(naive_database *database, naive_table *table, size_t column);
size_t naive_table_column_find(const naive_table *table, uint32_t id); /* columns_count: none */
/* Rows of transient tables are taken as there, so that what reads them can be computed; whether an engine refuses is not judged. */
ivm_status naive_view_create(naive_database *database, const char *name, naive_plan *plan, bool deferred);
ivm_status naive_view_drop(naive_database *database, const char *name);
/* Whether the plan reads the table or view of this name, through views too. */
bool naive_reads(const naive_database *database, const naive_plan *plan, const char *name);

typedef struct naive_change {
    const char *table;
    ivm_change change;
    int64_t weight;
    const ivm_value *values;
    size_t values_count;
} naive_change;

/* The statuses with which a batch may fail, as bits: it must if `must` is not 0, with one of either; it may with one of `may`. `undefined`: it
 * breaks a promise (a foreign key relied on, a transient row that never came), so that what follows is anybody's guess. */
typedef struct naive_verdict {
    uint32_t must, may;
    bool undefined;
} naive_verdict;
#define NAIVE_BIT(status) ((uint32_t)1 << (status))

/* Applies a batch to the tables (stage.c); deltas[t] is what it comes to for table t, for the caller to free. */
naive_verdict naive_stage(naive_database *database, const naive_change *changes, size_t changes_count, naive_relation *deltas);
/* That and facts and views (push.c). After a verdict with `must` the database is to be thrown away: push to a copy. A view that cannot be
 * judged is marked so. */
naive_verdict naive_push(naive_database *database, const naive_change *changes, size_t changes_count);
ivm_status naive_refresh(naive_database *database, const char *name);
/* The keys that children of a fact wait for, each with as many weights as rows wait. */
void naive_orphans(const naive_database *database, const naive_fact *fact, naive_relation *keys);

#endif
