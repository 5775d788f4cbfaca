/* Top k: of each partition the first rows in an order, `offset` copies passed over, then `limit` kept.
 *
 *     stands(row) = copies of the row among numbers offset .. offset + limit - 1 of its partition        delta = stands after - stands before
 *
 * Whole rows are kept once, with the values of those partition and order expressions that are no plain columns behind them; ids of all rows,
 * of all partitions, in one tree by (partition, order, whole row). A step puts new rows into the tree, walks each partition that it touched from
 * its first row on, counting both before and after, and takes rows that are gone out when it commits; undo takes the new ones out.
 * Memory: each row and what is computed of it, 30 to 40 bytes in the tree. Cost: a lookup and a descent a row that came or went, offset + limit
 * rows a partition touched, and the rows touched in it. */
#include "delta.h"
#include "holding.h"
#include "operators.h"
#include "sorted.h"
#include "weights.h"

#define PREFETCH_ROWS 12u

typedef struct top {
    ivm__operator head;
    ivm__memory *memory;
    ivm__texts *texts;
    ivm__expression **computed; /* the values behind the row's columns */
    uint32_t computed_count;
    ivm_type *types; /* of the row's columns, then of these */
    uint64_t limit, offset;
    ivm__zset rows;
    ivm__sorted_key *keys;
    uint32_t keys_count, keys_capacity;
    ivm__sorted sorted;
    ivm__failures failures;
    ivm__ordered_key *changed; /* rows whose weight this step changed, in order; in the step's arena */
    uint32_t changed_count;
    uint32_t inserted; /* of these, looked at for the tree */
} top;

/* ---- Rows that come ------------------------------------------------------------------------------------------------------------------ */

/* The chunk's rows with what is computed of them behind, and a byte each for those that cannot be. */
static ivm_status chunk_compute(const top *it, ivm__step *step, const ivm__chunk *chunk, ivm__chunk **computed, uint8_t **out_of_range)
{
    uint32_t columns_count = it->head.columns_count;
    uint8_t *failed = *out_of_range = ivm__arena_allocate(step->scratch, chunk->rows_count);
    ivm__chunk *whole = *computed = ivm__chunk_make(step->scratch, it->types, columns_count + it->computed_count);
    if (!failed || !whole) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, chunk->rows_count);
    whole->rows_count = chunk->rows_count;
    whole->weights = chunk->weights;
    memcpy(whole->columns, chunk->columns, columns_count * sizeof *chunk->columns);
    for (uint32_t i = 0; i < it->computed_count; i++) {
        IVM_TRY(ivm__expression_compute(it->computed[i], step, chunk, &whole->columns[columns_count + i], failed));
        whole->columns[columns_count + i].type = it->types[columns_count + i];
    }
    return IVM_OK;
}

static ivm_status chunk_add(top *it, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk *whole;
    uint8_t *failed;
    IVM_TRY(chunk_compute(it, step, chunk, &whole, &failed));
    if (memchr(failed, 1, chunk->rows_count)) {
        IVM_TRY(ivm__failures_add(&it->failures, step, chunk, failed));
    }
    return ivm__zset_add(&it->rows, step->scratch, whole, NULL, 1);
}

static ivm_status top_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    assert(port == 0 && chunk->columns_count == self->columns_count && !step->loading);
    (void)port;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = chunk_add((top *)self, step, chunk);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(step->error);
}

/* ---- Into the tree ------------------------------------------------------------------------------------------------------------------- */

static ivm__weight weight_before(const top *it, ivm__row_id row)
{
    return ivm__store_weight(&it->rows.store, row, IVM__READ_OLD);
}

static ivm__weight weight_after(const top *it, ivm__row_id row)
{
    return ivm__store_weight(&it->rows.store, row, IVM__READ_CUR);
}

