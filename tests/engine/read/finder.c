/* tests engine/read/finder.c: whatever is looked up in a snapshot is what its own rows say, by a finder that is made, offered, kept, filled up, made anew
 * and given up; looking up costs the same in a thousand rows and in a million. */
#include "finder.h"

#include <criterion/criterion.h>

#include "hash.h"
#include "snapshot_case.h"

TestSuite(engine_finder, .init = snapshot_open, .fini = snapshot_close);

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static ivm_table *pairs(const char *name)
{
    ivm_column_definition columns[] = { { "k", IVM_STRING, false }, { "id", IVM_INT64, true }, { "value", IVM_INT64, true } };
    ivm_table *table = NULL;
    ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "id, k" };
    cr_assert_eq(ivm_table_create(snapshot_engine, name, &options, &table, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
    return table;
}

static ivm_batch *batch_new(void)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(snapshot_engine, &batch, &snapshot_error), IVM_OK);
    return batch;
}

static void batch_push(ivm_batch *batch)
{
    cr_assert_eq(ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error), IVM_OK, "%s", snapshot_error.message);
}

/* The key numbered i: ids repeat, texts are of all lengths. */
#define TEXT "something that is longer than a word and shorter than a line"
static void key_of(uint64_t i, ivm_value key[2])
{
    key[0] = ivm_int64((int64_t)(i / 3));
    key[1] = ivm_string_sized(&TEXT[i % 3], 1 + i / 3 % 50);
}

static void pair_set(ivm_batch *batch, ivm_table *table, uint64_t i, int64_t value)
{
    ivm_value key[2];
    key_of(i, key);
    cr_assert_eq(ivm_batch_upsert(batch, table, key[1], key[0], ivm_int64(value)), IVM_OK);
}

static void pair_drop(ivm_batch *batch, ivm_table *table, uint64_t i)
{
    ivm_value key[2];
    key_of(i, key);
    cr_assert_eq(ivm_batch_row(batch, table, IVM_DELETE_KEY, 1, key, 2), IVM_OK);
}

/* The value under key i; -1: no row. */
static int64_t pair_find(ivm_snapshot *snapshot, uint64_t i)
{
    ivm_value key[2];
    ivm_rows rows;
    key_of(i, key);
    ivm_status status = ivm_snapshot_find(snapshot, key, 2, &rows, &snapshot_error);
    cr_assert(status == IVM_ROW_NOT_FOUND || (status == IVM_OK && rows.rows_count == 1), "%s", snapshot_error.message);
    return status == IVM_OK ? ivm_rows_value(&rows, IVM_INT64, 0, 2).as.int64 : -1;
}

/* ---- What is found ---------------------------------------------------------------------------------------------------------------------------- */

#define KEYS 450u
#define KEPT 6u

typedef struct kept {
    ivm_snapshot *snapshot;
    int64_t values[KEYS];
} kept;

static void assert_found(kept *it, uint64_t some)
{
    for (uint64_t i = some ? 0 : KEYS; i < KEYS; i++) {
        cr_assert_eq(pair_find(it->snapshot, i), it->values[i], "key %llu", (unsigned long long)i);
    }
}

/* Pushes of few and many changes, whole tables that go and come, among them such as fail; snapshots of which some are asked at once, some late, some
 * never. */
static void pairs_agree(uint64_t seed)
{
    static kept all[KEPT];
    static int64_t values[KEYS];
    uint64_t state = seed, finders = 0;
    ivm_table *table = pairs("t");
    memset(values, 0xff, sizeof values);
    memset(all, 0, sizeof all);
    for (uint32_t step = 0; step < 150; step++) {
        ivm_batch *batch = batch_new();
        uint64_t changes = random_next(&state) % 5 ? random_next(&state) % 8 : random_next(&state) % (2 * KEYS);
        bool drops = random_next(&state) % 3 == 0;
        for (; changes; changes--) {
            uint64_t i = random_next(&state) % KEYS;
            if (drops && values[i] >= 0) {
                pair_drop(batch, table, i);
                values[i] = -1;
            } else {
                values[i] = (int64_t)random_next(&state) % 10;
                pair_set(batch, table, i, values[i]);
            }
        }
        batch_push(batch);
        kept *at = &all[random_next(&state) % KEPT];
        if (at->snapshot) {
            assert_found(at, random_next(&state) % 2);
        }
        ivm_snapshot_close(at->snapshot);
        at->snapshot = snapshot_read(table);
        memcpy(at->values, values, sizeof values);
        assert_found(at, random_next(&state) % 3 == 0);
        finders += table->store.finder != NULL;
    }
    for (uint32_t k = 0; k < KEPT; k++) {
        if (all[k].snapshot) {
            assert_found(&all[k], 1);
        }
        ivm_snapshot_close(all[k].snapshot);
    }
    cr_assert_gt(finders, 100u, "the store keeps one");
    cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
}

