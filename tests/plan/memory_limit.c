/* An engine's memory limit: at every one at which a call fails it fails as a whole, and at the next it goes through. Between the limits that are tried
 * nothing is decided otherwise: each is the least at which what was refused before is given. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint_case.h"

static uint64_t held(const fixture *it)
{
    ivm_stats stats;
    ivm_engine_stats(it->engine, &stats);
    return stats.bytes_held;
}

/* The least limit: 0 is none. */
static uint64_t limit_first(const fixture *it)
{
    return held(it) ? held(it) : 1;
}

static void limit_set(fixture *it, uint64_t bytes)
{
    cr_assert_eq(ivm_engine_memory_limit(it->engine, bytes, &it->error), IVM_OK);
}

/* The limit that comes after one at which the call failed. */
static uint64_t limit_next(const fixture *it, uint64_t limit)
{
    char said[64];
    ivm__refusal refusal = ivm__memory_refusal();
    snprintf(said, sizeof said, "limit is %llu bytes", (unsigned long long)limit);
    cr_assert_not_null(strstr(it->error.message, said), "%s", it->error.message);
    cr_assert_eq(it->error.status, IVM_OUT_OF_MEMORY);
    cr_assert_eq(refusal.bytes_max, limit);
    cr_assert_gt(refusal.bytes_held + refusal.bytes_asked, limit);
    return refusal.bytes_held + refusal.bytes_asked;
}

/* Calls under every limit, from what is held on; returns how many times it failed. What the engine holds is then what it was. */
static uint32_t limits_walk(fixture *it, call *work, void *context)
{
    tape before = { 0 };
    uint32_t failed = 0;
    case_save(it, &before);
    for (uint64_t limit = limit_first(it);; failed++) {
        limit_set(it, limit);
        ivm_status status = work(it, context);
        cr_assert_leq(held(it), limit);
        if (status == IVM_OK) {
            break;
        }
        cr_assert_eq(status, IVM_OUT_OF_MEMORY, "%s: %s", ivm_status_name(status), it->error.message);
        limit = limit_next(it, limit);
        limit_set(it, 0);
        case_assert_saved_as(it, &before, "after a call that passed the limit");
        limit = held(it) > limit ? held(it) : limit;
    }
    limit_set(it, 0);
    tape_free(&before);
    return failed;
}

/* ---- Calls ---------------------------------------------------------------------------------------------------------------------------------- */

static ivm_status audit(fixture *it, void *context)
{
    ivm_snapshot *differences = NULL;
    ivm_view *view = fixture_view_find(it, context);
    ivm_status status = ivm_audit_view(view, &differences, &it->error);
    ivm_snapshot_close(differences);
    return status;
}

static ivm_status save(fixture *it, void *context)
{
    return case_save_as(it, context, IVM_COMPRESSION_NONE);
}

static ivm_status declare(fixture *it, void *context)
{
    ivm_column_definition columns[] = { { "a", IVM_INT64, true }, { "b", IVM_STRING, false } };
    ivm_table_options options = { .version = 1, .columns = columns, .columns_count = 2, .key = "a" };
    ivm_table *table;
    (void)context;
    return ivm_table_create(it->engine, "new", &options, &table, &it->error);
}

static ivm_status column_add(fixture *it, void *context)
{
    ivm_table *table = fixture_table_find(it, "f");
    (void)context;
    return ivm_table_column_add(table, &(ivm_column_definition){ "more", IVM_STRING, false }, &it->error);
}

/* ---- Under every limit ------------------------------------------------------------------------------------------------------------------------ */

static void start(fixture *it)
{
    case_program_open(it);
    case_fill(it);
}

Test(plan_memory_limit, a_push_fails_whole_or_goes_through)
{
    fixture it, free_of;
    tape limited = { 0 };
    start(&it);
    start(&free_of);
    cr_expect_gt(limits_walk(&it, case_push_all, NULL), 20u);
    cr_assert_eq(case_push_all(&free_of, NULL), IVM_OK, "%s", free_of.error.message);
    case_save(&it, &limited);
    case_assert_saved_as(&free_of, &limited, "without a limit");
    tape_free(&limited);
    fixture_close(&it);
    fixture_close(&free_of);
}

