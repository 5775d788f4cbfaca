/* A side of an outer join: its rows as a Z-set of whole rows, found by their key columns, and, where it is preserved, how many partners each
 * has, by row id.
 *
 *     partners[row].count = rows of the other side that are present (weight above 0) and match the row
 *
 * kept for every row whose weight is not 0. Counts change in place, and a list of those touched has what they were: undo writes it back. A row
 * that leaves takes its count with it, so that an id given again begins at 0. Cost: one lookup a row that came; a commit or undo visits what
 * was touched. */
#include "outer_state.h"

#define KEPT_TOUCHES_MIN 16384u /* arrays up to this size are never given back */

static const ivm__wide zeros[IVM__CHUNK_ROWS]; /* cells of nulls, whatever their type */

ivm_status ivm__outer_side_init(ivm__outer_side *side, ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm_type *types)
{
    side->memory = memory;
    ivm__items_init(&side->partners, sizeof(ivm__partners));
    IVM_TRY(ivm__zset_init_typed(&side->rows, memory, texts, seed, types, side->columns_count, false));
    return ivm__store_index(&side->rows.store, side->keys, side->keys_count, false, &side->index);
}

void ivm__outer_side_deinit(ivm__outer_side *side)
{
    ivm__zset_deinit(&side->rows);
    ivm__release(side->memory, side->keys, side->keys_count * sizeof *side->keys);
    ivm__items_free(&side->partners, side->memory);
    ivm__release(side->memory, side->touched, side->touched_capacity * sizeof *side->touched);
    *side = (ivm__outer_side){ 0 };
}

bool ivm__outer_pad(ivm__arena *arena, ivm__chunk *chunk)
{
    uint8_t *nulls = NULL;
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        if (chunk->columns[c].cells) {
            continue;
        }
        if (!nulls) {
            nulls = ivm__arena_allocate(arena, chunk->rows_count);
            if (!nulls) {
                return false;
            }
            memset(nulls, 1, chunk->rows_count);
        }
        chunk->columns[c].cells = (void *)zeros;
        chunk->columns[c].nulls = nulls;
    }
    return true;
}

ivm_status ivm__outer_side_add(ivm__outer_side *side, ivm__step *step, const ivm__chunk *chunk)
{
    assert(chunk->columns_count == side->columns_count && !step->loading);
    ivm__chunk whole = *chunk;
    whole.columns = ivm__arena_allocate(step->scratch, chunk->columns_count * sizeof *whole.columns);
    if (!whole.columns) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(whole.columns, chunk->columns, chunk->columns_count * sizeof *whole.columns);
    if (!ivm__outer_pad(step->scratch, &whole)) {
        return IVM_OUT_OF_MEMORY;
    }
    return ivm__zset_add(&side->rows, step->scratch, &whole, NULL, 1);
}

/* ---- Counts ------------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__outer_side_reserve(ivm__outer_side *side)
{
    if (!side->preserved) {
        return IVM_OK;
    }
    return ivm__items_reserve_cleared(&side->partners, side->memory, side->rows.store.rows_end);
}

ivm_status ivm__outer_side_touches_reserve(ivm__outer_side *side, uint32_t count)
{
    uint64_t needed = (uint64_t)side->touched_count + count;
    return ivm__grow(side->memory, (void **)&side->touched, &side->touched_capacity, needed, sizeof *side->touched);
}

/* A large step does not hold its memory for good. */
static void touches_clear(ivm__outer_side *side)
{
    if (side->touched_capacity > KEPT_TOUCHES_MIN && side->touched_count < side->touched_capacity / 8) {
        ivm__release(side->memory, side->touched, side->touched_capacity * sizeof *side->touched);
        side->touched = NULL;
        side->touched_capacity = 0;
    }
    side->touched_count = 0;
}

void ivm__outer_side_commit(ivm__outer_side *side)
{
    const ivm__store *store = &side->rows.store;
    for (uint32_t i = 0; i < side->touched_count; i++) {
        ivm__partners_of(side, side->touched[i].row)->touch = 0;
    }
    for (uint32_t i = 0; side->preserved && i < store->touched_count; i++) {
        if (store->touched[i].after == 0) {
            assert(store->touched[i].row < side->partners.known);
            ivm__partners_of(side, store->touched[i].row)->count = 0;
        }
    }
    touches_clear(side);
    ivm__store_commit(&side->rows.store);
}

void ivm__outer_side_undo(ivm__outer_side *side)
{
    for (uint32_t i = 0; i < side->touched_count; i++) {
        *ivm__partners_of(side, side->touched[i].row) = (ivm__partners){ .count = side->touched[i].before };
    }
    touches_clear(side);
    ivm__store_undo(&side->rows.store);
}
