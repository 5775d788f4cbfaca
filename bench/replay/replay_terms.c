/* The scenario commands "explain", "expect_terms" and "expect_deltas": join terms and delta rows as ivm_explain() tells them in JSON. A stated
 * explain is remembered and asked again at each expectation, so that options set in between count. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

/* ---- Stated facts -------------------------------------------------------------------------------------------------------------- */

static ivm_status shapes_read(replay_session *replay, const json_t *deltas, ivm_explain_options *options)
{
    static const char *const words[] = { "unchanged", "insert_only", "mixed", NULL };
    ivm_stated_shape *shapes = arena_take(&replay->memory, (json_object_size(deltas) + 1) * sizeof *shapes);
    const char *name;
    json_t *value;
    options->shapes = shapes;
    json_object_foreach((json_t *)deltas, name, value)
    {
        ivm_table *table;
        ivm_status status = ivm_table_find(replay->engine, name, &table, &replay->error);
        int shape = word_position(words, json_string_value(value));
        if (status != IVM_OK) {
            return status;
        }
        if (shape < 0) {
            return replay_fail(replay, IVM_INVALID_ARGUMENT, "no such shape of %s", name);
        }
        shapes[options->shapes_count++] = (ivm_stated_shape){ name, (ivm_shape)shape };
    }
    return IVM_OK;
}

static ivm_status facts_read(replay_session *replay, const json_t *list, ivm_explain_options *options)
{
    static const char *const trusts[] = { "rely", "enforced", "tracked", NULL };
    ivm_stated_fact *facts = arena_take(&replay->memory, (json_array_size(list) + 1) * sizeof *facts);
    options->facts_stated = list != NULL;
    options->facts = facts;
    options->facts_count = json_array_size(list);
    for (size_t i = 0; i < options->facts_count; i++) {
        const json_t *fact = json_array_get(list, i);
        int trust = json_object_get(fact, "trust") ? word_position(trusts, member_text(fact, "trust")) : IVM_RELY;
        facts[i] = (ivm_stated_fact){ member_text(fact, "child"), member_names(replay, fact, "columns"), member_text(fact, "parent"),
                                      member_names(replay, fact, "parent_columns"), (ivm_trust)trust };
        if (!facts[i].child || !facts[i].columns || !facts[i].parent || !facts[i].parent_columns || trust < 0) {
            return replay_fail(replay, IVM_INVALID_ARGUMENT, "a foreign key wants child, columns, parent and parent_columns");
        }
    }
    return IVM_OK;
}

/* ---- Explain ------------------------------------------------------------------------------------------------------------------- */

/* The last step of the view, or what `stated` says of it. The caller drops *explained. */
static ivm_status explain(replay_session *replay, const char *name, const json_t *stated, json_t **explained)
{
    ivm_explain_options options = { .version = IVM_EXPLAIN_OPTIONS_VERSION };
    ivm_view *view;
    char *text;
    if (!name) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "a view is missing");
    }
    ivm_status status = ivm_view_find(replay->engine, name, &view, &replay->error);
    if (status == IVM_OK && stated) {
        status = shapes_read(replay, json_object_get(stated, "deltas"), &options);
    }
    if (status == IVM_OK && stated) {
        status = facts_read(replay, json_object_get(stated, "foreign_keys"), &options);
    }
    if (status == IVM_OK) {
        status = ivm_explain(view, stated ? &options : NULL, IVM_EXPLAIN_JSON, &text, &replay->error);
    }
    if (status != IVM_OK) {
        return status;
    }
    json_error_t error;
    *explained = json_loads(text, 0, &error);
    ivm_text_free(text);
    return *explained ? IVM_OK : replay_fail(replay, IVM_CORRUPT, "ivm_explain gave no JSON: %s", error.text);
}

ivm_status replay_explain(replay_session *replay, const json_t *line)
{
    json_t *members = json_object_get(line, "explain"), *explained;
    ivm_status status = explain(replay, member_text(members, "view"), members, &explained);
    if (status != IVM_OK) {
        return status;
    }
    json_decref(explained);
    replay->explained = members;
    return IVM_OK;
}

