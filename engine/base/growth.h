/* Growth a piece at a time: what a push makes grow is never rehashed by that push alone. Larger slots are made beside those in use and cleared, then
 * filled, a piece whenever there is made room for rows; all that is looked up goes to those in use. Indexes, covers and the set of texts grow so.
 *
 *     homes of the slots in use:   start ............ done ..................... start
 *                                  | are in the larger | not yet, are looked for  |
 *                                  | ones too          | in those in use alone    |
 *
 * `done` stands where a slot was free, so that the slots of the homes before it lie before it, but for those that came since. What comes or goes at
 * a home before `done` does so in the larger ones too. They take the place of those in use when `done` is back at the start. Until then those in use
 * hold a sixteenth of all slots more than they else do, and each row that there is made room for moves `done` on by somewhat more than sixteen slots:
 * that leaves time for the clearing, which goes first and by pages. Whoever makes room for many rows at once, a 64th of the slots, waits for the rest,
 * and so does a small table. */
#ifndef IVM__GROWTH_H
#define IVM__GROWTH_H

#include "memory.h"

#include <string.h>

/* Slots from which on they grow a piece at a time. Tests build with less. */
#ifndef IVM__GROWN_BESIDE_MIN
#define IVM__GROWN_BESIDE_MIN 8192u
#endif
#define IVM__MOVED_ALL UINT64_MAX  /* slots: whoever makes room waits for all of them */
#define IVM__CLEARED_FOR_SLOT 256u /* bytes that are cleared in the time in which one slot would be moved, or less */

typedef struct ivm__growth {
    uint64_t capacity; /* slots in use */
    uint64_t start;    /* the slot before it was free when growth began */
    uint64_t done;     /* so many homes from the start on are in the larger slots */
    size_t cleared;    /* bytes of those; nothing is moved before all are */
} ivm__growth;

static inline bool ivm__grows_beside(uint64_t capacity)
{
    return capacity >= IVM__GROWN_BESIDE_MIN;
}
/* Whether so many rows at once may come while larger slots are filled: more take longer than all slots do to move. Of smaller tables only for very few:
 * others wait no longer than for the rows themselves, and never hold two tables when they are done. */
static inline bool ivm__grows_for(uint64_t capacity, uint64_t rows)
{
    bool few = rows <= 16 || capacity >= 32 * (uint64_t)IVM__GROWN_BESIDE_MIN;
    return ivm__grows_beside(capacity) && rows <= capacity / 64 && few;
}
/* How many slots may be in use meanwhile, beyond those that may else. */
static inline uint64_t ivm__grows_meanwhile(uint64_t capacity)
{
    return capacity / 16;
}
/* So many slots are moved when room is made for `rows` more: 16 a row it must to be done in time. */
static inline uint64_t ivm__moved_for(uint64_t rows)
{
    return rows * 18 + 8;
}

/* The next piece of the larger slots, `bytes` in all, that is to be cleared in the time for `slots`: from growth->cleared as it was up to what is
 * returned, which is `bytes` where it is the last. */
static inline size_t ivm__growth_clear(ivm__growth *growth, size_t bytes, uint64_t slots)
{
    size_t left = bytes - growth->cleared;
    growth->cleared += slots < left / IVM__CLEARED_FOR_SLOT ? (size_t)slots * IVM__CLEARED_FOR_SLOT : left;
    return growth->cleared;
}
/* The same of slots that are free where they are 0: the piece is set so. Returns whether it was the last. */
static inline bool ivm__growth_zero(ivm__growth *growth, void *larger, size_t bytes, uint64_t slots)
{
    size_t from = growth->cleared, to = ivm__growth_clear(growth, bytes, slots);
    memset((uint8_t *)larger + from, 0, to - from);
    return to == bytes;
}

/* How many homes from the start on this one is, and where a slot so far on lies (less than twice round). */
static inline uint64_t ivm__growth_distance(const ivm__growth *growth, uint64_t home)
{
    return home >= growth->start ? home - growth->start : home + growth->capacity - growth->start;
}
static inline uint64_t ivm__growth_place(const ivm__growth *growth, uint64_t distance)
{
    uint64_t place = growth->start + distance;
    return place < growth->capacity ? place : place - growth->capacity;
}
/* Whether what has this home is, or is to be, in the larger slots too. */
static inline bool ivm__growth_is_done(const ivm__growth *growth, uint64_t home)
{
    return ivm__growth_distance(growth, home) < growth->done;
}

/* A walk over slots from `done` on goes so far at least, and from there up to a free slot. At the end it goes on past the start, where slots may
 * have come to stand whose homes are before it, and were left alone as long as they seemed to stand before their homes. */
static inline uint64_t ivm__growth_least(const ivm__growth *growth, uint64_t slots)
{
    return slots < growth->capacity - growth->done ? growth->done + slots : growth->capacity - 1;
}
/* Whether the walk moves what it meets `distance` slots from the start on. */
static inline bool ivm__growth_moves(const ivm__growth *growth, uint64_t distance, uint64_t home)
{
    uint64_t of_home = ivm__growth_distance(growth, home);
    bool here = distance < growth->capacity ? of_home <= distance : of_home > distance - growth->capacity;
    return here && of_home >= growth->done;
}
/* The walk met a free slot `distance` slots from the start on. Returns whether it was the last. */
static inline bool ivm__growth_moved(ivm__growth *growth, uint64_t distance)
{
    growth->done = distance + 1 < growth->capacity ? distance + 1 : growth->capacity;
    return growth->done == growth->capacity;
}

/* The slots that were in use go, at the end of a move of `slots`: at once where that takes no longer, so that they do not wait while pushes of many
 * rows make the next ones grow; a small table's too. */
static inline void ivm__growth_release(ivm__memory *memory, void *block, size_t bytes, uint64_t slots)
{
    if (slots >= bytes / IVM__CLEARED_FOR_SLOT) {
        ivm__release(memory, block, bytes);
    } else {
        ivm__release_slowly(memory, block, bytes);
    }
}

#endif
