/* Columns that are renamed, come and go.
 *
 *     rows laid out anew, what is pending for deferred views too, a heading for views made from now on        then   published
 *
 * Views were compiled for the heading that the table had then: it says where each of their columns is now. A column that goes is none that
 * they read; rows that become equal by it stay apart in a bag and add up elsewhere. Until the first line of change_publish() nothing has changed,
 * so that a failure frees what was made and is done. Cost: a load and a store a cell of the table, a lookup a row and index. */
#include "journal.h"
#include "pending.h"
#include "track.h"
#include "transient.h"
#include "weights.h"

typedef struct change {
    ivm_table *table;
    ivm__arena *scratch;
    uint32_t columns_count; /* after it */
    uint32_t *from;         /* of each: what it was, or IVM__COLUMN_NEW */
    ivm__column *columns;   /* names are those of the present columns */
    ivm__heading *heading;
    ivm__layout *layout;
    ivm__store store;
    ivm__index *whole;
    ivm__zset *pending; /* what is pending, in the order in which pending_next() finds it */
    uint32_t pending_count;
    struct ivm__track **tracks; /* of the facts whose rows merge, in the order in which merged_next() finds them */
    uint32_t tracks_count;
} change;

/* ---- Rows that may become equal ------------------------------------------------------------------------------------------------------ */

/* Adds all rows of `old`, laid out anew. overflow where equal ones weigh too much together. */
static ivm_status rows_merge(const change *it, const ivm__store *old, ivm__store *store, ivm__index *whole)
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

static ivm_status zset_merge(const change *it, const ivm__store *old, ivm__zset *made)
{
    IVM_TRY(ivm__zset_init(made, old->memory, old->texts, old->seed, it->layout));
    ivm_status status = rows_merge(it, old, &made->store, made->whole);
    if (status != IVM_OK) {
        ivm__zset_deinit(made);
    }
    return status;
}

/* ---- The table's rows ---------------------------------------------------------------------------------------------------------------- */

static ivm_status whole_make(change *it)
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
static ivm_status bag_check(const change *it)
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

static ivm_status store_make(change *it)
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

static ivm_status pending_make(change *it)
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

static bool is_among(const uint32_t *columns, uint32_t count, uint32_t column)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        found |= columns[i] == column;
    }
    return found;
}

/* Numbers without the column. */
static void column_close(uint32_t *columns, uint32_t count, uint32_t dropped)
{
    for (uint32_t i = 0; i < count; i++) {
        if (columns[i] != UINT32_MAX) {
            columns[i] = columns[i] == dropped ? UINT32_MAX : columns[i] - (columns[i] > dropped);
        }
    }
}

/* Whether the fact goes with the column. The parent's are columns of its key, which none may drop. */
static bool fact_names(const ivm_fact *fact, const ivm_table *table, uint32_t column)
{
    return fact->child == table && is_among(fact->child_columns, fact->columns_count, column);
}

static void facts_drop(const ivm_table *table, uint32_t dropped)
{
    for (ivm_fact *fact = table->engine->facts, *next; fact; fact = next) {
        next = fact->next;
        if (fact_names(fact, table, dropped)) {
            ivm__fact_drop(fact);
        }
    }
}

/* The next fact after `after` (NULL: the first) that counts rows of the table and stays. */
static ivm_fact *counting_next(const ivm_table *table, uint32_t dropped, const ivm_fact *after)
{
    ivm_fact *fact = after ? after->next : table->engine->facts;
    while (fact && !(fact->child == table && fact->track && !fact_names(fact, table, dropped))) {
        fact = fact->next;
    }
    return fact;
}

/* Where rows merge, how many of them hold a key has changed, and their ids have. */
static ivm_status tracks_make(change *it, uint32_t dropped)
{
    ivm_table *table = it->table;
    uint32_t count = 0;
    for (const ivm_fact *fact = NULL; (fact = counting_next(table, dropped, fact));) {
        count++;
    }
    it->tracks = ivm__arena_allocate(it->scratch, count * sizeof *it->tracks);
    if (!it->tracks) {
        return IVM_OUT_OF_MEMORY;
    }
    for (const ivm_fact *fact = NULL; (fact = counting_next(table, dropped, fact));) {
        uint32_t *columns = ivm__arena_allocate(it->scratch, fact->columns_count * sizeof *columns);
        if (!columns) {
            return IVM_OUT_OF_MEMORY;
        }
        ivm__fact_child_columns(fact, columns);
        column_close(columns, fact->columns_count, dropped);
        IVM_TRY(ivm__track_remake(fact, &it->store, columns, NULL, &it->tracks[it->tracks_count]));
        it->tracks_count++;
    }
    return IVM_OK;
}

