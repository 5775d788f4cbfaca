/* tests engine/step/pending.c and engine/store/store_lay.c */
#include "pending.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "world.h"

static world tested;
static const uint32_t all[3] = { 0, 1, 2 };

static ivm_view *view_of(const char *name, ivm_refresh refresh, const ivm__source *sources, uint32_t count)
{
    ivm_view *view = NULL;
    cr_assert_eq(copies_create(tested.engine, name, refresh, sources, count, all, 3, &view), IVM_OK);
    return view;
}

static ivm_view *deferred_over(uint32_t table)
{
    return view_of("late", IVM_DEFERRED, (ivm__source[]){ { .table = tested.tables[table] } }, 1);
}

static void refresh(ivm_view *view)
{
    cr_assert_eq(ivm_refresh_view(view, NULL, &tested.error), IVM_OK, "%s", tested.error.message);
    cr_assert(copies_is_current(view));
    cr_assert_null(copies_of(view)->wrong, "%s", copies_of(view)->wrong);
    cr_assert_null(copies_at_rest(tested.engine), "%s", copies_at_rest(tested.engine));
}

Test(engine_pending, rows_that_only_come_are_not_copied)
{
    for (uint32_t table = 0; table < WORLD_TABLES; table++) {
        world_open(&tested, 1);
        ivm_table *of = tested.tables[table];
        world_put(&tested, table, 1, 1, "a", 1);
        ivm_view *late = deferred_over(table);
        for (int64_t i = 2; i < 40; i++) {
            world_put(&tested, table, i, 1, "b", 1);
            cr_assert(!late->pending[0].apart && late->pending[0].first == 1);
        }
        cr_assert(table != WORLD_BAG || !of->whole); /* nothing made the bag look for whole rows */
        cr_assert_eq(world_rows(world_read(late)), 1);
        refresh(late);
        cr_assert(copies_of(late)->delta_rows[0] == 38 && copies_of(late)->shape[0] == IVM_INSERT_ONLY);
        cr_assert_eq(world_rows(world_changes(late)), 38);
        refresh(late);
        cr_assert(copies_of(late)->delta_rows[0] == 0 && copies_of(late)->shape[0] == IVM_UNCHANGED);
        cr_assert_eq(world_rows(world_changes(late)), 0);
        world_close(&tested);
    }
}

Test(engine_pending, heavy_rows_that_came_weigh_what_they_weigh)
{
    for (uint32_t table = WORLD_BAG; table < WORLD_TABLES; table++) {
        world_open(&tested, 2);
        ivm_view *late = deferred_over(table);
        world_put(&tested, table, 1, 1, "a", INT64_MAX);
        world_put(&tested, table, 2, 1, NULL, 1ll << 31);
        refresh(late);
        cr_assert_eq(world_weight(world_read(late), 1, 1, "a"), INT64_MAX);
        cr_assert_eq(world_weight(world_changes(late), 2, 1, NULL), 1ll << 31);
        world_put(&tested, table, 1, 1, "a", -INT64_MAX);
        refresh(late);
        cr_assert_eq(world_weight(world_changes(late), 1, 1, "a"), -INT64_MAX);
        world_close(&tested);
    }
}

Test(engine_pending, a_row_that_came_and_went_is_not_pending)
{
    for (uint32_t table = 0; table < WORLD_TABLES; table++) {
        world_open(&tested, 3);
        for (int64_t i = 0; i < 5; i++) {
            world_put(&tested, table, i, 0, "kept", 1);
        }
        ivm_view *late = deferred_over(table);
        world_put(&tested, table, 7, 1, "x", 1);
        world_put(&tested, table, 7, 1, "x", -1);
        cr_assert(!late->pending[0].apart); /* it never was among the rows of the last refresh */
        world_put(&tested, table, 3, 0, "kept", -1);
        world_put(&tested, table, 8, 1, "y", 1);
        cr_assert(late->pending[0].apart && late->pending[0].rows.store.rows_live == 2);
        world_put(&tested, table, 8, 1, "y", -1);
        cr_assert_eq(late->pending[0].rows.store.rows_live, 1);
        world_put(&tested, table, 3, 0, "kept", 1);
        cr_assert(!late->pending[0].apart && late->pending[0].rows.whole == NULL); /* all is as it was */
        refresh(late);
        cr_assert(copies_of(late)->delta_rows[0] == 0 && copies_of(late)->shape[0] == IVM_UNCHANGED);
        world_close(&tested);
    }
}

