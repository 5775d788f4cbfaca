/* Staging, the coordinator: which tables a batch names, whether each must be consolidated, its parts one after the other, and last each table's
 * checks and changes. Nothing is applied before every part has been read.
 *
 * Consolidation is asked for by need, decided by a look at the kinds of changes and the signs of the weights. */
#include "staging.h"

ivm_status ivm__stage_delta(ivm__step *step, ivm__staging *staging, uint32_t **live, uint32_t *live_count)
{
    const ivm__net *net = &staging->net;
    ivm__table_delta *delta = &staging->table->delta;
    *live = ivm__net_live(net, step->scratch, live_count);
    uint32_t count = *live_count, chunks_count = (uint32_t)(((uint64_t)count + IVM__CHUNK_ROWS - 1) / IVM__CHUNK_ROWS);
    delta->chunks = ivm__arena_allocate(step->arena, chunks_count * sizeof(ivm__chunk *));
    if (!*live || !delta->chunks) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t i = 0; i < count; i++) {
        staging->rows_come += net->weights[(*live)[i]] > 0;
    }
    for (uint32_t c = 0; c < chunks_count; c++) {
        IVM_TRY(ivm__step_poll(step));
        uint32_t first = c * IVM__CHUNK_ROWS, rows = count - first < IVM__CHUNK_ROWS ? count - first : IVM__CHUNK_ROWS;
        delta->chunks[c] = ivm__net_chunk(net, step->arena, *live + first, rows);
        if (!delta->chunks[c]) {
            return ivm__fail_memory(step->error);
        }
    }
    delta->chunks_count = chunks_count;
    delta->rows_count = count;
    delta->shape = count == 0 ? IVM_UNCHANGED : staging->rows_come == count ? IVM_INSERT_ONLY : IVM_MIXED;
    return IVM_OK;
}

/* ---- What a table admits --------------------------------------------------------------------------------------------------------- */

static ivm_status stated_check(ivm__step *step, const ivm__staging *staging)
{
    static const char *const names[] = { "unchanged", "insert_only", "mixed" };
    const ivm__table_delta *delta = &staging->table->delta;
    ivm_shape stated = staging->stated->shape;
    if (delta->shape > stated) {
        return ivm__fail(step->error, IVM_INVALID_ARGUMENT, "table %s: its part is stated %s but is %s", staging->table->name,
                         names[stated], names[delta->shape]);
    }
    if (staging->consolidates && !staging->by_key && staging->net.added != staging->net.rows_count) {
        return ivm__fail(step->error, IVM_INVALID_ARGUMENT, "table %s: its part is stated net but has equal rows", staging->table->name);
    }
    return IVM_OK;
}

static ivm_status append_only_fail(ivm__step *step, const ivm_table *table)
{
    for (uint32_t c = 0; c < table->delta.chunks_count; c++) {
        const ivm__chunk *chunk = table->delta.chunks[c];
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            if (ivm__chunk_weight(chunk, i) < 0) {
                return ivm__stage_fail_row(step, table, IVM_APPEND_ONLY_VIOLATION, "append only, and the batch deletes %s",
                                           (ivm__stage_row){ chunk, i, NULL, chunk->columns_count });
            }
        }
    }
    assert(!"a mixed delta without a row that goes");
    return ivm__stage_fail(step, table, IVM_APPEND_ONLY_VIOLATION, "append only, and the batch deletes", "");
}

ivm_status ivm__stage_admit(ivm__step *step, const ivm__staging *staging)
{
    if (staging->stated) {
        IVM_TRY(stated_check(step, staging));
    }
    if (staging->table->append_only && staging->table->delta.shape == IVM_MIXED) {
        return append_only_fail(step, staging->table);
    }
    return IVM_OK;
}

/* ---- Which tables, and how ------------------------------------------------------------------------------------------------------- */

static ivm_table *table_by_id(ivm_engine *engine, uint64_t id)
{
    ivm_table **recent = &engine->recent[id % IVM__TABLES_RECENT];
    if (*recent && (*recent)->id == id) {
        return *recent;
    }
    ivm_table *table = engine->tables;
    while (table && table->id != id) {
        table = table->next;
    }
    *recent = table ? table : *recent;
    return table;
}

/* Adds up the weights above 0; true where one is below. */
static bool weights_scan(const int64_t *weights, uint64_t count, ivm__weight *sum)
{
    ivm__weight come = 0;
    int64_t signs = 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t weight = ivm__weight_at(weights, i);
        signs |= weight;
        come += weight > 0 ? weight : 0;
    }
    *sum += come;
    return signs < 0;
}

