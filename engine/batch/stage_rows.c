/* Arrow columns as chunks: int64, timestamp, float64 and decimal cells are read where they lie if they are aligned, hold no null and are as
 * cells must be; bools and dates are widened, strings interned, validity bits become bytes where a block of rows has a null.
 * Cost: nothing a value for what is read in place, one pass for the rest. */
#include <stdio.h>

#include "staging.h"
#include "wide.h"

/* A block of rows of one column on its way to a vector. */
typedef struct block {
    ivm__step *step;
    ivm__arena *arena;
    const ivm_column_data *data;
    size_t at; /* of the block's first row in the arrays */
    uint32_t count;
} block;

/* The first row's mistake; in one row what is no value of its type comes before a null. */
typedef struct mistake {
    ivm_status status;
    uint32_t row, column;
} mistake;

static void mistake_note(mistake *first, ivm_status status, uint32_t row, uint32_t column)
{
    bool sooner = first->status == IVM_OK || row < first->row ||
                  (row == first->row && first->status == IVM_NULL_VIOLATION && status != IVM_NULL_VIOLATION);
    if (sooner) {
        *first = (mistake){ status, row, column };
    }
}

/* ---- Bits ------------------------------------------------------------------------------------------------------------------------ */

static bool bits_all_set(const uint8_t *bits, size_t at, uint32_t count)
{
    size_t first = at >> 3, last = (at + count - 1) >> 3;
    uint8_t head = (uint8_t)(0xffu << (at & 7)), tail = (uint8_t)(0xffu >> (7 - ((at + count - 1) & 7)));
    if (first == last) {
        return (bits[first] & head & tail) == (head & tail);
    }
    uint8_t middle = 0xff;
    for (size_t i = first + 1; i < last; i++) {
        middle &= bits[i];
    }
    return (bits[first] & head) == head && middle == 0xff && (bits[last] & tail) == tail;
}

static void bits_to_nulls(const uint8_t *restrict validity, size_t at, uint32_t count, uint8_t *restrict nulls)
{
    for (uint32_t i = 0; i < count; i++) {
        nulls[i] = !(validity[(at + i) >> 3] >> ((at + i) & 7) & 1);
    }
}

static void bits_to_words(const uint8_t *restrict bits, size_t at, uint32_t count, uint64_t *restrict cells)
{
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = bits[(at + i) >> 3] >> ((at + i) & 7) & 1;
    }
}

/* nulls: NULL where the block has none. */
static ivm_status nulls_read(const block *in, uint8_t **nulls)
{
    *nulls = NULL;
    if (!in->data->validity || bits_all_set(in->data->validity, in->at, in->count)) {
        return IVM_OK;
    }
    *nulls = ivm__arena_allocate(in->arena, in->count);
    if (!*nulls) {
        return IVM_OUT_OF_MEMORY;
    }
    bits_to_nulls(in->data->validity, in->at, in->count, *nulls);
    return IVM_OK;
}

/* ---- Cells ----------------------------------------------------------------------------------------------------------------------- */

/* What an array holds at a null is anything; a null's cell is zero. */
static void words_clear(uint64_t *restrict cells, const uint8_t *restrict nulls, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cells[i] &= (uint64_t)nulls[i] - 1;
    }
}

static void wides_clear(ivm__wide *restrict cells, const uint8_t *restrict nulls, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cells[i] &= (ivm__wide)nulls[i] - 1;
    }
}

/* Whether all are as ivm__float_word makes them: no negative zero, no NaN but one. */
static bool floats_normal(const uint64_t *cells, uint32_t count)
{
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++) {
        differ |= ivm__float_word(ivm__word_float(cells[i])) ^ cells[i];
    }
    return differ == 0;
}

static void floats_normalise(uint64_t *cells, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = ivm__float_word(ivm__word_float(cells[i]));
    }
}

static void dates_widen(const uint8_t *restrict values, uint32_t count, uint64_t *restrict cells)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t days;
        memcpy(&days, values + i * sizeof days, sizeof days);
        cells[i] = (uint64_t)(int64_t)days;
    }
}

/* The first that does not fit; count: none. */
static uint32_t decimals_check(const ivm__wide *cells, uint32_t count, uint32_t precision)
{
    ivm__wide bound = ivm__power_of_ten(precision);
    for (uint32_t i = 0; i < count; i++) {
        if (cells[i] >= bound || cells[i] <= -bound) {
            return i;
        }
    }
    return count;
}

