/* The scenario commands "expect" and "expect_changes": what a view or table holds, or how the last push changed a view, against the
 * rows in the file. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define ROWS_SHOWN_MAX 5

typedef struct expected {
    const json_t *want; /* the members of the command */
    const json_t *rows;
    bool weighted; /* rows are [weight, row] */
    ivm_snapshot *snapshot;
    ivm_view *view; /* one of the two */
    ivm_table *table;
    bag_columns columns;
} expected;

/* ---- Columns ------------------------------------------------------------------------------------------------------------------- */

static const char *column_name(const expected *contents, size_t column)
{
    return contents->table ? ivm_table_column_name(contents->table, column) : ivm_view_column_name(contents->view, column);
}

static ivm_status exact_column(replay_session *replay, const expected *contents, const char *name, bool *near)
{
    for (size_t i = 0; name && i < contents->columns.count; i++) {
        if (strcmp(column_name(contents, i), name) == 0) {
            near[i] = false;
            return IVM_OK;
        }
    }
    return replay_fail(replay, IVM_UNKNOWN_COLUMN, "exact: no column %s", name ? name : "of that kind");
}

static ivm_status columns_read(replay_session *replay, expected *contents)
{
    size_t count = ivm_snapshot_columns_count(contents->snapshot);
    ivm_type *types = arena_take(&replay->memory, (count + 1) * sizeof *types);
    bool *near = arena_take(&replay->memory, count + 1);
    for (size_t i = 0; i < count; i++) {
        types[i] = ivm_snapshot_column_type(contents->snapshot, i);
        near[i] = IVM_TYPE_KIND(types[i]) == IVM_FLOAT64;
    }
    contents->columns = (bag_columns){ count, types, near };
    const json_t *exact = json_object_get(contents->want, "exact");
    for (size_t i = 0; i < json_array_size(exact); i++) {
        ivm_status status = exact_column(replay, contents, json_string_value(json_array_get(exact, i)), near);
        if (status != IVM_OK) {
            return status;
        }
    }
    return IVM_OK;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------------- */

/* Expected values are those of a row in a push, and a whole number written as 5.0 will do for an int64. */
static bool expected_read(ivm_type type, const json_t *json, ivm_value *value)
{
    double number = json_real_value(json);
    if (type == IVM_INT64 && json_is_real(json) && number == trunc(number) && fabs(number) < 0x1p62) {
        *value = ivm_int64((int64_t)number);
        return true;
    }
    return cell_read(type, json, value);
}

static bag_row want_row(replay_session *replay, const expected *contents, const json_t *json)
{
    const json_t *row = contents->weighted ? json_array_get(json, 1) : json;
    const json_t *weight = contents->weighted ? json_array_get(json, 0) : NULL;
    size_t count = contents->columns.count;
    bag_row out = { contents->weighted ? json_integer_value(weight) : 1, NULL, json };
    ivm_value *cells = arena_take(&replay->memory, (count + 1) * sizeof *cells);
    if (!json_is_array(row) || json_array_size(row) != count || (contents->weighted && !json_is_integer(weight))) {
        return out;
    }
    for (size_t i = 0; i < count; i++) {
        if (!expected_read(contents->columns.types[i], json_array_get(row, i), &cells[i])) {
            return out;
        }
    }
    out.cells = cells;
    return out;
}

/* ---- Telling ------------------------------------------------------------------------------------------------------------------- */

static void row_write(const expected *contents, const bag_row *row, FILE *out)
{
    if (row->json) {
        json_dumpf(row->json, out, JSON_ENCODE_ANY);
        return;
    }
    bool weighted = contents->weighted || row->weight != 1;
    fprintf(out, "[");
    if (weighted) {
        fprintf(out, "%lld, [", (long long)row->weight);
    }
    for (size_t i = 0; i < contents->columns.count; i++) {
        fputs(i ? ", " : "", out);
        cell_write(contents->columns.types[i], &row->cells[i], out);
    }
    fputs(weighted ? "]]" : "]", out);
}

static void rows_write(const expected *contents, const char *what, const row_bag *bag, FILE *out)
{
    fprintf(out, "%s [", what);
    for (size_t i = 0; i < bag->rows_count && i < ROWS_SHOWN_MAX; i++) {
        fputs(i ? ", " : "", out);
        row_write(contents, &bag->rows[i], out);
    }
    if (bag->rows_count > ROWS_SHOWN_MAX) {
        fprintf(out, ", and %zu more", bag->rows_count - ROWS_SHOWN_MAX);
    }
    fputs("]", out);
}

static void unheld_tell(replay_session *replay, const expected *contents, const row_bag *missing, const row_bag *unexpected)
{
    size_t size;
    FILE *out = open_memstream(&replay->unheld, &size);
    if (!out) {
        return;
    }
    rows_write(contents, "missing", missing, out);
    rows_write(contents, "; unexpected", unexpected, out);
    fclose(out);
}

/* ---- Commands ------------------------------------------------------------------------------------------------------------------ */

static ivm_status compare(replay_session *replay, expected *contents)
{
    row_bag want = { 0 }, got = { 0 };
    ivm_status status = columns_read(replay, contents);
    if (status != IVM_OK) {
        return status;
    }
    for (size_t i = 0; i < json_array_size(contents->rows); i++) {
        bag_add(&want, want_row(replay, contents, json_array_get(contents->rows, i)));
    }
    status = bag_take(&got, contents->snapshot, &contents->columns, &replay->memory);
    if (status == IVM_OK) {
        bag_net(&got, &contents->columns, !contents->weighted);
        bag_cancel(&want, &got, &contents->columns);
        if (want.rows_count || got.rows_count) {
            unheld_tell(replay, contents, &want, &got);
        }
    } else {
        replay_fail(replay, status, "the snapshot ended early");
    }
    bag_free(&want);
    bag_free(&got);
    return status;
}

static ivm_status contents_compare(replay_session *replay, expected *contents)
{
    if (!json_is_array(contents->rows)) {
        ivm_snapshot_close(contents->snapshot);
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "the expected rows are missing");
    }
    ivm_status status = compare(replay, contents);
    ivm_snapshot_close(contents->snapshot);
    return status;
}

