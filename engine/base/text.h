/* Texts: every string inside an engine is one of these, held once, so that a string cell is a pointer of 8 bytes and equality is equality of
 * pointers. Rows in state hold references. A text without one lives until the step ends and no snapshot taken before it lost its last
 * reference is open. */
#ifndef IVM__TEXT_H
#define IVM__TEXT_H

#include "growth.h"
#include "memory.h"

typedef struct ivm__text {
    uint64_t hash;
    struct ivm__text *unheld_next; /* queue of texts that were seen without a reference, oldest first */
    uint64_t unheld_epoch;
    uint32_t references;
    uint32_t size;
    bool unheld_listed;
    bool unheld_again; /* listed, held in between, and let go once more in a later epoch than unheld_epoch */
    char bytes[];      /* size bytes and a null byte */
} ivm__text;

/* Slots carry the hash, so that neither a probe nor growing nor removing touches another text. */
typedef struct ivm__text_slot {
    uint64_t hash;
    ivm__text *text; /* NULL: free */
} ivm__text_slot;

typedef struct ivm__texts {
    ivm__memory *memory;
    uint64_t seed;
    uint64_t epoch; /* of the step under way; set by the engine */
    ivm__text_slot *slots;
    uint32_t capacity; /* a power of two or 0 */
    uint32_t count;
    ivm__text_slot *larger; /* twice so many, filled beside; NULL: none */
    ivm__growth growth;     /* while there are */
    ivm__text *unheld_first, *unheld_last;
} ivm__texts;

void ivm__texts_init(ivm__texts *texts, ivm__memory *memory, uint64_t seed);
void ivm__texts_deinit(ivm__texts *texts);
/* Finds or makes the text of these bytes; makes no reference. */
ivm_status ivm__texts_intern(ivm__texts *texts, const char *bytes, size_t size, const ivm__text **text) IVM_MUST_CHECK;
void ivm__texts_acquire(ivm__texts *texts, const ivm__text *text);
void ivm__texts_release(ivm__texts *texts, const ivm__text *text); /* cannot fail */
/* Frees the texts without a reference that lost it in an epoch before `oldest`: the epoch of the oldest open snapshot, or one past the present
 * one. Slots far more than the step needed are given back. Cost: the texts freed and those found referenced again. */
void ivm__texts_sweep(ivm__texts *texts, uint64_t oldest);
/* Every invariant of the slots, for tests: NULL or what is wrong. */
const char *ivm__texts_validate(const ivm__texts *texts);

/* By bytes: <0, 0, >0. */
static inline int ivm__text_compare(const ivm__text *a, const ivm__text *b)
{
    if (a == b) {
        return 0;
    }
    uint32_t size = a->size < b->size ? a->size : b->size;
    int order = __builtin_memcmp(a->bytes, b->bytes, size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

#endif
