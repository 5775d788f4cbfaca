/* Durable engines: an engine that lives in a directory. What was acknowledged is there when the process, or the machine, comes back.
 *
 *     DIR/lock                          held while the engine is open
 *     DIR/checkpoint-<sequence>         the engine after that many records: one, the newest, counts
 *     DIR/log-<sequence>                the records after it, in segments
 *
 * A push is checked, applied and carried through the views; then its net changes go to the log and to the disk; then, and not before, it can
 * be seen and is acknowledged. Nothing that can fail comes after. The position of a batch (ivm_batch_position()) is in the same record as its
 * rows: who goes on from ivm_engine_position() loses no push and applies none twice.
 *
 * Tables, facts, views, columns and refreshes of deferred views go the same road, each a record of its own: a host that is killed between two
 * declarations finds the first of them. So find or create every table, fact and view each time, not all by the one that was found. A fact has
 * no name: it is one of ivm_fact_next(). Options, callbacks and planner settings are not kept.
 *
 * A component of its own: built with -DIVM_DURABLE=ON (the default on Unix); else every function is unsupported. It makes no thread. */
#ifndef IVM_DURABLE_H
#define IVM_DURABLE_H

#include "ivm/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PUSH: every push is on the disk before it is seen. ASKED: it is with the system, and on the disk when ivm_durable_sync(), a checkpoint or
 * closing says so: a killed process loses nothing, a machine without power what came since; what is there is a prefix of the changes all
 * the same. */
typedef enum ivm_sync { IVM_SYNC_PUSH, IVM_SYNC_ASKED } ivm_sync;

/* All zero: an engine with the defaults, every push synced before it is seen. */
typedef struct ivm_durable_options {
    uint32_t version;                 /* IVM_DURABLE_OPTIONS_VERSION; 0 means 1 */
    const ivm_engine_options *engine; /* NULL: the defaults. Not kept in the directory */
    ivm_sync sync;                    /* when pushes reach the disk */
    uint32_t group;         /* pushes that may share one sync; 0: 64. Those of other threads that come while one is synced form a group */
    uint64_t segment_bytes; /* a log file is ended past so many; 0: 64 MB */
    ivm_checkpoint_options checkpoint; /* how ivm_durable_checkpoint() writes */
    bool read_only; /* nothing is written, a torn tail is passed over; changes are unsupported. The directory must be there */
} ivm_durable_options;
#define IVM_DURABLE_OPTIONS_VERSION 1u

/* What opening found and did. */
typedef struct ivm_recovery {
    uint32_t version;                     /* IVM_RECOVERY_VERSION, set by the caller; 0 means 1 */
    bool created;                         /* the directory had no engine in it, or was made */
    uint64_t checkpoint;                  /* records that the checkpoint stands for */
    uint64_t batches, changes;            /* replayed from the log: pushes; of the catalog, and refreshes */
    uint64_t bytes_cut;                   /* of a torn tail */
    char message[IVM_ERROR_MESSAGE_SIZE]; /* where a tail was cut: which file, from where, why. Else "" */
} ivm_recovery;
#define IVM_RECOVERY_VERSION 1u

/* Opens the directory, makes it if it is not there (its parent must be), and brings the engine to the last whole record. An engine is begun
 * in an empty directory alone (lost+found does not count), or where a first opening was cut short; what else lies in one that has an engine is
 * left alone. A torn tail (the last record, or several that no sync had reached) is cut and told in *recovery. `options`, `recovery` and
 * `error` may be NULL. The caller owns *engine and closes it with ivm_engine_close(), which syncs (io where that fails; the next call closes it
 * nevertheless).
 * Then handles come from ivm_table_find(), ivm_view_find(), ivm_table_next(), ivm_view_next() and ivm_fact_next(), callbacks are set by
 * ivm_view_watch() and ivm_fact_watch(), and ivm_engine_position() says where to go on. ivm_read_changes() gives what the last record of the log
 * changed, as it did when that was pushed: a host that may have ended before it handed them on can do so now. Right behind a checkpoint it gives
 * nothing.
 * Cost: reading the checkpoint, and each logged change made once more.
 * Codes: corrupt (the checkpoint, or the log before its tail; the message names the file and byte, or the record, and what is wrong), io (the
 * message names call and file), in_use (another process or engine has it), unsupported (a newer version), invalid_argument (also of a directory that
 * has no engine and other files: the message names one of them, and nothing has changed in it), and what a replayed
 * push may fail with under the engine's options: out_of_memory above all. Then nothing that was acknowledged is gone, and it may be opened with
 * others. */
IVM_API ivm_status ivm_durable_open(const char *directory, const ivm_durable_options *options, ivm_engine **engine, ivm_recovery *recovery,
                                    ivm_error *error) IVM_MUST_CHECK;

/* Changing a durable engine may fail with io, beside what each call says:
 *   - Writing failed (a full disk): the log was cut back, nothing has happened, and later changes may go through.
 *   - A sync, cutting back, or giving a new segment of the log its name failed: nobody can say what is on the disk. The change is undone, and
 *     from then on every change is io. The engine can still be read, until it is closed and the directory opened again; the position then
 *     tells whether the change is in. If several pushes shared the sync the engine cannot be read either, and their callbacks are not called.
 * Who removes the directory under an open engine removes the log: pushes are acknowledged into a file that nobody can find again, until a new
 * segment or a checkpoint is io. The lock is gone as well, so that another engine may be opened in a new directory of that name.
 *
 * Pushes of several threads that share a sync are steps of their own, in one order, each with its status, statistics and callbacks; others see the
 * engine before the first and after the last of them.
 * ivm_restore() and ivm_restore_open() of a durable engine are unsupported; ivm_checkpoint() goes where it is told, as ever. */

/* Writes a checkpoint and drops the log before it. Pushes go on as ivm_checkpoint() says. A crash at any moment leaves the one before or this.
 * A new segment of the log begins first: where giving it its name fails the engine is as after a failed sync; the same of the checkpoint's
 * file ends this call alone. Another that is under way: in_use. Codes: those of ivm_checkpoint(), io, unsupported (read_only). When to call
 * it is the host's to say, by the log_bytes of ivm_durable_state(). */
IVM_API ivm_status ivm_durable_checkpoint(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
/* All that was pushed before is on the disk when it returns. For IVM_SYNC_ASKED. io as above, in_use from inside a callback. */
IVM_API ivm_status ivm_durable_sync(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;

/* How a durable engine stands. */
typedef struct ivm_durable_status {
    uint32_t version;          /* IVM_DURABLE_STATUS_VERSION, set by the caller; 0 means 1 */
    uint64_t sequence, synced; /* records written, and those known to be on the disk */
    uint64_t checkpoint;       /* records that the last checkpoint stands for */
    uint64_t log_bytes;        /* since then */
    uint64_t syncs;            /* since it was opened */
    bool broken;               /* a sync, cutting the log back, or naming a new segment of it failed: nothing changes any more */
} ivm_durable_status;
#define IVM_DURABLE_STATUS_VERSION 1u
/* invalid_argument where the engine is not durable. Any thread, at any time, from inside a callback too. */
IVM_API ivm_status ivm_durable_state(ivm_engine *engine, ivm_durable_status *status, ivm_error *error) IVM_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
