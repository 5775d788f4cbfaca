/* Fuzzes what ivm_restore() reads: the input as it is, which seldom passes a checksum, then sealed: with every checksum, count and fingerprint set
 * right, so that what an enemy could write reaches the checks behind them. What restores takes pushes and is saved again, which must restore as
 * well. The mutator changes the content of one block and seals the stream. */
#include "block.h"
#include "catalog_view.h"
#include "feed.h"
#include "fuzz.h"

#include <string.h>

/* ---- Sealing ----------------------------------------------------------------------------------------------------------------------- */

/* The header of the block at data + *at, whose content ends before data + size; *at moves behind it. */
static bool block_next(const uint8_t *data, size_t size, size_t *at, ivm__block_header *header)
{
    if (size - *at < sizeof *header) {
        return false;
    }
    memcpy(header, data + *at, sizeof *header);
    if (header->stored > size - *at - sizeof *header) {
        return false;
    }
    *at += sizeof *header + header->stored;
    return true;
}

/* That of the catalog's first block, as it was found. */
static uint64_t fingerprint_of(const uint8_t *data, size_t size)
{
    ivm__block_header header;
    uint32_t wanted;
    for (size_t at = IVM__HEAD_BYTES, start = at; block_next(data, size, &at, &header); start = at) {
        if (header.kind == IVM__SECTION_CATALOG && header.stored >= sizeof wanted) {
            const uint8_t *content = data + start + sizeof header;
            memcpy(&wanted, content, sizeof wanted);
            uint32_t there = header.stored - (uint32_t)sizeof wanted;
            return ivm__catalog_fingerprint(content + sizeof wanted, wanted < there ? wanted : there);
        }
    }
    return 0;
}

static uint64_t block_seal(uint8_t *block, ivm__block_header *header, uint64_t before, const ivm__end_block *counts)
{
    if (header->kind == IVM__SECTION_END && header->stored == sizeof *counts) {
        memcpy(block + sizeof *header, counts, sizeof *counts);
    }
    header->hash = ivm__block_hash(header, block + sizeof *header, before);
    memcpy(block, header, sizeof *header);
    return header->hash;
}

static void seal(uint8_t *data, size_t size)
{
    ivm__stream_head head;
    ivm__block_header header;
    ivm__end_block counts = { 0, 0 };
    if (size < sizeof head) {
        return;
    }
    memcpy(&head, data, sizeof head);
    head.fingerprint = fingerprint_of(data, size);
    head.hash = ivm__stream_head_hash(&head);
    memcpy(data, &head, sizeof head);
    uint64_t hash = head.hash;
    for (size_t at = sizeof head, start = at; block_next(data, size, &at, &header); start = at) {
        hash = block_seal(data + start, &header, hash, &counts);
        counts.blocks_count++;
        counts.raw_bytes += header.raw;
    }
}

/* ---- Mutating ---------------------------------------------------------------------------------------------------------------------- */

/* The content of the block at `start`, and its size with it, is changed. */
static size_t block_mutate(uint8_t *data, size_t size, size_t size_max, size_t start, ivm__block_header header)
{
    size_t content = start + sizeof header, behind = size - content - header.stored;
    size_t room = size_max - size + header.stored;
    room = room < IVM__BLOCK_BYTES ? room : IVM__BLOCK_BYTES;
    uint8_t *copy = malloc(room + behind + 1);
    NEED(copy);
    memcpy(copy + room, data + content + header.stored, behind);
    memcpy(copy, data + content, header.stored < room ? header.stored : room);
    size_t made = LLVMFuzzerMutate(copy, header.stored < room ? header.stored : room, room);
    memcpy(data + content, copy, made);
    memcpy(data + content + made, copy + room, behind);
    free(copy);
    header.raw = header.flags & IVM__BLOCK_FLAG_COMPRESSED ? header.raw : (uint32_t)made;
    header.stored = (uint32_t)made;
    memcpy(data + start, &header, sizeof header);
    return content + made + behind;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    ivm__block_header header, chosen;
    size_t blocks_count = 0, chosen_at = 0;
    for (size_t at = IVM__HEAD_BYTES; size > at && block_next(data, size, &at, &header);) {
        blocks_count++;
    }
    if (blocks_count == 0 || seed % 16 == 0) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    size_t nth = seed / 16 % blocks_count, at = IVM__HEAD_BYTES;
    for (size_t i = 0; i <= nth; i++) {
        chosen_at = at;
        NEED(block_next(data, size, &at, &chosen));
    }
    size = block_mutate(data, size, size_max, chosen_at, chosen);
    seal(data, size);
    return size;
}

/* ---- Restoring --------------------------------------------------------------------------------------------------------------------- */

typedef struct stream {
    uint8_t *bytes;
    size_t size, at, capacity;
} stream;

static ivm_status stream_read(void *context, void *bytes, size_t size, size_t *got)
{
    stream *from = context;
    size_t left = from->size - from->at;
    *got = size < left ? size : left;
    memcpy(bytes, from->bytes + from->at, *got);
    from->at += *got;
    return IVM_OK;
}

static ivm_status stream_write(void *context, const void *bytes, size_t size)
{
    stream *to = context;
    NEED(size > 0 && size <= IVM_CHECKPOINT_PIECE_MAX);
    if (to->capacity - to->size < size) {
        to->capacity = 2 * (to->size + size);
        to->bytes = realloc(to->bytes, to->capacity);
        NEED(to->bytes);
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
    return IVM_OK;
}

static ivm_error error;

static ivm_status restore(ivm_engine *engine, stream *from)
{
    error = (ivm_error)IVM_ERROR_INIT;
    from->at = 0;
    ivm_status status = ivm_restore(engine, stream_read, from, &error);
    NEED(status == IVM_OK || (error.status == status && error.message[0] && !strchr(error.message, '\n')));
    return status;
}

static void again(stream *saved)
{
    ivm_engine *other = feed_open(12);
    if (restore(other, saved) != IVM_OK) {
        fprintf(stderr, "what was restored is saved as what does not restore: %s\n", error.message);
        abort();
    }
    feed_push(other, 4);
    feed_close(other);
}

/* An engine that holds what the stream says is as good as any: the same stream goes into it again, it takes pushes, and what it saves, unless counts
 * were lies, restores. */
static void use(ivm_engine *engine, stream *from)
{
    stream saved = { 0 };
    feed_push(engine, 1);
    feed_look(engine);
    NEED(restore(engine, from) == IVM_OK);
    feed_look(engine);
    feed_push(engine, 2);
    feed_push(engine, 3);
    feed_look(engine);
    ivm_status status = ivm_checkpoint(engine, stream_write, &saved, NULL, &error);
    NEED(status == IVM_OK || status == IVM_CORRUPT);
    if (status == IVM_OK) {
        again(&saved);
    }
    free(saved.bytes);
}

static void restore_and_use(stream *from)
{
    ivm_engine *engine = feed_open(11);
    if (restore(engine, from) == IVM_OK) {
        use(engine, from);
    } else {
        NEED(!ivm_fact_next(engine, NULL));
        feed_push(engine, 1);
    }
    feed_close(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stream from = { .bytes = malloc(size + 1), .size = size };
    ivm_checkpoint_info info = { .version = IVM_CHECKPOINT_INFO_VERSION };
    NEED(from.bytes);
    memcpy(from.bytes, data, size);
    ignore(ivm_checkpoint_inspect(stream_read, &from, &info, NULL));
    restore_and_use(&from);
    seal(from.bytes, size);
    if (size && memcmp(from.bytes, data, size) != 0) {
        restore_and_use(&from);
    }
    free(from.bytes);
    return 0;
}
