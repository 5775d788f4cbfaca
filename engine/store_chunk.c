/* Between stores and chunks: a chunk's rows as new rows, and rows of a store as chunks of at most IVM__CHUNK_ROWS rows. Cost: a load and a
 * store a cell; rows read are prefetched. */
#include "store_inside.h"

#include "zset.h"

#define BLOCK_ROWS 256u
#define WORDS_MAX 32u

/* ---- In -------------------------------------------------------------------------------------------------------------------------- */

static void rows_put(ivm__store *store, const ivm__chunk *chunk, uint32_t first, uint32_t count, ivm__row_id *rows, uint8_t **at)
{
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = ivm__store_put(store, ivm__chunk_weight(chunk, first + i));
        at[i] = ivm__store_row(store, rows[i]);
    }
}

static void block_put(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns, uint32_t first, uint32_t count)
{
    ivm__row_id rows[BLOCK_ROWS];
    uint8_t *at[BLOCK_ROWS];
    if (!chunk->weights && store->free_count == 0) {
        ivm__store_append_ones(store, count, rows, at);
    } else {
        rows_put(store, chunk, first, count, rows, at);
    }
    ivm__layout_scatter(store->layout, chunk, columns, first, count, at);
    ivm__store_link_rows(store, rows, count);
}

/* Whether rows are a header and words side by side, and nobody is to be told where they went: the facts of a star. */
static bool puts_words(const ivm__store *store, const ivm__chunk *chunk)
{
    const ivm__layout *layout = store->layout;
    bool plain = !chunk->weights && !store->indexes && store->free_count == 0 && !layout->null_words && !layout->texts_count;
    return plain && layout->body_bytes == layout->columns_count * sizeof(uint64_t) && layout->columns_count <= WORDS_MAX;
}

/* Row by row, so that each line of memory is written once. */
static void words_write(uint8_t *place, size_t stride, const uint64_t *const *cells, uint32_t cells_count, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, place += stride) {
        *ivm__row_header_at(place) = (ivm__row_header){ .weight = 1 };
        uint64_t *words = (uint64_t *)(void *)(place + IVM__ROW_HEADER);
        for (uint32_t c = 0; c < cells_count; c++) {
            words[c] = cells[c][i];
        }
    }
}

static void words_put(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns)
{
    const uint64_t *cells[WORDS_MAX];
    uint32_t cells_count = store->layout->columns_count;
    for (uint32_t done = 0, more; done < chunk->rows_count; done += more) {
        uint8_t *place = ivm__store_append_run(store, chunk->rows_count - done, &more);
        for (uint32_t c = 0; c < cells_count; c++) {
            cells[c] = (const uint64_t *)chunk->columns[columns ? columns[c] : c].cells + done;
        }
        words_write(place, store->layout->stride, cells, cells_count, more);
    }
}

ivm_status ivm__store_put_chunk(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns)
{
    uint32_t rows_count = chunk->rows_count;
    IVM_TRY(ivm__store_reserve(store, rows_count));
    if (puts_words(store, chunk)) {
        words_put(store, chunk, columns);
        return IVM_OK;
    }
    for (uint32_t done = 0; done < rows_count; done += BLOCK_ROWS) {
        block_put(store, chunk, columns, done, rows_count - done < BLOCK_ROWS ? rows_count - done : BLOCK_ROWS);
    }
    return IVM_OK;
}

/* ---- Out ------------------------------------------------------------------------------------------------------------------------- */

static bool nulls_any(const uint8_t *nulls, uint32_t count)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < count; i++) {
        any |= nulls[i];
    }
    return any;
}

static bool columns_read(const ivm__store *store, ivm__arena *arena, const ivm__row_id *rows, ivm__chunk *chunk)
{
    const ivm__layout *layout = store->layout;
    for (uint32_t c = 0; c < layout->columns_count; c++) {
        ivm__vector *out = &chunk->columns[c];
        if (!ivm__vector_make(arena, out, layout->types[c], chunk->rows_count, layout->nullable[c])) {
            return false;
        }
        ivm__store_gather(store, rows, chunk->rows_count, c, out);
        if (out->nulls && !nulls_any(out->nulls, chunk->rows_count)) {
            out->nulls = NULL;
        }
    }
    return true;
}

static bool weights_write(ivm__arena *arena, const ivm__weight *weights, ivm__chunk *chunk)
{
    bool plain = true;
    for (uint32_t i = 0; plain && i < chunk->rows_count; i++) {
        plain = weights[i] == 1;
    }
    if (plain) {
        return true;
    }
    size_t bytes = chunk->rows_count * sizeof *weights;
    chunk->weights = ivm__arena_allocate(arena, bytes);
    if (chunk->weights) {
        memcpy(chunk->weights, weights, bytes);
    }
    return chunk->weights != NULL;
}

static ivm_status rows_chunk(const ivm__store *store, ivm__arena *arena, const ivm__row_id *rows, const ivm__weight *weights,
                             uint32_t count, ivm__chunk **chunk)
{
    *chunk = NULL;
    if (count == 0) {
        return IVM_OK;
    }
    ivm__chunk *made = ivm__chunk_make(arena, store->layout->types, store->layout->columns_count);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->rows_count = count;
    if (!columns_read(store, arena, rows, made) || !weights_write(arena, weights, made)) {
        return IVM_OUT_OF_MEMORY;
    }
    *chunk = made;
    return IVM_OK;
}

ivm_status ivm__store_chunk(const ivm__store *store, ivm__arena *arena, ivm__reading reading, uint32_t *next, ivm__chunk **chunk)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t count = ivm__store_scan(store, reading, next, IVM__CHUNK_ROWS, rows, weights);
    return rows_chunk(store, arena, rows, weights, count, chunk);
}

ivm_status ivm__store_change_chunk(const ivm__store *store, ivm__arena *arena, uint32_t *next, ivm__chunk **chunk)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t count = ivm__store_changes(store, next, IVM__CHUNK_ROWS, rows, weights);
    return rows_chunk(store, arena, rows, weights, count, chunk);
}

ivm_status ivm__store_change_chunk_aside(const ivm__store *store, ivm__arena *arena, const ivm__aside *aside, bool wanted, uint32_t *next,
                                         ivm__chunk **chunk)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t count, kept = 0;
    while (kept == 0 && (count = ivm__store_changes(store, next, IVM__CHUNK_ROWS, rows, weights)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            rows[kept] = rows[i];
            weights[kept] = weights[i];
            kept += ivm__store_row_is_aside(store, rows[i], aside) == wanted;
        }
    }
    return rows_chunk(store, arena, rows, weights, kept, chunk);
}
