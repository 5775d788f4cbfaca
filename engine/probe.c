/* Probing: from packed keys to rows, the hottest loop of the engine.
 *
 *     block of keys:  slots were prefetched with the block before -> candidates found, their rows prefetched -> rows compared, pairs written
 *
 * A candidate is the first slot with the key's tag; it is the key's row but for a few in thousands, so that a probe is one slot line and one row
 * line, both waited for together with those of the block's other keys. Without prefetch it takes three times as long; a distance of 16 to
 * 64 keys makes no difference. Where a key has one row at most a pair is written without a branch on its being found. */
#include "index_inside.h"

#define BLOCK_KEYS 32u

static void slots_prefetch(const ivm__index *index, const uint64_t *hashes, uint32_t count)
{
    const uint64_t *slots = index->slots;
    uint32_t shift = 64 - index->slots_log2;
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&slots[hashes[i] >> shift]);
    }
}

/* candidates[i]: the row to compare with key i, IVM__ROW_NONE where it has none or is skipped. */
static void candidates_find(const ivm__index *index, const ivm__keys *keys, uint32_t first, uint32_t count, ivm__row_id *candidates)
{
    const uint64_t *slots = index->slots, *hashes = keys->hashes + first;
    uint32_t shift = 64 - index->slots_log2, mask = ivm__index_mask(index);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tag = (uint32_t)(hashes[i] >> 32), at = (uint32_t)(hashes[i] >> shift);
        uint64_t slot = slots[at];
        while (slot != 0 && ivm__slot_tag(slot) != tag) {
            at = (at + 1) & mask;
            slot = slots[at];
        }
        candidates[i] = ivm__slot_row(slot);
    }
    for (uint32_t i = 0; keys->skip && i < count; i++) {
        candidates[i] = keys->skip[first + i] ? IVM__ROW_NONE : candidates[i];
    }
}

static void rows_prefetch(const ivm__index *index, const ivm__row_id *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ivm__likely(candidates[i] != IVM__ROW_NONE)) {
            __builtin_prefetch(ivm__store_row(index->store, candidates[i]));
        }
    }
}

static void block_begin(const ivm__index *index, const ivm__keys *keys, uint32_t first, uint32_t count, ivm__row_id *candidates)
{
    uint32_t after = keys->rows_count - (first + count);
    candidates_find(index, keys, first, count, candidates);
    rows_prefetch(index, candidates, count);
    slots_prefetch(index, keys->hashes + first + count, after < BLOCK_KEYS ? after : BLOCK_KEYS);
}

static uint32_t block_keys(const ivm__keys *keys, uint32_t first, uint32_t most)
{
    uint32_t count = keys->rows_count - first;
    count = count < BLOCK_KEYS ? count : BLOCK_KEYS;
    return count < most ? count : most;
}

/* ---- One row a key at most --------------------------------------------------------------------------------------------------------- */

/* The candidate was another key's. */
static ivm__row_id row_find(const ivm__index *index, const ivm__keys *keys, uint32_t key)
{
    uint32_t next = 0;
    return ivm__index_find(index, keys->words + (size_t)key * keys->words_count, keys->hashes[key], &next);
}

static uint32_t block_word_rows(const ivm__index *index, const ivm__keys *keys, uint32_t first, uint32_t count,
                                const ivm__row_id *candidates, uint32_t *restrict positions, ivm__row_id *restrict rows)
{
    const ivm__store *store = index->store;
    ivm__page *const *page = store->pages->page;
    const uint64_t *words = keys->words + first;
    uint32_t shift = store->page_shift, mask = store->page_mask, found = 0;
    size_t stride = store->layout->stride, offset = store->layout->offsets[index->columns[0]];
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = candidates[i];
        if (ivm__unlikely(row == IVM__ROW_NONE)) {
            continue;
        }
        if (ivm__unlikely(ivm__word_at(page[row >> shift]->rows + (row & mask) * stride + offset) != words[i])) {
            row = row_find(index, keys, first + i);
        }
        positions[found] = first + i;
        rows[found] = row;
        found += row != IVM__ROW_NONE;
    }
    return found;
}

static uint32_t block_key_rows(const ivm__index *index, const ivm__keys *keys, uint32_t first, uint32_t count,
                               const ivm__row_id *candidates, uint32_t *restrict positions, ivm__row_id *restrict rows)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = candidates[i];
        if (row == IVM__ROW_NONE) {
            continue;
        }
        const uint64_t *words = keys->words + (size_t)(first + i) * keys->words_count;
        if (!ivm__index_row_has_words(index, ivm__store_row(index->store, row), words)) {
            row = row_find(index, keys, first + i);
        }
        positions[found] = first + i;
        rows[found] = row;
        found += row != IVM__ROW_NONE;
    }
    return found;
}

