/* Saving rows: what must wait for no push is held by snapshots, which cost nothing to take. See save_table.h. */
#include "save_table.h"

#include "snapshot.h"
#include "track_inside.h"
#include "transient.h"

typedef struct ivm__row_held {
    ivm__section section;
    ivm_snapshot *snapshot;
    ivm__row_id first; /* rows before it are not meant */
    ivm__row_shape shape;
} ivm__row_held;

/* ---- Shapes ----------------------------------------------------------------------------------------------------------------------- */

ivm__row_shape ivm__table_shape(const ivm_table *table)
{
    const ivm__layout *layout = table->store.layout;
    ivm__row_shape shape = { .types = layout->types, .nullable = layout->nullable, .columns_count = layout->columns_count };
    if (table->key_count) {
        shape.order = table->key;
        shape.order_count = table->key_count;
        shape.weights = IVM__WEIGHTS_ONE;
    } else {
        shape.weights = table->allow_negative ? IVM__WEIGHTS_NOT_0 : IVM__WEIGHTS_ABOVE_0;
    }
    return shape;
}

ivm__row_shape ivm__pending_shape(const ivm__layout *layout)
{
    return (ivm__row_shape){ layout->types, layout->nullable, layout->columns_count, NULL, 0, IVM__WEIGHTS_NOT_0 };
}

/* Of a transient child rows may have gone that never came. */
ivm__row_shape ivm__track_shape(const ivm_fact *fact, const ivm__layout *layout)
{
    ivm__weights_kind weights = fact->child->transient ? IVM__WEIGHTS_NOT_0 : IVM__WEIGHTS_ABOVE_0;
    return (ivm__row_shape){ layout->types, layout->nullable, layout->columns_count, NULL, 0, weights };
}

/* ---- Writing ---------------------------------------------------------------------------------------------------------------------- */

void ivm__row_saver_init(ivm__row_saver *saver, ivm_engine *engine, ivm__block_writer *writer, size_t sort_bytes)
{
    *saver = (ivm__row_saver){ .engine = engine, .writer = writer, .sort_bytes = sort_bytes };
    ivm__arena_init(&saver->arena, &engine->memory);
}

void ivm__row_saver_deinit(ivm__row_saver *saver)
{
    for (uint32_t i = saver->held_written; i < saver->held_count; i++) {
        ivm_snapshot_close(saver->held[i].snapshot);
    }
    ivm__release(&saver->engine->memory, saver->held, saver->held_capacity * sizeof *saver->held);
    ivm__arena_deinit(&saver->arena);
    *saver = (ivm__row_saver){ 0 };
}

/* The writer has said what it failed with. */
static ivm_status saver_status(const ivm__row_saver *saver, ivm_status status)
{
    return status == IVM_OK || saver->writer->status != IVM_OK ? status : ivm__rows_save_tell(saver->writer->error, status);
}

static ivm_status rows_write(ivm__row_saver *saver, const ivm__row_pages *rows, const ivm__row_shape *shape)
{
    return ivm__rows_save(&saver->writer->sink, &saver->arena, rows, shape, saver->sort_bytes, (ivm__row_payload){ NULL, NULL, NULL });
}

static ivm_status keys_write(ivm__row_saver *saver, const ivm_fact *fact, const ivm__zset *keys)
{
    if (!keys->whole) {
        return IVM_OK;
    }
    ivm__row_pages rows = ivm__store_row_pages(&keys->store);
    ivm__row_shape shape = ivm__track_shape(fact, keys->store.layout);
    return rows_write(saver, &rows, &shape);
}

ivm_status ivm__row_saver_track(ivm__row_saver *saver, const ivm_fact *fact)
{
    const ivm__track *track = fact->track;
    assert(track);
    IVM_TRY(ivm__block_writer_begin(saver->writer, (ivm__section){ IVM__SECTION_TRACK, ivm__fact_ordinal(fact), 0 }));
    ivm_status status = keys_write(saver, fact, &track->waiting);
    if (status == IVM_OK && fact->child->transient) { /* else held is made again when it is asked for */
        status = keys_write(saver, fact, &track->held);
    }
    IVM_TRY(saver_status(saver, status));
    return ivm__block_writer_end(saver->writer);
}

/* ---- Held ------------------------------------------------------------------------------------------------------------------------- */

/* The shape's arrays may change once the lock is given up, but for the layout's, which the snapshot keeps. */
static ivm_status hold(ivm__row_saver *saver, ivm__row_held held, const ivm__store *store)
{
    ivm__row_shape *shape = &held.shape;
    if (shape->order) {
        uint32_t *order = ivm__arena_allocate(&saver->arena, shape->order_count * sizeof *order);
        if (!order) {
            return IVM_OUT_OF_MEMORY;
        }
        memcpy(order, shape->order, shape->order_count * sizeof *order);
        shape->order = order;
    }
    IVM_TRY(ivm__grow(&saver->engine->memory, (void **)&saver->held, &saver->held_capacity, saver->held_count + 1ull, sizeof *saver->held));
    IVM_TRY(ivm__snapshot_of(saver->engine, store, &held.snapshot));
    saver->held[saver->held_count++] = held;
    return IVM_OK;
}

ivm_status ivm__row_saver_pending(ivm__row_saver *saver, uint32_t view, uint32_t source, const ivm__pending *pending)
{
    const ivm__store *store = pending->apart ? &pending->rows.store : ivm__source_store(pending->source);
    ivm__row_held held = { .section = { IVM__SECTION_PENDING, view, source },
                           .first = pending->apart ? 0 : pending->first,
                           .shape = ivm__pending_shape(store->layout) };
    return saver_status(saver, hold(saver, held, store));
}

/* The rows of a table that keeps those alone that wait, without such as wait no more; copied, since the store may be cleared while pushes go on. */
static ivm_status hold_waiting(ivm__row_saver *saver, ivm__step *step, ivm_table *table, ivm__row_held held)
{
    ivm__zset waiting;
    IVM_TRY(ivm__transient_waiting(step, table, &waiting));
    held.shape.types = waiting.store.layout->types;
    ivm_status status = hold(saver, held, &waiting.store);
    ivm__zset_deinit(&waiting);
    return status;
}

ivm_status ivm__row_saver_table(ivm__row_saver *saver, ivm__step *step, ivm_table *table)
{
    ivm__row_held held = { .section = { IVM__SECTION_ROWS, ivm__table_ordinal(table), 0 }, .shape = ivm__table_shape(table) };
    return saver_status(saver, table->transient ? hold_waiting(saver, step, table, held) : hold(saver, held, &table->store));
}

ivm_status ivm__row_saver_write(ivm__row_saver *saver)
{
    while (saver->held_written < saver->held_count) {
        ivm__row_held *held = &saver->held[saver->held_written];
        ivm__row_pages rows = ivm__snapshot_row_pages(held->snapshot);
        rows.first = held->first;
        ivm_status status = ivm__block_writer_begin(saver->writer, held->section);
        if (status == IVM_OK) {
            status = rows_write(saver, &rows, &held->shape);
        }
        ivm_snapshot_close(held->snapshot);
        saver->held_written++;
        IVM_TRY(saver_status(saver, status));
        IVM_TRY(ivm__block_writer_end(saver->writer));
    }
    return IVM_OK;
}
