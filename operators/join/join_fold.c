/* Rows of a driver that ask the same: an update of a parent's row drives its term with the row before (-1) and the row after (+1), and both find
 * the same partners, which are many. Such rows go through the probes as one, of weight 1, and come apart again where the term emits.
 *
 *     rows        those with equal cells in every column that a probe reads of the driver: a class; one row stands for it
 *     carrier     a column read only behind all probes, whose cells are the number of the class meanwhile
 *     emit        a round for the first rows of all classes, one for the second ones: columns as they came, the driver's read late gathered
 *
 * Cost: a hash a driver row; a round copies nothing but the driver's late columns where all classes have a row for it. Only deltas with a negative
 * weight are looked at, and only where a probe may find many rows or much of the delta is changed rows. */
#include "join_state.h"

#include "hash.h"

#define NO_ROW UINT32_MAX

struct ivm__join_folded {
    const ivm__chunk *rows; /* of the driver, in the join's columns */
    uint32_t classes_count;
    uint32_t *first; /* row of each class */
    uint32_t *next;  /* row of the same class, of each row; NO_ROW at the end */
    uint32_t *late;  /* join columns of the driver that no probe reads; the first is the carrier */
    uint32_t late_count;
};

/* ---- Columns --------------------------------------------------------------------------------------------------------------------------- */

static void asked_mark(const ivm__join_run *run, bool *asked)
{
    for (uint32_t p = 0; p < run->sources_count; p++) {
        const ivm__join_probe *probe = &run->order->probes[p];
        for (uint32_t k = 0; k < probe->keys_count; k++) {
            asked[probe->from[k]] = true;
        }
        for (uint32_t e = 0; e < probe->equal_count; e++) {
            asked[probe->equal[e].from] = asked[probe->equal[e].to] = true;
        }
    }
}

/* The driver's columns, those that probes read before the others: columns[0 .. asked), columns[asked .. asked + late). False: out of memory. */
static bool columns_part(const ivm__join_run *run, uint32_t **columns, uint32_t *asked_count, uint32_t *late_count)
{
    const ivm__join_leaf *leaf = run->driver;
    uint32_t columns_count = run->join->head.columns_count;
    bool *asked = ivm__arena_allocate(run->step->scratch, columns_count * sizeof *asked);
    *columns = ivm__arena_allocate(run->step->scratch, (leaf->kept_count ? leaf->kept_count : 1) * sizeof **columns);
    if (!asked || !*columns) {
        return false;
    }
    memset(asked, 0, columns_count * sizeof *asked);
    asked_mark(run, asked);
    *asked_count = *late_count = 0;
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        uint32_t c = leaf->columns_first + leaf->kept[i];
        if (asked[c]) {
            (*columns)[(*asked_count)++] = c;
        }
    }
    for (uint32_t i = 0; i < leaf->kept_count; i++) {
        uint32_t c = leaf->columns_first + leaf->kept[i];
        if (!asked[c] && run->order->last[c] >= IVM__READ_RESIDUAL) {
            (*columns)[*asked_count + (*late_count)++] = c;
        }
    }
    return true;
}

/* ---- Classes --------------------------------------------------------------------------------------------------------------------------- */

static void column_hash(const ivm__vector *column, uint32_t count, uint64_t *hashes)
{
    bool wide = ivm__type_is_wide(column->type);
    for (uint32_t i = 0; i < count; i++) {
        bool null = ivm__is_null(column, i);
        uint64_t word = null ? 1 : wide ? (uint64_t)ivm__wide_cell(column, i) : ivm__word(column, i);
        hashes[i] = ivm__hash_fold(hashes[i], word);
    }
}

static bool cells_equal(const ivm__vector *column, uint32_t a, uint32_t b)
{
    if (ivm__is_null(column, a) || ivm__is_null(column, b)) {
        return ivm__is_null(column, a) && ivm__is_null(column, b);
    }
    return ivm__type_is_wide(column->type) ? ivm__wide_cell(column, a) == ivm__wide_cell(column, b)
                                           : ivm__word(column, a) == ivm__word(column, b);
}

static bool rows_alike(const ivm__chunk *chunk, const uint32_t *columns, uint32_t count, uint32_t a, uint32_t b)
{
    bool alike = true;
    for (uint32_t i = 0; alike && i < count; i++) {
        alike = cells_equal(&chunk->columns[columns[i]], a, b);
    }
    return alike;
}

/* A table of the classes met, by the hash of the asked columns. */
typedef struct classing {
    const uint32_t *asked;
    uint32_t asked_count;
    uint64_t *hashes;
    uint32_t *table; /* class + 1 */
    uint32_t mask;
    uint32_t *last, *sizes; /* of each class */
    uint32_t largest;
} classing;

