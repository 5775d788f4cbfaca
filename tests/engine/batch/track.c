/* tests engine/batch/track.c, engine/batch/track_held.c and engine/batch/track_keys.c: counts against the rows, over any history. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cover.h"
#include "track.h"
#include "track_case.h"
#include "track_inside.h"

#define ALL_TABLES ((1u << TRACK_TABLES) - 1)

static track_case tested;

static void is_right(void)
{
    const char *what = track_check(&tested);
    cr_assert_null(what, "%s", what);
}

static uint64_t history_seed;

static void tell_seed(void)
{
    if (history_seed) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)history_seed);
    }
}

static void some_pushes(uint32_t count, uint32_t rows, uint32_t tables)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)track_push(&tested, track_batch(&tested, (uint32_t)track_random(&tested, rows + 1), tables));
        is_right();
    }
}

/* ---- Any history --------------------------------------------------------------------------------------------------------------------------- */

static void failing_push(void)
{
    tested.fails = true;
    ivm_status status = track_push(&tested, track_batch(&tested, 12, ALL_TABLES));
    cr_assert_neq(status, IVM_OK);
    tested.fails = false;
    is_right();
}

static void history(uint64_t seed)
{
    track_open(&tested, seed);
    if (seed % 2) {
        some_pushes(8, 20, ALL_TABLES); /* there are rows when the facts are declared */
    }
    track_declare(&tested);
    is_right();
    track_views(&tested);
    for (int i = 0; i < 60; i++) {
        uint64_t choice = track_random(&tested, 12);
        if (choice == 0) {
            failing_push();
        } else if (choice == 1) {
            tested.fails = track_random(&tested, 3) == 0;
            cr_assert_eq(ivm_refresh_view(tested.late, NULL, NULL), tested.fails ? IVM_OVERFLOW : IVM_OK);
            tested.fails = false;
        } else if (choice == 2) {
            some_pushes(1, 8, 1u << TRACK_PARENT | 1u << TRACK_WIDE | 1u << TRACK_TREE);
        } else if (choice == 3) {
            some_pushes(1, 20, 1u << TRACK_CHILD | 1u << TRACK_BAG | 1u << TRACK_SIGNED);
        } else {
            some_pushes(1, 12, ALL_TABLES);
        }
        is_right();
    }
}

Test(engine_track, counts_are_what_the_rows_come_to, .fini = tell_seed)
{
    uint64_t held_fresh = 0, held_gone = 0, free_fresh = 0, free_gone = 0, awaited = 0;
    for (history_seed = 1; history_seed <= 150; history_seed++) {
        history(history_seed);
        held_fresh += tested.held_fresh;
        held_gone += tested.held_gone;
        free_fresh += tested.free_fresh;
        free_gone += tested.free_gone;
        awaited += tested.awaited;
        track_close(&tested);
    }
    history_seed = 0;
    cr_assert(held_fresh > 1000 && held_gone > 1000 && free_fresh > 1000 && free_gone > 1000 && awaited > 500, "%lu %lu %lu %lu %lu",
              (unsigned long)held_fresh, (unsigned long)held_gone, (unsigned long)free_fresh, (unsigned long)free_gone,
              (unsigned long)awaited);
}

/* Long enough for held to be caught up with again and again, over ids that are given twice. */
Test(engine_track, refreshes_far_apart, .fini = tell_seed)
{
    for (history_seed = 1; history_seed <= 20; history_seed++) {
        track_open(&tested, history_seed + 1000);
        track_declare(&tested);
        track_views(&tested);
        for (int i = 0; i < 12; i++) {
            some_pushes(10, 12, ALL_TABLES);
            cr_assert_eq(ivm_refresh_view(tested.late, NULL, &tested.error), IVM_OK, "%s", tested.error.message);
            is_right();
        }
        track_close(&tested);
    }
    history_seed = 0;
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------------------- */

static void out_of_memory_in(bool refresh, uint64_t seed)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        track_open(&tested, seed);
        track_declare(&tested);
        some_pushes(8, 30, ALL_TABLES);
        track_views(&tested);
        some_pushes(refresh ? 4 : 0, 20, ALL_TABLES);
        ivm_batch *batch = refresh ? NULL : track_batch(&tested, 40, ALL_TABLES & ~(1u << TRACK_BAG));
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = refresh ? ivm_refresh_view(tested.late, NULL, &tested.error) : track_push(&tested, batch);
        done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY, "call %lu: %s", (unsigned long)n, tested.error.message);
        is_right();
        some_pushes(3, 20, ALL_TABLES);
        cr_assert_eq(ivm_refresh_view(tested.late, NULL, NULL), IVM_OK);
        is_right();
        track_close(&tested);
    }
}

