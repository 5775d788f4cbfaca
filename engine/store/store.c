/* Stores: how rows come and what they hold. A row's id is its place in the pages; it is given at the end, or, to an insert, from the list of
 * those that earlier steps took out. Nothing here can fail but reserving, so that whoever reserved first need undo nothing.
 *
 *     reserve (pages, touches, indexes)  ->  append or insert (header)  ->  the caller's body  ->  link (texts, indexes)
 *
 * Cost: a few instructions a row, and one lookup an index. See store_step.c for what ends a step. */
#include "store_inside.h"

#include "finder.h"
#include "heavy.h"
#include "index.h"
#include "pages.h"

/* ---- Texts ----------------------------------------------------------------------------------------------------------------------- */

static const ivm__text *row_text(const ivm__store *store, const uint8_t *at, uint32_t nth)
{
    uint64_t word;
    memcpy(&word, at + store->layout->texts[nth], sizeof word);
    return (const ivm__text *)(uintptr_t)word;
}

void ivm__store_texts_release(ivm__store *store, const uint8_t *at)
{
    for (uint32_t i = 0; i < store->layout->texts_count; i++) {
        const ivm__text *text = row_text(store, at, i);
        if (text) {
            ivm__texts_release(store->texts, text);
        }
    }
}

void ivm__store_texts_acquire(ivm__store *store, const uint8_t *at)
{
    for (uint32_t i = 0; i < store->layout->texts_count; i++) {
        const ivm__text *text = row_text(store, at, i);
        if (text) {
            ivm__texts_acquire(store->texts, text);
        }
    }
}

/* Of all rows that hold them, those that the last step took out too. */
static void texts_release_all(ivm__store *store)
{
    if (store->layout->texts_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < store->last_count; i++) {
        if (store->last[i].after == 0) {
            ivm__store_texts_release(store, ivm__store_row(store, store->last[i].row));
        }
    }
    for (ivm__row_id row = 0; row < store->rows_end; row++) {
        const uint8_t *at = ivm__store_row(store, row);
        if (ivm__row_is_linked(at)) {
            ivm__store_texts_release(store, at);
        }
    }
}

/* ---- From first to last ------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__store_init(ivm__store *store, ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__layout *layout)
{
    assert(texts || layout->texts_count == 0);
    *store = (ivm__store){ .memory = memory, .texts = texts, .seed = seed };
    ivm__items_init(&store->free, sizeof(ivm__row_id));
    if (ivm__pages_init(store) != IVM_OK) {
        *store = (ivm__store){ 0 };
        return IVM_OUT_OF_MEMORY;
    }
    store->layout = ivm__layout_acquire(layout);
    store->page_shift = ivm__page_shift(layout->stride);
    store->page_mask = (1u << store->page_shift) - 1;
    return IVM_OK;
}

void ivm__store_deinit(ivm__store *store)
{
    if (!store->layout) {
        return;
    }
    texts_release_all(store);
    while (store->indexes) {
        ivm__index *index = store->indexes;
        store->indexes = index->next_of_store;
        ivm__index_free(index);
    }
    ivm__items_free(&store->free, store->memory);
    ivm__release(store->memory, store->touched, store->touched_capacity * sizeof *store->touched);
    ivm__release(store->memory, store->last, store->last_capacity * sizeof *store->last);
    ivm__heavies_release(store->heavies, store->memory);
    ivm__heavies_release(store->heavies_spare, store->memory);
    ivm__store_overwritten_free(store);
    ivm__finder_drop(store);
    ivm__offer_release(store->offer, store->memory);
    ivm__pages_deinit(store);
    ivm__layout_release(store->layout);
    *store = (ivm__store){ 0 };
}

void ivm__store_clear(ivm__store *store)
{
    assert(atomic_load(&store->pages->references) == 1);
    texts_release_all(store);
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        ivm__index_clear(index);
    }
    store->rows_end = store->step_end = store->last_first = store->last_end = 0;
    store->last_changes = 0;
    store->free_count = store->touched_count = store->last_count = store->heavy_count = 0;
    store->overwritten.count = store->overwritten_last.count = 0;
    store->rows_live = store->reserved = 0;
    store->weight_max = 0;
    ivm__finder_drop(store);
}

/* ---- Room ------------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__store_free_reserve(ivm__store *store, uint64_t count)
{
    if (count > store->free_capacity) {
        IVM_TRY(ivm__items_reserve(&store->free, store->memory, count));
        store->free_capacity = (uint32_t)ivm__items_room(&store->free);
    }
    return IVM_OK;
}

/* What `rows` more touches need: their own entries; room to note every weight as heavy, and every row as free, when steps end. The
 * last holds at any time, because touches become `last` and `last` becomes free. */
