/* Tests of engine/saved/block.c and block_read.c: what is written is read again however the reading is cut up, and every stream that is not just so is
 * refused: bytes flipped, cut, blocks left out, doubled, swapped and taken from another stream, headers made up with a hash that is right. */
#include "block.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "allocator.h"
#include "random.h"
#include "tape.h"

/* ---- What a stream holds ------------------------------------------------------------------------------------------------------------- */

typedef struct part {
    ivm__section section;
    size_t size;
} part;

static const part small[] = { { { IVM__SECTION_POSITION, 0, 0 }, 0 },      { { IVM__SECTION_CATALOG, 0, 0 }, 71 },
                              { { IVM__SECTION_STATE, 0, 0 }, 16 },        { { IVM__SECTION_KEPT, 0, 0 }, 24 },
                              { { IVM__SECTION_KEPT, 0, 1 }, 24 },         { { IVM__SECTION_PENDING, 3, 9 }, 1 },
                              { { IVM__SECTION_ROWS, 0xffffffff, 0 }, 90 } };
static const part large[] = { { { IVM__SECTION_CATALOG, 0, 0 }, IVM__BLOCK_BYTES },
                              { { IVM__SECTION_ROWS, 0, 0 }, 3 * IVM__BLOCK_BYTES + 1 },
                              { { IVM__SECTION_ROWS, 1, 0 }, 2 * IVM__BLOCK_BYTES },
                              { { IVM__SECTION_ROWS, 2, 0 }, IVM__BLOCK_BYTES - 1 } };
#define PARTS(of) of, sizeof of / sizeof *of

/* The i-th byte of a part: some of it can be compressed. */
static uint8_t content(const part *of, size_t i)
{
    uint64_t state = of->section.ordinal + 1 + (i & 1 ? i : 0);
    return (uint8_t)(random_next(&state) >> 3);
}

typedef struct fixture {
    test_allocator allocator;
    ivm__memory memory;
    ivm_error error;
} fixture;

static void fixture_open(fixture *with)
{
    test_allocator_init(&with->allocator);
    ivm_allocator functions = test_allocator_functions(&with->allocator);
    ivm__memory_init(&with->memory, &functions);
    with->error = (ivm_error)IVM_ERROR_INIT;
}

/* Pieces of all sizes, as their writer comes by them. */
static ivm_status part_write(ivm__block_writer *writer, const part *of)
{
    IVM_TRY(ivm__block_writer_begin(writer, of->section));
    uint8_t piece[5000];
    uint64_t state = of->size + 1;
    for (size_t done = 0; done < of->size;) {
        size_t count = random_next(&state) % (of->size > 1000 ? sizeof piece : 20) + 1;
        count = count < of->size - done ? count : of->size - done;
        for (size_t i = 0; i < count; i++) {
            piece[i] = content(of, done + i);
        }
        IVM_TRY(writer->sink.write(&writer->sink, piece, count));
        done += count;
    }
    return ivm__block_writer_end(writer);
}

static ivm_status stream_write(fixture *with, tape *to, const part *parts, size_t parts_count, const ivm__head *head)
{
    ivm__block_writer writer;
    ivm_status status = ivm__block_writer_init(&writer, &with->memory, head, tape_write, to, &with->error);
    for (size_t i = 0; status == IVM_OK && i < parts_count; i++) {
        status = part_write(&writer, &parts[i]);
    }
    if (status == IVM_OK) {
        status = ivm__block_writer_finish(&writer);
    }
    ivm__block_writer_deinit(&writer);
    cr_assert_eq(with->error.status, status);
    return status;
}

static tape stream_make(const part *parts, size_t parts_count, const ivm__head *head)
{
    fixture with;
    tape made = { 0 };
    fixture_open(&with);
    cr_assert_eq(stream_write(&with, &made, parts, parts_count, head), IVM_OK);
    cr_assert(test_allocator_is_clean(&with.allocator));
    return made;
}