Test(engine_track, out_of_memory_in_a_push_leaves_the_counts)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        out_of_memory_in(false, seed);
    }
}

Test(engine_track, out_of_memory_in_a_refresh_leaves_the_counts)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        out_of_memory_in(true, seed);
    }
}

Test(engine_track, out_of_memory_when_declared_leaves_no_fact)
{
    bool done = false;
    track_open(&tested, 5);
    some_pushes(10, 30, ALL_TABLES);
    for (uint64_t n = 1; !done; n++) {
        int64_t blocks = tested.allocator.blocks;
        uint64_t version = tested.engine->facts_version;
        ivm_fact *fact = NULL;
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = ivm_foreign_key_declare(tested.tables[TRACK_BAG], "a, b", tested.tables[TRACK_PARENT], "k, s", IVM_TRACKED,
                                                    &fact, &tested.error);
        done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert(done == (fact != NULL) && done == (tested.engine->facts != NULL));
        cr_assert(done || (tested.allocator.blocks == blocks && tested.engine->facts_version == version));
        tested.facts[0] = fact;
        tested.facts_count = done;
    }
    is_right();
    cr_assert_gt(track_orphans(tested.facts[0]), 0);
    track_close(&tested);
}

/* ---- What it costs ------------------------------------------------------------------------------------------------------------------------- */

static void put(uint32_t table, int64_t weight, const ivm_value *row, size_t count)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    (void)ivm_batch_row(batch, tested.tables[table], IVM_WEIGHTED, weight, row, count);
    cr_assert_eq(track_push(&tested, batch), IVM_OK, "%s", tested.error.message);
}
#define PUT(table, weight, ...) put(table, weight, IVM_VALUES(__VA_ARGS__))

Test(engine_track, nothing_is_counted_while_all_is_well)
{
    track_open(&tested, 6);
    track_declare(&tested);
    ivm__track *track = tested.facts[1]->track;
    PUT(TRACK_PARENT, 1, ivm_int64(1), ivm_int64(0), ivm_string("a"));
    for (int i = 0; i < 50; i++) {
        PUT(TRACK_BAG, 1, ivm_int64(1), ivm_string("a"), ivm_null());
    }
    cr_assert(!track->held.whole && track->waiting.store.rows_end == 0);
    PUT(TRACK_PARENT, -1, ivm_int64(1), ivm_int64(0), ivm_string("a")); /* the first that leaves */
    cr_assert(track->held.whole && track->held_end == 50 && track_orphans(tested.facts[1]) == 50);
    PUT(TRACK_PARENT, 1, ivm_int64(1), ivm_int64(0), ivm_string("a"));
    for (int i = 0; i < 50; i++) {
        PUT(TRACK_BAG, 1, ivm_int64(1), ivm_string("a"), ivm_null());
    }
    cr_assert_eq(track->held_end, 50u); /* rows that came since are not counted before they are asked for */
    is_right();
    PUT(TRACK_PARENT, -1, ivm_int64(1), ivm_int64(0), ivm_string("a"));
    cr_assert(track->held_end == 100 && track_orphans(tested.facts[1]) == 100 && track_orphans_keys(tested.facts[1]) == 1);
    is_right();
    track_close(&tested);
}

