/* Segments: see segments.h. The first one is made small and doubles, a copy of some thousand bytes in all; the directory doubles too, 9 bytes
 * a segment. Cost: an allocation a segment. */
#include "segments.h"

#include <string.h>

#define DIRECTORY_SEGMENTS_MIN 4u

static size_t directory_bytes(uint32_t capacity)
{
    return capacity * (sizeof(uint8_t *) + sizeof(uint8_t));
}

static ivm_status directory_reserve(ivm__memory *memory, ivm__segments *segments)
{
    if (segments->count < segments->capacity) {
        return IVM_OK;
    }
    if (segments->capacity > UINT32_MAX / 2) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t capacity = segments->capacity ? segments->capacity * 2 : DIRECTORY_SEGMENTS_MIN;
    uint8_t **at = ivm__allocate(memory, directory_bytes(capacity));
    if (!at) {
        return IVM_OUT_OF_MEMORY;
    }
    uint8_t *before = (uint8_t *)(at + capacity);
    if (segments->count) {
        memcpy(at, segments->at, segments->count * sizeof *at);
        memcpy(before, segments->before, segments->count);
    }
    ivm__release(memory, segments->at, directory_bytes(segments->capacity));
    segments->at = at;
    segments->before = before;
    segments->capacity = capacity;
    return IVM_OK;
}

static ivm_status segment_add(ivm__memory *memory, ivm__segments *segments, uint32_t bytes)
{
    IVM_TRY(directory_reserve(memory, segments));
    uint8_t before, *made = ivm__lines_allocate(memory, bytes, &before);
    if (!made) {
        return IVM_OUT_OF_MEMORY;
    }
    segments->at[segments->count] = made;
    segments->before[segments->count++] = before;
    return IVM_OK;
}

/* The first one becomes larger. */
static ivm_status first_grow(ivm__memory *memory, ivm__segments *segments, uint64_t bytes)
{
    uint32_t grown = segments->bytes_first ? segments->bytes_first : IVM__SEGMENT_BYTES_MIN;
    while (grown < bytes && grown < ivm__segment_bytes(segments)) {
        grown *= 2;
    }
    grown = grown < ivm__segment_bytes(segments) ? grown : ivm__segment_bytes(segments);
    if (segments->count == 0) {
        IVM_TRY(segment_add(memory, segments, grown));
    } else {
        uint8_t before, *made = ivm__lines_allocate(memory, grown, &before);
        if (!made) {
            return IVM_OUT_OF_MEMORY;
        }
        memcpy(made, segments->at[0], segments->bytes_first);
        ivm__lines_release(memory, segments->at[0], segments->bytes_first, segments->before[0]);
        segments->at[0] = made;
        segments->before[0] = before;
    }
    segments->bytes_first = grown;
    return IVM_OK;
}

ivm_status ivm__segments_reserve(ivm__memory *memory, ivm__segments *segments, uint64_t bytes)
{
    if (ivm__likely(bytes <= ivm__segments_room(segments))) {
        return IVM_OK;
    }
    if (segments->bytes_first < ivm__segment_bytes(segments)) {
        IVM_TRY(first_grow(memory, segments, bytes));
    }
    while (ivm__segments_room(segments) < bytes) {
        IVM_TRY(segment_add(memory, segments, ivm__segment_bytes(segments)));
    }
    return IVM_OK;
}

void ivm__segments_trim(ivm__memory *memory, ivm__segments *segments, uint64_t bytes)
{
    uint32_t each = ivm__segment_bytes(segments);
    while (segments->count > 1 && (uint64_t)(segments->count - 1) * each >= bytes) {
        segments->count--;
        ivm__lines_release(memory, segments->at[segments->count], each, segments->before[segments->count]);
    }
}

void ivm__segments_free(ivm__memory *memory, ivm__segments *segments)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        ivm__lines_release(memory, segments->at[i], i ? ivm__segment_bytes(segments) : segments->bytes_first, segments->before[i]);
    }
    ivm__release(memory, segments->at, directory_bytes(segments->capacity));
    *segments = (ivm__segments){ .bytes_each = segments->bytes_each };
}

uint64_t ivm__segments_bytes(const ivm__segments *segments)
{
    uint64_t bytes = directory_bytes(segments->capacity) + ivm__segments_room(segments);
    for (uint32_t i = 0; i < segments->count; i++) {
        bytes += ivm__lines_padding(segments->before[i]);
    }
    return bytes;
}
