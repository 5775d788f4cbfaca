/* tests engine/base/memory.c and engine/base/status.c */
#include "memory.h"

#include <criterion/criterion.h>
#include <string.h>

#include "allocator.h"
#include "growth.h"

static test_allocator counted;
static ivm__memory memory;

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
}

static void check_clean(void)
{
    cr_assert(test_allocator_is_clean(&counted));
    cr_assert_eq(memory.bytes_held, 0);
}

Test(engine_memory, bytes_held_is_what_was_asked_for, .init = begin)
{
    void *a = ivm__allocate(&memory, 100), *b = ivm__allocate_zeroed(&memory, 7), *c = ivm__allocate(&memory, 0);
    cr_assert(a && b && c);
    cr_assert_eq(memory.bytes_held, (uint64_t)counted.bytes);
    cr_assert_eq(memory.bytes_held, 108, "nothing asked for is one byte held");
    cr_assert_arr_eq(b, "\0\0\0\0\0\0\0", 7);
    a = ivm__resize(&memory, a, 100, 1000);
    cr_assert_eq(memory.bytes_held, 1008);
    a = ivm__resize(&memory, a, 1000, 10);
    cr_assert_eq(memory.bytes_held, 18);
    ivm__release(&memory, a, 10);
    ivm__release(&memory, b, 7);
    ivm__release(&memory, c, 0);
    ivm__release(&memory, NULL, 5);
    check_clean();
}

Test(engine_memory, default_is_malloc)
{
    ivm_allocator none = { 0 };
    ivm__memory_init(&memory, &none);
    char *text = ivm__text_copy(&memory, "abcdef", 3);
    cr_assert_str_eq(text, "abc");
    text = ivm__resize(&memory, text, 4, 4000);
    cr_assert_str_eq(text, "abc");
    cr_assert_eq(memory.bytes_held, 4000);
    ivm__release(&memory, text, 4000);
    cr_assert_eq(memory.bytes_held, 0);
}

Test(engine_memory, failed_calls_change_nothing, .init = begin)
{
    void *block = ivm__allocate(&memory, 16);
    memset(block, 1, 16);
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__allocate(&memory, 8));
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__allocate_zeroed(&memory, 8));
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__text_copy(&memory, "x", 1));
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__resize(&memory, block, 16, 32));
    cr_assert_eq(memory.bytes_held, 16);
    cr_assert_eq(((char *)block)[15], 1);
    ivm__release(&memory, block, 16);
    check_clean();
}

static uint64_t refused(uint64_t bytes_max, uint64_t bytes_asked)
{
    ivm__refusal refusal = ivm__memory_refusal();
    cr_assert_eq(refusal.bytes_max, bytes_max);
    cr_assert_eq(refusal.bytes_asked, bytes_asked);
    return refusal.bytes_held;
}

Test(engine_memory, the_limit_is_what_bytes_held_may_be, .init = begin)
{
    ivm__memory_limit(&memory, 100);
    void *a = ivm__allocate(&memory, 60);
    cr_assert_null(ivm__allocate(&memory, 41));
    cr_assert_eq(refused(100, 41), 60);
    cr_assert_null(ivm__allocate(&memory, SIZE_MAX));
    cr_assert_null(ivm__resize(&memory, a, 60, 101));
    cr_assert_eq(refused(100, 41), 60);
    cr_assert_eq(memory.bytes_held, 60);
    cr_assert_eq(counted.bytes, 60, "the allocator was not asked");
    void *b = ivm__allocate(&memory, 40);
    cr_assert_not_null(b, "up to the last byte");
    cr_assert_null(ivm__allocate(&memory, 0));
    ivm__release(&memory, b, 40);
    a = ivm__resize(&memory, a, 60, 100);
    cr_assert_not_null(a);
    ivm__memory_limit(&memory, 50);
    cr_assert_null(ivm__resize(&memory, a, 100, 101));
    cr_assert_eq(refused(50, 1), 100, "more is held than the new limit");
    a = ivm__resize(&memory, a, 100, 80);
    cr_assert_not_null(a, "what shrinks goes");
    cr_assert_null(ivm__allocate(&memory, 1));
    ivm__memory_limit(&memory, 0);
    b = ivm__allocate(&memory, 1000);
    cr_assert_not_null(b);
    ivm__release(&memory, b, 1000);
    ivm__release(&memory, a, 80);
    check_clean();
}

