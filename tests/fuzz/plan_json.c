/* Fuzzes plans as JSON: what can be read becomes a view of fixed tables of every kind, rows come and go, and the view is read and explained. Plans of
 * many scans are made over empty tables, as cross products of a few rows are many. */
#include "feed.h"
#include "fuzz.h"

#include <string.h>

#define SCANS_MAX 6

static ivm_table *table_make(ivm_engine *engine, const char *name, const ivm_table_options *options)
{
    ivm_table *table;
    NEED(ivm_table_create(engine, name, options, &table, NULL) == IVM_OK);
    return table;
}

/* t: every type, a key. u: a bag of children of t. w: weights below zero. log: append only. gone: not kept, children of log. */
static void tables_make(ivm_engine *engine)
{
    static const ivm_column_definition t[] = { { "id", IVM_INT64, true },   { "n", IVM_INT64 }, { "x", IVM_FLOAT64 },
                                               { "s", IVM_STRING },         { "d", IVM_DATE },  { "w", IVM_TIMESTAMP },
                                               { "m", IVM_DECIMAL(10, 2) }, { "b", IVM_BOOL } };
    static const ivm_column_definition u[] = { { "id", IVM_INT64 }, { "t", IVM_INT64 }, { "s", IVM_STRING } };
    ivm_table *parent = table_make(engine, "t", &(ivm_table_options){ .columns = t, .columns_count = 8, .key = "id" });
    ivm_table *child = table_make(engine, "u", &(ivm_table_options){ .columns = u, .columns_count = 3 });
    table_make(engine, "w", &(ivm_table_options){ .columns = u, .columns_count = 3, .allow_negative = true });
    ivm_table *log = table_make(engine, "log", &(ivm_table_options){ .columns = t, .columns_count = 4, .key = "id", .append_only = true });
    ivm_table *gone = table_make(engine, "gone", &(ivm_table_options){ .columns = u, .columns_count = 3, .transient = true });
    NEED(ivm_foreign_key_declare(child, "t", parent, "id", IVM_TRACKED, NULL, NULL) == IVM_OK);
    NEED(ivm_foreign_key_declare(gone, "t", log, "id", IVM_TRACKED, NULL, NULL) == IVM_OK);
}

static void view_make(ivm_engine *engine, const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_view *view;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    NEED(ivm_view_create(engine, name, plan, &options, &view, NULL) == IVM_OK);
}

static void error_check(ivm_status status, const ivm_error *error)
{
    NEED(status == error->status && error->message[0] && !strchr(error->message, '\n'));
    NEED(status != IVM_IO && status != IVM_CORRUPT);
}

static size_t scans_count(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i + 4 < size; i++) {
        count += memcmp(data + i, "scan", 4) == 0;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ivm_plan *plan = NULL;
    ivm_view *view;
    ivm_error error = IVM_ERROR_INIT;
    ivm_status status = ivm_plan_from_json((const char *)data, size, &plan, &error);
    if (status != IVM_OK) {
        error_check(status, &error);
        return 0;
    }
    ivm_engine *engine = feed_open(7);
    bool filled = scans_count(data, size) <= SCANS_MAX;
    tables_make(engine);
    view_make(engine, "v", ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_name("u", NULL), "s"), "c"), IVM_IMMEDIATE);
    view_make(engine, "late", ivm_plan_project(ivm_plan_scan_name("t", NULL), "id, s"), IVM_DEFERRED);
    if (filled && size % 2) {
        feed_push(engine, 1);
    }
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = size % 5 ? IVM_IMMEDIATE : IVM_DEFERRED };
    status = ivm_view_create(engine, "fuzzed", plan, &options, &view, &error);
    if (status != IVM_OK) {
        error_check(status, &error);
    }
    for (uint64_t seed = 2; status == IVM_OK && filled && seed < 5; seed++) {
        feed_push(engine, seed);
        feed_look(engine);
    }
    feed_close(engine);
    return 0;
}
