/* Checking expressions: names become columns, functions get their types, and conversions that SQL leaves unsaid become casts. A mistake in
 * an argument is told before one of the function around it. What each function wants: check_function.c. Cost: a look-up a name
 * (names.c), at view creation alone. */
#include "check_expression.h"

/* ---- Columns ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status check_column(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression)
{
    uint32_t column = 0;
    IVM_TRY(ivm__column_find(scope->names, expr->text, &column, scope->error));
    *expression = ivm__expression_column(scope->memory, column, scope->names->columns[column].type);
    return *expression ? IVM_OK : ivm__fail_memory(scope->error);
}

/* ---- Literals ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status check_literal(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression)
{
    ivm__texts *texts = &scope->engine->texts;
    ivm__wide cell = 0;
    if (!expr->value.is_null) {
        ivm_status status = ivm__value_cell(texts, expr->value.type, &expr->value, &cell);
        if (status != IVM_OK) {
            ivm__type_name name = ivm__type_name_of(expr->value.type);
            return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(scope->error)
                                               : ivm__fail(scope->error, status, "a literal is no %s", name.text);
        }
    }
    *expression = ivm__expression_literal(scope->memory, texts, expr->value.type, expr->value.is_null, cell);
    return *expression ? IVM_OK : ivm__fail_memory(scope->error);
}

static ivm_status scope_check(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression);

/* ---- Casts ------------------------------------------------------------------------------------------------------------------------- */

static bool can_cast(ivm_type from, ivm_type to)
{
    switch (IVM_TYPE_KIND(from)) {
    case IVM_BOOL:
        return to == IVM_INT64 || to == IVM_FLOAT64;
    case IVM_INT64:
        return to == IVM_FLOAT64 || IVM_TYPE_KIND(to) == IVM_DECIMAL_KIND;
    case IVM_DECIMAL_KIND:
        return to == IVM_FLOAT64 || (IVM_TYPE_KIND(to) == IVM_DECIMAL_KIND && IVM_TYPE_SCALE(to) >= IVM_TYPE_SCALE(from));
    default:
        return false;
    }
}

static ivm_status check_cast(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression)
{
    assert(expr->arguments_count == 1);
    ivm__expression *value = NULL;
    IVM_TRY(scope_check(scope, expr->arguments[0], &value));
    assert(value);
    if (value->type && value->type != expr->type && !can_cast(value->type, expr->type)) {
        ivm__type_name from = ivm__type_name_of(value->type), to = ivm__type_name_of(expr->type);
        ivm__expression_free(value, scope->memory, &scope->engine->texts);
        return ivm__fail(scope->error, IVM_TYPE_MISMATCH, "cast: %s to %s", from.text, to.text);
    }
    *expression = ivm__scope_cast(scope, value, expr->type);
    return *expression ? IVM_OK : ivm__fail_memory(scope->error);
}

/* ---- The tree ---------------------------------------------------------------------------------------------------------------------- */

ivm__expression *ivm__scope_cast(const ivm__scope *scope, ivm__expression *value, ivm_type type)
{
    if (value->type == type) {
        return value;
    }
    if (!value->type && value->function == IVM__LITERAL) {
        value->type = type;
        return value;
    }
    return ivm__expression_make(scope->memory, IVM__CAST, type, &value, 1);
}

static void arguments_free(const ivm__scope *scope, ivm__expression **arguments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__expression_free(arguments[i], scope->memory, &scope->engine->texts);
    }
}

static ivm_status check_arguments(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **arguments)
{
    for (uint32_t i = 0; i < expr->arguments_count; i++) {
        ivm_status status = scope_check(scope, expr->arguments[i], &arguments[i]);
        if (status != IVM_OK) {
            arguments_free(scope, arguments, i);
            return status;
        }
    }
    return IVM_OK;
}

static ivm_status check_call(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression)
{
    uint32_t count = (uint32_t)expr->arguments_count;
    size_t size = count * sizeof(ivm__expression *);
    ivm__call call = { .name = expr->text, .arguments_count = count };
    call.arguments = ivm__allocate(scope->memory, size);
    if (!call.arguments) {
        return ivm__fail_memory(scope->error);
    }
    ivm_status status = check_arguments(scope, expr, call.arguments);
    if (status != IVM_OK) {
        goto cleanup;
    }
    status = ivm__call_check(scope, &call);
    if (status != IVM_OK) {
        arguments_free(scope, call.arguments, count);
        goto cleanup;
    }
    *expression = ivm__expression_make(scope->memory, call.function, call.type, call.arguments, count);
    status = *expression ? IVM_OK : ivm__fail_memory(scope->error);

cleanup:
    ivm__release(scope->memory, call.arguments, size);
    return status;
}

static ivm_status scope_check(const ivm__scope *scope, const ivm_expr *expr, ivm__expression **expression)
{
    switch (expr->kind) {
    case IVM__EXPR_COLUMN:
        return check_column(scope, expr, expression);
    case IVM__EXPR_LITERAL:
        return check_literal(scope, expr, expression);
    case IVM__EXPR_CALL:
        return check_call(scope, expr, expression);
    case IVM__EXPR_CAST:
        return check_cast(scope, expr, expression);
    }
    return ivm__fail(scope->error, IVM_INVALID_PLAN, "an expression of kind %d", (int)expr->kind);
}

ivm_status ivm__expression_check(ivm_engine *engine, const ivm_expr *expr, ivm__names *names, ivm__expression **expression,
                                 ivm_error *error)
{
    ivm__scope scope = { .engine = engine, .memory = &engine->memory, .names = names, .error = error };
    return scope_check(&scope, expr, expression);
}
