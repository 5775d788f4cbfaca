/* The catalog: an engine's tables, facts and views, as structs the layers share. */
#ifndef IVM__CATALOG_H
#define IVM__CATALOG_H

#include <pthread.h>

#include "ivm/view.h"
#include "pool.h"
#include "program.h"

typedef struct ivm__published ivm__published; /* publish.h */

typedef struct ivm__column {
    char *name;
    ivm_type type;
    bool nullable;
} ivm__column;

/* A table's or a view's place among the engine's names; it is one of the two. */
typedef struct ivm__named {
    struct ivm__named *next; /* of its slot */
    uint64_t hash;
    ivm_table *table;
    ivm_view *view;
} ivm__named;

/* All names of a catalog, in chains by their hash. */
#define IVM__NAMES_FEW 16u
typedef struct ivm__name_slots {
    ivm__named *few[IVM__NAMES_FEW];
    ivm__named **many; /* in place of these, once there are more; NULL: they do */
    uint32_t many_count, count;
} ivm__name_slots;

/* What is known of the positions in a catalog's lists: NULL: their ordinals are not as they are; else the item that was asked for last. */
typedef struct ivm__ordinals {
    ivm_table *table;
    ivm_fact *fact;
    ivm_view *view;
} ivm__ordinals;

/* The columns that a table had when a view was compiled for them, and where each is now. A table's first heading, and one for every column that
 * came or went while a view read the table. */
typedef struct ivm__heading {
    struct ivm__heading *older;
    uint32_t columns_count;
    ivm_type *types;
    uint32_t *columns; /* of the table; UINT32_MAX: dropped, no view of this heading reads it */
} ivm__heading;

/* A table's net delta in the step under way, as chunks that carry all columns. Without negative rows equal rows may stand apart; with
 * one, each distinct row stands once. */
typedef struct ivm__table_delta {
    ivm__chunk **chunks;
    uint32_t chunks_count;
    uint64_t rows_count;
    ivm_shape shape;
} ivm__table_delta;

struct ivm_table {
    ivm_engine *engine;
    char *name;
    uint64_t id; /* never given twice */
    ivm__column *columns;
    uint32_t columns_count;
    ivm_type *types;          /* the heading's */
    ivm__heading *heading;    /* as it is now; older ones behind it */
    uint64_t columns_version; /* grows when a column comes or goes: batches filled before are refused */
    uint32_t *key;            /* positions in the key's order */
    uint32_t key_count, key_capacity;
    bool partitioned;   /* each row belongs to the partition whose number it has in a column */
    uint32_t partition; /* that column; 0 where there is none */
    bool append_only;
    bool allow_negative;    /* a bag whose rows stand once each, found through `whole` */
    bool transient;         /* rows are used and dropped: the store has those alone that wait for parents, once each (transient.h) */
    bool came;              /* a push has changed it */
    bool stale;             /* transient: rows may stand in the store that wait for nothing */
    bool listed;            /* among the engine's changed tables */
    struct ivm__hops *hops; /* transient: of the views and facts for which its rows may wait */
    ivm__store store;
    ivm__index *key_index;     /* NULL for a bag */
    ivm__index *whole;         /* a bag's, over whole rows; NULL until its first negative row, or its first that waits */
    ivm__table_delta delta;    /* of the step under way */
    ivm__published *published; /* its state for readers who find the lock taken */
    uint32_t readers_count;    /* views that scan it */
    uint32_t ordinal;          /* see ivm__table_ordinal() */
    ivm_fact *facts;           /* of which it is the child, in the order of their declaration */
    ivm_fact *facts_to;        /* of which it is the parent */
    ivm_table *next_changed;
    ivm_table *next, *previous; /* in the order of their making; the first one's previous is the last */
    ivm__named named;
};

/* What a scan reads: one of the two, or neither. */
typedef struct ivm__source {
    ivm_table *table;
    ivm_view *view;
    const ivm__heading *heading; /* of a table, as the scan was compiled for it; NULL: as it is now */
} ivm__source;

/* Which columns of a table a view reads, numbered as they are now; columns past the last are not read. */
typedef struct ivm__used {
    bool *columns;
    uint32_t columns_count, columns_capacity;
} ivm__used;

