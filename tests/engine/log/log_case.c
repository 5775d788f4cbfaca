#include "log_case.h"
#include "random.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_BYTES (64u << 10)

static uint64_t mix(uint64_t number)
{
    number = (number ^ (number >> 31)) * 0x9E3779B97F4A7C15ull;
    return number ^ (number >> 29);
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
    return (random_next(random) >> 11) % below;
}

uint64_t log_case_draw(log_case *self, uint64_t below)
{
    return draw(&self->random, below);
}

static void allocator_init(log_case *self)
{
    test_allocator_init(&self->allocator);
    ivm_allocator functions = test_allocator_functions(&self->allocator);
    ivm__memory_init(&self->memory, &functions);
}

void log_case_init(log_case *self, uint64_t seed)
{
    static const uint64_t segment_bytes[] = { 0, 1, 500, 500, 3000, 3000, 20000 };
    memset(self, 0, sizeof *self);
    self->random = mix(seed + 1) | 1;
    self->disk = disk_create(mix(seed));
    allocator_init(self);
    self->options = (ivm__log_options){ .files = disk_files(self->disk),
                                        .segment_bytes = segment_bytes[log_case_draw(self, sizeof segment_bytes / 8)] };
}

void log_case_copy(log_case *self, const log_case *from, uint64_t seed)
{
    cr_assert_null(from->log);
    *self = *from;
    self->disk = disk_copy(from->disk, mix(seed));
    self->options.files = disk_files(self->disk);
    allocator_init(self);
}

void log_case_deinit(log_case *self)
{
    log_case_close(self);
    cr_assert(test_allocator_is_clean(&self->allocator));
    cr_assert_eq(disk_handles(self->disk), 0);
    disk_free(self->disk);
}

/* ---- What records are made of -------------------------------------------------------------------------------------------------------- */

