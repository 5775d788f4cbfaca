/* See checkpoint_bytes.h. */
#include "checkpoint_bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "catalog_view.h"

static ivm__block_header header_at(const tape *it, size_t at)
{
    ivm__block_header header;
    cr_assert_leq(at + sizeof header, it->size);
    memcpy(&header, it->bytes + at, sizeof header);
    cr_assert_leq(at + sizeof header + header.stored, it->size);
    return header;
}

static bytes_block block_at(const tape *it, size_t at)
{
    ivm__block_header header = header_at(it, at);
    if (header.kind == IVM__SECTION_END) {
        return (bytes_block){ 0 };
    }
    return (bytes_block){ header.kind, header.ordinal, header.part, at + sizeof header, header.stored };
}

bytes_block bytes_first(const tape *it)
{
    return block_at(it, IVM__HEAD_BYTES);
}

bytes_block bytes_next(const tape *it, bytes_block at)
{
    return block_at(it, at.from + at.size);
}

bytes_block bytes_find(const tape *it, uint32_t kind, uint32_t ordinal, uint32_t part)
{
    bytes_block at = bytes_first(it);
    while (at.kind != kind || at.ordinal != ordinal || at.part != part) {
        cr_assert(at.kind, "no section %u %u.%u", kind, ordinal, part);
        at = bytes_next(it, at);
    }
    return at;
}

void bytes_splice(tape *it, bytes_block at, size_t place, size_t out, size_t in)
{
    size_t where = at.from + place;
    cr_assert_leq(place + out, at.size);
    if (it->size + in > it->capacity) {
        it->capacity = 2 * (it->size + in);
        it->bytes = realloc(it->bytes, it->capacity);
    }
    memmove(it->bytes + where + in, it->bytes + where + out, it->size - where - out);
    memset(it->bytes + where, 0, in);
    it->size += in;
    it->size -= out;
    ivm__block_header header;
    memcpy(&header, it->bytes + at.from - sizeof header, sizeof header);
    header.stored = header.raw = (uint32_t)(at.size + in - out);
    memcpy(it->bytes + at.from - sizeof header, &header, sizeof header);
}

static void fingerprint_renew(tape *it)
{
    bytes_block catalog = bytes_find(it, IVM__SECTION_CATALOG, 0, 0);
    ivm__stream_head head;
    memcpy(&head, it->bytes, sizeof head);
    if (catalog.size >= 4) {
        head.fingerprint = ivm__catalog_fingerprint(it->bytes + catalog.from + 4, catalog.size - 4);
    }
    head.hash = ivm__stream_head_hash(&head);
    memcpy(it->bytes, &head, sizeof head);
}

static void end_renew(tape *it, size_t at)
{
    ivm__end_block end = { 0 };
    for (bytes_block block = bytes_first(it); block.kind; block = bytes_next(it, block)) {
        end.blocks_count++;
        end.raw_bytes += block.size;
    }
    memcpy(it->bytes + at, &end, sizeof end);
}

void bytes_rehash(tape *it)
{
    ivm__stream_head head;
    fingerprint_renew(it);
    memcpy(&head, it->bytes, sizeof head);
    uint64_t hash = head.hash;
    for (size_t at = IVM__HEAD_BYTES; at < it->size;) {
        ivm__block_header header = header_at(it, at);
        if (header.kind == IVM__SECTION_END) {
            end_renew(it, at + sizeof header);
        }
        hash = header.hash = ivm__block_hash(&header, it->bytes + at + sizeof header, hash);
        memcpy(it->bytes + at, &header, sizeof header);
        at += sizeof header + header.stored;
    }
}

void bytes_copy(tape *to, const tape *from)
{
    if (to->capacity < from->size) {
        to->capacity = from->size;
        to->bytes = realloc(to->bytes, to->capacity);
    }
    to->size = from->size;
    memcpy(to->bytes, from->bytes, from->size);
}