/* Rows come and change one by one while a larger finder is made beside: each is found at once, and in the snapshot from before it is not. */
Test(engine_finder, grows_a_piece_at_a_time)
{
    enum { ROWS = 3000 };
    static int64_t values[ROWS]; /* -1: not there */
    ivm_table *table = pairs("t");
    uint32_t beside = 0, most = 0;
    uint64_t before = 0;
    ivm_snapshot *old = snapshot_read(table);
    for (uint64_t i = 0; i < ROWS; i++) {
        ivm_batch *batch = batch_new();
        pair_set(batch, table, i, values[i] = (int64_t)i);
        if (i > 100 && i % 3 == 0) {
            pair_set(batch, table, i / 2, values[i / 2] = (int64_t)i);
            pair_drop(batch, table, i - 1);
            values[i - 1] = -1;
        }
        batch_push(batch);
        ivm_snapshot *now = snapshot_read(table);
        cr_assert_eq(pair_find(now, i), (int64_t)i);
        cr_assert(pair_find(now, i / 2) == values[i / 2] && (i == 0 || pair_find(now, i - 1) == values[i - 1]));
        cr_assert_eq(pair_find(old, i), -1);
        ivm_snapshot_close(old);
        old = now;
        const ivm__finder *finder = table->store.finder;
        uint64_t done = finder && finder->larger ? finder->growth.done : 0;
        most = done > before && done - before > most ? (uint32_t)(done - before) : most;
        before = done;
        beside += finder && finder->larger;
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        cr_assert_eq(pair_find(old, i), values[i], "key %llu", (unsigned long long)i);
    }
    ivm_snapshot_close(old);
    cr_assert(beside > 50 && most > 0 && most < 200, "%u %u", beside, most);
    cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
}

Test(engine_finder, keys_are_found_in_snapshots_of_any_age)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        pairs_agree(seed);
    }
}

/* Rows that are overwritten in place stay found. What pages had changed when the store took a finder over is added, no more. */
Test(engine_finder, a_finder_is_taken_over_with_what_changed_since)
{
    ivm_table *table = pairs("t");
    ivm_batch *batch = batch_new();
    for (uint64_t i = 0; i < 30000; i++) {
        pair_set(batch, table, i, 1);
    }
    batch_push(batch);
    ivm_snapshot *first = snapshot_read(table), *second = snapshot_read(table);
    batch = batch_new();
    pair_drop(batch, table, 17);
    pair_set(batch, table, 40000, 5);
    batch_push(batch);
    cr_assert(pair_find(first, 17) == 1 && pair_find(first, 40000) == -1);
    cr_assert(pair_find(second, 17) == 1, "which has a finder of its own");
    const ivm__finder *finder = first->shared.finder;
    uint64_t room = finder->room;
    cr_assert(second->shared.finder && second->shared.finder != finder && !table->store.finder);
    ivm_snapshot *third = snapshot_read(table);
    cr_assert(table->store.finder == finder && third->shared.finder == finder && !finder->over);
    cr_assert(pair_find(third, 17) == -1 && pair_find(third, 40000) == 5 && pair_find(third, 40001) == -1);
    cr_assert_eq(finder->room, room - 1, "one row has come");
    batch = batch_new();
    pair_set(batch, table, 40001, 6);
    batch_push(batch);
    cr_assert(pair_find(third, 40001) == -1 && finder->room == room - 2);
    ivm_snapshot_close(first);
    ivm_snapshot_close(second);
    ivm_snapshot_close(third);
}

