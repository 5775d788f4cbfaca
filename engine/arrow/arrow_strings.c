/* Strings whose offsets have 64 bits, and views, as strings with offsets of 32: large ones keep their bytes where they are and get offsets that count from the
 * first of them; views (size, then the bytes themselves up to 12, or a prefix, a buffer and a place in it) are copied. */
#include "arrow_read.h"

#define VIEW_SIZE 16u
#define VIEW_INLINE_MAX 12

ivm_status ivm__arrow_strings_fail(const ivm__arrow_reading *in)
{
    return ivm__fail(&in->batch->mistake, IVM_OVERFLOW, "%s: an array whose strings come to more than %u bytes", in->where,
                     IVM_STRING_SIZE_MAX);
}

static ivm_status string_fail(const ivm__arrow_reading *in, const char *what, size_t row)
{
    return ivm__fail(&in->batch->mistake, IVM_INVALID_ARGUMENT, "%s: %s of row %zu %s wrong", in->where, what, row,
                     what[strlen(what) - 1] == 's' ? "are" : "is");
}

/* ---- Offsets of 64 bits ------------------------------------------------------------------------------------------------------------------ */

static int64_t offset_at(const uint8_t *offsets, size_t at)
{
    int64_t offset;
    memcpy(&offset, offsets + at * sizeof offset, sizeof offset);
    return offset;
}

ivm_status ivm__arrow_large_read(const ivm__arrow_reading *in, ivm_column_data *data)
{
    const uint8_t *offsets = in->array->buffers[1], *bytes = in->array->buffers[2];
    size_t first = (size_t)in->array->offset + in->at;
    uint8_t *validity;
    int32_t *made = ivm__arrow_block(in->batch, (in->rows + 1) * sizeof *made);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__arrow_validity_copy(in, &validity));
    int64_t start = offset_at(offsets, first), before = start;
    for (size_t i = 0; i < in->rows; i++) {
        int64_t end = offset_at(offsets, first + i + 1);
        if (before < 0 || end < before || (end > before && !bytes)) {
            return string_fail(in, "offsets", i);
        }
        if (end - start > INT32_MAX) {
            return ivm__arrow_strings_fail(in);
        }
        made[i + 1] = (int32_t)(end - start);
        before = end;
    }
    bool any = made[in->rows] > 0; /* else the offsets are those of no byte, and may be of any place */
    *data = (ivm_column_data){ .values = any ? bytes + start : NULL, .validity = validity, .offsets = made };
    return IVM_OK;
}

/* ---- Views ----------------------------------------------------------------------------------------------------------------------------- */

/* Of the view at this place; false: it lies in no buffer. */
static bool view_find(const struct ArrowArray *array, size_t at, const uint8_t **bytes, int32_t *size)
{
    const uint8_t *view = (const uint8_t *)array->buffers[1] + at * VIEW_SIZE;
    int32_t place[2]; /* buffer, offset */
    memcpy(size, view, sizeof *size);
    if (*size <= VIEW_INLINE_MAX) {
        *bytes = view + sizeof *size;
        return *size >= 0;
    }
    memcpy(place, view + 2 * sizeof *size, sizeof place);
    int64_t buffers = array->n_buffers - 3;
    const uint8_t *sizes = array->buffers[array->n_buffers - 1];
    if (place[0] < 0 || place[0] >= buffers || place[1] < 0 || !sizes || !array->buffers[2 + place[0]]) {
        return false;
    }
    *bytes = (const uint8_t *)array->buffers[2 + place[0]] + place[1];
    return (int64_t)place[1] + *size <= offset_at(sizes, (size_t)place[0]);
}

static ivm_status views_measure(const ivm__arrow_reading *in, const uint8_t *validity, int32_t *offsets)
{
    size_t first = (size_t)in->array->offset + in->at, total = 0;
    for (size_t i = 0; i < in->rows; i++) {
        const uint8_t *bytes;
        int32_t size = 0;
        bool is_null = validity && !ivm__arrow_bit(validity, i);
        if (!is_null && !view_find(in->array, first + i, &bytes, &size)) {
            return string_fail(in, "the view", i);
        }
        total += (size_t)size;
        if (total > INT32_MAX) {
            return ivm__arrow_strings_fail(in);
        }
        offsets[i + 1] = (int32_t)total;
    }
    return IVM_OK;
}

ivm_status ivm__arrow_views_read(const ivm__arrow_reading *in, ivm_column_data *data)
{
    size_t first = (size_t)in->array->offset + in->at;
    uint8_t *validity;
    int32_t *offsets = ivm__arrow_block(in->batch, (in->rows + 1) * sizeof *offsets);
    if (!offsets) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__arrow_validity_copy(in, &validity));
    IVM_TRY(views_measure(in, validity, offsets));
    uint8_t *made = ivm__arrow_block(in->batch, (size_t)offsets[in->rows]);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < in->rows; i++) {
        const uint8_t *bytes;
        int32_t size;
        if (offsets[i + 1] > offsets[i] && view_find(in->array, first + i, &bytes, &size)) {
            memcpy(made + offsets[i], bytes, (size_t)size);
        }
    }
    *data = (ivm_column_data){ .values = made, .validity = validity, .offsets = offsets };
    return IVM_OK;
}
