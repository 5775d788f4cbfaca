/* Joins against a nested loop over arrays: every way a leaf may be read, every rule of terms, steps kept and undone. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "allocator.h"
#include "join_case.h"
#include "join_state.h"

/* ---- Random joins under random steps -------------------------------------------------------------------------------------------------- */

static bool root_holds(const join_case *join, const hand_bag tables[CASE_TABLES])
{
    hand_bag got = { 0 }, want;
    bool failing;
    case_oracle(join, tables, &want, &failing);
    hand_store_rows(ivm__materialize_result(join->root), &got);
    bool equal = !failing && hand_bag_equal(&got, &want);
    hand_bag_free(&got);
    hand_bag_free(&want);
    return equal;
}

static bool case_fails(const join_case *join, const hand_bag tables[CASE_TABLES])
{
    hand_bag rows;
    bool failing;
    case_oracle(join, tables, &rows, &failing);
    hand_bag_free(&rows);
    return failing;
}

static void bags_copy(hand_bag to[CASE_TABLES], const hand_bag from[CASE_TABLES])
{
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        hand_bag_copy(&to[t], &from[t]);
    }
}

static void bags_free(hand_bag bags[CASE_TABLES])
{
    for (uint32_t t = 0; t < CASE_TABLES; t++) {
        hand_bag_free(&bags[t]);
    }
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
    return right && root_holds(join, bags);
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
    cr_assert(fails || root_holds(&join, bags), "seed %llu: filled", (unsigned long long)seed);
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

/* The view must hold what the oracle says of these bags. */
static void expect(const join_case *join, const hand_bag bags[CASE_TABLES])
{
    cr_assert(root_holds(join, bags));
}

static void insert(ivm_batch *batch, ivm_table *table, hand_bag *bag, hand_row row, int64_t weight)
{
    hand_change(batch, table, row, weight);
    row.weight = weight;
    hand_bag_add(bag, &row);
}

static ivm_status push(hand *it, ivm_batch *batch)
{
    ivm_status status = hand_step(it, batch, true);
    ivm_batch_free(batch);
    return status;
}

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
        insert(batch, tables[0], &bags[0], HAND_ROW(k, k * k, HAND_NULL, 0), 1);
    }
    cr_assert_eq(push(&it, batch), IVM_OK);
    cr_assert_eq(it.stats.terms_run, 1);
    batch = hand_batch(&it);
    for (int64_t n = 0; n < 40; n++) {
        insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 20, 0, 0), 1);
    }
    insert(batch, tables[3], &bags[3], HAND_ROW(0, HAND_NULL, 0, 0), 1);
    cr_assert_eq(push(&it, batch), IVM_OK);
    cr_assert_eq(it.stats.terms_run, 1);
    cr_assert_eq(it.stats.rows_probed, 40, "a null key asks no index");
    cr_assert_eq(it.stats.rows_matched, 20);
    expect(&join, bags);
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
    insert(batch, tables[0], &bags[0], HAND_ROW(1, 11, 0, 0), 1);
    for (int64_t n = 0; n < 5000; n++) {
        insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 3, 0, 0), 1 + n % 2);
    }
    cr_assert_eq(push(&it, batch), IVM_OK);
    expect(&join, bags);
    for (uint32_t rule = 0; rule < CASE_RULES; rule++) {
        join.planner->rule = rule;
        batch = hand_batch(&it);
        insert(batch, tables[0], &bags[0], HAND_ROW(1, 11 + rule, 0, 0), -1);
        insert(batch, tables[0], &bags[0], HAND_ROW(1, 12 + rule, 0, 0), 1);
        insert(batch, tables[3], &bags[3], HAND_ROW(1, 1, 0, 0), rule ? 3 : -1);
        cr_assert_eq(push(&it, batch), IVM_OK);
        expect(&join, bags);
    }
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
        insert(batch, tables[3], &bags[3], HAND_ROW(n % 50, 0, 0, 0), 1);
    }
    for (int64_t n = 0; n < 1100; n++) {
        insert(batch, tables[4], &bags[4], HAND_ROW(n % 700, 0, 0, 0), 1);
    }
    cr_assert_eq(hand_stage(&it, batch), IVM_OK);
    ivm_batch_free(batch);
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    expect(&join, bags);
    batch = hand_batch(&it);
    insert(batch, tables[3], &bags[3], HAND_ROW(3, 0, 0, 0), -1);
    insert(batch, tables[3], &bags[3], HAND_ROW(60, 0, 0, 0), 1);
    insert(batch, tables[4], &bags[4], HAND_ROW(5, 0, 0, 0), -1);
    cr_assert_eq(push(&it, batch), IVM_OK);
    expect(&join, bags);
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
        insert(batch, tables[0], &bags[0], HAND_ROW(n, n, 0, 0), 1);
        insert(batch, tables[3], &bags[3], HAND_ROW(n % 4, 0, 0, 0), n + 1);
        insert(batch, tables[4], &bags[4], HAND_ROW(n, 0, 0, 0), 2);
        if (n == 4) {
            insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 0, 0), -1);
            insert(batch, tables[3], &bags[3], HAND_ROW(2, 0, 0, 0), -2);
        }
        cr_assert_eq(push(&it, batch), IVM_OK);
        expect(&join, bags);
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
    cr_assert_eq(push(&it, batch), IVM_OK);
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
    cr_assert_eq(push(&it, batch), IVM_OK);
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
        insert(batch, tables[2], &bags[2], HAND_ROW(n / 7, n % 7, 0, n), 1);
        insert(batch, tables[3], &bags[3], HAND_ROW(n % 9, n % 5, 0, 0), 1);
    }
    cr_assert_eq(push(&it, batch), IVM_OK);
    expect(&join, bags);
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

