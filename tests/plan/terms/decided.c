/* Decisions kept by delta shape: what is taken is what would be decided, and a step like one of the last few decides nothing. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define PARENTS 4u
#define LEAVES (PARENTS + 1)

static fixture it;
static ivm_table *sale, *parents[PARENTS];
static ivm_view *view;
static ivm__term_plan *plan; /* of the view's join: sales, leaf 0, and what they refer to */
static ivm__edges no_edges;

static void open_star(void)
{
    char name[8], on[24];
    fixture_open(&it);
    sale = fixture_table(&it, "sale", "a int64; b int64; c int64; d int64", NULL);
    ivm_plan *join = scan_of("sale", "s");
    for (uint32_t i = 0; i < PARENTS; i++) {
        snprintf(name, sizeof name, "p%u", i);
        snprintf(on, sizeof on, "s.%c = p%u.id", 'a' + (int)i, i);
        parents[i] = fixture_table(&it, name, "id int64; x int64", "id");
        join = ivm_plan_join(join, scan_of(name, name), on);
    }
    view = fixture_make(&it, "v", ivm_plan_count(ivm_plan_aggregate(join, NULL), "n"));
    plan = view->planned->plans[0];
}

static void close_star(void)
{
    fixture_close(&it);
}

TestSuite(plan_decided, .init = open_star, .fini = close_star);

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* Deltas of few rows, and as many rows as are: the same state, the same leaves. */
static uint64_t leaves_make(uint64_t *state, ivm__leaf_delta *leaves)
{
    uint64_t empty = 0;
    for (uint32_t i = 0; i < LEAVES; i++) {
        uint64_t rows = random_next(state) % 3 ? 1 + random_next(state) % 40 : 0;
        leaves[i] = (ivm__leaf_delta){
            .rows_count = rows,
            .rows_live = 1 + random_next(state) % 100,
            .table_insert_only = random_next(state) % 2,
            .set_aside = i > 0 && random_next(state) % 3 == 0,
        };
        empty |= (uint64_t)(rows == 0) << i;
    }
    return empty;
}

static void alike(const ivm__decision *a, const ivm__decision *b)
{
    cr_assert(a->made == b->made && a->initial == b->initial && a->skip == b->skip && a->empty == b->empty);
    cr_assert_eq(memcmp(&a->counts, &b->counts, sizeof a->counts), 0);
    cr_assert(a->options.fk_pruning == b->options.fk_pruning && a->options.join_rule == b->options.join_rule);
    cr_assert_eq(a->options.run_empty, b->options.run_empty);
    cr_assert_eq(a->order_count, b->order_count);
}

static void equal(const ivm__decision *a, const ivm__decision *b)
{
    alike(a, b);
    cr_assert_eq(a->telescoping, b->telescoping);
    cr_assert(a->estimate_mobius == b->estimate_mobius && a->estimate_telescoping == b->estimate_telescoping);
    cr_assert_eq(memcmp(a->cost, b->cost, LEAVES * sizeof *a->cost), 0);
    cr_assert_eq(memcmp(a->order, b->order, a->order_count * sizeof *a->order), 0);
    cr_assert_eq(memcmp(a->leaves, b->leaves, LEAVES * sizeof *a->leaves), 0);
}

static ivm__decided *make(void)
{
    ivm__decided *decided = NULL;
    cr_assert_eq(ivm__decided_create(&it.engine->memory, LEAVES, &decided), IVM_OK);
    return decided;
}

/* Under every option, twice in a row: the second time from what is kept. */
Test(plan_decided, what_is_taken_is_what_would_be_decided)
{
    ivm__decided *decided = make();
    uint64_t state = 7, made = 0;
    for (uint32_t round = 0; round < 4000; round++) {
        ivm__leaf_delta leaves[LEAVES];
        ivm__decision taken, wanted;
        uint64_t empty = leaves_make(&state, leaves);
        ivm_planner_options options = { (ivm_fk_pruning)(round % 3), (ivm_join_rule)(round / 3 % 3), round % 2 };
        ivm__term_decide(plan->graph, &options, &no_edges, leaves, empty, false, &wanted);
        for (uint32_t again = 0; again < 2; again++) {
            memset(&taken, 0xa5, sizeof taken);
            ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, empty, &taken);
            equal(&taken, &wanted);
            made += again == 0;
            cr_assert_leq(ivm__decided_made(decided), made);
        }
    }
    cr_assert_gt(ivm__decided_made(decided), 1000u);
    ivm__decided_free(decided, &it.engine->memory);
}

