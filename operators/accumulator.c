/* Accumulators: adding rows to groups' states, and reading values from them.
 *
 *     count' = count + w        sum' = sum + v * w        avg = sum / count of non-nulls, rounded once        min, max: an ordered multiset
 *
 * Integer and decimal sums have 128 bits and a carry above them, of 64 bits or, for long decimals, 128: what is in a group at the end fits,
 * and on the way all of it may wrap, for additions modulo a power of two do not mind. The range is checked when a value is read. Cost: a
 * few nanoseconds a row and sum; O(log n) a row for min and max. */
#include "accumulator.h"

typedef unsigned __int128 magnitude;

typedef struct sum_state {
    ivm__wide sum;
    ivm__weight values; /* non-nulls */
} sum_state;

/* Longer decimals need more than 192 bits: 80 of value, 63 of a row's weight, 48 of rows and the sign are these. */
#define CARRY_SHORT_PRECISION_MAX 24u

/* ---- States ----------------------------------------------------------------------------------------------------------------------- */

static void accumulator_init(ivm__accumulator *accumulator, ivm__memory *memory, ivm__texts *texts, const ivm__aggregate_spec *spec)
{
    *accumulator = (ivm__accumulator){
        .function = spec->function,
        .argument = spec->argument,
        .where = spec->where,
        .type = spec->type,
        .argument_type = spec->argument ? spec->argument->type : 0,
        .counts_rows = spec->function == IVM__COUNT && !spec->argument && !spec->where,
    };
    bool sums = spec->function == IVM__SUM || spec->function == IVM__AVG;
    accumulator->is_float = sums && accumulator->argument_type == IVM_FLOAT64;
    accumulator->carries_wide =
        sums && ivm__type_is_wide(accumulator->argument_type) && IVM_TYPE_PRECISION(accumulator->argument_type) > CARRY_SHORT_PRECISION_MAX;
    if (spec->function == IVM__MIN || spec->function == IVM__MAX) {
        ivm__ordered_init(&accumulator->ordered, memory, texts, accumulator->argument_type ? accumulator->argument_type : IVM_INT64);
    }
}

/* Of the carry, or of the pointer to the float sum. */
static uint32_t tail_bytes(const ivm__accumulator *accumulator)
{
    bool sums = accumulator->function == IVM__SUM || accumulator->function == IVM__AVG;
    return accumulator->carries_wide ? sizeof(ivm__wide) : sums ? sizeof(int64_t) : 0;
}

static uint32_t wide_bytes(const ivm__accumulator *accumulator)
{
    switch (accumulator->function) {
    case IVM__COUNT:
        return accumulator->counts_rows ? 0 : sizeof(ivm__weight);
    case IVM__SUM:
    case IVM__AVG:
        return sizeof(sum_state);
    default:
        return 0;
    }
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
    uint32_t offset = sizeof(ivm__group);
    for (uint32_t i = 0; i < count; i++) {
        accumulator_init(&accumulators->list[i], memory, texts, &specs[i]);
        accumulators->list[i].wide_offset = offset;
        offset += wide_bytes(&accumulators->list[i]);
    }
    accumulators->tail_offset = offset;
    offset += sizeof(ivm__group_tail);
    for (uint32_t i = 0; i < count; i++) {
        accumulators->list[i].tail_offset = offset;
        offset += tail_bytes(&accumulators->list[i]);
    }
    accumulators->stride = offset <= 32 ? 32 : (offset + 63) / 64 * 64;
    return IVM_OK;
}

static ivm__exact_sum **float_sum(const ivm__accumulator *accumulator, uint8_t *state)
{
    return (ivm__exact_sum **)(void *)(state + accumulator->tail_offset);
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
    ivm__release(memory, accumulators->states, (size_t)accumulators->capacity * accumulators->stride);
    *accumulators = (ivm__accumulators){ 0 };
}

