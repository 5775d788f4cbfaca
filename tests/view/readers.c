/* What readers cost: taking a snapshot, the push after it, a look-up, what was held for them; and that all of it is given back. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "allocator.h"
#include "catalog.h"

typedef struct shop {
    test_allocator counted;
    ivm_engine *engine;
    ivm_table *sales;
    ivm_view *totals;
    ivm_error error;
} shop;

static void shop_open(shop *it)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_column_definition columns[] = { { "product", IVM_INT64, true }, { "note", IVM_STRING, true }, { "price", IVM_INT64, true } };
    *it = (shop){ .error = IVM_ERROR_INIT };
    test_allocator_init(&it->counted);
    options.allocator = test_allocator_functions(&it->counted);
    options.hash_seed = 7;
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    ivm_table_options table = { .columns = columns, .columns_count = 3, .allow_negative = true };
    cr_assert_eq(ivm_table_create(it->engine, "sales", &table, &it->sales, &it->error), IVM_OK, "%s", it->error.message);
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_scan(it->sales, "s"), "s.product");
    plan = ivm_plan_add(ivm_plan_count(plan, "n"), "total", "sum", ivm_column("s.price"));
    plan = ivm_plan_add(plan, "last", "max", ivm_column("s.note"));
    cr_assert_eq(ivm_view_create(it->engine, "totals", plan, NULL, &it->totals, &it->error), IVM_OK, "%s", it->error.message);
}

static void shop_close(shop *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->counted));
}

/* One sale of each product first .. first + count, so many times. */
static void sell(shop *it, int64_t first, int64_t count, const char *note, int64_t weight)
{
    while (count > 0) {
        ivm_batch *batch = NULL;
        cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
        int64_t some = count < 100000 ? count : 100000;
        for (int64_t i = first; i < first + some; i++) {
            ivm_value row[] = { ivm_int64(i), ivm_string(note), ivm_int64(1) };
            cr_assert_eq(ivm_batch_row(batch, it->sales, IVM_WEIGHTED, weight, row, 3), IVM_OK);
        }
        cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
        first += some;
        count -= some;
    }
}

static ivm_snapshot *take(shop *it)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_view(it->totals, &snapshot, &it->error), IVM_OK);
    return snapshot;
}

/* The total of one product; -1: no such group. */
static int64_t total(ivm_snapshot *snapshot, int64_t product)
{
    ivm_rows rows;
    ivm_status status = ivm_snapshot_find(snapshot, (ivm_value[]){ ivm_int64(product) }, 1, &rows, NULL);
    cr_assert(status == IVM_OK || status == IVM_ROW_NOT_FOUND);
    return status == IVM_OK ? ivm_rows_value(&rows, IVM_INT64, 0, 2).as.int64 : -1;
}

/* ---- Taking one ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct cost {
    uint64_t calls;
    int64_t bytes;
} cost;

static cost cost_since(const shop *it, cost before)
{
    return (cost){ it->counted.calls - before.calls, it->counted.bytes - before.bytes };
}

static cost now(const shop *it)
{
    return (cost){ it->counted.calls, it->counted.bytes };
}

typedef struct costs {
    cost take, push, look_up;
    uint32_t pages;
} costs;

/* Of a view of so many groups: taking a snapshot, and what the push of one sale holds more after it than it would without. */
static costs costs_of(int64_t groups)
{
    shop it;
    costs all;
    shop_open(&it);
    sell(&it, 0, groups, "a", 1);
    for (int64_t i = 0; i < 70; i++) { /* what large pushes left behind is given back by then */
        sell(&it, i % 3, 1, "a", 1);
    }
    ivm_snapshot_close(take(&it));
    cost before = now(&it);
    ivm_snapshot *snapshot = take(&it);
    all.take = cost_since(&it, before);
    sell(&it, 1, 1, "a", 1);
    before = now(&it);
    ivm_snapshot_close(snapshot);
    all.push = cost_since(&it, before);
    all.push.bytes = -all.push.bytes;
    all.pages = it.totals->program.result->pages_count;
    snapshot = take(&it);
    cr_assert_eq(total(snapshot, 2), 1 + 23);
    ivm_snapshot_close(snapshot);
    sell(&it, 1, 1, "a", 1);
    snapshot = take(&it);
    before = now(&it);
    cr_assert_eq(total(snapshot, groups - 1), 1);
    all.look_up = cost_since(&it, before);
    ivm_snapshot_close(snapshot);
    shop_close(&it);
    return all;
}

