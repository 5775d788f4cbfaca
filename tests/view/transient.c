/* Rows not kept against rows kept: two tables of one shape and with the same facts get the same rows, one keeps them, the other does not,
 * and each view stands over either. After every push the two are equal, content and changes, and the table that keeps no rows has those
 * alone that wait, as a model counts them.
 *
 *     f(d, d2, e, n, t) -> d(id, s, name) twice, -> e(id, v)        d -> s(id, region) */
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog.h"
#include "index.h"

#define KEYS 6u
#define ROWS_MAX 400u
#define VIEWS 6u
#define WIDE_NULL (-1)

typedef struct fact_row {
    int64_t d, d2, e, n;
    int64_t weight;
} fact_row;

/* What the tables hold. */
typedef struct model {
    fact_row rows[ROWS_MAX];
    uint32_t rows_count;
    bool d[KEYS], s[KEYS], e[KEYS]; /* which are there */
    int64_t d_s[KEYS];
} model;

typedef struct twins {
    world world; /* its engine and allocator */
    ivm_table *f[2], *d, *s, *e;
    ivm_view *views[2][VIEWS];
    ivm_trust trust, trust_far; /* of f's facts, of d's */
    bool negative;
    model now;
    uint64_t random;
} twins;

/* ---- Tables ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_table *table_of(twins *it, const char *name, const ivm_table_options *options)
{
    ivm_table *made = NULL;
    cr_assert_eq(ivm_table_create(it->world.engine, name, options, &made, &it->world.error), IVM_OK, "%s", it->world.error.message);
    return made;
}

static void refer(twins *it, ivm_table *child, const char *column, ivm_table *parent)
{
    ivm_trust trust = child == it->d ? it->trust_far : it->trust;
    ivm_status status = ivm_foreign_key_declare(child, column, parent, "id", trust, NULL, &it->world.error);
    cr_assert_eq(status, IVM_OK, "%s", it->world.error.message);
}

static void tables_make(twins *it)
{
    static const ivm_column_definition f[] = { { "d", IVM_INT64, false },
                                               { "d2", IVM_INT64, false },
                                               { "e", IVM_INT64, false },
                                               { "n", IVM_INT64, false },
                                               { "t", IVM_STRING, false } };
    static const ivm_column_definition d[] = { { "id", IVM_INT64, true }, { "s", IVM_INT64, false }, { "name", IVM_STRING, false } };
    static const ivm_column_definition s[] = { { "id", IVM_INT64, true }, { "region", IVM_STRING, false } };
    static const ivm_column_definition e[] = { { "id", IVM_INT64, true }, { "v", IVM_INT64, false } };
    it->d = table_of(it, "d", &(ivm_table_options){ .columns = d, .columns_count = 3, .key = "id", .append_only = true });
    it->s = table_of(it, "s", &(ivm_table_options){ .columns = s, .columns_count = 2, .key = "id", .append_only = true });
    it->e = table_of(it, "e", &(ivm_table_options){ .columns = e, .columns_count = 2, .key = "id", .append_only = true });
    refer(it, it->d, "s", it->s);
    for (int k = 0; k < 2; k++) {
        ivm_table_options options = { .columns = f, .columns_count = 5, .transient = k == 0, .allow_negative = it->negative };
        it->f[k] = table_of(it, k ? "kept" : "lost", &options);
        refer(it, it->f[k], "d", it->d);
        refer(it, it->f[k], "d2", it->d);
        refer(it, it->f[k], "e", it->e);
    }
}

static ivm_plan *star_plan(ivm_table *f, ivm_table *d)
{
    ivm_plan *other = ivm_plan_filter(ivm_plan_scan(d, "b"), ivm_call2("<>", ivm_column("b.id"), ivm_literal(ivm_int64(3))));
    ivm_plan *inputs[] = { ivm_plan_scan(d, "a"), other, ivm_plan_scan(f, "f") };
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_join_many(inputs, 3, "f.d = a.id, f.d2 = b.id"), NULL);
    plan = ivm_plan_group(ivm_plan_group(plan, "first", ivm_column("a.name")), "second", ivm_column("b.name"));
    plan = ivm_plan_count(plan, "c");
    return ivm_plan_add(plan, "total", "sum", ivm_column("f.n"));
}

static ivm_plan *chain_plan(ivm_table *f, ivm_table *e)
{
    ivm_plan *leaf = ivm_plan_filter(ivm_plan_scan(f, "f"), ivm_call2(">", ivm_column("f.n"), ivm_literal(ivm_int64(2))));
    leaf = ivm_plan_project(leaf, "f.t, f.e, f.n");
    ivm_plan *plan = ivm_plan_join(leaf, ivm_plan_scan(e, "x"), "e = x.id");
    plan = ivm_plan_join_where(plan, ivm_call2("<>", ivm_column("x.v"), ivm_column("n")));
    plan = ivm_plan_aggregate(plan, "t");
    return ivm_plan_add(ivm_plan_count(plan, "c"), "most", "max", ivm_column("x.v"));
}

static ivm_plan *plan_of(twins *it, int k, uint32_t kind)
{
    ivm_table *f = it->f[k];
    ivm_plan *inputs[] = { NULL, NULL, NULL };
    switch (kind) {
    case 0:
        inputs[0] = ivm_plan_scan(f, "f");
        inputs[1] = ivm_plan_scan(it->s, "s");
        inputs[2] = ivm_plan_scan(it->d, "d");
        return ivm_plan_project(ivm_plan_join_many(inputs, 3, "f.d = d.id, d.s = s.id"), "f.n, d.name, s.region");
    case 1:
        return star_plan(f, it->d);
    case 2:
        return chain_plan(f, it->e);
    case 3:
        return ivm_plan_add(ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(f, "f"), "f.t"), "c"), "total", "sum", ivm_column("f.n"));
    case 4:
        inputs[0] = ivm_plan_project(ivm_plan_scan(f, "f"), "f.d2");
        inputs[1] = ivm_plan_project(ivm_plan_scan(it->d, "d"), "d.id");
        return ivm_plan_set(IVM_UNION_ALL, inputs, 2);
    default:
        return ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_view(it->views[k][0], "v"), "v.region"), "c");
    }
}

static void views_make(twins *it)
{
    for (int k = 0; k < 2; k++) {
        for (uint32_t v = 0; v < VIEWS; v++) {
            char name[16];
            snprintf(name, sizeof name, "%s%u", k ? "kept_" : "lost_", v);
            ivm_status status = ivm_view_create(it->world.engine, name, plan_of(it, k, v), NULL, &it->views[k][v], &it->world.error);
            cr_assert_eq(status, IVM_OK, "%s", it->world.error.message);
        }
    }
}

static void twins_open(twins *it, ivm_trust trust, ivm_trust trust_far, bool negative, uint64_t seed)
{
    static const world_shape none = { .tables_count = 0 };
    memset(it, 0, sizeof *it);
    world_open(&it->world, &none, NULL);
    it->trust = trust;
    it->trust_far = trust_far;
    it->negative = negative;
    it->random = seed;
    tables_make(it);
    views_make(it);
}

static uint64_t draw(twins *it, uint64_t below)
{
    return world_random(&it->random) % below;
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_batch *batch_of(twins *it)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->world.engine, &batch, &it->world.error), IVM_OK);
    return batch;
}

static ivm_value key_value(int64_t key)
{
    return key == WIDE_NULL ? ivm_null() : ivm_int64(key);
}

static void put(twins *it, ivm_batch *batch, const fact_row *row, int64_t weight)
{
    char text[16];
    snprintf(text, sizeof text, "t%d", (int)(row->n % 3));
    ivm_value values[] = { key_value(row->d), key_value(row->d2), key_value(row->e), ivm_int64(row->n), ivm_string(text) };
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(ivm_batch_row(batch, it->f[k], IVM_WEIGHTED, weight, values, 5), IVM_OK);
    }
}

static void model_add(model *to, const fact_row *row, int64_t weight)
{
    uint32_t at = 0;
    while (at < to->rows_count &&
           (to->rows[at].d != row->d || to->rows[at].d2 != row->d2 || to->rows[at].e != row->e || to->rows[at].n != row->n)) {
        at++;
    }
    if (at == to->rows_count) {
        cr_assert_lt(to->rows_count, ROWS_MAX);
        to->rows[to->rows_count++] = *row;
        to->rows[at].weight = 0;
    }
    to->rows[at].weight += weight;
}

static void come_s(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->s[key]) {
        char text[16];
        snprintf(text, sizeof text, "r%d", (int)(key % 2));
        next->s[key] = true;
        cr_assert_eq(ivm_batch_insert(batch, it->s, ivm_int64(key), ivm_string(text)), IVM_OK);
    }
}

static void come_d(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->d[key]) {
        char text[16];
        snprintf(text, sizeof text, "name%d", (int)(key % 4));
        next->d[key] = true;
        next->d_s[key] = draw(it, 7) == 0 ? WIDE_NULL : (int64_t)draw(it, KEYS);
        cr_assert_eq(ivm_batch_insert(batch, it->d, ivm_int64(key), key_value(next->d_s[key]), ivm_string(text)), IVM_OK);
        if (it->trust_far != IVM_TRACKED) {
            come_s(it, batch, next, next->d_s[key]);
        }
    }
}

static void come_e(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->e[key]) {
        next->e[key] = true;
        cr_assert_eq(ivm_batch_insert(batch, it->e, ivm_int64(key), ivm_int64(key + 2)), IVM_OK);
    }
}

static int64_t any_key(twins *it)
{
    return draw(it, 9) == 0 ? WIDE_NULL : (int64_t)draw(it, KEYS);
}

static void row_come(twins *it, ivm_batch *batch, model *next)
{
    fact_row row = { .d = any_key(it), .d2 = any_key(it), .e = any_key(it), .n = (int64_t)draw(it, 6) };
    bool parents_first = draw(it, 2) == 0;
    int64_t weight = draw(it, 4) == 0 ? 2 : it->negative && draw(it, 3) == 0 ? -1 : 1;
    for (int turn = 0; turn < 2; turn++) {
        if (parents_first == (turn == 1)) {
            put(it, batch, &row, weight);
        } else if (it->trust != IVM_TRACKED) {
            come_d(it, batch, next, row.d);
            come_d(it, batch, next, row.d2);
            come_e(it, batch, next, row.e);
        }
    }
    model_add(next, &row, weight);
}

static void row_go(twins *it, ivm_batch *batch, model *next)
{
    if (next->rows_count == 0) {
        return;
    }
    fact_row *row = &next->rows[draw(it, next->rows_count)];
    if (row->weight > 0 || it->negative) {
        row->weight--;
        put(it, batch, row, -1);
    }
}

/* A random batch, and what the tables hold after it. Parents of facts that are tracked come late; others are there in time. */
static ivm_batch *batch_draw(twins *it, model *next)
{
    ivm_batch *batch = batch_of(it);
    *next = it->now;
    for (uint64_t changes = 1 + draw(it, 8); changes > 0; changes--) {
        switch (draw(it, 10)) {
        case 0:
            come_s(it, batch, next, (int64_t)draw(it, KEYS));
            break;
        case 1:
            come_d(it, batch, next, (int64_t)draw(it, KEYS));
            break;
        case 2:
            come_e(it, batch, next, (int64_t)draw(it, KEYS));
            break;
        case 3:
        case 4:
        case 5:
            row_go(it, batch, next);
            break;
        default:
            row_come(it, batch, next);
            break;
        }
    }
    return batch;
}

