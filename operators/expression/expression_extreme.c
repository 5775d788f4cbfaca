/* least and greatest: nulls are passed over, all null gives null; of equal values the first stays.
 *
 * Decimals of different scale are compared exactly, each with the scale it came with; only the one that is left is brought to the scale of
 * the result, and fails its row where it then has too many digits. Cost: a pass an argument. */
#include "evaluate.h"

typedef struct extreme {
    bool greatest;
    uint32_t rows_count;
    ivm__vector *best;
    uint8_t *scales; /* of the best so far; NULL: all arguments have one */
} extreme;

ivm__inlined bool float_is_less(double a, double b)
{
    return a < b || (a == a && b != b);
}

#define EXTREME_LOOP(name, cell, is_less)                                                                                                  \
    static void name(const ivm__operand *argument, const extreme *so_far)                                                                  \
    {                                                                                                                                      \
        const cell *in = argument->cells;                                                                                                  \
        cell *restrict best = so_far->best->cells;                                                                                         \
        uint8_t *restrict nulls = so_far->best->nulls;                                                                                     \
        for (size_t i = 0; i < so_far->rows_count; i++) {                                                                                  \
            if (ivm__operand_is_null(argument, (uint32_t)i)) {                                                                             \
                continue;                                                                                                                  \
            }                                                                                                                              \
            cell value = in[i * argument->stride], a = so_far->greatest ? best[i] : value, b = so_far->greatest ? value : best[i];         \
            if (nulls[i] || is_less(a, b)) {                                                                                               \
                best[i] = value;                                                                                                           \
                nulls[i] = 0;                                                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define IS_LESS(a, b) ((a) < (b))
#define TEXT_IS_LESS(a, b) (ivm__text_compare((const ivm__text *)(uintptr_t)(a), (const ivm__text *)(uintptr_t)(b)) < 0)
EXTREME_LOOP(add_int64, int64_t, IS_LESS)
EXTREME_LOOP(add_float, double, float_is_less)
EXTREME_LOOP(add_text, uint64_t, TEXT_IS_LESS)
EXTREME_LOOP(add_wide, ivm__wide, IS_LESS)

static void add_scaled(const ivm__operand *argument, const extreme *so_far)
{
    const ivm__wide *in = argument->cells;
    ivm__wide *best = so_far->best->cells;
    uint8_t *nulls = so_far->best->nulls;
    uint32_t scale = ivm__operand_scale(argument);
    for (size_t i = 0; i < so_far->rows_count; i++) {
        if (ivm__operand_is_null(argument, (uint32_t)i)) {
            continue;
        }
        ivm__wide value = in[i * argument->stride];
        uint32_t best_scale = nulls[i] ? scale : so_far->scales[i];
        int order = ivm__scaled_compare(value, ivm__power_of_ten(best_scale > scale ? best_scale - scale : 0), best[i],
                                        ivm__power_of_ten(scale > best_scale ? scale - best_scale : 0));
        if (nulls[i] || (so_far->greatest ? order > 0 : order < 0)) {
            best[i] = value;
            so_far->scales[i] = (uint8_t)scale;
            nulls[i] = 0;
        }
    }
}

/* To the result's scale; says whether some row is bad. */
static bool rescale(const extreme *so_far, uint8_t *restrict bad)
{
    ivm_type type = so_far->best->type;
    ivm__wide *cells = so_far->best->cells, bound = ivm__power_of_ten(IVM_TYPE_PRECISION(type));
    uint8_t any = 0;
    for (size_t i = 0; i < so_far->rows_count; i++) {
        ivm__wide factor = ivm__power_of_ten(so_far->best->nulls[i] ? 0 : IVM_TYPE_SCALE(type) - so_far->scales[i]), value;
        bad[i] = __builtin_mul_overflow(cells[i], factor, &value) || value >= bound || value <= -bound;
        any |= bad[i];
        cells[i] = value;
    }
    return any;
}

static bool scales_differ(const ivm__expression *node)
{
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        ivm_type type = node->arguments[i]->type;
        if ((ivm__type_is_wide(type) ? IVM_TYPE_SCALE(type) : 0) != IVM_TYPE_SCALE(node->type)) {
            return true;
        }
    }
    return false;
}

static ivm_status add_argument(const ivm__evaluation *at, const ivm__expression *node, const ivm__expression *argument,
                               const extreme *so_far)
{
    ivm__operand operand;
    IVM_TRY(ivm__operand_make(at, argument, &operand));
    if (so_far->scales || ivm__type_is_wide(node->type)) {
        IVM_TRY(ivm__operand_widen(at, &operand));
        (so_far->scales ? add_scaled : add_wide)(&operand, so_far);
    } else if (node->type == IVM_FLOAT64) {
        add_float(&operand, so_far);
    } else if (node->type == IVM_STRING) {
        add_text(&operand, so_far);
    } else {
        add_int64(&operand, so_far);
    }
    return IVM_OK;
}

ivm_status ivm__kernel_extreme(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    extreme so_far = { .greatest = node->function == IVM__GREATEST, .rows_count = at->chunk->rows_count, .best = out };
    IVM_TRY(ivm__result_null(at, node->type, out));
    if (ivm__type_is_wide(node->type) && scales_differ(node)) {
        so_far.scales = ivm__arena_allocate(at->step->scratch, so_far.rows_count);
        if (!so_far.scales) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
        IVM_TRY(add_argument(at, node, node->arguments[i], &so_far));
        ivm__arena_back(at->step->scratch, mark);
    }
    if (!so_far.scales) {
        return IVM_OK;
    }
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, so_far.rows_count);
    if (!bad) {
        return IVM_OUT_OF_MEMORY;
    }
    return rescale(&so_far, bad) ? ivm__result_fail(at, bad, out) : IVM_OK;
}
