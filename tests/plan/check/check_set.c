/* Checking outer joins, sets and top_k: what is refused, and the trees of those that are right. */
#include "check_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(plan_check_set, .init = check_open, .fini = check_close);

/* ---- Refused ---------------------------------------------------------------------------------------------------------------------- */

Test(plan_check_set, outer_joins_are_refused_as_inner_ones_are)
{
    for (int kind = IVM_LEFT_JOIN; kind <= IVM_ANTI_JOIN; kind++) {
        ivm_join_kind of = (ivm_join_kind)kind;
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("u", NULL), "t.id = u.tt"), IVM_UNKNOWN_COLUMN, "u.tt");
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("u", NULL), "id = u.t"), IVM_AMBIGUOUS_COLUMN, "id");
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("t", NULL), NULL), IVM_AMBIGUOUS_COLUMN, "t.id");
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("u", NULL), "t.name = u.id"), IVM_TYPE_MISMATCH,
                        "t.name is string");
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("u", NULL), "u.t = u.id"), IVM_INVALID_PLAN,
                        "of one input");
        ivm_plan *plan = ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("u", NULL), "t.id = u.t");
        fixture_refuses(&it, ivm_plan_join_where(plan, ivm_column("t.name")), IVM_TYPE_MISMATCH, "t.name is string");
        fixture_refuses(&it, ivm_plan_join_kind(of, scan_of("t", NULL), scan_of("nobody", NULL), NULL), IVM_UNKNOWN_TABLE, "nobody");
    }
    ivm_plan *semi = ivm_plan_join_kind(IVM_SEMI_JOIN, scan_of("t", NULL), scan_of("u", NULL), "t.id = u.t");
    fixture_refuses(&it, ivm_plan_project(semi, "u.id"), IVM_UNKNOWN_COLUMN, "u.id");
}

static ivm_plan *set_of(ivm_set_operation operation, ivm_plan *a, ivm_plan *b)
{
    return ivm_plan_set(operation, (ivm_plan *[]){ a, b }, 2);
}

Test(plan_check_set, sets_are_of_equal_column_types)
{
    for (int operation = IVM_UNION_ALL; operation <= IVM_INTERSECT; operation++) {
        ivm_set_operation of = (ivm_set_operation)operation;
        fixture_refuses(&it, set_of(of, scan_of("t", NULL), scan_of("u", NULL)), IVM_TYPE_MISMATCH, "2 columns and 3");
        fixture_refuses(&it, set_of(of, ivm_plan_project(scan_of("n", NULL), "d"), ivm_plan_project(scan_of("n", NULL), "e")),
                        IVM_TYPE_MISMATCH, "d is decimal(10,2), e is decimal(12,2)");
        fixture_refuses(&it, set_of(of, scan_of("t", NULL), scan_of("nobody", NULL)), IVM_UNKNOWN_TABLE, "nobody");
    }
    ivm_plan *twice = set_of(IVM_UNION, t_and_u("t.id = u.t"), t_and_u("t.id = u.t"));
    fixture_refuses(&it, ivm_plan_project(twice, "id"), IVM_AMBIGUOUS_COLUMN, "id");
    ivm_plan *bare = set_of(IVM_UNION, scan_of("t", NULL), scan_of("t", NULL));
    fixture_refuses(&it, ivm_plan_project(bare, "t.id"), IVM_UNKNOWN_COLUMN, "t.id");
    fixture_refuses(&it, ivm_plan_distinct(scan_of("nobody", NULL)), IVM_UNKNOWN_TABLE, "nobody");
}

Test(plan_check_set, top_k_of_columns_that_are_none)
{
    fixture_refuses(&it, ivm_plan_order_by(ivm_plan_top_k(scan_of("t", NULL), 1, 0), ivm_column("x"), false, false), IVM_UNKNOWN_COLUMN,
                    "x");
    fixture_refuses(&it, ivm_plan_partition_by(ivm_plan_top_k(scan_of("t", NULL), 1, 0), ivm_column("y")), IVM_UNKNOWN_COLUMN, "y");
    ivm_expr *sum = ivm_call2("+", ivm_column("name"), ivm_literal(ivm_int64(1)));
    fixture_refuses(&it, ivm_plan_order_by(ivm_plan_top_k(scan_of("t", NULL), 1, 0), sum, false, false), IVM_TYPE_MISMATCH, "+");
    fixture_refuses(&it, ivm_plan_top_k(scan_of("nobody", NULL), 1, 0), IVM_UNKNOWN_TABLE, "nobody");
}

/* ---- Accepted --------------------------------------------------------------------------------------------------- */

