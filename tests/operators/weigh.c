/* Weigh and judge: sums of weights that ask for a closer look, and the closer look. */
#include "hand.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define MOST ((ivm__weight)INT64_MAX)
#define HUGE_WEIGHT ((ivm__weight)1 << 120)

static const ivm_type types[] = { IVM_INT64 };

static hand it;
static ivm__operator *made;
static uint32_t asked;
static ivm_status answer;

static ivm_status judge(void *context, ivm__step *step)
{
    cr_assert_eq(context, &it);
    (void)step;
    asked++;
    return answer;
}

static void open_one(bool negative)
{
    hand_open(&it, NULL);
    ivm__weigher weigher = { judge, &it };
    cr_assert_eq(ivm__weigh_create(&it.engine->memory, types, 1, negative, weigher, &made), IVM_OK);
    hand_add(&it, made, NULL, 0);
    asked = 0;
    answer = IVM_OK;
}

/* A chunk of one row, or of `ones` rows of weight 1, in a step that is kept where it may be; whether the judge was asked. */
static bool takes_rows(ivm__weight weight, uint32_t ones, bool keep)
{
    static uint64_t cells[IVM__CHUNK_ROWS];
    ivm_stats stats = { 0 };
    ivm_error error = IVM_ERROR_INIT;
    ivm__step step;
    ivm__step_init(&step, it.engine, &stats, &error);
    ivm__vector column = { .type = IVM_INT64, .cells = cells };
    ivm__chunk chunk = { .rows_count = ones ? ones : 1, .columns_count = 1, .columns = &column, .weights = ones ? NULL : &weight };
    uint32_t before = asked;
    cr_assert_eq(made->class->consume(made, &step, 0, &chunk), IVM_OK);
    ivm_status status = ivm__program_run(&it.program, &step);
    cr_assert_eq(status, asked > before ? answer : IVM_OK);
    if (keep && status == IVM_OK) {
        ivm__program_commit(&it.program);
    } else {
        ivm__program_undo(&it.program);
    }
    ivm__engine_settle(it.engine);
    return asked > before;
}

static bool takes(ivm__weight weight)
{
    return takes_rows(weight, 0, true);
}

Test(operators_weigh, a_sum_that_fits_asks_nobody)
{
    open_one(false);
    cr_assert_not(takes(MOST));
    cr_assert_not(takes(-MOST));
    cr_assert_not(takes_rows(0, 1000, true));
    cr_assert_not(takes(MOST - 1000));
    cr_assert(takes(1));
    cr_assert_not(takes(-1), "it fits again");
    hand_close(&it);
}

Test(operators_weigh, what_is_undone_was_never_added)
{
    open_one(false);
    cr_assert_not(takes_rows(MOST, 0, false));
    cr_assert_not(takes(1));
    answer = IVM_OVERFLOW;
    cr_assert(takes(MOST));
    cr_assert_not(takes(MOST - 1), "the step that was refused is not in the sum");
    hand_close(&it);
}

Test(operators_weigh, magnitudes_are_added_where_weights_may_be_negative)
{
    open_one(true);
    cr_assert_not(takes(MOST - 1));
    cr_assert_not(takes(-1));
    cr_assert(takes(-1));
    cr_assert(takes(1));
    hand_close(&it);
}

Test(operators_weigh, weights_too_large_to_add_up_are_judged)
{
    open_one(false);
    cr_assert(takes_rows(HUGE_WEIGHT, 0, false));
    cr_assert_not(takes(1));
    cr_assert(takes(HUGE_WEIGHT));
    cr_assert(takes(1), "it is there");
    cr_assert(takes(-HUGE_WEIGHT), "in flight it may be more than 128 bits hold");
    cr_assert_not(takes(1), "the sum is exact whatever it was");
    hand_close(&it);
    open_one(true);
    cr_assert(takes(HUGE_WEIGHT));
    cr_assert(takes(1), "a bound never falls");
    hand_close(&it);
}

