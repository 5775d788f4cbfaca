/* Single values: making them, reading one out of column arrays, and turning one into a cell of a column's type. */
#include <stdio.h>

#include "catalog.h"
#include "wide.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "decimals enter and leave as little endian arrays");
_Static_assert(sizeof(ivm_int128) == sizeof(ivm__wide), "two words, the lower first");

ivm_value ivm_null(void)
{
    return (ivm_value){ .is_null = true };
}

ivm_value ivm_bool(bool value)
{
    return (ivm_value){ .type = IVM_BOOL, .as.boolean = value };
}

ivm_value ivm_int64(int64_t value)
{
    return (ivm_value){ .type = IVM_INT64, .as.int64 = value };
}

ivm_value ivm_float64(double value)
{
    return (ivm_value){ .type = IVM_FLOAT64, .as.float64 = value };
}

ivm_value ivm_string(const char *text)
{
    return text ? ivm_string_sized(text, strlen(text)) : (ivm_value){ .type = IVM_STRING, .is_null = true };
}

ivm_value ivm_string_sized(const char *bytes, size_t size)
{
    bool is_null = !bytes && size > 0;
    return (ivm_value){ .type = IVM_STRING, .is_null = is_null, .as.string = { bytes, is_null ? 0 : size } };
}

ivm_value ivm_date(int32_t days)
{
    return (ivm_value){ .type = IVM_DATE, .as.date = days };
}

ivm_value ivm_timestamp(int64_t microseconds)
{
    return (ivm_value){ .type = IVM_TIMESTAMP, .as.timestamp = microseconds };
}

ivm_value ivm_decimal(ivm_type type, ivm_int128 unscaled)
{
    return (ivm_value){ .type = type, .as.decimal = unscaled };
}

/* ---- Out of column arrays -------------------------------------------------------------------------------------------------------- */

static bool bit_at(const void *bits, size_t at)
{
    return ((const uint8_t *)bits)[at >> 3] >> (at & 7) & 1;
}

/* The arrays may lie anywhere: nothing is read through a typed pointer. */
static void item_read(const void *values, size_t at, size_t size, void *out)
{
    memcpy(out, (const uint8_t *)values + at * size, size);
}

static ivm_value string_read(const ivm_column_data *column, size_t at)
{
    int32_t bounds[2];
    memcpy(bounds, (const uint8_t *)column->offsets + at * sizeof bounds[0], sizeof bounds);
    const char *bytes = column->values; /* NULL where all strings are empty */
    return ivm_string_sized(bytes ? bytes + bounds[0] : bytes, (size_t)(bounds[1] - bounds[0]));
}

ivm_value ivm_rows_value(const ivm_rows *rows, ivm_type type, size_t row, size_t column)
{
    if (!rows || row >= rows->rows_count || column >= rows->columns_count) {
        return ivm_null();
    }
    const ivm_column_data *data = &rows->columns[column];
    size_t at = data->offset + row;
    ivm_value value = { .type = type };
    if (data->validity && !bit_at(data->validity, at)) {
        value.is_null = true;
        return value;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        value.as.boolean = bit_at(data->values, at);
        break;
    case IVM_DATE:
        item_read(data->values, at, sizeof value.as.date, &value.as.date);
        break;
    case IVM_STRING:
        return string_read(data, at);
    case IVM_DECIMAL_KIND:
        item_read(data->values, at, sizeof value.as.decimal, &value.as.decimal);
        break;
    default: /* int64, timestamp, float64: 8 bytes in one union */
        item_read(data->values, at, sizeof value.as.int64, &value.as.int64);
        break;
    }
    return value;
}

/* ---- Into cells ------------------------------------------------------------------------------------------------------------------ */

static bool takes_int64(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_FLOAT64 || IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND;
}

