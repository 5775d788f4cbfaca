/* Streams put together from two, or written over, with right hashes: each part is one that could be, and together they cannot. Every one is corrupt
 * and names where, and leaves the engine as it was. */
#include "checkpoint_bytes.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Two engines --------------------------------------------------------------------------------------------------------------------------- */

/* Of one catalog, which hold different rows. */
typedef struct pair {
    fixture it, other;
    tape own, others;
} pair;

static void pair_open(pair *both, void (*declare)(fixture *))
{
    *both = (pair){ 0 };
    fixture_open(&both->it);
    fixture_open(&both->other);
    declare(&both->it);
    declare(&both->other);
}

/* The first one's stream with a section of the other's. */
static void transplant(pair *both, uint32_t kind, uint32_t ordinal)
{
    case_save(&both->it, &both->own);
    case_save(&both->other, &both->others);
    bytes_block from = bytes_find(&both->others, kind, ordinal, 0), to = bytes_find(&both->own, kind, ordinal, 0);
    bytes_splice(&both->own, to, 0, to.size, from.size);
    memcpy(both->own.bytes + to.from, both->others.bytes + from.from, from.size);
}

/* What was made of the first one's stream is refused, by it and by an empty engine, with this in the message. Closes both. */
static void refused(pair *both, const char *part)
{
    tape before = { 0 }, nothing = { 0 };
    fixture empty;
    bytes_rehash(&both->own);
    case_save(&both->it, &before);
    cr_assert_eq(case_restore(&both->it, &both->own), IVM_CORRUPT, "not refused: %s", part);
    cr_assert_not_null(strstr(both->it.error.message, part), "\"%s\" is not in \"%s\"", part, both->it.error.message);
    case_assert_saved_as(&both->it, &before, part);
    fixture_open(&empty);
    case_save(&empty, &nothing);
    cr_assert_eq(case_restore(&empty, &both->own), IVM_CORRUPT, "%s", part);
    case_assert_saved_as(&empty, &nothing, part);
    fixture_close(&empty);
    tape_free(&before);
    tape_free(&nothing);
    tape_free(&both->own);
    tape_free(&both->others);
    fixture_close(&both->it);
    fixture_close(&both->other);
}

/* ---- What is pending ------------------------------------------------------------------------------------------------------------------------- */

static void bag_and_deferred(fixture *it)
{
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    fixture_table(it, "b", "n int64", NULL);
    fixture_table(it, "k", "id int64; s string", "id");
    fixture_make_with(it, "v", scan_of("b", NULL), &late);
    fixture_make_with(it, "w", scan_of("k", NULL), &late);
}

static void pending_case(const char *pending, ivm_change change, const char *part)
{
    pair both;
    pair_open(&both, bag_and_deferred);
    fixture *each[] = { &both.it, &both.other };
    for (int i = 0; i < 2; i++) {
        case_push(each[i], "b", IVM_INSERT, "1 2");
        case_refresh(each[i], "v");
    }
    case_push(&both.it, "b", IVM_INSERT, "3");
    case_push(&both.other, "b", change, pending);
    transplant(&both, IVM__SECTION_PENDING, 0);
    refused(&both, part);
}

Test(plan_checkpoint_crafted, pending_rows_that_are_not_there)
{
    pending_case("4", IVM_INSERT, "a row that is pending is not there, in block");
}

Test(plan_checkpoint_crafted, pending_rows_of_more_weight_than_there_is)
{
    pending_case("3 3", IVM_INSERT, "a row that is pending weighs more than all that there is of it, in block");
}

/* Some came, some went: the rows before are those now less these. */
Test(plan_checkpoint_crafted, pending_rows_that_came_and_are_not_there)
{
    pair both;
    pair_open(&both, bag_and_deferred);
    case_push(&both.other, "b", IVM_INSERT, "1 2 9");
    case_refresh(&both.other, "v");
    case_push(&both.other, "b", IVM_INSERT, "4");
    case_push(&both.other, "b", IVM_DELETE, "9");
    transplant(&both, IVM__SECTION_PENDING, 0);
    refused(&both, "pending 0.0, row 0: view v: what was in b before it cannot be");
}

