/* Compiling: from the checked tree to a program, an operator a node, inputs before their readers.
 *
 *     scan, filter, project, aggregate     one operator each, wired to its reader's port
 *     join                                 its graph and term plan first, then its leaves; a bare scan below it has no operator, the join reads
 *                                          the table itself
 *     root                                 an aggregate keeps the view's rows, above anything else a materialize operator does
 *
 * Expressions move from the tree into the operators; the tree stays for explain. */
#include "plan.h"

typedef struct compiler {
    ivm_engine *engine;
    const char *view;
    ivm__planned *planned;
    ivm__program *program;
    uint32_t joins_next;
} compiler;

/* ---- Pieces --------------------------------------------------------------------------------------------------------------------- */

static void wire(ivm__operator *operator, ivm__operator * reader, uint32_t port)
{
    operator->next = reader;
    operator->next_port = port;
}

/* Hands an operator, if it could be made, to the program. */
static ivm_status add_made(compiler *it, ivm_status status, ivm__operator *made, ivm__operator **operator)
{
    IVM_TRY(status);
    made->view = it->view;
    *operator= made;
    return ivm__program_add(it->program, made);
}

static ivm__expression *take(ivm__expression **expression)
{
    ivm__expression *taken = *expression;
    *expression = NULL;
    return taken;
}

static ivm__expression *take_first(ivm__node *node)
{
    return node->expressions_count ? take(&node->expressions[0]) : NULL;
}

static ivm_status compile_node(compiler *it, ivm__node *node, ivm__operator **operator);

/* ---- Operators with one input ---------------------------------------------------------------------------------------------------------- */

static ivm_status compile_scan(compiler *it, ivm__node *node, ivm__operator **operator)
{
    ivm__operator *made = NULL;
    ivm__memory *memory = &it->engine->memory;
    ivm_status status = node->table ? ivm__scan_create(memory, node->table, &made) : ivm__scan_view_create(memory, node->view, &made);
    return add_made(it, status, made, operator);
}

static ivm_status compile_filter(compiler *it, ivm__node *node, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(compile_node(it, node->inputs[0], &input));
    ivm_status status =
        ivm__filter_create(&it->engine->memory, &it->engine->texts, input->types, input->columns_count, take_first(node), &made);
    IVM_TRY(add_made(it, status, made, operator));
    wire(input, made, 0);
    return IVM_OK;
}

static ivm_status compile_project(compiler *it, ivm__node *node, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(compile_node(it, node->inputs[0], &input));
    ivm_status status = ivm__project_create(&it->engine->memory, &it->engine->texts, node->expressions, node->expressions_count, &made);
    memset(node->expressions, 0, node->expressions_count * sizeof(ivm__expression *)); /* taken, whatever the outcome */
    IVM_TRY(add_made(it, status, made, operator));
    wire(input, made, 0);
    return IVM_OK;
}

static ivm_status compile_aggregate(compiler *it, ivm__node *node, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(compile_node(it, node->inputs[0], &input));
    ivm_engine *engine = it->engine;
    ivm_status status = ivm__aggregate_create(&engine->memory, &engine->texts, engine->seed, node->groups, node->groups_count,
                                              node->aggregates, node->aggregates_count, take_first(node), &made);
    memset(node->groups, 0, node->groups_count * sizeof(ivm__expression *));
    for (uint32_t i = 0; i < node->aggregates_count; i++) {
        node->aggregates[i].argument = node->aggregates[i].where = NULL;
    }
    IVM_TRY(add_made(it, status, made, operator));
    wire(input, made, 0);
    return IVM_OK;
}

/* ---- Joins ---------------------------------------------------------------------------------------------------------------------- */

/* A scan with filters and projects above it. */
static bool is_chain(const ivm__node *node)
{
    while (node->op == IVM__PLAN_FILTER || node->op == IVM__PLAN_PROJECT) {
        node = node->inputs[0];
    }
    return node->op == IVM__PLAN_SCAN;
}

static ivm_status compile_leaf(compiler *it, const ivm__graph_leaf *leaf, ivm__leaf_spec *spec, ivm__operator **operator)
{
    *spec = (ivm__leaf_spec){ .columns_count = leaf->columns_count, .needed = leaf->node->needed };
    if (leaf->node->op == IVM__PLAN_SCAN) {
        spec->table = leaf->node->table;
        spec->view = leaf->node->view;
        spec->types = spec->table ? spec->table->types : spec->view->types;
        return IVM_OK;
    }
    uint32_t first = it->program->operators_count;
    IVM_TRY(compile_node(it, leaf->node, operator));
    spec->types = (*operator)->types;
    spec->scan = is_chain(leaf->node) ? it->program->operators[first] : NULL; /* whose first operator is its scan */
    return IVM_OK;
}

