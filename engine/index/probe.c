/* Probing: from packed keys to rows, the hottest loop of the engine.
 *
 *     block of keys:  slots prefetched two blocks ahead -> candidates found, their rows prefetched one block ahead -> rows compared, pairs written
 *
 * A candidate is the first slot with the key's tag; it is the key's row but for a few in thousands, so that a probe is one slot line and one row
 * line, both waited for together with those of the block's other keys. Without prefetch it takes three times as long; a distance of 16 to
 * 64 keys makes no difference. Where a key has one row at most a pair is written without a branch on its being found. */
#include "index_inside.h"

#define BLOCK_KEYS 32u

static void slots_prefetch(const ivm__index *index, const uint64_t *hashes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__prefetch(ivm__index_home_at(index, hashes[i]));
    }
}

/* Keys of a block whose slot has not been met yet, and where to go on looking. */
typedef struct seeking {
    uint32_t count;
    uint32_t at[BLOCK_KEYS], tag[BLOCK_KEYS];
    uint8_t key[BLOCK_KEYS];
} seeking;

/* Looks at two slots for each key, without a branch that goes by what is in them: at load two thirds every second key has a slot of another
 * one before its own, and a loop would mispredict as often. A slot that is free, or has the key's tag, ends its search. */
static inline void slots_look(const ivm__index *index, bool narrow, seeking *it, ivm__row_id *candidates)
{
    uint32_t left = 0;
    for (uint32_t j = 0; j < it->count; j++) {
        uint32_t i = it->key[j], at = it->at[j], tag = it->tag[j], behind = ivm__index_next(index, at);
        uint64_t first = narrow ? ivm__slot_of_narrow(index, index->narrow[at]) : index->slots[at];
        uint64_t second = narrow ? ivm__slot_of_narrow(index, index->narrow[behind]) : index->slots[behind];
        bool ends = (first == 0) | (ivm__slot_tag(first) == tag);
        candidates[i] = ivm__slot_row(ends ? first : second);
        it->key[left] = (uint8_t)i;
        it->at[left] = ivm__index_next(index, behind);
        it->tag[left] = tag;
        left += !(ends | (second == 0) | (ivm__slot_tag(second) == tag));
    }
    it->count = left;
}

/* candidates[i]: the row to compare with key i, IVM__ROW_NONE where it has none or is skipped. */
static void candidates_find(const ivm__index *index, const ivm__keys *keys, uint32_t first, uint32_t count, ivm__row_id *candidates)
{
    const uint64_t *hashes = keys->hashes + first;
    seeking it = { .count = count };
    for (uint32_t i = 0; i < count; i++) {
        it.key[i] = (uint8_t)i;
        ivm__slot_aim aim = ivm__index_aim(index, hashes[i]);
        it.at[i] = aim.home;
        it.tag[i] = aim.tag;
    }
    while (index->narrow && it.count > 0) {
        slots_look(index, true, &it, candidates);
    }
    while (it.count > 0) {
        slots_look(index, false, &it, candidates);
    }
    for (uint32_t i = 0; keys->skip && i < count; i++) {
        candidates[i] = keys->skip[first + i] ? IVM__ROW_NONE : candidates[i];
    }
}

static void rows_prefetch(const ivm__index *index, const ivm__row_id *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ivm__likely(candidates[i] != IVM__ROW_NONE)) {
            ivm__prefetch(ivm__store_row(index->store, candidates[i]));
        }
    }
}

static void places_prefetch(const ivm__index *index, const ivm__row_id *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (candidates[i] != IVM__ROW_NONE) {
            ivm__prefetch(ivm__index_place(index, candidates[i]));
        }
    }
}

static uint32_t block_keys(const ivm__keys *keys, uint32_t first)
{
    uint32_t count = keys->rows_count - first;
    return count < BLOCK_KEYS ? count : BLOCK_KEYS;
}

/* Two blocks of candidates: the one being compared and the one whose rows are on their way. */
typedef struct pipeline {
    ivm__row_id candidates[2][BLOCK_KEYS];
    uint32_t turn;
} pipeline;

