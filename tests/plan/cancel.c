/* Cancelled calls: a request that comes at the n-th allocation, for every n, or from within a stream's function ends the call with nothing changed, or
 * comes too late and changes nothing of its outcome; one that the n-th look finds, for every n, always ends it. Requests from another thread:
 * tests/programs/cancel.c. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "partition_case.h"

static void cancel(void *engine)
{
    ivm_engine_cancel(engine);
}

/* Whence requests come: from an allocation, or they are found by a look (in builds that count these). */
typedef enum bell { ALLOCATION, LOOK } bell;

static void bell_set(fixture *it, bell by, uint64_t n)
{
    if (by == ALLOCATION) {
        test_allocator_ring(&it->allocator, n, cancel, it->engine);
    }
#ifndef NDEBUG
    if (by == LOOK) {
        ivm__cancel_looks_end = ivm__cancel_looks + n;
    }
#endif
}

/* Whether it rang. */
static bool bell_unset(fixture *it, bell by)
{
#ifndef NDEBUG
    if (by == LOOK) {
        bool rang = ivm__cancel_looks >= ivm__cancel_looks_end;
        ivm__cancel_looks_end = 0;
        return rang;
    }
#endif
    return by == ALLOCATION && test_allocator_unring(&it->allocator);
}

/* Asks at every one of them in the call in turn, each time in an engine restored anew. How many were cancelled. */
static uint32_t cancel_at_every(bell by, const tape *from, call *work, void *context)
{
    tape begin = *from, end = { 0 };
    fixture whole;
    uint32_t cancelled = 0;
    fixture_open(&whole);
    cr_assert_eq(case_restore(&whole, &begin), IVM_OK, "%s", whole.error.message);
    cr_assert_eq(work(&whole, context), IVM_OK, "%s", whole.error.message);
    case_save(&whole, &end);
    fixture_close(&whole);
    bool rang = true;
    for (uint64_t n = 1; rang; n++) {
        fixture it;
        fixture_open(&it);
        cr_assert_eq(case_restore(&it, &begin), IVM_OK, "%s", it.error.message);
        bell_set(&it, by, n);
        ivm_status status = work(&it, context);
        rang = bell_unset(&it, by);
        cr_assert(status == IVM_OK || (status == IVM_CANCELLED && rang), "%d %lu: %s", (int)by, (unsigned long)n, ivm_status_name(status));
        cr_assert(by == ALLOCATION || (status == IVM_CANCELLED) == rang, "look %lu: %s", (unsigned long)n, ivm_status_name(status));
        if (status == IVM_CANCELLED) {
            cancelled++;
            cr_assert_eq(it.error.status, IVM_CANCELLED);
            cr_assert_not_null(strstr(it.error.message, "ivm_engine_cancel"), "%s", it.error.message);
            case_assert_saved_as(&it, &begin, "cancelled");
            cr_assert_eq(work(&it, context), IVM_OK, "the request is over: %s", it.error.message);
        }
        case_assert_saved_as(&it, &end, "went through");
        fixture_close(&it);
    }
    tape_free(&end);
    return cancelled;
}

static uint32_t cancel_everywhere(const tape *from, call *work, void *context)
{
    return cancel_at_every(ALLOCATION, from, work, context) + cancel_at_every(LOOK, from, work, context);
}

static ivm_status audit_all(fixture *it, void *context)
{
    ivm_status status = IVM_OK;
    (void)context;
    for (ivm_view *view = it->engine->views; view && status == IVM_OK; view = view->next) {
        ivm_snapshot *differences = NULL;
        bool kept = true;
        for (uint32_t i = 0; i < view->tables_count; i++) {
            kept &= !view->tables[i]->transient;
        }
        status = kept ? ivm_audit_view(view, &differences, &it->error) : IVM_OK;
        ivm_snapshot_close(differences);
    }
    return status;
}