static uint32_t probe_single(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                             ivm__row_id *rows)
{
    ivm__row_id candidates[BLOCK_KEYS];
    uint32_t found = 0;
    while (probe->key < keys->rows_count && found < capacity) {
        uint32_t first = probe->key, count = block_keys(keys, first, capacity - found);
        block_begin(index, keys, first, count, candidates);
        found += index->words_count == 1 ? block_word_rows(index, keys, first, count, candidates, positions + found, rows + found)
                                         : block_key_rows(index, keys, first, count, candidates, positions + found, rows + found);
        probe->key += count;
    }
    return found;
}

/* ---- Any number of rows a key ------------------------------------------------------------------------------------------------------ */

static void chains_prefetch(const ivm__index *index, const ivm__row_id *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (candidates[i] != IVM__ROW_NONE) {
            __builtin_prefetch(&index->chain[candidates[i]]);
        }
    }
}

/* The rest of the key the probe stands at. Goes on to the next key where nothing of it is left. */
static uint32_t key_rows(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                         ivm__row_id *rows)
{
    const uint64_t *words = keys->words + (size_t)probe->key * keys->words_count;
    uint64_t hash = keys->hashes[probe->key];
    uint32_t found = 0;
    for (; found < capacity; found++) {
        rows[found] = ivm__index_find(index, words, hash, &probe->next);
        if (rows[found] == IVM__ROW_NONE) {
            probe->key++;
            probe->next = 0;
            break;
        }
        positions[found] = probe->key;
    }
    return found;
}

static uint32_t probe_many(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                           ivm__row_id *rows)
{
    ivm__row_id candidates[BLOCK_KEYS];
    uint32_t found = 0;
    while (probe->key < keys->rows_count && found < capacity) {
        uint32_t first = probe->key, count = block_keys(keys, first, BLOCK_KEYS);
        block_begin(index, keys, first, count, candidates);
        if (!index->unique) {
            chains_prefetch(index, candidates, count);
        }
        while (probe->key < first + count && found < capacity) {
            if (candidates[probe->key - first] == IVM__ROW_NONE) {
                probe->key++;
                continue;
            }
            found += key_rows(index, keys, probe, capacity - found, positions + found, rows + found);
        }
    }
    return found;
}

uint32_t ivm__index_probe(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                          ivm__row_id *rows)
{
    assert(capacity > 0 && keys->words_count == index->words_count);
    if (index->used == 0) {
        probe->key = keys->rows_count;
    }
    if (probe->key == keys->rows_count) {
        return 0;
    }
    slots_prefetch(index, keys->hashes + probe->key, block_keys(keys, probe->key, BLOCK_KEYS));
    return index->unique && index->doubles == 0 ? probe_single(index, keys, probe, capacity, positions, rows)
                                                : probe_many(index, keys, probe, capacity, positions, rows);
}

/* ---- One key ----------------------------------------------------------------------------------------------------------------------- */

/* The key's next slot, from *distance slots past its home on. *distance is left one past it. */
static ivm__row_id slot_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *distance)
{
    uint32_t mask = ivm__index_mask(index), tag = (uint32_t)(hash >> 32), home = ivm__index_home(index, tag);
    uint64_t slot;
    while ((slot = index->slots[(home + *distance) & mask]) != 0) {
        ++*distance;
        ivm__row_id row = ivm__slot_row(slot);
        if (ivm__slot_tag(slot) == tag && ivm__index_row_has(index, ivm__store_row(index->store, row), words)) {
            return row;
        }
    }
    return IVM__ROW_NONE;
}

/* In a chain *next is the next row's id + 1, and at its end IVM__ROW_NONE, which no id reaches. */
ivm__row_id ivm__index_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *next)
{
    if (index->used == 0) {
        return IVM__ROW_NONE;
    }
    if (index->unique) {
        return slot_find(index, words, hash, next);
    }
    if (*next == IVM__ROW_NONE) {
        return IVM__ROW_NONE;
    }
    uint32_t distance = 0;
    ivm__row_id row = *next ? *next - 1 : slot_find(index, words, hash, &distance);
    if (row != IVM__ROW_NONE) {
        ivm__row_id following = index->chain[row].next;
        *next = following == IVM__ROW_NONE ? IVM__ROW_NONE : following + 1;
    }
    return row;
}
