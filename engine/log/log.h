/* The write-ahead log of a directory: records of opaque bytes, each behind the other, and checkpoints that stand for those before them.
 *
 *     DIR/lock                    locked while the log is open
 *     DIR/checkpoint-<n>          what the first n records made: a head, then a stream of bytes; the newest counts
 *     DIR/log-<n>                 a segment: a head, then records n, n + 1, ...
 *
 * Records are numbered from 0; every `sequence` is a number of records, so that the next one appended has the sequence as its number. A record
 * is on the disk once a sync after it has succeeded; what is found after a crash is a prefix of what was appended that holds every record that
 * was synced. Bytes: log_fragment.h. How damage is told from a torn tail: log_read.h.
 *
 * Thread rule: one thread at a time (the holder of the engine's lock) opens, reads, appends, syncs and begins a checkpoint; another
 * may at the same time write to the checkpoint's sink and end or abandon it; ivm__log_state_of() and ivm__log_broken() may be called from any. */
#ifndef IVM__LOG_H
#define IVM__LOG_H

#include "files.h"
#include "memory.h"
#include "stream.h"

typedef struct ivm__log ivm__log;

#define IVM__LOG_SEGMENT_BYTES ((uint64_t)64 << 20)

typedef struct ivm__log_options {
    const ivm__files *files; /* NULL: those of the system */
    uint64_t segment_bytes;  /* a segment is ended once it has so many; 0: IVM__LOG_SEGMENT_BYTES */
    bool read_only;          /* nothing is written: a torn tail is passed over, not cut; appending and checkpoints are unsupported */
} ivm__log_options;

typedef struct ivm__log_recovery {
    bool created;                         /* the directory was empty, or was made */
    uint64_t checkpoint;                  /* records that the checkpoint stands for */
    uint64_t bytes_cut;                   /* of a torn tail */
    char message[IVM_ERROR_MESSAGE_SIZE]; /* where a tail was cut: which file, from where, why. Else "" */
} ivm__log_recovery;

/* Makes the directory if it is not there (its parent must be), locks it, finds the newest checkpoint and the segments after it. The caller closes
 * *log; `memory` must outlive it; `options` may be NULL. in_use: it is open already; corrupt, io, unsupported (of a later version). Where it is
 * read_only and holds no log: io. */
ivm_status ivm__log_open(const char *directory, const ivm__log_options *options, ivm__memory *memory, ivm__log **log,
                         ivm_error *error) IVM_MUST_CHECK;
/* The checkpoint's stream: *feed NULL where it stands for nothing (no record). To be read to its end before the records, if at all wanted; the
 * feed lives until then. Its texts go to `error`, which must live as long. */
ivm_status ivm__log_checkpoint_read(ivm__log *log, ivm__feed **feed, ivm_error *error) IVM_MUST_CHECK;
/* Tells that the checkpoint's stream could not be used: which file it is in, and why. */
ivm_status ivm__log_checkpoint_fail(const ivm__log *log, ivm_status status, const char *why, ivm_error *error);
/* The next record after the checkpoint, whole and right: *feed gives its payload, valid until the next call; it need not be read to its end.
 * NULL: there is no more, recovery tells, and (not read_only) the torn tail has been cut, what is left is on the disk, half-written and older
 * checkpoints are gone with their segments, and appending may begin. Up to then nothing is changed. corrupt: what was acknowledged is damaged or
 * missing (the message names file and byte). After a failure the log can only be closed. */
ivm_status ivm__log_record_read(ivm__log *log, uint8_t *kind, ivm__feed **feed, ivm_error *error) IVM_MUST_CHECK;
const ivm__log_recovery *ivm__log_recovery_of(const ivm__log *log);

/* A record, of a kind that is not 0: begin, write its payload to the sink (any number of bytes, 0 too), then end: it is with the system then; or
 * abandon: it is as if it had not begun. Where begin, a write or end failed, it has been abandoned (abandoning once more does nothing, but to the next one, if somebody has begun it): io or
 * out_of_memory, and later ones may go through; where cutting the file back failed too, the log is broken. begin may end the segment: then all
 * before is synced, which happens while unsynced records are there only past twice the segment's size. After one was cut back, or the log was not
 * closed, it ends too: what was cut off can then never come up again. The sink's texts go to begin's `error`. */
ivm_status ivm__log_append_begin(ivm__log *log, uint8_t kind, ivm__sink **sink, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__log_append_end(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
void ivm__log_append_abandon(ivm__log *log);
/* Every record that was appended is on the disk. A failure breaks the log: syncing is never tried again, for it could succeed and mean nothing.
 * Broken: it takes nothing more (io), until it is closed and opened again. Costs nothing where nothing was appended since the last. */
ivm_status ivm__log_sync(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
bool ivm__log_broken(const ivm__log *log);

/* A checkpoint of the records so far: begin syncs them, starts a new segment and gives the sink of a file that does not count yet; end puts it on
 * the disk, makes it the newest and removes what it stands for; abandon removes it. The sink's texts go to begin's `error`. Where begin, a write or
 * end failed it has been abandoned (abandoning once more does nothing, but to the next one, if somebody has begun it), and the one before counts; after a failure of end it may be either: both
 * give the same records. A sync that fails, but for that of the new file, breaks the log. A second at a time: in_use. */
ivm_status ivm__log_checkpoint_begin(ivm__log *log, ivm__sink **sink, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__log_checkpoint_end(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
void ivm__log_checkpoint_abandon(ivm__log *log);

typedef struct ivm__log_state {
    uint64_t sequence;   /* records appended */
    uint64_t synced;     /* of them known to be on the disk */
    uint64_t checkpoint; /* of them the newest checkpoint stands for */
    uint64_t log_bytes;  /* in segments since then */
    uint64_t syncs;      /* since it was opened */
    bool broken;
} ivm__log_state;
ivm__log_state ivm__log_state_of(const ivm__log *log);
/* Syncs what was not (unless broken), marks the end, so that damage to any record can be told from then on, abandons what is open, gives the lock back
 * last. NULL is fine. Cost: two syncs where something was appended. */
void ivm__log_close(ivm__log *log);

#endif
