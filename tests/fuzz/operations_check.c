/* Everything that can be read of the engine, against what the oracle holds. */
#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------------------------- */

/* Strings are copied: the snapshot's live until its next rows. */
static void cell_take(operations *it, ivm_value *cell)
{
    if (!cell->is_null && cell->type == IVM_STRING) {
        char *copy = naive_take(&it->pool, cell->as.string.size + 1);
        if (cell->as.string.size) {
            memcpy(copy, cell->as.string.bytes, cell->as.string.size);
        }
        *cell = ivm_string_sized(copy, cell->as.string.size);
    }
}

static void rows_take(operations *it, const ivm_rows *rows, const ivm_type *types, naive_relation *out)
{
    ivm_value *row = naive_take(&it->pool, (out->width + 1) * sizeof *row);
    for (size_t r = 0; r < rows->rows_count; r++) {
        for (size_t c = 0; c < out->width; c++) {
            row[c] = ivm_rows_value(rows, types[c], r, c);
            cell_take(it, &row[c]);
        }
        (void)naive_row_add(out, row, rows->weights ? rows->weights[r] : 1);
    }
}

static ivm_type *types_of(operations *it, const ivm_snapshot *snapshot)
{
    size_t width = ivm_snapshot_columns_count(snapshot);
    ivm_type *types = naive_take(&it->pool, (width + 1) * sizeof *types);
    for (size_t c = 0; c < width; c++) {
        types[c] = ivm_snapshot_column_type(snapshot, c);
    }
    return types;
}

static void operations_snapshot_take(operations *it, ivm_snapshot *snapshot, naive_relation *rows)
{
    const ivm_type *types = types_of(it, snapshot);
    naive_relation_init(rows, ivm_snapshot_columns_count(snapshot));
    for (ivm_rows part; ivm_snapshot_next(snapshot, &part);) {
        rows_take(it, &part, types, rows);
    }
    if (ivm_snapshot_status(snapshot) != IVM_OK || rows->count != ivm_snapshot_rows_count(snapshot)) {
        operations_wrong(it, "a snapshot of %llu rows gives %zu", (unsigned long long)ivm_snapshot_rows_count(snapshot), rows->count);
    }
}

/* ---- Comparing --------------------------------------------------------------------------------------------------------------------- */

static void relations_agree(operations *it, const char *what, const char *name, naive_relation *got, const naive_relation *want)
{
    naive_consolidate(got);
    if (!naive_relations_equal(got, want)) {
        operations_relation_print("expected", want, stderr);
        operations_relation_print("found", got, stderr);
        const naive_view *view = naive_view_find(&it->expected, name);
        if (view) {
            operations_plan_print(view->plan, 0, stderr);
        }
        operations_wrong(it, "%s of %s differ", what, name);
    }
}

/* Changes are told as int64, those past it as the nearest. */
static void changes_cut(naive_relation *changes)
{
    for (size_t r = 0; r < changes->count; r++) {
        naive_int *weight = &changes->weights[r];
        *weight = *weight > INT64_MAX ? INT64_MAX : *weight < INT64_MIN ? INT64_MIN : *weight;
    }
}

/* Takes the snapshot and closes it. `once`: equal rows come once. */
static void snapshot_agrees(operations *it, const char *what, const char *name, ivm_snapshot *snapshot, bool once,
                            const naive_relation *want)
{
    naive_relation got;
    operations_snapshot_take(it, snapshot, &got);
    ivm_snapshot_close(snapshot);
    size_t count = got.count;
    relations_agree(it, what, name, &got, want);
    if (once && count != got.count) {
        operations_wrong(it, "%s of %s: a row comes twice", what, name);
    }
    naive_relation_free(&got);
}

static void must_read(operations *it, const char *what, const char *name, ivm_status status)
{
    if (status != IVM_OK) {
        operations_wrong(it, "%s of %s: %s", what, name, it->error.message);
    }
}

