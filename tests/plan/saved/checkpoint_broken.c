/* Checkpoints that go wrong: a stream that was damaged or cut, a caller's function that fails or calls the engine, memory that ends. The engine is what it
 * was then. */
#include "checkpoint_case.h"
#include "figure.h"
#include "operators/holdings.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Streams that are wrong ------------------------------------------------------------------------------------------------------------------- */

static void victim_open(victim *one)
{
    case_program_open(&one->it);
    case_push(&one->it, "d", IVM_INSERT, "5,five,null");
    case_push(&one->it, "f", IVM_INSERT, "1,5,1,1,1,true");
    victim_hold(one, case_contents);
}

/* One byte of the stream damaged, then the stream cut before it. */
static void damage(tape *saved, size_t at, victim *one, fixture *empty)
{
    size_t size = saved->size;
    saved->bytes[at] ^= (uint8_t)(1 << at % 8);
    ivm_status status = case_restore(&one->it, saved);
    cr_assert(status == IVM_CORRUPT || status == IVM_UNSUPPORTED, "byte %zu: %s", at, ivm_status_name(status));
    status = at % 16 ? IVM_CORRUPT : case_restore(empty, saved);
    cr_assert(status == IVM_CORRUPT || status == IVM_UNSUPPORTED, "byte %zu: %s", at, ivm_status_name(status));
    saved->bytes[at] ^= (uint8_t)(1 << at % 8);
    saved->size = at;
    cr_assert_eq(case_restore(&one->it, saved), IVM_CORRUPT, "cut to %zu", at);
    cr_assert(at % 16 || case_restore(empty, saved) == IVM_CORRUPT, "cut to %zu", at);
    saved->size = size;
    if (at % 512 == 0) {
        victim_check(one, "damaged");
        cr_assert_null(ivm_fact_next(empty->engine, NULL));
    }
}

static void damage_all(ivm_compression compression)
{
    fixture it, empty;
    tape saved = { 0 }, whole = { 0 };
    victim one;
    case_filled_open(&it, &whole);
    ivm_status made = case_save_as(&it, &saved, compression);
    fixture_close(&it);
    if (made == IVM_UNSUPPORTED) { /* a build without zstd */
        tape_free(&whole);
        return;
    }
    victim_open(&one);
    fixture_open(&empty);
    int64_t blocks = empty.allocator.blocks;
    for (size_t at = 0; at < saved.size; at++) {
        damage(&saved, at, &one, &empty);
    }
    figure_add("bytes of checkpoints flipped", saved.size);
    figure_add("lengths of checkpoints cut", saved.size);
    cr_log_info("%zu bytes damaged, as many lengths cut", saved.size);
    cr_assert_gt(saved.size, 6000u, "%zu bytes alone", saved.size);
    ivm_table *none = NULL;
    cr_expect_eq(ivm_table_find(empty.engine, "d", &none, &empty.error), IVM_UNKNOWN_TABLE);
    cr_expect_leq(empty.allocator.blocks, blocks + 8, "%ld blocks more", (long)(empty.allocator.blocks - blocks)); /* arenas */
    cr_assert_eq(case_restore(&empty, &saved), IVM_OK, "%s", empty.error.message);
    case_assert_saved_as(&empty, &whole, "after all that");
    tape_free(&saved);
    tape_free(&whole);
    victim_close(&one);
    fixture_close(&empty);
}

Test(plan_checkpoint_broken, every_damaged_byte_and_every_cut_is_found_out, .timeout = 300)
{
    damage_all(IVM_COMPRESSION_NONE);
}

Test(plan_checkpoint_broken, every_damaged_byte_and_every_cut_is_found_out_compressed, .timeout = 300)
{
    damage_all(IVM_COMPRESSION_ZSTD);
}

