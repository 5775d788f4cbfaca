/* Terms dropped before they run. A term may be about to make an index, over all rows of a leaf, for a delta whose rows find no partner in another leaf:
 * where some index is missing and one that is there, and is asked by the driver's own columns, holds none of their keys, the term adds
 * nothing. Where no index is missing nobody asks: the first probe that finds nothing ends the term.
 *
 * Rows that an index holds without weight under the term's reading count as found. Cost: a lookup a key and index until one is found. */
#include "join_state.h"

/* Indexes at hand that have not been seen to hold a key of the driver's. */
typedef struct asking {
    ivm__join_run *run;
    uint32_t count;
    const ivm__index *indexes[IVM_JOIN_LEAVES_MAX];
    const ivm__join_probe *probes[IVM_JOIN_LEAVES_MAX];
} asking;

static bool asked_by_driver(const ivm__join_run *run, const ivm__join_probe *probe)
{
    uint32_t first = run->driver->columns_first, end = first + run->driver->columns_count;
    bool all = true;
    for (uint32_t k = 0; k < probe->keys_count; k++) {
        all &= probe->from[k] >= first && probe->from[k] < end;
    }
    return all;
}

/* False: no index is missing. Those that are there are left in the run's sources. */
static bool some_missing(ivm__join_run *run, const ivm__term *term, asking *it)
{
    bool missing = false;
    for (uint32_t i = 0; i < run->sources_count; i++) {
        const ivm__join_probe *probe = &run->order->probes[i];
        run->sources[i].index = NULL;
        if (probe->keys_count == 0 || term->readings[probe->leaf] == IVM__LEAF_DELTA) {
            continue;
        }
        ivm__index *index = ivm__join_index_find(&run->join->leaves[probe->leaf], probe);
        run->sources[i].index = index;
        missing |= !index;
        if (index && asked_by_driver(run, probe)) {
            it->probes[it->count] = probe;
            it->indexes[it->count++] = index;
        }
    }
    return missing;
}

static ivm_status holds_one(const asking *it, uint32_t at, const ivm__chunk *chunk, bool *holds)
{
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t position;
    ivm__row_id row;
    IVM_TRY(ivm__index_keys(it->indexes[at], it->run->step->scratch, chunk, it->probes[at]->from, false, &keys));
    *holds = ivm__index_probe(it->indexes[at], &keys, &probe, 1, &position, &row) > 0;
    return IVM_OK;
}

/* Leaves out the indexes that hold a key of the chunk. */
static ivm_status chunk_ask(asking *it, const ivm__chunk *chunk)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < it->count; i++) {
        bool holds;
        IVM_TRY(holds_one(it, i, chunk, &holds));
        it->indexes[left] = it->indexes[i];
        it->probes[left] = it->probes[i];
        left += !holds;
    }
    it->count = left;
    return IVM_OK;
}

ivm_status ivm__join_term_misses(ivm__join_run *run, const ivm__term *term, bool *misses)
{
    ivm__step *step = run->step;
    asking it;
    it.run = run;
    it.count = 0;
    *misses = false;
    if (!some_missing(run, term, &it) || step->initial) {
        return IVM_OK;
    }
    for (ivm__leaf_walk walk = { 0 }; it.count > 0;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        const ivm__chunk *compact;
        IVM_TRY(ivm__leaf_delta_next(run->driver, step, &walk, &compact));
        if (!compact) {
            break;
        }
        ivm__chunk *chunk = ivm__join_driver_chunk(run, compact);
        if (!chunk) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(chunk_ask(&it, chunk));
        ivm__arena_back(step->scratch, mark);
    }
    *misses = it.count > 0;
    return IVM_OK;
}
