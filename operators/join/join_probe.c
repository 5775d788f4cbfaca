/* One chunk through the probes of a term, depth first: a probe that finds more pairs than a chunk holds sends what it has down to the next
 * one before it goes on, so that memory is bounded by a chunk a probe.
 *
 *     keys -> pairs (position in the chunk, row found) -> weights, rows of weight 0 dropped -> columns -> next probe
 *
 * Cost: a hash, a slot and a row a key. Where every row is found once and weighs 1, as a foreign key makes it, columns are passed on as they
 * are and weights stay unwritten; else each column that is read later is gathered once. */
#include "join_state.h"
#include "pairs.h"

/* What a probe found: the row rows[i] for the chunk's row positions[i]. */
typedef struct pairs {
    uint32_t count;
    uint32_t *positions;
    ivm__row_id *rows;
    ivm__weight *weights; /* of the joined rows; NULL: all 1 */
    bool unmoved;         /* positions[i] == i for all of the chunk's rows */
} pairs;

/* ---- Weights ----------------------------------------------------------------------------------------------------------------------- */

/* Whether every row weighs 1 and is as it was when the step began, or, read as cur, was appended by it. */
static bool rows_weigh_one(const ivm__store *store, const ivm__row_id *rows, uint32_t count, ivm__reading reading)
{
    ivm__row_id end = reading == IVM__READ_OLD ? store->step_end : UINT32_MAX;
    ivm__row_header one = ivm__header_of_weight(1), unlike = 0;
    for (uint32_t i = 0; i < count; i++) {
        unlike |= (ivm__row_header_of(ivm__store_row(store, rows[i])) ^ one) | (rows[i] >= end);
    }
    return unlike == 0;
}

/* weights[i] = weight of the pair; pairs of weight 0 are dropped. */
static void pairs_weigh(pairs *found, const ivm__probe_source *source, const ivm__weight *inputs)
{
    uint32_t kept = 0;
    ivm__weight unlike = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        ivm__weight weight = ivm__store_weight_aside(source->store, found->rows[i], source->reading, source->aside);
        if (inputs) {
            weight = ivm__join_weight_product(weight, inputs[found->positions[i]]);
        }
        found->positions[kept] = found->positions[i];
        found->rows[kept] = found->rows[i];
        found->weights[kept] = weight;
        kept += weight != 0;
        unlike |= weight ^ (weight != 0);
    }
    found->count = kept;
    if (unlike == 0) {
        found->weights = NULL;
    }
}

static void weights_gather(const ivm__weight *in, const uint32_t *positions, uint32_t count, ivm__weight *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = in[positions[i]];
    }
}

/* The weights of the chunk's rows that were found, where no row of the other side weighs but 1. */
static bool weights_pass(ivm__arena *arena, const ivm__chunk *chunk, const pairs *found, ivm__chunk *next)
{
    next->rows_count = found->count;
    if (!chunk->weights) {
        return true;
    }
    next->weights = ivm__arena_allocate(arena, found->count * sizeof *next->weights);
    if (next->weights) {
        weights_gather(chunk->weights, found->positions, found->count, next->weights);
    }
    return next->weights != NULL;
}

static bool positions_unmoved(const uint32_t *positions, uint32_t count)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        moved |= positions[i] ^ i;
    }
    return moved == 0;
}

static ivm_status weigh(ivm__join_run *run, const ivm__probe_source *source, const ivm__chunk *chunk, pairs *found)
{
    bool plain = rows_weigh_one(source->store, found->rows, found->count, source->reading);
    if (plain) {
        found->unmoved = found->count == chunk->rows_count && positions_unmoved(found->positions, found->count);
        found->weights = chunk->weights;
        if (!chunk->weights || found->unmoved) {
            return IVM_OK;
        }
    }
    found->weights = ivm__arena_allocate(run->step->scratch, found->count * sizeof *found->weights);
    if (!found->weights) {
        return IVM_OUT_OF_MEMORY;
    }
    if (plain) {
        weights_gather(chunk->weights, found->positions, found->count, found->weights);
        return IVM_OK;
    }
    pairs_weigh(found, source, chunk->weights);
    found->unmoved = found->count == chunk->rows_count && positions_unmoved(found->positions, found->count);
    return IVM_OK;
}

