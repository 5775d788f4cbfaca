/* Rows of transient tables with a partition that wait for a parent, be it for no view: who waits goes with its partition. */
#include "partition_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const ivm_table_options transient = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part", .transient = true };
static const ivm_table_options grows = { .key = "id", .append_only = true };

static ivm_fact *declare(fixture *it, bool facts)
{
    ivm_table *d = fixture_table_like(it, "d", "id int64", &grows);
    ivm_table *e = fixture_table_like(it, "e", "id int64", &grows);
    ivm_table *seen = fixture_table_like(it, "seen", "part int64; d int64; e int64", &transient);
    ivm_fact *fact = facts ? fixture_fact(it, seen, "d", d, "id", IVM_TRACKED) : NULL;
    fixture_fact(it, seen, "e", e, "id", IVM_TRACKED);
    return fact;
}

static void assert_orphans(fixture *it, size_t nth, uint64_t rows, uint64_t keys)
{
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
    ivm_fact *fact = ivm_fact_next(it->engine, NULL);
    while (nth-- > 0) {
        fact = ivm_fact_next(it->engine, fact);
    }
    cr_assert_eq(ivm_fact_status(fact, &state, &it->error), IVM_OK);
    cr_assert_eq(state.orphans, rows, "%lu rows, not %lu", (unsigned long)state.orphans, (unsigned long)rows);
    cr_assert_eq(state.orphans_keys, keys, "%lu keys, not %lu", (unsigned long)state.orphans_keys, (unsigned long)keys);
}

