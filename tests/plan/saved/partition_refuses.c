/* Checkpoints by partition that are refused: catalogs of which no partition can be told apart, streams that do not go together. The message names what
 * stands against it, and nothing has changed. */
#include "partition_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const ivm_table_options partitioned = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part" };
static const ivm_table_options transient = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part", .transient = true };

static void assert_says(const fixture *it, const char *part)
{
    cr_assert_not_null(strstr(it->error.message, part), "\"%s\" is not in \"%s\"", part, it->error.message);
    cr_assert_null(strchr(it->error.message, '\n'));
}

/* ---- Catalogs ------------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status nothing_written(void *context, uint32_t partition, const void *bytes, size_t size)
{
    (void)context, (void)partition, (void)bytes, (void)size;
    cr_assert(false, "something is written of a catalog that is refused");
    return IVM_IO;
}

/* What `make` declares cannot be written by partition, because of these two; closes the fixture. */
static void refuses(void (*make)(fixture *), const char *part, const char *other)
{
    fixture it;
    ivm_partition_range range = { 0, 2, true };
    fixture_open(&it);
    make(&it);
    cr_assert_eq(ivm_checkpoint_partitions(it.engine, range, nothing_written, NULL, NULL, &it.error), IVM_UNSUPPORTED, "%s", part);
    assert_says(&it, part);
    assert_says(&it, other);
    fixture_close(&it);
}

static void none_partitioned(fixture *it)
{
    fixture_table(it, "t", "part int64", NULL);
}

static void seen_declare(fixture *it)
{
    fixture_table_like(it, "seen", "part int64; n int64; d int64", &transient);
}

static void seen_without_partition(fixture *it)
{
    fixture_table_like(it, "t", "part int64", &partitioned);
    fixture_table_like(it, "seen", "part int64", &(ivm_table_options){ .transient = true });
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(scan_of("seen", NULL), "part"), "c"));
}

static void seen_negative(fixture *it)
{
    ivm_table_options options = transient;
    options.allow_negative = true;
    fixture_table_like(it, "seen", "part int64", &options);
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(scan_of("seen", NULL), "part"), "c"));
}

static void group_of_another_column(fixture *it)
{
    seen_declare(it);
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(scan_of("seen", NULL), "n"), "c"));
}

static void group_of_no_column(fixture *it)
{
    seen_declare(it);
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(scan_of("seen", NULL), NULL), "c"));
}

static void group_that_is_computed(fixture *it)
{
    seen_declare(it);
    ivm_plan *plan = ivm_plan_group(ivm_plan_aggregate(scan_of("seen", NULL), NULL), "half", call_of("/", "part", 2));
    fixture_make(it, "v", ivm_plan_count(plan, "c"));
}

static void rows_without_partition(fixture *it)
{
    seen_declare(it);
    fixture_make(it, "v", ivm_plan_project(scan_of("seen", NULL), "n, d"));
}

static void rows_that_are_distinct(fixture *it)
{
    seen_declare(it);
    fixture_make(it, "v", ivm_plan_distinct(ivm_plan_project(scan_of("seen", NULL), "part, n")));
}

static void rows_that_are_first(fixture *it)
{
    seen_declare(it);
    fixture_make(it, "v", ivm_plan_order_by(ivm_plan_top_k(scan_of("seen", NULL), 1, 0), ivm_column("n"), false, false));
}

static void rows_beside_kept_ones(fixture *it)
{
    seen_declare(it);
    fixture_table_like(it, "t", "part int64; n int64", &partitioned);
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("seen", NULL), "part, n"), scan_of("t", NULL) };
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(ivm_plan_set(IVM_UNION_ALL, inputs, 2), "part"), "c"));
}

static void parents_declare(fixture *it, ivm_trust trust, bool append_only)
{
    seen_declare(it);
    ivm_table *d = fixture_table_like(it, "d", "id int64; e int64", &(ivm_table_options){ .key = "id", .append_only = append_only });
    ivm_table *seen = fixture_table_find(it, "seen");
    fixture_fact(it, seen, "d", d, "id", trust);
}

static void tracked_child(fixture *it)
{
    parents_declare(it, IVM_TRACKED, false);
}

