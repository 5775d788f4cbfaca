/* Facts: declared foreign keys. A fact holds on to tables, not to names: it dies with either and attaches to no other. */
#include "enforce.h"

static ivm_status name_columns(const ivm_table *table, const char *names, uint32_t *columns, uint32_t capacity, uint32_t *count,
                               ivm_error *error)
{
    const char *name;
    size_t size;
    *count = 0;
    while (names && *names && ivm__name_next(&names, &name, &size)) {
        uint32_t column;
        IVM_TRY(ivm__table_column(table, name, size, &column, error));
        if (*count == capacity) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "a foreign key of %s names more columns than there are", table->name);
        }
        columns[(*count)++] = column;
    }
    return IVM_OK;
}

/* Whether the parent's columns are its key, in any order. */
static bool is_key(const ivm_table *parent, const uint32_t *columns, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < parent->key_count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            if (columns[i] == parent->key[k]) {
                found++;
                break;
            }
        }
    }
    return count == parent->key_count && found == count;
}

static ivm_status check_columns(const ivm_fact *fact, uint32_t child_count, uint32_t parent_count, ivm_error *error)
{
    const ivm_table *child = fact->child, *parent = fact->parent;
    if (child_count == 0 || child_count != parent_count) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a foreign key pairs columns: %u of %s with %u of %s", child_count, child->name,
                         parent_count, parent->name);
    }
    for (uint32_t i = 0; i < child_count; i++) {
        const ivm__column *a = &child->columns[fact->child_columns[i]], *b = &parent->columns[fact->parent_columns[i]];
        if (a->type != b->type) {
            return ivm__fail(error, IVM_TYPE_MISMATCH, "columns %s.%s and %s.%s are of different types", child->name, a->name, parent->name,
                             b->name);
        }
    }
    if (!is_key(parent, fact->parent_columns, parent_count)) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a foreign key refers to the whole key of %s", parent->name);
    }
    return IVM_OK;
}

ivm_status ivm__fact_make(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_fact **made,
                          ivm_error *error)
{
    ivm_engine *engine = child->engine;
    ivm_fact *fact = ivm__allocate_zeroed(&engine->memory, sizeof *fact);
    if (!fact) {
        return ivm__fail_memory(error);
    }
    *fact = (ivm_fact){ .engine = engine, .child = child, .parent = parent, .since = engine->pushes };
    fact->columns_capacity = child->columns_count > parent->columns_count ? child->columns_count : parent->columns_count;
    fact->child_columns = ivm__allocate(&engine->memory, fact->columns_capacity * sizeof(uint32_t));
    fact->parent_columns = ivm__allocate(&engine->memory, fact->columns_capacity * sizeof(uint32_t));
    uint32_t child_count = 0, parent_count = 0;
    ivm_status status = fact->child_columns && fact->parent_columns ? IVM_OK : ivm__fail_memory(error);
    if (status == IVM_OK) {
        status = name_columns(child, columns, fact->child_columns, fact->columns_capacity, &child_count, error);
    }
    if (status == IVM_OK) {
        status = name_columns(parent, parent_columns, fact->parent_columns, fact->columns_capacity, &parent_count, error);
    }
    if (status == IVM_OK) {
        status = check_columns(fact, child_count, parent_count, error);
    }
    if (status != IVM_OK) {
        ivm__fact_free(fact);
        return status;
    }
    fact->columns_count = child_count;
    *made = fact;
    return IVM_OK;
}

void ivm__fact_free(ivm_fact *fact)
{
    ivm__memory *memory = &fact->engine->memory;
    ivm__release(memory, fact->child_columns, fact->columns_capacity * sizeof(uint32_t));
    ivm__release(memory, fact->parent_columns, fact->columns_capacity * sizeof(uint32_t));
    ivm__release(memory, fact, sizeof *fact);
}

void ivm__fact_drop(ivm_fact *fact)
{
    ivm_fact **at = &fact->engine->facts;
    while (*at != fact) {
        at = &(*at)->next;
    }
    *at = fact->next;
    fact->engine->facts_version++;
    ivm__fact_free(fact);
}

/* Whether a fact may be trusted so. */
static ivm_status check_trust(const ivm_fact *fact, ivm_trust trust, ivm_error *error)
{
    const ivm_table *child = fact->child;
    if (trust == IVM_TRACKED) {
        return ivm__fail(error, IVM_UNSUPPORTED, "foreign key of %s: rely and enforced facts are supported, tracked ones are not",
                         child->name);
    }
    if (trust == IVM_ENFORCED && child->allow_negative) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "foreign key of %s: it allows negative weights, and no fact of it is enforced",
                         child->name);
    }
    if (trust != IVM_RELY && child->transient && child->came) {
        return ivm__fail(error, IVM_UNSUPPORTED, "foreign key of %s: it does not keep its rows, and some have come and gone", child->name);
    }
    return trust == IVM_ENFORCED ? ivm__enforce_present(&fact->engine->scratch, fact, error) : IVM_OK;
}

static void publish(ivm_fact *fact, ivm_trust trust)
{
    ivm_engine *engine = fact->engine;
    ivm_fact **last = &engine->facts;
    while (*last) {
        last = &(*last)->next;
    }
    *last = fact;
    fact->trust = trust;
    fact->id = ++engine->ids;
    engine->facts_version++;
}

ivm_status ivm_foreign_key_declare(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust,
                                   ivm_fact **fact, ivm_error *error)
{
    if (!child || !parent || child->engine != parent->engine) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a foreign key wants two tables of one engine");
    }
    if (trust > IVM_TRACKED) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%d is no trust", (int)trust);
    }
    ivm_engine *engine = child->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_fact *made = NULL;
    ivm_status status = ivm__fact_make(child, columns, parent, parent_columns, &made, error);
    if (status == IVM_OK) {
        status = check_trust(made, trust, error);
        if (status == IVM_OK) {
            publish(made, trust);
        } else {
            ivm__fact_free(made);
        }
    }
    if (status == IVM_OK && fact) {
        *fact = made;
    }
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_foreign_key_remove(ivm_fact *fact, ivm_error *error)
{
    if (!fact) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_foreign_key_remove: a fact is wanted");
    }
    ivm_engine *engine = fact->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm__fact_drop(fact);
    ivm__engine_leave(engine);
    return IVM_OK;
}

/* ---- What can be asked --------------------------------------------------------------------------------------------------------------- */

ivm_fact *ivm_fact_next(ivm_engine *engine, const ivm_fact *fact)
{
    return fact ? fact->next : engine->facts;
}

ivm_table *ivm_fact_child(const ivm_fact *fact)
{
    return fact->child;
}

ivm_table *ivm_fact_parent(const ivm_fact *fact)
{
    return fact->parent;
}

size_t ivm_fact_columns(const ivm_fact *fact, size_t *child_columns, size_t *parent_columns, size_t capacity)
{
    for (size_t i = 0; i < fact->columns_count && i < capacity; i++) {
        if (child_columns) {
            child_columns[i] = fact->child_columns[i];
        }
        if (parent_columns) {
            parent_columns[i] = fact->parent_columns[i];
        }
    }
    return fact->columns_count;
}
