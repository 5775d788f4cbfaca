/* Rows that wait: those of a delta put aside, those whose parents have come let go. See transient.h. */
#include "transient_inside.h"
#include "weights.h"

/* ---- Hops in force ------------------------------------------------------------------------------------------------------------------ */

static void list(ivm__hops *hops)
{
    hops->next_of_table = hops->table->hops;
    hops->table->hops = hops;
    hops->table->engine->waits_count++;
}

void ivm__hops_publish(const ivm_view *view)
{
    for (ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            hops->hop[h].fact->pins++;
        }
        if (hops->waits) {
            list(hops);
        }
    }
}

static void unlist(ivm__hops *hops)
{
    ivm_table *table = hops->table;
    ivm__hops **at = &table->hops;
    while (*at != hops) {
        at = &(*at)->next_of_table;
    }
    *at = hops->next_of_table;
    table->engine->waits_count--;
    table->stale = table->hops != NULL;
    if (!table->hops) {
        ivm__store_clear(&table->store);
    }
}

void ivm__hops_retire(const ivm_view *view)
{
    for (ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            assert(hops->hop[h].fact->pins > 0);
            hops->hop[h].fact->pins--;
        }
        if (hops->waits) {
            unlist(hops);
        }
    }
}

static void hops_free(ivm__hops *hops, ivm__memory *memory)
{
    for (ivm__hops *next; hops; hops = next) {
        next = hops->next;
        ivm__release(memory, hops->hop, hops->capacity * sizeof *hops->hop);
        ivm__release(memory, hops, sizeof *hops);
    }
}

void ivm__hops_free(ivm_view *view)
{
    hops_free(view->hops, &view->engine->memory);
    view->hops = NULL;
}

/* ---- Facts' own ------------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__fact_hops_make(ivm_fact *fact)
{
    ivm__memory *memory = &fact->engine->memory;
    assert(ivm__fact_keeps_waiting(fact) && !fact->hops);
    ivm__hops *hops = ivm__allocate_zeroed(memory, sizeof *hops);
    if (!hops) {
        return IVM_OUT_OF_MEMORY;
    }
    fact->hops = hops;
    IVM_TRY(ivm__grow(memory, (void **)&hops->hop, &hops->capacity, 1, sizeof *hops->hop));
    hops->table = fact->child;
    hops->hop[hops->count++] = (ivm__hop){ .fact = fact, .from = IVM__HOP_ROW };
    hops->waits = true;
    return IVM_OK;
}

void ivm__fact_hops_publish(ivm_fact *fact)
{
    if (fact->hops) {
        list(fact->hops);
    }
}

void ivm__fact_hops_retire(ivm_fact *fact)
{
    if (fact->hops) {
        unlist(fact->hops);
    }
}

void ivm__fact_hops_free(ivm_fact *fact)
{
    hops_free(fact->hops, &fact->engine->memory);
    fact->hops = NULL;
}

static bool rests_on(const ivm_view *view, const ivm_fact *fact)
{
    bool rests = false;
    for (const ivm__hops *hops = view->hops; hops; hops = hops->next) {
        for (uint32_t h = 0; h < hops->count; h++) {
            rests |= hops->hop[h].fact == fact;
        }
    }
    return rests;
}

const ivm_view *ivm__hops_view(const ivm_fact *fact)
{
    const ivm_view *view = fact->engine->views;
    assert(fact->pins > 0);
    while (!rests_on(view, fact)) {
        view = view->next;
    }
    return view;
}

/* ---- Rows that come ------------------------------------------------------------------------------------------------------------------ */

static ivm_status whole_make(ivm__step *step, ivm_table *table)
{
    uint32_t *columns = ivm__arena_allocate(step->scratch, table->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < table->columns_count; c++) {
        columns[c] = c;
    }
    return table->whole ? IVM_OK : ivm__step_index(step, &table->store, columns, table->columns_count, true, &table->whole);
}

/* Which of the chunk's rows wait: all of them, or those alone that come. */
static ivm_status waiting_choose(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, bool all, uint32_t *rows,
                                 uint32_t *count)
{
    bool *waits = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *waits);
    if (!waits) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__rows_wait(step, table, chunk, waits));
    *count = 0;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        rows[*count] = i;
        *count += waits[i] && (all || ivm__chunk_weight(chunk, i) > 0);
    }
    return IVM_OK;
}

