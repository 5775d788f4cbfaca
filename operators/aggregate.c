/* aggregate: groups of rows and their values.
 *
 *     delta(aggregate R) = for each group that a row of delta R falls in: -(its row before) + (its row after)
 *
 * A step finds or makes the group of every row, saves each touched group's state once, and adds. At the end each touched group's values are
 * read, its row is compared with the one in the result, and only a row that differs is replaced: a group whose value is unchanged changes
 * nothing. A group without rows is gone; without group columns the one group always exists. Over an input with negative weights the rows
 * come three times, told apart by their signs (accumulator.c), and those of the support count. Cost: a lookup and a few additions a row, one
 * row a touched group. */
#include "aggregate_state.h"
#include "delta.h"

#define PLAIN_KEPT_MAX 65536u /* saved states for which there is still room after a step */

static uint32_t groups_end(const ivm__aggregate *self)
{
    return self->groups_count ? self->keys.rows_end : 1;
}

/* ---- Finding groups ------------------------------------------------------------------------------------------------------------------ */

/* Makes the group of row `row` of the key chunk, unless an earlier row of the chunk has. */
static ivm_status make_group(ivm__aggregate *self, const ivm__chunk *keys_chunk, const ivm__keys *keys, uint32_t row, uint32_t *group)
{
    uint32_t next = 0;
    *group = ivm__index_find(self->by_key, keys->words + (size_t)row * keys->words_count, keys->hashes[row], &next);
    if (*group != IVM__ROW_NONE) {
        return IVM_OK;
    }
    ivm__row_id made = ivm__store_insert(&self->keys, 1);
    uint8_t *at = ivm__store_row(&self->keys, made);
    ivm__layout_scatter(self->keys.layout, keys_chunk, NULL, row, 1, &at);
    ivm__store_link(&self->keys, made);
    ivm__group_clear(&self->accumulators, made);
    *group = made;
    return IVM_OK;
}

static ivm_status make_missing(ivm__aggregate *self, const ivm__chunk *keys_chunk, const ivm__keys *keys, uint32_t missing,
                               uint32_t *groups)
{
    IVM_TRY(ivm__store_reserve(&self->keys, missing));
    IVM_TRY(ivm__accumulators_reserve(&self->accumulators, (uint64_t)self->keys.rows_end + missing));
    for (uint32_t i = 0; i < keys->rows_count; i++) {
        if (groups[i] == IVM__ROW_NONE) {
            IVM_TRY(make_group(self, keys_chunk, keys, i, &groups[i]));
        }
    }
    return IVM_OK;
}

static ivm_status find_groups(ivm__aggregate *self, ivm__step *step, const ivm__chunk *keys_chunk, uint32_t *groups)
{
    ivm__keys keys;
    ivm__probe probe = { 0 };
    uint32_t rows_count = keys_chunk->rows_count, missing = rows_count;
    uint32_t *positions = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *positions);
    ivm__row_id *rows = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *rows);
    if (!positions || !rows) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__index_keys(self->by_key, step->scratch, keys_chunk, NULL, true, &keys));
    memset(groups, 0xff, rows_count * sizeof *groups); /* IVM__ROW_NONE */
    uint32_t found = ivm__index_probe(self->by_key, &keys, &probe, IVM__CHUNK_ROWS, positions, rows);
    for (uint32_t i = 0; i < found; i++) {
        groups[positions[i]] = rows[i];
    }
    missing -= found;
    return missing ? make_missing(self, keys_chunk, &keys, missing, groups) : IVM_OK;
}

/* The group columns' values, as a chunk of them alone; an untyped null counts as int64. */
static ivm_status compute_keys(ivm__aggregate *self, ivm__step *step, const ivm__chunk *chunk, uint8_t *failed, ivm__chunk **keys_chunk)
{
    ivm__chunk *keys = ivm__chunk_make(step->scratch, self->types, self->groups_count);
    if (!keys) {
        return IVM_OUT_OF_MEMORY;
    }
    keys->rows_count = chunk->rows_count;
    for (uint32_t i = 0; i < self->groups_count; i++) {
        IVM_TRY(ivm__expression_compute(self->groups[i], step, chunk, &keys->columns[i], failed));
        keys->columns[i].type = self->types[i];
    }
    *keys_chunk = keys;
    return IVM_OK;
}

