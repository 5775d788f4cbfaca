/* Snapshots of tables: every type comes out as it went in; later pushes, drops and other threads do not disturb them. */
#include "random.h"
#include "snapshot_case.h"

#include <criterion/criterion.h>
#include <pthread.h>

TestSuite(engine_snapshot, .init = snapshot_open, .fini = snapshot_close);

static void check_arrays(const ivm_rows *rows)
{
    cr_assert(rows->rows_count > 0 && rows->rows_count <= IVM__CHUNK_ROWS);
    cr_assert_not_null(rows->weights);
    for (size_t c = 0; c < rows->columns_count; c++) {
        const ivm_column_data *column = &rows->columns[c];
        cr_assert_eq((uintptr_t)column->values % 8 * (column->offsets == NULL), 0u);
        cr_assert_eq((uintptr_t)column->validity % 8, 0u);
        cr_assert_eq((uintptr_t)column->offsets % 8, 0u);
        cr_assert_eq(column->offset, 0u);
        cr_assert_eq(column->offsets != NULL, snapshot_every[c].type == (ivm_type)IVM_STRING);
    }
}

/* Which of the rows first..first + count the snapshot holds: each of those in `there` once, and no other. */
static void assert_rows(ivm_snapshot *snapshot, const bool *there, uint64_t count)
{
    uint64_t seen = 0, want = 0, chunks = 0;
    bool *given = calloc(count + 1, 1);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows); chunks++) {
        check_arrays(&rows);
        for (size_t at = 0; at < rows.rows_count; at++, seen++) {
            int64_t id = ivm_rows_value(&rows, IVM_INT64, at, 0).as.int64;
            uint64_t i = (uint64_t)id * 0xF1DE83E19937733Du; /* the inverse of the factor */
            cr_assert_eq(rows.weights[at], 1);
            cr_assert(i < count && there[i] && !given[i] && snapshot_is_row(&rows, at, i), "row %llu", (unsigned long long)i);
            given[i] = true;
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    for (uint64_t i = 0; i < count; i++) {
        want += there[i];
    }
    cr_assert_eq(seen, want);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), want);
    free(given);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_snapshot, every_type_comes_out_as_it_went_in)
{
    static const uint64_t counts[] = { 0, 1, 7, 8, 9, 1023, 1024, 1025, 3000 };
    static bool there[3000];
    memset(there, true, sizeof there);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            ivm_table *table = snapshot_table("t", k ? "id" : NULL);
            snapshot_push(table, IVM_INSERT, 0, counts[n]);
            ivm_snapshot *snapshot = snapshot_read(table);
            cr_assert_eq(ivm_snapshot_columns_count(snapshot), SNAPSHOT_COLUMNS);
            for (size_t c = 0; c < SNAPSHOT_COLUMNS; c++) {
                cr_assert_eq(ivm_snapshot_column_type(snapshot, c), snapshot_every[c].type);
            }
            cr_assert_eq(ivm_snapshot_column_type(snapshot, SNAPSHOT_COLUMNS), 0u);
            for (uint32_t round = 0; round < 3; round++) {
                assert_rows(snapshot, there, counts[n]); /* from the start again */
            }
            ivm_snapshot_close(snapshot);
            cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
        }
    }
}

#define KEPT 12u

/* Snapshots taken between random pushes and closed in any order; each still holds what it held. */
Test(engine_snapshot, later_pushes_do_not_disturb_it)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        static bool there[2000], then[KEPT][2000];
        uint64_t state = seed, rows = 2000;
        ivm_table *table = snapshot_table("t", seed % 2 ? "id" : NULL);
        ivm_snapshot *kept[KEPT] = { NULL };
        memset(there, 0, sizeof there);
        for (uint32_t step = 0; step < 120; step++) {
            uint64_t first = random_short(&state) % rows, count = 1 + random_short(&state) % (rows - first > 200 ? 200 : rows - first);
            while (count > 1 && there[first + count - 1] != there[first]) {
                count--;
            }
            bool same = true; /* insert what is not there, delete what is: a run of one kind */
            for (uint64_t i = first; i < first + count; i++) {
                same &= there[i] == there[first];
            }
            count = same ? count : 1;
            snapshot_push(table, there[first] ? IVM_DELETE : IVM_INSERT, first, count);
            for (uint64_t i = first + count; i-- > first;) {
                there[i] = !there[i];
            }
            uint32_t k = (uint32_t)random_short(&state) % KEPT;
            if (kept[k]) {
                assert_rows(kept[k], then[k], rows);
                ivm_snapshot_close(kept[k]);
            }
            kept[k] = snapshot_read(table);
            memcpy(then[k], there, sizeof there);
        }
        for (uint32_t k = 0; k < KEPT; k++) {
            if (kept[k]) {
                assert_rows(kept[k], then[k], rows);
                ivm_snapshot_close(kept[k]);
            }
        }
        cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
    }
}

