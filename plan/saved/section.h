/* Sections of a framed stream that are bytes alone: their size, then they themselves. */
#ifndef IVM__SECTION_BYTES_H
#define IVM__SECTION_BYTES_H

#include "block.h"
#include "catalog.h"
#include "code.h"

/* Codes that failed for lack of memory are told in the writer's error. */
ivm_status ivm__section_write(ivm__block_writer *writer, ivm__section_kind kind, const ivm__code *code) IVM_MUST_CHECK;
ivm_status ivm__section_position_write(ivm__block_writer *writer, const uint8_t *position, uint32_t size) IVM_MUST_CHECK;

/* corrupt where there are more than `size_max`. Deinit the bytes, whatever the outcome. */
ivm_status ivm__section_read(ivm__block_reader *reader, ivm__section_kind kind, uint32_t size_max, ivm__bytes *bytes) IVM_MUST_CHECK;
ivm_status ivm__section_position_read(ivm__block_reader *reader, uint8_t position[IVM_POSITION_SIZE_MAX], size_t *size) IVM_MUST_CHECK;

/* The catalog: what an engine without one becomes (*declared), else what its own must be: invalid_argument names the first difference. A catalog
 * declared from a stream is taken for what the stream says. */
ivm_status ivm__section_catalog_read(ivm__block_reader *reader, ivm_engine *engine, bool *declared) IVM_MUST_CHECK;
/* Ends a section whose content was taken with this status. What the engine's own code fails with for lack of memory is told here. */
ivm_status ivm__section_end(ivm__block_reader *reader, ivm_status status) IVM_MUST_CHECK;

#endif
