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

static size_t slots_bytes(uint64_t capacity, bool narrow)
{
    return capacity * (narrow ? sizeof(uint32_t) : sizeof(uint64_t));
}

static uint64_t limit_of(const ivm__index *index)
{
    return ivm__slots_limit(index->slots_capacity, index->narrow != NULL);
}

static size_t held_bytes(const ivm__index *index)
{
    return slots_bytes(index->slots_capacity, index->narrow != NULL);
}

static void slots_release(ivm__index *index)
{
    ivm__release(index->store->memory, index->slots, held_bytes(index));
    ivm__release(index->store->memory, index->narrow, held_bytes(index));
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
    slots_release(index);
    ivm__lists_free(index);
    ivm__release(memory, index->columns, index->columns_count * sizeof *index->columns);
    ivm__release(memory, index, sizeof *index);
}

uint64_t ivm__index_bytes(const ivm__index *index)
{
    uint64_t bytes = sizeof *index + index->columns_count * sizeof *index->columns + held_bytes(index);
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
    if (index->slots_capacity > IVM__SLOTS_KEPT_MAX && limit_of(index) / 8 > index->used) {
        slots_release(index);
        index->slots = NULL;
        index->narrow = NULL;
        index->slots_capacity = 0;
    } else {
        memset(index->narrow ? (void *)index->narrow : (void *)index->slots, 0, held_bytes(index));
    }
    index->used = index->doubles = index->far = 0;
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_clear(cover);
    }
    ivm__lists_clear(index);
}

/* ---- Room ------------------------------------------------------------------------------------------------------------------------ */

static void slot_put(ivm__index *index, uint64_t hash, ivm__row_id row)
{
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    if (index->narrow) {
        ivm__narrow_put(index, aim, row);
        return;
    }
    uint32_t at = aim.home;
    while (index->slots[at] != 0) {
        at = ivm__index_next(index, at);
    }
    index->slots[at] = (uint64_t)aim.tag << 32 | (row + 1);
}

/* As much of a slot's hash as those of the other index need. */
static uint64_t slot_hash(const ivm__index *index, uint32_t at, const ivm__index *other)
{
    if (!index->narrow) {
        return index->slots[at] >> 32 << 32;
    }
    return other->narrow ? ivm__narrow_hash(index, at)
                         : ivm__index_row_hash(index, ivm__store_row(index->store, ivm__slot_row(ivm__index_slot(index, at))));
}

static ivm_status slots_move(ivm__index *index, uint64_t capacity, bool narrow)
{
    void *slots = ivm__allocate_zeroed(index->store->memory, slots_bytes(capacity, narrow));
    if (!slots) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__index old = *index;
    index->narrow = narrow ? slots : NULL;
    index->slots = narrow ? NULL : slots;
    index->slots_capacity = capacity;
    index->row_bits = narrow ? ivm__narrow_row_bits(capacity) : 0;
    index->far = 0;
    for (uint64_t i = 0; i < old.slots_capacity; i++) {
        uint64_t slot = ivm__index_slot(&old, (uint32_t)i);
        if (slot != 0) {
            slot_put(index, slot_hash(&old, (uint32_t)i, index), ivm__slot_row(slot));
        }
    }
    slots_release(&old);
    return IVM_OK;
}

/* For so many slots in use; the next growth shall not come soon. 0: there cannot be so many. */
static uint64_t capacity_for(uint64_t capacity, uint64_t needed, bool narrow)
{
    uint64_t least = narrow ? (needed + 3) / 4 * 5 : (needed + 2) / 3 * 4; /* of which limits are taken */
    uint64_t grown = capacity < SLOTS_DOUBLE_MAX ? capacity * 2 : capacity + 1;
    grown = grown > least ? grown : least;
    grown = grown > SLOTS_MIN ? grown : SLOTS_MIN;
    grown = ivm__bytes_fitting(slots_bytes(grown, narrow)) / slots_bytes(1, narrow);
    grown = narrow ? (grown + 63) & ~(uint64_t)63 : (grown + 3) & ~(uint64_t)3;
    grown = grown < SLOTS_MAX ? grown : SLOTS_MAX;
    return ivm__slots_limit(grown, narrow) < needed ? 0 : grown;
}

/* Places all slots anew, in as many as serve. */
static ivm_status slots_choose(ivm__index *index, uint64_t before, uint64_t needed, uint64_t ids_end)
{
    uint64_t capacity = capacity_for(before, needed, true);
    bool narrow = capacity && ivm__narrow_serves(index, capacity, ids_end);
    capacity = narrow ? capacity : capacity_for(before, needed, false);
    return capacity ? slots_move(index, capacity, narrow) : IVM_OUT_OF_MEMORY;
}

