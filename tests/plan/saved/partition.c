/* Checkpoints by partition: engines that share the partitions of one program write them, others take them up, in any number and order; all together they
 * are the one engine that was pushed everything. */
#include "partition_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSION "0,zero,1 1,one,2 2,two,null 3,three,8 4,four,9 5,five,10 6,six,11 7,null,12 8,eight,8 9,nine,13"

/* ---- From any number to any number -------------------------------------------------------------------------------------------------------------- */

/* Engines among which the partitions are dealt. */
typedef struct hosts {
    fixture host[PARTS];
    uint32_t count;
    uint32_t owner[PARTS]; /* by partition */
} hosts;

static void hosts_deal(hosts *it, world *chance)
{
    it->count = 1 + world_draw(chance, PARTS);
    for (uint32_t p = 0; p < PARTS; p++) {
        it->owner[p] = world_draw(chance, it->count);
    }
}

static void hosts_push(hosts *it, const change *one)
{
    for (uint32_t h = 0; h < it->count; h++) {
        if (one->partition == UINT32_MAX || it->owner[one->partition] == h) {
            change_push(&it->host[h], one);
        }
    }
}

static void hosts_save(hosts *it, streams *to, world *chance)
{
    uint32_t shares = world_draw(chance, it->count);
    for (uint32_t p = 0; p < PARTS; p++) {
        to->sort_bytes = world_draw(chance, 2) ? 1 : 0;
        parts_save(&it->host[it->owner[p]], to, p, p + 1, false);
    }
    parts_save(&it->host[shares], to, 0, 0, true);
}

static void hosts_close(hosts *it)
{
    for (uint32_t h = 0; h < it->count; h++) {
        fixture_close(&it->host[h]);
    }
}

/* The partitions of a host in some order, into an empty engine or one with the catalog. */
static void host_restore(hosts *it, uint32_t h, streams *from, world *chance)
{
    uint32_t parts[PARTS], count = 0;
    for (uint32_t p = 0; p < PARTS; p++) {
        if (it->owner[p] == h) {
            uint32_t at = world_draw(chance, count + 1);
            parts[count++] = parts[at];
            parts[at] = p;
        }
    }
    world_draw(chance, 2) ? parts_open(&it->host[h]) : fixture_open(&it->host[h]);
    cr_assert_eq(parts_restore(&it->host[h], from, parts, count), IVM_OK, "%s", it->host[h].error.message);
}

static void assert_equal(fixture *it, fixture *other, const char *what)
{
    tape saved = { 0 };
    parts_refresh(it);
    parts_refresh(other);
    case_save(it, &saved);
    char *a = parts_contents(it), *b = parts_contents(other);
    cr_assert_str_eq(a, b, "%s:\n%s\n%s", what, a, b);
    case_assert_saved_as(other, &saved, what);
    free(a);
    free(b);
    tape_free(&saved);
}

static void assert_same_streams(const streams *a, const streams *b)
{
    cr_assert_eq(a->shared.size, b->shared.size);
    cr_assert_eq(memcmp(a->shared.bytes, b->shared.bytes, a->shared.size), 0);
    for (uint32_t p = 0; p < PARTS; p++) {
        cr_assert_eq(a->part[p].size, b->part[p].size, "partition %u", p);
        cr_assert_eq(memcmp(a->part[p].bytes, b->part[p].bytes, a->part[p].size), 0, "partition %u", p);
    }
}

/* All partitions in one engine are as if it had been pushed everything, and so are the streams that it writes. */
static void assert_whole(fixture *all, streams *saved)
{
    fixture one;
    streams own = { 0 }, restored = { .sort_bytes = 1000 };
    fixture_open(&one);
    cr_assert_eq(parts_restore_all(&one, saved), IVM_OK, "%s", one.error.message);
    assert_equal(all, &one, "all partitions in one engine");
    parts_save(all, &own, 0, PARTS, true);
    parts_save(&one, &restored, 0, PARTS, true);
    assert_same_streams(&own, &restored);
    streams_free(&own);
    streams_free(&restored);
    fixture_close(&one);
}

