/* Who waits under a fact, loaded: see load_table.h. What the counts come to is added up, and held keys of rows that are kept are counted again when
 * they are first asked for. */
#include "load_table.h"
#include "save_table.h"
#include "track_inside.h"

static ivm_status keys_load(const ivm_fact *fact, ivm__zset *keys, ivm__step *step, ivm__feed *from)
{
    IVM_TRY(ivm__track_keys(fact, keys));
    ivm__row_shape shape = ivm__track_shape(fact, keys->store.layout);
    return ivm__zset_load(keys, &shape, step, from);
}

static ivm_status track_fill(const ivm_fact *fact, ivm__step *step, ivm__feed *from, ivm__track *track)
{
    if (fact->track->waiting.whole) {
        IVM_TRY(keys_load(fact, &track->waiting, step, from));
        track->orphans = track->orphans_before = ivm__store_weights_sum(&track->waiting.store);
    }
    return fact->child->transient && fact->track->held.whole ? keys_load(fact, &track->held, step, from) : IVM_OK;
}

ivm_status ivm__track_load(const ivm_fact *fact, ivm__step *step, ivm__feed *from, ivm__track **made)
{
    assert(fact->track);
    ivm__track *track = ivm__allocate_zeroed(step->memory, sizeof *track);
    if (!track) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = track_fill(fact, step, from, track);
    if (status != IVM_OK) {
        ivm__track_discard(step->engine, track);
        return status;
    }
    *made = track;
    return IVM_OK;
}
