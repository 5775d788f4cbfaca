/* Checking plans: every code with a message that names what is wrong, and the trees of plans that are right. */
#include "build.h"
#include "check_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

TestSuite(plan_check, .init = check_open, .fini = check_close);

/* ---- Refused ---------------------------------------------------------------------------------------------------------------------- */

Test(plan_check, unknown_table)
{
    fixture_refuses(&it, scan_of("missing", "m"), IVM_UNKNOWN_TABLE, "missing");
}

Test(plan_check, a_dropped_table_is_unknown_to_a_plan_that_had_its_handle)
{
    ivm_table *gone = fixture_table(&it, "gone", "id int64", NULL);
    ivm_plan *plan = ivm_plan_scan(gone, NULL);
    cr_assert_eq(ivm_table_drop(gone, &it.error), IVM_OK);
    fixture_table(&it, "gone", "id int64", NULL);
    fixture_refuses(&it, plan, IVM_UNKNOWN_TABLE, "gone");
}

Test(plan_check, unknown_columns_are_named)
{
    fixture_refuses(&it, ivm_plan_project(scan_of("t", NULL), "nme"), IVM_UNKNOWN_COLUMN, "nme");
    fixture_refuses(&it, ivm_plan_project(scan_of("t", "a"), "t.id"), IVM_UNKNOWN_COLUMN, "t.id");
    fixture_refuses(&it, ivm_plan_filter(scan_of("t", NULL), call_of("=", "idd", 1)), IVM_UNKNOWN_COLUMN, "idd");
    fixture_refuses(&it, t_and_u("u.t = t.ident"), IVM_UNKNOWN_COLUMN, "t.ident");
    fixture_refuses(&it, ivm_plan_aggregate(scan_of("t", NULL), "nam"), IVM_UNKNOWN_COLUMN, "nam");
    ivm_plan *counted = ivm_plan_aggregate(scan_of("t", NULL), "name");
    fixture_refuses(&it, ivm_plan_add(counted, "n", "sum", ivm_column("x")), IVM_UNKNOWN_COLUMN, "x");
    fixture_refuses(&it, ivm_plan_join_where(t_and_u("u.t = t.id"), call_of("=", "v.id", 1)), IVM_UNKNOWN_COLUMN, "v.id");
}

Test(plan_check, ambiguous_columns_are_named)
{
    fixture_refuses(&it, ivm_plan_project(t_and_u("u.t = t.id"), "id"), IVM_AMBIGUOUS_COLUMN, "id");
    fixture_refuses(&it, t_and_u("id = u.t"), IVM_AMBIGUOUS_COLUMN, "id");
    fixture_refuses(&it, ivm_plan_project(scan_of("u", NULL), "id, t, u.id"), IVM_AMBIGUOUS_COLUMN, "id");
    ivm_plan *twice = ivm_plan_join(scan_of("t", NULL), scan_of("t", NULL), "t.id = t.id");
    fixture_refuses(&it, twice, IVM_AMBIGUOUS_COLUMN, "t.id");
    ivm_plan *counted = ivm_plan_aggregate(scan_of("t", NULL), "name");
    fixture_refuses(&it, ivm_plan_count(counted, "name"), IVM_AMBIGUOUS_COLUMN, "name");
}

Test(plan_check, an_alias_used_in_two_nested_joins_is_ambiguous)
{
    ivm_plan *left = ivm_plan_join(scan_of("t", "a"), scan_of("u", "b"), "a.id = b.t");
    fixture_refuses(&it, ivm_plan_join(left, scan_of("t", "a"), "b.id = a.id"), IVM_AMBIGUOUS_COLUMN, "a.id");
}

Test(plan_check, types_that_cannot_be_compared_are_told_with_both_columns)
{
    fixture_refuses(&it, t_and_u("t.name = u.id"), IVM_TYPE_MISMATCH, "t.name is string, u.id is int64");
    fixture_refuses(&it, t_and_u("u.ok = t.id"), IVM_TYPE_MISMATCH, "u.ok is bool, t.id is int64");
}

