/* naive_scenario FILE...: judges the expectations of scenario files by the oracle in C, without an engine. What it cannot judge (planning, floats that
 * are no small dyadic numbers, rules of transient tables) is counted apart. The last line is "N passed, N failed", of files; one that fails is told. */
#include "scenario.h"

#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVED_MAX 16u
#define NEAR 1e-12

typedef struct judging {
    naive_pool pool;
    naive_database database;
    const char *path;
    struct {
        const char *name;
        naive_database database;
    } saved[SAVED_MAX];
    size_t saved_count;
    size_t judged, unjudged, wrong;
} judging;

/* What bench/replay/replay_cell.c and the readers here need of bench/replay/replay.c. */
const char *member_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int word_position(const char *const *words, const char *word)
{
    for (int i = 0; word && words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- Catalog ----------------------------------------------------------------------------------------------------------------------- */

/* A list of strings; NULL where one of them is none. */
static const char **names_read(judging *it, const json_t *list)
{
    const char **names = naive_take(&it->pool, (json_array_size(list) + 1) * sizeof *names);
    for (size_t i = 0; i < json_array_size(list); i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i]) {
            return NULL;
        }
    }
    return names;
}

static ivm_status column_read(const json_t *json, ivm_column_definition *column)
{
    bool list = json_is_array(json);
    ivm_error error;
    const char *last = json_string_value(json_array_get(json, 2));
    const char *type = list ? json_string_value(json_array_get(json, 1)) : member_text(json, "type");
    column->name = list ? json_string_value(json_array_get(json, 0)) : member_text(json, "name");
    column->not_null = list ? last && strcmp(last, "not null") == 0 : json_is_false(json_object_get(json, "nullable"));
    return column->name && type ? ivm_type_parse(type, &column->type, &error) : IVM_INVALID_ARGUMENT;
}

static ivm_status judge_table(judging *it, const json_t *line)
{
    const json_t *members = json_object_get(line, "table"), *list = json_object_get(members, "columns");
    size_t count = json_array_size(list);
    ivm_column_definition *columns = naive_take(&it->pool, count * sizeof *columns);
    const char **key = names_read(it, json_object_get(members, "key"));
    ivm_table_options options = { .columns = columns,
                                  .columns_count = count,
                                  .append_only = json_is_true(json_object_get(members, "append_only")),
                                  .allow_negative = json_is_true(json_object_get(members, "allow_negative")),
                                  .transient = json_is_false(json_object_get(members, "retain")) };
    size_t key_count = json_array_size(json_object_get(members, "key"));
    if (!key || key_count > NAIVE_KEY_MAX) {
        return NAIVE_UNJUDGED;
    }
    for (size_t i = 0; i < count; i++) {
        NAIVE_TRY(column_read(json_array_get(list, i), &columns[i]));
    }
    return naive_table_create(&it->database, member_text(members, "name"), &options, key, key_count);
}

static ivm_status judge_fact(judging *it, const json_t *line)
{
    static const char *const trusts[] = { "rely", "enforced", "tracked", NULL };
    const json_t *members = json_object_get(line, "foreign_key");
    const char **columns = names_read(it, json_object_get(members, "columns"));
    const char **parents = names_read(it, json_object_get(members, "parent_columns"));
    size_t count = json_array_size(json_object_get(members, "columns"));
    int trust = json_object_get(members, "trust") ? word_position(trusts, member_text(members, "trust")) : IVM_RELY;
    const char *child = member_text(members, "child"), *parent = member_text(members, "parent");
    if (!columns || !parents || count > NAIVE_KEY_MAX || trust < 0 || !child || !parent) {
        return IVM_INVALID_ARGUMENT;
    }
    if (count != json_array_size(json_object_get(members, "parent_columns"))) {
        return naive_table_find(&it->database, child) && naive_table_find(&it->database, parent) ? IVM_INVALID_ARGUMENT : IVM_UNKNOWN_TABLE;
    }
    return naive_fact_declare(&it->database, child, columns, parent, parents, count, (ivm_trust)trust);
}

