/* Tables, facts, columns: made, changed and dropped in both. */
#include "operations.h"

#define COLUMNS_MAX 7u

ivm_table *operations_table(operations *it, const char *name)
{
    ivm_table *table;
    if (ivm_table_find(it->engine, name, &table, &it->error) != IVM_OK) {
        operations_wrong(it, "table %s: %s", name, it->error.message);
    }
    return table;
}

ivm_view *operations_view(operations *it, const char *name)
{
    ivm_view *view;
    if (ivm_view_find(it->engine, name, &view, &it->error) != IVM_OK) {
        operations_wrong(it, "view %s: %s", name, it->error.message);
    }
    return view;
}

/* A status of the engine must be the one expected, or any error where one is expected. */
static void statuses_agree(operations *it, const char *what, ivm_status got, ivm_status want)
{
    operations_count_status(what, got);
    if ((got == IVM_OK) != (want == IVM_OK)) {
        operations_wrong(it, "%s: %s (%s), expected %s", what, ivm_status_name(got), got == IVM_OK ? "" : it->error.message,
                         ivm_status_name(want));
    }
}

/* Weights so great that rows which an operator keeps narrowed to what is read may leave int64 together. */
bool operations_weights_great(const operations *it)
{
    for (size_t i = 0; i < it->expected.tables_count; i++) {
        const naive_relation *rows = &it->expected.tables[i].rows;
        for (size_t r = 0; r < rows->count; r++) {
            if (rows->weights[r] > (naive_int)1 << 60 || rows->weights[r] < -((naive_int)1 << 60)) {
                return true;
            }
        }
    }
    return false;
}

