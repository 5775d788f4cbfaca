/* Covers: linear probing over pairs of key and cell. See cover.h.
 *
 *     home = upper 32 bits of the hash, scaled to the capacity        no free slot between a pair's home and its place
 *
 * A block of keys is hashed before, its slots sent for, and the first slot of each compared without a branch; the few that lie further
 * on are looked for after. Cost: one line a key. */
#include "cover.h"

#include "index_inside.h"

#define BLOCK_KEYS 64u

static inline uint32_t home_of(const ivm__cover *cover, uint64_t hash)
{
    return (uint32_t)((hash >> 32) * cover->capacity >> 32);
}

static inline uint32_t next_of(const ivm__cover *cover, uint32_t at)
{
    return at + 1 == cover->capacity ? 0 : at + 1;
}

static uint64_t key_of(const ivm__cover *cover, ivm__row_id row)
{
    return ivm__word_at(ivm__index_cell(cover->index, ivm__store_row(cover->index->store, row), 0));
}

static uint64_t cell_of(const ivm__cover *cover, ivm__row_id row)
{
    const ivm__store *store = cover->index->store;
    return ivm__word_at(ivm__store_row(store, row) + store->layout->offsets[cover->column]);
}

/* ---- Probing ----------------------------------------------------------------------------------------------------------------------- */

static bool find(const ivm__cover *cover, uint64_t key, uint32_t at, uint64_t *cell)
{
    if (ivm__unlikely(key == cover->free)) {
        *cell = cover->free_cell;
        return cover->has_free;
    }
    for (; cover->slots[at].key != cover->free; at = next_of(cover, at)) {
        if (cover->slots[at].key == key) {
            *cell = cover->slots[at].cell;
            return true;
        }
    }
    return false;
}

static uint32_t block_probe(const ivm__cover *cover, const uint64_t *words, const uint32_t *homes, uint32_t count, uint64_t *restrict cells,
                            uint16_t *restrict found)
{
    uint32_t left[BLOCK_KEYS], left_count = 0, hits = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ivm__cover_slot *slot = &cover->slots[homes[i]];
        bool hit = (slot->key == words[i]) & (words[i] != cover->free);
        cells[i] = slot->cell;
        found[i] = hit;
        hits += hit;
        left[left_count] = i;
        left_count += !hit;
    }
    for (uint32_t j = 0; j < left_count; j++) {
        uint32_t i = left[j];
        found[i] = find(cover, words[i], homes[i], &cells[i]);
        hits += found[i];
    }
    return hits;
}

static void homes_send(const ivm__cover *cover, const uint64_t *hashes, uint32_t count, uint32_t *homes)
{
    for (uint32_t i = 0; i < count; i++) {
        homes[i] = home_of(cover, hashes[i]);
        ivm__prefetch(&cover->slots[homes[i]]);
    }
}

uint32_t ivm__cover_probe(const ivm__cover *cover, const ivm__keys *keys, uint64_t *cells, uint16_t *codes)
{
    assert(keys->words_count == 1 && !keys->skip);
    if (cover->words) {
        return ivm__cover_words_probe(cover->words, keys, cells, codes);
    }
    assert(cover->capacity > 0);
    uint32_t homes[2][BLOCK_KEYS], turn = 0, hits = 0, rows_count = keys->rows_count;
    homes_send(cover, keys->hashes, rows_count < BLOCK_KEYS ? rows_count : BLOCK_KEYS, homes[0]);
    for (uint32_t first = 0; first < rows_count; first += BLOCK_KEYS, turn ^= 1) {
        uint32_t left = rows_count - first, count = left < BLOCK_KEYS ? left : BLOCK_KEYS, after = left - count;
        homes_send(cover, keys->hashes + first + count, after < BLOCK_KEYS ? after : BLOCK_KEYS, homes[turn ^ 1]);
        hits += block_probe(cover, keys->words + first, homes[turn], count, cells + first, codes + first);
    }
    return hits;
}

void ivm__cover_send(const ivm__cover *cover, const ivm__keys *keys)
{
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        uint64_t x = keys->hashes[i] >> 32;
        const void *line = cover->words ? (const void *)&cover->words->words[x * cover->words->capacity >> 32]
                                        : (const void *)&cover->slots[home_of(cover, keys->hashes[i])];
        ivm__prefetch(line);
    }
}