/* ---- Weights ------------------------------------------------------------------------------------------------------------------------------ */

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

Test(operators_join, a_weight_past_int64_is_an_overflow_once_terms_are_summed)
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
        cr_assert_eq(push(&it, batch), IVM_OK, "heavy rows that do not meet");

        batch = hand_batch(&it);
        hand_change(batch, tables[4], e, large);
        cr_assert_eq(push(&it, batch), IVM_OVERFLOW);
        cr_assert_str_eq(it.error.message, "view v: the weight of a row is out of range within the plan");

        /* the new e meets the old d in one term: 16e18, and the gone d takes it away again */
        batch = hand_batch(&it);
        hand_change(batch, tables[4], e, large);
        hand_change(batch, tables[3], d, 1 - large);
        cr_assert_eq(push(&it, batch), IVM_OK);

        batch = hand_batch(&it);
        hand_change(batch, tables[3], d, 2305843010);
        cr_assert_eq(push(&it, batch), IVM_OVERFLOW);
        batch = hand_batch(&it);
        hand_change(batch, tables[3], d, 2305843008);
        cr_assert_eq(push(&it, batch), IVM_OK);
        hand_close(&it);
    }
}

Test(operators_join, a_product_past_128_bits_is_an_overflow)
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
    cr_assert_eq(push(&it, batch), IVM_OVERFLOW);
    cr_assert_str_eq(it.error.message, "view v: the weight of a joined row is out of range");
    hand_close(&it);
}

