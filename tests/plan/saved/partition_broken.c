/* Checkpoints by partition that go wrong: a stream that was damaged or cut, a caller's function that fails or calls the engine, memory that ends. The
 * engine is what it was then. */
#include "block.h"
#include "partition_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

/* Few rows, but in every table, and what it is saved as. */
static void small_open(fixture *it, streams *saved)
{
    parts_open(it);
    case_push(it, "d", IVM_INSERT, "1,one,1 2,two,null 3,far,7");
    case_push(it, "f", IVM_INSERT, "10,1,1,5,0.1 11,2,2,7,1e17 12,1,9,5,2.5");
    case_push(it, "p", IVM_INSERT, "1,1,a 2,1,b");
    case_push(it, "c", IVM_INSERT, "1,1,3 1,1,3 2,1,4");
    case_push(it, "bag", IVM_DELETE, "5,1 6,2");
    case_push(it, "seen", IVM_INSERT, "1,1,4,0.1,x 2,2,5,-1e9,y 1,1,2,NaN,null 1,9,1,1,w 1,3,2,2,w 2,9,1,1,w");
    case_push(it, "plain", IVM_INSERT, "t,5 t,5 null,null");
    parts_refresh(it);
    parts_save(it, saved, 0, 3, true);
}

static void victim_open(victim *one)
{
    parts_open(&one->it);
    case_push(&one->it, "d", IVM_INSERT, "5,five,1");
    case_push(&one->it, "f", IVM_INSERT, "1,5,5,1,1");
    case_push(&one->it, "seen", IVM_INSERT, "3,5,1,1,z");
    victim_hold(one, parts_contents);
}

static ivm_status restore_three(fixture *it, void *from)
{
    return parts_restore(it, from, (uint32_t[]){ 2, 0, 1 }, 3);
}

static void assert_damaged(victim *one, streams *saved, size_t at)
{
    ivm_status status = restore_three(&one->it, saved);
    cr_assert(status == IVM_CORRUPT || status == IVM_UNSUPPORTED, "byte %zu: %s: %s", at, ivm_status_name(status), one->it.error.message);
}

/* Every byte of a stream damaged, and every cut. */
static void damage(victim *one, streams *saved, tape *stream)
{
    size_t size = stream->size;
    for (size_t at = 0; at < size; at++) {
        stream->bytes[at] ^= (uint8_t)(1 << at % 8);
        assert_damaged(one, saved, at);
        stream->bytes[at] ^= (uint8_t)(1 << at % 8);
        stream->size = at;
        cr_assert_eq(restore_three(&one->it, saved), IVM_CORRUPT, "cut to %zu: %s", at, one->it.error.message);
        stream->size = size;
        if (at % 256 == 0) {
            victim_check(one, "damaged");
        }
    }
}

Test(plan_partition_broken, every_damaged_byte_and_every_cut_is_found_out)
{
    fixture it, empty;
    streams saved = { 0 };
    victim one;
    small_open(&it, &saved);
    victim_open(&one);
    damage(&one, &saved, &saved.part[1]);
    damage(&one, &saved, &saved.shared);
    fixture_open(&empty);
    for (size_t at = 0; at < saved.shared.size; at += 5) {
        saved.shared.bytes[at] ^= 0x10;
        cr_assert_neq(restore_three(&empty, &saved), IVM_OK, "byte %zu", at);
        saved.shared.bytes[at] ^= 0x10;
    }
    cr_assert_null(ivm_fact_next(empty.engine, NULL));
    cr_assert_eq(restore_three(&empty, &saved), IVM_OK, "%s", empty.error.message);
    tape whole = { 0 };
    case_save(&it, &whole);
    case_assert_saved_as(&empty, &whole, "after all that");
    tape_free(&whole);
    streams_free(&saved);
    victim_close(&one);
    fixture_close(&empty);
    fixture_close(&it);
}

