/* The canonical order of rows: ascending by their cells, column by column, nulls last, equal rows as one with their weights added. It is a matter of
 * values alone, and so the same for two stores that hold the same rows, whatever their ids.
 *
 * Rows stay where they lie and are given out by their ids. Memory is bounded: rows that are more than fit are sorted window by window, each filled
 * by a pass over all of them. */
#ifndef IVM__ROW_ORDER_H
#define IVM__ROW_ORDER_H

#include "row_sort.h"

#define IVM__SORT_BYTES_DEFAULT ((size_t)64 << 20) /* two million rows a window */

typedef struct ivm__row_order {
    ivm__row_sorter sorter;
    ivm__memory *memory;
    ivm__row_entry *entries; /* of the present window, sorted, from `at` on not given out */
    uint32_t count, at, capacity;
    ivm__weight *sums; /* of rows that were made one before their window was whole */
    uint32_t sums_count, sums_capacity;
    ivm__row_id *bounds; /* rows that windows end at, ascending; the last has no bound */
    uint32_t bounds_count, bounds_capacity, bound;
    ivm__row_id lower; /* windows before the present one end with this row */
    bool some, done;   /* there is one; there are no more windows */
} ivm__row_order;

/* The rows must stay while the order is used. `columns` NULL: the first `columns_count`. At most `sort_bytes` are held, and half as much again
 * where many rows are equal; less memory at hand than that makes windows smaller. Deinit it, whatever the outcome. Who may be cancelled then sets
 * sorter.cancel. */
ivm_status ivm__row_order_init(ivm__row_order *order, ivm__memory *memory, const ivm__row_pages *rows, const uint32_t *columns,
                               uint32_t columns_count, size_t sort_bytes) IVM_MUST_CHECK;
/* The next rows and their weights; *count 0: there are no more. Overflow where equal rows weigh more than an int64 together; cancelled, of which no error
 * tells. */
ivm_status ivm__row_order_next(ivm__row_order *order, uint32_t capacity, ivm__row_id *rows, int64_t *weights,
                               uint32_t *count) IVM_MUST_CHECK;
void ivm__row_order_deinit(ivm__row_order *order); /* a zeroed one is fine */

#endif
