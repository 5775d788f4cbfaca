/* Keepers: operators that keep the rows of their one input as a Z-set over all its columns. What they have in common; a keeper begins the struct
 * of each. */
#ifndef IVM__KEEPER_H
#define IVM__KEEPER_H

#include "operators.h"

typedef struct ivm__keeper {
    ivm__operator head; /* its types are the keeper's own */
    ivm__zset rows;
    size_t size; /* of the struct that it begins */
} ivm__keeper;

/* One of a class, in a struct of this size that is zero otherwise; its columns have these types. */
ivm_status ivm__keeper_create(const ivm__operator_class *class, size_t size, ivm__memory *memory, ivm__texts *texts, uint64_t seed,
                              const ivm_type *types, uint32_t columns_count, ivm__keeper **made) IVM_MUST_CHECK;
void ivm__keeper_free(ivm__operator *self, ivm__memory *memory);
/* As a class has them. Rows += what comes, through port 0. Cost: one lookup a row. */
ivm_status ivm__keeper_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* All has come: overflow where a row's net weight leaves int64. */
ivm_status ivm__keeper_finish(ivm__operator *self, ivm__step *step) IVM_MUST_CHECK;
void ivm__keeper_commit(ivm__operator *self);
void ivm__keeper_undo(ivm__operator *self);
/* One holding: the rows. */
ivm_status ivm__keeper_save(const ivm__operator *self, ivm__saver *saver) IVM_MUST_CHECK;
ivm_status ivm__keeper_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk,
                            ivm__feed *from) IVM_MUST_CHECK;
ivm_status ivm__keeper_settle(ivm__operator *self, ivm__step *step) IVM_MUST_CHECK;

#endif
