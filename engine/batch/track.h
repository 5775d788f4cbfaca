/* Tracked facts: nothing is promised of them, so that the engine counts who waits for whom.
 *
 *     waiting(k)   child rows that hold key k while the parent has no such row       a Z-set of keys, always kept: nothing while all is well
 *     held(k)      child rows that hold key k                                        a Z-set of keys, from the first time that it is asked for
 *
 * A row counts as often as its weight says; of a table that allows negative weights, where +1 and -1 are two rows, once. A key with a null in it
 * refers to nothing. A fresh key is awaited if a child row of the state before holds it: waiting tells of a push, held less the pending delta of a
 * refresh. A gone key is kept by its children if one of the state after holds it: held tells.
 *
 *     waiting' = waiting + (child's delta where the key is absent before and after) - waiting of fresh keys + held' of gone keys
 *
 * held covers the child's rows with ids below an end, and catches up when it is asked for, so that a stream of fact rows costs it nothing while no
 * parent leaves. Rows that are not kept cannot be caught up with: of a transient child it is kept from the start, unless no parent can leave, and
 * enforced facts, which have no other way to know, keep it too. Cost of a push: a lookup of the parent for each child row that came or went; a
 * lookup in waiting for each fresh key, while there are any who wait. */
#ifndef IVM__TRACK_H
#define IVM__TRACK_H

#include "split.h"

struct ivm__track; /* fact->track */

/* Makes fact->track from what the tables hold: before the fact is published. For every tracked fact, and for the enforced ones that
 * ivm__track_needed() names. overflow (a key held too often), out_of_memory. */
bool ivm__track_needed(const ivm_fact *fact);
ivm_status ivm__track_make(ivm_fact *fact, const ivm__cancel *cancel, ivm_error *error) IVM_MUST_CHECK;
void ivm__track_free(ivm_fact *fact); /* fact->track NULL is fine */
/* The same for a child whose rows become those of `store`, with other ids; `columns`: the child's in it, in the order of the parent's key. Not in
 * use until ivm__track_replace() takes it, which cannot fail; or else it is discarded (NULL is fine). */
ivm_status ivm__track_remake(const ivm_fact *fact, const ivm__store *store, const uint32_t *columns, const ivm__cancel *cancel,
                             struct ivm__track **made) IVM_MUST_CHECK;
void ivm__track_replace(ivm_fact *fact, struct ivm__track *made);
void ivm__track_discard(ivm_engine *engine, struct ivm__track *made);

/* In a push, after the batch has been applied to the tables and before enforced facts are judged and the views run: brings every fact's counts up
 * to date. On failure, and on any later one, all is undone by ivm__track_undo(). overflow, out_of_memory. */
ivm_status ivm__track_step(ivm__step *step) IVM_MUST_CHECK;
/* Ends of a step, push or refresh: neither can fail. */
void ivm__track_commit(ivm_engine *engine);
void ivm__track_undo(ivm_engine *engine);

/* Of the fact's parent's fresh and gone rows in the step under way (push or refresh), those that a child row holds on: awaited (fresh) or kept (gone), so
 * that they must not be set aside. One byte for each row of the split, laid out as its two arrays: 1 held. Both NULL: none is held. In the step's
 * arena; asked for again in the same step it gives the same arrays. overflow, out_of_memory. */
typedef struct ivm__held {
    const uint8_t *touched, *appended;
} ivm__held;
ivm_status ivm__track_held(ivm__step *step, ivm_fact *fact, const ivm__split *split, ivm__held *held) IVM_MUST_CHECK;
/* Whether the step under way brings a parent row that a child row of the state before refers to. Of a tracked fact whose parent's delta has no
 * negative row; else it may say yes where none does. out_of_memory. */
ivm_status ivm__track_awaited(ivm__step *step, ivm_fact *fact, bool *awaited) IVM_MUST_CHECK;

/* An empty Z-set of keys such as the fact's parent has, in their order. */
ivm_status ivm__track_keys(const ivm_fact *fact, ivm__zset *made) IVM_MUST_CHECK;
/* Orphans: rows that wait, and the keys they wait for, as committed. */
void ivm__track_count(const ivm_fact *fact, uint64_t *rows, uint64_t *keys);
/* The store of waiting, for snapshots. The fact is tracked. */
ivm__store *ivm__track_waiting(const ivm_fact *fact);
/* By the keys that child rows hold, for an enforced fact from a transient child: rows weigh how many. */
ivm__index *ivm__track_holders(const ivm_fact *fact);

#endif