static naive_table *table_draw(operations *it)
{
    return it->expected.tables_count ? &it->expected.tables[operations_pick(it, (unsigned)it->expected.tables_count)] : NULL;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------ */

/* Two or three columns that others can refer to and be referred to by, then any. */
static size_t columns_draw(operations *it, ivm_column_definition columns[COLUMNS_MAX])
{
    static const char *const names[COLUMNS_MAX] = { "id", "a", "b", "c", "d", "e", "f" };
    size_t count = 3 + operations_pick(it, COLUMNS_MAX - 2);
    for (size_t c = 0; c < count; c++) {
        ivm_type type = c < 2 ? IVM_INT64 : c == 2 && operations_once_in(it, 2) ? IVM_STRING : operations_type(it);
        columns[c] = (ivm_column_definition){ names[c], type, operations_once_in(it, 6) };
    }
    return count;
}

void operations_table_create(operations *it)
{
    static const char *const one[] = { "id" }, *const two[] = { "a", "id" };
    ivm_column_definition columns[COLUMNS_MAX];
    ivm_table_options options = { .version = IVM_TABLE_OPTIONS_VERSION, .columns = columns };
    unsigned kind = operations_pick(it, 16);
    const char *name = naive_text(&it->pool, "t%u", it->names++);
    size_t key_count = kind < 7 ? 1 : kind < 10 ? 2 : 0;
    options.columns_count = columns_draw(it, columns);
    options.key = key_count == 1 ? "id" : key_count ? "a, id" : NULL;
    options.append_only = kind == 0 || kind == 1 || kind == 8 || kind == 11;
    options.transient = kind == 12 || kind == 13 || (kind == 15 && operations_once_in(it, 2));
    options.allow_negative = kind == 14 || kind == 15;
    operations_count(key_count == 1 ? "table of one key" : key_count ? "table of two keys" : "table without a key");
    operations_count(options.append_only ? "table append_only" : "table of deletions");
    operations_count(options.transient ? "table transient" : "table kept");
    operations_count(options.allow_negative ? "table allow_negative" : "table of rows");
    ivm_table *table;
    ivm_status want = naive_table_create(&it->expected, name, &options, key_count == 1 ? one : two, key_count);
    operations_say("table %s: kind %u, %zu columns\n", name, kind, options.columns_count);
    statuses_agree(it, "table", ivm_table_create(it->engine, name, &options, &table, &it->error), want);
}

void operations_table_drop(operations *it)
{
    naive_table *table = table_draw(it);
    if (!table) {
        return;
    }
    const char *name = table->name;
    ivm_status got = ivm_table_drop(operations_table(it, name), &it->error);
    operations_say("drop table %s: %s\n", name, ivm_status_name(got));
    statuses_agree(it, "drop_table", got, naive_table_drop(&it->expected, name));
}

/* ---- Facts ------------------------------------------------------------------------------------------------------------------------- */

static const char *names_join(operations *it, const char *const *names, size_t count)
{
    return count == 2 ? naive_text(&it->pool, "%s, %s", names[0], names[1]) : names[0];
}

/* Columns of the parent's key's types; any column where there is none. */
static void columns_for(operations *it, const naive_table *child, const naive_table *parent, const char **columns, const char **parents)
{
    for (size_t k = 0; k < parent->key_count; k++) {
        const naive_table_column *to = &parent->columns[parent->key[k]];
        size_t at = operations_pick(it, (unsigned)child->columns_count);
        for (size_t tries = 0; tries < child->columns_count && child->columns[at].type != to->type; tries++) {
            at = (at + 1) % child->columns_count;
        }
        columns[k] = child->columns[at].name;
        parents[k] = to->name;
    }
}

/* A promise that does not hold now is not given. */
static bool keeps(const operations *it, const naive_table *child, const naive_table *parent, const char *const *columns,
                  const char *const *parents)
{
    naive_database copy;
    naive_database_copy(&it->expected, &copy);
    ivm_status status = naive_fact_declare(&copy, child->name, columns, parent->name, parents, parent->key_count, IVM_RELY);
    naive_relation orphans = { 0 };
    if (status == IVM_OK) {
        naive_orphans(&copy, &copy.facts[copy.facts_count - 1], &orphans);
    }
    bool kept = orphans.count == 0;
    naive_relation_free(&orphans);
    naive_database_free(&copy);
    return kept;
}

void operations_fact_declare(operations *it)
{
    static const char *const trusts[] = { "fact rely", "fact enforced", "fact tracked" };
    naive_table *child = table_draw(it), *parent = table_draw(it);
    const char *columns[2], *parents[2];
    ivm_trust trust = (ivm_trust)operations_pick(it, 3);
    for (size_t tries = 0; parent && tries < it->expected.tables_count && !parent->key_count; tries++) {
        parent = &it->expected.tables[(size_t)(parent - it->expected.tables + 1) % it->expected.tables_count];
    }
    if (!parent || !parent->key_count) {
        return;
    }
    for (size_t i = 0; i < it->expected.tables_count && operations_pick(it, 2); i++) { /* transient ones are joined along facts alone */
        child = it->expected.tables[i].transient ? &it->expected.tables[i] : child;
    }
    columns_for(it, child, parent, columns, parents);
    if (trust == IVM_RELY && !keeps(it, child, parent, columns, parents)) {
        return;
    }
    ivm_fact *fact = NULL;
    ivm_status got =
        ivm_foreign_key_declare(operations_table(it, child->name), names_join(it, columns, parent->key_count),
                                operations_table(it, parent->name), names_join(it, parents, parent->key_count), trust, &fact, &it->error);
    operations_say("%s %s(%s) -> %s: %s\n", trusts[trust], child->name, names_join(it, columns, parent->key_count), parent->name,
                   ivm_status_name(got));
    if (got == IVM_OVERFLOW && operations_weights_great(it)) { /* more children of one key than int64 counts */
        operations_count("fact refused for great weights");
        return;
    }
    operations_count(trusts[trust]);
    if (got == IVM_OK && trust == IVM_TRACKED && ivm_fact_watch(fact, operations_orphans_changed, it, &it->error) != IVM_OK) {
        operations_wrong(it, "watch a fact: %s", it->error.message);
    }
    statuses_agree(it, "fact", got,
                   naive_fact_declare(&it->expected, child->name, columns, parent->name, parents, parent->key_count, trust));
}

void operations_fact_remove(operations *it)
{
    if (!it->expected.facts_count) {
        return;
    }
    size_t at = operations_pick(it, (unsigned)it->expected.facts_count);
    ivm_fact *fact = ivm_fact_next(it->engine, NULL);
    for (size_t i = 0; i < at && fact; i++) {
        fact = ivm_fact_next(it->engine, fact);
    }
    if (!fact) {
        operations_wrong(it, "fact %zu of %zu is missing", at, it->expected.facts_count);
    }
    ivm_status got = ivm_foreign_key_remove(fact, &it->error);
    operations_say("remove fact %zu: %s\n", at, ivm_status_name(got));
    operations_count_status("remove_fact", got);
    if (got == IVM_OK) {
        naive_fact_remove(&it->expected, at);
    } else if (got != IVM_IN_USE || !naive_table_find(&it->expected, it->expected.facts[at].child)) {
        operations_wrong(it, "remove fact: %s", it->error.message);
    }
}

/* ---- Columns ----------------------------------------------------------------------------------------------------------------------- */

static bool read_by_a_view(const operations *it, const char *name)
{
    bool read = false;
    for (size_t i = 0; i < it->expected.views_count; i++) {
        read |= naive_plan_reads(it->expected.views[i].plan, name);
    }
    return read;
}

static bool in_key(const naive_table *table, size_t column)
{
    bool in = false;
    for (size_t k = 0; k < table->key_count; k++) {
        in |= table->key[k] == column;
    }
    return in;
}

/* Which columns views read is the engine's to say; what it drops must be read by none: then views stay as they are. */
static void column_drop(operations *it, naive_table *table, size_t column)
{
    const char *name = table->columns[column].name;
    bool key = in_key(table, column), last = table->columns_count == 1;
    ivm_status got = ivm_table_column_drop(operations_table(it, table->name), name, &it->error);
    operations_say("drop column %s.%s: %s\n", table->name, name, ivm_status_name(got));
    operations_count_status("column_drop", got);
    bool may_fail = key || last || read_by_a_view(it, table->name) || table->transient;
    if (got == IVM_OK ? key || last : !may_fail && !(got == IVM_OVERFLOW)) {
        operations_wrong(it, "drop column: %s", got == IVM_OK ? "ok" : it->error.message);
    }
    if (got == IVM_OK) {
        naive_column_drop(&it->expected, table, column);
    }
}

void operations_column_change(operations *it)
{
    naive_table *table = table_draw(it);
    if (!table) {
        return;
    }
    size_t column = operations_pick(it, (unsigned)table->columns_count);
    const char *name = naive_text(&it->pool, "n%u", it->names++);
    ivm_status got;
    switch (operations_pick(it, 3)) {
    case 0:
        got = ivm_table_column_rename(operations_table(it, table->name), table->columns[column].name, name, &it->error);
        operations_say("rename column %s.%s to %s: %s\n", table->name, table->columns[column].name, name, ivm_status_name(got));
        statuses_agree(it, "column_rename", got, IVM_OK);
        naive_column_rename(table, column, name);
        break;
    case 1: {
        ivm_column_definition added = { name, operations_type(it), false };
        if (table->columns_count > 9) {
            break;
        }
        got = ivm_table_column_add(operations_table(it, table->name), &added, &it->error);
        operations_say("add column %s.%s: %s\n", table->name, name, ivm_status_name(got));
        statuses_agree(it, "column_add", got, IVM_OK);
        naive_column_add(&it->expected, table, name, added.type);
        break;
    }
    default:
        column_drop(it, table, column);
    }
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------------- */

static bool reads_transient(const operations *it, const naive_plan *plan)
{
    bool reads = false;
    for (size_t i = 0; i < it->expected.tables_count; i++) {
        reads |= it->expected.tables[i].transient && naive_reads(&it->expected, plan, it->expected.tables[i].name);
    }
    return reads;
}

void operations_view_create(operations *it)
{
    const char *name = naive_text(&it->pool, "v%u", it->names++);
    if (!it->expected.tables_count) {
        return;
    }
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = operations_view_changed, .changed_context = it };
    options.refresh = operations_once_in(it, 4) ? IVM_DEFERRED : IVM_IMMEDIATE;
    options.indexes = operations_once_in(it, 4) ? IVM_INDEXES_EAGER : IVM_INDEXES_LAZY;
    naive_plan *plan = operations_plan(it, 1 + operations_pick(it, 3));
    naive_database copy;
    naive_database_copy(&it->expected, &copy);
    ivm_status want = naive_view_create(&copy, name, plan, options.refresh == IVM_DEFERRED);
    if (want == NAIVE_UNJUDGED) {
        operations_count("view that cannot be judged");
        naive_database_free(&copy);
        return;
    }
    ivm_view *view;
    if (operations_trace) {
        operations_plan_print(plan, 0, stderr);
    }
    ivm_status got = ivm_view_create(it->engine, name, naive_plan_build(plan), &options, &view, &it->error);
    operations_say("view %s%s: %s (expected %s)\n", name, options.refresh == IVM_DEFERRED ? " deferred" : "", ivm_status_name(got),
                   ivm_status_name(want));
    bool great = got == IVM_OVERFLOW && operations_weights_great(it);
    bool refused = got == IVM_UNSUPPORTED || got == IVM_OVERFLOW; /* that, too, where rows it would need are not there */
    if ((refused && reads_transient(it, plan)) || (great && want == IVM_OK)) {
        operations_count(great ? "view refused for great weights" : "view refused over a transient table");
        naive_database_free(&copy);
        return;
    }
    operations_count(reads_transient(it, plan) ? "view over a transient table" : "view over tables");
    operations_count(options.refresh == IVM_DEFERRED ? "view deferred" : "view immediate");
    statuses_agree(it, "view", got, want);
    naive_database_free(got == IVM_OK ? &it->expected : &copy);
    if (got == IVM_OK) {
        it->expected = copy;
    }
}

void operations_view_drop(operations *it)
{
    if (!it->expected.views_count) {
        return;
    }
    const char *name = it->expected.views[operations_pick(it, (unsigned)it->expected.views_count)].name;
    ivm_status got = ivm_view_drop(operations_view(it, name), &it->error);
    operations_say("drop view %s: %s\n", name, ivm_status_name(got));
    statuses_agree(it, "drop_view", got, naive_view_drop(&it->expected, name));
}
