/* Pruning by row: which rows of each parent's delta need drive no term.
 *
 *     prunable under a fact      fresh and gone keys of its parent table; of a tracked fact those that no child row waits for or still refers to
 *     pruned leaves              the largest set of leaves with prunable rows, each reached, child to parent, from a leaf outside the set (mask.c)
 *     set aside of such a leaf   the rows prunable under the facts that lead to it from leaves of earlier rounds
 *     awaited, kept              its other fresh, its other gone rows; of a leaf that is not pruned those held under every fact that leads to it
 *
 * Rounds are an order of proof: leaves are reached first from outside, then from those reached so far. Were facts used between leaves of one round
 * or back, two parents that one orphan waits for and that refer to each other could each rest on the other.
 *
 * Fates and counts are asked of tables and facts once a step (split.h, track.h). Cost: a byte for each row that a parent table's delta has and, where
 * several tracked facts lead to a leaf, one more pass for each. */
#include "plan.h"
#include "track.h"

/* What one edge has to give in this step. */
typedef struct offer {
    const ivm__split *split; /* of the parent table; NULL: unchanged */
    ivm__held held;          /* tracked: what is not prunable; nothing where all fresh and gone rows are */
    bool prunable;           /* some row is */
} offer;

typedef struct pruning {
    ivm__step *step;
    const ivm__graph *graph;
    const ivm__edges *edges;
    offer *offers; /* by edge */
    ivm__prune_rounds *rounds;
} pruning;

/* ---- Offers ------------------------------------------------------------------------------------------------------------------------ */

static bool some_free(const uint8_t *moved, const uint8_t *held, uint32_t count)
{
    bool some = false;
    for (uint32_t i = 0; i < count; i++) {
        some |= moved[i] && !held[i];
    }
    return some;
}

static ivm_status offer_make(pruning *it, const ivm__edge *edge, offer *made)
{
    ivm_table *parent = edge->fact->parent;
    *made = (offer){ 0 };
    if (!ivm__split_is_wanted(parent)) {
        return IVM_OK;
    }
    IVM_TRY(ivm__split_of(it->step, parent, &made->split));
    const ivm__split *split = made->split;
    made->prunable = split->fresh + split->gone > 0;
    if (!made->prunable || edge->fact->trust != IVM_TRACKED) {
        return IVM_OK;
    }
    IVM_TRY(ivm__track_held(it->step, edge->fact, split, &made->held));
    if (made->held.touched) {
        made->prunable = some_free(split->moved.touched, made->held.touched, ivm__split_touched(split)) ||
                         some_free(split->moved.appended, made->held.appended, ivm__split_appended(split));
    }
    return IVM_OK;
}

/* ---- Leaves ------------------------------------------------------------------------------------------------------------------------- */

/* Round 0 are the leaves outside; every other one is in the round after that of the first leaf that reaches it. */
static void rounds_make(const ivm__graph *graph, const ivm__edges *edges, ivm__prune_rounds *rounds)
{
    uint64_t all = UINT64_MAX >> (64 - graph->leaves_count), reached = all & ~rounds->skip;
    memset(rounds->round, 0, sizeof rounds->round);
    for (uint8_t round = 1; reached != all; round++) {
        uint64_t next = 0;
        for (uint32_t e = 0; e < edges->count; e++) {
            next |= (reached >> edges->edge[e].child & 1ull) << edges->edge[e].parent;
        }
        next &= ~reached;
        assert(next);
        for (uint64_t left = next; left; left &= left - 1) {
            rounds->round[__builtin_ctzll(left)] = round;
        }
        reached |= next;
    }
}

/* The pruned leaves and their rounds, made only where other leaves have prunable rows than when they were last asked for. */
static void find_rounds(const pruning *it)
{
    uint64_t candidates = 0;
    for (uint32_t e = 0; e < it->edges->count; e++) {
        assert(!it->edges->edge[e].unused);
        candidates |= (uint64_t)it->offers[e].prunable << it->edges->edge[e].parent;
    }
    ivm__prune_rounds *rounds = it->rounds;
    if (rounds->known && rounds->candidates == candidates) {
        return;
    }
    rounds->known = true;
    rounds->candidates = candidates;
    rounds->skip = ivm__skip_mask(it->graph->leaves_count, it->edges->edge, it->edges->count, candidates);
    rounds_make(it->graph, it->edges, rounds);
}

static bool is_pruned(const pruning *it, uint32_t leaf)
{
    return it->rounds->skip >> leaf & 1;
}

static bool leads(const pruning *it, uint32_t e, uint32_t leaf)
{
    const ivm__edge *edge = &it->edges->edge[e];
    return edge->parent == leaf && it->rounds->round[edge->child] < it->rounds->round[leaf];
}

