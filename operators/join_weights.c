/* Net weights of joined rows: each must fit int64 once the step is done.
 *
 *     the product of the leaves' greatest weights fits      nothing to do: every join of keyed tables, and of bags with few copies
 *     else, for each leaf that changed:                     its changed rows, as they weigh now, x cur of all other leaves
 *
 * Every joined row whose weight the step changed has a changed row in one leaf. Rows that lie apart in a bag are judged apart. Cost of the
 * second kind: a term a changed leaf. */
#include "join_state.h"

static ivm__weight leaf_weight_max(const ivm__join_leaf *leaf)
{
    if (ivm__leaf_is_bare(leaf)) {
        return ivm__source_store(leaf->bare)->weight_max;
    }
    return leaf->scan ? ivm__source_store(ivm__scan_source(leaf->scan))->weight_max : leaf->rows.store.weight_max;
}

static bool products_fit(const ivm__join *join)
{
    ivm__weight bound = 1;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        ivm__weight most = leaf_weight_max(&join->leaves[i]);
        if (most > 1 && (__builtin_mul_overflow(bound, most, &bound) || !ivm__weight_fits(bound))) {
            return false;
        }
    }
    return true;
}

/* The next rows of a leaf that the step changed, all of them where it is initial, with the weights they have now. */
static uint32_t changed_rows(const ivm__join_run *run, const ivm__store *store, uint32_t *next, ivm__row_id *rows, ivm__weight *weights)
{
    if (run->step->initial) {
        return ivm__store_scan(store, IVM__READ_CUR, next, IVM__CHUNK_ROWS, rows, weights);
    }
    uint32_t count = ivm__store_changes(store, next, IVM__CHUNK_ROWS, rows, weights);
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = ivm__store_weight(store, rows[i], IVM__READ_CUR);
    }
    return count;
}

/* A compact chunk of these rows. False: out of memory. */
static bool rows_chunk(const ivm__join_run *run, const ivm__store *store, const ivm__row_id *rows, uint32_t count, ivm__chunk *compact)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__join_leaf *leaf = run->driver;
    compact->rows_count = count;
    compact->columns_count = leaf->kept_count;
    compact->columns = ivm__arena_allocate(scratch, leaf->kept_count * sizeof *compact->columns);
    if (!compact->columns) {
        return false;
    }
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        uint32_t column = ivm__leaf_store_column(leaf, store, i);
        if (!ivm__vector_make(scratch, &compact->columns[i], leaf->layout->types[i], count, true)) {
            return false;
        }
        ivm__store_gather(store, rows, count, column, &compact->columns[i]);
    }
    return true;
}

static ivm_status judge_changed(ivm__join_run *run)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__store *store = ivm__leaf_store(run->driver);
    ivm__row_id *rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *rows);
    ivm__weight *weights = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *weights);
    if (!rows || !weights) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t next = 0, count;
    while ((count = changed_rows(run, store, &next, rows, weights)) > 0) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        ivm__chunk compact = { .weights = weights };
        if (!rows_chunk(run, store, rows, count, &compact)) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(ivm__join_run_driver(run, &compact));
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

ivm_status ivm__join_weights_check(ivm__join *join, ivm__step *step)
{
    if (products_fit(join)) {
        return IVM_OK;
    }
    uint8_t readings[IVM_JOIN_LEAVES_MAX];
    memset(readings, IVM__LEAF_CUR, sizeof readings);
    uint32_t drivers_count = step->initial ? 1 : join->leaves_count;
    for (uint32_t i = 0; i < drivers_count; i++) {
        if (join->leaves[i].delta_rows == 0 && !step->initial) {
            continue;
        }
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        ivm__join_run run;
        run.join = join;
        run.step = step;
        run.sign = 1;
        run.judges = true;
        run.rows_probed = run.rows_matched = 0;
        IVM_TRY(ivm__leaf_keep(join, &join->leaves[i], step));
        IVM_TRY(ivm__join_run_prepare(&run, i, readings));
        IVM_TRY(judge_changed(&run));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}
