/* Computes a view of the main job again, in plain loops over the cells, and compares it with what the engine keeps: as many rows, each
 * group in both, counts and integer sums equal, averages within a relative 1e-12. Likewise what flights wait for under a tracked link: each
 * key in both, with as many flights. Cost: a hash look-up a flight. */
#include "flights.h"

#include "arena.h"
#include "option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY_CELL_SIZE 63 /* of a cell in a key, cut to it */
#define KEY_SIZE (2 * (KEY_CELL_SIZE + 1) + 1)
#define GROUPS_MAX 4096 /* a power of two, far more than there are */
#define NEAR 1e-12

typedef struct check_group {
    char key[KEY_SIZE]; /* the cells, each with a "|" behind it; empty: no group */
    int64_t flights;
    int64_t sums[2], counts[2];
} check_group;

typedef struct check_groups {
    check_group *groups;
    size_t count;
} check_groups;

typedef struct view_check {
    const flights_data *data;
    const flights_view *view;
    size_t group_columns[2], measure_columns[2];
    check_groups groups;
} view_check;

/* ---- Recomputing --------------------------------------------------------------------------------------------------------------- */

static check_groups groups_make(void)
{
    return (check_groups){ .groups = memory_take(GROUPS_MAX * sizeof(check_group)) };
}

static check_group *group_at(const check_groups *groups, const char *key)
{
    uint32_t hash = 2166136261u;
    for (const char *at = key; *at; at++) {
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    }
    size_t place = hash % GROUPS_MAX;
    while (*groups->groups[place].key && strcmp(groups->groups[place].key, key) != 0) {
        place = (place + 1) % GROUPS_MAX;
    }
    return &groups->groups[place];
}

/* Counts a flight in. */
static check_group *group_count(check_groups *groups, const char *key)
{
    check_group *group = group_at(groups, key);
    if (!*group->key) {
        memcpy(group->key, key, strlen(key) + 1);
        groups->count++;
    }
    group->flights++;
    return group;
}

/* Groups that no row has taken out. */
static size_t groups_left(const check_groups *groups)
{
    size_t left = 0;
    for (size_t g = 0; g < GROUPS_MAX; g++) {
        left += groups->groups[g].flights != 0;
    }
    return left;
}

typedef enum cell_kind { CELL_TEXT, CELL_TIME, CELL_NUMBER } cell_kind;

/* Numbers are written with two digits so that 10 and 10.00 are one group, times without what is below a second. */
static void key_append(char *key, const char *cell, cell_kind kind)
{
    char digits[KEY_CELL_SIZE + 1];
    size_t size = strlen(key);
    if (kind == CELL_NUMBER) {
        snprintf(digits, sizeof digits, "%.2f", strtod(cell, NULL));
        cell = digits;
    }
    size_t cell_size = kind == CELL_TIME ? strcspn(cell, ".Z") : strlen(cell);
    cell_size = cell_size < KEY_CELL_SIZE ? cell_size : KEY_CELL_SIZE;
    memcpy(key + size, cell, cell_size);
    memcpy(key + size + cell_size, "|", 2);
}

/* Of a column of the schema. */
static cell_kind column_kind(flights_table table, size_t column)
{
    const char *type = table_schemas[table].columns[column].type;
    return strcmp(type, "string") == 0 ? CELL_TEXT : strcmp(type, "timestamp") == 0 ? CELL_TIME : CELL_NUMBER;
}

/* Appends a cell of rows that the engine gives. */
static void key_append_value(char *key, const ivm_rows *rows, ivm_type type, size_t row, size_t column)
{
    char text[KEY_SIZE];
    ivm_value value = ivm_rows_value(rows, type, row, column);
    ivm_value_format(&value, text, sizeof text);
    key_append(key, text, type == IVM_STRING ? CELL_TEXT : type == IVM_TIMESTAMP ? CELL_TIME : CELL_NUMBER);
}

static bool flight_has_parents(const view_check *check, size_t flight)
{
    for (size_t l = 0; l < check->view->links_count; l++) {
        if (check->data->parents[check->view->links[l]][flight] == PARENT_NONE) {
            return false;
        }
    }
    return true;
}

static void flight_add(view_check *check, size_t flight)
{
    const flights_view *view = check->view;
    char key[KEY_SIZE] = "", text[CELL_TEXT_SIZE];
    for (size_t g = 0; g < view->groups_count; g++) {
        flights_table table = flights_links[view->groups[g].link].parent;
        uint32_t parent = check->data->parents[view->groups[g].link][flight];
        const char *cell = flights_cell(check->data, table, parent, check->group_columns[g], text);
        key_append(key, cell, column_kind(table, check->group_columns[g]));
    }
    check_group *group = group_count(&check->groups, key);
    for (size_t m = 0; m < view->measures_count; m++) {
        bool parent = view->measures[m].kind == SUM_OF_PARENT;
        flights_table table = parent ? flights_links[view->links[0]].parent : FLIGHT;
        size_t row = parent ? check->data->parents[view->links[0]][flight] : flight;
        const char *cell = flights_cell(check->data, table, row, check->measure_columns[m], text);
        group->sums[m] += cell ? strtoll(cell, NULL, 10) : 0;
        group->counts[m] += cell != NULL;
    }
}

/* ---- Comparing ----------------------------------------------------------------------------------------------------------------- */

static bool measure_equal(const view_measure *measure, const check_group *group, size_t m, const ivm_value *value)
{
    if (value->is_null || !group->counts[m]) {
        return value->is_null && !group->counts[m];
    }
    if (measure->kind == SUM_OF_PARENT) {
        return value->as.int64 == group->sums[m];
    }
    double average = (double)group->sums[m] / (double)group->counts[m];
    return fabs(average - value->as.float64) <= NEAR * fmax(fabs(average), fabs(value->as.float64));
}

