/* Layouts: where a row's cells lie, and moving cells between chunks (columns) and rows.
 *
 * Rows are written column by column over blocks of rows that stay in the first-level cache; a null's bit is set, its cell is zero as in the
 * chunk, so that equal rows have equal bodies. Cost: one load and one store a cell, specialised by width and nulls. */
#include "layout.h"

#include <limits.h>

#define SCATTER_ROWS 256u

/* One block: the layout, then its arrays. */
static size_t layout_size(uint32_t columns_count, uint32_t texts_count)
{
    return sizeof(ivm__layout) + (size_t)columns_count * (sizeof(ivm_type) + sizeof(uint32_t) + sizeof(bool)) +
           (size_t)texts_count * sizeof(uint32_t);
}

static uint32_t stride_of(uint32_t bytes, bool packed)
{
    if (packed) {
        return bytes;
    }
    return bytes <= 16 ? 16 : bytes <= 32 ? bytes : (bytes + 63) & ~63u;
}

static bool any_nullable(const bool *nullable, uint32_t columns_count)
{
    for (uint32_t c = 0; nullable && c < columns_count; c++) {
        if (nullable[c]) {
            return true;
        }
    }
    return !nullable && columns_count > 0;
}

static void offsets_fill(ivm__layout *layout)
{
    uint32_t offset = IVM__ROW_HEADER + layout->null_words * (uint32_t)sizeof(uint64_t);
    uint32_t texts_count = 0;
    for (uint32_t c = 0; c < layout->columns_count; c++) {
        layout->offsets[c] = offset;
        if (IVM_TYPE_KIND(layout->types[c]) == IVM_STRING) {
            layout->texts[texts_count++] = offset;
        }
        offset += ivm__type_words(layout->types[c]) * (uint32_t)sizeof(uint64_t);
    }
    assert(texts_count == layout->texts_count);
    layout->body_bytes = offset - IVM__ROW_HEADER;
}

ivm_status ivm__layout_create(ivm__memory *memory, const ivm_type *types, const bool *nullable, uint32_t columns_count, bool packed,
                              ivm__layout **layout)
{
    assert(columns_count <= UINT32_MAX / 64);
    uint32_t texts_count = 0;
    for (uint32_t c = 0; c < columns_count; c++) {
        texts_count += IVM_TYPE_KIND(types[c]) == IVM_STRING;
    }
    ivm__layout *made = ivm__allocate_zeroed(memory, layout_size(columns_count, texts_count));
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->memory = memory;
    atomic_init(&made->references, 1);
    made->columns_count = columns_count;
    made->texts_count = texts_count;
    made->null_words = any_nullable(nullable, columns_count) ? (columns_count + 63) / 64 : 0;
    made->types = (ivm_type *)(made + 1);
    made->offsets = made->types + columns_count;
    made->texts = made->offsets + columns_count;
    made->nullable = (bool *)(made->texts + texts_count);
    for (uint32_t c = 0; c < columns_count; c++) {
        made->types[c] = types[c];
        made->nullable[c] = !nullable || nullable[c];
    }
    offsets_fill(made);
    made->stride = stride_of(IVM__ROW_HEADER + made->body_bytes, packed);
    assert(made->stride % IVM__ROW_HEADER == 0 && made->stride >= IVM__ROW_HEADER + made->body_bytes);
    *layout = made;
    return IVM_OK;
}

ivm__layout *ivm__layout_acquire(ivm__layout *layout)
{
    uint32_t before = atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    assert(before > 0 && before < UINT32_MAX);
    (void)before;
    return layout;
}

void ivm__layout_release(ivm__layout *layout)
{
    if (layout && atomic_fetch_sub_explicit(&layout->references, 1, memory_order_acq_rel) == 1) {
        ivm__release(layout->memory, layout, layout_size(layout->columns_count, layout->texts_count));
    }
}

/* ---- Scattering ------------------------------------------------------------------------------------------------------------------ */

static void words_scatter(const uint64_t *cells, uint32_t count, uint8_t *const *rows, uint32_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rows[i] + offset, &cells[i], sizeof cells[i]);
    }
}

static void wides_scatter(const ivm__wide *cells, uint32_t count, uint8_t *const *rows, uint32_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rows[i] + offset, &cells[i], sizeof cells[i]);
    }
}

static void null_words_clear(uint32_t null_words, uint32_t count, uint8_t *const *rows)
{
    for (uint32_t i = 0; i < count; i++) {
        memset(rows[i] + IVM__ROW_HEADER, 0, null_words * sizeof(uint64_t));
    }
}

static void null_bits_set(const uint8_t *nulls, uint32_t count, uint8_t *const *rows, uint32_t column)
{
    uint32_t offset = IVM__ROW_HEADER + (column >> 6) * (uint32_t)sizeof(uint64_t);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, rows[i] + offset, sizeof word);
        word |= (uint64_t)nulls[i] << (column & 63);
        memcpy(rows[i] + offset, &word, sizeof word);
    }
}