static ivm_status changed_read(top *it, const ivm__step *step)
{
    ivm__row_id rows[64];
    ivm__weight weights[64];
    uint32_t next = 0, count;
    while ((count = ivm__store_changes(&it->rows.store, &next, 64, rows, weights)) > 0) {
        IVM_TRY(ivm__step_poll(step));
        for (uint32_t i = 0; i < count; i++) {
            it->changed[it->changed_count++] = ivm__sorted_entry(&it->sorted, rows[i]);
        }
    }
    return IVM_OK;
}

static ivm_status entries_sort(const top *it, const ivm__step *step, ivm__ordered_key *entries, ivm__ordered_key *spare, uint32_t count)
{
    ivm_status status = ivm__sorted_sort(&it->sorted, entries, spare, count, &step->cancel);
    return status == IVM_OK ? IVM_OK : ivm__fail_cancelled(step->error);
}

/* The changed rows in order. */
static ivm_status changed_sort(top *it, ivm__step *step)
{
    const ivm__store *store = &it->rows.store;
    size_t size = ((size_t)store->touched_count + store->rows_end - store->step_end) * sizeof *it->changed;
    if (size == 0) {
        return IVM_OK;
    }
    it->changed = ivm__arena_allocate(step->arena, size);
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm__ordered_key *spare = ivm__arena_allocate(step->scratch, size);
    if (!it->changed || !spare) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(changed_read(it, step));
    IVM_TRY(entries_sort(it, step, it->changed, spare, it->changed_count));
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}

static bool row_is_new(const top *it, ivm__row_id row)
{
    return weight_before(it, row) == 0 && weight_after(it, row) != 0;
}

static ivm_status new_insert(top *it, const ivm__step *step)
{
    for (; it->inserted < it->changed_count; it->inserted++) {
        IVM_TRY(it->inserted % IVM__CHUNK_ROWS == 0 ? ivm__step_poll(step) : IVM_OK);
        if (row_is_new(it, it->changed[it->inserted].group)) {
            IVM_TRY(ivm__sorted_insert(&it->sorted, it->changed[it->inserted]));
        }
    }
    return IVM_OK;
}

/* ---- Partitions walked ----------------------------------------------------------------------------------------------------------------- */

/* How many of `weight` copies from number `first` on are kept. */
static ivm__weight copies_kept(const top *it, ivm__weight first, ivm__weight weight)
{
    ivm__weight end = (ivm__weight)it->offset + it->limit;
    ivm__weight low = first > it->offset ? first : it->offset, high = first + weight < end ? first + weight : end;
    return high > low ? high - low : 0;
}

/* The rows that a walk reads next, as far as they are of the path's leaf: it would wait for one after the other. */
static void rows_prefetch(const top *it, const ivm__ordered_path *path)
{
    const ivm__ordered_node *leaf = path->node[0];
    uint32_t end = leaf->count - path->at[0] < PREFETCH_ROWS ? leaf->count : path->at[0] + PREFETCH_ROWS;
    for (uint32_t i = path->at[0]; i < end; i++) {
        __builtin_prefetch(ivm__store_row(&it->rows.store, leaf->groups[i]));
    }
}

/* Emits how the partition of the first of these changed rows, all its own, differs. Past the last of them nothing does if as many copies stand
 * before it as did. */
static ivm_status partition_walk(top *it, ivm__step *step, const ivm__ordered_key *changed, uint32_t count, ivm__delta *delta)
{
    ivm__weight end = (ivm__weight)it->offset + it->limit, before = 0, after = 0;
    ivm__ordered_path path;
    uint32_t read = 0;
    bool more = ivm__sorted_find_group(&it->sorted, *changed, &path);
    while (more && (before < end || after < end) && (count > 0 || before != after)) {
        ivm__ordered_key at = ivm__sorted_at(&path);
        if (!ivm__sorted_same_group(&it->sorted, at, *changed)) {
            break;
        }
        if (read++ % PREFETCH_ROWS == 0) {
            IVM_TRY(ivm__step_poll(step));
            rows_prefetch(it, &path);
        }
        ivm__weight old = weight_before(it, at.group), now = weight_after(it, at.group);
        count -= old != now;
        old = old > 0 ? old : 0;
        now = now > 0 ? now : 0;
        IVM_TRY(ivm__delta_add(delta, step, at.group, copies_kept(it, after, now) - copies_kept(it, before, old)));
        before += old;
        after += now;
        more = ivm__sorted_next(&it->sorted, &path);
    }
    return IVM_OK;
}

