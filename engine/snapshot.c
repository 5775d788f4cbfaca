/* Snapshots: taken under the engine's lock in time that does not grow with the rows, read without any. A snapshot holds a reference to
 * a directory of pages that the writer no longer changes, the layout, and a place in the engine's list that keeps the texts alive that were
 * there when it was taken. The changes of a step are few: they are copied. */
#include "snapshot.h"

#include "track.h"

uint64_t ivm__snapshot_epoch(const ivm_snapshot *snapshot)
{
    return snapshot->epoch;
}

const ivm_snapshot *ivm__snapshot_newer(const ivm_snapshot *snapshot)
{
    return snapshot->newer;
}

static void list_add(ivm_engine *engine, ivm_snapshot *snapshot)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    snapshot->older = engine->snapshots_newest;
    if (engine->snapshots_newest) {
        engine->snapshots_newest->newer = snapshot;
    } else {
        engine->snapshots_oldest = snapshot;
    }
    engine->snapshots_newest = snapshot;
    pthread_mutex_unlock(&engine->snapshots_lock);
}

static ivm_snapshot *snapshot_make(ivm_engine *engine, ivm__layout *layout, const uint32_t *key, uint32_t key_count)
{
    ivm_snapshot *snapshot = ivm__allocate_zeroed(&engine->memory, sizeof *snapshot);
    if (!snapshot) {
        return NULL;
    }
    *snapshot = (ivm_snapshot){ .engine = engine, .memory = &engine->memory, .epoch = engine->texts.epoch, .key_count = key_count };
    snapshot->key = ivm__allocate(&engine->memory, key_count * sizeof *snapshot->key);
    if (!snapshot->key) {
        ivm__release(&engine->memory, snapshot, sizeof *snapshot);
        return NULL;
    }
    for (uint32_t i = 0; i < key_count; i++) {
        snapshot->key[i] = key ? key[i] : i;
    }
    snapshot->layout = ivm__layout_acquire(layout);
    return snapshot;
}

/* Everything but the place in the list and the struct. */
static void snapshot_empty(ivm_snapshot *snapshot)
{
    ivm__memory *memory = snapshot->memory;
    ivm__snapshot_find_free(snapshot);
    ivm__snapshot_output_free(snapshot);
    if (snapshot->pages) {
        ivm__pages_release(snapshot->pages, memory);
    }
    ivm__release(memory, snapshot->copied, snapshot->copied_count * snapshot->layout->stride);
    ivm__release(memory, snapshot->copied_weights, snapshot->copied_count * sizeof *snapshot->copied_weights);
    ivm__release(memory, snapshot->heavy, snapshot->heavy_count * sizeof *snapshot->heavy);
    ivm__release(memory, snapshot->key, snapshot->key_count * sizeof *snapshot->key);
    ivm__layout_release(snapshot->layout);
}

static ivm_status share_rows(ivm_snapshot *snapshot, ivm__store *store)
{
    if (store->heavy_count) {
        snapshot->heavy = ivm__allocate(snapshot->memory, store->heavy_count * sizeof *store->heavy);
        if (!snapshot->heavy) {
            return IVM_OUT_OF_MEMORY;
        }
        memcpy(snapshot->heavy, store->heavy, store->heavy_count * sizeof *store->heavy);
        snapshot->heavy_count = store->heavy_count;
    }
    snapshot->pages = ivm__pages_acquire(store);
    snapshot->page_shift = store->page_shift;
    snapshot->page_mask = store->page_mask;
    snapshot->rows_end = store->rows_end;
    snapshot->rows_count = store->rows_live;
    return IVM_OK;
}

/* A walk over the rows that are copied: the changes of the step under way or of the last, or all. */
typedef uint32_t copied_walk(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights);

