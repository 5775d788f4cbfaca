/* Accumulators: what a state has of each aggregate, saving it and going back, and a chunk's way to the loops that add its rows.
 *
 * A chunk comes through one of three ports where weights may be negative: the rows as they are go to counts, sums and variances, those that
 * are present to all others, and the support says which groups exist and which sums have a value. Else every aggregate takes every chunk.
 * Cost: see accumulator_add.c. */
#include "accumulator_inside.h"

/* Longer decimals need more than 192 bits: 80 of value, 63 of a row's weight, 48 of rows and the sign are these. */
#define CARRY_SHORT_PRECISION_MAX 24u

/* ---- States ----------------------------------------------------------------------------------------------------------------------- */

static bool is_sum(ivm__aggregate_function function)
{
    return function == IVM__SUM || function == IVM__AVG;
}

static bool is_distinct(ivm__aggregate_function function)
{
    return function == IVM__COUNT_DISTINCT || function == IVM__SUM_DISTINCT;
}

static bool is_extreme(ivm__aggregate_function function)
{
    return function == IVM__MIN || function == IVM__MAX;
}

/* How many exact float sums the aggregate has. */
static uint32_t floats_of(ivm__aggregate_function function, ivm_type argument_type)
{
    if (argument_type != IVM_FLOAT64) {
        return 0;
    }
    return is_sum(function) || function == IVM__SUM_DISTINCT ? 1 : ivm__function_is_variance(function) ? 2 : 0;
}

static void accumulator_init(ivm__accumulator *accumulator, ivm__memory *memory, ivm__texts *texts, const ivm__aggregate_spec *spec)
{
    ivm__aggregate_function function = spec->function;
    ivm_type type = spec->argument ? spec->argument->type : 0;
    assert(spec->name);
    bool sums = is_sum(function), sees_signs = sums || function == IVM__COUNT || ivm__function_is_variance(function);
    *accumulator = (ivm__accumulator){
        .function = function,
        .argument = spec->argument,
        .where = spec->where,
        .name = spec->name,
        .type = spec->type,
        .argument_type = type,
        .port = sees_signs ? IVM__AGGREGATE_ROWS : IVM__AGGREGATE_PRESENT,
        .floats_count = floats_of(function, type),
        .is_float = floats_of(function, type) > 0,
        .carries_wide = sums && ivm__type_is_wide(type) && IVM_TYPE_PRECISION(type) > CARRY_SHORT_PRECISION_MAX,
        .counts_rows = function == IVM__COUNT && !spec->argument && !spec->where,
    };
    if (is_extreme(function) || is_distinct(function)) {
        ivm__ordered_init(&accumulator->ordered, memory, texts, type ? type : IVM_INT64);
    }
}

/* Of the carry, or of the pointers to float sums. */
static uint32_t tail_bytes(const ivm__accumulator *accumulator)
{
    if (accumulator->is_float) {
        return accumulator->floats_count * (uint32_t)sizeof(ivm__exact_sum *);
    }
    bool sums = is_sum(accumulator->function) || accumulator->function == IVM__SUM_DISTINCT;
    return accumulator->carries_wide ? sizeof(ivm__wide) : sums ? sizeof(int64_t) : 0;
}

static uint32_t wide_bytes(const ivm__accumulator *accumulator)
{
    switch (accumulator->function) {
    case IVM__COUNT:
        return accumulator->counts_rows ? 0 : sizeof(ivm__weight);
    case IVM__COUNT_DISTINCT:
        return sizeof(ivm__weight);
    case IVM__SUM:
    case IVM__AVG:
    case IVM__SUM_DISTINCT:
        return sizeof(ivm__sum_state);
    case IVM__MIN:
    case IVM__MAX:
        return 0;
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        return sizeof(ivm__bool_state);
    default:
        return accumulator->is_float ? sizeof(ivm__weight) : sizeof(ivm__moments);
    }
}

/* Where everything lies in a state. */
static void state_lay(ivm__accumulators *accumulators)
{
    uint32_t offset = sizeof(ivm__group);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        ivm__accumulator *accumulator = &accumulators->list[i];
        accumulator->wide_offset = offset;
        offset += wide_bytes(accumulator);
        if (accumulators->negative && accumulator->function == IVM__SUM) {
            accumulator->support_offset = offset;
            offset += sizeof(ivm__weight);
        }
    }
    accumulators->tail_offset = offset;
    offset += sizeof(ivm__group_tail);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        accumulators->list[i].tail_offset = offset;
        offset += tail_bytes(&accumulators->list[i]);
    }
    accumulators->stride = offset <= 32 ? 32 : (offset + 63) / 64 * 64;
    ivm__items_init(&accumulators->states, accumulators->stride);
}

