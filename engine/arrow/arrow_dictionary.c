/* Arrays with a dictionary: its values are read as a column, once, and then gathered by index. Cost: a copy a row. */
#include "arrow_read.h"

/* The rows' indexes on their way to the column. */
typedef struct gathering {
    const ivm__arrow_reading *in;
    ivm_column_data values; /* the dictionary's */
    size_t values_count;
    uint32_t *indexes; /* one a row; of a null 0 */
    uint8_t *validity; /* NULL: no row is null */
} gathering;

static ivm_status validity_want(gathering *it)
{
    const ivm__arrow_reading *in = it->in;
    if (!it->validity) {
        it->validity = ivm__arrow_block(in->batch, (in->rows + 7) / 8);
        if (it->validity) {
            memset(it->validity, 0xff, (in->rows + 7) / 8);
        }
    }
    return it->validity ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static ivm_status index_fail(const ivm__arrow_reading *in, size_t row, size_t values_count)
{
    return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: the index of row %zu is outside the dictionary, which has %zu values",
                     in->where, row, values_count);
}

/* A null is one of the array's, or one of the dictionary's. */
static ivm_status indexes_read(gathering *it, const ivm__arrow_form *form)
{
    const ivm__arrow_reading *in = it->in;
    size_t first = (size_t)in->array->offset + in->at;
    IVM_TRY(ivm__arrow_validity_copy(in, &it->validity));
    if (it->values.validity) {
        IVM_TRY(validity_want(it));
    }
    for (size_t i = 0; i < in->rows; i++) {
        ivm__wide index;
        if (it->validity && !ivm__arrow_bit(it->validity, i)) {
            continue;
        }
        (void)ivm__arrow_whole(form, in->array->buffers[1], first + i, &index);
        if (index < 0 || index >= (ivm__wide)it->values_count) {
            return index_fail(in, i, it->values_count);
        }
        if (it->values.validity && !ivm__arrow_bit(it->values.validity, it->values.offset + (size_t)index)) {
            it->validity[i >> 3] &= (uint8_t) ~(1u << (i & 7));
            continue;
        }
        it->indexes[i] = (uint32_t)index;
    }
    return IVM_OK;
}

static bool is_null(const gathering *it, size_t row)
{
    return it->validity && !ivm__arrow_bit(it->validity, row);
}

/* ---- Values by index ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status fixed_gather(const gathering *it, uint32_t width, ivm_column_data *data)
{
    const uint8_t *from = it->values.values;
    uint8_t *made = ivm__arrow_block(it->in->batch, it->in->rows * width);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < it->in->rows; i++) {
        if (!is_null(it, i)) {
            memcpy(made + i * width, from + (it->values.offset + it->indexes[i]) * width, width);
        }
    }
    *data = (ivm_column_data){ .values = made, .validity = it->validity };
    return IVM_OK;
}

static ivm_status bits_gather(const gathering *it, ivm_column_data *data)
{
    uint8_t *made = ivm__arrow_block(it->in->batch, (it->in->rows + 7) / 8);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < it->in->rows; i++) {
        if (!is_null(it, i)) {
            made[i >> 3] |= (uint8_t)(ivm__arrow_bit(it->values.values, it->values.offset + it->indexes[i]) << (i & 7));
        }
    }
    *data = (ivm_column_data){ .values = made, .validity = it->validity };
    return IVM_OK;
}

/* Where the string of a row is among the dictionary's bytes. */
static bool string_find(const gathering *it, size_t row, const uint8_t **bytes, int32_t *size)
{
    int32_t bounds[2];
    memcpy(bounds, (const uint8_t *)it->values.offsets + (it->values.offset + it->indexes[row]) * sizeof bounds[0], sizeof bounds);
    if (bounds[0] < 0 || bounds[1] < bounds[0] || (bounds[1] > bounds[0] && !it->values.values)) {
        return false;
    }
    *size = bounds[1] - bounds[0];
    *bytes = *size ? (const uint8_t *)it->values.values + bounds[0] : NULL;
    return true;
}

static ivm_status strings_measure(const gathering *it, int32_t *offsets)
{
    const ivm__arrow_reading *in = it->in;
    size_t total = 0;
    for (size_t i = 0; i < in->rows; i++) {
        const uint8_t *bytes;
        int32_t size = 0;
        if (!is_null(it, i) && !string_find(it, i, &bytes, &size)) {
            return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: the dictionary's offsets of value %u, of row %zu, are wrong",
                             in->where, it->indexes[i], i);
        }
        total += (size_t)size;
        if (total > INT32_MAX) {
            return ivm__arrow_strings_fail(in);
        }
        offsets[i + 1] = (int32_t)total;
    }
    return IVM_OK;
}

static ivm_status strings_gather(const gathering *it, ivm_column_data *data)
{
    size_t rows = it->in->rows;
    int32_t *offsets = ivm__arrow_block(it->in->batch, (rows + 1) * sizeof *offsets);
    if (!offsets) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(strings_measure(it, offsets));
    uint8_t *made = ivm__arrow_block(it->in->batch, (size_t)offsets[rows]);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < rows; i++) {
        const uint8_t *bytes;
        int32_t size;
        if (!is_null(it, i) && string_find(it, i, &bytes, &size) && size > 0) {
            memcpy(made + offsets[i], bytes, (size_t)size);
        }
    }
    *data = (ivm_column_data){ .values = made, .validity = it->validity, .offsets = offsets };
    return IVM_OK;
}

static ivm_status gather(const gathering *it, ivm_column_data *data)
{
    if (it->in->type == IVM_STRING) {
        return strings_gather(it, data);
    }
    return it->in->type == IVM_BOOL ? bits_gather(it, data) : fixed_gather(it, ivm__array_width(it->in->type), data);
}

/* ---- Together -------------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__arrow_dictionary_read(const ivm__arrow_reading *in, const ivm__arrow_form *indexes, ivm_column_data *data)
{
    *data = (ivm_column_data){ .values = NULL };
    IVM_TRY(ivm__arrow_array_check(in, indexes->layout));
    const struct ArrowArray *dictionary = in->array->dictionary;
    if (!dictionary || !dictionary->release || dictionary->length < 0 || dictionary->length > (int64_t)UINT32_MAX) {
        return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT,
                         "%s: the array has no dictionary, or one that was released or of a length that none has", in->where);
    }
    ivm__arrow_reading values = *in;
    values.array = dictionary;
    values.at = 0;
    values.rows = (size_t)dictionary->length;
    gathering it = { .in = in, .values_count = values.rows };
    IVM_TRY(ivm__arrow_read(&values, &it.values));
    if (in->rows == 0) {
        return IVM_OK;
    }
    it.indexes = ivm__arrow_block(in->batch, in->rows * sizeof *it.indexes);
    if (!it.indexes) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(indexes_read(&it, indexes));
    return gather(&it, data);
}
