/* The catalog as bytes, tables and facts. What is read is declared by the calls that a user's declarations go through. See catalog_code.h. */
#include "catalog_code.h"

enum { APPEND_ONLY = 1, ALLOW_NEGATIVE = 2, TRANSIENT = 4, PARTITIONED = 8, FLAGS_END = 16 };

/* ---- Writing ---------------------------------------------------------------------------------------------------------------------- */

void ivm__table_code(ivm__code *code, const ivm_table *table)
{
    uint32_t flags = (table->append_only ? APPEND_ONLY : 0) | (table->allow_negative ? ALLOW_NEGATIVE : 0) |
                     (table->transient ? TRANSIENT : 0) | (table->partitioned ? PARTITIONED : 0);
    ivm__code_text(code, table->name);
    ivm__code_number(code, flags, 1);
    ivm__code_number(code, table->columns_count, 4);
    for (uint32_t c = 0; c < table->columns_count; c++) {
        ivm__code_text(code, table->columns[c].name);
        ivm__code_number(code, table->columns[c].type, 4);
        ivm__code_number(code, table->columns[c].nullable, 1);
    }
    ivm__code_number(code, table->key_count, 4);
    for (uint32_t k = 0; k < table->key_count; k++) {
        ivm__code_number(code, table->key[k], 4);
    }
    if (table->partitioned) {
        ivm__code_number(code, table->partition, 4);
    }
}

void ivm__tables_code(ivm__code *code, const ivm_engine *engine)
{
    uint32_t count = 0;
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        count++;
    }
    ivm__code_number(code, count, 4);
    for (const ivm_table *table = engine->tables; table; table = table->next) {
        ivm__table_code(code, table);
    }
}

void ivm__fact_code(ivm__code *code, const ivm_fact *fact)
{
    ivm__code_number(code, ivm__table_ordinal(fact->child), 4);
    ivm__code_number(code, ivm__table_ordinal(fact->parent), 4);
    ivm__code_number(code, fact->trust, 1);
    ivm__code_number(code, fact->columns_count, 4);
    for (uint32_t c = 0; c < fact->columns_count; c++) {
        ivm__code_number(code, fact->child_columns[c], 4);
        ivm__code_number(code, fact->parent_columns[c], 4);
    }
}

void ivm__facts_code(ivm__code *code, const ivm_engine *engine)
{
    uint32_t count = 0;
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        count++;
    }
    ivm__code_number(code, count, 4);
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        ivm__fact_code(code, fact);
    }
}

/* ---- Reading ---------------------------------------------------------------------------------------------------------------------- */

ivm_status ivm__catalog_fail(const ivm_error *cause, const char *what, ivm_error *error)
{
    if (cause->status == IVM_OUT_OF_MEMORY) {
        return ivm__fail_memory(error);
    }
    return ivm__fail(error, IVM_CORRUPT, "the catalog has a %s that cannot be%s%s", what, cause->status == IVM_OK ? "" : ": ",
                     cause->status == IVM_OK ? "" : cause->message);
}

/* Names of columns as lists of them are written. No name of a key or fact has a comma in it, nor space at an end. */
typedef struct name_list {
    ivm__code text;
    uint32_t count;
} name_list;

static void name_list_add(name_list *list, const char *name)
{
    ivm__code_raw(&list->text, ", ", list->count++ ? 2 : 0);
    ivm__code_raw(&list->text, name, strlen(name));
}

/* NULL: out of memory. */
static const char *name_list_end(name_list *list)
{
    ivm__code_number(&list->text, 0, 1);
    return list->text.failed ? NULL : (const char *)list->text.bytes;
}

