/* A row or a key of a line, as values in the table's order. Beside what scenario files have (replay_cell.c) an integer is taken for a date (days since
 * 1970) and for a timestamp (in units by the line's own schema or by option). A column that is not there is null, a member that is no column is
 * passed over and noted once by its name, to be told; `--strict` takes neither. */
#include "feed.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define UNAVAILABLE "__debezium_unavailable_value" /* stands for a large value that did not change */

bool line_bad(feed_changes *changes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(changes->message, sizeof changes->message, format, arguments);
    va_end(arguments);
    return false;
}

/* Rounded down to the microsecond. */
static int64_t microseconds(int64_t nanoseconds)
{
    return nanoseconds / 1000 - (nanoseconds % 1000 < 0);
}

static bool integer_read(feed_integers unit, ivm_type type, int64_t integer, ivm_value *value)
{
    if (IVM_TYPE_KIND(type) == IVM_DATE) {
        *value = ivm_date((int32_t)integer);
        return integer == (int32_t)integer;
    }
    int64_t micros = unit == FEED_NANOS ? microseconds(integer) : integer;
    bool fits = unit != FEED_MILLIS || !__builtin_mul_overflow(integer, (int64_t)1000, &micros);
    *value = ivm_timestamp(micros);
    return fits;
}

static bool cell_take(const feed_session *feed, const json_t *schema, const char *column, ivm_type type, const json_t *json,
                      ivm_value *value)
{
    uint32_t kind = IVM_TYPE_KIND(type);
    bool read;
    if (json_is_integer(json) && (kind == IVM_DATE || kind == IVM_TIMESTAMP)) {
        return integer_read(schema_integers(schema, column, (feed_integers)feed->options.integers), type, json_integer_value(json), value);
    }
    if (kind == IVM_DECIMAL_KIND && schema_decimal(schema, column, json, type, &read, value)) {
        return read;
    }
    return cell_read(type, json, value);
}

static bool value_read(const feed_session *feed, const feed_table *table, size_t column, const json_t *json, ivm_value *value,
                       feed_changes *changes)
{
    ivm_type type = ivm_table_column_type(table->table, column);
    const char *name = ivm_table_column_name(table->table, column);
    char text[IVM_TYPE_TEXT_SIZE];
    if (IVM_TYPE_KIND(type) == IVM_STRING && json_is_string(json) && strcmp(json_string_value(json), UNAVAILABLE) == 0) {
        return line_bad(changes, "%s.%s: the feed left the value out (" UNAVAILABLE ")", table->name, name);
    }
    if (cell_take(feed, changes->schema, name, type, json, value)) {
        return true;
    }
    ivm_type_format(type, text);
    return line_bad(changes, "%s.%s: no value of type %s", table->name, name, text);
}

static bool is_column(const feed_table *table, const char *name)
{
    size_t i = 0;
    while (i < table->columns_count && strcmp(ivm_table_column_name(table->table, i), name) != 0) {
        i++;
    }
    return i < table->columns_count;
}

static bool strictly_known(const feed_table *table, const json_t *row, feed_changes *changes)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)row, name, value)
    {
        if (!is_column(table, name)) {
            return line_bad(changes, "%s has no column %s", table->name, name);
        }
    }
    return true;
}

static void unknown_note(feed_unknown *unknown, const feed_table *table, const char *name)
{
    size_t size = strlen(table->name) + strlen(name) + 2;
    char *text = memory_take(size);
    snprintf(text, size, "%s.%s", table->name, name);
    for (size_t i = 0; i < unknown->count; i++) {
        if (strcmp(unknown->names[i], text) == 0) {
            free(text);
            return;
        }
    }
    if (unknown->count == FEED_UNKNOWN_MAX) {
        unknown->more = true;
        free(text);
        return;
    }
    unknown->names[unknown->count++] = text;
}

/* A row of which a member was asked for by no column. */
static void unknown_find(feed_unknown *unknown, const feed_table *table, const json_t *row)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)row, name, value)
    {
        if (!unknown->more && !is_column(table, name)) {
            unknown_note(unknown, table, name);
        }
    }
}

void unknown_free(feed_unknown *unknown)
{
    for (size_t i = 0; i < unknown->count; i++) {
        free(unknown->names[i]);
    }
    *unknown = (feed_unknown){ .count = 0 };
}

/* The cell as JSON, NULL where it is not there. */
static const json_t *cell_find(const feed_table *table, size_t column, const json_t *row)
{
    return json_is_array(row) ? json_array_get(row, column) : json_object_get(row, ivm_table_column_name(table->table, column));
}

bool row_read(const feed_session *feed, const feed_table *table, ivm_change change, const json_t *row, const json_t *fallback,
              feed_changes *changes)
{
    bool strict = feed->options.strict;
    if (!json_is_object(row) && !(json_is_array(row) && json_array_size(row) == table->columns_count)) {
        return line_bad(changes, "a row of %s is an object, or an array of %zu values", table->name, table->columns_count);
    }
    if (strict && json_is_object(row) && !strictly_known(table, row, changes)) {
        return false;
    }
    feed_change *to = &changes->list[changes->count];
    *to = (feed_change){ .table = table, .change = change, .values_count = table->columns_count };
    size_t found = 0;
    for (size_t i = 0; i < table->columns_count; i++) {
        const json_t *cell = cell_find(table, i, row);
        found += cell != NULL;
        cell = cell ? cell : json_object_get(fallback, ivm_table_column_name(table->table, i));
        to->values[i] = ivm_null();
        if (!cell && strict) {
            return line_bad(changes, "%s.%s is not there", table->name, ivm_table_column_name(table->table, i));
        }
        if (cell && !value_read(feed, table, i, cell, &to->values[i], changes)) {
            return false;
        }
    }
    if (found < json_object_size(row)) {
        unknown_find(feed->unknown, table, row);
    }
    changes->count++;
    return true;
}

bool key_read(const feed_session *feed, const feed_table *table, const json_t *key, feed_changes *changes)
{
    bool alone = table->key_count == 1 && json_is_object(key) == 0 && !json_is_array(key);
    bool whole = json_is_array(key) && json_array_size(key) == table->columns_count;
    feed_change *to = &changes->list[changes->count];
    *to = (feed_change){ .table = table, .change = IVM_DELETE_KEY, .values_count = table->key_count };
    if (!alone && !whole && !json_is_object(key)) {
        return line_bad(changes, "a key of %s is an object of its columns", table->name);
    }
    for (size_t i = 0; i < table->key_count; i++) {
        size_t column = table->key[i];
        const json_t *cell = alone ? key : cell_find(table, column, key);
        if (!cell || json_is_null(cell)) {
            return line_bad(changes, "%s.%s, of the key, is %s", table->name, ivm_table_column_name(table->table, column),
                            cell ? "null" : "not there");
        }
        if (!value_read(feed, table, column, cell, &to->values[i], changes)) {
            return false;
        }
    }
    changes->count++;
    return true;
}