/* ---- Adding rows -------------------------------------------------------------------------------------------------------------------- */

static ivm_status touch_group(ivm__aggregate *self, ivm__step *step, uint32_t group)
{
    ivm__group_tail *tail = ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, group));
    if (tail->touch) {
        return IVM_OK;
    }
    IVM_TRY(ivm__grow(self->memory, (void **)&self->touched, &self->touched_capacity, (uint64_t)self->touched_count + 1,
                      sizeof *self->touched));
    const void *saved = ivm__group_save(&self->accumulators, group, step->arena);
    if (!saved) {
        return IVM_OUT_OF_MEMORY;
    }
    self->touched[self->touched_count++] = (ivm__touched_group){ group, saved };
    tail->touch = self->touched_count;
    return IVM_OK;
}

/* States that are copied whole: room for all at once, then no call a group. */
static ivm_status touch_plain(ivm__aggregate *self, const uint32_t *groups, uint32_t count)
{
    uint64_t most = (uint64_t)self->touched_count + count;
    uint32_t stride = self->plain_stride = self->accumulators.stride;
    IVM_TRY(ivm__grow(self->memory, (void **)&self->touched, &self->touched_capacity, most, sizeof *self->touched));
    IVM_TRY(ivm__grow(self->memory, (void **)&self->plain, &self->plain_capacity, most, stride));
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *state = ivm__group_state(&self->accumulators, groups[i]);
        ivm__group_tail *tail = ivm__group_tail_of(&self->accumulators, state);
        if (tail->touch == 0) {
            memcpy(self->plain + (size_t)self->touched_count * stride, state, stride);
            self->touched[self->touched_count++] = (ivm__touched_group){ groups[i], NULL };
            tail->touch = self->touched_count;
        }
    }
    return IVM_OK;
}

static ivm_status touch_groups(ivm__aggregate *self, ivm__step *step, const uint32_t *groups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(ivm__group_state(&self->accumulators, groups[i]), 1);
    }
    if (self->is_plain) {
        return touch_plain(self, groups, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(touch_group(self, step, groups[i]));
    }
    return IVM_OK;
}

static ivm_status add_chunk(ivm__aggregate *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    uint32_t *groups = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *groups);
    uint8_t *failed = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS);
    if (!groups || !failed) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, chunk->rows_count);
    if (self->groups_count) {
        ivm__chunk *keys_chunk;
        IVM_TRY(compute_keys(self, step, chunk, failed, &keys_chunk));
        IVM_TRY(find_groups(self, step, keys_chunk, groups));
    } else {
        memset(groups, 0, chunk->rows_count * sizeof *groups);
    }
    IVM_TRY(touch_groups(self, step, groups, chunk->rows_count));
    IVM_TRY(ivm__accumulate(&self->accumulators, step, port, chunk, groups, failed));
    /* A row of negative weight fails as any other: of three ports one counts, by which every row weighs 1. */
    bool counts = port == (self->accumulators.negative ? IVM__AGGREGATE_SUPPORT : IVM__AGGREGATE_ROWS);
    return counts && memchr(failed, 1, chunk->rows_count) ? ivm__failures_add(&self->failures, step, chunk, failed) : IVM_OK;
}

