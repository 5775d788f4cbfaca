/* Checking aggregates: the functions' types, and what they want of their arguments. */
#include "check.h"

/* What an argument may be; untyped nulls become int64, or bool where that is wanted. */
typedef enum wanted { ANYTHING, NUMBER, BOOL } wanted;

typedef struct aggregate_rule {
    const char *name;
    ivm__aggregate_function function;
    wanted argument;
    ivm_type type; /* of the result; 0: the argument's, a decimal with all its digits for sums */
} aggregate_rule;

static const aggregate_rule *find_rule(const char *name)
{
    static const aggregate_rule rules[] = {
        { "count", IVM__COUNT, ANYTHING, IVM_INT64 },
        { "sum", IVM__SUM, NUMBER, 0 },
        { "avg", IVM__AVG, NUMBER, IVM_FLOAT64 },
        { "min", IVM__MIN, ANYTHING, 0 },
        { "max", IVM__MAX, ANYTHING, 0 },
        { "count_distinct", IVM__COUNT_DISTINCT, ANYTHING, IVM_INT64 },
        { "sum_distinct", IVM__SUM_DISTINCT, NUMBER, 0 },
        { "bool_and", IVM__BOOL_AND, BOOL, IVM_BOOL },
        { "bool_or", IVM__BOOL_OR, BOOL, IVM_BOOL },
        { "var_pop", IVM__VAR_POP, NUMBER, IVM_FLOAT64 },
        { "var_samp", IVM__VAR_SAMP, NUMBER, IVM_FLOAT64 },
        { "stddev_pop", IVM__STDDEV_POP, NUMBER, IVM_FLOAT64 },
        { "stddev_samp", IVM__STDDEV_SAMP, NUMBER, IVM_FLOAT64 },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

static bool suits(wanted argument, ivm_type type)
{
    uint32_t kind = IVM_TYPE_KIND(type);
    bool number = kind == IVM_INT64 || kind == IVM_FLOAT64 || kind == IVM_DECIMAL_KIND;
    return argument == ANYTHING || (argument == NUMBER ? number : kind == IVM_BOOL);
}

/* The function's type; the argument has its own. */
static ivm_status type_call(ivm__check *check, const ivm__plan_column *call, ivm__aggregate_spec *spec)
{
    const aggregate_rule *rule = find_rule(call->function);
    if (!rule) {
        return ivm__fail(check->error, IVM_INVALID_PLAN, "unknown aggregate %s", call->function);
    }
    spec->function = rule->function;
    spec->type = rule->type;
    if (!spec->argument) {
        return IVM_OK;
    }
    IVM_TRY(ivm__check_settle(check, &spec->argument, rule->argument == BOOL ? IVM_BOOL : IVM_INT64));
    ivm_type type = spec->argument->type;
    if (!suits(rule->argument, type)) {
        char text[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(type, text);
        return ivm__fail(check->error, IVM_TYPE_MISMATCH, "%s: %s wants a %s, not %s", call->name, call->function,
                         rule->argument == BOOL ? "bool" : "number", text);
    }
    if (rule->type == 0) {
        bool sum = rule->argument == NUMBER && IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND;
        spec->type = sum ? IVM_DECIMAL(IVM_DECIMAL_PRECISION_MAX, IVM_TYPE_SCALE(type)) : type;
    }
    return IVM_OK;
}

static ivm_status check_call(ivm__check *check, const ivm__plan_column *call, ivm__names *names, ivm__aggregate_spec *spec)
{
    if (call->value) {
        IVM_TRY(ivm__expression_check(check->engine, call->value, names, &spec->argument, check->error));
    } else if (strcmp(call->function, "count") != 0) {
        return ivm__fail(check->error, IVM_INVALID_PLAN, "%s: %s wants an argument", call->name, call->function);
    }
    if (call->where) {
        IVM_TRY(ivm__check_condition(check, call->where, names, &spec->where));
    }
    return type_call(check, call, spec);
}

static ivm_status make_aggregate_arrays(ivm__node *node, ivm__memory *memory, uint32_t groups_count, uint32_t aggregates_count)
{
    IVM_TRY(ivm__node_columns(node, memory, groups_count + aggregates_count));
    node->groups = ivm__allocate_zeroed(memory, groups_count * sizeof(ivm__expression *));
    if (!node->groups) {
        return IVM_OUT_OF_MEMORY;
    }
    node->groups_count = groups_count;
    node->aggregates = ivm__allocate_zeroed(memory, aggregates_count * sizeof *node->aggregates);
    if (!node->aggregates) {
        return IVM_OUT_OF_MEMORY;
    }
    node->aggregates_count = aggregates_count;
    return IVM_OK;
}

/* Groups and aggregates over the input's columns. */
static ivm_status columns_named(ivm__check *check, const ivm_plan *plan, ivm__names *names, ivm__node *node)
{
    for (uint32_t i = 0; i < node->groups_count; i++) {
        IVM_TRY(ivm__check_named(check, &plan->columns[i], names, node, i, &node->groups[i]));
    }
    for (uint32_t i = 0; i < node->aggregates_count; i++) {
        const ivm__plan_column *call = &plan->aggregates[i];
        IVM_TRY(check_call(check, call, names, &node->aggregates[i]));
        if (ivm__node_column_set(node, check->memory, node->groups_count + i, call->name, node->aggregates[i].type) != IVM_OK) {
            return ivm__fail_memory(check->error);
        }
    }
    return IVM_OK;
}

static ivm_status check_columns(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    ivm__names names;
    ivm__names_init(&names, check->memory, node->inputs[0]->columns, node->inputs[0]->columns_count);
    ivm_status status = columns_named(check, plan, &names, node);
    ivm__names_deinit(&names);
    return status;
}

ivm_status ivm__check_aggregate(ivm__check *check, const ivm_plan *plan, ivm__node *node)
{
    IVM_TRY(ivm__check_input(check, plan, node));
    uint32_t groups_count = (uint32_t)plan->columns_count, aggregates_count = (uint32_t)plan->aggregates_count;
    if (groups_count + aggregates_count == 0) {
        return ivm__fail(check->error, IVM_INVALID_PLAN, "an aggregate needs a group or an aggregate");
    }
    if (make_aggregate_arrays(node, check->memory, groups_count, aggregates_count) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    IVM_TRY(check_columns(check, plan, node));
    IVM_TRY(ivm__check_twins(check, node->columns, node->columns_count, ""));
    if (!plan->where) {
        return IVM_OK;
    }
    if (ivm__node_expressions(node, check->memory, 1) != IVM_OK) {
        return ivm__fail_memory(check->error);
    }
    return ivm__check_where(check, plan, node);
}
