/* Evaluation of expressions over chunks: one kernel a node, chosen once a chunk, and what all kernels need of arguments and results.
 *
 * What is lazy is lazy in its failures: an argument that can fail and is wanted for some rows alone is computed for all, and the failures of
 * the others are dropped. Where the rows are few, or texts would be made for nothing, it is computed over a chunk of these rows, and values
 * and failures are put back at their positions.
 * Cost: a pass a node. */
#include "evaluate.h"

static ivm_status evaluate_column(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    assert(node->column < at->chunk->columns_count && at->chunk->columns[node->column].cells);
    *out = at->chunk->columns[node->column];
    assert(out->type == node->type);
    return IVM_OK;
}

static ivm_status evaluate_literal(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    if (node->is_null) {
        return ivm__result_null(at, node->type, out);
    }
    IVM_TRY(ivm__result_make(at, node->type, out));
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        if (ivm__type_is_wide(node->type)) {
            ((ivm__wide *)out->cells)[i] = node->cell;
        } else {
            ((uint64_t *)out->cells)[i] = (uint64_t)node->cell;
        }
    }
    return IVM_OK;
}

static ivm__kernel *const kernels[] = {
    [IVM__ADD] = ivm__kernel_arithmetic,
    [IVM__SUBTRACT] = ivm__kernel_arithmetic,
    [IVM__MULTIPLY] = ivm__kernel_arithmetic,
    [IVM__DIVIDE] = ivm__kernel_divide,
    [IVM__NEGATE] = ivm__kernel_sign,
    [IVM__DIV] = ivm__kernel_integer,
    [IVM__REMAINDER] = ivm__kernel_integer,
    [IVM__EQUAL] = ivm__kernel_compare,
    [IVM__NOT_EQUAL] = ivm__kernel_compare,
    [IVM__LESS] = ivm__kernel_compare,
    [IVM__LESS_EQUAL] = ivm__kernel_compare,
    [IVM__GREATER] = ivm__kernel_compare,
    [IVM__GREATER_EQUAL] = ivm__kernel_compare,
    [IVM__AND] = ivm__kernel_decide,
    [IVM__OR] = ivm__kernel_decide,
    [IVM__NOT] = ivm__kernel_not,
    [IVM__IS_NULL] = ivm__kernel_is_null,
    [IVM__IS_NOT_NULL] = ivm__kernel_is_null,
    [IVM__COALESCE] = ivm__kernel_coalesce,
    [IVM__CASE] = ivm__kernel_case,
    [IVM__IN] = ivm__kernel_in,
    [IVM__LEAST] = ivm__kernel_extreme,
    [IVM__GREATEST] = ivm__kernel_extreme,
    [IVM__ABS] = ivm__kernel_sign,
    [IVM__CONCAT] = ivm__kernel_concat,
    [IVM__LOWER] = ivm__kernel_letters,
    [IVM__UPPER] = ivm__kernel_letters,
    [IVM__LENGTH] = ivm__kernel_length,
    [IVM__CAST] = ivm__kernel_cast,
    [IVM__COLUMN] = evaluate_column,
    [IVM__LITERAL] = evaluate_literal,
};

ivm_status ivm__evaluate(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    assert(node->function < sizeof kernels / sizeof *kernels);
    assert(at->failed || !node->fallible);
    return kernels[node->function](at, node, out);
}

/* ---- Subsets ----------------------------------------------------------------------------------------------------------------------- */

#define PART_ROWS_SHARE 8u /* gathering a part costs about what computing eight times its rows does */

/* The columns that the node reads, of these rows alone, into a chunk of uncarried ones. */
static ivm_status gather_columns(const ivm__evaluation *at, const ivm__expression *node, const uint32_t *rows, ivm__chunk *part)
{
    if (node->function == IVM__COLUMN && !part->columns[node->column].cells) {
        const ivm__vector *in = &at->chunk->columns[node->column];
        ivm__vector *out = &part->columns[node->column];
        if (!ivm__vector_choose(at->step->scratch, in, rows, part->rows_count, out)) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    for (uint32_t i = 0; i < node->arguments_count; i++) {
        IVM_TRY(gather_columns(at, node->arguments[i], rows, part));
    }
    return IVM_OK;
}

static void put_back(const ivm__vector *in, const uint32_t *rows, uint32_t count, ivm__vector *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out->nulls[rows[i]] = in->nulls ? in->nulls[i] : 0;
    }
    if (ivm__type_is_wide(in->type)) {
        const ivm__wide *cells = in->cells;
        for (uint32_t i = 0; i < count; i++) {
            ((ivm__wide *)out->cells)[rows[i]] = cells[i];
        }
    } else {
        const uint64_t *cells = in->cells;
        for (uint32_t i = 0; i < count; i++) {
            ((uint64_t *)out->cells)[rows[i]] = cells[i];
        }
    }
}

