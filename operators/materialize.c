/* Materialize: a view's rows as a Z-set over all columns, the root where the operator below keeps no rows of its own.
 *
 *     rows += delta
 *
 * Rows of the terms that cancel meet here. Weights are judged when all have come: a row's net weight past int64 is an overflow. A weight
 * below zero is no error of the engine's: an input's may be, and a promise about a foreign key that was not kept can leave one. Cost: one
 * lookup a row. */
#include "keeper.h"

static const ivm__operator_class materialize_class = { .name = "materialize",
                                                       .consume = ivm__keeper_consume,
                                                       .finish = ivm__keeper_finish,
                                                       .commit = ivm__keeper_commit,
                                                       .undo = ivm__keeper_undo,
                                                       .free = ivm__keeper_free,
                                                       .save = ivm__keeper_save,
                                                       .load = ivm__keeper_load,
                                                       .settle = ivm__keeper_settle };

ivm_status ivm__materialize_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                                   ivm__operator **made)
{
    ivm__keeper *it;
    IVM_TRY(ivm__keeper_create(&materialize_class, sizeof *it, memory, texts, seed, types, columns_count, &it));
    *made = &it->head;
    return IVM_OK;
}

ivm__store *ivm__materialize_result(ivm__operator *self)
{
    assert(self->class == &materialize_class);
    return &((ivm__keeper *)self)->rows.store;
}