/* Finds the candidates of the block at `first` (its slots were prefetched one block ago) and sends for their rows and the next slots. */
static void block_begin(const ivm__index *index, const ivm__keys *keys, uint32_t first, ivm__row_id *candidates)
{
    uint32_t count = block_keys(keys, first);
    if (count == 0) {
        return;
    }
    slots_prefetch(index, keys->hashes + first + count, block_keys(keys, first + count));
    candidates_find(index, keys, first, count, candidates);
    rows_prefetch(index, candidates, count);
    if (!index->unique) {
        places_prefetch(index, candidates, count);
    }
}

static void pipeline_start(pipeline *blocks, const ivm__index *index, const ivm__keys *keys, uint32_t first)
{
    blocks->turn = 0;
    memset(blocks->candidates, 0xff, sizeof blocks->candidates); /* IVM__ROW_NONE */
    slots_prefetch(index, keys->hashes + first, block_keys(keys, first));
    block_begin(index, keys, first, blocks->candidates[0]);
}

/* The candidates of the block at `first`, begun before; the next block is begun. */
static const ivm__row_id *pipeline_next(pipeline *blocks, const ivm__index *index, const ivm__keys *keys, uint32_t first)
{
    const ivm__row_id *ready = blocks->candidates[blocks->turn];
    blocks->turn ^= 1;
    block_begin(index, keys, first + block_keys(keys, first), blocks->candidates[blocks->turn]);
    return ready;
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
    uint8_t *const *page = store->rows;
    const uint64_t *words = keys->words + first;
    uint32_t shift = store->page_shift, mask = store->page_mask, found = 0;
    size_t stride = store->layout->stride, offset = store->layout->offsets[index->columns[0]];
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = candidates[i];
        if (ivm__unlikely(row == IVM__ROW_NONE)) {
            continue;
        }
        if (ivm__unlikely(ivm__word_at(page[row >> shift] + (row & mask) * stride + offset) != words[i])) {
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
    pipeline blocks;
    uint32_t found = 0;
    pipeline_start(&blocks, index, keys, probe->key);
    while (probe->key < keys->rows_count && found < capacity) {
        uint32_t first = probe->key, count = block_keys(keys, first);
        const ivm__row_id *candidates = pipeline_next(&blocks, index, keys, first);
        uint32_t taken = count < capacity - found ? count : capacity - found;
        found += index->words_count == 1 ? block_word_rows(index, keys, first, taken, candidates, positions + found, rows + found)
                                         : block_key_rows(index, keys, first, taken, candidates, positions + found, rows + found);
        probe->key += taken;
        if (taken < count) {
            pipeline_start(&blocks, index, keys, probe->key);
        }
    }
    return found;
}

/* ---- One row a key, and its cells ---------------------------------------------------------------------------------------------------- */

bool ivm__index_reads(const ivm__index *index, const uint32_t *columns, uint32_t columns_count)
{
    const ivm__layout *layout = index->store->layout;
    bool plain = index->unique && index->words_count == 1 && columns_count <= IVM__READ_COLUMNS_MAX;
    for (uint32_t c = 0; plain && c < columns_count; c++) {
        plain = !layout->nullable[columns[c]] && !ivm__type_is_wide(layout->types[columns[c]]);
    }
    return plain;
}

/* The rows of a block's keys: where they lie. Adds to *unlike the bits in which a header differs from that of an untouched row of weight 1. */
static uint32_t block_word_places(const ivm__index *index, const ivm__keys *keys, uint32_t first, const ivm__row_id *candidates,
                                  ivm__row_id end, const uint8_t **restrict at, uint32_t *restrict positions, ivm__row_header *unlike)
{
    const ivm__store *store = index->store;
    uint8_t *const *page = store->rows;
    const uint64_t *words = keys->words + first;
    uint32_t shift = store->page_shift, mask = store->page_mask, count = block_keys(keys, first), found = 0;
    size_t stride = store->layout->stride, offset = store->layout->offsets[index->columns[0]];
    ivm__row_header one = ivm__header_of_weight(1), differs = 0;
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = candidates[i];
        if (ivm__unlikely(row == IVM__ROW_NONE)) {
            continue;
        }
        const uint8_t *place = page[row >> shift] + (row & mask) * stride;
        if (ivm__unlikely(ivm__word_at(place + offset) != words[i])) {
            row = row_find(index, keys, first + i);
            if (row == IVM__ROW_NONE) {
                continue;
            }
            place = page[row >> shift] + (row & mask) * stride;
        }
        differs |= (ivm__row_header_of(place) ^ one) | (row >= end);
        at[found] = place;
        positions[found++] = first + i;
    }
    *unlike |= differs;
    return found;
}

