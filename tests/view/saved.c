/* What views hold does not depend on how they came to it: one history under every setting of the planner, with one thread and with three, gives every
 * operator the same holdings, byte for byte, and so do the same rows in few batches, before the views are made or after. Each view's load into its
 * program compiled anew. */
#include <criterion/criterion.h>

#include "operators/holdings.h"
#include "plan.h"
#include "world.h"

#define VIEWS_MAX 20u
#define PUSHES 12u
#define SETTINGS 36u
#define LATE_KINDS 12u /* of rows: d and n */

static const world_shape shape = {
    .tables_count = 4, .bag = true, .facts = true, .edges = { { 0, 0, 1 }, { 0, 1, 2 }, { 1, 0, 3 }, { 2, 0, 3 } }, .edges_count = 4
};

typedef struct saved {
    world world;
    ivm_table *late; /* a bag whose weights may be below 0: d, n */
    ivm_view *views[VIEWS_MAX];
    uint32_t views_count, deferred;
    int64_t late_weights[LATE_KINDS];
} saved;

/* ---- Views of every operator --------------------------------------------------------------------------------------------------------------- */

static ivm_plan *scan(const saved *it, uint32_t table, const char *alias)
{
    return ivm_plan_scan(it->world.tables[table], alias);
}

static ivm_expr *above_zero(const char *column)
{
    return ivm_call2(">", ivm_column(column), ivm_literal(ivm_int64(0)));
}

static void view_add(saved *it, ivm_plan *plan, bool deferred)
{
    char name[8] = { 'v', (char)('a' + it->views_count), 0 };
    ivm_view_options options = { .version = 1, .refresh = deferred ? IVM_DEFERRED : IVM_IMMEDIATE };
    cr_assert_lt(it->views_count, VIEWS_MAX);
    it->deferred |= (uint32_t)deferred << it->views_count;
    ivm_status status = ivm_view_create(it->world.engine, name, plan, &options, &it->views[it->views_count++], &it->world.error);
    cr_assert_eq(status, IVM_OK, "%s: %s", name, it->world.error.message);
}

/* Number, sum and so on of v by the alias's r0. */
static ivm_plan *grouped(ivm_plan *input, const char *group, const char *value, const char *real)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(input, group), "n");
    plan = ivm_plan_add(plan, "sum", "sum", ivm_column(value));
    plan = ivm_plan_add(plan, "exact", "sum", ivm_column(real));
    plan = ivm_plan_add(plan, "deviation", "stddev_samp", ivm_column(real));
    plan = ivm_plan_add(plan, "least", "min", ivm_column(value));
    return ivm_plan_add(plan, "kinds", "count_distinct", ivm_column(value));
}

static ivm_plan *columns(ivm_plan *input, const char *first, const char *second)
{
    ivm_plan *plan = ivm_plan_project(input, NULL);
    return ivm_plan_compute(ivm_plan_compute(plan, "x", ivm_column(first)), "y", ivm_column(second));
}

static ivm_plan *star(const saved *it)
{
    ivm_plan *inputs[] = { scan(it, 0, NULL), ivm_plan_filter(scan(it, 1, NULL), above_zero("v")), scan(it, 2, NULL) };
    return ivm_plan_join_many(inputs, 3, "t0.r0 = t1.id, t0.r1 = t2.id");
}

/* A leaf that is an aggregate, one that is a set, and one that is a join of kinds. */
static void views_over_operators(saved *it)
{
    ivm_plan *by_id = ivm_plan_count(ivm_plan_aggregate(scan(it, 0, "f"), "f.r0"), "n");
    ivm_plan *join = ivm_plan_join(scan(it, 1, NULL), by_id, "t1.id = r0");
    view_add(it, columns(join, "t1.v", "n"), false);
    ivm_plan *distinct = ivm_plan_distinct(columns(scan(it, 0, "f"), "f.r0", "f.v"));
    view_add(it, grouped(ivm_plan_join(distinct, scan(it, 1, NULL), "x = t1.id"), "y", "t1.v", "t1.f"), false);
    ivm_plan *outer = ivm_plan_join_kind(IVM_LEFT_JOIN, scan(it, 0, NULL), scan(it, 1, NULL), "t0.r0 = t1.id");
    view_add(it, columns(ivm_plan_join(outer, scan(it, 2, NULL), "t0.r1 = t2.id"), "t1.v", "t2.v"), false);
}

static void views_of_kinds(saved *it)
{
    static const ivm_join_kind kinds[] = { IVM_LEFT_JOIN, IVM_FULL_JOIN, IVM_SEMI_JOIN, IVM_ANTI_JOIN };
    for (uint32_t i = 0; i < 4; i++) {
        ivm_plan *inner = ivm_plan_join(scan(it, 0, NULL), scan(it, 2, NULL), "t0.r1 = t2.id");
        view_add(it, ivm_plan_join_kind(kinds[i], columns(inner, "t0.r0", "t2.v"), scan(it, 1, NULL), "x = t1.id"), i == 1);
    }
}

