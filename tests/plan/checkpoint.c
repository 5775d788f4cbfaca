/* Checkpoints and restores of whole engines: into an empty engine, one that declared the same catalog and one that holds something else; what came
 * back is saved as the same bytes and goes on alike. Whatever is wrong with a stream, a sink or memory leaves the engine as it was. */
#include "ivm/ivm.h"

#include "fixture.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Streams in memory -------------------------------------------------------------------------------------------------------------------- */

typedef struct tape {
    uint8_t *bytes;
    size_t size, capacity, at;
    uint64_t calls, fails_at; /* that call, from 1 on, fails with io; 0: none */
    size_t most;              /* bytes that a read gives at once; 0: all */
    ivm_engine *called;       /* by each call, which must be refused */
    uint64_t refused;
} tape;

static bool tape_fails(tape *it)
{
    ivm_engine_position(it->called, NULL, 0, &(size_t){ 0 }, NULL) == IVM_IN_USE ? it->refused++ : 0;
    return ++it->calls == it->fails_at;
}

static ivm_status tape_write(void *context, const void *bytes, size_t size)
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

static ivm_status tape_read(void *context, void *bytes, size_t size, size_t *got)
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

static void tape_free(tape *it)
{
    free(it->bytes);
    *it = (tape){ 0 };
}

static ivm_status save_as(fixture *it, tape *to, ivm_compression compression)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = compression };
    to->size = 0;
    to->calls = 0;
    return ivm_checkpoint(it->engine, tape_write, to, &options, &it->error);
}

static void save(fixture *it, tape *to)
{
    cr_assert_eq(save_as(it, to, IVM_COMPRESSION_NONE), IVM_OK, "%s", it->error.message);
}

static ivm_status restore(fixture *it, tape *from)
{
    from->at = 0;
    from->calls = 0;
    return ivm_restore(it->engine, tape_read, from, &it->error);
}

static void assert_saved_as(fixture *it, const tape *wanted, const char *what)
{
    tape got = { 0 };
    save(it, &got);
    cr_assert_eq(got.size, wanted->size, "%s: %zu bytes, not %zu", what, got.size, wanted->size);
    cr_assert_eq(memcmp(got.bytes, wanted->bytes, got.size), 0, "%s: other bytes", what);
    tape_free(&got);
}

/* ---- A program with something of everything ------------------------------------------------------------------------------------------------- */

static void declare(fixture *it)
{
    ivm_table *d = fixture_table_like(it, "d", "id int64; name string; day date", &(ivm_table_options){ .key = "id", .append_only = true });
    ivm_table *f = fixture_table(it, "f", "id int64; d int64; n int64; x float64; m decimal(10,2); b bool", "id");
    ivm_table *bag = fixture_table_like(it, "bag", "d int64; n int64", &(ivm_table_options){ .allow_negative = true });
    ivm_table *seen = fixture_table_like(it, "seen", "d int64; n int64", &(ivm_table_options){ .transient = true });
    fixture_table(it, "plain", "s string; t timestamp", NULL);
    fixture_fact(it, f, "d", d, "id", IVM_TRACKED);
    fixture_fact(it, bag, "d", d, "id", IVM_RELY);
    fixture_fact(it, seen, "d", d, "id", IVM_TRACKED);
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

#define VIEWS 12

static ivm_view *views_declare(fixture *it)
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
    return first;
}

static void push(fixture *it, const char *table, ivm_change change, const char *rows)
{
    ivm_table *found = NULL;
    cr_assert_eq(ivm_table_find(it->engine, table, &found, &it->error), IVM_OK);
    cr_assert_eq(fixture_push(it, found, change, rows), IVM_OK, "%s: %s", table, it->error.message);
}

static void refresh(fixture *it, const char *name)
{
    ivm_view *view = NULL;
    cr_assert_eq(ivm_view_find(it->engine, name, &view, &it->error), IVM_OK);
    cr_assert_eq(ivm_refresh_view(view, NULL, &it->error), IVM_OK, "%s", it->error.message);
}

