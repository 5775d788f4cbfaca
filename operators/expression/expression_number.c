/* Arithmetic on int64 and float64.
 *
 * Int64 results are checked after the loop by one accumulated sign; only where something overflowed does a second loop look for the rows.
 * Float results lose their -0.0 and have one NaN. What divides by zero is null. Cost: below a nanosecond a row, div and % a division. */
#include "evaluate.h"

#include <math.h>

/* ---- Int64: + - * ------------------------------------------------------------------------------------------------------------------ */

/* Each gives not 0 where some row overflowed; nulls, whose cells are 0, count. */
ivm__inlined uint64_t int64_add(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, uint64_t *restrict out)
{
    const uint64_t *x = a, *y = b;
    uint64_t over = 0;
    for (size_t i = 0; i < rows; i++) {
        uint64_t u = x[i * a_stride], v = y[i * b_stride], sum = u + v;
        out[i] = sum;
        over |= (u ^ sum) & (v ^ sum);
    }
    return over >> 63;
}

ivm__inlined uint64_t int64_subtract(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, uint64_t *restrict out)
{
    const uint64_t *x = a, *y = b;
    uint64_t over = 0;
    for (size_t i = 0; i < rows; i++) {
        uint64_t u = x[i * a_stride], v = y[i * b_stride], difference = u - v;
        out[i] = difference;
        over |= (u ^ v) & (u ^ difference);
    }
    return over >> 63;
}

ivm__inlined uint64_t int64_multiply(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, uint64_t *restrict out)
{
    const int64_t *x = a, *y = b;
    uint64_t over = 0;
    for (size_t i = 0; i < rows; i++) {
        int64_t product;
        over |= __builtin_mul_overflow(x[i * a_stride], y[i * b_stride], &product);
        out[i] = (uint64_t)product;
    }
    return over;
}

static bool int64_overflows(ivm__function function, int64_t a, int64_t b)
{
    int64_t ignored;
    switch (function) {
    case IVM__ADD:
        return __builtin_add_overflow(a, b, &ignored);
    case IVM__SUBTRACT:
        return __builtin_sub_overflow(a, b, &ignored);
    default:
        assert(function == IVM__MULTIPLY);
        return __builtin_mul_overflow(a, b, &ignored);
    }
}

static ivm_status int64_fail(const ivm__evaluation *at, ivm__function function, const ivm__operand *a, const ivm__operand *b,
                             ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, rows_count);
    if (!bad) {
        return IVM_OUT_OF_MEMORY;
    }
    const int64_t *x = a->cells, *y = b->cells;
    for (size_t i = 0; i < rows_count; i++) {
        bad[i] = int64_overflows(function, x[i * a->stride], y[i * b->stride]);
    }
    return ivm__result_fail(at, bad, out);
}

