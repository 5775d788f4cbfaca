/* Pushes and refreshes of the oracle: facts are judged by what tables hold, and every view concerned is computed anew. */
#include "naive.h"

#include <stdlib.h>

/* ---- Facts ------------------------------------------------------------------------------------------------------------------------- */

static bool refers(const naive_table *child, const naive_table *parent, const naive_fact *fact, const ivm_value *row, const ivm_value *to)
{
    bool same = true;
    for (size_t i = 0; i < fact->count; i++) {
        size_t c = naive_table_column_find(child, fact->child_ids[i]), p = naive_table_column_find(parent, fact->parent_ids[i]);
        same &= naive_compare(&row[c], &to[p]) == 0;
    }
    return same;
}

/* Whether the row has a null in its key, which refers to nothing, or its parent. */
static bool settled(const naive_table *child, const naive_table *parent, const naive_fact *fact, const ivm_value *row)
{
    for (size_t i = 0; i < fact->count; i++) {
        if (row[naive_table_column_find(child, fact->child_ids[i])].is_null) {
            return true;
        }
    }
    for (size_t r = 0; r < parent->rows.count; r++) {
        if (refers(child, parent, fact, row, naive_row(&parent->rows, r))) {
            return true;
        }
    }
    return false;
}

void naive_orphans(const naive_database *database, const naive_fact *fact, naive_relation *keys)
{
    const naive_table *child = naive_table_find(database, fact->child), *parent = naive_table_find(database, fact->parent);
    naive_relation_init(keys, fact->count);
    for (size_t r = 0; r < child->rows.count; r++) {
        const ivm_value *row = naive_row(&child->rows, r);
        ivm_value key[NAIVE_KEY_MAX];
        if (settled(child, parent, fact, row)) {
            continue;
        }
        for (size_t k = 0; k < parent->key_count; k++) { /* in the order of the parent's key */
            for (size_t i = 0; i < fact->count; i++) {
                if (fact->parent_ids[i] == parent->columns[parent->key[k]].id) {
                    key[k] = row[naive_table_column_find(child, fact->child_ids[i])];
                }
            }
        }
        (void)naive_row_add(keys, key, child->allow_negative ? 1 : child->rows.weights[r]);
    }
    naive_consolidate(keys);
}

static void facts_judge(const naive_database *database, naive_verdict *verdict)
{
    for (size_t i = 0; i < database->facts_count; i++) {
        const naive_fact *fact = &database->facts[i];
        naive_relation orphans;
        if (fact->trust == IVM_TRACKED) {
            continue;
        }
        naive_orphans(database, fact, &orphans);
        if (orphans.count) {
            verdict->undefined |= fact->trust == IVM_RELY;
            verdict->must |= fact->trust == IVM_ENFORCED ? NAIVE_BIT(IVM_FK_VIOLATION) : 0;
        }
        naive_relation_free(&orphans);
    }
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------------- */

static bool reads_unjudged(const naive_database *database, const naive_plan *plan)
{
    for (size_t i = 0; i < database->views_count; i++) {
        if (database->views[i].unjudged && naive_plan_reads(plan, database->views[i].name)) {
            return true;
        }
    }
    return false;
}

static ivm_status recompute(naive_database *database, naive_view *view)
{
    naive_relation rows;
    ivm_status status =
        reads_unjudged(database, view->plan) ? NAIVE_UNJUDGED : naive_evaluate(database->pool, database, view->plan, false, &rows);
    naive_relation_free(&view->changes);
    naive_relation_init(&view->changes, view->plan->width);
    view->unjudged = status == NAIVE_UNJUDGED;
    if (status == NAIVE_UNJUDGED) {
        naive_relation_init(&rows, view->plan->width);
        status = IVM_OK;
    }
    if (status == IVM_OK) {
        (void)naive_rows_add(&view->changes, &rows, 1);
        (void)naive_rows_add(&view->changes, &view->rows, -1);
        naive_consolidate(&view->changes);
        naive_relation_free(&view->rows);
        view->rows = rows;
    }
    return status;
}

static void changes_forget(naive_database *database)
{
    for (size_t i = 0; i < database->views_count; i++) {
        naive_relation_free(&database->views[i].changes);
    }
}

naive_verdict naive_push(naive_database *database, const naive_change *changes, size_t changes_count)
{
    naive_relation *deltas = naive_grow(NULL, database->tables_count, sizeof *deltas);
    naive_verdict verdict = naive_stage(database, changes, changes_count, deltas);
    for (size_t t = 0; t < database->tables_count; t++) {
        naive_relation_free(&deltas[t]);
    }
    free(deltas);
    if (verdict.must) {
        return verdict;
    }
    facts_judge(database, &verdict);
    changes_forget(database);
    for (size_t i = 0; i < database->views_count && !verdict.must; i++) {
        naive_view *view = &database->views[i];
        ivm_status status = view->deferred ? IVM_OK : recompute(database, view);
        verdict.must |= status == IVM_OK ? 0 : NAIVE_BIT(status);
    }
    return verdict;
}

ivm_status naive_refresh(naive_database *database, const char *name)
{
    naive_view *asked = naive_view_find(database, name);
    if (!asked) {
        return IVM_UNKNOWN_VIEW;
    }
    bool *stale = naive_grow(NULL, database->views_count, sizeof *stale);
    ivm_status status = IVM_OK;
    changes_forget(database);
    for (size_t i = 0; i < database->views_count && status == IVM_OK; i++) { /* inputs stand before what reads them */
        naive_view *view = &database->views[i];
        stale[i] = view == asked && view->deferred;
        for (size_t k = 0; k < i && !view->deferred; k++) {
            stale[i] |= stale[k] && naive_plan_reads(view->plan, database->views[k].name);
        }
        status = stale[i] ? recompute(database, view) : IVM_OK;
    }
    free(stale);
    return status;
}
