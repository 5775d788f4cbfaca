/* Streams taken apart and put together again with right hashes, for tests of what hashes would find out first. Uncompressed ones. */
#ifndef TEST_PLAN_CHECKPOINT_BYTES_H
#define TEST_PLAN_CHECKPOINT_BYTES_H

#include "block.h"
#include "checkpoint_case.h"

/* A block of a stream: where its content lies. kind 0: none; the end is none either. */
typedef struct bytes_block {
    uint32_t kind, ordinal, part;
    size_t from, size;
} bytes_block;

bytes_block bytes_first(const tape *it);
bytes_block bytes_next(const tape *it, bytes_block at);
/* The first block of a section, which must be there. */
bytes_block bytes_find(const tape *it, uint32_t kind, uint32_t ordinal, uint32_t part);
/* In the block's content, at this place, takes so many bytes out and puts so many zeros in. */
void bytes_splice(tape *it, bytes_block at, size_t place, size_t out, size_t in);
/* Every hash, the fingerprint and the numbers in the end block are made those of what is there. */
void bytes_rehash(tape *it);
void bytes_copy(tape *to, const tape *from);

#endif
