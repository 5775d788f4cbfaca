/* Durable engines: opened, synced, asked. What is told to the journal is a record of the log.
 *
 *     appended, synced -> in force          not appended: cut back, nothing has happened
 *                                           not synced: nobody can say; the log is broken and takes nothing more
 *
 * The engine's lock is held meanwhile. See durable_push.c for pushes, durable_checkpoint.c for checkpoints, durable_replay.c for recovery. */
#include "durable_inside.h"

#include "bytes.h"

ivm_status ivm__durable_of(ivm_engine *engine, const char *call, ivm__durable **durable, ivm_error *error)
{
    if (!engine) {
        return ivm__fail_null(error, call, "engine");
    }
    if (!engine->journal) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s: the engine is not durable", call);
    }
    *durable = (ivm__durable *)engine->journal;
    return IVM_OK;
}

ivm_status ivm__durable_keep(const ivm__durable *it, ivm_error *error)
{
    return it->sync == IVM_SYNC_PUSH ? ivm__log_sync(it->log, error) : IVM_OK;
}

/* ---- The journal -------------------------------------------------------------------------------------------------------------------- */

static ivm_status change_tell(ivm__journal *self, ivm__record kind, const void *bytes, size_t size, ivm_error *error)
{
    ivm__durable *it = (ivm__durable *)self;
    ivm__sink *sink;
    IVM_TRY(ivm__log_append_begin(it->log, (uint8_t)kind, &sink, error));
    IVM_TRY(ivm__put_u32(sink, (uint32_t)size)); /* what fails has been abandoned */
    IVM_TRY(ivm__put(sink, bytes, size));
    IVM_TRY(ivm__log_append_end(it->log, error));
    return ivm__durable_keep(it, error);
}

static ivm_status settle(ivm__journal *self, ivm_error *error)
{
    ivm__durable *it = (ivm__durable *)self;
    return ivm__log_broken(it->log) ? IVM_OK : ivm__log_sync(it->log, error);
}

static void durable_free(ivm__durable *it)
{
    ivm__log_close(it->log);
    pthread_mutex_destroy(&it->waiting_lock);
    pthread_cond_destroy(&it->waiting_wake);
    ivm__release(&it->engine->memory, it, sizeof *it);
}

static void durable_close(ivm__journal *self)
{
    durable_free((ivm__durable *)self);
}

/* ---- Opening ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status options_check(const ivm_durable_options *options, const ivm_recovery *recovery, ivm_error *error)
{
    const ivm_checkpoint_options *checkpoint = &options->checkpoint;
    if (options->version > IVM_DURABLE_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_durable_open", "options", options->version, IVM_DURABLE_OPTIONS_VERSION);
    }
    if ((unsigned)options->sync > IVM_SYNC_ASKED) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_durable_open: %d is no sync", (int)options->sync);
    }
    if (checkpoint->version > IVM_CHECKPOINT_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_durable_open", "checkpoint", checkpoint->version, IVM_CHECKPOINT_OPTIONS_VERSION);
    }
    if ((unsigned)checkpoint->compression > IVM_COMPRESSION_ZSTD) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_durable_open: %d is no compression", (int)checkpoint->compression);
    }
    if (recovery && recovery->version > IVM_RECOVERY_VERSION) {
        return ivm__fail_version(error, "ivm_durable_open", "recovery", recovery->version, IVM_RECOVERY_VERSION);
    }
    return IVM_OK;
}

/* The engine takes it over once it is its journal. NULL: out of memory. */
static ivm__durable *durable_make(ivm_engine *engine, const ivm_durable_options *options)
{
    ivm__durable *it = ivm__allocate_zeroed(&engine->memory, sizeof *it);
    if (!it) {
        return NULL;
    }
    *it = (ivm__durable){
        .journal = { ivm__durable_push, change_tell, ivm__durable_submit, settle, durable_close },
        .engine = engine,
        .sync = options->sync,
        .group = options->group ? options->group : IVM__DURABLE_GROUP,
        .checkpoint = options->checkpoint,
    };
    pthread_mutex_init(&it->waiting_lock, NULL);
    pthread_cond_init(&it->waiting_wake, NULL);
    it->waiting_last = &it->waiting;
    return it;
}

