/* Codes: see codes.h. Linear probing at load a half at most. Cost: a hash and a line or two a cell that comes; nothing to read one. */
#include "codes.h"

#include "hash.h"

#include <assert.h>
#include <string.h>

static size_t cells_bytes(const ivm__codes *codes)
{
    return sizeof *codes->cells << codes->bits;
}

static size_t places_bytes(const ivm__codes *codes)
{
    return sizeof *codes->places << (codes->bits + 1);
}

ivm_status ivm__codes_init(ivm__codes *codes, ivm__memory *memory, uint32_t bits)
{
    assert(bits > 0 && bits <= IVM__CODE_BITS_MAX);
    *codes = (ivm__codes){ .identity = ++memory->identities, .bits = bits };
    codes->cells = ivm__allocate_zeroed(memory, cells_bytes(codes));
    codes->places = ivm__allocate_zeroed(memory, places_bytes(codes));
    if (!codes->cells || !codes->places) {
        ivm__codes_deinit(codes, memory);
        return IVM_OUT_OF_MEMORY;
    }
    return IVM_OK;
}

void ivm__codes_deinit(ivm__codes *codes, ivm__memory *memory)
{
    ivm__release(memory, codes->cells, cells_bytes(codes));
    ivm__release(memory, codes->places, places_bytes(codes));
    codes->cells = NULL;
    codes->places = NULL;
}

void ivm__codes_clear(ivm__codes *codes, ivm__memory *memory)
{
    memset(codes->places, 0, places_bytes(codes));
    codes->count = 0;
    codes->identity = ++memory->identities;
}

/* Where the cell's code is, or would be. */
static uint32_t place_of(const ivm__codes *codes, uint64_t cell, uint64_t seed)
{
    uint32_t mask = (2u << codes->bits) - 1, at = (uint32_t)ivm__hash_word(cell, seed) & mask;
    while (codes->places[at] != 0 && codes->cells[codes->places[at]] != cell) {
        at = (at + 1) & mask;
    }
    return at;
}

uint32_t ivm__codes_find(const ivm__codes *codes, uint64_t cell, uint64_t seed)
{
    return codes->places[place_of(codes, cell, seed)];
}

uint32_t ivm__codes_give(ivm__codes *codes, uint64_t cell, uint64_t seed)
{
    uint32_t at = place_of(codes, cell, seed);
    if (codes->places[at] != 0) {
        return codes->places[at];
    }
    if (codes->count + 1 == 1u << codes->bits) {
        return 0;
    }
    codes->places[at] = (uint16_t)++codes->count;
    codes->cells[codes->count] = cell;
    return codes->count;
}

uint64_t ivm__codes_bytes(const ivm__codes *codes)
{
    return cells_bytes(codes) + places_bytes(codes);
}
