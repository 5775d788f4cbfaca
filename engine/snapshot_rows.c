/* A snapshot's rows as column arrays: a thousand row pointers at a time, fewer where strings are long, then column by column into Arrow's
 * layout. Buffers are made at the first row and used again; strings make them grow, and a lookup that finds many rows. */
#include "snapshot.h"

#define CHUNK_TEXT_BYTES_MAX (16u << 20) /* of strings, but for a row alone */

uint64_t ivm__snapshot_ids(const ivm_snapshot *snapshot)
{
    return snapshot->pages ? snapshot->rows_end : snapshot->copied_count;
}

static int64_t heavy_weight(const ivm_snapshot *snapshot, ivm__row_id row)
{
    uint32_t low = 0, high = snapshot->heavy_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (snapshot->heavy[middle].row < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert(low < snapshot->heavy_count && snapshot->heavy[low].row == row);
    return snapshot->heavy[low].weight;
}

const uint8_t *ivm__snapshot_row(const ivm_snapshot *snapshot, uint64_t id, int64_t *weight)
{
    if (!snapshot->pages) {
        *weight = snapshot->copied_weights[id];
        return snapshot->copied + id * snapshot->layout->stride;
    }
    const uint8_t *page = snapshot->pages->rows[id >> snapshot->page_shift];
    const uint8_t *row = page + (id & snapshot->page_mask) * snapshot->layout->stride;
    int32_t narrow = ivm__header_weight(ivm__row_header_of(row));
    *weight = narrow == IVM__WEIGHT_HEAVY ? heavy_weight(snapshot, (ivm__row_id)id) : narrow;
    return row;
}

static size_t value_size(ivm_type type)
{
    return IVM_TYPE_KIND(type) == IVM_DECIMAL_KIND ? 16 : IVM_TYPE_KIND(type) == IVM_STRING ? 0 : 8;
}

static size_t validity_size(uint64_t rows)
{
    return (rows + 7) / 8;
}

static ivm_status output_column_make(ivm_snapshot *snapshot, ivm_type type, ivm__output_column *column)
{
    ivm__memory *memory = snapshot->memory;
    column->validity = ivm__allocate(memory, validity_size(snapshot->output_rows));
    column->values = ivm__allocate(memory, snapshot->output_rows * value_size(type));
    bool made = column->validity && column->values;
    if (made && IVM_TYPE_KIND(type) == IVM_STRING) {
        column->offsets = ivm__allocate(memory, (snapshot->output_rows + 1) * sizeof *column->offsets);
        made = column->offsets != NULL;
    }
    return made ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static ivm_status output_make(ivm_snapshot *snapshot)
{
    ivm__memory *memory = snapshot->memory;
    uint64_t rows = snapshot->output_rows;
    uint32_t count = snapshot->layout->columns_count;
    snapshot->output = ivm__allocate_zeroed(memory, count * sizeof *snapshot->output);
    snapshot->columns = ivm__allocate_zeroed(memory, count * sizeof *snapshot->columns);
    snapshot->weights = ivm__allocate(memory, rows * sizeof *snapshot->weights);
    snapshot->rows = ivm__allocate(memory, rows * sizeof *snapshot->rows);
    snapshot->cells = ivm__allocate(memory, rows * sizeof *snapshot->cells);
    snapshot->nulls = ivm__allocate(memory, rows);
    if (!snapshot->output || !snapshot->columns || !snapshot->weights || !snapshot->rows || !snapshot->cells || !snapshot->nulls) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < count; c++) {
        IVM_TRY(output_column_make(snapshot, snapshot->layout->types[c], &snapshot->output[c]));
    }
    return IVM_OK;
}

ivm_status ivm__snapshot_output_make(ivm_snapshot *snapshot, uint64_t rows)
{
    if (snapshot->output_rows && rows <= snapshot->output_rows) {
        return IVM_OK;
    }
    ivm__snapshot_output_free(snapshot);
    snapshot->output_rows = rows > IVM__CHUNK_ROWS ? rows : IVM__CHUNK_ROWS; /* said first, so that freeing gives the right sizes */
    ivm_status status = output_make(snapshot);
    if (status != IVM_OK) {
        ivm__snapshot_output_free(snapshot);
    }
    return status;
}

void ivm__snapshot_output_free(ivm_snapshot *snapshot)
{
    ivm__memory *memory = snapshot->memory;
    uint64_t rows = snapshot->output_rows;
    uint32_t count = snapshot->layout->columns_count;
    for (uint32_t c = 0; snapshot->output && c < count; c++) {
        ivm__output_column *column = &snapshot->output[c];
        ivm__release(memory, column->validity, validity_size(rows));
        ivm__release(memory, column->values, rows * value_size(snapshot->layout->types[c]));
        ivm__release(memory, column->offsets, (rows + 1) * sizeof *column->offsets);
        ivm__release(memory, column->bytes, column->bytes_capacity);
    }
    ivm__release(memory, snapshot->output, count * sizeof *snapshot->output);
    ivm__release(memory, snapshot->columns, count * sizeof *snapshot->columns);
    ivm__release(memory, snapshot->weights, rows * sizeof *snapshot->weights);
    ivm__release(memory, snapshot->rows, rows * sizeof *snapshot->rows);
    ivm__release(memory, snapshot->cells, rows * sizeof *snapshot->cells);
    ivm__release(memory, snapshot->nulls, rows);
    snapshot->output = NULL;
    snapshot->columns = NULL;
    snapshot->weights = NULL;
    snapshot->rows = NULL;
    snapshot->cells = NULL;
    snapshot->nulls = NULL;
    snapshot->output_rows = 0;
}

static void write_validity(const uint8_t *nulls, uint32_t count, uint8_t *validity)
{
    memset(validity, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        validity[i / 8] |= (uint8_t)((nulls[i] == 0) << (i % 8));
    }
}

static ivm_status write_strings(ivm_snapshot *snapshot, ivm__output_column *column, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)snapshot->cells[i];
        column->offsets[i] = (int32_t)size;
        size += text ? text->size : 0;
        if (size > IVM_STRING_SIZE_MAX) {
            return IVM_OVERFLOW;
        }
    }
    column->offsets[count] = (int32_t)size;
    if (size > column->bytes_capacity) {
        size_t capacity = size + size / 2;
        char *grown = ivm__resize(snapshot->memory, column->bytes, column->bytes_capacity, capacity);
        if (!grown) {
            return IVM_OUT_OF_MEMORY;
        }
        column->bytes = grown;
        column->bytes_capacity = capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)snapshot->cells[i];
        if (text && text->size) {
            memcpy(column->bytes + column->offsets[i], text->bytes, text->size);
        }
    }
    return IVM_OK;
}

