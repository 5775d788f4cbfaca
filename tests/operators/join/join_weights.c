/* Weights of joined rows: what fits once terms are summed, and what is past the end. */
#include <criterion/criterion.h>

#include "join_bags.h"

/* d and e, both bags, joined on c0, below a judge. */
static void bags_open(hand *it, ivm_table *tables[CASE_TABLES], join_case *join, uint64_t *random)
{
    hand_open(it, NULL);
    case_tables(it, tables);
    *join =
        (join_case){ .leaves_count = 2, .leaves = { { .table = 3 }, { .table = 4 } }, .equal_count = 1, .equal = { { 0, CASE_COLUMNS } } };
    join->above[0] = true;
    case_program(join, it, tables, random);
    ivm__operator *judge = NULL;
    const ivm__operator *below = join->join;
    ivm_status status = ivm__judge_create(&it->engine->memory, &it->engine->texts, 7, below->types, below->columns_count, &judge);
    cr_assert_eq(status, IVM_OK);
    hand_add(it, judge, join->join, 0);
    cr_assert_eq(hand_fill(it, true), IVM_OK);
}

Test(operators_join_weights, a_weight_past_int64_is_an_overflow_once_terms_are_summed)
{
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        uint64_t random = 11 + rule;
        join_case join;
        hand it;
        ivm_table *tables[CASE_TABLES];
        bags_open(&it, tables, &join, &random);
        join.planner->rule = rule;
        hand_row d = HAND_ROW(1, 0, 0, 0), e = HAND_ROW(1, 0, 0, 0), other = HAND_ROW(2, 0, 0, 0);
        int64_t large = 4000000000;

        ivm_batch *batch = hand_batch(&it);
        hand_change(batch, tables[3], d, large);
        hand_change(batch, tables[4], other, large);
        cr_assert_eq(hand_push(&it, batch), IVM_OK, "heavy rows that do not meet");

        batch = hand_batch(&it);
        hand_change(batch, tables[4], e, large);
        cr_assert_eq(hand_push(&it, batch), IVM_OVERFLOW);
        cr_assert_str_eq(it.error.message, "view v: the weight of a row is out of range within the plan");

        /* the new e meets the old d in one term: 16e18, and the gone d takes it away again */
        batch = hand_batch(&it);
        hand_change(batch, tables[4], e, large);
        hand_change(batch, tables[3], d, 1 - large);
        cr_assert_eq(hand_push(&it, batch), IVM_OK);

        batch = hand_batch(&it);
        hand_change(batch, tables[3], d, 2305843010);
        cr_assert_eq(hand_push(&it, batch), IVM_OVERFLOW);
        batch = hand_batch(&it);
        hand_change(batch, tables[3], d, 2305843008);
        cr_assert_eq(hand_push(&it, batch), IVM_OK);
        hand_close(&it);
    }
}

Test(operators_join_weights, a_product_past_128_bits_is_an_overflow)
{
    uint64_t random = 12;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 3, .leaves = { { .table = 3 }, { .table = 4 }, { .table = 3 } } };
    join.above[0] = true;
    case_program(&join, &it, tables, &random);
    hand_sink_add(&it, join.join);
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    ivm_batch *batch = hand_batch(&it);
    hand_change(batch, tables[3], HAND_ROW(1, 0, 0, 0), INT64_MAX);
    hand_change(batch, tables[4], HAND_ROW(1, 0, 0, 0), INT64_MAX);
    cr_assert_eq(hand_push(&it, batch), IVM_OVERFLOW);
    cr_assert_str_eq(it.error.message, "view v: the weight of a joined row is out of range");
    hand_close(&it);
}

Test(operators_join_weights, a_kept_leaf_s_weight_past_int64_is_an_overflow)
{
    uint64_t random = 13;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 2,
                       .leaves = { { 3, CASE_FILTER_KEPT, { 0 } }, { 0, CASE_BARE, { 0 } } },
                       .equal_count = 1,
                       .equal = { { 0, CASE_COLUMNS } } };
    case_program(&join, &it, tables, &random);
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    ivm_batch *batch = hand_batch(&it);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(1, 0, 0, 0), INT64_MAX);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    batch = hand_batch(&it);
    hand_change(batch, tables[3], HAND_ROW(1, 1, 0, 0), 1);
    cr_assert_eq(hand_push(&it, batch), IVM_OVERFLOW);
    cr_assert(bags_hold(&join, bags));
    bags_free(bags);
    hand_close(&it);
}
