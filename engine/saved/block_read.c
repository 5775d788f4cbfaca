/* Reading framed streams. Nothing of a block is used before its hash is found right, nothing is asked for but a head, a header, and the bytes it
 * says; what is said beyond that (sizes, kinds, order) is checked all the same, for whoever can write can hash. Every failure says where. */
#include <stdio.h>

#include "block.h"

/* ---- Messages ----------------------------------------------------------------------------------------------------------------------- */

#define PLACE_SIZE 96

/* "rows 3", "kept 2.17" */
static void section_text(ivm__section section, char text[PLACE_SIZE])
{
    static const char *const names[] = { "head", "position", "catalog", "state", "track", "kept", "pending", "rows", "end" };
    const char *name = (uint32_t)section.kind < sizeof names / sizeof *names ? names[section.kind] : "section";
    if (section.kind < IVM__SECTION_TRACK || section.kind >= IVM__SECTION_END) {
        snprintf(text, PLACE_SIZE, "%s", name);
    } else if (section.kind == IVM__SECTION_KEPT || section.kind == IVM__SECTION_PENDING) {
        snprintf(text, PLACE_SIZE, "%s %u.%u", name, section.ordinal, section.part);
    } else {
        snprintf(text, PLACE_SIZE, "%s %u", name, section.ordinal);
    }
}

ivm_status ivm__block_reader_place(ivm__block_reader *reader, ivm_status status)
{
    ivm_error *error = reader->feed.error;
    if (status != IVM_CORRUPT || reader->placed || !error) {
        return status;
    }
    char what[IVM_ERROR_MESSAGE_SIZE], section[PLACE_SIZE];
    memcpy(what, error->message, sizeof what);
    section_text(reader->section, section);
    reader->placed = true;
    return ivm__fail(error, status, "%s, in block %llu (%s), from byte %llu on", what, (unsigned long long)reader->blocks_count, section,
                     (unsigned long long)reader->block_at);
}

static ivm_status reader_fail(ivm__block_reader *reader, const char *what)
{
    return ivm__block_reader_place(reader, ivm__fail(reader->feed.error, IVM_CORRUPT, "%s", what));
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------------------------- */

/* Just so many bytes of the stream. */
static ivm_status bytes_take(ivm__block_reader *reader, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        size_t got = 0;
        ivm_status status = reader->read(reader->context, (uint8_t *)bytes + done, size - done, &got);
        if (status == IVM_OK && got > size - done) {
            return ivm__fail(reader->feed.error, IVM_INVALID_ARGUMENT, "the function that reads gave %zu bytes where %zu were asked for",
                             got, size - done);
        }
        if (status != IVM_OK) {
            return ivm__fail(reader->feed.error, status, "the function that reads failed: %s", ivm_status_name(status));
        }
        if (!got) {
            return ivm__block_reader_place(
                reader, ivm__fail(reader->feed.error, IVM_CORRUPT, "the stream ends at byte %llu", (unsigned long long)(reader->at)));
        }
        reader->at += got;
        done += got;
    }
    return IVM_OK;
}

/* Whether sizes and flags are ones that a writer writes. */
static bool header_is_sound(const ivm__block_reader *reader, const ivm__block_header *header)
{
    bool compressed = header->flags & IVM__BLOCK_FLAG_COMPRESSED, last = header->flags & IVM__BLOCK_FLAG_LAST;
    if (header->flags > (IVM__BLOCK_FLAG_LAST | IVM__BLOCK_FLAG_COMPRESSED) || header->zero || header->raw > IVM__BLOCK_BYTES) {
        return false;
    }
    if (compressed ? !reader->head.compressed || header->stored >= header->raw || !header->stored : header->stored != header->raw) {
        return false;
    }
    return last ? header->raw || !reader->open : header->raw == IVM__BLOCK_BYTES;
}

/* The next block, which must be of this section: its raw bytes are in reader->raw. */
static ivm_status block_take(ivm__block_reader *reader, ivm__section section)
{
    ivm__block_header header;
    reader->section = section;
    reader->block_at = reader->at;
    IVM_TRY(ivm__cancel_poll(&reader->cancel, reader->feed.error));
    IVM_TRY(bytes_take(reader, &header, sizeof header));
    if (!header_is_sound(reader, &header)) {
        return reader_fail(reader, "a header that cannot be");
    }
    bool compressed = header.flags & IVM__BLOCK_FLAG_COMPRESSED;
    uint8_t *stored = compressed ? reader->stored : reader->raw;
    IVM_TRY(bytes_take(reader, stored, header.stored));
    if (ivm__block_hash(&header, stored, reader->hash) != header.hash) {
        return reader_fail(reader, "the block is not what was written here");
    }
    if (header.kind != section.kind || header.ordinal != section.ordinal || header.part != section.part) {
        return reader_fail(reader, "another section stands where this is wanted");
    }
    if (compressed && !ivm__decompress(reader->compressor, stored, header.stored, reader->raw, header.raw)) {
        return reader_fail(reader, "the block cannot be decompressed");
    }
    reader->hash = header.hash;
    reader->last = header.flags & IVM__BLOCK_FLAG_LAST;
    reader->raw_size = header.raw;
    reader->raw_at = 0;
    return IVM_OK;
}

