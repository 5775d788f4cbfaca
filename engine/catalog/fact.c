/* Facts: declared foreign keys. A fact holds on to tables, not to names: it dies with either and attaches to no other. */
#include "enforce.h"
#include "journal.h"
#include "track.h"
#include "transient.h"

#include <stdio.h>

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

/* The names of a table's columns, as many as find room. */
static void name_text(const ivm_table *table, const uint32_t *columns, uint32_t count, char text[IVM__FACT_TEXT_SIZE])
{
    int used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < count && used < IVM__FACT_TEXT_SIZE; i++) {
        used += snprintf(text + used, (size_t)(IVM__FACT_TEXT_SIZE - used), "%s%s", i ? ", " : "", table->columns[columns[i]].name);
    }
}

static ivm_status fail_key(const ivm_table *parent, const uint32_t *columns, uint32_t count, ivm_error *error)
{
    char named[IVM__FACT_TEXT_SIZE], key[IVM__FACT_TEXT_SIZE];
    name_text(parent, columns, count, named);
    if (parent->key_count == 0) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s is not the key of %s, which has none", named, parent->name);
    }
    name_text(parent, parent->key, parent->key_count, key);
    return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s is not the key of %s (%s)", named, parent->name, key);
}

static ivm_status check_columns(const ivm_fact *fact, uint32_t child_count, uint32_t parent_count, ivm_error *error)
{
    const ivm_table *child = fact->child, *parent = fact->parent;
    if (child_count == 0 || child_count != parent_count) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "a foreign key pairs columns: %u of %s with %u of %s", child_count, child->name,
                         parent_count, parent->name);
    }
    if (!is_key(parent, fact->parent_columns, parent_count)) {
        return fail_key(parent, fact->parent_columns, parent_count, error);
    }
    for (uint32_t i = 0; i < child_count; i++) {
        const ivm__column *a = &child->columns[fact->child_columns[i]], *b = &parent->columns[fact->parent_columns[i]];
        if (a->type != b->type) {
            return ivm__fail(error, IVM_TYPE_MISMATCH, "columns %s.%s and %s.%s are of different types", child->name, a->name, parent->name,
                             b->name);
        }
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
    assert(!fact->telling && !fact->kept);
    ivm__track_free(fact);
    ivm__fact_hops_free(fact);
    ivm__release(memory, fact->child_columns, fact->columns_capacity * sizeof(uint32_t));
    ivm__release(memory, fact->parent_columns, fact->columns_capacity * sizeof(uint32_t));
    ivm__release(memory, fact, sizeof *fact);
}

void ivm__fact_drop(ivm_fact *fact)
{
    ivm__fact_delist(fact);
    fact->engine->facts_version++;
    ivm__fact_hops_retire(fact);
    ivm__fact_free(fact);
}

bool ivm__columns_include(const uint32_t *columns, uint32_t count, uint32_t column)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        found |= columns[i] == column;
    }
    return found;
}

/* The parent's columns are those of its key, which none may drop. */
bool ivm__fact_names(const ivm_fact *fact, const ivm_table *table, uint32_t column)
{
    return fact->child == table && ivm__columns_include(fact->child_columns, fact->columns_count, column);
}

void ivm__fact_child_columns(const ivm_fact *fact, uint32_t *columns)
{
    for (uint32_t k = 0; k < fact->columns_count; k++) {
        for (uint32_t i = 0; i < fact->columns_count; i++) {
            if (fact->parent_columns[i] == fact->parent->key[k]) {
                columns[k] = fact->child_columns[i];
            }
        }
    }
}

static const char *key_column_name(const ivm_fact *fact, uint32_t nth)
{
    uint32_t i = 0;
    while (fact->parent_columns[i] != fact->parent->key[nth]) {
        i++;
    }
    return fact->child->columns[fact->child_columns[i]].name;
}

void ivm__fact_text(const ivm_fact *fact, char text[IVM__FACT_TEXT_SIZE])
{
    int used = 0;
    for (uint32_t k = 0; k < fact->columns_count && used < IVM__FACT_TEXT_SIZE; k++) {
        used += snprintf(text + used, (size_t)(IVM__FACT_TEXT_SIZE - used), "%s%s%s", k ? ", " : "(", key_column_name(fact, k),
                         k + 1 == fact->columns_count ? ")" : "");
    }
}

