/* Aggregates against a model: values and changes of every step, whatever the order of its chunks; groups that come and go; steps that fail or
 * are undone leave everything as it was. */
#include <criterion/criterion.h>

#include "aggregate_case.h"
#include "aggregate_state.h"
#include "join_case.h"

static const ivm__aggregate *inside(const agg_case *it)
{
    return (const ivm__aggregate *)it->operator;
}

static void assert_sound(const agg_case *it)
{
    const ivm__accumulators *accumulators = &inside(it)->accumulators;
    for (uint32_t i = 0; i < accumulators->count; i++) {
        const char *reason = accumulators->list[i].ordered.memory ? ivm__ordered_validate(&accumulators->list[i].ordered) : NULL;
        cr_assert_null(reason, "%s", reason);
    }
}

/* The state of every group that is there, byte by byte but for the places of float sums, whose numbers count. */
static uint8_t *states_of(agg_case *it, size_t *size)
{
    const ivm__aggregate *self = inside(it);
    uint32_t groups = it->groups_count ? self->keys.rows_end : 1;
    size_t capacity = groups * (size_t)16384;
    uint8_t *bytes = calloc(1, capacity);
    *size = 0;
    for (uint32_t group = 0; group < groups; group++) {
        if (it->groups_count && ivm__store_weight(&self->keys, group, IVM__READ_CUR) == 0) {
            continue;
        }
        uint8_t *state = ivm__group_state(&self->accumulators, group);
        memcpy(bytes + *size, state, self->accumulators.stride);
        for (uint32_t i = 0; i < self->accumulators.count; i++) {
            const ivm__accumulator *accumulator = &self->accumulators.list[i];
            for (uint32_t f = 0; f < accumulator->floats_count; f++) {
                ivm__exact_sum *sum;
                ivm__big number;
                uint32_t offset = accumulator->tail_offset + f * (uint32_t)sizeof sum;
                memcpy(&sum, state + offset, sizeof sum);
                ivm__exact_sum_number(sum, f == 1, &number);
                uint64_t mixed = ivm__float_word(f == 0 ? ivm__exact_sum_value(sum) : 0) + number.negative;
                for (uint32_t l = 0; l < number.count; l++) {
                    int64_t exponent = number.exponent + 64 * (int64_t)l;
                    mixed = number.limb[l] ? (mixed ^ number.limb[l]) * 0x9e3779b97f4a7c15ull + (uint64_t)exponent : mixed;
                }
                memcpy(bytes + *size + offset, &mixed, sizeof mixed);
            }
        }
        *size += self->accumulators.stride;
        cr_assert_lt(*size, capacity);
    }
    return bytes;
}

static uint64_t entries_count(const agg_case *it)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < inside(it)->accumulators.count; i++) {
        count += inside(it)->accumulators.list[i].ordered.entries_count;
    }
    return count;
}

static void start_opened(agg_case *it, agg_outputs *before)
{
    uint64_t random = 1;
    *before = (agg_outputs){ 0 };
    cr_assert_eq(agg_step(it, &(agg_rows){ 0 }, true, true, &random), IVM_OK);
    agg_assert_step(it, before, "at first", 0);
}

static void start(agg_case *it, uint32_t groups_count, bool having, agg_outputs *before)
{
    agg_open(it, groups_count, having);
    start_opened(it, before);
}

static void start_negative(agg_case *it, uint32_t groups_count, bool having, agg_outputs *before)
{
    agg_open_negative(it, groups_count, having);
    start_opened(it, before);
}

static void stop(agg_case *it, agg_outputs *before)
{
    agg_outputs_free(before);
    agg_close(it);
}

/* ---- Random steps --------------------------------------------------------------------------------------------------------------------- */

