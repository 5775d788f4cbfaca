/* Loads the shared library the way a host process does, with dlopen, and keeps a tiny view by its symbols: no main program, no other
 * library may be needed. A plain program: it prints what went wrong and gives 1. */
#include "ivm/ivm.h"
#include "need.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

/* A call of the library through its symbol, with the type that the header gives it. */
#define CALL(name) (*(__typeof__(&(name)))symbol(#name))

/* How many threads this process has; 0 where nobody tells. */
static int threads_count(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (tasks) {
        closedir(tasks);
    }
    return count;
}

static void fill(ivm_engine *engine, ivm_table *table)
{
    ivm_batch *batch;
    ivm_error error = IVM_ERROR_INIT;
    NEED(CALL(ivm_batch_create)(engine, &batch, &error) == IVM_OK);
    for (int64_t i = 0; i < 10; i++) {
        ivm_value row[] = { CALL(ivm_int64)(i % 2), CALL(ivm_int64)(i) };
        NEED(CALL(ivm_batch_row)(batch, table, IVM_INSERT, 1, row, 2) == IVM_OK);
    }
    NEED(CALL(ivm_push_batch)(engine, batch, NULL, &error) == IVM_OK);
}

static void check(ivm_view *view)
{
    static const int64_t totals[] = { 20, 25 };
    ivm_snapshot *snapshot;
    ivm_rows rows;
    ivm_error error = IVM_ERROR_INIT;
    size_t seen = 0;
    NEED(CALL(ivm_read_view)(view, &snapshot, &error) == IVM_OK);
    while (CALL(ivm_snapshot_next)(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count; i++, seen++) {
            int64_t group = CALL(ivm_rows_value)(&rows, IVM_INT64, i, 0).as.int64;
            NEED(group == 0 || group == 1);
            NEED(CALL(ivm_rows_value)(&rows, IVM_INT64, i, 1).as.int64 == totals[group]);
        }
    }
    NEED(seen == 2);
    CALL(ivm_snapshot_close)(snapshot);
}

int main(int argc, char **argv)
{
    static const ivm_column_definition columns[] = { { "g", IVM_INT64, true }, { "x", IVM_INT64, true } };
    const ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *view;
    ivm_error error = IVM_ERROR_INIT;
    NEED(argc == 2);
    int threads = threads_count();
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    NEED(CALL(ivm_engine_open)(NULL, &engine, &error) == IVM_OK);
    NEED(CALL(ivm_table_create)(engine, "t", &options, &table, &error) == IVM_OK);
    ivm_plan *plan = CALL(ivm_plan_aggregate)(CALL(ivm_plan_scan)(table, NULL), "g");
    plan = CALL(ivm_plan_add)(plan, "total", "sum", CALL(ivm_column)("x"));
    NEED(CALL(ivm_view_create)(engine, "v", plan, NULL, &view, &error) == IVM_OK);
    fill(engine, table);
    check(view);
    NEED(threads_count() == threads);
    NEED(CALL(ivm_engine_close)(engine, &error) == IVM_OK);
    NEED(dlclose(library) == 0);
    puts("loaded, ran and unloaded");
    return 0;
}
