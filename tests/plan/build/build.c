/* Building plans and expressions: what is kept, that everything given is taken whatever the outcome, and that the first cause is told. */
#include "builder_case.h"

#include "catalog.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(plan_build, .init = builder_count, .fini = builder_assert_nothing);

/* Frees what a builder gave, which must be nothing, and takes the cause. */
static void fails_with(const void *made, ivm_status status, const char *part)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm__builder_cause_take(&error);
    cr_expect_null(made);
    cr_expect_eq(error.status, status, "%s, not %s: %s", ivm_status_name(error.status), ivm_status_name(status), error.message);
    cr_expect_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
    cr_expect_eq(builder_allocator.blocks, 0, "%s: blocks left", part);
}

static ivm_plan *scan(const char *name)
{
    return ivm_plan_scan_name(name, NULL);
}

/* ---- Expressions ---------------------------------------------------------------------------------------------------------------------- */

Test(plan_build, a_call_keeps_its_function_and_arguments_in_order)
{
    ivm_expr *arguments[5];
    char name[] = "c0", function[] = "coalesce";
    for (int i = 0; i < 5; i++) {
        name[1] = (char)('0' + i);
        arguments[i] = ivm_column(name);
    }
    ivm_expr *call = ivm_call(function, arguments, 5);
    memset(arguments, 0, sizeof arguments);
    memset(function, 'x', sizeof function - 1);
    cr_assert_not_null(call);
    cr_expect_eq(call->kind, IVM__EXPR_CALL);
    cr_expect_str_eq(call->text, "coalesce");
    cr_assert_eq(call->arguments_count, (size_t)5);
    cr_expect_str_eq(call->arguments[0]->text, "c0");
    cr_expect_str_eq(call->arguments[4]->text, "c4");
    ivm_expr_free(call);
}

Test(plan_build, a_string_literal_owns_its_bytes_null_bytes_too)
{
    char bytes[] = { 'a', 0, 'b' };
    ivm_expr *literal = ivm_literal(ivm_string_sized(bytes, 3));
    memset(bytes, 'x', 3);
    cr_assert_not_null(literal);
    cr_expect_eq(literal->value.as.string.size, (size_t)3);
    cr_expect_arr_eq(literal->value.as.string.bytes, "a\0b", 3);
    ivm_expr_free(literal);
    literal = ivm_literal(ivm_string(""));
    cr_assert_not_null(literal);
    cr_expect_eq(literal->value.as.string.size, (size_t)0);
    ivm_expr_free(literal);
}

Test(plan_build, literals_of_no_type_are_refused)
{
    fails_with(ivm_literal((ivm_value){ .type = 0 }), IVM_INVALID_ARGUMENT, "ivm_literal");
    fails_with(ivm_literal((ivm_value){ .type = 8 }), IVM_INVALID_ARGUMENT, "ivm_literal");
    fails_with(ivm_literal((ivm_value){ .type = IVM_INT64 | 0x100 }), IVM_INVALID_ARGUMENT, "ivm_literal");
    fails_with(ivm_literal((ivm_value){ .type = IVM_DECIMAL(39, 0), .is_null = true }), IVM_INVALID_ARGUMENT, "ivm_literal");
    fails_with(ivm_literal((ivm_value){ .type = IVM_DECIMAL(4, 5) }), IVM_INVALID_ARGUMENT, "ivm_literal");
    fails_with(ivm_literal((ivm_value){ .type = IVM_STRING, .as.string = { NULL, 3 } }), IVM_INVALID_ARGUMENT, "3 bytes");
    ivm_expr *null = ivm_literal(ivm_null());
    cr_assert_not_null(null);
    cr_expect(null->value.is_null && null->value.type == 0);
    ivm_expr_free(null);
}

Test(plan_build, casts_keep_their_type)
{
    ivm_expr *cast = ivm_cast(ivm_column("a"), IVM_DECIMAL(10, 2));
    cr_assert_not_null(cast);
    cr_expect_eq(cast->kind, IVM__EXPR_CAST);
    cr_expect_eq(cast->type, IVM_DECIMAL(10, 2));
    ivm_expr_free(cast);
    fails_with(ivm_cast(ivm_column("a"), 0), IVM_INVALID_ARGUMENT, "ivm_cast");
    fails_with(ivm_cast(ivm_column("a"), IVM_DECIMAL(0, 0)), IVM_INVALID_ARGUMENT, "ivm_cast");
    fails_with(ivm_cast(NULL, IVM_INT64), IVM_INVALID_ARGUMENT, "ivm_cast");
}

