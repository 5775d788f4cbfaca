/* Memory: an engine's allocator with exact accounting, an arena for what lives one step, and growing arrays. Nothing here aborts:
 * NULL or IVM_OUT_OF_MEMORY goes up by the road every error takes. */
#ifndef IVM__MEMORY_H
#define IVM__MEMORY_H

#include <stdatomic.h>

#include "ivm/engine.h"

#define ivm__likely(x) __builtin_expect(!!(x), 1)
#define ivm__unlikely(x) __builtin_expect(!!(x), 0)

typedef struct ivm__memory {
    ivm_allocator allocator;
    _Atomic uint64_t bytes_held;
    _Atomic uint64_t bytes_max;             /* bytes_held never passes it by what is asked for; UINT64_MAX: no limit */
    _Atomic bool lines_padded;              /* the allocator gave a block of whole cache lines that does not begin at one */
    uint64_t identities;                    /* given to codes so far (codes.h) */
    _Atomic(struct ivm__leaving *) leaving; /* blocks that are given back a piece at a time */
} ivm__memory;

/* malloc and friends, as an allocator. */
void *ivm__malloc_allocate(void *context, size_t size);
void *ivm__malloc_resize(void *context, void *old, size_t size_old, size_t size_new);
void ivm__malloc_release(void *context, void *block, size_t size);
#define IVM__MALLOC ivm__malloc_allocate, ivm__malloc_resize, ivm__malloc_release, NULL
/* `allocator` with NULL functions: those. No limit. */
void ivm__memory_init(ivm__memory *memory, const ivm_allocator *allocator);
/* From now on, on whatever thread; what is held already stays. 0: none. */
void ivm__memory_limit(ivm__memory *memory, uint64_t bytes_max);
/* Aligned to 16 bytes, to 8 where it is smaller, not cleared. NULL when there is none; size 0 gives a pointer that may be released. */
void *ivm__allocate(ivm__memory *memory, size_t size);
void *ivm__allocate_zeroed(ivm__memory *memory, size_t size);
void *ivm__resize(ivm__memory *memory, void *old, size_t size_old, size_t size_new);
void ivm__release(ivm__memory *memory, void *block, size_t size); /* NULL is fine */
/* The same for what a small push would else give back at once: a large block takes the system a millisecond for each 16 MB. It goes a piece at a time
 * from its end, one whenever a step ends, and counts as held until then, unless the limit on bytes is met or the allocator has no more: then all such
 * blocks go at once. */
void ivm__release_slowly(ivm__memory *memory, void *block, size_t size); /* NULL is fine */
#define IVM__LEAVING_MIN ((size_t)1 << 20)                               /* smaller ones go at once */
#define IVM__LEAVING_PIECE ((size_t)1 << 17)                             /* some 10 us */
void ivm__leaving_step(ivm__memory *memory);
bool ivm__leaving_end(ivm__memory *memory); /* false: there were none */
/* So many bytes or up to a quarter more: allocators keep large blocks in four sizes from one power of two to the next, and an array that grows by
 * itself does well to fill one. */
uint64_t ivm__bytes_fitting(uint64_t bytes);
/* A block of `size` bytes, a multiple of 64, that begins at a cache line. An allocator that keeps such blocks at lines by itself, as jemalloc does,
 * is asked for just that many bytes, so that a power of two fills its size class; any other for some more. *before: how far the block begins
 * before what is given, to be said when it is released. */
#define IVM__LINE_BYTES 64u
void *ivm__lines_allocate(ivm__memory *memory, size_t size, uint8_t *before);
void ivm__lines_release(ivm__memory *memory, void *lines, size_t size, uint8_t before); /* NULL is fine */
size_t ivm__lines_padding(uint8_t before);                                              /* what the block holds beyond its lines */
/* A copy with a null byte; released with size + 1. */
char *ivm__text_copy(ivm__memory *memory, const char *text, size_t size);

