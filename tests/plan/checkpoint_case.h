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

/* Tables of every kind under facts of two kinds, and a dozen views; rows of which some wait and some are pending; then steps that ask everything
 * for what it kept. */
void case_declare(fixture *it);
ivm_view *case_views_declare(fixture *it); /* the first, "joined" */
void case_program_open(fixture *it);       /* the fixture, with both */
void case_fill(fixture *it);
void case_fill_more(fixture *it); /* a part of it */
void case_go_on(fixture *it);
/* By name; they must go through. */
void case_push(fixture *it, const char *table, ivm_change change, const char *rows);
void case_refresh(fixture *it, const char *name);
/* All views' rows as one text, which the caller frees. */
char *case_contents(fixture *it);

#endif
