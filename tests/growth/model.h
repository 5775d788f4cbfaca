/* What the tables of test_growth hold, in plain arrays, and what its views must hold, computed anew from them: a view is told by a digest, the sum over its rows
 * of weight times the hash of their cells, so that what has changed adds to what was there.
 *
 * dim (id, v int64, s string), keyed by id. fact (id, k, m int64, s string), keyed by id or a bag; k refers to dim.id. Rows come and go one by one; what v
 * and s are drawn from goes between a few values and always new ones, and whether tables grow or shrink between the two. */
#ifndef TEST_GROWTH_MODEL_H
#define TEST_GROWTH_MODEL_H

#include "ivm/ivm.h"
#include "random.h"

#define GROWTH_IDS 4096u
#define GROWTH_TEXTS 4096u
#define GROWTH_CHANGES_MAX 512u

enum { GROWTH_GROUPED, GROWTH_FULL, GROWTH_BY_TEXT, GROWTH_SEMI, GROWTH_ANTI, GROWTH_TEXTS_ALL, GROWTH_TOP, GROWTH_JOINED, GROWTH_VIEWS };

typedef struct growth_dim {
    bool there;
    uint32_t v, text;
} growth_dim;

typedef struct growth_fact {
    int64_t weight; /* 0: it is not there */
    uint32_t k, m, text;
} growth_fact;

/* One change of a batch: of a dim, or else of a fact. `key`: by key alone. */
typedef struct growth_change {
    bool of_dim;
    ivm_change change;
    uint32_t id;
    int64_t weight;
    growth_dim dim;
    growth_fact fact;
} growth_change;

typedef struct growth_model {
    uint64_t random;
    bool bag;                       /* facts have no key */
    bool keeps;                     /* no fact is ever without its dim */
    int64_t special;                /* the value of the last id; others follow from the id */
    uint32_t values_most;           /* v is drawn from so many; 0: from as many as there are ids */
    uint32_t texts_most;            /* s is; 0: a new one every time */
    uint32_t grows;                 /* of eight changes so many are rows that come */
    uint32_t dims_of_eight;         /* the rest are of facts */
    uint32_t few_until;             /* so many dims there are, values are few and tables grow */
    uint32_t turned, values_before; /* pushes left of a turn, and what follows its first half */
    uint32_t texts_next;
    uint32_t dims_count, facts_count;
    growth_dim dims[GROWTH_IDS];
    growth_fact facts[GROWTH_IDS];
    uint32_t children[GROWTH_IDS]; /* facts of each dim */
    growth_change changes[GROWTH_CHANGES_MAX];
    uint32_t changes_count;
} growth_model;

/* What tables and views hold. */
typedef struct growth_digests {
    uint64_t views[GROWTH_VIEWS], dim, fact, orphans;
} growth_digests;

void growth_model_init(growth_model *it, uint64_t seed);
int64_t growth_key(const growth_model *it, uint32_t id);
#define GROWTH_TEXT_SIZE 40
void growth_text(uint32_t text, char out[GROWTH_TEXT_SIZE]);
/* Draws the next batch into `changes`, so many or fewer, and makes them. */
void growth_draw(growth_model *it, uint32_t count);
/* Other values, one table instead of both, shrinking instead of growth: now and then, or so much more often. */
void growth_drift(growth_model *it, uint32_t often);
/* For so many pushes dims alone come, those of the first half with many values, or few: nobody looks at them meanwhile. */
#define GROWTH_TURN 24u
void growth_turn(growth_model *it, bool many);
void growth_expect(const growth_model *it, growth_digests *out);

/* A row's hash, cell by cell, from 0 on. */
uint64_t growth_hash_int(uint64_t hash, int64_t value);
uint64_t growth_hash_bytes(uint64_t hash, const char *bytes, size_t size);
uint64_t growth_hash_null(uint64_t hash);
/* The row of GROWTH_BY_TEXT for this text, 0 where there is none. */
uint64_t growth_expect_text(const growth_model *it, uint32_t text);

#endif