/* Adds what is missing of a block to `absent`, of which there are `count`. */
static uint32_t block_absent(const ivm__cover *cover, const ivm__keys *keys, uint32_t first, const uint32_t *homes, uint32_t block,
                             uint32_t *absent, uint32_t count)
{
    uint32_t left[BLOCK_KEYS], left_count = 0;
    const uint64_t *words = keys->words + first;
    const ivm__cover_slot *slots = cover->slots;
    for (uint32_t i = 0; i < block; i++) {
        bool hit = (slots[homes[i]].key == words[i]) & (words[i] != cover->free);
        left[left_count] = i;
        left_count += !hit;
    }
    for (uint32_t j = 0; j < left_count; j++) {
        uint32_t i = left[j];
        uint64_t cell;
        absent[count] = first + i;
        count += !find(cover, words[i], homes[i], &cell) && !(keys->skip && keys->skip[first + i]);
    }
    return count;
}

uint32_t ivm__cover_absent(const ivm__cover *cover, const ivm__keys *keys, uint32_t *absent)
{
    assert(keys->words_count == 1);
    if (cover->words) {
        return ivm__cover_words_absent(cover->words, keys, absent);
    }
    assert(cover->capacity > 0);
    uint32_t homes[2][BLOCK_KEYS], turn = 0, count = 0, rows_count = keys->rows_count;
    homes_send(cover, keys->hashes, rows_count < BLOCK_KEYS ? rows_count : BLOCK_KEYS, homes[0]);
    for (uint32_t first = 0; first < rows_count; first += BLOCK_KEYS, turn ^= 1) {
        uint32_t left = rows_count - first, block = left < BLOCK_KEYS ? left : BLOCK_KEYS, after = left - block;
        homes_send(cover, keys->hashes + first + block, after < BLOCK_KEYS ? after : BLOCK_KEYS, homes[turn ^ 1]);
        count = block_absent(cover, keys, first, homes[turn], block, absent, count);
    }
    return count;
}

/* ---- Rows come and go ---------------------------------------------------------------------------------------------------------------- */

static uint32_t place_of(const ivm__cover *cover, uint64_t key, uint64_t hash)
{
    uint32_t at = home_of(cover, hash);
    while (cover->slots[at].key != key && cover->slots[at].key != cover->free) {
        at = next_of(cover, at);
    }
    return at;
}

static void put(ivm__cover *cover, uint64_t key, uint64_t hash, uint64_t cell)
{
    if (ivm__unlikely(key == cover->free)) {
        cover->has_free = true;
        cover->free_cell = cell;
        return;
    }
    uint32_t at = place_of(cover, key, hash);
    cover->used += cover->slots[at].key == cover->free;
    assert(cover->used < cover->capacity);
    cover->slots[at] = (ivm__cover_slot){ key, cell };
}

/* Whether the larger pairs beside, if there are any, have those of the hash's home. */
static bool is_done(const ivm__cover *cover, uint64_t hash)
{
    return ivm__unlikely(cover->larger != NULL) && ivm__growth_is_done(&cover->growth, home_of(cover, hash));
}

static void pair_put(ivm__cover *cover, uint64_t key, uint64_t hash, uint64_t cell)
{
    put(cover, key, hash, cell);
    if (is_done(cover, hash) && key != cover->free) {
        put(cover->larger, key, hash, cell);
    }
}

void ivm__cover_link(ivm__cover *cover, ivm__row_id row, uint64_t hash)
{
    if (cover->words) {
        ivm__cover_words_put(cover->words, hash, cell_of(cover, row));
    } else {
        pair_put(cover, key_of(cover, row), hash, cell_of(cover, row));
    }
}

/* Moves back what follows, so that no free slot comes to lie between a pair and its home. */
static void slot_remove(ivm__cover *cover, uint32_t hole)
{
    uint32_t capacity = cover->capacity;
    uint64_t seed = cover->index->store->seed;
    for (uint32_t at = next_of(cover, hole); cover->slots[at].key != cover->free; at = next_of(cover, at)) {
        uint32_t home = home_of(cover, ivm__hash_word(cover->slots[at].key, seed));
        uint32_t from_home = at >= home ? at - home : at + capacity - home;
        uint32_t from_hole = at >= hole ? at - hole : at + capacity - hole;
        if (from_home >= from_hole) {
            cover->slots[hole] = cover->slots[at];
            hole = at;
        }
    }
    cover->slots[hole].key = cover->free;
    cover->used--;
}

