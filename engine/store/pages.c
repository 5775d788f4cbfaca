/* Pages: the memory rows lie in. A directory, a tree of nodes of IVM__FAN places, points to pages of a power of two of rows; nodes and pages carry a
 * count of references.
 *
 *     a snapshot holds the root             references of the root            = the store's own + one a snapshot
 *     a node holds what it points to        references of any other, a page's = nodes that point to it
 *
 * The store writes only where all counts from the root to the page are 1, and copies first what is shared of that path: what a snapshot holds never
 * changes. Taking a snapshot is one addition; the first write after it copies the page and a node a level, each first written to after it the page and the
 * nodes that are not yet the store's own. So a write beside a snapshot costs log16 of the pages, whatever the rows are. Counts are atomic
 * because snapshots are closed from any thread; only the writer takes a new reference where its own is the only one.
 *
 * The store itself reads through no tree: it keeps an array of where each page's rows lie, and beside it when the page was last seen to be its own. No
 * reference has been given away since as long as `shares` is what it was then.
 *
 * Rows begin at a cache line and fill a block alone, so that a page takes no more than its rows do. */
#include "pages.h"

#define PAGES_MIN 4u /* that there is always room for in the arrays */

uint32_t ivm__page_shift(uint32_t stride)
{
    assert(stride > 0);
    uint32_t shift = 0;
    while (((uint64_t)stride << (shift + 1)) <= IVM__PAGE_BYTES) {
        shift++;
    }
    return shift;
}

/* ---- Pages ----------------------------------------------------------------------------------------------------------------------- */

/* Rows of any length take whole lines. */
static uint32_t rows_bytes_of(const ivm__store *store)
{
    return ((store->layout->stride << store->page_shift) + IVM__LINE_BYTES - 1) & ~(IVM__LINE_BYTES - 1);
}

static ivm__page *page_create(ivm__memory *memory, uint32_t rows_bytes, uint8_t **rows)
{
    ivm__page *page = ivm__allocate(memory, sizeof *page);
    if (!page) {
        return NULL;
    }
    *rows = ivm__lines_allocate(memory, rows_bytes, &page->before);
    if (!*rows) {
        ivm__release(memory, page, sizeof *page);
        return NULL;
    }
    atomic_init(&page->references, 1);
    page->bytes = rows_bytes;
    return page;
}

static void page_release(ivm__page *page, uint8_t *rows, ivm__memory *memory)
{
    uint32_t references = atomic_fetch_sub_explicit(&page->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references == 1) {
        ivm__lines_release(memory, rows, page->bytes, page->before);
        ivm__release(memory, page, sizeof *page);
    }
}

static bool page_is_shared(const ivm__page *page)
{
    return atomic_load_explicit(&page->references, memory_order_acquire) > 1;
}

/* ---- Directories ----------------------------------------------------------------------------------------------------------------- */

static ivm__pages *node_create(ivm__memory *memory, uint32_t height)
{
    ivm__pages *node = ivm__allocate_zeroed(memory, sizeof *node);
    if (node) {
        atomic_init(&node->references, 1);
        node->height = height;
    }
    return node;
}

ivm__pages *ivm__pages_create(ivm__memory *memory)
{
    return node_create(memory, 0);
}

ivm__pages *ivm__pages_hold(ivm__pages *pages)
{
    atomic_fetch_add_explicit(&pages->references, 1, memory_order_relaxed);
    return pages;
}

ivm__pages *ivm__pages_acquire(ivm__store *store)
{
    assert(store->touched_count == 0 && store->rows_end == store->step_end); /* headers say what is only between steps */
    store->reserved = 0;                                                     /* pages that were the store's own no longer are */
    store->shares++;
    return ivm__pages_hold(store->pages);
}

static bool node_is_shared(const ivm__pages *node)
{
    return atomic_load_explicit(&node->references, memory_order_acquire) > 1;
}

/* Gives back what a node points to at its places from `first` on. */
static void places_release(ivm__pages *node, uint32_t first, ivm__memory *memory)
{
    for (uint32_t i = first; i < IVM__FAN; i++) {
        if (node->height > 0) {
            ivm__pages_release(node->below[i], memory);
            node->below[i] = NULL;
        } else if (node->page[i]) {
            page_release(node->page[i], node->rows[i], memory);
            node->page[i] = NULL;
        }
    }
}

void ivm__pages_release(ivm__pages *pages, ivm__memory *memory)
{
    if (!pages) {
        return;
    }
    uint32_t references = atomic_fetch_sub_explicit(&pages->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references == 1) {
        places_release(pages, 0, memory);
        ivm__release(memory, pages, sizeof *pages);
    }
}

