/* Functions of the oracle that compute all their arguments. */
#include "naive.h"

#include <math.h>
#include <string.h>

/* ---- Numbers ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status arithmetic_float(naive_function function, double a, double b, ivm_value *value)
{
    *value = naive_float(function == NAIVE_ADD ? a + b : function == NAIVE_SUBTRACT ? a - b : a * b);
    return IVM_OK;
}

static ivm_status arithmetic(const naive_expr *expr, const ivm_value *a, const ivm_value *b, ivm_value *value)
{
    if (expr->type == IVM_FLOAT64) {
        return arithmetic_float(expr->function, naive_double(a), naive_double(b), value);
    }
    naive_int x = naive_integer(a), y = naive_integer(b), out;
    if (expr->function != NAIVE_MULTIPLY) {
        int scale = naive_scale(expr->type);
        if (!naive_multiply(x, naive_power(scale - naive_scale(a->type)), &x) ||
            !naive_multiply(y, naive_power(scale - naive_scale(b->type)), &y)) {
            return NAIVE_UNJUDGED; /* the other may bring it back */
        }
        y = expr->function == NAIVE_SUBTRACT ? -y : y;
    }
    bool fits = expr->function == NAIVE_MULTIPLY ? naive_multiply(x, y, &out) : naive_add(x, y, &out);
    return fits ? naive_number(expr->type, out, value) : IVM_OVERFLOW;
}

/* -a, or |a|. */
static ivm_status sign(const naive_expr *expr, const ivm_value *a, ivm_value *value)
{
    bool negates = expr->function == NAIVE_NEGATE;
    if (a->type == IVM_FLOAT64) {
        *value = naive_float(negates ? -a->as.float64 : fabs(a->as.float64));
        return IVM_OK;
    }
    naive_int integer = naive_integer(a);
    return naive_number(expr->type, negates || integer < 0 ? -integer : integer, value);
}

static ivm_status divide(const naive_expr *expr, const ivm_value *a, const ivm_value *b, ivm_value *value)
{
    *value = ivm_null();
    if (expr->function == NAIVE_DIVIDE) {
        double by = naive_double(b);
        *value = by == 0 ? ivm_null() : naive_float(naive_double(a) / by);
        return IVM_OK;
    }
    naive_int x = a->as.int64, y = b->as.int64;
    return y == 0 ? IVM_OK : naive_number(IVM_INT64, expr->function == NAIVE_DIV ? x / y : x % y, value);
}

/* ---- Comparisons ------------------------------------------------------------------------------------------------------------------- */

static bool ordered(naive_function function, int order)
{
    switch (function) {
    case NAIVE_EQUAL:
        return order == 0;
    case NAIVE_UNEQUAL:
        return order != 0;
    case NAIVE_LESS:
        return order < 0;
    case NAIVE_AT_MOST:
        return order <= 0;
    case NAIVE_MORE:
        return order > 0;
    default:
        return order >= 0;
    }
}

static ivm_status compare(const naive_expr *expr, const ivm_value *a, const ivm_value *b, ivm_value *value)
{
    ivm_type type, x_type = expr->arguments[0]->type, y_type = expr->arguments[1]->type;
    ivm_value x, y;
    NAIVE_TRY(naive_unify(x_type, y_type, &type));
    if (naive_convert(a, x_type, type, &x) != IVM_OK || naive_convert(b, y_type, type, &y) != IVM_OK) {
        return NAIVE_UNJUDGED;
    }
    *value = ivm_bool(ordered(expr->function, naive_compare(&x, &y)));
    return IVM_OK;
}

/* Nulls are passed over. */
static ivm_status extreme(const naive_expr *expr, const ivm_value *arguments, ivm_value *value)
{
    *value = ivm_null();
    for (size_t i = 0; i < expr->arguments_count; i++) {
        ivm_value one;
        NAIVE_TRY(naive_convert(&arguments[i], expr->arguments[i]->type, expr->type, &one));
        if (one.is_null) {
            continue;
        }
        int order = value->is_null ? 0 : naive_compare(&one, value);
        if (value->is_null || (expr->function == NAIVE_LEAST ? order < 0 : order > 0)) {
            *value = one;
        }
    }
    return IVM_OK;
}

/* ---- Texts ------------------------------------------------------------------------------------------------------------------------- */

static ivm_value concat(naive_pool *pool, const ivm_value *arguments, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += arguments[i].as.string.size;
    }
    char *text = naive_take(pool, size + 1), *at = text;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, arguments[i].as.string.bytes, arguments[i].as.string.size);
        at += arguments[i].as.string.size;
    }
    return ivm_string_sized(text, size);
}

/* Letters of ASCII alone. */
static ivm_value letters(naive_pool *pool, const ivm_value *value, char first, char last)
{
    size_t size = value->as.string.size;
    char *text = naive_take(pool, size + 1);
    for (size_t i = 0; i < size; i++) {
        char byte = value->as.string.bytes[i];
        text[i] = byte >= first && byte <= last ? (char)(byte ^ 0x20) : byte;
    }
    return ivm_string_sized(text, size);
}

/* In code points: bytes that begin one. */
static ivm_value length(const ivm_value *value)
{
    int64_t points = 0;
    for (size_t i = 0; i < value->as.string.size; i++) {
        points += ((unsigned char)value->as.string.bytes[i] & 0xc0) != 0x80;
    }
    return ivm_int64(points);
}

/* ---- All --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status call_of_values(naive_pool *pool, const naive_expr *expr, const ivm_value *arguments, ivm_value *value)
{
    switch (expr->function) {
    case NAIVE_ADD:
    case NAIVE_SUBTRACT:
    case NAIVE_MULTIPLY:
        return arithmetic(expr, &arguments[0], &arguments[1], value);
    case NAIVE_NEGATE:
    case NAIVE_ABS:
        return sign(expr, arguments, value);
    case NAIVE_DIVIDE:
    case NAIVE_DIV:
    case NAIVE_REMAINDER:
        return divide(expr, &arguments[0], &arguments[1], value);
    case NAIVE_NOT:
        *value = ivm_bool(!arguments[0].as.boolean);
        return IVM_OK;
    case NAIVE_CONCAT:
        *value = concat(pool, arguments, expr->arguments_count);
        return IVM_OK;
    case NAIVE_LOWER:
        *value = letters(pool, arguments, 'A', 'Z');
        return IVM_OK;
    case NAIVE_UPPER:
        *value = letters(pool, arguments, 'a', 'z');
        return IVM_OK;
    case NAIVE_LENGTH:
        *value = length(arguments);
        return IVM_OK;
    default:
        return compare(expr, &arguments[0], &arguments[1], value);
    }
}

ivm_status naive_call(naive_pool *pool, const naive_expr *expr, const ivm_value *arguments, ivm_value *value)
{
    bool null = false;
    for (size_t i = 0; i < expr->arguments_count; i++) {
        null |= arguments[i].is_null;
    }
    if (expr->function == NAIVE_IS_NULL || expr->function == NAIVE_IS_NOT_NULL) {
        *value = ivm_bool(null == (expr->function == NAIVE_IS_NULL));
        return IVM_OK;
    }
    if (expr->function == NAIVE_LEAST || expr->function == NAIVE_GREATEST) {
        return extreme(expr, arguments, value);
    }
    *value = ivm_null();
    return null ? IVM_OK : call_of_values(pool, expr, arguments, value);
}
