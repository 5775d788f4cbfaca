/* Refreshing: a deferred view carried from the state of its last refresh to now, and with it the immediate views that read it.
 *
 *     lay what is pending over the sources -> run the program -> lift        then the views that read it, as in a push without a batch
 *     then   commit all, nothing is pending        or   undo all, everything still is
 *
 * A journal is told before the commit (journal.h). The step may use the facts that have been in force since the last refresh. Cost: a lookup a pending row, and the program's own over the
 * pending delta; rows that only came since are not looked up. */
#include "journal.h"
#include "pending.h"
#include "step.h"
#include "track.h"

static ivm_status refresh_run(ivm__step *step, ivm_view *view)
{
    uint64_t since = step->since;
    step->refreshing = true;
    step->since = view->clock;
    ivm_status status = ivm__pendings_lay(view, step);
    if (status == IVM_OK) {
        view->ran = true;
        status = ivm__program_run(&view->program, step);
    }
    ivm__pendings_lift(view);
    step->splits = NULL; /* they were of what was laid */
    step->refreshing = false;
    step->since = since;
    return status;
}

/* Of an immediate view: no view has changed, and the last changes are none. */
static ivm_status refresh(ivm__step *step, void *subject)
{
    ivm_view *view = subject;
    if (view->refresh == IVM_DEFERRED) {
        ivm_status status = refresh_run(step, view);
        if (status == IVM_OK) {
            status = ivm__views_run(step, false);
        }
        if (status == IVM_OK) {
            status = ivm__step_poll(step); /* the last point of return */
        }
        if (status == IVM_OK) {
            status = ivm__journal_refresh(view, step->error);
        }
        if (status != IVM_OK) {
            ivm__views_undo(step->engine);
            ivm__track_undo(step->engine);
            return status;
        }
        ivm__pendings_clear(view);
        view->clock = step->engine->pushes;
    }
    ivm__views_commit(step);
    ivm__track_commit(step->engine);
    return IVM_OK;
}

ivm_status ivm_refresh_view(ivm_view *view, ivm_stats *stats, ivm_error *error)
{
    if (!view) {
        return ivm__fail_null(error, "ivm_refresh_view", "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__step_do(engine, refresh, view, stats, error);
    ivm__engine_leave_telling(engine);
    return status;
}

ivm_status ivm_read_view_refreshed(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error)
{
    if (!view || !snapshot) {
        return ivm__fail_null(error, "ivm_read_view_refreshed", view ? "snapshot" : "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__step_do(engine, refresh, view, NULL, error);
    if (status == IVM_OK && ivm__snapshot_rows(view, snapshot) != IVM_OK) {
        status = ivm__fail_memory(error);
    }
    ivm__engine_leave_telling(engine);
    return status;
}