static void cells_read(const uint8_t *const *at, uint32_t count, uint32_t offset, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = ivm__word_at(at[i] + offset);
    }
}

uint32_t ivm__index_probe_cells(const ivm__index *index, const ivm__keys *keys, ivm__reading reading, const uint32_t *columns,
                                uint32_t columns_count, uint64_t *const *cells, uint32_t *positions)
{
    assert(ivm__index_reads(index, columns, columns_count) && keys->words_count == 1);
    if (index->used == 0 || keys->rows_count == 0) {
        return 0;
    }
    const uint32_t *offsets = index->store->layout->offsets;
    ivm__row_id end = reading == IVM__READ_OLD ? index->store->step_end : IVM__ROW_NONE;
    const uint8_t *at[BLOCK_KEYS];
    ivm__row_header unlike = 0;
    uint32_t found = 0;
    pipeline blocks;
    pipeline_start(&blocks, index, keys, 0);
    for (uint32_t first = 0; first < keys->rows_count; first += BLOCK_KEYS) {
        const ivm__row_id *candidates = pipeline_next(&blocks, index, keys, first);
        uint32_t more = block_word_places(index, keys, first, candidates, end, at, positions + found, &unlike);
        for (uint32_t c = 0; c < columns_count; c++) {
            cells_read(at, more, offsets[columns[c]], cells[c] + found);
        }
        found += more;
    }
    return unlike ? IVM__ROW_NONE : found;
}

/* ---- Any number of rows a key ------------------------------------------------------------------------------------------------------ */

/* The blocks of rows in which the candidates' lists begin. */
static void blocks_prefetch(const ivm__index *index, const ivm__row_id *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = candidates[i] == IVM__ROW_NONE ? IVM__ROW_NONE : *ivm__index_place(index, candidates[i]);
        if (place != IVM__ROW_NONE) {
            ivm__prefetch(ivm__block_at(index, place));
        }
    }
}

/* Rows of the probe's key from probe->next on, a block at a time. Their lines are sent for: a list's rows lie anywhere, and are read next. */
static uint32_t list_rows(const ivm__index *index, ivm__probe *probe, uint32_t capacity, uint32_t *restrict positions,
                          ivm__row_id *restrict rows)
{
    uint32_t found = 0, last = index->store->layout->stride - 1;
    while (probe->next != IVM__ROW_NONE && found < capacity) {
        uint32_t place = probe->next - 1, at = place & 15;
        const ivm__block *block = ivm__block_at(index, place);
        uint32_t count = block->count - at < capacity - found ? block->count - at : capacity - found;
        if (block->next != IVM__BLOCK_NONE) {
            ivm__prefetch(ivm__index_block(index, block->next));
        }
        for (uint32_t i = 0; i < count; i++) {
            positions[found + i] = probe->key;
            rows[found + i] = block->rows[at + i];
            const uint8_t *row = ivm__store_row(index->store, block->rows[at + i]);
            ivm__prefetch(row);
            ivm__prefetch(row + last);
        }
        found += count;
        uint32_t following = ivm__place_next(index, place + count - 1);
        probe->next = following == IVM__ROW_NONE ? IVM__ROW_NONE : following + 1;
    }
    return found;
}

