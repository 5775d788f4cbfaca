/* The list of states is changed with both locks held, the engine's and that of snapshots, and read under either. Nothing is allocated or freed under the
 * second, which readers wait for: it is held for a few instructions a state. */
#include "publish.h"

#define PATIENCE_READ 1024u /* steps that change it without a reader, then it is given up */
#define PATIENCE_TRUST 64u  /* the same of one that nobody has read yet */

static ivm__subject subject_of(const ivm__published *state)
{
    return state->view ? ivm__view_subject(state->view) : ivm__table_subject(state->table);
}

static void key_write(ivm__published *state, const ivm__subject *subject)
{
    assert(!subject->key || subject->key_count <= state->key_capacity);
    state->finds = subject->finds;
    state->key_count = subject->key_count;
    for (uint32_t i = 0; subject->key && i < subject->key_count; i++) {
        state->key[i] = subject->key[i];
    }
}

/* ---- Renewing --------------------------------------------------------------------------------------------------------------------------- */

/* Whether it is what the store holds: pages that are held do not change, so the same pages are the same rows. */
static bool is_present(const ivm__published *state, const ivm__store *store)
{
    return state->now.pages == store->pages && state->now.rows.end == store->rows_end && state->now.finder == store->finder;
}

static void state_prepare(ivm__published *state)
{
    ivm__subject subject = subject_of(state);
    state->renewed = !is_present(state, subject.store);
    if (state->renewed) {
        ivm__shared_take(&subject, &state->newer);
    }
}

static void state_renew(ivm__published *state)
{
    ivm__subject subject = subject_of(state);
    ivm__shared before = state->now;
    state->now = state->newer;
    state->newer = before;
    state->patience = state->read ? PATIENCE_READ : state->patience;
    state->unread = state->read ? 0 : state->unread + 1;
    state->read = false;
    key_write(state, &subject);
}

/* Both locks are held. */
static void position_publish(ivm_engine *engine)
{
    memcpy(engine->published_position, engine->position, engine->position_size);
    engine->published_position_size = engine->position_size;
}

/* All at once, for whoever takes snapshots. What nobody reads goes out of the list to *gone. */
static void states_exchange(ivm_engine *engine, uint64_t epoch, ivm__published **gone)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    engine->published_epoch = epoch;
    position_publish(engine);
    for (ivm__published **at = &engine->published; *at;) {
        ivm__published *state = *at;
        if (state->renewed) {
            state_renew(state);
        }
        if (state->unread <= state->patience) {
            at = &state->next;
            continue;
        }
        *at = state->next;
        state->next = *gone;
        state->listed = false;
        *gone = state;
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
}

/* Nobody finds it any more. */
static void state_empty(ivm__published *state, ivm__memory *memory)
{
    assert(!state->listed);
    ivm__shared_release(&state->now, memory);
    ivm__shared_release(&state->newer, memory);
}

void ivm__states_publish(ivm_engine *engine, uint64_t epoch)
{
    if (!engine->published) {
        return;
    }
    ivm__published *gone = NULL;
    for (ivm__published *state = engine->published; state; state = state->next) {
        state_prepare(state);
    }
    states_exchange(engine, epoch, &gone);
    for (; gone; gone = gone->next) {
        state_empty(gone, &engine->memory);
    }
    for (ivm__published *state = engine->published; state; state = state->next) {
        ivm__shared_release(&state->newer, &engine->memory);
    }
}

/* ---- Beginning and ending --------------------------------------------------------------------------------------------------------------- */

static size_t state_bytes(uint32_t key_capacity)
{
    return sizeof(ivm__published) + key_capacity * sizeof(uint32_t);
}

ivm_status ivm__state_make(ivm_engine *engine, ivm_view *view, ivm_table *table)
{
    uint32_t capacity = table ? table->key_count : 0;
    ivm__published *state = ivm__allocate_zeroed(&engine->memory, state_bytes(capacity));
    ivm__offer *offer = ivm__offer_make(&engine->memory);
    if (!state || !offer) {
        ivm__release(&engine->memory, state, state_bytes(capacity));
        ivm__offer_release(offer, &engine->memory);
        return IVM_OUT_OF_MEMORY;
    }
    state->view = view;
    state->table = table;
    state->offer = offer;
    state->key_capacity = capacity;
    *(view ? &view->published : &table->published) = state;
    return IVM_OK;
}

