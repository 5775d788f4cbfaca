/* Checkpoints: an engine as a stream of bytes, and back.
 *
 *     whole          all of it: tables, facts, views, rows, what views keep, what is pending, who waits    ivm_checkpoint() -> ivm_restore()
 *     by partition   shared rows once, the rows of each partition apart; views are computed again          ivm_checkpoint_partitions() ->
 *                                                                                                          ivm_restore_open()
 *
 * The bytes say what an engine holds, not how it came to it: two engines with the same catalog, rows, pending changes and position give the
 * same bytes, whatever their hash seeds, threads, planner options and the order and number of the batches. (Uncompressed, of any build; compressed,
 * of one version of zstd. Tables, facts and views must have been declared in one order; rows that broke a promise of a foreign key
 * may have left traces in views.) Not in them: options, callbacks, statistics, indexes, which are built again when first read, and what
 * the last push changed.
 *
 * Every byte is under a checksum (XXH3, 64 bits, chained from block to block): a stream that was cut, changed, put together from two or is none is
 * found out before anything of the engine changes. Checksums guard against accidents. A file made by an enemy is judged as well: keys, nulls
 * and ranges, children of enforced facts, who waits under tracked ones, what was there before what is pending, partners of outer joins. It
 * ends in an error, or in an engine that is sound, and would be written as the same bytes, but whose views hold what he wanted;
 * ivm_audit_view() tells whether they agree with tables. */
#ifndef IVM_CHECKPOINT_H
#define IVM_CHECKPOINT_H

#include "ivm/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Streams --------------------------------------------------------------------------------------------------------------------- */

/* Takes the next `size` bytes (1 to IVM_CHECKPOINT_PIECE_MAX) of a stream; anything but IVM_OK ends it and is what the call then returns. Called
 * by the thread that called the engine. It may not call the engine, at whatever point of the stream: in_use. Other threads may. */
typedef ivm_status (*ivm_write)(void *context, const void *bytes, size_t size);
/* Gives up to `size` bytes and says in *got how many; 0: the stream is at its end. As above. Never asked for a byte past the stream's own end, so
 * that streams may stand one behind the other. */
typedef ivm_status (*ivm_read)(void *context, void *bytes, size_t size, size_t *got);
#define IVM_CHECKPOINT_PIECE_MAX (256u << 10)

/* NONE, ZSTD (unsupported where the library was built without it), or AUTO: zstd where it was built with it. */
typedef enum ivm_compression { IVM_COMPRESSION_AUTO, IVM_COMPRESSION_NONE, IVM_COMPRESSION_ZSTD } ivm_compression;

/* All zero: compressed where that is there, 64 MB for sorting. */
typedef struct ivm_checkpoint_options {
    uint32_t version;            /* IVM_CHECKPOINT_OPTIONS_VERSION; 0 means 1 */
    ivm_compression compression; /* of the blocks; whoever reads finds out by himself */
    uint64_t
        sort_bytes; /* memory for putting rows in order, at most; 0: 64 MB. Rows beyond it (16 bytes each) cost another pass over the table */
} ivm_checkpoint_options;
#define IVM_CHECKPOINT_OPTIONS_VERSION 1u

/* ---- Whole ----------------------------------------------------------------------------------------------------------------------- */

/* Writes the engine as it is now, after the last push or refresh that went through. `options` and `error` may be NULL. Changes nothing.
 * Pushes wait while the catalog and what only views know (states of groups, match counts, copies by input) is written: time by that. Rows
 * of tables, views and kept inputs follow from snapshots while pushes go on. Memory: two blocks, zstd's own, sort_bytes, and the pages
 * that pushes change meanwhile. Cost: sorting all rows; O(n log n).
 * Codes: what `write` returned; unsupported (ZSTD in a build without it), in_use (from inside a callback), corrupt (a count is below 0 that
 * cannot be: the engine was restored from a stream made by an enemy), out_of_memory.
 * After a failure what was written is no checkpoint and is found out by whoever reads it. Any thread. */
IVM_API ivm_status ivm_checkpoint(ivm_engine *engine, ivm_write write, void *context, const ivm_checkpoint_options *options,
                                  ivm_error *error) IVM_MUST_CHECK;

