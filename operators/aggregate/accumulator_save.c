/* Accumulators: a group's state as bytes, and back.
 *
 *     rows 16 | per aggregate      count        values 16, nothing where it counts the group's rows
 *                                  sum, avg     the sum as 32 bytes in two's complement, or as a number (exact_sum.h) | values 16 | where
 *                                               negative weights are summed: rows with a value 16
 *                                  bool_and     falses 16, trues 16; bool_or likewise
 *                                  variance     values 16 | sum 32, squares 48 in two's complement, or two numbers
 *                                  min, max, distinct     entry*, 0 u8     entry = 1 u8 cell, of weight 1, or 2 u8 cell weight 16; ascending
 *
 * Cells are of 8 or 16 bytes, a string's its size in 32 bits and its bytes. Counts and sums of distinct values follow from the entries. Numbers are
 * exact, so equal states have equal bytes. */
#include "accumulator_inside.h"
#include "holding.h"

typedef unsigned __int128 magnitude;

enum { TAG_END, TAG_ONE, TAG_WEIGHED };
static_assert(sizeof(ivm__moments) == 6 * sizeof(magnitude) && sizeof(ivm__bool_state) == 2 * sizeof(ivm__weight), "written as they lie");

static ivm_status count_read(const ivm__group_reading *reading, ivm__weight *count)
{
    return ivm__holding_count(reading->self, reading->step, reading->from, count);
}

static ivm_status cannot_be(const ivm__group_reading *reading, const char *what)
{
    return ivm__holding_corrupt(reading->self, reading->step, what);
}

/* ---- Values in order ------------------------------------------------------------------------------------------------------------------ */

typedef struct entries {
    const ivm__ordered *ordered;
    ivm__sink *sink;
} entries;

static ivm_status entry_write(void *context, ivm__wide cell, ivm__weight weight)
{
    const entries *to = context;
    ivm_type type = to->ordered->type;
    IVM_TRY(ivm__put_u8(to->sink, weight == 1 ? TAG_ONE : TAG_WEIGHED));
    if (IVM_TYPE_KIND(type) == IVM_STRING) {
        const ivm__text *text = (const ivm__text *)(uintptr_t)cell;
        IVM_TRY(ivm__put_text(to->sink, text->bytes, text->size));
    } else {
        IVM_TRY(ivm__put(to->sink, &cell, ivm__type_words(type) * sizeof(uint64_t)));
    }
    return weight == 1 ? IVM_OK : ivm__put_wide(to->sink, weight);
}

static ivm_status entries_write(const ivm__ordered *ordered, uint32_t group, ivm__sink *sink)
{
    entries to = { ordered, sink };
    IVM_TRY(ivm__ordered_walk(ordered, group, entry_write, &to));
    return ivm__put_u8(sink, TAG_END);
}

static ivm_status text_read(const ivm__ordered *ordered, ivm__group_reading *reading, ivm__wide *cell)
{
    uint32_t size;
    const ivm__text *text;
    IVM_TRY(ivm__get_u32(reading->from, &size));
    if (size > IVM_STRING_SIZE_MAX) {
        return cannot_be(reading, "a string that is too long");
    }
    IVM_TRY(ivm__bytes_read(&reading->text, reading->from, size));
    IVM_TRY(ivm__texts_intern(ordered->texts, size ? (const char *)reading->text.at : "", size, &text));
    *cell = (ivm__wide)(uintptr_t)text;
    return IVM_OK;
}

static bool cell_can_be(ivm_type type, ivm__wide cell)
{
    uint64_t word = (uint64_t)cell;
    switch (IVM_TYPE_KIND(type)) {
    case IVM_BOOL:
        return word <= 1;
    case IVM_DATE:
        return (int64_t)word == (int32_t)(int64_t)word;
    case IVM_FLOAT64:
        return word == ivm__float_word(ivm__word_float(word));
    case IVM_DECIMAL_KIND:
        return ivm__decimal_fits(cell, IVM_TYPE_PRECISION(type));
    default:
        return true;
    }
}

