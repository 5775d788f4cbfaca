/* Plans of scenario files as plans of the oracle. */
#include "scenario.h"

#include "replay.h"

#include <string.h>

static ivm_status expr_read(naive_pool *pool, const json_t *json, naive_expr **expr);
static ivm_status type_read(const json_t *json, ivm_type *type);

/* ---- Expressions ------------------------------------------------------------------------------------------------------------------- */

static ivm_status type_read(const json_t *json, ivm_type *type)
{
    ivm_error error;
    const char *text = json_string_value(json);
    return text ? ivm_type_parse(text, type, &error) : IVM_INVALID_PLAN;
}

static ivm_status literal_read(naive_pool *pool, const json_t *json, naive_expr **expr)
{
    const json_t *lit = json_object_get(json, "lit"), *type_name = json_object_get(json, "type");
    ivm_type type = IVM_STRING;
    ivm_value value;
    if (!lit || json_object_size(json) != (type_name ? 2u : 1u)) {
        return IVM_INVALID_PLAN;
    }
    if (type_name) {
        NAIVE_TRY(type_read(type_name, &type));
    }
    if (!cell_read(type, lit, &value)) {
        return IVM_TYPE_MISMATCH;
    }
    *expr = naive_expr_literal(pool, value);
    return IVM_OK;
}

static ivm_status function_find(const char *name, size_t arguments_count, naive_function *function)
{
    for (int f = 0; f < NAIVE_FUNCTIONS_COUNT; f++) {
        bool negates = f == NAIVE_NEGATE, minus = f == NAIVE_SUBTRACT;
        if (strcmp(naive_function_names[f], name) == 0 && !(negates && arguments_count != 1) && !(minus && arguments_count == 1)) {
            *function = (naive_function)f;
            return IVM_OK;
        }
    }
    return IVM_INVALID_PLAN;
}

static ivm_status call_read(naive_pool *pool, const json_t *json, naive_expr **expr)
{
    const char *name = json_string_value(json_array_get(json, 0));
    size_t count = json_array_size(json) ? json_array_size(json) - 1 : 0;
    naive_function function;
    naive_expr *argument;
    if (!name || count > 64) {
        return IVM_INVALID_PLAN;
    }
    if (strcmp(name, "cast") == 0) {
        ivm_type type;
        if (count != 2) {
            return IVM_INVALID_PLAN;
        }
        NAIVE_TRY(expr_read(pool, json_array_get(json, 1), &argument));
        NAIVE_TRY(type_read(json_array_get(json, 2), &type));
        *expr = naive_expr_cast(pool, argument, type);
        return IVM_OK;
    }
    NAIVE_TRY(function_find(name, count, &function));
    *expr = naive_expr_call(pool, function, count);
    for (size_t i = 0; i < count; i++) {
        NAIVE_TRY(expr_read(pool, json_array_get(json, i + 1), &(*expr)->arguments[i]));
    }
    return IVM_OK;
}

static ivm_status expr_read(naive_pool *pool, const json_t *json, naive_expr **expr)
{
    if (json_is_string(json)) {
        *expr = naive_expr_column(pool, json_string_value(json));
    } else if (json_is_array(json)) {
        return call_read(pool, json, expr);
    } else if (json_is_object(json)) {
        return literal_read(pool, json, expr);
    } else if (json_is_boolean(json)) {
        *expr = naive_expr_literal(pool, ivm_bool(json_is_true(json)));
    } else if (json_is_integer(json)) {
        *expr = naive_expr_literal(pool, ivm_int64(json_integer_value(json)));
    } else if (json_is_real(json)) {
        *expr = naive_expr_literal(pool, ivm_float64(json_real_value(json)));
    } else if (json_is_null(json)) {
        *expr = naive_expr_literal(pool, ivm_null());
    } else {
        return IVM_INVALID_PLAN;
    }
    return IVM_OK;
}

static ivm_status expr_read_maybe(naive_pool *pool, const json_t *json, naive_expr **expr)
{
    *expr = NULL;
    return json && !json_is_null(json) ? expr_read(pool, json, expr) : IVM_OK;
}