/* Sizes within a factor of two may give another driver, never other masks. */
Test(plan_decided, within_a_magnitude_the_terms_multiply_the_same_leaves)
{
    ivm__decided *decided = make();
    uint64_t state = 11;
    for (uint32_t round = 0; round < 4000; round++) {
        ivm__leaf_delta leaves[LEAVES];
        ivm__decision taken, wanted;
        uint64_t empty = leaves_make(&state, leaves);
        ivm_planner_options options = { (ivm_fk_pruning)(round % 3), (ivm_join_rule)(1 + round % 2), false };
        for (uint32_t again = 0; again < 2; again++) {
            ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, empty, &taken);
            ivm__term_decide(plan->graph, &options, &no_edges, leaves, empty, false, &wanted);
            alike(&taken, &wanted);
            uint64_t made = ivm__decided_made(decided);
            for (uint32_t i = 0; i < LEAVES; i++) { /* another count of as many digits */
                leaves[i].rows_count |= leaves[i].rows_count >> 1;
                leaves[i].rows_live |= leaves[i].rows_live >> 1;
            }
            ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, empty, &taken);
            cr_assert_eq(ivm__decided_made(decided), made);
            cr_assert_eq(memcmp(taken.leaves, leaves, sizeof leaves), 0, "what explain tells of the leaves is the step's own");
        }
    }
    ivm__decided_free(decided, &it.engine->memory);
}

Test(plan_decided, whatever_terms_follow_from_makes_another_shape)
{
    ivm__decided *decided = make();
    ivm__edge edge = { .child = 0, .parent = 1 };
    ivm__edges edges = { .edge = &edge, .count = 1 };
    ivm__leaf_delta leaves[LEAVES] = { { .rows_count = 4, .rows_live = 4 }, { .rows_count = 4, .rows_live = 4 } };
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, true };
    ivm__decision decision;
    uint64_t empty = 28, made = 0;
#define TAKEN_ANEW(change)                                                                                                                 \
    change;                                                                                                                                \
    for (uint32_t again = 0; again < 2; again++) {                                                                                         \
        ivm__decided_take(decided, plan->graph, &options, &edges, leaves, empty, &decision);                                               \
        cr_assert_eq(ivm__decided_made(decided), made + 1, #change);                                                                       \
    }                                                                                                                                      \
    made++
    TAKEN_ANEW();
    TAKEN_ANEW(leaves[1].table_insert_only = true);
    TAKEN_ANEW(edge.unused = true);
    cr_assert_eq(decision.skip, 0u);
    TAKEN_ANEW(edge.unused = false; ivm__decided_clear(decided));
    cr_assert_eq(decision.skip, 2u);
    TAKEN_ANEW(options.fk_pruning = IVM_FK_PRUNING_ROW);
    TAKEN_ANEW(leaves[1].set_aside = true);
    TAKEN_ANEW(options.join_rule = IVM_JOIN_MOBIUS);
    TAKEN_ANEW(options.run_empty = false);
    TAKEN_ANEW(leaves[0].rows_count = 8);
    TAKEN_ANEW(leaves[0].rows_live = 8);
    TAKEN_ANEW(leaves[2].rows_count = 1; empty = 24);
    ivm__decided_free(decided, &it.engine->memory);
}

Test(plan_decided, the_one_not_used_for_longest_makes_room)
{
    ivm__decided *decided = make();
    ivm__leaf_delta leaves[LEAVES] = { { 0 } };
    ivm_planner_options options = { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false };
    ivm__decision decision;
    for (uint64_t i = 0; i <= IVM__DECIDED_MAX; i++) {
        for (uint64_t shape = 0; shape <= i; shape += i ? i : 1) { /* the first again before each new one */
            leaves[0].rows_count = 1ull << shape;
            ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, 0, &decision);
        }
    }
    cr_assert_eq(ivm__decided_made(decided), IVM__DECIDED_MAX + 1);
    leaves[0].rows_count = 1;
    ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, 0, &decision);
    cr_assert_eq(ivm__decided_made(decided), IVM__DECIDED_MAX + 1, "kept by its use");
    leaves[0].rows_count = 2;
    ivm__decided_take(decided, plan->graph, &options, &no_edges, leaves, 0, &decision);
    cr_assert_eq(ivm__decided_made(decided), IVM__DECIDED_MAX + 2, "it made room");
    ivm__decided_free(decided, &it.engine->memory);
}