/* ---- What must hold ------------------------------------------------------------------------------------------------------------------------ */

static bool waits_for(const bool *there, int64_t key)
{
    return key != WIDE_NULL && !there[key];
}

/* Whether a row waits for the views from `first` on. */
static bool waits(const model *now, const fact_row *row, uint32_t first)
{
    bool snowflake = waits_for(now->d, row->d) || (row->d != WIDE_NULL && waits_for(now->s, now->d_s[row->d]));
    bool star = row->d != WIDE_NULL && row->d2 != WIDE_NULL && (waits_for(now->d, row->d) || waits_for(now->d, row->d2));
    return (first <= 0 && snowflake) || (first <= 1 && star) || (first <= 2 && waits_for(now->e, row->e));
}

static uint64_t waiting(const twins *it, uint32_t first)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < it->now.rows_count; i++) {
        count += it->now.rows[i].weight != 0 && waits(&it->now, &it->now.rows[i], first);
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
}

static void assert_twins(twins *it, uint32_t first, uint64_t seed)
{
    for (uint32_t v = first; v < VIEWS; v++) {
        if (it->views[0][v]) {
            world_assert_same(world_dump_view(&it->world, it->views[0][v]), world_dump_view(&it->world, it->views[1][v]), "a view", seed);
            world_assert_same(world_dump_changes(&it->world, it->views[0][v]), world_dump_changes(&it->world, it->views[1][v]),
                              "its changes", seed);
        }
    }
    assert_sound(&it->f[0]->store);
    cr_assert_eq(it->f[0]->store.rows_live, waiting(it, first), "%lu rows are kept, %lu wait, seed %lu",
                 (unsigned long)it->f[0]->store.rows_live, (unsigned long)waiting(it, first), (unsigned long)seed);
}

