/* Nodes of the checked tree: made piece by piece, freed whole. A node owns its columns' names, its inputs and its expressions, of which
 * operators get copies. */
#include "check.h"

ivm__node *ivm__node_make(ivm__memory *memory, ivm__plan_op op)
{
    ivm__node *node = ivm__allocate_zeroed(memory, sizeof *node);
    if (node) {
        node->op = op;
    }
    return node;
}

ivm_status ivm__node_columns(ivm__node *node, ivm__memory *memory, uint32_t count)
{
    assert(!node->columns);
    node->columns = ivm__allocate_zeroed(memory, count * sizeof *node->columns);
    if (!node->columns) {
        return IVM_OUT_OF_MEMORY;
    }
    node->columns_count = count;
    node->needed = ivm__allocate_zeroed(memory, count * sizeof *node->needed);
    return node->needed ? IVM_OK : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__node_inputs(ivm__node *node, ivm__memory *memory, uint32_t count)
{
    assert(!node->inputs);
    node->inputs = ivm__allocate_zeroed(memory, count * sizeof(ivm__node *));
    if (!node->inputs) {
        return IVM_OUT_OF_MEMORY;
    }
    node->inputs_count = count;
    return IVM_OK;
}

ivm_status ivm__node_expressions(ivm__node *node, ivm__memory *memory, uint32_t count)
{
    assert(!node->expressions);
    node->expressions = ivm__allocate_zeroed(memory, count * sizeof(ivm__expression *));
    if (!node->expressions) {
        return IVM_OUT_OF_MEMORY;
    }
    node->expressions_count = count;
    return IVM_OK;
}

ivm_status ivm__node_column_set(ivm__node *node, ivm__memory *memory, uint32_t column, const char *name, ivm_type type)
{
    assert(column < node->columns_count && !node->columns[column].name);
    node->columns[column].type = type;
    node->columns[column].name = ivm__text_copy(memory, name, strlen(name));
    return node->columns[column].name ? IVM_OK : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__node_columns_copy(ivm__node *node, ivm__memory *memory, const ivm__node *from)
{
    IVM_TRY(ivm__node_columns(node, memory, from->columns_count));
    for (uint32_t i = 0; i < from->columns_count; i++) {
        IVM_TRY(ivm__node_column_set(node, memory, i, from->columns[i].name, from->columns[i].type));
    }
    return IVM_OK;
}

static void free_columns(ivm__node *node, ivm__memory *memory)
{
    for (uint32_t i = 0; i < node->columns_count; i++) {
        char *name = node->columns[i].name;
        ivm__release(memory, name, name ? strlen(name) + 1 : 0);
    }
    ivm__release(memory, node->columns, node->columns_count * sizeof *node->columns);
    ivm__release(memory, node->needed, node->columns_count * sizeof *node->needed);
}

static void free_expressions(ivm__expression **expressions, uint32_t count, ivm_engine *engine)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__expression_free(expressions[i], &engine->memory, &engine->texts);
    }
    ivm__release(&engine->memory, expressions, count * sizeof(ivm__expression *));
}

static void free_aggregates(ivm__node *node, ivm_engine *engine)
{
    for (uint32_t i = 0; i < node->aggregates_count; i++) {
        ivm__expression_free(node->aggregates[i].argument, &engine->memory, &engine->texts);
        ivm__expression_free(node->aggregates[i].where, &engine->memory, &engine->texts);
    }
    ivm__release(&engine->memory, node->aggregates, node->aggregates_count * sizeof *node->aggregates);
}

void ivm__node_free(ivm__node *node, ivm_engine *engine)
{
    if (!node) {
        return;
    }
    ivm__memory *memory = &engine->memory;
    for (uint32_t i = 0; i < node->inputs_count; i++) {
        ivm__node_free(node->inputs[i], engine);
    }
    ivm__release(memory, node->inputs, node->inputs_count * sizeof(ivm__node *));
    free_columns(node, memory);
    free_expressions(node->expressions, node->expressions_count, engine);
    free_expressions(node->groups, node->groups_count, engine);
    free_aggregates(node, engine);
    for (uint32_t i = 0; i < node->orders_count; i++) {
        ivm__expression_free(node->orders[i].value, memory, &engine->texts);
    }
    ivm__release(memory, node->orders, node->orders_count * sizeof *node->orders);
    ivm__release(memory, node->equalities, node->equalities_count * sizeof *node->equalities);
    ivm__release(memory, node, sizeof *node);
}

ivm__expression *ivm__expression_copy(const ivm__expression *expression, ivm__memory *memory)
{
    if (expression->function == IVM__COLUMN) {
        return ivm__expression_column(memory, expression->column, expression->type);
    }
    if (expression->function == IVM__LITERAL) {
        return ivm__expression_literal(memory, expression->texts, expression->type, expression->is_null, expression->cell);
    }
    size_t size = expression->arguments_count * sizeof(ivm__expression *);
    ivm__expression **arguments = ivm__allocate_zeroed(memory, size), *copy = NULL;
    if (!arguments) {
        return NULL;
    }
    bool made = true;
    for (uint32_t i = 0; made && i < expression->arguments_count; i++) {
        arguments[i] = ivm__expression_copy(expression->arguments[i], memory);
        made = arguments[i];
    }
    copy = ivm__expression_make(memory, expression->function, expression->type, arguments, expression->arguments_count);
    ivm__release(memory, arguments, size);
    return copy;
}