static ivm_status evaluate_part(const ivm__evaluation *at, const ivm__expression *node, const uint32_t *rows, uint32_t count,
                                ivm__vector *out)
{
    ivm__arena *scratch = at->step->scratch;
    ivm__chunk part = { .rows_count = count, .columns_count = at->chunk->columns_count };
    uint8_t *failed = ivm__arena_allocate(scratch, count);
    part.columns = ivm__arena_allocate(scratch, part.columns_count * sizeof *part.columns);
    if (!failed || !part.columns) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, count);
    for (uint32_t i = 0; i < part.columns_count; i++) {
        part.columns[i] = (ivm__vector){ .type = at->chunk->columns[i].type };
    }
    IVM_TRY(gather_columns(at, node, rows, &part));
    ivm__evaluation within = { .step = at->step, .chunk = &part, .failed = failed };
    ivm__vector values;
    IVM_TRY(ivm__evaluate(&within, node, &values));
    put_back(&values, rows, count, out);
    for (uint32_t i = 0; i < count && node->fallible; i++) {
        at->failed[rows[i]] |= failed[i];
    }
    return IVM_OK;
}

/* For all rows, the failures of the others unseen. */
static ivm_status evaluate_masked(const ivm__evaluation *at, const ivm__expression *node, const uint32_t *rows, uint32_t count,
                                  ivm__vector *out)
{
    uint8_t *failed = ivm__arena_allocate(at->step->scratch, at->chunk->rows_count);
    if (!failed) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(failed, 0, at->chunk->rows_count);
    ivm__evaluation within = { .step = at->step, .chunk = at->chunk, .failed = failed };
    IVM_TRY(ivm__evaluate(&within, node, out));
    for (uint32_t i = 0; i < count; i++) {
        at->failed[rows[i]] |= failed[rows[i]];
    }
    return IVM_OK;
}

ivm_status ivm__evaluate_for(const ivm__evaluation *at, const ivm__expression *node, const uint32_t *rows, uint32_t count, ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    assert(count <= rows_count);
    if (!ivm__is_selective(node) || count == rows_count) {
        return ivm__evaluate(at, node, out);
    }
    if (!node->makes_texts && count >= rows_count / PART_ROWS_SHARE) {
        return evaluate_masked(at, node, rows, count, out);
    }
    if (!ivm__vector_make(at->step->scratch, out, node->type, rows_count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(out->cells, 0, (size_t)rows_count * ivm__type_words(node->type) * sizeof(uint64_t));
    ivm__arena_mark mark = ivm__arena_here(at->step->scratch);
    IVM_TRY(count ? evaluate_part(at, node, rows, count, out) : IVM_OK);
    ivm__arena_back(at->step->scratch, mark);
    return IVM_OK;
}

/* ---- Arguments --------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__operand_make(const ivm__evaluation *at, const ivm__expression *argument, ivm__operand *operand)
{
    if (argument->function == IVM__LITERAL && !argument->is_null) {
        *operand = (ivm__operand){ .type = argument->type, .cells = &argument->cell }; /* a word is the low half of the cell */
        return IVM_OK;
    }
    ivm__vector vector;
    IVM_TRY(ivm__evaluate(at, argument, &vector));
    *operand = (ivm__operand){ .type = vector.type, .stride = 1, .cells = vector.cells, .nulls = vector.nulls };
    return IVM_OK;
}

ivm_status ivm__operand_widen(const ivm__evaluation *at, ivm__operand *operand)
{
    if (ivm__type_is_wide(operand->type)) {
        return IVM_OK;
    }
    assert(IVM_TYPE_KIND(operand->type) == IVM_INT64);
    uint32_t count = operand->stride ? at->chunk->rows_count : 1;
    ivm__wide *wide = ivm__arena_allocate(at->step->scratch, count * sizeof *wide);
    if (!wide) {
        return IVM_OUT_OF_MEMORY;
    }
    const int64_t *cells = operand->cells;
    for (uint32_t i = 0; i < count; i++) {
        wide[i] = cells[i];
    }
    operand->type = IVM_DECIMAL(19, 0);
    operand->cells = wide;
    return IVM_OK;
}

