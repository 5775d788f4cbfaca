/* Codes: small numbers for the values of a column that has few, so that rows can be told apart by them instead of by cells. A code once given
 * stands for the same cell as long as the identity is the same; no other codes of the engine have had that. */
#ifndef IVM__CODES_H
#define IVM__CODES_H

#include "memory.h"

#define IVM__CODE_BITS_MAX 12u

typedef struct ivm__codes {
    uint64_t identity;
    uint32_t bits;    /* codes 1 to 2^bits - 1 */
    uint32_t count;   /* 1 to count are given */
    uint64_t *cells;  /* by code */
    uint16_t *places; /* by hash of the cell: its code; 2^(bits + 1) of them, 0: free */
} ivm__codes;

/* Writer's thread alone: identities are counted in `memory`. */
ivm_status ivm__codes_init(ivm__codes *codes, ivm__memory *memory, uint32_t bits) IVM_MUST_CHECK;
void ivm__codes_deinit(ivm__codes *codes, ivm__memory *memory);
/* None is given any more, and the identity another. */
void ivm__codes_clear(ivm__codes *codes, ivm__memory *memory);
/* The code of a cell, a new one if it has none; 0: there are no more. */
uint32_t ivm__codes_give(ivm__codes *codes, uint64_t cell, uint64_t seed);
/* The code of a cell that has one; 0: it has none. */
uint32_t ivm__codes_find(const ivm__codes *codes, uint64_t cell, uint64_t seed);
uint64_t ivm__codes_bytes(const ivm__codes *codes);

#endif
