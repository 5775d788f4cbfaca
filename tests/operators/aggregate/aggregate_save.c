/* Aggregates saved and loaded: all functions over all types, groups and none, weights below 0. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "aggregate_case.h"
#include "holdings.h"

/* One of twelve forms: groups, having, weights below 0. */
static void open_form(agg_case *it, uint64_t seed)
{
    (seed % 2 ? agg_open_negative : agg_open)(it, (uint32_t)(seed / 2 % 3), seed / 6 % 2);
}

static void live_copy(agg_case *to, const agg_case *from)
{
    agg_rows_free(&to->live);
    for (size_t i = 0; i < from->live.count; i++) {
        agg_rows_add(&to->live, &from->live.row[i]);
    }
}

static void start(agg_case *it, uint64_t seed, uint64_t *random)
{
    open_form(it, seed);
    cr_assert_eq(agg_step(it, &(agg_rows){ 0 }, true, true, random), IVM_OK);
}

static void steps_take(agg_case *it, uint32_t count, uint64_t *random)
{
    for (uint32_t n = 0; n < count; n++) {
        agg_rows changes;
        agg_changes(it, hand_below(random, 12), hand_below(random, 2), &changes, random);
        (void)agg_step(it, &changes, false, hand_below(random, 4) != 0, random);
        agg_rows_free(&changes);
    }
}

static void assert_bytes(holdings *held, const agg_case *it, const char *what, uint64_t seed)
{
    holdings now = { .chunk_rows = held->chunk_rows };
    holdings_save(&now, it->operator);
    cr_assert(holdings_equal(&now, held), "%s, seed %llu", what, (unsigned long long)seed);
    holdings_free(&now);
    holdings_free(held);
}

static void reload(const agg_case *from, agg_case *to, uint64_t seed, uint32_t chunk_rows)
{
    holdings held = { .chunk_rows = chunk_rows };
    open_form(to, seed);
    holdings_save(&held, from->operator);
    cr_assert_eq(holdings_load(&held, to->it.engine, to->operator, & to->it.error), IVM_OK, "seed %llu: %s", (unsigned long long)seed,
                 to->it.error.message);
    cr_assert(holdings_is_still(ivm__aggregate_result(to->operator)));
    cr_assert_eq(to->emitted.count, 0u, "loading sends nothing");
    live_copy(to, from);
    assert_bytes(&held, to, "loaded", seed);
}

/* What is there, shuffled, in two steps of which one has noise. */
static void assert_other_way(agg_case *from, uint64_t seed, uint64_t *random)
{
    agg_case other;
    agg_rows parts[2] = { 0 };
    holdings held = { 0 };
    start(&other, seed, random);
    for (size_t i = 0; i < from->live.count; i++) {
        agg_row row = from->live.row[i], half = row;
        half.weight = row.weight / 2;
        row.weight -= half.weight;
        agg_rows_add(&parts[hand_below(random, 2)], &row);
        if (half.weight) {
            agg_rows_add(&parts[hand_below(random, 2)], &half);
        }
    }
    agg_row noise = agg_draw(random);
    for (uint32_t i = 0; i < 2; i++) {
        agg_rows_add(&parts[i], &noise);
        noise.weight = -noise.weight;
    }
    for (uint32_t i = 0; i < 2; i++) {
        agg_shuffle(&parts[i], random);
        cr_assert_eq(agg_step(&other, &parts[i], false, true, random), IVM_OK, "%s", other.it.error.message);
        agg_rows_free(&parts[i]);
    }
    holdings_save(&held, from->operator);
    assert_bytes(&held, &other, "the same rows by other steps", seed);
    agg_close(&other);
}