static ivm_status view_make(fixture *it, void *context)
{
    ivm_view *view;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .indexes = IVM_INDEXES_EAGER };
    ivm_plan *plan = ivm_plan_join(scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id");
    plan = ivm_plan_add(ivm_plan_aggregate(plan, "d.name"), "s", "sum", ivm_column("f.x"));
    (void)context;
    return ivm_view_create(it->engine, "new", ivm_plan_top_k(ivm_plan_distinct(plan), 3, 0), &options, &view, &it->error);
}

Test(plan_cancel, a_push_is_undone_or_done)
{
    tape saved = case_filled();
    cr_expect_gt(cancel_everywhere(&saved, case_push_all, NULL), 50u);
    tape_free(&saved);
}

Test(plan_cancel, a_refresh_is_undone_or_done)
{
    tape saved = case_filled();
    cr_expect_gt(cancel_everywhere(&saved, case_refresh_named, "late"), 3u);
    tape_free(&saved);
}

Test(plan_cancel, an_audit_leaves_nothing)
{
    tape saved = case_filled();
    cr_expect_gt(cancel_everywhere(&saved, audit_all, NULL), 100u);
    tape_free(&saved);
}

Test(plan_cancel, a_view_is_made_or_not)
{
    tape saved = case_filled();
    cr_expect_gt(cancel_everywhere(&saved, view_make, NULL), 30u);
    tape_free(&saved);
}

Test(plan_cancel, a_restore_is_done_or_not)
{
    fixture it;
    tape saved = case_filled(), other = { 0 };
    case_program_open(&it);
    case_push(&it, "d", IVM_INSERT, "5,five,null");
    case_save(&it, &other);
    fixture_close(&it);
    cr_expect_gt(cancel_everywhere(&other, case_restore_tape, &saved), 50u);
    tape_free(&saved);
    tape_free(&other);
}

/* ---- From a stream's function --------------------------------------------------------------------------------------------------------------- */

/* A tape whose n-th call asks. */
typedef struct ringing {
    tape tape;
    ivm_engine *engine;
    uint64_t calls, n;
} ringing;

static ivm_status write_ringing(void *context, const void *bytes, size_t size)
{
    ringing *it = context;
    if (++it->calls == it->n) {
        ivm_engine_cancel(it->engine);
    }
    return tape_write(&it->tape, bytes, size);
}

static ivm_status read_ringing(void *context, void *bytes, size_t size, size_t *got)
{
    ringing *it = context;
    if (++it->calls == it->n) {
        ivm_engine_cancel(it->engine);
    }
    return tape_read(&it->tape, bytes, size, got);
}

Test(plan_cancel, a_checkpoint_ends_wherever_it_is)
{
    fixture it;
    tape saved = case_filled();
    fixture_open(&it);
    cr_assert_eq(case_restore(&it, &saved), IVM_OK);
    uint64_t n = 0;
    for (ivm_status status = IVM_CANCELLED; status != IVM_OK;) {
        ringing to = { .engine = it.engine, .n = ++n };
        ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
        status = ivm_checkpoint(it.engine, write_ringing, &to, &options, &it.error);
        cr_assert(status == IVM_OK || (status == IVM_CANCELLED && to.calls == n), "call %lu: %s", (unsigned long)n,
                  ivm_status_name(status));
        cr_assert(status == IVM_CANCELLED || to.calls <= n, "only the last call comes too late");
        tape_free(&to.tape);
    }
    cr_expect_gt(n, 20u);
    case_assert_saved_as(&it, &saved, "after all that");
    tape_free(&saved);
    fixture_close(&it);
}

Test(plan_cancel, a_restore_ends_wherever_it_is)
{
    fixture it;
    tape saved = case_filled(), own = { 0 };
    case_program_open(&it);
    case_save(&it, &own);
    ivm_status status = IVM_CANCELLED;
    for (uint64_t n = 1; status != IVM_OK; n++) {
        ringing from = { .engine = it.engine, .n = n, .tape = saved };
        status = ivm_restore(it.engine, read_ringing, &from, &it.error);
        cr_assert(status == IVM_CANCELLED || (status == IVM_OK && from.calls < n), "call %lu: %s", (unsigned long)n,
                  ivm_status_name(status));
        case_assert_saved_as(&it, status == IVM_OK ? &saved : &own, "restored, or not");
    }
    tape_free(&saved);
    tape_free(&own);
    fixture_close(&it);
}

