/* Audits: exact views have no differences whatever their plan, broken promises are found row by row, and nothing of an audit stays. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static fixture tested;
static ivm_table *sale, *product, *feed;

static void push(ivm_table *table, ivm_change change, const char *rows)
{
    cr_assert_eq(fixture_push(&tested, table, change, rows), IVM_OK, "%s", tested.error.message);
}

static void open_tables(void)
{
    static const ivm_column_definition columns[] = { { "product", IVM_INT64, false }, { "amount", IVM_INT64, false } };
    ivm_table_options signs = { .columns = columns, .columns_count = 2, .allow_negative = true };
    fixture_open(&tested);
    sale = fixture_table(&tested, "sale", "product int64; amount int64; note string", NULL);
    product = fixture_table(&tested, "product", "id int64; name string", "id");
    cr_assert_eq(ivm_table_create(tested.engine, "feed", &signs, &feed, &tested.error), IVM_OK, "%s", tested.error.message);
    push(product, IVM_INSERT, "1,a 2,b");
    push(sale, IVM_INSERT, "1,5,x 1,5,x 1,6,null 2,7,y 9,1,z");
    push(feed, IVM_DELETE, "1,5 2,7");
}

static void close_tables(void)
{
    fixture_close(&tested);
}

TestSuite(plan_audit, .init = open_tables, .fini = close_tables);

static ivm_view *make(const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    return fixture_make_with(&tested, name, plan, &options);
}

static ivm_snapshot *audited(ivm_view *view)
{
    ivm_snapshot *differences = NULL;
    ivm_status status = ivm_audit_view(view, &differences, &tested.error);
    cr_assert_eq(status, IVM_OK, "view %s: %s", view->name, tested.error.message);
    return differences;
}

static const char *differences_of(ivm_view *view)
{
    return fixture_rows(audited(view));
}

static void assert_exact(ivm_view *view)
{
    ivm_snapshot *differences = audited(view);
    cr_assert_eq(ivm_snapshot_rows_count(differences), 0u, "view %s: %s", view->name, fixture_rows(differences));
    ivm_snapshot_close(differences);
}

static void declare(void)
{
    cr_assert_eq(ivm_foreign_key_declare(sale, "product", product, "id", IVM_RELY, NULL, &tested.error), IVM_OK);
}

/* ---- Plans ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *joined(void)
{
    return ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
}

static ivm_plan *totals(void)
{
    return ivm_plan_count(ivm_plan_add(ivm_plan_aggregate(joined(), "p.name"), "total", "sum", ivm_column("amount")), "n");
}

static ivm_plan *loud_names(void)
{
    return ivm_plan_compute(ivm_plan_project(joined(), "s.amount"), "loud", ivm_call1("upper", ivm_column("p.name")));
}

static ivm_plan *outer(ivm_join_kind kind)
{
    return ivm_plan_join_kind(kind, scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
}

static ivm_plan *set(ivm_set_operation kind)
{
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("sale", NULL), "product"), ivm_plan_project(scan_of("product", NULL), "id") };
    return ivm_plan_set(kind, inputs, 2);
}

static ivm_plan *ordered(ivm_plan *input, const char *column)
{
    return ivm_plan_order_by(ivm_plan_top_k(input, 2, 0), ivm_column(column), true, false);
}

static ivm_plan *figures(ivm_plan *input, const char *groups)
{
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(input, groups), "least", "min", ivm_column("amount"));
    plan = ivm_plan_add(ivm_plan_add(plan, "mean", "avg", ivm_column("amount")), "spread", "var_pop", ivm_column("amount"));
    return ivm_plan_add(plan, "distinct_amounts", "count_distinct", ivm_column("amount"));
}

#define KINDS 22
static ivm_plan *of_kind(int kind)
{
    static const ivm_set_operation sets[] = { IVM_UNION_ALL, IVM_UNION, IVM_EXCEPT, IVM_EXCEPT_ALL, IVM_INTERSECT, IVM_INTERSECT_ALL };
    static const ivm_join_kind joins[] = { IVM_LEFT_JOIN, IVM_RIGHT_JOIN, IVM_FULL_JOIN, IVM_SEMI_JOIN, IVM_ANTI_JOIN };
    if (kind < 6) {
        return set(sets[kind]);
    }
    if (kind < 11) {
        return outer(joins[kind - 6]);
    }
    switch (kind) {
    case 11:
        return totals();
    case 12:
        return joined();
    case 13:
        return loud_names();
    case 14:
        return figures(scan_of("sale", NULL), "product");
    case 15:
        return figures(scan_of("sale", NULL), "");
    case 16:
        return figures(scan_of("feed", NULL), "product");
    case 17:
        return ivm_plan_distinct(ivm_plan_project(ivm_plan_filter(scan_of("sale", NULL), call_of(">", "amount", 5)), "note"));
    case 18:
        return ivm_plan_partition_by(ordered(ivm_plan_project(scan_of("sale", NULL), "product, amount"), "amount"), ivm_column("product"));
    case 19:
        return ivm_plan_project(ivm_plan_join(scan_of("feed", "f"), scan_of("sale", "s"), "f.product = s.product"), "f.amount, s.note");
    case 20: /* a cross product, one side filtered */
        return ivm_plan_project(ivm_plan_join(ivm_plan_filter(scan_of("sale", "s"), call_of(">", "s.amount", 5)), scan_of("feed", "f"), ""),
                                "s.note, f.amount");
    default: /* filtered leaves of one table */
        return ivm_plan_project(ivm_plan_join(ivm_plan_filter(scan_of("sale", "a"), call_of(">", "a.amount", 5)),
                                              ivm_plan_filter(scan_of("sale", "b"), call_of("<", "b.amount", 7)), "a.product = b.product"),
                                "a.amount, b.note");
    }
}