static ivm_status cell_read(const ivm__ordered *ordered, ivm__group_reading *reading, ivm__wide *cell)
{
    *cell = 0;
    if (IVM_TYPE_KIND(ordered->type) == IVM_STRING) {
        return text_read(ordered, reading, cell);
    }
    IVM_TRY(ivm__get(reading->from, cell, ivm__type_words(ordered->type) * sizeof(uint64_t)));
    return cell_can_be(ordered->type, *cell) ? IVM_OK : cannot_be(reading, "a value out of its type's range");
}

static ivm_status entries_read(ivm__accumulators *accumulators, ivm__accumulator *accumulator, uint32_t group, ivm__group_reading *reading)
{
    ivm__wide before = 0, cell;
    for (bool first = true;; first = false) {
        uint8_t tag;
        ivm__weight weight = 1;
        IVM_TRY(ivm__get_u8(reading->from, &tag));
        if (tag == TAG_END) {
            return IVM_OK;
        }
        IVM_TRY(cell_read(&accumulator->ordered, reading, &cell));
        if (tag != TAG_ONE) {
            IVM_TRY(count_read(reading, &weight));
        }
        if (tag > TAG_WEIGHED || weight == 0 || (tag == TAG_WEIGHED && weight == 1) || accumulator->argument_type == 0) {
            return cannot_be(reading, "a value that is not there, or not written so");
        }
        if (!first && ivm__cell_compare(accumulator->ordered.type, before, cell) >= 0) {
            return cannot_be(reading, "values that do not ascend");
        }
        IVM_TRY(ivm__accumulator_value_add(accumulators, accumulator, group, cell, weight));
        before = cell;
    }
}