/* A stream of one partition under the head of another: hashes are chained to the head. */
Test(plan_partition_broken, a_stream_under_the_head_of_another)
{
    fixture it;
    streams saved = { 0 };
    victim one;
    small_open(&it, &saved);
    victim_open(&one);
    memcpy(saved.part[1].bytes, saved.part[0].bytes, 64);
    cr_assert_eq(restore_three(&one.it, &saved), IVM_CORRUPT, "%s", one.it.error.message);
    streams_free(&saved);
    victim_close(&one);
    fixture_close(&it);
}

/* Each read of one of the streams fails once; then all go through. */
static void reads_fail(victim *one, streams *saved, tape *stream)
{
    for (stream->fails_at = 1; restore_three(&one->it, saved) != IVM_OK; stream->fails_at++) {
        cr_assert_eq(one->it.error.status, IVM_IO, "%s", one->it.error.message);
        victim_check(one, "failed reads");
    }
    cr_expect_gt(stream->fails_at, 10u);
    stream->fails_at = 0;
    cr_assert_eq(case_restore(&one->it, &one->own), IVM_OK, "%s", one->it.error.message);
}

/* A stream whose hashes are right again. */
static void rehash(tape *stream)
{
    ivm__stream_head head;
    ivm__block_header header;
    memcpy(&head, stream->bytes, sizeof head);
    uint64_t hash = head.hash = ivm__stream_head_hash(&head);
    memcpy(stream->bytes, &head, sizeof head);
    for (size_t at = sizeof head; at < stream->size; at += sizeof header + header.stored) {
        memcpy(&header, stream->bytes + at, sizeof header);
        hash = header.hash = ivm__block_hash(&header, stream->bytes + at + sizeof header, hash);
        memcpy(stream->bytes + at, &header, sizeof header);
    }
}

static void partition_set(tape *stream, uint32_t partition)
{
    ivm__stream_head head;
    memcpy(&head, stream->bytes, sizeof head);
    head.partition = partition;
    memcpy(stream->bytes, &head, sizeof head);
    rehash(stream);
}

/* Streams with hashes that are right and rows that are not. */
Test(plan_partition_broken, rows_of_another_partition)
{
    fixture it;
    streams saved = { 0 };
    victim one;
    small_open(&it, &saved);
    victim_open(&one);
    partition_set(&saved.part[1], 3);
    cr_assert_eq(restore_three(&one.it, &saved), IVM_CORRUPT, "%s", one.it.error.message);
    cr_assert_not_null(strstr(one.it.error.message, "another partition in the stream of partition 3"), "%s", one.it.error.message);
    partition_set(&saved.part[1], IVM_PARTITIONS_MAX);
    cr_assert_eq(restore_three(&one.it, &saved), IVM_CORRUPT, "%s", one.it.error.message);
    case_push(&it, "seen", IVM_DELETE, "1,1,4,0.1,x 1,1,2,NaN,null 1,9,1,1,w 1,3,2,2,w"); /* tables alone have rows of it */
    parts_save(&it, &saved, 0, 3, true);
    partition_set(&saved.part[1], 3);
    cr_assert_eq(restore_three(&one.it, &saved), IVM_CORRUPT, "%s", one.it.error.message);
    cr_assert_not_null(strstr(one.it.error.message, "a row of partition 1 in the stream of partition 3"), "%s", one.it.error.message);
    streams_free(&saved);
    victim_close(&one);
    fixture_close(&it);
}

/* Whether sizes lead from block to block. */
static bool leads_through(const tape *stream)
{
    ivm__block_header header;
    for (size_t next = sizeof(ivm__stream_head); next < stream->size; next += sizeof header + header.stored) {
        if (stream->size - next < sizeof header) {
            return false;
        }
        memcpy(&header, stream->bytes + next, sizeof header);
        if (header.stored > stream->size - next - sizeof header) {
            return false;
        }
    }
    return true;
}