/* ---- Declared ---------------------------------------------------------------------------------------------------------------------- */

/* Whether a fact may be trusted so. */
static ivm_status check_trust(const ivm_fact *fact, ivm_error *error)
{
    const ivm_table *child = fact->child;
    if (fact->trust == IVM_ENFORCED && child->allow_negative) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "foreign key of %s: it allows negative weights, and no fact of it is enforced",
                         child->name);
    }
    if (fact->trust != IVM_RELY && child->transient && child->came) {
        return ivm__fail(error, IVM_UNSUPPORTED,
                         "foreign key of %s: rows that have come since it was made are not kept, and none can be %s", child->name,
                         fact->trust == IVM_TRACKED ? "counted" : "judged");
    }
    if (fact->trust == IVM_TRACKED && child->transient && child->allow_negative) {
        return ivm__fail(error, IVM_UNSUPPORTED,
                         "foreign key of %s: its rows are not kept, and without them +1 and -1 of one key cannot be told from nothing",
                         child->name);
    }
    return IVM_OK;
}

const char *ivm__trust_word(ivm_trust trust)
{
    static const char *const words[] = { "rely", "enforced", "tracked" };
    return words[trust];
}

/* Whether both pair the same columns, in any order. */
static bool is_twin(const ivm_fact *fact, const ivm_fact *other)
{
    uint32_t found = 0;
    if (fact->child != other->child || fact->parent != other->parent) {
        return false;
    }
    for (uint32_t i = 0; i < fact->columns_count; i++) {
        for (uint32_t j = 0; j < other->columns_count; j++) {
            found += fact->child_columns[i] == other->child_columns[j] && fact->parent_columns[i] == other->parent_columns[j];
        }
    }
    return found == fact->columns_count;
}

/* One foreign key is trusted in one way: of two the weaker would go unheard. */
static ivm_status check_twins(const ivm_fact *fact, ivm_error *error)
{
    for (const ivm_fact *other = fact->child->facts; other; other = other->next_of_child) {
        if (other->trust != fact->trust && is_twin(fact, other)) {
            char text[IVM__FACT_TEXT_SIZE];
            ivm__fact_text(fact, text);
            return ivm__fail(error, IVM_ALREADY_EXISTS, "the foreign key of %s %s to %s is there as %s already, and cannot be %s too",
                             fact->child->name, text, fact->parent->name, ivm__trust_word(other->trust), ivm__trust_word(fact->trust));
        }
    }
    return IVM_OK;
}

/* Counts or judges what is there. */
static ivm_status take_up(ivm_fact *fact, ivm_error *error)
{
    IVM_TRY(check_trust(fact, error));
    if (fact->trust == IVM_ENFORCED && !fact->child->transient) {
        IVM_TRY(ivm__enforce_present(&fact->engine->scratch, fact, error));
    }
    if (ivm__fact_keeps_waiting(fact) && ivm__fact_hops_make(fact) != IVM_OK) {
        return ivm__fail_memory(error);
    }
    ivm__cancel cancel = ivm__engine_cancel_of(fact->engine);
    return ivm__track_needed(fact) ? ivm__track_make(fact, &cancel, error) : IVM_OK;
}

static void publish(ivm_fact *fact)
{
    ivm_engine *engine = fact->engine;
    ivm__fact_enlist(fact);
    ivm__fact_hops_publish(fact);
    fact->id = ++engine->ids;
    engine->facts_version++;
}

/* Takes the fact, whatever the outcome. */
static ivm_status fact_take(ivm_fact *fact, ivm_error *error)
{
    ivm_status status = take_up(fact, error);
    if (status == IVM_OK) {
        status = ivm__journal_fact(fact, error);
    }
    if (status == IVM_OK) {
        publish(fact);
    } else {
        ivm__fact_free(fact);
    }
    return status;
}

ivm_status ivm__fact_restore(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust,
                             ivm_error *error)
{
    ivm_fact *made = NULL;
    IVM_TRY(ivm__fact_make(child, columns, parent, parent_columns, &made, error));
    made->trust = trust;
    return fact_take(made, error);
}