Test(plan_memory_limit, refreshes_and_audits_fail_whole_or_go_through)
{
    static char *const views[] = { "joined", "totals", "floats", "left", "anti", "names", "except", "top", "over", "late" };
    fixture it;
    start(&it);
    cr_assert_eq(case_push_all(&it, NULL), IVM_OK, "%s", it.error.message);
    cr_expect_gt(limits_walk(&it, case_refresh_named, "late"), 0u);
    limits_walk(&it, case_refresh_named, "later");
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        cr_expect_gt(limits_walk(&it, audit, views[i]), 0u, "%s", views[i]);
    }
    fixture_close(&it);
}

Test(plan_memory_limit, declarations_fail_whole_or_go_through)
{
    fixture it;
    start(&it);
    cr_expect_gt(limits_walk(&it, declare, NULL), 3u);
    cr_expect_gt(limits_walk(&it, column_add, NULL), 3u);
    fixture_close(&it);
}

Test(plan_memory_limit, checkpoints_and_restores_fail_whole_or_go_through)
{
    fixture it, empty;
    tape saved = { 0 }, other = { 0 };
    case_filled_open(&it, &saved);
    cr_assert_eq(case_push_all(&it, NULL), IVM_OK, "%s", it.error.message);
    cr_expect_gt(limits_walk(&it, save, &other), 2u);
    cr_expect_gt(limits_walk(&it, case_restore_tape, &saved), 20u);
    case_assert_saved_as(&it, &saved, "restored at last");
    fixture_open(&empty);
    cr_expect_gt(limits_walk(&empty, case_restore_tape, &other), 50u);
    case_assert_saved_as(&empty, &other, "restored where nothing was");
    tape_free(&saved);
    tape_free(&other);
    fixture_close(&it);
    fixture_close(&empty);
}

/* ---- Views -------------------------------------------------------------------------------------------------------------------------------------- */

/* Made under every limit from what the engine holds on, in an engine of the tables and rows alone. */
Test(plan_memory_limit, views_are_made_whole_or_not_at_all)
{
    fixture it;
    uint32_t failed = 0;
    fixture_open(&it);
    case_declare(&it);
    case_push(&it, "d", IVM_INSERT, "1,one,null 2,two,null");
    case_push(&it, "f", IVM_INSERT, "1,1,1,1,1,true 2,2,5,1e300,1,false 3,9,5,1e-300,null,true");
    tape before = { 0 };
    case_save(&it, &before);
    for (uint64_t limit = limit_first(&it);; failed++) {
        ivm_view *view;
        ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id"), "d.name"),
                                      "s", "sum", ivm_column("f.x"));
        limit_set(&it, limit);
        ivm_status status = ivm_view_create(it.engine, "v", ivm_plan_top_k(ivm_plan_distinct(plan), 3, 0), NULL, &view, &it.error);
        cr_assert_leq(held(&it), limit);
        if (status == IVM_OK) {
            break;
        }
        cr_assert_eq(status, IVM_OUT_OF_MEMORY, "%s", it.error.message);
        limit = limit_next(&it, limit);
        limit_set(&it, 0);
        case_assert_saved_as(&it, &before, "after a view that passed the limit");
        limit = held(&it) > limit ? held(&it) : limit;
    }
    cr_expect_gt(failed, 20u);
    tape_free(&before);
    fixture_close(&it);
}

/* ---- Said in the options -------------------------------------------------------------------------------------------------------------------------- */

Test(plan_memory_limit, an_engine_is_opened_with_one)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *engine = NULL;
    ivm_error error;
    ivm_column_definition column = { "a", IVM_INT64, false };
    ivm_table_options table_options = { .version = 1, .columns = &column, .columns_count = 1 };
    ivm_table *table;
    options.memory_max = 100;
    options.threads = 2;
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OUT_OF_MEMORY, "threads take more");
    cr_assert_not_null(strstr(error.message, "limit is 100 bytes"), "%s", error.message);
    options.threads = 1;
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "t", &table_options, &table, &error), IVM_OUT_OF_MEMORY);
    cr_assert_not_null(strstr(error.message, "limit is 100 bytes"), "%s", error.message);
    cr_assert_eq(ivm_engine_memory_limit(engine, 0, &error), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "t", &table_options, &table, &error), IVM_OK);
    cr_assert_eq(ivm_engine_memory_limit(NULL, 0, &error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK);
    options = (ivm_engine_options){ 0 };
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OK);
    cr_assert_eq(ivm_table_create(engine, "t", &table_options, &table, &error), IVM_OK);
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK);
}