Test(plan_check, conditions_are_bools)
{
    fixture_refuses(&it, ivm_plan_filter(scan_of("t", NULL), ivm_column("id")), IVM_TYPE_MISMATCH, "id is int64");
    fixture_refuses(&it, ivm_plan_join_where(t_and_u(NULL), ivm_column("t.name")), IVM_TYPE_MISMATCH, "t.name is string");
    ivm_plan *counted = ivm_plan_aggregate(scan_of("t", NULL), "name");
    counted = ivm_plan_count(counted, "n");
    fixture_refuses(&it, ivm_plan_having(counted, ivm_column("n")), IVM_TYPE_MISMATCH, "n is int64");
    counted = ivm_plan_aggregate(scan_of("u", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add_where(ivm_plan_count(counted, "n"), ivm_column("t")), IVM_TYPE_MISMATCH, "t is int64");
}

Test(plan_check, sums_are_of_numbers)
{
    ivm_plan *sum = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add(sum, "total", "sum", ivm_column("name")), IVM_TYPE_MISMATCH, "total: sum wants a number, not string");
    sum = ivm_plan_aggregate(scan_of("u", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add(sum, "mean", "avg", ivm_column("ok")), IVM_TYPE_MISMATCH, "mean: avg wants a number, not bool");
}

Test(plan_check, aggregates_that_are_none)
{
    ivm_plan *plan = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add(plan, "m", "median", ivm_column("id")), IVM_INVALID_PLAN, "median");
    plan = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm__plan_add_rows(plan, "s", "sum"), IVM_INVALID_PLAN, "sum wants an argument");
    plan = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm__plan_add_rows(plan, "m", "median"), IVM_INVALID_PLAN, "median");
    plan = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add(plan, "v", "var_pop", ivm_column("name")), IVM_TYPE_MISMATCH,
                    "v: var_pop wants a number, not string");
    plan = ivm_plan_aggregate(scan_of("t", NULL), NULL);
    fixture_refuses(&it, ivm_plan_add(plan, "a", "bool_and", ivm_column("id")), IVM_TYPE_MISMATCH, "a: bool_and wants a bool, not int64");
    fixture_refuses(&it, ivm_plan_aggregate(scan_of("t", NULL), NULL), IVM_INVALID_PLAN, "a group or an aggregate");
}

Test(plan_check, joins_of_too_few_and_too_many)
{
    ivm_plan *one[] = { scan_of("t", NULL) };
    fixture_refuses(&it, ivm_plan_join_many(one, 1, NULL), IVM_INVALID_PLAN, "two inputs");
    ivm_plan *many[IVM_JOIN_LEAVES_MAX + 1];
    for (size_t i = 0; i < IVM_JOIN_LEAVES_MAX + 1; i++) {
        char alias[16];
        snprintf(alias, sizeof alias, "a%zu", i);
        many[i] = scan_of("t", alias);
    }
    fixture_refuses(&it, ivm_plan_join_many(many, IVM_JOIN_LEAVES_MAX + 1, NULL), IVM_UNSUPPORTED, "64 leaves");
}

Test(plan_check, pairs_of_one_input_are_named)
{
    fixture_refuses(&it, t_and_u("u.t = u.id"), IVM_INVALID_PLAN, "u.t and u.id");
    fixture_refuses(&it, t_and_u("t.id = t.id"), IVM_INVALID_PLAN, "t.id and t.id");
    /* two leaves, but of one nested join */
    fixture_refuses(&it, ivm_plan_join(t_and_u(NULL), scan_of("n", NULL), "u.t = t.id"), IVM_INVALID_PLAN, "u.t and t.id");
    fixture_refuses(&it, ivm_plan_join(scan_of("n", NULL), t_and_u(NULL), "t.id = n.i, u.t = t.id"), IVM_INVALID_PLAN, "u.t and t.id");
}

