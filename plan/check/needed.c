/* Column pruning, from the root down: which of its columns a node's reader reads. A join keeps and emits nothing else. And from the leaves up:
 * which nodes may have rows of weight below zero; there a row is present or not by all its columns, so that all are needed.
 *
 *     project           the columns of its computed expressions, and of its plain ones where the result is needed; what it computes it
 *                       computes whether needed or not, since it may fail
 *     joins             both sides of every equality, the condition's columns, and what is needed above
 *     union_all         all: what is put together carries the same columns
 *     sets, top_k       all: they go by the whole row
 *
 * Cost: once over all columns and expressions. */
#include "check.h"

static void mark_project(const ivm__node *node)
{
    bool *read = node->inputs[0]->needed;
    for (uint32_t i = 0; i < node->expressions_count; i++) {
        const ivm__expression *expression = node->expressions[i];
        if (expression->function != IVM__COLUMN || node->needed[i]) {
            ivm__expression_mark_columns(expression, read);
        }
    }
}

static void mark_aggregate(const ivm__node *node)
{
    bool *read = node->inputs[0]->needed;
    for (uint32_t i = 0; i < node->groups_count; i++) {
        ivm__expression_mark_columns(node->groups[i], read);
    }
    for (uint32_t i = 0; i < node->aggregates_count; i++) {
        if (node->aggregates[i].argument) {
            ivm__expression_mark_columns(node->aggregates[i].argument, read);
        }
        if (node->aggregates[i].where) {
            ivm__expression_mark_columns(node->aggregates[i].where, read);
        }
    }
}

static void mark_filter(const ivm__node *node)
{
    bool *read = node->inputs[0]->needed;
    memcpy(read, node->needed, node->columns_count * sizeof *read);
    ivm__expression_mark_columns(node->expressions[0], read);
}

/* Inner and outer joins; of a semi or anti join the columns of the left input alone are needed above. */
static ivm_status mark_join(const ivm__node *node, ivm__memory *memory)
{
    size_t size = 0;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        size += node->inputs[i]->columns_count * sizeof(bool);
    }
    bool *read = ivm__allocate_zeroed(memory, size);
    if (!read) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(read, node->needed, node->columns_count * sizeof(bool));
    for (uint32_t i = 0; i < node->equalities_count; i++) {
        read[node->equalities[i].a] = read[node->equalities[i].b] = true;
    }
    if (node->expressions_count) {
        ivm__expression_mark_columns(node->expressions[0], read);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        ivm__node *leaf = node->inputs[i];
        memcpy(leaf->needed, read + first, leaf->columns_count * sizeof *read);
        first += leaf->columns_count;
    }
    assert(first == size);
    ivm__release(memory, read, size);
    return IVM_OK;
}

static void mark_all(const ivm__node *node)
{
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        memset(node->inputs[i]->needed, true, node->inputs[i]->columns_count * sizeof(bool));
    }
}

static ivm_status mark_inputs(const ivm__node *node, ivm__memory *memory)
{
    if (node->negative) {
        memset(node->needed, true, node->columns_count * sizeof(bool));
    }
    switch (node->op) {
    case IVM__PLAN_SCAN:
        break;
    case IVM__PLAN_FILTER:
        mark_filter(node);
        break;
    case IVM__PLAN_PROJECT:
        mark_project(node);
        break;
    case IVM__PLAN_AGGREGATE:
        mark_aggregate(node);
        break;
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER:
        IVM_TRY(mark_join(node, memory));
        break;
    case IVM__PLAN_SET:
    case IVM__PLAN_TOP_K:
        mark_all(node);
        break;
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        IVM_TRY(mark_inputs(node->inputs[i], memory));
    }
    return IVM_OK;
}

/* ---- Weights ------------------------------------------------------------------------------------------------------------------------- */

static bool passes_signs(const ivm__node *node)
{
    switch (node->op) {
    case IVM__PLAN_FILTER:
    case IVM__PLAN_PROJECT:
    case IVM__PLAN_JOIN:
        return true;
    case IVM__PLAN_OUTER:
        return node->kind != IVM_SEMI_JOIN && node->kind != IVM_ANTI_JOIN;
    case IVM__PLAN_SET:
        return node->set == IVM__SET_UNION_ALL;
    default:
        return false;
    }
}

static void mark_weights(ivm__node *node)
{
    bool below = false;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        mark_weights(node->inputs[i]);
        below |= node->inputs[i]->negative;
    }
    if (node->op == IVM__PLAN_SCAN) {
        node->negative = node->table ? node->table->allow_negative : node->view->planned->node->negative;
    } else {
        node->negative = below && passes_signs(node);
    }
    ivm__weights_mark(node);
}

/* ---- The tree ------------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__needed_mark(ivm__node *root, ivm__memory *memory)
{
    mark_weights(root);
    memset(root->needed, true, root->columns_count * sizeof *root->needed);
    return mark_inputs(root, memory);
}