/* Whether the fact has a say in which rows of the leaf are held: from a leaf that is not pruned nothing is set aside, and every one has. */
static bool tells(const pruning *it, uint32_t e, uint32_t leaf)
{
    return is_pruned(it, leaf) ? leads(it, e, leaf) : it->edges->edge[e].parent == leaf;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------------------------- */

static void flags_add(uint8_t *flags, const uint8_t *moved, const uint8_t *held, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        flags[i] |= moved[i] & !held[i];
    }
}

static uint64_t flags_count(const uint8_t *flags, const uint8_t *fates, uint32_t count, bool gone)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += flags[i] && (fates[i] == IVM__GONE) == gone;
    }
    return found;
}

/* What tracked facts, each with rows that it holds, set aside together; the rest of the fresh and gone rows is held under all of them. */
static ivm_status union_make(const pruning *it, uint32_t leaf, const ivm__split *split, ivm__leaf_prune *prune)
{
    uint32_t touched = ivm__split_touched(split), appended = ivm__split_appended(split);
    ivm__aside *aside = ivm__arena_allocate(it->step->arena, sizeof *aside);
    uint8_t *flags = ivm__arena_allocate(it->step->arena, (size_t)touched + appended);
    if (!aside || !flags) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(flags, 0, (size_t)touched + appended);
    for (uint32_t e = 0; e < it->edges->count; e++) {
        if (tells(it, e, leaf)) {
            flags_add(flags, split->moved.touched, it->offers[e].held.touched, touched);
            flags_add(flags + touched, split->moved.appended, it->offers[e].held.appended, appended);
        }
    }
    uint64_t gone = flags_count(flags, split->touched, touched, true);
    uint64_t fresh = flags_count(flags, split->touched, touched, false) + flags_count(flags + touched, split->appended, appended, false);
    assert(fresh <= split->fresh && gone <= split->gone);
    prune->awaited = split->fresh - fresh;
    prune->kept = split->gone - gone;
    if (is_pruned(it, leaf)) {
        *aside = (ivm__aside){ flags, flags + touched, fresh > 0, gone > 0 };
        prune->aside = fresh + gone ? aside : NULL;
        prune->whole = fresh + gone == split->fresh + split->gone + split->changed;
    }
    return IVM_OK;
}

static ivm_status leaf_prune(const pruning *it, uint32_t leaf, const ivm__split *split, ivm__leaf_prune *prune)
{
    bool all = false;
    prune->entry = !is_pruned(it, leaf) && (it->rounds->candidates >> leaf & 1);
    for (uint32_t e = 0; e < it->edges->count; e++) {
        all |= tells(it, e, leaf) && !it->offers[e].held.touched;
    }
    if (!all) {
        return union_make(it, leaf, split, prune);
    }
    if (!is_pruned(it, leaf)) {
        return IVM_OK;
    }
    prune->whole = split->changed == 0;
    prune->aside = prune->whole && split->gone == 0 ? NULL : &split->moved;
    return IVM_OK;
}

/* ---- A join ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status offers_make(pruning *it)
{
    it->offers = ivm__arena_allocate(it->step->scratch, it->edges->count * sizeof *it->offers);
    if (!it->offers) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t e = 0; e < it->edges->count; e++) {
        IVM_TRY(offer_make(it, &it->edges->edge[e], &it->offers[e]));
    }
    return IVM_OK;
}

static void counts_tell(const pruning *it, ivm__leaf_prune *prunes)
{
    for (uint32_t e = 0; e < it->edges->count; e++) {
        const ivm__split *split = it->offers[e].split;
        if (split) {
            ivm__leaf_prune *prune = &prunes[it->edges->edge[e].parent];
            prune->fresh = split->fresh;
            prune->gone = split->gone;
            prune->changed = split->changed;
        }
    }
}

static const ivm__split *split_of_leaf(const pruning *it, uint32_t leaf)
{
    for (uint32_t e = 0; e < it->edges->count; e++) {
        if (it->edges->edge[e].parent == leaf && it->offers[e].split) {
            return it->offers[e].split;
        }
    }
    return NULL;
}

static bool some_parent_changed(const ivm__edges *edges)
{
    for (uint32_t e = 0; e < edges->count; e++) {
        if (ivm__split_is_wanted(edges->edge[e].fact->parent)) {
            return true;
        }
    }
    return false;
}

ivm_status ivm__prune_rows(ivm__step *step, const ivm__graph *graph, const ivm__edges *edges, ivm__prune_rounds *rounds,
                           ivm__leaf_prune *prunes)
{
    if (!some_parent_changed(edges)) {
        return IVM_OK;
    }
    pruning it = { .step = step, .graph = graph, .edges = edges, .rounds = rounds };
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    IVM_TRY(offers_make(&it));
    counts_tell(&it, prunes);
    find_rounds(&it);
    for (uint32_t leaf = 0; leaf < graph->leaves_count; leaf++) {
        const ivm__split *split = split_of_leaf(&it, leaf);
        if (split) {
            IVM_TRY(leaf_prune(&it, leaf, split, &prunes[leaf]));
        }
    }
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}
