/* The catalog: an engine's tables, facts and views, as structs the layers share. */
#ifndef IVM__CATALOG_H
#define IVM__CATALOG_H

#include <pthread.h>

#include "ivm/view.h"
#include "program.h"

typedef struct ivm__column {
    char *name;
    ivm_type type;
    bool nullable;
} ivm__column;

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
    ivm_type *types;
    uint32_t *key; /* positions in the key's order */
    uint32_t key_count;
    bool append_only;
    ivm__store store;
    ivm__index *key_index;  /* NULL for a bag */
    ivm__index *whole;      /* a bag's, over whole rows; NULL until its first negative row */
    ivm__table_delta delta; /* of the step under way */
    uint32_t readers_count; /* views that scan it */
    ivm_table *next;
};

struct ivm_fact {
    ivm_engine *engine;
    uint64_t id;
    ivm_table *child, *parent;
    uint32_t *child_columns, *parent_columns; /* paired; the parent's are all of its key */
    uint32_t columns_count, columns_capacity;
    ivm_trust trust;
    uint64_t since; /* pushes before it was declared */
    ivm_fact *next;
};

struct ivm_view {
    ivm_engine *engine;
    char *name;
    uint64_t id;
    ivm__column *columns;
    uint32_t columns_count;
    uint32_t key_count; /* leading columns that ivm_snapshot_find takes at most; an aggregate's group columns, else all */
    ivm__program program;
    ivm_table **tables; /* those it scans, each once */
    uint32_t tables_count;
    struct ivm__planned *planned; /* plan/'s: what explain tells of */
    void (*planned_free)(struct ivm__planned *planned, ivm__memory *memory);
    ivm_view *next; /* in the order of their making */
};

struct ivm_engine {
    ivm__memory memory;
    ivm__texts texts;
    uint64_t seed;
    pthread_mutex_t lock;  /* the writer's, and the catalog's */
    _Atomic bool stepping; /* a push or view creation is under way, on thread `owner` */
    _Atomic(pthread_t) owner;
    pthread_mutex_t snapshots_lock; /* the list of open snapshots alone; held for a few instructions */
    struct ivm_snapshot *snapshots_oldest, *snapshots_newest;
    ivm_planner_options planner;
    ivm_table *tables;
    ivm_fact *facts;
    ivm_view *views;
    uint64_t ids;              /* the last one given */
    uint64_t pushes;           /* that succeeded */
    uint64_t facts_version;    /* grows with every change of facts */
    ivm__arena arena, scratch; /* of the step */
    ivm_stats stats;
};

/* The lock must be held. */
ivm_table *ivm__table_named(const ivm_engine *engine, const char *name, size_t size);
ivm_view *ivm__view_named(const ivm_engine *engine, const char *name, size_t size);
/* Whether a new table or view may have this name: invalid_argument or already_exists where not. */
ivm_status ivm__name_check(const ivm_engine *engine, const char *name, ivm_error *error) IVM_MUST_CHECK;
/* The position of a table's column; unknown_column names both. */
ivm_status ivm__table_column(const ivm_table *table, const char *name, size_t size, uint32_t *column, ivm_error *error) IVM_MUST_CHECK;

/* Walks "a, b.c ,d": the next name without the space around it. *text moves on. False at the end; an empty name has size 0. */
bool ivm__name_next(const char **text, const char **name, size_t *size);

/* Checks and makes a fact that is in no list yet: for declaring one and for stating one. */
ivm_status ivm__fact_make(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_fact **fact,
                          ivm_error *error) IVM_MUST_CHECK;
void ivm__fact_free(ivm_fact *fact);
void ivm__fact_drop(ivm_fact *fact); /* takes it out of the engine's list, too */
uint64_t ivm__snapshot_epoch(const ivm_snapshot *snapshot);

void ivm__view_free(ivm_view *view);
void ivm__table_free(ivm_table *table);

/* Takes the lock for a call that may not come from inside a callback of the engine (in_use then). */
ivm_status ivm__engine_enter(ivm_engine *engine, ivm_error *error) IVM_MUST_CHECK;
void ivm__engine_leave(ivm_engine *engine);
/* Fills in a step over the engine's arenas. */
void ivm__step_init(ivm__step *step, ivm_engine *engine, ivm_stats *stats, ivm_error *error);
/* Finishes a step, failed or not: arenas, epoch, and texts that nobody holds. The lock must be held. */
void ivm__engine_settle(ivm_engine *engine);
/* A value as a cell of this type: IVM_TYPE_MISMATCH where it is none (an int64 fits where it is exact); a null is all zero bits. */
ivm_status ivm__value_cell(ivm__texts *texts, ivm_type type, const ivm_value *value, ivm__wide *cell) IVM_MUST_CHECK;

#endif
