/* Equalities of unlike types: each such column gets, in its own leaf, a computed column of the common type, so that every equality of the join
 * is between equal types and can be a key of an index. The common type of int64 and decimals is a decimal of the greater scale; what does
 * not fit it becomes null, since it can equal nothing on the other side. Anything is compared with float64 as float64. */
#include "check.h"

#include <stdio.h>

/* A computed column: this column of the join in this type. */
typedef struct hidden_column {
    uint32_t column;
    ivm_type type;
    uint32_t place; /* among the leaves' new columns */
} hidden_column;

typedef struct hidden_columns {
    hidden_column *items;
    uint32_t count, capacity;
} hidden_columns;

/* ---- The conversion --------------------------------------------------------------------------------------------------------------- */

/* column < bound or column > bound, the bound being of the column's scale */
static ivm__expression *make_comparison(ivm__check *check, ivm__function function, uint32_t column, ivm_type type, ivm__wide bound)
{
    ivm_type bound_type = type;
    ivm__wide cell = bound;
    if (ivm__type_is_wide(type)) {
        bound_type = IVM_DECIMAL(IVM_DECIMAL_PRECISION_MAX, IVM_TYPE_SCALE(type));
    } else {
        cell = (ivm__wide)(uint64_t)bound;
    }
    ivm__expression *sides[] = { ivm__expression_column(check->memory, column, type),
                                 ivm__expression_literal(check->memory, &check->engine->texts, bound_type, false, cell) };
    return ivm__expression_make(check->memory, function, IVM_BOOL, sides, 2);
}

static uint32_t whole_digits(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_INT64 ? 19 : IVM_TYPE_PRECISION(type) - IVM_TYPE_SCALE(type);
}

/* The leaf's column in the common type; null where it does not fit. */
static ivm__expression *make_conversion(ivm__check *check, uint32_t column, ivm_type from, ivm_type to)
{
    ivm__expression *plain = ivm__expression_column(check->memory, column, from);
    ivm__expression *cast = ivm__expression_make(check->memory, IVM__CAST, to, &plain, 1);
    if (to == IVM_FLOAT64 || whole_digits(from) <= whole_digits(to)) {
        return cast;
    }
    uint32_t scale = ivm__type_is_wide(from) ? IVM_TYPE_SCALE(from) : 0;
    ivm__wide bound = 1;
    for (uint32_t i = 0; i < whole_digits(to) + scale; i++) {
        bound *= 10;
    }
    ivm__expression *sides[] = { make_comparison(check, IVM__LESS, column, from, bound),
                                 make_comparison(check, IVM__GREATER, column, from, -bound) };
    ivm__expression *branches[] = { ivm__expression_make(check->memory, IVM__AND, IVM_BOOL, sides, 2), cast,
                                    ivm__expression_literal(check->memory, &check->engine->texts, to, true, 0) };
    return ivm__expression_make(check->memory, IVM__CASE, to, branches, 3);
}

/* ---- The computed columns ----------------------------------------------------------------------------------------------------------- */

static hidden_column *find_hidden(const hidden_columns *hidden, uint32_t column, ivm_type type)
{
    for (uint32_t i = 0; i < hidden->count; i++) {
        if (hidden->items[i].column == column && hidden->items[i].type == type) {
            return &hidden->items[i];
        }
    }
    return NULL;
}

static ivm_status want_hidden(ivm__memory *memory, const ivm__join_parts *parts, uint32_t column, ivm_type type, hidden_columns *hidden)
{
    if (parts->columns[column].type == type || find_hidden(hidden, column, type)) {
        return IVM_OK;
    }
    IVM_TRY(ivm__grow(memory, (void **)&hidden->items, &hidden->capacity, (uint64_t)hidden->count + 1, sizeof *hidden->items));
    hidden->items[hidden->count++] = (hidden_column){ column, type, 0 };
    return IVM_OK;
}

/* Numbers all columns anew: each leaf's own, then those computed for it. */
static void place_columns(const ivm__join_parts *parts, hidden_columns *hidden)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < parts->leaves_count; i++) {
        uint32_t first = parts->leaf_first[i], end = first + parts->leaves[i]->columns_count;
        for (uint32_t column = first; column < end; column++) {
            parts->place[column] = place++;
        }
        for (uint32_t k = 0; k < hidden->count; k++) {
            if (hidden->items[k].column >= first && hidden->items[k].column < end) {
                hidden->items[k].place = place++;
            }
        }
    }
}

