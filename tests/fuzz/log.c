/* Fuzzes what a log is recovered from: the input is a directory's files, {kind u8, 0 u8, sequence u16, size u32, bytes} each, put on a disk in memory as they
 * are, then sealed: every head and fragment with the hashes that belong to it. What can be opened is read to its end, takes records and a checkpoint, and
 * must then give, opened again, what it gave and what was appended. The mutator changes a file's bytes and seals them. */
#include "log.h"
#include "directory.h"
#include "engine/log/disk_model.h"
#include "fuzz.h"
#include "log_fragment.h"

#include <string.h>

#define FILES_MOST 16u
#define APPENDED 3u

typedef struct entry {
    uint8_t kind, zero;
    uint16_t sequence;
    uint32_t size;
} entry;

/* ---- The input --------------------------------------------------------------------------------------------------------------------------- */

/* The file at data + *at; *at moves behind it. A size past the end is cut to it. */
static bool entry_next(const uint8_t *data, size_t size, size_t *at, entry *file, size_t *bytes)
{
    if (size - *at < sizeof *file) {
        return false;
    }
    memcpy(file, data + *at, sizeof *file);
    *bytes = *at + sizeof *file;
    file->kind %= IVM__FILE_SEGMENT_NEW + 1;
    file->size = file->size < size - *bytes ? file->size : (uint32_t)(size - *bytes);
    *at = *bytes + file->size;
    return true;
}

static void fragments_seal(uint8_t *bytes, size_t size, uint64_t segment)
{
    uint64_t before = segment;
    ivm__fragment fragment;
    for (size_t at = sizeof(ivm__segment_head); size - at >= sizeof fragment;) {
        memcpy(&fragment, bytes + at, sizeof fragment);
        size_t left = size - at - sizeof fragment;
        if (fragment.size > IVM__FRAGMENT_BYTES || ivm__fragment_padded(fragment.size) > left) {
            return;
        }
        fragment.zero = 0;
        ivm__fragment_seal(&fragment, bytes + at + sizeof fragment, segment, fragment.flags & IVM__FRAGMENT_FIRST ? segment : before);
        memcpy(bytes + at, &fragment, sizeof fragment);
        before = fragment.payload_hash;
        at += sizeof fragment + ivm__fragment_padded(fragment.size);
    }
}

static void file_seal(const entry *file, uint8_t *bytes)
{
    if (file->kind < IVM__FILE_SEGMENT) {
        ivm__checkpoint_head head;
        if (file->size >= sizeof head) {
            memcpy(&head, bytes, sizeof head);
            head = ivm__checkpoint_head_make(head.directory, head.sequence);
            memcpy(bytes, &head, sizeof head);
        }
        return;
    }
    ivm__segment_head head;
    if (file->size >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        head = ivm__segment_head_make(head.directory, head.segment, head.sequence);
        memcpy(bytes, &head, sizeof head);
        fragments_seal(bytes, file->size, head.segment);
    }
}