static ivm_status aggregate_consume(ivm__operator *base, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    ivm_status status = add_chunk((ivm__aggregate *)base, step, port, chunk);
    ivm__arena_back(step->scratch, mark);
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- Publishing ---------------------------------------------------------------------------------------------------------------------- */

/* The values that these groups now have; their group columns only where `having` may read them. */
static ivm_status read_groups(ivm__aggregate *self, ivm__step *step, const uint32_t *groups, uint32_t count, ivm__chunk **values)
{
    ivm__chunk *chunk = *values = ivm__chunk_make(step->scratch, self->types, self->columns_count);
    if (!chunk) {
        return ivm__fail_memory(step->error);
    }
    chunk->rows_count = count;
    for (uint32_t c = self->having ? 0 : self->groups_count; c < self->columns_count; c++) {
        ivm__vector *out = &chunk->columns[c];
        if (!ivm__vector_make(step->scratch, out, self->types[c], count, true)) {
            return ivm__fail_memory(step->error);
        }
        if (c < self->groups_count) {
            ivm__store_gather(&self->keys, groups, count, c, out);
        } else if (ivm__accumulator_values(&self->accumulators, c - self->groups_count, groups, count, out) != IVM_OK) {
            return ivm__fail(step->error, IVM_OVERFLOW, "view %s: aggregate %s of a group is out of range", self->base.view,
                             self->accumulators.list[c - self->groups_count].name);
        }
    }
    return IVM_OK;
}

/* Replaces the group's row by the body at `row`, or takes it away (NULL). */
static ivm_status publish_row(ivm__aggregate *self, uint32_t group, const uint8_t *row)
{
    ivm__group_tail *tail = ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, group));
    if (row && tail->row != IVM__ROW_NONE) {
        return ivm__store_update(&self->result, tail->row, row, &tail->row);
    }
    if (tail->row != IVM__ROW_NONE) {
        IVM_TRY(ivm__store_touch(&self->result, tail->row));
        ivm__store_weight_set(&self->result, tail->row, 0);
        tail->row = IVM__ROW_NONE;
    }
    if (row) {
        tail->row = ivm__store_insert(&self->result, 1);
        memcpy(ivm__store_row(&self->result, tail->row) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, self->result.layout->body_bytes);
        ivm__store_link(&self->result, tail->row);
    }
    return IVM_OK;
}

/* Marks in passes[] which rows of the chunk pass `having`. The rows are those after the batch: one that cannot be computed rejects it. */
static ivm_status check_having(ivm__aggregate *self, ivm__step *step, const ivm__chunk *values, bool *passes)
{
    uint32_t count = 0, *rows = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *rows);
    uint8_t *failed = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS);
    memset(passes, !self->having, values->rows_count);
    if (!rows || !failed) {
        return ivm__fail_memory(step->error);
    }
    if (!self->having) {
        return IVM_OK;
    }
    memset(failed, 0, values->rows_count);
    if (ivm__expression_select(self->having, step, values, rows, &count, failed) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    if (memchr(failed, 1, values->rows_count)) {
        return ivm__fail(step->error, IVM_OVERFLOW, "view %s: a result in having is out of range", self->base.view);
    }
    for (uint32_t i = 0; i < count; i++) {
        passes[rows[i]] = true;
    }
    return IVM_OK;
}

/* A new group's columns, from its key. */
static void write_key(const ivm__aggregate *self, uint32_t group, uint8_t *row)
{
    const ivm__layout *from = self->keys.layout, *to = self->result.layout;
    const uint8_t *key = ivm__store_row(&self->keys, group);
    for (uint32_t c = 0; c < self->groups_count; c++) {
        uint64_t *nulls = (uint64_t *)(void *)(row + IVM__ROW_HEADER) + (c >> 6);
        *nulls |= (uint64_t)ivm__row_is_null(from, key, c) << (c & 63);
        memcpy(row + to->offsets[c], key + from->offsets[c], ivm__type_words(self->types[c]) * sizeof(uint64_t));
    }
}

/* Bodies of the groups' rows, one after the other at the result's stride, in scratch: a group's old row with its values written over. */
static uint8_t *write_bodies(ivm__aggregate *self, ivm__step *step, const uint32_t *groups, const ivm__chunk *values, uint8_t *changed)
{
    uint32_t stride = self->result.layout->stride, count = values->rows_count;
    uint8_t *bodies = ivm__arena_allocate(step->scratch, (size_t)count * stride);
    uint8_t **rows = ivm__arena_allocate(step->scratch, count * sizeof *rows);
    if (!bodies || !rows) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, groups[i]))->row;
        if (row != IVM__ROW_NONE) {
            __builtin_prefetch(ivm__store_row(&self->result, row), 1);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, groups[i]))->row;
        rows[i] = bodies + (size_t)i * stride;
        changed[i] = row == IVM__ROW_NONE;
        if (row != IVM__ROW_NONE) {
            memcpy(rows[i], ivm__store_row(&self->result, row), stride);
        } else {
            memset(rows[i], 0, stride);
            if (self->groups_count) {
                write_key(self, groups[i], rows[i]);
            }
        }
    }
    for (uint32_t c = self->groups_count; c < self->columns_count; c++) {
        ivm__layout_write(self->result.layout, c, &values->columns[c], count, rows, changed);
    }
    return bodies;
}

