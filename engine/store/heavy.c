/* Heavy weights: those that leave int32, in a short list in row order beside the pages. Looking one up is a binary search; ending a step
 * costs nothing where no heavy weight changed, and needs no memory where one did. A snapshot takes a reference; a step makes room for a list beside
 * one that is shared, and copies it only when a heavy weight changes. */
#include "heavy.h"

#define KEPT_ITEMS_MIN 1024u /* room for so many is never given back */
#define INSERT_MAX 16u       /* new entries that are put in their places one by one, instead of sorting all */

/* ---- The list -------------------------------------------------------------------------------------------------------------------------- */

static size_t heavies_bytes(uint64_t capacity)
{
    return sizeof(ivm__heavies) + (size_t)capacity * sizeof(ivm__heavy);
}

ivm__heavies *ivm__heavies_create(ivm__memory *memory, uint32_t capacity)
{
    ivm__heavies *heavies = ivm__allocate(memory, heavies_bytes(capacity));
    if (heavies) {
        atomic_init(&heavies->references, 1);
        heavies->capacity = capacity;
    }
    return heavies;
}

ivm__heavies *ivm__heavies_acquire(ivm__store *store)
{
    if (!store->heavy_count) {
        return NULL;
    }
    store->heavy_capacity = 0; /* what was the store's own no longer is */
    return ivm__heavies_hold(store->heavies);
}

ivm__heavies *ivm__heavies_hold(ivm__heavies *heavies)
{
    if (heavies) {
        atomic_fetch_add_explicit(&heavies->references, 1, memory_order_relaxed);
    }
    return heavies;
}

void ivm__heavies_release(ivm__heavies *heavies, ivm__memory *memory)
{
    if (!heavies) {
        return;
    }
    uint32_t references = atomic_fetch_sub_explicit(&heavies->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references == 1) {
        ivm__release(memory, heavies, heavies_bytes(heavies->capacity));
    }
}

static bool list_is_shared(const ivm__heavies *list)
{
    return list && atomic_load_explicit(&list->references, memory_order_acquire) > 1;
}

/* Puts a list with room in the place of another, or of none. */
static ivm_status list_make(ivm__store *store, ivm__heavies **list, uint64_t capacity)
{
    ivm__heavies *made = capacity <= UINT32_MAX ? ivm__heavies_create(store->memory, (uint32_t)capacity) : NULL;
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__heavies *old = *list;
    if (list == &store->heavies && old && store->heavy_count) {
        memcpy(made->list, old->list, store->heavy_count * sizeof *made->list);
    }
    ivm__heavies_release(old, store->memory);
    *list = made;
    return IVM_OK;
}

ivm_status ivm__heavies_reserve(ivm__store *store, uint64_t needed)
{
    bool shared = list_is_shared(store->heavies);
    ivm__heavies **list = shared ? &store->heavies_spare : &store->heavies;
    uint64_t capacity = store->heavies ? store->heavies->capacity : 0;
    if (needed > capacity) {
        capacity = needed > 2 * capacity ? needed : 2 * capacity;
    }
    if (!*list || (*list)->capacity < needed) {
        IVM_TRY(list_make(store, list, capacity));
    }
    if (!shared) {
        ivm__heavies_release(store->heavies_spare, store->memory);
        store->heavies_spare = NULL;
    }
    store->heavy_capacity = (*list)->capacity;
    return IVM_OK;
}

/* Room was reserved. */
static void list_own(ivm__store *store)
{
    ivm__heavies *spare = store->heavies_spare;
    if (spare) {
        assert(store->heavy_count <= spare->capacity);
        memcpy(spare->list, store->heavies->list, store->heavy_count * sizeof *spare->list);
        ivm__heavies_release(store->heavies, store->memory);
        store->heavies = spare;
        store->heavies_spare = NULL;
    }
}

/* Nobody else has the list any more, or the room is far more than is needed. */
static void spare_trim(ivm__store *store, uint64_t needed)
{
    ivm__heavies *spare = store->heavies_spare;
    bool shared = list_is_shared(store->heavies);
    if (spare && (!shared || (spare->capacity > KEPT_ITEMS_MIN && needed <= spare->capacity / 8))) {
        ivm__heavies_release(spare, store->memory);
        store->heavies_spare = NULL;
        store->heavy_capacity = shared ? 0 : store->heavies->capacity;
    }
}

void ivm__heavies_trim(ivm__store *store, uint64_t needed)
{
    spare_trim(store, needed);
    if (store->heavies_spare || store->heavy_capacity <= KEPT_ITEMS_MIN || needed > store->heavy_capacity / 8) {
        return;
    }
    uint32_t kept = needed < KEPT_ITEMS_MIN ? KEPT_ITEMS_MIN : (uint32_t)needed;
    ivm__heavies *trimmed = ivm__resize(store->memory, store->heavies, heavies_bytes(store->heavy_capacity), heavies_bytes(kept));
    if (trimmed) {
        trimmed->capacity = kept;
        store->heavies = trimmed;
        store->heavy_capacity = kept;
    }
}

/* ---- Its rows ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t heavy_find(const ivm__store *store, uint32_t sorted, ivm__row_id row)
{
    uint32_t low = 0, high = sorted;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (store->heavies->list[middle].row < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert(low < sorted && store->heavies->list[low].row == row);
    return low;
}

int64_t ivm__store_heavy(const ivm__store *store, ivm__row_id row)
{
    return store->heavies->list[heavy_find(store, store->heavy_count, row)].weight;
}

void ivm__heavy_change(ivm__store *store, uint32_t sorted, ivm__row_id row, int64_t weight)
{
    list_own(store);
    store->heavies->list[heavy_find(store, sorted, row)].weight = weight;
}

void ivm__heavy_append(ivm__store *store, ivm__row_id row, int64_t weight)
{
    assert(store->heavy_count < store->heavy_capacity && weight != 0);
    list_own(store);
    store->heavies->list[store->heavy_count++] = (ivm__heavy){ row, weight };
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
        if (store->heavies->list[i].weight != 0) {
            store->heavies->list[kept++] = store->heavies->list[i];
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
        heavy_sort(store->heavies->list, store->heavy_count);
        return;
    }
    for (; sorted < store->heavy_count; sorted++) {
        heavy_insert(store->heavies->list, sorted);
    }
}
