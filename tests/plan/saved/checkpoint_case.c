/* See checkpoint_case.h. */
#include "checkpoint_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIEWS 23

/* ---- Streams in memory -------------------------------------------------------------------------------------------------------------------- */

/* Each of these must be refused; what only looks goes through. */
static uint64_t calls_refused(tape *it)
{
    ivm_engine *engine = it->called;
    tape none = { 0 };
    ivm_stats stats;
    ivm_batch *batch = NULL;
    ivm_snapshot *snapshot = NULL;
    uint64_t fingerprint = 0, refused = 0;
    ivm_error error = IVM_ERROR_INIT;
    ivm_engine_stats(engine, &stats);
    (void)ivm_engine_planner(engine);
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK);
    refused += ivm_push_batch(engine, batch, NULL, &error) == IVM_IN_USE;
    refused += ivm_checkpoint(engine, tape_write, &none, NULL, &error) == IVM_IN_USE;
    refused += ivm_restore(engine, tape_read, &none, &error) == IVM_IN_USE;
    refused += ivm_engine_position(engine, NULL, 0, &(size_t){ 0 }, &error) == IVM_IN_USE;
    refused += ivm_engine_fingerprint(engine, &fingerprint, &error) == IVM_IN_USE;
    refused += ivm_read_view(it->viewed, &snapshot, &error) == IVM_IN_USE;
    refused += ivm_refresh_view(it->viewed, NULL, &error) == IVM_IN_USE;
    refused += ivm_engine_close(engine, &error) == IVM_IN_USE;
    tape_free(&none);
    return refused;
}

static bool tape_fails(tape *it)
{
    it->refused += it->called ? calls_refused(it) : 0;
    return ++it->calls == it->fails_at;
}

ivm_status tape_write(void *context, const void *bytes, size_t size)
{
    tape *it = context;
    cr_assert(size > 0 && size <= IVM_CHECKPOINT_PIECE_MAX);
    if (tape_fails(it)) {
        return IVM_IO;
    }
    if (it->size + size > it->capacity) {
        it->capacity = 2 * (it->size + size);
        it->bytes = realloc(it->bytes, it->capacity);
    }
    memcpy(it->bytes + it->size, bytes, size);
    it->size += size;
    return IVM_OK;
}

ivm_status tape_read(void *context, void *bytes, size_t size, size_t *got)
{
    tape *it = context;
    size_t left = it->size - it->at;
    if (tape_fails(it)) {
        return IVM_IO;
    }
    size = it->most && size > it->most ? it->most : size;
    *got = size < left ? size : left;
    memcpy(bytes, it->bytes + it->at, *got);
    it->at += *got;
    return IVM_OK;
}

void tape_free(tape *it)
{
    free(it->bytes);
    *it = (tape){ 0 };
}

ivm_status case_save_as(fixture *it, tape *to, ivm_compression compression)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = compression };
    to->size = 0;
    to->calls = 0;
    return ivm_checkpoint(it->engine, tape_write, to, &options, &it->error);
}

void case_save(fixture *it, tape *to)
{
    cr_assert_eq(case_save_as(it, to, IVM_COMPRESSION_NONE), IVM_OK, "%s", it->error.message);
}

ivm_status case_restore(fixture *it, tape *from)
{
    from->at = 0;
    from->calls = 0;
    return ivm_restore(it->engine, tape_read, from, &it->error);
}

void case_assert_saved_as(fixture *it, const tape *wanted, const char *what)
{
    tape got = { 0 };
    case_save(it, &got);
    cr_assert_eq(got.size, wanted->size, "%s: %zu bytes, not %zu", what, got.size, wanted->size);
    cr_assert_eq(memcmp(got.bytes, wanted->bytes, got.size), 0, "%s: other bytes", what);
    tape_free(&got);
}

void case_reopen(fixture *other, tape *saved)
{
    fixture_open(other);
    cr_assert_eq(case_restore(other, saved), IVM_OK, "%s", other->error.message);
    case_assert_saved_as(other, saved, "restored");
}

