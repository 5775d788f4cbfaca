/* What the measurements of pruning share. A duel is two or three engines, its sides, that differ in their settings alone and get the same batches in
 * turn; who is first changes with every batch. Only pushes are timed, not the filling of a batch, nor the first one, which builds indexes. After
 * each round the sides' views must hold the same rows. */
#ifndef IVM_BENCH_PRUNE_H
#define IVM_BENCH_PRUNE_H

#include "measure.h"
#include "star_engine.h"

#define DUEL_SIDES_MAX 3

typedef struct duel_story {
    star_shape shape;
    /* Adds the changes of batch `number` (0: what is there before, untimed as is 1) for this side. */
    void (*fill)(const void *context, star_engine *star, ivm_batch *batch, size_t side, uint64_t number);
    const void *context;
    uint64_t batches; /* timed ones: numbers 2 .. batches + 1 */
} duel_story;

typedef struct duel {
    uint64_t runs; /* rounds, at most RUNS_MAX */
    size_t sides_count;
    star_options sides[DUEL_SIDES_MAX];
    double spent[DUEL_SIDES_MAX][RUNS_MAX]; /* nanoseconds a batch; sorted once it is run */
    double median[DUEL_SIDES_MAX];
    uint64_t terms[DUEL_SIDES_MAX]; /* run in the timed batches of one round */
    bool unequal;                   /* sticks */
} duel;

void duel_run(duel *it, const duel_story *story);

/* What `ivm bench prune` is asked for. */
typedef struct prune_options {
    uint64_t rows, batches, runs;
    bool json;
} prune_options;

/* Each prints its figures and is false where two sides came to different rows. */
bool prune_growing(const prune_options *options, uint32_t dimensions); /* prune_growing.c */
bool prune_tracked(const prune_options *options, bool dimensions_grow);
bool prune_mixed(const prune_options *options, uint32_t dimensions); /* prune_mixed.c */
bool prune_hot(const prune_options *options);

#endif