static ivm_status judge_view(judging *it, const json_t *line)
{
    static const char *const refreshes[] = { "immediate", "deferred", NULL };
    const json_t *members = json_object_get(line, "view");
    int refresh = json_object_get(members, "refresh") ? word_position(refreshes, member_text(members, "refresh")) : IVM_IMMEDIATE;
    naive_plan *plan;
    if (refresh < 0) {
        return IVM_INVALID_ARGUMENT;
    }
    if (strcmp(member_text(line, "error") ? member_text(line, "error") : "", "unsupported") == 0) {
        return NAIVE_UNJUDGED; /* what may not read transient tables is not judged */
    }
    NAIVE_TRY(naive_plan_read(&it->pool, json_object_get(members, "plan"), &plan));
    ivm_status status = naive_view_create(&it->database, member_text(members, "name"), plan, refresh == IVM_DEFERRED);
    if (status == NAIVE_UNJUDGED) { /* it is there all the same */
        naive_view view = { .name = member_text(members, "name"), .plan = plan, .deferred = refresh == IVM_DEFERRED, .unjudged = true };
        naive_relation_init(&view.rows, plan->width);
        naive_relation_init(&view.changes, plan->width);
        it->database.views = naive_grow(it->database.views, it->database.views_count + 1, sizeof view);
        it->database.views[it->database.views_count++] = view;
        status = IVM_OK;
    }
    return status;
}

/* ---- Pushes ------------------------------------------------------------------------------------------------------------------------ */

typedef struct batch {
    naive_change *changes;
    size_t count;
} batch;

