/* Many rows at once into indexes or out of them, and a store's indexes as they are asked for.
 *
 * Rows are linked in blocks: hashes first and slots prefetched, a block ahead, then the rows that the slots point to, then each is linked. They
 * are unlinked likewise, no block ahead. Few rows go through several indexes side by side, so that a block is so many pairs of a row and an
 * index. Cost: a few cache misses a row and index that all wait together: a third of what they cost one by one. */
#include "cancel.h"
#include "cover.h"
#include "index_inside.h"

#define BLOCK_ROWS 64u

/* at[i]: the first slot from row i's home on that is free or has its tag. Two slots are looked at in a go and the rows that met neither put
 * together for the next, without a branch that goes by what is in a slot: how far a row's slot is from its home nobody can predict. */
static void slots_find(const ivm__index *index, const uint64_t *hashes, uint32_t count, uint32_t *at)
{
    uint32_t tags[BLOCK_ROWS];
    uint8_t seeking[BLOCK_ROWS];
    for (uint32_t i = 0; i < count; i++) {
        ivm__slot_aim aim = ivm__index_aim(index, hashes[i]);
        at[i] = aim.home;
        tags[i] = aim.tag;
        seeking[i] = (uint8_t)i;
    }
    while (count > 0) {
        uint32_t left = 0;
        for (uint32_t j = 0; j < count; j++) {
            uint32_t i = seeking[j], tag = tags[i], here = at[i], behind = ivm__index_next(index, here);
            uint64_t first = ivm__index_slot(index, here), second = ivm__index_slot(index, behind);
            bool is_first = (first == 0) | (ivm__slot_tag(first) == tag), is_second = (second == 0) | (ivm__slot_tag(second) == tag);
            at[i] = is_first ? here : is_second ? behind : ivm__index_next(index, behind);
            seeking[left] = (uint8_t)i;
            left += !(is_first | is_second);
        }
        count = left;
    }
}

static void candidates_prefetch(const ivm__index *index, const uint32_t *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id other = ivm__slot_row(ivm__index_slot(index, at[i]));
        if (other == IVM__ROW_NONE) {
            continue;
        }
        ivm__prefetch(ivm__store_row(index->store, other));
        if (!index->unique) {
            ivm__prefetch(ivm__index_place(index, other));
        }
    }
}

/* The blocks that rows will go to, as far as the slots tell. */
static void blocks_prefetch(const ivm__index *index, const uint32_t *at, uint32_t count)
{
    for (uint32_t i = 0; !index->unique && i < count; i++) {
        ivm__row_id other = ivm__slot_row(ivm__index_slot(index, at[i]));
        if (other != IVM__ROW_NONE && *ivm__index_place(index, other) != IVM__ROW_NONE) {
            ivm__prefetch_write(ivm__block_at(index, *ivm__index_place(index, other)));
        }
    }
}

static void slots_prefetch(const ivm__index *index, const ivm__row_id *rows, uint32_t count, uint64_t *hashes)
{
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = ivm__index_row_hash(index, ivm__store_row(index->store, rows[i]));
        ivm__prefetch_write(ivm__index_home_at(index, hashes[i]));
    }
}

/* Rows in several indexes, with the hashes of each index one after the other. */
static void block_link(ivm__index *const *indexes, uint32_t indexes_count, const ivm__row_id *rows, uint32_t count, const uint64_t *hashes)
{
    uint32_t at[BLOCK_ROWS];
    assert(indexes_count * count <= BLOCK_ROWS);
    for (uint32_t x = 0; x < indexes_count; x++) {
        slots_find(indexes[x], hashes + x * count, count, at + x * count);
        candidates_prefetch(indexes[x], at + x * count, count);
    }
    for (uint32_t x = 0; x < indexes_count; x++) {
        blocks_prefetch(indexes[x], at + x * count, count);
    }
    for (uint32_t x = 0; x < indexes_count; x++) {
        for (uint32_t i = 0; i < count; i++) {
            ivm__index_link_at(indexes[x], rows[i], hashes[x * count + i], at[x * count + i]);
        }
    }
}

