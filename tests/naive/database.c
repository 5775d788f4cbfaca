/* The oracle's catalog: tables, facts, views, in plain arrays. */
#include "naive.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Whole ------------------------------------------------------------------------------------------------------------------------- */

static void relation_copy(const naive_relation *from, naive_relation *to)
{
    naive_relation_init(to, from->width);
    (void)naive_rows_add(to, from, 1); /* as many as there are */
}

void naive_database_copy(const naive_database *database, naive_database *copy)
{
    *copy = *database;
    copy->tables = naive_grow(NULL, database->tables_count, sizeof *copy->tables);
    copy->facts = naive_grow(NULL, database->facts_count, sizeof *copy->facts);
    copy->views = naive_grow(NULL, database->views_count, sizeof *copy->views);
    for (size_t i = 0; i < database->tables_count; i++) {
        naive_table *table = &copy->tables[i];
        *table = database->tables[i];
        table->columns = naive_take(copy->pool, table->columns_count * sizeof *table->columns);
        memcpy(table->columns, database->tables[i].columns, table->columns_count * sizeof *table->columns);
        relation_copy(&database->tables[i].rows, &table->rows);
    }
    for (size_t i = 0; i < database->facts_count; i++) {
        copy->facts[i] = database->facts[i];
    }
    for (size_t i = 0; i < database->views_count; i++) {
        copy->views[i] = database->views[i];
        relation_copy(&database->views[i].rows, &copy->views[i].rows);
        relation_copy(&database->views[i].changes, &copy->views[i].changes);
    }
}

void naive_database_free(naive_database *database)
{
    for (size_t i = 0; i < database->tables_count; i++) {
        naive_relation_free(&database->tables[i].rows);
    }
    for (size_t i = 0; i < database->views_count; i++) {
        naive_relation_free(&database->views[i].rows);
        naive_relation_free(&database->views[i].changes);
    }
    free(database->tables);
    free(database->facts);
    free(database->views);
    *database = (naive_database){ .pool = database->pool };
}

naive_table *naive_table_find(const naive_database *database, const char *name)
{
    for (size_t i = 0; i < database->tables_count; i++) {
        if (strcmp(database->tables[i].name, name) == 0) {
            return &database->tables[i];
        }
    }
    return NULL;
}

naive_view *naive_view_find(const naive_database *database, const char *name)
{
    for (size_t i = 0; i < database->views_count; i++) {
        if (strcmp(database->views[i].name, name) == 0) {
            return &database->views[i];
        }
    }
    return NULL;
}

