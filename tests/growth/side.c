/* See side.h: tables, views, batches, digests of snapshots. */
#include "side.h"

#include <string.h>

ivm_error growth_error = IVM_ERROR_INIT;

/* ---- Catalog --------------------------------------------------------------------------------------------------------------------------- */

void growth_open_empty(growth_side *it, const growth_engine_kind *kind)
{
    memset(it, 0, sizeof *it);
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = kind->hash_seed;
    options.threads = kind->threads;
    options.planner = kind->planner;
    NEED_OK(ivm_engine_open(&options, &it->engine, &growth_error));
}

static ivm_plan *joined(const growth_side *it, ivm_join_kind kind)
{
    return ivm_plan_join_kind(kind, ivm_plan_scan(it->fact, NULL), ivm_plan_scan(it->dim, NULL), "fact.k = dim.id");
}

static ivm_plan *columns(ivm_plan *input, const char *const *names, size_t count)
{
    ivm_plan *plan = ivm_plan_project(input, NULL);
    for (size_t i = 0; i < count; i++) {
        char name[] = { 'c', (char)('0' + i), 0 };
        plan = ivm_plan_compute(plan, name, ivm_column(names[i]));
    }
    return plan;
}

static ivm_plan *grouped(const growth_side *it)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(joined(it, IVM_INNER_JOIN), "dim.v"), "n");
    return ivm_plan_add(plan, "total", "sum", ivm_column("fact.m"));
}

static ivm_plan *by_text(const growth_side *it)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(it->fact, NULL), "s"), "n");
    plan = ivm_plan_add(plan, "total", "sum", ivm_column("m"));
    plan = ivm_plan_add(plan, "least", "min", ivm_column("m"));
    return ivm_plan_add(plan, "greatest", "max", ivm_column("m"));
}

static ivm_plan *texts_all(const growth_side *it)
{
    ivm_plan *inputs[] = { ivm_plan_project(ivm_plan_scan(it->fact, NULL), "s"), ivm_plan_project(ivm_plan_scan(it->dim, NULL), "s") };
    return ivm_plan_set(IVM_UNION, inputs, 2);
}

static ivm_plan *top(const growth_side *it)
{
    ivm_plan *plan = ivm_plan_partition_by(ivm_plan_top_k(ivm_plan_scan(it->dim, NULL), 2, 0), ivm_column("v"));
    plan = ivm_plan_order_by(plan, ivm_column("id"), true, false);
    return columns(plan, (const char *const[]){ "id", "v" }, 2);
}

static ivm_plan *plan_of(const growth_side *it, int view)
{
    switch (view) {
    case GROWTH_GROUPED:
        return grouped(it);
    case GROWTH_FULL:
        return columns(joined(it, IVM_FULL_JOIN), (const char *const[]){ "fact.id", "fact.m", "dim.id", "dim.v" }, 4);
    case GROWTH_BY_TEXT:
        return by_text(it);
    case GROWTH_SEMI:
        return columns(joined(it, IVM_SEMI_JOIN), (const char *const[]){ "id", "m" }, 2);
    case GROWTH_ANTI:
        return columns(joined(it, IVM_ANTI_JOIN), (const char *const[]){ "id", "m" }, 2);
    case GROWTH_TEXTS_ALL:
        return texts_all(it);
    case GROWTH_TOP:
        return top(it);
    default:
        return columns(joined(it, IVM_INNER_JOIN), (const char *const[]){ "fact.id", "dim.v", "dim.s" }, 3);
    }
}

static const char *const names[GROWTH_VIEWS] = { "grouped", "full", "by_text", "semi", "anti", "texts_all", "top", "joined" };

void growth_open(growth_side *it, const growth_engine_kind *kind)
{
    static const ivm_column_definition dim[] = { { "id", IVM_INT64, true }, { "v", IVM_INT64, true }, { "s", IVM_STRING, true } };
    static const ivm_column_definition fact[] = {
        { "id", IVM_INT64, true }, { "k", IVM_INT64, true }, { "m", IVM_INT64, true }, { "s", IVM_STRING, true }
    };
    static const ivm_trust trusts[GROWTH_TRUSTS] = { IVM_RELY, IVM_RELY, IVM_ENFORCED, IVM_TRACKED };
    growth_open_empty(it, kind);
    ivm_table_options options = { .columns = dim, .columns_count = 3, .key = "id" };
    NEED_OK(ivm_table_create(it->engine, "dim", &options, &it->dim, &growth_error));
    options = (ivm_table_options){ .columns = fact, .columns_count = 4, .key = kind->bag ? NULL : "id" };
    NEED_OK(ivm_table_create(it->engine, "fact", &options, &it->fact, &growth_error));
    if (kind->trust != GROWTH_NO_FACT) {
        NEED_OK(ivm_foreign_key_declare(it->fact, "k", it->dim, "id", trusts[kind->trust], &it->foreign_key, &growth_error));
    }
    for (int v = 0; v < GROWTH_VIEWS; v++) {
        NEED_OK(ivm_view_create(it->engine, names[v], plan_of(it, v), NULL, &it->views[v], &growth_error));
    }
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    NEED_OK(ivm_view_create(it->engine, "late", grouped(it), &late, &it->late, &growth_error));
}