/* ---- Columns ----------------------------------------------------------------------------------------------------------------------- */

static bool column_pass(ivm__arena *arena, const ivm__vector *in, const pairs *found, ivm__vector *out)
{
    if (found->unmoved) {
        *out = *in;
        return true;
    }
    return ivm__vector_choose(arena, in, found->positions, found->count, out);
}

/* The pairs as a chunk of the columns that are still to be read. NULL: out of memory. */
static ivm__chunk *pairs_chunk(const ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk, const pairs *found)
{
    ivm__arena *arena = run->step->scratch;
    const ivm__probe_source *source = &run->sources[depth];
    const uint8_t *last = run->order->last;
    ivm__chunk *out = ivm__chunk_make(arena, run->join->head.types, chunk->columns_count);
    if (!out) {
        return NULL;
    }
    out->rows_count = found->count;
    out->weights = found->weights;
    for (uint32_t c = 0; c < chunk->columns_count; c++) {
        if (chunk->columns[c].cells && last[c] >= IVM__READ_BEHIND(depth) &&
            !column_pass(arena, &chunk->columns[c], found, &out->columns[c])) {
            return NULL;
        }
    }
    for (uint32_t i = 0; i < source->leaf->kept_count; i++) {
        uint32_t c = source->leaf->columns_first + source->leaf->kept[i];
        uint32_t column = ivm__leaf_store_column(source->leaf, source->store, i);
        if (last[c] >= IVM__READ_BEHIND(depth) &&
            !ivm__pairs_column(arena, source->store, column, found->rows, found->count, &out->columns[c])) {
            return NULL;
        }
    }
    return out;
}

/* ---- Probes ------------------------------------------------------------------------------------------------------------------------ */

/* The equal pairs of the probe, then the next one. */
static ivm_status pairs_emit(ivm__join_run *run, uint32_t depth, ivm__chunk *next)
{
    const ivm__join_probe *probe = run->sources[depth].probe;
    if (probe->equal_count) {
        IVM_TRY(ivm__join_equal(run->step, probe->equal, probe->equal_count, &next));
    }
    return next->rows_count ? ivm__join_probe_chunk(run, depth + 1, next) : IVM_OK;
}

static ivm_status pairs_pass(ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk, pairs *found)
{
    const ivm__probe_source *source = &run->sources[depth];
    IVM_TRY(weigh(run, source, chunk, found));
    if (source->index) {
        run->rows_matched += found->count;
    }
    if (found->count == 0) {
        return IVM_OK;
    }
    ivm__chunk *next = pairs_chunk(run, depth, chunk, found);
    if (!next) {
        return IVM_OUT_OF_MEMORY;
    }
    return pairs_emit(run, depth, next);
}

/* The chunk becomes that of the pairs found, each of one row of the chunk at most: its columns that are read later, and those of the probed store,
 * cells[i] for plan->targets[i]; `codes`: those of a cover that has codes, else NULL. Where every row is found nothing moves. */
static ivm_status reads_pass(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk, pairs *found, uint64_t *const *cells,
                             const uint16_t *codes)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__probe_reads *plan = &run->sources[depth].reads;
    ivm__chunk *next = chunk;
    run->rows_matched += found->count;
    if (found->count < chunk->rows_count) {
        found->unmoved = false;
        next = ivm__chunk_make(scratch, run->join->head.types, chunk->columns_count);
        if (!next || !weights_pass(scratch, chunk, found, next)) {
            return IVM_OUT_OF_MEMORY;
        }
        for (uint32_t c = 0; c < chunk->columns_count; c++) {
            if (chunk->columns[c].cells && run->order->last[c] >= IVM__READ_BEHIND(depth) &&
                !column_pass(scratch, &chunk->columns[c], found, &next->columns[c])) {
                return IVM_OUT_OF_MEMORY;
            }
        }
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        ivm__vector *column = &next->columns[plan->targets[i]];
        column->cells = cells[i];
        column->codes = codes;
        column->codes_of = codes ? ivm__cover_codes(plan->cover) : NULL;
    }
    return pairs_emit(run, depth, next);
}

