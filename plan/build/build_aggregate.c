/* Builders of aggregates: groups first, then aggregates one by one, each with its condition after it. */
#include "build.h"

ivm_plan *ivm_plan_aggregate(ivm_plan *input, const char *group_by)
{
    ivm_plan *plan = ivm__plan_over(IVM__PLAN_AGGREGATE, "ivm_plan_aggregate", input);
    return plan && ivm__plan_keep_all(plan, "ivm_plan_aggregate", group_by) ? plan : ivm__plan_drop(plan);
}

ivm_plan *ivm_plan_group(ivm_plan *aggregate, const char *name, ivm_expr *value)
{
    if (!ivm__plan_is(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_group", "aggregate")) {
        ivm_expr_free(value);
        return ivm__plan_drop(aggregate);
    }
    return ivm__plan_name(aggregate, "ivm_plan_group", name, value);
}

/* Takes the argument, whatever the outcome; NULL: of rows. The plan is known to be an aggregate. */
static ivm_plan *aggregate_add(ivm_plan *aggregate, const char *name, const char *function, ivm_expr *argument)
{
    ivm__plan_column column = { .value = argument, .name = ivm__builder_text(name, strlen(name)) };
    column.function = column.name ? ivm__builder_text(function, strlen(function)) : NULL;
    if (!column.function) {
        ivm__plan_column_deinit(&column);
        return ivm__plan_drop(aggregate);
    }
    bool added = ivm__plan_column_add(&aggregate->aggregates, &aggregate->aggregates_count, column);
    return added ? aggregate : ivm__plan_drop(aggregate);
}

ivm_plan *ivm__plan_add_rows(ivm_plan *aggregate, const char *name, const char *function)
{
    return aggregate_add(aggregate, name, function, NULL);
}

ivm_plan *ivm_plan_count(ivm_plan *aggregate, const char *name)
{
    if (!ivm__plan_is(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_count", "aggregate") || !name) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_count: the name is NULL");
        return ivm__plan_drop(aggregate);
    }
    return aggregate_add(aggregate, name, "count", NULL);
}

ivm_plan *ivm_plan_add(ivm_plan *aggregate, const char *name, const char *function, ivm_expr *argument)
{
    if (!ivm__plan_is(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_add", "aggregate") || !name || !function || !argument) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_add: the name, the function or the argument is NULL");
        ivm_expr_free(argument);
        return ivm__plan_drop(aggregate);
    }
    return aggregate_add(aggregate, name, function, argument);
}

ivm_plan *ivm_plan_add_where(ivm_plan *aggregate, ivm_expr *where)
{
    if (!ivm__plan_is(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_add_where", "aggregate") || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_add_where: the condition is NULL");
        ivm_expr_free(where);
        return ivm__plan_drop(aggregate);
    }
    if (aggregate->aggregates_count == 0) {
        ivm__builder_fail(IVM_INVALID_PLAN, "ivm_plan_add_where: there is no aggregate yet");
        ivm_expr_free(where);
        return ivm__plan_drop(aggregate);
    }
    ivm__plan_column *last = &aggregate->aggregates[aggregate->aggregates_count - 1];
    last->where = last->where ? ivm_call2("and", last->where, where) : where;
    return last->where ? aggregate : ivm__plan_drop(aggregate);
}

ivm_plan *ivm_plan_having(ivm_plan *aggregate, ivm_expr *where)
{
    if (!ivm__plan_is(aggregate, IVM__PLAN_AGGREGATE, "ivm_plan_having", "aggregate") || !where) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_plan_having: the condition is NULL");
        ivm_expr_free(where);
        return ivm__plan_drop(aggregate);
    }
    return ivm__plan_where_add(aggregate, where) ? aggregate : ivm__plan_drop(aggregate);
}