/* Makes the engine what it was when the stream was written. Its catalog must be empty, and is then made from the stream; or be that of the
 * stream, made by the program itself (same tables, facts and views, in the same order, of the same columns and plans): then every handle and
 * callback stays good, and rows and views are replaced, whatever they were. Handles of a catalog that was made: ivm_table_find(), ivm_view_find(),
 * ivm_table_next(), ivm_view_next(), ivm_fact_next(); callbacks: ivm_view_watch(), ivm_fact_watch(). A view over columns that were renamed, added or
 * dropped since it was made comes back as it was; a program that declares the table in its new form and the view over it is another program: it
 * restores into an empty engine. Nobody is told of a change; snapshots taken before stay what they were; batches filled before stay good where the
 * catalog stayed. All or nothing: everything is built beside and takes its place in one move that cannot fail. Memory: both, for a while.
 * Cost: reading, and an insertion a row and group; a lookup a row of a child under a tracked or enforced fact, and of a preserved side of an outer
 * join; less than computing the views. Nobody else gets at the engine meanwhile.
 * Codes: corrupt (cut, changed, foreign, or no state that can be; the message says which section of the stream, and where), invalid_argument (the
 * engine has another catalog: the message names the first table, fact or view that differs; or the stream is one of partitions), unsupported (a newer
 * version; zstd in a build without it), what `read` returned, in_use (inside a callback; another restore is open), out_of_memory. */
IVM_API ivm_status ivm_restore(ivm_engine *engine, ivm_read read, void *context, ivm_error *error) IVM_MUST_CHECK;

/* What a stream is: WHOLE, of ivm_checkpoint(); SHARED or PARTITION, of ivm_checkpoint_partitions(). */
typedef enum ivm_checkpoint_form { IVM_CHECKPOINT_WHOLE, IVM_CHECKPOINT_SHARED, IVM_CHECKPOINT_PARTITION } ivm_checkpoint_form;
/* What a stream says of itself. */
typedef struct ivm_checkpoint_info {
    uint32_t version;                        /* IVM_CHECKPOINT_INFO_VERSION, set by the caller; 0 means 1 */
    uint32_t format;                         /* version of the format */
    ivm_checkpoint_form form;                /* what it is */
    uint32_t partition;                      /* of form PARTITION */
    bool compressed;                         /* by zstd */
    uint64_t fingerprint;                    /* of the catalog it was written with */
    size_t position_size;                    /* bytes of `position`; 0: none */
    uint8_t position[IVM_POSITION_SIZE_MAX]; /* the engine's */
} ivm_checkpoint_info;
#define IVM_CHECKPOINT_INFO_VERSION 1u
/* Reads the beginning of a stream, some 400 bytes at most, and checks it. corrupt, unsupported, what `read` returned. */
IVM_API ivm_status ivm_checkpoint_inspect(ivm_read read, void *context, ivm_checkpoint_info *info, ivm_error *error) IVM_MUST_CHECK;

/* The engine's catalog in 64 bits: names, columns, keys, options of tables; facts; views with their plans and how they are refreshed. Equal for equal
 * programs, on any machine. For a host that keeps it beside its own data. */
IVM_API ivm_status ivm_engine_fingerprint(ivm_engine *engine, uint64_t *fingerprint, ivm_error *error) IVM_MUST_CHECK;

/* ---- By partition ---------------------------------------------------------------------------------------------------------------- */

/* For hosts that split their work over several engines with one program, and may change how many there are. Rows of a table with a `partition`
 * column (ivm_table_options) belong to the partition whose number they have in it; rows of any other table are shared: every engine holds the same
 * ones. Partitions are many and fixed, engines few: a host keeps a stream a partition, and gives each engine the partitions that are its.
 *
 *     ivm_partition_range range = { mine_first, mine_end, is_first_host };
 *     ivm_checkpoint_partitions(engine, range, write_to_file_of_partition, files, NULL, &error);
 *
 *     ivm_restore_open(engine, &restore, &error);                          the engine is empty, or its program has declared the catalog
 *     ivm_restore_read(restore, read_file, shared_file, &error);
 *     for each partition that is to be this engine's, in any order:
 *         ivm_restore_read(restore, read_file, file, &error);
 *     ivm_restore_finish(restore, &error);                                 or, to give up: ivm_restore_close()
 *
 * A partition holds rows, not what views keep: views are computed again from the rows, of whatever partitions come together. Of a transient table
 * there are no rows, and what a view made of them goes with the partitions instead. For that the view's aggregate over it must have the partition
 * column among its groups, or the view must show its rows with that column; filters, projects, inner joins and union_all of such inputs may stand
 * between. Of its rows those are there that wait under a tracked foreign key, and go with their partition. */