/* Nodes of a directory that lead to one page. */
static uint32_t levels_of(uint32_t pages)
{
    uint32_t levels = 1;
    for (; pages > IVM__FAN; pages = (pages + IVM__FAN - 1) / IVM__FAN) {
        levels++;
    }
    return levels;
}

/* The push after it copies the page it writes to and the nodes that lead there; they are given back with the snapshot, as is that. */
Test(view_readers, a_snapshot_of_a_million_groups_costs_what_one_of_a_thousand_does)
{
    costs few = costs_of(1000), many = costs_of(1000000);
    cr_assert(few.take.calls == many.take.calls && few.take.bytes == many.take.bytes && many.take.calls == 1);
    cr_assert_lt(many.take.bytes, 1000, "%lld bytes", (long long)many.take.bytes);
    cr_assert(few.look_up.calls == many.look_up.calls && few.look_up.bytes == many.look_up.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        const costs *all = i ? &many : &few;
        int64_t nodes = levels_of(all->pages) * (int64_t)sizeof(ivm__pages);
        int64_t most = all->take.bytes + nodes + 2 * (int64_t)IVM__PAGE_BYTES;
        cr_assert(all->push.bytes > nodes && all->push.bytes < most, "%lld bytes for %u pages", (long long)all->push.bytes, all->pages);
    }
    printf("taking one: %llu call, %lld bytes; a push after it: %lld bytes of a thousand groups, %lld of a million (%u pages)\n",
           (unsigned long long)many.take.calls, (long long)many.take.bytes, (long long)few.push.bytes, (long long)many.push.bytes,
           many.pages);
}

static void *read_once(void *argument)
{
    ivm_snapshot_close(take(argument));
    return NULL;
}

/* What a push of one sale asks the allocator for, while its view and its table are held: by snapshots, or as published for other threads. */
static cost push_beside_readers(int64_t groups, bool published)
{
    shop it;
    cost least = { UINT64_MAX, INT64_MAX };
    pthread_t other;
    shop_open(&it);
    sell(&it, 0, groups, "a", 1);
    for (int64_t i = 0; i < 70; i++) {
        sell(&it, i % 3, 1, "a", 1);
    }
    if (published) {
        cr_assert_eq(pthread_create(&other, NULL, read_once, &it), 0);
        pthread_join(other, NULL);
    }
    for (int64_t i = 0; i < 20; i++) {
        ivm_snapshot *view = NULL, *table = NULL;
        if (!published) {
            view = take(&it);
            cr_assert_eq(ivm_read_table(it.sales, &table, &it.error), IVM_OK);
        }
        uint64_t calls = it.counted.calls, asked = it.counted.asked;
        sell(&it, 1, 1, "a", 1);
        least.calls = it.counted.calls - calls < least.calls ? it.counted.calls - calls : least.calls;
        int64_t bytes = (int64_t)(it.counted.asked - asked);
        least.bytes = bytes < least.bytes ? bytes : least.bytes;
        ivm_snapshot_close(view);
        ivm_snapshot_close(table);
    }
    shop_close(&it);
    return least;
}

/* Of both, one level or two more lead to the page that is written to. */
Test(view_readers, a_push_beside_readers_copies_no_more_of_a_hundred_thousand_groups)
{
    for (uint32_t published = 0; published < 2; published++) {
        cost few = push_beside_readers(1000, published), many = push_beside_readers(100000, published);
        cr_assert_leq(many.calls, few.calls + 4, "%llu calls, then %llu", (unsigned long long)few.calls, (unsigned long long)many.calls);
        cr_assert_leq(many.bytes, few.bytes + 4 * (int64_t)sizeof(ivm__pages), "%lld bytes, then %lld", (long long)few.bytes,
                      (long long)many.bytes);
        printf("a push beside %s asks for %lld bytes of a thousand groups, %lld of a hundred thousand\n",
               published ? "a published state" : "snapshots", (long long)few.bytes, (long long)many.bytes);
    }
}

