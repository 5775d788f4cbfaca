/* Outer, semi and anti joins against a nested loop over arrays: all kinds, bags, null keys, conditions that fail, weights below zero, both sides
 * changing at once, steps undone. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "allocator.h"
#include "outer_case.h"
#include "outer_state.h"

static const ivm_join_kind kinds[] = { IVM_LEFT_JOIN, IVM_RIGHT_JOIN, IVM_FULL_JOIN, IVM_SEMI_JOIN, IVM_ANTI_JOIN };
#define KINDS (sizeof kinds / sizeof *kinds)

/* ---- Random joins under random steps -------------------------------------------------------------------------------------------------- */

static hand_row draw_row(uint64_t *random)
{
    hand_row row = { 0 };
    for (uint32_t c = 0; c < OUTER_COLUMNS; c++) {
        row.nulls[c] = hand_below(random, 5) == 0;
        row.cells[c] = row.nulls[c] ? 0 : hand_below(random, hand_below(random, 40) ? 3 : 5);
    }
    return row;
}

/* Rows that come, and rows that go or change their weight, here and there in several parts that meet in the step. */
static void draw_side(outer_case *join, uint32_t side, uint64_t *random)
{
    const hand_bag *rows = &join->rows[side];
    join->feeds[side]->chunk_rows = 1 + hand_below(random, 5);
    for (uint32_t n = hand_below(random, 5); n > 0; n--) {
        hand_row row = draw_row(random);
        int weight = join->negative[side] ? (int)hand_below(random, 5) - 2 : (int)hand_below(random, 3);
        if (hand_below(random, 4) == 0) {
            outer_send(join, side, row, 3);
            weight -= 3;
        }
        outer_send(join, side, row, weight);
        if (!join->negative[side] && weight < 0) {
            outer_send(join, side, row, -weight);
        }
    }
    uint32_t goers = rows->count > 6 ? 4 : 2;
    for (size_t i = 0; i < rows->count; i++) {
        if (hand_below(random, 8) >= goers) {
            continue;
        }
        __int128 weight = rows->rows[i].weight;
        int change = join->negative[side] && hand_below(random, 2) ? (int)hand_below(random, 5) - 2 : 0;
        outer_send(join, side, rows->rows[i], change ? change : hand_below(random, 2) || weight < 0 ? -weight : -1);
    }
}

static bool step_agrees(outer_case *join, bool initial, uint64_t *random)
{
    if (hand_below(random, 5)) {
        draw_side(join, 0, random);
    }
    if (hand_below(random, 5)) {
        draw_side(join, 1, random);
    }
    bool fails = outer_fails(join);
    ivm_status status = outer_step(join, initial, hand_below(random, 4) != 0);
    return status == (fails ? IVM_OVERFLOW : IVM_OK) && outer_holds(join);
}

static bool random_case(uint64_t seed, uint32_t *failures)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    outer_case join;
    outer_draw(&join, &random);
    outer_open(&join, NULL);
    bool right = step_agrees(&join, true, &random);
    for (uint32_t n = 0; right && n < 20; n++) {
        join.it.error.status = IVM_OK;
        right = step_agrees(&join, false, &random);
        *failures += join.it.error.status == IVM_OVERFLOW;
        const char *wrong = outer_validate(&join);
        if (wrong) {
            fprintf(stderr, "step %u: %s\n", n, wrong);
            right = false;
        }
    }
    outer_close(&join);
    return right;
}

Test(operators_outer, random_joins_agree_with_a_nested_loop, .timeout = 300)
{
    uint32_t failures = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        cr_assert(random_case(seed, &failures), "seed %llu", (unsigned long long)seed);
    }
    cr_assert_gt(failures, 100);
}

/* ---- By hand ---------------------------------------------------------------------------------------------------------------------------- */

/* Left c0 = right c0. */
static void open_by_first(outer_case *join, ivm_join_kind kind, const ivm_allocator *allocator)
{
    *join = (outer_case){ .kind = kind, .keys_count = 1 };
    outer_open(join, allocator);
}

static hand_row row_of(int64_t key, int64_t other)
{
    return HAND_ROW(key, other, other, other);
}

