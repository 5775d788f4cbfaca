/* Project: columns computed from columns.
 *
 *     delta(project R) = project(delta R)
 *
 * Plain columns are passed on without copying; weights always. A row of which a column fails goes to that column's Z-set of failures with its weight.
 * Cost: each expression once a row. */
#include "operators.h"

#include <stdio.h>

/* A column that may fail. */
typedef struct fallible {
    uint32_t column;
    ivm__failures failures;
} fallible;

typedef struct project {
    ivm__operator head;
    ivm__expression **columns;
    fallible *fallible; /* in the order of the columns */
    uint32_t fallible_count;
    ivm__texts *texts;
    const char *(*name)(const void *of, uint32_t column); /* for messages; NULL: columns have none */
    const void *named;
} project;

void ivm__project_name(ivm__operator *self, const char *(*name)(const void *of, uint32_t column), const void *of)
{
    ((project *)self)->name = name;
    ((project *)self)->named = of;
}

static ivm_status project_chunk(project *it, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk *out = ivm__chunk_make(step->scratch, it->head.types, it->head.columns_count);
    uint8_t *failed = ivm__arena_allocate(step->scratch, chunk->rows_count);
    if (!out || !failed) {
        return ivm__fail_memory(step->error);
    }
    fallible *next = it->fallible, *end = next + it->fallible_count;
    for (uint32_t c = 0; c < it->head.columns_count; c++) {
        const ivm__expression *column = it->columns[c];
        if (column->function == IVM__COLUMN && !chunk->columns[column->column].cells) {
            continue; /* nobody above reads it, so nobody below carries it */
        }
        bool may_fail = next < end && next->column == c;
        if (may_fail) {
            memset(failed, 0, chunk->rows_count);
        }
        IVM_TRY(ivm__expression_compute(column, step, chunk, &out->columns[c], failed));
        if (may_fail && !step->loading && memchr(failed, 1, chunk->rows_count)) {
            IVM_TRY(ivm__failures_add(&next->failures, step, chunk, failed));
        }
        next += may_fail;
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
    project *it = (project *)self;
    for (uint32_t i = 0; i < it->fallible_count; i++) {
        fallible *column = &it->fallible[i];
        char what[IVM_NAME_SIZE_MAX + 32] = "a projected column";
        if (it->name && column->failures.rows.store.layout) {
            (void)snprintf(what, sizeof what, "projected column %s", it->name(it->named, column->column));
        }
        IVM_TRY(ivm__failures_check(&column->failures, step, self->view, what));
    }
    return IVM_OK;
}

static void project_undo(ivm__operator *self)
{
    project *it = (project *)self;
    for (uint32_t i = 0; i < it->fallible_count; i++) {
        ivm__failures_deinit(&it->fallible[i].failures);
    }
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
    project_undo(self);
    ivm__release(memory, it->fallible, it->fallible_count * sizeof *it->fallible);
    columns_free(memory, it->texts, it->columns, columns_count);
    ivm__release(memory, it->columns, columns_count * sizeof(ivm__expression *));
    ivm__release(memory, (void *)self->types, columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static const ivm__operator_class project_class = {
    .name = "project", .consume = project_consume, .finish = project_finish, .undo = project_undo, .free = project_free
};

static uint32_t fallible_count(ivm__expression *const *columns, uint32_t columns_count)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < columns_count; c++) {
        count += ivm__expression_is_fallible(columns[c]);
    }
    return count;
}

ivm_status ivm__project_create(ivm__memory *memory, ivm__texts *texts, ivm__expression **columns, uint32_t columns_count,
                               ivm__operator **made)
{
    project *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *types = ivm__allocate(memory, columns_count * sizeof *types);
    ivm__expression **copy = ivm__allocate(memory, columns_count * sizeof(ivm__expression *));
    uint32_t count = fallible_count(columns, columns_count), nth = 0;
    fallible *may_fail = ivm__allocate_zeroed(memory, count * sizeof *may_fail);
    if (!it || !types || !copy || !may_fail) {
        ivm__release(memory, may_fail, count * sizeof *may_fail);
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, types, columns_count * sizeof *types);
        ivm__release(memory, copy, columns_count * sizeof(ivm__expression *));
        columns_free(memory, texts, columns, columns_count);
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        copy[c] = columns[c];
        types[c] = columns[c]->type;
        if (ivm__expression_is_fallible(columns[c])) {
            may_fail[nth++].column = c;
        }
    }
    it->head = (ivm__operator){ .class = &project_class, .columns_count = columns_count, .types = types };
    it->columns = copy;
    it->fallible = may_fail;
    it->fallible_count = count;
    it->texts = texts;
    *made = &it->head;
    return IVM_OK;
}