Test(operators_aggregate_save, saved_and_loaded_it_goes_on)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        agg_case one, other;
        agg_outputs before = { 0 };
        uint64_t random = seed * 77 + 1;
        start(&one, seed, &random);
        steps_take(&one, hand_below(&random, 12), &random);
        reload(&one, &other, seed, hand_below(&random, 2) ? 1 + hand_below(&random, 4) : 0);
        agg_model(&other, &before);
        agg_assert_step(&other, &before, "loaded", seed);
        for (uint32_t step = 0; step < 6; step++) {
            agg_rows changes;
            holdings held = { 0 };
            bool keep = hand_below(&random, 4) != 0;
            agg_changes(&one, hand_below(&random, 12), hand_below(&random, 2), &changes, &random);
            ivm_status status = agg_step(&one, &changes, false, keep, &random);
            cr_assert_eq(agg_step(&other, &changes, false, keep, &random), status);
            if (keep && status == IVM_OK) {
                agg_assert_step(&other, &before, "taken on", seed);
            }
            agg_rows_free(&changes);
            holdings_save(&held, one.operator);
            assert_bytes(&held, &other, "taken on", seed);
        }
        assert_other_way(&one, seed, &random);
        agg_outputs_free(&before);
        agg_close(&one);
        agg_close(&other);
    }
}

Test(operators_aggregate_save, more_groups_than_a_chunk)
{
    agg_case one, other;
    uint64_t random = 3;
    agg_rows changes = { 0 };
    agg_outputs got, want;
    start(&one, 8, &random); /* by g, having */
    for (uint32_t i = 0; i < 2500; i++) {
        agg_row row = agg_draw(&random);
        row.cells[0] = i;
        row.nulls[0] = false;
        agg_rows_add(&changes, &row);
    }
    cr_assert_eq(agg_step(&one, &changes, false, true, &random), IVM_OK);
    agg_rows_free(&changes);
    reload(&one, &other, 8, 0);
    agg_result(&one, &want);
    agg_result(&other, &got);
    cr_assert(agg_equal(&got, &want));
    cr_assert(want.count > 1100 && want.count < 2000);
    agg_outputs_free(&got);
    agg_outputs_free(&want);
    agg_close(&one);
    agg_close(&other);
}

static uint32_t spoilt_load(uint64_t seed, uint32_t rounds)
{
    agg_case one;
    uint64_t random = seed * 77 + 1;
    uint32_t loaded = 0;
    holdings held = { .chunk_rows = 1 + hand_below(&random, 40) };
    start(&one, seed, &random);
    steps_take(&one, 6, &random);
    holdings_save(&held, one.operator);
    for (uint32_t n = 0; n < rounds; n++) {
        agg_case at, twin;
        holdings spoilt, again = { 0 };
        open_form(&at, seed);
        holdings_copy(&spoilt, &held);
        holdings_spoil(&spoilt, &random);
        ivm_status status = holdings_load(&spoilt, at.it.engine, at.operator, & at.it.error);
        cr_assert(status == IVM_OK || status == IVM_CORRUPT, "seed %llu, round %u: %d", (unsigned long long)seed, n, status);
        if (status == IVM_OK) {
            loaded++;
            holdings_save(&again, at.operator);
            open_form(&twin, seed);
            cr_assert_eq(holdings_load(&again, twin.it.engine, twin.operator, & twin.it.error), IVM_OK);
            assert_bytes(&again, &twin, "spoilt", seed);
            agg_close(&twin);
            at.operator->next = NULL; /* its texts are none that the model knows */
            live_copy(&at, &one);
            steps_take(&at, 3, &random);
        }
        holdings_free(&spoilt);
        agg_close(&at);
    }
    holdings_free(&held);
    agg_close(&one);
    return loaded;
}

Test(operators_aggregate_save, spoilt_bytes_break_nothing)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 48; seed++) {
        loaded += spoilt_load(seed, 60);
    }
    cr_assert_gt(loaded, 300);
}

static void run_out_of_memory(uint64_t seed)
{
    agg_case one;
    uint64_t random = seed;
    holdings held = { 0 };
    bool done = false;
    start(&one, seed, &random);
    steps_take(&one, 12, &random);
    holdings_save(&held, one.operator);
    for (uint64_t n = 1; !done; n++) {
        agg_case at;
        open_form(&at, seed);
        test_allocator_arm(&at.allocator, n);
        ivm_status status = holdings_load(&held, at.it.engine, at.operator, & at.it.error);
        done = !test_allocator_disarm(&at.allocator);
        cr_assert(status == IVM_OK || (!done && status == IVM_OUT_OF_MEMORY), "allocation %llu", (unsigned long long)n);
        agg_close(&at);
    }
    holdings_free(&held);
    agg_close(&one);
}

Test(operators_aggregate_save, running_out_of_memory_in_loading_leaves_nothing)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        run_out_of_memory(seed);
    }
}

