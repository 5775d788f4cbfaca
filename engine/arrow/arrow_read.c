/* Arrow arrays as columns: what an array must be, and its values in place or converted. Row r of a column is at array->offset + at + r in every buffer; buffers
 * may be unaligned. Cost: nothing a value in place, one pass for the rest. */
#include "arrow_read.h"

#include <stdio.h>

#include "wide.h"

/* No array is longer: sizes in bytes stay within 64 bits. */
#define LENGTH_MAX (INT64_MAX / 64)

/* ---- What an array must be ------------------------------------------------------------------------------------------------------------- */

static ivm_status array_fail(const ivm__arrow_reading *in, const char *what)
{
    return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: the array %s", in->where, what);
}

static ivm_status lengths_check(const ivm__arrow_reading *in)
{
    const struct ArrowArray *array = in->array;
    if (array->length < 0 || array->offset < 0 || array->length > LENGTH_MAX || array->offset > LENGTH_MAX) {
        return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: an array of length %lld and offset %lld", in->where,
                         (long long)array->length, (long long)array->offset);
    }
    if (array->null_count < -1 || array->null_count > array->length) {
        return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: %lld nulls in an array of length %lld", in->where,
                         (long long)array->null_count, (long long)array->length);
    }
    if ((uint64_t)array->length < in->rows || (uint64_t)array->length - in->rows < in->at) {
        return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: an array of length %lld, where rows %zu to %zu are wanted",
                         in->where, (long long)array->length, in->at, in->at + in->rows);
    }
    return IVM_OK;
}

static ivm_status buffers_check(const ivm__arrow_reading *in, ivm__arrow_layout layout)
{
    const struct ArrowArray *array = in->array;
    int64_t wanted = layout == IVM__ARROW_NULLS ? 0 : layout == IVM__ARROW_STRINGS || layout == IVM__ARROW_VIEWS ? 3 : 2;
    bool more = layout == IVM__ARROW_VIEWS && array->n_buffers > wanted;
    if (array->n_buffers != wanted && !more) {
        return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: an array of %lld buffers, where its format has %lld", in->where,
                         (long long)array->n_buffers, (long long)wanted);
    }
    if (wanted && !array->buffers) {
        return array_fail(in, "has no list of buffers");
    }
    if (wanted && in->rows && !array->buffers[1]) {
        return array_fail(in, layout == IVM__ARROW_STRINGS ? "has no buffer of offsets" : "has no buffer of values");
    }
    if (wanted && array->null_count > 0 && !array->buffers[0]) {
        return array_fail(in, "has nulls and no validity buffer");
    }
    return IVM_OK;
}

