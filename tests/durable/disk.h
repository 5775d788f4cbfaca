/* The system's calls with a mishap at one of them. */
#ifndef TEST_DURABLE_DISK_H
#define TEST_DURABLE_DISK_H

#include <stdatomic.h>

#include "files.h"

typedef enum disk_mishap {
    DISK_STOPS,         /* the process is killed before the call */
    DISK_STOPS_HALFWAY, /* of writes alone: when half is written */
    DISK_FAILS,         /* with `number` */
    DISK_SHORT,         /* of writes alone: half is written, and that is what it says */
    DISK_FAILS_FROM     /* that call and all after it of its kind */
} disk_mishap;

typedef struct disk {
    uint64_t nth;           /* of the calls that count, from 1 on; 0: never */
    _Atomic uint64_t calls; /* that count, so far */
    disk_mishap what;
    int number;
    bool syncs_alone; /* data and name syncs alone count */
    bool pretends;    /* a sync does nothing: enough where the process alone dies */
    _Atomic bool happened;
    _Atomic bool segment_unnamed; /* to a rename of a log's file */
    _Atomic uint64_t syncs;
    uint64_t sync_microseconds;       /* each takes so long, at least */
    void (*meanwhile)(void *context); /* called in each, of data and of files; NULL: nobody */
    void *meanwhile_context;
} disk;

/* `it` must stay. */
ivm__files disk_files(disk *it);

#endif
