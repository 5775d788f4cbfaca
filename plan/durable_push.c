/* Pushes as records, and groups of them. See durable.c for how a record is kept.
 *
 *     one push      staged, carried through -> appended -> synced -> committed
 *     a group       each but the last: staged, carried through -> appended -> committed;  the last: as one push        then all are acknowledged
 *
 * Threads that push wait for the engine's turn; who gets it carries through the pushes of all that wait by then, as many as a group may have,
 * each a step of its own. What the earlier ones committed nobody sees before the last is synced: the lock is held. Where that sync fails, they
 * are in memory and perhaps not on the disk: the engine cannot be read any more. */
#include "durable_inside.h"
#include "row_code.h"
#include "save_table.h"
#include "step.h"

/* ---- A push as a record --------------------------------------------------------------------------------------------------------------- */

static ivm_status position_write(ivm__sink *sink, const ivm_batch *batch)
{
    IVM_TRY(ivm__put_u8(sink, batch->positioned));
    if (!batch->positioned) {
        return IVM_OK;
    }
    IVM_TRY(ivm__put_u16(sink, (uint16_t)batch->position_size));
    return ivm__put(sink, batch->position, batch->position_size);
}

static ivm_status delta_write(ivm__sink *sink, const ivm_table *table)
{
    ivm__row_shape shape = ivm__table_shape(table);
    shape.loose = true;
    shape.weights = IVM__WEIGHTS_NOT_0;
    for (uint32_t i = 0; i < table->delta.chunks_count; i++) {
        IVM_TRY(ivm__rows_write(sink, &shape, table->delta.chunks[i]));
    }
    return ivm__rows_write_end(sink);
}

static ivm_status push_write(ivm__sink *sink, const ivm_engine *engine, const ivm_batch *batch)
{
    uint32_t ordinal = 0;
    IVM_TRY(position_write(sink, batch));
    for (const ivm_table *table = engine->tables; table; table = table->next, ordinal++) {
        if (table->delta.chunks_count) {
            IVM_TRY(ivm__put_u32(sink, ordinal));
            IVM_TRY(delta_write(sink, table));
        }
    }
    return ivm__put_u32(sink, UINT32_MAX);
}

ivm_status ivm__durable_push(ivm__journal *self, ivm__step *step, const ivm_batch *batch)
{
    ivm__durable *it = (ivm__durable *)self;
    ivm__sink *sink;
    IVM_TRY(ivm__durable_ready(it, step->error));
    IVM_TRY(ivm__log_append_begin(it->log, IVM__RECORD_PUSH, &sink, step->error));
    IVM_TRY(push_write(sink, step->engine, batch)); /* what fails has been abandoned */
    IVM_TRY(ivm__log_append_end(it->log, step->error));
    return it->more ? IVM_OK : ivm__durable_keep(it, step->error);
}