static ivm_status publish_present(ivm__aggregate *self, ivm__step *step, const uint32_t *groups, uint32_t count)
{
    ivm__chunk *values = NULL;
    bool passes[IVM__CHUNK_ROWS];
    uint8_t changed[IVM__CHUNK_ROWS];
    IVM_TRY(read_groups(self, step, groups, count, &values));
    IVM_TRY(check_having(self, step, values, passes));
    uint8_t *bodies = write_bodies(self, step, groups, values, changed);
    if (!bodies || ivm__store_update_reserve(&self->result, count) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = passes[i] ? bodies + (size_t)i * self->result.layout->stride : NULL;
        if ((changed[i] || !row) && publish_row(self, groups[i], row) != IVM_OK) {
            return ivm__fail_memory(step->error);
        }
    }
    return IVM_OK;
}

/* Groups whose rows are written where they lie: each of `rows` may be. */
static ivm_status publish_in_place(ivm__aggregate *self, ivm__step *step, const uint32_t *groups, const ivm__row_id *rows, uint32_t count)
{
    ivm__chunk *values = NULL;
    uint8_t changed[IVM__CHUNK_ROWS], *at[IVM__CHUNK_ROWS];
    IVM_TRY(read_groups(self, step, groups, count, &values));
    if (ivm__store_overwrite_begin(&self->result, rows, count, at) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    memset(changed, 0, count);
    for (uint32_t c = self->groups_count; c < self->columns_count; c++) {
        ivm__layout_write(self->result.layout, c, &values->columns[c], count, at, changed);
    }
    ivm__store_overwrite_end(&self->result, changed, count);
    return IVM_OK;
}

static ivm__row_id *row_of(ivm__aggregate *self, uint32_t group)
{
    return &ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, group))->row;
}

