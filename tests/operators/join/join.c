/* Joins against a nested loop over arrays: every way a leaf may be read, every rule of terms, steps kept and undone. */
#include <criterion/criterion.h>

#include "join_bags.h"
#include "join_state.h"

/* ---- Random joins under random steps -------------------------------------------------------------------------------------------------- */

static bool case_fails(const join_case *join, const hand_bag tables[CASE_TABLES])
{
    hand_bag rows;
    bool failing;
    case_oracle(join, tables, &rows, &failing);
    hand_bag_free(&rows);
    return failing;
}

/* Draws a batch, runs it, keeps it or not; bags follow what was kept. False: the rows are not what they should be. */
static bool step_agrees(join_case *join, hand *it, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES], uint64_t *random)
{
    hand_bag after[CASE_TABLES];
    bags_copy(after, bags);
    ivm_batch *batch = hand_batch(it);
    case_batch(batch, tables, after, random);
    bool keep = hand_below(random, 4) != 0, fails = case_fails(join, after);
    join->planner->rule = hand_below(random, CASE_RULES);
    join->planner->skip_empty = hand_below(random, 3) != 0;
    ivm_status status = hand_step(it, batch, keep);
    ivm_batch_free(batch);
    bool right = status == (fails ? IVM_OVERFLOW : IVM_OK);
    if (status == IVM_OK && keep) {
        bags_free(bags);
        memcpy(bags, after, sizeof after);
    } else {
        bags_free(after);
    }
    return right && bags_hold(join, bags);
}

static void store_validate(const ivm__store *store, uint64_t seed)
{
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *wrong = ivm__index_validate(index);
        cr_assert_null(wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
    }
}

/* Between steps no leaf holds a delta, and every index is whole. */
static void leaves_validate(const join_case *join, uint64_t seed)
{
    const ivm__join *made = (const ivm__join *)join->join;
    for (uint32_t i = 0; i < made->leaves_count; i++) {
        const ivm__join_leaf *leaf = &made->leaves[i];
        cr_assert(!leaf->drives.first && !leaf->held_out.first && !leaf->delta_filled && leaf->delta.store.rows_live == 0);
        cr_assert(!ivm__leaf_is_bare(leaf) || !leaf->keeps);
        store_validate(ivm__leaf_is_bare(leaf) ? ivm__source_store(leaf->bare) : &leaf->rows.store, seed);
        store_validate(&leaf->delta.store, seed);
    }
}

static void random_case(uint64_t seed)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    hand it;
    hand_open(&it, NULL);
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    join_case join;
    case_tables(&it, tables);
    case_draw(&join, &random);
    for (uint32_t n = hand_below(&random, 5); n > 0; n--) {
        ivm_batch *batch = hand_batch(&it);
        case_batch(batch, tables, bags, &random);
        cr_assert_eq(hand_stage(&it, batch), IVM_OK, "seed %llu: %s", (unsigned long long)seed, it.error.message);
        ivm_batch_free(batch);
    }
    case_program(&join, &it, tables, &random);
    bool fails = case_fails(&join, bags);
    cr_assert_eq(hand_fill(&it, true), fails ? IVM_OVERFLOW : IVM_OK, "seed %llu: %s", (unsigned long long)seed, it.error.message);
    cr_assert(fails || bags_hold(&join, bags), "seed %llu: filled", (unsigned long long)seed);
    for (uint32_t n = 0; n < 12 && !fails; n++) {
        cr_assert(step_agrees(&join, &it, tables, bags, &random), "seed %llu: step %u: %s", (unsigned long long)seed, n, it.error.message);
    }
    cr_assert_eq(join.planner->begun, join.planner->committed + join.planner->undone);
    leaves_validate(&join, seed);
    bags_free(bags);
    hand_close(&it);
    cr_assert(join.freed);
}

Test(operators_join, random_joins_agree_with_a_nested_loop, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        random_case(seed);
    }
}

/* ---- Joins by hand ---------------------------------------------------------------------------------------------------------------------- */

/* Bag d (leaf 0) joined with keyed a (leaf 1) on d.c1 = a.c0. */
static void star_of_one(join_case *join, hand *it, ivm_table *tables[CASE_TABLES], uint64_t *random)
{
    hand_open(it, NULL);
    case_tables(it, tables);
    *join =
        (join_case){ .leaves_count = 2, .leaves = { { .table = 3 }, { .table = 0 } }, .equal_count = 1, .equal = { { 1, CASE_COLUMNS } } };
    join->above[0] = join->above[CASE_COLUMNS + 1] = true;
    case_program(join, it, tables, random);
    cr_assert_eq(hand_fill(it, true), IVM_OK);
}

