/* The engine's side of the main job: tables, foreign keys and views, then a batch a day. In a batch the rows of dimensions come that
 * its flights are the first to need, so a star's dimensions gain rows nearly every day, and now and then some are corrected. */
#include "flights.h"

#include "option.h"

#include <string.h>

#define MAKERS_CORRECTED_EVERY 7 /* days */
#define MAKERS_CORRECTED_MAX 40
#define NAME_CORRECTED_EVERY 5

static bool told(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        usage_error("%s: %s", ivm_status_name(status), error->message);
    }
    return status != IVM_OK;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------------------- */

static ivm_status table_create(flights_engine *engine, flights_table table, ivm_error *error)
{
    const table_schema *schema = &table_schemas[table];
    ivm_column_definition columns[TABLE_COLUMNS_MAX];
    ivm_table_options options = { .columns = columns, .key = schema->key };
    for (size_t c = 0; schema->columns[c].name; c++) {
        ivm_status status = ivm_type_parse(schema->columns[c].type, &columns[c].type, error);
        if (status != IVM_OK) {
            return status;
        }
        columns[c].name = schema->columns[c].name;
        columns[c].not_null = schema->columns[c].not_null;
        options.columns_count++;
    }
    return ivm_table_create(engine->engine, schema->name, &options, &engine->tables[table], error);
}

static ivm_status keys_declare(flights_engine *engine, ivm_error *error)
{
    ivm_status status = IVM_OK;
    for (int l = 0; l < LINKS_COUNT && status == IVM_OK; l++) {
        const flights_link *link = &flights_links[l];
        status = ivm_foreign_key_declare(engine->tables[FLIGHT], link->columns, engine->tables[link->parent], link->parent_columns,
                                         link->trust, &engine->facts[l], error);
    }
    return status;
}

static ivm_plan *view_plan(const flights_engine *engine, const flights_view *view)
{
    char column[CELL_TEXT_SIZE];
    ivm_plan *plan = ivm_plan_scan(engine->tables[FLIGHT], NULL);
    for (size_t l = 0; l < view->links_count; l++) {
        const flights_link *link = &flights_links[view->links[l]];
        const char *parent = table_schemas[link->parent].name;
        char on[4 * CELL_TEXT_SIZE] = "";
        size_t size = 0;
        for (size_t c = 0; c < 2 && link->child[c]; c++) {
            size += (size_t)snprintf(on + size, sizeof on - size, "%sflight.%s = %s.%s", c ? ", " : "", link->child[c], parent,
                                     link->parents[c]);
        }
        plan = ivm_plan_join(plan, ivm_plan_scan(engine->tables[link->parent], NULL), on);
    }
    plan = ivm_plan_aggregate(plan, NULL);
    for (size_t g = 0; g < view->groups_count; g++) {
        const view_group *group = &view->groups[g];
        snprintf(column, sizeof column, "%s.%s", table_schemas[flights_links[group->link].parent].name, group->column);
        plan = ivm_plan_group(plan, group->name, ivm_column(column));
    }
    plan = ivm_plan_count(plan, "flights");
    for (size_t m = 0; m < view->measures_count; m++) {
        const view_measure *measure = &view->measures[m];
        bool parent = measure->kind == SUM_OF_PARENT;
        snprintf(column, sizeof column, "%s.%s", parent ? table_schemas[flights_links[view->links[0]].parent].name : "flight",
                 measure->column);
        plan = ivm_plan_add(plan, measure->name, parent ? "sum" : "avg", ivm_column(column));
    }
    return plan;
}

bool flights_engine_open(flights_engine *engine, const ivm_planner_options *planner)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    options.planner = *planner;
    *engine = (flights_engine){ 0 };
    ivm_status status = ivm_engine_open(&options, &engine->engine, &error);
    for (int t = 0; t < TABLES_COUNT && status == IVM_OK; t++) {
        status = table_create(engine, (flights_table)t, &error);
    }
    if (status == IVM_OK) {
        status = keys_declare(engine, &error);
    }
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT && status == IVM_OK; v++) {
        ivm_plan *plan = view_plan(engine, &flights_views[v]);
        status = ivm_view_create(engine->engine, flights_views[v].name, plan, NULL, &engine->views[v], &error);
    }
    if (told(status, &error)) {
        flights_engine_close(engine);
        return false;
    }
    return true;
}

void flights_engine_close(flights_engine *engine)
{
    ivm_error error = IVM_ERROR_INIT;
    told(ivm_engine_close(engine->engine, &error), &error);
    *engine = (flights_engine){ 0 };
}

/* ---- A day --------------------------------------------------------------------------------------------------------------------- */

