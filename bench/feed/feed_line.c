/* One line of a feed as changes of a table, by format:
 *
 *     feldera     {"table": t, "insert": row} or {"table": t, "delete": row}, or {t: {"insert": row}}
 *     debezium    an envelope: {"op": "c|r|u|d", "before": row, "after": row, "source": {"table": t}}, bare, in {"payload": ...}, or in
 *                 {"key": ..., "value": ...}
 *     upsert      {"table": t, "key": key, "value": row}, null for the row: the key goes
 *     rows        row, which comes; of one table, the input's
 *
 * A table with a key is changed by key: who inserts replaces, who deletes needs no more than the key's columns. One without is a bag, changed by whole
 * rows. */
#include "feed.h"

#include <string.h>

void changes_free(feed_changes *changes)
{
    json_decref(changes->json);
    changes->json = NULL;
}

/* The input's, by the line's own word, or the only one there is. */
static const feed_table *table_find(const feed_session *feed, const char *named, feed_changes *changes)
{
    if (changes->table) {
        return changes->table;
    }
    for (size_t i = 0; named && i < feed->tables_count; i++) {
        if (strcmp(feed->tables[i].name, named) == 0) {
            return &feed->tables[i];
        }
    }
    if (!named && feed->tables_count == 1) {
        return feed->tables;
    }
    line_bad(changes, named ? "no table %s" : "which table is meant? The line names none%s", named ? named : "");
    return NULL;
}

static bool row_put(const feed_session *feed, const feed_table *table, const json_t *row, const json_t *key, feed_changes *changes)
{
    return row_read(feed, table, table->key_count ? IVM_UPSERT : IVM_INSERT, row, key, changes);
}

static bool row_take(const feed_session *feed, const feed_table *table, const json_t *row, feed_changes *changes)
{
    return table->key_count ? key_read(feed, table, row, changes) : row_read(feed, table, IVM_DELETE, row, NULL, changes);
}

/* ---- Feldera --------------------------------------------------------------------------------------------------------------------------- */

static bool feldera_read(const feed_session *feed, const json_t *line, feed_changes *changes)
{
    const char *name = member_text(line, "table");
    const json_t *come = json_object_get(line, "insert"), *gone = json_object_get(line, "delete");
    if (!come && !gone && json_object_size(line) == 1) {
        void *only = json_object_iter((json_t *)line);
        name = json_object_iter_key(only);
        come = json_object_get(json_object_iter_value(only), "insert");
        gone = json_object_get(json_object_iter_value(only), "delete");
    }
    if (!come == !gone) {
        return line_bad(changes, "a line has an insert or a delete, and not both");
    }
    const feed_table *table = table_find(feed, name, changes);
    return table && (come ? row_put(feed, table, come, NULL, changes) : row_take(feed, table, gone, changes));
}

/* ---- Debezium -------------------------------------------------------------------------------------------------------------------------- */

static const json_t *unwrap(const json_t *json)
{
    const json_t *inner = json_object_get(json, "payload");
    return inner && !json_object_get(json, "op") ? inner : json;
}

static bool keys_equal(const feed_table *table, const json_t *one, const json_t *other)
{
    for (size_t i = 0; i < table->key_count; i++) {
        const char *name = ivm_table_column_name(table->table, table->key[i]);
        const json_t *first = json_object_get(one, name);
        if (first && !json_equal(first, json_object_get(other, name))) {
            return false;
        }
    }
    return true;
}

static bool update_read(const feed_session *feed, const feed_table *table, const json_t *before, const json_t *after, feed_changes *changes)
{
    bool known = before && !json_is_null(before);
    if (!table->key_count && !known) {
        return line_bad(changes, "an update of %s, which has no key, wants the row before it", table->name);
    }
    if (known && !(table->key_count && keys_equal(table, before, after)) && !row_take(feed, table, before, changes)) {
        return false;
    }
    return row_put(feed, table, after, NULL, changes);
}

static bool debezium_read(const feed_session *feed, const json_t *line, feed_changes *changes)
{
    bool with_key = json_object_get(line, "value") && !json_object_get(line, "op");
    const json_t *key = with_key ? unwrap(json_object_get(line, "key")) : NULL;
    const json_t *envelope = unwrap(with_key ? json_object_get(line, "value") : line);
    if (json_is_null(envelope)) {
        return true; /* follows a deletion, which has been told */
    }
    const char *op = member_text(envelope, "op");
    const json_t *before = json_object_get(envelope, "before"), *after = json_object_get(envelope, "after");
    if (!op || strlen(op) != 1 || !strchr("crud", *op)) {
        return line_bad(changes, "op is c, r, u or d%s%s", op ? ", not " : "", op ? op : "");
    }
    const feed_table *table = table_find(feed, member_text(json_object_get(envelope, "source"), "table"), changes);
    if (!table) {
        return false;
    }
    changes->schema = schema_of_row(with_key ? json_object_get(line, "value") : line);
    if (*op == 'u') {
        return update_read(feed, table, before, after, changes);
    }
    if (*op == 'd') {
        return row_take(feed, table, table->key_count && key && json_is_null(before) ? key : before, changes);
    }
    return row_put(feed, table, after, NULL, changes);
}

/* ---- Upserts --------------------------------------------------------------------------------------------------------------------------- */

static bool upsert_read(const feed_session *feed, const json_t *line, feed_changes *changes)
{
    const feed_table *table = table_find(feed, member_text(line, "table"), changes);
    const json_t *key = json_object_get(line, "key"), *row = json_object_get(line, "value");
    if (!table) {
        return false;
    }
    if (!table->key_count) {
        return line_bad(changes, "%s has no key to upsert by", table->name);
    }
    if (!key || !row) {
        return line_bad(changes, "a line has a key and a value");
    }
    if (!key_read(feed, table, key, changes) || json_is_null(row)) {
        return changes->count == 1;
    }
    changes->count = 0;
    json_t *named = NULL;
    if (!json_is_object(key)) {
        named = json_pack("{sO}", ivm_table_column_name(table->table, table->key[0]), key);
    }
    bool ok = row_put(feed, table, row, named ? named : key, changes);
    json_decref(named);
    return ok;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------------ */

static bool rows_read(const feed_session *feed, const json_t *line, feed_changes *changes)
{
    const feed_table *table = table_find(feed, NULL, changes);
    return table && row_put(feed, table, line, NULL, changes);
}

/* ---- Any ------------------------------------------------------------------------------------------------------------------------------- */

bool line_read(const feed_session *feed, const char *bytes, size_t size, feed_changes *changes)
{
    json_error_t error;
    changes->count = 0;
    changes->schema = NULL;
    if (feed->options.from == FEED_DEBEZIUM && size == 4 && memcmp(bytes, "null", 4) == 0) {
        changes->json = NULL;
        return true;
    }
    changes->json = json_line_parse(bytes, size, feed->exact, &error);
    if (!changes->json) {
        return line_bad(changes, "not JSON: %s", error.text);
    }
    if (!json_is_object(changes->json) && feed->options.from != FEED_ROWS) {
        return line_bad(changes, "a line is a JSON object");
    }
    switch (feed->options.from) {
    case FEED_DEBEZIUM:
        return debezium_read(feed, changes->json, changes);
    case FEED_UPSERT:
        return upsert_read(feed, changes->json, changes);
    case FEED_ROWS:
        return rows_read(feed, changes->json, changes);
    default:
        return feldera_read(feed, changes->json, changes);
    }
}
