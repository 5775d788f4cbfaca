/* Tracked facts: which fresh and gone parents a child row holds on.
 *
 *     push         fresh: waiting before the step has the key           gone: waiting after it has
 *     refresh      fresh: held(k) now less what the child's rows changed by since is not 0          gone: held(k) now is not 0
 *
 * Of a refresh the child's pending rows are looked up among the fresh keys, which are few, not the other way round. Cost: a lookup for each fresh
 * and each gone row, and in a refresh one for each pending child row while there are fresh ones. */
#include "track_inside.h"
#include "weights.h"

/* ---- Held ------------------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__track_fits(const ivm_fact *fact, const ivm__zset *counts, ivm_error *error)
{
    return ivm__touched_weights_fit(&counts->store) ? IVM_OK : ivm__track_overflow(fact, error);
}

ivm_status ivm__track_overflow(const ivm_fact *fact, ivm_error *error)
{
    char text[IVM__FACT_TEXT_SIZE];
    ivm__fact_text(fact, text);
    return ivm__fail(error, IVM_OVERFLOW, "table %s: too many rows refer through %s to one key of %s", fact->child->name, text,
                     fact->parent->name);
}

/* Rows that are put in while the store is laid over weigh nothing now, and their ids are no end to reach. */
ivm_status ivm__track_reach(const ivm_fact *fact, const ivm__step *step)
{
    ivm__track *track = fact->track;
    const ivm__store *store = &fact->child->store;
    ivm__row_id end = store->laid ? store->laid_end : store->rows_end;
    ivm__key_source child;
    if (!track->held.whole) {
        assert(!fact->child->transient && track->held_end == 0);
        IVM_TRY(ivm__track_keys(fact, &track->held));
    }
    if (fact->child->transient || track->held_end == end) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_child(fact, step->scratch, &child));
    child.cancel = &step->cancel;
    IVM_TRY(ivm__track_add(&child, ivm__track_standing, track->held_end, step->scratch, &track->held));
    track->held_end = end;
    return IVM_OK;
}

/* ---- Marks ----------------------------------------------------------------------------------------------------------------------------- */

typedef struct marks {
    ivm__step *step;
    const ivm_fact *fact;
    const ivm__split *split;
    uint8_t *touched, *appended; /* NULL until the first */
} marks;

static ivm_status marks_make(marks *it)
{
    uint32_t touched = ivm__split_touched(it->split), appended = ivm__split_appended(it->split);
    uint8_t *both = ivm__arena_allocate(it->step->arena, (size_t)touched + appended);
    if (!both) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(both, 0, (size_t)touched + appended);
    it->touched = both;
    it->appended = both + touched;
    return IVM_OK;
}

/* Marks the rows of this fate whose keys are in the Z-set with another weight than `none`. */
static ivm_status block_mark(marks *it, const ivm__zset *in, const ivm__chunk *keys, const uint32_t *places, ivm__reading reading,
                             ivm__weight none)
{
    ivm__track_found found;
    IVM_TRY(ivm__track_find(in, it->step->scratch, keys, &found));
    for (uint32_t i = 0; i < found.count; i++) {
        if (ivm__store_weight(&in->store, found.rows[i], reading) == none) {
            continue;
        }
        if (!it->touched) {
            IVM_TRY(marks_make(it));
        }
        it->touched[places[found.positions[i]]] = 1; /* the two arrays are one */
    }
    return IVM_OK;
}

