/* Durable engines inside: the journal that writes a log.
 *
 *     push, change -> a record appended -> synced -> committed          checkpoint: records before it are dropped
 *     open: checkpoint restored, then each record played                 (durable_replay.c) */
#ifndef IVM__DURABLE_INSIDE_H
#define IVM__DURABLE_INSIDE_H

#include "ivm/durable.h"
#include "journal.h"
#include "log.h"

#define IVM__DURABLE_GROUP 64u /* pushes that share a sync, at most, where the options do not say */

typedef struct ivm__durable {
    ivm__journal journal; /* first: the engine's journal is this */
    ivm_engine *engine;
    ivm__log *log;
    ivm_sync sync;
    bool more;      /* after the push under way another of its group comes, whose sync is for both. Under the engine's lock */
    uint32_t group; /* pushes of one, at most */
    ivm_checkpoint_options checkpoint;
    pthread_mutex_t waiting_lock; /* of what follows: the line of those that push; held for a few instructions */
    pthread_cond_t waiting_wake;
    bool led; /* one of them leads */
    struct ivm__request *waiting, **waiting_last;
} ivm__durable;

/* The engine's; invalid_argument names the call where it has none. */
ivm_status ivm__durable_of(ivm_engine *engine, const char *call, ivm__durable **durable, ivm_error *error) IVM_MUST_CHECK;
/* What was appended is on the disk, where that is promised. */
ivm_status ivm__durable_keep(const ivm__durable *it, ivm_error *error) IVM_MUST_CHECK;

/* The journal's (durable_push.c). */
ivm_status ivm__durable_push(ivm__journal *self, ivm__step *step, const ivm_batch *batch);
ivm_status ivm__durable_submit(ivm__journal *self, ivm_batch *batch, ivm_stats *stats, ivm_error *error);

/* Brings an engine that nobody else has, and that has no journal yet, to where the log ends. Counts what was played into `recovery`. */
ivm_status ivm__durable_replay(ivm_engine *engine, ivm__log *log, ivm_recovery *recovery, ivm_error *error) IVM_MUST_CHECK;

/* ivm_durable_open() over other system calls; `files` NULL: those of the system. */
ivm_status ivm__durable_open(const char *directory, const ivm_durable_options *options, const ivm__files *files, ivm_engine **engine,
                             ivm_recovery *recovery, ivm_error *error) IVM_MUST_CHECK;

#endif