Test(operators_outer, a_row_that_finds_a_partner_and_loses_it_changes_nothing)
{
    for (size_t k = 0; k < KINDS; k++) {
        outer_case join;
        open_by_first(&join, kinds[k], NULL);
        outer_send(&join, 0, row_of(1, 5), 1);
        outer_send(&join, 1, row_of(2, 5), 1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        uint32_t touched = ivm__materialize_result(join.root)->last_count;
        outer_send(&join, 1, row_of(1, 6), 1);
        outer_send(&join, 0, row_of(2, 6), 1);
        outer_send(&join, 1, row_of(1, 6), -1);
        outer_send(&join, 0, row_of(2, 6), -1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        cr_assert(outer_holds(&join));
        cr_assert_null(outer_validate(&join));
        cr_assert_eq(ivm__materialize_result(join.root)->last_count, 0, "nothing is sent (before: %u)", touched);
        outer_close(&join);
    }
}

Test(operators_outer, one_partner_for_another_changes_joined_rows_alone)
{
    for (size_t k = 0; k < KINDS; k++) {
        outer_case join;
        open_by_first(&join, kinds[k], NULL);
        outer_send(&join, 0, row_of(1, 5), 2);
        outer_send(&join, 1, row_of(1, 7), 1);
        cr_assert_eq(outer_step(&join, true, true), IVM_OK);
        outer_send(&join, 1, row_of(1, 7), -1);
        outer_send(&join, 1, row_of(1, 8), 1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        cr_assert(outer_holds(&join));
        bool joins = kinds[k] != IVM_SEMI_JOIN && kinds[k] != IVM_ANTI_JOIN;
        ivm__row_id rows[8];
        ivm__weight weights[8];
        uint32_t next = 0;
        cr_assert_eq(ivm__store_changes_last(ivm__materialize_result(join.root), &next, 8, rows, weights), joins ? 2 : 0);
        outer_close(&join);
    }
}

Test(operators_outer, a_change_meets_the_rows_it_matches_and_no_others)
{
    for (size_t k = 0; k < KINDS; k++) {
        outer_case join;
        open_by_first(&join, kinds[k], NULL);
        for (int64_t n = 0; n < 5000; n++) {
            outer_send(&join, 0, row_of(n / 5, n), 1);
            outer_send(&join, 1, row_of(n / 5, n), 1);
        }
        cr_assert_eq(outer_step(&join, true, true), IVM_OK);
        outer_send(&join, 0, row_of(77, 0), 1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        cr_assert(join.it.stats.rows_probed == 1 && join.it.stats.rows_matched == 5);
        outer_send(&join, 1, row_of(77, 1), 1);
        outer_send(&join, 1, row_of(5000, 1), 1);
        outer_send(&join, 1, row_of(HAND_NULL, 1), 1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        cr_assert(join.it.stats.rows_probed == 2 && join.it.stats.rows_matched == 6);
        cr_assert(outer_holds(&join));
        outer_close(&join);
    }
}

Test(operators_outer, a_copy_of_a_partner_meets_nobody_where_no_pair_is_emitted)
{
    outer_case join;
    open_by_first(&join, IVM_SEMI_JOIN, NULL);
    outer_send(&join, 0, row_of(1, 5), 1);
    outer_send(&join, 1, row_of(1, 7), 1);
    cr_assert_eq(outer_step(&join, true, true), IVM_OK);
    outer_send(&join, 1, row_of(1, 7), 3);
    outer_send(&join, 0, row_of(1, 5), 1);
    cr_assert_eq(outer_step(&join, false, true), IVM_OK);
    cr_assert_eq(join.it.stats.rows_probed, 0);
    cr_assert(outer_holds(&join));
    outer_close(&join);
}

Test(operators_outer, more_rows_than_a_chunk_come_and_go)
{
    for (size_t k = 0; k < KINDS; k++) {
        outer_case join;
        open_by_first(&join, kinds[k], NULL);
        for (int sign = 1; sign >= -1; sign -= 2) {
            for (int64_t n = 0; n < 2500; n++) {
                outer_send(&join, 0, row_of(n, n), sign);
                outer_send(&join, 1, row_of(n % 3 ? n : 1, n), sign * 2);
            }
            cr_assert_eq(outer_step(&join, sign > 0, true), IVM_OK);
            cr_assert(outer_holds(&join));
        }
        const ivm__outer *made = (const ivm__outer *)join.join;
        cr_assert(made->left.rows.store.rows_live == 0 && made->right.rows.store.rows_live == 0);
        cr_assert(made->left.index->used == 0 && made->right.index->used == 0);
        cr_assert_null(outer_validate(&join));
        outer_close(&join);
    }
}

Test(operators_outer, an_id_given_again_begins_without_partners)
{
    for (size_t k = 0; k < KINDS; k++) {
        outer_case join;
        open_by_first(&join, kinds[k], NULL);
        for (int64_t n = 0; n < 40; n++) {
            outer_send(&join, 0, row_of(n % 2, n), 1);
            outer_send(&join, 1, row_of(n % 4, n), 1);
            if (n >= 2) {
                outer_send(&join, 0, row_of((n - 2) % 2, n - 2), -1);
                outer_send(&join, 1, row_of((n - 2) % 4, n - 2), -1);
            }
            cr_assert_eq(outer_step(&join, false, true), IVM_OK);
            cr_assert(outer_holds(&join));
            cr_assert_null(outer_validate(&join));
        }
        cr_assert_leq(((const ivm__outer *)join.join)->left.rows.store.rows_end, 6);
        outer_close(&join);
    }
}

/* Columns that nobody above reads are not carried: they play no part. */
Test(operators_outer, columns_not_carried_play_no_part)
{
    outer_case join;
    open_by_first(&join, IVM_LEFT_JOIN, NULL);
    for (uint32_t side = 0; side < 2; side++) {
        join.feeds[side]->left_out[2] = join.feeds[side]->left_out[3] = true;
        outer_send(&join, side, row_of(1, 5), 1);
        outer_send(&join, side, row_of(2 + side, 5), 1);
    }
    cr_assert_eq(outer_step(&join, true, true), IVM_OK);
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(join.root), &got);
    hand_bag_settle(&got);
    cr_assert_eq(got.count, 2);
    for (size_t i = 0; i < got.count; i++) {
        cr_assert(got.rows[i].nulls[2] && got.rows[i].nulls[3] && got.rows[i].nulls[6]);
        cr_assert_eq(got.rows[i].nulls[4], got.rows[i].cells[0] == 2);
    }
    hand_bag_free(&got);
    outer_close(&join);
}

/* ---- Weights out of range ----------------------------------------------------------------------------------------------------------------- */

Test(operators_outer, a_joined_weight_past_int64_is_an_overflow)
{
    outer_case join;
    open_by_first(&join, IVM_LEFT_JOIN, NULL);
    outer_send(&join, 0, row_of(1, 1), 4000000000);
    outer_send(&join, 1, row_of(1, 1), 2000000000);
    cr_assert_eq(outer_step(&join, true, true), IVM_OK);
    outer_send(&join, 1, row_of(1, 1), 2000000000);
    cr_assert_eq(outer_step(&join, false, true), IVM_OVERFLOW);
    cr_assert_str_eq(join.it.error.message, "view v: the weight of a joined row is out of range");
    outer_send(&join, 1, row_of(1, 1), 2000000000);
    outer_send(&join, 0, row_of(1, 1), -3999999999);
    cr_assert_eq(outer_step(&join, false, true), IVM_OK, "pairs of old and new do not count");
    cr_assert(outer_holds(&join));
    outer_send(&join, 1, row_of(1, 1), INT64_MAX);
    cr_assert_eq(outer_step(&join, false, true), IVM_OVERFLOW);
    cr_assert_str_eq(join.it.error.message, "view v: the weight of a row is out of range");
    outer_close(&join);
}

Test(operators_outer, both_rows_of_nulls_padded_are_one_row)
{
    outer_case join;
    open_by_first(&join, IVM_FULL_JOIN, NULL);
    hand_row nulls = row_of(HAND_NULL, HAND_NULL);
    outer_send(&join, 0, nulls, INT64_MAX);
    cr_assert_eq(outer_step(&join, true, true), IVM_OK);
    join.root->class->commit(join.root);
    outer_send(&join, 1, nulls, 1);
    join.join->next = NULL; /* the root would say it too */
    cr_assert_eq(outer_step(&join, false, true), IVM_OVERFLOW);
    outer_send(&join, 0, nulls, -1);
    outer_send(&join, 1, nulls, 1);
    cr_assert_eq(outer_step(&join, false, true), IVM_OK);
    outer_close(&join);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

static void fill_some(outer_case *join)
{
    for (int64_t n = 0; n < 20; n++) {
        outer_send(join, 0, row_of(n % 7 ? n : HAND_NULL, n % 3), n % 2 + 1);
        outer_send(join, 1, row_of(n % 5 ? n + 10 : HAND_NULL, n % 3), n % 3 + 1);
    }
}

static void change_much(outer_case *join)
{
    for (int64_t n = 0; n < 1200; n++) {
        outer_send(join, 0, row_of(n / 2 + 5, n), 1);
        outer_send(join, 1, row_of(n / 2 + 300, n), 2);
    }
    for (int64_t n = 1; n < 20; n += 2) {
        outer_send(join, 0, row_of(n % 7 ? n : HAND_NULL, n % 3), -2);
        outer_send(join, 1, row_of(n % 5 ? n + 10 : HAND_NULL, n % 3), -1);
    }
}

static void run_out_of_memory(outer_case drawn)
{
    uint64_t failures = 0;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        test_allocator allocator;
        test_allocator_init(&allocator);
        ivm_allocator functions = test_allocator_functions(&allocator);
        outer_case join = drawn;
        outer_open(&join, &functions);
        fill_some(&join);
        cr_assert_eq(outer_step(&join, true, true), IVM_OK);
        change_much(&join);
        test_allocator_arm(&allocator, n);
        ivm_status status = outer_step(&join, false, true);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "allocation %llu", (unsigned long long)n);
        failures += !done;
        cr_assert(done || outer_holds(&join), "allocation %llu", (unsigned long long)n);
        cr_assert(done || !outer_validate(&join), "allocation %llu", (unsigned long long)n);
        outer_send(&join, 0, row_of(11, 1), 1);
        outer_send(&join, 1, row_of(12, 1), 1);
        cr_assert_eq(outer_step(&join, false, true), IVM_OK);
        cr_assert(outer_holds(&join), "allocation %llu: the step after", (unsigned long long)n);
        outer_close(&join);
        cr_assert(test_allocator_is_clean(&allocator), "allocation %llu", (unsigned long long)n);
    }
    cr_assert_gt(failures, 15);
}

Test(operators_outer, running_out_of_memory_changes_nothing, .timeout = 300)
{
    run_out_of_memory((outer_case){ .kind = IVM_FULL_JOIN, .keys_count = 1 });
    run_out_of_memory((outer_case){ .kind = IVM_ANTI_JOIN, .keys_count = 1 });
}

Test(operators_outer, running_out_of_memory_in_making_it_leaves_nothing)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        test_allocator allocator;
        test_allocator_init(&allocator);
        ivm_allocator functions = test_allocator_functions(&allocator);
        hand it;
        hand_open(&it, &functions);
        ivm__memory *memory = &it.engine->memory;
        static const uint32_t keys[] = { 2 };
        ivm__outer_spec spec = { .kind = IVM_LEFT_JOIN,
                                 .left_types = outer_types,
                                 .right_types = outer_types,
                                 .left_count = OUTER_COLUMNS,
                                 .right_count = OUTER_COLUMNS,
                                 .left_keys = keys,
                                 .right_keys = keys,
                                 .keys_count = 1 };
        spec.condition = ivm__expression_literal(memory, &it.engine->texts, IVM_BOOL, false, 1);
        ivm__operator *made;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm__outer_create(memory, &it.engine->texts, 7, &spec, &made);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        if (done) {
            cr_assert_gt(n, 10);
            made->class->free(made, memory);
        }
        hand_close(&it);
        cr_assert(test_allocator_is_clean(&allocator), "allocation %llu", (unsigned long long)n);
    }
}
