/* A store laid over with an earlier state, so that a view can be carried from there to here in one step, and lifted again.
 *
 *     rows from `first` on       step_end = first: read as if this step had appended them
 *     a row that stands          touched: before = what it weighed then
 *     a row gone since           put in for the time being: before = what it weighed then, after = 0
 *
 *     of equal rows that stand apart one alone is laid over: before(it) = now(it) - delta, which may be below 0; their sum is right
 *
 * Laying needs memory, lifting none. Rows put in take free ids, last given back first, or ids at the end, and give them back in the opposite
 * order. The list of the step last committed is not touched. Cost: a lookup a row laid over. */
#include "heavy.h"
#include "index_inside.h"

#define BLOCK_ROWS 64u

static void lay_begin(ivm__store *store)
{
    if (!store->laid) {
        assert(store->touched_count == 0 && store->rows_end == store->step_end);
        store->laid = true;
        store->laid_end = store->rows_end;
    }
}

void ivm__store_lay_from(ivm__store *store, ivm__row_id first)
{
    lay_begin(store);
    assert(store->touched_count == 0 && first <= store->rows_end);
    store->step_end = first;
}

/* The present row weighed this. Fails for memory alone, the row is then as it was. */
static ivm_status lay_row(ivm__store *store, ivm__row_id row, ivm__weight before)
{
    lay_begin(store);
    assert(row < store->laid_end && store->step_end == store->rows_end);
    IVM_TRY(ivm__store_touch(store, row));
    store->touched[ivm__header_touch(ivm__row_header_of(ivm__store_row(store, row))) - 1].before = before;
    return IVM_OK;
}

/* A row with this body, which is not there now, weighed this. Room was reserved. */
static void lay_gone(ivm__store *store, const uint8_t *row, ivm__weight before)
{
    lay_begin(store);
    assert(before != 0 && store->step_end == store->rows_end);
    ivm__row_id made = ivm__store_insert(store, 0);
    store->touched[store->touched_count - 1].before = before;
    memcpy(ivm__store_row(store, made) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, store->layout->body_bytes);
    ivm__store_link(store, made);
    store->step_end = store->rows_end; /* it was there before */
}

/* ---- A delta --------------------------------------------------------------------------------------------------------------------- */

/* Rows of a delta on their way; those not found stand from the start on. */
typedef struct laying {
    ivm__store *store;
    const ivm__index *index;
    const ivm__store *delta;
    uint64_t *words; /* of one key */
    ivm__row_id *gone;
    uint32_t gone_count;
} laying;

static ivm__row_id row_find(const laying *it, const uint8_t *row, uint64_t hash)
{
    uint32_t next = 0, body = it->store->layout->body_bytes;
    ivm__row_id found;
    ivm__index_row_pack(it->index, row, it->words);
    do {
        found = ivm__index_find(it->index, it->words, hash, &next);
    } while (found != IVM__ROW_NONE && memcmp(ivm__store_row(it->store, found) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, body) != 0);
    return found;
}

/* What all rows that are equal to this one weigh now. */
static ivm__weight rows_weigh(const ivm__store *store, const ivm__index *index, const uint8_t *row, uint64_t *words)
{
    uint64_t hash = ivm__index_row_hash(index, row);
    uint32_t next = 0, body = store->layout->body_bytes;
    ivm__weight sum = 0;
    ivm__row_id found;
    ivm__index_row_pack(index, row, words);
    while ((found = ivm__index_find(index, words, hash, &next)) != IVM__ROW_NONE) {
        const uint8_t *at = ivm__store_row(store, found);
        sum += memcmp(at + IVM__ROW_HEADER, row + IVM__ROW_HEADER, body) == 0 ? ivm__store_weight_at(store, found, at, IVM__READ_CUR) : 0;
    }
    return sum;
}

static void block_hash(const laying *it, const ivm__row_id *rows, uint32_t count, uint64_t *hashes)
{
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = ivm__index_row_hash(it->index, ivm__store_row(it->delta, rows[i]));
        if (it->index->used) {
            ivm__prefetch(ivm__index_home_at(it->index, hashes[i]));
        }
    }
}

