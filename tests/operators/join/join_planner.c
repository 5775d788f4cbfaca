/* A planner of terms for joins by hand: see case_planner. What it sets aside no foreign key says, and any driver and order will do. */
#include "join_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "split.h"

/* Of a leaf none, some, or all. */
bool case_is_aside(const case_planner *planner, uint32_t leaf, int64_t c0, int64_t c1)
{
    uint64_t how = planner->salt >> 3 * leaf & 7, key = (uint64_t)c0 * 5 + (uint64_t)c1 * 3 + leaf;
    return planner->salt && planner->tables[leaf] && how > 1 && (how > 5 || (planner->salt >> (16 + key % 40) & 1));
}

static void rows_flag(const case_planner *planner, uint32_t leaf, const ivm__split *split, uint8_t *flags, ivm__aside *aside,
                      ivm__leaf_prune *prune)
{
    const ivm__store *store = &split->table->store;
    uint32_t touched = ivm__split_touched(split), all = touched + ivm__split_appended(split);
    uint64_t fresh = 0, gone = 0;
    for (uint32_t i = 0; i < all; i++) {
        const uint8_t *at = ivm__store_row(store, i < touched ? store->touched[i].row : store->step_end + (i - touched));
        uint8_t fate = i < touched ? split->touched[i] : split->appended[i - touched];
        flags[i] = fate >= IVM__FRESH &&
                   case_is_aside(planner, leaf, (int64_t)ivm__row_word(store->layout, at, 0), (int64_t)ivm__row_word(store->layout, at, 1));
        fresh += flags[i] && fate == IVM__FRESH;
        gone += flags[i] && fate == IVM__GONE;
    }
    prune->whole = fresh + gone > 0 && fresh + gone == split->fresh + split->gone + split->changed;
    if (fresh + gone > 0 && !(prune->whole && gone == 0 && (planner->salt >> 60 & 1))) {
        *aside = (ivm__aside){ flags, flags + touched, fresh > 0, gone > 0 };
        prune->aside = aside;
    }
}

static ivm_status leaf_prune(case_planner *planner, ivm__step *step, uint32_t leaf, ivm__leaf_prune *prune)
{
    const ivm__split *split;
    IVM_TRY(ivm__split_of(step, planner->tables[leaf], &split));
    uint32_t all = ivm__split_touched(split) + ivm__split_appended(split);
    ivm__aside *aside = ivm__arena_allocate(step->arena, sizeof *aside);
    uint8_t *flags = ivm__arena_allocate(step->arena, all);
    if (!aside || !flags) {
        return IVM_OUT_OF_MEMORY;
    }
    rows_flag(planner, leaf, split, flags, aside, prune);
    planner->set_aside += prune->whole || prune->aside;
    planner->whole += prune->whole;
    return IVM_OK;
}

/* What no foreign key says: any rows whose keys come or go. */
static ivm_status planner_prune(void *state, ivm__step *step, ivm__leaf_prune *leaves, uint32_t leaves_count)
{
    case_planner *planner = state;
    cr_assert(!step->initial && leaves_count > 0 && !leaves[0].aside);
    for (uint32_t i = 0; i < leaves_count; i++) {
        leaves[i].narrow = hand_below(&planner->random, 2);
        if (planner->salt && planner->tables[i] && ivm__split_is_wanted(planner->tables[i]) &&
            leaf_prune(planner, step, i, &leaves[i]) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    return IVM_OK;
}

static ivm_status planner_begin(void *state, ivm__step *step, const ivm__leaf_delta *leaves, uint32_t leaves_count)
{
    case_planner *planner = state;
    planner->leaves_count = leaves_count;
    planner->initial = step->initial;
    planner->at = 0;
    planner->empty = planner->skip = 0;
    planner->begun++;
    memcpy(planner->deltas, leaves, leaves_count * sizeof *leaves);
    for (uint32_t i = 0; i < leaves_count; i++) {
        planner->empty |= (uint64_t)(leaves[i].rows_count == 0) << i;
        planner->skip |= (uint64_t)leaves[i].set_aside << i;
        planner->order[i] = i;
    }
    for (uint32_t i = planner->in_order ? 1 : leaves_count; i > 1; i--) {
        uint32_t j = hand_below(&planner->random, i), kept = planner->order[i - 1];
        planner->order[i - 1] = planner->order[j];
        planner->order[j] = kept;
    }
    return IVM_OK;
}

static bool mobius_next(case_planner *planner, ivm__term *term)
{
    do {
        planner->at++;
    } while ((planner->at & (planner->skip | (planner->skip_empty ? planner->empty : 0))) && planner->at < 1ull << planner->leaves_count);
    if (planner->at >= 1ull << planner->leaves_count) {
        return false;
    }
    term->mask = planner->at;
    term->sign = __builtin_parityll(term->mask) ? 1 : -1;
    do {
        term->driver = hand_below(&planner->random, planner->leaves_count);
    } while (!(term->mask >> term->driver & 1));
    for (uint32_t i = 0; i < planner->leaves_count; i++) {
        term->readings[i] = term->mask >> i & 1 ? IVM__LEAF_DELTA : IVM__LEAF_CUR;
    }
    return true;
}

static bool telescoping_next(case_planner *planner, ivm__term *term)
{
    uint64_t passed = planner->skip | (planner->skip_empty ? planner->empty : 0);
    while (planner->at < planner->leaves_count && (passed >> planner->order[planner->at] & 1)) {
        planner->at++;
    }
    if (planner->at >= planner->leaves_count) {
        return false;
    }
    term->driver = planner->order[planner->at];
    term->mask = 1ull << term->driver;
    term->sign = 1;
    for (uint32_t i = 0; i < planner->leaves_count; i++) {
        bool before = i < planner->at || (planner->skip >> planner->order[i] & 1);
        term->readings[planner->order[i]] = i == planner->at ? IVM__LEAF_DELTA : before ? IVM__LEAF_CUR : IVM__LEAF_OLD;
    }
    planner->at++;
    return true;
}

static bool initial_next(case_planner *planner, ivm__term *term)
{
    if (planner->at++) {
        return false;
    }
    *term = (ivm__term){ .mask = 1ull << planner->order[0], .sign = 1, .driver = planner->order[0] };
    memset(term->readings, IVM__LEAF_CUR, sizeof term->readings);
    term->readings[term->driver] = IVM__LEAF_DELTA;
    return true;
}

static bool planner_next(void *state, ivm__term *term)
{
    case_planner *planner = state;
    return planner->initial               ? initial_next(planner, term)
           : planner->rule == CASE_MOBIUS ? mobius_next(planner, term)
                                          : telescoping_next(planner, term);
}

static void planner_commit(void *state)
{
    ((case_planner *)state)->committed++;
}

static void planner_undo(void *state)
{
    ((case_planner *)state)->undone++;
}

static void planner_free(void *state, ivm__memory *memory)
{
    (void)memory;
    *((case_planner *)state)->freed = true;
    free(state);
}

ivm__join_planner case_planner_of(case_planner *planner)
{
    return (ivm__join_planner){ planner, planner_prune, planner_begin, planner_next, planner_commit, planner_undo, planner_free };
}
