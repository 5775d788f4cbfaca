/* Facts over leaves: which declared foreign keys lead from which leaf of a join to which, and through which columns. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

static fixture it;
static ivm_table *child, *parent;

static void open_tables(void)
{
    fixture_open(&it);
    child = fixture_table(&it, "c", "a int64; b int64; x float64; n int64", NULL);
    parent = fixture_table(&it, "p", "k int64; l int64; y float64", "k");
    fixture_table(&it, "o", "m int64; f float64", NULL);
}

static void close_tables(void)
{
    fixture_close(&it);
}

TestSuite(plan_facts, .init = open_tables, .fini = close_tables);

static ivm_fact *declare(ivm_table *from, const char *columns, ivm_table *to, const char *parent_columns)
{
    return fixture_fact(&it, from, columns, to, parent_columns, IVM_RELY);
}

static const char *column_name(const ivm__graph *graph, uint32_t column)
{
    uint32_t leaf = 0;
    while (column >= graph->leaves[leaf].columns_first + graph->leaves[leaf].columns_count) {
        leaf++;
    }
    return graph->leaves[leaf].node->columns[column - graph->leaves[leaf].columns_first].name;
}

/* The join of the tree: where columns of unlike types were made alike a project stands above it. */
static ivm__node *join_of(ivm__node *node)
{
    while (node->op != IVM__PLAN_JOIN) {
        node = node->inputs[0];
    }
    return node;
}

/* The edges of all declared facts in the plan's join, as "0>1 c.a=p.k; 0>2 ..." in the order in which they were found; "within" behind
 * one that leads from a table to itself. */
static const char *edges_of(ivm_plan *plan)
{
    static char text[1024];
    size_t size = 0;
    ivm__graph *graph = NULL;
    ivm__edges edges = { 0 };
    ivm__node *node = fixture_accepts(&it, plan);
    cr_assert_eq(ivm__graph_make(it.engine, join_of(node), &graph, &it.error), IVM_OK);
    for (ivm_fact *fact = it.engine->facts; fact; fact = fact->next) {
        cr_assert_eq(ivm__edges_add(&edges, graph, fact), IVM_OK);
    }
    text[0] = 0;
    for (uint32_t e = 0; e < edges.count; e++) {
        const ivm__edge *edge = &edges.edge[e];
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%u>%u", e ? "; " : "", edge->child, edge->parent);
        for (uint32_t i = 0; i < edge->pairs_count; i++) {
            const ivm__equality *pair = &edges.pairs[edge->pairs_first + i];
            size += (size_t)snprintf(text + size, sizeof text - size, " %s=%s", column_name(graph, pair->a), column_name(graph, pair->b));
        }
        cr_assert_not(edge->unused);
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", edge->within ? " within" : "");
    }
    ivm__edges_free(&edges, graph->memory);
    ivm__graph_free(graph);
    ivm__node_free(node, it.engine);
    return text;
}

static ivm_plan *pair_of(const char *on)
{
    return ivm_plan_join(scan_of("c", NULL), scan_of("p", NULL), on);
}

static ivm_plan *three_of(const char *on)
{
    ivm_plan *inputs[] = { scan_of("c", NULL), scan_of("o", NULL), scan_of("p", NULL) };
    return ivm_plan_join_many(inputs, 3, on);
}

/* ---- What the join equates ----------------------------------------------------------------------------------------------------------- */

Test(plan_facts, the_pair_may_be_written_either_way)
{
    declare(child, "a", parent, "k");
    cr_assert_str_eq(edges_of(pair_of("c.a = p.k")), "0>1 c.a=p.k");
    cr_assert_str_eq(edges_of(pair_of("p.k = c.a, c.b = p.l")), "0>1 c.a=p.k");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("p", NULL), scan_of("c", NULL), "c.a = p.k")), "1>0 c.a=p.k");
}

Test(plan_facts, other_columns_or_none_give_no_edge)
{
    declare(child, "a", parent, "k");
    cr_assert_str_eq(edges_of(pair_of("c.b = p.k")), "");
    cr_assert_str_eq(edges_of(pair_of("c.a = p.l")), "");
    cr_assert_str_eq(edges_of(pair_of(NULL)), "");
}

Test(plan_facts, a_condition_is_no_equality_of_the_join)
{
    declare(child, "a", parent, "k");
    ivm_expr *equal = ivm_call2("=", ivm_column("c.a"), ivm_column("p.k"));
    cr_assert_str_eq(edges_of(ivm_plan_join_where(pair_of("c.b = p.l"), equal)), "");
}

