/* Views of tables whose rows are not kept: which are refused and why, which are made, and the facts that they rest on. */
#include <criterion/criterion.h>
#include <string.h>

#include "fixture.h"
#include "transient.h"

static fixture tested;
static ivm_table *lost, *other, *dim, *far, *loose;

static ivm_fact *refer(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust)
{
    return fixture_fact(&tested, child, columns, parent, parent_columns, trust);
}

/* f and g keep no rows; d and s are append_only, e is not. */
static void open_tables(void)
{
    ivm_table_options transient = { .transient = true }, grows = { .key = "id", .append_only = true };
    fixture_open(&tested);
    lost = fixture_table_like(&tested, "f", "id int64; d int64; e int64; n int64", &transient);
    other = fixture_table_like(&tested, "g", "d int64; n int64", &transient);
    dim = fixture_table_like(&tested, "d", "id int64; name string; s int64; up int64", &grows);
    far = fixture_table_like(&tested, "s", "id int64; region string", &grows);
    loose = fixture_table(&tested, "e", "id int64; name string", "id");
}

static void close_tables(void)
{
    fixture_close(&tested);
}

TestSuite(plan_transient, .init = open_tables, .fini = close_tables);

static void refer_all(void)
{
    refer(lost, "d", dim, "id", IVM_RELY);
    refer(lost, "e", loose, "id", IVM_RELY);
    refer(other, "d", dim, "id", IVM_RELY);
    refer(dim, "s", far, "id", IVM_RELY);
}

static ivm_status make_of(ivm_plan *plan, ivm_refresh refresh, ivm_view **view)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    return ivm_view_create(tested.engine, "v", plan, &options, view, &tested.error);
}

/* Refused with a message that has all these parts. */
static void refuses_as(ivm_plan *plan, ivm_refresh refresh, const char *table, const char *why)
{
    ivm_view *view = NULL;
    ivm_status status = make_of(plan, refresh, &view);
    cr_assert_eq(status, IVM_UNSUPPORTED, "%s: %s, %s", why, ivm_status_name(status), tested.error.message);
    cr_assert(strstr(tested.error.message, table) && strstr(tested.error.message, why), "%s", tested.error.message);
    cr_assert_null(view);
}

static void refuses(ivm_plan *plan, const char *table, const char *why)
{
    refuses_as(plan, IVM_IMMEDIATE, table, why);
}

/* Made, and dropped again. */
static void takes(ivm_plan *plan)
{
    ivm_view *view = NULL;
    cr_assert_eq(make_of(plan, IVM_IMMEDIATE, &view), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(ivm_view_drop(view, &tested.error), IVM_OK, "%s", tested.error.message);
}

static ivm_plan *id_of(ivm_plan *join)
{
    return ivm_plan_project(join, "f.id");
}

static ivm_plan *joined(const char *with, const char *on)
{
    return id_of(ivm_plan_join(scan_of("f", NULL), scan_of(with, NULL), on));
}

static ivm_plan *three(const char *a, const char *b, const char *c, const char *on)
{
    ivm_plan *inputs[] = { scan_of(a, NULL), scan_of(b, NULL), scan_of(c, NULL) };
    return id_of(ivm_plan_join_many(inputs, 3, on));
}

static ivm_plan *counted(ivm_plan *input, const char *by)
{
    return ivm_plan_count(ivm_plan_aggregate(input, by), "n");
}

/* ---- Refused -------------------------------------------------------------------------------------------------------------------------- */

Test(plan_transient, a_join_wants_every_other_leaf_reached_along_facts)
{
    refuses(joined("d", "f.d = d.id"), "table f", "no foreign key that the join equates leads from it to d");
    refer_all();
    takes(joined("d", "f.d = d.id"));
    refuses(joined("d", "f.id = d.id"), "table f", "leads from it to d");
    refuses(joined("s", "f.d = s.id"), "table f", "leads from it to s");
    refuses(joined("d", NULL), "table f", "leads from it to d");
    takes(three("s", "f", "d", "f.d = d.id, d.s = s.id"));
    refuses(three("s", "f", "d", "f.d = d.id, f.n = s.id"), "table f", "leads from it to s");
}

Test(plan_transient, a_leaf_beside_it_is_an_append_only_table)
{
    refer_all();
    refuses(joined("e", "f.e = e.id"), "table f", "not append_only: e");
    ivm_view *view = fixture_make(&tested, "names", ivm_plan_distinct(ivm_plan_project(scan_of("d", NULL), "d.id")));
    refuses(joined("names", "f.d = names.id"), "table f", "a leaf that is no table");
    refuses(id_of(ivm_plan_join(scan_of("f", NULL), counted(scan_of("d", NULL), "d.id"), "f.d = id")), "table f",
            "a leaf that is no table");
    cr_assert_eq(ivm_view_drop(view, &tested.error), IVM_OK);
}

Test(plan_transient, a_join_has_one_such_leaf_which_repeats_its_rows)
{
    refer_all();
    refuses(three("f", "d", "g", "f.d = d.id, g.d = d.id"), "table f", "beside it the rows of g");
    refuses(id_of(ivm_plan_join(scan_of("f", NULL), scan_of("f", "again"), "f.d = again.d")), "table f", "beside it the rows of f");
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("f", NULL), "f.d, f.n"), scan_of("g", NULL) };
    ivm_plan *both = ivm_plan_join(ivm_plan_set(IVM_UNION_ALL, inputs, 2), scan_of("d", "p"), "d = p.id");
    refuses(ivm_plan_project(both, "p.name"), "table f", "more to them than filter and project");
    ivm_plan *some = ivm_plan_distinct(ivm_plan_project(scan_of("g", NULL), "g.d"));
    refuses(ivm_plan_project(ivm_plan_join(some, scan_of("d", "p"), "d = p.id"), "p.name"), "table g",
            "more to them than filter and project");
    ivm_plan *best = ivm_plan_order_by(ivm_plan_top_k(scan_of("g", NULL), 3, 0), ivm_column("g.n"), false, false);
    refuses(ivm_plan_project(ivm_plan_join(best, scan_of("d", "p"), "g.d = p.id"), "p.name"), "table g",
            "more to them than filter and project");
}

