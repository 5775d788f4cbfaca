/* Six tables and the foreign keys between them, of few keys, so that children wait, parents leave and come back, and all of it fails now and
 * then. What the engine counts is compared with what the tables' rows say, read one by one: after every push, and, inside every step, by a view
 * whose program does nothing else.
 *
 *     child (id; a, b) -> parent (k, s; key s, k)      bag (a, b, x) -> parent, -> wide (w)      signed (a, b, x) -> parent, -> wide
 *     tree (id, up) -> tree
 */
#ifndef TEST_TRACK_CASE_H
#define TEST_TRACK_CASE_H

#include "allocator.h"
#include "catalog.h"
#include "copies.h"
#include "ivm/ivm.h"

enum { TRACK_PARENT, TRACK_WIDE, TRACK_CHILD, TRACK_BAG, TRACK_SIGNED, TRACK_TREE, TRACK_TABLES };
enum { TRACK_FACTS_MAX = 6 };

typedef struct track_case {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_table *tables[TRACK_TABLES];
    ivm_fact *facts[TRACK_FACTS_MAX];
    uint32_t facts_count;
    ivm_view *now, *late; /* immediate and deferred, of all tables */
    uint64_t random;
    ivm_error error;
    /* By the views: */
    bool fails;                                                     /* they end their steps with an overflow */
    uint64_t held_fresh, held_gone, free_fresh, free_gone, neither; /* rows so found */
    uint64_t awaited;                                               /* facts so found */
    const char *wrong;                                              /* NULL, or what has ever been */
} track_case;

void track_open(track_case *it, uint64_t seed);
void track_close(track_case *it);   /* nothing was leaked */
void track_declare(track_case *it); /* all facts, tracked */
void track_views(track_case *it);   /* made, with what is there now */
uint64_t track_random(track_case *it, uint64_t below);

/* A batch of up to `rows` changes of these tables (a bit each). The engine may refuse it. */
ivm_batch *track_batch(track_case *it, uint32_t rows, uint32_t tables);
ivm_status track_push(track_case *it, ivm_batch *batch);

/* Whether every fact's counts are what the tables' rows come to, and nothing is in a step: NULL or what is wrong. */
const char *track_check(track_case *it);
uint64_t track_orphans(ivm_fact *fact);
uint64_t track_orphans_keys(ivm_fact *fact);

/* The weights of a snapshot's keys, as text: "(1, a)". Adds to them; closes the snapshot. */
enum { TRACK_KEYS_MAX = 128, TRACK_KEY_SIZE = 48 };
typedef struct track_keys {
    char key[TRACK_KEYS_MAX][TRACK_KEY_SIZE];
    int64_t weight[TRACK_KEYS_MAX];
    uint32_t count;
} track_keys;
void track_keys_add(track_keys *keys, ivm_snapshot *snapshot);
bool track_keys_equal(const track_keys *a, const track_keys *b); /* but for keys of weight 0 */
/* Keys that wait under the fact, by the rows of the tables. */
void track_model(const ivm_fact *fact, ivm__reading reading, track_keys *waiting);

#endif