/* The positions of the keys found, and their cells and codes moved together. */
static void found_compact(uint32_t count, uint32_t *restrict positions, uint64_t *restrict cells, uint16_t *restrict codes)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool there = codes[i] != 0;
        positions[kept] = i;
        cells[kept] = cells[i];
        codes[kept] = codes[i];
        kept += there;
    }
}

/* The one column that is read comes from a cover, a line a key. */
static ivm_status probe_cover(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk, const ivm__keys *keys, pairs *found)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__cover *cover = run->sources[depth].reads.cover;
    uint64_t *cells = ivm__arena_allocate(scratch, keys->rows_count * sizeof *cells);
    uint16_t *codes = ivm__arena_allocate(scratch, keys->rows_count * sizeof *codes);
    if (!cells || !codes) {
        return IVM_OUT_OF_MEMORY;
    }
    found->count = ivm__cover_probe(cover, keys, cells, codes);
    if (found->count == 0) {
        return IVM_OK;
    }
    if (found->count < keys->rows_count) {
        found_compact(keys->rows_count, found->positions, cells, codes);
    }
    return reads_pass(run, depth, chunk, found, &cells, ivm__cover_codes(cover) ? codes : NULL);
}

/* Rows that each find one row of weight 1 at most, as a foreign key makes it: found and read in one pass. *done is false where a row is of
 * another kind: then nothing has happened. */
static ivm_status probe_reads(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk, const ivm__keys *keys, bool *done)
{
    ivm__probe_source *source = &run->sources[depth];
    ivm__arena *scratch = run->step->scratch;
    const ivm__probe_reads *plan = ivm__join_reads(run, depth);
    uint64_t *cells[IVM__READ_COLUMNS_MAX];
    pairs found = { .unmoved = true };
    *done = false;
    if (!plan->possible) {
        return IVM_OK;
    }
    found.positions = ivm__arena_allocate(scratch, keys->rows_count * sizeof *found.positions);
    if (!found.positions) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__join_reads_cover(run, depth, keys));
    if (plan->cover && !keys->skip) {
        *done = true;
        return probe_cover(run, depth, chunk, keys, &found);
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        cells[i] = ivm__arena_allocate(scratch, keys->rows_count * sizeof **cells);
        if (!cells[i]) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    found.count = ivm__index_probe_cells(source->index, keys, source->reading, plan->columns, plan->count, cells, found.positions);
    *done = found.count != IVM__ROW_NONE;
    return *done && found.count ? reads_pass(run, depth, chunk, &found, cells, NULL) : IVM_OK;
}

/* Goes back to where the memory was, but not past what a run on another thread has kept since: that may lie there, or what it is made of. */
typedef struct scratch_place {
    ivm__arena_mark mark;
    uint32_t kept;
} scratch_place;

static scratch_place scratch_here(const ivm__join_run *run)
{
    return (scratch_place){ ivm__arena_here(run->step->scratch), run->kept ? run->kept->count : 0 };
}

static void scratch_back(const ivm__join_run *run, scratch_place *place)
{
    if (run->kept && run->kept->count > place->kept) {
        *place = scratch_here(run);
    }
    ivm__arena_back(run->step->scratch, place->mark);
}

static bool pairs_make(ivm__arena *arena, pairs *found)
{
    *found = (pairs){ 0 };
    found->positions = ivm__arena_allocate(arena, IVM__CHUNK_ROWS * sizeof *found->positions);
    found->rows = ivm__arena_allocate(arena, IVM__CHUNK_ROWS * sizeof *found->rows);
    return found->positions && found->rows;
}

static ivm_status probe_pairs(ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk, const ivm__keys *keys)
{
    pairs found;
    if (!pairs_make(run->step->scratch, &found)) {
        return IVM_OUT_OF_MEMORY;
    }
    scratch_place place = scratch_here(run);
    for (ivm__probe probe = { 0 }; probe.key < keys->rows_count;) {
        IVM_TRY(ivm__step_poll(run->step));
        found.count = ivm__index_probe(run->sources[depth].index, keys, &probe, IVM__CHUNK_ROWS, found.positions, found.rows);
        if (found.count) {
            IVM_TRY(pairs_pass(run, depth, chunk, &found));
        }
        scratch_back(run, &place);
    }
    return IVM_OK;
}

