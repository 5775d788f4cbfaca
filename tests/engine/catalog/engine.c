/* Engines: options, opening and closing, the lock, settling. */
#include "catalog.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "allocator.h"

static ivm_error error;

static void failed(ivm_status given, ivm_status want, const char *part)
{
    cr_assert_eq(given, want, "%s, not %s: %s", ivm_status_name(given), ivm_status_name(want), error.message);
    cr_assert_eq(error.status, want);
    cr_assert_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
}

static ivm_engine *open_with(const ivm_engine_options *options)
{
    ivm_engine *engine = NULL;
    cr_assert_eq(ivm_engine_open(options, &engine, &error), IVM_OK, "%s", error.message);
    return engine;
}

static void close_it(ivm_engine *engine)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
}

/* ---- Options ------------------------------------------------------------------------------------------------------------------------ */

Test(engine_engine, opens_with_the_defaults)
{
    ivm_engine *engine = open_with(NULL);
    ivm_planner_options planner = ivm_engine_planner(engine);
    cr_assert(planner.fk_pruning == IVM_FK_PRUNING_ROW && planner.join_rule == IVM_JOIN_AUTO && !planner.run_empty);
    ivm_stats stats, none = { 0 };
    ivm_engine_stats(engine, &stats);
    cr_assert_eq(memcmp(&stats, &none, sizeof stats), 0, "an empty engine has done and holds nothing");
    close_it(engine);
    close_it(NULL);
}

Test(engine_engine, what_options_do_not_say_is_the_default)
{
    static const ivm_engine_options defaults = IVM_ENGINE_OPTIONS_INIT;
    static const ivm_planner_options none;
    cr_assert(none.fk_pruning == IVM_FK_PRUNING_ROW && none.join_rule == IVM_JOIN_AUTO && !none.run_empty);
    cr_assert(defaults.planner.fk_pruning == none.fk_pruning && defaults.planner.join_rule == none.join_rule);
    cr_assert(!defaults.planner.run_empty && defaults.hash_seed == 0 && defaults.memory_max == 0);
    ivm_engine *engine = open_with(&(ivm_engine_options){ .memory_max = 1 << 30 });
    ivm_planner_options planner = ivm_engine_planner(engine);
    cr_assert(planner.fk_pruning == IVM_FK_PRUNING_ROW && planner.join_rule == IVM_JOIN_AUTO && !planner.run_empty);
    cr_assert_eq(engine->memory.bytes_max, 1u << 30);
    cr_assert_null(engine->pool);
    close_it(engine);
}

Test(engine_engine, seeds_are_drawn_unless_given)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *first = open_with(&options), *second = open_with(&options);
    cr_assert_neq(first->seed, second->seed);
    close_it(first);
    close_it(second);
    options.hash_seed = 17;
    first = open_with(&options);
    cr_assert_eq(first->seed, 17u);
    close_it(first);
}

Test(engine_engine, options_are_checked)
{
    ivm_engine *engine = (ivm_engine *)1;
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.version = IVM_ENGINE_OPTIONS_VERSION + 1;
    failed(ivm_engine_open(&options, &engine, &error), IVM_INVALID_ARGUMENT, "ivm_engine_open: options of version 2, at most 1 is known");
    options = (ivm_engine_options)IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&allocator);
    options.allocator.resize = NULL;
    failed(ivm_engine_open(&options, &engine, &error), IVM_INVALID_ARGUMENT, "the allocator has no resize, but others of its functions");
    options = (ivm_engine_options)IVM_ENGINE_OPTIONS_INIT;
    options.planner.fk_pruning = (ivm_fk_pruning)3;
    failed(ivm_engine_open(&options, &engine, &error), IVM_INVALID_ARGUMENT, "fk_pruning 3");
    options.planner.fk_pruning = IVM_FK_PRUNING_OFF;
    options.planner.join_rule = (ivm_join_rule)3;
    failed(ivm_engine_open(&options, &engine, &error), IVM_INVALID_ARGUMENT, "join_rule 3");
    options = (ivm_engine_options)IVM_ENGINE_OPTIONS_INIT;
    options.threads = IVM_THREADS_MAX + 1;
    failed(ivm_engine_open(&options, &engine, &error), IVM_INVALID_ARGUMENT, "17 threads");
    failed(ivm_engine_open(NULL, NULL, &error), IVM_INVALID_ARGUMENT, "ivm_engine_open: engine is NULL");
    cr_assert_eq(engine, (ivm_engine *)1);
}

