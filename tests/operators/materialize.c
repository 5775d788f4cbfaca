/* Materialize: a view's rows add up, are undone and committed, and must fit int64 when a step ends. */
#include <criterion/criterion.h>

#include "hand.h"

static const ivm_type types[] = { IVM_INT64, IVM_STRING };

/* scan t, scan u -> materialize: two inputs of one root, so that rows of both meet */
typedef struct two {
    hand it;
    ivm_table *t, *u;
    ivm__operator *root;
} two;

static void two_open(two *at, const ivm_allocator *allocator)
{
    ivm__operator *first, *second;
    hand_open(&at->it, allocator);
    at->t = hand_table(&at->it, "t", types, "??", NULL);
    at->u = hand_table(&at->it, "u", types, "??", NULL);
    cr_assert_eq(ivm__scan_create(&at->it.engine->memory, at->t, at->t->heading, &first), IVM_OK);
    cr_assert_eq(ivm__scan_create(&at->it.engine->memory, at->u, at->u->heading, &second), IVM_OK);
    hand_add(&at->it, first, NULL, 0);
    hand_add(&at->it, second, NULL, 0);
    cr_assert_eq(ivm__materialize_create(&at->it.engine->memory, &at->it.engine->texts, 7, types, 2, &at->root), IVM_OK);
    hand_add(&at->it, at->root, first, 0);
    second->next = at->root;
}

static ivm_status push_row(two *at, ivm_table *table, hand_row row, int64_t weight, bool keep)
{
    ivm_batch *batch = hand_batch(&at->it);
    hand_change(batch, table, row, weight);
    ivm_status status = hand_step(&at->it, batch, keep);
    ivm_batch_free(batch);
    return status;
}

static bool holds(two *at, hand_bag *want)
{
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(at->root), &got);
    bool equal = hand_bag_equal(&got, want);
    hand_bag_free(&got);
    return equal;
}

Test(operators_materialize, equal_rows_add_up_and_zeros_go)
{
    two at;
    hand_bag want = { .columns_count = 2 };
    uint64_t random = 21;
    two_open(&at, NULL);
    for (uint32_t n = 0; n < 600; n++) {
        hand_row row = HAND_ROW(hand_below(&random, 8) ? hand_below(&random, 3) : HAND_NULL, hand_below(&random, 3));
        ivm_table *table = hand_below(&random, 2) ? at.t : at.u;
        bool keep = hand_below(&random, 3) != 0;
        row.weight = hand_below(&random, 2) ? 1 + (int)hand_below(&random, 3) : -1;
        ivm_status status = push_row(&at, table, row, (int64_t)row.weight, keep);
        cr_assert(status == IVM_OK || (row.weight < 0 && status == IVM_ROW_NOT_FOUND));
        if (status == IVM_OK && keep) {
            hand_bag_add(&want, &row);
        }
        cr_assert(holds(&at, &want), "step %u", n);
    }
    hand_bag_free(&want);
    hand_close(&at.it);
}

Test(operators_materialize, a_net_weight_past_int64_is_an_overflow)
{
    two at;
    two_open(&at, NULL);
    hand_bag want = { .columns_count = 2 };
    hand_row row = HAND_ROW(1, 2);
    cr_assert_eq(push_row(&at, at.t, row, INT64_MAX, true), IVM_OK);
    cr_assert_eq(push_row(&at, at.u, row, 1, true), IVM_OVERFLOW);
    cr_assert_str_eq(at.it.error.message, "view v: the weight of a row is out of range");
    row.weight = INT64_MAX;
    hand_bag_add(&want, &row);
    cr_assert(holds(&at, &want));

    ivm_batch *batch = hand_batch(&at.it);
    hand_change(batch, at.u, row, 5);
    hand_change(batch, at.t, row, -5);
    cr_assert_eq(hand_step(&at.it, batch, true), IVM_OK, "only what it comes to counts");
    ivm_batch_free(batch);
    cr_assert(holds(&at, &want));
    hand_bag_free(&want);
    hand_close(&at.it);
}

Test(operators_materialize, running_out_of_memory_changes_nothing)
{
    uint64_t failures = 0;
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        two at;
        two_open(&at, &trial.functions);
        hand_bag want = { .columns_count = 2 };
        hand_row row = HAND_ROW(1, 2), other = HAND_ROW(HAND_NULL, HAND_NULL);
        cr_assert_eq(push_row(&at, at.t, row, 1, true), IVM_OK);
        hand_bag_add(&want, &row);
        ivm_batch *batch = hand_batch(&at.it);
        hand_bag after = { .columns_count = 2 };
        for (int64_t i = 0; i < 2000; i++) {
            hand_row come = HAND_ROW(i, i % 3);
            hand_change(batch, at.u, come, 1);
            hand_bag_add(&after, &come);
        }
        hand_change(batch, at.t, row, -1);
        hand_change(batch, at.t, other, 2);
        other.weight = 2;
        hand_bag_add(&after, &other);
        hand_trial_arm(&trial);
        ivm_status status = hand_step(&at.it, batch, true);
        bool done = hand_trial_disarm(&trial);
        /* a block that could not be made smaller at the end is no failure */
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY), "allocation %llu", (unsigned long long)trial.n);
        failures += status != IVM_OK;
        cr_assert(holds(&at, status == IVM_OK ? &after : &want), "allocation %llu", (unsigned long long)trial.n);
        ivm_batch_free(batch);
        hand_bag_free(&want);
        hand_bag_free(&after);
        hand_close(&at.it);
    }
    cr_assert_gt(failures, 5);
}

Test(operators_materialize, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__operator *root;
        hand_trial_arm(&trial);
        ivm_status status = ivm__materialize_create(&it.engine->memory, &it.engine->texts, 7, types, 2, &root);
        hand_trial_judge_made(&trial, &it, status, root);
    }
    cr_assert_gt(trial.failures, 2);
}
