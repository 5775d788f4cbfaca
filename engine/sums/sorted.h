/* Sorted rows: the ids of a store's rows in one B+ tree, in an order given by their columns, so that the rows of a group can be walked from its
 * first on. The nodes and the tree are those of the ordered Z-sets.
 *
 *     order: keys[0], keys[1], ...      group: rows equal in the first groups_count keys
 *
 * Within a group rows stand in the order; groups stand one after the other, those of texts in no order that means anything.
 * No two rows of the tree are equal in all keys. A row must be as it was put in, in body and texts, until it is taken out. */
#ifndef IVM__SORTED_H
#define IVM__SORTED_H

#include "cancel.h"
#include "ordered_tree.h"
#include "store.h"

typedef struct ivm__sorted_key {
    uint32_t column;
    bool descending, nulls_first;
} ivm__sorted_key;

typedef struct ivm__sorted {
    ivm__ordered tree; /* its group is the row, its cell what the row's order begins with */
    const ivm__store *store;
    const ivm__sorted_key *keys; /* borrowed */
    uint32_t keys_count, groups_count;
} ivm__sorted;

void ivm__sorted_init(ivm__sorted *sorted, const ivm__store *store, const ivm__sorted_key *keys, uint32_t keys_count,
                      uint32_t groups_count);
void ivm__sorted_deinit(ivm__sorted *sorted); /* a zeroed one is fine */

/* A row as it is compared and kept. */
ivm__ordered_key ivm__sorted_entry(const ivm__sorted *sorted, ivm__row_id row);
/* <0, 0, >0 */
int ivm__sorted_compare(const ivm__sorted *sorted, ivm__ordered_key a, ivm__ordered_key b);
bool ivm__sorted_same_group(const ivm__sorted *sorted, ivm__ordered_key a, ivm__ordered_key b);
/* Puts entries in order; `spare` has room for as many. Of entries with cells unlike the rows are not looked at. Cost: n log n comparisons. IVM_CANCELLED,
 * of which no error tells, where the call is cancelled (NULL: nobody asks): then some may be lost. */
ivm_status ivm__sorted_sort(const ivm__sorted *sorted, ivm__ordered_key *entries, ivm__ordered_key *spare, uint32_t count,
                            const ivm__cancel *cancel) IVM_MUST_CHECK;

/* Puts a row in. Fails for memory alone, then nothing has changed. */
ivm_status ivm__sorted_insert(ivm__sorted *sorted, ivm__ordered_key entry) IVM_MUST_CHECK;
/* Takes a row out that is there. Cannot fail. */
void ivm__sorted_remove(ivm__sorted *sorted, ivm__row_id row);
/* Takes all rows out, whatever has become of them. Cost: a visit to each node. */
void ivm__sorted_clear(ivm__sorted *sorted);
/* Leads to the first row of the entry's group; false: there is none. */
bool ivm__sorted_find_group(const ivm__sorted *sorted, ivm__ordered_key entry, ivm__ordered_path *path);
/* On to the next row of whatever group; false: that was the last. */
bool ivm__sorted_next(const ivm__sorted *sorted, ivm__ordered_path *path);
static inline ivm__ordered_key ivm__sorted_at(const ivm__ordered_path *path)
{
    return ivm__ordered_node_key(path->node[0], path->at[0]);
}

uint64_t ivm__sorted_bytes(const ivm__sorted *sorted);
const char *ivm__sorted_validate(const ivm__sorted *sorted); /* for tests */

#endif
