/* Materialize and signs saved and loaded. */
#include <criterion/criterion.h>

#include "reload.h"

/* ---- Materialize and signs --------------------------------------------------------------------------------------------------------------- */

#define COLUMNS 7u

static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 0), IVM_FLOAT64, IVM_BOOL, IVM_DATE, IVM_TIMESTAMP };

typedef struct kept_case {
    hand it;
    feed *from;
    ivm__operator *root;
    hand_bag rows;
} kept_case;

static void kept_open(void *at, uint64_t seed, const ivm_allocator *allocator)
{
    static const ivm__signs_ports ports = { 0, UINT32_MAX, UINT32_MAX };
    kept_case *it = at;
    ivm__operator *signs;
    hand_open(&it->it, allocator);
    ivm__memory *memory = &it->it.engine->memory;
    ivm__texts *texts = &it->it.engine->texts;
    it->rows.columns_count = COLUMNS;
    it->from = feed_add(&it->it, types, COLUMNS);
    cr_assert_eq(ivm__signs_create(memory, texts, seed, types, COLUMNS, ports, &signs), IVM_OK);
    hand_add(&it->it, signs, &it->from->head, 0);
    cr_assert_eq(ivm__materialize_create(memory, texts, seed, types, COLUMNS, &it->root), IVM_OK);
    hand_add(&it->it, it->root, signs, 0);
}

static void kept_close(void *at)
{
    hand_bag_free(&((kept_case *)at)->rows);
    hand_close(&((kept_case *)at)->it);
}

static hand *kept_hand(void *at)
{
    return &((kept_case *)at)->it;
}

static void kept_draw(void *at, uint64_t *random)
{
    static const int64_t weights[] = { 1, 1, 1, -1, 2, INT64_MAX, INT64_MIN };
    kept_case *it = at;
    it->from->chunk_rows = 1 + hand_below(random, 6);
    for (size_t i = 0; i < it->rows.count; i++) {
        if (hand_below(random, 3) == 0) {
            hand_row row = it->rows.rows[i];
            row.weight = -row.weight;
            hand_bag_add(&it->from->rows, &row);
        }
    }
    for (uint32_t n = hand_below(random, 7); n > 0; n--) {
        hand_row row = { .weight = weights[hand_below(random, sizeof weights / sizeof *weights)] };
        for (uint32_t c = 0; c < COLUMNS; c++) {
            row.nulls[c] = hand_below(random, 5) == 0;
            row.cells[c] = row.nulls[c] ? 0 : hand_below(random, 2);
        }
        hand_bag_add(&it->from->rows, &row);
    }
}

static ivm_status kept_step(void *at, bool initial, bool keep)
{
    kept_case *it = at;
    ivm_status status = initial ? hand_fill(&it->it, keep) : feed_step(&it->it, keep);
    for (size_t n = 0; status == IVM_OK && keep && n < it->from->rows.count; n++) {
        hand_bag_add(&it->rows, &it->from->rows.rows[n]);
    }
    hand_bag_settle(&it->rows);
    feed_clear(it->from);
    return status;
}

static bool kept_holds(void *at)
{
    kept_case *it = at;
    hand_bag got = { 0 };
    hand_store_rows(ivm__materialize_result(it->root), &got);
    bool equal = hand_bag_equal(&got, &it->rows);
    hand_bag_free(&got);
    return equal;
}

static hand_bag *kept_rows(void *at, uint32_t input)
{
    (void)input;
    return &((kept_case *)at)->rows;
}

static const ivm__store *kept_result(void *at)
{
    return ivm__materialize_result(((kept_case *)at)->root);
}

static const reload kept = {
    sizeof(kept_case), kept_open, kept_close, kept_hand, kept_draw, kept_step, kept_holds, kept_rows, kept_result
};

Test(operators_save, kept_rows_saved_and_loaded_go_on)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        reload_go_on(&kept, seed);
    }
}

Test(operators_save, spoilt_rows_break_nothing)
{
    uint32_t loaded = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        loaded += reload_spoilt(&kept, seed, 50);
    }
    cr_assert_gt(loaded, 100);
}

Test(operators_save, running_out_of_memory_in_loading_rows_leaves_nothing)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        reload_out_of_memory(&kept, seed);
    }
}