static ivm_status change_read(judging *it, const naive_table *table, ivm_change kind, const json_t *json, batch *out)
{
    bool key = kind == IVM_DELETE_KEY, weighted = kind == IVM_WEIGHTED;
    const json_t *weight = json_array_get(json, 0), *row = weighted ? json_array_get(json, 1) : json;
    size_t count = json_array_size(row);
    ivm_value *values = naive_take(&it->pool, (count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        size_t column = key && i < table->key_count ? table->key[i] : i;
        if (i >= (key ? table->key_count : table->columns_count) ||
            !cell_read(table->columns[column].type, json_array_get(row, i), &values[i])) {
            return IVM_TYPE_MISMATCH;
        }
    }
    if (weighted && !json_is_integer(weight)) {
        return IVM_TYPE_MISMATCH;
    }
    out->changes = naive_grow(out->changes, out->count + 1, sizeof *out->changes);
    out->changes[out->count++] = (naive_change){ table->name, kind, weighted ? json_integer_value(weight) : 1, values, count };
    return IVM_OK;
}

static ivm_status part_read(judging *it, const json_t *part, batch *out)
{
    static const char *const kinds[] = { "insert", "delete", "weighted", "upsert", "delete_key" };
    for (int kind = IVM_INSERT; kind <= IVM_DELETE_KEY; kind++) {
        const char *name = member_text(part, kinds[kind]);
        const json_t *rows = json_object_get(part, kind == IVM_DELETE_KEY ? "keys" : "rows");
        if (!name) {
            continue;
        }
        const naive_table *table = naive_table_find(&it->database, name);
        if (!table) {
            return IVM_UNKNOWN_TABLE;
        }
        if (kind >= IVM_UPSERT && !table->key_count) {
            return table->transient ? IVM_UNSUPPORTED : IVM_INVALID_ARGUMENT;
        }
        for (size_t i = 0; i < json_array_size(rows); i++) {
            NAIVE_TRY(change_read(it, table, (ivm_change)kind, json_array_get(rows, i), out));
        }
        return IVM_OK;
    }
    return IVM_INVALID_ARGUMENT;
}

/* The status to compare is the one the file wants, where it is among those that there may be. */
static ivm_status judge_push(judging *it, const json_t *line, ivm_status wanted)
{
    const json_t *parts = json_object_get(line, "push");
    batch changes = { 0 };
    ivm_status status = IVM_OK;
    for (size_t i = 0; i < json_array_size(parts) && status == IVM_OK; i++) {
        status = part_read(it, json_array_get(parts, i), &changes);
    }
    if (status == IVM_OK && wanted == IVM_UNSUPPORTED) {
        status = NAIVE_UNJUDGED; /* too many masks */
    }
    if (status == IVM_OK) {
        naive_database next;
        naive_database_copy(&it->database, &next);
        naive_verdict verdict = naive_push(&next, changes.changes, changes.count);
        uint32_t may = verdict.must | verdict.may;
        if (verdict.must || (wanted != IVM_OK && verdict.may & NAIVE_BIT(wanted))) {
            naive_database_free(&next);
            status = wanted != IVM_OK && may & NAIVE_BIT(wanted) ? wanted : (ivm_status)__builtin_ctz(verdict.must);
        } else {
            naive_database_free(&it->database);
            it->database = next;
        }
    }
    free(changes.changes);
    return status;
}

static ivm_status judge_refresh(judging *it, const json_t *line)
{
    naive_database next;
    naive_database_copy(&it->database, &next);
    ivm_status status = naive_refresh(&next, member_text(line, "refresh"));
    naive_database *left = status == IVM_OK ? &it->database : &next;
    naive_database_free(left);
    if (status == IVM_OK) {
        it->database = next;
    }
    return status;
}

/* ---- Expectations ------------------------------------------------------------------------------------------------------------------ */

static bool same_cell(const ivm_value *want, const ivm_value *got)
{
    if (want->is_null || got->is_null || want->type != IVM_FLOAT64 || !isfinite(want->as.float64) || !isfinite(got->as.float64)) {
        return naive_compare(want, got) == 0;
    }
    double a = want->as.float64, b = got->as.float64;
    return fabs(a - b) <= NEAR * fmax(fabs(a), fabs(b));
}

static bool want_read(ivm_type type, const json_t *json, ivm_value *value)
{
    double number = json_real_value(json);
    if (type == IVM_INT64 && json_is_real(json) && number == trunc(number)) {
        *value = ivm_int64((int64_t)number);
        return true;
    }
    return cell_read(type, json, value);
}

/* Takes the weight of one wanted row off the rows; false if none is like it. `weighted`: it must be the whole weight. */
static bool row_take(judging *it, naive_relation *rows, const naive_column *heading, const json_t *json, bool weighted)
{
    const json_t *row = weighted ? json_array_get(json, 1) : json;
    naive_int weight = weighted ? json_integer_value(json_array_get(json, 0)) : 1;
    ivm_value *want = naive_take(&it->pool, (rows->width + 1) * sizeof *want);
    bool reads = json_array_size(row) == rows->width;
    for (size_t c = 0; reads && c < rows->width; c++) {
        reads = want_read(heading[c].type, json_array_get(row, c), &want[c]);
    }
    for (size_t r = 0; reads && r < rows->count; r++) {
        bool same = weighted ? rows->weights[r] == weight : rows->weights[r] >= weight;
        for (size_t c = 0; same && c < rows->width; c++) {
            same = same_cell(&want[c], &naive_row(rows, r)[c]);
        }
        if (same) {
            rows->weights[r] -= weight;
            return true;
        }
    }
    return false;
}

static const naive_column *table_heading(judging *it, const naive_table *table)
{
    naive_column *heading = naive_take(&it->pool, table->columns_count * sizeof *heading);
    for (size_t c = 0; c < table->columns_count; c++) {
        heading[c] = (naive_column){ table->columns[c].name, table->columns[c].type };
    }
    return heading;
}

static ivm_status judge_expect(judging *it, const json_t *line, bool changes, bool *holds)
{
    const json_t *members = json_object_get(line, changes ? "expect_changes" : "expect");
    const json_t *weights = json_object_get(members, "weighted"), *list = weights ? weights : json_object_get(members, "rows");
    const char *name = member_text(members, "view");
    const naive_table *table = changes || !name ? NULL : naive_table_find(&it->database, name);
    const naive_view *view = table || !name ? NULL : naive_view_find(&it->database, name);
    naive_relation rows;
    if (!table && !view) {
        return IVM_UNKNOWN_VIEW;
    }
    if (table && table->transient) {
        return IVM_UNSUPPORTED;
    }
    if (view && view->unjudged) {
        return NAIVE_UNJUDGED;
    }
    const naive_relation *from = table ? &table->rows : changes ? &view->changes : &view->rows;
    const naive_column *heading = table ? table_heading(it, table) : view->plan->heading;
    naive_relation_init(&rows, from->width);
    (void)naive_rows_add(&rows, from, 1);
    *holds = true;
    for (size_t i = 0; i < json_array_size(list); i++) {
        *holds &= row_take(it, &rows, heading, json_array_get(list, i), changes || weights);
    }
    naive_consolidate(&rows);
    *holds &= rows.count == 0;
    naive_relation_free(&rows);
    return IVM_OK;
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------------------------- */

static ivm_status judge_checkpoint(judging *it, const char *name)
{
    size_t at = 0;
    while (at < it->saved_count && strcmp(it->saved[at].name, name) != 0) {
        at++;
    }
    if (at == SAVED_MAX) {
        return NAIVE_UNJUDGED;
    }
    if (at < it->saved_count) {
        naive_database_free(&it->saved[at].database);
    }
    it->saved_count += at == it->saved_count;
    it->saved[at].name = name;
    naive_database_copy(&it->database, &it->saved[at].database);
    return IVM_OK;
}

static ivm_status judge_restore(judging *it, const char *name)
{
    for (size_t i = 0; i < it->saved_count; i++) {
        if (strcmp(it->saved[i].name, name) == 0) {
            naive_database_free(&it->database);
            naive_database_copy(&it->saved[i].database, &it->database);
            return IVM_OK;
        }
    }
    return IVM_IO;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------------------------- */

static ivm_status line_apply(judging *it, const json_t *line, ivm_status wanted, bool *holds)
{
    const char *name;
    *holds = true;
    if (json_object_get(line, "table")) {
        return judge_table(it, line);
    }
    if (json_object_get(line, "foreign_key")) {
        return judge_fact(it, line);
    }
    if (json_object_get(line, "view")) {
        return judge_view(it, line);
    }
    if (json_object_get(line, "push")) {
        return judge_push(it, line, wanted);
    }
    if (json_object_get(line, "refresh")) {
        return wanted == IVM_UNSUPPORTED ? NAIVE_UNJUDGED : judge_refresh(it, line); /* too many masks */
    }
    if (json_object_get(line, "expect") || json_object_get(line, "expect_changes")) {
        return judge_expect(it, line, json_object_get(line, "expect_changes") != NULL, holds);
    }
    if ((name = member_text(line, "drop_table"))) {
        return naive_table_drop(&it->database, name);
    }
    if ((name = member_text(line, "drop_view"))) {
        return naive_view_drop(&it->database, name);
    }
    if ((name = member_text(line, "checkpoint"))) {
        return judge_checkpoint(it, name);
    }
    if ((name = member_text(line, "restore"))) {
        return judge_restore(it, name);
    }
    return NAIVE_UNJUDGED; /* comments, options, planning */
}

static ivm_status status_named(const char *name)
{
    for (int status = IVM_OK; name && status < IVM_STATUS_COUNT; status++) {
        if (strcmp(ivm_status_name((ivm_status)status), name) == 0) {
            return (ivm_status)status;
        }
    }
    return IVM_OK;
}

static void line_judge(judging *it, const scenario_line *line)
{
    ivm_status wanted = status_named(member_text(line->json, "error"));
    bool holds;
    ivm_status status = line_apply(it, line->json, wanted, &holds);
    if (status == NAIVE_UNJUDGED) {
        it->unjudged++;
        return;
    }
    it->judged++;
    if (status != wanted || !holds) {
        fprintf(stderr, "%s:%zu: %s\n", it->path, line->number, status != wanted ? ivm_status_name(status) : "other rows");
        it->wrong++;
    }
}

static size_t file_judge(const char *path, size_t *judged, size_t *unjudged)
{
    judging it = { .path = path };
    scenario_file file;
    it.database.pool = &it.pool;
    if (!scenario_file_read(path, &file)) {
        return 1;
    }
    for (size_t i = 0; i < file.lines_count; i++) {
        line_judge(&it, &file.lines[i]);
    }
    for (size_t i = 0; i < it.saved_count; i++) {
        naive_database_free(&it.saved[i].database);
    }
    naive_database_free(&it.database);
    naive_pool_free(&it.pool);
    scenario_file_free(&file);
    *judged += it.judged;
    *unjudged += it.unjudged;
    return it.wrong;
}

int main(int argc, char **argv)
{
    size_t judged = 0, unjudged = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        failed += file_judge(argv[i], &judged, &unjudged) != 0;
    }
    printf("%zu lines judged, %zu not\n%zu passed, %zu failed\n", judged, unjudged, (size_t)argc - 1 - failed, failed);
    return failed || argc < 2 ? 1 : 0;
}