Test(plan_build, null_is_passed_on_and_the_rest_is_freed)
{
    fails_with(ivm_column(NULL), IVM_INVALID_ARGUMENT, "ivm_column");
    fails_with(ivm_call2("+", ivm_column("a"), NULL), IVM_INVALID_ARGUMENT, "argument 2");
    fails_with(ivm_call2("+", NULL, ivm_column("a")), IVM_INVALID_ARGUMENT, "argument 1");
    fails_with(ivm_call(NULL, (ivm_expr *[]){ ivm_column("a") }, 1), IVM_INVALID_ARGUMENT, "function");
    fails_with(ivm_call("+", NULL, 2), IVM_INVALID_ARGUMENT, "no arguments");
}

Test(plan_build, a_tree_too_deep_is_refused_before_it_can_overflow_the_stack)
{
    ivm_expr *deep = ivm_column("a");
    for (uint32_t i = 1; i < IVM_PLAN_DEPTH_MAX; i++) {
        deep = ivm_call1("-", deep);
    }
    cr_assert_not_null(deep);
    fails_with(ivm_call1("-", deep), IVM_INVALID_PLAN, "deep");
    ivm_plan *plan = scan("t");
    for (uint32_t i = 1; i < IVM_PLAN_DEPTH_MAX; i++) {
        plan = ivm_plan_filter(plan, ivm_column("a"));
    }
    cr_assert_not_null(plan);
    fails_with(ivm_plan_join(scan("t"), plan, NULL), IVM_INVALID_PLAN, "deep");
}

/* ---- Causes --------------------------------------------------------------------------------------------------------------------------- */

Test(plan_build, the_first_cause_is_told_once)
{
    ivm_plan *plan = ivm_plan_filter(scan("t"), ivm_call1("not", ivm_column(NULL)));
    plan = ivm_plan_count(ivm_plan_aggregate(plan, "a,,b"), "n");
    fails_with(plan, IVM_INVALID_ARGUMENT, "ivm_column: no name");
    ivm_error error = { IVM_IO, "x" };
    ivm__builder_cause_take(&error);
    cr_expect_eq(error.status, IVM_OK);
}

Test(plan_build, a_cause_is_one_line)
{
    ivm_error error = IVM_ERROR_INIT;
    cr_expect_null(ivm_plan_project(scan("t"), "a,\n\n,b"));
    ivm__builder_cause_take(&error);
    cr_expect_eq(error.status, IVM_INVALID_PLAN);
    cr_expect_null(strchr(error.message, '\n'));
}

Test(plan_build, a_long_cause_is_cut)
{
    char name[600];
    memset(name, 'n', sizeof name - 1);
    name[0] = ',';
    name[sizeof name - 1] = 0;
    ivm_error error = IVM_ERROR_INIT;
    cr_expect_null(ivm_plan_project(scan("t"), name));
    ivm__builder_cause_take(&error);
    cr_expect_eq(strlen(error.message), sizeof error.message - 1);
}

/* ---- Plans ---------------------------------------------------------------------------------------------------------------------------- */

Test(plan_build, a_scan_by_handle_keeps_name_and_id)
{
    ivm_table table = { .name = (char *)(uintptr_t) "sales", .id = 7 };
    ivm_plan *plan = ivm_plan_scan(&table, "f");
    cr_assert_not_null(plan);
    cr_expect_str_eq(plan->table, "sales");
    cr_expect_str_eq(plan->alias, "f");
    cr_expect_eq(plan->table_id, (uint64_t)7);
    ivm_plan_free(plan);
    plan = ivm_plan_scan_name("sales", NULL);
    cr_expect_null(plan->alias);
    cr_expect_eq(plan->table_id, (uint64_t)0);
    ivm_plan_free(plan);
    fails_with(ivm_plan_scan(NULL, "f"), IVM_INVALID_ARGUMENT, "no table");
    fails_with(ivm_plan_scan_name(NULL, "f"), IVM_INVALID_ARGUMENT, "no table");
}