static void places_hold(const ivm__pages *node)
{
    for (uint32_t i = 0; i < IVM__FAN; i++) {
        if (node->height > 0 && node->below[i]) {
            ivm__pages_hold(node->below[i]);
        } else if (node->height == 0 && node->page[i]) {
            atomic_fetch_add_explicit(&node->page[i]->references, 1, memory_order_relaxed);
        }
    }
}

/* Puts a copy in the place of a node that is shared. Above it is none that is. */
static ivm_status node_own(ivm__memory *memory, ivm__pages **place)
{
    ivm__pages *node = *place;
    if (!node_is_shared(node)) {
        return IVM_OK;
    }
    ivm__pages *own = ivm__allocate(memory, sizeof *own);
    if (!own) {
        return IVM_OUT_OF_MEMORY;
    }
    atomic_init(&own->references, 1);
    own->height = node->height;
    if (node->height > 0) {
        memcpy(own->below, node->below, sizeof own->below);
    } else {
        memcpy(own->rows, node->rows, sizeof own->rows);
        memcpy(own->page, node->page, sizeof own->page);
    }
    places_hold(own);
    *place = own;
    ivm__pages_release(node, memory);
    return IVM_OK;
}

static uint32_t place_at(uint32_t page, uint32_t height)
{
    return page >> (height * IVM__FAN_SHIFT) & (IVM__FAN - 1);
}

static bool reaches(const ivm__pages *root, uint32_t page)
{
    return (uint64_t)page >> ((root->height + 1) * IVM__FAN_SHIFT) == 0;
}

