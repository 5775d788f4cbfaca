/* Checkpoints of a log, written: to a file of another name that becomes the newest by being renamed once all of it is on the disk. Only then, and
 * once the name is there too, what it stands for is removed. Appending goes on meanwhile: what both touch is under the log's lock. */
#include "log_inside.h"

static ivm_status file_begin(ivm__log *log, uint64_t sequence, ivm__file *file, ivm_error *error)
{
    ivm__file_name name = ivm__file_name_of(IVM__FILE_CHECKPOINT_NEW, sequence);
    ivm__checkpoint_head head = ivm__checkpoint_head_make(log->identity, sequence);
    IVM_TRY(ivm__directory_unlink(&log->directory, name, error)); /* that could not be removed when it was given up */
    IVM_TRY(ivm__file_open(file, &log->directory, name, IVM__FILES_CREATE, error));
    ivm_status status = ivm__file_write(file, &head, sizeof head, 0, error);
    if (status != IVM_OK) {
        ivm__file_close(file);
        ivm__directory_remove(&log->directory, name);
    }
    return status;
}

/* Closes the file, whatever the outcome. */
static ivm_status file_publish(ivm__log *log, uint64_t sequence, ivm__file *file, ivm_error *error)
{
    ivm_error why = IVM_ERROR_INIT;
    ivm__file_name half = file->name;
    ivm_status status = ivm__file_sync(file, error);
    ivm__file_close(file);
    if (status == IVM_OK) {
        status = ivm__directory_rename(&log->directory, half, ivm__file_name_of(IVM__FILE_CHECKPOINT, sequence), error);
    }
    if (status != IVM_OK) {
        ivm__directory_remove(&log->directory, half);
        return status;
    }
    status = ivm__directory_sync(&log->directory, &why);
    if (status != IVM_OK) {
        ivm__log_break(log, &why);
        return ivm__fail(error, status, "%s", why.message);
    }
    return IVM_OK;
}

ivm_status ivm__log_checkpoint_create(ivm__log *log, ivm_error *error)
{
    ivm__file file;
    IVM_TRY(file_begin(log, 0, &file, error));
    return file_publish(log, 0, &file, error);
}

/* Whether it was free: it is taken then. */
static bool checkpoint_take(ivm__log *log)
{
    pthread_mutex_lock(&log->lock);
    bool free = !log->checkpoint.open;
    log->checkpoint.open = true;
    pthread_mutex_unlock(&log->lock);
    return free;
}

static void checkpoint_give_back(ivm__log *log)
{
    pthread_mutex_lock(&log->lock);
    log->checkpoint.open = false;
    pthread_mutex_unlock(&log->lock);
}

static ivm_status checkpoint_write(ivm__sink *self, const void *bytes, size_t size)
{
    ivm__log_checkpoint *checkpoint = (ivm__log_checkpoint *)self;
    assert(checkpoint->file.directory);
    ivm_status status = ivm__file_write(&checkpoint->file, bytes, size, checkpoint->at, checkpoint->error);
    if (status != IVM_OK) {
        ivm__log_checkpoint_abandon(checkpoint->log);
        return status;
    }
    checkpoint->at += size;
    return IVM_OK;
}

static ivm_status checkpoint_begin(ivm__log *log, ivm_error *error)
{
    ivm__log_checkpoint *checkpoint = &log->checkpoint;
    IVM_TRY(ivm__log_segment_next(log, error));
    ivm__log_state state = ivm__log_state_of(log);
    checkpoint->sink = (ivm__sink){ checkpoint_write };
    checkpoint->log = log;
    checkpoint->sequence = state.sequence;
    checkpoint->at = sizeof(ivm__checkpoint_head);
    checkpoint->bytes_before = state.log_bytes - log->segment.size;
    checkpoint->error = error;
    return file_begin(log, state.sequence, &checkpoint->file, error);
}

ivm_status ivm__log_checkpoint_begin(ivm__log *log, ivm__sink **sink, ivm_error *error)
{
    IVM_TRY(ivm__log_check(log, error));
    assert(log->reader.ended && !log->record.open);
    if (!checkpoint_take(log)) {
        return ivm__fail(error, IVM_IN_USE, "a checkpoint is being written already, in %s", log->directory.path);
    }
    ivm_status status = checkpoint_begin(log, error);
    if (status != IVM_OK) {
        checkpoint_give_back(log);
        return status;
    }
    *sink = &log->checkpoint.sink;
    return IVM_OK;
}

ivm_status ivm__log_checkpoint_end(ivm__log *log, ivm_error *error)
{
    ivm__log_checkpoint *checkpoint = &log->checkpoint;
    assert(checkpoint->file.directory);
    ivm_status status = file_publish(log, checkpoint->sequence, &checkpoint->file, error);
    if (status == IVM_OK) {
        pthread_mutex_lock(&log->lock);
        log->state.checkpoint = checkpoint->sequence;
        log->state.log_bytes -= checkpoint->bytes_before;
        pthread_mutex_unlock(&log->lock);
        ivm__directory_drop(&log->directory, checkpoint->sequence, false); /* a segment may be half made just now */
    }
    checkpoint_give_back(log);
    return status;
}

void ivm__log_checkpoint_abandon(ivm__log *log)
{
    ivm__log_checkpoint *checkpoint = &log->checkpoint;
    if (checkpoint->file.directory) {
        ivm__file_name half = checkpoint->file.name;
        ivm__file_close(&checkpoint->file);
        ivm__directory_remove(&log->directory, half);
        checkpoint_give_back(log);
    }
}
