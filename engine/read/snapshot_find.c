/* Lookup by key in a snapshot.
 *
 *     by the whole key, where no two rows share one    the finder that the store keeps (finder.h); the first to want it makes it from its snapshot
 *     by leading columns, in a bag, among changes      the snapshot hashes its own rows once, at the first lookup: chains of ids in two arrays
 *
 * The writer's indexes move on and are no help. Strings are hashed and compared by their bytes: lookups take no lock and may not ask the engine's
 * texts. */
#include "snapshot.h"

#include "hash.h"

void ivm__snapshot_find_free(ivm_snapshot *snapshot)
{
    if (snapshot->find_heads) {
        ivm__release(snapshot->memory, snapshot->find_heads, ((size_t)snapshot->find_mask + 1) * sizeof *snapshot->find_heads);
    }
    if (snapshot->find_next) {
        ivm__release(snapshot->memory, snapshot->find_next, snapshot->shared.rows.end * sizeof *snapshot->find_next);
    }
    snapshot->find_heads = snapshot->find_next = NULL;
    snapshot->find_columns = 0;
}

static ivm__find_key key_of(const ivm_snapshot *snapshot, uint32_t columns)
{
    return (ivm__find_key){ snapshot->key, columns, snapshot->engine->seed };
}

static ivm_status find_build(ivm_snapshot *snapshot, uint32_t columns)
{
    ivm__row_id ids = snapshot->shared.rows.end;
    const ivm__find_key key = key_of(snapshot, columns);
    uint32_t heads = 16;
    while (heads < ids && heads < 1u << 31) {
        heads *= 2;
    }
    ivm__snapshot_find_free(snapshot);
    snapshot->find_mask = heads - 1;
    snapshot->find_heads = ivm__allocate_zeroed(snapshot->memory, (size_t)heads * sizeof *snapshot->find_heads);
    snapshot->find_next = ivm__allocate_zeroed(snapshot->memory, (size_t)ids * sizeof *snapshot->find_next);
    if (!snapshot->find_heads || !snapshot->find_next) {
        ivm__snapshot_find_free(snapshot);
        return IVM_OUT_OF_MEMORY;
    }
    snapshot->find_columns = columns;
    const uint8_t *row = NULL;
    for (ivm__row_id id = 0; id < ids; id++) {
        row = ivm__row_pages_next(&snapshot->shared.rows, id, row);
        if (!ivm__row_pages_has(row)) {
            continue;
        }
        uint32_t *head = &snapshot->find_heads[ivm__find_hash(snapshot->shared.rows.layout, row, &key) & snapshot->find_mask];
        snapshot->find_next[id] = *head;
        *head = id + 1;
    }
    return IVM_OK;
}

