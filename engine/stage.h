/* Staging: a batch as each table's net delta, checked against keys and contents, and applied to the tables with an undo that cannot fail.
 *
 *     parts in order -> rows by table -> consolidated where a weight is negative or a key is named -> constraints -> chunks -> applied
 *
 * Consolidation is asked for by need: a bag's part without a negative weight is net as it stands, its arrays are read in place. */
#ifndef IVM__STAGE_H
#define IVM__STAGE_H

#include "catalog.h"

/* Stages and applies the batch's parts: fills in the delta of every table it names. The first mistake wins, tables in the order
 * in which the batch names them. On failure what was applied must be undone by ivm__stage_undo(). */
ivm_status ivm__stage_apply(ivm__step *step, const ivm_batch *batch) IVM_MUST_CHECK;
/* Ends the step for all tables: their deltas are empty after. Neither can fail. */
void ivm__stage_commit(ivm_engine *engine);
void ivm__stage_undo(ivm_engine *engine);

/* Where a walk over a table's delta stands; zeroed at first. */
typedef struct ivm__delta_walk {
    uint32_t next;
} ivm__delta_walk;
/* The next chunk of the table's delta in this step, all columns carried; *chunk NULL at the end. Where the step is initial the delta is the
 * whole content, read from the store chunk by chunk into step->scratch: the caller goes back to its mark between chunks. */
ivm_status ivm__delta_next(ivm__step *step, ivm_table *table, ivm__delta_walk *walk, ivm__chunk **chunk) IVM_MUST_CHECK;
uint64_t ivm__delta_rows(const ivm__step *step, const ivm_table *table);
ivm_shape ivm__delta_shape(const ivm__step *step, const ivm_table *table);

#endif
