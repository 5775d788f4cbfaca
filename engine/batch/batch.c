/* Batches: made, filled with borrowed arrays, told what to expect, freed. Nothing here reads engine state that changes, so that one thread may
 * fill a batch while another pushes. Cost of adding arrays: a copy of their descriptors, whatever the number of rows. */
#include "batch.h"

ivm_status ivm_batch_create(ivm_engine *engine, ivm_batch **batch, ivm_error *error)
{
    if (!engine || !batch) {
        return ivm__fail_null(error, "ivm_batch_create", engine ? "batch" : "engine");
    }
    ivm__memory memory;
    ivm__memory_init(&memory, &engine->memory.allocator);
    ivm_batch *made = ivm__allocate(&memory, sizeof *made);
    if (!made) {
        return ivm__fail_memory(error);
    }
    memset(made, 0, offsetof(ivm_batch, mistake.message));
    made->mistake.message[0] = 0;
    ivm__memory_init(&made->memory, &engine->memory.allocator);
    made->engine = engine;
    *batch = made;
    return IVM_OK;
}

static size_t part_size(uint32_t columns_count)
{
    return sizeof(ivm__part) + columns_count * sizeof(ivm_column_data);
}

void ivm_batch_free(ivm_batch *batch)
{
    if (!batch) {
        return;
    }
    for (ivm__part *part = batch->parts, *next; part; part = next) {
        next = part->next;
        ivm__owned_free(&batch->memory, part->owned);
        ivm__release(&batch->memory, part, part_size(part->columns_count));
    }
    for (ivm__stated *stated = batch->stated, *next; stated; stated = next) {
        next = stated->next;
        ivm__release(&batch->memory, stated, sizeof *stated);
    }
    for (ivm__kept *held = batch->held, *next; held; held = next) {
        next = held->next;
        if (held->release) {
            held->release(held);
        }
        ivm__release(&batch->memory, held, held->size);
    }
    assert(atomic_load(&batch->memory.bytes_held) == 0);
    ivm_allocator allocator = batch->memory.allocator;
    allocator.release(allocator.context, batch, sizeof *batch);
}

ivm_status ivm_batch_status(const ivm_batch *batch, ivm_error *error)
{
    if (!batch) {
        return ivm__fail_null(error, "ivm_batch_status", "batch");
    }
    ivm_status status = batch->mistake.status;
    return status == IVM_OK ? IVM_OK : ivm__fail(error, status, "%s", batch->mistake.message);
}

uint64_t ivm__batch_rows(const ivm_batch *batch, uint64_t table_id, const ivm__part *before)
{
    uint64_t rows = 0;
    for (const ivm__part *part = batch ? batch->parts : NULL; part && part != before; part = part->next) {
        rows += part->table_id == table_id ? part->rows_count : 0;
    }
    return rows;
}

ivm__kept *ivm__batch_hold(ivm_batch *batch, size_t size)
{
    assert(size >= sizeof(ivm__kept));
    ivm__kept *held = ivm__allocate(&batch->memory, size);
    if (!held) {
        (void)ivm__fail_memory(&batch->mistake);
        return NULL;
    }
    *held = (ivm__kept){ .next = batch->held, .size = size };
    batch->held = held;
    return held;
}

ivm_status ivm__batch_accepts(ivm_batch *batch, const ivm_table *table, ivm_change change)
{
    if (batch->mistake.status != IVM_OK) {
        return batch->mistake.status;
    }
    if (!table) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "a change without a table");
    }
    if (table->engine != batch->engine) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s is of another engine", table->name);
    }
    if ((unsigned)change > IVM_DELETE_KEY) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s: %d is no change", table->name, (int)change);
    }
    if (change >= IVM_UPSERT && table->transient) {
        return ivm__fail(&batch->mistake, IVM_UNSUPPORTED, "table %s does not keep its rows: there is none to %s by a key", table->name,
                         change == IVM_UPSERT ? "update" : "delete");
    }
    if (change >= IVM_UPSERT && table->key_count == 0) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s has no key to %s by", table->name,
                         change == IVM_UPSERT ? "upsert" : "delete");
    }
    return IVM_OK;
}

