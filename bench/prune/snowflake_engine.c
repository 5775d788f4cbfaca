/* A snowflake's rows, its engine and its recomputation; see snowflake.h. The view groups by e0.attribute, e1.attribute and d2.attribute. */
#include "snowflake.h"

#include "arena.h"
#include "measure.h"
#include "option.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS_FIRST 10000
#define ROWS_STEP 50
#define OUTER_FIRST 500
#define OUTER_STEP 5
#define OUTER_ATTRIBUTES 12
#define ATTRIBUTES 8
#define GROUPS (OUTER_ATTRIBUTES * OUTER_ATTRIBUTES * ATTRIBUTES)

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench snowflake: %s: %s", ivm_status_name(status), error->message));
    }
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t rows_until(const snowflake_part *part, uint64_t number)
{
    return part->first + (uint32_t)number * part->step;
}

/* The batch that brings a row. */
static uint32_t batch_of(const snowflake_part *part, uint32_t row)
{
    return row < part->first ? 0 : (row - part->first) / part->step + 1;
}

static int64_t key_of(uint32_t table, uint32_t row)
{
    return (int64_t)((((uint64_t)table << 40) + row + 1) * 0x9E3779B97F4A7C15ull & INT64_MAX);
}

static void part_make(snowflake_part *part, uint32_t columns_count, uint32_t rows)
{
    part->columns_count = columns_count;
    for (uint32_t c = 0; c < columns_count; c++) {
        part->columns[c] = memory_take(rows * sizeof(int64_t));
    }
}

/* Column `column` of `part` refers to any row of `to` that the row's own batch or one before it brings. */
static void refers_make(snowflake_part *part, uint32_t column, const snowflake_part *to, uint32_t rows, random_state *random)
{
    part->refers[column] = memory_take(rows * sizeof(uint32_t));
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t row = random_below(random, rows_until(to, batch_of(part, i)));
        part->refers[column][i] = row;
        part->columns[column][i] = to->columns[0][row];
    }
}

void snowflake_data_make(snowflake_data *data, uint32_t fact_rows, uint32_t batches)
{
    random_state random = { 0x082EFA98EC4E6C89ull };
    *data = (snowflake_data){ .facts = { .first = fact_rows, .step = SNOWFLAKE_FACTS_A_BATCH } };
    uint32_t facts = rows_until(&data->facts, batches);
    part_make(&data->facts, SNOWFLAKE_DIMENSIONS + 1, facts);
    for (uint32_t d = 0; d < SNOWFLAKE_DIMENSIONS; d++) {
        snowflake_part *outer = &data->outers[d], *dimension = &data->dimensions[d];
        *outer = (snowflake_part){ .first = OUTER_FIRST, .step = OUTER_STEP };
        *dimension = (snowflake_part){ .first = ROWS_FIRST, .step = ROWS_STEP };
        uint32_t outers = rows_until(outer, batches), rows = rows_until(dimension, batches);
        part_make(outer, 2, outers);
        part_make(dimension, 3, rows);
        for (uint32_t i = 0; i < outers; i++) {
            outer->columns[0][i] = key_of(d, i);
            outer->columns[1][i] = random_below(&random, OUTER_ATTRIBUTES);
        }
        for (uint32_t i = 0; i < rows; i++) {
            dimension->columns[0][i] = key_of(SNOWFLAKE_DIMENSIONS + d, i);
            dimension->columns[2][i] = random_below(&random, ATTRIBUTES);
        }
        refers_make(dimension, 1, outer, rows, &random);
        refers_make(&data->facts, d, dimension, facts, &random);
    }
    for (uint32_t i = 0; i < facts; i++) {
        data->facts.columns[SNOWFLAKE_DIMENSIONS][i] = random_below(&random, 1000);
    }
}

static void part_free(snowflake_part *part)
{
    for (uint32_t c = 0; c < part->columns_count; c++) {
        free(part->columns[c]);
    }
    for (uint32_t c = 0; c < SNOWFLAKE_DIMENSIONS; c++) {
        free(part->refers[c]);
    }
}

void snowflake_data_free(snowflake_data *data)
{
    part_free(&data->facts);
    for (uint32_t d = 0; d < SNOWFLAKE_DIMENSIONS; d++) {
        part_free(&data->dimensions[d]);
        part_free(&data->outers[d]);
    }
}

