/* See operations_batch.h. */
#include "operations_batch.h"

#include <string.h>

static uint8_t position[POSITION_MAX];
static size_t position_size; /* of the batch made last; 0: it had none */

/* ---- Columns ----------------------------------------------------------------------------------------------------------------------- */

static ivm_type type_at(const naive_table *table, ivm_change change, size_t at)
{
    return table->columns[change == IVM_DELETE_KEY ? table->key[at] : at].type;
}

/* Whether all are rows of the table's types, so that arrays can hold them. */
static bool typed(const naive_table *table, const naive_change *changes, size_t count)
{
    for (size_t r = 0; r < count; r++) {
        size_t width = changes[r].change == IVM_DELETE_KEY ? table->key_count : table->columns_count;
        if (changes[r].values_count != width || !width) {
            return false;
        }
        for (size_t c = 0; c < width; c++) {
            if (!changes[r].values[c].is_null && changes[r].values[c].type != type_at(table, changes[r].change, c)) {
                return false;
            }
        }
    }
    return true;
}

static void cell_write(uint8_t *values, size_t at, const ivm_value *value)
{
    switch (IVM_TYPE_KIND(value->type)) {
    case IVM_BOOL:
        values[at / 8] |= (uint8_t)(value->as.boolean << at % 8);
        break;
    case IVM_DATE:
        memcpy(values + 4 * at, &value->as.date, 4);
        break;
    case IVM_DECIMAL_KIND:
        memcpy(values + 16 * at, &value->as.decimal.low, 8);
        memcpy(values + 16 * at + 8, &value->as.decimal.high, 8);
        break;
    default:
        memcpy(values + 8 * at, &value->as, 8);
    }
}

/* Texts one behind the other, with their ends. */
static void texts_write(operations *it, const naive_change *changes, size_t count, size_t column, size_t offset, ivm_column_data *out)
{
    size_t size = 0;
    int32_t *offsets = naive_take(&it->pool, (offset + count + 1) * sizeof *offsets);
    for (size_t r = 0; r < count; r++) {
        size += changes[r].values[column].is_null ? 0 : changes[r].values[column].as.string.size;
    }
    char *bytes = naive_take(&it->pool, size + 1);
    size = 0;
    for (size_t r = 0; r < count; r++) {
        const ivm_value *value = &changes[r].values[column];
        offsets[offset + r] = (int32_t)size;
        if (!value->is_null && value->as.string.size) {
            memcpy(bytes + size, value->as.string.bytes, value->as.string.size);
            size += value->as.string.size;
        }
    }
    offsets[offset + count] = (int32_t)size;
    out->values = bytes;
    out->offsets = offsets;
}

static void column_write(operations *it, ivm_type type, const naive_change *changes, size_t count, size_t column, ivm_column_data *out)
{
    size_t offset = operations_pick(it, 4);
    uint8_t *validity = naive_take(&it->pool, (offset + count) / 8 + 1), *values = naive_take(&it->pool, 16 * (offset + count));
    bool nulls = false;
    *out = (ivm_column_data){ .values = values, .offset = offset };
    for (size_t r = 0; r < count; r++) {
        const ivm_value *value = &changes[r].values[column];
        nulls |= value->is_null;
        validity[(offset + r) / 8] |= (uint8_t)(!value->is_null << (offset + r) % 8);
        if (!value->is_null && type != IVM_STRING) {
            cell_write(values, offset + r, value);
        }
    }
    if (type == IVM_STRING) {
        texts_write(it, changes, count, column, offset, out);
    }
    out->validity = nulls || operations_pick(it, 2) ? validity : NULL;
}

static void columns_add(operations *it, ivm_batch *batch, const naive_table *table, const naive_change *changes, size_t count)
{
    size_t width = changes->values_count;
    ivm_column_data *columns = naive_take(&it->pool, width * sizeof *columns);
    int64_t *weights = naive_take(&it->pool, count * sizeof *weights);
    for (size_t c = 0; c < width; c++) {
        column_write(it, type_at(table, changes->change, c), changes, count, c, &columns[c]);
    }
    for (size_t r = 0; r < count; r++) {
        weights[r] = changes[r].weight;
    }
    ivm_rows rows = { count, width, columns, weights };
    (void)ivm_batch_columns(batch, operations_table(it, table->name), changes->change, &rows);
    operations_count("batch of columns");
}

/* ---- Batches ----------------------------------------------------------------------------------------------------------------------- */

static bool together(const naive_change *a, const naive_change *b)
{
    return a->change == b->change && strcmp(a->table, b->table) == 0;
}

static void position_add(operations *it, ivm_batch *batch)
{
    position_size = operations_once_in(it, 5) ? 1 + operations_pick(it, POSITION_MAX) : 0;
    for (size_t i = 0; i < position_size; i++) {
        position[i] = (uint8_t)operations_byte(it);
    }
    if (position_size) {
        (void)ivm_batch_position(batch, position, position_size);
        operations_count("batch with a position");
    }
}

void operations_position_keep(operations *it)
{
    if (position_size) {
        memcpy(it->position, position, position_size);
        it->position_size = position_size;
    }
}

ivm_batch *operations_batch(operations *it, const naive_change *changes, size_t count)
{
    ivm_batch *batch;
    if (ivm_batch_create(it->engine, &batch, &it->error) != IVM_OK) {
        operations_wrong(it, "batch: %s", it->error.message);
    }
    for (size_t first = 0, end; first < count; first = end) {
        const naive_table *table = naive_table_find(&it->expected, changes[first].table);
        for (end = first + 1; end < count && together(&changes[first], &changes[end]);) {
            end++;
        }
        if (operations_once_in(it, 3) && typed(table, changes + first, end - first)) {
            columns_add(it, batch, table, changes + first, end - first);
            continue;
        }
        for (size_t i = first; i < end; i++) {
            (void)ivm_batch_row(batch, operations_table(it, table->name), changes[i].change, changes[i].weight, changes[i].values,
                                changes[i].values_count);
        }
    }
    position_add(it, batch);
    return batch;
}
