/* An aggregate's rows: those of the groups that a step touched, brought up to date at its end.
 *
 *     values read -> `having` judged -> written over the group's row where it lies, or a new row, or none
 *
 * A group whose values are as they were changes nothing. Cost: two lines a touched group and its values. */
#include "aggregate_state.h"
#include "staging.h"

/* The group's row in the result; IVM__ROW_NONE: it has none. */
static ivm__row_id *row_of(ivm__aggregate *self, uint32_t group)
{
    return &ivm__group_tail_of(&self->accumulators, ivm__group_state(&self->accumulators, group))->row;
}

/* Names the first of these groups of which the aggregate has no value. */
static ivm_status value_fail(const ivm__aggregate *self, ivm__step *step, uint32_t aggregate, const uint32_t *groups, uint32_t count)
{
    uint32_t at = 0;
    ivm__vector one;
    const char *name = self->accumulators.list[aggregate].name;
    ivm__chunk *group = ivm__chunk_make(step->scratch, self->types, self->groups_count);
    if (!group || !ivm__vector_make(step->scratch, &one, self->types[self->groups_count + aggregate], 1, true)) {
        return ivm__fail_memory(step->error);
    }
    while (at + 1 < count && ivm__accumulator_values(&self->accumulators, aggregate, groups + at, 1, &one) == IVM_OK) {
        at++;
    }
    for (uint32_t c = 0; c < self->groups_count; c++) {
        if (!ivm__vector_make(step->scratch, &group->columns[c], self->types[c], 1, true)) {
            return ivm__fail_memory(step->error);
        }
        ivm__store_gather(&self->keys, groups + at, 1, c, &group->columns[c]);
    }
    char text[IVM__ROW_TEXT_SIZE] = "of all rows";
    group->rows_count = 1;
    if (self->groups_count) {
        ivm__stage_row_text(group, NULL, self->groups_count, 0, text);
    }
    return ivm__fail(step->error, IVM_OVERFLOW, "view %s: aggregate %s %s%s is out of range", self->base.view, name,
                     self->groups_count ? "of group " : "", text);
}

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
            return value_fail(self, step, c - self->groups_count, groups, count);
        }
    }
    return IVM_OK;
}

/* Replaces the group's row by the body at `row`, or takes it away (NULL). */
static ivm_status publish_row(ivm__aggregate *self, uint32_t group, const uint8_t *row)
{
    ivm__row_id *at = row_of(self, group);
    if (row && *at != IVM__ROW_NONE) {
        return ivm__store_update(&self->result, *at, row, at);
    }
    if (*at != IVM__ROW_NONE) {
        IVM_TRY(ivm__store_touch(&self->result, *at));
        ivm__store_weight_set(&self->result, *at, 0);
        *at = IVM__ROW_NONE;
    }
    if (row) {
        *at = ivm__store_insert(&self->result, 1);
        memcpy(ivm__store_row(&self->result, *at) + IVM__ROW_HEADER, row + IVM__ROW_HEADER, self->result.layout->body_bytes);
        ivm__store_link(&self->result, *at);
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
        row[IVM__ROW_HEADER + c / 8] |= (uint8_t)(ivm__row_is_null(from, key, c) << c % 8); /* little endian */
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
        ivm__row_id row = *row_of(self, groups[i]);
        if (row != IVM__ROW_NONE) {
            __builtin_prefetch(ivm__store_row(&self->result, row), 1);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ivm__row_id row = *row_of(self, groups[i]);
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

/* Groups that are there; those that have a row already are told apart, once all rows are sent for. */
ivm_status ivm__aggregate_publish_there(ivm__aggregate *self, ivm__step *step, uint32_t *groups, uint32_t count)
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
    ivm__group_codes_forget(&self->codes, group);
    return IVM_OK;
}

/* Touched groups, a chunk of those that are still there at a time. A promise about a foreign key that was not kept can leave a group with less than no
 * rows; it is there. */
ivm_status ivm__aggregate_publish(ivm__aggregate *self, ivm__step *step)
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
            IVM_TRY(ivm__step_poll(step));
            IVM_TRY(ivm__aggregate_publish_there(self, step, groups, count));
            ivm__arena_back(step->scratch, mark);
            count = 0;
        }
    }
    if (count) {
        IVM_TRY(ivm__aggregate_publish_there(self, step, groups, count));
        ivm__arena_back(step->scratch, mark);
    }
    return IVM_OK;
}
