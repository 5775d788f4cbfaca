/* Checkpoints and restores of whole engines: into an empty engine, one that declared the same catalog and one that holds something else; what came
 * back is saved as the same bytes and goes on alike. */
#include "block.h"
#include "checkpoint_case.h"
#include "pending.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- There and back ----------------------------------------------------------------------------------------------------------------------- */

/* Both hold the same, go on alike, and are saved as the same bytes before and after. */
static void assert_alike(fixture *it, fixture *other, const tape *saved)
{
    case_assert_saved_as(other, saved, "restored");
    char *a = case_contents(it), *b = case_contents(other);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
    case_go_on(it);
    case_go_on(other);
    tape after = { 0 };
    case_save(it, &after);
    case_assert_saved_as(other, &after, "gone on");
    a = case_contents(it), b = case_contents(other);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
    tape_free(&after);
}

Test(plan_checkpoint, comes_back_in_an_empty_engine)
{
    fixture it, other;
    tape saved = { 0 };
    case_filled_open(&it, &saved);
    fixture_open(&other);
    saved.most = 7;
    cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_alike(&it, &other, &saved);
    case_close(&it, &other, &saved);
}

Test(plan_checkpoint, comes_back_in_an_engine_of_the_same_catalog_whatever_it_holds)
{
    fixture it, other;
    tape saved = { 0 };
    case_filled_open(&it, &saved);
    case_program_open(&other);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
        case_assert_saved_as(&other, &saved, "restored");
        case_go_on(&other);
    }
    cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
    assert_alike(&it, &other, &saved);
    case_close(&it, &other, &saved);
}

Test(plan_checkpoint, an_engine_of_nothing_comes_back)
{
    fixture it, other;
    tape saved = { 0 };
    fixture_open(&it);
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    case_close(&it, &other, &saved);
}