/* Every byte changed under hashes that are right: refused or taken, but never more than that. */
Test(plan_partition_broken, bytes_that_hashes_cannot_tell)
{
    fixture it;
    streams saved = { 0 };
    fixture empty;
    uint64_t taken = 0, refused = 0;
    small_open(&it, &saved);
    fixture_open(&empty);
    tape *stream = &saved.part[1];
    for (size_t at = 64; at < stream->size; at++) {
        uint8_t was = stream->bytes[at];
        uint8_t *copy = malloc(stream->size);
        memcpy(copy, stream->bytes, stream->size);
        stream->bytes[at] ^= (uint8_t)(1 << at % 8);
        if (leads_through(stream)) {
            rehash(stream);
        }
        ivm_status status = restore_three(&empty, &saved);
        taken += status == IVM_OK;
        refused += status != IVM_OK;
        memcpy(stream->bytes, copy, stream->size);
        free(copy);
        cr_assert_eq(stream->bytes[at], was);
    }
    cr_expect_gt(taken, 10u);
    cr_expect_gt(refused, 100u);
    streams_free(&saved);
    fixture_close(&empty);
    fixture_close(&it);
}

Test(plan_partition_broken, any_call_of_a_stream_may_fail)
{
    fixture it;
    streams saved = { 0 }, broken = { 0 };
    victim one;
    small_open(&it, &saved);
    saved.part[2].calls = 0;
    parts_save(&it, &saved, 2, 3, false);
    for (uint64_t n = 1, calls = saved.part[2].calls; n <= calls; n++) {
        broken.part[2].calls = 0;
        broken.part[2].fails_at = n;
        cr_assert_eq(parts_save_range(&it, &broken, 2, 3, false), IVM_IO, "call %lu", (unsigned long)n);
    }
    victim_open(&one);
    reads_fail(&one, &saved, &saved.part[0]);
    reads_fail(&one, &saved, &saved.shared);
    streams_free(&saved);
    streams_free(&broken);
    victim_close(&one);
    fixture_close(&it);
}

Test(plan_partition_broken, callbacks_may_not_call_the_engine)
{
    fixture it;
    streams saved = { 0 };
    small_open(&it, &saved);
    saved.part[1].called = saved.shared.called = it.engine;
    saved.part[1].viewed = saved.shared.viewed = it.engine->views;
    saved.part[1].calls = saved.shared.calls = 0;
    parts_save(&it, &saved, 0, 3, true);
    cr_expect_gt(saved.part[1].calls, 1u);
    cr_expect_eq(saved.part[1].refused, saved.part[1].calls * TAPE_CALLS);
    cr_expect_eq(saved.shared.refused, saved.shared.calls * TAPE_CALLS);
    saved.part[1].refused = saved.shared.refused = 0;
    cr_assert_eq(restore_three(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(saved.part[1].refused, saved.part[1].calls * TAPE_CALLS);
    cr_expect_eq(saved.shared.refused, saved.shared.calls * TAPE_CALLS);
    streams_free(&saved);
    fixture_close(&it);
}

Test(plan_partition_broken, memory_may_end_at_any_call)
{
    fixture it;
    streams saved = { 0 }, again = { 0 };
    tape whole = { 0 };
    victim one;
    small_open(&it, &saved);
    case_save(&it, &whole);
    for (uint64_t n = 1, done = 0; !done; n++) {
        test_allocator_arm(&it.allocator, n);
        ivm_status status = parts_save_range(&it, &again, 0, 3, true);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert(status == IVM_OK || (status == IVM_OUT_OF_MEMORY && !done), "%s: %s", ivm_status_name(status), it.error.message);
    }
    cr_assert_eq(again.part[1].size, saved.part[1].size);
    cr_assert_eq(memcmp(again.part[1].bytes, saved.part[1].bytes, saved.part[1].size), 0);
    victim_open(&one);
    victim_starve(&one, restore_three, &saved, &whole);
    victim_close(&one);
    empty_starve(restore_three, &saved, 5);
    tape_free(&whole);
    streams_free(&saved);
    streams_free(&again);
    fixture_close(&it);
}
