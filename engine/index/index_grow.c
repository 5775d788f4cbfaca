/* Room for slots. A small index grows at once: every slot is placed anew by what it holds of the hash, in order. A large one grows a piece at a
 * time (growth.h). Cost: growing by a quarter moves four slots a new row in the mean. */
#include "index_inside.h"

#define SLOTS_MIN 16u
#define SLOTS_MAX ((uint64_t)1 << 32)
#define SLOTS_DOUBLE_MAX 4096u /* above, they grow by a quarter */

static void slots_release(ivm__index *index)
{
    ivm__release(index->store->memory, index->slots, ivm__slots_held(index));
    ivm__release(index->store->memory, index->narrow, ivm__slots_held(index));
    index->slots = NULL;
    index->narrow = NULL;
    index->slots_capacity = index->far = 0;
}

/* ---- Larger slots beside ----------------------------------------------------------------------------------------------------------- */

static bool is_done(const ivm__index *index, uint64_t hash)
{
    return ivm__growth_is_done(&index->growth, ivm__index_aim(index, hash).home);
}

void ivm__larger_link(ivm__index *index, ivm__row_id row, uint64_t hash)
{
    if (is_done(index, hash)) {
        ivm__slot_put(index->larger, row, hash);
        index->larger->used++;
    }
}

void ivm__larger_unlink(ivm__index *index, ivm__row_id row, uint64_t hash)
{
    if (is_done(index, hash)) {
        ivm__slot_remove(index->larger, ivm__slot_of(index->larger, row, hash));
        index->larger->used--;
    }
}

void ivm__larger_replace(ivm__index *index, ivm__row_id row, ivm__row_id by, uint64_t hash)
{
    if (is_done(index, hash)) {
        ivm__slot_row_set(index->larger, ivm__slot_of(index->larger, row, hash), by);
    }
}

void ivm__larger_drop(ivm__index *index)
{
    if (index->larger) {
        slots_release(index->larger);
        ivm__release(index->store->memory, index->larger, sizeof *index->larger);
        index->larger = NULL;
    }
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

/* The larger ones are clear. So many slots from `done` on at least. Returns whether those were the last. */
static bool slots_move(ivm__index *index, uint64_t slots)
{
    ivm__growth *growth = &index->growth;
    uint64_t done = growth->done, least = ivm__growth_least(growth, slots);
    uint32_t at = (uint32_t)ivm__growth_place(growth, done);
    for (uint64_t slot; (slot = ivm__index_slot(index, at)) != 0 || done < least; at = ivm__index_next(index, at), done++) {
        if (slot == 0) {
            continue;
        }
        uint64_t hash = slot_hash(index, at, index->larger);
        if (ivm__growth_moves(growth, done, ivm__index_aim(index, hash).home)) {
            ivm__slot_put(index->larger, ivm__slot_row(slot), hash);
            index->larger->used++;
        }
    }
    return ivm__growth_moved(growth, done);
}

/* At the end of a move of so many slots. */
static void larger_take(ivm__index *index, uint64_t slots)
{
    ivm__index *larger = index->larger;
    assert(larger->used == index->used);
    void *old = index->narrow ? (void *)index->narrow : (void *)index->slots;
    ivm__growth_release(index->store->memory, old, ivm__slots_held(index), slots);
    index->slots = larger->slots;
    index->narrow = larger->narrow;
    index->slots_capacity = larger->slots_capacity;
    index->row_bits = larger->row_bits;
    index->far = larger->far;
    index->larger = NULL;
    ivm__release(index->store->memory, larger, sizeof *larger);
}

static void larger_move(ivm__index *index, uint64_t slots)
{
    ivm__index *larger = index->larger;
    void *block = larger->narrow ? (void *)larger->narrow : (void *)larger->slots;
    bool clear = ivm__growth_zero(&index->growth, block, ivm__slots_held(larger), slots);
    if (clear && (index->slots_capacity == 0 || slots_move(index, slots))) {
        larger_take(index, slots);
    }
}

/* ---- Room -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status larger_make(ivm__index *index, uint64_t capacity, bool narrow)
{
    ivm__memory *memory = index->store->memory;
    ivm__index *larger = ivm__allocate_zeroed(memory, sizeof *larger);
    void *slots = ivm__allocate(memory, ivm__slots_bytes(capacity, narrow));
    if (!larger || !slots) {
        ivm__release(memory, larger, sizeof *larger);
        ivm__release(memory, slots, ivm__slots_bytes(capacity, narrow));
        return IVM_OUT_OF_MEMORY;
    }
    *larger = *index; /* the same key in the same store */
    larger->covers = NULL;
    larger->larger = NULL;
    larger->narrow = narrow ? slots : NULL;
    larger->slots = narrow ? NULL : slots;
    larger->slots_capacity = capacity;
    larger->row_bits = narrow ? ivm__narrow_row_bits(capacity) : 0;
    larger->far = larger->used = larger->doubles = 0;
    index->larger = larger;
    uint32_t start = 0;
    while (index->slots_capacity && ivm__index_slot(index, start) != 0) {
        start++;
    }
    index->growth = (ivm__growth){ .capacity = index->slots_capacity, .start = ivm__index_next(index, start) };
    return IVM_OK;
}

