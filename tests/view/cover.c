/* Views over a dimension so large that joins ask covers (engine/index/cover.h): its rows come, change, go and come again, between batches of facts,
 * with them, and in batches that fail. What the views must hold is worked out from plain arrays. */
#include "cover.h"
#include "allocator.h"
#include "catalog.h"
#include "ivm/ivm.h"
#include "random.h"

#include <criterion/criterion.h>

#define IDS 6000 /* of which the first 5000 are there at first */
#define NAMES 7

typedef struct row {
    bool there;
    int64_t price;
    int name;
} row;

typedef struct shop {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_table *product, *sales;
    ivm_view *by_name, *worth;
    uint64_t random;
    row products[IDS], before[IDS];
    int64_t sold[IDS], sold_before[IDS]; /* sales rows of an id */
} shop;

static uint32_t draw(shop *it, uint32_t below)
{
    return (uint32_t)random_below(&it->random, below);
}

/* ---- One batch, in the engine and in the arrays --------------------------------------------------------------------------------------- */

static ivm_value name_value(int name)
{
    static const char *const names[NAMES] = { "ant", "bee", "cat", "", "eel", "fox", "gnu" };
    return ivm_string(names[name]);
}

static ivm_batch *batch_begin(shop *it)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    memcpy(it->before, it->products, sizeof it->before);
    memcpy(it->sold_before, it->sold, sizeof it->sold_before);
    return batch;
}

static void put(shop *it, ivm_batch *batch, int64_t id)
{
    it->products[id] = (row){ true, draw(it, 1000), (int)draw(it, NAMES) };
    ivm_batch_upsert(batch, it->product, ivm_int64(id), ivm_int64(it->products[id].price), name_value(it->products[id].name));
}

/* Taken out; `again`: and another one of the key put in. */
static void take(shop *it, ivm_batch *batch, int64_t id, bool again)
{
    if (it->products[id].there) {
        ivm_batch_delete_key(batch, it->product, ivm_int64(id));
        it->products[id].there = false;
        if (again) {
            put(it, batch, id);
        }
    }
}

static void sell(shop *it, ivm_batch *batch, int64_t id)
{
    if (it->sold[id] && draw(it, 3) == 0) {
        ivm_batch_delete(batch, it->sales, ivm_int64(id));
        it->sold[id]--;
    } else {
        ivm_batch_insert(batch, it->sales, ivm_int64(id));
        it->sold[id]++;
    }
}

static ivm_status push(shop *it, ivm_batch *batch)
{
    ivm_status status = ivm_push_batch(it->engine, batch, NULL, &it->error);
    if (status != IVM_OK) {
        memcpy(it->products, it->before, sizeof it->products);
        memcpy(it->sold, it->sold_before, sizeof it->sold);
    }
    return status;
}

enum { CHANGES, GROWS, MOVES, KINDS };

/* A few facts; `changes` of the dimension: any, new ids alone, or ids that come and ids that go, each once. */
static ivm_batch *batch_draw(shop *it, uint32_t changes, uint32_t kind)
{
    ivm_batch *batch = batch_begin(it);
    for (uint32_t n = 0; n < changes; n++) {
        int64_t id = draw(it, IDS);
        bool there = it->products[id].there;
        if (kind == CHANGES ? draw(it, 3) > 0 : !it->before[id].there && !there) {
            put(it, batch, id);
        } else if (kind == CHANGES || (kind == MOVES && it->before[id].there)) {
            take(it, batch, id, kind == CHANGES && draw(it, 2));
        }
    }
    for (uint32_t n = draw(it, 40); n > 0; n--) {
        sell(it, batch, draw(it, IDS));
    }
    return batch;
}

/* ---- Views -------------------------------------------------------------------------------------------------------------------------- */

static ivm_view *view_make(shop *it, const char *name, const char *group_by, const char *sum)
{
    ivm_view *view;
    ivm_plan *plan = ivm_plan_join(ivm_plan_scan(it->sales, "s"), ivm_plan_scan(it->product, "p"), "s.product_id = p.id");
    plan = ivm_plan_aggregate(plan, group_by);
    plan = ivm_plan_count(plan, "rows");
    plan = sum ? ivm_plan_add(plan, "sum", "sum", ivm_column(sum)) : plan;
    cr_assert_eq(ivm_view_create(it->engine, name, plan, NULL, &view, &it->error), IVM_OK, "%s", it->error.message);
    return view;
}

