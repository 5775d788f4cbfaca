/* An aggregate made from its expressions, which it takes whatever the outcome: its groups' keys with their index, the states, the result. */
#include "aggregate_state.h"

static ivm_status make_store(ivm__aggregate *self, uint64_t seed, uint32_t columns_count, ivm__store *store)
{
    ivm__layout *layout;
    IVM_TRY(ivm__layout_create(self->memory, self->types, NULL, columns_count, false, &layout));
    ivm_status status = ivm__store_init(store, self->memory, self->texts, seed, layout);
    ivm__layout_release(layout);
    return status;
}

static ivm_status make_keys(ivm__aggregate *self, uint64_t seed)
{
    IVM_TRY(make_store(self, seed, self->groups_count, &self->keys));
    uint32_t *columns = ivm__allocate(self->memory, self->groups_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < self->groups_count; i++) {
        columns[i] = i;
    }
    ivm_status status = ivm__store_index(&self->keys, columns, self->groups_count, true, &self->by_key);
    ivm__release(self->memory, columns, self->groups_count * sizeof *columns);
    return status;
}

static ivm_status make_state(ivm__aggregate *self, uint64_t seed)
{
    self->is_plain = true;
    for (uint32_t i = 0; i < self->accumulators.count; i++) {
        self->is_plain &= self->accumulators.list[i].floats_count == 0;
    }
    if (self->groups_count) {
        IVM_TRY(make_keys(self, seed));
    } else {
        IVM_TRY(ivm__accumulators_reserve(&self->accumulators, 1));
        ivm__group_clear(&self->accumulators, 0);
    }
    return make_store(self, seed, self->columns_count, &self->result);
}

static void free_inputs(ivm__memory *memory, ivm__texts *texts, ivm__expression **groups, uint32_t groups_count,
                        const ivm__aggregate_spec *aggregates, uint32_t aggregates_count, ivm__expression *having)
{
    for (uint32_t i = 0; i < groups_count; i++) {
        ivm__expression_free(groups[i], memory, texts);
    }
    for (uint32_t i = 0; i < aggregates_count; i++) {
        ivm__expression_free(aggregates[i].argument, memory, texts);
        ivm__expression_free(aggregates[i].where, memory, texts);
    }
    ivm__expression_free(having, memory, texts);
}

/* An empty operator with its arrays; it has taken nothing yet. */
static ivm__aggregate *make_empty(ivm__memory *memory, ivm__texts *texts, ivm__expression **groups, uint32_t groups_count,
                                  const ivm__aggregate_spec *aggregates, uint32_t aggregates_count)
{
    ivm__aggregate *self = ivm__allocate_zeroed(memory, sizeof *self);
    if (!self) {
        return NULL;
    }
    *self = (ivm__aggregate){ .base = { .class = &ivm__aggregate_class }, .memory = memory, .texts = texts };
    self->columns_count = groups_count + aggregates_count;
    self->types = ivm__allocate(memory, self->columns_count * sizeof *self->types);
    self->groups = ivm__allocate(memory, groups_count * sizeof *self->groups);
    if (!self->types || !self->groups ||
        ivm__accumulators_init(&self->accumulators, memory, texts, aggregates, aggregates_count) != IVM_OK) {
        ivm__release(memory, self->types, self->columns_count * sizeof *self->types);
        ivm__release(memory, self->groups, groups_count * sizeof *self->groups);
        ivm__release(memory, self, sizeof *self);
        return NULL;
    }
    for (uint32_t i = 0; i < self->columns_count; i++) {
        ivm_type type = i < groups_count ? groups[i]->type : aggregates[i - groups_count].type;
        self->types[i] = type ? type : IVM_INT64;
        self->texts_change |= i >= groups_count && self->types[i] == IVM_STRING;
    }
    self->base.columns_count = self->columns_count;
    self->base.types = self->types;
    return self;
}

ivm_status ivm__aggregate_create(ivm__memory *memory, ivm__texts *texts, uint64_t seed, ivm__expression **groups, uint32_t groups_count,
                                 const ivm__aggregate_spec *aggregates, uint32_t aggregates_count, ivm__expression *having,
                                 ivm__operator **operator)
{
    ivm__aggregate *self = make_empty(memory, texts, groups, groups_count, aggregates, aggregates_count);
    if (!self) {
        free_inputs(memory, texts, groups, groups_count, aggregates, aggregates_count, having);
        return IVM_OUT_OF_MEMORY;
    }
    memcpy(self->groups, groups, groups_count * sizeof *groups);
    self->groups_count = groups_count;
    ivm__group_codes_init(&self->codes, memory, groups_count);
    self->having = having;
    ivm_status status = make_state(self, seed);
    if (status != IVM_OK) {
        ivm__aggregate_free(&self->base, memory);
        return status;
    }
    *operator= & self->base;
    return IVM_OK;
}

ivm_status ivm__aggregate_negative(ivm__operator *aggregate)
{
    assert(aggregate->class == &ivm__aggregate_class);
    ivm__aggregate *self = (ivm__aggregate *)aggregate;
    assert(self->touched_count == 0 && self->keys.rows_end == 0);
    ivm__accumulators_negative(&self->accumulators);
    if (!self->groups_count) {
        IVM_TRY(ivm__accumulators_reserve(&self->accumulators, 1));
        ivm__group_clear(&self->accumulators, 0);
    }
    return IVM_OK;
}

ivm__weight ivm__aggregate_rows(const ivm__operator *aggregate)
{
    assert(aggregate->class == &ivm__aggregate_class);
    const ivm__aggregate *self = (const ivm__aggregate *)aggregate;
    unsigned __int128 sum = 0;
    for (uint32_t group = 0; group < ivm__aggregate_groups_end(self); group++) {
        sum += (unsigned __int128)((const ivm__group *)(const void *)ivm__group_state(&self->accumulators, group))->rows;
    }
    return (ivm__weight)sum;
}

ivm__store *ivm__aggregate_result(ivm__operator *aggregate)
{
    assert(aggregate->class == &ivm__aggregate_class);
    return &((ivm__aggregate *)aggregate)->result;
}
