/* Snapshots: taken in time that does not grow with the rows, read without any lock. A snapshot holds a reference to a directory of pages that the
 * writer no longer changes, the layout, the heavy weights, and a place in the engine's list that keeps the texts alive that were there when it was
 * taken. While another thread has the engine's lock it is one of the state last committed (publish.h). The changes of a step are few: they are
 * copied. */
#include "snapshot.h"

#include "heavy.h"
#include "publish.h"
#include "store_inside.h"
#include "track.h"

uint64_t ivm__snapshot_epoch(const ivm_snapshot *snapshot)
{
    return snapshot->epoch;
}

const ivm_snapshot *ivm__snapshot_newer(const ivm_snapshot *snapshot)
{
    return snapshot->newer;
}

/* ---- Rows that are shared ---------------------------------------------------------------------------------------------------------------- */

void ivm__shared_take(const ivm__subject *subject, ivm__shared *shared)
{
    ivm__store *store = subject->store;
    if (!store->offer) {
        store->offer = ivm__offer_acquire(subject->offer);
    }
    ivm__finder_adopt(store);
    *shared = (ivm__shared){
        .rows = ivm__store_row_pages(store),
        .pages = ivm__pages_acquire(store),
        .heavies = ivm__heavies_acquire(store),
        .finder = ivm__finder_acquire(store->finder),
        .offer = ivm__offer_acquire(subject->offer),
    };
    ivm__layout_acquire(store->layout);
}

static ivm__layout *shared_layout(const ivm__shared *shared)
{
    return (ivm__layout *)(uintptr_t)shared->rows.layout;
}

void ivm__shared_copy(const ivm__shared *from, ivm__shared *shared)
{
    *shared = *from;
    ivm__layout_acquire(shared_layout(from));
    ivm__pages_hold(from->pages);
    ivm__heavies_hold(from->heavies);
    ivm__finder_acquire(from->finder);
    ivm__offer_acquire(from->offer);
}

void ivm__shared_release(ivm__shared *shared, ivm__memory *memory)
{
    ivm__pages_release(shared->pages, memory);
    ivm__heavies_release(shared->heavies, memory);
    ivm__finder_release(shared->finder, memory);
    ivm__offer_release(shared->offer, memory);
    ivm__layout_release(shared_layout(shared));
    *shared = (ivm__shared){ .pages = NULL };
}

/* ---- From first to last ------------------------------------------------------------------------------------------------------------------ */

static size_t snapshot_bytes(uint32_t key_count)
{
    return sizeof(ivm_snapshot) + key_count * sizeof(uint32_t);
}

ivm_snapshot *ivm__snapshot_make(ivm_engine *engine, const uint32_t *key, uint32_t key_count)
{
    ivm_snapshot *snapshot = ivm__allocate_zeroed(&engine->memory, snapshot_bytes(key_count));
    if (!snapshot) {
        return NULL;
    }
    snapshot->engine = engine;
    snapshot->memory = &engine->memory;
    snapshot->key_count = key_count;
    for (uint32_t i = 0; i < key_count; i++) {
        snapshot->key[i] = key ? key[i] : i;
    }
    return snapshot;
}

void ivm__snapshot_list(ivm_snapshot *snapshot, uint64_t epoch)
{
    ivm_engine *engine = snapshot->engine;
    assert(!engine->snapshots_newest || engine->snapshots_newest->epoch <= epoch);
    snapshot->epoch = epoch;
    snapshot->older = engine->snapshots_newest;
    if (engine->snapshots_newest) {
        engine->snapshots_newest->newer = snapshot;
    } else {
        engine->snapshots_oldest = snapshot;
    }
    engine->snapshots_newest = snapshot;
}

void ivm__snapshot_position_set(ivm_snapshot *snapshot, const uint8_t *position, uint32_t size)
{
    assert(size <= IVM_POSITION_SIZE_MAX);
    memcpy(snapshot->position, position, size);
    snapshot->position_size = size;
}

/* The list is in the order of epochs. While what steps commit is withheld others take the state before them: what these steps have to tell
 * stands among those, and keeps more texts than it needs. */
static void list_add(ivm_snapshot *snapshot)
{
    ivm_engine *engine = snapshot->engine;
    ivm__snapshot_position_set(snapshot, engine->position, engine->position_size);
    pthread_mutex_lock(&engine->snapshots_lock);
    ivm__snapshot_list(snapshot, engine->withheld && engine->published ? engine->published_epoch : engine->texts.epoch);
    pthread_mutex_unlock(&engine->snapshots_lock);
}