static void views_of_sets(saved *it)
{
    static const ivm_set_operation kinds[] = { IVM_UNION, IVM_EXCEPT_ALL, IVM_INTERSECT };
    for (uint32_t i = 0; i < 3; i++) {
        ivm_plan *inputs[] = { columns(star(it), "t1.v", "t2.v"), columns(scan(it, 0, NULL), "t0.v", "t0.r2") };
        view_add(it, ivm_plan_set(kinds[i], inputs, 2), false);
    }
    ivm_plan *top = ivm_plan_top_k(columns(star(it), "t0.v", "t2.s"), 3, 1);
    top = ivm_plan_order_by(ivm_plan_partition_by(top, ivm_column("y")), ivm_call2("*", ivm_column("x"), ivm_literal(ivm_int64(-2))), true,
                            false);
    view_add(it, top, false);
}

/* Weights below 0: signs, a bound of magnitudes. */
static void views_of_late_rows(saved *it)
{
    ivm_plan *join = ivm_plan_join(ivm_plan_scan(it->late, NULL), scan(it, 1, NULL), "late.d = t1.id");
    view_add(it, grouped(join, "late.d", "late.n", "t1.f"), false);
    join = ivm_plan_join(ivm_plan_scan(it->late, NULL), scan(it, 0, NULL), "late.d = t0.r0");
    view_add(it, columns(join, "late.n", "t0.v"), false);
}

static void views_make(saved *it)
{
    view_add(it, world_aggregate_plan(&it->world), false);
    view_add(it, world_mixed_plan(&it->world), false);
    view_add(it, world_join_plan(&it->world), true);
    view_add(it, columns(star(it), "t0.v", "t1.s"), false);
    view_add(it, grouped(star(it), "t0.r1", "t0.v", "t0.f"), true);
    views_over_operators(it);
    views_of_kinds(it);
    views_of_sets(it);
    views_of_late_rows(it);
    ivm_plan *over = ivm_plan_join(ivm_plan_scan_view(it->views[3], "a"), scan(it, 2, "b"), "a.x = b.v");
    view_add(it, columns(over, "a.y", "b.s"), false);
}

static void saved_open(saved *it, uint32_t setting)
{
    static const ivm_column_definition late[] = { { "d", IVM_INT64, false }, { "n", IVM_INT64, false } };
    ivm_planner_options planner = { (ivm_fk_pruning)(setting % 3), (ivm_join_rule)(setting / 3 % 3), setting / 9 % 2 };
    world_shape threads = shape;
    ivm_table_options options = { .columns = late, .columns_count = 2, .allow_negative = true };
    memset(it, 0, sizeof *it);
    threads.threads = setting < SETTINGS / 2 ? 1 : 3;
    world_open(&it->world, &threads, &planner);
    cr_assert_eq(ivm_table_create(it->world.engine, "late", &options, &it->late, &it->world.error), IVM_OK);
}

/* ---- Histories ------------------------------------------------------------------------------------------------------------------------------- */

static void late_put(saved *it, ivm_batch *batch, uint32_t kind, int64_t weight)
{
    ivm_value values[] = { ivm_int64(kind % 4), ivm_int64(kind / 4) };
    cr_assert_eq(ivm_batch_row(batch, it->late, IVM_WEIGHTED, weight, values, 2), IVM_OK);
    it->late_weights[kind] += weight;
}

static void late_push(saved *it, uint64_t *random)
{
    static const int64_t weights[] = { 1, -1, 2, -3, (int64_t)1 << 20 };
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->world.engine, &batch, &it->world.error), IVM_OK);
    for (uint32_t n = 0; n < 4; n++) {
        late_put(it, batch, (uint32_t)(random_short(random) % LATE_KINDS), weights[random_short(random) % 5]);
    }
    cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
}