const naive_relation *naive_source(const naive_database *database, const char *name)
{
    const naive_table *table = naive_table_find(database, name);
    return table ? &table->rows : &naive_view_find(database, name)->rows;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------ */

size_t naive_table_column_find(const naive_table *table, uint32_t id)
{
    size_t c = 0;
    while (c < table->columns_count && table->columns[c].id != id) {
        c++;
    }
    return c;
}

static size_t column_named(const naive_table *table, const char *name)
{
    size_t c = 0;
    while (c < table->columns_count && strcmp(table->columns[c].name, name) != 0) {
        c++;
    }
    return c;
}

static ivm_status key_read(naive_table *table, const char *const *key, size_t key_count)
{
    assert(key_count <= NAIVE_KEY_MAX);
    for (size_t k = 0; k < key_count; k++) {
        table->key[k] = column_named(table, key[k]);
        if (table->key[k] == table->columns_count) {
            return IVM_UNKNOWN_COLUMN;
        }
        for (size_t other = 0; other < k; other++) {
            if (table->key[other] == table->key[k]) {
                return IVM_INVALID_ARGUMENT;
            }
        }
        table->columns[table->key[k]].not_null = true;
    }
    table->key_count = key_count;
    return IVM_OK;
}

ivm_status naive_table_create(naive_database *database, const char *name, const ivm_table_options *options, const char *const *key,
                              size_t key_count)
{
    if (naive_table_find(database, name) || naive_view_find(database, name)) {
        return IVM_ALREADY_EXISTS;
    }
    naive_table table = { .name = naive_text(database->pool, "%s", name),
                          .append_only = options->append_only,
                          .allow_negative = options->allow_negative,
                          .transient = options->transient };
    table.columns = naive_take(database->pool, options->columns_count * sizeof *table.columns);
    for (size_t c = 0; c < options->columns_count; c++) {
        const ivm_column_definition *column = &options->columns[c];
        if (column_named(&table, column->name) < table.columns_count) {
            return IVM_AMBIGUOUS_COLUMN;
        }
        const char *copy = naive_text(database->pool, "%s", column->name);
        table.columns[table.columns_count++] = (naive_table_column){ copy, column->type, column->not_null, ++database->ids };
    }
    if (!options->columns_count || (table.allow_negative && (key_count || table.append_only))) {
        return IVM_INVALID_ARGUMENT;
    }
    if (table.transient && key_count) {
        return IVM_UNSUPPORTED;
    }
    NAIVE_TRY(key_read(&table, key, key_count));
    naive_relation_init(&table.rows, table.columns_count);
    database->tables = naive_grow(database->tables, database->tables_count + 1, sizeof table);
    database->tables[database->tables_count++] = table;
    return IVM_OK;
}

static bool view_reads(const naive_database *database, const char *name)
{
    for (size_t i = 0; i < database->views_count; i++) {
        if (naive_plan_reads(database->views[i].plan, name)) {
            return true;
        }
    }
    return false;
}

ivm_status naive_table_drop(naive_database *database, const char *name)
{
    naive_table *table = naive_table_find(database, name);
    if (!table) {
        return IVM_UNKNOWN_TABLE;
    }
    if (view_reads(database, name)) {
        return IVM_IN_USE;
    }
    for (size_t i = database->facts_count; i-- > 0;) {
        if (strcmp(database->facts[i].child, name) == 0 || strcmp(database->facts[i].parent, name) == 0) {
            naive_fact_remove(database, i);
        }
    }
    naive_relation_free(&table->rows);
    size_t after = database->tables_count - 1 - (size_t)(table - database->tables);
    memmove(table, table + 1, after * sizeof *table);
    database->tables_count--;
    return IVM_OK;
}

/* ---- Facts ------------------------------------------------------------------------------------------------------------------------- */

static bool is_key(const naive_table *table, const naive_fact *fact)
{
    bool all = fact->count == table->key_count;
    for (size_t k = 0; all && k < table->key_count; k++) {
        size_t named = 0;
        for (size_t i = 0; i < fact->count; i++) {
            named += fact->parent_ids[i] == table->columns[table->key[k]].id;
        }
        all = named == 1;
    }
    return all;
}

/* Whether another fact pairs the same columns and is trusted in another way. */
static bool fact_stands(const naive_database *database, const naive_fact *fact)
{
    for (size_t i = 0; i < database->facts_count; i++) {
        const naive_fact *other = &database->facts[i];
        size_t found = 0;
        for (size_t a = 0; a < fact->count * other->count; a++) {
            size_t at = a / other->count, by = a % other->count;
            found += fact->child_ids[at] == other->child_ids[by] && fact->parent_ids[at] == other->parent_ids[by];
        }
        if (strcmp(fact->child, other->child) == 0 && strcmp(fact->parent, other->parent) == 0 && found == fact->count &&
            other->trust != fact->trust) {
            return true;
        }
    }
    return false;
}

static ivm_status fact_check(const naive_database *database, const naive_table *child, const naive_table *parent, const naive_fact *fact)
{
    naive_relation orphans;
    if (!fact->count || !is_key(parent, fact)) {
        return IVM_INVALID_ARGUMENT;
    }
    if (fact_stands(database, fact)) {
        return IVM_ALREADY_EXISTS;
    }
    if (fact->trust == IVM_ENFORCED && child->allow_negative) {
        return IVM_INVALID_ARGUMENT;
    }
    if (fact->trust != IVM_RELY && child->transient && (child->came || (fact->trust == IVM_TRACKED && child->allow_negative))) {
        return IVM_UNSUPPORTED;
    }
    naive_orphans(database, fact, &orphans);
    bool breaks = fact->trust == IVM_ENFORCED && orphans.count;
    naive_relation_free(&orphans);
    return breaks ? IVM_FK_VIOLATION : IVM_OK;
}

ivm_status naive_fact_declare(naive_database *database, const char *child_name, const char *const *columns, const char *parent_name,
                              const char *const *parent_columns, size_t count, ivm_trust trust)
{
    const naive_table *child = naive_table_find(database, child_name), *parent = naive_table_find(database, parent_name);
    if (!child || !parent) {
        return IVM_UNKNOWN_TABLE;
    }
    naive_fact fact = { .child = child->name, .parent = parent->name, .count = count, .trust = trust };
    assert(count <= NAIVE_KEY_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t c = column_named(child, columns[i]), p = column_named(parent, parent_columns[i]);
        if (c == child->columns_count || p == parent->columns_count) {
            return IVM_UNKNOWN_COLUMN;
        }
        fact.child_ids[i] = child->columns[c].id;
        fact.parent_ids[i] = parent->columns[p].id;
        if (child->columns[c].type != parent->columns[p].type) {
            return IVM_TYPE_MISMATCH;
        }
    }
    NAIVE_TRY(fact_check(database, child, parent, &fact));
    database->facts = naive_grow(database->facts, database->facts_count + 1, sizeof fact);
    database->facts[database->facts_count++] = fact;
    return IVM_OK;
}

void naive_fact_remove(naive_database *database, size_t fact)
{
    naive_fact *at = &database->facts[fact];
    memmove(at, at + 1, (database->facts_count - fact - 1) * sizeof *at);
    database->facts_count--;
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------------- */

bool naive_reads(const naive_database *database, const naive_plan *plan, const char *name)
{
    bool reads = naive_plan_reads(plan, name);
    for (size_t i = 0; i < database->views_count && !reads; i++) {
        const naive_view *view = &database->views[i];
        reads = naive_plan_reads(plan, view->name) && naive_reads(database, view->plan, name);
    }
    return reads;
}

/* Columns that are called alike once their aliases are gone. */
static bool twins(const naive_plan *plan)
{
    for (size_t a = 0; a < plan->width; a++) {
        for (size_t b = 0; b < a; b++) {
            if (strcmp(naive_bare_name(plan->heading[a].name), naive_bare_name(plan->heading[b].name)) == 0) {
                return true;
            }
        }
    }
    return false;
}

ivm_status naive_view_create(naive_database *database, const char *name, naive_plan *plan, bool deferred)
{
    naive_view view = { .name = naive_text(database->pool, "%s", name), .plan = plan, .deferred = deferred };
    if (naive_table_find(database, name) || naive_view_find(database, name)) {
        return IVM_ALREADY_EXISTS;
    }
    NAIVE_TRY(naive_bind(database->pool, database, plan));
    NAIVE_TRY(naive_evaluate(database->pool, database, plan, false, &view.rows));
    if (twins(plan)) {
        naive_relation_free(&view.rows);
        return IVM_AMBIGUOUS_COLUMN;
    }
    naive_relation_init(&view.changes, plan->width);
    database->views = naive_grow(database->views, database->views_count + 1, sizeof view);
    database->views[database->views_count++] = view;
    return IVM_OK;
}

ivm_status naive_view_drop(naive_database *database, const char *name)
{
    naive_view *view = naive_view_find(database, name);
    if (!view) {
        return IVM_UNKNOWN_VIEW;
    }
    if (view_reads(database, name)) {
        return IVM_IN_USE;
    }
    naive_relation_free(&view->rows);
    naive_relation_free(&view->changes);
    memmove(view, view + 1, (database->views_count - 1 - (size_t)(view - database->views)) * sizeof *view);
    database->views_count--;
    return IVM_OK;
}
