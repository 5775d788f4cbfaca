/* Memory: the n-th allocation of a push, of making a view and of reading one fails, for every n, each time in a world made anew. Tables, views,
 * changes and statistics are then as they were, every index is sound, and the same call goes through. */
#include "world.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "catalog.h"
#include "index.h"

#define TEXTS 12u

static const world_shape snowflake = {
    .tables_count = 4, .bag = true, .facts = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 }, { 2, 0, 3 } }, .edges_count = 3
};
static const ivm_planner_options settings[] = {
    { IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false }, { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false },
    { IVM_FK_PRUNING_ROW, IVM_JOIN_MOBIUS, true },  { IVM_FK_PRUNING_ROW, IVM_JOIN_TELESCOPING, false },
    { IVM_FK_PRUNING_OFF, IVM_JOIN_MOBIUS, false }, { IVM_FK_PRUNING_OFF, IVM_JOIN_TELESCOPING, true }
};

static void make_views(world *it)
{
    world_view(it, "join", world_join_plan(it));
    world_view(it, "aggregate", world_aggregate_plan(it));
    world_view(it, "mixed", world_mixed_plan(it));
}

/* A world with rows, views and a last push; fresh: the views stand over empty tables that had no push yet. */
static void start(world *it, uint32_t setting, bool views, bool fresh)
{
    world_changes changes;
    uint64_t random = 3;
    world_open(it, &snowflake, &settings[setting]);
    if (fresh) {
        make_views(it);
        return;
    }
    world_draw(it, 24, &changes, &random);
    cr_assert_eq(world_push(it, &changes), IVM_OK, "%s", it->error.message);
    if (views) {
        make_views(it);
        world_draw(it, 4, &changes, &random);
        cr_assert_eq(world_push(it, &changes), IVM_OK, "%s", it->error.message);
    }
}

static char *dump_table(world *it, uint32_t table)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_table(it->tables[table], &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return world_dump(snapshot);
}

/* All that can be read: tables, views, their changes. */
static uint32_t dump_world(world *it, char *texts[TEXTS])
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < it->shape.tables_count; t++) {
        texts[count++] = dump_table(it, t);
    }
    for (ivm_view *view = it->engine->views; view; view = view->next) {
        texts[count++] = world_dump_view(it, view);
        texts[count++] = world_dump_changes(it, view);
    }
    return count;
}

static void assert_sound(const ivm__store *store)
{
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *reason = ivm__index_validate(index);
        cr_assert_null(reason, "%s", reason);
    }
    cr_assert_eq(store->touched_count, 0u);
    cr_assert_eq(store->rows_end, store->step_end);
}

static void assert_as_before(world *it, char *texts[TEXTS], uint32_t count, uint64_t n)
{
    char *now[TEXTS];
    cr_assert_eq(dump_world(it, now), count);
    for (uint32_t i = 0; i < count; i++) {
        world_assert_same(now[i], texts[i], "after a failed call", n);
    }
    for (const ivm_table *table = it->engine->tables; table; table = table->next) {
        assert_sound(&table->store);
    }
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        assert_sound(view->program.result);
    }
}

/* What the views hold is what they would if made now. */
static void assert_right(world *it, uint64_t n)
{
    ivm_plan *(*const plans[])(const world *) = { world_join_plan, world_aggregate_plan, world_mixed_plan };
    uint32_t v = 0;
    ivm_view *views[3] = { NULL };
    for (ivm_view *view = it->engine->views; view; view = view->next) {
        cr_assert_lt(v, 3u);
        views[v++] = view;
    }
    world_assert_same(world_dump_view(it, views[0]), world_expected(it), "the join", n);
    for (uint32_t i = 0; i < v; i++) {
        world_assert_same(world_dump_view(it, views[i]), world_recomputed(it, plans[i](it)), "a view", n);
    }
}

/* ---- Pushing --------------------------------------------------------------------------------------------------------------------------- */

