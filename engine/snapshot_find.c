/* Lookup by key in a snapshot. The writer's indexes move on, so a snapshot hashes its own rows once, at the first lookup: chains of row ids
 * in two arrays. Strings are hashed and compared by their bytes: lookups take no lock and may not ask the engine's texts. */
#include "snapshot.h"

#include "hash.h"

void ivm__snapshot_find_free(ivm_snapshot *snapshot)
{
    if (snapshot->find_heads) {
        ivm__release(snapshot->memory, snapshot->find_heads, ((size_t)snapshot->find_mask + 1) * sizeof *snapshot->find_heads);
    }
    ivm__release(snapshot->memory, snapshot->find_next, ivm__snapshot_ids(snapshot) * sizeof *snapshot->find_next);
    snapshot->find_heads = snapshot->find_next = NULL;
    snapshot->find_columns = 0;
}

static uint64_t hash_cell(const ivm_snapshot *snapshot, uint64_t hash, const uint8_t *row, uint32_t column)
{
    const ivm__layout *layout = snapshot->layout;
    uint64_t seed = snapshot->engine->seed;
    if (ivm__row_is_null(layout, row, column)) {
        return ivm__hash_fold(hash, 1);
    }
    uint64_t word = ivm__row_word(layout, row, column);
    if (IVM_TYPE_KIND(layout->types[column]) == IVM_STRING) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)word;
        word = ivm__hash_bytes(text->bytes, text->size, seed);
    }
    hash = ivm__hash_fold(hash, ivm__hash_word(word, seed));
    return ivm__type_is_wide(layout->types[column]) ? ivm__hash_fold(hash, (uint64_t)(ivm__row_wide(layout, row, column) >> 64)) : hash;
}

static uint64_t hash_value(const ivm_snapshot *snapshot, uint64_t hash, ivm_type type, const ivm_value *value, ivm__wide cell)
{
    uint64_t seed = snapshot->engine->seed;
    if (value->is_null) {
        return ivm__hash_fold(hash, 1);
    }
    uint64_t word =
        IVM_TYPE_KIND(type) == IVM_STRING ? ivm__hash_bytes(value->as.string.bytes, value->as.string.size, seed) : (uint64_t)cell;
    hash = ivm__hash_fold(hash, ivm__hash_word(word, seed));
    return ivm__type_is_wide(type) ? ivm__hash_fold(hash, (uint64_t)(cell >> 64)) : hash;
}

static ivm_status find_build(ivm_snapshot *snapshot, uint32_t columns)
{
    uint64_t ids = ivm__snapshot_ids(snapshot);
    uint32_t heads = 16;
    while (heads < ids && heads < 1u << 31) {
        heads *= 2;
    }
    ivm__snapshot_find_free(snapshot);
    snapshot->find_mask = heads - 1;
    snapshot->find_heads = ivm__allocate_zeroed(snapshot->memory, (size_t)heads * sizeof *snapshot->find_heads);
    snapshot->find_next = ivm__allocate_zeroed(snapshot->memory, ids * sizeof *snapshot->find_next);
    if (!snapshot->find_heads || !snapshot->find_next) {
        ivm__snapshot_find_free(snapshot);
        return IVM_OUT_OF_MEMORY;
    }
    snapshot->find_columns = columns;
    for (uint64_t id = 0; id < ids; id++) {
        int64_t weight;
        const uint8_t *row = ivm__snapshot_row(snapshot, id, &weight);
        if (weight == 0) {
            continue;
        }
        uint64_t hash = 0;
        for (uint32_t k = 0; k < columns; k++) {
            hash = hash_cell(snapshot, hash, row, snapshot->key[k]);
        }
        uint32_t *head = &snapshot->find_heads[hash & snapshot->find_mask];
        snapshot->find_next[id] = *head;
        *head = (uint32_t)id + 1;
    }
    return IVM_OK;
}

static bool cell_is(const ivm_snapshot *snapshot, const uint8_t *row, uint32_t column, const ivm_value *value, ivm__wide cell)
{
    const ivm__layout *layout = snapshot->layout;
    bool is_null = ivm__row_is_null(layout, row, column);
    if (is_null || value->is_null) {
        return is_null && value->is_null;
    }
    if (IVM_TYPE_KIND(layout->types[column]) == IVM_STRING) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)ivm__row_word(layout, row, column);
        return text->size == value->as.string.size && memcmp(text->bytes, value->as.string.bytes, text->size) == 0;
    }
    return ivm__type_is_wide(layout->types[column]) ? ivm__row_wide(layout, row, column) == cell
                                                    : ivm__row_word(layout, row, column) == (uint64_t)cell;
}