/* Groups that are there; those that have a row already are told apart, once all rows are sent for. */
static ivm_status publish_there(ivm__aggregate *self, ivm__step *step, uint32_t *groups, uint32_t count)
{
    uint32_t standing[IVM__CHUNK_ROWS], standing_count = 0, others = 0;
    ivm__row_id rows[IVM__CHUNK_ROWS];
    if (!self->result.overwrites || self->texts_change || self->having) {
        return publish_present(self, step, groups, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = *row_of(self, groups[i]);
        if (rows[i] != IVM__ROW_NONE) {
            __builtin_prefetch(ivm__store_row(&self->result, rows[i]), 1);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        bool stands = rows[i] != IVM__ROW_NONE && ivm__store_may_overwrite(&self->result, rows[i]);
        rows[standing_count] = rows[i];
        standing[standing_count] = groups[others] = groups[i];
        standing_count += stands;
        others += !stands;
    }
    if (standing_count) {
        IVM_TRY(publish_in_place(self, step, standing, rows, standing_count));
    }
    return others ? publish_present(self, step, groups, others) : IVM_OK;
}

static ivm_status publish_gone(ivm__aggregate *self, ivm__step *step, uint32_t group)
{
    ivm_status status = publish_row(self, group, NULL);
    if (status == IVM_OK) {
        status = ivm__store_touch(&self->keys, group);
    }
    if (status != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    ivm__store_weight_set(&self->keys, group, 0);
    return IVM_OK;
}

/* Touched groups, a chunk of those that are still there at a time. A promise about a foreign key that was not kept can leave a group with less than no
 * rows; it is there. */
static ivm_status publish(ivm__aggregate *self, ivm__step *step)
{
    uint32_t groups[IVM__CHUNK_ROWS], count = 0;
    ivm__arena_mark mark = ivm__arena_here(step->scratch);
    for (uint32_t i = 0; i < self->touched_count; i++) {
        uint32_t group = self->touched[i].group;
        ivm__weight rows = ((ivm__group *)(void *)ivm__group_state(&self->accumulators, group))->rows;
        if (rows == 0 && self->groups_count) {
            IVM_TRY(publish_gone(self, step, group));
            continue;
        }
        groups[count++] = group;
        if (count == IVM__CHUNK_ROWS) {
            IVM_TRY(publish_there(self, step, groups, count));
            ivm__arena_back(step->scratch, mark);
            count = 0;
        }
    }
    if (count) {
        IVM_TRY(publish_there(self, step, groups, count));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}

static ivm_status aggregate_finish(ivm__operator *base, ivm__step *step)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    IVM_TRY(ivm__failures_check(&self->failures, step, base->view, "an aggregate"));
    if (step->initial && !self->groups_count && touch_group(self, step, 0) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    IVM_TRY(publish(self, step));
    ivm_status status = base->next ? ivm__delta_changes(base, step, &self->result, NULL) : IVM_OK;
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

/* ---- Ending a step -------------------------------------------------------------------------------------------------------------------- */

static void plain_free(ivm__aggregate *self)
{
    ivm__release(self->memory, self->plain, (size_t)self->plain_capacity * self->plain_stride);
    self->plain = NULL;
    self->plain_capacity = 0;
}

static void aggregate_commit(ivm__operator *base)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    for (uint32_t i = 0; i < self->touched_count; i++) {
        uint32_t group = self->touched[i].group;
        uint8_t *state = ivm__group_state(&self->accumulators, group);
        ivm__group_tail_of(&self->accumulators, state)->touch = 0;
        if (self->groups_count && ((ivm__group *)(void *)state)->rows == 0) {
            ivm__group_free(&self->accumulators, group);
        }
    }
    self->touched_count = 0;
    if (self->plain_capacity > PLAIN_KEPT_MAX) {
        plain_free(self);
    }
    for (uint32_t i = 0; i < self->accumulators.count; i++) {
        if (self->accumulators.list[i].ordered.memory) {
            ivm__ordered_commit(&self->accumulators.list[i].ordered);
        }
    }
    if (self->groups_count) {
        ivm__store_commit(&self->keys);
    }
    ivm__store_commit(&self->result);
    ivm__failures_deinit(&self->failures);
}

static void aggregate_undo(ivm__operator *base)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    for (uint32_t i = self->touched_count; i-- > 0;) {
        const void *saved = self->touched[i].saved;
        saved = saved ? saved : self->plain + (size_t)i * self->accumulators.stride;
        ivm__group_restore(&self->accumulators, self->touched[i].group, saved);
    }
    self->touched_count = 0;
    for (uint32_t i = 0; i < self->accumulators.count; i++) {
        if (self->accumulators.list[i].ordered.memory) {
            ivm__ordered_undo(&self->accumulators.list[i].ordered);
        }
    }
    if (self->groups_count) {
        ivm__store_undo(&self->keys);
    }
    ivm__store_undo(&self->result);
    ivm__failures_deinit(&self->failures);
}

void ivm__aggregate_free(ivm__operator *base, ivm__memory *memory)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    for (uint32_t i = 0; i < self->groups_count; i++) {
        ivm__expression_free(self->groups[i], memory, self->texts);
    }
    ivm__expression_free(self->having, memory, self->texts);
    if (self->accumulators.memory) {
        ivm__accumulators_deinit(&self->accumulators, self->accumulators.states ? groups_end(self) : 0, self->texts);
    }
    ivm__store_deinit(&self->keys);
    ivm__store_deinit(&self->result);
    ivm__failures_deinit(&self->failures);
    ivm__release(memory, self->groups, self->groups_count * sizeof *self->groups);
    plain_free(self);
    ivm__release(memory, self->touched, self->touched_capacity * sizeof *self->touched);
    ivm__release(memory, self->types, self->columns_count * sizeof *self->types);
    ivm__release(memory, self, sizeof *self);
}

static uint64_t aggregate_bytes(const ivm__operator *base)
{
    return ivm__accumulators_bytes(&((const ivm__aggregate *)base)->accumulators);
}

const ivm__operator_class ivm__aggregate_class = {
    .name = "aggregate",
    .consume = aggregate_consume,
    .finish = aggregate_finish,
    .commit = aggregate_commit,
    .undo = aggregate_undo,
    .free = ivm__aggregate_free,
    .bytes = aggregate_bytes,
};
