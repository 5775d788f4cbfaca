/* Keyed tables: a key stands for one row. A batch that only inserts is added as it comes, and a second row of a key shows in the index.
 * Any other is consolidated: upserts and deletions by key see the table and the batch so far; of the net rows those that go must be the
 * table's, those that come must find their key free.
 *
 *     upsert(k, row) = row - (the rows of key k there now)         delete(k) = -(the rows of key k there now), one at least
 *
 * Cost: a lookup a row in the key index, fetched ahead, and one more in the net rows where the batch is consolidated. */
#include "staging.h"

/* ---- Rows of the table ----------------------------------------------------------------------------------------------------------- */

/* The table's row of each key of the chunk, IVM__ROW_NONE where there is none: the step has not changed the table yet. NULL: out of
 * memory. */
static ivm__row_id *rows_find(ivm__step *step, const ivm_table *table, const ivm__keys *keys)
{
    ivm__row_id *found = ivm__arena_allocate(step->scratch, keys->rows_count * sizeof *found);
    if (!found) {
        return NULL;
    }
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        found[i] = IVM__ROW_NONE;
    }
    ivm__probe probe = { 0 };
    uint32_t positions[IVM__CHUNK_ROWS], count;
    ivm__row_id ids[IVM__CHUNK_ROWS];
    while ((count = ivm__index_probe(table->key_index, keys, &probe, IVM__CHUNK_ROWS, positions, ids)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            assert(found[positions[i]] == IVM__ROW_NONE);
            found[positions[i]] = ids[i];
        }
    }
    return found;
}

/* `columns`: where the chunk has the key; NULL: it has nothing else. */
static ivm_status keys_pack(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, const uint32_t *columns, ivm__keys *keys)
{
    ivm_status status = ivm__index_keys(table->key_index, step->scratch, chunk, columns, false, keys);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

static const uint8_t *row_at(const ivm_table *table, ivm__row_id row)
{
    return row == IVM__ROW_NONE ? NULL : ivm__store_row(&table->store, row);
}

/* Of a chunk with all columns. */
static ivm_status fail_key(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, uint32_t row, ivm_status status)
{
    return ivm__stage_fail_row(step, table, status, status == IVM_DUPLICATE_KEY ? "a second row with key %s" : "no row with key %s",
                               (ivm__stage_row){ chunk, row, table->key, table->key_count });
}

/* Of a chunk of keys that are deleted. */
static ivm_status fail_deleted(ivm__step *step, const ivm__staging *staging, const ivm__chunk *chunk, uint32_t row)
{
    char text[IVM__ROW_TEXT_SIZE];
    uint64_t number = ivm__batch_rows(step->batch, staging->table_id, staging->part) + staging->first + row;
    ivm__stage_row_text(chunk, NULL, chunk->columns_count, row, text);
    return ivm__fail(step->error, IVM_ROW_NOT_FOUND, "table %s, row %llu: no row with key %s", staging->table->name,
                     (unsigned long long)number, text);
}

/* ---- Upserts and deletions by key ------------------------------------------------------------------------------------------------ */

/* Puts the key's cells where the table's rows have them: all that a row is asked for by key. */
static void keys_scatter(const ivm_table *table, const ivm__chunk *chunk, uint8_t *const *rows)
{
    for (uint32_t k = 0; k < table->key_count; k++) {
        uint32_t offset = table->store.layout->offsets[table->key[k]];
        size_t size = ivm__type_words(chunk->columns[k].type) * sizeof(uint64_t);
        const uint8_t *cells = chunk->columns[k].cells;
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            memcpy(rows[i] + offset, cells + i * size, size);
        }
    }
}

static ivm_status upsert(ivm__staging *staging, const ivm__keys *keys, uint8_t *const *rows, const ivm__row_id *olds)
{
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        ivm__net_take_key(&staging->net, rows[i], keys->hashes[i], row_at(staging->table, olds[i]));
        ivm__net_add_row(&staging->net, rows[i], 1, keys->hashes[i]);
    }
    return IVM_OK;
}

static ivm_status delete_keys(ivm__step *step, ivm__staging *staging, const ivm__chunk *chunk, const ivm__keys *keys, uint8_t *const *rows,
                              const ivm__row_id *olds)
{
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        bool null = keys->skip && keys->skip[i];
        if (null || !ivm__net_take_key(&staging->net, rows[i], keys->hashes[i], row_at(staging->table, olds[i]))) {
            return fail_deleted(step, staging, chunk, i);
        }
    }
    return IVM_OK;
}

