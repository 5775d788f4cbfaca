/* Owned rows: single rows added to a batch, kept as column arrays in Arrow's layout, so that staging reads them as it reads a user's.
 *
 * One block holds the arrays of fixed width, grown by doubling; each string column's bytes lie in a block of their own. Insertions, deletions and
 * weighted rows of one table go into one part with weights, for their order does not matter; they may join an earlier part, because
 * nothing in them can fail any more. Cost: a check and a store a value. */
#include "batch.h"

#define OWNED_ROWS_MIN 16u
#define OWNED_BYTES_MIN 64u

typedef struct owned_column {
    ivm_type type;
    uint32_t width; /* bytes of a value; 0: one bit */
    bool has_nulls;
    uint8_t *values; /* not for strings */
    uint8_t *validity;
    int32_t *offsets; /* strings alone */
    char *bytes;
    size_t bytes_used, bytes_capacity;
} owned_column;

typedef struct ivm__owned_rows {
    uint32_t columns_count;
    bool weighted; /* a row's weight is not 1 */
    uint64_t capacity;
    int64_t *weights;
    uint8_t *block;
    size_t block_size;
    owned_column columns[];
} ivm__owned_rows;

static size_t owned_size(uint32_t columns_count)
{
    return sizeof(ivm__owned_rows) + columns_count * sizeof(owned_column);
}

