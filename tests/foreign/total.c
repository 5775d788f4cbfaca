/* What a stranger writes first: keeps the sum of a table's column, prints it and the version of the library. C17 and, by total.cpp, C++17. */
#include <ivm/ivm.h>
#include <stdio.h>

static ivm_error error;

static int failed(void)
{
    return fprintf(stderr, "%s: %s\n", ivm_status_name(error.status), error.message);
}

int main(void)
{
    static const ivm_column_definition columns[] = { { "x", IVM_INT64, true } };
    static ivm_table_options options;
    ivm_value rows[] = { ivm_int64(40), ivm_int64(2) };
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *view;
    ivm_batch *batch;
    ivm_snapshot *snapshot;
    ivm_rows read;
    options.columns = columns;
    options.columns_count = 1;
    if (ivm_engine_open(NULL, &engine, &error) || ivm_table_create(engine, "t", &options, &table, &error) ||
        ivm_view_create(engine, "v", ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(table, NULL), ""), "total", "sum", ivm_column("x")),
                        NULL, &view, &error) ||
        ivm_batch_create(engine, &batch, &error) || ivm_batch_row(batch, table, IVM_INSERT, 1, &rows[0], 1) ||
        ivm_batch_row(batch, table, IVM_INSERT, 1, &rows[1], 1) || ivm_push_batch(engine, batch, NULL, &error) ||
        ivm_read_view(view, &snapshot, &error)) {
        return failed();
    }
    while (ivm_snapshot_next(snapshot, &read)) {
        printf("total %lld, headers %s, library %s\n", (long long)ivm_rows_value(&read, IVM_INT64, 0, 0).as.int64, IVM_VERSION,
               ivm_version());
    }
    ivm_snapshot_close(snapshot);
    return ivm_engine_close(engine, &error) ? failed() : 0;
}
