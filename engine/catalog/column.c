/* Columns that are renamed, come and go: the calls, what they refuse, and the journal told of them before anything is published. What is laid out anew:
 * column_change.c. */
#include "column_change.h"
#include "journal.h"
#include "transient.h"

/* ---- Renaming ---------------------------------------------------------------------------------------------------------------------------- */

static ivm_status name_check(const ivm_table *table, const ivm_column_definition *column, ivm_error *error)
{
    uint32_t found;
    IVM_TRY(ivm__column_check(column, error));
    if (ivm__table_column(table, column->name, strlen(column->name), &found, NULL) == IVM_OK) {
        return ivm__fail(error, IVM_ALREADY_EXISTS, "table %s has a column %s already", table->name, column->name);
    }
    return IVM_OK;
}

static ivm_status rename_column(ivm_table *table, const char *column, const char *name, ivm_error *error)
{
    uint32_t at;
    IVM_TRY(ivm__table_column(table, column, strlen(column), &at, error));
    ivm_column_definition renamed = { name, table->types[at], false };
    IVM_TRY(name_check(table, &renamed, error));
    ivm__memory *memory = &table->engine->memory;
    char *copy = ivm__text_copy(memory, name, strlen(name));
    if (!copy) {
        return ivm__fail_memory(error);
    }
    ivm_status status = ivm__journal_column(table, column, name, error);
    if (status == IVM_OK) {
        char *former = table->columns[at].name;
        table->columns[at].name = copy;
        copy = former;
    }
    ivm__release(memory, copy, strlen(copy) + 1);
    return status;
}

ivm_status ivm_table_column_rename(ivm_table *table, const char *column, const char *name, ivm_error *error)
{
    if (!table || !column || !name) {
        return ivm__fail_null(error, "ivm_table_column_rename", !table ? "table" : !column ? "column" : "name");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = rename_column(table, column, name, error);
    ivm__engine_leave(table->engine);
    return status;
}

/* ---- Adding ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status add_column(ivm_table *table, const ivm_column_definition *definition, ivm_error *error)
{
    ivm_engine *engine = table->engine;
    IVM_TRY(name_check(table, definition, error));
    if (definition->not_null) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: column %s is null in the rows that are there", table->name,
                         definition->name);
    }
    if (table->columns_count == IVM_TABLE_COLUMNS_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s has %d columns already", table->name, IVM_TABLE_COLUMNS_MAX);
    }
    ivm__column added = { ivm__text_copy(&engine->memory, definition->name, strlen(definition->name)), definition->type, true };
    if (!added.name) {
        return ivm__fail_memory(error);
    }
    ivm__column_change it;
    ivm_status status = ivm__column_change_make(&it, table, IVM__COLUMN_NEW, &added, error);
    if (status == IVM_OK && (status = ivm__journal_column_add(table, &added, error)) != IVM_OK) {
        ivm__column_change_free(&it);
    }
    if (status != IVM_OK) {
        ivm__release(&engine->memory, added.name, strlen(added.name) + 1);
        return status;
    }
    ivm__column_change_publish(&it);
    return IVM_OK;
}

ivm_status ivm_table_column_add(ivm_table *table, const ivm_column_definition *column, ivm_error *error)
{
    if (!table || !column) {
        return ivm__fail_null(error, "ivm_table_column_add", table ? "column" : "table");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = add_column(table, column, error);
    ivm__engine_settle(table->engine);
    ivm__engine_leave(table->engine);
    return status;
}

/* ---- Dropping ---------------------------------------------------------------------------------------------------------------------------- */

/* A view that reads the column, or NULL. */
static const ivm_view *reader_of(const ivm_table *table, uint32_t column)
{
    for (const ivm_view *view = table->engine->views; view; view = view->next) {
        for (uint32_t i = 0; i < view->tables_count; i++) {
            const ivm__used *used = view->used ? &view->used[i] : NULL;
            bool reads = !used || table->allow_negative || (column < used->columns_count && used->columns[column]);
            if (view->tables[i] == table && reads) {
                return view;
            }
        }
    }
    return NULL;
}

static ivm_status drop_check(const ivm_table *table, uint32_t column, ivm_error *error)
{
    const char *name = table->columns[column].name;
    const ivm_view *view = reader_of(table, column);
    if (view) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is read by view %s", table->name, name, view->name);
    }
    if (ivm__columns_include(table->key, table->key_count, column)) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is one of the key", table->name, name);
    }
    if (table->partitioned && table->partition == column) {
        return ivm__fail(error, IVM_IN_USE, "table %s: column %s is the partition of its rows", table->name, name);
    }
    for (const ivm_fact *fact = table->facts_to; fact; fact = fact->next_of_parent) {
        assert(!ivm__columns_include(fact->parent_columns, fact->columns_count, column));
    }
    for (const ivm_fact *fact = table->facts; fact; fact = fact->next_of_child) {
        if (ivm__fact_names(fact, table, column) && fact->pins) {
            return ivm__fail(error, IVM_IN_USE, "table %s: a foreign key names column %s, and view %s rests on it", table->name, name,
                             ivm__hops_view(fact)->name);
        }
    }
    if (table->columns_count == 1) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: column %s is its only one", table->name, name);
    }
    return IVM_OK;
}

static void facts_drop(const ivm_table *table, uint32_t dropped)
{
    for (ivm_fact *fact = table->facts, *next; fact; fact = next) {
        next = fact->next_of_child;
        if (ivm__fact_names(fact, table, dropped)) {
            ivm__fact_drop(fact);
        }
    }
}

static ivm_status drop_column(ivm_table *table, const char *column, ivm_error *error)
{
    uint32_t dropped;
    IVM_TRY(ivm__table_column(table, column, strlen(column), &dropped, error));
    IVM_TRY(drop_check(table, dropped, error));
    ivm__column_change it;
    IVM_TRY(ivm__column_change_make(&it, table, dropped, NULL, error));
    ivm_status status = ivm__journal_column(table, column, NULL, error);
    if (status != IVM_OK) {
        ivm__column_change_free(&it);
        return status;
    }
    char *name = table->columns[dropped].name;
    facts_drop(table, dropped);
    ivm__column_change_publish(&it);
    if (table->transient && !table->hops) {
        ivm__store_clear(&table->store); /* what waited by the facts that went waits no more */
    }
    ivm__release(&table->engine->memory, name, strlen(name) + 1);
    return IVM_OK;
}

ivm_status ivm_table_column_drop(ivm_table *table, const char *column, ivm_error *error)
{
    if (!table || !column) {
        return ivm__fail_null(error, "ivm_table_column_drop", table ? "column" : "table");
    }
    IVM_TRY(ivm__engine_enter(table->engine, error));
    ivm_status status = drop_column(table, column, error);
    ivm__engine_settle(table->engine);
    ivm__engine_leave(table->engine);
    return status;
}