Test(operators_join, a_kept_leaf_s_weight_past_int64_is_an_overflow)
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
    insert(batch, tables[3], &bags[3], HAND_ROW(1, 0, 0, 0), INT64_MAX);
    cr_assert_eq(push(&it, batch), IVM_OK);
    batch = hand_batch(&it);
    hand_change(batch, tables[3], HAND_ROW(1, 1, 0, 0), 1);
    cr_assert_eq(push(&it, batch), IVM_OVERFLOW);
    expect(&join, bags);
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
    insert(batch, tables[0], &bags[0], HAND_ROW(0, 5, 0, 0), 1);
    cr_assert_eq(hand_stage(&it, batch), IVM_OK); /* unseen by the view, whose fact leaf is empty */
    ivm_batch_free(batch);
    for (int64_t n = 0; n < 5; n++) {
        batch = hand_batch(&it);
        insert(batch, tables[3], &bags[3], HAND_ROW(n, n % 2, 0, 0), 1);
        cr_assert_eq(push(&it, batch), IVM_OK);
        cr_assert_not(leaf_of(&join, 0)->keeps, "its delta drives every term");
    }
    batch = hand_batch(&it);
    hand_change(batch, tables[0], HAND_ROW(1, 6, 0, 0), 1);
    hand_change(batch, tables[3], HAND_ROW(2, 1, 0, 0), 1);
    cr_assert_eq(hand_step(&it, batch, false), IVM_OK);
    ivm_batch_free(batch);
    cr_assert(leaf_of(&join, 0)->keeps);
    cr_assert_eq(leaf_of(&join, 0)->rows.store.rows_live, 3, "as before the step that was undone: n < 3");
    expect(&join, bags);
    batch = hand_batch(&it);
    insert(batch, tables[0], &bags[0], HAND_ROW(1, 7, 0, 0), 1);
    insert(batch, tables[3], &bags[3], HAND_ROW(1, 1, 0, 0), -1);
    cr_assert_eq(push(&it, batch), IVM_OK);
    expect(&join, bags);
    cr_assert_eq(leaf_of(&join, 0)->rows.store.rows_live, 2);
    bags_free(bags);
    hand_close(&it);
}

/* ---- Gathering ----------------------------------------------------------------------------------------------------------------------------- */

/* A chunk of random rows of two columns, some with nulls, some with weights; also in the bag. */
static void chunk_draw(ivm__chunk *chunk, ivm__arena *arena, hand_bag *bag, uint64_t *random)
{
    static const ivm_type types[] = { IVM_INT64, IVM_DECIMAL(9, 0) };
    uint32_t rows = 1 + hand_below(random, hand_below(random, 3) ? 40 : IVM__CHUNK_ROWS);
    *chunk = *ivm__chunk_make(arena, types, 2);
    chunk->rows_count = rows;
    cr_assert(ivm__vector_make(arena, &chunk->columns[0], types[0], rows, hand_below(random, 2)));
    cr_assert(ivm__vector_make(arena, &chunk->columns[1], types[1], rows, hand_below(random, 2)));
    chunk->weights = hand_below(random, 2) ? ivm__arena_allocate(arena, rows * sizeof(ivm__weight)) : NULL;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t cell = hand_below(random, 1000);
        ((uint64_t *)chunk->columns[0].cells)[i] = cell;
        ((ivm__wide *)chunk->columns[1].cells)[i] = (ivm__wide)cell + 1;
        for (uint32_t c = 0; c < 2; c++) {
            if (chunk->columns[c].nulls) {
                chunk->columns[c].nulls[i] = hand_below(random, 4) == 0;
            }
        }
        if (chunk->weights) {
            chunk->weights[i] = 1 + hand_below(random, 5);
        }
    }
    hand_chunk_rows(chunk, bag);
}

static uint32_t parts_read(const ivm__join_leaf *leaf, hand_bag *got)
{
    uint32_t count = 0;
    for (const ivm__leaf_part *part = leaf->drives.first; part; part = part->next, count++) {
        cr_assert_leq(part->chunk.rows_count, part->capacity);
        hand_chunk_rows(&part->chunk, got);
    }
    return count;
}