/* ---- Members ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status named_read(naive_pool *pool, const json_t *list, naive_named **columns, size_t *count)
{
    *count = json_array_size(list);
    *columns = naive_take(pool, *count * sizeof **columns);
    for (size_t i = 0; i < *count; i++) {
        const json_t *one = json_array_get(list, i), *value = json_is_string(one) ? one : json_object_get(one, "expr");
        (*columns)[i].name = member_text(one, "as");
        if (!json_is_string(one) && (!value || !(*columns)[i].name)) {
            return IVM_INVALID_PLAN;
        }
        NAIVE_TRY(expr_read(pool, value, &(*columns)[i].value));
    }
    return IVM_OK;
}

static ivm_status aggregates_read(naive_pool *pool, const json_t *list, naive_plan *plan)
{
    plan->aggregates_count = json_array_size(list);
    plan->aggregates = naive_take(pool, plan->aggregates_count * sizeof *plan->aggregates);
    for (size_t i = 0; i < plan->aggregates_count; i++) {
        const json_t *one = json_array_get(list, i);
        naive_aggregate *aggregate = &plan->aggregates[i];
        const char *function = member_text(one, "fn");
        int f = 0;
        aggregate->name = member_text(one, "as");
        while (function && f < NAIVE_AGGREGATES_COUNT && strcmp(naive_aggregate_names[f], function) != 0) {
            f++;
        }
        if (!aggregate->name || !function || f == NAIVE_AGGREGATES_COUNT) {
            return IVM_INVALID_PLAN;
        }
        aggregate->function = (naive_aggregate_function)f;
        NAIVE_TRY(expr_read_maybe(pool, json_object_get(one, "arg"), &aggregate->argument));
        NAIVE_TRY(expr_read_maybe(pool, json_object_get(one, "where"), &aggregate->where));
    }
    return IVM_OK;
}

static ivm_status join_read(naive_pool *pool, const json_t *json, naive_plan *plan)
{
    static const char *const kinds[] = { "inner", "left", "right", "full", "semi", "anti", NULL };
    const json_t *on = json_object_get(json, "on");
    int kind = json_object_get(json, "kind") ? word_position(kinds, member_text(json, "kind")) : IVM_INNER_JOIN;
    plan->on_count = json_array_size(on);
    plan->on = naive_take(pool, plan->on_count * sizeof *plan->on);
    for (size_t i = 0; i < plan->on_count; i++) {
        const json_t *pair = json_array_get(on, i);
        plan->on[i].left = json_string_value(json_array_get(pair, 0));
        plan->on[i].right = json_string_value(json_array_get(pair, 1));
        if (!plan->on[i].left || !plan->on[i].right || json_array_size(pair) != 2) {
            return IVM_INVALID_PLAN;
        }
    }
    plan->join = (ivm_join_kind)kind;
    NAIVE_TRY(expr_read_maybe(pool, json_object_get(json, "where"), &plan->where));
    return kind < 0 ? IVM_INVALID_PLAN : IVM_OK;
}

static ivm_status count_read(const json_t *json, bool wanted, uint64_t *count)
{
    *count = (uint64_t)json_integer_value(json);
    return json ? (json_is_integer(json) && json_integer_value(json) >= 0 ? IVM_OK : IVM_INVALID_PLAN)
                : (wanted ? IVM_INVALID_PLAN : IVM_OK);
}

static ivm_status top_read(naive_pool *pool, const json_t *json, naive_plan *plan)
{
    const json_t *partitions = json_object_get(json, "partition_by"), *orders = json_object_get(json, "order_by");
    plan->partitions_count = json_array_size(partitions);
    plan->orders_count = json_array_size(orders);
    plan->partitions = naive_take(pool, plan->partitions_count * sizeof(naive_expr *));
    plan->orders = naive_take(pool, plan->orders_count * sizeof *plan->orders);
    NAIVE_TRY(count_read(json_object_get(json, "limit"), true, &plan->limit));
    NAIVE_TRY(count_read(json_object_get(json, "offset"), false, &plan->offset));
    for (size_t i = 0; i < plan->partitions_count; i++) {
        NAIVE_TRY(expr_read(pool, json_array_get(partitions, i), &plan->partitions[i]));
    }
    for (size_t i = 0; i < plan->orders_count; i++) {
        const json_t *one = json_array_get(orders, i), *value = json_object_get(one, "expr");
        const char *nulls = member_text(one, "nulls");
        NAIVE_TRY(expr_read(pool, value ? value : one, &plan->orders[i].value));
        plan->orders[i].descending = json_is_true(json_object_get(one, "desc"));
        plan->orders[i].nulls_first = nulls && strcmp(nulls, "first") == 0;
    }
    return IVM_OK;
}

/* ---- Plans ------------------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    naive_operator op;
    ivm_set_operation set;
} operators[] = {
    { "scan", NAIVE_SCAN, 0 },
    { "filter", NAIVE_FILTER, 0 },
    { "project", NAIVE_PROJECT, 0 },
    { "join", NAIVE_JOIN, 0 },
    { "aggregate", NAIVE_AGGREGATE, 0 },
    { "distinct", NAIVE_DISTINCT, 0 },
    { "top_k", NAIVE_TOP_K, 0 },
    { "union_all", NAIVE_SET, IVM_UNION_ALL },
    { "union", NAIVE_SET, IVM_UNION },
    { "except_all", NAIVE_SET, IVM_EXCEPT_ALL },
    { "except", NAIVE_SET, IVM_EXCEPT },
    { "intersect_all", NAIVE_SET, IVM_INTERSECT_ALL },
    { "intersect", NAIVE_SET, IVM_INTERSECT },
};

static ivm_status members_read(naive_pool *pool, const json_t *json, naive_plan *plan)
{
    switch (plan->op) {
    case NAIVE_SCAN:
        plan->table = member_text(json, "table");
        plan->alias = member_text(json, "as");
        return plan->table ? IVM_OK : IVM_INVALID_PLAN;
    case NAIVE_FILTER:
        return expr_read(pool, json_object_get(json, "where"), &plan->where);
    case NAIVE_PROJECT:
        return named_read(pool, json_object_get(json, "columns"), &plan->columns, &plan->columns_count);
    case NAIVE_JOIN:
        return join_read(pool, json, plan);
    case NAIVE_AGGREGATE:
        NAIVE_TRY(named_read(pool, json_object_get(json, "group_by"), &plan->columns, &plan->columns_count));
        NAIVE_TRY(aggregates_read(pool, json_object_get(json, "aggregates"), plan));
        return expr_read_maybe(pool, json_object_get(json, "having"), &plan->where);
    case NAIVE_TOP_K:
        return top_read(pool, json, plan);
    default:
        return IVM_OK;
    }
}

ivm_status naive_plan_read(naive_pool *pool, const json_t *json, naive_plan **plan)
{
    const char *op = member_text(json, "op");
    size_t at = 0;
    while (op && at < sizeof operators / sizeof *operators && strcmp(operators[at].name, op) != 0) {
        at++;
    }
    if (!op || at == sizeof operators / sizeof *operators) {
        return IVM_INVALID_PLAN;
    }
    bool many = operators[at].op == NAIVE_JOIN || operators[at].op == NAIVE_SET;
    const json_t *inputs = json_object_get(json, many ? "inputs" : "input");
    size_t count = operators[at].op == NAIVE_SCAN ? 0 : many ? json_array_size(inputs) : 1;
    if (count > IVM_JOIN_LEAVES_MAX) {
        return IVM_INVALID_PLAN;
    }
    *plan = naive_plan_make(pool, operators[at].op, count);
    (*plan)->set = operators[at].set;
    for (size_t i = 0; i < count; i++) {
        NAIVE_TRY(naive_plan_read(pool, many ? json_array_get(inputs, i) : inputs, &(*plan)->inputs[i]));
    }
    return members_read(pool, json, *plan);
}
