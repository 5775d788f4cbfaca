/* Tests of engine/log/log_read.c: damage to what was on the disk is corrupt and named by file and byte, a torn tail is cut and told. Every byte flipped,
 * every file cut at every length, records left out and doubled, files missing, doubled, renamed, of another directory, and old ones lying beside. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "log_case.h"
#include "log_fragment.h"

#define NEWEST "checkpoint-0000000000000003"
#define FIRST "log-0000000000000003"  /* three records, from the checkpoint on */
#define SECOND "log-0000000000000006" /* two */
#define LAST "log-0000000000000008"   /* six */
#define LAST_RECORD 8u
#define UNSYNCED 11u /* the records from there on are not known to be on the disk */
#define RECORDS 14u
#define HEAD sizeof(ivm__segment_head)

/* Where in its segment each record begins; of the last segment also where it ends. */
typedef struct damage_case {
    log_case with;
    uint64_t at[RECORDS + 1];
    uint64_t segment_from; /* as log_bytes counts */
} damage_case;

static void append(damage_case *self, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(log_case_append(&self->with, log_case_id(&self->with, false)), IVM_OK);
        self->at[self->with.appended] = ivm__log_state_of(self->with.log).log_bytes - self->segment_from;
    }
}

/* A checkpoint that is given up leaves a new segment. */
static void segment_begin(damage_case *self, bool checkpoint)
{
    cr_assert_eq(log_case_checkpoint_begin(&self->with), IVM_OK);
    if (checkpoint) {
        cr_assert_eq(log_case_checkpoint_end(&self->with), IVM_OK);
    } else {
        ivm__log_checkpoint_abandon(self->with.log);
    }
    self->segment_from = ivm__log_state_of(self->with.log).log_bytes - HEAD;
    self->at[self->with.appended] = HEAD;
}

/* Its process is killed, or it is closed. */
static void damage_init(damage_case *self, uint64_t seed, bool closed)
{
    log_case *with = &self->with;
    memset(self, 0, sizeof *self);
    log_case_init(with, seed);
    with->options.segment_bytes = 0;
    cr_assert_eq(log_case_open(with), IVM_OK);
    append(self, 3);
    segment_begin(self, true);
    append(self, 3);
    segment_begin(self, false);
    append(self, 2);
    segment_begin(self, false);
    append(self, 3);
    cr_assert_eq(log_case_sync(with), IVM_OK);
    append(self, 3);
    if (!closed) {
        disk_die(with->disk);
    }
    log_case_close(with);
    disk_restart(with->disk);
}

/* What is wrong, in one word: "" nothing; else the message. Nothing may have been changed then. */
static const char *opened(log_case *with, ivm_status wanted)
{
    static char message[IVM_ERROR_MESSAGE_SIZE];
    ivm_error error = IVM_ERROR_INIT;
    ivm__log *log = NULL;
    ivm__feed *feed = NULL;
    uint8_t kind;
    uint64_t changes = disk_changes(with->disk);
    ivm_status status = ivm__log_open(LOG_CASE_PATH, &with->options, &with->memory, &log, &error);
    do {
        status = status == IVM_OK ? ivm__log_record_read(log, &kind, &feed, &error) : status;
    } while (status == IVM_OK && feed);
    ivm__log_close(log);
    memcpy(message, error.message, sizeof message);
    cr_assert_eq(status, wanted, "%s: %s", ivm_status_name(status), message);
    cr_assert(status == IVM_OK || disk_changes(with->disk) == changes, "%s", message);
    cr_assert_eq(error.status, status);
    return message;
}

static void corrupt(log_case *with, const char *name, uint64_t from, uint64_t to)
{
    char place[100];
    const char *message = opened(with, IVM_CORRUPT), *found;
    snprintf(place, sizeof place, "%s: byte ", name);
    found = strstr(message, place);
    cr_assert_not_null(found, "%s", message);
    uint64_t at = strtoull(found + strlen(place), NULL, 10);
    cr_assert(from <= at && at <= to, "%s", message);
}

/* Opens with `record` records, the rest of LAST, from `end` bytes, cut and told; once more with nothing to tell. */
static void torn(const damage_case *self, log_case *with, uint64_t record, uint64_t end)
{
    with->synced = record;
    cr_assert_eq(log_case_open(with), IVM_OK);
    const ivm__log_recovery *recovery = ivm__log_recovery_of(with->log);
    cr_assert_eq(with->found, record);
    cr_assert_eq(recovery->bytes_cut, end - self->at[record], "%s", recovery->message);
    cr_assert_eq(recovery->message[0] == 0, end == self->at[record]);
    cr_assert(end == self->at[record] || strstr(recovery->message, LAST));
    log_case_close(with);
    disk_reboot(with->disk);
    cr_assert_eq(log_case_open(with), IVM_OK);
    cr_assert_eq(with->found, record);
    cr_assert_str_empty(ivm__log_recovery_of(with->log)->message);
}

