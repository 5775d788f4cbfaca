/* Scenario commands that change the catalog: tables, foreign keys, views, options. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

static ivm_status need_name(replay_session *replay, const char *name)
{
    return name ? IVM_OK : replay_fail(replay, IVM_INVALID_ARGUMENT, "a name is missing");
}

/* ---- Tables -------------------------------------------------------------------------------------------------------------------- */

/* [name, type, "not null"?] or {"name", "type", "nullable"}. */
static ivm_status column_read(replay_session *replay, const json_t *json, ivm_column_definition *column)
{
    bool list = json_is_array(json);
    const json_t *nullable = json_object_get(json, "nullable");
    const char *last = json_string_value(json_array_get(json, 2));
    const char *type = list ? json_string_value(json_array_get(json, 1)) : member_text(json, "type");
    column->name = list ? json_string_value(json_array_get(json, 0)) : member_text(json, "name");
    column->not_null = list ? last && strcmp(last, "not null") == 0 : json_is_false(nullable);
    if (!column->name || !type) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a column wants a name and a type");
    }
    return ivm_type_parse(type, &column->type, &replay->error);
}

static ivm_status columns_read(replay_session *replay, const json_t *list, ivm_column_definition **columns)
{
    size_t count = json_array_size(list);
    *columns = arena_take(&replay->memory, (count + 1) * sizeof **columns);
    for (size_t i = 0; i < count; i++) {
        ivm_status status = column_read(replay, json_array_get(list, i), &(*columns)[i]);
        if (status != IVM_OK) {
            return status;
        }
    }
    return IVM_OK;
}

ivm_status replay_table(replay_session *replay, const json_t *line)
{
    const json_t *members = json_object_get(line, "table"), *list = json_object_get(members, "columns");
    ivm_table_options options = { .version = IVM_TABLE_OPTIONS_VERSION, .columns_count = json_array_size(list) };
    ivm_column_definition *columns;
    ivm_status status = need_name(replay, member_text(members, "name"));
    if (status == IVM_OK) {
        status = columns_read(replay, list, &columns);
    }
    if (status != IVM_OK) {
        return status;
    }
    options.columns = columns;
    options.append_only = json_is_true(json_object_get(members, "append_only"));
    options.transient = json_is_false(json_object_get(members, "retain"));
    options.allow_negative = json_is_true(json_object_get(members, "allow_negative"));
    options.transient = json_is_false(json_object_get(members, "retain"));
    options.key = member_names(replay, members, "key");
    if (!options.key) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a key is a list of names");
    }
    ivm_table *table;
    return ivm_table_create(replay->engine, member_text(members, "name"), &options, &table, &replay->error);
}

ivm_status replay_drop_table(replay_session *replay, const json_t *line)
{
    ivm_table *table;
    ivm_status status = need_name(replay, member_text(line, "drop_table"));
    if (status == IVM_OK) {
        status = ivm_table_find(replay->engine, member_text(line, "drop_table"), &table, &replay->error);
    }
    return status == IVM_OK ? ivm_table_drop(table, &replay->error) : status;
}

/* ---- Foreign keys -------------------------------------------------------------------------------------------------------------- */

ivm_status replay_foreign_key(replay_session *replay, const json_t *line)
{
    static const char *const trusts[] = { "rely", "enforced", "tracked", NULL };
    const json_t *members = json_object_get(line, "foreign_key");
    const char *child_name = member_text(members, "child"), *parent_name = member_text(members, "parent");
    const char *columns = member_names(replay, members, "columns"), *parents = member_names(replay, members, "parent_columns");
    int trust = json_object_get(members, "trust") ? word_position(trusts, member_text(members, "trust")) : IVM_RELY;
    if (!child_name || !parent_name || !columns || !parents || trust < 0) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a foreign key wants child, columns, parent, parent_columns and a known trust");
    }
    ivm_table *child, *parent;
    ivm_status status = ivm_table_find(replay->engine, child_name, &child, &replay->error);
    if (status == IVM_OK) {
        status = ivm_table_find(replay->engine, parent_name, &parent, &replay->error);
    }
    if (status == IVM_OK) {
        status = ivm_foreign_key_declare(child, columns, parent, parents, (ivm_trust)trust, NULL, &replay->error);
    }
    return status;
}

/* ---- Views --------------------------------------------------------------------------------------------------------------------- */

ivm_status plan_read(const json_t *json, ivm_plan **plan, ivm_error *error)
{
    char *text = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (!text) {
        *error = (ivm_error){ .status = IVM_INVALID_PLAN, .message = "a view wants a plan" };
        return IVM_INVALID_PLAN;
    }
    ivm_status status = ivm_plan_from_json(text, strlen(text), plan, error);
    free(text);
    return status;
}

ivm_status replay_view(replay_session *replay, const json_t *line)
{
    static const char *const refreshes[] = { "immediate", "deferred", NULL };
    const json_t *members = json_object_get(line, "view");
    int refresh = json_object_get(members, "refresh") ? word_position(refreshes, member_text(members, "refresh")) : IVM_IMMEDIATE;
    if (refresh < 0 || !member_text(members, "name")) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a view wants a name and a known refresh");
    }
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = (ivm_refresh)refresh };
    ivm_plan *plan = NULL;
    ivm_view *view;
    ivm_status status = plan_read(json_object_get(members, "plan"), &plan, &replay->error);
    if (status != IVM_OK) {
        return status;
    }
    status = ivm_view_create(replay->engine, member_text(members, "name"), plan, &options, &view, &replay->error);
    if (status == IVM_OK) {
        digest_view_made(&replay->digest, member_text(members, "name"));
    }
    return status;
}

ivm_status replay_drop_view(replay_session *replay, const json_t *line)
{
    ivm_view *view;
    ivm_status status = need_name(replay, member_text(line, "drop_view"));
    if (status == IVM_OK) {
        status = ivm_view_find(replay->engine, member_text(line, "drop_view"), &view, &replay->error);
    }
    if (status == IVM_OK) {
        status = ivm_view_drop(view, &replay->error);
    }
    if (status == IVM_OK) {
        digest_view_dropped(&replay->digest, member_text(line, "drop_view"));
    }
    return status;
}

/* ---- Options ------------------------------------------------------------------------------------------------------------------- */

static bool option_set(const char *name, const json_t *value, ivm_planner_options *options)
{
    const char *word = json_string_value(value);
    int position;
    if (strcmp(name, "fk_pruning") == 0 && (position = word_position(fk_pruning_words, word)) >= 0) {
        options->fk_pruning = (ivm_fk_pruning)position;
    } else if (strcmp(name, "join_rule") == 0 && (position = word_position(join_rule_words, word)) >= 0) {
        options->join_rule = (ivm_join_rule)position;
    } else if (strcmp(name, "skip_empty") == 0 && json_is_boolean(value)) {
        options->run_empty = !json_is_true(value);
    } else {
        return false;
    }
    return true;
}

ivm_status replay_set(replay_session *replay, const json_t *line)
{
    ivm_planner_options options = ivm_engine_planner(replay->engine);
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(line, "set"), name, value)
    {
        if (!option_set(name, value, &options)) {
            return replay_fail(replay, IVM_INVALID_ARGUMENT, "no such option or value: %s", name);
        }
    }
    return ivm_engine_planner_set(replay->engine, &options, &replay->error);
}
