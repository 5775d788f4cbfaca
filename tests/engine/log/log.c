/* Tests of engine/log as log.h says it: records of all sizes, segments, taking back, checkpoints, locks, reading only, memory that runs out. */
#include <criterion/criterion.h>
#include <string.h>

#include "log_case.h"
#include "log_fragment.h"

static void fresh(log_case *with, uint64_t segment_bytes)
{
    log_case_init(with, segment_bytes + 7);
    with->options.segment_bytes = segment_bytes;
    cr_assert_eq(log_case_open(with), IVM_OK);
    cr_assert(ivm__log_recovery_of(with->log)->created);
}

static void append(log_case *with, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(log_case_append(with, log_case_id(with, false)), IVM_OK);
    }
}

static uint32_t files_count(const log_case *with, const char *begin)
{
    char names[64][40];
    uint32_t count = 0;
    for (uint32_t i = disk_names(with->disk, names, 64); i-- > 0;) {
        count += strncmp(names[i], begin, strlen(begin)) == 0;
    }
    return count;
}

static void reopened(log_case *with, uint64_t records)
{
    log_case_close(with);
    cr_assert_eq(log_case_open(with), IVM_OK);
    cr_assert_eq(with->found, records);
    cr_assert_not(ivm__log_recovery_of(with->log)->created);
}

Test(engine_log, an_empty_log_is_there_again)
{
    log_case with;
    fresh(&with, 0);
    reopened(&with, 0);
    cr_assert_eq(files_count(&with, ""), 3);
    log_case_deinit(&with);
}

/* A record of each size that matters, in pieces of each. */
static void record_of_size(log_case *with, size_t size, size_t piece)
{
    static uint8_t bytes[3 * IVM__FRAGMENT_BYTES + 8], got[sizeof bytes];
    ivm__sink *sink;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 7 + (i >> 11));
    }
    cr_assert_eq(ivm__log_append_begin(with->log, 9, &sink, &with->error), IVM_OK);
    for (size_t done = 0; done < size; done += piece) {
        cr_assert_eq(sink->write(sink, bytes + done, piece < size - done ? piece : size - done), IVM_OK);
    }
    cr_assert_eq(ivm__log_append_end(with->log, &with->error), IVM_OK);
    ivm__log_close(with->log);
    cr_assert_eq(ivm__log_open(LOG_CASE_PATH, &with->options, &with->memory, &with->log, &with->error), IVM_OK);
    ivm__feed *feed, *last = NULL;
    for (uint8_t kind = 0; ivm__log_record_read(with->log, &kind, &feed, &with->error) == IVM_OK && feed; last = feed) {
        memset(got, 0, size);
        cr_assert_eq(kind, 9);
        for (size_t done = 0; done < size; done += piece) {
            if (feed->read(feed, got + done, piece < size - done ? piece : size - done) != IVM_OK) {
                break; /* one of those before */
            }
        }
    }
    cr_assert_not_null(last);
    cr_assert_eq(memcmp(got, bytes, size), 0);
}

Test(engine_log, records_of_all_sizes)
{
    static const size_t sizes[] = { 0,
                                    1,
                                    7,
                                    8,
                                    9,
                                    4096,
                                    IVM__FRAGMENT_BYTES - 1,
                                    IVM__FRAGMENT_BYTES,
                                    IVM__FRAGMENT_BYTES + 1,
                                    2 * IVM__FRAGMENT_BYTES,
                                    3 * IVM__FRAGMENT_BYTES + 5 };
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        log_case with;
        fresh(&with, 0);
        record_of_size(&with, sizes[i], sizes[i] + 1);
        record_of_size(&with, sizes[i], sizes[i] / 3 + 1);
        record_of_size(&with, sizes[i], sizes[i] > 10000 ? 70001 : 1);
        with.synced = 0;
        log_case_deinit(&with);
    }
}

