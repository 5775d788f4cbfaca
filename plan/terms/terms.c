/* Terms: from what a batch changed to the terms that run.
 *
 *     Moebius       one term for every mask of changed leaves that the skip mask leaves: delta for the leaves in it, cur for the others,
 *                   sign (-1)^(|mask| - 1)
 *     telescoping   one term for every changed leaf that is not skipped, in an order: cur for those before it, old for those after
 *
 * A skipped leaf is read as cur by every term: its new rows may be taken as added first, which changes nothing. Leaves are ordered parents first, then by
 * size, so that the fact table's delta comes last and finds every dimension as it is now. `auto` takes the form with fewer estimated probes. An
 * initial step has an empty before: of telescoping only the last term is left, all others cur. */
#include "plan.h"

/* ---- Estimates ------------------------------------------------------------------------------------------------------------------ */

uint64_t ivm__leaf_rows(const ivm__graph *graph, const ivm__leaf_delta *leaves, uint32_t leaf)
{
    const ivm_table *table = graph->leaves[leaf].table;
    return leaves[leaf].rows_live || !table ? leaves[leaf].rows_live : table->store.rows_live;
}

static double leaf_rows(const ivm__graph *graph, const ivm__leaf_delta *leaves, uint32_t leaf)
{
    uint64_t rows = ivm__leaf_rows(graph, leaves, leaf);
    return rows ? (double)rows : 1;
}

static uint32_t leaf_of_column(const ivm__graph *graph, uint32_t column)
{
    uint32_t leaf = 0;
    while (column >= graph->leaves[leaf].columns_first + graph->leaves[leaf].columns_count) {
        leaf++;
    }
    return leaf;
}

static bool probes_whole_key(const ivm__graph_leaf *leaf, const ivm__probe_spec *probe)
{
    if (!leaf->table || leaf->table->key_count == 0) {
        return false;
    }
    uint32_t found = 0;
    for (uint32_t k = 0; k < leaf->table->key_count; k++) {
        for (uint32_t i = 0; i < probe->keys_count; i++) {
            if (ivm__leaf_origin(leaf, probe->keys[i].to) == leaf->table->key[k]) {
                found++;
                break;
            }
        }
    }
    return found == leaf->table->key_count;
}

/* Rows that one row finds: one where the whole key is given; else as many as come on each row of the leaf that asks. */
static double probe_fanout(const ivm__graph *graph, const ivm__leaf_delta *leaves, const ivm__probe_spec *probe)
{
    double rows = leaf_rows(graph, leaves, probe->leaf);
    if (probe->keys_count == 0) {
        return rows;
    }
    if (probes_whole_key(&graph->leaves[probe->leaf], probe)) {
        return 1;
    }
    double fanout = rows / leaf_rows(graph, leaves, leaf_of_column(graph, probe->keys[0].from));
    return fanout > 1 ? fanout : 1;
}

/* Probes of a term driven by this leaf's delta. */
static double term_cost(const ivm__graph *graph, const ivm__leaf_delta *leaves, uint32_t driver)
{
    const ivm__probe_order *order = &graph->orders[driver];
    double rows = (double)leaves[driver].rows_count, cost = 0;
    for (uint32_t i = 0; i < order->probes_count; i++) {
        cost += rows;
        rows *= i + 1 < order->probes_count ? probe_fanout(graph, leaves, &order->probes[i]) : 1;
    }
    return cost;
}

/* Of all masks the least costly member drives: the j-th cheapest of k leaves drives 2^(k - j) of them. */
static double mobius_cost(const ivm__decision *decision, uint64_t leaves)
{
    double cost = 0, masks = 1;
    for (uint64_t left = leaves; left;) {
        uint32_t dearest = (uint32_t)__builtin_ctzll(left);
        for (uint64_t rest = left; rest; rest &= rest - 1) {
            uint32_t leaf = (uint32_t)__builtin_ctzll(rest);
            if (decision->cost[leaf] > decision->cost[dearest]) {
                dearest = leaf;
            }
        }
        cost += decision->cost[dearest] * masks;
        masks *= 2;
        left &= ~(1ull << dearest);
    }
    return cost;
}

/* ---- Deciding ------------------------------------------------------------------------------------------------------------------- */