static void table_check(operations *it, const naive_table *expected)
{
    ivm_table *table = operations_table(it, expected->name);
    ivm_snapshot *snapshot;
    ivm_status status = ivm_read_table(table, &snapshot, &it->error);
    if (ivm_table_columns_count(table) != expected->columns_count) {
        operations_wrong(it, "%s has %zu columns", expected->name, ivm_table_columns_count(table));
    }
    for (size_t c = 0; c < expected->columns_count; c++) {
        bool same = strcmp(ivm_table_column_name(table, c), expected->columns[c].name) == 0 &&
                    ivm_table_column_type(table, c) == expected->columns[c].type;
        if (!same) {
            operations_wrong(it, "column %zu of %s is another", c, expected->name);
        }
    }
    if (expected->transient) {
        if (status != IVM_UNSUPPORTED) {
            operations_wrong(it, "%s is transient and can be read", expected->name);
        }
        return;
    }
    must_read(it, "rows", expected->name, status);
    snapshot_agrees(it, "rows", expected->name, snapshot, false, &expected->rows);
}

/* ---- Callbacks --------------------------------------------------------------------------------------------------------------------- */

static told_change *told_add(operations *it, ivm_snapshot *changes)
{
    it->failed |= test_allocator_disarm(&it->allocator); /* an allocation that fails is meant for the push */
    told_change *told = naive_take(&it->pool, sizeof *told);
    told->next = it->told;
    it->told = told;
    operations_snapshot_take(it, changes, &told->changes);
    return told;
}

void operations_view_changed(void *context, ivm_view *view, ivm_snapshot *changes)
{
    operations *it = context;
    told_add(it, changes)->name = naive_text(&it->pool, "%s", ivm_view_name(view));
}

void operations_orphans_changed(void *context, ivm_fact *fact, ivm_snapshot *changes)
{
    told_add(context, changes)->fact = fact;
    operations_count("told of orphans");
}

void operations_orphans_foresee(operations *it, const naive_database *after)
{
    it->orphans_new_count = after->facts_count;
    it->orphans_new = naive_grow(NULL, after->facts_count, sizeof *it->orphans_new);
    for (size_t f = 0; f < after->facts_count; f++) {
        naive_relation before;
        naive_orphans(after, &after->facts[f], &it->orphans_new[f]);
        naive_orphans(&it->expected, &it->expected.facts[f], &before);
        (void)naive_rows_add(&it->orphans_new[f], &before, -1);
        naive_consolidate(&it->orphans_new[f]);
        naive_relation_free(&before);
    }
}

void operations_told_forget(operations *it)
{
    for (; it->told; it->told = it->told->next) {
        naive_relation_free(&it->told->changes);
    }
    for (size_t f = 0; f < it->orphans_new_count; f++) {
        naive_relation_free(&it->orphans_new[f]);
    }
    free(it->orphans_new);
    it->orphans_new = NULL;
    it->orphans_new_count = 0;
    it->stepped = false;
}

/* Told once of what changed, not at all of nothing. */
static void told_check(operations *it, const char *name, const ivm_fact *fact, const naive_relation *changes)
{
    size_t count = 0;
    for (told_change *told = it->told; told; told = told->next) {
        if (fact ? told->fact == fact : told->name && strcmp(told->name, name) == 0) {
            relations_agree(it, "told changes", name, &told->changes, changes);
            count++;
        }
    }
    if (count > 1 || (it->stepped && count != (changes->count > 0))) {
        operations_wrong(it, "%s was told of %zu times", name, count);
    }
}

/* ---- Views and facts --------------------------------------------------------------------------------------------------------------- */

static void view_check(operations *it, naive_view *expected, bool changes)
{
    ivm_view *view = operations_view(it, expected->name);
    ivm_snapshot *snapshot;
    bool types = ivm_view_columns_count(view) == expected->plan->width;
    for (size_t c = 0; types && c < expected->plan->width; c++) {
        types = ivm_view_column_type(view, c) == expected->plan->heading[c].type &&
                strcmp(ivm_view_column_name(view, c), naive_bare_name(expected->plan->heading[c].name)) == 0;
    }
    if (!types) {
        operations_wrong(it, "columns of %s differ", expected->name);
    }
    must_read(it, "rows", expected->name, ivm_read_view(view, &snapshot, &it->error));
    snapshot_agrees(it, "rows", expected->name, snapshot, true, &expected->rows);
    if (changes) {
        changes_cut(&expected->changes);
        must_read(it, "changes", expected->name, ivm_read_changes(view, &snapshot, &it->error));
        snapshot_agrees(it, "changes", expected->name, snapshot, true, &expected->changes);
        told_check(it, expected->name, NULL, &expected->changes);
    }
}

