/* Reading rows: nothing is believed. A column is made once its first byte is there, cells are checked as they come, and a chunk is given out only
 * when each of its rows is greater than the one before; loose ones as they come. */
#include "row_code.h"
#include "wide.h"

#define GROUP_BYTES (64u << 10) /* of strings read at once; a longer one alone */

static ivm_status rows_fail(const ivm__row_reader *reader, const char *what)
{
    return ivm__fail(reader->feed->error, IVM_CORRUPT, "%s", what);
}

ivm_status ivm__row_reader_init(ivm__row_reader *reader, ivm__memory *memory, ivm__texts *texts, const ivm__row_shape *shape,
                                ivm__feed *feed)
{
    uint32_t count = ivm__row_shape_order_count(shape);
    *reader = (ivm__row_reader){ .shape = *shape, .memory = memory, .texts = texts, .feed = feed, .bytes = { .memory = memory } };
    reader->last = ivm__allocate(memory, count * sizeof *reader->last);
    reader->last_nulls = ivm__allocate(memory, count);
    return reader->last && reader->last_nulls ? IVM_OK : ivm__fail_memory(feed->error);
}

void ivm__row_reader_deinit(ivm__row_reader *reader)
{
    uint32_t count = ivm__row_shape_order_count(&reader->shape);
    if (reader->memory) {
        ivm__release(reader->memory, reader->last, count * sizeof *reader->last);
        ivm__release(reader->memory, reader->last_nulls, count);
        ivm__bytes_deinit(&reader->bytes);
    }
    *reader = (ivm__row_reader){ 0 };
}

/* ---- Cells: the present ones, side by side from the front on ---------------------------------------------------------------------------- */

static ivm_status bits_read(ivm__row_reader *reader, uint32_t count, uint8_t *bytes)
{
    uint8_t bits[IVM__CHUNK_ROWS / 8] = { 0 };
    IVM_TRY(ivm__get(reader->feed, bits, (count + 7) / 8));
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = bits[i / 8] >> i % 8 & 1;
    }
    bool over = count % 8 && bits[count / 8] >> count % 8;
    return over ? rows_fail(reader, "bits past the last row") : IVM_OK;
}

static ivm_status bools_read(ivm__row_reader *reader, uint32_t count, uint64_t *cells)
{
    uint8_t bytes[IVM__CHUNK_ROWS];
    IVM_TRY(bits_read(reader, count, bytes));
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = bytes[i];
    }
    return IVM_OK;
}

static ivm_status dates_read(ivm__row_reader *reader, uint32_t count, uint64_t *cells)
{
    int32_t days[IVM__CHUNK_ROWS];
    IVM_TRY(ivm__get(reader->feed, days, count * sizeof *days));
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = (uint64_t)(int64_t)days[i];
    }
    return IVM_OK;
}

static ivm_status floats_read(ivm__row_reader *reader, uint32_t count, uint64_t *cells)
{
    uint64_t differ = 0;
    IVM_TRY(ivm__get(reader->feed, cells, count * sizeof *cells));
    for (uint32_t i = 0; i < count; i++) {
        differ |= ivm__float_word(ivm__word_float(cells[i])) ^ cells[i];
    }
    return differ ? rows_fail(reader, "a float64 that no row holds: -0.0, or another NaN") : IVM_OK;
}

static ivm_status decimals_read(ivm__row_reader *reader, uint32_t precision, uint32_t count, ivm__wide *cells)
{
    ivm__wide bound = ivm__power_of_ten(precision);
    bool fit = true;
    IVM_TRY(ivm__get(reader->feed, cells, count * sizeof *cells));
    for (uint32_t i = 0; i < count; i++) {
        fit &= cells[i] < bound && cells[i] > -bound;
    }
    return fit ? IVM_OK : rows_fail(reader, "a decimal out of its precision");
}

/* Texts of sizes[0..count), whose bytes lie one after the other. One like the one before is not looked up again. */
static ivm_status texts_intern(ivm__row_reader *reader, const uint32_t *sizes, uint32_t count, uint64_t *cells)
{
    const char *bytes = reader->bytes.at ? (const char *)reader->bytes.at : "";
    const ivm__text *text = NULL;
    for (uint32_t i = 0; i < count; bytes += sizes[i++]) {
        if (!text || text->size != sizes[i] || memcmp(text->bytes, bytes, sizes[i]) != 0) {
            if (ivm__texts_intern(reader->texts, bytes, sizes[i], &text) != IVM_OK) {
                return ivm__fail_memory(reader->feed->error);
            }
        }
        cells[i] = (uintptr_t)text;
    }
    return IVM_OK;
}