static void refresh_all(saved *it)
{
    for (uint32_t v = 0; v < it->views_count; v++) {
        if (it->deferred >> v & 1) {
            cr_assert_eq(ivm_refresh_view(it->views[v], NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
        }
    }
}

static void next_push(saved *it, uint32_t n, uint64_t *random)
{
    world_changes changes;
    if (n % 4 == 3) {
        late_push(it, random);
    } else {
        world_draw(&it->world, 1 + (uint32_t)(random_short(random) % 12), &changes, random);
        cr_assert_eq(world_push(&it->world, &changes), IVM_OK, "%s", it->world.error.message);
    }
    if (n % 3 == 2) {
        refresh_all(it);
    }
}

static void view_save(const saved *it, uint32_t view, holdings *held)
{
    holdings_free(held);
    holdings_save_program(held, &it->views[view]->program);
}

/* The same into its program compiled anew. */
static void view_load(saved *it, uint32_t view, const holdings *held, uint64_t seed)
{
    ivm_engine *engine = it->world.engine;
    const ivm__planned *planned = it->views[view]->planned;
    ivm__planned own = { .node = planned->node, .engine = engine, .view = planned->view };
    ivm__program program = { .memory = &engine->memory };
    holdings copy;
    cr_assert_eq(ivm__compile(engine, it->views[view]->name, &own, &program, &it->world.error), IVM_OK);
    cr_assert_eq(holdings_load_program(held, engine, &program, &it->world.error), IVM_OK, "%s", it->world.error.message);
    holdings_copy(&copy, held);
    holdings_assert_program(&copy, &program, "compiled anew", seed);
    cr_assert(holdings_is_still(program.result));
    ivm__program_deinit(&program);
    ivm__planned_deinit(&own, &engine->memory);
}

/* The holdings of all views after each push, under the first setting; under others they must be the same. */
static void history_run(uint64_t seed, uint32_t setting, holdings held[PUSHES][VIEWS_MAX])
{
    uint64_t random = seed;
    saved it;
    saved_open(&it, setting);
    views_make(&it);
    for (uint32_t n = 0; n < PUSHES; n++) {
        next_push(&it, n, &random);
        for (uint32_t v = 0; v < it.views_count; v++) {
            holdings now = { 0 };
            if (setting == 0) {
                view_save(&it, v, &held[n][v]);
                view_load(&it, v, &held[n][v], seed);
                continue;
            }
            view_save(&it, v, &now);
            cr_assert(holdings_equal(&now, &held[n][v]), "seed %llu, setting %u, push %u, view %u", (unsigned long long)seed, setting, n,
                      v);
            holdings_free(&now);
        }
    }
    world_close(&it.world);
}

Test(view_saved, holdings_are_the_same_under_every_setting)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        static holdings held[PUSHES][VIEWS_MAX];
        for (uint32_t setting = 0; setting < SETTINGS; setting++) {
            history_run(seed, setting, held);
        }
        for (uint32_t n = 0; n < PUSHES; n++) {
            for (uint32_t v = 0; v < VIEWS_MAX; v++) {
                holdings_free(&held[n][v]);
            }
        }
    }
}

/* ---- The same rows in few batches ------------------------------------------------------------------------------------------------------------ */

static void rows_push(const saved *from, saved *to)
{
    static const uint32_t parents_first[] = { 3, 1, 2, 0 };
    world_changes changes = { 0 };
    ivm_batch *batch = NULL;
    for (uint32_t n = 0; n < shape.tables_count; n++) {
        const world_rows *rows = &from->world.rows[parents_first[n]];
        for (uint32_t i = 0; i < rows->count; i++) {
            if (changes.count == WORLD_CHANGES_MAX) {
                cr_assert_eq(world_push(&to->world, &changes), IVM_OK, "%s", to->world.error.message);
                changes.count = 0;
            }
            world_add(&changes, parents_first[n], rows->row[i], rows->row[i].weight);
        }
    }
    cr_assert_eq(world_push(&to->world, &changes), IVM_OK, "%s", to->world.error.message);
    cr_assert_eq(ivm_batch_create(to->world.engine, &batch, &to->world.error), IVM_OK);
    for (uint32_t kind = 0; kind < LATE_KINDS; kind++) {
        late_put(to, batch, kind, from->late_weights[kind]);
    }
    cr_assert_eq(ivm_push_batch(to->world.engine, batch, NULL, &to->world.error), IVM_OK);
}

Test(view_saved, the_same_rows_in_few_batches_are_the_same_holdings)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t random = seed;
        saved one, other;
        saved_open(&one, (uint32_t)(seed % SETTINGS));
        saved_open(&other, (uint32_t)(seed * 7 % SETTINGS));
        views_make(&one);
        for (uint32_t n = 0; n < PUSHES; n++) {
            next_push(&one, n, &random);
        }
        if (seed % 2) {
            views_make(&other);
        }
        rows_push(&one, &other);
        if (seed % 2 == 0) {
            views_make(&other);
        }
        refresh_all(&one);
        refresh_all(&other);
        for (uint32_t v = 0; v < one.views_count; v++) {
            holdings held = { 0 };
            view_save(&one, v, &held);
            holdings_assert_program(&held, &other.views[v]->program, one.views[v]->name, seed);
        }
        world_close(&one.world);
        world_close(&other.world);
    }
}

/* The histories have every operator that holds something hold something. */
Test(view_saved, every_operator_holds_something)
{
    static const char *const names[] = { "aggregate", "join", "materialize", "outer join", "set", "signs", "top_k", "weigh" };
    size_t most[8] = { 0 };
    uint64_t random = 1;
    saved it;
    saved_open(&it, 0);
    views_make(&it);
    for (uint32_t n = 0; n < PUSHES; n++) {
        next_push(&it, n, &random);
    }
    for (uint32_t v = 0; v < it.views_count; v++) {
        const ivm__program *program = &it.views[v]->program;
        for (uint32_t i = 0; i < program->operators_count; i++) {
            holdings held = { 0 };
            holdings_save(&held, program->operators[i]);
            for (uint32_t k = 0; k < 8; k++) {
                bool of = strcmp(names[k], program->operators[i]->class->name) == 0;
                most[k] = of && held.size > most[k] ? held.size : most[k];
            }
            holdings_free(&held);
        }
    }
    for (uint32_t k = 0; k < 8; k++) {
        cr_assert_gt(most[k], 16u, "%s", names[k]);
    }
    world_close(&it.world);
}
