/* Comparisons. All six come down to two loops, equal and less, by swapping sides and by flipping the answer:
 *
 *     a <> b = not (a = b)     a > b = b < a     a <= b = not (b < a)     a >= b = not (a < b)
 *
 * Equal values of one type have equal cells, texts too; NaN is above every number; decimals of different scale compare exactly. */
#include "evaluate.h"

#define COMPARE_LOOP(name, cell, answer)                                                                                                   \
    ivm__inlined void name(const void *a, size_t a_stride, const void *b, size_t b_stride, uint32_t rows, uint64_t flip,                   \
                           uint64_t *restrict out)                                                                                         \
    {                                                                                                                                      \
        const cell *x = a, *y = b;                                                                                                         \
        for (size_t i = 0; i < rows; i++) {                                                                                                \
            cell u = x[i * a_stride], v = y[i * b_stride];                                                                                 \
            out[i] = (uint64_t)(answer) ^ flip;                                                                                            \
        }                                                                                                                                  \
    }
COMPARE_LOOP(words_equal, uint64_t, u == v)
COMPARE_LOOP(int64_less, int64_t, u < v)
COMPARE_LOOP(float_less, double, (u < v) | ((u == u) & (v != v)))
COMPARE_LOOP(wides_equal, ivm__wide, u == v)
COMPARE_LOOP(wides_less, ivm__wide, u < v)

/* A null's cell is no text. */
static void texts_less(const ivm__operand *a, const ivm__operand *b, uint32_t rows, uint64_t flip, uint64_t *restrict out)
{
    const uint64_t *x = a->cells, *y = b->cells;
    for (size_t i = 0; i < rows; i++) {
        const ivm__text *u = (const ivm__text *)(uintptr_t)x[i * a->stride], *v = (const ivm__text *)(uintptr_t)y[i * b->stride];
        out[i] = (u && v && ivm__text_compare(u, v) < 0) ^ flip;
    }
}

static void scaled_order(const ivm__operand *a, const ivm__operand *b, uint32_t rows, int8_t *restrict order)
{
    const ivm__wide *x = a->cells, *y = b->cells;
    uint32_t a_scale = ivm__operand_scale(a), b_scale = ivm__operand_scale(b);
    ivm__wide a_factor = ivm__power_of_ten(b_scale > a_scale ? b_scale - a_scale : 0);
    ivm__wide b_factor = ivm__power_of_ten(a_scale > b_scale ? a_scale - b_scale : 0);
    for (size_t i = 0; i < rows; i++) {
        order[i] = (int8_t)ivm__scaled_compare(x[i * a->stride], a_factor, y[i * b->stride], b_factor);
    }
}

typedef struct comparison {
    bool less; /* else equal */
    bool swap;
    uint64_t flip;
} comparison;

static comparison comparison_of(ivm__function function)
{
    switch (function) {
    case IVM__EQUAL:
        return (comparison){ false, false, 0 };
    case IVM__NOT_EQUAL:
        return (comparison){ false, false, 1 };
    case IVM__LESS:
        return (comparison){ true, false, 0 };
    case IVM__LESS_EQUAL:
        return (comparison){ true, true, 1 };
    case IVM__GREATER:
        return (comparison){ true, true, 0 };
    default:
        assert(function == IVM__GREATER_EQUAL);
        return (comparison){ true, false, 1 };
    }
}

static ivm_status compare_decimals(const ivm__evaluation *at, comparison how, ivm__operand *a, ivm__operand *b, uint64_t *out)
{
    uint32_t rows = at->chunk->rows_count;
    IVM_TRY(ivm__operand_widen(at, a));
    IVM_TRY(ivm__operand_widen(at, b));
    if (ivm__operand_scale(a) == ivm__operand_scale(b)) {
        if (how.less) {
            ivm__by_stride(wides_less, a, b, rows, how.flip, out);
        } else {
            ivm__by_stride(wides_equal, a, b, rows, how.flip, out);
        }
        return IVM_OK;
    }
    int8_t *order = ivm__arena_allocate(at->step->scratch, rows);
    if (!order) {
        return IVM_OUT_OF_MEMORY;
    }
    scaled_order(a, b, rows, order);
    for (uint32_t i = 0; i < rows; i++) {
        out[i] = (uint64_t)(how.less ? order[i] < 0 : order[i] == 0) ^ how.flip;
    }
    return IVM_OK;
}

ivm_status ivm__compare(const ivm__evaluation *at, ivm__function function, ivm__operand a, ivm__operand b, uint64_t *out)
{
    comparison how = comparison_of(function);
    uint32_t rows = at->chunk->rows_count;
    ivm__operand *x = how.swap ? &b : &a, *y = how.swap ? &a : &b;
    if (ivm__type_is_wide(a.type) || ivm__type_is_wide(b.type)) {
        return compare_decimals(at, how, x, y, out);
    }
    assert(a.type == b.type);
    if (!how.less) {
        ivm__by_stride(words_equal, x, y, rows, how.flip, out);
    } else if (a.type == IVM_FLOAT64) {
        ivm__by_stride(float_less, x, y, rows, how.flip, out);
    } else if (a.type == IVM_STRING) {
        texts_less(x, y, rows, how.flip, out);
    } else {
        ivm__by_stride(int64_less, x, y, rows, how.flip, out);
    }
    return IVM_OK;
}

ivm_status ivm__kernel_compare(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__operand a, b;
    IVM_TRY(ivm__operand_make(at, node->arguments[0], &a));
    IVM_TRY(ivm__operand_make(at, node->arguments[1], &b));
    IVM_TRY(ivm__result_make(at, IVM_BOOL, out));
    IVM_TRY(ivm__result_nulls(at, &a, &b, out));
    IVM_TRY(ivm__compare(at, node->function, a, b, out->cells));
    ivm__result_settle(at, out);
    return IVM_OK;
}
