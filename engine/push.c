/* Pushing: one batch carried through tables and views as a whole or not at all.
 *
 *     stage and apply to the tables, run every view's program        then   commit all        or   undo all, backwards
 *
 * Everything that can fail stands before the first commit. Cost beyond the batch's own: one call an operator and a few words a table. */
#include <time.h>

#include "batch.h"
#include "stage.h"

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- Statistics ------------------------------------------------------------------------------------------------------------------ */

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
    all->nanoseconds += one->nanoseconds;
}

/* ---- Views ----------------------------------------------------------------------------------------------------------------------- */

/* The programs have run, or were undone. */
static ivm_status views_run(ivm__step *step)
{
    uint32_t count = 0, run = 0;
    for (const ivm_view *view = step->engine->views; view; view = view->next) {
        count++;
    }
    ivm_view **views = ivm__arena_allocate(step->arena, count * sizeof(ivm_view *)); /* the list runs forwards alone */
    if (!views) {
        return ivm__fail_memory(step->error);
    }
    ivm_status status = IVM_OK;
    for (ivm_view *view = step->engine->views; view && status == IVM_OK; view = view->next) {
        views[run++] = view;
        status = ivm__program_run(&view->program, step);
    }
    while (status != IVM_OK && run > 0) {
        ivm__program_undo(&views[--run]->program);
    }
    return status;
}

static void views_commit(ivm__step *step)
{
    for (ivm_view *view = step->engine->views; view; view = view->next) {
        ivm__program_commit(&view->program);
        step->stats->rows_out += view->program.result->last_changes;
    }
}

/* ---- The push -------------------------------------------------------------------------------------------------------------------- */

static ivm_status push(ivm__step *step, const ivm_batch *batch)
{
    ivm_engine *engine = step->engine;
    ivm_status status = ivm__stage_apply(step, batch);
    if (status == IVM_OK) {
        status = views_run(step);
    }
    if (status != IVM_OK) {
        ivm__stage_undo(engine);
        return status;
    }
    views_commit(step);
    ivm__stage_commit(engine);
    engine->pushes++;
    step->stats->batches = 1;
    return IVM_OK;
}

/* The caller's error is touched only where something failed, and then in both members. */
static ivm_status fail(ivm_error *error, const ivm_error *cause, ivm_status status)
{
    if (status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(error);
    }
    const char *message = cause->status == status ? cause->message : ivm_status_name(status);
    return ivm__fail(error, status, "%s", message);
}

/* The batch must be one of this engine that no mistake has spoilt. */
static ivm_status batch_check(const ivm_engine *engine, const ivm_batch *batch, ivm_error *error)
{
    if (batch->mistake.status != IVM_OK) {
        return fail(error, &batch->mistake, batch->mistake.status);
    }
    if (batch->engine != engine) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "the batch was made for another engine");
    }
    return IVM_OK;
}

/* The lock is held. */
static ivm_status push_timed(ivm_engine *engine, const ivm_batch *batch, ivm_stats *stats, ivm_error *error)
{
    uint64_t start = now();
    ivm_error cause;
    cause.status = IVM_OK;
    ivm_stats counted = { 0 };
    ivm__step step;
    ivm__step_init(&step, engine, &counted, &cause);
    ivm_status status = push(&step, batch);
    ivm__engine_settle(engine);
    if (status != IVM_OK) {
        return fail(error, &cause, status);
    }
    counted.nanoseconds = now() - start;
    counted.bytes_held = atomic_load(&engine->memory.bytes_held);
    stats_add(&engine->stats, &counted);
    if (stats) {
        *stats = counted;
    }
    return IVM_OK;
}

ivm_status ivm_push_batch(ivm_engine *engine, ivm_batch *batch, ivm_stats *stats, ivm_error *error)
{
    if (!engine || !batch) {
        ivm_batch_free(batch);
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_push_batch: engine and batch are wanted");
    }
    ivm_status status = batch_check(engine, batch, error);
    if (status == IVM_OK) {
        status = ivm__engine_enter(engine, error);
        if (status == IVM_OK) {
            status = push_timed(engine, batch, stats, error);
            ivm__engine_leave(engine);
        }
    }
    ivm_batch_free(batch);
    return status;
}

/* ---- Shapes ---------------------------------------------------------------------------------------------------------------------- */

/* The batch's parts of one table, as a batch of their own that borrows them. */
static ivm_status table_parts(ivm__step *step, const ivm_batch *batch, const ivm_table *table, ivm_batch *own)
{
    ivm__part **last = &own->parts;
    for (const ivm__part *part = batch->parts; part; part = part->next) {
        if (part->table_id != table->id) {
            continue;
        }
        ivm__part *copy = ivm__arena_allocate(step->arena, sizeof *copy);
        if (!copy) {
            return ivm__fail_memory(step->error);
        }
        *copy = *part;
        copy->next = NULL;
        *last = copy;
        last = &copy->next;
    }
    for (const ivm__stated *stated = batch->stated; stated; stated = stated->next) {
        if (stated->table_id == table->id) {
            own->stated = ivm__arena_allocate(step->arena, sizeof *stated);
            if (!own->stated) {
                return ivm__fail_memory(step->error);
            }
            *own->stated = (ivm__stated){ .table_id = table->id, .shape = stated->shape };
        }
    }
    return IVM_OK;
}

static ivm_status shape_find(const ivm_batch *batch, ivm_table *table, ivm_shape *shape, ivm_error *cause)
{
    ivm_engine *engine = table->engine;
    ivm_stats counted = { 0 };
    ivm__step step;
    ivm__step_init(&step, engine, &counted, cause);
    ivm_batch own = { .engine = engine };
    ivm_status status = table_parts(&step, batch, table, &own);
    if (status == IVM_OK) {
        status = ivm__stage_apply(&step, &own);
    }
    if (status == IVM_OK) {
        *shape = table->delta.shape;
    }
    ivm__stage_undo(engine);
    ivm__engine_settle(engine);
    return status;
}

ivm_status ivm_batch_shape(ivm_batch *batch, ivm_table *table, ivm_shape *shape, ivm_error *error)
{
    if (!batch || !table || !shape) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_batch_shape: batch, table and shape are wanted");
    }
    ivm_engine *engine = table->engine;
    IVM_TRY(batch_check(engine, batch, error));
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_error cause;
    cause.status = IVM_OK;
    ivm_status status = shape_find(batch, table, shape, &cause);
    ivm__engine_leave(engine);
    return status == IVM_OK ? IVM_OK : fail(error, &cause, status);
}
