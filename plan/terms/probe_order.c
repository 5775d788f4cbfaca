/* Probe orders: for each leaf that may drive a term, the order in which its rows find the other leaves.
 *
 * Always a leaf with a column equal to one joined already, if there is one; of those first one that is probed by a whole key (at most one
 * match), then the one with more equal columns, then in reading order. Cross products come last. The value is taken from the leaf
 * joined first, so that a fact row finds a dimension from its own column even where `on` says it in two hops.
 *
 * Every class of m equal columns costs m - 1 pairs, whatever the order: each of its columns but the first joined is once the right side of a
 * key or of an `equal` pair. Cost: leaves^2 times equated columns a view. */
#include "plan.h"

#define COLUMN_NONE UINT32_MAX

/* ---- Whole keys: the columns of a node of which no two rows hold the same values ----------------------------------------------------- */

static uint32_t key_count(const ivm__node *node)
{
    while (node->op == IVM__PLAN_FILTER || node->op == IVM__PLAN_PROJECT) {
        node = node->inputs[0];
    }
    return node->op == IVM__PLAN_SCAN        ? (node->table ? node->table->key_count : 0)
           : node->op == IVM__PLAN_AGGREGATE ? node->groups_count
                                             : 0;
}

/* The node's column that holds key column k; COLUMN_NONE where a project drops it. */
static uint32_t key_column(const ivm__node *node, uint32_t k)
{
    if (node->op == IVM__PLAN_SCAN) {
        return node->table->key[k];
    }
    if (node->op == IVM__PLAN_AGGREGATE) {
        return k;
    }
    uint32_t below = key_column(node->inputs[0], k);
    if (node->op == IVM__PLAN_FILTER || below == COLUMN_NONE) {
        return below;
    }
    for (uint32_t i = 0; i < node->expressions_count; i++) {
        if (node->expressions[i]->function == IVM__COLUMN && node->expressions[i]->column == below) {
            return i;
        }
    }
    return COLUMN_NONE;
}

/* ---- What all drivers share ---------------------------------------------------------------------------------------------------------- */

typedef struct order_maker {
    const ivm__graph *graph;
    uint32_t *members; /* columns equal to another one, ascending: those of a leaf side by side */
    uint32_t members_first[IVM_JOIN_LEAVES_MAX + 1];
    uint32_t *keys; /* join columns of each leaf's whole key, if it has one */
    uint32_t keys_first[IVM_JOIN_LEAVES_MAX + 1];
    uint32_t *from;        /* of each class: its column joined first, COLUMN_NONE so far */
    ivm__probe_key *pairs; /* of the driver under way */
    uint32_t used;
} order_maker;

static uint32_t pairs_count(const ivm__graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->columns_count; i++) {
        count += graph->class_of[i] != i;
    }
    return count;
}

static void find_members(order_maker *maker)
{
    const ivm__graph *graph = maker->graph;
    bool *plural = (bool *)maker->from; /* not in use yet */
    memset(plural, 0, graph->columns_count * sizeof *plural);
    for (uint32_t i = 0; i < graph->columns_count; i++) {
        plural[graph->class_of[i]] |= graph->class_of[i] != i;
    }
    uint32_t count = 0;
    for (uint32_t leaf = 0; leaf < graph->leaves_count; leaf++) {
        maker->members_first[leaf] = count;
        uint32_t first = graph->leaves[leaf].columns_first;
        for (uint32_t i = first; i < first + graph->leaves[leaf].columns_count; i++) {
            if (plural[graph->class_of[i]]) {
                maker->members[count++] = i;
            }
        }
    }
    maker->members_first[graph->leaves_count] = count;
}

static void find_keys(order_maker *maker)
{
    const ivm__graph *graph = maker->graph;
    uint32_t count = 0;
    for (uint32_t leaf = 0; leaf < graph->leaves_count; leaf++) {
        const ivm__graph_leaf *at = &graph->leaves[leaf];
        uint32_t leaf_count = key_count(at->node);
        maker->keys_first[leaf] = count;
        for (uint32_t k = 0; k < leaf_count; k++) {
            uint32_t column = key_column(at->node, k);
            if (column == COLUMN_NONE) {
                count = maker->keys_first[leaf];
                break;
            }
            maker->keys[count++] = at->columns_first + column;
        }
    }
    maker->keys_first[graph->leaves_count] = count;
}

/* ---- The next leaf ------------------------------------------------------------------------------------------------------------------- */

static uint32_t *from_of(const order_maker *maker, uint32_t column)
{
    return &maker->from[maker->graph->class_of[column]];
}

static uint32_t connected_count(const order_maker *maker, uint32_t leaf)
{
    uint32_t count = 0;
    for (uint32_t i = maker->members_first[leaf]; i < maker->members_first[leaf + 1]; i++) {
        count += *from_of(maker, maker->members[i]) != COLUMN_NONE;
    }
    return count;
}

static bool has_whole_key(const order_maker *maker, uint32_t leaf)
{
    uint32_t first = maker->keys_first[leaf], end = maker->keys_first[leaf + 1];
    for (uint32_t i = first; i < end; i++) {
        if (*from_of(maker, maker->keys[i]) == COLUMN_NONE) {
            return false;
        }
    }
    return end > first;
}

static uint64_t leaf_score(const order_maker *maker, uint32_t leaf)
{
    return (uint64_t)has_whole_key(maker, leaf) << 32 | connected_count(maker, leaf);
}