/* Nothing of the process's memory gets to the disk. */
Test(engine_log, what_fills_up_to_eight_bytes_is_zero)
{
    static const uint8_t zeros[7];
    log_case with;
    ivm__sink *sink;
    uint64_t size;
    fresh(&with, 0);
    cr_assert_eq(ivm__log_append_begin(with.log, 1, &sink, &with.error), IVM_OK);
    cr_assert_eq(sink->write(sink, "x", 1), IVM_OK);
    cr_assert_eq(ivm__log_append_end(with.log, &with.error), IVM_OK);
    const uint8_t *bytes = disk_bytes(with.disk, "log-0000000000000000", &size);
    cr_assert_eq(size, sizeof(ivm__segment_head) + sizeof(ivm__fragment) + 8);
    cr_assert_eq(memcmp(bytes + size - 7, zeros, 7), 0);
    log_case_deinit(&with);
}

/* The sizes of all segments but the last are at least the first, and less than the second and a record. */
static void segments_judge(log_case *with, uint64_t least, uint64_t most)
{
    char names[64][40];
    uint32_t segments = 0;
    uint64_t size = 0, largest_record = 2600;
    for (uint32_t i = disk_names(with->disk, names, 64); i-- > 0;) {
        if (strncmp(names[i], "log-", 4) == 0 && segments++) {
            (void)disk_bytes(with->disk, names[i], &size);
            cr_assert(least <= size && size < most + largest_record, "%s has %lu bytes", names[i], (unsigned long)size);
        }
    }
    cr_assert_gt(segments, 4);
}

Test(engine_log, a_segment_ends_when_all_of_it_is_on_the_disk)
{
    log_case with;
    fresh(&with, 2000);
    for (uint32_t i = 0; i < 60; i++) {
        append(&with, 1);
        cr_assert_eq(log_case_sync(&with), IVM_OK);
    }
    cr_assert_eq(ivm__log_state_of(with.log).syncs, 60);
    segments_judge(&with, 2000, 2000);
    reopened(&with, 60);
    log_case_deinit(&with);
}

Test(engine_log, a_segment_that_nobody_syncs_ends_past_twice_its_size)
{
    log_case with;
    fresh(&with, 2000);
    append(&with, 150);
    segments_judge(&with, 4000, 4000);
    cr_assert_eq(ivm__log_state_of(with.log).syncs, files_count(&with, "log-") - 1);
    reopened(&with, 150);
    log_case_deinit(&with);
}

Test(engine_log, syncing_what_is_on_the_disk_is_no_call)
{
    log_case with;
    fresh(&with, 0);
    append(&with, 2);
    cr_assert_eq(log_case_sync(&with), IVM_OK);
    uint64_t calls = disk_calls(with.disk);
    cr_assert_eq(log_case_sync(&with), IVM_OK);
    cr_assert_eq(disk_calls(with.disk), calls);
    cr_assert_eq(ivm__log_state_of(with.log).syncs, 1);
    append(&with, 1); /* a small record is one write */
    cr_assert_eq(disk_calls(with.disk), calls + 1);
    log_case_deinit(&with);
}

/* What was cut off could come up again where the file grows over its place. */
Test(engine_log, nothing_is_appended_where_a_tail_was_cut)
{
    for (uint32_t synced = 0; synced < 2; synced++) {
        log_case with;
        uint64_t size;
        ivm__segment_head before, after;
        fresh(&with, 0);
        append(&with, synced);
        cr_assert_eq(log_case_sync(&with), IVM_OK);
        append(&with, 3);
        disk_die(with.disk);
        log_case_close(&with);
        disk_restart(with.disk);
        uint8_t *bytes = disk_bytes(with.disk, "log-0000000000000000", &size);
        memcpy(&before, bytes, sizeof before);
        bytes[ivm__fragment_padded(synced ? log_case_record_size(with.ids[0]) : 0) + 48 * synced + sizeof before] ^= 1;
        with.synced = synced;
        cr_assert_eq(log_case_open(&with), IVM_OK);
        cr_assert_eq(with.found, synced);
        append(&with, 1);
        bytes = disk_bytes(with.disk, synced ? "log-0000000000000001" : "log-0000000000000000", &size);
        cr_assert_not_null(bytes);
        memcpy(&after, bytes, sizeof after);
        cr_assert_neq(after.segment, before.segment);
        reopened(&with, synced + 1);
        log_case_deinit(&with);
    }
}

