/* Views: kept up to date by every push, read through snapshots, explained. */
#ifndef IVM_VIEW_H
#define IVM_VIEW_H

#include "ivm/batch.h"
#include "ivm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Views ----------------------------------------------------------------------------------------------------------------------- */

/* Rows of one moment, to be read: of a view, a table, or of what changed. One thread at a time. */
typedef struct ivm_snapshot ivm_snapshot;

/* IMMEDIATE: every push brings the view up to date. DEFERRED: changes of what it reads pile up, consolidated, until ivm_refresh_view(). */
typedef enum ivm_refresh { IVM_IMMEDIATE, IVM_DEFERRED } ivm_refresh;

/* Told once after each push or refresh that changed the view, when all of it is committed, on the thread that made it. `changes` are as
 * from ivm_read_changes() and end with the call: they may be read, sorted and given out as an Arrow stream
 * (borrowed); closing them does nothing. From inside the engine may be asked for names, types and ivm_engine_stats(), ivm_durable_state(), given a
 * limit (ivm_engine_memory_limit()) or ivm_engine_cancel(), and batches may be made and filled for a later push. Every other call on it fails with
 * in_use. Meanwhile other threads may read; those that change the engine wait until all callbacks of the step are done, so that no two run at
 * once. */
typedef void (*ivm_view_changed)(void *context, ivm_view *view, ivm_snapshot *changes);

/* LAZY: an index is built, from the rows at hand, when a term of a push first reads it; a build that fails fails that push. EAGER: as
 * ivm_view_prepare() does, once, when the view is made. */
typedef enum ivm_indexes { IVM_INDEXES_LAZY, IVM_INDEXES_EAGER } ivm_indexes;

/* All zero: immediate, nobody is told, indexes when they are first read. */
typedef struct ivm_view_options {
    uint32_t version;         /* IVM_VIEW_OPTIONS_VERSION; 0 means 1 */
    ivm_refresh refresh;      /* when it is brought up to date */
    ivm_view_changed changed; /* may be NULL */
    void *changed_context;    /* handed to `changed` */
    ivm_indexes indexes;      /* when they are built */
} ivm_view_options;
#define IVM_VIEW_OPTIONS_VERSION 1u

/* Makes a view of a plan, filled from the rows its tables hold now. `options` may be NULL. Takes the plan: freed whatever the outcome. The
 * engine owns *view: valid until it is dropped or the engine closed. Cost: the plan computed once over the tables' rows.
 * Codes: a builder's cause for a NULL plan; invalid_argument (a handle of another engine in the plan), unknown_table, unknown_column,
 * ambiguous_column, type_mismatch, invalid_plan, already_exists, overflow, unsupported (a limit of ivm/engine.h that the plan passes, too),
 * out_of_memory. */
IVM_API ivm_status ivm_view_create(ivm_engine *engine, const char *name, ivm_plan *plan, const ivm_view_options *options, ivm_view **view,
                                   ivm_error *error) IVM_MUST_CHECK;
/* Who is told from now on (NULL: nobody), in place of what the options said: for views made by a restore. in_use from inside a callback. */
IVM_API ivm_status ivm_view_watch(ivm_view *view, ivm_view_changed changed, void *context, ivm_error *error) IVM_MUST_CHECK;
/* Drops a view and its state, and the indexes of tables that no view reads any more; snapshots of it stay readable. in_use while a view reads it, or
 * from inside a callback: then nothing is dropped. */
IVM_API ivm_status ivm_view_drop(ivm_view *view, ivm_error *error) IVM_MUST_CHECK;

/* Brings a deferred view up to date (deferred inputs as they stand), and with it the immediate views that read it. Of an immediate view:
 * nothing to do. All or nothing, as a push; `stats` (of this step) may be NULL. Cost: what changed since the last refresh, net. While a view is
 * deferred a push costs it a lookup a row that changed, and nothing where rows only come; a row whose weight changes by more than int64 between
 * two refreshes is an overflow of the push. overflow, unsupported (too many masks), out_of_memory. */