static const char *numbered(const char *name, int number)
{
    static char text[32];
    snprintf(text, sizeof text, "%s%d", name, number);
    return text;
}

/* ---- Exact views ------------------------------------------------------------------------------------------------------------------------- */

static void push_much(int turn)
{
    push(product, IVM_UPSERT, turn ? "2,bb 4,d" : "3,c 2,b");
    push(sale, IVM_INSERT, turn ? "2,9,z 1,5,x" : "3,1,x 2,2,new");
    push(feed, turn ? IVM_INSERT : IVM_DELETE, "1,5 1,5 3,8");
    push(sale, IVM_INSERT, "2,100,come");
    push(sale, IVM_DELETE, turn ? "2,100,come 1,5,x" : "2,100,come 1,6,null");
    push(product, IVM_UPSERT, "1,come");
    push(product, IVM_UPSERT, "1,a");
}

typedef struct trace {
    ivm_stats stats;
    size_t indexes;
    char *rows[64];
    uint32_t count;
} trace;

static size_t indexes_count(const ivm__store *store)
{
    size_t count = 0;
    for (const ivm__index *index = store->indexes; index; index = index->next_of_store) {
        const char *wrong = ivm__index_validate(index);
        cr_assert_null(wrong, "%s", wrong);
        count++;
    }
    return count;
}

/* Statistics, indexes, and what all views hold and last changed by. */
static void look(trace *seen)
{
    memset(seen, 0, sizeof *seen);
    for (ivm_view *view = tested.engine->views; view; view = view->next) {
        cr_assert_lt(seen->count, 62u);
        seen->rows[seen->count++] = strdup(fixture_view(&tested, view));
        seen->rows[seen->count++] = strdup(fixture_changes(&tested, view));
        seen->indexes += indexes_count(view->program.result);
    }
    for (ivm_table *table = tested.engine->tables; table; table = table->next) {
        cr_assert(!table->store.laid && table->store.touched_count == 0);
        seen->indexes += indexes_count(&table->store);
    }
    ivm_engine_stats(tested.engine, &seen->stats);
    seen->stats.bytes_held = 0;
}

static void look_free(trace *seen)
{
    for (uint32_t i = 0; i < seen->count; i++) {
        free(seen->rows[i]);
    }
}

