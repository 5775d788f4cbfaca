/* See web.h. */
#include "web.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[WEB_BASE] = { "a", "b", "x", "y", "v" };

uint32_t web_below(web *it, uint32_t below)
{
    return (uint32_t)(random_short(&it->random) % below);
}

/* ---- Tables and facts -------------------------------------------------------------------------------------------------------------------- */

static void table_make(web *it, uint32_t table)
{
    ivm_column_definition columns[WEB_BASE] = { { names[0], IVM_INT64, true } };
    char name[8];
    for (uint32_t c = 1; c < WEB_BASE; c++) {
        columns[c] = (ivm_column_definition){ names[c], IVM_INT64, c == 1 };
    }
    ivm_table_options options = { .columns = columns, .columns_count = WEB_BASE };
    it->keys[table] = web_below(it, 8) ? 1 + web_below(it, 2) : 0;
    it->cells[table] = WEB_BASE;
    options.key = it->keys[table] == 2 ? "a, b" : it->keys[table] ? "a" : NULL;
    snprintf(name, sizeof name, "t%u", table);
    cr_assert_eq(ivm_table_create(it->engine, name, &options, &it->tables[table], &it->error), IVM_OK, "%s", it->error.message);
}

static bool is_twin(const web *it, const web_fact *fact, const web_fact *of)
{
    return fact->child == of->child && fact->parent == of->parent && fact->columns[0] == of->columns[0] &&
           (it->keys[fact->parent] == 1 || fact->columns[1] == of->columns[1]);
}

/* Mostly of columns that are not the key's; one foreign key is trusted in one way. */
static void facts_draw(web *it)
{
    for (uint32_t n = 1 + web_below(it, WEB_FACTS_MAX); n > 0; n--) {
        web_fact fact = {
            web_below(it, WEB_TABLES), web_below(it, WEB_TABLES), { 2 + web_below(it, 2), 0 }, web_below(it, 3), false, NULL
        };
        fact.columns[1] = 5 - fact.columns[0];
        if (web_below(it, 4) == 0) {
            fact.columns[0] = web_below(it, 4);
        }
        for (uint32_t f = 0; f < it->facts_count; f++) {
            fact.trust = is_twin(it, &fact, &it->facts[f]) ? it->facts[f].trust : fact.trust;
        }
        if (it->keys[fact.parent]) {
            it->facts[it->facts_count++] = fact;
        }
    }
}

static void fact_declare(web *it, web_fact *fact)
{
    char columns[16];
    bool both = it->keys[fact->parent] == 2;
    snprintf(columns, sizeof columns, "%s%s%s", names[fact->columns[0]], both ? ", " : "", both ? names[fact->columns[1]] : "");
    ivm_status status = ivm_foreign_key_declare(it->tables[fact->child], columns, it->tables[fact->parent], both ? "a, b" : "a",
                                                fact->trust, &fact->declared, &it->error);
    cr_assert_eq(status, IVM_OK, "seed %llu: %s", (unsigned long long)it->seed, it->error.message);
}

void web_open(web *it, uint64_t seed)
{
    memset(it, 0, sizeof *it);
    it->seed = it->random = seed;
    (void)random_short(&it->random);
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = seed;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    for (uint32_t t = 0; t < WEB_TABLES; t++) {
        table_make(it, t);
    }
    facts_draw(it);
    for (uint32_t f = 0; f < it->facts_count; f++) {
        it->facts[f].kept = web_below(it, 5) > 0;
        if (it->facts[f].kept) {
            fact_declare(it, &it->facts[f]);
        }
    }
}

void web_close(web *it)
{
    for (uint32_t v = 0; v < WEB_VIEWS_MAX; v++) {
        free(it->views[v].stood);
    }
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator), "seed %llu", (unsigned long long)it->seed);
}

void web_column_turn(web *it)
{
    uint32_t t = web_below(it, WEB_TABLES);
    if (it->cells[t] < WEB_CELLS && (it->cells[t] == WEB_BASE || web_below(it, 2))) {
        char name[8];
        snprintf(name, sizeof name, "e%u", it->added++);
        ivm_column_definition column = { name, IVM_INT64, false };
        cr_assert_eq(ivm_table_column_add(it->tables[t], &column, &it->error), IVM_OK, "%s", it->error.message);
        for (uint32_t i = 0; i < it->rows[t].count; i++) {
            it->rows[t].row[i].cells[it->cells[t]] = WORLD_NULL;
        }
        it->cells[t]++;
    } else if (it->cells[t] > WEB_BASE) {
        const char *last = ivm_table_column_name(it->tables[t], it->cells[t] - 1);
        cr_assert_eq(ivm_table_column_drop(it->tables[t], last, &it->error), IVM_OK, "%s", it->error.message);
        it->cells[t]--;
        for (uint32_t i = 0; i < it->rows[t].count; i++) {
            it->rows[t].row[i].cells[it->cells[t]] = 0;
        }
    }
}

