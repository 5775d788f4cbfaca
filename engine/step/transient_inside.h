/* What the files of rows not kept share: transient.c keeps rows that wait and lets them go, transient_wait.c finds which do. */
#ifndef IVM__TRANSIENT_INSIDE_H
#define IVM__TRANSIENT_INSIDE_H

#include "transient.h"

/* The table that the hop sets out from. */
ivm_table *ivm__hop_child(const ivm__hops *hops, uint32_t hop);
/* A chunk of so many rows of the table in which no column is read yet. NULL: out of memory. */
ivm__chunk *ivm__hop_chunk(ivm__arena *arena, const ivm_table *table, uint32_t rows_count);
/* Reads columns of these rows into a chunk of the table's columns that may have some of them already. False: out of memory. */
bool ivm__hop_chunk_read(ivm__arena *arena, const ivm_table *table, const ivm__row_id *rows, const uint32_t *columns,
                         uint32_t columns_count, ivm__chunk *chunk);
/* Whether, as the step leaves it, a row refers along any of the hops to a parent that is not there and may yet come. */
bool ivm__hops_are_awaited(const ivm__hops *hops);
/* waits[i] is set for rows that wait for one of the views. The chunk has the columns of the table's own facts. */
ivm_status ivm__rows_wait(ivm__step *step, const ivm_table *table, const ivm__chunk *chunk, bool *waits) IVM_MUST_CHECK;

#endif
