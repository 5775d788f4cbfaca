/* Steps: weights that change, and the two ends of a step.
 *
 *     touched[]: {row, before, after}      header: the touch      commit: header = after      undo: header = before
 *
 * Rows that the step appended are cut off by an undo; those it put under a free id have before = 0, which no other touched row has. Rows of weight 0 leave the indexes when the step
 * commits, but their texts and ids are given back one commit later: until then they are the changes that can be read.
 * Cost: a commit or undo visits the touched rows, an undo also the appended ones; of a store that had none before the step it visits only texts. */
#include "finder.h"
#include "heavy.h"
#include "index.h"
#include "pages.h"
#include "store_inside.h"

#define PREFETCH_AHEAD 12u
#define LEAVING_ROWS 64u
#define KEPT_ITEMS_MIN 1024u /* arrays up to this size are never given back */

ivm_status ivm__store_touch(ivm__store *store, ivm__row_id row)
{
    assert(row < store->rows_end);
    if (ivm__header_is_touch(ivm__row_header_of(ivm__store_row(store, row)))) {
        return IVM_OK;
    }
    IVM_TRY(ivm__store_touches_reserve(store, store->reserved + 1));
    IVM_TRY(ivm__page_own(store, row));
    uint8_t *at = ivm__store_row(store, row);
    ivm__touch *touch = &store->touched[store->touched_count++];
    touch->before = (int64_t)ivm__store_weight_at(store, row, at, IVM__READ_OLD); /* what was committed fits */
    touch->after = ivm__store_weight_at(store, row, at, IVM__READ_CUR);
    touch->row = row;
    assert(touch->after != 0); /* a row taken out by an earlier step is not found any more */
    *ivm__row_header_at(at) = ivm__header_of_touch(store->touched_count);
    return IVM_OK;
}

void ivm__store_weight_set(ivm__store *store, ivm__row_id row, ivm__weight after)
{
    uint32_t nth = ivm__header_touch(ivm__row_header_of(ivm__store_row(store, row)));
    assert(nth > 0 && nth <= store->touched_count);
    ivm__touch *touch = &store->touched[nth - 1];
    assert(touch->row == row);
    store->rows_live = store->rows_live + (after != 0) - (touch->after != 0);
    touch->after = after;
    ivm__weight_note(store, after);
}

ivm_status ivm__store_update_reserve(ivm__store *store, uint64_t rows)
{
    IVM_TRY(ivm__store_reserve(store, rows));
    return ivm__store_touches_reserve(store, rows * 2);
}

ivm_status ivm__store_update(ivm__store *store, ivm__row_id old, const uint8_t *row, ivm__row_id *replaced)
{
    bool one = ivm__row_header_of(ivm__store_row(store, old)) == ivm__header_of_weight(1);
    if (ivm__unlikely(!one || old >= store->step_end)) {
        IVM_TRY(ivm__store_touch(store, old));
        ivm__store_weight_set(store, old, 0);
    } else {
        IVM_TRY(ivm__page_own(store, old));
        assert(store->touched_count < store->touched_capacity);
        store->touched[store->touched_count++] = (ivm__touch){ .before = 1, .row = old };
        *ivm__row_header_at(ivm__store_row(store, old)) = ivm__header_of_touch(store->touched_count);
        store->rows_live--;
    }
    *replaced = ivm__store_insert(store, 1);
    memcpy(ivm__store_row(store, *replaced) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, store->layout->body_bytes);
    ivm__store_link(store, *replaced);
    return IVM_OK;
}

/* A sum past 128 bits wraps: what is added to it may yet bring it back, and then it is right. */
static ivm__weight weight_sum(ivm__weight a, ivm__weight b)
{
    return (ivm__weight)((unsigned __int128)a + (unsigned __int128)b);
}

/* A row of this step that nobody touched yet needs no touch to change its weight, as long as the header can hold it. */
static bool appended_weight_add(ivm__store *store, ivm__row_id row, ivm__weight weight)
{
    ivm__row_header *header = ivm__row_header_at(ivm__store_row(store, row));
    ivm__weight sum = weight_sum(ivm__header_weight(*header), weight);
    if (row < store->step_end || ivm__header_is_touch(*header) || sum == 0 || !ivm__weight_is_narrow(sum)) {
        return false;
    }
    *header = ivm__header_of_weight((int32_t)sum);
    ivm__weight_note(store, sum);
    return true;
}

