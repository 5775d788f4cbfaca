/* Headings of the oracle's plans, from the leaves up. */
#include "naive.h"

#include <assert.h>
#include <string.h>

static ivm_status no_twins(const naive_column *heading, size_t width)
{
    for (size_t a = 0; a < width; a++) {
        for (size_t b = 0; b < a; b++) {
            if (strcmp(heading[a].name, heading[b].name) == 0) {
                return IVM_AMBIGUOUS_COLUMN;
            }
        }
    }
    return IVM_OK;
}

static void heading_make(naive_pool *pool, naive_plan *plan, size_t width)
{
    plan->heading = naive_take(pool, width * sizeof *plan->heading);
    plan->width = width;
}

/* As the first input's. */
static void heading_keep(naive_plan *plan)
{
    plan->heading = plan->inputs[0]->heading;
    plan->width = plan->inputs[0]->width;
}

static ivm_status bind_scan(naive_pool *pool, const naive_database *database, naive_plan *plan)
{
    const naive_table *table = naive_table_find(database, plan->table);
    const naive_view *view = table ? NULL : naive_view_find(database, plan->table);
    const char *alias = plan->alias ? plan->alias : plan->table;
    if (!table && !view) {
        return IVM_UNKNOWN_TABLE;
    }
    heading_make(pool, plan, table ? table->columns_count : view->plan->width);
    plan->ids = naive_take(pool, plan->width * sizeof *plan->ids);
    for (size_t c = 0; c < plan->width; c++) {
        const char *name = table ? table->columns[c].name : naive_bare_name(view->plan->heading[c].name);
        plan->heading[c].name = naive_text(pool, "%s.%s", alias, name);
        plan->heading[c].type = table ? table->columns[c].type : view->plan->heading[c].type;
        plan->ids[c] = table ? table->columns[c].id : (uint32_t)c;
    }
    return IVM_OK;
}

/* An untyped null becomes an int64. */
static ivm_status bind_named(const naive_plan *plan, naive_named *column, naive_column *out)
{
    const naive_plan *input = plan->inputs[0];
    NAIVE_TRY(naive_bind_expr(column->value, input->heading, input->width));
    const char *plain = column->name ? NULL : input->heading[column->value->position].name;
    assert(column->name || column->value->kind == NAIVE_COLUMN);
    out->name = column->name ? column->name : naive_bare_name(plain);
    out->type = column->value->type ? column->value->type : IVM_INT64;
    return IVM_OK;
}

static ivm_status bind_project(naive_pool *pool, naive_plan *plan)
{
    if (!plan->columns_count) {
        return IVM_INVALID_PLAN;
    }
    heading_make(pool, plan, plan->columns_count);
    for (size_t c = 0; c < plan->columns_count; c++) {
        NAIVE_TRY(bind_named(plan, &plan->columns[c], &plan->heading[c]));
    }
    return no_twins(plan->heading, plan->width);
}

/* The input of a join that a position of its heading belongs to. */
static size_t owner(const naive_plan *plan, size_t position)
{
    size_t input = 0;
    for (; position >= plan->inputs[input]->width; input++) {
        position -= plan->inputs[input]->width;
    }
    return input;
}

static ivm_status bind_pair(const naive_plan *plan, naive_pair *pair)
{
    NAIVE_TRY(naive_find_column(pair->left, plan->heading, plan->width, &pair->a));
    NAIVE_TRY(naive_find_column(pair->right, plan->heading, plan->width, &pair->b));
    if (owner(plan, pair->a) == owner(plan, pair->b)) {
        return IVM_INVALID_PLAN;
    }
    return naive_unify(plan->heading[pair->a].type, plan->heading[pair->b].type, &pair->type);
}

static ivm_status bind_join(naive_pool *pool, naive_plan *plan)
{
    size_t width = 0;
    if (plan->inputs_count < 2 || (plan->join != IVM_INNER_JOIN && plan->inputs_count != 2)) {
        return IVM_INVALID_PLAN;
    }
    for (size_t i = 0; i < plan->inputs_count; i++) {
        width += plan->inputs[i]->width;
    }
    heading_make(pool, plan, width);
    width = 0;
    for (size_t i = 0; i < plan->inputs_count; i++) {
        memcpy(plan->heading + width, plan->inputs[i]->heading, plan->inputs[i]->width * sizeof *plan->heading);
        width += plan->inputs[i]->width;
    }
    NAIVE_TRY(no_twins(plan->heading, width));
    for (size_t i = 0; i < plan->on_count; i++) {
        NAIVE_TRY(bind_pair(plan, &plan->on[i]));
    }
    if (plan->where) {
        NAIVE_TRY(naive_bind_condition(plan->where, plan->heading, width));
    }
    if (plan->join == IVM_SEMI_JOIN || plan->join == IVM_ANTI_JOIN) {
        plan->width = plan->inputs[0]->width; /* the rest of the heading stays for the condition's positions */
    }
    return IVM_OK;
}