static void keyed_case(const char *now, const char *before, const char *after, uint32_t row)
{
    pair both;
    char part[80];
    pair_open(&both, bag_and_deferred);
    case_push(&both.it, "k", IVM_INSERT, now);
    case_push(&both.other, "k", IVM_INSERT, before);
    case_refresh(&both.it, "w");
    case_refresh(&both.other, "w");
    case_push(&both.other, "k", IVM_UPSERT, after);
    transplant(&both, IVM__SECTION_PENDING, 1);
    snprintf(part, sizeof part, "pending 1.0, row %u: view w: what was in k before it cannot be", row);
    refused(&both, part);
}

/* Pending are -(1, a) and +(1, b). */
Test(plan_checkpoint_crafted, pending_rows_of_a_key_that_has_another_row)
{
    keyed_case("1,c", "1,a", "1,b", 1); /* (1, b) is not there */
    keyed_case("2,b", "1,a", "1,b", 1);
}

/* Pending is -(1, a) alone: before there would have been (1, a) and (1, c). */
Test(plan_checkpoint_crafted, a_key_that_had_two_rows)
{
    pair both;
    pair_open(&both, bag_and_deferred);
    case_push(&both.it, "k", IVM_INSERT, "1,c 2,x");
    case_push(&both.other, "k", IVM_INSERT, "1,a 2,x");
    case_refresh(&both.it, "w");
    case_refresh(&both.other, "w");
    case_push(&both.other, "k", IVM_DELETE_KEY, "1");
    transplant(&both, IVM__SECTION_PENDING, 1);
    refused(&both, "pending 1.0, row 0: view w: what was in k before it cannot be");
}

/* Two rows of one key that is not there: both would have been before. */
Test(plan_checkpoint_crafted, a_key_that_had_two_rows_which_both_went)
{
    pair both;
    pair_open(&both, bag_and_deferred);
    case_push(&both.other, "k", IVM_INSERT, "1,a 2,b");
    case_refresh(&both.other, "w");
    case_push(&both.other, "k", IVM_DELETE_KEY, "1 2");
    transplant(&both, IVM__SECTION_PENDING, 1);
    bytes_block at = bytes_find(&both.own, IVM__SECTION_PENDING, 1, 0);
    uint8_t *ids = both.own.bytes + at.from + 2 + 1 + 2 * 8 + 1; /* rows, tag and weights, the column's tag */
    cr_assert_eq(ids[0], 1);
    cr_assert_eq(ids[8], 2);
    ids[8] = 1;
    refused(&both, "pending 1.0, row 0: view w: what was in k before it cannot be");
}

/* ---- Facts ------------------------------------------------------------------------------------------------------------------------------------ */

static void parents_and_children(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64", "id"), *c = fixture_table(it, "c", "p int64", NULL),
              *e = fixture_table(it, "e", "p int64", NULL);
    ivm_table *t = fixture_table_like(it, "t", "p int64", &(ivm_table_options){ .transient = true });
    ivm_table *u = fixture_table_like(it, "u", "p int64", &(ivm_table_options){ .transient = true });
    ivm_table *g = fixture_table_like(it, "g", "id int64", &(ivm_table_options){ .key = "id", .append_only = true });
    ivm_table *s = fixture_table_like(it, "s", "g int64", &(ivm_table_options){ .transient = true });
    fixture_fact(it, c, "p", p, "id", IVM_TRACKED);
    fixture_fact(it, e, "p", p, "id", IVM_ENFORCED);
    fixture_fact(it, t, "p", p, "id", IVM_TRACKED);
    fixture_fact(it, u, "p", p, "id", IVM_ENFORCED);
    fixture_fact(it, s, "g", g, "id", IVM_TRACKED);
    fixture_make(it, "v", ivm_plan_project(ivm_plan_join(scan_of("s", NULL), scan_of("g", NULL), "s.g = g.id"), "g.id"));
}