static void rescale(uint64_t seed)
{
    world chance = { .state = seed };
    hosts now = { 0 };
    fixture all;
    streams saved = { 0 };
    parts_open(&all);
    case_push(&all, "d", IVM_INSERT, DIMENSION);
    hosts_deal(&now, &chance);
    for (uint32_t h = 0; h < now.count; h++) {
        parts_open(&now.host[h]);
        case_push(&now.host[h], "d", IVM_INSERT, DIMENSION);
    }
    for (int stage = 0; stage < 3; stage++) {
        for (uint32_t n = 20 + world_draw(&chance, 40); n > 0; n--) {
            change one = world_next(&chance);
            change_push(&all, &one);
            hosts_push(&now, &one);
        }
        hosts_save(&now, &saved, &chance);
        assert_whole(&all, &saved);
        hosts_close(&now);
        hosts_deal(&now, &chance);
        for (uint32_t h = 0; h < now.count; h++) {
            host_restore(&now, h, &saved, &chance);
        }
    }
    hosts_close(&now);
    streams_free(&saved);
    fixture_close(&all);
}

Test(plan_partition, from_any_number_of_engines_to_any_other)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        rescale(seed);
    }
}

/* An engine that was given some partitions is as one that was pushed their rows alone. */
Test(plan_partition, some_partitions_are_as_if_no_others_had_been)
{
    fixture all, some, pushed;
    streams saved = { 0 };
    world chance = { .state = 99 };
    parts_open(&all);
    parts_open(&pushed);
    case_push(&all, "d", IVM_INSERT, DIMENSION);
    case_push(&pushed, "d", IVM_INSERT, DIMENSION);
    for (int i = 0; i < 200; i++) {
        change one = world_next(&chance);
        change_push(&all, &one);
        if (one.partition == UINT32_MAX || one.partition % 2 == 0) {
            change_push(&pushed, &one);
        }
    }
    parts_save(&all, &saved, 0, PARTS, true);
    parts_open(&some);
    case_push(&some, "f", IVM_INSERT, "1,1,1,1,1"); /* goes */
    cr_assert_eq(parts_restore(&some, &saved, (uint32_t[]){ 4, 0, 2 }, 3), IVM_OK, "%s", some.error.message);
    assert_equal(&pushed, &some, "three partitions");
    for (int i = 0; i < 50; i++) {
        change one = world_next(&chance);
        if (one.partition == UINT32_MAX || one.partition % 2 == 0) {
            change_push(&pushed, &one);
            change_push(&some, &one);
        }
    }
    assert_equal(&pushed, &some, "gone on");
    cr_assert_eq(parts_restore(&some, &saved, NULL, 0), IVM_OK, "%s", some.error.message);
    for (uint32_t p = 0; p < PARTS; p++) {
        saved.part[p].size = 0;
    }
    parts_save(&some, &saved, 0, PARTS, true);
    cr_assert_eq(parts_restore_all(&pushed, &saved), IVM_OK, "%s", pushed.error.message);
    assert_equal(&some, &pushed, "no partition at all");
    streams_free(&saved);
    fixture_close(&all);
    fixture_close(&some);
    fixture_close(&pushed);
}

/* ---- Streams and what they say -------------------------------------------------------------------------------------------------------------------- */

