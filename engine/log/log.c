/* The write-ahead log: opening, appending, syncing, closing. A record goes to the segment fragment by fragment, each one write; a
 * record of up to IVM__FRAGMENT_BYTES is one write in all, and none before its end. Cost of appending: a copy, two hashes and a write; memory:
 * a fragment's. */
#include "log_read.h"

#include <string.h>

#define BUFFER_MIN 4096u
#define BUFFER_MAX (sizeof(ivm__fragment) + IVM__FRAGMENT_BYTES)

/* ---- State -------------------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t *lock_of(const ivm__log *log)
{
    return (pthread_mutex_t *)&log->lock;
}

ivm__log_state ivm__log_state_of(const ivm__log *log)
{
    pthread_mutex_lock(lock_of(log));
    ivm__log_state state = log->state;
    pthread_mutex_unlock(lock_of(log));
    return state;
}

bool ivm__log_broken(const ivm__log *log)
{
    return ivm__log_state_of(log).broken;
}

const ivm__log_recovery *ivm__log_recovery_of(const ivm__log *log)
{
    return &log->recovery;
}

void ivm__log_break(ivm__log *log, const ivm_error *error)
{
    pthread_mutex_lock(&log->lock);
    if (!log->state.broken) {
        log->state.broken = true;
        memcpy(log->why, error->message, sizeof log->why);
    }
    pthread_mutex_unlock(&log->lock);
}

ivm_status ivm__log_check(const ivm__log *log, ivm_error *error)
{
    if (log->read_only) {
        return ivm__fail(error, IVM_UNSUPPORTED, "%s: it was opened to be read only", log->directory.path);
    }
    if (ivm__log_broken(log)) {
        return ivm__fail(error, IVM_IO, "the log takes nothing more until it is opened again, since this failed: %s", log->why);
    }
    return IVM_OK;
}

/* ---- Opening and closing ------------------------------------------------------------------------------------------------------------ */

/* A directory without a checkpoint is a new one. Or one in which the making of the first segment and checkpoint was cut short: then the
 * segment has no record. Anything else is a checkpoint that is missing. */
static ivm_status first_segment_judge(ivm__log *log, ivm_error *error)
{
    const ivm__directory_list *list = &log->reader.list;
    uint64_t size = 0;
    if (list->segments_count == 0) {
        return IVM_OK;
    }
    ivm__file_name name = ivm__file_name_of(IVM__FILE_SEGMENT, list->segments[0]);
    if (list->segments_count == 1 && list->segments[0] == 0) {
        ivm__file file;
        IVM_TRY(ivm__file_open(&file, &log->directory, name, IVM__FILES_READ, error));
        ivm_status status = ivm__file_size(&file, &size, error);
        ivm__file_close(&file);
        if (status != IVM_OK || size <= sizeof(ivm__segment_head)) {
            return status;
        }
    }
    return ivm__fail(error, IVM_CORRUPT, "%s is there, but no checkpoint, in %s", name.text, log->directory.path);
}

/* The directory and the segment are on the disk before the checkpoint is there: where a checkpoint is found, its segment must be, and neither can
 * go again. */
static ivm_status log_create(ivm__log *log, ivm_error *error)
{
    ivm__log_segment segment;
    IVM_TRY(first_segment_judge(log, error));
    if (log->read_only) {
        return ivm__fail(error, IVM_IO, "%s: there is no log in it", log->directory.path);
    }
    if (log->reader.list.stranger[0]) {
        return ivm__directory_refuse(&log->directory, &log->reader.list, error);
    }
    IVM_TRY(ivm__directory_sync_above(&log->directory, error));
    IVM_TRY(ivm__directory_random(&log->directory, &log->identity, error));
    IVM_TRY(ivm__log_segment_create(log, 0, &segment, error));
    ivm__file_close(&segment.file);
    IVM_TRY(ivm__log_checkpoint_create(log, error));
    log->recovery.created = true;
    return IVM_OK;
}

static ivm_status log_enter(ivm__log *log, const char *directory, const ivm__files *files, ivm_error *error)
{
    ivm__directory_list *list = &log->reader.list;
    IVM_TRY(ivm__directory_open(&log->directory, directory, files, log->memory, log->read_only, error));
    IVM_TRY(ivm__directory_list_make(&log->directory, list, error));
    if (!list->checkpoint_found) {
        IVM_TRY(log_create(log, error));
        ivm__directory_list_release(&log->directory, list);
        IVM_TRY(ivm__directory_list_make(&log->directory, list, error));
    }
    return ivm__log_reader_open(log, error);
}

ivm_status ivm__log_open(const char *directory, const ivm__log_options *options, ivm__memory *memory, ivm__log **log, ivm_error *error)
{
    static const ivm__log_options defaults = { 0 };
    options = options ? options : &defaults;
    assert(directory && memory && log);
    ivm__log *made = ivm__allocate_zeroed(memory, sizeof *made);
    if (!made) {
        return ivm__fail_memory(error);
    }
    made->memory = memory;
    made->read_only = options->read_only;
    made->segment_bytes = options->segment_bytes ? options->segment_bytes : IVM__LOG_SEGMENT_BYTES;
    pthread_mutex_init(&made->lock, NULL);
    ivm_status status = log_enter(made, directory, options->files ? options->files : &ivm__files_posix, error);
    if (status != IVM_OK) {
        ivm__log_close(made);
        return status;
    }
    *log = made;
    return IVM_OK;
}

