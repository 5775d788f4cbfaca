/* Twins: two tables of one shape and with the same facts that get the same rows, one keeps them, the other does not, and each view stands over
 * either.
 *
 *     f(d, d2, e, n, t) -> d(id, s, name) twice, -> e(id, v)        d -> s(id, region) */
#ifndef TEST_VIEW_TWINS_H
#define TEST_VIEW_TWINS_H

#include "world.h"

#define KEYS 6u
#define ROWS_MAX 400u
#define VIEWS 6u
#define WIDE_NULL (-1)

typedef struct fact_row {
    int64_t d, d2, e, n;
    int64_t weight;
} fact_row;

/* What the tables hold. */
typedef struct model {
    fact_row rows[ROWS_MAX];
    uint32_t rows_count;
    bool d[KEYS], s[KEYS], e[KEYS]; /* which are there */
    int64_t d_s[KEYS];
} model;

typedef struct twins {
    world world; /* its engine and allocator */
    ivm_table *f[2], *d, *s, *e;
    ivm_view *views[2][VIEWS];
    ivm_trust trust, trust_far; /* of f's facts, of d's */
    bool negative;
    model now;
    uint64_t random;
} twins;

/* World and all are closed by world_close(). */
void twins_open(twins *it, ivm_trust trust, ivm_trust trust_far, bool negative, uint64_t seed);
uint64_t twins_draw(twins *it, uint64_t below);

/* A batch to fill, and what the tables hold after it in `next`, which begins as what they hold now. */
ivm_batch *twins_batch(twins *it);
void twins_put(twins *it, ivm_batch *batch, const fact_row *row, int64_t weight); /* into both tables; the model is not told */
void twins_model_add(model *to, const fact_row *row, int64_t weight);
void twins_come_s(twins *it, ivm_batch *batch, model *next, int64_t key);
void twins_come_d(twins *it, ivm_batch *batch, model *next, int64_t key);
void twins_come_e(twins *it, ivm_batch *batch, model *next, int64_t key);
/* A random one; parents of facts that are tracked come late, others are there in time. */
ivm_batch *twins_batch_draw(twins *it, model *next);
/* Pushes a batch that must go through. */
void twins_push(twins *it, ivm_batch *batch, const model *next);

/* Rows that wait for the views from `first` on. */
uint64_t twins_waiting(const twins *it, uint32_t first);
/* Views from `first` on are equal, content and last changes, and the rows kept are those that wait. */
void twins_assert_same(twins *it, uint32_t first, uint64_t seed);

#endif
