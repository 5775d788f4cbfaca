/* Rows of partitions, loaded into one store. See load_partition.h. Each partition's rows ascend strictly, so that a key can be there twice only in
 * two of them: a key is looked up before its row goes in. */
#include "load_partition.h"

#include "save_table.h"
#include "staging.h"

typedef struct intake {
    const ivm_table *table;
    ivm__step *step;
    ivm__table_rows *made;
    uint32_t partition;
} intake;

/* ---- Checks --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status check_partition(const intake *in, const ivm__chunk *chunk, ivm_error *error)
{
    const uint64_t *cells = chunk->columns[in->table->partition].cells;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (cells[i] != in->partition) {
            return ivm__fail(error, IVM_CORRUPT, "table %s: a row of partition %lld in the stream of partition %u", in->table->name,
                             (long long)cells[i], in->partition);
        }
    }
    return IVM_OK;
}

/* Whether a key can be in two partitions: then it is looked up in the index, else that is made once all rows are there. */
static bool keys_may_meet(const ivm_table *table)
{
    bool meet = table->key_count > 0;
    for (uint32_t k = 0; k < table->key_count; k++) {
        meet &= table->key[k] != table->partition;
    }
    return meet;
}

/* Names the row's key and the partition that has it already. */
static ivm_status fail_key(const intake *in, const ivm__chunk *chunk, const ivm__keys *keys, uint32_t row, ivm_error *error)
{
    const ivm_table *table = in->table;
    const ivm__store *store = &in->made->store;
    char text[IVM__ROW_TEXT_SIZE];
    uint32_t next = 0;
    int64_t other;
    ivm__row_id found = ivm__index_find(in->made->key_index, keys->words + (size_t)row * keys->words_count, keys->hashes[row], &next);
    assert(found != IVM__ROW_NONE);
    memcpy(&other, ivm__store_row(store, found) + store->layout->offsets[table->partition], sizeof other);
    ivm__stage_row_text(chunk, table->key, table->key_count, row, text);
    return ivm__fail(error, IVM_DUPLICATE_KEY, "table %s: key %s is in partition %lld and in partition %u", table->name, text,
                     (long long)other, in->partition);
}

static ivm_status check_keys(const intake *in, const ivm__chunk *chunk, ivm_error *error)
{
    const ivm_table *table = in->table;
    uint32_t absent[IVM__CHUNK_ROWS], count = chunk->rows_count, row = 0;
    ivm__keys keys;
    if (!keys_may_meet(table)) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(in->step->scratch);
    ivm_status status = ivm__index_keys(in->made->key_index, in->step->scratch, chunk, table->key, true, &keys);
    if (status == IVM_OK) {
        count = ivm__index_absent(in->made->key_index, &keys, absent);
    }
    if (count < chunk->rows_count) {
        while (row < count && absent[row] == row) {
            row++;
        }
        status = fail_key(in, chunk, &keys, row, error);
    }
    ivm__arena_back(in->step->scratch, mark);
    return status;
}

/* ---- Loading -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status part_take(void *context, const ivm__chunk *chunk, ivm__feed *from)
{
    const intake *in = context;
    ivm__store *store = &in->made->store;
    IVM_TRY(check_partition(in, chunk, from->error));
    if (store->rows_live + chunk->rows_count > IVM_TABLE_ROWS_MAX) {
        return ivm__fail(from->error, IVM_OVERFLOW, "table %s: more than %u rows in all partitions", in->table->name, IVM_TABLE_ROWS_MAX);
    }
    IVM_TRY(check_keys(in, chunk, from->error));
    IVM_TRY(ivm__store_put_chunk(store, chunk, NULL));
    ivm__store_commit(store);
    return IVM_OK;
}

ivm_status ivm__table_parts_begin(const ivm_table *table, ivm__step *step, ivm__table_rows *made)
{
    IVM_TRY(ivm__store_init(&made->store, step->memory, step->texts, step->seed, table->store.layout));
    ivm_status status = keys_may_meet(table) ? ivm__table_rows_index(table, step, made) : IVM_OK;
    if (status != IVM_OK) {
        ivm__store_deinit(&made->store);
        *made = (ivm__table_rows){ 0 };
    }
    return status;
}

ivm_status ivm__table_part_load(const ivm_table *table, ivm__step *step, ivm__feed *from, uint32_t partition, ivm__table_rows *made)
{
    ivm__row_shape shape = ivm__table_shape(table);
    intake in = { table, step, made, partition };
    ivm_status status = ivm__rows_load(from, step->scratch, step->texts, &shape, part_take, &in);
    if (status != IVM_OK) {
        ivm__store_undo(&made->store);
    }
    return status;
}

ivm_status ivm__table_parts_end(const ivm_table *table, ivm__step *step, ivm__table_rows *made)
{
    if (!made->key_index) {
        IVM_TRY(ivm__table_rows_index(table, step, made));
    }
    ivm__store_commit(&made->store);
    return IVM_OK;
}
