/* Judge: whether a row at one place of a plan weighs more than int64, told exactly.
 *
 *     rows += delta                      each row's net weight
 *
 * Chunks are passed on as they come. It has no state to save: it is made anew where weigh (weigh.c) asks. Cost: a lookup a row. */
#include "keeper.h"
#include "weights.h"

/* Cells of columns that are not carried, since they were dropped from their table. */
static const ivm__wide zeros[IVM__CHUNK_ROWS];

/* The chunk with a cell in every column. NULL: out of memory. */
static const ivm__chunk *chunk_complete(ivm__arena *scratch, const ivm__chunk *chunk, const ivm_type *types)
{
    ivm__chunk *whole = ivm__chunk_make(scratch, types, chunk->columns_count);
    if (!whole) {
        return NULL;
    }
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        whole->columns[c] = chunk->columns[c];
        if (!chunk->columns[c].cells) {
            whole->columns[c] = (ivm__vector){ .type = types[c], .cells = (void *)zeros };
        }
    }
    whole->rows_count = chunk->rows_count;
    whole->weights = chunk->weights;
    return whole;
}

static ivm_status judge_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count && !step->loading);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    const ivm__chunk *whole = chunk_complete(step->scratch, chunk, self->types);
    ivm_status status = whole ? ivm__zset_add(&((ivm__keeper *)self)->rows, step->scratch, whole, NULL, 1) : IVM_OUT_OF_MEMORY;
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? ivm__emit(self, step, chunk) : ivm__fail_memory(step->error);
}

static ivm_status judge_finish(ivm__operator *self, ivm__step *step)
{
    if (!ivm__touched_weights_fit(&((ivm__keeper *)self)->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range within the plan", self->view);
    }
    return IVM_OK;
}

static const ivm__operator_class judge_class = { .name = "judge",
                                                 .consume = judge_consume,
                                                 .finish = judge_finish,
                                                 .commit = ivm__keeper_commit,
                                                 .undo = ivm__keeper_undo,
                                                 .free = ivm__keeper_free };

ivm_status ivm__judge_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types, uint32_t columns_count,
                             ivm__operator **made)
{
    ivm__keeper *it;
    IVM_TRY(ivm__keeper_create(&judge_class, sizeof *it, memory, texts, seed, types, columns_count, &it));
    *made = &it->head;
    return IVM_OK;
}