IVM_API ivm_status ivm_refresh_view(ivm_view *view, ivm_stats *stats, ivm_error *error) IVM_MUST_CHECK;

/* Builds, outside any push, every index that a term of the view may read under the present planner options: what the foreign keys declared
 * now leave of them for good (a parent that is append_only and not tracked never drives a term). After either changes it may be called again.
 * Indexes are shared between views and kept until no view reads the table. Cost: a pass over the rows of each table for each index that is
 * not there yet. out_of_memory, overflow (rows that a join would keep weigh too much): then some may have been built. */
IVM_API ivm_status ivm_view_prepare(ivm_view *view, ivm_error *error) IVM_MUST_CHECK;

/* Computes the view anew from what the tables hold, without foreign keys, and compares: *differences are the rows that are missing (weight above 0)
 * and those that should not be there (below 0); ivm_snapshot_rows_count() is 0 where the view is right. An immediate view's immediate inputs are
 * computed anew too; deferred inputs are taken as they stand. A deferred view is judged from its sources as they stood at its last refresh, views
 * among them as they were kept. Changes nothing. This is how it is told whether a broken promise of IVM_RELY did harm. A view that is wrong is
 * put right by dropping it and making it again, with those that read it. The caller closes *differences. Cost: that of making the view, and
 * its memory for as long as the call lasts. unsupported (a transient table is read; the message names it), overflow, out_of_memory. */
IVM_API ivm_status ivm_audit_view(ivm_view *view, ivm_snapshot **differences, ivm_error *error) IVM_MUST_CHECK;

/* Names and types, as for tables. */
IVM_API const char *ivm_view_name(const ivm_view *view);
IVM_API size_t ivm_view_columns_count(const ivm_view *view);
IVM_API const char *ivm_view_column_name(const ivm_view *view, size_t column);
IVM_API ivm_type ivm_view_column_type(const ivm_view *view, size_t column);

/* ---- Snapshots ------------------------------------------------------------------------------------------------------------------- */

/* What a view or table holds at one moment: after some push, whole. Later pushes do not disturb it and are not held up by it; it costs the pages
 * changed since, and their strings, which go with the last snapshot of them and the push after that. Taking one costs nothing that grows with the
 * view; the push after it copies each page of at most 12 KB of rows that it writes to, 272 bytes a level of the tree that leads there (log16 of the
 * pages), and the weights outside 31 bits if it changes any.
 * Nor does it wait for a push under way: where several threads use an engine, each commit leaves what it made of the views and tables that are read
 * to be taken during the next push, which then copies as if a snapshot were open. What nobody reads for a thousand pushes is left so no longer, and
 * reading it may wait for one push; the same goes for a view or table made after a second thread has come and never read yet.
 * The caller closes *snapshot. unsupported (a transient table), in_use from inside a callback, out_of_memory. */
IVM_API ivm_status ivm_read_view(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error) IVM_MUST_CHECK;
/* Several views of one engine, all as they stand after the same push or refresh: snapshots[i] is what ivm_read_view() of views[i] gives, and what one
 * of them shows of a push the others show too. A deferred view shows what its last refresh left, as ever: bring it up to date first where it shall
 * tell of the same pushes as the others. All or none: after an error `snapshots` is as it was. The caller closes each. Cost and waiting: those of
 * ivm_read_view() for each; where one of them is not left to be taken during a push, all wait for it. invalid_argument (a NULL among them, views of
 * two engines), in_use from inside a callback,
 * out_of_memory. */
