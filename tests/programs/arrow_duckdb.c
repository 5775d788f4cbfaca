/* DuckDB reads our Arrow streams and we read its arrays: every type there and back, DuckDB's own formats (enums as dictionaries, views, large buffers, small
 * decimals), and a copy of a view kept in DuckDB by nothing but the view's changes. A plain program: arrow_duckdb LIBRARY. Without one it says so and gives
 * 77, which CTest takes for skipped. The package that has the library has no header: the few prototypes are declared here. */
#include "ivm/ivm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77

#define NEED(condition)                                                                                                                    \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error.message);                                             \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static ivm_error error = IVM_ERROR_INIT;

/* ---- What is used of duckdb.h ------------------------------------------------------------------------------------------------------------ */

typedef struct duckdb_result {
    uint64_t deprecated_counts[3];
    void *deprecated_columns;
    char *deprecated_error_message;
    void *internal_data;
} duckdb_result;

static struct {
    const char *(*library_version)(void);
    int (*open)(const char *path, void **database);
    void (*close)(void **database);
    int (*connect)(void *database, void **connection);
    void (*disconnect)(void **connection);
    int (*query)(void *connection, const char *sql, duckdb_result *result);
    const char *(*result_error)(duckdb_result *result);
    int64_t (*value_int64)(duckdb_result *result, uint64_t column, uint64_t row);
    void (*destroy_result)(duckdb_result *result);
    int (*arrow_scan)(void *connection, const char *name, struct ArrowArrayStream *stream);
    int (*query_arrow)(void *connection, const char *sql, void **result);
    int (*query_arrow_schema)(void *result, struct ArrowSchema **schema);
    int (*query_arrow_array)(void *result, struct ArrowArray **array);
    const char *(*query_arrow_error)(void *result);
    void (*destroy_arrow)(void **result);
} duckdb;

static bool library_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return false;
    }
    static const char *const names[] = { "library_version",
                                         "open",
                                         "close",
                                         "connect",
                                         "disconnect",
                                         "query",
                                         "result_error",
                                         "value_int64",
                                         "destroy_result",
                                         "arrow_scan",
                                         "query_arrow",
                                         "query_arrow_schema",
                                         "query_arrow_array",
                                         "query_arrow_error",
                                         "destroy_arrow" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char symbol[64];
        (void)snprintf(symbol, sizeof symbol, "duckdb_%s", names[i]);
        void *function = dlsym(library, symbol);
        NEED(function);
        memcpy((void **)&duckdb + i, &function, sizeof function);
    }
    return true;
}

static void *database, *connection;

/* Runs a statement and gives its first value, 0 where there is none. */
static int64_t run(const char *sql)
{
    duckdb_result result;
    if (duckdb.query(connection, sql, &result)) {
        fprintf(stderr, "%s: %s\n", sql, duckdb.result_error(&result));
        exit(1);
    }
    int64_t value = duckdb.value_int64(&result, 0, 0);
    duckdb.destroy_result(&result);
    return value;
}

/* ---- DuckDB's results as a stream -------------------------------------------------------------------------------------------------------- */

static int result_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    memset(schema, 0, sizeof *schema);
    return duckdb.query_arrow_schema(stream->private_data, &schema);
}

static int result_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    memset(array, 0, sizeof *array);
    return duckdb.query_arrow_array(stream->private_data, &array);
}

static const char *result_error(struct ArrowArrayStream *stream)
{
    return duckdb.query_arrow_error(stream->private_data);
}

static void result_release(struct ArrowArrayStream *stream)
{
    duckdb.destroy_arrow(&stream->private_data);
    stream->release = NULL;
}

static struct ArrowArrayStream duckdb_stream(const char *sql)
{
    struct ArrowArrayStream stream = { result_schema, result_next, result_error, result_release, NULL };
    if (duckdb.query_arrow(connection, sql, &stream.private_data)) {
        fprintf(stderr, "%s: %s\n", sql, duckdb.query_arrow_error(stream.private_data));
        exit(1);
    }
    return stream;
}

