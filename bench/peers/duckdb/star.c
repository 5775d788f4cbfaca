/* The star view on DuckDB, one thread, in memory, through its C API (docs: "C API", "Appender", "Data Chunks"), in two forms:
 *
 *   delta      the view is a table; each push runs, for each table it changes, the delta query of that table against the others as they stand, merges what
 *              it gives into the view and then applies the change: the statements that OpenIVM (an extension that compiles views to DuckDB SQL) makes.
 *              Rows carry a weight, as OpenIVM's delta tables do, so that a fact row that goes is appended and nothing is searched for.
 *              Like OpenIVM it runs SQL as text: statements prepared once would keep the plans, and the statistics, of empty tables.
 *   recompute  the tables are filled outside the clock; the query runs once over all of it
 *
 * DuckDB wants no indexes for such joins ("Performance Guide: Indexing"). Chunks are filled outside the clock. The library comes without its header in
 * the package that has it, so the few prototypes are declared here. */
#include "arena.h"
#include "option.h"
#include "star_stream.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is used of duckdb.h -------------------------------------------------------------------------------------------------- */

typedef uint64_t idx_t;
typedef enum { DuckDBSuccess, DuckDBError } duckdb_state;
enum { DUCKDB_TYPE_BIGINT = 5 };
typedef struct duckdb_database_s *duckdb_database;
typedef struct duckdb_connection_s *duckdb_connection;
typedef struct duckdb_config_s *duckdb_config;
typedef struct duckdb_appender_s *duckdb_appender;
typedef struct duckdb_logical_type_s *duckdb_logical_type;
typedef struct duckdb_data_chunk_s *duckdb_data_chunk;
typedef struct duckdb_vector_s *duckdb_vector;
typedef struct duckdb_result {
    idx_t deprecated_counts[3];
    void *deprecated_columns;
    char *deprecated_error_message;
    void *internal_data;
} duckdb_result;

const char *duckdb_library_version(void);
duckdb_state duckdb_create_config(duckdb_config *config);
duckdb_state duckdb_set_config(duckdb_config config, const char *name, const char *option);
void duckdb_destroy_config(duckdb_config *config);
duckdb_state duckdb_open_ext(const char *path, duckdb_database *database, duckdb_config config, char **error);
void duckdb_close(duckdb_database *database);
duckdb_state duckdb_connect(duckdb_database database, duckdb_connection *connection);
void duckdb_disconnect(duckdb_connection *connection);
duckdb_state duckdb_query(duckdb_connection connection, const char *query, duckdb_result *result);
const char *duckdb_result_error(duckdb_result *result);
void duckdb_destroy_result(duckdb_result *result);
duckdb_state duckdb_appender_create(duckdb_connection connection, const char *schema, const char *table, duckdb_appender *appender);
duckdb_state duckdb_append_data_chunk(duckdb_appender appender, duckdb_data_chunk chunk);
duckdb_state duckdb_appender_flush(duckdb_appender appender);
duckdb_state duckdb_appender_destroy(duckdb_appender *appender);
duckdb_logical_type duckdb_create_logical_type(int type);
void duckdb_destroy_logical_type(duckdb_logical_type *type);
duckdb_data_chunk duckdb_create_data_chunk(duckdb_logical_type *types, idx_t columns_count);
void duckdb_destroy_data_chunk(duckdb_data_chunk *chunk);
idx_t duckdb_data_chunk_get_size(duckdb_data_chunk chunk);
void duckdb_data_chunk_set_size(duckdb_data_chunk chunk, idx_t size);
duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk chunk, idx_t column);
void *duckdb_vector_get_data(duckdb_vector vector);
idx_t duckdb_vector_size(void);
duckdb_data_chunk duckdb_fetch_chunk(duckdb_result result);

/* ---- Tables -------------------------------------------------------------------------------------------------------------------- */

#define DIMENSIONS 4
#define TABLES (DIMENSIONS + 1) /* the fact table is the last */
#define SQL_SIZE 1024

