/* Stars: what an insert-only batch costs. Its facts ask one index a dimension each and find one row there; the fact table has no index and
 * is never read; dimension rows alone cost nothing, whatever stands in the fact table. */
#include "allocator.h"
#include "catalog.h"
#include "ivm/ivm.h"
#include "random.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define DIMENSIONS_MAX 7u

typedef struct star {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_stats stats; /* of the last push */
    uint32_t dimensions_count;
    ivm_table *facts, *dimensions[DIMENSIONS_MAX];
    ivm_view *view;
    int64_t next[DIMENSIONS_MAX]; /* ids of the dimensions */
    uint64_t random;
} star;

static uint64_t draw(star *it)
{
    return random_short(&it->random);
}

static void make_tables(star *it)
{
    ivm_column_definition columns[DIMENSIONS_MAX + 1] = { { "amount", IVM_INT64, true } };
    char names[DIMENSIONS_MAX][8];
    for (uint32_t d = 0; d < it->dimensions_count; d++) {
        static const ivm_column_definition own[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING, false } };
        ivm_table_options options = { .columns = own, .columns_count = 2, .key = "id" };
        snprintf(names[d], sizeof names[d], "k%u", d % 10);
        columns[1 + d] = (ivm_column_definition){ names[d], IVM_INT64, false };
        char name[16];
        snprintf(name, sizeof name, "d%u", d);
        cr_assert_eq(ivm_table_create(it->engine, name, &options, &it->dimensions[d], &it->error), IVM_OK);
    }
    ivm_table_options options = { .columns = columns, .columns_count = 1 + it->dimensions_count };
    cr_assert_eq(ivm_table_create(it->engine, "f", &options, &it->facts, &it->error), IVM_OK);
    for (uint32_t d = 0; d < it->dimensions_count; d++) {
        cr_assert_eq(ivm_foreign_key_declare(it->facts, names[d], it->dimensions[d], "id", IVM_RELY, NULL, &it->error), IVM_OK);
    }
}

static void make_view(star *it)
{
    ivm_plan *inputs[DIMENSIONS_MAX + 1] = { ivm_plan_scan(it->facts, NULL) };
    char on[256];
    size_t size = 0;
    for (uint32_t d = 0; d < it->dimensions_count; d++) {
        inputs[1 + d] = ivm_plan_scan(it->dimensions[d], NULL);
        size += (size_t)snprintf(on + size, sizeof on - size, "%sf.k%u = d%u.id", d ? ", " : "", d, d);
    }
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_join_many(inputs, 1 + it->dimensions_count, on), "d0.name");
    plan = ivm_plan_add(ivm_plan_count(plan, "n"), "total", "sum", ivm_column("amount"));
    cr_assert_eq(ivm_view_create(it->engine, "v", plan, NULL, &it->view, &it->error), IVM_OK, "%s", it->error.message);
}

static void star_open(star *it, uint32_t dimensions_count, ivm_join_rule rule)
{
    memset(it, 0, sizeof *it);
    it->dimensions_count = dimensions_count;
    it->random = dimensions_count;
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.planner.join_rule = rule;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    make_tables(it);
    make_view(it);
}

static void star_close(star *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* One batch: new rows for every dimension, then facts that refer to rows old and new. */
static void push_rows(star *it, uint32_t dimension_rows, uint32_t facts)
{
    ivm_batch *batch = NULL;
    ivm_value values[DIMENSIONS_MAX + 1];
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (uint32_t i = 0; i < dimension_rows; i++) {
        for (uint32_t d = 0; d < it->dimensions_count; d++) {
            char name[16];
            snprintf(name, sizeof name, "name %d", (int)(it->next[d] % 7));
            cr_assert_eq(ivm_batch_insert(batch, it->dimensions[d], ivm_int64(it->next[d]++), ivm_string(name)), IVM_OK);
        }
    }
    for (uint32_t i = 0; i < facts; i++) {
        values[0] = ivm_int64((int64_t)(draw(it) % 100));
        for (uint32_t d = 0; d < it->dimensions_count; d++) {
            values[1 + d] = ivm_int64((int64_t)(draw(it) % (uint64_t)it->next[d]));
        }
        cr_assert_eq(ivm_batch_row(batch, it->facts, IVM_INSERT, 1, values, 1 + it->dimensions_count), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(it->engine, batch, &it->stats, &it->error), IVM_OK, "%s", it->error.message);
}

/* The sum of all groups' counts: the facts that were joined. */
static int64_t facts_in_view(star *it)
{
    ivm_snapshot *snapshot = NULL;
    int64_t count = 0;
    cr_assert_eq(ivm_read_view(it->view, &snapshot, &it->error), IVM_OK);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++) {
            count += ivm_rows_value(&rows, IVM_INT64, at, 1).as.int64;
        }
    }
    ivm_snapshot_close(snapshot);
    return count;
}

