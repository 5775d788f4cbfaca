/* The fixture: an engine whose every byte is counted. */
#include "fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS_MAX 16

void fixture_open(fixture *it)
{
    memset(it, 0, sizeof *it);
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = 7;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK, "%s", it->error.message);
}

void fixture_close(fixture *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator), "%ld blocks left, %lu faults", (long)it->allocator.blocks,
              (unsigned long)it->allocator.faults);
}

ivm_table *fixture_table_like(fixture *it, const char *name, const char *columns, const ivm_table_options *like)
{
    char text[512], *rest = NULL;
    ivm_column_definition definitions[COLUMNS_MAX];
    size_t count = 0;
    cr_assert_lt(snprintf(text, sizeof text, "%s", columns), (int)sizeof text);
    for (char *part = strtok_r(text, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        char column[64], type[64], flag[64] = "";
        cr_assert_lt(count, (size_t)COLUMNS_MAX);
        cr_assert_geq(sscanf(part, " %63s %63s %63[^;]", column, type, flag), 2);
        definitions[count].name = strcpy(part, column);
        definitions[count].not_null = strstr(flag, "not null") != NULL;
        cr_assert_eq(ivm_type_parse(type, &definitions[count].type, &it->error), IVM_OK, "%s", it->error.message);
        count++;
    }
    ivm_table_options options = *like;
    options.columns = definitions;
    options.columns_count = count;
    ivm_table *table = NULL;
    cr_assert_eq(ivm_table_create(it->engine, name, &options, &table, &it->error), IVM_OK, "%s", it->error.message);
    return table;
}

ivm_table *fixture_table(fixture *it, const char *name, const char *columns, const char *key)
{
    return fixture_table_like(it, name, columns, &(ivm_table_options){ .key = key });
}

ivm_table *fixture_table_find(fixture *it, const char *name)
{
    ivm_table *table = NULL;
    cr_assert_eq(ivm_table_find(it->engine, name, &table, &it->error), IVM_OK, "%s", it->error.message);
    return table;
}

ivm_view *fixture_view_find(fixture *it, const char *name)
{
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_find(it->engine, name, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

ivm_status fixture_check(fixture *it, ivm_plan *plan, ivm__node **node)
{
    if (!plan) {
        it->error = (ivm_error)IVM_ERROR_INIT;
        ivm__builder_cause_take(&it->error);
        return it->error.status;
    }
    ivm_status status = ivm__plan_check(it->engine, plan, node, &it->error);
    ivm_plan_free(plan);
    return status;
}

void fixture_refuses(fixture *it, ivm_plan *plan, ivm_status status, const char *part)
{
    int64_t blocks = it->allocator.blocks;
    ivm__node *node = NULL;
    ivm_status given = fixture_check(it, plan, &node);
    cr_assert_eq(given, status, "%s, not %s: %s", ivm_status_name(given), ivm_status_name(status), it->error.message);
    cr_assert_eq(it->error.status, status);
    cr_assert_not_null(strstr(it->error.message, part), "\"%s\" is not in \"%s\"", part, it->error.message);
    cr_assert_eq(it->allocator.blocks, blocks, "%ld blocks left by \"%s\"", (long)(it->allocator.blocks - blocks), it->error.message);
}

ivm__node *fixture_accepts(fixture *it, ivm_plan *plan)
{
    ivm__node *node = NULL;
    ivm_status given = fixture_check(it, plan, &node);
    cr_assert_eq(given, IVM_OK, "%s: %s", ivm_status_name(given), it->error.message);
    return node;
}

#define ROWS_MAX 256
#define ROW_SIZE 256

static void format_row(const ivm_snapshot *snapshot, const ivm_rows *rows, size_t row, char text[ROW_SIZE])
{
    size_t size = (size_t)snprintf(text, ROW_SIZE, "%ld*", (long)(rows->weights ? rows->weights[row] : 1));
    for (size_t i = 0; i < rows->columns_count; i++) {
        ivm_value value = ivm_rows_value(rows, ivm_snapshot_column_type(snapshot, i), row, i);
        text[size] = ',';
        size += i > 0;
        size += ivm_value_format(&value, text + size, ROW_SIZE - size);
        cr_assert_lt(size, (size_t)ROW_SIZE);
    }
    text[size] = 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *fixture_rows(ivm_snapshot *snapshot)
{
    static char lines[ROWS_MAX][ROW_SIZE], text[ROWS_MAX * ROW_SIZE];
    size_t count = 0, size = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            cr_assert_lt(count, (size_t)ROWS_MAX);
            format_row(snapshot, &rows, i, lines[count++]);
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    ivm_snapshot_close(snapshot);
    qsort(lines, count, ROW_SIZE, compare_texts);
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i ? " " : "", lines[i]);
    }
    return text;
}

const char *fixture_view(fixture *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return fixture_rows(snapshot);
}

const char *fixture_changes(fixture *it, ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_changes(view, &snapshot, &it->error), IVM_OK, "%s", it->error.message);
    return fixture_rows(snapshot);
}

ivm_view *fixture_make_with(fixture *it, const char *name, ivm_plan *plan, const ivm_view_options *options)
{
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_create(it->engine, name, plan, options, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

ivm_view *fixture_make(fixture *it, const char *name, ivm_plan *plan)
{
    return fixture_make_with(it, name, plan, NULL);
}

ivm_fact *fixture_fact(fixture *it, ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust)
{
    ivm_fact *fact = NULL;
    ivm_status status = ivm_foreign_key_declare(child, columns, parent, parent_columns, trust, &fact, &it->error);
    cr_assert_eq(status, IVM_OK, "%s", it->error.message);
    return fact;
}

ivm_status fixture_push(fixture *it, ivm_table *table, ivm_change change, const char *rows)
{
    char text[1024], *rest_rows = NULL;
    ivm_batch *batch = NULL;
    cr_assert_lt(snprintf(text, sizeof text, "%s", rows), (int)sizeof text);
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK, "%s", it->error.message);
    for (char *row = strtok_r(text, " ", &rest_rows); row; row = strtok_r(NULL, " ", &rest_rows)) {
        ivm_value values[COLUMNS_MAX];
        char *rest = NULL;
        size_t count = 0;
        for (char *cell = strtok_r(row, ",", &rest); cell; cell = strtok_r(NULL, ",", &rest), count++) {
            ivm_type type = ivm_table_column_type(table, count);
            values[count] = ivm_null();
            if (strcmp(cell, "null") != 0) {
                ivm_status status = ivm_value_parse(type, cell, strlen(cell), &values[count], &it->error);
                cr_assert_eq(status, IVM_OK, "%s", it->error.message);
            }
        }
        (void)ivm_batch_row(batch, table, change, 1, values, count);
    }
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

ivm_plan *scan_of(const char *table, const char *alias)
{
    return ivm_plan_scan_name(table, alias);
}

ivm_expr *call_of(const char *function, const char *column, int64_t literal)
{
    return ivm_call2(function, ivm_column(column), ivm_literal(ivm_int64(literal)));
}
