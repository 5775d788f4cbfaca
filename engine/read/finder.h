/* Finders: rows of a store by their key, for readers of its snapshots. A finder is a set of {hash, row id} that only grows: a snapshot asks it for the
 * ids that ever had a hash and looks in its own rows which of them has the key. So one finder serves every snapshot that was taken while the
 * store kept it, takes no lock, and is written by the store's writer alone, one entry a row that came.
 *
 *     complete for a snapshot = each of its rows has its entry        sound = the reader compares the row's cells
 *
 * The first reader that looks a key up makes one from its snapshot's rows and offers it to the store, which adds what came since and keeps it from
 * then on. Entries of rows that went stay until the set is full; then it is made anew and readers of the old one keep that. A large one
 * is made beside the old, a piece whenever rows came (growth.h): where it is cleared, row after row is noted in it, and what comes meanwhile in both. */
#ifndef IVM__FINDER_H
#define IVM__FINDER_H

#include "growth.h"
#include "row_sort.h"

/* The columns that rows are found by; no two rows of a store have the same cells in them. */
typedef struct ivm__find_key {
    const uint32_t *columns; /* NULL: the first `count` */
    uint32_t count;
    uint64_t seed;
} ivm__find_key;

typedef struct ivm__finder {
    _Atomic uint32_t references;
    _Atomic bool used;          /* by a reader, since the store last asked */
    uint32_t idle;              /* steps since then */
    uint32_t mask;              /* slots - 1 */
    uint64_t room;              /* entries until it is full */
    struct ivm__finder *larger; /* the store's: made beside; NULL: none */
    ivm__growth growth;         /* of that: `done` counts row ids */
    ivm__pages *over;           /* made from: while it is offered */
    ivm__layout *layout;
    uint32_t key_count;
    uint32_t *columns; /* of the key, behind the slots */
    uint64_t seed;
    _Atomic uint64_t slots[]; /* hash << 32 | id + 1; 0: free */
} ivm__finder;

/* Where readers leave a finder for the store of a view or table, which may be another or gone meanwhile. */
typedef struct ivm__offer {
    _Atomic uint32_t references;
    _Atomic(ivm__finder *) finder;
} ivm__offer;

/* The hash of a row's cells in the first `count` columns of the key. */
uint64_t ivm__find_hash(const ivm__layout *layout, const uint8_t *at, const ivm__find_key *key);
/* The same of one more cell: `word` of a string is the hash of its bytes. */
uint64_t ivm__find_hash_add(uint64_t hash, uint64_t seed, ivm_type type, bool is_null, ivm__wide cell);

#define IVM__FINDER_ROWS_MAX (1u << 30)
/* Of all these rows, so many at most. NULL: out of memory. Cost: a pass, a hash and a probe a row; 16 to 32 bytes a row. */
ivm__finder *ivm__finder_make(ivm__memory *memory, const ivm__row_pages *rows, const ivm__find_key *key);
ivm__finder *ivm__finder_acquire(ivm__finder *finder); /* NULL is fine */
void ivm__finder_release(ivm__finder *finder, ivm__memory *memory);
/* The next id that had the hash; *at is 0 at first. IVM__ROW_NONE: no more. Any thread. Ids may be of rows that the reader does not have. */
ivm__row_id ivm__finder_next(const ivm__finder *finder, uint64_t hash, uint64_t *at);

ivm__offer *ivm__offer_make(ivm__memory *memory);                /* NULL: out of memory */
ivm__offer *ivm__offer_acquire(ivm__offer *offer);               /* NULL is fine */
void ivm__offer_release(ivm__offer *offer, ivm__memory *memory); /* NULL is fine */
/* Leaves the finder, made from a snapshot's pages, for the store, unless there is one. Takes a reference to both where it does. */
void ivm__offer_put(ivm__offer *offer, ivm__finder *finder, ivm__pages *over, ivm__memory *memory);

/* Whether there is something to do when a step commits. */
static inline bool ivm__store_finds(const ivm__store *store)
{
    return store->finder || (store->offer && atomic_load_explicit(&store->offer->finder, memory_order_relaxed));
}
/* Behind a commit: notes the rows that came, and takes what was offered. Cannot fail: where memory is wanting the store gives its finder up. */
void ivm__finder_commit(ivm__store *store);
/* Between steps: takes what was offered, if the store has none and it is of the same layout, and adds the rows of pages that changed since it was made. */
void ivm__finder_adopt(ivm__store *store);
/* The store's own goes. */
void ivm__finder_drop(ivm__store *store);

#endif
