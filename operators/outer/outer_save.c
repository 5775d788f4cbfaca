/* An outer join's holdings: the rows of both sides, the left ones first, and how many partners those of a preserved side have. Pairs are not met again:
 * that would be the join computed anew. But a row can have no more partners than the other side has present rows of its key, and without a condition
 * it has just so many: settle() judges that, at a lookup a row. */
#include "bytes.h"
#include "holding.h"
#include "outer_state.h"
#include "pairs.h"

static ivm_status partners_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink)
{
    const ivm__outer_side *side = context;
    (void)store;
    assert(row < side->partners.known && ivm__partners_of(side, row)->touch == 0);
    return ivm__put_u32(sink, ivm__partners_of(side, row)->count);
}

static ivm_status side_save(const ivm__outer_side *side, ivm__saver *saver)
{
    return saver->rows(saver, &side->rows.store, side->columns_count, side->preserved ? partners_save : NULL, side);
}

ivm_status ivm__outer_save(const ivm__operator *self, ivm__saver *saver)
{
    const ivm__outer *outer = (const ivm__outer *)self;
    IVM_TRY(side_save(&outer->left, saver));
    return side_save(&outer->right, saver);
}

ivm_status ivm__outer_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__outer_side *side = holding == 0 ? &outer->left : &outer->right;
    ivm__row_id row = side->rows.store.rows_end;
    assert(holding <= 1 && chunk->columns_count == side->columns_count);
    IVM_TRY(ivm__holding_rows(self, &side->rows, step, chunk));
    if (ivm__outer_side_reserve(side) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    for (; side->preserved && row < side->rows.store.rows_end; row++) {
        IVM_TRY(ivm__get_u32(from, &ivm__partners_of(side, row)->count));
    }
    ivm__outer_side_commit(side);
    return IVM_OK;
}

/* ---- Counts judged ----------------------------------------------------------------------------------------------------------------------- */

/* A side's counts beside the other side's rows. */
typedef struct judging {
    const ivm__outer_side *side, *other;
    ivm__step *step;
    uint32_t *present; /* by the first row of the other side that is found of a key: how many are present, + 1; 0: not counted yet */
    bool exact;        /* no condition: all of them are partners */
} judging;

static uint32_t present_count(const judging *it, const uint64_t *words, uint64_t hash)
{
    const ivm__store *store = &it->other->rows.store;
    uint32_t next = 0, count = 0;
    ivm__row_id first = ivm__index_find(it->other->index, words, hash, &next);
    if (first == IVM__ROW_NONE) {
        return 0;
    }
    if (!it->present[first]) {
        for (ivm__row_id row = first; row != IVM__ROW_NONE; row = ivm__index_find(it->other->index, words, hash, &next)) {
            count += ivm__store_weight(store, row, IVM__READ_CUR) > 0;
        }
        it->present[first] = count + 1;
    }
    return it->present[first] - 1;
}

/* The rows' keys, as the other side's index has them. */
static ivm_status rows_keys(const judging *it, const ivm__row_id *rows, uint32_t count, ivm__keys *keys)
{
    ivm__arena *scratch = it->step->scratch;
    const ivm__store *store = &it->side->rows.store;
    ivm__chunk *chunk = ivm__chunk_make(scratch, store->layout->types, it->side->columns_count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = count;
    for (uint32_t k = 0; k < it->side->keys_count; k++) {
        uint32_t column = it->side->keys[k];
        if (!ivm__pairs_column(scratch, store, column, rows, count, &chunk->columns[column])) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    return ivm__index_keys(it->other->index, scratch, chunk, it->side->keys, false, keys);
}

static ivm_status side_judge(const judging *it, bool *sound)
{
    ivm__row_id rows[IVM__CHUNK_ROWS];
    ivm__weight weights[IVM__CHUNK_ROWS];
    uint32_t next = 0, count;
    *sound = true;
    while (*sound && (count = ivm__store_scan(&it->side->rows.store, IVM__READ_CUR, &next, IVM__CHUNK_ROWS, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(it->step->scratch);
        ivm__keys keys;
        IVM_TRY(rows_keys(it, rows, count, &keys));
        for (uint32_t i = 0; i < count; i++) {
            bool skipped = keys.skip && keys.skip[i];
            uint32_t most = skipped ? 0 : present_count(it, keys.words + (size_t)i * keys.words_count, keys.hashes[i]);
            uint32_t has = ivm__partners_of(it->side, rows[i])->count;
            *sound &= it->exact ? has == most : has <= most;
        }
        ivm__arena_back(it->step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status side_settle(const ivm__outer *outer, ivm__step *step, const ivm__outer_side *side, const ivm__outer_side *other)
{
    uint32_t room = other->rows.store.rows_end;
    bool sound = true;
    judging it = { side, other, step, NULL, !outer->condition };
    if (!side->preserved) {
        return IVM_OK;
    }
    it.present = ivm__allocate_zeroed(side->memory, room * sizeof *it.present);
    ivm_status status = it.present ? side_judge(&it, &sound) : IVM_OUT_OF_MEMORY;
    ivm__release(side->memory, it.present, room * sizeof *it.present);
    if (status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(step->error);
    }
    return sound ? status : ivm__holding_corrupt(&outer->head, step, "a row has more partners than there are, or fewer");
}

ivm_status ivm__outer_settle(ivm__operator *self, ivm__step *step)
{
    ivm__outer *outer = (ivm__outer *)self;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = side_settle(outer, step, &outer->left, &outer->right);
    if (status == IVM_OK) {
        status = side_settle(outer, step, &outer->right, &outer->left);
    }
    ivm__arena_back(step->scratch, mark);
    ivm__outer_side_commit(&outer->left); /* of nothing */
    ivm__outer_side_commit(&outer->right);
    return status;
}