Test(engine_memory, who_gave_no_memory_is_told, .init = begin)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm__memory_limit(&memory, 100);
    cr_assert_null(ivm__allocate(&memory, 101));
    cr_assert_eq(ivm__fail_memory(&error), IVM_OUT_OF_MEMORY);
    cr_assert_str_eq(error.message, "out of memory: the engine's limit is 100 bytes, it holds 0, and 101 more were wanted");
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__allocate(&memory, 100));
    cr_assert_eq(ivm__fail_memory(&error), IVM_OUT_OF_MEMORY);
    cr_assert_str_eq(error.message, "out of memory");
    void *block = ivm__allocate(&memory, 50);
    cr_assert_null(ivm__resize(&memory, block, 50, 101));
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__resize(&memory, block, 50, 100));
    cr_assert_eq(memory.bytes_held, 50);
    cr_assert_eq(refused(0, 0), 0);
    ivm__release(&memory, block, 50);
    check_clean();
}

Test(engine_memory, grow_doubles_and_keeps, .init = begin)
{
    uint32_t *items = NULL;
    uint32_t capacity = 0;
    uint64_t calls = counted.calls;
    for (uint32_t i = 0; i < 10000; i++) {
        cr_assert_eq(ivm__grow(&memory, (void **)&items, &capacity, (uint64_t)i + 1, sizeof *items), IVM_OK);
        items[i] = i * 3;
    }
    cr_assert_leq(counted.calls - calls, 12);
    for (uint32_t i = 0; i < 10000; i++) {
        cr_assert_eq(items[i], i * 3);
    }
    test_allocator_arm(&counted, 1);
    uint32_t before = capacity, *same = items;
    cr_assert_eq(ivm__grow(&memory, (void **)&items, &capacity, (uint64_t)capacity + 1, sizeof *items), IVM_OUT_OF_MEMORY);
    cr_assert(capacity == before && items == same);
    cr_assert_eq(ivm__grow(&memory, (void **)&items, &capacity, (uint64_t)UINT32_MAX + 1, sizeof *items), IVM_OUT_OF_MEMORY);
    cr_assert_eq(ivm__grow(&memory, (void **)&items, &capacity, UINT32_MAX, SIZE_MAX / 2), IVM_OUT_OF_MEMORY);
    ivm__release(&memory, items, capacity * sizeof *items);
    check_clean();
}

Test(engine_memory, arena_is_aligned_and_apart, .init = begin)
{
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    uint8_t *blocks[600];
    for (size_t i = 0; i < 600; i++) {
        blocks[i] = ivm__arena_allocate(&arena, i * 7);
        cr_assert_eq((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], (int)(i & 0xff), i * 7);
    }
    for (size_t i = 0; i < 600; i++) {
        for (size_t j = 0; j < i * 7; j++) {
            cr_assert_eq(blocks[i][j], i & 0xff);
        }
    }
    cr_assert_null(ivm__arena_allocate(&arena, SIZE_MAX - 10));
    ivm__arena_deinit(&arena);
    check_clean();
}

static void step_like(ivm__arena *arena, uint32_t seed)
{
    ivm__arena_mark marks[8];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < 500; i++) {
        seed = seed * 1664525 + 1013904223;
        size_t size = (seed >> 8) % (i % 50 == 0 ? 3000000 : 20000);
        if (depth < 8 && seed >> 30 == 0) {
            marks[depth++] = ivm__arena_here(arena);
        } else if (depth > 0 && seed >> 30 == 1) {
            ivm__arena_back(arena, marks[--depth]);
        }
        uint8_t *bytes = ivm__arena_allocate(arena, size);
        cr_assert_not_null(bytes);
        if (size) {
            bytes[0] = bytes[size - 1] = 1;
        }
    }
    ivm__arena_reset(arena);
}