Test(plan_build, lists_of_names_are_trimmed)
{
    ivm_plan *plan = ivm_plan_project(scan("t"), "  f.id ,d.name\n,\tx");
    cr_assert_not_null(plan);
    cr_assert_eq(plan->columns_count, (size_t)3);
    cr_expect_str_eq(plan->columns[0].value->text, "f.id");
    cr_expect_str_eq(plan->columns[1].value->text, "d.name");
    cr_expect_str_eq(plan->columns[2].value->text, "x");
    cr_expect_null(plan->columns[2].name);
    ivm_plan_free(plan);
    plan = ivm_plan_aggregate(scan("t"), "  ");
    cr_assert_not_null(plan);
    cr_expect_eq(plan->columns_count, (size_t)0);
    ivm_plan_free(plan);
}

Test(plan_build, malformed_lists_are_named)
{
    fails_with(ivm_plan_project(scan("t"), "a, ,b"), IVM_INVALID_PLAN, "\"a, ,b\"");
    fails_with(ivm_plan_project(scan("t"), "a,"), IVM_INVALID_PLAN, "\"a,\"");
    fails_with(ivm_plan_aggregate(scan("t"), ",a"), IVM_INVALID_PLAN, "\",a\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = b, c"), IVM_INVALID_PLAN, "\"c\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = b, = c"), IVM_INVALID_PLAN, "\"= c\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = "), IVM_INVALID_PLAN, "\"a =\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a == b"), IVM_INVALID_PLAN, "\"a == b\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = b and c = d"), IVM_INVALID_PLAN,
               "\"a = b and c = d\" is no pair of names with one = between them; a comma separates pairs");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = b = c"), IVM_INVALID_PLAN, "\"a = b = c\"");
    fails_with(ivm_plan_join(scan("t"), scan("u"), "a = b,"), IVM_INVALID_PLAN, "");
}

Test(plan_build, joins_keep_their_pairs)
{
    ivm_plan *plan = ivm_plan_join(scan("t"), scan("u"), "t.a=u.b , t.c =  u.d,x=y");
    cr_assert_not_null(plan);
    cr_assert_eq(plan->on_count, (size_t)3);
    static const char *const names[] = { "t.a", "u.b", "t.c", "u.d", "x", "y" };
    for (int i = 0; i < 6; i++) {
        cr_expect_str_eq(plan->on[i], names[i]);
    }
    cr_expect_str_eq(plan->inputs[1]->table, "u");
    ivm_plan_free(plan);
    plan = ivm_plan_join_many((ivm_plan *[]){ scan("a"), scan("b"), scan("c") }, 3, NULL);
    cr_assert_not_null(plan);
    cr_expect_eq(plan->inputs_count, (size_t)3);
    cr_expect_eq(plan->on_count, (size_t)0);
    ivm_plan_free(plan);
}

Test(plan_build, joins_take_all_inputs_whatever_the_outcome)
{
    fails_with(ivm_plan_join(scan("t"), NULL, NULL), IVM_INVALID_ARGUMENT, "input");
    fails_with(ivm_plan_join_many((ivm_plan *[]){ scan("a"), NULL, scan("c") }, 3, NULL), IVM_INVALID_ARGUMENT, "input");
    fails_with(ivm_plan_join_many((ivm_plan *[]){ scan("a") }, 1, NULL), IVM_INVALID_PLAN, "not 1");
    fails_with(ivm_plan_join_many(NULL, 2, NULL), IVM_INVALID_ARGUMENT, "inputs");
}

Test(plan_build, conditions_of_joins_and_groups_add_up)
{
    ivm_plan *plan = ivm_plan_join_where(ivm_plan_join(scan("t"), scan("u"), NULL), ivm_column("p"));
    cr_expect_str_eq(plan->where->text, "p");
    plan = ivm_plan_join_where(plan, ivm_column("q"));
    cr_expect_str_eq(plan->where->text, "and");
    cr_expect_str_eq(plan->where->arguments[0]->text, "p");
    cr_expect_str_eq(plan->where->arguments[1]->text, "q");
    ivm_plan_free(plan);
    plan = ivm_plan_having(ivm_plan_having(ivm_plan_aggregate(scan("t"), "a"), ivm_column("p")), ivm_column("q"));
    cr_expect_str_eq(plan->where->text, "and");
    ivm_plan_free(plan);
}