/* ---- The engine ---------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_create(ivm_engine *engine, const char *name, const char *const *columns, const char *key)
{
    ivm_column_definition definitions[SNOWFLAKE_DIMENSIONS + 1];
    ivm_table_options options = { .columns = definitions, .key = key };
    ivm_error error = IVM_ERROR_INIT;
    ivm_table *table;
    for (; columns[options.columns_count]; options.columns_count++) {
        definitions[options.columns_count] = (ivm_column_definition){ columns[options.columns_count], IVM_INT64, true };
    }
    must(ivm_table_create(engine, name, &options, &table, &error), &error);
    return table;
}

static ivm_plan *plan_make(void)
{
    ivm_plan *inputs[2 * SNOWFLAKE_DIMENSIONS + 1] = { ivm_plan_scan_name("f", NULL) };
    for (int d = 0; d < SNOWFLAKE_DIMENSIONS; d++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "d%d", d);
        snprintf(name[1], sizeof name[1], "e%d", d);
        inputs[1 + 2 * d] = ivm_plan_scan_name(name[0], NULL);
        inputs[2 + 2 * d] = ivm_plan_scan_name(name[1], NULL);
    }
    ivm_plan *plan = ivm_plan_join_many(inputs, 2 * SNOWFLAKE_DIMENSIONS + 1,
                                        "f.k0 = d0.id, d0.outer_id = e0.id, f.k1 = d1.id, d1.outer_id = e1.id, f.k2 = d2.id, "
                                        "d2.outer_id = e2.id");
    plan = ivm_plan_aggregate(plan, NULL);
    plan = ivm_plan_group(plan, "a0", ivm_column("e0.attribute"));
    plan = ivm_plan_group(plan, "a1", ivm_column("e1.attribute"));
    plan = ivm_plan_group(plan, "a2", ivm_column("d2.attribute"));
    plan = ivm_plan_add(plan, "total", "sum", ivm_column("f.amount"));
    return ivm_plan_count(plan, "fact_rows");
}

void snowflake_open(snowflake_engine *engine, const ivm_planner_options *planner)
{
    static const char *const outer_columns[] = { "id", "attribute", NULL }, *const columns[] = { "id", "outer_id", "attribute", NULL };
    static const char *const fact_columns[] = { "k0", "k1", "k2", "amount", NULL };
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    options.planner = *planner;
    must(ivm_engine_open(&options, &engine->engine, &error), &error);
    engine->facts = table_create(engine->engine, "f", fact_columns, NULL);
    for (int d = 0; d < SNOWFLAKE_DIMENSIONS; d++) {
        char name[16];
        snprintf(name, sizeof name, "e%d", d);
        engine->outers[d] = table_create(engine->engine, name, outer_columns, "id");
        snprintf(name, sizeof name, "d%d", d);
        engine->dimensions[d] = table_create(engine->engine, name, columns, "id");
        must(ivm_foreign_key_declare(engine->dimensions[d], "outer_id", engine->outers[d], "id", IVM_RELY, NULL, &error), &error);
        must(ivm_foreign_key_declare(engine->facts, fact_columns[d], engine->dimensions[d], "id", IVM_RELY, NULL, &error), &error);
    }
    must(ivm_view_create(engine->engine, "snowflake", plan_make(), NULL, &engine->view, &error), &error);
}

void snowflake_close(snowflake_engine *engine)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_close(engine->engine, &error), &error);
}

static void part_fill(ivm_batch *batch, ivm_table *table, const snowflake_part *part, uint64_t number)
{
    ivm_column_data columns[SNOWFLAKE_DIMENSIONS + 1] = { 0 };
    uint32_t from = number ? rows_until(part, number - 1) : 0;
    for (uint32_t c = 0; c < part->columns_count; c++) {
        columns[c].values = part->columns[c] + from;
    }
    ivm_rows rows = { .rows_count = rows_until(part, number) - from, .columns_count = part->columns_count, .columns = columns };
    (void)ivm_batch_columns(batch, table, IVM_INSERT, &rows);
}

uint64_t snowflake_push(snowflake_engine *engine, const snowflake_data *data, uint64_t number)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    must(ivm_batch_create(engine->engine, &batch, &error), &error);
    part_fill(batch, engine->facts, &data->facts, number);
    for (int d = 0; d < SNOWFLAKE_DIMENSIONS; d++) {
        part_fill(batch, engine->dimensions[d], &data->dimensions[d], number);
        part_fill(batch, engine->outers[d], &data->outers[d], number);
    }
    uint64_t start = clock_nanoseconds();
    must(ivm_push_batch(engine->engine, batch, NULL, &error), &error);
    return clock_nanoseconds() - start;
}

/* ---- Recomputation ------------------------------------------------------------------------------------------------------------- */

typedef struct snowflake_group {
    int64_t sum, count;
} snowflake_group;

static void groups_compute(snowflake_group *groups, const snowflake_data *data, uint64_t number)
{
    for (uint32_t i = 0; i < rows_until(&data->facts, number); i++) {
        int64_t outer[2], inner = data->dimensions[2].columns[2][data->facts.refers[2][i]];
        for (int d = 0; d < 2; d++) {
            outer[d] = data->outers[d].columns[1][data->dimensions[d].refers[1][data->facts.refers[d][i]]];
        }
        snowflake_group *group = &groups[(outer[0] * OUTER_ATTRIBUTES + outer[1]) * ATTRIBUTES + inner];
        group->sum += data->facts.columns[SNOWFLAKE_DIMENSIONS][i];
        group->count++;
    }
}

/* Takes each row of the view from its group; what is left in any is a difference. */
uint64_t snowflake_unequal(snowflake_engine *engine, const snowflake_data *data, uint64_t number)
{
    snowflake_group *groups = memory_take(GROUPS * sizeof *groups);
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    uint64_t unequal = 0;
    groups_compute(groups, data, number);
    must(ivm_read_view(engine->view, &snapshot, &error), &error);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            int64_t cells[5];
            for (size_t c = 0; c < 5; c++) {
                cells[c] = ivm_rows_value(&rows, IVM_INT64, r, c).as.int64;
            }
            snowflake_group *group = &groups[(cells[0] * OUTER_ATTRIBUTES + cells[1]) * ATTRIBUTES + cells[2]];
            group->sum -= cells[3];
            group->count -= cells[4];
        }
    }
    must(ivm_snapshot_status(snapshot), &error);
    ivm_snapshot_close(snapshot);
    for (uint32_t g = 0; g < GROUPS; g++) {
        unequal += groups[g].sum != 0 || groups[g].count != 0;
    }
    free(groups);
    return unequal;
}
