/* Engines, tables and foreign keys.
 *
 * Thread rule for the whole library, unless a function says otherwise: any thread may call; calls that change one engine or read its
 * catalog take turns on its lock. Handles (engine, table, view, batch, plan, snapshot) are not to be freed while another thread uses
 * them. A batch, a plan and a snapshot belong to one thread at a time and need no lock.
 *
 * Arguments: where a handle, a name or a place for a result is NULL, or a number is out of range, functions with a status answer invalid_argument,
 * and the message says which; those without do nothing and give NULL, 0, false or an untyped null. Not found out, and never to be passed: a handle
 * that was dropped or freed, an array shorter than its count, and a text that does not end. */
#ifndef IVM_ENGINE_H
#define IVM_ENGINE_H

#include "ivm/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All that belongs together: tables, views, facts, and what pushes bring. Engines know nothing of each other. */
typedef struct ivm_engine ivm_engine;
/* A base table, changed by batches. The engine's. */
typedef struct ivm_table ivm_table;
/* A plan kept up to date (ivm/view.h). The engine's. */
typedef struct ivm_view ivm_view;
/* A declared foreign key. The engine's. */
typedef struct ivm_fact ivm_fact;

/* Limits. What passes one is refused whole, with a message that names it: rows and weights as overflow, what is asked for as
 * invalid_argument, plans as invalid_plan or unsupported. */
#define IVM_NAME_SIZE_MAX 255           /* bytes of a table's, view's or column's name, which is UTF-8 */
#define IVM_TABLE_COLUMNS_MAX 1024      /* of a table; of the values of a look-up too */
#define IVM_VIEW_COLUMNS_MAX 65536u     /* of a view, and of any row inside a plan */
#define IVM_ROW_BYTES_MAX (1u << 19)    /* of the same: 8 bytes a column, 16 a decimal, 8 a string whatever its length */
#define IVM_BATCH_ROWS_MAX (1u << 31)   /* of one table in one batch; an upsert is two */
#define IVM_PLAN_DEPTH_MAX 1000u        /* plans in plans, expressions in expressions: a stack of 512 KB is enough for the deepest */
#define IVM_JOIN_LEAVES_MAX 64          /* of a join and those nested in it */
#define IVM_MASKS_RUN_MAX (1u << 18)    /* masks one join may run in one push under IVM_JOIN_MOBIUS */
#define IVM_TABLE_ROWS_MAX 4000000000u  /* of a table; equal rows of a bag may be one */
#define IVM_THREADS_MAX 16u             /* of one engine */
#define IVM_STRING_SIZE_MAX 0x7fffffffu /* bytes of a string */
#define IVM_POSITION_SIZE_MAX 256u      /* bytes of a position */
#define IVM_PARTITIONS_MAX 65536u       /* numbers of partitions: 0 to this less 1 */

/* ---- Memory ---------------------------------------------------------------------------------------------------------------------- */

/* Where an engine's memory comes from. All three are called with `context`. allocate and resize return memory aligned to 16 bytes (8 where
 * fewer are asked for) or NULL; resize and release get the size that was asked for. They are called from any thread that uses the engine or
 * closes one of its snapshots, and from the engine's own threads: they must be thread-safe. A batch uses them too and may outlive its engine,
 * and so must `context`. Batches are not counted in bytes_held. Plans, expressions and explain's texts belong to no engine and come from
 * malloc. */
typedef struct ivm_allocator {
    void *(*allocate)(void *context, size_t size);
    void *(*resize)(void *context, void *memory, size_t size_old, size_t size_new);
    void (*release)(void *context, void *memory, size_t size);
    void *context;
} ivm_allocator;

/* ---- Engines --------------------------------------------------------------------------------------------------------------------- */

/* What foreign keys take out of a join's delta: ROW, BATCH or OFF, and how it is written: AUTO, MOBIUS or TELESCOPING. ivm_planner_options says
 * more. */
typedef enum ivm_fk_pruning { IVM_FK_PRUNING_ROW, IVM_FK_PRUNING_BATCH, IVM_FK_PRUNING_OFF } ivm_fk_pruning;
typedef enum ivm_join_rule { IVM_JOIN_AUTO, IVM_JOIN_MOBIUS, IVM_JOIN_TELESCOPING } ivm_join_rule;

