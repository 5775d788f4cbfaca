/* See stage_model.h. This file: the tables, the model's own staging, random batches. stage_model_engine.c drives the engine. */
#include "stage_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

static uint32_t row_number(const int8_t *cell)
{
    return ((uint32_t)(cell[0] + 1) * 4 + (uint32_t)(cell[1] + 1)) * 3 + (uint32_t)(cell[2] + 1);
}

static void row_of_number(uint32_t number, int8_t *cell)
{
    cell[2] = (int8_t)(number % 3) - 1;
    cell[1] = (int8_t)(number / 3 % 4) - 1;
    cell[0] = (int8_t)(number / 12) - 1;
}

static bool key_is(const model_table *table, uint32_t number, const int8_t *cell)
{
    int8_t other[MODEL_COLUMNS];
    row_of_number(number, other);
    for (uint32_t k = 0; k < table->key_count; k++) {
        if (other[table->key_columns[k]] != cell[table->key_columns[k]]) {
            return false;
        }
    }
    return true;
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------------- */

void model_part_add(model_batch *batch, uint32_t table, ivm_change change, bool borrowed)
{
    cr_assert_lt(batch->parts_count, MODEL_PARTS_MAX);
    batch->parts[batch->parts_count++] = (model_part){ .table = table, .change = change, .borrowed = borrowed };
}

void model_row_add(model_batch *batch, int k, int s, int n, int64_t weight)
{
    model_part *part = &batch->parts[batch->parts_count - 1];
    if (part->rows_count == part->rows_capacity) {
        part->rows_capacity = part->rows_capacity ? part->rows_capacity * 2 : 8;
        part->rows = realloc(part->rows, part->rows_capacity * sizeof *part->rows);
        cr_assert_not_null(part->rows);
    }
    part->rows[part->rows_count++] = (model_row){ { (int8_t)k, (int8_t)s, (int8_t)n }, weight };
}

void model_batch_clear(model_batch *batch)
{
    for (uint32_t i = 0; i < batch->parts_count; i++) {
        free(batch->parts[i].rows);
    }
    batch->parts_count = 0;
}

static int random_cell(uint64_t *state, const model_part *part, const model_table *table, uint32_t column)
{
    static const int values[] = { 4, 3, 2 };
    bool null = random_next(state) % 8 == 0;
    if (null && part->change != IVM_DELETE_KEY && table->not_null[column]) {
        null = part->borrowed && random_next(state) % 64 == 0; /* refused: rarely */
    }
    return null ? -1 : (int)(random_next(state) % (uint64_t)values[column]);
}

static int64_t random_weight(uint64_t *state)
{
    static const int64_t far[] = { INT64_MAX, INT64_MIN, INT64_MAX - 1, 3000000000, -3000000000, INT32_MAX, INT32_MIN, INT64_MAX / 2 };
    uint64_t chosen = random_next(state) % 40;
    return chosen < 2 ? far[random_next(state) % 8] : (int64_t)(chosen % 4) - 1;
}

/* Rows that are there are named more often than chance would, and keyed tables get rows whose keys are free. */
static void random_row(const model *it, uint64_t *state, model_batch *batch)
{
    model_part *part = &batch->parts[batch->parts_count - 1];
    const model_table *table = &it->tables[part->table];
    int8_t cell[MODEL_COLUMNS];
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        cell[c] = (int8_t)random_cell(state, part, table, c);
    }
    bool goes = part->change == IVM_DELETE || part->change == IVM_DELETE_KEY || (part->change == IVM_WEIGHTED && random_next(state) % 2);
    for (uint32_t i = 0, at = (uint32_t)random_next(state); goes && i < MODEL_ROWS; i++) {
        uint32_t number = (at + i) % MODEL_ROWS;
        if (table->weights[number] > 0 && random_next(state) % 16) {
            row_of_number(number, cell);
            break;
        }
    }
    model_row_add(batch, cell[0], cell[1], cell[2], random_weight(state));
}

void model_batch_random(const model *it, uint64_t *state, model_batch *batch)
{
    uint32_t parts_count = (uint32_t)(random_next(state) % 5);
    for (uint32_t p = 0; p < parts_count; p++) {
        uint32_t table = (uint32_t)(random_next(state) % MODEL_TABLES);
        uint32_t changes = it->tables[table].key_count ? 5 : 3;
        model_part_add(batch, table, (ivm_change)(random_next(state) % changes), random_next(state) % 2);
        uint64_t rows_count = random_next(state) % 4;
        if (random_next(state) % 200 == 0) {
            rows_count = 1000 + random_next(state) % 1500; /* more than one chunk */
        }
        for (uint64_t i = 0; i < rows_count; i++) {
            random_row(it, state, batch);
        }
    }
}