/* ---- Bytes that contradict themselves ---------------------------------------------------------------------------------------------------- */

/* count(*), sum(c0) by c0, of int64. */
static ivm__operator *plain_make(hand *it, uint32_t groups_count)
{
    ivm__operator *made;
    hand_open(it, NULL);
    ivm__memory *memory = &it->engine->memory;
    ivm__expression *group = groups_count ? ivm__expression_column(memory, 0, IVM_INT64) : NULL;
    ivm__aggregate_spec specs[] = { { IVM__COUNT, NULL, NULL, IVM_INT64, "n" },
                                    { IVM__SUM, ivm__expression_column(memory, 0, IVM_INT64), NULL, IVM_INT64, "total" } };
    cr_assert_eq(ivm__aggregate_create(memory, &it->engine->texts, 1, &group, groups_count, specs, 2, NULL, &made), IVM_OK);
    made->view = "v";
    return made;
}

static void put(holdings *it, const void *bytes, size_t size)
{
    cr_assert_leq(it->size + size, it->capacity);
    memcpy(it->bytes + it->size, bytes, size);
    it->size += size;
}

/* A group of this key: its rows, and the sum, as two parts, over so many values. */
static void put_group(holdings *it, int64_t key, int64_t weight, ivm__wide rows, ivm__wide low, ivm__wide high)
{
    uint16_t one = 1;
    uint8_t null = 0;
    const ivm__wide state[] = { rows, low, high, rows };
    put(it, &one, sizeof one);
    put(it, &weight, sizeof weight);
    put(it, &null, 1);
    put(it, &key, sizeof key);
    put(it, state, sizeof state);
}

Test(operators_aggregate_save, groups_that_cannot_be_are_corrupt)
{
    static const struct {
        int64_t key, weight;
        ivm__wide rows, low, high;
        const char *message; /* NULL: it loads */
    } cases[] = {
        { 2, 1, 1, 5, 0, NULL },
        { 2, 1, -1, 5, 0, NULL },
        { 2, 1, 1, INT64_MIN, -1, NULL },
        { 1, 1, 1, 5, 0, "view v: state of aggregate: a group that comes twice, or does not weigh 1" },
        { 2, 2, 1, 5, 0, "view v: state of aggregate: a group that comes twice, or does not weigh 1" },
        { 2, 1, 0, 5, 0, "view v: state of aggregate: a group without rows" },
        { 2, 1, 1, 0, (ivm__wide)1 << 64, "view v: state of aggregate: a sum out of range" },
        { 2, 1, 1, 0, 1, "view v: state of aggregate: a value of a group is out of range" },
        { 2, 1, (ivm__wide)1 << 63, 5, 0, "view v: state of aggregate: a value of a group is out of range" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[256];
        holdings held = { .bytes = bytes, .capacity = sizeof bytes };
        hand it;
        ivm__operator *aggregate = plain_make(&it, 1);
        put(&held, "R", 1);
        put_group(&held, 1, 1, 1, 1, 0);
        put_group(&held, cases[i].key, cases[i].weight, cases[i].rows, cases[i].low, cases[i].high);
        put(&held, &(uint16_t){ 0 }, 2);
        ivm_status status = holdings_load(&held, it.engine, aggregate, &it.error);
        cr_assert_eq(status, cases[i].message ? IVM_CORRUPT : IVM_OK, "case %zu", i);
        if (cases[i].message) {
            cr_assert_str_eq(it.error.message, cases[i].message);
        }
        aggregate->class->free(aggregate, &it.engine->memory);
        hand_close(&it);
    }
}

Test(operators_aggregate_save, without_groups_the_one_row_is_there)
{
    hand it;
    ivm__operator *aggregate = plain_make(&it, 0);
    holdings held = { 0 };
    hand_bag got = { 0 };
    holdings_save(&held, aggregate); /* of nothing */
    cr_assert_eq(holdings_load(&held, it.engine, aggregate, &it.error), IVM_OK);
    hand_store_rows(ivm__aggregate_result(aggregate), &got);
    cr_assert(got.count == 1 && got.rows[0].cells[0] == 0 && got.rows[0].nulls[1]);
    hand_bag_free(&got);
    holdings_free(&held);
    aggregate->class->free(aggregate, &it.engine->memory);
    hand_close(&it);
}