/* All zero is the default, for all three what is fastest on the whole.
 * `fk_pruning`: what declared foreign keys take out of a join's delta. OFF: nothing. BATCH: the terms that touch a parent whose whole delta is
 * insert-only. ROW: of each parent the rows whose key is fresh (not in the table before) or gone (not in it after), but for those that a child
 * of a tracked fact waits for or still refers to, so that a parent costs what changed in rows that stay; a leaf of which nothing is left
 * drives no term.
 * `join_rule`: how a join's delta is written as a sum of terms. MOBIUS: one term a non-empty mask. TELESCOPING: one term a changed leaf.
 * AUTO: the cheaper by estimated probes. All three give the same views.
 * `run_empty`: run terms, too, whose mask touches a leaf with an empty delta and which bring nothing therefore: to count or to time them.
 * Any change takes effect with the next push. */
typedef struct ivm_planner_options {
    ivm_fk_pruning fk_pruning;
    ivm_join_rule join_rule;
    bool run_empty;
} ivm_planner_options;

/* All zero is the default, of `planner` too: (ivm_engine_options){ .memory_max = 1 << 30 } limits memory and leaves the rest as it is.
 * IVM_ENGINE_OPTIONS_INIT is the same written out.
 * `threads`: how many work on one large push, IVM_THREADS_MAX at most. The calling thread is one of them; the others are made when the
 * engine opens, wait in between, take no signals, and end when it closes. 1: no thread is ever made. Results, their order, statistics but for
 * bytes_held and errors are the same with any number. A child of fork() has none of them and works on alone.
 * `hash_seed`: of all hashes inside. Whoever knows it can craft keys and strings that all hash alike, and pushes of n of them then cost n^2 (results
 * stay right); a drawn one leaves him guessing. To be given where runs shall be repeated, not where others choose the keys. */
typedef struct ivm_engine_options {
    uint32_t version;        /* IVM_ENGINE_OPTIONS_VERSION; 0 means 1 */
    ivm_allocator allocator; /* all NULL: malloc */
    uint64_t hash_seed;      /* 0: one is drawn; see above */
    ivm_planner_options planner;
    uint32_t threads;    /* 0 is 1 */
    uint64_t memory_max; /* bytes_held never passes it: a call that would is out_of_memory and changes nothing. 0: no limit */
} ivm_engine_options;
#define IVM_ENGINE_OPTIONS_VERSION 1u
#define IVM_ENGINE_OPTIONS_INIT                                                                                                            \
    {                                                                                                                                      \
        IVM_ENGINE_OPTIONS_VERSION, { 0, 0, 0, 0 }, 0, { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false }, 1, 0                                  \
    }

/* Makes an empty engine. `options` NULL: the defaults above. Options are copied. The caller owns *engine and closes it.
 * invalid_argument, unsupported, out_of_memory (where the system gives no more threads, too). */
IVM_API ivm_status ivm_engine_open(const ivm_engine_options *options, ivm_engine **engine, ivm_error *error) IVM_MUST_CHECK;

/* Frees the engine, its tables, views and facts. in_use while a snapshot or Arrow stream of it lives, a checkpoint of it is being written or a
 * restore of it is open, and from inside one of its callbacks; io where a durable engine's log cannot be synced (ivm/durable.h; the next call
 * closes it nevertheless). Then nothing is freed. NULL is fine. Batches made for the engine may be freed before or after. */
