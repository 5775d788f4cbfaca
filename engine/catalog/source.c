/* Sources: one way to a table's and a view's rows and delta. See source.h. */
#include "source.h"

uint32_t ivm__source_columns_count(ivm__source source)
{
    return source.heading ? source.heading->columns_count : source.table ? source.table->columns_count : source.view->columns_count;
}

ivm__chunk *ivm__source_chunk(ivm__source source, ivm__arena *arena, ivm__chunk *chunk)
{
    if (ivm__likely(ivm__source_is_present(source))) {
        return chunk;
    }
    const ivm__heading *heading = source.heading;
    ivm__chunk *made = ivm__chunk_make(arena, heading->types, heading->columns_count);
    if (!made) {
        return NULL;
    }
    made->rows_count = chunk->rows_count;
    made->weights = chunk->weights;
    for (uint32_t c = 0; c < heading->columns_count; c++) {
        if (heading->columns[c] != UINT32_MAX) {
            made->columns[c] = chunk->columns[heading->columns[c]];
        }
    }
    return made;
}

/* Whether the delta is what staging made; else it is read from the store, from what the step changed in it. */
static bool is_staged(const ivm__step *step, ivm__source source)
{
    return source.table && !step->refreshing;
}

static ivm_status staged_next(const ivm__table_delta *delta, ivm__delta_walk *walk, ivm__chunk **chunk)
{
    *chunk = walk->next < delta->chunks_count ? delta->chunks[walk->next++] : NULL;
    return IVM_OK;
}

ivm_status ivm__source_delta_next(ivm__step *step, ivm__source source, ivm__delta_walk *walk, ivm__chunk **chunk)
{
    ivm_status status;
    IVM_TRY(ivm__step_poll(step));
    if (step->initial) {
        status = ivm__store_chunk(ivm__source_store(source), step->scratch, ivm__step_reading(step), &walk->next, chunk);
    } else if (is_staged(step, source)) {
        status = staged_next(&source.table->delta, walk, chunk);
    } else {
        status = ivm__store_change_chunk(ivm__source_store(source), step->scratch, &walk->next, chunk);
    }
    if (status == IVM_OK && *chunk) {
        *chunk = ivm__source_chunk(source, step->scratch, *chunk);
        status = *chunk ? IVM_OK : IVM_OUT_OF_MEMORY;
    }
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

ivm_status ivm__source_aside_next(ivm__step *step, ivm__source source, const ivm__aside *aside, bool wanted, ivm__delta_walk *walk,
                                  ivm__chunk **chunk)
{
    assert(source.table && !step->initial);
    IVM_TRY(ivm__step_poll(step));
    ivm_status status = ivm__store_change_chunk_aside(&source.table->store, step->scratch, aside, wanted, &walk->next, chunk);
    if (status == IVM_OK && *chunk) {
        *chunk = ivm__source_chunk(source, step->scratch, *chunk);
        status = *chunk ? IVM_OK : IVM_OUT_OF_MEMORY;
    }
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

/* Rows of the store that the step changed, and whether one lost weight. */
static uint64_t count_changes(const ivm__store *store, bool *negative)
{
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, found;
    uint64_t count = 0;
    *negative = false;
    while ((found = ivm__store_changes(store, &next, 64, rows, weights)) > 0) {
        count += found;
        for (uint32_t i = 0; i < found; i++) {
            *negative |= weights[i] < 0;
        }
    }
    return count;
}

/* Rows that were there before what is laid over the store. */
static uint64_t count_before(const ivm__store *store)
{
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, found;
    uint64_t count = 0;
    while ((found = ivm__store_scan(store, IVM__READ_OLD, &next, 64, rows, weights)) > 0) {
        count += found;
    }
    return count;
}

uint64_t ivm__source_delta_rows(const ivm__step *step, ivm__source source)
{
    bool negative;
    if (step->initial) {
        const ivm__store *store = ivm__source_store(source);
        return step->past ? count_before(store) : store->rows_live;
    }
    return is_staged(step, source) ? source.table->delta.rows_count : count_changes(ivm__source_store(source), &negative);
}

ivm_shape ivm__source_delta_shape(const ivm__step *step, ivm__source source)
{
    bool negative = false;
    if (step->initial) {
        bool signs = source.table && source.table->allow_negative;
        return step->past ? IVM_MIXED : !ivm__source_store(source)->rows_live ? IVM_UNCHANGED : signs ? IVM_MIXED : IVM_INSERT_ONLY;
    }
    if (is_staged(step, source)) {
        return source.table->delta.shape;
    }
    uint64_t count = count_changes(ivm__source_store(source), &negative);
    return count == 0 ? IVM_UNCHANGED : negative ? IVM_MIXED : IVM_INSERT_ONLY;
}
