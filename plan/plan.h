/* Plans inside: the tree a user builds, the checked tree, the join graph, and how they become a program.
 *
 *     builder or JSON -> ivm_plan -> check (names, types) -> ivm__node -> join graph -> program
 *     per batch:  facts -> edges -> skip mask -> masks or telescoping -> terms
 */
#ifndef IVM__PLAN_H
#define IVM__PLAN_H

#include "ivm/view.h"
#include "join.h"
#include "operators.h"

/* ---- What the user builds (plan/build/build.c, plan/build/json.c) ------------------------------------------------------------------------------- */

/* The numbers of kinds, ops, kinds of join and of set are written in checkpoints: new ones come last. */
typedef enum ivm__expr_kind { IVM__EXPR_COLUMN, IVM__EXPR_LITERAL, IVM__EXPR_CALL, IVM__EXPR_CAST } ivm__expr_kind;

struct ivm_expr {
    ivm__expr_kind kind;
    char *text;      /* column or function name; a string literal's bytes */
    ivm_value value; /* literal; a string borrows `text` */
    ivm_type type;   /* cast */
    ivm_expr **arguments;
    size_t arguments_count;
    uint32_t depth; /* of the tree below and with it */
};

typedef enum ivm__plan_op {
    IVM__PLAN_SCAN,
    IVM__PLAN_FILTER,
    IVM__PLAN_PROJECT,
    IVM__PLAN_JOIN,
    IVM__PLAN_AGGREGATE,
    IVM__PLAN_OUTER, /* left, right, full, semi and anti joins */
    IVM__PLAN_SET,   /* distinct (one input) and the set operations */
    IVM__PLAN_TOP_K
} ivm__plan_op;

/* One order of a top_k. */
typedef struct ivm__plan_order {
    ivm_expr *value;
    bool descending, nulls_first;
} ivm__plan_order;

/* A named expression: a column of a project, a group or an aggregate. `name` NULL: the column's own. */
typedef struct ivm__plan_column {
    char *name;
    ivm_expr *value; /* NULL: count of rows */
    char *function;  /* aggregates */
    ivm_expr *where; /* aggregates */
} ivm__plan_column;

struct ivm_plan {
    ivm__plan_op op;
    char *table, *alias;      /* scan */
    uint64_t table_id;        /* scan by handle; 0: by name */
    const ivm_engine *engine; /* whose handle that was */
    ivm_plan **inputs;
    size_t inputs_count;
    ivm__plan_column *columns; /* project; aggregate: groups */
    size_t columns_count;
    ivm__plan_column *aggregates;
    size_t aggregates_count;
    char **on; /* pairs of names, 2 * on_count */
    size_t on_count;
    ivm_expr *where;              /* filter, join, having */
    uint32_t depth;               /* of the plans below and with it */
    ivm_join_kind kind;           /* join: inner is op IVM__PLAN_JOIN, any other IVM__PLAN_OUTER */
    ivm__set_kind set;            /* set */
    ivm__plan_column *partitions; /* top_k */
    size_t partitions_count;
    ivm__plan_order *orders;
    size_t orders_count;
    uint64_t limit, offset;
};