/* ---- Ours into DuckDB -------------------------------------------------------------------------------------------------------------------- */

/* A stream before ours: DuckDB's scan takes a schema that it never releases, so that schemas are lent and released here. */
#define LENT_MAX 8
typedef struct lender {
    struct ArrowArrayStream stream;
    struct ArrowSchema lent[LENT_MAX];
    int count;
} lender;

static void lent_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int lender_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    lender *it = stream->private_data;
    NEED(it->count < LENT_MAX);
    int code = it->stream.get_schema(&it->stream, &it->lent[it->count]);
    if (code == 0) {
        *schema = it->lent[it->count++];
        schema->release = lent_release;
    }
    return code;
}

static int lender_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    lender *it = stream->private_data;
    return it->stream.get_next(&it->stream, array);
}

static const char *lender_error(struct ArrowArrayStream *stream)
{
    lender *it = stream->private_data;
    return it->stream.get_last_error(&it->stream);
}

static void lender_release(struct ArrowArrayStream *stream)
{
    lender *it = stream->private_data;
    for (int i = 0; i < it->count; i++) {
        it->lent[i].release(&it->lent[i]);
    }
    it->stream.release(&it->stream);
    stream->release = NULL;
}

/* Runs a statement over what a snapshot has, which is there as "incoming". */
static void duckdb_take(const char *sql, ivm_snapshot *snapshot, const ivm_arrow_options *options)
{
    lender ours = { .count = 0 };
    struct ArrowArrayStream stream = { lender_schema, lender_next, lender_error, lender_release, &ours };
    NEED(ivm_snapshot_arrow_stream(snapshot, options, &ours.stream, &error) == IVM_OK);
    NEED(duckdb.arrow_scan(connection, "incoming", &stream) == 0);
    (void)run(sql);
    (void)run("DROP VIEW incoming");
    stream.release(&stream);
}

/* ---- Into ivm ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_engine *engine;

/* Makes a table of ivm's of a query. */
static ivm_table *ivm_take(const char *name, const char *sql)
{
    ivm_table *table;
    ivm_batch *batch;
    struct ArrowSchema schema;
    struct ArrowArrayStream stream = duckdb_stream(sql);
    NEED(stream.get_schema(&stream, &schema) == 0);
    NEED(ivm_table_create_arrow(engine, name, &schema, NULL, NULL, &table, &error) == IVM_OK);
    schema.release(&schema);
    NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
    (void)ivm_batch_arrow_stream(batch, table, IVM_INSERT, &stream, NULL);
    NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_OK);
    return table;
}

/* The rows of a table, in order, as text. The caller frees it. */
static char *table_text(ivm_table *table)
{
    ivm_snapshot *snapshot;
    ivm_rows rows;
    size_t size, columns = ivm_table_columns_count(table);
    char *text;
    FILE *out = open_memstream(&text, &size);
    NEED(out && ivm_read_table(table, &snapshot, &error) == IVM_OK && ivm_snapshot_sort(snapshot, &error) == IVM_OK);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count * columns; i++) {
            char cell[IVM_VALUE_TEXT_SIZE];
            ivm_value value = ivm_rows_value(&rows, ivm_table_column_type(table, i % columns), i / columns, i % columns);
            bool string = value.type == IVM_STRING && !value.is_null;
            (void)ivm_value_format(&value, cell, sizeof cell);
            fprintf(out, i % columns ? " %.*s" : "\n%.*s", string ? (int)value.as.string.size : 99, string ? value.as.string.bytes : cell);
        }
    }
    ivm_snapshot_close(snapshot);
    (void)fclose(out);
    return text;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------------------------- */

#define TYPES_SQL                                                                                                                          \
    "SELECT (i - 50)::BIGINT a, CASE WHEN i % 3 > 0 THEN repeat('ab', i % 9) || i END b, CASE WHEN i % 5 > 0 THEN i / 8 END c, "           \
    "CASE WHEN i % 7 > 0 THEN i % 2 = 0 END d, DATE '1969-12-01' + i::INTEGER e, TIMESTAMPTZ '1969-12-31 12:00:00+00' + to_seconds(i * "   \
    "977) f, "                                                                                                                             \
    "CASE WHEN i % 4 > 0 THEN (i - 9)::DECIMAL(18, 3) / 8::DECIMAL(5, 0) END::DECIMAL(30, 3) g FROM range(5000) r(i)"