struct ivm_fact {
    ivm_engine *engine;
    uint64_t id;
    ivm_table *child, *parent;
    uint32_t *child_columns, *parent_columns; /* paired; the parent's are all of its key */
    uint32_t columns_count, columns_capacity;
    ivm_trust trust;
    uint64_t since;              /* pushes before it was declared */
    struct ivm__track *track;    /* who waits for whom, who holds whom (track.h); NULL where nobody asks */
    struct ivm__hops *hops;      /* its own, where all rows that wait under it are kept (transient.h); else NULL */
    uint32_t pins;               /* views of transient tables that rest on it */
    ivm_orphans_changed changed; /* NULL: nobody is told */
    void *changed_context;
    struct ivm_snapshot *telling; /* what `changed` is to be told once the step has ended; NULL: nothing */
    struct ivm_snapshot *kept;    /* before that, of steps of one group that have ended, in their order */
    ivm_fact *next, *previous;    /* as tables; and the same among those of its child, and of its parent */
    uint32_t ordinal;
    ivm_fact *next_of_child, *previous_of_child, *next_of_parent, *previous_of_parent;
};

struct ivm_view {
    ivm_engine *engine;
    char *name;
    uint64_t id;
    ivm__column *columns;
    uint32_t columns_count;
    uint32_t key_count; /* leading columns that ivm_snapshot_find takes at most; an aggregate's group columns, else all */
    ivm__program program;
    ivm_type *types;
    ivm_table **tables; /* those it scans, each once */
    uint32_t tables_count;
    ivm__used *used;  /* one for each of the tables; NULL: all columns are */
    ivm_view **views; /* those it scans, each once */
    uint32_t views_count;
    uint32_t readers_count; /* views that scan it */
    ivm_refresh refresh;
    uint8_t *plan; /* as it was made from, in plan/'s code */
    uint32_t plan_size;
    ivm_view_changed changed; /* NULL: nobody is told */
    void *changed_context;
    struct ivm__hops *hops;       /* of its joins that read rows not kept: where these find their parents */
    uint64_t clock;               /* a deferred view's: pushes when it was last refreshed, or made */
    struct ivm__pending *pending; /* a deferred view's: one for each table and view it scans */
    bool ran;                     /* its program, in the step under way */
    bool marked;                  /* explain's, while it looks for who reads a table */
    ivm__published *published;    /* its state for readers who find the lock taken */
    struct ivm_snapshot *telling; /* what `changed` is to be told once the step has ended; NULL: nothing */
    struct ivm_snapshot *kept;    /* before that, of steps of one group that have ended, in their order */
    struct ivm__planned *planned; /* plan/'s: what explain tells of */
    void (*planned_free)(struct ivm__planned *planned, ivm__memory *memory);
    ivm_view *next, *previous; /* as tables */
    uint32_t ordinal;
    ivm__named named;
};

#define IVM__TABLES_RECENT 16u

struct ivm_engine {
    ivm__memory memory;
    ivm__texts texts;
    uint64_t seed;
    pthread_mutex_t turn; /* of calls that change the engine, until their callbacks are done; taken before the lock */
    pthread_mutex_t lock; /* the writer's, and the catalog's */
    /* The list of open snapshots, of published states, and of calls without the lock; held for a few instructions. */
    pthread_mutex_t snapshots_lock;
    _Atomic uint64_t cancels;  /* asked for so far (cancel.h) */
    uint64_t cancels_seen;     /* as the call that has the turn began */
    _Atomic(pthread_t) owner;  /* of the call under way */
    _Atomic(pthread_t) teller; /* of callbacks */
    struct ivm_snapshot *snapshots_oldest, *snapshots_newest;
    ivm__published *published; /* states that are taken without the lock (publish.h) */
    uint64_t published_epoch;
    uint32_t published_position_size; /* the position as of these states */
    uint8_t published_position[IVM_POSITION_SIZE_MAX];
    struct ivm__outside *outside; /* calls under way that call the user's functions without the lock */
    _Atomic uint32_t outside_count;
    _Atomic bool stepping; /* a call is under way, on thread `owner` */
    _Atomic bool telling;  /* callbacks are being called, on thread `teller`; the lock is free */
    bool restoring;        /* a restore in several streams is open: nothing else changes the engine */
    bool withheld;         /* what steps commit is not published yet: it is not on the disk */
    bool several;          /* threads have called */
    bool unreadable;       /* views may be ahead of what the journal has kept: the engine can only be closed */
    ivm_planner_options planner;
    ivm_table *tables;
    ivm_table *changed; /* those that the step under way may change, or that changed in the last: all others end a step unseen */
    ivm_table *recent[IVM__TABLES_RECENT]; /* by id: the last that a batch named; NULL: none, or it is gone */
    ivm_fact *facts;
    ivm_view *views;
    ivm__name_slots names;
    ivm__ordinals ordinals;
    uint64_t ids;                            /* the last one given */
    uint64_t pushes;                         /* that succeeded */
    uint64_t facts_version;                  /* grows with every change of facts */
    uint8_t position[IVM_POSITION_SIZE_MAX]; /* that came with a push */
    uint32_t waits_count;                    /* lists of hops by which rows of transient tables may wait */
    uint32_t position_size;
    uint32_t steps_kept;          /* of a group, that have something to tell or not (step.h) */
    struct ivm__journal *journal; /* told of every change before it is in force (journal.h); NULL: nobody is */
    ivm__pool *pool;              /* NULL: one thread */
    ivm__arena arena, scratch;    /* of the step */
    ivm_stats stats;
};

