/* Programs: the operators of a plan, their order and their wiring, seen from outside. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

typedef struct compiled {
    ivm__planned planned;
    ivm__program program;
} compiled;

static fixture it;
static compiled made;

static void open_tables(void)
{
    fixture_open(&it);
    fixture_table(&it, "f", "d int64; e int64; amount int64", NULL);
    fixture_table(&it, "d", "id int64; name string; e int64", "id");
    fixture_table(&it, "e", "id int64; name string", "id");
}

static void close_tables(void)
{
    fixture_close(&it);
}

TestSuite(plan_compile, .init = open_tables, .fini = close_tables);

static ivm_status compile(ivm_plan *plan)
{
    made = (compiled){ .planned = { .engine = it.engine }, .program = { .memory = &it.engine->memory } };
    ivm_status status = ivm__plan_check(it.engine, plan, &made.planned.node, &it.error);
    ivm_plan_free(plan);
    return status == IVM_OK ? ivm__compile(it.engine, "v", &made.planned, &made.program, &it.error) : status;
}

static void release(void)
{
    ivm__memory *memory = &it.engine->memory;
    ivm__program_deinit(&made.program);
    ivm__planned *planned = ivm__allocate(memory, sizeof *planned);
    *planned = made.planned;
    ivm__planned_free(planned, memory);
}

/* The operators' names with what each sends to, as "scan>1:0 filter>2:0 materialize". */
static const char *wiring(void)
{
    static char text[512];
    size_t size = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < made.program.operators_count; i++) {
        const ivm__operator *operator= made.program.operators[i];
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i ? " " : "", operator->class->name);
        cr_assert_str_eq(operator->view, "v");
        if (!operator->next) {
            continue;
        }
        uint32_t next = 0;
        while (made.program.operators[next] != operator->next) {
            next++;
        }
        cr_assert_gt(next, i, "operator %u stands before its reader", i);
        size += (size_t)snprintf(text + size, sizeof text - size, ">%u:%u", next, operator->next_port);
    }
    return text;
}

static void wires_to(ivm_plan *plan, const char *expected)
{
    cr_assert_eq(compile(plan), IVM_OK, "%s", it.error.message);
    cr_assert_str_eq(wiring(), expected);
    cr_assert_not_null(made.program.result);
    cr_assert_eq(made.program.result->layout->columns_count, made.planned.node->columns_count);
}

static ivm_plan *counted(ivm_plan *input)
{
    return ivm_plan_count(ivm_plan_aggregate(input, NULL), "n");
}

Test(plan_compile, a_chain_ends_in_a_materialize)
{
    ivm_plan *plan = ivm_plan_project(ivm_plan_filter(scan_of("d", NULL), call_of(">", "id", 3)), "name");
    wires_to(plan, "scan>1:0 filter>2:0 project>3:0 materialize");
    release();
}

Test(plan_compile, an_aggregate_keeps_the_rows_of_a_view_itself)
{
    wires_to(counted(scan_of("d", NULL)), "scan>1:0 aggregate");
    release();
    wires_to(ivm_plan_filter(counted(scan_of("d", NULL)), call_of(">", "n", 3)), "scan>1:0 aggregate>2:0 filter>3:0 materialize");
    release();
}

Test(plan_compile, bare_scans_below_a_join_have_no_operator)
{
    wires_to(counted(ivm_plan_join(scan_of("e", NULL), scan_of("d", NULL), "d.e = e.id")), "join>1:0 aggregate");
    cr_assert_eq(made.planned.joins_count, 1u);
    cr_assert_eq(made.planned.graphs[0]->leaves_count, 2u);
    cr_assert_not_null(made.planned.plans[0]);
    release();
}

Test(plan_compile, leaves_send_to_their_own_ports)
{
    ivm_plan *inputs[] = {
        ivm_plan_filter(scan_of("d", NULL), call_of(">", "id", 3)),
        scan_of("f", NULL),
        ivm_plan_filter(ivm_plan_project(scan_of("e", NULL), "id, name"), call_of(">", "id", 3)),
    };
    wires_to(ivm_plan_join_many(inputs, 3, "f.d = d.id, f.e = id"),
             "scan>1:0 filter>5:0 scan>3:0 project>4:0 filter>5:2 join>6:0 materialize");
    release();
}