ivm_status ivm__store_touches_reserve(ivm__store *store, uint64_t rows)
{
    uint64_t touched = store->touched_count + rows;
    uint64_t heavy = store->heavy_count + touched;
    uint64_t given_back = store->free_count + store->last_count + touched;
    if (ivm__likely(touched <= store->touched_capacity && heavy <= store->heavy_capacity && given_back <= store->free_capacity)) {
        return IVM_OK;
    }
    if (touched > IVM__TOUCHES_MAX) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__memory *memory = store->memory;
    IVM_TRY(ivm__grow(memory, (void **)&store->touched, &store->touched_capacity, touched, sizeof *store->touched));
    if (heavy > store->heavy_capacity) {
        IVM_TRY(ivm__heavies_reserve(store, heavy));
    }
    return ivm__store_free_reserve(store, given_back);
}

ivm_status ivm__store_reserve(ivm__store *store, uint64_t rows)
{
    if (rows <= store->reserved) {
        return IVM_OK;
    }
    if (rows > IVM_TABLE_ROWS_MAX - store->rows_end) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__store_touches_reserve(store, rows));
    store->wanted = store->wanted > store->rows_end + rows ? store->wanted : store->rows_end + rows;
    IVM_TRY(ivm__pages_reserve(store, store->rows_end, store->rows_end + rows));
    uint32_t reused = rows < store->free_count ? (uint32_t)rows : store->free_count;
    for (uint32_t i = 0; i < reused; i++) {
        IVM_TRY(ivm__page_own(store, *ivm__store_free_at(store, store->free_count - 1 - i)));
    }
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        IVM_TRY(ivm__index_reserve(index, rows));
    }
    store->reserved = rows;
    return IVM_OK;
}

/* ---- New rows -------------------------------------------------------------------------------------------------------------------- */

ivm__row_id ivm__store_append(ivm__store *store, int32_t weight)
{
    assert(weight != 0 && ivm__weight_is_narrow(weight));
    assert(store->reserved > 0);
    store->reserved--;
    ivm__row_id row = store->rows_end++;
    *ivm__row_header_at(ivm__store_row(store, row)) = ivm__header_of_weight(weight);
    store->rows_live++;
    ivm__weight_note(store, weight);
    return row;
}

uint8_t *ivm__store_append_run(ivm__store *store, uint32_t most, uint32_t *count)
{
    uint32_t room = store->page_mask + 1 - (store->rows_end & store->page_mask);
    uint8_t *place = ivm__store_row(store, store->rows_end);
    *count = most < room ? most : room;
    assert(store->reserved >= *count);
    store->reserved -= *count;
    store->rows_end += *count;
    store->rows_live += *count;
    if (*count && store->weight_max < 1) {
        store->weight_max = 1;
    }
    return place;
}

void ivm__store_append_ones(ivm__store *store, uint32_t count, ivm__row_id *rows, uint8_t **at)
{
    const size_t stride = store->layout->stride;
    for (uint32_t done = 0, more; done < count; done += more) {
        ivm__row_id first = store->rows_end;
        uint8_t *place = ivm__store_append_run(store, count - done, &more);
        for (uint32_t i = 0; i < more; i++, place += stride) {
            *ivm__row_header_at(place) = ivm__header_of_weight(1);
            rows[done + i] = first + i;
            at[done + i] = place;
        }
    }
}

ivm__row_id ivm__store_insert(ivm__store *store, ivm__weight weight)
{
    assert(store->reserved > 0 && store->touched_count < store->touched_capacity);
    store->reserved--;
    ivm__row_id row = store->free_count ? *ivm__store_free_at(store, --store->free_count) : store->rows_end++;
    store->touched[store->touched_count++] = (ivm__touch){ .after = weight, .row = row };
    *ivm__row_header_at(ivm__store_row(store, row)) = ivm__header_of_touch(store->touched_count);
    store->rows_live += weight != 0;
    ivm__weight_note(store, weight);
    return row;
}

ivm__row_id ivm__store_put(ivm__store *store, ivm__weight weight)
{
    return store->free_count || !ivm__weight_is_narrow(weight) ? ivm__store_insert(store, weight)
                                                               : ivm__store_append(store, (int32_t)weight);
}

void ivm__store_link(ivm__store *store, ivm__row_id row)
{
    ivm__store_texts_acquire(store, ivm__store_row(store, row));
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        ivm__index_link(index, row);
    }
}

void ivm__store_link_others(ivm__store *store, const ivm__row_id *rows, uint32_t count, const ivm__index *linked)
{
    for (uint32_t i = 0; store->layout->texts_count && i < count; i++) {
        ivm__store_texts_acquire(store, ivm__store_row(store, rows[i]));
    }
    ivm__indexes_link_rows(store->indexes, linked, rows, count);
}

void ivm__store_link_rows(ivm__store *store, const ivm__row_id *rows, uint32_t count)
{
    ivm__store_link_others(store, rows, count, NULL);
}

void ivm__store_unlink_rows(ivm__store *store, const ivm__row_id *rows, uint32_t count)
{
    ivm__indexes_unlink_rows(store->indexes, rows, count);
}
