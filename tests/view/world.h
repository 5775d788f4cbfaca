/* A world: up to four tables of one shape that refer to each other along given edges, in the engine and, beside it, in plain arrays. What a
 * view must hold is worked out from the arrays by nested loops.
 *
 * Table i is t<i>(id int64, r0, r1, r2 int64, v int64, f float64, s string), f and s following from v. Keyed by id, or, with `bag`, the
 * first table is a bag. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include "allocator.h"
#include "ivm/ivm.h"
#include "random.h"

#define WORLD_TABLES_MAX 4u
#define WORLD_REFS 3u
#define WORLD_ROWS_MAX 64u
#define WORLD_NULL INT64_MIN

typedef struct world_row {
    int64_t id, refs[WORLD_REFS], v;
    int64_t weight;
} world_row;

typedef struct world_rows {
    world_row row[WORLD_ROWS_MAX];
    uint32_t count;
} world_rows;

/* Column r<slot> of the child is equal to the parent's id; a fact says that the row is there. */
typedef struct world_edge {
    uint32_t child, slot, parent;
} world_edge;

typedef struct world_shape {
    uint32_t tables_count;
    bool bag;   /* table 0 has no key */
    bool facts; /* every edge is one */
    world_edge edges[4];
    uint32_t edges_count;
    uint32_t threads; /* 0: one */
} world_shape;

/* A row of one table with a weight to add. */
typedef struct world_change {
    uint32_t table;
    world_row row;
} world_change;

#define WORLD_CHANGES_MAX 32u
typedef struct world_changes {
    world_change change[WORLD_CHANGES_MAX];
    uint32_t count;
} world_changes;

typedef struct world {
    world_shape shape;
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_stats stats; /* of the last push */
    ivm_table *tables[WORLD_TABLES_MAX];
    world_rows rows[WORLD_TABLES_MAX];
} world;

void world_open(world *it, const world_shape *shape, const ivm_planner_options *planner);
void world_close(world *it); /* asserts that nothing is left */

/* The join of all tables over all edges: id and v of each, as i0, v0, i1, ... */
ivm_plan *world_join_plan(const world *it);
/* Over the same join, by the last table's s: count, sum of v0, exact sum and average of f0, least v0, greatest s0. */
ivm_plan *world_aggregate_plan(const world *it);
/* A filter below the join, a residual condition, a projected leaf, groups with having. */
ivm_plan *world_mixed_plan(const world *it);
ivm_view *world_view(world *it, const char *name, ivm_plan *plan);

void world_add(world_changes *changes, uint32_t table, world_row row, int64_t weight);
/* One batch; rows follow where it succeeds. */
ivm_status world_push(world *it, const world_changes *changes);
void world_inverse(const world_changes *changes, world_changes *inverse);
/* Whether every reference of a fact has its row; whether no key is held twice. */
bool world_facts_hold(const world *it);
/* The changes applied to the arrays alone: false where a key would be held twice, a weight below zero or a fact broken; then nothing is. */
bool world_apply(world *it, const world_changes *changes);

/* The same for arrays that stay as they are. */
bool world_allows(const world *it, const world_changes *changes);
/* Whether there are joined rows once the changes are applied. */
bool world_joins(const world *it, const world_changes *changes);
/* `count` random changes that, one by one in this order, keep keys and facts. */
void world_draw(const world *it, uint32_t count, world_changes *changes, uint64_t *random);
/* A random setting of the planner. */
void world_set_planner(world *it, uint64_t *random);

/* The snapshot's rows, which is closed, as sorted lines "weight*a,b,c", equal rows as one. The caller frees the text. */
char *world_dump(ivm_snapshot *snapshot);
char *world_dump_view(world *it, ivm_view *view);
char *world_dump_changes(world *it, ivm_view *view);
/* What the view of world_join_plan() must hold. */
char *world_expected(const world *it);
/* after - before, of two such texts. */
char *world_difference(const char *before, const char *after);
/* What a new view of this plan holds: computed whole. */
char *world_recomputed(world *it, ivm_plan *plan);
/* Asserts that they are equal and frees both; prints them if not. */
void world_assert_same(char *got, char *want, const char *what, uint64_t seed);

#endif
