/* Rows not kept: a transient table's rows are carried through the views and dropped. Where tracked facts lead from them, those that wait
 * for a parent are kept in the table's store, as a Z-set, until it has come.
 *
 *     row waits      a key on its way through the facts of a view's join, its own or that of a parent found, has no parent yet, and none of
 *                    them has a null: a row with one is joined to nothing, for good, since parents are append_only
 *     store' = (store + delta, where the row waits)  -  rows that wait no longer
 *
 * Of a table with a partition all rows are kept that wait for a parent of their own, be it for no view: so it can be said of each partition
 * who waits. That holds where the parent is append_only; else it takes the rows that wait for nothing, too.
 *
 * A join needs no more of the rows of before: a fresh parent joins only rows that waited for it. While the views run the store is as it was
 * before the step; it changes after them. Cost of a push: nothing where no fact is tracked or nobody waits along one; else a lookup for
 * each row of the delta and fact along which someone does. A fresh parent costs a lookup while rows wait, and what waited for it a
 * check a row. */
#ifndef IVM__TRANSIENT_H
#define IVM__TRANSIENT_H

#include "stage.h"

#define IVM__HOP_ROW UINT32_MAX

/* From a row to a parent: along `fact`, by the key that the row of hop `from` has, or, IVM__HOP_ROW, that the table's own row has. */
typedef struct ivm__hop {
    ivm_fact *fact;
    uint32_t from; /* an earlier hop */
} ivm__hop;

/* How a join reaches all its other leaves from that of a transient table, a view's; or a fact's own way to its parent. Listed for the table where its
 * rows may wait. */
typedef struct ivm__hops {
    ivm_table *table;
    ivm__hop *hop;
    uint32_t count, capacity;
    bool waits;             /* one of them is tracked */
    struct ivm__hops *next; /* of the view; NULL: a fact's */
    struct ivm__hops *next_of_table;
} ivm__hops;

/* A view's hops come into force: their facts are pinned, and their tables keep what waits. Cannot fail. */
void ivm__hops_publish(const ivm_view *view);
/* And out of it, the view going: rows that waited for it alone go at once or with the next push. Cannot fail. */
void ivm__hops_retire(const ivm_view *view);
void ivm__hops_free(ivm_view *view);
/* Joins of the view that have some. */
static inline uint32_t ivm__hops_count(const ivm_view *view)
{
    uint32_t count = 0;
    for (const ivm__hops *hops = view->hops; hops; hops = hops->next) {
        count++;
    }
    return count;
}
/* The first view that rests on a fact with pins. */
const ivm_view *ivm__hops_view(const ivm_fact *fact);

/* Whether all rows that wait under a fact are kept, whatever the views. */
static inline bool ivm__fact_keeps_waiting(const ivm_fact *fact)
{
    return fact->trust == IVM_TRACKED && fact->child->transient && fact->child->partitioned && fact->parent->append_only;
}
/* Its own hops, for one of which that is true: made before it is in force, as views' are. */
ivm_status ivm__fact_hops_make(ivm_fact *fact) IVM_MUST_CHECK;
void ivm__fact_hops_publish(ivm_fact *fact); /* hops NULL is fine, and with the others */
void ivm__fact_hops_retire(ivm_fact *fact);
void ivm__fact_hops_free(ivm_fact *fact);

/* In a push, after the views have run: the tables' stores become the rows that wait after it. On failure they are undone with the tables'
 * own. overflow, out_of_memory. */
ivm_status ivm__transient_step(ivm__step *step) IVM_MUST_CHECK;

/* A copy of the table's rows without those that wait for nothing, between steps. out_of_memory: nothing was made. */
ivm_status ivm__transient_waiting(ivm__step *step, const ivm_table *table, ivm__zset *waiting) IVM_MUST_CHECK;

#endif
