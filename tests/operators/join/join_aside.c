/* Joins that set rows aside, whatever foreign keys may say: any rows whose keys come or go. With old' = old and the fresh ones set aside, cur' = cur
 * and the gone ones, both forms of terms must come to
 *
 *     R0' x..x Rn-1'  of cur'    less the same of    old'
 *
 * which nested loops over arrays work out, for bare leaves and chains, kept and not yet loaded, under every order of leaves and drivers. */
#include <criterion/criterion.h>

#include "join_bags.h"
#include "join_state.h"

typedef struct aside_case {
    hand it;
    join_case join;
    hand_sink *sink; /* in place of the view */
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES];
    uint64_t random;
} aside_case;

/* ---- The formula, by hand --------------------------------------------------------------------------------------------------------------------- */

static bool key_is_in(uint32_t table, const hand_bag *bag, const hand_row *row)
{
    bool found = false;
    for (size_t i = 0; i < bag->count; i++) {
        found |= case_same_key(table, &bag->rows[i], row);
    }
    return found;
}

/* `bag` and, of the other state's rows, those set aside whose keys are not in it. */
static void leaf_reads(const join_case *join, uint32_t leaf, const hand_bag *bag, const hand_bag *other, hand_bag *out)
{
    uint32_t table = join->leaves[leaf].table;
    hand_bag_copy(out, bag);
    for (size_t i = 0; i < other->count; i++) {
        const hand_row *row = &other->rows[i];
        if (!key_is_in(table, bag, row) && case_is_aside(join->planner, leaf, row->cells[0], row->cells[1])) {
            hand_bag_add(out, row);
        }
    }
}

/* The join of what each leaf reads in a state, given the other one. */
static void join_of(const join_case *join, const hand_bag state[CASE_TABLES], const hand_bag other[CASE_TABLES], hand_bag *out)
{
    join_case apart = *join; /* every leaf has a bag of its own */
    hand_bag leaves[CASE_TABLES] = { 0 };
    bool failing;
    for (uint32_t i = 0; i < join->leaves_count; i++) {
        uint32_t table = join->leaves[i].table;
        leaf_reads(join, i, &state[table], &other[table], &leaves[i]);
        apart.leaves[i].table = i;
    }
    case_oracle(&apart, leaves, out, &failing);
    cr_assert_not(failing);
    bags_free(leaves);
}

static void bag_add_all(hand_bag *to, const hand_bag *from, int sign)
{
    for (size_t i = 0; i < from->count; i++) {
        hand_row row = from->rows[i];
        row.weight *= sign;
        hand_bag_add(to, &row);
    }
}

static void delta_of(const join_case *join, const hand_bag old[CASE_TABLES], const hand_bag cur[CASE_TABLES], hand_bag *delta)
{
    hand_bag before;
    join_of(join, cur, old, delta);
    join_of(join, old, cur, &before);
    bag_add_all(delta, &before, -1);
    hand_bag_free(&before);
}

/* ---- Steps -------------------------------------------------------------------------------------------------------------------------------------- */

static void case_open(aside_case *of, const ivm_allocator *allocator, uint64_t seed)
{
    memset(of, 0, sizeof *of);
    of->random = seed * 0x9E3779B97F4A7C15ull | 1;
    hand_open(&of->it, allocator);
    case_tables(&of->it, of->tables);
}

static void case_start(aside_case *of)
{
    case_program(&of->join, &of->it, of->tables, &of->random);
    of->sink = hand_sink_add(&of->it, of->join.join->next);
    cr_assert_eq(hand_fill(&of->it, true), IVM_OK);
}

static void case_close(aside_case *of)
{
    bags_free(of->bags);
    hand_close(&of->it);
    cr_assert(of->join.freed);
}

static void planner_draw(aside_case *of)
{
    case_planner *planner = of->join.planner;
    planner->rule = hand_below(&of->random, CASE_RULES);
    planner->skip_empty = hand_below(&of->random, 3) != 0;
    planner->salt = hand_below(&of->random, 6) ? hand_random(&of->random) << 16 ^ hand_random(&of->random) : 0;
}