static ivm_status block_lay(laying *it, const ivm__row_id *rows, const ivm__weight *weights, uint32_t count)
{
    uint64_t hashes[BLOCK_ROWS];
    block_hash(it, rows, count, hashes);
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id found = row_find(it, ivm__store_row(it->delta, rows[i]), hashes[i]);
        if (found == IVM__ROW_NONE) {
            it->gone[it->gone_count++] = rows[i];
            continue;
        }
        ivm__weight now = ivm__store_weight(it->store, found, IVM__READ_CUR);
        IVM_TRY(lay_row(it->store, found, now - weights[i]));
    }
    return IVM_OK;
}

static ivm_status delta_lay(laying *it)
{
    ivm__row_id rows[BLOCK_ROWS];
    ivm__weight weights[BLOCK_ROWS];
    uint32_t next = 0, count;
    while ((count = ivm__store_scan(it->delta, IVM__READ_CUR, &next, BLOCK_ROWS, rows, weights)) > 0) {
        IVM_TRY(block_lay(it, rows, weights, count));
    }
    IVM_TRY(ivm__store_reserve(it->store, it->gone_count));
    for (uint32_t i = 0; i < it->gone_count; i++) {
        ivm__weight change = ivm__store_weight(it->delta, it->gone[i], IVM__READ_CUR);
        lay_gone(it->store, ivm__store_row(it->delta, it->gone[i]), -change);
    }
    return IVM_OK;
}

ivm_status ivm__store_lay_delta(ivm__store *store, const ivm__index *index, const ivm__store *delta, ivm__arena *scratch)
{
    assert(index->store == store && delta->layout->body_bytes == store->layout->body_bytes);
    ivm__arena_mark mark = ivm__arena_here(scratch);
    laying it = { .store = store, .index = index, .delta = delta };
    it.words = ivm__arena_allocate(scratch, index->words_count * sizeof *it.words);
    it.gone = ivm__arena_allocate(scratch, delta->rows_live * sizeof *it.gone);
    ivm_status status = it.words && it.gone ? delta_lay(&it) : IVM_OUT_OF_MEMORY;
    ivm__arena_back(scratch, mark);
    return status;
}

ivm_status ivm__store_lay_check(const ivm__store *store, const ivm__index *index, const ivm__store *delta, ivm__weight least,
                                ivm__weight most, ivm__arena *scratch, ivm__row_id *wrong)
{
    ivm__arena_mark mark = ivm__arena_here(scratch);
    uint64_t *words = ivm__arena_allocate(scratch, index->words_count * sizeof *words);
    ivm__row_id rows[BLOCK_ROWS];
    ivm__weight weights[BLOCK_ROWS];
    uint32_t next = 0, count;
    *wrong = IVM__ROW_NONE;
    if (!words) {
        return IVM_OUT_OF_MEMORY;
    }
    while (*wrong == IVM__ROW_NONE && (count = ivm__store_scan(delta, IVM__READ_CUR, &next, BLOCK_ROWS, rows, weights)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            ivm__weight before = rows_weigh(store, index, ivm__store_row(delta, rows[i]), words) - weights[i];
            if (before < least || before > most) {
                *wrong = rows[i];
                break;
            }
        }
    }
    ivm__arena_back(scratch, mark);
    return IVM_OK;
}

/* ---- Lifting --------------------------------------------------------------------------------------------------------------------- */

/* A row that was put in has no weight now; every other one that was touched has. */
static void row_lift(ivm__store *store, const ivm__touch *touch)
{
    ivm__row_id row = touch->row;
    *ivm__row_header_at(ivm__store_row(store, row)) = ivm__header_of_any(touch->after);
    if (touch->after != 0) {
        return;
    }
    ivm__store_unlink_rows(store, &row, 1);
    ivm__store_texts_release(store, ivm__store_row(store, row));
    if (row >= store->laid_end) {
        assert(row + 1 == store->rows_end);
        store->rows_end--;
    } else {
        ivm__store_free_add(store, row);
    }
}

void ivm__store_lift(ivm__store *store)
{
    if (!store->laid) {
        return;
    }
    while (store->touched_count > 0) {
        row_lift(store, &store->touched[--store->touched_count]);
    }
    assert(store->rows_end == store->laid_end);
    store->step_end = store->rows_end;
    store->reserved = 0;
    store->laid = false;
}
