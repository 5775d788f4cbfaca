/* Streams with right hashes that say what no engine would: made by spoiling one that was written, and hashing it again. Each is corrupt, and says of
 * what section, or is what an engine can hold, which saves it as the same bytes and goes on: nothing ends in an assertion, in memory that is not its own, or in an engine half restored. */
#include "checkpoint_bytes.h"
#include "random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define RANDOM_SPOILT 6000u

/* ---- Going on ----------------------------------------------------------------------------------------------------------------------------- */

static void try_push(fixture *it, const char *table, ivm_change change, const char *rows)
{
    ivm_table *found = fixture_table_find(it, table);
    (void)fixture_push(it, found, change, rows);
}

static void read_all(fixture *it)
{
    for (ivm_view *view = it->engine->views; view; view = view->next) {
        ivm_snapshot *snapshot = NULL;
        cr_assert_eq(ivm_read_view(view, &snapshot, &it->error), IVM_OK);
        for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        }
        ivm_snapshot_close(snapshot);
    }
    for (ivm_fact *fact = ivm_fact_next(it->engine, NULL); fact; fact = ivm_fact_next(it->engine, fact)) {
        ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
        cr_assert_eq(ivm_fact_status(fact, &state, &it->error), IVM_OK);
    }
}

/* Pushes and refreshes that ask everything for what it kept; any of them may fail. */
static void go_on_somehow(fixture *it)
{
    static const char *const deferred[] = { "late", "later", "deferred", "deferred more" };
    try_push(it, "d", IVM_INSERT, "7,seven,2000-01-01 9,nine,null");
    try_push(it, "f", IVM_DELETE_KEY, "11 12 10");
    try_push(it, "bag", IVM_INSERT, "3,8 1,5");
    try_push(it, "plain", IVM_DELETE, "a,2026-01-01T00:00:00Z");
    try_push(it, "seen", IVM_INSERT, "9,1 8,1");
    try_push(it, "h", IVM_INSERT, "5,five");
    for (size_t i = 0; i < sizeof deferred / sizeof *deferred; i++) {
        ivm_view *view = fixture_view_find(it, deferred[i]);
        it->error.status = ivm_refresh_view(view, NULL, &it->error);
    }
    try_push(it, "kept", IVM_DELETE, "1,2,0.5 3,8,99.0");
    try_push(it, "kept", IVM_DELETE, "1,2,0.5 2,null,null 3,7,-9.5 3,7,-9.5");
    try_push(it, "h", IVM_DELETE_KEY, "1 5");
    try_push(it, "past", IVM_DELETE, "5,1 5,2");
    try_push(it, "h", IVM_UPSERT, "3,x 2,y 5,z");
    read_all(it);
}

/* ---- Spoilt streams ------------------------------------------------------------------------------------------------------------------------- */

typedef struct trial {
    fixture it; /* what streams are restored into */
    tape own, spoilt, again;
    size_t refused, taken;
} trial;

static void trial_open(trial *one)
{
    *one = (trial){ 0 };
    case_program_open(&one->it);
    case_push(&one->it, "d", IVM_INSERT, "5,five,null");
    case_push(&one->it, "f", IVM_INSERT, "1,5,1,1,1,true");
    case_save(&one->it, &one->own);
}

static void trial_close(trial *one)
{
    case_assert_saved_as(&one->it, &one->own, "at the end");
    tape_free(&one->own);
    tape_free(&one->spoilt);
    tape_free(&one->again);
    fixture_close(&one->it);
}

static bool names_a_section(const char *message)
{
    static const char *const names[] = { "head", "position", "catalog", "state", "track ", "kept ", "pending ", "rows ", "end" };
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        named |= strstr(message, names[i]) != NULL;
    }
    return named;
}

/* Restores the spoilt stream, whose hashes are made right first. */
static void trial_run(trial *one, size_t nth)
{
    bytes_rehash(&one->spoilt);
    ivm_status status = case_restore(&one->it, &one->spoilt);
    if (status != IVM_OK) {
        one->refused++;
        bool refused = status == IVM_CORRUPT || status == IVM_INVALID_ARGUMENT || status == IVM_UNSUPPORTED;
        cr_assert(refused, "%zu: %s: %s", nth, ivm_status_name(status), one->it.error.message);
        cr_assert(status != IVM_CORRUPT || names_a_section(one->it.error.message), "%zu: %s", nth, one->it.error.message);
        if (nth % 64 == 0) {
            case_assert_saved_as(&one->it, &one->own, "refused");
        }
        return;
    }
    one->taken++;
    status = case_save_as(&one->it, &one->again, IVM_COMPRESSION_NONE);
    bool same = status == IVM_OK && one->again.size == one->spoilt.size && !memcmp(one->again.bytes, one->spoilt.bytes, one->again.size);
    cr_assert(same, "%zu: taken and saved as other bytes", nth);
    go_on_somehow(&one->it);
    (void)case_save_as(&one->it, &one->again, IVM_COMPRESSION_NONE);
    cr_assert_eq(case_restore(&one->it, &one->own), IVM_OK, "%zu: %s", nth, one->it.error.message);
}

