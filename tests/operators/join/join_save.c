/* Joins saved and loaded: the rows of leaves over other than scans. Whatever terms they were computed by, equal content gives equal bytes. */
#include <criterion/criterion.h>

#include "holdings.h"
#include "join_bags.h"

/* A join over an engine of its own. */
typedef struct joined {
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES];
    join_case join;
} joined;

/* Tables that hold these rows, and the join that the seed draws, with every other leaf over other than a scan. */
static void joined_open(joined *of, uint64_t seed, const hand_bag rows[CASE_TABLES], const ivm_allocator *allocator)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    *of = (joined){ 0 };
    hand_open(&of->it, allocator);
    case_tables(&of->it, of->tables);
    case_draw(&of->join, &random);
    of->join.residual = false;
    for (uint32_t i = 0; i < of->join.leaves_count; i++) {
        of->join.leaves[i].road = hand_below(&random, 2) ? CASE_FILTER_KEPT : of->join.leaves[i].road;
    }
    ivm_batch *batch = hand_batch(&of->it);
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        of->bags[t].columns_count = CASE_COLUMNS;
        for (size_t i = 0; i < rows[t].count; i++) {
            bag_insert(batch, of->tables[t], &of->bags[t], rows[t].rows[i], (int64_t)rows[t].rows[i].weight);
        }
    }
    cr_assert_eq(hand_stage(&of->it, batch), IVM_OK, "%s", of->it.error.message);
    ivm_batch_free(batch);
    case_program(&of->join, &of->it, of->tables, &random);
}

static void joined_close(joined *of)
{
    bags_free(of->bags);
    hand_close(&of->it);
}

/* The same batch for two joins that hold the same, planned by any rule. */
static void both_step(joined *one, joined *other, uint64_t *random)
{
    uint64_t same[2] = { *random, *random };
    bool keep = hand_below(random, 4) != 0;
    joined *both[2] = { one, other };
    for (uint32_t i = 0; i < 2; i++) {
        hand_bag after[CASE_TABLES];
        ivm_batch *batch = hand_batch(&both[i]->it);
        bags_copy(after, both[i]->bags);
        case_batch(batch, both[i]->tables, after, &same[i]);
        both[i]->join.planner->rule = hand_below(random, CASE_RULES);
        both[i]->join.planner->skip_empty = hand_below(random, 2);
        cr_assert_eq(hand_step(&both[i]->it, batch, keep), IVM_OK, "%s", both[i]->it.error.message);
        ivm_batch_free(batch);
        bags_free(keep ? both[i]->bags : after);
        if (keep) {
            memcpy(both[i]->bags, after, sizeof after);
        }
    }
    *random ^= same[0];
}

static void assert_equal(const joined *one, const joined *other, const char *what, uint64_t seed)
{
    holdings held = { 0 };
    holdings_save_program(&held, &one->it.program);
    holdings_assert_program(&held, &other->it.program, what, seed);
}

/* Bytes that more than the root's are in: some leaf keeps rows. */
static bool run(uint64_t seed)
{
    static const hand_bag nothing[CASE_TABLES];
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    joined one, twin, other;
    holdings held = { .chunk_rows = 1 + hand_below(&random, 5) }, of_join = { 0 };
    joined_open(&one, seed, nothing, NULL);
    joined_open(&twin, seed, nothing, NULL);
    cr_assert(hand_fill(&one.it, true) == IVM_OK && hand_fill(&twin.it, true) == IVM_OK);
    for (uint32_t n = 0; n < 8; n++) {
        both_step(&one, &twin, &random);
        assert_equal(&one, &twin, "by other rules", seed);
    }
    joined_close(&twin);

    joined_open(&other, seed, one.bags, NULL);
    holdings_save_program(&held, &one.it.program);
    holdings_save(&of_join, one.join.join);
    cr_assert_eq(holdings_load_program(&held, other.it.engine, &other.it.program, &other.it.error), IVM_OK, "%s", other.it.error.message);
    cr_assert(bags_hold(&other.join, other.bags) && holdings_is_still(ivm__materialize_result(other.join.root)));
    holdings_assert_program(&held, &other.it.program, "loaded", seed);
    for (uint32_t n = 0; n < 8; n++) {
        both_step(&one, &other, &random);
        cr_assert(bags_hold(&other.join, other.bags), "taken on, seed %llu", (unsigned long long)seed);
        assert_equal(&one, &other, "taken on", seed);
    }
    joined_close(&other);

    joined_open(&other, seed, one.bags, NULL);
    cr_assert_eq(hand_fill(&other.it, true), IVM_OK);
    assert_equal(&one, &other, "filled", seed);
    joined_close(&other);
    joined_close(&one);
    bool keeps = of_join.size > 0;
    holdings_free(&of_join);
    return keeps;
}

