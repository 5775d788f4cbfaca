/* Open addressing with linear probing over slots of a hash's half and a row's id, at a load of at most 0.7, and a sixteenth more while a larger one is
 * made. Nothing is ever taken out, so that readers may probe while the writer adds: a slot is written once, from 0. Cost: a hash and a probe, 30 to
 * 60 ns, a row that came or was overwritten; nothing for one that went, nor where no reader looks keys up. A store whose readers stop doing so gives
 * its finder up. */
#include "finder.h"

#include "hash.h"
#include "store_inside.h"

#define SLOTS_MIN 64u
#define IDLE_MAX 1024u /* steps without a reader, then it is given up */

/* ---- Hashes ----------------------------------------------------------------------------------------------------------------------------- */

uint64_t ivm__find_hash_add(uint64_t hash, uint64_t seed, ivm_type type, bool is_null, ivm__wide cell)
{
    if (is_null) {
        return ivm__hash_fold(hash, 1);
    }
    hash = ivm__hash_fold(hash, ivm__hash_word((uint64_t)cell, seed));
    return ivm__type_is_wide(type) ? ivm__hash_fold(hash, (uint64_t)(cell >> 64)) : hash;
}

static uint64_t cell_add(uint64_t hash, uint64_t seed, const ivm__layout *layout, const uint8_t *at, uint32_t column)
{
    ivm_type type = layout->types[column];
    if (ivm__row_is_null(layout, at, column)) {
        return ivm__find_hash_add(hash, seed, type, true, 0);
    }
    if (ivm__type_is_wide(type)) {
        return ivm__find_hash_add(hash, seed, type, false, ivm__row_wide(layout, at, column));
    }
    uint64_t word = ivm__row_word(layout, at, column);
    if (IVM_TYPE_KIND(type) == IVM_STRING) {
        word = ((const ivm__text *)(uintptr_t)word)->hash;
    }
    return ivm__find_hash_add(hash, seed, type, false, (ivm__wide)word);
}

uint64_t ivm__find_hash(const ivm__layout *layout, const uint8_t *at, const ivm__find_key *key)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < key->count; i++) {
        hash = cell_add(hash, key->seed, layout, at, key->columns ? key->columns[i] : i);
    }
    return hash;
}

/* ---- The set ---------------------------------------------------------------------------------------------------------------------------- */

static size_t finder_bytes(uint64_t slots, uint32_t key_count)
{
    return sizeof(ivm__finder) + slots * sizeof(uint64_t) + key_count * sizeof(uint32_t);
}

/* Its slots are to be cleared. */
static ivm__finder *finder_create(ivm__memory *memory, const ivm__row_pages *rows, const ivm__find_key *key)
{
    uint64_t slots = SLOTS_MIN;
    while (slots < 2 * rows->rows_count) {
        slots *= 2;
    }
    ivm__finder *finder = rows->rows_count <= IVM__FINDER_ROWS_MAX ? ivm__allocate(memory, finder_bytes(slots, key->count)) : NULL;
    if (finder) {
        memset(finder, 0, sizeof *finder);
        atomic_init(&finder->references, 1);
        finder->mask = (uint32_t)(slots - 1);
        finder->room = slots / 10 * 7 + ivm__grows_meanwhile(slots);
        finder->seed = key->seed;
        finder->layout = ivm__layout_acquire((ivm__layout *)(uintptr_t)rows->layout);
        finder->key_count = key->count;
        finder->columns = (uint32_t *)(void *)((uint8_t *)finder + finder_bytes(slots, 0));
        for (uint32_t i = 0; i < key->count; i++) {
            finder->columns[i] = key->columns ? key->columns[i] : i;
        }
    }
    return finder;
}

ivm__finder *ivm__finder_acquire(ivm__finder *finder)
{
    if (finder) {
        atomic_fetch_add_explicit(&finder->references, 1, memory_order_relaxed);
    }
    return finder;
}

void ivm__finder_release(ivm__finder *finder, ivm__memory *memory)
{
    if (!finder) {
        return;
    }
    uint32_t references = atomic_fetch_sub_explicit(&finder->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references == 1) {
        ivm__pages_release(finder->over, memory);
        ivm__layout_release(finder->layout);
        ivm__finder_release(finder->larger, memory);
        ivm__release_slowly(memory, finder, finder_bytes((uint64_t)finder->mask + 1, finder->key_count));
    }
}

static uint64_t entry_of(uint64_t hash, ivm__row_id row)
{
    return hash << 32 | (row + 1u);
}

static size_t slots_bytes(const ivm__finder *finder)
{
    return ((size_t)finder->mask + 1) * sizeof finder->slots[0];
}

static uint8_t *slots_of(ivm__finder *finder)
{
    return (uint8_t *)finder + offsetof(ivm__finder, slots);
}

