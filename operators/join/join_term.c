/* A term of a join: one product of readings.
 *
 *     sign * delta(driver) x reading(leaf) x ... , joined
 *
 * The driver's chunks become chunks of the join's columns, uncopied, and go through the probes of its order; what comes out is judged by the
 * residual condition and emitted. A term of which the driver or another leaf read as delta is empty costs nothing. */
#include "join_state.h"

static ivm_status weight_fail(const ivm__join *join, ivm__step *step)
{
    return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a joined row is out of range", join->head.view);
}

/* ---- Equal pairs ------------------------------------------------------------------------------------------------------------------- */

static uint32_t rows_equal_words(const ivm__vector *a, const ivm__vector *b, uint32_t *rows, uint32_t count)
{
    const uint64_t *left = a->cells, *right = b->cells;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += left[row] == right[row] && !ivm__is_null(a, row) && !ivm__is_null(b, row);
    }
    return kept;
}

static uint32_t rows_equal_wides(const ivm__vector *a, const ivm__vector *b, uint32_t *rows, uint32_t count)
{
    const ivm__wide *left = a->cells, *right = b->cells;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += left[row] == right[row] && !ivm__is_null(a, row) && !ivm__is_null(b, row);
    }
    return kept;
}

ivm_status ivm__join_equal(ivm__step *step, const ivm__probe_key *equal, uint32_t equal_count, ivm__chunk **chunk)
{
    uint32_t count = (*chunk)->rows_count;
    uint32_t *rows = ivm__arena_allocate(step->scratch, count * sizeof *rows);
    if (!rows) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = i;
    }
    for (uint32_t i = 0; i < equal_count; i++) {
        const ivm__vector *a = &(*chunk)->columns[equal[i].from], *b = &(*chunk)->columns[equal[i].to];
        assert(a->cells && b->cells && a->type == b->type);
        count = ivm__type_is_wide(a->type) ? rows_equal_wides(a, b, rows, count) : rows_equal_words(a, b, rows, count);
    }
    if (count == (*chunk)->rows_count) {
        return IVM_OK;
    }
    *chunk = ivm__chunk_gather(step->scratch, *chunk, rows, count);
    return *chunk ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* ---- What comes out ------------------------------------------------------------------------------------------------------------------ */

static void columns_drop(ivm__chunk *chunk, const bool *keep)
{
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        if (!keep[c]) {
            chunk->columns[c].cells = NULL;
            chunk->columns[c].nulls = NULL;
        }
    }
}

static bool weights_negate(const ivm__chunk *chunk, ivm__weight *out)
{
    bool fits = true;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        fits &= !__builtin_sub_overflow((ivm__weight)0, ivm__chunk_weight(chunk, i), &out[i]);
    }
    return fits;
}

static ivm_status negate(const ivm__join_run *run, ivm__chunk *chunk)
{
    ivm__weight *weights = ivm__arena_allocate(run->step->scratch, chunk->rows_count * sizeof *weights);
    if (!weights) {
        return IVM_OUT_OF_MEMORY;
    }
    if (!weights_negate(chunk, weights)) {
        return weight_fail(run->join, run->step);
    }
    chunk->weights = weights;
    return IVM_OK;
}

/* The rows for which the residual condition is true; failures are kept apart with their weights. */
static ivm_status residual_select(const ivm__join_run *run, ivm__chunk **chunk)
{
    ivm__join *join = run->join;
    ivm__step *step = run->step;
    uint32_t rows_count = (*chunk)->rows_count, count = 0;
    uint32_t *rows = ivm__arena_allocate(step->scratch, rows_count * sizeof *rows);
    uint8_t *failed = ivm__arena_allocate(step->scratch, rows_count);
    if (!rows || !failed) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, rows_count);
    IVM_TRY(ivm__expression_select(join->residual, step, *chunk, rows, &count, failed));
    if (join->residual_fallible && memchr(failed, 1, rows_count)) {
        IVM_TRY(ivm__failures_add(&join->failures, step, *chunk, failed));
    }
    columns_drop(*chunk, join->needed_above);
    if (count < rows_count) {
        *chunk = ivm__chunk_gather(step->scratch, *chunk, rows, count);
    }
    return *chunk ? IVM_OK : IVM_OUT_OF_MEMORY;
}

static bool weights_within_limit(const ivm__chunk *chunk)
{
    bool within = true;
    for (uint32_t i = 0; chunk->weights && i < chunk->rows_count; i++) {
        within &= chunk->weights[i] < IVM__JOIN_WEIGHT_LIMIT && chunk->weights[i] > -IVM__JOIN_WEIGHT_LIMIT;
    }
    return within;
}