ivm_status ivm__arrow_array_check(const ivm__arrow_reading *in, ivm__arrow_layout layout)
{
    if (!in->array || !in->array->release) {
        return array_fail(in, in->array ? "was released" : "is NULL");
    }
    IVM_TRY(lengths_check(in));
    if (in->array->n_children != 0) {
        return array_fail(in, "has children, which its format has not");
    }
    return buffers_check(in, layout);
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------------------------------- */

#define HEAD_SIZE ((sizeof(ivm__kept) + 15) & ~(size_t)15)

void *ivm__arrow_block(ivm_batch *batch, size_t size)
{
    ivm__kept *held = ivm__batch_hold(batch, HEAD_SIZE + size);
    return held ? memset((uint8_t *)held + HEAD_SIZE, 0, size) : NULL;
}

ivm_status ivm__arrow_validity_copy(const ivm__arrow_reading *in, uint8_t **validity)
{
    const uint8_t *bits = in->array->n_buffers ? in->array->buffers[0] : NULL;
    size_t first = (size_t)in->array->offset + in->at;
    *validity = NULL;
    if (!bits) {
        return IVM_OK;
    }
    uint8_t *copy = ivm__arrow_block(in->batch, (in->rows + 7) / 8);
    if (!copy) {
        return IVM_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < in->rows; i++) {
        copy[i >> 3] |= (uint8_t)(ivm__arrow_bit(bits, first + i) << (i & 7));
    }
    *validity = copy;
    return IVM_OK;
}

/* ---- Numbers --------------------------------------------------------------------------------------------------------------------------- */

bool ivm__arrow_whole(const ivm__arrow_form *form, const uint8_t *values, size_t at, ivm__wide *number)
{
    const uint8_t *value = values + at * form->width;
    uint64_t low = 0;
    if (form->width >= 16) {
        ivm__wide upper;
        memcpy(number, value, sizeof *number);
        memcpy(&upper, value + form->width - sizeof upper, sizeof upper);
        return form->width == 16 || upper == *number >> 127;
    }
    memcpy(&low, value, form->width);
    uint32_t unused = 64 - 8 * form->width;
    *number = form->is_signed ? (ivm__wide)((int64_t)(low << unused) >> unused) : (ivm__wide)low;
    return true;
}

/* A whole number of one scale in another; false where it is not exact or has more than 38 digits. */
static bool rescale(ivm__wide *number, uint32_t from, uint32_t to)
{
    if (to >= from) {
        ivm__wide factor = ivm__power_of_ten(to - from);
        return !__builtin_mul_overflow(*number, factor, number);
    }
    ivm__wide factor = ivm__power_of_ten(from - to);
    bool exact = *number % factor == 0;
    *number /= factor;
    return exact;
}

/* A whole number as the column's value; false where it has none that is exact. */
static bool whole_put(const ivm__arrow_reading *in, ivm__wide number, uint8_t *to)
{
    if (IVM_TYPE_KIND(in->type) == IVM_FLOAT64) {
        double value = (double)number;
        memcpy(to, &value, sizeof value);
        return (ivm__wide)value == number; /* of 64 bits at most: no infinity */
    }
    bool decimal = IVM_TYPE_KIND(in->type) == IVM_DECIMAL_KIND;
    if (!rescale(&number, in->form.scale, decimal ? IVM_TYPE_SCALE(in->type) : 0)) {
        return false;
    }
    memcpy(to, &number, ivm__array_width(in->type));
    return decimal ? ivm__decimal_fits(number, IVM_TYPE_PRECISION(in->type)) : number == (int64_t)number;
}

static bool float_put(const uint8_t *value, uint8_t *to)
{
    float narrow;
    memcpy(&narrow, value, sizeof narrow);
    double wide = narrow;
    memcpy(to, &wide, sizeof wide);
    return true;
}

static bool ticks_put(const ivm__arrow_reading *in, const uint8_t *value, uint8_t *to)
{
    int64_t ticks;
    memcpy(&ticks, value, sizeof ticks);
    if (ticks % in->form.divisor || __builtin_mul_overflow(ticks / in->form.divisor, in->form.multiplier, &ticks)) {
        return false;
    }
    memcpy(to, &ticks, ivm__array_width(in->type)); /* the lowest bytes */
    return in->type == IVM_TIMESTAMP || ticks == (int32_t)ticks;
}

static bool value_put(const ivm__arrow_reading *in, const uint8_t *values, size_t at, uint8_t *to)
{
    ivm__wide number;
    switch (in->form.layout) {
    case IVM__ARROW_WHOLE:
        return ivm__arrow_whole(&in->form, values, at, &number) && whole_put(in, number, to);
    case IVM__ARROW_FLOATS:
        return float_put(values + at * in->form.width, to);
    default:
        assert(in->form.layout == IVM__ARROW_TICKS);
        return ticks_put(in, values + at * in->form.width, to);
    }
}

/* The number itself; where it has more digits than any decimal, that it has. */
static void number_text(const ivm__arrow_reading *in, const uint8_t *values, size_t at, char text[IVM_VALUE_TEXT_SIZE])
{
    ivm__wide number = 0;
    if (in->form.layout == IVM__ARROW_TICKS) {
        int64_t ticks;
        memcpy(&ticks, values + at * in->form.width, sizeof ticks);
        number = ticks;
    } else if (!ivm__arrow_whole(&in->form, values, at, &number) || !ivm__decimal_fits(number, IVM_DECIMAL_PRECISION_MAX)) {
        (void)snprintf(text, IVM_VALUE_TEXT_SIZE, "a number of more than %d digits", IVM_DECIMAL_PRECISION_MAX);
        return;
    }
    ivm_value value = { .type = IVM_DECIMAL(IVM_DECIMAL_PRECISION_MAX, in->form.scale) };
    memcpy(&value.as.decimal, &number, sizeof number);
    ivm_value_format(&value, text, IVM_VALUE_TEXT_SIZE);
}

static ivm_status value_fail(const ivm__arrow_reading *in, const uint8_t *values, size_t at, size_t row)
{
    char type[IVM_TYPE_TEXT_SIZE], text[IVM_VALUE_TEXT_SIZE];
    int64_t ticks = 0;
    number_text(in, values, at, text);
    ivm_type_format(in->type, type);
    if (in->form.layout == IVM__ARROW_TICKS) {
        memcpy(&ticks, values + at * in->form.width, sizeof ticks);
        ticks %= in->form.divisor;
    }
    return ivm__fail(&in->batch->mistake, IVM_TYPE_MISMATCH, "%s: %s of format \"%s\" in row %zu is no %s", in->where, text, in->format,
                     row,
                     !ticks                      ? type
                     : in->type == IVM_TIMESTAMP ? "whole number of microseconds"
                                                 : "whole number of days");
}

static ivm_status numbers_read(const ivm__arrow_reading *in, ivm_column_data *data)
{
    const uint8_t *values = in->array->buffers[1];
    size_t first = (size_t)in->array->offset + in->at, width = ivm__array_width(in->type);
    uint8_t *validity, *made = ivm__arrow_block(in->batch, in->rows * width);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__arrow_validity_copy(in, &validity));
    for (size_t i = 0; i < in->rows; i++) {
        bool is_null = validity && !ivm__arrow_bit(validity, i);
        if (!is_null && !value_put(in, values, first + i, made + i * width)) {
            return value_fail(in, values, first + i, i);
        }
    }
    *data = (ivm_column_data){ .values = made, .validity = validity };
    return IVM_OK;
}