/* A finder offered by a snapshot of rows that were laid out otherwise is none of the store's. */
Test(engine_finder, a_finder_of_another_layout_is_not_taken_over)
{
    ivm_table *table = pairs("t");
    ivm_batch *batch = batch_new();
    for (uint64_t i = 0; i < 30; i++) {
        pair_set(batch, table, i, (int64_t)i);
    }
    batch_push(batch);
    ivm_snapshot *before = snapshot_read(table);
    ivm_column_definition added = { "added", IVM_INT64, false };
    cr_assert_eq(ivm_table_column_add(table, &added, &snapshot_error), IVM_OK);
    cr_assert_eq(pair_find(before, 7), 7);
    cr_assert_not_null(before->shared.offer->finder);
    ivm_snapshot *after = snapshot_read(table);
    cr_assert(!table->store.finder && !before->shared.offer->finder);
    cr_assert(pair_find(after, 7) == 7 && pair_find(before, 8) == 8 && before->shared.finder != after->shared.finder);
    ivm_snapshot_close(before);
    ivm_snapshot_close(after);
    ivm_snapshot *later = snapshot_read(table);
    cr_assert(table->store.finder && pair_find(later, 8) == 8 && pair_find(later, 31) == -1);
    ivm_snapshot_close(later);
}

/* ---- Beginning and ending --------------------------------------------------------------------------------------------------------------------- */

Test(engine_finder, who_looks_nothing_up_pays_nothing)
{
    ivm_table *table = pairs("t");
    for (uint32_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 40; i++) {
            ivm_batch *batch = batch_new();
            pair_set(batch, table, 3 + 1000 * round + i % 3, (int64_t)i);
            batch_push(batch);
            ivm_rows rows;
            ivm_snapshot *snapshot = snapshot_read(table);
            while (ivm_snapshot_next(snapshot, &rows)) {
            }
            cr_assert_eq(ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_int64(1) }, 1, &rows, &snapshot_error), IVM_OK);
            ivm_snapshot_close(snapshot);
            cr_assert(!ivm__store_finds(&table->store), "by leading columns there is no finder");
        }
    }
}

Test(engine_finder, a_store_that_nobody_asks_gives_its_finder_up)
{
    ivm_table *table = pairs("t");
    int64_t bytes = 0;
    for (uint64_t i = 0; i < 3200; i++) {
        ivm_batch *batch = batch_new();
        pair_set(batch, table, i % 4, (int64_t)i % 3);
        pair_set(batch, table, 10, (int64_t)i);
        batch_push(batch);
        bytes = i == 900 ? snapshot_allocator.bytes : bytes;
        ivm_snapshot *snapshot = snapshot_read(table);
        if (i >= 1000 && i < 1200) {
            cr_assert_eq(pair_find(snapshot, 10), (int64_t)i);
        }
        ivm_snapshot_close(snapshot);
        cr_assert_eq(table->store.finder != NULL, i >= 1001 && i < 1200 + 1024, "push %llu", (unsigned long long)i);
    }
    cr_assert_eq(snapshot_allocator.bytes, bytes, "%lld bytes, then %lld", (long long)bytes, (long long)snapshot_allocator.bytes);
}

/* Taken over or filled up while memory is wanting: the push goes through, and what is found stays right. */
Test(engine_finder, out_of_memory_keeping_one_gives_it_up)
{
    uint64_t n = 1, given_up = 0;
    for (bool done = false; !done; n++) {
        ivm_table *table = pairs("t");
        ivm_batch *batch = batch_new();
        pair_set(batch, table, 0, 0);
        batch_push(batch);
        ivm_snapshot *first = snapshot_read(table);
        cr_assert_eq(pair_find(first, 0), 0);
        batch = batch_new();
        for (uint64_t i = 0; i < 300; i++) { /* more than the finder has room for */
            pair_set(batch, table, i, (int64_t)i + 1);
        }
        test_allocator_arm(&snapshot_allocator, n);
        ivm_status status = ivm_push_batch(snapshot_engine, batch, NULL, &snapshot_error);
        done = !test_allocator_disarm(&snapshot_allocator);
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY));
        given_up += status == IVM_OK && !done && !table->store.finder;
        cr_assert(!done || table->store.finder);
        ivm_snapshot *second = snapshot_read(table);
        for (uint64_t i = 0; i < 300; i++) {
            cr_assert_eq(pair_find(second, i), status == IVM_OK ? (int64_t)i + 1 : i ? -1 : 0);
        }
        cr_assert(pair_find(first, 0) == 0 && pair_find(first, 1) == -1);
        ivm_snapshot_close(first);
        ivm_snapshot_close(second);
        cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
    }
    cr_assert_eq(given_up, 1u);
}

