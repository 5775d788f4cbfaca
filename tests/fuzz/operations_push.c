/* Batches from bytes, pushed to both; refreshes. A batch that would break a promise (a foreign key relied on, a transient row that never came) is mended
 * or left out: what follows one is nobody's to say. */
#include "operations.h"
#include "operations_batch.h"

#include <stdlib.h>
#include <string.h>

#define CHANGES_MAX 400u
#define BULK_MAX 260u /* rows at once: more than a page, a block, a group of slots */

/* ---- Drawing ----------------------------------------------------------------------------------------------------------------------- */

typedef struct changes_list {
    naive_change changes[CHANGES_MAX];
    size_t count;
} changes_list;

static void change_add(changes_list *list, naive_change change)
{
    if (list->count < CHANGES_MAX) {
        list->changes[list->count++] = change;
    }
}

/* A key that a parent holds, for a column that refers to one. */
static bool referred_value(operations *it, const naive_table *table, size_t column, ivm_value *value)
{
    for (size_t f = 0; f < it->expected.facts_count; f++) {
        const naive_fact *fact = &it->expected.facts[f];
        const naive_table *parent = naive_table_find(&it->expected, fact->parent);
        for (size_t k = 0; k < fact->count && strcmp(fact->child, table->name) == 0; k++) {
            if (fact->child_ids[k] == table->columns[column].id && parent->rows.count) {
                size_t row = operations_pick(it, (unsigned)parent->rows.count);
                *value = naive_row(&parent->rows, row)[naive_table_column_find(parent, fact->parent_ids[k])];
                return true;
            }
        }
    }
    return false;
}

static const ivm_value *row_draw(operations *it, const naive_table *table)
{
    ivm_value *row = naive_take(&it->pool, table->columns_count * sizeof *row);
    for (size_t c = 0; c < table->columns_count; c++) {
        if (operations_pick(it, 4) == 0 || !referred_value(it, table, c, &row[c])) {
            row[c] = operations_value(it, table->columns[c].type, !table->columns[c].not_null);
        }
    }
    if (operations_once_in(it, 100)) {
        row[operations_pick(it, (unsigned)table->columns_count)] = ivm_bool(true); /* may be no value of the column */
    }
    return row;
}

/* A row that is there, where there is one; it may have a new value in one column. */
static const ivm_value *present_row(operations *it, const naive_table *table, bool changed)
{
    if (!table->rows.count) {
        return row_draw(it, table);
    }
    ivm_value *row = naive_take(&it->pool, table->columns_count * sizeof *row);
    memcpy(row, naive_row(&table->rows, operations_pick(it, (unsigned)table->rows.count)), table->columns_count * sizeof *row);
    if (changed) {
        size_t c = operations_pick(it, (unsigned)table->columns_count);
        row[c] = operations_value(it, table->columns[c].type, !table->columns[c].not_null);
    }
    return row;
}

static const ivm_value *key_draw(operations *it, const naive_table *table)
{
    const ivm_value *row = operations_pick(it, 5) ? present_row(it, table, false) : row_draw(it, table);
    ivm_value *key = naive_take(&it->pool, (table->key_count + 1) * sizeof *key);
    for (size_t k = 0; k < table->key_count; k++) {
        key[k] = row[table->key[k]];
    }
    return key;
}

/* Of a transient table nothing sums rows up that are not kept, so that great ones cannot be judged. */
static int64_t weight_draw(operations *it, bool may_be_great)
{
    static const int64_t weights[] = { 1, -1, 2, -2, 3, 0, 1, -1, 5, 1, 2, -1 };
    unsigned byte = operations_byte(it);
    return byte > 252 && may_be_great ? (byte % 2 ? INT64_MAX : INT64_MIN + 1) : weights[byte % 12];
}

/* What is drawn as it is, or mostly as what the table takes: no deletion from a table that only grows, and in place of a row of a key that is
 * there an upsert. */
static ivm_change kind_fit(operations *it, const naive_table *table, ivm_change drawn, const ivm_value *values)
{
    if (table->append_only && drawn != IVM_INSERT && drawn != IVM_WEIGHTED && operations_pick(it, 8)) {
        drawn = IVM_INSERT;
    }
    if (drawn != IVM_INSERT || !table->key_count || !operations_pick(it, 8)) {
        return drawn;
    }
    for (size_t r = 0; r < table->rows.count; r++) {
        bool same = true;
        for (size_t k = 0; k < table->key_count; k++) {
            const ivm_value *a = &naive_row(&table->rows, r)[table->key[k]], *b = &values[table->key[k]];
            same &= (b->is_null || a->type == b->type) && naive_compare(a, b) == 0;
        }
        if (same) {
            return table->append_only ? IVM_DELETE_KEY : IVM_UPSERT; /* no row at all, or the new one */
        }
    }
    return drawn;
}