static void fact_check(operations *it, const naive_fact *expected, ivm_fact *fact)
{
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
    ivm_snapshot *snapshot;
    naive_relation orphans;
    naive_orphans(&it->expected, expected, &orphans);
    if (expected->trust != IVM_TRACKED) {
        naive_relation_free(&orphans);
        naive_relation_init(&orphans, expected->count);
    }
    if (!fact || strcmp(ivm_table_name(ivm_fact_child(fact)), expected->child) != 0) {
        operations_wrong(it, "a fact is another");
    }
    must_read(it, "state", "a fact", ivm_fact_status(fact, &state, &it->error));
    must_read(it, "orphans", "a fact", ivm_read_orphans(fact, &snapshot, &it->error));
    naive_int sum = 0;
    for (size_t r = 0; r < orphans.count; r++) {
        sum += orphans.weights[r];
    }
    operations_count(orphans.count ? "orphans" : "no orphans");
    snapshot_agrees(it, "orphans", expected->child, snapshot, true, &orphans);
    if (state.trust != expected->trust || state.orphans != (uint64_t)sum || state.orphans_keys != orphans.count) {
        operations_wrong(it, "a fact of %s has %llu orphans", expected->child, (unsigned long long)state.orphans);
    }
    naive_relation_free(&orphans);
}

static void position_check(operations *it)
{
    uint8_t bytes[IVM_POSITION_SIZE_MAX];
    size_t size;
    must_read(it, "position", "the engine", ivm_engine_position(it->engine, bytes, sizeof bytes, &size, &it->error));
    if (size != it->position_size || memcmp(bytes, it->position, size) != 0) {
        operations_wrong(it, "the position is another");
    }
}

void operations_check(operations *it, bool changes)
{
    ivm_fact *fact = NULL;
    for (size_t i = 0; i < it->expected.tables_count; i++) {
        table_check(it, &it->expected.tables[i]);
    }
    for (size_t i = 0; i < it->expected.views_count; i++) {
        view_check(it, &it->expected.views[i], changes);
    }
    for (size_t i = 0; i < it->expected.facts_count; i++) {
        fact = ivm_fact_next(it->engine, fact);
        fact_check(it, &it->expected.facts[i], fact);
        if (changes && i < it->orphans_new_count && it->expected.facts[i].trust == IVM_TRACKED) {
            told_check(it, it->expected.facts[i].child, fact, &it->orphans_new[i]);
        }
    }
    if (ivm_fact_next(it->engine, fact) && (fact || !it->expected.facts_count)) {
        operations_wrong(it, "a fact too many");
    }
    position_check(it);
    operations_told_forget(it);
}

/* ---- Snapshots that are held --------------------------------------------------------------------------------------------------------- */

static void held_close(operations *it, held_snapshot *held)
{
    if (held->snapshot) {
        snapshot_agrees(it, "rows", "a snapshot that was held", held->snapshot, false, &held->rows);
        naive_relation_free(&held->rows);
        held->snapshot = NULL;
    }
}

void operations_let_go(operations *it)
{
    for (size_t i = 0; i < HELD_MAX; i++) {
        held_close(it, &it->held[i]);
    }
}

void operations_hold(operations *it)
{
    held_snapshot *held = &it->held[operations_pick(it, HELD_MAX)];
    held_close(it, held);
    size_t tables = it->expected.tables_count, at = operations_pick(it, (unsigned)(tables + it->expected.views_count));
    if (tables + it->expected.views_count == 0 || (at < tables && it->expected.tables[at].transient)) {
        return;
    }
    const char *name = at < tables ? it->expected.tables[at].name : it->expected.views[at - tables].name;
    const naive_relation *rows = naive_source(&it->expected, name);
    must_read(it, "rows", name,
              at < tables ? ivm_read_table(operations_table(it, name), &held->snapshot, &it->error)
                          : ivm_read_view(operations_view(it, name), &held->snapshot, &it->error));
    naive_relation_init(&held->rows, rows->width);
    (void)naive_rows_add(&held->rows, rows, 1);
    operations_say("hold %s\n", name);
    operations_count("snapshot held");
}

/* ---- Finding, auditing --------------------------------------------------------------------------------------------------------------- */