/* ---- Views --------------------------------------------------------------------------------------------------------------------------------- */

static void pair_add(web_view *view, uint32_t leaf, uint32_t column, uint32_t other, uint32_t other_column)
{
    if (view->pairs_count < WEB_PAIRS_MAX) {
        view->pairs[view->pairs_count++] = (web_pair){ { leaf, other }, { column, other_column } };
    }
}

/* Along a fact between the leaves where there is one, mostly. */
static void pairs_draw(web *it, web_view *view, uint32_t leaf, uint32_t other)
{
    for (uint32_t f = 0, n = 0; f < it->facts_count && n < 2; f++) {
        const web_fact *fact = &it->facts[f];
        for (uint32_t way = 0; way < 2; way++) {
            uint32_t child = way ? leaf : other, parent = way ? other : leaf;
            bool leads = view->leaves[child].table == fact->child && view->leaves[parent].table == fact->parent;
            if (leads && web_below(it, 3)) {
                pair_add(view, child, fact->columns[0], parent, 0);
                if (it->keys[fact->parent] == 2 && web_below(it, 8)) {
                    pair_add(view, child, fact->columns[1], parent, 1);
                }
                n++;
            }
        }
    }
}

static void view_draw(web *it, web_view *view)
{
    *view = (web_view){ .leaves_count = 2 + web_below(it, WEB_LEAVES_MAX - 1) };
    view->deferred = web_below(it, 3) == 0;
    view->grouped = web_below(it, 2);
    view->residual = web_below(it, 4) == 0;
    for (uint32_t i = 0; i < view->leaves_count; i++) {
        view->leaves[i] = (web_leaf){ web_below(it, WEB_TABLES), web_below(it, 3) == 0, web_below(it, 3) == 0 };
    }
    for (uint32_t i = 1; i < view->leaves_count; i++) {
        for (uint32_t other = 0; other < i; other++) {
            pairs_draw(it, view, i, other);
        }
        if (web_below(it, 6) == 0) {
            pair_add(view, i, web_below(it, 4), web_below(it, i), web_below(it, 4));
        }
    }
    for (uint32_t n = 0; n < 2; n++) {
        view->above[n][0] = web_below(it, view->leaves_count);
        view->above[n][1] = web_below(it, 4);
    }
}

static ivm_plan *leaf_plan(const web *it, const web_leaf *leaf, uint32_t at)
{
    char alias[8], name[16];
    snprintf(alias, sizeof alias, "l%u", at % 100);
    ivm_plan *plan = ivm_plan_scan(it->tables[leaf->table], alias);
    if (leaf->filtered) {
        plan = ivm_plan_filter(plan, ivm_call2(">", ivm_column("v"), ivm_literal(ivm_int64(0))));
    }
    if (leaf->projected) {
        plan = ivm_plan_project(plan, NULL);
        for (uint32_t c = 4; c-- > 0;) {
            snprintf(name, sizeof name, "%s.%s", alias, names[c]);
            plan = ivm_plan_compute(plan, name, ivm_column(names[c]));
        }
    }
    return plan;
}

static ivm_expr *column_of(uint32_t leaf, uint32_t column)
{
    char name[16];
    snprintf(name, sizeof name, "l%u.%s", leaf, names[column]);
    return ivm_column(name);
}

static ivm_plan *web_plan(const web *it, const web_view *view)
{
    ivm_plan *inputs[WEB_LEAVES_MAX];
    char on[256] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < view->leaves_count; i++) {
        inputs[i] = leaf_plan(it, &view->leaves[i], i);
    }
    for (uint32_t i = 0; i < view->pairs_count; i++) {
        const web_pair *pair = &view->pairs[i];
        size += (size_t)snprintf(on + size, sizeof on - size, "%sl%u.%s = l%u.%s", i ? ", " : "", pair->leaf[0], names[pair->column[0]],
                                 pair->leaf[1], names[pair->column[1]]);
    }
    ivm_plan *plan = ivm_plan_join_many(inputs, view->leaves_count, on);
    if (view->residual) {
        plan = ivm_plan_join_where(plan, ivm_call2("<=", column_of(0, 2), column_of(1, 1)));
    }
    if (!view->grouped) {
        plan = ivm_plan_compute(ivm_plan_project(plan, NULL), "p", column_of(view->above[0][0], view->above[0][1]));
        return ivm_plan_compute(plan, "q", column_of(view->above[1][0], view->above[1][1]));
    }
    plan = ivm_plan_group(ivm_plan_aggregate(plan, NULL), "p", column_of(view->above[0][0], view->above[0][1]));
    return ivm_plan_add(ivm_plan_count(plan, "n"), "sum", "sum", column_of(view->above[1][0], view->above[1][1]));
}

