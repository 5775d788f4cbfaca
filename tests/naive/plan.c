/* Plans of the oracle, made piece by piece, and the same plans through the library's builders. */
#include "naive.h"

#include <assert.h>
#include <string.h>

const char *const naive_function_names[NAIVE_FUNCTIONS_COUNT] = {
    "+",  "-",   "-",       "*",           "/",        "div",  "%",  "=",     "<>",       "<",   "<=",     ">",     ">=",    "and",
    "or", "not", "is_null", "is_not_null", "coalesce", "case", "in", "least", "greatest", "abs", "concat", "lower", "upper", "length",
};
const char *const naive_aggregate_names[NAIVE_AGGREGATES_COUNT] = {
    "count",   "sum",      "avg",        "min",         "max",      "count_distinct", "sum_distinct",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "bool_and", "bool_or",
};

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

naive_plan *naive_plan_make(naive_pool *pool, naive_operator op, size_t inputs_count)
{
    naive_plan *plan = naive_take(pool, sizeof *plan);
    plan->op = op;
    plan->inputs_count = inputs_count;
    plan->inputs = naive_take(pool, inputs_count * sizeof(naive_plan *));
    return plan;
}

static naive_expr *expr_make(naive_pool *pool, naive_kind kind, size_t arguments_count)
{
    naive_expr *expr = naive_take(pool, sizeof *expr);
    expr->kind = kind;
    expr->arguments_count = arguments_count;
    expr->arguments = naive_take(pool, arguments_count * sizeof(naive_expr *));
    return expr;
}

naive_expr *naive_expr_column(naive_pool *pool, const char *name)
{
    naive_expr *expr = expr_make(pool, NAIVE_COLUMN, 0);
    expr->name = name;
    return expr;
}

naive_expr *naive_expr_literal(naive_pool *pool, ivm_value value)
{
    naive_expr *expr = expr_make(pool, NAIVE_LITERAL, 0);
    expr->literal = !value.is_null && value.type == IVM_FLOAT64 ? naive_float(value.as.float64) : value;
    return expr;
}

naive_expr *naive_expr_cast(naive_pool *pool, naive_expr *value, ivm_type type)
{
    naive_expr *expr = expr_make(pool, NAIVE_CAST, 1);
    expr->arguments[0] = value;
    expr->target = type;
    return expr;
}

naive_expr *naive_expr_call(naive_pool *pool, naive_function function, size_t arguments_count)
{
    naive_expr *expr = expr_make(pool, NAIVE_CALL, arguments_count);
    expr->function = function;
    return expr;
}

const char *naive_bare_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

bool naive_plan_reads(const naive_plan *plan, const char *name)
{
    bool reads = plan->op == NAIVE_SCAN && strcmp(plan->table, name) == 0;
    for (size_t i = 0; i < plan->inputs_count; i++) {
        reads |= naive_plan_reads(plan->inputs[i], name);
    }
    return reads;
}

/* ---- Building ---------------------------------------------------------------------------------------------------------------------- */

static ivm_expr *expr_build(const naive_expr *expr)
{
    ivm_expr *arguments[64];
    if (expr->kind == NAIVE_COLUMN) {
        return ivm_column(expr->name);
    }
    if (expr->kind == NAIVE_LITERAL) {
        return ivm_literal(expr->literal);
    }
    assert(expr->arguments_count <= 64);
    for (size_t i = 0; i < expr->arguments_count; i++) {
        arguments[i] = expr_build(expr->arguments[i]);
    }
    return expr->kind == NAIVE_CAST ? ivm_cast(arguments[0], expr->target)
                                    : ivm_call(naive_function_names[expr->function], arguments, expr->arguments_count);
}

static const char *on_text(naive_pool *pool, const naive_plan *plan)
{
    const char *text = "";
    for (size_t i = 0; i < plan->on_count; i++) {
        text = naive_text(pool, "%s%s%s = %s", text, i ? ", " : "", plan->on[i].left, plan->on[i].right);
    }
    return text;
}