static ivm_status part_read(ivm__block_reader *reader, const part *of, uint8_t *to)
{
    IVM_TRY(ivm__block_reader_begin(reader, of->section));
    uint64_t state = of->size + 7;
    for (size_t done = 0; done < of->size;) {
        size_t count = random_next(&state) % (of->size > 1000 ? 200000 : 30) + 1;
        count = count < of->size - done ? count : of->size - done;
        IVM_TRY(reader->feed.read(&reader->feed, to + done, count));
        done += count;
    }
    return ivm__block_reader_end(reader);
}

/* Reads all of it. Whatever is given must be what was written, found broken later or not. */
static ivm_status stream_read(fixture *with, tape *from, const part *parts, size_t parts_count, ivm__head *head)
{
    static uint8_t room[4 * IVM__BLOCK_BYTES];
    ivm__block_reader reader;
    from->at = 0;
    ivm_status status = ivm__block_reader_init(&reader, &with->memory, tape_read, from, &with->error);
    *head = reader.head;
    for (size_t i = 0; status == IVM_OK && i < parts_count; i++) {
        status = part_read(&reader, &parts[i], room);
        for (size_t j = 0; status == IVM_OK && j < parts[i].size; j++) {
            cr_assert_eq(room[j], content(&parts[i], j));
        }
    }
    if (status == IVM_OK) {
        status = ivm__block_reader_finish(&reader);
    }
    ivm__block_reader_deinit(&reader);
    cr_assert_eq(with->error.status, status);
    return status;
}

static ivm_status read_once(tape *from, const part *parts, size_t parts_count)
{
    fixture with;
    ivm__head head;
    fixture_open(&with);
    ivm_status status = stream_read(&with, from, parts, parts_count, &head);
    cr_assert(test_allocator_is_clean(&with.allocator));
    return status;
}

/* ---- Tests --------------------------------------------------------------------------------------------------------------------------- */

static const ivm__head plain = { IVM__FORM_WHOLE, 0, 0x0123456789abcdef, false };
static const ivm__head compressed = { IVM__FORM_PARTITION, 17, 1, true };

static uint32_t heads_count(void)
{
    return ivm__compress_is_there() ? 2 : 1;
}

static void round_trip(const part *parts, size_t parts_count, const ivm__head *head)
{
    tape stream = stream_make(parts, parts_count, head);
    fixture with;
    ivm__head found;
    for (size_t most = 0; most < 100; most++) {
        fixture_open(&with);
        stream.most = most;
        cr_assert_eq(stream_read(&with, &stream, parts, parts_count, &found), IVM_OK, "%zu bytes at a time: %s", most, with.error.message);
        cr_assert(found.form == head->form && found.partition == head->partition && found.compressed == head->compressed);
        cr_assert_eq(found.fingerprint, head->fingerprint);
        cr_assert_not(stream.ended);
        cr_assert(test_allocator_is_clean(&with.allocator));
        most = stream.size > 10000 && most ? most * 3 : most;
    }
    free(stream.bytes);
}

Test(engine_block, what_is_written_is_read_again)
{
    round_trip(PARTS(small), &plain);
    round_trip(PARTS(large), &plain);
    round_trip(small, 0, &plain);
    for (uint32_t i = 1; i < heads_count(); i++) {
        round_trip(PARTS(small), &compressed);
        round_trip(PARTS(large), &compressed);
    }
}

Test(engine_block, equal_content_has_equal_bytes)
{
    for (uint32_t i = 0; i < heads_count(); i++) {
        tape a = stream_make(PARTS(large), i ? &compressed : &plain), b = stream_make(PARTS(large), i ? &compressed : &plain);
        cr_assert(a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0);
        cr_assert_eq(i == 1, a.size < 6 * IVM__BLOCK_BYTES);
        free(a.bytes);
        free(b.bytes);
    }
}

Test(engine_block, a_reading_cut_at_any_byte_goes_on)
{
    tape stream = stream_make(PARTS(small), &plain);
    for (size_t most = 1; most <= stream.size; most++) {
        stream.most = most;
        cr_assert_eq(read_once(&stream, PARTS(small)), IVM_OK);
    }
    free(stream.bytes);
}