Test(engine_memory, arena_step_like_the_one_before_allocates_nothing, .init = begin)
{
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    for (uint32_t seed = 1; seed <= 20; seed++) {
        step_like(&arena, seed);
        step_like(&arena, seed); /* blocks found too small give way to larger ones */
        uint64_t calls = counted.calls, held = memory.bytes_held;
        step_like(&arena, seed);
        cr_assert_eq(counted.calls, calls, "seed %u", seed);
        cr_assert_eq(memory.bytes_held, held, "seed %u", seed);
    }
    ivm__arena_deinit(&arena);
    check_clean();
}

Test(engine_memory, arena_gives_back_what_steps_no_longer_use, .init = begin)
{
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    for (uint32_t i = 0; i < 40; i++) {
        cr_assert_not_null(ivm__arena_allocate(&arena, 1000000));
    }
    ivm__arena_reset(&arena);
    uint64_t large = memory.bytes_held;
    for (uint32_t step = 0; step < 200; step++) {
        cr_assert_not_null(ivm__arena_allocate(&arena, 1000000));
        cr_assert_not_null(ivm__arena_allocate(&arena, 1000000));
        ivm__arena_reset(&arena);
        cr_assert(step > 10 || memory.bytes_held == large, "not at once");
    }
    cr_assert_leq(memory.bytes_held, 2200000);
    cr_assert_gt(memory.bytes_held, 2000000);
    uint64_t calls = counted.calls;
    for (uint32_t step = 0; step < 200; step++) {
        cr_assert_not_null(ivm__arena_allocate(&arena, 1000000));
        cr_assert_not_null(ivm__arena_allocate(&arena, 1000000));
        ivm__arena_reset(&arena);
    }
    cr_assert_eq(counted.calls, calls, "steps that use as much keep it");
    for (uint32_t step = 0; step < 200; step++) {
        ivm__arena_reset(&arena);
    }
    cr_assert_eq(memory.bytes_held, 0);
    ivm__arena_deinit(&arena);
    check_clean();
}

Test(engine_memory, arena_goes_back_to_a_mark, .init = begin)
{
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    ivm__arena_mark start = ivm__arena_here(&arena);
    void *first = ivm__arena_allocate(&arena, 100);
    ivm__arena_mark mark = ivm__arena_here(&arena);
    void *second = ivm__arena_allocate(&arena, 100);
    cr_assert_not_null(ivm__arena_allocate(&arena, 10000000));
    ivm__arena_back(&arena, mark);
    cr_assert_eq(ivm__arena_allocate(&arena, 50), second);
    ivm__arena_back(&arena, start);
    cr_assert_eq(ivm__arena_allocate(&arena, 50), first);
    ivm__arena_deinit(&arena);
    check_clean();
}

Test(engine_memory, arena_without_memory_stays_as_it_was, .init = begin)
{
    ivm__arena arena;
    ivm__arena_init(&arena, &memory);
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__arena_allocate(&arena, 10));
    void *first = ivm__arena_allocate(&arena, 10);
    cr_assert_not_null(first);
    test_allocator_arm(&counted, 1);
    cr_assert_null(ivm__arena_allocate(&arena, 10000000));
    uint8_t *next = ivm__arena_allocate(&arena, 10);
    cr_assert(next > (uint8_t *)first && next <= (uint8_t *)first + 192, "goes on in the same block");
    ivm__arena_reset(&arena);
    cr_assert_eq(ivm__arena_allocate(&arena, 10), first);
    ivm__arena_deinit(&arena);
    check_clean();
}

