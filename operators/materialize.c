/* Materialize: a view's rows as a Z-set over all columns, the root where the operator below keeps no rows of its own.
 *
 *     rows += delta
 *
 * Rows of the terms that cancel meet here. Weights are judged when all have come: a row's net weight past int64 is an overflow. A weight
 * below zero is no error of the engine's: an input's may be, and a promise about a foreign key that was not kept can leave one. Cost: one
 * lookup a row. */
#include "operators.h"
#include "weights.h"

typedef struct materialize {
    ivm__operator head;
    ivm__zset rows;
} materialize;

static ivm_status materialize_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count && !step->loading);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = ivm__zset_add(&((materialize *)self)->rows, step->scratch, chunk, NULL, 1);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

static ivm_status materialize_finish(ivm__operator *self, ivm__step *step)
{
    if (!ivm__touched_weights_fit(&((materialize *)self)->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", self->view);
    }
    return IVM_OK;
}

static void materialize_commit(ivm__operator *self)
{
    ivm__store_commit(&((materialize *)self)->rows.store);
}

static void materialize_undo(ivm__operator *self)
{
    ivm__store_undo(&((materialize *)self)->rows.store);
}

static void materialize_free(ivm__operator *self, ivm__memory *memory)
{
    materialize *it = (materialize *)self;
    ivm__zset_deinit(&it->rows);
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class materialize_class = { .name = "materialize",
                                                       .consume = materialize_consume,
                                                       .finish = materialize_finish,
                                                       .commit = materialize_commit,
                                                       .undo = materialize_undo,
                                                       .free = materialize_free };

ivm_status ivm__materialize_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                                   ivm__operator **made)
{
    ivm__layout *layout = NULL;
    materialize *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    ivm_status status = IVM_OUT_OF_MEMORY;
    if (!it || !copy) {
        goto cleanup;
    }
    memcpy(copy, types, columns_count * sizeof *copy);
    it->head = (ivm__operator){ .class = &materialize_class, .columns_count = columns_count, .types = copy };
    status = ivm__layout_create(memory, types, NULL, columns_count, true, &layout);
    if (status == IVM_OK) {
        status = ivm__zset_init(&it->rows, memory, texts, seed, layout);
    }
    if (status == IVM_OK) {
        *made = &it->head;
    }
cleanup:
    ivm__layout_release(layout);
    if (status != IVM_OK) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, copy, columns_count * sizeof *copy);
    }
    return status;
}

ivm__store *ivm__materialize_result(ivm__operator *self)
{
    assert(self->class == &materialize_class);
    return &((materialize *)self)->rows.store;
}