Test(engine_block, every_flip_and_every_cut_is_refused)
{
    for (uint32_t i = 0; i < heads_count(); i++) {
        tape stream = stream_make(PARTS(small), i ? &compressed : &plain);
        for (size_t at = 0; at < stream.size; at++) {
            for (uint32_t bit = 0; bit < 8; bit++) {
                stream.bytes[at] ^= (uint8_t)(1 << bit);
                cr_assert_eq(read_once(&stream, PARTS(small)), IVM_CORRUPT, "byte %zu, bit %u", at, bit);
                stream.bytes[at] ^= (uint8_t)(1 << bit);
            }
        }
        tape cut = stream;
        for (cut.size = 0; cut.size < stream.size; cut.size++) {
            cr_assert_eq(read_once(&cut, PARTS(small)), IVM_CORRUPT, "cut at %zu", cut.size);
        }
        cr_assert_eq(read_once(&stream, PARTS(small)), IVM_OK);
        free(stream.bytes);
    }
}

Test(engine_block, flips_and_cuts_of_long_streams_are_refused)
{
    uint64_t state = 4711;
    for (uint32_t i = 0; i < heads_count(); i++) {
        tape stream = stream_make(PARTS(large), i ? &compressed : &plain), cut = stream;
        for (uint32_t n = 0; n < 150; n++) {
            size_t at = random_next(&state) % stream.size;
            stream.bytes[at] ^= 0x10;
            cr_assert_eq(read_once(&stream, PARTS(large)), IVM_CORRUPT, "byte %zu", at);
            stream.bytes[at] ^= 0x10;
            cut.size = at;
            cr_assert_eq(read_once(&cut, PARTS(large)), IVM_CORRUPT, "cut at %zu", at);
        }
        free(stream.bytes);
    }
}

/* Where blocks begin; the head is first, the end of the stream last. */
static uint32_t blocks_find(const tape *stream, size_t starts[20])
{
    uint32_t count = 0;
    starts[count++] = 0;
    for (size_t at = IVM__HEAD_BYTES; at < stream->size; count++) {
        ivm__block_header header;
        memcpy(&header, stream->bytes + at, sizeof header);
        starts[count] = at;
        at += sizeof header + header.stored;
    }
    starts[count] = stream->size;
    return count;
}

static void block_append(tape *to, const tape *from, const size_t starts[20], uint32_t block)
{
    cr_assert_eq(tape_write(to, from->bytes + starts[block], starts[block + 1] - starts[block]), IVM_OK);
}

/* Streams made of the blocks of one: without block i, with it twice, with i and j swapped, with i of another stream. */
static void blocks_rearranged(const part *parts, size_t parts_count, const ivm__head *head)
{
    ivm__head of_other = *head;
    of_other.fingerprint++;
    tape stream = stream_make(parts, parts_count, head), other = stream_make(parts, parts_count, &of_other), made = { 0 };
    size_t starts[20], starts_other[20];
    uint32_t count = blocks_find(&stream, starts);
    cr_assert_eq(blocks_find(&other, starts_other), count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t way = 0; way < 3 + count; way++) {
            uint32_t with = way < 3 ? i : way - 3;
            if (way >= 3 && with <= i) {
                continue;
            }
            made.size = 0;
            for (uint32_t b = 0; b < count; b++) {
                uint32_t take = way < 3 ? b : b == i ? with : b == with ? i : b;
                if (b != i || way != 0) {
                    block_append(&made, way == 2 && b == i ? &other : &stream, way == 2 && b == i ? starts_other : starts, take);
                }
                if (b == i && way == 1) {
                    block_append(&made, &stream, starts, b);
                }
            }
            bool after_the_end = i + 1 == count && way == 1; /* is never looked at */
            cr_assert_eq(read_once(&made, parts, parts_count), after_the_end ? IVM_OK : IVM_CORRUPT, "block %u, way %u", i, way);
        }
    }
    free(stream.bytes);
    free(other.bytes);
    free(made.bytes);
}