/* The array's own cells from the block on if they may serve; NULL: they must be copied. */
static void *cells_in_place(const block *in, size_t size, const uint8_t *nulls)
{
    uintptr_t cells = (uintptr_t)in->data->values + in->at * size;
    return !nulls && cells % size == 0 ? (void *)cells : NULL;
}

static void *cells_copy(const block *in, size_t size)
{
    void *cells = ivm__arena_allocate(in->arena, in->count * size);
    if (cells) {
        memcpy(cells, (const uint8_t *)in->data->values + in->at * size, in->count * size);
    }
    return cells;
}

static ivm_status words_read(const block *in, ivm__vector *out)
{
    bool floats = IVM_TYPE_KIND(out->type) == IVM_FLOAT64;
    out->cells = cells_in_place(in, sizeof(uint64_t), out->nulls);
    if (out->cells && (!floats || floats_normal(out->cells, in->count))) {
        return IVM_OK;
    }
    out->cells = cells_copy(in, sizeof(uint64_t));
    if (!out->cells) {
        return IVM_OUT_OF_MEMORY;
    }
    if (floats) {
        floats_normalise(out->cells, in->count);
    }
    if (out->nulls) {
        words_clear(out->cells, out->nulls, in->count);
    }
    return IVM_OK;
}

static ivm_status wides_read(const block *in, ivm__vector *out, uint32_t *bad)
{
    out->cells = cells_in_place(in, sizeof(ivm__wide), out->nulls);
    if (!out->cells) {
        out->cells = cells_copy(in, sizeof(ivm__wide));
        if (!out->cells) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    if (out->nulls) {
        wides_clear(out->cells, out->nulls, in->count);
    }
    *bad = decimals_check(out->cells, in->count, IVM_TYPE_PRECISION(out->type));
    return *bad < in->count ? IVM_TYPE_MISMATCH : IVM_OK;
}

static ivm_status narrow_read(const block *in, ivm__vector *out)
{
    uint64_t *cells = ivm__arena_allocate(in->arena, in->count * sizeof *cells);
    if (!cells) {
        return IVM_OUT_OF_MEMORY;
    }
    if (IVM_TYPE_KIND(out->type) == IVM_BOOL) {
        bits_to_words(in->data->values, in->at, in->count, cells);
    } else {
        dates_widen((const uint8_t *)in->data->values + in->at * sizeof(int32_t), in->count, cells);
    }
    if (out->nulls) {
        words_clear(cells, out->nulls, in->count);
    }
    out->cells = cells;
    return IVM_OK;
}

/* A string like the one before it is not looked up again. */
static ivm_status strings_read(const block *in, ivm__vector *out, uint32_t *bad)
{
    const uint8_t *offsets = (const uint8_t *)in->data->offsets + in->at * sizeof(int32_t);
    uint64_t *cells = ivm__arena_allocate(in->arena, in->count * sizeof *cells);
    if (!cells) {
        return IVM_OUT_OF_MEMORY;
    }
    const ivm__text *text = NULL;
    for (uint32_t i = 0; i < in->count; i++) {
        int32_t bounds[2];
        memcpy(bounds, offsets + i * sizeof bounds[0], sizeof bounds);
        cells[i] = 0;
        if (out->nulls && out->nulls[i]) {
            continue;
        }
        *bad = i;
        if (bounds[0] < 0 || bounds[1] < bounds[0] || (bounds[1] > bounds[0] && !in->data->values)) {
            return IVM_INVALID_ARGUMENT;
        }
        uint32_t size = (uint32_t)(bounds[1] - bounds[0]);
        const char *bytes = size ? (const char *)in->data->values + bounds[0] : "";
        if (!text || text->size != size || memcmp(text->bytes, bytes, size) != 0) {
            IVM_TRY(ivm__texts_intern(in->step->texts, bytes, size, &text));
        }
        cells[i] = (uintptr_t)text;
    }
    out->cells = cells;
    return IVM_OK;
}

/* ---- Columns --------------------------------------------------------------------------------------------------------------------- */

static ivm_status vector_read(const block *in, bool nullable, ivm__vector *out, uint32_t column, mistake *first)
{
    uint32_t bad = 0;
    IVM_TRY(nulls_read(in, &out->nulls));
    if (out->nulls && !nullable) {
        const uint8_t *null = memchr(out->nulls, 1, in->count);
        mistake_note(first, IVM_NULL_VIOLATION, (uint32_t)(null - out->nulls), column);
    }
    ivm_status status;
    switch (IVM_TYPE_KIND(out->type)) {
    case IVM_STRING:
        status = strings_read(in, out, &bad);
        break;
    case IVM_DECIMAL_KIND:
        status = wides_read(in, out, &bad);
        break;
    case IVM_BOOL:
    case IVM_DATE:
        status = narrow_read(in, out);
        break;
    default:
        status = words_read(in, out);
        break;
    }
    if (status != IVM_OK && status != IVM_OUT_OF_MEMORY) {
        mistake_note(first, status, bad, column);
        return IVM_OK;
    }
    return status;
}

/* Of a column that tells the partition of its row, where no null is. */
static void partitions_check(const ivm__vector *column, uint32_t count, uint32_t at, mistake *first)
{
    const uint64_t *cells = column->cells;
    uint32_t row = 0;
    while (row < count && cells[row] < IVM_PARTITIONS_MAX) {
        row++;
    }
    if (row < count) {
        mistake_note(first, IVM_OVERFLOW, row, at);
    }
}

/* Why the value of a part's row cannot be. */
static void mistake_text(const ivm__part *part, uint64_t row, const mistake *first, ivm_type type, char text[IVM__MISFIT_SIZE])
{
    ivm_rows rows = { .rows_count = part->rows_count, .columns_count = part->columns_count, .columns = part->columns };
    ivm_value value;
    switch (first->status) {
    case IVM_NULL_VIOLATION:
        (void)snprintf(text, IVM__MISFIT_SIZE, "null where none may be");
        break;
    case IVM_INVALID_ARGUMENT:
        (void)snprintf(text, IVM__MISFIT_SIZE, "its offsets are wrong");
        break;
    case IVM_OVERFLOW:
        value = ivm_rows_value(&rows, type, row, first->column);
        (void)snprintf(text, IVM__MISFIT_SIZE, "%lld is no partition, which is 0 to %u", (long long)value.as.int64, IVM_PARTITIONS_MAX - 1);
        break;
    default:
        value = ivm_rows_value(&rows, type, row, first->column);
        ivm__value_misfit(type, &value, text);
        break;
    }
}

static ivm_status mistake_fail(ivm__step *step, const ivm__part *part, uint64_t row, const mistake *first)
{
    const ivm_table *table = part->table;
    uint32_t column = ivm__change_column(table, part->change, first->column);
    char why[IVM__MISFIT_SIZE];
    mistake_text(part, row, first, table->types[column], why);
    uint64_t number = ivm__batch_rows(step->batch, part->table_id, part) + row;
    return ivm__fail(step->error, first->status, "table %s, row %llu, column %s: %s", table->name, (unsigned long long)number,
                     table->columns[column].name, why);
}

/* ---- Weights --------------------------------------------------------------------------------------------------------------------- */

static bool weights_all_one(const int64_t *weights, uint64_t first, uint32_t count)
{
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++) {
        differ |= (uint64_t)ivm__weight_at(weights, first + i) ^ 1;
    }
    return differ == 0;
}

