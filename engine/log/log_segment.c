/* Segments of a log: made, ended, cut and synced. One is made under another name and renamed once its head is on the disk, and takes records once
 * its name is; by then all of the one before it is on the disk. So a head that is not right is damage, and what is broken in any but the last
 * too. Cost of a new one: three syncs. */
#include "log_inside.h"

static ivm_status break_with(ivm__log *log, ivm_error *error, const ivm_error *why)
{
    ivm__log_break(log, why);
    if (error) {
        *error = *why;
    }
    return why->status;
}

static ivm_status half_make(ivm__log *log, ivm__file_name half, ivm__log_segment *segment, ivm_error *error)
{
    IVM_TRY(ivm__directory_unlink(&log->directory, half, error)); /* that could not be removed when it was given up */
    IVM_TRY(ivm__directory_random(&log->directory, &segment->id, error));
    IVM_TRY(ivm__file_open(&segment->file, &log->directory, half, IVM__FILES_CREATE, error));
    ivm__segment_head head = ivm__segment_head_make(log->identity, segment->id, segment->first);
    IVM_TRY(ivm__file_write(&segment->file, &head, sizeof head, 0, error));
    return ivm__file_datasync(&segment->file, error);
}

ivm_status ivm__log_segment_create(ivm__log *log, uint64_t sequence, ivm__log_segment *segment, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    ivm__file_name half = ivm__file_name_of(IVM__FILE_SEGMENT_NEW, sequence), name = ivm__file_name_of(IVM__FILE_SEGMENT, sequence);
    *segment = (ivm__log_segment){ .first = sequence, .size = sizeof(ivm__segment_head) };
    ivm_status status = half_make(log, half, segment, error);
    if (status != IVM_OK) {
        ivm__file_close(&segment->file);
        ivm__directory_remove(&log->directory, half);
        return status;
    }
    if (ivm__directory_rename(&log->directory, half, name, &why) != IVM_OK || ivm__directory_sync(&log->directory, &why) != IVM_OK) {
        ivm__file_close(&segment->file);
        return break_with(log, error, &why);
    }
    segment->file.name = name;
    return IVM_OK;
}

ivm_status ivm__log_segment_next(ivm__log *log, ivm_error *error)
{
    ivm__log_segment next;
    IVM_TRY(ivm__log_sync(log, error));
    uint64_t sequence = ivm__log_state_of(log).sequence;
    bool empty = log->segment.first == sequence;
    if (empty && !log->segment.cut) {
        return IVM_OK;
    }
    IVM_TRY(ivm__log_segment_create(log, sequence, &next, error));
    ivm__file_close(&log->segment.file);
    log->segment = next;
    pthread_mutex_lock(&log->lock);
    log->state.log_bytes += empty ? 0 : next.size;
    pthread_mutex_unlock(&log->lock);
    return IVM_OK;
}

ivm_status ivm__log_segment_cut(ivm__log *log, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    log->segment.cut = true;
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

ivm_status ivm__log_segment_mark(ivm__log *log, ivm_error *error)
{
    ivm__log_segment *segment = &log->segment;
    ivm__log_state state = ivm__log_state_of(log);
    if (segment->cut || segment->marked || segment->first == state.sequence || state.synced < state.sequence) {
        return IVM_OK;
    }
    ivm__fragment mark = { .flags = IVM__FRAGMENT_FIRST | IVM__FRAGMENT_LAST, .sequence = state.sequence, .synced = state.sequence };
    ivm__fragment_seal(&mark, &mark, segment->id, segment->id);
    ivm_status status = ivm__file_write(&segment->file, &mark, sizeof mark, segment->size, error);
    if (status != IVM_OK) {
        ivm_status cut = ivm__log_segment_cut(log, NULL);
        return cut == IVM_OK ? status : cut;
    }
    segment->size += sizeof mark;
    segment->marked = true;
    pthread_mutex_lock(&log->lock);
    log->state.log_bytes += sizeof mark;
    pthread_mutex_unlock(&log->lock);
    return ivm__log_segment_sync(log, error);
}
