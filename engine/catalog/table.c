/* Tables: declared, looked at, dropped. A table is a store; with a key its rows are found through a unique index over the key, without one
 * they are appended and found only once a batch takes a row away. */
#include "journal.h"
#include "publish.h"
#include "utf8.h"

ivm_status ivm__column_check(const ivm_column_definition *column, ivm_error *error)
{
    if (!column->name || !*column->name || strlen(column->name) > IVM_NAME_SIZE_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a column needs a name of at most %d bytes", IVM_NAME_SIZE_MAX);
    }
    if (!ivm__utf8_is(column->name)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "column %s: a name that is no UTF-8", column->name);
    }
    if (!ivm__type_is_valid(column->type) && column->type == IVM_DECIMAL(IVM_TYPE_PRECISION(column->type), IVM_TYPE_SCALE(column->type))) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT,
                         "column %s: decimal(%u,%u) is no type: a precision of 1 to %d, a scale of at most that", column->name,
                         IVM_TYPE_PRECISION(column->type), IVM_TYPE_SCALE(column->type), IVM_DECIMAL_PRECISION_MAX);
    }
    if (!ivm__type_is_valid(column->type)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "column %s: %u is no type", column->name, column->type);
    }
    return IVM_OK;
}

static ivm_status check_columns(const ivm_table_options *options, ivm_error *error)
{
    if (!options->columns || options->columns_count == 0 || options->columns_count > IVM_TABLE_COLUMNS_MAX) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a table has 1 to %d columns, not %zu%s", IVM_TABLE_COLUMNS_MAX,
                         options->columns_count, options->columns ? "" : " (columns is NULL)");
    }
    for (size_t i = 0; i < options->columns_count; i++) {
        IVM_TRY(ivm__column_check(&options->columns[i], error));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(options->columns[j].name, options->columns[i].name) == 0) {
                return ivm__fail(error, IVM_AMBIGUOUS_COLUMN, "two columns are named %s", options->columns[i].name);
            }
        }
    }
    return IVM_OK;
}

/* ---- Headings -------------------------------------------------------------------------------------------------------------------- */

static size_t heading_size(uint32_t columns_count)
{
    return sizeof(ivm__heading) + columns_count * (sizeof(ivm_type) + sizeof(uint32_t));
}

ivm__heading *ivm__heading_make(ivm__memory *memory, const ivm__column *columns, uint32_t columns_count)
{
    ivm__heading *heading = ivm__allocate(memory, heading_size(columns_count));
    if (!heading) {
        return NULL;
    }
    *heading = (ivm__heading){ .columns_count = columns_count, .types = (ivm_type *)(heading + 1) };
    heading->columns = heading->types + columns_count;
    for (uint32_t i = 0; i < columns_count; i++) {
        heading->types[i] = columns[i].type;
        heading->columns[i] = i;
    }
    return heading;
}

void ivm__heading_free(ivm__memory *memory, ivm__heading *heading)
{
    if (heading) {
        ivm__release(memory, heading, heading_size(heading->columns_count));
    }
}

const ivm__heading *ivm__table_heading(ivm_table *table, const ivm_type *types, const uint32_t *columns, uint32_t columns_count)
{
    for (const ivm__heading *heading = table->heading; heading; heading = heading->older) {
        if (heading->columns_count == columns_count && memcmp(heading->types, types, columns_count * sizeof *types) == 0 &&
            memcmp(heading->columns, columns, columns_count * sizeof *columns) == 0) {
            return heading;
        }
    }
    ivm__heading *made = ivm__allocate(&table->engine->memory, heading_size(columns_count));
    if (!made) {
        return NULL;
    }
    *made = (ivm__heading){ .older = table->heading->older, .columns_count = columns_count, .types = (ivm_type *)(made + 1) };
    made->columns = made->types + columns_count;
    memcpy(made->types, types, columns_count * sizeof *types);
    memcpy(made->columns, columns, columns_count * sizeof *columns);
    table->heading->older = made;
    return made;
}

/* ---- Making ---------------------------------------------------------------------------------------------------------------------- */

static ivm_status make_columns(ivm_table *table, const ivm_table_options *options, ivm_error *error)
{
    ivm__memory *memory = &table->engine->memory;
    uint32_t count = (uint32_t)options->columns_count;
    table->columns = ivm__allocate_zeroed(memory, count * sizeof *table->columns);
    table->columns_count = count; /* said first, so that freeing gives the right sizes */
    if (!table->columns) {
        return ivm__fail_memory(error);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ivm_column_definition *column = &options->columns[i];
        table->columns[i] = (ivm__column){ ivm__text_copy(memory, column->name, strlen(column->name)), column->type, !column->not_null };
        if (!table->columns[i].name) {
            return ivm__fail_memory(error);
        }
    }
    table->heading = ivm__heading_make(memory, table->columns, count);
    if (!table->heading) {
        return ivm__fail_memory(error);
    }
    table->types = table->heading->types;
    return IVM_OK;
}

