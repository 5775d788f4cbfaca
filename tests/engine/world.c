/* Three small tables and random batches of them. */
#include "world.h"

#include <criterion/criterion.h>

#include "ivm/batch.h"
#include "random.h"

uint64_t world_random(world *it, uint64_t below)
{
    return random_next(&it->random) % below;
}

void world_open(world *it, uint64_t seed)
{
    static const ivm_column_definition columns[] = { { "k", IVM_INT64, false }, { "v", IVM_INT64, false }, { "s", IVM_STRING, false } };
    static const char *const names[] = { "keyed", "bag", "signed" };
    *it = (world){ .random = seed * 0x9E3779B97F4A7C15ull | 1, .error = IVM_ERROR_INIT, .next = 1000 };
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.hash_seed = seed;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        ivm_table_options table = { .columns = columns, .columns_count = 3 };
        table.key = i == WORLD_KEYED ? "k" : NULL;
        table.allow_negative = i == WORLD_SIGNED;
        cr_assert_eq(ivm_table_create(it->engine, names[i], &table, &it->tables[i], &it->error), IVM_OK, "%s", it->error.message);
    }
}

void world_close(world *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* ---- Batches ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_value text(const char *s)
{
    return s ? ivm_string(s) : ivm_null();
}

static void row_add(const world *it, ivm_batch *batch, uint32_t table, ivm_change change, int64_t weight, const ivm_value *values)
{
    ivm_value row[IVM__CHUNK_ROWS] = { values[0], values[1], values[2] };
    size_t count = change == IVM_DELETE_KEY ? 1 : it->tables[table]->columns_count;
    for (size_t c = 3; c < count; c++) {
        row[c] = ivm_null();
    }
    (void)ivm_batch_row(batch, it->tables[table], change, weight, row, count);
}

static void change_add(world *it, ivm_batch *batch, uint32_t table, bool insert_only)
{
    static const char *const texts[] = { NULL, "a", "bb" };
    ivm_value row[3] = { ivm_int64((int64_t)world_random(it, 6)), ivm_int64((int64_t)world_random(it, 2)),
                         text(texts[world_random(it, 3)]) };
    ivm_change change = IVM_INSERT;
    int64_t weight = 1;
    if (table == WORLD_KEYED) {
        change = insert_only ? IVM_INSERT : world_random(it, 3) ? IVM_UPSERT : IVM_DELETE_KEY;
        row[0] = insert_only ? ivm_int64(it->next++) : row[0];
    } else {
        change = IVM_WEIGHTED;
        weight = insert_only ? 1 + (int64_t)world_random(it, 2) : (int64_t)world_random(it, 5) - 2;
    }
    row_add(it, batch, table, change, weight, row);
}

ivm_batch *world_batch(world *it, uint32_t rows, bool insert_only)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (uint32_t i = 0; i < rows; i++) {
        change_add(it, batch, (uint32_t)world_random(it, WORLD_TABLES), insert_only);
    }
    return batch;
}

ivm_batch *world_row(world *it, uint32_t table, int64_t k, int64_t v, const char *s, int64_t weight)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    row_add(it, batch, table, IVM_WEIGHTED, weight, (ivm_value[]){ ivm_int64(k), ivm_int64(v), text(s) });
    return batch;
}

ivm_status world_push(world *it, ivm_batch *batch)
{
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

void world_put(world *it, uint32_t table, int64_t k, int64_t v, const char *s, int64_t weight)
{
    cr_assert_eq(world_push(it, world_row(it, table, k, v, s, weight)), IVM_OK, "%s", it->error.message);
}

/* ---- Snapshots ----------------------------------------------------------------------------------------------------------------------------- */

static bool row_is(const ivm_rows *rows, size_t row, int64_t k, int64_t v, const char *s)
{
    ivm_value found = ivm_rows_value(rows, IVM_STRING, row, 2);
    bool text_is =
        s ? !found.is_null && found.as.string.size == strlen(s) && memcmp(found.as.string.bytes, s, strlen(s)) == 0 : found.is_null;
    return text_is && ivm_rows_value(rows, IVM_INT64, row, 0).as.int64 == k && ivm_rows_value(rows, IVM_INT64, row, 1).as.int64 == v;
}

int64_t world_weight(ivm_snapshot *snapshot, int64_t k, int64_t v, const char *s)
{
    int64_t weight = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            weight += row_is(&rows, i, k, v, s) ? rows.weights[i] : 0;
        }
    }
    ivm_snapshot_close(snapshot);
    return weight;
}

uint64_t world_rows(ivm_snapshot *snapshot)
{
    uint64_t count = ivm_snapshot_rows_count(snapshot);
    ivm_snapshot_close(snapshot);
    return count;
}

ivm_snapshot *world_changes(ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_changes(view, &snapshot, NULL), IVM_OK);
    return snapshot;
}

ivm_snapshot *world_read(ivm_view *view)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(view, &snapshot, NULL), IVM_OK);
    return snapshot;
}