Test(engine_pending, equal_rows_of_a_bag_are_one_change)
{
    world_open(&tested, 4);
    for (int i = 0; i < 4; i++) {
        world_put(&tested, WORLD_BAG, 1, 1, "a", 1);
    }
    ivm_view *late = deferred_over(WORLD_BAG);
    world_put(&tested, WORLD_BAG, 1, 1, "a", -3); /* three of the four rows that stand apart */
    world_put(&tested, WORLD_BAG, 1, 1, "a", 1);
    refresh(late);
    cr_assert(copies_of(late)->delta_rows[0] == 1 && copies_of(late)->shape[0] == IVM_MIXED);
    cr_assert_eq(world_weight(world_changes(late), 1, 1, "a"), -2);
    world_put(&tested, WORLD_BAG, 1, 1, "a", 5);
    world_put(&tested, WORLD_BAG, 1, 1, "a", -1);
    refresh(late);
    cr_assert(copies_of(late)->delta_rows[0] == 1 && copies_of(late)->shape[0] == IVM_INSERT_ONLY);
    world_put(&tested, WORLD_BAG, 1, 1, "a", -6); /* none is left to lay anything over */
    refresh(late);
    cr_assert_eq(world_weight(world_changes(late), 1, 1, "a"), -6);
    cr_assert_eq(world_rows(world_read(late)), 0);
    world_close(&tested);
}

Test(engine_pending, a_push_that_fails_leaves_what_was_pending)
{
    world_open(&tested, 5);
    for (int64_t i = 0; i < 3; i++) {
        world_put(&tested, WORLD_KEYED, i, 0, "a", 1);
    }
    ivm_view *late = deferred_over(WORLD_KEYED);
    ivm_view *fails = view_of("now", IVM_IMMEDIATE, (ivm__source[]){ { .table = tested.tables[WORLD_KEYED] } }, 1);
    for (int apart = 0; apart < 2; apart++) {
        copies_fail(fails, true);
        cr_assert_eq(world_push(&tested, world_row(&tested, WORLD_KEYED, 1, 0, "a", -1)), IVM_OVERFLOW);
        cr_assert(late->pending[0].apart == apart);
        cr_assert_eq(world_push(&tested, world_row(&tested, WORLD_KEYED, 10 + apart, 0, "a", 1)), IVM_OVERFLOW);
        cr_assert_null(copies_at_rest(tested.engine));
        copies_fail(fails, false);
        world_put(&tested, WORLD_KEYED, apart, 0, "a", -1);
        cr_assert(late->pending[0].apart && late->pending[0].rows.store.rows_live == (uint64_t)apart + 1);
    }
    refresh(late);
    cr_assert_eq(world_rows(world_changes(late)), 2);
    world_close(&tested);
}

Test(engine_pending, a_weight_past_int64_is_refused)
{
    world_open(&tested, 6);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", -INT64_MAX);
    ivm_view *late = deferred_over(WORLD_SIGNED);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", INT64_MAX);
    cr_assert_eq(world_push(&tested, world_row(&tested, WORLD_SIGNED, 1, 1, "a", 1)), IVM_OVERFLOW);
    cr_assert_str_eq(tested.error.message, "view late: the weight of a pending row is out of range");
    refresh(late);
    cr_assert_eq(world_weight(world_changes(late), 1, 1, "a"), INT64_MAX);
    world_put(&tested, WORLD_SIGNED, 1, 1, "a", 1);
    world_close(&tested);
}

/* ---- Any history --------------------------------------------------------------------------------------------------------------------------- */

/* What must be exactly as it was after a refresh that failed. */
typedef struct rest {
    uint32_t rows_end, free_count, last_count, free_sum;
    uint64_t rows_live;
} rest;

