/* Batches of the oracle: each change is applied to what its table holds by then; what comes out is judged at the end. */
#include "naive.h"

#define WEIGHT_GREAT ((naive_int)1 << 60) /* sums of such weights may leave int64 on the way */

/* ---- One change -------------------------------------------------------------------------------------------------------------------- */

static bool by_key(const naive_change *change)
{
    return change->change == IVM_UPSERT || change->change == IVM_DELETE_KEY;
}

/* The values as cells of the table's columns, or of its key's. */
static ivm_status cells_read(const naive_table *table, const naive_change *change, ivm_value *cells)
{
    bool key = change->change == IVM_DELETE_KEY;
    if (by_key(change) && !table->key_count) {
        return table->transient ? IVM_UNSUPPORTED : IVM_INVALID_ARGUMENT;
    }
    if (change->values_count != (key ? table->key_count : table->columns_count)) {
        return IVM_TYPE_MISMATCH;
    }
    for (size_t i = 0; i < change->values_count; i++) {
        const naive_table_column *column = &table->columns[key ? table->key[i] : i];
        NAIVE_TRY(naive_column_value(column->type, &change->values[i], &cells[i]));
        if (cells[i].is_null && column->not_null && !key) {
            return IVM_NULL_VIOLATION;
        }
    }
    return IVM_OK;
}

/* All that is wrong with a row, as bits. */
static uint32_t row_mistakes(const naive_table *table, const naive_change *change)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < change->values_count && change->values_count == table->columns_count; i++) {
        ivm_value cell;
        bits |= naive_column_value(table->columns[i].type, &change->values[i], &cell) == IVM_OK ? 0 : NAIVE_BIT(IVM_TYPE_MISMATCH);
        bits |= change->values[i].is_null && table->columns[i].not_null ? NAIVE_BIT(IVM_NULL_VIOLATION) : 0;
    }
    return bits;
}

static bool has_key(const naive_table *table, const ivm_value *row, const ivm_value *key)
{
    bool same = true;
    for (size_t k = 0; k < table->key_count; k++) {
        same &= !key[k].is_null && naive_compare(&row[table->key[k]], &key[k]) == 0;
    }
    return same;
}

/* Takes one of each row of the key away; whether there was any. */
static bool key_delete(const naive_table *table, naive_relation *delta, const ivm_value *key)
{
    naive_relation now;
    bool found = false;
    naive_relation_init(&now, table->columns_count);
    (void)naive_rows_add(&now, &table->rows, 1);
    (void)naive_rows_add(&now, delta, 1);
    naive_consolidate(&now);
    for (size_t r = 0; r < now.count; r++) {
        if (now.weights[r] > 0 && has_key(table, naive_row(&now, r), key)) {
            (void)naive_row_add(delta, naive_row(&now, r), -1);
            found = true;
        }
    }
    naive_relation_free(&now);
    return found;
}

static ivm_status change_apply(naive_pool *pool, const naive_table *table, const naive_change *change, naive_relation *delta)
{
    size_t wide = table->columns_count > NAIVE_KEY_MAX ? table->columns_count : NAIVE_KEY_MAX;
    ivm_value *cells = naive_take(pool, wide * sizeof *cells), key[NAIVE_KEY_MAX];
    NAIVE_TRY(cells_read(table, change, cells));
    switch (change->change) {
    case IVM_INSERT:
        return naive_row_add(delta, cells, 1);
    case IVM_DELETE:
        return naive_row_add(delta, cells, -1);
    case IVM_WEIGHTED:
        return naive_row_add(delta, cells, change->weight);
    case IVM_DELETE_KEY:
        return key_delete(table, delta, cells) ? IVM_OK : IVM_ROW_NOT_FOUND;
    default:
        for (size_t k = 0; k < table->key_count; k++) {
            key[k] = cells[table->key[k]];
        }
        key_delete(table, delta, key);
        return naive_row_add(delta, cells, 1);
    }
}

