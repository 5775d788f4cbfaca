/* A table's columns changed: all that is laid out anew when one comes or goes.
 *
 *     rows laid out anew, what is pending for deferred views too, a heading for views made from now on        then   published
 *
 * Until it is published nothing has changed, so that a failure frees what was made and is done. */
#ifndef IVM__COLUMN_CHANGE_H
#define IVM__COLUMN_CHANGE_H

#include "catalog.h"

typedef struct ivm__column_change {
    ivm_table *table;
    uint32_t dropped; /* a column, or IVM__COLUMN_NEW where one is added */
    ivm__arena *scratch;
    uint32_t columns_count; /* after it */
    uint32_t *from;         /* of each: what it was, or IVM__COLUMN_NEW */
    ivm__column *columns;   /* names are those of the present columns */
    ivm__heading *heading;
    ivm__layout *layout;
    ivm__store store;
    ivm__index *whole;
    ivm__zset *pending; /* what is pending, in the order in which pending_next() finds it */
    uint32_t pending_count;
    struct ivm__track **tracks; /* of the facts whose rows merge, in the order in which counting_next() finds them */
    uint32_t tracks_count;
} ivm__column_change;

/* Makes all that `dropped` (a column, or IVM__COLUMN_NEW where there is one that is `added`) takes. On failure nothing is left of it: overflow where rows
 * become equal that weigh too much together, out_of_memory. Cost: a load and a store a cell of the table, a lookup a row and index. */
ivm_status ivm__column_change_make(ivm__column_change *it, ivm_table *table, uint32_t dropped, const ivm__column *added,
                                   ivm_error *error) IVM_MUST_CHECK;
void ivm__column_change_free(ivm__column_change *it);
/* Cannot fail. Facts that name the column are gone already. */
void ivm__column_change_publish(ivm__column_change *it);

#endif
