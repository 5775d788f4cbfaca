/* Growth: however many rows and groups there are, a push of one row moves no array of them. What is kept by row or by group lies in segments or is
 * rehashed a piece at a time; an array that an allocator must copy to make it larger would be moved by the push that finds it full. */
#include <criterion/criterion.h>
#include <ivm/ivm.h>

#include "allocator.h"

#define ROWS 6000
#define MOVED_MAX 4096u /* bytes: lists of one step, and what is small yet */

static test_allocator allocator;
static ivm_allocator inner;
static uint64_t moved;
static ivm_error error;
static ivm_engine *engine;
static ivm_table *left, *right;

static void *resize_counted(void *context, void *block, size_t size_old, size_t size_new)
{
    moved += size_old < size_new ? size_old : size_new;
    return inner.resize(context, block, size_old, size_new);
}

static ivm_table *table_of(const char *name)
{
    static const ivm_column_definition columns[] = { { "k", IVM_INT64 }, { "v", IVM_INT64 } };
    const ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "k" };
    ivm_table *made;
    cr_assert_eq(ivm_table_create(engine, name, &options, &made, &error), IVM_OK, "%s", error.message);
    return made;
}

static void begin(void)
{
    error = (ivm_error)IVM_ERROR_INIT;
    test_allocator_init(&allocator);
    inner = test_allocator_functions(&allocator);
    ivm_allocator counted = inner;
    counted.resize = resize_counted;
    cr_assert_eq(ivm_engine_open(&(ivm_engine_options){ .allocator = counted }, &engine, &error), IVM_OK, "%s", error.message);
    left = table_of("l");
    right = table_of("r");
}

static void end(void)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
    cr_assert(test_allocator_is_clean(&allocator));
}

static void view(ivm_plan *plan)
{
    ivm_view *made;
    cr_assert_eq(ivm_view_create(engine, "view", plan, NULL, &made, &error), IVM_OK, "%s", error.message);
}

static ivm_batch *batch_make(void)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK, "%s", error.message);
    return batch;
}

static void push(ivm_batch *batch, int64_t row)
{
    moved = 0;
    cr_assert_eq(ivm_push_batch(engine, batch, NULL, &error), IVM_OK, "%s", error.message);
    cr_assert_leq(moved, MOVED_MAX, "row %ld", (long)row);
}

static void rows_come(void)
{
    for (int64_t row = 0; row < ROWS; row++) {
        ivm_batch *batch = batch_make();
        ivm_batch_insert(batch, left, ivm_int64(row * 7919), ivm_int64(row));
        push(batch, row);
    }
}

static void rows_leave(void)
{
    for (int64_t row = 0; row < ROWS; row++) {
        ivm_batch *batch = batch_make();
        ivm_batch_delete_key(batch, left, ivm_int64(row * 7919));
        push(batch, row);
    }
}

Test(view_growth, tables)
{
    begin();
    rows_come();
    rows_leave();
    end();
}

Test(view_growth, sums_by_group)
{
    begin();
    view(ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan_name("l", NULL), "l.k"), "sum", "sum", ivm_column("l.v")));
    rows_come();
    rows_leave();
    end();
}

Test(view_growth, extremes_by_group)
{
    begin();
    view(ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan_name("l", NULL), "l.k"), "least", "min", ivm_column("l.v")));
    rows_come();
    rows_leave();
    end();
}

Test(view_growth, sets)
{
    begin();
    ivm_plan *inputs[] = { ivm_plan_scan_name("l", NULL), ivm_plan_scan_name("r", NULL) };
    view(ivm_plan_set(IVM_EXCEPT_ALL, inputs, 2));
    rows_come();
    rows_leave();
    end();
}

Test(view_growth, outer_joins)
{
    begin();
    ivm_plan *join = ivm_plan_join_kind(IVM_LEFT_JOIN, ivm_plan_scan_name("l", NULL), ivm_plan_scan_name("r", NULL), "l.k = r.v");
    view(ivm_plan_project(join, "l.k, l.v"));
    rows_come();
    rows_leave();
    end();
}
