/* A disk in memory for tests of the log: one directory, its files, and what of both is on the disk and what is not yet. Every change is noted until a
 * sync has taken it to the disk. When the power goes, each noted one is, at random, kept, dropped or (a write) torn in sectors of 512 bytes; a write
 * that made the file longer may leave its size and not its bytes: then zeros, noise or what once stood there come up. Names are made, renamed and
 * removed apart from the files they stand for, and the directory itself is gone unless the one above was synced. A sync of a file that
 * fails has taken some writes to the disk and forgotten the rest: they are seen as before until the power goes, and syncing again succeeds and writes
 * nothing, as systems do.
 *
 * The n-th call can be made the last before the power goes, or fail. Not for several threads. */
#ifndef DISK_MODEL_H
#define DISK_MODEL_H

#include "files.h"

typedef enum disk_fault {
    DISK_NONE,
    DISK_CUT,  /* the power goes during the call; from then on every call fails */
    DISK_FAIL, /* with the number of an error; a write may have put some of it, or all */
    DISK_SHORT /* a read or a write does less than was asked for; another call is not touched */
} disk_fault;

typedef struct disk_model disk_model;

disk_model *disk_create(uint64_t seed);
void disk_free(disk_model *disk);
/* A copy with everything on the disk, nothing open. */
disk_model *disk_copy(const disk_model *from, uint64_t seed);
const ivm__files *disk_files(const disk_model *disk);

/* At the n-th call from now (1: the next), once. */
void disk_arm(disk_model *disk, uint64_t n, disk_fault fault, int number);
/* No more faults; whether the one that was armed has come. */
bool disk_disarm(disk_model *disk);
uint64_t disk_calls(const disk_model *disk);   /* ever */
uint64_t disk_changes(const disk_model *disk); /* of them such as change, or sync, anything */
uint32_t disk_handles(const disk_model *disk); /* that are open */

/* The process ends: every call fails from now on; then, restarted, handles and locks are gone, and no change is lost. */
void disk_die(disk_model *disk);
void disk_restart(disk_model *disk);
/* The power goes, if it has not yet, and comes again. */
void disk_reboot(disk_model *disk);

/* ---- By the test's own hand: what it does is on the disk at once -------------------------------------------------------------------- */

uint32_t disk_names(const disk_model *disk, char names[][40], uint32_t count_max); /* ascending */
uint8_t *disk_bytes(disk_model *disk, const char *name, uint64_t *size);           /* to be changed in place; NULL: there is none */
void disk_put(disk_model *disk, const char *name, const void *bytes, uint64_t size);
void disk_take_off(disk_model *disk, const char *name);

#endif