/* By batch a dimension that did not change only gained rows, none; by row it is empty. Either way the facts' own mask alone is left. */
static void assert_costs(const star *it, ivm_fk_pruning pruning, bool gained, uint64_t facts)
{
    uint64_t all = (2ull << it->dimensions_count) - 1, skipped = gained || pruning == IVM_FK_PRUNING_BATCH ? all - 1 : 0;
    cr_assert_eq(it->stats.rows_probed, facts * it->dimensions_count, "%llu probed", (unsigned long long)it->stats.rows_probed);
    cr_assert_eq(it->stats.rows_matched, facts * it->dimensions_count);
    cr_assert_eq(it->stats.terms_run, facts > 0);
    cr_assert_eq(it->stats.terms_pruned, skipped, "all masks but the facts' own");
    cr_assert_eq(it->stats.terms_empty, all - skipped - (facts > 0));
    cr_assert_null(it->facts->store.indexes, "no one asks for facts");
}

static void stream_facts(uint32_t dimensions_count, ivm_fk_pruning pruning, ivm_join_rule rule)
{
    star it;
    int64_t facts = 0;
    star_open(&it, dimensions_count, rule);
    cr_assert_eq(ivm_engine_planner_set(it.engine, &(ivm_planner_options){ pruning, rule, false }, &it.error), IVM_OK);
    for (uint32_t step = 0; step < 12; step++) {
        uint32_t rows = step == 0 ? 20 : (uint32_t)(draw(&it) % 4), more = step % 3 == 1 ? 1 : step % 3 * 700;
        push_rows(&it, rows, more);
        assert_costs(&it, pruning, rows > 0, more);
        cr_assert_eq(it.stats.rows_in, (uint64_t)rows * dimensions_count + more);
        facts += more;
        cr_assert_eq(facts_in_view(&it), facts);
    }
    star_close(&it);
}

Test(view_star, a_fact_costs_a_probe_a_dimension)
{
    for (uint32_t dimensions_count = 1; dimensions_count <= DIMENSIONS_MAX; dimensions_count++) {
        for (int rule = IVM_JOIN_AUTO; rule <= IVM_JOIN_TELESCOPING; rule++) {
            stream_facts(dimensions_count, IVM_FK_PRUNING_BATCH, (ivm_join_rule)rule);
            stream_facts(dimensions_count, IVM_FK_PRUNING_ROW, (ivm_join_rule)rule);
        }
    }
}

/* The same batch costs as much when a hundred times as many facts are there. */
Test(view_star, the_facts_before_cost_nothing)
{
    star it;
    star_open(&it, 3, IVM_JOIN_AUTO);
    push_rows(&it, 50, 100);
    push_rows(&it, 5, 20);
    ivm_stats few = it.stats;
    push_rows(&it, 0, 10000);
    push_rows(&it, 5, 20);
    cr_assert_eq(it.stats.rows_probed, few.rows_probed);
    cr_assert_eq(it.stats.rows_matched, few.rows_matched);
    cr_assert_eq(it.stats.terms_run, few.terms_run);
    push_rows(&it, 5, 0);
    cr_assert_eq(it.stats.rows_probed, 0u);
    cr_assert_eq(it.stats.rows_out, 0u);
    cr_assert_eq(facts_in_view(&it), 10140);
    star_close(&it);
}

/* A changed row is no insert: then facts are read, once a fact that refers to it, and an index for it is made. */
Test(view_star, a_changed_dimension_row_reads_its_facts)
{
    star it;
    star_open(&it, 2, IVM_JOIN_AUTO);
    push_rows(&it, 10, 500);
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_upsert(batch, it.dimensions[0], ivm_int64(0), ivm_string("another name")), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, &it.stats, &it.error), IVM_OK);
    cr_assert_eq(it.stats.rows_in, 2u);
    cr_assert_gt(it.stats.rows_matched, 0u);
    cr_assert_lt(it.stats.rows_matched, 500u, "those of one row of ten, before and after, and their other dimension");
    cr_assert_not_null(it.facts->store.indexes);
    cr_assert_eq(it.stats.rows_out, 3u, "a group lost some, and another came");
    cr_assert_eq(facts_in_view(&it), 500);
    star_close(&it);
}

/* Statistics of the engine are the sums of those of its pushes. */
Test(view_star, statistics_add_up)
{
    star it;
    ivm_stats all = { 0 }, told;
    star_open(&it, 2, IVM_JOIN_AUTO);
    for (uint32_t step = 0; step < 6; step++) {
        push_rows(&it, 3, step * 10);
        cr_assert_eq(it.stats.batches, 1u);
        cr_assert_gt(it.stats.nanoseconds, 0u);
        all.batches += it.stats.batches;
        all.rows_in += it.stats.rows_in;
        all.rows_out += it.stats.rows_out;
        all.terms_run += it.stats.terms_run;
        all.terms_pruned += it.stats.terms_pruned;
        all.terms_empty += it.stats.terms_empty;
        all.rows_probed += it.stats.rows_probed;
        all.rows_matched += it.stats.rows_matched;
        all.nanoseconds += it.stats.nanoseconds;
        all.bytes_held = it.stats.bytes_held;
    }
    ivm_engine_stats(it.engine, &told);
    cr_assert_eq(memcmp(&all, &told, sizeof all), 0);
    star_close(&it);
}
