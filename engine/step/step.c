/* Steps, from the views' side.
 *
 *     for each view in the order of their making:   immediate: its program runs        deferred: what its sources changed by is collected
 *     what callbacks will show is copied        then   commit all        or   undo all
 *
 * A view's sources were made before it, so that they have run when it is its turn. Everything that can fail stands before the first commit.
 * Cost beyond the programs' own: a few words a view. */
#include "step.h"

#include <time.h>

#include "batch.h"
#include "pending.h"
#include "snapshot.h"
#include "track.h"

/* ---- Views ----------------------------------------------------------------------------------------------------------------------- */

static bool reads_one_that_ran(const ivm_view *view)
{
    bool ran = false;
    for (uint32_t i = 0; i < view->views_count; i++) {
        ran |= view->views[i]->ran;
    }
    return ran;
}

static ivm_status view_step(ivm__step *step, ivm_view *view, bool pushed)
{
    if (view->ran) {
        return IVM_OK; /* it is what is being refreshed */
    }
    if (view->refresh == IVM_DEFERRED) {
        return ivm__pendings_collect(view, step);
    }
    if (!pushed && !reads_one_that_ran(view)) {
        return IVM_OK;
    }
    view->ran = true;
    return ivm__program_run(&view->program, step);
}

/* A push is not committed yet: its position is not the engine's. */
static void telling_position(const ivm__step *step, ivm_snapshot *telling)
{
    if (step->batch && step->batch->positioned) {
        ivm__snapshot_position_set(telling, step->batch->position, step->batch->position_size);
    }
}

/* Copies what the view's callback will be shown. */
static ivm_status telling_make(ivm__step *step, ivm_view *view)
{
    ivm__row_id row;
    ivm__weight weight;
    uint32_t next = 0;
    const ivm__store *result = view->program.result;
    if (!view->changed || !view->ran || (result->overwritten.count == 0 && ivm__store_changes(result, &next, 1, &row, &weight) == 0)) {
        return IVM_OK;
    }
    if (ivm__snapshot_changes(view, &view->telling) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    telling_position(step, view->telling);
    return IVM_OK;
}

static ivm_status fact_telling_make(ivm__step *step, ivm_fact *fact)
{
    ivm__row_id row;
    ivm__weight weight;
    uint32_t next = 0;
    if (!fact->changed || ivm__store_changes(ivm__track_waiting(fact), &next, 1, &row, &weight) == 0) {
        return IVM_OK;
    }
    if (ivm__snapshot_orphans_changes(fact, &fact->telling) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    telling_position(step, fact->telling);
    return IVM_OK;
}

ivm_status ivm__views_run(ivm__step *step, bool pushed)
{
    for (ivm_view *view = step->engine->views; view; view = view->next) {
        IVM_TRY(view_step(step, view, pushed));
    }
    for (ivm_view *view = step->engine->views; view; view = view->next) {
        IVM_TRY(telling_make(step, view));
    }
    for (ivm_fact *fact = step->engine->facts; fact; fact = fact->next) {
        IVM_TRY(fact_telling_make(step, fact));
    }
    return IVM_OK;
}

void ivm__views_commit(ivm__step *step)
{
    for (ivm_view *view = step->engine->views; view; view = view->next) {
        ivm__pendings_commit(view);
        if (!view->ran) {
            ivm__store_commit(view->program.result);
            continue;
        }
        view->ran = false;
        ivm__program_commit(&view->program);
        step->stats->rows_out += view->program.result->last_changes;
    }
}

void ivm__views_undo(ivm_engine *engine)
{
    for (ivm_view *view = engine->views; view; view = view->next) {
        ivm__pendings_undo(view);
        ivm_snapshot_close(view->telling);
        view->telling = NULL;
        if (view->ran) {
            view->ran = false;
            ivm__program_undo(&view->program);
        }
    }
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm_snapshot_close(fact->telling);
        fact->telling = NULL;
    }
}

/* ---- Callbacks ------------------------------------------------------------------------------------------------------------------- */

static void keep(ivm_snapshot **telling, ivm_snapshot **kept, uint32_t nth)
{
    if (*telling) {
        while (*kept) {
            kept = &(*kept)->kept_next;
        }
        (*telling)->kept_step = nth;
        *kept = *telling;
        *telling = NULL;
    }
}

void ivm__telling_keep(ivm_engine *engine)
{
    for (ivm_view *view = engine->views; view; view = view->next) {
        keep(&view->telling, &view->kept, engine->steps_kept);
    }
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        keep(&fact->telling, &fact->kept, engine->steps_kept);
    }
    engine->steps_kept++;
}

