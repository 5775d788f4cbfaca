/* tests engine/step/push.c */
#include "source.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "stage_model.h"

static model tested;
static model_batch batch;
static ivm_error error;

enum { BAG, BY_K, BY_S_K, LOG, KEYED_LOG, PLAIN };

static void part(uint32_t table, ivm_change change)
{
    model_part_add(&batch, table, change, false);
}

static void row(int k, int s, int n)
{
    model_row_add(&batch, k, s, n, 1);
}

static ivm_status push(ivm_stats *stats)
{
    ivm_status status = model_push(&tested, &batch, 5, stats, &error);
    if (status == IVM_OK) {
        cr_assert_eq(model_stage(&tested, &batch, true), IVM_OK);
    }
    cr_assert_null(model_differs(&tested), "%s", model_differs(&tested));
    model_batch_clear(&batch);
    return status;
}

/* ---- All or nothing -------------------------------------------------------------------------------------------------------------- */

/* A batch that adds to, changes and takes from tables of every kind. */
static void much(int i)
{
    part(BAG, IVM_INSERT), row(i % 4, 1, 1), row(i % 3, 2, 0);
    part(BY_K, IVM_UPSERT), row(i % 4, i % 3, i % 2), row(0, 0, i % 2);
    part(BY_S_K, IVM_UPSERT), row(1, i % 3, i % 2);
    part(LOG, IVM_INSERT), row(0, 0, 0);
    part(PLAIN, IVM_WEIGHTED), model_row_add(&batch, i % 4, 0, 0, 1 + i % 2);
    if (i > 8) {
        part(BAG, IVM_DELETE), row((i + 1) % 4, 1, 1);
        part(PLAIN, IVM_DELETE), row(i % 4, 0, 0);
    }
}

Test(engine_push, a_view_that_fails_undoes_all)
{
    model_open(&tested);
    ivm_stats before, after;
    for (int i = 0; i < 20; i++) {
        ivm_engine_stats(tested.engine, &before);
        uint64_t pushes = tested.engine->pushes;
        uint32_t undos = model_view_undos(&tested), commits = model_view_commits(&tested);
        model_view_fails(&tested, true);
        much(i);
        ivm_stats untouched = { .batches = 99 };
        cr_assert_eq(push(&untouched), IVM_OVERFLOW);
        cr_assert_str_eq(error.message, "view by hand: told to");
        cr_assert_eq(untouched.batches, 99);
        cr_assert(model_view_undos(&tested) == undos + 1 && model_view_commits(&tested) == commits);
        ivm_engine_stats(tested.engine, &after);
        after.bytes_held = before.bytes_held;
        cr_assert(memcmp(&before, &after, sizeof before) == 0 && tested.engine->pushes == pushes);
        model_view_fails(&tested, false);
        much(i);
        cr_assert_eq(push(NULL), IVM_OK, "%s", error.message);
        cr_assert_null(model_deltas_differ(&tested));
        cr_assert_eq(tested.engine->pushes, pushes + 1);
    }
    model_close(&tested);
}

/* Fails the n-th allocation of the batch's push, for every n; the push goes through in the end. */
static uint64_t push_through(uint64_t seed, ivm_status wanted)
{
    uint64_t n = 1;
    for (;; n++) {
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = model_push(&tested, &batch, seed, NULL, &error);
        bool failed = test_allocator_disarm(&tested.allocator);
        if (status == IVM_OUT_OF_MEMORY) {
            cr_assert(failed && error.status == status && strcmp(error.message, "out of memory") == 0);
            cr_assert_null(model_differs(&tested), "seed %llu, allocation %llu: %s", (unsigned long long)seed, (unsigned long long)n,
                           model_differs(&tested));
            continue;
        }
        cr_assert_eq(status, wanted, "seed %llu, allocation %llu: %s", (unsigned long long)seed, (unsigned long long)n, error.message);
        if (status == IVM_OK || !failed) {
            return n;
        }
    }
}

