/* Programs made and stepped by hand, for tests of operators: an engine's tables are real, a program is a list of operators, and a step is
 * staged, run, and committed or undone as a push would do it.
 *
 * Cells are small numbers in every type: a string cell 7 is the text "7", a decimal cell its unscaled value, a bool its lowest bit. */
#ifndef TEST_HAND_H
#define TEST_HAND_H

#include "allocator.h"
#include "operators.h"
#include "stage.h"

#define HAND_COLUMNS_MAX 24u

typedef struct hand_row {
    int64_t cells[HAND_COLUMNS_MAX];
    bool nulls[HAND_COLUMNS_MAX];
    __int128 weight;
} hand_row;

/* A bag of rows as a plain array; after hand_bag_settle() sorted, each row once, no weight 0. */
typedef struct hand_bag {
    uint32_t columns_count;
    size_t count, capacity;
    hand_row *rows;
} hand_bag;

void hand_bag_add(hand_bag *bag, const hand_row *row);
void hand_bag_settle(hand_bag *bag);
void hand_bag_copy(hand_bag *to, const hand_bag *from);
void hand_bag_free(hand_bag *bag);
/* Settles both and compares; prints the first difference. */
bool hand_bag_equal(hand_bag *got, hand_bag *want);

typedef struct hand {
    ivm_engine *engine;
    ivm__program program;
    ivm_stats stats; /* of the last step */
    ivm_error error;
} hand;

void hand_open(hand *it, const ivm_allocator *allocator);
void hand_close(hand *it);
/* types: of the columns, named c0, c1, ...; nullable: one character a column, '?' or '-'; key as in ivm_table_options. */
ivm_table *hand_table(hand *it, const char *name, const ivm_type *types, const char *nullable, const char *key);
/* Adds a row to a batch with this weight. */
void hand_change(ivm_batch *batch, ivm_table *table, hand_row row, int64_t weight);
ivm_batch *hand_batch(hand *it);
/* A row from ints; HAND_NULL is a null. */
#define HAND_NULL INT64_MIN
hand_row hand_cells(const int64_t *cells, uint32_t count);
#define HAND_ROW(...) hand_cells((const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* Puts an operator at the end of the program; the operator `below`, if any, sends to its port. */
void hand_add(hand *it, ivm__operator *operator, ivm__operator * below, uint32_t port);
/* Stages the batch, runs the program; commits if all went well and `keep` is set, else undoes. The batch stays the caller's. */
ivm_status hand_step(hand *it, const ivm_batch *batch, bool keep);
/* Steps and commits, frees the batch; and one of a row with this weight. */
ivm_status hand_push(hand *it, ivm_batch *batch);
ivm_status hand_push_row(hand *it, ivm_table *table, hand_row row, int64_t weight);
/* The same for the step that fills a view. */
ivm_status hand_fill(hand *it, bool keep);
/* Applies the batch to the tables alone. */
ivm_status hand_stage(hand *it, const ivm_batch *batch);

void hand_store_rows(const ivm__store *store, hand_bag *bag);
void hand_chunk_rows(const ivm__chunk *chunk, hand_bag *bag);

/* An operator that keeps what it is sent, for tests that look at chunks. */
typedef struct hand_sink {
    ivm__operator head;
    hand_bag rows;
    uint32_t chunks_count, rows_count;
    const void *first_cells; /* of the first column of the last chunk */
    const ivm__weight *weights;
    bool carried[HAND_COLUMNS_MAX];
    bool loading;
} hand_sink;
hand_sink *hand_sink_add(hand *it, ivm__operator *below);

/* Trials of work in which the n-th allocation fails, for n = 1, 2, ... until the work goes through; zeroed at first:
 *
 *     while (hand_trial_next(&trial)) {
 *         ... open with &trial.functions, arm, work, judge, close ...
 *     } */
typedef struct hand_trial {
    test_allocator allocator;
    ivm_allocator functions;
    uint64_t n, failures;
    bool done; /* no allocation of this trial failed */
} hand_trial;
/* Whether there is one more; the last must have left nothing behind. */
bool hand_trial_next(hand_trial *trial);
void hand_trial_arm(hand_trial *trial);
/* The work is over; whether no allocation failed. */
bool hand_trial_disarm(hand_trial *trial);
/* The same where the work must have come to out_of_memory if one did, and else to this. */
void hand_trial_judge(hand_trial *trial, ivm_status status, ivm_status wanted);
/* The same where the work was making an operator: frees it if it is there, closes the hand. */
void hand_trial_judge_made(hand_trial *trial, hand *it, ivm_status status, ivm__operator *made);

uint64_t hand_random(uint64_t *state);
static inline uint32_t hand_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(hand_random(state) % bound);
}

#endif