ivm_status replay_differences_write(replay_session *replay, ivm_view *view, ivm_snapshot *differences, FILE *out)
{
    expected contents = { .weighted = true, .view = view, .snapshot = differences };
    row_bag all = { 0 }, missing = { 0 }, unexpected = { 0 };
    ivm_status status = columns_read(replay, &contents);
    if (status == IVM_OK) {
        status = bag_take(&all, differences, &contents.columns, &replay->memory);
    }
    for (size_t i = 0; i < all.rows_count; i++) {
        bag_row row = all.rows[i];
        bool lacks = row.weight > 0;
        row.weight = lacks || row.weight == INT64_MIN ? row.weight : -row.weight;
        bag_add(lacks ? &missing : &unexpected, row);
    }
    bag_net(&missing, &contents.columns, false);
    bag_net(&unexpected, &contents.columns, false);
    rows_write(&contents, "missing", &missing, out);
    rows_write(&contents, "; unexpected", &unexpected, out);
    bag_free(&all);
    bag_free(&missing);
    bag_free(&unexpected);
    return status;
}

ivm_status replay_expect(replay_session *replay, const json_t *line)
{
    expected contents = { .want = json_object_get(line, "expect") };
    const char *name = member_text(contents.want, "view");
    const json_t *weighted = json_object_get(contents.want, "weighted");
    contents.weighted = weighted != NULL;
    contents.rows = weighted ? weighted : json_object_get(contents.want, "rows");
    if (!name) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a view is missing");
    }
    ivm_status status = ivm_table_find(replay->engine, name, &contents.table, &replay->error);
    if (status == IVM_OK) {
        status = ivm_read_table(contents.table, &contents.snapshot, &replay->error);
    } else {
        contents.table = NULL;
        status = ivm_view_find(replay->engine, name, &contents.view, &replay->error);
        if (status == IVM_OK) {
            status = ivm_read_view(contents.view, &contents.snapshot, &replay->error);
        }
    }
    return status == IVM_OK ? contents_compare(replay, &contents) : status;
}

ivm_status replay_expect_changes(replay_session *replay, const json_t *line)
{
    expected contents = { .want = json_object_get(line, "expect_changes"), .weighted = true };
    const char *name = member_text(contents.want, "view");
    contents.rows = json_object_get(contents.want, "rows");
    if (!name) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a view is missing");
    }
    ivm_status status = ivm_view_find(replay->engine, name, &contents.view, &replay->error);
    if (status == IVM_OK) {
        status = ivm_read_changes(contents.view, &contents.snapshot, &replay->error);
    }
    return status == IVM_OK ? contents_compare(replay, &contents) : status;
}