/* False: it is full. An id that is there with this hash already is not noted twice, so that a reader meets each row once. */
static bool finder_add(ivm__finder *finder, uint64_t hash, ivm__row_id row)
{
    uint64_t entry = entry_of(hash, row), there;
    uint32_t at = (uint32_t)hash & finder->mask;
    while ((there = atomic_load_explicit(&finder->slots[at], memory_order_relaxed)) != 0) {
        if (there == entry) {
            return true;
        }
        at = (at + 1) & finder->mask;
    }
    if (finder->room == 0) {
        return false;
    }
    finder->room--;
    atomic_store_explicit(&finder->slots[at], entry, memory_order_relaxed);
    return true;
}

/* A snapshot is handed out by lock or by a release, after the entries of its rows: no order among slots is needed. */
ivm__row_id ivm__finder_next(const ivm__finder *finder, uint64_t hash, uint64_t *at)
{
    uint64_t there;
    for (; *at <= finder->mask; ++*at) {
        there = atomic_load_explicit(&finder->slots[((uint32_t)hash + (uint32_t)*at) & finder->mask], memory_order_relaxed);
        if (there == 0) {
            break;
        }
        if (there >> 32 == (uint32_t)hash) {
            ++*at;
            return (uint32_t)there - 1;
        }
    }
    return IVM__ROW_NONE;
}

/* The rows that stand from `first` up to `end`. False: it is full. */
static bool rows_add(ivm__finder *finder, const ivm__row_pages *rows, ivm__row_id first, ivm__row_id end)
{
    const ivm__find_key key = { finder->columns, finder->key_count, finder->seed };
    const uint8_t *at = NULL;
    bool added = true;
    for (ivm__row_id row = first; added && row < end; row++) {
        at = ivm__row_pages_next(rows, row, at);
        if (ivm__row_pages_has(at)) {
            added = finder_add(finder, ivm__find_hash(rows->layout, at, &key), row);
        }
    }
    return added;
}

ivm__finder *ivm__finder_make(ivm__memory *memory, const ivm__row_pages *rows, const ivm__find_key *key)
{
    ivm__finder *finder = finder_create(memory, rows, key);
    if (finder) {
        memset(slots_of(finder), 0, slots_bytes(finder));
        bool added = rows_add(finder, rows, 0, rows->end);
        assert(added);
        (void)added;
    }
    return finder;
}

/* ---- Offers ----------------------------------------------------------------------------------------------------------------------------- */

ivm__offer *ivm__offer_make(ivm__memory *memory)
{
    ivm__offer *offer = ivm__allocate(memory, sizeof *offer);
    if (offer) {
        atomic_init(&offer->references, 1);
        atomic_init(&offer->finder, NULL);
    }
    return offer;
}

ivm__offer *ivm__offer_acquire(ivm__offer *offer)
{
    if (offer) {
        atomic_fetch_add_explicit(&offer->references, 1, memory_order_relaxed);
    }
    return offer;
}

void ivm__offer_release(ivm__offer *offer, ivm__memory *memory)
{
    if (offer && atomic_fetch_sub_explicit(&offer->references, 1, memory_order_acq_rel) == 1) {
        ivm__finder_release(atomic_load_explicit(&offer->finder, memory_order_relaxed), memory);
        ivm__release(memory, offer, sizeof *offer);
    }
}

void ivm__offer_put(ivm__offer *offer, ivm__finder *finder, ivm__pages *over, ivm__memory *memory)
{
    ivm__finder *none = NULL;
    assert(!finder->over);
    finder->over = ivm__pages_hold(over);
    ivm__finder_acquire(finder);
    if (!atomic_compare_exchange_strong_explicit(&offer->finder, &none, finder, memory_order_acq_rel, memory_order_relaxed)) {
        finder->over = NULL;
        ivm__pages_release(over, memory);
        ivm__finder_release(finder, memory);
    }
}

/* ---- The store's ------------------------------------------------------------------------------------------------------------------------- */

void ivm__finder_drop(ivm__store *store)
{
    ivm__finder_release(store->finder, store->memory);
    store->finder = NULL;
}

/* All rows as they are now, in a set of their own. */
static void finder_remake(ivm__store *store)
{
    ivm__finder *old = store->finder;
    const ivm__row_pages rows = ivm__store_row_pages(store);
    const ivm__find_key key = { old->columns, old->key_count, old->seed };
    store->finder = ivm__finder_make(store->memory, &rows, &key);
    if (store->finder) {
        store->finder->idle = old->idle;
    }
    ivm__finder_release(old, store->memory);
}

/* Rows of pages that are not those it was made from. */
static bool changed_pages_add(const ivm__store *store, ivm__finder *finder)
{
    const ivm__row_pages rows = ivm__store_row_pages(store);
    uint32_t page = 0, end = (uint32_t)(((uint64_t)store->rows_end + store->page_mask) >> store->page_shift);
    bool added = true;
    for (; added && (page = ivm__pages_differ(finder->over, store->pages, page, end)) < end; page++) {
        ivm__row_id first = page << store->page_shift, left = store->rows_end - first;
        added = rows_add(finder, &rows, first, first + (left > store->page_mask ? store->page_mask + 1 : left));
    }
    return added;
}

