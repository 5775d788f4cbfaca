/* Rows not kept against rows kept: after every push the twins' views are equal, content and changes, and the table that keeps no rows has those
 * alone that wait, as a model counts them. */
#include "twins.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "catalog.h"

/* ---- Histories ------------------------------------------------------------------------------------------------------------------------------ */

/* Good changes with a last one for which the batch is refused: by a table, or by a view when others have run. */
static void push_bad(twins *it, uint64_t seed)
{
    model next;
    ivm_batch *batch = twins_batch_draw(it, &next);
    ivm_status wanted = IVM_OVERFLOW;
    if (next.e[0] && twins_draw(it, 2)) {
        wanted = IVM_APPEND_ONLY_VIOLATION;
        cr_assert_eq(ivm_batch_delete(batch, it->e, ivm_int64(0), ivm_int64(2)), IVM_OK);
        if (!it->now.e[0]) {
            cr_assert_eq(ivm_batch_delete(batch, it->e, ivm_int64(0), ivm_int64(2)), IVM_OK);
        }
    } else {
        fact_row row = { WIDE_NULL, WIDE_NULL, WIDE_NULL, INT64_MAX, 0 };
        twins_put(it, batch, &row, 2);
    }
    char *before[VIEWS];
    for (uint32_t v = 0; v < VIEWS; v++) {
        before[v] = world_dump_view(&it->world, it->views[0][v]);
    }
    cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), wanted, "%s", it->world.error.message);
    for (uint32_t v = 0; v < VIEWS; v++) {
        world_assert_same(world_dump_view(&it->world, it->views[0][v]), before[v], "after a failed push", seed);
    }
    twins_assert_same(it, 0, seed);
}

/* How many rows stood in the table that keeps none, in all. */
static uint64_t history(ivm_trust trust, ivm_trust trust_far, bool negative, uint64_t seed)
{
    twins it;
    uint64_t kept = 0;
    twins_open(&it, trust, trust_far, negative, seed * 7919 + 1);
    for (int push = 0; push < 24; push++) {
        model next;
        if (twins_draw(&it, 4) == 0) {
            world_set_planner(&it.world, &it.random);
        }
        if (twins_draw(&it, 6) == 0) {
            push_bad(&it, seed);
        }
        ivm_batch *batch = twins_batch_draw(&it, &next);
        twins_push(&it, batch, &next);
        twins_assert_same(&it, 0, seed);
        kept += it.f[0]->store.rows_live;
    }
    world_close(&it.world);
    return kept;
}

Test(view_transient, without_tracked_facts_nothing_is_kept_and_views_are_right)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        cr_assert_eq(history(IVM_RELY, IVM_RELY, false, seed), 0);
        cr_assert_eq(history(IVM_RELY, IVM_RELY, true, seed), 0);
    }
}

Test(view_transient, rows_that_wait_for_late_parents_are_kept_until_these_come)
{
    uint64_t far = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        cr_assert_gt(history(IVM_TRACKED, IVM_TRACKED, false, seed), 0);
        cr_assert_gt(history(IVM_TRACKED, IVM_ENFORCED, false, seed), 0);
        far += history(IVM_RELY, IVM_TRACKED, false, seed);
    }
    cr_assert_gt(far, 1000);
}

Test(view_transient, retractions_may_come_before_their_rows_and_wait_like_them)
{
    uint64_t kept = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        kept += history(IVM_RELY, IVM_TRACKED, true, seed);
    }
    cr_assert_gt(kept, 1000);
}

Test(view_transient, enforced_facts_need_nothing_kept)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        cr_assert_eq(history(IVM_ENFORCED, IVM_RELY, false, seed), 0);
    }
}

