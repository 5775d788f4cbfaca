/* Plans as bytes and back: equal bytes again for each kind of plan, and no damaged byte breaks anything. */
#include "plan_code.h"

#include "build.h"
#include "fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static test_allocator allocator;
static ivm_allocator usual;
static ivm__memory memory;

static void count_memory(void)
{
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    usual = ivm__builder_memory.allocator;
    ivm__builder_memory.allocator = functions;
    ivm__memory_init(&memory, &functions);
}

static void nothing_is_left(void)
{
    ivm__builder_memory.allocator = usual;
    cr_expect(test_allocator_is_clean(&allocator), "%ld blocks left, %lu faults", (long)allocator.blocks, (unsigned long)allocator.faults);
    cr_expect_eq(ivm__builder_cause_exchange((ivm_error)IVM_ERROR_INIT).status, IVM_OK, "a cause is left");
}

TestSuite(plan_code, .init = count_memory, .fini = nothing_is_left);

/* ---- Plans of every kind -------------------------------------------------------------------------------------------------------------- */

static ivm_expr *literals(void)
{
    ivm_value values[] = {
        ivm_null(),
        ivm_bool(true),
        ivm_int64(INT64_MIN),
        ivm_float64(0.1),
        ivm_string_sized("a\0b", 3),
        ivm_string_sized("", 0),
        ivm_date(-1),
        ivm_timestamp(INT64_MAX),
        ivm_decimal(IVM_DECIMAL(38, 10), (ivm_int128){ 7, -1 }),
        { .type = IVM_DATE, .is_null = true },
    };
    ivm_expr *arguments[sizeof values / sizeof *values];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        arguments[i] = ivm_literal(values[i]);
    }
    return ivm_call("coalesce", arguments, sizeof values / sizeof *values);
}

static ivm_plan *aggregate(void)
{
    ivm_plan *plan = ivm_plan_aggregate(scan_of("t", "x"), "x.a, b");
    plan = ivm_plan_group(plan, "g", ivm_call2("+", ivm_column("a"), ivm_cast(ivm_column("c"), IVM_FLOAT64)));
    plan = ivm_plan_add_where(ivm_plan_count(plan, "n"), ivm_column("p"));
    plan = ivm_plan_add(plan, "s", "sum", ivm_column("d"));
    return ivm_plan_having(plan, ivm_call2(">", ivm_column("n"), ivm_literal(ivm_int64(1))));
}

static ivm_plan *top_k(ivm_plan *input)
{
    ivm_plan *plan = ivm_plan_partition_by(ivm_plan_top_k(input, 3, UINT64_MAX), ivm_column("g"));
    plan = ivm_plan_order_by(plan, ivm_column("n"), true, false);
    return ivm_plan_order_by(plan, ivm_call1("-", ivm_column("s")), false, true);
}

#define PLANS 9

static ivm_plan *plan_of(int nth)
{
    ivm_plan *inputs[] = { nth == 4 || nth == 5 ? scan_of("t", NULL) : NULL, nth == 4 || nth == 5 ? scan_of("u", "v") : NULL };
    switch (nth) {
    case 0:
        return scan_of("t", NULL);
    case 1:
        return ivm_plan_filter(scan_of("t", "x"), literals());
    case 2:
        return ivm_plan_compute(ivm_plan_project(scan_of("t", NULL), "a, t.b"), "c", ivm_call("f", NULL, 0));
    case 3:
        return ivm_plan_join_where(ivm_plan_join(scan_of("t", NULL), scan_of("u", NULL), "t.a = u.a, b = c"),
                                   ivm_call2("<>", ivm_column("t.a"), ivm_column("b")));
    case 4:
        return ivm_plan_join_kind(IVM_FULL_JOIN, inputs[0], inputs[1], "a = v.b");
    case 5:
        return ivm_plan_set(IVM_EXCEPT_ALL, inputs, 2);
    case 6:
        return aggregate();
    case 7:
        return ivm_plan_distinct(top_k(aggregate()));
    default:
        return ivm_plan_join_kind(IVM_ANTI_JOIN, top_k(aggregate()), ivm_plan_join(scan_of("t", "a"), scan_of("t", "b"), NULL), "n = a.x");
    }
}

static uint8_t *code_of(const ivm_plan *plan, uint32_t *size)
{
    ivm__code code = { .memory = &memory };
    ivm__plan_code(&code, plan);
    uint8_t *bytes = ivm__code_take(&code, size);
    ivm__code_deinit(&code);
    return bytes;
}

Test(plan_code, plans_come_back)
{
    for (int nth = 0; nth < PLANS; nth++) {
        ivm_error error = IVM_ERROR_INIT;
        ivm_plan *plan = plan_of(nth), *again = NULL;
        cr_assert_not_null(plan);
        uint32_t size, size_again;
        uint8_t *bytes = code_of(plan, &size);
        cr_assert_eq(ivm__plan_decode(bytes, size, &again, &error), IVM_OK, "plan %d: %s", nth, error.message);
        uint8_t *bytes_again = code_of(again, &size_again);
        cr_assert_eq(size, size_again, "plan %d", nth);
        cr_expect_eq(memcmp(bytes, bytes_again, size), 0, "plan %d", nth);
        ivm_plan_free(plan);
        ivm_plan_free(again);
        ivm__release(&memory, bytes, size);
        ivm__release(&memory, bytes_again, size);
    }
}