/* Makes the nodes from the root to the page the store's own, and those that are not there. On failure there may be nodes without pages. */
static ivm_status path_own(ivm__store *store, uint32_t page, ivm__pages **leaf)
{
    ivm__memory *memory = store->memory;
    while (ivm__unlikely(!reaches(store->pages, page))) {
        ivm__pages *root = node_create(memory, store->pages->height + 1);
        if (!root) {
            return IVM_OUT_OF_MEMORY;
        }
        root->below[0] = store->pages;
        store->pages = root;
    }
    ivm__pages **place = &store->pages;
    IVM_TRY(node_own(memory, place));
    for (uint32_t height = (*place)->height; height > 0; height--) {
        place = &(*place)->below[place_at(page, height)];
        if (*place) {
            IVM_TRY(node_own(memory, place));
        } else if (!(*place = node_create(memory, height - 1))) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    *leaf = *place;
    return IVM_OK;
}

/* NULL: none, or there is none of this height. */
static const ivm__pages *node_at(const ivm__pages *root, uint32_t page, uint32_t height)
{
    if (!reaches(root, page)) {
        return NULL;
    }
    const ivm__pages *node = root;
    while (node && node->height > height) {
        node = node->below[place_at(page, node->height)];
    }
    return node && node->height == height ? node : NULL;
}

/* How many pages from this one on, up to the next of a greatest node that they have in common; 0: the page is not. */
static uint64_t pages_in_common(const ivm__pages *a, const ivm__pages *b, uint32_t page)
{
    for (uint32_t height = a->height + 1; height-- > 0;) {
        const ivm__pages *node = node_at(a, page, height), *other = node_at(b, page, height);
        if (node && node == other) {
            uint64_t pages = (uint64_t)1 << ((height + 1) * IVM__FAN_SHIFT);
            return pages - (page & (pages - 1));
        }
        if (height == 0) {
            return node && other && node->page[place_at(page, 0)] == other->page[place_at(page, 0)];
        }
    }
    return 0;
}

uint32_t ivm__pages_differ(const ivm__pages *before, const ivm__pages *now, uint32_t page, uint32_t end)
{
    uint64_t at = page, common;
    while (at < end && (common = pages_in_common(before, now, (uint32_t)at)) > 0) {
        at += common;
    }
    return at < end ? (uint32_t)at : end;
}

/* ---- The store's arrays ---------------------------------------------------------------------------------------------------------- */

static size_t arrays_bytes(uint32_t capacity)
{
    return (size_t)capacity * (sizeof(uint8_t *) + sizeof(uint64_t));
}

static ivm_status arrays_resize(ivm__store *store, uint32_t capacity)
{
    assert(capacity >= store->pages_count);
    uint8_t **rows = ivm__allocate(store->memory, arrays_bytes(capacity));
    if (!rows) {
        return IVM_OUT_OF_MEMORY;
    }
    uint64_t *owned = (uint64_t *)(void *)(rows + capacity);
    if (store->pages_count) {
        memcpy(rows, store->rows, store->pages_count * sizeof *rows);
        memcpy(owned, store->owned, store->pages_count * sizeof *owned);
    }
    ivm__release(store->memory, store->rows, arrays_bytes(store->pages_capacity));
    store->rows = rows;
    store->owned = owned;
    store->pages_capacity = capacity;
    return IVM_OK;
}

ivm_status ivm__pages_init(ivm__store *store)
{
    store->pages = ivm__pages_create(store->memory);
    if (!store->pages) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm_status status = arrays_resize(store, PAGES_MIN);
    if (status != IVM_OK) {
        ivm__pages_release(store->pages, store->memory);
    }
    return status;
}

void ivm__pages_deinit(ivm__store *store)
{
    ivm__pages_release(store->pages, store->memory);
    ivm__release(store->memory, store->rows, arrays_bytes(store->pages_capacity));
}

/* ---- The store's rows ------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__page_take(ivm__store *store, uint32_t page)
{
    ivm__pages *leaf;
    uint32_t at = place_at(page, 0);
    IVM_TRY(path_own(store, page, &leaf));
    ivm__page *old = leaf->page[at];
    if (page_is_shared(old)) {
        uint8_t *rows;
        ivm__page *own = page_create(store->memory, old->bytes, &rows);
        if (!own) {
            return IVM_OUT_OF_MEMORY;
        }
        memcpy(rows, leaf->rows[at], old->bytes);
        page_release(old, leaf->rows[at], store->memory);
        leaf->page[at] = own;
        leaf->rows[at] = store->rows[page] = rows;
    }
    store->owned[page] = store->shares;
    return IVM_OK;
}

/* The arrays have room. */
static ivm_status page_add(ivm__store *store)
{
    ivm__pages *leaf;
    uint32_t page = store->pages_count, at = place_at(page, 0);
    IVM_TRY(path_own(store, page, &leaf));
    leaf->page[at] = page_create(store->memory, rows_bytes_of(store), &leaf->rows[at]);
    if (!leaf->page[at]) {
        return IVM_OUT_OF_MEMORY;
    }
    store->rows[page] = leaf->rows[at];
    store->owned[page] = store->shares;
    store->pages_count++;
    return IVM_OK;
}

ivm_status ivm__pages_reserve(ivm__store *store, uint64_t first, uint64_t end)
{
    assert(first <= end && end <= IVM_TABLE_ROWS_MAX);
    uint32_t needed = (uint32_t)((end + store->page_mask) >> store->page_shift);
    uint32_t capacity = store->pages_capacity, held = store->pages_count < needed ? store->pages_count : needed;
    if (needed > capacity) {
        IVM_TRY(arrays_resize(store, needed > 2 * (uint64_t)capacity ? needed : 2 * capacity));
    }
    for (uint32_t i = (uint32_t)(first >> store->page_shift); i < held; i++) {
        if (ivm__unlikely(store->owned[i] != store->shares)) {
            IVM_TRY(ivm__page_take(store, i));
        }
    }
    while (store->pages_count < needed) {
        IVM_TRY(page_add(store));
    }
    return IVM_OK;
}

/* Drops the pages behind the last one kept, which lies in that leaf; all nodes on the way are the store's own. */
static void pages_drop(ivm__store *store, uint32_t last)
{
    ivm__pages *node = store->pages;
    for (; node->height > 0; node = node->below[place_at(last, node->height)]) {
        places_release(node, place_at(last, node->height) + 1, store->memory);
    }
    places_release(node, place_at(last, 0) + 1, store->memory);
    store->pages_count = last + 1;
    while (store->pages->height > 0 && reaches(store->pages->below[0], last)) {
        ivm__pages *root = store->pages;
        store->pages = root->below[0];
        ivm__release(store->memory, root, sizeof *root);
    }
}

void ivm__pages_trim_large(ivm__store *store)
{
    uint64_t ids = store->wanted > store->rows_end ? store->wanted : store->rows_end;
    uint32_t needed = (uint32_t)((ids + store->page_mask) >> store->page_shift), kept = 2 * needed;
    ivm__pages *leaf;
    if (ivm__likely(store->pages_count / 8 <= needed) || node_is_shared(store->pages)) {
        return;
    }
    kept = kept > PAGES_MIN ? kept : PAGES_MIN;
    if (path_own(store, kept - 1, &leaf) == IVM_OK) {
        pages_drop(store, kept - 1);
        (void)arrays_resize(store, kept); /* where memory is wanting they stay as they are */
    }
}