Test(engine_engine, the_planner_is_set_whole_or_not)
{
    ivm_engine *engine = open_with(NULL);
    ivm_planner_options planner = { IVM_FK_PRUNING_OFF, IVM_JOIN_MOBIUS, true };
    cr_assert_eq(ivm_engine_planner_set(engine, &planner, &error), IVM_OK);
    planner = (ivm_planner_options){ IVM_FK_PRUNING_BATCH, (ivm_join_rule)7, true };
    failed(ivm_engine_planner_set(engine, &planner, &error), IVM_INVALID_ARGUMENT, "join_rule 7");
    planner = (ivm_planner_options){ (ivm_fk_pruning)3, IVM_JOIN_AUTO, true };
    failed(ivm_engine_planner_set(engine, &planner, &error), IVM_INVALID_ARGUMENT, "fk_pruning 3");
    failed(ivm_engine_planner_set(engine, NULL, &error), IVM_INVALID_ARGUMENT, "ivm_engine_planner_set: options is NULL");
    failed(ivm_engine_planner_set(NULL, &planner, &error), IVM_INVALID_ARGUMENT, "engine");
    planner = ivm_engine_planner(engine);
    cr_assert(planner.fk_pruning == IVM_FK_PRUNING_OFF && planner.join_rule == IVM_JOIN_MOBIUS && planner.run_empty);
    for (int pruning = IVM_FK_PRUNING_ROW; pruning <= IVM_FK_PRUNING_OFF; pruning++) {
        planner.fk_pruning = (ivm_fk_pruning)pruning;
        cr_assert_eq(ivm_engine_planner_set(engine, &planner, &error), IVM_OK);
        cr_assert_eq((int)ivm_engine_planner(engine).fk_pruning, pruning);
    }
    close_it(engine);
}

/* ---- Closing ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_of(ivm_engine *engine, const char *name)
{
    ivm_column_definition columns[] = { { "a", IVM_INT64, false }, { "b", IVM_STRING, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "a" };
    ivm_table *table = NULL;
    cr_assert_eq(ivm_table_create(engine, name, &options, &table, &error), IVM_OK, "%s", error.message);
    return table;
}

static ivm_batch *batch_of(ivm_engine *engine, ivm_table *table, int64_t first, const char *text)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK);
    cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(first), ivm_string(text)), IVM_OK);
    return batch;
}

Test(engine_engine, is_closed_whole_with_all_that_is_in_it)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&allocator);
    ivm_engine *engine = open_with(&options);
    ivm_table *parent = table_of(engine, "p"), *child = table_of(engine, "c");
    cr_assert_eq(ivm_foreign_key_declare(child, "a", parent, "a", IVM_RELY, NULL, &error), IVM_OK);
    cr_assert_eq(ivm_push_batch(engine, batch_of(engine, parent, 1, "a text"), NULL, &error), IVM_OK);
    cr_assert_eq(ivm_push_batch(engine, batch_of(engine, child, 1, "another"), NULL, &error), IVM_OK);
    ivm_batch *before = batch_of(engine, child, 2, "freed before"), *after = batch_of(engine, child, 3, "freed after");
    ivm_batch_free(before);
    ivm_stats stats;
    ivm_engine_stats(engine, &stats);
    cr_assert_gt(stats.bytes_held, 0u);
    close_it(engine);
    cr_assert_gt(allocator.blocks, 0, "a batch outlives its engine");
    ivm_batch_free(after);
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_engine, with_a_snapshot_is_in_use)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&allocator);
    ivm_engine *engine = open_with(&options);
    ivm_table *table = table_of(engine, "t");
    cr_assert_eq(ivm_push_batch(engine, batch_of(engine, table, 1, "x"), NULL, &error), IVM_OK);
    ivm_snapshot *snapshots[3];
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(ivm_read_table(table, &snapshots[i], &error), IVM_OK);
    }
    static const char *const open[] = { "has 3 open snapshots or Arrow streams", "has 2 open snapshots or Arrow streams",
                                        "has 1 open snapshot or Arrow stream" };
    static const uint32_t order[] = { 1, 0, 2 }; /* out of the middle of the list, then its ends */
    for (uint32_t i = 0; i < 3; i++) {
        failed(ivm_engine_close(engine, &error), IVM_IN_USE, open[i]);
        cr_assert_eq(ivm_push_batch(engine, batch_of(engine, table, 2 + i, "y"), NULL, &error), IVM_OK, "it goes on");
        ivm_snapshot_close(snapshots[order[i]]);
    }
    close_it(engine);
    cr_assert(test_allocator_is_clean(&allocator));
}