/* ---- All operators ------------------------------------------------------------------------------------------------------------------ */

static ivm_plan *set_of(ivm_set_operation operation, ivm_plan *a, ivm_plan *b)
{
    return ivm_plan_set(operation, (ivm_plan *[]){ a, b }, 2);
}

Test(plan_compile, sets_and_outer_joins_have_a_port_an_input)
{
    wires_to(set_of(IVM_UNION_ALL, scan_of("e", NULL), scan_of("e", NULL)), "scan>2:0 scan>2:1 union_all>3:0 materialize");
    release();
    wires_to(set_of(IVM_EXCEPT, scan_of("e", NULL), scan_of("e", NULL)), "scan>2:0 scan>2:1 set>3:0 materialize");
    release();
    wires_to(ivm_plan_distinct(scan_of("e", NULL)), "scan>1:0 set>2:0 materialize");
    release();
    ivm_plan *plan = ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("d", NULL), scan_of("e", NULL), "d.e = e.id");
    wires_to(ivm_plan_project(plan, "d.name"), "scan>2:0 scan>2:1 outer join>3:0 project>4:0 materialize");
    release();
    plan = ivm_plan_order_by(ivm_plan_top_k(scan_of("d", NULL), 3, 0), ivm_column("name"), true, false);
    wires_to(ivm_plan_partition_by(plan, ivm_column("e")), "scan>1:0 top_k>2:0 materialize");
    release();
}

Test(plan_compile, joins_inside_outer_joins_are_listed_too)
{
    ivm_plan *right = ivm_plan_join(scan_of("d", NULL), scan_of("e", NULL), "d.e = e.id");
    wires_to(counted(ivm_plan_join_kind(IVM_RIGHT_JOIN, scan_of("e", "e2"), right, "e2.id = d.id")),
             "scan>2:0 join>2:1 outer join>3:0 aggregate");
    cr_assert_eq(made.planned.joins_count, 1u);
    cr_assert_str_eq(made.planned.graphs[0]->leaves[0].table->name, "d");
    release();
    ivm_plan *leaf = ivm_plan_join_kind(IVM_SEMI_JOIN, ivm_plan_join(scan_of("e", NULL), scan_of("e", "e2"), "e.id = e2.id"),
                                        scan_of("e", "e3"), "e.id = e3.id");
    wires_to(counted(ivm_plan_join(leaf, scan_of("d", NULL), "d.e = e.id")), "join>2:0 scan>2:1 outer join>3:0 join>4:0 aggregate");
    cr_assert_eq(made.planned.joins_count, 2u);
    cr_assert_eq(made.planned.graphs[0]->leaves[1].table->name[0], 'd');
    cr_assert_null(made.planned.graphs[0]->leaves[0].table);
    release();
}

Test(plan_compile, what_may_be_negative_goes_through_signs_to_who_looks_for_presence)
{
    ivm_column_definition columns[] = { { "k", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 1, .allow_negative = true };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(it.engine, "s", &options, &table, &it.error), IVM_OK, "%s", it.error.message);
    wires_to(counted(scan_of("s", NULL)), "scan>1:0 signs>2:0 aggregate");
    release();
    wires_to(set_of(IVM_UNION, ivm_plan_project(scan_of("e", NULL), "id"), scan_of("s", NULL)),
             "scan>1:0 project>4:0 scan>3:0 signs>4:1 set>5:0 materialize");
    release();
    wires_to(ivm_plan_top_k(scan_of("s", NULL), 1, 0), "scan>1:0 signs>2:0 top_k>3:0 materialize");
    release();
    wires_to(ivm_plan_filter(scan_of("s", NULL), call_of(">", "k", 0)), "scan>1:0 filter>2:0 materialize");
    release();
    wires_to(ivm_plan_join_kind(IVM_FULL_JOIN, scan_of("s", NULL), scan_of("e", NULL), "k = id"),
             "scan>2:0 scan>2:1 outer join>3:0 materialize");
    release();
}