static ivm_status marks_add(marks *it, ivm__fate fate, const ivm__zset *in, ivm__reading reading, ivm__weight none)
{
    ivm__key_source parent = ivm__track_parent(it->fact);
    ivm__arena *scratch = it->step->scratch;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    uint32_t places[IVM__CHUNK_ROWS], next = 0, count;
    while ((count = ivm__split_rows(it->split, fate, &next, rows, places)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *keys;
        IVM_TRY(ivm__track_rows(&parent, scratch, rows, NULL, count, &keys));
        IVM_TRY(ivm__step_poll(it->step));
        IVM_TRY(block_mark(it, in, keys, places, reading, none));
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

/* ---- A push ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status marks_of_push(marks *it)
{
    const ivm__zset *waiting = &it->fact->track->waiting;
    if (waiting->store.rows_live == 0 && waiting->store.touched_count == 0) {
        return IVM_OK;
    }
    IVM_TRY(marks_add(it, IVM__FRESH, waiting, IVM__READ_OLD, 0));
    return marks_add(it, IVM__GONE, waiting, IVM__READ_CUR, 0);
}

/* ---- A refresh ------------------------------------------------------------------------------------------------------------------------- */

/* before = 1 + held now, by fresh key: 1 says no more than that the key is one of them. */
static ivm_status before_begin(const marks *it, ivm__zset *before)
{
    ivm__key_source parent = ivm__track_parent(it->fact);
    ivm__arena *scratch = it->step->scratch;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    while ((count = ivm__split_rows(it->split, IVM__FRESH, &next, rows, NULL)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *keys, *held;
        IVM_TRY(ivm__step_poll(it->step));
        IVM_TRY(ivm__track_rows(&parent, scratch, rows, NULL, count, &keys));
        IVM_TRY(ivm__zset_add(before, scratch, keys, NULL, 1));
        IVM_TRY(ivm__track_weigh(&it->fact->track->held, scratch, keys, &held));
        if (held) {
            IVM_TRY(ivm__zset_add(before, scratch, held, NULL, 1));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

static ivm_status before_take(ivm__zset *before, ivm__arena *scratch, const ivm__chunk *changes)
{
    ivm__track_found found;
    IVM_TRY(ivm__track_find(before, scratch, changes, &found));
    for (uint32_t i = 0; i < found.count; i++) {
        ivm__weight change = ivm__chunk_weight(changes, found.positions[i]);
        if (change != 0) {
            IVM_TRY(ivm__store_weight_add(&before->store, found.rows[i], -change));
        }
    }
    return IVM_OK;
}

/* Less what the child's rows changed by since. */
static ivm_status before_finish(const marks *it, ivm__zset *before)
{
    ivm__arena *scratch = it->step->scratch;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    ivm__key_source child;
    IVM_TRY(ivm__track_child(it->fact, scratch, &child));
    while ((count = ivm__track_changed(&child, &next, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk *changes;
        IVM_TRY(ivm__step_poll(it->step));
        IVM_TRY(ivm__track_rows(&child, scratch, rows, weights, count, &changes));
        if (changes) {
            IVM_TRY(before_take(before, scratch, changes));
        }
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

static ivm_status marks_of_fresh(marks *it)
{
    const ivm__track *track = it->fact->track;
    if (!it->fact->child->store.laid) {
        return marks_add(it, IVM__FRESH, &track->held, IVM__READ_CUR, 0);
    }
    ivm__zset before = { 0 };
    ivm_status status = ivm__track_keys(it->fact, &before);
    if (status == IVM_OK) {
        status = before_begin(it, &before);
    }
    if (status == IVM_OK) {
        status = before_finish(it, &before);
    }
    if (status == IVM_OK) {
        status = marks_add(it, IVM__FRESH, &before, IVM__READ_CUR, 1);
    }
    ivm__zset_deinit(&before);
    return status;
}

static ivm_status marks_of_refresh(marks *it)
{
    assert(!it->fact->child->transient);
    IVM_TRY(ivm__track_reach(it->fact, it->step));
    if (it->split->fresh > 0) {
        IVM_TRY(marks_of_fresh(it));
    }
    return marks_add(it, IVM__GONE, &it->fact->track->held, IVM__READ_CUR, 0);
}

/* ---- Asked ----------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__track_held(ivm__step *step, ivm_fact *fact, const ivm__split *split, ivm__held *held)
{
    ivm__track *track = fact->track;
    assert(fact->trust == IVM_TRACKED && split->table == fact->parent && !step->initial);
    marks it = { .step = step, .fact = fact, .split = split };
    if (track->asked == split) {
        *held = track->answer;
        return IVM_OK;
    }
    if (split->fresh > 0 || split->gone > 0) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm_status status = step->refreshing ? marks_of_refresh(&it) : marks_of_push(&it);
        ivm__arena_back(step->scratch, mark);
        IVM_TRY(ivm__step_status(step, status));
        IVM_TRY(ivm__track_fits(fact, &track->held, step->error));
    }
    track->asked = split;
    *held = track->answer = (ivm__held){ it.touched, it.appended };
    return IVM_OK;
}

static bool any_held(const uint8_t *fates, const uint8_t *held, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        any |= fates[i] == IVM__FRESH && held[i];
    }
    return any;
}

ivm_status ivm__track_awaited(ivm__step *step, ivm_fact *fact, bool *awaited)
{
    const ivm__split *split;
    ivm__held held = { NULL, NULL };
    *awaited = false;
    if (!step->refreshing && fact->track->waiting.store.touched_count == 0) {
        return IVM_OK; /* whoever waited for a fresh key waits no more */
    }
    IVM_TRY(ivm__split_of(step, fact->parent, &split));
    if (split->fresh == 0) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_held(step, fact, split, &held));
    *awaited = held.touched && (any_held(split->touched, held.touched, ivm__split_touched(split)) ||
                                any_held(split->appended, held.appended, ivm__split_appended(split)));
    return IVM_OK;
}
