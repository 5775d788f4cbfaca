/* Checkpoints of durable engines: a checkpoint's stream written to the log's directory, and the records it stands for dropped.
 *
 *     under the lock: a new segment begins, the checkpoint's first phase        without it: the second, synced, renamed; older files go
 *
 * Until the new one has its name, the one before and all segments count. */
#include "checkpoint.h"
#include "durable_inside.h"

typedef struct target {
    ivm__durable *durable;
    ivm__sink *sink;
    bool open;       /* the log's checkpoint is ours: to be ended, or abandoned */
    ivm_error cause; /* of the log; IVM_OK: it has not failed */
} target;

static ivm_status target_begin(void *context)
{
    target *to = context;
    ivm_status status = ivm__log_checkpoint_begin(to->durable->log, &to->sink, &to->cause);
    to->open = status == IVM_OK;
    return status;
}

/* What fails has been abandoned: another thread may have begun the next. */
static ivm_status target_write(void *context, const void *bytes, size_t size)
{
    target *to = context;
    assert(to->open);
    ivm_status status = to->sink->write(to->sink, bytes, size);
    to->open = status == IVM_OK;
    return status;
}

static ivm_status target_end(void *context, ivm_status status)
{
    target *to = context;
    if (status == IVM_OK) {
        return ivm__log_checkpoint_end(to->durable->log, &to->cause);
    }
    if (to->open) {
        ivm__log_checkpoint_abandon(to->durable->log);
    }
    return status;
}

ivm_status ivm_durable_checkpoint(ivm_engine *engine, ivm_error *error)
{
    target to = { .cause = IVM_ERROR_INIT };
    ivm__checkpoint_target how = { target_begin, target_write, target_end, &to };
    ivm_error cause = IVM_ERROR_INIT;
    IVM_TRY(ivm__durable_of(engine, "ivm_durable_checkpoint", &to.durable, error));
    ivm_status status = ivm__checkpoint_write(engine, &how, &to.durable->checkpoint, &cause);
    if (status == IVM_OK) {
        return IVM_OK;
    }
    return ivm__fail(error, status, "%s", to.cause.status != IVM_OK ? to.cause.message : cause.message);
}
