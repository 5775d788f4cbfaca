/* Columns by hand, and expressions over them. */
#include "columns.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

test_allocator allocator;
ivm__memory memory;
ivm__texts texts;
ivm__arena scratch;
ivm__step step;
ivm__vector vectors[COLUMNS];
ivm__wide cells[COLUMNS][ROWS];
uint8_t nulls[COLUMNS][ROWS], failed[ROWS];
ivm__chunk chunk;
ivm__vector result;

void open_step(void)
{
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    ivm__memory_init(&memory, &functions);
    ivm__texts_init(&texts, &memory, 11);
    ivm__arena_init(&scratch, &memory);
    step = (ivm__step){ .memory = &memory, .scratch = &scratch, .texts = &texts };
    chunk = (ivm__chunk){ .rows_count = ROWS, .columns_count = COLUMNS, .columns = vectors };
}

void close_step(void)
{
    ivm__arena_deinit(&scratch);
    ivm__texts_deinit(&texts);
    cr_expect(test_allocator_is_clean(&allocator), "%ld blocks left, %lu faults", (long)allocator.blocks, (unsigned long)allocator.faults);
}

ivm__expression *column(uint32_t c)
{
    return ivm__expression_column(&memory, c, vectors[c].type);
}

void wides(uint32_t c, ivm_type type, const ivm__wide *values)
{
    vectors[c] = (ivm__vector){ .type = type, .cells = cells[c], .nulls = nulls[c] };
    for (uint32_t i = 0; i < ROWS; i++) {
        nulls[c][i] = values[i] == NIL;
        ivm__wide value = nulls[c][i] ? 0 : values[i];
        if (ivm__type_is_wide(type)) {
            cells[c][i] = value;
        } else {
            ((uint64_t *)cells[c])[i] = (uint64_t)value;
        }
    }
}

void floats(uint32_t c, const double *values)
{
    ivm__wide words[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        words[i] = ivm__float_word(values[i]);
    }
    wides(c, IVM_FLOAT64, words);
}

ivm__wide text(const char *bytes)
{
    const ivm__text *made;
    cr_assert_eq(ivm__texts_intern(&texts, bytes, strlen(bytes), &made), IVM_OK);
    return (ivm__wide)(uintptr_t)made;
}

ivm__expression *literal(ivm_type type, ivm__wide value)
{
    return ivm__expression_literal(&memory, &texts, type, value == NIL, value);
}

ivm__expression *call2(ivm__function function, ivm_type type, ivm__expression *a, ivm__expression *b)
{
    return ivm__expression_make(&memory, function, type, (ivm__expression *[]){ a, b }, 2);
}

ivm__expression *call1(ivm__function function, ivm_type type, ivm__expression *a)
{
    return ivm__expression_make(&memory, function, type, &a, 1);
}

/* Computes and frees. */
void compute(ivm__expression *expression)
{
    cr_assert_not_null(expression);
    memset(failed, 0, sizeof failed);
    uint8_t *marks = ivm__expression_is_fallible(expression) ? failed : NULL;
    cr_assert_eq(ivm__expression_compute(expression, &step, &chunk, &result, marks), IVM_OK);
    cr_expect_eq(result.type, expression->type);
    ivm__expression_free(expression, &memory, &texts);
}

void expect_cells(const char *file, int line, const ivm__wide *wanted)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        ivm__wide got = ivm__type_is_wide(result.type) ? ivm__wide_cell(&result, i) : (ivm__wide)(int64_t)ivm__word(&result, i);
        if (ivm__is_null(&result, i)) {
            cr_expect(got == 0, "%s:%d: row %u: a null's cell is not 0", file, line, i);
            got = failed[i] ? FAIL : NIL;
        } else {
            cr_expect_eq(failed[i], 0, "%s:%d: row %u: failed and not null", file, line, i);
        }
        cr_expect(got == wanted[i], "%s:%d: row %u: %lld and not %lld (mod 2^64)", file, line, i, (long long)got, (long long)wanted[i]);
    }
}

void expect_floats(const char *file, int line, const double *wanted)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_expect_eq(ivm__word(&result, i), ivm__float_word(wanted[i]), "%s:%d: row %u: %g and not %g", file, line, i,
                     ivm__word_float(ivm__word(&result, i)), wanted[i]);
    }
}

void expect_texts(const char *file, int line, const char *const *wanted)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        const char *got = ivm__is_null(&result, i) ? NULL : ivm__text_cell(&result, i)->bytes;
        cr_expect(got && wanted[i] ? strcmp(got, wanted[i]) == 0 : !got && !wanted[i], "%s:%d: row %u: %s and not %s", file, line, i,
                  got ? got : "null", wanted[i] ? wanted[i] : "null");
    }
}

void expect_failed(const char *file, int line, const uint8_t *wanted)
{
    cr_expect_arr_eq(failed, wanted, ROWS, "%s:%d", file, line);
}

ivm__expression *plus_one(uint32_t c)
{
    return call2(IVM__ADD, IVM_INT64, column(c), literal(IVM_INT64, 1));
}

ivm__expression *plus_one_positive(uint32_t c)
{
    return call2(IVM__GREATER, IVM_BOOL, plus_one(c), literal(IVM_INT64, 0));
}

ivm__wide ten(uint32_t exponent)
{
    return ivm__power_of_ten(exponent);
}