static uint32_t block_rows(uint32_t left)
{
    return left < BLOCK_ROWS ? left : BLOCK_ROWS;
}

void ivm__index_link_rows(ivm__index *index, const ivm__row_id *rows, uint32_t count)
{
    uint64_t hashes[2][BLOCK_ROWS];
    uint32_t turn = 0;
    slots_prefetch(index, rows, block_rows(count), hashes[turn]);
    for (uint32_t done = 0, block; done < count; done += block, turn ^= 1) {
        block = block_rows(count - done);
        slots_prefetch(index, rows + done + block, block_rows(count - done - block), hashes[turn ^ 1]);
        block_link(&index, 1, rows + done, block, hashes[turn]);
    }
}

/* The next indexes from *at on, one of them left out, as many as make a block with so many rows. */
static uint32_t indexes_next(ivm__index **at, const ivm__index *but, uint32_t count, ivm__index **indexes)
{
    uint32_t indexes_count = 0;
    for (; *at && (indexes_count + 1) * count <= BLOCK_ROWS; *at = (*at)->next_of_store) {
        indexes[indexes_count] = *at;
        indexes_count += *at != but;
    }
    return indexes_count;
}

void ivm__indexes_link_rows(ivm__index *first, const ivm__index *but, const ivm__row_id *rows, uint32_t count)
{
    ivm__index *indexes[BLOCK_ROWS];
    uint64_t hashes[BLOCK_ROWS];
    if (count <= BLOCK_ROWS) {
        for (uint32_t n; count && (n = indexes_next(&first, but, count, indexes)) > 0;) {
            for (uint32_t x = 0; x < n; x++) {
                slots_prefetch(indexes[x], rows, count, hashes + x * count);
            }
            block_link(indexes, n, rows, count, hashes);
        }
        return;
    }
    for (ivm__index *index = first; index; index = index->next_of_store) {
        if (index != but) {
            ivm__index_link_rows(index, rows, count);
        }
    }
}

static void places_prefetch(const ivm__index *index, const ivm__row_id *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__prefetch_write(ivm__index_place(index, rows[i]));
    }
}

static void places_blocks_prefetch(const ivm__index *index, const ivm__row_id *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (*ivm__index_place(index, rows[i]) != IVM__ROW_NONE) {
            ivm__prefetch_write(ivm__block_at(index, *ivm__index_place(index, rows[i])));
        }
    }
}

static void block_unlink(ivm__index *const *indexes, uint32_t indexes_count, const ivm__row_id *rows, uint32_t count)
{
    uint64_t hashes[BLOCK_ROWS];
    assert(indexes_count * count <= BLOCK_ROWS);
    for (uint32_t x = 0; x < indexes_count; x++) {
        slots_prefetch(indexes[x], rows, count, hashes + x * count);
        if (!indexes[x]->unique) {
            places_prefetch(indexes[x], rows, count);
        }
    }
    for (uint32_t x = 0; x < indexes_count; x++) {
        if (!indexes[x]->unique) {
            places_blocks_prefetch(indexes[x], rows, count);
        }
    }
    for (uint32_t x = 0; x < indexes_count; x++) {
        for (uint32_t i = 0; i < count; i++) {
            ivm__index_unlink_hashed(indexes[x], rows[i], hashes[x * count + i]);
        }
    }
}

void ivm__indexes_unlink_rows(ivm__index *first, const ivm__row_id *rows, uint32_t count)
{
    ivm__index *indexes[BLOCK_ROWS];
    for (uint32_t done = 0; done < count; done += BLOCK_ROWS) {
        uint32_t block = count - done < BLOCK_ROWS ? count - done : BLOCK_ROWS;
        ivm__index *at = first;
        for (uint32_t n; (n = indexes_next(&at, NULL, block, indexes)) > 0;) {
            block_unlink(indexes, n, rows + done, block);
        }
    }
}