ivm_status ivm__accumulators_init(ivm__accumulators *accumulators, ivm__memory *memory, ivm__texts *texts, const ivm__aggregate_spec *specs,
                                  uint32_t count)
{
    *accumulators = (ivm__accumulators){ .memory = memory };
    accumulators->list = ivm__allocate_zeroed(memory, count * sizeof *accumulators->list);
    if (!accumulators->list) {
        return IVM_OUT_OF_MEMORY;
    }
    accumulators->count = count;
    for (uint32_t i = 0; i < count; i++) {
        accumulator_init(&accumulators->list[i], memory, texts, &specs[i]);
    }
    state_lay(accumulators);
    return IVM_OK;
}

static void states_release(ivm__accumulators *accumulators)
{
    ivm__items_free(&accumulators->states, accumulators->memory);
}

void ivm__accumulators_negative(ivm__accumulators *accumulators)
{
    states_release(accumulators);
    accumulators->negative = true;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        accumulators->list[i].counts_rows = false; /* a group's rows are those of its support */
    }
    state_lay(accumulators);
}

void ivm__accumulators_deinit(ivm__accumulators *accumulators, uint32_t groups_end, ivm__texts *texts)
{
    ivm__memory *memory = accumulators->memory;
    for (uint32_t group = 0; group < groups_end; group++) {
        ivm__group_free(accumulators, group);
    }
    for (uint32_t i = 0; i < accumulators->count; i++) {
        ivm__accumulator *accumulator = &accumulators->list[i];
        if (accumulator->ordered.memory) {
            ivm__ordered_deinit(&accumulator->ordered);
        }
        ivm__expression_free(accumulator->argument, memory, texts);
        ivm__expression_free(accumulator->where, memory, texts);
    }
    ivm__release(memory, accumulators->list, accumulators->count * sizeof *accumulators->list);
    states_release(accumulators);
    *accumulators = (ivm__accumulators){ 0 };
}

ivm_status ivm__accumulators_reserve(ivm__accumulators *accumulators, uint64_t groups)
{
    return ivm__items_reserve(&accumulators->states, accumulators->memory, groups);
}

void ivm__group_clear(ivm__accumulators *accumulators, uint32_t group)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    memset(state, 0, accumulators->stride);
    ivm__group_tail_of(accumulators, state)->row = IVM__ROW_NONE;
}

void ivm__group_free(ivm__accumulators *accumulators, uint32_t group)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        for (uint32_t f = 0; f < accumulator->floats_count; f++) {
            ivm__exact_sum_free(accumulators->memory, ivm__state_floats(accumulator, state)[f]);
        }
    }
    ivm__group_clear(accumulators, group);
}

void ivm__group_trim(ivm__accumulators *accumulators, uint32_t group)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        for (uint32_t f = 0; f < accumulator->floats_count; f++) {
            ivm__exact_sum_trim(accumulators->memory, &ivm__state_floats(accumulator, state)[f]);
        }
    }
}

/* ---- Saving and restoring ---------------------------------------------------------------------------------------------------------- */

/* The state's bytes, then for each float sum the size of its image and the image, each to 16 bytes. */
static size_t saved_size(const ivm__accumulators *accumulators, uint8_t *state)
{
    size_t size = accumulators->stride;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        for (uint32_t f = 0; f < accumulator->floats_count; f++) {
            size += 16 + (ivm__exact_sum_image_size(ivm__state_floats(accumulator, state)[f]) + 15) / 16 * 16;
        }
    }
    return size;
}

void *ivm__group_save(const ivm__accumulators *accumulators, uint32_t group, ivm__arena *arena)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    uint8_t *saved = ivm__arena_allocate(arena, saved_size(accumulators, state));
    if (!saved) {
        return NULL;
    }
    memcpy(saved, state, accumulators->stride);
    uint8_t *at = saved + accumulators->stride;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        for (uint32_t f = 0; f < accumulator->floats_count; f++) {
            const ivm__exact_sum *sum = ivm__state_floats(accumulator, state)[f];
            size_t size = ivm__exact_sum_image_size(sum);
            memcpy(at, &size, sizeof size);
            ivm__exact_sum_save(sum, at + 16);
            at += 16 + (size + 15) / 16 * 16;
        }
    }
    return saved;
}

void ivm__group_restore(ivm__accumulators *accumulators, uint32_t group, const void *saved)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    const uint8_t *at = (const uint8_t *)saved + accumulators->stride;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        for (uint32_t f = 0; f < accumulator->floats_count; f++) {
            size_t size;
            memcpy(&size, at, sizeof size);
            ivm__exact_sum_restore(accumulators->memory, &ivm__state_floats(accumulator, state)[f], at + 16, size);
            at += 16 + (size + 15) / 16 * 16;
        }
    }
    /* Pointers of float sums are the present ones: an image says nothing of where its sum lies. */
    uint8_t *pointers_end = state + accumulators->tail_offset + sizeof(ivm__group_tail);
    memcpy(state, saved, (size_t)(pointers_end - state));
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const ivm__accumulator *accumulator = &accumulators->list[i];
        if (!accumulator->is_float) {
            memcpy(state + accumulator->tail_offset, (const uint8_t *)saved + accumulator->tail_offset, tail_bytes(accumulator));
        }
    }
}