ivm_status ivm__store_weight_add(ivm__store *store, ivm__row_id row, ivm__weight weight)
{
    assert(row < store->rows_end);
    if (appended_weight_add(store, row, weight)) {
        return IVM_OK;
    }
    IVM_TRY(ivm__store_touch(store, row));
    ivm__store_weight_set(store, row, weight_sum(ivm__store_weight(store, row, IVM__READ_CUR), weight));
    return IVM_OK;
}

/* ---- Ends ------------------------------------------------------------------------------------------------------------------------ */

/* Rows on their way out of the indexes, so many at a time. */
typedef struct leaving {
    uint32_t count;
    bool forgotten; /* they give their texts up too */
    ivm__row_id rows[LEAVING_ROWS];
} leaving;

static void leaving_finish(leaving *rows, ivm__store *store)
{
    ivm__store_unlink_rows(store, rows->rows, rows->count);
    for (uint32_t i = 0; rows->forgotten && i < rows->count; i++) {
        ivm__store_texts_release(store, ivm__store_row(store, rows->rows[i]));
    }
    rows->count = 0;
}

static void leaving_add(leaving *rows, ivm__store *store, ivm__row_id row)
{
    rows->rows[rows->count++] = row;
    if (rows->count == LEAVING_ROWS) {
        leaving_finish(rows, store);
    }
}

static void touched_prefetch(const ivm__store *store, uint32_t i)
{
    if (i < store->touched_count) {
        ivm__prefetch_write(ivm__store_row(store, store->touched[i].row));
    }
}

/* What the step before took out can be read no more. */
static void last_give_back(ivm__store *store)
{
    for (uint32_t i = 0; i < store->last_count; i++) {
        const ivm__touch *touch = &store->last[i];
        if (touch->after != 0) {
            continue;
        }
        ivm__store_texts_release(store, ivm__store_row(store, touch->row));
        ivm__store_free_add(store, touch->row);
    }
}

/* The weight after becomes the present one. */
static void touch_settle(ivm__store *store, const ivm__touch *touch, uint32_t heavy_sorted)
{
    bool narrow = ivm__weight_is_narrow(touch->after);
    assert(touch->after >= INT64_MIN && touch->after <= INT64_MAX);
    *ivm__row_header_at(ivm__store_row(store, touch->row)) = ivm__header_of_any(touch->after);
    if (!ivm__weight_is_narrow(touch->before)) {
        ivm__heavy_change(store, heavy_sorted, touch->row, narrow ? 0 : (int64_t)touch->after);
    } else if (!narrow) {
        ivm__heavy_append(store, touch->row, (int64_t)touch->after);
    }
}

static void touches_settle(ivm__store *store)
{
    uint32_t heavy_sorted = store->heavy_count;
    bool heavy = false;
    leaving gone = { .forgotten = false };
    uint64_t changes = store->rows_end - store->step_end;
    for (uint32_t i = 0; i < store->touched_count; i++) {
        const ivm__touch *touch = &store->touched[i];
        touched_prefetch(store, i + PREFETCH_AHEAD);
        changes += touch->before != touch->after;
        changes -= touch->row >= store->step_end;
        heavy |= !ivm__weight_is_narrow(touch->before) || !ivm__weight_is_narrow(touch->after);
        touch_settle(store, touch, heavy_sorted);
        if (touch->after == 0) {
            leaving_add(&gone, store, touch->row);
        }
    }
    leaving_finish(&gone, store);
    store->last_changes = changes;
    if (heavy) {
        ivm__heavy_settle(store, heavy_sorted);
    }
}

/* Gives most of an array back that a large step left behind; where the allocator will not, it stays. */
static void array_trim(ivm__memory *memory, void **array, uint32_t *capacity, uint64_t needed, size_t item_size)
{
    if (*capacity <= KEPT_ITEMS_MIN || needed > *capacity / 8) {
        return;
    }
    uint32_t kept = needed < KEPT_ITEMS_MIN ? KEPT_ITEMS_MIN : (uint32_t)needed;
    void *old;
    memcpy(&old, array, sizeof old);
    void *trimmed = ivm__resize(memory, old, *capacity * item_size, kept * item_size);
    if (trimmed) {
        memcpy(array, &trimmed, sizeof trimmed);
        *capacity = kept;
    }
}

