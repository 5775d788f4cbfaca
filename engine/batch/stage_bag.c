/* Bags: without a negative weight rows are appended as they come, their columns scattered into rows a block at a time. With one the batch is
 * consolidated first, and what is still negative is taken from rows equal to it, found through an index over whole rows that is built when
 * the first such row comes.
 *
 *     table' = table + delta,  and no row's weight may be below 0
 *
 * A table that allows negative weights keeps each distinct row once, as a Z-set does, and takes anything. A transient table takes anything
 * too and keeps nothing: its delta is all there is of it.
 *
 * Cost: a store a cell for rows that come; a lookup for each distinct row that goes, plus the copies it is taken from. With negative weights
 * allowed, a lookup for each row. */
#include "staging.h"
#include "weights.h"

/* Put in without a look whether the push was cancelled, so that threads have work: some 5 ms of one. */
#define CHUNKS_UNASKED 256u

/* ---- Rows that come -------------------------------------------------------------------------------------------------------------- */

void ivm__stage_put(ivm__store *store, const ivm__net *net, const uint32_t *rows, uint32_t count)
{
    ivm__row_id ids[IVM__CHUNK_ROWS];
    uint32_t come = 0;
    assert(count <= IVM__CHUNK_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        ivm__weight weight = net->weights[rows[i]];
        if (weight < 0) {
            continue;
        }
        ids[come] = ivm__store_put(store, weight);
        memcpy(ivm__store_row(store, ids[come++]) + IVM__ROW_HEADER, ivm__net_at(net, rows[i]) + IVM__ROW_HEADER,
               store->layout->body_bytes);
    }
    ivm__store_link_rows(store, ids, come);
}