static ivm_status key_column(ivm_table *table, const char *name, size_t size, ivm_error *error)
{
    uint32_t column;
    IVM_TRY(ivm__table_column(table, name, size, &column, error));
    for (uint32_t i = 0; i < table->key_count; i++) {
        if (table->key[i] == column) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "the key names column %s twice", table->columns[column].name);
        }
    }
    table->key[table->key_count++] = column;
    table->columns[column].nullable = false;
    return IVM_OK;
}

static ivm_status make_key(ivm_table *table, const char *key, ivm_error *error)
{
    if (!key || !*key) {
        return IVM_OK;
    }
    table->key = ivm__allocate_zeroed(&table->engine->memory, table->columns_count * sizeof *table->key);
    if (!table->key) {
        return ivm__fail_memory(error);
    }
    table->key_capacity = table->columns_count;
    const char *name;
    size_t size;
    while (ivm__name_next(&key, &name, &size)) {
        IVM_TRY(key_column(table, name, size, error));
    }
    return IVM_OK;
}

static ivm_status make_partition(ivm_table *table, const ivm_table_options *options, ivm_error *error)
{
    const char *name = options->partition;
    if (!name || !*name) {
        return IVM_OK;
    }
    IVM_TRY(ivm__table_column(table, name, strlen(name), &table->partition, error));
    ivm__column *column = &table->columns[table->partition];
    if (column->type != IVM_INT64) {
        char type[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(column->type, type);
        return ivm__fail(error, IVM_TYPE_MISMATCH, "table %s: its partition is an int64, and column %s is %s", table->name, name, type);
    }
    column->nullable = false;
    table->partitioned = true;
    return IVM_OK;
}

ivm_status ivm__table_layout(ivm__memory *memory, const ivm__column *columns, const ivm__heading *heading, bool packed,
                             ivm__layout **layout)
{
    uint32_t columns_count = heading->columns_count;
    bool *nullable = ivm__allocate(memory, columns_count * sizeof *nullable);
    if (!nullable) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < columns_count; i++) {
        nullable[i] = columns[i].nullable;
    }
    ivm_status status = ivm__layout_create(memory, heading->types, nullable, columns_count, packed, layout);
    ivm__release(memory, nullable, columns_count * sizeof *nullable);
    return status;
}

static ivm_status make_store(ivm_table *table, ivm_error *error)
{
    ivm_engine *engine = table->engine;
    ivm__layout *layout = NULL;
    ivm_status status = ivm__table_layout(&engine->memory, table->columns, table->heading, table->key_count == 0, &layout);
    if (status == IVM_OK) {
        status = ivm__store_init(&table->store, &engine->memory, &engine->texts, engine->seed, layout);
    }
    ivm__layout_release(layout);
    if (status == IVM_OK && table->key_count) {
        status = ivm__store_index(&table->store, table->key, table->key_count, true, &table->key_index);
    }
    return status == IVM_OK ? IVM_OK : ivm__fail_memory(error);
}

static ivm_status check_negative(const ivm_table *table, ivm_error *error)
{
    if (table->allow_negative && (table->key_count || table->append_only)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: negative weights go with neither a key nor append_only", table->name);
    }
    return IVM_OK;
}

static ivm_status check_transient(const ivm_table *table, ivm_error *error)
{
    if (table->transient && table->key_count) {
        return ivm__fail(error, IVM_UNSUPPORTED, "table %s: its rows are not kept, and a key needs them", table->name);
    }
    return IVM_OK;
}

static ivm_status make_table(ivm_engine *engine, const char *name, const ivm_table_options *options, ivm_table **made, ivm_error *error)
{
    ivm_table *table = ivm__allocate_zeroed(&engine->memory, sizeof *table);
    if (!table) {
        return ivm__fail_memory(error);
    }
    table->engine = engine;
    table->append_only = options->append_only;
    table->allow_negative = options->allow_negative;
    table->transient = options->transient;
    table->name = ivm__text_copy(&engine->memory, name, strlen(name));
    ivm_status status = table->name ? IVM_OK : ivm__fail_memory(error);
    if (status == IVM_OK) {
        status = make_columns(table, options, error);
    }
    if (status == IVM_OK) {
        status = make_key(table, options->key, error);
    }
    if (status == IVM_OK) {
        status = make_partition(table, options, error);
    }
    if (status == IVM_OK) {
        status = check_negative(table, error);
    }
    if (status == IVM_OK) {
        status = check_transient(table, error);
    }
    if (status == IVM_OK) {
        status = make_store(table, error);
    }
    if (status == IVM_OK && ivm__state_make(engine, NULL, table) != IVM_OK) {
        status = ivm__fail_memory(error);
    }
    if (status != IVM_OK) {
        ivm__table_free(table);
        return status;
    }
    table->id = ++engine->ids;
    *made = table;
    return IVM_OK;
}

