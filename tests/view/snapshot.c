/* Snapshots of views: rows and changes, found by groups, unchanged by what comes later, readable after the view is gone. */
#include "world.h"

#include <criterion/criterion.h>

#include "catalog.h"

static const world_shape star = { .tables_count = 3, .bag = true, .facts = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 } }, .edges_count = 2 };

static void push(world *it, const world_changes *changes)
{
    cr_assert_eq(world_push(it, changes), IVM_OK, "%s", it->error.message);
}

static ivm_snapshot *read_view(world *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return snapshot;
}

static ivm_snapshot *read_changes(world *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_changes(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return snapshot;
}

#define KEPT 10u

Test(view_snapshot, rows_and_changes_stay_as_they_were)
{
    for (uint64_t seed = 1; seed <= 15; seed++) {
        world it;
        world_changes changes;
        uint64_t random = seed;
        ivm_snapshot *kept[2 * KEPT];
        char *then[2 * KEPT];
        world_open(&it, &star, NULL);
        ivm_view *views[] = { world_view(&it, "join", world_join_plan(&it)), world_view(&it, "aggregate", world_aggregate_plan(&it)) };
        for (uint32_t k = 0; k < KEPT; k++) {
            world_draw(&it, 6, &changes, &random);
            world_set_planner(&it, &random);
            push(&it, &changes);
            kept[2 * k] = read_view(&it, views[k % 2]);
            then[2 * k] = world_dump_view(&it, views[k % 2]);
            kept[2 * k + 1] = read_changes(&it, views[k % 2]);
            then[2 * k + 1] = world_dump_changes(&it, views[k % 2]);
        }
        cr_assert_eq(ivm_view_drop(views[0], &it.error), IVM_OK);
        cr_assert_eq(ivm_engine_close(it.engine, &it.error), IVM_IN_USE);
        for (uint32_t k = 2 * KEPT; k > 0; k--) { /* in any order: here and there, then the rest */
            uint32_t at = (uint32_t)(random_short(&random) % k);
            world_assert_same(world_dump(kept[at]), then[at], "a snapshot", seed);
            kept[at] = kept[k - 1];
            then[at] = then[k - 1];
        }
        world_close(&it);
    }
}

Test(view_snapshot, changes_are_those_of_the_last_push_that_went_through)
{
    world it;
    world_changes changes = { 0 };
    const world_changes none = { 0 };
    world_open(&it, &star, NULL);
    ivm_view *view = world_view(&it, "join", world_join_plan(&it));
    for (uint32_t table = 0; table < 3; table++) {
        world_add(&changes, table, (world_row){ .id = 1, .refs = { 1, 1, 1 }, .v = table }, 1);
    }
    push(&it, &changes);
    ivm_view *late = world_view(&it, "aggregate", world_aggregate_plan(&it));
    char *first = world_dump_changes(&it, view);
    cr_assert_str_eq(first, "1*1,0,1,1,1,2\n");
    world_assert_same(world_dump_changes(&it, late), strdup(""), "of a view made since", 0);
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_row(batch, it.tables[1], IVM_DELETE_KEY, 1, (ivm_value[]){ ivm_int64(99) }, 1), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_ROW_NOT_FOUND);
    world_assert_same(world_dump_changes(&it, view), first, "after a push that failed", 0);
    push(&it, &none);
    cr_assert_eq(it.stats.rows_out, 0u);
    world_assert_same(world_dump_changes(&it, view), strdup(""), "after an empty push", 0);
    world_close(&it);
}

/* The number of rows a lookup finds; 0: none. */
static size_t find(ivm_snapshot *snapshot, ivm_rows *rows, const ivm_value *values, size_t values_count)
{
    ivm_error error;
    ivm_status status = ivm_snapshot_find(snapshot, values, values_count, rows, &error);
    cr_assert(status == IVM_OK || status == IVM_ROW_NOT_FOUND, "%s", error.message);
    return status == IVM_OK ? rows->rows_count : 0;
}