/* An int64 for a column of another numeric type, where it is exact in it. */
static ivm_status int64_cell(ivm_type type, int64_t value, ivm__wide *cell)
{
    if (IVM_TYPE_KIND(type) == IVM_FLOAT64) {
        double nearest = (double)value; /* 2^63 itself is past int64 */
        if (nearest >= 0x1p63 || (int64_t)nearest != value) {
            return IVM_TYPE_MISMATCH;
        }
        *cell = ivm__float_word(nearest);
        return IVM_OK;
    }
    assert(IVM_TYPE_SCALE(type) <= IVM_TYPE_PRECISION(type));
    ivm__wide scaled;
    if (__builtin_mul_overflow((ivm__wide)value, ivm__power_of_ten(IVM_TYPE_SCALE(type)), &scaled) ||
        !ivm__decimal_fits(scaled, IVM_TYPE_PRECISION(type))) {
        return IVM_TYPE_MISMATCH;
    }
    *cell = scaled;
    return IVM_OK;
}

static ivm_status decimal_cell(ivm_type type, ivm_int128 unscaled, ivm__wide *cell)
{
    ivm__wide value;
    memcpy(&value, &unscaled, sizeof value);
    if (!ivm__decimal_fits(value, IVM_TYPE_PRECISION(type))) {
        return IVM_TYPE_MISMATCH;
    }
    *cell = value;
    return IVM_OK;
}

static ivm_status string_cell(ivm__texts *texts, const ivm_value *value, ivm__wide *cell)
{
    const ivm__text *text;
    if (value->as.string.size > IVM_STRING_SIZE_MAX) {
        return IVM_TYPE_MISMATCH;
    }
    IVM_TRY(ivm__texts_intern(texts, value->as.string.bytes, value->as.string.size, &text));
    *cell = (uintptr_t)text;
    return IVM_OK;
}

ivm_status ivm__value_cell(ivm__texts *texts, ivm_type type, const ivm_value *value, ivm__wide *cell)
{
    *cell = 0;
    if (value->type == 0) {
        return value->is_null ? IVM_OK : IVM_TYPE_MISMATCH;
    }
    if (value->type != type) {
        if (value->type != IVM_INT64 || !takes_int64(type)) {
            return IVM_TYPE_MISMATCH;
        }
        return value->is_null ? IVM_OK : int64_cell(type, value->as.int64, cell);
    }
    if (value->is_null) {
        return IVM_OK;
    }
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        *cell = value->as.boolean;
        return IVM_OK;
    case IVM_INT64:
    case IVM_TIMESTAMP:
        *cell = (uint64_t)value->as.int64;
        return IVM_OK;
    case IVM_FLOAT64:
        *cell = ivm__float_word(value->as.float64);
        return IVM_OK;
    case IVM_DATE:
        *cell = (uint64_t)(int64_t)value->as.date;
        return IVM_OK;
    case IVM_STRING:
        return string_cell(texts, value, cell);
    case IVM_DECIMAL_KIND:
        return decimal_cell(type, value->as.decimal, cell);
    default:
        return IVM_TYPE_MISMATCH;
    }
}

void ivm__value_misfit(ivm_type type, const ivm_value *value, char text[IVM__MISFIT_SIZE])
{
    char wanted[IVM_TYPE_TEXT_SIZE], own[IVM_TYPE_TEXT_SIZE] = "", shown[IVM_VALUE_TEXT_SIZE];
    bool string = value->type == IVM_STRING && !value->is_null;
    if (string && type == IVM_STRING) {
        (void)snprintf(text, IVM__MISFIT_SIZE, "a string of %zu bytes, at most %u", value->as.string.size, IVM_STRING_SIZE_MAX);
        return;
    }
    ivm_type_format(type, wanted);
    if (value->type && value->type != type) {
        ivm_type_format(value->type, own);
    }
    ivm_value_format(value, shown, sizeof shown);
    (void)snprintf(text, IVM__MISFIT_SIZE, "%s%s%s%s%s is no %s", own, *own ? " " : "", string ? "\"" : "", shown, string ? "\"" : "",
                   wanted);
}
