/* Splits, key by key: a changed row's key is looked for among the rows of the other side. See split.h. */
#include "split.h"

#include "index_inside.h"

static ivm_status arrays_make(ivm__step *step, ivm__split *split)
{
    const ivm__store *store = &split->table->store;
    size_t touched = store->touched_count, appended = store->rows_end - store->step_end;
    split->touched = ivm__arena_allocate(step->arena, touched);
    split->appended = ivm__arena_allocate(step->arena, appended);
    if (!split->touched || !split->appended) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(split->touched, IVM__UNTOUCHED, touched);
    memset(split->appended, IVM__UNTOUCHED, appended);
    return IVM_OK;
}

/* Whether another row of the row's key weighs something under the reading. */
static bool key_stands(const ivm__index *index, ivm__row_id row, ivm__reading reading, uint64_t *words)
{
    const uint8_t *at = ivm__store_row(index->store, row);
    uint32_t next = 0;
    ivm__row_id found;
    ivm__index_row_pack(index, at, words);
    uint64_t hash = ivm__index_row_hash(index, at);
    while ((found = ivm__index_find(index, words, hash, &next)) != IVM__ROW_NONE) {
        if (found != row && ivm__store_weight(index->store, found, reading) != 0) {
            return true;
        }
    }
    return false;
}

static ivm__fate fate_of(ivm__split *split, ivm__row_id row, uint64_t *words)
{
    const ivm__store *store = &split->table->store;
    bool before = ivm__store_weight(store, row, IVM__READ_OLD) != 0, after = ivm__store_weight(store, row, IVM__READ_CUR) != 0;
    if (before == after) {
        return IVM__UNTOUCHED;
    }
    if (key_stands(split->table->key_index, row, before ? IVM__READ_CUR : IVM__READ_OLD, words)) {
        split->changed++;
        return IVM__CHANGED;
    }
    split->fresh += after;
    split->gone += before;
    return after ? IVM__FRESH : IVM__GONE;
}

static ivm_status split_make(ivm__step *step, ivm_table *table, ivm__split *split)
{
    const ivm__store *store = &table->store;
    *split = (ivm__split){ .table = table };
    IVM_TRY(arrays_make(step, split));
    uint64_t *words = ivm__arena_allocate(step->arena, table->key_index->words_count * sizeof *words);
    if (!words) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < store->touched_count; i++) {
        split->touched[i] = (uint8_t)fate_of(split, store->touched[i].row, words);
    }
    for (ivm__row_id row = store->step_end; row < store->rows_end; row++) {
        const ivm__row_header *header = (const ivm__row_header *)(const void *)ivm__store_row(store, row);
        split->appended[row - store->step_end] = header->touch ? IVM__UNTOUCHED : (uint8_t)fate_of(split, row, words);
    }
    return IVM_OK;
}

ivm_status ivm__split_of(ivm__step *step, ivm_table *table, const ivm__split **found)
{
    assert(table->key_count > 0);
    for (ivm__split *split = step->splits; split; split = split->next) {
        if (split->table == table) {
            *found = split;
            return IVM_OK;
        }
    }
    ivm__split *split = ivm__arena_allocate(step->arena, sizeof *split);
    if (!split || split_make(step, table, split) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    split->next = step->splits;
    step->splits = split;
    *found = split;
    return IVM_OK;
}