void case_close(fixture *it, fixture *other, tape *saved)
{
    tape_free(saved);
    fixture_close(it);
    fixture_close(other);
}

/* ---- A program with something of everything ------------------------------------------------------------------------------------------------- */

void case_declare(fixture *it)
{
    ivm_table *d = fixture_table_like(it, "d", "id int64; name string; day date", &(ivm_table_options){ .key = "id", .append_only = true });
    ivm_table *f = fixture_table(it, "f", "id int64; d int64; n int64; x float64; m decimal(10,2); b bool", "id");
    ivm_table *bag = fixture_table_like(it, "bag", "d int64; n int64", &(ivm_table_options){ .allow_negative = true });
    ivm_table *seen = fixture_table_like(it, "seen", "d int64; n int64", &(ivm_table_options){ .transient = true });
    fixture_table(it, "plain", "s string; t timestamp", NULL);
    fixture_fact(it, f, "d", d, "id", IVM_TRACKED);
    fixture_fact(it, bag, "d", d, "id", IVM_RELY);
    fixture_fact(it, seen, "d", d, "id", IVM_TRACKED);
    ivm_table *h = fixture_table(it, "h", "id int64; name string", "id");
    ivm_table *kept = fixture_table(it, "kept", "h int64; n int64; m decimal(4,1)", NULL);
    ivm_table *past = fixture_table_like(it, "past", "h int64; n int64", &(ivm_table_options){ .transient = true });
    ivm_table *sure = fixture_table_like(it, "sure", "h int64; n int64", &(ivm_table_options){ .transient = true });
    fixture_fact(it, kept, "h", h, "id", IVM_ENFORCED);
    fixture_fact(it, past, "h", h, "id", IVM_TRACKED);
    fixture_fact(it, sure, "h", h, "id", IVM_ENFORCED);
}

static ivm_plan *join_of(const char *child)
{
    char on[64];
    snprintf(on, sizeof on, "%s.d = d.id", child);
    return ivm_plan_join(scan_of(child, NULL), scan_of("d", NULL), on);
}

static ivm_plan *totals(ivm_plan *input, const char *group, const char *argument)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(input, group), "c");
    plan = ivm_plan_add(plan, "s", "sum", ivm_column(argument));
    plan = ivm_plan_add(plan, "least", "min", ivm_column(argument));
    return ivm_plan_add(plan, "each", "count_distinct", ivm_column(argument));
}

static ivm_plan *float_totals(void)
{
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(join_of("f"), "d.name"), "s", "sum", ivm_column("x"));
    plan = ivm_plan_add(plan, "v", "var_pop", ivm_column("x"));
    plan = ivm_plan_add(plan, "m", "sum", ivm_column("m"));
    plan = ivm_plan_add(plan, "all", "bool_and", ivm_column("b"));
    return ivm_plan_having(plan, ivm_call2(">", ivm_column("s"), ivm_literal(ivm_float64(-100))));
}

static ivm_plan *exception(void)
{
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("f", NULL), "d"), ivm_plan_project(scan_of("bag", NULL), "d") };
    return ivm_plan_set(IVM_EXCEPT_ALL, inputs, 2);
}

static ivm_plan *set_of(ivm_set_operation operation)
{
    ivm_plan *inputs[] = { ivm_plan_project(scan_of("kept", NULL), "n"), ivm_plan_project(scan_of("bag", NULL), "n"),
                           ivm_plan_project(scan_of("f", NULL), "n") };
    return ivm_plan_set(operation, inputs, 3);
}

static ivm_plan *numbers(void)
{
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(scan_of("kept", NULL), NULL), "a", "avg", ivm_column("m"));
    plan = ivm_plan_add(plan, "v", "stddev_samp", ivm_column("n"));
    plan = ivm_plan_add(plan, "w", "var_pop", ivm_column("m"));
    plan = ivm_plan_add(plan, "any", "bool_or", ivm_call2(">", ivm_column("n"), ivm_literal(ivm_int64(1))));
    return ivm_plan_add(plan, "d", "sum_distinct", ivm_column("n"));
}

