/* Names and types of the oracle's expressions. */
#include "naive.h"

#include <string.h>

ivm_status naive_find_column(const char *name, const naive_column *heading, size_t width, size_t *position)
{
    for (int bare = 0; bare < 2; bare++) {
        size_t found = 0;
        for (size_t c = 0; c < width; c++) {
            if (strcmp(bare ? naive_bare_name(heading[c].name) : heading[c].name, name) == 0) {
                *position = c;
                found++;
            }
        }
        if (found) {
            return found == 1 ? IVM_OK : IVM_AMBIGUOUS_COLUMN;
        }
    }
    return IVM_UNKNOWN_COLUMN;
}

static bool number(ivm_type type)
{
    uint32_t kind = IVM_TYPE_KIND(type);
    return kind == IVM_INT64 || kind == IVM_FLOAT64 || kind == IVM_DECIMAL_KIND;
}

static ivm_type as_decimal(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_INT64 ? IVM_DECIMAL(19, 0) : type;
}

ivm_status naive_unify(ivm_type a, ivm_type b, ivm_type *type)
{
    *type = a ? a : b;
    if (!a || !b || a == b) {
        return IVM_OK;
    }
    if (!number(a) || !number(b)) {
        return IVM_TYPE_MISMATCH;
    }
    if (a == IVM_FLOAT64 || b == IVM_FLOAT64) {
        *type = IVM_FLOAT64;
        return IVM_OK;
    }
    a = as_decimal(a);
    b = as_decimal(b);
    uint32_t scale = IVM_TYPE_SCALE(a) > IVM_TYPE_SCALE(b) ? IVM_TYPE_SCALE(a) : IVM_TYPE_SCALE(b);
    uint32_t whole_a = IVM_TYPE_PRECISION(a) - IVM_TYPE_SCALE(a), whole_b = IVM_TYPE_PRECISION(b) - IVM_TYPE_SCALE(b);
    uint32_t precision = (whole_a > whole_b ? whole_a : whole_b) + scale;
    *type = IVM_DECIMAL(precision < 38 ? precision : 38, scale);
    return IVM_OK;
}

/* ---- Functions --------------------------------------------------------------------------------------------------------------------- */

/* All arguments of one kind, or untyped nulls. */
static ivm_status all_are(const naive_expr *expr, bool (*is)(ivm_type type))
{
    for (size_t i = 0; i < expr->arguments_count; i++) {
        if (expr->arguments[i]->type && !is(expr->arguments[i]->type)) {
            return IVM_TYPE_MISMATCH;
        }
    }
    return IVM_OK;
}

static bool boolean(ivm_type type)
{
    return type == IVM_BOOL;
}

static bool whole(ivm_type type)
{
    return type == IVM_INT64;
}

static bool text(ivm_type type)
{
    return type == IVM_STRING;
}

/* The common type of every step-th argument from `first` on, and of the last. */
static ivm_status unify_all(const naive_expr *expr, size_t first, size_t step, ivm_type *type)
{
    *type = 0;
    for (size_t i = first; i < expr->arguments_count; i += step) {
        NAIVE_TRY(naive_unify(*type, expr->arguments[i]->type, type));
    }
    return naive_unify(*type, expr->arguments[expr->arguments_count - 1]->type, type);
}

static ivm_status arithmetic(naive_expr *expr)
{
    ivm_type a = expr->arguments[0]->type, b = expr->arguments[1]->type;
    NAIVE_TRY(all_are(expr, number));
    a = a ? a : b;
    b = b ? b : a;
    if (!a || a == IVM_FLOAT64 || b == IVM_FLOAT64 || (a == IVM_INT64 && b == IVM_INT64)) {
        expr->type = !a ? 0 : a == IVM_FLOAT64 || b == IVM_FLOAT64 ? IVM_FLOAT64 : IVM_INT64;
        return IVM_OK;
    }
    uint32_t x = IVM_TYPE_SCALE(as_decimal(a)), y = IVM_TYPE_SCALE(as_decimal(b));
    uint32_t scale = expr->function == NAIVE_MULTIPLY ? x + y : x > y ? x : y;
    expr->type = IVM_DECIMAL(38, scale);
    return scale > 38 ? IVM_TYPE_MISMATCH : IVM_OK;
}

static ivm_status case_of(naive_expr *expr)
{
    for (size_t i = 0; i + 1 < expr->arguments_count; i += 2) {
        if (expr->arguments[i]->type && expr->arguments[i]->type != IVM_BOOL) {
            return IVM_TYPE_MISMATCH;
        }
    }
    return unify_all(expr, 1, 2, &expr->type);
}

