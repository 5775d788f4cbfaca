/* tests engine/step/refresh.c and engine/step/step.c */
#include <criterion/criterion.h>
#include <pthread.h>

#include "world.h"

static world tested;
static const uint32_t all[3] = { 0, 1, 2 };

static ivm_view *view_of(const char *name, ivm_refresh refresh, const ivm__source *sources, uint32_t count)
{
    ivm_view *view = NULL;
    cr_assert_eq(copies_create(tested.engine, name, refresh, sources, count, all, 3, &view), IVM_OK);
    return view;
}

static ivm_view *over_table(const char *name, ivm_refresh refresh, uint32_t table)
{
    return view_of(name, refresh, (ivm__source[]){ { .table = tested.tables[table] } }, 1);
}

static ivm_view *over_view(const char *name, ivm_refresh refresh, ivm_view *of)
{
    return view_of(name, refresh, (ivm__source[]){ { .view = of } }, 1);
}

/* ---- Which views run ------------------------------------------------------------------------------------------------------------------ */

Test(engine_refresh, carries_those_that_read_it_along)
{
    world_open(&tested, 1);
    ivm_view *late = over_table("late", IVM_DEFERRED, WORLD_BAG);
    ivm_view *now = over_table("now", IVM_IMMEDIATE, WORLD_BAG);
    ivm_view *behind = over_view("behind", IVM_IMMEDIATE, late);
    ivm_view *further = over_view("further", IVM_IMMEDIATE, behind);
    ivm_view *later = over_view("later", IVM_DEFERRED, further);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 2);
    cr_assert(world_weight(world_changes(now), 1, 1, "a") == 2 && world_rows(world_changes(behind)) == 0);
    uint64_t runs = copies_of(now)->runs;
    ivm_stats stats, sum, before;
    ivm_engine_stats(tested.engine, &before);
    cr_assert_eq(ivm_refresh_view(late, &stats, &tested.error), IVM_OK);
    ivm_engine_stats(tested.engine, &sum);
    cr_assert(stats.batches == 0 && stats.rows_in == 0 && stats.rows_out == 3 && sum.rows_out == before.rows_out + 3);
    cr_assert(sum.batches == 1 && tested.engine->pushes == 1);
    cr_assert_eq(copies_of(now)->runs, runs);
    cr_assert_eq(world_rows(world_changes(now)), 0); /* the last step was the refresh, and it did not change this one */
    cr_assert_eq(world_weight(world_changes(late), 1, 1, "a"), 2);
    cr_assert_eq(world_weight(world_changes(further), 1, 1, "a"), 2);
    cr_assert(copies_of(late)->refreshing && !copies_of(behind)->refreshing);
    cr_assert(world_rows(world_read(later)) == 0 && world_rows(world_changes(later)) == 0);
    cr_assert_eq(ivm_refresh_view(later, NULL, NULL), IVM_OK);
    cr_assert(world_weight(world_read(later), 1, 1, "a") == 2 && world_rows(world_changes(further)) == 0);
    world_close(&tested);
}

Test(engine_refresh, of_an_immediate_view_changes_nothing)
{
    world_open(&tested, 2);
    ivm_view *now = over_table("now", IVM_IMMEDIATE, WORLD_KEYED);
    world_put(&tested, WORLD_KEYED, 1, 1, "a", 1);
    cr_assert_eq(world_rows(world_changes(now)), 1);
    uint64_t runs = copies_of(now)->runs;
    cr_assert_eq(ivm_refresh_view(now, NULL, &tested.error), IVM_OK);
    cr_assert(copies_of(now)->runs == runs && world_rows(world_changes(now)) == 0 && world_rows(world_read(now)) == 1);
    world_close(&tested);
}

Test(engine_refresh, starts_from_the_state_of_the_last_one)
{
    world_open(&tested, 3);
    world_put(&tested, WORLD_KEYED, 1, 1, "a", 1);
    ivm_view *late = over_table("late", IVM_DEFERRED, WORLD_KEYED);
    ivm_view *behind = over_view("behind", IVM_IMMEDIATE, late);
    for (int64_t i = 2; i < 5; i++) {
        world_put(&tested, WORLD_KEYED, i, 1, "a", 1);
    }
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(copies_of(late)->since == 1 && copies_of(behind)->since == 4);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(copies_of(late)->since == 4 && copies_of(late)->delta_rows[0] == 0);
    world_put(&tested, WORLD_KEYED, 5, 1, "a", 1);
    copies_fail(late, true);
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OVERFLOW);
    cr_assert_str_eq(tested.error.message, "copies: told to fail");
    copies_fail(late, false);
    world_put(&tested, WORLD_KEYED, 6, 1, "a", 1);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(copies_of(late)->since == 4 && copies_of(late)->delta_rows[0] == 2);
    world_close(&tested);
}