Test(view_snapshot, a_group_is_found_by_its_columns)
{
    world it;
    world_changes changes = { 0 };
    ivm_rows rows;
    world_open(&it, &star, NULL);
    ivm_view *view = world_view(&it, "aggregate", world_aggregate_plan(&it));
    for (int64_t id = 1; id <= 3; id++) {
        world_add(&changes, 1, (world_row){ .id = id, .refs = { 1, 1, 1 }, .v = id }, 1);
        world_add(&changes, 2, (world_row){ .id = id, .refs = { 1, 1, 1 }, .v = id == 3 ? WORLD_NULL : id }, 1);
        world_add(&changes, 0, (world_row){ .id = id, .refs = { id, id, 1 }, .v = 10 * id }, id);
    }
    push(&it, &changes);
    ivm_snapshot *snapshot = read_view(&it, view), *changed = read_changes(&it, view);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_string("a longer name than a word holds") }, 1), 1u);
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64, 1);
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 2).as.int64, 10);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_null() }, 1), 1u, "the group of nulls");
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64, 3);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_string("ax") }, 1), 0u);
    cr_assert_eq(find(changed, &rows, (ivm_value[]){ ivm_string("") }, 1), 1u);
    cr_assert_eq(rows.weights[0], 1);
    ivm_snapshot_close(changed);
    changes.count = 0;
    world_add(&changes, 0, (world_row){ .id = 1, .refs = { 1, 1, 1 }, .v = 5 }, 1);
    push(&it, &changes);
    changed = read_changes(&it, view);
    cr_assert_eq(find(changed, &rows, (ivm_value[]){ ivm_string("a longer name than a word holds") }, 1), 2u, "its row before and after");
    cr_assert_eq(rows.weights[0] + rows.weights[1], 0);
    cr_assert_eq(find(changed, &rows, (ivm_value[]){ ivm_null() }, 1), 0u);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_string("a longer name than a word holds") }, 1), 1u);
    cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, 0, 1).as.int64, 1, "the snapshot is from before");
    ivm_snapshot_close(changed);
    ivm_snapshot_close(snapshot);
    world_close(&it);
}

Test(view_snapshot, without_groups_there_is_no_key_to_find_by)
{
    world it;
    ivm_rows rows;
    world_open(&it, &star, NULL);
    ivm_plan *all = ivm_plan_count(ivm_plan_aggregate(world_join_plan(&it), NULL), "n");
    ivm_snapshot *snapshot = read_view(&it, world_view(&it, "all", all));
    cr_assert_eq(ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_int64(0) }, 1, &rows, &it.error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), 1u);
    ivm_snapshot_close(snapshot);
    world_close(&it);
}

/* A joined row found by its leading columns, many to a key. */
Test(view_snapshot, joined_rows_are_found_by_leading_columns)
{
    world it;
    world_changes changes = { 0 };
    ivm_rows rows;
    world_open(&it, &star, NULL);
    ivm_view *view = world_view(&it, "join", world_join_plan(&it));
    world_add(&changes, 1, (world_row){ .id = 1, .refs = { 1, 1, 1 }, .v = 1 }, 1);
    world_add(&changes, 2, (world_row){ .id = 1, .refs = { 1, 1, 1 }, .v = 2 }, 1);
    for (int64_t i = 0; i < 20; i++) {
        world_add(&changes, 0, (world_row){ .id = i % 2, .refs = { 1, 1, i }, .v = i }, i + 1);
    }
    push(&it, &changes);
    ivm_snapshot *snapshot = read_view(&it, view);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_int64(1) }, 1), 10u);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_int64(1), ivm_int64(7) }, 2), 1u);
    cr_assert_eq(rows.weights[0], 8);
    cr_assert_eq(find(snapshot, &rows, (ivm_value[]){ ivm_int64(0), ivm_int64(7) }, 2), 0u);
    cr_assert_eq(
        find(snapshot, &rows, (ivm_value[]){ ivm_int64(0), ivm_int64(4), ivm_int64(1), ivm_int64(1), ivm_int64(1), ivm_int64(2) }, 6), 1u);
    ivm_snapshot_close(snapshot);
    world_close(&it);
}

/* ---- One state of several views ---------------------------------------------------------------------------------------------------- */

static int position_of(const ivm_snapshot *snapshot)
{
    int position = -1;
    size_t size = 0;
    cr_assert_eq(ivm_snapshot_position(snapshot, &position, sizeof position, &size, NULL), IVM_OK);
    cr_assert(size == 0 || size == sizeof position);
    return size ? position : -1;
}

static int told;

