/* A batch's parts as they were added: owned rows or borrowed arrays, in order. */
#ifndef IVM__BATCH_H
#define IVM__BATCH_H

#include "catalog.h"

/* Rows of one kind of change for one table, one after the other. Either owned, in Arrow's layout and filled row by row, or borrowed. */
typedef struct ivm__part {
    ivm_table *table;
    uint64_t table_id;        /* the table may be dropped meanwhile */
    uint64_t columns_version; /* or its columns change */
    ivm_change change;
    uint32_t columns_count;
    ivm_column_data *columns;
    uint64_t rows_count;
    const int64_t *weights;        /* IVM_WEIGHTED alone */
    struct ivm__owned_rows *owned; /* NULL: borrowed */
    struct ivm__part *next;
} ivm__part;

typedef struct ivm__stated {
    uint64_t table_id;
    ivm_shape shape;
    struct ivm__stated *next;
} ivm__stated;

/* The head of a block that a batch keeps until it is freed, in whose time `release` (NULL: nothing) lets go of what the block holds. */
typedef struct ivm__kept {
    struct ivm__kept *next;
    size_t size; /* of the block */
    void (*release)(struct ivm__kept *held);
} ivm__kept;

#define IVM__BATCH_OPEN 8u

struct ivm_batch {
    ivm_engine *engine; /* for comparison alone: the batch may outlive it */
    ivm__memory memory; /* its own: filling takes no lock */
    ivm__part *parts, *parts_last;
    ivm__part *open[IVM__BATCH_OPEN]; /* by table id: the last part of a table, to which rows are added while they may be */
    ivm__stated *stated;
    ivm__kept *held; /* what borrowed arrays lie in, where that is the batch's to let go */
    bool positioned;
    uint32_t position_size;
    uint8_t position[IVM_POSITION_SIZE_MAX];
    ivm_error mistake; /* the first; IVM_OK: none */
};

/* Whether a change of this table may be added: the remembered mistake or a new one where not. The batch is not NULL. */
ivm_status ivm__batch_accepts(ivm_batch *batch, const ivm_table *table, ivm_change change) IVM_MUST_CHECK;
/* Adds an empty part with room for the columns that the change takes. NULL: out of memory, remembered. */
ivm__part *ivm__batch_part(ivm_batch *batch, ivm_table *table, ivm_change change);
/* A block of so many bytes with its head, aligned to 16, not cleared behind it. NULL: out of memory, remembered. */
ivm__kept *ivm__batch_hold(ivm_batch *batch, size_t size);
/* The engine's position becomes the batch's, if it has one. */
void ivm__position_commit(ivm_engine *engine, const ivm_batch *batch);
/* How many rows of the table its parts before this one have; of all its parts where that is NULL. For messages: it walks. */
uint64_t ivm__batch_rows(const ivm_batch *batch, uint64_t table_id, const ivm__part *before);
void ivm__owned_free(ivm__memory *memory, struct ivm__owned_rows *owned); /* NULL is fine */

/* The columns of rows of this change: all of the table's, or its key's. */
static inline uint32_t ivm__change_columns(const ivm_table *table, ivm_change change)
{
    return change == IVM_DELETE_KEY ? table->key_count : table->columns_count;
}
/* The table's column that such rows have at this position. */
static inline uint32_t ivm__change_column(const ivm_table *table, ivm_change change, uint32_t position)
{
    return change == IVM_DELETE_KEY ? table->key[position] : position;
}

/* Bytes of one of a column's values as column arrays have them; 0: bits, or strings. */
static inline uint32_t ivm__array_width(ivm_type type)
{
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
    case IVM_STRING:
        return 0;
    case IVM_DATE:
        return sizeof(int32_t);
    case IVM_DECIMAL_KIND:
        return sizeof(ivm__wide);
    default:
        return sizeof(int64_t);
    }
}

#endif