ivm_status ivm__accumulators_reserve(ivm__accumulators *accumulators, uint64_t groups)
{
    return ivm__grow(accumulators->memory, (void **)&accumulators->states, &accumulators->capacity, groups, accumulators->stride);
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
        if (accumulators->list[i].is_float) {
            ivm__exact_sum_free(accumulators->memory, *float_sum(&accumulators->list[i], state));
        }
    }
    ivm__group_clear(accumulators, group);
}

/* ---- Saving and restoring ---------------------------------------------------------------------------------------------------------- */

/* The state's bytes, then for each float sum the size of its image and the image, each to 16 bytes. */
static size_t saved_size(const ivm__accumulators *accumulators, uint8_t *state)
{
    size_t size = accumulators->stride;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        if (accumulators->list[i].is_float) {
            size += 16 + (ivm__exact_sum_image_size(*float_sum(&accumulators->list[i], state)) + 15) / 16 * 16;
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
        if (accumulators->list[i].is_float) {
            const ivm__exact_sum *sum = *float_sum(&accumulators->list[i], state);
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
        if (accumulators->list[i].is_float) {
            size_t size;
            memcpy(&size, at, sizeof size);
            ivm__exact_sum_restore(accumulators->memory, float_sum(&accumulators->list[i], state), at + 16, size);
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

/* Weights in flight have 128 bits and may wrap in a sum of them; then the others of the step bring them back. */
static inline void weight_add(ivm__weight *to, ivm__weight weight)
{
    *to = (ivm__weight)((magnitude)*to + (magnitude)weight);
}

static void add_counts(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const ivm__chunk *chunk,
                       const ivm__vector *values, const uint32_t *groups)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!values || !ivm__is_null(values, i)) {
            uint8_t *state = ivm__group_state(accumulators, groups[i]);
            weight_add((ivm__weight *)(void *)(state + accumulator->wide_offset), ivm__chunk_weight(chunk, i));
        }
    }
}

/* The stored sum is signed: sum + carry * 2^128, so that a change of its sign moves the carry. */
static void sum_add_wide(const ivm__accumulator *accumulator, uint8_t *state, ivm__wide value, ivm__weight weight)
{
    ivm__wide *sum = &((sum_state *)(void *)(state + accumulator->wide_offset))->sum;
    ivm__int256 product = ivm__int256_multiply(value, weight);
    magnitude before = (magnitude)*sum, after = before + (product.limb[0] | (magnitude)product.limb[1] << 64);
    magnitude above =
        (product.limb[2] | (magnitude)product.limb[3] << 64) + (after < before) + (magnitude)(after >> 127) - (magnitude)(before >> 127);
    *sum = (ivm__wide)after;
    uint8_t *carry = state + accumulator->tail_offset;
    if (accumulator->carries_wide) {
        magnitude wide;
        memcpy(&wide, carry, sizeof wide);
        wide += above;
        memcpy(carry, &wide, sizeof wide);
    } else {
        uint64_t word;
        memcpy(&word, carry, sizeof word);
        word += (uint64_t)above;
        memcpy(carry, &word, sizeof word);
    }
}

static inline void sum_add(const ivm__accumulator *accumulator, uint8_t *state, ivm__wide value, ivm__weight weight)
{
    sum_state *sum = (sum_state *)(void *)(state + accumulator->wide_offset);
    ivm__wide product, total;
    if (ivm__likely(!__builtin_mul_overflow(value, weight, &product) && !__builtin_add_overflow(sum->sum, product, &total))) {
        sum->sum = total;
    } else {
        sum_add_wide(accumulator, state, value, weight);
    }
    weight_add(&sum->values, weight);
}

/* int64 once each, no nulls: the loop of a star's facts. */
static void add_int64_plain(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const int64_t *values,
                            const uint32_t *groups, uint32_t count)
{
    uint32_t wide = accumulator->wide_offset;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *state = ivm__group_state(accumulators, groups[i]);
        sum_state *sum = (sum_state *)(void *)(state + wide);
        ivm__wide total;
        if (ivm__likely(!__builtin_add_overflow(sum->sum, (ivm__wide)values[i], &total))) {
            sum->sum = total;
        } else {
            sum_add_wide(accumulator, state, values[i], 1);
        }
        sum->values++;
    }
}

