/* Groups by codes, from outside: facts grouped by two attributes of dimensions large enough to have covers, against recomputation after every push.
 * Groups go and come back under other ids, attributes get values that were never there, pushes fail half way, dimensions are refilled. */
#include "allocator.h"
#include "ivm/ivm.h"
#include "random.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 400u
#define FACTS 600u

typedef struct world {
    test_allocator allocator;
    ivm_engine *engine;
    ivm_table *dimension[2], *fact;
    ivm_view *view;
    ivm_error error;
    uint64_t random;
    int64_t fact_of[FACTS][2]; /* by key: the dimensions' keys; -1: it is not there */
} world;

static uint64_t draw(world *w, uint64_t below)
{
    return random_below(&w->random, below);
}

static ivm_batch *batch_of(world *w)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(w->engine, &batch, &w->error), IVM_OK);
    return batch;
}

static void row(ivm_batch *batch, ivm_table *table, ivm_change change, const int64_t *cells, size_t count)
{
    ivm_value values[4];
    for (size_t i = 0; i < count; i++) {
        values[i] = ivm_int64(cells[i]);
    }
    cr_assert_eq(ivm_batch_row(batch, table, change, 1, values, count), IVM_OK);
}

static void audit(world *w)
{
    ivm_snapshot *differences = NULL;
    cr_assert_eq(ivm_audit_view(w->view, &differences, &w->error), IVM_OK, "%s", w->error.message);
    for (ivm_rows rows; ivm_snapshot_next(differences, &rows);) {
        cr_assert_fail("the view is not what it would be anew");
    }
    ivm_snapshot_close(differences);
}

static void push(world *w, ivm_batch *batch, ivm_status wanted)
{
    cr_assert_eq(ivm_push_batch(w->engine, batch, NULL, &w->error), wanted, "%s", w->error.message);
    audit(w);
}

/* Attribute of a dimension row at first: few values. */
static int64_t attribute_of(uint64_t key, uint32_t c)
{
    return (int64_t)(key % (3 + c)) * 1000;
}

static void fill(world *w, uint32_t c)
{
    ivm_batch *batch = batch_of(w);
    for (int64_t key = 0; key < KEYS; key++) {
        row(batch, w->dimension[c], IVM_UPSERT, (int64_t[]){ key, attribute_of((uint64_t)key, c) }, 2);
    }
    push(w, batch, IVM_OK);
}

static void begin(world *w, uint64_t seed, uint32_t threads)
{
    ivm_engine_options options = { .version = IVM_ENGINE_OPTIONS_VERSION, .hash_seed = seed, .threads = threads };
    ivm_column_definition dimension[] = { { "id", IVM_INT64, true }, { "a", IVM_INT64, true } },
                          other[] = { dimension[0], { "b", IVM_INT64, true } };
    ivm_column_definition fact[] = {
        { "id", IVM_INT64, true }, { "x", IVM_INT64, true }, { "y", IVM_INT64, true }, { "v", IVM_INT64, true }
    };
    ivm_table_options dimensions = { .columns = dimension, .columns_count = 2, .key = "id" };
    ivm_table_options others = { .columns = other, .columns_count = 2, .key = "id" };
    ivm_table_options facts = { .columns = fact, .columns_count = 4, .key = "id" };
    memset(w, 0, sizeof *w);
    test_allocator_init(&w->allocator);
    options.allocator = test_allocator_functions(&w->allocator);
    memset(w->fact_of, 0xff, sizeof w->fact_of);
    w->random = seed;
    w->error = (ivm_error)IVM_ERROR_INIT;
    cr_assert_eq(ivm_engine_open(&options, &w->engine, &w->error), IVM_OK, "%s", w->error.message);
    cr_assert_eq(ivm_table_create(w->engine, "d0", &dimensions, &w->dimension[0], &w->error), IVM_OK);
    cr_assert_eq(ivm_table_create(w->engine, "d1", &others, &w->dimension[1], &w->error), IVM_OK);
    cr_assert_eq(ivm_table_create(w->engine, "f", &facts, &w->fact, &w->error), IVM_OK);
    ivm_plan *inputs[] = { ivm_plan_scan(w->fact, "f"), ivm_plan_scan(w->dimension[0], "d0"), ivm_plan_scan(w->dimension[1], "d1") };
    ivm_plan *joined = ivm_plan_join_many(inputs, 3, "f.x = d0.id, f.y = d1.id");
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(joined, "a, b"), "total", "sum", ivm_column("v"));
    cr_assert_eq(ivm_view_create(w->engine, "v", plan, NULL, &w->view, &w->error), IVM_OK, "%s", w->error.message);
    fill(w, 0);
    fill(w, 1);
}

