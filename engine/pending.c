/* Pending deltas: collected, laid over, cleared. See pending.h.
 *
 *     pending' = pending + delta(source)            laid over a source:  before = now - pending
 *
 * A source is in a step when it is collected from; what the step did to it is read from its store. */
#include "pending.h"

#include "weights.h"

static void clear(ivm__pending *it)
{
    assert(!it->collecting);
    ivm__zset_deinit(&it->rows);
    it->apart = false;
    it->first = ivm__source_store(it->source)->rows_end;
}

ivm_status ivm__pendings_make(ivm_view *view)
{
    uint32_t count = view->tables_count + view->views_count;
    assert(view->refresh == IVM_DEFERRED && !view->pending);
    view->pending = ivm__allocate_zeroed(&view->engine->memory, count * sizeof *view->pending);
    if (!view->pending) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool table = i < view->tables_count;
        view->pending[i].source =
            table ? (ivm__source){ .table = view->tables[i] } : (ivm__source){ .view = view->views[i - view->tables_count] };
        clear(&view->pending[i]);
    }
    return IVM_OK;
}

/* ---- Collecting ------------------------------------------------------------------------------------------------------------------- */

/* Whether all the step has changed are rows from this id on: come in it or since. */
static bool changed_from(const ivm__store *store, ivm__row_id first)
{
    bool all = true;
    for (uint32_t i = 0; all && i < store->touched_count; i++) {
        all = store->touched[i].row >= first;
    }
    return all;
}

/* The rows that had come since when the step began. */
static ivm_status add_come(ivm__pending *it, ivm__step *step)
{
    const ivm__store *store = ivm__source_store(it->source);
    for (uint32_t next = it->first;;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_chunk(store, step->scratch, IVM__READ_OLD, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(ivm__zset_add(&it->rows, step->scratch, chunk, NULL, 1));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status add_delta(ivm__pending *it, ivm__step *step)
{
    for (ivm__delta_walk walk = { 0 };;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__source_delta_next(step, it->source, &walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(ivm__zset_add(&it->rows, step->scratch, chunk, NULL, 1));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status collect(ivm__pending *it, ivm__step *step)
{
    const ivm__store *store = ivm__source_store(it->source);
    bool changed = store->touched_count > 0 || store->rows_end > store->step_end;
    if (!changed || (!it->apart && changed_from(store, it->first))) {
        return IVM_OK;
    }
    it->collecting = true;
    it->apart_before = it->apart;
    if (!it->apart) {
        IVM_TRY(ivm__zset_init(&it->rows, step->memory, step->texts, step->seed, store->layout));
        it->apart = true;
        IVM_TRY(add_come(it, step));
    }
    return add_delta(it, step);
}

ivm_status ivm__pendings_collect(ivm_view *view, ivm__step *step)
{
    assert(view->refresh == IVM_DEFERRED && view->pending && !step->initial && !step->refreshing);
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__pending *it = &view->pending[i];
        IVM_TRY(ivm__step_status(step, collect(it, step)));
        if (it->collecting && !ivm__touched_weights_fit(&it->rows.store)) {
            return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a pending row is out of range", view->name);
        }
    }
    return IVM_OK;
}

/* ---- Ends of the step ------------------------------------------------------------------------------------------------------------- */

/* The step's sources may be committed before or after this. */
void ivm__pendings_commit(ivm_view *view)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__pending *it = &view->pending[i];
        if (!it->collecting) {
            continue;
        }
        it->collecting = false;
        ivm__store_commit(&it->rows.store);
        if (it->rows.store.rows_live == 0) {
            clear(it);
        }
    }
}

void ivm__pendings_undo(ivm_view *view)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__pending *it = &view->pending[i];
        if (!it->collecting) {
            continue;
        }
        it->collecting = false;
        it->apart = it->apart_before;
        if (it->apart) {
            ivm__store_undo(&it->rows.store);
        } else {
            ivm__zset_deinit(&it->rows);
        }
    }
}

/* ---- Refreshing ------------------------------------------------------------------------------------------------------------------- */

/* An index of the source's store in which equal rows have one key. A table whose rows changed has one; of a view's rows there may be none. */
static ivm_status index_of(ivm__source source, ivm__arena *scratch, ivm__index **index)
{
    ivm__store *store = ivm__source_store(source);
    *index = source.table ? (source.table->key_index ? source.table->key_index : source.table->whole) : NULL;
    if (*index) {
        return IVM_OK;
    }
    uint32_t columns_count = store->layout->columns_count;
    ivm__arena_mark mark = ivm__arena_here(scratch);
    uint32_t *columns = ivm__arena_allocate(scratch, columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status = ivm__store_index(store, columns, columns_count, source.view != NULL, index);
    ivm__arena_back(scratch, mark);
    return status;
}

static ivm_status lay(const ivm__pending *it, ivm__step *step)
{
    ivm__store *store = ivm__source_store(it->source);
    ivm__index *index;
    if (!it->apart) {
        ivm__store_lay_from(store, it->first);
        return IVM_OK;
    }
    IVM_TRY(index_of(it->source, step->scratch, &index));
    return ivm__store_lay_delta(store, index, &it->rows.store, step->scratch);
}

ivm_status ivm__pendings_lay(ivm_view *view, ivm__step *step)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        if (lay(&view->pending[i], step) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    return IVM_OK;
}

void ivm__pendings_lift(ivm_view *view)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__store_lift(ivm__source_store(view->pending[i].source));
    }
}

void ivm__pendings_clear(ivm_view *view)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        clear(&view->pending[i]);
    }
}

void ivm__pendings_replace(ivm_view *view, ivm__zset *rows)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__pending *it = &view->pending[i];
        clear(it);
        if (rows[i].store.rows_live > 0) {
            ivm__zset_move(&it->rows, &rows[i]);
            it->apart = true;
        }
        ivm__zset_deinit(&rows[i]);
    }
}

void ivm__pendings_free(ivm_view *view)
{
    uint32_t count = ivm__pendings_count(view);
    for (uint32_t i = 0; i < count; i++) {
        ivm__zset_deinit(&view->pending[i].rows);
    }
    ivm__release(&view->engine->memory, view->pending, count * sizeof *view->pending);
    view->pending = NULL;
}
