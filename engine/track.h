/* Tracked facts: nothing is promised of them, so that the engine counts who waits for whom.
 *
 *     waiting(k)   child rows that hold key k while the parent has no such row       a Z-set of keys, always kept: nothing while all is well
 *     held(k)      child rows that hold key k                                        a Z-set of keys, from the first time that it is asked for
 *
 * A row counts as often as its weight says; of a table that allows negative weights, where +1 and -1 are two rows, once. A key with a null in it
 * refers to nothing. A fresh key is awaited if a child row of the state before holds it: waiting tells of a push, held less the pending delta of a
 * refresh. A gone key is kept by its children if one of the state after holds it: held tells.
 *
 * held covers the child's rows with ids below an end, and catches up when it is asked for, so that a stream of fact rows costs it nothing while no
 * parent leaves. Cost of a push: a lookup of the parent for each child row that came or went; a lookup in waiting for each fresh key. */
#ifndef IVM__TRACK_H
#define IVM__TRACK_H

#include "split.h"

struct ivm__track; /* of a tracked fact: fact->track */

/* Makes fact->track from what the tables hold: before the fact is published. The fact is tracked. out_of_memory. */
ivm_status ivm__track_make(ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;
void ivm__track_free(ivm_fact *fact); /* fact->track NULL is fine */

/* In a push, after the batch has been applied to the tables and before the views run: brings every tracked fact's counts up to date. On failure, and on
 * any later one, all is undone by ivm__track_undo(). out_of_memory. */
ivm_status ivm__track_step(ivm__step *step) IVM_MUST_CHECK;
void ivm__track_commit(ivm_engine *engine); /* neither can fail */
void ivm__track_undo(ivm_engine *engine);

/* Of the fact's parent's fresh and gone rows in the step under way (push or refresh), those that a child row holds on: awaited (fresh) or kept (gone), so
 * that they must not be set aside. One byte for each row of the split, laid out as its two arrays: 1 held. Both NULL: none is held. In the step's
 * arena; asked for again in the same step it gives the same arrays. out_of_memory. */
typedef struct ivm__held {
    const uint8_t *touched, *appended;
} ivm__held;
ivm_status ivm__track_held(ivm__step *step, ivm_fact *fact, const ivm__split *split, ivm__held *held) IVM_MUST_CHECK;

/* Whether the step under way brings a parent row that a child row of the state before refers to. Of a tracked fact whose parent's delta has no
 * negative row; else it may say yes where none does. out_of_memory. */
ivm_status ivm__track_awaited(ivm__step *step, ivm_fact *fact, bool *awaited) IVM_MUST_CHECK;

/* Orphans: rows that wait, and the keys they wait for, as committed. */
void ivm__track_count(const ivm_fact *fact, uint64_t *rows, uint64_t *keys);
/* The store of waiting, for snapshots. */
ivm__store *ivm__track_waiting(const ivm_fact *fact);

#endif