Test(engine_block, blocks_left_out_doubled_swapped_or_foreign_are_refused)
{
    blocks_rearranged(PARTS(small), &plain);
    blocks_rearranged(PARTS(large), &plain);
    for (uint32_t i = 1; i < heads_count(); i++) {
        blocks_rearranged(PARTS(large), &compressed);
    }
}

/* ---- Made up, with hashes that are right ---------------------------------------------------------------------------------------------- */

/* Hashes head and blocks anew, as they stand. */
static void hashes_set(tape *stream)
{
    ivm__stream_head head;
    memcpy(&head, stream->bytes, sizeof head);
    uint64_t hash = head.hash = ivm__stream_head_hash(&head);
    memcpy(stream->bytes, &head, sizeof head);
    for (size_t at = sizeof head; at + sizeof(ivm__block_header) <= stream->size;) {
        ivm__block_header header;
        memcpy(&header, stream->bytes + at, sizeof header);
        if (header.stored > stream->size - at - sizeof header) {
            return;
        }
        hash = header.hash = ivm__block_hash(&header, stream->bytes + at + sizeof header, hash);
        memcpy(stream->bytes + at, &header, sizeof header);
        at += sizeof header + header.stored;
    }
}

/* What a field of 32 bits in the head, or of a block's header, is refused as. */
static void field_is_refused(const ivm__head *head, uint32_t block, size_t offset, uint32_t value, ivm_status expected)
{
    tape stream = stream_make(PARTS(small), head);
    size_t starts[20];
    uint32_t count = blocks_find(&stream, starts);
    cr_assert_lt(block, count);
    memcpy(stream.bytes + starts[block] + offset, &value, sizeof value);
    hashes_set(&stream);
    cr_assert_eq(read_once(&stream, PARTS(small)), expected, "block %u, offset %zu, value %u", block, offset, value);
    free(stream.bytes);
}

Test(engine_block, heads_that_cannot_be_are_refused)
{
    field_is_refused(&plain, 0, 0, 0x4d564989, IVM_OK);
    field_is_refused(&plain, 0, 0, 0x4d564988, IVM_CORRUPT);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, format), 2, IVM_UNSUPPORTED);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, flags), 2, IVM_UNSUPPORTED);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, flags), 1, ivm__compress_is_there() ? IVM_OK : IVM_UNSUPPORTED);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, form), 0, IVM_CORRUPT);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, form), IVM__FORM_SHARED, IVM_OK);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, form), IVM__FORM_END, IVM_CORRUPT);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, partition), 1, IVM_CORRUPT);
    field_is_refused(&plain, 0, offsetof(ivm__stream_head, zero) + 20, 1, IVM_CORRUPT);
}

Test(engine_block, headers_that_cannot_be_are_refused)
{
    enum { CATALOG = 2, BLOCK_WORD = IVM__SECTION_CATALOG };
    field_is_refused(&plain, CATALOG, 0, BLOCK_WORD | IVM__BLOCK_FLAG_LAST << 16, IVM_OK);
    field_is_refused(&plain, CATALOG, 0, BLOCK_WORD, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, 0, BLOCK_WORD | (IVM__BLOCK_FLAG_LAST | IVM__BLOCK_FLAG_COMPRESSED) << 16, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, 0, BLOCK_WORD | 5u << 16, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, 0, IVM__SECTION_ROWS | IVM__BLOCK_FLAG_LAST << 16, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, offsetof(ivm__block_header, ordinal), 1, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, offsetof(ivm__block_header, part), 1, IVM_CORRUPT);
    field_is_refused(&plain, CATALOG, offsetof(ivm__block_header, zero), 1, IVM_CORRUPT);
    for (uint32_t block = 1; block < 9; block++) {
        for (uint64_t size = 0; size <= UINT32_MAX; size = size * 3 + 1) {
            field_is_refused(&plain, block, offsetof(ivm__block_header, raw), (uint32_t)size | 0x80, IVM_CORRUPT);
            field_is_refused(&plain, block, offsetof(ivm__block_header, stored), (uint32_t)size | 0x80, IVM_CORRUPT);
        }
    }
    for (uint32_t i = 1; i < heads_count(); i++) { /* 71 bytes that are no frame */
        field_is_refused(&compressed, CATALOG, 0, BLOCK_WORD | (IVM__BLOCK_FLAG_LAST | IVM__BLOCK_FLAG_COMPRESSED) << 16, IVM_CORRUPT);
        field_is_refused(&compressed, CATALOG, offsetof(ivm__block_header, raw), 72, IVM_CORRUPT);
    }
    field_is_refused(&plain, 8, IVM__BLOCK_HEADER_BYTES, 6, IVM_CORRUPT);
    field_is_refused(&plain, 8, IVM__BLOCK_HEADER_BYTES, 7, IVM_OK);
    field_is_refused(&plain, 8, IVM__BLOCK_HEADER_BYTES + 8, 225, IVM_CORRUPT);
}

