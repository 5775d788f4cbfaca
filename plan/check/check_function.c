/* What each function wants of its arguments and what it gives.
 *
 *     int64 with decimal is decimal, anything with float64 is float64; other mixtures are type_mismatch
 *
 * An untyped null takes the type of what stands beside it. Where a value of a decimal could leave its range by a cast alone, arithmetic and
 * comparison take it as it is. */
#include "check_expression.h"

#include "catalog.h"

#define ANY_COUNT UINT32_MAX

ivm__type_name ivm__type_name_of(ivm_type type)
{
    ivm__type_name name = { "null" };
    if (type) {
        ivm_type_format(type, name.text);
    }
    return name;
}

/* ---- Types ------------------------------------------------------------------------------------------------------------------------- */

static bool is_decimal(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND;
}

static bool is_number(ivm_type type)
{
    return type == IVM_INT64 || type == IVM_FLOAT64 || is_decimal(type);
}

static ivm_type as_decimal(ivm_type type)
{
    return is_decimal(type) ? type : IVM_DECIMAL(19, 0);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static ivm_type unify_decimals(ivm_type a, ivm_type b)
{
    uint32_t whole = larger(IVM_TYPE_PRECISION(a) - IVM_TYPE_SCALE(a), IVM_TYPE_PRECISION(b) - IVM_TYPE_SCALE(b));
    uint32_t scale = larger(IVM_TYPE_SCALE(a), IVM_TYPE_SCALE(b)), precision = whole + scale;
    return IVM_DECIMAL(precision < IVM_DECIMAL_PRECISION_MAX ? precision : IVM_DECIMAL_PRECISION_MAX, scale);
}

ivm_status ivm__type_unify(ivm_type a, ivm_type b, ivm_type *type, ivm_error *error)
{
    if (!a || !b || a == b) {
        *type = a ? a : b;
        return IVM_OK;
    }
    if (!is_number(a) || !is_number(b)) {
        ivm__type_name left = ivm__type_name_of(a), right = ivm__type_name_of(b);
        return ivm__fail(error, IVM_TYPE_MISMATCH, "%s against %s", left.text, right.text);
    }
    *type = a == IVM_FLOAT64 || b == IVM_FLOAT64 ? IVM_FLOAT64 : unify_decimals(as_decimal(a), as_decimal(b));
    return IVM_OK;
}

/* ---- Arguments --------------------------------------------------------------------------------------------------------------------- */

/* The common type of the arguments first, first + stride ... */
static ivm_status unify_from(const ivm__scope *scope, const ivm__call *call, uint32_t first, uint32_t stride, ivm_type *type)
{
    for (uint32_t i = first; i < call->arguments_count; i += stride) {
        ivm_error error = IVM_ERROR_INIT;
        if (ivm__type_unify(*type, call->arguments[i]->type, type, &error) != IVM_OK) {
            return ivm__fail(scope->error, error.status, "%s: %s", call->name, error.message);
        }
    }
    return IVM_OK;
}

static ivm_status cast_argument(const ivm__scope *scope, ivm__call *call, uint32_t i, ivm_type type)
{
    call->arguments[i] = ivm__scope_cast(scope, call->arguments[i], type);
    return call->arguments[i] ? IVM_OK : ivm__fail_memory(scope->error);
}

/* All arguments to one type; an int64 or decimal stays as it is where that is a decimal. */
static ivm_status make_comparable(const ivm__scope *scope, ivm__call *call, ivm_type type)
{
    for (uint32_t i = 0; i < call->arguments_count; i++) {
        if (!(is_decimal(type) && call->arguments[i]->type)) {
            IVM_TRY(cast_argument(scope, call, i, type));
        }
    }
    return IVM_OK;
}

static ivm_status mismatch(const ivm__scope *scope, const ivm__call *call, const char *wanted, uint32_t i)
{
    ivm__type_name name = ivm__type_name_of(call->arguments[i]->type);
    return ivm__fail(scope->error, IVM_TYPE_MISMATCH, "%s: argument %u is to be %s, not %s", call->name, i + 1, wanted, name.text);
}

static ivm_status want_numbers(const ivm__scope *scope, const ivm__call *call)
{
    for (uint32_t i = 0; i < call->arguments_count; i++) {
        if (call->arguments[i]->type && !is_number(call->arguments[i]->type)) {
            return mismatch(scope, call, "a number", i);
        }
    }
    return IVM_OK;
}

/* One argument of a type that nothing is converted to; an untyped null becomes one of it. */
static ivm_status want(const ivm__scope *scope, ivm__call *call, uint32_t i, ivm_type type)
{
    if (call->arguments[i]->type && call->arguments[i]->type != type) {
        return mismatch(scope, call, ivm__type_name_of(type).text, i);
    }
    return cast_argument(scope, call, i, type);
}

static ivm_status want_all(const ivm__scope *scope, ivm__call *call, ivm_type type)
{
    for (uint32_t i = 0; i < call->arguments_count; i++) {
        IVM_TRY(want(scope, call, i, type));
    }
    return IVM_OK;
}

/* ---- Functions --------------------------------------------------------------------------------------------------------------------- */

/* A null beside a number is of that number's own type. */
static ivm_status check_arithmetic(const ivm__scope *scope, ivm__call *call)
{
    IVM_TRY(want_numbers(scope, call));
    ivm_type a = call->arguments[0]->type, b = call->arguments[1]->type;
    a = a ? a : b;
    b = b ? b : a;
    if (!is_decimal(a) && !is_decimal(b)) {
        call->type = a == IVM_FLOAT64 || b == IVM_FLOAT64 ? IVM_FLOAT64 : a;
    } else if (a == IVM_FLOAT64 || b == IVM_FLOAT64) {
        call->type = IVM_FLOAT64;
    } else {
        uint32_t a_scale = IVM_TYPE_SCALE(as_decimal(a)), b_scale = IVM_TYPE_SCALE(as_decimal(b));
        uint32_t scale = call->function == IVM__MULTIPLY ? a_scale + b_scale : larger(a_scale, b_scale);
        if (scale > IVM_DECIMAL_PRECISION_MAX) {
            return ivm__fail(scope->error, IVM_TYPE_MISMATCH, "%s: a decimal of scale %u", call->name, scale);
        }
        call->type = IVM_DECIMAL(IVM_DECIMAL_PRECISION_MAX, scale);
        IVM_TRY(cast_argument(scope, call, 0, a));
        return cast_argument(scope, call, 1, b);
    }
    return call->type ? make_comparable(scope, call, call->type) : IVM_OK;
}

static ivm_status check_divide(const ivm__scope *scope, ivm__call *call)
{
    IVM_TRY(want_numbers(scope, call));
    call->type = IVM_FLOAT64;
    return make_comparable(scope, call, IVM_FLOAT64);
}

static ivm_status check_integer(const ivm__scope *scope, ivm__call *call)
{
    call->type = IVM_INT64;
    return want_all(scope, call, IVM_INT64);
}

static ivm_status check_sign(const ivm__scope *scope, ivm__call *call)
{
    IVM_TRY(want_numbers(scope, call));
    call->type = call->arguments[0]->type;
    return IVM_OK;
}

/* Comparisons and in. Nulls alone are compared as int64. */
static ivm_status check_comparison(const ivm__scope *scope, ivm__call *call)
{
    ivm_type type = 0;
    IVM_TRY(unify_from(scope, call, 0, 1, &type));
    call->type = IVM_BOOL;
    return make_comparable(scope, call, type ? type : IVM_INT64);
}

static ivm_status check_extreme(const ivm__scope *scope, ivm__call *call)
{
    IVM_TRY(unify_from(scope, call, 0, 1, &call->type));
    return make_comparable(scope, call, call->type);
}

static ivm_status check_coalesce(const ivm__scope *scope, ivm__call *call)
{
    IVM_TRY(unify_from(scope, call, 0, 1, &call->type));
    for (uint32_t i = 0; i < call->arguments_count; i++) {
        IVM_TRY(cast_argument(scope, call, i, call->type));
    }
    return IVM_OK;
}

static ivm_status check_case(const ivm__scope *scope, ivm__call *call)
{
    uint32_t last = call->arguments_count - 1;
    if (last % 2 != 0) {
        return ivm__fail(scope->error, IVM_INVALID_PLAN, "case: pairs of when and then, and an else are wanted");
    }
    IVM_TRY(unify_from(scope, call, 1, 2, &call->type));
    IVM_TRY(unify_from(scope, call, last, 1, &call->type));
    for (uint32_t i = 0; i < last; i += 2) {
        IVM_TRY(want(scope, call, i, IVM_BOOL));
        IVM_TRY(cast_argument(scope, call, i + 1, call->type));
    }
    return cast_argument(scope, call, last, call->type);
}

static ivm_status check_logic(const ivm__scope *scope, ivm__call *call)
{
    call->type = IVM_BOOL;
    return want_all(scope, call, IVM_BOOL);
}

static ivm_status check_is_null(const ivm__scope *scope, ivm__call *call)
{
    (void)scope;
    call->type = IVM_BOOL;
    return IVM_OK;
}

static ivm_status check_text(const ivm__scope *scope, ivm__call *call)
{
    call->type = call->function == IVM__LENGTH ? IVM_INT64 : IVM_STRING;
    return want_all(scope, call, IVM_STRING);
}

/* ---- By name ----------------------------------------------------------------------------------------------------------------------- */

typedef struct function_rule {
    const char *name;
    ivm__function function;
    uint32_t least, most; /* arguments */
    ivm_status (*check)(const ivm__scope *scope, ivm__call *call);
} function_rule;

static const function_rule *find_rule(const ivm__call *call)
{
    static const function_rule negate = { "-", IVM__NEGATE, 1, 1, check_sign };
    static const function_rule rules[] = {
        { "+", IVM__ADD, 2, 2, check_arithmetic },
        { "-", IVM__SUBTRACT, 2, 2, check_arithmetic },
        { "*", IVM__MULTIPLY, 2, 2, check_arithmetic },
        { "/", IVM__DIVIDE, 2, 2, check_divide },
        { "div", IVM__DIV, 2, 2, check_integer },
        { "%", IVM__REMAINDER, 2, 2, check_integer },
        { "=", IVM__EQUAL, 2, 2, check_comparison },
        { "<>", IVM__NOT_EQUAL, 2, 2, check_comparison },
        { "<", IVM__LESS, 2, 2, check_comparison },
        { "<=", IVM__LESS_EQUAL, 2, 2, check_comparison },
        { ">", IVM__GREATER, 2, 2, check_comparison },
        { ">=", IVM__GREATER_EQUAL, 2, 2, check_comparison },
        { "and", IVM__AND, 1, ANY_COUNT, check_logic },
        { "or", IVM__OR, 1, ANY_COUNT, check_logic },
        { "not", IVM__NOT, 1, 1, check_logic },
        { "is_null", IVM__IS_NULL, 1, 1, check_is_null },
        { "is_not_null", IVM__IS_NOT_NULL, 1, 1, check_is_null },
        { "coalesce", IVM__COALESCE, 1, ANY_COUNT, check_coalesce },
        { "case", IVM__CASE, 3, ANY_COUNT, check_case },
        { "in", IVM__IN, 2, ANY_COUNT, check_comparison },
        { "least", IVM__LEAST, 1, ANY_COUNT, check_extreme },
        { "greatest", IVM__GREATEST, 1, ANY_COUNT, check_extreme },
        { "abs", IVM__ABS, 1, 1, check_sign },
        { "concat", IVM__CONCAT, 1, ANY_COUNT, check_text },
        { "lower", IVM__LOWER, 1, 1, check_text },
        { "upper", IVM__UPPER, 1, 1, check_text },
        { "length", IVM__LENGTH, 1, 1, check_text },
    };
    if (call->arguments_count == 1 && strcmp(call->name, negate.name) == 0) {
        return &negate;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(call->name, rules[i].name) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

ivm_status ivm__call_check(const ivm__scope *scope, ivm__call *call)
{
    const function_rule *rule = find_rule(call);
    if (!rule) {
        return ivm__fail(scope->error, IVM_INVALID_PLAN, "unknown function %s", call->name);
    }
    if (call->arguments_count < rule->least || call->arguments_count > rule->most) {
        return ivm__fail(scope->error, IVM_INVALID_PLAN, "%s: wrong number of arguments, %u", call->name, call->arguments_count);
    }
    call->function = rule->function;
    return rule->check(scope, call);
}
