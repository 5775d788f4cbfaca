/* The end of a restore in several streams: rows are there, views are not.
 *
 *     rows, programs and tracks change places with the engine's -> enforced facts judged, tracked ones counted -> views filled, in their order
 *     -> done        or  -> all change places again
 *
 * Views are not filled by pushes: between two partitions a promise of a foreign key may be broken, and a view that relies on it would be wrong for good. Where a view has
 * a frontier, what is below it finds no rows, and the frontier itself tells those above of what was loaded. Cost: the views computed once. */
#include "partition_restore.h"

#include "enforce.h"
#include "load_partition.h"
#include "track.h"

static ivm_status rows_end(ivm_restoring *it, ivm__step *step)
{
    uint32_t nth = 0;
    for (const ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->partitioned || table->transient) {
            ivm_status status = ivm__table_parts_end(table, step, &it->beside.tables[nth]);
            IVM_TRY(status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error));
        }
    }
    for (uint32_t i = 0; i < it->frontiers.count; i++) {
        const ivm__frontier *frontier = &it->frontiers.list[i];
        ivm__frontier_stand(frontier, &it->beside.views[frontier->view_ordinal].program);
    }
    return IVM_OK;
}

static ivm_status facts_judge(const ivm_engine *engine, ivm__step *step)
{
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        if (fact->trust == IVM_ENFORCED && !fact->child->transient) {
            IVM_TRY(ivm__enforce_present(step->scratch, fact, step->error));
        }
        if (ivm__track_needed(fact)) {
            IVM_TRY(ivm__track_make(fact, &step->cancel, step->error));
        }
    }
    return IVM_OK;
}

static ivm_status views_fill(const ivm_engine *engine, ivm_error *error)
{
    for (ivm_view *view = engine->views; view; view = view->next) {
        IVM_TRY(ivm__view_fill(view, error));
    }
    return IVM_OK;
}

/* Rows of transient tables that wait, and none, change places: while views are filled there are none, since what has been made of them is in the
 * frontiers already. */
static void waiting_exchange(ivm_restoring *it)
{
    uint32_t nth = 0;
    for (ivm_table *table = it->engine->tables; table; table = table->next, nth++) {
        if (table->transient) {
            ivm__table_exchange(table, &it->none[nth]);
        }
    }
}

/* All is in place but what says so. */
static void settle(const ivm_restoring *it)
{
    ivm_engine *engine = it->engine;
    uint32_t nth = 0;
    for (ivm_table *table = engine->tables; table; table = table->next, nth++) {
        table->stale = false;
        table->came = it->came[nth];
    }
    for (ivm_view *view = engine->views; view; view = view->next) {
        view->program.result->overwrites = view->readers_count == 0;
        ivm__pendings_clear(view);
        view->clock = engine->pushes;
    }
    memcpy(engine->position, it->beside.position, sizeof engine->position);
    engine->position_size = it->beside.position_size;
    engine->facts_version++;
}

ivm_status ivm__partitions_fill(ivm_restoring *it, ivm__step *step)
{
    IVM_TRY(rows_end(it, step));
    ivm__beside_exchange(&it->beside);
    ivm_status status = facts_judge(it->engine, step);
    waiting_exchange(it);
    if (status == IVM_OK) {
        status = views_fill(it->engine, step->error);
    }
    waiting_exchange(it);
    if (status != IVM_OK) {
        ivm__beside_exchange(&it->beside);
        return status;
    }
    settle(it);
    return IVM_OK;
}