void ivm__owned_free(ivm__memory *memory, ivm__owned_rows *owned)
{
    if (!owned) {
        return;
    }
    for (uint32_t c = 0; c < owned->columns_count; c++) {
        ivm__release(memory, owned->columns[c].bytes, owned->columns[c].bytes_capacity);
    }
    ivm__release(memory, owned->block, owned->block_size);
    ivm__release(memory, owned, owned_size(owned->columns_count));
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------------------------- */

/* Bytes for `rows` values of a column, without its validity; one offset more for strings. */
static size_t values_size(const owned_column *column, uint64_t rows)
{
    if (IVM_TYPE_KIND(column->type) == IVM_STRING) {
        return (rows + 1) * sizeof(int32_t);
    }
    return column->width ? rows * column->width : (rows + 7) / 8;
}

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static size_t block_size(const ivm__owned_rows *owned, uint64_t capacity)
{
    size_t size = aligned(capacity * sizeof(int64_t));
    for (uint32_t c = 0; c < owned->columns_count; c++) {
        size += aligned(values_size(&owned->columns[c], capacity)) + aligned((capacity + 7) / 8);
    }
    return size;
}

/* Moves an array of `used` bytes to its place in the new block. */
static void array_move(void **array, uint8_t *place, size_t used)
{
    if (*array && used) {
        memcpy(place, *array, used);
    }
    *array = place;
}

static void column_move(owned_column *column, uint8_t **place, uint64_t rows, uint64_t capacity)
{
    void *values = column->offsets ? (void *)column->offsets : column->values;
    void *validity = column->validity;
    array_move(&values, *place, values ? values_size(column, rows) : 0);
    *place += aligned(values_size(column, capacity));
    array_move(&validity, *place, (rows + 7) / 8);
    *place += aligned((capacity + 7) / 8);
    column->validity = validity;
    if (IVM_TYPE_KIND(column->type) == IVM_STRING) {
        column->offsets = values;
        column->offsets[0] = 0;
    } else {
        column->values = values;
    }
}

/* Tells the part where its arrays are now. */
static void part_show(ivm__part *part)
{
    ivm__owned_rows *owned = part->owned;
    for (uint32_t c = 0; c < owned->columns_count; c++) {
        const owned_column *column = &owned->columns[c];
        part->columns[c] = (ivm_column_data){ .values = column->offsets ? (const void *)column->bytes : column->values,
                                              .validity = column->has_nulls ? column->validity : NULL,
                                              .offsets = column->offsets };
    }
    part->weights = owned->weighted ? owned->weights : NULL;
}

static ivm_status rows_grow(ivm__memory *memory, ivm__part *part)
{
    ivm__owned_rows *owned = part->owned;
    uint64_t capacity = owned->capacity ? owned->capacity * 2 : OWNED_ROWS_MIN;
    size_t size = block_size(owned, capacity);
    uint8_t *block = ivm__allocate(memory, size);
    if (!block) {
        return IVM_OUT_OF_MEMORY;
    }
    uint8_t *place = block;
    void *weights = owned->weights;
    array_move(&weights, place, owned->weighted ? part->rows_count * sizeof(int64_t) : 0);
    owned->weights = weights;
    place += aligned(capacity * sizeof(int64_t));
    for (uint32_t c = 0; c < owned->columns_count; c++) {
        column_move(&owned->columns[c], &place, part->rows_count, capacity);
    }
    assert(place == block + size);
    ivm__release(memory, owned->block, owned->block_size);
    owned->block = block;
    owned->block_size = size;
    owned->capacity = capacity;
    part_show(part);
    return IVM_OK;
}

/* ---- Values ---------------------------------------------------------------------------------------------------------------------- */

static void bit_put(uint8_t *bits, uint64_t at, bool value)
{
    uint8_t mask = (uint8_t)(1u << (at & 7));
    bits[at >> 3] = (uint8_t)(value ? bits[at >> 3] | mask : bits[at >> 3] & ~mask);
}

/* Puts a string's bytes behind the others; the caller has seen to it that they fit int32 offsets. */
static ivm_status bytes_put(ivm__memory *memory, ivm__part *part, owned_column *column, const ivm_value *value)
{
    size_t size = value->is_null ? 0 : value->as.string.size;
    size_t needed = column->bytes_used + size;
    if (needed > column->bytes_capacity) {
        size_t capacity = column->bytes_capacity ? column->bytes_capacity : OWNED_BYTES_MIN;
        while (capacity < needed) {
            capacity *= 2;
        }
        char *bytes = ivm__resize(memory, column->bytes, column->bytes_capacity, capacity);
        if (!bytes) {
            return IVM_OUT_OF_MEMORY;
        }
        column->bytes = bytes;
        column->bytes_capacity = capacity;
        part_show(part);
    }
    if (size) {
        memcpy(column->bytes + column->bytes_used, value->as.string.bytes, size);
    }
    column->bytes_used = needed;
    column->offsets[part->rows_count + 1] = (int32_t)needed;
    return IVM_OK;
}

static void cell_put(owned_column *column, uint64_t row, ivm__wide cell)
{
    if (column->width) {
        memcpy(column->values + row * column->width, &cell, column->width);
    } else {
        bit_put(column->values, row, cell != 0);
    }
}

static ivm_status value_put(ivm__memory *memory, ivm__part *part, owned_column *column, const ivm_value *value)
{
    uint64_t row = part->rows_count;
    if (IVM_TYPE_KIND(column->type) == IVM_STRING) {
        bool fits = value->is_null ? value->type == 0 || value->type == IVM_STRING || value->type == IVM_INT64
                                   : value->type == IVM_STRING && value->as.string.size <= IVM_STRING_SIZE_MAX;
        if (!fits) {
            return IVM_TYPE_MISMATCH;
        }
        IVM_TRY(bytes_put(memory, part, column, value));
    } else {
        ivm__wide cell;
        IVM_TRY(ivm__value_cell(NULL, column->type, value, &cell));
        cell_put(column, row, cell);
    }
    bit_put(column->validity, row, !value->is_null);
    if (value->is_null && !column->has_nulls) {
        column->has_nulls = true;
        part_show(part);
    }
    return IVM_OK;
}

static void weight_put(ivm__part *part, int64_t weight)
{
    ivm__owned_rows *owned = part->owned;
    if (weight != 1 && !owned->weighted) {
        for (uint64_t i = 0; i < part->rows_count; i++) {
            owned->weights[i] = 1;
        }
        owned->weighted = true;
        part->change = IVM_WEIGHTED;
        part_show(part);
    }
    if (owned->weighted) {
        owned->weights[part->rows_count] = weight;
    }
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

/* No offset may leave int32. */
static bool strings_fit(const ivm__owned_rows *owned, const ivm_value *values)
{
    for (uint32_t c = 0; c < owned->columns_count; c++) {
        const ivm_value *value = &values[c];
        if (owned->columns[c].offsets && value->type == IVM_STRING && !value->is_null &&
            value->as.string.size > INT32_MAX - owned->columns[c].bytes_used) {
            return false;
        }
    }
    return true;
}

static ivm_status owned_make(ivm_batch *batch, ivm__part *part)
{
    ivm__owned_rows *owned = ivm__allocate_zeroed(&batch->memory, owned_size(part->columns_count));
    if (!owned) {
        return ivm__fail_memory(&batch->mistake);
    }
    owned->columns_count = part->columns_count;
    for (uint32_t c = 0; c < part->columns_count; c++) {
        owned->columns[c].type = part->table->types[ivm__change_column(part->table, part->change, c)];
        owned->columns[c].width = ivm__array_width(owned->columns[c].type);
    }
    part->owned = owned;
    return IVM_OK;
}

/* The table's last part, if a row of this change may still join it. Only a deletion by key can fail when the batch is staged: it keeps its
 * place among the parts of other tables. */
static ivm__part *part_open(const ivm_batch *batch, const ivm_table *table, ivm_change change, const ivm_value *values)
{
    ivm__part *part = batch->open[table->id % IVM__BATCH_OPEN];
    if (!part || part->table_id != table->id || part->columns_version != table->columns_version || !part->owned ||
        (part->change < IVM_UPSERT ? IVM_WEIGHTED : part->change) != change) {
        return NULL;
    }
    if (change == IVM_DELETE_KEY && part != batch->parts_last) {
        return NULL;
    }
    return strings_fit(part->owned, values) ? part : NULL;
}

static ivm_status part_for(ivm_batch *batch, ivm_table *table, ivm_change change, const ivm_value *values, ivm__part **part)
{
    *part = part_open(batch, table, change, values);
    if (!*part) {
        *part = ivm__batch_part(batch, table, change == IVM_WEIGHTED ? IVM_INSERT : change);
        if (!*part) {
            return batch->mistake.status;
        }
        IVM_TRY(owned_make(batch, *part));
    }
    if ((*part)->rows_count == IVM_BATCH_ROWS_MAX) {
        return ivm__fail(&batch->mistake, IVM_OVERFLOW, "table %s: more than %u rows in one batch", table->name, IVM_BATCH_ROWS_MAX);
    }
    if ((*part)->rows_count == (*part)->owned->capacity && rows_grow(&batch->memory, *part) != IVM_OK) {
        return ivm__fail_memory(&batch->mistake);
    }
    return IVM_OK;
}

/* The row that is being added, counted among the table's. */
static unsigned long long row_number(const ivm_batch *batch, const ivm_table *table)
{
    return ivm__batch_rows(batch, table->id, NULL);
}

static ivm_status value_mistake(ivm_batch *batch, const ivm_table *table, uint32_t column, const ivm_value *value)
{
    char why[IVM__MISFIT_SIZE];
    ivm__value_misfit(table->types[column], value, why);
    return ivm__fail(&batch->mistake, IVM_TYPE_MISMATCH, "table %s, row %llu, column %s: %s", table->name, row_number(batch, table),
                     table->columns[column].name, why);
}

/* Puts the values behind the part's rows. A mistake ends the batch, so that a row put by half does no harm. A value of another type is told
 * before a null wherever it stands. */
static ivm_status row_put(ivm_batch *batch, ivm__part *part, const ivm_value *values)
{
    const ivm_table *table = part->table;
    const char *null_column = NULL;
    for (uint32_t c = 0; c < part->columns_count; c++) {
        uint32_t column = ivm__change_column(table, part->change, c);
        ivm_status status = value_put(&batch->memory, part, &part->owned->columns[c], &values[c]);
        if (status == IVM_OUT_OF_MEMORY) {
            return ivm__fail_memory(&batch->mistake);
        }
        if (status != IVM_OK) {
            return value_mistake(batch, table, column, &values[c]);
        }
        if (values[c].is_null && !null_column && part->change != IVM_DELETE_KEY && !table->columns[column].nullable) {
            null_column = table->columns[column].name;
        }
    }
    if (null_column) {
        return ivm__fail(&batch->mistake, IVM_NULL_VIOLATION, "table %s, row %llu, column %s: null where none may be", table->name,
                         row_number(batch, table), null_column);
    }
    return IVM_OK;
}

ivm_status ivm_batch_row(ivm_batch *batch, ivm_table *table, ivm_change change, int64_t weight, const ivm_value *values,
                         size_t values_count)
{
    if (!batch) {
        return IVM_INVALID_ARGUMENT;
    }
    IVM_TRY(ivm__batch_accepts(batch, table, change));
    uint32_t columns_count = ivm__change_columns(table, change);
    if (values_count != columns_count) {
        return ivm__fail(&batch->mistake, IVM_TYPE_MISMATCH, "table %s, row %llu: %u values are wanted, not %zu", table->name,
                         row_number(batch, table), columns_count, values_count);
    }
    if (!values) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s, row %llu: %u values are wanted, not NULL", table->name,
                         row_number(batch, table), columns_count);
    }
    if (change < IVM_WEIGHTED) {
        weight = change == IVM_INSERT ? 1 : -1;
        change = IVM_WEIGHTED;
    }
    ivm__part *part;
    IVM_TRY(part_for(batch, table, change, values, &part));
    IVM_TRY(row_put(batch, part, values));
    if (change == IVM_WEIGHTED) {
        weight_put(part, weight);
    }
    part->rows_count++;
    return IVM_OK;
}