Test(plan_decided, more_edges_than_a_shape_tells_apart_are_decided_each_time)
{
    ivm__decided *decided = make();
    ivm__edge edge[65];
    for (uint32_t e = 0; e < 65; e++) {
        edge[e] = (ivm__edge){ .child = 0, .parent = 1, .unused = true };
    }
    ivm__edges edges = { .edge = edge, .count = 65 };
    ivm__leaf_delta leaves[LEAVES] = { { .rows_count = 1, .table_insert_only = true }, { .rows_count = 1, .table_insert_only = true } };
    ivm_planner_options options = { IVM_FK_PRUNING_BATCH, IVM_JOIN_AUTO, false };
    ivm__decision decision;
    ivm__decided_take(decided, plan->graph, &options, &edges, leaves, 28, &decision);
    cr_assert_eq(decision.skip, 0u);
    edge[64].unused = false;
    ivm__decided_take(decided, plan->graph, &options, &edges, leaves, 28, &decision);
    cr_assert_eq(decision.skip, 2u);
    ivm__decided_free(decided, &it.engine->memory);
}

Test(plan_decided, out_of_memory_leaves_nothing)
{
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm__decided *decided = NULL;
        test_allocator_arm(&it.allocator, n);
        ivm_status status = ivm__decided_create(&it.engine->memory, LEAVES, &decided);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        ivm__decided_free(done ? decided : NULL, &it.engine->memory);
    }
    cr_assert_eq(n, 6u);
}

/* ---- Pushes -------------------------------------------------------------------------------------------------------------------------------- */

static void push_sale(int64_t key)
{
    char row[64];
    snprintf(row, sizeof row, "%d,%d,%d,%d", (int)key, (int)key, (int)key, (int)key);
    cr_assert_eq(fixture_push(&it, sale, IVM_INSERT, row), IVM_OK);
}

static void push_parent(uint32_t at, int64_t key)
{
    char row[32];
    snprintf(row, sizeof row, "%d,1", (int)key);
    cr_assert_eq(fixture_push(&it, parents[at], IVM_INSERT, row), IVM_OK);
}

Test(plan_decided, pushes_of_one_row_decide_nothing_while_a_table_does_not_double)
{
    for (uint32_t i = 0; i < PARENTS; i++) {
        fixture_fact(&it, sale, (char[]){ (char)('a' + i), 0 }, parents[i], "id", IVM_RELY);
        push_parent(i, 1);
    }
    push_sale(1);
    uint64_t before = ivm__decided_made(plan->decided);
    for (uint32_t i = 0; i < 2000; i++) {
        push_sale(1);
        push_parent(i % PARENTS, 2 + i / PARENTS);
    }
    /* five kinds of pushes, while sales double eleven times and parents nine */
    cr_assert_leq(ivm__decided_made(plan->decided) - before, 5u * (11 + 4 * 9));
    cr_assert_str_eq(fixture_view(&it, view), "1*2001");
    before = ivm__decided_made(plan->decided);
    for (uint32_t i = 0; i < 40; i++) {
        push_sale(1);
    }
    cr_assert_leq(ivm__decided_made(plan->decided) - before, 1u);
}

Test(plan_decided, a_fact_declared_or_removed_is_decided_anew)
{
    push_parent(0, 1);
    for (uint32_t i = 0; i < 4; i++) {
        push_sale(1);
    }
    uint64_t made = ivm__decided_made(plan->decided);
    ivm_fact *fact = fixture_fact(&it, sale, "a", parents[0], "id", IVM_RELY);
    for (uint32_t i = 0; i < 2; i++) {
        push_sale(1);
        cr_assert_eq(ivm__decided_made(plan->decided), made + 1);
    }
    cr_assert_eq(ivm_foreign_key_remove(fact, &it.error), IVM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        push_parent(0, 10 + (int64_t)i);
    }
    cr_assert_gt(ivm__decided_made(plan->decided), made + 1);
    cr_assert_eq(plan->last->skip, 0u);
}