/* A block more, empty or not, or one fewer, with hashes and end that are right. */
Test(engine_block, another_framing_of_the_content_is_refused)
{
    part parts[] = { { { IVM__SECTION_CATALOG, 0, 0 }, 2 * IVM__BLOCK_BYTES } };
    tape stream = stream_make(parts, 1, &plain), made = { 0 };
    size_t starts[20];
    cr_assert_eq(blocks_find(&stream, starts), 4);
    for (uint32_t way = 0; way < 2; way++) {
        made.size = 0;
        for (uint32_t b = 0; b < 4; b++) {
            block_append(&made, &stream, starts, b);
        }
        ivm__block_header header, extra;
        memcpy(&header, made.bytes + starts[2], sizeof header);
        extra = header;
        extra.raw = extra.stored = way ? 0 : header.raw / 2;
        header.flags = 0;
        header.raw = header.stored = way ? header.raw : header.raw / 2;
        uint64_t end[2] = { 3, 2 * IVM__BLOCK_BYTES };
        made.size = starts[2];
        cr_assert_eq(tape_write(&made, &header, sizeof header), IVM_OK);
        cr_assert_eq(tape_write(&made, stream.bytes + starts[2] + sizeof header, header.stored), IVM_OK);
        cr_assert_eq(tape_write(&made, &extra, sizeof extra), IVM_OK);
        cr_assert_eq(tape_write(&made, stream.bytes + starts[3] - extra.stored, extra.stored), IVM_OK);
        block_append(&made, &stream, starts, 3);
        memcpy(made.bytes + made.size - sizeof end, end, sizeof end);
        hashes_set(&made);
        cr_assert_eq(read_once(&made, parts, 1), IVM_CORRUPT, "way %u", way);
    }
    free(stream.bytes);
    free(made.bytes);
}

/* ---- Sections, messages, failures ---------------------------------------------------------------------------------------------------- */

Test(engine_block, content_left_or_missing_is_refused)
{
    for (size_t size = 0; size < 100; size++) {
        for (uint32_t i = 0; i < 2; i++) {
            const part *parts = i ? large : small;
            part wanted = parts[1];
            wanted.size = i ? wanted.size - 50 + size : size;
            tape stream = stream_make(parts, 2, &plain);
            fixture with;
            ivm__block_reader reader;
            static uint8_t room[4 * IVM__BLOCK_BYTES];
            fixture_open(&with);
            cr_assert_eq(ivm__block_reader_init(&reader, &with.memory, tape_read, &stream, &with.error), IVM_OK);
            cr_assert_eq(part_read(&reader, &parts[0], room), IVM_OK);
            cr_assert_eq(part_read(&reader, &wanted, room), wanted.size == parts[1].size ? IVM_OK : IVM_CORRUPT);
            ivm__block_reader_deinit(&reader);
            free(stream.bytes);
        }
    }
}