ivm_status ivm__join_emit_rows(const ivm__join_run *run, ivm__chunk *chunk)
{
    if (run->sign < 0) {
        IVM_TRY(negate(run, chunk));
    }
    columns_drop(chunk, run->join->read_last);
    if (run->join->residual) {
        IVM_TRY(residual_select(run, &chunk));
    }
    if (!weights_within_limit(chunk)) {
        return weight_fail(run->join, run->step);
    }
    return ivm__emit(&run->join->head, run->step, chunk);
}

ivm_status ivm__join_run_emit(ivm__join_run *run, ivm__chunk *chunk)
{
    return run->fold ? ivm__join_unfold(run, chunk) : ivm__join_emit_rows(run, chunk);
}

/* ---- Driving ----------------------------------------------------------------------------------------------------------------------- */

/* The codes that a cover of the table's key gives these cells; NULL where one has none. False: out of memory. */
static bool cells_code(const ivm__join_run *run, const ivm__cover *cover, uint32_t count, ivm__vector *column)
{
    const ivm__codes *codes = ivm__cover_codes(cover);
    uint16_t *found = ivm__arena_allocate(run->step->scratch, count * sizeof *found);
    bool all = true;
    for (uint32_t i = 0; found && i < count; i++) {
        found[i] = (uint16_t)ivm__codes_find(codes, ivm__word(column, i), cover->words->seed);
        all &= found[i] != 0;
    }
    column->codes = all ? found : NULL;
    column->codes_of = all ? codes : NULL;
    return found != NULL;
}

/* Columns of the driver that are grouped by get the codes that probes of its table would give them. */
static bool columns_code(const ivm__join_run *run, ivm__chunk *chunk)
{
    const ivm__join_leaf *leaf = run->driver;
    ivm__cover *cover;
    if (!leaf->bare.table || !leaf->bare.table->key_index) {
        return true;
    }
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        ivm__vector *column = &chunk->columns[leaf->columns_first + leaf->kept[i]];
        bool coded = run->order->last[leaf->columns_first + leaf->kept[i]] == IVM__READ_ABOVE && !column->nulls &&
                     ivm__index_cover_find(leaf->bare.table->key_index, ivm__source_column(leaf->bare, leaf->kept[i]), &cover) && cover &&
                     ivm__cover_codes(cover);
        if (coded && !cells_code(run, cover, chunk->rows_count, column)) {
            return false;
        }
    }
    return true;
}

ivm__chunk *ivm__join_driver_chunk(const ivm__join_run *run, const ivm__chunk *compact)
{
    const ivm__join_leaf *leaf = run->driver;
    ivm__chunk *chunk = ivm__chunk_make(run->step->scratch, run->join->head.types, run->join->head.columns_count);
    if (!chunk) {
        return NULL;
    }
    chunk->rows_count = compact->rows_count;
    chunk->weights = compact->weights;
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        chunk->columns[leaf->columns_first + leaf->kept[i]] = compact->columns[i];
    }
    return chunk;
}

/* Carries compact rows of the driver through all probes. */
ivm_status ivm__join_run_driver(ivm__join_run *run, const ivm__chunk *compact)
{
    ivm__chunk *chunk = ivm__join_driver_chunk(run, compact);
    if (!chunk) {
        return IVM_OUT_OF_MEMORY;
    }
    if (run->order->equal_count) {
        IVM_TRY(ivm__join_equal(run->step, run->order->equal, run->order->equal_count, &chunk));
    }
    if (chunk->rows_count == 0) {
        return IVM_OK;
    }
    if (!columns_code(run, chunk)) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__join_fold(run, &chunk));
    IVM_TRY(ivm__join_send_ahead(run, chunk));
    return ivm__join_probe_chunk(run, 0, chunk);
}

/* The index over the probe's columns, where in the store they are now. */
static ivm_status index_prepare(const ivm__join_run *run, const ivm__join_probe *probe, ivm__probe_source *source)
{
    const ivm__join_leaf *leaf = source->leaf;
    if (!ivm__leaf_is_bare(leaf) || source->store != ivm__source_store(leaf->bare)) {
        return ivm__step_index(run->step, source->store, probe->place, probe->keys_count, false, &source->index);
    }
    if (ivm__likely(ivm__source_is_present(leaf->bare))) {
        return ivm__step_index(run->step, source->store, probe->to, probe->keys_count, probe->unique, &source->index);
    }
    uint32_t *columns = ivm__arena_allocate(run->step->scratch, probe->keys_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t k = 0; k < probe->keys_count; k++) {
        columns[k] = ivm__source_column(leaf->bare, probe->to[k]);
    }
    return ivm__step_index(run->step, source->store, columns, probe->keys_count, probe->unique, &source->index);
}