IVM_API ivm_status ivm_read_views(ivm_view *const *views, size_t views_count, ivm_snapshot **snapshots, ivm_error *error) IVM_MUST_CHECK;
/* The same after a refresh, which stays done should memory for the snapshot be wanting. Codes: those of ivm_refresh_view(), too. */
IVM_API ivm_status ivm_read_view_refreshed(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error) IVM_MUST_CHECK;
/* The rows of a table; codes and cost as of ivm_read_view(). */
IVM_API ivm_status ivm_read_table(ivm_table *table, ivm_snapshot **snapshot, ivm_error *error) IVM_MUST_CHECK;
/* The net change the last push or refresh made to the view: rows with positive and negative weights (one past int64, of a weight that went
 * from one end to the other, is cut to it). Cost: its size. Waits for a push under way. */
IVM_API ivm_status ivm_read_changes(ivm_view *view, ivm_snapshot **snapshot, ivm_error *error) IVM_MUST_CHECK;
/* The keys that children of a tracked fact wait for, in the order of the parent's key, each with as many weights as rows wait: the present orphans.
 * Of a fact that is not tracked: none. Cost: as ivm_read_table(), but that it waits for a push under way. */
IVM_API ivm_status ivm_read_orphans(ivm_fact *fact, ivm_snapshot **snapshot, ivm_error *error) IVM_MUST_CHECK;
/* Frees a snapshot, and with it the rows that it gave out. NULL is fine. What ivm_snapshot_find() looked keys up in may stay: the engine keeps it for
 * later snapshots, as said there, with the rows' pages that it was made from until the next push or refresh that changes the view or table; and one
 * that is kept no more and had this as its last reader is given back, where it is large, a piece whenever a push or refresh ends. It counts in
 * bytes_held until then. */
IVM_API void ivm_snapshot_close(ivm_snapshot *snapshot);

/* Told after each push that made orphans of the tracked fact or took some back, as ivm_view_changed is, and before it: `changes` are keys with
 * weights, above 0 rows that wait from now on, below 0 rows that wait no more, be it that the parent came or that they left. */
typedef void (*ivm_orphans_changed)(void *context, ivm_fact *fact, ivm_snapshot *changes);
/* Asks for it; NULL: no more. One a fact. invalid_argument where the fact is not tracked. */
IVM_API ivm_status ivm_fact_watch(ivm_fact *fact, ivm_orphans_changed changed, void *context, ivm_error *error) IVM_MUST_CHECK;

/* The next rows, at most about a thousand, as columns with their weights, in no order unless sorted. A view's distinct rows come once each; a bag's
 * equal rows may come apart, each with a weight of its own, and so they are counted. False at the end, and then
 * from the start again. The arrays are the snapshot's, valid until the next call on it. Takes no lock. out_of_memory is told by
 * ivm_snapshot_status(): a cursor that ends early is at its end. */
IVM_API bool ivm_snapshot_next(ivm_snapshot *snapshot, ivm_rows *rows);
IVM_API ivm_status ivm_snapshot_status(const ivm_snapshot *snapshot);
/* How many rows the cursor gives in all. */
IVM_API uint64_t ivm_snapshot_rows_count(const ivm_snapshot *snapshot);
/* Its columns, in the order of the view or table; of orphans, those of the parent's key. The type of a column that is not there is 0. */
IVM_API size_t ivm_snapshot_columns_count(const ivm_snapshot *snapshot);
IVM_API ivm_type ivm_snapshot_column_type(const ivm_snapshot *snapshot, size_t column);

/* The caller's position as of what the snapshot shows: that of the last push with one (ivm_batch_position()) up to then, whatever came since; of
 * changes that a callback is given, with the push that they are of. A deferred view is behind it by what came since its refresh. Writes at most
 * `capacity` bytes, says in *size how many it has; 0: none. Takes no lock. invalid_argument. */
IVM_API ivm_status ivm_snapshot_position(const ivm_snapshot *snapshot, void *bytes, size_t capacity, size_t *size,
                                         ivm_error *error) IVM_MUST_CHECK;

