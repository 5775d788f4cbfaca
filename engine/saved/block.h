/* Framed streams of bytes: what a checkpoint is. Sections one after the other, each a string of bytes in blocks that are checked one by one.
 *
 *     stream  = head, block*, end block               all little endian, nothing aligned
 *     head    = 64 bytes: magic | format u32 | form u32 | flags u32 (1: blocks may be compressed) | partition u32 | fingerprint u64 | 24 bytes 0
 *               | hash u64 of what is before it
 *     block   = 32 bytes: kind u16 | flags u16 (1: last of its section, 2: compressed) | ordinal u32 | part u32 | raw u32 | stored u32 | 0 u32
 *               | hash u64, then `stored` bytes that come to `raw` bytes
 *     hash    = XXH3-64 of the 24 bytes and the stored ones, seeded with the hash before it: none can be left out, doubled, moved or be another
 *               stream's
 *
 * Every block of a section but its last has IVM__BLOCK_BYTES raw bytes, and the last has none only where it is the only one: one content has one
 * framing. The end block tells how many blocks and raw bytes were before it. A reader asks for no byte past it. */
#ifndef IVM__BLOCK_H
#define IVM__BLOCK_H

#include "bytes.h"
#include "cancel.h"
#include "compress.h"

#define IVM__BLOCK_BYTES (128u << 10)
#define IVM__HEAD_BYTES 64u
#define IVM__BLOCK_HEADER_BYTES 32u

typedef enum ivm__form { IVM__FORM_WHOLE = 1, IVM__FORM_SHARED, IVM__FORM_PARTITION, IVM__FORM_END } ivm__form;

typedef enum ivm__section_kind {
    IVM__SECTION_POSITION = 1,
    IVM__SECTION_CATALOG,
    IVM__SECTION_STATE,
    IVM__SECTION_TRACK,   /* ordinal: the fact */
    IVM__SECTION_KEPT,    /* ordinal: the view; part: operator << 8 | holding */
    IVM__SECTION_PENDING, /* ordinal: the view; part: the source */
    IVM__SECTION_ROWS,    /* ordinal: the table */
    IVM__SECTION_END
} ivm__section_kind;

typedef struct ivm__section {
    ivm__section_kind kind;
    uint32_t ordinal, part;
} ivm__section;

typedef struct ivm__head {
    ivm__form form;
    uint32_t partition; /* 0 but for a partition's */
    uint64_t fingerprint;
    bool compressed;
} ivm__head;

/* ---- Writing ------------------------------------------------------------------------------------------------------------------------ */

/* The user's: takes all of the bytes. */
typedef ivm_status ivm__stream_write(void *context, const void *bytes, size_t size);

/* The sink's request to end is looked at before each block. */
typedef struct ivm__block_writer {
    ivm__sink sink; /* of the section under way */
    ivm__memory *memory;
    ivm__stream_write *write;
    void *context;
    ivm__compressor *compressor; /* NULL: nothing is compressed */
    uint8_t *raw, *compressed;   /* a block each, its header first */
    uint32_t raw_size;
    ivm__section section;
    bool open;
    uint64_t hash, blocks_count, raw_bytes;
    ivm_status status; /* of what failed first */
    ivm_error *error;
} ivm__block_writer;

/* Writes the head. Where it says compressed: unsupported in a library without. Deinit it, whatever the outcome. */
ivm_status ivm__block_writer_init(ivm__block_writer *writer, ivm__memory *memory, const ivm__head *head, ivm__stream_write *write,
                                  void *context, ivm_error *error) IVM_MUST_CHECK;
/* What is written to writer->sink from then on is this section's content, until its end. */
ivm_status ivm__block_writer_begin(ivm__block_writer *writer, ivm__section section) IVM_MUST_CHECK;
ivm_status ivm__block_writer_end(ivm__block_writer *writer) IVM_MUST_CHECK;
/* The end block: the stream is whole. */
ivm_status ivm__block_writer_finish(ivm__block_writer *writer) IVM_MUST_CHECK;
void ivm__block_writer_deinit(ivm__block_writer *writer); /* a zeroed one is fine */

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------ */

/* The user's: gives at most `size` bytes, at least one; *got 0: there are no more. */
typedef ivm_status ivm__stream_read(void *context, void *bytes, size_t size, size_t *got);

typedef struct ivm__block_reader {
    ivm__feed feed; /* of the section under way */
    ivm__memory *memory;
    ivm__stream_read *read;
    void *context;
    ivm__compressor *compressor;
    ivm__head head;
    uint8_t *raw, *stored; /* a block each, without its header */
    uint32_t raw_size, raw_at;
    ivm__section section;
    bool open, last; /* of its section */
    uint64_t hash, blocks_count, raw_bytes;
    uint64_t at, block_at; /* bytes read, and those before the present block */
    bool placed;           /* the error says where */
    ivm__cancel cancel;    /* looked at before each block; zeroed: nobody asks */
} ivm__block_reader;

/* Reads the head. Corrupt where it is none; unsupported where it is one of a later format, or compressed in a library without. Deinit it, whatever the
 * outcome. */
ivm_status ivm__block_reader_init(ivm__block_reader *reader, ivm__memory *memory, ivm__stream_read *read, void *context,
                                  ivm_error *error) IVM_MUST_CHECK;
/* reader->feed gives this section's content from then on; corrupt where another is next. */
ivm_status ivm__block_reader_begin(ivm__block_reader *reader, ivm__section section) IVM_MUST_CHECK;
/* Corrupt where some of the content was not read. */
ivm_status ivm__block_reader_end(ivm__block_reader *reader) IVM_MUST_CHECK;
/* Reads the end block. */
ivm_status ivm__block_reader_finish(ivm__block_reader *reader) IVM_MUST_CHECK;
/* Who found content that is corrupt has said what: adds where, once. Gives the status back. */
ivm_status ivm__block_reader_place(ivm__block_reader *reader, ivm_status status) IVM_MUST_CHECK;
void ivm__block_reader_deinit(ivm__block_reader *reader); /* a zeroed one is fine */

/* ---- Inside ------------------------------------------------------------------------------------------------------------------------- */

#define IVM__STREAM_MAGIC "\211IVM\r\n\032\n"
#define IVM__STREAM_FORMAT 1u
#define IVM__STREAM_FLAG_COMPRESSED 1u
#define IVM__BLOCK_FLAG_LAST 1u
#define IVM__BLOCK_FLAG_COMPRESSED 2u

typedef struct ivm__stream_head {
    uint8_t magic[8];
    uint32_t format, form, flags, partition;
    uint64_t fingerprint;
    uint8_t zero[24];
    uint64_t hash;
} ivm__stream_head;

typedef struct ivm__block_header {
    uint16_t kind, flags;
    uint32_t ordinal, part, raw, stored, zero;
    uint64_t hash;
} ivm__block_header;

typedef struct ivm__end_block {
    uint64_t blocks_count, raw_bytes;
} ivm__end_block;

static_assert(sizeof(ivm__stream_head) == IVM__HEAD_BYTES && sizeof(ivm__block_header) == IVM__BLOCK_HEADER_BYTES, "as they lie");

uint64_t ivm__stream_head_hash(const ivm__stream_head *head);
uint64_t ivm__block_hash(const ivm__block_header *header, const uint8_t *stored, uint64_t before);

#endif
