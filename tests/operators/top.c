/* top_k against sorted plain arrays: partitions, orders up and down, nulls first and last, ties by the whole row, copies, offsets and limits of
 * all sizes, expressions that fail, steps undone. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "join_case.h"
#include "reload.h"

#define COLUMNS 4u
#define KEYS_MAX 3u

static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DECIMAL(20, 0) };

typedef struct top_key {
    uint32_t column;
    bool computed; /* column 0 times 2^61, out of range from 4 on */
    bool descending, nulls_first;
} top_key;

typedef struct top_case {
    top_key partitions[KEYS_MAX], orders[KEYS_MAX];
    uint32_t partitions_count, orders_count;
    uint64_t limit, offset;
    hand it;
    feed *from;
    ivm__operator *top, *root;
    hand_bag rows; /* what the input holds */
} top_case;

static ivm__expression *value_make(hand *it, const top_key *key)
{
    ivm__expression *column = case_column(it, key->column, types[key->column]);
    return key->computed ? case_call(it, IVM__MULTIPLY, IVM_INT64, column, case_int64(it, 1ll << 61)) : column;
}

static ivm_status top_make(top_case *at)
{
    ivm__expression *partitions[KEYS_MAX];
    ivm__order_key orders[KEYS_MAX];
    for (uint32_t i = 0; i < at->partitions_count; i++) {
        partitions[i] = value_make(&at->it, &at->partitions[i]);
    }
    for (uint32_t i = 0; i < at->orders_count; i++) {
        orders[i] = (ivm__order_key){ value_make(&at->it, &at->orders[i]), at->orders[i].descending, at->orders[i].nulls_first };
    }
    ivm__top_spec spec = { .types = types,
                           .columns_count = COLUMNS,
                           .partitions = partitions,
                           .partitions_count = at->partitions_count,
                           .orders = orders,
                           .orders_count = at->orders_count,
                           .limit = at->limit,
                           .offset = at->offset };
    ivm_engine *engine = at->it.engine;
    return ivm__top_create(&engine->memory, &engine->texts, engine->seed, &spec, &at->top);
}

static void case_open(top_case *at, const ivm_allocator *allocator)
{
    hand_open(&at->it, allocator);
    ivm_engine *engine = at->it.engine;
    at->rows = (hand_bag){ .columns_count = COLUMNS };
    at->from = feed_add(&at->it, types, COLUMNS);
    cr_assert_eq(top_make(at), IVM_OK);
    hand_add(&at->it, at->top, &at->from->head, 0);
    cr_assert_eq(ivm__materialize_create(&engine->memory, &engine->texts, engine->seed, types, COLUMNS, &at->root), IVM_OK);
    hand_add(&at->it, at->root, at->top, 0);
}

static void case_close(top_case *at)
{
    hand_bag_free(&at->rows);
    hand_close(&at->it);
}

static void send(top_case *at, hand_row row, __int128 weight)
{
    row.weight = weight;
    hand_bag_add(&at->from->rows, &row);
}

/* A step of what was sent. */
static ivm_status case_step(top_case *at, bool initial, bool keep)
{
    ivm_status status = initial ? hand_fill(&at->it, keep) : feed_step(&at->it, keep);
    for (size_t n = 0; status == IVM_OK && keep && n < at->from->rows.count; n++) {
        hand_bag_add(&at->rows, &at->from->rows.rows[n]);
    }
    hand_bag_settle(&at->rows);
    feed_clear(at->from);
    return status;
}

/* ---- The oracle -------------------------------------------------------------------------------------------------------------------------- */

static int value_compare(const hand_row *a, const hand_row *b, uint32_t column)
{
    if (types[column] != IVM_STRING) {
        return (a->cells[column] > b->cells[column]) - (a->cells[column] < b->cells[column]);
    }
    char left[24], right[24];
    snprintf(left, sizeof left, "%lld", (long long)a->cells[column]);
    snprintf(right, sizeof right, "%lld", (long long)b->cells[column]);
    return strcmp(left, right);
}

static int key_compare(const hand_row *a, const hand_row *b, top_key key)
{
    if (a->nulls[key.column] || b->nulls[key.column]) {
        int order = a->nulls[key.column] - b->nulls[key.column];
        return key.nulls_first ? -order : order;
    }
    int order = value_compare(a, b, key.column);
    return key.descending ? -order : order;
}