Test(plan_check_set, outer_joins_give_both_inputs_columns_and_semi_joins_the_left_ones)
{
    for (int kind = IVM_LEFT_JOIN; kind <= IVM_ANTI_JOIN; kind++) {
        ivm_plan *plan = ivm_plan_join_kind((ivm_join_kind)kind, scan_of("t", NULL), scan_of("u", NULL), "u.t = t.id");
        ivm__node *node = fixture_accepts(&it, ivm_plan_join_where(plan, ivm_column("ok")));
        cr_assert_eq(node->op, IVM__PLAN_OUTER);
        cr_assert_eq(node->kind, (ivm_join_kind)kind);
        cr_assert_eq(node->columns_count, kind == IVM_SEMI_JOIN || kind == IVM_ANTI_JOIN ? 2u : 5u);
        cr_assert_eq(node->equalities_count, 1u);
        cr_assert_eq(node->equalities[0].a, 3u);
        cr_assert_eq(node->equalities[0].b, 0u);
        cr_assert_eq(node->expressions_count, 1u);
        needed_is(node->inputs[1], node->columns_count == 5 ? "111" : "011");
        ivm__node_free(node, it.engine);
    }
}

Test(plan_check_set, outer_joins_need_keys_conditions_and_what_is_read_above)
{
    ivm_plan *plan = ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("n", NULL), scan_of("u", NULL), "n.i = u.t");
    plan = ivm_plan_join_where(plan, ivm_call1("is_null", ivm_column("f")));
    ivm__node *node = fixture_accepts(&it, ivm_plan_project(plan, "u.id, s"));
    needed_is(node->inputs[0]->inputs[0], "110001");
    needed_is(node->inputs[0]->inputs[1], "110");
    ivm__node_free(node, it.engine);
}

Test(plan_check_set, inner_joins_below_and_above_outer_ones_stay_apart)
{
    ivm_plan *inner = t_and_u("u.t = t.id");
    ivm_plan *outer = ivm_plan_join_kind(IVM_LEFT_JOIN, inner, scan_of("n", NULL), "t.id = n.i");
    ivm__node *node = fixture_accepts(&it, ivm_plan_join(outer, scan_of("t", "t2"), "t2.id = u.id"));
    cr_assert_eq(node->op, IVM__PLAN_JOIN);
    cr_assert_eq(node->inputs_count, 2u);
    cr_assert_eq(node->inputs[0]->op, IVM__PLAN_OUTER);
    cr_assert_eq(node->inputs[0]->inputs[0]->op, IVM__PLAN_JOIN);
    ivm__node_free(node, it.engine);
}

Test(plan_check_set, unlike_types_of_outer_joins_are_made_alike_on_their_own_sides)
{
    for (int kind = IVM_LEFT_JOIN; kind <= IVM_ANTI_JOIN; kind++) {
        bool left = kind == IVM_SEMI_JOIN || kind == IVM_ANTI_JOIN;
        ivm_plan *plan = ivm_plan_join_kind((ivm_join_kind)kind, scan_of("t", NULL), scan_of("n", NULL), "t.id = n.f, t.id = n.d");
        ivm__node *node = fixture_accepts(&it, plan);
        cr_assert_eq(node->op, IVM__PLAN_PROJECT);
        cr_assert(node->hidden);
        cr_assert_eq(node->columns_count, left ? 2u : 8u);
        column_is(node, 1, "t.name", IVM_STRING);
        const ivm__node *outer = node->inputs[0];
        cr_assert_eq(outer->op, IVM__PLAN_OUTER);
        cr_assert_eq(outer->columns_count, left ? 4u : 11u);
        cr_assert_eq(outer->inputs[0]->columns_count, 4u);
        cr_assert(outer->inputs[0]->hidden && outer->inputs[1]->hidden);
        cr_assert_eq(outer->inputs[1]->columns_count, 7u);
        for (uint32_t i = 0; i < 2; i++) {
            ivm__equality pair = outer->equalities[i];
            cr_assert_eq(outer->inputs[0]->columns[pair.a].type, outer->inputs[1]->columns[pair.b - 4].type);
        }
        ivm__node_free(node, it.engine);
    }
}

Test(plan_check_set, sets_name_their_columns_without_alias_and_read_whole_rows)
{
    ivm_plan *plan = set_of(IVM_EXCEPT_ALL, scan_of("t", "a"), scan_of("t", "b"));
    ivm__node *node = fixture_accepts(&it, ivm_plan_project(plan, "name"));
    const ivm__node *set = node->inputs[0];
    cr_assert_eq(set->op, IVM__PLAN_SET);
    cr_assert_eq(set->set, IVM__SET_EXCEPT_ALL);
    column_is(set, 0, "id", IVM_INT64);
    column_is(set, 1, "name", IVM_STRING);
    needed_is(set->inputs[0], "11");
    needed_is(set->inputs[1], "11");
    ivm__node_free(node, it.engine);
    node = fixture_accepts(&it, ivm_plan_project(ivm_plan_distinct(scan_of("t", "a")), "a.name"));
    column_is(node->inputs[0], 0, "a.id", IVM_INT64);
    needed_is(node->inputs[0]->inputs[0], "11");
    ivm__node_free(node, it.engine);
}