Test(engine_track, a_parent_that_changes_is_neither_fresh_nor_gone)
{
    track_open(&tested, 7);
    track_declare(&tested);
    PUT(TRACK_WIDE, 1, ivm_int64(1), ivm_int64(0));
    PUT(TRACK_BAG, 3, ivm_null(), ivm_null(), ivm_int64(1));
    for (int64_t v = 0; v < 10; v++) {
        ivm_batch *batch;
        cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
        ivm_batch_upsert(batch, tested.tables[TRACK_WIDE], ivm_int64(1), ivm_int64(v + 1));
        cr_assert_eq(track_push(&tested, batch), IVM_OK);
        cr_assert_eq(track_orphans(tested.facts[2]), 0);
    }
    cr_assert(!tested.facts[2]->track->held.whole);
    track_close(&tested);
}

/* Of a table that allows negative weights +1 and -1 are two rows that wait; of any other a row counts as often as it is there. */
Test(engine_track, rows_of_any_sign_count_once)
{
    track_open(&tested, 8);
    track_declare(&tested);
    PUT(TRACK_SIGNED, 5, ivm_int64(1), ivm_null(), ivm_int64(7));
    PUT(TRACK_SIGNED, -5, ivm_int64(2), ivm_null(), ivm_int64(7));
    PUT(TRACK_BAG, 5, ivm_int64(1), ivm_null(), ivm_int64(7));
    cr_assert(track_orphans(tested.facts[4]) == 2 && track_orphans_keys(tested.facts[4]) == 1 && track_orphans(tested.facts[2]) == 5);
    PUT(TRACK_SIGNED, 5, ivm_int64(2), ivm_null(), ivm_int64(7));
    cr_assert_eq(track_orphans(tested.facts[4]), 1);
    PUT(TRACK_SIGNED, -7, ivm_int64(1), ivm_null(), ivm_int64(7));
    cr_assert_eq(track_orphans(tested.facts[4]), 1); /* below 0, and there */
    is_right();
    track_close(&tested);
}

Test(engine_track, a_key_held_too_often_is_an_overflow)
{
    track_open(&tested, 9);
    track_declare(&tested);
    PUT(TRACK_BAG, INT64_MAX, ivm_int64(1), ivm_string("a"), ivm_int64(7));
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    (void)ivm_batch_row(batch, tested.tables[TRACK_BAG], IVM_WEIGHTED, INT64_MAX, IVM_VALUES(ivm_int64(1), ivm_string("a"), ivm_int64(8)));
    cr_assert_eq(track_push(&tested, batch), IVM_OVERFLOW);
    cr_assert_str_eq(tested.error.message, "table bag: too many rows refer through (b, a) to one key of parent");
    is_right();
    PUT(TRACK_PARENT, 1, ivm_int64(1), ivm_int64(0), ivm_string("a"));
    PUT(TRACK_BAG, INT64_MAX, ivm_int64(1), ivm_string("a"), ivm_int64(8)); /* nobody counts who has a parent */
    cr_assert_eq(track_orphans(tested.facts[2]), 2 * (uint64_t)INT64_MAX);
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    ivm_batch_delete_key(batch, tested.tables[TRACK_PARENT], ivm_string("a"), ivm_int64(1));
    cr_assert_eq(track_push(&tested, batch), IVM_OVERFLOW);
    is_right();
    ivm_fact *again = NULL;
    cr_assert_eq(ivm_foreign_key_declare(tested.tables[TRACK_BAG], "a", tested.tables[TRACK_WIDE], "w", IVM_TRACKED, &again, &tested.error),
                 IVM_OVERFLOW);
    cr_assert_str_eq(tested.error.message, "table bag: too many rows refer through (a) to one key of wide");
    cr_assert_null(again);
    track_close(&tested);
}

/* ---- Many rows ------------------------------------------------------------------------------------------------------------------------------ */

enum { STAR_PARENTS = 6000, STAR_CHILDREN = 5000 };
typedef struct star {
    int64_t keys[STAR_PARENTS], refers[STAR_CHILDREN];
    uint8_t there[(STAR_CHILDREN + 7) / 8], never[(STAR_CHILDREN + 7) / 8];
    int32_t offsets[STAR_CHILDREN + 1];
} star;

