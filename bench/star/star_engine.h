/* The engine's side of the star measurements: the tables, the foreign keys and the view of a star, filled through the public interface. */
#ifndef IVM_BENCH_STAR_ENGINE_H
#define IVM_BENCH_STAR_ENGINE_H

#include "ivm/ivm.h"
#include "star_data.h"

typedef struct star_engine {
    ivm_engine *engine;
    ivm_table *fact_table, *dimensions[STAR_DIMENSIONS_MAX];
    bool strings;   /* attributes are */
    ivm_view *view; /* the attributes it groups by, then total and fact_rows */
} star_engine;

/* All zero but `grouped`: an engine as it comes, foreign keys relied on, all rows kept. */
typedef struct star_options {
    uint32_t grouped; /* the view groups by the attributes of so many dimensions, the first ones */
    const ivm_planner_options *planner;
    const ivm_allocator *allocator;
    ivm_trust trust;
    uint32_t threads; /* 0: 1 */
    bool transient;   /* the fact table is, and dimensions are append_only */
} star_options;

/* What fails ends the process with a line and exit code 2. */
void star_engine_open(star_engine *star, const star_shape *shape, const star_options *options);
void star_engine_close(star_engine *star);

/* A part of a batch: rows [first, first + count) of a dimension, or of the fact table. The arrays stay borrowed until the push. */
typedef struct star_part {
    const star_data *data;
    size_t first, count;
} star_part;
ivm_batch *star_batch(star_engine *star);
void star_batch_dimension(star_engine *star, ivm_batch *batch, uint32_t dimension, star_part part);
void star_batch_fact_rows(star_engine *star, ivm_batch *batch, star_part part);
/* Any change of a table by columns of its types, borrowed like those. */
typedef struct star_columns {
    const int64_t *columns[STAR_DIMENSIONS_MAX + 1];
    size_t columns_count, rows_count;
} star_columns;
void star_batch_columns(ivm_batch *batch, ivm_table *table, ivm_change change, const star_columns *columns);
void star_push(star_engine *star, ivm_batch *batch, ivm_stats *stats);

/* The view's rows, strings as their numbers: calls `row` with the attributes, the total and the number of fact rows of each. */
typedef void star_row(void *context, const int64_t *cells, size_t cells_count);
void star_rows(star_engine *star, star_row *row, void *context);
/* Equal for equal rows in any order. */
uint64_t star_rows_digest(star_engine *star);

#endif
