/* A star in the engine; see star_engine.h. Foreign keys are declared rely: the data keeps them. */
#include "star_engine.h"

#include "option.h"

#include <stdio.h>
#include <stdlib.h>

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("%s: %s", ivm_status_name(status), error->message));
    }
}

/* ---- Opening ------------------------------------------------------------------------------------------------------------------- */

static void dimension_create(star_engine *star, uint32_t dimension, ivm_error *error)
{
    static const ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "attribute", IVM_INT64, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "id" };
    char name[16];
    snprintf(name, sizeof name, "d%u", dimension);
    must(ivm_table_create(star->engine, name, &options, &star->dimensions[dimension], error), error);
}

static void fact_create(star_engine *star, uint32_t dimensions, ivm_error *error)
{
    char names[STAR_DIMENSIONS_MAX][16];
    ivm_column_definition columns[STAR_DIMENSIONS_MAX + 1];
    for (uint32_t d = 0; d < dimensions; d++) {
        snprintf(names[d], sizeof names[d], "k%u", d);
        columns[d] = (ivm_column_definition){ names[d], IVM_INT64, true };
    }
    columns[dimensions] = (ivm_column_definition){ "amount", IVM_INT64, true };
    ivm_table_options options = { .columns = columns, .columns_count = dimensions + 1 };
    must(ivm_table_create(star->engine, "f", &options, &star->fact_table, error), error);
    for (uint32_t d = 0; d < dimensions; d++) {
        must(ivm_foreign_key_declare(star->fact_table, names[d], star->dimensions[d], "id", IVM_RELY, NULL, error), error);
    }
}

static ivm_plan *star_plan(uint32_t dimensions, uint32_t grouped)
{
    char on[STAR_DIMENSIONS_MAX * 32] = "";
    ivm_plan *inputs[STAR_DIMENSIONS_MAX + 1] = { ivm_plan_scan_name("f", NULL) };
    size_t on_size = 0;
    for (uint32_t d = 0; d < dimensions; d++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", d);
        inputs[d + 1] = ivm_plan_scan_name(name, NULL);
        on_size += (size_t)snprintf(on + on_size, sizeof on - on_size, "%sf.k%u = d%u.id", d ? ", " : "", d, d);
    }
    ivm_plan *plan = ivm_plan_join_many(inputs, dimensions + 1, on);
    /* Every dimension has a column of this name: the view needs names of its own. */
    plan = ivm_plan_aggregate(plan, NULL);
    for (uint32_t d = 0; d < grouped; d++) {
        char name[16], column[32];
        snprintf(name, sizeof name, "a%u", d);
        snprintf(column, sizeof column, "d%u.attribute", d);
        plan = ivm_plan_group(plan, name, ivm_column(column));
    }
    plan = ivm_plan_add(plan, "total", "sum", ivm_column("f.amount"));
    return ivm_plan_count(plan, "fact_rows");
}

void star_engine_open(star_engine *star, const star_shape *shape, uint32_t grouped, const ivm_planner_options *planner)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    if (planner) {
        options.planner = *planner;
    }
    *star = (star_engine){ 0 };
    must(ivm_engine_open(&options, &star->engine, &error), &error);
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        dimension_create(star, d, &error);
    }
    fact_create(star, shape->dimensions, &error);
    must(ivm_view_create(star->engine, "star", star_plan(shape->dimensions, grouped), NULL, &star->view, &error), &error);
}

void star_engine_close(star_engine *star)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_close(star->engine, &error), &error);
    *star = (star_engine){ 0 };
}

/* ---- Pushing ------------------------------------------------------------------------------------------------------------------- */

ivm_batch *star_batch(star_engine *star)
{
    ivm_batch *batch;
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_batch_create(star->engine, &batch, &error), &error);
    return batch;
}

static void rows_add(ivm_batch *batch, ivm_table *table, const int64_t *const *columns, size_t columns_count, star_part part)
{
    ivm_column_data data[STAR_DIMENSIONS_MAX + 1] = { 0 };
    for (size_t c = 0; c < columns_count; c++) {
        data[c].values = columns[c] + part.first;
    }
    ivm_rows rows = { .rows_count = part.count, .columns_count = columns_count, .columns = data };
    /* The batch remembers a mistake and the push tells it. */
    (void)ivm_batch_columns(batch, table, IVM_INSERT, &rows);
}

void star_batch_dimension(star_engine *star, ivm_batch *batch, uint32_t dimension, star_part part)
{
    const int64_t *columns[] = { part.data->keys[dimension], part.data->attributes[dimension] };
    rows_add(batch, star->dimensions[dimension], columns, 2, part);
}

void star_batch_fact_rows(star_engine *star, ivm_batch *batch, star_part part)
{
    rows_add(batch, star->fact_table, (const int64_t *const *)part.data->fact_columns, part.data->shape.dimensions + 1, part);
}

void star_push(star_engine *star, ivm_batch *batch, ivm_stats *stats)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_push_batch(star->engine, batch, stats, &error), &error);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------- */

void star_rows(star_engine *star, star_row *row, void *context)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    must(ivm_read_view(star->view, &snapshot, &error), &error);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            int64_t cells[STAR_DIMENSIONS_MAX + 2];
            for (size_t c = 0; c < rows.columns_count; c++) {
                cells[c] = ivm_rows_value(&rows, IVM_INT64, r, c).as.int64;
            }
            row(context, cells, rows.columns_count);
        }
    }
    must(ivm_snapshot_status(snapshot), &error);
    ivm_snapshot_close(snapshot);
}