Test(engine_log, checkpoints_stand_for_what_was_before)
{
    log_case with;
    fresh(&with, 500);
    append(&with, 20);
    cr_assert_eq(log_case_checkpoint_begin(&with), IVM_OK);
    append(&with, 3);
    ivm_error error = IVM_ERROR_INIT;
    ivm__sink *second;
    cr_assert_eq(ivm__log_checkpoint_begin(with.log, &second, &error), IVM_IN_USE);
    cr_assert_eq(log_case_checkpoint_end(&with), IVM_OK);
    ivm__log_checkpoint_abandon(with.log); /* nothing to give up */
    cr_assert_eq(ivm__log_state_of(with.log).checkpoint, 20);
    cr_assert_eq(files_count(&with, "checkpoint-"), 1);
    cr_assert_eq(files_count(&with, "log-0000000000000014"), 1);
    reopened(&with, 23);
    cr_assert_eq(ivm__log_recovery_of(with.log)->checkpoint, 20);
    cr_assert_eq(log_case_checkpoint_begin(&with), IVM_OK);
    ivm__log_checkpoint_abandon(with.log);
    cr_assert_eq(files_count(&with, "checkpoint-"), 1);
    reopened(&with, 23);
    cr_assert_eq(ivm__log_recovery_of(with.log)->checkpoint, 20);
    for (uint32_t i = 0; i < 2; i++) { /* twice at one place */
        cr_assert_eq(log_case_checkpoint_begin(&with), IVM_OK);
        cr_assert_eq(log_case_checkpoint_end(&with), IVM_OK);
    }
    cr_assert_eq(files_count(&with, ""), 3);
    reopened(&with, 23);
    cr_assert_eq(ivm__log_recovery_of(with.log)->checkpoint, 23);
    log_case_deinit(&with);
}

Test(engine_log, a_checkpoint_of_nothing)
{
    log_case with;
    fresh(&with, 0);
    cr_assert_eq(log_case_checkpoint_begin(&with), IVM_OK);
    cr_assert_eq(log_case_checkpoint_end(&with), IVM_OK);
    reopened(&with, 0);
    append(&with, 1);
    reopened(&with, 1);
    log_case_deinit(&with);
}

/* ---- Who may open it, and how ---------------------------------------------------------------------------------------------------------- */

static ivm_status second_open(log_case *with, bool read_only, ivm__log **log)
{
    ivm__log_options options = with->options;
    ivm_error error = IVM_ERROR_INIT;
    options.read_only = read_only;
    ivm_status status = ivm__log_open(LOG_CASE_PATH, &options, &with->memory, log, &error);
    cr_assert_eq(error.status, status);
    return status;
}

Test(engine_log, one_at_a_time_or_several_that_only_read)
{
    log_case with;
    ivm__log *first = NULL, *second = NULL;
    fresh(&with, 0);
    append(&with, 2);
    cr_assert_eq(second_open(&with, false, &second), IVM_IN_USE);
    cr_assert_eq(second_open(&with, true, &second), IVM_IN_USE);
    log_case_close(&with);
    cr_assert_eq(second_open(&with, true, &first), IVM_OK);
    cr_assert_eq(second_open(&with, true, &second), IVM_OK);
    ivm__log_close(first);
    cr_assert_eq(second_open(&with, false, &first), IVM_IN_USE);
    ivm__log_close(second);
    cr_assert_eq(second_open(&with, false, &first), IVM_OK);
    ivm__log_close(first);
    log_case_deinit(&with);
}

