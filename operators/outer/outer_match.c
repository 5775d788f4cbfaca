/* Pairs of an outer join: the rows of one side that the step changed, met with those of the other.
 *
 *     delta(L x R) = delta L x R cur + L old x delta R                    each pair with the product of its weights
 *     partners[l] += present(r)          for l new in delta L, r in R cur         += change of present(r)   for l in L old, r in delta R
 *     partners[r] += change of present(l)  for l in delta L, r in R cur           += present(l)             for l in L old, r new in delta R
 *
 * A pair matches where its key columns are equal and not null and the condition is true. Old and new rows meet that never stand side by
 * side: a pair whose condition fails rejects the step only if both rows are there after it (before it they cannot have been: that step was
 * rejected). Cost: a probe a changed row and a few loads a pair; where no pair is emitted, rows that are as present as they were meet nobody. */
#include "outer_state.h"
#include "pairs.h"
#include "weights.h"

/* Rows of the driver that the step changed, at most a chunk of them. */
typedef struct driving {
    uint32_t count;
    ivm__row_id *rows;
    ivm__weight *before, *after;
} driving;

/* A row of the other side, rows[i], for the driver's positions[i]-th: that one is drivers[i]. */
typedef struct pairs {
    uint32_t count;
    uint32_t *positions;
    ivm__row_id *rows, *drivers;
    ivm__weight *weights; /* of rows, under the reading */
} pairs;

typedef struct run {
    ivm__outer *outer;
    ivm__step *step;
    ivm__outer_side *driver, *other;
    ivm__reading reading; /* of the other */
    bool judges_weights;  /* a product of present weights may leave int64 */
    driving changed;
    pairs found;
} run;

/* ---- Driving rows -------------------------------------------------------------------------------------------------------------------- */

static int sign(ivm__weight weight)
{
    return (weight > 0) - (weight < 0);
}

/* Whether a change of the driver's row can change a count, where no pair is emitted. */
static bool is_counted(const run *it, ivm__weight before, ivm__weight after)
{
    return it->driver->preserved ? before == 0 : sign(before) != sign(after);
}

/* The next changed rows from *next on that have to meet the others. False at the end. */
static bool changed_next(run *it, uint32_t *next)
{
    const ivm__store *store = &it->driver->rows.store;
    driving *changed = &it->changed;
    uint32_t found = ivm__store_changes(store, next, IVM__CHUNK_ROWS, changed->rows, changed->after), kept = 0;
    for (uint32_t i = 0; i < found; i++) {
        ivm__row_id row = changed->rows[i];
        changed->rows[kept] = row;
        changed->before[kept] = ivm__store_weight(store, row, IVM__READ_OLD);
        changed->after[kept] = ivm__store_weight(store, row, IVM__READ_CUR);
        kept += it->outer->joins || is_counted(it, changed->before[kept], changed->after[kept]);
    }
    changed->count = kept;
    return found > 0;
}

/* ---- Which pairs match ---------------------------------------------------------------------------------------------------------------- */

/* Drops rows that are not there under the reading. */
static void pairs_weigh(const run *it, pairs *found)
{
    const ivm__store *store = &it->other->rows.store;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        ivm__weight weight = ivm__store_weight(store, found->rows[i], it->reading);
        found->positions[kept] = found->positions[i];
        found->drivers[kept] = it->changed.rows[found->positions[i]];
        found->rows[kept] = found->rows[i];
        found->weights[kept] = weight;
        kept += weight != 0;
    }
    found->count = kept;
}

static void pairs_keep(pairs *found, const uint32_t *kept, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = kept[i];
        found->positions[i] = found->positions[from];
        found->drivers[i] = found->drivers[from];
        found->rows[i] = found->rows[from];
        found->weights[i] = found->weights[from];
    }
    found->count = count;
}

static bool side_columns(const run *it, const ivm__outer_side *side, const bool *carried, ivm__vector *columns)
{
    const pairs *found = &it->found;
    const ivm__row_id *rows = side == it->driver ? found->drivers : found->rows;
    for (uint32_t c = 0; c < side->columns_count; c++) {
        uint32_t at = side->columns_first + c;
        if ((!carried || carried[at]) && !ivm__pairs_column(it->step->scratch, &side->rows.store, c, rows, found->count, &columns[at])) {
            return false;
        }
    }
    return true;
}

