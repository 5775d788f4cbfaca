/* Sets: distinct, and union, except and intersect of two inputs or more, with copies counted (_all) or not.
 *
 *     weight of a row = f(w[0], w[1], ...)           w[i]: its weight in input i, at least 0; without _all at most 1
 *     union max     except max(left - right, 0)      intersect min       folded from left to right
 *     delta           = f(after) - f(before)         for every row that a step touched
 *
 * Whole rows are kept once, whatever inputs they are of, with an array of weights by row id that changes at commit alone: a step's changes stand
 * beside the store's touched rows, so that undo forgets them. distinct, of one input, goes by the store's own weights. Memory: each row, and 8
 * bytes an input. Cost: a lookup a row that came, a fold over the inputs a row touched. */
#include "bytes.h"
#include "delta.h"
#include "holding.h"
#include "items.h"
#include "operators.h"
#include "weights.h"

#define KEPT_CHANGES_MIN 4096u /* rows; a longer array is given back where steps became small again */

typedef struct set {
    ivm__operator head;
    ivm__memory *memory;
    ivm__set_kind kind;
    uint32_t inputs_count;
    ivm__zset rows;         /* of one input: with its weights; else of weight 1 where a row has a weight in any */
    ivm__items weights;     /* int64_t by row id and input; all 0 for ids that are free */
    ivm__weight *changes;   /* by place in the store's touched rows, and input */
    uint32_t changes_count; /* rows; as many as are touched */
    uint32_t changes_capacity;
} set;

static size_t weights_size(const set *it)
{
    return it->inputs_count * sizeof(int64_t);
}

static int64_t *weights_of(const set *it, ivm__row_id row)
{
    return ivm__items_at(&it->weights, row);
}

static size_t changes_size(const set *it)
{
    return it->inputs_count * sizeof *it->changes;
}

/* In flight a sum may wrap; what comes after brings it back. */
static ivm__weight weight_sum(ivm__weight a, ivm__weight b)
{
    return (ivm__weight)((unsigned __int128)a + (unsigned __int128)b);
}

/* ---- Rows that come ------------------------------------------------------------------------------------------------------------------ */

/* Where the step's changes of a row are, which is touched by that. There is room. */
static ivm_status changes_of(set *it, ivm__row_id row, ivm__weight **changes)
{
    ivm__store *store = &it->rows.store;
    IVM_TRY(ivm__store_touch(store, row));
    if (it->changes_count < store->touched_count) {
        assert(it->changes_count + 1 == store->touched_count && it->changes_count < it->changes_capacity);
        memset(it->changes + (size_t)it->changes_count++ * it->inputs_count, 0, changes_size(it));
    }
    uint32_t touch = ivm__header_touch(ivm__row_header_of(ivm__store_row(store, row)));
    *changes = it->changes + (size_t)(touch - 1) * it->inputs_count;
    return IVM_OK;
}

/* The row of the chunk's row, made unless an earlier row of the chunk has. There is room. */
static ivm__row_id row_make(set *it, const ivm__chunk *chunk, const ivm__keys *keys, uint32_t position)
{
    uint32_t next = 0;
    ivm__row_id row = ivm__index_find(it->rows.whole, keys->words + (size_t)position * keys->words_count, keys->hashes[position], &next);
    if (row == IVM__ROW_NONE) {
        row = ivm__store_insert(&it->rows.store, 1);
        uint8_t *at = ivm__store_row(&it->rows.store, row);
        ivm__layout_scatter(it->rows.store.layout, chunk, NULL, position, 1, &at);
        ivm__store_link(&it->rows.store, row);
    }
    return row;
}

static ivm_status room_make(set *it, uint32_t rows_count, uint32_t missing)
{
    uint64_t needed = (uint64_t)it->rows.store.touched_count + rows_count;
    IVM_TRY(ivm__grow(it->memory, (void **)&it->changes, &it->changes_capacity, needed, changes_size(it)));
    return ivm__store_reserve(&it->rows.store, missing);
}

static ivm_status rows_add(set *it, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t count = chunk->rows_count, positions[IVM__CHUNK_ROWS];
    ivm__row_id found[IVM__CHUNK_ROWS], rows[IVM__CHUNK_ROWS];
    IVM_TRY(ivm__index_keys(it->rows.whole, step->scratch, chunk, NULL, true, &keys));
    memset(rows, 0xff, count * sizeof *rows); /* IVM__ROW_NONE */
    uint32_t found_count = ivm__index_probe(it->rows.whole, &keys, &probe, IVM__CHUNK_ROWS, positions, found);
    for (uint32_t i = 0; i < found_count; i++) {
        rows[positions[i]] = found[i];
    }
    IVM_TRY(room_make(it, count, count - found_count));
    for (uint32_t i = 0; i < count; i++) {
        ivm__weight weight = ivm__chunk_weight(chunk, i), *changes;
        if (weight == 0) {
            continue;
        }
        IVM_TRY(changes_of(it, rows[i] == IVM__ROW_NONE ? row_make(it, chunk, &keys, i) : rows[i], &changes));
        changes[port] = weight_sum(changes[port], weight);
    }
    return IVM_OK;
}