static ivm_status slots_reserve(ivm__index *index, uint64_t needed, uint64_t ids_end)
{
    if (limit_of(index) >= needed && index->slots_capacity && (!index->narrow || ids_end < (uint64_t)1 << index->row_bits)) {
        return IVM_OK;
    }
    return slots_choose(index, limit_of(index) >= needed ? 0 : index->slots_capacity, needed, ids_end);
}

ivm_status ivm__index_reserve(ivm__index *index, uint64_t rows)
{
    index->wanted = index->wanted > index->used + rows ? index->wanted : index->used + rows;
    IVM_TRY(slots_reserve(index, index->used + rows, index->store->rows_end + rows));
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        IVM_TRY(ivm__cover_reserve(cover, rows));
    }
    return index->unique ? IVM_OK : ivm__lists_reserve(index, rows);
}

void ivm__index_trim_large(ivm__index *index)
{
    uint64_t most = index->wanted > index->used ? index->wanted : index->used;
    if (ivm__likely(limit_of(index) / 8 <= most)) {
        return;
    }
    ivm__index_covers_drop(index);
    (void)(slots_choose(index, 0, 2 * most, index->store->rows_end + most) == IVM_OK);
}

/* ---- Rows come ------------------------------------------------------------------------------------------------------------------- */

/* The tag stays. */
static void slot_row_set(ivm__index *index, uint32_t at, ivm__row_id row)
{
    index->slots[at] = (index->slots[at] & ~(uint64_t)UINT32_MAX) | (row + 1);
}

void ivm__index_link_at(ivm__index *index, ivm__row_id row, uint64_t hash, uint32_t at)
{
    assert(index->used < limit_of(index));
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    at = index->narrow ? aim.home : at; /* others may have moved it on */
    const uint8_t *key = ivm__store_row(index->store, row);
    bool doubled = false;
    for (uint64_t slot; (slot = ivm__index_slot(index, at)) != 0; at = ivm__index_next(index, at)) {
        if (doubled || ivm__slot_tag(slot) != aim.tag) {
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
    if (index->narrow) {
        ivm__narrow_put(index, aim, row);
    } else {
        index->slots[at] = (uint64_t)aim.tag << 32 | (row + 1);
    }
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
    ivm__index_link_at(index, row, hash, ivm__index_aim(index, hash).home);
}

void ivm__index_link(ivm__index *index, ivm__row_id row)
{
    ivm__index_link_hashed(index, row, ivm__index_row_hash(index, ivm__store_row(index->store, row)));
}

/* ---- Rows go --------------------------------------------------------------------------------------------------------------------- */

/* The row has a slot. */
static uint32_t slot_of(const ivm__index *index, ivm__row_id row, uint64_t hash)
{
    uint32_t at = ivm__index_aim(index, hash).home;
    while (ivm__slot_row(ivm__index_slot(index, at)) != row) {
        assert(ivm__index_slot(index, at) != 0);
        at = ivm__index_next(index, at);
    }
    return at;
}

static void slot_remove(ivm__index *index, uint32_t hole)
{
    uint64_t slot;
    for (uint32_t at = ivm__index_next(index, hole); (slot = index->slots[at]) != 0; at = ivm__index_next(index, at)) {
        uint32_t home = ivm__aim_wide(index, slot).home;
        if (ivm__index_distance(index, home, at) >= ivm__index_distance(index, hole, at)) {
            index->slots[hole] = slot;
            hole = at;
        }
    }
    index->slots[hole] = 0;
}

/* Another row of the row's key, or IVM__ROW_NONE. */
static ivm__row_id another_of_key(const ivm__index *index, ivm__row_id row, uint64_t hash)
{
    const uint8_t *key = ivm__store_row(index->store, row);
    ivm__slot_aim aim = ivm__index_aim(index, hash);
    uint64_t slot;
    for (uint32_t at = aim.home; (slot = ivm__index_slot(index, at)) != 0; at = ivm__index_next(index, at)) {
        ivm__row_id other = ivm__slot_row(slot);
        if (ivm__slot_tag(slot) == aim.tag && other != row && ivm__index_rows_equal(index, ivm__store_row(index->store, other), key)) {
            return other;
        }
    }
    return IVM__ROW_NONE;
}

void ivm__index_unlink_hashed(ivm__index *index, ivm__row_id row, uint64_t hash)
{
    if (!index->unique && *ivm__index_place(index, row) != IVM__ROW_NONE) {
        ivm__row_id representative = ivm__list_remove(index, row);
        if (representative != IVM__ROW_NONE) {
            slot_row_set(index, slot_of(index, row, hash), representative);
        }
        return;
    }
    uint32_t at = slot_of(index, row, hash);
    ivm__row_id another = index->doubles ? another_of_key(index, row, hash) : IVM__ROW_NONE;
    index->doubles -= another != IVM__ROW_NONE;
    if (index->narrow) {
        ivm__narrow_remove(index, at);
    } else {
        slot_remove(index, at);
    }
    index->used--;
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_unlink(cover, row, hash, another);
    }
}
