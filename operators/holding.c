/* Holdings of rows, loaded: see holding.h. The store gives no id twice while it is filled, which is what tells rows that come twice. */
#include "holding.h"

#include "bytes.h"
#include "weights.h"

ivm_status ivm__holding_corrupt(const ivm__operator *self, ivm__step *step, const char *what)
{
    return ivm__fail(step->error, IVM_CORRUPT, "view %s: state of %s: %s", self->view, self->class->name, what);
}

ivm_status ivm__holding_count(const ivm__operator *self, ivm__step *step, ivm__feed *from, ivm__weight *count)
{
    static const ivm__weight most = (ivm__weight)3 << 125; /* a quarter of the range is left on either side */
    IVM_TRY(ivm__get_wide(from, count));
    return *count <= most && *count >= -most ? IVM_OK : ivm__holding_corrupt(self, step, "a number of rows that there cannot be");
}

bool ivm__holding_is_single(const ivm__chunk *chunk)
{
    bool single = true;
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        single &= chunk->weights[i] == 1;
    }
    return single;
}

ivm_status ivm__holding_rows(const ivm__operator *self, ivm__zset *rows, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__store *store = &rows->store;
    ivm__row_id end = store->rows_end;
    assert(store->step_end == end && store->touched_count == 0 && store->free_count == 0);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = ivm__zset_add(rows, step->scratch, chunk, NULL, 1);
    ivm__arena_back(step->scratch, mark);
    if (status != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    if (store->rows_end - end != chunk->rows_count) {
        return ivm__holding_corrupt(self, step, "a row comes twice, or weighs nothing");
    }
    return ivm__touched_weights_fit(store) ? IVM_OK : ivm__holding_corrupt(self, step, "the weight of a row is out of range");
}

ivm_status ivm__holding_rows_alone(const ivm__operator *self, ivm__zset *rows, ivm__step *step, const ivm__chunk *chunk)
{
    IVM_TRY(ivm__holding_rows(self, rows, step, chunk));
    ivm__store_commit(&rows->store);
    return IVM_OK;
}