static void assert_same(const trace *before, const trace *after)
{
    cr_assert_eq(memcmp(&before->stats, &after->stats, sizeof before->stats), 0, "statistics");
    cr_assert_eq(before->indexes, after->indexes);
    cr_assert_eq(before->count, after->count);
    for (uint32_t i = 0; i < before->count; i++) {
        cr_assert_str_eq(before->rows[i], after->rows[i]);
    }
}

/* Audits every view there is; nothing of it stays. */
static void audit_all(void)
{
    trace before, after;
    look(&before);
    for (ivm_view *view = tested.engine->views; view; view = view->next) {
        assert_exact(view);
    }
    look(&after);
    assert_same(&before, &after);
    look_free(&before);
    look_free(&after);
}

Test(plan_audit, exact_views_have_no_differences)
{
    for (int first = 0; first < KINDS; first += 11) {
        ivm_view *made[22];
        for (int i = 0; i < 11; i++) {
            made[2 * i] = make(numbered("now", first + i), of_kind(first + i), IVM_IMMEDIATE);
            made[2 * i + 1] = make(numbered("late", first + i), of_kind(first + i), IVM_DEFERRED);
        }
        audit_all();
        push(sale, IVM_INSERT, "1,6,null");
        for (int turn = 0; turn < 2; turn++) {
            push_much(turn); /* pending for the deferred */
            audit_all();
            for (int i = 0; i < 11; i++) {
                cr_assert_eq(ivm_refresh_view(made[2 * i + 1], NULL, &tested.error), IVM_OK, "%s", tested.error.message);
            }
            audit_all();
        }
        for (int i = 0; i < 22; i++) {
            cr_assert_eq(ivm_view_drop(made[i], &tested.error), IVM_OK);
        }
    }
}

Test(plan_audit, views_over_views)
{
    ivm_view *names = make("names", loud_names(), IVM_IMMEDIATE);
    ivm_view *late = make("late", totals(), IVM_DEFERRED);
    make("best", ordered(scan_of("names", NULL), "amount"), IVM_IMMEDIATE);
    make("pairs", ivm_plan_project(ivm_plan_join(scan_of("names", "a"), scan_of("names", "b"), "a.amount = b.amount"), "a.loud, b.amount"),
         IVM_IMMEDIATE);
    make("over_late", ivm_plan_filter(scan_of("late", NULL), call_of(">", "n", 1)), IVM_IMMEDIATE);
    make("with_late", ivm_plan_project(ivm_plan_join(scan_of("late", "l"), scan_of("names", "n"), "l.total = n.amount"), "l.name, n.loud"),
         IVM_IMMEDIATE);
    make("late_over", ivm_plan_distinct(ivm_plan_project(scan_of("names", NULL), "loud")), IVM_DEFERRED);
    ivm_view *last =
        make("late_with", ivm_plan_project(ivm_plan_join(scan_of("late", "l"), scan_of("product", "p"), "l.name = p.name"), "p.id, l.n"),
             IVM_DEFERRED);
    for (int turn = 0; turn < 2; turn++) {
        push_much(turn);
        audit_all();
        cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
        audit_all();
        push(sale, IVM_INSERT, "1,12,w");
        audit_all();
        cr_assert_eq(ivm_refresh_view(last, NULL, &tested.error), IVM_OK);
        audit_all();
    }
    cr_assert_str_neq(fixture_view(&tested, names), "");
}

/* ---- Broken promises ----------------------------------------------------------------------------------------------------------------------- */

/* A child before its parent, whose arrival is then pruned. */
static void break_promise(const char *children, const char *parent)
{
    push(sale, IVM_INSERT, children);
    push(product, IVM_INSERT, parent);
}