static ivm_status columns_read(ivm__decode *decode, ivm__arena *arena, ivm_table_options *options)
{
    uint32_t count = ivm__decode_count(decode, 10);
    ivm_column_definition *columns = ivm__arena_allocate(arena, (count ? count : 1) * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    for (uint32_t c = 0; c < count && !decode->failed; c++) {
        columns[c].name = ivm__decode_text(decode);
        columns[c].type = ivm__decode_type(decode);
        columns[c].not_null = !ivm__decode_below(decode, 1, 2);
    }
    options->columns = columns;
    options->columns_count = count;
    return decode->failed ? IVM_CORRUPT : IVM_OK;
}

/* What the table's options say, their arrays in the arena, but for key and partition. */
static ivm_status options_read(ivm__decode *decode, ivm__arena *arena, const char **name, ivm_table_options *options, bool *partitioned)
{
    *name = ivm__decode_text(decode);
    uint64_t flags = ivm__decode_below(decode, 1, FLAGS_END);
    *partitioned = flags & PARTITIONED;
    *options = (ivm_table_options){ .version = IVM_TABLE_OPTIONS_VERSION,
                                    .append_only = flags & APPEND_ONLY,
                                    .allow_negative = flags & ALLOW_NEGATIVE,
                                    .transient = flags & TRANSIENT };
    return decode->failed ? IVM_CORRUPT : columns_read(decode, arena, options);
}

static ivm_status table_read(ivm__decode *decode, ivm_engine *engine, name_list *key, ivm_error *cause)
{
    ivm_table_options options;
    ivm_table *table;
    const char *name;
    bool partitioned;
    IVM_TRY(options_read(decode, &engine->scratch, &name, &options, &partitioned));
    uint32_t count = ivm__decode_count(decode, 4);
    for (uint32_t k = 0; k < count; k++) {
        uint64_t column = ivm__decode_below(decode, 4, options.columns_count);
        if (decode->failed) {
            return IVM_CORRUPT;
        }
        name_list_add(key, options.columns[column].name);
    }
    uint64_t partition = partitioned ? ivm__decode_below(decode, 4, options.columns_count) : 0;
    if (decode->failed) {
        return IVM_CORRUPT;
    }
    options.partition = partitioned ? options.columns[partition].name : NULL;
    options.key = name_list_end(key);
    return options.key ? ivm__table_declare(engine, name, &options, &table, cause) : IVM_OUT_OF_MEMORY;
}

static ivm_status fact_read(ivm__decode *decode, ivm_engine *engine, name_list *columns, name_list *parents, ivm_error *cause)
{
    ivm_table *child = ivm__table_at(engine, (uint32_t)ivm__decode_number(decode, 4));
    ivm_table *parent = ivm__table_at(engine, (uint32_t)ivm__decode_number(decode, 4));
    ivm_trust trust = (ivm_trust)ivm__decode_below(decode, 1, IVM_TRACKED + 1);
    uint32_t count = ivm__decode_count(decode, 8);
    if (decode->failed || !child || !parent) {
        return IVM_CORRUPT;
    }
    for (uint32_t c = 0; c < count; c++) {
        uint64_t column = ivm__decode_below(decode, 4, child->columns_count);
        uint64_t parent_column = ivm__decode_below(decode, 4, parent->columns_count);
        if (decode->failed) {
            return IVM_CORRUPT;
        }
        name_list_add(columns, child->columns[column].name);
        name_list_add(parents, parent->columns[parent_column].name);
    }
    const char *text = name_list_end(columns), *parents_text = name_list_end(parents);
    if (!text || !parents_text) {
        return IVM_OUT_OF_MEMORY;
    }
    return ivm__fact_restore(child, text, parent, parents_text, trust, cause);
}

static ivm_status fail(ivm_status status, ivm_error *cause, const char *what, ivm_error *error)
{
    cause->status = cause->status == IVM_OK && status == IVM_OUT_OF_MEMORY ? status : cause->status;
    return ivm__catalog_fail(cause, what, error);
}

ivm_status ivm__table_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    name_list key = { .text = { .memory = &engine->memory } };
    ivm__arena_mark mark = ivm__arena_here(&engine->scratch);
    ivm_status status = table_read(decode, engine, &key, &cause);
    ivm__arena_back(&engine->scratch, mark);
    ivm__code_deinit(&key.text);
    return status == IVM_OK ? IVM_OK : fail(status, &cause, "table", error);
}

ivm_status ivm__fact_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    name_list columns = { .text = { .memory = &engine->memory } }, parents = columns;
    ivm_status status = fact_read(decode, engine, &columns, &parents, &cause);
    ivm__code_deinit(&columns.text);
    ivm__code_deinit(&parents.text);
    return status == IVM_OK ? IVM_OK : fail(status, &cause, "foreign key", error);
}

ivm_status ivm__tables_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    uint32_t count = ivm__decode_count(decode, 13);
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__table_decode(decode, engine, error));
    }
    return decode->failed ? fail(IVM_CORRUPT, &cause, "table", error) : IVM_OK;
}

ivm_status ivm__facts_decode(ivm__decode *decode, ivm_engine *engine, ivm_error *error)
{
    ivm_error cause = IVM_ERROR_INIT;
    uint32_t count = ivm__decode_count(decode, 13);
    for (uint32_t i = 0; i < count; i++) {
        IVM_TRY(ivm__fact_decode(decode, engine, error));
    }
    return decode->failed ? fail(IVM_CORRUPT, &cause, "foreign key", error) : IVM_OK;
}