/* What there is to tell of a step, the last one's behind all that were kept. NULL: nothing. */
static ivm_snapshot *telling_take(const ivm_engine *engine, uint32_t nth, ivm_snapshot **telling, ivm_snapshot **kept)
{
    ivm_snapshot **from = nth < engine->steps_kept ? kept : telling, *taken = *from;
    if (!taken || (from == kept && taken->kept_step != nth)) {
        return NULL;
    }
    *from = taken->kept_next;
    return taken;
}

/* The turn is still held: views stay, and who pushes next tells next. */
static void views_tell(ivm_engine *engine, uint32_t nth)
{
    for (ivm_view *view = engine->views; view; view = view->next) {
        ivm_snapshot *telling = telling_take(engine, nth, &view->telling, &view->kept);
        if (telling) {
            telling->lent = true;
            view->changed(view->changed_context, view, telling);
            telling->lent = false;
            ivm_snapshot_close(telling);
        }
    }
}

static void facts_tell(ivm_engine *engine, uint32_t nth)
{
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm_snapshot *telling = telling_take(engine, nth, &fact->telling, &fact->kept);
        if (telling) {
            telling->lent = true;
            fact->changed(fact->changed_context, fact, telling);
            telling->lent = false;
            ivm_snapshot_close(telling);
        }
    }
}

void ivm__telling_drop(ivm_engine *engine)
{
    for (uint32_t nth = 0; nth < engine->steps_kept; nth++) {
        for (ivm_view *view = engine->views; view; view = view->next) {
            ivm_snapshot_close(telling_take(engine, nth, &view->telling, &view->kept));
        }
        for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
            ivm_snapshot_close(telling_take(engine, nth, &fact->telling, &fact->kept));
        }
    }
    engine->steps_kept = 0;
}

void ivm__engine_leave_telling(ivm_engine *engine)
{
    atomic_store_explicit(&engine->teller, pthread_self(), memory_order_relaxed);
    atomic_store_explicit(&engine->telling, true, memory_order_release);
    ivm__engine_leave_reading(engine);
    for (uint32_t nth = 0; nth <= engine->steps_kept; nth++) {
        facts_tell(engine, nth);
        views_tell(engine, nth);
    }
    engine->steps_kept = 0;
    atomic_store_explicit(&engine->telling, false, memory_order_release);
    pthread_mutex_unlock(&engine->turn);
}

/* ---- The step -------------------------------------------------------------------------------------------------------------------- */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void stats_add(ivm_stats *all, const ivm_stats *one)
{
    all->batches += one->batches;
    all->rows_in += one->rows_in;
    all->rows_out += one->rows_out;
    all->terms_run += one->terms_run;
    all->terms_pruned = add_saturating(all->terms_pruned, one->terms_pruned);
    all->terms_empty = add_saturating(all->terms_empty, one->terms_empty);
    all->rows_probed += one->rows_probed;
    all->rows_matched += one->rows_matched;
    all->terms_dropped += one->terms_dropped;
    all->nanoseconds += one->nanoseconds;
}

ivm_status ivm__cause_pass(ivm_error *error, const ivm_error *cause, ivm_status status)
{
    if (status == IVM_OUT_OF_MEMORY && cause->status != status) {
        return ivm__fail_memory(error);
    }
    const char *message = cause->status == status ? cause->message : ivm_status_name(status);
    return ivm__fail(error, status, "%s", message);
}

ivm_status ivm__step_do(ivm_engine *engine, ivm__work *work, void *subject, ivm_stats *stats, ivm_error *error)
{
    uint64_t start = now();
    ivm_error cause;
    cause.status = IVM_OK;
    ivm_stats counted = { 0 };
    ivm__step step;
    ivm__step_init(&step, engine, &counted, &cause);
    ivm_status status = work(&step, subject);
    ivm__engine_settle(engine);
    if (status != IVM_OK) {
        return ivm__cause_pass(error, &cause, status);
    }
    counted.nanoseconds = now() - start;
    counted.bytes_held = atomic_load(&engine->memory.bytes_held);
    stats_add(&engine->stats, &counted);
    if (stats) {
        *stats = counted;
    }
    return IVM_OK;
}