/* Rows of 2^63 that together are more than 2^94, and go again: the sum is as exact as before. */
Test(operators_weigh, a_sum_past_what_weights_add_up_to_is_exact)
{
    open_one(false);
    const ivm__weight much = (ivm__weight)1 << 94;
    cr_assert(takes(much));
    cr_assert(takes((ivm__weight)1 << 80));
    cr_assert(takes(-much), "2^80 is left");
    cr_assert(takes(1));
    cr_assert_not(takes(-((ivm__weight)1 << 80)));
    hand_close(&it);
}

Test(operators_weigh, rows_pass_on_uncounted_while_a_leaf_is_loaded)
{
    open_one(false);
    hand_sink *sink = hand_sink_add(&it, made);
    ivm_stats stats = { 0 };
    ivm__step step;
    ivm__step_init(&step, it.engine, &stats, NULL);
    step.loading = true;
    uint64_t cell = 7;
    ivm__weight weight = MOST;
    ivm__vector column = { .type = IVM_INT64, .cells = &cell };
    ivm__chunk chunk = { .rows_count = 1, .columns_count = 1, .columns = &column, .weights = &weight };
    cr_assert_eq(made->class->consume(made, &step, 0, &chunk), IVM_OK);
    cr_assert_eq(made->class->consume(made, &step, 0, &chunk), IVM_OK);
    cr_assert_eq(made->class->finish(made, &step), IVM_OK);
    cr_assert_eq(asked, 0u);
    cr_assert_not_null(sink);
    hand_close(&it);
}

/* ---- Judge ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status judged(const uint64_t *cells, const ivm__weight *weights, uint32_t rows_count)
{
    ivm_stats stats = { 0 };
    ivm_error error = IVM_ERROR_INIT;
    ivm__step step;
    ivm__step_init(&step, it.engine, &stats, &error);
    ivm__vector columns[2] = { { .type = IVM_INT64, .cells = (void *)cells }, { .type = IVM_INT64 } };
    ivm__chunk chunk = { .rows_count = rows_count, .columns_count = 2, .columns = columns, .weights = (ivm__weight *)weights };
    cr_assert_eq(made->class->consume(made, &step, 0, &chunk), IVM_OK);
    ivm_status status = ivm__program_run(&it.program, &step);
    cr_assert(status == IVM_OK || strstr(error.message, "view v"), "%s", error.message);
    if (status == IVM_OK) {
        ivm__program_commit(&it.program);
    } else {
        ivm__program_undo(&it.program);
    }
    ivm__engine_settle(it.engine);
    return status;
}

Test(operators_weigh, a_judge_looks_at_net_rows)
{
    static const ivm_type two[] = { IVM_INT64, IVM_INT64 };
    hand_open(&it, NULL);
    cr_assert_eq(ivm__judge_create(&it.engine->memory, &it.engine->texts, 7, two, 2, &made), IVM_OK);
    hand_add(&it, made, NULL, 0);
    cr_assert_eq(judged((uint64_t[]){ 1, 2, 1 }, (ivm__weight[]){ HUGE_WEIGHT, MOST, -HUGE_WEIGHT }, 3), IVM_OK);
    cr_assert_eq(judged((uint64_t[]){ 1 }, (ivm__weight[]){ MOST }, 1), IVM_OK);
    cr_assert_eq(judged((uint64_t[]){ 2 }, (ivm__weight[]){ 1 }, 1), IVM_OVERFLOW);
    cr_assert_eq(judged((uint64_t[]){ 2, 1 }, (ivm__weight[]){ -1, -MOST }, 2), IVM_OK);
    cr_assert_eq(judged((uint64_t[]){ 2 }, NULL, 1), IVM_OK);
    cr_assert_eq(judged((uint64_t[]){ 3 }, (ivm__weight[]){ -MOST - 2 }, 1), IVM_OVERFLOW);
    hand_close(&it);
}