static void more_views_declare(fixture *it)
{
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    fixture_make(it, "semi", ivm_plan_join_kind(IVM_SEMI_JOIN, scan_of("h", NULL), scan_of("kept", NULL), "h.id = kept.h"));
    ivm_plan *right = ivm_plan_join_kind(IVM_RIGHT_JOIN, scan_of("kept", NULL), scan_of("h", NULL), "kept.h = h.id");
    right = ivm_plan_join_where(right, ivm_call2(">", ivm_column("kept.n"), ivm_column("h.id")));
    fixture_make(it, "right", ivm_plan_project(right, "kept.n, h.name"));
    fixture_make(it, "union", set_of(IVM_UNION));
    fixture_make(it, "intersect", set_of(IVM_INTERSECT_ALL));
    fixture_make(it, "numbers", numbers());
    fixture_make(it, "strings", ivm_plan_add(ivm_plan_aggregate(scan_of("h", NULL), NULL), "s", "max", ivm_column("name")));
    ivm_plan *by = ivm_plan_count(ivm_plan_aggregate(scan_of("kept", NULL), "h"), "c");
    fixture_make(it, "beside", ivm_plan_project(ivm_plan_join(scan_of("h", "p"), by, "p.id = h"), "p.name, c"));
    fixture_make(it, "past totals", ivm_plan_count(ivm_plan_aggregate(scan_of("past", NULL), "h"), "c"));
    fixture_make(it, "sure rows", scan_of("sure", NULL));
    fixture_make_with(it, "deferred", ivm_plan_project(scan_of("kept", NULL), "h, n"), &late);
    fixture_make_with(it, "deferred more", totals(ivm_plan_join(scan_of("kept", NULL), scan_of("h", NULL), "kept.h = h.id"), "h.name", "n"),
                      &late);
}

ivm_view *case_views_declare(fixture *it)
{
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    ivm_view *first = fixture_make(it, "joined", ivm_plan_project(join_of("f"), "f.id, d.name"));
    fixture_make(it, "totals", totals(join_of("f"), "d.name", "n"));
    fixture_make(it, "floats", float_totals());
    fixture_make(it, "left",
                 ivm_plan_project(ivm_plan_join_kind(IVM_FULL_JOIN, scan_of("f", NULL), scan_of("d", "e"), "f.d = e.id"), "f.n, e.name"));
    fixture_make(it, "anti", ivm_plan_join_kind(IVM_ANTI_JOIN, scan_of("f", NULL), scan_of("d", NULL), "f.d = d.id"));
    fixture_make(it, "names", ivm_plan_distinct(ivm_plan_project(scan_of("plain", NULL), "s")));
    fixture_make(it, "except", exception());
    fixture_make(it, "top", ivm_plan_order_by(ivm_plan_top_k(scan_of("f", NULL), 2, 1), ivm_column("n"), true, false));
    fixture_make(it, "over", ivm_plan_project(ivm_plan_join(scan_of("totals", "a"), scan_of("totals", "b"), "a.c = b.c"), "a.name, b.s"));
    fixture_make(it, "waiting", totals(join_of("seen"), "d.name", "seen.n"));
    fixture_make_with(it, "late", totals(join_of("bag"), "d.name", "bag.n"), &late);
    fixture_make_with(it, "later", ivm_plan_project(scan_of("late", NULL), "name, c"), &late);
    more_views_declare(it);
    return first;
}

void case_push(fixture *it, const char *table, ivm_change change, const char *rows)
{
    ivm_table *found = fixture_table_find(it, table);
    cr_assert_eq(fixture_push(it, found, change, rows), IVM_OK, "%s: %s", table, it->error.message);
}