static void star_fill(star *it, bool nulls)
{
    *it = (star){ 0 };
    memset(it->there, nulls ? 0x7f : 0xff, sizeof it->there); /* every eighth is null */
    for (int64_t i = 0; i < STAR_PARENTS; i++) {
        it->keys[i] = i * 3;
    }
    for (int64_t i = 0; i < STAR_CHILDREN; i++) { /* in the first chunks all have parents */
        it->refers[i] = (int64_t)track_random(&tested, STAR_PARENTS) * (i < 2048 ? 3 : 1);
    }
}

static ivm_batch *star_parents(const star *it)
{
    ivm_batch *batch;
    ivm_column_data columns[] = { { .values = it->keys }, { .values = it->keys } };
    ivm_rows rows = { STAR_PARENTS, 2, columns, NULL };
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_columns(batch, tested.tables[TRACK_WIDE], IVM_INSERT, &rows), IVM_OK);
    return batch;
}

static ivm_batch *star_children(const star *it, ivm_change change)
{
    ivm_batch *batch;
    ivm_column_data columns[] = { { .values = it->refers, .validity = it->never },
                                  { .values = "", .validity = it->never, .offsets = it->offsets },
                                  { .values = it->refers, .validity = it->there } };
    ivm_rows rows = { STAR_CHILDREN, 3, columns, NULL };
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    cr_assert_eq(ivm_batch_columns(batch, tested.tables[TRACK_BAG], change, &rows), IVM_OK);
    return batch;
}

/* Key `last` of the parents goes or comes, alone. */
static void star_last(const star *it, ivm_change change)
{
    ivm_batch *batch;
    int64_t last = it->keys[STAR_PARENTS - 1];
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    (void)ivm_batch_row(batch, tested.tables[TRACK_WIDE], change, 1, IVM_VALUES(ivm_int64(last), ivm_int64(last)));
    cr_assert_eq(track_push(&tested, batch), IVM_OK);
}

/* Chunks that are full, and a parent that is large; with and without a cover, and with rows of it touched in the step or not. */
static void star_check(bool cover, bool nulls)
{
    star *it = malloc(sizeof *it);
    uint64_t wait = 0;
    track_open(&tested, 10);
    track_declare(&tested);
    star_fill(it, nulls);
    for (uint32_t i = 0; i < STAR_CHILDREN; i++) {
        wait += (!nulls || i % 8 != 7) && it->refers[i] % 3 != 0;
    }
    ivm_fact *fact = tested.facts[2];
    ivm__cover *made = NULL;
    cr_assert_eq(track_push(&tested, star_parents(it)), IVM_OK, "%s", tested.error.message);
    cr_assert(!cover || ivm__index_cover(tested.tables[TRACK_WIDE]->key_index, 0, &made) == IVM_OK);
    cr_assert_eq(track_push(&tested, star_children(it, IVM_INSERT)), IVM_OK, "%s", tested.error.message);
    cr_assert_eq(track_orphans(fact), wait);
    star_last(it, IVM_DELETE);
    star_last(it, IVM_INSERT);
    cr_assert_eq(track_push(&tested, star_children(it, IVM_INSERT)), IVM_OK);
    cr_assert_eq(track_orphans(fact), 2 * wait);
    cr_assert_eq(track_push(&tested, star_children(it, IVM_DELETE)), IVM_OK);
    cr_assert_eq(track_orphans(fact), wait);
    ivm_batch *both = star_children(it, IVM_DELETE);
    ivm_batch_upsert(both, tested.tables[TRACK_WIDE], ivm_int64(0), ivm_int64(-1)); /* a touched row: no cover is asked */
    cr_assert_eq(track_push(&tested, both), IVM_OK);
    cr_assert(track_orphans(fact) == 0 && track_orphans_keys(fact) == 0);
    track_close(&tested);
    free(it);
}

Test(engine_track, many_rows_are_looked_up_in_a_cover_or_in_the_rows)
{
    star_check(false, false);
    star_check(true, false);
    star_check(false, true);
    star_check(true, true);
}
