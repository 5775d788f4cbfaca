/* A join's indexes ahead of the terms that read them: built outside any step, so that no push waits for one, and looked up for explain.
 *
 *     for each driver, each probe of its order:   rows of the leaf, loaded if it keeps none yet   ->   the index over the probe's columns
 *
 * What a term would make when it first reads is made by the same code. Cost: a pass over the leaf's rows for each index that is not there. */
#include "join_state.h"

static ivm_status driver_prepare(ivm__join_run *run, uint32_t driver)
{
    const ivm__join_order *order = &run->join->orders[driver];
    for (uint32_t i = 0; i < run->sources_count; i++) {
        if (order->probes[i].keys_count) {
            run->sources[i].index = NULL;
            IVM_TRY(ivm__join_source_prepare(run, &order->probes[i], IVM__LEAF_CUR, &run->sources[i]));
        }
    }
    return IVM_OK;
}

static ivm_status drivers_prepare(ivm__join_run *run, uint64_t drivers)
{
    for (; drivers; drivers &= drivers - 1) {
        assert((uint32_t)__builtin_ctzll(drivers) < run->join->leaves_count);
        IVM_TRY(driver_prepare(run, (uint32_t)__builtin_ctzll(drivers)));
    }
    return IVM_OK;
}

ivm_status ivm__join_prepare(ivm__operator *self, ivm__step *step, uint64_t drivers)
{
    static const ivm__leaf_prune nothing;
    ivm__join *join = (ivm__join *)self;
    assert(self->class == &ivm__join_class && !step->initial);
    ivm__join_run run;
    run.join = join;
    run.step = step;
    run.sources_count = join->leaves_count - 1;
    run.kept = NULL;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__leaf_begin(&join->leaves[i], &nothing);
    }
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = drivers_prepare(&run, drivers);
    ivm__arena_back(step->scratch, mark);
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__leaf_undo(&join->leaves[i]); /* rows that were loaded are committed */
    }
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

ivm__index *ivm__join_index_find(const ivm__join_leaf *leaf, const ivm__join_probe *probe)
{
    uint32_t columns[IVM_TABLE_COLUMNS_MAX];
    if (!ivm__leaf_is_bare(leaf)) {
        return leaf->keeps ? ivm__store_index_find(&leaf->rows.store, probe->place, probe->keys_count) : NULL;
    }
    assert(probe->keys_count <= IVM_TABLE_COLUMNS_MAX || ivm__source_is_present(leaf->bare));
    if (ivm__source_is_present(leaf->bare)) {
        return ivm__store_index_find(ivm__source_store(leaf->bare), probe->to, probe->keys_count);
    }
    for (uint32_t k = 0; k < probe->keys_count; k++) {
        columns[k] = ivm__source_column(leaf->bare, probe->to[k]);
    }
    return ivm__store_index_find(ivm__source_store(leaf->bare), columns, probe->keys_count);
}

bool ivm__join_index_of(const ivm__operator *self, uint32_t driver, uint32_t leaf, ivm__join_index *found)
{
    const ivm__join *join = (const ivm__join *)self;
    assert(self->class == &ivm__join_class && driver < join->leaves_count && leaf < join->leaves_count);
    if (join->leaves[leaf].transient && !ivm__leaf_is_bare(&join->leaves[leaf])) {
        return false; /* its rows are loaded anew by each step that reads them */
    }
    for (uint32_t i = 0; i + 1 < join->leaves_count; i++) {
        const ivm__join_probe *probe = &join->orders[driver].probes[i];
        if (probe->leaf == leaf && probe->keys_count) {
            *found = (ivm__join_index){ leaf, probe->keys_count, probe->to, ivm__join_index_find(&join->leaves[leaf], probe) };
            return true;
        }
    }
    return false;
}