/* Before a step changes the table. */
static inline void ivm__table_list(ivm_table *table)
{
    if (!table->listed) {
        table->listed = true;
        table->next_changed = table->engine->changed;
        table->engine->changed = table;
    }
}
/* Into the engine's list and names, and out of them; a fact into its tables' lists, too. Cost: none that grows with the catalog. */
void ivm__table_enlist(ivm_table *table);
void ivm__table_delist(ivm_table *table);
void ivm__view_enlist(ivm_view *view);
void ivm__view_delist(ivm_view *view);
void ivm__fact_enlist(ivm_fact *fact);
void ivm__fact_delist(ivm_fact *fact);
/* Positions in the engine's lists, and back; NULL: it has none there. The lock must be held. Cost: the first since one was dropped numbers them all;
 * finding one costs the way from the last one found, or from the first. */
uint32_t ivm__table_ordinal(const ivm_table *table);
uint32_t ivm__fact_ordinal(const ivm_fact *fact);
uint32_t ivm__view_ordinal(const ivm_view *view);
ivm_table *ivm__table_at(ivm_engine *engine, uint32_t ordinal);
ivm_fact *ivm__fact_at(ivm_engine *engine, uint32_t ordinal);
ivm_view *ivm__view_at(ivm_engine *engine, uint32_t ordinal);
/* Room for one more name, so that enlisting cannot fail. */
ivm_status ivm__name_slots_reserve(ivm_engine *engine) IVM_MUST_CHECK;
void ivm__name_slots_deinit(ivm__name_slots *names, ivm__memory *memory); /* its tables and views may be gone */
/* The lock must be held. */
ivm_table *ivm__table_named(const ivm_engine *engine, const char *name, size_t size);
ivm_view *ivm__view_named(const ivm_engine *engine, const char *name, size_t size);
/* A heading of the columns as they are now. NULL: out of memory. */
ivm__heading *ivm__heading_make(ivm__memory *memory, const ivm__column *columns, uint32_t columns_count);
void ivm__heading_free(ivm__memory *memory, ivm__heading *heading); /* NULL is fine */
/* Whether a column may be so: invalid_argument names it. */
ivm_status ivm__column_check(const ivm_column_definition *column, ivm_error *error) IVM_MUST_CHECK;
/* The layout of a table's rows. */
ivm_status ivm__table_layout(ivm__memory *memory, const ivm__column *columns, const ivm__heading *heading, bool packed,
                             ivm__layout **layout) IVM_MUST_CHECK;
/* Whether a new table or view may have this name: invalid_argument or already_exists where not. */
ivm_status ivm__name_check(const ivm_engine *engine, const char *name, ivm_error *error) IVM_MUST_CHECK;
/* The position of a table's column; unknown_column names both. */
ivm_status ivm__table_column(const ivm_table *table, const char *name, size_t size, uint32_t *column, ivm_error *error) IVM_MUST_CHECK;

/* Walks "a, b.c ,d": the next name without the space around it. *text moves on. False at the end; an empty name has size 0. */
bool ivm__name_next(const char **text, const char **name, size_t *size);

/* A table declared, as the public call does. */
ivm_status ivm__table_declare(ivm_engine *engine, const char *name, const ivm_table_options *options, ivm_table **table,
                              ivm_error *error) IVM_MUST_CHECK;
/* Drops every view, fact and table, whoever reads them. */
void ivm__catalog_clear(ivm_engine *engine);
/* The table's heading with these columns, made if there is none. NULL: out of memory. */
const ivm__heading *ivm__table_heading(ivm_table *table, const ivm_type *types, const uint32_t *columns, uint32_t columns_count);
/* Checks and makes a fact that is in no list yet: for declaring one and for stating one. */
ivm_status ivm__fact_make(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_fact **fact,
                          ivm_error *error) IVM_MUST_CHECK;
/* A fact of a catalog that was saved: as declared, but that another trust of the same key may stand beside it. */
ivm_status ivm__fact_restore(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust,
                             ivm_error *error) IVM_MUST_CHECK;