ivm_status ivm__stage_by_key(ivm__step *step, ivm__staging *staging, ivm_change change, const ivm__chunk *chunk)
{
    const ivm_table *table = staging->table;
    ivm__keys keys;
    IVM_TRY(keys_pack(step, table, chunk, change == IVM_UPSERT ? table->key : NULL, &keys));
    ivm__row_id *olds = rows_find(step, table, &keys);
    uint8_t **rows = ivm__net_room(&staging->net, step->scratch, chunk->rows_count);
    if (!olds || !rows) {
        return ivm__fail_memory(step->error);
    }
    if (change == IVM_UPSERT) {
        ivm__layout_scatter(table->store.layout, chunk, NULL, 0, chunk->rows_count, rows);
        return upsert(staging, &keys, rows, olds);
    }
    keys_scatter(table, chunk, rows);
    return delete_keys(step, staging, chunk, &keys, rows, olds);
}

/* ---- Two rows of a key ----------------------------------------------------------------------------------------------------------- */

static bool key_has_two(const ivm_table *table, const ivm__keys *keys, uint32_t key)
{
    const uint64_t *words = keys->words + (size_t)key * keys->words_count;
    uint32_t next = 0, found = 0;
    ivm__row_id row;
    while (found < 2 && (row = ivm__index_find(table->key_index, words, keys->hashes[key], &next)) != IVM__ROW_NONE) {
        found += ivm__store_weight(&table->store, row, IVM__READ_CUR) > 0;
    }
    return found == 2;
}

/* Names the first row that came whose key has two rows now. */
static ivm_status doubles_fail(ivm__step *step, ivm_table *table)
{
    for (uint32_t c = 0; c < table->delta.chunks_count; c++) {
        const ivm__chunk *chunk = table->delta.chunks[c];
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__keys keys;
        IVM_TRY(keys_pack(step, table, chunk, table->key, &keys));
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            if (ivm__chunk_weight(chunk, i) > 0 && key_has_two(table, &keys, i)) {
                return fail_key(step, table, chunk, i, IVM_DUPLICATE_KEY);
            }
        }
        ivm__arena_back(step->scratch, mark);
    }
    assert(!"the index tells of doubles that are not there");
    return ivm__stage_fail(step, table, IVM_DUPLICATE_KEY, "two rows of one key", "");
}

/* A weight above 1 is a key twice. */
static ivm_status weights_check(ivm__step *step, const ivm_table *table)
{
    for (uint32_t c = 0; c < table->delta.chunks_count; c++) {
        const ivm__chunk *chunk = table->delta.chunks[c];
        for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
            if (chunk->weights[i] > 1) {
                return fail_key(step, table, chunk, i, IVM_DUPLICATE_KEY);
            }
        }
    }
    return IVM_OK;
}

/* ---- Insertions alone ------------------------------------------------------------------------------------------------------------ */

/* Doubles are looked for block by block: the slots of one key lie side by side, and many would take long to fill. */
static ivm_status insert_all(ivm__step *step, ivm_table *table)
{
    assert(table->key_index->doubles == 0);
    IVM_TRY(weights_check(step, table));
    IVM_TRY(ivm__stage_reserve(step, table, table->delta.rows_count));
    for (uint32_t c = 0; c < table->delta.chunks_count; c++) {
        IVM_TRY(ivm__step_poll(step));
        if (ivm__store_put_chunk(&table->store, table->delta.chunks[c], NULL) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
        if (table->key_index->doubles) {
            return doubles_fail(step, table);
        }
    }
    return IVM_OK;
}

/* ---- Net rows -------------------------------------------------------------------------------------------------------------------- */

/* What goes must be the table's own row, once. olds[i]: the table's row of the key. Weights out of range are told when no row is missing. */
static ivm_status chunk_verify(ivm__step *step, const ivm__staging *staging, const ivm__chunk *chunk, const uint32_t *live,
                               ivm__row_id *olds, bool *overflow)
{
    const ivm_table *table = staging->table;
    ivm__keys keys;
    IVM_TRY(keys_pack(step, table, chunk, table->key, &keys));
    const ivm__row_id *rows = rows_find(step, table, &keys);
    if (!rows) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        const uint8_t *old = row_at(table, rows[i]);
        ivm__weight before = old && ivm__net_equal(&staging->net, live[i], old);
        ivm__weight weight = staging->net.weights[live[i]];
        if (before + weight < 0) {
            return old ? ivm__stage_fail_row(step, table, IVM_ROW_NOT_FOUND, "no row %s is left to delete",
                                             (ivm__stage_row){ chunk, i, NULL, chunk->columns_count })
                       : fail_key(step, table, chunk, i, IVM_ROW_NOT_FOUND);
        }
        *overflow |= before + weight > INT64_MAX;
        olds[i] = rows[i];
    }
    return IVM_OK;
}