static ivm_status part_plan(ivm__step *step, ivm__staging *staging, const ivm__part *part)
{
    assert(part->rows_count <= IVM_BATCH_ROWS_MAX);
    staging->rows_max += part->change == IVM_UPSERT ? part->rows_count * 2 : part->rows_count; /* one comes and one may go */
    if (staging->rows_max > IVM_BATCH_ROWS_MAX) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: more than %u rows in one batch", staging->table ? staging->table->name : "?",
                         IVM_BATCH_ROWS_MAX);
    }
    staging->chunks_max += (part->rows_count + IVM__CHUNK_ROWS - 1) / IVM__CHUNK_ROWS;
    switch (part->change) {
    case IVM_INSERT:
        staging->weights_sum += part->rows_count;
        break;
    case IVM_WEIGHTED:
        staging->consolidates |= weights_scan(part->weights, part->rows_count, &staging->weights_sum);
        break;
    case IVM_UPSERT:
    case IVM_DELETE_KEY:
        staging->by_key = staging->consolidates = true;
        break;
    case IVM_DELETE:
        staging->consolidates = true;
        break;
    }
    return IVM_OK;
}

static ivm__staging *staging_make(ivm__step *step, const ivm_batch *batch, uint64_t table_id)
{
    ivm__staging *staging = ivm__arena_allocate(step->scratch, sizeof *staging);
    if (!staging) {
        return NULL;
    }
    *staging = (ivm__staging){ .table_id = table_id, .table = table_by_id(step->engine, table_id), .stated = batch->stated };
    while (staging->stated && staging->stated->table_id != table_id) {
        staging->stated = staging->stated->next;
    }
    if (staging->table) {
        ivm__table_list(staging->table);
    }
    return staging;
}

/* *stagings: in the order in which the batch names the tables; of_parts: each part's. */
static ivm_status plan_tables(ivm__step *step, const ivm_batch *batch, ivm__staging **stagings, ivm__staging **of_parts)
{
    ivm__staging *last = NULL;
    size_t at = 0;
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        ivm__staging **place = last && last->table_id == part->table_id ? &last : stagings;
        while (*place && (*place)->table_id != part->table_id) {
            place = &(*place)->next;
        }
        if (!*place && !(*place = staging_make(step, batch, part->table_id))) {
            return ivm__fail_memory(step->error);
        }
        last = *place;
        IVM_TRY(part_plan(step, last, part));
        of_parts[at++] = last;
    }
    return IVM_OK;
}

/* What the parts will be read into. */
static ivm_status staging_prepare(ivm__step *step, ivm__staging *staging)
{
    ivm_table *table = staging->table;
    if (table->key_count) {
        staging->consolidates |= staging->weights_sum >= INT64_MAX; /* the table may hold the row once */
    } else {
        const ivm__store *store = &table->store;
        staging->may_overflow = (ivm__weight)store->rows_live * store->weight_max + staging->weights_sum > INT64_MAX;
        staging->consolidates |= staging->may_overflow;
    }
    if (staging->consolidates) {
        ivm_status status = ivm__net_init(&staging->net, step->scratch, table, staging->rows_max, staging->by_key);
        return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
    }
    table->delta.chunks = ivm__arena_allocate(step->arena, staging->chunks_max * sizeof(ivm__chunk *));
    return table->delta.chunks ? IVM_OK : ivm__fail_memory(step->error);
}

/* ---- Parts ----------------------------------------------------------------------------------------------------------------------- */

/* Rows of weight 0 are dropped: *chunk NULL where all are. Weights of 1 alone are as good as none. */
static ivm_status zeros_drop(ivm__step *step, ivm__chunk **chunk)
{
    const ivm__chunk *all = *chunk;
    uint32_t rows[IVM__CHUNK_ROWS], count = 0;
    bool all_one = true;
    for (uint32_t i = 0; i < all->rows_count; i++) {
        rows[count] = i;
        count += all->weights[i] != 0;
        all_one &= all->weights[i] == 0 || all->weights[i] == 1;
    }
    if (count == all->rows_count) {
        return IVM_OK;
    }
    *chunk = count ? ivm__chunk_gather(step->arena, all, rows, count) : NULL;
    if (*chunk && all_one) {
        (*chunk)->weights = NULL;
    }
    return *chunk || !count ? IVM_OK : ivm__fail_memory(step->error);
}

/* The chunk becomes the delta's as it is. */
static ivm_status block_take(ivm__step *step, ivm__staging *staging, const ivm__part *part, uint64_t first, uint32_t count)
{
    ivm__table_delta *delta = &staging->table->delta;
    ivm__chunk *chunk;
    IVM_TRY(ivm__stage_chunk(step, step->arena, part, first, count, &chunk));
    if (chunk->weights) {
        IVM_TRY(zeros_drop(step, &chunk));
    }
    if (chunk) {
        assert(delta->chunks_count < staging->chunks_max);
        delta->chunks[delta->chunks_count++] = chunk;
        delta->rows_count += chunk->rows_count;
        delta->shape = IVM_INSERT_ONLY;
    }
    return IVM_OK;
}