Test(operators_join, counts_what_it_does)
{
    uint64_t random = 5;
    join_case join;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    star_of_one(&join, &it, tables, &random);
    join.planner->rule = CASE_TELESCOPING;
    join.planner->skip_empty = true;
    ivm_batch *batch = hand_batch(&it);
    for (int64_t k = 0; k < 10; k++) {
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(k, k * k, HAND_NULL, 0), 1);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert_eq(it.stats.terms_run, 1);
    batch = hand_batch(&it);
    for (int64_t n = 0; n < 40; n++) {
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 20, 0, 0), 1);
    }
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(0, HAND_NULL, 0, 0), 1);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert_eq(it.stats.terms_run, 1);
    cr_assert_eq(it.stats.rows_probed, 40, "a null key asks no index");
    cr_assert_eq(it.stats.rows_matched, 20);
    cr_assert(bags_hold(&join, bags));
    bags_free(bags);
    hand_close(&it);
}

Test(operators_join, a_row_that_matches_many_comes_in_chunks)
{
    uint64_t random = 6;
    join_case join;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    star_of_one(&join, &it, tables, &random);
    ivm_batch *batch = hand_batch(&it);
    bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 11, 0, 0), 1);
    for (int64_t n = 0; n < 5000; n++) {
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 3, 0, 0), 1 + n % 2);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(bags_hold(&join, bags));
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        join.planner->rule = rule;
        batch = hand_batch(&it);
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 11 + rule, 0, 0), -1);
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 12 + rule, 0, 0), 1);
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(1, 1, 0, 0), rule ? 3 : -1);
        cr_assert_eq(hand_push(&it, batch), IVM_OK);
        cr_assert(bags_hold(&join, bags));
    }
    bags_free(bags);
    hand_close(&it);
}

/* The row before and the row after find the same rows of d, which are looked up once. */
Test(operators_join, an_updated_row_asks_for_its_partners_once)
{
    uint64_t random = 6;
    join_case join;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    star_of_one(&join, &it, tables, &random);
    join.planner->rule = CASE_TELESCOPING;
    join.planner->skip_empty = true;
    ivm_batch *batch = hand_batch(&it);
    for (int64_t k = 0; k < 4; k++) {
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(k, k, 0, 0), 1);
    }
    for (int64_t n = 0; n < 3000; n++) {
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 3, 0, 0), 1 + n % 2);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    batch = hand_batch(&it);
    for (int64_t k = 0; k < 3; k++) { /* the third goes and does not come */
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(k, k, 0, 0), -1);
        if (k < 2) {
            bag_insert(batch, tables[0], &bags[0], HAND_ROW(k, k + 10, 0, 0), 1);
        }
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert_eq(it.stats.terms_run, 1);
    cr_assert_eq(it.stats.rows_probed, 3);
    cr_assert_eq(it.stats.rows_matched, 3000);
    cr_assert(bags_hold(&join, bags));
    bags_free(bags);
    hand_close(&it);
}

Test(operators_join, a_product_of_large_leaves_is_whole)
{
    uint64_t random = 7;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 2, .leaves = { { .table = 3 }, { .table = 4 } } };
    join.above[0] = join.above[CASE_COLUMNS] = true;
    case_program(&join, &it, tables, &random);
    ivm_batch *batch = hand_batch(&it);
    for (int64_t n = 0; n < 70; n++) {
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n % 50, 0, 0, 0), 1);
    }
    for (int64_t n = 0; n < 1100; n++) {
        bag_insert(batch, tables[4], &bags[4], HAND_ROW(n % 700, 0, 0, 0), 1);
    }
    cr_assert_eq(hand_stage(&it, batch), IVM_OK);
    ivm_batch_free(batch);
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    cr_assert(bags_hold(&join, bags));
    batch = hand_batch(&it);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(3, 0, 0, 0), -1);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(60, 0, 0, 0), 1);
    bag_insert(batch, tables[4], &bags[4], HAND_ROW(5, 0, 0, 0), -1);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(bags_hold(&join, bags));
    bags_free(bags);
    hand_close(&it);
}

Test(operators_join, nothing_needed_above_still_counts_rows)
{
    uint64_t random = 8;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 3,
                       .leaves = { { 0, CASE_FILTER, { 0 } }, { 3, CASE_FILTER_KEPT, { 0 } }, { 4, CASE_BARE, { 0 } } } };
    case_program(&join, &it, tables, &random);
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    for (int64_t n = 0; n < 6; n++) {
        join.planner->rule = n % 2 ? CASE_MOBIUS : CASE_TELESCOPING;
        ivm_batch *batch = hand_batch(&it);
        bag_insert(batch, tables[0], &bags[0], HAND_ROW(n, n, 0, 0), 1);
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n % 4, 0, 0, 0), n + 1);
        bag_insert(batch, tables[4], &bags[4], HAND_ROW(n, 0, 0, 0), 2);
        if (n == 4) {
            bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 0, 0), -1);
            bag_insert(batch, tables[3], &bags[3], HAND_ROW(2, 0, 0, 0), -2);
        }
        cr_assert_eq(hand_push(&it, batch), IVM_OK);
        cr_assert(bags_hold(&join, bags));
    }
    bags_free(bags);
    hand_close(&it);
}

