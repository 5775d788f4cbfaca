/* The scenario commands "push" and "refresh". The parts of a push become one batch. A mistake found here ends the filling; one that the
 * batch remembers is told by the push, which then fails with it. */
#include "replay.h"

#include <string.h>

typedef struct push_part {
    ivm_table *table;
    ivm_change change;
    const json_t *rows;
    size_t columns[IVM_TABLE_COLUMNS_MAX]; /* of each value, in the table */
    size_t columns_count;
} push_part;

static const struct part_kind {
    const char *name, *rows;
    ivm_change change;
} kinds[] = { { "insert", "rows", IVM_INSERT },
              { "delete", "rows", IVM_DELETE },
              { "upsert", "rows", IVM_UPSERT },
              { "delete_key", "keys", IVM_DELETE_KEY },
              { "weighted", "rows", IVM_WEIGHTED } };

static const struct part_kind *kind_find(const json_t *json)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (json_object_get(json, kinds[i].name)) {
            return &kinds[i];
        }
    }
    return NULL;
}

static ivm_status part_read(replay_session *replay, const json_t *json, push_part *part)
{
    const struct part_kind *kind = kind_find(json);
    const char *table = kind ? member_text(json, kind->name) : NULL;
    if (!table) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a part is insert, delete, weighted, upsert or delete_key of a table");
    }
    ivm_status status = ivm_table_find(replay->engine, table, &part->table, &replay->error);
    if (status != IVM_OK) {
        return status;
    }
    part->change = kind->change;
    part->rows = json_object_get(json, kind->rows);
    if (!json_is_array(part->rows)) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "%s: a list of %s is missing", kind->name, kind->rows);
    }
    if (kind->change == IVM_DELETE_KEY) {
        part->columns_count = ivm_table_key(part->table, part->columns, IVM_TABLE_COLUMNS_MAX);
    } else {
        part->columns_count = ivm_table_columns_count(part->table);
        for (size_t i = 0; i < part->columns_count; i++) {
            part->columns[i] = i;
        }
    }
    return IVM_OK;
}

static ivm_status row_read(replay_session *replay, const push_part *part, const json_t *row, ivm_value *values)
{
    if (json_array_size(row) != part->columns_count) {
        return replay_fail(replay, IVM_TYPE_MISMATCH, "table %s: %zu values are wanted", ivm_table_name(part->table), part->columns_count);
    }
    for (size_t i = 0; i < part->columns_count; i++) {
        size_t column = part->columns[i];
        ivm_type type = ivm_table_column_type(part->table, column);
        char text[IVM_TYPE_TEXT_SIZE];
        if (!cell_read(type, json_array_get(row, i), &values[i])) {
            ivm_type_format(type, text);
            return replay_fail(replay, IVM_TYPE_MISMATCH, "%s.%s: no value of type %s", ivm_table_name(part->table),
                               ivm_table_column_name(part->table, column), text);
        }
    }
    return IVM_OK;
}

/* *full is set where the batch itself refused a row and remembers why. */
static ivm_status part_fill(replay_session *replay, const push_part *part, ivm_batch *batch, bool *full)
{
    ivm_value *values = arena_take(&replay->memory, (part->columns_count + 1) * sizeof *values);
    bool keyed = part->change == IVM_UPSERT || part->change == IVM_DELETE_KEY;
    if (keyed && ivm_table_key(part->table, NULL, 0) == 0) {
        *full = ivm_batch_row(batch, part->table, part->change, 1, values, 0) != IVM_OK; /* why, the engine says */
    }
    for (size_t i = 0; i < json_array_size(part->rows) && !*full; i++) {
        const json_t *row = json_array_get(part->rows, i);
        ivm_value weight = ivm_int64(1);
        if (part->change == IVM_WEIGHTED) {
            if (!cell_read(IVM_INT64, json_array_get(row, 0), &weight) || weight.is_null || json_array_size(row) != 2) {
                return replay_fail(replay, IVM_TYPE_MISMATCH, "a weighted row is a weight and a row");
            }
            row = json_array_get(row, 1);
        }
        ivm_status status = row_read(replay, part, row, values);
        if (status != IVM_OK) {
            return status;
        }
        *full = ivm_batch_row(batch, part->table, part->change, weight.as.int64, values, part->columns_count) != IVM_OK;
    }
    return IVM_OK;
}

ivm_status replay_push(replay_session *replay, const json_t *line)
{
    const json_t *parts = json_object_get(line, "push");
    ivm_batch *batch;
    bool full = false;
    ivm_status status = ivm_batch_create(replay->engine, &batch, &replay->error);
    if (status != IVM_OK) {
        return status;
    }
    if (!json_is_array(parts)) {
        status = replay_fail(replay, IVM_INVALID_ARGUMENT, "a push is a list of parts");
    }
    for (size_t i = 0; status == IVM_OK && !full && i < json_array_size(parts); i++) {
        push_part part = { 0 };
        status = part_read(replay, json_array_get(parts, i), &part);
        if (status == IVM_OK) {
            status = part_fill(replay, &part, batch, &full);
        }
    }
    if (status != IVM_OK) {
        ivm_batch_free(batch);
        return status;
    }
    status = ivm_push_batch(replay->engine, batch, NULL, &replay->error);
    if (status == IVM_OK) {
        replay->explained = NULL;
    }
    return status;
}

ivm_status replay_refresh(replay_session *replay, const json_t *line)
{
    const char *name = member_text(line, "refresh");
    ivm_view *view;
    if (!name) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a view is missing");
    }
    ivm_status status = ivm_view_find(replay->engine, name, &view, &replay->error);
    if (status == IVM_OK) {
        status = ivm_refresh_view(view, NULL, &replay->error);
    }
    if (status == IVM_OK) {
        replay->explained = NULL;
    }
    return status;
}
