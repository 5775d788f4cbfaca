/* Checking distinct, the set operations and top_k: rows of their inputs, whole. */
#include "check.h"

/* ---- distinct and the set operations ------------------------------------------------------------------------------------------------ */

static ivm_status check_distinct(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    IVM_TRY(ivm__check_input(check, plan, node));
    return ivm__node_columns_copy(node, check->memory, node->inputs[0]) == IVM_OK ? IVM_OK : ivm__fail_memory(check->error);
}

/* The first input's columns, without alias. */
static ivm_status name_columns(ivm__check *check, ivm__node *node)
{
    const ivm__node *first = node->inputs[0];
    if (ivm__node_columns(node, check->memory, first->columns_count) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    for (uint32_t i = 0; i < first->columns_count; i++) {
        const char *name = ivm__name_bare(first->columns[i].name);
        if (ivm__node_column_set(node, check->memory, i, name, first->columns[i].type) != IVM_OK) {
            return ivm__fail_memory(check->error);
        }
    }
    return IVM_OK;
}

static ivm_status check_alike(ivm__check *check, const ivm__node *first, const ivm__node *other)
{
    if (first->columns_count != other->columns_count) {
        return ivm__fail(check->error, IVM_TYPE_MISMATCH, "a set operation of %u columns and %u", first->columns_count,
                         other->columns_count);
    }
    for (uint32_t i = 0; i < first->columns_count; i++) {
        const ivm__named_column *a = &first->columns[i], *b = &other->columns[i];
        if (a->type != b->type) {
            char text_a[IVM_TYPE_TEXT_SIZE], text_b[IVM_TYPE_TEXT_SIZE];
            ivm_type_format(a->type, text_a);
            ivm_type_format(b->type, text_b);
            return ivm__fail(check->error, IVM_TYPE_MISMATCH, "a set operation: %s is %s, %s is %s", a->name, text_a, b->name, text_b);
        }
    }
    return IVM_OK;
}

ivm_status ivm__check_set(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    node->set = plan->set;
    if (plan->set == IVM__SET_DISTINCT) {
        return check_distinct(check, plan, node);
    }
    assert(plan->inputs_count >= 2);
    if (ivm__node_inputs(node, check->memory, (uint32_t)plan->inputs_count) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        IVM_TRY(ivm__check_node(check, plan->inputs[i], &node->inputs[i]));
    }
    for (uint32_t i = 1; i < node->inputs_count; i++) {
        IVM_TRY(check_alike(check, node->inputs[0], node->inputs[i]));
    }
    return name_columns(check, node);
}

/* ---- top_k -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status make_arrays(ivm__node *node, ivm__memory *memory, const ivm_plan *plan)
{
    node->groups = ivm__allocate_zeroed(memory, plan->partitions_count * sizeof(ivm__expression *));
    if (!node->groups) {
        return IVM_OUT_OF_MEMORY;
    }
    node->groups_count = (uint32_t)plan->partitions_count;
    node->orders = ivm__allocate_zeroed(memory, plan->orders_count * sizeof *node->orders);
    if (!node->orders) {
        return IVM_OUT_OF_MEMORY;
    }
    node->orders_count = (uint32_t)plan->orders_count;
    return ivm__node_columns_copy(node, memory, node->inputs[0]);
}

static ivm_status check_value(ivm__check *check, const ivm_expr *value, ivm__names *names, ivm__expression **expression)
{
    IVM_TRY(ivm__expression_check(check->engine, value, names, expression, check->error));
    return ivm__check_settle(check, expression, IVM_INT64);
}

static ivm_status orders_named(ivm__check *check, const ivm_plan *plan, ivm__names *names, ivm__node *node)
{
    for (uint32_t i = 0; i < node->groups_count; i++) {
        IVM_TRY(check_value(check, plan->partitions[i].value, names, &node->groups[i]));
    }
    for (uint32_t i = 0; i < node->orders_count; i++) {
        const ivm__plan_order *order = &plan->orders[i];
        IVM_TRY(check_value(check, order->value, names, &node->orders[i].value));
        node->orders[i].descending = order->descending;
        node->orders[i].nulls_first = order->nulls_first;
    }
    return IVM_OK;
}

static ivm_status check_orders(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm__names names;
    ivm__names_init(&names, check->memory, node->inputs[0]->columns, node->inputs[0]->columns_count);
    ivm_status status = orders_named(check, plan, &names, node);
    ivm__names_deinit(&names);
    return status;
}

ivm_status ivm__check_top_k(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    IVM_TRY(ivm__check_input(check, plan, node));
    if (make_arrays(node, check->memory, plan) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    IVM_TRY(check_orders(check, plan, node));
    node->limit = plan->limit;
    node->offset = plan->offset;
    return IVM_OK;
}
