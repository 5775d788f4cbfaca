/* The n-way inner join.
 *
 *     delta(R0 x..x Rn-1) = sum of terms, a term being a bilinear product: sign * prod_i reading_i(R_i)
 *
 * A term starts from the delta of one leaf of its mask, its driver, and probes the other leaves one by one, each read as its delta, as it is after
 * the batch (cur) or as it was before (old). Which terms run is decided batch by batch by a planner that plan/ gives; the operator
 * instantiates each from cached probe orders, runs it, and counts what it did. Cost of a term: the driver's rows times the matches on
 * the way.
 *
 * A leaf with an operator below it keeps its rows in a store of its own, the needed columns alone. In a step: its delta is gathered apart (and
 * consolidated where a weight is negative); if a term is to read it as cur or old and it is not kept yet, it is loaded with
 * step->loading set as it was before the step and committed; only then its delta is added. A load that fails is cleared. An
 * initial step loads nothing: before is empty, and the only term reads cur.
 *
 * Rows that foreign keys set aside (ivm__leaf_prune) drive nothing: a leaf's delta is what is left, brought down to the columns that are read and
 * consolidated. Its cur is the rows after the batch and those set aside that went, its old the rows before it and those that came.
 *
 * Columns are numbered through all leaves in reading order; the join emits those that are needed above, the others uncarried. */
#ifndef IVM__JOIN_H
#define IVM__JOIN_H

#include "catalog.h"
#include "expression.h"

typedef struct ivm__leaf_spec {
    ivm_table *table;            /* a bare scan: its delta and rows are read in the table itself. NULL: the leaf has an operator below it */
    ivm_view *view;              /* a bare scan of a view: the same */
    const ivm__heading *heading; /* the table's columns as the leaf numbers them; NULL: as they are now */
    ivm__operator *scan; /* where the leaf is a scan with filters and projects above, that scan: the leaf's rows are kept only once a term
                                reads them, and then loaded through it. NULL: kept from the start */
    uint32_t columns_count;
    const ivm_type *types;
    const bool *needed; /* a byte a column: read by keys, residual condition or above */
} ivm__leaf_spec;

/* One equality of a probe: the join column that has the value, and the probed leaf's own column. Types are equal. */
typedef struct ivm__probe_key {
    uint32_t from; /* join column */
    uint32_t to;   /* column of the leaf */
} ivm__probe_key;

/* One probe. keys_count 0: a cross product, every row of the leaf. Equalities between columns already joined that are not keys of a
 * probe are among the `equal` pairs of join columns, checked after it. */
typedef struct ivm__probe_spec {
    uint32_t leaf;
    uint32_t keys_count;
    const ivm__probe_key *keys;
    uint32_t equal_count;
    const ivm__probe_key *equal; /* from, to: both join columns; both null or unequal does not match */
} ivm__probe_spec;

/* How a driver's rows find the other leaves: n - 1 probes. One for each driver leaf, made when the view is. */
typedef struct ivm__probe_order {
    ivm__probe_spec *probes;
    uint32_t probes_count;
    ivm__probe_key *equal; /* pairs within the driver leaf itself, checked first */
    uint32_t equal_count;
} ivm__probe_order;

typedef enum ivm__leaf_reading { IVM__LEAF_DELTA, IVM__LEAF_CUR, IVM__LEAF_OLD } ivm__leaf_reading;

/* One summand. */
typedef struct ivm__term {
    uint64_t mask;
    int sign; /* 1 or -1 */
    uint32_t driver;
    uint8_t readings[IVM_JOIN_LEAVES_MAX]; /* ivm__leaf_reading; of the driver: delta */
} ivm__term;

/* What foreign keys set aside of a leaf's delta in this step: rows of its table that may be taken as added before anything else happens, or as
 * removed after it, so that they drive no term (split.h). */
typedef struct ivm__leaf_prune {
    bool narrow;                   /* the delta is brought down to the columns that are read, and consolidated */
    bool entry;                    /* rows could be set aside, but a cycle of facts wants the leaf outside: none are */
    bool whole;                    /* all of its table's delta is set aside: the leaf drives nothing and is read as cur */
    const ivm__aside *aside;       /* of the table's rows, in the step's arena; NULL: none is, or all of them are and none is gone */
    uint64_t fresh, gone, changed; /* rows of its table's delta by their keys; 0 where no fact leads to the leaf or nobody asked */
    uint64_t awaited, kept;        /* of the fresh, of the gone those that no fact sets aside because children hold them */
} ivm__leaf_prune;

/* What the planner sees of a leaf in this step. */
typedef struct ivm__leaf_delta {
    uint64_t rows_count;    /* of its net delta, without what is set aside */
    uint64_t rows_live;     /* in it after the batch; 0 where it is not kept */
    bool table_insert_only; /* the base table's net delta has no negative row (true where it is empty) */
    bool set_aside;         /* its table changed, and nothing of that is left: foreign keys take it out */
    bool entry;
    uint64_t fresh, gone, changed;
    uint64_t awaited, kept;
} ivm__leaf_delta;

/* Gives the terms of a step one by one, so that none need be stored: *term is filled in until it returns false. */
typedef struct ivm__join_planner {
    void *state;
    /* Before the leaves' deltas come; `leaves` is zeroed. May fail (memory). */
    ivm_status (*prune)(void *state, ivm__step *step, ivm__leaf_prune *leaves, uint32_t leaves_count);
    /* Before the terms; may fail (unsupported, memory). Sets the step's counts of pruned and empty masks. */
    ivm_status (*begin)(void *state, ivm__step *step, const ivm__leaf_delta *leaves, uint32_t leaves_count);
    bool (*next)(void *state, ivm__term *term);
    /* The step's decision, with the rows that the join's terms probed for and those that they found, becomes the one that explain tells of, or is
     * forgotten. Cannot fail. */
    void (*commit)(void *state, uint64_t rows_probed, uint64_t rows_matched);
    void (*undo)(void *state);
    void (*free)(void *state, ivm__memory *memory);
} ivm__join_planner;

typedef struct ivm__join_spec {
    const ivm__leaf_spec *leaves;
    uint32_t leaves_count;
    const ivm__probe_order *orders; /* one a leaf; copied deeply */
    ivm__expression *residual;      /* over the join's columns; NULL: none. Taken. */
    const bool *needed_above;       /* a byte a join column: what the join emits */
    ivm__join_planner planner;      /* taken: freed with the operator */
} ivm__join_spec;

/* The leaf's operator, where it has one, sends to port i. */
ivm_status ivm__join_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__join_spec *spec,
                            ivm__operator **operator) IVM_MUST_CHECK;

/* ---- Indexes of a join (join_prepare.c) ------------------------------------------------------------------------------------------------- */

/* Builds, outside any step, every index that terms driven by these leaves (a bit each) read, and loads the rows that they stand over. `step` is one
 * that changes nothing; of a deferred view what is pending is laid over the sources. Cross products need no index and get nothing.
 * out_of_memory, overflow; what was built by then stays. */
ivm_status ivm__join_prepare(ivm__operator *join, ivm__step *step, uint64_t drivers) IVM_MUST_CHECK;

/* The index that a term driven by one leaf reads of another. */
typedef struct ivm__join_index {
    uint32_t leaf;
    uint32_t columns_count;
    const uint32_t *columns; /* of the leaf */
    const ivm__index *index; /* NULL: not built yet */
} ivm__join_index;
/* False: it reads none, be it the driver itself or a cross product. Builds nothing. */
bool ivm__join_index_of(const ivm__operator *join, uint32_t driver, uint32_t leaf, ivm__join_index *found);

#endif