static void end(world *w)
{
    cr_assert_eq(ivm_engine_close(w->engine, &w->error), IVM_OK, "%s", w->error.message);
    cr_assert(test_allocator_is_clean(&w->allocator));
}

/* A fact row comes, changes or goes. */
static void fact_change(world *w, ivm_batch *batch, uint64_t key, bool there)
{
    if (there) {
        w->fact_of[key][0] = (int64_t)draw(w, KEYS);
        w->fact_of[key][1] = (int64_t)draw(w, KEYS);
        row(batch, w->fact, IVM_UPSERT, (int64_t[]){ (int64_t)key, w->fact_of[key][0], w->fact_of[key][1], (int64_t)draw(w, 100) }, 4);
    } else if (w->fact_of[key][0] >= 0) {
        w->fact_of[key][0] = -1;
        row(batch, w->fact, IVM_DELETE_KEY, (int64_t[]){ (int64_t)key }, 1);
    }
}

/* The sums of the first two rows leave int64: groups come to be on the way, and must not be known after. */
static void fail(world *w)
{
    ivm_batch *batch = batch_of(w);
    for (uint64_t i = 0; i < 4; i++) {
        row(batch, w->fact, IVM_INSERT, (int64_t[]){ (int64_t)(FACTS + i), (int64_t)draw(w, KEYS), (int64_t)draw(w, KEYS), 1 }, 4);
    }
    for (int64_t i = 0; i < 2; i++) {
        row(batch, w->fact, IVM_INSERT, (int64_t[]){ FACTS + 10 + i, 0, 0, INT64_MAX }, 4);
    }
    push(w, batch, IVM_OVERFLOW);
}

static void step(world *w, uint64_t kind)
{
    ivm_batch *batch = batch_of(w);
    for (uint64_t i = 0; kind == 0 && i < FACTS; i++) {
        fact_change(w, batch, i, false);
    }
    for (uint32_t i = 0; kind != 0 && i < 20; i++) {
        fact_change(w, batch, draw(w, FACTS), draw(w, 3) > 0);
    }
    for (uint32_t i = 0; kind == 1 && i < 3; i++) {
        uint32_t c = (uint32_t)draw(w, 2);
        int64_t a = (int64_t)draw(w, 12) * (draw(w, 4) ? 1000 : 1);
        row(batch, w->dimension[c], IVM_UPSERT, (int64_t[]){ (int64_t)draw(w, KEYS), a }, 2);
    }
    push(w, batch, IVM_OK);
    if (kind == 2) {
        fail(w);
    }
    if (kind == 3) {
        fill(w, (uint32_t)draw(w, 2));
    }
}

Test(view_group_codes, every_push_against_recomputation)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        world *w = calloc(1, sizeof *w);
        begin(w, seed, 1 + seed % 2);
        for (uint32_t i = 0; i < 150; i++) {
            uint64_t kind = draw(w, 12);
            step(w, kind);
        }
        end(w);
        free(w);
    }
}

/* So many facts of new keys from `first` on, in one after the other of ten groups from this one on: there are twelve. */
static ivm_batch *facts_of(world *w, int64_t first, int64_t count, int64_t group)
{
    ivm_batch *batch = batch_of(w);
    for (int64_t i = 0; i < count; i++) {
        int64_t nth = group + i % 10;
        row(batch, w->fact, IVM_INSERT, (int64_t[]){ first + i, nth % 3, nth / 3, 1 + i }, 4);
    }
    return batch;
}

/* Groups that a push made before memory ran out went with it, and are not known by their codes: a group that is made next has the id of one of them. */
Test(view_group_codes, groups_of_a_push_that_ran_out_of_memory)
{
    world *w = calloc(1, sizeof *w);
    for (uint64_t n = 1, done = 0; !done; n++) {
        begin(w, 5, 1);
        push(w, facts_of(w, 0, 1, 0), IVM_OK);
        ivm_batch *batch = facts_of(w, 100, 60, 1);
        test_allocator_arm(&w->allocator, n);
        ivm_status status = ivm_push_batch(w->engine, batch, NULL, &w->error);
        done = !test_allocator_disarm(&w->allocator);
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY));
        audit(w);
        push(w, facts_of(w, 200, 1, 11), IVM_OK);
        push(w, facts_of(w, 300, 60, 1), IVM_OK);
        end(w);
    }
    free(w);
}