/* Partitions touched, as entries whose cell is the least row id changed in it and the number of rows changed, and whose group is where these
 * begin: in the order of ids, so that what is emitted comes in an order that the input gave. *partitions_count: how many. */
static ivm_status partitions_read(const top *it, const ivm__step *step, ivm__ordered_key *partitions, uint32_t *partitions_count)
{
    uint32_t count = 0;
    for (uint32_t first = 0, end; first < it->changed_count; first = end) {
        ivm__row_id least = it->changed[first].group;
        for (end = first + 1; end < it->changed_count; end++) {
            IVM_TRY(end % IVM__CHUNK_ROWS == 0 ? ivm__step_poll(step) : IVM_OK);
            if (!ivm__sorted_same_group(&it->sorted, it->changed[first], it->changed[end])) {
                break;
            }
            least = it->changed[end].group < least ? it->changed[end].group : least;
        }
        partitions[count++] = (ivm__ordered_key){ (ivm__ordered_cell)least << 32 | (end - first), first };
    }
    *partitions_count = count;
    return IVM_OK;
}

static ivm_status partitions_walk(top *it, ivm__step *step, ivm__delta *delta)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm__ordered_key *partitions = ivm__arena_allocate(step->scratch, it->changed_count * sizeof *partitions);
    ivm__ordered_key *spare = ivm__arena_allocate(step->scratch, it->changed_count * sizeof *spare);
    if (!partitions || !spare) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count;
    IVM_TRY(partitions_read(it, step, partitions, &count));
    IVM_TRY(entries_sort(it, step, partitions, spare, count));
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__step_poll(step));
        IVM_TRY(partition_walk(it, step, it->changed + partitions[i].group, (uint32_t)partitions[i].cell, delta));
    }
    IVM_TRY(ivm__delta_finish(delta, step));
    ivm__arena_back(step->scratch, mark);
    return IVM_OK;
}

