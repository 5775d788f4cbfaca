/* tests engine/base/items.c */
#include "items.h"

#include <criterion/criterion.h>
#include <string.h>

#include "allocator.h"

#define ITEMS 20000u

static const size_t sizes[] = { 4, 8, 24, 32, 64, 192, 448, 65536 };
#define SIZES (sizeof sizes / sizeof *sizes)

static test_allocator counted;
static ivm__memory memory;
static ivm__items items;

static void begin(size_t item_bytes)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__items_init(&items, item_bytes);
}

static void end(void)
{
    ivm__items_free(&items, &memory);
    cr_assert(test_allocator_is_clean(&counted));
    cr_assert_eq(memory.bytes_held, 0);
}

static uint32_t count_for(size_t item_bytes)
{
    return item_bytes > 1000 ? 20 : ITEMS;
}

Test(engine_items, every_item_has_a_place_of_its_own)
{
    for (uint32_t s = 0; s < SIZES; s++) {
        begin(sizes[s]);
        uint32_t count = count_for(sizes[s]);
        for (uint32_t i = 0; i < count; i++) {
            cr_assert_eq(ivm__items_reserve(&items, &memory, i + 1ull), IVM_OK);
            memset(ivm__items_at(&items, i), (int)(i * 37 % 251), sizes[s]);
        }
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *at = ivm__items_at(&items, i);
            for (size_t b = 0; b < sizes[s]; b++) {
                cr_assert_eq(at[b], i * 37 % 251, "size %zu, item %u", sizes[s], i);
            }
            cr_assert(sizes[s] % IVM__LINE_BYTES != 0 || (uintptr_t)at % IVM__LINE_BYTES == 0);
        }
        end();
    }
}

Test(engine_items, stay_where_they_are_once_a_segment_is_full)
{
    begin(24);
    uint32_t first = items.mask + 1;
    cr_assert_eq(ivm__items_reserve(&items, &memory, first), IVM_OK);
    const void *last = ivm__items_at(&items, first - 1);
    cr_assert_eq(ivm__items_reserve(&items, &memory, 100ull * first), IVM_OK);
    cr_assert_eq(ivm__items_at(&items, first - 1), last);
    end();
}

/* What is written to items goes when they are freed, and what was once cleared is not cleared again. */
Test(engine_items, cleared_once)
{
    for (uint32_t s = 0; s < SIZES; s++) {
        begin(sizes[s]);
        uint32_t known = 0;
        for (uint32_t count = 1; count <= count_for(sizes[s]); count = count * 3 + 1) {
            cr_assert_eq(ivm__items_reserve_cleared(&items, &memory, count), IVM_OK);
            cr_assert_eq(items.known, count);
            for (uint32_t i = 0; i < count; i++) {
                uint8_t *at = ivm__items_at(&items, i);
                cr_assert_eq(at[0], i < known);
                cr_assert_eq(at[sizes[s] - 1], i < known);
                memset(at, 1, sizes[s]);
            }
            known = count;
        }
        cr_assert_eq(ivm__items_reserve_cleared(&items, &memory, 1), IVM_OK);
        cr_assert_eq(items.known, known);
        end();
        cr_assert_eq(items.known, 0);
    }
}

Test(engine_items, tell_what_they_hold)
{
    for (uint32_t s = 0; s < SIZES; s++) {
        begin(sizes[s]);
        for (uint32_t count = 1; count <= count_for(sizes[s]); count = count * 2 + 1) {
            cr_assert_eq(ivm__items_reserve(&items, &memory, count), IVM_OK);
            cr_assert_eq(ivm__items_bytes(&items), (uint64_t)counted.bytes);
            cr_assert_eq(ivm__items_bytes(&items), memory.bytes_held);
        }
        end();
    }
}

Test(engine_items, those_that_are_trimmed_come_back)
{
    begin(32);
    uint32_t first = items.mask + 1;
    cr_assert_eq(ivm__items_reserve(&items, &memory, 9ull * first), IVM_OK);
    for (uint32_t i = 0; i < 3 * first; i++) {
        *(uint32_t *)ivm__items_at(&items, i) = i;
    }
    ivm__items_trim(&items, &memory, 2ull * first + 1);
    cr_assert_eq(ivm__items_room(&items), 3ull * first);
    cr_assert_eq(ivm__items_bytes(&items), (uint64_t)counted.bytes);
    for (uint32_t i = 0; i < 3 * first; i++) {
        cr_assert_eq(*(uint32_t *)ivm__items_at(&items, i), i);
    }
    ivm__items_trim(&items, &memory, 0);
    cr_assert_eq(ivm__items_room(&items), first, "the first segment stays");
    cr_assert_eq(ivm__items_reserve(&items, &memory, 5ull * first), IVM_OK);
    cr_assert_eq(ivm__items_room(&items), 5ull * first);
    end();
}

Test(engine_items, more_than_can_be_numbered_is_out_of_memory)
{
    begin(8);
    cr_assert_eq(ivm__items_reserve(&items, &memory, (uint64_t)UINT32_MAX + 1), IVM_OUT_OF_MEMORY);
    cr_assert_eq(memory.bytes_held, 0);
    end();
}

Test(engine_items, out_of_memory_leaves_items_alone)
{
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        begin(32);
        cr_assert_eq(ivm__items_reserve_cleared(&items, &memory, 3), IVM_OK);
        *(uint32_t *)ivm__items_at(&items, 2) = 7;
        test_allocator_arm(&counted, n);
        ivm_status status = ivm__items_reserve_cleared(&items, &memory, 9ull * (items.mask + 1));
        failed = test_allocator_disarm(&counted);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
        cr_assert_eq(items.known, failed ? 3 : 9 * (items.mask + 1));
        cr_assert_eq(*(uint32_t *)ivm__items_at(&items, 2), 7);
        cr_assert_eq(ivm__items_bytes(&items), (uint64_t)counted.bytes);
        end();
    }
}
