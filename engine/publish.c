/* The list of states is changed with both locks held, the engine's and that of snapshots, and read under either. Nothing is allocated or freed under the
 * second, which readers wait for: it is held for a few instructions a state. */
#include "publish.h"

#define PATIENCE_READ 1024u /* steps that change it without a reader, then it is given up */
#define PATIENCE_TRUST 64u  /* the same of one that nobody has read yet */

struct ivm__published {
    struct ivm__published *next;   /* of the engine */
    struct ivm__published **place; /* the view's or table's pointer to it */
    ivm_view *view;                /* one of the two */
    ivm_table *table;
    ivm__shared now, newer; /* `newer`: while it is renewed, then what it was before */
    bool renewed;           /* in the renewal under way */
    bool read;              /* since the last step that changed it */
    uint32_t unread;        /* steps that changed it since it was read */
    uint32_t patience;
    bool finds;
    uint32_t key_count, key_capacity;
    uint32_t key[]; /* of a table with a key, else of no capacity */
};

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

static void state_free(ivm__published *state, ivm__memory *memory)
{
    ivm__shared_release(&state->now, memory);
    ivm__shared_release(&state->newer, memory);
    ivm__release(memory, state, sizeof *state + state->key_capacity * sizeof *state->key);
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
        ivm__shared_take(subject.store, subject.finds, &state->newer);
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

/* All at once, for whoever takes snapshots: what is given up goes out of the list to *gone. */
static void states_exchange(ivm_engine *engine, ivm__published **gone)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    engine->published_epoch = engine->texts.epoch + 1; /* that of snapshots taken once the step has ended */
    for (ivm__published **at = &engine->published; *at;) {
        ivm__published *state = *at;
        if (state->renewed && !state->read && state->unread >= state->patience) {
            *state->place = NULL;
            *at = state->next;
            state->next = *gone;
            *gone = state;
            continue;
        }
        if (state->renewed) {
            state_renew(state);
        }
        at = &state->next;
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
}

void ivm__states_publish(ivm_engine *engine)
{
    if (!engine->published) {
        return;
    }
    ivm__published *gone = NULL;
    for (ivm__published *state = engine->published; state; state = state->next) {
        state_prepare(state);
    }
    states_exchange(engine, &gone);
    for (ivm__published *next; gone; gone = next) {
        next = gone->next;
        state_free(gone, &engine->memory);
    }
    for (ivm__published *state = engine->published; state; state = state->next) {
        ivm__shared_release(&state->newer, &engine->memory);
    }
}

/* ---- Beginning and ending --------------------------------------------------------------------------------------------------------------- */

static void state_begin(ivm_engine *engine, ivm_view *view, ivm_table *table, uint32_t patience)
{
    ivm__subject subject = view ? ivm__view_subject(view) : ivm__table_subject(table);
    uint32_t capacity = subject.key ? subject.key_count : 0;
    ivm__published *state = ivm__allocate_zeroed(&engine->memory, sizeof *state + capacity * sizeof *state->key);
    if (!state || (subject.finds && !ivm__offer_want(subject.store))) {
        ivm__release(&engine->memory, state, sizeof *state + capacity * sizeof *state->key);
        return;
    }
    state->place = view ? &view->published : &table->published;
    state->view = view;
    state->table = table;
    state->patience = patience;
    state->key_capacity = capacity;
    key_write(state, &subject);
    ivm__shared_take(subject.store, subject.finds, &state->now);
    pthread_mutex_lock(&engine->snapshots_lock);
    engine->published_epoch = engine->texts.epoch;
    state->next = engine->published;
    engine->published = state;
    *state->place = state;
    pthread_mutex_unlock(&engine->snapshots_lock);
}

void ivm__states_begin(ivm_engine *engine)
{
    engine->several = true;
    for (ivm_table *table = engine->tables; table; table = table->next) {
        if (!table->transient && !table->published) {
            state_begin(engine, NULL, table, PATIENCE_TRUST);
        }
    }
    for (ivm_view *view = engine->views; view; view = view->next) {
        if (!view->published) {
            state_begin(engine, view, NULL, PATIENCE_TRUST);
        }
    }
}

void ivm__state_read(ivm_engine *engine, ivm_view *view, ivm_table *table)
{
    ivm__published *state = view ? view->published : table->published;
    if (state) {
        pthread_mutex_lock(&engine->snapshots_lock);
        state->read = true;
        pthread_mutex_unlock(&engine->snapshots_lock);
    } else if (engine->several) {
        state_begin(engine, view, table, PATIENCE_READ);
    }
}

void ivm__state_end(ivm_engine *engine, ivm__published **place)
{
    ivm__published *state = *place;
    if (!state) {
        return;
    }
    pthread_mutex_lock(&engine->snapshots_lock);
    ivm__published **at = &engine->published;
    while (*at != state) {
        at = &(*at)->next;
    }
    *at = state->next;
    *place = NULL;
    pthread_mutex_unlock(&engine->snapshots_lock);
    state_free(state, &engine->memory);
}

/* ---- Taking ----------------------------------------------------------------------------------------------------------------------------- */

/* How many columns its key has; false: there is no state. */
static bool key_count_of(ivm_engine *engine, ivm__published *const *place, uint32_t *count)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    const ivm__published *state = *place;
    *count = state ? state->key_count : 0;
    pthread_mutex_unlock(&engine->snapshots_lock);
    return state != NULL;
}

/* Makes the snapshot one of the state. False: the state has another key meanwhile, or is gone. */
static bool state_copy(ivm_engine *engine, ivm__published *const *place, ivm_snapshot *snapshot)
{
    pthread_mutex_lock(&engine->snapshots_lock);
    ivm__published *state = *place;
    bool same = state && state->key_count == snapshot->key_count;
    if (same) {
        state->read = true;
        ivm__shared_copy(&state->now, &snapshot->shared);
        snapshot->rows_count = state->now.rows.rows_count;
        snapshot->finds = state->finds;
        for (uint32_t i = 0; state->key_capacity && i < state->key_count; i++) {
            snapshot->key[i] = state->key[i];
        }
        ivm__snapshot_list(snapshot, engine->published_epoch);
    }
    pthread_mutex_unlock(&engine->snapshots_lock);
    return same;
}

bool ivm__state_take(ivm_engine *engine, ivm__published *const *place, ivm_snapshot **snapshot, ivm_status *status)
{
    uint32_t key_count;
    while (key_count_of(engine, place, &key_count)) {
        ivm_snapshot *made = ivm__snapshot_make(engine, NULL, key_count);
        if (!made) {
            *status = IVM_OUT_OF_MEMORY;
            return true;
        }
        if (state_copy(engine, place, made)) {
            *snapshot = made;
            *status = IVM_OK;
            return true;
        }
        ivm__snapshot_discard(made);
    }
    return false;
}
