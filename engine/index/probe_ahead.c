/* Sending for memory before it is asked for: where few keys go through several indexes one after the other, each probe waits for its slots, then for
 * its rows. All of them are sent for at once here, first every index's slots, then every index's rows, so that the chain of probes waits
 * twice in all. Nothing is found or written: a wrong guess costs a line. */
#include "index_inside.h"

void ivm__index_send_slots(const ivm__index *index, const ivm__keys *keys)
{
    assert(keys->words_count == index->words_count);
    for (uint32_t i = 0; index->used > 0 && i < keys->rows_count; i++) {
        ivm__prefetch(ivm__index_home_at(index, keys->hashes[i]));
    }
}

void ivm__index_send_rows(const ivm__index *index, const ivm__keys *keys)
{
    for (uint32_t i = 0; index->used > 0 && i < keys->rows_count; i++) {
        ivm__row_id row = ivm__slot_row(ivm__index_candidate(index, keys->hashes[i]));
        if (row != IVM__ROW_NONE) {
            ivm__prefetch(ivm__store_row(index->store, row));
            ivm__prefetch(ivm__store_row(index->store, row) + index->store->layout->stride - 1);
            if (!index->unique) {
                ivm__prefetch(ivm__index_place(index, row));
            }
        }
    }
}
