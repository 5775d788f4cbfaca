/* Snapshots inside: where the rows come from, the cursor, and the arrays given out. */
#ifndef IVM__SNAPSHOT_H
#define IVM__SNAPSHOT_H

#include "catalog.h"
#include "row_sort.h"

/* One column's output arrays, for the snapshot's output_rows; `bytes` grows with the strings. */
typedef struct ivm__output_column {
    void *values;
    uint8_t *validity;
    int32_t *offsets;
    char *bytes;
    size_t bytes_capacity;
} ivm__output_column;

struct ivm_snapshot {
    ivm_engine *engine;
    ivm__memory *memory;
    struct ivm_snapshot *older, *newer; /* the engine's list */
    uint64_t epoch;
    struct ivm_snapshot *kept_next; /* of a view or fact, to be told after this (step.h) */
    uint32_t kept_step;
    ivm__layout *layout;
    /* Rows in shared pages, or, for changes, copied: `copied_count` rows of the layout's stride. */
    ivm__pages *pages;
    uint32_t page_shift, page_mask, rows_end;
    ivm__heavy *heavy;
    uint32_t heavy_count;
    uint8_t *copied;
    int64_t *copied_weights;
    uint64_t copied_count;
    uint64_t rows_count;
    uint32_t *key; /* columns that find() compares, in its order */
    uint32_t key_count;
    /* The cursor and what it gives out. */
    uint64_t next;
    ivm_status status;
    uint64_t output_rows; /* rows there is room for; 0: the arrays are not made */
    ivm__output_column *output;
    ivm_column_data *columns;
    int64_t *weights;
    const uint8_t **rows;
    uint64_t *cells; /* scratch for one column: output_rows cells of 8 bytes */
    uint8_t *nulls;
    /* find(): chains of row ids by hash, over the first `find_columns` key columns. */
    uint32_t find_columns;
    uint32_t find_mask;
    uint32_t *find_heads, *find_next; /* id + 1; 0 ends */
};

/* A snapshot of a store's rows. The lock is held; the store is not changed but in its pages' references. Fails for memory alone. */
ivm_status ivm__snapshot_of(ivm_engine *engine, const ivm__store *store, ivm_snapshot **snapshot) IVM_MUST_CHECK;
/* The rows of one that shares pages; they stay while it is open. */
ivm__row_pages ivm__snapshot_row_pages(const ivm_snapshot *snapshot);

uint64_t ivm__snapshot_ids(const ivm_snapshot *snapshot);
/* The row of an id and its weight; 0: no row. */
const uint8_t *ivm__snapshot_row(const ivm_snapshot *snapshot, uint64_t id, int64_t *weight);
/* Turns snapshot->rows[0..count) and weights into arrays. */
ivm_status ivm__snapshot_output(ivm_snapshot *snapshot, uint32_t count, ivm_rows *rows) IVM_MUST_CHECK;
/* Makes room for so many rows, and for a chunk's at least; what was given out before is gone where it has to grow. */
ivm_status ivm__snapshot_output_make(ivm_snapshot *snapshot, uint64_t rows) IVM_MUST_CHECK;
void ivm__snapshot_output_free(ivm_snapshot *snapshot);
void ivm__snapshot_find_free(ivm_snapshot *snapshot);

#endif
