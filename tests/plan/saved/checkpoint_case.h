/* Engines that are saved to memory and restored from it, and a program with something of everything, for the tests of checkpoints. */
#ifndef TEST_PLAN_CHECKPOINT_CASE_H
#define TEST_PLAN_CHECKPOINT_CASE_H

#include "fixture.h"
#include "ivm/ivm.h"

#define TAPE_CALLS 8u

typedef struct tape {
    uint8_t *bytes;
    size_t size, capacity, at;
    uint64_t calls, fails_at; /* that call, from 1 on, fails with io; 0: none */
    size_t most;              /* bytes that a read gives at once; 0: all */
    ivm_engine *called;       /* by each call, in TAPE_CALLS ways that must be refused */
    ivm_view *viewed;         /* one of its views */
    uint64_t refused;
} tape;

ivm_status tape_write(void *context, const void *bytes, size_t size);
ivm_status tape_read(void *context, void *bytes, size_t size, size_t *got);
void tape_free(tape *it);

/* Over what the tape had; uncompressed, it must go through. */
ivm_status case_save_as(fixture *it, tape *to, ivm_compression compression);
void case_save(fixture *it, tape *to);
/* From the tape's beginning. */
ivm_status case_restore(fixture *it, tape *from);
void case_assert_saved_as(fixture *it, const tape *wanted, const char *what);
/* Opens another engine that holds what the tape says, and is saved as the same. */
void case_reopen(fixture *other, tape *saved);
/* Both engines and the tape. */
void case_close(fixture *it, fixture *other, tape *saved);

/* Tables of every kind under facts of two kinds, and a dozen views; rows of which some wait and some are pending; then steps that ask everything
 * for what it kept. */
void case_declare(fixture *it);
ivm_view *case_views_declare(fixture *it); /* the first, "joined" */
void case_program_open(fixture *it);       /* the fixture, with both */
void case_fill(fixture *it);
/* The program, filled, and what it is saved as; the second closes it. */
void case_filled_open(fixture *it, tape *saved);
tape case_filled(void);
void case_go_on(fixture *it);
/* By name; they must go through. */
void case_push(fixture *it, const char *table, ivm_change change, const char *rows);
void case_refresh(fixture *it, const char *name);
/* All views' rows as one text, which the caller frees. */
char *case_contents(fixture *it);

/* Calls that may fail, for tests of how they do: in one batch something of every table, a refresh of the view named, a restore of a tape. */
typedef ivm_status call(fixture *it, void *context);
ivm_status case_push_all(fixture *it, void *none);
ivm_status case_refresh_named(fixture *it, void *name);
ivm_status case_restore_tape(fixture *it, void *from);

/* An engine that holds something else than the streams given to it: what it is saved as, and its views' rows. */
typedef struct victim {
    fixture it;
    tape own;
    char *(*contents)(fixture *it);
    char *rows;
} victim;
void victim_hold(victim *one, char *(*contents)(fixture *it)); /* of the engine, which is open, all that */
void victim_check(victim *one, const char *what);              /* it still is that */
void victim_close(victim *one);
/* Memory ends at every call of a restore in turn: the victim stays what it was, or is what was saved and then itself again. */
void victim_starve(victim *one, call *restore, void *from, const tape *whole);
/* The same for engines that are empty, at every so many calls: they stay empty, or are restored. */
void empty_starve(call *restore, void *from, uint64_t stride);

#endif
