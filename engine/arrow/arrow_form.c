/* Arrow's formats ("l", "tsu:UTC", "d:10,2,128") as forms, and columns' types as formats; what a schema of record batches must be. See the table in
 * ivm/arrow.h. Cost: nothing but the texts' length. */
#include "arrow_form.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define DAY_MILLISECONDS 86400000

/* ---- Formats --------------------------------------------------------------------------------------------------------------------------- */

typedef struct fixed_format {
    const char *format;
    ivm__arrow_form form;
} fixed_format;

static const fixed_format fixed_formats[] = {
    { "n", { .layout = IVM__ARROW_NULLS } },
    { "b", { .layout = IVM__ARROW_BITS, .type = IVM_BOOL } },
    { "c", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 1, .is_signed = true } },
    { "C", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 1 } },
    { "s", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 2, .is_signed = true } },
    { "S", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 2 } },
    { "i", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 4, .is_signed = true } },
    { "I", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 4 } },
    { "l", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 8, .is_signed = true } },
    { "L", { .layout = IVM__ARROW_WHOLE, .type = IVM_INT64, .width = 8 } },
    { "f", { .layout = IVM__ARROW_FLOATS, .type = IVM_FLOAT64, .width = 4 } },
    { "g", { .layout = IVM__ARROW_FLOATS, .type = IVM_FLOAT64, .width = 8 } },
    { "u", { .layout = IVM__ARROW_STRINGS, .type = IVM_STRING, .width = 4 } },
    { "z", { .layout = IVM__ARROW_STRINGS, .type = IVM_STRING, .width = 4 } },
    { "U", { .layout = IVM__ARROW_STRINGS, .type = IVM_STRING, .width = 8 } },
    { "Z", { .layout = IVM__ARROW_STRINGS, .type = IVM_STRING, .width = 8 } },
    { "vu", { .layout = IVM__ARROW_VIEWS, .type = IVM_STRING, .width = 16 } },
    { "vz", { .layout = IVM__ARROW_VIEWS, .type = IVM_STRING, .width = 16 } },
    { "tdD", { .layout = IVM__ARROW_DAYS, .type = IVM_DATE, .width = 4 } },
    { "tdm", { .layout = IVM__ARROW_TICKS, .type = IVM_DATE, .width = 8, .multiplier = 1, .divisor = DAY_MILLISECONDS } },
};

/* "tss:", "tsm:", "tsu:" or "tsn:" and any zone. */
static bool timestamp_parse(const char *format, ivm__arrow_form *form)
{
    if (strncmp(format, "ts", 2) != 0 || format[2] == 0 || format[3] != ':') {
        return false;
    }
    *form = (ivm__arrow_form){ .layout = IVM__ARROW_TICKS, .type = IVM_TIMESTAMP, .width = 8, .multiplier = 1, .divisor = 1 };
    switch (format[2]) {
    case 's':
        form->multiplier = 1000000;
        return true;
    case 'm':
        form->multiplier = 1000;
        return true;
    case 'u':
        return true;
    case 'n':
        form->divisor = 1000;
        return true;
    default:
        return false;
    }
}

/* One to three digits; moves on. */
static bool number_parse(const char **at, uint32_t *number)
{
    uint32_t digits = 0;
    for (*number = 0; **at >= '0' && **at <= '9' && digits < 3; ++*at, digits++) {
        *number = *number * 10 + (uint32_t)(**at - '0');
    }
    return digits > 0;
}

/* "d:precision,scale" and, where not of 128, ",bits". */
static bool decimal_parse(const char *format, ivm__arrow_form *form)
{
    if (strncmp(format, "d:", 2) != 0) {
        return false;
    }
    const char *at = format + 2;
    uint32_t precision, scale, bits = 128;
    if (!number_parse(&at, &precision) || *at++ != ',' || !number_parse(&at, &scale)) {
        return false;
    }
    if (*at == ',' && (at++, !number_parse(&at, &bits))) {
        return false;
    }
    bool known = bits == 32 || bits == 64 || bits == 128 || bits == 256;
    if (*at || !known || precision < 1 || precision > IVM_DECIMAL_PRECISION_MAX || scale > precision) {
        return false;
    }
    *form = (ivm__arrow_form){
        .layout = IVM__ARROW_WHOLE, .type = IVM_DECIMAL(precision, scale), .width = bits / 8, .is_signed = true, .scale = scale
    };
    return true;
}

bool ivm__arrow_form_parse(const char *format, ivm__arrow_form *form)
{
    for (size_t i = 0; i < sizeof fixed_formats / sizeof fixed_formats[0]; i++) {
        if (strcmp(format, fixed_formats[i].format) == 0) {
            *form = fixed_formats[i].form;
            return true;
        }
    }
    return timestamp_parse(format, form) || decimal_parse(format, form);
}

