/* What tests of the log have in common: a log over the disk model, its records known by numbers drawn for them, and what must be found when it is
 * opened again: every record that was known to be on the disk, at most those that were begun, each as it was written. */
#ifndef LOG_CASE_H
#define LOG_CASE_H

#include "allocator.h"
#include "disk_model.h"
#include "log.h"

#define LOG_CASE_RECORDS_MAX 2000
#define LOG_CASE_LARGE ((uint64_t)1 << 63) /* in a record's id: it has more than one fragment, or just fills one */
#define LOG_CASE_PATH "d"

typedef struct log_case {
    disk_model *disk;
    test_allocator allocator;
    ivm__memory memory;
    ivm__log_options options;
    ivm__log *log; /* NULL: closed */
    ivm_error error;
    uint64_t random;
    bool may_fail;                                 /* calls may: io, out_of_memory; else every failure fails the test */
    uint64_t ids[LOG_CASE_RECORDS_MAX], ids_count; /* ids_count: drawn */
    uint64_t synced, appended, possible;           /* records that must be there; that were appended; that may be there */
    ivm__sink *checkpoint;                         /* one that is under way */
    uint64_t found;                                /* by the last opening */
} log_case;

void log_case_init(log_case *self, uint64_t seed);
void log_case_deinit(log_case *self);
/* A closed one, over a copy of its disk with everything on it. */
void log_case_copy(log_case *self, const log_case *from, uint64_t seed);
uint64_t log_case_draw(log_case *self, uint64_t below);
uint32_t log_case_record_size(uint64_t id);

/* Opens and reads all, judged by what is known. */
ivm_status log_case_open(log_case *self);
void log_case_close(log_case *self);

/* Each gives what the log gave, and keeps the books. */
ivm_status log_case_append(log_case *self, uint64_t id);
ivm_status log_case_sync(log_case *self);
ivm_status log_case_checkpoint_begin(log_case *self);
ivm_status log_case_checkpoint_end(log_case *self);
uint64_t log_case_id(log_case *self, bool large);

/* Opens, does so many things drawn at random, closes. Stops where the log is broken or the power gone. */
void log_case_work(log_case *self, uint32_t steps);

#endif