/* Of segments the first is never given back. */
static void free_trim(ivm__store *store, uint64_t needed)
{
    if (ivm__likely(store->free_capacity <= KEPT_ITEMS_MIN || store->free.segments.count < 2 || needed > store->free_capacity / 8)) {
        return;
    }
    ivm__items_trim(&store->free, store->memory, needed < KEPT_ITEMS_MIN ? KEPT_ITEMS_MIN : needed);
    store->free_capacity = (uint32_t)ivm__items_room(&store->free);
}

/* `touched`: rows of the step that ended; the next is taken to be as large. */
static void arrays_trim(ivm__store *store, uint32_t touched)
{
    uint64_t given_back = (uint64_t)store->free_count + store->last_count + touched;
    uint64_t heavy = (uint64_t)store->heavy_count + touched;
    array_trim(store->memory, (void **)&store->touched, &store->touched_capacity, touched, sizeof *store->touched);
    array_trim(store->memory, (void **)&store->last, &store->last_capacity, store->last_count, sizeof *store->last);
    ivm__heavies_trim(store, heavy);
    free_trim(store, given_back);
}

static void memory_trim(ivm__store *store, uint32_t touched)
{
    arrays_trim(store, touched);
    ivm__pages_trim(store);
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        ivm__index_trim(index);
    }
}

void ivm__store_commit(ivm__store *store)
{
    assert(!store->laid);
    if (ivm__store_is_settled(store)) {
        store->reserved = 0;
        return;
    }
    last_give_back(store);
    touches_settle(store);
    ivm__touch *touched = store->touched;
    uint32_t touched_count = store->touched_count, touched_capacity = store->touched_capacity;
    store->touched = store->last;
    store->touched_capacity = store->last_capacity;
    store->touched_count = 0;
    store->last = touched;
    store->last_capacity = touched_capacity;
    store->last_count = touched_count;
    store->last_first = store->step_end;
    store->last_end = store->step_end = store->rows_end;
    store->reserved = 0;
    ivm__store_overwritten_commit(store);
    memory_trim(store, touched_count);
    if (ivm__unlikely(ivm__store_finds(store))) {
        ivm__finder_commit(store);
    }
}

static void appended_undo(ivm__store *store, leaving *undone)
{
    for (ivm__row_id row = store->rows_end; row-- > store->step_end;) {
        store->rows_live -= ivm__store_weight(store, row, IVM__READ_CUR) != 0;
        leaving_add(undone, store, row);
    }
}

/* A row that was nothing before came in this step. */
static void touch_undo(ivm__store *store, const ivm__touch *touch, leaving *undone)
{
    store->rows_live = store->rows_live + (touch->before != 0) - (touch->after != 0);
    *ivm__row_header_at(ivm__store_row(store, touch->row)) = ivm__header_of_any(touch->before);
    if (touch->before == 0) {
        leaving_add(undone, store, touch->row);
        ivm__store_free_add(store, touch->row);
    }
}

/* Nothing stood before the step: indexes are emptied whole. */
static void all_undo(ivm__store *store)
{
    for (ivm__row_id row = 0; store->layout->texts_count && row < store->rows_end; row++) {
        ivm__store_texts_release(store, ivm__store_row(store, row));
    }
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        ivm__index_clear(index);
    }
    store->rows_live = 0;
}

void ivm__store_undo(ivm__store *store)
{
    assert(!store->laid);
    leaving undone = { .forgotten = true };
    ivm__store_overwritten_undo(store);
    if (store->step_end == 0) {
        all_undo(store);
    } else {
        appended_undo(store, &undone);
    }
    for (uint32_t i = store->touched_count; i-- > 0;) {
        touched_prefetch(store, i - PREFETCH_AHEAD); /* wraps past the count at the end */
        if (store->touched[i].row < store->step_end) {
            touch_undo(store, &store->touched[i], &undone);
        }
    }
    leaving_finish(&undone, store);
    uint32_t touched_count = store->touched_count;
    store->rows_end = store->step_end;
    store->touched_count = 0;
    store->reserved = 0;
    memory_trim(store, touched_count);
}
