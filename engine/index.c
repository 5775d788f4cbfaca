/* Indexes: slots, and how rows enter and leave them.
 *
 *     slot = {tag: upper 32 bits of the hash, id + 1}      home = the tag's upper bits      0 = free
 *
 * No free slot lies between a slot's home and its place: a lookup ends at the first free one, and removing moves back what follows
 * (no tombstones, so that an index as large as its rows stays as fast as it was). Growing places every slot by its tag alone, in order.
 * Cost: linking and unlinking are a lookup each; most rows of a key that has many leave without one. Only reserving needs memory. */
#include "cover.h"
#include "index_inside.h"

#define SLOTS_MIN 16u
#define SLOTS_MAX ((uint64_t)1 << 32)
#define SLOTS_DOUBLE_MAX 4096u /* above, they grow by a quarter */
#define SLOTS_KEPT_MAX 1024u   /* when an index is cleared, whatever it held */

static size_t slots_bytes(uint64_t capacity)
{
    return capacity * sizeof(uint64_t);
}

static void columns_describe(ivm__index *index)
{
    const ivm__layout *layout = index->store->layout;
    index->contiguous = index->columns_count > 0;
    for (uint32_t c = 0; c < index->columns_count; c++) {
        uint32_t column = index->columns[c];
        assert(column < layout->columns_count);
        index->words_count += ivm__type_words(layout->types[column]);
        index->nullable |= layout->nullable[column];
        index->contiguous &= column == index->columns[0] + c;
    }
    index->null_words = index->nullable ? (index->columns_count + 63) / 64 : 0;
    index->words_count += index->null_words;
}

ivm_status ivm__index_create(ivm__store *store, const uint32_t *columns, uint32_t columns_count, bool unique, ivm__index **index)
{
    ivm__index *made = ivm__allocate_zeroed(store->memory, sizeof *made);
    uint32_t *copied = ivm__allocate(store->memory, columns_count * sizeof *copied);
    if (!made || !copied) {
        ivm__release(store->memory, made, sizeof *made);
        ivm__release(store->memory, copied, columns_count * sizeof *copied);
        return IVM_OUT_OF_MEMORY;
    }
    if (columns_count) {
        memcpy(copied, columns, columns_count * sizeof *copied);
    }
    made->store = store;
    made->columns = copied;
    made->columns_count = columns_count;
    made->unique = unique;
    columns_describe(made);
    *index = made;
    return IVM_OK;
}

void ivm__index_free(ivm__index *index)
{
    if (!index) {
        return;
    }
    ivm__memory *memory = index->store->memory;
    ivm__index_covers_drop(index);
    ivm__release(memory, index->slots, slots_bytes(index->slots_capacity));
    ivm__lists_free(index);
    ivm__release(memory, index->columns, index->columns_count * sizeof *index->columns);
    ivm__release(memory, index, sizeof *index);
}

uint64_t ivm__index_bytes(const ivm__index *index)
{
    uint64_t bytes = sizeof *index + index->columns_count * sizeof *index->columns + slots_bytes(index->slots_capacity);
    for (const ivm__cover *cover = index->covers; cover; cover = cover->next) {
        bytes += ivm__cover_bytes(cover);
    }
    return bytes + ivm__lists_bytes(index);
}

/* An index far larger than what it holds gives its slots back instead of writing them all. */
void ivm__index_clear(ivm__index *index)
{
    if (index->used == 0) {
        return;
    }
    if (index->slots_capacity > SLOTS_KEPT_MAX && ivm__slots_limit(index->slots_capacity / 8) > index->used) {
        ivm__release(index->store->memory, index->slots, slots_bytes(index->slots_capacity));
        index->slots = NULL;
        index->slots_capacity = 0;
    } else {
        memset(index->slots, 0, slots_bytes(index->slots_capacity));
    }
    index->used = index->doubles = 0;
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_clear(cover);
    }
    ivm__lists_clear(index);
}

/* ---- Room ------------------------------------------------------------------------------------------------------------------------ */

static void slot_place(ivm__index *index, uint64_t slot)
{
    uint32_t at = ivm__index_home(index, ivm__slot_tag(slot));
    while (index->slots[at] != 0) {
        at = ivm__index_next(index, at);
    }
    index->slots[at] = slot;
}

static ivm_status slots_grow(ivm__index *index, uint64_t capacity)
{
    uint64_t *slots = ivm__allocate_zeroed(index->store->memory, slots_bytes(capacity));
    if (!slots) {
        return IVM_OUT_OF_MEMORY;
    }
    uint64_t *old = index->slots, old_capacity = index->slots_capacity;
    index->slots = slots;
    index->slots_capacity = capacity;
    for (uint64_t i = 0; i < old_capacity; i++) {
        if (old[i] != 0) {
            slot_place(index, old[i]);
        }
    }
    ivm__release(index->store->memory, old, slots_bytes(old_capacity));
    return IVM_OK;
}