Test(plan_checkpoint, compressed_it_is_the_same_state)
{
    fixture it, other;
    tape saved = { 0 }, plain = { 0 };
    case_filled_open(&it, &plain);
    ivm_status status = case_save_as(&it, &saved, IVM_COMPRESSION_ZSTD);
    if (status != IVM_UNSUPPORTED) {
        cr_assert_eq(status, IVM_OK, "%s", it.error.message);
        cr_expect_lt(saved.size, plain.size);
        fixture_open(&other);
        cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
        case_assert_saved_as(&other, &plain, "uncompressed");
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
    case_program_open(&it);
    case_program_open(&other);
    case_fill(&it);
    case_push(&other, "seen", IVM_INSERT, "7,5");
    case_push(&other, "plain", IVM_INSERT, "null,null b,null");
    case_push(&other, "f", IVM_INSERT, "14,9,1,NaN,9.99,true 12,9,null,0.5,null,false");
    case_push(&other, "bag", IVM_INSERT, "2,6 1,5");
    case_push(&other, "d", IVM_INSERT, "3,null,1969-12-31");
    case_push(&other, "d", IVM_INSERT, "2,two,null 1,one,2026-01-01");
    case_push(&other, "bag", IVM_INSERT, "1,5");
    case_push(&other, "f", IVM_INSERT, "13,null,5,null,0.00,true 11,2,7,1e17,-3.00,null 10,2,6,-0.1,2.50,false");
    case_refresh(&other, "late");
    case_push(&other, "bag", IVM_DELETE, "3,8");
    case_push(&other, "bag", IVM_DELETE, "1,5");
    case_push(&other, "plain", IVM_DELETE, "b,null");
    case_push(&other, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z");
    case_push(&other, "plain", IVM_INSERT, "a,2026-01-01T00:00:00Z");
    case_push(&other, "seen", IVM_INSERT, "7,4 1,4");
    case_push(&other, "h", IVM_INSERT, "3,null 9,x");
    case_push(&other, "h", IVM_UPSERT, "1,one 2,two");
    case_push(&other, "kept", IVM_INSERT, "1,2,0.5 2,null,null");
    case_push(&other, "kept", IVM_INSERT, "1,2,0.5 2,5,5.0");
    case_push(&other, "kept", IVM_DELETE, "2,5,5.0");
    case_push(&other, "h", IVM_DELETE_KEY, "9");
    case_refresh(&other, "deferred more");
    case_push(&other, "kept", IVM_INSERT, "3,7,-9.5 1,2,0.5");
    case_refresh(&other, "deferred");
    case_push(&other, "kept", IVM_INSERT, "3,8,99.0");
    case_push(&other, "kept", IVM_INSERT, "3,7,-9.5");
    case_push(&other, "sure", IVM_INSERT, "2,2");
    case_push(&other, "past", IVM_INSERT, "5,2 5,1 1,1");
    case_push(&other, "past", IVM_INSERT, "null,3");
    case_push(&other, "sure", IVM_INSERT, "1,1 2,2");
    case_save(&it, &saved);
    case_assert_saved_as(&other, &saved, "by other batches");
    case_close(&it, &other, &saved);
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
    ivm_snapshot *before = NULL;
    ivm_batch *batch = NULL;
    uint64_t told = 0;
    fixture_open(&it);
    case_declare(&it);
    view = case_views_declare(&it);
    case_fill(&it);
    case_save(&it, &saved);
    case_go_on(&it);
    cr_assert_eq(ivm_view_watch(view, tell, &told, &it.error), IVM_OK);
    cr_assert_eq(ivm_read_view(view, &before, &it.error), IVM_OK);
    char *wanted = strdup(fixture_view(&it, view));
    ivm_table *f = fixture_table_find(&it, "f");
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    ivm_value row[] = { ivm_int64(99), ivm_int64(1), ivm_null(), ivm_null(), ivm_null(), ivm_null() };
    cr_assert_eq(ivm_batch_row(batch, f, IVM_INSERT, 1, row, 6), IVM_OK);
    cr_assert_eq(case_restore(&it, &saved), IVM_OK, "%s", it.error.message);
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
    case_program_open(&it);
    cr_assert_eq(ivm_engine_position(it.engine, bytes, sizeof bytes, &size, &it.error), IVM_OK);
    cr_expect_eq(size, (size_t)0);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, "p\0q", 3), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
    case_fill(&it);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_batch_position(batch, big, sizeof big), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_INVALID_ARGUMENT);
    case_save(&it, &saved);
    cr_assert_eq(ivm_checkpoint_inspect(tape_read, &saved, &info, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_lt(saved.at, (size_t)400);
    cr_assert_eq(ivm_engine_fingerprint(it.engine, &fingerprint, &it.error), IVM_OK);
    cr_expect_eq(info.fingerprint, fingerprint);
    cr_assert_eq(info.position_size, (size_t)3);
    cr_expect_eq(memcmp(info.position, "p\0q", 3), 0);
    fixture_open(&other);
    cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
    cr_assert_eq(ivm_engine_position(other.engine, bytes, 2, &size, &other.error), IVM_OK);
    cr_assert_eq(size, (size_t)3);
    cr_expect_eq(memcmp(bytes, "p", 2), 0);
    case_close(&it, &other, &saved);
}

/* A stream that, once it has rows that follow without the lock, lets another thread push. */
typedef struct late_tape {
    tape to;
    fixture *it;
    uint64_t pushed;
} late_tape;

static void *late_push(void *context)
{
    fixture *it = context;
    case_go_on(it);
    cr_assert_eq(ivm_engine_close(it->engine, NULL), IVM_IN_USE);
    return NULL;
}

static ivm_status late_write(void *context, const void *bytes, size_t size)
{
    late_tape *it = context;
    ivm__block_header header;
    memcpy(&header, bytes, sizeof header);
    bool unlocked = it->to.calls > 0 && (header.kind == IVM__SECTION_PENDING || header.kind == IVM__SECTION_ROWS);
    if (unlocked && it->pushed++ == 0) {
        pthread_t other;
        cr_assert_eq(pthread_create(&other, NULL, late_push, it->it), 0);
        cr_assert_eq(ivm_engine_close(it->it->engine, NULL), IVM_IN_USE);
        cr_assert_eq(pthread_join(other, NULL), 0);
    }
    return tape_write(&it->to, bytes, size);
}

Test(plan_checkpoint, pushes_while_rows_are_written_are_not_in_it)
{
    fixture it;
    tape saved = { 0 };
    late_tape late = { .it = &it };
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION, .compression = IVM_COMPRESSION_NONE };
    case_filled_open(&it, &saved);
    cr_assert_eq(ivm_checkpoint(it.engine, late_write, &late, &options, &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_gt(late.pushed, 5u);
    cr_assert_eq(late.to.size, saved.size);
    cr_expect_eq(memcmp(late.to.bytes, saved.bytes, saved.size), 0);
    tape_free(&saved);
    tape_free(&late.to);
    fixture_close(&it);
}

/* What only came since a view's refresh is told of by its ids again, for each view by its own: nothing is looked up then, and no index over whole rows
 * made. */
Test(plan_checkpoint, rows_that_came_since_come_back_last)
{
    static const char *const tables[] = { "b", "k" };
    static const char *const rows[][3] = { { "5 1 1 3", "2 1", "4 1 9" }, { "5,e 1,a 3,c", "2,b", "0,z 4,d" } };
    fixture it, other;
    tape saved = { 0 };
    ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
    fixture_open(&it);
    fixture_table(&it, "b", "n int64", NULL);
    fixture_table(&it, "k", "id int64; s string", "id");
    for (int t = 0; t < 2; t++) {
        char names[3][16];
        for (int v = 0; v < 3; v++) {
            snprintf(names[v], sizeof names[v], "%s%d", tables[t], v);
            fixture_make_with(&it, names[v], scan_of(tables[t], NULL), &late);
        }
        for (int n = 0; n < 3; n++) {
            case_push(&it, tables[t], IVM_INSERT, rows[t][n]);
            case_refresh(&it, names[n]); /* the last one then has nothing pending */
        }
    }
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    const ivm_table *bag = other.engine->tables;
    for (ivm_view *view = other.engine->views; view; view = view->next) {
        cr_expect_eq(view->pending[0].apart, false, "%s", view->name);
    }
    cr_expect_eq(other.engine->views->pending[0].first, 3u); /* 1 of weight 2, 3 and 5; then 2 and 1 ...  */
    cr_expect_eq(other.engine->views->next->pending[0].first, 5u);
    cr_expect_eq(other.engine->views->next->next->pending[0].first, 8u);
    for (ivm_view *a = it.engine->views, *b = other.engine->views; a; a = a->next, b = b->next) {
        cr_assert_eq(ivm_refresh_view(a, NULL, &it.error), IVM_OK);
        cr_assert_eq(ivm_refresh_view(b, NULL, &other.error), IVM_OK);
        char *wanted = strdup(fixture_view(&it, a));
        cr_expect_str_eq(fixture_view(&other, b), wanted);
        free(wanted);
        wanted = strdup(fixture_changes(&it, a));
        cr_expect_str_eq(fixture_changes(&other, b), wanted);
        free(wanted);
    }
    cr_expect_null(bag->store.indexes);
    case_close(&it, &other, &saved);
}

/* ---- Facts -------------------------------------------------------------------------------------------------------------------------------- */

/* A fact that came since a deferred view's last refresh is none that it may use; one that no push came before is. */
Test(plan_checkpoint, places_in_time)
{
    tape saved[3] = { 0 };
    for (int when = 0; when < 3; when++) {
        fixture it, other;
        ivm_view_options late = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = IVM_DEFERRED };
        fixture_open(&it);
        ivm_table *p = fixture_table(&it, "p", "id int64", "id"), *c = fixture_table(&it, "c", "p int64", NULL);
        fixture_make_with(&it, "v", ivm_plan_project(ivm_plan_join(scan_of("c", NULL), scan_of("p", NULL), "c.p = p.id"), "id"), &late);
        if (when < 1) {
            fixture_fact(&it, c, "p", p, "id", IVM_RELY);
        }
        case_push(&it, "p", IVM_INSERT, "1");
        if (when > 1) {
            case_refresh(&it, "v");
            case_push(&it, "p", IVM_DELETE_KEY, "1");
            case_push(&it, "p", IVM_INSERT, "1"); /* nothing is pending, and yet pushes lie between */
        }
        if (when > 0) {
            fixture_fact(&it, c, "p", p, "id", IVM_RELY);
        }
        case_save(&it, &saved[when]);
        case_reopen(&other, &saved[when]);
        case_push(&it, "c", IVM_INSERT, "1 2");
        case_push(&other, "c", IVM_INSERT, "1 2");
        case_refresh(&it, "v");
        case_refresh(&other, "v");
        tape after = { 0 };
        case_save(&it, &after);
        case_assert_saved_as(&other, &after, "refreshed");
        tape_free(&after);
        fixture_close(&it);
        fixture_close(&other);
    }
    cr_expect_neq(saved[0].size == saved[1].size ? memcmp(saved[0].bytes, saved[1].bytes, saved[0].size) : 1, 0);
    for (int when = 0; when < 3; when++) {
        tape_free(&saved[when]);
    }
}

/* The way of a view through its facts stays the one that it had when it was made, whatever was declared since. */
Test(plan_checkpoint, views_of_rows_not_kept_rest_on_the_facts_of_then)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_table_options grows = { .key = "id", .append_only = true };
    fixture_open(&it);
    ivm_table *e = fixture_table_like(&it, "e", "id int64; n int64", &grows);
    ivm_table *d = fixture_table_like(&it, "d", "id int64; e int64", &grows);
    ivm_table *seen = fixture_table_like(&it, "seen", "d int64; e int64", &(ivm_table_options){ .transient = true });
    fixture_fact(&it, seen, "d", d, "id", IVM_TRACKED);
    fixture_fact(&it, d, "e", e, "id", IVM_TRACKED);
    ivm_plan *inputs[] = { scan_of("seen", NULL), scan_of("d", NULL), scan_of("e", NULL) };
    ivm_plan *plan = ivm_plan_project(ivm_plan_join_many(inputs, 3, "seen.d = d.id, d.e = e.id, seen.e = e.id"), "d.id, e.n");
    fixture_make(&it, "v", plan);
    fixture_make(&it, "w", ivm_plan_project(ivm_plan_join(scan_of("seen", NULL), scan_of("d", NULL), "seen.d = d.id"), "d.id"));
    fixture_fact(&it, seen, "e", e, "id", IVM_TRACKED);
    case_push(&it, "seen", IVM_INSERT, "1,5 2,6 2,6");
    case_push(&it, "d", IVM_INSERT, "2,6");
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    ivm_fact *first = ivm_fact_next(other.engine, NULL), *second = ivm_fact_next(other.engine, first),
             *last = ivm_fact_next(other.engine, second);
    char listed[64] = "";
    for (ivm_table *table = NULL; (table = ivm_table_next(other.engine, table));) {
        strcat(strcat(listed, ivm_table_name(table)), " ");
    }
    for (ivm_view *view = NULL; (view = ivm_view_next(other.engine, view));) {
        strcat(strcat(listed, ivm_view_name(view)), " ");
    }
    cr_expect_str_eq(listed, "e d seen v w ", "in the order of their making");
    cr_expect_eq(ivm_foreign_key_remove(second, &other.error), IVM_IN_USE);
    cr_expect_eq(ivm_foreign_key_remove(last, &other.error), IVM_OK, "%s", other.error.message);
    case_push(&other, "e", IVM_INSERT, "6,60");
    ivm_view *v = fixture_view_find(&other, "v");
    cr_expect_str_eq(fixture_view(&other, v), "2*2,60");
    case_close(&it, &other, &saved);
}

/* Rows that a dropped view alone waited for are not written, whether or not they have gone yet: the next push lets them go. */
Test(plan_checkpoint, rows_that_wait_for_nothing_are_left_out)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_table_options grows = { .key = "id", .append_only = true };
    ivm_batch *batch = NULL;
    fixture_open(&it);
    ivm_table *d = fixture_table_like(&it, "d", "id int64", &grows), *e = fixture_table_like(&it, "e", "id int64", &grows);
    ivm_table *seen = fixture_table_like(&it, "seen", "d int64; e int64", &(ivm_table_options){ .transient = true });
    fixture_fact(&it, seen, "d", d, "id", IVM_TRACKED);
    fixture_fact(&it, seen, "e", e, "id", IVM_TRACKED);
    fixture_make(&it, "v", ivm_plan_project(ivm_plan_join(scan_of("seen", NULL), scan_of("d", NULL), "seen.d = d.id"), "d.id"));
    ivm_view *w =
        fixture_make(&it, "w", ivm_plan_project(ivm_plan_join(scan_of("seen", NULL), scan_of("e", NULL), "seen.e = e.id"), "e.id"));
    case_push(&it, "d", IVM_INSERT, "1");
    case_push(&it, "seen", IVM_INSERT, "1,5 2,5 3,null");
    cr_assert_eq(ivm_view_drop(w, &it.error), IVM_OK);
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    cr_assert_eq(ivm_batch_create(it.engine, &batch, &it.error), IVM_OK);
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK);
    case_assert_saved_as(&it, &saved, "let go");
    case_close(&it, &other, &saved);
}