/* Everything but the place in the list and the struct. */
static void snapshot_empty(ivm_snapshot *snapshot)
{
    ivm__memory *memory = snapshot->memory;
    ivm__snapshot_find_free(snapshot);
    ivm__snapshot_order_free(snapshot);
    ivm__snapshot_output_free(snapshot);
    if (snapshot->copied) {
        ivm__release(memory, snapshot->copied, snapshot->copied_count * snapshot->shared.rows.layout->stride);
    }
    ivm__pages_release(snapshot->copied_pages, memory);
    ivm__shared_release(&snapshot->shared, memory);
}

void ivm__snapshot_discard(ivm_snapshot *snapshot)
{
    if (snapshot) {
        snapshot_empty(snapshot);
        ivm__release(snapshot->memory, snapshot, snapshot_bytes(snapshot->key_count));
    }
}

/* The lock is held. */
static ivm_status snapshot_share(ivm_engine *engine, const ivm__subject *subject, ivm_snapshot **taken)
{
    ivm_snapshot *snapshot = ivm__snapshot_make(engine, subject->key, subject->key_count);
    if (!snapshot) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__shared_take(subject, &snapshot->shared);
    snapshot->rows_count = snapshot->shared.rows.rows_count;
    snapshot->finds = subject->finds;
    list_add(snapshot);
    *taken = snapshot;
    return IVM_OK;
}

/* ---- Rows that are copied ---------------------------------------------------------------------------------------------------------------- */

/* A walk over the rows that are copied: the changes of the step under way or of the last, or all. */
typedef uint32_t copied_walk(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights);

/* How many rows they are, and how many of them have heavy weights. */
static uint64_t count_rows(const ivm__store *store, copied_walk *walk, uint32_t *heavy)
{
    uint64_t count = 0;
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, found;
    *heavy = 0;
    while ((found = walk(store, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < found; i++) {
            *heavy += !ivm__weight_is_narrow(weights[i]);
        }
        count += found;
    }
    return count;
}

/* A step's change of a weight has at most 64 bits and a sign: it is cut to int64 only where a weight went from one end to the other. */
static int64_t weight_narrow(ivm__weight weight)
{
    return weight > INT64_MAX ? INT64_MAX : weight < INT64_MIN ? INT64_MIN : (int64_t)weight;
}

/* The rows overwritten in place that belong to what is walked. */
static const ivm__overwritten *overwritten_of(const ivm__store *store, copied_walk *walk)
{
    static const ivm__overwritten none;
    return walk == ivm__store_changes ? &store->overwritten : walk == ivm__store_changes_last ? &store->overwritten_last : &none;
}

/* The next copied row gets a body and the header that tells of its weight. */
static void row_copy(ivm_snapshot *snapshot, const uint8_t *body, int64_t weight)
{
    ivm__row_pages *rows = &snapshot->shared.rows;
    uint8_t *at = snapshot->copied + (size_t)rows->end * rows->layout->stride;
    *ivm__row_header_at(at) = ivm__header_of_any(weight);
    memcpy(at + IVM__ROW_HEADER, body, rows->layout->body_bytes);
    if (!ivm__weight_is_narrow(weight)) {
        snapshot->shared.heavies->list[rows->heavy_count++] = (ivm__heavy){ rows->end, weight };
    }
    rows->end++;
}

/* Each as it was, gone, and as it is, come. */
static void copy_overwritten(ivm_snapshot *snapshot, const ivm__store *store, const ivm__overwritten *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        row_copy(snapshot, list->bodies + (size_t)i * store->layout->body_bytes, -1);
        row_copy(snapshot, ivm__store_row(store, list->rows[i]) + IVM__ROW_HEADER, 1);
    }
}