static void change_fit(operations *it, const naive_table *table, naive_change change, changes_list *list)
{
    ivm_change fit = change.change == IVM_DELETE_KEY ? IVM_DELETE_KEY : kind_fit(it, table, change.change, change.values);
    bool left_out = fit == IVM_DELETE_KEY && change.change != IVM_DELETE_KEY;
    change.change = fit;
    if (!left_out) {
        change_add(list, change);
    }
}

/* Many rows from one byte; keys ascend, so that a keyed table takes them. */
static void bulk_draw(operations *it, changes_list *list)
{
    const naive_table *table = &it->expected.tables[operations_pick(it, (unsigned)it->expected.tables_count)];
    uint8_t bytes[64];
    uint32_t random = operations_byte(it);
    operations drawn = { .data = bytes, .size = sizeof bytes, .pool = it->pool, .expected = it->expected };
    unsigned count = 1 + operations_pick(it, BULK_MAX / 2) * 2, first = operations_pick(it, 3) * 1000;
    for (unsigned r = 0; r < count; r++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1103515245 + 12345;
            bytes[i] = (uint8_t)(random >> 16);
        }
        drawn.at = 0;
        ivm_value *row = (ivm_value *)row_draw(&drawn, table);
        row[0] = table->key_count ? ivm_int64(100 + first + r) : row[0];
        change_add(list, (naive_change){ table->name, IVM_INSERT, 1, row, table->columns_count });
    }
    it->pool = drawn.pool;
    operations_count("change of many rows");
}

static void part_draw(operations *it, changes_list *list)
{
    const naive_table *table = &it->expected.tables[operations_pick(it, (unsigned)it->expected.tables_count)];
    unsigned drawn = operations_pick(it, 16), rows = 1 + operations_pick(it, 3);
    bool keyed = table->key_count || operations_once_in(it, 60);
    for (unsigned r = 0; r < rows; r++) {
        naive_change change = { .table = table->name, .weight = 1, .values_count = table->columns_count };
        if (drawn < 7) {
            change.change = IVM_INSERT;
            change.values = operations_pick(it, 5) ? row_draw(it, table) : present_row(it, table, true);
        } else if (drawn < 10) {
            change.change = IVM_DELETE;
            change.values = operations_pick(it, 12) ? present_row(it, table, false) : row_draw(it, table);
        } else if (drawn < 12 || !keyed) {
            change.change = IVM_WEIGHTED;
            change.weight = weight_draw(it, !table->transient);
            change.values = operations_pick(it, 2) ? present_row(it, table, false) : row_draw(it, table);
        } else if (drawn < 15) {
            change.change = IVM_UPSERT;
            change.values = operations_pick(it, 3) ? present_row(it, table, true) : row_draw(it, table);
        } else {
            change.change = IVM_DELETE_KEY;
            change.values = key_draw(it, table);
            change.values_count = table->key_count;
        }
        if (operations_once_in(it, 200) && change.values_count > 1) {
            change.values_count--;
            change_add(list, change);
        } else {
            change_fit(it, table, change, list);
        }
        if (drawn >= 7 && drawn < 10 && operations_pick(it, 2)) { /* an update: the row comes back changed */
            change.change = IVM_INSERT;
            change.values = present_row(it, table, true);
            change_fit(it, table, change, list);
        }
    }
}

/* ---- Promises ---------------------------------------------------------------------------------------------------------------------- */

static bool refers_to(const naive_database *after, const naive_fact *fact, const ivm_value *row, const ivm_value *key)
{
    const naive_table *child = naive_table_find(after, fact->child), *parent = naive_table_find(after, fact->parent);
    bool same = true;
    for (size_t i = 0; i < fact->count; i++) {
        size_t k = 0;
        while (parent->columns[parent->key[k]].id != fact->parent_ids[i]) {
            k++;
        }
        same &= naive_compare(&row[naive_table_column_find(child, fact->child_ids[i])], &key[k]) == 0;
    }
    return same;
}

/* The parent of a key, or no child of it any more. */
static void orphans_settle(operations *it, const naive_database *after, const naive_fact *fact, const ivm_value *key, changes_list *list)
{
    const naive_table *child = naive_table_find(after, fact->child), *parent = naive_table_find(after, fact->parent);
    if (!child->append_only && !child->transient && operations_pick(it, 2)) {
        for (size_t r = 0; r < child->rows.count; r++) {
            const ivm_value *row = naive_row(&child->rows, r);
            if (refers_to(after, fact, row, key)) {
                ivm_value *copy = naive_take(&it->pool, child->columns_count * sizeof *copy);
                memcpy(copy, row, child->columns_count * sizeof *copy);
                change_add(list, (naive_change){ child->name, IVM_WEIGHTED, (int64_t)-child->rows.weights[r], copy, child->columns_count });
            }
        }
        operations_count("push without the children of parents that go");
        return;
    }
    ivm_value *row = (ivm_value *)row_draw(it, parent);
    for (size_t k = 0; k < parent->key_count; k++) {
        row[parent->key[k]] = key[k];
    }
    change_add(list, (naive_change){ parent->name, IVM_INSERT, 1, row, parent->columns_count });
    operations_count("push with parents of its children");
}

