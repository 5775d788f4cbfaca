/* Aggregates over weights below 0: what of a row each aggregate sees, and rows that cannot be computed. */
#include <criterion/criterion.h>

#include "allocator.h"
#include "join_case.h"

enum { COUNT, SUM, AVG, MIN, COUNT_DISTINCT, SUM_DISTINCT, VAR_SAMP, FUNCTIONS };

/* Of the first column by which it groups and the second. */
typedef struct signed_case {
    hand it;
    ivm__operator *aggregate;
} signed_case;

/* All the aggregates, or the one alone, of v * 2^power. */
static void open_power(signed_case *of, uint32_t power, bool groups, uint32_t alone)
{
    static const ivm__aggregate_function functions[FUNCTIONS] = { IVM__COUNT,          IVM__SUM,          IVM__AVG,     IVM__MIN,
                                                                  IVM__COUNT_DISTINCT, IVM__SUM_DISTINCT, IVM__VAR_SAMP };
    ivm__aggregate_spec specs[FUNCTIONS];
    hand_open(&of->it, NULL);
    hand *it = &of->it;
    uint32_t first = alone == FUNCTIONS ? 0 : alone, count = alone == FUNCTIONS ? FUNCTIONS : 1;
    for (uint32_t i = first; i < first + count; i++) {
        ivm__expression *argument =
            i == COUNT ? NULL : case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, 1, IVM_INT64), case_int64(it, (int64_t)1 << power));
        specs[i] = (ivm__aggregate_spec){ functions[i], argument, NULL, i == AVG || i == VAR_SAMP ? IVM_FLOAT64 : IVM_INT64, "a" };
    }
    ivm__expression *group = groups ? case_column(it, 0, IVM_INT64) : NULL;
    cr_assert_eq(
        ivm__aggregate_create(&it->engine->memory, &it->engine->texts, 1, &group, groups, specs + first, count, NULL, &of->aggregate),
        IVM_OK);
    cr_assert_eq(ivm__aggregate_negative(of->aggregate), IVM_OK);
    of->aggregate->view = "v";
}

static void close_case(signed_case *of)
{
    of->aggregate->class->free(of->aggregate, &of->it.engine->memory);
    hand_close(&of->it);
}

static ivm_status give(signed_case *of, ivm__step *step, uint32_t port, int64_t value, ivm__weight weight)
{
    uint64_t cells[2] = { 1, (uint64_t)value };
    ivm__vector columns[] = { { IVM_INT64, &cells[0], NULL }, { IVM_INT64, &cells[1], NULL } };
    ivm__chunk chunk = { 1, 2, columns, &weight };
    return of->aggregate->class->consume(of->aggregate, step, port, &chunk);
}

/* A step in which one row, 1 and `value`, comes to weigh this; it weighed nothing before. */
static ivm_status come(signed_case *of, int64_t value, ivm__weight weight)
{
    ivm__step step;
    ivm__step_init(&step, of->it.engine, &of->it.stats, &of->it.error);
    cr_assert_eq(give(of, &step, IVM__AGGREGATE_ROWS, value, weight), IVM_OK);
    if (weight > 0) {
        cr_assert_eq(give(of, &step, IVM__AGGREGATE_PRESENT, value, weight), IVM_OK);
    }
    cr_assert_eq(give(of, &step, IVM__AGGREGATE_SUPPORT, value, 1), IVM_OK);
    ivm_status status = of->aggregate->class->finish(of->aggregate, &step);
    (status == IVM_OK ? of->aggregate->class->commit : of->aggregate->class->undo)(of->aggregate);
    ivm__engine_settle(of->it.engine);
    return status;
}

/* The one row of the result: values of the aggregates. */
static void result_read(signed_case *of, hand_row *row)
{
    hand_bag got = { 0 };
    hand_store_rows(ivm__aggregate_result(of->aggregate), &got);
    cr_assert_eq(got.count, 1u);
    *row = got.rows[0];
    hand_bag_free(&got);
}

