/* Compiling: from the checked tree to a program, an operator a node, inputs before their readers.
 *
 *     scan, filter, project, ...           one operator each, wired to its reader's port
 *     inner join                           its graph and term plan first, then its leaves; a bare scan below it has no operator, the join
 *                                          reads the table itself (compile_join.c)
 *     an input that may be negative        a signs operator before a reader to which rows are present or not
 *     weights that may outgrow int64       a weigh operator behind the node (weights.c)
 *     root                                 an aggregate keeps the view's rows, above anything else a materialize operator does
 *
 * Operators get copies of the tree's expressions; the tree stays for explain and for programs that judge weights. */
#include "compile.h"

/* ---- Pieces --------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__compile_add(ivm__compiler *it, ivm_status status, ivm__operator *made, ivm__operator **operator)
{
    IVM_TRY(status);
    made->view = it->view;
    *operator= made;
    return ivm__program_add(it->program, made);
}

ivm_status ivm__compile_copy(ivm__compiler *it, const ivm__expression *from, ivm__expression **to)
{
    *to = from ? ivm__expression_copy(from, &it->engine->memory) : NULL;
    return from && !*to ? IVM_OUT_OF_MEMORY : IVM_OK;
}

const bool *ivm__compile_needed(ivm__compiler *it, const ivm__node *node)
{
    if (!it->judges) {
        return node->needed;
    }
    bool *all = ivm__arena_allocate(&it->engine->scratch, node->columns_count * sizeof *all);
    for (uint32_t i = 0; all && i < node->columns_count; i++) {
        all[i] = ivm__column_is_there(node, i);
    }
    return all;
}

static void expressions_free(ivm__compiler *it, ivm__expression **expressions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__expression_free(expressions[i], &it->engine->memory, &it->engine->texts);
    }
}

/* Copies in the scratch arena's array, all or none; NULL: out of memory. */
static ivm__expression **expressions_copy(ivm__compiler *it, ivm__expression *const *from, uint32_t count)
{
    ivm__expression **to = ivm__arena_allocate(&it->engine->scratch, count * sizeof(ivm__expression *));
    for (uint32_t i = 0; to && i < count; i++) {
        if (ivm__compile_copy(it, from[i], &to[i]) != IVM_OK) {
            expressions_free(it, to, i);
            return NULL;
        }
    }
    return to;
}

