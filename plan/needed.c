/* Column pruning, from the root down: which of its columns a node's reader reads. A join keeps and emits nothing else.
 *
 *     project: the columns of its computed expressions, and of its plain ones where the result is needed; what it computes it computes
 *     whether needed or not, since it may fail
 *     join: both sides of every equality, the residual's columns, and what is needed above
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

static ivm_status mark_join(const ivm__node *node, ivm__memory *memory)
{
    size_t size = node->columns_count * sizeof(bool);
    bool *read = ivm__allocate(memory, size);
    if (!read) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(read, node->needed, size);
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
    assert(first == node->columns_count);
    ivm__release(memory, read, size);
    return IVM_OK;
}

static ivm_status mark_inputs(const ivm__node *node, ivm__memory *memory)
{
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
        IVM_TRY(mark_join(node, memory));
        break;
    }
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        IVM_TRY(mark_inputs(node->inputs[i], memory));
    }
    return IVM_OK;
}

ivm_status ivm__needed_mark(ivm__node *root, ivm__memory *memory)
{
    memset(root->needed, true, root->columns_count * sizeof *root->needed);
    return mark_inputs(root, memory);
}