Test(plan_build, aggregates_keep_groups_and_calls)
{
    ivm_plan *plan = ivm_plan_aggregate(scan("t"), "a, t.b");
    plan = ivm_plan_group(plan, "c", ivm_call1("lower", ivm_column("s")));
    plan = ivm_plan_count(plan, "n");
    plan = ivm_plan_add_where(ivm_plan_add(plan, "total", "sum", ivm_column("x")), ivm_column("p"));
    cr_assert_not_null(plan);
    cr_assert_eq(plan->columns_count, (size_t)3);
    cr_expect_str_eq(plan->columns[2].name, "c");
    cr_assert_eq(plan->aggregates_count, (size_t)2);
    cr_expect_null(plan->aggregates[0].value);
    cr_expect_str_eq(plan->aggregates[1].function, "sum");
    cr_expect_str_eq(plan->aggregates[1].value->text, "x");
    cr_expect_str_eq(plan->aggregates[1].where->text, "p");
    ivm_plan_free(plan);
}

Test(plan_build, conditions_go_to_the_aggregate_added_last)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(scan("t"), NULL), "n");
    plan = ivm_plan_add_where(ivm_plan_add(plan, "s", "sum", ivm_column("x")), ivm_column("p"));
    plan = ivm_plan_count(ivm_plan_add_where(plan, ivm_column("q")), "m");
    cr_assert_not_null(plan);
    cr_expect_null(plan->aggregates[0].value);
    cr_expect_str_eq(plan->aggregates[0].function, "count");
    cr_expect_null(plan->aggregates[0].where);
    cr_expect_str_eq(plan->aggregates[1].where->text, "and");
    cr_expect_str_eq(plan->aggregates[1].where->arguments[1]->text, "q");
    cr_expect_null(plan->aggregates[2].where);
    ivm_plan_free(plan);
    fails_with(ivm_plan_add_where(ivm_plan_aggregate(scan("t"), "a"), ivm_column("p")), IVM_INVALID_PLAN, "no aggregate yet");
}

Test(plan_build, joins_of_all_kinds)
{
    for (int kind = IVM_INNER_JOIN; kind <= IVM_ANTI_JOIN; kind++) {
        ivm_plan *plan = ivm_plan_join_kind((ivm_join_kind)kind, scan("t"), scan("u"), "t.a = u.b");
        plan = ivm_plan_join_where(plan, ivm_column("p"));
        cr_assert_not_null(plan);
        cr_expect_eq(plan->op, kind == IVM_INNER_JOIN ? IVM__PLAN_JOIN : IVM__PLAN_OUTER);
        cr_expect_eq(plan->kind, (ivm_join_kind)kind);
        cr_expect_eq(plan->on_count, (size_t)1);
        cr_expect_str_eq(plan->where->text, "p");
        ivm_plan_free(plan);
    }
    fails_with(ivm_plan_join_kind((ivm_join_kind)6, scan("t"), scan("u"), NULL), IVM_INVALID_ARGUMENT, "6 is no kind");
    fails_with(ivm_plan_join_kind(IVM_LEFT_JOIN, NULL, scan("u"), NULL), IVM_INVALID_ARGUMENT, "inputs");
    fails_with(ivm_plan_join_kind(IVM_LEFT_JOIN, scan("t"), NULL, NULL), IVM_INVALID_ARGUMENT, "inputs");
    fails_with(ivm_plan_join_kind(IVM_SEMI_JOIN, scan("t"), scan("u"), "a"), IVM_INVALID_PLAN, "\"a\"");
}