void growth_find_all(growth_side *it, bool has_fact)
{
    NEED_OK(ivm_table_find(it->engine, "dim", &it->dim, &growth_error));
    NEED_OK(ivm_table_find(it->engine, "fact", &it->fact, &growth_error));
    it->foreign_key = ivm_fact_next(it->engine, NULL);
    NEED(has_fact == (it->foreign_key != NULL));
    for (int v = 0; v < GROWTH_VIEWS; v++) {
        NEED_OK(ivm_view_find(it->engine, names[v], &it->views[v], &growth_error));
    }
    NEED_OK(ivm_view_find(it->engine, "late", &it->late, &growth_error));
}

void growth_close(growth_side *it)
{
    NEED_OK(ivm_engine_close(it->engine, &growth_error));
    NEED(test_allocator_is_clean(&it->allocator));
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------------------- */

static void change_write(growth_side *it, const growth_model *model, const growth_change *change, ivm_batch *batch)
{
    char text[GROWTH_TEXT_SIZE];
    growth_text(change->of_dim ? change->dim.text : change->fact.text, text);
    ivm_value id = ivm_int64(growth_key(model, change->id));
    ivm_value dim[] = { id, ivm_int64(change->dim.v), ivm_string(text), ivm_null() };
    ivm_value fact[] = { id, ivm_int64(growth_key(model, change->fact.k)), ivm_int64(change->fact.m), ivm_string(text), ivm_null() };
    if (change->of_dim) {
        size_t count = change->change == IVM_DELETE_KEY ? 1 : 3 + it->dim_extra;
        (void)ivm_batch_row(batch, it->dim, change->change, change->weight, dim, count);
    } else {
        (void)ivm_batch_row(batch, it->fact, change->change, change->weight, fact, 4 + it->fact_extra);
    }
}

ivm_status growth_push(growth_side *it, const growth_model *model)
{
    ivm_batch *batch;
    ivm_status status = ivm_batch_create(it->engine, &batch, &growth_error);
    if (status != IVM_OK) {
        return status;
    }
    for (uint32_t i = 0; i < model->changes_count; i++) {
        change_write(it, model, &model->changes[i], batch);
    }
    return ivm_push_batch(it->engine, batch, NULL, &growth_error);
}

/* ---- Digests --------------------------------------------------------------------------------------------------------------------------- */

/* Trailing columns that were added say nothing: they are null in every row, of tables alone. */
static size_t columns_told(const ivm_snapshot *snapshot, const ivm_rows *rows)
{
    size_t count = rows->columns_count;
    return count > 0 && ivm_snapshot_column_type(snapshot, count - 1) == IVM_BOOL ? count - 1 : count;
}

uint64_t growth_rows_digest(ivm_snapshot *snapshot, const ivm_rows *rows)
{
    uint64_t digest = 0;
    size_t columns_count = columns_told(snapshot, rows);
    for (size_t row = 0; row < rows->rows_count; row++) {
        uint64_t hash = 0;
        for (size_t c = 0; c < columns_count; c++) {
            ivm_type type = ivm_snapshot_column_type(snapshot, c);
            ivm_value value = ivm_rows_value(rows, type, row, c);
            hash = value.is_null        ? growth_hash_null(hash)
                   : type == IVM_STRING ? growth_hash_bytes(hash, value.as.string.bytes, value.as.string.size)
                                        : growth_hash_int(hash, value.as.int64);
        }
        digest += hash * (rows->weights ? (uint64_t)rows->weights[row] : 1);
    }
    return digest;
}

uint64_t growth_snapshot_digest(ivm_snapshot *snapshot)
{
    uint64_t digest = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        digest += growth_rows_digest(snapshot, &rows);
    }
    NEED_OK(ivm_snapshot_status(snapshot));
    return digest;
}

static uint64_t closed(ivm_snapshot *snapshot)
{
    uint64_t digest = growth_snapshot_digest(snapshot);
    ivm_snapshot_close(snapshot);
    return digest;
}

uint64_t growth_view_digest(ivm_view *view)
{
    ivm_snapshot *snapshot;
    NEED_OK(ivm_read_view(view, &snapshot, &growth_error));
    return closed(snapshot);
}

uint64_t growth_changes_digest(ivm_view *view)
{
    ivm_snapshot *snapshot;
    NEED_OK(ivm_read_changes(view, &snapshot, &growth_error));
    return closed(snapshot);
}

uint64_t growth_table_digest(ivm_table *table)
{
    ivm_snapshot *snapshot;
    NEED_OK(ivm_read_table(table, &snapshot, &growth_error));
    return closed(snapshot);
}

uint64_t growth_orphans_digest(ivm_fact *fact)
{
    ivm_snapshot *snapshot;
    NEED_OK(ivm_read_orphans(fact, &snapshot, &growth_error));
    return closed(snapshot);
}
