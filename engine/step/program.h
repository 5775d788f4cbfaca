/* Programs: a view's plan as a list of operators in the order in which they run, and the step that carries one push through them.
 *
 * Chunks are pushed: an operator's consume() takes a chunk of its input's delta and may emit chunks to the operator above it; when all its
 * inputs are done its finish() runs and emits what is left. The order of the list makes that so: inputs stand before their readers. The engine
 * knows no operator; operators/ fills in the class, plan/ builds the list.
 *
 *     for each operator in order: begin(), then for each: finish()          then          for each: commit()          or, backwards: undo()
 */
#ifndef IVM__PROGRAM_H
#define IVM__PROGRAM_H

#include "cancel.h"
#include "pool.h"
#include "saver.h"
#include "zset.h"

typedef struct ivm__step {
    ivm_engine *engine;
    ivm__memory *memory;
    ivm__arena *arena;   /* what lives until the step ends: deltas kept by joins */
    ivm__arena *scratch; /* last in, first out: vectors, keys, results of expressions. Who emits marks before and goes back after */
    ivm__texts *texts;
    ivm__pool *pool; /* NULL: one thread does all */
    uint64_t seed;
    bool initial;    /* a view is being filled: before is nothing, and each table's delta its whole content */
    bool past;       /* of an initial one: sources are read as they were before what is laid over them (store_lay.c) */
    bool refreshing; /* a deferred view is brought up to date: deltas are what is laid over the sources' rows */
    uint64_t since;  /* pushes before the state that the step starts from: it may use facts declared by then */
    bool loading;    /* rows from before the step pass through to fill a join's leaf: operators pass them on and count nothing */
    bool aside;      /* rows that foreign keys set aside pass through to a join's leaf: its delta but for driving terms (join.h) */
    const struct ivm_batch *batch; /* a push: to tell which row of it is at fault; else NULL */
    struct ivm__split *splits;     /* of tables, made so far in this step (split.h) */
    ivm_planner_options planner;
    ivm_stats *stats; /* of this step */
    ivm_error *error;
    ivm__cancel cancel;
} ivm__step;

/* Where a step may be long: every chunk or so. Whoever fails so must be undone as on any other failure. */
static inline ivm_status ivm__step_poll(const ivm__step *step)
{
    return ivm__cancel_poll(&step->cancel, step->error);
}

/* The store's index over these columns, made if there is none (store.h); what it fails with but for memory is told. */
static inline ivm_status ivm__step_index(const ivm__step *step, ivm__store *store, const uint32_t *columns, uint32_t columns_count,
                                         bool unique, struct ivm__index **index)
{
    ivm_status status = ivm__store_index_unless(store, columns, columns_count, unique, &step->cancel, index);
    return status == IVM_CANCELLED ? ivm__fail_cancelled(step->error) : status;
}

/* What a step fails with: a lack of memory is told here, and that it was cancelled once more; all else was told where it came to be. */
static inline ivm_status ivm__step_status(const ivm__step *step, ivm_status status)
{
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error)
           : status == IVM_CANCELLED   ? ivm__fail_cancelled(step->error)
                                       : status;
}

/* How a step in which all of a source is its delta reads it. */
static inline ivm__reading ivm__step_reading(const ivm__step *step)
{
    assert(!step->past || step->initial);
    return step->past ? IVM__READ_OLD : IVM__READ_CUR;
}

typedef struct ivm__operator ivm__operator;

typedef struct ivm__operator_class {
    const char *name;
    /* Before anything of the step comes. NULL: nothing to do. */
    ivm_status (*begin)(ivm__operator *self, ivm__step *step);
    /* A chunk of the delta of input `port`; the chunk is the caller's and valid during the call. */
    ivm_status (*consume)(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk);
    /* All inputs are done. NULL: nothing to do. */
    ivm_status (*finish)(ivm__operator *self, ivm__step *step);
    /* End of the step. Neither can fail; NULL: nothing to do. Called even where finish was never reached. */
    void (*commit)(ivm__operator *self);
    void (*undo)(ivm__operator *self);
    void (*free)(ivm__operator *self, ivm__memory *memory);
    uint64_t (*bytes)(const ivm__operator *self); /* state held; NULL: none */
    /* Names the holdings (saver.h), of an operator just made too: that tells a loader what there is to read. NULL: it holds nothing between steps,
     * and then counts no bytes. */
    ivm_status (*save)(const ivm__operator *self, ivm__saver *saver);
    /* A chunk of a holding of an operator just made, ascending, all its columns carried; payloads of its rows, one after the other, come from
     * `from`. Of a holding of bytes: once, chunk NULL. Bytes that cannot be are corrupt, with a message; they never break an assertion. On failure
     * the operator is freed. */
    ivm_status (*load)(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from);
    /* Every holding is there: makes what follows from them. After it the operator is as between steps, and the last step changed nothing. NULL:
     * nothing follows. */
    ivm_status (*settle)(ivm__operator *self, ivm__step *step);
} ivm__operator_class;

/* The head of every operator's struct. */
struct ivm__operator {
    const ivm__operator_class *class;
    ivm__operator *next; /* the reader; NULL: the root */
    uint32_t next_port;
    uint32_t columns_count; /* of what it emits */
    const ivm_type *types;
    const char *view; /* name of the view, for messages */
};

static inline ivm_status ivm__emit(ivm__operator *self, ivm__step *step, const ivm__chunk *chunk)
{
    IVM_TRY(ivm__step_poll(step));
    return self->next && chunk->rows_count ? self->next->class->consume(self->next, step, self->next_port, chunk) : IVM_OK;
}

typedef struct ivm__program {
    ivm__memory *memory;
    ivm__operator **operators; /* in the order in which they run; the last is the root */
    uint32_t operators_count, operators_capacity;
    ivm__store
        *result; /* the root's: the view's rows, each of its own weight, and through ivm__store_changes_last() the last step's changes */
} ivm__program;

ivm_status ivm__program_add(ivm__program *program, ivm__operator *operator) IVM_MUST_CHECK; /* takes it, whatever the outcome */
ivm_status ivm__program_run(ivm__program *program, ivm__step *step) IVM_MUST_CHECK;
void ivm__program_commit(ivm__program *program);
void ivm__program_undo(ivm__program *program);
void ivm__program_deinit(ivm__program *program);

/* The Z-set of failures of one operator in one step. An expression that cannot be computed for an input row puts the row here with its
 * weight: terms meet pairs of old and new rows that never stand side by side, and these cancel. What is left at the end rejects the
 * batch. */
typedef struct ivm__failures {
    ivm__zset rows; /* zeroed until the first failure */
} ivm__failures;

/* Adds the rows whose failed[row] is set. `chunk` carries every column that the expressions read; the others are not compared. */
ivm_status ivm__failures_add(ivm__failures *failures, ivm__step *step, const ivm__chunk *chunk, const uint8_t *failed) IVM_MUST_CHECK;
/* IVM_OVERFLOW, with `what` in the message, where a row is left; empties the set. */
ivm_status ivm__failures_check(ivm__failures *failures, ivm__step *step, const char *view, const char *what) IVM_MUST_CHECK;
void ivm__failures_deinit(ivm__failures *failures);

#endif
