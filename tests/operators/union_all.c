/* Union all: what any input sends goes on. */
#include <criterion/criterion.h>

#include "feed.h"

static const ivm_type types[] = { IVM_INT64, IVM_STRING };

Test(operators_union_all, what_any_input_sends_goes_on)
{
    hand it;
    hand_open(&it, NULL);
    ivm__operator *both;
    feed *a = feed_add(&it, types, 2), *b = feed_add(&it, types, 2), *c = feed_add(&it, types, 2);
    cr_assert_eq(ivm__union_all_create(&it.engine->memory, types, 2, &both), IVM_OK);
    cr_assert(both->columns_count == 2 && both->types[1] == IVM_STRING);
    hand_add(&it, both, &a->head, 0);
    feed_wire(b, both, 1);
    feed_wire(c, both, 2);
    hand_sink *sink = hand_sink_add(&it, both);
    hand_bag want = { .columns_count = 2 };
    feed *feeds[] = { a, b, c };
    for (int64_t n = 0; n < 30; n++) {
        hand_row row = HAND_ROW(n % 4, n % 3 ? n % 5 : HAND_NULL);
        row.weight = n % 7 - 3;
        hand_bag_add(&feeds[n % 3]->rows, &row);
        hand_bag_add(&want, &row);
    }
    cr_assert_eq(feed_step(&it, true), IVM_OK);
    cr_assert_eq(sink->chunks_count, 3, "chunks are passed on, not gathered");
    cr_assert(hand_bag_equal(&sink->rows, &want));
    hand_bag_free(&want);
    hand_close(&it);
}

Test(operators_union_all, columns_that_nobody_reads_stay_uncarried)
{
    hand it;
    hand_open(&it, NULL);
    ivm__operator *both;
    feed *a = feed_add(&it, types, 2);
    cr_assert_eq(ivm__union_all_create(&it.engine->memory, types, 2, &both), IVM_OK);
    hand_add(&it, both, &a->head, 0);
    hand_sink *sink = hand_sink_add(&it, both);
    hand_row row = HAND_ROW(1, 2);
    hand_bag_add(&a->rows, &row);
    a->left_out[1] = true;
    cr_assert_eq(feed_step(&it, true), IVM_OK);
    cr_assert(sink->carried[0] && !sink->carried[1]);
    hand_close(&it);
}

Test(operators_union_all, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__operator *both;
        hand_trial_arm(&trial);
        ivm_status status = ivm__union_all_create(&it.engine->memory, types, 2, &both);
        hand_trial_judge_made(&trial, &it, status, both);
    }
    cr_assert_gt(trial.failures, 1);
}