Test(view_transient, parents_that_all_come_leave_nothing)
{
    twins it;
    twins_open(&it, IVM_TRACKED, IVM_TRACKED, false, 5);
    for (int push = 0; push < 12; push++) {
        model next;
        ivm_batch *batch = twins_batch_draw(&it, &next);
        twins_push(&it, batch, &next);
    }
    cr_assert_gt(it.f[0]->store.rows_live, 0);
    ivm_batch *batch = twins_batch(&it);
    model next = it.now;
    for (int64_t key = 0; key < KEYS; key++) {
        twins_come_d(&it, batch, &next, key);
        twins_come_s(&it, batch, &next, key);
        twins_come_e(&it, batch, &next, key);
    }
    twins_push(&it, batch, &next);
    twins_assert_same(&it, 0, 0);
    cr_assert_eq(it.f[0]->store.rows_live, 0);
    world_close(&it.world);
}

/* ---- Views that go ---------------------------------------------------------------------------------------------------------------------------- */

static void view_drop(twins *it, uint32_t v)
{
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(ivm_view_drop(it->views[k][v], &it->world.error), IVM_OK, "%s", it->world.error.message);
        it->views[k][v] = NULL;
    }
}

Test(view_transient, rows_that_waited_for_a_dropped_view_alone_go)
{
    twins it;
    model next;
    twins_open(&it, IVM_TRACKED, IVM_TRACKED, false, 3);
    for (int push = 0; push < 8; push++) {
        ivm_batch *batch = twins_batch_draw(&it, &next);
        twins_push(&it, batch, &next);
    }
    view_drop(&it, 5);
    view_drop(&it, 0);
    cr_assert_gt(twins_waiting(&it, 0), twins_waiting(&it, 1), "the history keeps rows for the first view");
    ivm_batch *batch = twins_batch_draw(&it, &next);
    twins_push(&it, batch, &next);
    twins_assert_same(&it, 1, 0);
    view_drop(&it, 1);
    batch = twins_batch_draw(&it, &next);
    twins_push(&it, batch, &next);
    twins_assert_same(&it, 2, 0);
    cr_assert_gt(it.f[0]->store.rows_live, 0);
    view_drop(&it, 2);
    cr_assert_eq(it.f[0]->store.rows_live, 0, "nothing is left to wait for");
    batch = twins_batch_draw(&it, &next);
    twins_push(&it, batch, &next);
    twins_assert_same(&it, 3, 0);
    world_close(&it.world);
}

/* ---- Columns ------------------------------------------------------------------------------------------------------------------------------------ */

static void columns_change(twins *it)
{
    static const ivm_column_definition more = { "more", IVM_STRING, false };
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(ivm_table_column_add(it->f[k], &more, &it->world.error), IVM_OK, "%s", it->world.error.message);
    }
    for (int64_t n = 0; n < 2; n++) { /* rows that differ in the new column alone */
        ivm_batch *batch = twins_batch(it);
        for (int k = 0; k < 2; k++) {
            ivm_batch_insert(batch, it->f[k], ivm_int64(5), ivm_int64(5), ivm_int64(5), ivm_int64(4), ivm_string("t1"),
                             n ? ivm_string("a") : ivm_null());
        }
        fact_row row = { 5, 5, 5, 4, 0 };
        twins_model_add(&it->now, &row, 1);
        cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
    }
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(ivm_table_column_drop(it->f[k], "more", &it->world.error), IVM_OK, "%s", it->world.error.message);
        cr_assert_eq(ivm_table_column_drop(it->f[k], "d", &it->world.error), IVM_IN_USE);
    }
}

Test(view_transient, columns_come_and_go_while_rows_wait)
{
    int changed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        twins it;
        model next;
        twins_open(&it, IVM_TRACKED, IVM_TRACKED, false, seed);
        for (int push = 0; push < 12; push++) {
            if (push == 2 && !it.now.d[5] && !it.now.e[5]) {
                columns_change(&it);
                twins_assert_same(&it, 0, seed);
                changed++;
            }
            ivm_batch *batch = twins_batch_draw(&it, &next);
            twins_push(&it, batch, &next);
            twins_assert_same(&it, 0, seed);
        }
        world_close(&it.world);
    }
    cr_assert_gt(changed, 5);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------------------------------------- */