typedef struct star_tables {
    duckdb_database database;
    duckdb_connection connection;
    duckdb_appender changes[TABLES]; /* into the table of a push's changes */
    duckdb_appender rows[TABLES];    /* into the table itself */
    char merge[TABLES][SQL_SIZE], apply[TABLES][SQL_SIZE], remove[DIMENSIONS][SQL_SIZE], clear[TABLES][SQL_SIZE];
} star_tables;

static void run(star_tables *tables, const char *sql)
{
    duckdb_result result;
    if (duckdb_query(tables->connection, sql, &result) != DuckDBSuccess) {
        exit(usage_error("duckdb: %s", duckdb_result_error(&result)));
    }
    duckdb_destroy_result(&result);
}

static void database_open(star_tables *tables)
{
    duckdb_config config;
    char *error = NULL;
    if (duckdb_create_config(&config) != DuckDBSuccess || duckdb_set_config(config, "threads", "1") != DuckDBSuccess ||
        duckdb_open_ext(":memory:", &tables->database, config, &error) != DuckDBSuccess ||
        duckdb_connect(tables->database, &tables->connection) != DuckDBSuccess) {
        exit(usage_error("duckdb: cannot open: %s", error ? error : "no reason given"));
    }
    duckdb_destroy_config(&config);
}

static const char *table_name(int table)
{
    static const char *const names[TABLES] = { "d0", "d1", "d2", "d3", "f" };
    return names[table];
}

static void table_create(star_tables *tables, int table)
{
    char sql[256], delta[16];
    const char *columns = table == DIMENSIONS ? "k0 BIGINT, k1 BIGINT, k2 BIGINT, k3 BIGINT, amount BIGINT" : "id BIGINT, attribute BIGINT";
    snprintf(sql, sizeof sql, "CREATE TABLE %s(%s, weight BIGINT)", table_name(table), columns);
    run(tables, sql);
    snprintf(delta, sizeof delta, "delta_%s", table_name(table));
    snprintf(sql, sizeof sql, "CREATE TABLE %s(%s, weight BIGINT)", delta, columns);
    run(tables, sql);
    if (duckdb_appender_create(tables->connection, NULL, table_name(table), &tables->rows[table]) != DuckDBSuccess ||
        duckdb_appender_create(tables->connection, NULL, delta, &tables->changes[table]) != DuckDBSuccess) {
        exit(usage_error("duckdb: no appender"));
    }
}

/* ---- The delta form ------------------------------------------------------------------------------------------------------------ */

/* What a change of one table adds to the view, the others as they stand. */
static void statements_write(star_tables *tables, int table)
{
    char from[TABLES][32], weights[128] = "";
    for (int t = 0; t < TABLES; t++) {
        snprintf(from[t], sizeof from[t], "%s%s", t == table ? "delta_" : "", table_name(t));
    }
    snprintf(weights, sizeof weights, "f.weight");
    if (table < DIMENSIONS) {
        snprintf(weights, sizeof weights, "f.weight * d%d.weight", table);
    }
    snprintf(tables->merge[table], SQL_SIZE,
             "INSERT INTO star SELECT d0.attribute, d1.attribute, d2.attribute, d3.attribute, sum(f.amount * %s), sum(%s)"
             " FROM %s f, %s d0, %s d1, %s d2, %s d3 WHERE f.k0 = d0.id AND f.k1 = d1.id AND f.k2 = d2.id AND f.k3 = d3.id GROUP BY ALL"
             " ON CONFLICT DO UPDATE SET total = total + excluded.total, fact_rows = fact_rows + excluded.fact_rows",
             weights, weights, from[DIMENSIONS], from[0], from[1], from[2], from[3]);
    const char *name = table_name(table);
    if (table < DIMENSIONS) {
        snprintf(tables->remove[table], SQL_SIZE, "DELETE FROM %s WHERE id IN (SELECT id FROM delta_%s WHERE weight < 0)", name, name);
    }
    snprintf(tables->apply[table], SQL_SIZE, "INSERT INTO %s SELECT * FROM delta_%s%s", name, name,
             table < DIMENSIONS ? " WHERE weight > 0" : "");
    snprintf(tables->clear[table], SQL_SIZE, "DELETE FROM delta_%s", name);
}