static ivm_status set_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    set *it = (set *)self;
    assert(port < it->inputs_count && chunk->columns_count == self->columns_count && !step->loading);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = it->inputs_count == 1 ? ivm__zset_add(&it->rows, step->scratch, chunk, NULL, 1) : rows_add(it, step, port, chunk);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

/* ---- What becomes of them ------------------------------------------------------------------------------------------------------------- */

/* The result's weight of a row that has these in the inputs. */
static ivm__weight weights_fold(const set *it, const ivm__weight *weights)
{
    bool copies = it->kind == IVM__SET_EXCEPT_ALL || it->kind == IVM__SET_INTERSECT_ALL;
    ivm__weight folded = 0;
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        ivm__weight weight = weights[i] <= 0 ? 0 : copies ? weights[i] : 1;
        if (i == 0) {
            folded = weight;
        } else if (it->kind == IVM__SET_EXCEPT_ALL || it->kind == IVM__SET_EXCEPT) {
            folded = folded > weight ? folded - weight : 0;
        } else if (it->kind == IVM__SET_UNION) {
            folded = folded > weight ? folded : weight;
        } else {
            folded = folded < weight ? folded : weight;
        }
    }
    return folded;
}

static ivm_status weights_reserve(set *it)
{
    return ivm__items_reserve_cleared(&it->weights, it->memory, it->rows.store.rows_end);
}

/* One touched row: its weights before become those after. `weights` has room for one an input. */
static ivm_status touched_emit(set *it, ivm__step *step, uint32_t touch, ivm__weight *weights, ivm__delta *delta)
{
    ivm__row_id row = it->rows.store.touched[touch].row;
    const int64_t *before = weights_of(it, row);
    const ivm__weight *changes = it->changes + (size_t)touch * it->inputs_count;
    bool fits = true, some = false;
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        weights[i] = before[i];
    }
    ivm__weight was = weights_fold(it, weights);
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        weights[i] = weight_sum(weights[i], changes[i]);
        fits &= ivm__weight_fits(weights[i]);
        some |= weights[i] != 0;
    }
    if (!fits) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", it->head.view);
    }
    ivm__store_weight_set(&it->rows.store, row, some);
    return ivm__delta_add(delta, step, row, weights_fold(it, weights) - was);
}

static ivm_status all_emit(set *it, ivm__step *step, ivm__delta *delta)
{
    ivm__weight *weights = ivm__arena_allocate(step->scratch, changes_size(it));
    if (!weights || weights_reserve(it) != IVM_OK) {
        return IVM_OUT_OF_MEMORY;
    }
    assert(it->changes_count == it->rows.store.touched_count);
    for (uint32_t t = 0; t < it->changes_count; t++) {
        IVM_TRY(t % IVM__CHUNK_ROWS == 0 ? ivm__step_poll(step) : IVM_OK);
        IVM_TRY(touched_emit(it, step, t, weights, delta));
    }
    return IVM_OK;
}

