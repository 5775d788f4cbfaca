/* A restore in several streams, inside: what partition_restore.c reads and partition_fill.c makes views of. */
#ifndef IVM__PARTITION_RESTORE_H
#define IVM__PARTITION_RESTORE_H

#include "ivm/checkpoint.h"
#include "partition_views.h"
#include "restore_swap.h"

struct ivm_restoring {
    ivm_engine *engine;
    ivm__arena arena;
    ivm__beside beside; /* once `begun`: programs, and rows as they come */
    ivm__frontiers frontiers;
    bool *came;            /* by table: it is transient and has changed */
    ivm__table_rows *none; /* by table: of a transient one, no rows; NULL until all are */
    bool begun;            /* the catalog is known */
    bool declared;         /* it was made from the shared stream; between calls it is in the lists and names below */
    bool shared, failed;   /* the shared stream was read; a stream could not be */
    uint64_t fingerprint;  /* of the catalog */
    ivm_table *tables;
    ivm_fact *facts;
    ivm_view *views;
    ivm__name_slots names;
    uint8_t read[IVM_PARTITIONS_MAX / 8]; /* a bit a partition */
};

/* Puts what was read in the engine's place, fills its views and judges its facts; on failure the engine is as before, and all of it beside again. The
 * engine was entered. */
ivm_status ivm__partitions_fill(ivm_restoring *restore, ivm__step *step) IVM_MUST_CHECK;

#endif
