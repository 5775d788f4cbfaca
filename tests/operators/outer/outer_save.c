/* Outer, semi and anti joins saved and loaded: rows of both sides, and how many partners they have. */
#include <criterion/criterion.h>

#include "outer_case.h"
#include "reload.h"

static void case_open(void *at, uint64_t seed, const ivm_allocator *allocator)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15ull | 1;
    outer_draw(at, &random);
    outer_open(at, allocator);
}

static void case_close(void *at)
{
    outer_close(at);
}

static hand *case_hand_of(void *at)
{
    return &((outer_case *)at)->it;
}

static hand_row draw_row(uint64_t *random)
{
    hand_row row = { 0 };
    for (uint32_t c = 0; c < OUTER_COLUMNS; c++) {
        row.nulls[c] = hand_below(random, 5) == 0;
        row.cells[c] = row.nulls[c] ? 0 : (int64_t)hand_below(random, hand_below(random, 60) ? 3 : 6);
    }
    return row;
}

static void case_draw(void *at, uint64_t *random)
{
    outer_case *join = at;
    for (uint32_t side = 0; side < 2; side++) {
        const hand_bag *rows = &join->rows[side];
        join->feeds[side]->chunk_rows = 1 + hand_below(random, 5);
        for (size_t i = 0; i < rows->count; i++) {
            if (hand_below(random, 4) == 0) {
                outer_send(join, side, rows->rows[i], hand_below(random, 2) ? -rows->rows[i].weight : -1);
            }
        }
        for (uint32_t n = hand_below(random, 5); n > 0; n--) {
            int weight = 1 + (int)hand_below(random, 3);
            outer_send(join, side, draw_row(random), join->negative[side] && hand_below(random, 3) == 0 ? -weight : weight);
        }
        if (hand_below(random, 20) == 0) {
            outer_send(join, side, draw_row(random), INT64_MAX);
        }
    }
}

static ivm_status case_step(void *at, bool initial, bool keep)
{
    return outer_step(at, initial, keep);
}

static bool case_holds(void *at)
{
    return !outer_validate(at) && outer_holds(at);
}

static hand_bag *case_rows(void *at, uint32_t input)
{
    return &((outer_case *)at)->rows[input];
}

static const ivm__store *case_result(void *at)
{
    return ivm__materialize_result(((outer_case *)at)->root);
}

static const reload reloads = { sizeof(outer_case), case_open,  case_close, case_hand_of, case_draw,
                                case_step,          case_holds, case_rows,  case_result };

Test(operators_outer_save, saved_and_loaded_it_goes_on, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        reload_go_on(&reloads, seed);
    }
}

Test(operators_outer_save, spoilt_bytes_break_nothing, .timeout = 300)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        loaded += reload_spoilt(&reloads, seed, 50);
    }
    cr_assert_gt(loaded, 300);
}

Test(operators_outer_save, running_out_of_memory_in_loading_leaves_nothing, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        reload_out_of_memory(&reloads, seed);
    }
}

/* More rows than a chunk, and more partners than a byte counts. */
Test(operators_outer_save, many_rows_and_partners)
{
    outer_case one = { .kind = IVM_FULL_JOIN, .keys_count = 1 }, other = { .kind = IVM_FULL_JOIN, .keys_count = 1 };
    holdings held = { 0 };
    outer_open(&one, NULL);
    outer_open(&other, NULL);
    for (int64_t n = 0; n < 3000; n++) {
        outer_send(&one, (uint32_t)n % 2, HAND_ROW(n % 4, n, 0, HAND_NULL), 1);
    }
    cr_assert_eq(outer_step(&one, true, true), IVM_OK);
    holdings_save_program(&held, &one.it.program);
    cr_assert_eq(holdings_load_program(&held, other.it.engine, &other.it.program, &other.it.error), IVM_OK);
    holdings_assert_program(&held, &other.it.program, "many rows", 0);
    for (int64_t n = 0; n < 3000; n += 2) {
        outer_send(&one, 0, HAND_ROW(n % 4, n, 0, HAND_NULL), -1);
        outer_send(&other, 0, HAND_ROW(n % 4, n, 0, HAND_NULL), -1);
    }
    cr_assert(outer_step(&one, false, true) == IVM_OK && outer_step(&other, false, true) == IVM_OK);
    holdings_save_program(&held, &one.it.program);
    holdings_assert_program(&held, &other.it.program, "many rows gone", 0);
    outer_close(&one);
    outer_close(&other);
}
