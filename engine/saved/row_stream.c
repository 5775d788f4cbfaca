/* Rows in and out, a chunk at a time. Cost of saving a million rows of four columns: 10 ns a row beyond their order, 20 to 30 where they lie at
 * random. */
#include "row_stream.h"

/* The columns and weights of these rows, as a chunk in the arena. NULL: out of memory. */
static ivm__chunk *chunk_gather(ivm__arena *arena, const ivm__row_pages *rows, const ivm__row_shape *shape, const ivm__row_id *ids,
                                const int64_t *weights, uint32_t count)
{
    const uint8_t *at[IVM__CHUNK_ROWS];
    ivm__chunk *chunk = ivm__chunk_make(arena, shape->types, shape->columns_count);
    ivm__weight *wide = ivm__arena_allocate(arena, count * sizeof *wide);
    if (!chunk || !wide) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        at[i] = ivm__row_pages_at(rows, ids[i]);
        wide[i] = weights[i];
    }
    for (uint32_t c = 0; c < shape->columns_count; c++) {
        if (!ivm__vector_make(arena, &chunk->columns[c], shape->types[c], count, rows->layout->nullable[c])) {
            return NULL;
        }
        ivm__layout_gather(rows->layout, c, at, count, &chunk->columns[c]);
    }
    chunk->rows_count = count;
    chunk->weights = wide;
    return chunk;
}

static ivm_status chunk_save(ivm__sink *sink, const ivm__row_shape *shape, const ivm__chunk *chunk, const ivm__row_id *ids,
                             const ivm__row_payload *payload)
{
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__rows_write(sink, shape, chunk));
    for (uint32_t i = 0; payload->save && i < chunk->rows_count; i++) {
        IVM_TRY(payload->save(payload->context, payload->store, ids[i], sink));
    }
    return IVM_OK;
}

ivm_status ivm__rows_save_chunk(ivm__sink *sink, ivm__arena *arena, const ivm__row_pages *rows, const ivm__row_shape *shape,
                                const ivm__row_chunk *chosen, const ivm__row_payload *payload)
{
    ivm__arena_mark mark = ivm__arena_here(arena);
    ivm__chunk *chunk = chunk_gather(arena, rows, shape, chosen->ids, chosen->weights, chosen->count);
    ivm_status status = chunk_save(sink, shape, chunk, chosen->ids, payload);
    ivm__arena_back(arena, mark);
    return status;
}

ivm_status ivm__rows_save(ivm__sink *sink, ivm__arena *arena, const ivm__row_pages *rows, const ivm__row_shape *shape, size_t sort_bytes,
                          ivm__row_payload payload)
{
    assert(shape->columns_count <= rows->layout->columns_count);
    ivm__row_order order;
    ivm__row_chunk now = { .count = 1 };
    ivm_status status = ivm__row_order_init(&order, arena->memory, rows, shape->order, ivm__row_shape_order_count(shape), sort_bytes);
    order.sorter.cancel = sink->cancel;
    while (status == IVM_OK && (status = ivm__row_order_next(&order, IVM__CHUNK_ROWS, now.ids, now.weights, &now.count)) == IVM_OK &&
           now.count) {
        status = ivm__rows_save_chunk(sink, arena, rows, shape, &now, &payload);
    }
    ivm__row_order_deinit(&order);
    return status == IVM_OK ? ivm__rows_write_end(sink) : status;
}

ivm_status ivm__rows_save_tell(ivm_error *error, ivm_status status)
{
    switch (status) {
    case IVM_OUT_OF_MEMORY:
        return ivm__fail_memory(error);
    case IVM_CANCELLED:
        return ivm__fail_cancelled(error);
    case IVM_OVERFLOW:
        return ivm__fail(error, status, "equal rows weigh more than an int64 together");
    case IVM_CORRUPT:
        return ivm__fail(error, status, "a count is below 0: what the engine was restored from was made by an enemy");
    default:
        return status;
    }
}

ivm_status ivm__rows_load(ivm__feed *feed, ivm__arena *arena, ivm__texts *texts, const ivm__row_shape *shape, ivm__rows_take *take,
                          void *context)
{
    ivm__row_reader reader;
    ivm__chunk *chunk = NULL;
    ivm_status status = ivm__row_reader_init(&reader, arena->memory, texts, shape, feed);
    while (status == IVM_OK) {
        ivm__arena_mark mark = ivm__arena_here(arena);
        status = ivm__row_reader_next(&reader, arena, &chunk);
        bool more = status == IVM_OK && chunk;
        if (more) {
            status = take(context, chunk, feed);
        }
        ivm__arena_back(arena, mark);
        if (!more) {
            break;
        }
    }
    ivm__row_reader_deinit(&reader);
    return status;
}
