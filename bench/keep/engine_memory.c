/* An engine's memory; see engine_memory.h. Without a thread cache, so that what is freed is at once not counted any more. */
#include "engine_memory.h"

#include "option.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef IVM_BENCH_JEMALLOC
#include <jemalloc/jemalloc.h>

static unsigned arena;

static void must(int failed)
{
    if (failed) {
        exit(usage_error("jemalloc gives no arena to count"));
    }
}

static void *allocate(void *context, size_t size)
{
    (void)context;
    return mallocx(size, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
}

static void *resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    (void)context;
    (void)size_old;
    return rallocx(memory, size_new, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
}

static void release(void *context, void *memory, size_t size)
{
    (void)context;
    sdallocx(memory, size, MALLOCX_TCACHE_NONE);
}

ivm_allocator engine_memory_open(void)
{
    size_t size = sizeof arena;
    must(mallctl("arenas.create", &arena, &size, NULL, 0));
    return (ivm_allocator){ allocate, resize, release, NULL };
}

static uint64_t arena_statistic(const char *kind)
{
    char name[64];
    size_t bytes, size = sizeof bytes;
    snprintf(name, sizeof name, "stats.arenas.%u.%s.allocated", arena, kind);
    must(mallctl(name, &bytes, &size, NULL, 0));
    return bytes;
}

uint64_t engine_memory_bytes(void)
{
    uint64_t epoch = 1;
    size_t size = sizeof epoch;
    must(mallctl("epoch", &epoch, &size, &epoch, size));
    return arena_statistic("small") + arena_statistic("large");
}

#else

static uint64_t held;

static void *allocate(void *context, size_t size)
{
    (void)context;
    void *memory = malloc(size);
    held += memory ? size : 0;
    return memory;
}

static void *resize(void *context, void *memory, size_t size_old, size_t size_new)
{
    (void)context;
    void *grown = realloc(memory, size_new);
    held += grown ? size_new - size_old : 0;
    return grown;
}

static void release(void *context, void *memory, size_t size)
{
    (void)context;
    free(memory);
    held -= size;
}

ivm_allocator engine_memory_open(void)
{
    held = 0;
    return (ivm_allocator){ allocate, resize, release, NULL };
}

uint64_t engine_memory_bytes(void)
{
    return held;
}

#endif