static ivm_status weights_read(ivm__arena *arena, const int64_t *weights, uint64_t first, ivm__chunk *chunk)
{
    if (!weights || weights_all_one(weights, first, chunk->rows_count)) {
        return IVM_OK;
    }
    ivm__weight *out = ivm__arena_allocate(arena, chunk->rows_count * sizeof *out);
    if (!out) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        out[i] = ivm__weight_at(weights, first + i);
    }
    chunk->weights = out;
    return IVM_OK;
}

ivm_status ivm__stage_chunk(ivm__step *step, ivm__arena *arena, const ivm__part *part, uint64_t first, uint32_t count, ivm__chunk **chunk)
{
    assert(count > 0 && first + count <= part->rows_count);
    const ivm_table *table = part->table;
    bool by_key = part->change == IVM_DELETE_KEY; /* its keys may be null: there is no such row */
    ivm__chunk *made = ivm__chunk_make(arena, table->types, part->columns_count);
    if (!made) {
        return ivm__fail_memory(step->error);
    }
    mistake wrong = { IVM_OK, 0, 0 };
    made->rows_count = count;
    for (uint32_t c = 0; c < part->columns_count; c++) {
        uint32_t column = ivm__change_column(table, part->change, c);
        block in = { step, arena, &part->columns[c], part->columns[c].offset + first, count };
        made->columns[c].type = table->types[column];
        if (vector_read(&in, by_key || table->columns[column].nullable, &made->columns[c], c, &wrong) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
        if (table->partitioned && column == table->partition && !by_key) {
            partitions_check(&made->columns[c], count, c, &wrong);
        }
    }
    if (wrong.status != IVM_OK) {
        return mistake_fail(step, part, first + wrong.row, &wrong);
    }
    if (weights_read(arena, part->weights, first, made) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    *chunk = made;
    return IVM_OK;
}
