/* A term on several threads: the chunks of its driver are items of a line (pool.h). Any thread carries one through the probes into its slot's
 * memory; what would be emitted is kept there, and the calling thread emits it when it is that chunk's turn. Probes only read, and all that
 * changes anything (the residual condition's failures, the readers above) happens on the calling thread in the chunks' order.
 *
 * A chunk that cannot be done so is left to the calling thread, which does it as if there were no other: where an index has no cover yet that
 * the probe would make, where memory is wanting, or where it becomes more chunks than a slot keeps. After the last of these reasons the rest of
 * the term is the calling thread's, too: its rows meet many others, and memory is to be bounded.
 *
 * Cost: a lock twice a chunk; the reader takes its rows from another core's cache. */
#include "join_state.h"

typedef struct spread_slot {
    ivm__join_run run;
    ivm__step step;
    ivm_error error;          /* not told: the calling thread comes to it by itself */
    ivm__leaf_walk at;        /* before the driver's chunk */
    const ivm__chunk *driver; /* NULL: could not be read */
    ivm__join_kept kept;
} spread_slot;

typedef struct spread {
    ivm__join_run *run;
    ivm__leaf_walk walk;
    spread_slot *slots;
} spread;

static bool item_next(void *context, uint32_t number)
{
    spread *it = context;
    spread_slot *slot = &it->slots[number];
    ivm__arena_back(slot->step.scratch, (ivm__arena_mark){ NULL, 0 });
    slot->at = it->walk;
    slot->driver = NULL;
    ivm_status status = ivm__leaf_delta_next(it->run->driver, &slot->step, &it->walk, &slot->driver);
    return status != IVM_OK || slot->driver;
}

static bool item_work(void *context, uint32_t number)
{
    spread_slot *slot = &((spread *)context)->slots[number];
    slot->run.rows_probed = slot->run.rows_matched = 0;
    slot->kept.count = 0;
    slot->kept.overfull = false;
    return slot->driver && ivm__join_run_driver(&slot->run, slot->driver) == IVM_OK;
}

static ivm_status item_take(void *context, uint32_t number)
{
    const spread *it = context;
    spread_slot *slot = &it->slots[number];
    ivm__arena *scratch = it->run->step->scratch;
    it->run->fold = slot->run.fold;
    for (uint32_t i = 0; i < slot->kept.count; i++) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        IVM_TRY(ivm__join_run_emit(it->run, slot->kept.chunks[i]));
        ivm__arena_back(scratch, mark);
    }
    it->run->rows_probed += slot->run.rows_probed;
    it->run->rows_matched += slot->run.rows_matched;
    return IVM_OK;
}

static bool slots_make(spread *it)
{
    ivm__step *step = it->run->step;
    uint32_t count = ivm__pool_slots(step->pool);
    it->slots = ivm__arena_allocate(step->scratch, count * sizeof *it->slots);
    for (uint32_t i = 0; it->slots && i < count; i++) {
        spread_slot *slot = &it->slots[i];
        slot->run = *it->run;
        slot->step = *step;
        slot->run.step = &slot->step;
        slot->run.kept = &slot->kept;
        slot->step.scratch = ivm__pool_scratch(step->pool, i);
        slot->step.arena = NULL;
        slot->step.stats = NULL;
        slot->step.error = &slot->error;
        slot->kept.overfull = false;
    }
    return it->slots != NULL;
}

bool ivm__join_spreads(const ivm__join_run *run)
{
    bool indexed = true;
    for (uint32_t i = 0; i + 1 < run->join->leaves_count; i++) {
        indexed &= run->sources[i].index != NULL;
    }
    return indexed && ivm__pool_spreads(run->step->pool, run->driver->delta_rows);
}

ivm_status ivm__join_spread(ivm__join_run *run)
{
    spread it = { .run = run };
    const ivm__line line = { &it, item_next, item_work, item_take };
    if (!slots_make(&it)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (;;) {
        uint32_t left;
        IVM_TRY(ivm__pool_line(run->step->pool, &line, &left));
        if (left == IVM__SLOT_NONE) {
            return IVM_OK;
        }
        it.walk = it.slots[left].at;
        if (it.slots[left].kept.overfull) {
            return ivm__join_drive(run, &it.walk, false);
        }
        IVM_TRY(ivm__join_drive(run, &it.walk, true));
    }
}