static ivm_status make_join(compiler *it, ivm__node *node, uint32_t join, const ivm__leaf_spec *leaves, ivm__operator **operator)
{
    ivm__graph *graph = it->planned->graphs[join];
    ivm__term_plan *plan = NULL;
    IVM_TRY(ivm__term_plan_create(it->engine, graph, &plan));
    ivm__join_spec spec = {
        .leaves = leaves,
        .leaves_count = graph->leaves_count,
        .orders = graph->orders,
        .residual = take_first(node),
        .needed_above = node->needed,
        .planner = ivm__term_planner(plan),
    };
    ivm__operator *made = NULL;
    ivm_status status = ivm__join_create(&it->engine->memory, &it->engine->texts, it->engine->seed, &spec, &made);
    IVM_TRY(add_made(it, status, made, operator));
    it->planned->plans[join] = plan;
    return IVM_OK;
}

static ivm_status compile_leaves(compiler *it, ivm__node *node, uint32_t join, ivm__operator **operator)
{
    const ivm__graph *graph = it->planned->graphs[join];
    ivm__leaf_spec *leaves = ivm__arena_allocate(&it->engine->scratch, graph->leaves_count * sizeof *leaves);
    ivm__operator **senders = ivm__arena_allocate(&it->engine->scratch, graph->leaves_count * sizeof(ivm__operator *));
    if (!leaves || !senders) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(senders, 0, graph->leaves_count * sizeof(ivm__operator *));
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        IVM_TRY(compile_leaf(it, &graph->leaves[i], &leaves[i], &senders[i]));
    }
    IVM_TRY(make_join(it, node, join, leaves, operator));
    for (uint32_t i = 0; i < graph->leaves_count; i++) {
        if (senders[i]) {
            wire(senders[i], *operator, i);
        }
    }
    return IVM_OK;
}

static ivm_status compile_join(compiler *it, ivm__node *node, ivm__operator **operator)
{
    uint32_t join = it->joins_next++;
    IVM_TRY(ivm__graph_make(it->engine, node, &it->planned->graphs[join], NULL)); /* before its leaves lose their expressions */
    ivm__arena_mark mark = ivm__arena_here(&it->engine->scratch);
    ivm_status status = compile_leaves(it, node, join, operator);
    ivm__arena_back(&it->engine->scratch, mark);
    return status;
}

/* ---- The program ------------------------------------------------------------------------------------------------------------------ */

static ivm_status compile_node(compiler *it, ivm__node *node, ivm__operator **operator)
{
    switch (node->op) {
    case IVM__PLAN_SCAN:
        return compile_scan(it, node, operator);
    case IVM__PLAN_FILTER:
        return compile_filter(it, node, operator);
    case IVM__PLAN_PROJECT:
        return compile_project(it, node, operator);
    case IVM__PLAN_JOIN:
        return compile_join(it, node, operator);
    case IVM__PLAN_AGGREGATE:
        break;
    }
    return compile_aggregate(it, node, operator);
}

static ivm_status compile_root(compiler *it, ivm__node *root)
{
    ivm__operator *top = NULL, *made = NULL;
    IVM_TRY(compile_node(it, root, &top));
    if (root->op == IVM__PLAN_AGGREGATE) {
        it->program->result = ivm__aggregate_result(top);
        return IVM_OK;
    }
    ivm_engine *engine = it->engine;
    ivm_status status = ivm__materialize_create(&engine->memory, &engine->texts, engine->seed, top->types, top->columns_count, &made);
    ivm__operator *materialize = NULL;
    IVM_TRY(add_made(it, status, made, &materialize));
    wire(top, materialize, 0);
    it->program->result = ivm__materialize_result(materialize);
    return IVM_OK;
}

static uint32_t count_joins(const ivm__node *node)
{
    uint32_t count = node->op == IVM__PLAN_JOIN;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        count += count_joins(node->inputs[i]);
    }
    return count;
}

ivm_status ivm__compile(ivm_engine *engine, const char *view, ivm__node *root, ivm__planned *planned, ivm__program *program,
                        ivm_error *error)
{
    assert(program->operators_count == 0 && !planned->graphs);
    uint32_t joins_count = count_joins(root);
    planned->joins_count = joins_count;
    planned->graphs = ivm__allocate_zeroed(&engine->memory, joins_count * sizeof(ivm__graph *));
    planned->plans = ivm__allocate_zeroed(&engine->memory, joins_count * sizeof(ivm__term_plan *));
    if (!planned->graphs || !planned->plans) {
        return ivm__fail_memory(error);
    }
    compiler it = { .engine = engine, .view = view, .planned = planned, .program = program };
    if (compile_root(&it, root) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    assert(it.joins_next == joins_count && program->result);
    return IVM_OK;
}

void ivm__planned_free(ivm__planned *planned, ivm__memory *memory)
{
    if (!planned) {
        return;
    }
    for (uint32_t i = 0; planned->graphs && i < planned->joins_count; i++) {
        ivm__graph_free(planned->graphs[i]);
    }
    ivm__release(memory, planned->graphs, planned->joins_count * sizeof(ivm__graph *));
    ivm__release(memory, planned->plans, planned->joins_count * sizeof(ivm__term_plan *));
    ivm__node_free(planned->node, planned->engine);
    ivm__release(memory, planned, sizeof *planned);
}
