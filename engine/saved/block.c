/* Writing framed streams: a block is filled, compressed where that makes it smaller, hashed and handed on in one piece. Cost: a copy and a hash of
 * each byte, 0.1 ns each; compression, where asked for, costs thirty times that. */
#include "block.h"

#include "hash.h"

enum { HASHED = offsetof(ivm__block_header, hash) };

uint64_t ivm__stream_head_hash(const ivm__stream_head *head)
{
    return ivm__hash_bytes(head, offsetof(ivm__stream_head, hash), 0);
}

uint64_t ivm__block_hash(const ivm__block_header *header, const uint8_t *stored, uint64_t before)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, before);
    (void)XXH3_64bits_update(&state, header, HASHED);
    (void)XXH3_64bits_update(&state, stored, header->stored);
    return XXH3_64bits_digest(&state);
}

static ivm_status writer_fail(ivm__block_writer *writer, ivm_status status)
{
    assert(status != IVM_OK);
    if (writer->status == IVM_OK) {
        writer->status = status == IVM_OUT_OF_MEMORY
                             ? ivm__fail_memory(writer->error)
                             : ivm__fail(writer->error, status, "the function that writes failed: %s", ivm_status_name(status));
    }
    return writer->status;
}

/* The block under way, filled or not, goes out. */
static ivm_status block_write(ivm__block_writer *writer, bool last)
{
    uint8_t *block = writer->raw;
    ivm__block_header header = { .kind = (uint16_t)writer->section.kind,
                                 .flags = last ? IVM__BLOCK_FLAG_LAST : 0,
                                 .ordinal = writer->section.ordinal,
                                 .part = writer->section.part,
                                 .raw = writer->raw_size,
                                 .stored = writer->raw_size };
    size_t smaller = writer->compressor && writer->raw_size > 1
                         ? ivm__compress(writer->compressor, writer->raw + IVM__BLOCK_HEADER_BYTES, writer->raw_size,
                                         writer->compressed + IVM__BLOCK_HEADER_BYTES, writer->raw_size - 1)
                         : 0;
    if (smaller) {
        block = writer->compressed;
        header.flags |= IVM__BLOCK_FLAG_COMPRESSED;
        header.stored = (uint32_t)smaller;
    }
    header.hash = ivm__block_hash(&header, block + IVM__BLOCK_HEADER_BYTES, writer->hash);
    memcpy(block, &header, sizeof header);
    if (ivm__cancel_asked(writer->sink.cancel)) {
        return writer->status = ivm__fail_cancelled(writer->error);
    }
    writer->hash = header.hash;
    writer->blocks_count++;
    writer->raw_bytes += writer->raw_size;
    writer->raw_size = 0;
    ivm_status status = writer->write(writer->context, block, sizeof header + header.stored);
    return status == IVM_OK ? IVM_OK : writer_fail(writer, status);
}

/* A full block stays until more comes, so that the last of a section is known when it goes out. */
static ivm_status sink_write(ivm__sink *self, const void *bytes, size_t size)
{
    ivm__block_writer *writer = (ivm__block_writer *)self;
    const uint8_t *from = bytes;
    assert(writer->open);
    if (writer->status != IVM_OK) {
        return writer->status;
    }
    while (size) {
        if (writer->raw_size == IVM__BLOCK_BYTES) {
            IVM_TRY(block_write(writer, false));
        }
        size_t room = IVM__BLOCK_BYTES - writer->raw_size, count = size < room ? size : room;
        memcpy(writer->raw + IVM__BLOCK_HEADER_BYTES + writer->raw_size, from, count);
        writer->raw_size += (uint32_t)count;
        from += count;
        size -= count;
    }
    return IVM_OK;
}

static ivm_status head_write(ivm__block_writer *writer, const ivm__head *head)
{
    ivm__stream_head out = { .format = IVM__STREAM_FORMAT,
                             .form = head->form,
                             .flags = head->compressed ? IVM__STREAM_FLAG_COMPRESSED : 0,
                             .partition = head->partition,
                             .fingerprint = head->fingerprint };
    memcpy(out.magic, IVM__STREAM_MAGIC, sizeof out.magic);
    writer->hash = out.hash = ivm__stream_head_hash(&out);
    ivm_status status = writer->write(writer->context, &out, sizeof out);
    return status == IVM_OK ? IVM_OK : writer_fail(writer, status);
}

ivm_status ivm__block_writer_init(ivm__block_writer *writer, ivm__memory *memory, const ivm__head *head, ivm__stream_write *write,
                                  void *context, ivm_error *error)
{
    assert(head->form >= IVM__FORM_WHOLE && head->form < IVM__FORM_END && (head->form == IVM__FORM_PARTITION || !head->partition));
    *writer = (ivm__block_writer){ .sink = { sink_write }, .memory = memory, .write = write, .context = context, .error = error };
    if (head->compressed && !ivm__compress_is_there()) {
        return writer->status = ivm__fail(error, IVM_UNSUPPORTED, "this library was built without zstd: nothing can be compressed");
    }
    writer->raw = ivm__allocate(memory, IVM__BLOCK_HEADER_BYTES + IVM__BLOCK_BYTES);
    if (head->compressed) {
        writer->compressed = ivm__allocate(memory, IVM__BLOCK_HEADER_BYTES + IVM__BLOCK_BYTES);
    }
    if (!writer->raw || (head->compressed && (!writer->compressed || ivm__compressor_create(&writer->compressor) != IVM_OK))) {
        return writer_fail(writer, IVM_OUT_OF_MEMORY);
    }
    return head_write(writer, head);
}

ivm_status ivm__block_writer_begin(ivm__block_writer *writer, ivm__section section)
{
    assert(!writer->open && section.kind >= IVM__SECTION_POSITION && section.kind < IVM__SECTION_END);
    writer->section = section;
    writer->open = true;
    return writer->status;
}

ivm_status ivm__block_writer_end(ivm__block_writer *writer)
{
    assert(writer->open);
    IVM_TRY(writer->status);
    IVM_TRY(block_write(writer, true));
    writer->open = false;
    return IVM_OK;
}

ivm_status ivm__block_writer_finish(ivm__block_writer *writer)
{
    IVM_TRY(writer->status);
    assert(!writer->open);
    ivm__end_block end = { writer->blocks_count, writer->raw_bytes };
    ivm__compressor_free(writer->compressor); /* the end block is as it is */
    writer->compressor = NULL;
    writer->section = (ivm__section){ IVM__SECTION_END, 0, 0 };
    memcpy(writer->raw + IVM__BLOCK_HEADER_BYTES, &end, sizeof end);
    writer->raw_size = sizeof end;
    return block_write(writer, true);
}

void ivm__block_writer_deinit(ivm__block_writer *writer)
{
    if (writer->memory) {
        ivm__release(writer->memory, writer->raw, IVM__BLOCK_HEADER_BYTES + IVM__BLOCK_BYTES);
        ivm__release(writer->memory, writer->compressed, IVM__BLOCK_HEADER_BYTES + IVM__BLOCK_BYTES);
    }
    ivm__compressor_free(writer->compressor);
    *writer = (ivm__block_writer){ 0 };
}