IVM_API ivm_status ivm_engine_close(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;

/* Other planner options from the next push or refresh on, and those that hold now. invalid_argument (an unknown number). */
IVM_API ivm_status ivm_engine_planner_set(ivm_engine *engine, const ivm_planner_options *options, ivm_error *error) IVM_MUST_CHECK;
IVM_API ivm_planner_options ivm_engine_planner(ivm_engine *engine);

/* Another limit from now on; 0: none. What is held already stays, be it more; then nothing that grows succeeds until enough of it is given back.
 * Takes no lock: a call under way meets it. */
IVM_API ivm_status ivm_engine_memory_limit(ivm_engine *engine, uint64_t memory_max, ivm_error *error) IVM_MUST_CHECK;

/* Asks the calls that are under way on other threads (push, refresh, making, preparing or auditing a view, declaring a foreign key, sorting a
 * snapshot, ivm_batch_shape(), checkpoint, restore) to end: they fail with cancelled and change nothing, but for one that has passed its last point
 * of return. Looked at after every few thousand rows, so within some milliseconds. What was done is then undone, which nothing cuts short: some 10 to
 * 50 ns a row, key or group that came or changed so far, 250 a new text; `ivm bench cancel` measures both. A call that only waits for its turn is not
 * under way; where none is nothing happens. Takes no lock; any thread, from a signal handler and the engine's own callbacks too. */
IVM_API void ivm_engine_cancel(ivm_engine *engine);

/* The position that came with the last push that had one (ivm_batch_position()), kept by checkpoints: what a host goes on from.
 * Writes at most `capacity` bytes, says in *size how many it has; 0: none. in_use from inside a callback. */
IVM_API ivm_status ivm_engine_position(ivm_engine *engine, void *bytes, size_t capacity, size_t *size, ivm_error *error) IVM_MUST_CHECK;

/* ---- Tables ---------------------------------------------------------------------------------------------------------------------- */

/* A column of a table. */
typedef struct ivm_column_definition {
    const char *name; /* borrowed until the call returns */
    ivm_type type;    /* IVM_INT64 and the like */
    bool not_null;    /* a batch with a null in it is refused: null_violation */
} ivm_column_definition;

/* Lists of names are split at commas (and pairs at "="), space around a name is dropped: a name with such characters cannot be written in
 * one. Options structs say their version; 0 means 1 for ever.
 * `columns`: `columns_count` of them, IVM_TABLE_COLUMNS_MAX at most.
 * `key`: column names with commas between them, NULL or "" for a table without a key. Key columns are never null. A table without a key
 * is a bag: a row may be in it many times.
 * `append_only`: a batch whose net change deletes from it is refused.
 * `transient` ("retain": false in scenarios): its rows are checked, used by views and facts, and dropped, so that memory does not grow with
 * them. What a view may do with such a table:
 *   - scan it by itself; the view then keeps what it shows;
 *   - aggregate it, or take it into set operations; above an aggregate anything goes;
 *   - join it (inner) to append_only tables to which foreign keys lead from it, directly or through others. Such a fact is in_use until the
 *     view is dropped. These joins always prune and always telescope.
 * Under IVM_TRACKED a row that waits for a parent, its own or one of a parent's, is kept until that comes: of a table with a partition every
 * row that waits for its own parent, of any other those that a view waits with.
 * unsupported are a key, changes by key, reading the table, deferred views of it, its outer, semi and anti joins, and other inner joins of
 * it; and, once a push has changed it (net), further views of it and enforced or tracked facts from it. Deleting a row that never came gives
 * undefined results.
 * `allow_negative`: weights may go below zero, for feeds that may bring a retraction before its row; only without a key and not
 * append_only. Rows of weight 0 or less are absent wherever presence counts (distinct, set operations, top_k, partners of outer, semi and
 * anti joins, min, max, bool_and, bool_or, the distinct aggregates) and add up with their sign elsewhere.
 * `partition`: an int64 column whose value is the partition of its row, 0 to IVM_PARTITIONS_MAX - 1 and never null; a batch with another value in it
 * is refused (overflow). NULL or "": rows belong to none. What it is for: ivm_checkpoint_partitions(). */
typedef struct ivm_table_options {
    uint32_t version; /* IVM_TABLE_OPTIONS_VERSION; 0 means 1 */
    const ivm_column_definition *columns;
    size_t columns_count;
    const char *key;
    bool append_only;
    bool allow_negative;
    bool transient;
    const char *partition;
} ivm_table_options;
#define IVM_TABLE_OPTIONS_VERSION 1u

/* Declares a table. Everything in `options` is copied. The engine owns *table: valid until it is dropped or the engine closed.
 * already_exists (tables and views share one space of names), invalid_argument (a name, a type, no columns), unknown_column (in the key, the
 * partition), type_mismatch (a partition that is no int64), ambiguous_column (two columns of one name), unsupported (a key of a transient
 * table), out_of_memory. */
IVM_API ivm_status ivm_table_create(ivm_engine *engine, const char *name, const ivm_table_options *options, ivm_table **table,
                                    ivm_error *error) IVM_MUST_CHECK;

/* Drops a table, its rows and the facts that name it. in_use while a view reads it: then nothing is dropped. */
IVM_API ivm_status ivm_table_drop(ivm_table *table, ivm_error *error) IVM_MUST_CHECK;

/* Renames a column, adds one at the end (null in all rows; not_null is invalid_argument), or drops one (in_use while a view reads it, the
 * table's key names it or it is the partition; invalid_argument for the only one). The facts that name a dropped column go with it. Views and
 * their state stay, their columns keep their names. A table that allows negative weights loses columns only while no view reads it. A batch
 * filled before a column came or went is refused (type_mismatch); none may be filled for the table meanwhile. Cost: adding and dropping write the
 * table's rows anew.
 * unknown_column, already_exists, invalid_argument, in_use, overflow (rows that become equal, too often), out_of_memory. */
IVM_API ivm_status ivm_table_column_rename(ivm_table *table, const char *column, const char *name, ivm_error *error) IVM_MUST_CHECK;
IVM_API ivm_status ivm_table_column_add(ivm_table *table, const ivm_column_definition *column, ivm_error *error) IVM_MUST_CHECK;
IVM_API ivm_status ivm_table_column_drop(ivm_table *table, const char *column, ivm_error *error) IVM_MUST_CHECK;

/* Finds by name. unknown_table / unknown_view. */
IVM_API ivm_status ivm_table_find(ivm_engine *engine, const char *name, ivm_table **table, ivm_error *error) IVM_MUST_CHECK;
IVM_API ivm_status ivm_view_find(ivm_engine *engine, const char *name, ivm_view **view, ivm_error *error) IVM_MUST_CHECK;

/* The engine's tables, or its views, in the order of their making: the one after `table` or `view` (NULL: the first), NULL after the last. So what a
 * restore brought is found. Not while another thread makes, drops or restores some. */
IVM_API ivm_table *ivm_table_next(ivm_engine *engine, const ivm_table *table);
IVM_API ivm_view *ivm_view_next(ivm_engine *engine, const ivm_view *view);

/* Names and types; strings live as long as the table, a column's name until it is renamed or dropped. `column` out of range: NULL and 0. */
IVM_API const char *ivm_table_name(const ivm_table *table);
IVM_API size_t ivm_table_columns_count(const ivm_table *table);
IVM_API const char *ivm_table_column_name(const ivm_table *table, size_t column);
IVM_API ivm_type ivm_table_column_type(const ivm_table *table, size_t column);
/* The positions of the key's columns, in the key's order; 0 for a bag. `columns` may be NULL to ask for the count alone. */
IVM_API size_t ivm_table_key(const ivm_table *table, size_t *columns, size_t capacity);

/* ---- Foreign keys ---------------------------------------------------------------------------------------------------------------- */

/* How far a foreign key is to be believed.
 * RELY: promised that, now and after every batch, each child key without a null has its parent. Costs nothing; a broken promise may give
 * wrong views, which ivm_audit_view() finds. Whether rows that are there keep it is told by declaring the same columns ENFORCED first, and
 * removing that fact again; one that stands as RELY already is to be removed before.
 * ENFORCED: a batch that would leave a child row without its parent, judged on its net result, fails with fk_violation. Declaring it over
 * rows that break it does too, names an orphan, and changes nothing. Costs a lookup for each child row that comes and each parent that goes.
 * TRACKED: nothing is promised and views are exact whatever the order of arrival: children may wait for their parents (orphans), a parent may
 * leave before its children and return. A parent prunes unless a child waits for it or still refers to it. Costs a lookup for each child row
 * that comes and a count for each key that waits; once parents leave, a count for each key that children hold. */
typedef enum ivm_trust { IVM_RELY, IVM_ENFORCED, IVM_TRACKED } ivm_trust;

/* Declares that `columns` of `child` refer to `parent_columns` of `parent`, names with commas between them, paired in order.
 * `parent_columns` must be all of the parent's key, types equal. The fact lives until it is removed, or either table or a column of the child that
 * it names is dropped; it never attaches to another table of the same name. A step uses it only if it has been in force, without a break, since
 * the state that the step starts from: a push from the next one on, a refresh if no push lies between the view's last refresh and the
 * declaration. The same columns may be declared again with the same trust: that is a further fact. To trust them in another way, remove the fact
 * first: already_exists names both trusts. `fact` may be NULL. Cost of RELY: none; of the others: a lookup for each row of the child.
 * unknown_column, ambiguous_column, type_mismatch, invalid_argument, fk_violation, unsupported (ENFORCED or TRACKED from a transient table that
 * has changed; TRACKED from one that allows negative weights, too: without its rows +1 and -1 cannot be told from nothing), overflow (more children
 * of one key than int64 counts; of TRACKED a push may fail so, too), cancelled (ivm_engine_cancel()), out_of_memory. */
IVM_API ivm_status ivm_foreign_key_declare(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns,
                                           ivm_trust trust, ivm_fact **fact, ivm_error *error) IVM_MUST_CHECK;
/* Takes a fact back, from the next push on, and frees it. in_use from inside a callback, or while a view of a transient table rests on it. */
IVM_API ivm_status ivm_foreign_key_remove(ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;

/* The engine's facts in the order of their declaration: the one after `fact` (NULL: the first), NULL after the last. Not while another thread
 * declares, removes or drops. */
IVM_API ivm_fact *ivm_fact_next(ivm_engine *engine, const ivm_fact *fact);
/* What a fact says: its tables, and the positions of its columns, paired; how many there are. The arrays may be NULL. */
IVM_API ivm_table *ivm_fact_child(const ivm_fact *fact);
IVM_API ivm_table *ivm_fact_parent(const ivm_fact *fact);
IVM_API size_t ivm_fact_columns(const ivm_fact *fact, size_t *child_columns, size_t *parent_columns, size_t capacity);

/* How a fact stands after the last push. Orphans are child rows, each counted as often as its weight says (a row of a table that allows negative
 * weights: once), whose key has no null and no parent; only tracked facts have any. ivm_read_orphans() in ivm/view.h gives their keys. */
typedef struct ivm_fact_state {
    uint32_t version;      /* IVM_FACT_STATE_VERSION; 0 means 1 */
    ivm_trust trust;       /* as it was declared */
    uint64_t orphans;      /* rows that wait (saturating) */
    uint64_t orphans_keys; /* keys that they wait for */
} ivm_fact_state;
#define IVM_FACT_STATE_VERSION 1u
/* Fills in *state, whose version the caller sets. invalid_argument, in_use from inside a callback. */
IVM_API ivm_status ivm_fact_status(ivm_fact *fact, ivm_fact_state *state, ivm_error *error) IVM_MUST_CHECK;

/* ---- Statistics ------------------------------------------------------------------------------------------------------------------ */

/* Counted by the operators as they run. From ivm_push_batch(): of that push; from ivm_engine_stats(): of all pushes so far. Pruned and empty are
 * masks, run are terms: under telescoping several masks share one term, so that for a join of n leaves the three may add up to less than 2^n - 1. */
typedef struct ivm_stats {
    uint64_t batches;       /* pushes that succeeded */
    uint64_t rows_in;       /* net rows of the tables' deltas */
    uint64_t rows_out;      /* net rows of the views' changes */
    uint64_t terms_run;     /* join terms that were executed */
    uint64_t terms_pruned;  /* masks a foreign key took out (saturating) */
    uint64_t terms_empty;   /* masks left out because a leaf did not change (saturating) */
    uint64_t rows_probed;   /* rows for which an index was asked */
    uint64_t rows_matched;  /* rows such probes found */
    uint64_t bytes_held;    /* what the engine holds of its allocator's memory, now */
    uint64_t nanoseconds;   /* time inside ivm_push_batch() */
    uint64_t terms_dropped; /* of those run: no row of their delta finds a partner in an index at hand, so that no other is built */
    uint64_t reserved[5];   /* 0 */
} ivm_stats;
/* Of all pushes so far; bytes_held is what is held now. */
IVM_API void ivm_engine_stats(ivm_engine *engine, ivm_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