static void unlist(ivm_table *table)
{
    ivm_table **at = &table->engine->changed;
    while (*at != table) {
        at = &(*at)->next_changed;
    }
    *at = table->next_changed;
}

void ivm__table_free(ivm_table *table)
{
    ivm__memory *memory = &table->engine->memory;
    ivm_table **recent = &table->engine->recent[table->id % IVM__TABLES_RECENT];
    *recent = *recent == table ? NULL : *recent;
    if (table->listed) {
        unlist(table);
    }
    ivm__state_free(table->engine, table->published);
    ivm__store_deinit(&table->store);
    for (uint32_t i = 0; table->columns && i < table->columns_count; i++) {
        if (table->columns[i].name) {
            ivm__release(memory, table->columns[i].name, strlen(table->columns[i].name) + 1);
        }
    }
    ivm__release(memory, table->columns, table->columns_count * sizeof *table->columns);
    for (ivm__heading *heading = table->heading, *older; heading; heading = older) {
        older = heading->older;
        ivm__heading_free(memory, heading);
    }
    ivm__release(memory, table->key, table->key_capacity * sizeof *table->key);
    if (table->name) {
        ivm__release(memory, table->name, strlen(table->name) + 1);
    }
    ivm__release(memory, table, sizeof *table);
}

ivm_status ivm__table_declare(ivm_engine *engine, const char *name, const ivm_table_options *options, ivm_table **table, ivm_error *error)
{
    ivm_table *made = NULL;
    IVM_TRY(ivm__name_check(engine, name, error));
    IVM_TRY(ivm__name_slots_reserve(engine) == IVM_OK ? IVM_OK : ivm__fail_memory(error));
    IVM_TRY(check_columns(options, error));
    IVM_TRY(make_table(engine, name, options, &made, error));
    ivm_status status = ivm__journal_table(made, error);
    if (status != IVM_OK) {
        ivm__table_free(made);
        return status;
    }
    ivm__table_enlist(made);
    *table = made;
    ivm__state_new(engine, made->transient ? NULL : made->published);
    return IVM_OK;
}

ivm_status ivm_table_create(ivm_engine *engine, const char *name, const ivm_table_options *options, ivm_table **table, ivm_error *error)
{
    if (!engine || !options || !table) {
        return ivm__fail_null(error, "ivm_table_create", !engine ? "engine" : !options ? "options" : "table");
    }
    if (options->version > IVM_TABLE_OPTIONS_VERSION) {
        return ivm__fail_version(error, "ivm_table_create", "options", options->version, IVM_TABLE_OPTIONS_VERSION);
    }
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = ivm__table_declare(engine, name, options, table, error);
    ivm__engine_leave(engine);
    return status;
}

static const char *reader_of(const ivm_table *table)
{
    for (const ivm_view *view = table->engine->views; view; view = view->next) {
        for (uint32_t i = 0; i < view->tables_count; i++) {
            if (view->tables[i] == table) {
                return view->name;
            }
        }
    }
    return "?";
}

static void drop_facts_of(const ivm_table *table)
{
    while (table->facts) {
        ivm__fact_drop(table->facts);
    }
    while (table->facts_to) {
        ivm__fact_drop(table->facts_to);
    }
}

ivm_status ivm_table_drop(ivm_table *table, ivm_error *error)
{
    if (!table) {
        return ivm__fail_null(error, "ivm_table_drop", "table");
    }
    ivm_engine *engine = table->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = table->readers_count ? ivm__fail(error, IVM_IN_USE, "table %s is read by view %s", table->name, reader_of(table))
                                             : ivm__journal_table_drop(table, error);
    if (status == IVM_OK) {
        drop_facts_of(table);
        ivm__table_delist(table);
        ivm__table_free(table);
        ivm__engine_settle(engine);
    }
    ivm__engine_leave(engine);
    return status;
}

const char *ivm_table_name(const ivm_table *table)
{
    return table ? table->name : NULL;
}

size_t ivm_table_columns_count(const ivm_table *table)
{
    return table ? table->columns_count : 0;
}

const char *ivm_table_column_name(const ivm_table *table, size_t column)
{
    return table && column < table->columns_count ? table->columns[column].name : NULL;
}

ivm_type ivm_table_column_type(const ivm_table *table, size_t column)
{
    return table && column < table->columns_count ? table->types[column] : 0;
}

size_t ivm_table_key(const ivm_table *table, size_t *columns, size_t capacity)
{
    size_t count = table ? table->key_count : 0;
    for (size_t i = 0; columns && i < count && i < capacity; i++) {
        columns[i] = table->key[i];
    }
    return count;
}
