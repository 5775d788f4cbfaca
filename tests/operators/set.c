/* distinct, union, except and intersect against folds over plain arrays: copies counted or not, two inputs to four, rows of several inputs that
 * change at once, steps undone. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "reload.h"

#define COLUMNS 3u
#define INPUTS_MAX 4u

static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 0) };
static const ivm__set_kind kinds[] = { IVM__SET_DISTINCT, IVM__SET_UNION,         IVM__SET_EXCEPT_ALL,
                                       IVM__SET_EXCEPT,   IVM__SET_INTERSECT_ALL, IVM__SET_INTERSECT };
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct set_case {
    ivm__set_kind kind;
    uint32_t inputs_count;
    hand it;
    feed *feeds[INPUTS_MAX];
    ivm__operator *set, *root;
    hand_bag rows[INPUTS_MAX]; /* what the inputs hold */
} set_case;

static void case_open(set_case *at, ivm__set_kind kind, uint32_t inputs_count, const ivm_allocator *allocator)
{
    *at = (set_case){ .kind = kind, .inputs_count = inputs_count };
    hand_open(&at->it, allocator);
    ivm_engine *engine = at->it.engine;
    for (uint32_t i = 0; i < inputs_count; i++) {
        at->feeds[i] = feed_add(&at->it, types, COLUMNS);
        at->rows[i] = (hand_bag){ .columns_count = COLUMNS };
    }
    cr_assert_eq(ivm__set_create(&engine->memory, &engine->texts, engine->seed, kind, types, COLUMNS, inputs_count, &at->set), IVM_OK);
    hand_add(&at->it, at->set, NULL, 0);
    for (uint32_t i = 0; i < inputs_count; i++) {
        feed_wire(at->feeds[i], at->set, i);
    }
    cr_assert_eq(ivm__materialize_create(&engine->memory, &engine->texts, engine->seed, types, COLUMNS, &at->root), IVM_OK);
    hand_add(&at->it, at->root, at->set, 0);
}

static void case_close(set_case *at)
{
    for (uint32_t i = 0; i < at->inputs_count; i++) {
        hand_bag_free(&at->rows[i]);
    }
    hand_close(&at->it);
}

static void send(set_case *at, uint32_t input, hand_row row, __int128 weight)
{
    row.weight = weight;
    hand_bag_add(&at->feeds[input]->rows, &row);
}

/* A step of what was sent. */
static ivm_status case_step(set_case *at, bool initial, bool keep)
{
    ivm_status status = initial ? hand_fill(&at->it, keep) : feed_step(&at->it, keep);
    for (uint32_t i = 0; i < at->inputs_count; i++) {
        const hand_bag *sent = &at->feeds[i]->rows;
        for (size_t n = 0; status == IVM_OK && keep && n < sent->count; n++) {
            hand_bag_add(&at->rows[i], &sent->rows[n]);
        }
        hand_bag_settle(&at->rows[i]);
        feed_clear(at->feeds[i]);
    }
    return status;
}

/* ---- The oracle -------------------------------------------------------------------------------------------------------------------------- */

static bool rows_equal(const hand_row *a, const hand_row *b)
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        if (a->nulls[c] != b->nulls[c] || a->cells[c] != b->cells[c]) {
            return false;
        }
    }
    return true;
}

static __int128 weight_in(const hand_bag *bag, const hand_row *row)
{
    for (size_t i = 0; i < bag->count; i++) {
        if (rows_equal(&bag->rows[i], row)) {
            return bag->rows[i].weight > 0 ? bag->rows[i].weight : 0;
        }
    }
    return 0;
}

static __int128 folded(const set_case *at, const hand_row *row)
{
    __int128 weight = weight_in(&at->rows[0], row), some = weight > 0;
    for (uint32_t i = 1; i < at->inputs_count; i++) {
        __int128 other = weight_in(&at->rows[i], row);
        switch (at->kind) {
        case IVM__SET_EXCEPT_ALL:
            weight = weight > other ? weight - other : 0;
            break;
        case IVM__SET_INTERSECT_ALL:
            weight = weight < other ? weight : other;
            break;
        case IVM__SET_UNION:
            some = some || other;
            break;
        case IVM__SET_EXCEPT:
            some = some && !other;
            break;
        default:
            some = some && other;
        }
    }
    return at->kind == IVM__SET_EXCEPT_ALL || at->kind == IVM__SET_INTERSECT_ALL ? weight : some;
}

