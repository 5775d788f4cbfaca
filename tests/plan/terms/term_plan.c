/* Term plans: how a join's planner follows the facts, keeps the last decision, counts, and refuses too many masks. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

static fixture it;
static ivm_table *sale, *product;
static ivm__term_plan *plan; /* of the view's join */

static void open_tables(void)
{
    fixture_open(&it);
    sale = fixture_table(&it, "sale", "product int64; amount int64", NULL);
    product = fixture_table(&it, "product", "id int64; price int64", "id");
    ivm_plan *join = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    plan = fixture_make(&it, "v", join)->planned->plans[0];
}

static void close_tables(void)
{
    fixture_close(&it);
}

TestSuite(plan_term_plan, .init = open_tables, .fini = close_tables);

static ivm_fact *declare(void)
{
    return fixture_fact(&it, sale, "product", product, "id", IVM_RELY);
}

static void set_pruning(ivm_fk_pruning pruning)
{
    ivm_planner_options options = { pruning, IVM_JOIN_AUTO, false };
    cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
}

/* begin() of the planner for a step of these leaf deltas, ended as told. */
static ivm_status begin(ivm__term_plan *of, const ivm__leaf_delta *leaves, ivm_stats *stats, bool keep)
{
    ivm__step step;
    ivm__join_planner planner = ivm__term_planner(of);
    ivm__step_init(&step, it.engine, stats, &it.error);
    ivm__leaf_prune prunes[IVM_JOIN_LEAVES_MAX] = { { 0 } };
    ivm_status status = planner.prune(planner.state, &step, prunes, of->graph->leaves_count);
    if (status == IVM_OK) {
        status = planner.begin(planner.state, &step, leaves, of->graph->leaves_count);
    }
    if (keep && status == IVM_OK) {
        planner.commit(planner.state, 0, 0);
    } else {
        planner.undo(planner.state);
    }
    return status;
}

static ivm_stats push_two(const char *sales, const char *products)
{
    ivm_batch *batch = NULL;
    ivm_stats stats = { 0 };
    long long a, b;
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    if (*sales) {
        cr_assert_eq(sscanf(sales, "%lld,%lld", &a, &b), 2);
        cr_assert_eq(ivm_batch_insert(batch, sale, ivm_int64(a), ivm_int64(b)), IVM_OK);
    }
    if (*products) {
        cr_assert_eq(sscanf(products, "%lld,%lld", &a, &b), 2);
        cr_assert_eq(ivm_batch_insert(batch, product, ivm_int64(a), ivm_int64(b)), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(it.engine, batch, &stats, &it.error), IVM_OK, "%s", it.error.message);
    return stats;
}

/* ---- Facts -------------------------------------------------------------------------------------------------------------------------- */

Test(plan_term_plan, a_fact_counts_from_the_next_push_and_until_it_is_removed)
{
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, IVM_JOIN_MOBIUS, false };
    cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
    ivm_stats stats = push_two("1,10", "1,5");
    cr_assert_eq(stats.terms_run, 3u);
    cr_assert_eq(stats.terms_pruned, 0u);
    ivm_fact *fact = declare();
    stats = push_two("2,10", "2,5");
    cr_assert_eq(stats.terms_run, 1u);
    cr_assert_eq(stats.terms_pruned, 2u);
    cr_assert_eq(stats.terms_empty, 0u);
    stats = push_two("", "3,5");
    cr_assert_eq(stats.terms_run, 0u);
    cr_assert_eq(stats.terms_pruned, 2u);
    cr_assert_eq(stats.terms_empty, 1u);
    cr_assert_eq(ivm_foreign_key_remove(fact, &it.error), IVM_OK);
    stats = push_two("3,10", "4,5");
    cr_assert_eq(stats.terms_run, 3u);
    cr_assert_eq(stats.terms_pruned, 0u);
}