static ivm_status rows_verify(ivm__step *step, const ivm__staging *staging, const uint32_t *live, ivm__row_id *olds)
{
    const ivm__table_delta *delta = &staging->table->delta;
    bool overflow = false;
    for (uint32_t c = 0; c < delta->chunks_count; c++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        size_t first = (size_t)c * IVM__CHUNK_ROWS;
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(chunk_verify(step, staging, delta->chunks[c], live + first, olds + first, &overflow));
        ivm__arena_back(step->scratch, mark);
    }
    return overflow ? ivm__fail(step->error, IVM_OVERFLOW, "table %s: the weight of a row is out of range", staging->table->name) : IVM_OK;
}

static ivm_status rows_remove(ivm__step *step, const ivm__staging *staging, const uint32_t *live, uint32_t live_count,
                              const ivm__row_id *olds)
{
    ivm__store *store = &staging->table->store;
    for (uint32_t i = 0; i < live_count; i++) {
        if (staging->net.weights[live[i]] < 0) {
            assert(olds[i] != IVM__ROW_NONE);
            if (ivm__store_touch(store, olds[i]) != IVM_OK) {
                return ivm__fail_memory(step->error);
            }
            ivm__store_weight_set(store, olds[i], 0);
        }
    }
    return IVM_OK;
}

/* Where the table has a row of the key of one that comes, it must be one that goes, and each such may be followed by one alone. Those that
 * go are the rows touched so far, and their number among these tells them apart. */
static ivm_status successors_check(ivm__step *step, const ivm__staging *staging, const uint32_t *live, uint32_t live_count,
                                   const ivm__row_id *olds)
{
    const ivm_table *table = staging->table;
    bool *followed = ivm__arena_allocate(step->scratch, table->store.touched_count * sizeof *followed);
    if (!followed) {
        return ivm__fail_memory(step->error);
    }
    memset(followed, 0, table->store.touched_count * sizeof *followed);
    for (uint32_t i = 0; i < live_count; i++) {
        if (staging->net.weights[live[i]] < 0 || olds[i] == IVM__ROW_NONE) {
            continue;
        }
        uint32_t touch = ivm__header_touch(ivm__row_header_of(ivm__store_row(&table->store, olds[i])));
        if (touch == 0 || followed[touch - 1]) {
            return fail_key(step, table, table->delta.chunks[i / IVM__CHUNK_ROWS], i % IVM__CHUNK_ROWS, IVM_DUPLICATE_KEY);
        }
        followed[touch - 1] = true;
    }
    return IVM_OK;
}

/* How many of the rows that come follow one that goes: those alone find their key in the index. */
static uint32_t successors_count(const ivm__net *net, const uint32_t *live, uint32_t count, const ivm__row_id *olds)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += net->weights[live[i]] > 0 && olds[i] != IVM__ROW_NONE;
    }
    return found;
}

static ivm_status rows_insert(ivm__step *step, const ivm__staging *staging, const uint32_t *live, uint32_t live_count,
                              const ivm__row_id *olds)
{
    ivm_table *table = staging->table;
    uint32_t successors = 0;
    assert(table->key_index->doubles == 0);
    IVM_TRY(weights_check(step, table));
    IVM_TRY(successors_check(step, staging, live, live_count, olds));
    IVM_TRY(ivm__stage_reserve(step, table, staging->rows_come));
    for (uint32_t first = 0; first < live_count; first += IVM__CHUNK_ROWS) {
        uint32_t count = live_count - first < IVM__CHUNK_ROWS ? live_count - first : IVM__CHUNK_ROWS;
        IVM_TRY(ivm__step_poll(step));
        ivm__stage_put(&table->store, &staging->net, live + first, count);
        successors += successors_count(&staging->net, live + first, count, olds + first);
        if (table->key_index->doubles != successors) {
            return doubles_fail(step, table);
        }
    }
    return IVM_OK;
}

ivm_status ivm__stage_keyed(ivm__step *step, ivm__staging *staging)
{
    if (!staging->consolidates) {
        IVM_TRY(ivm__stage_admit(step, staging));
        return insert_all(step, staging->table);
    }
    uint32_t *live, live_count;
    IVM_TRY(ivm__stage_delta(step, staging, &live, &live_count));
    IVM_TRY(ivm__stage_admit(step, staging));
    ivm__row_id *olds = ivm__arena_allocate(step->scratch, live_count * sizeof *olds);
    if (!olds) {
        return ivm__fail_memory(step->error);
    }
    IVM_TRY(rows_verify(step, staging, live, olds));
    IVM_TRY(rows_remove(step, staging, live, live_count, olds));
    return rows_insert(step, staging, live, live_count, olds);
}