static int64_t found(shop *it, ivm_view *view, const ivm_value *key, size_t column)
{
    ivm_snapshot *snapshot;
    ivm_rows rows;
    int64_t value = 0;
    cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK);
    bool is = key ? ivm_snapshot_find(snapshot, key, 1, &rows, &it->error) == IVM_OK : ivm_snapshot_next(snapshot, &rows);
    if (is) {
        cr_assert_eq(rows.rows_count, 1);
        value = ivm_rows_value(&rows, IVM_INT64, 0, column).as.int64;
    }
    ivm_snapshot_close(snapshot);
    return value;
}

static void check(shop *it)
{
    int64_t named[NAMES] = { 0 }, all = 0, worth = 0;
    for (uint32_t id = 0; id < IDS; id++) {
        if (it->products[id].there) {
            named[it->products[id].name] += it->sold[id];
            all += it->sold[id];
            worth += it->sold[id] * it->products[id].price;
        }
    }
    for (int name = 0; name < NAMES; name++) {
        ivm_value key = name_value(name);
        cr_assert_eq(found(it, it->by_name, &key, 1), named[name]);
    }
    cr_assert_eq(found(it, it->worth, NULL, 0), all);
    cr_assert_eq(found(it, it->worth, NULL, 1), worth);
}

static shop *begin(uint64_t seed)
{
    static const ivm_column_definition products[] = { { "id", IVM_INT64, true },
                                                      { "price", IVM_INT64, true },
                                                      { "name", IVM_STRING, true } };
    static const ivm_column_definition sold[] = { { "product_id", IVM_INT64, false } };
    shop *it = calloc(1, sizeof *it);
    it->random = seed;
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    options.planner.join_rule = (ivm_join_rule)(seed % 3);
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    ivm_table_options table = { .columns = products, .columns_count = 3, .key = "id" };
    cr_assert_eq(ivm_table_create(it->engine, "product", &table, &it->product, &it->error), IVM_OK);
    table = (ivm_table_options){ .columns = sold, .columns_count = 1 };
    cr_assert_eq(ivm_table_create(it->engine, "sales", &table, &it->sales, &it->error), IVM_OK);
    if (seed % 2) { /* then rows that come and go are set aside, but for those that sales wait for or still hold */
        ivm_status status = ivm_foreign_key_declare(it->sales, "product_id", it->product, "id", IVM_TRACKED, NULL, &it->error);
        cr_assert_eq(status, IVM_OK, "%s", it->error.message);
    }
    it->by_name = view_make(it, "by_name", "p.name", NULL);
    it->worth = view_make(it, "worth", NULL, "p.price");
    ivm_batch *batch = batch_begin(it);
    for (int64_t id = 0; id < 5000; id++) {
        put(it, batch, id);
    }
    cr_assert_eq(push(it, batch), IVM_OK);
    return it;
}

static uint32_t covers_count(const shop *it)
{
    uint32_t count = 0;
    for (const ivm__index *index = it->product->store.indexes; index; index = index->next_of_store) {
        for (const ivm__cover *cover = index->covers; cover; cover = cover->next) {
            count++;
        }
    }
    return count;
}

static void end(shop *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK);
    cr_assert(test_allocator_is_clean(&it->allocator));
    free(it);
}

/* ---- Tests -------------------------------------------------------------------------------------------------------------------------- */

Test(view_cover, views_stay_exact_while_the_dimension_changes)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        shop *it = begin(seed);
        for (uint32_t n = 0; n < 60; n++) {
            uint32_t kind = draw(it, KINDS + 1);
            ivm_batch *batch = batch_draw(it, kind < KINDS ? draw(it, n % 8 ? 20 : 400) : 0, kind);
            bool refused = draw(it, 4) == 0;
            if (refused) {
                ivm_batch_delete(batch, it->sales, ivm_null());
            }
            cr_assert_eq(push(it, batch), refused ? IVM_ROW_NOT_FOUND : IVM_OK, "%s", it->error.message);
            check(it);
        }
        cr_assert_eq(covers_count(it), 2);
        end(it);
    }
}

Test(view_cover, out_of_memory_at_every_call)
{
    shop *it = begin(7);
    uint64_t failures = 0;
    for (uint32_t turn = 0; turn < 6; turn++) {
        uint64_t random = it->random;
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            it->random = random; /* the same batch again */
            ivm_batch *batch = batch_draw(it, turn % 3 ? 50 * turn * turn : 0, turn % 3);
            test_allocator_arm(&it->allocator, n);
            ivm_status status = push(it, batch);
            failed = test_allocator_disarm(&it->allocator);
            cr_assert(status == IVM_OK || (failed && status == IVM_OUT_OF_MEMORY));
            failed = status != IVM_OK; /* one that only would have given memory back does not count */
            failures += failed;
            check(it);
        }
    }
    cr_assert_eq(covers_count(it), 2);
    cr_assert_gt(failures, 20);
    end(it);
}