/* Puts the rows in order, once: by the key's columns, then by the others, ascending, nulls last; what is given out from now on, by cursor and chunk,
 * comes so, the cursor from the start. Equal rows of a bag, and of changes, come as one with their weights added, or not at all where these come to
 * 0: ivm_snapshot_rows_count() tells of what is left. Snapshots with equal rows give the same, whatever brought the rows there. Cost: O(n log n), 4
 * bytes a row for as long as it is open, 64 MB at most while it sorts. out_of_memory, overflow (equal rows weigh more than an int64), cancelled
 * (ivm_engine_cancel()): the order is as it was. */
IVM_API ivm_status ivm_snapshot_sort(ivm_snapshot *snapshot, ivm_error *error) IVM_MUST_CHECK;
/* The rows as numbered chunks of at most 1024, for reading ranges: chunk n alone, in time that does not grow with n. All chunks together are all
 * rows, each once; where nothing is sorted a chunk may have few rows or none. The cursor stays where it is. invalid_argument past the last, overflow
 * (strings of more than 2 GB in it), out_of_memory. */
IVM_API size_t ivm_snapshot_chunks_count(const ivm_snapshot *snapshot);
IVM_API ivm_status ivm_snapshot_chunk(ivm_snapshot *snapshot, size_t chunk, ivm_rows *rows, ivm_error *error) IVM_MUST_CHECK;

/* The rows whose first `values_count` key columns equal the values: for an aggregate its group columns, for a table its key, for others
 * the leading columns, IVM_TABLE_COLUMNS_MAX of them at most. row_not_found where there is none. Takes no lock.
 * By the whole key of an aggregate, a view, or a table with a key: O(1). The first look-up in one of them hashes the rows of its snapshot, O(rows);
 * pushes keep that from then on, at 16 to 32 bytes a row and some 50 ns a row that comes, for every later snapshot, until a thousand pushes went by
 * without a look-up. By leading columns alone, in a table without a key, and among changes, the first call on a snapshot hashes its rows, O(rows),
 * later ones are O(1). */
IVM_API ivm_status ivm_snapshot_find(ivm_snapshot *snapshot, const ivm_value *values, size_t values_count, ivm_rows *rows,
                                     ivm_error *error) IVM_MUST_CHECK;

/* ---- Explain --------------------------------------------------------------------------------------------------------------------- */

/* TEXT to be read, one JSON document, or DOT: graphs for dot(1). */
typedef enum ivm_explain_format { IVM_EXPLAIN_TEXT, IVM_EXPLAIN_JSON, IVM_EXPLAIN_DOT } ivm_explain_format;

/* A table's stated delta. */
typedef struct ivm_stated_shape {
    const char *table;
    ivm_shape shape; /* as a push would find it */
} ivm_stated_shape;

/* A stated foreign key: `columns` of `child` to `parent_columns` of `parent`, by names as for ivm_foreign_key_declare(), and its `trust`. */
typedef struct ivm_stated_fact {
    const char *child, *columns, *parent, *parent_columns;
    ivm_trust trust;
} ivm_stated_fact;

/* Stated facts to plan from, without data: `shapes_count` of `shapes`, `facts_count` of `facts`. A table not named may have changed in any
 * way. `facts_stated` false: the declared ones hold. Tracked facts are planned as if no child waited for a parent or still referred to one
 * that went. */
typedef struct ivm_explain_options {
    uint32_t version; /* IVM_EXPLAIN_OPTIONS_VERSION; 0 means 1 */
    const ivm_stated_shape *shapes;
    size_t shapes_count;
    bool facts_stated;
    const ivm_stated_fact *facts;
    size_t facts_count;
} ivm_explain_options;
#define IVM_EXPLAIN_OPTIONS_VERSION 1u