static ivm_status strings_read(ivm__row_reader *reader, uint32_t count, uint64_t *cells)
{
    uint32_t sizes[IVM__CHUNK_ROWS];
    IVM_TRY(ivm__get(reader->feed, sizes, count * sizeof *sizes));
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] > IVM_STRING_SIZE_MAX) {
            return rows_fail(reader, "a string longer than one may be");
        }
    }
    for (uint32_t first = 0, end; first < count; first = end) {
        size_t size = sizes[first];
        for (end = first + 1; end < count && size + sizes[end] <= GROUP_BYTES; end++) {
            size += sizes[end];
        }
        IVM_TRY(ivm__bytes_read(&reader->bytes, reader->feed, size));
        IVM_TRY(texts_intern(reader, sizes + first, end - first, cells + first));
    }
    return IVM_OK;
}

static ivm_status cells_read(ivm__row_reader *reader, ivm_type type, uint32_t count, void *cells)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return bools_read(reader, count, cells);
    case IVM_DATE:
        return dates_read(reader, count, cells);
    case IVM_FLOAT64:
        return floats_read(reader, count, cells);
    case IVM_STRING:
        return strings_read(reader, count, cells);
    case IVM_DECIMAL_KIND:
        return decimals_read(reader, IVM_TYPE_PRECISION(type), count, cells);
    default:
        return ivm__get(reader->feed, cells, count * sizeof(uint64_t));
    }
}

/* ---- Columns ---------------------------------------------------------------------------------------------------------------------------- */

/* Moves each present cell to its row, from the last on; those of nulls are 0. */
static void cells_spread(ivm__vector *out, uint32_t rows_count, uint32_t present)
{
    uint64_t *words = out->cells;
    ivm__wide *wides = out->cells;
    bool wide = ivm__type_is_wide(out->type);
    for (uint32_t row = rows_count; row-- > 0;) {
        bool null = out->nulls[row];
        present -= !null;
        if (wide) {
            wides[row] = null ? 0 : wides[present];
        } else {
            words[row] = null ? 0 : words[present];
        }
    }
    assert(present == 0);
}

static ivm_status column_read(ivm__row_reader *reader, ivm__arena *arena, uint32_t column, uint32_t rows_count, ivm__vector *out)
{
    const ivm__row_shape *shape = &reader->shape;
    uint32_t present = 0;
    uint8_t tag;
    IVM_TRY(ivm__get_u8(reader->feed, &tag));
    if (tag > 1 || (tag && shape->nullable && !shape->nullable[column])) {
        return rows_fail(reader, tag > 1 ? "a column's tag that cannot be" : "nulls where none may be");
    }
    if (!ivm__vector_make(arena, out, shape->types[column], rows_count, tag)) {
        return ivm__fail_memory(reader->feed->error);
    }
    if (!tag) {
        return cells_read(reader, out->type, rows_count, out->cells);
    }
    IVM_TRY(bits_read(reader, rows_count, out->nulls));
    for (uint32_t i = 0; i < rows_count; i++) {
        present += !out->nulls[i];
    }
    if (present == rows_count) {
        return rows_fail(reader, "a column that says it has nulls and has none");
    }
    IVM_TRY(cells_read(reader, out->type, present, out->cells));
    cells_spread(out, rows_count, present);
    return IVM_OK;
}

static ivm_status weights_read(ivm__row_reader *reader, ivm__arena *arena, ivm__chunk *chunk)
{
    uint8_t tag;
    bool ones = true, zero = false, below = false;
    IVM_TRY(ivm__get_u8(reader->feed, &tag));
    if (tag > (reader->shape.weights != IVM__WEIGHTS_ONE)) {
        return rows_fail(reader, "weights that cannot be");
    }
    if (!tag) {
        return IVM_OK;
    }
    int64_t narrow[IVM__CHUNK_ROWS] = { 0 };
    IVM_TRY(ivm__get(reader->feed, narrow, chunk->rows_count * sizeof *narrow));
    chunk->weights = ivm__arena_allocate(arena, chunk->rows_count * sizeof *chunk->weights);
    if (!chunk->weights) {
        return ivm__fail_memory(reader->feed->error);
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        ones &= narrow[i] == 1;
        zero |= narrow[i] == 0;
        below |= narrow[i] < 0;
        chunk->weights[i] = narrow[i];
    }
    bool cannot = ones || zero || (below && reader->shape.weights != IVM__WEIGHTS_NOT_0);
    return cannot ? rows_fail(reader, "weights that cannot be") : IVM_OK;
}