/* Makes room for `needed` items of item_size bytes: doubles at least. On failure nothing has changed. */
ivm_status ivm__grow(ivm__memory *memory, void **array, uint32_t *capacity, uint64_t needed, size_t item_size) IVM_MUST_CHECK;

#define IVM__ARENA_ALIGNMENT 64u
/* Blocks are used in the list's order; those behind the current one are free. A block too small for its turn is replaced by a larger
 * one, so that steps of one kind soon find all they need and the list never grows past the most blocks in use at once. */
typedef struct ivm__arena_block {
    struct ivm__arena_block *next;
    uint8_t *bytes; /* aligned, inside this block */
    size_t capacity;
    size_t size;   /* as allocated */
    size_t number; /* from the first, 0 */
} ivm__arena_block;

/* Bump allocation; reset keeps the blocks, so that a step like the one before allocates nothing. Blocks that many resets in a row found
 * unused are given back: one large step does not hold its memory for good. */
typedef struct ivm__arena {
    ivm__memory *memory;
    struct ivm__arena_block *first, *current;
    size_t used;                       /* in the current block */
    struct ivm__arena_block *furthest; /* that was in use since blocks were last given back; NULL: none */
    uint32_t resets;                   /* since then */
} ivm__arena;
typedef struct ivm__arena_mark {
    struct ivm__arena_block *block;
    size_t used;
} ivm__arena_mark;

void ivm__arena_init(ivm__arena *arena, ivm__memory *memory);
void ivm__arena_deinit(ivm__arena *arena);
void *ivm__arena_allocate_entering(ivm__arena *arena, size_t size); /* the same, where the next block may have to be entered */
/* Aligned to 64 bytes, not cleared. NULL: out of memory. */
static inline void *ivm__arena_allocate(ivm__arena *arena, size_t size)
{
#if !defined(__SANITIZE_ADDRESS__)
    const ivm__arena_block *block = arena->current;
    if (ivm__likely(block && size - 1 < block->capacity - arena->used)) {
        size_t taken = (size + IVM__ARENA_ALIGNMENT - 1) & ~(size_t)(IVM__ARENA_ALIGNMENT - 1);
        if (ivm__likely(taken <= block->capacity - arena->used)) {
            void *bytes = block->bytes + arena->used;
            arena->used += taken;
            return bytes;
        }
    }
#endif
    return ivm__arena_allocate_entering(arena, size);
}
void ivm__arena_reset(ivm__arena *arena);
ivm__arena_mark ivm__arena_here(const ivm__arena *arena);
void ivm__arena_back(ivm__arena *arena, ivm__arena_mark mark); /* gives up all allocated since */

/* Sets the error (NULL is fine) and returns the status: `return ivm__fail(error, IVM_OVERFLOW, "table %s: ...", name)`. */
ivm_status ivm__fail(ivm_error *error, ivm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A NULL where none may be: "ivm_table_find: name is NULL". */
ivm_status ivm__fail_null(ivm_error *error, const char *function, const char *argument);
/* A struct of a version after the last that is known: "ivm_table_create: options of version 2, at most 1 is known". */
ivm_status ivm__fail_version(ivm_error *error, const char *function, const char *argument, uint32_t version, uint32_t known);
/* Names the limit where that is why this thread was last given no memory. */
ivm_status ivm__fail_memory(ivm_error *error);

/* Why this thread was last given no memory: `bytes_max` 0: the allocator had none; else so many bytes more than were held would have passed that limit. */
typedef struct ivm__refusal {
    uint64_t bytes_max, bytes_held, bytes_asked;
} ivm__refusal;
ivm__refusal ivm__memory_refusal(void);

/* Only where nothing is owned. */
#define IVM_TRY(call)                                                                                                                      \
    do {                                                                                                                                   \
        ivm_status try_status_ = (call);                                                                                                   \
        if (try_status_ != IVM_OK) {                                                                                                       \
            return try_status_;                                                                                                            \
        }                                                                                                                                  \
    } while (0)

#endif