void ivm__log_close(ivm__log *log)
{
    if (!log) {
        return;
    }
    ivm__log_append_abandon(log);
    if (log->reader.ended && !log->read_only && ivm__log_sync(log, NULL) == IVM_OK) {
        ivm_status status = ivm__log_segment_mark(log, NULL);
        (void)status; /* it is none of what was promised */
    }
    ivm__log_checkpoint_abandon(log);
    ivm__log_reader_close(log);
    ivm__file_close(&log->segment.file);
    ivm__directory_close(&log->directory);
    ivm__release(log->memory, log->record.buffer, log->record.capacity);
    pthread_mutex_destroy(&log->lock);
    ivm__release(log->memory, log, sizeof *log);
}

/* ---- Appending ---------------------------------------------------------------------------------------------------------------------- */

static void record_drop(ivm__log *log)
{
    ivm__log_record *record = &log->record;
    record->open = false;
    ivm_status status = record->touched ? ivm__log_segment_cut(log, NULL) : IVM_OK;
    (void)status; /* the log is broken where it failed */
}

/* Room for so much payload and the zeros behind it. */
static ivm_status buffer_reserve(ivm__log_record *record, uint32_t size)
{
    size_t needed = sizeof record->fragment + ivm__fragment_padded(size), wanted = (size_t)record->capacity * 2;
    if (needed <= record->capacity) {
        return IVM_OK;
    }
    wanted = wanted < BUFFER_MIN ? BUFFER_MIN : wanted > BUFFER_MAX ? BUFFER_MAX : wanted;
    wanted = wanted < needed ? needed : wanted;
    uint8_t *grown = ivm__resize(record->log->memory, record->buffer, record->capacity, wanted);
    if (!grown) {
        return ivm__fail_memory(record->error);
    }
    record->buffer = grown;
    record->capacity = (uint32_t)wanted;
    return IVM_OK;
}

static ivm_status fragment_put(ivm__log_record *record, bool last)
{
    ivm__fragment *fragment = &record->fragment;
    ivm__log *log = record->log;
    IVM_TRY(buffer_reserve(record, record->size));
    uint8_t *payload = record->buffer + sizeof *fragment;
    uint32_t padded = ivm__fragment_padded(record->size);
    memset(payload + record->size, 0, padded - record->size);
    fragment->size = record->size;
    fragment->flags = (uint8_t)((fragment->index ? 0 : IVM__FRAGMENT_FIRST) | (last ? IVM__FRAGMENT_LAST : 0));
    ivm__fragment_seal(fragment, payload, log->segment.id, record->hash_before);
    memcpy(record->buffer, fragment, sizeof *fragment);
    record->touched = true;
    IVM_TRY(ivm__file_write(&log->segment.file, record->buffer, sizeof *fragment + padded, record->at, record->error));
    record->at += sizeof *fragment + padded;
    record->hash_before = fragment->payload_hash;
    record->size = 0;
    fragment->index++;
    return IVM_OK;
}

static ivm_status record_append(ivm__log_record *record, const uint8_t *bytes, size_t size)
{
    while (size) {
        if (record->size == IVM__FRAGMENT_BYTES) {
            IVM_TRY(fragment_put(record, false));
        }
        uint32_t room = IVM__FRAGMENT_BYTES - record->size, count = size < room ? (uint32_t)size : room;
        IVM_TRY(buffer_reserve(record, record->size + count));
        memcpy(record->buffer + sizeof record->fragment + record->size, bytes, count);
        record->size += count;
        bytes += count;
        size -= count;
    }
    return IVM_OK;
}

static ivm_status record_write(ivm__sink *self, const void *bytes, size_t size)
{
    ivm__log_record *record = (ivm__log_record *)self;
    assert(record->open);
    ivm_status status = record_append(record, bytes, size);
    if (status != IVM_OK) {
        record_drop(record->log);
    }
    return status;
}

ivm_status ivm__log_append_begin(ivm__log *log, uint8_t kind, ivm__sink **sink, ivm_error *error)
{
    ivm__log_record *record = &log->record;
    assert(kind && !record->open);
    IVM_TRY(ivm__log_check(log, error));
    assert(log->reader.ended);
    ivm__log_state state = ivm__log_state_of(log);
    uint64_t size = log->segment.size;
    bool full = size >= log->segment_bytes && (state.synced == state.sequence || size / 2 >= log->segment_bytes);
    if (full || log->segment.cut) {
        IVM_TRY(ivm__log_segment_next(log, error));
        state = ivm__log_state_of(log);
    }
    *record = (ivm__log_record){
        .sink = { record_write },
        .log = log,
        .buffer = record->buffer,
        .capacity = record->capacity,
        .fragment = { .kind = kind, .sequence = state.sequence, .synced = state.synced },
        .hash_before = log->segment.id,
        .at = log->segment.size,
        .error = error,
        .open = true,
    };
    *sink = &record->sink;
    return IVM_OK;
}

ivm_status ivm__log_append_end(ivm__log *log, ivm_error *error)
{
    ivm__log_record *record = &log->record;
    assert(record->open);
    record->error = error;
    ivm_status status = fragment_put(record, true);
    if (status != IVM_OK) {
        record_drop(log);
        return status;
    }
    record->open = false;
    pthread_mutex_lock(&log->lock);
    log->state.sequence++;
    log->state.log_bytes += record->at - log->segment.size;
    pthread_mutex_unlock(&log->lock);
    log->segment.size = record->at;
    log->segment.marked = false;
    return IVM_OK;
}

void ivm__log_append_abandon(ivm__log *log)
{
    if (log->record.open) {
        record_drop(log);
    }
}

/* ---- Syncing -------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__log_sync(ivm__log *log, ivm_error *error)
{
    if (log->read_only) {
        return IVM_OK;
    }
    IVM_TRY(ivm__log_check(log, error));
    assert(log->reader.ended && !log->record.open);
    ivm__log_state state = ivm__log_state_of(log);
    return state.synced == state.sequence ? IVM_OK : ivm__log_segment_sync(log, error);
}