/* The one input's operator; where its weights may be negative, the signs operator above it that sends to these ports of the reader. */
static ivm_status compile_input(ivm__compiler *it, const ivm__node *node, uint32_t index, ivm__signs_ports ports, ivm__operator **operator)
{
    ivm__node *input = node->inputs[index];
    ivm__operator *below = NULL, *made = NULL;
    IVM_TRY(ivm__compile_node(it, input, ivm__node_judges_input(node, input, false), &below));
    *operator= below;
    if (!input->negative) {
        return IVM_OK;
    }
    ivm_engine *engine = it->engine;
    ivm_status status = ivm__signs_create(&engine->memory, &engine->texts, engine->seed, below->types, below->columns_count, ports, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__wire(below, made, 0);
    return IVM_OK;
}

/* ---- Scans, filters, projects --------------------------------------------------------------------------------------------------------- */

static ivm_status compile_scan(ivm__compiler *it, const ivm__node *node, ivm__operator **operator)
{
    ivm__operator *made = NULL;
    ivm__memory *memory = &it->engine->memory;
    ivm_status status =
        node->table ? ivm__scan_create(memory, node->table, node->heading, &made) : ivm__scan_view_create(memory, node->view, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    const bool *needed = ivm__compile_needed(it, node);
    return needed ? ivm__scan_carry(made, memory, needed) : IVM_OUT_OF_MEMORY;
}

static ivm_status compile_filter(ivm__compiler *it, const ivm__node *node, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    ivm__expression *condition = NULL;
    IVM_TRY(ivm__compile_node(it, node->inputs[0], false, &input));
    IVM_TRY(ivm__compile_copy(it, node->expressions[0], &condition));
    ivm_status status = ivm__filter_create(&it->engine->memory, &it->engine->texts, input->types, input->columns_count, condition, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__wire(input, made, 0);
    return IVM_OK;
}

static const char *node_column_name(const void *of, uint32_t column)
{
    return ((const ivm__node *)of)->columns[column].name;
}

static ivm_status compile_project(ivm__compiler *it, const ivm__node *node, bool judged, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(ivm__compile_node(it, node->inputs[0], ivm__node_judges_input(node, node->inputs[0], judged), &input));
    ivm__expression **columns = expressions_copy(it, node->expressions, node->expressions_count);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = ivm__project_create(&it->engine->memory, &it->engine->texts, columns, node->expressions_count, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__project_name(made, node_column_name, node);
    ivm__wire(input, made, 0);
    return IVM_OK;
}

/* ---- Aggregates ------------------------------------------------------------------------------------------------------------------------ */

static void aggregates_free(ivm__compiler *it, ivm__aggregate_spec *specs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        expressions_free(it, &specs[i].argument, 1);
        expressions_free(it, &specs[i].where, 1);
    }
}

/* As expressions_copy(). */
static ivm__aggregate_spec *aggregates_copy(ivm__compiler *it, const ivm__node *node)
{
    ivm__aggregate_spec *to = ivm__arena_allocate(&it->engine->scratch, node->aggregates_count * sizeof *to);
    for (uint32_t i = 0; to && i < node->aggregates_count; i++) {
        to[i] = node->aggregates[i];
        to[i].argument = to[i].where = NULL;
        to[i].name = node->columns[node->groups_count + i].name;
        if (ivm__compile_copy(it, node->aggregates[i].argument, &to[i].argument) != IVM_OK ||
            ivm__compile_copy(it, node->aggregates[i].where, &to[i].where) != IVM_OK) {
            aggregates_free(it, to, i + 1);
            return NULL;
        }
    }
    return to;
}

static ivm_status make_aggregate(ivm__compiler *it, const ivm__node *node, ivm__operator **made)
{
    ivm_engine *engine = it->engine;
    ivm__expression *having = NULL;
    ivm__expression **groups = expressions_copy(it, node->groups, node->groups_count);
    ivm__aggregate_spec *specs = groups ? aggregates_copy(it, node) : NULL;
    ivm_status status = specs ? ivm__compile_copy(it, node->expressions_count ? node->expressions[0] : NULL, &having) : IVM_OUT_OF_MEMORY;
    if (status != IVM_OK) {
        expressions_free(it, groups, groups ? node->groups_count : 0);
        aggregates_free(it, specs, specs ? node->aggregates_count : 0);
        return status;
    }
    return ivm__aggregate_create(&engine->memory, &engine->texts, engine->seed, groups, node->groups_count, specs, node->aggregates_count,
                                 having, made);
}

static ivm_status compile_aggregate(ivm__compiler *it, ivm__node *node, ivm__operator **operator)
{
    static const ivm__signs_ports ports = { IVM__AGGREGATE_ROWS, IVM__AGGREGATE_PRESENT, IVM__AGGREGATE_SUPPORT };
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(compile_input(it, node, 0, ports, &input));
    ivm_status status = make_aggregate(it, node, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    node->place = it->judges ? node->place : it->program->operators_count - 1;
    ivm__wire(input, made, IVM__AGGREGATE_ROWS);
    return node->inputs[0]->negative ? ivm__aggregate_negative(made) : IVM_OK;
}

/* ---- Sets and top_k -------------------------------------------------------------------------------------------------------------------- */

static ivm_status make_set(ivm__compiler *it, const ivm__node *node, const ivm__operator *input, ivm__operator **made)
{
    ivm_engine *engine = it->engine;
    if (node->set == IVM__SET_UNION_ALL) {
        return ivm__union_all_create(&engine->memory, input->types, input->columns_count, made);
    }
    return ivm__set_create(&engine->memory, &engine->texts, engine->seed, node->set, input->types, input->columns_count, node->inputs_count,
                           made);
}

static ivm_status compile_set(ivm__compiler *it, const ivm__node *node, bool judged, ivm__operator **operator)
{
    ivm__operator **inputs = ivm__arena_allocate(&it->engine->scratch, node->inputs_count * sizeof(ivm__operator *)), *made = NULL;
    if (!inputs) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        ivm__node *input = node->inputs[i];
        if (node->set == IVM__SET_UNION_ALL) {
            IVM_TRY(ivm__compile_node(it, input, ivm__node_judges_input(node, input, judged), &inputs[i]));
        } else {
            IVM_TRY(compile_input(it, node, i, (ivm__signs_ports){ UINT32_MAX, i, UINT32_MAX }, &inputs[i]));
        }
    }
    ivm_status status = make_set(it, node, inputs[0], &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        ivm__wire(inputs[i], made, i);
    }
    return IVM_OK;
}

/* The orders with copies of their values, as expressions_copy(). */
static ivm__order_key *orders_copy(ivm__compiler *it, const ivm__node *node)
{
    ivm__order_key *to = ivm__arena_allocate(&it->engine->scratch, node->orders_count * sizeof *to);
    for (uint32_t i = 0; to && i < node->orders_count; i++) {
        to[i] = node->orders[i];
        if (ivm__compile_copy(it, node->orders[i].value, &to[i].value) != IVM_OK) {
            while (i > 0) {
                expressions_free(it, &to[--i].value, 1);
            }
            return NULL;
        }
    }
    return to;
}

static ivm_status make_top(ivm__compiler *it, const ivm__node *node, const ivm__operator *input, ivm__operator **made)
{
    ivm_engine *engine = it->engine;
    ivm__top_spec spec = {
        .types = input->types,
        .columns_count = input->columns_count,
        .partitions = expressions_copy(it, node->groups, node->groups_count),
        .partitions_count = node->groups_count,
        .orders_count = node->orders_count,
        .limit = node->limit,
        .offset = node->offset,
    };
    spec.orders = spec.partitions ? orders_copy(it, node) : NULL;
    if (!spec.orders) {
        expressions_free(it, spec.partitions, spec.partitions ? node->groups_count : 0);
        return IVM_OUT_OF_MEMORY;
    }
    return ivm__top_create(&engine->memory, &engine->texts, engine->seed, &spec, made);
}

static ivm_status compile_top_k(ivm__compiler *it, const ivm__node *node, ivm__operator **operator)
{
    ivm__operator *input = NULL, *made = NULL;
    IVM_TRY(compile_input(it, node, 0, (ivm__signs_ports){ UINT32_MAX, 0, UINT32_MAX }, &input));
    ivm_status status = make_top(it, node, input, &made);
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__wire(input, made, 0);
    return IVM_OK;
}

/* ---- The program ------------------------------------------------------------------------------------------------------------------ */

static ivm_status compile_op(ivm__compiler *it, ivm__node *node, bool judged, ivm__operator **operator)
{
    switch (node->op) {
    case IVM__PLAN_SCAN:
        return compile_scan(it, node, operator);
    case IVM__PLAN_FILTER:
        return compile_filter(it, node, operator);
    case IVM__PLAN_PROJECT:
        return compile_project(it, node, judged, operator);
    case IVM__PLAN_JOIN:
        return ivm__compile_join(it, node, operator);
    case IVM__PLAN_OUTER:
        return ivm__compile_outer(it, node, operator);
    case IVM__PLAN_SET:
        return compile_set(it, node, judged, operator);
    case IVM__PLAN_TOP_K:
        return compile_top_k(it, node, operator);
    case IVM__PLAN_AGGREGATE:
        break;
    }
    return compile_aggregate(it, node, operator);
}

ivm_status ivm__compile_node(ivm__compiler *it, ivm__node *node, bool judged, ivm__operator **operator)
{
    IVM_TRY(compile_op(it, node, judged, operator));
    return ivm__compile_watch(it, node, judged, operator);
}

static ivm_status compile_root(ivm__compiler *it, ivm__node *root)
{
    ivm__operator *top = NULL, *made = NULL;
    IVM_TRY(ivm__compile_node(it, root, true, &top));
    if (it->judges) {
        return IVM_OK;
    }
    if (root->op == IVM__PLAN_AGGREGATE) {
        it->program->result = ivm__aggregate_result(top);
        return IVM_OK;
    }
    ivm_engine *engine = it->engine;
    ivm_status status = ivm__materialize_create(&engine->memory, &engine->texts, engine->seed, top->types, top->columns_count, &made);
    ivm__operator *materialize = NULL;
    IVM_TRY(ivm__compile_add(it, status, made, &materialize));
    ivm__wire(top, materialize, 0);
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

static ivm_status compile(ivm__compiler *it, ivm_error *error)
{
    ivm__planned *planned = it->planned;
    ivm__memory *memory = &it->engine->memory;
    assert(it->program->operators_count == 0 && !planned->graphs);
    planned->view = it->view;
    planned->joins_count = count_joins(planned->node);
    planned->graphs = ivm__allocate_zeroed(memory, planned->joins_count * sizeof(ivm__graph *));
    planned->plans = ivm__allocate_zeroed(memory, planned->joins_count * sizeof(ivm__term_plan *));
    planned->joins = ivm__allocate_zeroed(memory, planned->joins_count * sizeof(ivm__operator *));
    if (!planned->graphs || !planned->plans || !planned->joins) {
        return ivm__fail_memory(error);
    }
    ivm__arena_mark mark = ivm__arena_here(&it->engine->scratch);
    ivm_status status = compile_root(it, planned->node);
    ivm__arena_back(&it->engine->scratch, mark);
    assert(status != IVM_OK || it->joins_next == planned->joins_count);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

ivm_status ivm__compile(ivm_engine *engine, const char *view, ivm__planned *planned, ivm__program *program, ivm_error *error)
{
    ivm__compiler it = { .engine = engine, .view = view, .planned = planned, .program = program };
    return compile(&it, error);
}

ivm_status ivm__compile_judges(ivm_engine *engine, ivm__planned *planned, ivm__program *program, ivm_error *error)
{
    ivm__compiler it = { .engine = engine, .view = planned->view, .planned = planned, .program = program, .judges = true };
    return compile(&it, error);
}

void ivm__planned_deinit(ivm__planned *planned, ivm__memory *memory)
{
    for (uint32_t i = 0; planned->graphs && i < planned->joins_count; i++) {
        ivm__graph_free(planned->graphs[i]);
    }
    ivm__release(memory, planned->graphs, planned->joins_count * sizeof(ivm__graph *));
    ivm__release(memory, planned->plans, planned->joins_count * sizeof(ivm__term_plan *));
    ivm__release(memory, planned->joins, planned->joins_count * sizeof(ivm__operator *));
}

void ivm__planned_free(ivm__planned *planned, ivm__memory *memory)
{
    if (!planned) {
        return;
    }
    ivm__planned_deinit(planned, memory);
    ivm__node_free(planned->node, planned->engine);
    ivm__release(memory, planned, sizeof *planned);
}
