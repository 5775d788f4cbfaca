/* Pending deltas: collected, laid over, cleared. See pending.h.
 *
 *     pending' = pending + delta(source)            laid over a source:  before = now - pending
 *
 * A source is in a step when it is collected from; what the step did to it is read from its store. */
#include "pending.h"

#include "index_inside.h"
#include "row_order.h"
#include "weights.h"

static void clear(ivm__pending *it)
{
    assert(!it->collecting);
    ivm__zset_deinit(&it->rows);
    it->apart = false;
    it->first = ivm__source_store(it->source)->rows_end;
}

ivm_status ivm__pendings_beside(const ivm_view *view, ivm__pending **made)
{
    uint32_t count = view->tables_count + view->views_count;
    ivm__pending *list = *made = ivm__allocate_zeroed(&view->engine->memory, count * sizeof *list);
    for (uint32_t i = 0; list && i < count; i++) {
        bool table = i < view->tables_count;
        list[i].source = table ? (ivm__source){ .table = view->tables[i] } : (ivm__source){ .view = view->views[i - view->tables_count] };
        list[i].first = IVM__ROW_NONE;
    }
    return list ? IVM_OK : IVM_OUT_OF_MEMORY;
}

void ivm__pendings_discard(const ivm_view *view, ivm__pending *made)
{
    uint32_t count = view->tables_count + view->views_count;
    for (uint32_t i = 0; made && i < count; i++) {
        ivm__zset_deinit(&made[i].rows);
    }
    ivm__release(&view->engine->memory, made, count * sizeof *made);
}

void ivm__pendings_place(ivm_view *view)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        ivm__pending *it = &view->pending[i];
        it->first = it->first == IVM__ROW_NONE ? ivm__source_store(it->source)->rows_end : it->first;
    }
}

ivm_status ivm__pendings_make(ivm_view *view)
{
    assert(view->refresh == IVM_DEFERRED && !view->pending);
    IVM_TRY(ivm__pendings_beside(view, &view->pending));
    ivm__pendings_place(view);
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
static ivm_status index_of(ivm__source source, ivm__step *step, ivm__index **index)
{
    ivm__store *store = ivm__source_store(source);
    *index = source.table ? (source.table->key_index ? source.table->key_index : source.table->whole) : NULL;
    if (*index) {
        return IVM_OK;
    }
    uint32_t columns_count = store->layout->columns_count;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    uint32_t *columns = ivm__arena_allocate(step->scratch, columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status = ivm__step_index(step, store, columns, columns_count, source.view != NULL, index);
    ivm__arena_back(step->scratch, mark);
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
    IVM_TRY(index_of(it->source, step, &index));
    return ivm__store_lay_delta(store, index, &it->rows.store, step->scratch);
}

ivm_status ivm__pendings_lay(ivm_view *view, ivm__step *step)
{
    for (uint32_t i = 0; i < ivm__pendings_count(view); i++) {
        IVM_TRY(ivm__step_status(step, lay(&view->pending[i], step)));
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

void ivm__pendings_free(ivm_view *view)
{
    if (view->pending) {
        ivm__pendings_discard(view, view->pending);
        view->pending = NULL;
    }
}

/* ---- Read from elsewhere ------------------------------------------------------------------------------------------------------------- */

/* Whether no key of the table had two rows before. */
static ivm_status keys_check(const ivm__pending *it, ivm__step *step, ivm__row_id *wrong)
{
    const ivm_table *table = it->source.table;
    const ivm__index *index = table->key_index;
    ivm__row_pages delta = ivm__store_row_pages(&it->rows.store);
    ivm__row_order order;
    ivm__row_id rows[64];
    int64_t changes[64];
    uint32_t count = 1;
    uint64_t *words = ivm__arena_allocate(step->scratch, index->words_count * sizeof *words);
    ivm_status status =
        ivm__row_order_init(&order, step->memory, &delta, table->key, table->key_count, IVM__SORT_BYTES_DEFAULT); /* of a key as one */
    status = words ? status : IVM_OUT_OF_MEMORY;
    order.sorter.cancel = &step->cancel;
    while (status == IVM_OK && (status = ivm__row_order_next(&order, 64, rows, changes, &count)) == IVM_OK && count) {
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *row = ivm__row_pages_at(&delta, rows[i]);
            uint32_t next = 0;
            ivm__index_row_pack(index, row, words);
            bool now = ivm__index_find(index, words, ivm__index_row_hash(index, row), &next) != IVM__ROW_NONE;
            *wrong = now - changes[i] > 1 && *wrong == IVM__ROW_NONE ? rows[i] : *wrong;
        }
    }
    ivm__row_order_deinit(&order);
    return status == IVM_CANCELLED ? ivm__fail_cancelled(step->error) : status;
}

ivm_status ivm__pending_check(const ivm__pending *it, ivm__step *step, ivm__row_id *wrong)
{
    const ivm_table *table = it->source.table;
    const ivm__store *store = ivm__source_store(it->source), *delta = &it->rows.store;
    bool any_sign = !table || table->allow_negative; /* of a view too: where a promise was broken */
    ivm__index *index;
    *wrong = IVM__ROW_NONE;
    if (!it->apart || (any_sign && ivm__weight_fits(store->weight_max + delta->weight_max))) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = index_of(it->source, step, &index);
    if (status == IVM_OK) {
        ivm__weight most = table && table->key_count ? 1 : INT64_MAX;
        status = ivm__store_lay_check(store, index, delta, any_sign ? INT64_MIN : 0, most, step->scratch, wrong);
    }
    if (status == IVM_OK && table && table->key_count && *wrong == IVM__ROW_NONE) {
        status = keys_check(it, step, wrong);
    }
    ivm__arena_back(step->scratch, mark);
    return status;
}