static void block_count(ivm__block_reader *reader)
{
    reader->blocks_count++;
    reader->raw_bytes += reader->raw_size;
}

static ivm_status feed_read(ivm__feed *self, void *bytes, size_t size)
{
    ivm__block_reader *reader = (ivm__block_reader *)self;
    uint8_t *to = bytes;
    assert(reader->open);
    while (size) {
        if (reader->raw_at == reader->raw_size && reader->last) {
            return reader_fail(reader, "the section ends too early");
        }
        if (reader->raw_at == reader->raw_size) {
            block_count(reader);
            IVM_TRY(block_take(reader, reader->section));
        }
        size_t there = reader->raw_size - reader->raw_at, count = size < there ? size : there;
        memcpy(to, reader->raw + reader->raw_at, count);
        reader->raw_at += (uint32_t)count;
        to += count;
        size -= count;
    }
    return IVM_OK;
}

/* ---- Streams ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status head_check(ivm__block_reader *reader, const ivm__stream_head *in)
{
    static const uint8_t zero[sizeof in->zero];
    ivm_error *error = reader->feed.error;
    if (memcmp(in->magic, IVM__STREAM_MAGIC, sizeof in->magic) != 0) {
        return reader_fail(reader, "the stream is no checkpoint: it begins otherwise");
    }
    if (ivm__stream_head_hash(in) != in->hash) {
        return reader_fail(reader, "the head is not what was written");
    }
    if (in->format != IVM__STREAM_FORMAT || in->flags > IVM__STREAM_FLAG_COMPRESSED) {
        return ivm__fail(error, IVM_UNSUPPORTED, "the stream's format %u, flags %u, is of a later version of the library", in->format,
                         in->flags);
    }
    bool partition = in->form == IVM__FORM_PARTITION;
    if (in->form < IVM__FORM_WHOLE || in->form >= IVM__FORM_END || (!partition && in->partition) ||
        memcmp(in->zero, zero, sizeof zero) != 0) {
        return reader_fail(reader, "a head that cannot be");
    }
    reader->hash = in->hash;
    reader->head = (ivm__head){ (ivm__form)in->form, in->partition, in->fingerprint, in->flags & IVM__STREAM_FLAG_COMPRESSED };
    return IVM_OK;
}

ivm_status ivm__block_reader_init(ivm__block_reader *reader, ivm__memory *memory, ivm__stream_read *read, void *context, ivm_error *error)
{
    *reader = (ivm__block_reader){ .feed = { feed_read, error }, .memory = memory, .read = read, .context = context };
    ivm__stream_head head;
    IVM_TRY(bytes_take(reader, &head, sizeof head));
    IVM_TRY(head_check(reader, &head));
    if (reader->head.compressed && !ivm__compress_is_there()) {
        return ivm__fail(error, IVM_UNSUPPORTED, "the stream is compressed, and this library was built without zstd");
    }
    reader->raw = ivm__allocate(memory, IVM__BLOCK_BYTES);
    if (reader->head.compressed) {
        reader->stored = ivm__allocate(memory, IVM__BLOCK_BYTES);
    }
    if (!reader->raw || (reader->head.compressed && (!reader->stored || ivm__compressor_create(&reader->compressor) != IVM_OK))) {
        return ivm__fail_memory(error);
    }
    return IVM_OK;
}

ivm_status ivm__block_reader_begin(ivm__block_reader *reader, ivm__section section)
{
    assert(!reader->open && section.kind >= IVM__SECTION_POSITION && section.kind < IVM__SECTION_END);
    IVM_TRY(block_take(reader, section));
    reader->open = true;
    return IVM_OK;
}

ivm_status ivm__block_reader_end(ivm__block_reader *reader)
{
    assert(reader->open);
    if (reader->raw_at < reader->raw_size || !reader->last) {
        return reader_fail(reader, "the section has more than belongs there");
    }
    block_count(reader);
    reader->open = false;
    return IVM_OK;
}

ivm_status ivm__block_reader_finish(ivm__block_reader *reader)
{
    assert(!reader->open);
    ivm__end_block end;
    IVM_TRY(block_take(reader, (ivm__section){ IVM__SECTION_END, 0, 0 }));
    if (reader->raw_size != sizeof end || !reader->last) {
        return reader_fail(reader, "an end that cannot be");
    }
    memcpy(&end, reader->raw, sizeof end);
    if (end.blocks_count != reader->blocks_count || end.raw_bytes != reader->raw_bytes) {
        return reader_fail(reader, "blocks are missing before the end");
    }
    return IVM_OK;
}

void ivm__block_reader_deinit(ivm__block_reader *reader)
{
    if (reader->memory) {
        ivm__release(reader->memory, reader->raw, IVM__BLOCK_BYTES);
        ivm__release(reader->memory, reader->stored, IVM__BLOCK_BYTES);
    }
    ivm__compressor_free(reader->compressor);
    *reader = (ivm__block_reader){ 0 };
}