static void fact_case(const char *table, const char *own, const char *others, uint32_t kind, uint32_t ordinal, const char *part)
{
    pair both;
    pair_open(&both, parents_and_children);
    fixture *each[] = { &both.it, &both.other };
    for (int i = 0; i < 2; i++) {
        case_push(each[i], "p", IVM_INSERT, "1 2 3");
        case_push(each[i], "g", IVM_INSERT, "1");
        case_push(each[i], table, IVM_INSERT, i ? others : own);
    }
    transplant(&both, kind, ordinal);
    refused(&both, part);
}

Test(plan_checkpoint_crafted, keys_that_wait_and_are_not_awaited)
{
    static const char *const kept = "track 0: table c: those said to wait are not those that do through";
    fact_case("c", "1 7", "1 8", IVM__SECTION_TRACK, 0, kept);
    fact_case("c", "1 7", "1 7 7", IVM__SECTION_TRACK, 0, kept);
    fact_case("c", "1 7", "1", IVM__SECTION_TRACK, 0, kept);
}

Test(plan_checkpoint_crafted, keys_of_rows_not_kept_that_contradict_each_other)
{
    pair both;
    static const char *const lost = "track 2: table t: keys are said to wait or to be held that are not, or cannot be so through";
    pair_open(&both, parents_and_children);
    case_push(&both.it, "p", IVM_INSERT, "1 2 3");
    case_push(&both.other, "p", IVM_INSERT, "1 2");
    case_push(&both.it, "t", IVM_INSERT, "1 3");
    case_push(&both.other, "t", IVM_INSERT, "1 3"); /* 3 waits */
    transplant(&both, IVM__SECTION_TRACK, 2);
    refused(&both, lost);
}

Test(plan_checkpoint_crafted, children_of_an_enforced_fact_without_parents)
{
    pair both;
    pair_open(&both, parents_and_children);
    case_push(&both.it, "p", IVM_INSERT, "1 2 3");
    case_push(&both.it, "e", IVM_INSERT, "1 3");
    case_push(&both.other, "p", IVM_INSERT, "1 2");
    transplant(&both, IVM__SECTION_ROWS, 0);
    refused(&both, "rows 2: table e: a row refers through (p) to key (3), which is not in p");
}

Test(plan_checkpoint_crafted, keys_held_of_an_enforced_fact_without_parents)
{
    pair both;
    pair_open(&both, parents_and_children);
    case_push(&both.it, "p", IVM_INSERT, "1 2");
    case_push(&both.it, "u", IVM_INSERT, "1");
    case_push(&both.other, "p", IVM_INSERT, "1 2 3");
    case_push(&both.other, "u", IVM_INSERT, "1 3");
    transplant(&both, IVM__SECTION_TRACK, 3);
    refused(&both, "track 3: table u: keys are said to wait or to be held that are not, or cannot be so through");
}

Test(plan_checkpoint_crafted, keys_that_wait_for_a_parent_that_is_there)
{
    pair both;
    pair_open(&both, parents_and_children);
    case_push(&both.it, "g", IVM_INSERT, "1 7");
    case_push(&both.it, "s", IVM_INSERT, "1");
    case_push(&both.other, "s", IVM_INSERT, "7");
    transplant(&both, IVM__SECTION_TRACK, 4);
    refused(&both, "track 4: table s: keys are said to wait");
}

Test(plan_checkpoint_crafted, rows_kept_that_wait_for_nothing)
{
    static const char *const parts[] = { "rows 6: table s: rows wait and none is said to have come",
                                         "rows 6: table s: a row is kept that waits for nothing" };
    for (int i = 0; i < 2; i++) {
        pair both;
        pair_open(&both, parents_and_children);
        case_push(&both.it, "g", IVM_INSERT, "1");
        case_push(&both.it, i ? "s" : "c", IVM_INSERT, "1");
        case_push(&both.other, "s", IVM_INSERT, "7");
        transplant(&both, IVM__SECTION_ROWS, 6);
        refused(&both, parts[i]);
    }
}