/* A weigh operator stands where weights of rows that came with weights of their own may add up or multiply, and nobody else looks. */
Test(plan_compile, weights_that_may_outgrow_int64_are_watched)
{
    wires_to(counted(ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id")), "join>1:0 weigh>2:0 aggregate");
    release();
    ivm_plan *join = ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id");
    wires_to(ivm_plan_project(join, "f.amount"), "join>1:0 project>2:0 materialize");
    release();
    join = ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id");
    wires_to(counted(ivm_plan_project(join, "f.amount")), "join>1:0 project>2:0 weigh>3:0 aggregate");
    release();
    join = ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id");
    wires_to(ivm_plan_project(ivm_plan_filter(join, call_of(">", "amount", 3)), "f.amount"),
             "join>1:0 weigh>2:0 filter>3:0 project>4:0 materialize");
    release();
    wires_to(ivm_plan_distinct(set_of(IVM_UNION_ALL, scan_of("f", NULL), scan_of("f", NULL))),
             "scan>2:0 scan>2:1 union_all>3:0 weigh>4:0 set>5:0 materialize");
    release();
    wires_to(counted(ivm_plan_project(ivm_plan_join(scan_of("d", NULL), scan_of("e", NULL), "d.e = e.id"), "d.name")),
             "join>1:0 project>2:0 aggregate");
    release();
}

Test(plan_compile, joins_are_listed_in_reading_order)
{
    ivm_plan *inner = ivm_plan_join(scan_of("d", NULL), scan_of("e", NULL), "d.e = e.id");
    ivm_plan *outer = ivm_plan_join(ivm_plan_project(inner, "d.id, e.name"), scan_of("f", NULL), "f.d = id");
    wires_to(outer, "join>1:0 project>2:0 join>3:0 materialize");
    cr_assert_eq(made.planned.joins_count, 2u);
    cr_assert_eq(made.planned.graphs[0]->leaves_count, 2u);
    cr_assert_eq(made.planned.graphs[0]->leaves[1].table, it.engine->tables);
    cr_assert_null(made.planned.graphs[0]->leaves[0].table);
    cr_assert_str_eq(made.planned.graphs[1]->leaves[0].table->name, "d");
    release();
}

static ivm_plan *many_operators(void)
{
    ivm_plan *left = ivm_plan_filter(scan_of("d", NULL), ivm_call2("<>", ivm_column("name"), ivm_literal(ivm_string("nobody"))));
    ivm_plan *join = ivm_plan_join_where(ivm_plan_join(left, scan_of("f", NULL), "f.d = d.id"), call_of(">", "amount", 0));
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(join, "d.name"), "total", "sum", ivm_column("amount"));
    plan = ivm_plan_filter(ivm_plan_having(plan, call_of(">", "total", 0)), call_of("<", "total", 1000));
    plan = ivm_plan_join_kind(IVM_LEFT_JOIN, plan, scan_of("e", NULL), "total = e.id");
    plan = ivm_plan_join_where(plan, ivm_call2("<>", ivm_column("e.name"), ivm_literal(ivm_string("no one"))));
    plan = set_of(IVM_UNION, ivm_plan_project(plan, "e.id, e.name"), scan_of("e", NULL));
    plan = ivm_plan_partition_by(ivm_plan_top_k(plan, 3, 1), call_of("+", "id", 1));
    return ivm_plan_order_by(plan, ivm_call1("lower", ivm_column("name")), false, false);
}

/* What is held once a program has been made and freed: the arenas stay. */
static int64_t blocks_at_rest(void)
{
    cr_assert_eq(compile(many_operators()), IVM_OK, "%s", it.error.message);
    release();
    ivm__engine_settle(it.engine);
    return it.allocator.blocks;
}

Test(plan_compile, a_failed_allocation_leaves_nothing)
{
    int64_t blocks = blocks_at_rest();
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        ivm_plan *plan = many_operators();
        test_allocator_arm(&it.allocator, failures + 1);
        ivm_status status = compile(plan);
        failed = test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK, "allocation %lu: %s", (unsigned long)failures, it.error.message);
        release();
        ivm__engine_settle(it.engine);
        cr_assert_eq(blocks_at_rest(), blocks, "allocation %lu", (unsigned long)failures);
    }
    cr_assert_geq(failures, 100u);
}