/* The rows of the chunk that wait, those that come; of a table whose weights may be below zero both kinds. */
static ivm_status rows_come(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    uint32_t rows[IVM__CHUNK_ROWS], count;
    IVM_TRY(waiting_choose(step, table, chunk, table->allow_negative, rows, &count));
    if (count == 0) {
        return IVM_OK;
    }
    if (table->store.rows_live + count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: more than %u rows wait", table->name, IVM_TABLE_ROWS_MAX);
    }
    const ivm__chunk *chosen = ivm__chunk_gather(step->scratch, chunk, rows, count);
    if (!chosen) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(whole_make(step, table));
    return ivm__store_add(&table->store, table->whole, step->scratch, chosen, NULL, 1);
}

/* Takes what goes from rows that are there, whether or not they wait still. Of a row that is not there nothing is known: its parents have
 * come, or it never did. */
static ivm_status rows_go(ivm__step *step, ivm_table *table, const ivm__chunk *chunk)
{
    ivm__keys keys;
    IVM_TRY(ivm__index_keys(table->whole, step->scratch, chunk, NULL, true, &keys));
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        uint32_t next = 0;
        ivm__weight change = ivm__chunk_weight(chunk, i), weight = 0;
        ivm__row_id row = IVM__ROW_NONE;
        if (change < 0) {
            row = ivm__index_find(table->whole, keys.words + (size_t)i * keys.words_count, keys.hashes[i], &next);
        }
        if (row != IVM__ROW_NONE) {
            weight = ivm__store_weight(&table->store, row, IVM__READ_CUR);
        }
        if (weight != 0) {
            IVM_TRY(ivm__store_touch(&table->store, row));
            ivm__store_weight_set(&table->store, row, weight + change > 0 ? weight + change : 0);
        }
    }
    return IVM_OK;
}