/* By row: a parent that only gains rows is skipped, one that does not change is empty. */
Test(plan_term_plan, by_row_a_fact_counts_from_the_next_push_and_until_it_is_removed)
{
    ivm_planner_options options = { IVM_FK_PRUNING_ROW, IVM_JOIN_MOBIUS, false };
    cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
    ivm_stats stats = push_two("1,10", "1,5");
    cr_assert(stats.terms_run == 3 && stats.terms_pruned == 0 && stats.terms_empty == 0);
    ivm_fact *fact = declare();
    stats = push_two("2,10", "2,5");
    cr_assert(stats.terms_run == 1 && stats.terms_pruned == 2 && stats.terms_empty == 0);
    stats = push_two("", "3,5");
    cr_assert(stats.terms_run == 0 && stats.terms_pruned == 2 && stats.terms_empty == 1);
    stats = push_two("3,10", "");
    cr_assert(stats.terms_run == 1 && stats.terms_pruned == 0 && stats.terms_empty == 2);
    cr_assert_eq(ivm_foreign_key_remove(fact, &it.error), IVM_OK);
    stats = push_two("3,10", "4,5");
    cr_assert(stats.terms_run == 3 && stats.terms_pruned == 0);
}

Test(plan_term_plan, facts_declared_twice_change_nothing)
{
    declare();
    declare();
    ivm_stats stats = push_two("2,10", "2,5");
    cr_assert_eq(stats.terms_run, 1u);
    cr_assert_eq(stats.terms_pruned, 2u);
}

Test(plan_term_plan, edges_are_found_anew_only_when_facts_change)
{
    ivm__leaf_delta leaves[2] = { { 1, 1, true }, { 1, 1, true } };
    ivm_stats stats = { 0 };
    declare();
    cr_assert_eq(begin(plan, leaves, &stats, true), IVM_OK);
    cr_assert_eq(plan->edges[plan->edges_now].count, 1u);
    test_allocator_arm(&it.allocator, 1);
    cr_assert_eq(begin(plan, leaves, &stats, true), IVM_OK);
    cr_assert_not(test_allocator_disarm(&it.allocator), "a step like the one before allocates nothing");
}

Test(plan_term_plan, out_of_memory_for_edges_fails_the_step_and_is_tried_again)
{
    ivm__leaf_delta leaves[2] = { { 1, 1, true }, { 1, 1, true } };
    uint64_t n = 1;
    set_pruning(IVM_FK_PRUNING_BATCH);
    declare();
    for (bool done = false; !done; n++) {
        ivm_stats stats = { 0 };
        test_allocator_arm(&it.allocator, n);
        ivm_status status = begin(plan, leaves, &stats, true);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(stats.terms_pruned, done ? 2u : 0u);
        cr_assert_eq(plan->last->made, done);
    }
    cr_assert_gt(n, 2u);
    cr_assert_eq(plan->last->skip, 2u);
}

/* ---- Decisions ------------------------------------------------------------------------------------------------------------------------ */

Test(plan_term_plan, an_undone_step_leaves_the_last_decision)
{
    ivm__leaf_delta first[2] = { { 7, 1, true }, { 0, 1, true } }, second[2] = { { 9, 1, true }, { 9, 1, true } };
    ivm_stats stats = { 0 };
    cr_assert_not(plan->last->made, "filling the view is no push");
    cr_assert_eq(begin(plan, first, &stats, true), IVM_OK);
    cr_assert(plan->last->made);
    cr_assert_eq(plan->last->leaves[0].rows_count, 7u);
    cr_assert_eq(plan->last->empty, 2u);
    cr_assert_eq(begin(plan, second, &stats, false), IVM_OK);
    cr_assert_eq(plan->last->leaves[0].rows_count, 7u);
    cr_assert_not(plan->now->made);
}

Test(plan_term_plan, counts_saturate)
{
    ivm__leaf_delta leaves[2] = { { 0, 1, true }, { 1, 1, true } };
    ivm_stats stats = { .terms_pruned = UINT64_MAX - 1, .terms_empty = UINT64_MAX - 1 };
    set_pruning(IVM_FK_PRUNING_BATCH);
    cr_assert_eq(begin(plan, leaves, &stats, true), IVM_OK);
    cr_assert_eq(stats.terms_empty, UINT64_MAX);
    declare();
    leaves[0].rows_count = 1;
    cr_assert_eq(begin(plan, leaves, &stats, true), IVM_OK);
    cr_assert_eq(stats.terms_pruned, UINT64_MAX);
}

