/* Rows overwritten in place: what an update costs where nobody must find the old and the new row side by side. The row keeps its id and its weight of
 * 1; its old body goes to a list that is the undo log while the step lasts and, one step longer, the changes that can be read.
 *
 *     update (store_step.c)   one row gone, another one come: two touches, a free id, both found by readers       overwrite   one copy
 *
 * Only for rows that no index finds and no other view reads. Snapshots keep the old body: their pages are copied before they are written.
 * Cost: a copy of the body, and what is written. */
#include "pages.h"
#include "store_inside.h"

#define KEPT_ROWS_MIN 1024u /* lists up to this size are never given back */

static size_t body_bytes(const ivm__store *store)
{
    return store->layout->body_bytes;
}

static void list_free(ivm__store *store, ivm__overwritten *list)
{
    ivm__release(store->memory, list->rows, list->rows_capacity * sizeof *list->rows);
    ivm__release(store->memory, list->bodies, (size_t)list->bodies_capacity * body_bytes(store));
    *list = (ivm__overwritten){ 0 };
}

void ivm__store_overwritten_free(ivm__store *store)
{
    list_free(store, &store->overwritten);
    list_free(store, &store->overwritten_last);
}

static ivm_status list_reserve(ivm__store *store, uint64_t rows)
{
    ivm__overwritten *list = &store->overwritten;
    uint64_t needed = list->count + rows;
    IVM_TRY(ivm__grow(store->memory, (void **)&list->rows, &list->rows_capacity, needed, sizeof *list->rows));
    return ivm__grow(store->memory, (void **)&list->bodies, &list->bodies_capacity, needed, body_bytes(store));
}

bool ivm__store_may_overwrite(const ivm__store *store, ivm__row_id row)
{
    bool one = ivm__row_header_of(ivm__store_row(store, row)) == ivm__header_of_weight(1);
    return store->overwrites && !store->indexes && one && row < store->step_end;
}

ivm_status ivm__store_overwrite_begin(ivm__store *store, const ivm__row_id *rows, uint32_t count, uint8_t **at)
{
    ivm__overwritten *list = &store->overwritten;
    IVM_TRY(list_reserve(store, count));
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__page_own(store, rows[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        assert(ivm__store_may_overwrite(store, rows[i]));
        at[i] = ivm__store_row(store, rows[i]);
        list->rows[list->count] = rows[i];
        memcpy(list->bodies + list->count++ * body_bytes(store), at[i] + IVM__ROW_HEADER, body_bytes(store));
    }
    return IVM_OK;
}

void ivm__store_overwrite_end(ivm__store *store, const uint8_t *changed, uint32_t count)
{
    ivm__overwritten *list = &store->overwritten;
    uint32_t first = list->count - count, kept = first;
    assert(list->count >= count);
    for (uint32_t i = 0; i < count; i++) {
        if (!changed[i]) {
            continue;
        }
        if (kept != first + i) {
            list->rows[kept] = list->rows[first + i];
            memcpy(list->bodies + kept * body_bytes(store), list->bodies + (first + i) * body_bytes(store), body_bytes(store));
        }
        kept++;
    }
    list->count = kept;
}

void ivm__store_overwritten_commit(ivm__store *store)
{
    ivm__overwritten spent = store->overwritten_last;
    store->overwritten_last = store->overwritten;
    if (spent.rows_capacity > KEPT_ROWS_MIN && store->overwritten_last.count < spent.rows_capacity / 8) {
        list_free(store, &spent);
    }
    spent.count = 0;
    store->overwritten = spent;
    store->last_changes += 2 * (uint64_t)store->overwritten_last.count;
}

void ivm__store_overwritten_undo(ivm__store *store)
{
    ivm__overwritten *list = &store->overwritten;
    for (uint32_t i = list->count; i-- > 0;) {
        memcpy(ivm__store_row(store, list->rows[i]) + IVM__ROW_HEADER, list->bodies + i * body_bytes(store), body_bytes(store));
    }
    list->count = 0;
}