/* ---- Making ------------------------------------------------------------------------------------------------------------------------------ */

/* `dropped`: a column, or IVM__COLUMN_NEW where one is added, which is `added`. */
static ivm_status columns_make(change *it, uint32_t dropped, const ivm__column *added)
{
    const ivm_table *table = it->table;
    it->columns = ivm__allocate(&table->engine->memory, it->columns_count * sizeof *it->columns);
    it->from = ivm__arena_allocate(it->scratch, it->columns_count * sizeof *it->from);
    if (!it->columns || !it->from) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count = 0;
    for (uint32_t c = 0; c < table->columns_count; c++) {
        if (c != dropped) {
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

static ivm_status change_make(change *it, uint32_t dropped, const ivm__column *added)
{
    ivm__memory *memory = &it->table->engine->memory;
    IVM_TRY(columns_make(it, dropped, added));
    it->heading = ivm__heading_make(memory, it->columns, it->columns_count);
    if (!it->heading) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__table_layout(memory, it->columns, it->heading, it->table->key_count == 0, &it->layout));
    IVM_TRY(store_make(it));
    if (it->table->allow_negative && !added) {
        IVM_TRY(tracks_make(it, dropped));
    }
    return pending_make(it);
}

static void change_free(change *it)
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
    for (ivm_fact *fact = table->engine->facts; fact; fact = fact->next) {
        if (fact->child == table) {
            column_close(fact->child_columns, fact->columns_count, dropped);
        }
        if (fact->parent == table) {
            column_close(fact->parent_columns, fact->columns_count, dropped);
        }
    }
    used_close(table, dropped);
}

/* The facts that name the column are gone already, so that those that stay are found in the same order. */
static void tracks_publish(change *it)
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

static void change_publish(change *it)
{
    ivm_table *table = it->table;
    uint32_t done = 0;
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

/* What making a change failed with, told. */
static ivm_status change_status(const ivm_table *table, ivm_status status, ivm_error *error)
{
    if (status == IVM_OVERFLOW) {
        return ivm__fail(error, status, "table %s: rows that become equal weigh too much", table->name);
    }
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

/* ---- Renaming ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status name_check(const ivm_table *table, const ivm_column_definition *column, ivm_error *error)
{
    uint32_t found;
    IVM_TRY(ivm__column_check(column, error));
    if (ivm__table_column(table, column->name, strlen(column->name), &found, NULL) == IVM_OK) {
        return ivm__fail(error, IVM_ALREADY_EXISTS, "table %s has a column %s already", table->name, column->name);
    }
    return IVM_OK;
}

static ivm_status rename_column(ivm_table *table, const char *column, const char *name, ivm_error *error)
{
    uint32_t at;
    IVM_TRY(ivm__table_column(table, column, strlen(column), &at, error));
    ivm_column_definition renamed = { name, table->types[at], false };
    IVM_TRY(name_check(table, &renamed, error));
    ivm__memory *memory = &table->engine->memory;
    char *copy = ivm__text_copy(memory, name, strlen(name));
    if (!copy) {
        return ivm__fail_memory(error);
    }
    ivm_status status = ivm__journal_column(table, column, name, error);
    if (status == IVM_OK) {
        char *former = table->columns[at].name;
        table->columns[at].name = copy;
        copy = former;
    }
    ivm__release(memory, copy, strlen(copy) + 1);
    return status;
}

ivm_status ivm_table_column_rename(ivm_table *table, const char *column, const char *name, ivm_error *error)
{
    if (!table || !column || !name) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_table_column_rename: a table, a column and a name are wanted");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = rename_column(table, column, name, error);
    ivm__engine_leave(table->engine);
    return status;
}

/* ---- Adding ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status add_column(ivm_table *table, const ivm_column_definition *definition, ivm_error *error)
{
    ivm_engine *engine = table->engine;
    IVM_TRY(name_check(table, definition, error));
    if (definition->not_null) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: column %s is null in the rows that are there", table->name,
                         definition->name);
    }
    if (table->columns_count == IVM_TABLE_COLUMNS_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s has %d columns already", table->name, IVM_TABLE_COLUMNS_MAX);
    }
    ivm__column added = { ivm__text_copy(&engine->memory, definition->name, strlen(definition->name)), definition->type, true };
    if (!added.name) {
        return ivm__fail_memory(error);
    }
    change it = { .table = table, .scratch = &engine->scratch, .columns_count = table->columns_count + 1 };
    ivm_status status = change_status(table, change_make(&it, IVM__COLUMN_NEW, &added), error);
    if (status == IVM_OK) {
        status = ivm__journal_column_add(table, &added, error);
    }
    if (status != IVM_OK) {
        change_free(&it);
        ivm__release(&engine->memory, added.name, strlen(added.name) + 1);
        return status;
    }
    change_publish(&it);
    return IVM_OK;
}

ivm_status ivm_table_column_add(ivm_table *table, const ivm_column_definition *column, ivm_error *error)
{
    if (!table || !column) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_table_column_add: a table and a column are wanted");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = add_column(table, column, error);
    ivm__engine_settle(table->engine);
    ivm__engine_leave(table->engine);
    return status;
}

/* ---- Dropping ---------------------------------------------------------------------------------------------------------------------------- */

/* A view that reads the column, or NULL. */
static const ivm_view *reader_of(const ivm_table *table, uint32_t column)
{
    for (const ivm_view *view = table->engine->views; view; view = view->next) {
        for (uint32_t i = 0; i < view->tables_count; i++) {
            const ivm__used *used = view->used ? &view->used[i] : NULL;
            bool reads = !used || table->allow_negative || (column < used->columns_count && used->columns[column]);
            if (view->tables[i] == table && reads) {
                return view;
            }
        }
    }
    return NULL;
}

static ivm_status drop_check(const ivm_table *table, uint32_t column, ivm_error *error)
{
    const char *name = table->columns[column].name;
    const ivm_view *view = reader_of(table, column);
    if (view) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is read by view %s", table->name, name, view->name);
    }
    if (is_among(table->key, table->key_count, column)) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is one of the key", table->name, name);
    }
    if (table->partitioned && table->partition == column) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is the partition of its rows", table->name, name);
    }
    for (const ivm_fact *fact = table->engine->facts; fact; fact = fact->next) {
        assert(fact->parent != table || !is_among(fact->parent_columns, fact->columns_count, column));
        if (fact_names(fact, table, column) && fact->pins) {
            return ivm__fail(error, IVM_IN_USE, "table %s: a foreign key names column %s, and view %s rests on it", table->name, name,
                             ivm__hops_view(fact)->name);
        }
    }
    if (table->columns_count == 1) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: column %s is its only one", table->name, name);
    }
    return IVM_OK;
}

