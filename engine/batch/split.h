/* Splits: what a step does to a keyed table, key by key.
 *
 *     fresh     the key was not in the table before the step         gone      it is not in it after         changed    it is in both
 *
 * Decided by the table's keys, never by the signs of a leaf's rows: a filter can make an update look like an insertion. With every foreign key
 * intact before, no old child joins a fresh row; with it intact after, no new child joins a gone one. So a join may take all fresh parents as
 * added before anything else happens and all gone ones as removed after it: neither changes it, and between the two its delta of that
 * parent is the changed rows alone (plan/terms/prune.c). Rows taken so are set aside: read with the weight that they have on their one side, whatever the reading.
 *
 * Flags stand beside the store's touch list and the rows it appended. Cost: once a step and table; a lookup a changed row, none where the
 * step left no key two rows. */
#ifndef IVM__SPLIT_H
#define IVM__SPLIT_H

#include "catalog.h"

typedef enum ivm__fate { IVM__UNTOUCHED, IVM__CHANGED, IVM__FRESH, IVM__GONE } ivm__fate;

typedef struct ivm__split {
    ivm_table *table;
    uint8_t *touched;              /* ivm__fate of store.touched[i].row; IVM__UNTOUCHED where its weight is as it was */
    uint8_t *appended;             /* of row store.step_end + i; IVM__UNTOUCHED where it is touched, too: see there */
    uint64_t fresh, gone, changed; /* rows; an update is two changed ones */
    ivm__aside moved;              /* all fresh and gone rows */
    struct ivm__split *next;       /* of the step */
} ivm__split;

/* The table's split in the step under way (a push: the batch's; a refresh: what is laid over the table), made when it is first asked for. The table
 * has a key. In the step's arena. out_of_memory. */
ivm_status ivm__split_of(ivm__step *step, ivm_table *table, const ivm__split **split) IVM_MUST_CHECK;

/* Whether the step changed the table at all. */
static inline bool ivm__split_is_wanted(const ivm_table *table)
{
    return table->key_count && (table->store.touched_count || table->store.rows_end > table->store.step_end);
}
/* How many rows the step touched and appended: the lengths of the two arrays. */
static inline uint32_t ivm__split_touched(const ivm__split *split)
{
    return split->table->store.touched_count;
}
static inline uint32_t ivm__split_appended(const ivm__split *split)
{
    return split->table->store.rows_end - split->table->store.step_end;
}

#endif
