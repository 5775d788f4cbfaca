/* TPC-H's tables, foreign keys and views in the engine; see tpch.h. Rows enter one by one: only pushes are timed. */
#include "tpch.h"

#include "measure.h"
#include "option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MONEY IVM_DECIMAL(15, 2)
#define COLUMNS_MAX 16

void tpch_must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench tpch: %s: %s", ivm_status_name(status), error->message));
    }
}

typedef struct table_schema {
    const char *name, *key;
    ivm_column_definition columns[COLUMNS_MAX]; /* ends with a NULL name */
} table_schema;

static const table_schema schemas[TPCH_TABLES] = {
    { "region", "r_regionkey", { { "r_regionkey", IVM_INT64, true }, { "r_name", IVM_STRING, true } } },
    { "nation", "n_nationkey", { { "n_nationkey", IVM_INT64, true }, { "n_name", IVM_STRING, true }, { "n_regionkey", IVM_INT64, true } } },
    { "supplier", "s_suppkey", { { "s_suppkey", IVM_INT64, true }, { "s_nationkey", IVM_INT64, true } } },
    { "customer",
      "c_custkey",
      { { "c_custkey", IVM_INT64, true },
        { "c_name", IVM_STRING, true },
        { "c_nationkey", IVM_INT64, true },
        { "c_acctbal", MONEY, true },
        { "c_mktsegment", IVM_STRING, true } } },
    { "part",
      "p_partkey",
      { { "p_partkey", IVM_INT64, true },
        { "p_brand", IVM_STRING, true },
        { "p_size", IVM_INT64, true },
        { "p_container", IVM_STRING, true } } },
    { "orders",
      "o_orderkey",
      { { "o_orderkey", IVM_INT64, true },
        { "o_custkey", IVM_INT64, true },
        { "o_orderdate", IVM_DATE, true },
        { "o_orderpriority", IVM_STRING, true },
        { "o_shippriority", IVM_INT64, true } } },
    { "lineitem",
      "l_orderkey, l_linenumber",
      { { "l_orderkey", IVM_INT64, true },
        { "l_partkey", IVM_INT64, true },
        { "l_suppkey", IVM_INT64, true },
        { "l_linenumber", IVM_INT64, true },
        { "l_quantity", MONEY, true },
        { "l_extendedprice", MONEY, true },
        { "l_discount", MONEY, true },
        { "l_tax", MONEY, true },
        { "l_returnflag", IVM_STRING, true },
        { "l_linestatus", IVM_STRING, true },
        { "l_shipdate", IVM_DATE, true },
        { "l_commitdate", IVM_DATE, true },
        { "l_receiptdate", IVM_DATE, true },
        { "l_shipinstruct", IVM_STRING, true },
        { "l_shipmode", IVM_STRING, true } } },
};

static const struct {
    int child;
    const char *columns;
    int parent;
    const char *key;
} foreign_keys[] = {
    { TPCH_NATION, "n_regionkey", TPCH_REGION, "r_regionkey" },   { TPCH_SUPPLIER, "s_nationkey", TPCH_NATION, "n_nationkey" },
    { TPCH_CUSTOMER, "c_nationkey", TPCH_NATION, "n_nationkey" }, { TPCH_ORDERS, "o_custkey", TPCH_CUSTOMER, "c_custkey" },
    { TPCH_LINEITEM, "l_orderkey", TPCH_ORDERS, "o_orderkey" },   { TPCH_LINEITEM, "l_partkey", TPCH_PART, "p_partkey" },
    { TPCH_LINEITEM, "l_suppkey", TPCH_SUPPLIER, "s_suppkey" },
};

/* ---- Opening ------------------------------------------------------------------------------------------------------------------- */

static void table_create(tpch_engine *engine, int table)
{
    const table_schema *schema = &schemas[table];
    ivm_table_options options = { .columns = schema->columns, .key = schema->key };
    ivm_error error = IVM_ERROR_INIT;
    while (options.columns_count < COLUMNS_MAX && schema->columns[options.columns_count].name) {
        options.columns_count++;
    }
    tpch_must(ivm_table_create(engine->engine, schema->name, &options, &engine->tables[table], &error), &error);
}

void tpch_open(tpch_engine *engine, const ivm_planner_options *planner, int query)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    *engine = (tpch_engine){ 0 };
    options.planner = *planner;
    tpch_must(ivm_engine_open(&options, &engine->engine, &error), &error);
    for (int t = 0; t < TPCH_TABLES; t++) {
        table_create(engine, t);
    }
    for (size_t f = 0; f < sizeof foreign_keys / sizeof *foreign_keys; f++) {
        tpch_must(ivm_foreign_key_declare(engine->tables[foreign_keys[f].child], foreign_keys[f].columns,
                                          engine->tables[foreign_keys[f].parent], foreign_keys[f].key, IVM_RELY, NULL, &error),
                  &error);
    }
    for (int q = 0; q < TPCH_QUERIES; q++) {
        ivm_plan *plan;
        if (query < 0 || query == q) {
            tpch_must(ivm_plan_from_json(tpch_queries[q].plan, strlen(tpch_queries[q].plan), &plan, &error), &error);
            tpch_must(ivm_view_create(engine->engine, tpch_queries[q].name, plan, NULL, &engine->views[q], &error), &error);
        }
    }
}

