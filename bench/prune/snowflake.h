/* A snowflake: f (k0, k1, k2, amount), dimensions d0 .. d2 (id, outer_id, attribute), outer dimensions e0 .. e2 (id, attribute). */
#ifndef IVM_BENCH_SNOWFLAKE_H
#define IVM_BENCH_SNOWFLAKE_H

#include "ivm/ivm.h"

#include <stdint.h>

#define SNOWFLAKE_DIMENSIONS 3
#define SNOWFLAKE_FACTS_A_BATCH 1000

/* Columns of a table; batch 0 has the first `first` rows, each one after it `step` more. */
typedef struct snowflake_part {
    int64_t *columns[SNOWFLAKE_DIMENSIONS + 1];
    uint32_t columns_count, first, step;
    uint32_t *refers[SNOWFLAKE_DIMENSIONS]; /* the row of the table that a column refers to */
} snowflake_part;

typedef struct snowflake_data {
    snowflake_part facts, dimensions[SNOWFLAKE_DIMENSIONS], outers[SNOWFLAKE_DIMENSIONS];
} snowflake_data;

typedef struct snowflake_engine {
    ivm_engine *engine;
    ivm_table *facts, *dimensions[SNOWFLAKE_DIMENSIONS], *outers[SNOWFLAKE_DIMENSIONS];
    ivm_view *view;
} snowflake_engine;

void snowflake_data_make(snowflake_data *data, uint32_t fact_rows, uint32_t batches);
void snowflake_data_free(snowflake_data *data);

/* What fails ends the process. */
void snowflake_open(snowflake_engine *engine, const ivm_planner_options *planner);
void snowflake_close(snowflake_engine *engine);
/* Nanoseconds of the push of batch `number`. */
uint64_t snowflake_push(snowflake_engine *engine, const snowflake_data *data, uint64_t number);
/* Groups that are not what a loop over the rows of the batches up to `number` gives. */
uint64_t snowflake_unequal(snowflake_engine *engine, const snowflake_data *data, uint64_t number);

#endif
