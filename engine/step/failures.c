/* Failures: the rows for which an expression could not be computed in one step, as a Z-set over the columns that the expressions read.
 *
 *     sum over all terms of weight(row) = 0   for every row that stands neither before nor after the step
 *
 * so that what is left at the end failed for a row that is really there. The set is made at the first failure and dropped with the step:
 * a step in which nothing fails pays nothing. */
#include "program.h"

/* The positions of the chunk's carried columns and their types; false: out of memory. */
static bool carried_list(ivm__arena *arena, const ivm__chunk *chunk, uint32_t **columns, ivm_type **types, uint32_t *count)
{
    *columns = ivm__arena_allocate(arena, chunk->columns_count * sizeof **columns);
    *types = ivm__arena_allocate(arena, chunk->columns_count * sizeof **types);
    *count = 0;
    if (!*columns || !*types) {
        return false;
    }
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        if (chunk->columns[c].cells) {
            (*columns)[*count] = c;
            (*types)[(*count)++] = chunk->columns[c].type;
        }
    }
    return true;
}

static ivm_status failing_add(ivm__failures *failures, ivm__step *step, const ivm__chunk *chunk, const uint8_t *failed)
{
    uint32_t rows[IVM__CHUNK_ROWS], rows_count = 0;
    assert(chunk->rows_count <= IVM__CHUNK_ROWS);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        rows[rows_count] = i;
        rows_count += failed[i] != 0;
    }
    if (rows_count == 0) {
        return IVM_OK;
    }
    uint32_t *columns, columns_count;
    ivm_type *types;
    ivm__chunk *failing = ivm__chunk_gather(step->scratch, chunk, rows, rows_count);
    if (!failing || !carried_list(step->scratch, chunk, &columns, &types, &columns_count)) {
        return IVM_OUT_OF_MEMORY;
    }
    if (!failures->rows.store.layout) {
        IVM_TRY(ivm__zset_init_typed(&failures->rows, step->memory, step->texts, step->seed, types, columns_count, true));
    }
    assert(failures->rows.store.layout->columns_count == columns_count);
    return ivm__zset_add(&failures->rows, step->scratch, failing, columns, 1);
}

ivm_status ivm__failures_add(ivm__failures *failures, ivm__step *step, const ivm__chunk *chunk, const uint8_t *failed)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = failing_add(failures, step, chunk, failed);
    ivm__arena_back(step->scratch, mark);
    return status;
}

ivm_status ivm__failures_check(ivm__failures *failures, ivm__step *step, const char *view, const char *what)
{
    if (!failures->rows.store.layout) {
        return IVM_OK;
    }
    uint32_t next = 0;
    ivm__row_id row;
    ivm__weight weight;
    bool left = ivm__store_changes(&failures->rows.store, &next, 1, &row, &weight) > 0;
    ivm__failures_deinit(failures);
    return left ? ivm__fail(step->error, IVM_OVERFLOW, "view %s: a result in %s is out of range", view, what) : IVM_OK;
}

void ivm__failures_deinit(ivm__failures *failures)
{
    ivm__zset_deinit(&failures->rows);
    *failures = (ivm__failures){ 0 };
}