static void add_sums(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const ivm__chunk *chunk,
                     const ivm__vector *values, const uint32_t *groups)
{
    bool wide = ivm__type_is_wide(accumulator->argument_type);
    if (!wide && !values->nulls && !chunk->weights) {
        add_int64_plain(accumulators, accumulator, values->cells, groups, chunk->rows_count);
        return;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            uint8_t *state = ivm__group_state(accumulators, groups[i]);
            ivm__wide value = wide ? ivm__wide_cell(values, i) : (ivm__wide)(int64_t)ivm__word(values, i);
            sum_add(accumulator, state, value, ivm__chunk_weight(chunk, i));
        }
    }
}

static ivm_status add_floats(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const ivm__chunk *chunk,
                             const ivm__vector *values, const uint32_t *groups)
{
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            uint8_t *state = ivm__group_state(accumulators, groups[i]);
            ivm__weight weight = ivm__chunk_weight(chunk, i);
            IVM_TRY(ivm__exact_sum_add(accumulators->memory, float_sum(accumulator, state), ivm__word_float(ivm__word(values, i)), weight));
            weight_add(&((sum_state *)(void *)(state + accumulator->wide_offset))->values, weight);
        }
    }
    return IVM_OK;
}

static ivm_status add_ordered(ivm__accumulator *accumulator, const ivm__chunk *chunk, const ivm__vector *values, const uint32_t *groups)
{
    bool wide = ivm__type_is_wide(values->type);
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        if (!ivm__is_null(values, i)) {
            ivm__wide cell = wide ? ivm__wide_cell(values, i) : (ivm__wide)ivm__word(values, i);
            IVM_TRY(ivm__ordered_add(&accumulator->ordered, groups[i], cell, ivm__chunk_weight(chunk, i)));
        }
    }
    return IVM_OK;
}

/* The rows are those the aggregate's condition let in; failed: a byte for each of them. */
static ivm_status add_chunk(ivm__accumulators *accumulators, ivm__accumulator *accumulator, ivm__step *step, const ivm__chunk *chunk,
                            const uint32_t *groups, uint8_t *failed)
{
    ivm__vector values = { 0 };
    if (accumulator->argument) {
        IVM_TRY(ivm__expression_compute(accumulator->argument, step, chunk, &values, failed));
        if (accumulator->argument_type == 0) {
            return IVM_OK; /* null for every row */
        }
    }
    switch (accumulator->function) {
    case IVM__COUNT:
        add_counts(accumulators, accumulator, chunk, accumulator->argument ? &values : NULL, groups);
        return IVM_OK;
    case IVM__SUM:
    case IVM__AVG:
        if (accumulator->is_float) {
            return add_floats(accumulators, accumulator, chunk, &values, groups);
        }
        add_sums(accumulators, accumulator, chunk, &values, groups);
        return IVM_OK;
    default:
        return add_ordered(accumulator, chunk, &values, groups);
    }
}

/* An argument is computed only for the rows that the condition lets in. */
static ivm_status add_where(ivm__accumulators *accumulators, ivm__accumulator *accumulator, ivm__step *step, const ivm__chunk *chunk,
                            const uint32_t *groups, uint8_t *failed)
{
    uint32_t *rows = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *rows);
    uint32_t *chosen = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS * sizeof *chosen);
    uint8_t *chosen_failed = ivm__arena_allocate(step->scratch, IVM__CHUNK_ROWS);
    uint32_t count = 0;
    if (!rows || !chosen || !chosen_failed) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(ivm__expression_select(accumulator->where, step, chunk, rows, &count, failed));
    if (count == 0) {
        return IVM_OK;
    }
    ivm__chunk *part = ivm__chunk_gather(step->scratch, chunk, rows, count);
    if (!part) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = groups[rows[i]];
        chosen_failed[i] = 0;
    }
    IVM_TRY(add_chunk(accumulators, accumulator, step, part, chosen, chosen_failed));
    for (uint32_t i = 0; i < count; i++) {
        failed[rows[i]] |= chosen_failed[i];
    }
    return IVM_OK;
}

