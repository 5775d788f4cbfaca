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

ivm_status ivm__aggregate_groups(ivm__aggregate *self, ivm__step *step, const ivm__chunk *keys_chunk, uint32_t *groups)
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

/* The groups of these rows, into their places among `groups`; from now on their codes tell. */
static ivm_status learn_groups(ivm__aggregate *self, ivm__step *step, const ivm__chunk *keys_chunk, const uint32_t *rows, uint32_t count,
                               const uint32_t *places, uint32_t *groups)
{
    uint32_t *found = ivm__arena_allocate(step->scratch, count * sizeof *found);
    const ivm__chunk *keys = ivm__chunk_gather(step->scratch, keys_chunk, rows, count);
    if (!found || !keys) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__aggregate_groups(self, step, keys, found));
    IVM_TRY(ivm__group_codes_reserve(&self->codes, self->keys.rows_end));
    for (uint32_t i = 0; i < count; i++) {
        groups[rows[i]] = found[i];
        ivm__group_codes_remember(&self->codes, places[rows[i]], found[i]);
    }
    return IVM_OK;
}

static ivm_status find_by_codes(ivm__aggregate *self, ivm__step *step, const ivm__chunk *keys_chunk, uint32_t *groups)
{
    uint32_t *places = ivm__arena_allocate(step->scratch, keys_chunk->rows_count * sizeof *places);
    uint32_t *missing = ivm__arena_allocate(step->scratch, keys_chunk->rows_count * sizeof *missing);
    if (!places || !missing) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t count = ivm__group_codes_find(&self->codes, keys_chunk, places, groups, missing);
    return count ? learn_groups(self, step, keys_chunk, missing, count, places, groups) : IVM_OK;
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

static void groups_forget(ivm__aggregate *self, const uint32_t *groups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ivm__group_codes_forget(&self->codes, groups[i]);
    }
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
        bool coded;
        IVM_TRY(ivm__group_codes_serve(&self->codes, keys_chunk, self->keys.rows_end, &coded));
        IVM_TRY(coded ? find_by_codes(self, step, keys_chunk, groups) : ivm__aggregate_groups(self, step, keys_chunk, groups));
    } else {
        memset(groups, 0, chunk->rows_count * sizeof *groups);
    }
    ivm_status touched = touch_groups(self, step, groups, chunk->rows_count);
    if (touched != IVM_OK) { /* those made just now are not among the touched ones, and go by the undo */
        groups_forget(self, groups, chunk->rows_count);
        return touched;
    }
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

/* ---- Ending a step -------------------------------------------------------------------------------------------------------------------- */

static ivm_status aggregate_finish(ivm__operator *base, ivm__step *step)
{
    ivm__aggregate *self = (ivm__aggregate *)base;
    IVM_TRY(ivm__failures_check(&self->failures, step, base->view, "an aggregate"));
    if (step->initial && !self->groups_count && touch_group(self, step, 0) != IVM_OK) {
        return ivm__fail_memory(step->error);
    }
    if (self->loaded) {
        assert(step->initial && self->touched_count == 0);
        IVM_TRY(ivm__aggregate_publish_loaded(self, step, false));
    }
    IVM_TRY(ivm__aggregate_publish(self, step));
    ivm_status status = base->next ? ivm__delta_changes(base, step, &self->result, NULL) : IVM_OK;
    return status == IVM_OUT_OF_MEMORY ? ivm__fail_memory(step->error) : status;
}

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
        } else if (!self->is_plain) {
            ivm__group_trim(&self->accumulators, group);
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
        if (!self->is_plain) {
            ivm__group_trim(&self->accumulators, self->touched[i].group);
        }
        ivm__group_codes_forget(&self->codes, self->touched[i].group);
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
        ivm__accumulators_deinit(&self->accumulators, self->accumulators.states ? ivm__aggregate_groups_end(self) : 0, self->texts);
    }
    ivm__group_codes_deinit(&self->codes);
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
    const ivm__aggregate *self = (const ivm__aggregate *)base;
    return ivm__accumulators_bytes(&self->accumulators) + ivm__group_codes_bytes(&self->codes);
}

const ivm__operator_class ivm__aggregate_class = {
    .name = "aggregate",
    .consume = aggregate_consume,
    .finish = aggregate_finish,
    .commit = aggregate_commit,
    .undo = aggregate_undo,
    .free = ivm__aggregate_free,
    .bytes = aggregate_bytes,
    .save = ivm__aggregate_save,
    .load = ivm__aggregate_load,
    .settle = ivm__aggregate_settle,
};