static ivm_status aggregate_type(naive_aggregate *aggregate)
{
    ivm_type type = aggregate->argument ? aggregate->argument->type : 0;
    uint32_t kind = IVM_TYPE_KIND(type);
    bool number = !type || kind == IVM_INT64 || kind == IVM_FLOAT64 || kind == IVM_DECIMAL_KIND;
    switch (aggregate->function) {
    case NAIVE_COUNT:
    case NAIVE_COUNT_DISTINCT:
        aggregate->type = IVM_INT64;
        return IVM_OK;
    case NAIVE_MIN:
    case NAIVE_MAX:
        aggregate->type = type ? type : IVM_INT64;
        return IVM_OK;
    case NAIVE_SUM:
    case NAIVE_SUM_DISTINCT:
        aggregate->type = !type ? IVM_INT64 : kind == IVM_DECIMAL_KIND ? IVM_DECIMAL(38, IVM_TYPE_SCALE(type)) : type;
        return number ? IVM_OK : IVM_TYPE_MISMATCH;
    case NAIVE_BOOL_AND:
    case NAIVE_BOOL_OR:
        aggregate->type = IVM_BOOL;
        return !type || type == IVM_BOOL ? IVM_OK : IVM_TYPE_MISMATCH;
    default:
        aggregate->type = IVM_FLOAT64;
        return number ? IVM_OK : IVM_TYPE_MISMATCH;
    }
}

static ivm_status bind_aggregate(naive_pool *pool, naive_plan *plan)
{
    const naive_plan *input = plan->inputs[0];
    size_t groups = plan->columns_count;
    if (!groups && !plan->aggregates_count) {
        return IVM_INVALID_PLAN;
    }
    heading_make(pool, plan, groups + plan->aggregates_count);
    for (size_t c = 0; c < groups; c++) {
        NAIVE_TRY(bind_named(plan, &plan->columns[c], &plan->heading[c]));
    }
    for (size_t a = 0; a < plan->aggregates_count; a++) {
        naive_aggregate *one = &plan->aggregates[a];
        if (one->argument) {
            NAIVE_TRY(naive_bind_expr(one->argument, input->heading, input->width));
        } else if (one->function != NAIVE_COUNT) {
            return IVM_INVALID_PLAN;
        }
        if (one->where) {
            NAIVE_TRY(naive_bind_condition(one->where, input->heading, input->width));
        }
        NAIVE_TRY(aggregate_type(one));
        plan->heading[groups + a] = (naive_column){ one->name, one->type };
    }
    NAIVE_TRY(no_twins(plan->heading, plan->width));
    return plan->where ? naive_bind_condition(plan->where, plan->heading, plan->width) : IVM_OK;
}

/* Names of the first input without their aliases. */
static ivm_status bind_set(naive_pool *pool, naive_plan *plan)
{
    if (plan->inputs_count < 2) {
        return IVM_INVALID_PLAN;
    }
    heading_make(pool, plan, plan->inputs[0]->width);
    for (size_t c = 0; c < plan->width; c++) {
        plan->heading[c] = plan->inputs[0]->heading[c];
        plan->heading[c].name = naive_bare_name(plan->heading[c].name);
    }
    for (size_t i = 1; i < plan->inputs_count; i++) {
        bool alike = plan->inputs[i]->width == plan->width;
        for (size_t c = 0; alike && c < plan->width; c++) {
            alike = plan->inputs[i]->heading[c].type == plan->heading[c].type;
        }
        if (!alike) {
            return IVM_TYPE_MISMATCH;
        }
    }
    return IVM_OK;
}

static ivm_status bind_top(naive_plan *plan)
{
    heading_keep(plan);
    for (size_t i = 0; i < plan->partitions_count; i++) {
        NAIVE_TRY(naive_bind_expr(plan->partitions[i], plan->heading, plan->width));
    }
    for (size_t i = 0; i < plan->orders_count; i++) {
        NAIVE_TRY(naive_bind_expr(plan->orders[i].value, plan->heading, plan->width));
    }
    return IVM_OK;
}

ivm_status naive_bind(naive_pool *pool, const naive_database *database, naive_plan *plan)
{
    if (plan->heading) {
        return IVM_OK;
    }
    for (size_t i = 0; i < plan->inputs_count; i++) {
        NAIVE_TRY(naive_bind(pool, database, plan->inputs[i]));
    }
    switch (plan->op) {
    case NAIVE_SCAN:
        return bind_scan(pool, database, plan);
    case NAIVE_FILTER:
        heading_keep(plan);
        return naive_bind_condition(plan->where, plan->heading, plan->width);
    case NAIVE_PROJECT:
        return bind_project(pool, plan);
    case NAIVE_JOIN:
        return bind_join(pool, plan);
    case NAIVE_AGGREGATE:
        return bind_aggregate(pool, plan);
    case NAIVE_DISTINCT:
        heading_keep(plan);
        return IVM_OK;
    case NAIVE_SET:
        return bind_set(pool, plan);
    default:
        return bind_top(plan);
    }
}
