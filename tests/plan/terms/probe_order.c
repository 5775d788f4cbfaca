/* Probe orders over random join graphs, against what they promise, each promise checked on its own from the graph's equalities. */
#include "plan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#define LEAVES_MAX 9u
#define LEAF_COLUMNS 4u
#define COLUMNS_MAX (LEAVES_MAX * LEAF_COLUMNS)

/* A join of scans, made without an engine's catalog. */
typedef struct test_join {
    ivm_engine engine; /* its memory alone is used */
    ivm_table tables[LEAVES_MAX];
    uint32_t keys[LEAVES_MAX][LEAF_COLUMNS];
    ivm__node scans[LEAVES_MAX];
    ivm__node *inputs[LEAVES_MAX];
    ivm__named_column columns[COLUMNS_MAX];
    ivm__equality equalities[COLUMNS_MAX];
    ivm__node node;
} test_join;

static void join_start(test_join *join, uint32_t leaves)
{
    memset(join, 0, sizeof *join);
    ivm__memory_init(&join->engine.memory, NULL);
    for (uint32_t i = 0; i < leaves; i++) {
        join->tables[i] = (ivm_table){ .columns_count = LEAF_COLUMNS, .key = join->keys[i] };
        join->scans[i] = (ivm__node){ .op = IVM__PLAN_SCAN, .columns_count = LEAF_COLUMNS, .table = &join->tables[i] };
        join->inputs[i] = &join->scans[i];
    }
    join->node = (ivm__node){ .op = IVM__PLAN_JOIN,
                              .columns = join->columns,
                              .columns_count = leaves * LEAF_COLUMNS,
                              .inputs = join->inputs,
                              .inputs_count = leaves,
                              .equalities = join->equalities };
}

static void join_key(test_join *join, uint32_t leaf, uint32_t column)
{
    join->keys[leaf][join->tables[leaf].key_count++] = column;
}

/* Equates column ca of leaf a with column cb of leaf b. */
static void join_on(test_join *join, uint32_t a, uint32_t ca, uint32_t b, uint32_t cb)
{
    join->equalities[join->node.equalities_count++] = (ivm__equality){ a * LEAF_COLUMNS + ca, b * LEAF_COLUMNS + cb };
}

static ivm__graph *join_graph(test_join *join)
{
    ivm__graph *graph = NULL;
    cr_assert_eq(ivm__graph_make(&join->engine, &join->node, &graph, NULL), IVM_OK);
    return graph;
}

static void join_end(test_join *join, ivm__graph *graph)
{
    ivm__graph_free(graph);
    cr_assert_eq(atomic_load(&join->engine.memory.bytes_held), 0u, "%lu bytes left",
                 (unsigned long)atomic_load(&join->engine.memory.bytes_held));
}

/* ---- The closure of the equalities, in its own way: a matrix ----------------------------------------------------------------------- */

typedef struct closure {
    bool equal[COLUMNS_MAX][COLUMNS_MAX];
    uint32_t count;
} closure;

static void close_over(closure *it, uint32_t count)
{
    it->count = count;
    for (uint32_t k = 0; k < count; k++) {
        it->equal[k][k] = true;
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < count; j++) {
                it->equal[i][j] |= it->equal[i][k] && it->equal[k][j];
            }
        }
    }
}

static void link_pair(closure *it, uint32_t a, uint32_t b)
{
    it->equal[a][b] = it->equal[b][a] = true;
}

static void close_join(const test_join *join, closure *it)
{
    memset(it, 0, sizeof *it);
    for (uint32_t i = 0; i < join->node.equalities_count; i++) {
        link_pair(it, join->equalities[i].a, join->equalities[i].b);
    }
    close_over(it, join->node.columns_count);
}

static uint32_t leaf_of(uint32_t column)
{
    return column / LEAF_COLUMNS;
}

static bool column_is_bound(const closure *equal, uint64_t joined, uint32_t column)
{
    for (uint32_t i = 0; i < equal->count; i++) {
        if ((joined >> leaf_of(i) & 1) && equal->equal[i][column]) {
            return true;
        }
    }
    return false;
}

static bool leaf_is_bound(const closure *equal, uint64_t joined, uint32_t leaf)
{
    bool bound = false;
    for (uint32_t i = 0; i < LEAF_COLUMNS; i++) {
        bound = bound || column_is_bound(equal, joined, leaf * LEAF_COLUMNS + i);
    }
    return bound;
}

static bool key_is_bound(const test_join *join, const closure *equal, uint64_t joined, uint32_t leaf)
{
    const ivm_table *table = &join->tables[leaf];
    for (uint32_t k = 0; k < table->key_count; k++) {
        if (!column_is_bound(equal, joined, leaf * LEAF_COLUMNS + table->key[k])) {
            return false;
        }
    }
    return table->key_count > 0;
}

static bool probes_key_exactly(const test_join *join, const ivm__probe_spec *probe)
{
    const ivm_table *table = &join->tables[probe->leaf];
    if (table->key_count == 0 || probe->keys_count != table->key_count) {
        return false;
    }
    for (uint32_t k = 0; k < table->key_count; k++) {
        if (probe->keys[k].to != table->key[k]) {
            return false;
        }
    }
    return true;
}