/* The leaf whose table keeps no rows but those that wait; UINT32_MAX: none. */
static uint32_t transient_leaf(const ivm__graph *graph)
{
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        if (graph->leaves[i].table && graph->leaves[i].table->transient) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* The rows of a transient leaf can be read as they waited before the step, by the terms of the others, and its delta as what drives its own:
 * all facts are used, and telescoping takes it last. */
ivm_planner_options ivm__term_options(const ivm__graph *graph, const ivm_planner_options *options)
{
    ivm_planner_options used = *options;
    if (transient_leaf(graph) != UINT32_MAX) {
        used.fk_pruning = IVM_FK_PRUNING_ROW;
        used.join_rule = IVM_JOIN_TELESCOPING;
    }
    return used;
}

static uint64_t leaves_to_run(const ivm__decision *decision, uint32_t leaves_count)
{
    uint64_t all = leaves_count == 64 ? UINT64_MAX : (1ull << leaves_count) - 1;
    return all & ~decision->skip & ~(decision->options.run_empty ? 0 : decision->empty);
}

/* Whether a leaf among `left` is a parent of this one. */
static bool awaits_parent(const ivm__edges *edges, uint32_t leaf, uint64_t left)
{
    for (uint32_t e = 0; e < edges->count; e++) {
        if (edges->edge[e].child == leaf && (left >> edges->edge[e].parent & 1)) {
            return true;
        }
    }
    return false;
}

/* The next leaf of an order: the smallest of those whose parents all have their place; in a cycle the smallest of all. */
static uint32_t next_leaf(const ivm__graph *graph, const ivm__decision *decision, const ivm__edges *edges, uint64_t left)
{
    uint32_t best = IVM_JOIN_LEAVES_MAX;
    bool best_awaits = true;
    double best_rows = 0;
    for (uint64_t rest = left; rest; rest &= rest - 1) {
        uint32_t leaf = (uint32_t)__builtin_ctzll(rest);
        bool awaits = awaits_parent(edges, leaf, left & ~(1ull << leaf));
        double rows = leaf_rows(graph, decision->leaves, leaf);
        if (best == IVM_JOIN_LEAVES_MAX || (best_awaits && !awaits) || (best_awaits == awaits && rows < best_rows)) {
            best = leaf;
            best_awaits = awaits;
            best_rows = rows;
        }
    }
    return best;
}

/* The leaves that have a term, parents before their children, smaller relations first; a transient one last. */
static void order_leaves(const ivm__graph *graph, const ivm__edges *edges, ivm__decision *decision)
{
    uint32_t last = transient_leaf(graph);
    uint64_t left = leaves_to_run(decision, graph->leaves_count);
    bool runs_last = last != UINT32_MAX && (left >> last & 1);
    left &= ~((uint64_t)runs_last << (last & 63));
    decision->order_count = 0;
    while (left) {
        uint32_t leaf = next_leaf(graph, decision, edges, left);
        decision->order[decision->order_count++] = leaf;
        left &= ~(1ull << leaf);
    }
    if (runs_last) {
        decision->order[decision->order_count++] = last;
    }
}

/* Fills a view: the leaf from which the fewest probes are made reads its whole content. */
static void decide_initial(const ivm__graph *graph, ivm__decision *decision)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < graph->leaves_count; i++) {
        if (decision->cost[i] < decision->cost[best]) {
            best = i;
        }
    }
    decision->order[0] = best;
    decision->order_count = 1;
    decision->telescoping = true;
}

static bool prefers_telescoping(const ivm__decision *decision)
{
    switch (decision->options.join_rule) {
    case IVM_JOIN_MOBIUS:
        return false;
    case IVM_JOIN_TELESCOPING:
        return true;
    default:
        return decision->counts.run > IVM_MASKS_RUN_MAX || decision->estimate_telescoping < decision->estimate_mobius;
    }
}

static void decide_skip(const ivm__graph *graph, const ivm__edges *edges, ivm__decision *decision)
{
    uint64_t insert_only = 0, set_aside = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        insert_only |= (uint64_t)(graph->leaves[i].table && decision->leaves[i].table_insert_only) << i;
        set_aside |= (uint64_t)decision->leaves[i].set_aside << i;
    }
    if (decision->options.fk_pruning == IVM_FK_PRUNING_BATCH && !decision->initial) {
        decision->skip = ivm__skip_mask(graph->leaves_count, edges->edge, edges->count, insert_only);
    } else if (decision->options.fk_pruning == IVM_FK_PRUNING_ROW && !decision->initial) {
        decision->skip = set_aside;
    }
}