void case_refresh(fixture *it, const char *name)
{
    ivm_view *view = fixture_view_find(it, name);
    cr_assert_eq(ivm_refresh_view(view, NULL, &it->error), IVM_OK, "%s", it->error.message);
}

/* Rows of kept are pending, those of one view among those of another; keys of past wait, and are held. */
static void case_fill_more(fixture *it)
{
    case_push(it, "h", IVM_INSERT, "1,one 2,two 3,null");
    case_push(it, "kept", IVM_INSERT, "1,2,0.5 1,2,0.5 2,null,null");
    case_refresh(it, "deferred more");
    case_push(it, "kept", IVM_INSERT, "1,2,0.5 3,7,-9.5");
    case_refresh(it, "deferred");
    case_push(it, "kept", IVM_INSERT, "3,7,-9.5 3,8,99.0");
    case_push(it, "past", IVM_INSERT, "1,1 5,1 5,2 null,3");
    case_push(it, "sure", IVM_INSERT, "1,1 2,2 2,2");
}

/* Some rows; orphans wait in f and seen; changes of bag are pending for late. */
void case_fill(fixture *it)
{
    case_fill_more(it);
    case_push(it, "d", IVM_INSERT, "1,one,2026-01-01 2,two,null 3,null,1969-12-31");
    case_push(it, "bag", IVM_INSERT, "1,5 1,5 2,6");
    case_push(it, "f", IVM_INSERT, "10,1,5,0.1,1.25,true 11,2,7,1e17,-3.00,null 12,9,null,0.5,null,false 13,null,5,null,0.00,true");
    case_refresh(it, "late");
    case_push(it, "bag", IVM_DELETE, "1,5 3,8");
    case_push(it, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z a,2026-01-01T00:00:00Z null,null");
    case_push(it, "seen", IVM_INSERT, "1,4 7,4 7,5");
    case_push(it, "f", IVM_UPSERT, "10,2,6,-0.1,2.50,false 14,9,1,NaN,9.99,true");
}

/* Steps that ask everything for what it kept. */
void case_go_on(fixture *it)
{
    case_push(it, "d", IVM_INSERT, "7,seven,2000-01-01 9,nine,null");
    case_push(it, "f", IVM_DELETE_KEY, "11 12");
    case_push(it, "bag", IVM_INSERT, "3,8 1,5");
    case_push(it, "plain", IVM_DELETE, "a,2026-01-01T00:00:00Z");
    case_push(it, "seen", IVM_INSERT, "9,1 8,1");
    case_refresh(it, "late");
    case_refresh(it, "later");
    case_push(it, "past", IVM_INSERT, "5,4 3,1");
    case_push(it, "h", IVM_INSERT, "5,five");
    case_push(it, "h", IVM_DELETE_KEY, "5");
    case_push(it, "kept", IVM_INSERT, "1,2,0.5 2,9,1.0");
    case_refresh(it, "deferred more");
    case_refresh(it, "deferred");
    case_push(it, "kept", IVM_DELETE, "1,2,0.5 3,8,99.0");
}

void case_program_open(fixture *it)
{
    fixture_open(it);
    case_declare(it);
    case_views_declare(it);
}

void case_filled_open(fixture *it, tape *saved)
{
    case_program_open(it);
    case_fill(it);
    case_save(it, saved);
}

tape case_filled(void)
{
    fixture it;
    tape saved = { 0 };
    case_filled_open(&it, &saved);
    fixture_close(&it);
    return saved;
}

char *case_contents(fixture *it)
{
    static const char *const names[] = { "joined",      "totals",    "floats",   "left",          "anti",    "names",
                                         "except",      "top",       "over",     "waiting",       "late",    "later",
                                         "semi",        "right",     "union",    "intersect",     "numbers", "strings",
                                         "past totals", "sure rows", "deferred", "deferred more", "beside" };
    char *text = calloc(1, 1 << 20);
    for (size_t i = 0; i < VIEWS; i++) {
        ivm_view *view = fixture_view_find(it, names[i]);
        sprintf(text + strlen(text), "%s: %s\n", names[i], fixture_view(it, view));
    }
    return text;
}

/* ---- Calls that may fail -------------------------------------------------------------------------------------------------------------------- */

ivm_status case_push_all(fixture *it, void *none)
{
    ivm_table *d = fixture_table_find(it, "d"), *f = fixture_table_find(it, "f"), *bag = fixture_table_find(it, "bag");
    ivm_table *plain = fixture_table_find(it, "plain"), *seen = fixture_table_find(it, "seen");
    ivm_batch *batch;
    (void)none;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (int64_t i = 0; i < 40; i++) {
        char text[64];
        snprintf(text, sizeof text, "a text of some length, number %d", (int)i);
        ivm_batch_insert(batch, d, ivm_int64(100 + i), ivm_string(text), ivm_date((int32_t)i));
        ivm_batch_upsert(batch, f, ivm_int64(i), ivm_int64(90 + i), ivm_int64(i % 7), ivm_float64(1.0 / (double)(i + 1)), ivm_null(),
                         ivm_bool(i % 2));
        ivm_batch_row(batch, bag, IVM_WEIGHTED, i % 3 - 1, IVM_VALUES(ivm_int64(100 + i), ivm_int64(i)));
        ivm_batch_insert(batch, plain, ivm_string(text + i % 8), ivm_timestamp(i));
        ivm_batch_insert(batch, seen, ivm_int64(95 + i), ivm_int64(i));
    }
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

ivm_status case_refresh_named(fixture *it, void *name)
{
    return ivm_refresh_view(fixture_view_find(it, name), NULL, &it->error);
}

ivm_status case_restore_tape(fixture *it, void *from)
{
    return case_restore(it, from);
}

/* ---- Engines that are given what is wrong --------------------------------------------------------------------------------------------------- */

void victim_hold(victim *one, char *(*contents)(fixture *it))
{
    one->own = (tape){ 0 };
    one->contents = contents;
    case_save(&one->it, &one->own);
    one->rows = contents(&one->it);
}

void victim_check(victim *one, const char *what)
{
    case_assert_saved_as(&one->it, &one->own, what);
    char *rows = one->contents(&one->it);
    cr_assert_str_eq(rows, one->rows);
    free(rows);
}

void victim_close(victim *one)
{
    victim_check(one, "at the end");
    free(one->rows);
    tape_free(&one->own);
    fixture_close(&one->it);
}

void victim_starve(victim *one, call *restore, void *from, const tape *whole)
{
    for (uint64_t n = 1, done = 0; !done; n++) {
        test_allocator_arm(&one->it.allocator, n);
        ivm_status status = restore(&one->it, from);
        done = !test_allocator_disarm(&one->it.allocator);
        if (!done && status == IVM_OK) { /* some memory can be done without */
            case_assert_saved_as(&one->it, whole, "restored with less");
            cr_assert_eq(case_restore(&one->it, &one->own), IVM_OK);
        } else if (!done) {
            cr_assert_eq(status, IVM_OUT_OF_MEMORY, "%s: %s", ivm_status_name(status), one->it.error.message);
        }
        if (n % 64 == 0) {
            victim_check(one, "out of memory");
        }
    }
    case_assert_saved_as(&one->it, whole, "restored at last");
    cr_assert_eq(case_restore(&one->it, &one->own), IVM_OK);
}

void empty_starve(call *restore, void *from, uint64_t stride)
{
    for (uint64_t n = 1, done = 0; !done; n += stride) {
        fixture empty;
        fixture_open(&empty);
        test_allocator_arm(&empty.allocator, n);
        ivm_status status = restore(&empty, from);
        done = !test_allocator_disarm(&empty.allocator);
        cr_assert(status == IVM_OK || (status == IVM_OUT_OF_MEMORY && !done), "%s: %s", ivm_status_name(status), empty.error.message);
        cr_assert(status == IVM_OK || !ivm_fact_next(empty.engine, NULL));
        fixture_close(&empty);
    }
}