Test(plan_transient, outer_semi_and_anti_joins_are_refused_wherever_they_stand)
{
    static const ivm_join_kind kinds[] = { IVM_LEFT_JOIN, IVM_RIGHT_JOIN, IVM_FULL_JOIN, IVM_SEMI_JOIN, IVM_ANTI_JOIN };
    refer_all();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ivm_plan *left = ivm_plan_join_kind(kinds[i], scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id");
        refuses(id_of(left), "table f", "an outer, semi or anti join reads them");
        ivm_plan *right = ivm_plan_join_kind(kinds[i], scan_of("d", NULL), scan_of("f", NULL), "f.d = d.id");
        refuses(counted(right, "d.id"), "table f", "an outer, semi or anti join reads them");
    }
    ivm_plan *inner = joined("d", "f.d = d.id");
    refuses(ivm_plan_join_kind(IVM_ANTI_JOIN, scan_of("e", NULL), inner, "e.id = id"), "table f", "an outer, semi or anti join reads them");
}

Test(plan_transient, deferred_views_are_refused)
{
    refuses_as(scan_of("f", NULL), IVM_DEFERRED, "table f", "deferred");
    refuses_as(counted(scan_of("g", NULL), "g.d"), IVM_DEFERRED, "table g", "deferred");
    ivm_view *view = fixture_make(&tested, "totals", counted(scan_of("g", NULL), "g.d")), *late = NULL;
    cr_assert_eq(make_of(scan_of("totals", NULL), IVM_DEFERRED, &late), IVM_OK, "what a view keeps may be read later");
    cr_assert_eq(ivm_view_drop(late, NULL), IVM_OK);
    cr_assert_eq(ivm_view_drop(view, NULL), IVM_OK);
}