/* Takes bytes of a stream: that of a partition, or IVM_PARTITION_SHARED. Streams come one after the other, the shared one first, partitions
 * ascending, each whole before the next. As ivm_write otherwise. */
typedef ivm_status (*ivm_write_partition)(void *context, uint32_t partition, const void *bytes, size_t size);
#define IVM_PARTITION_SHARED UINT32_MAX

/* Which partitions a call is about. */
typedef struct ivm_partition_range {
    uint32_t first, end; /* partitions first .. end - 1; none where equal */
    bool shared;         /* the shared stream too */
} ivm_partition_range;

/* Writes a stream for each partition of the range, for those without a row too. All are of one moment, which is that of the last push or refresh that
 * went through. Changes nothing. Pushes wait while snapshots are taken; until all is written where a view of a transient table is among the views. A
 * deferred view is as after a refresh once it is restored. Every stream has the engine's position; engines that hold the same write the same. Memory:
 * two blocks, zstd's own, sort_bytes, and the pages that pushes change meanwhile. Cost: sorting all rows of tables with a partition, whatever the
 * range; O(n log n).
 * Codes: those of ivm_checkpoint(); invalid_argument (a range past IVM_PARTITIONS_MAX); unsupported, a matter of the catalog alone: no table has a
 * partition; a view of a transient table that has none, that allows negative weights, or whose rows the view takes otherwise than said above; a
 * tracked foreign key from a transient table without a partition; a tracked or enforced one from a transient table to one that is not append_only.
 * The message names view and table. */
IVM_API ivm_status ivm_checkpoint_partitions(ivm_engine *engine, ivm_partition_range range, ivm_write_partition write, void *context,
                                             const ivm_checkpoint_options *options, ivm_error *error) IVM_MUST_CHECK;

/* A restore in several streams: the shared stream and any partitions, each once, in any order, from any number of checkpoints of engines with one
 * catalog. Where the engine's catalog is empty the shared stream comes first and declares it. What is read is put beside: until ivm_restore_finish()
 * has gone through the engine is what it was; it can be read, and any other call that would change it, another restore and a checkpoint are in_use.
 * The restore is the caller's: finish or close frees it. One thread at a time. */
typedef struct ivm_restoring ivm_restoring;
/* unsupported (a durable engine), in_use (inside a callback; another restore is open), out_of_memory. */
IVM_API ivm_status ivm_restore_open(ivm_engine *engine, ivm_restoring **restore, ivm_error *error) IVM_MUST_CHECK;
/* Reads one stream to its end; who reads the engine waits so long. After a failure ivm_restore_close() is all that is left. Cost: reading, an
 * insertion a row, and a lookup where a table's key does not name its partition. Codes: corrupt, unsupported and what `read` returned as of
 * ivm_restore(); those that ivm_checkpoint_partitions() gives of the catalog;
 * already_exists (the partition, or the shared stream, was read before); duplicate_key (a key is in this partition and in one read before: the
 * message names both); invalid_argument (a whole checkpoint; a stream of another catalog; a partition before there is one); out_of_memory. */
IVM_API ivm_status ivm_restore_read(ivm_restoring *restore, ivm_read read, void *context, ivm_error *error) IVM_MUST_CHECK;
/* Puts what was read in place of all that the engine held, fills the views from it, judges enforced facts and counts tracked ones. Partitions that
 * were not read are empty. Handles, callbacks, snapshots and batches as with ivm_restore(); nobody is told. The position becomes the shared stream's;
 * those of partitions ivm_checkpoint_inspect() tells. Frees the restore, whatever the outcome but in_use; after a failure the engine is as before
 * ivm_restore_open().
 * Cost: the views computed once; memory: both engines, for a while. invalid_argument (the shared stream was not read, or a stream failed),
 * fk_violation, overflow (as when a view is made), corrupt (groups of a state that cannot be), in_use (inside a callback), out_of_memory. */
IVM_API ivm_status ivm_restore_finish(ivm_restoring *restore, ivm_error *error) IVM_MUST_CHECK;
/* Gives up: frees the restore, and the engine is as before it was opened. in_use inside a callback; then nothing is freed. NULL is fine. */
IVM_API ivm_status ivm_restore_close(ivm_restoring *restore, ivm_error *error) IVM_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
