/* Groups by codes: where every group column comes with codes (engine/index/codes.h), a row's group is read from one array instead of being hashed for,
 * looked up and compared.
 *
 *     place = code of the first column - 1 | (code of the second - 1) << bits of the first | ...        groups[place] = group + 1
 *
 * It only remembers what the groups' index has said: what is not remembered is looked up there, and all of it can be forgotten. */
#ifndef IVM__GROUP_CODES_H
#define IVM__GROUP_CODES_H

#include "chunk.h"
#include "items.h"

#define IVM__GROUP_CODES_COLUMNS_MAX 16u

typedef struct ivm__group_codes {
    ivm__memory *memory;
    uint32_t columns_count;
    uint64_t identity[IVM__GROUP_CODES_COLUMNS_MAX];
    uint8_t bits[IVM__GROUP_CODES_COLUMNS_MAX];
    uint32_t *groups; /* by place: group + 1; 0: not known. NULL: there is nothing to remember yet */
    uint32_t places_count;
    uint64_t others;  /* rows that came with other codes than these since they were taken on */
    ivm__items place; /* uint32_t by group: its place + 1; 0: it has none */
} ivm__group_codes;

void ivm__group_codes_init(ivm__group_codes *codes, ivm__memory *memory, uint32_t columns_count);
void ivm__group_codes_deinit(ivm__group_codes *codes);
/* Whether the chunk's group columns come with the codes that are remembered, or with such as are worth it, for so many groups: then these from
 * now on. */
ivm_status ivm__group_codes_serve(ivm__group_codes *codes, const ivm__chunk *keys, uint32_t groups_count, bool *serve) IVM_MUST_CHECK;
/* Of a chunk that they serve: places[i] and groups[i] of each row, IVM__ROW_NONE where that is not known: missing[] those rows, and how many. */
uint32_t ivm__group_codes_find(const ivm__group_codes *codes, const ivm__chunk *keys, uint32_t *places, uint32_t *groups,
                               uint32_t *missing);
/* Room to remember groups below `groups`. */
ivm_status ivm__group_codes_reserve(ivm__group_codes *codes, uint64_t groups) IVM_MUST_CHECK;
void ivm__group_codes_remember(ivm__group_codes *codes, uint32_t place, uint32_t group);
void ivm__group_codes_forget(ivm__group_codes *codes, uint32_t group);
void ivm__group_codes_forget_all(ivm__group_codes *codes);
uint64_t ivm__group_codes_bytes(const ivm__group_codes *codes);

#endif