static void view_create(star_tables *tables)
{
    run(tables,
        "CREATE TABLE star(a0 BIGINT, a1 BIGINT, a2 BIGINT, a3 BIGINT, total BIGINT, fact_rows BIGINT, PRIMARY KEY(a0, a1, a2, a3))");
    for (int t = 0; t < TABLES; t++) {
        statements_write(tables, t);
    }
}

/* ---- Chunks -------------------------------------------------------------------------------------------------------------------- */

typedef struct part_chunks {
    duckdb_data_chunk *chunks;
    size_t count;
    int table;
    bool going;
} part_chunks;

/* The part's rows, each with its weight, in pieces of the size that DuckDB works in. */
static void chunks_make(part_chunks *made, const star_stream *stream, const stream_part *part)
{
    size_t columns_count = stream_columns_count(stream, part), size = duckdb_vector_size();
    duckdb_logical_type types[TABLES + 1];
    *made = (part_chunks){ .table = (int)part->table, .going = part->going, .count = (part->rows_count + size - 1) / size };
    made->chunks = memory_take(made->count * sizeof *made->chunks);
    for (size_t c = 0; c <= columns_count; c++) {
        types[c] = duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);
    }
    for (size_t k = 0; k < made->count; k++) {
        size_t first = k * size, count = part->rows_count - first < size ? part->rows_count - first : size;
        duckdb_data_chunk chunk = made->chunks[k] = duckdb_create_data_chunk(types, columns_count + 1);
        for (size_t c = 0; c < columns_count; c++) {
            memcpy(duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, c)), part->columns[c] + first, count * sizeof(int64_t));
        }
        int64_t *weights = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, columns_count));
        for (size_t r = 0; r < count; r++) {
            weights[r] = part->going ? -1 : 1;
        }
        duckdb_data_chunk_set_size(chunk, count);
    }
    for (size_t c = 0; c <= columns_count; c++) {
        duckdb_destroy_logical_type(&types[c]);
    }
}

static void chunks_free(part_chunks *made)
{
    for (size_t k = 0; k < made->count; k++) {
        duckdb_destroy_data_chunk(&made->chunks[k]);
    }
    free(made->chunks);
}

static void chunks_append(duckdb_appender appender, const part_chunks *part)
{
    for (size_t k = 0; k < part->count; k++) {
        if (duckdb_append_data_chunk(appender, part->chunks[k]) != DuckDBSuccess) {
            exit(usage_error("duckdb: a chunk could not be appended"));
        }
    }
    if (duckdb_appender_flush(appender) != DuckDBSuccess) {
        exit(usage_error("duckdb: rows could not be appended"));
    }
}

/* ---- Pushes -------------------------------------------------------------------------------------------------------------------- */

/* Table after table: all parts of one, its delta query, its change. */
static void push_delta(star_tables *tables, const part_chunks *parts, size_t count)
{
    run(tables, "BEGIN");
    for (size_t i = 0; i < count; i++) {
        int table = parts[i].table;
        chunks_append(tables->changes[table], &parts[i]);
        if (i + 1 < count && parts[i + 1].table == table) {
            continue;
        }
        run(tables, tables->merge[table]);
        if (table < DIMENSIONS && (parts[i].going || (i > 0 && parts[i - 1].table == table))) {
            run(tables, tables->remove[table]);
        }
        run(tables, tables->apply[table]);
        run(tables, tables->clear[table]);
    }
    run(tables, "COMMIT");
}

static void push_rows(star_tables *tables, const part_chunks *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (parts[i].going) {
            exit(usage_error("duckdb: recompute takes streams of rows that come"));
        }
        chunks_append(tables->rows[parts[i].table], &parts[i]);
    }
}

