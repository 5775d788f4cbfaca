/* Types and values as text: what a scenario, a file or a person writes, read exactly or refused, and written so that it reads back the
 * same. */
#include "value_text.h"

#include <stdio.h>

#include "wide.h"

#define QUOTED_MAX 64 /* bytes of a text that a message repeats */

static const struct {
    const char *name;
    ivm_type type;
} type_names[] = {
    { "bool", IVM_BOOL }, { "int64", IVM_INT64 },         { "float64", IVM_FLOAT64 },      { "string", IVM_STRING },
    { "date", IVM_DATE }, { "timestamp", IVM_TIMESTAMP }, { "decimal", IVM_DECIMAL_KIND },
};
#define TYPE_NAMES_COUNT (sizeof type_names / sizeof type_names[0])

/* ---- Types ----------------------------------------------------------------------------------------------------------------------- */

static const char *space_skip(const char *at)
{
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
        at++;
    }
    return at;
}

/* Whether the word stands at *at, in letters of either case; moves on behind it. */
static bool word_take(const char **at, const char *word)
{
    const char *text = *at;
    for (; *word; word++, text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        if (c != *word) {
            return false;
        }
    }
    *at = text;
    return true;
}

/* A small number, then `after`, with space around both. */
static bool count_take(const char **at, char after, uint32_t *value)
{
    const char *text = space_skip(*at), *start = text;
    for (*value = 0; *text >= '0' && *text <= '9' && *value < 1000; text++) {
        *value = *value * 10 + (uint32_t)(*text - '0');
    }
    if (text == start) {
        return false;
    }
    text = space_skip(text);
    *at = text + 1;
    return *text == after;
}

static bool decimal_type_take(const char **at, ivm_type *type)
{
    uint32_t precision, scale;
    *at = space_skip(*at);
    if (!word_take(at, "(") || !count_take(at, ',', &precision) || !count_take(at, ')', &scale)) {
        return false;
    }
    *type = IVM_DECIMAL(precision, scale);
    return precision >= 1 && precision <= IVM_DECIMAL_PRECISION_MAX && scale <= precision;
}

ivm_status ivm_type_parse(const char *text, ivm_type *type, ivm_error *error)
{
    if (!text || !type) {
        return ivm__fail_null(error, "ivm_type_parse", text ? "type" : "text");
    }
    for (size_t i = 0; i < TYPE_NAMES_COUNT; i++) {
        const char *at = space_skip(text);
        ivm_type read = type_names[i].type;
        if (!word_take(&at, type_names[i].name) || (read == IVM_DECIMAL_KIND && !decimal_type_take(&at, &read))) {
            continue;
        }
        if (*space_skip(at) == 0) {
            *type = read;
            return IVM_OK;
        }
    }
    return ivm__fail(error, IVM_INVALID_ARGUMENT, "'%.*s' is no type", QUOTED_MAX, text);
}

static const char *kind_name(ivm_type type)
{
    for (size_t i = 0; i < TYPE_NAMES_COUNT; i++) {
        if (type_names[i].type == IVM_TYPE_KIND(type)) {
            return type_names[i].name;
        }
    }
    return "unknown";
}

void ivm_type_format(ivm_type type, char text[IVM_TYPE_TEXT_SIZE])
{
    if (IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND) {
        snprintf(text, IVM_TYPE_TEXT_SIZE, "decimal(%u,%u)", IVM_TYPE_PRECISION(type), IVM_TYPE_SCALE(type));
    } else {
        snprintf(text, IVM_TYPE_TEXT_SIZE, "%s", kind_name(type));
    }
}

static bool type_valid(ivm_type type)
{
    uint32_t kind = IVM_TYPE_KIND(type), precision = IVM_TYPE_PRECISION(type);
    if (kind == IVM_DECIMAL_KIND) {
        return precision >= 1 && precision <= IVM_DECIMAL_PRECISION_MAX && IVM_TYPE_SCALE(type) <= precision;
    }
    return kind >= IVM_BOOL && kind < IVM_DECIMAL_KIND;
}

/* ---- Reading values -------------------------------------------------------------------------------------------------------------- */

static bool bool_read(const char *text, size_t size, bool *value)
{
    *value = size == 4 && memcmp(text, "true", 4) == 0;
    return *value || (size == 5 && memcmp(text, "false", 5) == 0);
}

static bool int64_read(const char *text, size_t size, int64_t *value)
{
    bool negative = size && *text == '-';
    size_t at = size && (*text == '-' || *text == '+');
    if (at == size) {
        return false;
    }
    for (*value = 0; at < size; at++) {
        if (text[at] < '0' || text[at] > '9') {
            return false;
        }
        int64_t digit = text[at] - '0';
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, negative ? -digit : digit, value)) {
            return false;
        }
    }
    return true;
}

/* The first `kept` digits as a number; all others must be zero. */
static bool digits_read(const ivm__numeral *numeral, int64_t kept, ivm__wide *value)
{
    *value = 0;
    for (size_t i = 0; i < numeral->size; i++) {
        if (numeral->digits[i] == '.') {
            continue;
        }
        int digit = numeral->digits[i] - '0';
        if (kept-- > 0) {
            if (!ivm__decimal_fits(*value, IVM_DECIMAL_PRECISION_MAX - 1)) {
                return false;
            }
            *value = *value * 10 + digit;
        } else if (digit != 0) {
            return false;
        }
    }
    return true;
}