static void seal(uint8_t *data, size_t size)
{
    entry file;
    for (size_t at = 0, bytes; entry_next(data, size, &at, &file, &bytes);) {
        file_seal(&file, data + bytes);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    entry file, chosen = { 0 };
    size_t count = 0, bytes, start = 0;
    for (size_t at = 0; entry_next(data, size, &at, &file, &bytes);) {
        count++;
    }
    if (count == 0 || seed % 16 == 0) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    for (size_t at = 0, i = 0; i <= seed / 16 % count && entry_next(data, size, &at, &chosen, &bytes); i++) {
        start = bytes;
    }
    size_t behind = size - start - chosen.size, room = size_max - size + chosen.size;
    uint8_t *copy = malloc(room + behind + 1);
    NEED(copy);
    memcpy(copy, data + start, chosen.size);
    memcpy(copy + room, data + start + chosen.size, behind);
    file = chosen;
    file.size = (uint32_t)LLVMFuzzerMutate(copy, chosen.size, room);
    memcpy(data + start - sizeof file, &file, sizeof file);
    memcpy(data + start, copy, file.size);
    memcpy(data + start + file.size, copy + room, behind);
    free(copy);
    size = start + file.size + behind;
    seal(data, size);
    return size;
}

/* ---- The log ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_error error;

static disk_model *disk_of(const uint8_t *data, size_t size)
{
    disk_model *disk = disk_create(1);
    const ivm__files *files = disk_files(disk);
    entry file;
    NEED(files->directory_make(files->context, "d") == 0);
    for (size_t at = 0, bytes, count = 0; count < FILES_MOST && entry_next(data, size, &at, &file, &bytes); count++) {
        ivm__file_name name = ivm__file_name_of((ivm__file_kind)file.kind, file.sequence);
        disk_take_off(disk, name.text);
        disk_put(disk, name.text, data + bytes, file.size);
    }
    return disk;
}

/* Reads the checkpoint and all records. *sum goes over both. */
static ivm_status contents_read(ivm__log *log, uint64_t *records, uint64_t *sum)
{
    ivm__feed *feed;
    uint8_t byte, kind;
    ivm_status status = ivm__log_checkpoint_read(log, &feed, &error);
    *records = *sum = 0;
    while (status == IVM_OK && feed && feed->read(feed, &byte, 1) == IVM_OK) {
        *sum = (*sum ^ byte) * 0x100000001b3u;
    }
    error = (ivm_error)IVM_ERROR_INIT;
    while (status == IVM_OK && (status = ivm__log_record_read(log, &kind, &feed, &error)) == IVM_OK && feed) {
        *sum = (*sum ^ kind) * 0x100000001b3u;
        for (int i = 0; i < 1000 && feed->read(feed, &byte, 1) == IVM_OK; i++) {
            *sum = (*sum ^ byte) * 0x100000001b3u;
        }
        error = (ivm_error)IVM_ERROR_INIT;
        ++*records;
    }
    return status;
}

static void append(ivm__log *log)
{
    ivm__sink *sink;
    NEED(ivm__log_append_begin(log, 7, &sink, &error) == IVM_OK);
    NEED(sink->write(sink, "record", 6) == IVM_OK && ivm__log_append_end(log, &error) == IVM_OK);
}

/* Opened, read, written to and closed; false: it cannot be opened, which must be told. */
static bool use(const disk_model *disk, ivm__memory *memory, bool read_only, bool checkpoints, uint64_t *records, uint64_t *sum)
{
    ivm__log_options options = { .files = disk_files(disk), .segment_bytes = 500, .read_only = read_only };
    ivm__log *log;
    error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = ivm__log_open("d", &options, memory, &log, &error);
    if (status == IVM_OK) {
        status = contents_read(log, records, sum);
        for (uint32_t i = 0; status == IVM_OK && !read_only && i < APPENDED; i++) {
            append(log);
        }
        if (status == IVM_OK && checkpoints) {
            ivm__sink *sink;
            NEED(ivm__log_checkpoint_begin(log, &sink, &error) == IVM_OK && sink->write(sink, "state", 5) == IVM_OK);
            append(log);
            NEED(ivm__log_checkpoint_end(log, &error) == IVM_OK);
        }
        ivm__log_close(log);
    }
    NEED(status == IVM_OK || (error.message[0] && !strchr(error.message, '\n') && error.status == status));
    NEED(disk_handles(disk) == 0);
    return status == IVM_OK;
}

static void recover(const uint8_t *data, size_t size)
{
    disk_model *disk = disk_of(data, size);
    ivm__memory memory;
    uint64_t looked = 0, first = 0, second = 0, third = 0, sum = 0, sum_looked = 0;
    ivm__memory_init(&memory, &(ivm_allocator){ 0 });
    bool looks = use(disk, &memory, true, false, &looked, &sum_looked);
    if (use(disk, &memory, false, false, &first, &sum)) {
        NEED(!looks || (looked == first && sum_looked == sum));
        NEED(use(disk, &memory, false, true, &second, &sum) && second == first + APPENDED);
        NEED(use(disk, &memory, false, false, &third, &sum) && third == 1);
    }
    NEED(memory.bytes_held == 0);
    disk_free(disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    NEED(copy);
    memcpy(copy, data, size);
    recover(copy, size);
    seal(copy, size);
    if (memcmp(copy, data, size) != 0) {
        recover(copy, size);
    }
    free(copy);
    return 0;
}
