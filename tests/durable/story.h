/* A story of changes that is the same however often it is told, for the tests of durable engines: step i does what it does because it is the
 * i-th, so that a plain engine that was told the first n steps says what a directory must hold after n. Pushes carry their step's number + 1 as
 * position.
 *
 * The programs are plain ones (no test framework), so that they can fork, be killed, and run under the thread sanitizer. */
#ifndef TEST_DURABLE_STORY_H
#define TEST_DURABLE_STORY_H

#include <stdio.h>
#include <stdlib.h>

#include "durable_inside.h"
#include "ivm/ivm.h"
#include "need.h"

#define OK(call)                                                                                                                           \
    do {                                                                                                                                   \
        ivm_error ok_error = IVM_ERROR_INIT, *error = &ok_error;                                                                           \
        if ((call) != IVM_OK) {                                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, ivm_status_name(ok_error.status), ok_error.message);         \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

#define STORY_DECLARES 17   /* steps that make tables, facts and views */
#define STORY_CHECKPOINT 73 /* the first step that is a checkpoint */
#define STORY_LONG 80       /* by then everything has happened that does */

/* Does a step: of the first STORY_DECLARES each a declaration; then pushes, refreshes, changes of the catalog and checkpoints. What a step
 * fails with is a matter of its number too (a batch may be refused), but for io. */
ivm_status story_step(ivm_engine *engine, uint64_t step, ivm_error *error);
/* A push in any case. */
ivm_status story_push(ivm_engine *engine, uint64_t step, ivm_error *error);
void story_declare(ivm_engine *engine);
/* The position as a number; 0: none. */
uint64_t story_position(ivm_engine *engine);
/* Of all that the engine holds: its checkpoint's bytes summed up. */
uint64_t story_digest(ivm_engine *engine);
/* Of a plain engine after each of so many first steps, [0] before them; the caller frees them. */
uint64_t *story_digests(uint64_t steps);

/* An engine with few threads and a small log, so that all files come and go. NULL files: the system's. */
ivm_status story_open(const char *directory, const ivm__files *files, ivm_engine **engine, ivm_recovery *recovery, ivm_error *error);

/* A directory of its own under TMPDIR, and the name of one in it that is not there yet. */
typedef struct story_place {
    char root[256], directory[300];
} story_place;
void story_place_make(story_place *place);
void story_place_clear(const story_place *place); /* removes the inner one */
void story_place_remove(const story_place *place);

#endif
