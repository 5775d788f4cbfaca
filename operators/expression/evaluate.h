/* Evaluation, inside: what the files that compute expressions share. Not for other files.
 *
 * A kernel computes one node for all rows of a chunk: it evaluates the node's arguments, makes a vector in step->scratch and fills it in
 * plain loops. Vectors of arguments may be the chunk's own or a literal's and are only read. */
#ifndef IVM__EVALUATE_H
#define IVM__EVALUATE_H

#include "expression.h"
#include "wide.h"

typedef struct ivm__evaluation {
    ivm__step *step;
    const ivm__chunk *chunk;
    uint8_t *failed; /* NULL: nothing that is evaluated can fail */
} ivm__evaluation;

typedef ivm_status ivm__kernel(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out);

/* ---- Arguments (evaluate.c) -------------------------------------------------------------------------------------------------------- */

/* Whether it matters for which rows the node is computed. */
static inline bool ivm__is_selective(const ivm__expression *node)
{
    return node->fallible || node->makes_texts;
}
ivm_status ivm__evaluate(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out) IVM_MUST_CHECK;
/* The same, but a row not among rows[0..count) need not have its value and does not fail; rows ascend. A value stands at its row's own
 * position; cells of the other rows are valid cells of no meaning. */
ivm_status ivm__evaluate_for(const ivm__evaluation *at, const ivm__expression *node, const uint32_t *rows, uint32_t count,
                             ivm__vector *out) IVM_MUST_CHECK;

/* An argument as loops read it: row i's cell is cells[i * stride]; the stride is 0 for a literal, which is not spread out. */
typedef struct ivm__operand {
    ivm_type type;
    uint32_t stride;
    const void *cells;
    const uint8_t *nulls;
} ivm__operand;
ivm_status ivm__operand_make(const ivm__evaluation *at, const ivm__expression *argument, ivm__operand *operand) IVM_MUST_CHECK;
/* Int64 cells become wide ones, decimals of scale 0. */
ivm_status ivm__operand_widen(const ivm__evaluation *at, ivm__operand *operand) IVM_MUST_CHECK;

static inline bool ivm__operand_is_null(const ivm__operand *operand, uint32_t row)
{
    return operand->nulls && operand->nulls[row];
}
static inline uint32_t ivm__operand_scale(const ivm__operand *operand)
{
    return ivm__type_is_wide(operand->type) ? IVM_TYPE_SCALE(operand->type) : 0;
}

/* Calls loop(a, a's stride, b, b's stride, ...) with constant strides, so that each becomes a loop of its own once inlined. */
#define ivm__by_stride(loop, a, b, ...)                                                                                                    \
    ((a)->stride   ? (b)->stride ? loop((a)->cells, 1, (b)->cells, 1, __VA_ARGS__) : loop((a)->cells, 1, (b)->cells, 0, __VA_ARGS__)       \
       : (b)->stride ? loop((a)->cells, 0, (b)->cells, 1, __VA_ARGS__)                                                                     \
                   : loop((a)->cells, 0, (b)->cells, 0, __VA_ARGS__))
#define ivm__inlined static inline __attribute__((always_inline))

/* ---- Results (evaluate.c) ---------------------------------------------------------------------------------------------------------- */

/* Cells alone, not filled. */
ivm_status ivm__result_make(const ivm__evaluation *at, ivm_type type, ivm__vector *out) IVM_MUST_CHECK;
/* Null where either is; b may be NULL. The nulls may be an argument's own. */
ivm_status ivm__result_nulls(const ivm__evaluation *at, const ivm__operand *a, const ivm__operand *b, ivm__vector *out) IVM_MUST_CHECK;
/* The same nulls in an array of the result's own, where there were none all 0. */
ivm_status ivm__result_own_nulls(const ivm__evaluation *at, ivm__vector *out) IVM_MUST_CHECK;
/* Zeroes the cells of nulls, as every vector has them. */
void ivm__result_settle(const ivm__evaluation *at, ivm__vector *out);
/* The rows with bad[row] that are not null fail and become null; settles. */
ivm_status ivm__result_fail(const ivm__evaluation *at, const uint8_t *bad, ivm__vector *out) IVM_MUST_CHECK;
/* Every row null. */
ivm_status ivm__result_null(const ivm__evaluation *at, ivm_type type, ivm__vector *out) IVM_MUST_CHECK;

/* Whether the node itself can fail, its arguments aside (expression.c). */
bool ivm__node_fails(const ivm__expression *node);

/* ---- Kernels ------------------------------------------------------------------------------------------------------------------------ */

ivm__kernel ivm__kernel_arithmetic;                                                   /* expression_number.c: + - * */
ivm__kernel ivm__kernel_divide, ivm__kernel_integer;                                  /* expression_number.c: /; div % */
ivm__kernel ivm__kernel_sign;                                                         /* expression_number.c: - of one argument, abs */
ivm__kernel ivm__kernel_decimal, ivm__kernel_decimal_sign;                            /* expression_decimal.c: + - *; - and abs */
ivm__kernel ivm__kernel_cast;                                                         /* expression_cast.c */
ivm__kernel ivm__kernel_compare;                                                      /* expression_compare.c */
ivm__kernel ivm__kernel_extreme;                                                      /* expression_extreme.c: least greatest */
ivm__kernel ivm__kernel_decide, ivm__kernel_not, ivm__kernel_is_null, ivm__kernel_in; /* expression_logic.c: and or; not; ...; in */
ivm__kernel ivm__kernel_coalesce, ivm__kernel_case;                                   /* expression_choice.c */
ivm__kernel ivm__kernel_concat, ivm__kernel_letters, ivm__kernel_length;              /* expression_text.c: concat; lower upper; length */

/* out[row] = a function b as 0 or 1, nulls not looked at (expression_compare.c). */
ivm_status ivm__compare(const ivm__evaluation *at, ivm__function function, ivm__operand a, ivm__operand b, uint64_t *out) IVM_MUST_CHECK;

/* value * factor against other * other_factor, exactly; the factors are powers of ten, one of them 1. */
static inline int ivm__scaled_compare(ivm__wide value, ivm__wide factor, ivm__wide other, ivm__wide other_factor)
{
    ivm__wide a, b;
    if (ivm__unlikely(__builtin_mul_overflow(value, factor, &a))) {
        return value > 0 ? 1 : -1; /* past 2^127, where the other side, unscaled, cannot be */
    }
    if (ivm__unlikely(__builtin_mul_overflow(other, other_factor, &b))) {
        return other > 0 ? -1 : 1;
    }
    return (a > b) - (a < b);
}

#endif
