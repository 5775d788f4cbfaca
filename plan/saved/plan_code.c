/* Plans as bytes, written. See plan_code.h. */
#include "plan_code.h"

/* ---- Expressions ------------------------------------------------------------------------------------------------------------------ */

static void value_code(ivm__code *code, const ivm_value *value)
{
    ivm__code_number(code, value->type, 4);
    ivm__code_number(code, value->is_null, 1);
    if (value->is_null) {
        return;
    }
    switch (IVM_TYPE_KIND(value->type)) {
    case IVM_BOOL:
        ivm__code_number(code, value->as.boolean, 1);
        break;
    case IVM_FLOAT64:
        ivm__code_number(code, ivm__float_word(value->as.float64), 8);
        break;
    case IVM_STRING:
        ivm__code_bytes(code, value->as.string.bytes, value->as.string.size);
        break;
    case IVM_DATE:
        ivm__code_number(code, (uint32_t)value->as.date, 4);
        break;
    case IVM_DECIMAL_KIND:
        ivm__code_number(code, value->as.decimal.low, 8);
        ivm__code_number(code, (uint64_t)value->as.decimal.high, 8);
        break;
    default: /* int64 and timestamp */
        ivm__code_number(code, (uint64_t)value->as.int64, 8);
        break;
    }
}

static void expr_code(ivm__code *code, const ivm_expr *expr)
{
    ivm__code_number(code, expr->kind, 1);
    switch (expr->kind) {
    case IVM__EXPR_COLUMN:
        ivm__code_text(code, expr->text);
        return;
    case IVM__EXPR_LITERAL:
        value_code(code, &expr->value);
        return;
    case IVM__EXPR_CALL:
        ivm__code_text(code, expr->text);
        ivm__code_number(code, expr->arguments_count, 4);
        break;
    case IVM__EXPR_CAST:
        ivm__code_number(code, expr->type, 4);
        break;
    }
    for (size_t i = 0; i < expr->arguments_count; i++) {
        expr_code(code, expr->arguments[i]);
    }
}

/* Whether it is there, and it. */
static void expr_code_any(ivm__code *code, const ivm_expr *expr)
{
    ivm__code_number(code, expr != NULL, 1);
    if (expr) {
        expr_code(code, expr);
    }
}

/* ---- What operators have ---------------------------------------------------------------------------------------------------------- */

static void text_code_any(ivm__code *code, const char *text)
{
    ivm__code_number(code, text != NULL, 1);
    if (text) {
        ivm__code_text(code, text);
    }
}

static void columns_code(ivm__code *code, const ivm__plan_column *columns, size_t count)
{
    ivm__code_number(code, count, 4);
    for (size_t i = 0; i < count; i++) {
        text_code_any(code, columns[i].name);
        expr_code(code, columns[i].value);
    }
}

static void aggregates_code(ivm__code *code, const ivm_plan *plan)
{
    ivm__code_number(code, plan->aggregates_count, 4);
    for (size_t i = 0; i < plan->aggregates_count; i++) {
        const ivm__plan_column *aggregate = &plan->aggregates[i];
        ivm__code_text(code, aggregate->name);
        ivm__code_text(code, aggregate->function);
        expr_code_any(code, aggregate->value);
        expr_code_any(code, aggregate->where);
    }
}

static void top_k_code(ivm__code *code, const ivm_plan *plan)
{
    ivm__code_number(code, plan->limit, 8);
    ivm__code_number(code, plan->offset, 8);
    ivm__code_number(code, plan->partitions_count, 4);
    for (size_t i = 0; i < plan->partitions_count; i++) {
        expr_code(code, plan->partitions[i].value);
    }
    ivm__code_number(code, plan->orders_count, 4);
    for (size_t i = 0; i < plan->orders_count; i++) {
        ivm__code_number(code, plan->orders[i].descending | plan->orders[i].nulls_first << 1, 1);
        expr_code(code, plan->orders[i].value);
    }
}

static void join_code(ivm__code *code, const ivm_plan *plan)
{
    ivm__code_number(code, plan->kind, 1);
    ivm__code_number(code, plan->on_count, 4);
    for (size_t i = 0; i < 2 * plan->on_count; i++) {
        ivm__code_text(code, plan->on[i]);
    }
    expr_code_any(code, plan->where);
}

/* ---- The tree ---------------------------------------------------------------------------------------------------------------------- */

void ivm__plan_code(ivm__code *code, const ivm_plan *plan)
{
    ivm__code_number(code, plan->op, 1);
    ivm__code_number(code, plan->inputs_count, 4);
    for (size_t i = 0; i < plan->inputs_count; i++) {
        ivm__plan_code(code, plan->inputs[i]);
    }
    switch (plan->op) {
    case IVM__PLAN_SCAN:
        ivm__code_text(code, plan->table);
        text_code_any(code, plan->alias && strcmp(plan->alias, plan->table) == 0 ? NULL : plan->alias);
        break;
    case IVM__PLAN_FILTER:
        expr_code(code, plan->where);
        break;
    case IVM__PLAN_PROJECT:
        columns_code(code, plan->columns, plan->columns_count);
        break;
    case IVM__PLAN_JOIN:
    case IVM__PLAN_OUTER:
        join_code(code, plan);
        break;
    case IVM__PLAN_AGGREGATE:
        columns_code(code, plan->columns, plan->columns_count);
        aggregates_code(code, plan);
        expr_code_any(code, plan->where);
        break;
    case IVM__PLAN_SET:
        ivm__code_number(code, plan->set, 1);
        break;
    case IVM__PLAN_TOP_K:
        top_k_code(code, plan);
        break;
    }
}