static void row_class(classing *it, ivm__join_folded *fold, uint32_t row)
{
    uint32_t at = (uint32_t)(it->hashes[row] >> 32) & it->mask;
    while (it->table[at] && !rows_alike(fold->rows, it->asked, it->asked_count, fold->first[it->table[at] - 1], row)) {
        at = (at + 1) & it->mask;
    }
    fold->next[row] = NO_ROW;
    if (it->table[at] == 0) {
        it->table[at] = ++fold->classes_count;
        fold->first[fold->classes_count - 1] = row;
        it->sizes[fold->classes_count - 1] = 0;
    } else {
        fold->next[it->last[it->table[at] - 1]] = row;
    }
    uint32_t class = it->table[at] - 1, size = ++it->sizes[class];
    it->last[class] = row;
    it->largest = size > it->largest ? size : it->largest;
}

static bool classing_init(classing *it, ivm__arena *scratch, const ivm__join_folded *fold, uint64_t seed)
{
    uint32_t count = fold->rows->rows_count, capacity = 4;
    while (capacity < 2 * count) {
        capacity *= 2;
    }
    it->mask = capacity - 1;
    it->hashes = ivm__arena_allocate(scratch, count * sizeof *it->hashes);
    it->table = ivm__arena_allocate(scratch, capacity * sizeof *it->table);
    it->last = ivm__arena_allocate(scratch, count * sizeof *it->last);
    it->sizes = ivm__arena_allocate(scratch, count * sizeof *it->sizes);
    if (!it->hashes || !it->table || !it->last || !it->sizes) {
        return false;
    }
    memset(it->table, 0, capacity * sizeof *it->table);
    for (uint32_t i = 0; i < count; i++) {
        it->hashes[i] = seed;
    }
    for (uint32_t i = 0; i < it->asked_count; i++) {
        column_hash(&fold->rows->columns[it->asked[i]], count, it->hashes);
    }
    return true;
}

/* Whether classes are fewer than rows by enough, and so even in size that rounds are not mostly of rows that have none left. */
static bool is_worth_folding(const ivm__join_folded *fold, uint32_t largest)
{
    uint64_t rows = fold->rows->rows_count, classes = fold->classes_count;
    return 4 * classes <= 3 * rows && classes * largest <= 2 * rows;
}

/* ---- Folding --------------------------------------------------------------------------------------------------------------------------- */

/* One row a class: the columns that probes read, and the class's number. NULL: out of memory. */
static ivm__chunk *folded_chunk(const ivm__join_run *run, const ivm__join_folded *fold, const uint32_t *asked, uint32_t asked_count)
{
    ivm__arena *scratch = run->step->scratch;
    ivm__chunk *out = ivm__chunk_make(scratch, run->join->head.types, fold->rows->columns_count);
    if (!out) {
        return NULL;
    }
    out->rows_count = fold->classes_count;
    for (uint32_t i = 0; i < asked_count; i++) {
        const ivm__vector *in = &fold->rows->columns[asked[i]];
        if (!ivm__vector_choose(scratch, in, fold->first, out->rows_count, &out->columns[asked[i]])) {
            return NULL;
        }
    }
    ivm__vector *carrier = &out->columns[fold->late[0]];
    if (!ivm__vector_make(scratch, carrier, IVM_INT64, out->rows_count, false)) {
        return NULL;
    }
    for (uint32_t i = 0; i < out->rows_count; i++) {
        ((uint64_t *)carrier->cells)[i] = i;
    }
    return out;
}

/* Whether partners may be many, or changed rows are. */
static bool may_fold(const ivm__join_run *run, const ivm__chunk *chunk)
{
    const ivm_table *table = run->driver->bare.table;
    bool many = table && table->key_count && 4 * (uint64_t)table->key_index->doubles >= run->driver->delta_rows;
    for (uint32_t i = 0; i < run->sources_count; i++) {
        many |= !run->sources[i].index || !run->sources[i].probe->unique;
    }
    return many && chunk->rows_count > 1 && ivm__chunk_any_negative(chunk);
}

