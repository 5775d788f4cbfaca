/* Functions of strings: concat (null if any is), lower and upper (ASCII letters alone), length (in code points).
 *
 * Results are put together in one buffer and interned, row by row. Cost: the bytes, and a lookup of the text a row. */
#include "evaluate.h"

/* ---- concat ------------------------------------------------------------------------------------------------------------------------ */

static const ivm__text *text_at(const ivm__operand *operand, uint32_t row)
{
    return (const ivm__text *)(uintptr_t)((const uint64_t *)operand->cells)[row * operand->stride];
}

/* The bytes of each row's result; 0 where null, past IVM_STRING_SIZE_MAX where it is bad. Returns the greatest that is not. */
static size_t sizes_add(const ivm__operand *arguments, uint32_t arguments_count, uint32_t rows_count, uint64_t *restrict sizes)
{
    memset(sizes, 0, rows_count * sizeof *sizes);
    for (uint32_t k = 0; k < arguments_count; k++) {
        for (uint32_t i = 0; i < rows_count; i++) {
            const ivm__text *text = text_at(&arguments[k], i);
            sizes[i] += text ? text->size : 0;
        }
    }
    uint64_t greatest = 0;
    for (uint32_t i = 0; i < rows_count; i++) {
        greatest = sizes[i] > greatest && sizes[i] <= IVM_STRING_SIZE_MAX ? sizes[i] : greatest;
    }
    return greatest;
}

static ivm_status concat_row(const ivm__evaluation *at, const ivm__operand *arguments, uint32_t arguments_count, uint32_t row, char *buffer,
                             uint64_t *out)
{
    size_t size = 0;
    for (uint32_t k = 0; k < arguments_count; k++) {
        const ivm__text *text = text_at(&arguments[k], row);
        memcpy(buffer + size, text->bytes, text->size);
        size += text->size;
    }
    const ivm__text *text;
    IVM_TRY(ivm__texts_intern(at->step->texts, buffer, size, &text));
    *out = (uintptr_t)text;
    return IVM_OK;
}

/* A row that is too long keeps cell 0 and is bad. */
static ivm_status concat_rows(const ivm__evaluation *at, const ivm__operand *arguments, uint32_t arguments_count, uint8_t *bad,
                              ivm__vector *out)
{
    uint32_t rows_count = at->chunk->rows_count;
    uint64_t *sizes = ivm__arena_allocate(at->step->scratch, rows_count * sizeof *sizes);
    if (!sizes) {
        return IVM_OUT_OF_MEMORY;
    }
    char *buffer = ivm__arena_allocate(at->step->scratch, sizes_add(arguments, arguments_count, rows_count, sizes) + 1);
    if (!buffer) {
        return IVM_OUT_OF_MEMORY;
    }
    uint64_t *cells = out->cells;
    for (uint32_t i = 0; i < rows_count; i++) {
        cells[i] = 0;
        bad[i] = sizes[i] > IVM_STRING_SIZE_MAX;
        if (!bad[i] && !ivm__is_null(out, i)) {
            IVM_TRY(concat_row(at, arguments, arguments_count, i, buffer, &cells[i]));
        }
    }
    return IVM_OK;
}

static ivm_status nulls_of_all(const ivm__evaluation *at, const ivm__operand *arguments, uint32_t arguments_count, ivm__vector *out)
{
    IVM_TRY(ivm__result_own_nulls(at, out));
    for (uint32_t k = 0; k < arguments_count; k++) {
        const uint8_t *nulls = arguments[k].nulls;
        for (uint32_t i = 0; nulls && i < at->chunk->rows_count; i++) {
            out->nulls[i] |= nulls[i];
        }
    }
    return IVM_OK;
}

ivm_status ivm__kernel_concat(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    uint32_t count = node->arguments_count;
    if (count == 1) {
        return ivm__evaluate(at, node->arguments[0], out);
    }
    ivm__operand *arguments = ivm__arena_allocate(at->step->scratch, count * sizeof *arguments);
    uint8_t *bad = ivm__arena_allocate(at->step->scratch, at->chunk->rows_count);
    if (!arguments || !bad) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t k = 0; k < count; k++) {
        IVM_TRY(ivm__operand_make(at, node->arguments[k], &arguments[k]));
    }
    IVM_TRY(ivm__result_make(at, IVM_STRING, out));
    IVM_TRY(nulls_of_all(at, arguments, count, out));
    IVM_TRY(concat_rows(at, arguments, count, bad, out));
    return ivm__result_fail(at, bad, out);
}

/* ---- lower, upper ------------------------------------------------------------------------------------------------------------------ */

/* first: 'A' to lower, 'a' to raise. The bytes of other characters are never ASCII. */
static bool letters_change(const ivm__text *text, char first, char *restrict buffer)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < text->size; i++) {
        uint8_t letter = (uint8_t)(text->bytes[i] - first) < 26;
        any |= letter;
        buffer[i] = (char)(text->bytes[i] ^ (letter << 5));
    }
    return any;
}

static uint32_t longest(const ivm__vector *in, uint32_t rows_count)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < rows_count; i++) {
        const ivm__text *text = ivm__text_cell(in, i);
        size = text && text->size > size ? text->size : size;
    }
    return size;
}

ivm_status ivm__kernel_letters(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    IVM_TRY(ivm__result_make(at, IVM_STRING, out));
    out->nulls = in.nulls;
    uint32_t rows_count = at->chunk->rows_count;
    char *buffer = ivm__arena_allocate(at->step->scratch, (size_t)longest(&in, rows_count) + 1);
    if (!buffer) {
        return IVM_OUT_OF_MEMORY;
    }
    char first = node->function == IVM__LOWER ? 'A' : 'a';
    for (uint32_t i = 0; i < rows_count; i++) {
        const ivm__text *text = ivm__text_cell(&in, i);
        if (text && letters_change(text, first, buffer)) {
            IVM_TRY(ivm__texts_intern(at->step->texts, buffer, text->size, &text));
        }
        ((uint64_t *)out->cells)[i] = (uintptr_t)text;
    }
    return IVM_OK;
}

/* ---- length ------------------------------------------------------------------------------------------------------------------------ */

/* All bytes but those that continue a character. */
static uint64_t code_points(const ivm__text *text)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < text->size; i++) {
        count += (text->bytes[i] & 0xc0) != 0x80;
    }
    return count;
}

ivm_status ivm__kernel_length(const ivm__evaluation *at, const ivm__expression *node, ivm__vector *out)
{
    ivm__vector in;
    IVM_TRY(ivm__evaluate(at, node->arguments[0], &in));
    IVM_TRY(ivm__result_make(at, IVM_INT64, out));
    out->nulls = in.nulls;
    for (uint32_t i = 0; i < at->chunk->rows_count; i++) {
        const ivm__text *text = ivm__text_cell(&in, i);
        ((uint64_t *)out->cells)[i] = text ? code_points(text) : 0;
    }
    return IVM_OK;
}
