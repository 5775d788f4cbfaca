/* A join's leaf in a step. A bare table is read in place, delta and rows. Any other leaf has its delta gathered apart, and rows of its own in a
 * Z-set of the kept columns:
 *
 *     settle    rows += delta where rows are kept; a delta with a negative weight is consolidated: it is read back as what changed
 *     keep      a term wants the rows of a leaf that keeps none yet: they are loaded as they were before the step, committed, then the
 *               delta is added, so that old, cur and undo are as if they had always been kept
 *               of a transient table those that waited before it are loaded, without the delta, and dropped when the step ends
 *     fill      a term wants the delta probed: it becomes rows of a Z-set that lasts one step
 *
 * Cost: one lookup a row of the delta where rows are kept, signs are mixed or the delta is probed; none else. */
#include "join_state.h"

/* A temporary Z-set of more rows gives its memory back at the end of the step. */
#define DELTA_ROWS_HELD 4096u

ivm_status ivm__leaf_rows_make(const ivm__join *join, const ivm__join_leaf *leaf, ivm__zset *rows)
{
    if (rows->whole) {
        return IVM_OK;
    }
    ivm_status status = ivm__zset_init(rows, join->memory, join->texts, join->seed, leaf->layout);
    if (status != IVM_OK) {
        *rows = (ivm__zset){ 0 };
    }
    return status;
}

static void rows_drop(ivm__zset *rows)
{
    ivm__zset_deinit(rows);
    *rows = (ivm__zset){ 0 };
}

ivm_status ivm__leaf_delta_next(const ivm__join_leaf *leaf, ivm__step *step, ivm__leaf_walk *walk, const ivm__chunk **chunk)
{
    *chunk = NULL;
    if (!ivm__leaf_is_bare(leaf)) {
        walk->part = walk->begun ? walk->part->next : leaf->parts;
        walk->begun = true;
        *chunk = walk->part ? &walk->part->chunk : NULL;
        return IVM_OK;
    }
    ivm__chunk *whole, *compact = ivm__arena_allocate(step->scratch, sizeof *compact);
    if (!compact) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__source_delta_next(step, leaf->bare, &walk->bare, &whole));
    if (whole && !ivm__leaf_compact(leaf, step->scratch, whole, compact)) {
        return IVM_OUT_OF_MEMORY;
    }
    *chunk = whole ? compact : NULL;
    return IVM_OK;
}

static ivm_status add_delta(const ivm__join_leaf *leaf, ivm__step *step, ivm__zset *to)
{
    ivm__leaf_walk walk = { 0 };
    for (;;) {
        const ivm__chunk *chunk;
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__leaf_delta_next(leaf, step, &walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(ivm__zset_add(to, step->scratch, chunk, NULL, 1));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status weights_fit(const ivm__join *join, ivm__step *step, const ivm__store *store)
{
    if (!ivm__touched_weights_fit(store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", join->head.view);
    }
    return IVM_OK;
}

/* The delta becomes what the step changed in this Z-set, to which it was added. */
static ivm_status read_back(ivm__join_leaf *leaf, ivm__step *step, const ivm__zset *from)
{
    leaf->parts = leaf->parts_last = NULL;
    leaf->delta_rows = 0;
    for (uint32_t next = 0;;) {
        ivm__chunk *chunk;
        IVM_TRY(ivm__store_change_chunk(&from->store, step->arena, &next, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        ivm__leaf_part *part = ivm__arena_allocate(step->arena, sizeof *part);
        if (!part) {
            return IVM_OUT_OF_MEMORY;
        }
        *part = (ivm__leaf_part){ .chunk = *chunk, .capacity = chunk->rows_count };
        *(leaf->parts_last ? &leaf->parts_last->next : &leaf->parts) = part;
        leaf->parts_last = part;
        leaf->delta_rows += chunk->rows_count;
    }
}

ivm_status ivm__leaf_delta_fill(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    if (!leaf->delta_filled) {
        IVM_TRY(ivm__leaf_rows_make(join, leaf, &leaf->delta));
        leaf->delta_filled = true;
        IVM_TRY(add_delta(leaf, step, &leaf->delta));
    }
    return IVM_OK;
}

ivm_status ivm__leaf_settle(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    if (ivm__leaf_is_bare(leaf)) {
        leaf->delta_rows = ivm__source_delta_rows(step, leaf->bare);
        return IVM_OK;
    }
    if (leaf->keeps) {
        IVM_TRY(add_delta(leaf, step, &leaf->rows));
        IVM_TRY(weights_fit(join, step, &leaf->rows.store));
    }
    if (leaf->delta_negative && !leaf->keeps) {
        IVM_TRY(ivm__leaf_delta_fill(join, leaf, step));
    }
    return leaf->delta_negative ? read_back(leaf, step, leaf->keeps ? &leaf->rows : &leaf->delta) : IVM_OK;
}

static ivm_status load(const ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    step->loading = true;
    ivm_status status = ivm__scan_load(leaf->scan, step);
    step->loading = false;
    if (status == IVM_OK) {
        status = weights_fit(join, step, &leaf->rows.store);
    }
    if (status == IVM_OK) {
        ivm__store_commit(&leaf->rows.store);
    }
    return status;
}

ivm_status ivm__leaf_keep(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    if (ivm__leaf_is_bare(leaf) || leaf->keeps) {
        return IVM_OK;
    }
    assert(leaf->scan && !step->loading);
    ivm_status status = ivm__leaf_rows_make(join, leaf, &leaf->rows);
    if (status == IVM_OK && !step->initial) {
        status = load(join, leaf, step);
    }
    if (status == IVM_OK && !leaf->transient) {
        status = add_delta(leaf, step, &leaf->rows);
    }
    if (status == IVM_OK) {
        status = weights_fit(join, step, &leaf->rows.store);
    }
    leaf->keeps = status == IVM_OK;
    if (!leaf->keeps) {
        rows_drop(&leaf->rows);
    }
    return status;
}

/* ---- The end of a step ------------------------------------------------------------------------------------------------------------- */

static void step_end(ivm__join_leaf *leaf)
{
    if (leaf->keeps && leaf->transient) {
        rows_drop(&leaf->rows);
        leaf->keeps = false;
    }
    leaf->parts = leaf->parts_last = NULL;
    leaf->delta_rows = 0;
    leaf->delta_negative = leaf->delta_filled = false;
    if (leaf->delta.store.rows_end > DELTA_ROWS_HELD) {
        rows_drop(&leaf->delta);
    } else if (leaf->delta.whole) {
        ivm__store_undo(&leaf->delta.store);
    }
}

void ivm__leaf_commit(ivm__join_leaf *leaf)
{
    if (leaf->keeps) {
        ivm__store_commit(&leaf->rows.store);
    }
    step_end(leaf);
}

void ivm__leaf_undo(ivm__join_leaf *leaf)
{
    if (leaf->keeps) {
        ivm__store_undo(&leaf->rows.store);
    }
    step_end(leaf);
}