static ivm_status int64_arithmetic(const ivm__evaluation *at, ivm__function function, const ivm__operand *a, const ivm__operand *b,
                                   ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    uint64_t over = function == IVM__ADD        ? ivm__by_stride(int64_add, a, b, rows_count, out->cells)
                    : function == IVM__SUBTRACT ? ivm__by_stride(int64_subtract, a, b, rows_count, out->cells)
                                                : ivm__by_stride(int64_multiply, a, b, rows_count, out->cells);
    if (ivm__unlikely(over)) {
        return int64_fail(at, function, a, b, out);
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

/* ---- Float64: + - * / -------------------------------------------------------------------------------------------------------------- */

#define FLOAT_LOOP(name, expression)                                                                                                       \
    ivm__inlined void name(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, uint64_t *restrict out)          \
    {                                                                                                                                      \
        const double *x = a, *y = b;                                                                                                       \
        for (size_t i = 0; i < rows; i++) {                                                                                                \
            double u = x[i * a_stride], v = y[i * b_stride];                                                                               \
            out[i] = ivm__float_word(expression);                                                                                          \
        }                                                                                                                                  \
    }
FLOAT_LOOP(float_add, u + v)
FLOAT_LOOP(float_subtract, u - v)
FLOAT_LOOP(float_multiply, u *v)
FLOAT_LOOP(float_divide, u / v)

static void float_arithmetic(const ivm__evaluation *at, ivm__function function, const ivm__operand *a, const ivm__operand *b,
                             ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    if (function == IVM__ADD) {
        ivm__by_stride(float_add, a, b, rows_count, out->cells);
    } else if (function == IVM__SUBTRACT) {
        ivm__by_stride(float_subtract, a, b, rows_count, out->cells);
    } else {
        ivm__by_stride(float_multiply, a, b, rows_count, out->cells);
    }
    ivm__result_settle(at, out);
}

/* Both arguments are computed even where all is null, for their failures. */
static ivm_status operands_make(const ivm__evaluation *at, const ivm__expression *node, ivm__operand *a, ivm__operand *b)
{
    IVM_TRY(ivm__operand_make(at, node->arguments[0], a));
    return ivm__operand_make(at, node->arguments[1], b);
}

ivm_status ivm__kernel_arithmetic(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    if (ivm__type_is_wide(node->type)) {
        return ivm__kernel_decimal(at, node, out);
    }
    ivm__operand a, b;
    IVM_TRY(operands_make(at, node, &a, &b));
    if (!node->type) {
        return ivm__result_null(at, 0, out);
    }
    assert(a.type == node->type && b.type == node->type);
    IVM_TRY(ivm__result_make(at, node->type, out));
    IVM_TRY(ivm__result_nulls(at, &a, &b, out));
    if (node->type == IVM_INT64) {
        return int64_arithmetic(at, node->function, &a, &b, out);
    }
    float_arithmetic(at, node->function, &a, &b, out);
    return IVM_OK;
}

/* Marks the zeros among the divisors; says whether there is one. */
static bool mark_zeros(const ivm__operand *divisor, uint32_t rows_count, uint8_t *restrict nulls)
{
    const double *cells = divisor->cells;
    uint8_t any = 0;
    for (size_t i = 0; i < rows_count; i++) {
        uint8_t zero = cells[i * divisor->stride] == 0;
        any |= zero;
        nulls[i] |= zero;
    }
    return any;
}

ivm_status ivm__kernel_divide(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__operand a, b;
    IVM_TRY(operands_make(at, node, &a, &b));
    assert(a.type == IVM_FLOAT64 && b.type == IVM_FLOAT64);
    IVM_TRY(ivm__result_make(at, IVM_FLOAT64, out));
    IVM_TRY(ivm__result_nulls(at, &a, &b, out));
    bool had_nulls = out->nulls;
    IVM_TRY(ivm__result_own_nulls(at, out));
    if (!mark_zeros(&b, at->chunk->rows_count, out->nulls) && !had_nulls) {
        out->nulls = NULL;
    }
    ivm__by_stride(float_divide, &a, &b, at->chunk->rows_count, out->cells);
    ivm__result_settle(at, out);
    return IVM_OK;
}

/* ---- Int64: div % ------------------------------------------------------------------------------------------------------------------ */

/* -1 is apart: INT64_MIN / -1 traps. A row whose quotient is out of range is bad. */
static bool quotients(const ivm__operand *a, const ivm__operand *b, uint32_t rows_count, ivm__vector *out, uint8_t *restrict bad)
{
    const int64_t *x = a->cells, *y = b->cells;
    int64_t *restrict cells = out->cells;
    uint8_t any = 0;
    for (size_t i = 0; i < rows_count; i++) {
        int64_t u = x[i * a->stride], v = y[i * b->stride];
        out->nulls[i] |= v == 0;
        bad[i] = v == -1 && u == INT64_MIN;
        any |= bad[i];
        cells[i] = v == 0 ? 0 : v == -1 ? (int64_t)(0 - (uint64_t)u) : u / v;
    }
    return any;
}

static void remainders(const ivm__operand *a, const ivm__operand *b, uint32_t rows_count, ivm__vector *out)
{
    const int64_t *x = a->cells, *y = b->cells;
    int64_t *restrict cells = out->cells;
    for (size_t i = 0; i < rows_count; i++) {
        int64_t u = x[i * a->stride], v = y[i * b->stride];
        out->nulls[i] |= v == 0;
        cells[i] = v == 0 || v == -1 ? 0 : u % v;
    }
}

ivm_status ivm__kernel_integer(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__operand a, b;
    IVM_TRY(operands_make(at, node, &a, &b));
    assert(a.type == IVM_INT64 && b.type == IVM_INT64);
    IVM_TRY(ivm__result_make(at, IVM_INT64, out));
    IVM_TRY(ivm__result_nulls(at, &a, &b, out));
    IVM_TRY(ivm__result_own_nulls(at, out));
    uint32_t rows_count = at->chunk->rows_count;
    if (node->function == IVM__DIV) {
        uint8_t *bad = ivm__arena_allocate(at->step->scratch, rows_count);
        if (!bad) {
            return IVM_OUT_OF_MEMORY;
        }
        if (quotients(&a, &b, rows_count, out, bad)) {
            return ivm__result_fail(at, bad, out);
        }
    } else {
        remainders(&a, &b, rows_count, out);
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

/* ---- Of one argument: - abs -------------------------------------------------------------------------------------------------------- */

static void float_negate(const double *restrict in, uint32_t rows_count, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[i] = ivm__float_word(-in[i]);
    }
}

static void float_abs(const double *restrict in, uint32_t rows_count, uint64_t *restrict out)
{
    for (uint32_t i = 0; i < rows_count; i++) {
        out[i] = ivm__float_word(fabs(in[i]));
    }
}

/* INT64_MIN has no opposite: its row is bad. */
static bool int64_sign(bool negate, const int64_t *restrict in, uint32_t rows_count, uint64_t *restrict out, uint8_t *restrict bad)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < rows_count; i++) {
        bad[i] = in[i] == INT64_MIN;
        any |= bad[i];
        out[i] = negate || in[i] < 0 ? 0 - (uint64_t)in[i] : (uint64_t)in[i];
    }
    return any;
}

ivm_status ivm__kernel_sign(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    if (ivm__type_is_wide(node->type)) {
        return ivm__kernel_decimal_sign(at, node, out);
    }
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    if (!node->type) {
        *out = in;
        return IVM_OK;
    }
    uint32_t rows_count = at->chunk->rows_count;
    bool negate = node->function == IVM__NEGATE;
    IVM_TRY(ivm__result_make(at, node->type, out));
    out->nulls = in.nulls;
    if (node->type == IVM_FLOAT64) {
        (negate ? float_negate : float_abs)(in.cells, rows_count, out->cells);
        return IVM_OK;
    }
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, rows_count);
    if (!bad) {
        return IVM_OUT_OF_MEMORY;
    }
    return int64_sign(negate, in.cells, rows_count, out->cells, bad) ? ivm__result_fail(at, bad, out) : IVM_OK;
}