/* Settles what children of a database would wait for under facts of one trust. */
static void promises_keep(operations *it, const naive_database *after, ivm_trust trust, changes_list *list)
{
    for (size_t f = 0; f < after->facts_count; f++) {
        const naive_fact *fact = &after->facts[f];
        naive_relation keys;
        if (fact->trust != trust) {
            continue;
        }
        naive_orphans(after, fact, &keys);
        for (size_t r = 0; r < keys.count; r++) {
            orphans_settle(it, after, fact, naive_row(&keys, r), list);
        }
        naive_relation_free(&keys);
    }
}

/* What the oracle makes of the batch, in *after; twice it may be mended. */
static naive_verdict foresee(operations *it, changes_list *list, naive_database *after)
{
    bool mends = operations_pick(it, 3);
    naive_verdict verdict;
    for (unsigned tries = 0;; tries++) {
        naive_database_copy(&it->expected, after);
        verdict = naive_push(after, list->changes, list->count);
        bool broken = verdict.undefined && !verdict.must, orphans = verdict.must == NAIVE_BIT(IVM_FK_VIOLATION) && mends;
        if (tries == 2 || (!broken && !orphans)) {
            return verdict;
        }
        size_t before = list->count;
        promises_keep(it, after, IVM_RELY, list);
        promises_keep(it, after, IVM_ENFORCED, list);
        if (list->count == before) {
            return verdict;
        }
        naive_database_free(after);
    }
}

/* ---- Pushing ----------------------------------------------------------------------------------------------------------------------- */

static bool unjudged(const naive_database *database)
{
    bool any = false;
    for (size_t i = 0; i < database->views_count; i++) {
        any |= database->views[i].unjudged;
    }
    return any;
}

/* A deferred view's pending weights add up over pushes. */
static bool may_fail(const naive_verdict *verdict, ivm_status status)
{
    return verdict->may & NAIVE_BIT(status);
}

/* What a batch comes to for each table; a part that is net is stated to be so. */
static void shapes_state(operations *it, ivm_batch *batch, const changes_list *list)
{
    naive_database copy;
    naive_database_copy(&it->expected, &copy);
    naive_relation *deltas = naive_grow(NULL, copy.tables_count, sizeof *deltas);
    (void)naive_stage(&copy, list->changes, list->count, deltas);
    for (size_t t = 0; t < copy.tables_count; t++) {
        ivm_shape want = deltas[t].count ? IVM_INSERT_ONLY : IVM_UNCHANGED, got;
        size_t changes = 0, inserts = 0;
        ivm_table *table = operations_table(it, copy.tables[t].name);
        for (size_t r = 0; r < deltas[t].count; r++) {
            want = deltas[t].weights[r] < 0 ? IVM_MIXED : want;
        }
        for (size_t i = 0; i < list->count; i++) {
            bool its = strcmp(list->changes[i].table, copy.tables[t].name) == 0;
            changes += its;
            inserts += its && list->changes[i].change == IVM_INSERT;
        }
        if (ivm_batch_shape(batch, table, &got, &it->error) != IVM_OK || got != want) {
            operations_wrong(it, "the shape of %s is %d, expected %d", copy.tables[t].name, got, want);
        }
        if (changes && inserts == changes && inserts == deltas[t].count) {
            (void)ivm_batch_state_shape(batch, table, want);
            operations_count("batch of a stated shape");
        }
        naive_relation_free(&deltas[t]);
    }
    free(deltas);
    naive_database_free(&copy);
}

static ivm_status push_failing(operations *it, const changes_list *list, unsigned nth)
{
    ivm_batch *batch = operations_batch(it, list->changes, list->count);
    test_allocator_arm(&it->allocator, nth);
    ivm_status status = ivm_push_batch(it->engine, batch, NULL, &it->error);
    bool failed = test_allocator_disarm(&it->allocator) | it->failed;
    it->failed = false;
    operations_count(failed ? "push with an allocation that fails" : "push with no allocation to fail");
    if (failed && status == IVM_OK) {
        operations_count("push past an allocation that failed");
    }
    return status;
}

