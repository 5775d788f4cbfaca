/* Items: see items.h. A segment has as many as fill 64 KB, a power of two of them: a hundred million bytes have a directory of 14 KB, and a segment is
 * made in a few microseconds. */
#include "items.h"

#include "growth.h"

#include <assert.h>
#include <string.h>

#define SEGMENT_BYTES_LEAST ((size_t)8 * IVM__GROWN_BESIDE_MIN) /* of a whole segment */

void ivm__items_init(ivm__items *items, size_t item_bytes)
{
    assert(item_bytes > 0 && item_bytes <= UINT32_MAX / 4);
    uint32_t shift = 0;
    while (item_bytes << shift < SEGMENT_BYTES_LEAST || (item_bytes << shift) % IVM__LINE_BYTES != 0) {
        shift++;
    }
    *items = (ivm__items){ .segments = { .bytes_each = (uint32_t)(item_bytes << shift) },
                           .item_bytes = (uint32_t)item_bytes,
                           .shift = shift,
                           .mask = (1u << shift) - 1 };
}

void ivm__items_free(ivm__items *items, ivm__memory *memory)
{
    ivm__segments_free(memory, &items->segments);
    items->known = 0;
}

ivm_status ivm__items_reserve(ivm__items *items, ivm__memory *memory, uint64_t count)
{
    assert(items->item_bytes > 0);
    return count <= UINT32_MAX ? ivm__segments_reserve(memory, &items->segments, count * items->item_bytes) : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__items_reserve_cleared(ivm__items *items, ivm__memory *memory, uint64_t count)
{
    if (count <= items->known) {
        return IVM_OK;
    }
    IVM_TRY(ivm__items_reserve(items, memory, count));
    while (items->known < count) {
        uint64_t here = (items->known | items->mask) + (uint64_t)1;
        uint32_t end = (uint32_t)(here < count ? here : count);
        memset(ivm__items_at(items, items->known), 0, (size_t)(end - items->known) * items->item_bytes);
        items->known = end;
    }
    return IVM_OK;
}

void ivm__items_trim(ivm__items *items, ivm__memory *memory, uint64_t count)
{
    assert(items->known <= count);
    ivm__segments_trim(memory, &items->segments, count * items->item_bytes);
}

uint64_t ivm__items_bytes(const ivm__items *items)
{
    return ivm__segments_bytes(&items->segments);
}