Test(engine_push, every_allocation_may_fail)
{
    uint64_t most = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t state = seed * 0xD1342543DE82EF95ull;
        model_open(&tested);
        for (uint32_t i = 0; i < 25; i++) {
            model_batch_random(&tested, &state, &batch);
            uint64_t n = push_through(seed, model_stage(&tested, &batch, false));
            most = n > most ? n : most;
            (void)model_stage(&tested, &batch, true);
            cr_assert_null(model_differs(&tested), "seed %llu: %s", (unsigned long long)seed, model_differs(&tested));
            model_batch_clear(&batch);
        }
        model_close(&tested);
    }
    cr_assert_gt(most, 15);
}

Test(engine_push, a_snapshot_is_not_disturbed)
{
    model_open(&tested);
    part(BAG, IVM_INSERT), row(1, 1, 1);
    cr_assert_eq(push(NULL), IVM_OK);
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(tested.handles[BAG], &snapshot, NULL), IVM_OK);
    for (int i = 0; i < 10; i++) {
        part(BAG, IVM_DELETE), row(1, 1, (i + 1) % 2);
        part(BAG, IVM_INSERT), row(1, 1, i % 2), row(3, 2, 0);
        cr_assert_eq(push(NULL), IVM_OK, "%s", error.message);
    }
    ivm_rows rows;
    cr_assert(ivm_snapshot_next(snapshot, &rows) && rows.rows_count == 1);
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 0).as.int64, 5);
    cr_assert_eq(ivm_rows_value(&rows, IVM_STRING, 0, 1).as.string.size, 1);
    ivm_snapshot_close(snapshot);
    model_close(&tested);
}

/* ---- Statistics and arguments ---------------------------------------------------------------------------------------------------- */

Test(engine_push, statistics_count_net_rows)
{
    model_open(&tested);
    ivm_stats stats, all;
    cr_assert_eq(push(&stats), IVM_OK);
    cr_assert(stats.batches == 1 && stats.rows_in == 0, "no part is a batch too");
    part(BAG, IVM_INSERT), row(1, 1, 1), row(2, 1, 1), row(2, 1, 1);
    part(BY_K, IVM_INSERT), row(1, 0, 0), row(2, 0, 0);
    part(BAG, IVM_DELETE), row(1, 1, 1);
    cr_assert_eq(push(&stats), IVM_OK);
    cr_assert_eq(stats.rows_in, 3);
    cr_assert(stats.nanoseconds > 0 && stats.bytes_held > 0);
    ivm_engine_stats(tested.engine, &all);
    cr_assert(all.batches == 2 && all.rows_in == 3 && all.nanoseconds > stats.nanoseconds);
    model_close(&tested);
}