uint64_t ivm__decision_entries(const ivm__graph *graph, const ivm__edges *edges, const ivm__decision *decision)
{
    bool by_row = decision->options.fk_pruning == IVM_FK_PRUNING_ROW;
    uint64_t candidates = 0;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        const ivm__leaf_delta *leaf = &decision->leaves[i];
        candidates |= (uint64_t)(graph->leaves[i].table && (by_row ? leaf->entry : leaf->table_insert_only)) << i;
    }
    return decision->options.fk_pruning == IVM_FK_PRUNING_OFF ? 0
                                                              : ivm__skip_entries(decision->skip, edges->edge, edges->count, candidates);
}

/* Of the leaves that have a term; when a view is filled any leaf may be the one. */
static void decide_costs(const ivm__graph *graph, ivm__decision *decision)
{
    uint64_t run = decision->initial ? UINT64_MAX : leaves_to_run(decision, graph->leaves_count);
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        decision->cost[i] = run >> i & 1 ? term_cost(graph, decision->leaves, i) : 0;
    }
}

void ivm__term_decide(const ivm__graph *graph, const ivm_planner_options *options, const ivm__edges *edges, const ivm__leaf_delta *leaves,
                      uint64_t empty, bool initial, ivm__decision *decision)
{
    memset(decision, 0, offsetof(ivm__decision, cost));
    decision->made = true;
    decision->initial = initial;
    decision->options = ivm__term_options(graph, options);
    decision->empty = empty;
    memcpy(decision->leaves, leaves, graph->leaves_count * sizeof *leaves);
    decide_skip(graph, edges, decision);
    decide_costs(graph, decision);
    decision->counts = ivm__mask_count(graph->leaves_count, decision->skip, decision->options.run_empty ? 0 : empty);
    if (initial) {
        decide_initial(graph, decision);
        return;
    }
    order_leaves(graph, edges, decision);
    for (uint32_t i = 0; i < decision->order_count; i++) {
        decision->estimate_telescoping += decision->cost[decision->order[i]];
    }
    decision->estimate_mobius = mobius_cost(decision, leaves_to_run(decision, graph->leaves_count));
    decision->telescoping = prefers_telescoping(decision);
}

/* ---- The terms of a decision ----------------------------------------------------------------------------------------------------- */

static bool telescoping_term(const ivm__decision *decision, uint32_t leaves_count, uint64_t *next, ivm__term *term)
{
    if (*next >= decision->order_count) {
        return false;
    }
    uint32_t at = (uint32_t)(*next)++;
    *term = (ivm__term){ .mask = 1ull << decision->order[at], .sign = 1, .driver = decision->order[at] };
    memset(term->readings, IVM__LEAF_CUR, leaves_count);
    term->readings[term->driver] = IVM__LEAF_DELTA;
    for (uint32_t i = at + 1; i < decision->order_count; i++) {
        if (!(decision->empty >> decision->order[i] & 1)) {
            term->readings[decision->order[i]] = IVM__LEAF_OLD;
        }
    }
    return true;
}

static bool mobius_term(const ivm__decision *decision, uint32_t leaves_count, uint64_t *next, ivm__term *term)
{
    uint64_t free = leaves_to_run(decision, leaves_count);
    uint64_t mask = (*next - free) & free; /* the next greater subset */
    if (mask == 0) {
        return false;
    }
    *next = mask;
    *term = (ivm__term){ .mask = mask, .sign = __builtin_parityll(mask) ? 1 : -1, .driver = (uint32_t)__builtin_ctzll(mask) };
    memset(term->readings, IVM__LEAF_CUR, leaves_count);
    for (uint64_t left = mask; left; left &= left - 1) {
        uint32_t leaf = (uint32_t)__builtin_ctzll(left);
        term->readings[leaf] = IVM__LEAF_DELTA;
        if (decision->cost[leaf] < decision->cost[term->driver]) {
            term->driver = leaf;
        }
    }
    return true;
}

bool ivm__decision_term(const ivm__decision *decision, uint32_t leaves_count, uint64_t *next, ivm__term *term)
{
    assert(decision->made);
    return decision->telescoping ? telescoping_term(decision, leaves_count, next, term) : mobius_term(decision, leaves_count, next, term);
}