/* Room for them, as one page. */
static ivm_status copied_make(ivm_snapshot *snapshot, ivm__layout *layout, uint64_t count, uint32_t heavy)
{
    ivm__shared *shared = &snapshot->shared;
    shared->rows = (ivm__row_pages){ .layout = ivm__layout_acquire(layout), .page_shift = 31, .page_mask = INT32_MAX, .rows_count = count };
    snapshot->copied = count < UINT32_MAX ? ivm__allocate(snapshot->memory, count * layout->stride) : NULL;
    snapshot->copied_count = count;
    snapshot->copied_pages = ivm__pages_create(snapshot->memory);
    shared->heavies = heavy ? ivm__heavies_create(snapshot->memory, heavy) : NULL;
    if (!snapshot->copied || !snapshot->copied_pages || (heavy && !shared->heavies)) {
        return IVM_OUT_OF_MEMORY;
    }
    snapshot->copied_pages->rows[0] = snapshot->copied;
    snapshot->copied_pages->rows[1] = count > INT32_MAX ? snapshot->copied + ((size_t)layout->stride << 31) : NULL;
    shared->rows.pages = snapshot->copied_pages;
    shared->rows.heavy = heavy ? shared->heavies->list : NULL;
    snapshot->rows_count = count;
    return IVM_OK;
}