static void push_good(twins *it, ivm_batch *batch, const model *next)
{
    cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
    it->now = *next;
}

/* Good changes with a last one for which the batch is refused: by a table, or by a view when others have run. */
static void push_bad(twins *it, uint64_t seed)
{
    model next;
    ivm_batch *batch = batch_draw(it, &next);
    ivm_status wanted = IVM_OVERFLOW;
    if (next.e[0] && draw(it, 2)) {
        wanted = IVM_APPEND_ONLY_VIOLATION;
        cr_assert_eq(ivm_batch_delete(batch, it->e, ivm_int64(0), ivm_int64(2)), IVM_OK);
        if (!it->now.e[0]) {
            cr_assert_eq(ivm_batch_delete(batch, it->e, ivm_int64(0), ivm_int64(2)), IVM_OK);
        }
    } else {
        fact_row row = { WIDE_NULL, WIDE_NULL, WIDE_NULL, INT64_MAX, 0 };
        put(it, batch, &row, 2);
    }
    char *before[VIEWS];
    for (uint32_t v = 0; v < VIEWS; v++) {
        before[v] = world_dump_view(&it->world, it->views[0][v]);
    }
    cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), wanted, "%s", it->world.error.message);
    for (uint32_t v = 0; v < VIEWS; v++) {
        world_assert_same(world_dump_view(&it->world, it->views[0][v]), before[v], "after a failed push", seed);
    }
    assert_twins(it, 0, seed);
}

