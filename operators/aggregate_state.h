/* The aggregate operator inside: what aggregate.c runs, aggregate_publish.c ends a step with and aggregate_create.c makes. */
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
    bool texts_change; /* an aggregate is a text, which a group's row would have to give up and take */
    ivm__touched_group *touched;
    uint32_t touched_count, touched_capacity;
    ivm__failures failures;
    ivm_type *types;
    uint32_t columns_count;
} ivm__aggregate;

/* Touched groups' rows in the result are made to say what their states do. */
ivm_status ivm__aggregate_publish(ivm__aggregate *aggregate, ivm__step *step) IVM_MUST_CHECK;
void ivm__aggregate_free(ivm__operator *base, ivm__memory *memory);
extern const ivm__operator_class ivm__aggregate_class;

#endif
