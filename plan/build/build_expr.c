/* Builders of expressions. They know no columns and no types: names and calls are kept as text until a view is made of them. */
#include "build.h"

void ivm_expr_free(ivm_expr *expr)
{
    if (!expr) {
        return;
    }
    for (size_t i = 0; i < expr->arguments_count; i++) {
        ivm_expr_free(expr->arguments[i]);
    }
    ivm__builder_array_free(expr->arguments, expr->arguments_count, sizeof(ivm_expr *));
    if (expr->kind == IVM__EXPR_LITERAL) {
        ivm__release(&ivm__builder_memory, expr->text, expr->value.as.string.size + 1);
    } else {
        ivm__builder_text_free(expr->text);
    }
    ivm__release(&ivm__builder_memory, expr, sizeof *expr);
}

static ivm_expr *expr_make(ivm__expr_kind kind)
{
    ivm_expr *expr = ivm__allocate_zeroed(&ivm__builder_memory, sizeof *expr);
    if (!expr) {
        ivm__builder_fail_memory();
        return NULL;
    }
    expr->kind = kind;
    expr->depth = 1;
    return expr;
}

ivm_expr *ivm__expr_column(const char *name, size_t size)
{
    ivm_expr *expr = expr_make(IVM__EXPR_COLUMN);
    if (expr && !(expr->text = ivm__builder_text(name, size))) {
        ivm_expr_free(expr);
        return NULL;
    }
    return expr;
}

ivm_expr *ivm_column(const char *name)
{
    if (!name) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_column: no name");
        return NULL;
    }
    return ivm__expr_column(name, strlen(name));
}

/* ---- Literals ---------------------------------------------------------------------------------------------------------------------- */

/* The literal's own copy of a string's bytes. */
static bool copy_string(ivm_expr *literal)
{
    size_t size = literal->value.as.string.size;
    const char *bytes = literal->value.as.string.bytes;
    if (size > IVM_STRING_SIZE_MAX || (!bytes && size)) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_literal: a string of %zu bytes", size);
        literal->value.as.string.size = 0;
        return false;
    }
    literal->text = ivm__builder_text(bytes ? bytes : "", size);
    literal->value.as.string.bytes = literal->text;
    return literal->text;
}

ivm_expr *ivm_literal(ivm_value value)
{
    if (value.type ? !ivm__type_is_valid(value.type) : !value.is_null) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_literal: %#x is no type", (unsigned)value.type);
        return NULL;
    }
    ivm_expr *expr = expr_make(IVM__EXPR_LITERAL);
    if (!expr) {
        return NULL;
    }
    if (value.is_null) {
        expr->value = (ivm_value){ .type = value.type, .is_null = true };
        return expr;
    }
    expr->value = value;
    if (value.type == IVM_STRING && !copy_string(expr)) {
        ivm_expr_free(expr);
        return NULL;
    }
    return expr;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------- */

static ivm_expr *free_all(ivm_expr **exprs, size_t count)
{
    for (size_t i = 0; exprs && i < count; i++) {
        ivm_expr_free(exprs[i]);
    }
    return NULL;
}

/* Whether all arguments are there and none is nested too deep; the cause is set where not. */
static bool arguments_are_fine(const char *function, ivm_expr *const *arguments, size_t count)
{
    if (count && !arguments) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: no arguments", function);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!arguments[i]) {
            ivm__builder_fail(IVM_INVALID_ARGUMENT, "%s: argument %zu is NULL", function, i + 1);
            return false;
        }
        if (arguments[i]->depth >= IVM_PLAN_DEPTH_MAX) {
            ivm__builder_fail(IVM_INVALID_PLAN, "%s: an expression nested more than %u deep", function, IVM_PLAN_DEPTH_MAX);
            return false;
        }
    }
    return true;
}

/* Takes the arguments only if it returns true. */
static bool arguments_set(ivm_expr *expr, ivm_expr *const *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ivm_expr **grown = ivm__builder_grow(expr->arguments, i, sizeof(ivm_expr *));
        if (!grown) {
            ivm__builder_array_free(expr->arguments, i, sizeof(ivm_expr *));
            expr->arguments = NULL;
            return false;
        }
        grown[i] = arguments[i];
        expr->arguments = grown;
        expr->depth = arguments[i]->depth + 1 > expr->depth ? arguments[i]->depth + 1 : expr->depth;
    }
    expr->arguments_count = count;
    return true;
}

ivm_expr *ivm_call(const char *function, ivm_expr **arguments, size_t arguments_count)
{
    if (!function) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_call: no function");
        return free_all(arguments, arguments_count);
    }
    if (!arguments_are_fine(function, arguments, arguments_count)) {
        return free_all(arguments, arguments_count);
    }
    ivm_expr *expr = expr_make(IVM__EXPR_CALL);
    if (!expr) {
        return free_all(arguments, arguments_count);
    }
    if (!(expr->text = ivm__builder_text(function, strlen(function))) || !arguments_set(expr, arguments, arguments_count)) {
        ivm_expr_free(expr);
        return free_all(arguments, arguments_count);
    }
    return expr;
}

ivm_expr *ivm_call1(const char *function, ivm_expr *a)
{
    return ivm_call(function, &a, 1);
}

ivm_expr *ivm_call2(const char *function, ivm_expr *a, ivm_expr *b)
{
    return ivm_call(function, (ivm_expr *[]){ a, b }, 2);
}

ivm_expr *ivm_cast(ivm_expr *value, ivm_type type)
{
    if (!ivm__type_is_valid(type)) {
        ivm__builder_fail(IVM_INVALID_ARGUMENT, "ivm_cast: %#x is no type", (unsigned)type);
        return free_all(&value, 1);
    }
    ivm_expr *expr = arguments_are_fine("ivm_cast", &value, 1) ? expr_make(IVM__EXPR_CAST) : NULL;
    if (!expr) {
        return free_all(&value, 1);
    }
    expr->type = type;
    if (!arguments_set(expr, &value, 1)) {
        ivm_expr_free(expr);
        return free_all(&value, 1);
    }
    return expr;
}
