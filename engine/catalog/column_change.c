/* A table's columns changed: see column_change.h. Views were compiled for the heading that the table had then: it says where each of their columns is now.
 * A column that goes is none that they read; rows that become equal by it stay apart in a bag and add up elsewhere. */
#include "column_change.h"

#include "pending.h"
#include "track.h"
#include "weights.h"

/* ---- Rows that may become equal ------------------------------------------------------------------------------------------------------ */

/* Adds all rows of `old`, laid out anew. overflow where equal ones weigh too much together. */
static ivm_status rows_merge(const ivm__column_change *it, const ivm__store *old, ivm__store *store, ivm__index *whole)
{
    for (uint32_t next = 0;;) {
        ivm__arena_mark mark = ivm__arena_here(it->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_chunk(old, it->scratch, IVM__READ_CUR, &next, &chunk));
        if (!chunk) {
            break;
        }
        chunk = ivm__chunk_rewrite(it->scratch, chunk, it->layout, it->from);
        if (!chunk) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(ivm__store_add(store, whole, it->scratch, chunk, NULL, 1));
        ivm__arena_back(it->scratch, mark);
    }
    if (!ivm__touched_weights_fit(store)) {
        return IVM_OVERFLOW;
    }
    ivm__store_commit(store);
    ivm__store_commit(store); /* what came to nothing is gone for good */
    return IVM_OK;
}

static ivm_status zset_merge(const ivm__column_change *it, const ivm__store *old, ivm__zset *made)
{
    IVM_TRY(ivm__zset_init(made, old->memory, old->texts, old->seed, it->layout));
    ivm_status status = rows_merge(it, old, &made->store, made->whole);
    if (status != IVM_OK) {
        ivm__zset_deinit(made);
    }
    return status;
}

/* ---- The table's rows ---------------------------------------------------------------------------------------------------------------- */

static ivm_status whole_make(ivm__column_change *it)
{
    uint32_t *columns = ivm__arena_allocate(it->scratch, it->columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < it->columns_count; c++) {
        columns[c] = c;
    }
    bool unique = it->table->allow_negative || it->table->transient;
    return ivm__store_index(&it->store, columns, it->columns_count, unique, &it->whole);
}

/* Equal rows of a bag stand apart, but what they weigh together must fit. */
static ivm_status bag_check(const ivm__column_change *it)
{
    const ivm__store *store = &it->table->store;
    ivm__weight most;
    ivm__zset merged;
    if (!__builtin_mul_overflow((ivm__weight)store->rows_live, store->weight_max, &most) && ivm__weight_fits(most)) {
        return IVM_OK;
    }
    IVM_TRY(zset_merge(it, store, &merged));
    ivm__zset_deinit(&merged);
    return IVM_OK;
}

static ivm_status store_make(ivm__column_change *it)
{
    ivm_table *table = it->table;
    bool drops = it->columns_count < table->columns_count;
    if (drops && (table->allow_negative || table->transient)) {
        ivm__zset merged;
        assert(table->readers_count == 0 || !table->allow_negative);
        IVM_TRY(zset_merge(it, &table->store, &merged));
        ivm__store_replace(&it->store, &merged.store);
        it->whole = merged.whole;
        return IVM_OK;
    }
    if (drops && !table->key_count) {
        IVM_TRY(bag_check(it));
    }
    IVM_TRY(ivm__store_rewrite(&table->store, table->whole, it->layout, it->from, it->scratch, &it->store));
    return table->whole ? whole_make(it) : IVM_OK;
}

/* ---- What is pending -------------------------------------------------------------------------------------------------------------------- */

/* The next that is apart, of any view, after *at (NULL at first). NULL at the end. */
static ivm__pending *pending_next(const ivm_table *table, const ivm__pending *after)
{
    bool passed = after == NULL;
    for (ivm_view *view = table->engine->views; view; view = view->next) {
        for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
            ivm__pending *it = &view->pending[i];
            if (passed && it->apart && it->source.table == table) {
                return it;
            }
            passed |= it == after;
        }
    }
    return NULL;
}