ivm_status ivm__join_fold(ivm__join_run *run, ivm__chunk **chunk)
{
    ivm__arena *scratch = run->step->scratch;
    run->fold = NULL;
    if (!may_fold(run, *chunk)) {
        return IVM_OK;
    }
    uint32_t *columns, rows_count = (*chunk)->rows_count;
    classing classes = { 0 };
    ivm__join_folded *fold = ivm__arena_allocate(scratch, sizeof *fold);
    if (!fold || !columns_part(run, &columns, &classes.asked_count, &fold->late_count)) {
        return IVM_OUT_OF_MEMORY;
    }
    if (fold->late_count == 0) {
        return IVM_OK;
    }
    classes.asked = columns;
    fold->late = columns + classes.asked_count;
    fold->rows = *chunk;
    fold->classes_count = 0;
    fold->first = ivm__arena_allocate(scratch, rows_count * sizeof *fold->first);
    fold->next = ivm__arena_allocate(scratch, rows_count * sizeof *fold->next);
    if (!fold->first || !fold->next || !classing_init(&classes, scratch, fold, run->join->seed)) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < rows_count; i++) {
        row_class(&classes, fold, i);
    }
    if (!is_worth_folding(fold, classes.largest)) {
        return IVM_OK;
    }
    *chunk = folded_chunk(run, fold, columns, classes.asked_count);
    run->fold = fold;
    return *chunk ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* ---- Unfolding ------------------------------------------------------------------------------------------------------------------------- */

/* Rows of the chunk that a round has a driver's row for. */
typedef struct fold_round {
    uint32_t *members; /* of each class: its row of this round; NO_ROW: none left */
    uint32_t *rows, *drivers;
    uint32_t count;
} fold_round;

static void round_rows(fold_round *it, const uint64_t *classes, uint32_t count)
{
    it->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t driver = it->members[classes[i]];
        it->rows[it->count] = i;
        it->drivers[it->count] = driver;
        it->count += driver != NO_ROW;
    }
}

static void round_next(fold_round *it, const ivm__join_folded *fold)
{
    for (uint32_t class = 0; class < fold->classes_count; class ++) {
        it->members[class] = it->members[class] == NO_ROW ? NO_ROW : fold->next[it->members[class]];
    }
}

static bool round_weights(const ivm__join_run *run, const fold_round *it, ivm__chunk *chunk)
{
    const ivm__weight *drivers = run->fold->rows->weights, *joined = chunk->weights;
    chunk->weights = ivm__arena_allocate(run->step->scratch, it->count * sizeof *chunk->weights);
    for (uint32_t i = 0; chunk->weights && i < it->count; i++) {
        chunk->weights[i] = ivm__join_weight_product(drivers[it->drivers[i]], joined ? joined[i] : 1);
    }
    return chunk->weights != NULL;
}

/* The round's rows with the driver's cells and weights. NULL: out of memory. */
static ivm__chunk *round_chunk(const ivm__join_run *run, const ivm__chunk *chunk, const fold_round *it)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__join_folded *fold = run->fold;
    ivm__chunk *out;
    if (it->count < chunk->rows_count) {
        out = ivm__chunk_gather(scratch, chunk, it->rows, it->count);
    } else if ((out = ivm__chunk_make(scratch, run->join->head.types, chunk->columns_count))) {
        memcpy(out->columns, chunk->columns, chunk->columns_count * sizeof *out->columns);
        out->rows_count = chunk->rows_count;
        out->weights = chunk->weights;
    }
    if (!out) {
        return NULL;
    }
    for (uint32_t i = 0; i < fold->late_count; i++) {
        const ivm__vector *in = &fold->rows->columns[fold->late[i]];
        if (!ivm__vector_choose(scratch, in, it->drivers, it->count, &out->columns[fold->late[i]])) {
            return NULL;
        }
    }
    return round_weights(run, it, out) ? out : NULL;
}

ivm_status ivm__join_unfold(const ivm__join_run *run, const ivm__chunk *chunk)
{
    ivm__arena *scratch = run->step->scratch;
    const ivm__join_folded *fold = run->fold;
    fold_round it = { ivm__arena_allocate(scratch, fold->classes_count * sizeof *it.members),
                      ivm__arena_allocate(scratch, chunk->rows_count * sizeof *it.rows),
                      ivm__arena_allocate(scratch, chunk->rows_count * sizeof *it.drivers), 0 };
    if (!it.members || !it.rows || !it.drivers) {
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(it.members, fold->first, fold->classes_count * sizeof *it.members);
    const uint64_t *classes = chunk->columns[fold->late[0]].cells;
    ivm__arena_mark mark = ivm__arena_here(scratch);
    for (round_rows(&it, classes, chunk->rows_count); it.count > 0; round_rows(&it, classes, chunk->rows_count)) {
        ivm__chunk *out = round_chunk(run, chunk, &it);
        if (!out) {
            return IVM_OUT_OF_MEMORY;
        }
        IVM_TRY(ivm__join_emit_rows(run, out));
        ivm__arena_back(scratch, mark);
        round_next(&it, fold);
    }
    return IVM_OK;
}