/* ---- The result -------------------------------------------------------------------------------------------------------------------- */

static bool keys_differ(const naive_table *table)
{
    for (size_t a = 0; a < table->rows.count; a++) {
        ivm_value key[NAIVE_KEY_MAX];
        for (size_t k = 0; k < table->key_count; k++) {
            key[k] = naive_row(&table->rows, a)[table->key[k]];
        }
        if (table->rows.weights[a] > 1) {
            return false;
        }
        for (size_t b = 0; b < a; b++) {
            if (has_key(table, naive_row(&table->rows, b), key)) {
                return false;
            }
        }
    }
    return true;
}

static void judge(naive_table *table, const naive_relation *delta, naive_verdict *verdict)
{
    bool less = false;
    for (size_t r = 0; r < table->rows.count; r++) {
        less |= table->rows.weights[r] < 0;
        bool great = table->rows.weights[r] > WEIGHT_GREAT || table->rows.weights[r] < -WEIGHT_GREAT;
        verdict->may |= great ? NAIVE_BIT(IVM_OVERFLOW) : 0;
    }
    for (size_t r = 0; r < delta->count; r++) {
        verdict->must |= table->append_only && delta->weights[r] < 0 ? NAIVE_BIT(IVM_APPEND_ONLY_VIOLATION) : 0;
        bool great = delta->weights[r] > WEIGHT_GREAT || delta->weights[r] < -WEIGHT_GREAT;
        verdict->may |= great ? NAIVE_BIT(IVM_OVERFLOW) : 0;
    }
    if (less && !table->allow_negative) {
        verdict->undefined |= table->transient;
        verdict->must |= table->transient ? 0 : NAIVE_BIT(IVM_ROW_NOT_FOUND);
    }
    if (naive_weights_check(&table->rows) != IVM_OK || naive_weights_check(delta) != IVM_OK) {
        verdict->must |= NAIVE_BIT(IVM_OVERFLOW);
    }
    if (table->key_count && !keys_differ(table)) {
        verdict->must |= NAIVE_BIT(IVM_DUPLICATE_KEY);
    }
}

/* Changes that cannot be read fail the batch. Arrays of columns are looked at late, so that other changes may be found wrong first. */
static uint32_t mistakes(const naive_database *database, const naive_change *changes, size_t changes_count)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < changes_count; i++) {
        const naive_table *table = naive_table_find(database, changes[i].table);
        ivm_value *cells = naive_take(database->pool, (changes[i].values_count + NAIVE_KEY_MAX) * sizeof *cells);
        ivm_status status = table ? cells_read(table, &changes[i], cells) : IVM_UNKNOWN_TABLE;
        bits |= status == IVM_OK ? 0 : NAIVE_BIT(status);
        if (status == IVM_NULL_VIOLATION || status == IVM_TYPE_MISMATCH) {
            bits |= row_mistakes(table, &changes[i]);
        }
    }
    return bits;
}

naive_verdict naive_stage(naive_database *database, const naive_change *changes, size_t changes_count, naive_relation *deltas)
{
    naive_verdict verdict = { 0 };
    for (size_t t = 0; t < database->tables_count; t++) {
        naive_relation_init(&deltas[t], database->tables[t].columns_count);
    }
    verdict.must = mistakes(database, changes, changes_count);
    for (size_t i = 0; i < changes_count; i++) {
        naive_table *table = naive_table_find(database, changes[i].table);
        ivm_status status = change_apply(database->pool, table, &changes[i], &deltas[table - database->tables]);
        verdict.must |= status == IVM_OK ? 0 : NAIVE_BIT(status);
    }
    for (size_t t = 0; t < database->tables_count; t++) {
        naive_table *table = &database->tables[t];
        naive_consolidate(&deltas[t]);
        (void)naive_rows_add(&table->rows, &deltas[t], 1);
        naive_consolidate(&table->rows);
        table->came |= deltas[t].count > 0;
        judge(table, &deltas[t], &verdict);
    }
    return verdict;
}
