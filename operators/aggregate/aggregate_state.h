/* The aggregate operator inside: what aggregate.c runs, aggregate_publish.c ends a step with, aggregate_create.c makes and aggregate_save.c saves and
 * loads. */
#ifndef IVM__AGGREGATE_STATE_H
#define IVM__AGGREGATE_STATE_H

#include "accumulator.h"
#include "group_codes.h"

/* A group that this step touched, and how it was. */
typedef struct ivm__touched_group {
    uint32_t group;
    const void *saved; /* NULL: among the plain ones */
} ivm__touched_group;

typedef struct ivm__aggregate {
    ivm__operator base;
    ivm__memory *memory;
    ivm__texts *texts;
    ivm__expression **groups;
    uint32_t groups_count;
    ivm__accumulators accumulators;
    ivm__expression *having;
    ivm__store keys; /* one row a group, its id the group's; unused without group columns */
    ivm__index *by_key;
    ivm__group_codes codes; /* a shorter way to a group, where it is known */
    ivm__store result;      /* one row a group that passes `having` */
    uint8_t *plain;         /* where no state holds anything outside itself: the touched groups' states as they were, one after the other */
    uint32_t plain_capacity, plain_stride;
    bool is_plain;
    bool loaded;       /* groups came by load(), and no row of the result tells of them yet */
    bool texts_change; /* an aggregate is a text, which a group's row would have to give up and take */
    ivm__touched_group *touched;
    uint32_t touched_count, touched_capacity;
    ivm__failures failures;
    ivm_type *types;
    uint32_t columns_count;
} ivm__aggregate;

/* Group ids that there have been. */
static inline uint32_t ivm__aggregate_groups_end(const ivm__aggregate *aggregate)
{
    return aggregate->groups_count ? aggregate->keys.rows_end : 1;
}

/* The groups of a chunk of group columns' values; those that are missing are made. Fails for memory alone, without a message. */
ivm_status ivm__aggregate_groups(ivm__aggregate *aggregate, ivm__step *step, const ivm__chunk *keys_chunk, uint32_t *groups) IVM_MUST_CHECK;
/* Touched groups' rows in the result are made to say what their states do. */
ivm_status ivm__aggregate_publish(ivm__aggregate *aggregate, ivm__step *step) IVM_MUST_CHECK;
/* The same of these groups, at most a chunk of them, all of which are there. The array is written over. */
ivm_status ivm__aggregate_publish_there(ivm__aggregate *aggregate, ivm__step *step, uint32_t *groups, uint32_t count) IVM_MUST_CHECK;

/* The same of all groups there have been, which are all there: between steps of their own, or as part of the step under way. */
ivm_status ivm__aggregate_publish_loaded(ivm__aggregate *aggregate, ivm__step *step, bool commits) IVM_MUST_CHECK;

/* One holding: each group's key and state; without group columns the state alone. */
ivm_status ivm__aggregate_save(const ivm__operator *base, ivm__saver *saver) IVM_MUST_CHECK;
ivm_status ivm__aggregate_load(ivm__operator *base, ivm__step *step, uint32_t holding, const ivm__chunk *chunk,
                               ivm__feed *from) IVM_MUST_CHECK;
ivm_status ivm__aggregate_settle(ivm__operator *base, ivm__step *step) IVM_MUST_CHECK;

void ivm__aggregate_free(ivm__operator *base, ivm__memory *memory);
extern const ivm__operator_class ivm__aggregate_class;

#endif