/* ---- What is passed on ------------------------------------------------------------------------------------------------------------------ */

/* d joined with a, read by a sink in place of a view. */
static hand_sink *star_into_sink(hand *it, ivm_table *tables[CASE_TABLES], join_case *join, uint64_t *random)
{
    star_of_one(join, it, tables, random);
    return hand_sink_add(it, join->join);
}

Test(operators_join, rows_that_match_once_are_not_copied)
{
    uint64_t random = 9;
    join_case join;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_sink *sink = star_into_sink(&it, tables, &join, &random);
    ivm_batch *batch = hand_batch(&it);
    for (int64_t k = 0; k < 8; k++) {
        hand_change(batch, tables[0], HAND_ROW(k, k, 0, 0), 1);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    int64_t keys[100];
    ivm_column_data columns[CASE_COLUMNS] = { { .values = keys }, { .values = keys }, { 0 }, { 0 } };
    int32_t offsets[101] = { 0 };
    uint8_t decimals[1600] = { 0 };
    for (int64_t n = 0; n < 100; n++) {
        keys[n] = n % 8;
    }
    columns[2] = (ivm_column_data){ .values = "", .offsets = offsets };
    columns[3] = (ivm_column_data){ .values = decimals };
    ivm_rows rows = { .rows_count = 100, .columns_count = CASE_COLUMNS, .columns = columns };
    batch = hand_batch(&it);
    cr_assert_eq(ivm_batch_columns(batch, tables[3], IVM_INSERT, &rows), IVM_OK);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert_eq(sink->chunks_count, 1);
    cr_assert_eq(sink->rows_count, 100);
    cr_assert_eq(sink->first_cells, keys, "the user's own array");
    cr_assert_null(sink->weights);
    for (uint32_t c = 0; c < 2 * CASE_COLUMNS; c++) {
        cr_assert_eq(sink->carried[c], c == 0 || c == CASE_COLUMNS + 1, "column %u", c);
    }
    hand_close(&it);
}

/* ---- Keys of several columns ------------------------------------------------------------------------------------------------------------ */

Test(operators_join, a_whole_key_in_any_order_uses_the_table_s_index)
{
    uint64_t random = 10;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 2,
                       .leaves = { { .table = 3 }, { .table = 2 } },
                       .equal_count = 2,
                       .equal = { { 0, CASE_COLUMNS }, { 1, CASE_COLUMNS + 1 } } };
    join.above[0] = join.above[CASE_COLUMNS + 3] = true;
    case_program(&join, &it, tables, &random);
    const ivm__join *made = (const ivm__join *)join.join;
    const ivm__join_probe *probe = &made->orders[0].probes[0];
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    ivm_batch *batch = hand_batch(&it);
    for (int64_t n = 0; n < 50; n++) {
        bag_insert(batch, tables[2], &bags[2], HAND_ROW(n / 7, n % 7, 0, n), 1);
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n % 9, n % 5, 0, 0), 1);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(bags_hold(&join, bags));
    cr_assert(probe->unique && probe->keys_count == 2);
    cr_assert_eq(probe->to[0], 1);
    cr_assert_eq(probe->from[0], 1);
    uint32_t indexes = 0;
    for (const ivm__index *index = tables[2]->store.indexes; index; index = index->next_of_store) {
        indexes++;
    }
    cr_assert_eq(indexes, 1);
    bags_free(bags);
    hand_close(&it);
}

/* ---- Leaves loaded late ------------------------------------------------------------------------------------------------------------------ */

static const ivm__join_leaf *leaf_of(const join_case *join, uint32_t leaf)
{
    return &((const ivm__join *)join->join)->leaves[leaf];
}

