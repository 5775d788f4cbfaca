/* Expressions from JSON: a string is a column; a number, bool or null itself; {"lit"} a string, {"lit", "type"} a value of any type; an
 * array a function and its arguments. */
#if IVM_WITH_JSON

#include "json.h"

#include <stdio.h>

const char *ivm__json_name(const json_t *json)
{
    const char *text = json_string_value(json);
    return text && strlen(text) == json_string_length(json) ? text : NULL;
}

static ivm_expr *fail(ivm_status status, const char *why)
{
    ivm__builder_fail(status, "%s", why);
    return NULL;
}

/* ---- Literals ---------------------------------------------------------------------------------------------------------------------- */

static bool read_type(const json_t *json, ivm_type *type)
{
    const char *text = ivm__json_name(json);
    ivm_error error = IVM_ERROR_INIT;
    if (!text) {
        ivm__builder_fail(IVM_INVALID_PLAN, "a type is text");
        return false;
    }
    if (ivm_type_parse(text, type, &error) != IVM_OK) {
        ivm__builder_fail(error.status, "%s", error.message);
        return false;
    }
    return true;
}

static bool is_float_word(const json_t *json)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    const char *text = ivm__json_name(json);
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the type takes this kind of JSON at all. */
static bool takes(ivm_type type, const json_t *json)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return json_is_boolean(json);
    case IVM_INT64:
        return json_is_integer(json);
    case IVM_FLOAT64:
        return json_is_number(json) || is_float_word(json);
    case IVM_DECIMAL_KIND:
        return json_is_integer(json) || json_is_string(json);
    default:
        return json_is_string(json);
    }
}

static bool parse_text(ivm_type type, const char *text, size_t size, ivm_value *value)
{
    ivm_error error = IVM_ERROR_INIT;
    if (ivm_value_parse(type, text, size, value, &error) != IVM_OK) {
        ivm__builder_fail(error.status, "%s", error.message);
        return false;
    }
    return true;
}

/* The value borrows the JSON's text. */
static bool read_value(ivm_type type, const json_t *json, ivm_value *value)
{
    char digits[24];
    if (json_is_null(json)) {
        *value = (ivm_value){ .type = type, .is_null = true };
        return true;
    }
    if (!takes(type, json)) {
        char name[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(type, name);
        ivm__builder_fail(IVM_TYPE_MISMATCH, "a literal is no %s", name);
        return false;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        *value = ivm_bool(json_is_true(json));
        return true;
    case IVM_INT64:
        *value = ivm_int64(json_integer_value(json));
        return true;
    case IVM_STRING:
        *value = ivm_string_sized(json_string_value(json), json_string_length(json));
        return true;
    default:
        break;
    }
    if (type == IVM_FLOAT64 && json_is_number(json)) {
        *value = ivm_float64(json_number_value(json));
        return true;
    }
    if (json_is_integer(json)) {
        int size = snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(json));
        return parse_text(type, digits, (size_t)size, value);
    }
    return parse_text(type, json_string_value(json), json_string_length(json), value);
}

static ivm_expr *read_literal(const json_t *json)
{
    const json_t *lit = json_object_get(json, "lit"), *type_text = json_object_get(json, "type");
    ivm_type type = IVM_STRING;
    ivm_value value;
    if (!lit || json_object_size(json) != (type_text ? 2 : 1)) {
        return fail(IVM_INVALID_PLAN, "an expression's object is {\"lit\"} or {\"lit\", \"type\"}");
    }
    if (type_text && !read_type(type_text, &type)) {
        return NULL;
    }
    return read_value(type, lit, &value) ? ivm_literal(value) : NULL;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------- */

static ivm_expr *read_cast(const json_t *json)
{
    if (json_array_size(json) != 3) {
        return fail(IVM_INVALID_PLAN, "cast: an expression and a type are wanted");
    }
    ivm_expr *value = ivm__json_expr(json_array_get(json, 1));
    ivm_type type;
    if (!value || !read_type(json_array_get(json, 2), &type)) {
        ivm_expr_free(value);
        return NULL;
    }
    return ivm_cast(value, type);
}

static ivm_expr *read_call(const json_t *json)
{
    const char *function = ivm__json_name(json_array_get(json, 0));
    if (!function) {
        return fail(IVM_INVALID_PLAN, "an expression's list begins with the name of a function");
    }
    if (strcmp(function, "cast") == 0) {
        return read_cast(json);
    }
    size_t count = json_array_size(json) - 1;
    ivm_expr **arguments = ivm__allocate_zeroed(&ivm__builder_memory, count * sizeof(ivm_expr *));
    if (!arguments) {
        ivm__builder_fail_memory();
        return NULL;
    }
    for (size_t i = 0; i < count && (i == 0 || arguments[i - 1]); i++) {
        arguments[i] = ivm__json_expr(json_array_get(json, i + 1));
    }
    ivm_expr *call = ivm_call(function, arguments, count);
    ivm__release(&ivm__builder_memory, arguments, count * sizeof(ivm_expr *));
    return call;
}

static ivm_expr *read_column(const json_t *json)
{
    const char *name = ivm__json_name(json);
    return name ? ivm_column(name) : fail(IVM_UNKNOWN_COLUMN, "a column's name has a null byte in it");
}

ivm_expr *ivm__json_expr(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_NULL:
        return ivm_literal(ivm_null());
    case JSON_TRUE:
    case JSON_FALSE:
        return ivm_literal(ivm_bool(json_is_true(json)));
    case JSON_INTEGER:
        return ivm_literal(ivm_int64(json_integer_value(json)));
    case JSON_REAL:
        return ivm_literal(ivm_float64(json_real_value(json)));
    case JSON_STRING:
        return read_column(json);
    case JSON_OBJECT:
        return read_literal(json);
    case JSON_ARRAY:
        return read_call(json);
    }
    return fail(IVM_INVALID_PLAN, "an expression is JSON");
}

#else

typedef int ivm__json_is_not_built; /* a translation unit holds something */

#endif