Test(plan_transient, views_are_made_before_a_push_changes_the_table)
{
    refer_all();
    ivm_view *view = fixture_make(&tested, "w", joined("d", "f.d = d.id"));
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    ivm_batch_insert(batch, other, ivm_int64(1), ivm_int64(2));
    ivm_batch_delete(batch, other, ivm_int64(1), ivm_int64(2));
    cr_assert_eq(ivm_push_batch(tested.engine, batch, NULL, &tested.error), IVM_OK);
    takes(counted(scan_of("g", NULL), "g.d"));
    cr_assert_eq(fixture_push(&tested, dim, IVM_INSERT, "1,a,1,null"), IVM_OK);
    cr_assert_eq(fixture_push(&tested, lost, IVM_INSERT, "5,1,1,1"), IVM_OK);
    refuses(counted(scan_of("f", NULL), "f.d"), "table f", "some have come and gone before the view");
    refuses(joined("d", "f.d = d.id"), "table f", "some have come and gone before the view");
    takes(counted(scan_of("g", NULL), "g.d"));
    takes(scan_of("w", NULL));
    cr_assert_str_eq(fixture_view(&tested, view), "1*5");
    ivm_fact *fact = NULL;
    cr_assert_eq(ivm_foreign_key_declare(lost, "id", loose, "id", IVM_ENFORCED, &fact, &tested.error), IVM_UNSUPPORTED);
    cr_assert(strstr(tested.error.message, "f"), "%s", tested.error.message);
    cr_assert_eq(ivm_foreign_key_declare(lost, "id", loose, "id", IVM_RELY, &fact, &tested.error), IVM_OK);
}

Test(plan_transient, names_and_overflows_of_the_plan_come_first)
{
    ivm_view *view = NULL;
    ivm_plan *twins = ivm_plan_project(ivm_plan_join(scan_of("f", NULL), scan_of("e", NULL), "f.e = e.id"), "f.id, e.id");
    cr_assert_eq(make_of(twins, IVM_IMMEDIATE, &view), IVM_AMBIGUOUS_COLUMN);
    cr_assert_eq(fixture_push(&tested, far, IVM_INSERT, "9223372036854775807,x"), IVM_OK);
    ivm_plan *over = ivm_plan_compute(ivm_plan_project(scan_of("s", NULL), NULL), "more", call_of("+", "s.id", 1));
    cr_assert_eq(make_of(id_of(ivm_plan_join(scan_of("f", NULL), over, "f.d = more")), IVM_IMMEDIATE, &view), IVM_OVERFLOW);
}

/* ---- Made ------------------------------------------------------------------------------------------------------------------------------ */

Test(plan_transient, what_keeps_what_it_needs_reads_it)
{
    refer_all();
    takes(scan_of("f", NULL));
    takes(ivm_plan_filter(scan_of("f", NULL), call_of(">", "f.n", 1)));
    takes(counted(scan_of("f", NULL), "f.d"));
    takes(ivm_plan_distinct(ivm_plan_project(scan_of("f", NULL), "f.d")));
    takes(ivm_plan_order_by(ivm_plan_top_k(scan_of("f", NULL), 3, 0), ivm_column("f.n"), false, false));
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("f", NULL), "f.d, f.n"), scan_of("g", NULL) };
    takes(ivm_plan_set(IVM_EXCEPT_ALL, inputs, 2));
    ivm_plan *totals = counted(scan_of("f", NULL), "f.d");
    takes(ivm_plan_project(ivm_plan_join(totals, scan_of("e", NULL), "d = e.id"), "e.name, n"));
    totals = counted(scan_of("f", NULL), "f.d");
    takes(ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("e", NULL), totals, "e.id = d"));
    ivm_plan *leaf = ivm_plan_project(ivm_plan_filter(scan_of("f", NULL), call_of(">", "f.n", 1)), "f.id, f.d");
    takes(ivm_plan_project(ivm_plan_join(leaf, ivm_plan_filter(scan_of("d", "p"), call_of("<>", "p.s", 1)), "d = p.id"), "p.name"));
}

