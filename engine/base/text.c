/* Texts: the set of all strings inside an engine, an open-addressed table with linear probing and a load of at most 0.7, and a sixteenth more while
 * a large one grows, which it does a piece at a time (growth.h): so many texts are made by small pushes as by large ones, one after the other.
 *
 * A text without a reference stands in a queue ordered by the epoch in which it was listed; a sweep takes from its front. A text that was
 * held and let go again while listed keeps its place and is listed anew when its turn comes, so that the order needs no search.
 * Cost: interning is one hash, one slot and one comparison of bytes; a reference is one addition. */
#include "text.h"

#include <assert.h>
#include <string.h>

#include "hash.h"

#define SLOTS_MIN 64u
#define SLOTS_MAX (1u << 31)
#define LOAD(capacity) ((capacity) / 10 * 7)
#define SLOTS_KEPT_MAX 1024u      /* whatever there is */
#define REFERENCES_MAX UINT32_MAX /* a text that reaches it stays for good */

void ivm__texts_init(ivm__texts *texts, ivm__memory *memory, uint64_t seed)
{
    *texts = (ivm__texts){ .memory = memory, .seed = seed };
}

static size_t text_bytes(const ivm__text *text)
{
    return offsetof(ivm__text, bytes) + text->size + 1;
}

static size_t slots_bytes(uint32_t capacity)
{
    return (size_t)capacity * sizeof(ivm__text_slot);
}

static size_t larger_bytes(const ivm__texts *texts)
{
    return 2 * slots_bytes(texts->capacity);
}

static void larger_drop(ivm__texts *texts)
{
    ivm__release(texts->memory, texts->larger, larger_bytes(texts));
    texts->larger = NULL;
}

void ivm__texts_deinit(ivm__texts *texts)
{
    larger_drop(texts);
    for (uint32_t i = 0; i < texts->capacity; i++) {
        ivm__text *text = texts->slots[i].text;
        if (text) {
            ivm__release(texts->memory, text, text_bytes(text));
        }
    }
    ivm__release(texts->memory, texts->slots, slots_bytes(texts->capacity));
    ivm__texts_init(texts, texts->memory, texts->seed);
}

/* The first free slot from the hash's home on. */
static ivm__text_slot *slot_free(ivm__text_slot *slots, uint32_t mask, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & mask;
    while (slots[at].text) {
        at = (at + 1) & mask;
    }
    return &slots[at];
}

/* Of a text that has its slot among those in use: whether it has, or is to have, one among the larger ones. */
static bool is_done(const ivm__texts *texts, uint64_t hash)
{
    return texts->larger && ivm__growth_is_done(&texts->growth, hash & (texts->capacity - 1));
}

static void larger_put(ivm__texts *texts, ivm__text_slot slot)
{
    *slot_free(texts->larger, 2 * texts->capacity - 1, slot.hash) = slot;
}

/* All at once. */
static ivm_status slots_move(ivm__texts *texts, uint32_t capacity)
{
    ivm__text_slot *slots = ivm__allocate_zeroed(texts->memory, slots_bytes(capacity));
    if (!slots) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < texts->capacity; i++) {
        if (texts->slots[i].text) {
            *slot_free(slots, capacity - 1, texts->slots[i].hash) = texts->slots[i];
        }
    }
    larger_drop(texts);
    ivm__release(texts->memory, texts->slots, slots_bytes(texts->capacity));
    texts->slots = slots;
    texts->capacity = capacity;
    return IVM_OK;
}

