/* Staging: a batch as each table's net delta, checked against keys and contents, and applied to the tables with an undo that cannot fail.
 *
 *     parts in order -> rows by table -> consolidated where a weight is negative or a key is named -> keys and facts judged -> chunks -> applied
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

#endif