/* Whether what the step sent is what the formula says; the bags follow where it is kept. */
static bool step_agrees(aside_case *of, const ivm_batch *batch, hand_bag after[CASE_TABLES], bool keep)
{
    hand_bag want, *got = &of->sink->rows;
    delta_of(&of->join, of->bags, after, &want);
    got->columns_count = want.columns_count;
    got->count = 0;
    bool right = hand_step(&of->it, batch, keep) == IVM_OK && hand_bag_equal(got, &want);
    hand_bag_free(&want);
    if (right && keep) {
        bags_free(of->bags);
        memcpy(of->bags, after, CASE_TABLES * sizeof *after);
    } else {
        bags_free(after);
    }
    return right;
}

static bool step_draw(aside_case *of)
{
    hand_bag after[CASE_TABLES];
    bags_copy(after, of->bags);
    ivm_batch *batch = hand_batch(&of->it);
    case_batch(batch, of->tables, after, &of->random);
    planner_draw(of);
    bool right = step_agrees(of, batch, after, hand_below(&of->random, 4) != 0);
    ivm_batch_free(batch);
    return right;
}

static void random_case(uint64_t seed, uint32_t *set_aside, uint32_t *whole)
{
    aside_case of;
    case_open(&of, NULL, seed);
    case_draw(&of.join, &of.random);
    of.join.residual = false;
    for (uint32_t i = 0; i < of.join.leaves_count; i++) {
        of.join.leaves[i].table = hand_below(&of.random, 3) ? of.join.leaves[i].table % 3 : of.join.leaves[i].table; /* mostly keyed */
    }
    case_start(&of);
    for (uint32_t n = 0; n < 15; n++) {
        cr_assert(step_draw(&of), "seed %llu: step %u: %s", (unsigned long long)seed, n, of.it.error.message);
    }
    *set_aside += of.join.planner->set_aside;
    *whole += of.join.planner->whole;
    case_close(&of);
}

Test(operators_join_aside, random_joins_agree_with_the_formula, .timeout = 120)
{
    uint32_t set_aside = 0, whole = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        random_case(seed, &set_aside, &whole);
    }
    cr_assert(set_aside > 5000 && whole > 1000, "%u, %u", set_aside, whole);
}

/* ---- By hand ------------------------------------------------------------------------------------------------------------------------------------ */

static void change(aside_case *of, ivm_batch *batch, hand_bag after[CASE_TABLES], uint32_t table, hand_row row, int64_t weight)
{
    hand_change(batch, of->tables[table], row, weight);
    row.weight = weight;
    hand_bag_add(&after[table], &row);
    hand_bag_settle(&after[table]);
}

#define SALT_ALL 0777ull /* of leaves 0 to 2 every row whose key comes or goes */

/* Keyed a in the middle of two bags, by this road: rows come, go and change in it while the others change. */
static void by_hand(case_road road, bool cross, uint32_t rule)
{
    aside_case of;
    case_open(&of, NULL, 1);
    of.join = (join_case){ .leaves_count = 3, .leaves = { { .table = 3 }, { .table = 0, .road = road }, { .table = 4 } } };
    of.join.equal_count = cross ? 0 : 2;
    of.join.equal[0] = (ivm__probe_key){ 1, CASE_COLUMNS + (road == CASE_PROJECT) };
    of.join.equal[1] = (ivm__probe_key){ CASE_COLUMNS + (road == CASE_PROJECT), 2 * CASE_COLUMNS + 1 };
    of.join.above[0] = of.join.above[CASE_COLUMNS] = of.join.above[CASE_COLUMNS + 1] = of.join.above[2 * CASE_COLUMNS] = true;
    case_start(&of);
    for (int64_t n = 0; n < 8; n++) {
        hand_bag after[CASE_TABLES];
        bags_copy(after, of.bags);
        ivm_batch *batch = hand_batch(&of.it);
        change(&of, batch, after, 0, HAND_ROW(n % 4, n, 0, 0), 1);
        if (n > 0) {
            change(&of, batch, after, 0, HAND_ROW((n - 1) % 4, n - 1, 0, 0), -1);
        }
        change(&of, batch, after, 3, HAND_ROW(n, n % 3, 0, 0), n + 1);
        change(&of, batch, after, 4, HAND_ROW(n, n % 2, 0, 0), 1);
        of.join.planner->rule = rule;
        of.join.planner->salt = n == 3 ? 0 : SALT_ALL;
        cr_assert(step_agrees(&of, batch, after, n != 5), "step %d of road %d, rule %u", (int)n, (int)road, rule);
        ivm_batch_free(batch);
        if (n == 5) {
            break; /* what follows would take back what was not kept */
        }
    }
    cr_assert_eq(of.join.planner->whole, 5u, "all that changed came or went: %u", of.join.planner->whole);
    case_close(&of);
}