void tpch_close(tpch_engine *engine)
{
    ivm_error error = IVM_ERROR_INIT;
    tpch_must(ivm_engine_close(engine->engine, &error), &error);
}

/* ---- Pushing ------------------------------------------------------------------------------------------------------------------- */

static ivm_value money(int64_t hundredths)
{
    return ivm_decimal(MONEY, (ivm_int128){ (uint64_t)hundredths, hundredths < 0 ? -1 : 0 });
}

static void customers_fill(tpch_engine *engine, const tpch_data *data, ivm_batch *batch)
{
    for (uint32_t i = 0; i < data->customers_count; i++) {
        const tpch_customer *customer = &data->customers[i];
        char name[32];
        snprintf(name, sizeof name, "Customer#%09u", i + 1);
        ivm_batch_insert(batch, engine->tables[TPCH_CUSTOMER], ivm_int64(i + 1), ivm_string(name), ivm_int64(customer->nation),
                         money(customer->balance), ivm_string(tpch_segments[customer->segment]));
    }
}

static uint64_t batch_push(tpch_engine *engine, ivm_batch *batch)
{
    ivm_error error = IVM_ERROR_INIT;
    uint64_t start = clock_nanoseconds();
    tpch_must(ivm_push_batch(engine->engine, batch, NULL, &error), &error);
    return clock_nanoseconds() - start;
}

void tpch_push_others(tpch_engine *engine, const tpch_data *data)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    tpch_must(ivm_batch_create(engine->engine, &batch, &error), &error);
    for (int i = 0; i < TPCH_REGIONS; i++) {
        ivm_batch_insert(batch, engine->tables[TPCH_REGION], ivm_int64(i), ivm_string(tpch_regions[i]));
    }
    for (int i = 0; i < TPCH_NATIONS; i++) {
        ivm_batch_insert(batch, engine->tables[TPCH_NATION], ivm_int64(i), ivm_string(tpch_nations[i]), ivm_int64(tpch_nation_regions[i]));
    }
    for (uint32_t i = 0; i < data->suppliers_count; i++) {
        ivm_batch_insert(batch, engine->tables[TPCH_SUPPLIER], ivm_int64(i + 1), ivm_int64(data->supplier_nations[i]));
    }
    customers_fill(engine, data, batch);
    for (uint32_t i = 0; i < data->items_count; i++) {
        char brand[16], container[16];
        tpch_brand(brand, data->items[i].brand);
        tpch_container(container, data->items[i].container);
        ivm_batch_insert(batch, engine->tables[TPCH_PART], ivm_int64(i + 1), ivm_string(brand), ivm_int64(data->items[i].size),
                         ivm_string(container));
    }
    batch_push(engine, batch);
}

static void line_fill(tpch_engine *engine, ivm_batch *batch, ivm_change change, int64_t order, const tpch_line *line)
{
    const ivm_value values[] = { ivm_int64(order),
                                 ivm_int64(line->part),
                                 ivm_int64(line->supplier),
                                 ivm_int64(line->number),
                                 money(100 * line->quantity),
                                 money(line->price),
                                 money(line->discount),
                                 money(line->tax),
                                 ivm_string(tpch_flag(line)),
                                 ivm_string(tpch_status(line)),
                                 ivm_date(line->ship),
                                 ivm_date(line->commit),
                                 ivm_date(line->receipt),
                                 ivm_string(tpch_instructs[line->instruct]),
                                 ivm_string(tpch_modes[line->mode]) };
    (void)ivm_batch_row(batch, engine->tables[TPCH_LINEITEM], change, 1, values, sizeof values / sizeof *values);
}

uint64_t tpch_push_orders(tpch_engine *engine, const tpch_data *data, ivm_change change, uint32_t first, uint32_t end, uint64_t *rows)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    tpch_must(ivm_batch_create(engine->engine, &batch, &error), &error);
    for (uint32_t i = first; i < end; i++) {
        const tpch_order *order = &data->orders[i];
        const ivm_value values[] = { ivm_int64(order->key), ivm_int64(order->customer), ivm_date(order->date),
                                     ivm_string(tpch_priorities[order->priority]), ivm_int64(0) };
        (void)ivm_batch_row(batch, engine->tables[TPCH_ORDERS], change, 1, values, sizeof values / sizeof *values);
        for (uint32_t l = 0; l < order->lines_count; l++) {
            line_fill(engine, batch, change, order->key, &data->lines[order->line_first + l]);
        }
        *rows += 1u + order->lines_count;
    }
    return batch_push(engine, batch);
}