const char *ivm__trust_word(ivm_trust trust); /* "rely", "enforced" or "tracked" */
void ivm__fact_free(ivm_fact *fact);
void ivm__fact_drop(ivm_fact *fact); /* takes it out of the engine's list, too */
/* The fact's columns of the child in the order of the parent's key, and their names in that order, "(a, b)", cut to the size. */
void ivm__fact_child_columns(const ivm_fact *fact, uint32_t *columns);
#define IVM__FACT_TEXT_SIZE 160
void ivm__fact_text(const ivm_fact *fact, char text[IVM__FACT_TEXT_SIZE]);
/* Whether the column is one of these; whether it is one of the child's that the fact names, so that the fact goes with it. */
bool ivm__columns_include(const uint32_t *columns, uint32_t count, uint32_t column);
bool ivm__fact_names(const ivm_fact *fact, const ivm_table *table, uint32_t column);
uint64_t ivm__snapshot_epoch(const ivm_snapshot *snapshot);
const ivm_snapshot *ivm__snapshot_newer(const ivm_snapshot *snapshot); /* NULL: it is the newest. Under the engine's snapshots_lock */
/* Snapshots of a view's rows, and of what the step under way changes in them. The lock is held. */
ivm_status ivm__snapshot_rows(ivm_view *view, ivm_snapshot **snapshot) IVM_MUST_CHECK;
ivm_status ivm__snapshot_changes(ivm_view *view, ivm_snapshot **snapshot) IVM_MUST_CHECK;
/* The same of the keys that a tracked fact's children wait for: what the step under way changes of them. */
ivm_status ivm__snapshot_orphans_changes(ivm_fact *fact, ivm_snapshot **snapshot) IVM_MUST_CHECK;
/* A view's of rows laid out as its own, in a store of their own that may go: they are copied. A weight past int64 is cut to it. */
ivm_status ivm__snapshot_copy(ivm_view *view, ivm__store *rows, ivm_snapshot **snapshot) IVM_MUST_CHECK;

void ivm__view_free(ivm_view *view);
void ivm__table_free(ivm_table *table);

/* Takes turn and lock for a call that may change the engine. in_use where it comes from inside a callback, or while a restore is open; io where it is
 * unreadable. */
ivm_status ivm__engine_enter(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
/* The same for the calls that such a restore is made of. */
ivm_status ivm__engine_enter_restoring(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
void ivm__engine_leave(ivm_engine *engine);
/* For whoever has entered: whether that call was asked to end. */
static inline ivm__cancel ivm__engine_cancel_of(const ivm_engine *engine)
{
    return (ivm__cancel){ &engine->cancels, engine->cancels_seen };
}
/* The call begins now, or another's that is carried through in its turn. */
static inline void ivm__engine_cancel_from_now(ivm_engine *engine)
{
    engine->cancels_seen = atomic_load_explicit(&engine->cancels, memory_order_relaxed);
}
/* Whether the calling thread is in a call of the engine, or in a callback. */
bool ivm__engine_is_inside(ivm_engine *engine);
/* Takes the lock alone, for a call that only looks: it need not wait for callbacks. */
ivm_status ivm__engine_enter_reading(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
void ivm__engine_leave_reading(ivm_engine *engine);
/* The same where nobody has the lock; *entered says whether. */
ivm_status ivm__engine_try_reading(ivm_engine *engine, bool *entered, ivm_error *error) IVM_MUST_CHECK;
/* A call that goes on without the lock, on this thread: until it ends its thread may not call the engine, nor anyone close it. On the caller's stack. */
typedef struct ivm__outside {
    pthread_t thread;
    struct ivm__outside *next;
} ivm__outside;
void ivm__outside_begin(ivm_engine *engine, ivm__outside *call);
void ivm__outside_end(ivm_engine *engine, ivm__outside *call);
/* Fills in a step over the engine's arenas. */
void ivm__step_init(ivm__step *step, ivm_engine *engine, ivm_stats *stats, ivm_error *error);
/* Finishes a step, failed or not: arenas, epoch, and texts that nobody holds. The lock must be held. */
void ivm__engine_settle(ivm_engine *engine);
/* A value as a cell of this type: IVM_TYPE_MISMATCH where it is none (an int64 fits where it is exact); a null is all zero bits. */
ivm_status ivm__value_cell(ivm__texts *texts, ivm_type type, const ivm_value *value, ivm__wide *cell) IVM_MUST_CHECK;
/* Why it is none, cut to the size: "float64 1 is no int64", "100.0 is no decimal(3,1)", "a string of 2147483648 bytes, at most 2147483647". */
#define IVM__MISFIT_SIZE 128
void ivm__value_misfit(ivm_type type, const ivm_value *value, char text[IVM__MISFIT_SIZE]);

#endif
