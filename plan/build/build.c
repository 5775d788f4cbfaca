/* Builders of plans: a tree of what the user said, nothing of it looked up yet. Every builder takes what it is given; one that fails frees
 * it, notes the cause if it is the thread's first, and returns NULL, which every builder passes on. */
#include "build.h"

#include "catalog.h"

/* ---- Freeing ----------------------------------------------------------------------------------------------------------------------- */

void ivm__plan_column_deinit(ivm__plan_column *column)
{
    ivm__builder_text_free(column->name);
    ivm__builder_text_free(column->function);
    ivm_expr_free(column->value);
    ivm_expr_free(column->where);
}

static void columns_free(ivm__plan_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ivm__plan_column_deinit(&columns[i]);
    }
    ivm__builder_array_free(columns, count, sizeof *columns);
}

void ivm_plan_free(ivm_plan *plan)
{
    if (!plan) {
        return;
    }
    ivm__builder_text_free(plan->table);
    ivm__builder_text_free(plan->alias);
    for (size_t i = 0; i < plan->inputs_count; i++) {
        ivm_plan_free(plan->inputs[i]);
    }
    ivm__builder_array_free(plan->inputs, plan->inputs_count, sizeof(ivm_plan *));
    columns_free(plan->columns, plan->columns_count);
    columns_free(plan->aggregates, plan->aggregates_count);
    for (size_t i = 0; i < 2 * plan->on_count; i++) {
        ivm__builder_text_free(plan->on[i]);
    }
    ivm__builder_array_free(plan->on, plan->on_count, 2 * sizeof(char *));
    ivm_expr_free(plan->where);
    columns_free(plan->partitions, plan->partitions_count);
    for (size_t i = 0; i < plan->orders_count; i++) {
        ivm_expr_free(plan->orders[i].value);
    }
    ivm__builder_array_free(plan->orders, plan->orders_count, sizeof *plan->orders);
    ivm__release(&ivm__builder_memory, plan, sizeof *plan);
}

ivm_plan *ivm__plan_drop(ivm_plan *plan)
{
    ivm_plan_free(plan);
    return NULL;
}

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

static ivm_plan *plan_make(ivm__plan_op op)
{
    ivm_plan *plan = ivm__allocate_zeroed(&ivm__builder_memory, sizeof *plan);
    if (!plan) {
        ivm__builder_fail_memory();
        return NULL;
    }
    plan->op = op;
    plan->depth = 1;
    return plan;
}

/* Takes the input, whatever the outcome. */
static bool input_add(ivm_plan *plan, ivm_plan *input)
{
    if (input->depth >= IVM_PLAN_DEPTH_MAX) {
        ivm__builder_fail(IVM_INVALID_PLAN, "a plan nested more than %u deep", IVM_PLAN_DEPTH_MAX);
        ivm_plan_free(input);
        return false;
    }
    ivm_plan **grown = ivm__builder_grow(plan->inputs, plan->inputs_count, sizeof(ivm_plan *));
    if (!grown) {
        ivm_plan_free(input);
        return false;
    }
    grown[plan->inputs_count++] = input;
    plan->inputs = grown;
    plan->depth = input->depth + 1 > plan->depth ? input->depth + 1 : plan->depth;
    return true;
}

ivm_plan *ivm__plan_over(ivm__plan_op op, const char *builder, ivm_plan *input)
{
    if (!input) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: the input is NULL", builder);
        return NULL;
    }
    ivm_plan *plan = plan_make(op);
    if (!plan) {
        return ivm__plan_drop(input);
    }
    return input_add(plan, input) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm__plan_many(ivm__plan_op op, const char *builder, ivm_plan **inputs, size_t inputs_count)
{
    bool made = inputs;
    for (size_t i = 0; made && i < inputs_count; i++) {
        made = inputs[i];
    }
    if (!made) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, inputs ? "%s: one of the inputs is NULL" : "%s: the inputs are NULL", builder);
    } else if (inputs_count < 2) {
        ivm__builder_fail(IVM_INVALID_PLAN, "%s: two inputs or more are wanted, not %zu", builder, inputs_count);
        made = false;
    }
    ivm_plan *plan = made ? plan_make(op) : NULL;
    made = plan;
    for (size_t i = 0; inputs && i < inputs_count; i++) {
        if (made) {
            made = input_add(plan, inputs[i]);
        } else {
            ivm_plan_free(inputs[i]);
        }
    }
    return made ? plan : ivm__plan_drop(plan);
}