/* NULL or what the order promises and does not keep. */
static const char *order_is_wrong(const test_join *join, const ivm__graph *graph, uint32_t driver)
{
    static closure want, have;
    close_join(join, &want);
    memset(&have, 0, sizeof have);
    const ivm__probe_order *order = &graph->orders[driver];
    uint64_t joined = 1ull << driver;
    for (uint32_t i = 0; i < order->equal_count; i++) {
        if (leaf_of(order->equal[i].from) != driver || leaf_of(order->equal[i].to) != driver) {
            return "the driver's own pairs are within it";
        }
        link_pair(&have, order->equal[i].from, order->equal[i].to);
    }
    for (uint32_t p = 0; p < order->probes_count; p++) {
        const ivm__probe_spec *probe = &order->probes[p];
        if (joined >> probe->leaf & 1) {
            return "each leaf is probed once";
        }
        for (uint32_t leaf = 0; leaf < graph->leaves_count && probe->keys_count == 0; leaf++) {
            if (!(joined >> leaf & 1) && leaf_is_bound(&want, joined, leaf)) {
                return "no cross product where an equality leads on";
            }
        }
        for (uint32_t leaf = 0; leaf < graph->leaves_count && !probes_key_exactly(join, probe); leaf++) {
            if (!(joined >> leaf & 1) && key_is_bound(join, &want, joined, leaf)) {
                return "a whole key is probed first, in the key's order";
            }
        }
        for (uint32_t i = 0; i < probe->keys_count; i++) {
            if (!(joined >> leaf_of(probe->keys[i].from) & 1) || probe->keys[i].to >= LEAF_COLUMNS) {
                return "a key leads from what is joined to the leaf";
            }
            link_pair(&have, probe->keys[i].from, probe->leaf * LEAF_COLUMNS + probe->keys[i].to);
        }
        joined |= 1ull << probe->leaf;
        for (uint32_t i = 0; i < probe->equal_count; i++) {
            if (!(joined >> leaf_of(probe->equal[i].from) & 1) || leaf_of(probe->equal[i].to) != probe->leaf) {
                return "an equal pair is checked where its second leaf comes in";
            }
            link_pair(&have, probe->equal[i].from, probe->equal[i].to);
        }
    }
    if (joined != (1ull << graph->leaves_count) - 1) {
        return "every leaf is probed";
    }
    close_over(&have, want.count);
    return memcmp(have.equal, want.equal, sizeof want.equal) ? "the pairs come to the join's equalities, no more and no less" : NULL;
}

static void random_join(test_join *join, unsigned seed)
{
    srand(seed);
    uint32_t leaves = 1 + (uint32_t)rand() % LEAVES_MAX;
    join_start(join, leaves);
    for (uint32_t i = 0; i < leaves; i++) {
        uint32_t key_count = (uint32_t)rand() % 4, first = (uint32_t)rand() % LEAF_COLUMNS;
        for (uint32_t k = 0; k < key_count; k++) {
            join_key(join, i, (first + k) % LEAF_COLUMNS);
        }
    }
    uint32_t pairs = leaves > 1 ? (uint32_t)rand() % (2 * leaves) : 0;
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t a = (uint32_t)rand() % leaves, b = (a + 1 + (uint32_t)rand() % (leaves - 1)) % leaves;
        join_on(join, a, (uint32_t)rand() % LEAF_COLUMNS, b, (uint32_t)rand() % LEAF_COLUMNS);
    }
}

Test(plan_probe_order, random_graphs_keep_every_promise)
{
    static test_join join;
    for (unsigned seed = 1; seed <= 3000; seed++) {
        random_join(&join, seed);
        ivm__graph *graph = join_graph(&join);
        for (uint32_t driver = 0; driver < graph->leaves_count; driver++) {
            const char *wrong = order_is_wrong(&join, graph, driver);
            cr_assert_null(wrong, "seed %u, driver %u: %s", seed, driver, wrong);
        }
        join_end(&join, graph);
    }
}

/* ---- Shapes one knows ---------------------------------------------------------------------------------------------------------------- */

static const ivm__probe_spec *probe_of(const ivm__graph *graph, uint32_t driver, uint32_t at, uint32_t leaf)
{
    cr_assert_eq(graph->orders[driver].probes[at].leaf, leaf, "driver %u, probe %u: leaf %u, not %u", driver, at,
                 graph->orders[driver].probes[at].leaf, leaf);
    return &graph->orders[driver].probes[at];
}

static void key_is(const ivm__probe_spec *probe, uint32_t key, uint32_t from, uint32_t to)
{
    cr_assert_lt(key, probe->keys_count);
    cr_assert_eq(probe->keys[key].from, from);
    cr_assert_eq(probe->keys[key].to, to);
}