static void tracked_child_of_no_partition(fixture *it)
{
    fixture_table_like(it, "t", "part int64", &partitioned);
    ivm_table *seen = fixture_table_like(it, "seen", "d int64", &(ivm_table_options){ .transient = true });
    ivm_table *d = fixture_table_like(it, "d", "id int64", &(ivm_table_options){ .key = "id", .append_only = true });
    fixture_fact(it, seen, "d", d, "id", IVM_TRACKED);
}

static void enforced_child(fixture *it)
{
    parents_declare(it, IVM_ENFORCED, false);
}

Test(plan_partition_refuses, catalogs_of_which_no_partition_can_be_told)
{
    refuses(none_partitioned, "no table has a partition", "partition");
    refuses(seen_without_partition, "view v", "table seen");
    refuses(seen_negative, "view v", "table seen");
    refuses(group_of_another_column, "view v", "table seen");
    refuses(group_of_no_column, "view v", "table seen");
    refuses(group_that_is_computed, "view v", "table seen");
    refuses(rows_without_partition, "view v", "table seen");
    refuses(rows_that_are_distinct, "view v", "table seen");
    refuses(rows_that_are_first, "view v", "table seen");
    refuses(rows_beside_kept_ones, "view v", "table seen");
    refuses(tracked_child, "tracked", "seen to d");
    refuses(tracked_child_of_no_partition, "tracked", "seen to d");
    refuses(enforced_child, "enforced", "seen to d");
}

/* What is equal to the partition is as good. */
static void equal_to_the_partition(fixture *it)
{
    ivm_table *shard = fixture_table_like(it, "shard", "id int64; name string", &(ivm_table_options){ .key = "id", .append_only = true });
    seen_declare(it);
    ivm_table *seen = fixture_table_find(it, "seen");
    fixture_fact(it, seen, "part", shard, "id", IVM_RELY);
    ivm_plan *join = ivm_plan_join(scan_of("seen", NULL), scan_of("shard", NULL), "seen.part = shard.id");
    fixture_make(it, "v", ivm_plan_count(ivm_plan_aggregate(ivm_plan_project(join, "shard.id, name"), "id, name"), "c"));
    fixture_make(it, "rows", ivm_plan_project(ivm_plan_filter(scan_of("seen", NULL), call_of(">", "n", 1)), "n, part"));
}