Test(plan_facts, equality_through_a_third_leaf_counts)
{
    declare(child, "a", parent, "k");
    cr_assert_str_eq(edges_of(three_of("c.a = o.m, o.m = p.k")), "0>2 c.a=p.k");
    cr_assert_str_eq(edges_of(three_of("c.a = o.m, c.b = p.k")), "");
}

Test(plan_facts, equality_through_another_type_does_not_count)
{
    declare(child, "a", parent, "k");
    cr_assert_str_eq(edges_of(three_of("c.a = o.f, o.f = p.k")), "", "two int64 that are one float64 need not be equal");
}

/* ---- Composite facts ------------------------------------------------------------------------------------------------------------------ */

Test(plan_facts, every_column_must_be_equated_in_its_pair)
{
    ivm_table *pair = fixture_table(&it, "q", "k int64; l int64", "k, l");
    declare(child, "a, b", pair, "l, k");
    ivm_plan *both = ivm_plan_join(scan_of("c", NULL), scan_of("q", NULL), "c.a = q.l, c.b = q.k");
    cr_assert_str_eq(edges_of(both), "0>1 c.a=q.l c.b=q.k");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), scan_of("q", NULL), "c.a = q.l")), "");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), scan_of("q", NULL), "c.a = q.k, c.b = q.l")), "");
    ivm_plan *through[] = { scan_of("c", NULL), scan_of("o", NULL), scan_of("q", NULL) };
    cr_assert_str_eq(edges_of(ivm_plan_join_many(through, 3, "c.a = o.m, o.m = q.l, q.k = c.b")), "0>2 c.a=q.l c.b=q.k");
}

/* ---- What stands between leaf and table ------------------------------------------------------------------------------------------------ */

Test(plan_facts, filters_and_projects_pass_a_column_on)
{
    declare(child, "a", parent, "k");
    ivm_plan *filtered = ivm_plan_filter(scan_of("c", NULL), call_of(">", "b", 0));
    cr_assert_str_eq(edges_of(ivm_plan_join(filtered, scan_of("p", NULL), "c.a = p.k")), "0>1 c.a=p.k");
    ivm_plan *renamed = ivm_plan_compute(ivm_plan_project(scan_of("p", NULL), "p.l"), "key", ivm_column("k"));
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), renamed, "a = key")), "0>1 c.a=key");
    ivm_plan *twice = ivm_plan_compute(ivm_plan_project(scan_of("c", NULL), "a"), "again", ivm_column("a"));
    cr_assert_str_eq(edges_of(ivm_plan_join(twice, scan_of("p", NULL), "again = p.k")), "0>1 again=p.k");
}

Test(plan_facts, a_computed_column_is_no_longer_the_tables)
{
    declare(child, "a", parent, "k");
    declare(child, "x", fixture_table(&it, "r", "z float64", "z"), "z");
    ivm_plan *sum = ivm_plan_compute(ivm_plan_project(scan_of("c", NULL), "b"), "a", call_of("+", "a", 0));
    cr_assert_str_eq(edges_of(ivm_plan_join(sum, scan_of("p", NULL), "a = p.k")), "");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), scan_of("r", NULL), "c.a = r.z")), "", "a cast column is computed");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), scan_of("r", NULL), "c.x = r.z")), "0>1 c.x=r.z");
}

Test(plan_facts, an_aggregate_repeats_no_rows)
{
    declare(child, "a", parent, "k");
    ivm_plan *grouped = ivm_plan_count(ivm_plan_aggregate(scan_of("c", NULL), "a"), "n");
    cr_assert_str_eq(edges_of(ivm_plan_join(grouped, scan_of("p", NULL), "a = p.k")), "");
    ivm_plan *keys = ivm_plan_count(ivm_plan_aggregate(scan_of("p", NULL), "k"), "n");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("c", NULL), keys, "c.a = k")), "");
}

/* ---- Several leaves and facts ------------------------------------------------------------------------------------------------------------ */