/* ---- Too many masks ---------------------------------------------------------------------------------------------------------------------- */

/* A view over so many scans of sale; its join's term plan. */
static ivm__term_plan *wide(uint32_t leaves_count)
{
    ivm_plan *inputs[IVM_JOIN_LEAVES_MAX];
    char name[16];
    for (uint32_t i = 0; i < leaves_count; i++) {
        snprintf(name, sizeof name, "s%u", i);
        inputs[i] = scan_of("sale", name);
    }
    snprintf(name, sizeof name, "w%u", leaves_count);
    ivm_plan *join = ivm_plan_join_many(inputs, leaves_count, NULL);
    return fixture_make(&it, name, ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"))->planned->plans[0];
}

static void set_rule(ivm_join_rule rule)
{
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, rule, false };
    cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
}

Test(plan_term_plan, more_masks_than_may_run_are_refused_under_mobius_alone)
{
    ivm__leaf_delta leaves[19];
    ivm_stats stats = { 0 };
    ivm__term_plan *eighteen = wide(18), *nineteen = wide(19);
    for (uint32_t i = 0; i < 19; i++) {
        leaves[i] = (ivm__leaf_delta){ .rows_count = 1, .rows_live = 1 };
    }
    set_rule(IVM_JOIN_MOBIUS);
    cr_assert_eq(begin(eighteen, leaves, &stats, false), IVM_OK, "2^18 - 1 masks may run");
    cr_assert_eq(begin(nineteen, leaves, &stats, false), IVM_UNSUPPORTED);
    cr_assert_eq(it.error.status, IVM_UNSUPPORTED);
    cr_assert_not_null(strstr(it.error.message, "524287 masks"), "%s", it.error.message);
    leaves[7].rows_count = 0;
    cr_assert_eq(begin(nineteen, leaves, &stats, false), IVM_OK, "empty masks do not run");
    leaves[7].rows_count = 1;
    set_rule(IVM_JOIN_TELESCOPING);
    cr_assert_eq(begin(nineteen, leaves, &stats, false), IVM_OK);
    set_rule(IVM_JOIN_AUTO);
    cr_assert_eq(begin(nineteen, leaves, &stats, true), IVM_OK);
    cr_assert(nineteen->last->telescoping);
}

Test(plan_term_plan, a_refused_push_changes_nothing)
{
    ivm__term_plan *nineteen = wide(19);
    set_rule(IVM_JOIN_MOBIUS);
    ivm_stats before, after;
    ivm_view *pairs = fixture_view_find(&it, "v"), *many = fixture_view_find(&it, "w19");
    cr_assert_eq(fixture_push(&it, product, IVM_INSERT, "1,5"), IVM_OK);
    ivm_engine_stats(it.engine, &before);
    cr_assert_eq(fixture_push(&it, sale, IVM_INSERT, "1,10"), IVM_UNSUPPORTED);
    ivm_engine_stats(it.engine, &after);
    before.bytes_held = after.bytes_held = 0;
    cr_assert_eq(memcmp(&before, &after, sizeof before), 0, "statistics are as they were");
    cr_assert_str_eq(fixture_view(&it, pairs), "");
    cr_assert_str_eq(fixture_view(&it, many), "1*0");
    cr_assert_eq(nineteen->last->counts.run, 0u, "the last push is the one before");
    set_rule(IVM_JOIN_AUTO);
    cr_assert_eq(fixture_push(&it, sale, IVM_INSERT, "1,10"), IVM_OK);
    cr_assert_str_eq(fixture_view(&it, pairs), "1*1,10,1,5");
    cr_assert_str_eq(fixture_view(&it, many), "1*1");
}
