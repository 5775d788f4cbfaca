/* What the files of the log share: the log itself, its segment under way, and what reading takes. */
#ifndef IVM__LOG_INSIDE_H
#define IVM__LOG_INSIDE_H

#include <assert.h>
#include <pthread.h>

#include "directory.h"
#include "log.h"
#include "log_fragment.h"

typedef struct ivm__log_segment {
    ivm__file file;
    uint64_t id, first; /* first: the number of its first record */
    uint64_t size;      /* of the head and the whole records; the file may have more behind */
    bool cut;           /* there may have been records behind them once: nothing may be appended here */
    bool marked;        /* a mark is behind the last record */
} ivm__log_segment;

/* The record that is being appended. Its fragment under way lies in the buffer, behind room for the fragment's head. */
typedef struct ivm__log_record {
    ivm__sink sink;
    ivm__log *log;
    uint8_t *buffer;
    uint32_t capacity, size; /* size: of the payload in the buffer */
    ivm__fragment fragment;
    uint64_t hash_before, at; /* at: where in the segment the fragment goes */
    ivm_error *error;
    bool open, touched; /* touched: a write was tried */
} ivm__log_record;

/* The checkpoint that is being written. */
typedef struct ivm__log_checkpoint {
    ivm__sink sink;
    ivm__log *log;
    ivm__file file;
    uint64_t sequence, at;
    uint64_t bytes_before; /* of the segments that it stands for */
    ivm_error *error;
    bool open;
} ivm__log_checkpoint;

typedef struct ivm__log_checkpoint_feed {
    ivm__feed feed;
    ivm__file file;
    uint64_t at, size;
} ivm__log_checkpoint_feed;

typedef struct ivm__log_record_feed {
    ivm__feed feed;
    ivm__log *log;
    uint64_t at, end;       /* of the next fragment; where the record ends */
    ivm__fragment fragment; /* the current one; its flags 0: there is none yet */
    const uint8_t *payload;
    uint32_t left;
} ivm__log_record_feed;

/* What is there until the last record has been read. */
typedef struct ivm__log_reader {
    ivm__log_checkpoint_feed checkpoint;
    ivm__directory_list list;
    uint32_t next; /* segment of the list */
    uint64_t size; /* of the current segment's file */
    uint8_t *window;
    uint32_t window_capacity;
    uint64_t window_at, window_size; /* the part of the file that lies in the window */
    uint64_t record;                 /* the number of the one that is judged and given */
    uint64_t known;                  /* records that the last one tells to be on the disk */
    ivm__log_record_feed feed;
    bool torn, ended; /* ended: there are no more records, and appending may begin */
} ivm__log_reader;

struct ivm__log {
    ivm__memory *memory;
    ivm__directory directory;
    uint64_t segment_bytes, identity; /* identity: the directory's number */
    bool read_only;
    ivm__log_recovery recovery;
    ivm__log_reader reader;
    ivm__log_segment segment; /* the one that is read or appended to */
    ivm__log_record record;
    pthread_mutex_t lock; /* guards what is below, but for the checkpoint's content: that is of whom it was begun for */
    ivm__log_checkpoint checkpoint;
    ivm__log_state state;
    char why[IVM_ERROR_MESSAGE_SIZE]; /* it broke */
};

/* ---- log.c -------------------------------------------------------------------------------------------------------------------------- */

/* It takes nothing more; what `error` says is why. */
void ivm__log_break(ivm__log *log, const ivm_error *error);
/* io: it is broken; unsupported: it is read only. */
ivm_status ivm__log_check(const ivm__log *log, ivm_error *error) IVM_MUST_CHECK;

/* ---- log_segment.c ------------------------------------------------------------------------------------------------------------------ */

/* Makes the one that begins at `sequence` and puts it on the disk, its name too; one of that name is replaced. On failure nothing has changed;
 * where that is not sure, the log is broken. */
ivm_status ivm__log_segment_create(ivm__log *log, uint64_t sequence, ivm__log_segment *segment, ivm_error *error) IVM_MUST_CHECK;
/* Syncs, and begins the next segment. One that has no record yet stays, or is made anew if it was cut. */
ivm_status ivm__log_segment_next(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
/* Cuts it back to its whole records, so that no crash brings back what was behind them: not even when the file grows again over the same places
 * of the disk and loses what it wrote there, for it does not. A failure breaks the log. */
ivm_status ivm__log_segment_cut(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
/* A mark behind the last record, where all are known to be on the disk: then damage to any of them can be told. Not where the segment has none, was cut, or
 * has one already. */
ivm_status ivm__log_segment_mark(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;
/* Every record is on the disk, whether that was known or not. A failure breaks the log. */
ivm_status ivm__log_segment_sync(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;

/* ---- log_checkpoint.c --------------------------------------------------------------------------------------------------------------- */

/* The checkpoint that stands for nothing. */
ivm_status ivm__log_checkpoint_create(ivm__log *log, ivm_error *error) IVM_MUST_CHECK;

#endif