/* The positions a find goes by: a table's key, else the leading columns; an aggregate's are its groups. */
static size_t find_columns(operations *it, const naive_table *table, const naive_view *view, size_t *columns)
{
    size_t most = table ? (table->key_count ? table->key_count : table->columns_count) : view->plan->width;
    if (view && view->plan->op == NAIVE_AGGREGATE) {
        most = view->plan->columns_count;
    }
    if (!most) {
        return 0; /* one row without a key */
    }
    size_t count = 1 + operations_pick(it, (unsigned)(most < 3 ? most : 3));
    for (size_t c = 0; c < count; c++) {
        columns[c] = table && table->key_count ? table->key[c] : c;
    }
    return count;
}

static void find_check(operations *it, const char *name, ivm_snapshot *snapshot, const naive_relation *rows, const size_t *columns,
                       size_t count)
{
    ivm_value values[3];
    naive_relation want, got;
    ivm_rows found = { 0 };
    const ivm_type *types = types_of(it, snapshot);
    const ivm_value *row = rows->count ? naive_row(rows, operations_pick(it, (unsigned)rows->count)) : NULL;
    for (size_t c = 0; c < count; c++) {
        values[c] = row && operations_pick(it, 8) ? row[columns[c]] : operations_value(it, types[columns[c]], true);
    }
    naive_relation_init(&want, rows->width);
    naive_relation_init(&got, rows->width);
    for (size_t r = 0; r < rows->count; r++) {
        bool same = true;
        for (size_t c = 0; c < count; c++) {
            same &= naive_compare(&naive_row(rows, r)[columns[c]], &values[c]) == 0;
        }
        if (same) {
            (void)naive_row_add(&want, naive_row(rows, r), rows->weights[r]);
        }
    }
    ivm_status status = ivm_snapshot_find(snapshot, values, count, &found, &it->error);
    if (status == IVM_OK) {
        rows_take(it, &found, types, &got);
    } else if (status != IVM_ROW_NOT_FOUND) {
        operations_wrong(it, "find in %s: %s", name, it->error.message);
    }
    operations_count_status("find", status);
    relations_agree(it, "found rows", name, &got, &want);
    naive_relation_free(&want);
    naive_relation_free(&got);
}

void operations_find(operations *it)
{
    size_t tables = it->expected.tables_count, at = operations_pick(it, (unsigned)(tables + it->expected.views_count)), columns[3];
    if (tables + it->expected.views_count == 0 || (at < tables && it->expected.tables[at].transient)) {
        return;
    }
    const naive_table *table = at < tables ? &it->expected.tables[at] : NULL;
    const naive_view *view = table ? NULL : &it->expected.views[at - tables];
    const char *name = table ? table->name : view->name;
    ivm_snapshot *snapshot;
    must_read(it, "rows", name,
              table ? ivm_read_table(operations_table(it, name), &snapshot, &it->error)
                    : ivm_read_view(operations_view(it, name), &snapshot, &it->error));
    for (unsigned i = 0; i < 3; i++) {
        size_t count = find_columns(it, table, view, columns);
        if (count) {
            find_check(it, name, snapshot, table ? &table->rows : &view->rows, columns, count);
        }
    }
    ivm_snapshot_close(snapshot);
}

/* A view that is right has no differences; one over transient tables cannot be computed anew. */
void operations_audit(operations *it)
{
    for (size_t i = 0; i < it->expected.views_count; i++) {
        ivm_snapshot *differences;
        const char *name = it->expected.views[i].name;
        ivm_view *view = operations_view(it, name);
        ivm_status status = ivm_audit_view(view, &differences, &it->error);
        operations_count_status("audit", status);
        if (status == IVM_OK) {
            uint64_t count = ivm_snapshot_rows_count(differences);
            ivm_snapshot_close(differences);
            if (count) {
                operations_wrong(it, "an audit of %s finds %llu differences", name, (unsigned long long)count);
            }
        } else if (status != IVM_UNSUPPORTED) {
            operations_wrong(it, "audit of %s: %s", name, it->error.message);
        }
        char *text;
        if (operations_once_in(it, 4)) {
            must_read(it, "explain", name, ivm_explain(view, NULL, (ivm_explain_format)operations_pick(it, 3), &text, &it->error));
            ivm_text_free(text);
            must_read(it, "prepare", name, ivm_view_prepare(view, &it->error));
            operations_count("explain and prepare");
        }
    }
}
