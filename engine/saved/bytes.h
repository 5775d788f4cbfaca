/* Bytes: numbers and texts on sinks and feeds, little endian and nothing aligned; bytes in memory that grow, and streams over them. For what is too long to
 * stand in memory at once: each call may fail and tells it, a text read is a copy. Short descriptions that are made whole and read in place: code.h. */
#ifndef IVM__BYTES_H
#define IVM__BYTES_H

#include "chunk.h"
#include "stream.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

/* ---- Numbers ------------------------------------------------------------------------------------------------------------------------ */

static inline ivm_status ivm__put(ivm__sink *sink, const void *bytes, size_t size)
{
    return size ? sink->write(sink, bytes, size) : IVM_OK;
}
static inline ivm_status ivm__put_u8(ivm__sink *sink, uint8_t number)
{
    return sink->write(sink, &number, sizeof number);
}
static inline ivm_status ivm__put_u16(ivm__sink *sink, uint16_t number)
{
    return sink->write(sink, &number, sizeof number);
}
static inline ivm_status ivm__put_u32(ivm__sink *sink, uint32_t number)
{
    return sink->write(sink, &number, sizeof number);
}
static inline ivm_status ivm__put_u64(ivm__sink *sink, uint64_t number)
{
    return sink->write(sink, &number, sizeof number);
}
static inline ivm_status ivm__put_wide(ivm__sink *sink, ivm__wide number) /* weights too */
{
    return sink->write(sink, &number, sizeof number);
}

static inline ivm_status ivm__get(ivm__feed *feed, void *bytes, size_t size)
{
    return size ? feed->read(feed, bytes, size) : IVM_OK;
}
static inline ivm_status ivm__get_u8(ivm__feed *feed, uint8_t *number)
{
    return feed->read(feed, number, sizeof *number);
}
static inline ivm_status ivm__get_u16(ivm__feed *feed, uint16_t *number)
{
    return feed->read(feed, number, sizeof *number);
}
static inline ivm_status ivm__get_u32(ivm__feed *feed, uint32_t *number)
{
    return feed->read(feed, number, sizeof *number);
}
static inline ivm_status ivm__get_u64(ivm__feed *feed, uint64_t *number)
{
    return feed->read(feed, number, sizeof *number);
}
static inline ivm_status ivm__get_wide(ivm__feed *feed, ivm__wide *number)
{
    return feed->read(feed, number, sizeof *number);
}

/* ---- Bytes that grow ---------------------------------------------------------------------------------------------------------------- */

typedef struct ivm__bytes {
    ivm__memory *memory;
    uint8_t *at;
    size_t size, capacity;
} ivm__bytes;

void ivm__bytes_deinit(ivm__bytes *bytes); /* one of which only `memory` is set is fine; it is so again then */
/* Becomes the next `size` bytes of the feed. Memory is asked for as they come, never for more than twice of those and 64 KB: a size that was made up
 * costs nothing. */
ivm_status ivm__bytes_read(ivm__bytes *bytes, ivm__feed *feed, size_t size) IVM_MUST_CHECK;

/* A text: its size in 32 bits, then its bytes. */
ivm_status ivm__put_text(ivm__sink *sink, const char *text, size_t size) IVM_MUST_CHECK;
/* *text becomes one with a null byte behind, released with *size + 1; corrupt where it is longer than `size_max` or has a null byte in it. */
ivm_status ivm__get_text(ivm__feed *feed, ivm__memory *memory, uint32_t size_max, char **text, uint32_t *size) IVM_MUST_CHECK;

/* ---- Streams over memory ------------------------------------------------------------------------------------------------------------ */

typedef struct ivm__memory_sink {
    ivm__sink sink;
    ivm__bytes bytes;
} ivm__memory_sink;

typedef struct ivm__memory_feed {
    ivm__feed feed;
    const uint8_t *at, *end;
} ivm__memory_feed;

void ivm__memory_sink_init(ivm__memory_sink *sink, ivm__memory *memory);
void ivm__memory_sink_deinit(ivm__memory_sink *sink);
/* The bytes stay the caller's. */
void ivm__memory_feed_init(ivm__memory_feed *feed, const void *bytes, size_t size, ivm_error *error);

#endif