/* For so many slots in use; the next growth shall not come soon. 0: there cannot be so many. */
static uint64_t capacity_for(uint64_t capacity, uint64_t needed, bool narrow)
{
    uint64_t least = narrow ? (needed + 3) / 4 * 5 : (needed + 2) / 3 * 4; /* of which limits are taken */
    uint64_t grown = capacity < SLOTS_DOUBLE_MAX ? capacity * 2 : capacity + 1;
    grown = grown > least ? grown : least;
    grown = grown > SLOTS_MIN ? grown : SLOTS_MIN;
    grown = ivm__bytes_fitting(ivm__slots_bytes(grown, narrow)) / ivm__slots_bytes(1, narrow);
    grown = narrow ? (grown + 63) & ~(uint64_t)63 : (grown + 3) & ~(uint64_t)3;
    grown = grown < SLOTS_MAX ? grown : SLOTS_MAX;
    return ivm__slots_limit(grown, narrow) < needed ? 0 : grown;
}

/* Row ids are to be below this where there are so many narrow slots. There is room for a few more, while larger ones are filled. */
static uint64_t ids_limit(uint64_t capacity)
{
    uint64_t ids = (uint64_t)1 << ivm__narrow_row_bits(capacity);
    return ivm__grows_beside(capacity) ? ids - ivm__grows_meanwhile(ids) : ids;
}

/* Whether so many more rows leave as many slots free as there should be. */
static bool has_room(const ivm__index *index, uint64_t rows)
{
    uint64_t needed = index->used + rows, ids_end = index->store->rows_end + rows;
    return index->slots_capacity && needed <= ivm__slots_limit(index->slots_capacity, index->narrow != NULL) &&
           (!index->narrow || ids_end < ids_limit(index->slots_capacity));
}

/* The same of as many as may be taken while larger ones are filled. */
static bool has_room_meanwhile(const ivm__index *index, uint64_t rows)
{
    uint64_t needed = index->used + rows, ids_end = index->store->rows_end + rows;
    uint64_t limit = ivm__slots_limit(index->slots_capacity, index->narrow != NULL) + ivm__grows_meanwhile(index->slots_capacity);
    return ivm__grows_for(index->slots_capacity, rows) && needed <= limit && (!index->narrow || ids_end < (uint64_t)1 << index->row_bits);
}

/* Other slots than these for so many rows of ids below this. */
static ivm_status other_begin(ivm__index *index, uint64_t before, uint64_t needed, uint64_t ids_end)
{
    uint64_t capacity = capacity_for(before, needed, true);
    bool narrow = capacity && ivm__narrow_serves(index, capacity) && ids_end < ids_limit(capacity);
    capacity = narrow ? capacity : capacity_for(before, needed, false);
    return capacity ? larger_make(index, capacity, narrow) : IVM_OUT_OF_MEMORY;
}

/* Begins larger slots for so many more rows, and for those that may come while they are filled. */
static ivm_status larger_begin(ivm__index *index, uint64_t rows, uint64_t meanwhile)
{
    uint64_t needed = index->used + rows;
    uint64_t before = ivm__slots_limit(index->slots_capacity, index->narrow != NULL) >= needed ? 0 : index->slots_capacity;
    return other_begin(index, before, needed + meanwhile, index->store->rows_end + rows);
}

ivm_status ivm__slots_reserve(ivm__index *index, uint64_t rows)
{
    if (ivm__unlikely(index->larger != NULL)) {
        larger_move(index, has_room_meanwhile(index, rows) ? ivm__moved_for(rows) : IVM__MOVED_ALL);
    }
    if (index->larger || has_room(index, rows)) {
        return IVM_OK;
    }
    bool beside = has_room_meanwhile(index, rows);
    IVM_TRY(larger_begin(index, rows, beside ? ivm__grows_meanwhile(index->slots_capacity) : 0));
    if (!beside) {
        larger_move(index, IVM__MOVED_ALL);
    }
    return IVM_OK;
}

ivm_status ivm__slots_reserve_at_once(ivm__index *index, uint64_t rows, uint64_t better)
{
    assert(!index->larger && better >= rows);
    if (has_room(index, rows)) {
        return IVM_OK;
    }
    IVM_TRY(larger_begin(index, better, 0));
    larger_move(index, IVM__MOVED_ALL);
    return IVM_OK;
}

void ivm__slots_trim(ivm__index *index, uint64_t rows)
{
    ivm__larger_drop(index);
    if (other_begin(index, 0, 2 * rows, index->store->rows_end + rows) == IVM_OK) {
        larger_move(index, IVM__MOVED_ALL);
    }
}

void ivm__slots_release(ivm__index *index)
{
    ivm__larger_drop(index);
    slots_release(index);
}

/* ---- For tests --------------------------------------------------------------------------------------------------------------------- */

const char *ivm__larger_validate(const ivm__index *index)
{
    uint64_t count = 0;
    if (!index->larger || index->growth.cleared < ivm__slots_held(index->larger)) {
        return NULL;
    }
    for (uint64_t i = 0; i < index->slots_capacity; i++) {
        uint64_t slot = ivm__index_slot(index, (uint32_t)i);
        if (slot == 0) {
            continue;
        }
        ivm__row_id row = ivm__slot_row(slot);
        uint64_t hash = ivm__index_row_hash(index, ivm__store_row(index->store, row));
        if (is_done(index, hash)) {
            uint32_t at = ivm__index_aim(index->larger, hash).home;
            while (ivm__slot_row(ivm__index_slot(index->larger, at)) != row) {
                if (ivm__index_slot(index->larger, at) == 0) {
                    return "a slot that is missing among the larger ones";
                }
                at = ivm__index_next(index->larger, at);
            }
            count++;
        }
    }
    return count != index->larger->used ? "larger slots of rows that have none in use" : ivm__narrow_validate(index->larger);
}
