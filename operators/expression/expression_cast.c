/* Casts: int64, decimal and bool to float64, bool to int64, int64 and decimal to a decimal of at least the scale, and an untyped null to
 * any type. What does not fit the decimal's precision fails its row. */
#include "evaluate.h"

static void int64_to_float(const int64_t *restrict in, uint32_t rows_count, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[i] = ivm__float_word((double)in[i]);
    }
}

/* Where the unscaled value and the power of ten are doubles themselves, one division rounds once. */
#define EXACT_INTEGER ((ivm__wide)1 << 53)
#define EXACT_POWER 22u

static void short_decimal_to_float(const ivm__wide *restrict in, uint32_t rows_count, uint32_t scale, uint64_t *restrict out)
{
    double power = (double)ivm__power_of_ten(scale);
    for (uint32_t i = 0; i < rows_count; i++) {
        bool exact = in[i] <= EXACT_INTEGER && in[i] >= -EXACT_INTEGER;
        double value = ivm__likely(exact) ? (double)(int64_t)in[i] / power : ivm__decimal_to_double(ivm__int256_from(in[i]), scale, 1);
        out[i] = ivm__float_word(value);
    }
}

static void decimal_to_float(const ivm__wide *restrict in, uint32_t rows_count, uint32_t scale, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[i] = ivm__float_word(ivm__decimal_to_double(ivm__int256_from(in[i]), scale, 1));
    }
}

/* Whether some value does not fit; that row is bad. */
static bool rescale(const ivm__wide *restrict in, uint32_t rows_count, ivm_type to, ivm__wide factor, ivm__wide *restrict out,
                    uint8_t *restrict bad)
{
    ivm__wide bound = ivm__power_of_ten(IVM_TYPE_PRECISION(to));
    uint8_t any = 0;
    for (uint32_t i = 0; i < rows_count; i++) {
        ivm__wide value;
        bool over = __builtin_mul_overflow(in[i], factor, &value);
        bad[i] = over || value >= bound || value <= -bound;
        any |= bad[i];
        out[i] = value;
    }
    return any;
}

static ivm_status to_decimal(const ivm__evaluation *at, const ivm__vector *in, ivm__vector *out)
{
    ivm__operand operand = { .type = in->type, .stride = 1, .cells = in->cells };
    uint32_t scale_added = IVM_TYPE_SCALE(out->type) - ivm__operand_scale(&operand);
    IVM_TRY(ivm__operand_widen(at, &operand));
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, at->chunk->rows_count);
    if (!bad) {
        return IVM_OUT_OF_MEMORY;
    }
    bool any = rescale(operand.cells, at->chunk->rows_count, out->type, ivm__power_of_ten(scale_added), out->cells, bad);
    return any ? ivm__result_fail(at, bad, out) : IVM_OK;
}

ivm_status ivm__kernel_cast(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    uint32_t rows_count = at->chunk->rows_count;
    if (!in.type) {
        return ivm__result_null(at, node->type, out);
    }
    if (in.type == node->type || (in.type == IVM_BOOL && node->type == IVM_INT64)) {
        *out = in;
        out->type = node->type;
        return IVM_OK;
    }
    IVM_TRY(ivm__result_make(at, node->type, out));
    out->nulls = in.nulls;
    if (ivm__type_is_wide(node->type)) {
        return to_decimal(at, &in, out);
    }
    assert(node->type == IVM_FLOAT64);
    if (ivm__type_is_wide(in.type)) {
        uint32_t scale = IVM_TYPE_SCALE(in.type);
        (scale <= EXACT_POWER ? short_decimal_to_float : decimal_to_float)(in.cells, rows_count, scale, out->cells);
    } else {
        int64_to_float(in.cells, rows_count, out->cells);
    }
    return IVM_OK;
}
