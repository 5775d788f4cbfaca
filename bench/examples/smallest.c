/* The smallest program: one table, one view, one push, and what the view holds.
 *
 * It prints:
 *
 *     apple 2
 *     pear 1
 */
#include <ivm/ivm.h>

#include <stdio.h>

static int failed(const ivm_error *error)
{
    fprintf(stderr, "%s: %s\n", ivm_status_name(error->status), error->message);
    return 1;
}

int main(void)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_engine *engine;
    ivm_table *basket;
    ivm_view *counts;
    ivm_batch *batch;
    ivm_snapshot *now;
    ivm_column_definition columns[] = { { "fruit", IVM_STRING } };
    if (ivm_engine_open(NULL, &engine, &error) != IVM_OK ||
        ivm_table_create(engine, "basket", &(ivm_table_options){ .columns = columns, .columns_count = 1 }, &basket, &error) != IVM_OK) {
        return failed(&error);
    }

    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(basket, NULL), "fruit"), "n");
    if (ivm_view_create(engine, "counts", plan, NULL, &counts, &error) != IVM_OK || ivm_batch_create(engine, &batch, &error) != IVM_OK) {
        return failed(&error);
    }
    ivm_batch_insert(batch, basket, ivm_string("pear"));
    ivm_batch_insert(batch, basket, ivm_string("apple"));
    ivm_batch_insert(batch, basket, ivm_string("apple"));
    if (ivm_push_batch(engine, batch, NULL, &error) != IVM_OK || ivm_read_view(counts, &now, &error) != IVM_OK ||
        ivm_snapshot_sort(now, &error) != IVM_OK) {
        return failed(&error);
    }

    for (ivm_rows rows; ivm_snapshot_next(now, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            ivm_value fruit = ivm_rows_value(&rows, IVM_STRING, i, 0), n = ivm_rows_value(&rows, IVM_INT64, i, 1);
            printf("%.*s %lld\n", (int)fruit.as.string.size, fruit.as.string.bytes, (long long)n.as.int64);
        }
    }
    ivm_snapshot_close(now);
    return ivm_engine_close(engine, &error) == IVM_OK ? 0 : failed(&error);
}
