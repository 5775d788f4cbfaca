/* What save_table.h wrote, into stores that take the place of the engine's in one go: rows of tables, what is pending, who waits. Nothing of the
 * engine changes until they are exchanged for its own, which cannot fail. What fails frees what it has made.
 *
 * What is read may be anything: each says corrupt, in from->error, of what cannot be by itself; load_check.h of what cannot be together. */
#ifndef IVM__LOAD_TABLE_H
#define IVM__LOAD_TABLE_H

#include "pending.h"
#include "row_stream.h"
#include "track.h"

/* A table's rows. The struct must stay where it is, zeroed at first. */
typedef struct ivm__table_rows {
    ivm__store store;
    ivm__index *key_index, *whole;
    bool stale;
} ivm__table_rows;

/* `late`: what is pending of the table, apart, for deferred views. Of those whose rows can come last it is their ids that tell of them afterwards, and no
 * more rows apart. The list is put in another order. */
ivm_status ivm__table_load(const ivm_table *table, ivm__step *step, ivm__feed *from, ivm__pending **late, uint32_t late_count,
                           ivm__table_rows *made) IVM_MUST_CHECK;
/* Each becomes the other. Cannot fail. */
void ivm__table_exchange(ivm_table *table, ivm__table_rows *rows);
/* The index over the key, or, of rows that are found as a whole (of a table that allows negative weights, or keeps those alone that wait), over all
 * columns. */
ivm_status ivm__table_rows_index(const ivm_table *table, ivm__step *step, ivm__table_rows *made) IVM_MUST_CHECK;

/* The rows of a section into an empty Z-set of their layout. On failure the caller gives it up. */
ivm_status ivm__zset_load(ivm__zset *rows, const ivm__row_shape *shape, ivm__step *step, ivm__feed *from) IVM_MUST_CHECK;
/* A source's pending rows, which are laid out as `like`, apart; into one in which nothing is. */
ivm_status ivm__pending_load(ivm__layout *like, ivm__step *step, ivm__feed *from, ivm__pending *made) IVM_MUST_CHECK;
ivm_status ivm__track_load(const ivm_fact *fact, ivm__step *step, ivm__feed *from, struct ivm__track **made) IVM_MUST_CHECK;

#endif
