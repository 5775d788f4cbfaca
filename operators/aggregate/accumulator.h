/* Accumulators: one group's state, and the loops that add rows to many groups' states.
 *
 * A state is a few 16-byte sums, so that nothing overflows on the way, whatever order terms come in:
 *     rows | per aggregate: sum, count of non-nulls | touch, out row | per exact sum: carry or float sum
 * 64 bytes, one cache line, for count(*) and one sum. min, max and the distinct family keep their values in an ordered Z-set for all
 * groups, variances of integers and decimals their moments in the state. */
#ifndef IVM__ACCUMULATOR_H
#define IVM__ACCUMULATOR_H

#include "bytes.h"
#include "exact_sum.h"
#include "items.h"
#include "operators.h"
#include "ordered.h"
#include "wide.h"

typedef struct ivm__accumulator {
    ivm__aggregate_function function;
    ivm__expression *argument, *where;
    const char *name;        /* of its column, borrowed */
    ivm_type type;           /* of the result */
    ivm_type argument_type;  /* 0: counts rows, or an untyped null */
    uint32_t port;           /* what it takes of an input with negative weights: IVM__AGGREGATE_ROWS or _PRESENT */
    uint32_t floats_count;   /* exact float sums: 1, of a variance 2 (values, squares); 0: it adds no floats */
    bool is_float;           /* it has some */
    bool carries_wide;       /* sum or avg of long decimals: the carry has 128 bits */
    bool counts_rows;        /* no argument, no condition: the group's rows are its value */
    uint32_t wide_offset;    /* of {sum, non-nulls}, moments or {falses, trues}; of counts and float variances {non-nulls} alone */
    uint32_t support_offset; /* of a sum that takes negative weights: rows with a value, whatever their weights; 0: none */
    uint32_t tail_offset;    /* of the carry, or of the float sums' pointers */
    ivm__ordered ordered;    /* min, max and the distinct family */
} ivm__accumulator;

/* What every state begins with. */
typedef struct ivm__group {
    ivm__weight rows;
} ivm__group;
typedef struct ivm__group_tail {
    uint32_t touch;  /* entry + 1 of the step's touched groups; 0: untouched */
    ivm__row_id row; /* in the result's store; IVM__ROW_NONE: none */
} ivm__group_tail;

typedef struct ivm__accumulators {
    ivm__memory *memory;
    ivm__accumulator *list;
    uint32_t count;
    bool negative;        /* the ports are told apart; else all comes through IVM__AGGREGATE_ROWS */
    uint32_t tail_offset; /* of the ivm__group_tail */
    uint32_t stride;      /* of a state */
    ivm__items states;    /* by group id */
} ivm__accumulators;

/* By row of a chunk: its group, and where that group's state lies. */
typedef struct ivm__targets {
    const uint32_t *groups;
    uint8_t *const *states;
} ivm__targets;

/* Copies the specs, takes nothing yet: expressions are the caller's until this succeeds. */
ivm_status ivm__accumulators_init(ivm__accumulators *accumulators, ivm__memory *memory, ivm__texts *texts, const ivm__aggregate_spec *specs,
                                  uint32_t count) IVM_MUST_CHECK;
/* The input may have negative weights. States that there were are gone. */
void ivm__accumulators_negative(ivm__accumulators *accumulators);
void ivm__accumulators_deinit(ivm__accumulators *accumulators, uint32_t groups_end, ivm__texts *texts);

static inline uint8_t *ivm__group_state(const ivm__accumulators *accumulators, uint32_t group)
{
    return ivm__items_at(&accumulators->states, group);
}
static inline ivm__group_tail *ivm__group_tail_of(const ivm__accumulators *accumulators, uint8_t *state)
{
    return (ivm__group_tail *)(void *)(state + accumulators->tail_offset);
}
/* Room for group ids below `groups`; states may move by that. A new group's state is cleared by ivm__group_clear(). */
ivm_status ivm__accumulators_reserve(ivm__accumulators *accumulators, uint64_t groups) IVM_MUST_CHECK;
void ivm__group_clear(ivm__accumulators *accumulators, uint32_t group);
/* Frees what a state holds outside itself, and clears it. */
void ivm__group_free(ivm__accumulators *accumulators, uint32_t group);

/* Gives back what the step that ended left over of what a state holds outside itself. No image is gone back to any more. */
void ivm__group_trim(ivm__accumulators *accumulators, uint32_t group);

/* A state as it is now, in the arena, and back. NULL: out of memory. Going back cannot fail. */
void *ivm__group_save(const ivm__accumulators *accumulators, uint32_t group, ivm__arena *arena);
void ivm__group_restore(ivm__accumulators *accumulators, uint32_t group, const void *saved);

/* Adds the chunk's rows that came through `port`, each to its group: arguments and conditions computed, failed rows marked. Support has
 * every row that there is once, and all arguments are computed for it. */
ivm_status ivm__accumulate(ivm__accumulators *accumulators, ivm__step *step, uint32_t port, const ivm__chunk *chunk,
                           const ivm__targets *targets, uint8_t *failed) IVM_MUST_CHECK;
/* The aggregate's values of these groups, into a vector with room and nulls. overflow where one is out of its type's range. */
ivm_status ivm__accumulator_values(const ivm__accumulators *accumulators, uint32_t which, const uint32_t *groups, uint32_t count,
                                   ivm__vector *out) IVM_MUST_CHECK;
/* ---- As bytes (accumulator_save.c) -------------------------------------------------------------------------------------------------------- */

typedef struct ivm__group_reading {
    const ivm__operator *self; /* for messages */
    ivm__step *step;
    ivm__feed *from;
    ivm__bytes text; /* of a string on its way into a text; deinit it */
} ivm__group_reading;

/* A group's state, the same bytes however it came to be. Not in a step. */
ivm_status ivm__group_write(const ivm__accumulators *accumulators, uint32_t group, ivm__sink *sink) IVM_MUST_CHECK;
/* Into a state that is clear; what it adds to ordered Z-sets is to be committed. Corrupt where no state is written so. */
ivm_status ivm__group_read(ivm__accumulators *accumulators, uint32_t group, ivm__group_reading *reading) IVM_MUST_CHECK;

uint64_t ivm__accumulators_bytes(const ivm__accumulators *accumulators);

#endif