/* The chunk's rows are added to the net rows. */
static ivm_status block_consolidate(ivm__step *step, ivm__staging *staging, const ivm__part *part, uint64_t first, uint32_t count)
{
    ivm__chunk *chunk;
    ivm__keys keys = { 0 };
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    IVM_TRY(ivm__stage_chunk(step, step->scratch, part, first, count, &chunk));
    if (part->change >= IVM_UPSERT) {
        staging->part = part;
        staging->first = first;
        IVM_TRY(ivm__stage_by_key(step, staging, part->change, chunk));
    } else {
        ivm_status status = IVM_OK;
        if (staging->by_key) {
            status = ivm__index_keys(staging->table->key_index, step->scratch, chunk, staging->table->key, false, &keys);
        }
        if (status == IVM_OK) {
            status = ivm__net_add(&staging->net, step->scratch, chunk, part->change == IVM_DELETE ? -1 : 1, keys.hashes);
        }
        if (status != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}

/* A key that is no value comes after the keys before it that are not there: where a block has one, its rows go one by one. */
static ivm_status block_of_keys(ivm__step *step, ivm__staging *staging, const ivm__part *part, uint64_t first, uint32_t count)
{
    ivm_status status = block_consolidate(step, staging, part, first, count);
    bool unread = status == IVM_TYPE_MISMATCH || status == IVM_INVALID_ARGUMENT;
    for (uint32_t i = 0; unread && i < count; i++) {
        IVM_TRY(block_consolidate(step, staging, part, first + i, 1));
    }
    return status;
}

static ivm_status part_read(ivm__step *step, ivm__staging *staging, const ivm__part *part)
{
    if (!staging->table) {
        return ivm__fail(step->error, IVM_UNKNOWN_TABLE, "the batch names a table that has been dropped since");
    }
    if (part->columns_version != staging->table->columns_version) {
        return ivm__fail(step->error, IVM_TYPE_MISMATCH, "table %s: its columns have changed since the batch was filled",
                         staging->table->name);
    }
    for (uint64_t first = 0; first < part->rows_count; first += IVM__CHUNK_ROWS) {
        uint32_t count = part->rows_count - first < IVM__CHUNK_ROWS ? (uint32_t)(part->rows_count - first) : IVM__CHUNK_ROWS;
        IVM_TRY(ivm__step_poll(step));
        if (!staging->consolidates) {
            IVM_TRY(block_take(step, staging, part, first, count));
        } else if (part->change == IVM_DELETE_KEY) {
            IVM_TRY(block_of_keys(step, staging, part, first, count));
        } else {
            IVM_TRY(block_consolidate(step, staging, part, first, count));
        }
    }
    return IVM_OK;
}

/* ---- The batch ------------------------------------------------------------------------------------------------------------------- */

static ivm_status parts_read(ivm__step *step, const ivm_batch *batch, ivm__staging **stagings)
{
    size_t parts_count = 0;
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        parts_count++;
    }
    ivm__staging **of_parts = ivm__arena_allocate(step->scratch, parts_count * sizeof(ivm__staging *));
    if (!of_parts) {
        return ivm__fail_memory(step->error);
    }
    IVM_TRY(plan_tables(step, batch, stagings, of_parts));
    for (ivm__staging *staging = *stagings; staging; staging = staging->next) {
        if (staging->table) {
            IVM_TRY(staging_prepare(step, staging));
        }
    }
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        IVM_TRY(part_read(step, *of_parts++, part));
    }
    for (const ivm__stated *stated = batch->stated; stated; stated = stated->next) {
        if (!table_by_id(step->engine, stated->table_id)) {
            return ivm__fail(step->error, IVM_UNKNOWN_TABLE, "the batch states the shape of a table that has been dropped since");
        }
    }
    return IVM_OK;
}

ivm_status ivm__stage_apply(ivm__step *step, const ivm_batch *batch)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm__staging *stagings = NULL;
    step->batch = batch;
    IVM_TRY(parts_read(step, batch, &stagings));
    for (ivm__staging *staging = stagings; staging; staging = staging->next) {
        assert(staging->table);
        IVM_TRY(staging->table->key_count ? ivm__stage_keyed(step, staging) : ivm__stage_bag(step, staging));
        step->stats->rows_in += staging->table->delta.rows_count;
    }
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}

/* What a table changed can be read until the step after: then it leaves the list. */
void ivm__stage_commit(ivm_engine *engine)
{
    for (ivm_table **at = &engine->changed, *table; (table = *at) != NULL;) {
        ivm__store_commit(&table->store);
        table->came |= table->delta.shape != IVM_UNCHANGED;
        table->stale = false; /* a push sorts such rows out (transient.c) */
        table->delta = (ivm__table_delta){ 0 };
        table->listed = !ivm__store_is_settled(&table->store);
        if (table->listed) {
            at = &table->next_changed;
        } else {
            *at = table->next_changed;
        }
    }
}

void ivm__stage_undo(ivm_engine *engine)
{
    for (ivm_table *table = engine->changed; table; table = table->next_changed) {
        ivm__store_undo(&table->store);
        table->delta = (ivm__table_delta){ 0 };
    }
}