static bool arity_fits(const naive_expr *expr)
{
    size_t count = expr->arguments_count;
    switch (expr->function) {
    case NAIVE_NEGATE:
    case NAIVE_NOT:
    case NAIVE_IS_NULL:
    case NAIVE_IS_NOT_NULL:
    case NAIVE_ABS:
    case NAIVE_LOWER:
    case NAIVE_UPPER:
    case NAIVE_LENGTH:
        return count == 1;
    case NAIVE_AND:
    case NAIVE_OR:
    case NAIVE_COALESCE:
    case NAIVE_LEAST:
    case NAIVE_GREATEST:
    case NAIVE_CONCAT:
        return count >= 1;
    case NAIVE_CASE:
        return count >= 3 && count % 2 == 1;
    case NAIVE_IN:
        return count >= 2;
    default:
        return count == 2;
    }
}

static ivm_status bind_call(naive_expr *expr)
{
    ivm_type common;
    if (!arity_fits(expr)) {
        return IVM_INVALID_PLAN;
    }
    switch (expr->function) {
    case NAIVE_ADD:
    case NAIVE_SUBTRACT:
    case NAIVE_MULTIPLY:
        return arithmetic(expr);
    case NAIVE_NEGATE:
    case NAIVE_ABS:
        expr->type = expr->arguments[0]->type;
        return all_are(expr, number);
    case NAIVE_DIVIDE:
        expr->type = IVM_FLOAT64;
        return all_are(expr, number);
    case NAIVE_DIV:
    case NAIVE_REMAINDER:
        expr->type = IVM_INT64;
        return all_are(expr, whole);
    case NAIVE_AND:
    case NAIVE_OR:
    case NAIVE_NOT:
        expr->type = IVM_BOOL;
        return all_are(expr, boolean);
    case NAIVE_IS_NULL:
    case NAIVE_IS_NOT_NULL:
        expr->type = IVM_BOOL;
        return IVM_OK;
    case NAIVE_COALESCE:
    case NAIVE_LEAST:
    case NAIVE_GREATEST:
        return unify_all(expr, 0, 1, &expr->type);
    case NAIVE_CASE:
        return case_of(expr);
    case NAIVE_CONCAT:
    case NAIVE_LOWER:
    case NAIVE_UPPER:
        expr->type = IVM_STRING;
        return all_are(expr, text);
    case NAIVE_LENGTH:
        expr->type = IVM_INT64;
        return all_are(expr, text);
    default: /* comparisons and `in` */
        expr->type = IVM_BOOL;
        return unify_all(expr, 0, 1, &common);
    }
}

static ivm_status bind_cast(naive_expr *expr)
{
    ivm_type from = expr->arguments[0]->type, to = expr->target;
    uint32_t source = IVM_TYPE_KIND(from), target = IVM_TYPE_KIND(to);
    bool decimals = source == IVM_DECIMAL_KIND && target == IVM_DECIMAL_KIND && IVM_TYPE_SCALE(to) >= IVM_TYPE_SCALE(from);
    bool to_float = target == IVM_FLOAT64 && (source == IVM_INT64 || source == IVM_DECIMAL_KIND || source == IVM_BOOL);
    bool fits = !from || from == to || to_float || decimals || (source == IVM_INT64 && target == IVM_DECIMAL_KIND) ||
                (source == IVM_BOOL && target == IVM_INT64);
    expr->type = to;
    return fits ? IVM_OK : IVM_TYPE_MISMATCH;
}

ivm_status naive_bind_expr(naive_expr *expr, const naive_column *heading, size_t width)
{
    for (size_t i = 0; i < expr->arguments_count; i++) {
        NAIVE_TRY(naive_bind_expr(expr->arguments[i], heading, width));
    }
    switch (expr->kind) {
    case NAIVE_COLUMN:
        NAIVE_TRY(naive_find_column(expr->name, heading, width, &expr->position));
        expr->type = heading[expr->position].type;
        return IVM_OK;
    case NAIVE_LITERAL:
        expr->type = expr->literal.is_null ? 0 : expr->literal.type;
        return IVM_OK;
    case NAIVE_CAST:
        return bind_cast(expr);
    default:
        return bind_call(expr);
    }
}

ivm_status naive_bind_condition(naive_expr *expr, const naive_column *heading, size_t width)
{
    NAIVE_TRY(naive_bind_expr(expr, heading, width));
    return expr->type && expr->type != IVM_BOOL ? IVM_TYPE_MISMATCH : IVM_OK;
}