Test(plan_build, sets_take_all_inputs_whatever_the_outcome)
{
    ivm_plan *plan = ivm_plan_set(IVM_EXCEPT, (ivm_plan *[]){ scan("t"), scan("u"), scan("v") }, 3);
    cr_assert_not_null(plan);
    cr_expect_eq(plan->set, IVM__SET_EXCEPT);
    cr_expect_eq(plan->inputs_count, (size_t)3);
    plan = ivm_plan_distinct(plan);
    cr_expect_eq(plan->set, IVM__SET_DISTINCT);
    ivm_plan_free(plan);
    fails_with(ivm_plan_set(IVM_UNION, (ivm_plan *[]){ scan("t") }, 1), IVM_INVALID_PLAN, "two inputs");
    fails_with(ivm_plan_set(IVM_UNION, (ivm_plan *[]){ scan("t"), NULL, scan("u") }, 3), IVM_INVALID_ARGUMENT, "inputs");
    fails_with(ivm_plan_set(IVM_UNION, NULL, 2), IVM_INVALID_ARGUMENT, "inputs");
    fails_with(ivm_plan_set((ivm_set_operation)6, (ivm_plan *[]){ scan("t"), scan("u") }, 2), IVM_INVALID_ARGUMENT, "6 is no set");
    fails_with(ivm_plan_distinct(NULL), IVM_INVALID_ARGUMENT, "input");
}

Test(plan_build, top_k_collects_partitions_and_orders)
{
    ivm_plan *plan = ivm_plan_partition_by(ivm_plan_top_k(scan("t"), 3, 1), ivm_column("g"));
    plan = ivm_plan_order_by(ivm_plan_order_by(plan, ivm_column("a"), true, false), ivm_column("b"), false, true);
    cr_assert_not_null(plan);
    cr_expect_eq(plan->limit, 3u);
    cr_expect_eq(plan->offset, 1u);
    cr_expect_eq(plan->partitions_count, (size_t)1);
    cr_assert_eq(plan->orders_count, (size_t)2);
    cr_expect(plan->orders[0].descending && !plan->orders[0].nulls_first);
    cr_expect_not(plan->orders[1].descending);
    cr_expect(plan->orders[1].nulls_first);
    ivm_plan_free(plan);
    fails_with(ivm_plan_top_k(NULL, 1, 0), IVM_INVALID_ARGUMENT, "input");
    fails_with(ivm_plan_partition_by(scan("t"), ivm_column("a")), IVM_INVALID_PLAN, "no top_k");
    fails_with(ivm_plan_partition_by(ivm_plan_top_k(scan("t"), 1, 0), NULL), IVM_INVALID_ARGUMENT, "value");
    fails_with(ivm_plan_order_by(scan("t"), ivm_column("a"), false, false), IVM_INVALID_PLAN, "no top_k");
    fails_with(ivm_plan_order_by(ivm_plan_top_k(scan("t"), 1, 0), NULL, false, false), IVM_INVALID_ARGUMENT, "value");
}

Test(plan_build, a_view_that_is_none)
{
    fails_with(ivm_plan_scan_view(NULL, "v"), IVM_INVALID_ARGUMENT, "no view");
}

Test(plan_build, builders_want_the_plan_they_add_to)
{
    fails_with(ivm_plan_compute(scan("t"), "n", ivm_column("a")), IVM_INVALID_PLAN, "no project");
    fails_with(ivm_plan_group(ivm_plan_project(scan("t"), "a"), "n", ivm_column("a")), IVM_INVALID_PLAN, "no aggregate");
    fails_with(ivm_plan_add_where(ivm_plan_add(scan("t"), "n", "sum", ivm_column("a")), ivm_column("b")), IVM_INVALID_PLAN, "no aggregate");
    fails_with(ivm_plan_having(scan("t"), ivm_column("a")), IVM_INVALID_PLAN, "no aggregate");
    fails_with(ivm_plan_join_where(scan("t"), ivm_column("a")), IVM_INVALID_PLAN, "no join");
    fails_with(ivm_plan_filter(NULL, ivm_column("a")), IVM_INVALID_ARGUMENT, "input");
    fails_with(ivm_plan_filter(scan("t"), NULL), IVM_INVALID_ARGUMENT, "condition");
    fails_with(ivm_plan_compute(ivm_plan_project(scan("t"), NULL), NULL, ivm_column("a")), IVM_INVALID_ARGUMENT, "name");
    fails_with(ivm_plan_compute(ivm_plan_project(scan("t"), NULL), "n", NULL), IVM_INVALID_ARGUMENT, "n is NULL");
    fails_with(ivm_plan_add_where(ivm_plan_count(ivm_plan_aggregate(scan("t"), NULL), NULL), ivm_column("a")), IVM_INVALID_ARGUMENT,
               "name");
    fails_with(ivm_plan_count(scan("t"), "n"), IVM_INVALID_PLAN, "no aggregate");
    fails_with(ivm_plan_add(ivm_plan_aggregate(scan("t"), NULL), "n", NULL, ivm_column("a")), IVM_INVALID_ARGUMENT, "function");
    fails_with(ivm_plan_add(ivm_plan_aggregate(scan("t"), NULL), "n", "count", NULL), IVM_INVALID_ARGUMENT, "argument");
    fails_with(ivm_plan_add_where(scan("t"), ivm_column("a")), IVM_INVALID_PLAN, "no aggregate");
    fails_with(ivm_plan_add_where(ivm_plan_count(ivm_plan_aggregate(scan("t"), NULL), "n"), NULL), IVM_INVALID_ARGUMENT, "condition");
    fails_with(ivm_plan_having(ivm_plan_aggregate(scan("t"), NULL), NULL), IVM_INVALID_ARGUMENT, "condition");
    fails_with(ivm_plan_join_where(ivm_plan_join(scan("t"), scan("u"), NULL), NULL), IVM_INVALID_ARGUMENT, "condition");
}