/* ---- What it costs ------------------------------------------------------------------------------------------------------------------------------ */

typedef struct cost {
    uint64_t calls, taken_calls;
    int64_t bytes, taken_bytes;
    uint64_t slots; /* looked at by a thousand look-ups */
} cost;

static uint64_t slots_of(const ivm_snapshot *snapshot, uint64_t i)
{
    ivm_value key[2];
    key_of(i, key);
    const ivm__find_key by = { snapshot->key, snapshot->key_count, snapshot_engine->seed };
    uint64_t hash = ivm__find_hash_add(0, by.seed, IVM_INT64, false, key[0].as.int64), at = 0;
    hash = ivm__find_hash_add(hash, by.seed, IVM_STRING, false,
                              (ivm__wide)ivm__hash_bytes(key[1].as.string.bytes, key[1].as.string.size, by.seed));
    while (ivm__finder_next(snapshot->shared.finder, hash, &at) != IVM__ROW_NONE) {
    }
    return at + 1;
}

static cost cost_of(uint64_t rows)
{
    ivm_table *table = pairs("t");
    for (uint64_t i = 0; i < rows;) {
        ivm_batch *batch = batch_new();
        for (uint64_t end = i + 100000 < rows ? i + 100000 : rows; i < end; i++) {
            pair_set(batch, table, i, (int64_t)i);
        }
        batch_push(batch);
    }
    ivm_snapshot *first = snapshot_read(table);
    cr_assert_eq(pair_find(first, rows / 2), (int64_t)rows / 2);
    ivm_snapshot_close(first);
    ivm_batch *batch = batch_new();
    pair_set(batch, table, rows, 7);
    batch_push(batch);
    cost all = { .calls = snapshot_allocator.calls, .bytes = snapshot_allocator.bytes };
    ivm_snapshot *snapshot = snapshot_read(table);
    all.taken_calls = snapshot_allocator.calls - all.calls;
    all.taken_bytes = snapshot_allocator.bytes - all.bytes;
    cr_assert_eq(pair_find(snapshot, rows), 7);
    cr_assert_eq(pair_find(snapshot, rows + 1), -1);
    for (uint64_t i = 0; i < 1000; i++) {
        cr_assert_eq(pair_find(snapshot, i * rows / 1000), (int64_t)(i * rows / 1000));
        all.slots += slots_of(snapshot, i * rows / 1000);
    }
    all.calls = snapshot_allocator.calls - all.calls;
    all.bytes = snapshot_allocator.bytes - all.bytes;
    ivm_snapshot_close(snapshot);
    cr_assert_eq(ivm_table_drop(table, &snapshot_error), IVM_OK);
    return all;
}

Test(engine_finder, looking_up_costs_the_same_in_a_million_rows)
{
    cost few = cost_of(1000), many = cost_of(1000000);
    cr_assert(few.taken_calls == many.taken_calls && few.taken_bytes == many.taken_bytes);
    cr_assert(few.calls == many.calls && few.bytes == many.bytes, "%llu calls and %lld bytes, %llu calls and %lld bytes",
              (unsigned long long)few.calls, (long long)few.bytes, (unsigned long long)many.calls, (long long)many.bytes);
    cr_assert(few.slots < 6000 && many.slots < 6000, "%llu slots, %llu slots", (unsigned long long)few.slots,
              (unsigned long long)many.slots);
}