static void run_random(uint64_t seed, uint32_t groups_count, bool having, bool negative)
{
    agg_case it;
    agg_outputs before;
    uint64_t random = seed * 77 + 1;
    (negative ? start_negative : start)(&it, groups_count, having, &before);
    for (uint32_t step = 0; step < 25; step++) {
        agg_rows changes;
        agg_changes(&it, hand_below(&random, 12), hand_below(&random, 2), &changes, &random);
        if (hand_below(&random, 4) == 0) {
            size_t size, size_after;
            uint64_t entries = entries_count(&it);
            uint8_t *states = states_of(&it, &size);
            cr_assert_eq(agg_step(&it, &changes, false, false, &random), IVM_OK);
            uint8_t *after = states_of(&it, &size_after);
            cr_assert(size == size_after && memcmp(states, after, size) == 0, "undone, seed %lu", (unsigned long)seed);
            cr_assert_eq(entries_count(&it), entries);
            it.emitted.count = 0;
            agg_assert_step(&it, &before, "undone", seed);
            free(states);
            free(after);
        }
        cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
        agg_assert_step(&it, &before, "of a random step", seed);
        assert_sound(&it);
        agg_rows_free(&changes);
    }
    stop(&it, &before);
}

Test(operators_aggregate, random_steps_by_two_groups)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        run_random(seed, 2, false, false);
    }
}

Test(operators_aggregate, random_steps_by_one_group)
{
    for (uint64_t seed = 1; seed <= 15; seed++) {
        run_random(seed, 1, seed % 2, false);
    }
}

Test(operators_aggregate, random_steps_without_groups)
{
    for (uint64_t seed = 1; seed <= 15; seed++) {
        run_random(seed, 0, seed % 2, false);
    }
}

Test(operators_aggregate, random_steps_with_having)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        run_random(seed, 2, true, false);
    }
}

Test(operators_aggregate, random_steps_with_negative_weights)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run_random(seed, seed % 3, seed % 4 == 0, true);
    }
}

/* The same rows in another order and other chunks give the same. */
Test(operators_aggregate, order_and_chunks_do_not_matter)
{
    for (uint64_t seed = 1; seed <= 15; seed++) {
        agg_case one, two;
        agg_outputs before_one, before_two;
        uint64_t random = seed;
        (seed % 4 ? start : start_negative)(&one, seed % 3, false, &before_one);
        (seed % 4 ? start : start_negative)(&two, seed % 3, false, &before_two);
        for (uint32_t step = 0; step < 8; step++) {
            agg_rows changes;
            agg_changes(&one, 40, true, &changes, &random);
            cr_assert_eq(agg_step(&one, &changes, false, true, &random), IVM_OK);
            agg_shuffle(&changes, &random);
            cr_assert_eq(agg_step(&two, &changes, false, true, &random), IVM_OK);
            agg_outputs got, want;
            agg_result(&one, &want);
            agg_result(&two, &got);
            cr_assert(agg_equal(&got, &want), "rows, seed %lu", (unsigned long)seed);
            cr_assert(agg_equal(&two.emitted, &one.emitted), "changes, seed %lu", (unsigned long)seed);
            agg_outputs_free(&got);
            agg_outputs_free(&want);
            agg_rows_free(&changes);
        }
        stop(&one, &before_one);
        stop(&two, &before_two);
    }
}

/* ---- Groups that come and go ------------------------------------------------------------------------------------------------------------- */

/* All rows, negated. */
static agg_rows inverse(const agg_rows *rows)
{
    agg_rows result = { 0 };
    for (size_t i = 0; i < rows->count; i++) {
        agg_row row = rows->row[i];
        row.weight = -row.weight;
        agg_rows_add(&result, &row);
    }
    return result;
}

Test(operators_aggregate, what_comes_and_goes_leaves_nothing)
{
    for (uint32_t kind = 0; kind < 6; kind++) {
        agg_case it;
        agg_outputs before;
        uint32_t groups_count = kind % 3;
        uint64_t random = 5, held = 0;
        (kind < 3 ? start : start_negative)(&it, groups_count, false, &before);
        for (uint32_t round = 0; round < 6; round++) {
            agg_rows changes = { 0 };
            random = 5; /* the same steps every time */
            for (uint32_t i = 0; i < 300; i++) {
                agg_row row = agg_draw(&random);
                row.weight = it.negative && i % 3 ? -row.weight : row.weight;
                agg_rows_add(&changes, &row);
            }
            cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
            agg_assert_step(&it, &before, "of many rows", round);
            agg_rows_free(&changes);
            changes = inverse(&it.live);
            cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
            agg_rows_free(&changes);
            agg_assert_step(&it, &before, "of nothing", round);
            cr_assert_eq(entries_count(&it), 0u);
            cr_assert_eq(inside(&it)->keys.rows_live, 0u);
            cr_assert_eq(ivm__aggregate_result(it.operator)->rows_live, groups_count ? 0u : 1u);
            cr_assert_eq(agg_step(&it, &(agg_rows){ 0 }, false, true, &random), IVM_OK); /* what the last step took out is given back */
            cr_assert_eq(it.emitted.count, 0u);
            cr_assert_eq(it.it.engine->texts.count, 0u, "no text is held");
            if (round == 1) {
                held = atomic_load(&it.it.engine->memory.bytes_held);
            }
            cr_assert(round < 2 || atomic_load(&it.it.engine->memory.bytes_held) == held, "round %u holds %ld more", round,
                      (long)(atomic_load(&it.it.engine->memory.bytes_held) - held));
        }
        stop(&it, &before);
    }
}

