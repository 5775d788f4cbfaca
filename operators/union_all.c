/* Union all: the rows of all inputs as one.
 *
 *     delta(A + B) = delta A + delta B
 *
 * Chunks are passed on as they come, whatever their port, to rows from before the step that fill a join's leaf as well. Cost: a call a chunk. */
#include "operators.h"

static ivm_status union_all_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(chunk->columns_count == self->columns_count);
    (void)port;
    return ivm__emit(self, step, chunk);
}

static void union_all_free(ivm__operator *self, ivm__memory *memory)
{
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, self, sizeof *self);
}

static const ivm__operator_class union_all_class = { .name = "union_all", .consume = union_all_consume, .free = union_all_free };

ivm_status ivm__union_all_create(ivm__memory *memory, const ivm_type *types, uint32_t columns_count, ivm__operator **made)
{
    ivm__operator *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    if (!it || !copy) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, copy, columns_count * sizeof *copy);
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(copy, types, columns_count * sizeof *copy);
    *it = (ivm__operator){ .class = &union_all_class, .columns_count = columns_count, .types = copy };
    *made = it;
    return IVM_OK;
}