void ivm__arrow_format_write(ivm_type type, bool strings_binary, char format[IVM__ARROW_FORMAT_SIZE])
{
    static const char *const formats[] = {
        [IVM_BOOL] = "b", [IVM_INT64] = "l", [IVM_FLOAT64] = "g", [IVM_STRING] = "u", [IVM_DATE] = "tdD", [IVM_TIMESTAMP] = "tsu:UTC",
    };
    if (IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND) {
        (void)snprintf(format, IVM__ARROW_FORMAT_SIZE, "d:%u,%u", IVM_TYPE_PRECISION(type), IVM_TYPE_SCALE(type));
        return;
    }
    assert(type >= IVM_BOOL && type <= IVM_TIMESTAMP);
    (void)snprintf(format, IVM__ARROW_FORMAT_SIZE, "%s", type == IVM_STRING && strings_binary ? "z" : formats[type]);
}

/* ---- Forms and columns --------------------------------------------------------------------------------------------------------------- */

bool ivm__arrow_form_fits(const ivm__arrow_form *form, ivm_type type)
{
    uint32_t from = IVM_TYPE_KIND(form->type), to = IVM_TYPE_KIND(type);
    if (form->layout == IVM__ARROW_NULLS || from == to) {
        return true;
    }
    bool numbers = from == IVM_INT64 && (to == IVM_FLOAT64 || to == IVM_DECIMAL_KIND);
    return numbers || (from == IVM_DECIMAL_KIND && to == IVM_INT64);
}

bool ivm__arrow_form_serves(const ivm__arrow_form *form, ivm_type type)
{
    switch (form->layout) {
    case IVM__ARROW_BITS:
    case IVM__ARROW_DAYS:
        return true;
    case IVM__ARROW_WHOLE:
        return IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND
                   ? form->width == 16 && form->scale == IVM_TYPE_SCALE(type)
                   : type == IVM_INT64 && form->type == IVM_INT64 && form->width == 8 && form->is_signed;
    case IVM__ARROW_FLOATS:
        return form->width == 8;
    case IVM__ARROW_TICKS:
        return form->multiplier == 1 && form->divisor == 1;
    case IVM__ARROW_STRINGS:
        return form->width == 4;
    default:
        return false;
    }
}

/* ---- Schemas --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status format_parse(const struct ArrowSchema *field, const char *where, ivm__arrow_form *form, ivm_error *error)
{
    if (!field->release || !field->format) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: the schema of field %s %s", where, ivm__arrow_name(field),
                         field->release ? "has no format" : "was released");
    }
    if (!ivm__arrow_form_parse(field->format, form)) {
        return ivm__fail(error, IVM_UNSUPPORTED, "%s: field %s is of Arrow's format \"%s\", which is not supported", where,
                         ivm__arrow_name(field), field->format);
    }
    return IVM_OK;
}

ivm_status ivm__arrow_field_parse(const struct ArrowSchema *field, const char *where, ivm__arrow_form *form, ivm__arrow_form *indexes,
                                  ivm_error *error)
{
    indexes->layout = IVM__ARROW_NULLS;
    IVM_TRY(format_parse(field, where, form, error));
    if (!field->dictionary) {
        return IVM_OK;
    }
    *indexes = *form;
    if (indexes->layout != IVM__ARROW_WHOLE || indexes->type != IVM_INT64) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: field %s has a dictionary and indexes of format \"%s\", which are no integers",
                         where, ivm__arrow_name(field), field->format);
    }
    if (field->dictionary->dictionary) {
        return ivm__fail(error, IVM_UNSUPPORTED, "%s: field %s has a dictionary whose values have one", where, ivm__arrow_name(field));
    }
    const struct ArrowSchema *values = field->dictionary;
    if (!values->release || !values->format || !ivm__arrow_form_parse(values->format, form)) {
        return ivm__fail(error, values->release && values->format ? IVM_UNSUPPORTED : IVM_INVALID_ARGUMENT,
                         "%s: field %s has a dictionary of format \"%s\", which is not supported", where, ivm__arrow_name(field),
                         values->release && values->format ? values->format : "");
    }
    return IVM_OK;
}

ivm_status ivm__arrow_schema_check(const struct ArrowSchema *schema, const char *where, ivm_error *error)
{
    if (!schema || !schema->release) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: the schema %s", where, schema ? "was released" : "is NULL");
    }
    if (!schema->format || strcmp(schema->format, "+s") != 0 || schema->dictionary) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: rows are a struct (format \"+s\"), not \"%s\"%s", where,
                         schema->format ? schema->format : "", schema->dictionary ? " with a dictionary" : "");
    }
    if (schema->n_children < 0 || (schema->n_children > 0 && !schema->children)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: a schema of %lld children%s", where, (long long)schema->n_children,
                         schema->n_children < 0 ? "" : " that are NULL");
    }
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (!schema->children[i]) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: child %lld of the schema is NULL", where, (long long)i);
        }
    }
    return IVM_OK;
}

bool ivm__arrow_is_weight(const struct ArrowSchema *field, const ivm_arrow_options *options)
{
    return options && options->weight && *options->weight && strcmp(ivm__arrow_name(field), options->weight) == 0;
}