/* The rest of the key the probe stands at. Goes on to the next key where nothing of it is left. */
static uint32_t key_rows(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                         ivm__row_id *rows)
{
    const uint64_t *words = keys->words + (size_t)probe->key * keys->words_count;
    uint32_t found = 0;
    bool more = true;
    while (found < capacity && (index->unique || probe->next == 0)) {
        rows[found] = ivm__index_find(index, words, keys->hashes[probe->key], &probe->next);
        more = rows[found] != IVM__ROW_NONE;
        if (!more) {
            break;
        }
        positions[found++] = probe->key;
    }
    if (more && !index->unique) {
        found += list_rows(index, probe, capacity - found, positions + found, rows + found);
        more = probe->next != IVM__ROW_NONE;
    }
    if (!more) {
        probe->key++;
        probe->next = 0;
    }
    return found;
}

/* Whether this is the key's row and no other has its key: the two of a key that a step changed are touched, or appended by it. */
static bool key_has_only(const ivm__index *index, const ivm__keys *keys, uint32_t key, ivm__row_id row)
{
    const ivm__store *store = index->store;
    const uint8_t *at = ivm__store_row(store, row);
    bool untouched = !ivm__header_is_touch(ivm__row_header_of(at)) && row < store->step_end;
    return index->unique && untouched && ivm__index_row_has(index, at, keys->words + (size_t)key * keys->words_count);
}

static uint32_t probe_many(const ivm__index *index, const ivm__keys *keys, ivm__probe *probe, uint32_t capacity, uint32_t *positions,
                           ivm__row_id *rows)
{
    pipeline blocks;
    uint32_t found = 0;
    pipeline_start(&blocks, index, keys, probe->key);
    while (probe->key < keys->rows_count && found < capacity) {
        uint32_t first = probe->key, count = block_keys(keys, first);
        const ivm__row_id *candidates = pipeline_next(&blocks, index, keys, first);
        if (!index->unique) {
            blocks_prefetch(index, candidates, count);
        }
        while (probe->key < first + count && found < capacity) {
            ivm__row_id row = candidates[probe->key - first];
            if (row == IVM__ROW_NONE) {
                probe->key++;
                continue;
            }
            if (probe->next == 0 && key_has_only(index, keys, probe->key, row)) {
                positions[found] = probe->key++;
                rows[found++] = row;
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
    return index->unique && index->doubles == 0 ? probe_single(index, keys, probe, capacity, positions, rows)
                                                : probe_many(index, keys, probe, capacity, positions, rows);
}

/* ---- One key ----------------------------------------------------------------------------------------------------------------------- */

/* The key's next slot, from *distance slots past its home on. *distance is left one past it. */
static ivm__row_id slot_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *distance)
{
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    uint64_t place = (uint64_t)aim.home + *distance, slot;
    uint32_t at = (uint32_t)(place < index->slots_capacity ? place : place - index->slots_capacity);
    for (; (slot = ivm__index_slot(index, at)) != 0; at = ivm__index_next(index, at)) {
        ++*distance;
        ivm__row_id row = ivm__slot_row(slot);
        if (ivm__slot_tag(slot) == aim.tag && ivm__index_row_has(index, ivm__store_row(index->store, row), words)) {
            return row;
        }
    }
    return IVM__ROW_NONE;
}

/* In a list *next is the next row's place + 1, and at its end IVM__ROW_NONE, which no place reaches. */
static ivm__row_id list_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *next)
{
    if (*next == IVM__ROW_NONE) {
        return IVM__ROW_NONE;
    }
    uint32_t distance = 0, place = *next - 1;
    ivm__row_id row;
    if (*next == 0) {
        row = slot_find(index, words, hash, &distance);
        if (row == IVM__ROW_NONE) {
            return row;
        }
        place = *ivm__index_place(index, row);
    } else {
        row = ivm__block_at(index, place)->rows[place & 15];
    }
    uint32_t following = place == IVM__ROW_NONE ? IVM__ROW_NONE : ivm__place_next(index, place);
    *next = following == IVM__ROW_NONE ? IVM__ROW_NONE : following + 1;
    return row;
}

ivm__row_id ivm__index_find(const ivm__index *index, const uint64_t *words, uint64_t hash, uint32_t *next)
{
    if (index->used == 0) {
        return IVM__ROW_NONE;
    }
    return index->unique ? slot_find(index, words, hash, next) : list_find(index, words, hash, next);
}