ivm_status ivm__join_source_prepare(const ivm__join_run *run, const ivm__join_probe *probe, uint8_t reading, ivm__probe_source *source)
{
    ivm__join_leaf *leaf = &run->join->leaves[probe->leaf];
    assert(reading != IVM__LEAF_OLD || !run->step->initial);
    source->probe = probe;
    source->leaf = leaf;
    source->in_place = false;
    source->aside = NULL;
    source->reads.known = false;
    source->reading = reading == IVM__LEAF_OLD ? IVM__READ_OLD : ivm__leaf_is_bare(leaf) ? ivm__step_reading(run->step) : IVM__READ_CUR;
    if (reading == IVM__LEAF_DELTA) {
        IVM_TRY(ivm__leaf_delta_fill(run->join, leaf, run->step));
        source->store = &leaf->delta.store;
    } else {
        IVM_TRY(ivm__leaf_keep(run->join, leaf, run->step));
        source->store = ivm__leaf_store(leaf);
        source->aside = ivm__leaf_aside(leaf, source->reading);
    }
    if (probe->keys_count == 0) {
        return IVM_OK;
    }
    source->in_place = leaf->bare.table && source->store == &leaf->bare.table->store;
    return source->index ? IVM_OK : index_prepare(run, probe, source);
}

static ivm_status sources_prepare(ivm__join_run *run, const uint8_t *readings)
{
    for (uint32_t i = 0; i < run->sources_count; i++) {
        const ivm__join_probe *probe = &run->order->probes[i];
        IVM_TRY(ivm__join_source_prepare(run, probe, readings[probe->leaf], &run->sources[i]));
    }
    return IVM_OK;
}

static bool term_is_empty(const ivm__join *join, const ivm__term *term)
{
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        const ivm__join_leaf *leaf = &join->leaves[i];
        bool nobody_waits = leaf->transient && leaf->transient->store.rows_live == 0;
        if (term->readings[i] == IVM__LEAF_DELTA ? leaf->delta_rows == 0 : nobody_waits) {
            return true;
        }
    }
    return false;
}

ivm_status ivm__join_drive(ivm__join_run *run, ivm__leaf_walk *walk, bool one)
{
    ivm__step *step = run->step;
    do {
        const ivm__chunk *chunk;
        ivm__arena_mark mark = ivm__arena_here(step->scratch);
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(ivm__leaf_delta_next(run->driver, step, walk, &chunk));
        if (!chunk) {
            return IVM_OK;
        }
        IVM_TRY(ivm__join_run_driver(run, chunk));
        ivm__arena_back(step->scratch, mark);
    } while (!one);
    return IVM_OK;
}

ivm_status ivm__join_term(ivm__join *join, ivm__step *step, const ivm__term *term)
{
    assert(term->driver < join->leaves_count && term->readings[term->driver] == IVM__LEAF_DELTA);
    step->stats->terms_run++;
    if (term_is_empty(join, term)) {
        return IVM_OK;
    }
    ivm__join_run run;
    run.join = join;
    run.step = step;
    run.kept = NULL;
    run.fold = NULL;
    run.sign = term->sign;
    run.sources_count = join->leaves_count - 1;
    run.driver = &join->leaves[term->driver];
    run.order = &join->orders[term->driver];
    run.rows_probed = run.rows_matched = 0;
    run.ahead_of = NULL;
    bool misses = false;
    IVM_TRY(ivm__join_term_misses(&run, term, &misses));
    if (misses) {
        step->stats->terms_dropped++;
        return IVM_OK;
    }
    IVM_TRY(sources_prepare(&run, term->readings));
    ivm__leaf_walk walk = { 0 };
    IVM_TRY(ivm__join_spreads(&run) ? ivm__join_spread(&run) : ivm__join_drive(&run, &walk, false));
    join->rows_probed += run.rows_probed;
    join->rows_matched += run.rows_matched;
    step->stats->rows_probed += run.rows_probed;
    step->stats->rows_matched += run.rows_matched;
    return IVM_OK;
}
