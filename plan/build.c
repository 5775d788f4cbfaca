/* Builders of plans: a tree of what the user said, nothing of it looked up yet. Every builder takes what it is given; one that fails frees
 * it, notes the cause if it is the thread's first, and returns NULL, which every builder passes on. */
#include "build.h"

#include "catalog.h"

/* ---- Freeing ----------------------------------------------------------------------------------------------------------------------- */

static void column_deinit(ivm__plan_column *column)
{
    ivm__builder_text_free(column->name);
    ivm__builder_text_free(column->function);
    ivm_expr_free(column->value);
    ivm_expr_free(column->where);
}

static void columns_free(ivm__plan_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        column_deinit(&columns[i]);
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
    ivm__release(&ivm__builder_memory, plan, sizeof *plan);
}

static ivm_plan *plan_drop(ivm_plan *plan)
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
    if (input->depth >= IVM__BUILDER_DEPTH_MAX) {
        ivm__builder_fail(IVM_INVALID_PLAN, "a plan nested more than %u deep", IVM__BUILDER_DEPTH_MAX);
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

static ivm_plan *plan_over(ivm__plan_op op, const char *builder, ivm_plan *input)
{
    if (!input) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: the input is NULL", builder);
        return NULL;
    }
    ivm_plan *plan = plan_make(op);
    if (!plan) {
        return plan_drop(input);
    }
    return input_add(plan, input) ? plan : plan_drop(plan);
}

/* A plan that a builder adds to must be there and of the right op. */
static bool is_op(const ivm_plan *plan, ivm__plan_op op, const char *builder, const char *wanted)
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

/* Takes the column's pieces, whatever the outcome. */
static bool column_add(ivm__plan_column **columns, size_t *count, ivm__plan_column column)
{
    ivm__plan_column *grown = ivm__builder_grow(*columns, *count, sizeof *grown);
    if (!grown) {
        column_deinit(&column);
        return false;
    }
    grown[(*count)++] = column;
    *columns = grown;
    return true;
}

/* One condition more: all must be true. Takes it, whatever the outcome. */
static bool where_add(ivm_plan *plan, ivm_expr *where)
{
    plan->where = plan->where ? ivm_call2("and", plan->where, where) : where;
    return plan->where;
}

/* ---- Lists of names ---------------------------------------------------------------------------------------------------------------- */

static bool is_blank(const char *list)
{
    return !list || !list[strspn(list, " \t\n\r\f\v")];
}

static bool keep_column(ivm_plan *plan, const char *name, size_t size)
{
    ivm__plan_column column = { .value = ivm__expr_column(name, size) };
    return column.value && column_add(&plan->columns, &plan->columns_count, column);
}

static bool keep_columns(ivm_plan *plan, const char *builder, const char *list)
{
    const char *at = is_blank(list) ? NULL : list, *name;
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

static bool equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size)
{
    char *left = ivm__builder_text(a, a_size), *right = left ? ivm__builder_text(b, b_size) : NULL;
    char **grown = right ? ivm__builder_grow(join->on, join->on_count, 2 * sizeof(char *)) : NULL;
    if (!grown) {
        ivm__builder_text_free(left);
        ivm__builder_text_free(right);
        return false;
    }
    join->on = grown;
    grown[2 * join->on_count] = left;
    grown[2 * join->on_count + 1] = right;
    join->on_count++;
    return true;
}

static size_t trimmed(const char **name, size_t size)
{
    static const char space[] = " \t\n\r\f\v";
    while (size && strchr(space, **name)) {
        (*name)++;
        size--;
    }
    while (size && strchr(space, (*name)[size - 1])) {
        size--;
    }
    return size;
}

/* "a = b": one equals sign, a name on either side. */
static bool equate_text(ivm_plan *join, const char *pair, size_t size)
{
    const char *sign = memchr(pair, '=', size), *end = pair + size;
    const char *left = pair, *right = sign ? sign + 1 : end;
    size_t left_size = sign ? trimmed(&left, (size_t)(sign - left)) : 0, right_size = trimmed(&right, (size_t)(end - right));
    if (!left_size || !right_size || memchr(right, '=', right_size)) {
        ivm__builder_fail(IVM_INVALID_PLAN, "ivm_plan_join: \"%.*s\" is no pair of names with = between them", (int)size, pair);
        return false;
    }
    return equate(join, left, left_size, right, right_size);
}

static bool equate_list(ivm_plan *join, const char *list)
{
    const char *at = is_blank(list) ? NULL : list, *pair;
    size_t size;
    while (at && ivm__name_next(&at, &pair, &size)) {
        if (!equate_text(join, pair, size)) {
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
    return plan->table && (plan->alias || !alias) ? plan : plan_drop(plan);
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
    }
    return plan;
}

ivm_plan *ivm_plan_filter(ivm_plan *input, ivm_expr *where)
{
    ivm_plan *plan = plan_over(IVM__PLAN_FILTER, "ivm_plan_filter", input);
    if (!plan || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_filter: the condition is NULL");
        ivm_expr_free(where);
        return plan_drop(plan);
    }
    plan->where = where;
    return plan;
}

/* ---- Projects ---------------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_project(ivm_plan *input, const char *columns)
{
    ivm_plan *plan = plan_over(IVM__PLAN_PROJECT, "ivm_plan_project", input);
    return plan && keep_columns(plan, "ivm_plan_project", columns) ? plan : plan_drop(plan);
}

ivm_plan *ivm__plan_keep(ivm_plan *plan, const char *name, size_t size)
{
    return plan && keep_column(plan, name, size) ? plan : plan_drop(plan);
}

/* A named expression as one more column; takes it. */
static ivm_plan *plan_name(ivm_plan *plan, const char *builder, const char *name, ivm_expr *value)
{
    if (!name || !value) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: %s is NULL", builder, name ? name : "the name");
        ivm_expr_free(value);
        return plan_drop(plan);
    }
    ivm__plan_column column = { .name = ivm__builder_text(name, strlen(name)), .value = value };
    if (!column.name) {
        column_deinit(&column);
        return plan_drop(plan);
    }
    return column_add(&plan->columns, &plan->columns_count, column) ? plan : plan_drop(plan);
}

