/* Tests of engine/saved/bytes.c: what is put is got again, and what cannot be is refused without memory being asked for. */
#include "bytes.h"

#include <criterion/criterion.h>

#include "allocator.h"

static void memory_open(ivm__memory *memory, test_allocator *allocator)
{
    test_allocator_init(allocator);
    ivm_allocator functions = test_allocator_functions(allocator);
    ivm__memory_init(memory, &functions);
}

Test(engine_bytes, numbers_are_little_endian)
{
    static const uint8_t expected[] = { 1, 3, 2, 7, 6, 5, 4, 15, 14, 13, 12, 11, 10, 9, 8, 0xfe };
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    ivm__memory_sink sink;
    ivm__memory_sink_init(&sink, &memory);
    cr_assert_eq(ivm__put_u8(&sink.sink, 1), IVM_OK);
    cr_assert_eq(ivm__put_u16(&sink.sink, 0x0203), IVM_OK);
    cr_assert_eq(ivm__put_u32(&sink.sink, 0x04050607), IVM_OK);
    cr_assert_eq(ivm__put_u64(&sink.sink, 0x08090a0b0c0d0e0f), IVM_OK);
    cr_assert_eq(ivm__put_wide(&sink.sink, -2), IVM_OK);
    cr_assert_eq(ivm__put_text(&sink.sink, "text", 4), IVM_OK);
    cr_assert_eq(sink.bytes.size, 1u + 2 + 4 + 8 + 16 + 8);
    cr_assert_arr_eq(sink.bytes.at, expected, sizeof expected);

    ivm_error error = IVM_ERROR_INIT;
    ivm__memory_feed feed;
    ivm__memory_feed_init(&feed, sink.bytes.at, sink.bytes.size, &error);
    uint8_t one;
    uint16_t two;
    uint32_t four, size;
    uint64_t eight;
    ivm__wide wide;
    char *text;
    cr_assert_eq(ivm__get_u8(&feed.feed, &one), IVM_OK);
    cr_assert_eq(ivm__get_u16(&feed.feed, &two), IVM_OK);
    cr_assert_eq(ivm__get_u32(&feed.feed, &four), IVM_OK);
    cr_assert_eq(ivm__get_u64(&feed.feed, &eight), IVM_OK);
    cr_assert_eq(ivm__get_wide(&feed.feed, &wide), IVM_OK);
    cr_assert_eq(ivm__get_text(&feed.feed, &memory, 4, &text, &size), IVM_OK);
    cr_assert(one == 1 && two == 0x0203 && four == 0x04050607 && eight == 0x08090a0b0c0d0e0f && wide == -2 && size == 4);
    cr_assert_str_eq(text, "text");
    ivm__release(&memory, text, size + 1);
    cr_assert_eq(ivm__get_u8(&feed.feed, &one), IVM_CORRUPT);
    cr_assert_eq(error.status, IVM_CORRUPT);
    ivm__memory_sink_deinit(&sink);
    cr_assert(test_allocator_is_clean(&allocator));
}

static ivm_status text_get(ivm__memory *memory, const void *bytes, size_t size, uint32_t size_max)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm__memory_feed feed;
    char *text = NULL;
    uint32_t text_size;
    ivm__memory_feed_init(&feed, bytes, size, &error);
    ivm_status status = ivm__get_text(&feed.feed, memory, size_max, &text, &text_size);
    cr_assert_eq(status, error.status);
    if (status == IVM_OK) {
        ivm__release(memory, text, text_size + 1);
    }
    return status;
}

Test(engine_bytes, texts_that_cannot_be_are_refused)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    cr_assert_eq(text_get(&memory, "\0\0\0\0", 4, 0), IVM_OK);
    cr_assert_eq(text_get(&memory, "\3\0\0\0abc", 7, 3), IVM_OK);
    cr_assert_eq(text_get(&memory, "\3\0\0\0abc", 7, 2), IVM_CORRUPT, "longer than may be");
    cr_assert_eq(text_get(&memory, "\3\0\0\0a\0c", 7, 3), IVM_CORRUPT, "a null byte");
    for (size_t size = 0; size < 7; size++) {
        cr_assert_eq(text_get(&memory, "\3\0\0\0abc", size, 3), IVM_CORRUPT, "cut at %zu", size);
    }
    cr_assert(test_allocator_is_clean(&allocator));
}

/* An allocator's blocks are counted as asked for: the most at once. */
static int64_t bytes_most;

typedef struct watched_feed {
    ivm__feed feed;
    test_allocator *allocator;
    size_t left;
} watched_feed;

static ivm_status watched_read(ivm__feed *self, void *bytes, size_t size)
{
    watched_feed *feed = (watched_feed *)self;
    bytes_most = feed->allocator->bytes > bytes_most ? feed->allocator->bytes : bytes_most;
    if (size > feed->left) {
        return IVM_CORRUPT;
    }
    memset(bytes, 'x', size);
    feed->left -= size;
    return IVM_OK;
}

Test(engine_bytes, a_size_that_was_made_up_costs_nothing)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    for (size_t there = 0; there < (1u << 20); there = there * 2 + 1000) {
        watched_feed feed = { { watched_read, NULL }, &allocator, there };
        ivm__bytes bytes = { .memory = &memory };
        bytes_most = 0;
        cr_assert_eq(ivm__bytes_read(&bytes, &feed.feed, 0x7fffffff), IVM_CORRUPT);
        cr_assert_leq(bytes_most, (int64_t)(2 * there + (64 << 10)), "%zu bytes there", there);
        ivm__bytes_deinit(&bytes);
    }
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_bytes, memory_failing_leaves_nothing)
{
    test_allocator allocator;
    ivm__memory memory;
    memory_open(&memory, &allocator);
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm__memory_sink sink;
        ivm__memory_sink_init(&sink, &memory);
        char *text = NULL;
        uint32_t size = 0;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm__put_u32(&sink.sink, 200000);
        for (uint32_t i = 0; status == IVM_OK && i < 200000; i++) {
            status = ivm__put_u8(&sink.sink, (uint8_t)(1 + i % 255));
        }
        if (status == IVM_OK) {
            ivm_error error = IVM_ERROR_INIT;
            ivm__memory_feed feed;
            ivm__memory_feed_init(&feed, sink.bytes.at, sink.bytes.size, &error);
            status = ivm__get_text(&feed.feed, &memory, UINT32_MAX, &text, &size);
            cr_assert_eq(error.status, status);
        }
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        for (uint32_t i = 0; done && i < size; i++) {
            cr_assert_eq((uint8_t)text[i], 1 + i % 255);
        }
        ivm__release(&memory, text, done ? size + 1 : 0);
        ivm__memory_sink_deinit(&sink);
        cr_assert(test_allocator_is_clean(&allocator), "call %lu", (unsigned long)n);
    }
}