/* ---- Staging by definition ------------------------------------------------------------------------------------------------------- */

static ivm_status part_nulls(const model_table *table, const model_part *part, uint32_t row)
{
    for (uint32_t c = 0; c < MODEL_COLUMNS; c++) {
        if (part->rows[row].cell[c] < 0 && table->not_null[c]) {
            return IVM_NULL_VIOLATION;
        }
    }
    return IVM_OK;
}

/* Takes away once each row of the key whose weight in table and batch is above 0. */
static uint32_t key_take(const model_table *table, __int128 *delta, const int8_t *cell)
{
    uint32_t taken = 0;
    for (uint32_t r = 0; r < MODEL_ROWS; r++) {
        if (key_is(table, r, cell) && table->weights[r] + delta[r] > 0) {
            delta[r]--;
            taken++;
        }
    }
    return taken;
}

static ivm_status part_stage(const model_table *table, const model_part *part, __int128 *delta)
{
    for (uint32_t i = 0; i < part->rows_count; i++) {
        const model_row *row = &part->rows[i];
        if (part->change == IVM_DELETE_KEY) {
            if (!key_take(table, delta, row->cell)) {
                return IVM_ROW_NOT_FOUND;
            }
            continue;
        }
        ivm_status status = part_nulls(table, part, i);
        if (status != IVM_OK) {
            return status;
        }
        if (part->change == IVM_UPSERT) {
            key_take(table, delta, row->cell);
        }
        delta[row_number(row->cell)] += part->change == IVM_DELETE ? -1 : part->change == IVM_WEIGHTED ? row->weight : 1;
    }
    return IVM_OK;
}

static bool keys_hold(const model_table *table, const __int128 *delta)
{
    for (uint32_t r = 0; r < MODEL_ROWS; r++) {
        int8_t cell[MODEL_COLUMNS];
        __int128 sum = 0;
        row_of_number(r, cell);
        for (uint32_t other = 0; other < MODEL_ROWS; other++) {
            sum += key_is(table, other, cell) ? table->weights[other] + delta[other] : 0;
        }
        if (sum > 1) {
            return false;
        }
    }
    return true;
}

static ivm_status table_judge(const model_table *table, const __int128 *delta)
{
    bool goes = false, missing = false, overflow = false;
    for (uint32_t r = 0; r < MODEL_ROWS; r++) {
        __int128 after = table->weights[r] + delta[r];
        goes |= delta[r] < 0;
        missing |= after < 0 && !table->allow_negative;
        overflow |= after > INT64_MAX || after < INT64_MIN || delta[r] > INT64_MAX || delta[r] < INT64_MIN;
    }
    if (table->append_only && goes) {
        return IVM_APPEND_ONLY_VIOLATION;
    }
    if (missing || overflow) {
        return missing ? IVM_ROW_NOT_FOUND : IVM_OVERFLOW;
    }
    return !table->key_count || keys_hold(table, delta) ? IVM_OK : IVM_DUPLICATE_KEY;
}

ivm_status model_stage(model *it, const model_batch *batch, bool apply)
{
    bool named[MODEL_TABLES] = { false };
    uint32_t order[MODEL_TABLES], count = 0;
    memset(it->deltas, 0, sizeof it->deltas);
    for (uint32_t p = 0; p < batch->parts_count; p++) {
        const model_part *part = &batch->parts[p];
        if (!named[part->table] && part->rows_count) {
            named[part->table] = true;
            order[count++] = part->table;
        }
        ivm_status status = part_stage(&it->tables[part->table], part, it->deltas[part->table]);
        if (status != IVM_OK) {
            return status;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ivm_status status = table_judge(&it->tables[order[i]], it->deltas[order[i]]);
        if (status != IVM_OK) {
            return status;
        }
    }
    for (uint32_t t = 0; apply && t < MODEL_TABLES; t++) {
        for (uint32_t r = 0; r < MODEL_ROWS; r++) {
            it->tables[t].weights[r] += it->deltas[t][r];
        }
    }
    return IVM_OK;
}