/* Nothing here asks for memory: an allocator that takes its time would hold up who reads meanwhile. */
static void state_begin(ivm_engine *engine, ivm__published *state, uint32_t patience)
{
    ivm__subject subject = subject_of(state);
    state->patience = patience;
    state->unread = 0;
    key_write(state, &subject);
    ivm__shared_take(&subject, &state->now);
    pthread_mutex_lock(&engine->snapshots_lock);
    engine->published_epoch = engine->texts.epoch;
    position_publish(engine);
    state->next = engine->published;
    state->listed = true;
    engine->published = state;
    pthread_mutex_unlock(&engine->snapshots_lock);
}

static void begin_on_trust(ivm_engine *engine, ivm__published *state)
{
    if (state && !state->listed) {
        state_begin(engine, state, PATIENCE_TRUST);
    }
}

void ivm__states_begin(ivm_engine *engine)
{
    engine->several = true;
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        begin_on_trust(engine, table->transient ? NULL : table->published);
    }
    for (const ivm_view *view = engine->views; view; view = view->next) {
        begin_on_trust(engine, view->published);
    }
}

void ivm__state_new(ivm_engine *engine, ivm__published *state)
{
    if (engine->several) {
        begin_on_trust(engine, state);
    }
}

void ivm__state_read(ivm_engine *engine, ivm__published *state)
{
    if (!state || !engine->several) {
        return;
    }
    if (!state->listed) {
        state_begin(engine, state, PATIENCE_READ);
    }
    pthread_mutex_lock(&engine->snapshots_lock);
    state->read = true;
    pthread_mutex_unlock(&engine->snapshots_lock);
}

void ivm__states_end(ivm_engine *engine)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    for (ivm__published *state = engine->published; state; state = state->next) {
        state->listed = false;
    }
    engine->published = NULL;
    pthread_mutex_unlock(&engine->snapshots_lock);
}

void ivm__state_free(ivm_engine *engine, ivm__published *state)
{
    if (!state) {
        return;
    }
    pthread_mutex_lock(&engine->snapshots_lock);
    for (ivm__published **at = &engine->published; state->listed; at = &(*at)->next) {
        if (*at == state) {
            *at = state->next;
            state->listed = false;
            break;
        }
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    state_empty(state, &engine->memory);
    ivm__offer_release(state->offer, &engine->memory);
    ivm__release(&engine->memory, state, state_bytes(state->key_capacity));
}

/* ---- Taking ----------------------------------------------------------------------------------------------------------------------------- */

/* How many columns its key has; false: nothing is published. */
static bool key_count_of(ivm_engine *engine, const ivm__published *state, uint32_t *count)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    bool listed = state->listed;
    *count = state->key_count;
    pthread_mutex_unlock(&engine->snapshots_lock);
    return listed;
}

/* The lock of snapshots is held, the key is as it was. */
static void state_copy(ivm_engine *engine, ivm__published *state, ivm_snapshot *snapshot)
{
    assert(state->listed && state->key_count == snapshot->key_count);
    state->read = true;
    ivm__shared_copy(&state->now, &snapshot->shared);
    snapshot->rows_count = state->now.rows.rows_count;
    snapshot->finds = state->finds;
    for (uint32_t i = 0; state->key_capacity && i < state->key_count; i++) {
        snapshot->key[i] = state->key[i];
    }
    ivm__snapshot_position_set(snapshot, engine->published_position, engine->published_position_size);
    ivm__snapshot_list(snapshot, engine->published_epoch);
}

/* Makes the snapshot one of the state. False: that has another key meanwhile, or is no longer published. */
static bool state_try(ivm_engine *engine, ivm__published *state, ivm_snapshot *snapshot)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    bool same = state->listed && state->key_count == snapshot->key_count;
    if (same) {
        state_copy(engine, state, snapshot);
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    return same;
}

bool ivm__states_take(ivm_engine *engine, ivm_view *const *views, size_t views_count, ivm_snapshot *made)
{
    bool listed = true;
    pthread_mutex_lock(&engine->snapshots_lock);
    for (size_t i = 0; i < views_count; i++) {
        listed &= views[i]->published && views[i]->published->listed;
    }
    for (size_t i = 0; listed && i < views_count; i++, made = made->kept_next) {
        state_copy(engine, views[i]->published, made);
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    return listed;
}

bool ivm__state_take(ivm_engine *engine, ivm__published *state, ivm_snapshot **snapshot, ivm_status *status)
{
    uint32_t key_count;
    while (state && key_count_of(engine, state, &key_count)) {
        ivm_snapshot *made = ivm__snapshot_make(engine, NULL, key_count);
        if (!made) {
            *status = IVM_OUT_OF_MEMORY;
            return true;
        }
        if (state_try(engine, state, made)) {
            *snapshot = made;
            *status = IVM_OK;
            return true;
        }
        ivm__snapshot_discard(made);
    }
    return false;
}
