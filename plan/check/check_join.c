/* Checking joins: a join and the inner joins nested in it become one node of all their leaves, in reading order. Each nested join's `on` is
 * resolved among its own inputs; their `where` become one residual condition, that of an inner join before that of the outer one. A filter or
 * project between two joins keeps them apart. An outer, semi or anti join is made of the same parts: two inputs and nothing flattened. */
#include "check.h"

void ivm__expression_renumber(ivm__expression *expression, uint32_t shift, const uint32_t *place)
{
    if (expression->function == IVM__COLUMN) {
        expression->column = place ? place[expression->column] : expression->column + shift;
    }
    for (uint32_t i = 0; i < expression->arguments_count; i++) {
        ivm__expression_renumber(expression->arguments[i], shift, place);
    }
}

/* ---- Parts ------------------------------------------------------------------------------------------------------------------------ */

static void parts_deinit(ivm__join_parts *parts, ivm__check *check)
{
    for (uint32_t i = 0; i < parts->leaves_count; i++) {
        ivm__node_free(parts->leaves[i], check->engine);
    }
    ivm__expression_free(parts->residual, check->memory, &check->engine->texts);
    ivm__release(check->memory, parts->columns, parts->columns_capacity * sizeof *parts->columns);
    ivm__release(check->memory, parts->pairs, parts->pairs_capacity * sizeof *parts->pairs);
    ivm__release(check->memory, parts->place, parts->place ? parts->columns_count * sizeof *parts->place : 0);
}