Test(plan_probe_order, a_star_goes_through_its_fact_table)
{
    static test_join join;
    join_start(&join, 4);
    for (uint32_t i = 1; i < 4; i++) {
        join_key(&join, i, 0);
        join_on(&join, 0, i, i, 0);
    }
    ivm__graph *graph = join_graph(&join);
    key_is(probe_of(graph, 0, 0, 1), 0, 1, 0);
    key_is(probe_of(graph, 0, 1, 2), 0, 2, 0);
    key_is(probe_of(graph, 0, 2, 3), 0, 3, 0);
    key_is(probe_of(graph, 2, 0, 0), 0, 2 * LEAF_COLUMNS, 2);
    key_is(probe_of(graph, 2, 1, 1), 0, 1, 0);
    key_is(probe_of(graph, 2, 2, 3), 0, 3, 0);
    join_end(&join, graph);
}

/* f.1 = x.0 and x.0 = d.0: d is found from f's own column. */
Test(plan_probe_order, two_hops_are_one_probe)
{
    static test_join join;
    join_start(&join, 3);
    join_key(&join, 2, 0);
    join_on(&join, 0, 1, 1, 0);
    join_on(&join, 1, 0, 2, 0);
    ivm__graph *graph = join_graph(&join);
    key_is(probe_of(graph, 0, 0, 2), 0, 1, 0); /* the whole key before x, which has none */
    key_is(probe_of(graph, 0, 1, 1), 0, 1, 0);
    key_is(probe_of(graph, 2, 0, 0), 0, 2 * LEAF_COLUMNS, 1);
    join_end(&join, graph);
}

Test(plan_probe_order, two_columns_of_one_leaf_in_one_class_are_compared_in_it)
{
    static test_join join;
    join_start(&join, 2);
    join_on(&join, 0, 1, 1, 0);
    join_on(&join, 0, 2, 1, 0);
    ivm__graph *graph = join_graph(&join);
    cr_assert_eq(graph->orders[0].equal_count, 1u);
    cr_assert_eq(graph->orders[0].equal[0].from, 1u);
    cr_assert_eq(graph->orders[0].equal[0].to, 2u);
    key_is(probe_of(graph, 0, 0, 1), 0, 1, 0);
    const ivm__probe_spec *probe = probe_of(graph, 1, 0, 0);
    cr_assert_eq(probe->keys_count, 1u);
    key_is(probe, 0, LEAF_COLUMNS, 1);
    cr_assert_eq(probe->equal_count, 1u);
    cr_assert_eq(probe->equal[0].from, LEAF_COLUMNS);
    cr_assert_eq(probe->equal[0].to, 2u);
    join_end(&join, graph);
}

/* The key is (2, 0), the equalities also bind column 1: the key alone is looked up, the rest compared. */
Test(plan_probe_order, a_whole_key_is_probed_alone_and_in_its_order)
{
    static test_join join;
    join_start(&join, 2);
    join_key(&join, 1, 2);
    join_key(&join, 1, 0);
    for (uint32_t i = 0; i < 3; i++) {
        join_on(&join, 0, i, 1, i);
    }
    ivm__graph *graph = join_graph(&join);
    const ivm__probe_spec *probe = probe_of(graph, 0, 0, 1);
    cr_assert_eq(probe->keys_count, 2u);
    key_is(probe, 0, 2, 2);
    key_is(probe, 1, 0, 0);
    cr_assert_eq(probe->equal_count, 1u);
    cr_assert_eq(probe->equal[0].from, 1u);
    cr_assert_eq(probe->equal[0].to, LEAF_COLUMNS + 1);
    cr_assert_eq(probe_of(graph, 1, 0, 0)->keys_count, 3u);
    join_end(&join, graph);
}

Test(plan_probe_order, more_key_columns_come_first_then_reading_order)
{
    static test_join join;
    join_start(&join, 4);
    join_on(&join, 0, 0, 1, 0);
    join_on(&join, 0, 0, 2, 0);
    join_on(&join, 0, 1, 3, 0);
    join_on(&join, 0, 2, 3, 1);
    ivm__graph *graph = join_graph(&join);
    probe_of(graph, 0, 0, 3);
    probe_of(graph, 0, 1, 1);
    probe_of(graph, 0, 2, 2);
    join_end(&join, graph);
}

Test(plan_probe_order, cross_products_come_last_and_lead_on)
{
    static test_join join;
    join_start(&join, 4);
    join_on(&join, 0, 0, 3, 0);
    join_on(&join, 1, 0, 2, 0);
    ivm__graph *graph = join_graph(&join);
    probe_of(graph, 0, 0, 3);
    cr_assert_eq(probe_of(graph, 0, 1, 1)->keys_count, 0u);
    key_is(probe_of(graph, 0, 2, 2), 0, LEAF_COLUMNS, 0);
    join_end(&join, graph);
}

Test(plan_probe_order, a_leaf_that_aggregates_is_probed_by_its_groups)
{
    static test_join join;
    join_start(&join, 3);
    join.scans[2].op = IVM__PLAN_AGGREGATE;
    join.scans[2].table = NULL;
    join.scans[2].groups_count = 1;
    join_on(&join, 0, 0, 1, 0);
    join_on(&join, 0, 1, 2, 0);
    ivm__graph *graph = join_graph(&join);
    key_is(probe_of(graph, 0, 0, 2), 0, 1, 0);
    probe_of(graph, 0, 1, 1);
    join_end(&join, graph);
}