static ivm_status pending_make(ivm__column_change *it)
{
    uint32_t count = 0;
    for (const ivm__pending *pending = NULL; (pending = pending_next(it->table, pending));) {
        count++;
    }
    it->pending = ivm__arena_allocate(it->scratch, count * sizeof *it->pending);
    if (!it->pending) {
        return IVM_OUT_OF_MEMORY;
    }
    for (const ivm__pending *pending = NULL; (pending = pending_next(it->table, pending));) {
        IVM_TRY(zset_merge(it, &pending->rows.store, &it->pending[it->pending_count]));
        it->pending_count++;
    }
    return IVM_OK;
}

/* ---- Facts --------------------------------------------------------------------------------------------------------------------------------- */

/* Numbers without the column. */
static void column_close(uint32_t *columns, uint32_t count, uint32_t dropped)
{
    for (uint32_t i = 0; i < count; i++) {
        if (columns[i] != UINT32_MAX) {
            columns[i] = columns[i] == dropped ? UINT32_MAX : columns[i] - (columns[i] > dropped);
        }
    }
}

/* The next fact after `after` (NULL: the first) that counts rows of the table and stays. */
static ivm_fact *counting_next(const ivm_table *table, uint32_t dropped, const ivm_fact *after)
{
    ivm_fact *fact = after ? after->next_of_child : table->facts;
    while (fact && !(fact->track && !ivm__fact_names(fact, table, dropped))) {
        fact = fact->next_of_child;
    }
    return fact;
}

/* Where rows merge, how many of them hold a key has changed, and their ids have. */
static ivm_status tracks_make(ivm__column_change *it)
{
    ivm_table *table = it->table;
    uint32_t count = 0;
    for (const ivm_fact *fact = NULL; (fact = counting_next(table, it->dropped, fact));) {
        count++;
    }
    it->tracks = ivm__arena_allocate(it->scratch, count * sizeof *it->tracks);
    if (!it->tracks) {
        return IVM_OUT_OF_MEMORY;
    }
    for (const ivm_fact *fact = NULL; (fact = counting_next(table, it->dropped, fact));) {
        uint32_t *columns = ivm__arena_allocate(it->scratch, fact->columns_count * sizeof *columns);
        if (!columns) {
            return IVM_OUT_OF_MEMORY;
        }
        ivm__fact_child_columns(fact, columns);
        column_close(columns, fact->columns_count, it->dropped);
        IVM_TRY(ivm__track_remake(fact, &it->store, columns, NULL, &it->tracks[it->tracks_count]));
        it->tracks_count++;
    }
    return IVM_OK;
}

/* ---- Making ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status columns_make(ivm__column_change *it, const ivm__column *added)
{
    const ivm_table *table = it->table;
    it->columns = ivm__allocate(&table->engine->memory, it->columns_count * sizeof *it->columns);
    it->from = ivm__arena_allocate(it->scratch, it->columns_count * sizeof *it->from);
    if (!it->columns || !it->from) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count = 0;
    for (uint32_t c = 0; c < table->columns_count; c++) {
        if (c != it->dropped) {
            it->from[count] = c;
            it->columns[count++] = table->columns[c];
        }
    }
    if (added) {
        it->from[count] = IVM__COLUMN_NEW;
        it->columns[count++] = *added;
    }
    assert(count == it->columns_count);
    return IVM_OK;
}

static ivm_status parts_make(ivm__column_change *it, const ivm__column *added)
{
    ivm__memory *memory = &it->table->engine->memory;
    IVM_TRY(columns_make(it, added));
    it->heading = ivm__heading_make(memory, it->columns, it->columns_count);
    if (!it->heading) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__table_layout(memory, it->columns, it->heading, it->table->key_count == 0, &it->layout));
    IVM_TRY(store_make(it));
    if (it->table->allow_negative && !added) {
        IVM_TRY(tracks_make(it));
    }
    return pending_make(it);
}

void ivm__column_change_free(ivm__column_change *it)
{
    ivm__memory *memory = &it->table->engine->memory;
    for (uint32_t i = 0; i < it->pending_count; i++) {
        ivm__zset_deinit(&it->pending[i]);
    }
    for (uint32_t i = 0; i < it->tracks_count; i++) {
        ivm__track_discard(it->table->engine, it->tracks[i]);
    }
    ivm__store_deinit(&it->store);
    ivm__heading_free(memory, it->heading);
    ivm__release(memory, it->columns, it->columns_count * sizeof *it->columns);
    ivm__layout_release(it->layout);
}

ivm_status ivm__column_change_make(ivm__column_change *it, ivm_table *table, uint32_t dropped, const ivm__column *added, ivm_error *error)
{
    assert((dropped == IVM__COLUMN_NEW) == (added != NULL));
    uint32_t columns_count = added ? table->columns_count + 1 : table->columns_count - 1;
    *it = (ivm__column_change){ .table = table, .dropped = dropped, .scratch = &table->engine->scratch, .columns_count = columns_count };
    ivm_status status = parts_make(it, added);
    if (status == IVM_OK) {
        return IVM_OK;
    }
    ivm__column_change_free(it);
    if (status == IVM_OVERFLOW) {
        return ivm__fail(error, status, "table %s: rows that become equal weigh too much", table->name);
    }
    return ivm__fail_memory(error);
}

/* ---- Publishing -------------------------------------------------------------------------------------------------------------------------- */

