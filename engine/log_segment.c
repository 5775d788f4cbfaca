/* Segments of a log: made, ended, cut and synced. One is ended only once all of it is on the disk, and its next one's name is on the disk before
 * anything is appended to that: so what is broken in any but the last is damage. Cost of a new one: three syncs. */
#include "log_inside.h"

/* Passes on what a function that knows no NULL said. */
static ivm_status fail_with(ivm_error *error, const ivm_error *why)
{
    if (error) {
        *error = *why;
    }
    return why->status;
}

static ivm_status break_with(ivm__log *log, ivm_error *error, const ivm_error *why)
{
    ivm__log_break(log, why);
    return fail_with(error, why);
}

static ivm_status head_write(ivm__log *log, ivm__log_segment *segment, ivm_error *error)
{
    ivm__segment_head head = ivm__segment_head_make(log->identity, segment->id, segment->first);
    return ivm__file_write(&segment->file, &head, sizeof head, 0, error);
}

/* A segment whose making failed must not come up again behind records that the one before it takes later. */
static ivm_status half_made_remove(ivm__log *log, ivm__file_name name, ivm_error *error, const ivm_error *why)
{
    ivm_error not_removed = IVM_ERROR_INIT;
    if (ivm__directory_unlink(&log->directory, name, &not_removed) != IVM_OK ||
        ivm__directory_sync(&log->directory, &not_removed) != IVM_OK) {
        ivm__log_break(log, &not_removed);
    }
    return fail_with(error, why);
}

ivm_status ivm__log_segment_create(ivm__log *log, uint64_t sequence, ivm__log_segment *segment, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    ivm__file_name name = ivm__file_name_of(IVM__FILE_SEGMENT, sequence);
    *segment = (ivm__log_segment){ .first = sequence, .size = sizeof(ivm__segment_head) };
    IVM_TRY(ivm__directory_random(&log->directory, &segment->id, error));
    if (ivm__file_open(&segment->file, &log->directory, name, IVM__FILES_CREATE, &why) != IVM_OK ||
        head_write(log, segment, &why) != IVM_OK) {
        ivm__file_close(&segment->file);
        return half_made_remove(log, name, error, &why);
    }
    if (ivm__file_datasync(&segment->file, &why) != IVM_OK || ivm__directory_sync(&log->directory, &why) != IVM_OK) {
        ivm__file_close(&segment->file);
        return break_with(log, error, &why);
    }
    return IVM_OK;
}

ivm_status ivm__log_segment_next(ivm__log *log, ivm_error *error)
{
    ivm__log_segment next;
    IVM_TRY(ivm__log_sync(log, error));
    uint64_t sequence = ivm__log_state_of(log).sequence;
    if (log->segment.first == sequence) {
        return IVM_OK;
    }
    IVM_TRY(ivm__log_segment_create(log, sequence, &next, error));
    ivm__file_close(&log->segment.file);
    log->segment = next;
    pthread_mutex_lock(&log->lock);
    log->state.log_bytes += next.size;
    pthread_mutex_unlock(&log->lock);
    return IVM_OK;
}

ivm_status ivm__log_segment_cut(ivm__log *log, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    if (ivm__file_truncate(&log->segment.file, log->segment.size, &why) != IVM_OK) {
        return break_with(log, error, &why);
    }
    return ivm__log_segment_sync(log, error);
}

ivm_status ivm__log_segment_sync(ivm__log *log, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    if (ivm__file_datasync(&log->segment.file, &why) != IVM_OK) {
        return break_with(log, error, &why);
    }
    pthread_mutex_lock(&log->lock);
    log->state.synced = log->state.sequence;
    log->state.syncs++;
    pthread_mutex_unlock(&log->lock);
    return IVM_OK;
}
