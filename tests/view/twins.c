/* See twins.h. */
#include "twins.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "catalog.h"
#include "index.h"

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

void twins_open(twins *it, ivm_trust trust, ivm_trust trust_far, bool negative, uint64_t seed)
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

uint64_t twins_draw(twins *it, uint64_t below)
{
    return random_short(&it->random) % below;
}

/* ---- Batches ------------------------------------------------------------------------------------------------------------------------------ */

ivm_batch *twins_batch(twins *it)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->world.engine, &batch, &it->world.error), IVM_OK);
    return batch;
}

static ivm_value key_value(int64_t key)
{
    return key == WIDE_NULL ? ivm_null() : ivm_int64(key);
}

void twins_put(twins *it, ivm_batch *batch, const fact_row *row, int64_t weight)
{
    char text[16];
    snprintf(text, sizeof text, "t%d", (int)(row->n % 3));
    ivm_value values[] = { key_value(row->d), key_value(row->d2), key_value(row->e), ivm_int64(row->n), ivm_string(text) };
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(ivm_batch_row(batch, it->f[k], IVM_WEIGHTED, weight, values, 5), IVM_OK);
    }
}

void twins_model_add(model *to, const fact_row *row, int64_t weight)
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

void twins_come_s(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->s[key]) {
        char text[16];
        snprintf(text, sizeof text, "r%d", (int)(key % 2));
        next->s[key] = true;
        cr_assert_eq(ivm_batch_insert(batch, it->s, ivm_int64(key), ivm_string(text)), IVM_OK);
    }
}

void twins_come_d(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->d[key]) {
        char text[16];
        snprintf(text, sizeof text, "name%d", (int)(key % 4));
        next->d[key] = true;
        next->d_s[key] = twins_draw(it, 7) == 0 ? WIDE_NULL : (int64_t)twins_draw(it, KEYS);
        cr_assert_eq(ivm_batch_insert(batch, it->d, ivm_int64(key), key_value(next->d_s[key]), ivm_string(text)), IVM_OK);
        if (it->trust_far != IVM_TRACKED) {
            twins_come_s(it, batch, next, next->d_s[key]);
        }
    }
}

void twins_come_e(twins *it, ivm_batch *batch, model *next, int64_t key)
{
    if (key != WIDE_NULL && !next->e[key]) {
        next->e[key] = true;
        cr_assert_eq(ivm_batch_insert(batch, it->e, ivm_int64(key), ivm_int64(key + 2)), IVM_OK);
    }
}

static int64_t any_key(twins *it)
{
    return twins_draw(it, 9) == 0 ? WIDE_NULL : (int64_t)twins_draw(it, KEYS);
}

static void row_come(twins *it, ivm_batch *batch, model *next)
{
    fact_row row = { .d = any_key(it), .d2 = any_key(it), .e = any_key(it), .n = (int64_t)twins_draw(it, 6) };
    bool parents_first = twins_draw(it, 2) == 0;
    int64_t weight = twins_draw(it, 4) == 0 ? 2 : it->negative && twins_draw(it, 3) == 0 ? -1 : 1;
    for (int turn = 0; turn < 2; turn++) {
        if (parents_first == (turn == 1)) {
            twins_put(it, batch, &row, weight);
        } else if (it->trust != IVM_TRACKED) {
            twins_come_d(it, batch, next, row.d);
            twins_come_d(it, batch, next, row.d2);
            twins_come_e(it, batch, next, row.e);
        }
    }
    twins_model_add(next, &row, weight);
}

static void row_go(twins *it, ivm_batch *batch, model *next)
{
    if (next->rows_count == 0) {
        return;
    }
    fact_row *row = &next->rows[twins_draw(it, next->rows_count)];
    if (row->weight > 0 || it->negative) {
        row->weight--;
        twins_put(it, batch, row, -1);
    }
}

/* A random batch, and what the tables hold after it. Parents of facts that are tracked come late; others are there in time. */
ivm_batch *twins_batch_draw(twins *it, model *next)
{
    ivm_batch *batch = twins_batch(it);
    *next = it->now;
    for (uint64_t changes = 1 + twins_draw(it, 8); changes > 0; changes--) {
        switch (twins_draw(it, 10)) {
        case 0:
            twins_come_s(it, batch, next, (int64_t)twins_draw(it, KEYS));
            break;
        case 1:
            twins_come_d(it, batch, next, (int64_t)twins_draw(it, KEYS));
            break;
        case 2:
            twins_come_e(it, batch, next, (int64_t)twins_draw(it, KEYS));
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

uint64_t twins_waiting(const twins *it, uint32_t first)
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

void twins_assert_same(twins *it, uint32_t first, uint64_t seed)
{
    for (uint32_t v = first; v < VIEWS; v++) {
        if (it->views[0][v]) {
            world_assert_same(world_dump_view(&it->world, it->views[0][v]), world_dump_view(&it->world, it->views[1][v]), "a view", seed);
            world_assert_same(world_dump_changes(&it->world, it->views[0][v]), world_dump_changes(&it->world, it->views[1][v]),
                              "its changes", seed);
        }
    }
    assert_sound(&it->f[0]->store);
    cr_assert_eq(it->f[0]->store.rows_live, twins_waiting(it, first), "%lu rows are kept, %lu wait, seed %lu",
                 (unsigned long)it->f[0]->store.rows_live, (unsigned long)twins_waiting(it, first), (unsigned long)seed);
}

void twins_push(twins *it, ivm_batch *batch, const model *next)
{
    cr_assert_eq(ivm_push_batch(it->world.engine, batch, NULL, &it->world.error), IVM_OK, "%s", it->world.error.message);
    it->now = *next;
}
