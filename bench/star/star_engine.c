/* A star in the engine; see star_engine.h. The data keeps its foreign keys, whatever their trust. */
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

static void dimension_create(star_engine *star, uint32_t dimension, bool append_only, ivm_error *error)
{
    const ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "attribute", star->strings ? IVM_STRING : IVM_INT64, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "id", .append_only = append_only };
    char name[16];
    snprintf(name, sizeof name, "d%u", dimension);
    must(ivm_table_create(star->engine, name, &options, &star->dimensions[dimension], error), error);
}

static void fact_create(star_engine *star, uint32_t dimensions, const star_options *how, ivm_error *error)
{
    char names[STAR_DIMENSIONS_MAX][16];
    ivm_column_definition columns[STAR_DIMENSIONS_MAX + 1];
    for (uint32_t d = 0; d < dimensions; d++) {
        snprintf(names[d], sizeof names[d], "k%u", d);
        columns[d] = (ivm_column_definition){ names[d], IVM_INT64, true };
    }
    columns[dimensions] = (ivm_column_definition){ "amount", IVM_INT64, true };
    ivm_table_options options = { .columns = columns, .columns_count = dimensions + 1, .transient = how->transient };
    must(ivm_table_create(star->engine, "f", &options, &star->fact_table, error), error);
    for (uint32_t d = 0; d < dimensions; d++) {
        must(ivm_foreign_key_declare(star->fact_table, names[d], star->dimensions[d], "id", how->trust, NULL, error), error);
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

void star_engine_open(star_engine *star, const star_shape *shape, const star_options *how)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    options.planner = how->planner ? *how->planner : options.planner;
    options.allocator = how->allocator ? *how->allocator : options.allocator;
    options.threads = how->threads ? how->threads : options.threads;
    *star = (star_engine){ .strings = shape->strings };
    must(ivm_engine_open(&options, &star->engine, &error), &error);
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        dimension_create(star, d, how->transient, &error);
    }
    fact_create(star, shape->dimensions, how, &error);
    must(ivm_view_create(star->engine, "star", star_plan(shape->dimensions, how->grouped), NULL, &star->view, &error), &error);
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

void star_batch_columns(ivm_batch *batch, ivm_table *table, ivm_change change, const star_columns *columns)
{
    ivm_column_data data[STAR_DIMENSIONS_MAX + 1] = { 0 };
    for (size_t c = 0; c < columns->columns_count; c++) {
        data[c].values = columns->columns[c];
    }
    ivm_rows rows = { .rows_count = columns->rows_count, .columns_count = columns->columns_count, .columns = data };
    /* The batch remembers a mistake and the push tells it. */
    (void)ivm_batch_columns(batch, table, change, &rows);
}

void star_batch_dimension(star_engine *star, ivm_batch *batch, uint32_t dimension, star_part part)
{
    if (star->strings) {
        const star_data *data = part.data;
        const ivm_column_data columns[] = { { .values = data->keys[dimension] + part.first },
                                            { .values = data->texts[dimension], .offsets = data->text_offsets[dimension] + part.first } };
        ivm_rows rows = { .rows_count = part.count, .columns_count = 2, .columns = columns };
        (void)ivm_batch_columns(batch, star->dimensions[dimension], IVM_INSERT, &rows);
        return;
    }
    star_columns columns = { { part.data->keys[dimension] + part.first, part.data->attributes[dimension] + part.first }, 2, part.count };
    star_batch_columns(batch, star->dimensions[dimension], IVM_INSERT, &columns);
}

void star_batch_fact_rows(star_engine *star, ivm_batch *batch, star_part part)
{
    star_columns columns = { .columns_count = part.data->shape.dimensions + 1, .rows_count = part.count };
    for (size_t c = 0; c < columns.columns_count; c++) {
        columns.columns[c] = part.data->fact_columns[c] + part.first;
    }
    star_batch_columns(batch, star->fact_table, IVM_INSERT, &columns);
}

void star_push(star_engine *star, ivm_batch *batch, ivm_stats *stats)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_push_batch(star->engine, batch, stats, &error), &error);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------- */

static int64_t cell_number(const ivm_rows *rows, ivm_type type, size_t row, size_t column)
{
    ivm_value value = ivm_rows_value(rows, type, row, column);
    if (type != IVM_STRING) {
        return value.as.int64;
    }
    int64_t number = 0;
    for (size_t i = value.as.string.size - 6; i < value.as.string.size; i++) {
        number = number * 10 + (value.as.string.bytes[i] - '0');
    }
    return number;
}

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
                cells[c] = cell_number(&rows, ivm_snapshot_column_type(snapshot, c), r, c);
            }
            row(context, cells, rows.columns_count);
        }
    }
    must(ivm_snapshot_status(snapshot), &error);
    ivm_snapshot_close(snapshot);
}

/* A sum over rows that does not depend on their order and takes every cell into account. */
static void row_digest(void *context, const int64_t *cells, size_t cells_count)
{
    uint64_t digest = 0, *sum = context;
    for (size_t c = 0; c < cells_count; c++) {
        digest = (digest ^ (uint64_t)cells[c]) * 0x9E3779B97F4A7C15ull + (digest >> 29);
    }
    *sum += digest | 1;
}

uint64_t star_rows_digest(star_engine *star)
{
    uint64_t sum = 0;
    star_rows(star, row_digest, &sum);
    return sum;
}