/* The same batch drawn again: the random state and the model are as they were. */
static bool push_fails(twins *it, uint64_t n, uint64_t seed)
{
    model next;
    uint64_t random = it->random;
    char *before[VIEWS];
    ivm_batch *batch = twins_batch_draw(it, &next);
    for (uint32_t v = 0; v < VIEWS; v++) {
        before[v] = world_dump_view(&it->world, it->views[0][v]);
    }
    test_allocator_arm(&it->world.allocator, n);
    ivm_status status = ivm_push_batch(it->world.engine, batch, NULL, &it->world.error);
    bool failed = test_allocator_disarm(&it->world.allocator);
    cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "call %lu: %s", (unsigned long)n, ivm_status_name(status));
    if (!failed) {
        it->now = next;
    } else {
        it->random = random;
    }
    for (uint32_t v = 0; v < VIEWS; v++) {
        if (failed) {
            world_assert_same(world_dump_view(&it->world, it->views[0][v]), before[v], "after a failed push", n);
        } else {
            free(before[v]);
        }
    }
    twins_assert_same(it, 0, seed);
    return failed;
}

Test(view_transient, a_push_that_runs_out_of_memory_changes_nothing)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            twins it;
            model next;
            twins_open(&it, IVM_TRACKED, IVM_TRACKED, false, seed);
            for (int push = 0; push < 4; push++) {
                ivm_batch *batch = twins_batch_draw(&it, &next);
                twins_push(&it, batch, &next);
            }
            cr_assert_gt(it.f[0]->store.rows_live, 0);
            failed = push_fails(&it, n, seed);
            cr_assert(!failed || !push_fails(&it, UINT32_MAX, seed), "the same push goes through after");
            world_close(&it.world);
        }
    }
}

static uint64_t held_after(twins *it, int batches)
{
    enum { BATCH_ROWS = 2000 };
    static int64_t keys[BATCH_ROWS], n[BATCH_ROWS];
    static const int32_t no_text[BATCH_ROWS + 1];
    ivm_column_data columns[] = {
        { .values = keys }, { .values = keys }, { .values = keys }, { .values = n }, { .values = "", .offsets = no_text }
    };
    ivm_stats stats;
    for (int batch = 0; batch < batches; batch++) {
        for (uint32_t i = 0; i < BATCH_ROWS; i++) {
            keys[i] = (int64_t)(i % KEYS);
            n[i] = (int64_t)(i % 5);
        }
        ivm_rows rows = { .rows_count = BATCH_ROWS, .columns_count = 5, .columns = columns };
        ivm_batch *pushed = twins_batch(it);
        cr_assert_eq(ivm_batch_columns(pushed, it->f[0], IVM_INSERT, &rows), IVM_OK);
        cr_assert_eq(ivm_push_batch(it->world.engine, pushed, NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
    }
    ivm_engine_stats(it->world.engine, &stats);
    return stats.bytes_held;
}

static void memory_stays(ivm_trust trust)
{
    twins it;
    model next = { 0 };
    twins_open(&it, trust, trust, false, 2);
    ivm_batch *batch = twins_batch(&it);
    for (int64_t key = 0; key < KEYS; key++) {
        twins_come_d(&it, batch, &next, key);
        twins_come_s(&it, batch, &next, key);
        twins_come_e(&it, batch, &next, key);
    }
    twins_push(&it, batch, &next);
    uint64_t early = held_after(&it, 10), late = held_after(&it, 40);
    cr_assert_eq(early, late, "%lu bytes after 10 batches, %lu after 50", (unsigned long)early, (unsigned long)late);
    cr_assert_eq(it.f[0]->store.rows_live, 0);
    world_close(&it.world);
}

Test(view_transient, memory_does_not_grow_with_the_rows)
{
    memory_stays(IVM_RELY);
    memory_stays(IVM_ENFORCED);
    memory_stays(IVM_TRACKED);
}
