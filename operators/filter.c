/* Filter: the rows for which a condition is true.
 *
 *     delta(filter R) = filter(delta R)
 *
 * A chunk whose rows all pass goes on as it is. A row whose condition fails goes to the Z-set of failures with its weight. Cost: the
 * condition once a row, and gathering what passes. */
#include "operators.h"

typedef struct filter {
    ivm__operator head;
    ivm__expression *condition;
    bool fallible;
    ivm__failures failures;
    ivm__texts *texts;
} filter;

static ivm_status filter_chunk(filter *it, ivm__step *step, const ivm__chunk *chunk)
{
    uint32_t *rows = ivm__arena_allocate(step->scratch, chunk->rows_count * sizeof *rows), count = 0;
    uint8_t *failed = ivm__arena_allocate(step->scratch, chunk->rows_count);
    if (!rows || !failed) {
        return ivm__fail_memory(step->error);
    }
    memset(failed, 0, chunk->rows_count);
    IVM_TRY(ivm__expression_select(it->condition, step, chunk, rows, &count, failed));
    if (it->fallible && !step->loading && memchr(failed, 1, chunk->rows_count)) {
        IVM_TRY(ivm__failures_add(&it->failures, step, chunk, failed));
    }
    assert(count <= chunk->rows_count);
    if (count == 0 || count == chunk->rows_count) {
        return count ? ivm__emit(&it->head, step, chunk) : IVM_OK;
    }
    const ivm__chunk *passed = ivm__chunk_gather(step->scratch, chunk, rows, count);
    return passed ? ivm__emit(&it->head, step, passed) : ivm__fail_memory(step->error);
}

static ivm_status filter_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = filter_chunk((filter *)self, step, chunk);
    ivm__arena_back(step->scratch, mark);
    return status;
}

static ivm_status filter_finish(ivm__operator *self, ivm__step *step)
{
    return ivm__failures_check(&((filter *)self)->failures, step, self->view, "a filter's condition");
}

static void filter_undo(ivm__operator *self)
{
    ivm__failures_deinit(&((filter *)self)->failures);
}

static void filter_free(ivm__operator *self, ivm__memory *memory)
{
    filter *it = (filter *)self;
    ivm__failures_deinit(&it->failures);
    ivm__expression_free(it->condition, memory, it->texts);
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class filter_class = {
    .name = "filter", .consume = filter_consume, .finish = filter_finish, .undo = filter_undo, .free = filter_free
};

ivm_status ivm__filter_create(ivm__memory *memory, ivm__texts *texts, const ivm_type *types, uint32_t columns_count,
                              ivm__expression *condition, ivm__operator **made)
{
    filter *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    if (!it || !copy) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, copy, columns_count * sizeof *copy);
        ivm__expression_free(condition, memory, texts);
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(copy, types, columns_count * sizeof *copy);
    it->head = (ivm__operator){ .class = &filter_class, .columns_count = columns_count, .types = copy };
    it->condition = condition;
    it->fallible = ivm__expression_is_fallible(condition);
    it->texts = texts;
    *made = &it->head;
    return IVM_OK;
}
