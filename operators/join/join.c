/* The join operator: a step of it, from its leaves' deltas to the delta of their join. See join.h for the equation.
 *
 *     begin: what foreign keys set aside      consume: gather      finish: settle the leaves -> ask the planner -> run its terms -> judge failures
 *     commit or undo */
#include "join_state.h"

static ivm_status memory_fail(ivm_status status, ivm__step *step)
{
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

static ivm_status join_begin(ivm__operator *self, ivm__step *step)
{
    ivm__join *join = (ivm__join *)self;
    ivm__leaf_prune prunes[IVM_JOIN_LEAVES_MAX];
    memset(prunes, 0, join->leaves_count * sizeof *prunes);
    if (!step->initial) {
        IVM_TRY(join->planner.prune(join->planner.state, step, prunes, join->leaves_count));
    }
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__leaf_begin(&join->leaves[i], &prunes[i]);
    }
    return IVM_OK;
}

static ivm_status join_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    ivm__join *join = (ivm__join *)self;
    assert(port < join->leaves_count && !ivm__leaf_is_bare(&join->leaves[port]));
    assert(chunk->columns_count == join->leaves[port].columns_count);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = ivm__leaf_consume(&join->leaves[port], step, chunk);
    ivm__arena_back(step->scratch, mark);
    return memory_fail(status, step);
}

static bool insert_only(const ivm__join_leaf *leaf, const ivm__step *step)
{
    ivm__source source = ivm__leaf_is_bare(leaf) || !leaf->scan ? leaf->bare : ivm__scan_source(leaf->scan);
    return source.table && ivm__source_delta_shape(step, source) != IVM_MIXED;
}

static ivm_status plan_terms(ivm__join *join, ivm__step *step)
{
    ivm__leaf_delta deltas[IVM_JOIN_LEAVES_MAX];
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__join_leaf *leaf = &join->leaves[i];
        IVM_TRY(ivm__leaf_settle(join, leaf, step));
        deltas[i] = (ivm__leaf_delta){
            .rows_count = leaf->delta_rows,
            .rows_live = ivm__leaf_is_bare(leaf) || leaf->keeps ? ivm__leaf_store(leaf)->rows_live : 0,
            .table_insert_only = insert_only(leaf, step),
            .set_aside = leaf->prune.whole || (leaf->prune.aside && leaf->delta_rows == 0),
            .entry = leaf->prune.entry,
            .fresh = leaf->prune.fresh,
            .gone = leaf->prune.gone,
            .changed = leaf->prune.changed,
            .awaited = leaf->prune.awaited,
            .kept = leaf->prune.kept,
        };
    }
    join->planner_begun = true;
    return join->planner.begin(join->planner.state, step, deltas, join->leaves_count);
}

static ivm_status finish(ivm__join *join, ivm__step *step)
{
    ivm__term term;
    IVM_TRY(plan_terms(join, step));
    join->rows_probed = join->rows_matched = 0;
    while (join->planner.next(join->planner.state, &term)) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__join_term(join, step, &term));
        ivm__arena_back(step->scratch, mark);
    }
    return ivm__failures_check(&join->failures, step, join->head.view, "a join's condition");
}

static ivm_status join_finish(ivm__operator *self, ivm__step *step)
{
    return memory_fail(finish((ivm__join *)self, step), step);
}

static void join_commit(ivm__operator *self)
{
    ivm__join *join = (ivm__join *)self;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__leaf_commit(&join->leaves[i]);
    }
    if (join->planner_begun) {
        join->planner.commit(join->planner.state, join->rows_probed, join->rows_matched);
    }
    join->planner_begun = false;
}

static void join_undo(ivm__operator *self)
{
    ivm__join *join = (ivm__join *)self;
    ivm__failures_deinit(&join->failures);
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__leaf_undo(&join->leaves[i]);
    }
    if (join->planner_begun) {
        join->planner.undo(join->planner.state);
    }
    join->planner_begun = false;
}

const ivm__operator_class ivm__join_class = {
    .name = "join",
    .begin = join_begin,
    .consume = join_consume,
    .finish = join_finish,
    .commit = join_commit,
    .undo = join_undo,
    .free = ivm__join_free,
    .save = ivm__join_save,
    .load = ivm__join_load,
    .settle = ivm__join_settle,
};
