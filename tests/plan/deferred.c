/* Deferred views and callbacks through the public API, with real programs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

static void open_tables(void)
{
    shop_open_with("; note string", "");
    push(product, IVM_INSERT, "1,a 2,b");
    push(sale, IVM_INSERT, "1,5,x 1,6,null 2,7,y");
}

TestSuite(plan_deferred, .init = open_tables, .fini = shop_close);

static ivm_plan *joined(void)
{
    return ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
}

static ivm_plan *totals(void)
{
    return ivm_plan_count(ivm_plan_add(ivm_plan_aggregate(joined(), "p.name"), "total", "sum", ivm_column("amount")), "n");
}

static ivm_plan *of_kind(int kind)
{
    ivm_plan *plan;
    switch (kind) {
    case 0:
        return totals();
    case 1:
        return ivm_plan_project(joined(), "s.amount, p.name");
    case 2:
        return ivm_plan_join_kind(IVM_FULL_JOIN, scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    case 3:
        return ivm_plan_distinct(ivm_plan_project(ivm_plan_filter(scan_of("sale", "s"), call_of(">", "s.amount", 5)), "s.note"));
    case 4:
        plan = ivm_plan_top_k(scan_of("sale", "s"), 2, 0);
        return ivm_plan_order_by(ivm_plan_partition_by(plan, ivm_column("s.product")), ivm_column("s.amount"), true, false);
    default:
        plan = ivm_plan_aggregate(scan_of("sale", "s"), "s.product");
        return ivm_plan_add(ivm_plan_add(plan, "least", "min", ivm_column("s.amount")), "notes", "count_distinct", ivm_column("s.note"));
    }
}
#define KINDS 6

static ivm_view *deferred(const char *name, ivm_plan *plan, const ivm_view_options *given)
{
    ivm_view_options options = given ? *given : (ivm_view_options){ .version = IVM_VIEW_OPTIONS_VERSION };
    options.refresh = IVM_DEFERRED;
    return fixture_make_with(&shop, name, plan, &options);
}

/* Pushes that insert, change and take away, and rows that come and go in between. */
static void push_much(int turn)
{
    push(sale, IVM_INSERT, turn ? "2,9,z 1,5,x" : "3,1,x 2,2,new");
    push(product, IVM_UPSERT, turn ? "2,bb 4,d" : "3,c 2,b");
    push(sale, IVM_INSERT, "2,100,come");
    push(sale, IVM_DELETE, turn ? "2,100,come 1,5,x" : "2,100,come 1,6,null");
    push(product, IVM_UPSERT, "1,come");
    push(product, IVM_UPSERT, "1,a");
}

Test(plan_deferred, every_operator_starts_from_the_last_refresh)
{
    ivm_view *late[KINDS];
    for (int i = 0; i < KINDS; i++) {
        const char name[] = { 'v', (char)('0' + i), 0 };
        late[i] = deferred(name, of_kind(i), NULL);
    }
    for (int turn = 0; turn < 2; turn++) {
        push_much(turn);
        for (int i = 0; i < KINDS; i++) {
            char *before = strdup(fixture_view(&shop, late[i]));
            cr_assert_eq(fixture_changes(&shop, late[i])[0], 0);
            for (uint64_t n = 1, done = 0; !done; n++) {
                test_allocator_arm(&shop.allocator, n);
                ivm_status status = ivm_refresh_view(late[i], NULL, &shop.error);
                done = !test_allocator_disarm(&shop.allocator);
                cr_assert(status == (done ? IVM_OK : IVM_OUT_OF_MEMORY) || (status == IVM_OK && n > 1), "kind %d: %s", i,
                          shop.error.message);
                done |= status == IVM_OK;
                cr_assert(done || strcmp(fixture_view(&shop, late[i]), before) == 0, "kind %d, allocation %lu", i, (unsigned long)n);
            }
            free(before);
            ivm_view *anew = fixture_make(&shop, "anew", of_kind(i));
            char *wanted = strdup(fixture_view(&shop, anew));
            cr_assert_str_eq(fixture_view(&shop, late[i]), wanted, "kind %d", i);
            free(wanted);
            cr_assert_eq(ivm_view_drop(anew, NULL), IVM_OK);
        }
    }
}

Test(plan_deferred, pruning_judges_the_pending_net_delta)
{
    ivm_planner_options planner = { IVM_FK_PRUNING_BATCH, IVM_JOIN_MOBIUS, false };
    cr_assert_eq(ivm_engine_planner_set(shop.engine, &planner, NULL), IVM_OK);
    ivm_view *late = deferred("late", totals(), NULL);
    cr_assert_eq(ivm_foreign_key_declare(sale, "product", product, "id", IVM_RELY, NULL, NULL), IVM_OK);
    push(product, IVM_INSERT, "3,c");
    push(product, IVM_DELETE, "3,c");
    push(product, IVM_INSERT, "4,d"); /* the deletion has cancelled: only an insertion is pending */
    push(sale, IVM_INSERT, "4,1,x");
    ivm_stats stats;
    cr_assert_eq(ivm_refresh_view(late, &stats, NULL), IVM_OK);
    cr_assert(stats.terms_pruned == 2 && stats.terms_run == 1 && stats.rows_out == 1);
    cr_assert_str_eq(fixture_changes(&shop, late), "1*d,1,1");
    push(product, IVM_UPSERT, "1,aa");
    push(sale, IVM_INSERT, "1,1,x");
    cr_assert_eq(ivm_refresh_view(late, &stats, NULL), IVM_OK);
    cr_assert(stats.terms_pruned == 0 && stats.terms_run == 3);
    cr_assert_str_eq(fixture_changes(&shop, late), "-1*a,11,2 1*aa,12,3");
}

/* ---- Callbacks -------------------------------------------------------------------------------------------------------------------------- */

static int told;
static char seen[200];

static void call_back(void *context, ivm_view *view, ivm_snapshot *changes)
{
    ivm_view *made = NULL;
    ivm_fact *fact = NULL;
    char *text = NULL;
    ivm_rows rows;
    told++;
    cr_assert_eq(context, &told);
    cr_assert_eq(ivm_view_create(shop.engine, "other", totals(), NULL, &made, &shop.error), IVM_IN_USE);
    cr_assert_eq(ivm_view_drop(view, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_explain(view, NULL, IVM_EXPLAIN_TEXT, &text, NULL), IVM_IN_USE);
    cr_assert_eq(ivm_foreign_key_declare(sale, "product", product, "id", IVM_RELY, &fact, NULL), IVM_IN_USE);
    cr_assert(!made && !text && !fact && ivm_snapshot_next(changes, &rows));
    ivm_value name = ivm_rows_value(&rows, IVM_STRING, 0, 0);
    snprintf(seen, sizeof seen, "%zu %ld %.*s", rows.rows_count, (long)(rows.weights ? rows.weights[0] : 1), (int)name.as.string.size,
             name.as.string.bytes);
}

Test(plan_deferred, a_view_may_have_a_callback)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = call_back, .changed_context = &told };
    told = 0;
    ivm_view *late = deferred("late", totals(), &options);
    push(product, IVM_INSERT, "3,c");
    push(sale, IVM_INSERT, "3,9,x");
    cr_assert_eq(told, 0);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(told == 1 && strcmp(seen, "1 1 c") == 0, "%s", seen);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert_eq(told, 1);
    push(sale, IVM_DELETE, "3,9,x");
    push(sale, IVM_INSERT, "3,9,y"); /* another row, but the group is what it was */
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert_eq(told, 1);
    cr_assert_eq(ivm_view_drop(late, NULL), IVM_OK);
}