static bool push_fails(uint32_t setting, bool fresh, uint64_t n)
{
    world it;
    world_changes changes;
    char *texts[TEXTS];
    uint64_t random = 5;
    ivm_stats before, after;
    ivm_snapshot *open[2]; /* pages are copied before they change */
    start(&it, setting, true, fresh);
    world_draw(&it, fresh ? 30 : 12, &changes, &random);
    cr_assert(world_joins(&it, &changes));
    uint32_t count = dump_world(&it, texts);
    cr_assert_eq(ivm_read_view(it.engine->views, &open[0], &it.error), IVM_OK);
    cr_assert_eq(ivm_read_table(it.tables[0], &open[1], &it.error), IVM_OK);
    char *then[] = { strdup(texts[4]), strdup(texts[0]) };
    ivm_engine_stats(it.engine, &before);
    test_allocator_arm(&it.allocator, n);
    ivm_status status = world_push(&it, &changes);
    bool failed = test_allocator_disarm(&it.allocator);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "call %llu: %s", (unsigned long long)n, ivm_status_name(status));
    if (failed) {
        cr_assert_eq(it.error.status, IVM_OUT_OF_MEMORY);
        ivm_engine_stats(it.engine, &after);
        before.bytes_held = after.bytes_held = 0;
        cr_assert_eq(memcmp(&before, &after, sizeof before), 0, "statistics, call %llu", (unsigned long long)n);
        assert_as_before(&it, texts, count, n);
        cr_assert_eq(world_push(&it, &changes), IVM_OK, "%s", it.error.message);
    }
    assert_right(&it, n);
    for (uint32_t s = 0; s < 2; s++) {
        world_assert_same(world_dump(open[s]), then[s], "a snapshot from before", n);
    }
    for (uint32_t i = 0; !failed && i < count; i++) {
        free(texts[i]);
    }
    world_close(&it);
    return failed;
}

static void every_push(uint32_t setting)
{
    for (int fresh = 0; fresh <= 1; fresh++) {
        uint64_t n = 1;
        while (push_fails(setting, fresh, n)) {
            n++;
        }
        cr_assert_gt(n, fresh ? 30u : 15u, "%llu calls", (unsigned long long)n);
    }
}

Test(view_memory, a_push_that_fails_under_batch_pruning)
{
    every_push(0);
}

Test(view_memory, a_push_that_fails_under_pruning_by_row)
{
    every_push(1);
    every_push(2);
    every_push(3);
}

Test(view_memory, a_push_that_fails_under_mobius)
{
    every_push(4);
}

Test(view_memory, a_push_that_fails_under_telescoping)
{
    every_push(5);
}

/* ---- Making a view ------------------------------------------------------------------------------------------------------------------------- */

static bool making_fails(ivm_plan *(*plan)(const world *), uint64_t n)
{
    world it;
    char *texts[TEXTS];
    ivm_view *view = NULL;
    start(&it, n % 6, n % 2, false);
    uint32_t count = dump_world(&it, texts), readers = it.tables[0]->readers_count;
    ivm_plan *made = plan(&it);
    test_allocator_arm(&it.allocator, n);
    ivm_status status = ivm_view_create(it.engine, "new", made, NULL, &view, &it.error);
    bool failed = test_allocator_disarm(&it.allocator);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "call %llu: %s", (unsigned long long)n, ivm_status_name(status));
    cr_assert_eq(it.tables[0]->readers_count, readers + !failed);
    if (failed) {
        cr_assert_null(view);
        cr_assert_eq(ivm_view_find(it.engine, "new", &view, &it.error), IVM_UNKNOWN_VIEW);
        assert_as_before(&it, texts, count, n);
        view = world_view(&it, "new", plan(&it));
    }
    world_assert_same(world_dump_view(&it, view), world_recomputed(&it, plan(&it)), "the new view", n);
    for (uint32_t i = 0; !failed && i < count; i++) {
        free(texts[i]);
    }
    world_close(&it);
    return failed;
}

static void every_making(ivm_plan *(*plan)(const world *))
{
    uint64_t n = 1;
    while (making_fails(plan, n)) {
        n++;
    }
    cr_assert_gt(n, 60u);
}

Test(view_memory, a_join_that_cannot_be_made)
{
    every_making(world_join_plan);
}

Test(view_memory, an_aggregate_that_cannot_be_made)
{
    every_making(world_aggregate_plan);
}

Test(view_memory, a_mixed_view_that_cannot_be_made)
{
    every_making(world_mixed_plan);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------------------------- */

Test(view_memory, a_read_that_fails_holds_nothing)
{
    world it;
    start(&it, 0, true, false);
    ivm_view *view = it.engine->views->next;
    char *rows = world_dump_view(&it, view), *changes = world_dump_changes(&it, view);
    for (int side = 0; side < 2; side++) {
        uint64_t n = 1;
        for (bool done = false; !done; n++) {
            ivm_snapshot *snapshot = NULL;
            int64_t blocks = it.allocator.blocks;
            test_allocator_arm(&it.allocator, n);
            ivm_status status = (side ? ivm_read_changes : ivm_read_view)(view, &snapshot, &it.error);
            done = !test_allocator_disarm(&it.allocator);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
            cr_assert_eq(snapshot != NULL, done);
            cr_assert(done || it.allocator.blocks == blocks);
            if (done) {
                world_assert_same(world_dump(snapshot), side ? changes : rows, "read", n);
            }
        }
        cr_assert_gt(n, 2u);
    }
    world_close(&it);
}