Test(operators_join, gathered_chunks_are_put_together)
{
    uint64_t random = 17;
    ivm__memory memory;
    ivm__arena arena;
    ivm__layout *layout;
    ivm__memory_init(&memory, NULL);
    ivm__arena_init(&arena, &memory);
    cr_assert_eq(ivm__layout_create(&memory, (ivm_type[]){ IVM_INT64, IVM_DECIMAL(9, 0) }, NULL, 2, false, &layout), IVM_OK);
    for (uint32_t round = 0; round < 300; round++) {
        ivm__join_leaf leaf = { .layout = layout, .kept_count = 2 };
        hand_bag want = { 0 }, got = { 0 };
        uint32_t chunks = 1 + hand_below(&random, 40);
        for (uint32_t n = 0; n < chunks; n++) {
            ivm__chunk chunk;
            chunk_draw(&chunk, &arena, &want, &random);
            cr_assert_eq(ivm__leaf_gather(&leaf, &leaf.drives, &arena, &chunk), IVM_OK);
        }
        cr_assert_eq(leaf.drives.rows, want.count);
        uint32_t parts = parts_read(&leaf, &got);
        cr_assert_leq(parts, want.count / 64 + 2, "%u parts of %zu rows", parts, want.count);
        cr_assert(hand_bag_equal(&got, &want), "round %u", round);
        hand_bag_free(&got);
        hand_bag_free(&want);
        ivm__arena_reset(&arena);
    }
    ivm__layout_release(layout);
    ivm__arena_deinit(&arena);
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
    cr_assert_eq(push(&it, batch), IVM_OK);
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
    cr_assert_eq(push(&it, batch), IVM_OK);
    cr_assert(told[0].rows_count == 1 && told[1].rows_count == 1, "an update of columns that nobody reads is no change");
    cr_assert_eq(told[1].rows_live, 2);
    cr_assert(told[2].rows_count == 1 && told[2].rows_live == 1);
    cr_assert(!told[0].table_insert_only && told[2].table_insert_only);
    hand_close(&it);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------- */

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
        insert(batch, tables[0], &bags[0], HAND_ROW(n, n, n, n), 1);
        insert(batch, tables[2], &bags[2], HAND_ROW(n, 1, n, n), 1);
        insert(batch, tables[3], &bags[3], HAND_ROW(n, n, n, n), 2);
        insert(batch, tables[4], &bags[4], HAND_ROW(n, n, n, n), 1);
    }
    cr_assert_eq(hand_stage(it, batch), IVM_OK);
    ivm_batch_free(batch);
}

static ivm_batch *memory_batch(hand *it, ivm_table *const tables[CASE_TABLES], hand_bag bags[CASE_TABLES])
{
    ivm_batch *batch = hand_batch(it);
    insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 1, 1), -1);
    insert(batch, tables[0], &bags[0], HAND_ROW(1, 1, 9, 1), 1);
    insert(batch, tables[2], &bags[2], HAND_ROW(0, 2, 5, 6), 1);
    insert(batch, tables[3], &bags[3], HAND_ROW(1, 0, 1, 1), 1);
    insert(batch, tables[3], &bags[3], HAND_ROW(2, 2, 2, 2), -1);
    insert(batch, tables[4], &bags[4], HAND_ROW(1, 1, 1, 8), 3);
    insert(batch, tables[4], &bags[4], HAND_ROW(0, 0, 0, 0), -1);
    return batch;
}

Test(operators_join, running_out_of_memory_in_a_step_changes_nothing, .timeout = 120)
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
            expect(&join, bags);
            hand_bag after[CASE_TABLES];
            bags_copy(after, bags);
            ivm_batch *batch = memory_batch(&it, tables, after);

            test_allocator_arm(&allocator, n);
            ivm_status status = hand_step(&it, batch, true);
            done = !test_allocator_disarm(&allocator);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "allocation %llu: %s", (unsigned long long)n, it.error.message);
            failures += !done;
            expect(&join, done ? after : bags);
            if (!done) {
                cr_assert_eq(it.error.status, IVM_OUT_OF_MEMORY);
                cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
                expect(&join, after);
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

Test(operators_join, running_out_of_memory_in_making_it_leaves_nothing)
{
    uint64_t failures = 0;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        failures += creations_failed(n, &done);
    }
    cr_assert_gt(failures, 8);
}
