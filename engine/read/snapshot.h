/* Snapshots inside: where the rows come from, the cursor, and the arrays given out. */
#ifndef IVM__SNAPSHOT_H
#define IVM__SNAPSHOT_H

#include "catalog.h"
#include "finder.h"

/* A store's rows between two steps, held by references alone: they stay as they are. */
typedef struct ivm__shared {
    ivm__row_pages rows; /* with a reference to the layout */
    ivm__pages *pages;
    ivm__heavies *heavies;
    ivm__finder *finder; /* NULL: the store has none */
    ivm__offer *offer;   /* where the store takes one; NULL: nowhere */
} ivm__shared;

/* What is read: a store, the key that rows are found by, and whether no two rows have one, so that a finder may be kept. */
typedef struct ivm__subject {
    ivm__store *store;
    const uint32_t *key; /* NULL: the first columns */
    uint32_t key_count;
    bool finds;
    ivm__offer *offer; /* where the store gets finders; NULL: nowhere */
} ivm__subject;
ivm__subject ivm__view_subject(const ivm_view *view);
ivm__subject ivm__table_subject(ivm_table *table);

/* Takes them, in time that does not grow with the rows; the lock is held. */
void ivm__shared_take(const ivm__subject *subject, ivm__shared *shared);
void ivm__shared_copy(const ivm__shared *from, ivm__shared *shared); /* any thread that may read `from` */
void ivm__shared_release(ivm__shared *shared, ivm__memory *memory);  /* any thread; a zeroed one is fine */

/* One column's output arrays, for the snapshot's output_rows; `bytes` grows with the strings. */
typedef struct ivm__output_column {
    void *values;
    uint8_t *validity;
    int32_t *offsets;
    char *bytes;
    size_t bytes_capacity;
} ivm__output_column;

/* A place in the order and what the row there weighs, where equal rows were made one. */
typedef struct ivm__order_sum {
    uint32_t place;
    int64_t weight;
} ivm__order_sum;

struct ivm_snapshot {
    ivm_engine *engine;
    ivm__memory *memory;
    struct ivm_snapshot *older, *newer; /* the engine's list */
    uint64_t epoch;
    struct ivm_snapshot *kept_next; /* of a view or fact, to be told after this (step.h) */
    uint32_t kept_step;
    /* Rows in shared pages, or, for changes, copied: one page of them, said as two so that ids of 32 bits reach all. */
    ivm__shared shared;
    uint8_t *copied;
    ivm__pages *copied_pages;
    uint64_t copied_count;
    uint64_t rows_count;
    uint32_t position_size; /* the engine's position as of these rows */
    uint8_t position[IVM_POSITION_SIZE_MAX];
    bool lent;  /* to a callback, which may not close it */
    bool finds; /* no two rows have one key */
    /* Sorted: ids in order. */
    ivm__row_id *order; /* NULL: not sorted, in the order of ids */
    uint32_t order_count, order_capacity;
    ivm__order_sum *sums;
    uint32_t sums_count, sums_capacity;
    /* The cursor and what it gives out. */
    uint64_t next; /* place */
    ivm_status status;
    uint64_t output_rows; /* rows there is room for; 0: the arrays are not made */
    ivm__output_column *output;
    ivm_column_data *columns;
    int64_t *weights;
    const uint8_t **rows;
    uint64_t *cells; /* scratch for one column: output_rows cells of 8 bytes */
    uint8_t *nulls;
    /* find() without a finder: chains of row ids by hash, over the first `find_columns` key columns. */
    uint32_t find_columns;
    uint32_t find_mask;
    uint32_t *find_heads, *find_next; /* id + 1; 0 ends */
    uint32_t key_count;
    uint32_t key[]; /* columns that find() compares, in its order */
};

/* One without rows; NULL: out of memory. */
ivm_snapshot *ivm__snapshot_make(ivm_engine *engine, const uint32_t *key, uint32_t key_count);
/* Puts it into the engine's list, whose lock is held, as of this epoch. */
void ivm__snapshot_list(ivm_snapshot *snapshot, uint64_t epoch);
void ivm__snapshot_position_set(ivm_snapshot *snapshot, const uint8_t *position, uint32_t size);
void ivm__snapshot_discard(ivm_snapshot *snapshot); /* one that is in no list; NULL is fine */

/* A snapshot of a store's rows. The lock is held; the store is not changed but in its pages' references. Fails for memory alone. */
ivm_status ivm__snapshot_of(ivm_engine *engine, const ivm__store *store, ivm_snapshot **snapshot) IVM_MUST_CHECK;
/* The rows of one that shares pages; they stay while it is open. */
ivm__row_pages ivm__snapshot_row_pages(const ivm_snapshot *snapshot);

/* What is at a place; weight 0: no row. */
static inline const uint8_t *ivm__snapshot_row(const ivm_snapshot *snapshot, ivm__row_id id, int64_t *weight)
{
    const uint8_t *at = ivm__row_pages_at(&snapshot->shared.rows, id);
    *weight = ivm__row_pages_weight(&snapshot->shared.rows, id, at);
    return at;
}
/* Turns snapshot->rows[0..count) and weights into arrays. */
ivm_status ivm__snapshot_output(ivm_snapshot *snapshot, uint32_t count, ivm_rows *rows) IVM_MUST_CHECK;
/* Makes room for so many rows, and for a chunk's at least; what was given out before is gone where it has to grow. */
ivm_status ivm__snapshot_output_make(ivm_snapshot *snapshot, uint64_t rows) IVM_MUST_CHECK;
void ivm__snapshot_output_free(ivm_snapshot *snapshot);
void ivm__snapshot_find_free(ivm_snapshot *snapshot);
void ivm__snapshot_order_free(ivm_snapshot *snapshot);

#endif