static ivm_status larger_make(ivm__texts *texts)
{
    texts->larger = ivm__allocate(texts->memory, larger_bytes(texts));
    uint32_t start = 0, mask = texts->capacity - 1;
    while (texts->slots[start].text) {
        start++;
    }
    texts->growth = (ivm__growth){ .capacity = texts->capacity, .start = (start + 1) & mask };
    return texts->larger ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* At the end of a move of so many slots. */
static void larger_take(ivm__texts *texts, uint64_t slots)
{
    ivm__growth_release(texts->memory, texts->slots, slots_bytes(texts->capacity), slots);
    texts->slots = texts->larger;
    texts->capacity *= 2;
    texts->larger = NULL;
}

/* The larger ones have been cleared. */
static void larger_fill(ivm__texts *texts, uint64_t slots)
{
    ivm__growth *growth = &texts->growth;
    uint64_t done = growth->done, least = ivm__growth_least(growth, slots);
    uint32_t mask = texts->capacity - 1, at = (uint32_t)ivm__growth_place(growth, done);
    for (; texts->slots[at].text || done < least; at = (at + 1) & mask, done++) {
        if (texts->slots[at].text && ivm__growth_moves(growth, done, texts->slots[at].hash & mask)) {
            larger_put(texts, texts->slots[at]);
        }
    }
    if (ivm__growth_moved(growth, done)) {
        larger_take(texts, slots);
    }
}

static void larger_move(ivm__texts *texts, uint64_t slots)
{
    if (ivm__growth_zero(&texts->growth, texts->larger, larger_bytes(texts), slots)) {
        larger_fill(texts, slots);
    }
}

/* Makes room for one more. */
static ivm_status slots_reserve(ivm__texts *texts)
{
    uint32_t capacity = texts->capacity, load = LOAD(capacity);
    if (ivm__unlikely(texts->larger != NULL)) {
        larger_move(texts, texts->count < load + ivm__grows_meanwhile(capacity) ? ivm__moved_for(1) : IVM__MOVED_ALL);
        return IVM_OK;
    }
    if (texts->count < load) {
        return IVM_OK;
    }
    if (capacity == SLOTS_MAX) {
        return IVM_OUT_OF_MEMORY;
    }
    return ivm__grows_for(capacity, 1) ? larger_make(texts) : slots_move(texts, capacity ? capacity * 2 : SLOTS_MIN);
}

/* `most`: texts that there were at once in the step that ends. Where memory is wanting the slots stay. */
static void slots_trim(ivm__texts *texts, uint32_t most)
{
    uint32_t capacity = texts->capacity;
    if (ivm__likely(capacity <= SLOTS_KEPT_MAX || LOAD(capacity) / 8 <= most)) {
        return;
    }
    while (capacity > SLOTS_MIN && LOAD(capacity / 2) > 2 * most) {
        capacity /= 2;
    }
    (void)(slots_move(texts, capacity) == IVM_OK);
}

static ivm__text *text_find(const ivm__texts *texts, uint64_t hash, const char *bytes, size_t size)
{
    if (texts->capacity == 0) {
        return NULL;
    }
    uint32_t mask = texts->capacity - 1;
    for (uint32_t at = (uint32_t)hash & mask; texts->slots[at].text; at = (at + 1) & mask) {
        ivm__text *text = texts->slots[at].text;
        if (texts->slots[at].hash == hash && text->size == size && (size == 0 || memcmp(text->bytes, bytes, size) == 0)) {
            return text;
        }
    }
    return NULL;
}

/* Appends to the queue of texts without a reference. */
static void unheld_list(ivm__texts *texts, ivm__text *text)
{
    assert(!text->unheld_listed && text->references == 0);
    text->unheld_listed = true;
    text->unheld_again = false;
    text->unheld_epoch = texts->epoch;
    text->unheld_next = NULL;
    if (texts->unheld_last) {
        texts->unheld_last->unheld_next = text;
    } else {
        texts->unheld_first = text;
    }
    texts->unheld_last = text;
}

ivm_status ivm__texts_intern(ivm__texts *texts, const char *bytes, size_t size, const ivm__text **text)
{
    if (size > IVM_STRING_SIZE_MAX) {
        return IVM_OVERFLOW;
    }
    uint64_t hash = ivm__hash_bytes(size ? bytes : "", size, texts->seed);
    ivm__text *found = text_find(texts, hash, bytes, size);
    if (found) {
        *text = found;
        return IVM_OK;
    }
    IVM_TRY(slots_reserve(texts));
    ivm__text *made = ivm__allocate(texts->memory, offsetof(ivm__text, bytes) + size + 1);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(made, 0, offsetof(ivm__text, bytes)); /* a whole struct's padding may reach past a short text */
    made->hash = hash;
    made->size = (uint32_t)size;
    if (size) {
        memcpy(made->bytes, bytes, size);
    }
    made->bytes[size] = 0;
    const ivm__text_slot slot = { hash, made };
    *slot_free(texts->slots, texts->capacity - 1, hash) = slot;
    if (ivm__unlikely(is_done(texts, hash))) {
        larger_put(texts, slot);
    }
    texts->count++;
    unheld_list(texts, made);
    *text = made;
    return IVM_OK;
}

/* The set gives texts out as constant; they are its own. */
static ivm__text *text_own(const ivm__text *text)
{
    return (ivm__text *)(uintptr_t)text;
}

void ivm__texts_acquire(ivm__texts *texts, const ivm__text *text)
{
    (void)texts;
    if (ivm__likely(text->references != REFERENCES_MAX)) {
        text_own(text)->references++;
    }
}

void ivm__texts_release(ivm__texts *texts, const ivm__text *text)
{
    assert(text->references > 0);
    ivm__text *own = text_own(text);
    if (own->references == REFERENCES_MAX || --own->references > 0) {
        return;
    }
    if (!own->unheld_listed) {
        unheld_list(texts, own);
    } else if (own->unheld_epoch != texts->epoch) {
        own->unheld_again = true;
    }
}

/* Takes a text out of slots and moves those behind it that a probe would no longer reach. */
static void slot_remove(ivm__text_slot *slots, uint32_t mask, const ivm__text *text)
{
    uint32_t hole = (uint32_t)text->hash & mask;
    while (slots[hole].text != text) {
        assert(slots[hole].text);
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; slots[at].text; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = (ivm__text_slot){ 0, NULL };
}

static void text_free(ivm__texts *texts, ivm__text *text)
{
    slot_remove(texts->slots, texts->capacity - 1, text);
    if (ivm__unlikely(is_done(texts, text->hash))) {
        slot_remove(texts->larger, 2 * texts->capacity - 1, text);
    }
    texts->count--;
    ivm__release(texts->memory, text, text_bytes(text));
}

void ivm__texts_sweep(ivm__texts *texts, uint64_t oldest)
{
    uint32_t most = texts->count;
    while (texts->unheld_first && texts->unheld_first->unheld_epoch < oldest) {
        ivm__text *text = texts->unheld_first;
        texts->unheld_first = text->unheld_next;
        if (!texts->unheld_first) {
            texts->unheld_last = NULL;
        }
        text->unheld_listed = false;
        if (text->references == 0 && text->unheld_again) {
            unheld_list(texts, text);
        } else if (text->references == 0) {
            text_free(texts, text);
        }
    }
    slots_trim(texts, most);
}

/* ---- For tests ------------------------------------------------------------------------------------------------------------------------- */

static const char *slots_validate(const ivm__text_slot *slots, uint32_t capacity, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < capacity; i++) {
        const ivm__text_slot *slot = &slots[i];
        if (!slot->text) {
            continue;
        }
        ++*count;
        if (slot->hash != slot->text->hash) {
            return "a slot with the hash of another text";
        }
        for (uint32_t at = (uint32_t)slot->hash & (capacity - 1); at != i; at = (at + 1) & (capacity - 1)) {
            if (!slots[at].text || slots[at].text == slot->text) {
                return "a text that a probe does not reach, or that has two slots";
            }
        }
    }
    return NULL;
}

/* The larger ones have what is done, and nothing else. */
static const char *larger_validate(const ivm__texts *texts)
{
    uint32_t done = 0, count, mask = 2 * texts->capacity - 1;
    for (uint32_t i = 0; i < texts->capacity; i++) {
        const ivm__text_slot *slot = &texts->slots[i];
        if (slot->text && is_done(texts, slot->hash)) {
            uint32_t at = (uint32_t)slot->hash & mask;
            while (texts->larger[at].text && texts->larger[at].text != slot->text) {
                at = (at + 1) & mask;
            }
            if (!texts->larger[at].text) {
                return "a text that is missing among the larger slots";
            }
            done++;
        }
    }
    const char *wrong = slots_validate(texts->larger, 2 * texts->capacity, &count);
    return wrong || count == done ? wrong : "larger slots with texts that are not in those in use";
}

const char *ivm__texts_validate(const ivm__texts *texts)
{
    uint32_t count;
    const char *wrong = slots_validate(texts->slots, texts->capacity, &count);
    if (wrong || count != texts->count) {
        return wrong ? wrong : "texts that are counted wrongly";
    }
    return texts->larger && texts->growth.cleared == larger_bytes(texts) ? larger_validate(texts) : NULL;
}