Test(plan_facts, each_alias_is_a_leaf_of_its_own)
{
    declare(child, "a", parent, "k");
    declare(child, "b", parent, "k");
    ivm_plan *roles[] = { scan_of("c", NULL), scan_of("p", "one"), scan_of("p", "two") };
    cr_assert_str_eq(edges_of(ivm_plan_join_many(roles, 3, "c.a = one.k, c.b = two.k")), "0>1 c.a=one.k; 0>2 c.b=two.k");
    ivm_plan *children[] = { scan_of("c", "left"), scan_of("p", NULL), scan_of("c", "right") };
    cr_assert_str_eq(edges_of(ivm_plan_join_many(children, 3, "left.a = p.k, right.b = p.k")), "0>1 left.a=p.k; 2>1 right.b=p.k");
    ivm_plan *same[] = { scan_of("c", NULL), scan_of("p", "one"), scan_of("p", "two") };
    cr_assert_str_eq(edges_of(ivm_plan_join_many(same, 3, "c.a = one.k, one.k = two.k")), "0>1 c.a=one.k; 0>2 c.a=two.k");
}

Test(plan_facts, a_fact_to_the_table_itself_leads_from_leaf_to_leaf_and_is_marked)
{
    declare(parent, "l", parent, "k");
    cr_assert_str_eq(edges_of(ivm_plan_join(scan_of("p", "low"), scan_of("p", "high"), "low.l = high.k")), "0>1 low.l=high.k within");
    ivm_plan *ring = ivm_plan_join(scan_of("p", "low"), scan_of("p", "high"), "low.l = high.k, high.l = low.k");
    cr_assert_str_eq(edges_of(ring), "0>1 low.l=high.k within; 1>0 high.l=low.k within");
    ivm_plan *chain[] = { scan_of("p", "a"), scan_of("p", "b"), scan_of("p", "c") };
    cr_assert_str_eq(edges_of(ivm_plan_join_many(chain, 3, "a.l = b.k, b.l = c.k")), "0>1 a.l=b.k within; 1>2 b.l=c.k within");
    ivm_plan *alone = ivm_plan_join(scan_of("p", NULL), scan_of("c", NULL), "p.l = c.a, p.k = c.a");
    cr_assert_str_eq(edges_of(alone), "", "a leaf does not refer to itself");
}

Test(plan_facts, a_cycle_of_two_tables_gives_two)
{
    declare(child, "a", parent, "k");
    declare(parent, "l", fixture_table(&it, "d", "k int64; l int64", "k"), "k");
    ivm_table *d = fixture_table_find(&it, "d");
    declare(d, "l", parent, "k");
    ivm_plan *join = ivm_plan_join(scan_of("p", NULL), scan_of("d", NULL), "p.l = d.k, d.l = p.k");
    cr_assert_str_eq(edges_of(join), "0>1 p.l=d.k; 1>0 d.l=p.k");
}

Test(plan_facts, a_table_made_again_inherits_none)
{
    declare(child, "a", parent, "k");
    cr_assert_eq(ivm_table_drop(parent, &it.error), IVM_OK);
    fixture_table(&it, "p", "k int64; l int64; y float64", "k");
    cr_assert_str_eq(edges_of(pair_of("c.a = p.k")), "");
}

/* ---- Memory ----------------------------------------------------------------------------------------------------------------------------- */

Test(plan_facts, out_of_memory_anywhere_leaves_what_was_found)
{
    declare(child, "a", parent, "k");
    ivm_fact *fact = declare(child, "b", parent, "k");
    ivm_plan *inputs[12] = { scan_of("c", NULL) };
    for (uint32_t i = 1; i < 12; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "p%u", i);
        inputs[i] = scan_of("p", alias);
    }
    ivm__graph *graph = NULL;
    ivm__node *node = fixture_accepts(&it, ivm_plan_join_many(inputs, 12,
                                                              "c.a = p1.k, p1.k = p2.k, c.b = p3.k, p3.k = p4.k, p4.k = p5.k, "
                                                              "p5.k = p6.k, p6.k = p7.k, p7.k = p8.k, p8.k = p9.k, "
                                                              "p9.k = p10.k, p10.k = p11.k"));
    cr_assert_eq(ivm__graph_make(it.engine, join_of(node), &graph, &it.error), IVM_OK);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm__edges edges = { 0 };
        cr_assert_eq(ivm__edges_add(&edges, graph, it.engine->facts), IVM_OK);
        cr_assert_eq(edges.count, 2u);
        test_allocator_arm(&it.allocator, n);
        ivm_status status = ivm__edges_add(&edges, graph, fact);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(edges.count >= 2 && edges.edge[0].parent == 1 && edges.edge[1].parent == 2);
        cr_assert(!done || edges.count == 11);
        ivm__edges_free(&edges, graph->memory);
        cr_assert_null(edges.edge);
    }
    cr_assert_gt(n, 2u, "the second fact's edges need room");
    ivm__graph_free(graph);
    ivm__node_free(node, it.engine);
}