static ivm_status add_leaf(ivm__check *check, const ivm_plan *plan, ivm__join_parts *parts)
{
    if (parts->leaves_count == IVM_JOIN_LEAVES_MAX) {
        return ivm__fail(check->error, IVM_UNSUPPORTED, "a join has more than %d leaves", IVM_JOIN_LEAVES_MAX);
    }
    ivm__node *leaf = NULL;
    IVM_TRY(ivm__check_node(check, plan, &leaf));
    parts->leaf_first[parts->leaves_count] = parts->columns_count;
    parts->leaves[parts->leaves_count++] = leaf;
    uint64_t columns_count = (uint64_t)parts->columns_count + leaf->columns_count;
    if (ivm__grow(check->memory, (void **)&parts->columns, &parts->columns_capacity, columns_count, sizeof *parts->columns) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    memcpy(parts->columns + parts->columns_count, leaf->columns, leaf->columns_count * sizeof *leaf->columns);
    parts->columns_count = (uint32_t)columns_count;
    return IVM_OK;
}

/* The residual of a nested join decides first: what it does not let through was never a row of the outer join, whose condition is then not
 * computed. `and` would compute it beside a null. */
static ivm_status add_residual(ivm__check *check, ivm__expression *condition, ivm__join_parts *parts)
{
    if (!parts->residual) {
        parts->residual = condition;
        return IVM_OK;
    }
    ivm__expression *otherwise = ivm__expression_literal(check->memory, &check->engine->texts, IVM_BOOL, false, 0);
    ivm__expression *arguments[] = { parts->residual, condition, otherwise };
    parts->residual = ivm__expression_make(check->memory, IVM__CASE, IVM_BOOL, arguments, 3);
    return parts->residual ? IVM_OK : ivm__fail_memory(check->error);
}

/* ---- Flattening ------------------------------------------------------------------------------------------------------------------- */

/* One join among those flattened: the columns of its inputs. Small, for joins nest. */
typedef struct join_scope {
    uint32_t first;                          /* its first column in the parts */
    uint8_t input_leaf[IVM_JOIN_LEAVES_MAX]; /* the first of each input, in the parts */
    uint32_t inputs_count;
} join_scope;

static uint32_t scope_input(const join_scope *scope, const ivm__join_parts *parts, uint32_t column)
{
    uint32_t input = scope->inputs_count - 1;
    while (parts->leaf_first[scope->input_leaf[input]] > column) {
        input--;
    }
    return input;
}

static ivm_status add_pair(ivm__check *check, const join_scope *scope, ivm__names *known, const char *const names[2],
                           ivm__join_parts *parts)
{
    uint32_t at[2];
    for (int i = 0; i < 2; i++) {
        IVM_TRY(ivm__column_find(known, names[i], &at[i], check->error));
        at[i] += scope->first;
    }
    if (scope_input(scope, parts, at[0]) == scope_input(scope, parts, at[1])) {
        return ivm__fail(check->error, IVM_INVALID_PLAN, "on: %s and %s are of one input", names[0], names[1]);
    }
    ivm__join_pair pair = { .a = at[0], .b = at[1] };
    ivm_type a = parts->columns[at[0]].type, b = parts->columns[at[1]].type;
    if (ivm__type_unify(a, b, &pair.type, NULL) != IVM_OK) {
        char text_a[IVM_TYPE_TEXT_SIZE], text_b[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(a, text_a);
        ivm_type_format(b, text_b);
        return ivm__fail(check->error, IVM_TYPE_MISMATCH, "on: %s is %s, %s is %s", names[0], text_a, names[1], text_b);
    }
    uint64_t pairs_count = (uint64_t)parts->pairs_count + 1;
    if (ivm__grow(check->memory, (void **)&parts->pairs, &parts->pairs_capacity, pairs_count, sizeof *parts->pairs) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    parts->pairs[parts->pairs_count++] = pair;
    return IVM_OK;
}

static ivm_status flatten(ivm__check *check, const ivm_plan *plan, ivm__join_parts *parts);

static ivm_status flatten_inputs(ivm__check *check, const ivm_plan *plan, join_scope *scope, ivm__join_parts *parts)
{
    for (size_t i = 0; i < plan->inputs_count; i++) {
        const ivm_plan *input = plan->inputs[i];
        if (i < IVM_JOIN_LEAVES_MAX) {
            scope->input_leaf[i] = (uint8_t)parts->leaves_count;
            scope->inputs_count++;
        }
        bool nested = plan->op == IVM__PLAN_JOIN && input->op == IVM__PLAN_JOIN;
        IVM_TRY(nested ? flatten(check, input, parts) : add_leaf(check, input, parts));
    }
    return IVM_OK;
}

/* Its `on` and `where`. */
static ivm_status add_named(ivm__check *check, const ivm_plan *plan, const join_scope *scope, ivm__names *names, ivm__join_parts *parts)
{
    for (size_t i = 0; i < plan->on_count; i++) {
        IVM_TRY(add_pair(check, scope, names, (const char *const *)&plan->on[2 * i], parts));
    }
    if (!plan->where) {
        return IVM_OK;
    }
    ivm__expression *condition = NULL;
    IVM_TRY(ivm__check_condition(check, plan->where, names, &condition));
    ivm__expression_renumber(condition, scope->first, NULL);
    return add_residual(check, condition, parts);
}

/* Never a part of flatten(), which nests: its frame is small. */
static __attribute__((noinline)) ivm_status add_conditions(ivm__check *check, const ivm_plan *plan, const join_scope *scope,
                                                           ivm__join_parts *parts)
{
    ivm__names names;
    ivm__names_init(&names, check->memory, parts->columns + scope->first, parts->columns_count - scope->first);
    ivm_status status = add_named(check, plan, scope, &names, parts);
    ivm__names_deinit(&names);
    return status;
}

static ivm_status flatten(ivm__check *check, const ivm_plan *plan, ivm__join_parts *parts)
{
    join_scope scope = { .first = parts->columns_count };
    assert(plan->inputs_count >= 2);
    IVM_TRY(flatten_inputs(check, plan, &scope, parts));
    IVM_TRY(ivm__check_twins(check, parts->columns + scope.first, parts->columns_count - scope.first, ""));
    return add_conditions(check, plan, &scope, parts);
}

/* ---- The node ------------------------------------------------------------------------------------------------------------------- */

/* A semi or anti join gives the columns of its left input alone. */
static bool gives_left(const ivm_plan *plan)
{
    return plan->op == IVM__PLAN_OUTER && (plan->kind == IVM_SEMI_JOIN || plan->kind == IVM_ANTI_JOIN);
}

static ivm_status fill_columns(const ivm_plan *plan, const ivm__join_parts *parts, ivm__memory *memory, ivm__node *node)
{
    uint32_t columns_count = 0, at = 0, given = gives_left(plan) ? 1 : parts->leaves_count;
    for (uint32_t i = 0; i < given; i++) {
        columns_count += parts->leaves[i]->columns_count;
    }
    IVM_TRY(ivm__node_columns(node, memory, columns_count));
    for (uint32_t i = 0; i < given; i++) {
        const ivm__node *leaf = parts->leaves[i];
        for (uint32_t k = 0; k < leaf->columns_count; k++) {
            IVM_TRY(ivm__node_column_set(node, memory, at++, leaf->columns[k].name, leaf->columns[k].type));
        }
    }
    return IVM_OK;
}

/* Moves the leaves and the residual into the node. */
static ivm_status fill_join(const ivm_plan *plan, ivm__join_parts *parts, ivm__memory *memory, ivm__node *node)
{
    node->kind = plan->kind;
    IVM_TRY(fill_columns(plan, parts, memory, node));
    IVM_TRY(ivm__node_inputs(node, memory, parts->leaves_count));
    memcpy(node->inputs, parts->leaves, parts->leaves_count * sizeof(ivm__node *));
    parts->leaves_count = 0;
    node->equalities = ivm__allocate_zeroed(memory, parts->pairs_count * sizeof *node->equalities);
    if (!node->equalities) {
        return IVM_OUT_OF_MEMORY;
    }
    node->equalities_count = parts->pairs_count;
    for (uint32_t i = 0; i < parts->pairs_count; i++) {
        node->equalities[i] = (ivm__equality){ parts->pairs[i].a, parts->pairs[i].b };
    }
    if (parts->residual) {
        IVM_TRY(ivm__node_expressions(node, memory, 1));
        node->expressions[0] = parts->residual;
        parts->residual = NULL;
    }
    return IVM_OK;
}

/* The node as a project of the join below it that drops the computed columns. */
static ivm_status fill_project(const ivm_plan *plan, ivm__join_parts *parts, ivm__memory *memory, ivm__node *node)
{
    uint32_t count = gives_left(plan) ? parts->leaf_first[1] : parts->columns_count;
    node->op = IVM__PLAN_PROJECT;
    node->hidden = true;
    IVM_TRY(ivm__node_columns(node, memory, count));
    IVM_TRY(ivm__node_expressions(node, memory, count));
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__node_column_set(node, memory, i, parts->columns[i].name, parts->columns[i].type));
        node->expressions[i] = ivm__expression_column(memory, parts->place[i], parts->columns[i].type);
        if (!node->expressions[i]) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    IVM_TRY(ivm__node_inputs(node, memory, 1));
    node->inputs[0] = ivm__node_make(memory, plan->op);
    return node->inputs[0] ? fill_join(plan, parts, memory, node->inputs[0]) : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__check_join(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm__join_parts *parts = ivm__allocate_zeroed(check->memory, sizeof *parts); /* not on the stack: plans are deep */
    if (!parts) {
        return ivm__fail_memory(check->error);
    }
    ivm_status status = flatten(check, plan, parts);
    if (status == IVM_OK) {
        status = ivm__join_make_alike(check, parts);
    }
    if (status == IVM_OK) {
        status = parts->place ? fill_project(plan, parts, check->memory, node) : fill_join(plan, parts, check->memory, node);
        if (status != IVM_OK) {
            status = ivm__fail_memory(check->error);
        }
    }
    parts_deinit(parts, check);
    ivm__release(check->memory, parts, sizeof *parts);
    return status;
}