static void batch_say(const changes_list *list)
{
    static const char *const kinds[] = { "insert", "delete", "weighted", "upsert", "delete_key" };
    for (size_t i = 0; i < list->count && operations_trace; i++) {
        const naive_change *change = &list->changes[i];
        operations_say("  %s %s %lld (", kinds[change->change], change->table, (long long)change->weight);
        for (size_t c = 0; c < change->values_count; c++) {
            operations_say("%s", c ? ", " : "");
            operations_value_print(&change->values[c], stderr);
        }
        operations_say(")\n");
    }
}

static void judge(operations *it, naive_verdict verdict, ivm_status status)
{
    bool right = status == IVM_OK ? !verdict.must : ((verdict.must | verdict.may) & NAIVE_BIT(status)) != 0;
    if (!right) {
        operations_wrong(it, "push: %s (%s), expected one of %#x, maybe %#x", ivm_status_name(status),
                         status == IVM_OK ? "" : it->error.message, verdict.must, verdict.may);
    }
}

void operations_push(operations *it)
{
    static const char *const kinds[] = { "change insert", "change delete", "change weighted", "change upsert", "change delete_key" };
    changes_list list = { .count = 0 };
    for (unsigned parts = it->expected.tables_count ? operations_pick(it, 5) : 0; parts > 0; parts--) {
        part_draw(it, &list);
    }
    if (it->expected.tables_count && operations_once_in(it, 90)) {
        bulk_draw(it, &list);
    }
    naive_database after;
    naive_verdict verdict = foresee(it, &list, &after);
    bool unknown = verdict.undefined || unjudged(&after) || verdict.must & NAIVE_BIT(NAIVE_UNJUDGED);
    batch_say(&list);
    if (unknown) {
        operations_count(verdict.undefined ? "batch left out: breaks a promise" : "batch left out: cannot be judged");
        naive_database_free(&after);
        return;
    }
    for (size_t i = 0; i < list.count; i++) {
        operations_count(kinds[list.changes[i].change]);
    }
    ivm_status status = operations_once_in(it, 6) ? push_failing(it, &list, 1 + operations_pick(it, 30)) : IVM_OUT_OF_MEMORY;
    if (status == IVM_OUT_OF_MEMORY) {
        operations_check(it, false); /* nothing has changed */
        ivm_batch *batch = operations_batch(it, list.changes, list.count);
        if (!verdict.must && !verdict.may && operations_once_in(it, 3)) {
            shapes_state(it, batch, &list);
        }
        status = ivm_push_batch(it->engine, batch, NULL, &it->error);
    }
    operations_say("push of %zu changes: %s\n", list.count, ivm_status_name(status));
    operations_count_status("push", status);
    judge(it, verdict, status);
    if (status == IVM_OK) {
        operations_orphans_foresee(it, &after);
    }
    naive_database_free(status == IVM_OK ? &it->expected : &after);
    if (status == IVM_OK) {
        it->expected = after;
        it->stepped = true;
        operations_position_keep(it);
    } else {
        operations_count(may_fail(&verdict, status) && !verdict.must ? "push that may fail" : "push that must fail");
    }
}

void operations_refresh(operations *it)
{
    if (!it->expected.views_count) {
        return;
    }
    const naive_view *drawn = &it->expected.views[operations_pick(it, (unsigned)it->expected.views_count)];
    for (size_t tries = 0; tries < it->expected.views_count && !drawn->deferred; tries++) {
        drawn = &it->expected.views[(size_t)(drawn - it->expected.views + 1) % it->expected.views_count];
    }
    naive_database after;
    naive_database_copy(&it->expected, &after);
    bool deferred = drawn->deferred;
    ivm_status want = naive_refresh(&after, drawn->name);
    if (want == NAIVE_UNJUDGED || unjudged(&after)) {
        naive_database_free(&after);
        return;
    }
    ivm_view *view = operations_view(it, drawn->name);
    unsigned nth = operations_once_in(it, 4) ? 1 + operations_pick(it, 16) : 0;
    test_allocator_arm(&it->allocator, nth);
    ivm_status got = ivm_refresh_view(view, NULL, &it->error);
    test_allocator_disarm(&it->allocator);
    if (got == IVM_OUT_OF_MEMORY && nth) {
        operations_count("refresh with an allocation that fails");
        operations_check(it, false);
        got = ivm_refresh_view(view, NULL, &it->error);
    }
    operations_say("refresh %s: %s\n", drawn->name, ivm_status_name(got));
    operations_count_status(deferred ? "refresh" : "refresh of an immediate view", got);
    if (got != want && !(got == IVM_OVERFLOW && operations_weights_great(it))) {
        operations_wrong(it, "refresh %s: %s (%s), expected %s", drawn->name, ivm_status_name(got), got == IVM_OK ? "" : it->error.message,
                         ivm_status_name(want));
    }
    naive_database_free(got == IVM_OK ? &it->expected : &after);
    if (got == IVM_OK) {
        it->expected = after;
        it->stepped = true;
    }
}