/* ---- Sums ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status sum_write(const ivm__accumulator *accumulator, uint8_t *state, ivm__sink *sink)
{
    const ivm__sum_state *sum = ivm__state_sum(accumulator, state);
    if (accumulator->is_float) {
        IVM_TRY(ivm__exact_sum_write(*ivm__state_floats(accumulator, state), sink));
    } else {
        const magnitude parts[2] = { (magnitude)sum->sum, (magnitude)ivm__state_carry(accumulator, state) - (sum->sum < 0) };
        IVM_TRY(ivm__put(sink, parts, sizeof parts));
    }
    IVM_TRY(ivm__put_wide(sink, sum->values));
    return accumulator->support_offset ? ivm__put_wide(sink, *ivm__state_count(state, accumulator->support_offset)) : IVM_OK;
}

static ivm_status whole_sum_read(const ivm__accumulator *accumulator, uint8_t *state, const ivm__group_reading *reading)
{
    magnitude parts[2];
    IVM_TRY(ivm__get(reading->from, parts, sizeof parts));
    ivm__wide carry = (ivm__wide)(parts[1] + (parts[0] >> 127));
    int64_t word = (int64_t)carry;
    if (!accumulator->carries_wide && carry != word) {
        return cannot_be(reading, "a sum out of range");
    }
    ivm__state_sum(accumulator, state)->sum = (ivm__wide)parts[0];
    if (accumulator->carries_wide) {
        memcpy(state + accumulator->tail_offset, &carry, sizeof carry);
    } else {
        memcpy(state + accumulator->tail_offset, &word, sizeof word);
    }
    return IVM_OK;
}

static ivm_status sum_read(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, uint8_t *state,
                           const ivm__group_reading *reading)
{
    if (accumulator->is_float) {
        IVM_TRY(ivm__exact_sum_read(accumulators->memory, ivm__state_floats(accumulator, state), reading->from));
    } else {
        IVM_TRY(whole_sum_read(accumulator, state, reading));
    }
    IVM_TRY(count_read(reading, &ivm__state_sum(accumulator, state)->values));
    return accumulator->support_offset ? count_read(reading, ivm__state_count(state, accumulator->support_offset)) : IVM_OK;
}

/* ---- Variances ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status moments_write(const ivm__accumulator *accumulator, uint8_t *state, ivm__sink *sink)
{
    if (!accumulator->is_float) {
        return ivm__put(sink, ivm__state_moments(accumulator, state), sizeof(ivm__moments));
    }
    ivm__exact_sum *const *sums = ivm__state_floats(accumulator, state);
    IVM_TRY(ivm__put_wide(sink, *ivm__state_count(state, accumulator->wide_offset)));
    IVM_TRY(ivm__exact_sum_write(sums[0], sink));
    return ivm__exact_sum_write(sums[1], sink);
}

static ivm_status moments_read(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, uint8_t *state,
                               const ivm__group_reading *reading)
{
    ivm__feed *from = reading->from;
    IVM_TRY(count_read(reading, ivm__state_count(state, accumulator->wide_offset)));
    if (!accumulator->is_float) {
        ivm__moments *moments = ivm__state_moments(accumulator, state);
        IVM_TRY(ivm__get(from, moments->sum, sizeof moments->sum));
        return ivm__get(from, moments->squares, sizeof moments->squares);
    }
    ivm__exact_sum **sums = ivm__state_floats(accumulator, state);
    IVM_TRY(ivm__exact_sum_read(accumulators->memory, &sums[0], from));
    return ivm__exact_sum_read_squares(accumulators->memory, &sums[1], from);
}

static ivm_status bools_read(const ivm__accumulator *accumulator, uint8_t *state, const ivm__group_reading *reading)
{
    ivm__bool_state *bools = ivm__state_bools(accumulator, state);
    IVM_TRY(count_read(reading, &bools->falses));
    return count_read(reading, &bools->trues);
}

/* ---- Groups ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status value_write(const ivm__accumulators *accumulators, const ivm__accumulator *accumulator, uint32_t group, ivm__sink *sink)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    switch (accumulator->function) {
    case IVM__COUNT:
        return accumulator->counts_rows ? IVM_OK : ivm__put_wide(sink, *ivm__state_count(state, accumulator->wide_offset));
    case IVM__SUM:
    case IVM__AVG:
        return sum_write(accumulator, state, sink);
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        return ivm__put(sink, ivm__state_bools(accumulator, state), sizeof(ivm__bool_state));
    case IVM__MIN:
    case IVM__MAX:
    case IVM__COUNT_DISTINCT:
    case IVM__SUM_DISTINCT:
        return entries_write(&accumulator->ordered, group, sink);
    default:
        assert(ivm__function_is_variance(accumulator->function));
        return moments_write(accumulator, state, sink);
    }
}

ivm_status ivm__group_write(const ivm__accumulators *accumulators, uint32_t group, ivm__sink *sink)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    assert(ivm__group_tail_of(accumulators, state)->touch == 0);
    IVM_TRY(ivm__put_wide(sink, *ivm__group_rows(state)));
    for (uint32_t i = 0; i < accumulators->count; i++) {
        IVM_TRY(value_write(accumulators, &accumulators->list[i], group, sink));
    }
    return IVM_OK;
}

static ivm_status value_read(ivm__accumulators *accumulators, ivm__accumulator *accumulator, uint32_t group, ivm__group_reading *reading)
{
    uint8_t *state = ivm__group_state(accumulators, group);
    switch (accumulator->function) {
    case IVM__COUNT:
        return accumulator->counts_rows ? IVM_OK : count_read(reading, ivm__state_count(state, accumulator->wide_offset));
    case IVM__SUM:
    case IVM__AVG:
        return sum_read(accumulators, accumulator, state, reading);
    case IVM__BOOL_AND:
    case IVM__BOOL_OR:
        return bools_read(accumulator, state, reading);
    case IVM__MIN:
    case IVM__MAX:
    case IVM__COUNT_DISTINCT:
    case IVM__SUM_DISTINCT:
        return entries_read(accumulators, accumulator, group, reading);
    default:
        assert(ivm__function_is_variance(accumulator->function));
        return moments_read(accumulators, accumulator, state, reading);
    }
}

ivm_status ivm__group_read(ivm__accumulators *accumulators, uint32_t group, ivm__group_reading *reading)
{
    IVM_TRY(count_read(reading, ivm__group_rows(ivm__group_state(accumulators, group))));
    for (uint32_t i = 0; i < accumulators->count; i++) {
        IVM_TRY(value_read(accumulators, &accumulators->list[i], group, reading));
    }
    return IVM_OK;
}
