/* Pushing: one batch carried through tables and views as a whole or not at all.
 *
 *     stage and apply to the tables, count who waits for parents (track.c), judge facts (enforce.c), run the views (step.c),
 *     keep rows that wait (transient.c), tell the journal (journal.h)
 *     then   commit all        or   undo all        and tell who asked to be told
 *
 * Everything that can fail stands before the first commit, the last look at whether the push was cancelled too. Cost beyond the batch's own: one call an operator and a few words a view, a fact
 * and a table that this push or the one before changed. */
#include "enforce.h"
#include "journal.h"
#include "stage.h"
#include "step.h"
#include "track.h"
#include "transient.h"

/* ---- The push -------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__push_step(ivm__step *step, void *subject)
{
    const ivm_batch *batch = subject;
    ivm_engine *engine = step->engine;
    ivm_status status = ivm__stage_apply(step, batch);
    if (status == IVM_OK) {
        status = ivm__track_step(step);
    }
    if (status == IVM_OK) {
        status = ivm__enforce_check(step);
    }
    if (status == IVM_OK) {
        status = ivm__views_run(step, true);
    }
    if (status == IVM_OK) {
        status = ivm__transient_step(step);
    }
    if (status == IVM_OK) {
        status = ivm__step_poll(step); /* the last point of return */
    }
    if (status == IVM_OK) {
        status = ivm__journal_push(step, batch);
    }
    if (status != IVM_OK) {
        ivm__views_undo(engine);
        ivm__track_undo(engine);
        ivm__stage_undo(engine);
        return status;
    }
    ivm__views_commit(step);
    ivm__track_commit(engine);
    ivm__stage_commit(engine);
    ivm__position_commit(engine, batch);
    engine->pushes++;
    step->stats->batches = 1;
    return IVM_OK;
}

/* The batch must be one of this engine that no mistake has spoilt. */
static ivm_status batch_check(const ivm_engine *engine, const ivm_batch *batch, ivm_error *error)
{
    if (batch->mistake.status != IVM_OK) {
        return ivm__cause_pass(error, &batch->mistake, batch->mistake.status);
    }
    if (batch->engine != engine) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "the batch was made for another engine");
    }
    return IVM_OK;
}

static ivm_status push(ivm_engine *engine, ivm_batch *batch, ivm_stats *stats, ivm_error *error)
{
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__step_do(engine, ivm__push_step, batch, stats, error);
    ivm__engine_leave_telling(engine);
    return status;
}

ivm_status ivm_push_batch(ivm_engine *engine, ivm_batch *batch, ivm_stats *stats, ivm_error *error)
{
    if (!engine || !batch) {
        ivm_batch_free(batch);
        return ivm__fail_null(error, "ivm_push_batch", engine ? "batch" : "engine");
    }
    ivm_status status = batch_check(engine, batch, error);
    if (status == IVM_OK) {
        ivm__journal *journal = engine->journal;
        status = journal && journal->submit ? journal->submit(journal, batch, stats, error) : push(engine, batch, stats, error);
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
        return ivm__fail_null(error, "ivm_batch_shape", !batch ? "batch" : !table ? "table" : "shape");
    }
    ivm_engine *engine = table->engine;
    IVM_TRY(batch_check(engine, batch, error));
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_error cause;
    cause.status = IVM_OK;
    ivm_status status = shape_find(batch, table, shape, &cause);
    ivm__engine_leave(engine);
    return status == IVM_OK ? IVM_OK : ivm__cause_pass(error, &cause, status);
}