static int keys_compare(const hand_row *a, const hand_row *b, const top_key *keys, uint32_t count)
{
    int order = 0;
    for (uint32_t i = 0; order == 0 && i < count; i++) {
        order = key_compare(a, b, keys[i]);
    }
    return order;
}

static const top_case *sorted_for;

static int row_compare(const void *left, const void *right)
{
    static const top_key whole[] = { { .column = 0 }, { .column = 1 }, { .column = 2 }, { .column = 3 } };
    int order = keys_compare(left, right, sorted_for->partitions, sorted_for->partitions_count);
    order = order ? order : keys_compare(left, right, sorted_for->orders, sorted_for->orders_count);
    return order ? order : keys_compare(left, right, whole, COLUMNS);
}

static void want_rows(const top_case *at, hand_bag *want)
{
    hand_bag rows;
    hand_bag_copy(&rows, &at->rows);
    sorted_for = at;
    if (rows.count) {
        qsort(rows.rows, rows.count, sizeof *rows.rows, row_compare);
    }
    __int128 skip = 0, left = 0;
    for (size_t i = 0; i < rows.count; i++) {
        hand_row row = rows.rows[i];
        if (i == 0 || keys_compare(&rows.rows[i - 1], &row, at->partitions, at->partitions_count)) {
            skip = at->offset;
            left = at->limit;
        }
        __int128 weight = row.weight > 0 ? row.weight : 0, passed = skip < weight ? skip : weight;
        row.weight = left < weight - passed ? left : weight - passed;
        skip -= passed;
        left -= row.weight;
        hand_bag_add(want, &row);
    }
    hand_bag_free(&rows);
}

static bool holds(top_case *at)
{
    hand_bag got = { 0 }, want = { .columns_count = COLUMNS };
    want_rows(at, &want);
    hand_store_rows(ivm__materialize_result(at->root), &got);
    bool equal = hand_bag_equal(&got, &want);
    const char *wrong = ivm__top_validate(at->top);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
    }
    hand_bag_free(&got);
    hand_bag_free(&want);
    return equal && !wrong;
}

/* Whether an expression is out of range for a row that is there once what was sent is. */
static bool fails(const top_case *at)
{
    bool computed = false, failing = false;
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        computed |= (i < at->partitions_count && at->partitions[i].computed) || (i < at->orders_count && at->orders[i].computed);
    }
    hand_bag after;
    hand_bag_copy(&after, &at->rows);
    for (size_t i = 0; i < at->from->rows.count; i++) {
        hand_bag_add(&after, &at->from->rows.rows[i]);
    }
    hand_bag_settle(&after);
    for (size_t i = 0; i < after.count; i++) {
        failing |= computed && !after.rows[i].nulls[0] && after.rows[i].cells[0] >= 4;
    }
    hand_bag_free(&after);
    return failing;
}

/* ---- Random steps ------------------------------------------------------------------------------------------------------------------------ */

static top_key draw_key(uint64_t *random)
{
    bool computed = hand_below(random, 5) == 0;
    return (top_key){ computed ? 0 : hand_below(random, COLUMNS), computed, hand_below(random, 2), hand_below(random, 2) };
}

static void draw_case(top_case *at, uint64_t *random)
{
    *at = (top_case){ .limit = hand_below(random, 5), .offset = hand_below(random, 2) ? hand_below(random, 4) : 0 };
    if (hand_below(random, 12) == 0) {
        at->limit = UINT64_MAX;
    }
    if (hand_below(random, 20) == 0) {
        at->offset = UINT64_MAX;
    }
    at->partitions_count = hand_below(random, KEYS_MAX);
    at->orders_count = hand_below(random, KEYS_MAX + 1);
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        at->partitions[i] = draw_key(random);
        at->partitions[i].descending = at->partitions[i].nulls_first = false;
        at->orders[i] = draw_key(random);
    }
}

static hand_row draw_row(uint64_t *random)
{
    hand_row row = { 0 };
    for (uint32_t c = 0; c < COLUMNS; c++) {
        row.nulls[c] = hand_below(random, 5) == 0;
        row.cells[c] = row.nulls[c] ? 0 : (int64_t)hand_below(random, c || hand_below(random, 40) == 0 ? 12 : 4) - 2 * (c != 2);
    }
    return row;
}