static bool cell_is(const ivm_snapshot *snapshot, const uint8_t *row, uint32_t column, const ivm_value *value, ivm__wide cell)
{
    const ivm__layout *layout = snapshot->shared.rows.layout;
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

/* A null of another type is no value of this one either. */
static ivm_status value_mistake(ivm_type wanted_type, uint32_t at, const ivm_value *value, ivm_error *error)
{
    char why[IVM__MISFIT_SIZE];
    ivm__value_misfit(wanted_type, value, why);
    return ivm__fail(error, IVM_TYPE_MISMATCH, "ivm_snapshot_find: value %u of the key: %s", at + 1, why);
}

static ivm_status wanted_make(const ivm_snapshot *snapshot, const ivm_value *values, uint32_t count, wanted *key, ivm_error *error)
{
    key->values = values;
    key->count = count;
    key->hash = 0;
    for (uint32_t k = 0; k < count; k++) {
        ivm_type type = snapshot->shared.rows.layout->types[snapshot->key[k]];
        key->cells[k] = 0;
        if (IVM_TYPE_KIND(type) == IVM_STRING) {
            if (values[k].type != type && !(values[k].type == 0 && values[k].is_null)) {
                return value_mistake(type, k, &values[k], error);
            }
        } else if (ivm__value_cell(NULL, type, &values[k], &key->cells[k]) != IVM_OK) {
            return value_mistake(type, k, &values[k], error);
        }
        ivm__wide cell = key->cells[k];
        if (IVM_TYPE_KIND(type) == IVM_STRING && !values[k].is_null) {
            cell = (ivm__wide)ivm__hash_bytes(values[k].as.string.bytes, values[k].as.string.size, snapshot->engine->seed);
        }
        key->hash = ivm__find_hash_add(key->hash, snapshot->engine->seed, type, values[k].is_null, cell);
    }
    return IVM_OK;
}

/* Rows found: those that have the key are counted, and noted where there is room. */
static void row_found(ivm_snapshot *snapshot, const wanted *key, ivm__row_id id, uint64_t *found)
{
    const ivm__row_pages *rows = &snapshot->shared.rows;
    const uint8_t *row = id < rows->end ? ivm__row_pages_at(rows, id) : NULL;
    if (!row || !ivm__row_pages_has(row) || !row_is(snapshot, row, key->values, key->count, key->cells)) {
        return;
    }
    if (*found < snapshot->output_rows) {
        snapshot->rows[*found] = row;
        snapshot->weights[*found] = ivm__row_pages_weight(rows, id, row);
    }
    ++*found;
}

/* ---- By the whole key -------------------------------------------------------------------------------------------------------------------- */

static bool has_finder(const ivm_snapshot *snapshot, uint32_t columns)
{
    return snapshot->finds && columns == snapshot->key_count && snapshot->shared.rows.rows_count <= IVM__FINDER_ROWS_MAX;
}

/* The snapshot's own from now on, and the store's if it has none. */
static ivm_status finder_make(ivm_snapshot *snapshot)
{
    ivm__shared *shared = &snapshot->shared;
    const ivm__find_key key = key_of(snapshot, snapshot->key_count);
    shared->finder = ivm__finder_make(snapshot->memory, &shared->rows, &key);
    if (!shared->finder) {
        return IVM_OUT_OF_MEMORY;
    }
    if (shared->offer) {
        ivm__offer_put(shared->offer, shared->finder, shared->pages, snapshot->memory);
    }
    return IVM_OK;
}

static ivm_status find_by_finder(ivm_snapshot *snapshot, const wanted *key, uint64_t *count)
{
    if (!snapshot->shared.finder) {
        IVM_TRY(finder_make(snapshot));
    }
    ivm__finder *finder = snapshot->shared.finder;
    if (!atomic_load_explicit(&finder->used, memory_order_relaxed)) {
        atomic_store_explicit(&finder->used, true, memory_order_relaxed);
    }
    ivm__row_id id;
    *count = 0;
    for (uint64_t at = 0; (id = ivm__finder_next(finder, key->hash, &at)) != IVM__ROW_NONE;) {
        row_found(snapshot, key, id, count);
    }
    assert(*count <= 1);
    return IVM_OK;
}

/* ---- By chains --------------------------------------------------------------------------------------------------------------------------- */

static uint64_t chain_rows(ivm_snapshot *snapshot, const wanted *key)
{
    uint64_t found = 0;
    for (uint32_t at = snapshot->find_heads[key->hash & snapshot->find_mask]; at; at = snapshot->find_next[at - 1]) {
        row_found(snapshot, key, at - 1, &found);
    }
    return found;
}

/* *count of them, noted; a chain is walked twice only where it has more rows than any before. */
static ivm_status find_all(ivm_snapshot *snapshot, const wanted *key, uint64_t *count)
{
    IVM_TRY(ivm__snapshot_output_make(snapshot, IVM__CHUNK_ROWS));
    if (has_finder(snapshot, key->count)) {
        return find_by_finder(snapshot, key, count);
    }
    if (snapshot->find_columns != key->count) {
        IVM_TRY(find_build(snapshot, key->count));
    }
    *count = chain_rows(snapshot, key);
    if (*count > snapshot->output_rows) {
        IVM_TRY(ivm__snapshot_output_make(snapshot, *count));
        (void)chain_rows(snapshot, key);
    }
    return IVM_OK;
}

ivm_status ivm_snapshot_find(ivm_snapshot *snapshot, const ivm_value *values, size_t values_count, ivm_rows *rows, ivm_error *error)
{
    if (!snapshot || !values || !rows) {
        return ivm__fail_null(error, "ivm_snapshot_find", !snapshot ? "snapshot" : !values ? "values" : "rows");
    }
    uint32_t most = snapshot->key_count < IVM_TABLE_COLUMNS_MAX ? snapshot->key_count : IVM_TABLE_COLUMNS_MAX;
    if (values_count == 0 || values_count > most) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_snapshot_find: 1 to %u key values are wanted, not %zu", most, values_count);
    }
    wanted key;
    uint64_t count = 0;
    IVM_TRY(wanted_make(snapshot, values, (uint32_t)values_count, &key, error));
    if (find_all(snapshot, &key, &count) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    if (count == 0) {
        return ivm__fail(error, IVM_ROW_NOT_FOUND, "no row has this key");
    }
    ivm_status status = ivm__snapshot_output(snapshot, (uint32_t)count, rows); /* there are fewer ids than 2^32 */
    return status == IVM_OK ? IVM_OK : ivm__fail(error, status, "the %llu rows found cannot be given out", (unsigned long long)count);
}
