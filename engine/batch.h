/* A batch's parts as they were added: owned rows or borrowed arrays, in order. */
#ifndef IVM__BATCH_H
#define IVM__BATCH_H

#include "catalog.h"

/* Rows of one kind of change for one table, one after the other. Either owned, in Arrow's layout and filled row by row, or borrowed. */
typedef struct ivm__part {
    ivm_table *table;
    uint64_t table_id; /* the table may be dropped meanwhile */
    ivm_change change;
    uint32_t columns_count;
    ivm_column_data *columns;
    uint64_t rows_count;
    const int64_t *weights; /* IVM_WEIGHTED alone */
    struct ivm__owned_rows *owned; /* NULL: borrowed */
    struct ivm__part *next;
} ivm__part;

typedef struct ivm__stated {
    uint64_t table_id;
    ivm_shape shape;
    struct ivm__stated *next;
} ivm__stated;

struct ivm_batch {
    ivm_engine *engine;  /* for comparison alone: the batch may outlive it */
    ivm__memory memory;  /* its own: filling takes no lock */
    ivm__part *parts, *parts_last;
    ivm__stated *stated;
    ivm_error mistake; /* the first; IVM_OK: none */
};

#endif