static ivm_status delta_keep(ivm__step *step, ivm_table *table)
{
    const ivm__table_delta *delta = &table->delta;
    bool come = false, go = delta->shape == IVM_MIXED && !table->allow_negative;
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        come |= ivm__hops_are_awaited(hops);
    }
    for (uint32_t c = 0; c < delta->chunks_count; c++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        if (come) {
            IVM_TRY(rows_come(step, table, delta->chunks[c]));
        }
        if (go && table->store.rows_live > 0) {
            IVM_TRY(rows_go(step, table, delta->chunks[c]));
        }
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

/* ---- Rows that wait no longer ---------------------------------------------------------------------------------------------------------- */

/* Lets go those of these rows of the store that wait for nothing. */
static ivm_status rows_check(ivm__step *step, ivm_table *table, const ivm__row_id *rows, uint32_t rows_count)
{
    ivm__arena *scratch = step->scratch;
    ivm__chunk *chunk = ivm__hop_chunk(scratch, table, rows_count);
    bool *waits = ivm__arena_allocate(scratch, rows_count * sizeof *waits);
    if (!chunk || !waits) {
        return IVM_OUT_OF_MEMORY;
    }
    for (const ivm__hops *hops = table->hops; hops; hops = hops->next_of_table) {
        for (uint32_t h = 0; h < hops->count; h++) {
            const ivm_fact *fact = hops->hop[h].fact;
            if (hops->hop[h].from == IVM__HOP_ROW &&
                !ivm__hop_chunk_read(scratch, table, rows, fact->child_columns, fact->columns_count, chunk)) {
                return IVM_OUT_OF_MEMORY;
            }
        }
    }
    IVM_TRY(ivm__rows_wait(step, table, chunk, waits));
    for (uint32_t i = 0; i < rows_count; i++) {
        if (!waits[i]) {
            IVM_TRY(ivm__store_touch(&table->store, rows[i]));
            ivm__store_weight_set(&table->store, rows[i], 0);
        }
    }
    return IVM_OK;
}

/* From parents of a hop, given with their keys, back to the rows of the table that may have waited for them. */
static ivm_status climb(ivm__step *step, const ivm__hops *hops, uint32_t hop, const ivm__chunk *parents)
{
    const ivm_fact *fact = hops->hop[hop].fact;
    ivm_table *child = ivm__hop_child(hops, hop);
    ivm__arena *scratch = step->scratch;
    uint32_t from = hops->hop[hop].from;
    ivm__index *index;
    ivm__keys keys;
    uint32_t *at = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *at);
    ivm__row_id *rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *rows);
    if (!at || !rows) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__step_index(step, &child->store, fact->child_columns, fact->columns_count, false, &index));
    IVM_TRY(ivm__index_keys(index, scratch, parents, fact->parent_columns, true, &keys));
    for (ivm__probe probe = { 0 }; probe.key < keys.rows_count;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        uint32_t found = ivm__index_probe(index, &keys, &probe, IVM__CHUNK_ROWS, at, rows), count = 0;
        for (uint32_t i = 0; i < found; i++) {
            rows[count] = rows[i];
            count += ivm__store_weight(&child->store, rows[i], IVM__READ_CUR) != 0;
        }
        if (count && from == IVM__HOP_ROW) {
            IVM_TRY(rows_check(step, child, rows, count));
        } else if (count) {
            const ivm_fact *next = hops->hop[from].fact;
            ivm__chunk *chunk = ivm__hop_chunk(scratch, child, count);
            if (!chunk || !ivm__hop_chunk_read(scratch, child, rows, next->parent_columns, next->columns_count, chunk)) {
                return IVM_OUT_OF_MEMORY;
            }
            IVM_TRY(climb(step, hops, from, chunk));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* All rows of the store. */
static ivm_status store_check(ivm__step *step, ivm_table *table)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    for (uint32_t next = 0, count; (count = ivm__store_scan(&table->store, IVM__READ_CUR, &next, IVM__CHUNK_ROWS, rows, weights)) > 0;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(rows_check(step, table, rows, count));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status waiting_add(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, ivm__zset *waiting)
{
    uint32_t rows[IVM__CHUNK_ROWS], count;
    IVM_TRY(waiting_choose(step, table, chunk, true, rows, &count));
    const ivm__chunk *chosen = count ? ivm__chunk_gather(step->scratch, chunk, rows, count) : NULL;
    return !count ? IVM_OK : chosen ? ivm__zset_add(waiting, step->scratch, chosen, NULL, 1) : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__transient_waiting(ivm__step *step, const ivm_table *table, ivm__zset *waiting)
{
    IVM_TRY(ivm__zset_init(waiting, step->memory, step->texts, step->seed, table->store.layout));
    for (uint32_t next = 0;;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk = NULL;
        ivm_status status = ivm__step_poll(step);
        if (status == IVM_OK) {
            status = ivm__store_chunk(&table->store, step->scratch, IVM__READ_CUR, &next, &chunk);
        }
        bool more = status == IVM_OK && chunk;
        if (more) {
            status = waiting_add(step, table, chunk, waiting);
        }
        ivm__arena_back(step->scratch, mark);
        if (status != IVM_OK) {
            ivm__store_undo(&waiting->store);
            ivm__zset_deinit(waiting);
            return status;
        }
        if (!more) {
            ivm__store_commit(&waiting->store);
            return IVM_OK;
        }
    }
}

/* Those for whom a parent came. All that changes of a parent is that rows come. */
static ivm_status fresh_check(ivm__step *step, const ivm__hops *hops)
{
    for (uint32_t h = 0; h < hops->count; h++) {
        const ivm_fact *fact = hops->hop[h].fact;
        const ivm__table_delta *delta = &fact->parent->delta;
        assert(delta->shape != IVM_MIXED);
        for (uint32_t c = 0; fact->trust == IVM_TRACKED && c < delta->chunks_count; c++) {
            ivm__arena_mark mark = ivm__arena_here(step->scratch);
            IVM_TRY(ivm__step_poll(step));
            IVM_TRY(climb(step, hops, h, delta->chunks[c]));
            ivm__arena_back(step->scratch, mark);
        }
    }
    return IVM_OK;
}

/* ---- The step ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status table_step(ivm__step *step, ivm_table *table)
{
    ivm__table_list(table);
    IVM_TRY(delta_keep(step, table));
    if (!ivm__touched_weights_fit(&table->store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "table %s: the weight of a row that waits is out of range", table->name);
    }
    if (table->stale && table->store.rows_live) {
        return store_check(step, table);
    }
    for (const ivm__hops *hops = table->hops; hops && table->store.rows_live; hops = hops->next_of_table) {
        IVM_TRY(fresh_check(step, hops));
    }
    return IVM_OK;
}

ivm_status ivm__transient_step(ivm__step *step)
{
    for (ivm_table *table = step->engine->waits_count ? step->engine->tables : NULL; table; table = table->next) {
        if (table->hops) {
            ivm__arena_mark mark = ivm__arena_here(step->scratch);
            ivm_status status = table_step(step, table);
            ivm__arena_back(step->scratch, mark);
            IVM_TRY(status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status);
        }
    }
    return IVM_OK;
}