static void tell(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)context;
    (void)view;
    told = position_of(changes);
    ivm_snapshot_close(changes); /* is none of its business, and does nothing */
    cr_assert_eq(position_of(changes), told);
}

static ivm_plan *total_of(ivm_table *table)
{
    return ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(table, NULL), NULL), "total", "sum", ivm_column("n"));
}

static int64_t total_read(ivm_snapshot *snapshot)
{
    ivm_rows rows;
    cr_assert(ivm_snapshot_next(snapshot, &rows));
    return ivm_rows_value(&rows, IVM_INT64, 0, 0).as.int64;
}

/* A position below 0: none is given. */
static void push_number(ivm_engine *engine, ivm_table *table, int64_t number, int position)
{
    ivm_batch *batch;
    ivm_error error;
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    ivm_batch_insert(batch, table, ivm_int64(number));
    if (position >= 0) {
        cr_assert_eq(ivm_batch_position(batch, &position, sizeof position), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
}

Test(view_snapshot, several_views_and_the_position_they_stand_at)
{
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *views[2];
    ivm_snapshot *now[2], *old[2], *changes;
    ivm_error error;
    ivm_column_definition column = { "n", IVM_INT64, true };
    ivm_view_options deferred = { .refresh = IVM_DEFERRED }, watched = { .changed = tell };
    cr_assert_eq(ivm_engine_open(NULL, &engine, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "t", &(ivm_table_options){ .columns = &column, .columns_count = 1 }, &table, NULL), IVM_OK);
    cr_assert_eq(ivm_view_create(engine, "a", total_of(table), &watched, &views[0], &error), IVM_OK, "%s", error.message);
    cr_assert_eq(ivm_view_create(engine, "b", total_of(table), &deferred, &views[1], &error), IVM_OK, "%s", error.message);
    push_number(engine, table, 5, -1);
    cr_assert_eq(told, -1);
    cr_assert_eq(ivm_read_views(views, 2, old, &error), IVM_OK);
    push_number(engine, table, 6, 41);
    cr_assert_eq(told, 41, "the push's own, though it was not in yet when the changes were taken");
    cr_assert_eq(ivm_refresh_view(views[1], NULL, &error), IVM_OK);
    push_number(engine, table, 7, -1);
    cr_assert_eq(told, 41, "a push without one leaves it");
    cr_assert_eq(ivm_read_views(views, 2, now, &error), IVM_OK);
    cr_assert(position_of(now[0]) == 41 && position_of(now[1]) == 41 && position_of(old[0]) == -1 && position_of(old[1]) == -1);
    cr_assert(total_read(now[0]) == 18 && total_read(now[1]) == 11, "a deferred view shows its last refresh");
    cr_assert_eq(total_read(old[0]), 5);
    cr_assert_eq(ivm_read_changes(views[0], &changes, &error), IVM_OK);
    cr_assert_eq(position_of(changes), 41);
    char cut = 0;
    size_t size = 0;
    cr_assert_eq(ivm_snapshot_position(changes, &cut, 1, &size, &error), IVM_OK);
    cr_assert(size == sizeof(int) && cut == 41);
    cr_assert_eq(ivm_snapshot_position(NULL, &cut, 1, &size, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "ivm_snapshot_position: snapshot is NULL");
    cr_assert_eq(ivm_snapshot_position(changes, &cut, 1, NULL, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "ivm_snapshot_position: size is NULL");
    cr_assert_eq(ivm_snapshot_position(changes, NULL, 1, &size, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "ivm_snapshot_position: bytes is NULL");
    ivm_snapshot_close(changes);
    for (int i = 0; i < 2; i++) {
        ivm_snapshot_close(now[i]);
        ivm_snapshot_close(old[i]);
    }
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
}

Test(view_snapshot, arguments_are_wanted)
{
    ivm_snapshot *snapshot = NULL;
    ivm_error error;
    cr_assert_eq(ivm_read_view(NULL, &snapshot, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "ivm_read_view: view is NULL");
    cr_assert(!ivm_view_name(NULL) && ivm_view_columns_count(NULL) == 0 && !ivm_view_column_name(NULL, 0));
    cr_assert_eq(ivm_view_column_type(NULL, 0), 0u);
    cr_assert_eq(ivm_read_changes(NULL, &snapshot, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_read_table(NULL, &snapshot, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_view_drop(NULL, &error), IVM_INVALID_ARGUMENT);
}
