/* tests engine/arrow/arrow_stream.c on views: their names, their changes with weights, inside a callback too, and a copy of a view kept by nothing else. */
#include "shop.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ivm/arrow.h"

TestSuite(plan_arrow, .init = shop_open, .fini = shop_close);

static ivm_plan *totals_of_sales(void)
{
    ivm_plan *joined = ivm_plan_join(scan_of("sale", "s"), scan_of("product", "p"), "s.product = p.id");
    return ivm_plan_count(ivm_plan_add(ivm_plan_aggregate(joined, "p.name"), "total", "sum", ivm_column("amount")), "n");
}

/* The same columns as the view's, in a bag that allows what changes bring in whatever order. */
static ivm_table *copy_make(void)
{
    return fixture_table_like(&shop, "copy", "name string; total int64; n int64", &(ivm_table_options){ .allow_negative = true });
}

static const ivm_arrow_options weighted = { .weight = "weight" };

static ivm_status stream_push(struct ArrowArrayStream *stream, ivm_engine *engine, ivm_table *table)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(engine, &batch, NULL), IVM_OK);
    (void)ivm_batch_arrow_stream(batch, table, IVM_WEIGHTED, stream, &weighted);
    return ivm_push_batch(engine, batch, NULL, &shop.error);
}

/* The view's changes go into the copy as an Arrow stream; then both are alike. */
static void copy_keep(ivm_view *view, ivm_table *copy)
{
    ivm_snapshot *snapshot;
    struct ArrowArrayStream stream;
    char wanted[512];
    const ivm_arrow_options options = { .weight = "weight", .view = view };
    cr_assert_eq(ivm_read_changes(view, &snapshot, NULL), IVM_OK);
    cr_assert_eq(ivm_snapshot_arrow_stream(snapshot, &options, &stream, &shop.error), IVM_OK, "%s", shop.error.message);
    cr_assert_eq(stream_push(&stream, shop.engine, copy), IVM_OK, "%s", shop.error.message);
    (void)snprintf(wanted, sizeof wanted, "%s", fixture_view(&shop, view));
    cr_assert_eq(ivm_read_table(copy, &snapshot, NULL), IVM_OK);
    cr_assert_str_eq(fixture_rows(snapshot), wanted);
}

Test(plan_arrow, a_copy_by_changes_alone)
{
    ivm_view *view = fixture_make(&shop, "totals", totals_of_sales());
    ivm_table *copy = copy_make();
    push(product, IVM_INSERT, "1,ax 2,saw 3,null");
    copy_keep(view, copy);
    push(sale, IVM_INSERT, "1,10 1,10 2,5 3,1");
    copy_keep(view, copy);
    push(sale, IVM_DELETE, "1,10 2,5");
    copy_keep(view, copy);
    push(product, IVM_UPSERT, "1,axe 3,nail");
    copy_keep(view, copy);
    cr_assert_str_eq(fixture_view(&shop, view), "1*axe,10,1 1*nail,1,1");
}

/* ---- In a callback ----------------------------------------------------------------------------------------------------------------------- */

typedef struct other_engine {
    ivm_engine *engine;
    ivm_table *copy;
    int told;
} other_engine;

/* What is told of may be read, as a stream as well, into another engine. */
static void carry(void *context, ivm_view *view, ivm_snapshot *changes)
{
    other_engine *it = context;
    struct ArrowArrayStream stream;
    const ivm_arrow_options options = { .weight = "weight", .view = view, .borrowed = true };
    cr_assert_eq(ivm_snapshot_arrow_stream(changes, &options, &stream, &shop.error), IVM_OK, "%s", shop.error.message);
    cr_assert_eq(stream_push(&stream, it->engine, it->copy), IVM_OK, "%s", shop.error.message);
    it->told++;
}

Test(plan_arrow, changes_in_a_callback)
{
    other_engine other = { .told = 0 };
    const ivm_column_definition columns[] = { { "name", IVM_STRING }, { "total", IVM_INT64 }, { "n", IVM_INT64 } };
    const ivm_table_options options = { .columns = columns, .columns_count = 3 };
    cr_assert_eq(ivm_engine_open(NULL, &other.engine, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(other.engine, "copy", &options, &other.copy, NULL), IVM_OK);
    const ivm_view_options told = { .changed = carry, .changed_context = &other };
    (void)fixture_make_with(&shop, "totals", totals_of_sales(), &told);
    push(product, IVM_INSERT, "1,ax 2,saw");
    push(sale, IVM_INSERT, "1,10 1,10 2,5");
    push(sale, IVM_DELETE, "1,10 2,5");
    cr_assert_eq(other.told, 2);
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(other.copy, &snapshot, NULL), IVM_OK);
    cr_assert_str_eq(fixture_rows(snapshot), "1*ax,10,1");
    cr_assert_eq(ivm_engine_close(other.engine, NULL), IVM_OK);
}

/* Equal rows of a bag come as one where they are sorted; names are those that the view was made with. */
Test(plan_arrow, a_view_of_a_bag_sorted)
{
    ivm_view *view = fixture_make(&shop, "amounts", ivm_plan_project(scan_of("sale", "s"), "s.amount"));
    push(sale, IVM_INSERT, "1,10 2,10");
    push(sale, IVM_INSERT, "3,10 3,7");
    ivm_snapshot *snapshot;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
    const ivm_arrow_options options = { .weight = "weight", .view = view };
    cr_assert_eq(ivm_read_view(view, &snapshot, NULL), IVM_OK);
    cr_assert_eq(ivm_snapshot_sort(snapshot, NULL), IVM_OK);
    cr_assert_eq(ivm_snapshot_arrow_stream(snapshot, &options, &stream, NULL), IVM_OK);
    cr_assert_eq(stream.get_schema(&stream, &schema), 0);
    cr_assert_str_eq(schema.children[0]->name, "amount");
    cr_assert_eq(stream.get_next(&stream, &array), 0);
    cr_assert_eq(array.length, 2);
    cr_assert_arr_eq(array.children[0]->buffers[1], ((int64_t[]){ 7, 10 }), 16);
    cr_assert_arr_eq(array.children[1]->buffers[1], ((int64_t[]){ 1, 3 }), 16);
    schema.release(&schema);
    array.release(&array);
    stream.release(&stream);
}