static uint32_t choose_leaf(const order_maker *maker, uint64_t joined)
{
    uint32_t best = (uint32_t)__builtin_ctzll(~joined);
    assert(best < maker->graph->leaves_count);
    uint64_t best_score = leaf_score(maker, best);
    for (uint32_t leaf = best + 1; leaf < maker->graph->leaves_count; leaf++) {
        uint64_t score = joined >> leaf & 1 ? 0 : leaf_score(maker, leaf);
        if (score > best_score) {
            best = leaf;
            best_score = score;
        }
    }
    return best;
}

/* ---- A probe's pairs ----------------------------------------------------------------------------------------------------------------- */

static void add_pair(order_maker *maker, uint32_t from, uint32_t to)
{
    maker->pairs[maker->used++] = (ivm__probe_key){ from, to };
}

static bool is_key(const ivm__probe_spec *probe, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < probe->keys_count; i++) {
        if (probe->keys[i].from == from || probe->keys[i].to == to) {
            return true;
        }
    }
    return false;
}

/* The whole key in its own order, so that the table's own index serves; else every class once, columns ascending. */
static void fill_keys(order_maker *maker, ivm__probe_spec *probe)
{
    uint32_t leaf = probe->leaf, first = maker->graph->leaves[leaf].columns_first;
    probe->keys = maker->pairs + maker->used;
    if (has_whole_key(maker, leaf)) {
        for (uint32_t i = maker->keys_first[leaf]; i < maker->keys_first[leaf + 1]; i++, probe->keys_count++) {
            add_pair(maker, *from_of(maker, maker->keys[i]), maker->keys[i] - first);
        }
        return;
    }
    for (uint32_t i = maker->members_first[leaf]; i < maker->members_first[leaf + 1]; i++) {
        uint32_t from = *from_of(maker, maker->members[i]);
        if (from != COLUMN_NONE && !is_key(probe, from, COLUMN_NONE)) {
            add_pair(maker, from, maker->members[i] - first);
            probe->keys_count++;
        }
    }
}

/* What the leaf's columns are equal to besides its keys; classes met here for the first time start from here. `probe` NULL: the driver. */
static uint32_t fill_equal(order_maker *maker, uint32_t leaf, const ivm__probe_spec *probe)
{
    uint32_t before = maker->used, first = maker->graph->leaves[leaf].columns_first;
    for (uint32_t i = maker->members_first[leaf]; i < maker->members_first[leaf + 1]; i++) {
        uint32_t column = maker->members[i], *from = from_of(maker, column);
        if (*from == COLUMN_NONE) {
            *from = column;
        } else if (!probe || !is_key(probe, COLUMN_NONE, column - first)) {
            add_pair(maker, *from, column);
        }
    }
    return maker->used - before;
}

/* ---- One driver ------------------------------------------------------------------------------------------------------------------- */

static void fill_order(order_maker *maker, uint32_t driver, ivm__probe_order *order)
{
    memset(maker->from, 0xff, maker->graph->columns_count * sizeof *maker->from);
    maker->pairs = order->equal;
    maker->used = 0;
    order->equal_count = fill_equal(maker, driver, NULL);
    uint64_t joined = 1ull << driver;
    for (; order->probes_count + 1 < maker->graph->leaves_count; order->probes_count++) {
        ivm__probe_spec *probe = &order->probes[order->probes_count];
        probe->leaf = choose_leaf(maker, joined);
        joined |= 1ull << probe->leaf;
        fill_keys(maker, probe);
        probe->equal = maker->pairs + maker->used;
        probe->equal_count = fill_equal(maker, probe->leaf, probe);
    }
}

static ivm_status make_order(order_maker *maker, uint32_t driver, ivm__probe_order *order)
{
    const ivm__graph *graph = maker->graph;
    uint32_t count = pairs_count(graph);
    order->equal = ivm__allocate(graph->memory, count * sizeof *order->equal); /* all pairs of the order: the probes' follow */
    order->probes = ivm__allocate_zeroed(graph->memory, (graph->leaves_count - 1) * sizeof *order->probes);
    if (!order->equal || !order->probes) {
        return IVM_OUT_OF_MEMORY;
    }
    fill_order(maker, driver, order);
    assert(maker->used == count);
    return IVM_OK;
}

/* ---- All drivers ------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__probe_orders_make(ivm__graph *graph)
{
    assert(graph->leaves_count > 0 && !graph->orders);
    graph->orders = ivm__allocate_zeroed(graph->memory, graph->leaves_count * sizeof *graph->orders);
    size_t columns_size = graph->columns_count * sizeof(uint32_t);
    uint32_t *block = ivm__allocate(graph->memory, 3 * columns_size);
    ivm_status status = graph->orders && block ? IVM_OK : IVM_OUT_OF_MEMORY;
    if (status == IVM_OK) {
        order_maker maker = {
            .graph = graph,
            .members = block,
            .keys = block + graph->columns_count,
            .from = block + (size_t)2 * graph->columns_count,
        };
        find_members(&maker);
        find_keys(&maker);
        for (uint32_t i = 0; i < graph->leaves_count && status == IVM_OK; i++) {
            status = make_order(&maker, i, &graph->orders[i]);
        }
    }
    ivm__release(graph->memory, block, 3 * columns_size);
    return status;
}

void ivm__probe_orders_free(ivm__graph *graph)
{
    if (!graph->orders) {
        return;
    }
    uint32_t count = pairs_count(graph);
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        ivm__release(graph->memory, graph->orders[i].equal, count * sizeof *graph->orders[i].equal);
        ivm__release(graph->memory, graph->orders[i].probes, (graph->leaves_count - 1) * sizeof *graph->orders[i].probes);
    }
    ivm__release(graph->memory, graph->orders, graph->leaves_count * sizeof *graph->orders);
    graph->orders = NULL;
}
