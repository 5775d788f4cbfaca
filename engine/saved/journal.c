/* Journals: changes of the catalog and refreshes as records. Without a journal none is made. See journal.h. */
#include "journal.h"

#include "catalog_code.h"

ivm_status ivm__journal_code(ivm_engine *engine, ivm__record kind, ivm__code *code, ivm_error *error)
{
    ivm_status status = code->failed ? ivm__fail_memory(error) : IVM_OK;
    assert(engine->journal && kind > IVM__RECORD_PUSH && kind < IVM__RECORD_END);
    if (status == IVM_OK) {
        status = engine->journal->change(engine->journal, kind, code->bytes, code->size, error);
    }
    ivm__code_deinit(code);
    return status;
}

ivm_status ivm__journal_table(const ivm_table *table, ivm_error *error)
{
    ivm__code code = { .memory = &table->engine->memory };
    if (!table->engine->journal) {
        return IVM_OK;
    }
    ivm__table_code(&code, table);
    return ivm__journal_code(table->engine, IVM__RECORD_TABLE, &code, error);
}

ivm_status ivm__journal_fact(const ivm_fact *fact, ivm_error *error)
{
    ivm__code code = { .memory = &fact->engine->memory };
    if (!fact->engine->journal) {
        return IVM_OK;
    }
    ivm__fact_code(&code, fact);
    return ivm__journal_code(fact->engine, IVM__RECORD_FACT, &code, error);
}

static ivm_status journal_ordinal(ivm_engine *engine, ivm__record kind, uint32_t ordinal, ivm_error *error)
{
    ivm__code code = { .memory = &engine->memory };
    ivm__code_number(&code, ordinal, 4);
    return ivm__journal_code(engine, kind, &code, error);
}

ivm_status ivm__journal_table_drop(const ivm_table *table, ivm_error *error)
{
    ivm_engine *engine = table->engine;
    return engine->journal ? journal_ordinal(engine, IVM__RECORD_TABLE_DROP, ivm__table_ordinal(table), error) : IVM_OK;
}

ivm_status ivm__journal_fact_remove(const ivm_fact *fact, ivm_error *error)
{
    ivm_engine *engine = fact->engine;
    return engine->journal ? journal_ordinal(engine, IVM__RECORD_FACT_REMOVE, ivm__fact_ordinal(fact), error) : IVM_OK;
}

ivm_status ivm__journal_view_drop(const ivm_view *view, ivm_error *error)
{
    ivm_engine *engine = view->engine;
    return engine->journal ? journal_ordinal(engine, IVM__RECORD_VIEW_DROP, ivm__view_ordinal(view), error) : IVM_OK;
}

ivm_status ivm__journal_refresh(const ivm_view *view, ivm_error *error)
{
    ivm_engine *engine = view->engine;
    return engine->journal ? journal_ordinal(engine, IVM__RECORD_REFRESH, ivm__view_ordinal(view), error) : IVM_OK;
}

ivm_status ivm__journal_column(const ivm_table *table, const char *name, const char *renamed, ivm_error *error)
{
    ivm__code code = { .memory = &table->engine->memory };
    if (!table->engine->journal) {
        return IVM_OK;
    }
    ivm__code_number(&code, ivm__table_ordinal(table), 4);
    ivm__code_text(&code, name);
    if (renamed) {
        ivm__code_text(&code, renamed);
    }
    return ivm__journal_code(table->engine, renamed ? IVM__RECORD_COLUMN_RENAME : IVM__RECORD_COLUMN_DROP, &code, error);
}

ivm_status ivm__journal_column_add(const ivm_table *table, const ivm__column *added, ivm_error *error)
{
    ivm__code code = { .memory = &table->engine->memory };
    if (!table->engine->journal) {
        return IVM_OK;
    }
    ivm__code_number(&code, ivm__table_ordinal(table), 4);
    ivm__code_text(&code, added->name);
    ivm__code_number(&code, added->type, 4);
    return ivm__journal_code(table->engine, IVM__RECORD_COLUMN_ADD, &code, error);
}