static ivm_status recover(ivm__durable *it, const char *directory, const ivm__log_options *how, ivm_recovery *recovery, ivm_error *error)
{
    IVM_TRY(ivm__log_open(directory, how, &it->engine->memory, &it->log, error));
    IVM_TRY(ivm__durable_replay(it->engine, it->log, recovery, error));
    const ivm__log_recovery *found = ivm__log_recovery_of(it->log);
    recovery->created = found->created;
    recovery->bytes_cut = found->bytes_cut;
    if (found->bytes_cut) { /* else of a file that had just been made: nothing is gone */
        memcpy(recovery->message, found->message, sizeof recovery->message);
    }
    return IVM_OK;
}

/* Nobody has seen the engine. */
static void engine_drop(ivm_engine *engine)
{
    ivm_status closed = ivm_engine_close(engine, NULL);
    assert(closed == IVM_OK);
    (void)closed;
}

ivm_status ivm__durable_open(const char *directory, const ivm_durable_options *options, const ivm__files *files, ivm_engine **engine,
                             ivm_recovery *recovery, ivm_error *error)
{
    static const ivm_durable_options defaults = { .version = IVM_DURABLE_OPTIONS_VERSION };
    options = options ? options : &defaults;
    ivm_engine *made;
    if (!directory || !engine) {
        return ivm__fail_null(error, "ivm_durable_open", directory ? "engine" : "directory");
    }
    IVM_TRY(options_check(options, recovery, error));
    ivm__log_options how = { .files = files, .segment_bytes = options->segment_bytes, .read_only = options->read_only };
    ivm_recovery found = { .version = recovery ? recovery->version : 0 };
    IVM_TRY(ivm_engine_open(options->engine, &made, error));
    ivm__durable *it = durable_make(made, options);
    ivm_status status = it ? recover(it, directory, &how, &found, error) : ivm__fail_memory(error);
    if (status != IVM_OK) {
        if (it) {
            durable_free(it);
        }
        engine_drop(made);
        return status;
    }
    made->journal = &it->journal;
    if (recovery) {
        *recovery = found;
    }
    *engine = made;
    return IVM_OK;
}

ivm_status ivm_durable_open(const char *directory, const ivm_durable_options *options, ivm_engine **engine, ivm_recovery *recovery,
                            ivm_error *error)
{
    return ivm__durable_open(directory, options, NULL, engine, recovery, error);
}

/* ---- Syncing, and what can be asked --------------------------------------------------------------------------------------------------- */

ivm_status ivm_durable_sync(ivm_engine *engine, ivm_error *error)
{
    ivm__durable *it = NULL;
    IVM_TRY(ivm__durable_of(engine, "ivm_durable_sync", &it, error));
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__log_sync(it->log, error);
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_durable_state(ivm_engine *engine, ivm_durable_status *status, ivm_error *error)
{
    ivm__durable *it = NULL;
    IVM_TRY(ivm__durable_of(engine, "ivm_durable_state", &it, error));
    if (!status) {
        return ivm__fail_null(error, "ivm_durable_state", "status");
    }
    if (status->version > IVM_DURABLE_STATUS_VERSION) {
        return ivm__fail_version(error, "ivm_durable_state", "status", status->version, IVM_DURABLE_STATUS_VERSION);
    }
    ivm__log_state state = ivm__log_state_of(it->log);
    *status = (ivm_durable_status){ .version = status->version,
                                    .sequence = state.sequence,
                                    .synced = state.synced,
                                    .checkpoint = state.checkpoint,
                                    .log_bytes = state.log_bytes,
                                    .syncs = state.syncs,
                                    .broken = state.broken };
    return IVM_OK;
}