static bool holds(set_case *at)
{
    hand_bag got = { 0 }, want = { .columns_count = COLUMNS };
    for (uint32_t i = 0; i < at->inputs_count; i++) {
        for (size_t n = 0; n < at->rows[i].count; n++) {
            hand_row row = at->rows[i].rows[n];
            bool seen = false;
            for (uint32_t before = 0; before < i; before++) {
                for (size_t m = 0; m < at->rows[before].count; m++) {
                    seen |= rows_equal(&row, &at->rows[before].rows[m]);
                }
            }
            row.weight = seen ? 0 : folded(at, &row);
            hand_bag_add(&want, &row);
        }
    }
    hand_store_rows(ivm__materialize_result(at->root), &got);
    bool equal = hand_bag_equal(&got, &want);
    const char *wrong = ivm__set_validate(at->set);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
    }
    hand_bag_free(&got);
    hand_bag_free(&want);
    return equal && !wrong;
}

/* ---- Random steps ------------------------------------------------------------------------------------------------------------------------ */

static hand_row draw_row(uint64_t *random)
{
    hand_row row = { 0 };
    for (uint32_t c = 0; c < COLUMNS; c++) {
        row.nulls[c] = hand_below(random, 5) == 0;
        row.cells[c] = row.nulls[c] ? 0 : hand_below(random, 2);
    }
    return row;
}

/* Rows that come, in parts that meet in the step, and rows of which some or all copies go. */
static void draw_input(set_case *at, uint32_t input, uint64_t *random)
{
    const hand_bag *rows = &at->rows[input];
    at->feeds[input]->chunk_rows = 1 + hand_below(random, 5);
    for (size_t i = 0; i < rows->count; i++) {
        if (hand_below(random, 3) == 0) {
            send(at, input, rows->rows[i], hand_below(random, 2) ? -rows->rows[i].weight : -1);
        }
    }
    for (uint32_t n = hand_below(random, 6); n > 0; n--) {
        hand_row row = draw_row(random);
        int weight = (int)hand_below(random, 4), apart = (int)hand_below(random, 3);
        send(at, input, row, -apart);
        send(at, input, row, weight + apart);
    }
}

Test(operators_set, random_steps_agree_with_folds_over_arrays)
{
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
        set_case at;
        ivm__set_kind kind = kinds[hand_below(&random, KINDS)];
        case_open(&at, kind, kind == IVM__SET_DISTINCT ? 1 : 2 + hand_below(&random, 3), NULL);
        for (uint32_t n = 0; n < 20; n++) {
            for (uint32_t i = 0; i < at.inputs_count; i++) {
                if (hand_below(&random, 4)) {
                    draw_input(&at, i, &random);
                }
            }
            cr_assert_eq(case_step(&at, n == 0, hand_below(&random, 4) != 0), IVM_OK);
            cr_assert(holds(&at), "seed %llu, step %u", (unsigned long long)seed, n);
        }
        for (uint32_t i = 0; i < at.inputs_count; i++) {
            for (size_t n = 0; n < at.rows[i].count; n++) {
                send(&at, i, at.rows[i].rows[n], -at.rows[i].rows[n].weight);
            }
        }
        cr_assert_eq(case_step(&at, false, true), IVM_OK);
        cr_assert_eq(ivm__materialize_result(at.root)->rows_live, 0, "seed %llu: what came and went", (unsigned long long)seed);
        cr_assert(holds(&at), "seed %llu: nothing", (unsigned long long)seed);
        case_close(&at);
    }
}

/* Every kind of two inputs and of three, all weights from 0 to 2 before a step and after it. */
Test(operators_set, all_weights_before_and_after)
{
    for (size_t k = 1; k < KINDS; k++) {
        for (uint32_t inputs_count = 2; inputs_count <= 3; inputs_count++) {
            uint32_t states = inputs_count == 2 ? 9 : 27;
            set_case at;
            case_open(&at, kinds[k], inputs_count, NULL);
            for (int sign = 0; sign <= 1; sign++) {
                for (uint32_t row = 0; row < states * states; row++) {
                    uint32_t before = row % states, after = row / states;
                    for (uint32_t i = 0; i < inputs_count; i++, before /= 3, after /= 3) {
                        int change = sign ? (int)(after % 3) - (int)(before % 3) : (int)(before % 3);
                        send(&at, i, HAND_ROW(row, 0, 0), change);
                    }
                }
                cr_assert_eq(case_step(&at, !sign, true), IVM_OK);
                cr_assert(holds(&at), "kind %zu", k);
            }
            case_close(&at);
        }
    }
}

/* ---- By hand ------------------------------------------------------------------------------------------------------------------------------ */

/* The weight of the one row there is. */
static __int128 weight_of(const set_case *at)
{
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(at->root), &got);
    hand_bag_settle(&got);
    cr_assert_leq(got.count, 1);
    __int128 weight = got.count ? got.rows[0].weight : 0;
    hand_bag_free(&got);
    return weight;
}