/* Every type, more rows than one of DuckDB's chunks has: there, back, and there again. */
static void there_and_back(void)
{
    ivm_snapshot *snapshot;
    ivm_table *table = ivm_take("types", TYPES_SQL);
    NEED(ivm_table_column_type(table, 5) == IVM_TIMESTAMP && ivm_table_column_type(table, 6) == IVM_DECIMAL(30, 3));
    NEED(ivm_read_table(table, &snapshot, &error) == IVM_OK);
    const ivm_arrow_options options = { .table = table, .chunk_rows = 700 };
    duckdb_take("CREATE TABLE types AS SELECT * FROM incoming", snapshot, &options);
    (void)run("CREATE TABLE wanted AS " TYPES_SQL);
    NEED(run("SELECT count(*) FROM types") == 5000);
    NEED(run("SELECT count(*) FROM (SELECT * FROM types EXCEPT ALL SELECT * FROM wanted)") == 0);
    NEED(run("SELECT count(*) FROM (SELECT * FROM wanted EXCEPT ALL SELECT * FROM types)") == 0);
    char *ours = table_text(table), *theirs = table_text(ivm_take("again", "SELECT * FROM types"));
    NEED(strlen(ours) > 5000 && strcmp(ours, theirs) == 0);
    free(ours);
    free(theirs);
}

#define FORMATS_SQL                                                                                                                        \
    "SELECT i::TINYINT a, i::USMALLINT b, i::UBIGINT c, (i / 4)::FLOAT d, ['x', 'a longer one', 'zz'][1 + i % 3]::word e, "                \
    "CASE WHEN i % 4 > 0 THEN 'inlined or not: ' || repeat('y', i % 20) END f, (i - 5)::DECIMAL(4, 1) g, (i - 5)::DECIMAL(9, 2) h, "       \
    "make_timestamp(i * 1000000)::TIMESTAMP_S k, make_timestamp(i * 1000)::TIMESTAMP_MS l, make_timestamp(i)::TIMESTAMP_NS m, "            \
    "make_timestamp(i) n, i::HUGEINT o, 'blob'::BLOB p FROM range(100) r(i)"

/* What DuckDB gives where it may choose: the same rows, whatever the layout. */
static void formats(void)
{
    (void)run("CREATE TYPE word AS ENUM ('zz', 'x', 'a longer one')");
    ivm_table *plain = ivm_take("plain", FORMATS_SQL);
    NEED(ivm_table_column_type(plain, 4) == IVM_STRING && ivm_table_column_type(plain, 8) == IVM_TIMESTAMP);
    char *text = table_text(plain);
    NEED(strstr(text, "\n7 7 7 1.75 a longer one inlined or not: yyyyyyy 2.0 2.00 1970-01-01T00:00:07.000000Z 1970-01-01T00:00:00.007000Z "
                      "1970-01-01T00:00:00.000007Z 1970-01-01T00:00:00.000007Z 7 blob"));
    static const char *const settings[] = { "SET arrow_large_buffer_size = true", "SET produce_arrow_string_view = true",
                                            "SET arrow_output_version = '1.5'" };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "formats_%zu", i);
        (void)run(settings[i]);
        char *other = table_text(ivm_take(name, FORMATS_SQL));
        NEED(strcmp(text, other) == 0);
        free(other);
    }
    free(text);
}

/* What cannot be read is named, and all of it released. */
static void nested(void)
{
    ivm_batch *batch;
    ivm_table *table = ivm_take("numbers", "SELECT 1::BIGINT a");
    struct ArrowArrayStream stream = duckdb_stream("SELECT [1, 2] a");
    NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
    NEED(ivm_batch_arrow_stream(batch, table, IVM_INSERT, &stream, NULL) == IVM_UNSUPPORTED);
    NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_UNSUPPORTED);
    NEED(strstr(error.message, "table numbers, column a: field a is of Arrow's format \"+"));
}