static ivm_plan *join_build(naive_pool *pool, const naive_plan *plan, ivm_plan **inputs)
{
    const char *on = on_text(pool, plan);
    ivm_plan *join;
    if (plan->join != IVM_INNER_JOIN) {
        join = ivm_plan_join_kind(plan->join, inputs[0], inputs[1], on);
    } else {
        join = plan->inputs_count == 2 ? ivm_plan_join(inputs[0], inputs[1], on) : ivm_plan_join_many(inputs, plan->inputs_count, on);
    }
    return plan->where ? ivm_plan_join_where(join, expr_build(plan->where)) : join;
}

/* The name a column of a project or a group gets. */
static const char *named(const naive_named *column)
{
    return column->name ? column->name : naive_bare_name(column->value->name);
}

static ivm_plan *project_build(const naive_plan *plan, ivm_plan *input)
{
    bool plain = plan->columns_count && !plan->columns[0].name;
    ivm_plan *project = ivm_plan_project(input, plain ? plan->columns[0].value->name : NULL);
    for (size_t c = plain; c < plan->columns_count; c++) {
        project = ivm_plan_compute(project, named(&plan->columns[c]), expr_build(plan->columns[c].value));
    }
    return project;
}

static ivm_plan *aggregate_build(const naive_plan *plan, ivm_plan *input)
{
    bool plain = plan->columns_count && !plan->columns[0].name;
    ivm_plan *aggregate = ivm_plan_aggregate(input, plain ? plan->columns[0].value->name : NULL);
    for (size_t c = plain; c < plan->columns_count; c++) {
        aggregate = ivm_plan_group(aggregate, named(&plan->columns[c]), expr_build(plan->columns[c].value));
    }
    for (size_t a = 0; a < plan->aggregates_count; a++) {
        const naive_aggregate *one = &plan->aggregates[a];
        if (one->argument) {
            aggregate = ivm_plan_add(aggregate, one->name, naive_aggregate_names[one->function], expr_build(one->argument));
        } else {
            aggregate = ivm_plan_count(aggregate, one->name);
        }
        if (one->where) {
            aggregate = ivm_plan_add_where(aggregate, expr_build(one->where));
        }
    }
    return plan->where ? ivm_plan_having(aggregate, expr_build(plan->where)) : aggregate;
}

static ivm_plan *top_build(const naive_plan *plan, ivm_plan *input)
{
    ivm_plan *top = ivm_plan_top_k(input, plan->limit, plan->offset);
    for (size_t i = 0; i < plan->partitions_count; i++) {
        top = ivm_plan_partition_by(top, expr_build(plan->partitions[i]));
    }
    for (size_t i = 0; i < plan->orders_count; i++) {
        top = ivm_plan_order_by(top, expr_build(plan->orders[i].value), plan->orders[i].descending, plan->orders[i].nulls_first);
    }
    return top;
}

static ivm_plan *plan_build(naive_pool *pool, const naive_plan *plan)
{
    ivm_plan *inputs[IVM_JOIN_LEAVES_MAX];
    assert(plan->inputs_count <= IVM_JOIN_LEAVES_MAX);
    for (size_t i = 0; i < plan->inputs_count; i++) {
        inputs[i] = plan_build(pool, plan->inputs[i]);
    }
    switch (plan->op) {
    case NAIVE_SCAN:
        return ivm_plan_scan_name(plan->table, plan->alias);
    case NAIVE_FILTER:
        return ivm_plan_filter(inputs[0], expr_build(plan->where));
    case NAIVE_PROJECT:
        return project_build(plan, inputs[0]);
    case NAIVE_JOIN:
        return join_build(pool, plan, inputs);
    case NAIVE_AGGREGATE:
        return aggregate_build(plan, inputs[0]);
    case NAIVE_DISTINCT:
        return ivm_plan_distinct(inputs[0]);
    case NAIVE_SET:
        return ivm_plan_set(plan->set, inputs, plan->inputs_count);
    default:
        return top_build(plan, inputs[0]);
    }
}

ivm_plan *naive_plan_build(const naive_plan *plan)
{
    naive_pool texts = { 0 };
    ivm_plan *built = plan_build(&texts, plan);
    naive_pool_free(&texts);
    return built;
}
