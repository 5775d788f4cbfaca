/* Joins that run out of memory, in a step and in the making. */
#include <criterion/criterion.h>

#include "join_bags.h"

/* A join with a leaf of every road, tables with rows, a batch that changes all of them. */
static void memory_case(join_case *join, hand *it, ivm_table *tables[CASE_TABLES], hand_bag bags[CASE_TABLES])
{
    case_tables(it, tables);
    *join = (join_case){
        .leaves_count = 4,
        .leaves = { { 3, CASE_BARE, { 0 } }, { 0, CASE_FILTER, { 0 } }, { 2, CASE_FILTER_KEPT, { 0 } }, { 4, CASE_PROJECT, { 0 } } },
        .equal_count = 3,
        .equal = { { 0, CASE_COLUMNS }, { CASE_COLUMNS + 1, 2 * CASE_COLUMNS + 1 }, { 2, 3 * CASE_COLUMNS + 2 } }
    };
    join->residual = true;
    join->above[0] = join->above[CASE_COLUMNS + 2] = join->above[2 * CASE_COLUMNS + 3] = join->above[3 * CASE_COLUMNS] = true;
    ivm_batch *batch = hand_batch(it);
    for (int64_t n = 0; n < 3; n++) {
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(n, n, n, n), 1);
        bag_insert(batch, tables[2], &bags[2], HAND_ROW(n, 1, n, n), 1);
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n, n, n, n), 2);
        bag_insert(batch, tables[4], &bags[4], HAND_ROW(n, n, n, n), 1);
    }
    cr_assert_eq(hand_stage(it, batch), IVM_OK);
    ivm_batch_free(batch);
}

static ivm_batch *memory_batch(hand *it, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES])
{
    ivm_batch *batch = hand_batch(it);
    bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 1, 1), -1);
    bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 9, 1), 1);
    bag_insert(batch, tables[2], &bags[2], HAND_ROW(0, 2, 5, 6), 1);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(1, 0, 1, 1), 1);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(2, 2, 2, 2), -1);
    bag_insert(batch, tables[4], &bags[4], HAND_ROW(1, 1, 1, 8), 3);
    bag_insert(batch, tables[4], &bags[4], HAND_ROW(0, 0, 0, 0), -1);
    return batch;
}

Test(operators_join_memory, running_out_of_memory_in_a_step_changes_nothing, .timeout = 120)
{
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        uint64_t failures = 0;
        bool done = false;
        for (uint64_t n = 1; !done; n++) {
            uint64_t random = 15;
            test_allocator allocator;
            test_allocator_init(&allocator);
            ivm_allocator functions = test_allocator_functions(&allocator);
            hand it;
            join_case join;
            ivm_table *tables[CASE_TABLES];
            hand_bag bags[CASE_TABLES] = { 0 };
            hand_open(&it, &functions);
            memory_case(&join, &it, tables, bags);
            case_program(&join, &it, tables, &random);
            cr_assert_eq(hand_fill(&it, true), IVM_OK);
            join.planner->rule = rule;
            cr_assert(bags_hold(&join, bags));
            hand_bag after[CASE_TABLES];
            bags_copy(after, bags);
            ivm_batch *batch = memory_batch(&it, tables, after);

            test_allocator_arm(&allocator, n);
            ivm_status status = hand_step(&it, batch, true);
            done = !test_allocator_disarm(&allocator);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "allocation %llu: %s", (unsigned long long)n, it.error.message);
            failures += !done;
            cr_assert(bags_hold(&join, done ? after : bags));
            if (!done) {
                cr_assert_eq(it.error.status, IVM_OUT_OF_MEMORY);
                cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
                cr_assert(bags_hold(&join, after));
            }
            ivm_batch_free(batch);
            bags_free(bags);
            bags_free(after);
            hand_close(&it);
            cr_assert(test_allocator_is_clean(&allocator), "allocation %llu", (unsigned long long)n);
        }
        cr_assert_gt(failures, 10);
    }
}

static void note_free(void *state, ivm__memory *unused)
{
    (void)unused;
    *((case_planner *)state)->freed = true;
}

/* The number of allocations that failed until the program was made and filled without. */
static uint64_t creations_failed(uint64_t n, bool *done)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    ivm__memory memory;
    ivm__memory_init(&memory, &functions);
    ivm__texts texts;
    ivm__texts_init(&texts, &memory, 1);
    bool freed = false;
    case_planner planner = { .freed = &freed };
    ivm__probe_key key = { 0, 0 }, back = { CASE_COLUMNS, 0 };
    bool needed[2 * CASE_COLUMNS] = { true };
    ivm__leaf_spec leaves[2] = { { .columns_count = CASE_COLUMNS, .types = case_types, .needed = needed },
                                 { .columns_count = CASE_COLUMNS, .types = case_types, .needed = needed } };
    ivm__probe_spec probes[2] = { { .leaf = 1, .keys_count = 1, .keys = &key }, { .leaf = 0, .keys_count = 1, .keys = &back } };
    ivm__probe_order orders[2] = { { .probes = &probes[0], .probes_count = 1 }, { .probes = &probes[1], .probes_count = 1 } };
    ivm__expression *residual = ivm__expression_column(&memory, 0, IVM_BOOL);
    ivm__join_spec spec = { .leaves = leaves,
                            .leaves_count = 2,
                            .orders = orders,
                            .needed_above = needed,
                            .residual = residual,
                            .planner = { .state = &planner, .free = note_free } };
    ivm__operator *join;
    test_allocator_arm(&allocator, n);
    ivm_status status = ivm__join_create(&memory, &texts, 1, &spec, &join);
    *done = !test_allocator_disarm(&allocator);
    cr_assert_eq(status, *done ? IVM_OK : IVM_OUT_OF_MEMORY);
    cr_assert_eq(freed, !*done, "the planner is taken, whatever the outcome");
    if (*done) {
        join->class->free(join, &memory);
    }
    ivm__texts_deinit(&texts);
    cr_assert(test_allocator_is_clean(&allocator), "allocation %llu", (unsigned long long)n);
    return !*done;
}

Test(operators_join_memory, running_out_of_memory_in_making_it_leaves_nothing)
{
    uint64_t failures = 0;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        failures += creations_failed(n, &done);
    }
    cr_assert_gt(failures, 8);
}