Test(engine_push, arguments_are_checked)
{
    model_open(&tested);
    ivm_batch *made;
    cr_assert_eq(ivm_push_batch(tested.engine, NULL, NULL, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_batch_create(tested.engine, &made, NULL), IVM_OK);
    cr_assert_eq(ivm_push_batch(NULL, made, NULL, NULL), IVM_INVALID_ARGUMENT, "and the batch is freed");
    cr_assert_eq(ivm_batch_create(tested.engine, &made, NULL), IVM_OK);
    cr_assert_eq(ivm_push_batch(tested.engine, made, NULL, NULL), IVM_OK, "neither statistics nor an error need be given");
    model_close(&tested);
}

Test(engine_push, a_table_dropped_since_is_unknown)
{
    model_open(&tested);
    ivm_table *table;
    ivm_column_definition column = { "i", IVM_INT64, true };
    ivm_table_options options = { .columns = &column, .columns_count = 1 };
    for (int stated = 0; stated < 2; stated++) {
        ivm_batch *made;
        cr_assert_eq(ivm_table_create(tested.engine, "short", &options, &table, NULL), IVM_OK);
        cr_assert_eq(ivm_batch_create(tested.engine, &made, NULL), IVM_OK);
        ivm_value key[] = { ivm_int64(1) };
        if (stated) {
            ivm_batch_state_shape(made, table, IVM_UNCHANGED);
        } else {
            ivm_batch_row(made, table, IVM_INSERT, 1, key, 1);
        }
        cr_assert_eq(ivm_table_drop(table, NULL), IVM_OK);
        cr_assert_eq(ivm_table_create(tested.engine, "short", &options, &table, NULL), IVM_OK, "another of the same name");
        cr_assert_eq(ivm_push_batch(tested.engine, made, NULL, &error), IVM_UNKNOWN_TABLE);
        cr_assert_eq(table->store.rows_live, 0);
        cr_assert_eq(ivm_table_drop(table, NULL), IVM_OK);
    }
    model_close(&tested);
}

static uint32_t listed_count(const ivm_engine *engine)
{
    uint32_t count = 0;
    for (const ivm_table *table = engine->changed; table; table = table->next_changed) {
        cr_assert(table->listed);
        count++;
    }
    return count;
}

Test(engine_push, a_table_is_listed_until_its_changes_are_no_longer_the_last)
{
    model_open(&tested);
    const ivm_engine *engine = tested.engine;
    cr_assert_eq(listed_count(engine), 0);
    part(BY_K, IVM_INSERT), row(1, 1, 1);
    part(LOG, IVM_INSERT), row(1, 1, 1);
    cr_assert_eq(push(NULL), IVM_OK);
    cr_assert_eq(listed_count(engine), 2);
    part(BY_K, IVM_UPSERT), row(1, 1, 0);
    cr_assert_eq(push(NULL), IVM_OK);
    cr_assert_eq(listed_count(engine), 1);
    cr_assert_eq(engine->changed->store.last_changes, 2);
    part(BAG, IVM_INSERT), row(1, 1, 1);
    part(BAG, IVM_DELETE), row(3, 0, 0);
    cr_assert_eq(push(NULL), IVM_ROW_NOT_FOUND);
    cr_assert_eq(listed_count(engine), 2);
    part(BAG, IVM_INSERT), row(1, 1, 1);
    cr_assert_eq(push(NULL), IVM_OK);
    cr_assert_eq(listed_count(engine), 1, "what the update left is given back");
    cr_assert_eq(push(NULL), IVM_OK);
    cr_assert_eq(listed_count(engine), 0);
    model_close(&tested);
}

Test(engine_push, a_table_that_is_listed_may_be_dropped)
{
    ivm_engine *engine;
    ivm_table *tables[3];
    ivm_column_definition column = { "i", IVM_INT64, true };
    ivm_table_options options = { .columns = &column, .columns_count = 1 };
    cr_assert_eq(ivm_engine_open(NULL, &engine, &error), IVM_OK);
    for (uint32_t dropped = 0; dropped < 3; dropped++) {
        ivm_batch *made;
        cr_assert_eq(ivm_batch_create(engine, &made, NULL), IVM_OK);
        for (uint32_t t = 0; t < 3; t++) {
            char name[] = { (char)('a' + t), 0 };
            ivm_value one[] = { ivm_int64(1) };
            cr_assert_eq(ivm_table_create(engine, name, &options, &tables[t], NULL), IVM_OK);
            cr_assert_eq(ivm_batch_row(made, tables[t], IVM_INSERT, 1, one, 1), IVM_OK);
        }
        cr_assert_eq(ivm_push_batch(engine, made, NULL, &error), IVM_OK);
        cr_assert_eq(listed_count(engine), 3);
        cr_assert_eq(ivm_batch_create(engine, &made, NULL), IVM_OK);
        cr_assert_eq(ivm_batch_row(made, tables[dropped], IVM_INSERT, 1, (ivm_value[]){ ivm_int64(2) }, 1), IVM_OK);
        cr_assert_eq(ivm_table_drop(tables[dropped], NULL), IVM_OK);
        cr_assert_eq(listed_count(engine), 2);
        cr_assert_eq(ivm_push_batch(engine, made, NULL, &error), IVM_UNKNOWN_TABLE, "nor is it among those named last");
        cr_assert_eq(ivm_table_drop(tables[(dropped + 1) % 3], NULL), IVM_OK);
        cr_assert_eq(ivm_table_drop(tables[(dropped + 2) % 3], NULL), IVM_OK);
        cr_assert_eq(listed_count(engine), 0);
    }
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK);
}

/* ---- Inside a step --------------------------------------------------------------------------------------------------------------- */