Test(plan_audit, a_broken_promise_is_found)
{
    declare();
    ivm_view *rows = make("rows", loud_names(), IVM_IMMEDIATE), *sums = make("sums", totals(), IVM_IMMEDIATE);
    ivm_view *reader = make("reader", ivm_plan_filter(scan_of("rows", NULL), call_of(">", "amount", 8)), IVM_IMMEDIATE);
    ivm_view *alone = make("alone", ivm_plan_project(scan_of("sale", NULL), "amount"), IVM_IMMEDIATE);
    break_promise("3,8,p 3,9,q 3,9,r", "3,a");
    char *held = strdup(fixture_view(&tested, sums));
    cr_assert_str_eq(held, "1*a,16,3 1*b,7,1");
    cr_assert_str_eq(differences_of(rows), "1*8,A 2*9,A");
    cr_assert_str_eq(differences_of(sums), "-1*a,16,3 1*a,42,6");
    cr_assert_str_eq(differences_of(reader), "2*9,A", "what it reads is computed anew, too");
    assert_exact(alone);
    cr_assert_str_eq(fixture_view(&tested, sums), held);
    push(sale, IVM_INSERT, "3,1,s");
    cr_assert_str_eq(fixture_changes(&tested, rows), "1*1,A");
    cr_assert_str_eq(differences_of(rows), "1*8,A 2*9,A");
    push(sale, IVM_DELETE, "3,8,p 3,9,q 3,9,r");
    cr_assert_str_eq(differences_of(rows), "1*8,A 2*9,A", "taken away without having been added");
    free(held);
}

Test(plan_audit, a_deferred_view_is_judged_by_its_last_refresh)
{
    declare();
    ivm_view *late = make("late", loud_names(), IVM_DEFERRED);
    push(sale, IVM_INSERT, "3,8,p");
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    push(product, IVM_INSERT, "3,c");
    assert_exact(late);
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    cr_assert_str_eq(differences_of(late), "1*8,C");
    push(sale, IVM_DELETE, "3,8,p");
    push(product, IVM_UPSERT, "3,cc 1,aa");
    push(sale, IVM_INSERT, "1,100,n");
    cr_assert_str_eq(differences_of(late), "1*8,C", "what is pending plays no part");
    ivm_view *over = make("over", ivm_plan_project(scan_of("late", NULL), "loud"), IVM_IMMEDIATE);
    assert_exact(over);
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    cr_assert_str_eq(differences_of(late), "1*8,C", "taken away without having been added");
    assert_exact(over);
}

Test(plan_audit, an_overflow_that_the_view_missed)
{
    declare();
    ivm_view *sums = make("sums", totals(), IVM_IMMEDIATE), *over = make("over", scan_of("sums", NULL), IVM_IMMEDIATE);
    break_promise("3,9000000000000000000,p 3,9000000000000000000,q", "3,c");
    ivm_snapshot *differences = NULL;
    int64_t blocks = tested.allocator.blocks;
    cr_assert_eq(ivm_audit_view(sums, &differences, &tested.error), IVM_OVERFLOW);
    cr_assert_not_null(strstr(tested.error.message, "sums"), "%s", tested.error.message);
    cr_assert_eq(ivm_audit_view(over, &differences, &tested.error), IVM_OVERFLOW);
    cr_assert_null(differences);
    cr_assert_leq(tested.allocator.blocks, blocks);
    push(sale, IVM_DELETE, "3,9000000000000000000,q");
    cr_assert_str_neq(differences_of(sums), "");
}

Test(plan_audit, a_table_whose_rows_are_not_kept)
{
    ivm_view *rows = make("rows", joined(), IVM_IMMEDIATE);
    ivm_view *over = make("over", ivm_plan_project(scan_of("rows", NULL), "name"), IVM_IMMEDIATE);
    ivm_view *late = make("late", ivm_plan_project(scan_of("rows", NULL), "name"), IVM_DEFERRED);
    ivm_snapshot *differences = NULL;
    sale->transient = true;
    cr_assert_eq(ivm_audit_view(rows, &differences, &tested.error), IVM_UNSUPPORTED);
    cr_assert_not_null(strstr(tested.error.message, "table sale"), "%s", tested.error.message);
    cr_assert_eq(ivm_audit_view(over, &differences, &tested.error), IVM_UNSUPPORTED);
    cr_assert_not_null(strstr(tested.error.message, "table sale"), "%s", tested.error.message);
    cr_assert_null(differences);
    assert_exact(late); /* reads no more than the rows of a view */
    sale->transient = false;
    assert_exact(over);
}

/* ---- What the caller holds ------------------------------------------------------------------------------------------------------------------ */