Test(engine_snapshot, a_bag_tells_weights)
{
    static const int64_t weights[] = { 1, 5, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MAX };
    ivm_table *table = snapshot_table("t", NULL);
    ivm_value values[SNAPSHOT_COLUMNS];
    char text[32];
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (uint64_t i = 0; i < 5; i++) {
        snapshot_row_of(i, values, text);
        cr_assert_eq(ivm_batch_row(batch, table, IVM_WEIGHTED, weights[i], values, SNAPSHOT_COLUMNS), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    ivm_snapshot *before = snapshot_read(table);
    snapshot_push(table, IVM_INSERT, 0, 2); /* equal rows, which may stand apart */
    ivm_snapshot *apart = snapshot_read(table);
    snapshot_push(table, IVM_DELETE, 2, 2);
    ivm_snapshot *after = snapshot_read(table), *all[] = { before, apart, after };
    for (uint32_t s = 0; s < 3; s++) {
        __int128 sums[5] = { 0 };
        uint64_t seen = 0;
        for (ivm_rows rows; ivm_snapshot_next(all[s], &rows);) {
            for (size_t at = 0; at < rows.rows_count; at++, seen++) {
                for (uint64_t i = 0; i < 5; i++) {
                    sums[i] += snapshot_is_row(&rows, at, i) ? rows.weights[at] : 0;
                }
            }
        }
        cr_assert_eq(ivm_snapshot_rows_count(all[s]), seen);
        for (uint64_t i = 0; i < 5; i++) {
            __int128 want = weights[i] + (s > 0 && i < 2) - (s == 2 && (i == 2 || i == 3));
            cr_assert(sums[i] == want, "snapshot %u, row %llu: %lld", s, (unsigned long long)i, (long long)sums[i]);
        }
        ivm_snapshot_close(all[s]);
    }
}

/* ---- What is kept for it ---------------------------------------------------------------------------------------------------------------------- */

Test(engine_snapshot, texts_live_as_long_as_it)
{
    ivm_table *table = snapshot_table("t", "id");
    bool there[30];
    memset(there, true, sizeof there);
    snapshot_push(table, IVM_INSERT, 0, 30);
    ivm_snapshot *first = snapshot_read(table), *second = snapshot_read(table);
    snapshot_push(table, IVM_DELETE, 0, 30);
    for (uint64_t i = 0; i < 40; i++) { /* texts that come and go, in the room of those gone */
        snapshot_push(table, IVM_INSERT, 1000 + i, 1);
        snapshot_push(table, IVM_DELETE, 1000 + i, 1);
    }
    assert_rows(first, there, 30);
    ivm_snapshot_close(first);
    snapshot_push(table, IVM_INSERT, 2000, 0);
    assert_rows(second, there, 30);
    cr_assert_gt(snapshot_engine->texts.count, 10u);
    ivm_snapshot_close(second);
    snapshot_push(table, IVM_INSERT, 2000, 0);
    cr_assert_eq(snapshot_engine->texts.count, 0u, "no longer");
}

Test(engine_snapshot, outlives_its_table)
{
    ivm_table *table = snapshot_table("t", "id");
    bool there[300];
    memset(there, true, sizeof there);
    snapshot_push(table, IVM_INSERT, 0, 300);
    ivm_snapshot *snapshot = snapshot_read(table), *empty = snapshot_read(snapshot_table("u", NULL));
    cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
    table = snapshot_table("t", "id");
    snapshot_push(table, IVM_INSERT, 300, 300);
    assert_rows(snapshot, there, 300);
    assert_rows(empty, there, 0);
    ivm_snapshot_close(snapshot);
    ivm_snapshot_close(empty);
    ivm_snapshot_close(NULL);
    snapshot_push(table, IVM_DELETE, 300, 300);
    snapshot_push(table, IVM_DELETE, 300, 0);
    cr_assert_eq(snapshot_engine->texts.count, 0u);
}

/* Chunks are cut where their strings grow large: a few rows may share one long text. */
Test(engine_snapshot, long_strings_come_a_few_rows_at_a_time)
{
    enum { LONG = 3000000 };
    ivm_column_definition columns[] = { { "id", IVM_INT64, false }, { "s", IVM_STRING, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_table *table = NULL;
    char *text = malloc(LONG);
    memset(text, 'x', LONG);
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
    for (int64_t i = 0; i < 60; i++) {
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
        cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(i), ivm_string_sized(text, i % 10 == 9 ? 5 : LONG)), IVM_OK);
        cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    }
    int64_t before = snapshot_allocator.bytes, next = 0;
    ivm_snapshot *snapshot = snapshot_read(table);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++, next++) {
            ivm_value s = ivm_rows_value(&rows, IVM_STRING, at, 1);
            cr_assert_eq(ivm_rows_value(&rows, IVM_INT64, at, 0).as.int64, next);
            cr_assert_eq(s.as.string.size, next % 10 == 9 ? 5u : LONG);
            cr_assert_eq(memcmp(s.as.string.bytes, text, s.as.string.size), 0);
        }
    }
    cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
    cr_assert_eq(next, 60);
    cr_assert_lt(snapshot_allocator.bytes - before, 40ll << 20, "%lld bytes for a chunk", (long long)(snapshot_allocator.bytes - before));
    ivm_snapshot_close(snapshot);
    free(text);
}