/* ---- Columns --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status nulls_read(const ivm__arrow_reading *in, ivm_column_data *data)
{
    bool strings = in->type == IVM_STRING;
    size_t width = ivm__array_width(in->type);
    uint8_t *validity = ivm__arrow_block(in->batch, (in->rows + 7) / 8);
    uint8_t *values =
        validity ? ivm__arrow_block(in->batch, strings ? (in->rows + 1) * sizeof(int32_t) : in->rows * (width ? width : 1)) : NULL;
    if (!values) {
        return IVM_OUT_OF_MEMORY;
    }
    *data = (ivm_column_data){ .validity = validity, .values = strings ? NULL : values, .offsets = strings ? (int32_t *)values : NULL };
    return IVM_OK;
}

static void in_place(const ivm__arrow_reading *in, ivm_column_data *data)
{
    const void **buffers = in->array->buffers;
    bool strings = in->form.layout == IVM__ARROW_STRINGS;
    *data = (ivm_column_data){ .values = buffers[strings ? 2 : 1],
                               .validity = buffers[0],
                               .offsets = strings ? buffers[1] : NULL,
                               .offset = (size_t)in->array->offset + in->at };
}

ivm_status ivm__arrow_read(const ivm__arrow_reading *in, ivm_column_data *data)
{
    *data = (ivm_column_data){ .values = NULL };
    IVM_TRY(ivm__arrow_array_check(in, in->form.layout));
    if (in->array->dictionary) {
        return array_fail(in, "has a dictionary, which its schema has not");
    }
    if (in->rows == 0) {
        return IVM_OK;
    }
    if (ivm__arrow_form_serves(&in->form, in->type)) {
        in_place(in, data);
        return IVM_OK;
    }
    switch (in->form.layout) {
    case IVM__ARROW_NULLS:
        return nulls_read(in, data);
    case IVM__ARROW_STRINGS:
        return ivm__arrow_large_read(in, data);
    case IVM__ARROW_VIEWS:
        return ivm__arrow_views_read(in, data);
    default:
        return numbers_read(in, data);
    }
}