Test(operators_aggregate_negative, signs_count_for_some_and_presence_for_others)
{
    signed_case of;
    hand_row row;
    open_power(&of, 0, true, FUNCTIONS);
    cr_assert_eq(come(&of, 5, -1), IVM_OK);
    result_read(&of, &row);
    cr_assert(row.cells[1 + COUNT] == -1 && row.cells[1 + SUM] == -5 && !row.nulls[1 + SUM]);
    cr_assert(row.nulls[1 + AVG] && row.nulls[1 + MIN] && row.nulls[1 + SUM_DISTINCT] && row.nulls[1 + VAR_SAMP]);
    cr_assert(row.cells[1 + COUNT_DISTINCT] == 0 && !row.nulls[1 + COUNT_DISTINCT]);
    cr_assert_eq(come(&of, 8, 1), IVM_OK);
    result_read(&of, &row);
    cr_assert(row.cells[1 + COUNT] == 0 && row.cells[1 + SUM] == 3 && row.cells[1 + MIN] == 8,
              "two rows make a group, though they count 0");
    cr_assert(row.nulls[1 + AVG] && row.cells[1 + COUNT_DISTINCT] == 1 && row.cells[1 + SUM_DISTINCT] == 8);
    cr_assert_eq(come(&of, 2, 3), IVM_OK);
    result_read(&of, &row);
    cr_assert(row.cells[1 + COUNT] == 3 && row.cells[1 + SUM] == 9 && row.cells[1 + MIN] == 2 && row.cells[1 + SUM_DISTINCT] == 10);
    cr_assert_eq(row.cells[1 + AVG], 3);
    cr_assert_eq(row.cells[1 + VAR_SAMP], 12); /* (3 * (-25 + 64 + 12) - 81) / 6 */
    close_case(&of);
}

static void rejects_what_fails(ivm__weight weight, bool groups, uint32_t alone)
{
    signed_case of;
    open_power(&of, 62, groups, alone);
    cr_assert_eq(come(&of, 1, 1), IVM_OK);
    cr_assert_eq(come(&of, 2, weight), IVM_OVERFLOW, "aggregate %u, weight %d", alone, (int)weight);
    hand_bag got = { 0 };
    hand_store_rows(ivm__aggregate_result(of.aggregate), &got);
    cr_assert_eq(got.count, 1u);
    cr_assert(alone != FUNCTIONS || got.rows[0].cells[groups + SUM] == (int64_t)1 << 62);
    hand_bag_free(&got);
    close_case(&of);
}

/* 2 * 2^62 is out of range, whichever sign the row has and whichever aggregate sees it. */
Test(operators_aggregate_negative, a_row_that_cannot_be_computed_rejects_the_step)
{
    for (int weight = -3; weight <= 3; weight++) {
        for (uint32_t alone = COUNT + 1; weight && alone <= FUNCTIONS; alone++) {
            rejects_what_fails(weight, false, alone);
            rejects_what_fails(weight, true, alone);
        }
    }
}

Test(operators_aggregate_negative, out_of_memory_in_the_making_leaves_nothing)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    for (uint64_t n = 1, done = 0; !done; n++) {
        hand it;
        hand_open(&it, &functions);
        ivm__aggregate_spec specs[] = { { IVM__STDDEV_POP, case_column(&it, 0, IVM_FLOAT64), NULL, IVM_FLOAT64, "a" },
                                        { IVM__COUNT_DISTINCT, case_column(&it, 1, IVM_STRING), NULL, IVM_INT64, "b" } };
        ivm__expression *groups = NULL;
        ivm__operator *made = NULL;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm__aggregate_create(&it.engine->memory, &it.engine->texts, 1, &groups, 0, specs, 2, NULL, &made);
        if (status == IVM_OK) {
            status = ivm__aggregate_negative(made);
        }
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        if (made) {
            made->class->free(made, &it.engine->memory);
        }
        hand_close(&it);
        cr_assert(test_allocator_is_clean(&allocator), "call %lu leaves something", (unsigned long)n);
    }
}
