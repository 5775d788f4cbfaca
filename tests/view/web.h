/* A web: three tables of one shape, keyed by one column or two, or a bag, that refer to each other and to themselves by random foreign keys of
 * every trust, random views over random joins of them, random batches and all else that may happen between two pushes. Beside it, the rows
 * in plain arrays, which keep what was promised. What a view must hold is what the same plan gives when it is computed anew. */
#ifndef TEST_WEB_H
#define TEST_WEB_H

#include "world.h"

#define WEB_TABLES 3u
#define WEB_ROWS_MAX 40u
#define WEB_CELLS 7u /* a, b, x, y, v, and at most two that come and go */
#define WEB_BASE 5u
#define WEB_LEAVES_MAX 4u
#define WEB_PAIRS_MAX 8u
#define WEB_FACTS_MAX 5u
#define WEB_VIEWS_MAX 5u

typedef struct web_row {
    int64_t cells[WEB_CELLS]; /* WORLD_NULL: null */
    int64_t weight;
} web_row;

typedef struct web_rows {
    web_row row[WEB_ROWS_MAX];
    uint32_t count;
} web_rows;

/* Columns of the child, paired with the parent's key. */
typedef struct web_fact {
    uint32_t child, parent, columns[2];
    ivm_trust trust;
    bool kept;          /* batches leave it intact, unless it is tracked: at the latest from its declaration on */
    ivm_fact *declared; /* NULL: not now */
} web_fact;

/* How a leaf stands over its table. */
typedef struct web_leaf {
    uint32_t table;
    bool filtered, projected; /* by v; to the columns in another order, the last one left out */
} web_leaf;

/* Columns l<leaf>.<name>. */
typedef struct web_pair {
    uint32_t leaf[2], column[2];
} web_pair;

typedef struct web_view {
    ivm_view *view; /* NULL: none */
    bool deferred, grouped, residual;
    web_leaf leaves[WEB_LEAVES_MAX];
    uint32_t leaves_count;
    web_pair pairs[WEB_PAIRS_MAX];
    uint32_t pairs_count;
    uint32_t above[2][2]; /* two columns that are read above: leaf, column */
    char *stood;          /* what it held when it was last brought up to date */
} web_view;

typedef struct web {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    uint64_t random, seed;
    ivm_table *tables[WEB_TABLES];
    uint32_t keys[WEB_TABLES]; /* columns of the key: 0, 1, or 2 */
    uint32_t cells[WEB_TABLES], added;
    web_rows rows[WEB_TABLES];
    web_fact facts[WEB_FACTS_MAX];
    uint32_t facts_count;
    web_view views[WEB_VIEWS_MAX];
    uint32_t pushes, joined; /* pushes that changed a view that joins */
} web;

void web_open(web *it, uint64_t seed);
/* Asserts that nothing is left. */
void web_close(web *it);
uint32_t web_below(web *it, uint32_t below);

/* Draws a view and makes it. */
void web_view_make(web *it, web_view *view);
void web_view_drop(web *it, web_view *view);

/* Draws the rows to come, which keep what is promised, and pushes the difference; now and then one allocation fails, and it is pushed again. */
void web_push(web *it);
/* Declares a fact that is not, after a push that mends it, or takes one back, which may be broken from then on. */
void web_fact_turn(web *it);
/* A column comes to a table, or one that came goes. */
void web_column_turn(web *it);
/* Asserts that every view that is not deferred is right, with its changes, and that those that are stand still; brings some of them up to date. */
void web_check(web *it);

#endif