/* Column `at` of the project above a leaf: the leaf's column converted. */
static ivm_status set_hidden(ivm__check *check, ivm__node *node, uint32_t at, uint32_t column, const hidden_column *hidden)
{
    const ivm__node *leaf = node->inputs[0];
    char name[2 * IVM_NAME_SIZE_MAX + 2 * IVM_TYPE_TEXT_SIZE], type[IVM_TYPE_TEXT_SIZE];
    ivm_type_format(hidden->type, type);
    snprintf(name, sizeof name, "cast(%s, %s)", leaf->columns[column].name, type);
    IVM_TRY(ivm__node_column_set(node, check->memory, at, name, hidden->type));
    node->expressions[at] = make_conversion(check, column, leaf->columns[column].type, hidden->type);
    return node->expressions[at] ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* Puts a project above the leaf that adds its computed columns, if it has any. */
static ivm_status wrap_leaf(ivm__check *check, ivm__join_parts *parts, uint32_t index, const hidden_columns *hidden)
{
    ivm__node *leaf = parts->leaves[index];
    uint32_t first = parts->leaf_first[index], count = leaf->columns_count, added = 0;
    for (uint32_t k = 0; k < hidden->count; k++) {
        added += hidden->items[k].column - first < count;
    }
    if (added == 0) {
        return IVM_OK;
    }
    ivm__node *node = ivm__node_make(check->memory, IVM__PLAN_PROJECT);
    if (!node || ivm__node_inputs(node, check->memory, 1) != IVM_OK) {
        ivm__node_free(node, check->engine);
        return IVM_OUT_OF_MEMORY;
    }
    node->inputs[0] = leaf;
    node->hidden = true;
    parts->leaves[index] = node;
    IVM_TRY(ivm__node_columns(node, check->memory, count + added));
    IVM_TRY(ivm__node_expressions(node, check->memory, count + added));
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__node_column_set(node, check->memory, i, leaf->columns[i].name, leaf->columns[i].type));
        node->expressions[i] = ivm__expression_column(check->memory, i, leaf->columns[i].type);
        if (!node->expressions[i]) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    for (uint32_t k = 0, at = count; k < hidden->count; k++) {
        if (hidden->items[k].column - first < count) {
            IVM_TRY(set_hidden(check, node, at++, hidden->items[k].column - first, &hidden->items[k]));
        }
    }
    return IVM_OK;
}

static ivm_status make_alike(ivm__check *check, ivm__join_parts *parts, hidden_columns *hidden)
{
    for (uint32_t i = 0; i < parts->pairs_count; i++) {
        IVM_TRY(want_hidden(check->memory, parts, parts->pairs[i].a, parts->pairs[i].type, hidden));
        IVM_TRY(want_hidden(check->memory, parts, parts->pairs[i].b, parts->pairs[i].type, hidden));
    }
    if (hidden->count == 0) {
        return IVM_OK;
    }
    parts->place = ivm__allocate(check->memory, parts->columns_count * sizeof *parts->place);
    if (!parts->place) {
        return IVM_OUT_OF_MEMORY;
    }
    place_columns(parts, hidden);
    for (uint32_t i = 0; i < parts->leaves_count; i++) {
        IVM_TRY(wrap_leaf(check, parts, i, hidden));
    }
    for (uint32_t i = 0; i < parts->pairs_count; i++) {
        ivm__join_pair *pair = &parts->pairs[i];
        const hidden_column *a = find_hidden(hidden, pair->a, pair->type), *b = find_hidden(hidden, pair->b, pair->type);
        pair->a = a ? a->place : parts->place[pair->a];
        pair->b = b ? b->place : parts->place[pair->b];
    }
    if (parts->residual) {
        ivm__expression_renumber(parts->residual, 0, parts->place);
    }
    return IVM_OK;
}

ivm_status ivm__join_make_alike(ivm__check *check, ivm__join_parts *parts)
{
    hidden_columns hidden = { .count = 0 };
    ivm_status status = make_alike(check, parts, &hidden);
    ivm__release(check->memory, hidden.items, hidden.capacity * sizeof *hidden.items);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(check->error);
}