/* The pairs as a chunk of both sides' columns, of which those are carried (NULL: all). NULL: out of memory. */
static ivm__chunk *pairs_chunk(const run *it, const bool *carried)
{
    const ivm__outer *outer = it->outer;
    ivm__chunk *chunk = ivm__chunk_make(it->step->scratch, outer->head.types, outer->columns_count);
    if (!chunk || !side_columns(it, &outer->left, carried, chunk->columns) || !side_columns(it, &outer->right, carried, chunk->columns)) {
        return NULL;
    }
    chunk->rows_count = it->found.count;
    return chunk;
}

/* Whether both rows of a pair whose condition failed are there after the step. */
static bool fails_for_good(const run *it, const uint8_t *failed)
{
    const pairs *found = &it->found;
    for (uint32_t i = 0; i < found->count; i++) {
        if (failed[i] && it->changed.after[found->positions[i]] != 0 &&
            ivm__store_weight(&it->other->rows.store, found->rows[i], IVM__READ_CUR) != 0) {
            return true;
        }
    }
    return false;
}

/* Keeps the pairs for which the condition is true. */
static ivm_status pairs_select(run *it)
{
    ivm__step *step = it->step;
    pairs *found = &it->found;
    uint32_t *kept = ivm__arena_allocate(step->scratch, found->count * sizeof *kept), count = 0;
    uint8_t *failed = ivm__arena_allocate(step->scratch, found->count);
    const ivm__chunk *chunk = pairs_chunk(it, it->outer->read);
    if (!kept || !failed || !chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, found->count);
    IVM_TRY(ivm__expression_select(it->outer->condition, step, chunk, kept, &count, failed));
    if (memchr(failed, 1, found->count) && fails_for_good(it, failed)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: a result in a join's condition is out of range", it->outer->head.view);
    }
    pairs_keep(found, kept, count);
    return IVM_OK;
}

/* ---- What matching pairs do ------------------------------------------------------------------------------------------------------------ */

/* Whether each joined row weighs an int64 after the step. */
static bool pairs_fit(const run *it)
{
    const pairs *found = &it->found;
    bool fit = true;
    for (uint32_t i = 0; i < found->count; i++) {
        ivm__weight weight = ivm__store_weight(&it->other->rows.store, found->rows[i], IVM__READ_CUR), product;
        fit &= !__builtin_mul_overflow(weight, it->changed.after[found->positions[i]], &product) && ivm__weight_fits(product);
    }
    return fit;
}

static void drivers_count(const run *it, ivm__outer_side *driver)
{
    const pairs *found = &it->found;
    for (uint32_t i = 0; i < found->count; i++) {
        if (it->changed.before[found->positions[i]] == 0 && found->weights[i] > 0) {
            ivm__partners_add(driver, found->drivers[i], 1);
        }
    }
}

static void others_count(const run *it, ivm__outer_side *other)
{
    const pairs *found = &it->found;
    for (uint32_t i = 0; i < found->count; i++) {
        uint32_t position = found->positions[i];
        int change = (it->changed.after[position] > 0) - (it->changed.before[position] > 0);
        if (change) {
            ivm__partners_add(other, found->rows[i], change);
        }
    }
}

static ivm_status pairs_count(run *it)
{
    if (it->driver->preserved) {
        IVM_TRY(ivm__outer_side_touches_reserve(it->driver, it->found.count));
        drivers_count(it, it->driver);
    }
    if (it->other->preserved) {
        IVM_TRY(ivm__outer_side_touches_reserve(it->other, it->found.count));
        others_count(it, it->other);
    }
    return IVM_OK;
}

/* weights[i] = change of the driver's row x weight of the other: at most 2^64 * 2^63. False: all are 1. */
static bool products(const run *it, ivm__weight *weights)
{
    const pairs *found = &it->found;
    ivm__weight unlike = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        uint32_t position = found->positions[i];
        weights[i] = (it->changed.after[position] - it->changed.before[position]) * found->weights[i];
        unlike |= weights[i] ^ 1;
    }
    return unlike != 0;
}

