/* Operation sequences: bytes are read as tables, facts, plans, batches, refreshes, changes of the catalog, checkpoints and restores; each is done to an
 * engine and to the oracle in C (tests/naive), and after each one everything that can be read of the engine must be what the oracle holds:
 * rows of tables and views, what the last step changed, callbacks, orphans, the position; held snapshots must stay as they were. A command that
 * the oracle refuses must be refused, and change nothing; one that runs out of memory must change nothing.
 *
 *     operations.c (reads bytes, one operation each) -> operations_catalog.c, operations_plan.c, operations_push.c, operations_saved.c
 *                                                    -> operations_check.c after each
 *
 * Anything else ends the process (abort) after a line that says what. */
#ifndef FUZZ_OPERATIONS_H
#define FUZZ_OPERATIONS_H

#include "allocator.h"
#include "naive.h"

#include <stdio.h>

#define HELD_MAX 4u
#define POSITION_MAX 8u

typedef struct held_snapshot {
    ivm_snapshot *snapshot;
    naive_relation rows;
} held_snapshot;

/* What a callback said. */
typedef struct told_change {
    const char *name;     /* a view's; NULL: of a fact's orphans */
    const ivm_fact *fact; /* the engine's */
    naive_relation changes;
    struct told_change *next;
} told_change;

typedef struct saved_engine {
    uint8_t *bytes;
    size_t size, capacity, at;
    naive_database database; /* what was saved; its pool NULL: nothing was */
    uint8_t position[POSITION_MAX];
    size_t position_size;
} saved_engine;

typedef struct operations {
    const uint8_t *data;
    size_t size, at;
    naive_pool pool;
    naive_database expected;
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    unsigned names; /* given out so far */
    held_snapshot held[HELD_MAX];
    told_change *told;
    bool failed;                 /* an allocation, before a callback */
    bool stepped;                /* a push or refresh went through since the last check */
    naive_relation *orphans_new; /* what it did to the orphans of each fact; NULL: nothing */
    size_t orphans_new_count;
    saved_engine saved;
    uint8_t position[POSITION_MAX];
    size_t position_size;
} operations;

/* ---- Drawing (operations.c) ------------------------------------------------------------------------------------------------------ */

/* The next byte, 0 at the end. */
unsigned operations_byte(operations *it);
/* 0 to count - 1. */
unsigned operations_pick(operations *it, unsigned count);
/* True once in `count` times. */
bool operations_once_in(operations *it, unsigned count);
/* A value of the type, seldom great, never null; or an untyped null. */
ivm_value operations_value(operations *it, ivm_type type, bool nullable);
ivm_type operations_type(operations *it);

/* ---- Telling --------------------------------------------------------------------------------------------------------------------- */

extern bool operations_trace; /* each operation is told on standard error */
void operations_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As text (operations_tell.c). */
void operations_value_print(const ivm_value *value, FILE *out);
void operations_relation_print(const char *what, const naive_relation *rows, FILE *out);
void operations_plan_print(const naive_plan *plan, unsigned depth, FILE *out);
/* Tells and aborts. */
_Noreturn void operations_wrong(operations *it, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts that something was exercised, by a name that is a literal. */
void operations_count(const char *name);
void operations_count_status(const char *name, ivm_status status);
/* Prints what was counted. */
void operations_counts_print(void);
/* Whether everything that is to be met was; tells what was not. */
bool operations_counts_complete(void);

/* ---- Operations ------------------------------------------------------------------------------------------------------------------ */

void operations_engine_open(operations *it, ivm_engine **engine);

void operations_table_create(operations *it);
void operations_table_drop(operations *it);
void operations_column_change(operations *it);
void operations_fact_declare(operations *it);
void operations_fact_remove(operations *it);
void operations_view_create(operations *it);
void operations_view_drop(operations *it);
naive_plan *operations_plan(operations *it, unsigned depth);
void operations_push(operations *it);
void operations_refresh(operations *it);
void operations_view_changed(void *context, ivm_view *view, ivm_snapshot *changes);
void operations_orphans_changed(void *context, ivm_fact *fact, ivm_snapshot *changes);
/* What comes with going from what is expected to *after. */
void operations_orphans_foresee(operations *it, const naive_database *after);

void operations_checkpoint(operations *it);
void operations_restore(operations *it);
void operations_corrupt(operations *it);
void operations_saved_free(operations *it);

/* Everything that can be read (operations_check.c). `changes`: what the last step changed, too. */
void operations_check(operations *it, bool changes);
void operations_hold(operations *it);
void operations_find(operations *it);
void operations_audit(operations *it);
/* Held snapshots are compared and closed. */
void operations_let_go(operations *it);
/* What callbacks said, and what they should have. */
void operations_told_forget(operations *it);

bool operations_weights_great(const operations *it);
ivm_table *operations_table(operations *it, const char *name);
ivm_view *operations_view(operations *it, const char *name);

#endif