static ivm_status declare(ivm_fact *made, ivm_trust trust, ivm_fact **fact, ivm_error *error)
{
    made->trust = trust;
    ivm_status status = check_twins(made, error);
    if (status != IVM_OK) {
        ivm__fact_free(made);
        return status;
    }
    IVM_TRY(fact_take(made, error));
    if (fact) {
        *fact = made;
    }
    return IVM_OK;
}

ivm_status ivm_foreign_key_declare(ivm_table *child, const char *columns, ivm_table *parent, const char *parent_columns, ivm_trust trust,
                                   ivm_fact **fact, ivm_error *error)
{
    if (!child || !parent) {
        return ivm__fail_null(error, "ivm_foreign_key_declare", child ? "parent" : "child");
    }
    if (child->engine != parent->engine) {
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
        status = declare(made, trust, fact, error);
    }
    ivm__engine_leave(engine);
    return status;
}

ivm_status ivm_foreign_key_remove(ivm_fact *fact, ivm_error *error)
{
    if (!fact) {
        return ivm__fail_null(error, "ivm_foreign_key_remove", "fact");
    }
    ivm_engine *engine = fact->engine;
    IVM_TRY(ivm__engine_enter(engine, error));
    ivm_status status = fact->pins
                            ? ivm__fail(error, IVM_IN_USE, "view %s rests on the foreign key of %s to %s: it reads rows that are not kept",
                                        ivm__hops_view(fact)->name, fact->child->name, fact->parent->name)
                            : ivm__journal_fact_remove(fact, error);
    if (status == IVM_OK) {
        ivm__fact_drop(fact);
        ivm__engine_settle(engine);
    }
    ivm__engine_leave(engine);
    return status;
}

/* ---- How it stands ----------------------------------------------------------------------------------------------------------------- */

ivm_status ivm_fact_status(ivm_fact *fact, ivm_fact_state *state, ivm_error *error)
{
    if (!fact || !state) {
        return ivm__fail_null(error, "ivm_fact_status", fact ? "state" : "fact");
    }
    if (state->version > IVM_FACT_STATE_VERSION) {
        return ivm__fail_version(error, "ivm_fact_status", "state", state->version, IVM_FACT_STATE_VERSION);
    }
    IVM_TRY(ivm__engine_enter_reading(fact->engine, error));
    state->trust = fact->trust;
    ivm__track_count(fact, &state->orphans, &state->orphans_keys);
    ivm__engine_leave_reading(fact->engine);
    return IVM_OK;
}

ivm_status ivm_fact_watch(ivm_fact *fact, ivm_orphans_changed changed, void *context, ivm_error *error)
{
    if (!fact) {
        return ivm__fail_null(error, "ivm_fact_watch", "fact");
    }
    IVM_TRY(ivm__engine_enter(fact->engine, error));
    ivm_status status = IVM_OK;
    if (fact->trust == IVM_TRACKED) {
        fact->changed = changed;
        fact->changed_context = context;
    } else {
        status = ivm__fail(error, IVM_INVALID_ARGUMENT, "the foreign key of %s to %s is not tracked: it has no orphans to tell of",
                           fact->child->name, fact->parent->name);
    }
    ivm__engine_leave(fact->engine);
    return status;
}

/* ---- What can be asked --------------------------------------------------------------------------------------------------------------- */

ivm_fact *ivm_fact_next(ivm_engine *engine, const ivm_fact *fact)
{
    return fact ? fact->next : engine ? engine->facts : NULL;
}

ivm_table *ivm_fact_child(const ivm_fact *fact)
{
    return fact ? fact->child : NULL;
}

ivm_table *ivm_fact_parent(const ivm_fact *fact)
{
    return fact ? fact->parent : NULL;
}

size_t ivm_fact_columns(const ivm_fact *fact, size_t *child_columns, size_t *parent_columns, size_t capacity)
{
    size_t count = fact ? fact->columns_count : 0;
    for (size_t i = 0; i < count && i < capacity; i++) {
        if (child_columns) {
            child_columns[i] = fact->child_columns[i];
        }
        if (parent_columns) {
            parent_columns[i] = fact->parent_columns[i];
        }
    }
    return count;
}