/* Of a transient table more may go than came, with undefined results: the engine is saved and comes back all the same. */
Test(plan_checkpoint, keys_that_went_and_never_came)
{
    fixture it, other;
    tape saved = { 0 };
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION };
    fixture_open(&it);
    ivm_table *p = fixture_table(&it, "p", "id int64", "id");
    ivm_table *t = fixture_table_like(&it, "t", "p int64", &(ivm_table_options){ .transient = true });
    ivm_fact *fact = fixture_fact(&it, t, "p", p, "id", IVM_TRACKED);
    case_push(&it, "t", IVM_DELETE, "9 9");
    case_push(&it, "t", IVM_INSERT, "8");
    cr_assert_eq(ivm_fact_status(fact, &state, &it.error), IVM_OK);
    cr_expect_eq(state.orphans, 0u);
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    case_push(&other, "p", IVM_INSERT, "9");
    cr_assert_eq(ivm_fact_status(ivm_fact_next(other.engine, NULL), &state, &other.error), IVM_OK);
    cr_expect_eq(state.orphans, 1u);
    case_close(&it, &other, &saved);
}

/* ---- Columns that come and go ----------------------------------------------------------------------------------------------------------------- */

Test(plan_checkpoint, views_over_columns_that_were_others_then)
{
    fixture it, other;
    tape saved = { 0 };
    case_program_open(&it);
    case_fill(&it);
    ivm_table *f = fixture_table_find(&it, "f");
    cr_assert_eq(ivm_view_drop(NULL, &it.error), IVM_INVALID_ARGUMENT);
    static const char *const readers[] = { "left", "anti", "top" }; /* of all columns */
    for (size_t i = 0; i < 3; i++) {
        ivm_view *view = fixture_view_find(&it, readers[i]);
        cr_assert_eq(ivm_view_drop(view, &it.error), IVM_OK);
    }
    fixture_make(&it, "bools", ivm_plan_project(ivm_plan_filter(scan_of("f", "g"), ivm_column("g.b")), "g.n, b"));
    cr_assert_eq(ivm_table_column_rename(f, "n", "x2", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_rename(f, "x", "n", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_add(f, &(ivm_column_definition){ "x", IVM_STRING, false }, &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_drop(f, "x", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_add(f, &(ivm_column_definition){ "x", IVM_DATE, false }, &it.error), IVM_OK, "%s", it.error.message);
    fixture_make(&it, "dates", ivm_plan_project(scan_of("f", NULL), "x, n, x2"));
    case_save(&it, &saved);
    case_reopen(&other, &saved);
    fixture *both[] = { &it, &other };
    char *rows[2][2];
    for (int i = 0; i < 2; i++) {
        case_push(both[i], "f", IVM_INSERT, "20,1,3,2.5,1.00,true,2026-05-05");
        static const char *const names[] = { "bools", "dates" };
        for (int v = 0; v < 2; v++) {
            ivm_view *view = fixture_view_find(both[i], names[v]);
            rows[i][v] = strdup(fixture_view(both[i], view));
        }
    }
    for (int v = 0; v < 2; v++) {
        cr_expect_str_eq(rows[0][v], rows[1][v]);
        free(rows[0][v]);
        free(rows[1][v]);
    }
    case_save(&it, &saved);
    case_assert_saved_as(&other, &saved, "gone on");
    case_close(&it, &other, &saved);
}