static void stream_push_all(star_tables *tables, const star_stream *stream, bool delta, stream_times *times)
{
    for (size_t p = 0; p < stream->pushes_count; p++) {
        const stream_push *push = &stream->pushes[p];
        part_chunks parts[STREAM_PARTS_MAX];
        for (size_t i = 0; i < push->parts_count; i++) {
            chunks_make(&parts[i], stream, &stream->parts[push->first + i]);
        }
        if (delta) {
            stream_times_start(times);
            push_delta(tables, parts, push->parts_count);
            stream_times_stop(times, push);
        } else {
            push_rows(tables, parts, push->parts_count);
        }
        for (size_t i = 0; i < push->parts_count; i++) {
            chunks_free(&parts[i]);
        }
    }
}

/* The whole query, for its time; the unit is every fact row. */
static void recompute(star_tables *tables, star_stream *stream, stream_times *times)
{
    const stream_push whole = { .timed = true };
    stream->units = 0;
    for (size_t p = 0; p < stream->parts_count; p++) {
        stream->units += stream->parts[p].table == stream->dimensions ? stream->parts[p].rows_count : 0;
    }
    stream_times_start(times);
    run(tables, "CREATE TABLE star AS SELECT d0.attribute, d1.attribute, d2.attribute, d3.attribute, sum(amount)::BIGINT AS total, "
                "count(*) AS fact_rows"
                " FROM f, d0, d1, d2, d3 WHERE f.k0 = d0.id AND f.k1 = d1.id AND f.k2 = d2.id AND f.k3 = d3.id GROUP BY ALL");
    stream_times_stop(times, &whole);
}

static void view_write(star_tables *tables, const char *path)
{
    duckdb_result result;
    FILE *view = stream_view_open(path);
    if (duckdb_query(tables->connection, "SELECT * FROM star WHERE fact_rows <> 0", &result) != DuckDBSuccess) {
        exit(usage_error("duckdb: %s", duckdb_result_error(&result)));
    }
    for (duckdb_data_chunk chunk; (chunk = duckdb_fetch_chunk(result));) {
        const int64_t *columns[DIMENSIONS + 2];
        for (idx_t c = 0; c < DIMENSIONS + 2; c++) {
            columns[c] = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, c));
        }
        for (idx_t r = 0; r < duckdb_data_chunk_get_size(chunk); r++) {
            int64_t cells[DIMENSIONS + 2];
            for (int c = 0; c < DIMENSIONS + 2; c++) {
                cells[c] = columns[c][r];
            }
            stream_view_row(view, cells, DIMENSIONS + 2);
        }
        duckdb_destroy_data_chunk(&chunk);
    }
    duckdb_destroy_result(&result);
    stream_view_close(view);
}

static void tables_close(star_tables *tables)
{
    for (int t = 0; t < TABLES; t++) {
        duckdb_appender_destroy(&tables->changes[t]);
        duckdb_appender_destroy(&tables->rows[t]);
    }
    duckdb_disconnect(&tables->connection);
    duckdb_close(&tables->database);
}

int main(int argc, char **argv)
{
    star_stream stream;
    star_tables tables = { 0 };
    stream_times times;
    char about[128];
    if (argc != 4 || (strcmp(argv[3], "delta") != 0 && strcmp(argv[3], "recompute") != 0)) {
        return usage_error("usage: star DIRECTORY VIEW delta|recompute");
    }
    bool delta = strcmp(argv[3], "delta") == 0;
    star_stream_read(&stream, argv[1]);
    if (stream.dimensions != DIMENSIONS) {
        return usage_error("the star has %u dimensions, not %d", stream.dimensions, DIMENSIONS);
    }
    database_open(&tables);
    for (int t = 0; t < TABLES; t++) {
        table_create(&tables, t);
    }
    if (delta) {
        view_create(&tables);
    }
    stream_times_open(&times, &stream);
    stream_push_all(&tables, &stream, delta, &times);
    if (!delta) {
        recompute(&tables, &stream, &times);
    }
    snprintf(about, sizeof about, "\"program\": \"DuckDB %s %s\", \"allocator\": \"its own\"", duckdb_library_version(), argv[3]);
    stream_times_print(&times, &stream, about);
    view_write(&tables, argv[2]);
    tables_close(&tables);
    stream_times_close(&times);
    star_stream_free(&stream);
    return 0;
}