Test(operators_set, three_inputs_fold_from_left_to_right)
{
    static const int expected[] = {
        [IVM__SET_UNION] = 1, [IVM__SET_EXCEPT_ALL] = 2, [IVM__SET_EXCEPT] = 0, [IVM__SET_INTERSECT_ALL] = 1, [IVM__SET_INTERSECT] = 1
    };
    for (size_t k = 1; k < KINDS; k++) {
        set_case at;
        case_open(&at, kinds[k], 3, NULL);
        send(&at, 0, HAND_ROW(1, HAND_NULL, 3), 5);
        send(&at, 1, HAND_ROW(1, HAND_NULL, 3), 1);
        send(&at, 2, HAND_ROW(1, HAND_NULL, 3), 2);
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        cr_assert_eq((int)weight_of(&at), expected[kinds[k]], "kind %zu", k);
        case_close(&at);
    }
}

Test(operators_set, copies_that_decide_nothing_send_nothing)
{
    for (size_t k = 0; k < KINDS; k++) {
        bool distinct = kinds[k] == IVM__SET_DISTINCT;
        set_case at;
        case_open(&at, kinds[k], distinct ? 1 : 2, NULL);
        hand_sink *sink = hand_sink_add(&at.it, at.set);
        send(&at, 0, HAND_ROW(1, 1, 1), 3);
        if (!distinct) {
            send(&at, 1, HAND_ROW(1, 1, 1), 3);
        }
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        uint32_t chunks_count = sink->chunks_count;
        for (uint32_t i = 0; i < at.inputs_count; i++) {
            send(&at, i, HAND_ROW(1, 1, 1), 2);
            send(&at, i, HAND_ROW(2, 2, 2), 1);
            send(&at, i, HAND_ROW(2, 2, 2), -1);
        }
        cr_assert_eq(case_step(&at, false, true), IVM_OK);
        cr_assert_eq(sink->chunks_count - chunks_count, kinds[k] == IVM__SET_INTERSECT_ALL, "kind %zu", k);
        cr_assert_null(ivm__set_validate(at.set));
        case_close(&at);
    }
}

Test(operators_set, more_rows_than_a_chunk_come_and_go)
{
    for (size_t k = 0; k < KINDS; k++) {
        uint32_t inputs_count = kinds[k] == IVM__SET_DISTINCT ? 1 : 3;
        set_case at;
        case_open(&at, kinds[k], inputs_count, NULL);
        for (int sign = 1; sign >= -1; sign -= 2) {
            for (uint32_t i = 0; i < inputs_count; i++) {
                for (int64_t n = 0; n < 1500; n++) {
                    send(&at, i, HAND_ROW(n * (i + 1), n % 7, 0), sign * (1 + (int)(n % 2)));
                }
            }
            cr_assert_eq(case_step(&at, sign > 0, true), IVM_OK);
            cr_assert(holds(&at), "kind %zu", k);
        }
        cr_assert_eq(ivm__materialize_result(at.root)->rows_live, 0);
        case_close(&at);
    }
}

Test(operators_set, a_large_step_does_not_hold_its_memory)
{
    set_case at;
    case_open(&at, IVM__SET_EXCEPT_ALL, 2, NULL);
    for (int64_t n = 0; n < 20000; n++) {
        send(&at, 0, HAND_ROW(n, 0, 0), 1);
    }
    cr_assert_eq(feed_step(&at.it, true), IVM_OK);
    uint64_t bytes = at.set->class->bytes(at.set);
    for (uint32_t i = 0; i < 2; i++) {
        feed_clear(at.feeds[0]);
        send(&at, 0, HAND_ROW(i, 1, 1), 1);
        cr_assert_eq(feed_step(&at.it, true), IVM_OK);
    }
    cr_assert_leq(at.set->class->bytes(at.set) + 20000 * 32, bytes, "the changes of 20000 rows");
    cr_assert_null(ivm__set_validate(at.set));
    case_close(&at);
}

/* A promise about a foreign key that was not kept can leave a weight below 0. */
Test(operators_set, a_weight_below_zero_is_an_absent_row)
{
    for (size_t k = 0; k < KINDS; k++) {
        set_case at;
        case_open(&at, kinds[k], kinds[k] == IVM__SET_DISTINCT ? 1 : 2, NULL);
        for (uint32_t step = 0; step < 4; step++) {
            for (uint32_t i = 0; i < at.inputs_count; i++) {
                send(&at, i, HAND_ROW(1, 1, 1), step < 2 ? -1 : 2);
            }
            cr_assert_eq(case_step(&at, step == 0, true), IVM_OK);
            cr_assert(holds(&at), "kind %zu, step %u", k, step);
        }
        case_close(&at);
    }
}