Test(operators_join, a_leaf_is_loaded_when_a_term_first_reads_it)
{
    uint64_t random = 14;
    hand it;
    ivm_table *tables[CASE_TABLES];
    hand_bag bags[CASE_TABLES] = { 0 };
    hand_open(&it, NULL);
    case_tables(&it, tables);
    join_case join = { .leaves_count = 2,
                       .leaves = { { 3, CASE_FILTER, { 0 } }, { 0, CASE_BARE, { 0 } } },
                       .equal_count = 1,
                       .equal = { { 1, CASE_COLUMNS } } };
    join.above[0] = join.above[CASE_COLUMNS + 1] = true;
    case_program(&join, &it, tables, &random);
    join.planner->in_order = true;
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    join.planner->rule = CASE_MOBIUS;
    join.planner->skip_empty = true;
    ivm_batch *batch = hand_batch(&it);
    bag_insert(batch, tables[0], &bags[0], HAND_ROW(0, 5, 0, 0), 1);
    cr_assert_eq(hand_stage(&it, batch), IVM_OK); /* unseen by the view, whose fact leaf is empty */
    ivm_batch_free(batch);
    for (int64_t n = 0; n < 5; n++) {
        batch = hand_batch(&it);
        bag_insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 2, 0, 0), 1);
        cr_assert_eq(hand_push(&it, batch), IVM_OK);
        cr_assert_not(leaf_of(&join, 0)->keeps, "its delta drives every term");
    }
    batch = hand_batch(&it);
    hand_change(batch, tables[0], HAND_ROW(1, 6, 0, 0), 1);
    hand_change(batch, tables[3], HAND_ROW(2, 1, 0, 0), 1);
    cr_assert_eq(hand_step(&it, batch, false), IVM_OK);
    ivm_batch_free(batch);
    cr_assert(leaf_of(&join, 0)->keeps);
    cr_assert_eq(leaf_of(&join, 0)->rows.store.rows_live, 3, "as before the step that was undone: n < 3");
    cr_assert(bags_hold(&join, bags));
    batch = hand_batch(&it);
    bag_insert(batch, tables[0], &bags[0], HAND_ROW(1, 7, 0, 0), 1);
    bag_insert(batch, tables[3], &bags[3], HAND_ROW(1, 1, 0, 0), -1);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(bags_hold(&join, bags));
    cr_assert_eq(leaf_of(&join, 0)->rows.store.rows_live, 2);
    bags_free(bags);
    hand_close(&it);
}

/* ---- What the planner is told ------------------------------------------------------------------------------------------------------------ */

/* Keyed a filtered, not kept (leaf 0), b filtered and kept (leaf 1), bag d (leaf 2); all joined on c0, nothing else read of a and b. */
static void told_open(hand *it, ivm_table *tables[CASE_TABLES], join_case *join)
{
    uint64_t random = 16;
    hand_open(it, NULL);
    case_tables(it, tables);
    *join = (join_case){ .leaves_count = 3,
                         .leaves = { { 0, CASE_FILTER, { 0 } }, { 1, CASE_FILTER_KEPT, { 0 } }, { 3, CASE_BARE, { 0 } } },
                         .equal_count = 2,
                         .equal = { { 0, CASE_COLUMNS }, { 0, 2 * CASE_COLUMNS } } };
    join->above[2 * CASE_COLUMNS + 1] = true;
    case_program(join, it, tables, &random);
    cr_assert_eq(hand_fill(it, true), IVM_OK);
}

Test(operators_join, the_planner_is_told_net_deltas_of_what_is_read)
{
    hand it;
    join_case join;
    ivm_table *tables[CASE_TABLES];
    told_open(&it, tables, &join);
    const ivm__leaf_delta *told = join.planner->deltas;
    ivm_batch *batch = hand_batch(&it);
    for (int64_t n = 0; n < 6; n++) {
        hand_change(batch, tables[0], HAND_ROW(n, 0, 0, 0), 1);
        hand_change(batch, tables[1], HAND_ROW(n, 0, 0, 0), 1);
    }
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(told[0].rows_count == 3 && told[1].rows_count == 3 && told[2].rows_count == 0, "0, 1 and 2 pass");
    cr_assert(told[0].rows_live == 0 && told[1].rows_live == 3 && told[2].rows_live == 0);
    cr_assert(told[0].table_insert_only && told[2].table_insert_only);

    batch = hand_batch(&it);
    for (uint32_t t = 0; t < 2; t++) {
        hand_change(batch, tables[t], HAND_ROW(1, 0, 0, 0), -1);
        hand_change(batch, tables[t], HAND_ROW(1, 7, 7, 7), 1);
        hand_change(batch, tables[t], HAND_ROW(2, 0, 0, 0), -1);
    }
    hand_change(batch, tables[3], HAND_ROW(1, 1, 1, 1), 5);
    cr_assert_eq(hand_push(&it, batch), IVM_OK);
    cr_assert(told[0].rows_count == 1 && told[1].rows_count == 1, "an update of columns that nobody reads is no change");
    cr_assert_eq(told[1].rows_live, 2);
    cr_assert(told[2].rows_count == 1 && told[2].rows_live == 1);
    cr_assert(!told[0].table_insert_only && told[2].table_insert_only);
    hand_close(&it);
}
