/* A snapshot's rows as column arrays: a thousand row pointers at a time, fewer where strings are long, then column by column into Arrow's
 * layout. Buffers are made at the first row and used again; strings make them grow, and a lookup that finds many rows. */
#include "snapshot.h"

#include "store_inside.h"

#define CHUNK_TEXT_BYTES_MAX (16u << 20) /* of strings, but for a row alone */
#define PREFETCH_AHEAD 12u

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
    uint32_t count = snapshot->shared.rows.layout->columns_count;
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
        IVM_TRY(output_column_make(snapshot, snapshot->shared.rows.layout->types[c], &snapshot->output[c]));
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
    if (!snapshot->output_rows) {
        return;
    }
    ivm__memory *memory = snapshot->memory;
    uint64_t rows = snapshot->output_rows;
    uint32_t count = snapshot->shared.rows.layout->columns_count;
    for (uint32_t c = 0; snapshot->output && c < count; c++) {
        ivm__output_column *column = &snapshot->output[c];
        ivm__release(memory, column->validity, validity_size(rows));
        ivm__release(memory, column->values, rows * value_size(snapshot->shared.rows.layout->types[c]));
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
    const ivm__layout *layout = snapshot->shared.rows.layout;
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
    for (uint32_t c = 0; c < snapshot->shared.rows.layout->columns_count; c++) {
        IVM_TRY(write_column(snapshot, c, count));
    }
    *rows = (ivm_rows){ count, snapshot->shared.rows.layout->columns_count, snapshot->columns, snapshot->weights };
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

/* How many places there are, some of them without a row. */
static uint64_t snapshot_places(const ivm_snapshot *snapshot)
{
    return snapshot->order ? snapshot->order_count : snapshot->shared.rows.end;
}

/* The first sum at or past the place. */
static uint32_t sum_find(const ivm_snapshot *snapshot, uint64_t place)
{
    uint32_t low = 0, high = snapshot->sums_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (snapshot->sums[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The row at a place of the order. *sum moves on. */
static const uint8_t *ordered_row(const ivm_snapshot *snapshot, uint64_t place, uint32_t *sum, int64_t *weight)
{
    if (ivm__likely(place + PREFETCH_AHEAD < snapshot->order_count)) {
        ivm__prefetch(ivm__row_pages_at(&snapshot->shared.rows, snapshot->order[place + PREFETCH_AHEAD]));
    }
    const uint8_t *row = ivm__snapshot_row(snapshot, snapshot->order[place], weight);
    if (*sum < snapshot->sums_count && snapshot->sums[*sum].place == place) {
        *weight = snapshot->sums[(*sum)++].weight;
    }
    return row;
}

static const uint8_t *next_row(const ivm_snapshot *snapshot, ivm__row_id id, const uint8_t *before, int64_t *weight)
{
    const uint8_t *row = ivm__row_pages_next(&snapshot->shared.rows, id, before);
    *weight = ivm__row_pages_weight(&snapshot->shared.rows, id, row);
    return row;
}

/* Rows from *place on, as many as come before `end` and fit a chunk, of `text_bytes_max` in strings, but for a row alone. */
static uint32_t rows_take(ivm_snapshot *snapshot, uint64_t *place, uint64_t end, size_t text_bytes_max)
{
    uint32_t count = 0, sum = snapshot->order ? sum_find(snapshot, *place) : 0;
    size_t bytes = 0;
    const uint8_t *row = NULL;
    for (; *place < end && count < IVM__CHUNK_ROWS; ++*place) {
        int64_t weight;
        row = snapshot->order ? ordered_row(snapshot, *place, &sum, &weight) : next_row(snapshot, (ivm__row_id)*place, row, &weight);
        if (weight == 0) {
            continue;
        }
        if (snapshot->shared.rows.layout->texts_count) {
            bytes += text_bytes(snapshot->shared.rows.layout, row);
            if (bytes > text_bytes_max && count > 0) {
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
    if (!snapshot || !rows) {
        return false;
    }
    snapshot->status = ivm__snapshot_output_make(snapshot, IVM__CHUNK_ROWS);
    if (snapshot->status == IVM_OK) {
        count = rows_take(snapshot, &snapshot->next, snapshot_places(snapshot), CHUNK_TEXT_BYTES_MAX);
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

/* ---- Chunks ------------------------------------------------------------------------------------------------------------------------------ */

size_t ivm_snapshot_chunks_count(const ivm_snapshot *snapshot)
{
    return snapshot ? (snapshot_places(snapshot) + IVM__CHUNK_ROWS - 1) / IVM__CHUNK_ROWS : 0;
}

ivm_status ivm_snapshot_chunk(ivm_snapshot *snapshot, size_t chunk, ivm_rows *rows, ivm_error *error)
{
    if (!snapshot || !rows) {
        return ivm__fail_null(error, "ivm_snapshot_chunk", snapshot ? "rows" : "snapshot");
    }
    size_t chunks = ivm_snapshot_chunks_count(snapshot);
    if (chunk >= chunks) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_snapshot_chunk: chunk %zu of %zu", chunk, chunks);
    }
    if (ivm__snapshot_output_make(snapshot, IVM__CHUNK_ROWS) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    uint64_t place = (uint64_t)chunk * IVM__CHUNK_ROWS, end = place + IVM__CHUNK_ROWS, places = snapshot_places(snapshot);
    uint32_t count = rows_take(snapshot, &place, end < places ? end : places, SIZE_MAX);
    ivm_status status = ivm__snapshot_output(snapshot, count, rows);
    return status == IVM_OK ? IVM_OK : ivm__fail(error, status, "the %u rows of chunk %zu cannot be given out", count, chunk);
}