Test(plan_partition_refuses, a_column_equal_to_the_partition_will_do)
{
    fixture it, other;
    streams saved = { 0 };
    fixture_open(&it);
    equal_to_the_partition(&it);
    case_push(&it, "shard", IVM_INSERT, "0,a 1,b 2,c");
    case_push(&it, "seen", IVM_INSERT, "1,1,1 1,2,1 2,3,1");
    parts_save(&it, &saved, 0, PARTS, true);
    fixture_open(&other);
    cr_assert_eq(parts_restore_all(&other, &saved), IVM_OK, "%s", other.error.message);
    ivm_view *view = fixture_view_find(&other, "v");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,b,2 1*2,c,1");
    case_push(&other, "seen", IVM_INSERT, "1,5,1");
    case_push(&other, "seen", IVM_DELETE, "2,3,1");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,b,3");
    view = fixture_view_find(&other, "rows");
    cr_expect_str_eq(fixture_view(&other, view), "1*2,1 1*5,1");
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

Test(plan_partition_refuses, arguments_that_are_none)
{
    fixture it;
    ivm_restoring *restore = NULL;
    fixture_open(&it);
    fixture_table_like(&it, "t", "part int64", &partitioned);
    ivm_partition_range wrong[] = { { 3, 2, false }, { 0, IVM_PARTITIONS_MAX + 1, false } }, right = { 0, 1, false };
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(ivm_checkpoint_partitions(it.engine, wrong[i], nothing_written, NULL, NULL, &it.error), IVM_INVALID_ARGUMENT);
    }
    cr_expect_eq(ivm_checkpoint_partitions(it.engine, right, NULL, NULL, NULL, &it.error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_checkpoint_partitions(NULL, right, nothing_written, NULL, NULL, &it.error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_restore_open(NULL, &restore, &it.error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_restore_open(it.engine, NULL, &it.error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_restore_read(NULL, tape_read, NULL, &it.error), IVM_INVALID_ARGUMENT);
    cr_expect_eq(ivm_restore_finish(NULL, &it.error), IVM_INVALID_ARGUMENT);
    fixture_close(&it);
}

/* ---- Streams that do not go together ------------------------------------------------------------------------------------------------------------------ */

typedef struct session {
    fixture *it;
    ivm_restoring *restore;
    tape before;
} session;

static session session_open(fixture *it)
{
    session one = { .it = it };
    case_save(it, &one.before);
    cr_assert_eq(ivm_restore_open(it->engine, &one.restore, &it->error), IVM_OK, "%s", it->error.message);
    return one;
}

static void session_takes(session *one, tape *stream)
{
    cr_assert_eq(parts_read(one->restore, stream, &one->it->error), IVM_OK, "%s", one->it->error.message);
}

/* The stream is refused, then all is; the engine is what it was. */
static void session_refuses(session *one, tape *stream, ivm_status status, const char *part)
{
    fixture *it = one->it;
    ivm_status given = parts_read(one->restore, stream, &it->error);
    cr_assert_eq(given, status, "%s: %s", ivm_status_name(given), it->error.message);
    assert_says(it, part);
    cr_assert_eq(parts_read(one->restore, stream, &it->error), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_restore_finish(one->restore, &it->error), IVM_INVALID_ARGUMENT);
    case_assert_saved_as(it, &one->before, part);
    tape_free(&one->before);
}

/* The end is refused. */
static void session_ends(session *one, ivm_status status, const char *part)
{
    ivm_status given = ivm_restore_finish(one->restore, &one->it->error);
    cr_assert_eq(given, status, "%s: %s", ivm_status_name(given), one->it->error.message);
    assert_says(one->it, part);
    case_assert_saved_as(one->it, &one->before, part);
    tape_free(&one->before);
}

Test(plan_partition_refuses, streams_twice_or_missing_or_of_a_whole)
{
    fixture it, empty;
    streams saved = { 0 };
    tape whole = { 0 };
    parts_open(&it);
    case_push(&it, "f", IVM_INSERT, "1,2,1,5,0.5");
    parts_save(&it, &saved, 0, PARTS, true);
    case_save(&it, &whole);
    session one = session_open(&it);
    session_takes(&one, &saved.part[3]);
    session_takes(&one, &saved.part[2]);
    session_refuses(&one, &saved.part[3], IVM_ALREADY_EXISTS, "partition 3");
    one = session_open(&it);
    session_takes(&one, &saved.shared);
    session_refuses(&one, &saved.shared, IVM_ALREADY_EXISTS, "shared stream");
    one = session_open(&it);
    session_takes(&one, &saved.part[3]);
    session_ends(&one, IVM_INVALID_ARGUMENT, "shared stream");
    one = session_open(&it);
    session_refuses(&one, &whole, IVM_INVALID_ARGUMENT, "whole");
    fixture_open(&empty);
    one = session_open(&empty);
    session_refuses(&one, &saved.part[4], IVM_INVALID_ARGUMENT, "partition 4");
    saved.part[4].at = 0;
    cr_assert_eq(ivm_restore(empty.engine, tape_read, &saved.part[4], &empty.error), IVM_INVALID_ARGUMENT);
    assert_says(&empty, "ivm_restore_open");
    tape_free(&whole);
    streams_free(&saved);
    fixture_close(&empty);
    fixture_close(&it);
}

Test(plan_partition_refuses, streams_of_another_catalog)
{
    fixture it, other;
    streams saved = { 0 };
    parts_open(&it);
    parts_save(&it, &saved, 0, PARTS, true);
    fixture_open(&other);
    parts_declare(&other);
    session one = session_open(&other);
    session_refuses(&one, &saved.part[1], IVM_INVALID_ARGUMENT, "partition 1");
    one = session_open(&other);
    session_refuses(&one, &saved.shared, IVM_INVALID_ARGUMENT, "views");
    fixture_close(&other);
    fixture_open(&other);
    fixture_table(&other, "d", "id int64; name string", "id");
    ivm_table_options options = partitioned;
    options.key = "id";
    fixture_table_like(&other, "f", "id int64; part int64; d int64; n int64; x float64", &options);
    one = session_open(&other);
    session_refuses(&one, &saved.shared, IVM_INVALID_ARGUMENT, "table d");
    fixture_close(&other);
    streams_free(&saved);
    fixture_close(&it);
}

/* Two engines have the key in partitions of their own. */
Test(plan_partition_refuses, a_key_in_two_partitions)
{
    fixture it, other;
    streams saved = { 0 };
    parts_open(&it);
    parts_open(&other);
    case_push(&it, "f", IVM_INSERT, "1,2,1,5,0.5 7,2,1,5,0.5");
    case_push(&other, "f", IVM_INSERT, "5,4,1,5,0.5 7,4,1,5,0.5");
    case_push(&it, "p", IVM_INSERT, "2,7,a");
    case_push(&other, "p", IVM_INSERT, "4,7,a");
    parts_save(&it, &saved, 0, 3, true);
    parts_save(&other, &saved, 3, PARTS, false);
    session one = session_open(&other);
    session_takes(&one, &saved.part[4]);
    session_takes(&one, &saved.shared);
    session_refuses(&one, &saved.part[2], IVM_DUPLICATE_KEY, "table f: key (7) is in partition 4 and in partition 2");
    case_push(&other, "f", IVM_DELETE_KEY, "7"); /* the other's key names the partition */
    parts_save(&other, &saved, 3, PARTS, false);
    cr_assert_eq(parts_restore_all(&it, &saved), IVM_OK, "%s", it.error.message);
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

static void references_declare(fixture *it)
{
    ivm_table_options options = partitioned;
    options.key = "id";
    fixture_open(it);
    ivm_table *p = fixture_table_like(it, "p", "part int64; id int64", &options);
    ivm_table *c = fixture_table_like(it, "c", "part int64; p int64", &partitioned);
    fixture_fact(it, c, "p", p, "id", IVM_ENFORCED);
    fixture_make(it, "v", ivm_plan_project(ivm_plan_join(scan_of("c", NULL), scan_of("p", NULL), "c.p = p.id"), "p.id"));
}

/* A child may have its parent in another partition: all must be there in the end, in whatever order they come. */
Test(plan_partition_refuses, a_child_whose_parent_is_in_a_partition_that_is_missing)
{
    fixture it, other;
    streams saved = { 0 };
    references_declare(&it);
    references_declare(&other);
    case_push(&it, "p", IVM_INSERT, "5,1 1,2");
    case_push(&it, "c", IVM_INSERT, "2,1 1,2");
    parts_save(&it, &saved, 0, PARTS, true);
    session one = session_open(&other);
    session_takes(&one, &saved.part[2]);
    session_takes(&one, &saved.shared);
    session_takes(&one, &saved.part[1]);
    session_ends(&one, IVM_FK_VIOLATION, "table c");
    cr_assert_eq(parts_restore(&other, &saved, (uint32_t[]){ 2, 1, 5 }, 3), IVM_OK, "%s", other.error.message);
    ivm_view *view = fixture_view_find(&other, "v");
    cr_expect_str_eq(fixture_view(&other, view), "1*1 1*2");
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

static void sums_declare(fixture *it)
{
    fixture_open(it);
    fixture_table_like(it, "t", "part int64; n int64", &partitioned);
    fixture_make(it, "rows", ivm_plan_filter(scan_of("t", NULL), call_of(">", "n", 0)));
    fixture_make(it, "v", ivm_plan_add(ivm_plan_aggregate(scan_of("t", NULL), NULL), "s", "sum", ivm_column("n")));
}

/* A view that overflows once two partitions are together. */
Test(plan_partition_refuses, a_view_that_cannot_be_filled)
{
    fixture it, other;
    streams saved = { 0 };
    sums_declare(&it);
    sums_declare(&other);
    case_push(&it, "t", IVM_INSERT, "1,9000000000000000000");
    case_push(&other, "t", IVM_INSERT, "2,9000000000000000000");
    parts_save(&it, &saved, 0, 2, true);
    parts_save(&other, &saved, 2, PARTS, false);
    session one = session_open(&it);
    session_takes(&one, &saved.shared);
    session_takes(&one, &saved.part[1]);
    session_takes(&one, &saved.part[2]);
    session_ends(&one, IVM_OVERFLOW, "view v");
    case_push(&it, "t", IVM_INSERT, "3,5");
    fixture empty;
    fixture_open(&empty);
    one = session_open(&empty);
    session_takes(&one, &saved.shared);
    session_takes(&one, &saved.part[1]);
    session_takes(&one, &saved.part[2]);
    session_ends(&one, IVM_OVERFLOW, "view v");
    fixture_close(&empty);
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}
