/* Three small tables and random batches of them, for tests of deferred views and of columns that come and go: one with a key, a bag, and a bag
 * that allows negative weights, all of columns k int64, v int64 and s string, with few values, so that rows repeat and cancel. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include "allocator.h"
#include "copies.h"

enum { WORLD_KEYED, WORLD_BAG, WORLD_SIGNED, WORLD_TABLES };

typedef struct world {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_table *tables[WORLD_TABLES];
    int64_t next; /* a key that was never used */
    uint64_t random;
    ivm_error error;
} world;

void world_open(world *it, uint64_t seed);
/* Drops what is in the engine and asserts that nothing was leaked. */
void world_close(world *it);
uint64_t world_random(world *it, uint64_t below);

/* A batch of up to `rows` changes; insert-only where asked for. The engine may refuse it. */
ivm_batch *world_batch(world *it, uint32_t rows, bool insert_only);
/* A batch of one row: k, v and a string, or a null where s is NULL. */
ivm_batch *world_row(world *it, uint32_t table, int64_t k, int64_t v, const char *s, int64_t weight);
ivm_status world_push(world *it, ivm_batch *batch);
/* One row in a push that must go through. */
void world_put(world *it, uint32_t table, int64_t k, int64_t v, const char *s, int64_t weight);

/* The net weight of a row among a snapshot's, which is closed. */
int64_t world_weight(ivm_snapshot *snapshot, int64_t k, int64_t v, const char *s);
uint64_t world_rows(ivm_snapshot *snapshot); /* how many of them; closes it */
ivm_snapshot *world_changes(ivm_view *view);
ivm_snapshot *world_read(ivm_view *view);

#endif
