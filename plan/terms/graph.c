/* The join graph: the leaves of a checked join, where their columns come from, and which columns are equal. Equality is closed over chains: with
 * f.d = x.k and x.k = d.id the three columns are one class, named by its least column. Cost: linear in columns and equalities, once
 * a view. */
#include "plan.h"

/* ---- Origins -------------------------------------------------------------------------------------------------------------------- */

/* The table whose rows the node repeats, filtered and projected or not. */
static ivm_table *node_table(const ivm__node *node)
{
    while (node->op == IVM__PLAN_FILTER || node->op == IVM__PLAN_PROJECT) {
        node = node->inputs[0];
    }
    return node->op == IVM__PLAN_SCAN ? node->table : NULL;
}

/* The table's column that this column of such a node is, numbered as its scan numbers them; UINT32_MAX for a computed one. */
static uint32_t column_origin(const ivm__node *node, uint32_t column)
{
    for (; node->op != IVM__PLAN_SCAN; node = node->inputs[0]) {
        if (node->op == IVM__PLAN_PROJECT) {
            const ivm__expression *expression = node->expressions[column];
            if (expression->function != IVM__COLUMN) {
                return UINT32_MAX;
            }
            column = expression->column;
        }
    }
    return column;
}

static const ivm__heading *node_heading(const ivm__node *node)
{
    while (node->op != IVM__PLAN_SCAN) {
        node = node->inputs[0];
    }
    return node->heading;
}

static ivm_status fill_leaf(ivm__graph *graph, ivm__node *node, ivm__graph_leaf *leaf)
{
    uint32_t *origin = ivm__allocate(graph->memory, node->columns_count * sizeof *origin);
    if (!origin) {
        return IVM_OUT_OF_MEMORY;
    }
    *leaf = (ivm__graph_leaf){
        .node = node,
        .columns_first = graph->columns_count,
        .columns_count = node->columns_count,
        .table = node_table(node),
        .origin = origin,
    };
    leaf->heading = leaf->table ? node_heading(node) : NULL;
    for (uint32_t i = 0; i < node->columns_count; i++) {
        origin[i] = leaf->table ? column_origin(node, i) : UINT32_MAX;
    }
    graph->columns_count += node->columns_count;
    return IVM_OK;
}

/* ---- Classes --------------------------------------------------------------------------------------------------------------------- */

static uint32_t class_root(uint32_t *class_of, uint32_t column)
{
    while (class_of[column] != column) {
        class_of[column] = class_of[class_of[column]];
        column = class_of[column];
    }
    return column;
}

/* Union-find in which a root is always the least of its class. */
static void close_equalities(ivm__graph *graph)
{
    for (uint32_t i = 0; i < graph->columns_count; i++) {
        graph->class_of[i] = i;
    }
    for (uint32_t i = 0; i < graph->equalities_count; i++) {
        uint32_t a = class_root(graph->class_of, graph->equalities[i].a), b = class_root(graph->class_of, graph->equalities[i].b);
        graph->class_of[a > b ? a : b] = a > b ? b : a;
    }
    for (uint32_t i = 0; i < graph->columns_count; i++) {
        graph->class_of[i] = class_root(graph->class_of, i);
    }
}

/* ---- The graph --------------------------------------------------------------------------------------------------------------------- */

static ivm_status graph_fill(ivm__graph *graph, ivm__node *join)
{
    graph->leaves = ivm__allocate_zeroed(graph->memory, join->inputs_count * sizeof *graph->leaves);
    if (!graph->leaves) {
        return IVM_OUT_OF_MEMORY;
    }
    graph->leaves_count = join->inputs_count;
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        IVM_TRY(fill_leaf(graph, join->inputs[i], &graph->leaves[i]));
    }
    assert(graph->columns_count == join->columns_count);
    size_t size = join->equalities_count * sizeof *graph->equalities;
    graph->equalities = ivm__allocate(graph->memory, size);
    if (!graph->equalities) {
        return IVM_OUT_OF_MEMORY;
    }
    if (size) {
        memcpy(graph->equalities, join->equalities, size);
    }
    graph->equalities_count = join->equalities_count;
    graph->class_of = ivm__allocate(graph->memory, graph->columns_count * sizeof *graph->class_of);
    if (!graph->class_of) {
        return IVM_OUT_OF_MEMORY;
    }
    close_equalities(graph);
    return ivm__probe_orders_make(graph);
}

ivm_status ivm__graph_make(ivm_engine *engine, ivm__node *join, ivm__graph **graph, ivm_error *error)
{
    assert(join->op == IVM__PLAN_JOIN && join->inputs_count <= IVM_JOIN_LEAVES_MAX);
    ivm__graph *made = ivm__allocate_zeroed(&engine->memory, sizeof *made);
    if (!made) {
        return ivm__fail_memory(error);
    }
    made->memory = &engine->memory;
    if (graph_fill(made, join) != IVM_OK) {
        ivm__graph_free(made);
        return ivm__fail_memory(error);
    }
    *graph = made;
    return IVM_OK;
}

void ivm__graph_free(ivm__graph *graph)
{
    if (!graph) {
        return;
    }
    ivm__memory *memory = graph->memory;
    ivm__probe_orders_free(graph);
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        ivm__release(memory, graph->leaves[i].origin, graph->leaves[i].columns_count * sizeof *graph->leaves[i].origin);
    }
    ivm__release(memory, graph->leaves, graph->leaves_count * sizeof *graph->leaves);
    ivm__release(memory, graph->equalities, graph->equalities_count * sizeof *graph->equalities);
    ivm__release(memory, graph->class_of, graph->columns_count * sizeof *graph->class_of);
    ivm__release(memory, graph, sizeof *graph);
}