Test(operators_aggregate, ids_of_groups_are_given_again)
{
    agg_case it;
    agg_outputs before;
    uint64_t random = 9;
    start(&it, 1, false, &before);
    for (uint32_t round = 0; round < 200; round++) {
        agg_row row = agg_draw(&random);
        row.cells[0] = round;
        row.nulls[0] = false;
        agg_rows changes = inverse(&it.live);
        agg_rows_add(&changes, &row);
        cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
        agg_assert_step(&it, &before, "of another group", round);
        agg_rows_free(&changes);
    }
    cr_assert_leq(inside(&it)->keys.rows_end, 4u);
    stop(&it, &before);
}

/* More groups touched than a chunk has rows: published in several. */
Test(operators_aggregate, thousands_of_groups_in_one_step)
{
    agg_case it;
    agg_outputs before;
    uint64_t random = 3;
    agg_rows changes = { 0 };
    start(&it, 1, true, &before);
    for (uint32_t i = 0; i < 2500; i++) {
        agg_row row = agg_draw(&random);
        row.cells[0] = i;
        row.nulls[0] = false;
        row.weight = 1 + i % 2; /* every other one does not pass `having` */
        agg_rows_add(&changes, &row);
    }
    cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
    agg_assert_step(&it, &before, "of many groups", 0);
    cr_assert_eq(before.count, 1250u);
    cr_assert_leq(it.emitted_chunks, 3u);
    for (size_t i = 0; i < changes.count; i++) {
        changes.row[i].weight = i % 3 == 0 ? 1 : i % 3 == 1 ? -1 : -changes.row[i].weight;
    }
    cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
    agg_assert_step(&it, &before, "of many groups that change", 0);
    agg_rows_free(&changes);
    stop(&it, &before);
}

/* ---- What is emitted ------------------------------------------------------------------------------------------------------------------------ */

Test(operators_aggregate, nothing_is_a_row_of_nulls_without_groups_and_none_with)
{
    agg_case it;
    agg_outputs before;
    start(&it, 0, false, &before);
    cr_assert_eq(before.count, 1u);
    cr_assert_eq(before.row[0].cells[0], 0);
    cr_assert_not(before.row[0].nulls[0], "a count is 0");
    cr_assert(before.row[0].nulls[2], "a sum of nothing is null");
    stop(&it, &before);
    start(&it, 1, false, &before);
    cr_assert_eq(before.count, 0u);
    stop(&it, &before);
    start(&it, 0, true, &before);
    cr_assert_eq(before.count, 0u, "the one group does not pass `having`");
    stop(&it, &before);
}

Test(operators_aggregate, a_group_whose_values_stay_changes_nothing)
{
    agg_case it;
    agg_outputs before;
    uint64_t random = 3;
    agg_rows changes = { 0 };
    agg_row row = { .cells = { 1, 1, 2, 0, 5, 3, 1, 7 }, .weight = 2 },
            null = { .nulls = { false, false, true, true, true, true, true, true } };
    start(&it, 2, false, &before);
    agg_rows_add(&changes, &row);
    cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
    agg_assert_step(&it, &before, "of one row", 0);
    /* The same row leaves and comes, another group's comes and goes. */
    row.weight = -2;
    agg_rows_add(&changes, &row);
    null.weight = 3;
    agg_rows_add(&changes, &null);
    null.weight = -3;
    agg_rows_add(&changes, &null);
    cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
    cr_assert_eq(it.emitted_chunks, 0u);
    agg_assert_step(&it, &before, "of nothing in the end", 0);
    cr_assert_eq(ivm__aggregate_result(it.operator)->last_count, 0u, "the group's row was not even touched");
    agg_rows_free(&changes);
    stop(&it, &before);
}