/* For so many slots in use; the next growth shall not come soon. 0: there cannot be so many. */
static uint64_t capacity_for(uint64_t capacity, uint64_t needed)
{
    uint64_t grown = capacity < SLOTS_DOUBLE_MAX ? capacity * 2 : capacity + capacity / 4;
    uint64_t least = (needed + 2) / 3 * 4; /* a multiple of 4, as limits are taken of it */
    grown = ((grown > least ? grown : least) + 3) & ~(uint64_t)3;
    grown = grown > SLOTS_MIN ? grown : SLOTS_MIN;
    grown = grown < SLOTS_MAX ? grown : SLOTS_MAX;
    return ivm__slots_limit(grown) < needed ? 0 : grown;
}

ivm_status ivm__index_reserve(ivm__index *index, uint64_t rows)
{
    uint64_t needed = index->used + rows;
    if (ivm__slots_limit(index->slots_capacity) < needed || !index->slots) {
        uint64_t capacity = capacity_for(index->slots_capacity, needed);
        if (capacity == 0) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(slots_grow(index, capacity));
    }
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        IVM_TRY(ivm__cover_reserve(cover, rows));
    }
    return index->unique ? IVM_OK : ivm__lists_reserve(index, rows);
}

/* ---- Rows come ------------------------------------------------------------------------------------------------------------------- */

/* The tag stays. */
static void slot_row_set(ivm__index *index, uint32_t at, ivm__row_id row)
{
    index->slots[at] = (index->slots[at] & ~(uint64_t)UINT32_MAX) | (row + 1);
}

void ivm__index_link_at(ivm__index *index, ivm__row_id row, uint64_t hash, uint32_t at)
{
    assert(index->used < ivm__slots_limit(index->slots_capacity));
    uint32_t tag = (uint32_t)(hash >> 32);
    const uint8_t *key = ivm__store_row(index->store, row);
    bool doubled = false;
    for (uint64_t slot; (slot = index->slots[at]) != 0; at = ivm__index_next(index, at)) {
        if (doubled || ivm__slot_tag(slot) != tag) {
            continue;
        }
        assert(ivm__slot_row(slot) != row);
        if (!ivm__index_rows_equal(index, ivm__store_row(index->store, ivm__slot_row(slot)), key)) {
            continue;
        }
        if (!index->unique) {
            slot_row_set(index, at, ivm__list_push(index, ivm__slot_row(slot), row));
            return;
        }
        doubled = true;
    }
    index->slots[at] = (uint64_t)tag << 32 | (row + 1);
    index->used++;
    index->doubles += doubled;
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_link(cover, row, hash);
    }
    if (!index->unique) {
        assert(row < ivm__index_places_room(index));
        *ivm__index_place(index, row) = IVM__ROW_NONE;
    }
}

void ivm__index_link_hashed(ivm__index *index, ivm__row_id row, uint64_t hash)
{
    ivm__index_link_at(index, row, hash, ivm__index_home(index, (uint32_t)(hash >> 32)));
}

void ivm__index_link(ivm__index *index, ivm__row_id row)
{
    ivm__index_link_hashed(index, row, ivm__index_row_hash(index, ivm__store_row(index->store, row)));
}

/* ---- Rows go --------------------------------------------------------------------------------------------------------------------- */

/* The row has a slot. */
static uint32_t slot_of(const ivm__index *index, ivm__row_id row, uint32_t tag)
{
    uint32_t at = ivm__index_home(index, tag);
    while (ivm__slot_row(index->slots[at]) != row) {
        assert(index->slots[at] != 0);
        at = ivm__index_next(index, at);
    }
    return at;
}

static void slot_remove(ivm__index *index, uint32_t hole)
{
    uint64_t slot;
    for (uint32_t at = ivm__index_next(index, hole); (slot = index->slots[at]) != 0; at = ivm__index_next(index, at)) {
        uint32_t home = ivm__index_home(index, ivm__slot_tag(slot));
        if (ivm__index_distance(index, home, at) >= ivm__index_distance(index, hole, at)) {
            index->slots[hole] = slot;
            hole = at;
        }
    }
    index->slots[hole] = 0;
    index->used--;
}

/* Another row of the row's key, or IVM__ROW_NONE. */
static ivm__row_id another_of_key(const ivm__index *index, ivm__row_id row, uint32_t tag)
{
    const uint8_t *key = ivm__store_row(index->store, row);
    uint64_t slot;
    for (uint32_t at = ivm__index_home(index, tag); (slot = index->slots[at]) != 0; at = ivm__index_next(index, at)) {
        ivm__row_id other = ivm__slot_row(slot);
        if (ivm__slot_tag(slot) == tag && other != row && ivm__index_rows_equal(index, ivm__store_row(index->store, other), key)) {
            return other;
        }
    }
    return IVM__ROW_NONE;
}

void ivm__index_unlink_hashed(ivm__index *index, ivm__row_id row, uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    if (!index->unique && *ivm__index_place(index, row) != IVM__ROW_NONE) {
        ivm__row_id representative = ivm__list_remove(index, row);
        if (representative != IVM__ROW_NONE) {
            slot_row_set(index, slot_of(index, row, tag), representative);
        }
        return;
    }
    uint32_t at = slot_of(index, row, tag);
    ivm__row_id another = index->doubles ? another_of_key(index, row, tag) : IVM__ROW_NONE;
    index->doubles -= another != IVM__ROW_NONE;
    slot_remove(index, at);
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_unlink(cover, row, hash, another);
    }
}