Test(engine_status, every_code_has_a_name)
{
    for (int i = 0; i < IVM_STATUS_COUNT; i++) {
        const char *name = ivm_status_name((ivm_status)i);
        cr_assert_str_neq(name, "unknown");
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(name, ivm_status_name((ivm_status)j));
        }
    }
    cr_assert_str_eq(ivm_status_name(IVM_ROW_NOT_FOUND), "row_not_found");
    cr_assert_str_eq(ivm_status_name(IVM_STATUS_COUNT), "unknown");
    cr_assert_str_eq(ivm_status_name((ivm_status)-1), "unknown");
}

Test(engine_status, messages_are_one_line_and_cut)
{
    ivm_error error = IVM_ERROR_INIT;
    cr_assert_eq(ivm__fail(&error, IVM_IN_USE, "table %s: in use", "a\nb\t\x7f"), IVM_IN_USE);
    cr_assert_eq(error.status, IVM_IN_USE);
    cr_assert_str_eq(error.message, "table a b  : in use");
    cr_assert_eq(ivm__fail(NULL, IVM_IO, "%d", 1), IVM_IO);
    cr_assert_eq(ivm__fail_memory(&error), IVM_OUT_OF_MEMORY);
    cr_assert_str_eq(error.message, "out of memory");

    char name[400];
    memset(name, 'x', sizeof name);
    name[399] = 0;
    cr_assert_eq(ivm__fail(&error, IVM_IO, "%s", name), IVM_IO);
    cr_assert_eq(strlen(error.message), IVM_ERROR_MESSAGE_SIZE - 1);
}

Test(engine_status, messages_never_end_within_a_character)
{
    static const char *const characters[] = { "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8c\xb2" };
    ivm_error error = IVM_ERROR_INIT;
    for (size_t c = 0; c < 3; c++) {
        size_t size = strlen(characters[c]);
        for (int before = 245; before < 260; before++) {
            char name[400];
            memset(name, 'x', (size_t)before);
            strcpy(name + before, characters[c]);
            strcat(name, "yyyyyyyyyyyyyyyyyyyyyyyy");
            cr_assert_eq(ivm__fail(&error, IVM_IO, "%s", name), IVM_IO);
            bool fits = (size_t)before + size <= IVM_ERROR_MESSAGE_SIZE - 1;
            size_t expected = fits || before >= IVM_ERROR_MESSAGE_SIZE - 1 ? IVM_ERROR_MESSAGE_SIZE - 1 : (size_t)before;
            cr_assert_eq(strlen(error.message), expected, "%zu bytes at %d", size, before);
        }
    }
}

/* ---- Blocks that go a piece at a time ----------------------------------------------------------------------------------------------- */

static size_t cuts, moves_from, blocks_left; /* blocks that the allocator gives out at once */

/* In place, as an allocator cuts a large block, until so many cuts; then it moves what is left. */
static void *cut_resize(void *context, void *old, size_t size_old, size_t size_new)
{
    (void)context;
    if (++cuts < moves_from && size_new < size_old) {
        return old;
    }
    void *moved = size_new < size_old || blocks_left ? malloc(size_new) : NULL;
    if (!moved) {
        return NULL;
    }
    memcpy(moved, old, size_old < size_new ? size_old : size_new);
    free(old);
    return moved;
}

static void *cut_allocate(void *context, size_t size)
{
    (void)context;
    return blocks_left && blocks_left-- ? malloc(size) : NULL;
}

static void cut_release(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    free(block);
    blocks_left++;
}

static void cut_begin(size_t moves)
{
    const ivm_allocator functions = { cut_allocate, cut_resize, cut_release, NULL };
    cuts = 0;
    moves_from = moves;
    blocks_left = 100;
    ivm__memory_init(&memory, &functions);
}

