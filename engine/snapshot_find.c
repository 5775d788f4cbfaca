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

/* At most IVM__CHUNK_ROWS rows are given: a bag may hold more equal ones. */
static uint32_t find_rows(ivm_snapshot *snapshot, const ivm_value *values, uint32_t count, const ivm__wide *cells, uint64_t hash)
{
    uint32_t found = 0;
    for (uint32_t at = snapshot->find_heads[hash & snapshot->find_mask]; at && found < IVM__CHUNK_ROWS; at = snapshot->find_next[at - 1]) {
        const uint8_t *row = ivm__snapshot_row(snapshot, at - 1, &snapshot->weights[found]);
        snapshot->rows[found] = row;
        found += row_is(snapshot, row, values, count, cells);
    }
    return found;
}

ivm_status ivm_snapshot_find(ivm_snapshot *snapshot, const ivm_value *values, size_t values_count, ivm_rows *rows, ivm_error *error)
{
    if (!snapshot || !values || !rows || values_count == 0 || values_count > snapshot->key_count || values_count > IVM_TABLE_COLUMNS_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_snapshot_find: 1 to %u key values are wanted, not %zu",
                         snapshot ? snapshot->key_count : 0, values_count);
    }
    ivm__wide cells[IVM_TABLE_COLUMNS_MAX];
    uint64_t hash = 0;
    for (size_t k = 0; k < values_count; k++) {
        ivm_type type = snapshot->layout->types[snapshot->key[k]];
        bool text = IVM_TYPE_KIND(type) == IVM_STRING;
        cells[k] = 0;
        if (text ? !values[k].is_null && values[k].type != IVM_STRING : ivm__value_cell(NULL, type, &values[k], &cells[k]) != IVM_OK) {
            return ivm__fail(error, IVM_TYPE_MISMATCH, "ivm_snapshot_find: value %zu is not of the key column's type", k);
        }
        hash = hash_value(snapshot, hash, type, &values[k], cells[k]);
    }
    ivm_status status = ivm__snapshot_output_make(snapshot);
    if (status == IVM_OK && snapshot->find_columns != values_count) {
        status = find_build(snapshot, (uint32_t)values_count);
    }
    if (status != IVM_OK) {
        return ivm__fail_memory(error);
    }
    uint32_t found = find_rows(snapshot, values, (uint32_t)values_count, cells, hash);
    if (found == 0) {
        return ivm__fail(error, IVM_ROW_NOT_FOUND, "no row has this key");
    }
    status = ivm__snapshot_output(snapshot, found, rows);
    return status == IVM_OK ? IVM_OK : ivm__fail(error, status, "the rows found cannot be given out");
}