Test(plan_build, a_failed_argument_never_becomes_a_count_of_rows)
{
    ivm_expr *argument = ivm_call1("lower", ivm_column(NULL));
    fails_with(ivm_plan_add(ivm_plan_aggregate(scan("t"), NULL), "n", "count", argument), IVM_INVALID_ARGUMENT, "ivm_column");
    ivm_expr *where = ivm_call1("not", ivm_column(NULL));
    fails_with(ivm_plan_add_where(ivm_plan_add(ivm_plan_aggregate(scan("t"), NULL), "n", "count", ivm_column("a")), where),
               IVM_INVALID_ARGUMENT, "ivm_column");
}

/* ---- Memory --------------------------------------------------------------------------------------------------------------------------- */

static ivm_plan *build_all(void)
{
    ivm_plan *joined = ivm_plan_join(scan("t"), ivm_plan_scan_name("u", "v"), "t.a = v.b, t.c = v.d");
    joined = ivm_plan_join_where(joined, ivm_call2("<", ivm_column("a"), ivm_literal(ivm_string("text"))));
    joined = ivm_plan_join_where(joined, ivm_column("ok"));
    ivm_plan *top = ivm_plan_partition_by(ivm_plan_top_k(ivm_plan_distinct(scan("w")), 2, 1), ivm_column("g"));
    top = ivm_plan_order_by(ivm_plan_order_by(top, ivm_column("a"), true, false), ivm_column("b"), false, false);
    ivm_plan *both = ivm_plan_set(IVM_UNION, (ivm_plan *[]){ top, scan("x") }, 2);
    joined = ivm_plan_join_where(ivm_plan_join_kind(IVM_LEFT_JOIN, joined, both, "a = b"), ivm_column("q"));
    ivm_plan *plan = ivm_plan_project(ivm_plan_filter(joined, ivm_column("p")), "a, b, c");
    plan = ivm_plan_compute(
        plan, "f", ivm_cast(ivm_call("least", (ivm_expr *[]){ ivm_column("a"), ivm_column("b"), ivm_column("c") }, 3), IVM_FLOAT64));
    plan = ivm_plan_group(ivm_plan_aggregate(plan, "a"), "g", ivm_column("b"));
    plan = ivm_plan_count(plan, "n");
    plan = ivm_plan_add_where(ivm_plan_add(plan, "s", "sum", ivm_column("f")), ivm_column("p"));
    return ivm_plan_having(plan, ivm_call2(">", ivm_column("n"), ivm_literal(ivm_int64(1))));
}

Test(plan_build, the_nth_allocation_failing_leaves_nothing)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        test_allocator_arm(&builder_allocator, n);
        ivm_plan *plan = build_all();
        done = !test_allocator_disarm(&builder_allocator);
        if (done) {
            cr_expect_gt(n, (uint64_t)50);
            cr_assert_not_null(plan);
            ivm_plan_free(plan);
        } else {
            fails_with(plan, IVM_OUT_OF_MEMORY, "memory");
        }
    }
}
