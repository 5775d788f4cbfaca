/* Between stores and chunks: a chunk's rows as new rows, and rows of a store as chunks of at most IVM__CHUNK_ROWS rows. Cost: a load and a
 * store a cell; rows read are prefetched. */
#include "store_inside.h"

#include "zset.h"

#define BLOCK_ROWS 256u

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

ivm_status ivm__store_put_chunk(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns)
{
    uint32_t rows_count = chunk->rows_count;
    IVM_TRY(ivm__store_reserve(store, rows_count));
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

ivm_status ivm__store_last_chunk(const ivm__store *store, ivm__arena *arena, uint32_t *next, ivm__chunk **chunk)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t count = ivm__store_changes_last(store, next, IVM__CHUNK_ROWS, rows, weights);
    return rows_chunk(store, arena, rows, weights, count, chunk);
}
