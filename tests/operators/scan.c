/* Scans: a table's delta, its whole content where a view is filled, its former content where a leaf is loaded. */
#include <criterion/criterion.h>

#include "hand.h"

static const ivm_type types[] = { IVM_INT64, IVM_INT64 };

static ivm__operator *scan_add(hand *it, ivm_table *table)
{
    ivm__operator *scan;
    cr_assert_eq(ivm__scan_create(&it->engine->memory, table, table->heading, &scan), IVM_OK);
    cr_assert_eq(ivm__scan_source(scan).table, table);
    hand_add(it, scan, NULL, 0);
    return scan;
}

static void sink_expect(hand_sink *sink, const hand_row *rows, size_t count)
{
    hand_bag want = { .columns_count = 2 };
    for (size_t i = 0; i < count; i++) {
        hand_bag_add(&want, &rows[i]);
    }
    cr_assert(hand_bag_equal(&sink->rows, &want));
    hand_bag_free(&want);
    hand_bag_free(&sink->rows);
}

Test(operators_scan, emits_the_net_delta)
{
    hand it;
    hand_open(&it, NULL);
    ivm_table *table = hand_table(&it, "t", types, "-?", "c0");
    hand_sink *sink = hand_sink_add(&it, scan_add(&it, table));
    ivm_batch *batch = hand_batch(&it);
    hand_change(batch, table, HAND_ROW(1, 5), 1);
    hand_change(batch, table, HAND_ROW(2, HAND_NULL), 1);
    hand_change(batch, table, HAND_ROW(3, 5), 1);
    hand_change(batch, table, HAND_ROW(3, 5), -1);
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    ivm_batch_free(batch);
    sink_expect(sink, (hand_row[]){ HAND_ROW(1, 5), HAND_ROW(2, HAND_NULL) }, 2);

    batch = hand_batch(&it);
    hand_change(batch, table, HAND_ROW(1, 5), -1);
    hand_change(batch, table, HAND_ROW(1, 6), 1);
    cr_assert_eq(hand_step(&it, batch, true), IVM_OK);
    ivm_batch_free(batch);
    hand_row gone = HAND_ROW(1, 5);
    gone.weight = -1;
    sink_expect(sink, (hand_row[]){ gone, HAND_ROW(1, 6) }, 2);
    hand_close(&it);
}

Test(operators_scan, an_initial_step_emits_the_whole_table)
{
    hand it;
    hand_open(&it, NULL);
    ivm_table *table = hand_table(&it, "t", types, "??", NULL);
    ivm_batch *batch = hand_batch(&it);
    for (int64_t n = 0; n < 3000; n++) {
        hand_change(batch, table, HAND_ROW(n, -n), 2);
    }
    cr_assert_eq(hand_stage(&it, batch), IVM_OK);
    ivm_batch_free(batch);
    hand_sink *sink = hand_sink_add(&it, scan_add(&it, table));
    cr_assert_eq(hand_fill(&it, true), IVM_OK);
    hand_bag_settle(&sink->rows);
    cr_assert_eq(sink->rows.count, 3000);
    for (int64_t n = 0; n < 3000; n++) {
        cr_assert(sink->rows.rows[n].cells[0] == n && sink->rows.rows[n].cells[1] == -n && sink->rows.rows[n].weight == 2);
    }
    cr_assert_geq(sink->chunks_count, 3);
    hand_close(&it);
}

Test(operators_scan, loading_emits_the_rows_from_before_the_step)
{
    hand it;
    hand_open(&it, NULL);
    ivm_table *table = hand_table(&it, "t", types, "-?", "c0");
    ivm__operator *scan = scan_add(&it, table);
    hand_sink *sink = hand_sink_add(&it, scan);
    ivm_batch *batch = hand_batch(&it);
    hand_change(batch, table, HAND_ROW(1, 5), 1);
    hand_change(batch, table, HAND_ROW(2, 6), 1);
    cr_assert_eq(hand_stage(&it, batch), IVM_OK);
    ivm_batch_free(batch);

    batch = hand_batch(&it);
    hand_change(batch, table, HAND_ROW(1, 5), -1);
    hand_change(batch, table, HAND_ROW(3, 7), 1);
    ivm__step step;
    ivm__step_init(&step, it.engine, &it.stats, &it.error);
    cr_assert_eq(ivm__stage_apply(&step, batch), IVM_OK);
    step.loading = true;
    cr_assert_eq(ivm__scan_load(scan, &step), IVM_OK);
    cr_assert(sink->loading);
    ivm__stage_undo(it.engine);
    ivm__engine_settle(it.engine);
    ivm_batch_free(batch);
    sink_expect(sink, (hand_row[]){ HAND_ROW(1, 5), HAND_ROW(2, 6) }, 2);
    hand_close(&it);
}