static void add_rows(const ivm__accumulators *accumulators, const ivm__chunk *chunk, const uint32_t *groups)
{
    if (!chunk->weights) {
        for (uint32_t i = 0; i < chunk->rows_count; i++) {
            ((ivm__group *)(void *)ivm__group_state(accumulators, groups[i]))->rows++;
        }
        return;
    }
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        weight_add(&((ivm__group *)(void *)ivm__group_state(accumulators, groups[i]))->rows, chunk->weights[i]);
    }
}

ivm_status ivm__accumulate(ivm__accumulators *accumulators, ivm__step *step, const ivm__chunk *chunk, const uint32_t *groups,
                           uint8_t *failed)
{
    add_rows(accumulators, chunk, groups);
    for (uint32_t i = 0; i < accumulators->count; i++) {
        ivm__accumulator *accumulator = &accumulators->list[i];
        if (accumulator->counts_rows) {
            continue;
        }
        if (accumulator->where) {
            IVM_TRY(add_where(accumulators, accumulator, step, chunk, groups, failed));
        } else {
            IVM_TRY(add_chunk(accumulators, accumulator, step, chunk, groups, failed));
        }
    }
    return IVM_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------ */

static ivm_status count_value(const ivm__accumulator *accumulator, uint8_t *state, uint64_t *cell)
{
    ivm__weight count =
        accumulator->counts_rows ? ((ivm__group *)(void *)state)->rows : *(ivm__weight *)(void *)(state + accumulator->wide_offset);
    if (count != (int64_t)count) {
        return IVM_OVERFLOW;
    }
    *cell = (uint64_t)(int64_t)count;
    return IVM_OK;
}

static ivm__wide carry_of(const ivm__accumulator *accumulator, const uint8_t *state)
{
    ivm__wide wide;
    int64_t word;
    if (accumulator->carries_wide) {
        memcpy(&wide, state + accumulator->tail_offset, sizeof wide);
        return wide;
    }
    memcpy(&word, state + accumulator->tail_offset, sizeof word);
    return word;
}

static ivm_status sum_value(const ivm__accumulator *accumulator, const uint8_t *state, ivm__vector *out, uint32_t at)
{
    const sum_state *sum = (const sum_state *)(const void *)(state + accumulator->wide_offset);
    ivm__wide carry = carry_of(accumulator, state);
    if (IVM_TYPE_KIND(accumulator->type) == IVM_DECIMAL_KIND) {
        ((ivm__wide *)out->cells)[at] = sum->sum;
        return carry == 0 && ivm__decimal_fits(sum->sum, IVM_DECIMAL_PRECISION_MAX) ? IVM_OK : IVM_OVERFLOW;
    }
    ((uint64_t *)out->cells)[at] = (uint64_t)(int64_t)sum->sum;
    return carry == 0 && sum->sum == (int64_t)sum->sum ? IVM_OK : IVM_OVERFLOW;
}

static double average_value(const ivm__accumulator *accumulator, const uint8_t *state)
{
    const sum_state *sum = (const sum_state *)(const void *)(state + accumulator->wide_offset);
    magnitude carry = (magnitude)carry_of(accumulator, state);
    ivm__int256 above = { { 0, 0, (uint64_t)carry, (uint64_t)(carry >> 64) } };
    uint32_t scale = IVM_TYPE_KIND(accumulator->argument_type) == IVM_DECIMAL_KIND ? IVM_TYPE_SCALE(accumulator->argument_type) : 0;
    return ivm__decimal_to_double(ivm__int256_add(ivm__int256_from(sum->sum), above), scale, sum->values);
}

/* A sum or an average of groups: null without a value. */
static ivm_status sum_or_average(const ivm__accumulator *accumulator, uint8_t *state, ivm__vector *out, uint32_t at)
{
    const sum_state *sum = (const sum_state *)(const void *)(state + accumulator->wide_offset);
    bool average = accumulator->function == IVM__AVG;
    out->nulls[at] = sum->values <= 0;
    if (out->nulls[at]) {
        if (ivm__type_is_wide(out->type)) {
            ((ivm__wide *)out->cells)[at] = 0;
        } else {
            ((uint64_t *)out->cells)[at] = 0;
        }
        return IVM_OK;
    }
    if (accumulator->is_float) {
        const ivm__exact_sum *total = *float_sum(accumulator, state);
        double value = average ? ivm__exact_sum_average(total, sum->values) : ivm__exact_sum_value(total);
        ((uint64_t *)out->cells)[at] = ivm__float_word(value);
        return IVM_OK;
    }
    if (average) {
        ((uint64_t *)out->cells)[at] = ivm__float_word(average_value(accumulator, state));
        return IVM_OK;
    }
    return sum_value(accumulator, state, out, at);
}

static void extreme_value(const ivm__accumulator *accumulator, uint32_t group, ivm__vector *out, uint32_t at)
{
    ivm__wide cell = 0;
    bool found = accumulator->function == IVM__MIN ? ivm__ordered_first(&accumulator->ordered, group, &cell)
                                                   : ivm__ordered_last(&accumulator->ordered, group, &cell);
    out->nulls[at] = !found;
    if (ivm__type_is_wide(out->type)) {
        ((ivm__wide *)out->cells)[at] = found ? cell : 0;
    } else {
        ((uint64_t *)out->cells)[at] = found ? (uint64_t)cell : 0;
    }
}

/* int64 sums without a carry, as nearly all are; the first that is of another kind stops it. How many were read. */
static uint32_t plain_sums(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, const uint32_t *groups,
                           uint32_t count, ivm__vector *out)
{
    uint64_t *cells = out->cells;
    if (accumulator->function != IVM__SUM || accumulator->is_float || accumulator->type != IVM_INT64) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *state = ivm__group_state(accumulators, groups[i]);
        const sum_state *sum = (const sum_state *)(const void *)(state + accumulator->wide_offset);
        if (carry_of(accumulator, state) != 0 || sum->sum != (int64_t)sum->sum || sum->values <= 0) {
            return i;
        }
        cells[i] = (uint64_t)(int64_t)sum->sum;
        out->nulls[i] = 0;
    }
    return count;
}

ivm_status ivm__accumulator_values(const ivm__accumulators *accumulators, uint32_t which, const uint32_t *groups, uint32_t count,
                                   ivm__vector *out)
{
    const ivm__accumulator *accumulator = &accumulators->list[which];
    for (uint32_t i = plain_sums(accumulators, accumulator, groups, count, out); i < count; i++) {
        uint8_t *state = ivm__group_state(accumulators, groups[i]);
        switch (accumulator->function) {
        case IVM__COUNT:
            out->nulls[i] = 0;
            IVM_TRY(count_value(accumulator, state, &((uint64_t *)out->cells)[i]));
            break;
        case IVM__SUM:
        case IVM__AVG:
            IVM_TRY(sum_or_average(accumulator, state, out, i));
            break;
        default:
            extreme_value(accumulator, groups[i], out, i);
        }
    }
    return IVM_OK;
}

uint64_t ivm__accumulators_bytes(const ivm__accumulators *accumulators)
{
    uint64_t bytes = (uint64_t)accumulators->capacity * accumulators->stride;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        bytes += accumulators->list[i].ordered.memory ? ivm__ordered_bytes(&accumulators->list[i].ordered) : 0;
    }
    return bytes;
}
