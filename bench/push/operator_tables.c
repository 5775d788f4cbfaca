/* The tables of `ivm bench operators`. All changes keep the counts of rows, so that any number of them measures the same state. A key is
 * its row's number times an odd number: keys are distinct and not dense. Only pushes and refreshes are timed, not the filling of batches. */
#include "operators.h"

#include "arena.h"
#include "option.h"

#include <stdlib.h>

#define KEY_FACTOR INT64_C(0x9E3779B1)
#define RANK_FACTOR 0x5851F42Du

void operator_must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench operators: %s: %s", ivm_status_name(status), error->message));
    }
}

static int64_t row_key(uint32_t row)
{
    return ((int64_t)row + 1) * KEY_FACTOR;
}

static double random_double(random_state *random)
{
    return (double)(int64_t)random_next(random) * 0x1p-60 * (double)(1 + random_below(random, 1000));
}

/* ---- Filling --------------------------------------------------------------------------------------------------------------------- */

/* Ranks in the order of a product modulo a power of two, which meets every number below it once. */
static void ranks_draw(operator_tables *tables)
{
    uint32_t range = 1, rank = 0;
    while (range < tables->rows) {
        range *= 2;
    }
    for (uint32_t i = 0; i < range; i++) {
        uint32_t row = i * RANK_FACTOR & (range - 1);
        if (row < tables->rows) {
            tables->rank[row] = rank;
            tables->ranked[rank++] = row;
        }
    }
}

static void rows_draw(operator_tables *tables)
{
    for (uint32_t i = 0; i < tables->rows; i++) {
        tables->v[i] = random_below(&tables->random, tables->rows);
        tables->x[i] = random_double(&tables->random);
    }
    for (uint32_t i = 0; i < tables->d_rows; i++) {
        tables->a[i] = random_below(&tables->random, tables->rows);
    }
    ranks_draw(tables);
}

static void row_insert(operator_tables *tables, ivm_batch *batch, uint32_t row)
{
    ivm_batch_insert(batch, tables->f, ivm_int64(row_key(row)), ivm_int64(row_key(row / PARTNERS)), ivm_int64(tables->v[row]),
                     ivm_float64(tables->x[row]), ivm_int64(tables->rank[row]));
}

static void partner_insert(operator_tables *tables, ivm_batch *batch, uint32_t row)
{
    ivm_batch_insert(batch, tables->d, ivm_int64(row_key(row)), ivm_int64(tables->a[row]));
}

static ivm_batch *batch_make(operator_tables *tables)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    operator_must(ivm_batch_create(tables->engine, &batch, &error), &error);
    return batch;
}

static void tables_create(operator_tables *tables)
{
    static const ivm_column_definition f_columns[] = { { "id", IVM_INT64, true },
                                                       { "k", IVM_INT64, true },
                                                       { "v", IVM_INT64, true },
                                                       { "x", IVM_FLOAT64, true },
                                                       { "rank", IVM_INT64, true } };
    static const ivm_column_definition d_columns[] = { { "id", IVM_INT64, true }, { "a", IVM_INT64, true } };
    const ivm_table_options f = { .columns = f_columns, .columns_count = 5, .key = "id" };
    const ivm_table_options d = { .columns = d_columns, .columns_count = 2, .key = "id" };
    ivm_error error = IVM_ERROR_INIT;
    operator_must(ivm_engine_open(NULL, &tables->engine, &error), &error);
    operator_must(ivm_table_create(tables->engine, "f", &f, &tables->f, &error), &error);
    operator_must(ivm_table_create(tables->engine, "d", &d, &tables->d, &error), &error);
}

void operator_tables_open(operator_tables *tables, uint32_t rows)
{
    ivm_error error = IVM_ERROR_INIT;
    *tables = (operator_tables){ .rows = rows, .d_rows = (rows + PARTNERS - 1) / PARTNERS, .random = { 0x2545F491 } };
    tables->v = memory_take(rows * sizeof *tables->v);
    tables->x = memory_take(rows * sizeof *tables->x);
    tables->rank = memory_take(rows * sizeof *tables->rank);
    tables->ranked = memory_take(rows * sizeof *tables->ranked);
    tables->a = memory_take(tables->d_rows * sizeof *tables->a);
    tables_create(tables);
    rows_draw(tables);
    ivm_batch *batch = batch_make(tables);
    for (uint32_t i = 0; i < rows; i++) {
        row_insert(tables, batch, i);
    }
    for (uint32_t i = 0; i < tables->d_rows; i++) {
        partner_insert(tables, batch, i);
    }
    operator_must(ivm_push_batch(tables->engine, batch, NULL, &error), &error);
}

void operator_tables_close(operator_tables *tables)
{
    ivm_error error = IVM_ERROR_INIT;
    operator_must(ivm_engine_close(tables->engine, &error), &error);
    free(tables->v);
    free(tables->x);
    free(tables->rank);
    free(tables->ranked);
    free(tables->a);
    *tables = (operator_tables){ 0 };
}

/* ---- Changes --------------------------------------------------------------------------------------------------------------------- */

static uint64_t timed_push(operator_tables *tables, ivm_batch *batch, ivm_view *deferred, uint64_t *changes)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_stats stats, refreshed = { 0 };
    uint64_t start = clock_nanoseconds();
    operator_must(ivm_push_batch(tables->engine, batch, &stats, &error), &error);
    if (deferred) {
        operator_must(ivm_refresh_view(deferred, &refreshed, &error), &error);
    }
    uint64_t spent = clock_nanoseconds() - start;
    *changes += stats.rows_out + refreshed.rows_out;
    return spent;
}

static uint32_t row_choose(operator_tables *tables, changed_row which)
{
    if (which == FIRST_ROW) {
        return tables->ranked[tables->rank_first % tables->rows];
    }
    return random_below(&tables->random, which == PARTNER_ROW ? tables->d_rows : tables->rows);
}

static void row_renew(operator_tables *tables, changed_row which, uint32_t row)
{
    if (which == FIRST_ROW) {
        tables->rank[row] += tables->rows;
        tables->rank_first++;
    } else if (which == PARTNER_ROW) {
        tables->a[row] = random_below(&tables->random, tables->rows);
    } else {
        tables->v[row] = random_below(&tables->random, tables->rows);
        tables->x[row] = random_double(&tables->random);
    }
}

double operator_change(operator_tables *tables, changed_row which, ivm_view *deferred, uint64_t *changes)
{
    uint32_t row = row_choose(tables, which);
    ivm_batch *batch = batch_make(tables);
    ivm_batch_delete_key(batch, which == PARTNER_ROW ? tables->d : tables->f, ivm_int64(row_key(row)));
    uint64_t deleting = timed_push(tables, batch, deferred, changes);
    row_renew(tables, which, row);
    batch = batch_make(tables);
    if (which == PARTNER_ROW) {
        partner_insert(tables, batch, row);
    } else {
        row_insert(tables, batch, row);
    }
    uint64_t inserting = timed_push(tables, batch, deferred, changes);
    return which == FIRST_ROW ? (double)deleting : (double)(deleting + inserting) / 2;
}