static void used_close(const ivm_table *table, uint32_t dropped)
{
    for (ivm_view *view = table->engine->views; view; view = view->next) {
        for (uint32_t i = 0; view->used && i < view->tables_count; i++) {
            ivm__used *used = &view->used[i];
            if (view->tables[i] == table && dropped < used->columns_count) {
                used->columns_count--;
                memmove(used->columns + dropped, used->columns + dropped + 1, (used->columns_count - dropped) * sizeof(bool));
            }
        }
    }
}

/* Closes the gap that a column leaves wherever columns of the table are numbered. */
static void numbers_close(ivm_table *table, uint32_t dropped)
{
    for (ivm__heading *heading = table->heading; heading; heading = heading->older) {
        column_close(heading->columns, heading->columns_count, dropped);
    }
    column_close(table->key, table->key_count, dropped);
    column_close(&table->partition, table->partitioned, dropped);
    for (ivm_fact *fact = table->facts; fact; fact = fact->next_of_child) {
        column_close(fact->child_columns, fact->columns_count, dropped);
    }
    for (ivm_fact *fact = table->facts_to; fact; fact = fact->next_of_parent) {
        column_close(fact->parent_columns, fact->columns_count, dropped);
    }
    used_close(table, dropped);
}

/* The facts that name the column are gone already, so that those that stay are found in the same order. */
static void tracks_publish(ivm__column_change *it)
{
    ivm_fact *fact = NULL;
    for (uint32_t i = 0; i < it->tracks_count; i++) {
        fact = counting_next(it->table, UINT32_MAX, fact);
        ivm__track_replace(fact, it->tracks[i]);
    }
}

static void heading_publish(ivm_table *table, ivm__heading *heading)
{
    heading->older = table->heading;
    if (table->readers_count == 0) {
        for (ivm__heading *old = heading->older, *older; old; old = older) {
            older = old->older;
            ivm__heading_free(&table->engine->memory, old);
        }
        heading->older = NULL;
    }
    table->heading = heading;
    table->types = heading->types;
}

void ivm__column_change_publish(ivm__column_change *it)
{
    ivm_table *table = it->table;
    uint32_t done = 0;
    if (it->dropped != IVM__COLUMN_NEW) {
        numbers_close(table, it->dropped);
    }
    for (ivm__pending *pending = NULL; (pending = pending_next(table, pending)); done++) {
        ivm__store_replace(&pending->rows.store, &it->pending[done].store);
        pending->rows.whole = it->pending[done].whole;
    }
    assert(done == it->pending_count);
    tracks_publish(it);
    heading_publish(table, it->heading);
    ivm__store_replace(&table->store, &it->store);
    table->whole = it->whole;
    table->key_index = table->key_count ? ivm__store_index_find(&table->store, table->key, table->key_count) : NULL;
    assert(!table->key_index == !table->key_count);
    ivm__release(&table->engine->memory, table->columns, table->columns_count * sizeof *table->columns);
    table->columns = it->columns;
    table->columns_count = it->columns_count;
    table->columns_version++;
    ivm__layout_release(it->layout);
}