/* ---- Order ------------------------------------------------------------------------------------------------------------------------------ */

static inline ivm__wide cell_at(const ivm__vector *in, uint32_t row)
{
    return ivm__type_is_wide(in->type) ? ivm__wide_cell(in, row) : (ivm__wide)ivm__word(in, row);
}

static inline int cells_compare(const ivm__vector *in, uint32_t a, uint32_t b)
{
    bool a_null = ivm__is_null(in, a), b_null = ivm__is_null(in, b);
    return a_null || b_null ? a_null - b_null : ivm__cell_compare(in->type, cell_at(in, a), cell_at(in, b));
}

/* Of the rows that equal the one before in the columns so far, those that do in this one too stay; false: one is below it. */
static bool column_ascends(const ivm__vector *in, uint16_t *rows, uint32_t *count)
{
    uint32_t equal = 0;
    for (uint32_t i = 0; i < *count; i++) {
        int order = cells_compare(in, rows[i] - 1u, rows[i]);
        if (order > 0) {
            return false;
        }
        rows[equal] = rows[i];
        equal += order == 0;
    }
    *count = equal;
    return true;
}

static bool chunk_ascends(const ivm__row_shape *shape, const ivm__chunk *chunk)
{
    uint16_t rows[IVM__CHUNK_ROWS];
    uint32_t count = 0;
    for (uint32_t i = 1; i < chunk->rows_count; i++) {
        rows[count++] = (uint16_t)i;
    }
    for (uint32_t i = 0; count && i < ivm__row_shape_order_count(shape); i++) {
        if (!column_ascends(&chunk->columns[ivm__row_shape_order(shape, i)], rows, &count)) {
            return false;
        }
    }
    return count == 0;
}

/* Whether the chunk's first row is greater than the last of the chunk before. */
static bool chunk_follows(const ivm__row_reader *reader, const ivm__chunk *chunk)
{
    for (uint32_t i = 0; i < ivm__row_shape_order_count(&reader->shape); i++) {
        const ivm__vector *in = &chunk->columns[ivm__row_shape_order(&reader->shape, i)];
        bool null = ivm__is_null(in, 0), last_null = reader->last_nulls[i];
        int order = null || last_null ? last_null - null : ivm__cell_compare(in->type, reader->last[i], cell_at(in, 0));
        if (order) {
            return order < 0;
        }
    }
    return false;
}

static void last_keep(ivm__row_reader *reader, const ivm__chunk *chunk)
{
    for (uint32_t i = 0; i < ivm__row_shape_order_count(&reader->shape); i++) {
        const ivm__vector *in = &chunk->columns[ivm__row_shape_order(&reader->shape, i)];
        reader->last[i] = cell_at(in, chunk->rows_count - 1);
        reader->last_nulls[i] = ivm__is_null(in, chunk->rows_count - 1);
    }
    reader->some = true;
    reader->full = chunk->rows_count == IVM__CHUNK_ROWS;
}

/* ---- Chunks ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_status chunk_read(ivm__row_reader *reader, ivm__arena *arena, ivm__chunk *chunk)
{
    IVM_TRY(weights_read(reader, arena, chunk));
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        IVM_TRY(column_read(reader, arena, c, chunk->rows_count, &chunk->columns[c]));
    }
    if (reader->shape.loose) {
        return IVM_OK;
    }
    if (!chunk_ascends(&reader->shape, chunk) || (reader->some && !chunk_follows(reader, chunk))) {
        return rows_fail(reader, "a row that is not greater than the one before");
    }
    last_keep(reader, chunk);
    return IVM_OK;
}

ivm_status ivm__row_reader_next(ivm__row_reader *reader, ivm__arena *arena, ivm__chunk **chunk)
{
    uint16_t rows_count;
    *chunk = NULL;
    IVM_TRY(ivm__get_u16(reader->feed, &rows_count));
    if (!rows_count) {
        return IVM_OK;
    }
    if (rows_count > IVM__CHUNK_ROWS || (reader->some && !reader->full)) {
        return rows_fail(reader, "rows cut into chunks as they are not written");
    }
    ivm__chunk *made = ivm__chunk_make(arena, reader->shape.types, reader->shape.columns_count);
    if (!made) {
        return ivm__fail_memory(reader->feed->error);
    }
    made->rows_count = rows_count;
    IVM_TRY(chunk_read(reader, arena, made));
    *chunk = made;
    return IVM_OK;
}