static void pair_remove(ivm__cover *cover, uint64_t key, uint64_t hash)
{
    uint32_t at = place_of(cover, key, hash);
    assert(cover->slots[at].key == key);
    slot_remove(cover, at);
}

static void words_unlink(ivm__cover *cover, uint64_t hash, ivm__row_id remaining)
{
    if (remaining != IVM__ROW_NONE) {
        ivm__cover_words_put(cover->words, hash, cell_of(cover, remaining));
    } else {
        ivm__cover_words_remove(cover->words, hash);
    }
}

void ivm__cover_unlink(ivm__cover *cover, ivm__row_id row, uint64_t hash, ivm__row_id remaining)
{
    if (cover->words) {
        words_unlink(cover, hash, remaining);
        return;
    }
    uint64_t key = key_of(cover, row);
    if (remaining != IVM__ROW_NONE) {
        pair_put(cover, key, hash, cell_of(cover, remaining));
    } else if (ivm__unlikely(key == cover->free)) {
        cover->has_free = false;
    } else {
        pair_remove(cover, key, hash);
        if (is_done(cover, hash)) {
            pair_remove(cover->larger, key, hash);
        }
    }
}

/* ---- All rows ------------------------------------------------------------------------------------------------------------------------ */

static bool can_be_asked(const ivm__cover *cover)
{
    return !cover->words || !cover->words->failed;
}

static void rows_put(ivm__cover *cover, const ivm__row_id *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__cover_link(cover, rows[i], ivm__hash_word(key_of(cover, rows[i]), cover->index->store->seed));
    }
}

/* Every row that the index holds; where a key has two, either may stand in the cover until one goes. Slots and pairs are in the order of the
 * hash both, so that pairs are written one after the other; the rows are sent for a block ahead. Words that fail are left at once. */
static void fill(ivm__cover *cover)
{
    const ivm__index *index = cover->index;
    ivm__row_id rows[BLOCK_KEYS];
    uint32_t count = 0;
    for (uint64_t i = 0; i < index->slots_capacity && can_be_asked(cover); i++) {
        uint64_t slot = ivm__index_slot(index, (uint32_t)i);
        if (slot == 0) {
            continue;
        }
        rows[count] = ivm__slot_row(slot);
        ivm__prefetch(ivm__store_row(index->store, rows[count]));
        if (++count == BLOCK_KEYS) {
            rows_put(cover, rows, count);
            count = 0;
        }
    }
    rows_put(cover, rows, count);
}

/* Some codes are left over for what comes, or the cover would soon have to be made again. */
static bool words_serve(const ivm__cover_words *words)
{
    return !words->failed && words->codes.count <= (3u << words->codes.bits) / 4;
}

static size_t slots_bytes(const ivm__cover *cover)
{
    return (size_t)cover->capacity * sizeof *cover->slots;
}

static void larger_drop(ivm__cover *cover)
{
    if (cover->larger) {
        ivm__memory *memory = cover->index->store->memory;
        ivm__release(memory, cover->larger->slots, slots_bytes(cover->larger));
        ivm__release(memory, cover->larger, sizeof *cover->larger);
        cover->larger = NULL;
    }
}

/* Words for so many rows in an empty cover or instead of its pairs, if they serve. */
static ivm_status words_make(ivm__cover *cover, uint64_t rows)
{
    const ivm__store *store = cover->index->store;
    IVM_TRY(ivm__cover_words_make(store->memory, store->seed, rows, &cover->words));
    cover->words_tried = rows;
    if (!cover->words) {
        return IVM_OK;
    }
    fill(cover);
    if (words_serve(cover->words)) {
        larger_drop(cover);
        ivm__release(store->memory, cover->slots, slots_bytes(cover));
        cover->slots = NULL;
        cover->capacity = cover->used = 0;
        cover->has_free = false;
    } else {
        ivm__cover_words_free(cover->words);
        cover->words = NULL;
    }
    return IVM_OK;
}

/* ---- Room ---------------------------------------------------------------------------------------------------------------------------- */

