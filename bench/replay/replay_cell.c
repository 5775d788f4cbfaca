/* Values of scenario files: JSON to engine values and back. An int64 is a JSON integer, a float64 any number or "NaN", "Infinity",
 * "-Infinity", a decimal a string or an integer, dates and timestamps strings. */
#include "replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number as its text: "12", or the digits of a big one. NULL for anything else. */
static const char *digits(const json_t *json, char text[IVM_VALUE_TEXT_SIZE])
{
    if (json_is_object(json)) {
        return member_text(json, BIG_NUMBER);
    }
    if (!json_is_integer(json)) {
        return NULL;
    }
    snprintf(text, IVM_VALUE_TEXT_SIZE, "%lld", (long long)json_integer_value(json));
    return text;
}

static bool parse(ivm_type type, const char *text, ivm_value *value)
{
    ivm_error error;
    return text && ivm_value_parse(type, text, strlen(text), value, &error) == IVM_OK;
}

static bool float64_read(const json_t *json, ivm_value *value)
{
    const char *text = json_is_string(json) ? json_string_value(json) : NULL;
    if (text) {
        bool infinite = strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0;
        *value = ivm_float64(infinite ? copysign(INFINITY, *text == '-' ? -1 : 1) : NAN);
        return infinite || strcmp(text, "NaN") == 0;
    }
    if (json_is_number(json)) {
        *value = ivm_float64(json_number_value(json));
        return true;
    }
    char *end = NULL;
    text = json_is_object(json) ? member_text(json, BIG_NUMBER) : NULL;
    *value = ivm_float64(text ? strtod(text, &end) : 0);
    return text && end != text && *end == 0 && strspn(text, "+-.eE0123456789") == strlen(text);
}

static bool decimal_read(ivm_type type, const json_t *json, ivm_value *value)
{
    char text[IVM_VALUE_TEXT_SIZE];
    return parse(type, json_is_string(json) ? json_string_value(json) : digits(json, text), value);
}

bool cell_read(ivm_type type, const json_t *json, ivm_value *value)
{
    *value = ivm_null();
    if (!json || json_is_null(json)) {
        return json != NULL;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        *value = ivm_bool(json_is_true(json));
        return json_is_boolean(json);
    case IVM_INT64:
        *value = ivm_int64(json_integer_value(json));
        return json_is_integer(json);
    case IVM_FLOAT64:
        return float64_read(json, value);
    case IVM_STRING:
        *value = ivm_string_sized(json_string_value(json), json_string_length(json));
        return json_is_string(json);
    case IVM_DECIMAL_KIND:
        return decimal_read(type, json, value);
    default:
        return json_is_string(json) && parse(type, json_string_value(json), value);
    }
}

static void string_write(const ivm_value *value, FILE *out)
{
    json_t *json = json_stringn(value->as.string.bytes, value->as.string.size);
    if (!json) {
        fputs("\"(not UTF-8)\"", out);
        return;
    }
    json_dumpf(json, out, JSON_ENCODE_ANY);
    json_decref(json);
}

void cell_write(ivm_type type, const ivm_value *value, FILE *out)
{
    char text[IVM_VALUE_TEXT_SIZE];
    uint32_t kind = IVM_TYPE_KIND(type);
    if (value->is_null) {
        fputs("null", out);
    } else if (kind == IVM_STRING) {
        string_write(value, out);
    } else {
        bool bare = kind == IVM_BOOL || kind == IVM_INT64 || (kind == IVM_FLOAT64 && isfinite(value->as.float64));
        ivm_value_format(value, text, sizeof text);
        fprintf(out, bare ? "%s" : "\"%s\"", text);
    }
}