Test(engine_refresh, a_reader_that_fails_undoes_all)
{
    world_open(&tested, 4);
    ivm_view *late = over_table("late", IVM_DEFERRED, WORLD_SIGNED);
    ivm_view *behind = over_view("behind", IVM_IMMEDIATE, late);
    ivm_view *later = over_view("later", IVM_DEFERRED, late);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", -2);
    copies_fail(behind, true);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OVERFLOW);
    cr_assert(copies_of(late)->undos == 1 && copies_of(behind)->undos == 1);
    cr_assert(world_rows(world_read(late)) == 0 && world_rows(world_read(behind)) == 0);
    cr_assert_null(copies_at_rest(tested.engine));
    copies_fail(behind, false);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(world_weight(world_read(late), 1, 1, "a") == -2 && copies_is_current(behind));
    cr_assert_eq(ivm_refresh_view(later, NULL, NULL), IVM_OK);
    cr_assert(copies_is_current(later));
    world_close(&tested);
}

Test(engine_refresh, a_read_may_ask_for_it)
{
    world_open(&tested, 5);
    ivm_view *late = over_table("late", IVM_DEFERRED, WORLD_BAG);
    world_put(&tested, WORLD_BAG, 1, 1, NULL, 1);
    ivm_snapshot *stale = world_read(late), *fresh = NULL;
    cr_assert_eq(ivm_read_view_refreshed(late, &fresh, &tested.error), IVM_OK);
    cr_assert_eq(world_weight(fresh, 1, 1, NULL), 1);
    cr_assert_eq(world_rows(stale), 0);
    world_put(&tested, WORLD_BAG, 2, 1, NULL, 1);
    copies_fail(late, true);
    fresh = NULL;
    cr_assert(ivm_read_view_refreshed(late, &fresh, &tested.error) == IVM_OVERFLOW && fresh == NULL);
    cr_assert_eq(ivm_refresh_view(NULL, NULL, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_read_view_refreshed(late, NULL, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_read_view_refreshed(NULL, &fresh, &tested.error), IVM_INVALID_ARGUMENT);
    world_close(&tested);
}

/* ---- Callbacks -------------------------------------------------------------------------------------------------------------------------- */

typedef struct told {
    ivm_view *view;
    uint64_t times;
    uint64_t rows;   /* of the last time */
    int64_t weight;  /* of (1, 1, "a") in it */
    uint64_t order;  /* which it was of all */
    bool other_read; /* another thread could read meanwhile */
} told;

static uint64_t order;

/* As world_weight(), which closes it. */
static int64_t weight_in(ivm_snapshot *changes)
{
    int64_t weight = 0;
    for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            weight += ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64 == 1 ? rows.weights[i] : 0;
        }
    }
    return weight;
}

static void tell(void *context, ivm_view *view, ivm_snapshot *changes)
{
    told *it = context;
    cr_assert_eq(view, it->view);
    it->times++;
    it->rows = ivm_snapshot_rows_count(changes);
    it->weight = weight_in(changes);
    it->order = ++order;
}

static void listen(ivm_view *view, told *it, ivm_view_changed changed)
{
    *it = (told){ .view = view };
    view->changed = changed;
    view->changed_context = it;
}