/* ---- Terms --------------------------------------------------------------------------------------------------------------------- */

static void unequal_write(const char *name, const json_t *got, const json_t *want, FILE *out)
{
    fprintf(out, "%s is ", name);
    if (got) {
        json_dumpf(got, out, JSON_ENCODE_ANY);
    } else {
        fputs("not told", out);
    }
    fputs(", expected ", out);
    json_dumpf(want, out, JSON_ENCODE_ANY);
}

static void terms_compare(replay_session *replay, const json_t *want, const json_t *got)
{
    const char *name;
    json_t *value;
    char *text = NULL;
    size_t size = 0;
    bool equal = true;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return;
    }
    json_object_foreach((json_t *)want, name, value)
    {
        const json_t *found = json_object_get(got, name);
        if (strcmp(name, "view") == 0 || (found && json_equal(found, value))) {
            continue;
        }
        fputs(equal ? "" : "; ", out);
        unequal_write(name, found, value, out);
        equal = false;
    }
    fclose(out);
    if (equal) {
        free(text);
    } else {
        replay->unheld = text;
    }
}

ivm_status replay_expect_terms(replay_session *replay, const json_t *line)
{
    const json_t *want = json_object_get(line, "expect_terms");
    const char *name = member_text(want, "view"), *stated_view = member_text(replay->explained, "view");
    bool stated = name && stated_view && strcmp(name, stated_view) == 0;
    json_t *explained;
    ivm_status status = explain(replay, name, stated ? replay->explained : NULL, &explained);
    if (status != IVM_OK) {
        return status;
    }
    const json_t *join = json_array_get(json_object_get(explained, "joins"), 0);
    if (join) {
        terms_compare(replay, want, join);
    } else {
        status = replay_fail(replay, IVM_INVALID_ARGUMENT, "%s has no inner join", name);
    }
    json_decref(explained);
    return status;
}

/* ---- Delta rows ---------------------------------------------------------------------------------------------------------------- */

static void bounds_compare(replay_session *replay, const json_t *bounds, const json_t *leaves)
{
    char *text = NULL;
    size_t size = 0;
    bool within = json_array_size(bounds) == json_array_size(leaves);
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return;
    }
    if (!within) {
        fprintf(out, "the join has %zu leaves, %zu bounds were given", json_array_size(leaves), json_array_size(bounds));
    }
    for (size_t i = 0; i < json_array_size(bounds) && i < json_array_size(leaves); i++) {
        json_int_t bound = json_integer_value(json_array_get(bounds, i));
        json_int_t rows = json_integer_value(json_object_get(json_array_get(leaves, i), "delta_rows"));
        if (rows > bound) {
            fprintf(out, "%sleaf %zu has %lld delta rows, at most %lld were expected", within ? "" : "; ", i, (long long)rows,
                    (long long)bound);
            within = false;
        }
    }
    fclose(out);
    if (within) {
        free(text);
    } else {
        replay->unheld = text;
    }
}

/* Bounds say what pruning by row leaves: a step under another setting is not held to them. */
ivm_status replay_expect_deltas(replay_session *replay, const json_t *line)
{
    const json_t *want = json_object_get(line, "expect_deltas"), *bounds = json_object_get(want, "rows");
    const char *name = member_text(want, "view"), *pruning;
    json_t *explained;
    if (!json_is_array(bounds)) {
        return replay_fail(replay, IVM_INVALID_ARGUMENT, "the expected numbers of rows are missing");
    }
    ivm_status status = explain(replay, name, NULL, &explained);
    if (status != IVM_OK) {
        return status;
    }
    const json_t *join = json_array_get(json_object_get(explained, "joins"), 0);
    pruning = member_text(join, "fk_pruning");
    if (!join) {
        status = replay_fail(replay, IVM_INVALID_ARGUMENT, "%s has no inner join", name);
    } else if (pruning && strcmp(pruning, fk_pruning_words[IVM_FK_PRUNING_ROW]) == 0) {
        bounds_compare(replay, bounds, json_object_get(join, "leaves"));
    }
    json_decref(explained);
    return status;
}
