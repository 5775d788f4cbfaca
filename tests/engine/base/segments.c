/* tests engine/base/segments.c, and whole lines from engine/base/memory.c */
#include "segments.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__segments segments;

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    segments = (ivm__segments){ 0 };
}

static void end(void)
{
    ivm__segments_free(&memory, &segments);
    cr_assert(test_allocator_is_clean(&counted));
}

static uint32_t *item(uint32_t i)
{
    const uint32_t items = IVM__SEGMENT_BYTES / sizeof(uint32_t);
    return (uint32_t *)(void *)segments.at[i / items] + i % items;
}

static void items_check(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(*item(i), i * 2654435761u);
    }
}

static void items_write(uint32_t first, uint32_t end_of)
{
    for (uint32_t i = first; i < end_of; i++) {
        *item(i) = i * 2654435761u;
    }
}

Test(engine_segments, items_stay_as_they_were)
{
    begin();
    uint32_t count = 0;
    for (uint32_t more = 1; count < 100000; more = more * 2 % 4099 + 1) {
        cr_assert_eq(ivm__segments_reserve(&memory, &segments, (count + more) * sizeof(uint32_t)), IVM_OK);
        cr_assert_geq(ivm__segments_room(&segments), (count + more) * sizeof(uint32_t));
        items_write(count, count + more);
        count += more;
    }
    items_check(count);
    end();
}

Test(engine_segments, a_full_segment_never_moves)
{
    begin();
    cr_assert_eq(ivm__segments_reserve(&memory, &segments, IVM__SEGMENT_BYTES), IVM_OK);
    const uint8_t *first = segments.at[0];
    cr_assert_eq(ivm__segments_reserve(&memory, &segments, 100 * IVM__SEGMENT_BYTES), IVM_OK);
    cr_assert_eq(segments.at[0], first);
    cr_assert_eq(segments.count, 100);
    end();
}

Test(engine_segments, a_few_items_take_little)
{
    begin();
    cr_assert_eq(ivm__segments_reserve(&memory, &segments, 4), IVM_OK);
    cr_assert_leq(ivm__segments_bytes(&segments), 512);
    cr_assert_eq(ivm__segments_reserve(&memory, &segments, 3000), IVM_OK);
    cr_assert_eq(ivm__segments_room(&segments), 4096);
    end();
}

Test(engine_segments, begin_at_lines_and_tell_what_they_hold)
{
    begin();
    for (uint64_t bytes = 1; bytes < 20 * IVM__SEGMENT_BYTES; bytes = bytes * 3 + 1) {
        cr_assert_eq(ivm__segments_reserve(&memory, &segments, bytes), IVM_OK);
        for (uint32_t i = 0; i < segments.count; i++) {
            cr_assert_eq((uintptr_t)segments.at[i] % IVM__LINE_BYTES, 0);
        }
        cr_assert_eq(ivm__segments_bytes(&segments), (uint64_t)counted.bytes);
    }
    end();
}

Test(engine_segments, out_of_memory_leaves_items_alone)
{
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        begin();
        cr_assert_eq(ivm__segments_reserve(&memory, &segments, 100 * sizeof(uint32_t)), IVM_OK);
        items_write(0, 100);
        test_allocator_arm(&counted, n);
        ivm_status status = ivm__segments_reserve(&memory, &segments, 9 * IVM__SEGMENT_BYTES);
        failed = test_allocator_disarm(&counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        items_check(100);
        cr_assert_eq(ivm__segments_bytes(&segments), (uint64_t)counted.bytes);
        end();
    }
}

/* ---- Whole lines --------------------------------------------------------------------------------------------------------------------- */

/* Blocks `offset` bytes past a line, as an allocator may give them. */
static size_t offset, asked_last;

static void *shifted_allocate(void *context, size_t size)
{
    (void)context;
    asked_last = size;
    uint8_t *block = aligned_alloc(64, (size + 127) & ~(size_t)63);
    return block ? block + offset : NULL;
}

static void *shifted_resize(void *context, void *block, size_t size_old, size_t size_new)
{
    (void)context;
    (void)block;
    (void)size_old;
    (void)size_new;
    return NULL;
}

static void shifted_release(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    free((uint8_t *)((uintptr_t)block & ~(uintptr_t)63));
}

Test(engine_segments, lines_of_any_allocator)
{
    for (offset = 0; offset < 64; offset += 16) {
        const ivm_allocator shifted = { shifted_allocate, shifted_resize, shifted_release, NULL };
        ivm__memory_init(&memory, &shifted);
        for (uint32_t round = 0; round < 3; round++) {
            uint8_t before, *lines = ivm__lines_allocate(&memory, 640, &before);
            cr_assert_not_null(lines);
            cr_assert_eq((uintptr_t)lines % 64, 0);
            cr_assert_eq(asked_last == 640, offset == 0, "padded where it need not be, or not where it must");
            memset(lines, 0xA5, 640);
            cr_assert_eq(memory.bytes_held, 640 + ivm__lines_padding(before));
            ivm__lines_release(&memory, lines, 640, before);
            cr_assert_eq(memory.bytes_held, 0);
        }
    }
}