/* The first cause of a failed builder of this thread, taken: it is empty after. Status IVM_OK where there is none. */
void ivm__builder_cause_take(ivm_error *error);
void ivm__builder_fail(ivm_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- The checked tree (plan/check/check.c, plan/check/check_expression.c) ------------------------------------------------------------------------ */

typedef struct ivm__named_column {
    char *name; /* "alias.column" or a given name */
    ivm_type type;
} ivm__named_column;

/* A column pair that a join equates; positions among the join's own columns (all its leaves' columns, in reading order). */
typedef struct ivm__equality {
    uint32_t a, b;
} ivm__equality;

typedef struct ivm__node {
    ivm__plan_op op;
    ivm__named_column *columns;
    uint32_t columns_count;
    bool *needed;              /* which of them are read above; all of them at the root */
    struct ivm__node **inputs; /* a join's: its leaves, nested inner joins flattened */
    uint32_t inputs_count;
    bool negative;          /* its rows may weigh less than 0 */
    bool single;            /* each of its rows weighs 1 */
    bool counted;           /* all weight in it came in row by row */
    bool hidden;            /* a project that equalities of unlike types made */
    ivm_join_kind kind;     /* outer */
    ivm__set_kind set;      /* set */
    ivm__order_key *orders; /* top_k; its partitions are groups */
    uint32_t orders_count;
    uint64_t limit, offset;
    ivm_table *table;              /* scan of a table */
    const ivm__heading *heading;   /* the table's columns when the plan was checked */
    ivm_view *view;                /* scan of a view */
    ivm__expression **expressions; /* project: a column each; filter, aggregate's having, join's residual, outer's condition: [0] */
    uint32_t expressions_count;
    ivm__expression **groups; /* aggregate; top_k: partitions */
    uint32_t groups_count;
    ivm__aggregate_spec *aggregates;
    uint32_t aggregates_count;
    uint32_t place;            /* aggregate: of its operator in the view's program, once that was compiled */
    ivm__equality *equalities; /* join; outer: positions among both inputs' columns */
    uint32_t equalities_count;
} ivm__node;

/* The columns that a scan of a table had when its view was made: named "alias.column" as they were then, and where each is now. */
typedef struct ivm__scan_heading {
    const char **names;
    ivm_type *types;
    uint32_t *columns; /* of the table; UINT32_MAX: it is gone, and nothing reads it */
    uint32_t columns_count;
} ivm__scan_heading;

/* The facts that rows not kept found their parents by when the view was made, for each join that reads such rows, in reading order. */
typedef struct ivm__hop_facts {
    ivm_fact **facts;
    uint32_t count;
} ivm__hop_facts;

/* What a view that is made again keeps of its first making, when names of columns and facts may have been others. */
typedef struct ivm__view_saved {
    ivm__scan_heading *headings;
    uint32_t headings_count;
    ivm__hop_facts *hops;
    uint32_t hops_count;
} ivm__view_saved;

/* NULL: out of memory. */
ivm__expression *ivm__expression_copy(const ivm__expression *expression, ivm__memory *memory);
/* Resolves names and types. unknown_table, unknown_column, ambiguous_column, type_mismatch, invalid_plan; messages name the column. */
ivm_status ivm__plan_check(ivm_engine *engine, const ivm_plan *plan, ivm__node **node, ivm_error *error) IVM_MUST_CHECK;
/* The same with the names of then. corrupt where the headings are not those of the plan's scans. */
ivm_status ivm__plan_check_saved(ivm_engine *engine, const ivm_plan *plan, const ivm__view_saved *saved, ivm__node **node,
                                 ivm_error *error) IVM_MUST_CHECK;
void ivm__node_free(ivm__node *node, ivm_engine *engine); /* NULL is fine */
/* The common type of two operands, 0 standing for an untyped null; type_mismatch if there is none. */
ivm_status ivm__type_unify(ivm_type a, ivm_type b, ivm_type *type, ivm_error *error) IVM_MUST_CHECK;

/* ---- The join graph (plan/terms/graph.c) ---------------------------------------------------------------------------------------------------- */

/* One leaf: its columns among the join's, and where they come from. */
typedef struct ivm__graph_leaf {
    ivm__node *node;
    uint32_t columns_first, columns_count;
    ivm_table *table;            /* the base table whose rows it repeats, filtered and projected or not; NULL for any other leaf */
    const ivm__heading *heading; /* of that table, when the plan was checked */
    uint32_t *origin;            /* of each column: the heading's column, UINT32_MAX for a computed one */
} ivm__graph_leaf;

/* The table's column, numbered as they are now, that this column of the leaf is; UINT32_MAX for a computed one. */
static inline uint32_t ivm__leaf_origin(const ivm__graph_leaf *leaf, uint32_t column)
{
    uint32_t origin = leaf->origin[column];
    return origin == UINT32_MAX || !leaf->heading ? origin : leaf->heading->columns[origin];
}

typedef struct ivm__graph {
    ivm__memory *memory;
    ivm__graph_leaf *leaves;
    uint32_t leaves_count;
    uint32_t columns_count;
    ivm__equality *equalities;
    uint32_t equalities_count;
    uint32_t *class_of;       /* of each column: the least column equal to it directly or through others, by pairs of one type */
    ivm__probe_order *orders; /* one a driver */
} ivm__graph;

/* Equalities of unlike types were made alike when the plan was checked: such a leaf has computed columns of the common type (a project above
 * it), so that every equality here is between equal types. The join's nodes are borrowed and must still hold their expressions. */
ivm_status ivm__graph_make(ivm_engine *engine, ivm__node *join, ivm__graph **graph, ivm_error *error) IVM_MUST_CHECK;
void ivm__graph_free(ivm__graph *graph); /* NULL is fine */
/* The probe orders of a graph that is complete but for them (plan/terms/probe_order.c). */
ivm_status ivm__probe_orders_make(ivm__graph *graph) IVM_MUST_CHECK;
void ivm__probe_orders_free(ivm__graph *graph);

/* ---- Facts over leaves (plan/terms/facts.c): which leaf refers to which ------------------------------------------------------------------- */

typedef struct ivm__edge {
    uint32_t child, parent;            /* leaves */
    uint32_t pairs_first, pairs_count; /* the equated columns, among the edges' pairs */
    ivm_fact *fact;                    /* while no fact changes */
    ivm_trust trust;                   /* the fact's, for as long as explain tells of the edge */
    bool within;                       /* the fact leads from a table to itself: not for pruning by batch */
    bool unused;                       /* in the step under way: awaited by child rows of the state before */
    bool unused_told;                  /* in the step that explain tells of: the last committed, or the one stated */
} ivm__edge;

typedef struct ivm__edges {
    ivm__edge *edge;
    uint32_t count, capacity;
    ivm__equality *pairs; /* join columns: of the child, of the parent */
    uint32_t pairs_count, pairs_capacity;
} ivm__edges;

/* The edges of these facts in the join: child and parent leaf repeat the rows of the fact's tables and the join equates every one of its
 * columns in their pairs. */
ivm_status ivm__edges_add(ivm__edges *edges, const ivm__graph *graph, ivm_fact *fact) IVM_MUST_CHECK;
/* Whether the fact leads from the one leaf to the other. */
bool ivm__fact_leads(const ivm__graph *graph, const ivm_fact *fact, uint32_t child, uint32_t parent);
void ivm__edges_free(ivm__edges *edges, ivm__memory *memory); /* empty after */

/* ---- Pruning by row (plan/terms/prune.c) --------------------------------------------------------------------------------------------------- */

/* Which leaves are pruned where these have rows to set aside, and in which order that is proved: of the last step that asked, for as long as the
 * edges are the same. Zeroed: of none. */
typedef struct ivm__prune_rounds {
    bool known;
    uint64_t candidates, skip;
    uint8_t round[IVM_JOIN_LEAVES_MAX];
} ivm__prune_rounds;

/* What the facts set aside of each leaf's delta in the step under way; `prunes` is zeroed. In the step's arena. out_of_memory. */
ivm_status ivm__prune_rows(ivm__step *step, const ivm__graph *graph, const ivm__edges *edges, ivm__prune_rounds *rounds,
                           ivm__leaf_prune *prunes) IVM_MUST_CHECK;

/* ---- Rows not kept (plan/compile/transient.c) ------------------------------------------------------------------------------------------------ */

/* Whether a view that is compiled can be kept up without the rows of its transient tables: unsupported names the table and why it cannot.
 * Gives the view the hops of its joins, by the facts of `saved` alone where that is given. out_of_memory. */
ivm_status ivm__transient_check(ivm_view *view, const ivm__view_saved *saved, ivm_error *error) IVM_MUST_CHECK;

/* ---- Views made (plan/compile/view.c) -------------------------------------------------------------------------------------------------------- */

/* As ivm_view_create() does; the plan stays the caller's. `saved` NULL: for the first time. The engine has been entered. */
ivm_status ivm__view_declare(ivm_engine *engine, const char *name, const ivm_plan *plan, const ivm_view_options *options,
                             const ivm__view_saved *saved, ivm_view **view, ivm_error *error) IVM_MUST_CHECK;

/* The step that fills the view's program, just compiled, from what its sources hold. On failure the program is to be freed. */
ivm_status ivm__view_fill(ivm_view *view, ivm_error *error) IVM_MUST_CHECK;

/* ---- Masks and terms (plan/terms/mask.c, plan/terms/terms.c) ---------------------------------------------------------------------------------- */

/* The largest set of parents with insert_only set, each reachable child to parent from a leaf outside the set; where a cycle leaves a
 * choice its lowest leaf stays outside. Edges that are unused are none. Bit i of insert_only: leaf i's table has no negative row, or, by row, rows
 * that can be set aside. */
uint64_t ivm__skip_mask(uint32_t leaves_count, const ivm__edge *edges, uint32_t edges_count, uint64_t insert_only);

/* How many masks there are of each kind; computed, never enumerated. `all` = 2^n - 1. */
typedef struct ivm__mask_counts {
    uint64_t all, pruned, empty, run;
} ivm__mask_counts;
ivm__mask_counts ivm__mask_count(uint32_t leaves_count, uint64_t skip, uint64_t empty);

/* What was decided for one step: everything explain tells. Arrays stand last: only as much of them as there are leaves is ever filled; what stands
 * before `cost` is a decision without them. */
typedef struct ivm__decision {
    bool made;
    bool initial;
    ivm_planner_options options;
    uint64_t skip, empty;
    ivm__mask_counts counts;
    bool telescoping;
    double estimate_mobius, estimate_telescoping; /* probes */
    uint32_t order_count;
    double cost[IVM_JOIN_LEAVES_MAX];    /* probes of a term that this leaf drives; 0 where it has none */
    uint32_t order[IVM_JOIN_LEAVES_MAX]; /* telescoping: the leaves that have a term, each read as cur by those after it */
    ivm__leaf_delta leaves[IVM_JOIN_LEAVES_MAX];
} ivm__decision;

/* The options as they hold for this join: one that reads rows not kept uses all facts by row, and telescopes. */
ivm_planner_options ivm__term_options(const ivm__graph *graph, const ivm_planner_options *options);
/* Makes a decision from given shapes without running anything: the planner's begin() and explain both go through it. Under fk_pruning row the leaves
 * say themselves what is set aside. */
void ivm__term_decide(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, const ivm__leaf_delta *leaves,
                      uint64_t empty, bool initial, ivm__decision *decision);
/* The rows that estimates take the leaf to have. */
uint64_t ivm__leaf_rows(const ivm__graph *graph, const ivm__leaf_delta *leaves, uint32_t leaf);
/* The terms of a decision one by one: *next 0 at first; false at the end. */
bool ivm__decision_term(const ivm__decision *decision, uint32_t leaves_count, uint64_t *next, ivm__term *term);

/* ---- Decisions kept (plan/terms/decided.c) ------------------------------------------------------------------------------------------------------ */

/* The decisions of a join by the shape of what they were made for: which leaves changed, gained rows only or were set aside, how many rows there are to
 * a factor of two, the planner's options, the edges in use. Terms are the same for all deltas of a shape, so that a push like one of the last few
 * decides nothing. Estimates are those of the first. */
typedef struct ivm__decided ivm__decided;
#define IVM__DECIDED_MAX 8u /* kept; the one not used for longest goes */
/* out_of_memory. */
ivm_status ivm__decided_create(ivm__memory *memory, uint32_t leaves_count, ivm__decided **decided) IVM_MUST_CHECK;
void ivm__decided_free(ivm__decided *decided, ivm__memory *memory); /* NULL is fine */
void ivm__decided_clear(ivm__decided *decided);                     /* the edges are others */
/* As ivm__term_decide() for a step that fills nothing; from what is kept, or made and kept. Cost: a pass over leaves and edges where it is kept. */
void ivm__decided_take(ivm__decided *decided, const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges,
                       const ivm__leaf_delta *leaves, uint64_t empty, ivm__decision *decision);
uint64_t ivm__decided_made(const ivm__decided *decided); /* how often one was made */

/* ---- As the join's planner (plan/terms/term_plan.c) ---------------------------------------------------------------------------------------------- */

/* A join's planner: from the step's leaf deltas to terms; what it decided last is what explain tells. */
typedef struct ivm__term_plan {
    ivm_engine *engine;
    ivm__graph *graph;                   /* borrowed */
    ivm__edges edges[2];                 /* those of `now`, cached for facts_version, and those of `last` */
    uint32_t edges_now, edges_last;      /* which is which; one and the same while no fact changes */
    uint64_t facts_version, facts_since; /* cached for steps that start from facts_since on: no fact is younger */
    ivm__prune_rounds rounds;            /* by the edges of `now` */
    ivm__decided *decided;               /* by delta shape, by the edges of `now` */
    ivm__decision *now;                  /* of the step under way */
    ivm__decision *last;                 /* of the step last committed */
    uint64_t term_next;                  /* the cursor of ivm__decision_term() */
    ivm__decision decisions[2];
} ivm__term_plan;

ivm_status ivm__term_plan_create(ivm_engine *engine, ivm__graph *graph, ivm__term_plan **plan) IVM_MUST_CHECK;
/* As the join operator's planner; the operator frees it. */
ivm__join_planner ivm__term_planner(ivm__term_plan *plan);

/* ---- Programs (plan/compile/compile.c) and explain (plan/explain/) ---------------------------------------------------------------------------- */

/* A view's joins in reading order, for explain. Node and graphs are owned; term plans belong to the operators. */
typedef struct ivm__planned {
    ivm__node *node;
    const char *view; /* its name, borrowed */
    ivm__graph **graphs;
    ivm__term_plan **plans;
    ivm__operator **joins; /* their operators, borrowed */
    uint32_t joins_count;
    ivm_engine *engine;
} ivm__planned;

/* Fills an empty program with the operators of the checked tree that `planned` has, and `planned` with its joins. The program points to `planned`.
 * On failure what is made so far is in both, to be freed. out_of_memory alone. */
ivm_status ivm__compile(ivm_engine *engine, const char *view, ivm__planned *planned, ivm__program *program,
                        ivm_error *error) IVM_MUST_CHECK;
/* The same as a program without a result that, run in an initial step, is overflow where a row of any node weighs more than int64. */
ivm_status ivm__compile_judges(ivm_engine *engine, ivm__planned *planned, ivm__program *program, ivm_error *error) IVM_MUST_CHECK;
void ivm__planned_deinit(ivm__planned *planned, ivm__memory *memory); /* all but the node */
void ivm__planned_free(ivm__planned *planned, ivm__memory *memory);   /* NULL is fine */

/* ---- Indexes (plan/compile/prepare.c) -------------------------------------------------------------------------------------------------------------- */

/* The leaves that may ever drive a term of a step that starts from the state after so many pushes, or from a later one: all but those whose table only
 * gains rows and which these facts, tracked and younger ones aside, take out of every step. */
uint64_t ivm__drivers(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, uint64_t since);
/* Those of a join of the view by the facts declared now. out_of_memory. */
ivm_status ivm__view_drivers(const ivm_view *view, const ivm__graph *graph, uint64_t *drivers) IVM_MUST_CHECK;
/* Builds the indexes that the view's terms may read. The engine has been entered. out_of_memory, overflow. */
ivm_status ivm__view_prepare(ivm_view *view, ivm_error *error) IVM_MUST_CHECK;

/* The newest index of every table and view, in the order of the engine's lists, in the step's arena; and all newer ones freed again: those of a
 * call that failed, or that leaves no trace. Between the two no table and no view comes or goes. */
ivm_status ivm__indexes_mark(ivm_engine *engine, ivm__index ***newest) IVM_MUST_CHECK;
void ivm__indexes_back(ivm_engine *engine, ivm__index *const *newest);

#endif