Test(plan_transient, hops_lead_from_row_to_parents_and_pin_their_facts)
{
    ivm_fact *first = refer(lost, "d", dim, "id", IVM_RELY), *role = refer(lost, "n", dim, "id", IVM_RELY);
    ivm_fact *up = refer(dim, "up", dim, "id", IVM_RELY), *away = refer(dim, "s", far, "id", IVM_RELY);
    ivm_fact *idle = refer(lost, "e", loose, "id", IVM_RELY);
    ivm_plan *inputs[] = { scan_of("s", NULL), scan_of("d", "p"), scan_of("d", "b"),
                           scan_of("f", NULL), scan_of("d", "a"), scan_of("d", "c") };
    ivm_view *view = NULL;
    cr_assert_eq(
        make_of(id_of(ivm_plan_join_many(inputs, 6, "f.d = a.id, f.n = b.id, a.up = p.id, p.s = s.id, f.d = c.id")), IVM_IMMEDIATE, &view),
        IVM_OK, "%s", tested.error.message);
    const ivm__hops *hops = view->hops;
    cr_assert_not_null(hops);
    cr_assert_null(hops->next);
    cr_assert_eq(hops->table, lost);
    cr_assert(!hops->waits && !lost->hops);
    cr_assert_eq(hops->count, 4, "a and c are one row");
    for (uint32_t h = 0; h < hops->count; h++) {
        const ivm_fact *fact = hops->hop[h].fact;
        if (fact->child == lost) {
            cr_assert_eq(hops->hop[h].from, IVM__HOP_ROW);
        } else {
            cr_assert_eq(hops->hop[hops->hop[h].from].fact, fact == up ? first : up);
        }
    }
    cr_assert(first->pins == 1 && role->pins == 1 && up->pins == 1 && away->pins == 1 && idle->pins == 0);
    cr_assert_eq(ivm_foreign_key_remove(away, &tested.error), IVM_IN_USE);
    cr_assert_not_null(strstr(tested.error.message, "view v rests on the foreign key of d to s"), "%s", tested.error.message);
    cr_assert_eq(ivm_view_drop(view, NULL), IVM_OK);
    cr_assert(first->pins == 0 && role->pins == 0 && up->pins == 0 && away->pins == 0);
}

Test(plan_transient, parents_that_refer_to_each_other_are_reached)
{
    refer_all();
    refer(dim, "up", dim, "id", IVM_RELY);
    ivm_plan *inputs[] = { scan_of("f", NULL), scan_of("d", "a"), scan_of("d", "b") };
    takes(id_of(ivm_plan_join_many(inputs, 3, "f.d = a.id, a.up = b.id, b.up = a.id")));
    ivm_plan *apart[] = { scan_of("f", NULL), scan_of("d", "a"), scan_of("d", "b") };
    refuses(id_of(ivm_plan_join_many(apart, 3, "f.n = a.id, a.up = b.id, b.up = a.id")), "table f", "leads from it to d");
}

static ivm_plan *snowflake(void)
{
    return three("s", "f", "d", "f.d = d.id, d.s = s.id");
}

Test(plan_transient, a_refused_view_holds_nothing)
{
    int64_t blocks = 0;
    refuses(snowflake(), "table f", "no foreign key");
    blocks = tested.allocator.blocks; /* arenas keep their first block */
    for (int times = 0; times < 3; times++) {
        refuses(snowflake(), "table f", "no foreign key");
        cr_assert_eq(tested.allocator.blocks, blocks);
    }
}

Test(plan_transient, out_of_memory_while_a_view_is_made_leaves_nothing)
{
    refer_all();
    takes(snowflake());
    int64_t blocks = tested.allocator.blocks;
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm_view *view = NULL;
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = make_of(snowflake(), IVM_IMMEDIATE, &view);
        done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "call %lu: %s", (unsigned long)n, tested.error.message);
        for (const ivm_fact *fact = tested.engine->facts; fact; fact = fact->next) {
            cr_assert_eq(fact->pins, done && fact->parent != loose && fact->child != other ? 1 : 0);
        }
        if (!done) {
            cr_assert_leq(tested.allocator.blocks, blocks, "call %lu", (unsigned long)n);
        }
    }
}

/* ---- Judging ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status push_weighted(ivm_table *table, int64_t n, int64_t weight)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    ivm_value values[] = { ivm_int64(1), ivm_int64(n) };
    cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, weight, values, 2), IVM_OK);
    return ivm_push_batch(tested.engine, batch, NULL, &tested.error);
}

Test(plan_transient, weights_that_only_the_rows_could_judge_are_an_overflow)
{
    ivm_view *view = fixture_make(&tested, "w", ivm_plan_distinct(ivm_plan_project(scan_of("g", NULL), "g.n")));
    cr_assert_eq(push_weighted(other, 1, INT64_MAX - 1), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(push_weighted(other, 2, 1), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(push_weighted(other, 2, 1), IVM_OVERFLOW);
    cr_assert(strstr(tested.error.message, "view w") && strstr(tested.error.message, "table g"), "%s", tested.error.message);
    cr_assert_str_eq(fixture_view(&tested, view), "1*1 1*2");
    cr_assert_eq(push_weighted(other, 1, -5), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(push_weighted(other, 2, 5), IVM_OK, "%s", tested.error.message);
}