Test(operators_join_save, saved_and_loaded_it_goes_on, .timeout = 300)
{
    uint32_t keeping = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        keeping += run(seed);
    }
    cr_assert_gt(keeping, 200);
}

static uint32_t spoilt_load(uint64_t seed, uint32_t rounds)
{
    static const hand_bag nothing[CASE_TABLES];
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    uint32_t loaded = 0;
    joined one, twin;
    holdings held = { .chunk_rows = 1 + hand_below(&random, 40) };
    joined_open(&one, seed, nothing, NULL);
    joined_open(&twin, seed, nothing, NULL);
    cr_assert(hand_fill(&one.it, true) == IVM_OK && hand_fill(&twin.it, true) == IVM_OK);
    for (uint32_t n = 0; n < 5; n++) {
        both_step(&one, &twin, &random);
    }
    holdings_save(&held, one.join.join);
    for (uint32_t n = 0; n < rounds; n++) {
        joined at;
        holdings spoilt;
        joined_open(&at, seed, one.bags, NULL);
        holdings_copy(&spoilt, &held);
        holdings_spoil(&spoilt, &random);
        ivm_status status = holdings_load(&spoilt, at.it.engine, at.join.join, &at.it.error);
        cr_assert(status == IVM_OK || status == IVM_CORRUPT, "seed %llu, round %u", (unsigned long long)seed, n);
        for (uint32_t step = 0; status == IVM_OK && step < 3; step++) {
            hand_bag after[CASE_TABLES];
            ivm_batch *batch = hand_batch(&at.it);
            bags_copy(after, at.bags);
            case_batch(batch, at.tables, after, &random);
            status = hand_step(&at.it, batch, true);
            cr_assert(status == IVM_OK || status == IVM_OVERFLOW);
            ivm_batch_free(batch);
            bags_free(status == IVM_OK ? at.bags : after);
            if (status == IVM_OK) {
                memcpy(at.bags, after, sizeof after);
            }
            loaded += step == 0;
        }
        holdings_free(&spoilt);
        joined_close(&at);
    }
    holdings_free(&held);
    joined_close(&one);
    joined_close(&twin);
    return loaded;
}

Test(operators_join_save, spoilt_bytes_break_nothing, .timeout = 300)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        loaded += spoilt_load(seed, 40);
    }
    cr_assert_gt(loaded, 100);
}

static uint64_t run_out_of_memory(uint64_t seed)
{
    static const hand_bag nothing[CASE_TABLES];
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    hand_trial trial = { 0 };
    joined one, twin;
    holdings held = { 0 };
    joined_open(&one, seed, nothing, NULL);
    joined_open(&twin, seed, nothing, NULL);
    cr_assert(hand_fill(&one.it, true) == IVM_OK && hand_fill(&twin.it, true) == IVM_OK);
    for (uint32_t n = 0; n < 12; n++) {
        both_step(&one, &twin, &random);
    }
    holdings_save_program(&held, &one.it.program);
    while (hand_trial_next(&trial)) {
        joined at;
        joined_open(&at, seed, one.bags, &trial.functions);
        hand_trial_arm(&trial);
        ivm_status status = holdings_load_program(&held, at.it.engine, &at.it.program, &at.it.error);
        bool done = hand_trial_disarm(&trial);
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY), "allocation %llu", (unsigned long long)trial.n);
        joined_close(&at);
    }
    holdings_free(&held);
    joined_close(&one);
    joined_close(&twin);
    return trial.failures;
}

Test(operators_join_save, running_out_of_memory_in_loading_leaves_nothing, .timeout = 300)
{
    uint64_t failures = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        failures += run_out_of_memory(seed);
    }
    cr_assert_gt(failures, 50, "%llu", (unsigned long long)failures);
}