Test(plan_partition, streams_tell_what_they_are)
{
    fixture it;
    streams saved = { 0 };
    ivm_batch *batch = NULL;
    ivm_checkpoint_info info = { .version = IVM_CHECKPOINT_INFO_VERSION };
    uint64_t fingerprint = 0;
    parts_open(&it);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, "here", 4), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK);
    parts_save(&it, &saved, 2, 4, true);
    cr_expect_eq(saved.part[1].size, 0u);
    cr_expect_eq(saved.part[4].size, 0u);
    cr_assert_eq(ivm_engine_fingerprint(it.engine, &fingerprint, &it.error), IVM_OK);
    cr_assert_eq(ivm_checkpoint_inspect(tape_read, &saved.part[3], &info, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(info.form, IVM_CHECKPOINT_PARTITION);
    cr_expect_eq(info.partition, 3u);
    cr_expect_eq(info.fingerprint, fingerprint);
    cr_expect_eq(info.position_size, 4u);
    cr_expect_eq(memcmp(info.position, "here", 4), 0);
    cr_assert_eq(ivm_checkpoint_inspect(tape_read, &saved.shared, &info, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(info.form, IVM_CHECKPOINT_SHARED);
    tape whole = { 0 };
    case_save(&it, &whole);
    cr_assert_eq(ivm_checkpoint_inspect(tape_read, &whole, &info, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(info.form, IVM_CHECKPOINT_WHOLE);
    tape_free(&whole);
    fixture other;
    char position[8];
    size_t size = 0;
    fixture_open(&other);
    cr_assert_eq(parts_restore(&other, &saved, (uint32_t[]){ 3 }, 1), IVM_OK, "%s", other.error.message);
    cr_assert_eq(ivm_engine_position(other.engine, position, sizeof position, &size, &other.error), IVM_OK);
    cr_expect_eq(size, 4u);
    cr_expect_eq(memcmp(position, "here", 4), 0);
    fixture_close(&other);
    streams_free(&saved);
    fixture_close(&it);
}

Test(plan_partition, compressed_it_is_the_same)
{
    fixture it, other;
    streams saved = { .compression = IVM_COMPRESSION_ZSTD };
    world chance = { .state = 5 };
    parts_open(&it);
    case_push(&it, "d", IVM_INSERT, DIMENSION);
    for (int i = 0; i < 100; i++) {
        change one = world_next(&chance);
        change_push(&it, &one);
    }
    ivm_status status = parts_save_range(&it, &saved, 0, PARTS, true);
    if (status != IVM_UNSUPPORTED) {
        cr_assert_eq(status, IVM_OK, "%s", it.error.message);
        fixture_open(&other);
        cr_assert_eq(parts_restore_all(&other, &saved), IVM_OK, "%s", other.error.message);
        assert_equal(&it, &other, "compressed");
        fixture_close(&other);
    }
    streams_free(&saved);
    fixture_close(&it);
}

/* More rows of a partition than a chunk has, and just as many. */
Test(plan_partition, chunks_end_where_partitions_do)
{
    fixture it, other;
    streams saved = { 0 };
    char rows[1024];
    fixture_open(&it);
    ivm_table *t = fixture_table_like(&it, "t", "part int64; n int64",
                                      &(ivm_table_options){ .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part", .key = "n" });
    ivm_view *v = fixture_make(&it, "v", ivm_plan_count(ivm_plan_aggregate(scan_of("t", NULL), "part"), "c"));
    for (uint32_t n = 0; n < 3300;) {
        size_t used = 0;
        for (uint32_t i = 0; i < 50; i++, n++) {
            uint32_t part = n < 1024 ? 1 : n < 3200 ? 2 : 4;
            used += (size_t)snprintf(rows + used, sizeof rows - used, "%s%u,%u", i ? " " : "", part, 7 * n % 3301);
        }
        cr_assert_eq(fixture_push(&it, t, IVM_INSERT, rows), IVM_OK, "%s", it.error.message);
    }
    cr_assert_str_eq(fixture_view(&it, v), "1*1,1024 1*2,2176 1*4,100");
    for (saved.sort_bytes = 1; saved.sort_bytes < 1 << 20; saved.sort_bytes *= 64) {
        tape whole = { 0 };
        parts_save(&it, &saved, 0, PARTS, true);
        fixture_open(&other);
        cr_assert_eq(parts_restore_all(&other, &saved), IVM_OK, "%s", other.error.message);
        case_save(&it, &whole);
        case_assert_saved_as(&other, &whole, "restored");
        tape_free(&whole);
        fixture_close(&other);
    }
    streams_free(&saved);
    fixture_close(&it);
}

typedef struct overtaken {
    fixture *it;
    ivm_table *table;
    streams to;
    uint32_t pushed;
} overtaken;

static void *push_both(void *context)
{
    overtaken *now = context;
    now->pushed += fixture_push(now->it, now->table, IVM_DELETE, "1,2") == IVM_OK;
    now->pushed += fixture_push(now->it, now->table, IVM_INSERT, "2,3 1,4") == IVM_OK;
    return NULL;
}

/* Another thread pushes as often as it may: while the lock is held it would be waited for in vain. */
static ivm_status push_and_write(void *context, uint32_t partition, const void *bytes, size_t size)
{
    overtaken *now = context;
    if (!atomic_load(&now->it->engine->stepping)) {
        pthread_t other;
        cr_assert_eq(pthread_create(&other, NULL, push_both, now), 0);
        cr_assert_eq(pthread_join(other, NULL), 0);
    }
    return tape_write(partition == IVM_PARTITION_SHARED ? &now->to.shared : &now->to.part[partition], bytes, size);
}

Test(plan_partition, streams_are_of_one_moment_whatever_is_pushed_meanwhile)
{
    fixture it;
    streams saved = { 0 };
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    fixture_open(&it);
    overtaken now = { .it = &it };
    now.table = fixture_table_like(&it, "t", "part int64; n int64",
                                   &(ivm_table_options){ .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part" });
    fixture_table(&it, "u", "n int64", NULL);
    fixture_make(&it, "v", ivm_plan_distinct(scan_of("t", NULL)));
    case_push(&it, "t", IVM_INSERT, "1,2 1,2 2,2 3,5");
    parts_save(&it, &saved, 0, PARTS, true);
    ivm_partition_range range = { 0, PARTS, true };
    cr_assert_eq(ivm_checkpoint_partitions(it.engine, range, push_and_write, &now, &options, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_gt(now.pushed, 10u);
    assert_same_streams(&saved, &now.to);
    streams_free(&now.to);
    streams_free(&saved);
    fixture_close(&it);
}

/* Views were made for other columns than there are now. */
Test(plan_partition, columns_may_have_come_and_gone)
{
    fixture it;
    streams saved = { 0 };
    parts_open(&it);
    case_push(&it, "d", IVM_INSERT, DIMENSION);
    ivm_table *seen = fixture_table_find(&it, "seen"), *f = fixture_table_find(&it, "f");
    cr_assert_eq(ivm_table_column_add(seen, &(ivm_column_definition){ "more", IVM_STRING, false }, &it.error), IVM_OK);
    cr_assert_eq(ivm_table_column_add(f, &(ivm_column_definition){ "more", IVM_STRING, false }, &it.error), IVM_OK);
    cr_assert_eq(ivm_table_column_rename(seen, "part", "shard", &it.error), IVM_OK);
    cr_assert_eq(ivm_table_column_rename(f, "part", "n2", &it.error), IVM_OK);
    fixture_make(&it, "of_shards", ivm_plan_aggregate(ivm_plan_project(scan_of("f", NULL), "n2, more"), "more, n2"));
    case_push(&it, "seen", IVM_INSERT, "1,1,4,0.1,x,m 2,17,5,-1e9,y,null");
    case_push(&it, "f", IVM_INSERT, "10,1,1,5,0.1,m 11,2,2,7,1e17,null");
    parts_save(&it, &saved, 0, PARTS, true);
    assert_whole(&it, &saved);
    streams_free(&saved);
    fixture_close(&it);
}

Test(plan_partition, a_column_before_the_partition_may_be_gone)
{
    fixture it, other;
    streams saved = { 0 };
    fixture_open(&it);
    ivm_table_options options = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part", .transient = true };
    ivm_table *seen = fixture_table_like(&it, "seen", "junk int64; part int64; n int64", &options);
    fixture_make(&it, "v", ivm_plan_add(ivm_plan_aggregate(scan_of("seen", NULL), "part"), "s", "sum", ivm_column("n")));
    cr_assert_eq(fixture_push(&it, seen, IVM_INSERT, "9,1,5 9,1,6 8,2,7"), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_drop(seen, "junk", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(fixture_push(&it, seen, IVM_INSERT, "2,1"), IVM_OK, "%s", it.error.message);
    parts_save(&it, &saved, 0, PARTS, true);
    fixture_open(&other);
    cr_assert_eq(parts_restore(&other, &saved, (uint32_t[]){ 2 }, 1), IVM_OK, "%s", other.error.message);
    cr_assert_eq(parts_restore_all(&other, &saved), IVM_OK, "%s", other.error.message);
    ivm_view *view = fixture_view_find(&other, "v");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,11 1*2,8");
    case_push(&other, "seen", IVM_INSERT, "1,1");
    cr_expect_str_eq(fixture_view(&other, view), "1*1,12 1*2,8");
    streams_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* ---- A restore that is open --------------------------------------------------------------------------------------------------------------------- */

Test(plan_partition, until_the_end_the_engine_is_what_it_was)
{
    fixture it, empty;
    streams saved = { 0 };
    ivm_restoring *restore = NULL, *second = NULL;
    tape before = { 0 };
    parts_open(&it);
    case_push(&it, "d", IVM_INSERT, DIMENSION);
    case_push(&it, "f", IVM_INSERT, "1,2,1,5,0.5");
    parts_save(&it, &saved, 0, PARTS, true);
    case_push(&it, "f", IVM_INSERT, "2,3,1,6,0.5");
    case_save(&it, &before);
    cr_assert_eq(ivm_restore_open(it.engine, &restore, &it.error), IVM_OK);
    cr_expect_eq(ivm_restore_open(it.engine, &second, &it.error), IVM_IN_USE);
    cr_assert_eq(parts_read(restore, &saved.part[2], &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(parts_read(restore, &saved.shared, &it.error), IVM_OK, "%s", it.error.message);
    ivm_view *view = fixture_view_find(&it, "by_name");
    ivm_table *f = fixture_table_find(&it, "f");
    cr_expect_str_eq(fixture_view(&it, view), "1*one,2,11,5");
    cr_expect_eq(fixture_push(&it, f, IVM_INSERT, "3,3,1,6,0.5"), IVM_IN_USE);
    cr_expect_not_null(strstr(it.error.message, "restore"));
    cr_expect_eq(ivm_view_drop(view, &it.error), IVM_IN_USE);
    cr_expect_eq(ivm_table_column_rename(f, "n", "m", &it.error), IVM_IN_USE);
    cr_expect_eq(case_restore(&it, &before), IVM_IN_USE);
    cr_expect_eq(parts_save_range(&it, &saved, 0, 0, false), IVM_IN_USE);
    cr_expect_eq(ivm_engine_close(it.engine, &it.error), IVM_IN_USE);
    cr_assert_eq(ivm_restore_close(restore, &it.error), IVM_OK);
    case_assert_saved_as(&it, &before, "given up");
    cr_assert_eq(ivm_restore_close(NULL, NULL), IVM_OK);

    fixture_open(&empty);
    cr_assert_eq(ivm_restore_open(empty.engine, &restore, &empty.error), IVM_OK);
    cr_assert_eq(parts_read(restore, &saved.shared, &empty.error), IVM_OK, "%s", empty.error.message);
    cr_expect_eq(ivm_table_find(empty.engine, "f", &f, &empty.error), IVM_UNKNOWN_TABLE);
    cr_assert_eq(ivm_restore_close(restore, &empty.error), IVM_OK);
    cr_expect_eq(ivm_table_find(empty.engine, "f", &f, &empty.error), IVM_UNKNOWN_TABLE);
    cr_assert_eq(ivm_restore_open(empty.engine, &restore, &empty.error), IVM_OK);
    cr_assert_eq(parts_read(restore, &saved.shared, &empty.error), IVM_OK, "%s", empty.error.message);
    cr_assert_eq(ivm_restore_finish(restore, &empty.error), IVM_OK);
    cr_expect_eq(ivm_table_find(empty.engine, "f", &f, &empty.error), IVM_OK);
    fixture_close(&empty);
    tape_free(&before);
    streams_free(&saved);
    fixture_close(&it);
}

static void tell(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)view;
    *(uint64_t *)context += ivm_snapshot_rows_count(changes);
}

Test(plan_partition, handles_snapshots_and_callbacks_stay)
{
    fixture it;
    streams saved = { 0 };
    ivm_snapshot *snapshot = NULL;
    uint64_t told = 0;
    parts_open(&it);
    case_push(&it, "d", IVM_INSERT, DIMENSION);
    case_push(&it, "f", IVM_INSERT, "1,2,1,5,0.5");
    parts_save(&it, &saved, 0, PARTS, true);
    case_push(&it, "f", IVM_INSERT, "2,3,2,6,0.5");
    ivm_view *view = fixture_view_find(&it, "joined");
    cr_assert_eq(ivm_view_watch(view, tell, &told, &it.error), IVM_OK);
    cr_assert_eq(ivm_read_view(view, &snapshot, &it.error), IVM_OK);
    cr_assert_eq(parts_restore_all(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(told, 0u);
    cr_expect_str_eq(fixture_rows(snapshot), "1*1,one 1*2,two");
    cr_expect_str_eq(fixture_view(&it, view), "1*1,one");
    cr_expect_str_eq(fixture_changes(&it, view), "");
    case_push(&it, "f", IVM_UPSERT, "1,2,3,5,0.5");
    cr_expect_eq(told, 2u);
    cr_expect_str_eq(fixture_view(&it, view), "1*1,three");
    streams_free(&saved);
    fixture_close(&it);
}