Test(plan_audit, differences_outlive_what_they_were_computed_from)
{
    declare();
    ivm_view *rows = make("rows", loud_names(), IVM_IMMEDIATE);
    break_promise("3,8,p", "3,a-name-that-no-row-of-a-view-holds");
    ivm_snapshot *differences = audited(rows);
    ivm_rows found;
    ivm_value amount = ivm_int64(8);
    push(sale, IVM_DELETE, "3,8,p");
    push(product, IVM_DELETE_KEY, "3");
    cr_assert_eq(ivm_view_drop(rows, &tested.error), IVM_OK);
    push(product, IVM_INSERT, "3,others 4,that 5,take 6,its 7,place");
    cr_assert_eq(ivm_engine_close(tested.engine, &tested.error), IVM_IN_USE);
    cr_assert_eq(ivm_snapshot_find(differences, &amount, 1, &found, &tested.error), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(found.rows_count, 1u);
    cr_assert_str_eq(fixture_rows(differences), "1*8,A-NAME-THAT-NO-ROW-OF-A-VIEW-HOLDS");
}

static ivm_status from_inside;

static void call_back(void *context, ivm_view *view, ivm_snapshot *changes)
{
    ivm_snapshot *differences = NULL;
    (void)context;
    (void)changes;
    from_inside = ivm_audit_view(view, &differences, NULL);
    cr_assert_null(differences);
}

Test(plan_audit, no_view_and_no_time)
{
    ivm_snapshot *differences = NULL;
    ivm_view *view = NULL;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = call_back };
    cr_assert_eq(ivm_audit_view(NULL, &differences, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_view_create(tested.engine, "told", joined(), &options, &view, &tested.error), IVM_OK);
    cr_assert_eq(ivm_audit_view(view, NULL, &tested.error), IVM_INVALID_ARGUMENT);
    push(sale, IVM_INSERT, "1,1,x");
    cr_assert_eq(from_inside, IVM_IN_USE);
    assert_exact(view);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------- */

/* How many allocations an audit makes, each of which has failed once and left nothing. */
static uint64_t every_allocation(ivm_view *view, const char *wanted)
{
    cr_assert_str_eq(differences_of(view), wanted);
    int64_t blocks = tested.allocator.blocks;
    for (uint64_t n = 1;; n++) {
        trace before, after;
        ivm_snapshot *differences = NULL;
        look(&before);
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = ivm_audit_view(view, &differences, &tested.error);
        bool done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "view %s, allocation %lu: %s", view->name, (unsigned long)n,
                     tested.error.message);
        cr_assert_eq(differences != NULL, done);
        if (done) {
            cr_assert_str_eq(fixture_rows(differences), wanted);
        }
        look(&after);
        assert_same(&before, &after);
        /* Not one more; less where an arena gave back what no step had used for long. */
        cr_assert_leq(tested.allocator.blocks, blocks, "view %s, allocation %lu", view->name, (unsigned long)n);
        look_free(&before);
        look_free(&after);
        if (done) {
            return n;
        }
    }
}

Test(plan_audit, a_failed_allocation_leaves_nothing)
{
    declare();
    ivm_view *rows = make("rows", loud_names(), IVM_IMMEDIATE);
    ivm_view *sums = make("sums", totals(), IVM_IMMEDIATE);
    ivm_view *reader = make("reader", ivm_plan_distinct(ivm_plan_project(scan_of("rows", NULL), "loud")), IVM_IMMEDIATE);
    ivm_view *late = make("late", outer(IVM_FULL_JOIN), IVM_DEFERRED), *joins = make("joins", joined(), IVM_DEFERRED);
    break_promise("3,8,p", "3,c");
    push_much(1);
    cr_assert_gt(every_allocation(rows, "1*8,C"), 20u);
    cr_assert_gt(every_allocation(sums, "1*c,8,1"), 20u);
    cr_assert_gt(every_allocation(reader, "1*C"), 40u);
    cr_assert_gt(every_allocation(late, ""), 20u);
    cr_assert_gt(every_allocation(joins, ""), 20u);
    push_much(0);
    cr_assert_eq(ivm_refresh_view(late, NULL, &tested.error), IVM_OK);
    assert_exact(late);
}
