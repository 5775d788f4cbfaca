/* Split: n batches of one row leave what one batch of n does, in every order in which each of them keeps keys and facts; so do batches of any
 * other sizes. */
#include "world.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define VIEWS 3u
#define ROWS 6u

static const world_shape star = { .tables_count = 3, .bag = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 } }, .edges_count = 2 };
static const world_shape snowflake = {
    .tables_count = 4, .bag = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 }, { 2, 0, 3 } }, .edges_count = 3
};
static const world_shape cycle = { .tables_count = 3, .edges = { { 0, 0, 1 }, { 1, 0, 0 }, { 1, 1, 2 } }, .edges_count = 3 };

typedef struct views {
    ivm_view *view[VIEWS];
} views;

static views make_views(world *it)
{
    return (views){ { world_view(it, "join", world_join_plan(it)), world_view(it, "aggregate", world_aggregate_plan(it)),
                      world_view(it, "mixed", world_mixed_plan(it)) } };
}

/* The same rows in every world of one seed. */
static void fill(world *it, const world_shape *shape, bool facts, uint64_t seed)
{
    world_shape with = *shape;
    world_changes changes;
    uint64_t random = seed;
    with.facts = facts;
    world_open(it, &with, NULL);
    world_draw(it, 14, &changes, &random);
    cr_assert_eq(world_push(it, &changes), IVM_OK, "%s", it->error.message);
}

static void dump_all(world *it, const views *of, char *texts[VIEWS])
{
    for (uint32_t v = 0; v < VIEWS; v++) {
        texts[v] = world_dump_view(it, of->view[v]);
    }
}

static void free_all(char *texts[VIEWS])
{
    for (uint32_t v = 0; v < VIEWS; v++) {
        free(texts[v]);
    }
}

static void assert_all(world *it, const views *of, char *const want[VIEWS], const char *what, uint64_t seed)
{
    for (uint32_t v = 0; v < VIEWS; v++) {
        world_assert_same(world_dump_view(it, of->view[v]), strdup(want[v]), what, seed);
    }
}

/* What one batch of all changes leaves. */
static void whole(const world_shape *shape, bool facts, uint64_t seed, const world_changes *changes, char *want[VIEWS])
{
    world it;
    fill(&it, shape, facts, seed);
    views of = make_views(&it);
    cr_assert_eq(world_push(&it, changes), IVM_OK, "%s", it.error.message);
    world_assert_same(world_dump_view(&it, of.view[0]), world_expected(&it), "one batch", seed);
    dump_all(&it, &of, want);
    for (uint32_t v = 1; v < VIEWS; v++) {
        char *anew = world_recomputed(&it, v == 1 ? world_aggregate_plan(&it) : world_mixed_plan(&it));
        world_assert_same(strdup(want[v]), anew, "one batch, computed anew", seed);
    }
    world_close(&it);
}

/* ---- Every order -------------------------------------------------------------------------------------------------------------------------- */

static uint32_t joined; /* cases in which there were joined rows in the end */

typedef struct search {
    world it;
    views of;
    const world_changes *changes;
    char **want;
    uint64_t seed, random;
    uint32_t orders;
} search;

static void search_orders(search *s, uint32_t left)
{
    if (!left) {
        assert_all(&s->it, &s->of, s->want, "one by one", s->seed);
        s->orders++;
        return;
    }
    for (uint32_t i = 0; i < s->changes->count; i++) {
        world_changes one = { .count = 1, .change[0] = s->changes->change[i] }, back;
        if (!(left >> i & 1) || !world_allows(&s->it, &one)) {
            continue;
        }
        world_set_planner(&s->it, &s->random);
        cr_assert_eq(world_push(&s->it, &one), IVM_OK, "%s", s->it.error.message);
        search_orders(s, left & ~(1u << i));
        world_inverse(&one, &back);
        cr_assert_eq(world_push(&s->it, &back), IVM_OK, "%s", s->it.error.message);
    }
}

static uint32_t every_order(const world_shape *shape, bool facts, uint64_t seed)
{
    search s;
    world_changes changes;
    char *want[VIEWS], *before[VIEWS];
    uint64_t random = seed * 1000;
    memset(&s, 0, sizeof s);
    fill(&s.it, shape, facts, seed);
    world_draw(&s.it, ROWS, &changes, &random);
    joined += world_joins(&s.it, &changes);
    whole(shape, facts, seed, &changes, want);
    s.of = make_views(&s.it);
    s.changes = &changes;
    s.want = want;
    s.seed = s.random = seed;
    dump_all(&s.it, &s.of, before);
    search_orders(&s, (1u << changes.count) - 1);
    assert_all(&s.it, &s.of, before, "all taken back", seed);
    free_all(want);
    free_all(before);
    world_close(&s.it);
    cr_assert_gt(s.orders, 0u, "seed %llu", (unsigned long long)seed);
    return s.orders;
}

Test(view_split, every_order_that_keeps_facts_of_a_star)
{
    uint32_t orders = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        orders += every_order(&star, true, seed);
    }
    cr_assert(orders > 500 && joined >= 4, "%u orders, %u joined", orders, joined);
}

Test(view_split, every_order_that_keeps_facts_of_a_snowflake)
{
    uint32_t orders = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        orders += every_order(&snowflake, true, seed);
    }
    cr_assert(orders > 500 && joined >= 4, "%u orders, %u joined", orders, joined);
}

/* Two rows that refer to each other cannot come one by one where facts hold. */
Test(view_split, every_order_that_keeps_keys)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        every_order(&star, false, seed);
        every_order(&snowflake, false, seed);
        every_order(&cycle, false, seed);
    }
    cr_assert_gt(joined, 4u);
}

/* ---- Batches of any size -------------------------------------------------------------------------------------------------------------------- */

/* One row often, now and then many. */
static void in_parts(const world_shape *shape, bool facts, uint64_t seed)
{
    world it;
    world_changes changes, part = { 0 };
    char *want[VIEWS];
    uint64_t random = seed * 77;
    fill(&it, shape, facts, seed);
    world_draw(&it, 24, &changes, &random);
    joined += world_joins(&it, &changes);
    whole(shape, facts, seed, &changes, want);
    views of = make_views(&it);
    for (uint32_t i = 0; i < changes.count; i++) {
        part.change[part.count++] = changes.change[i];
        if (random_short(&random) % 3 == 0 || i + 1 == changes.count) {
            world_set_planner(&it, &random);
            cr_assert_eq(world_push(&it, &part), IVM_OK, "%s", it.error.message);
            world_assert_same(world_dump_view(&it, of.view[0]), world_expected(&it), "a part", seed);
            part.count = 0;
        }
    }
    assert_all(&it, &of, want, "in parts", seed);
    free_all(want);
    world_close(&it);
}

Test(view_split, parts_of_any_size)
{
    static const world_shape *const shapes[] = { &star, &snowflake, &cycle };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        in_parts(shapes[seed % 3], seed % 2, seed);
    }
    cr_assert_gt(joined, 30u);
}
