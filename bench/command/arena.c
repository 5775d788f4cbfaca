/* Arenas and checked allocation; see arena.h. Blocks of 64 KB, larger ones for larger pieces. */
#include "arena.h"

#include "option.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 << 10)

struct arena_block {
    arena_block *next;
    size_t used, size;
    alignas(16) char bytes[];
};

static void *must(void *memory)
{
    if (!memory) {
        exit(usage_error("out of memory"));
    }
    return memory;
}

void *memory_take(size_t size)
{
    return must(calloc(1, size ? size : 1));
}

void *memory_grow(void *memory, size_t size)
{
    return must(realloc(memory, size ? size : 1));
}

void *memory_room(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity ? *capacity * 2 : 16;
    return memory_grow(items, *capacity * item_size);
}

void *arena_take(piece_arena *arena, size_t size)
{
    arena_block *block = arena->blocks;
    size = (size + 15) & ~(size_t)15;
    if (!block || block->size - block->used < size) {
        size_t block_size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = memory_take(sizeof *block + block_size);
        block->size = block_size;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *piece = block->bytes + block->used;
    block->used += size;
    return piece;
}

char *arena_text(piece_arena *arena, const char *bytes, size_t size)
{
    char *text = arena_take(arena, size + 1);
    if (size) {
        memcpy(text, bytes, size);
    }
    return text;
}

void arena_clear(piece_arena *arena)
{
    while (arena->blocks) {
        arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
