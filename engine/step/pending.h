/* Pending deltas: what came of a deferred view's sources since it was last refreshed, one consolidated delta for each.
 *
 *     rows of the source from an id on       while all that happened is that new rows came: no cost to a push, and consolidated as they stand
 *     a Z-set apart from it                  from the first change of a row that was there at the last refresh
 *
 * Collected in every step that changes a source, with that step's undo; laid over the source by a refresh. A row that came and went in between is in
 * neither. Cost: nothing, or a lookup a row that a push changes. */
#ifndef IVM__PENDING_H
#define IVM__PENDING_H

#include "source.h"

typedef struct ivm__pending {
    ivm__source source;
    ivm__row_id first; /* rows of the source from here on have come since */
    bool apart;        /* the delta is in `rows`, else it is those rows */
    bool collecting;   /* `rows` has a part in the step under way */
    bool apart_before; /* where collecting: `apart` as the step found it */
    ivm__zset rows;    /* laid out as the source's rows are; zeroed where not apart */
} ivm__pending;

static inline uint32_t ivm__pendings_count(const ivm_view *view)
{
    return view->pending ? view->tables_count + view->views_count : 0;
}

/* Nothing is pending yet; for a view that lists its sources. */
ivm_status ivm__pendings_make(ivm_view *view) IVM_MUST_CHECK;
/* Adds what the step under way has changed of the sources. overflow where a net row leaves int64, out_of_memory. */
ivm_status ivm__pendings_collect(ivm_view *view, ivm__step *step) IVM_MUST_CHECK;
/* Neither can fail. */
void ivm__pendings_commit(ivm_view *view);
void ivm__pendings_undo(ivm_view *view);

/* Lays what is pending over the sources. Fails for memory alone; lifted in any case. */
ivm_status ivm__pendings_lay(ivm_view *view, ivm__step *step) IVM_MUST_CHECK;
void ivm__pendings_lift(ivm_view *view);
/* Nothing is pending from now on. */
void ivm__pendings_clear(ivm_view *view);
void ivm__pendings_free(ivm_view *view);

/* What is to be pending instead, made beside it: one for each of the view's sources, with nothing in it, `first` IVM__ROW_NONE. Once it has the place of
 * view->pending and the sources hold what they will, ivm__pendings_place() says from which row on whatever comes is pending, where that is not said
 * yet. */
ivm_status ivm__pendings_beside(const ivm_view *view, ivm__pending **made) IVM_MUST_CHECK;
void ivm__pendings_place(ivm_view *view);
void ivm__pendings_discard(const ivm_view *view, ivm__pending *made); /* NULL is fine */
/* Whether what is pending apart can be: no row of a source weighed, before it, less than it may, or more, and no key had two rows. *wrong: the first row of
 * it that cannot, or IVM__ROW_NONE. Fails for memory alone. Cost: a lookup a pending row. */
ivm_status ivm__pending_check(const ivm__pending *it, ivm__step *step, ivm__row_id *wrong) IVM_MUST_CHECK;

#endif