static uint32_t record_of(const damage_case *self, uint64_t byte)
{
    uint32_t record = LAST_RECORD;
    while (byte >= self->at[record + 1]) {
        record++;
    }
    return record;
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------------------------------- */

static void flip(const damage_case *self, const char *name, uint64_t at, uint32_t bit)
{
    log_case with;
    uint64_t size;
    log_case_copy(&with, &self->with, at);
    disk_bytes(with.disk, name, &size)[at] ^= (uint8_t)(1 << bit);
    if (at < HEAD) {
        corrupt(&with, name, 0, 0);
    } else if (strcmp(name, LAST) != 0) {
        corrupt(&with, name, HEAD, at);
    } else if (record_of(self, at) < UNSYNCED) {
        corrupt(&with, name, self->at[record_of(self, at)], at);
    } else {
        torn(self, &with, record_of(self, at), size);
    }
    log_case_deinit(&with);
}

Test(engine_log_damage, every_byte_flipped)
{
    static const char *const names[] = { FIRST, SECOND, LAST };
    for (uint64_t seed = 0; seed < 3; seed++) {
        damage_case self;
        damage_init(&self, seed, false);
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t size;
            cr_assert_not_null(disk_bytes(self.with.disk, names[i], &size));
            for (uint64_t at = 0; at < size; at++) {
                flip(&self, names[i], at, at % 8);
                flip(&self, names[i], at, (uint32_t)log_case_draw(&self.with, 8));
            }
        }
        log_case_deinit(&self.with);
    }
}

/* One that was closed has a mark at its end: the last record is as safe as any. */
Test(engine_log_damage, every_byte_of_a_log_that_was_closed_flipped)
{
    damage_case self;
    uint64_t size;
    damage_init(&self, 20, true);
    (void)disk_bytes(self.with.disk, LAST, &size);
    cr_assert_eq(size, self.at[RECORDS] + sizeof(ivm__fragment));
    for (uint64_t at = 0; at < size * 8; at++) {
        log_case with;
        log_case_copy(&with, &self.with, at);
        disk_bytes(with.disk, LAST, &size)[at / 8] ^= (uint8_t)(1 << at % 8);
        if (at / 8 < self.at[RECORDS]) {
            corrupt(&with, LAST, 0, at / 8);
        } else {
            torn(&self, &with, RECORDS, size);
        }
        log_case_deinit(&with);
    }
    for (uint32_t i = 0; i < 3; i++) { /* closed again and again: one mark */
        cr_assert_eq(log_case_open(&self.with), IVM_OK);
        cr_assert_eq(self.with.found, RECORDS);
        log_case_close(&self.with);
    }
    (void)disk_bytes(self.with.disk, LAST, &size);
    cr_assert_eq(size, self.at[RECORDS] + sizeof(ivm__fragment));
    log_case_deinit(&self.with);
}

