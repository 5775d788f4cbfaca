/* Tracked facts, the step: children without a parent come and go, parents come to those who wait and leave those who hold them.
 *
 *     parent has the key before and after     nothing to do: all but the lookup is saved
 *     fresh       they wait no more           gone        all who hold it wait          neither before nor after        they come and go
 *
 * The keys of the four are disjoint, so that their order does not matter. See track.h. */
#include "track_inside.h"
#include "weights.h"

static bool parents_leave(const ivm_fact *fact)
{
    return !fact->parent->append_only;
}

/* Rows that are not kept must be counted as they come. */
static bool holds_from_the_start(const ivm_fact *fact)
{
    return fact->child->transient && parents_leave(fact);
}

bool ivm__track_needed(const ivm_fact *fact)
{
    return fact->trust == IVM_TRACKED || (fact->trust == IVM_ENFORCED && holds_from_the_start(fact));
}

/* ---- Children without a parent ------------------------------------------------------------------------------------------------------- */

/* Adds the chunk's rows that have no parent, neither before nor after. `columns`: where their keys are. */
static ivm_status orphans_add(const ivm_fact *fact, ivm__arena *scratch, const ivm__chunk *chunk, const uint32_t *columns)
{
    const ivm__index *parents = fact->parent->key_index;
    ivm__zset *waiting = &fact->track->waiting;
    ivm__keys keys;
    ivm__chunk *orphans;
    uint32_t absent[IVM__CHUNK_ROWS];
    IVM_TRY(ivm__index_keys(parents, scratch, chunk, columns, false, &keys));
    uint32_t count = ivm__index_absent(parents, &keys, absent);
    if (count == 0) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_chosen(scratch, chunk, columns, waiting->store.layout, absent, count, &orphans));
    return ivm__zset_add(waiting, scratch, orphans, NULL, 1);
}

