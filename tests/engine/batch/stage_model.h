/* A model of tables under batches, to compare staging with: rows of three columns over a small domain, a table an array of weights by row.
 * The model stages a batch by its definition, row after row, without any index. The other half drives an engine with the same parts, as owned
 * rows or as borrowed arrays at odd places, and a view made by hand looks at the deltas that operators would see. */
#ifndef TEST_STAGE_MODEL_H
#define TEST_STAGE_MODEL_H

#include "allocator.h"
#include "catalog.h"
#include "random.h"

#define MODEL_COLUMNS 3u
#define MODEL_ROWS 60u /* 5 x 4 x 3: each column's values and null */
#define MODEL_TABLES 7u
#define MODEL_PARTS_MAX 8u

typedef struct model_row {
    int8_t cell[MODEL_COLUMNS]; /* the number of a value; -1: null */
    int64_t weight;
} model_row;

typedef struct model_table {
    const char *name, *key;
    uint32_t key_columns[MODEL_COLUMNS], key_count;
    ivm_type types[MODEL_COLUMNS];
    bool not_null[MODEL_COLUMNS];
    bool append_only, allow_negative;
    __int128 weights[MODEL_ROWS];
} model_table;

typedef struct model_part {
    uint32_t table;
    ivm_change change;
    bool borrowed;
    uint32_t rows_count, rows_capacity;
    model_row *rows;
} model_part;

typedef struct model_batch {
    model_part parts[MODEL_PARTS_MAX];
    uint32_t parts_count;
} model_batch;

typedef struct model {
    model_table tables[MODEL_TABLES];
    __int128 deltas[MODEL_TABLES][MODEL_ROWS]; /* net, of the last batch */
    test_allocator allocator;
    ivm_engine *engine;
    ivm_table *handles[MODEL_TABLES];
    struct model_probe *probe;
} model;

void model_open(model *it);
void model_close(model *it); /* asserts that nothing was leaked */

void model_part_add(model_batch *batch, uint32_t table, ivm_change change, bool borrowed);
void model_row_add(model_batch *batch, int k, int s, int n, int64_t weight); /* to the last part; of a key: its columns */
void model_batch_random(const model *it, uint64_t *state, model_batch *batch);
void model_batch_clear(model_batch *batch);

/* What the batch should come to; on IVM_OK the tables' weights are changed. Without `apply` nothing is, but the deltas are set. */
ivm_status model_stage(model *it, const model_batch *batch, bool apply);
/* Pushes the batch to the engine. `state` chooses how arrays lie. */
ivm_status model_push(model *it, const model_batch *batch, uint64_t state, ivm_stats *stats, ivm_error *error);
/* The net shape of a table's part of the batch as the engine finds it. */
ivm_status model_shape(model *it, const model_batch *batch, uint32_t table, uint64_t state, ivm_shape *shape);
/* NULL, or what is wrong: contents other than the model's, an index that is not whole. */
const char *model_differs(model *it);
/* NULL, or what was wrong with the deltas of the last push that succeeded. */
const char *model_deltas_differ(const model *it);

/* Makes the hand-made view fail when it runs. */
void model_view_fails(model *it, bool fails);
/* Pushes it saw carried to an end, and taken back. */
uint32_t model_view_commits(const model *it);
uint32_t model_view_undos(const model *it);

#endif