/* Groups without an aggregate: each row once, however often it is there; one of the groups is null for every row. */
Test(operators_aggregate, groups_alone_are_distinct_rows)
{
    hand it;
    ivm__operator *scan, *aggregate;
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    hand_open(&it, NULL);
    ivm_table *table = hand_table(&it, "t", types, "??", NULL);
    ivm__memory *memory = &it.engine->memory;
    cr_assert_eq(ivm__scan_create(memory, table, table->heading, &scan), IVM_OK);
    hand_add(&it, scan, NULL, 0);
    ivm__expression *groups[] = { case_column(&it, 1, IVM_INT64), ivm__expression_literal(memory, &it.engine->texts, 0, true, 0) };
    cr_assert_eq(ivm__aggregate_create(memory, &it.engine->texts, 1, groups, 2, NULL, 0, NULL, &aggregate), IVM_OK);
    hand_add(&it, aggregate, scan, 0);
    for (int side = 0; side < 2; side++) {
        ivm_batch *batch = hand_batch(&it);
        hand_bag got = { 0 }, want = { .columns_count = 2 };
        for (int64_t i = 0; i < 30; i++) {
            hand_change(batch, table, HAND_ROW(i, i % 5 ? i % 3 : HAND_NULL), side ? -1 - (i % 3 == 1) : 2);
        }
        cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
        for (int64_t value = 0; value < 4; value++) {
            hand_row row = HAND_ROW(value < 3 ? value : HAND_NULL, HAND_NULL);
            row.weight = side == 0 || value != 1; /* those of 1 leave twice */
            hand_bag_add(&want, &row);
        }
        hand_store_rows(ivm__aggregate_result(aggregate), &got);
        cr_assert(hand_bag_equal(&got, &want), "side %d", side);
        hand_bag_free(&got);
        hand_bag_free(&want);
        ivm_batch_free(batch);
    }
    hand_close(&it);
}

/* ---- Failures ------------------------------------------------------------------------------------------------------------------------------- */

/* sum(c1 * 2^62) and count(*) by c0 + 2^62, having count(*) * 2^61 > 0, over t(c0, c1). */
typedef struct fallible {
    hand it;
    ivm_table *table;
    ivm__operator *aggregate;
} fallible;

static ivm__expression *times(hand *it, uint32_t column, uint32_t power)
{
    return case_call(it, IVM__MULTIPLY, IVM_INT64, case_column(it, column, IVM_INT64), case_int64(it, 1ll << power));
}

static void fallible_open(fallible *f)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    ivm__operator *scan;
    hand_open(&f->it, NULL);
    f->table = hand_table(&f->it, "t", types, "??", NULL);
    cr_assert_eq(ivm__scan_create(&f->it.engine->memory, f->table, f->table->heading, &scan), IVM_OK);
    hand_add(&f->it, scan, NULL, 0);
    ivm__expression *group = case_call(&f->it, IVM__ADD, IVM_INT64, case_column(&f->it, 0, IVM_INT64), case_int64(&f->it, 1ll << 62));
    ivm__aggregate_spec specs[] = { { IVM__SUM, times(&f->it, 1, 62), NULL, IVM_INT64, "total" },
                                    { IVM__COUNT, NULL, NULL, IVM_INT64, "n" } };
    ivm__expression *having = case_call(&f->it, IVM__GREATER, IVM_BOOL, times(&f->it, 2, 61), case_int64(&f->it, 0));
    cr_assert_eq(ivm__aggregate_create(&f->it.engine->memory, &f->it.engine->texts, 1, &group, 1, specs, 2, having, &f->aggregate), IVM_OK);
    hand_add(&f->it, f->aggregate, scan, 0);
    f->it.program.result = ivm__aggregate_result(f->aggregate);
}

static ivm_status fallible_step(fallible *f, const hand_row *rows, uint32_t count)
{
    ivm_batch *batch = hand_batch(&f->it);
    for (uint32_t i = 0; i < count; i++) {
        hand_change(batch, f->table, rows[i], (int64_t)rows[i].weight);
    }
    f->it.error = (ivm_error)IVM_ERROR_INIT;
    ivm_status status = hand_step(&f->it, batch, true);
    ivm_batch_free(batch);
    return status;
}

