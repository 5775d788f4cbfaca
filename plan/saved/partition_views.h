/* What views keep of rows that their tables do not, partition by partition.
 *
 * Whatever else a view shows is computed again from rows that are there. Of a transient table's there are none: what a view made of them is kept where
 * they end, its frontier, and that can be told apart by partition only where the partition is one of its columns:
 *
 *     an aggregate with the partition column among its groups        its groups, with their states
 *     plain rows, with the partition column among them, as the view  its rows
 *
 * Between the table and its frontier there may be filters, projects, inner joins and union_all of such inputs: none of them keeps a row. Whether that is
 * so is a matter of the catalog alone. */
#ifndef IVM__PARTITION_VIEWS_H
#define IVM__PARTITION_VIEWS_H

#include "plan.h"

typedef struct ivm__frontier {
    const ivm_view *view;
    uint32_t view_ordinal;
    uint32_t place;  /* of its operator in the view's program */
    uint32_t column; /* of its holding's rows, that is their partition */
} ivm__frontier;

typedef struct ivm__frontiers {
    ivm__frontier *list; /* views in their order, of each the inputs first */
    uint32_t count;
} ivm__frontiers;

/* All of them, in the arena. unsupported names the view and the table that stand against it, or the foreign key; out_of_memory. The lock is held. */
ivm_status ivm__frontiers_find(ivm_engine *engine, ivm__arena *arena, ivm__frontiers *found, ivm_error *error) IVM_MUST_CHECK;

/* A frontier's operator in a program of its view, and what it holds: one holding, of rows. */
typedef struct ivm__frontier_holding {
    const ivm__store *store;
    uint32_t columns_count;
    ivm__row_save *save; /* NULL: rows alone */
    const void *context;
} ivm__frontier_holding;
static inline ivm__operator *ivm__frontier_operator(const ivm__frontier *frontier, const ivm__program *program)
{
    assert(frontier->place < program->operators_count);
    return program->operators[frontier->place];
}
ivm__frontier_holding ivm__frontier_holds(const ivm__operator *operator);

/* Once all of a program's holdings of this frontier are loaded: the operators below it learn what has passed through them, by what it has come to. */
void ivm__frontier_stand(const ivm__frontier *frontier, const ivm__program *program);

#endif
