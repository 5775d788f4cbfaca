/* Sources: what a scan reads, a table or a view, and what changed of it in the step under way.
 *
 *     a push          a table's delta as staging made it; a view's as its program, which ran before, changed its rows
 *     a refresh       what is pending: laid over the rows, so that they are read as they were at the last refresh and as they are now
 *     a filling       everything, before which there was nothing; where the step is of the past, everything as it was before what is laid over it
 */
#ifndef IVM__SOURCE_H
#define IVM__SOURCE_H

#include "catalog.h"

static inline bool ivm__source_is(ivm__source source)
{
    return source.table || source.view;
}
static inline ivm__store *ivm__source_store(ivm__source source)
{
    assert(ivm__source_is(source));
    return source.table ? &source.table->store : source.view->program.result;
}
uint32_t ivm__source_columns_count(ivm__source source); /* as its heading has them */

/* Whether the source's columns are those of its store, in their order. */
static inline bool ivm__source_is_present(ivm__source source)
{
    return !source.heading || source.heading == source.table->heading;
}
/* The store's column that the source's is; it is one that is read. */
static inline uint32_t ivm__source_column(ivm__source source, uint32_t column)
{
    uint32_t now = ivm__source_is_present(source) ? column : source.heading->columns[column];
    assert(now != UINT32_MAX);
    return now;
}
/* A chunk of the store's columns as one of the source's, nothing copied; what has been dropped is not carried. NULL: out of memory. */
ivm__chunk *ivm__source_chunk(ivm__source source, ivm__arena *arena, ivm__chunk *chunk);

/* Where a walk over a source's delta stands; zeroed at first. */
typedef struct ivm__delta_walk {
    uint32_t next;
} ivm__delta_walk;
/* The next chunk of the source's delta in this step, all columns carried; *chunk NULL at the end. Chunks read from a store, which are those of a
 * view, of a refresh and of a filling, lie in step->scratch: the caller goes back to its mark between chunks. */
ivm_status ivm__source_delta_next(ivm__step *step, ivm__source source, ivm__delta_walk *walk, ivm__chunk **chunk) IVM_MUST_CHECK;
/* The delta's rows that are set aside, or those that are not; of a table. */
ivm_status ivm__source_aside_next(ivm__step *step, ivm__source source, const ivm__aside *aside, bool wanted, ivm__delta_walk *walk,
                                  ivm__chunk **chunk) IVM_MUST_CHECK;
uint64_t ivm__source_delta_rows(const ivm__step *step, ivm__source source);
ivm_shape ivm__source_delta_shape(const ivm__step *step, ivm__source source);

#endif
