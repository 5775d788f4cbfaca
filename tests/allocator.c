/* The allocator for tests: malloc with 16 bytes before each block that hold its size and a mark. */
#include "allocator.h"

#include "figure.h"

#include <stdlib.h>
#include <string.h>

#define MARK_LIVE 0x6c6976652d626c6bull
#define MARK_DEAD 0x646561642d626c6bull

typedef struct block_head {
    uint64_t size;
    uint64_t mark;
} block_head;
_Static_assert(sizeof(block_head) == 16, "keeps the alignment of malloc");

void test_allocator_init(test_allocator *allocator)
{
    memset(allocator, 0, sizeof *allocator);
}

static bool call_fails(test_allocator *allocator, size_t size)
{
    atomic_fetch_add(&allocator->calls, 1);
    if (size == 0) {
        atomic_fetch_add(&allocator->faults, 1);
    }
    if (atomic_load(&allocator->bell) > 0 && atomic_fetch_sub(&allocator->bell, 1) == 1) {
        allocator->ring(allocator->ring_context);
    }
    if (atomic_load(&allocator->fuse) > 0 && atomic_fetch_sub(&allocator->fuse, 1) == 1) {
        atomic_store(&allocator->failed, true);
        return true;
    }
    return false;
}

static void *allocate(void *context, size_t size)
{
    test_allocator *allocator = context;
    block_head *head = call_fails(allocator, size) || size > SIZE_MAX - sizeof *head ? NULL : malloc(sizeof *head + size);
    if (!head) {
        return NULL;
    }
    *head = (block_head){ size, MARK_LIVE };
    memset(head + 1, 0xa5, size); /* so that nothing can lean on zeros */
    atomic_fetch_add(&allocator->blocks, 1);
    atomic_fetch_add(&allocator->bytes, (int64_t)size);
    atomic_fetch_add(&allocator->asked, size);
    return head + 1;
}

static void release(void *context, void *memory, size_t size)
{
    test_allocator *allocator = context;
    block_head *head = memory ? (block_head *)memory - 1 : NULL;
    if (!head || head->mark != MARK_LIVE || head->size != size) {
        atomic_fetch_add(&allocator->faults, 1);
        return;
    }
    head->mark = MARK_DEAD;
    atomic_fetch_sub(&allocator->blocks, 1);
    atomic_fetch_sub(&allocator->bytes, (int64_t)size);
    free(head);
}

/* Always moves, so that a pointer kept by mistake is found out. */
static void *resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    void *moved = allocate(context, size_new);
    if (moved && memory) {
        memcpy(moved, memory, size_old < size_new ? size_old : size_new);
        release(context, memory, size_old);
    }
    return moved;
}

ivm_allocator test_allocator_functions(test_allocator *allocator)
{
    return (ivm_allocator){ .allocate = allocate, .resize = resize, .release = release, .context = allocator };
}

void test_allocator_arm(test_allocator *allocator, uint64_t n)
{
    atomic_store(&allocator->failed, false);
    atomic_store(&allocator->fuse, (int64_t)n);
}

bool test_allocator_disarm(test_allocator *allocator)
{
    atomic_store(&allocator->fuse, 0);
    bool failed = atomic_load(&allocator->failed);
    if (failed) {
        figure_add("allocations failed", 1);
    }
    return failed;
}

void test_allocator_ring(test_allocator *allocator, uint64_t n, void (*ring)(void *context), void *context)
{
    allocator->ring = ring;
    allocator->ring_context = context;
    atomic_store(&allocator->bell, (int64_t)n);
}

bool test_allocator_unring(test_allocator *allocator)
{
    return atomic_exchange(&allocator->bell, 0) <= 0;
}

bool test_allocator_is_clean(const test_allocator *allocator)
{
    return atomic_load(&allocator->blocks) == 0 && atomic_load(&allocator->bytes) == 0 && atomic_load(&allocator->faults) == 0;
}
