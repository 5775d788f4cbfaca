/* Deltas of operators that keep whole rows: ids and weights pile up and become a chunk when there are enough, or come from the store's own list of
 * changes. Cost: a load and a store a cell, rows prefetched. */
#include "delta.h"

#include "pairs.h"
#include "zset.h"

static ivm_status chunk_emit(ivm__delta *delta, ivm__step *step)
{
    const ivm__operator *from = delta->from;
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, from->types, from->columns_count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = delta->count;
    chunk->weights = delta->weights;
    for (uint32_t c = 0; c < from->columns_count; c++) {
        if (!ivm__pairs_column(step->scratch, delta->store, c, delta->rows, delta->count, &chunk->columns[c])) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    return ivm__emit(delta->from, step, chunk);
}

ivm_status ivm__delta_finish(ivm__delta *delta, ivm__step *step)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = delta->count ? chunk_emit(delta, step) : IVM_OK;
    ivm__arena_back(step->scratch, mark);
    delta->count = 0;
    return status;
}

ivm_status ivm__delta_add(ivm__delta *delta, ivm__step *step, ivm__row_id row, ivm__weight weight)
{
    assert(delta->count < IVM__CHUNK_ROWS);
    delta->rows[delta->count] = row;
    delta->weights[delta->count] = weight;
    delta->count += weight != 0;
    return delta->count == IVM__CHUNK_ROWS ? ivm__delta_finish(delta, step) : IVM_OK;
}

static ivm_status changes_send(ivm__operator *from, ivm__step *step, const ivm__store *store, uint32_t first, const ivm__chunk *chunk,
                               ivm__delta_send send)
{
    ivm__row_id ids[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t count = ivm__store_changes(store, &first, IVM__CHUNK_ROWS, ids, weights);
    assert(count == chunk->rows_count);
    (void)count;
    return send(from, step, chunk, ids);
}

ivm_status ivm__delta_changes(ivm__operator *from, ivm__step *step, const ivm__store *store, ivm__delta_send send)
{
    for (uint32_t next = 0;;) {
        uint32_t first = next;
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_change_chunk(store, step->scratch, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(send ? changes_send(from, step, store, first, chunk, send) : ivm__emit(from, step, chunk));
        ivm__arena_back(step->scratch, mark);
    }
}
