/* Expressions of the oracle, a row at a time. Here: columns, literals, casts, and the functions that stop at the argument that decides. */
#include "naive.h"

#include <assert.h>

ivm_status naive_convert(const ivm_value *value, ivm_type from, ivm_type to, ivm_value *out)
{
    *out = *value;
    if (value->is_null || !from || from == to) {
        return IVM_OK;
    }
    if (from == IVM_BOOL) {
        *out = to == IVM_INT64 ? ivm_int64(value->as.boolean) : ivm_float64(value->as.boolean);
        return IVM_OK;
    }
    if (to == IVM_FLOAT64) {
        *out = naive_float(naive_double(value));
        return IVM_OK;
    }
    naive_int integer;
    assert(naive_scale(to) >= naive_scale(from));
    return naive_multiply(naive_integer(value), naive_power(naive_scale(to) - naive_scale(from)), &integer) ? naive_number(to, integer, out)
                                                                                                            : IVM_OVERFLOW;
}

ivm_status naive_holds(naive_pool *pool, const naive_expr *condition, const ivm_value *row, bool *holds)
{
    ivm_value value;
    *holds = false;
    NAIVE_TRY(naive_compute(pool, condition, row, &value));
    *holds = !value.is_null && value.as.boolean;
    return IVM_OK;
}

/* and: the first false decides; or: the first true. */
static ivm_status compute_logic(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    bool decides = expr->function == NAIVE_OR, null = false;
    for (size_t i = 0; i < expr->arguments_count; i++) {
        ivm_value one;
        NAIVE_TRY(naive_compute(pool, expr->arguments[i], row, &one));
        null |= one.is_null;
        if (!one.is_null && one.as.boolean == decides) {
            *value = ivm_bool(decides);
            return IVM_OK;
        }
    }
    *value = null ? ivm_null() : ivm_bool(!decides);
    return IVM_OK;
}

/* One argument in the type of the whole. */
static ivm_status compute_as(naive_pool *pool, const naive_expr *expr, size_t argument, ivm_type type, const ivm_value *row,
                             ivm_value *value)
{
    ivm_value one;
    NAIVE_TRY(naive_compute(pool, expr->arguments[argument], row, &one));
    return naive_convert(&one, expr->arguments[argument]->type, type, value);
}

static ivm_status compute_coalesce(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    *value = ivm_null();
    for (size_t i = 0; i < expr->arguments_count && value->is_null; i++) {
        NAIVE_TRY(compute_as(pool, expr, i, expr->type, row, value));
    }
    return IVM_OK;
}

static ivm_status compute_case(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    size_t last = expr->arguments_count - 1;
    for (size_t i = 0; i < last; i += 2) {
        bool holds;
        NAIVE_TRY(naive_holds(pool, expr->arguments[i], row, &holds));
        if (holds) {
            return compute_as(pool, expr, i + 1, expr->type, row, value);
        }
    }
    return compute_as(pool, expr, last, expr->type, row, value);
}

static ivm_status compute_in(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    ivm_type type = 0;
    bool null = false;
    ivm_value wanted, one;
    for (size_t i = 0; i < expr->arguments_count; i++) {
        NAIVE_TRY(naive_unify(type, expr->arguments[i]->type, &type));
    }
    *value = ivm_null();
    NAIVE_TRY(compute_as(pool, expr, 0, type, row, &wanted));
    if (wanted.is_null) {
        return IVM_OK;
    }
    for (size_t i = 1; i < expr->arguments_count; i++) {
        NAIVE_TRY(compute_as(pool, expr, i, type, row, &one));
        null |= one.is_null;
        if (!one.is_null && naive_compare(&wanted, &one) == 0) {
            *value = ivm_bool(true);
            return IVM_OK;
        }
    }
    *value = null ? ivm_null() : ivm_bool(false);
    return IVM_OK;
}

static ivm_status compute_all(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    ivm_value arguments[64];
    assert(expr->arguments_count <= 64);
    for (size_t i = 0; i < expr->arguments_count; i++) {
        NAIVE_TRY(naive_compute(pool, expr->arguments[i], row, &arguments[i]));
    }
    return naive_call(pool, expr, arguments, value);
}

ivm_status naive_compute(naive_pool *pool, const naive_expr *expr, const ivm_value *row, ivm_value *value)
{
    switch (expr->kind) {
    case NAIVE_COLUMN:
        *value = row[expr->position];
        return IVM_OK;
    case NAIVE_LITERAL:
        *value = expr->literal;
        return IVM_OK;
    case NAIVE_CAST:
        return compute_as(pool, expr, 0, expr->target, row, value);
    default:
        break;
    }
    switch (expr->function) {
    case NAIVE_AND:
    case NAIVE_OR:
        return compute_logic(pool, expr, row, value);
    case NAIVE_COALESCE:
        return compute_coalesce(pool, expr, row, value);
    case NAIVE_CASE:
        return compute_case(pool, expr, row, value);
    case NAIVE_IN:
        return compute_in(pool, expr, row, value);
    default:
        return compute_all(pool, expr, row, value);
    }
}