Test(engine_log, reading_only_changes_nothing)
{
    log_case with;
    ivm__sink *sink;
    ivm_error error = IVM_ERROR_INIT;
    uint64_t size;
    fresh(&with, 300);
    append(&with, 9);
    disk_die(with.disk);
    log_case_close(&with);
    disk_restart(with.disk);
    disk_put(with.disk, "checkpoint-0000000000000007.new", "half", 4);
    char names[64][40];
    uint8_t *bytes = disk_bytes(with.disk, names[disk_names(with.disk, names, 64) - 1], &size); /* the last segment */
    bytes[size - 1] ^= 1;
    uint64_t changes = disk_changes(with.disk);
    with.options.read_only = true;
    with.synced = 0;
    cr_assert_eq(log_case_open(&with), IVM_OK);
    cr_assert_eq(with.found, 8);
    cr_assert_gt(ivm__log_recovery_of(with.log)->bytes_cut, 0);
    cr_assert_str_not_empty(ivm__log_recovery_of(with.log)->message);
    cr_assert_eq(ivm__log_append_begin(with.log, 1, &sink, &error), IVM_UNSUPPORTED);
    cr_assert_eq(ivm__log_checkpoint_begin(with.log, &sink, &error), IVM_UNSUPPORTED);
    cr_assert_eq(ivm__log_sync(with.log, &error), IVM_OK);
    log_case_close(&with);
    disk_take_off(with.disk, "lock"); /* a copy may be without */
    cr_assert_eq(log_case_open(&with), IVM_OK);
    log_case_close(&with);
    cr_assert_eq(disk_changes(with.disk), changes);
    with.options.read_only = false;
    cr_assert_eq(log_case_open(&with), IVM_OK);
    cr_assert_eq(with.found, 8);
    log_case_deinit(&with);
}

Test(engine_log, reading_only_makes_no_log)
{
    log_case with;
    ivm__log *log = NULL;
    log_case_init(&with, 1);
    cr_assert_eq(second_open(&with, true, &log), IVM_IO);
    cr_assert_eq(disk_changes(with.disk), 0);
    cr_assert_eq(log_case_open(&with), IVM_OK);
    log_case_close(&with);
    disk_take_off(with.disk, "checkpoint-0000000000000000"); /* as if its making had been cut short */
    uint64_t changes = disk_changes(with.disk);
    cr_assert_eq(second_open(&with, true, &log), IVM_IO);
    cr_assert_eq(disk_changes(with.disk), changes);
    cr_assert_eq(log_case_open(&with), IVM_OK);
    cr_assert(ivm__log_recovery_of(with.log)->created);
    log_case_deinit(&with);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------------------------- */

Test(engine_log, memory_failing_leaves_what_was_there)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (uint64_t n = 1, done = 0; !done; n++) {
            log_case with;
            log_case_init(&with, seed);
            with.may_fail = true;
            test_allocator_arm(&with.allocator, n);
            log_case_work(&with, 15);
            log_case_work(&with, 5);
            done = !test_allocator_disarm(&with.allocator);
            with.may_fail = false;
            uint64_t appended = with.appended;
            disk_reboot(with.disk);
            cr_assert_eq(log_case_open(&with), IVM_OK);
            cr_assert_eq(with.found, appended);
            log_case_deinit(&with);
        }
    }
}

Test(engine_log, memory_failing_in_a_large_record)
{
    for (uint64_t n = 1, done = 0; !done; n++) {
        log_case with;
        fresh(&with, 0);
        append(&with, 1);
        with.may_fail = true;
        test_allocator_arm(&with.allocator, n);
        ivm_status status = log_case_append(&with, LOG_CASE_LARGE | 17);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(with.appended, 1 + done);
        with.may_fail = false;
        append(&with, 1);
        reopened(&with, 2 + done);
        log_case_deinit(&with);
    }
}
