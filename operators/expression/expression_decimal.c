/* Arithmetic on decimals, and of decimals with int64: exact, at the scale of the result.
 *
 *     sum: a * 10^(scale - a's) + b * 10^(scale - b's)        product: a * b, of the scales' sum
 *
 * Where the digits of the types already fit 38, nothing can overflow and nothing is checked. Else an intermediate past 128 bits goes
 * through 256, since a sum may come back into range; a result of more than 38 digits is bad. */
#include "evaluate.h"

/* 10^38 fits, twice it does not. */
ivm__inlined bool fits(ivm__wide value, ivm__wide bound)
{
    return value < bound && value > -bound;
}

static __attribute__((noinline)) bool sum_exact(ivm__wide a, ivm__wide a_factor, ivm__wide b, ivm__wide b_factor, ivm__wide *sum)
{
    return ivm__int256_narrow(ivm__int256_add(ivm__int256_multiply(a, a_factor), ivm__int256_multiply(b, b_factor)), sum);
}

/* ---- Sums -------------------------------------------------------------------------------------------------------------------------- */

typedef struct sum_factors {
    ivm__wide a, b; /* powers of ten; b's is below zero for a difference */
} sum_factors;

ivm__inlined void sums_plain(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, sum_factors factors,
                             ivm__wide *restrict out)
{
    const ivm__wide *x = a, *y = b;
    for (size_t i = 0; i < rows; i++) {
        out[i] = x[i * a_stride] * factors.a + y[i * b_stride] * factors.b;
    }
}

/* `scaled`: a factor is not 1 or -1. A null's cells are 0 and in range. */
ivm__inlined bool sums_check(const ivm__operand *a, const ivm__operand *b, uint32_t rows, sum_factors factors, bool scaled,
                             ivm__wide *restrict out, uint8_t *restrict bad)
{
    const ivm__wide *x = a->cells, *y = b->cells, bound = ivm__power_of_ten(IVM_DECIMAL_PRECISION_MAX);
    uint8_t any = 0;
    for (size_t i = 0; i < rows; i++) {
        ivm__wide u = x[i * a->stride], v = y[i * b->stride], p = u, q = factors.b < 0 ? -v : v, sum = 0;
        bool over = scaled && (__builtin_mul_overflow(u, factors.a, &p) || __builtin_mul_overflow(v, factors.b, &q));
        over = over || __builtin_add_overflow(p, q, &sum);
        if (scaled && ivm__unlikely(over)) {
            over = !sum_exact(u, factors.a, v, factors.b, &sum);
        }
        bad[i] = over || !fits(sum, bound);
        any |= bad[i];
        out[i] = sum;
    }
    return any;
}

static bool sums_checked(const ivm__operand *a, const ivm__operand *b, uint32_t rows, sum_factors factors, ivm__wide *out, uint8_t *bad)
{
    bool scaled = factors.a != 1 || (factors.b != 1 && factors.b != -1);
    return scaled ? sums_check(a, b, rows, factors, true, out, bad) : sums_check(a, b, rows, factors, false, out, bad);
}

/* ---- Products ---------------------------------------------------------------------------------------------------------------------- */

ivm__inlined void products_plain(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, ivm__wide *restrict out)
{
    const ivm__wide *x = a, *y = b;
    for (size_t i = 0; i < rows; i++) {
        out[i] = x[i * a_stride] * y[i * b_stride];
    }
}

/* A product past 128 bits has more than 38 digits. */
static bool products_checked(const ivm__operand *a, const ivm__operand *b, uint32_t rows, ivm__wide *restrict out, uint8_t *restrict bad)
{
    const ivm__wide *x = a->cells, *y = b->cells, bound = ivm__power_of_ten(IVM_DECIMAL_PRECISION_MAX);
    uint8_t any = 0;
    for (size_t i = 0; i < rows; i++) {
        ivm__wide product;
        bool over = __builtin_mul_overflow(x[i * a->stride], y[i * b->stride], &product);
        bad[i] = over || !fits(product, bound);
        any |= bad[i];
        out[i] = product;
    }
    return any;
}

/* ---- The node ---------------------------------------------------------------------------------------------------------------------- */

static sum_factors factors_of(const ivm__expression *node, const ivm__operand *a, const ivm__operand *b)
{
    uint32_t scale = IVM_TYPE_SCALE(node->type);
    ivm__wide b_factor = ivm__power_of_ten(scale - ivm__operand_scale(b));
    return (sum_factors){ ivm__power_of_ten(scale - ivm__operand_scale(a)), node->function == IVM__SUBTRACT ? -b_factor : b_factor };
}

static ivm_status compute_checked(const ivm__evaluation *at, const ivm__expression *node, const ivm__operand *a, const ivm__operand *b,
                                  ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, rows_count);
    if (!bad) {
        return IVM_OUT_OF_MEMORY;
    }
    bool any = node->function == IVM__MULTIPLY ? products_checked(a, b, rows_count, out->cells, bad)
                                               : sums_checked(a, b, rows_count, factors_of(node, a, b), out->cells, bad);
    if (any) {
        return ivm__result_fail(at, bad, out);
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

ivm_status ivm__kernel_decimal(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__operand a, b;
    IVM_TRY(ivm__operand_make(at, node->arguments[0], &a));
    IVM_TRY(ivm__operand_make(at, node->arguments[1], &b));
    IVM_TRY(ivm__operand_widen(at, &a));
    IVM_TRY(ivm__operand_widen(at, &b));
    IVM_TRY(ivm__result_make(at, node->type, out));
    IVM_TRY(ivm__result_nulls(at, &a, &b, out));
    if (ivm__node_fails(node)) {
        return compute_checked(at, node, &a, &b, out);
    }
    uint32_t rows_count = at->chunk->rows_count;
    if (node->function == IVM__MULTIPLY) {
        ivm__by_stride(products_plain, &a, &b, rows_count, out->cells);
    } else {
        sum_factors factors = factors_of(node, &a, &b);
        ivm__by_stride(sums_plain, &a, &b, rows_count, factors, out->cells);
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

ivm_status ivm__kernel_decimal_sign(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    IVM_TRY(ivm__result_make(at, node->type, out));
    out->nulls = in.nulls;
    const ivm__wide *cells = in.cells;
    ivm__wide *restrict results = out->cells;
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        results[i] = node->function == IVM__NEGATE || cells[i] < 0 ? -cells[i] : cells[i];
    }
    return IVM_OK;
}
