/* Heavy weights: those that leave int32, in a short list in row order beside the pages. Looking one up is a binary search; ending a step
 * costs nothing where no heavy weight changed, and needs no memory where one did. */
#include "heavy.h"

#define INSERT_MAX 16u /* new entries that are put in their places one by one, instead of sorting all */

static uint32_t heavy_find(const ivm__store *store, uint32_t sorted, ivm__row_id row)
{
    uint32_t low = 0, high = sorted;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (store->heavy[middle].row < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert(low < sorted && store->heavy[low].row == row);
    return low;
}

int64_t ivm__store_heavy(const ivm__store *store, ivm__row_id row)
{
    return store->heavy[heavy_find(store, store->heavy_count, row)].weight;
}

void ivm__heavy_change(ivm__store *store, uint32_t sorted, ivm__row_id row, int64_t weight)
{
    store->heavy[heavy_find(store, sorted, row)].weight = weight;
}

void ivm__heavy_append(ivm__store *store, ivm__row_id row, int64_t weight)
{
    assert(store->heavy_count < store->heavy_capacity && weight != 0);
    store->heavy[store->heavy_count++] = (ivm__heavy){ row, weight };
}

/* ---- Order ----------------------------------------------------------------------------------------------------------------------- */

static void heap_sink(ivm__heavy *heavy, uint32_t at, uint32_t count)
{
    ivm__heavy sinking = heavy[at];
    for (uint64_t child; (child = 2 * (uint64_t)at + 1) < count; at = (uint32_t)child) {
        child += child + 1 < count && heavy[child + 1].row > heavy[child].row;
        if (heavy[child].row <= sinking.row) {
            break;
        }
        heavy[at] = heavy[child];
    }
    heavy[at] = sinking;
}

static void heavy_sort(ivm__heavy *heavy, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;) {
        heap_sink(heavy, i, count);
    }
    for (uint32_t last = count; last-- > 1;) {
        ivm__heavy greatest = heavy[0];
        heavy[0] = heavy[last];
        heavy[last] = greatest;
        heap_sink(heavy, 0, last);
    }
}

static void heavy_insert(ivm__heavy *heavy, uint32_t sorted)
{
    ivm__heavy moved = heavy[sorted];
    uint32_t at = sorted;
    for (; at > 0 && heavy[at - 1].row > moved.row; at--) {
        heavy[at] = heavy[at - 1];
    }
    heavy[at] = moved;
}

/* Takes out entries of weight 0, from the first `sorted` ones. Returns how many of these are left. */
static uint32_t heavy_compact(ivm__store *store, uint32_t sorted)
{
    uint32_t kept = 0, kept_sorted = 0;
    for (uint32_t i = 0; i < store->heavy_count; i++) {
        if (store->heavy[i].weight != 0) {
            store->heavy[kept++] = store->heavy[i];
        }
        if (i + 1 == sorted) {
            kept_sorted = kept;
        }
    }
    store->heavy_count = kept;
    return kept_sorted;
}

void ivm__heavy_settle(ivm__store *store, uint32_t sorted)
{
    sorted = heavy_compact(store, sorted);
    if (store->heavy_count - sorted > INSERT_MAX) {
        heavy_sort(store->heavy, store->heavy_count);
        return;
    }
    for (; sorted < store->heavy_count; sorted++) {
        heavy_insert(store->heavy, sorted);
    }
}