Test(plan_partition_waiting, goes_with_its_partition)
{
    fixture it, other;
    streams saved = { 0 };
    fixture_open(&it);
    declare(&it, true);
    ivm_plan *join = ivm_plan_join(scan_of("seen", NULL), scan_of("e", NULL), "seen.e = e.id");
    fixture_make(&it, "v", ivm_plan_count(ivm_plan_aggregate(join, "part"), "c"));
    case_push(&it, "e", IVM_INSERT, "1");
    case_push(&it, "seen", IVM_INSERT, "1,7,1 1,7,2 1,8,2 2,7,2 2,null,2 3,9,1 3,9,1");
    assert_orphans(&it, 0, 6, 3);
    assert_orphans(&it, 1, 4, 1);
    parts_save(&it, &saved, 0, PARTS, true);
    fixture_open(&other);
    cr_assert_eq(parts_restore(&other, &saved, (uint32_t[]){ 2, 1 }, 2), IVM_OK, "%s", other.error.message);
    assert_orphans(&other, 0, 4 - 1 + 1, 2);
    assert_orphans(&other, 1, 4, 1);
    ivm_view *view = fixture_view_find(&other, "v");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,1");
    case_push(&other, "e", IVM_INSERT, "2");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,3 1*2,2");
    case_push(&other, "seen", IVM_DELETE, "1,7,2");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,2 1*2,2");
    case_push(&other, "d", IVM_INSERT, "7");
    assert_orphans(&other, 0, 1, 1);
    assert_orphans(&other, 1, 0, 0);
    cr_assert_eq(parts_restore_all(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_orphans(&other, 0, 6, 3);
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* That rows have come and gone is known of all partitions, whichever of their engines saw them. */
Test(plan_partition_waiting, what_has_come_is_not_forgotten)
{
    fixture it, idle, other;
    streams saved = { 0 };
    ivm_view *view = NULL;
    fixture *both[] = { &it, &idle };
    for (size_t i = 0; i < 2; i++) {
        fixture_open(both[i]);
        fixture_table_like(both[i], "seen", "part int64; n int64", &transient);
    }
    case_push(&it, "seen", IVM_INSERT, "1,1");
    for (uint32_t seen_by = 0; seen_by < 3; seen_by++) { /* the one that saw them writes a partition, the other one, or the shared stream */
        parts_save(both[seen_by == 2 ? 0 : 1], &saved, 0, 0, true);
        parts_save(both[seen_by == 0 ? 0 : 1], &saved, 0, 1, false);
        parts_save(both[seen_by == 1 ? 0 : 1], &saved, 1, 2, false);
        fixture_open(&other);
        cr_assert_eq(parts_restore(&other, &saved, (uint32_t[]){ 0, 1 }, 2), IVM_OK, "%s", other.error.message);
        ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(scan_of("seen", NULL), "part"), "c");
        cr_expect_eq(ivm_view_create(other.engine, "v", plan, NULL, &view, &other.error), IVM_UNSUPPORTED);
        fixture_close(&other);
    }
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&idle);
}

/* An engine with a fact less is, but for its rows that waited under it, as if it had never had it. */
static void assert_let_go(bool by_column)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_table *seen = NULL;
    fixture_open(&it);
    fixture_open(&other);
    ivm_fact *fact = declare(&it, true);
    declare(&other, false);
    fixture *both[] = { &it, &other };
    case_push(&it, "seen", IVM_INSERT, "1,7,1 1,7,null");
    case_push(&other, "seen", IVM_INSERT, "1,7,1 1,7,null");
    if (!by_column) {
        cr_assert_eq(ivm_foreign_key_remove(fact, &it.error), IVM_OK, "%s", it.error.message);
    }
    for (size_t i = 0; by_column && i < 2; i++) {
        seen = fixture_table_find(both[i], "seen");
        cr_assert_eq(ivm_table_column_drop(seen, "d", &both[i]->error), IVM_OK, "%s", both[i]->error.message);
    }
    case_save(&it, &saved);
    case_assert_saved_as(&other, &saved, "let go");
    for (size_t i = 0; i < 2; i++) {
        case_push(both[i], "seen", IVM_INSERT, by_column ? "2,3" : "2,7,3");
        case_push(both[i], "e", IVM_INSERT, "3");
    }
    case_save(&it, &saved);
    case_assert_saved_as(&other, &saved, "gone on");
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

Test(plan_partition_waiting, lets_go_with_its_foreign_key)
{
    assert_let_go(false);
    assert_let_go(true);
}

/* The last foreign key that rows waited under goes with its column. */
Test(plan_partition_waiting, keeps_nothing_once_nobody_can_wait)
{
    fixture it;
    ivm_stats before, after;
    fixture_open(&it);
    ivm_table *d = fixture_table_like(&it, "d", "id int64", &grows);
    ivm_table *seen = fixture_table_like(&it, "seen", "part int64; d int64", &transient);
    fixture_fact(&it, seen, "d", d, "id", IVM_TRACKED);
    case_push(&it, "seen", IVM_INSERT, "1,7");
    cr_assert_eq(seen->store.rows_live, 1u);
    cr_assert_eq(ivm_table_column_drop(seen, "d", &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(seen->store.rows_live, 0u);
    case_push(&it, "seen", IVM_INSERT, "1");
    ivm_engine_stats(it.engine, &before);
    case_push(&it, "seen", IVM_INSERT, "1 2 3 4 5");
    ivm_engine_stats(it.engine, &after);
    cr_expect_eq(seen->store.rows_live, 0u);
    cr_expect_leq(after.bytes_held, before.bytes_held);
    fixture_close(&it);
}

Test(plan_partition_waiting, memory_may_end_when_it_is_declared)
{
    fixture it;
    fixture_open(&it);
    ivm_table *d = fixture_table_like(&it, "d", "id int64", &grows);
    ivm_table *seen = fixture_table_like(&it, "seen", "part int64; d int64", &transient);
    for (uint64_t n = 1, done = 0; !done; n++) {
        ivm_fact *fact = NULL;
        test_allocator_arm(&it.allocator, n);
        ivm_status status = ivm_foreign_key_declare(seen, "d", d, "id", IVM_TRACKED, &fact, &it.error);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(done || !ivm_fact_next(it.engine, NULL));
    }
    case_push(&it, "seen", IVM_INSERT, "1,7");
    assert_orphans(&it, 0, 1, 1);
    fixture_close(&it);
}

/* ---- Checkpoints that pushes overtake -------------------------------------------------------------------------------------------------------- */

typedef struct overtaken {
    fixture *it;
    ivm_view *view;
    tape to;
} overtaken;

static void *drop(void *context)
{
    overtaken *now = context;
    now->view = ivm_view_drop(now->view, NULL) == IVM_OK ? NULL : now->view;
    return NULL;
}

/* Another thread drops the view, and with it what waited for it, once the lock is free: while the first piece after that is written, or it is waited for in vain. */
static ivm_status drop_and_write(void *context, const void *bytes, size_t size)
{
    overtaken *now = context;
    if (now->view && !atomic_load(&now->it->engine->stepping)) {
        pthread_t other;
        cr_assert_eq(pthread_create(&other, NULL, drop, now), 0);
        cr_assert_eq(pthread_join(other, NULL), 0);
    }
    return tape_write(&now->to, bytes, size);
}

Test(plan_partition_waiting, a_view_may_go_while_a_checkpoint_is_written)
{
    fixture it, other;
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    tape saved = { 0 };
    fixture_open(&it);
    ivm_table *d = fixture_table_like(&it, "d", "id int64", &grows);
    ivm_table *seen = fixture_table_like(&it, "seen", "d int64", &(ivm_table_options){ .transient = true });
    fixture_fact(&it, seen, "d", d, "id", IVM_TRACKED);
    overtaken now = { &it, NULL, { 0 } };
    now.view = fixture_make(&it, "v", ivm_plan_project(ivm_plan_join(scan_of("seen", NULL), scan_of("d", NULL), "seen.d = d.id"), "d.id"));
    case_push(&it, "seen", IVM_INSERT, "7 8");
    case_save(&it, &saved);
    cr_assert_eq(ivm_checkpoint(it.engine, drop_and_write, &now, &options, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_null(now.view);
    cr_assert_eq(now.to.size, saved.size);
    cr_assert_eq(memcmp(now.to.bytes, saved.bytes, saved.size), 0);
    fixture_open(&other);
    cr_assert_eq(case_restore(&other, &now.to), IVM_OK, "%s", other.error.message);
    case_assert_saved_as(&other, &saved, "as it was");
    tape_free(&saved);
    tape_free(&now.to);
    fixture_close(&it);
    fixture_close(&other);
}
