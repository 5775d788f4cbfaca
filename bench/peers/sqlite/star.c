/* The star view kept by SQLite's triggers, as "CREATE TRIGGER" and "UPSERT" of its documentation have it: the view is a table, each changed row adds its
 * part to one of its rows. Hand-pruned: a new dimension row fires nothing, since its fact rows come after it. A dimension row that goes and comes with the same
 * key is an UPDATE. Indexes on the fact table exist only where a stream needs them: for rows that go (by k0) and for dimension rows that change.
 *
 * In memory, without a journal of its own making or syncs, one transaction a push, statements prepared once: what SQLite can do at its fastest. */
#include "option.h"
#include "star_stream.h"

#include <sqlite3.h>

#include <stdlib.h>
#include <string.h>

#define DIMENSIONS 4

typedef struct star_tables {
    sqlite3 *database;
    sqlite3_stmt *begin, *commit;
    sqlite3_stmt *fact_insert, *fact_delete;
    sqlite3_stmt *dimension_insert[DIMENSIONS], *dimension_update[DIMENSIONS];
} star_tables;

static void must(const star_tables *tables, bool fine)
{
    if (!fine) {
        exit(usage_error("sqlite: %s", sqlite3_errmsg(tables->database)));
    }
}

static void run(star_tables *tables, const char *sql)
{
    must(tables, sqlite3_exec(tables->database, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static sqlite3_stmt *prepare(star_tables *tables, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    must(tables, sqlite3_prepare_v3(tables->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) == SQLITE_OK);
    return statement;
}

/* ---- Tables and triggers ------------------------------------------------------------------------------------------------------- */

static void fact_triggers_create(star_tables *tables)
{
    run(tables, "CREATE TRIGGER fact_comes AFTER INSERT ON f BEGIN"
                " INSERT INTO star SELECT d0.attribute, d1.attribute, d2.attribute, d3.attribute, new.amount, 1 FROM d0, d1, d2, d3"
                "  WHERE d0.id = new.k0 AND d1.id = new.k1 AND d2.id = new.k2 AND d3.id = new.k3"
                "  ON CONFLICT DO UPDATE SET total = total + excluded.total, fact_rows = fact_rows + 1;"
                "END");
    run(tables, "CREATE TRIGGER fact_goes AFTER DELETE ON f BEGIN"
                " UPDATE star SET total = total - old.amount, fact_rows = fact_rows - 1"
                "  WHERE a0 = (SELECT attribute FROM d0 WHERE id = old.k0) AND a1 = (SELECT attribute FROM d1 WHERE id = old.k1)"
                "  AND a2 = (SELECT attribute FROM d2 WHERE id = old.k2) AND a3 = (SELECT attribute FROM d3 WHERE id = old.k3);"
                "END");
}

/* The fact rows under a dimension row, by the other attributes, leave one group and join another. */
static void dimension_trigger_create(star_tables *tables, int d)
{
    char sql[2048], groups[256] = "", joins[256] = "", by[128] = "";
    for (int i = 0; i < DIMENSIONS; i++) {
        char *group = groups + strlen(groups), *join = joins + strlen(joins), *column = by + strlen(by);
        if (i == d) {
            snprintf(group, sizeof groups - (size_t)(group - groups), "%%s.attribute, ");
            continue;
        }
        snprintf(group, sizeof groups - (size_t)(group - groups), "d%d.attribute, ", i);
        snprintf(join, sizeof joins - (size_t)(join - joins), " JOIN d%d ON d%d.id = f.k%d", i, i, i);
        snprintf(column, sizeof by - (size_t)(column - by), "%sd%d.attribute", *by ? ", " : "", i);
    }
    char gone[256], come[256];
    snprintf(gone, sizeof gone, groups, "old");
    snprintf(come, sizeof come, groups, "new");
    snprintf(sql, sizeof sql,
             "CREATE TRIGGER d%d_changes AFTER UPDATE OF attribute ON d%d BEGIN"
             " INSERT INTO star SELECT %s -sum(amount), -count(*) FROM f%s WHERE f.k%d = old.id GROUP BY %s"
             "  ON CONFLICT DO UPDATE SET total = total + excluded.total, fact_rows = fact_rows + excluded.fact_rows;"
             " INSERT INTO star SELECT %s sum(amount), count(*) FROM f%s WHERE f.k%d = new.id GROUP BY %s"
             "  ON CONFLICT DO UPDATE SET total = total + excluded.total, fact_rows = fact_rows + excluded.fact_rows;"
             "END",
             d, d, gone, joins, d, by, come, joins, d, by);
    run(tables, sql);
}

static void indexes_create(star_tables *tables, const star_stream *stream)
{
    bool wanted[DIMENSIONS] = { 0 };
    for (size_t p = 0; p < stream->parts_count; p++) {
        if (stream->parts[p].going) {
            wanted[stream->parts[p].table % DIMENSIONS] = true; /* of the fact table: k0 */
        }
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        char sql[64];
        snprintf(sql, sizeof sql, "CREATE INDEX f_k%d ON f(k%d)", d, d);
        if (wanted[d]) {
            run(tables, sql);
        }
    }
}

static void tables_open(star_tables *tables, const star_stream *stream)
{
    *tables = (star_tables){ 0 };
    must(tables, sqlite3_open(":memory:", &tables->database) == SQLITE_OK);
    run(tables, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4000000; PRAGMA temp_store = MEMORY");
    run(tables, "CREATE TABLE f(k0 INTEGER, k1 INTEGER, k2 INTEGER, k3 INTEGER, amount INTEGER)");
    run(tables, "CREATE TABLE star(a0 INTEGER, a1 INTEGER, a2 INTEGER, a3 INTEGER, total INTEGER, fact_rows INTEGER,"
                " PRIMARY KEY(a0, a1, a2, a3)) WITHOUT ROWID");
    for (int d = 0; d < DIMENSIONS; d++) {
        char sql[128];
        snprintf(sql, sizeof sql, "CREATE TABLE d%d(id INTEGER PRIMARY KEY, attribute INTEGER)", d);
        run(tables, sql);
    }
    fact_triggers_create(tables);
    indexes_create(tables, stream);
    for (int d = 0; d < DIMENSIONS; d++) {
        char sql[128];
        dimension_trigger_create(tables, d);
        snprintf(sql, sizeof sql, "INSERT INTO d%d VALUES(?1, ?2)", d);
        tables->dimension_insert[d] = prepare(tables, sql);
        snprintf(sql, sizeof sql, "UPDATE d%d SET attribute = ?2 WHERE id = ?1", d);
        tables->dimension_update[d] = prepare(tables, sql);
    }
    tables->begin = prepare(tables, "BEGIN");
    tables->commit = prepare(tables, "COMMIT");
    tables->fact_insert = prepare(tables, "INSERT INTO f VALUES(?1, ?2, ?3, ?4, ?5)");
    tables->fact_delete =
        prepare(tables, "DELETE FROM f WHERE rowid = (SELECT rowid FROM f WHERE k0 = ?1 AND k1 = ?2 AND k2 = ?3 AND k3 = ?4"
                        " AND amount = ?5 LIMIT 1)");
}

static void tables_close(star_tables *tables)
{
    for (sqlite3_stmt *statement; (statement = sqlite3_next_stmt(tables->database, NULL));) {
        sqlite3_finalize(statement);
    }
    sqlite3_close(tables->database);
}

/* ---- Pushes -------------------------------------------------------------------------------------------------------------------- */

static void statement_run(star_tables *tables, sqlite3_stmt *statement)
{
    must(tables, sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
}

static void part_push(star_tables *tables, const star_stream *stream, const stream_part *part, sqlite3_stmt *statement)
{
    size_t columns_count = stream_columns_count(stream, part);
    for (size_t r = 0; r < part->rows_count; r++) {
        for (size_t c = 0; c < columns_count; c++) {
            sqlite3_bind_int64(statement, (int)c + 1, part->columns[c][r]);
        }
        statement_run(tables, statement);
    }
}

/* A dimension's rows that go come again in the part behind, which is all that need be done. */
static void push_run(star_tables *tables, const star_stream *stream, const stream_push *push)
{
    bool going[DIMENSIONS] = { 0 };
    statement_run(tables, tables->begin);
    for (size_t i = 0; i < push->parts_count; i++) {
        const stream_part *part = &stream->parts[push->first + i];
        if (part->table == stream->dimensions) {
            part_push(tables, stream, part, part->going ? tables->fact_delete : tables->fact_insert);
        } else if (part->going) {
            going[part->table] = true;
        } else {
            part_push(tables, stream, part,
                      going[part->table] ? tables->dimension_update[part->table] : tables->dimension_insert[part->table]);
        }
    }
    statement_run(tables, tables->commit);
}

static void view_write(star_tables *tables, const char *path)
{
    FILE *view = stream_view_open(path);
    sqlite3_stmt *rows = prepare(tables, "SELECT a0, a1, a2, a3, total, fact_rows FROM star WHERE fact_rows <> 0");
    while (sqlite3_step(rows) == SQLITE_ROW) {
        int64_t cells[DIMENSIONS + 2];
        for (int c = 0; c < DIMENSIONS + 2; c++) {
            cells[c] = sqlite3_column_int64(rows, c);
        }
        stream_view_row(view, cells, DIMENSIONS + 2);
    }
    stream_view_close(view);
}

int main(int argc, char **argv)
{
    star_stream stream;
    star_tables tables;
    stream_times times;
    char about[128];
    if (argc != 3) {
        return usage_error("usage: star DIRECTORY VIEW");
    }
    star_stream_read(&stream, argv[1]);
    if (stream.dimensions != DIMENSIONS) {
        return usage_error("the star has %u dimensions, not %d", stream.dimensions, DIMENSIONS);
    }
    tables_open(&tables, &stream);
    stream_times_open(&times, &stream);
    for (size_t p = 0; p < stream.pushes_count; p++) {
        stream_times_start(&times);
        push_run(&tables, &stream, &stream.pushes[p]);
        stream_times_stop(&times, &stream.pushes[p]);
    }
    snprintf(about, sizeof about, "\"program\": \"SQLite %s triggers\", \"allocator\": \"malloc\"", sqlite3_libversion());
    stream_times_print(&times, &stream, about);
    view_write(&tables, argv[2]);
    tables_close(&tables);
    stream_times_close(&times);
    star_stream_free(&stream);
    return 0;
}