static ivm_status drop_column(ivm_table *table, const char *column, ivm_error *error)
{
    uint32_t dropped;
    IVM_TRY(ivm__table_column(table, column, strlen(column), &dropped, error));
    IVM_TRY(drop_check(table, dropped, error));
    change it = { .table = table, .scratch = &table->engine->scratch, .columns_count = table->columns_count - 1 };
    ivm_status status = change_status(table, change_make(&it, dropped, NULL), error);
    if (status == IVM_OK) {
        status = ivm__journal_column(table, column, NULL, error);
    }
    if (status != IVM_OK) {
        change_free(&it);
        return status;
    }
    char *name = table->columns[dropped].name;
    facts_drop(table, dropped);
    numbers_close(table, dropped);
    change_publish(&it);
    if (table->transient && !table->hops) {
        ivm__store_clear(&table->store); /* what waited by the facts that went waits no more */
    }
    ivm__release(&table->engine->memory, name, strlen(name) + 1);
    return IVM_OK;
}

ivm_status ivm_table_column_drop(ivm_table *table, const char *column, ivm_error *error)
{
    if (!table || !column) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_table_column_drop: a table and a column are wanted");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = drop_column(table, column, error);
    ivm__engine_settle(table->engine);
    ivm__engine_leave(table->engine);
    return status;
}