static hand_row weighted(int64_t a, int64_t b, int64_t weight)
{
    hand_row row = HAND_ROW(a, b);
    row.weight = weight;
    return row;
}

Test(operators_aggregate, what_cannot_be_computed_rejects_the_step)
{
    fallible f;
    fallible_open(&f);
    const hand_row good = weighted(1, 1, 1);
    cr_assert_eq(fallible_step(&f, &good, 1), IVM_OK);
    cr_assert_eq(ivm__aggregate_result(f.aggregate)->rows_live, 1u);
    const struct {
        hand_row rows[2];
        uint32_t count;
        const char *part;
    } bad[] = {
        { { weighted(1, 2, 1) }, 1, "an aggregate" },                          /* the argument */
        { { weighted(1ll << 62, 0, 1) }, 1, "an aggregate" },                  /* the group */
        { { weighted(1, 1, 1), weighted(1, 0, 1) }, 2, "aggregate total of" }, /* the sum */
        { { weighted(1, 0, 3) }, 1, "having" },                                /* 4 * 2^61 */
        { { weighted(7, 0, INT64_MAX), weighted(7, -1, INT64_MAX) }, 2, "aggregate" },
    };
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(fallible_step(&f, bad[i].rows, bad[i].count), IVM_OVERFLOW, "case %u", i);
        cr_assert_eq(f.it.error.status, IVM_OVERFLOW);
        cr_assert_not_null(strstr(f.it.error.message, bad[i].part), "%s", f.it.error.message);
        cr_assert_not_null(strstr(f.it.error.message, "view v"));
        hand_bag got = { 0 }, want = { .columns_count = 3 };
        hand_row row = HAND_ROW((1ll << 62) + 1, 1ll << 62, 1);
        row.weight = 1;
        hand_bag_add(&want, &row);
        hand_store_rows(ivm__aggregate_result(f.aggregate), &got);
        cr_assert(hand_bag_equal(&got, &want), "case %u", i);
        hand_bag_free(&got);
        hand_bag_free(&want);
    }
    hand_close(&f.it);
}

/* A group that would be out of range on the way but is not in the end. */
Test(operators_aggregate, only_the_end_of_a_step_is_judged)
{
    fallible f;
    fallible_open(&f);
    const hand_row rows[] = { weighted(1, 1, 1), weighted(2, 1, 1), weighted(2, -2, 1), weighted(2, 1, 1) };
    cr_assert_eq(fallible_step(&f, rows, 4), IVM_OK, "%s", f.it.error.message);
    cr_assert_eq(ivm__aggregate_result(f.aggregate)->rows_live, 2u);
    const hand_row gone[] = { weighted(2, 1, -2), weighted(2, -2, -1), weighted(1, 1, -1) };
    cr_assert_eq(fallible_step(&f, gone, 3), IVM_OK);
    cr_assert_eq(ivm__aggregate_result(f.aggregate)->rows_live, 0u);
    hand_close(&f.it);
}

/* A pair of rows that fails and cancels: what terms do with rows that never stand side by side. */
static ivm_status give_pair(agg_case *it, ivm__step *step, ivm__weight second)
{
    static uint64_t g[] = { 1, 1 }, v[] = { 4, 4 };
    ivm__weight weights[] = { 1, second };
    ivm__vector columns[] = { { IVM_INT64, g, NULL }, { IVM_INT64, v, NULL } };
    ivm__chunk chunk = { 2, 2, columns, weights };
    return it->operator->class->consume(it->operator, step, 0, &chunk);
}

