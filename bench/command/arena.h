/* Memory for the command's own data: given out piece by piece, freed all at once. A process that gets none ends with one line and
 * exit code 2, so nothing here returns NULL. */
#ifndef IVM_BENCH_ARENA_H
#define IVM_BENCH_ARENA_H

#include <stddef.h>

typedef struct arena_block arena_block;
typedef struct piece_arena {
    arena_block *blocks; /* newest first; all zero is an empty arena */
} piece_arena;

void *arena_take(piece_arena *arena, size_t size);                    /* zeroed, aligned to 16 bytes */
char *arena_text(piece_arena *arena, const char *bytes, size_t size); /* a copy with a null byte behind it */
void arena_clear(piece_arena *arena);

void *memory_take(size_t size);               /* zeroed; free() releases it */
void *memory_grow(void *memory, size_t size); /* as realloc() */
/* Room for one more item: capacity doubles. */
void *memory_room(void *items, size_t count, size_t *capacity, size_t item_size);

#endif