static bool decimal_read(ivm_type type, const char *text, size_t size, ivm_int128 *value)
{
    ivm__numeral numeral;
    ivm__wide unscaled;
    if (!ivm__numeral_read(text, size, &numeral)) {
        return false;
    }
    /* unscaled = all digits * 10^shift */
    int64_t shift = numeral.exponent - (int64_t)numeral.fraction + (int64_t)IVM_TYPE_SCALE(type);
    int64_t digits = (int64_t)numeral.size - (memchr(numeral.digits, '.', numeral.size) != NULL);
    if (!digits_read(&numeral, shift < 0 ? digits + shift : digits, &unscaled)) {
        return false;
    }
    for (; shift > 0 && unscaled != 0; shift--) {
        if (!ivm__decimal_fits(unscaled, IVM_DECIMAL_PRECISION_MAX - 1)) {
            return false;
        }
        unscaled *= 10;
    }
    unscaled = numeral.negative ? -unscaled : unscaled;
    memcpy(value, &unscaled, sizeof *value);
    return ivm__decimal_fits(unscaled, IVM_TYPE_PRECISION(type));
}

static bool value_read(const char *text, size_t size, ivm_value *value)
{
    switch (IVM_TYPE_KIND(value->type)) {
    case IVM_BOOL:
        return bool_read(text, size, &value->as.boolean);
    case IVM_INT64:
        return int64_read(text, size, &value->as.int64);
    case IVM_FLOAT64:
        return ivm__float_read(text, size, &value->as.float64);
    case IVM_DATE:
        return ivm__date_read(text, size, &value->as.date);
    case IVM_TIMESTAMP:
        return ivm__timestamp_read(text, size, &value->as.timestamp);
    case IVM_DECIMAL_KIND:
        return decimal_read(value->type, text, size, &value->as.decimal);
    default:
        assert(IVM_TYPE_KIND(value->type) == IVM_STRING);
        value->as.string.bytes = text;
        value->as.string.size = size;
        return size <= IVM_STRING_SIZE_MAX;
    }
}

ivm_status ivm_value_parse(ivm_type type, const char *text, size_t size, ivm_value *value, ivm_error *error)
{
    if ((!text && size) || !value) {
        return ivm__fail_null(error, "ivm_value_parse", value ? "text" : "value");
    }
    if (!type_valid(type)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_value_parse: %u is no type", type);
    }
    ivm_value read = { .type = type };
    text = text ? text : "";
    if (!value_read(text, size, &read)) {
        char name[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(type, name);
        return ivm__fail(error, IVM_TYPE_MISMATCH, "'%.*s' is no %s", (int)(size < QUOTED_MAX ? size : QUOTED_MAX), text, name);
    }
    *value = read;
    return IVM_OK;
}

/* ---- Writing values -------------------------------------------------------------------------------------------------------------- */

static size_t decimal_write(ivm_int128 value, uint32_t scale, char text[IVM_VALUE_TEXT_SIZE])
{
    ivm__wide unscaled;
    memcpy(&unscaled, &value, sizeof unscaled);
    unsigned __int128 magnitude = unscaled < 0 ? -(unsigned __int128)unscaled : (unsigned __int128)unscaled;
    char reversed[IVM_VALUE_TEXT_SIZE];
    uint32_t count = 0;
    for (uint32_t digits = 0; digits <= scale || magnitude; digits++, magnitude /= 10) {
        if (digits == scale && scale) {
            reversed[count++] = '.';
        }
        reversed[count++] = (char)('0' + (int)(magnitude % 10));
    }
    if (unscaled < 0) {
        reversed[count++] = '-';
    }
    assert(count < IVM_VALUE_TEXT_SIZE);
    for (uint32_t i = 0; i < count; i++) {
        text[i] = reversed[count - 1 - i];
    }
    text[count] = 0;
    return count;
}

static size_t value_write(const ivm_value *value, char text[IVM_VALUE_TEXT_SIZE])
{
    switch (IVM_TYPE_KIND(value->type)) {
    case IVM_BOOL:
        return (size_t)snprintf(text, IVM_VALUE_TEXT_SIZE, "%s", value->as.boolean ? "true" : "false");
    case IVM_INT64:
        return (size_t)snprintf(text, IVM_VALUE_TEXT_SIZE, "%lld", (long long)value->as.int64);
    case IVM_FLOAT64:
        return ivm__float_write(value->as.float64, text);
    case IVM_DATE:
        return ivm__date_write(value->as.date, text);
    case IVM_TIMESTAMP:
        return ivm__timestamp_write(value->as.timestamp, text);
    default:
        assert(IVM_TYPE_KIND(value->type) == IVM_DECIMAL_KIND);
        return decimal_write(value->as.decimal, IVM_TYPE_SCALE(value->type), text);
    }
}

size_t ivm_value_format(const ivm_value *value, char *text, size_t size)
{
    char own[IVM_VALUE_TEXT_SIZE];
    const char *whole = own;
    size_t length;
    if (value->is_null) {
        length = (size_t)snprintf(own, sizeof own, "null");
    } else if (IVM_TYPE_KIND(value->type) == IVM_STRING) {
        whole = value->as.string.bytes;
        length = value->as.string.size;
    } else if (!type_valid(value->type)) {
        length = (size_t)snprintf(own, sizeof own, "unknown");
    } else {
        length = value_write(value, own);
    }
    if (size) {
        size_t written = length < size ? length : size - 1;
        if (written) {
            memcpy(text, whole, written);
        }
        text[written] = 0;
    }
    return length;
}
