/* What the files of staging share: one table's part of a batch on its way to the table's delta. */
#ifndef IVM__STAGING_H
#define IVM__STAGING_H

#include "batch.h"
#include "net.h"
#include "stage.h"

typedef struct ivm__staging {
    uint64_t table_id;
    ivm_table *table; /* NULL: dropped since */
    const ivm__stated *stated;
    bool consolidates; /* a weight is negative, a key is named, or weights are near the end of int64 */
    bool by_key;       /* the batch upserts or deletes by key */
    bool may_overflow; /* a bag's: rows and weights are so many that equal rows' weights must be added up */
    uint64_t rows_max, chunks_max;
    ivm__weight weights_sum; /* of rows that come */
    ivm__net net;            /* where it consolidates */
    uint64_t rows_come;      /* net rows of a weight above 0, where it consolidates */
    const ivm__part *part;   /* of which rows are being read by key, */
    uint64_t first;          /* from this one on */
    struct ivm__staging *next;
} ivm__staging;

/* A caller's array need not be aligned. */
static inline int64_t ivm__weight_at(const int64_t *weights, uint64_t at)
{
    int64_t weight;
    memcpy(&weight, (const uint8_t *)weights + at * sizeof weight, sizeof weight);
    return weight;
}

/* Rows first .. first + count - 1 of a part as a chunk in the arena, its vectors in place in the part's arrays where these are cells
 * already. Weights are the part's, NULL where all are 1. type_mismatch, null_violation, overflow (a partition
 * that is none) or invalid_argument: the first row's mistake. */
ivm_status ivm__stage_chunk(ivm__step *step, ivm__arena *arena, const ivm__part *part, uint64_t first, uint32_t count,
                            ivm__chunk **chunk) IVM_MUST_CHECK;

/* The net rows as the table's delta. */
ivm_status ivm__stage_delta(ivm__step *step, ivm__staging *staging, uint32_t **live, uint32_t *live_count) IVM_MUST_CHECK;
/* Whether the delta is of the shape the caller stated, and one that the table takes. */
ivm_status ivm__stage_admit(ivm__step *step, const ivm__staging *staging) IVM_MUST_CHECK;

/* One chunk of upserts or deletions by key. */
ivm_status ivm__stage_by_key(ivm__step *step, ivm__staging *staging, ivm_change change, const ivm__chunk *chunk) IVM_MUST_CHECK;
/* Checks what the table's parts came to and applies it to the table. */
ivm_status ivm__stage_keyed(ivm__step *step, ivm__staging *staging) IVM_MUST_CHECK;
ivm_status ivm__stage_bag(ivm__step *step, ivm__staging *staging) IVM_MUST_CHECK;

/* Room for so many rows more. */
ivm_status ivm__stage_reserve(ivm__step *step, ivm_table *table, uint64_t rows) IVM_MUST_CHECK;
/* Adds those of at most IVM__CHUNK_ROWS net rows whose weight is above 0; there is room. */
void ivm__stage_put(ivm__store *store, const ivm__net *net, const uint32_t *rows, uint32_t count);

/* "(9, "a")", cut to the size: cells of a chunk's row, of `columns` (NULL: the first). For messages. */
#define IVM__ROW_TEXT_SIZE 160
void ivm__stage_row_text(const ivm__chunk *chunk, const uint32_t *columns, uint32_t columns_count, uint32_t row,
                         char text[IVM__ROW_TEXT_SIZE]);
/* Fails with what is wrong with a row: "table t: <what> (9, "a")". */
ivm_status ivm__stage_fail(ivm__step *step, const ivm_table *table, ivm_status status, const char *what, const char *row_text);

/* A net row that cannot be: of a chunk with all columns the cells of some of them, all where `columns` is NULL. */
typedef struct ivm__stage_row {
    const ivm__chunk *chunk;
    uint32_t row;
    const uint32_t *columns;
    uint32_t columns_count;
} ivm__stage_row;
/* Fails with `format`, where %s is the row's text, behind "table t, row 3: ". The row's number is that of the batch's last that takes away such a row, or,
 * for a key that is there twice, of the second that brings one, of the only one else. For that the batch's rows of the table are walked. */
ivm_status ivm__stage_fail_row(ivm__step *step, const ivm_table *table, ivm_status status, const char *format, ivm__stage_row net);

#endif
