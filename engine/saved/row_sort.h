/* Sorting rows where they lie: entries of 16 bytes, each an image of what its row holds in one column and the row's id. */
#ifndef IVM__ROW_SORT_H
#define IVM__ROW_SORT_H

#include "cancel.h"
#include "store.h"

/* Rows in pages: a store's between steps, or a snapshot's. Borrowed. */
typedef struct ivm__row_pages {
    const ivm__layout *layout;
    const ivm__pages *pages;
    uint32_t page_shift, page_mask;
    ivm__row_id first, end; /* ids; rows of weight 0 are none */
    uint64_t rows_count;    /* of them, at most */
    const ivm__heavy *heavy;
    uint32_t heavy_count;
} ivm__row_pages;

ivm__row_pages ivm__store_row_pages(const ivm__store *store);

static inline const uint8_t *ivm__row_pages_at(const ivm__row_pages *rows, ivm__row_id row)
{
    uint32_t page = row >> rows->page_shift;
    return ivm__pages_leaf(rows->pages, page)->rows[page & (IVM__FAN - 1)] + (size_t)(row & rows->page_mask) * rows->layout->stride;
}
/* The same in a walk by ids: `before` is where the row before it lies; NULL: this is the first. */
static inline const uint8_t *ivm__row_pages_next(const ivm__row_pages *rows, ivm__row_id row, const uint8_t *before)
{
    return ivm__likely(before && row & rows->page_mask) ? before + rows->layout->stride : ivm__row_pages_at(rows, row);
}
/* Whether there is a row at this place: its weight is not 0. */
static inline bool ivm__row_pages_has(const uint8_t *at)
{
    return ivm__row_header_of(at) != 0;
}
int64_t ivm__row_pages_heavy(const ivm__row_pages *rows, ivm__row_id row);
static inline int64_t ivm__row_pages_weight(const ivm__row_pages *rows, ivm__row_id row, const uint8_t *at)
{
    int32_t weight = ivm__header_weight(ivm__row_header_of(at));
    return ivm__likely(weight != IVM__WEIGHT_HEAVY) ? weight : ivm__row_pages_heavy(rows, row);
}

typedef struct ivm__row_entry {
    uint64_t image; /* of one column: where it is less, so is the cell. Nulls have the greatest */
    ivm__row_id row;
    uint32_t sum : 31;  /* which of the sums is its weight, + 1; 0: the row's own is */
    uint32_t equal : 1; /* after sorting: to the entry before, in all columns */
} ivm__row_entry;

typedef struct ivm__row_sorter {
    ivm__row_pages rows;
    const uint32_t *columns; /* that rows ascend by; NULL: the first columns_count */
    uint32_t columns_count;
    ivm__row_entry *other;     /* room for as many entries as are sorted at once */
    const ivm__cancel *cancel; /* of whom it is used by; NULL: nobody asks */
    bool cancelled;            /* a look found so: the order of entries, and which are equal, says nothing any more */
    uint32_t counts[8][256];   /* of the bytes of images */
} ivm__row_sorter;

/* <0, 0, >0: by the columns from the `from`-th of the order on, nulls last. */
int ivm__row_sorter_compare(const ivm__row_sorter *sorter, const uint8_t *a, const uint8_t *b, uint32_t from);
/* The image of the row's first column, which entries have that are given to be sorted. */
uint64_t ivm__row_sorter_image(const ivm__row_sorter *sorter, const uint8_t *at);
/* Cost: of a million entries some 20 ns each where first columns differ, 150 where these are strings; 10 to 20 more for each further column
 * that is looked at. Never more than n log n comparisons of rows. Looks at `cancel` in every pass that reads rows, and between the others:
 * IVM_CANCELLED, of which no error tells. */
ivm_status ivm__row_sorter_sort(ivm__row_sorter *sorter, ivm__row_entry *entries, uint32_t count) IVM_MUST_CHECK;
/* Whether a loop that has come to this row or entry is to end. */
static inline bool ivm__row_sorter_ends(ivm__row_sorter *sorter, uint32_t at)
{
    if (at % IVM__ROWS_UNASKED == 0 && ivm__cancel_asked(sorter->cancel)) {
        sorter->cancelled = true;
    }
    return sorter->cancelled;
}

#endif