Test(engine_memory, a_large_block_goes_a_piece_at_a_time)
{
    cut_begin(SIZE_MAX);
    size_t size = 5 * IVM__LEAVING_MIN;
    void *small = ivm__allocate(&memory, IVM__LEAVING_MIN - 1), *large = ivm__allocate(&memory, size),
         *other = ivm__allocate(&memory, size);
    ivm__release_slowly(&memory, small, IVM__LEAVING_MIN - 1);
    ivm__release_slowly(&memory, NULL, 0);
    cr_assert_eq(memory.bytes_held, 2 * size);
    ivm__release_slowly(&memory, large, size);
    cr_assert_eq(memory.bytes_held, 2 * size);
    for (size_t step = 1; step < size / IVM__LEAVING_PIECE; step++) {
        ivm__leaving_step(&memory);
        cr_assert_eq(memory.bytes_held, 2 * size - step * IVM__LEAVING_PIECE, "step %zu", step);
    }
    ivm__release_slowly(&memory, other, size);
    ivm__leaving_step(&memory);
    cr_assert_eq(memory.bytes_held, size - IVM__LEAVING_PIECE);
    cr_assert(ivm__leaving_end(&memory) && !ivm__leaving_end(&memory));
    cr_assert_eq(memory.bytes_held, 0);
}

Test(engine_memory, a_block_that_is_moved_when_it_is_cut_goes_at_once)
{
    cut_begin(3);
    size_t size = 5 * IVM__LEAVING_MIN;
    ivm__release_slowly(&memory, ivm__allocate(&memory, size), size);
    for (int step = 0; step < 3; step++) {
        ivm__leaving_step(&memory);
    }
    cr_assert_eq(cuts, 3);
    cr_assert_eq(memory.bytes_held, 0);
}

Test(engine_memory, what_is_leaving_does_not_meet_the_limit)
{
    cut_begin(SIZE_MAX);
    size_t size = 5 * IVM__LEAVING_MIN;
    ivm__memory_limit(&memory, size + 100);
    ivm__release_slowly(&memory, ivm__allocate(&memory, size), size);
    void *next = ivm__allocate(&memory, size);
    cr_assert(next && memory.bytes_held == size);
    cr_assert_null(ivm__allocate(&memory, size));
    ivm__release(&memory, next, size);
}

/* Nor does an allocator lack what is only on its way back to it. */
Test(engine_memory, what_is_leaving_goes_where_the_allocator_has_no_more)
{
    cut_begin(SIZE_MAX);
    size_t size = 5 * IVM__LEAVING_MIN;
    blocks_left = 1;
    ivm__release_slowly(&memory, ivm__allocate(&memory, size), size);
    void *next = ivm__allocate(&memory, 100);
    cr_assert(next && memory.bytes_held == 100);
    cr_assert_null(ivm__allocate(&memory, 100));
    blocks_left = 1;
    ivm__release_slowly(&memory, ivm__allocate(&memory, size), size);
    next = ivm__resize(&memory, next, 100, 200);
    cr_assert(next && memory.bytes_held == 200);
    ivm__release(&memory, next, 200);
}

/* Else pushes of many rows would leave more and more behind: they grow what they fill sooner than it goes a piece at a time. */
Test(engine_memory, what_grew_goes_at_once_where_that_takes_no_longer_than_the_push)
{
    cut_begin(SIZE_MAX);
    size_t size = 5 * IVM__LEAVING_MIN;
    uint64_t slots = size / IVM__CLEARED_FOR_SLOT;
    ivm__growth_release(&memory, ivm__allocate(&memory, size), size, IVM__MOVED_ALL);
    cr_assert_eq(memory.bytes_held, 0);
    ivm__growth_release(&memory, ivm__allocate(&memory, size), size, slots);
    cr_assert_eq(memory.bytes_held, 0);
    ivm__growth_release(&memory, ivm__allocate(&memory, size), size, slots - 1);
    cr_assert_eq(memory.bytes_held, size);
    cr_assert(ivm__leaving_end(&memory));
}
