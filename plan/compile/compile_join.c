/* Compiling joins. An inner one gets its graph and a term plan, and reads the tables of bare scans itself; any other leaf sends to a port of its
 * own, and where it is no scan with filters and projects above, its rows are kept from the start. An outer one has two inputs and keeps
 * both. */
#include "compile.h"

/* ---- Inner joins ----------------------------------------------------------------------------------------------------------------- */

/* A scan with filters and projects above it. */
static bool is_chain(const ivm__node *node)
{
    while (node->op == IVM__PLAN_FILTER || node->op == IVM__PLAN_PROJECT) {
        node = node->inputs[0];
    }
    return node->op == IVM__PLAN_SCAN;
}

static ivm_status compile_leaf(ivm__compiler *it, const ivm__graph_leaf *leaf, ivm__leaf_spec *spec, ivm__operator **operator)
{
    *spec = (ivm__leaf_spec){ .columns_count = leaf->columns_count, .needed = ivm__compile_needed(it, leaf->node) };
    if (!spec->needed) {
        return IVM_OUT_OF_MEMORY;
    }
    if (leaf->node->op == IVM__PLAN_SCAN) {
        spec->table = leaf->node->table;
        spec->view = leaf->node->view;
        spec->heading = leaf->node->heading;
        spec->types = spec->table ? spec->heading->types : spec->view->types;
        return IVM_OK;
    }
    uint32_t first = it->program->operators_count;
    IVM_TRY(ivm__compile_node(it, leaf->node, false, operator));
    spec->types = (*operator)->types;
    spec->scan = is_chain(leaf->node) ? it->program->operators[first] : NULL; /* whose first operator is its scan */
    return IVM_OK;
}

static ivm_status make_join(ivm__compiler *it, const ivm__node *node, uint32_t join, const ivm__leaf_spec *leaves, ivm__operator **operator)
{
    ivm__graph *graph = it->planned->graphs[join];
    ivm__expression *residual = NULL;
    ivm__term_plan *plan = NULL;
    const bool *needed = ivm__compile_needed(it, node);
    if (!needed) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__compile_copy(it, node->expressions_count ? node->expressions[0] : NULL, &residual));
    ivm_status status = ivm__term_plan_create(it->engine, graph, &plan);
    if (status != IVM_OK) {
        ivm__expression_free(residual, &it->engine->memory, &it->engine->texts);
        return status;
    }
    ivm__join_spec spec = {
        .leaves = leaves,
        .leaves_count = graph->leaves_count,
        .orders = graph->orders,
        .residual = residual,
        .needed_above = needed,
        .planner = ivm__term_planner(plan),
    };
    ivm__operator *made = NULL;
    status = ivm__join_create(&it->engine->memory, &it->engine->texts, it->engine->seed, &spec, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    it->planned->plans[join] = plan;
    it->planned->joins[join] = made;
    return IVM_OK;
}

ivm_status ivm__compile_join(ivm__compiler *it, ivm__node *node, ivm__operator **operator)
{
    uint32_t join = it->joins_next++;
    IVM_TRY(ivm__graph_make(it->engine, node, &it->planned->graphs[join], NULL));
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
            ivm__wire(senders[i], *operator, i);
        }
    }
    return IVM_OK;
}

/* ---- Outer, semi and anti joins ------------------------------------------------------------------------------------------------------ */

/* The equated columns as positions in their own inputs, paired. False: out of memory. */
static bool outer_keys(ivm__compiler *it, const ivm__node *node, uint32_t left_count, uint32_t **left, uint32_t **right)
{
    uint32_t count = node->equalities_count;
    *left = ivm__arena_allocate(&it->engine->scratch, count * sizeof **left);
    *right = ivm__arena_allocate(&it->engine->scratch, count * sizeof **right);
    if (!*left || !*right) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = node->equalities[i].a, b = node->equalities[i].b;
        assert((a < left_count) != (b < left_count));
        (*left)[i] = a < left_count ? a : b;
        (*right)[i] = (a < left_count ? b : a) - left_count;
    }
    return true;
}

static ivm_status make_outer(ivm__compiler *it, const ivm__node *node, const ivm__operator *left, const ivm__operator *right,
                             ivm__operator **made)
{
    ivm_engine *engine = it->engine;
    uint32_t *left_keys, *right_keys;
    if (!outer_keys(it, node, left->columns_count, &left_keys, &right_keys)) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__outer_spec spec = {
        .kind = node->kind,
        .left_types = left->types,
        .right_types = right->types,
        .left_count = left->columns_count,
        .right_count = right->columns_count,
        .left_keys = left_keys,
        .right_keys = right_keys,
        .keys_count = node->equalities_count,
    };
    IVM_TRY(ivm__compile_copy(it, node->expressions_count ? node->expressions[0] : NULL, &spec.condition));
    return ivm__outer_create(&engine->memory, &engine->texts, engine->seed, &spec, made);
}

ivm_status ivm__compile_outer(ivm__compiler *it, ivm__node *node, ivm__operator **operator)
{
    ivm__operator *inputs[2] = { NULL, NULL }, *made = NULL;
    assert(node->inputs_count == 2);
    for (uint32_t i = 0; i < 2; i++) {
        bool judged = ivm__node_judges_input(node, node->inputs[i], false);
        IVM_TRY(ivm__compile_node(it, node->inputs[i], judged, &inputs[i]));
    }
    ivm_status status = make_outer(it, node, inputs[0], inputs[1], &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__wire(inputs[0], made, IVM__OUTER_LEFT);
    ivm__wire(inputs[1], made, IVM__OUTER_RIGHT);
    return IVM_OK;
}