bool ivm__plan_is(const ivm_plan *plan, ivm__plan_op op, const char *builder, const char *wanted)
{
    if (!plan) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: the plan is NULL", builder);
        return false;
    }
    if (plan->op != op) {
        ivm__builder_fail(IVM_INVALID_PLAN, "%s: the plan is no %s", builder, wanted);
        return false;
    }
    return true;
}

bool ivm__plan_column_add(ivm__plan_column **columns, size_t *count, ivm__plan_column column)
{
    ivm__plan_column *grown = ivm__builder_grow(*columns, *count, sizeof *grown);
    if (!grown) {
        ivm__plan_column_deinit(&column);
        return false;
    }
    grown[(*count)++] = column;
    *columns = grown;
    return true;
}

bool ivm__plan_where_add(ivm_plan *plan, ivm_expr *where)
{
    plan->where = plan->where ? ivm_call2("and", plan->where, where) : where;
    return plan->where;
}

/* ---- Lists of names ---------------------------------------------------------------------------------------------------------------- */

bool ivm__list_is_blank(const char *list)
{
    return !list || !list[strspn(list, " \t\n\r\f\v")];
}

static bool keep_column(ivm_plan *plan, const char *name, size_t size)
{
    ivm__plan_column column = { .value = ivm__expr_column(name, size) };
    return column.value && ivm__plan_column_add(&plan->columns, &plan->columns_count, column);
}

bool ivm__plan_keep_all(ivm_plan *plan, const char *builder, const char *list)
{
    const char *at = ivm__list_is_blank(list) ? NULL : list, *name;
    size_t size;
    while (at && ivm__name_next(&at, &name, &size)) {
        if (size == 0) {
            ivm__builder_fail(IVM_INVALID_PLAN, "%s: a name is missing in \"%s\"", builder, list);
            return false;
        }
        if (!keep_column(plan, name, size)) {
            return false;
        }
    }
    return true;
}

/* ---- Scans and filters ------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_scan_name(const char *table, const char *alias)
{
    if (!table) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_scan_name: no table");
        return NULL;
    }
    ivm_plan *plan = plan_make(IVM__PLAN_SCAN);
    if (!plan) {
        return NULL;
    }
    plan->table = ivm__builder_text(table, strlen(table));
    plan->alias = alias && plan->table ? ivm__builder_text(alias, strlen(alias)) : NULL;
    return plan->table && (plan->alias || !alias) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm_plan_scan(ivm_table *table, const char *alias)
{
    if (!table) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_scan: no table");
        return NULL;
    }
    ivm_plan *plan = ivm_plan_scan_name(table->name, alias);
    if (plan) {
        plan->table_id = table->id;
        plan->engine = table->engine;
    }
    return plan;
}

ivm_plan *ivm_plan_scan_view(ivm_view *view, const char *alias)
{
    if (!view) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_scan_view: no view");
        return NULL;
    }
    ivm_plan *plan = ivm_plan_scan_name(view->name, alias);
    if (plan) {
        plan->table_id = view->id;
        plan->engine = view->engine;
    }
    return plan;
}

ivm_plan *ivm_plan_filter(ivm_plan *input, ivm_expr *where)
{
    ivm_plan *plan = ivm__plan_over(IVM__PLAN_FILTER, "ivm_plan_filter", input);
    if (!plan || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_filter: the condition is NULL");
        ivm_expr_free(where);
        return ivm__plan_drop(plan);
    }
    plan->where = where;
    return plan;
}

/* ---- Projects ---------------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_project(ivm_plan *input, const char *columns)
{
    ivm_plan *plan = ivm__plan_over(IVM__PLAN_PROJECT, "ivm_plan_project", input);
    return plan && ivm__plan_keep_all(plan, "ivm_plan_project", columns) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm__plan_keep(ivm_plan *plan, const char *name, size_t size)
{
    return plan && keep_column(plan, name, size) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm__plan_name(ivm_plan *plan, const char *builder, const char *name, ivm_expr *value)
{
    if (!name || !value) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: %s is NULL", builder, name ? name : "the name");
        ivm_expr_free(value);
        return ivm__plan_drop(plan);
    }
    ivm__plan_column column = { .name = ivm__builder_text(name, strlen(name)), .value = value };
    if (!column.name) {
        ivm__plan_column_deinit(&column);
        return ivm__plan_drop(plan);
    }
    return ivm__plan_column_add(&plan->columns, &plan->columns_count, column) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm_plan_compute(ivm_plan *project, const char *name, ivm_expr *value)
{
    if (!ivm__plan_is(project, IVM__PLAN_PROJECT, "ivm_plan_compute", "project")) {
        ivm_expr_free(value);
        return ivm__plan_drop(project);
    }
    return ivm__plan_name(project, "ivm_plan_compute", name, value);
}