Test(plan_check_set, top_k_keeps_its_input_s_columns)
{
    ivm_plan *plan = ivm_plan_partition_by(ivm_plan_top_k(scan_of("n", NULL), 5, 2), ivm_column("s"));
    plan = ivm_plan_order_by(plan, ivm_literal(ivm_null()), false, true);
    plan = ivm_plan_order_by(plan, call_of("+", "i", 1), true, false);
    ivm__node *node = fixture_accepts(&it, ivm_plan_project(plan, "n.f"));
    const ivm__node *top = node->inputs[0];
    cr_assert_eq(top->op, IVM__PLAN_TOP_K);
    cr_assert_eq(top->limit, 5u);
    cr_assert_eq(top->offset, 2u);
    cr_assert_eq(top->groups_count, 1u);
    cr_assert_eq(top->orders_count, 2u);
    cr_assert_eq(top->orders[0].value->type, (ivm_type)IVM_INT64);
    cr_assert(top->orders[0].nulls_first && top->orders[1].descending);
    column_is(top, 1, "n.f", IVM_FLOAT64);
    needed_is(top->inputs[0], "111111");
    ivm__node_free(node, it.engine);
}

Test(plan_check_set, weights_below_zero_go_up_to_where_presence_counts)
{
    ivm_column_definition columns[] = { { "k", IVM_INT64, false }, { "x", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .allow_negative = true };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(it.engine, "s", &options, &table, &it.error), IVM_OK, "%s", it.error.message);
    ivm_plan *left =
        ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("t", NULL), ivm_plan_filter(scan_of("s", NULL), call_of(">", "k", 0)), "id = k");
    ivm__node *node = fixture_accepts(&it, ivm_plan_project(left, "t.name"));
    cr_assert(node->negative && node->inputs[0]->negative && node->inputs[0]->inputs[1]->negative);
    cr_assert_not(node->inputs[0]->inputs[0]->negative);
    needed_is(node->inputs[0]->inputs[1]->inputs[0], "11");
    ivm__node_free(node, it.engine);
    ivm_plan *ends[] = {
        ivm_plan_distinct(scan_of("s", NULL)),
        set_of(IVM_EXCEPT_ALL, scan_of("s", NULL), scan_of("s", NULL)),
        ivm_plan_top_k(scan_of("s", NULL), 1, 0),
        ivm_plan_join_kind(IVM_SEMI_JOIN, scan_of("s", NULL), scan_of("s", "r"), NULL),
        ivm_plan_join_kind(IVM_ANTI_JOIN, scan_of("s", NULL), scan_of("s", "r"), NULL),
        ivm_plan_count(ivm_plan_aggregate(scan_of("s", NULL), "k"), "n"),
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        node = fixture_accepts(&it, ends[i]);
        cr_assert_not(node->negative, "plan %zu", i);
        cr_assert(node->inputs[0]->negative, "plan %zu", i);
        needed_is(node->inputs[0], "11");
        ivm__node_free(node, it.engine);
    }
    node = fixture_accepts(&it, set_of(IVM_UNION_ALL, scan_of("s", NULL), ivm_plan_project(t_and_u(NULL), "t.id, u.t")));
    cr_assert(node->negative);
    ivm__node_free(node, it.engine);
}

Test(plan_check_set, a_failed_allocation_of_all_operators_leaves_nothing)
{
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_plan *outer = ivm_plan_join_kind(IVM_ANTI_JOIN, scan_of("t", NULL), scan_of("n", NULL), "t.id = n.f");
        ivm_plan *plan = set_of(IVM_UNION, outer, ivm_plan_distinct(scan_of("t", NULL)));
        plan = ivm_plan_partition_by(ivm_plan_top_k(plan, 1, 0), call_of("+", "id", 1));
        plan = ivm_plan_order_by(plan, ivm_literal(ivm_null()), false, false);
        plan = ivm_plan_add(ivm_plan_aggregate(plan, "name"), "all", "bool_and", call_of(">", "id", 3));
        int64_t blocks = it.allocator.blocks;
        ivm__node *node = NULL;
        test_allocator_arm(&it.allocator, failures + 1);
        ivm_status status = fixture_check(&it, plan, &node);
        failed = test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, it.error.message);
        ivm__node_free(node, it.engine);
        cr_assert_eq(it.allocator.blocks, blocks, "allocation %lu", (unsigned long)failures);
    }
    cr_assert_geq(failures, 60u);
}
