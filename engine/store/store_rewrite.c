/* A store written anew for other columns: the same rows under the same ids, with the same weights, laid out otherwise.
 *
 *     column c of the new store = column from[c] of the old one, or null in every row where from[c] is IVM__COLUMN_NEW
 *
 * Between steps; what the last step took out is given back first. Indexes are made again where all of their columns are still there, but for
 * the one over whole rows, which is no longer that. The old store is left as it is, so that a failure costs nothing. Cost: a load and a store a cell, a lookup a row and index. */
#include "heavy.h"
#include "index.h"
#include "pages.h"
#include "store_inside.h"
#include "zset.h"

#define BLOCK_ROWS 256u

/* ---- Chunks ---------------------------------------------------------------------------------------------------------------------- */

static bool null_vector(ivm__arena *arena, ivm_type type, uint32_t rows, ivm__vector *out)
{
    if (!ivm__vector_make(arena, out, type, rows, true)) {
        return false;
    }
    memset(out->cells, 0, (size_t)rows * ivm__type_words(type) * sizeof(uint64_t));
    memset(out->nulls, 1, rows);
    return true;
}

ivm__chunk *ivm__chunk_rewrite(ivm__arena *arena, const ivm__chunk *chunk, const ivm__layout *layout, const uint32_t *from)
{
    ivm__chunk *made = ivm__chunk_make(arena, layout->types, layout->columns_count);
    if (!made) {
        return NULL;
    }
    made->rows_count = chunk->rows_count;
    made->weights = chunk->weights;
    for (uint32_t c = 0; c < layout->columns_count; c++) {
        if (from[c] != IVM__COLUMN_NEW) {
            made->columns[c] = chunk->columns[from[c]];
        } else if (!null_vector(arena, layout->types[c], chunk->rows_count, &made->columns[c])) {
            return NULL;
        }
    }
    return made;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status free_copy(const ivm__store *old, ivm__store *made)
{
    IVM_TRY(ivm__store_free_reserve(made, old->free_count));
    for (uint32_t i = 0; i < old->free_count; i++) {
        ivm__store_free_add(made, *ivm__store_free_at(old, i));
    }
    return IVM_OK;
}

static ivm_status heavies_copy(const ivm__store *old, ivm__store *made)
{
    if (old->heavy_count) {
        IVM_TRY(ivm__heavies_reserve(made, old->heavy_count));
        memcpy(made->heavies->list, old->heavies->list, old->heavy_count * sizeof *made->heavies->list);
    }
    made->heavy_count = old->heavy_count;
    return IVM_OK;
}

static void headers_copy(const ivm__store *old, ivm__store *made)
{
    for (ivm__row_id row = 0; row < old->rows_end; row++) {
        *ivm__row_header_at(ivm__store_row(made, row)) = *ivm__row_header_at(ivm__store_row(old, row));
    }
}

static ivm_status block_copy(const ivm__store *old, const uint32_t *from, ivm__arena *scratch, const ivm__row_id *rows, uint32_t count,
                             ivm__store *made)
{
    uint8_t *at[BLOCK_ROWS];
    ivm__chunk *chunk = ivm__chunk_make(scratch, old->layout->types, old->layout->columns_count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = count;
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        if (!ivm__vector_make(scratch, &chunk->columns[c], old->layout->types[c], count, old->layout->nullable[c])) {
            return IVM_OUT_OF_MEMORY;
        }
        ivm__store_gather(old, rows, count, c, &chunk->columns[c]);
    }
    chunk = ivm__chunk_rewrite(scratch, chunk, made->layout, from);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        at[i] = ivm__store_row(made, rows[i]);
    }
    ivm__layout_scatter(made->layout, chunk, NULL, 0, count, at);
    return IVM_OK;
}