ivm__part *ivm__batch_part(ivm_batch *batch, ivm_table *table, ivm_change change)
{
    uint32_t columns_count = ivm__change_columns(table, change);
    ivm__part *part = ivm__allocate_zeroed(&batch->memory, part_size(columns_count));
    if (!part) {
        (void)ivm__fail_memory(&batch->mistake);
        return NULL;
    }
    part->table = table;
    part->table_id = table->id;
    part->columns_version = table->columns_version;
    part->change = change;
    part->columns_count = columns_count;
    part->columns = (ivm_column_data *)(part + 1);
    if (batch->parts_last) {
        batch->parts_last->next = part;
    } else {
        batch->parts = part;
    }
    batch->parts_last = part;
    batch->open[table->id % IVM__BATCH_OPEN] = part;
    return part;
}

/* A column's arrays must be there; what they hold is checked when the batch is pushed. */
static ivm_status arrays_check(ivm_batch *batch, const ivm_table *table, uint32_t column, const ivm_column_data *data)
{
    bool string = IVM_TYPE_KIND(table->types[column]) == IVM_STRING;
    if (string ? !data->offsets : !data->values) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s, column %s: no array of %s", table->name,
                         table->columns[column].name, string ? "offsets" : "values");
    }
    return IVM_OK;
}

ivm_status ivm_batch_columns(ivm_batch *batch, ivm_table *table, ivm_change change, const ivm_rows *rows)
{
    if (!batch) {
        return IVM_INVALID_ARGUMENT;
    }
    IVM_TRY(ivm__batch_accepts(batch, table, change));
    if (!rows) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s: no rows are given", table->name);
    }
    uint32_t columns_count = ivm__change_columns(table, change);
    if (rows->columns_count != columns_count) {
        return ivm__fail(&batch->mistake, IVM_TYPE_MISMATCH, "table %s: %u columns are wanted, not %zu", table->name, columns_count,
                         rows->columns_count);
    }
    if (rows->rows_count == 0) {
        return IVM_OK;
    }
    if (rows->rows_count > IVM_BATCH_ROWS_MAX) {
        return ivm__fail(&batch->mistake, IVM_OVERFLOW, "table %s: %zu rows in one batch, at most %u", table->name, rows->rows_count,
                         IVM_BATCH_ROWS_MAX);
    }
    if (!rows->columns) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s: rows without columns", table->name);
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        IVM_TRY(arrays_check(batch, table, ivm__change_column(table, change, c), &rows->columns[c]));
    }
    bool weighted = change == IVM_WEIGHTED && rows->weights;
    ivm__part *part = ivm__batch_part(batch, table, change == IVM_WEIGHTED && !weighted ? IVM_INSERT : change);
    if (!part) {
        return batch->mistake.status;
    }
    memcpy(part->columns, rows->columns, columns_count * sizeof *rows->columns);
    part->rows_count = rows->rows_count;
    part->weights = weighted ? rows->weights : NULL;
    return IVM_OK;
}

ivm_status ivm_batch_state_shape(ivm_batch *batch, ivm_table *table, ivm_shape shape)
{
    if (!batch) {
        return IVM_INVALID_ARGUMENT;
    }
    IVM_TRY(ivm__batch_accepts(batch, table, IVM_INSERT));
    if ((unsigned)shape > IVM_MIXED) {
        return ivm__fail(&batch->mistake, IVM_INVALID_ARGUMENT, "table %s: %d is no shape", table->name, (int)shape);
    }
    for (ivm__stated *stated = batch->stated; stated; stated = stated->next) {
        if (stated->table_id == table->id) {
            stated->shape = shape; /* the last word counts */
            return IVM_OK;
        }
    }
    ivm__stated *stated = ivm__allocate(&batch->memory, sizeof *stated);
    if (!stated) {
        return ivm__fail_memory(&batch->mistake);
    }
    *stated = (ivm__stated){ .table_id = table->id, .shape = shape, .next = batch->stated };
    batch->stated = stated;
    return IVM_OK;
}