Test(plan_check, on_of_a_nested_join_sees_its_own_inputs_alone)
{
    ivm_plan *plan = ivm_plan_join(scan_of("n", NULL), t_and_u("u.t = n.i"), NULL);
    fixture_refuses(&it, plan, IVM_UNKNOWN_COLUMN, "n.i");
    plan = ivm_plan_join(scan_of("n", NULL), ivm_plan_join_where(t_and_u(NULL), call_of("=", "i", 1)), NULL);
    fixture_refuses(&it, plan, IVM_UNKNOWN_COLUMN, "i");
}

/* ---- Accepted: names and types ------------------------------------------------------------------------------------------------------- */

Test(plan_check, names_and_types_of_a_scan_and_a_project)
{
    ivm__node *node = fixture_accepts(&it, scan_of("u", "x"));
    column_is(node, 0, "x.id", IVM_INT64);
    column_is(node, 2, "x.ok", IVM_BOOL);
    ivm__node_free(node, it.engine);
    ivm_plan *plan = ivm_plan_project(scan_of("u", "x"), "x.ok, id");
    plan = ivm_plan_compute(plan, "next", call_of("+", "id", 1));
    plan = ivm_plan_compute(plan, "nothing", ivm_literal(ivm_null()));
    plan = ivm_plan_compute(plan, "sum of nothing", ivm_call2("+", ivm_literal(ivm_null()), ivm_literal(ivm_null())));
    node = fixture_accepts(&it, ivm_plan_filter(plan, ivm_column("ok")));
    cr_assert_eq(node->columns_count, 5u);
    column_is(node, 0, "ok", IVM_BOOL);
    column_is(node, 1, "id", IVM_INT64);
    column_is(node, 2, "next", IVM_INT64);
    column_is(node, 3, "nothing", IVM_INT64);
    column_is(node, 4, "sum of nothing", IVM_INT64);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(node->inputs[0]->expressions[i]->type, node->columns[i].type);
    }
    ivm__node_free(node, it.engine);
}

Test(plan_check, types_of_aggregates)
{
    ivm_plan *plan = ivm_plan_aggregate(scan_of("n", NULL), "n.s");
    plan = ivm_plan_group(plan, "half", ivm_call2("/", ivm_column("i"), ivm_literal(ivm_int64(2))));
    static const struct {
        const char *function, *argument;
        ivm_type type;
    } calls[] = {
        { "count", NULL, IVM_INT64 },
        { "count", "s", IVM_INT64 },
        { "sum", "i", IVM_INT64 },
        { "sum", "f", IVM_FLOAT64 },
        { "sum", "d", IVM_DECIMAL(38, 2) },
        { "avg", "d", IVM_FLOAT64 },
        { "avg", "i", IVM_FLOAT64 },
        { "min", "s", IVM_STRING },
        { "max", "d", IVM_DECIMAL(10, 2) },
        { "count_distinct", "s", IVM_INT64 },
        { "sum_distinct", "d", IVM_DECIMAL(38, 2) },
        { "sum_distinct", "f", IVM_FLOAT64 },
        { "var_pop", "d", IVM_FLOAT64 },
        { "var_samp", "i", IVM_FLOAT64 },
        { "stddev_pop", "f", IVM_FLOAT64 },
        { "stddev_samp", "i", IVM_FLOAT64 },
    };
    const uint32_t count = sizeof calls / sizeof *calls;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%zu", i);
        plan = calls[i].argument ? ivm_plan_add(plan, name, calls[i].function, ivm_column(calls[i].argument)) : ivm_plan_count(plan, name);
    }
    plan = ivm_plan_add(plan, "both", "bool_and", ivm_call1("is_null", ivm_column("s")));
    plan = ivm_plan_add(plan, "any", "bool_or", ivm_literal(ivm_null()));
    plan = ivm_plan_add_where(ivm_plan_add(plan, "none", "sum", ivm_literal(ivm_null())), ivm_literal(ivm_null()));
    ivm__node *node = fixture_accepts(&it, ivm_plan_having(plan, call_of(">", "c0", 1)));
    cr_assert_eq(node->groups_count, 2u);
    column_is(node, 0, "s", IVM_STRING);
    column_is(node, 1, "half", IVM_FLOAT64);
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", i);
        column_is(node, 2 + i, name, calls[i].type);
    }
    column_is(node, 2 + count, "both", IVM_BOOL);
    column_is(node, 2 + count + 1, "any", IVM_BOOL);
    column_is(node, 2 + count + 2, "none", IVM_INT64);
    cr_assert_eq(node->aggregates[count + 1].argument->type, (ivm_type)IVM_BOOL);
    cr_assert_eq(node->aggregates[count + 2].argument->type, (ivm_type)IVM_INT64);
    cr_assert_eq(node->aggregates[count + 2].where->type, (ivm_type)IVM_BOOL);
    cr_assert_eq(node->expressions_count, 1u);
    ivm__node_free(node, it.engine);
}

