/* Keepers: see keeper.h. Rows of terms that cancel meet in the Z-set, so weights are judged when all have come. */
#include "keeper.h"

#include "holding.h"
#include "weights.h"

ivm_status ivm__keeper_create(const ivm__operator_class *class, size_t size, ivm__memory *memory, ivm__texts *texts, uint64_t seed,
                              const ivm_type *types, uint32_t columns_count, ivm__keeper **made)
{
    assert(size >= sizeof(ivm__keeper));
    ivm__keeper *it = ivm__allocate_zeroed(memory, size);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    ivm_status status = it && copy ? IVM_OK : IVM_OUT_OF_MEMORY;
    if (status == IVM_OK) {
        memcpy(copy, types, columns_count * sizeof *copy);
        it->head = (ivm__operator){ .class = class, .columns_count = columns_count, .types = copy };
        it->size = size;
        status = ivm__zset_init_typed(&it->rows, memory, texts, seed, copy, columns_count, true);
    }
    if (status != IVM_OK) {
        ivm__release(memory, copy, columns_count * sizeof *copy);
        ivm__release(memory, it, size);
        return status;
    }
    *made = it;
    return IVM_OK;
}

void ivm__keeper_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__keeper *it = (ivm__keeper *)self;
    ivm__zset_deinit(&it->rows);
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, it, it->size);
}

ivm_status ivm__keeper_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count && !step->loading);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = ivm__zset_add(&((ivm__keeper *)self)->rows, step->scratch, chunk, NULL, 1);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

ivm_status ivm__keeper_finish(ivm__operator *self, ivm__step *step)
{
    if (!ivm__touched_weights_fit(&((ivm__keeper *)self)->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", self->view);
    }
    return IVM_OK;
}

void ivm__keeper_commit(ivm__operator *self)
{
    ivm__store_commit(&((ivm__keeper *)self)->rows.store);
}

void ivm__keeper_undo(ivm__operator *self)
{
    ivm__store_undo(&((ivm__keeper *)self)->rows.store);
}

/* ---- Saved and loaded ---------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__keeper_save(const ivm__operator *self, ivm__saver *saver)
{
    return saver->rows(saver, &((const ivm__keeper *)self)->rows.store, self->columns_count, NULL, NULL);
}

ivm_status ivm__keeper_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    assert(holding == 0 && chunk);
    (void)holding;
    (void)from;
    return ivm__holding_rows_alone(self, &((ivm__keeper *)self)->rows, step, chunk);
}

ivm_status ivm__keeper_settle(ivm__operator *self, ivm__step *step)
{
    (void)step;
    ivm__keeper_commit(self); /* of nothing: the rows that were loaded are no changes */
    return IVM_OK;
}