/* The same for the rows that a walk gives. */
static ivm_status orphans_add_rows(const ivm_fact *fact, ivm__arena *scratch, const ivm__key_source *child, ivm__track_walk *walk)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    while ((count = walk(child, &next, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *keys;
        if (ivm__cancel_asked(child->cancel)) {
            return IVM_CANCELLED;
        }
        IVM_TRY(ivm__track_rows(child, scratch, rows, weights, count, &keys));
        if (keys) {
            IVM_TRY(orphans_add(fact, scratch, keys, NULL));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* What came and went of the child: as staging has it, but where rows count once it takes the store to tell. */
static ivm_status children_step(ivm__step *step, const ivm_fact *fact, const ivm__key_source *child)
{
    const ivm__table_delta *delta = &fact->child->delta;
    if (child->once) {
        return orphans_add_rows(fact, step->scratch, child, ivm__track_changed);
    }
    for (uint32_t i = 0; i < delta->chunks_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(orphans_add(fact, step->scratch, delta->chunks[i], child->columns));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

/* ---- Parents that come and go -------------------------------------------------------------------------------------------------------- */

static ivm_status fresh_release(const ivm_fact *fact, ivm__arena *scratch, const ivm__chunk *keys)
{
    ivm__zset *waiting = &fact->track->waiting;
    ivm__track_found found;
    IVM_TRY(ivm__track_find(waiting, scratch, keys, &found));
    for (uint32_t i = 0; i < found.count; i++) {
        ivm__weight weight = ivm__store_weight(&waiting->store, found.rows[i], IVM__READ_CUR);
        if (weight != 0) {
            IVM_TRY(ivm__store_weight_add(&waiting->store, found.rows[i], -weight));
        }
    }
    return IVM_OK;
}

static ivm_status gone_wait(const ivm_fact *fact, ivm__arena *scratch, const ivm__chunk *keys)
{
    ivm__chunk *orphans;
    IVM_TRY(ivm__track_weigh(&fact->track->held, scratch, keys, &orphans));
    return orphans ? ivm__zset_add(&fact->track->waiting, scratch, orphans, NULL, 1) : IVM_OK;
}

typedef ivm_status parents_work(const ivm_fact *fact, ivm__arena *scratch, const ivm__chunk *keys);

static ivm_status parents_each(ivm__step *step, const ivm_fact *fact, const ivm__split *split, ivm__fate fate, parents_work *work)
{
    ivm__key_source parent = ivm__track_parent(fact);
    ivm__row_id rows[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    while ((count = ivm__split_rows(split, fate, &next, rows, NULL)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *keys;
        IVM_TRY(ivm__track_rows(&parent, step->scratch, rows, NULL, count, &keys));
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(work(fact, step->scratch, keys));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status parents_step(ivm__step *step, const ivm_fact *fact)
{
    bool wait = fact->track->waiting.store.rows_live > 0;
    const ivm__split *split;
    if (fact->parent->delta.shape == IVM_UNCHANGED || (fact->parent->delta.shape == IVM_INSERT_ONLY && !wait)) {
        return IVM_OK;
    }
    IVM_TRY(ivm__split_of(step, fact->parent, &split));
    if (split->fresh > 0 && wait) {
        IVM_TRY(parents_each(step, fact, split, IVM__FRESH, fresh_release));
    }
    if (split->gone > 0) {
        IVM_TRY(ivm__track_reach(fact, step));
        IVM_TRY(parents_each(step, fact, split, IVM__GONE, gone_wait));
    }
    return IVM_OK;
}

/* ---- The step ------------------------------------------------------------------------------------------------------------------------ */

/* Of a transient child, all that came and went. */
static ivm_status held_add_delta(ivm__step *step, const ivm_fact *fact, const ivm__key_source *child)
{
    const ivm__table_delta *delta = &fact->child->delta;
    ivm__zset *held = &fact->track->held;
    for (uint32_t i = 0; i < delta->chunks_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        uint32_t whole[IVM__CHUNK_ROWS], count = 0;
        ivm__keys keys;
        ivm__chunk *chosen;
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(ivm__index_keys(held->whole, step->scratch, delta->chunks[i], child->columns, false, &keys));
        for (uint32_t row = 0; row < keys.rows_count; row++) {
            whole[count] = row;
            count += !(keys.skip && keys.skip[row]);
        }
        if (count > 0) {
            IVM_TRY(ivm__track_chosen(step->scratch, delta->chunks[i], child->columns, held->store.layout, whole, count, &chosen));
            IVM_TRY(ivm__zset_add(held, step->scratch, chosen, NULL, 1));
        }
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status held_step(ivm__step *step, const ivm_fact *fact, const ivm__key_source *child)
{
    ivm__track *track = fact->track;
    if (!track->held.whole) {
        return IVM_OK;
    }
    if (fact->child->transient) {
        return held_add_delta(step, fact, child);
    }
    ivm__key_source covered = *child;
    covered.end = track->held_end;
    return ivm__track_add(&covered, ivm__track_touched, 0, step->scratch, &track->held);
}

/* held first: it is asked about keys that go. */
static ivm_status counts_step(ivm__step *step, const ivm_fact *fact)
{
    ivm__key_source child;
    IVM_TRY(ivm__track_child(fact, step->scratch, &child));
    child.cancel = &step->cancel;
    IVM_TRY(held_step(step, fact, &child));
    if (fact->trust != IVM_TRACKED) {
        return IVM_OK;
    }
    IVM_TRY(parents_step(step, fact));
    return fact->child->delta.shape == IVM_UNCHANGED ? IVM_OK : children_step(step, fact, &child);
}

static ivm__weight orphans_change(const ivm__store *waiting)
{
    ivm__row_id rows[64];
    ivm__weight weights[64], sum = 0;
    uint32_t next = 0, count;
    while ((count = ivm__store_changes(waiting, &next, 64, rows, weights)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            sum += weights[i];
        }
    }
    return sum;
}

static ivm_status fact_step(ivm__step *step, const ivm_fact *fact)
{
    ivm__track *track = fact->track;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = counts_step(step, fact);
    ivm__arena_back(step->scratch, mark);
    IVM_TRY(ivm__step_status(step, status));
    track->orphans += orphans_change(&track->waiting.store);
    IVM_TRY(ivm__track_fits(fact, &track->waiting, step->error));
    return ivm__track_fits(fact, &track->held, step->error);
}

ivm_status ivm__track_step(ivm__step *step)
{
    for (const ivm_fact *fact = step->engine->facts; fact; fact = fact->next) {
        bool changed = fact->child->delta.shape != IVM_UNCHANGED || fact->parent->delta.shape != IVM_UNCHANGED;
        if (fact->track && changed) {
            IVM_TRY(fact_step(step, fact));
        }
    }
    return IVM_OK;
}

static void answer_forget(ivm__track *track)
{
    track->asked = NULL;
    track->answer = (ivm__held){ 0 };
}

static void track_commit(ivm__track *track)
{
    answer_forget(track);
    track->held_end_before = track->held_end;
    track->orphans_before = track->orphans;
    if (track->waiting.whole) {
        ivm__store_commit(&track->waiting.store);
    }
    if (track->held.whole) {
        ivm__store_commit(&track->held.store);
    }
}

void ivm__track_commit(ivm_engine *engine)
{
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        if (fact->track) {
            track_commit(fact->track);
        }
    }
}

static void track_undo(ivm__track *track)
{
    answer_forget(track);
    track->held_end = track->held_end_before;
    track->orphans = track->orphans_before;
    if (track->waiting.whole) {
        ivm__store_undo(&track->waiting.store);
    }
    if (track->held.whole) {
        ivm__store_undo(&track->held.store);
    }
}

void ivm__track_undo(ivm_engine *engine)
{
    for (ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        if (fact->track) {
            track_undo(fact->track);
        }
    }
}

/* ---- Made and freed -------------------------------------------------------------------------------------------------------------------- */

void ivm__track_discard(ivm_engine *engine, ivm__track *track)
{
    if (track) {
        ivm__zset_deinit(&track->waiting);
        ivm__zset_deinit(&track->held);
        ivm__release(&engine->memory, track, sizeof *track);
    }
}

void ivm__track_free(ivm_fact *fact)
{
    ivm__track_discard(fact->engine, fact->track);
    fact->track = NULL;
}

void ivm__track_replace(ivm_fact *fact, ivm__track *made)
{
    ivm__track_free(fact);
    fact->track = made;
}

/* `fact`: a copy, whose track is what is made. */
static ivm_status counts_make(const ivm_fact *fact, const ivm__key_source *child)
{
    ivm__track *track = fact->track;
    if (holds_from_the_start(fact)) {
        IVM_TRY(ivm__track_keys(fact, &track->held));
    }
    if (fact->trust != IVM_TRACKED) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_keys(fact, &track->waiting));
    /* Of a transient child the rows that wait are there, or none has come yet. */
    IVM_TRY(orphans_add_rows(fact, &fact->engine->scratch, child, ivm__track_standing));
    track->orphans = orphans_change(&track->waiting.store);
    if (!ivm__touched_weights_fit(&track->waiting.store)) {
        return IVM_OVERFLOW;
    }
    track_commit(track);
    return IVM_OK;
}

static ivm_status make(const ivm_fact *fact, const ivm__key_source *child, ivm__track **made)
{
    ivm_engine *engine = fact->engine;
    ivm_fact of = *fact;
    of.track = ivm__allocate_zeroed(&engine->memory, sizeof *of.track);
    if (!of.track) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = counts_make(&of, child);
    if (status != IVM_OK) {
        ivm__track_discard(engine, of.track);
        return status;
    }
    *made = of.track;
    return IVM_OK;
}

ivm_status ivm__track_remake(const ivm_fact *fact, const ivm__store *store, const uint32_t *columns, const ivm__cancel *cancel,
                             ivm__track **made)
{
    assert(fact->track && fact->parent->store.touched_count == 0);
    ivm__key_source child = { store, columns, fact->columns_count, fact->child->allow_negative, 0, cancel };
    return make(fact, &child, made);
}

ivm_status ivm__track_make(ivm_fact *fact, const ivm__cancel *cancel, ivm_error *error)
{
    ivm__arena *scratch = &fact->engine->scratch;
    ivm__arena_mark mark = ivm__arena_here(scratch);
    ivm__key_source child;
    assert(ivm__track_needed(fact) && !fact->track);
    ivm_status status = ivm__track_child(fact, scratch, &child);
    if (status == IVM_OK) {
        child.cancel = cancel;
        status = make(fact, &child, &fact->track);
    }
    ivm__arena_back(scratch, mark);
    if (status == IVM_CANCELLED) {
        return ivm__fail_cancelled(error);
    }
    if (status == IVM_OVERFLOW) {
        return ivm__track_overflow(fact, error);
    }
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

/* ---- Looked at ------------------------------------------------------------------------------------------------------------------------- */

void ivm__track_count(const ivm_fact *fact, uint64_t *rows, uint64_t *keys)
{
    const ivm__track *track = fact->track;
    ivm__weight orphans = track && track->orphans > 0 ? track->orphans : 0; /* below 0: of a transient child, more went than came */
    *rows = orphans > (ivm__weight)UINT64_MAX ? UINT64_MAX : (uint64_t)orphans;
    *keys = track ? track->waiting.store.rows_live : 0;
}

ivm__store *ivm__track_waiting(const ivm_fact *fact)
{
    assert(fact->trust == IVM_TRACKED && fact->track);
    return &fact->track->waiting.store;
}

ivm__index *ivm__track_holders(const ivm_fact *fact)
{
    assert(fact->track && fact->track->held.whole);
    return fact->track->held.whole;
}