ivm_status ivm__stage_reserve(ivm__step *step, ivm_table *table, uint64_t rows)
{
    if (table->store.rows_live + rows > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: more than %u rows", table->name, IVM_TABLE_ROWS_MAX);
    }
    return ivm__store_reserve(&table->store, rows) == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

/* Adds all rows of the table's delta, none of which is negative. */
static ivm_status append(ivm__step *step, ivm_table *table)
{
    const ivm__table_delta *delta = &table->delta;
    IVM_TRY(ivm__stage_reserve(step, table, delta->rows_count));
    for (uint32_t first = 0; first < delta->chunks_count; first += CHUNKS_UNASKED) {
        uint32_t count = delta->chunks_count - first < CHUNKS_UNASKED ? delta->chunks_count - first : CHUNKS_UNASKED;
        IVM_TRY(ivm__step_poll(step));
        if (ivm__store_put_chunks(&table->store, step->pool, step->scratch, delta->chunks + first, count) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    return IVM_OK;
}

/* ---- Rows that go ---------------------------------------------------------------------------------------------------------------- */

static ivm_status whole_keys(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, ivm__keys *keys)
{
    ivm_status status = ivm__index_keys(table->whole, step->scratch, chunk, NULL, true, keys);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

static const uint64_t *key_words(const ivm__keys *keys, uint32_t row)
{
    return keys->words + (size_t)row * keys->words_count;
}

/* Takes `wanted` copies from the rows of this key, one row after the other. *wanted is what was not there. */
static ivm_status copies_take(ivm_table *table, const uint64_t *words, uint64_t hash, ivm__weight *wanted)
{
    uint32_t next = 0;
    ivm__row_id row;
    while (*wanted > 0 && (row = ivm__index_find(table->whole, words, hash, &next)) != IVM__ROW_NONE) {
        ivm__weight weight = ivm__store_weight(&table->store, row, IVM__READ_CUR);
        assert(weight > 0); /* each distinct row is met once a step */
        ivm__weight taken = weight < *wanted ? weight : *wanted;
        IVM_TRY(ivm__store_touch(&table->store, row));
        ivm__store_weight_set(&table->store, row, weight - taken);
        *wanted -= taken;
    }
    return IVM_OK;
}

/* The chunk's rows of a weight below 0; *going NULL: it has none. */
static ivm_status chunk_going(ivm__step *step, const ivm__chunk *chunk, const ivm__chunk **going)
{
    uint32_t *rows = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *rows), count = 0;
    if (!rows) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        rows[count] = i;
        count += chunk->weights[i] < 0;
    }
    *going = count == 0 ? NULL : count == chunk->rows_count ? chunk : ivm__chunk_gather(step->scratch, chunk, rows, count);
    return count == 0 || *going ? IVM_OK : ivm__fail_memory(step->error);
}

static ivm_status chunk_take(ivm__step *step, ivm_table *table, const ivm__chunk *all)
{
    const ivm__chunk *chunk = NULL;
    IVM_TRY(chunk_going(step, all, &chunk));
    if (!chunk) {
        return IVM_OK;
    }
    ivm__keys keys;
    IVM_TRY(whole_keys(step, table, chunk, &keys));
    ivm__index_send_slots(table->whole, &keys);
    ivm__index_send_rows(table->whole, &keys);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        ivm__weight wanted = -ivm__chunk_weight(chunk, i);
        if (copies_take(table, key_words(&keys, i), keys.hashes[i], &wanted) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
        if (wanted > 0) {
            return ivm__stage_fail_row(step, table, IVM_ROW_NOT_FOUND, "no row %s is left to delete",
                                       (ivm__stage_row){ chunk, i, NULL, chunk->columns_count });
        }
    }
    return IVM_OK;
}

/* Equal rows' weights are added up: none may leave int64. */
static ivm_status chunk_weigh(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    ivm__keys keys;
    IVM_TRY(whole_keys(step, table, chunk, &keys));
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        ivm__weight sum = ivm__chunk_weight(chunk, i);
        uint32_t next = 0;
        ivm__row_id row;
        while (sum > 0 && (row = ivm__index_find(table->whole, key_words(&keys, i), keys.hashes[i], &next)) != IVM__ROW_NONE) {
            sum += ivm__store_weight(&table->store, row, IVM__READ_CUR);
        }
        if (sum > INT64_MAX) {
            char text[IVM__ROW_TEXT_SIZE];
            ivm__stage_row_text(chunk, NULL, chunk->columns_count, i, text);
            return ivm__stage_fail(step, table, IVM_OVERFLOW, "too many copies of", text);
        }
    }
    return IVM_OK;
}

static ivm_status each_chunk(ivm__step *step, ivm_table *table, ivm_status (*work)(ivm__step *, ivm_table *, const ivm__chunk *))
{
    for (uint32_t i = 0; i < table->delta.chunks_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(work(step, table, table->delta.chunks[i]));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status whole_index(ivm__step *step, ivm_table *table)
{
    if (table->whole) {
        return IVM_OK;
    }
    uint32_t *columns = ivm__arena_allocate(step->scratch, table->columns_count * sizeof *columns);
    if (!columns) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t c = 0; c < table->columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status = ivm__step_index(step, &table->store, columns, table->columns_count, table->allow_negative, &table->whole);
    return ivm__step_status(step, status);
}

static ivm_status rows_add(ivm__step *step, const ivm__staging *staging, const uint32_t *live, uint32_t live_count)
{
    IVM_TRY(ivm__stage_reserve(step, staging->table, staging->rows_come));
    for (uint32_t first = 0; first < live_count; first += IVM__CHUNK_ROWS) {
        uint32_t count = live_count - first < IVM__CHUNK_ROWS ? live_count - first : IVM__CHUNK_ROWS;
        IVM_TRY(ivm__step_poll(step));
        ivm__stage_put(&staging->table->store, &staging->net, live + first, count);
    }
    return IVM_OK;
}

/* ---- Weights of any sign --------------------------------------------------------------------------------------------------------- */

static ivm_status chunk_check(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        if (!ivm__weight_fits(chunk->weights[i])) {
            char text[IVM__ROW_TEXT_SIZE];
            ivm__stage_row_text(chunk, NULL, chunk->columns_count, i, text);
            return ivm__stage_fail(step, table, IVM_OVERFLOW, "the batch's weight is out of range of", text);
        }
    }
    return IVM_OK;
}

static ivm_status chunk_add(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    ivm_status status = ivm__store_add(&table->store, table->whole, step->scratch, chunk, NULL, 1);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

static ivm_status signed_overflow(ivm__step *step, const ivm_table *table)
{
    const ivm__touch *touch = table->store.touched;
    while (ivm__weight_fits(touch->after)) {
        touch++;
    }
    const uint8_t *row = ivm__store_row(&table->store, touch->row);
    char text[IVM__ROW_TEXT_SIZE];
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, table->types, table->columns_count);
    if (!chunk) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t c = 0; c < table->columns_count; c++) {
        if (!ivm__vector_make(step->scratch, &chunk->columns[c], table->types[c], 1, true)) {
            return ivm__fail_memory(step->error);
        }
        ivm__layout_gather(table->store.layout, c, &row, 1, &chunk->columns[c]);
    }
    chunk->rows_count = 1;
    ivm__stage_row_text(chunk, NULL, chunk->columns_count, 0, text);
    return ivm__stage_fail(step, table, IVM_OVERFLOW, "the weight is out of range of", text);
}

static ivm_status signed_apply(ivm__step *step, ivm_table *table)
{
    IVM_TRY(each_chunk(step, table, chunk_check));
    if (table->store.rows_live + table->delta.rows_count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: more than %u rows", table->name, IVM_TABLE_ROWS_MAX);
    }
    IVM_TRY(each_chunk(step, table, chunk_add));
    return ivm__touched_weights_fit(&table->store) ? IVM_OK : signed_overflow(step, table);
}

/* ---- A table's part of a batch ----------------------------------------------------------------------------------------------------- */

ivm_status ivm__stage_bag(ivm__step *step, ivm__staging *staging)
{
    ivm_table *table = staging->table;
    uint32_t *live = NULL, live_count = 0;
    if (staging->consolidates) {
        IVM_TRY(ivm__stage_delta(step, staging, &live, &live_count));
    }
    IVM_TRY(ivm__stage_admit(step, staging));
    if (table->transient) {
        return each_chunk(step, table, chunk_check);
    }
    if (table->allow_negative) {
        IVM_TRY(whole_index(step, table));
        return signed_apply(step, table);
    }
    if (table->delta.shape == IVM_MIXED || (staging->may_overflow && live_count)) {
        IVM_TRY(whole_index(step, table));
    }
    if (table->delta.shape == IVM_MIXED) {
        IVM_TRY(each_chunk(step, table, chunk_take));
    }
    if (staging->may_overflow) {
        IVM_TRY(each_chunk(step, table, chunk_weigh));
    }
    return table->delta.shape == IVM_MIXED ? rows_add(step, staging, live, live_count) : append(step, table);
}