Test(engine_engine, out_of_memory_opening_leaves_nothing)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&allocator);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm_engine *engine = NULL;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm_engine_open(&options, &engine, &error);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(engine != NULL, done);
        cr_assert(done || test_allocator_is_clean(&allocator));
        close_it(engine);
    }
    cr_assert_gt(n, 2u);
    cr_assert(test_allocator_is_clean(&allocator));
}

/* ---- The lock ------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_engine, a_call_from_inside_a_step_is_refused_not_blocked)
{
    ivm_engine *engine = open_with(NULL);
    ivm_table *table = table_of(engine, "t"), *found = NULL;
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm__engine_enter(engine, &error), IVM_OK);
    failed(ivm_table_find(engine, "t", &found, &error), IVM_IN_USE, "callback");
    failed(ivm_table_drop(table, &error), IVM_IN_USE, "callback");
    failed(ivm_read_table(table, &snapshot, &error), IVM_IN_USE, "callback");
    failed(ivm_push_batch(engine, batch_of(engine, table, 1, "x"), NULL, &error), IVM_IN_USE, "callback");
    failed(ivm_engine_close(engine, &error), IVM_IN_USE, "callback");
    ivm__engine_leave(engine);
    cr_assert_eq(ivm_table_find(engine, "t", &found, &error), IVM_OK);
    close_it(engine);
}

typedef struct worker {
    ivm_engine *engine;
    uint32_t number, found;
} worker;

/* Makes, fills, reads, finds and drops tables of its own. */
static void *work(void *of)
{
    worker *self = of;
    ivm_error wrong = IVM_ERROR_INIT;
    ivm_column_definition column = { "a", IVM_INT64, false };
    ivm_table_options options = { .columns = &column, .columns_count = 1 };
    for (uint32_t i = 0; i < 200; i++) {
        char name[32];
        ivm_table *table = NULL, *again = NULL;
        ivm_batch *batch = NULL;
        ivm_snapshot *snapshot = NULL;
        snprintf(name, sizeof name, "t%u_%u", self->number, i);
        bool right = ivm_table_create(self->engine, name, &options, &table, &wrong) == IVM_OK &&
                     ivm_batch_create(self->engine, &batch, &wrong) == IVM_OK && ivm_batch_insert(batch, table, ivm_int64(i)) == IVM_OK &&
                     ivm_push_batch(self->engine, batch, NULL, &wrong) == IVM_OK &&
                     ivm_table_find(self->engine, name, &again, &wrong) == IVM_OK && again == table &&
                     ivm_read_table(table, &snapshot, &wrong) == IVM_OK && ivm_table_drop(table, &wrong) == IVM_OK;
        self->found += right && ivm_snapshot_rows_count(snapshot) == 1;
        ivm_snapshot_close(snapshot);
    }
    return NULL;
}

Test(engine_engine, threads_take_turns)
{
    ivm_engine *engine = open_with(NULL);
    pthread_t threads[4];
    worker workers[4];
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){ .engine = engine, .number = i };
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_assert_eq(workers[i].found, 200u);
    }
    ivm_stats stats;
    ivm_engine_stats(engine, &stats);
    cr_assert_eq(stats.batches, 800u);
    cr_assert_eq(stats.rows_in, 800u);
    cr_assert_null(engine->tables);
    close_it(engine);
}