static ivm_status push_again(ivm__operator *self, ivm__step *step)
{
    (void)self;
    ivm_batch *made;
    ivm_shape shape;
    cr_assert_eq(ivm_batch_create(step->engine, &made, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_shape(made, tested.handles[BAG], &shape, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_push_batch(step->engine, made, NULL, NULL), IVM_IN_USE);
    return IVM_OK;
}

Test(engine_push, may_not_come_from_inside)
{
    model_open(&tested);
    static const ivm__operator_class class = { .name = "again", .finish = push_again };
    ivm__operator again = { .class = &class };
    ivm__program *program = &tested.engine->views->program;
    ivm__operator *kept = program->operators[0];
    program->operators[0] = &again;
    part(BAG, IVM_INSERT), row(1, 1, 1);
    cr_assert_eq(push(NULL), IVM_OK);
    program->operators[0] = kept;
    model_close(&tested);
}

/* Where a view is filled the delta is all there is. */
Test(engine_push, an_initial_step_reads_whole_tables)
{
    model_open(&tested);
    part(BAG, IVM_INSERT);
    for (int i = 0; i < 2500; i++) {
        row(i % 4, i % 3, i % 2);
    }
    cr_assert_eq(push(NULL), IVM_OK);
    part(BAG, IVM_DELETE), row(1, 1, 1), row(2, 2, 0);
    cr_assert_eq(push(NULL), IVM_OK);
    ivm_stats stats = { 0 };
    ivm__step step;
    ivm__step_init(&step, tested.engine, &stats, &error);
    step.initial = true;
    ivm__source bag = { .table = tested.handles[BAG] }, log = { .table = tested.handles[LOG] };
    cr_assert_eq(ivm__source_delta_rows(&step, bag), 2498);
    cr_assert_eq(ivm__source_delta_shape(&step, bag), IVM_INSERT_ONLY);
    cr_assert_eq(ivm__source_delta_shape(&step, log), IVM_UNCHANGED);
    ivm__delta_walk walk = { 0 };
    uint64_t rows = 0;
    for (;;) {
        ivm__chunk *chunk;
        cr_assert_eq(ivm__source_delta_next(&step, bag, &walk, &chunk), IVM_OK);
        if (!chunk) {
            break;
        }
        rows += chunk->rows_count;
        ivm__arena_reset(step.scratch);
    }
    cr_assert_eq(rows, 2498);
    ivm__engine_settle(tested.engine);
    model_close(&tested);
}

/* ---- Much ------------------------------------------------------------------------------------------------------------------------ */

#define MANY 1000000u

Test(engine_push, a_million_rows_at_once)
{
    ivm_engine *engine;
    ivm_table *facts;
    ivm_column_definition definitions[] = { { "a", IVM_INT64, true }, { "b", IVM_INT64, true }, { "c", IVM_FLOAT64, true } };
    ivm_table_options options = { .columns = definitions, .columns_count = 3 };
    cr_assert_eq(ivm_engine_open(NULL, &engine, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "facts", &options, &facts, NULL), IVM_OK);
    int64_t *a = malloc(MANY * sizeof *a), *b = malloc(MANY * sizeof *b);
    double *c = malloc(MANY * sizeof *c);
    cr_assert(a && b && c);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        a[i] = i;
        b[i] = (int64_t)i * i;
        c[i] = i * 0.5;
        sum += (uint64_t)a[i] ^ (uint64_t)b[i];
    }
    ivm_column_data columns[] = { { .values = a }, { .values = b }, { .values = c } };
    ivm_rows rows = { MANY, 3, columns, NULL };
    ivm_batch *made;
    ivm_stats stats;
    for (int pushed = 0; pushed < 2; pushed++) {
        cr_assert_eq(ivm_batch_create(engine, &made, NULL), IVM_OK);
        cr_assert_eq(ivm_batch_columns(made, facts, IVM_INSERT, &rows), IVM_OK);
        cr_assert_eq(ivm_push_batch(engine, made, &stats, &error), IVM_OK);
        cr_assert_eq(stats.rows_in, MANY);
    }
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(facts, &snapshot, NULL), IVM_OK);
    uint64_t count = 0, found = 0;
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            found += ((const uint64_t *)rows.columns[0].values)[i] ^ ((const uint64_t *)rows.columns[1].values)[i];
        }
        count += rows.rows_count;
    }
    ivm_snapshot_close(snapshot);
    cr_assert(count == 2 * MANY && found == 2 * sum);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_OK);
    free(a);
    free(b);
    free(c);
}