/* ---- Accepted: joins ---------------------------------------------------------------------------------------------------------------- */

static void equality_is(const ivm__node *join, uint32_t at, const char *a, const char *b)
{
    cr_assert_lt(at, join->equalities_count);
    cr_assert_str_eq(join->columns[join->equalities[at].a].name, a);
    cr_assert_str_eq(join->columns[join->equalities[at].b].name, b);
}

static ivm_expr *range_of(const char *column)
{
    return call_of("<", column, 100);
}

Test(plan_check, nested_joins_are_one_in_reading_order)
{
    ivm_plan *left = ivm_plan_join_where(ivm_plan_join(scan_of("t", "a"), scan_of("u", "b"), "a.id = t"), range_of("a.id"));
    ivm_plan *right = ivm_plan_join(scan_of("u", "c"), scan_of("t", "d"), "d.id = t");
    ivm_plan *outer = ivm_plan_join_where(ivm_plan_join(left, right, "b.id = c.id"), range_of("d.id"));
    ivm__node *node = fixture_accepts(&it, outer);
    cr_assert_eq(node->op, IVM__PLAN_JOIN);
    cr_assert_eq(node->inputs_count, 4u);
    static const char *const firsts[] = { "a.id", "b.id", "c.id", "d.id" };
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(node->inputs[i]->op, IVM__PLAN_SCAN);
        cr_assert_str_eq(node->inputs[i]->columns[0].name, firsts[i]);
    }
    cr_assert_eq(node->columns_count, 10u);
    cr_assert_eq(node->equalities_count, 3u);
    equality_is(node, 0, "a.id", "b.t");
    equality_is(node, 1, "d.id", "c.t");
    equality_is(node, 2, "b.id", "c.id");
    /* one residual, the inner condition first: columns a.id and d.id */
    cr_assert_eq(node->expressions_count, 1u);
    const ivm__expression *residual = node->expressions[0];
    cr_assert_eq(residual->function, IVM__CASE);
    cr_assert_eq(residual->arguments[0]->arguments[0]->column, 0u);
    cr_assert_eq(residual->arguments[1]->arguments[0]->column, 8u);
    cr_assert_eq(residual->arguments[2]->function, IVM__LITERAL);
    ivm__node_free(node, it.engine);
}

Test(plan_check, the_condition_of_a_nested_join_counts_from_its_own_first_column)
{
    ivm_plan *inner = ivm_plan_join_where(ivm_plan_join(scan_of("u", "b"), scan_of("t", "c"), NULL), range_of("c.id"));
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(scan_of("t", "a"), inner, NULL));
    cr_assert_eq(node->expressions[0]->arguments[0]->column, 5u);
    ivm__node_free(node, it.engine);
}

Test(plan_check, a_filter_between_joins_keeps_them_apart)
{
    ivm_plan *inner = ivm_plan_filter(t_and_u("u.t = t.id"), ivm_column("ok"));
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(inner, scan_of("n", NULL), "i = t.id"));
    cr_assert_eq(node->op, IVM__PLAN_JOIN);
    cr_assert_eq(node->inputs_count, 2u);
    cr_assert_eq(node->inputs[0]->op, IVM__PLAN_FILTER);
    cr_assert_eq(node->inputs[0]->inputs[0]->op, IVM__PLAN_JOIN);
    cr_assert_eq(node->equalities_count, 1u);
    ivm__node_free(node, it.engine);
}

/* ---- Accepted: equalities of unlike types --------------------------------------------------------------------------------------------- */

