/* Splits: a keyed table's changed rows told apart by what became of their keys. See split.h.
 *
 * A row that came is fresh unless a row of its key was there before; one that went is gone unless a row of its key is there now. Only where the
 * index holds two rows of some key need anyone look. */
#include "split.h"

#include "index_inside.h"

/* Whether the step found, or left, a row of this row's key under the reading. */
static bool key_stands(const ivm_table *table, ivm__row_id row, ivm__reading reading, uint64_t *words)
{
    const ivm__index *index = table->key_index;
    const uint8_t *at = ivm__store_row(&table->store, row);
    uint32_t next = 0;
    ivm__row_id found;
    ivm__index_row_pack(index, at, words);
    uint64_t hash = ivm__index_row_hash(index, at);
    while ((found = ivm__index_find(index, words, hash, &next)) != IVM__ROW_NONE) {
        if (ivm__store_weight(&table->store, found, reading) != 0) {
            return true;
        }
    }
    return false;
}

static uint8_t fate_of(ivm__split *split, ivm__row_id row, bool came, uint64_t *words)
{
    bool both = split->table->key_index->doubles && key_stands(split->table, row, came ? IVM__READ_OLD : IVM__READ_CUR, words);
    split->changed += both;
    split->fresh += came && !both;
    split->gone += !came && !both;
    return both ? IVM__CHANGED : came ? IVM__FRESH : IVM__GONE;
}

static void touched_fill(ivm__split *split, uint64_t *words)
{
    const ivm__store *store = &split->table->store;
    for (uint32_t i = 0; i < store->touched_count; i++) {
        const ivm__touch *touch = &store->touched[i];
        bool same = touch->before == touch->after;
        split->touched[i] = same ? IVM__UNTOUCHED : fate_of(split, touch->row, touch->after != 0, words);
    }
}

/* In a store that is laid over some of the rows since may be gone again. */
static void appended_fill(ivm__split *split, uint64_t *words)
{
    const ivm__store *store = &split->table->store;
    for (ivm__row_id row = store->step_end; row < store->rows_end; row++) {
        ivm__row_header header = ivm__row_header_of(ivm__store_row(store, row));
        bool none = ivm__header_is_touch(header) || header == 0;
        split->appended[row - store->step_end] = none ? IVM__UNTOUCHED : fate_of(split, row, true, words);
    }
}

static const uint8_t *flags_of(ivm__arena *arena, const uint8_t *fates, uint32_t count)
{
    uint8_t *flags = ivm__arena_allocate(arena, count);
    for (uint32_t i = 0; flags && i < count; i++) {
        flags[i] = fates[i] >= IVM__FRESH;
    }
    return flags;
}

static ivm_status split_make(ivm__step *step, ivm_table *table, ivm__split **made)
{
    const ivm__store *store = &table->store;
    uint32_t touched = store->touched_count, appended = store->rows_end - store->step_end;
    ivm__split *split = ivm__arena_allocate(step->arena, sizeof *split);
    uint8_t *fates = ivm__arena_allocate(step->arena, (size_t)touched + appended);
    uint64_t *words = ivm__arena_allocate(step->arena, table->key_index->words_count * sizeof *words);
    if (!split || !fates || !words) {
        return IVM_OUT_OF_MEMORY;
    }
    *split = (ivm__split){ .table = table, .touched = fates, .appended = fates + touched };
    touched_fill(split, words);
    appended_fill(split, words);
    const uint8_t *flags = flags_of(step->arena, fates, touched + appended);
    if (!flags) {
        return IVM_OUT_OF_MEMORY;
    }
    split->moved = (ivm__aside){ flags, flags + touched, split->fresh > 0, split->gone > 0 };
    *made = split;
    return IVM_OK;
}

ivm_status ivm__split_of(ivm__step *step, ivm_table *table, const ivm__split **split)
{
    assert(table->key_count && !step->initial);
    for (ivm__split *known = step->splits; known; known = known->next) {
        if (known->table == table) {
            *split = known;
            return IVM_OK;
        }
    }
    ivm__split *made = NULL;
    IVM_TRY(split_make(step, table, &made));
    made->next = step->splits;
    step->splits = made;
    *split = made;
    return IVM_OK;
}