Test(operators_set, a_net_weight_past_int64_is_an_overflow)
{
    for (uint32_t inputs_count = 1; inputs_count <= 2; inputs_count++) {
        set_case at;
        case_open(&at, inputs_count == 1 ? IVM__SET_DISTINCT : IVM__SET_INTERSECT_ALL, inputs_count, NULL);
        uint32_t last = inputs_count - 1;
        send(&at, last, HAND_ROW(1, 1, 1), INT64_MAX);
        send(&at, 0, HAND_ROW(1, 1, 1), inputs_count == 1 ? 0 : 7);
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        send(&at, last, HAND_ROW(1, 1, 1), 1);
        cr_assert_eq(case_step(&at, false, true), IVM_OVERFLOW);
        cr_assert_str_eq(at.it.error.message, "view v: the weight of a row is out of range");
        cr_assert(holds(&at));
        send(&at, last, HAND_ROW(1, 1, 1), INT64_MAX);
        send(&at, last, HAND_ROW(1, 1, 1), -INT64_MAX);
        cr_assert_eq(case_step(&at, false, true), IVM_OK, "only what it comes to counts");
        cr_assert(holds(&at));
        case_close(&at);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

static void run_out_of_memory(ivm__set_kind kind, uint32_t inputs_count)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        set_case at;
        case_open(&at, kind, inputs_count, &trial.functions);
        for (int64_t i = 0; i < 20; i++) {
            send(&at, (uint32_t)i % inputs_count, HAND_ROW(i / 2, 0, 0), 1 + i % 2);
        }
        cr_assert_eq(case_step(&at, true, true), IVM_OK);
        for (int64_t i = 0; i < 1300; i++) {
            send(&at, (uint32_t)i % inputs_count, HAND_ROW(i / 2, i / 20, 0), 1);
        }
        send(&at, 0, HAND_ROW(0, 0, 0), -1);
        hand_trial_arm(&trial);
        ivm_status status = case_step(&at, false, true);
        hand_trial_judge(&trial, status, IVM_OK);
        cr_assert(holds(&at), "allocation %llu", (unsigned long long)trial.n);
        send(&at, inputs_count - 1, HAND_ROW(1, 0, 0), 1);
        cr_assert_eq(case_step(&at, false, true), IVM_OK);
        cr_assert(holds(&at), "allocation %llu: the step after", (unsigned long long)trial.n);
        case_close(&at);
    }
    cr_assert_gt(trial.failures, 5);
}

Test(operators_set, running_out_of_memory_changes_nothing)
{
    run_out_of_memory(IVM__SET_DISTINCT, 1);
    run_out_of_memory(IVM__SET_EXCEPT_ALL, 3);
}

Test(operators_set, running_out_of_memory_in_making_it_leaves_nothing)
{
    hand_trial trial = { 0 };
    while (hand_trial_next(&trial)) {
        hand it;
        hand_open(&it, &trial.functions);
        ivm__operator *made;
        hand_trial_arm(&trial);
        ivm_status status = ivm__set_create(&it.engine->memory, &it.engine->texts, 7, IVM__SET_UNION, types, COLUMNS, 2, &made);
        hand_trial_judge_made(&trial, &it, status, made);
    }
    cr_assert_gt(trial.failures, 2);
}

/* ---- Saved and loaded -------------------------------------------------------------------------------------------------------------------- */

static void reload_open(void *at, uint64_t seed, const ivm_allocator *allocator)
{
    ivm__set_kind kind = kinds[seed % KINDS];
    case_open(at, kind, kind == IVM__SET_DISTINCT ? 1 : 2 + (uint32_t)(seed / KINDS % 3), allocator);
}

static void reload_close(void *at)
{
    case_close(at);
}

static hand *reload_hand(void *at)
{
    return &((set_case *)at)->it;
}

/* Now and then a row weighs less than nothing, as a broken promise leaves it, or as much as it may. */
static void reload_draw(void *at, uint64_t *random)
{
    set_case *it = at;
    for (uint32_t i = 0; i < it->inputs_count; i++) {
        draw_input(it, i, random);
        if (hand_below(random, 6) == 0) {
            send(it, i, draw_row(random), hand_below(random, 2) ? -3 : INT64_MAX);
        }
    }
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
    return &((set_case *)at)->rows[input];
}

static const ivm__store *reload_result(void *at)
{
    return ivm__materialize_result(((set_case *)at)->root);
}

static const reload reloads = { sizeof(set_case), reload_open,  reload_close, reload_hand,  reload_draw,
                                reload_step,      reload_holds, reload_rows,  reload_result };

Test(operators_set, saved_and_loaded_it_goes_on)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        reload_go_on(&reloads, seed);
    }
}

Test(operators_set, spoilt_bytes_break_nothing)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        loaded += reload_spoilt(&reloads, seed, 50);
    }
    cr_assert_gt(loaded, 300);
}

Test(operators_set, running_out_of_memory_in_loading_leaves_nothing)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        reload_out_of_memory(&reloads, seed);
    }
}
