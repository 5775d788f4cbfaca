/* Three-valued logic: and, or, not, is_null, is_not_null, in.
 *
 *     and: false if any is false, else null if any is null, else true        or: the same with true for false
 *     a in (b, ...): null if a is null; else true if some b equals a, else null if some b is null, else false
 *
 * Arguments are added up from left to right; one that can fail is computed for the rows alone that those before left undecided. Rows that are
 * decided may add up more without harm, so that the loops need no subset. Cost: a pass an argument. */
#include "evaluate.h"

/* What is known so far: for `and` truth is 0 where decided, for `or` and `in` 1. nulls: an argument was null. */
typedef struct decision {
    bool stop; /* the value that decides */
    uint32_t rows_count;
    uint64_t *truth;
    uint8_t *nulls;
    uint32_t *undecided;
} decision;

static ivm_status decision_make(const ivm__evaluation *at, bool stop, ivm__vector *out, decision *so_far)
{
    uint32_t rows_count = at->chunk->rows_count;
    *so_far = (decision){ .stop = stop, .rows_count = rows_count };
    so_far->undecided = ivm__arena_allocate(at->step->scratch, rows_count * sizeof *so_far->undecided);
    if (!so_far->undecided || !ivm__vector_make(at->step->scratch, out, IVM_BOOL, rows_count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    so_far->truth = out->cells;
    so_far->nulls = out->nulls;
    for (uint32_t i = 0; i < rows_count; i++) {
        so_far->truth[i] = !stop;
    }
    return IVM_OK;
}

/* `without`: rows never to be asked for, where not NULL. */
static uint32_t undecided_find(const decision *so_far, const uint8_t *without)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        so_far->undecided[count] = i;
        count += (so_far->truth[i] != so_far->stop) & !(without && without[i]);
    }
    return count;
}

static ivm_status evaluate_undecided(const ivm__evaluation *at, const ivm__expression *argument, const decision *so_far,
                                     const uint8_t *without, ivm__vector *out)
{
    uint32_t count = ivm__is_selective(argument) ? undecided_find(so_far, without) : 0;
    return ivm__evaluate_for(at, argument, so_far->undecided, count, out);
}

/* ---- and, or ----------------------------------------------------------------------------------------------------------------------- */

static void add_and(const uint64_t *restrict cells, const uint8_t *restrict nulls, const decision *so_far)
{
    uint64_t *restrict truth = so_far->truth;
    if (!nulls) {
        for (uint32_t i = 0; i < so_far->rows_count; i++) {
            truth[i] &= cells[i];
        }
        return;
    }
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        truth[i] &= cells[i] | nulls[i];
    }
}

static void add_or(const uint64_t *restrict cells, const decision *so_far)
{
    uint64_t *restrict truth = so_far->truth;
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        truth[i] |= cells[i];
    }
}

static void add_nulls(const uint8_t *restrict nulls, const decision *so_far)
{
    uint8_t *restrict seen = so_far->nulls;
    for (uint32_t i = 0; nulls && i < so_far->rows_count; i++) {
        seen[i] |= nulls[i];
    }
}

/* A null counts where nothing decided. */
static void decision_settle(const ivm__evaluation *at, const decision *so_far, ivm__vector *out)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        so_far->nulls[i] &= (uint8_t)(so_far->truth[i] ^ so_far->stop);
        any |= so_far->nulls[i];
    }
    if (any) {
        ivm__result_settle(at, out);
    } else {
        out->nulls = NULL;
    }
}

ivm_status ivm__kernel_decide(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    decision so_far;
    IVM_TRY(decision_make(at, node->function == IVM__OR, out, &so_far));
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
        ivm__vector argument;
        IVM_TRY(evaluate_undecided(at, node->arguments[i], &so_far, NULL, &argument));
        if (node->function == IVM__OR) {
            add_or(argument.cells, &so_far);
        } else {
            add_and(argument.cells, argument.nulls, &so_far);
        }
        add_nulls(argument.nulls, &so_far);
        ivm__arena_back(at->step->scratch, mark);
    }
    decision_settle(at, &so_far, out);
    return IVM_OK;
}

