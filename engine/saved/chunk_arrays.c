/* Chunks as column arrays. Cost: nothing a cell of 8 or 16 bytes, a copy for bools, dates and strings. See chunk_arrays.h. */
#include "chunk_arrays.h"

static ivm_status validity_make(ivm__arena *arena, const uint8_t *nulls, uint32_t count, const uint8_t **validity)
{
    uint8_t *bits = ivm__arena_allocate(arena, (count + 7) / 8);
    if (!bits) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(bits, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        bits[i / 8] |= (uint8_t)((nulls[i] == 0) << i % 8);
    }
    *validity = bits;
    return IVM_OK;
}

static ivm_status bools_make(ivm__arena *arena, const uint64_t *cells, uint32_t count, ivm_column_data *data)
{
    uint8_t *bits = ivm__arena_allocate(arena, (count + 7) / 8);
    if (!bits) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(bits, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        bits[i / 8] |= (uint8_t)(cells[i] << i % 8);
    }
    data->values = bits;
    return IVM_OK;
}

static ivm_status dates_make(ivm__arena *arena, const uint64_t *cells, uint32_t count, ivm_column_data *data)
{
    int32_t *days = ivm__arena_allocate(arena, count * sizeof *days);
    if (!days) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        days[i] = (int32_t)(int64_t)cells[i];
    }
    data->values = days;
    return IVM_OK;
}

/* Of a null there is no text. */
static size_t text_size(uint64_t cell)
{
    const ivm__text *text = (const ivm__text *)(uintptr_t)cell;
    return text ? text->size : 0;
}

static ivm_status strings_make(ivm__arena *arena, const uint64_t *cells, uint32_t count, ivm_column_data *data)
{
    size_t size = 0;
    int32_t *offsets = ivm__arena_allocate(arena, (count + 1) * sizeof *offsets);
    if (!offsets) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        offsets[i] = (int32_t)size;
        size += text_size(cells[i]);
        if (size > IVM_STRING_SIZE_MAX) {
            return IVM_OVERFLOW;
        }
    }
    offsets[count] = (int32_t)size;
    char *bytes = ivm__arena_allocate(arena, size ? size : 1);
    if (!bytes) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)cells[i];
        if (text && text->size) {
            memcpy(bytes + offsets[i], text->bytes, text->size);
        }
    }
    data->values = bytes;
    data->offsets = offsets;
    return IVM_OK;
}

static ivm_status column_make(ivm__arena *arena, const ivm__vector *in, uint32_t first, uint32_t count, ivm_column_data *data)
{
    const uint64_t *words = (const uint64_t *)in->cells + first;
    *data = (ivm_column_data){ 0 };
    assert(in->cells);
    if (in->nulls) {
        IVM_TRY(validity_make(arena, in->nulls + first, count, &data->validity));
    }
    switch (IVM_TYPE_KIND(in->type)) {
    case IVM_BOOL:
        return bools_make(arena, words, count, data);
    case IVM_DATE:
        return dates_make(arena, words, count, data);
    case IVM_STRING:
        return strings_make(arena, words, count, data);
    case IVM_DECIMAL_KIND:
        data->values = (const ivm__wide *)in->cells + first;
        return IVM_OK;
    default:
        data->values = words;
        return IVM_OK;
    }
}

ivm_status ivm__chunk_arrays(ivm__arena *arena, const ivm__chunk *chunk, uint32_t first, uint32_t count, ivm_rows *rows)
{
    ivm_column_data *columns = ivm__arena_allocate(arena, chunk->columns_count * sizeof *columns);
    int64_t *weights = chunk->weights ? ivm__arena_allocate(arena, count * sizeof *weights) : NULL;
    assert(count > 0 && first + count <= chunk->rows_count);
    if (!columns || (chunk->weights && !weights)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; weights && i < count; i++) {
        weights[i] = (int64_t)chunk->weights[first + i];
    }
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        IVM_TRY(column_make(arena, &chunk->columns[c], first, count, &columns[c]));
    }
    *rows = (ivm_rows){ count, chunk->columns_count, columns, weights };
    return IVM_OK;
}