/* Some rows; orphans wait in f and seen; changes of bag are pending for late. */
static void fill(fixture *it)
{
    push(it, "d", IVM_INSERT, "1,one,2026-01-01 2,two,null 3,null,1969-12-31");
    push(it, "bag", IVM_INSERT, "1,5 1,5 2,6");
    push(it, "f", IVM_INSERT, "10,1,5,0.1,1.25,true 11,2,7,1e17,-3.00,null 12,9,null,0.5,null,false 13,null,5,null,0.00,true");
    refresh(it, "late");
    push(it, "bag", IVM_DELETE, "1,5 3,8");
    push(it, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z a,2026-01-01T00:00:00Z null,null");
    push(it, "seen", IVM_INSERT, "1,4 7,4 7,5");
    push(it, "f", IVM_UPSERT, "10,2,6,-0.1,2.50,false 14,9,1,NaN,9.99,true");
}

/* Steps that ask everything for what it kept. */
static void go_on(fixture *it)
{
    push(it, "d", IVM_INSERT, "7,seven,2000-01-01 9,nine,null");
    push(it, "f", IVM_DELETE_KEY, "11 12");
    push(it, "bag", IVM_INSERT, "3,8 1,5");
    push(it, "plain", IVM_DELETE, "a,2026-01-01T00:00:00Z");
    push(it, "seen", IVM_INSERT, "9,1 8,1");
    refresh(it, "late");
    refresh(it, "later");
}

static void program_open(fixture *it)
{
    fixture_open(it);
    declare(it);
    views_declare(it);
}

/* All views' rows as one text, which the caller frees. */
static char *contents(fixture *it)
{
    static const char *const names[] = { "joined", "totals", "floats", "left",    "anti", "names",
                                         "except", "top",    "over",   "waiting", "late", "later" };
    char *text = calloc(1, 1 << 20);
    for (size_t i = 0; i < VIEWS; i++) {
        ivm_view *view = NULL;
        cr_assert_eq(ivm_view_find(it->engine, names[i], &view, &it->error), IVM_OK);
        sprintf(text + strlen(text), "%s: %s\n", names[i], fixture_view(it, view));
    }
    return text;
}

/* ---- There and back ----------------------------------------------------------------------------------------------------------------------- */

/* Both hold the same, go on alike, and are saved as the same bytes before and after. */
static void assert_alike(fixture *it, fixture *other, const tape *saved)
{
    assert_saved_as(other, saved, "restored");
    char *a = contents(it), *b = contents(other);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
    go_on(it);
    go_on(other);
    tape after = { 0 };
    save(it, &after);
    assert_saved_as(other, &after, "gone on");
    a = contents(it), b = contents(other);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
    tape_free(&after);
}

Test(plan_checkpoint, comes_back_in_an_empty_engine)
{
    fixture it, other;
    tape saved = { 0 };
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    fixture_open(&other);
    saved.most = 7;
    cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_alike(&it, &other, &saved);
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

Test(plan_checkpoint, comes_back_in_an_engine_of_the_same_catalog_whatever_it_holds)
{
    fixture it, other;
    tape saved = { 0 };
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    program_open(&other);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
        assert_saved_as(&other, &saved, "restored");
        go_on(&other);
    }
    cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_alike(&it, &other, &saved);
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

Test(plan_checkpoint, an_engine_of_nothing_comes_back)
{
    fixture it, other;
    tape saved = { 0 };
    fixture_open(&it);
    save(&it, &saved);
    fixture_open(&other);
    cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_saved_as(&other, &saved, "nothing");
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

Test(plan_checkpoint, compressed_it_is_the_same_state)
{
    fixture it, other;
    tape saved = { 0 }, plain = { 0 };
    program_open(&it);
    fill(&it);
    save(&it, &plain);
    ivm_status status = save_as(&it, &saved, IVM_COMPRESSION_ZSTD);
    if (status != IVM_UNSUPPORTED) {
        cr_assert_eq(status, IVM_OK, "%s", it.error.message);
        cr_expect_lt(saved.size, plain.size);
        fixture_open(&other);
        cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
        assert_saved_as(&other, &plain, "uncompressed");
        fixture_close(&other);
    }
    tape_free(&saved);
    tape_free(&plain);
    fixture_close(&it);
}

/* The same rows by other batches in another order. */
Test(plan_checkpoint, bytes_say_what_is_held_and_not_how_it_came)
{
    fixture it, other;
    tape saved = { 0 };
    program_open(&it);
    program_open(&other);
    fill(&it);
    push(&other, "seen", IVM_INSERT, "7,5");
    push(&other, "plain", IVM_INSERT, "null,null b,null");
    push(&other, "f", IVM_INSERT, "14,9,1,NaN,9.99,true 12,9,null,0.5,null,false");
    push(&other, "bag", IVM_INSERT, "2,6 1,5");
    push(&other, "d", IVM_INSERT, "3,null,1969-12-31");
    push(&other, "d", IVM_INSERT, "2,two,null 1,one,2026-01-01");
    push(&other, "bag", IVM_INSERT, "1,5");
    push(&other, "f", IVM_INSERT, "13,null,5,null,0.00,true 11,2,7,1e17,-3.00,null 10,2,6,-0.1,2.50,false");
    refresh(&other, "late");
    push(&other, "bag", IVM_DELETE, "3,8");
    push(&other, "bag", IVM_DELETE, "1,5");
    push(&other, "plain", IVM_DELETE, "b,null");
    push(&other, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z");
    push(&other, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z");
    push(&other, "seen", IVM_INSERT, "7,4 1,4");
    save(&it, &saved);
    assert_saved_as(&other, &saved, "by other batches");
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* ---- What stays --------------------------------------------------------------------------------------------------------------------------- */

static void tell(void *context, ivm_view *view, ivm_snapshot *changes)
{
    (void)view;
    *(uint64_t *)context += ivm_snapshot_rows_count(changes);
}

Test(plan_checkpoint, snapshots_callbacks_and_batches_stay)
{
    fixture it;
    tape saved = { 0 };
    ivm_view *view = NULL;
    ivm_table *f = NULL;
    ivm_snapshot *before = NULL;
    ivm_batch *batch = NULL;
    uint64_t told = 0;
    fixture_open(&it);
    declare(&it);
    view = views_declare(&it);
    fill(&it);
    save(&it, &saved);
    go_on(&it);
    cr_assert_eq(ivm_view_watch(view, tell, &told, &it.error), IVM_OK);
    cr_assert_eq(ivm_read_view(view, &before, &it.error), IVM_OK);
    char *wanted = strdup(fixture_view(&it, view));
    cr_assert_eq(ivm_table_find(it.engine, "f", &f, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    ivm_value row[] = { ivm_int64(99), ivm_int64(1), ivm_null(), ivm_null(), ivm_null(), ivm_null() };
    cr_assert_eq(ivm_batch_row(batch, f, IVM_INSERT, 1, row, 6), IVM_OK);
    cr_assert_eq(restore(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(told, 0u);
    cr_expect_str_eq(fixture_changes(&it, view), "");
    cr_expect_str_eq(fixture_rows(before), wanted);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(told, 1u);
    cr_expect_str_eq(fixture_changes(&it, view), "1*99,one");
    free(wanted);
    tape_free(&saved);
    fixture_close(&it);
}

Test(plan_checkpoint, positions)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_batch *batch = NULL;
    uint8_t bytes[IVM_POSITION_SIZE_MAX], big[IVM_POSITION_SIZE_MAX + 1] = { 0 };
    size_t size = 1;
    ivm_checkpoint_info info = { .version = IVM_CHECKPOINT_INFO_VERSION };
    uint64_t fingerprint = 0;
    program_open(&it);
    cr_assert_eq(ivm_engine_position(it.engine, bytes, sizeof bytes, &size, &it.error), IVM_OK);
    cr_expect_eq(size, (size_t)0);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, "p\0q", 3), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
    fill(&it);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, big, sizeof big), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_INVALID_ARGUMENT);
    save(&it, &saved);
    cr_assert_eq(ivm_checkpoint_inspect(tape_read, &saved, &info, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_lt(saved.at, (size_t)400);
    cr_assert_eq(ivm_engine_fingerprint(it.engine, &fingerprint, &it.error), IVM_OK);
    cr_expect_eq(info.fingerprint, fingerprint);
    cr_assert_eq(info.position_size, (size_t)3);
    cr_expect_eq(memcmp(info.position, "p\0q", 3), 0);
    fixture_open(&other);
    cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
    cr_assert_eq(ivm_engine_position(other.engine, bytes, 2, &size, &other.error), IVM_OK);
    cr_assert_eq(size, (size_t)3);
    cr_expect_eq(memcmp(bytes, "p", 2), 0);
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* ---- Columns that come and go ----------------------------------------------------------------------------------------------------------------- */

Test(plan_checkpoint, views_over_columns_that_were_others_then)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_table *f = NULL;
    program_open(&it);
    fill(&it);
    cr_assert_eq(ivm_table_find(it.engine, "f", &f, &it.error), IVM_OK);
    cr_assert_eq(ivm_view_drop(NULL, &it.error), IVM_INVALID_ARGUMENT);
    static const char *const readers[] = { "left", "anti", "top" }; /* of all columns */
    for (size_t i = 0; i < 3; i++) {
        ivm_view *view = NULL;
        cr_assert_eq(ivm_view_find(it.engine, readers[i], &view, &it.error), IVM_OK);
        cr_assert_eq(ivm_view_drop(view, &it.error), IVM_OK);
    }
    fixture_make(&it, "bools", ivm_plan_project(ivm_plan_filter(scan_of("f", "g"), ivm_column("g.b")), "g.n, b"));
    cr_assert_eq(ivm_table_column_rename(f, "n", "x2", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_rename(f, "x", "n", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_add(f, &(ivm_column_definition){ "x", IVM_STRING, false }, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_drop(f, "x", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_add(f, &(ivm_column_definition){ "x", IVM_DATE, false }, &it.error), IVM_OK, "%s", it.error.message);
    fixture_make(&it, "dates", ivm_plan_project(scan_of("f", NULL), "x, n, x2"));
    save(&it, &saved);
    fixture_open(&other);
    cr_assert_eq(restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_saved_as(&other, &saved, "renamed");
    fixture *both[] = { &it, &other };
    char *rows[2][2];
    for (int i = 0; i < 2; i++) {
        push(both[i], "f", IVM_INSERT, "20,1,3,2.5,1.00,true,2026-05-05");
        static const char *const names[] = { "bools", "dates" };
        for (int v = 0; v < 2; v++) {
            ivm_view *view = NULL;
            cr_assert_eq(ivm_view_find(both[i]->engine, names[v], &view, &both[i]->error), IVM_OK);
            rows[i][v] = strdup(fixture_view(both[i], view));
        }
    }
    for (int v = 0; v < 2; v++) {
        cr_expect_str_eq(rows[0][v], rows[1][v]);
        free(rows[0][v]);
        free(rows[1][v]);
    }
    save(&it, &saved);
    assert_saved_as(&other, &saved, "gone on");
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* ---- Another program -------------------------------------------------------------------------------------------------------------------------- */

static void refuses(tape *saved, void (*make)(fixture *), const char *part)
{
    fixture other;
    tape before = { 0 };
    fixture_open(&other);
    make(&other);
    save(&other, &before);
    cr_expect_eq(restore(&other, saved), IVM_INVALID_ARGUMENT, "%s", part);
    cr_expect_not_null(strstr(other.error.message, part), "\"%s\" is not in \"%s\"", part, other.error.message);
    assert_saved_as(&other, &before, part);
    tape_free(&before);
    fixture_close(&other);
}

static void small(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_RELY);
    fixture_make(it, "v", ivm_plan_filter(scan_of("c", NULL), call_of(">", "n", 1)));
}

static void small_renamed(fixture *it)
{
    fixture_table(it, "p", "id int64; t string", "id");
    fixture_table(it, "c", "p int64; n int64", NULL);
}

static void small_typed(fixture *it)
{
    fixture_table(it, "p", "id int64; s string", "id");
    fixture_table(it, "c", "p int64; n float64", NULL);
}

static void small_trusted(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_TRACKED);
}

static void small_without_view(fixture *it)
{
    ivm_table *p = fixture_table(it, "p", "id int64; s string", "id"), *c = fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_fact(it, c, "p", p, "id", IVM_RELY);
}

static void small_literal(fixture *it)
{
    small_without_view(it);
    fixture_make(it, "v", ivm_plan_filter(scan_of("c", NULL), call_of(">", "n", 2)));
}

static void small_more(fixture *it)
{
    small(it);
    fixture_make(it, "w", scan_of("v", NULL));
}

static void small_ordered(fixture *it)
{
    fixture_table(it, "c", "p int64; n int64", NULL);
    fixture_table(it, "p", "id int64; s string", "id");
}

Test(plan_checkpoint, another_catalog_is_refused_and_what_differs_named)
{
    fixture it;
    tape saved = { 0 };
    fixture_open(&it);
    small(&it);
    save(&it, &saved);
    refuses(&saved, small_renamed, "table p ");
    refuses(&saved, small_ordered, "table c ");
    refuses(&saved, small_typed, "table c ");
    refuses(&saved, small_trusted, "foreign key of c");
    refuses(&saved, small_without_view, "1 more views");
    refuses(&saved, small_literal, "view v ");
    refuses(&saved, small_more, "view w ");
    tape_free(&saved);
    fixture_close(&it);
}

/* ---- Streams that are wrong ------------------------------------------------------------------------------------------------------------------- */

/* An engine that holds something else, and what it is saved as. */
typedef struct victim {
    fixture it;
    tape own;
    char *rows;
} victim;

static void victim_open(victim *one)
{
    *one = (victim){ 0 };
    program_open(&one->it);
    push(&one->it, "d", IVM_INSERT, "5,five,null");
    push(&one->it, "f", IVM_INSERT, "1,5,1,1,1,true");
    save(&one->it, &one->own);
    one->rows = contents(&one->it);
}

static void victim_check(victim *one, const char *what)
{
    assert_saved_as(&one->it, &one->own, what);
    char *rows = contents(&one->it);
    cr_assert_str_eq(rows, one->rows);
    free(rows);
}

static void victim_close(victim *one)
{
    victim_check(one, "at the end");
    free(one->rows);
    tape_free(&one->own);
    fixture_close(&one->it);
}

Test(plan_checkpoint, every_damaged_byte_and_every_cut_is_found_out)
{
    fixture it, empty;
    tape saved = { 0 };
    victim one;
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    fixture_close(&it);
    victim_open(&one);
    fixture_open(&empty);
    int64_t blocks = empty.allocator.blocks;
    size_t size = saved.size;
    for (size_t at = 0; at < size; at++) {
        saved.bytes[at] ^= (uint8_t)(1 << at % 8);
        ivm_status status = restore(&one.it, &saved);
        cr_assert(status == IVM_CORRUPT || status == IVM_UNSUPPORTED, "byte %zu: %s", at, ivm_status_name(status));
        status = at % 16 ? IVM_CORRUPT : restore(&empty, &saved);
        cr_assert(status == IVM_CORRUPT || status == IVM_UNSUPPORTED, "byte %zu: %s", at, ivm_status_name(status));
        saved.bytes[at] ^= (uint8_t)(1 << at % 8);
        saved.size = at;
        cr_assert_eq(restore(&one.it, &saved), IVM_CORRUPT, "cut to %zu", at);
        cr_assert(at % 16 || restore(&empty, &saved) == IVM_CORRUPT, "cut to %zu", at);
        saved.size = size;
        if (at % 512 == 0) {
            victim_check(&one, "damaged");
            cr_assert_null(ivm_fact_next(empty.engine, NULL));
        }
    }
    ivm_table *none = NULL;
    cr_expect_eq(ivm_table_find(empty.engine, "d", &none, &empty.error), IVM_UNKNOWN_TABLE);
    cr_expect_leq(empty.allocator.blocks, blocks + 8, "%ld blocks more", (long)(empty.allocator.blocks - blocks)); /* arenas */
    cr_assert_eq(restore(&empty, &saved), IVM_OK, "%s", empty.error.message);
    assert_saved_as(&empty, &saved, "after all that");
    tape_free(&saved);
    victim_close(&one);
    fixture_close(&empty);
}

Test(plan_checkpoint, nothing_behind_the_end_is_read)
{
    fixture it;
    tape saved = { 0 };
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    size_t size = saved.size;
    cr_assert_eq(tape_write(&saved, "next", 4), IVM_OK);
    cr_assert_eq(restore(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(saved.at, size);
    tape_free(&saved);
    fixture_close(&it);
}

Test(plan_checkpoint, any_call_of_the_stream_may_fail)
{
    fixture it;
    tape saved = { 0 }, broken = { 0 };
    victim one;
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    for (uint64_t n = 1; n <= saved.calls; n++) {
        broken.fails_at = n;
        cr_assert_eq(save_as(&it, &broken, IVM_COMPRESSION_NONE), IVM_IO, "call %lu", (unsigned long)n);
    }
    assert_saved_as(&it, &saved, "after failed writes");
    victim_open(&one);
    saved.most = 100;
    for (saved.fails_at = 1; restore(&one.it, &saved) != IVM_OK; saved.fails_at++) {
        cr_assert_eq(one.it.error.status, IVM_IO, "%s", one.it.error.message);
        if (saved.fails_at % 16 == 0) {
            victim_check(&one, "failed reads");
        }
    }
    cr_expect_gt(saved.fails_at, 50u);
    save(&one.it, &one.own);
    free(one.rows);
    one.rows = contents(&one.it);
    tape_free(&saved);
    tape_free(&broken);
    victim_close(&one);
    fixture_close(&it);
}

Test(plan_checkpoint, memory_may_end_at_any_call)
{
    fixture it;
    tape saved = { 0 }, again = { 0 };
    victim one;
    program_open(&it);
    fill(&it);
    save(&it, &saved);
    for (uint64_t n = 1, done = 0; !done; n++) {
        test_allocator_arm(&it.allocator, n);
        ivm_status status = save_as(&it, &again, IVM_COMPRESSION_NONE);
        done = !test_allocator_disarm(&it.allocator);
        cr_assert(status == IVM_OUT_OF_MEMORY || status == IVM_OK, "%s: %s", ivm_status_name(status), it.error.message);
        cr_assert(status == IVM_OK || !done);
    }
    assert_saved_as(&it, &saved, "after failed calls");
    victim_open(&one);
    for (uint64_t n = 1, done = 0; !done; n++) {
        test_allocator_arm(&one.it.allocator, n);
        ivm_status status = restore(&one.it, &saved);
        done = !test_allocator_disarm(&one.it.allocator);
        if (!done && status == IVM_OK) { /* some memory can be done without */
            assert_saved_as(&one.it, &saved, "restored with less");
            cr_assert_eq(restore(&one.it, &one.own), IVM_OK);
        } else if (!done) {
            cr_assert_eq(status, IVM_OUT_OF_MEMORY, "%s: %s", ivm_status_name(status), one.it.error.message);
        }
        if (n % 64 == 0) {
            victim_check(&one, "out of memory");
        }
    }
    assert_saved_as(&one.it, &saved, "restored at last");
    cr_assert_eq(restore(&one.it, &one.own), IVM_OK);
    victim_close(&one);
    for (uint64_t n = 1, done = 0; !done; n += 7) {
        fixture empty;
        fixture_open(&empty);
        test_allocator_arm(&empty.allocator, n);
        ivm_status status = restore(&empty, &saved);
        done = !test_allocator_disarm(&empty.allocator);
        cr_assert(status == IVM_OK || (status == IVM_OUT_OF_MEMORY && !done), "%s: %s", ivm_status_name(status), empty.error.message);
        fixture_close(&empty);
    }
    tape_free(&saved);
    tape_free(&again);
    fixture_close(&it);
}

Test(plan_checkpoint, callbacks_may_not_call_the_engine)
{
    fixture it;
    tape saved = { 0 };
    program_open(&it);
    fill(&it);
    saved.called = it.engine;
    save(&it, &saved);
    cr_expect_gt(saved.refused, 3u);
    saved.refused = 0;
    cr_assert_eq(restore(&it, &saved), IVM_OK, "%s", it.error.message);
    cr_expect_eq(saved.refused, saved.calls);
    tape_free(&saved);
    fixture_close(&it);
}