static ivm_status probe_index(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk)
{
    const ivm__probe_source *source = &run->sources[depth];
    ivm__keys own;
    const ivm__keys *keys = ivm__join_keys_ahead(run, depth, chunk);
    if (!keys) {
        IVM_TRY(ivm__index_keys(source->index, run->step->scratch, chunk, source->probe->from, false, &own));
        keys = &own;
    }
    run->rows_probed += keys->rows_count - ivm__keys_skipped(keys);
    scratch_place place = scratch_here(run);
    bool done;
    IVM_TRY(probe_reads(run, depth, chunk, keys, &done));
    scratch_back(run, &place);
    return done ? IVM_OK : probe_pairs(run, depth, chunk, keys);
}

/* Pairs of every row of the chunk with `rows_count` rows, from the pair numbered `first` on, row of the chunk by row. */
static void pairs_cross(pairs *found, uint64_t first, uint64_t end, const ivm__row_id *rows, uint32_t rows_count)
{
    uint32_t position = (uint32_t)(first / rows_count), row = (uint32_t)(first % rows_count), count = 0;
    for (uint64_t pair = first; pair < end; pair++) {
        found->positions[count] = position;
        found->rows[count++] = rows[row++];
        if (row == rows_count) {
            row = 0;
            position++;
        }
    }
    found->count = count;
}

static uint32_t rows_scan(const ivm__probe_source *source, uint32_t *next, ivm__row_id *rows, ivm__weight *weights)
{
    if (source->aside) {
        return ivm__store_scan_aside(source->store, source->reading, source->aside, next, IVM__CHUNK_ROWS, rows, weights);
    }
    return ivm__store_scan(source->store, source->reading, next, IVM__CHUNK_ROWS, rows, weights);
}

static ivm_status probe_cross(ivm__join_run *run, uint32_t depth, const ivm__chunk *chunk)
{
    const ivm__probe_source *source = &run->sources[depth];
    ivm__arena *scratch = run->step->scratch;
    pairs found;
    assert(!run->kept);
    if (!pairs_make(scratch, &found)) {
        return IVM_OUT_OF_MEMORY;
    }
    ivm__row_id *rows = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *rows);
    ivm__weight *weights = ivm__arena_allocate(scratch, IVM__CHUNK_ROWS * sizeof *weights);
    if (!rows || !weights) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t next = 0, count;
    while ((count = rows_scan(source, &next, rows, weights)) > 0) {
        uint64_t all = (uint64_t)count * chunk->rows_count, end;
        for (uint64_t first = 0; first < all; first = end) {
            ivm__arena_mark mark = ivm__arena_here(scratch);
            end = all - first < IVM__CHUNK_ROWS ? all : first + IVM__CHUNK_ROWS;
            pairs_cross(&found, first, end, rows, count);
            IVM_TRY(ivm__step_poll(run->step));
            IVM_TRY(pairs_pass(run, depth, chunk, &found));
            ivm__arena_back(scratch, mark);
        }
    }
    return IVM_OK;
}

static ivm_status chunk_keep(ivm__join_kept *kept, ivm__chunk *chunk)
{
    if (kept->count == IVM__JOIN_KEPT_MAX) {
        kept->overfull = true;
        return IVM_UNSUPPORTED;
    }
    kept->chunks[kept->count++] = chunk;
    return IVM_OK;
}

ivm_status ivm__join_probe_chunk(ivm__join_run *run, uint32_t depth, ivm__chunk *chunk)
{
    assert(chunk->rows_count > 0 && chunk->rows_count <= IVM__CHUNK_ROWS);
    if (depth + 1 == run->join->leaves_count) {
        return run->kept ? chunk_keep(run->kept, chunk) : ivm__join_run_emit(run, chunk);
    }
    return run->sources[depth].index ? probe_index(run, depth, chunk) : probe_cross(run, depth, chunk);
}
