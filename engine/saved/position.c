/* Positions: where in its input a host is, kept with what came from there. Cost: a copy of at most 256 bytes a push. */
#include "batch.h"

ivm_status ivm_batch_position(ivm_batch *batch, const void *bytes, size_t size)
{
    if (!batch) {
        return IVM_INVALID_ARGUMENT;
    }
    if (batch->mistake.status != IVM_OK) {
        return batch->mistake.status;
    }
    if (size > IVM_POSITION_SIZE_MAX || (size && !bytes)) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "a position of %zu bytes%s, %u at most", size,
                         bytes ? "" : " that are NULL", IVM_POSITION_SIZE_MAX);
    }
    if (size) {
        memcpy(batch->position, bytes, size);
    }
    batch->position_size = (uint32_t)size;
    batch->positioned = true;
    return IVM_OK;
}

void ivm__position_commit(ivm_engine *engine, const ivm_batch *batch)
{
    if (batch->positioned) {
        memcpy(engine->position, batch->position, batch->position_size);
        engine->position_size = batch->position_size;
    }
}

ivm_status ivm_engine_position(ivm_engine *engine, void *bytes, size_t capacity, size_t *size, ivm_error *error)
{
    if (!engine || !size || (capacity && !bytes)) {
        return ivm__fail_null(error, "ivm_engine_position", !engine ? "engine" : !size ? "size" : "bytes");
    }
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    size_t count = engine->position_size < capacity ? engine->position_size : capacity;
    if (count) {
        memcpy(bytes, engine->position, count);
    }
    *size = engine->position_size;
    ivm__engine_leave_reading(engine);
    return IVM_OK;
}