uint32_t log_case_record_size(uint64_t id)
{
    static const uint32_t large[] = { (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, 2400000 };
    uint64_t drawn = mix(id * 77 + 5);
    if (id & LOG_CASE_LARGE) {
        return large[drawn % 5];
    }
    return (uint32_t)(drawn % 10 < 8 ? (drawn >> 8) % 100 : (drawn >> 8) % 2500);
}

static uint8_t log_case_kind(uint64_t id)
{
    return (uint8_t)(1 + mix(id) % 255);
}

/* The bytes of an id: a stretch of one pattern, behind the id as far as there is room. */
static void content_make(uint64_t id, uint8_t *to, size_t size)
{
    static uint8_t pattern[PATTERN_BYTES];
    for (size_t i = 0; !pattern[1] && i < PATTERN_BYTES; i++) {
        pattern[i] = (uint8_t)(mix(i) | 1);
    }
    for (size_t done = 0, from = mix(id) % (PATTERN_BYTES / 2); done < size; from = 0) {
        size_t count = PATTERN_BYTES - from < size - done ? PATTERN_BYTES - from : size - done;
        memcpy(to + done, pattern + from, count);
        done += count;
    }
    memcpy(to, &id, size < sizeof id ? size : sizeof id);
}

static uint8_t *content_of(uint64_t id, size_t size)
{
    uint8_t *made = malloc(size + 1);
    cr_assert(made);
    content_make(id, made, size);
    return made;
}

static ivm_status feed_judge(ivm__feed *feed, uint64_t id, size_t size)
{
    uint64_t random = mix(id + 3) | 1;
    uint8_t *wanted = content_of(id, size), *got = malloc(size + 1);
    ivm_status status = IVM_OK;
    cr_assert(got);
    for (size_t done = 0; status == IVM_OK && done < size;) {
        size_t count = 1 + draw(&random, size > 5000 ? 500000 : size);
        count = count < size - done ? count : size - done;
        status = feed->read(feed, got + done, count);
        done += count;
    }
    cr_assert(status != IVM_OK || memcmp(got, wanted, size) == 0);
    if (status == IVM_OK && draw(&random, 4) == 0) {
        cr_assert_neq(feed->read(feed, got, 1), IVM_OK, "a record that does not end");
    }
    free(wanted);
    free(got);
    return status;
}

static ivm_status sink_fill(ivm__sink *sink, uint64_t id, size_t size)
{
    uint64_t random = mix(id + 4) | 1;
    uint8_t *bytes = content_of(id, size);
    ivm_status status = IVM_OK;
    for (size_t done = 0; status == IVM_OK && done < size;) {
        size_t count = 1 + draw(&random, size > 5000 ? 700000 : size);
        count = count < size - done ? count : size - done;
        status = sink->write(sink, bytes + done, count);
        done += count;
    }
    free(bytes);
    return status;
}

uint64_t log_case_id(log_case *self, bool large)
{
    return ++self->ids_count | (large ? LOG_CASE_LARGE : 0);
}

/* ---- Opening -------------------------------------------------------------------------------------------------------------------------- */

static ivm_status settled(log_case *self, ivm_status status)
{
    if (status == IVM_OK) {
        return status;
    }
    cr_assert(self->may_fail, "%s: %s", ivm_status_name(status), self->error.message);
    cr_assert(status == IVM_IO || status == IVM_OUT_OF_MEMORY, "%s: %s", ivm_status_name(status), self->error.message);
    cr_assert_eq(self->error.status, status);
    cr_assert(self->error.message[0]);
    self->error = (ivm_error)IVM_ERROR_INIT;
    return status;
}

/* A checkpoint's content is the number of its records, then bytes of that id. */
static ivm_status checkpoint_judge(log_case *self)
{
    ivm__feed *feed;
    uint64_t sequence = ivm__log_recovery_of(self->log)->checkpoint, found;
    IVM_TRY(ivm__log_checkpoint_read(self->log, &feed, &self->error));
    if (!feed) {
        cr_assert_eq(sequence, 0);
        return IVM_OK;
    }
    IVM_TRY(feed->read(feed, &found, sizeof found));
    cr_assert_eq(found, sequence);
    return feed_judge(feed, sequence, log_case_record_size(sequence));
}

static void state_judge(log_case *self)
{
    ivm__log_state state = ivm__log_state_of(self->log);
    char names[64][40];
    uint64_t bytes = 0, size, first;
    for (uint32_t i = disk_names(self->disk, names, 64); i-- > 0;) {
        if (strncmp(names[i], "log-", 4) == 0 && strlen(names[i]) == 20) {
            first = strtoull(names[i] + 4, NULL, 16);
            (void)disk_bytes(self->disk, names[i], &size);
            bytes += first >= state.checkpoint ? size : 0;
        }
    }
    cr_assert_eq(state.sequence, self->found);
    cr_assert_leq(state.checkpoint, self->found);
    cr_assert_not(state.broken);
    if (!self->options.read_only) {
        cr_assert_eq(state.synced, self->found);
        cr_assert_eq(state.log_bytes, bytes);
    }
}

static ivm_status records_read(log_case *self)
{
    self->found = ivm__log_recovery_of(self->log)->checkpoint;
    for (;;) {
        ivm__feed *feed = NULL;
        uint8_t kind = 0;
        IVM_TRY(ivm__log_record_read(self->log, &kind, &feed, &self->error));
        if (!feed) {
            return IVM_OK;
        }
        cr_assert_lt(self->found, self->possible, "a record that was never appended");
        uint64_t id = self->ids[self->found];
        cr_assert_eq(kind, log_case_kind(id));
        IVM_TRY(feed_judge(feed, id, log_case_record_size(id)));
        self->error = (ivm_error)IVM_ERROR_INIT;
        self->found++;
    }
}

ivm_status log_case_open(log_case *self)
{
    ivm_status status = ivm__log_open(LOG_CASE_PATH, &self->options, &self->memory, &self->log, &self->error);
    if (status != IVM_OK) {
        self->log = NULL;
        return settled(self, status);
    }
    status = checkpoint_judge(self);
    self->error = status == IVM_OK ? (ivm_error)IVM_ERROR_INIT : self->error;
    status = status == IVM_OK ? records_read(self) : status;
    if (status != IVM_OK) {
        log_case_close(self);
        return settled(self, status);
    }
    const ivm__log_recovery *recovery = ivm__log_recovery_of(self->log);
    cr_assert(!recovery->bytes_cut || recovery->message[0]);
    cr_assert_geq(self->found, self->synced, "%lu records, of them %lu on the disk, and %lu are found: %s", (unsigned long)self->appended,
                  (unsigned long)self->synced, (unsigned long)self->found, recovery->message);
    cr_assert_leq(self->found, self->possible);
    state_judge(self);
    if (!self->options.read_only) {
        self->synced = self->appended = self->possible = self->found;
    }
    return IVM_OK;
}

void log_case_close(log_case *self)
{
    ivm__log_close(self->log);
    self->log = NULL;
    self->checkpoint = NULL;
}

/* ---- Work ----------------------------------------------------------------------------------------------------------------------------- */

/* What the log says to be on the disk must be. */
static ivm_status booked(log_case *self, ivm_status status)
{
    ivm__log_state state = ivm__log_state_of(self->log);
    cr_assert_leq(state.synced, state.sequence);
    if (!state.broken) {
        cr_assert_eq(state.sequence, self->appended);
    }
    self->synced = state.synced;
    return settled(self, status);
}

ivm_status log_case_append(log_case *self, uint64_t id)
{
    ivm__sink *sink;
    cr_assert_lt(self->appended, LOG_CASE_RECORDS_MAX);
    ivm_status status = ivm__log_append_begin(self->log, log_case_kind(id), &sink, &self->error);
    if (status == IVM_OK) {
        status = sink_fill(sink, id, log_case_record_size(id));
    }
    if (status != IVM_OK) {
        ivm__log_append_abandon(self->log);
        return booked(self, status);
    }
    self->ids[self->appended] = id;
    status = ivm__log_append_end(self->log, &self->error);
    self->possible = self->appended + (status == IVM_OK || ivm__log_broken(self->log));
    self->appended += status == IVM_OK;
    return booked(self, status);
}

ivm_status log_case_sync(log_case *self)
{
    ivm_status status = ivm__log_sync(self->log, &self->error);
    cr_assert(status != IVM_OK || ivm__log_state_of(self->log).synced == self->appended);
    return booked(self, status);
}

ivm_status log_case_checkpoint_begin(log_case *self)
{
    ivm__sink *sink;
    ivm_status status = ivm__log_checkpoint_begin(self->log, &sink, &self->error);
    uint64_t sequence = self->appended;
    if (status == IVM_OK) {
        status = sink->write(sink, &sequence, sizeof sequence);
    }
    if (status == IVM_OK) {
        status = sink_fill(sink, sequence, log_case_record_size(sequence));
    }
    self->checkpoint = status == IVM_OK ? sink : NULL;
    return booked(self, status);
}

ivm_status log_case_checkpoint_end(log_case *self)
{
    self->checkpoint = NULL;
    return booked(self, ivm__log_checkpoint_end(self->log, &self->error));
}

/* A record that is begun, perhaps filled, and given up. */
static ivm_status append_abandoned(log_case *self)
{
    ivm__sink *sink;
    uint64_t id = log_case_id(self, log_case_draw(self, 100) == 0);
    ivm_status status = ivm__log_append_begin(self->log, 1, &sink, &self->error);
    if (status == IVM_OK) {
        status = sink_fill(sink, id, log_case_record_size(id));
    }
    ivm__log_append_abandon(self->log);
    return booked(self, status);
}

static ivm_status checkpoint_step(log_case *self)
{
    if (!self->checkpoint) {
        return log_case_checkpoint_begin(self);
    }
    if (log_case_draw(self, 4)) {
        return log_case_checkpoint_end(self);
    }
    ivm__log_checkpoint_abandon(self->log);
    self->checkpoint = NULL;
    return IVM_OK;
}

static ivm_status step(log_case *self)
{
    uint64_t drawn = log_case_draw(self, 100);
    if (drawn < 55) {
        return log_case_append(self, log_case_id(self, log_case_draw(self, 600) == 0));
    }
    if (drawn < 72) {
        return log_case_sync(self);
    }
    if (drawn < 88) {
        return checkpoint_step(self);
    }
    if (drawn < 97) {
        return append_abandoned(self);
    }
    log_case_close(self);
    return log_case_open(self);
}

void log_case_work(log_case *self, uint32_t steps)
{
    ivm_status status = log_case_open(self);
    for (uint32_t i = 0; i < steps && self->log && !ivm__log_broken(self->log) && self->appended < LOG_CASE_RECORDS_MAX; i++) {
        status = step(self);
    }
    (void)status;
    log_case_close(self);
}