/* ---- Results ----------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__result_make(const ivm__evaluation *at, ivm_type type, ivm__vector *out)
{
    return ivm__vector_make(at->step->scratch, out, type, at->chunk->rows_count, false) ? IVM_OK : IVM_OUT_OF_MEMORY;
}

ivm_status ivm__result_nulls(const ivm__evaluation *at, const ivm__operand *a, const ivm__operand *b, ivm__vector *out)
{
    out->nulls = (uint8_t *)(uintptr_t)(a->nulls || !b ? a->nulls : b->nulls); /* read alone while it is not our own */
    if (!a->nulls || !b || !b->nulls) {
        return IVM_OK;
    }
    IVM_TRY(ivm__result_own_nulls(at, out));
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        out->nulls[i] |= b->nulls[i];
    }
    return IVM_OK;
}

ivm_status ivm__result_own_nulls(const ivm__evaluation *at, ivm__vector *out)
{
    uint8_t *nulls = ivm__arena_allocate(at->step->scratch, at->chunk->rows_count);
    if (!nulls) {
        return IVM_OUT_OF_MEMORY;
    }
    if (out->nulls) {
        memcpy(nulls, out->nulls, at->chunk->rows_count);
    } else {
        memset(nulls, 0, at->chunk->rows_count);
    }
    out->nulls = nulls;
    return IVM_OK;
}

void ivm__result_settle(const ivm__evaluation *at, ivm__vector *out)
{
    if (!out->nulls) {
        return;
    }
    uint32_t words = ivm__type_words(out->type);
    uint64_t *restrict cells = out->cells;
    const uint8_t *restrict nulls = out->nulls;
    if (words == 1) {
        for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
            cells[i] &= (uint64_t)nulls[i] - 1;
        }
        return;
    }
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        cells[2 * i] &= (uint64_t)nulls[i] - 1;
        cells[2 * i + 1] &= (uint64_t)nulls[i] - 1;
    }
}

ivm_status ivm__result_fail(const ivm__evaluation *at, const uint8_t *bad, ivm__vector *out)
{
    IVM_TRY(ivm__result_own_nulls(at, out));
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        uint8_t fails = bad[i] & !out->nulls[i];
        at->failed[i] |= fails;
        out->nulls[i] |= fails;
    }
    ivm__result_settle(at, out);
    return IVM_OK;
}

ivm_status ivm__result_null(const ivm__evaluation *at, ivm_type type, ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    if (!ivm__vector_make(at->step->scratch, out, type, rows_count, true)) {
        return IVM_OUT_OF_MEMORY;
    }
    memset(out->cells, 0, (size_t)rows_count * ivm__type_words(type) * sizeof(uint64_t));
    memset(out->nulls, 1, rows_count);
    return IVM_OK;
}

/* ---- Computing --------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__expression_compute(const ivm__expression *expression, ivm__step *step, const ivm__chunk *chunk, ivm__vector *out,
                                   uint8_t *failed)
{
    assert(failed || !expression->fallible);
    ivm__evaluation at = { .step = step, .chunk = chunk, .failed = expression->fallible ? failed : NULL };
    return ivm__evaluate(&at, expression, out);
}

/* A null's cell is 0, so it is not true. */
static uint32_t select_true(const uint64_t *restrict cells, uint32_t rows_count, uint32_t *restrict rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows_count; i++) {
        rows[count] = i;
        count += (uint32_t)cells[i];
    }
    return count;
}

static uint32_t drop_failed(const uint8_t *failed, uint32_t *rows, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows[kept] = rows[i];
        kept += !failed[rows[i]];
    }
    return kept;
}

ivm_status ivm__expression_select(const ivm__expression *condition, ivm__step *step, const ivm__chunk *chunk, uint32_t *rows,
                                  uint32_t *count, uint8_t *failed)
{
    assert(!condition->type || IVM_TYPE_KIND(condition->type) == IVM_BOOL);
    ivm__vector truth;
    IVM_TRY(ivm__expression_compute(condition, step, chunk, &truth, failed));
    *count = select_true(truth.cells, chunk->rows_count, rows);
    if (condition->fallible) {
        *count = drop_failed(failed, rows, *count);
    }
    return IVM_OK;
}
