/* Rows that stand alone: those of a preserved side that have no partner, padded with nulls; in semi joins those that have one.
 *
 *     stands(row) = weight(row) where it is above 0 and partners(row) = 0         delta = stands after - stands before
 *
 * looked at once all pairs of the step have met, for the rows whose weight changed and then those whose count alone did: a row that found
 * a partner and lost it again is as it was. Cost: a few loads a row touched. */
#include "outer_state.h"

/* What a row of this weight and count stands for alone: in a semi join where it has a partner, else where it has none. */
static inline ivm__weight standing_weight(const ivm__outer *outer, ivm__weight weight, uint32_t count)
{
    return weight > 0 && (count > 0) == (outer->kind == IVM_SEMI_JOIN) ? weight : 0;
}
#include "pairs.h"
#include "weights.h"

/* Gives back how many rows of `rows` stand for more or less than before, those alone, and by how much. */
static uint32_t rows_stand(const ivm__outer *outer, const ivm__outer_side *side, ivm__row_id *rows, uint32_t count, ivm__weight *weights)
{
    const ivm__store *store = &side->rows.store;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = rows[i];
        ivm__weight before = ivm__store_weight(store, row, IVM__READ_OLD), after = ivm__store_weight(store, row, IVM__READ_CUR);
        rows[kept] = row;
        weights[kept] = standing_weight(outer, after, ivm__partners_of(side, row)->count) -
                        standing_weight(outer, before, ivm__partners_before(side, row));
        kept += weights[kept] != 0;
    }
    return kept;
}

/* The rows as what the join emits of them: the columns of the other side are nulls. NULL: out of memory. */
static ivm__chunk *rows_chunk(const ivm__outer *outer, const ivm__outer_side *side, ivm__arena *arena, const ivm__row_id *rows,
                              uint32_t count)
{
    ivm__chunk *chunk = ivm__chunk_make(arena, outer->head.types, outer->head.columns_count);
    if (!chunk) {
        return NULL;
    }
    chunk->rows_count = count;
    for (uint32_t c = 0; c < side->columns_count; c++) {
        if (!ivm__pairs_column(arena, &side->rows.store, c, rows, count, &chunk->columns[side->columns_first + c])) {
            return NULL;
        }
    }
    return ivm__outer_pad(arena, chunk) ? chunk : NULL;
}

static ivm_status rows_emit(ivm__outer *outer, ivm__step *step, const ivm__outer_side *side, ivm__row_id *rows, uint32_t count)
{
    ivm__weight *weights = ivm__arena_allocate(step->scratch, count * sizeof *weights);
    if (!weights) {
        return IVM_OUT_OF_MEMORY;
    }
    count = rows_stand(outer, side, rows, count, weights);
    if (count == 0) {
        return IVM_OK;
    }
    ivm__chunk *chunk = rows_chunk(outer, side, step->scratch, rows, count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->weights = weights;
    return ivm__emit(&outer->head, step, chunk);
}

/* The next rows whose count was touched and whose weight is as it was. False at the end. */
static bool counted_next(const ivm__outer_side *side, uint32_t *next, ivm__row_id *rows, uint32_t *count)
{
    const ivm__store *store = &side->rows.store;
    uint32_t first = *next;
    *count = 0;
    for (; *next < side->touched_count && *count < IVM__CHUNK_ROWS; ++*next) {
        ivm__row_id row = side->touched[*next].row;
        rows[*count] = row;
        *count += ivm__store_weight(store, row, IVM__READ_OLD) == ivm__store_weight(store, row, IVM__READ_CUR);
    }
    return *next > first;
}

ivm_status ivm__outer_stand(ivm__outer *outer, ivm__step *step, const ivm__outer_side *side)
{
    ivm__arena *scratch = step->scratch;
    ivm__arena_mark start = ivm__arena_here(scratch);
    ivm__row_id *rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *rows);
    ivm__weight *changes = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *changes);
    if (!rows || !changes) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__arena_mark mark = ivm__arena_here(scratch);
    uint32_t next = 0, count;
    while ((count = ivm__store_changes(&side->rows.store, &next, IVM__CHUNK_ROWS, rows, changes)) > 0) {
        IVM_TRY(rows_emit(outer, step, side, rows, count));
        ivm__arena_back(scratch, mark);
    }
    for (next = 0; counted_next(side, &next, rows, &count);) {
        if (count > 0) {
            IVM_TRY(rows_emit(outer, step, side, rows, count));
        }
        ivm__arena_back(scratch, mark);
    }
    ivm__arena_back(scratch, start);
    return IVM_OK;
}

/* ---- Rows all null ------------------------------------------------------------------------------------------------------------------- */

/* What the side's row of nulls, if there is one, stands for now. */
static ivm_status nulls_stand(const ivm__outer *outer, ivm__step *step, const ivm__outer_side *side, ivm__weight *weight)
{
    const ivm__store *store = &side->rows.store;
    ivm__chunk *chunk = ivm__chunk_make(step->scratch, store->layout->types, side->columns_count);
    ivm__keys keys;
    *weight = 0;
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = 1;
    if (!ivm__outer_pad(step->scratch, chunk)) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__index_keys(side->rows.whole, step->scratch, chunk, NULL, true, &keys));
    uint32_t next = 0;
    ivm__row_id row = ivm__index_find(side->rows.whole, keys.words, keys.hashes[0], &next);
    if (row != IVM__ROW_NONE) {
        *weight = standing_weight(outer, ivm__store_weight(store, row, IVM__READ_CUR), ivm__partners_of(side, row)->count);
    }
    return IVM_OK;
}

ivm_status ivm__outer_nulls_check(ivm__outer *outer, ivm__step *step)
{
    ivm__weight left, right;
    if (outer->kind != IVM_FULL_JOIN || ivm__weight_fits(outer->left.rows.store.weight_max + outer->right.rows.store.weight_max)) {
        return IVM_OK;
    }
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    IVM_TRY(nulls_stand(outer, step, &outer->left, &left));
    IVM_TRY(nulls_stand(outer, step, &outer->right, &right));
    ivm__arena_back(step->scratch, mark);
    if (!ivm__weight_fits(left + right)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a joined row is out of range", outer->head.view);
    }
    return IVM_OK;
}