Test(plan_code, an_alias_that_says_nothing_is_none)
{
    ivm_plan *plan = scan_of("t", "t"), *bare = scan_of("t", NULL);
    uint32_t size, size_bare;
    uint8_t *bytes = code_of(plan, &size), *bytes_bare = code_of(bare, &size_bare);
    cr_assert_eq(size, size_bare);
    cr_expect_eq(memcmp(bytes, bytes_bare, size), 0);
    ivm_plan_free(plan);
    ivm_plan_free(bare);
    ivm__release(&memory, bytes, size);
    ivm__release(&memory, bytes_bare, size);
}

/* ---- Bytes that cannot be --------------------------------------------------------------------------------------------------------------- */

/* Either corrupt, or a plan that is written as just these bytes. */
static void judge(const uint8_t *bytes, uint32_t size)
{
    ivm_plan *plan = NULL;
    ivm_error error = IVM_ERROR_INIT;
    ivm_status status = ivm__plan_decode(bytes, size, &plan, &error);
    if (status != IVM_OK) {
        cr_assert_eq(status, IVM_CORRUPT, "%s", ivm_status_name(status));
        return;
    }
    uint32_t size_again;
    uint8_t *again = code_of(plan, &size_again);
    cr_expect_leq(size_again, size); /* an alias, or a NaN, may have been said in another way */
    ivm_plan_free(plan);
    ivm__release(&memory, again, size_again);
}

Test(plan_code, every_damaged_byte_and_every_cut_is_survived)
{
    for (int nth = 0; nth < PLANS; nth++) {
        ivm_plan *plan = plan_of(nth);
        uint32_t size;
        uint8_t *bytes = code_of(plan, &size);
        for (uint32_t i = 0; i < size; i++) {
            ivm_error error = IVM_ERROR_INIT;
            ivm_plan *cut = NULL;
            cr_assert_eq(ivm__plan_decode(bytes, i, &cut, &error), IVM_CORRUPT, "plan %d cut to %u", nth, i);
            static const uint8_t flips[] = { 1, 2, 4, 0x80, 0xff, 7 };
            for (size_t f = 0; f < sizeof flips; f++) {
                bytes[i] ^= flips[f];
                judge(bytes, size);
                bytes[i] ^= flips[f];
            }
        }
        ivm_plan_free(plan);
        ivm__release(&memory, bytes, size);
    }
}

Test(plan_code, depth_is_bounded)
{
    enum { DEPTH = 1000000 };
    uint8_t *bytes = malloc(DEPTH * 5);
    ivm_plan *plan = NULL;
    ivm_error error = IVM_ERROR_INIT;
    for (size_t i = 0; i < DEPTH; i++) {
        memcpy(bytes + 5 * i, (uint8_t[]){ IVM__PLAN_FILTER, 1, 0, 0, 0 }, 5);
    }
    cr_expect_eq(ivm__plan_decode(bytes, DEPTH * 5, &plan, &error), IVM_CORRUPT);
    memcpy(bytes, (uint8_t[]){ IVM__PLAN_FILTER, 1, 0, 0, 0, IVM__PLAN_SCAN, 0, 0, 0, 0, 1, 0, 0, 0, 't', 0, 0 }, 17);
    for (size_t i = 17; i + 5 <= DEPTH * 5; i += 5) {
        memcpy(bytes + i, (uint8_t[]){ IVM__EXPR_CAST, IVM_INT64, 0, 0, 0 }, 5);
    }
    cr_expect_eq(ivm__plan_decode(bytes, DEPTH * 5, &plan, &error), IVM_CORRUPT);
    free(bytes);
}

Test(plan_code, memory_may_end_at_any_call)
{
    for (int nth = 0; nth < PLANS; nth++) {
        ivm_plan *plan = plan_of(nth);
        uint32_t size;
        uint8_t *bytes = code_of(plan, &size);
        int64_t blocks = allocator.blocks;
        bool done = false;
        for (uint64_t n = 1; !done; n++) {
            ivm_plan *again = NULL;
            ivm_error error = IVM_ERROR_INIT;
            test_allocator_arm(&allocator, n);
            ivm_status status = ivm__plan_decode(bytes, size, &again, &error);
            done = !test_allocator_disarm(&allocator);
            cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "plan %d, call %lu: %s", nth, (unsigned long)n, error.message);
            ivm_plan_free(again);
            cr_assert_eq(allocator.blocks, blocks);
        }
        ivm_plan_free(plan);
        ivm__release(&memory, bytes, size);
    }
}