/* What is damaged there has every kind of table, fact and view, and every operator that holds something holds something. */
Test(plan_checkpoint_broken, the_stream_has_something_of_everything)
{
    static const char *const names[] = { "aggregate", "join", "materialize", "outer join", "set", "signs", "top_k", "weigh" };
    bool held[8] = { false }, trusted[3] = { false }, keyed = false, bag = false, grows = false, negative = false, transient = false;
    fixture it;
    case_program_open(&it);
    case_fill(&it);
    for (const ivm_table *table = it.engine->tables; table; table = table->next) {
        keyed |= table->key_count && !table->append_only;
        bag |= !table->key_count && !table->allow_negative && !table->transient && table->store.rows_live;
        grows |= table->append_only;
        negative |= table->allow_negative;
        transient |= table->transient && table->store.rows_live;
    }
    for (const ivm_fact *fact = it.engine->facts; fact; fact = fact->next) {
        trusted[fact->trust] = true;
    }
    for (const ivm_view *view = it.engine->views; view; view = view->next) {
        for (uint32_t i = 0; i < view->program.operators_count; i++) {
            holdings kept = { 0 };
            holdings_save(&kept, view->program.operators[i]);
            for (uint32_t k = 0; k < 8; k++) {
                held[k] |= strcmp(names[k], view->program.operators[i]->class->name) == 0 && kept.size > 16;
            }
            holdings_free(&kept);
        }
    }
    for (uint32_t k = 0; k < 8; k++) {
        cr_expect(held[k], "%s", names[k]);
    }
    cr_expect(keyed && bag && grows && negative && transient);
    cr_expect(trusted[IVM_RELY] && trusted[IVM_ENFORCED] && trusted[IVM_TRACKED]);
    fixture_close(&it);
}

Test(plan_checkpoint_broken, nothing_behind_the_end_is_read)
{
    fixture it;
    tape saved = { 0 };
    case_filled_open(&it, &saved);
    size_t size = saved.size;
    cr_assert_eq(tape_write(&saved, "next", 4), IVM_OK);
    cr_assert_eq(case_restore(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(saved.at, size);
    tape_free(&saved);
    fixture_close(&it);
}

Test(plan_checkpoint_broken, any_call_of_the_stream_may_fail)
{
    fixture it;
    tape saved = { 0 }, broken = { 0 };
    victim one;
    case_filled_open(&it, &saved);
    for (uint64_t n = 1; n <= saved.calls; n++) {
        broken.fails_at = n;
        cr_assert_eq(case_save_as(&it, &broken, IVM_COMPRESSION_NONE), IVM_IO, "call %lu", (unsigned long)n);
    }
    case_assert_saved_as(&it, &saved, "after failed writes");
    victim_open(&one);
    saved.most = 100;
    for (saved.fails_at = 1; case_restore(&one.it, &saved) != IVM_OK; saved.fails_at++) {
        cr_assert_eq(one.it.error.status, IVM_IO, "%s", one.it.error.message);
        if (saved.fails_at % 16 == 0) {
            victim_check(&one, "failed reads");
        }
    }
    cr_expect_gt(saved.fails_at, 50u);
    figure_add("reads and writes of checkpoints failed", saved.calls + saved.fails_at - 1);
    case_save(&one.it, &one.own);
    free(one.rows);
    one.rows = case_contents(&one.it);
    tape_free(&saved);
    tape_free(&broken);
    victim_close(&one);
    fixture_close(&it);
}

Test(plan_checkpoint_broken, memory_may_end_at_any_call)
{
    fixture it;
    tape saved = { 0 }, again = { 0 };
    victim one;
    case_filled_open(&it, &saved);
    for (uint64_t n = 1, done = 0; !done; n++) {
        test_allocator_arm(&it.allocator, n);
        ivm_status status = case_save_as(&it, &again, IVM_COMPRESSION_NONE);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert(status == IVM_OUT_OF_MEMORY || status == IVM_OK, "%s: %s", ivm_status_name(status), it.error.message);
        cr_assert(status == IVM_OK || !done);
    }
    case_assert_saved_as(&it, &saved, "after failed calls");
    victim_open(&one);
    victim_starve(&one, case_restore_tape, &saved, &saved);
    victim_close(&one);
    empty_starve(case_restore_tape, &saved, 1);
    tape_free(&saved);
    tape_free(&again);
    fixture_close(&it);
}

Test(plan_checkpoint_broken, callbacks_may_not_call_the_engine)
{
    fixture it;
    tape saved = { 0 }, quiet = { 0 };
    case_filled_open(&it, &quiet);
    saved.called = it.engine;
    saved.viewed = it.engine->views;
    case_save(&it, &saved);
    cr_expect_gt(saved.calls, 50u);
    cr_expect_eq(saved.refused, TAPE_CALLS * saved.calls, "%lu of %lu", (unsigned long)saved.refused,
                 (unsigned long)(TAPE_CALLS * saved.calls));
    cr_assert_eq(saved.size, quiet.size);
    cr_expect_eq(memcmp(saved.bytes, quiet.bytes, quiet.size), 0);
    saved.refused = 0;
    cr_assert_eq(case_restore(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(saved.refused, TAPE_CALLS * saved.calls);
    saved.called = NULL;
    case_assert_saved_as(&it, &quiet, "restored");
    tape_free(&saved);
    tape_free(&quiet);
    fixture_close(&it);
}