static ivm_status part_write_ringing(void *context, uint32_t partition, const void *bytes, size_t size)
{
    (void)partition;
    return write_ringing(context, bytes, size);
}

/* An engine of partitions with rows in all of them. */
static void parts_filled(fixture *it)
{
    world rows = { .state = 7 };
    parts_open(it);
    for (int i = 0; i < 100; i++) {
        change one = world_next(&rows);
        change_push(it, &one);
    }
}

Test(plan_cancel, a_checkpoint_by_partition_ends_wherever_it_is)
{
    fixture it;
    tape before = { 0 };
    parts_filled(&it);
    case_save(&it, &before);
    uint64_t n = 0;
    for (ivm_status status = IVM_CANCELLED; status != IVM_OK;) {
        ringing to = { .engine = it.engine, .n = ++n };
        ivm_partition_range all = { 0, PARTS, true };
        ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
        status = ivm_checkpoint_partitions(it.engine, all, part_write_ringing, &to, &options, &it.error);
        cr_assert(status == IVM_OK || (status == IVM_CANCELLED && to.calls <= n + 1), "call %lu: %s", (unsigned long)n,
                  ivm_status_name(status));
        cr_assert(status == IVM_CANCELLED || to.calls <= n, "only the last call comes too late");
        tape_free(&to.tape);
    }
    cr_expect_gt(n, 2 * PARTS);
    case_assert_saved_as(&it, &before, "after all that");
    tape_free(&before);
    fixture_close(&it);
}

Test(plan_cancel, a_restore_of_partitions_ends_wherever_it_is)
{
    fixture from, it;
    streams saved = { .compression = IVM_COMPRESSION_NONE };
    tape own = { 0 };
    parts_filled(&from);
    parts_save(&from, &saved, 0, PARTS, true);
    parts_open(&it);
    case_save(&it, &own);
    tape *list[] = { &saved.shared, &saved.part[1] };
    for (int which = 0; which < 2; which++) {
        ivm_status status = IVM_CANCELLED;
        for (uint64_t n = 1; status != IVM_OK; n++) {
            ivm_restoring *restore;
            ringing ring = { .engine = it.engine, .n = n, .tape = *list[which] };
            cr_assert_eq(ivm_restore_open(it.engine, &restore, &it.error), IVM_OK, "%s", it.error.message);
            ring.tape.at = 0;
            status = ivm_restore_read(restore, read_ringing, &ring, &it.error);
            cr_assert(status == IVM_CANCELLED || (status == IVM_OK && ring.calls <= n + 1), "call %lu: %s", (unsigned long)n,
                      ivm_status_name(status));
            cr_assert_eq(ivm_restore_close(restore, &it.error), IVM_OK);
            case_assert_saved_as(&it, &own, "given up");
        }
    }
    streams_free(&saved);
    tape_free(&own);
    fixture_close(&from);
    fixture_close(&it);
}

/* ---- Whom it does not end ---------------------------------------------------------------------------------------------------------------------- */

static void cancel_told(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)view, (void)changes;
    ivm_engine_cancel(context);
}

Test(plan_cancel, only_what_is_under_way)
{
    fixture it;
    fixture_open(&it);
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .changed = cancel_told, .changed_context = it.engine };
    ivm_table *table = fixture_table(&it, "t", "a int64", NULL);
    ivm_engine_cancel(it.engine);
    fixture_make_with(&it, "v", scan_of("t", NULL), &options);
    ivm_engine_cancel(it.engine);
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, "1 2"), IVM_OK, "%s", it.error.message);
    cr_assert_eq(fixture_push(&it, table, IVM_INSERT, "3"), IVM_OK, "a callback of the push before asked");
    ivm_engine_cancel(NULL);
    fixture_close(&it);
}