/* ---- in ---------------------------------------------------------------------------------------------------------------------------- */

static void add_equal(const uint64_t *restrict equal, const uint8_t *restrict nulls, const decision *so_far)
{
    uint64_t *restrict truth = so_far->truth;
    if (!nulls) {
        add_or(equal, so_far);
        return;
    }
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        truth[i] |= equal[i] & (nulls[i] ^ 1u);
    }
}

static bool is_plain_word(const ivm__expression *candidate, const ivm__operand *value)
{
    return candidate->function == IVM__LITERAL && !candidate->is_null && candidate->type == value->type && value->stride &&
           !ivm__type_is_wide(value->type);
}

/* A literal among the candidates, the usual case, in one pass: equal values have equal words. */
static void add_word(const uint64_t *restrict cells, uint64_t word, const decision *so_far)
{
    uint64_t *restrict truth = so_far->truth;
    for (uint32_t i = 0; i < so_far->rows_count; i++) {
        truth[i] |= cells[i] == word;
    }
}

static ivm_status candidate_make(const ivm__evaluation *at, const ivm__expression *candidate, const ivm__operand *value,
                                 const decision *so_far, ivm__operand *operand)
{
    if (!ivm__is_selective(candidate)) {
        return ivm__operand_make(at, candidate, operand);
    }
    ivm__vector vector;
    IVM_TRY(evaluate_undecided(at, candidate, so_far, value->nulls, &vector));
    *operand = (ivm__operand){ .type = vector.type, .stride = 1, .cells = vector.cells, .nulls = vector.nulls };
    return IVM_OK;
}

/* A row whose value is null is null, whatever was found for it. */
static void nulls_of_value(const uint8_t *restrict nulls, const decision *so_far)
{
    for (uint32_t i = 0; nulls && i < so_far->rows_count; i++) {
        so_far->truth[i] &= nulls[i] ^ 1u;
        so_far->nulls[i] |= nulls[i];
    }
}

ivm_status ivm__kernel_in(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    decision so_far;
    ivm__operand value;
    ivm__vector equal;
    IVM_TRY(ivm__operand_make(at, node->arguments[0], &value));
    IVM_TRY(decision_make(at, true, out, &so_far));
    IVM_TRY(ivm__result_make(at, IVM_BOOL, &equal));
    for (uint32_t i = 1; i < node->arguments_count; i++) {
        if (is_plain_word(node->arguments[i], &value)) {
            add_word(value.cells, (uint64_t)node->arguments[i]->cell, &so_far);
            continue;
        }
        ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
        ivm__operand candidate;
        IVM_TRY(candidate_make(at, node->arguments[i], &value, &so_far, &candidate));
        IVM_TRY(ivm__compare(at, IVM__EQUAL, value, candidate, equal.cells));
        add_equal(equal.cells, candidate.nulls, &so_far);
        add_nulls(candidate.nulls, &so_far);
        ivm__arena_back(at->step->scratch, mark);
    }
    nulls_of_value(value.nulls, &so_far);
    decision_settle(at, &so_far, out);
    return IVM_OK;
}

/* ---- not, is_null ------------------------------------------------------------------------------------------------------------------ */

ivm_status ivm__kernel_not(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    IVM_TRY(ivm__result_make(at, IVM_BOOL, out));
    out->nulls = in.nulls;
    const uint64_t *restrict cells = in.cells;
    uint64_t *restrict results = out->cells;
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        results[i] = cells[i] ^ 1;
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

ivm_status ivm__kernel_is_null(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    IVM_TRY(ivm__result_make(at, IVM_BOOL, out));
    uint64_t flip = node->function == IVM__IS_NOT_NULL;
    uint64_t *restrict results = out->cells;
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        results[i] = (in.nulls ? in.nulls[i] : 0) ^ flip;
    }
    return IVM_OK;
}