static bool row_is(const ivm_snapshot *snapshot, const uint8_t *row, const ivm_value *values, uint32_t count, const ivm__wide *cells)
{
    for (uint32_t k = 0; k < count; k++) {
        if (!cell_is(snapshot, row, snapshot->key[k], &values[k], cells[k])) {
            return false;
        }
    }
    return true;
}

/* What a lookup looks for. */
typedef struct wanted {
    const ivm_value *values;
    uint32_t count;
    uint64_t hash;
    ivm__wide cells[IVM_TABLE_COLUMNS_MAX];
} wanted;

static ivm_status wanted_make(const ivm_snapshot *snapshot, const ivm_value *values, uint32_t count, wanted *key)
{
    key->values = values;
    key->count = count;
    key->hash = 0;
    for (uint32_t k = 0; k < count; k++) {
        ivm_type type = snapshot->layout->types[snapshot->key[k]];
        key->cells[k] = 0;
        if (IVM_TYPE_KIND(type) == IVM_STRING) {
            if (values[k].type != type && !(values[k].type == 0 && values[k].is_null)) {
                return IVM_TYPE_MISMATCH;
            }
        } else if (ivm__value_cell(NULL, type, &values[k], &key->cells[k]) != IVM_OK) {
            return IVM_TYPE_MISMATCH;
        }
        key->hash = hash_value(snapshot, key->hash, type, &values[k], key->cells[k]);
    }
    return IVM_OK;
}

/* How many rows have this key; where there is room, they and their weights are noted. */
static uint64_t find_rows(ivm_snapshot *snapshot, const wanted *key, uint64_t room)
{
    uint64_t found = 0;
    for (uint32_t at = snapshot->find_heads[key->hash & snapshot->find_mask]; at; at = snapshot->find_next[at - 1]) {
        int64_t weight;
        const uint8_t *row = ivm__snapshot_row(snapshot, at - 1, &weight);
        if (!row_is(snapshot, row, key->values, key->count, key->cells)) {
            continue;
        }
        if (found < room) {
            snapshot->rows[found] = row;
            snapshot->weights[found] = weight;
        }
        found++;
    }
    return found;
}

/* *count of them, noted; a chain is walked twice only where it has more rows than any before. */
static ivm_status find_all(ivm_snapshot *snapshot, const wanted *key, uint64_t *count)
{
    IVM_TRY(ivm__snapshot_output_make(snapshot, IVM__CHUNK_ROWS));
    if (snapshot->find_columns != key->count) {
        IVM_TRY(find_build(snapshot, key->count));
    }
    *count = find_rows(snapshot, key, snapshot->output_rows);
    if (*count > snapshot->output_rows) {
        IVM_TRY(ivm__snapshot_output_make(snapshot, *count));
        find_rows(snapshot, key, *count);
    }
    return IVM_OK;
}

ivm_status ivm_snapshot_find(ivm_snapshot *snapshot, const ivm_value *values, size_t values_count, ivm_rows *rows, ivm_error *error)
{
    if (!snapshot || !values || !rows) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_snapshot_find: snapshot, values and rows are wanted");
    }
    uint32_t most = snapshot->key_count < IVM_TABLE_COLUMNS_MAX ? snapshot->key_count : IVM_TABLE_COLUMNS_MAX;
    if (values_count == 0 || values_count > most) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_snapshot_find: 1 to %u key values are wanted, not %zu", most, values_count);
    }
    wanted key;
    uint64_t count = 0;
    if (wanted_make(snapshot, values, (uint32_t)values_count, &key) != IVM_OK) {
        return ivm__fail(error, IVM_TYPE_MISMATCH, "ivm_snapshot_find: a value is not of its key column's type");
    }
    if (find_all(snapshot, &key, &count) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    if (count == 0) {
        return ivm__fail(error, IVM_ROW_NOT_FOUND, "no row has this key");
    }
    ivm_status status = ivm__snapshot_output(snapshot, (uint32_t)count, rows); /* there are fewer ids than 2^32 */
    return status == IVM_OK ? IVM_OK : ivm__fail(error, status, "the %llu rows found cannot be given out", (unsigned long long)count);
}
