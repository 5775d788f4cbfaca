/* Loading rows into stores of their own. See load_table.h. Cost: an insertion a row; the index over a key is filled once they are all there. */
#include "load_table.h"

#include "save_table.h"

/* ---- Tables ----------------------------------------------------------------------------------------------------------------------- */

static ivm_status table_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__store *store = context;
    if (store->rows_live + chunk->rows_count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(from->error, IVM_CORRUPT, "more than %u rows of a table", IVM_TABLE_ROWS_MAX);
    }
    IVM_TRY(ivm__store_put_chunk(store, chunk, NULL));
    ivm__store_commit(store);
    return IVM_OK;
}

ivm_status ivm__table_rows_index(const ivm_table *table, ivm__step *step, ivm__table_rows *made)
{
    if (table->key_count) {
        return ivm__store_index(&made->store, table->key, table->key_count, true, &made->key_index);
    }
    if ((!table->allow_negative && !table->transient) || made->store.rows_live == 0) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    uint32_t *columns = ivm__arena_allocate(step->scratch, table->columns_count * sizeof *columns);
    for (uint32_t c = 0; columns && c < table->columns_count; c++) {
        columns[c] = c;
    }
    ivm_status status = columns ? ivm__store_index(&made->store, columns, table->columns_count, true, &made->whole) : IVM_OUT_OF_MEMORY;
    ivm__arena_back(step->scratch, mark);
    return status;
}

ivm_status ivm__table_load(const ivm_table *table, ivm__step *step, ivm__feed *from, ivm__table_rows *made)
{
    ivm__row_shape shape = ivm__table_shape(table);
    IVM_TRY(ivm__store_init(&made->store, step->memory, step->texts, step->seed, table->store.layout));
    ivm_status status = ivm__rows_load(from, step->scratch, step->texts, &shape, table_take, &made->store);
    if (status == IVM_OK) {
        status = ivm__table_rows_index(table, step, made);
    }
    if (status != IVM_OK) {
        ivm__store_undo(&made->store);
        ivm__store_deinit(&made->store);
        *made = (ivm__table_rows){ 0 };
        return status;
    }
    ivm__store_commit(&made->store); /* the last step has changed nothing */
    return IVM_OK;
}

void ivm__table_replace(ivm_table *table, ivm__table_rows *made)
{
    ivm__store_replace(&table->store, &made->store);
    table->key_index = made->key_index;
    table->whole = made->whole;
    table->stale = false;
}

/* ---- What is pending ---------------------------------------------------------------------------------------------------------------- */

typedef struct intake {
    ivm__zset *rows;
    ivm__step *step;
} intake;

/* Rows are apart from each other already: they ascend. */
static ivm_status zset_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    const intake *in = context;
    (void)from;
    IVM_TRY(ivm__zset_add(in->rows, in->step->scratch, chunk, NULL, 1));
    ivm__store_commit(&in->rows->store);
    return IVM_OK;
}

ivm_status ivm__zset_load(ivm__zset *rows, const ivm__row_shape *shape, ivm__step *step, ivm__feed *from)
{
    intake in = { rows, step };
    IVM_TRY(ivm__rows_load(from, step->scratch, step->texts, shape, zset_take, &in));
    ivm__store_commit(&rows->store);
    return IVM_OK;
}

ivm_status ivm__pending_load(ivm__layout *like, ivm__step *step, ivm__feed *from, ivm__zset *made)
{
    ivm__row_shape shape = ivm__pending_shape(like);
    IVM_TRY(ivm__zset_init(made, step->memory, step->texts, step->seed, like));
    ivm_status status = ivm__zset_load(made, &shape, step, from);
    if (status != IVM_OK) {
        ivm__store_undo(&made->store);
        ivm__zset_deinit(made);
    }
    return status;
}