static ivm_status copy_rows(ivm_snapshot *snapshot, const ivm__store *store, copied_walk *walk)
{
    const ivm__overwritten *list = overwritten_of(store, walk);
    uint32_t heavy, next = 0, found;
    uint64_t count = count_rows(store, walk, &heavy) + 2 * (uint64_t)list->count;
    IVM_TRY(copied_make(snapshot, store->layout, count, heavy));
    ivm__row_id rows[64];
    ivm__weight weights[64];
    while ((found = walk(store, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < found; i++) {
            row_copy(snapshot, ivm__store_row(store, rows[i]) + IVM__ROW_HEADER, weight_narrow(weights[i]));
        }
    }
    copy_overwritten(snapshot, store, list);
    assert(snapshot->shared.rows.end == count && snapshot->shared.rows.heavy_count == heavy);
    return IVM_OK;
}

/* The lock is held. */
static ivm_status snapshot_copy(ivm_engine *engine, const ivm__store *store, copied_walk *walk, uint32_t key_count, ivm_snapshot **taken)
{
    ivm_snapshot *snapshot = ivm__snapshot_make(engine, NULL, key_count);
    ivm_status status = snapshot ? copy_rows(snapshot, store, walk) : IVM_OUT_OF_MEMORY;
    if (status != IVM_OK) {
        ivm__snapshot_discard(snapshot);
        return status;
    }
    list_add(snapshot);
    *taken = snapshot;
    return IVM_OK;
}

/* ---- From within ------------------------------------------------------------------------------------------------------------------------- */

static ivm__offer *offer_of(const ivm__published *state)
{
    return state ? state->offer : NULL;
}

ivm__subject ivm__view_subject(const ivm_view *view)
{
    return (ivm__subject){ view->program.result, NULL, view->key_count, view->key_count > 0, offer_of(view->published) };
}

/* Equal rows of a bag may stand apart. */
ivm__subject ivm__table_subject(ivm_table *table)
{
    bool keyed = table->key_count > 0;
    return (ivm__subject){
        &table->store, keyed ? table->key : NULL, keyed ? table->key_count : table->columns_count, keyed, offer_of(table->published),
    };
}

ivm_status ivm__snapshot_of(ivm_engine *engine, const ivm__store *store, ivm_snapshot **snapshot)
{
    const ivm__subject subject = { .store = (ivm__store *)(uintptr_t)store };
    return snapshot_share(engine, &subject, snapshot);
}

ivm__row_pages ivm__snapshot_row_pages(const ivm_snapshot *snapshot)
{
    assert(snapshot->shared.pages);
    return snapshot->shared.rows;
}

ivm_status ivm__snapshot_rows(ivm_view *view, ivm_snapshot **snapshot)
{
    const ivm__subject subject = ivm__view_subject(view);
    return snapshot_share(view->engine, &subject, snapshot);
}

ivm_status ivm__snapshot_changes(ivm_view *view, ivm_snapshot **snapshot)
{
    return snapshot_copy(view->engine, view->program.result, ivm__store_changes, view->key_count, snapshot);
}

static uint32_t rows_walk(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights)
{
    return ivm__store_scan(store, IVM__READ_CUR, next, capacity, rows, weights);
}

ivm_status ivm__snapshot_copy(ivm_view *view, ivm__store *rows, ivm_snapshot **snapshot)
{
    return snapshot_copy(view->engine, rows, rows_walk, view->key_count, snapshot);
}

ivm_status ivm__snapshot_orphans_changes(ivm_fact *fact, ivm_snapshot **snapshot)
{
    return snapshot_copy(fact->engine, ivm__track_waiting(fact), ivm__store_changes, fact->columns_count, snapshot);
}

/* ---- From without ------------------------------------------------------------------------------------------------------------------------ */

/* Of a view or a table, without waiting for a step under way where its state is published. */
static ivm_status subject_read(ivm_engine *engine, ivm_view *view, ivm_table *table, ivm_snapshot **snapshot, ivm_error *error)
{
    ivm__published *state = view ? view->published : table->published; /* as long as the view or table is */
    ivm_status status = IVM_OK;
    bool entered;
    IVM_TRY(ivm__engine_try_reading(engine, &entered, error));
    if (!entered) {
        if (ivm__state_take(engine, state, snapshot, &status)) {
            return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
        }
        IVM_TRY(ivm__engine_enter_reading(engine, error));
    }
    const ivm__subject subject = view ? ivm__view_subject(view) : ivm__table_subject(table);
    ivm__state_read(engine, state);
    status = snapshot_share(engine, &subject, snapshot);
    ivm__engine_leave_reading(engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm_read_view(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!view || !snapshot) {
        return ivm__fail_null(error, "ivm_read_view", view ? "snapshot" : "view");
    }
    return subject_read(view->engine, view, NULL, snapshot, error);
}

ivm_status ivm_read_changes(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!view || !snapshot) {
        return ivm__fail_null(error, "ivm_read_changes", view ? "snapshot" : "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_status status = snapshot_copy(engine, view->program.result, ivm__store_changes_last, view->key_count, snapshot);
    ivm__engine_leave_reading(engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm_read_table(ivm_table *table, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!table || !snapshot) {
        return ivm__fail_null(error, "ivm_read_table", table ? "snapshot" : "table");
    }
    if (table->transient) {
        return ivm__fail(error, IVM_UNSUPPORTED, "table %s does not keep its rows: they cannot be read", table->name);
    }
    return subject_read(table->engine, NULL, table, snapshot, error);
}

/* Of a fact that nobody waits under: no keys, of the types that keys have. */
static ivm_status snapshot_of_no_orphans(const ivm_fact *fact, ivm_snapshot **taken)
{
    ivm__zset none;
    IVM_TRY(ivm__track_keys(fact, &none));
    ivm_status status = snapshot_copy(fact->engine, &none.store, ivm__store_changes, fact->columns_count, taken);
    ivm__zset_deinit(&none);
    return status;
}

ivm_status ivm_read_orphans(ivm_fact *fact, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!fact || !snapshot) {
        return ivm__fail_null(error, "ivm_read_orphans", fact ? "snapshot" : "fact");
    }
    ivm_engine *engine = fact->engine;
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_status status;
    if (fact->trust == IVM_TRACKED) {
        const ivm__subject subject = { ivm__track_waiting(fact), NULL, fact->columns_count, true, NULL };
        status = snapshot_share(engine, &subject, snapshot);
    } else {
        status = snapshot_of_no_orphans(fact, snapshot);
    }
    ivm__engine_leave_reading(engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

/* What it holds goes first, its place in the list last: an engine that finds its list empty may be freed at once. */
void ivm_snapshot_close(ivm_snapshot *snapshot)
{
    if (!snapshot || snapshot->lent) {
        return;
    }
    ivm_engine *engine = snapshot->engine;
    snapshot_empty(snapshot);
    pthread_mutex_lock(&engine->snapshots_lock);
    *(snapshot->older ? &snapshot->older->newer : &engine->snapshots_oldest) = snapshot->newer;
    *(snapshot->newer ? &snapshot->newer->older : &engine->snapshots_newest) = snapshot->older;
    ivm__release(&engine->memory, snapshot, snapshot_bytes(snapshot->key_count));
    pthread_mutex_unlock(&engine->snapshots_lock);
}

uint64_t ivm_snapshot_rows_count(const ivm_snapshot *snapshot)
{
    return snapshot ? snapshot->rows_count : 0;
}

size_t ivm_snapshot_columns_count(const ivm_snapshot *snapshot)
{
    return snapshot ? snapshot->shared.rows.layout->columns_count : 0;
}

ivm_type ivm_snapshot_column_type(const ivm_snapshot *snapshot, size_t column)
{
    return column < ivm_snapshot_columns_count(snapshot) ? snapshot->shared.rows.layout->types[column] : 0;
}

ivm_status ivm_snapshot_status(const ivm_snapshot *snapshot)
{
    return snapshot ? snapshot->status : IVM_INVALID_ARGUMENT;
}
