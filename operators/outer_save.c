/* An outer join's holdings: the rows of both sides, the left ones first, and how many partners those of a preserved side have. Counts are not
 * counted again: that would be the join computed anew. */
#include "bytes.h"
#include "holding.h"
#include "outer_state.h"

static ivm_status partners_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink)
{
    const ivm__outer_side *side = context;
    (void)store;
    assert(row < side->partners_capacity && side->partners[row].touch == 0);
    return ivm__put_u32(sink, side->partners[row].count);
}

static ivm_status side_save(const ivm__outer_side *side, ivm__saver *saver)
{
    return saver->rows(saver, &side->rows.store, side->columns_count, side->preserved ? partners_save : NULL, side);
}

ivm_status ivm__outer_save(const ivm__operator *self, ivm__saver *saver)
{
    const ivm__outer *outer = (const ivm__outer *)self;
    IVM_TRY(side_save(&outer->left, saver));
    return side_save(&outer->right, saver);
}

ivm_status ivm__outer_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__outer_side *side = holding == 0 ? &outer->left : &outer->right;
    ivm__row_id row = side->rows.store.rows_end;
    assert(holding <= 1 && chunk->columns_count == side->columns_count);
    IVM_TRY(ivm__holding_rows(self, &side->rows, step, chunk));
    if (ivm__outer_side_reserve(side) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    for (; side->preserved && row < side->rows.store.rows_end; row++) {
        IVM_TRY(ivm__get_u32(from, &side->partners[row].count));
    }
    ivm__outer_side_commit(side);
    return IVM_OK;
}