/* Weights outside 31 bits lie beside the rows: they are shared, too, and copied by the push after, once. */
Test(view_readers, a_hundred_thousand_heavy_weights_are_shared)
{
    cost takes[2], pushes[2];
    for (uint32_t i = 0; i < 2; i++) {
        shop it;
        ivm_snapshot *snapshot = NULL, *later = NULL;
        shop_open(&it);
        sell(&it, 0, i ? 100000 : 10, "a", (int64_t)1 << 40);
        sell(&it, 0, 1, "b", 1);
        cost before = now(&it);
        cr_assert_eq(ivm_read_table(it.sales, &snapshot, &it.error), IVM_OK);
        takes[i] = cost_since(&it, before);
        sell(&it, 5, 1, "a", -1);
        cr_assert_eq(ivm_read_table(it.sales, &later, &it.error), IVM_OK);
        before = now(&it);
        for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
            for (size_t at = 0; at < rows.rows_count; at++) {
                bool plain = ivm_rows_value(&rows, IVM_STRING, at, 1).as.string.bytes[0] == 'b';
                cr_assert_eq(rows.weights[at], plain ? 1 : (int64_t)1 << 40);
            }
        }
        ivm_snapshot_close(snapshot);
        pushes[i] = cost_since(&it, before);
        for (ivm_rows rows; ivm_snapshot_next(later, &rows);) {
            for (size_t at = 0; at < rows.rows_count; at++) {
                bool changed = ivm_rows_value(&rows, IVM_INT64, at, 0).as.int64 == 5;
                cr_assert(rows.weights[at] == 1 || rows.weights[at] == ((int64_t)1 << 40) - changed);
            }
        }
        ivm_snapshot_close(later);
        shop_close(&it);
    }
    cr_assert(takes[0].calls == takes[1].calls && takes[0].bytes == takes[1].bytes, "%lld and %lld bytes", (long long)takes[0].bytes,
              (long long)takes[1].bytes);
    cr_assert_gt(-pushes[1].bytes, 1600000, "the list that the snapshot held alone");
}

/* A push that changes none of them copies none, whether a snapshot is open or others are told of states; one that does copies them once. */
Test(view_readers, heavy_weights_are_copied_when_one_changes)
{
    shop it;
    ivm_snapshot *snapshot = NULL;
    shop_open(&it);
    sell(&it, 0, 100000, "a", (int64_t)1 << 40);
    uint64_t before = 0;
    for (uint32_t i = 0; i < 6; i++) {
        const ivm__heavies *list = it.sales->store.heavies;
        cr_assert_eq(ivm_read_table(it.sales, &snapshot, &it.error), IVM_OK);
        sell(&it, 0, 1, "b", 1); /* makes room for a copy */
        ivm_snapshot_close(snapshot);
        cr_assert_eq(ivm_read_table(it.sales, &snapshot, &it.error), IVM_OK);
        uint64_t asked = it.counted.asked;
        sell(&it, 0, 1, "b", 1);
        asked = it.counted.asked - asked;
        cr_assert_eq(it.sales->store.heavies, list);
        cr_assert_lt(asked, 100000u, "%llu bytes", (unsigned long long)asked);
        sell(&it, 5, 1, "a", -1);
        cr_assert_neq(it.sales->store.heavies, list);
        list = it.sales->store.heavies;
        sell(&it, 6, 1, "a", -1);
        cr_assert_eq(it.sales->store.heavies, list);
        ivm_snapshot_close(snapshot);
        sell(&it, 0, 1, "b", 1);
        cr_assert_null(it.sales->store.heavies_spare);
        before = i == 2 ? (uint64_t)it.counted.bytes : before;
    }
    cr_assert_leq((uint64_t)it.counted.bytes, before + 65536);
    shop_close(&it);
}

/* ---- Giving back --------------------------------------------------------------------------------------------------------------------------- */

static uint64_t bytes_held(shop *it)
{
    ivm_stats stats;
    ivm_engine_stats(it->engine, &stats);
    return stats.bytes_held;
}

/* A round of pushes that ends with the rows it began with; every note comes and goes. */
static void round_of_pushes(shop *it, ivm_snapshot **kept, uint32_t kept_count)
{
    for (uint32_t i = 0; i < 60; i++) {
        char note[64];
        snprintf(note, sizeof note, "the note of step %u, which is no short one", i);
        sell(it, i * 40, 2000, note, 1);
        if (i < kept_count) {
            kept[i] = take(it);
        }
        if (i + 60 < kept_count) {
            cr_assert_eq(ivm_read_table(it->sales, &kept[i + 60], &it->error), IVM_OK);
        }
        sell(it, i * 40, 2000, note, -1);
    }
}

#define KEPT 100u