Test(operators_aggregate, failures_that_cancel_are_none)
{
    for (int cancels = 0; cancels <= 1; cancels++) {
        agg_case it = { 0 };
        hand_open(&it.it, NULL);
        ivm__expression *group = case_column(&it.it, 0, IVM_INT64);
        ivm__aggregate_spec spec = { IVM__MAX, times(&it.it, 1, 62), NULL, IVM_INT64, "most" };
        ivm__memory *memory = &it.it.engine->memory;
        cr_assert_eq(ivm__aggregate_create(memory, &it.it.engine->texts, 1, &group, 1, &spec, 1, NULL, &it.operator), IVM_OK);
        it.operator->view = "v";
        ivm__step step;
        ivm__step_init(&step, it.it.engine, &it.it.stats, &it.it.error);
        cr_assert_eq(give_pair(&it, &step, cancels ? -1 : 1), IVM_OK);
        cr_assert_eq(it.operator->class->finish(it.operator, & step), cancels ? IVM_OK : IVM_OVERFLOW);
        (cancels ? it.operator->class->commit : it.operator->class->undo)(it.operator);
        cr_assert_eq(ivm__aggregate_result(it.operator)->rows_live, 0u);
        ivm__engine_settle(it.it.engine);
        it.operator->class->free(it.operator, memory);
        hand_close(&it.it);
    }
}

/* ---- Memory ----------------------------------------------------------------------------------------------------------------------------------- */

Test(operators_aggregate, out_of_memory_anywhere_undoes_the_step)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        agg_case it;
        agg_outputs before;
        agg_rows changes = { 0 };
        uint32_t groups_count = kind % 2 * 2;
        uint64_t random = 11, n = 1;
        (kind < 2 ? start : start_negative)(&it, groups_count, true, &before);
        agg_changes(&it, 40, true, &changes, &random);
        cr_assert_eq(agg_step(&it, &changes, false, true, &random), IVM_OK);
        agg_assert_step(&it, &before, "before", groups_count);
        agg_rows_free(&changes);
        agg_changes(&it, 200, true, &changes, &random);
        for (bool done = false; !done; n++) {
            size_t size, size_after;
            uint8_t *states = states_of(&it, &size);
            uint64_t entries = entries_count(&it), order = 5;
            test_allocator_arm(&it.allocator, n);
            ivm_status status = agg_step(&it, &changes, false, true, &order);
            done = status == IVM_OK; /* past the last point of return no memory is needed, but some may be given back */
            cr_assert(test_allocator_disarm(&it.allocator) ? done || status == IVM_OUT_OF_MEMORY : done, "call %lu: %s", (unsigned long)n,
                      ivm_status_name(status));
            if (!done) {
                uint8_t *after = states_of(&it, &size_after);
                cr_assert(size == size_after && memcmp(states, after, size) == 0, "call %lu", (unsigned long)n);
                cr_assert_eq(entries_count(&it), entries);
                it.emitted.count = 0;
                free(after);
            }
            agg_assert_step(&it, &before, "out of memory", n);
            assert_sound(&it);
            free(states);
        }
        cr_assert_gt(n, 20u);
        agg_rows_free(&changes);
        stop(&it, &before);
    }
}

Test(operators_aggregate, out_of_memory_in_the_making_leaves_nothing)
{
    test_allocator allocator;
    test_allocator_init(&allocator);
    ivm_allocator functions = test_allocator_functions(&allocator);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        hand it;
        hand_open(&it, &functions);
        ivm__expression *groups[] = { case_column(&it, 0, IVM_INT64), case_column(&it, 1, IVM_STRING) };
        ivm__aggregate_spec specs[] = { { IVM__SUM, times(&it, 2, 1), NULL, IVM_INT64, "total" },
                                        { IVM__MIN, case_column(&it, 1, IVM_STRING), NULL, IVM_STRING, "least" },
                                        { IVM__COUNT, NULL, NULL, IVM_INT64, "n" } };
        specs[2].where = case_call(&it, IVM__LESS, IVM_BOOL, case_column(&it, 0, IVM_INT64), case_int64(&it, 3));
        ivm__expression *having = case_call(&it, IVM__LESS, IVM_BOOL, case_column(&it, 4, IVM_INT64), case_int64(&it, 3));
        ivm__operator *made = NULL;
        ivm__memory *memory = &it.engine->memory;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm__aggregate_create(memory, &it.engine->texts, 1, groups, 2, specs, 3, having, &made);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        if (done) {
            cr_assert_eq(made->columns_count, 5u);
            cr_assert_eq(made->types[3], (ivm_type)IVM_STRING);
            made->class->free(made, memory);
        }
        hand_close(&it);
        cr_assert(test_allocator_is_clean(&allocator), "call %lu leaves something", (unsigned long)n);
    }
    cr_assert_gt(n, 8u);
}
