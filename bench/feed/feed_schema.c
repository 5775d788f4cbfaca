/* What a Debezium line's own schema ("schema" beside "payload", as connectors write it with schemas.enable) says of a column: the unit of a
 * timestamp, which differs from column to column of one table, and decimals, which come as the bytes of the unscaled value, base64, unless the connector is told
 * otherwise. Cost: a walk along the schema's columns for each such value. */
#include "feed.h"

#include <stdlib.h>
#include <string.h>

#define DECIMAL_BYTES_MAX 16

static const json_t *field_find(const json_t *schema, const char *name)
{
    const json_t *fields = json_object_get(schema, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        const char *found = member_text(field, "field");
        if (found && strcmp(found, name) == 0) {
            return field;
        }
    }
    return NULL;
}

const json_t *schema_of_row(const json_t *line)
{
    const json_t *schema = json_object_get(line, "schema");
    const json_t *after = field_find(schema, "after");
    return after ? after : schema; /* a key's schema has the columns themselves */
}

feed_integers schema_integers(const json_t *row_schema, const char *column, feed_integers otherwise)
{
    const char *name = member_text(field_find(row_schema, column), "name");
    if (!name) {
        return otherwise;
    }
    if (strcmp(name, "io.debezium.time.Timestamp") == 0 || strcmp(name, "org.apache.kafka.connect.data.Timestamp") == 0) {
        return FEED_MILLIS;
    }
    if (strcmp(name, "io.debezium.time.NanoTimestamp") == 0) {
        return FEED_NANOS;
    }
    return strcmp(name, "io.debezium.time.MicroTimestamp") == 0 ? FEED_MICROS : otherwise;
}

/* ---- Decimals -------------------------------------------------------------------------------------------------------------------------- */

static int sextet(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* How many bytes the text stands for; 0: none, too many, or it is no base64. */
static size_t base64_read(const char *text, uint8_t bytes[DECIMAL_BYTES_MAX])
{
    uint32_t bits = 0;
    size_t size = 0;
    int held = 0;
    for (; *text && *text != '='; text++) {
        int six = sextet(*text);
        if (six < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)six;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (size == DECIMAL_BYTES_MAX) {
                return 0;
            }
            bytes[size++] = (uint8_t)(bits >> held);
        }
    }
    return text[strspn(text, "=")] ? 0 : size;
}

/* The value times 10^-scale as text. */
static void decimal_write(__int128 value, size_t scale, char text[IVM_VALUE_TEXT_SIZE + 64])
{
    char digits[48];
    size_t count = 0;
    unsigned __int128 left = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    do {
        digits[count++] = (char)('0' + (int)(left % 10));
        left /= 10;
    } while (left || count <= scale);
    char *end = text;
    if (value < 0) {
        *end++ = '-';
    }
    while (count) {
        *end++ = digits[--count];
        if (count == scale && scale) {
            *end++ = '.';
        }
    }
    *end = 0;
}

bool schema_decimal(const json_t *row_schema, const char *column, const json_t *json, ivm_type type, bool *read, ivm_value *value)
{
    const json_t *field = field_find(row_schema, column);
    const char *name = member_text(field, "name"), *scale_text = member_text(json_object_get(field, "parameters"), "scale");
    *read = false;
    if (!name || !scale_text || !json_is_string(json) || strcmp(name, "org.apache.kafka.connect.data.Decimal") != 0) {
        return false;
    }
    uint8_t bytes[DECIMAL_BYTES_MAX];
    char text[IVM_VALUE_TEXT_SIZE + 64];
    ivm_error ignored;
    size_t size = base64_read(json_string_value(json), bytes), scale = strtoull(scale_text, NULL, 10);
    if (!size || scale > IVM_DECIMAL_PRECISION_MAX) {
        return true;
    }
    unsigned __int128 bits = bytes[0] & 0x80 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
    }
    decimal_write((__int128)bits, scale, text);
    *read = ivm_value_parse(type, text, strlen(text), value, &ignored) == IVM_OK;
    return true;
}
