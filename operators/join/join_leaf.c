/* A join's leaf in a step. A bare table is read in place, delta and rows. Any other leaf has its delta gathered apart, and rows of its own in a
 * Z-set of the kept columns:
 *
 *     settle    rows += delta where rows are kept; a delta with a negative weight, or of few rows, is consolidated: it is read back as what changed
 *     keep      a term wants the rows of a leaf that keeps none yet: they are loaded as they were before the step, committed, then the
 *               delta is added, so that old, cur and undo are as if they had always been kept
 *               of a transient table those that waited before it are loaded, without the delta, and dropped when the step ends
 *     fill      a term wants the delta probed: it becomes rows of a Z-set that lasts one step
 *
 * Of a bare table, too, the delta is gathered where part of it is set aside, or where rows may cancel once columns that nobody reads are gone: an
 * update of such a column is no change. Rows set aside are added to own rows behind all others: no two rows of a pruned leaf share a key, so what is
 * touched or appended from there on is what is set aside.
 *
 * Cost: one lookup a row of the delta where rows are kept, signs are mixed or the delta is probed; none else. */
#include "join_state.h"

/* A temporary Z-set of more rows gives its memory back at the end of the step. */
#define DELTA_ROWS_HELD 4096u
/* Up to so many rows a delta is added up even where none can cancel. */
#define ADDED_ROWS_MAX 64u

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
    if (leaf->gathered) {
        walk->part = walk->begun ? walk->part->next : leaf->drives.first;
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

void ivm__leaf_begin(ivm__join_leaf *leaf, const ivm__leaf_prune *prune)
{
    leaf->prune = *prune;
    leaf->gathered = !ivm__leaf_is_bare(leaf);
    if (leaf->scan) {
        ivm__scan_aside(leaf->scan, prune->aside);
    }
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
        IVM_TRY(ivm__step_poll(step));
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
    ivm__leaf_parts *parts = &leaf->drives;
    *parts = (ivm__leaf_parts){ .negative = true };
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
        *(parts->last ? &parts->last->next : &parts->first) = part;
        parts->last = part;
        parts->rows += chunk->rows_count;
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

/* ---- Settling ------------------------------------------------------------------------------------------------------------------------ */

/* Whether a delta is worth adding up: one in which rows may cancel; else a small one, whose equal rows then drive once. Of many rows that only come it
 * would cost more than it saves. */
static bool is_worth_adding(const ivm__join_leaf *leaf, uint64_t rows, bool negative)
{
    return rows > 1 && (negative || (rows <= ADDED_ROWS_MAX && leaf->prune.narrow));
}

/* Whether rows of a bare source's delta may become equal, or cancel, once the columns that nobody reads are gone; of a bag some may be equal as they
 * are. Rows of a keyed table become so only where they share a key, or it is not kept. */
static bool may_add_up(const ivm__join_leaf *leaf, const ivm__step *step, uint64_t rows)
{
    const ivm_table *table = leaf->bare.table;
    uint32_t columns_count = table ? table->columns_count : leaf->columns_count; /* some may have come since the leaf was made */
    bool negative = ivm__source_delta_shape(step, leaf->bare) == IVM_MIXED, bag = table && table->key_count == 0;
    if (!leaf->prune.narrow || !is_worth_adding(leaf, rows, negative)) {
        return false;
    }
    if (leaf->kept_count == columns_count) {
        return bag && !negative;
    }
    for (uint32_t k = 0; table && k < table->key_count; k++) {
        bool kept = false;
        for (uint32_t i = 0; i < leaf->kept_count; i++) {
            kept |= ivm__source_column(leaf->bare, leaf->kept[i]) == table->key[k];
        }
        if (!kept) {
            return true;
        }
    }
    return !table || table->key_count == 0 || table->key_index->doubles > 0;
}

static ivm_status bare_gather(ivm__join_leaf *leaf, ivm__step *step)
{
    const ivm__aside *aside = leaf->prune.aside;
    leaf->gathered = true;
    for (ivm__delta_walk walk = { 0 };;) {
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__chunk *chunk, compact;
        IVM_TRY(aside ? ivm__source_aside_next(step, leaf->bare, aside, false, &walk, &chunk)
                      : ivm__source_delta_next(step, leaf->bare, &walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        if (!ivm__leaf_compact(leaf, step->scratch, chunk, &compact)) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(ivm__leaf_gather(leaf, &leaf->drives, step->arena, &compact));
        ivm__arena_back(step->scratch, mark);
    }
}

static ivm_status bare_settle(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    uint64_t rows = leaf->prune.whole ? 0 : ivm__source_delta_rows(step, leaf->bare);
    bool adds_up = rows > 1 && !step->initial && may_add_up(leaf, step, rows);
    if (!leaf->prune.whole && !leaf->prune.aside && !adds_up) {
        leaf->delta_rows = rows;
        return IVM_OK;
    }
    if (!leaf->prune.whole) {
        IVM_TRY(bare_gather(leaf, step));
    }
    if (adds_up && is_worth_adding(leaf, leaf->drives.rows, leaf->drives.negative)) {
        IVM_TRY(ivm__leaf_delta_fill(join, leaf, step));
        IVM_TRY(read_back(leaf, step, &leaf->delta));
    }
    leaf->gathered = true;
    leaf->delta_rows = leaf->drives.rows;
    return IVM_OK;
}

/* Adds the rows set aside to own rows to which the rest has been added, and flags them. */
static ivm_status add_held_out(ivm__join_leaf *leaf, ivm__step *step)
{
    ivm__store *store = &leaf->rows.store;
    uint32_t touched = store->touched_count, appended = store->rows_end - store->step_end;
    if (!leaf->held_out.first) {
        return IVM_OK;
    }
    for (const ivm__leaf_part *part = leaf->held_out.first; part; part = part->next) {
        IVM_TRY(ivm__zset_add(&leaf->rows, step->scratch, &part->chunk, NULL, 1));
    }
    uint32_t touched_end = store->touched_count, appended_end = store->rows_end - store->step_end;
    uint8_t *flags = ivm__arena_allocate(step->arena, (size_t)touched_end + appended_end);
    if (!flags) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(flags, 0, (size_t)touched_end + appended_end);
    memset(flags + touched, 1, touched_end - touched);
    memset(flags + touched_end + appended, 1, appended_end - appended);
    leaf->own_aside = (ivm__aside){ flags, flags + touched_end, true, leaf->held_out.negative };
    return IVM_OK;
}

/* Adds the whole delta to own rows. */
static ivm_status add_all(const ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    IVM_TRY(add_delta(leaf, step, &leaf->rows));
    IVM_TRY(add_held_out(leaf, step));
    return weights_fit(join, step, &leaf->rows.store);
}

ivm_status ivm__leaf_settle(ivm__join *join, ivm__join_leaf *leaf, ivm__step *step)
{
    if (ivm__leaf_is_bare(leaf)) {
        return bare_settle(join, leaf, step);
    }
    if (!leaf->prune.whole && is_worth_adding(leaf, leaf->drives.rows, leaf->drives.negative)) { /* before rows set aside join them */
        if (!leaf->keeps) {
            IVM_TRY(ivm__leaf_delta_fill(join, leaf, step));
            IVM_TRY(read_back(leaf, step, &leaf->delta));
        } else {
            IVM_TRY(add_delta(leaf, step, &leaf->rows));
            IVM_TRY(read_back(leaf, step, &leaf->rows));
            IVM_TRY(add_held_out(leaf, step));
            IVM_TRY(weights_fit(join, step, &leaf->rows.store));
        }
    } else if (leaf->keeps) {
        IVM_TRY(add_all(join, leaf, step));
    }
    leaf->delta_rows = leaf->prune.whole ? 0 : leaf->drives.rows;
    return IVM_OK;
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
        status = add_all(join, leaf, step);
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
    leaf->drives = leaf->held_out = (ivm__leaf_parts){ 0 };
    leaf->prune = (ivm__leaf_prune){ 0 };
    leaf->own_aside = (ivm__aside){ 0 };
    leaf->delta_rows = 0;
    leaf->delta_filled = leaf->gathered = false;
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
