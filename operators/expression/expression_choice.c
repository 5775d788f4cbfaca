/* coalesce and case: each row takes its value from one argument, and computes none after the one that decides.
 *
 * The rows still without a value are a list that shrinks from argument to argument. Cost: a pass an argument over the rows that come to it,
 * and one over all for each argument that cannot fail. */
#include "evaluate.h"

/* out[row] = in[row] for the listed rows; out has nulls. */
static void copy_at(const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out)
{
    assert(in->type == out->type);
    for (uint32_t i = 0; i < count; i++) {
        out->nulls[rows[i]] = in->nulls ? in->nulls[rows[i]] : 0;
    }
    if (ivm__type_is_wide(in->type)) {
        const ivm__wide *cells = in->cells;
        for (uint32_t i = 0; i < count; i++) {
            ((ivm__wide *)out->cells)[rows[i]] = cells[rows[i]];
        }
    } else {
        const uint64_t *cells = in->cells;
        for (uint32_t i = 0; i < count; i++) {
            ((uint64_t *)out->cells)[rows[i]] = cells[rows[i]];
        }
    }
}

static uint32_t *all_rows(const ivm__evaluation *at)
{
    uint32_t *rows = ivm__arena_allocate(at->step->scratch, at->chunk->rows_count * sizeof *rows);
    for (uint32_t i = 0; rows && i < at->chunk->rows_count; i++) {
        rows[i] = i;
    }
    return rows;
}

static ivm_status choice_make(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out, uint32_t **rows)
{
    *rows = all_rows(at);
    return *rows && ivm__vector_make(at->step->scratch, out, node->type, at->chunk->rows_count, true) ? IVM_OK : IVM_OUT_OF_MEMORY;
}

/* ---- coalesce ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t keep_nulls(const ivm__vector *out, uint32_t *rows, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows[i];
        rows[kept] = row;
        kept += out->nulls[row];
    }
    return kept;
}

ivm_status ivm__kernel_coalesce(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    uint32_t *rows;
    uint32_t count = at->chunk->rows_count;
    IVM_TRY(choice_make(at, node, out, &rows));
    for (uint32_t i = 0; i < node->arguments_count && count; i++) {
        ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
        ivm__vector argument;
        IVM_TRY(ivm__evaluate_for(at, node->arguments[i], rows, count, &argument));
        copy_at(&argument, rows, count, out);
        ivm__arena_back(at->step->scratch, mark);
        count = keep_nulls(out, rows, count);
    }
    if (!count) {
        out->nulls = NULL;
    }
    return IVM_OK;
}

/* ---- case -------------------------------------------------------------------------------------------------------------------------- */

/* Parts the rows into those for which the condition is true and the others, which stay in `rows`; returns how many are taken. */
static uint32_t take_true(const ivm__vector *condition, uint32_t *rows, uint32_t *count, uint32_t *taken)
{
    const uint64_t *truth = condition->cells;
    uint32_t taken_count = 0, kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t row = rows[i], is_true = truth[row] != 0; /* a null's cell is 0 */
        taken[taken_count] = row;
        rows[kept] = row;
        taken_count += is_true;
        kept += !is_true;
    }
    *count = kept;
    return taken_count;
}

static ivm_status take_value(const ivm__evaluation *at, const ivm__expression *value, const uint32_t *rows, uint32_t count,
                             ivm__vector *out)
{
    ivm__vector values;
    IVM_TRY(ivm__evaluate_for(at, value, rows, count, &values));
    copy_at(&values, rows, count, out);
    return IVM_OK;
}

ivm_status ivm__kernel_case(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    uint32_t *rows, count = at->chunk->rows_count;
    IVM_TRY(choice_make(at, node, out, &rows));
    uint32_t *taken = ivm__arena_allocate(at->step->scratch, count * sizeof *taken);
    if (!taken) {
        return IVM_OUT_OF_MEMORY;
    }
    uint32_t last = node->arguments_count - 1;
    assert(last % 2 == 0);
    for (uint32_t i = 0; i < last && count; i += 2) {
        ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
        ivm__vector condition;
        IVM_TRY(ivm__evaluate_for(at, node->arguments[i], rows, count, &condition));
        uint32_t taken_count = take_true(&condition, rows, &count, taken);
        if (taken_count) {
            IVM_TRY(take_value(at, node->arguments[i + 1], taken, taken_count, out));
        }
        ivm__arena_back(at->step->scratch, mark);
    }
    return count ? take_value(at, node->arguments[last], rows, count, out) : IVM_OK;
}