void web_view_make(web *it, web_view *view)
{
    char name[8];
    ivm_view_options options = { .version = 1 };
    view_draw(it, view);
    options.refresh = view->deferred ? IVM_DEFERRED : IVM_IMMEDIATE;
    snprintf(name, sizeof name, "v%u", (uint32_t)(view - it->views));
    ivm_status status = ivm_view_create(it->engine, name, web_plan(it, view), &options, &view->view, &it->error);
    cr_assert_eq(status, IVM_OK, "seed %llu: %s", (unsigned long long)it->seed, it->error.message);
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view->view, &snapshot, &it->error), IVM_OK);
    view->stood = world_dump(snapshot);
}

void web_view_drop(web *it, web_view *view)
{
    cr_assert_eq(ivm_view_drop(view->view, &it->error), IVM_OK, "%s", it->error.message);
    free(view->stood);
    *view = (web_view){ 0 };
}

static char *recomputed(web *it, const web_view *view)
{
    ivm_view *anew = NULL;
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_view_create(it->engine, "anew", web_plan(it, view), NULL, &anew, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert_eq(ivm_read_view(anew, &snapshot, &it->error), IVM_OK);
    char *text = world_dump(snapshot);
    cr_assert_eq(ivm_view_drop(anew, &it->error), IVM_OK);
    return text;
}

static char *read_rows(web *it, const web_view *view, bool changes)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq((changes ? ivm_read_changes : ivm_read_view)(view->view, &snapshot, &it->error), IVM_OK);
    return world_dump(snapshot);
}

/* The view is right, and so are its changes since it was last looked at. */
static void check_view(web *it, web_view *view)
{
    char *now = recomputed(it, view), *changes = world_difference(view->stood, now);
    it->joined += *changes != 0;
    world_assert_same(read_rows(it, view, true), changes, "changes", it->seed);
    world_assert_same(read_rows(it, view, false), strdup(now), view->deferred ? "deferred view" : "view", it->seed);
    free(view->stood);
    view->stood = now;
}

/* A refresh is the last step of every view, so that the others are looked at first. */
void web_check(web *it)
{
    for (uint32_t v = 0; v < WEB_VIEWS_MAX; v++) {
        if (it->views[v].view && !it->views[v].deferred) {
            check_view(it, &it->views[v]);
        }
    }
    for (uint32_t v = 0; v < WEB_VIEWS_MAX; v++) {
        web_view *view = &it->views[v];
        if (!view->view || !view->deferred) {
            continue;
        }
        world_assert_same(read_rows(it, view, false), strdup(view->stood), "not refreshed", it->seed);
        if (web_below(it, 3) == 0) {
            cr_assert_eq(ivm_refresh_view(view->view, NULL, &it->error), IVM_OK, "%s", it->error.message);
            check_view(it, view);
        }
    }
}

/* ---- Pushes -------------------------------------------------------------------------------------------------------------------------------- */

static bool same_key(const web *it, uint32_t table, const web_row *a, const web_row *b)
{
    uint32_t count = it->keys[table] ? it->keys[table] : WEB_CELLS;
    return memcmp(a->cells, b->cells, count * sizeof *a->cells) == 0;
}

static void row_take(web_rows *rows, uint32_t at)
{
    rows->row[at] = rows->row[--rows->count];
}

/* Puts the row in, in place of one of its key. */
static void row_put(const web *it, uint32_t table, web_rows *rows, const web_row *row)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (same_key(it, table, &rows->row[i], row)) {
            rows->row[i] = *row;
            return;
        }
    }
    if (rows->count < WEB_ROWS_MAX) {
        rows->row[rows->count++] = *row;
    }
}

static void row_draw(web *it, uint32_t table, web_row *row)
{
    *row = (web_row){ .weight = it->keys[table] ? 1 : 1 + web_below(it, 2) };
    for (uint32_t c = 0; c < it->cells[table]; c++) {
        int64_t drawn = web_below(it, c < 2 ? 3 : 4);
        row->cells[c] = c >= 2 && web_below(it, 6) == 0 ? WORLD_NULL : drawn;
    }
}

static void table_change(web *it, uint32_t table, web_rows *rows)
{
    uint32_t kind = web_below(it, 4);
    web_row row;
    for (uint32_t n = web_below(it, 6); n > 0; n--) {
        if (kind == 0 || (kind == 1 && web_below(it, 2))) {
            if (rows->count) {
                row_take(rows, web_below(it, rows->count));
            }
        } else if (rows->count && web_below(it, 3) == 0) {
            row = rows->row[web_below(it, rows->count)]; /* an update of one column, often one that few read */
            row.cells[2 + web_below(it, it->cells[table] - 2)] = web_below(it, 4);
            row_put(it, table, rows, &row);
        } else {
            row_draw(it, table, &row);
            row_put(it, table, rows, &row);
        }
    }
}