/* ---- Histories ------------------------------------------------------------------------------------------------------------------------------ */

/* How many rows stood in the table that keeps none, in all. */
static uint64_t history(ivm_trust trust, ivm_trust trust_far, bool negative, uint64_t seed)
{
    twins it;
    uint64_t kept = 0;
    twins_open(&it, trust, trust_far, negative, seed * 7919 + 1);
    for (int push = 0; push < 24; push++) {
        model next;
        if (draw(&it, 4) == 0) {
            world_set_planner(&it.world, &it.random);
        }
        if (draw(&it, 6) == 0) {
            push_bad(&it, seed);
        }
        ivm_batch *batch = batch_draw(&it, &next);
        push_good(&it, batch, &next);
        assert_twins(&it, 0, seed);
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
        ivm_batch *batch = batch_draw(&it, &next);
        push_good(&it, batch, &next);
    }
    cr_assert_gt(it.f[0]->store.rows_live, 0);
    ivm_batch *batch = batch_of(&it);
    model next = it.now;
    for (int64_t key = 0; key < KEYS; key++) {
        come_d(&it, batch, &next, key);
        come_s(&it, batch, &next, key);
        come_e(&it, batch, &next, key);
    }
    push_good(&it, batch, &next);
    assert_twins(&it, 0, 0);
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
        ivm_batch *batch = batch_draw(&it, &next);
        push_good(&it, batch, &next);
    }
    view_drop(&it, 5);
    view_drop(&it, 0);
    cr_assert_gt(waiting(&it, 0), waiting(&it, 1), "the history keeps rows for the first view");
    ivm_batch *batch = batch_draw(&it, &next);
    push_good(&it, batch, &next);
    assert_twins(&it, 1, 0);
    view_drop(&it, 1);
    batch = batch_draw(&it, &next);
    push_good(&it, batch, &next);
    assert_twins(&it, 2, 0);
    cr_assert_gt(it.f[0]->store.rows_live, 0);
    view_drop(&it, 2);
    cr_assert_eq(it.f[0]->store.rows_live, 0, "nothing is left to wait for");
    batch = batch_draw(&it, &next);
    push_good(&it, batch, &next);
    assert_twins(&it, 3, 0);
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
        ivm_batch *batch = batch_of(it);
        for (int k = 0; k < 2; k++) {
            ivm_batch_insert(batch, it->f[k], ivm_int64(5), ivm_int64(5), ivm_int64(5), ivm_int64(4), ivm_string("t1"),
                             n ? ivm_string("a") : ivm_null());
        }
        fact_row row = { 5, 5, 5, 4, 0 };
        model_add(&it->now, &row, 1);
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
                assert_twins(&it, 0, seed);
                changed++;
            }
            ivm_batch *batch = batch_draw(&it, &next);
            push_good(&it, batch, &next);
            assert_twins(&it, 0, seed);
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
    ivm_batch *batch = batch_draw(it, &next);
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
    assert_twins(it, 0, seed);
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
                ivm_batch *batch = batch_draw(&it, &next);
                push_good(&it, batch, &next);
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
        ivm_batch *pushed = batch_of(it);
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
    ivm_batch *batch = batch_of(&it);
    for (int64_t key = 0; key < KEYS; key++) {
        come_d(&it, batch, &next, key);
        come_s(&it, batch, &next, key);
        come_e(&it, batch, &next, key);
    }
    push_good(&it, batch, &next);
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