Test(engine_refresh, who_asked_is_told_once)
{
    world_open(&tested, 6);
    told of_late, of_now, of_behind;
    ivm_view *late = over_table("late", IVM_DEFERRED, WORLD_SIGNED), *now = over_table("now", IVM_IMMEDIATE, WORLD_SIGNED);
    ivm_view *behind = over_view("behind", IVM_IMMEDIATE, late);
    listen(late, &of_late, tell);
    listen(now, &of_now, tell);
    listen(behind, &of_behind, tell);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", 3);
    cr_assert(of_now.times == 1 && of_now.weight == 3 && of_late.times == 0 && of_behind.times == 0);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", -1);
    cr_assert(of_now.times == 2 && of_now.weight == -1 && of_now.rows == 1);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 3);
    cr_assert_eq(of_now.times, 2); /* nothing of it changed */
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(of_late.times == 1 && of_late.weight == 2 && of_behind.times == 1 && of_behind.weight == 2 && of_now.times == 2);
    cr_assert_eq(of_late.order + 1, of_behind.order);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(of_late.times == 1 && of_behind.times == 1);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", -3);
    ivm_snapshot *fresh;
    cr_assert_eq(ivm_read_view_refreshed(late, &fresh, NULL), IVM_OK);
    cr_assert(world_weight(fresh, 1, 1, "a") == -1 && of_late.times == 2 && of_late.weight == -3);
    world_close(&tested);
}

Test(engine_refresh, nobody_is_told_of_what_was_undone)
{
    world_open(&tested, 7);
    told of_first;
    ivm_view *first = over_table("first", IVM_IMMEDIATE, WORLD_BAG), *second = over_view("second", IVM_IMMEDIATE, first);
    listen(first, &of_first, tell);
    copies_fail(second, true);
    cr_assert_eq(world_push(&tested, world_row(&tested, WORLD_BAG, 1, 1, "a", 1)), IVM_OVERFLOW);
    cr_assert(of_first.times == 0 && !first->telling && tested.engine->snapshots_oldest == NULL);
    world_close(&tested);
}