static ivm_status top_finish(ivm__operator *self, ivm__step *step)
{
    top *it = (top *)self;
    ivm__delta delta;
    IVM_TRY(ivm__failures_check(&it->failures, step, self->view, "a partition or order"));
    if (!ivm__touched_weights_fit(&it->rows.store)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: the weight of a row is out of range", self->view);
    }
    ivm__delta_init(&delta, self, &it->rows.store);
    ivm_status status = changed_sort(it, step);
    if (status == IVM_OK) {
        status = new_insert(it, step);
    }
    if (status == IVM_OK && self->next && it->limit > 0 && it->changed_count > 0) {
        status = partitions_walk(it, step, &delta);
    }
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- The end of a step ----------------------------------------------------------------------------------------------------------------- */

static void changed_clear(top *it)
{
    it->changed = NULL;
    it->changed_count = it->inserted = 0;
}

static void top_commit(ivm__operator *self)
{
    top *it = (top *)self;
    for (uint32_t i = 0; i < it->changed_count; i++) {
        ivm__row_id row = it->changed[i].group;
        if (weight_after(it, row) == 0) {
            ivm__sorted_remove(&it->sorted, row);
        }
    }
    changed_clear(it);
    ivm__store_commit(&it->rows.store);
}

static void top_undo(ivm__operator *self)
{
    top *it = (top *)self;
    bool all = it->rows.store.step_end == 0; /* nothing stood before the step */
    if (all) {
        ivm__sorted_clear(&it->sorted);
    }
    for (uint32_t i = 0; !all && i < it->inserted; i++) {
        if (row_is_new(it, it->changed[i].group)) {
            ivm__sorted_remove(&it->sorted, it->changed[i].group);
        }
    }
    changed_clear(it);
    ivm__store_undo(&it->rows.store);
    ivm__failures_deinit(&it->failures);
}

static void top_free(ivm__operator *self, ivm__memory *memory)
{
    top *it = (top *)self;
    uint32_t columns_count = self->columns_count;
    ivm__sorted_deinit(&it->sorted);
    ivm__zset_deinit(&it->rows);
    ivm__failures_deinit(&it->failures);
    for (uint32_t i = 0; i < it->computed_count; i++) {
        ivm__expression_free(it->computed[i], memory, it->texts);
    }
    uint32_t room = it->keys_capacity - columns_count; /* for an expression each, partitions and orders */
    ivm__release(memory, it->computed, room * sizeof(ivm__expression *));
    ivm__release(memory, it->types, (columns_count + room) * sizeof *it->types);
    ivm__release(memory, it->keys, it->keys_capacity * sizeof *it->keys);
    ivm__release(memory, it, sizeof *it);
}

static uint64_t top_bytes(const ivm__operator *self)
{
    return ivm__sorted_bytes(&((const top *)self)->sorted);
}

/* ---- Saved and loaded ---------------------------------------------------------------------------------------------------------------- */

/* What is computed of the rows follows from them. */
static ivm_status top_save(const ivm__operator *self, ivm__saver *saver)
{
    return saver->rows(saver, &((const top *)self)->rows.store, self->columns_count, NULL, NULL);
}

static ivm_status chunk_load(top *it, ivm__step *step, const ivm__chunk *chunk)
{
    ivm__chunk *whole;
    uint8_t *failed;
    ivm__row_id row = it->rows.store.rows_end;
    if (chunk_compute(it, step, chunk, &whole, &failed) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    if (memchr(failed, 1, chunk->rows_count)) {
        return ivm__holding_corrupt(&it->head, step, "a partition or order of a row is out of range");
    }
    IVM_TRY(ivm__holding_rows(&it->head, &it->rows, step, whole));
    for (; row < it->rows.store.rows_end; row++) {
        if (ivm__sorted_insert(&it->sorted, ivm__sorted_entry(&it->sorted, row)) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    ivm__store_commit(&it->rows.store);
    return IVM_OK;
}

static ivm_status top_load(ivm__operator *self, ivm__step *step, uint32_t holding, const ivm__chunk *chunk, ivm__feed *from)
{
    assert(holding == 0 && chunk->columns_count == self->columns_count);
    (void)holding;
    (void)from;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = chunk_load((top *)self, step, chunk);
    ivm__arena_back(step->scratch, mark);
    return status;
}

static ivm_status top_settle(ivm__operator *self, ivm__step *step)
{
    (void)step;
    top_commit(self); /* of nothing */
    return IVM_OK;
}

static const ivm__operator_class top_class = { .name = "top_k",
                                               .consume = top_consume,
                                               .finish = top_finish,
                                               .commit = top_commit,
                                               .undo = top_undo,
                                               .free = top_free,
                                               .bytes = top_bytes,
                                               .save = top_save,
                                               .load = top_load,
                                               .settle = top_settle };

/* ---- Made from its spec ---------------------------------------------------------------------------------------------------------------- */

/* A further key, unless the column is one already: rows that get that far are equal in it. */
static void key_add(top *it, ivm__sorted_key key)
{
    for (uint32_t i = 0; i < it->keys_count; i++) {
        if (it->keys[i].column == key.column) {
            return;
        }
    }
    assert(it->keys_count < it->keys_capacity);
    it->keys[it->keys_count++] = key;
}

/* The column where the expression's value stands: a plain column's own, which is freed, or one behind the row's. */
static uint32_t value_take(top *it, ivm__expression *value)
{
    if (value->function == IVM__COLUMN) {
        uint32_t column = value->column;
        ivm__expression_free(value, it->memory, it->texts);
        return column;
    }
    uint32_t column = it->head.columns_count + it->computed_count;
    it->types[column] = value->type ? value->type : IVM_INT64; /* an untyped null is one of any type */
    it->computed[it->computed_count++] = value;
    return column;
}

/* Partitions, orders, and what is left of the whole row. */
static void keys_take(top *it, const ivm__top_spec *spec, uint32_t *groups_count)
{
    for (uint32_t i = 0; i < spec->partitions_count; i++) {
        key_add(it, (ivm__sorted_key){ .column = value_take(it, spec->partitions[i]) });
    }
    *groups_count = it->keys_count;
    for (uint32_t i = 0; i < spec->orders_count; i++) {
        const ivm__order_key *order = &spec->orders[i];
        key_add(it, (ivm__sorted_key){ value_take(it, order->value), order->descending, order->nulls_first });
    }
    for (uint32_t c = 0; c < spec->columns_count; c++) {
        key_add(it, (ivm__sorted_key){ .column = c });
    }
}

static void spec_free(const ivm__top_spec *spec, ivm__memory *memory, ivm__texts *texts)
{
    for (uint32_t i = 0; i < spec->partitions_count; i++) {
        ivm__expression_free(spec->partitions[i], memory, texts);
    }
    for (uint32_t i = 0; i < spec->orders_count; i++) {
        ivm__expression_free(spec->orders[i].value, memory, texts);
    }
}

/* With its arrays; nothing is taken yet. NULL: out of memory. */
static top *top_make(ivm__memory *memory, ivm__texts *texts, const ivm__top_spec *spec)
{
    uint32_t values_count = spec->partitions_count + spec->orders_count, keys_count = spec->columns_count + values_count;
    top *it = ivm__allocate_zeroed(memory, sizeof *it);
    ivm__expression **computed = ivm__allocate(memory, values_count * sizeof(ivm__expression *));
    ivm_type *types = ivm__allocate(memory, keys_count * sizeof *types);
    ivm__sorted_key *keys = ivm__allocate(memory, keys_count * sizeof *keys);
    if (!it || !computed || !types || !keys) {
        ivm__release(memory, it, sizeof *it);
        ivm__release(memory, computed, values_count * sizeof(ivm__expression *));
        ivm__release(memory, types, keys_count * sizeof *types);
        ivm__release(memory, keys, keys_count * sizeof *keys);
        return NULL;
    }
    memcpy(types, spec->types, spec->columns_count * sizeof *types);
    *it = (top){ .memory = memory, .texts = texts, .computed = computed, .types = types, .keys = keys, .keys_capacity = keys_count };
    it->head = (ivm__operator){ .class = &top_class, .columns_count = spec->columns_count, .types = types };
    it->limit = spec->limit;
    it->offset = spec->offset;
    return it;
}

ivm_status ivm__top_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, const ivm__top_spec *spec, ivm__operator **made)
{
    uint32_t groups_count;
    top *it = top_make(memory, texts, spec);
    if (!it) {
        spec_free(spec, memory, texts);
        return IVM_OUT_OF_MEMORY;
    }
    keys_take(it, spec, &groups_count);
    ivm_status status =
        ivm__zset_init_typed(&it->rows, it->memory, it->texts, seed, it->types, it->head.columns_count + it->computed_count, true);
    if (status != IVM_OK) {
        top_free(&it->head, memory);
        return status;
    }
    ivm__sorted_init(&it->sorted, &it->rows.store, it->keys, it->keys_count, groups_count);
    *made = &it->head;
    return IVM_OK;
}

const char *ivm__top_validate(const ivm__operator *self)
{
    assert(self->class == &top_class);
    const top *it = (const top *)self;
    const char *reason = ivm__index_validate(it->rows.whole);
    if (!reason) {
        reason = ivm__sorted_validate(&it->sorted);
    }
    if (!reason && it->sorted.tree.entries_count != it->rows.store.rows_live) {
        reason = "rows that are not in the tree, or entries of rows that are gone";
    }
    return !reason && it->changed ? "a step's changes that outlive it" : reason;
}
