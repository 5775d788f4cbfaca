/* Journals: who is told of every change of an engine when nothing can fail any more but the telling, and before anybody can see it.
 *
 *     staged, carried through the views -> told, and kept where it was told to -> committed
 *
 * What could not be told is undone as what could not be staged is. An engine has one journal or, NULL, none: then nothing here costs more than a look.
 * A record is its kind and a payload, all little endian:
 *
 *     PUSH            u8: has a position; if so u16 size, bytes | per table that changed: u32 ordinal, rows (row_code.h, loose), UINT32_MAX u32
 *     others          u32 size, then
 *       TABLE, FACT, VIEW                    as in a catalog (catalog_code.h, plan/saved/catalog_view.h)
 *       TABLE_DROP, FACT_REMOVE, VIEW_DROP,
 *       REFRESH                              u32 ordinal
 *       COLUMN_RENAME                        u32 ordinal of the table, its name, the new one
 *       COLUMN_ADD                           u32 ordinal of the table, name, type u32
 *       COLUMN_DROP                          u32 ordinal of the table, name
 *
 * Ordinals are positions in the engine's lists before the change. */
#ifndef IVM__JOURNAL_H
#define IVM__JOURNAL_H

#include "batch.h"
#include "code.h"

/* They are on disks: new ones come last. */
typedef enum ivm__record {
    IVM__RECORD_PUSH = 1,
    IVM__RECORD_REFRESH,
    IVM__RECORD_TABLE,
    IVM__RECORD_TABLE_DROP,
    IVM__RECORD_FACT,
    IVM__RECORD_FACT_REMOVE,
    IVM__RECORD_VIEW,
    IVM__RECORD_VIEW_DROP,
    IVM__RECORD_COLUMN_RENAME,
    IVM__RECORD_COLUMN_ADD,
    IVM__RECORD_COLUMN_DROP,
    IVM__RECORD_END
} ivm__record;

typedef struct ivm__journal ivm__journal;
/* Whoever keeps one puts it first in a struct of its own. The engine has been entered, but for `submit`. */
struct ivm__journal {
    /* A push that has been carried through: every table's delta is there. Errors go to step->error. */
    ivm_status (*push)(ivm__journal *self, ivm__step *step, const ivm_batch *batch);
    /* Any other change. */
    ivm_status (*change)(ivm__journal *self, ivm__record kind, const void *bytes, size_t size, ivm_error *error);
    /* Does all of ivm_push_batch() but for looking at the batch and freeing it, alone or together with those of other threads. NULL: that call does it. */
    ivm_status (*submit)(ivm__journal *self, ivm_batch *batch, ivm_stats *stats, ivm_error *error);
    /* The engine is about to be closed: what was told is kept. After a failure it is not tried again. */
    ivm_status (*settle)(ivm__journal *self, ivm_error *error);
    void (*close)(ivm__journal *self); /* frees it */
};

static inline ivm_status ivm__journal_push(ivm__step *step, const ivm_batch *batch)
{
    ivm__journal *journal = step->engine->journal;
    return journal ? journal->push(journal, step, batch) : IVM_OK;
}
/* Tells what the code says; takes the code, whatever the outcome. */
ivm_status ivm__journal_code(ivm_engine *engine, ivm__record kind, ivm__code *code, ivm_error *error) IVM_MUST_CHECK;
/* A table or a fact that is made, but in no list yet. */
ivm_status ivm__journal_table(const ivm_table *table, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__journal_fact(const ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;
/* What is about to go, or to be refreshed. */
ivm_status ivm__journal_table_drop(const ivm_table *table, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__journal_fact_remove(const ivm_fact *fact, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__journal_view_drop(const ivm_view *view, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__journal_refresh(const ivm_view *view, ivm_error *error) IVM_MUST_CHECK;
/* `name`: the column's as it is; `renamed` NULL: it is dropped. */
ivm_status ivm__journal_column(const ivm_table *table, const char *name, const char *renamed, ivm_error *error) IVM_MUST_CHECK;
ivm_status ivm__journal_column_add(const ivm_table *table, const ivm__column *added, ivm_error *error) IVM_MUST_CHECK;

#endif
