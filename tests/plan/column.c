/* tests of columns that come and go under views, and of what deferred views and callbacks are given, through the public calls alone */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_case.h"
#include "random.h"

static fixture fixtures[2], *tested = fixtures;
static ivm_table *fact, *dim;
static uint64_t random_state, history_seed;
static int made; /* columns so far */

static uint64_t draw(uint64_t below)
{
    return random_next(&random_state) % below;
}

static void tell_seed(void)
{
    if (history_seed) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)history_seed);
    }
}

/* ---- Plans ----------------------------------------------------------------------------------------------------------------------------- */

#define PLANS 7

static ivm_plan *joined(ivm_plan *left)
{
    return ivm_plan_join(left, scan_of("d", NULL), "f.k = d.id");
}

static ivm_plan *totals(ivm_plan *input)
{
    ivm_plan *aggregate = ivm_plan_aggregate(input, "d.name");
    return ivm_plan_count(ivm_plan_add(aggregate, "s", "sum", ivm_column("f.n")), "c");
}

static ivm_plan *plan_of(int nth)
{
    ivm_plan *f = scan_of("f", NULL), *inputs[2];
    switch (nth) {
    case 0:
        return ivm_plan_project(joined(f), "f.n, d.name");
    case 1:
        return totals(joined(ivm_plan_filter(f, call_of(">", "f.g", 0))));
    case 2:
        return ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, f, scan_of("d", NULL), "f.g = d.id"), "f.k, d.name");
    case 3:
        return ivm_plan_distinct(ivm_plan_project(f, "f.k, f.g"));
    case 4:
        inputs[0] = ivm_plan_project(f, "f.k");
        inputs[1] = ivm_plan_project(scan_of("d", NULL), "d.id");
        return ivm_plan_set(IVM_UNION_ALL, inputs, 2);
    case 5:
        return ivm_plan_aggregate(ivm_plan_join(f, scan_of("f", "e"), "f.g = e.k"), "f.n");
    default:
        return totals(joined(f)); /* of a deferred view */
    }
}

static ivm_view *view_make(const char *name, int nth, ivm_refresh refresh)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    return fixture_make_with(tested, name, plan_of(nth), &options);
}

/* The view is as one made anew would be. */
static void check(ivm_view *view, int nth)
{
    ivm_view *anew = view_make("anew", nth, IVM_IMMEDIATE);
    char *wanted = strdup(fixture_view(tested, anew));
    const char *rows = fixture_view(tested, view);
    cr_assert_str_eq(rows, wanted, "view %s: %s, not %s", ivm_view_name(view), rows, wanted);
    free(wanted);
    cr_assert_eq(ivm_view_drop(anew, NULL), IVM_OK);
}

/* ---- Columns --------------------------------------------------------------------------------------------------------------------------- */

/* Those of the tables' first columns that plans name; the others may go. */
static bool is_named(const char *name)
{
    return strchr("kgn", *name) != NULL || strcmp(name, "id") == 0;
}

static void column_change(void)
{
    ivm_table *table = draw(2) ? fact : dim;
    size_t count = ivm_table_columns_count(table);
    const char *name = ivm_table_column_name(table, draw(count));
    char fresh[16];
    snprintf(fresh, sizeof fresh, "x%d", made++);
    if (draw(2) && count < 8) {
        ivm_column_definition column = { fresh, draw(2) ? IVM_STRING : IVM_INT64, false };
        cr_assert_eq(ivm_table_column_add(table, &column, &tested->error), IVM_OK, "%s", tested->error.message);
    } else if (is_named(name)) {
        cr_assert_eq(ivm_table_column_drop(table, name, &tested->error), IVM_IN_USE, "%s", name);
    } else if (draw(4)) {
        char *dropped = strdup(name);
        cr_assert_eq(ivm_table_column_drop(table, dropped, &tested->error), IVM_OK, "%s: %s", dropped, tested->error.message);
        free(dropped);
    } else {
        cr_assert_eq(ivm_table_column_rename(table, name, fresh, &tested->error), IVM_OK);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_value value_for(const ivm_table *table, size_t column)
{
    const char *name = ivm_table_column_name(table, column);
    if (ivm_table_column_type(table, column) == IVM_STRING) {
        return draw(3) ? ivm_string(draw(2) ? "a" : "b") : ivm_null();
    }
    return ivm_int64((int64_t)draw(*name == 'k' ? 4 : 5) - (*name == 'g'));
}

/* Children refer to parents 0 to 3, which stay; parents 4 and on come and go. */
static void push_some(void)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested->engine, &batch, NULL), IVM_OK);
    for (uint64_t i = draw(5); i-- > 0;) {
        ivm_table *table = draw(3) ? fact : dim;
        ivm_value row[16];
        size_t count = ivm_table_columns_count(table), key;
        for (size_t c = 0; c < count; c++) {
            row[c] = value_for(table, c);
        }
        bool keyed = ivm_table_key(table, &key, 1) == 1;
        if (keyed) {
            row[key] = ivm_int64((int64_t)draw(7));
        }
        bool goes = keyed && row[key].as.int64 > 3 && draw(2);
        (void)ivm_batch_row(batch, table,
                            goes    ? IVM_DELETE_KEY
                            : keyed ? IVM_UPSERT
                                    : IVM_INSERT,
                            1, goes ? &row[key] : row, goes ? 1 : count);
    }
    ivm_status status = ivm_push_batch(tested->engine, batch, NULL, &tested->error);
    cr_assert(status == IVM_OK || status == IVM_ROW_NOT_FOUND, "%s", tested->error.message); /* a parent may not be there to go */
}