/* How the view's inner joins (outer, semi and anti joins are steps of their own and not told of) were brought up to date in the last push that went
 * through (`stated` NULL) or would be from stated facts: leaves, pruning, facts and how far they are believed, skip mask, counts of masks
 * (computed, never enumerated), each mask as pruned, empty or left for up to six leaves and beyond that the first 64 that are left, rule and how
 * many terms it runs, the rows that these probed for and found, readings and probe order of each term; facts that prune nothing, and why; the text
 * ends with what its words mean.
 *
 * JSON: {"view": name, "stated": bool, "pushed": bool, "joins": [join ...]}, joins in reading order, each
 *   {"inputs": n, "leaves": [{"leaf", "name", "table", "columns", "delta": "unchanged"|"insert_only"|"mixed",
 *                 "fresh", "awaited", "gone", "kept", "changed", "delta_rows", "skipped"}],
 *    "facts": [{"child": leaf, "parent": leaf, "trust": "rely"|"enforced"|"tracked", "on": [[child column, parent column] ...]}],
 *    "unused": [{"child": leaf, "parent": leaf, "trust", "child_table", "columns", "parent_table", "parent_columns", "reason", "why": a sentence}]
 *              (the first 64), "skip_mask": "0110",
 *    "all", "pruned", "empty", "run": counts of masks, "masks": the first 64 that are run, in ascending order,
 *    "all_masks": [{"mask", "state": "pruned"|"empty"|"run"}] for up to six leaves,
 *    "fk_pruning": "off"|"batch"|"row", "join_rule": "mobius"|"telescoping", "estimated_probes": {"mobius", "telescoping"},
 *    "rows_probed", "rows_matched": as in ivm_stats, of this join in that push,
 *    "terms": [{"mask", "sign", "driver", "readings": ["delta"|"cur"|"old" ...], "probes": [{"leaf", "on": [[column, column] ...]}]}] (the first 64),
 *    "indexes": [{"leaf", "columns", "built": bool, "bytes", "drivers": leaves whose terms read it}]}
 * "fresh", "gone" and "changed" count the rows of the leaf's table's delta by what happened to their keys (an update is two changed rows), where
 * fk_pruning is row and a foreign key leads to the leaf, else 0; "awaited" and "kept" are those of the fresh and of the gone that no fact sets aside
 * because a child waits for them or still refers to them (tracked). "delta_rows" is what is left to drive terms; from stated shapes, which give no
 * numbers, it is 1 for some. By batch the skip mask has the leaves whose table gained rows alone, by row those whose table changed with nothing left.
 * A mask is written in binary, highest leaf first. Counts and states are those of the Moebius form whatever rule ran: "run" is a mask that is left,
 * and under telescoping several of them share one of the "terms"; a count past int64 is a string of digits. Under run_empty no mask is empty and
 * all that are not pruned are run. Before the view's first push nothing has
 * changed: every mask is empty, "pushed" is false as it is from stated shapes.
 *
 * "unused" are the foreign keys declared (or stated) between tables that two leaves read which prune nothing between them; none that the join
 * equates is told again of other leaves of its tables. "reason" is one of
 *   not_equated           the join does not equate all of its columns
 *   column_not_passed_on  a leaf casts, computes or leaves out one of them
 *   derived_leaf          a leaf is more than a scan of its table, filtered and projected
 *   not_in_force          declared after the state that the last push (or refresh) of the view started from
 *   pruning_off           fk_pruning is off
 *   own_table_by_batch    by batch no table's foreign key to itself is used
 *   awaited               by batch, in a push that brings a parent which a child of a tracked one waits for
 *   cycle                 the parent leaf is referred to only by leaves that rest on it themselves; such a one is among "facts", too
 *   before_first_push     no push has come yet
 *
 * The caller frees *text with ivm_text_free(). unknown_table, unknown_column,
 * invalid_argument, out_of_memory. */
IVM_API ivm_status ivm_explain(ivm_view *view, const ivm_explain_options *stated, ivm_explain_format format, char **text,
                               ivm_error *error) IVM_MUST_CHECK;
/* Frees a text of ivm_explain(). NULL is fine. */
IVM_API void ivm_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
