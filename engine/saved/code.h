/* Codes: short descriptions (a catalog, a plan, a record's head) made whole in memory and read in place, no copy and no stream. What there is much of, rows and
 * operators' state, goes through sinks and feeds instead: bytes.h.
 *
 *     number   little endian, of a size that both sides know          text   size (4 bytes), bytes, a null byte
 *
 * Both sides remember a failure instead of telling it at each call: the writer where memory ends, the reader where bytes end too soon or say what
 * they may not. Who reads a count in a loop looks at `failed` in it. */
#ifndef IVM__CODE_H
#define IVM__CODE_H

#include "memory.h"

typedef struct ivm__code {
    ivm__memory *memory;
    uint8_t *bytes;
    uint32_t size, capacity;
    bool failed; /* out of memory */
} ivm__code;

void ivm__code_number(ivm__code *code, uint64_t value, uint32_t bytes); /* the lowest 1 to 8 of it */
void ivm__code_text(ivm__code *code, const char *text);
void ivm__code_bytes(ivm__code *code, const void *bytes, size_t size); /* behind their size */
void ivm__code_raw(ivm__code *code, const void *bytes, size_t size);   /* alone */
void ivm__code_deinit(ivm__code *code);                                /* a zeroed one is fine */
/* The bytes in a block of just their size, taken out of the code. NULL: out of memory. */
uint8_t *ivm__code_take(ivm__code *code, uint32_t *size);

typedef struct ivm__decode {
    const uint8_t *at;
    size_t left;
    bool failed;
} ivm__decode;

uint64_t ivm__decode_number(ivm__decode *decode, uint32_t bytes); /* 0 once it has failed */
uint64_t ivm__decode_below(ivm__decode *decode, uint32_t bytes, uint64_t limit);
/* A number of things that take `least` bytes each, 1 or more: fails where there cannot be so many. */
uint32_t ivm__decode_count(ivm__decode *decode, size_t least);
/* In place: ends with a null byte and holds none. NULL once it has failed. */
const char *ivm__decode_text(ivm__decode *decode);
const uint8_t *ivm__decode_bytes(ivm__decode *decode, size_t *size);
const uint8_t *ivm__decode_raw(ivm__decode *decode, size_t size);
ivm_type ivm__decode_type(ivm__decode *decode); /* fails for what is no type */

#endif
