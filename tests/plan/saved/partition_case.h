/* Engines that share the partitions of one program, streams of partitions in memory, and random rows for them, for the tests of checkpoints by
 * partition. */
#ifndef TEST_PLAN_PARTITION_CASE_H
#define TEST_PLAN_PARTITION_CASE_H

#include "checkpoint_case.h"

#define PARTS 6u /* partitions that rows are in */

typedef struct streams {
    tape shared, part[PARTS];
    uint32_t last; /* written to: they come one after the other */
    ivm_compression compression;
    uint64_t sort_bytes;
} streams;

void streams_free(streams *it);
/* Over what the streams had, uncompressed but for streams.compression. */
ivm_status parts_save_range(fixture *it, streams *to, uint32_t first, uint32_t end, bool shared);
void parts_save(fixture *it, streams *to, uint32_t first, uint32_t end, bool shared); /* must go through */
/* The shared stream, then these partitions, as they stand in `parts`; into an engine with its catalog or none. On failure the restore is closed. */
ivm_status parts_restore(fixture *it, streams *from, const uint32_t *parts, uint32_t count);
ivm_status parts_restore_all(fixture *it, streams *from);
ivm_status parts_read(ivm_restoring *restore, tape *from, ivm_error *error); /* from its beginning */

/* Tables shared and partitioned, with keys and without, under facts of three kinds, one transient; views of all sorts over them. */
void parts_declare(fixture *it);
void parts_open(fixture *it);
/* All deferred views. */
void parts_refresh(fixture *it);
char *parts_contents(fixture *it); /* all views' rows, which the caller frees */

/* One random change: of which table, in which partition (UINT32_MAX: shared), and how. */
typedef struct change {
    const char *table;
    uint32_t partition;
    ivm_change what;
    char rows[160];
} change;
typedef struct world {
    uint64_t state;
    uint32_t next_id, d_count, e_count;
    change live[512]; /* rows that may be deleted */
    uint32_t live_count;
} world;
uint32_t world_draw(world *it, uint32_t below);
change world_next(world *it);
void change_push(fixture *it, const change *one);

#endif