static const ivm__node *join_below(const ivm__node *project)
{
    cr_assert_eq(project->op, IVM__PLAN_PROJECT);
    cr_assert_eq(project->inputs[0]->op, IVM__PLAN_JOIN);
    const ivm__node *join = project->inputs[0];
    for (uint32_t i = 0; i < join->equalities_count; i++) {
        cr_assert_eq(join->columns[join->equalities[i].a].type, join->columns[join->equalities[i].b].type);
    }
    for (uint32_t i = 0; i < project->columns_count; i++) {
        cr_assert_eq(project->expressions[i]->function, IVM__COLUMN);
        cr_assert_str_eq(project->columns[i].name, join->columns[project->expressions[i]->column].name);
    }
    return join;
}

Test(plan_check, int64_and_float64_meet_as_float64)
{
    ivm_plan *plan = ivm_plan_join_where(ivm_plan_join(scan_of("t", NULL), scan_of("n", NULL), "t.id = n.f"), range_of("n.i"));
    ivm__node *node = fixture_accepts(&it, plan);
    cr_assert_eq(node->columns_count, 8u);
    const ivm__node *join = join_below(node);
    equality_is(join, 0, "cast(t.id, float64)", "n.f");
    cr_assert_eq(join->inputs[0]->op, IVM__PLAN_PROJECT);
    cr_assert_eq(join->inputs[1]->op, IVM__PLAN_SCAN);
    cr_assert_eq(join->inputs[0]->expressions[2]->function, IVM__CAST);
    cr_assert_eq(join->expressions[0]->arguments[0]->column, 3u); /* n.i, behind the computed column */
    needed_is(join->inputs[0], "111");
    ivm__node_free(node, it.engine);
}

Test(plan_check, a_decimal_that_always_fits_is_cast_alone)
{
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(scan_of("n", "a"), scan_of("n", "b"), "a.d = b.e, a.i = b.d"));
    const ivm__node *join = join_below(node);
    equality_is(join, 0, "cast(a.d, decimal(12,2))", "b.e");
    equality_is(join, 1, "cast(a.i, decimal(21,2))", "cast(b.d, decimal(21,2))");
    cr_assert_eq(join->inputs[0]->expressions[6]->function, IVM__CAST);
    cr_assert_eq(join->inputs[0]->expressions[7]->function, IVM__CAST);
    ivm__node_free(node, it.engine);
}

Test(plan_check, a_decimal_that_may_not_fit_becomes_null)
{
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(scan_of("n", "a"), scan_of("n", "b"), "a.i = b.w, a.e = b.w"));
    const ivm__node *join = join_below(node);
    equality_is(join, 0, "cast(a.i, decimal(38,30))", "b.w");
    for (uint32_t i = 6; i < 8; i++) { /* case when -bound < x < bound then cast(x) else null */
        const ivm__expression *choice = join->inputs[0]->expressions[i];
        cr_assert_eq(choice->function, IVM__CASE);
        const ivm__expression *upper = choice->arguments[0]->arguments[0];
        cr_assert_eq(upper->function, IVM__LESS);
        cr_assert(upper->arguments[1]->cell == (i == 6 ? 100000000 : (ivm__wide)10000000000));
        cr_assert(choice->arguments[2]->is_null);
        cr_assert_eq(choice->arguments[2]->type, IVM_DECIMAL(38, 30));
    }
    ivm__node_free(node, it.engine);
}

Test(plan_check, one_computed_column_serves_many_equalities)
{
    ivm_plan *inner = ivm_plan_join(scan_of("t", "a"), scan_of("n", "b"), "a.id = b.f");
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(inner, scan_of("n", "c"), "a.id = c.f"));
    const ivm__node *join = join_below(node);
    cr_assert_eq(join->inputs_count, 3u); /* still one join */
    cr_assert_eq(join->columns_count, 2u + 1u + 6u + 6u);
    cr_assert_eq(join->equalities[0].a, join->equalities[1].a);
    ivm__node_free(node, it.engine);
}

/* ---- Column pruning ------------------------------------------------------------------------------------------------------------------- */