/* Rows that come, in parts that meet in the step, and rows of which some or all copies go; now and then rows that fail and are gone again. */
static void draw_step(top_case *at, uint64_t *random)
{
    uint32_t goers = at->rows.count > 12 ? 5 : 2;
    at->from->chunk_rows = 1 + hand_below(random, 5);
    for (size_t i = 0; i < at->rows.count; i++) {
        if (hand_below(random, 8) < goers) {
            send(at, at->rows.rows[i], hand_below(random, 2) ? -at->rows.rows[i].weight : -1);
        }
    }
    for (uint32_t n = hand_below(random, 6); n > 0; n--) {
        hand_row row = draw_row(random);
        int weight = (int)hand_below(random, 4), apart = (int)hand_below(random, 3);
        send(at, row, -apart);
        send(at, row, weight + apart);
    }
    if (hand_below(random, 6) == 0) {
        hand_row row = draw_row(random);
        row.nulls[0] = false;
        row.cells[0] = 9;
        send(at, row, 1);
        send(at, row, -1);
    }
}

Test(operators_top, random_steps_agree_with_sorted_arrays)
{
    uint32_t failures = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
        top_case at;
        draw_case(&at, &random);
        case_open(&at, NULL);
        for (uint32_t n = 0; n < 20; n++) {
            draw_step(&at, &random);
            bool failing = fails(&at);
            failures += failing;
            ivm_status status = case_step(&at, n == 0, hand_below(&random, 4) != 0);
            cr_assert_eq(status, failing ? IVM_OVERFLOW : IVM_OK, "seed %llu, step %u", (unsigned long long)seed, n);
            cr_assert(holds(&at), "seed %llu, step %u", (unsigned long long)seed, n);
        }
        for (size_t n = 0; n < at.rows.count; n++) {
            send(&at, at.rows.rows[n], -at.rows.rows[n].weight);
        }
        cr_assert_eq(case_step(&at, false, true), IVM_OK);
        cr_assert_eq(ivm__materialize_result(at.root)->rows_live, 0, "seed %llu: what came and went", (unsigned long long)seed);
        cr_assert(holds(&at), "seed %llu: nothing", (unsigned long long)seed);
        case_close(&at);
    }
    cr_assert_gt(failures, 100);
}

/* ---- By hand ------------------------------------------------------------------------------------------------------------------------------ */

/* By column 0 partitions, by column 1 ascending. */
static void open_plain(top_case *at, uint64_t limit, uint64_t offset, const ivm_allocator *allocator)
{
    *at = (top_case){ .partitions = { { .column = 0 } },
                      .partitions_count = 1,
                      .orders = { { .column = 1 } },
                      .orders_count = 1,
                      .limit = limit,
                      .offset = offset };
    case_open(at, allocator);
}

Test(operators_top, copies_straddle_offset_and_limit)
{
    top_case at;
    open_plain(&at, 4, 2, NULL);
    send(&at, HAND_ROW(1, 1, 0, 0), 5);
    send(&at, HAND_ROW(1, 2, 0, 0), 5);
    cr_assert_eq(case_step(&at, true, true), IVM_OK);
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(at.root), &got);
    hand_bag_settle(&got);
    cr_assert(got.count == 2 && got.rows[0].weight == 3 && got.rows[1].weight == 1);
    hand_bag_free(&got);
    send(&at, HAND_ROW(1, 1, 0, 0), -4);
    cr_assert_eq(case_step(&at, false, true), IVM_OK);
    cr_assert(holds(&at));
    case_close(&at);
}

static uint32_t changes_last(const top_case *at)
{
    ivm__row_id rows[8];
    ivm__weight weights[8];
    uint32_t next = 0;
    return ivm__store_changes_last(ivm__materialize_result(at->root), &next, 8, rows, weights);
}