/* For an assertion alone. */
__attribute__((unused)) static bool nulls_none(const uint8_t *nulls, uint32_t count)
{
    return count == 0 || (nulls[0] == 0 && memcmp(nulls, nulls + 1, count - 1) == 0);
}

static void column_scatter(const ivm__layout *layout, uint32_t column, const ivm__vector *in, uint32_t first, uint32_t count,
                           uint8_t *const *rows)
{
    uint32_t offset = layout->offsets[column];
    if (ivm__type_is_wide(in->type)) {
        wides_scatter((const ivm__wide *)in->cells + first, count, rows, offset);
    } else {
        words_scatter((const uint64_t *)in->cells + first, count, rows, offset);
    }
    if (in->nulls && layout->null_words) {
        null_bits_set(in->nulls + first, count, rows, column);
    } else if (in->nulls) {
        assert(nulls_none(in->nulls + first, count));
    }
}

void ivm__layout_scatter(const ivm__layout *layout, const ivm__chunk *chunk, const uint32_t *columns, uint32_t first, uint32_t count,
                         uint8_t *const *rows)
{
    assert(first + count <= chunk->rows_count);
    for (uint32_t done = 0; done < count; done += SCATTER_ROWS) {
        uint32_t block = count - done < SCATTER_ROWS ? count - done : SCATTER_ROWS;
        if (layout->null_words) {
            null_words_clear(layout->null_words, block, rows + done);
        }
        for (uint32_t c = 0; c < layout->columns_count; c++) {
            const ivm__vector *in = &chunk->columns[columns ? columns[c] : c];
            assert(in->cells && in->type == layout->types[c]);
            column_scatter(layout, c, in, first + done, block, rows + done);
        }
    }
}

static void null_bits_write(const uint8_t *nulls, uint32_t count, uint8_t *const *rows, uint32_t column, uint8_t *changed)
{
    uint32_t offset = IVM__ROW_HEADER + (column >> 6) * (uint32_t)sizeof(uint64_t), shift = column & 63;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t old, word;
        memcpy(&old, rows[i] + offset, sizeof old);
        word = (old & ~((uint64_t)1 << shift)) | (uint64_t)(nulls && nulls[i]) << shift;
        memcpy(rows[i] + offset, &word, sizeof word);
        changed[i] |= word != old;
    }
}

static void words_write(const uint64_t *cells, uint32_t count, uint8_t *const *rows, uint32_t offset, uint8_t *changed)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t old;
        memcpy(&old, rows[i] + offset, sizeof old);
        memcpy(rows[i] + offset, &cells[i], sizeof old);
        changed[i] |= old != cells[i];
    }
}

static void wides_write(const ivm__wide *cells, uint32_t count, uint8_t *const *rows, uint32_t offset, uint8_t *changed)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__wide old;
        memcpy(&old, rows[i] + offset, sizeof old);
        memcpy(rows[i] + offset, &cells[i], sizeof old);
        changed[i] |= old != cells[i];
    }
}

void ivm__layout_write(const ivm__layout *layout, uint32_t column, const ivm__vector *in, uint32_t count, uint8_t *const *rows,
                       uint8_t *changed)
{
    assert(column < layout->columns_count && in->cells && in->type == layout->types[column]);
    if (ivm__type_is_wide(in->type)) {
        wides_write(in->cells, count, rows, layout->offsets[column], changed);
    } else {
        words_write(in->cells, count, rows, layout->offsets[column], changed);
    }
    if (layout->null_words) {
        null_bits_write(in->nulls, count, rows, column, changed);
    } else {
        assert(!in->nulls || nulls_none(in->nulls, count));
    }
}

/* ---- Gathering ------------------------------------------------------------------------------------------------------------------- */

static void words_gather(const uint8_t *const *rows, uint32_t count, uint32_t offset, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&out[i], rows[i] + offset, sizeof out[i]);
    }
}

static void wides_gather(const uint8_t *const *rows, uint32_t count, uint32_t offset, ivm__wide *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&out[i], rows[i] + offset, sizeof out[i]);
    }
}

static void nulls_gather(const uint8_t *const *rows, uint32_t count, uint32_t column, uint8_t *restrict out)
{
    uint32_t offset = IVM__ROW_HEADER + column / CHAR_BIT; /* of the byte that has the column's bit, little endian */
    uint32_t shift = column % CHAR_BIT;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = rows[i][offset] >> shift & 1;
    }
}

void ivm__layout_gather(const ivm__layout *layout, uint32_t column, const uint8_t *const *rows, uint32_t count, ivm__vector *out)
{
    assert(column < layout->columns_count && out->cells);
    assert(out->type == layout->types[column]);
    if (ivm__type_is_wide(layout->types[column])) {
        wides_gather(rows, count, layout->offsets[column], out->cells);
    } else {
        words_gather(rows, count, layout->offsets[column], out->cells);
    }
    if (out->nulls && layout->null_words) {
        nulls_gather(rows, count, column, out->nulls);
    } else if (out->nulls) {
        memset(out->nulls, 0, count);
    }
}