static ivm_status rows_copy(const ivm__store *old, const uint32_t *from, ivm__arena *scratch, ivm__store *made)
{
    ivm__row_id rows[BLOCK_ROWS];
    ivm__weight weights[BLOCK_ROWS];
    uint32_t next = 0, count;
    while ((count = ivm__store_scan(old, IVM__READ_CUR, &next, BLOCK_ROWS, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm_status status = block_copy(old, from, scratch, rows, count, made);
        ivm__arena_back(scratch, mark);
        IVM_TRY(status);
    }
    return IVM_OK;
}

/* From here on the new store may be freed as any other. */
static void rows_publish(const ivm__store *old, ivm__store *made)
{
    headers_copy(old, made);
    made->rows_end = made->step_end = made->last_first = made->last_end = old->rows_end;
    made->rows_live = old->rows_live;
    made->weight_max = old->weight_max;
    for (ivm__row_id row = 0; made->layout->texts_count && row < made->rows_end; row++) {
        if (ivm__row_is_linked(ivm__store_row(made, row))) {
            ivm__store_texts_acquire(made, ivm__store_row(made, row));
        }
    }
}

/* ---- Indexes --------------------------------------------------------------------------------------------------------------------- */

/* The new place of a column; IVM__COLUMN_NEW: it has none. */
static uint32_t column_now(const uint32_t *from, uint32_t columns_count, uint32_t column)
{
    for (uint32_t c = 0; c < columns_count; c++) {
        if (from[c] == column) {
            return c;
        }
    }
    return IVM__COLUMN_NEW;
}

static ivm_status index_rewrite(const ivm__index *index, const uint32_t *from, ivm__arena *scratch, ivm__store *made)
{
    uint32_t *columns = ivm__arena_allocate(scratch, index->columns_count * sizeof *columns);
    ivm__index *rewritten;
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < index->columns_count; c++) {
        columns[c] = column_now(from, made->layout->columns_count, index->columns[c]);
        if (columns[c] == IVM__COLUMN_NEW) {
            return IVM_OK;
        }
    }
    return ivm__store_index(made, columns, index->columns_count, index->unique, &rewritten);
}

static ivm_status indexes_rewrite(const ivm__store *old, const ivm__index *whole, const uint32_t *from, ivm__arena *scratch,
                                  ivm__store *made)
{
    for (const ivm__index *index = old->indexes; index; index = index->next_of_store) {
        if (index == whole) {
            continue;
        }
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm_status status = index_rewrite(index, from, scratch, made);
        ivm__arena_back(scratch, mark);
        IVM_TRY(status);
    }
    return IVM_OK;
}

/* ---- The store ------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__store_rewrite(ivm__store *old, const ivm__index *whole, ivm__layout *layout, const uint32_t *from, ivm__arena *scratch,
                              ivm__store *made)
{
    assert(!old->laid && old->touched_count == 0 && old->rows_end == old->step_end);
    ivm__store_commit(old); /* an empty step: what the last one took out is free now */
    IVM_TRY(ivm__store_init(made, old->memory, old->texts, old->seed, layout));
    ivm_status status = ivm__pages_reserve(made, 0, old->rows_end);
    if (status == IVM_OK) {
        status = free_copy(old, made);
    }
    if (status == IVM_OK) {
        status = heavies_copy(old, made);
    }
    if (status == IVM_OK) {
        status = rows_copy(old, from, scratch, made);
    }
    if (status == IVM_OK) {
        rows_publish(old, made);
        status = indexes_rewrite(old, whole, from, scratch, made);
    }
    if (status != IVM_OK) {
        ivm__store_deinit(made);
    }
    return status;
}

/* Of a store that has come here from another place. */
static void indexes_point(ivm__store *store)
{
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        index->store = store;
        if (index->larger) {
            index->larger->store = store;
        }
    }
}

void ivm__store_replace(ivm__store *store, ivm__store *made)
{
    assert(!store->laid && !made->laid && made->touched_count == 0);
    ivm__store_deinit(store);
    *store = *made;
    indexes_point(store);
    *made = (ivm__store){ 0 };
}

void ivm__store_exchange(ivm__store *a, ivm__store *b)
{
    assert(!a->laid && !b->laid && a->touched_count == 0 && b->touched_count == 0);
    ivm__store held = *a;
    *a = *b;
    *b = held;
    indexes_point(a);
    indexes_point(b);
}
