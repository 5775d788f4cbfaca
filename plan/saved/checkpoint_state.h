/* What a checkpoint says of an engine besides its catalog and its rows: which facts each deferred view may use, and which tables whose rows are not
 * kept have changed.
 *
 * A refresh may use a fact that has been in force since the view's last one: fact->since <= view->clock. Which pushes these were is of no matter. Of F facts
 *
 *     clock'(view) = how many facts it may use; F + 1 where no push has come since         since'(fact) = the least clock' of the views that may use it,
 *     pushes' = F + 1                                                                                  F + 1 where none may
 *
 * tell the same: a view that may use fewer facts than another may use none but those, since they are ordered by time. */
#ifndef IVM__CHECKPOINT_STATE_H
#define IVM__CHECKPOINT_STATE_H

#include "catalog_code.h"

void ivm__state_code(ivm__code *code, const ivm_engine *engine);

/* As read: the arrays are in the engine's lists' order, in the arena. */
typedef struct ivm__state {
    uint32_t *since; /* by fact */
    uint32_t *clock; /* by view */
    bool *came;      /* by table */
    uint32_t pushes;
} ivm__state;
ivm_status ivm__state_decode(ivm__decode *decode, const ivm_engine *engine, ivm__arena *arena, ivm__state *state,
                             ivm_error *error) IVM_MUST_CHECK;
/* Cannot fail. */
void ivm__state_apply(ivm_engine *engine, const ivm__state *state);

#endif