static ivm_status pairs_emit(const run *it)
{
    ivm__weight *weights = ivm__arena_allocate(it->step->scratch, it->found.count * sizeof *weights);
    ivm__chunk *chunk = pairs_chunk(it, NULL);
    if (!weights || !chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->weights = products(it, weights) ? weights : NULL;
    return ivm__emit(&it->outer->head, it->step, chunk);
}

static ivm_status pairs_pass(run *it)
{
    pairs_weigh(it, &it->found);
    if (it->found.count && it->outer->condition) {
        IVM_TRY(pairs_select(it));
    }
    it->step->stats->rows_matched += it->found.count;
    if (it->found.count == 0) {
        return IVM_OK;
    }
    if (it->judges_weights && !pairs_fit(it)) {
        return ivm__fail(it->step->error, IVM_OVERFLOW, "view %s: the weight of a joined row is out of range", it->outer->head.view);
    }
    IVM_TRY(pairs_count(it));
    return it->outer->joins ? pairs_emit(it) : IVM_OK;
}

/* ---- Probing ---------------------------------------------------------------------------------------------------------------------------- */

/* The changed rows' keys, as the other side's index has them. */
static ivm_status changed_keys(const run *it, ivm__keys *keys)
{
    ivm__arena *scratch = it->step->scratch;
    const ivm__outer_side *driver = it->driver;
    const ivm__store *store = &driver->rows.store;
    ivm__chunk *chunk = ivm__chunk_make(scratch, store->layout->types, driver->columns_count);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    chunk->rows_count = it->changed.count;
    for (uint32_t k = 0; k < driver->keys_count; k++) {
        uint32_t column = driver->keys[k];
        if (!ivm__pairs_column(scratch, store, column, it->changed.rows, chunk->rows_count, &chunk->columns[column])) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    return ivm__index_keys(it->other->index, scratch, chunk, driver->keys, false, keys);
}

static ivm_status changed_match(run *it)
{
    ivm__arena *scratch = it->step->scratch;
    ivm__keys keys;
    IVM_TRY(changed_keys(it, &keys));
    it->step->stats->rows_probed += keys.rows_count - ivm__keys_skipped(&keys);
    for (ivm__probe probe = { 0 }; probe.key < keys.rows_count;) {
        ivm__arena_mark mark = ivm__arena_here(scratch);
        IVM_TRY(ivm__step_poll(it->step));
        it->found.count = ivm__index_probe(it->other->index, &keys, &probe, IVM__CHUNK_ROWS, it->found.positions, it->found.rows);
        IVM_TRY(pairs_pass(it));
        ivm__arena_back(scratch, mark);
    }
    return IVM_OK;
}

static bool run_make(run *it)
{
    ivm__arena *scratch = it->step->scratch;
    driving *changed = &it->changed;
    pairs *found = &it->found;
    changed->rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *changed->rows);
    changed->before = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *changed->before);
    changed->after = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *changed->after);
    found->positions = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *found->positions);
    found->rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *found->rows);
    found->drivers = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *found->drivers);
    found->weights = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *found->weights);
    return changed->rows && changed->before && changed->after && found->positions && found->rows && found->drivers && found->weights;
}

static bool products_may_overflow(const ivm__outer *outer)
{
    ivm__weight product;
    return outer->joins && (__builtin_mul_overflow(outer->left.rows.store.weight_max, outer->right.rows.store.weight_max, &product) ||
                            !ivm__weight_fits(product));
}

ivm_status ivm__outer_match(ivm__outer *outer, ivm__step *step, ivm__outer_side *driver, ivm__reading reading)
{
    ivm__outer_side *other = driver == &outer->left ? &outer->right : &outer->left;
    run it = { .outer = outer, .step = step, .driver = driver, .other = other, .reading = reading };
    it.judges_weights = products_may_overflow(outer);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    if (!run_make(&it)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t next = 0; changed_next(&it, &next);) {
        ivm__arena_mark chunk = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        if (it.changed.count) {
            IVM_TRY(changed_match(&it));
        }
        ivm__arena_back(step->scratch, chunk);
    }
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}
