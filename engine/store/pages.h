/* Pages from the store's side: what makes rows exist, and what makes them the store's own before a header or body is written. */
#ifndef IVM__PAGES_H
#define IVM__PAGES_H

#include "store.h"

/* log2 of the rows a page holds for rows of this stride: about IVM__PAGE_BYTES, one row at least. */
uint32_t ivm__page_shift(uint32_t stride);
/* The store's, empty. */
ivm_status ivm__pages_init(ivm__store *store) IVM_MUST_CHECK;
void ivm__pages_deinit(ivm__store *store);
/* Makes the pages of rows [first, end) exist and the store's own. On failure rows and snapshots are as they were. */
ivm_status ivm__pages_reserve(ivm__store *store, uint64_t first, uint64_t end) IVM_MUST_CHECK;
#define IVM__PAGES_KEPT_MAX 16u /* whatever the rows need */
void ivm__pages_trim_large(ivm__store *store);
/* The step has ended: pages behind the last row, many times more than the step asked for, go, unless the root is a snapshot's too or memory is
 * wanting. */
static inline void ivm__pages_trim(ivm__store *store)
{
    if (ivm__unlikely(store->pages_count > IVM__PAGES_KEPT_MAX)) {
        ivm__pages_trim_large(store);
    }
    store->wanted = 0;
}
/* Makes a page the store's own that may not be. */
ivm_status ivm__page_take(ivm__store *store, uint32_t page) IVM_MUST_CHECK;
/* Makes the row's page the store's own: pointers into it from before are stale. */
IVM_MUST_CHECK static inline ivm_status ivm__page_own(ivm__store *store, ivm__row_id row)
{
    uint32_t page = row >> store->page_shift;
    assert(page < store->pages_count);
    return ivm__likely(store->owned[page] == store->shares) ? IVM_OK : ivm__page_take(store, page);
}

#endif
