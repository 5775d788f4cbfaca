/* Rows of tables, what is pending for deferred views and who waits under facts, as sections of a framed stream. load_table.h reads them.
 *
 *     TRACK fact              written at once: waiting keys, then, where rows of the child are not kept, held keys
 *     PENDING view, source    ROWS table              held by snapshots, and written when the caller wants, without the engine's lock
 *
 * Rows of a table with a key ascend by it, so that whoever reads sees that none is there twice; all others by all their columns. */
#ifndef IVM__SAVE_TABLE_H
#define IVM__SAVE_TABLE_H

#include "block.h"
#include "catalog.h"
#include "pending.h"
#include "row_stream.h"

/* What the rows of a section are like. The arrays are the table's or the layout's. */
ivm__row_shape ivm__table_shape(const ivm_table *table);
ivm__row_shape ivm__pending_shape(const ivm__layout *layout);
ivm__row_shape ivm__track_shape(const ivm_fact *fact, const ivm__layout *layout); /* of its keys */

typedef struct ivm__row_saver {
    ivm_engine *engine;
    ivm__block_writer *writer;
    ivm__arena arena;
    size_t sort_bytes;
    struct ivm__row_held *held; /* to be written later, in their order */
    uint32_t held_count, held_capacity, held_written;
} ivm__row_saver;

/* The writer's error is told by all of them. Deinit it, whatever the outcome. */
void ivm__row_saver_init(ivm__row_saver *saver, ivm_engine *engine, ivm__block_writer *writer, size_t sort_bytes);
ivm_status ivm__row_saver_track(ivm__row_saver *saver, const ivm_fact *fact) IVM_MUST_CHECK;
/* Take a snapshot. The engine's lock is held; no step is under way. */
ivm_status ivm__row_saver_pending(ivm__row_saver *saver, uint32_t view, uint32_t source, const ivm__pending *pending) IVM_MUST_CHECK;
ivm_status ivm__row_saver_table(ivm__row_saver *saver, ivm__step *step, ivm_table *table) IVM_MUST_CHECK;
/* Writes what is held, and closes each snapshot when its rows are written. The lock need not be held. */
ivm_status ivm__row_saver_write(ivm__row_saver *saver) IVM_MUST_CHECK;
void ivm__row_saver_deinit(ivm__row_saver *saver); /* closes the snapshots that are left */

#endif
