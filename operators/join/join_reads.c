/* What the probes of a run read by themselves, planned once a term, and memory sent for before they ask.
 *
 * A probe by a unique key of which plain columns are read finds and reads in one pass; where it is one column, from a cover (cover.h). Few rows of a
 * driver go through all probes one after the other, each waiting for its slots and its rows: those of every probe whose keys the driver has are
 * sent for at once, so that a star's fact waits once, or twice where there are no covers. Their keys are kept for the probes, which use them as long
 * as no row of the driver's is dropped. */
#include "join_state.h"

#define AHEAD_ROWS 32u /* in larger chunks each probe has enough keys of its own to wait for together */

/* Whether a cover of the source's index answers as its rows would: keyed rows weigh 1, and none of them was touched, or whatever the step changed is
 * set aside, so that all that the index holds is there. */
static bool covers(const ivm__probe_source *source)
{
    const ivm__store *store = source->store;
    if (!source->in_place || store->rows_live < IVM__COVER_ROWS_MIN) {
        return false;
    }
    bool untouched = store->touched_count == 0 && (source->reading == IVM__READ_CUR || store->rows_end == store->step_end);
    return untouched || (source->leaf->prune.whole && source->index->doubles == 0);
}

/* False: too many, or not of the kind that a probe reads by itself. */
static bool columns_find(const ivm__join_run *run, uint32_t depth, ivm__probe_reads *plan)
{
    const ivm__probe_source *source = &run->sources[depth];
    const uint8_t *last = run->order->last;
    for (uint32_t i = 0; i < source->leaf->kept_count; i++) {
        uint32_t c = source->leaf->columns_first + source->leaf->kept[i];
        if (last[c] < IVM__READ_BEHIND(depth)) {
            continue;
        }
        if (plan->count == IVM__READ_COLUMNS_MAX) {
            return false;
        }
        plan->columns[plan->count] = ivm__leaf_store_column(source->leaf, source->store, i);
        plan->targets[plan->count++] = c;
    }
    return ivm__index_reads(source->index, plan->columns, plan->count);
}

const ivm__probe_reads *ivm__join_reads(ivm__join_run *run, uint32_t depth)
{
    ivm__probe_source *source = &run->sources[depth];
    ivm__probe_reads *plan = &source->reads;
    assert(source->index);
    if (!plan->known) {
        plan->count = 0;
        plan->cover = NULL;
        plan->possible = columns_find(run, depth, plan);
        plan->covered = plan->possible && plan->count == 1 && covers(source);
        plan->known = true;
    }
    return plan;
}

ivm_status ivm__join_reads_cover(ivm__join_run *run, uint32_t depth, const ivm__keys *keys)
{
    ivm__probe_reads *plan = &run->sources[depth].reads;
    ivm__index *index = run->sources[depth].index;
    assert(plan->known);
    if (!plan->covered || plan->cover || keys->skip) {
        return IVM_OK;
    }
    if (run->kept) {
        return ivm__index_cover_find(index, plan->columns[0], &plan->cover) ? IVM_OK : IVM_UNSUPPORTED;
    }
    return ivm__index_cover(index, plan->columns[0], &plan->cover);
}

/* ---- Ahead --------------------------------------------------------------------------------------------------------------------------- */

static bool keys_carried(const ivm__join_probe *probe, const ivm__chunk *chunk)
{
    bool carried = true;
    for (uint32_t k = 0; k < probe->keys_count; k++) {
        carried &= chunk->columns[probe->from[k]].cells != NULL;
    }
    return carried;
}

/* Sends for lines of a cover, where there is one, or for slots. */
static void lines_send(ivm__join_run *run, uint32_t depth, const ivm__keys *keys)
{
    const ivm__probe_reads *plan = ivm__join_reads(run, depth);
    const ivm__index *index = run->sources[depth].index;
    ivm__cover *cover = NULL;
    if (plan->covered && !keys->skip && ivm__index_cover_find(index, plan->columns[0], &cover) && cover) {
        run->sources[depth].reads.cover = cover;
        ivm__cover_send(cover, keys);
    } else {
        ivm__index_send_slots(index, keys);
    }
}

ivm_status ivm__join_send_ahead(ivm__join_run *run, const ivm__chunk *chunk)
{
    ivm__arena *scratch = run->step->scratch;
    run->ahead_of = NULL;
    if (chunk->rows_count > AHEAD_ROWS || run->sources_count < 2) {
        return IVM_OK;
    }
    ivm__keys *keys = ivm__arena_allocate(scratch, run->sources_count * sizeof *keys);
    if (!keys) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < run->sources_count; i++) {
        const ivm__probe_source *source = &run->sources[i];
        keys[i].rows_count = 0;
        if (source->index && keys_carried(source->probe, chunk)) {
            IVM_TRY(ivm__index_keys(source->index, scratch, chunk, source->probe->from, false, &keys[i]));
            lines_send(run, i, &keys[i]);
        }
    }
    for (uint32_t i = 0; i < run->sources_count; i++) {
        if (keys[i].rows_count && !run->sources[i].reads.cover) {
            ivm__index_send_rows(run->sources[i].index, &keys[i]);
        }
    }
    run->ahead_of = chunk;
    run->ahead = keys;
    return IVM_OK;
}

const ivm__keys *ivm__join_keys_ahead(const ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk)
{
    return chunk == run->ahead_of && run->ahead[depth].rows_count ? &run->ahead[depth] : NULL;
}