/* The same of one input, by the weights of the store. */
static ivm_status distinct_emit(set *it, ivm__step *step, ivm__delta *delta)
{
    const ivm__store *store = &it->rows.store;
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, count;
    if (!ivm__touched_weights_fit(store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", it->head.view);
    }
    while ((count = ivm__store_changes(store, &next, 64, rows, weights)) > 0) {
        IVM_TRY(ivm__step_poll(step));
        for (uint32_t i = 0; i < count; i++) {
            ivm__weight before = ivm__store_weight(store, rows[i], IVM__READ_OLD), after = ivm__store_weight(store, rows[i], IVM__READ_CUR);
            IVM_TRY(ivm__delta_add(delta, step, rows[i], (after > 0) - (before > 0)));
        }
    }
    return IVM_OK;
}

static ivm_status set_finish(ivm__operator *self, ivm__step *step)
{
    set *it = (set *)self;
    ivm__delta delta;
    ivm__delta_init(&delta, self, &it->rows.store);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = it->inputs_count == 1 ? distinct_emit(it, step, &delta) : all_emit(it, step, &delta);
    if (status == IVM_OK) {
        status = ivm__delta_finish(&delta, step);
    }
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- The end of a step ----------------------------------------------------------------------------------------------------------------- */

static void changes_clear(set *it)
{
    if (it->changes_capacity > KEPT_CHANGES_MIN && it->changes_count < it->changes_capacity / 8) {
        ivm__release(it->memory, it->changes, it->changes_capacity * changes_size(it));
        it->changes = NULL;
        it->changes_capacity = 0;
    }
    it->changes_count = 0;
}

static void set_commit(ivm__operator *self)
{
    set *it = (set *)self;
    for (uint32_t t = 0; t < it->changes_count; t++) {
        int64_t *weights = weights_of(it, it->rows.store.touched[t].row);
        const ivm__weight *changes = it->changes + (size_t)t * it->inputs_count;
        for (uint32_t i = 0; i < it->inputs_count; i++) {
            weights[i] = (int64_t)weight_sum(weights[i], changes[i]);
        }
    }
    changes_clear(it);
    ivm__store_commit(&it->rows.store);
}

static void set_undo(ivm__operator *self)
{
    changes_clear((set *)self);
    ivm__store_undo(&((set *)self)->rows.store);
}

static void set_free(ivm__operator *self, ivm__memory *memory)
{
    set *it = (set *)self;
    ivm__zset_deinit(&it->rows);
    ivm__items_free(&it->weights, memory);
    ivm__release(memory, it->changes, it->changes_capacity * changes_size(it));
    ivm__release(memory, (void *)self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, it, sizeof *it);
}

static uint64_t set_bytes(const ivm__operator *self)
{
    const set *it = (const set *)self;
    return ivm__items_bytes(&it->weights) + it->changes_capacity * changes_size(it);
}

/* ---- Saved and loaded ---------------------------------------------------------------------------------------------------------------- */

/* A row's weight in each input, 8 bytes. */
static ivm_status weights_save(const void *context, const ivm__store *store, ivm__row_id row, ivm__sink *sink)
{
    const set *it = context;
    (void)store;
    return ivm__put(sink, weights_of(it, row), weights_size(it));
}

static ivm_status set_save(const ivm__operator *self, ivm__saver *saver)
{
    const set *it = (const set *)self;
    return saver->rows(saver, &it->rows.store, self->columns_count, it->inputs_count > 1 ? weights_save : NULL, it);
}

static ivm_status weights_load(set *it, ivm__step *step, ivm__row_id row, ivm__feed *from)
{
    int64_t *weights = weights_of(it, row);
    bool some = false;
    IVM_TRY(ivm__get(from, weights, weights_size(it)));
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        some |= weights[i] != 0;
    }
    return some ? IVM_OK : ivm__holding_corrupt(&it->head, step, "a row that is in no input");
}

static ivm_status set_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    set *it = (set *)self;
    assert(holding == 0 && chunk->columns_count == self->columns_count);
    (void)holding;
    if (it->inputs_count == 1) {
        return ivm__holding_rows_alone(self, &it->rows, step, chunk);
    }
    if (!ivm__holding_is_single(chunk)) {
        return ivm__holding_corrupt(self, step, "a row that does not weigh 1");
    }
    ivm__row_id row = it->rows.store.rows_end;
    IVM_TRY(ivm__holding_rows(self, &it->rows, step, chunk));
    if (weights_reserve(it) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    for (; row < it->rows.store.rows_end; row++) {
        IVM_TRY(weights_load(it, step, row, from));
    }
    ivm__store_commit(&it->rows.store);
    return IVM_OK;
}

static ivm_status set_settle(ivm__operator *self, ivm__step *step)
{
    (void)step;
    set_commit(self); /* of nothing */
    return IVM_OK;
}

static const ivm__operator_class set_class = { .name = "set",
                                               .consume = set_consume,
                                               .finish = set_finish,
                                               .commit = set_commit,
                                               .undo = set_undo,
                                               .free = set_free,
                                               .bytes = set_bytes,
                                               .save = set_save,
                                               .load = set_load,
                                               .settle = set_settle };

ivm_status ivm__set_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__set_kind kind, const ivm_type *types,
                           uint32_t columns_count, uint32_t inputs_count, ivm__operator **made)
{
    assert(kind != IVM__SET_UNION_ALL && (kind == IVM__SET_DISTINCT ? inputs_count == 1 : inputs_count >= 2));
    set *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm_type *copy = ivm__allocate(memory, columns_count * sizeof *copy);
    ivm_status status = it && copy ? IVM_OK : IVM_OUT_OF_MEMORY;
    if (status == IVM_OK) {
        memcpy(copy, types, columns_count * sizeof *copy);
        it->head = (ivm__operator){ .class = &set_class, .columns_count = columns_count, .types = copy };
        it->memory = memory;
        it->kind = kind;
        it->inputs_count = inputs_count;
        ivm__items_init(&it->weights, weights_size(it));
        status = ivm__zset_init_typed(&it->rows, memory, texts, seed, copy, columns_count, true);
    }
    if (status != IVM_OK) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, copy, columns_count * sizeof *copy);
        return status;
    }
    *made = &it->head;
    return IVM_OK;
}

/* Whether a row has a weight in any input exactly where it is there. */
static bool weights_hold(const set *it, ivm__row_id row)
{
    bool some = false;
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        some |= weights_of(it, row)[i] != 0;
    }
    bool there = row < it->rows.store.rows_end && ivm__store_weight(&it->rows.store, row, IVM__READ_CUR) != 0;
    return some == there;
}

const char *ivm__set_validate(const ivm__operator *self)
{
    assert(self->class == &set_class);
    const set *it = (const set *)self;
    const char *reason = ivm__index_validate(it->rows.whole);
    if (!reason && it->inputs_count > 1 && it->rows.store.rows_end > it->weights.known) {
        reason = "rows without weights";
    }
    for (uint32_t row = 0; !reason && row < it->weights.known; row++) {
        reason = weights_hold(it, row) ? NULL : "weights of a row that is not there, or a row without";
    }
    return !reason && it->changes_count ? "a step's changes that outlive it" : reason;
}
