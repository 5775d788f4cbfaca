/* Names: how tables, views and columns are found and which names may be given. A table's columns are few and walked; nothing on a push's way asks
 * them. */
#include "catalog.h"
#include "utf8.h"

static bool name_is(const char *name, const char *other, size_t size)
{
    return strlen(name) == size && memcmp(name, other, size) == 0;
}

ivm_status ivm__name_check(const ivm_engine *engine, const char *name, ivm_error *error)
{
    if (!name || !*name) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a table or view needs a name");
    }
    size_t size = strlen(name);
    if (size > IVM_NAME_SIZE_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "the name %.32s... has %zu bytes, %d at most", name, size, IVM_NAME_SIZE_MAX);
    }
    if (!ivm__utf8_is(name)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table or view %s: a name that is no UTF-8", name);
    }
    if (ivm__table_named(engine, name, size)) {
        return ivm__fail(error, IVM_ALREADY_EXISTS, "there is a table %s already", name);
    }
    if (ivm__view_named(engine, name, size)) {
        return ivm__fail(error, IVM_ALREADY_EXISTS, "there is a view %s already", name);
    }
    return IVM_OK;
}

ivm_status ivm__table_column(const ivm_table *table, const char *name, size_t size, uint32_t *column, ivm_error *error)
{
    for (uint32_t i = 0; i < table->columns_count; i++) {
        if (name_is(table->columns[i].name, name, size)) {
            *column = i;
            return IVM_OK;
        }
    }
    return ivm__fail(error, IVM_UNKNOWN_COLUMN, "table %s has no column %.*s", table->name, (int)size, name);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool ivm__name_next(const char **text, const char **name, size_t *size)
{
    const char *at = *text;
    if (!at) {
        return false;
    }
    while (is_space(*at)) {
        at++;
    }
    const char *end = at + strcspn(at, ",");
    *text = *end ? end + 1 : NULL;
    *name = at;
    while (end > at && is_space(end[-1])) {
        end--;
    }
    *size = (size_t)(end - at);
    return true;
}

ivm_status ivm_table_find(ivm_engine *engine, const char *name, ivm_table **table, ivm_error *error)
{
    if (!engine || !name || !table) {
        return ivm__fail_null(error, "ivm_table_find", !engine ? "engine" : !name ? "name" : "table");
    }
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_table *found = ivm__table_named(engine, name, strlen(name));
    ivm__engine_leave_reading(engine);
    if (!found) {
        return ivm__fail(error, IVM_UNKNOWN_TABLE, "there is no table %s", name);
    }
    *table = found;
    return IVM_OK;
}

ivm_status ivm_view_find(ivm_engine *engine, const char *name, ivm_view **view, ivm_error *error)
{
    if (!engine || !name || !view) {
        return ivm__fail_null(error, "ivm_view_find", !engine ? "engine" : !name ? "name" : "view");
    }
    IVM_TRY(ivm__engine_enter_reading(engine, error));
    ivm_view *found = ivm__view_named(engine, name, strlen(name));
    ivm__engine_leave_reading(engine);
    if (!found) {
        return ivm__fail(error, IVM_UNKNOWN_VIEW, "there is no view %s", name);
    }
    *view = found;
    return IVM_OK;
}

ivm_table *ivm_table_next(ivm_engine *engine, const ivm_table *table)
{
    return table ? table->next : engine ? engine->tables : NULL;
}

ivm_view *ivm_view_next(ivm_engine *engine, const ivm_view *view)
{
    return view ? view->next : engine ? engine->views : NULL;
}
