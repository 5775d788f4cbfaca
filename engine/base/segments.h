/* Arrays that grow by segments, so that what is there is neither copied nor moved when they do, and no more than a segment is ever unused. Where an
 * item is: at[i / items a segment] + i % items a segment, with a power of two of items in a segment. Segments begin at cache lines. */
#ifndef IVM__SEGMENTS_H
#define IVM__SEGMENTS_H

#include "memory.h"

#define IVM__SEGMENT_BYTES 8192u /* unless said otherwise; a size that allocators keep without a rest */
#define IVM__SEGMENT_BYTES_MIN 256u

/* Zeroed: no item. */
typedef struct ivm__segments {
    uint8_t **at;    /* of each segment */
    uint8_t *before; /* see ivm__lines_release(); behind at[capacity] */
    uint32_t count, capacity;
    uint32_t bytes_first; /* of the first segment: less than a segment as long as it is the only one */
    uint32_t bytes_each;  /* of a segment, a multiple of 64; 0: IVM__SEGMENT_BYTES */
} ivm__segments;

static inline uint32_t ivm__segment_bytes(const ivm__segments *segments)
{
    return segments->bytes_each ? segments->bytes_each : IVM__SEGMENT_BYTES;
}

static inline uint64_t ivm__segments_room(const ivm__segments *segments)
{
    return segments->count > 1 ? (uint64_t)segments->count * ivm__segment_bytes(segments) : segments->bytes_first;
}
/* Makes room for so many bytes at least; what is there stays, and stays in its place once it fills a segment. On failure there may be more room than
 * there was. */
ivm_status ivm__segments_reserve(ivm__memory *memory, ivm__segments *segments, uint64_t bytes) IVM_MUST_CHECK;
/* Gives back the segments beyond so many bytes, but for the first. */
void ivm__segments_trim(ivm__memory *memory, ivm__segments *segments, uint64_t bytes);
void ivm__segments_free(ivm__memory *memory, ivm__segments *segments); /* segments made next are of the same size */
uint64_t ivm__segments_bytes(const ivm__segments *segments);           /* held */

#endif
