/* Texts: the set of all strings inside an engine, an open-addressed table with linear probing and a load of at most 0.7.
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

void ivm__texts_deinit(ivm__texts *texts)
{
    for (uint32_t i = 0; i < texts->capacity; i++) {
        ivm__text *text = texts->slots[i].text;
        if (text) {
            ivm__release(texts->memory, text, text_bytes(text));
        }
    }
    ivm__release(texts->memory, texts->slots, texts->capacity * sizeof *texts->slots);
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

static ivm_status slots_move(ivm__texts *texts, uint32_t capacity)
{
    ivm__text_slot *slots = ivm__allocate_zeroed(texts->memory, capacity * sizeof *slots);
    if (!slots) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < texts->capacity; i++) {
        if (texts->slots[i].text) {
            *slot_free(slots, capacity - 1, texts->slots[i].hash) = texts->slots[i];
        }
    }
    ivm__release(texts->memory, texts->slots, texts->capacity * sizeof *slots);
    texts->slots = slots;
    texts->capacity = capacity;
    return IVM_OK;
}

/* Makes room for one more. */
static ivm_status slots_reserve(ivm__texts *texts)
{
    if (texts->count < texts->capacity / 10 * 7) {
        return IVM_OK;
    }
    return texts->capacity < SLOTS_MAX ? slots_move(texts, texts->capacity ? texts->capacity * 2 : SLOTS_MIN) : IVM_OUT_OF_MEMORY;
}

/* `most`: texts that there were at once in the step that ends. Where memory is wanting the slots stay. */
static void slots_trim(ivm__texts *texts, uint32_t most)
{
    uint32_t capacity = texts->capacity;
    if (ivm__likely(capacity <= SLOTS_KEPT_MAX || capacity / 10 * 7 / 8 <= most)) {
        return;
    }
    while (capacity > SLOTS_MIN && capacity / 2 / 10 * 7 > 2 * most) {
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
    *slot_free(texts->slots, texts->capacity - 1, hash) = (ivm__text_slot){ hash, made };
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

/* Takes a slot's text out and moves those behind it that a probe would no longer reach. */
static void slot_remove(ivm__texts *texts, const ivm__text *text)
{
    uint32_t mask = texts->capacity - 1;
    uint32_t hole = (uint32_t)text->hash & mask;
    while (texts->slots[hole].text != text) {
        assert(texts->slots[hole].text);
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; texts->slots[at].text; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)texts->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            texts->slots[hole] = texts->slots[at];
            hole = at;
        }
    }
    texts->slots[hole] = (ivm__text_slot){ 0, NULL };
    texts->count--;
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
            slot_remove(texts, text);
            ivm__release(texts->memory, text, text_bytes(text));
        }
    }
    slots_trim(texts, most);
}
