/* Bytes in memory: growing, reading from a feed, texts, and the streams over memory. Growth doubles, so that a byte is copied about once. */
#include "bytes.h"

#define STEP_BYTES ((size_t)64 << 10)
#define BYTES_MIN ((size_t)64)

void ivm__bytes_deinit(ivm__bytes *bytes)
{
    ivm__release(bytes->memory, bytes->at, bytes->capacity);
    *bytes = (ivm__bytes){ .memory = bytes->memory };
}

static ivm_status capacity_set(ivm__bytes *bytes, size_t capacity)
{
    uint8_t *grown = ivm__resize(bytes->memory, bytes->at, bytes->capacity, capacity);
    if (!grown) {
        return IVM_OUT_OF_MEMORY;
    }
    bytes->at = grown;
    bytes->capacity = capacity;
    return IVM_OK;
}

static ivm_status bytes_append(ivm__bytes *bytes, const void *from, size_t size)
{
    if (size > SIZE_MAX / 2 - bytes->size) {
        return IVM_OUT_OF_MEMORY;
    }
    if (bytes->size + size > bytes->capacity) {
        size_t doubled = bytes->capacity ? 2 * bytes->capacity : BYTES_MIN;
        IVM_TRY(capacity_set(bytes, doubled > bytes->size + size ? doubled : bytes->size + size));
    }
    if (size) {
        memcpy(bytes->at + bytes->size, from, size);
    }
    bytes->size += size;
    return IVM_OK;
}

ivm_status ivm__bytes_read(ivm__bytes *bytes, ivm__feed *feed, size_t size)
{
    bytes->size = 0;
    while (bytes->size < size) {
        size_t left = size - bytes->size, step = bytes->size > STEP_BYTES ? bytes->size : STEP_BYTES;
        step = left < step ? left : step;
        if (bytes->size + step > bytes->capacity && capacity_set(bytes, bytes->size + step) != IVM_OK) {
            return ivm__fail_memory(feed->error);
        }
        IVM_TRY(feed->read(feed, bytes->at + bytes->size, step));
        bytes->size += step;
    }
    return IVM_OK;
}

/* ---- Texts -------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__put_text(ivm__sink *sink, const char *text, size_t size)
{
    assert(size <= UINT32_MAX);
    IVM_TRY(ivm__put_u32(sink, (uint32_t)size));
    return ivm__put(sink, text, size);
}

ivm_status ivm__get_text(ivm__feed *feed, ivm__memory *memory, uint32_t size_max, char **text, uint32_t *size)
{
    IVM_TRY(ivm__get_u32(feed, size));
    if (*size > size_max) {
        return ivm__fail(feed->error, IVM_CORRUPT, "a text of %u bytes where at most %u may be", *size, size_max);
    }
    ivm__bytes bytes = { .memory = memory };
    ivm_status status = ivm__bytes_read(&bytes, feed, *size);
    if (status == IVM_OK && bytes.at && memchr(bytes.at, 0, *size)) {
        status = ivm__fail(feed->error, IVM_CORRUPT, "a text with a null byte in it");
    }
    if (status == IVM_OK && !(*text = ivm__text_copy(memory, (const char *)bytes.at, *size))) {
        status = ivm__fail_memory(feed->error);
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

/* ---- Streams over memory ------------------------------------------------------------------------------------------------------------ */

static ivm_status sink_write(ivm__sink *self, const void *bytes, size_t size)
{
    return bytes_append(&((ivm__memory_sink *)self)->bytes, bytes, size);
}

void ivm__memory_sink_init(ivm__memory_sink *sink, ivm__memory *memory)
{
    *sink = (ivm__memory_sink){ { sink_write }, { .memory = memory } };
}

void ivm__memory_sink_deinit(ivm__memory_sink *sink)
{
    ivm__bytes_deinit(&sink->bytes);
}

static ivm_status feed_read(ivm__feed *self, void *bytes, size_t size)
{
    ivm__memory_feed *feed = (ivm__memory_feed *)self;
    if (size > (size_t)(feed->end - feed->at)) {
        return ivm__fail(self->error, IVM_CORRUPT, "%zu bytes where %zu are wanted", (size_t)(feed->end - feed->at), size);
    }
    if (size) {
        memcpy(bytes, feed->at, size);
    }
    feed->at += size;
    return IVM_OK;
}

void ivm__memory_feed_init(ivm__memory_feed *feed, const void *bytes, size_t size, ivm_error *error)
{
    const uint8_t *at = size ? bytes : (const uint8_t *)"";
    *feed = (ivm__memory_feed){ { feed_read, error }, at, at + size };
}
