/* Inverse: a batch and its negation leave nothing. Views and tables are as they were; from nothing, they are empty, and so are indexes,
 * groups, ordered sets and the rows that joins keep. Memory is not given back at once: pages, slots, arrays and arenas are kept for the next
 * batch, so that the same two batches again hold not a byte more. */
#include "world.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "aggregate_state.h"
#include "join_state.h"

static const world_shape snowflake = {
    .tables_count = 4, .bag = true, .facts = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 }, { 2, 0, 3 } }, .edges_count = 3
};

/* ---- Nothing inside ------------------------------------------------------------------------------------------------------------------- */

static void assert_store_empty(const ivm__store *store, const char *what)
{
    if (!store->layout) {
        return;
    }
    cr_assert_eq(store->rows_live, 0u, "%s", what);
    cr_assert_eq(store->heavy_count, 0u, "%s", what);
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *reason = ivm__index_validate(index);
        cr_assert_null(reason, "%s: %s", what, reason);
        cr_assert_eq(index->used, 0u, "%s: %u slots of an index are in use", what, index->used);
        cr_assert_eq(index->doubles, 0u, "%s", what);
    }
}

static void assert_aggregate_empty(const ivm__operator *operator)
{
    const ivm__aggregate *self = (const ivm__aggregate *)operator;
    assert_store_empty(&self->keys, "groups");
    for (uint32_t i = 0; i < self->accumulators.count; i++) {
        if (self->accumulators.list[i].ordered.memory) {
            cr_assert_eq(self->accumulators.list[i].ordered.entries_count, 0u);
        }
    }
}

static void assert_join_empty(const ivm__operator *operator)
{
    const ivm__join *join = (const ivm__join *)operator;
    for (uint32_t l = 0; l < join->leaves_count; l++) {
        assert_store_empty(&join->leaves[l].rows.store, "rows of a leaf");
        assert_store_empty(&join->leaves[l].delta.store, "delta of a leaf");
    }
}

static void assert_nothing(world *it)
{
    for (const ivm_table *table = it->engine->tables; table; table = table->next) {
        assert_store_empty(&table->store, table->name);
    }
    for (const ivm_view *view = it->engine->views; view; view = view->next) {
        assert_store_empty(view->program.result, view->name);
        for (uint32_t i = 0; i < view->program.operators_count; i++) {
            const ivm__operator *operator= view->program.operators[i];
            if (strcmp(operator->class->name, "aggregate") == 0) {
                assert_aggregate_empty(operator);
            } else if (strcmp(operator->class->name, "join") == 0) {
                assert_join_empty(operator);
            }
        }
    }
}

/* ---- Two batches ------------------------------------------------------------------------------------------------------------------------- */

static void make_views(world *it)
{
    world_view(it, "join", world_join_plan(it));
    world_view(it, "aggregate", world_aggregate_plan(it));
    world_view(it, "mixed", world_mixed_plan(it));
}

static void push(world *it, const world_changes *changes)
{
    cr_assert_eq(world_push(it, changes), IVM_OK, "%s", it->error.message);
}

static uint64_t held(world *it)
{
    ivm_stats stats;
    ivm_engine_stats(it->engine, &stats);
    return stats.bytes_held;
}

Test(view_inverse, from_nothing_leaves_nothing)
{
    const world_changes none = { 0 };
    uint32_t joined = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        world it;
        world_changes changes, back;
        uint64_t random = seed, bytes = 0;
        world_open(&it, &snowflake, NULL);
        if (seed % 2) {
            make_views(&it);
        }
        world_draw(&it, 25, &changes, &random);
        world_inverse(&changes, &back);
        world_set_planner(&it, &random);
        joined += world_joins(&it, &changes);
        for (uint32_t round = 0; round < 8; round++) { /* arrays change places from step to step: after two rounds all have their size */
            push(&it, &changes);
            if (round == 0 && seed % 2 == 0) {
                make_views(&it); /* filled, then emptied */
            }
            push(&it, &back);
            push(&it, &none); /* what the last push took out can be read until here */
            assert_nothing(&it);
            cr_assert_eq(it.engine->texts.count, 0u, "texts, seed %llu", (unsigned long long)seed);
            bytes = round == 2 ? held(&it) : bytes;
            cr_assert(round < 3 || held(&it) == bytes, "seed %llu, round %u: %lld bytes more", (unsigned long long)seed, round,
                      (long long)(held(&it) - bytes));
        }
        world_close(&it);
    }
    cr_assert_gt(joined, 20u, "there is something to take back");
}

