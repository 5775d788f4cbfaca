/* Indexes: slots, and how rows enter and leave them.
 *
 *     slot = {tag: upper 32 bits of the hash, id + 1}      home = the tag's upper bits      0 = free
 *
 * No free slot lies between a slot's home and its place: a lookup ends at the first free one, and removing moves back what follows
 * (no tombstones, so that an index as large as its rows stays as fast as it was). How slots grow: index_grow.c.
 * Cost: linking and unlinking are a lookup each; most rows of a key that has many leave without one. Only reserving needs memory. */
#include "cover.h"
#include "index_inside.h"

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
    ivm__slots_release(index);
    ivm__lists_free(index);
    ivm__release(memory, index->columns, index->columns_count * sizeof *index->columns);
    ivm__release(memory, index, sizeof *index);
}

uint64_t ivm__index_bytes(const ivm__index *index)
{
    uint64_t bytes = sizeof *index + index->columns_count * sizeof *index->columns + ivm__slots_held(index);
    bytes += index->larger ? sizeof *index->larger + ivm__slots_held(index->larger) : 0;
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
    ivm__larger_drop(index);
    if (index->slots_capacity > IVM__SLOTS_KEPT_MAX && ivm__slots_limit(index->slots_capacity, index->narrow != NULL) / 8 > index->used) {
        ivm__slots_release(index);
    } else {
        memset(index->narrow ? (void *)index->narrow : (void *)index->slots, 0, ivm__slots_held(index));
    }
    index->used = index->doubles = index->far = 0;
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_clear(cover);
    }
    ivm__lists_clear(index);
}

ivm_status ivm__index_reserve(ivm__index *index, uint64_t rows)
{
    index->wanted = index->wanted > index->used + rows ? index->wanted : index->used + rows;
    IVM_TRY(ivm__slots_reserve(index, rows));
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        IVM_TRY(ivm__cover_reserve(cover, rows));
    }
    return index->unique ? IVM_OK : ivm__lists_reserve(index, rows);
}

void ivm__index_trim_large(ivm__index *index)
{
    uint64_t most = index->wanted > index->used ? index->wanted : index->used;
    if (ivm__unlikely(ivm__slots_limit(index->slots_capacity, index->narrow != NULL) / 8 > most)) {
        ivm__index_covers_drop(index);
        ivm__slots_trim(index, most);
    }
}

/* ---- Slots ----------------------------------------------------------------------------------------------------------------------- */

void ivm__slot_put(ivm__index *index, ivm__row_id row, uint64_t hash)
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

/* The tag stays. */
void ivm__slot_row_set(ivm__index *index, uint32_t at, ivm__row_id row)
{
    index->slots[at] = (index->slots[at] & ~(uint64_t)UINT32_MAX) | (row + 1);
}

uint32_t ivm__slot_of(const ivm__index *index, ivm__row_id row, uint64_t hash)
{
    uint32_t at = ivm__index_aim(index, hash).home;
    while (ivm__slot_row(ivm__index_slot(index, at)) != row) {
        assert(ivm__index_slot(index, at) != 0);
        at = ivm__index_next(index, at);
    }
    return at;
}

static void wide_remove(ivm__index *index, uint32_t hole)
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

void ivm__slot_remove(ivm__index *index, uint32_t at)
{
    if (index->narrow) {
        ivm__narrow_remove(index, at);
    } else {
        wide_remove(index, at);
    }
}

/* ---- Rows come ------------------------------------------------------------------------------------------------------------------- */

/* Has another row stand for a key in the slots. */
static void slot_replace(ivm__index *index, uint32_t at, ivm__row_id row, ivm__row_id by, uint64_t hash)
{
    ivm__slot_row_set(index, at, by);
    if (ivm__unlikely(index->larger != NULL)) {
        ivm__larger_replace(index, row, by, hash);
    }
}

void ivm__index_link_at(ivm__index *index, ivm__row_id row, uint64_t hash, uint32_t at)
{
    assert(index->used < ivm__slots_limit_meanwhile(index));
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
            slot_replace(index, at, ivm__slot_row(slot), ivm__list_push(index, ivm__slot_row(slot), row), hash);
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
    if (ivm__unlikely(index->larger != NULL)) {
        ivm__larger_link(index, row, hash);
    }
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
            slot_replace(index, ivm__slot_of(index, row, hash), row, representative, hash);
        }
        return;
    }
    uint32_t at = ivm__slot_of(index, row, hash);
    ivm__row_id another = index->doubles ? another_of_key(index, row, hash) : IVM__ROW_NONE;
    index->doubles -= another != IVM__ROW_NONE;
    ivm__slot_remove(index, at);
    index->used--;
    if (ivm__unlikely(index->larger != NULL)) {
        ivm__larger_unlink(index, row, hash);
    }
    for (ivm__cover *cover = index->covers; cover; cover = cover->next) {
        ivm__cover_unlink(cover, row, hash, another);
    }
}