ivm_plan *ivm_plan_compute(ivm_plan *project, const char *name, ivm_expr *value)
{
    if (!is_op(project, IVM__PLAN_PROJECT, "ivm_plan_compute", "project")) {
        ivm_expr_free(value);
        return plan_drop(project);
    }
    return plan_name(project, "ivm_plan_compute", name, value);
}

/* ---- Joins ------------------------------------------------------------------------------------------------------------------------- */

/* Takes all inputs; NULL where one is missing or memory ends. */
static ivm_plan *join_make(ivm_plan **inputs, size_t inputs_count)
{
    bool made = true;
    for (size_t i = 0; i < inputs_count; i++) {
        made = made && inputs[i];
    }
    if (!made) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_join: an input is NULL");
    }
    ivm_plan *join = made ? plan_make(IVM__PLAN_JOIN) : NULL;
    made = join;
    for (size_t i = 0; i < inputs_count; i++) {
        if (made) {
            made = input_add(join, inputs[i]);
        } else {
            ivm_plan_free(inputs[i]);
        }
    }
    return made ? join : plan_drop(join);
}

ivm_plan *ivm_plan_join_many(ivm_plan **inputs, size_t inputs_count, const char *on)
{
    if (!inputs) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_join: the inputs are NULL");
        return NULL;
    }
    ivm_plan *join = join_make(inputs, inputs_count);
    if (!join || inputs_count < 2) {
        ivm__builder_fail(IVM_INVALID_PLAN, "ivm_plan_join: two inputs or more are wanted, not %zu", inputs_count);
        return plan_drop(join);
    }
    return equate_list(join, on) ? join : plan_drop(join);
}

ivm_plan *ivm_plan_join(ivm_plan *left, ivm_plan *right, const char *on)
{
    return ivm_plan_join_many((ivm_plan *[]){ left, right }, 2, on);
}

ivm_plan *ivm__plan_equate(ivm_plan *join, const char *a, size_t a_size, const char *b, size_t b_size)
{
    return join && equate(join, a, a_size, b, b_size) ? join : plan_drop(join);
}

ivm_plan *ivm_plan_join_where(ivm_plan *join, ivm_expr *where)
{
    if (!is_op(join, IVM__PLAN_JOIN, "ivm_plan_join_where", "join") || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_join_where: the condition is NULL");
        ivm_expr_free(where);
        return plan_drop(join);
    }
    return where_add(join, where) ? join : plan_drop(join);
}

/* ---- Aggregates -------------------------------------------------------------------------------------------------------------------- */

ivm_plan *ivm_plan_aggregate(ivm_plan *input, const char *group_by)
{
    ivm_plan *plan = plan_over(IVM__PLAN_AGGREGATE, "ivm_plan_aggregate", input);
    return plan && keep_columns(plan, "ivm_plan_aggregate", group_by) ? plan : plan_drop(plan);
}

ivm_plan *ivm_plan_group(ivm_plan *aggregate, const char *name, ivm_expr *value)
{
    if (!is_op(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_group", "aggregate")) {
        ivm_expr_free(value);
        return plan_drop(aggregate);
    }
    return plan_name(aggregate, "ivm_plan_group", name, value);
}

/* An argument or condition that is NULL may be what a failed builder gave: where one of this thread has failed and nobody has been told yet,
 * NULL is passed on rather than taken for "count all rows". */
ivm_plan *ivm_plan_add(ivm_plan *aggregate, const char *name, const char *function, ivm_expr *argument, ivm_expr *where)
{
    bool fine = is_op(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_add", "aggregate") && name && function;
    if (!fine) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_add: the name or the function is NULL");
    }
    ivm__plan_column column = { .value = argument, .where = where };
    if (!fine || ((!argument || !where) && ivm__builder_has_failed())) {
        column_deinit(&column);
        return plan_drop(aggregate);
    }
    column.name = ivm__builder_text(name, strlen(name));
    column.function = column.name ? ivm__builder_text(function, strlen(function)) : NULL;
    if (!column.function) {
        column_deinit(&column);
        return plan_drop(aggregate);
    }
    return column_add(&aggregate->aggregates, &aggregate->aggregates_count, column) ? aggregate : plan_drop(aggregate);
}

ivm_plan *ivm_plan_having(ivm_plan *aggregate, ivm_expr *where)
{
    if (!is_op(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_having", "aggregate") || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_having: the condition is NULL");
        ivm_expr_free(where);
        return plan_drop(aggregate);
    }
    return where_add(aggregate, where) ? aggregate : plan_drop(aggregate);
}