/* ---- What views keep -------------------------------------------------------------------------------------------------------------------------- */

static void views(fixture *it)
{
    fixture_table(it, "a", "g int64", NULL);
    fixture_table(it, "b", "g int64", NULL);
    ivm_plan *inputs[] = { scan_of("a", NULL), scan_of("b", NULL) };
    fixture_make(it, "counts", ivm_plan_count(ivm_plan_aggregate(scan_of("a", NULL), "g"), "c"));
    fixture_make(it, "left",
                 ivm_plan_project(ivm_plan_join_kind(IVM_LEFT_JOIN, scan_of("a", NULL), scan_of("b", "o"), "a.g = o.g"), "a.g"));
    ivm_plan *semi = ivm_plan_join_kind(IVM_SEMI_JOIN, scan_of("a", NULL), scan_of("b", "o"), "a.g = o.g");
    fixture_make(it, "semi", ivm_plan_join_where(semi, ivm_call2(">", ivm_column("o.g"), ivm_literal(ivm_int64(100)))));
    fixture_make(it, "set", ivm_plan_set(IVM_UNION, inputs, 2));
}

/* The first thing that the view keeps: rows of one cell, whose payloads follow the cells of all. */
static void kept_case(uint32_t view, size_t payload, const void *bytes, size_t size, const char *part)
{
    pair both;
    pair_open(&both, views);
    case_push(&both.it, "a", IVM_INSERT, "1");
    case_push(&both.it, "b", IVM_INSERT, "1 1");
    case_save(&both.it, &both.own);
    bytes_block at = bytes_first(&both.own);
    while (at.kind != IVM__SECTION_KEPT || at.ordinal != view) {
        at = bytes_next(&both.own, at);
    }
    cr_assert_eq(at.size, 12 + payload + 2);
    memcpy(both.own.bytes + at.from + 12, bytes, size);
    refused(&both, part);
}

Test(plan_checkpoint_crafted, groups_that_cannot_be)
{
    const ivm__wide none = 0, end = (ivm__wide)(~(unsigned __int128)0 >> 1), many = (ivm__wide)1 << 70;
    kept_case(0, 16, &none, 16, "view counts: state of aggregate: a group without rows, in block");
    kept_case(0, 16, &end, 16, "view counts: state of aggregate: a number of rows that there cannot be, in block");
    kept_case(0, 16, &many, 16, "view counts: state of aggregate: a value of a group is out of range");
}

Test(plan_checkpoint_crafted, partners_that_there_are_not)
{
    const uint32_t counts[] = { 0, 2, 3, UINT32_MAX }; /* it has one, of weight 2 */
    for (size_t i = 0; i < 4; i++) {
        kept_case(1, 4, &counts[i], 4, "view left: state of outer join: a row has more partners than there are, or fewer");
    }
    kept_case(2, 4, &counts[2], 4, "view semi: state of outer join: a row has more partners than there are, or fewer");
}

Test(plan_checkpoint_crafted, rows_of_a_set_that_are_in_no_input)
{
    kept_case(3, 16, &(uint64_t[]){ 0, 0 }, 16, "view set: state of set: a row that is in no input, in block");
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------------------------------- */

Test(plan_checkpoint_crafted, two_rows_of_one_key)
{
    pair both;
    pair_open(&both, bag_and_deferred);
    case_push(&both.it, "k", IVM_INSERT, "1,a 2,b");
    case_save(&both.it, &both.own);
    bytes_block at = bytes_find(&both.own, IVM__SECTION_ROWS, 1, 0);
    uint8_t *ids = both.own.bytes + at.from + 2 + 1 + 1; /* rows, the weights' tag, the column's */
    cr_assert_eq(ids[8], 2);
    ids[8] = 1;
    refused(&both, "a row that is not greater than the one before, in block");
}