Test(operators_top, a_change_behind_the_limit_sends_nothing)
{
    top_case at;
    open_plain(&at, 3, 1, NULL);
    for (int64_t n = 0; n < 2000; n++) {
        send(&at, HAND_ROW(n % 2, n / 2, 0, 0), 1);
    }
    cr_assert_eq(case_step(&at, true, true), IVM_OK);
    send(&at, HAND_ROW(0, 500, 1, 1), 1);
    send(&at, HAND_ROW(1, 900, 0, 0), -1);
    cr_assert_eq(case_step(&at, false, true), IVM_OK);
    cr_assert_eq(changes_last(&at), 0);
    send(&at, HAND_ROW(0, 0, 0, 0), -1);
    cr_assert_eq(case_step(&at, false, true), IVM_OK);
    cr_assert_eq(changes_last(&at), 2, "one row moves out of the window, one into it");
    send(&at, HAND_ROW(1, 1, 0, 0), -1);
    send(&at, HAND_ROW(1, 1, 9, 9), 1);
    cr_assert_eq(case_step(&at, false, true), IVM_OK);
    cr_assert_eq(changes_last(&at), 2, "one row for another at its place");
    cr_assert(holds(&at));
    case_close(&at);
}

Test(operators_top, more_rows_and_partitions_than_a_chunk)
{
    for (uint64_t limit = 1; limit <= 3000; limit += 2999) {
        top_case at;
        open_plain(&at, limit, 0, NULL);
        for (int sign = 1; sign >= -1; sign -= 2) {
            for (int64_t n = 0; n < 5000; n++) {
                send(&at, HAND_ROW(n % 1700, n * 7919 % 5000, 0, n % 3), sign);
            }
            cr_assert_eq(case_step(&at, sign > 0, true), IVM_OK);
            cr_assert(holds(&at), "limit %llu", (unsigned long long)limit);
        }
        case_close(&at);
    }
}

/* A constant, and an untyped null, are values as any other. */
Test(operators_top, an_order_may_be_a_constant_or_a_null)
{
    for (uint32_t null = 0; null < 2; null++) {
        top_case at = { .limit = 2, .orders_count = 0 };
        hand_open(&at.it, NULL);
        ivm_engine *engine = at.it.engine;
        at.rows = (hand_bag){ .columns_count = COLUMNS };
        at.from = feed_add(&at.it, types, COLUMNS);
        ivm__expression *partition = ivm__expression_literal(&engine->memory, &engine->texts, null ? 0 : IVM_INT64, null, null ? 0 : 7);
        ivm__order_key order = { ivm__expression_literal(&engine->memory, &engine->texts, null ? 0 : IVM_INT64, null, 0), true, false };
        ivm__top_spec spec = { .types = types,
                               .columns_count = COLUMNS,
                               .partitions = &partition,
                               .partitions_count = 1,
                               .orders = &order,
                               .orders_count = 1,
                               .limit = 2 };
        cr_assert_eq(ivm__top_create(&engine->memory, &engine->texts, 3, &spec, &at.top), IVM_OK);
        hand_add(&at.it, at.top, &at.from->head, 0);
        cr_assert_eq(ivm__materialize_create(&engine->memory, &engine->texts, 3, types, COLUMNS, &at.root), IVM_OK);
        hand_add(&at.it, at.root, at.top, 0);
        for (int64_t n = 0; n < 10; n++) {
            send(&at, HAND_ROW(9 - n, 0, 0, 0), 1);
        }
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        cr_assert(holds(&at));
        case_close(&at);
    }
}

/* A promise about a foreign key that was not kept can leave a weight below 0. */
Test(operators_top, a_weight_below_zero_is_an_absent_row)
{
    top_case at;
    open_plain(&at, 2, 1, NULL);
    for (int64_t n = 0; n < 6; n++) {
        send(&at, HAND_ROW(1, n, 0, 0), n % 2 ? 2 : -1);
    }
    cr_assert_eq(case_step(&at, true, true), IVM_OK);
    cr_assert(holds(&at));
    for (int64_t n = 0; n < 6; n++) {
        send(&at, HAND_ROW(1, n, 0, 0), n % 2 ? -3 : 2);
    }
    cr_assert_eq(case_step(&at, false, true), IVM_OK);
    cr_assert(holds(&at));
    case_close(&at);
}

