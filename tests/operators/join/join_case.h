/* Joins for tests: a description of one, made at random or by hand, that becomes a program, and a nested loop over plain arrays that says what
 * the program's rows must be. Any operator that can stand between a table and a leaf is in it, and so is every way to plan its terms. */
#ifndef TEST_JOIN_CASE_H
#define TEST_JOIN_CASE_H

#include "hand.h"
#include "join.h"

#define CASE_LEAVES_MAX 4u
#define CASE_TABLES 5u
#define CASE_COLUMNS 4u /* of each table and leaf: int64, int64, string, decimal */

typedef enum case_road {
    CASE_BARE,        /* read in the table */
    CASE_FILTER,      /* filter above a scan, loaded when first read */
    CASE_FILTER_KEPT, /* the same, kept from the start */
    CASE_PROJECT,     /* the first two columns change places; loaded when first read */
    CASE_ROADS
} case_road;

typedef struct case_leaf {
    uint32_t table;
    case_road road;
    bool needed[CASE_COLUMNS];
} case_leaf;

typedef enum case_rule { CASE_MOBIUS, CASE_TELESCOPING, CASE_RULES } case_rule;

/* Plans the terms of the rule it is set to, drivers and orders of leaves drawn at random. */
typedef struct case_planner {
    case_rule rule;
    bool skip_empty;
    bool in_order; /* leaves are not shuffled */
    uint64_t salt; /* of what is set aside in the step: 0 nothing */
    uint64_t random;
    uint32_t leaves_count;
    bool initial;
    uint64_t at;
    uint64_t empty, skip;
    ivm_table *tables[CASE_LEAVES_MAX]; /* of leaves of which rows may be set aside; else NULL */
    uint32_t set_aside, whole;          /* leaves, ever: some rows, all rows */
    uint32_t order[CASE_LEAVES_MAX];
    ivm__leaf_delta deltas[CASE_LEAVES_MAX]; /* what it was told last */
    uint32_t begun, committed, undone;       /* steps */
    bool *freed;
} case_planner;

typedef struct join_case {
    uint32_t leaves_count;
    case_leaf leaves[CASE_LEAVES_MAX];
    uint32_t equal_count;
    ivm__probe_key equal[8]; /* pairs of join columns */
    bool by_equal;           /* some pairs that could be keys of a probe are judged behind it */
    bool residual;           /* of the first two int64 columns of the join: c0 * 2^61 <= c1 * 2^61, out of range from 4 on */
    bool above[CASE_LEAVES_MAX * CASE_COLUMNS];
    bool freed; /* the planner has been */
    /* made of it */
    case_planner *planner; /* the join's */
    ivm__operator *join, *root;
    uint32_t columns_count; /* of the view */
} join_case;

extern const ivm_type case_types[CASE_COLUMNS];

/* Two keyed by one column, one by two (c1, c0), two bags. */
void case_tables(hand *it, ivm_table *tables[CASE_TABLES]);
void case_draw(join_case *join, uint64_t *random);
/* Settles which columns are needed, then adds the operators to the program; a materialize is its root. */
void case_program(join_case *join, hand *it, ivm_table *const tables[CASE_TABLES], uint64_t *random);
/* What the program must hold. *failing: a joined row for which the residual condition is out of range. */
void case_oracle(const join_case *join, const hand_bag tables[CASE_TABLES], hand_bag *out, bool *failing);
/* Draws a batch that every table allows, adds it to the bags. */
void case_batch(ivm_batch *batch, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES], uint64_t *random);

/* Whether two rows of the table have one key; no two rows of a bag do. */
bool case_same_key(uint32_t table, const hand_row *a, const hand_row *b);
/* As a join takes it, which frees it. */
ivm__join_planner case_planner_of(case_planner *planner);
/* Whether the planner sets a row of a leaf aside, if its key came or went; cells as the table has them. */
bool case_is_aside(const case_planner *planner, uint32_t leaf, int64_t c0, int64_t c1);

ivm__expression *case_column(hand *it, uint32_t column, ivm_type type);
ivm__expression *case_int64(hand *it, int64_t value);
ivm__expression *case_call(hand *it, ivm__function function, ivm_type type, ivm__expression *a, ivm__expression *b);

#endif