static uint64_t count_rows(const ivm__store *store, copied_walk *walk)
{
    uint64_t count = 0;
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, found;
    while ((found = walk(store, &next, 64, rows, weights)) > 0) {
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

/* Each as it was, gone, and as it is, come. */
static void copy_overwritten(ivm_snapshot *snapshot, const ivm__store *store, const ivm__overwritten *list, uint64_t at)
{
    uint32_t stride = store->layout->stride, body = store->layout->body_bytes;
    for (uint32_t i = 0; i < list->count; i++, at += 2) {
        uint8_t *gone = snapshot->copied + at * stride, *come = gone + stride;
        memcpy(come, ivm__store_row(store, list->rows[i]), stride);
        memcpy(gone, come, stride);
        memcpy(gone + IVM__ROW_HEADER, list->bodies + (size_t)i * body, body);
        snapshot->copied_weights[at] = -1;
        snapshot->copied_weights[at + 1] = 1;
    }
}

static ivm_status copy_rows(ivm_snapshot *snapshot, const ivm__store *store, copied_walk *walk)
{
    const ivm__overwritten *list = overwritten_of(store, walk);
    uint64_t walked = count_rows(store, walk), count = walked + 2 * (uint64_t)list->count, at = 0;
    uint32_t stride = store->layout->stride;
    snapshot->copied = ivm__allocate(snapshot->memory, count * stride);
    snapshot->copied_weights = ivm__allocate(snapshot->memory, count * sizeof *snapshot->copied_weights);
    snapshot->copied_count = count; /* said first, so that freeing gives the right sizes */
    if (!snapshot->copied || !snapshot->copied_weights) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, found;
    while ((found = walk(store, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < found; i++, at++) {
            memcpy(snapshot->copied + at * stride, ivm__store_row(store, rows[i]), stride);
            snapshot->copied_weights[at] = weight_narrow(weights[i]);
        }
    }
    assert(at == walked);
    copy_overwritten(snapshot, store, list, at);
    snapshot->rows_count = count;
    return IVM_OK;
}

/* `walk`: over what is to be copied; NULL: the rows are shared. */
static ivm_status snapshot_take(ivm_engine *engine, ivm__store *store, copied_walk *walk, const uint32_t *key, uint32_t key_count,
                                ivm_snapshot **taken)
{
    ivm_snapshot *snapshot = snapshot_make(engine, store->layout, key, key_count);
    if (!snapshot) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = walk ? copy_rows(snapshot, store, walk) : share_rows(snapshot, store);
    if (status != IVM_OK) {
        snapshot_empty(snapshot);
        ivm__release(&engine->memory, snapshot, sizeof *snapshot);
        return status;
    }
    list_add(engine, snapshot);
    *taken = snapshot;
    return IVM_OK;
}

ivm_status ivm__snapshot_of(ivm_engine *engine, const ivm__store *store, ivm_snapshot **snapshot)
{
    assert(store->touched_count == 0 && store->step_end == store->rows_end && !store->laid);
    return snapshot_take(engine, (ivm__store *)(uintptr_t)store, NULL, NULL, 0, snapshot);
}

ivm__row_pages ivm__snapshot_row_pages(const ivm_snapshot *snapshot)
{
    assert(snapshot->pages);
    return (ivm__row_pages){ snapshot->layout,   snapshot->pages->rows, snapshot->page_shift, snapshot->page_mask,  0,
                             snapshot->rows_end, snapshot->rows_count,  snapshot->heavy,      snapshot->heavy_count };
}

ivm_status ivm__snapshot_rows(ivm_view *view, ivm_snapshot **snapshot)
{
    return snapshot_take(view->engine, view->program.result, NULL, NULL, view->key_count, snapshot);
}

ivm_status ivm__snapshot_changes(ivm_view *view, ivm_snapshot **snapshot)
{
    return snapshot_take(view->engine, view->program.result, ivm__store_changes, NULL, view->key_count, snapshot);
}

static uint32_t rows_walk(const ivm__store *store, uint32_t *next, uint32_t capacity, ivm__row_id *rows, ivm__weight *weights)
{
    return ivm__store_scan(store, IVM__READ_CUR, next, capacity, rows, weights);
}

ivm_status ivm__snapshot_copy(ivm_view *view, ivm__store *rows, ivm_snapshot **snapshot)
{
    return snapshot_take(view->engine, rows, rows_walk, NULL, view->key_count, snapshot);
}

ivm_status ivm_read_view(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!view || !snapshot) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_view: view and snapshot are wanted");
    }
    IVM_TRY(ivm__engine_enter_reading(view->engine, error));
    ivm_status status = ivm__snapshot_rows(view, snapshot);
    ivm__engine_leave_reading(view->engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm_read_changes(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!view || !snapshot) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_changes: view and snapshot are wanted");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_status status = snapshot_take(engine, view->program.result, ivm__store_changes_last, NULL, view->key_count, snapshot);
    ivm__engine_leave_reading(engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm_read_table(ivm_table *table, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!table || !snapshot) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_table: table and snapshot are wanted");
    }
    if (table->transient) {
        return ivm__fail(error, IVM_UNSUPPORTED, "table %s does not keep its rows: they cannot be read", table->name);
    }
    IVM_TRY(ivm__engine_enter_reading(table->engine, error));
    uint32_t key_count = table->key_count ? table->key_count : table->columns_count;
    ivm_status status = snapshot_take(table->engine, &table->store, NULL, table->key_count ? table->key : NULL, key_count, snapshot);
    ivm__engine_leave_reading(table->engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm__snapshot_orphans_changes(ivm_fact *fact, ivm_snapshot **snapshot)
{
    return snapshot_take(fact->engine, ivm__track_waiting(fact), ivm__store_changes, NULL, fact->columns_count, snapshot);
}

/* Of a fact that nobody waits under: no keys, of the types that keys have. */
static ivm_status snapshot_of_no_orphans(const ivm_fact *fact, ivm_snapshot **taken)
{
    ivm__zset none;
    IVM_TRY(ivm__track_keys(fact, &none));
    ivm_status status = snapshot_take(fact->engine, &none.store, ivm__store_changes, NULL, fact->columns_count, taken);
    ivm__zset_deinit(&none);
    return status;
}

ivm_status ivm_read_orphans(ivm_fact *fact, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!fact || !snapshot) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_orphans: fact and snapshot are wanted");
    }
    ivm_engine *engine = fact->engine;
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_status status = fact->trust == IVM_TRACKED
                            ? snapshot_take(engine, ivm__track_waiting(fact), NULL, NULL, fact->columns_count, snapshot)
                            : snapshot_of_no_orphans(fact, snapshot);
    ivm__engine_leave_reading(engine);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

/* What it holds goes first, its place in the list last: an engine that finds its list empty may be freed at once. */
void ivm_snapshot_close(ivm_snapshot *snapshot)
{
    if (!snapshot) {
        return;
    }
    ivm_engine *engine = snapshot->engine;
    snapshot_empty(snapshot);
    pthread_mutex_lock(&engine->snapshots_lock);
    *(snapshot->older ? &snapshot->older->newer : &engine->snapshots_oldest) = snapshot->newer;
    *(snapshot->newer ? &snapshot->newer->older : &engine->snapshots_newest) = snapshot->older;
    ivm__release(&engine->memory, snapshot, sizeof *snapshot);
    pthread_mutex_unlock(&engine->snapshots_lock);
}

uint64_t ivm_snapshot_rows_count(const ivm_snapshot *snapshot)
{
    return snapshot->rows_count;
}

size_t ivm_snapshot_columns_count(const ivm_snapshot *snapshot)
{
    return snapshot->layout->columns_count;
}

ivm_type ivm_snapshot_column_type(const ivm_snapshot *snapshot, size_t column)
{
    return column < snapshot->layout->columns_count ? snapshot->layout->types[column] : 0;
}

ivm_status ivm_snapshot_status(const ivm_snapshot *snapshot)
{
    return snapshot->status;
}
