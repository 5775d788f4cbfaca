/* Memory of the oracle; see naive.h. */
#include "naive.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)32 << 10)

struct naive_block {
    struct naive_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static void *must(void *memory)
{
    if (!memory) {
        fputs("naive: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void *naive_take(naive_pool *pool, size_t size)
{
    size = (size + 16) & ~(size_t)15;
    struct naive_block *block = pool->blocks;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = must(calloc(1, sizeof *block + room));
        block->size = room;
        block->next = pool->blocks;
        pool->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

char *naive_text(naive_pool *pool, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    char *text = naive_take(pool, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

void naive_pool_free(naive_pool *pool)
{
    for (struct naive_block *block = pool->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    pool->blocks = NULL;
}

void *naive_grow(void *items, size_t count, size_t size)
{
    return must(realloc(items, (count ? count : 1) * size));
}