void ivm__finder_adopt(ivm__store *store)
{
    ivm__finder *finder = store->offer ? atomic_exchange_explicit(&store->offer->finder, NULL, memory_order_acq_rel) : NULL;
    if (!finder) {
        return;
    }
    bool wanted = !store->finder && finder->layout == store->layout, whole = wanted && changed_pages_add(store, finder);
    ivm__pages_release(finder->over, store->memory);
    finder->over = NULL;
    if (!wanted) {
        ivm__finder_release(finder, store->memory);
        return;
    }
    store->finder = finder;
    if (!whole) {
        finder_remake(store);
    }
}

static bool row_add(const ivm__store *store, ivm__finder *finder, const ivm__find_key *key, ivm__row_id row)
{
    return finder_add(finder, ivm__find_hash(store->layout, ivm__store_row(store, row), key), row);
}

/* What the step last committed made come. */
static bool changes_add(const ivm__store *store, ivm__finder *finder)
{
    const ivm__find_key key = { finder->columns, finder->key_count, finder->seed };
    const ivm__row_pages rows = ivm__store_row_pages(store);
    bool added = rows_add(finder, &rows, store->last_first, store->last_end);
    for (uint32_t i = 0; added && i < store->last_count; i++) {
        const ivm__touch *touch = &store->last[i];
        added = touch->before != 0 || touch->after == 0 || row_add(store, finder, &key, touch->row);
    }
    for (uint32_t i = 0; added && i < store->overwritten_last.count; i++) {
        added = row_add(store, finder, &key, store->overwritten_last.rows[i]);
    }
    return added;
}

/* ---- A larger one beside ---------------------------------------------------------------------------------------------------------------- */

static uint64_t changes_count(const ivm__store *store)
{
    return store->last_end - store->last_first + store->last_count + store->overwritten_last.count;
}

/* Where memory is wanting there is none yet. */
static void larger_begin(const ivm__store *store, ivm__finder *finder)
{
    const ivm__row_pages rows = ivm__store_row_pages(store);
    const ivm__find_key key = { finder->columns, finder->key_count, finder->seed };
    finder->larger = finder_create(store->memory, &rows, &key);
    finder->growth = (ivm__growth){ 0 };
}

/* Notes so many rows more, those that stand: of others no snapshot that has it will know. False: it is full. */
static bool larger_fill(const ivm__store *store, ivm__finder *finder, uint64_t slots)
{
    const ivm__row_pages rows = ivm__store_row_pages(store);
    uint64_t done = finder->growth.done < store->rows_end ? finder->growth.done : store->rows_end, left = store->rows_end - done;
    finder->growth.done = done + (slots < left ? slots : left);
    return rows_add(finder->larger, &rows, (ivm__row_id)done, (ivm__row_id)finder->growth.done) && changes_add(store, finder->larger);
}

/* What the step last committed made come is noted in the finder, which is not full. The larger one takes its place once it has all rows. */
static void larger_move(ivm__store *store)
{
    ivm__finder *finder = store->finder, *larger = finder->larger;
    uint64_t slots = ivm__moved_for(changes_count(store));
    size_t bytes = slots_bytes(larger);
    if (finder->growth.cleared < bytes) {
        (void)ivm__growth_zero(&finder->growth, slots_of(larger), bytes, slots);
        return;
    }
    if (!larger_fill(store, finder, slots)) {
        finder->larger = NULL;
        ivm__finder_release(larger, store->memory);
    } else if (finder->growth.done == store->rows_end) {
        finder->larger = NULL;
        larger->idle = finder->idle;
        store->finder = larger;
        ivm__finder_release(finder, store->memory);
    }
}

static void larger_step(ivm__store *store)
{
    ivm__finder *finder = store->finder;
    uint64_t slots = (uint64_t)finder->mask + 1;
    if (!finder->larger && finder->room <= ivm__grows_meanwhile(slots) && ivm__grows_beside(slots)) {
        larger_begin(store, finder);
    }
    if (finder->larger) {
        larger_move(store);
    }
}

static bool is_idle(ivm__finder *finder)
{
    if (atomic_load_explicit(&finder->used, memory_order_relaxed)) {
        atomic_store_explicit(&finder->used, false, memory_order_relaxed);
        finder->idle = 0;
    }
    return finder->idle++ == IDLE_MAX;
}

void ivm__finder_commit(ivm__store *store)
{
    if (store->finder && is_idle(store->finder)) {
        ivm__finder_drop(store);
    }
    if (store->finder && !changes_add(store, store->finder)) {
        finder_remake(store);
    } else if (store->finder) {
        larger_step(store);
    }
    ivm__finder_adopt(store);
}
