/* Memory: every byte an engine holds passes here and is counted as asked for, before it is asked for, so that bytes_held is exact and never passes
 * the limit; arenas take large blocks from it and give them out by bumping. Cost: one exchange a block; an arena's allocation is an addition and a
 * comparison.
 *
 * By default memory is malloc's, and so jemalloc's where the host process runs on it: the library itself links none. */
#include "memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#define ARENA_GAP 64u /* left poisoned behind each allocation */
#else
#define POISON(at, size) ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#define ARENA_GAP 0u
#endif

#define ARENA_BLOCK_MIN ((size_t)64 << 10)
#define ARENA_BLOCK_MAX ((size_t)1 << 20) /* unless one allocation is larger */
#define ARENA_RESETS_MAX 64u              /* until blocks unused all the while are given back */
#define ARRAY_ITEMS_MIN 8u
#define LINES_PADDING (IVM__LINE_BYTES - 16) /* that an allocator's blocks of 16 bytes' alignment need to hold whole lines */
#define LINES_EXACT UINT8_MAX                /* `before` of a block without */

/* ---- Blocks ---------------------------------------------------------------------------------------------------------------------- */

void *ivm__malloc_allocate(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

void *ivm__malloc_resize(void *context, void *old, size_t size_old, size_t size_new)
{
    (void)context;
    (void)size_old;
    return realloc(old, size_new);
}

void ivm__malloc_release(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    free(block);
}

void ivm__memory_init(ivm__memory *memory, const ivm_allocator *allocator)
{
    static const ivm_allocator by_malloc = { IVM__MALLOC };
    bool own = allocator && allocator->allocate;
    assert(!own || (allocator->resize && allocator->release));
    memory->allocator = own ? *allocator : by_malloc;
    atomic_init(&memory->bytes_held, 0);
    atomic_init(&memory->bytes_max, UINT64_MAX);
    atomic_init(&memory->lines_padded, false);
    atomic_init(&memory->leaving, NULL);
}

void ivm__memory_limit(ivm__memory *memory, uint64_t bytes_max)
{
    atomic_store_explicit(&memory->bytes_max, bytes_max ? bytes_max : UINT64_MAX, memory_order_relaxed);
}

static _Thread_local ivm__refusal refusal;

ivm__refusal ivm__memory_refusal(void)
{
    return refusal;
}

/* An allocator is never asked for nothing: what it would answer is not said. */
static size_t size_asked(size_t size)
{
    return size ? size : 1;
}

/* Counts bytes that will be asked for. False: they would pass the limit. */
static bool held_try(ivm__memory *memory, size_t size)
{
    uint64_t most = atomic_load_explicit(&memory->bytes_max, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&memory->bytes_held, memory_order_relaxed);
    do {
        if (ivm__unlikely(held > most || size > most - held)) {
            refusal = (ivm__refusal){ most, held, size };
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&memory->bytes_held, &held, held + size, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static bool held_add(ivm__memory *memory, size_t size)
{
    bool added = held_try(memory, size);
    if (ivm__unlikely(!added) && ivm__leaving_end(memory)) {
        added = held_try(memory, size);
    }
    return added;
}

static void held_subtract(ivm__memory *memory, size_t size)
{
    uint64_t before = atomic_fetch_sub_explicit(&memory->bytes_held, size, memory_order_relaxed);
    assert(before >= size);
    (void)before;
}

/* Bytes that were counted and that the allocator would not give. */
static void held_refuse(ivm__memory *memory, size_t size)
{
    held_subtract(memory, size);
    refusal = (ivm__refusal){ 0 };
}

void *ivm__allocate(ivm__memory *memory, size_t size)
{
    size = size_asked(size);
    if (!held_add(memory, size)) {
        return NULL;
    }
    void *block = memory->allocator.allocate(memory->allocator.context, size);
    if (ivm__unlikely(!block) && ivm__leaving_end(memory)) {
        block = memory->allocator.allocate(memory->allocator.context, size);
    }
    assert(((uintptr_t)block & (size < 16 ? 7 : 15)) == 0);
    if (!block) {
        held_refuse(memory, size);
    }
    return block;
}

void *ivm__allocate_zeroed(ivm__memory *memory, size_t size)
{
    void *block = ivm__allocate(memory, size);
    if (block) {
        memset(block, 0, size);
    }
    return block;
}

void *ivm__resize(ivm__memory *memory, void *old, size_t size_old, size_t size_new)
{
    if (!old) {
        return ivm__allocate(memory, size_new);
    }
    size_old = size_asked(size_old);
    size_new = size_asked(size_new);
    size_t more = size_new > size_old ? size_new - size_old : 0;
    if (more && !held_add(memory, more)) {
        return NULL;
    }
    void *block = memory->allocator.resize(memory->allocator.context, old, size_old, size_new);
    if (ivm__unlikely(!block) && more && ivm__leaving_end(memory)) {
        block = memory->allocator.resize(memory->allocator.context, old, size_old, size_new);
    }
    if (!block) {
        held_refuse(memory, more);
    } else if (size_new < size_old) {
        held_subtract(memory, size_old - size_new);
    }
    return block;
}

uint64_t ivm__bytes_fitting(uint64_t bytes)
{
    uint32_t step = bytes <= 64 ? 0 : 61 - (uint32_t)__builtin_clzll(bytes - 1);
    return bytes <= 64 ? bytes : (((bytes - 1) >> step) + 1) << step;
}

void ivm__release(ivm__memory *memory, void *block, size_t size)
{
    if (!block) {
        return;
    }
    size = size_asked(size);
    memory->allocator.release(memory->allocator.context, block, size);
    held_subtract(memory, size);
}

/* Lies at the beginning of the block itself. Whoever takes the list has it alone, on whatever thread. */
typedef struct ivm__leaving {
    struct ivm__leaving *next;
    size_t size;
} ivm__leaving;

static void leaving_add(ivm__memory *memory, ivm__leaving *block)
{
    block->next = atomic_load_explicit(&memory->leaving, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&memory->leaving, &block->next, block, memory_order_release, memory_order_relaxed)) {
    }
}

void ivm__release_slowly(ivm__memory *memory, void *block, size_t size)
{
    if (!block || size < IVM__LEAVING_MIN) {
        ivm__release(memory, block, size);
        return;
    }
    ivm__leaving *leaving = block;
    leaving->size = size;
    leaving_add(memory, leaving);
}

/* Where the allocator does not cut the block where it lies, all of it goes. Returns what is left of it. */
static ivm__leaving *leaving_cut(ivm__memory *memory, ivm__leaving *block)
{
    size_t size = block->size, kept = size - IVM__LEAVING_PIECE;
    if (size >= 2 * IVM__LEAVING_PIECE) {
        ivm__leaving *cut = ivm__resize(memory, block, size, kept);
        size = cut ? kept : size;
        if (cut == block) {
            block->size = kept;
            return block;
        }
        block = cut ? cut : block;
    }
    ivm__release(memory, block, size);
    return NULL;
}

void ivm__leaving_step(ivm__memory *memory)
{
    if (ivm__likely(!atomic_load_explicit(&memory->leaving, memory_order_relaxed))) {
        return;
    }
    ivm__leaving *first = atomic_exchange_explicit(&memory->leaving, NULL, memory_order_acquire);
    for (ivm__leaving *block = first, *next; block; block = next) {
        next = block->next;
        block = leaving_cut(memory, block);
        if (block) {
            leaving_add(memory, block);
        }
    }
}

bool ivm__leaving_end(ivm__memory *memory)
{
    ivm__leaving *first = atomic_exchange_explicit(&memory->leaving, NULL, memory_order_acquire);
    for (ivm__leaving *block = first, *next; block; block = next) {
        next = block->next;
        ivm__release(memory, block, block->size);
    }
    return first != NULL;
}

/* What an allocator did once it is taken to do again: it is not tried a second time. */
static void *lines_exact(ivm__memory *memory, size_t size)
{
    if (atomic_load_explicit(&memory->lines_padded, memory_order_relaxed)) {
        return NULL;
    }
    void *block = ivm__allocate(memory, size);
    if (((uintptr_t)block & (IVM__LINE_BYTES - 1)) == 0) {
        return block;
    }
    ivm__release(memory, block, size);
    atomic_store_explicit(&memory->lines_padded, true, memory_order_relaxed);
    return NULL;
}

void *ivm__lines_allocate(ivm__memory *memory, size_t size, uint8_t *before)
{
    assert(size > 0 && size % IVM__LINE_BYTES == 0);
    void *lines = lines_exact(memory, size);
    *before = LINES_EXACT;
    if (lines || !atomic_load_explicit(&memory->lines_padded, memory_order_relaxed)) {
        return lines;
    }
    uint8_t *block = ivm__allocate(memory, size + LINES_PADDING);
    if (!block) {
        return NULL;
    }
    *before = (uint8_t)(-(uintptr_t)block & (IVM__LINE_BYTES - 1));
    return block + *before;
}

void ivm__lines_release(ivm__memory *memory, void *lines, size_t size, uint8_t before)
{
    if (lines && before == LINES_EXACT) {
        ivm__release(memory, lines, size);
    } else if (lines) {
        ivm__release(memory, (uint8_t *)lines - before, size + LINES_PADDING);
    }
}

size_t ivm__lines_padding(uint8_t before)
{
    return before == LINES_EXACT ? 0 : LINES_PADDING;
}

char *ivm__text_copy(ivm__memory *memory, const char *text, size_t size)
{
    char *copy = size < SIZE_MAX ? ivm__allocate(memory, size + 1) : NULL;
    if (copy) {
        if (size) {
            memcpy(copy, text, size);
        }
        copy[size] = 0;
    }
    return copy;
}

ivm_status ivm__grow(ivm__memory *memory, void **array, uint32_t *capacity, uint64_t needed, size_t item_size)
{
    assert(item_size > 0);
    if (needed <= *capacity) {
        return IVM_OK;
    }
    if (needed > UINT32_MAX) {
        return IVM_OUT_OF_MEMORY;
    }
    uint64_t wanted = (uint64_t)*capacity * 2;
    wanted = wanted < ARRAY_ITEMS_MIN ? ARRAY_ITEMS_MIN : wanted;
    wanted = wanted < needed ? needed : wanted;
    wanted = wanted > UINT32_MAX ? UINT32_MAX : wanted;
    size_t size;
    if (__builtin_mul_overflow((size_t)wanted, item_size, &size)) {
        return IVM_OUT_OF_MEMORY;
    }
    void *old;
    memcpy(&old, array, sizeof old); /* it is a pointer to some other type */
    void *grown = ivm__resize(memory, old, *capacity * item_size, size);
    if (!grown) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = (uint32_t)wanted;
    return IVM_OK;
}

/* ---- Arenas ---------------------------------------------------------------------------------------------------------------------- */

void ivm__arena_init(ivm__arena *arena, ivm__memory *memory)
{
    *arena = (ivm__arena){ .memory = memory };
}

static void block_free(ivm__arena *arena, ivm__arena_block *block)
{
    UNPOISON(block->bytes, block->capacity);
    ivm__release(arena->memory, block, block->size);
}

static void blocks_free(ivm__arena *arena, ivm__arena_block *block)
{
    while (block) {
        ivm__arena_block *next = block->next;
        block_free(arena, block);
        block = next;
    }
}

void ivm__arena_deinit(ivm__arena *arena)
{
    blocks_free(arena, arena->first);
    *arena = (ivm__arena){ .memory = arena->memory };
}

static ivm__arena_block *block_make(ivm__arena *arena, size_t capacity)
{
    size_t size = sizeof(ivm__arena_block) + IVM__ARENA_ALIGNMENT + capacity;
    ivm__arena_block *block = ivm__allocate(arena->memory, size);
    if (block) {
        uintptr_t bytes = (uintptr_t)(block + 1);
        uintptr_t aligned = (bytes + IVM__ARENA_ALIGNMENT - 1) & ~(uintptr_t)(IVM__ARENA_ALIGNMENT - 1);
        *block = (ivm__arena_block){ .bytes = (uint8_t *)(block + 1) + (aligned - bytes), .capacity = capacity, .size = size };
        POISON(block->bytes, block->capacity);
    }
    return block;
}

/* Makes the block after the current one, of `size` bytes at least, the current one. */
static bool block_enter(ivm__arena *arena, size_t size)
{
    ivm__arena_block **place = arena->current ? &arena->current->next : &arena->first;
    ivm__arena_block *next = *place;
    if (!next || next->capacity < size) {
        size_t capacity = arena->current ? arena->current->capacity * 2 : ARENA_BLOCK_MIN;
        capacity = capacity > ARENA_BLOCK_MAX ? ARENA_BLOCK_MAX : capacity;
        ivm__arena_block *block = block_make(arena, capacity < size ? size : capacity);
        if (!block) {
            return false;
        }
        block->number = arena->current ? arena->current->number + 1 : 0;
        if (next) {
            block->next = next->next;
            arena->furthest = arena->furthest == next ? block : arena->furthest;
            block_free(arena, next);
        }
        *place = block;
    }
    arena->current = *place;
    arena->used = 0;
    if (!arena->furthest || arena->furthest->number < arena->current->number) {
        arena->furthest = arena->current;
    }
    return true;
}

void *ivm__arena_allocate_entering(ivm__arena *arena, size_t size)
{
    if (ivm__unlikely(size > SIZE_MAX / 2)) {
        return NULL;
    }
    size_t taken = (size_asked(size) + ARENA_GAP + IVM__ARENA_ALIGNMENT - 1) & ~(size_t)(IVM__ARENA_ALIGNMENT - 1);
    if (ivm__unlikely(!arena->current || arena->current->capacity - arena->used < taken) && !block_enter(arena, taken)) {
        return NULL;
    }
    void *bytes = arena->current->bytes + arena->used;
    arena->used += taken;
    UNPOISON(bytes, size);
    return bytes;
}

void ivm__arena_reset(ivm__arena *arena)
{
    ivm__arena_back(arena, (ivm__arena_mark){ NULL, 0 });
    if (++arena->resets < ARENA_RESETS_MAX) {
        return;
    }
    ivm__arena_block **unused = arena->furthest ? &arena->furthest->next : &arena->first;
    blocks_free(arena, *unused);
    *unused = NULL;
    arena->furthest = NULL;
    arena->resets = 0;
}

ivm__arena_mark ivm__arena_here(const ivm__arena *arena)
{
    return (ivm__arena_mark){ arena->current, arena->used };
}

#if defined(__SANITIZE_ADDRESS__)
static void poison_since(const ivm__arena *arena, ivm__arena_mark mark)
{
    if (mark.block) {
        POISON(mark.block->bytes + mark.used, mark.block->capacity - mark.used);
    }
    for (ivm__arena_block *block = mark.block; block != arena->current;) {
        block = block ? block->next : arena->first;
        POISON(block->bytes, block->capacity);
    }
}
#endif

void ivm__arena_back(ivm__arena *arena, ivm__arena_mark mark)
{
    assert(!mark.block || arena->current);
    assert(mark.block != arena->current || mark.used <= arena->used);
#if defined(__SANITIZE_ADDRESS__)
    poison_since(arena, mark);
#endif
    arena->current = mark.block;
    arena->used = mark.used;
}