/* A copy of the view, from its changes alone. */
static void copy_keep(ivm_view *view)
{
    ivm_snapshot *snapshot;
    const ivm_arrow_options weighted = { .view = view, .weight = "weight" }, plain = { .view = view };
    NEED(ivm_read_changes(view, &snapshot, &error) == IVM_OK);
    duckdb_take("INSERT INTO copy SELECT * FROM incoming", snapshot, &weighted);
    NEED(ivm_read_view(view, &snapshot, &error) == IVM_OK);
    duckdb_take("CREATE OR REPLACE TABLE whole AS SELECT * FROM incoming", snapshot, &plain);
    (void)run("CREATE OR REPLACE TABLE net AS SELECT k, total, n FROM copy GROUP BY ALL HAVING sum(weight) = 1");
    NEED(run("SELECT count(*) FROM (SELECT k, total, n FROM copy GROUP BY ALL HAVING sum(weight) NOT IN (0, 1))") == 0);
    NEED(run("SELECT count(*) FROM (SELECT * FROM whole EXCEPT ALL SELECT * FROM net)") == 0);
    NEED(run("SELECT count(*) FROM (SELECT * FROM net EXCEPT ALL SELECT * FROM whole)") == 0);
}

/* Rows come from DuckDB and leave again; the view's changes carry a copy of it there. */
static void changes(void)
{
    ivm_view *view;
    ivm_table *table = ivm_take("sales", "SELECT i k, i v FROM range(0) r(i)");
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_scan(table, "s"), "k");
    plan = ivm_plan_count(ivm_plan_add(plan, "total", "sum", ivm_column("v")), "n");
    NEED(ivm_view_create(engine, "by_k", plan, NULL, &view, &error) == IVM_OK);
    (void)run("CREATE TABLE copy(k BIGINT, total BIGINT, n BIGINT, weight BIGINT)");
    (void)run("CREATE TABLE sold(k BIGINT, v BIGINT)");
    for (int round = 0; round < 6; round++) {
        char sql[256];
        ivm_batch *batch;
        const ivm_arrow_options options = { .weight = "w" };
        (void)snprintf(
            sql, sizeof sql,
            "CREATE OR REPLACE TABLE more AS SELECT i %% 40 k, i v, CASE WHEN i %% 3 = 0 THEN 2 ELSE 1 END w FROM range(%d, %d) r(i)",
            round * 500, round * 500 + 3000);
        (void)run(sql);
        struct ArrowArrayStream stream = duckdb_stream(round % 3 < 2 ? "SELECT * FROM more" : "SELECT w::TINYINT * -1 w, v, k FROM more");
        if (round % 3 == 2) {
            struct ArrowArrayStream first = duckdb_stream("SELECT * FROM more");
            NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
            (void)ivm_batch_arrow_stream(batch, table, IVM_WEIGHTED, &first, &options);
            NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_OK);
            copy_keep(view);
        }
        NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
        (void)ivm_batch_arrow_stream(batch, table, IVM_WEIGHTED, &stream, &options);
        NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_OK);
        copy_keep(view);
    }
    NEED(run("SELECT count(*) FROM copy WHERE weight < 0") > 0);
    NEED(run("SELECT count(*) FROM whole") == 40);
}

int main(int count, char **arguments)
{
    if (count != 2 || !library_open(arguments[1])) {
        printf("skipped: no DuckDB at %s\n", count == 2 && *arguments[1] ? arguments[1] : "a path that was given");
        return SKIPPED;
    }
    NEED(duckdb.open(NULL, &database) == 0 && duckdb.connect(database, &connection) == 0);
    NEED(ivm_engine_open(NULL, &engine, &error) == IVM_OK);
    there_and_back();
    formats();
    nested();
    changes();
    NEED(ivm_engine_close(engine, &error) == IVM_OK);
    duckdb.disconnect(&connection);
    duckdb.close(&database);
    printf("streams there and back with DuckDB %s\n", duckdb.library_version());
    return 0;
}