Test(operators_top, a_net_weight_past_int64_is_an_overflow)
{
    top_case at;
    open_plain(&at, UINT64_MAX, UINT64_MAX / 2, NULL);
    send(&at, HAND_ROW(1, 1, 1, 1), INT64_MAX);
    send(&at, HAND_ROW(1, 2, 1, 1), INT64_MAX);
    cr_assert_eq(case_step(&at, true, true), IVM_OK);
    cr_assert(holds(&at));
    send(&at, HAND_ROW(1, 1, 1, 1), 1);
    cr_assert_eq(case_step(&at, false, true), IVM_OVERFLOW);
    cr_assert_str_eq(at.it.error.message, "view v: the weight of a row is out of range");
    cr_assert(holds(&at));
    case_close(&at);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

Test(operators_top, running_out_of_memory_changes_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        top_case at = { .partitions = { { .column = 2 } },
                        .partitions_count = 1,
                        .orders = { { 0, true, true, false } },
                        .orders_count = 1,
                        .limit = 3,
                        .offset = 1 };
        case_open(&at, &trial.functions);
        for (int64_t i = 0; i < 20; i++) {
            send(&at, HAND_ROW(i % 4, i, i % 3, 0), 1 + i % 2);
        }
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        send(&at, HAND_ROW(9, 3, 0, 0), 1); /* fails, and goes a chunk later */
        for (int64_t i = 0; i < 1300; i++) {
            send(&at, HAND_ROW(i % 4, i, i % 1200, 0), 1);
        }
        send(&at, HAND_ROW(3, 3, 0, 0), -2);
        send(&at, HAND_ROW(9, 3, 0, 0), -1);
        hand_trial_arm(&trial);
        ivm_status status = case_step(&at, false, true);
        hand_trial_judge(&trial, status, IVM_OK);
        cr_assert(holds(&at), "allocation %llu", (unsigned long long)trial.n);
        send(&at, HAND_ROW(3, 1, 1, 1), 1);
        cr_assert_eq(case_step(&at, false, true), IVM_OK);
        cr_assert(holds(&at), "allocation %llu: the step after", (unsigned long long)trial.n);
        case_close(&at);
    }
    cr_assert_gt(trial.failures, 20);
}

Test(operators_top, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm_engine *engine = it.engine;
        const top_key key = { 0, true, false, false };
        ivm__expression *partition = value_make(&it, &key);
        ivm__order_key order = { value_make(&it, &key), false, false };
        ivm__top_spec spec = { .types = types,
                               .columns_count = COLUMNS,
                               .partitions = &partition,
                               .partitions_count = 1,
                               .orders = &order,
                               .orders_count = 1,
                               .limit = 1 };
        ivm__operator *made;
        hand_trial_arm(&trial);
        ivm_status status = ivm__top_create(&engine->memory, &engine->texts, 7, &spec, &made);
        hand_trial_judge_made(&trial, &it, status, made);
    }
    cr_assert_gt(trial.failures, 4);
}

/* ---- Saved and loaded -------------------------------------------------------------------------------------------------------------------- */

static void reload_open(void *at, uint64_t seed, const ivm_allocator *allocator)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    draw_case(at, &random);
    case_open(at, allocator);
}

static void reload_close(void *at)
{
    case_close(at);
}

static hand *reload_hand(void *at)
{
    return &((top_case *)at)->it;
}

static void reload_draw(void *at, uint64_t *random)
{
    draw_step(at, random);
}

static ivm_status reload_step(void *at, bool initial, bool keep)
{
    return case_step(at, initial, keep);
}

static bool reload_holds(void *at)
{
    return holds(at);
}

static hand_bag *reload_rows(void *at, uint32_t input)
{
    (void)input;
    return &((top_case *)at)->rows;
}

static const ivm__store *reload_result(void *at)
{
    return ivm__materialize_result(((top_case *)at)->root);
}

static const reload reloads = { sizeof(top_case), reload_open,  reload_close, reload_hand,  reload_draw,
                                reload_step,      reload_holds, reload_rows,  reload_result };

Test(operators_top, saved_and_loaded_it_goes_on)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        reload_go_on(&reloads, seed);
    }
}

Test(operators_top, spoilt_bytes_break_nothing)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        loaded += reload_spoilt(&reloads, seed, 50);
    }
    cr_assert_gt(loaded, 300);
}

Test(operators_top, running_out_of_memory_in_loading_leaves_nothing)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        reload_out_of_memory(&reloads, seed);
    }
}
