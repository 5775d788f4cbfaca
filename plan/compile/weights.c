/* Weights inside a plan: a net row weight past int64 at any node is an overflow, whatever stands above it.
 *
 *     always          where weights may add up or multiply, a weigh operator keeps their sum: while it fits int64 every row does
 *     where not       the plan is compiled a second time, with a judge after each such node that keeps whole rows, and filled from the tables
 *                     as they are now; that program lives for the question alone
 *
 * Only rows that come with weights of their own, from tables without a key, can get there: what enters row by row would take more steps than
 * there is time for. Where a table does not keep its rows there is nothing to compute anew from, and the sum decides. Cost: an addition a row; in the second case, which no ordinary weights meet, the plan computed anew. */
#include "check.h"
#include "compile.h"

/* ---- What can outgrow int64 ----------------------------------------------------------------------------------------------------------- */

static bool is_projecting(const ivm__node *node)
{
    return node->op == IVM__PLAN_PROJECT && !node->hidden;
}

static bool joins(const ivm__node *node)
{
    return node->op == IVM__PLAN_JOIN || (node->op == IVM__PLAN_OUTER && node->kind != IVM_SEMI_JOIN && node->kind != IVM_ANTI_JOIN);
}

static bool inputs_are_single(const ivm__node *node)
{
    bool single = true;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        single &= node->inputs[i]->single;
    }
    return single;
}

static bool is_single(const ivm__node *node)
{
    switch (node->op) {
    case IVM__PLAN_SCAN:
        return node->table ? node->table->key_count > 0 : node->view->planned->node->single;
    case IVM__PLAN_AGGREGATE:
        return true;
    case IVM__PLAN_SET:
        if (node->set == IVM__SET_EXCEPT_ALL || node->set == IVM__SET_INTERSECT_ALL) {
            return node->inputs[0]->single;
        }
        return node->set != IVM__SET_UNION_ALL;
    default:
        return !is_projecting(node) && inputs_are_single(node);
    }
}

static bool is_counted(const ivm__node *node)
{
    bool adds = node->op == IVM__PLAN_PROJECT || node->op == IVM__PLAN_FILTER || node->set == IVM__SET_UNION_ALL;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        adds &= node->inputs[i]->counted;
    }
    return adds || node->single;
}

void ivm__weights_mark(ivm__node *node)
{
    node->single = is_single(node);
    node->counted = is_counted(node);
}

/* Whether rows of this node can weigh more than int64 though all rows that entered the program one by one do not. */
static bool may_outgrow(const ivm__node *node)
{
    bool union_all = node->op == IVM__PLAN_SET && node->set == IVM__SET_UNION_ALL;
    return (is_projecting(node) || joins(node) || union_all) && !node->counted;
}

/* Each row of the input is part of a row of the node's, which weighs no less; or the node keeps the rows and judges them itself. */
bool ivm__node_judges_input(const ivm__node *node, const ivm__node *input, bool judged)
{
    switch (node->op) {
    case IVM__PLAN_PROJECT:
        return !input->negative && (judged || may_outgrow(node));
    case IVM__PLAN_SET:
        return input->negative ? node->set != IVM__SET_UNION_ALL : node->set == IVM__SET_UNION_ALL && (judged || may_outgrow(node));
    case IVM__PLAN_AGGREGATE:
    case IVM__PLAN_TOP_K:
        return input->negative; /* by its signs */
    case IVM__PLAN_OUTER:
        return true;
    default:
        return false;
    }
}

bool ivm__column_is_there(const ivm__node *node, uint32_t column)
{
    switch (node->op) {
    case IVM__PLAN_SCAN:
        return !node->table || node->heading->columns[column] != UINT32_MAX;
    case IVM__PLAN_FILTER:
        return ivm__column_is_there(node->inputs[0], column);
    case IVM__PLAN_PROJECT: {
        const ivm__expression *expression = node->expressions[column];
        return expression->function != IVM__COLUMN || ivm__column_is_there(node->inputs[0], expression->column);
    }
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER: {
        uint32_t input = 0;
        while (column >= node->inputs[input]->columns_count) {
            column -= node->inputs[input++]->columns_count;
        }
        return ivm__column_is_there(node->inputs[input], column);
    }
    default:
        return true;
    }
}

/* ---- Judging --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status run_judges(const ivm__planned *planned, ivm__step *step)
{
    ivm_engine *engine = planned->engine;
    ivm__program program = { .memory = &engine->memory };
    ivm__planned own = { .node = planned->node, .engine = engine, .view = planned->view };
    ivm_stats ignored = { 0 };
    ivm__step filling = *step;
    filling.initial = true;
    filling.refreshing = false;
    filling.stats = &ignored;
    ivm_status status = ivm__compile_judges(engine, &own, &program, step->error);
    if (status == IVM_OK) {
        status = ivm__program_run(&program, &filling);
    }
    ivm__program_undo(&program);
    ivm__program_deinit(&program);
    ivm__planned_deinit(&own, &engine->memory);
    return status;
}

/* A table that a scan of the plan reads and of which there is nothing to compute anew from; NULL: none. */
static const ivm_table *table_not_kept(const ivm__node *node)
{
    const ivm_table *table = node->table && node->table->transient ? node->table : NULL;
    for (uint32_t i = 0; !table && i < node->inputs_count; i++) {
        table = table_not_kept(node->inputs[i]);
    }
    return table;
}

static ivm_status judge(void *context, ivm__step *step)
{
    const ivm__planned *planned = context;
    const ivm_table *lost = step->initial ? NULL : table_not_kept(planned->node);
    if (lost) {
        return ivm__fail(step->error, IVM_OVERFLOW,
                         "view %s: the weight of a row may be out of range within the plan: table %s does not keep its rows", planned->view,
                         lost->name);
    }
    ivm__arena_mark scratch = ivm__arena_here(step->scratch), kept = ivm__arena_here(step->arena);
    ivm_status status = run_judges(context, step);
    ivm__arena_back(step->arena, kept);
    ivm__arena_back(step->scratch, scratch);
    return status;
}

ivm_status ivm__compile_watch(ivm__compiler *it, const ivm__node *node, bool judged, ivm__operator **operator)
{
    ivm__operator *watched = *operator, * made = NULL;
    ivm__memory *memory = &it->engine->memory;
    ivm_status status;
    if (!may_outgrow(node) || (judged && !it->judges)) {
        return IVM_OK;
    }
    if (it->judges) {
        status = ivm__judge_create(memory, &it->engine->texts, it->engine->seed, watched->types, watched->columns_count, &made);
    } else {
        ivm__weigher weigher = { .judge = judge, .context = it->planned };
        status = ivm__weigh_create(memory, watched->types, watched->columns_count, node->negative, weigher, &made);
    }
    IVM_TRY(ivm__compile_add(it, status, made, operator));
    ivm__wire(watched, made, 0);
    return IVM_OK;
}