static rest rest_of(const ivm__store *store)
{
    rest it = { store->rows_end, store->free_count, store->last_count, 0, store->rows_live };
    for (uint32_t i = 0; i < store->free_count; i++) {
        it.free_sum = it.free_sum * 31 + store->free[i];
    }
    return it;
}

static void refresh_fails(ivm_view *view)
{
    rest before[WORLD_TABLES], after[WORLD_TABLES];
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        before[i] = rest_of(&tested.tables[i]->store);
    }
    copies_fail(view, true);
    ivm_snapshot *changes = world_changes(view);
    uint64_t count = world_rows(changes), runs = copies_of(view)->runs;
    cr_assert_eq(ivm_refresh_view(view, NULL, &tested.error), IVM_OVERFLOW);
    cr_assert_eq(copies_of(view)->runs, runs + 1);
    copies_fail(view, false);
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        after[i] = rest_of(&tested.tables[i]->store);
    }
    cr_assert(memcmp(before, after, sizeof before) == 0 && world_rows(world_changes(view)) == count);
}

static void history(uint64_t seed)
{
    world_open(&tested, seed);
    ivm_table **t = tested.tables;
    ivm_view *views[6];
    views[0] = view_of("d0", IVM_DEFERRED, (ivm__source[]){ { .table = t[0] }, { .table = t[1] }, { .table = t[2] } }, 3);
    views[1] = view_of("i1", IVM_IMMEDIATE, (ivm__source[]){ { .table = t[1] }, { .view = views[0] } }, 2);
    views[2] = view_of("d2", IVM_DEFERRED, (ivm__source[]){ { .table = t[0] }, { .view = views[0] }, { .view = views[1] } }, 3);
    views[3] = view_of("i3", IVM_IMMEDIATE, (ivm__source[]){ { .view = views[1] }, { .view = views[2] } }, 2);
    views[4] = view_of("i4", IVM_IMMEDIATE, (ivm__source[]){ { .table = t[0] }, { .table = t[2] } }, 2);
    views[5] = view_of("d5", IVM_DEFERRED, (ivm__source[]){ { .table = t[2] }, { .view = views[3] }, { .view = views[4] } }, 3);
    ivm_snapshot *held = NULL;
    for (int i = 0; i < 60; i++) {
        ivm_view *view = views[world_random(&tested, 6)];
        uint64_t choice = world_random(&tested, 10);
        if (choice < 6) {
            (void)world_push(&tested, world_batch(&tested, (uint32_t)world_random(&tested, 8), world_random(&tested, 3) == 0));
        } else if (choice < 8 || view->refresh == IVM_IMMEDIATE) {
            uint64_t runs = copies_of(view)->runs;
            cr_assert_eq(ivm_refresh_view(view, NULL, &tested.error), IVM_OK, "%s", tested.error.message);
            cr_assert_eq(copies_of(view)->runs, runs + (view->refresh == IVM_DEFERRED));
            cr_assert(copies_is_current(view));
        } else if (choice == 8) {
            refresh_fails(view);
        } else {
            ivm_snapshot_close(held);
            cr_assert_eq(ivm_read_table(t[world_random(&tested, WORLD_TABLES)], &held, NULL), IVM_OK);
        }
        for (uint32_t v = 0; v < 6; v++) {
            cr_assert_null(copies_of(views[v])->wrong, "view %s: %s", views[v]->name, copies_of(views[v])->wrong);
            cr_assert(views[v]->refresh == IVM_DEFERRED || copies_is_current(views[v]), "view %s", views[v]->name);
        }
        cr_assert_null(copies_at_rest(tested.engine), "%s", copies_at_rest(tested.engine));
    }
    ivm_snapshot_close(held);
    world_close(&tested);
}

static uint64_t history_seed;

static void tell_seed(void)
{
    if (history_seed) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)history_seed);
    }
}

Test(engine_pending, sources_read_as_they_were_and_are, .fini = tell_seed)
{
    for (history_seed = 1; history_seed <= 60; history_seed++) {
        history(history_seed);
    }
    history_seed = 0;
}
