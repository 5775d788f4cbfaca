/* Audit: a view computed anew and compared with what it holds.
 *
 *     view's tree -> a second program -> an initial step over the sources -> its rows - the view's rows
 *
 * An initial step knows no before, so that no foreign key is used. The immediate views that the view reads are computed anew in the order of
 * their making, each one's new rows standing in for those it holds while its readers run; deferred ones are read as they stand. A deferred
 * view is judged by the state of its last refresh: what is pending is laid over its sources, and they are read as they were before it; of
 * the views among them no more is known of that state than the rows they held. Nothing stays of it: programs, indexes that came and all memory are given
 * back. Cost: that of making the views, and their memory for as long. */
#include "pending.h"
#include "plan.h"

/* A view and its second program; `stands` is the result that the view has otherwise. */
typedef struct recomputation {
    ivm_view *view;
    ivm__planned planned;
    ivm__program program;
    ivm__store *stands; /* NULL: the view still has it */
} recomputation;

/* In the order of their making; the last is the one that is audited. */
typedef struct audit {
    recomputation *views;
    uint32_t count;
    ivm__step step;
} audit;

/* ---- What is computed anew ------------------------------------------------------------------------------------------------------------- */

static bool is_among(ivm_view *const *views, uint32_t count, const ivm_view *view)
{
    for (uint32_t i = 0; i < count; i++) {
        if (views[i] == view) {
            return true;
        }
    }
    return false;
}

/* The view and, of an immediate one, the immediate views below it. NULL: out of memory. */
static ivm_view **list_below(ivm_view *view, ivm__arena *arena, uint32_t *count)
{
    uint32_t most = 0;
    for (const ivm_view *other = view->engine->views; other; other = other->next) {
        most++;
    }
    ivm_view **list = ivm__arena_allocate(arena, most * sizeof(ivm_view *));
    if (!list) {
        return NULL;
    }
    list[0] = view;
    *count = 1;
    for (uint32_t at = 0; at < *count && view->refresh == IVM_IMMEDIATE; at++) {
        for (uint32_t i = 0; i < list[at]->views_count; i++) {
            ivm_view *below = list[at]->views[i];
            if (below->refresh == IVM_IMMEDIATE && !is_among(list, *count, below)) {
                list[(*count)++] = below;
            }
        }
    }
    return list;
}

static ivm_status check_kept(const ivm_view *view, ivm_error *error)
{
    for (uint32_t i = 0; i < view->tables_count; i++) {
        if (view->tables[i]->transient) {
            return ivm__fail(error, IVM_UNSUPPORTED, "view %s reads table %s, whose rows are not kept", view->name, view->tables[i]->name);
        }
    }
    return IVM_OK;
}

static ivm_status audit_list(audit *it, ivm_view *view)
{
    ivm_engine *engine = view->engine;
    uint32_t count = 0;
    ivm_view **below = list_below(view, it->step.arena, &count);
    recomputation *views = ivm__arena_allocate(it->step.arena, count * sizeof *views);
    if (!below || !views) {
        return ivm__fail_memory(it->step.error);
    }
    it->views = views;
    for (ivm_view *other = engine->views; other; other = other->next) {
        if (is_among(below, count, other)) {
            IVM_TRY(check_kept(other, it->step.error));
            it->views[it->count++] = (recomputation){ .view = other,
                                                      .planned = { .node = other->planned->node, .engine = engine },
                                                      .program = { .memory = &engine->memory } };
        }
    }
    assert(it->count == count && it->views[count - 1].view == view);
    return IVM_OK;
}

/* ---- Computing ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status compute(recomputation *one, ivm__step *step)
{
    ivm_view *view = one->view;
    IVM_TRY(ivm__compile(view->engine, view->name, &one->planned, &one->program, step->error));
    IVM_TRY(ivm__program_run(&one->program, step));
    ivm__program_commit(&one->program);
    return IVM_OK;
}

/* From the state of the last refresh. */
static ivm_status compute_past(recomputation *one, ivm__step *step)
{
    ivm_status status = ivm__pendings_lay(one->view, step);
    step->past = true;
    if (status == IVM_OK) {
        status = compute(one, step);
    }
    step->past = false;
    ivm__pendings_lift(one->view);
    return status;
}

static ivm_status audit_compute(audit *it)
{
    recomputation *last = &it->views[it->count - 1];
    if (last->view->refresh == IVM_DEFERRED) {
        return compute_past(last, &it->step);
    }
    for (recomputation *one = it->views; one < last; one++) {
        IVM_TRY(compute(one, &it->step));
        one->stands = one->view->program.result;
        one->view->program.result = one->program.result;
    }
    return compute(last, &it->step);
}

/* Puts everything back, however far it came. */
static void audit_end(audit *it)
{
    for (uint32_t i = it->count; i > 0; i--) {
        recomputation *one = &it->views[i - 1];
        if (one->stands) {
            one->view->program.result = one->stands;
        }
        ivm__program_undo(&one->program);
        ivm__program_deinit(&one->program);
        ivm__planned_deinit(&one->planned, one->program.memory);
    }
}

/* ---- Comparing ------------------------------------------------------------------------------------------------------------------------- */

/* Over all columns, in their order. */
static ivm_status index_whole(ivm__store *rows, const ivm__step *step, ivm__index **whole)
{
    uint32_t count = rows->layout->columns_count;
    uint32_t *columns = ivm__arena_allocate(step->arena, count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < count; c++) {
        columns[c] = c;
    }
    return ivm__step_index(step, rows, columns, count, true, whole);
}

/* rows -= held, as a step of `rows` that is not committed. */
static ivm_status subtract(ivm__store *rows, const ivm__store *held, ivm__step *step)
{
    ivm__index *whole;
    IVM_TRY(index_whole(rows, step, &whole));
    for (uint32_t next = 0;;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_chunk(held, step->scratch, IVM__READ_CUR, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(ivm__store_add(rows, whole, step->scratch, chunk, NULL, -1));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status audit_compare(const audit *it, ivm_snapshot **differences)
{
    const recomputation *last = &it->views[it->count - 1];
    ivm__step step = it->step;
    ivm_status status = subtract(last->program.result, last->view->program.result, &step);
    if (status == IVM_OK) {
        status = ivm__snapshot_copy(last->view, last->program.result, differences);
    }
    return ivm__step_status(&it->step, status);
}

/* ---- The call -------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status run(ivm_view *view, ivm_snapshot **differences, ivm_error *error)
{
    ivm_stats ignored = { 0 };
    ivm__index_marks marks = { 0 };
    audit it = { 0 };
    ivm__step_init(&it.step, view->engine, &ignored, error);
    it.step.initial = true;
    if (ivm__indexes_mark(view->engine, &marks) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    ivm_status status = audit_list(&it, view);
    if (status == IVM_OK) {
        status = audit_compute(&it);
    }
    if (status == IVM_OK) {
        status = audit_compare(&it, differences);
    }
    audit_end(&it);
    ivm__indexes_back(&marks);
    return status;
}

ivm_status ivm_audit_view(ivm_view *view, ivm_snapshot **differences, ivm_error *error)
{
    if (!view || !differences) {
        return ivm__fail_null(error, "ivm_audit_view", view ? "differences" : "view");
    }
    ivm_engine *engine = view->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = run(view, differences, error);
    ivm__engine_settle(engine);
    ivm__engine_leave(engine);
    return status;
}