static bool is_orphan(const web *it, const web_fact *fact, const web_row *row, const web_rows *parents)
{
    uint32_t count = it->keys[fact->parent];
    for (uint32_t k = 0; k < count; k++) {
        if (row->cells[fact->columns[k]] == WORLD_NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; i < parents->count; i++) {
        bool equal = true;
        for (uint32_t k = 0; k < count; k++) {
            equal &= parents->row[i].cells[k] == row->cells[fact->columns[k]];
        }
        if (equal) {
            return false;
        }
    }
    return true;
}

/* Takes out what no promise allows, until none is broken. */
static void promises_keep(const web *it, web_rows rows[WEB_TABLES])
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t f = 0; f < it->facts_count; f++) {
            const web_fact *fact = &it->facts[f];
            web_rows *children = &rows[fact->child];
            for (uint32_t i = children->count; fact->kept && fact->trust != IVM_TRACKED && i-- > 0;) {
                if (is_orphan(it, fact, &children->row[i], &rows[fact->parent])) {
                    row_take(children, i);
                    again = true;
                }
            }
        }
    }
}

static void batch_add(web *it, ivm_batch *batch, uint32_t table, const web_row *row, int64_t sign)
{
    ivm_value values[WEB_CELLS];
    for (uint32_t c = 0; c < it->cells[table]; c++) {
        values[c] = row->cells[c] == WORLD_NULL ? ivm_null() : ivm_int64(row->cells[c]);
    }
    (void)ivm_batch_row(batch, it->tables[table], IVM_WEIGHTED, sign * row->weight, values, it->cells[table]); /* the push tells */
}

/* All rows out and all in, of the one or the other; what stays cancels, and so rows are touched that do not change. */
static ivm_batch *batch_make(web *it, web_rows to[WEB_TABLES], uint32_t changed)
{
    ivm_batch *batch = NULL;
    if (ivm_batch_create(it->engine, &batch, &it->error) != IVM_OK) {
        return NULL;
    }
    for (uint32_t t = 0; t < WEB_TABLES; t++) {
        if (!(changed >> t & 1) && memcmp(&it->rows[t], &to[t], sizeof to[t]) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < it->rows[t].count; i++) {
            batch_add(it, batch, t, &it->rows[t].row[i], -1);
        }
        for (uint32_t i = 0; i < to[t].count; i++) {
            batch_add(it, batch, t, &to[t].row[i], 1);
        }
    }
    return batch;
}

static void planner_draw(web *it)
{
    ivm_planner_options options = { web_below(it, 3) ? IVM_FK_PRUNING_ROW : (ivm_fk_pruning)web_below(it, 3),
                                    (ivm_join_rule)web_below(it, 3), web_below(it, 4) == 0 };
    cr_assert_eq(ivm_engine_planner_set(it->engine, &options, &it->error), IVM_OK);
}

void web_push(web *it)
{
    web_rows to[WEB_TABLES];
    uint32_t changed = 1 + web_below(it, (1u << WEB_TABLES) - 1);
    memcpy(to, it->rows, sizeof to);
    for (uint32_t t = 0; t < WEB_TABLES; t++) {
        if (changed >> t & 1) {
            table_change(it, t, &to[t]);
        }
    }
    promises_keep(it, to);
    planner_draw(it);
    bool fails = web_below(it, 6) == 0;
    if (fails) {
        test_allocator_arm(&it->allocator, 1 + web_below(it, 60));
    }
    ivm_batch *batch = batch_make(it, to, changed);
    ivm_status status = batch ? ivm_push_batch(it->engine, batch, NULL, &it->error) : IVM_OUT_OF_MEMORY;
    fails &= test_allocator_disarm(&it->allocator);
    if (status == IVM_OUT_OF_MEMORY && fails) {
        status = ivm_push_batch(it->engine, batch_make(it, to, changed), NULL, &it->error);
    }
    cr_assert_eq(status, IVM_OK, "seed %llu, push %u: %s", (unsigned long long)it->seed, it->pushes, it->error.message);
    memcpy(it->rows, to, sizeof to);
    it->pushes++;
}

void web_fact_turn(web *it)
{
    if (!it->facts_count) {
        return;
    }
    web_fact *fact = &it->facts[web_below(it, it->facts_count)];
    if (fact->declared) {
        cr_assert_eq(ivm_foreign_key_remove(fact->declared, &it->error), IVM_OK);
        fact->declared = NULL;
        fact->kept = false;
        return;
    }
    if (!fact->kept) {
        fact->kept = true;
        web_push(it);
        web_check(it);
    }
    fact_declare(it, fact);
}
