/* Join graphs: where leaves' columns come from, which columns are equal, and nothing left when memory runs out. */
#include "allocator.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define COLUMNS 3u

/* Up to four leaves of three columns, over scans of one table. */
typedef struct test_tree {
    test_allocator allocator;
    ivm_engine engine; /* its memory alone is used */
    ivm_table table;
    ivm__expression expressions[4][COLUMNS];
    ivm__expression *columns_of[4][COLUMNS];
    ivm__node nodes[12];
    ivm__node *links[12];
    uint32_t nodes_count;
    ivm__node *inputs[4];
    ivm__equality equalities[8];
    ivm__node join;
} test_tree;

static void tree_start(test_tree *tree)
{
    memset(tree, 0, sizeof *tree);
    test_allocator_init(&tree->allocator);
    ivm_allocator functions = test_allocator_functions(&tree->allocator);
    ivm__memory_init(&tree->engine.memory, &functions);
    tree->table = (ivm_table){ .columns_count = COLUMNS };
    tree->join = (ivm__node){ .op = IVM__PLAN_JOIN, .inputs = tree->inputs, .equalities = tree->equalities };
}

static ivm__node *make_node(test_tree *tree, ivm__plan_op op, ivm__node *input)
{
    uint32_t at = tree->nodes_count++;
    tree->links[at] = input;
    tree->nodes[at] = (ivm__node){ .op = op, .columns_count = COLUMNS, .inputs = &tree->links[at], .inputs_count = input ? 1 : 0 };
    return &tree->nodes[at];
}

static ivm__node *make_scan(test_tree *tree)
{
    ivm__node *scan = make_node(tree, IVM__PLAN_SCAN, NULL);
    scan->table = &tree->table;
    return scan;
}

/* A project whose i-th column is the input's columns[i]; UINT32_MAX: a computed one. */
static ivm__node *make_project(test_tree *tree, uint32_t set, const uint32_t columns[COLUMNS], ivm__node *input)
{
    ivm__node *project = make_node(tree, IVM__PLAN_PROJECT, input);
    project->expressions = tree->columns_of[set];
    project->expressions_count = COLUMNS;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        bool plain = columns[i] != UINT32_MAX;
        tree->expressions[set][i] = (ivm__expression){ .function = plain ? IVM__COLUMN : IVM__NEGATE, .column = plain ? columns[i] : 0 };
        tree->columns_of[set][i] = &tree->expressions[set][i];
    }
    return project;
}

static void add_leaf(test_tree *tree, ivm__node *leaf)
{
    tree->inputs[tree->join.inputs_count++] = leaf;
    tree->join.columns_count += COLUMNS;
}

static void equate(test_tree *tree, uint32_t a, uint32_t b)
{
    tree->equalities[tree->join.equalities_count++] = (ivm__equality){ a, b };
}

static ivm__graph *make_graph(test_tree *tree)
{
    ivm__graph *graph = NULL;
    cr_assert_eq(ivm__graph_make(&tree->engine, &tree->join, &graph, NULL), IVM_OK);
    return graph;
}

Test(plan_graph, leaves_are_numbered_in_reading_order)
{
    static test_tree tree;
    tree_start(&tree);
    add_leaf(&tree, make_scan(&tree));
    add_leaf(&tree, make_scan(&tree));
    ivm__graph *graph = make_graph(&tree);
    cr_assert_eq(graph->leaves_count, 2u);
    cr_assert_eq(graph->columns_count, 2 * COLUMNS);
    cr_assert_eq(graph->leaves[1].columns_first, COLUMNS);
    cr_assert_eq(graph->leaves[1].node, tree.inputs[1]);
    cr_assert_eq(graph->leaves[1].table, &tree.table);
    ivm__graph_free(graph);
}

Test(plan_graph, origins_lead_through_filters_and_projects)
{
    static test_tree tree;
    tree_start(&tree);
    ivm__node *filter = make_node(&tree, IVM__PLAN_FILTER, make_scan(&tree));
    ivm__node *lower = make_project(&tree, 0, (const uint32_t[]){ 2, UINT32_MAX, 0 }, filter);
    ivm__node *upper = make_project(&tree, 1, (const uint32_t[]){ 2, 0, 1 }, make_node(&tree, IVM__PLAN_FILTER, lower));
    add_leaf(&tree, make_scan(&tree));
    add_leaf(&tree, upper);
    ivm__graph *graph = make_graph(&tree);
    cr_assert_eq(graph->leaves[1].table, &tree.table);
    cr_assert_eq(graph->leaves[1].origin[0], 0u);
    cr_assert_eq(graph->leaves[1].origin[1], 2u);
    cr_assert_eq(graph->leaves[1].origin[2], UINT32_MAX);
    cr_assert_eq(graph->leaves[0].origin[2], 2u);
    ivm__graph_free(graph);
}

Test(plan_graph, aggregates_and_joins_repeat_no_table)
{
    static test_tree tree;
    tree_start(&tree);
    add_leaf(&tree, make_node(&tree, IVM__PLAN_FILTER, make_node(&tree, IVM__PLAN_AGGREGATE, make_scan(&tree))));
    add_leaf(&tree, make_project(&tree, 0, (const uint32_t[]){ 0, 1, 2 }, make_node(&tree, IVM__PLAN_JOIN, make_scan(&tree))));
    ivm__graph *graph = make_graph(&tree);
    for (uint32_t leaf = 0; leaf < 2; leaf++) {
        cr_assert_null(graph->leaves[leaf].table);
        for (uint32_t i = 0; i < COLUMNS; i++) {
            cr_assert_eq(graph->leaves[leaf].origin[i], UINT32_MAX);
        }
    }
    ivm__graph_free(graph);
}

Test(plan_graph, equality_is_closed_and_named_by_the_least_column)
{
    static test_tree tree;
    tree_start(&tree);
    for (uint32_t i = 0; i < 4; i++) {
        add_leaf(&tree, make_scan(&tree));
    }
    equate(&tree, 9, 6); /* 4 = 9 = 6 = 1, told from the end */
    equate(&tree, 9, 4);
    equate(&tree, 1, 6);
    equate(&tree, 11, 8); /* 8 = 11 */
    ivm__graph *graph = make_graph(&tree);
    static const uint32_t classes[] = { 0, 1, 2, 3, 1, 5, 1, 7, 8, 1, 10, 8 };
    for (uint32_t i = 0; i < 4 * COLUMNS; i++) {
        cr_assert_eq(graph->class_of[i], classes[i], "column %u: class %u, not %u", i, graph->class_of[i], classes[i]);
    }
    ivm__graph_free(graph);
}

Test(plan_graph, a_failed_allocation_leaves_nothing)
{
    static test_tree tree;
    tree_start(&tree);
    for (uint32_t i = 0; i < 4; i++) {
        add_leaf(&tree, make_scan(&tree));
    }
    equate(&tree, 0, 3);
    equate(&tree, 3, 6);
    uint64_t failures = 0;
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm_error error = IVM_ERROR_INIT;
        ivm__graph *graph = NULL;
        test_allocator_arm(&tree.allocator, n);
        ivm_status status = ivm__graph_make(&tree.engine, &tree.join, &graph, &error);
        done = !test_allocator_disarm(&tree.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "allocation %lu", (unsigned long)n);
        cr_assert_eq(error.status, status);
        ivm__graph_free(graph);
        cr_assert(test_allocator_is_clean(&tree.allocator), "allocation %lu", (unsigned long)n);
        failures += !done;
    }
    cr_assert_geq(failures, 10u);
}
