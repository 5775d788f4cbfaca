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

struct ivm__published {
    struct ivm__published *next; /* of the engine, while it is listed */
    ivm_view *view;              /* one of the two */
    ivm_table *table;
    ivm__offer *offer;
    ivm__shared now, newer; /* `now` without pages: nothing is published; `newer`: while it is renewed, then what it was before */
    bool listed;
    bool renewed;    /* in the renewal under way */
    bool read;       /* since the last step that changed it */
    uint32_t unread; /* steps that changed it since it was read */
    uint32_t patience;
    bool finds;
    uint32_t key_count, key_capacity;
    uint32_t key[]; /* of a table with a key, else of no capacity */
};

/* A view's or a table's, one of the two, of which nothing is published yet; asks for the memory that publishing will take. */
ivm_status ivm__state_make(ivm_engine *engine, ivm_view *view, ivm_table *table) IVM_MUST_CHECK;
void ivm__state_free(ivm_engine *engine, ivm__published *state); /* NULL is fine; before the store goes */

/* The lock is held and no step is under way in these; none of them fails. At the end of each call that may have changed rows, before texts are swept; `epoch`
 * is that of the step that comes next, of whose texts none that the states show may go while a snapshot of them is open. Cost: a few words for each state, and
 * what giving the last one up frees. */
void ivm__states_publish(ivm_engine *engine, uint64_t epoch);
/* A second thread has come: all that can be read is published on trust. */
void ivm__states_begin(ivm_engine *engine);
/* None can be taken any more: whoever comes waits for the lock. */
void ivm__states_end(ivm_engine *engine);
/* A view or table has come, or was read: it is published if several threads use the engine. NULL is fine. */
void ivm__state_new(ivm_engine *engine, ivm__published *state);
void ivm__state_read(ivm_engine *engine, ivm__published *state);

/* A snapshot of what is published, whoever holds the lock. False: nothing is. */
bool ivm__state_take(ivm_engine *engine, ivm__published *state, ivm_snapshot **snapshot, ivm_status *status);
/* The same of several views at once: a chain of snapshots just made, by kept_next in the order of the views, becomes theirs. False: of one nothing is published,
 * and the chain is as it was. */
bool ivm__states_take(ivm_engine *engine, ivm_view *const *views, size_t views_count, ivm_snapshot *made);

#endif