Test(operators_join_aside, keys_that_come_and_go_drive_nothing)
{
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        for (uint32_t cross = 0; cross < 2; cross++) {
            by_hand(CASE_BARE, cross, rule);
            by_hand(CASE_FILTER, cross, rule);
            by_hand(CASE_PROJECT, cross, rule);
        }
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------------- */

/* A step with rows set aside in a bare leaf and in a chain that is loaded in it. True: an allocation failed. */
static bool step_fails(uint32_t rule, uint64_t n)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    aside_case of;
    case_open(&of, &functions, 3);
    of.join = (join_case){ .leaves_count = 3, .leaves = { { .table = 3 }, { .table = 0 }, { .table = 1, .road = CASE_FILTER } } };
    of.join.equal_count = 2;
    of.join.equal[0] = (ivm__probe_key){ 0, CASE_COLUMNS };
    of.join.equal[1] = (ivm__probe_key){ CASE_COLUMNS, 2 * CASE_COLUMNS };
    of.join.above[1] = of.join.above[CASE_COLUMNS + 1] = of.join.above[2 * CASE_COLUMNS + 2] = true;
    hand_bag after[CASE_TABLES], again[CASE_TABLES];
    ivm_batch *batch = hand_batch(&of.it);
    for (int64_t k = 0; k < 3; k++) {
        change(&of, batch, of.bags, 0, HAND_ROW(k, k, 0, k), 1);
        change(&of, batch, of.bags, 1, HAND_ROW(k, k, 0, k), 1);
        change(&of, batch, of.bags, 3, HAND_ROW(k, k, 0, k), 1);
    }
    cr_assert_eq(hand_stage(&of.it, batch), IVM_OK);
    ivm_batch_free(batch);
    case_start(&of);
    bags_copy(after, of.bags);
    batch = hand_batch(&of.it);
    for (uint32_t t = 0; t < 2; t++) {
        change(&of, batch, after, t, HAND_ROW(0, 0, 0, 0), -1);
        change(&of, batch, after, t, HAND_ROW(1, 1, 0, 1), -1);
        change(&of, batch, after, t, HAND_ROW(1, 7, 0, 7), 1);
        change(&of, batch, after, t, HAND_ROW(4, 4, 0, 4), 1);
    }
    change(&of, batch, after, 3, HAND_ROW(4, 4, 0, 4), 2);
    bags_copy(again, after);
    of.join.planner->rule = rule;
    of.join.planner->in_order = true;
    of.join.planner->salt = SALT_ALL;
    test_allocator_arm(&allocator, n);
    bool right = step_agrees(&of, batch, after, true), failed = test_allocator_disarm(&allocator);
    cr_assert_eq(right, !failed, "allocation %llu", (unsigned long long)n);
    if (failed) {
        cr_assert_eq(of.it.error.status, IVM_OUT_OF_MEMORY);
        cr_assert(step_agrees(&of, batch, again, true), "after allocation %llu", (unsigned long long)n);
    } else {
        bags_free(again);
    }
    ivm_batch_free(batch);
    case_close(&of);
    cr_assert(test_allocator_is_clean(&allocator), "allocation %llu", (unsigned long long)n);
    return failed;
}

Test(operators_join_aside, running_out_of_memory_changes_nothing)
{
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        uint64_t n = 1;
        while (step_fails(rule, n)) {
            n++;
        }
        cr_assert_gt(n, 10u);
    }
}