typedef struct reader {
    ivm_table *table;
    _Atomic bool stop;
    uint32_t wrong, read;
} reader;

/* Pushes keep the number of rows at 500: a snapshot that holds another saw half of one. */
static void *read_on(void *of)
{
    reader *self = of;
    ivm_error failure;
    while (!self->stop || self->read == 0) {
        ivm_snapshot *snapshot = NULL;
        uint64_t rows_count = 0;
        self->wrong += ivm_read_table(self->table, &snapshot, &failure) != IVM_OK;
        for (ivm_rows rows; snapshot && ivm_snapshot_next(snapshot, &rows);) {
            rows_count += rows.rows_count;
        }
        self->wrong += rows_count != 500;
        self->read++;
        ivm_snapshot_close(snapshot);
    }
    return NULL;
}

Test(engine_snapshot, is_read_while_others_push)
{
    ivm_table *table = snapshot_table("t", "id");
    reader readers[2] = { { .table = table }, { .table = table } };
    pthread_t threads[2];
    snapshot_push(table, IVM_INSERT, 0, 500);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    for (uint64_t step = 0; step < 300; step++) {
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
        for (uint64_t i = step; i < step + 20; i++) {
            ivm_value values[SNAPSHOT_COLUMNS];
            char text[32];
            snapshot_row_of(step * 20 + i - step, values, text);
            cr_assert_eq(ivm_batch_row(batch, table, IVM_DELETE, 1, values, SNAPSHOT_COLUMNS), IVM_OK);
            snapshot_row_of(step * 20 + i - step + 500, values, text);
            cr_assert_eq(ivm_batch_row(batch, table, IVM_INSERT, 1, values, SNAPSHOT_COLUMNS), IVM_OK);
        }
        cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    }
    for (uint32_t i = 0; i < 2; i++) {
        readers[i].stop = true;
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_assert_eq(readers[i].wrong, 0u);
        cr_assert_gt(readers[i].read, 0u);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_snapshot, out_of_memory_taking_one_leaves_none)
{
    ivm_table *table = snapshot_table("t", "id");
    snapshot_push(table, IVM_INSERT, 0, 10);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm_snapshot *snapshot = NULL;
        int64_t blocks = snapshot_allocator.blocks;
        test_allocator_arm(&snapshot_allocator, n);
        ivm_status status = ivm_read_table(table, &snapshot, &snapshot_error);
        done = !test_allocator_disarm(&snapshot_allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(snapshot != NULL, done);
        cr_assert(done || (snapshot_allocator.blocks == blocks && !snapshot_engine->snapshots_oldest));
        ivm_snapshot_close(snapshot);
    }
    cr_assert_gt(n, 2u);
}

static uint64_t ids_of(ivm_snapshot *snapshot)
{
    uint64_t sum = 0;
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++) {
            sum += (uint64_t)ivm_rows_value(&rows, IVM_INT64, at, 0).as.int64;
        }
    }
    return sum;
}

/* A cursor that ends early is at its end: the next call is from the start again. Strings grow, so that a late chunk wants more room. */
Test(engine_snapshot, a_cursor_that_ran_out_of_memory_starts_again)
{
    ivm_column_definition columns[] = { { "id", IVM_INT64, false }, { "s", IVM_STRING, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_table *table = NULL;
    ivm_batch *batch = NULL;
    char text[300];
    memset(text, 'x', sizeof text);
    cr_assert_eq(ivm_table_create(snapshot_engine, "t", &options, &table, &snapshot_error), IVM_OK);
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    for (int64_t i = 1; i <= 3000; i++) {
        cr_assert_eq(ivm_batch_insert(batch, table, ivm_int64(i), ivm_string_sized(text, (size_t)i / 11)), IVM_OK);
    }
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK);
    uint64_t n = 1, late = 0;
    for (bool done = false; !done; n++) {
        ivm_snapshot *snapshot = snapshot_read(table);
        test_allocator_arm(&snapshot_allocator, n);
        uint64_t sum = ids_of(snapshot);
        done = !test_allocator_disarm(&snapshot_allocator);
        cr_assert_eq(ivm_snapshot_status(snapshot), done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(sum == 3000 * 3001 / 2, done);
        late += !done && sum > 0;
        cr_assert_eq(ids_of(snapshot), 3000u * 3001 / 2);
        cr_assert_eq(ivm_snapshot_status(snapshot), IVM_OK);
        ivm_snapshot_close(snapshot);
    }
    cr_assert_gt(n, 8u);
    cr_assert_gt(late, 0u);
}
