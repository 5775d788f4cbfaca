/* Narrow slots: 4 bytes a row of a unique index, where row ids leave room for enough of the hash.
 *
 *     y = upper 25 bits of the hash     y * capacity = home << 25 | rest     slot = {lower 6 bits of the home, upper bits of the rest, id + 1}
 *
 * Slots stand in the order of their homes, so that one is seldom as much as 64 slots from its home: the home, and then y, follow from where it
 * stands, and growing and removing touch no row. As long as any is that far (`far`), homes are taken from the rows' keys instead.
 * The capacity is a multiple of 64, so that the 6 bits tell the distance past the end of the slots too. Two y of one home differ in the bits kept of
 * the rest: two to the power of row_bits - 1 is at most the capacity.
 * Cost: half the memory and lines of a wide slot; a candidate is another key's for one probe in 2^(27 - row_bits), as there are fewer bits to tell. */
#include "index_inside.h"

#define FAR 64u

bool ivm__narrow_serves(const ivm__index *index, uint64_t capacity)
{
    return index->unique && capacity >= FAR && ivm__narrow_row_bits(capacity) <= IVM__NARROW_ROW_BITS_MAX;
}

/* How far a slot in use is from its home. */
static uint32_t distance_of(const ivm__index *index, uint32_t at)
{
    if (ivm__likely(index->far == 0)) {
        return (at - (index->narrow[at] >> IVM__NARROW_HOME_SHIFT)) & (FAR - 1);
    }
    const uint8_t *row = ivm__store_row(index->store, ivm__slot_row(ivm__index_slot(index, at)));
    return (uint32_t)ivm__index_distance(index, ivm__index_aim(index, ivm__index_row_hash(index, row)).home, at);
}

uint64_t ivm__narrow_hash(const ivm__index *index, uint32_t at)
{
    uint32_t slot = index->narrow[at], distance = distance_of(index, at);
    if (ivm__unlikely(index->far > 0)) {
        return ivm__index_row_hash(index, ivm__store_row(index->store, ivm__slot_row(ivm__index_slot(index, at))));
    }
    uint64_t capacity = index->slots_capacity, home = at >= distance ? at - distance : at + capacity - distance;
    uint64_t rest = (slot & (((uint32_t)1 << IVM__NARROW_HOME_SHIFT) - 1)) >> index->row_bits;
    uint64_t least = home << IVM__NARROW_HASH_BITS | rest << (index->row_bits - 1);
    return (least + capacity - 1) / capacity << (64 - IVM__NARROW_HASH_BITS);
}

/* The slot before which one with this home is to stand. *distance: how far that is from the home. */
static uint32_t place_of(const ivm__index *index, uint32_t home, uint32_t *distance)
{
    uint32_t at = home;
    for (*distance = 0; index->narrow[at] != 0 && distance_of(index, at) >= *distance; ++*distance) {
        at = ivm__index_next(index, at);
    }
    return at;
}

void ivm__narrow_put(ivm__index *index, ivm__slot_aim aim, ivm__row_id row)
{
    uint32_t distance, at = place_of(index, aim.home, &distance), far = distance >= FAR, end = at,
                       moving = aim.tag << index->row_bits | (row + 1);
    for (; index->narrow[end] != 0; end = ivm__index_next(index, end)) {
        far += distance_of(index, end) == FAR - 1;
    }
    for (; at != end; at = ivm__index_next(index, at)) {
        uint32_t slot = index->narrow[at];
        index->narrow[at] = moving;
        moving = slot;
    }
    index->narrow[end] = moving;
    index->far += far;
}

void ivm__narrow_remove(ivm__index *index, uint32_t hole)
{
    uint32_t less = distance_of(index, hole) >= FAR, distance;
    uint32_t end = ivm__index_next(index, hole);
    for (; index->narrow[end] != 0 && (distance = distance_of(index, end)) > 0; end = ivm__index_next(index, end)) {
        less += distance == FAR;
    }
    for (uint32_t at = ivm__index_next(index, hole); at != end; hole = at, at = ivm__index_next(index, at)) {
        index->narrow[hole] = index->narrow[at];
    }
    index->narrow[hole] = 0;
    index->far -= less;
}

const char *ivm__narrow_validate(const ivm__index *index)
{
    uint32_t far = 0;
    for (uint64_t i = 0; index->narrow && i < index->slots_capacity; i++) {
        uint32_t at = (uint32_t)i, next = ivm__index_next(index, at);
        if (index->narrow[at] == 0) {
            continue;
        }
        const uint8_t *row = ivm__store_row(index->store, ivm__slot_row(ivm__index_slot(index, at)));
        uint64_t hash = ivm__index_row_hash(index, row);
        uint32_t distance = (uint32_t)ivm__index_distance(index, ivm__index_aim(index, hash).home, at);
        far += distance >= FAR;
        if (distance_of(index, at) != distance) {
            return "a narrow slot that tells of another home than its row's";
        }
        if (ivm__narrow_hash(index, at) >> (64 - IVM__NARROW_HASH_BITS) != hash >> (64 - IVM__NARROW_HASH_BITS)) {
            return "a narrow slot from which another hash follows than its row's";
        }
        if (index->narrow[next] != 0 && distance_of(index, next) > distance + 1) {
            return "narrow slots out of the order of their homes";
        }
    }
    return far == index->far ? NULL : "a wrong count of slots far from their homes";
}