/* Takes the row's group out, so that what stays was not in the view. */
static bool row_equal(view_check *check, const ivm_snapshot *snapshot, const ivm_rows *rows, size_t row)
{
    const flights_view *view = check->view;
    char key[KEY_SIZE] = "";
    size_t column = 0;
    for (; column < view->groups_count; column++) {
        key_append_value(key, rows, ivm_snapshot_column_type(snapshot, column), row, column);
    }
    check_group *group = group_at(&check->groups, key);
    bool equal = *group->key && group->flights && (!rows->weights || rows->weights[row] == 1);
    equal = equal && ivm_rows_value(rows, IVM_INT64, row, column++).as.int64 == group->flights;
    for (size_t m = 0; m < view->measures_count && equal; m++, column++) {
        ivm_value value = ivm_rows_value(rows, ivm_snapshot_column_type(snapshot, column), row, column);
        equal = measure_equal(&view->measures[m], group, m, &value);
    }
    group->flights = 0;
    return equal;
}

static size_t rows_compare(view_check *check, ivm_view *kept, size_t *rows_count)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    size_t unequal = 0;
    *rows_count = 0;
    if (ivm_read_view(kept, &snapshot, &error) != IVM_OK) {
        return check->groups.count;
    }
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            unequal += !row_equal(check, snapshot, &rows, r);
        }
        *rows_count += rows.rows_count;
    }
    unequal += ivm_snapshot_status(snapshot) != IVM_OK;
    ivm_snapshot_close(snapshot);
    return unequal + groups_left(&check->groups);
}

size_t flights_view_check(const flights_data *data, size_t flights, const flights_view *view, ivm_view *kept, size_t *rows_count)
{
    view_check check = { .data = data, .view = view, .groups = groups_make() };
    for (size_t g = 0; g < view->groups_count; g++) {
        check.group_columns[g] = flights_column(flights_links[view->groups[g].link].parent, view->groups[g].column);
    }
    for (size_t m = 0; m < view->measures_count; m++) {
        bool parent = view->measures[m].kind == SUM_OF_PARENT;
        check.measure_columns[m] = flights_column(parent ? flights_links[view->links[0]].parent : FLIGHT, view->measures[m].column);
    }
    for (size_t f = 0; f < flights; f++) {
        if (flight_has_parents(&check, f)) {
            flight_add(&check, f);
        }
    }
    size_t unequal = rows_compare(&check, kept, rows_count);
    free(check.groups.groups);
    return unequal;
}

uint64_t flights_view_audit(ivm_view *kept)
{
    ivm_snapshot *differences;
    ivm_error error = IVM_ERROR_INIT;
    if (ivm_audit_view(kept, &differences, &error) != IVM_OK) {
        usage_error("audit of %s: %s", ivm_view_name(kept), error.message);
        return 1;
    }
    uint64_t rows = ivm_snapshot_rows_count(differences);
    ivm_snapshot_close(differences);
    return rows;
}

/* ---- Flights that wait --------------------------------------------------------------------------------------------------------- */

static check_groups orphans_count(const flights_data *data, size_t flights, flights_link_name name)
{
    const flights_link *link = &flights_links[name];
    check_groups groups = groups_make();
    for (size_t f = 0; f < flights; f++) {
        char key[KEY_SIZE] = "", text[CELL_TEXT_SIZE];
        if (!flights_orphan(data, name, f)) {
            continue;
        }
        for (size_t c = 0; c < 2 && link->child[c]; c++) {
            size_t column = flights_column(FLIGHT, link->child[c]);
            key_append(key, flights_cell(data, FLIGHT, f, column, text), column_kind(FLIGHT, column));
        }
        group_count(&groups, key);
    }
    return groups;
}

/* Takes the key's group out. */
static bool orphan_equal(const check_groups *groups, const ivm_snapshot *snapshot, const ivm_rows *rows, size_t row)
{
    char key[KEY_SIZE] = "";
    for (size_t c = 0; c < rows->columns_count; c++) {
        key_append_value(key, rows, ivm_snapshot_column_type(snapshot, c), row, c);
    }
    check_group *group = group_at(groups, key);
    bool equal = *group->key && group->flights == (rows->weights ? rows->weights[row] : 1);
    group->flights = 0;
    return equal;
}

static size_t orphans_compare(const check_groups *groups, ivm_fact *fact)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    ivm_rows rows;
    size_t unequal = 0;
    if (ivm_read_orphans(fact, &snapshot, &error) != IVM_OK) {
        return groups->count + 1;
    }
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            unequal += !orphan_equal(groups, snapshot, &rows, r);
        }
    }
    unequal += ivm_snapshot_status(snapshot) != IVM_OK;
    ivm_snapshot_close(snapshot);
    return unequal + groups_left(groups);
}

size_t flights_link_check(const flights_data *data, size_t flights, flights_link_name link, ivm_fact *fact, ivm_fact_state *state)
{
    check_groups groups = orphans_count(data, flights, link);
    ivm_error error = IVM_ERROR_INIT;
    uint64_t waiting = 0;
    *state = (ivm_fact_state){ .version = IVM_FACT_STATE_VERSION };
    for (size_t g = 0; g < GROUPS_MAX; g++) {
        waiting += (uint64_t)groups.groups[g].flights;
    }
    bool stands = ivm_fact_status(fact, state, &error) == IVM_OK && state->orphans == waiting && state->orphans_keys == groups.count;
    size_t unequal = orphans_compare(&groups, fact) + !stands;
    free(groups.groups);
    return unequal;
}
