/* Published states: what makes taking a snapshot wait for no push.
 *
 * A store that steps change in place can be read between steps alone. So, where several threads use an engine, each view and table that is read has
 * its last committed state held by references, as a snapshot would, and whoever comes while the lock is taken gets that. It is renewed, for all of them at
 * once, before the lock is given up: no reader sees one view after a push and then another before it.
 *
 * Price: the step writes to copies of the pages that it touches, as if a snapshot were open. A state that no reader has asked for in a while is given
 * up, and so are those that were published on trust when a second thread came; an engine used by one thread publishes nothing. */
#ifndef IVM__PUBLISH_H
#define IVM__PUBLISH_H

#include "snapshot.h"

/* At the end of each call that may have changed rows, and before texts are swept; the lock is held, no step is under way. Cost: a few words for each
 * state, and what giving the last one up frees. */
void ivm__states_publish(ivm_engine *engine);
/* A second thread has come: all that can be read is published on trust. The lock is held. */
void ivm__states_begin(ivm_engine *engine);
/* One of these was read; the lock is held. Published from now on if several threads use the engine; where memory is wanting it is not. */
void ivm__state_read(ivm_engine *engine, ivm_view *view, ivm_table *table);
/* A view or table goes: its state is given up. */
void ivm__state_end(ivm_engine *engine, ivm__published **place);
/* A snapshot of the published state at *place, whoever holds the lock. False: there is none. */
bool ivm__state_take(ivm_engine *engine, ivm__published *const *place, ivm_snapshot **snapshot, ivm_status *status);

#endif