typedef struct day_batch {
    const flights_engine *engine;
    flights_data *data;
    ivm_batch *batch;
    ivm_error error; /* a cell that is no value */
} day_batch;

static void row_add(day_batch *day, flights_table table, size_t row, ivm_change change)
{
    const table_column *columns = table_schemas[table].columns;
    ivm_value values[TABLE_COLUMNS_MAX];
    char texts[TABLE_COLUMNS_MAX][CELL_TEXT_SIZE];
    size_t count = 0;
    for (; columns[count].name; count++) {
        const char *cell = flights_cell(day->data, table, row, count, texts[count]);
        values[count] = ivm_null();
        ivm_type type = ivm_table_column_type(day->engine->tables[table], count);
        if (cell && ivm_value_parse(type, cell, strlen(cell), &values[count], &day->error) != IVM_OK) {
            return;
        }
    }
    /* The batch remembers a mistake and the push tells it. */
    (void)ivm_batch_row(day->batch, day->engine->tables[table], change, 1, values, count);
}

static uint64_t arrivals_add(day_batch *day, size_t first, size_t end)
{
    uint64_t rows = 0;
    for (size_t f = first; f < end; f++) {
        for (int l = 0; l < LINKS_COUNT; l++) {
            flights_table table = flights_links[l].parent;
            uint32_t parent = day->data->parents[l][f];
            if (parent != PARENT_NONE && !day->data->arrived[table][parent]) {
                day->data->arrived[table][parent] = true;
                row_add(day, table, parent, IVM_INSERT);
                rows++;
            }
        }
    }
    return rows;
}

/* Corrects up to `limit` rows that came before today. */
static uint64_t corrections_add(day_batch *day, flights_table table, uint64_t limit)
{
    const flights_data *data = day->data;
    uint64_t rows = 0;
    for (size_t r = 0; r < data->sheets[table].rows_count && rows < limit; r++) {
        if (data->arrived[table][r] && !data->corrected[table][r] && flights_correctable(data, table, r)) {
            data->corrected[table][r] = true;
            row_add(day, table, r, IVM_UPSERT);
            rows++;
        }
    }
    return rows;
}

static uint64_t day_corrections_add(day_batch *day, size_t number)
{
    uint64_t rows = corrections_add(day, WEATHER, UINT64_MAX);
    if (number % MAKERS_CORRECTED_EVERY == MAKERS_CORRECTED_EVERY - 1) {
        rows += corrections_add(day, PLANE, MAKERS_CORRECTED_MAX);
    }
    if (number % NAME_CORRECTED_EVERY == NAME_CORRECTED_EVERY - 1) {
        rows += corrections_add(day, AIRLINE, 1);
    }
    return rows;
}

static void stats_add(flights_totals *totals, const ivm_stats *stats)
{
    totals->stats.batches += stats->batches;
    totals->stats.rows_in += stats->rows_in;
    totals->stats.rows_out += stats->rows_out;
    totals->stats.terms_run += stats->terms_run;
    totals->stats.terms_pruned += stats->terms_pruned;
    totals->stats.terms_empty += stats->terms_empty;
    totals->stats.rows_probed += stats->rows_probed;
    totals->stats.rows_matched += stats->rows_matched;
    totals->stats.nanoseconds += stats->nanoseconds;
    totals->stats.bytes_held = stats->bytes_held;
    for (size_t v = 0; v < FLIGHTS_VIEWS_COUNT; v++) {
        totals->masks += ((uint64_t)1 << (flights_views[v].links_count + 1)) - 1;
    }
}

bool flights_day_push(flights_engine *engine, flights_data *data, size_t day, flights_totals *totals)
{
    day_batch today = { .engine = engine, .data = data, .error = IVM_ERROR_INIT };
    ivm_stats stats;
    if (told(ivm_batch_create(engine->engine, &today.batch, &today.error), &today.error)) {
        return false;
    }
    uint64_t corrections = day_corrections_add(&today, day);
    uint64_t arrivals = arrivals_add(&today, data->days[day], data->days[day + 1]);
    for (size_t f = data->days[day]; f < data->days[day + 1]; f++) {
        row_add(&today, FLIGHT, f, IVM_INSERT);
    }
    if (told(today.error.status, &today.error)) {
        ivm_batch_free(today.batch);
        return false;
    }
    if (told(ivm_push_batch(engine->engine, today.batch, &stats, &today.error), &today.error)) {
        return false;
    }
    stats_add(totals, &stats);
    totals->corrections += corrections;
    totals->dimension_rows += arrivals;
    totals->flights += data->days[day + 1] - data->days[day];
    return true;
}