/* Larger pairs, to be cleared. */
static ivm_status larger_make(ivm__cover *cover, uint32_t capacity)
{
    ivm__memory *memory = cover->index->store->memory;
    ivm__cover *larger = ivm__allocate(memory, sizeof *larger);
    ivm__cover_slot *slots = ivm__allocate(memory, (size_t)capacity * sizeof *slots);
    if (!larger || !slots) {
        ivm__release(memory, larger, sizeof *larger);
        ivm__release(memory, slots, (size_t)capacity * sizeof *slots);
        return IVM_OUT_OF_MEMORY;
    }
    *larger = (ivm__cover){ .index = cover->index, .column = cover->column, .free = cover->free, .slots = slots, .capacity = capacity };
    uint32_t start = 0;
    while (cover->capacity && cover->slots[start].key != cover->free) {
        start++;
    }
    cover->larger = larger;
    cover->growth = (ivm__growth){ .capacity = cover->capacity, .start = cover->capacity ? next_of(cover, start) : 0 };
    return IVM_OK;
}

/* At the end of a move of so many slots. */
static void larger_take(ivm__cover *cover, uint64_t slots)
{
    ivm__cover *larger = cover->larger;
    assert(larger->used == cover->used);
    ivm__memory *memory = cover->index->store->memory;
    ivm__growth_release(memory, cover->slots, slots_bytes(cover), slots);
    cover->slots = larger->slots;
    cover->capacity = larger->capacity;
    cover->larger = NULL;
    ivm__release(memory, larger, sizeof *larger);
}

static bool is_clear(const ivm__cover *larger, const ivm__growth *growth)
{
    return growth->cleared == slots_bytes(larger);
}

/* The larger ones are clear. Returns whether all are moved. */
static bool slots_move(ivm__cover *cover, uint64_t slots)
{
    ivm__growth *growth = &cover->growth;
    uint64_t done = growth->done, least = ivm__growth_least(growth, slots), seed = cover->index->store->seed;
    uint32_t at = (uint32_t)ivm__growth_place(growth, done);
    for (; cover->slots[at].key != cover->free || done < least; at = next_of(cover, at), done++) {
        const ivm__cover_slot *slot = &cover->slots[at];
        uint64_t hash = ivm__hash_word(slot->key, seed);
        if (slot->key != cover->free && ivm__growth_moves(growth, done, home_of(cover, hash))) {
            put(cover->larger, slot->key, hash, slot->cell);
        }
    }
    return ivm__growth_moved(growth, done);
}

static void larger_move(ivm__cover *cover, uint64_t slots)
{
    ivm__cover *larger = cover->larger;
    if (!is_clear(larger, &cover->growth)) {
        size_t from = cover->growth.cleared, to = ivm__growth_clear(&cover->growth, slots_bytes(larger), slots);
        for (size_t i = from / sizeof *larger->slots; i < to / sizeof *larger->slots; i++) {
            larger->slots[i] = (ivm__cover_slot){ cover->free, 0 };
        }
    }
    if (is_clear(larger, &cover->growth) && (cover->capacity == 0 || slots_move(cover, slots))) {
        larger_take(cover, slots);
    }
}

ivm_status ivm__cover_reserve(ivm__cover *cover, uint64_t rows)
{
    if (cover->words) {
        return ivm__cover_words_reserve(cover->words, rows);
    }
    uint64_t needed = cover->used + rows + 1, capacity = needed * 2;
    bool meanwhile = ivm__grows_for(cover->capacity, rows) && needed <= cover->capacity / 2 + ivm__grows_meanwhile(cover->capacity);
    if (ivm__unlikely(cover->larger != NULL)) {
        larger_move(cover, meanwhile ? ivm__moved_for(rows) : IVM__MOVED_ALL);
    }
    if (cover->larger || capacity <= cover->capacity) {
        return IVM_OK;
    }
    uint64_t all = cover->index->used + rows;
    if (ivm__cover_words_bits(all) > ivm__cover_words_bits(cover->words_tried)) {
        IVM_TRY(words_make(cover, all));
        if (cover->words) {
            return IVM_OK;
        }
    }
    uint64_t half_more = cover->capacity + (uint64_t)cover->capacity / 2;
    capacity = capacity < half_more ? half_more : capacity;
    IVM_TRY(capacity > UINT32_MAX ? IVM_OUT_OF_MEMORY : larger_make(cover, (uint32_t)capacity));
    if (!meanwhile) {
        larger_move(cover, IVM__MOVED_ALL);
    }
    return IVM_OK;
}

void ivm__cover_clear(ivm__cover *cover)
{
    if (cover->words) {
        ivm__cover_words_clear(cover->words);
        return;
    }
    larger_drop(cover);
    for (uint32_t i = 0; cover->used && i < cover->capacity; i++) {
        cover->slots[i].key = cover->free;
    }
    cover->used = 0;
    cover->has_free = false;
}

