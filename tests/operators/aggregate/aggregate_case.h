/* Aggregates for tests: an operator with every function over every type, steps given to it as chunks, and a model that computes its rows anew
 * from the input rows that are there.
 *
 * Input columns: g int64, h string (the groups), v int64, d float64, m decimal(12,2), s string, b bool, t date; all may be null. A string cell
 * is a number of AGG_TEXTS. */
#ifndef TEST_AGGREGATE_CASE_H
#define TEST_AGGREGATE_CASE_H

#include "allocator.h"
#include "hand.h"

#define AGG_COLUMNS 8u
#define AGG_FUNCTIONS 54u
#define AGG_OUTPUTS_MAX (2 + AGG_FUNCTIONS)
#define AGG_TEXTS_COUNT 6u

typedef struct agg_row {
    ivm__wide cells[AGG_COLUMNS];
    bool nulls[AGG_COLUMNS];
    ivm__weight weight;
} agg_row;

typedef struct agg_rows {
    agg_row *row;
    size_t count, capacity;
} agg_rows;

/* A row of the aggregate: groups, then values. */
typedef struct agg_output {
    ivm__wide cells[AGG_OUTPUTS_MAX];
    bool nulls[AGG_OUTPUTS_MAX];
    int64_t weight;
} agg_output;

typedef struct agg_outputs {
    agg_output *row;
    size_t count, capacity;
    uint32_t columns_count;
} agg_outputs;

typedef struct agg_case {
    hand it;
    test_allocator allocator;
    uint32_t groups_count; /* 0, 1: g, 2: g and h */
    bool having;           /* more than one row */
    bool negative;         /* the net weights of rows may be below 0 */
    ivm__operator *operator;
    ivm__operator sink;
    agg_outputs emitted; /* by the last step */
    uint32_t emitted_chunks;
    agg_rows live; /* what is there, a row an addition; what falls to 0 is taken out */
} agg_case;

void agg_open(agg_case *it, uint32_t groups_count, bool having);
void agg_open_negative(agg_case *it, uint32_t groups_count, bool having);
void agg_close(agg_case *it); /* asserts that nothing is left */

void agg_rows_add(agg_rows *rows, const agg_row *row);
void agg_rows_free(agg_rows *rows);
void agg_outputs_free(agg_outputs *outputs);

/* A random row of weight 1 to 3. */
agg_row agg_draw(uint64_t *random);
/* Random changes: new rows, and some or all of the weight of rows that are there; where weights may be negative, rows that are to come, too.
 * With noise, rows come and go within the step, too. */
void agg_changes(const agg_case *it, uint32_t count, bool noise, agg_rows *changes, uint64_t *random);
void agg_shuffle(agg_rows *rows, uint64_t *random);

/* One step: the changes as chunks of random sizes; where weights may be negative in three ports, one after the other in any order. Committed if `keep` is set and all went well, else undone. Live rows follow. */
ivm_status agg_step(agg_case *it, const agg_rows *changes, bool initial, bool keep, uint64_t *random);

/* The rows by the model, the rows in the result, and what must have been emitted between two of them; sorted by groups. */
void agg_model(const agg_case *it, agg_outputs *outputs);
void agg_result(agg_case *it, agg_outputs *outputs);
void agg_difference(const agg_outputs *before, const agg_outputs *after, agg_outputs *changes);
/* Prints the first difference. */
bool agg_equal(agg_outputs *got, agg_outputs *want);

/* Asserts that result and emitted rows are those of the model, `before` having been its rows; it then becomes the present ones. */
void agg_assert_step(agg_case *it, agg_outputs *before, const char *when, uint64_t seed);

#endif