/* ---- Adding ------------------------------------------------------------------------------------------------------------------------- */

/* What a chunk means to an aggregate. */
typedef struct accumulation {
    ivm__accumulator *accumulator;
    bool adds;     /* it is added */
    bool supports; /* it says which groups have a value */
} accumulation;

/* The rows are those the aggregate's condition let in; failed: a byte for each of them. */
static ivm_status add_chunk(ivm__accumulators *accumulators, const accumulation *of, ivm__step *step, const ivm__chunk *chunk,
                            const ivm__targets *targets, uint8_t *failed)
{
    ivm__accumulator *accumulator = of->accumulator;
    ivm__vector values = { 0 };
    if (accumulator->argument) {
        IVM_TRY(ivm__expression_compute(accumulator->argument, step, chunk, &values, failed));
        if (accumulator->argument_type == 0) {
            return IVM_OK; /* null for every row */
        }
    }
    const ivm__vector *given = accumulator->argument ? &values : NULL;
    if (of->adds) {
        IVM_TRY(ivm__accumulator_add(accumulators, accumulator, chunk, given, targets));
    }
    if (of->supports) {
        ivm__accumulator_count(accumulator->support_offset, chunk, given, targets->states);
    }
    return IVM_OK;
}

/* An argument is computed only for the rows that the condition lets in. */
static ivm_status add_where(ivm__accumulators *accumulators, const accumulation *of, ivm__step *step, const ivm__chunk *chunk,
                            const ivm__targets *targets, uint8_t *failed)
{
    uint32_t *rows = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *rows);
    uint32_t *groups = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *groups);
    uint8_t **states = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *states);
    uint8_t *chosen_failed = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS);
    uint32_t count = 0;
    if (!rows || !groups || !states || !chosen_failed) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__expression_select(of->accumulator->where, step, chunk, rows, &count, failed));
    if (count == 0) {
        return IVM_OK;
    }
    ivm__chunk *part = ivm__chunk_gather(step->scratch, chunk, rows, count);
    if (!part) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        groups[i] = targets->groups[rows[i]];
        states[i] = targets->states[rows[i]];
        chosen_failed[i] = 0;
    }
    IVM_TRY(add_chunk(accumulators, of, step, part, &(ivm__targets){ groups, states }, chosen_failed));
    for (uint32_t i = 0; i < count; i++) {
        failed[rows[i]] |= chosen_failed[i];
    }
    return IVM_OK;
}

static void add_rows(const ivm__chunk *chunk, uint8_t *const *states)
{
    if (!chunk->weights) {
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            ++*ivm__group_rows(states[i]);
        }
        return;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        ivm__weight_add(ivm__group_rows(states[i]), chunk->weights[i]);
    }
}

static accumulation accumulation_of(const ivm__accumulators *accumulators, ivm__accumulator *accumulator, uint32_t port)
{
    return (accumulation){ .accumulator = accumulator,
                           .adds = port == accumulator->port || !accumulators->negative,
                           .supports = port == IVM__AGGREGATE_SUPPORT && accumulator->support_offset };
}

ivm_status ivm__accumulate(ivm__accumulators *accumulators, ivm__step *step, uint32_t port, const ivm__chunk *chunk,
                           const ivm__targets *targets, uint8_t *failed)
{
    bool counts = !accumulators->negative || port == IVM__AGGREGATE_SUPPORT;
    assert(accumulators->negative || port == IVM__AGGREGATE_ROWS);
    if (counts) {
        add_rows(chunk, targets->states);
    }
    for (uint32_t i = 0; i < accumulators->count; i++) {
        accumulation of = accumulation_of(accumulators, &accumulators->list[i], port);
        if (of.accumulator->counts_rows || !(of.adds || counts)) {
            continue; /* on the support all arguments are computed: one that cannot be rejects the step */
        }
        if (of.accumulator->where) {
            IVM_TRY(add_where(accumulators, &of, step, chunk, targets, failed));
        } else {
            IVM_TRY(add_chunk(accumulators, &of, step, chunk, targets, failed));
        }
    }
    return IVM_OK;
}

uint64_t ivm__accumulators_bytes(const ivm__accumulators *accumulators)
{
    uint64_t bytes = ivm__items_bytes(&accumulators->states);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        bytes += accumulators->list[i].ordered.memory ? ivm__ordered_bytes(&accumulators->list[i].ordered) : 0;
    }
    return bytes;
}