Test(plan_checkpoint_hostile, every_byte_spoilt_under_right_hashes, .timeout = 500)
{
    trial one;
    tape saved = case_filled();
    trial_open(&one);
    size_t spoilt = 0;
    for (bytes_block at = bytes_first(&saved); at.kind; at = bytes_next(&saved, at)) {
        for (size_t i = 0; i < at.size; i++, spoilt++) {
            bytes_copy(&one.spoilt, &saved);
            one.spoilt.bytes[at.from + i] ^= (uint8_t)(1 << spoilt % 8);
            trial_run(&one, spoilt);
        }
    }
    cr_log_info("%zu bytes spoilt: %zu refused, %zu taken", spoilt, one.refused, one.taken);
    cr_assert_gt(spoilt, 8000u);
    cr_assert_gt(one.refused, spoilt / 2);
    tape_free(&saved);
    trial_close(&one);
}

/* Some bytes of one block. */
static void spoil(tape *it, uint64_t *random)
{
    bytes_block blocks[512];
    size_t count = 0;
    for (bytes_block at = bytes_first(it); at.kind && count < 512; at = bytes_next(it, at)) {
        blocks[count] = at;
        count += at.size > 0;
    }
    cr_assert_gt(count, 0u);
    bytes_block at = blocks[random_short(random) % (count ? count : 1)];
    size_t where = at.from + random_short(random) % at.size, left = at.from + at.size - where;
    size_t size = 1 + random_short(random) % 16;
    size = size < left ? size : left;
    switch (random_short(random) % 6) {
    case 0:
        it->bytes[where] = (uint8_t)random_short(random);
        break;
    case 1:
        memset(it->bytes + where, 0, size);
        break;
    case 2:
        memset(it->bytes + where, 0xff, size);
        break;
    case 3: /* other bytes of the stream */
        memmove(it->bytes + where, it->bytes + random_short(random) % (it->size - size), size);
        break;
    case 4:
        bytes_splice(it, at, where - at.from, 0, size);
        break;
    default:
        bytes_splice(it, at, where - at.from, size, 0);
    }
}

Test(plan_checkpoint_hostile, bytes_spoilt_at_random_under_right_hashes, .timeout = 500)
{
    trial one;
    uint64_t random = 20260730;
    tape saved = case_filled();
    trial_open(&one);
    for (size_t n = 0; n < RANDOM_SPOILT; n++) {
        bytes_copy(&one.spoilt, &saved);
        for (uint64_t times = 1 + random_short(&random) % 3; times > 0; times--) {
            spoil(&one.spoilt, &random);
        }
        trial_run(&one, n);
    }
    cr_log_info("%u streams spoilt: %zu refused, %zu taken", RANDOM_SPOILT, one.refused, one.taken);
    cr_assert_gt(one.taken, 100u);
    tape_free(&saved);
    trial_close(&one);
}

/* Into an engine that has no catalog, which is made from spoilt bytes, too. */
Test(plan_checkpoint_hostile, catalogs_spoilt_under_right_hashes, .timeout = 500)
{
    tape spoilt = { 0 }, again = { 0 };
    uint64_t random = 7;
    size_t taken = 0;
    tape saved = case_filled();
    bytes_block catalog = bytes_find(&saved, IVM__SECTION_CATALOG, 0, 0);
    for (size_t n = 0; n < catalog.size; n++) {
        fixture empty;
        bytes_copy(&spoilt, &saved);
        spoilt.bytes[catalog.from + n] =
            n % 3 == 0 ? (uint8_t)random_short(&random) : (uint8_t)(spoilt.bytes[catalog.from + n] ^ (1 << n % 8));
        bytes_rehash(&spoilt);
        fixture_open(&empty);
        ivm_status status = case_restore(&empty, &spoilt);
        cr_assert(status == IVM_OK || status == IVM_CORRUPT, "byte %zu: %s: %s", n, ivm_status_name(status), empty.error.message);
        if (status == IVM_OK) {
            taken++;
            (void)case_save_as(&empty, &again, IVM_COMPRESSION_NONE);
            cr_assert(again.size == spoilt.size && !memcmp(again.bytes, spoilt.bytes, again.size), "byte %zu", n);
        } else {
            cr_assert_null(empty.engine->tables);
            cr_assert_null(empty.engine->views);
        }
        fixture_close(&empty);
    }
    cr_assert_gt(taken, 50u);
    tape_free(&saved);
    tape_free(&spoilt);
    tape_free(&again);
}
