/* Filters: which rows pass, chunks passed on as they are, failures that cancel and failures that stay. */
#include <criterion/criterion.h>

#include "hand.h"
#include "join_case.h"

static const ivm_type types[] = { IVM_INT64, IVM_INT64, IVM_STRING };

/* scan t(c0 ?, c1 ?, c2 ?) -> filter -> sink */
static hand_sink *filter_open(hand *it, const ivm_allocator *allocator, ivm_table **table, ivm__expression *(*condition)(hand *it))
{
    ivm__operator *scan, *filter;
    hand_open(it, allocator);
    *table = hand_table(it, "t", types, "???", NULL);
    cr_assert_eq(ivm__scan_create(&it->engine->memory, *table, (*table)->heading, &scan), IVM_OK);
    hand_add(it, scan, NULL, 0);
    cr_assert_eq(ivm__filter_create(&it->engine->memory, &it->engine->texts, types, 3, condition(it), &filter), IVM_OK);
    hand_add(it, filter, scan, 0);
    cr_assert_eq(filter->columns_count, 3);
    cr_assert_eq(filter->types[2], IVM_STRING);
    return hand_sink_add(it, filter);
}

/* c0 < 10 */
static ivm__expression *small(hand *it)
{
    return case_call(it, IVM__LESS, IVM_BOOL, case_column(it, 0, IVM_INT64), case_int64(it, 10));
}

/* c0 * 2^62 < c1 */
static ivm__expression *fallible(hand *it)
{
    ivm__expression *product = case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, 0, IVM_INT64), case_int64(it, 1ll << 62));
    return case_call(it, IVM__LESS, IVM_BOOL, product, case_column(it, 1, IVM_INT64));
}

Test(operators_filter, passes_the_rows_for_which_it_is_true)
{
    hand it;
    ivm_table *table;
    hand_sink *sink = filter_open(&it, NULL, &table, small);
    ivm_batch *batch = hand_batch(&it);
    hand_bag want = { .columns_count = 3 };
    for (int64_t n = 0; n < 2500; n++) {
        hand_row row = HAND_ROW(n % 23 == 22 ? HAND_NULL : n % 23, n, n % 5 ? n : HAND_NULL);
        hand_change(batch, table, row, n % 3 + 1);
        row.weight = n % 3 + 1;
        if (!row.nulls[0] && row.cells[0] < 10) {
            hand_bag_add(&want, &row);
        }
    }
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    cr_assert(hand_bag_equal(&sink->rows, &want));
    ivm_batch_free(batch);

    batch = hand_batch(&it);
    for (size_t i = 0; i < want.count; i++) {
        hand_change(batch, table, want.rows[i], -1);
        want.rows[i].weight--;
    }
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    cr_assert(hand_bag_equal(&sink->rows, &want), "what leaves the table leaves the filter");
    ivm_batch_free(batch);
    hand_bag_free(&want);
    hand_close(&it);
}

Test(operators_filter, a_chunk_that_passes_whole_is_not_copied)
{
    hand it;
    ivm_table *table;
    hand_sink *sink = filter_open(&it, NULL, &table, small);
    int64_t cells[3] = { 1, 2, 3 };
    int32_t offsets[4] = { 0 };
    ivm_column_data columns[3] = { { .values = cells }, { .values = cells }, { .values = "", .offsets = offsets } };
    ivm_rows rows = { .rows_count = 3, .columns_count = 3, .columns = columns };
    for (uint32_t round = 0; round < 3; round++) {
        ivm_batch *batch = hand_batch(&it);
        cells[2] = round == 1 ? 30 : 3;
        cr_assert_eq(ivm_batch_columns(batch, table, IVM_INSERT, &rows), IVM_OK);
        cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
        cr_assert_eq(sink->first_cells == cells, round != 1);
        ivm_batch_free(batch);
    }
    cr_assert_eq(sink->rows_count, 8);
    for (uint32_t i = 0; i < 3; i++) {
        cells[i] = 99;
    }
    ivm_batch *batch = hand_batch(&it);
    cr_assert_eq(ivm_batch_columns(batch, table, IVM_INSERT, &rows), IVM_OK);
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    cr_assert_eq(sink->chunks_count, 3, "nothing passes: nothing is sent");
    ivm_batch_free(batch);
    hand_close(&it);
}