/* Old pages, texts and weights go when the last snapshot of them does; texts with the end of the push after it. */
Test(view_readers, what_was_held_for_readers_is_given_back)
{
    shop it;
    ivm_snapshot *kept[KEPT];
    ivm_rows rows;
    shop_open(&it);
    for (int64_t i = 0; i < 5000; i += 10) { /* so many that the table of texts has room for those that come and go */
        char note[32];
        snprintf(note, sizeof note, "always %lld", (long long)i);
        sell(&it, i, 10, note, 1);
    }
    cr_assert_eq(ivm_read_table(it.sales, &kept[0], &it.error), IVM_OK);
    ivm_snapshot_close(kept[0]);
    ivm_snapshot_close(take(&it));
    for (uint32_t i = 0; i < 3; i++) {
        round_of_pushes(&it, kept, 0);
    }
    sell(&it, 0, 1, "always", 1);
    sell(&it, 0, 1, "always", -1);
    uint64_t before = bytes_held(&it);
    round_of_pushes(&it, kept, KEPT);
    uint64_t held = bytes_held(&it);
    cr_assert_gt(held, 2 * before, "%llu, then %llu", (unsigned long long)before, (unsigned long long)held);
    for (uint32_t i = 0; i < KEPT; i++) { /* here and there */
        ivm_snapshot *snapshot = kept[i * 37 % KEPT];
        cr_assert(ivm_snapshot_next(snapshot, &rows));
        cr_assert(i % 2 || ivm_snapshot_sort(snapshot, &it.error) == IVM_OK);
        ivm_snapshot_close(snapshot);
        cr_assert_lt(bytes_held(&it), held, "each gives something back");
        held = bytes_held(&it);
    }
    sell(&it, 0, 1, "always", 1);
    sell(&it, 0, 1, "always", -1);
    cr_assert_eq(bytes_held(&it), before, "%llu, then %llu", (unsigned long long)before, (unsigned long long)bytes_held(&it));
    shop_close(&it);
}

/* ---- What is given out --------------------------------------------------------------------------------------------------------------------- */

/* Groups whose row a push replaced come twice, before and after; groups that are what they were do not come. */
Test(view_readers, changes_can_be_sorted_and_looked_up)
{
    shop it;
    ivm_snapshot *changes = NULL;
    ivm_rows rows;
    shop_open(&it);
    sell(&it, 0, 3000, "a", 1);
    sell(&it, 1000, 1500, "b", 2);
    cr_assert_eq(ivm_read_changes(it.totals, &changes, &it.error), IVM_OK);
    cr_assert_eq(ivm_snapshot_sort(changes, &it.error), IVM_OK);
    cr_assert_eq(ivm_snapshot_rows_count(changes), 3000u);
    uint64_t seen = 0;
    for (; ivm_snapshot_next(changes, &rows); seen += rows.rows_count) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            int64_t product = ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64, n = ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64;
            bool after = (seen + i) % 2;
            cr_assert(product == (int64_t)(1000 + (seen + i) / 2) && n == (after ? 3 : 1) && rows.weights[i] == (after ? 1 : -1));
        }
    }
    cr_assert_eq(seen, 3000u);
    cr_assert_eq(ivm_snapshot_find(changes, (ivm_value[]){ ivm_int64(1700) }, 1, &rows, &it.error), IVM_OK);
    cr_assert_eq(rows.rows_count, 2u);
    ivm_snapshot_close(changes);
    shop_close(&it);
}

/* Groups are found in snapshots of every push, whether their rows were overwritten, replaced, or came. */
Test(view_readers, groups_are_found_after_every_push)
{
    shop it;
    int64_t totals[40] = { 0 };
    uint64_t random = 1, kept = 0;
    shop_open(&it);
    for (uint32_t step = 0; step < 400; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        int64_t first = (int64_t)(random >> 40) % 30, count = 1 + (int64_t)(random >> 50) % 10;
        bool leave = random >> 62 == 0 && totals[first] > 0;
        sell(&it, first, leave ? 1 : count, "a", leave ? -totals[first] : 1);
        for (int64_t i = first; i < first + (leave ? 1 : count); i++) {
            totals[i] = leave ? 0 : totals[i] + 1;
        }
        ivm_snapshot *snapshot = take(&it);
        for (int64_t i = 0; i < 40; i++) {
            cr_assert_eq(total(snapshot, i), totals[i] ? totals[i] : -1, "step %u, group %lld", step, (long long)i);
        }
        ivm_snapshot_close(snapshot);
        kept += it.totals->program.result->finder != NULL;
    }
    cr_assert_gt(kept, 390u);
    shop_close(&it);
}
