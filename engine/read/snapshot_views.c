/* Snapshots of several views at once, and what position a snapshot is of. All are taken while no step can commit in between: under the engine's lock, or,
 * while another thread has that, of the states last published, which change together. Cost: that of one snapshot a view. */
#include "publish.h"

static void chain_discard(ivm_snapshot *first)
{
    for (ivm_snapshot *next; first; first = next) {
        next = first->kept_next;
        ivm__snapshot_discard(first);
    }
}

/* A chain of `count` snapshots without rows, by kept_next. NULL: out of memory. */
static ivm_snapshot *chain_make(ivm_view *const *views, size_t count)
{
    ivm_snapshot *first = NULL;
    for (size_t i = count; i-- > 0;) {
        ivm_snapshot *made = ivm__snapshot_make(views[i]->engine, NULL, views[i]->key_count);
        if (!made) {
            chain_discard(first);
            return NULL;
        }
        made->kept_next = first;
        first = made;
    }
    return first;
}

static void chain_close(ivm_snapshot *first)
{
    for (ivm_snapshot *next; first; first = next) {
        next = first->kept_next;
        ivm_snapshot_close(first);
    }
}

/* The lock is held. */
static ivm_status chain_share(ivm_view *const *views, size_t count, ivm_snapshot **chain)
{
    ivm_snapshot *first = NULL;
    for (size_t i = count; i-- > 0;) {
        ivm_snapshot *taken;
        ivm__state_read(views[i]->engine, views[i]->published);
        if (ivm__snapshot_rows(views[i], &taken) != IVM_OK) {
            chain_close(first);
            return IVM_OUT_OF_MEMORY;
        }
        taken->kept_next = first;
        first = taken;
    }
    *chain = first;
    return IVM_OK;
}

/* Of what is published, while another thread has the lock. *chain NULL: of one of them nothing is. */
static ivm_status chain_take(ivm_view *const *views, size_t count, ivm_snapshot **chain)
{
    *chain = chain_make(views, count);
    if (!*chain) {
        return IVM_OUT_OF_MEMORY;
    }
    if (!ivm__states_take(views[0]->engine, views, count, *chain)) {
        chain_discard(*chain);
        *chain = NULL;
    }
    return IVM_OK;
}

static ivm_status views_check(ivm_view *const *views, size_t count, ivm_snapshot **snapshots, ivm_error *error)
{
    if (count && (!views || !snapshots)) {
        return ivm__fail_null(error, "ivm_read_views", views ? "snapshots" : "views");
    }
    for (size_t i = 0; i < count; i++) {
        if (!views[i]) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_views: view %zu of %zu is NULL", i, count);
        }
        if (views[i]->engine != views[0]->engine) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_read_views: view %s is of another engine than view %s", views[i]->name,
                             views[0]->name);
        }
    }
    return IVM_OK;
}

ivm_status ivm_read_views(ivm_view *const *views, size_t views_count, ivm_snapshot **snapshots, ivm_error *error)
{
    IVM_TRY(views_check(views, views_count, snapshots, error));
    if (views_count == 0) {
        return IVM_OK;
    }
    ivm_engine *engine = views[0]->engine;
    ivm_snapshot *chain = NULL;
    bool entered;
    IVM_TRY(ivm__engine_try_reading(engine, &entered, error));
    ivm_status status = entered ? IVM_OK : chain_take(views, views_count, &chain);
    if (status == IVM_OK && !chain) {
        IVM_TRY(entered ? IVM_OK : ivm__engine_enter_reading(engine, error));
        status = chain_share(views, views_count, &chain);
        ivm__engine_leave_reading(engine);
    }
    if (status != IVM_OK) {
        return ivm__fail_memory(error);
    }
    for (size_t i = 0; i < views_count; i++) {
        ivm_snapshot *next = chain->kept_next;
        chain->kept_next = NULL;
        snapshots[i] = chain;
        chain = next;
    }
    return IVM_OK;
}

ivm_status ivm_snapshot_position(const ivm_snapshot *snapshot, void *bytes, size_t capacity, size_t *size, ivm_error *error)
{
    if (!snapshot || !size || (capacity && !bytes)) {
        return ivm__fail_null(error, "ivm_snapshot_position", !snapshot ? "snapshot" : !size ? "size" : "bytes");
    }
    size_t count = snapshot->position_size < capacity ? snapshot->position_size : capacity;
    if (count) {
        memcpy(bytes, snapshot->position, count);
    }
    *size = snapshot->position_size;
    return IVM_OK;
}