Test(operators_filter, a_row_that_fails_rejects_the_step)
{
    hand it;
    ivm_table *table;
    hand_sink *sink = filter_open(&it, NULL, &table, fallible);
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(0, 5, 1), 1), IVM_OK);
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(2, 5, 1), 1), IVM_OVERFLOW);
    cr_assert_str_eq(it.error.message, "view v: a result in a filter's condition is out of range");
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(HAND_NULL, 5, 1), 1), IVM_OK, "the failure is forgotten with its step");
    cr_assert_eq(sink->rows_count, 1);
    hand_close(&it);
}

/* Sends its rows twice, once with each sign: as a join's terms do with pairs that never stand side by side. */
static ivm_status twice_consume(ivm__operator *self, ivm__step *step, uint32_t port, const ivm__chunk *chunk)
{
    ivm__weight weights[IVM__CHUNK_ROWS];
    ivm__chunk negative = *chunk;
    (void)port;
    for (uint32_t i = 0; i < chunk->rows_count; i++) {
        weights[i] = -ivm__chunk_weight(chunk, i);
    }
    negative.weights = weights;
    IVM_TRY(ivm__emit(self, step, chunk));
    return ivm__emit(self, step, &negative);
}

static void twice_free(ivm__operator *self, ivm__memory *memory)
{
    (void)self;
    (void)memory;
}

Test(operators_filter, failures_that_cancel_are_none)
{
    static const ivm__operator_class twice_class = { .name = "twice", .consume = twice_consume, .free = twice_free };
    hand it;
    hand_open(&it, NULL);
    ivm_table *table = hand_table(&it, "t", types, "???", NULL);
    ivm__operator *scan, *filter, twice = { .class = &twice_class };
    cr_assert_eq(ivm__scan_create(&it.engine->memory, table, table->heading, &scan), IVM_OK);
    hand_add(&it, scan, NULL, 0);
    hand_add(&it, &twice, scan, 0);
    cr_assert_eq(ivm__filter_create(&it.engine->memory, &it.engine->texts, types, 3, fallible(&it), &filter), IVM_OK);
    hand_add(&it, filter, &twice, 0);
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(2, 5, 1), 3), IVM_OK);
    hand_close(&it);
}

Test(operators_filter, loading_counts_no_failures)
{
    hand it;
    ivm_table *table;
    filter_open(&it, NULL, &table, fallible);
    ivm__operator *scan = it.program.operators[0], *filter = it.program.operators[1];
    ivm_batch *batch = hand_batch(&it);
    hand_change(batch, table, HAND_ROW(2, 5, 1), 1);
    cr_assert_eq(hand_stage(&it, batch), IVM_OK);
    ivm_batch_free(batch);
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    step.loading = true;
    cr_assert_eq(ivm__scan_load(scan, &step), IVM_OK);
    step.loading = false;
    cr_assert_eq(filter->class->finish(filter, &step), IVM_OK);
    ivm__engine_settle(it.engine);
    hand_close(&it);
}

Test(operators_filter, running_out_of_memory_changes_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        ivm_table *table;
        filter_open(&it, &trial.functions, &table, fallible);
        ivm_batch *batch = hand_batch(&it);
        hand_change(batch, table, HAND_ROW(2, 5, 1), 1);
        hand_change(batch, table, HAND_ROW(0, 5, 1), 1);
        hand_trial_arm(&trial);
        ivm_status status = hand_step(&it, batch, true);
        hand_trial_judge(&trial, status, IVM_OVERFLOW);
        cr_assert_eq(table->store.rows_live, 0);
        ivm_batch_free(batch);
        cr_assert_eq(hand_push_row(&it, table, HAND_ROW(0, 5, 1), 1), IVM_OK);
        hand_close(&it);
    }
    cr_assert_gt(trial.failures, 3);
}

Test(operators_filter, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__expression *condition = small(&it);
        ivm__operator *filter;
        hand_trial_arm(&trial);
        ivm_status status = ivm__filter_create(&it.engine->memory, &it.engine->texts, types, 3, condition, &filter);
        hand_trial_judge_made(&trial, &it, status, filter);
    }
    cr_assert_gt(trial.failures, 1);
}
