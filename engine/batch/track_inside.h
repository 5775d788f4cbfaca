/* What the files of tracked facts share: the state of one, and keys on their way from rows to the Z-sets that count them. */
#ifndef IVM__TRACK_INSIDE_H
#define IVM__TRACK_INSIDE_H

#include "track.h"

typedef struct ivm__track {
    ivm__zset waiting;                     /* zeroed where the fact is enforced: nobody waits */
    ivm__zset held;                        /* zeroed until it is first asked for */
    ivm__row_id held_end, held_end_before; /* held counts the child's rows before it; before the step */
    ivm__weight orphans, orphans_before;   /* the weights of waiting in all */
    const ivm__split *asked;               /* in this step, and what was answered; NULL: nothing */
    ivm__held answer;
} ivm__track;

/* Rows of a store, looked at as keys: some of their columns in the order of the parent's key. */
typedef struct ivm__key_source {
    const ivm__store *store;
    const uint32_t *columns;
    uint32_t columns_count;
    bool once;                 /* a row counts once, whatever its weight */
    ivm__row_id end;           /* of those touched: the ones before it */
    const ivm__cancel *cancel; /* of whom walks them; NULL: nobody asks */
} ivm__key_source;

/* The fact's child and parent as such. The child's columns lie in the arena. */
ivm_status ivm__track_child(const ivm_fact *fact, ivm__arena *arena, ivm__key_source *child) IVM_MUST_CHECK;
ivm__key_source ivm__track_parent(const ivm_fact *fact);

/* These rows as a chunk of keys, those with a null in it left out: *keys NULL where none is left. `weights` is kept by reference; NULL: 1 each. */
ivm_status ivm__track_rows(const ivm__key_source *source, ivm__arena *arena, const ivm__row_id *rows, ivm__weight *weights, uint32_t count,
                           ivm__chunk **keys) IVM_MUST_CHECK;
/* The same of chosen rows of a chunk, whose keys have no null: `columns` says where they are (NULL: the first). `like`: a layout of such keys. */
ivm_status ivm__track_chosen(ivm__arena *arena, const ivm__chunk *chunk, const uint32_t *columns, const ivm__layout *like,
                             const uint32_t *rows, uint32_t count, ivm__chunk **keys) IVM_MUST_CHECK;

/* Walks rows, at most IVM__CHUNK_ROWS a call, from *next on; 0 at the end. Weights are how often each counts now; how much more often than before
 * the step; the same of the touched ones before source->end. */
typedef uint32_t ivm__track_walk(const ivm__key_source *source, uint32_t *next, ivm__row_id *rows, ivm__weight *weights);
ivm__track_walk ivm__track_standing, ivm__track_changed, ivm__track_touched;

/* Adds the keys of all rows that the walk gives from `first` on. IVM_CANCELLED: no error tells of it. */
ivm_status ivm__track_add(const ivm__key_source *source, ivm__track_walk *walk, ivm__row_id first, ivm__arena *scratch,
                          ivm__zset *to) IVM_MUST_CHECK;

/* The rows of the Z-set that hold the keys of a chunk: positions in it, ids, and how many. Arrays lie in the arena. */
typedef struct ivm__track_found {
    uint32_t *positions;
    ivm__row_id *rows;
    uint32_t count;
} ivm__track_found;
ivm_status ivm__track_find(const ivm__zset *in, ivm__arena *arena, const ivm__chunk *keys, ivm__track_found *found) IVM_MUST_CHECK;
/* Those of the keys that weigh something in the Z-set now, each as much as it does there: *weighed NULL where none does. */
ivm_status ivm__track_weigh(const ivm__zset *in, ivm__arena *arena, const ivm__chunk *keys, ivm__chunk **weighed) IVM_MUST_CHECK;

/* Rows of the split with this fate, at most IVM__CHUNK_ROWS, from *next on (0 at first): their ids, and, where `places` is not NULL, where in the
 * split they stand: in `touched`, or, past it, in `appended`. 0 at the end. */
uint32_t ivm__split_rows(const ivm__split *split, ivm__fate fate, uint32_t *next, ivm__row_id *rows, uint32_t *places);

/* held is there and covers all rows of the child. out_of_memory, or IVM_CANCELLED, of which no error tells. */
ivm_status ivm__track_reach(const ivm_fact *fact, const ivm__step *step) IVM_MUST_CHECK;
/* Fails with overflow, which names the fact: a count has left int64; or, in the second, only where one of the Z-set has. */
ivm_status ivm__track_overflow(const ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__track_fits(const ivm_fact *fact, const ivm__zset *counts, ivm_error *error) IVM_MUST_CHECK;

#endif
