/* Pages: the memory rows lie in. A directory points to pages of a power of two of rows; both carry a count of references.
 *
 *     a snapshot holds a directory          references of a directory = the store's own + one a snapshot
 *     a directory holds its pages           references of a page      = directories that point to it
 *
 * The store writes only where both counts are 1, and copies first where they are not: what a snapshot holds never changes. Taking a
 * snapshot is one addition; the first write after it copies the directory (16 bytes and an addition a page), each page first written to after
 * it is copied once. Counts are atomic because snapshots are closed from any thread; only the writer takes a new reference where its own is the only one.
 *
 * Rows begin at a cache line and fill a block alone, so that a page takes no more than its rows do. */
#include "pages.h"

#define DIRECTORY_PAGES_MIN 4u

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

/* The directory is the store's own already. */
static ivm_status page_own(ivm__store *store, uint32_t index)
{
    ivm__pages *pages = store->pages;
    ivm__page *page = pages->page[index];
    if (ivm__likely(!page_is_shared(page))) {
        return IVM_OK;
    }
    uint8_t *rows;
    ivm__page *own = page_create(store->memory, page->bytes, &rows);
    if (!own) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(rows, pages->rows[index], page->bytes);
    page_release(page, pages->rows[index], store->memory);
    pages->page[index] = own;
    pages->rows[index] = rows;
    return IVM_OK;
}

/* ---- Directories ----------------------------------------------------------------------------------------------------------------- */

static size_t directory_bytes(uint32_t capacity)
{
    return sizeof(ivm__pages) + (size_t)capacity * (sizeof(uint8_t *) + sizeof(ivm__page *));
}

static ivm__pages *directory_create(ivm__memory *memory, uint32_t capacity)
{
    ivm__pages *pages = ivm__allocate(memory, directory_bytes(capacity));
    if (pages) {
        atomic_init(&pages->references, 1);
        pages->count = 0;
        pages->capacity = capacity;
        pages->page = (ivm__page **)(void *)(pages->rows + capacity);
    }
    return pages;
}

ivm__pages *ivm__pages_create(ivm__memory *memory)
{
    return directory_create(memory, DIRECTORY_PAGES_MIN);
}

/* Makes the directory the store's own, with room for `capacity` pages. */
static ivm_status directory_own(ivm__store *store, uint32_t capacity)
{
    ivm__pages *pages = store->pages;
    bool shared = atomic_load_explicit(&pages->references, memory_order_acquire) > 1;
    if (ivm__likely(!shared && capacity <= pages->capacity)) {
        return IVM_OK;
    }
    ivm__pages *own = directory_create(store->memory, capacity > pages->capacity ? capacity : pages->capacity);
    if (!own) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(own->rows, pages->rows, pages->count * sizeof *pages->rows);
    memcpy(own->page, pages->page, pages->count * sizeof *pages->page);
    own->count = pages->count;
    store->pages = own;
    if (!shared) {
        ivm__release(store->memory, pages, directory_bytes(pages->capacity));
        return IVM_OK;
    }
    for (uint32_t i = 0; i < own->count; i++) {
        atomic_fetch_add_explicit(&own->page[i]->references, 1, memory_order_relaxed);
    }
    ivm__pages_release(pages, store->memory);
    return IVM_OK;
}

ivm__pages *ivm__pages_acquire(ivm__store *store)
{
    assert(store->touched_count == 0 && store->rows_end == store->step_end); /* headers say what is only between steps */
    store->reserved = 0;                                                     /* pages that were the store's own no longer are */
    return ivm__pages_hold(store->pages);
}

ivm__pages *ivm__pages_hold(ivm__pages *pages)
{
    atomic_fetch_add_explicit(&pages->references, 1, memory_order_relaxed);
    return pages;
}

void ivm__pages_release(ivm__pages *pages, ivm__memory *memory)
{
    if (!pages) {
        return;
    }
    uint32_t references = atomic_fetch_sub_explicit(&pages->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references > 1) {
        return;
    }
    for (uint32_t i = 0; i < pages->count; i++) {
        page_release(pages->page[i], pages->rows[i], memory);
    }
    ivm__release(memory, pages, directory_bytes(pages->capacity));
}

/* ---- The store's rows ------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__pages_reserve(ivm__store *store, uint64_t first, uint64_t end)
{
    assert(first <= end && end <= IVM_TABLE_ROWS_MAX);
    uint32_t needed = (uint32_t)((end + store->page_mask) >> store->page_shift);
    uint32_t capacity = store->pages->capacity;
    if (needed > capacity) {
        capacity = needed > 2 * (uint64_t)capacity ? needed : 2 * capacity;
    }
    IVM_TRY(directory_own(store, capacity));
    uint32_t held = store->pages->count < needed ? store->pages->count : needed;
    for (uint32_t i = (uint32_t)(first >> store->page_shift); i < held; i++) {
        IVM_TRY(page_own(store, i));
    }
    while (store->pages->count < needed) {
        ivm__pages *pages = store->pages;
        ivm__page *page = page_create(store->memory, rows_bytes_of(store), &pages->rows[pages->count]);
        if (!page) {
            return IVM_OUT_OF_MEMORY;
        }
        pages->page[pages->count++] = page;
    }
    return IVM_OK;
}

/* Where memory is wanting the directory stays as it is. */
static void directory_shrink(ivm__store *store, uint32_t capacity)
{
    ivm__pages *pages = store->pages, *own = directory_create(store->memory, capacity);
    if (own) {
        memcpy(own->rows, pages->rows, pages->count * sizeof *pages->rows);
        memcpy(own->page, pages->page, pages->count * sizeof *pages->page);
        own->count = pages->count;
        ivm__release(store->memory, pages, directory_bytes(pages->capacity));
        store->pages = own;
    }
}

void ivm__pages_trim_large(ivm__store *store)
{
    uint64_t ids = store->wanted > store->rows_end ? store->wanted : store->rows_end;
    uint32_t needed = (uint32_t)((ids + store->page_mask) >> store->page_shift), kept = 2 * needed;
    ivm__pages *pages = store->pages;
    if (ivm__likely(pages->count / 8 <= needed) || atomic_load_explicit(&pages->references, memory_order_acquire) > 1) {
        return;
    }
    kept = kept > DIRECTORY_PAGES_MIN ? kept : DIRECTORY_PAGES_MIN;
    while (pages->count > kept) {
        pages->count--;
        page_release(pages->page[pages->count], pages->rows[pages->count], store->memory);
    }
    directory_shrink(store, kept);
}

ivm_status ivm__page_own(ivm__store *store, ivm__row_id row)
{
    assert(row >> store->page_shift < store->pages->count);
    IVM_TRY(directory_own(store, 0));
    return page_own(store, row >> store->page_shift);
}
