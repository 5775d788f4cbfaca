/* An aggregate's holding: its groups, keys with their states. Rows of the result follow from those.
 *
 *     load: keys -> groups made -> states read          settle: values read and `having` judged as in a step -> rows
 *
 * Where no settle() follows, the next step's finish() does as much, and emits the rows (aggregate.c). */
#include "aggregate_state.h"
#include "holding.h"

static ivm_status group_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink)
{
    (void)store;
    return ivm__group_write(&((const ivm__aggregate *)context)->accumulators, row, sink);
}

ivm_status ivm__aggregate_save(const ivm__operator *base, ivm__saver *saver)
{
    const ivm__aggregate *self = (const ivm__aggregate *)base;
    ivm__sink *sink;
    if (self->groups_count) {
        return saver->rows(saver, &self->keys, self->groups_count, group_save, self);
    }
    IVM_TRY(saver->bytes(saver, &sink));
    return ivm__group_write(&self->accumulators, 0, sink);
}

static ivm_status groups_read(ivm__aggregate *self, const ivm__chunk *chunk, const uint32_t *groups, ivm__group_reading *reading)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        IVM_TRY(ivm__group_read(&self->accumulators, groups[i], reading));
        if (((const ivm__group *)(const void *)ivm__group_state(&self->accumulators, groups[i]))->rows == 0) {
            return ivm__holding_corrupt(&self->base, reading->step, "a group without rows");
        }
    }
    return IVM_OK;
}

static ivm_status groups_load(ivm__aggregate *self, const ivm__chunk *chunk, ivm__group_reading *reading)
{
    ivm__step *step = reading->step;
    uint32_t end = self->keys.rows_end, *groups = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *groups);
    if (!groups || ivm__aggregate_groups(self, step, chunk, groups) != IVM_OK) {
        return IVM_OUT_OF_MEMORY;
    }
    if (!ivm__holding_is_single(chunk) || self->keys.rows_end - end != chunk->rows_count) {
        return ivm__holding_corrupt(&self->base, step, "a group that comes twice, or does not weigh 1");
    }
    return groups_read(self, chunk, groups, reading);
}

ivm_status ivm__aggregate_load(ivm__operator *base, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    assert(holding == 0 && !chunk == !self->groups_count && self->touched_count == 0);
    (void)holding;
    ivm__group_reading reading = { .self = base, .step = step, .from = from, .text.memory = self->memory };
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = chunk ? groups_load(self, chunk, &reading) : ivm__group_read(&self->accumulators, 0, &reading);
    ivm__arena_back(step->scratch, mark);
    ivm__bytes_deinit(&reading.text);
    if (status == IVM_OK) {
        self->loaded = true;
        base->class->commit(base);
    }
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

ivm_status ivm__aggregate_publish_loaded(ivm__aggregate *self, ivm__step *step, bool commits)
{
    uint32_t groups[IVM__CHUNK_ROWS], count = 0, end = ivm__aggregate_groups_end(self);
    self->loaded = false;
    for (uint32_t first = 0; first < end; first += count) {
        for (count = 0; count < IVM__CHUNK_ROWS && first + count < end; count++) {
            groups[count] = first + count;
        }
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm_status status = ivm__aggregate_publish_there(self, step, groups, count);
        ivm__arena_back(step->scratch, mark);
        if (status == IVM_OVERFLOW) {
            return ivm__holding_corrupt(&self->base, step, "a value of a group is out of range");
        }
        IVM_TRY(status);
        if (commits) {
            self->base.class->commit(&self->base);
        }
    }
    return IVM_OK;
}

ivm_status ivm__aggregate_settle(ivm__operator *base, ivm__step *step)
{
    IVM_TRY(ivm__aggregate_publish_loaded((ivm__aggregate *)base, step, true));
    base->class->commit(base); /* of nothing: no row has changed */
    return IVM_OK;
}