Test(engine_block, messages_say_where)
{
    tape stream = stream_make(PARTS(large), &plain);
    fixture with;
    ivm__head head;
    fixture_open(&with);
    stream.bytes[IVM__HEAD_BYTES + 3 * (IVM__BLOCK_BYTES + IVM__BLOCK_HEADER_BYTES) + 100] ^= 1;
    cr_assert_eq(stream_read(&with, &stream, PARTS(large), &head), IVM_CORRUPT);
    cr_assert_str_eq(with.error.message, "the block is not what was written here, in block 3 (rows 0), from byte 393376 on");
    stream.size = 1000;
    cr_assert_eq(stream_read(&with, &stream, PARTS(large), &head), IVM_CORRUPT);
    cr_assert_str_eq(with.error.message, "the stream ends at byte 1000, in block 0 (catalog), from byte 64 on");
    free(stream.bytes);

    stream = stream_make(PARTS(small), &plain);
    ivm__block_reader reader;
    uint8_t byte;
    stream.at = 0;
    cr_assert_eq(ivm__block_reader_init(&reader, &with.memory, tape_read, &stream, &with.error), IVM_OK);
    cr_assert_eq(part_read(&reader, &small[0], &byte), IVM_OK);
    cr_assert_eq(ivm__block_reader_begin(&reader, small[1].section), IVM_OK);
    cr_assert_eq(ivm__block_reader_place(&reader, ivm__fail(&with.error, IVM_CORRUPT, "it cannot be")), IVM_CORRUPT);
    cr_assert_str_eq(with.error.message, "it cannot be, in block 1 (catalog), from byte 96 on");
    cr_assert_eq(ivm__block_reader_place(&reader, IVM_CORRUPT), IVM_CORRUPT);
    cr_assert_str_eq(with.error.message, "it cannot be, in block 1 (catalog), from byte 96 on", "only once");
    ivm__block_reader_deinit(&reader);
    free(stream.bytes);
}

static ivm_status too_much(void *context, void *bytes, size_t size, size_t *got)
{
    (void)context, (void)bytes;
    *got = size + 1;
    return IVM_OK;
}

Test(engine_block, what_the_caller_s_functions_fail_with_is_passed_on)
{
    fixture with;
    ivm__head head;
    tape stream = stream_make(PARTS(small), &plain), to = { 0 };
    for (stream.limit = 1; stream.limit < stream.size; stream.limit++) {
        fixture_open(&with);
        stream.most = 1;
        cr_assert_eq(stream_read(&with, &stream, PARTS(small), &head), IVM_IO);
        cr_assert(test_allocator_is_clean(&with.allocator));
    }
    for (uint32_t n = 1, done = 0; !done; n++) {
        fixture_open(&with);
        to.size = 0;
        to.writes = n;
        ivm_status status = stream_write(&with, &to, PARTS(small), &plain);
        done = status == IVM_OK;
        cr_assert_eq(status, done ? IVM_OK : IVM_IO);
        cr_assert_eq(done, n == 10);
        cr_assert(test_allocator_is_clean(&with.allocator));
    }
    ivm__block_reader reader;
    cr_assert_eq(ivm__block_reader_init(&reader, &with.memory, too_much, NULL, &with.error), IVM_INVALID_ARGUMENT);
    ivm__block_reader_deinit(&reader);
    free(stream.bytes);
    free(to.bytes);
}

Test(engine_block, memory_failing_leaves_nothing)
{
    fixture with;
    ivm__head head;
    tape stream = { 0 };
    fixture_open(&with);
    for (uint64_t n = 1, done = 0; !done; n++) {
        stream.size = 0;
        with.error = (ivm_error)IVM_ERROR_INIT;
        test_allocator_arm(&with.allocator, n);
        ivm_status status = stream_write(&with, &stream, PARTS(small), heads_count() > 1 ? &compressed : &plain);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(test_allocator_is_clean(&with.allocator));
    }
    for (uint64_t n = 1, done = 0; !done; n++) {
        with.error = (ivm_error)IVM_ERROR_INIT;
        test_allocator_arm(&with.allocator, n);
        ivm_status status = stream_read(&with, &stream, PARTS(small), &head);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(test_allocator_is_clean(&with.allocator));
    }
    free(stream.bytes);
}
