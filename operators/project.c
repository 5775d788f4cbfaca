/* Project: columns computed from columns.
 *
 *     delta(project R) = project(delta R)
 *
 * Plain columns are passed on without copying; weights always. A row of which a column fails goes to the Z-set of failures with its weight.
 * Cost: each expression once a row. */
#include "operators.h"

typedef struct project {
    ivm__operator head;
    ivm__expression **columns;
    bool fallible;
    ivm__failures failures;
    ivm__texts *texts;
} project;

static ivm_status project_chunk(project *it, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk *out = ivm__chunk_make(step->scratch, it->head.types, it->head.columns_count);
    uint8_t *failed = ivm__arena_allocate(step->scratch, chunk->rows_count);
    if (!out || !failed) {
        return ivm__fail_memory(step->error);
    }
    memset(failed, 0, chunk->rows_count);
    for (uint32_t c = 0; c < it->head.columns_count; c++) {
        const ivm__expression *column = it->columns[c];
        if (column->function == IVM__COLUMN && !chunk->columns[column->column].cells) {
            continue; /* nobody above reads it, so nobody below carries it */
        }
        IVM_TRY(ivm__expression_compute(column, step, chunk, &out->columns[c], failed));
    }
    if (it->fallible && !step->loading && memchr(failed, 1, chunk->rows_count)) {
        IVM_TRY(ivm__failures_add(&it->failures, step, chunk, failed));
    }
    out->rows_count = chunk->rows_count;
    out->weights = chunk->weights;
    return ivm__emit(&it->head, step, out);
}

static ivm_status project_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = project_chunk((project *)self, step, chunk);
    ivm__arena_back(step->scratch, mark);
    return status;
}

static ivm_status project_finish(ivm__operator *self, ivm__step *step)
{
    return ivm__failures_check(&((project *)self)->failures, step, self->view, "a projected column");
}

static void project_undo(ivm__operator *self)
{
    ivm__failures_deinit(&((project *)self)->failures);
}

static void columns_free(ivm__memory *memory, ivm__texts *texts, ivm__expression **columns, uint32_t columns_count)
{
    for (uint32_t c = 0; c < columns_count; c++) {
        ivm__expression_free(columns[c], memory, texts);
    }
}

static void project_free(ivm__operator *self, ivm__memory *memory)
{
    project *it = (project *)self;
    uint32_t columns_count = self->columns_count;
    ivm__failures_deinit(&it->failures);
    columns_free(memory, it->texts, it->columns, columns_count);
    ivm__release(memory, it->columns, columns_count * sizeof(ivm__expression *));
    ivm__release(memory, (void *)self->types, columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class project_class = {
    .name = "project", .consume = project_consume, .finish = project_finish, .undo = project_undo, .free = project_free
};

ivm_status ivm__project_create(ivm__memory *memory, ivm__texts *texts, ivm__expression **columns, uint32_t columns_count,
                               ivm__operator **made)
{
    project *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *types = ivm__allocate(memory, columns_count * sizeof *types);
    ivm__expression **copy = ivm__allocate(memory, columns_count * sizeof(ivm__expression *));
    if (!it || !types || !copy) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, types, columns_count * sizeof *types);
        ivm__release(memory, copy, columns_count * sizeof(ivm__expression *));
        columns_free(memory, texts, columns, columns_count);
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        copy[c] = columns[c];
        types[c] = columns[c]->type;
        it->fallible |= ivm__expression_is_fallible(columns[c]);
    }
    it->head = (ivm__operator){ .class = &project_class, .columns_count = columns_count, .types = types };
    it->columns = copy;
    it->texts = texts;
    *made = &it->head;
    return IVM_OK;
}