/* Takes a row of the fact table away, as it is now. */
static void push_removal(void)
{
    ivm_snapshot *snapshot;
    ivm_rows rows;
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested->engine, &batch, NULL), IVM_OK);
    cr_assert_eq(ivm_read_table(fact, &snapshot, NULL), IVM_OK);
    if (ivm_snapshot_next(snapshot, &rows)) {
        ivm_value row[16];
        size_t at = draw(rows.rows_count);
        for (size_t c = 0; c < rows.columns_count; c++) {
            row[c] = ivm_rows_value(&rows, ivm_table_column_type(fact, c), at, c);
        }
        (void)ivm_batch_row(batch, fact, IVM_DELETE, 1, row, rows.columns_count);
    }
    ivm_snapshot_close(snapshot);
    cr_assert_eq(ivm_push_batch(tested->engine, batch, NULL, &tested->error), IVM_OK, "%s", tested->error.message);
}

/* Goes on with what the engine is saved as, in another engine; the views are found by their names. */
static void reopen(ivm_view **views)
{
    fixture *other = tested == fixtures ? fixtures + 1 : fixtures;
    tape saved = { 0 };
    case_save(tested, &saved);
    fixture_open(other);
    cr_assert_eq(case_restore(other, &saved), IVM_OK, "%s", other->error.message);
    case_assert_saved_as(other, &saved, "restored");
    fixture_close(tested);
    tested = other;
    tape_free(&saved);
    dim = fixture_table_find(tested, "d");
    fact = fixture_table_find(tested, "f");
    for (int i = 0; i < PLANS; i++) {
        const char name[] = { 'v', (char)('0' + i), 0 };
        cr_assert_eq(ivm_view_find(tested->engine, name, &views[i], NULL), IVM_OK);
    }
}

static void history(uint64_t seed, bool restores)
{
    random_state = seed * 0x9E3779B97F4A7C15ull | 1;
    fixture_open(tested);
    dim = fixture_table(tested, "d", "p string; id int64; name int64; q string", "id");
    fact = fixture_table(tested, "f", "a string; k int64; b int64; g int64; n int64", NULL);
    cr_assert_eq(fixture_push(tested, dim, IVM_INSERT, "x,0,1,y x,1,1,y null,2,2,null x,3,null,y"), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(fact, "k", dim, "id", IVM_RELY, NULL, NULL), IVM_OK);
    ivm_view *views[PLANS];
    for (int i = 0; i < PLANS; i++) {
        const char name[] = { 'v', (char)('0' + i), 0 };
        views[i] = view_make(name, i, i == PLANS - 1 ? IVM_DEFERRED : IVM_IMMEDIATE);
    }
    for (int step = 0; step < 40; step++) {
        ivm_planner_options planner = { (ivm_fk_pruning)draw(3), (ivm_join_rule)draw(3), draw(2) };
        cr_assert_eq(ivm_engine_planner_set(tested->engine, &planner, NULL), IVM_OK);
        if (restores && draw(3) == 0) {
            reopen(views);
        }
        uint64_t event = draw(8);
        if (event < 3) {
            column_change();
        } else if (event < 4) {
            push_removal();
        } else {
            push_some();
        }
        if (draw(4) == 0) {
            cr_assert_eq(ivm_refresh_view(views[PLANS - 1], NULL, &tested->error), IVM_OK, "%s", tested->error.message);
            check(views[PLANS - 1], PLANS - 1);
        }
        for (int i = 0; i + 1 < PLANS; i++) {
            check(views[i], i);
        }
    }
    fixture_close(tested);
}

Test(plan_column, views_over_columns_that_come_and_go, .fini = tell_seed)
{
    for (history_seed = 1; history_seed <= 30; history_seed++) {
        history(history_seed, false);
    }
    history_seed = 0;
}

Test(plan_column, views_over_columns_that_come_and_go_and_come_back, .fini = tell_seed)
{
    for (history_seed = 1; history_seed <= 30; history_seed++) {
        history(history_seed, true);
    }
    history_seed = 0;
}