Test(engine_log_damage, every_byte_of_a_checkpoints_head_flipped)
{
    damage_case self;
    damage_init(&self, 3, false);
    for (uint64_t at = 0; at < sizeof(ivm__checkpoint_head) * 8; at++) {
        log_case with;
        uint64_t size;
        log_case_copy(&with, &self.with, at);
        disk_bytes(with.disk, NEWEST, &size)[at / 8] ^= (uint8_t)(1 << at % 8);
        corrupt(&with, NEWEST, 0, 0);
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

static void cut(const damage_case *self, const char *name, uint64_t size)
{
    log_case with;
    uint64_t whole;
    log_case_copy(&with, &self->with, size);
    const uint8_t *bytes = disk_bytes(with.disk, name, &whole);
    disk_put(with.disk, name, bytes, size);
    if (strcmp(name, LAST) == 0 && size >= HEAD) { /* of a file whose end was taken away nobody can say that it was longer */
        torn(self, &with, size == whole ? RECORDS : record_of(self, size), size);
    } else {
        cr_assert_not_null(strstr(opened(&with, IVM_CORRUPT), "log-"));
    }
    log_case_deinit(&with);
}

Test(engine_log_damage, every_segment_cut_at_every_length)
{
    static const char *const names[] = { FIRST, SECOND, LAST };
    damage_case self;
    damage_init(&self, 4, false);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t size;
        cr_assert_not_null(disk_bytes(self.with.disk, names[i], &size));
        for (uint64_t at = 0; at < size + (i == 2); at++) {
            cut(&self, names[i], at);
        }
    }
    log_case_deinit(&self.with);
}

Test(engine_log_damage, checkpoints_cut)
{
    damage_case self;
    damage_init(&self, 5, false);
    for (uint64_t size = 0; size < sizeof(ivm__checkpoint_head); size++) {
        log_case with;
        uint64_t whole;
        log_case_copy(&with, &self.with, size);
        const uint8_t *bytes = disk_bytes(with.disk, NEWEST, &whole);
        disk_put(with.disk, NEWEST, bytes, size);
        cr_assert_not_null(strstr(opened(&with, IVM_CORRUPT), NEWEST));
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

/* The stream itself is its reader's to judge; that it was read to its end is judged here. */
Test(engine_log_damage, a_checkpoint_with_more_behind_it)
{
    damage_case self;
    ivm__log *log;
    ivm__feed *feed;
    uint64_t size;
    uint8_t byte, kind;
    ivm_error error = IVM_ERROR_INIT;
    damage_init(&self, 6, false);
    cr_assert_eq(ivm__log_open(LOG_CASE_PATH, &self.with.options, &self.with.memory, &log, &error), IVM_OK);
    cr_assert_eq(ivm__log_checkpoint_read(log, &feed, &error), IVM_OK);
    (void)disk_bytes(self.with.disk, NEWEST, &size);
    for (uint64_t i = sizeof(ivm__checkpoint_head); i < size - 1; i++) {
        cr_assert_eq(feed->read(feed, &byte, 1), IVM_OK);
    }
    cr_assert_eq(ivm__log_record_read(log, &kind, &feed, &error), IVM_CORRUPT);
    cr_assert_not_null(strstr(error.message, NEWEST), "%s", error.message);
    ivm__log_close(log);
    log_case_deinit(&self.with);
}

/* The bytes of LAST with the records from `from` on up to `to` put in the place of `at`. */
static void rearranged(const damage_case *self, uint64_t at_from, uint64_t at_to, uint64_t from, uint64_t to)
{
    log_case with;
    uint64_t size, length = 0;
    log_case_copy(&with, &self->with, at_from);
    const uint8_t *bytes = disk_bytes(with.disk, LAST, &size);
    uint8_t *made = malloc(2 * size);
    cr_assert(made);
    const uint64_t parts[3][2] = { { 0, at_from }, { from, to }, { at_to, size } };
    for (uint32_t i = 0; i < 3; i++) {
        memcpy(made + length, bytes + parts[i][0], parts[i][1] - parts[i][0]);
        length += parts[i][1] - parts[i][0];
    }
    disk_put(with.disk, LAST, made, length);
    corrupt(&with, LAST, at_from, at_from + (to - from));
    free(made);
    log_case_deinit(&with);
}

Test(engine_log_damage, records_left_out_doubled_and_changed_for_another)
{
    damage_case self;
    damage_init(&self, 7, false);
    const uint64_t *at = self.at;
    rearranged(&self, at[9], at[10], 0, 0);
    rearranged(&self, at[8], at[9], 0, 0);
    rearranged(&self, at[10], at[10], at[9], at[10]);
    rearranged(&self, at[9], at[10], at[8], at[9]);
    rearranged(&self, at[8], at[9], at[9], at[10]);
    log_case_deinit(&self.with);
}

Test(engine_log_damage, bytes_behind_the_end)
{
    damage_case self;
    damage_init(&self, 8, false);
    for (uint32_t i = 0; i < 200; i++) {
        log_case with;
        uint64_t size;
        uint8_t *made = calloc(1, 100000);
        cr_assert(made);
        log_case_copy(&with, &self.with, i);
        const uint8_t *bytes = disk_bytes(with.disk, i % 3 ? LAST : SECOND, &size);
        memcpy(made, bytes, size);
        uint64_t more = 1 + i * 37 % 700;
        for (uint64_t j = 0; j < more && i % 2; j++) {
            made[size + j] = (uint8_t)log_case_draw(&with, 256);
        }
        disk_put(with.disk, i % 3 ? LAST : SECOND, made, size + more);
        if (i % 3) {
            torn(&self, &with, RECORDS, size + more);
        } else { /* where the next segment begins tells that they are none of it */
            torn(&self, &with, RECORDS, self.at[RECORDS]);
        }
        free(made);
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

/* Made up, with hashes that are right: a record that says of itself and later ones that they are on the disk. */
Test(engine_log_damage, a_fragment_that_cannot_know_what_it_says)
{
    damage_case self;
    uint64_t size;
    ivm__segment_head head;
    ivm__fragment fragment;
    damage_init(&self, 9, false);
    uint8_t *bytes = disk_bytes(self.with.disk, LAST, &size), *at = bytes + self.at[RECORDS - 1];
    memcpy(&head, bytes, sizeof head);
    memcpy(&fragment, at, sizeof fragment);
    for (uint64_t synced = RECORDS - 2; synced < RECORDS + 3; synced++) {
        log_case with;
        fragment.synced = synced;
        ivm__fragment_seal(&fragment, at + sizeof fragment, head.segment, head.segment);
        memcpy(at, &fragment, sizeof fragment);
        log_case_copy(&with, &self.with, synced);
        torn(&self, &with, synced < RECORDS ? RECORDS : RECORDS - 1, size);
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

static void fragment_make_up(log_case *with, uint8_t *bytes, uint64_t size, uint64_t at)
{
    static uint8_t payload[IVM__FRAGMENT_BYTES];
    ivm__segment_head head;
    ivm__fragment fragment;
    memcpy(&head, bytes, sizeof head);
    memcpy(&fragment, bytes + at, sizeof fragment);
    memset(payload, 0, sizeof payload);
    memcpy(payload, bytes + at + sizeof fragment, size - at - sizeof fragment);
    uint64_t small = log_case_draw(with, 30), any = log_case_draw(with, 3) ? small : small << log_case_draw(with, 60);
    switch (log_case_draw(with, 6)) {
    case 0:
        fragment.kind = (uint8_t)small;
        break;
    case 1:
        fragment.flags = (uint8_t)(small % 5);
        break;
    case 2:
        fragment.size = (uint32_t)(any % (IVM__FRAGMENT_BYTES + 1));
        break;
    case 3:
        fragment.index = (uint32_t)any;
        break;
    case 4:
        fragment.sequence = any;
        break;
    default:
        fragment.synced = any;
        break;
    }
    ivm__fragment_seal(&fragment, payload, head.segment, head.segment);
    memcpy(bytes + at, &fragment, sizeof fragment);
}

/* Whatever heads say, with hashes that are right: no byte is read that is not there, and it ends. */
Test(engine_log_damage, fragments_made_up)
{
    damage_case self;
    damage_init(&self, 30, true);
    for (uint64_t n = 0; n < 3000; n++) {
        log_case with;
        uint64_t size;
        ivm_error error = IVM_ERROR_INIT;
        ivm__log *log = NULL;
        ivm__feed *feed = NULL;
        uint8_t kind, byte;
        log_case_copy(&with, &self.with, n);
        with.random += n * n;
        uint8_t *bytes = disk_bytes(with.disk, LAST, &size);
        for (uint64_t i = 0; i < 1 + n % 3; i++) {
            fragment_make_up(&with, bytes, size, self.at[LAST_RECORD + log_case_draw(&with, RECORDS - LAST_RECORD + 1)]);
        }
        ivm_status status = ivm__log_open(LOG_CASE_PATH, &with.options, &with.memory, &log, &error);
        while (status == IVM_OK && (status = ivm__log_record_read(log, &kind, &feed, &error)) == IVM_OK && feed) {
            while (feed->read(feed, &byte, 1) == IVM_OK) {
            }
        }
        cr_assert(status == IVM_OK || status == IVM_CORRUPT, "%s", error.message);
        ivm__log_close(log);
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

/* ---- Files ---------------------------------------------------------------------------------------------------------------------------- */

Test(engine_log_damage, files_missing)
{
    static const char *const names[] = { FIRST, SECOND, NEWEST };
    static const char *const texts[] = { FIRST ": it is missing", LAST ": byte 0: the segment before it, " FIRST, "no checkpoint" };
    damage_case self;
    log_case with;
    damage_init(&self, 9, false);
    for (uint32_t i = 0; i < 3; i++) {
        log_case_copy(&with, &self.with, i);
        disk_take_off(with.disk, names[i]);
        const char *message = opened(&with, IVM_CORRUPT);
        cr_assert_not_null(strstr(message, texts[i]), "%s", message);
        log_case_deinit(&with);
    }
    log_case_copy(&with, &self.with, 4);
    disk_take_off(with.disk, LAST); /* which nobody can tell */
    with.synced = LAST_RECORD;
    cr_assert_eq(log_case_open(&with), IVM_OK);
    cr_assert_eq(with.found, LAST_RECORD);
    log_case_deinit(&with);
    log_case_deinit(&self.with);
}

Test(engine_log_damage, segments_doubled)
{
    static const char *const doubles[][2] = { { LAST, "log-000000000000000e" },
                                              { SECOND, "log-0000000000000007" },
                                              { FIRST, "log-0000000000000004" },
                                              { FIRST, "log-ffffffffffffffff" },
                                              { SECOND, LAST },
                                              { LAST, FIRST } };
    damage_case self;
    damage_init(&self, 10, false);
    for (uint32_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        log_case with;
        uint64_t size;
        log_case_copy(&with, &self.with, i);
        const uint8_t *bytes = disk_bytes(with.disk, doubles[i][0], &size);
        disk_put(with.disk, doubles[i][1], bytes, size);
        cr_assert_not_null(strstr(opened(&with, IVM_CORRUPT), "log-"));
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
}

Test(engine_log_damage, files_of_another_directory)
{
    static const char *const names[] = { FIRST, SECOND, LAST, NEWEST };
    damage_case self, other;
    damage_init(&self, 11, false);
    damage_init(&other, 12, false);
    for (uint32_t i = 0; i < 4; i++) {
        log_case with;
        uint64_t size;
        log_case_copy(&with, &self.with, i);
        const uint8_t *bytes = disk_bytes(other.with.disk, names[i], &size);
        disk_put(with.disk, names[i], bytes, size);
        const char *message = opened(&with, IVM_CORRUPT);
        cr_assert_not_null(strstr(message, i == 3 ? FIRST : names[i]), "%s", message);
        cr_assert_not_null(strstr(message, "another directory"), "%s", message);
        log_case_deinit(&with);
    }
    log_case_deinit(&self.with);
    log_case_deinit(&other.with);
}

Test(engine_log_damage, what_is_old_or_half_made_lies_beside)
{
    static const char *const names[] = { "checkpoint-0000000000000000",     "checkpoint-0000000000000002", "log-0000000000000000",
                                         "checkpoint-0000000000000009.new", "log-0000000000000009.new",    "log-0000000000000002" };
    static const char *const strange[] = { "LOG-0000000000000007", "log-00000000000000g7", "log-7", "log-0000000000000007.old", "notes" };
    damage_case self;
    char found[64][40];
    damage_init(&self, 13, false);
    for (uint32_t i = 0; i < 6; i++) {
        disk_put(self.with.disk, names[i], "nothing", 7);
    }
    for (uint32_t i = 0; i < 5; i++) {
        disk_put(self.with.disk, strange[i], "nothing", 7);
    }
    cr_assert_eq(log_case_open(&self.with), IVM_OK);
    cr_assert_eq(self.with.found, RECORDS);
    cr_assert_eq(disk_names(self.with.disk, found, 64), 10, "what does not count is removed, what is not the log's stays");
    log_case_deinit(&self.with);
}

Test(engine_log_damage, a_later_version)
{
    damage_case self;
    log_case with;
    uint64_t size;
    damage_init(&self, 14, false);
    log_case_copy(&with, &self.with, 0);
    ivm__segment_head segment;
    memcpy(&segment, disk_bytes(with.disk, LAST, &size), sizeof segment);
    segment.format++;
    segment.hash = ivm__hash_bytes(&segment, offsetof(ivm__segment_head, hash), segment.directory);
    memcpy(disk_bytes(with.disk, LAST, &size), &segment, sizeof segment);
    cr_assert_not_null(strstr(opened(&with, IVM_UNSUPPORTED), LAST));
    log_case_deinit(&with);
    ivm__checkpoint_head checkpoint;
    memcpy(&checkpoint, disk_bytes(self.with.disk, NEWEST, &size), sizeof checkpoint);
    checkpoint.format++;
    checkpoint.hash = ivm__hash_bytes(&checkpoint, offsetof(ivm__checkpoint_head, hash), 0);
    memcpy(disk_bytes(self.with.disk, NEWEST, &size), &checkpoint, sizeof checkpoint);
    cr_assert_not_null(strstr(opened(&self.with, IVM_UNSUPPORTED), NEWEST));
    log_case_deinit(&self.with);
}