static void cover_free(ivm__cover *cover)
{
    ivm__memory *memory = cover->index->store->memory;
    ivm__cover_words_free(cover->words);
    larger_drop(cover);
    ivm__release(memory, cover->slots, slots_bytes(cover));
    ivm__release(memory, cover, sizeof *cover);
}

void ivm__index_covers_drop(ivm__index *index)
{
    for (ivm__cover *cover = index->covers, *next; cover; cover = next) {
        next = cover->next;
        cover_free(cover);
    }
    index->covers = NULL;
}

uint64_t ivm__cover_bytes(const ivm__cover *cover)
{
    uint64_t words = cover->words ? ivm__cover_words_bytes(cover->words) : 0;
    uint64_t larger = cover->larger ? sizeof *cover->larger + slots_bytes(cover->larger) : 0;
    return sizeof *cover + words + slots_bytes(cover) + larger;
}

const char *ivm__cover_validate(const ivm__cover *cover)
{
    uint32_t done = 0, used = 0;
    uint64_t cell;
    bool beside = cover->larger && is_clear(cover->larger, &cover->growth);
    for (uint32_t i = 0; i < cover->capacity; i++) {
        const ivm__cover_slot *slot = &cover->slots[i];
        uint64_t hash = ivm__hash_word(slot->key, cover->index->store->seed);
        if (slot->key == cover->free) {
            continue;
        }
        used++;
        if (!find(cover, slot->key, home_of(cover, hash), &cell) || cell != slot->cell) {
            return "a pair that a probe does not reach";
        }
        if (beside && is_done(cover, hash)) {
            if (!find(cover->larger, slot->key, home_of(cover->larger, hash), &cell) || cell != slot->cell) {
                return "a pair that is not among the larger ones";
            }
            done++;
        }
    }
    if (used != cover->used) {
        return "a cover that counts other pairs than it has";
    }
    return beside && cover->larger->used != done ? "larger pairs of a cover that it has not itself" : NULL;
}

/* ---- Making -------------------------------------------------------------------------------------------------------------------------- */

/* Fills a cover that is empty: in words if they serve, else in pairs. On failure it is empty. */
static ivm_status make(ivm__cover *cover)
{
    uint64_t rows = cover->index->used + cover->index->store->reserved;
    IVM_TRY(words_make(cover, rows));
    if (cover->words) {
        return IVM_OK;
    }
    IVM_TRY(ivm__cover_reserve(cover, rows));
    fill(cover);
    return IVM_OK;
}

/* One whose words failed is made again; where that fails too they stay. */
static ivm_status repair(ivm__cover *cover)
{
    ivm__cover made = { .index = cover->index, .column = cover->column, .free = cover->free };
    IVM_TRY(make(&made));
    ivm__cover_words_free(cover->words);
    made.next = cover->next;
    *cover = made;
    return IVM_OK;
}

const ivm__cover *ivm__index_cover_any(const ivm__index *index)
{
    const ivm__cover *cover = index->covers;
    while (cover && !can_be_asked(cover)) {
        cover = cover->next;
    }
    return cover;
}

static ivm_status create(ivm__index *index, uint32_t column, ivm__cover **cover)
{
    ivm__cover *made = ivm__allocate_zeroed(index->store->memory, sizeof *made);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    made->index = index;
    made->column = column;
    made->free = ivm__hash_word(column, index->store->seed);
    if (make(made) != IVM_OK) {
        cover_free(made);
        return IVM_OUT_OF_MEMORY;
    }
    made->next = index->covers;
    index->covers = made;
    *cover = made;
    return IVM_OK;
}

bool ivm__index_cover_find(const ivm__index *index, uint32_t column, ivm__cover **cover)
{
    uint32_t count = 0;
    for (*cover = index->covers; *cover; *cover = (*cover)->next, count++) {
        if ((*cover)->column == column) {
            return can_be_asked(*cover);
        }
    }
    return count == IVM__COVERS_MAX;
}

ivm_status ivm__index_cover(ivm__index *index, uint32_t column, ivm__cover **cover)
{
    assert(ivm__index_reads(index, &column, 1));
    if (ivm__index_cover_find(index, column, cover)) {
        return IVM_OK;
    }
    return *cover ? repair(*cover) : create(index, column, cover);
}