/* Of the next rows from *next on, IVM__ROWS_UNASKED at most, those that stand in the store. */
static uint32_t linked_next(const ivm__store *store, ivm__row_id *next, ivm__row_id *rows)
{
    uint32_t count = 0;
    ivm__row_id row = *next, end = store->rows_end - row < IVM__ROWS_UNASKED ? store->rows_end : row + IVM__ROWS_UNASKED;
    for (; row < end && count < BLOCK_ROWS; row++) {
        rows[count] = row;
        count += ivm__row_is_linked(ivm__store_row(store, row));
    }
    *next = row;
    return count;
}

/* So many slots more for the next rows; where they must grow, as many as the rows still to be linked will take if their keys repeat as those so far did, at
 * most twice as many as there are. */
static ivm_status slots_ahead(ivm__index *index, uint32_t count, uint64_t linked, uint64_t left)
{
    uint64_t ahead = linked ? (uint64_t)((double)index->used / (double)linked * (double)left) : 0;
    ahead = ahead < index->used ? ahead : index->used;
    return ivm__slots_reserve_at_once(index, count, ahead > count ? ahead : count);
}

/* Links all rows that stand in the store, those gone in the step under way too, and makes room for those that are reserved. */
static ivm_status fill(ivm__index *index, const ivm__cancel *cancel)
{
    const ivm__store *store = index->store;
    ivm__row_id rows[BLOCK_ROWS], next = 0;
    uint64_t linked = 0, all = store->rows_live + store->touched_count;
    if (index->unique) {
        IVM_TRY(ivm__slots_reserve_at_once(index, all, all));
    }
    while (next < store->rows_end) {
        uint32_t count = linked_next(store, &next, rows);
        if (ivm__cancel_asked(cancel)) {
            return IVM_CANCELLED;
        }
        IVM_TRY(slots_ahead(index, count, linked, all > linked ? all - linked : 0));
        IVM_TRY(index->unique ? IVM_OK : ivm__lists_reserve(index, count));
        ivm__index_link_rows(index, rows, count);
        linked += count;
    }
    return ivm__index_reserve(index, store->reserved);
}

/* ---- A store's indexes ------------------------------------------------------------------------------------------------------------ */

ivm__index *ivm__store_index_find(const ivm__store *store, const uint32_t *columns, uint32_t columns_count)
{
    for (ivm__index *index = store->indexes; index; index = index->next_of_store) {
        bool same = index->columns_count == columns_count;
        for (uint32_t c = 0; same && c < columns_count; c++) {
            same = index->columns[c] == columns[c];
        }
        if (same) {
            return index;
        }
    }
    return NULL;
}

ivm_status ivm__store_index(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique, ivm__index **index)
{
    return ivm__store_index_unless(store, columns, columns_count, unique, NULL, index);
}

ivm_status ivm__store_index_unless(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique,
                                   const ivm__cancel *cancel, ivm__index **index)
{
    *index = ivm__store_index_find(store, columns, columns_count);
    if (*index) {
        return IVM_OK;
    }
    ivm__index *made;
    IVM_TRY(ivm__index_create(store, columns, columns_count, unique, &made));
    ivm_status status = fill(made, cancel);
    if (status != IVM_OK) {
        ivm__index_free(made);
        return status;
    }
    made->next_of_store = store->indexes;
    store->indexes = made;
    *index = made;
    return IVM_OK;
}

void ivm__store_indexes_drop(ivm__store *store, const ivm__index *kept, const ivm__index *kept_too)
{
    for (ivm__index **at = &store->indexes; *at;) {
        ivm__index *index = *at;
        if (index == kept || index == kept_too) {
            ivm__index_covers_drop(index);
            at = &index->next_of_store;
        } else {
            *at = index->next_of_store;
            ivm__index_free(index);
        }
    }
}

void ivm__store_indexes_drop_since(ivm__store *store, const ivm__index *newest)
{
    while (store->indexes != newest) {
        ivm__index *index = store->indexes;
        store->indexes = index->next_of_store;
        ivm__index_free(index);
    }
}