/* Everything that may be called on an engine is refused, and nothing of it happens. */
static void call_back(void *context, ivm_view *view, ivm_snapshot *changes)
{
    told *it = context;
    ivm_engine *engine = tested.engine;
    ivm_snapshot *snapshot = NULL;
    ivm_table *table = NULL;
    ivm_view *found = NULL;
    ivm_error error;
    const ivm_column_definition column = { "new", IVM_INT64, false };
    const ivm_table_options options = { .columns = &column, .columns_count = 1 };
    ivm_planner_options planner = ivm_engine_planner(engine);
    cr_assert_eq(ivm_push_batch(engine, world_row(&tested, WORLD_BAG, 7, 7, "a", 1), NULL, &error), IVM_IN_USE);
    cr_assert_str_eq(error.message, "the engine is in use: a callback of it may not call it");
    cr_assert_eq(ivm_refresh_view(view, NULL, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_read_view_refreshed(view, &snapshot, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_read_view(view, &snapshot, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_read_changes(view, &snapshot, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_read_table(tested.tables[0], &snapshot, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_find(engine, "bag", &table, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_view_find(engine, "first", &found, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_create(engine, "t", &options, &table, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_drop(tested.tables[WORLD_KEYED], NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_column_rename(tested.tables[0], "k", "l", NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_column_add(tested.tables[0], &column, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_table_column_drop(tested.tables[0], "v", NULL), IVM_IN_USE);
    cr_assert_eq(ivm_engine_planner_set(engine, &planner, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_engine_close(engine, NULL), IVM_IN_USE);
    cr_assert(!snapshot && !table && !found);
    tell(it, view, changes);
}

Test(engine_refresh, a_callback_may_not_call_the_engine)
{
    world_open(&tested, 8);
    told of_now, of_late;
    ivm_view *now = over_table("now", IVM_IMMEDIATE, WORLD_BAG), *late = over_table("late", IVM_DEFERRED, WORLD_BAG);
    listen(now, &of_now, call_back);
    listen(late, &of_late, call_back);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 1);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(of_now.times == 1 && of_late.times == 1 && tested.engine->pushes == 1);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 1); /* afterwards it may be called again */
    cr_assert_eq(of_now.times, 2);
    world_close(&tested);
}

static void *read_elsewhere(void *context)
{
    told *it = context;
    ivm_snapshot *snapshot = NULL;
    it->other_read = ivm_read_view(it->view, &snapshot, NULL) == IVM_OK && ivm_snapshot_rows_count(snapshot) == 1;
    ivm_snapshot_close(snapshot);
    return NULL;
}

static void wait_for_reader(void *context, ivm_view *view, ivm_snapshot *changes)
{
    pthread_t reader;
    cr_assert_eq(pthread_create(&reader, NULL, read_elsewhere, context), 0);
    pthread_join(reader, NULL);
    tell(context, view, changes);
}

static void *push_elsewhere(void *context)
{
    (void)context;
    world_put(&tested, WORLD_BAG, 2, 1, "a", 1);
    return NULL;
}

static pthread_t pusher;

static void start_pusher(void *context, ivm_view *view, ivm_snapshot *changes)
{
    told *it = context;
    if (it->times == 0) {
        cr_assert_eq(pthread_create(&pusher, NULL, push_elsewhere, NULL), 0);
        it->other_read = tested.engine->pushes == 1;
    }
    tell(context, view, changes);
}

Test(engine_refresh, other_threads_read_and_pushes_wait_their_turn)
{
    world_open(&tested, 9);
    told of_now, of_second;
    ivm_view *now = over_table("now", IVM_IMMEDIATE, WORLD_BAG), *second = over_table("second", IVM_IMMEDIATE, WORLD_BAG);
    listen(now, &of_now, wait_for_reader);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 1);
    cr_assert(of_now.times == 1 && of_now.other_read);
    world_put(&tested, WORLD_BAG, 1, 1, "a", -1);
    world_close(&tested);

    world_open(&tested, 10);
    now = over_table("now", IVM_IMMEDIATE, WORLD_BAG);
    second = over_table("second", IVM_IMMEDIATE, WORLD_BAG);
    listen(now, &of_now, start_pusher);
    listen(second, &of_second, tell);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 1);
    cr_assert(of_now.other_read && of_second.times >= 1);
    pthread_join(pusher, NULL);
    cr_assert(of_now.times == 2 && of_second.times == 2 && of_now.order + 1 == of_second.order);
    world_close(&tested);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------------------- */

/* Refreshes while the n-th allocation fails, for every n. Where it fails nothing has changed. */
static uint64_t refresh_through(ivm_view *view, ivm_view *behind, told *it)
{
    uint64_t rows = world_rows(world_read(view)), behind_rows = world_rows(world_read(behind)), times = it->times;
    for (uint64_t n = 1;; n++) {
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = ivm_refresh_view(view, NULL, &tested.error);
        bool failed = test_allocator_disarm(&tested.allocator);
        cr_assert_null(copies_at_rest(tested.engine), "%s", copies_at_rest(tested.engine));
        if (status == IVM_OK) {
            cr_assert(copies_is_current(view) && copies_is_current(behind));
            return n;
        }
        cr_assert(status == IVM_OUT_OF_MEMORY && failed && tested.error.status == status && it->times == times);
        cr_assert(world_rows(world_read(view)) == rows && world_rows(world_read(behind)) == behind_rows);
    }
}

/* Pushes a random batch so. What is pending must not have taken it where it failed: the refresh after would tell. */
static uint64_t push_through(uint64_t batch_seed)
{
    for (uint64_t n = 1;; n++) {
        tested.random = batch_seed;
        ivm_batch *batch = world_batch(&tested, 6, false);
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = world_push(&tested, batch);
        test_allocator_disarm(&tested.allocator);
        cr_assert_null(copies_at_rest(tested.engine), "%s", copies_at_rest(tested.engine));
        if (status != IVM_OUT_OF_MEMORY) {
            return n;
        }
    }
}

Test(engine_refresh, every_allocation_may_fail)
{
    uint64_t most_of_refresh = 0, most_of_push = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        world_open(&tested, seed);
        told of_behind;
        ivm_table **t = tested.tables;
        ivm_view *first = over_table("first", IVM_IMMEDIATE, WORLD_KEYED);
        ivm_view *late =
            view_of("late", IVM_DEFERRED, (ivm__source[]){ { .table = t[WORLD_BAG] }, { .table = t[WORLD_SIGNED] }, { .view = first } }, 3);
        ivm_view *behind = over_view("behind", IVM_IMMEDIATE, late);
        (void)over_view("later", IVM_DEFERRED, behind);
        listen(behind, &of_behind, tell);
        for (uint64_t i = 0; i < 8; i++) {
            uint64_t n = push_through(seed * 1000 + i + 1);
            most_of_push = n > most_of_push ? n : most_of_push;
            if (i % 3 == 2) {
                n = refresh_through(late, behind, &of_behind);
                most_of_refresh = n > most_of_refresh ? n : most_of_refresh;
            }
        }
        world_close(&tested);
    }
    cr_assert(most_of_refresh > 10 && most_of_push > 10);
}
