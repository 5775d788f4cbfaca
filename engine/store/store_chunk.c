/* Between stores and chunks: a chunk's rows as new rows, and rows of a store as chunks of at most IVM__CHUNK_ROWS rows. Cost: a load and a
 * store a cell; rows read are prefetched. Many chunks at once are written by all threads, each to places that are known beforehand, and then
 * linked, an index a thread. */
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
static bool holds_words(const ivm__layout *layout)
{
    bool plain = !layout->null_words && !layout->texts_count;
    return plain && layout->body_bytes == layout->columns_count * sizeof(uint64_t) && layout->columns_count <= WORDS_MAX;
}

static bool puts_words(const ivm__store *store, const ivm__chunk *chunk)
{
    return !chunk->weights && !store->indexes && store->free_count == 0 && holds_words(store->layout);
}

/* Row by row, so that each line of memory is written once. */
static void words_write(uint8_t *place, size_t stride, const uint64_t *const *cells, uint32_t cells_count, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, place += stride) {
        *ivm__row_header_at(place) = ivm__header_of_weight(1);
        for (uint32_t c = 0; c < cells_count; c++) {
            memcpy(place + IVM__ROW_HEADER + c * sizeof(uint64_t), &cells[c][i], sizeof(uint64_t));
        }
    }
}

/* Rows of the chunk from `first` on, to places side by side. */
static void words_put(const ivm__layout *layout, const ivm__chunk *chunk, const uint32_t *columns, uint32_t first, uint32_t count,
                      uint8_t *place)
{
    const uint64_t *cells[WORDS_MAX];
    for (uint32_t c = 0; c < layout->columns_count; c++) {
        cells[c] = (const uint64_t *)chunk->columns[columns ? columns[c] : c].cells + first;
    }
    words_write(place, layout->stride, cells, layout->columns_count, count);
}

static void chunk_put_words(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns)
{
    for (uint32_t done = 0, more; done < chunk->rows_count; done += more) {
        uint8_t *place = ivm__store_append_run(store, chunk->rows_count - done, &more);
        words_put(store->layout, chunk, columns, done, more, place);
    }
}

ivm_status ivm__store_put_chunk(ivm__store *store, const ivm__chunk *chunk, const uint32_t *columns)
{
    uint32_t rows_count = chunk->rows_count;
    IVM_TRY(ivm__store_reserve(store, rows_count));
    if (puts_words(store, chunk)) {
        chunk_put_words(store, chunk, columns);
        return IVM_OK;
    }
    for (uint32_t done = 0; done < rows_count; done += BLOCK_ROWS) {
        block_put(store, chunk, columns, done, rows_count - done < BLOCK_ROWS ? rows_count - done : BLOCK_ROWS);
    }
    return IVM_OK;
}

/* ---- In, on several threads ---------------------------------------------------------------------------------------------------------- */

/* Chunks on their way in. Their rows have their ids, one after the other; each chunk is a task, and so is then each index. */
typedef struct spread {
    ivm__store *store;
    ivm__chunk *const *chunks;
    ivm__row_id *firsts; /* of each chunk's rows */
    ivm__row_id first, end;
    bool words;
} spread;

static void places_put(const ivm__layout *layout, const ivm__chunk *chunk, uint32_t first, uint32_t count, uint8_t *place)
{
    uint8_t *at[BLOCK_ROWS];
    assert(count <= BLOCK_ROWS);
    for (uint32_t i = 0; i < count; i++, place += layout->stride) {
        *ivm__row_header_at(place) = ivm__header_of_weight(1);
        at[i] = place;
    }
    ivm__layout_scatter(layout, chunk, NULL, first, count, at);
}

static void spread_chunk(void *context, uint32_t number)
{
    const spread *it = context;
    const ivm__store *store = it->store;
    const ivm__chunk *chunk = it->chunks[number];
    for (uint32_t done = 0, count; done < chunk->rows_count; done += count) {
        ivm__row_id row = it->firsts[number] + done;
        uint32_t room = store->page_mask + 1 - (row & store->page_mask), left = chunk->rows_count - done;
        count = left < room ? left : room;
        count = count < BLOCK_ROWS ? count : BLOCK_ROWS;
        if (it->words) {
            words_put(store->layout, chunk, NULL, done, count, ivm__store_row(store, row));
        } else {
            places_put(store->layout, chunk, done, count, ivm__store_row(store, row));
        }
    }
}

static void spread_index(void *context, uint32_t number)
{
    const spread *it = context;
    ivm__index *index = it->store->indexes;
    for (uint32_t i = 0; i < number; i++) {
        index = index->next_of_store;
    }
    ivm__row_id rows[BLOCK_ROWS];
    for (ivm__row_id first = it->first; first < it->end; first += BLOCK_ROWS) {
        uint32_t count = it->end - first < BLOCK_ROWS ? it->end - first : BLOCK_ROWS;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        ivm__index_link_rows(index, rows, count);
    }
}

static void spread_link(spread *it, ivm__pool *pool)
{
    uint32_t indexes_count = 0;
    for (ivm__row_id row = it->first; it->store->layout->texts_count && row < it->end; row++) {
        ivm__store_texts_acquire(it->store, ivm__store_row(it->store, row));
    }
    for (const ivm__index *index = it->store->indexes; index; index = index->next_of_store) {
        indexes_count++;
    }
    if (indexes_count) {
        ivm__pool_run(pool, spread_index, it, indexes_count);
    }
}

/* Gives the ids. */
static void spread_append(spread *it, uint32_t chunks_count)
{
    it->first = it->store->rows_end;
    for (uint32_t i = 0; i < chunks_count; i++) {
        it->firsts[i] = it->store->rows_end;
        for (uint32_t done = 0, more; done < it->chunks[i]->rows_count; done += more) {
            (void)ivm__store_append_run(it->store, it->chunks[i]->rows_count - done, &more);
        }
    }
    it->end = it->store->rows_end;
}

static bool spreads(const ivm__store *store, const ivm__pool *pool, ivm__chunk *const *chunks, uint32_t chunks_count, uint64_t *rows_count)
{
    bool plain = store->free_count == 0;
    *rows_count = 0;
    for (uint32_t i = 0; i < chunks_count; i++) {
        plain &= !chunks[i]->weights;
        *rows_count += chunks[i]->rows_count;
    }
    return plain && ivm__pool_spreads(pool, *rows_count);
}

ivm_status ivm__store_put_chunks(ivm__store *store, ivm__pool *pool, ivm__arena *scratch, ivm__chunk *const *chunks, uint32_t chunks_count)
{
    uint64_t rows_count;
    bool plain = spreads(store, pool, chunks, chunks_count, &rows_count);
    IVM_TRY(ivm__store_reserve(store, rows_count));
    for (uint32_t i = 0; !plain && i < chunks_count; i++) {
        IVM_TRY(ivm__store_put_chunk(store, chunks[i], NULL));
    }
    if (!plain) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(scratch);
    spread it = { .store = store, .chunks = chunks, .words = holds_words(store->layout) };
    it.firsts = ivm__arena_allocate(scratch, chunks_count * sizeof *it.firsts);
    if (!it.firsts) {
        return IVM_OUT_OF_MEMORY;
    }
    spread_append(&it, chunks_count);
    ivm__pool_run(pool, spread_chunk, &it, chunks_count);
    spread_link(&it, pool);
    ivm__arena_back(scratch, mark);
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