Test(plan_check, what_is_needed_comes_from_above)
{
    ivm_plan *plan = ivm_plan_join_where(t_and_u("u.t = t.id"), ivm_column("ok"));
    plan = ivm_plan_aggregate(ivm_plan_filter(plan, call_of(">", "u.id", 0)), "name");
    ivm__node *node = fixture_accepts(&it, ivm_plan_count(plan, "n"));
    needed_is(node, "11");
    const ivm__node *filter = node->inputs[0], *join = filter->inputs[0];
    needed_is(filter, "01000");
    needed_is(join, "01100");
    needed_is(join->inputs[0], "11");
    needed_is(join->inputs[1], "111");
    ivm__node_free(node, it.engine);
}

Test(plan_check, a_project_passes_on_what_is_needed_and_all_it_computes_from)
{
    ivm_plan *plan = ivm_plan_project(scan_of("n", NULL), "i, f, s");
    plan = ivm_plan_compute(plan, "double", ivm_call2("+", ivm_column("d"), ivm_column("d")));
    plan =
        ivm_plan_add_where(ivm_plan_add(ivm_plan_aggregate(plan, "s"), "m", "max", ivm_column("f")), ivm_call1("is_null", ivm_column("s")));
    ivm__node *node = fixture_accepts(&it, plan);
    needed_is(node->inputs[0], "0110");
    needed_is(node->inputs[0]->inputs[0], "011001");
    ivm__node_free(node, it.engine);
}

Test(plan_check, equalities_need_both_columns)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(t_and_u("u.t = t.id"), NULL), "n");
    ivm__node *node = fixture_accepts(&it, plan);
    needed_is(node->inputs[0], "00000");
    needed_is(node->inputs[0]->inputs[0], "10");
    needed_is(node->inputs[0]->inputs[1], "010");
    ivm__node_free(node, it.engine);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *rich_plan(void)
{
    ivm_plan *inner = ivm_plan_join_where(ivm_plan_join(scan_of("t", "a"), scan_of("n", "b"), "a.id = b.f, a.name = b.s"), range_of("b.i"));
    ivm_plan *join = ivm_plan_join_where(ivm_plan_join(inner, scan_of("n", "c"), "a.id = c.w, b.d = c.e"), range_of("c.i"));
    ivm_plan *filter = ivm_plan_filter(join, ivm_call2("=", ivm_column("a.name"), ivm_literal(ivm_string("somebody"))));
    ivm_plan *project = ivm_plan_compute(ivm_plan_project(filter, "a.id, b.s"), "none", ivm_literal(ivm_null()));
    project = ivm_plan_compute(project, "never", ivm_call2("*", ivm_literal(ivm_null()), ivm_literal(ivm_null())));
    ivm_plan *plan = ivm_plan_aggregate(project, "s");
    plan = ivm_plan_add_where(ivm_plan_count(plan, "n"), ivm_call1("is_null", ivm_column("none")));
    return ivm_plan_having(ivm_plan_add(plan, "total", "sum", ivm_column("id")), range_of("n"));
}

Test(plan_check, a_failed_allocation_leaves_nothing)
{
    ivm_plan *plan = rich_plan();
    cr_assert_not_null(plan);
    int64_t blocks = 0;
    uint64_t failures = 0;
    for (uint64_t n = 0, done = 0; !done; n++) { /* the first without a failure: tables of texts grow once */
        ivm__node *node = NULL;
        test_allocator_arm(&it.allocator, n ? n : UINT32_MAX);
        ivm_status status = ivm__plan_check(it.engine, plan, &node, &it.error);
        bool failed = test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)n, it.error.message);
        ivm__node_free(node, it.engine);
        ivm__engine_settle(it.engine); /* texts of literals */
        blocks = n ? blocks : it.allocator.blocks;
        cr_assert_eq(it.allocator.blocks, blocks, "allocation %lu", (unsigned long)n);
        failures += failed;
        done = n > 0 && !failed;
    }
    cr_assert_geq(failures, 100u);
    ivm_plan_free(plan);
}