static void write_bits(const uint64_t *cells, uint32_t count, uint8_t *bits)
{
    memset(bits, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        bits[i / 8] |= (uint8_t)(cells[i] << (i % 8));
    }
}

static void write_days(const uint64_t *cells, uint32_t count, int32_t *days)
{
    for (uint32_t i = 0; i < count; i++) {
        days[i] = (int32_t)(int64_t)cells[i];
    }
}

static ivm_status write_column(ivm_snapshot *snapshot, uint32_t c, uint32_t count)
{
    const ivm__layout *layout = snapshot->layout;
    ivm__output_column *column = &snapshot->output[c];
    ivm_column_data *data = &snapshot->columns[c];
    uint32_t kind = IVM_TYPE_KIND(layout->types[c]);
    bool in_place = kind != IVM_BOOL && kind != IVM_DATE && kind != IVM_STRING;
    ivm__vector vector = { layout->types[c], in_place ? column->values : snapshot->cells, snapshot->nulls };
    ivm__layout_gather(layout, c, snapshot->rows, count, &vector);
    *data = (ivm_column_data){ .values = column->values };
    if (layout->null_words) {
        write_validity(snapshot->nulls, count, column->validity);
        data->validity = column->validity;
    }
    if (kind == IVM_BOOL) {
        write_bits(snapshot->cells, count, column->values);
    } else if (kind == IVM_DATE) {
        write_days(snapshot->cells, count, column->values);
    } else if (kind == IVM_STRING) {
        IVM_TRY(write_strings(snapshot, column, count));
        data->values = column->bytes ? column->bytes : "";
        data->offsets = column->offsets;
    }
    return IVM_OK;
}

ivm_status ivm__snapshot_output(ivm_snapshot *snapshot, uint32_t count, ivm_rows *rows)
{
    for (uint32_t c = 0; c < snapshot->layout->columns_count; c++) {
        IVM_TRY(write_column(snapshot, c, count));
    }
    *rows = (ivm_rows){ count, snapshot->layout->columns_count, snapshot->columns, snapshot->weights };
    return IVM_OK;
}

static size_t text_bytes(const ivm__layout *layout, const uint8_t *row)
{
    size_t size = 0;
    for (uint32_t i = 0; i < layout->texts_count; i++) {
        uint64_t word;
        memcpy(&word, row + layout->texts[i], sizeof word);
        const ivm__text *text = (const ivm__text *)(uintptr_t)word;
        size += text ? text->size : 0;
    }
    return size;
}

/* The rows of the next chunk; how many. */
static uint32_t rows_take(ivm_snapshot *snapshot)
{
    uint32_t count = 0;
    uint64_t ids = ivm__snapshot_ids(snapshot);
    size_t bytes = 0;
    for (; snapshot->next < ids && count < IVM__CHUNK_ROWS; snapshot->next++) {
        int64_t weight;
        const uint8_t *row = ivm__snapshot_row(snapshot, snapshot->next, &weight);
        if (weight == 0) {
            continue;
        }
        if (snapshot->layout->texts_count) {
            bytes += text_bytes(snapshot->layout, row);
            if (bytes > CHUNK_TEXT_BYTES_MAX && count > 0) {
                break;
            }
        }
        snapshot->rows[count] = row;
        snapshot->weights[count++] = weight;
    }
    return count;
}

bool ivm_snapshot_next(ivm_snapshot *snapshot, ivm_rows *rows)
{
    uint32_t count = 0;
    snapshot->status = ivm__snapshot_output_make(snapshot, IVM__CHUNK_ROWS);
    if (snapshot->status == IVM_OK) {
        count = rows_take(snapshot);
    }
    if (count > 0) {
        snapshot->status = ivm__snapshot_output(snapshot, count, rows);
    }
    if (count > 0 && snapshot->status == IVM_OK) {
        return true;
    }
    snapshot->next = 0; /* the end, early or not: then from the start again */
    return false;
}
