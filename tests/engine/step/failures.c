/* tests engine/step/failures.c */
#include <criterion/criterion.h>

#include "allocator.h"
#include "program.h"

static test_allocator counted;
static ivm__memory memory;
static ivm__texts texts;
static ivm__arena arena, scratch;
static ivm_error error;
static ivm__step step;
static ivm__failures failures;

static const ivm_type types[] = { IVM_INT64, IVM_FLOAT64, IVM_STRING };

static void begin(void)
{
    test_allocator_init(&counted);
    ivm_allocator functions = test_allocator_functions(&counted);
    ivm__memory_init(&memory, &functions);
    ivm__texts_init(&texts, &memory, 3);
    ivm__arena_init(&arena, &memory);
    ivm__arena_init(&scratch, &memory);
    step = (ivm__step){ .memory = &memory, .arena = &arena, .scratch = &scratch, .texts = &texts, .seed = 3, .error = &error };
}

static void end(void)
{
    ivm__failures_deinit(&failures);
    ivm__arena_deinit(&arena);
    ivm__arena_deinit(&scratch);
    ivm__texts_deinit(&texts);
    cr_assert(test_allocator_is_clean(&counted));
}

/* Rows (i % 10, not carried, text of i % 3 or null), of this weight. */
static ivm__chunk *sample(uint32_t rows, ivm__weight weight)
{
    ivm__chunk *chunk = ivm__chunk_make(&arena, types, 3);
    cr_assert(chunk && ivm__vector_make(&arena, &chunk->columns[0], types[0], rows, false));
    cr_assert(ivm__vector_make(&arena, &chunk->columns[2], types[2], rows, true));
    chunk->rows_count = rows;
    chunk->weights = ivm__arena_allocate(&arena, rows * sizeof *chunk->weights);
    cr_assert_not_null(chunk->weights);
    for (uint32_t i = 0; i < rows; i++) {
        const ivm__text *text = NULL;
        if (i % 3) {
            cr_assert_eq(ivm__texts_intern(&texts, "abc", i % 3, &text), IVM_OK);
        }
        ((uint64_t *)chunk->columns[0].cells)[i] = i % 10;
        ((uint64_t *)chunk->columns[2].cells)[i] = (uintptr_t)text;
        chunk->columns[2].nulls[i] = !text;
        chunk->weights[i] = weight;
    }
    return chunk;
}

static void add(const ivm__chunk *chunk, const uint8_t *failed)
{
    cr_assert_eq(ivm__failures_add(&failures, &step, chunk, failed), IVM_OK);
}

Test(engine_failures, nothing_failed_costs_nothing, .init = begin, .fini = end)
{
    const uint8_t failed[30] = { 0 };
    add(sample(30, 1), failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
    cr_assert_null(failures.rows.store.layout);
}

Test(engine_failures, what_is_left_is_out_of_range, .init = begin, .fini = end)
{
    uint8_t failed[30] = { 0 };
    failed[7] = 1;
    add(sample(30, 2), failed);
    ivm__arena_mark mark = ivm__arena_here(&scratch);
    cr_assert(!mark.block, "scratch is as it was");
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "column c"), IVM_OVERFLOW);
    cr_assert_str_eq(error.message, "view v: a result in column c is out of range");
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "column c"), IVM_OK, "emptied");
}

Test(engine_failures, terms_cancel, .init = begin, .fini = end)
{
    uint8_t failed[1000];
    memset(failed, 1, sizeof failed);
    add(sample(1000, (ivm__weight)1 << 80), failed);
    add(sample(500, -((ivm__weight)1 << 80)), failed);
    ivm__chunk *rest = sample(1000, -((ivm__weight)1 << 80));
    memset(failed, 0, 500);
    add(rest, failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
    /* equal rows count together, whichever of them failed */
    memset(failed, 0, sizeof failed);
    failed[4] = 1;
    add(sample(1000, 1), failed);
    failed[4] = 0;
    failed[34] = 1;
    add(sample(1000, -1), failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
    /* a null is told from a text, and one text from another */
    failed[34] = 0;
    failed[3] = 1;
    add(sample(1000, 1), failed);
    failed[3] = 0;
    failed[13] = 1;
    add(sample(1000, -1), failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OVERFLOW);
}

/* A constant expression reads no column. */
Test(engine_failures, no_column_is_read, .init = begin, .fini = end)
{
    const uint8_t failed[3] = { 1, 0, 1 };
    ivm__chunk *chunk = ivm__chunk_make(&arena, types, 3);
    chunk->rows_count = 3;
    ivm__weight weights[3] = { 1, 5, 1 };
    chunk->weights = weights;
    add(chunk, failed);
    weights[0] = -2;
    weights[2] = 0;
    add(chunk, failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
    add(chunk, failed);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OVERFLOW);
}

Test(engine_failures, deinit_drops_the_step, .init = begin, .fini = end)
{
    uint8_t failed[300];
    memset(failed, 1, sizeof failed);
    add(sample(300, 1), failed);
    ivm__failures_deinit(&failures);
    ivm__failures_deinit(&failures);
    cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
    texts.epoch = 1;
    ivm__texts_sweep(&texts, 1);
    cr_assert_eq(texts.count, 0, "no text is held any more");
}

Test(engine_failures, every_failed_allocation, .init = begin, .fini = end)
{
    uint8_t failed[300];
    memset(failed, 1, sizeof failed);
    ivm__chunk *plus = sample(300, 1), *minus = sample(300, -1);
    bool done = false;
    uint64_t n = 1;
    for (; !done; n++) {
        ivm__arena_deinit(&scratch);
        test_allocator_arm(&counted, n);
        ivm_status status = ivm__failures_add(&failures, &step, plus, failed);
        status = status == IVM_OK ? ivm__failures_add(&failures, &step, minus, failed) : status;
        done = !test_allocator_disarm(&counted);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        if (done) {
            cr_assert_eq(ivm__failures_check(&failures, &step, "v", "a filter"), IVM_OK);
        }
        ivm__failures_deinit(&failures);
    }
    cr_assert_gt(n, 4);
}
