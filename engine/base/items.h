/* Items of one size by number, of which one-row pushes add one after the other: what an operator keeps by group or by row. They lie in segments, so
 * that no push copies those that are there, and so that a pointer to one holds. An item begins at a cache line where its size is a multiple of one.
 * Cost of an access: a load of a small directory more than in an array. */
#ifndef IVM__ITEMS_H
#define IVM__ITEMS_H

#include "segments.h"

typedef struct ivm__items {
    ivm__segments segments;
    uint32_t item_bytes;
    uint32_t shift, mask; /* items a segment, log2, and that minus 1 */
    uint32_t known;       /* items that ivm__items_reserve_cleared() made */
} ivm__items;

void ivm__items_init(ivm__items *items, size_t item_bytes);
void ivm__items_free(ivm__items *items, ivm__memory *memory); /* none are there, and there may be some again; zeroed ones are fine */
static inline void *ivm__items_at(const ivm__items *items, uint32_t item)
{
    return items->segments.at[item >> items->shift] + (size_t)(item & items->mask) * items->item_bytes;
}
/* Room for items below `count`, not cleared; those that there are stay where they are once they fill a segment. On failure there may be more room
 * than there was. */
ivm_status ivm__items_reserve(ivm__items *items, ivm__memory *memory, uint64_t count) IVM_MUST_CHECK;
/* The same, and clears those from items->known on, how many ever have been, up to `count`. */
ivm_status ivm__items_reserve_cleared(ivm__items *items, ivm__memory *memory, uint64_t count) IVM_MUST_CHECK;
/* Gives back the segments beyond those of items below `count`. */
void ivm__items_trim(ivm__items *items, ivm__memory *memory, uint64_t count);
static inline uint64_t ivm__items_room(const ivm__items *items)
{
    return ivm__segments_room(&items->segments) / items->item_bytes;
}
uint64_t ivm__items_bytes(const ivm__items *items); /* held */

#endif
