/* Projects: columns passed and computed, weights as they come, failures, columns nobody carries. */
#include <criterion/criterion.h>

#include "hand.h"
#include "join_case.h"

static const ivm_type types[] = { IVM_INT64, IVM_INT64, IVM_STRING };

/* c2, c0 * 2^62, c1 */
static void columns_make(hand *it, ivm__expression *columns[3])
{
    columns[0] = case_column(it, 2, IVM_STRING);
    columns[1] = case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, 0, IVM_INT64), case_int64(it, 1ll << 62));
    columns[2] = case_column(it, 1, IVM_INT64);
}

/* scan t -> project -> sink */
static hand_sink *project_open(hand *it, const ivm_allocator *allocator, ivm_table **table)
{
    ivm__operator *scan, *project;
    ivm__expression *columns[3];
    hand_open(it, allocator);
    *table = hand_table(it, "t", types, "???", NULL);
    cr_assert_eq(ivm__scan_create(&it->engine->memory, *table, (*table)->heading, &scan), IVM_OK);
    hand_add(it, scan, NULL, 0);
    columns_make(it, columns);
    cr_assert_eq(ivm__project_create(&it->engine->memory, &it->engine->texts, columns, 3, &project), IVM_OK);
    hand_add(it, project, scan, 0);
    cr_assert(project->columns_count == 3 && project->types[0] == IVM_STRING && project->types[2] == IVM_INT64);
    return hand_sink_add(it, project);
}

Test(operators_project, computes_each_column_and_keeps_weights)
{
    hand it;
    ivm_table *table;
    hand_sink *sink = project_open(&it, NULL, &table);
    ivm_batch *batch = hand_batch(&it);
    hand_bag want = { .columns_count = 3 };
    for (int64_t n = 0; n < 2000; n++) {
        int64_t first = n % 3 == 2 ? HAND_NULL : n % 3, text = n % 4 ? n : HAND_NULL;
        hand_change(batch, table, HAND_ROW(first, n, text), n % 5 + 1);
        hand_row row = HAND_ROW(text, first == HAND_NULL ? first : first << 62, n);
        row.weight = n % 5 + 1;
        hand_bag_add(&want, &row);
    }
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    ivm_batch_free(batch);
    cr_assert(hand_bag_equal(&sink->rows, &want));
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(1, 1, 1), -2), IVM_OK);
    hand_row gone = HAND_ROW(1, 1ll << 62, 1);
    gone.weight = -2;
    hand_bag_add(&want, &gone);
    cr_assert(hand_bag_equal(&sink->rows, &want));
    hand_bag_free(&want);
    hand_close(&it);
}

Test(operators_project, plain_columns_are_not_copied)
{
    hand it;
    hand_open(&it, NULL);
    ivm__operator *scan, *project;
    ivm_table *table = hand_table(&it, "t", types, "???", NULL);
    ivm__expression *columns[1] = { case_column(&it, 1, IVM_INT64) };
    cr_assert_eq(ivm__scan_create(&it.engine->memory, table, table->heading, &scan), IVM_OK);
    hand_add(&it, scan, NULL, 0);
    cr_assert_eq(ivm__project_create(&it.engine->memory, &it.engine->texts, columns, 1, &project), IVM_OK);
    hand_add(&it, project, scan, 0);
    hand_sink *sink = hand_sink_add(&it, project);
    int64_t cells[3] = { 1, 2, 3 }, others[3] = { 4, 5, 6 };
    int32_t offsets[4] = { 0 };
    ivm_column_data data[3] = { { .values = cells }, { .values = others }, { .values = "", .offsets = offsets } };
    ivm_rows rows = { .rows_count = 3, .columns_count = 3, .columns = data };
    ivm_batch *batch = hand_batch(&it);
    cr_assert_eq(ivm_batch_columns(batch, table, IVM_INSERT, &rows), IVM_OK);
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    ivm_batch_free(batch);
    cr_assert_eq(sink->first_cells, others);
    cr_assert_null(sink->weights);
    hand_close(&it);
}

Test(operators_project, a_row_that_fails_rejects_the_step)
{
    hand it;
    ivm_table *table;
    project_open(&it, NULL, &table);
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(2, 5, 1), 1), IVM_OVERFLOW);
    cr_assert_str_eq(it.error.message, "view v: a result in a projected column is out of range");
    cr_assert_eq(table->store.rows_live, 0);
    cr_assert_eq(hand_push_row(&it, table, HAND_ROW(1, 5, 1), 1), IVM_OK);
    hand_close(&it);
}

Test(operators_project, a_column_that_is_not_carried_stays_so)
{
    hand it;
    ivm_table *table;
    hand_sink *sink = project_open(&it, NULL, &table);
    ivm__operator *project = it.program.operators[1];
    uint64_t cells[2] = { 0, 1 };
    ivm__vector vectors[3] = { { .type = IVM_INT64, .cells = cells }, { .type = IVM_INT64 }, { .type = IVM_STRING } };
    ivm__chunk chunk = { .rows_count = 2, .columns_count = 3, .columns = vectors };
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    cr_assert_eq(project->class->consume(project, &step, 0, &chunk), IVM_OK);
    cr_assert(!sink->carried[0] && sink->carried[1] && !sink->carried[2]);
    ivm__engine_settle(it.engine);
    hand_close(&it);
}

Test(operators_project, running_out_of_memory_changes_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        ivm_table *table;
        project_open(&it, &trial.functions, &table);
        ivm_batch *batch = hand_batch(&it);
        hand_change(batch, table, HAND_ROW(2, 5, 1), 1);
        hand_trial_arm(&trial);
        ivm_status status = hand_step(&it, batch, true);
        hand_trial_judge(&trial, status, IVM_OVERFLOW);
        ivm_batch_free(batch);
        cr_assert_eq(hand_push_row(&it, table, HAND_ROW(0, 5, 1), 1), IVM_OK);
        hand_close(&it);
    }
    cr_assert_gt(trial.failures, 3);
}

Test(operators_project, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__expression *columns[3];
        columns_make(&it, columns);
        ivm__operator *project;
        hand_trial_arm(&trial);
        ivm_status status = ivm__project_create(&it.engine->memory, &it.engine->texts, columns, 3, &project);
        hand_trial_judge_made(&trial, &it, status, project);
    }
    cr_assert_gt(trial.failures, 2);
}
