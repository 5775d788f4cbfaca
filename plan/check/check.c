/* Checking: from the plan a user built to a tree in which every name is a position and every expression has a type. Errors come in reading
 * order, inputs before what reads them; a plan is refused on empty tables as well. Joins: check_join.c, aggregates: check_aggregate.c, set
 * operations and top_k: check_set.c, expressions: check_expression.c. Cost: n log n for n columns and names
 * (names.c), at view creation alone. */
#include "check.h"
#include "source.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Conditions, types and names ---------------------------------------------------------------------------------------------------- */

ivm_status ivm__check_settle(ivm__check *check, ivm__expression **expression, ivm_type type)
{
    ivm__expression *untyped = *expression;
    if (untyped->type != 0) {
        return IVM_OK;
    }
    if (untyped->function == IVM__LITERAL) {
        untyped->type = type;
        return IVM_OK;
    }
    *expression = ivm__expression_make(check->memory, IVM__CAST, type, &untyped, 1);
    return *expression ? IVM_OK : ivm__fail_memory(check->error);
}

ivm_status ivm__check_condition(ivm__check *check, const ivm_expr *expr, ivm__names *names, ivm__expression **condition)
{
    IVM_TRY(ivm__expression_check(check->engine, expr, names, condition, check->error));
    if ((*condition)->type != 0 && (*condition)->type != IVM_BOOL) {
        char text[IVM_TYPE_TEXT_SIZE];
        ivm_type_format((*condition)->type, text);
        ivm__expression_free(*condition, check->memory, &check->engine->texts);
        *condition = NULL;
        const char *column = expr->kind == IVM__EXPR_COLUMN ? expr->text : "it";
        return ivm__fail(check->error, IVM_TYPE_MISMATCH, "a condition is a bool; %s is %s", column, text);
    }
    return ivm__check_settle(check, condition, IVM_BOOL);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

ivm_status ivm__check_twins(ivm__check *check, const ivm__named_column *columns, uint32_t columns_count, const char *advice)
{
    size_t size = columns_count * sizeof(const char *);
    const char **names = ivm__allocate(check->memory, size);
    if (!names) {
        return ivm__fail_memory(check->error);
    }
    for (uint32_t i = 0; i < columns_count; i++) {
        names[i] = columns[i].name;
    }
    qsort(names, columns_count, sizeof *names, compare_names);
    const char *twin = NULL;
    for (uint32_t i = 1; i < columns_count && !twin; i++) {
        twin = strcmp(names[i - 1], names[i]) == 0 ? names[i] : NULL;
    }
    ivm__release(check->memory, names, size);
    return twin ? ivm__fail(check->error, IVM_AMBIGUOUS_COLUMN, "two columns are named %s%s", twin, advice) : IVM_OK;
}

ivm_status ivm__check_named(ivm__check *check, const ivm__plan_column *named, ivm__names *names, ivm__node *node, uint32_t at,
                            ivm__expression **expression)
{
    assert(named->name || named->value->kind == IVM__EXPR_COLUMN);
    IVM_TRY(ivm__expression_check(check->engine, named->value, names, expression, check->error));
    IVM_TRY(ivm__check_settle(check, expression, IVM_INT64));
    const char *name = named->name;
    if (!name) {
        assert((*expression)->function == IVM__COLUMN);
        name = ivm__name_bare(names->columns[(*expression)->column].name);
    }
    if (ivm__node_column_set(node, check->memory, at, name, (*expression)->type) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    return IVM_OK;
}

/* ---- Operators, a function each: the node holds what is made so far and is freed by the caller where one fails ------------------------ */

ivm_status ivm__check_input(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    assert(plan->inputs_count == 1);
    if (ivm__node_inputs(node, check->memory, 1) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    return ivm__check_node(check, plan->inputs[0], &node->inputs[0]);
}

/* A plan made from a handle knows the table's or view's engine and number, and takes no other of the same name. */
static ivm_status find_source(ivm__check *check, const ivm_plan *plan, ivm__source *found)
{
    const char *name = plan->table;
    if (plan->table_id != 0 && plan->engine != check->engine) {
        return ivm__fail(check->error, IVM_INVALID_ARGUMENT, "table or view %s is of another engine", name);
    }
    ivm_table *table = ivm__table_named(check->engine, name, strlen(name));
    ivm_view *view = table ? NULL : ivm__view_named(check->engine, name, strlen(name));
    uint64_t id = table ? table->id : view ? view->id : 0;
    if (id == 0 || (plan->table_id != 0 && plan->table_id != id)) {
        return ivm__fail(check->error, IVM_UNKNOWN_TABLE, "there is no table or view %s%s", name, id ? " as the plan knew it" : "");
    }
    *found = (ivm__source){ .table = table, .view = view };
    return IVM_OK;
}

/* Whether these can have been the table's columns: each is of the type that it has now, and none is another's. */
static bool heading_fits(const ivm_table *table, const ivm__scan_heading *heading)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < heading->columns_count; i++) {
        uint32_t column = heading->columns[i];
        if (column == UINT32_MAX) {
            continue;
        }
        if (column < next || column >= table->columns_count || heading->types[i] != table->types[column]) {
            return false;
        }
        next = column + 1;
    }
    return heading->columns_count > 0 && heading->columns_count <= IVM_TABLE_COLUMNS_MAX;
}

/* A scan of a table as it was when its view was made. */
static ivm_status check_scan_saved(ivm__check *check, ivm__node *node)
{
    const ivm__scan_heading *heading = check->headings;
    if (check->headings_left == 0 || !heading_fits(node->table, heading)) {
        return ivm__fail(check->error, IVM_CORRUPT, "a scan of table %s with columns that it cannot have had", node->table->name);
    }
    check->headings++;
    check->headings_left--;
    node->heading = ivm__table_heading(node->table, heading->types, heading->columns, heading->columns_count);
    if (!node->heading || ivm__node_columns(node, check->memory, heading->columns_count) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    for (uint32_t i = 0; i < node->columns_count; i++) {
        if (ivm__node_column_set(node, check->memory, i, heading->names[i], heading->types[i]) != IVM_OK) {
            return ivm__fail_memory(check->error);
        }
    }
    return IVM_OK;
}

static ivm_status check_scan(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm__source source = { 0 };
    IVM_TRY(find_source(check, plan, &source));
    assert(ivm__source_is(source));
    node->table = source.table;
    node->view = source.view;
    if (node->table && check->headings) {
        return check_scan_saved(check, node);
    }
    node->heading = source.table ? source.table->heading : NULL;
    const ivm__column *columns = source.table ? source.table->columns : source.view->columns;
    const char *alias = plan->alias ? plan->alias : plan->table;
    if (ivm__node_columns(node, check->memory, ivm__source_columns_count(source)) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    for (uint32_t i = 0; i < node->columns_count; i++) {
        size_t size = strlen(alias) + 1 + strlen(columns[i].name) + 1;
        char *name = ivm__allocate(check->memory, size);
        if (!name) {
            return ivm__fail_memory(check->error);
        }
        snprintf(name, size, "%s.%s", alias, columns[i].name);
        node->columns[i] = (ivm__named_column){ name, columns[i].type };
    }
    return IVM_OK;
}

/* What looks names up stands in functions of its own: those that nest have small frames, for plans are deep. */

ivm_status ivm__check_where(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm__names names;
    ivm__names_init(&names, check->memory, node->columns, node->columns_count);
    ivm_status status = ivm__check_condition(check, plan->where, &names, &node->expressions[0]);
    ivm__names_deinit(&names);
    return status;
}

static ivm_status check_filter(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    IVM_TRY(ivm__check_input(check, plan, node));
    if (ivm__node_columns_copy(node, check->memory, node->inputs[0]) != IVM_OK || ivm__node_expressions(node, check->memory, 1) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    return ivm__check_where(check, plan, node);
}

static ivm_status project_columns(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm_status status = IVM_OK;
    ivm__names names;
    ivm__names_init(&names, check->memory, node->inputs[0]->columns, node->inputs[0]->columns_count);
    for (uint32_t i = 0; i < node->columns_count && status == IVM_OK; i++) {
        status = ivm__check_named(check, &plan->columns[i], &names, node, i, &node->expressions[i]);
    }
    ivm__names_deinit(&names);
    return status;
}

static ivm_status check_project(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    IVM_TRY(ivm__check_input(check, plan, node));
    uint32_t count = (uint32_t)plan->columns_count;
    if (count == 0) {
        return ivm__fail(check->error, IVM_INVALID_PLAN, "a project needs a column");
    }
    if (ivm__node_columns(node, check->memory, count) != IVM_OK || ivm__node_expressions(node, check->memory, count) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    IVM_TRY(project_columns(check, plan, node));
    return ivm__check_twins(check, node->columns, node->columns_count, "");
}

/* ---- The tree -------------------------------------------------------------------------------------------------------------------- */

static ivm_status check_fill(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    switch (plan->op) {
    case IVM__PLAN_SCAN:
        return check_scan(check, plan, node);
    case IVM__PLAN_FILTER:
        return check_filter(check, plan, node);
    case IVM__PLAN_PROJECT:
        return check_project(check, plan, node);
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER:
        return ivm__check_join(check, plan, node);
    case IVM__PLAN_AGGREGATE:
        return ivm__check_aggregate(check, plan, node);
    case IVM__PLAN_SET:
        return ivm__check_set(check, plan, node);
    case IVM__PLAN_TOP_K:
        return ivm__check_top_k(check, plan, node);
    }
    return ivm__fail(check->error, IVM_INVALID_PLAN, "unknown op %d", (int)plan->op);
}

/* What a row of the node would be. */
static ivm_status check_row(const ivm__check *check, const ivm__node *node)
{
    uint64_t bytes = 0;
    if (node->columns_count > IVM_VIEW_COLUMNS_MAX) {
        return ivm__fail(check->error, IVM_UNSUPPORTED, "a row of %u columns in the plan, at most %u", node->columns_count,
                         IVM_VIEW_COLUMNS_MAX);
    }
    for (uint32_t i = 0; i < node->columns_count; i++) {
        bytes += ivm__type_words(node->columns[i].type) * sizeof(uint64_t);
        if (!ivm__utf8_is(node->columns[i].name)) {
            return ivm__fail(check->error, IVM_INVALID_PLAN, "column %s: a name that is no UTF-8", node->columns[i].name);
        }
    }
    if (bytes > IVM_ROW_BYTES_MAX) {
        return ivm__fail(check->error, IVM_UNSUPPORTED, "a row of %llu bytes in the plan, at most %u", (unsigned long long)bytes,
                         IVM_ROW_BYTES_MAX);
    }
    return IVM_OK;
}

ivm_status ivm__check_node(ivm__check *check, const ivm_plan *plan, ivm__node **node)
{
    ivm__node *made = ivm__node_make(check->memory, plan->op);
    if (!made) {
        return ivm__fail_memory(check->error);
    }
    ivm_status status = check_fill(check, plan, made);
    if (status == IVM_OK) {
        status = check_row(check, made);
    }
    if (status != IVM_OK) {
        ivm__node_free(made, check->engine);
        return status;
    }
    *node = made;
    return IVM_OK;
}

/* Whether a column that is gone is read by the plan. */
static bool reads_gone(const ivm__node *node)
{
    bool reads = false;
    for (uint32_t i = 0; node->heading && i < node->columns_count; i++) {
        reads |= node->heading->columns[i] == UINT32_MAX && (node->needed[i] || node->table->allow_negative);
    }
    for (uint32_t i = 0; i < node->inputs_count && !reads; i++) {
        reads = reads_gone(node->inputs[i]);
    }
    return reads;
}

static ivm_status check_tree(ivm__check *check, const ivm_plan *plan, ivm__node **node)
{
    IVM_TRY(ivm__check_node(check, plan, node));
    if (ivm__needed_mark(*node, check->memory) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    if (check->headings_left || (check->headings && reads_gone(*node))) {
        return ivm__fail(check->error, IVM_CORRUPT, "a plan that reads columns which its tables have no more");
    }
    return IVM_OK;
}

static ivm_status check_root(ivm__check *check, const ivm_plan *plan, ivm__node **node)
{
    ivm__node *root = NULL;
    ivm_status status = check_tree(check, plan, &root);
    if (status != IVM_OK) {
        ivm__node_free(root, check->engine);
        return status;
    }
    *node = root;
    return IVM_OK;
}

ivm_status ivm__plan_check(ivm_engine *engine, const ivm_plan *plan, ivm__node **node, ivm_error *error)
{
    ivm__check check = { .engine = engine, .memory = &engine->memory, .error = error };
    return check_root(&check, plan, node);
}

ivm_status ivm__plan_check_saved(ivm_engine *engine, const ivm_plan *plan, const ivm__view_saved *saved, ivm__node **node, ivm_error *error)
{
    ivm__check check = {
        .engine = engine, .memory = &engine->memory, .error = error, .headings = saved->headings, .headings_left = saved->headings_count
    };
    return check_root(&check, plan, node);
}