Test(view_inverse, one_row_at_a_time_leaves_nothing)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world it;
        world_changes changes;
        uint64_t random = seed;
        world_open(&it, &snowflake, NULL);
        make_views(&it);
        world_draw(&it, 25, &changes, &random);
        for (uint32_t i = 0; i < 2 * changes.count; i++) {
            bool forth = i < changes.count;
            world_changes one = { .count = 1, .change[0] = changes.change[forth ? i : 2 * changes.count - 1 - i] };
            one.change[0].row.weight *= forth ? 1 : -1;
            world_set_planner(&it, &random);
            push(&it, &one);
        }
        assert_nothing(&it);
        world_close(&it);
    }
}

/* The views hold rows before: the changes of the second batch are those of the first, negated. */
Test(view_inverse, changes_are_taken_back)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        world it;
        world_changes changes, back;
        uint64_t random = seed;
        world_open(&it, &snowflake, NULL);
        make_views(&it);
        world_draw(&it, 20, &changes, &random);
        push(&it, &changes);
        for (uint32_t step = 0; step < 4; step++) {
            char *before[3], *forth[3];
            uint32_t v = 0;
            world_draw(&it, 8, &changes, &random);
            world_inverse(&changes, &back);
            world_set_planner(&it, &random);
            for (ivm_view *view = it.engine->views; view; view = view->next) {
                before[v++] = world_dump_view(&it, view);
            }
            push(&it, &changes);
            v = 0;
            for (ivm_view *view = it.engine->views; view; view = view->next) {
                forth[v++] = world_dump_changes(&it, view);
            }
            push(&it, &back);
            v = 0;
            for (ivm_view *view = it.engine->views; view; view = view->next, v++) {
                world_assert_same(world_dump_changes(&it, view), world_difference(forth[v], ""), "changes", seed);
                world_assert_same(world_dump_view(&it, view), before[v], view->name, seed);
                free(forth[v]);
            }
            push(&it, &changes); /* and on from there */
        }
        world_close(&it);
    }
}

/* A batch that is its own inverse does nothing at all. */
Test(view_inverse, in_one_batch_is_no_change)
{
    world it;
    world_changes changes, both = { 0 };
    uint64_t random = 4;
    world_open(&it, &snowflake, NULL);
    make_views(&it);
    world_draw(&it, 16, &changes, &random);
    push(&it, &changes);
    world_draw(&it, 8, &changes, &random);
    for (uint32_t i = 0; i < 2 * changes.count; i++) {
        world_change change = changes.change[i % changes.count];
        world_add(&both, change.table, change.row, i < changes.count ? change.row.weight : -change.row.weight);
    }
    push(&it, &both);
    cr_assert_eq(it.stats.rows_in, 0u);
    cr_assert_eq(it.stats.rows_out, 0u);
    cr_assert_eq(it.stats.terms_run, 0u);
    cr_assert_eq(it.stats.rows_probed, 0u);
    world_close(&it);
}

Test(view_inverse, views_that_are_dropped_give_back_what_they_held)
{
    world it;
    world_changes changes;
    uint64_t random = 7;
    world_open(&it, &snowflake, NULL);
    world_draw(&it, 25, &changes, &random);
    push(&it, &changes);
    uint64_t bytes = 0;
    for (uint32_t round = 0; round < 4; round++) {
        make_views(&it);
        world_draw(&it, 1, &changes, &random); /* indexes of tables that a view wanted stay: they may be wanted again */
        push(&it, &changes);
        for (uint32_t v = 0; v < 3; v++) {
            cr_assert_eq(ivm_view_drop(it.engine->views, &it.error), IVM_OK);
        }
        bytes = round == 1 ? held(&it) : bytes;
        cr_assert(round < 2 || held(&it) <= bytes + 4096, "round %u: %lld bytes more", round, (long long)(held(&it) - bytes));
    }
    for (uint32_t t = 0; t < 4; t++) {
        cr_assert_eq(ivm_table_drop(it.tables[t], &it.error), IVM_OK);
    }
    cr_assert_eq(it.engine->texts.count, 0u);
    ivm__arena_deinit(&it.engine->arena);
    ivm__arena_deinit(&it.engine->scratch);
    uint64_t slots = it.engine->texts.capacity * sizeof(ivm__text_slot);
    cr_assert_eq(held(&it), slots, "without tables and views, arenas and the slots of texts are held, and nothing else");
    world_close(&it);
}
