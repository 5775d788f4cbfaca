/* Sections of bytes: see section.h. */
#include "section.h"

#include "catalog_view.h"

static ivm_status bytes_write(ivm__block_writer *writer, ivm__section_kind kind, const void *bytes, uint32_t size)
{
    IVM_TRY(ivm__block_writer_begin(writer, (ivm__section){ kind, 0, 0 }));
    IVM_TRY(ivm__put_u32(&writer->sink, size));
    IVM_TRY(ivm__put(&writer->sink, bytes, size));
    return ivm__block_writer_end(writer);
}

ivm_status ivm__section_write(ivm__block_writer *writer, ivm__section_kind kind, const ivm__code *code)
{
    return code->failed ? ivm__fail_memory(writer->error) : bytes_write(writer, kind, code->bytes, code->size);
}

ivm_status ivm__section_position_write(ivm__block_writer *writer, const uint8_t *position, uint32_t size)
{
    return bytes_write(writer, IVM__SECTION_POSITION, position, size);
}

ivm_status ivm__section_read(ivm__block_reader *reader, ivm__section_kind kind, uint32_t size_max, ivm__bytes *bytes)
{
    uint32_t size = 0;
    *bytes = (ivm__bytes){ .memory = reader->memory };
    IVM_TRY(ivm__block_reader_begin(reader, (ivm__section){ kind, 0, 0 }));
    IVM_TRY(ivm__get_u32(&reader->feed, &size));
    if (size > size_max) {
        ivm_status status = ivm__fail(reader->feed.error, IVM_CORRUPT, "%u bytes where at most %u may be", size, size_max);
        return ivm__block_reader_place(reader, status);
    }
    IVM_TRY(ivm__bytes_read(bytes, &reader->feed, size));
    return ivm__block_reader_end(reader);
}

ivm_status ivm__section_position_read(ivm__block_reader *reader, uint8_t position[IVM_POSITION_SIZE_MAX], size_t *size)
{
    ivm__bytes bytes;
    ivm_status status = ivm__section_read(reader, IVM__SECTION_POSITION, IVM_POSITION_SIZE_MAX, &bytes);
    if (status == IVM_OK && bytes.size) {
        memcpy(position, bytes.at, bytes.size);
    }
    *size = bytes.size;
    ivm__bytes_deinit(&bytes);
    return status;
}

static ivm_status catalog_take(const ivm__block_reader *reader, const ivm__bytes *bytes, ivm_engine *engine, bool *declared)
{
    ivm_error *error = reader->feed.error;
    if (ivm__catalog_fingerprint(bytes->at, bytes->size) != reader->head.fingerprint) {
        return ivm__fail(error, IVM_CORRUPT, "the catalog is not the one that the head tells of");
    }
    if (engine->tables || engine->views) {
        return ivm__catalog_compare(engine, bytes->at, bytes->size, error);
    }
    IVM_TRY(ivm__catalog_decode(engine, bytes->at, bytes->size, error));
    *declared = true;
    return IVM_OK;
}

ivm_status ivm__section_catalog_read(ivm__block_reader *reader, ivm_engine *engine, bool *declared)
{
    ivm__bytes bytes;
    ivm_status status = ivm__section_read(reader, IVM__SECTION_CATALOG, UINT32_MAX, &bytes);
    if (status == IVM_OK) {
        status = ivm__block_reader_place(reader, catalog_take(reader, &bytes, engine, declared));
    }
    ivm__bytes_deinit(&bytes);
    return status;
}

ivm_status ivm__section_end(ivm__block_reader *reader, ivm_status status)
{
    if (status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(reader->feed.error);
    }
    IVM_TRY(ivm__block_reader_place(reader, status));
    return ivm__block_reader_end(reader);
}
