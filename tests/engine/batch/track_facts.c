/* Tracked and enforced facts through the public API: what is refused, how they stand, what a watcher is told, columns that come and go, rows that
 * are not kept. */
#include <criterion/criterion.h>
#include <string.h>

#include "track_case.h"
#include "track_inside.h"
#include "transient.h"

static track_case tested;

static void is_right(void)
{
    const char *what = track_check(&tested);
    cr_assert_null(what, "%s", what);
}

static ivm_batch *batch_of(void)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, &tested.error), IVM_OK);
    return batch;
}

static ivm_status put(ivm_table *table, int64_t weight, const ivm_value *row, size_t count)
{
    ivm_batch *batch = batch_of();
    (void)ivm_batch_row(batch, table, IVM_WEIGHTED, weight, row, count);
    return track_push(&tested, batch);
}
#define PUT(table, weight, ...) cr_assert_eq(put(table, weight, IVM_VALUES(__VA_ARGS__)), IVM_OK, "%s", tested.error.message)

static ivm_status declare(ivm_table *child, const char *columns, ivm_table *parent, const char *key, ivm_trust trust, ivm_fact **fact)
{
    return ivm_foreign_key_declare(child, columns, parent, key, trust, fact, &tested.error);
}

static ivm_table *table_make(const char *name, const char *key, const ivm_table_options *as)
{
    static const ivm_column_definition columns[] = { { "id", IVM_INT64, false }, { "up", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = key };
    ivm_table *table = NULL;
    options.append_only = as && as->append_only;
    options.transient = as && as->transient;
    options.allow_negative = as && as->allow_negative;
    cr_assert_eq(ivm_table_create(tested.engine, name, &options, &table, &tested.error), IVM_OK, "%s", tested.error.message);
    return table;
}

/* ---- How a fact stands --------------------------------------------------------------------------------------------------------------------- */

Test(engine_track_facts, status_and_orphans_of_any_trust)
{
    track_open(&tested, 1);
    ivm_table **t = tested.tables;
    ivm_fact *trusted = NULL, *tracked = NULL;
    ivm_snapshot *snapshot = NULL;
    track_keys keys = { .count = 0 };
    cr_assert_eq(declare(t[TRACK_CHILD], "a, b", t[TRACK_PARENT], "k, s", IVM_RELY, &trusted), IVM_OK);
    cr_assert_eq(declare(t[TRACK_CHILD], "b, a", t[TRACK_PARENT], "s, k", IVM_TRACKED, &tracked), IVM_OK);
    PUT(t[TRACK_CHILD], 1, ivm_int64(1), ivm_int64(7), ivm_string("x"));
    PUT(t[TRACK_CHILD], 1, ivm_int64(2), ivm_int64(7), ivm_string("x"));
    PUT(t[TRACK_CHILD], 1, ivm_int64(3), ivm_null(), ivm_string("x"));
    PUT(t[TRACK_CHILD], 1, ivm_int64(4), ivm_int64(8), ivm_string("x"));
    cr_assert(track_orphans(trusted) == 0 && track_orphans_keys(trusted) == 0);
    cr_assert(track_orphans(tracked) == 3 && track_orphans_keys(tracked) == 2);
    cr_assert_eq(ivm_read_orphans(trusted, &snapshot, NULL), IVM_OK);
    cr_assert(ivm_snapshot_rows_count(snapshot) == 0 && ivm_snapshot_columns_count(snapshot) == 2);
    ivm_rows rows;
    cr_assert(ivm_snapshot_column_type(snapshot, 0) == IVM_STRING && !ivm_snapshot_next(snapshot, &rows));
    ivm_snapshot_close(snapshot);
    cr_assert_eq(ivm_read_orphans(tracked, &snapshot, NULL), IVM_OK);
    ivm_value key[] = { ivm_string("x"), ivm_int64(7) };
    cr_assert_eq(ivm_snapshot_find(snapshot, key, 2, &rows, &tested.error), IVM_OK, "%s", tested.error.message);
    cr_assert(rows.rows_count == 1 && rows.weights[0] == 2);
    PUT(t[TRACK_PARENT], 1, ivm_int64(7), ivm_int64(0), ivm_string("x"));
    track_keys_add(&keys, snapshot); /* as it was */
    cr_assert(keys.count == 2 && strcmp(keys.key[0], "(x,7") == 0 && keys.weight[0] == 2);
    cr_assert_eq(track_orphans(tracked), 1);
    track_close(&tested);
}

Test(engine_track_facts, arguments_are_checked)
{
    track_open(&tested, 2);
    ivm_table **t = tested.tables;
    ivm_fact *trusted = NULL;
    ivm_fact_state state = { .version = IVM_FACT_STATE_VERSION + 1 };
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(declare(t[TRACK_CHILD], "a, b", t[TRACK_PARENT], "k, s", IVM_RELY, &trusted), IVM_OK);
    cr_assert_eq(ivm_fact_status(trusted, &state, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_fact_status(NULL, &state, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_fact_status(trusted, NULL, NULL), IVM_INVALID_ARGUMENT);
    state.version = 0;
    cr_assert_eq(ivm_fact_status(trusted, &state, NULL), IVM_OK);
    cr_assert_eq(ivm_read_orphans(NULL, &snapshot, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_read_orphans(trusted, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_fact_watch(trusted, NULL, NULL, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(tested.error.message, "the foreign key of child to parent is not tracked: it has no orphans to tell of");
    cr_assert_eq(ivm_fact_watch(NULL, NULL, NULL, NULL), IVM_INVALID_ARGUMENT);
    track_close(&tested);
}

Test(engine_track_facts, one_that_a_view_rests_on_stays)
{
    track_open(&tested, 3);
    track_declare(&tested);
    ivm_fact *fact = tested.facts[2];
    ivm__hop hop = { fact, IVM__HOP_ROW };
    ivm__hops hops = { .table = fact->child, .hop = &hop, .count = 1, .capacity = 1 };
    ivm_view rests = { .engine = tested.engine, .name = (char *)"totals", .hops = &hops };
    ivm_view other = { .engine = tested.engine, .name = (char *)"other", .next = &rests }, *views = tested.engine->views;
    rests.next = views;
    tested.engine->views = &other;
    ivm__hops_publish(&rests);
    cr_assert_eq(ivm_foreign_key_remove(fact, &tested.error), IVM_IN_USE);
    cr_assert_str_eq(tested.error.message, "view totals rests on the foreign key of bag to wide: it reads rows that are not kept");
    cr_assert_eq(ivm_table_column_drop(tested.tables[TRACK_BAG], "x", &tested.error), IVM_IN_USE);
    cr_assert_str_eq(tested.error.message, "table bag: a foreign key names column x, and view totals rests on it");
    ivm__hops_retire(&rests);
    tested.engine->views = views;
    cr_assert_eq(ivm_foreign_key_remove(fact, &tested.error), IVM_OK);
    tested.facts[2] = NULL;
    is_right();
    track_close(&tested);
}

/* ---- Watched -------------------------------------------------------------------------------------------------------------------------------- */

typedef struct told {
    uint64_t calls, view_calls;
    track_keys keys; /* all that was told, added up */
    bool first;      /* the view was told after it */
    ivm_status inside;
} told;

static void orphans_changed(void *context, ivm_fact *fact, ivm_snapshot *changes)
{
    told *it = context;
    ivm_fact_state state = { 0 };
    it->calls++;
    it->first = true;
    it->inside = ivm_fact_status(fact, &state, NULL);
    for (ivm_rows rows; ivm_snapshot_next(changes, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            char key[TRACK_KEY_SIZE] = "(", cell[24];
            ivm_value value = ivm_rows_value(&rows, IVM_INT64, i, 0);
            ivm_value_format(&value, cell, sizeof cell);
            strcat(key, cell);
            uint32_t at = 0;
            while (at < it->keys.count && strcmp(it->keys.key[at], key) != 0) {
                at++;
            }
            cr_assert_lt(at, TRACK_KEYS_MAX);
            it->keys.count += at == it->keys.count;
            strcpy(it->keys.key[at], key);
            it->keys.weight[at] += rows.weights[i];
        }
    }
}

/* Changes add up to the orphans, and a push that changed none tells nothing. */
Test(engine_track_facts, a_watcher_is_told_what_changed)
{
    static told heard;
    track_open(&tested, 4);
    track_declare(&tested);
    track_views(&tested);
    heard = (told){ 0 };
    ivm_fact *fact = tested.facts[2];
    cr_assert_eq(ivm_fact_watch(fact, orphans_changed, &heard, &tested.error), IVM_OK);
    for (int i = 0; i < 400; i++) {
        uint64_t calls = heard.calls;
        track_keys before, after;
        track_model(fact, IVM__READ_CUR, &before);
        tested.fails = track_random(&tested, 5) == 0;
        (void)track_push(&tested, track_batch(&tested, 3, 1u << TRACK_WIDE | 1u << TRACK_BAG | 1u << TRACK_TREE));
        track_model(fact, IVM__READ_CUR, &after);
        cr_assert_eq(heard.calls - calls, !track_keys_equal(&before, &after));
        cr_assert(track_keys_equal(&after, &heard.keys));
    }
    tested.fails = false;
    cr_assert(heard.calls > 50 && heard.inside == IVM_IN_USE);
    cr_assert_eq(ivm_fact_watch(fact, NULL, NULL, NULL), IVM_OK);
    uint64_t calls = heard.calls;
    PUT(tested.tables[TRACK_BAG], 1, ivm_null(), ivm_null(), ivm_int64(99));
    cr_assert_eq(heard.calls, calls);
    is_right();
    track_close(&tested);
}

static void view_changed(void *context, ivm_view *view, ivm_snapshot *changes)
{
    told *it = context;
    (void)view;
    (void)changes;
    it->view_calls++;
    cr_assert(it->first);
    it->first = false;
}

Test(engine_track_facts, views_are_told_after_it)
{
    static told heard;
    ivm_view *view = NULL;
    track_open(&tested, 5);
    track_declare(&tested);
    heard = (told){ 0 };
    ivm__source source = { .table = tested.tables[TRACK_TREE] };
    cr_assert_eq(copies_create(tested.engine, "v", IVM_IMMEDIATE, &source, 1, (uint32_t[]){ 0, 1 }, 2, &view), IVM_OK);
    view->changed = view_changed;
    view->changed_context = &heard;
    cr_assert_eq(ivm_fact_watch(tested.facts[5], orphans_changed, &heard, &tested.error), IVM_OK);
    PUT(source.table, 1, ivm_int64(1), ivm_int64(2));
    PUT(source.table, 1, ivm_int64(2), ivm_int64(3));
    cr_assert(heard.calls == 2 && heard.view_calls == 2);
    copies_fail(view, true);
    cr_assert_eq(put(source.table, 1, IVM_VALUES(ivm_int64(4), ivm_int64(5))), IVM_OVERFLOW);
    cr_assert(heard.calls == 2 && heard.view_calls == 2);
    track_close(&tested);
}

static void count_calls(void *context, ivm_fact *fact, ivm_snapshot *changes)
{
    (void)fact;
    *(uint64_t *)context += ivm_snapshot_rows_count(changes);
}

Test(engine_track_facts, out_of_memory_tells_nothing)
{
    static uint64_t calls;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        track_open(&tested, 6);
        track_declare(&tested);
        calls = 0;
        cr_assert_eq(ivm_fact_watch(tested.facts[5], count_calls, &calls, &tested.error), IVM_OK);
        ivm_batch *batch = batch_of();
        ivm_batch_insert(batch, tested.tables[TRACK_TREE], ivm_int64(1), ivm_int64(2));
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = track_push(&tested, batch);
        done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(calls, done);
        is_right();
        track_close(&tested);
    }
}

/* ---- Columns that come and go ---------------------------------------------------------------------------------------------------------------- */

Test(engine_track_facts, a_dropped_column_takes_its_facts_along)
{
    track_open(&tested, 7);
    ivm_table **t = tested.tables;
    ivm_fact *trusted = NULL;
    track_declare(&tested);
    cr_assert_eq(declare(t[TRACK_BAG], "x", t[TRACK_WIDE], "w", IVM_RELY, &trusted), IVM_OK);
    for (int i = 0; i < 20; i++) {
        (void)track_push(&tested, track_batch(&tested, 20, (1u << TRACK_TABLES) - 1));
    }
    uint64_t version = tested.engine->facts_version;
    cr_assert_eq(ivm_table_column_drop(t[TRACK_BAG], "x", &tested.error), IVM_OK);
    cr_assert_gt(tested.engine->facts_version, version);
    tested.facts[2] = NULL; /* and the one that was relied on */
    for (const ivm_fact *fact = tested.engine->facts; fact; fact = fact->next) {
        cr_assert(fact != trusted && (fact->child != t[TRACK_BAG] || fact == tested.facts[1]));
    }
    is_right();
    cr_assert_eq(ivm_table_column_drop(t[TRACK_WIDE], "w", &tested.error), IVM_IN_USE); /* of the table's own key */
    cr_assert_eq(ivm_table_column_drop(t[TRACK_CHILD], "id", &tested.error), IVM_IN_USE);
    cr_assert_eq(ivm_table_column_drop(t[TRACK_CHILD], "a", &tested.error), IVM_OK);
    tested.facts[0] = NULL;
    cr_assert_eq(ivm_table_column_drop(t[TRACK_TREE], "up", &tested.error), IVM_OK);
    tested.facts[5] = NULL;
    is_right();
    track_close(&tested);
}

/* Rows of a table that allows negative weights merge, and may come to nothing: how many wait changes with them. Numbers close up. */
Test(engine_track_facts, facts_count_on_when_other_columns_come_and_go)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        track_open(&tested, seed + 70);
        ivm_table **t = tested.tables;
        ivm_column_definition added = { "more", IVM_STRING, false };
        track_declare(&tested);
        for (int i = 0; i < 10; i++) {
            (void)track_push(&tested, track_batch(&tested, 20, (1u << TRACK_TABLES) - 1));
        }
        cr_assert_eq(ivm_table_column_add(t[TRACK_PARENT], &added, &tested.error), IVM_OK);
        cr_assert_eq(ivm_table_column_drop(t[TRACK_PARENT], "v", &tested.error), IVM_OK);
        is_right();
        for (uint32_t table = TRACK_BAG; table <= TRACK_SIGNED; table++) {
            cr_assert_eq(ivm_table_column_drop(t[table], "a", &tested.error), IVM_OK, "%s", tested.error.message);
        }
        tested.facts[1] = tested.facts[3] = NULL;
        is_right();
        cr_assert(tested.facts[2]->child_columns[0] == 1 && tested.facts[4]->child_columns[0] == 1);
        for (int i = 0; i < 10; i++) {
            int64_t x = (int64_t)track_random(&tested, 8);
            (void)put(t[TRACK_SIGNED], i % 3 - 1, IVM_VALUES(ivm_string(i % 2 ? "a" : "bb"), ivm_int64(x)));
            (void)put(t[TRACK_WIDE], i % 2 ? 1 : -1, IVM_VALUES(ivm_int64(x), ivm_int64(1)));
            is_right();
        }
        track_close(&tested);
    }
}

Test(engine_track_facts, out_of_memory_dropping_a_column_leaves_all_facts)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        track_open(&tested, 8);
        track_declare(&tested);
        for (int i = 0; i < 6; i++) {
            (void)track_push(&tested, track_batch(&tested, 20, (1u << TRACK_TABLES) - 1));
        }
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = ivm_table_column_drop(tested.tables[TRACK_SIGNED], "a", &tested.error);
        done = !test_allocator_disarm(&tested.allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        tested.facts[3] = done ? NULL : tested.facts[3];
        is_right();
        track_close(&tested);
    }
}

/* ---- Rows that are not kept ------------------------------------------------------------------------------------------------------------------ */

Test(engine_track_facts, rows_that_are_not_kept_are_counted_as_they_come)
{
    track_open(&tested, 9);
    ivm_table *parent = table_make("p", "id", NULL), *log = table_make("log", NULL, &(ivm_table_options){ .transient = true });
    ivm_fact *fact = NULL;
    cr_assert_eq(declare(log, "up", parent, "id", IVM_TRACKED, &fact), IVM_OK);
    PUT(parent, 1, ivm_int64(1), ivm_null());
    PUT(log, 3, ivm_int64(1), ivm_int64(1));
    PUT(log, 2, ivm_int64(2), ivm_int64(2));
    PUT(log, 2, ivm_int64(2), ivm_null());
    cr_assert(track_orphans(fact) == 2 && fact->track->held.store.rows_live == 2);
    PUT(parent, -1, ivm_int64(1), ivm_null());
    cr_assert(track_orphans(fact) == 5 && track_orphans_keys(fact) == 2);
    PUT(log, -1, ivm_int64(1), ivm_int64(1));
    cr_assert_eq(track_orphans(fact), 4);
    PUT(parent, 1, ivm_int64(2), ivm_null());
    cr_assert_eq(track_orphans(fact), 2);
    PUT(parent, 1, ivm_int64(1), ivm_null());
    cr_assert_eq(track_orphans(fact), 0);
    cr_assert_eq(declare(log, "id", parent, "id", IVM_TRACKED, NULL), IVM_UNSUPPORTED);
    cr_assert_eq(declare(log, "id", parent, "id", IVM_ENFORCED, NULL), IVM_UNSUPPORTED);
    cr_assert_eq(declare(log, "id", parent, "id", IVM_RELY, NULL), IVM_OK);
    track_close(&tested);
}

Test(engine_track_facts, held_is_not_counted_where_no_parent_can_leave)
{
    track_open(&tested, 10);
    ivm_table *parent = table_make("p", "id", &(ivm_table_options){ .append_only = true });
    ivm_table *log = table_make("log", NULL, &(ivm_table_options){ .transient = true });
    ivm_fact *tracked = NULL, *enforced = NULL;
    cr_assert_eq(declare(log, "up", parent, "id", IVM_TRACKED, &tracked), IVM_OK);
    cr_assert_eq(declare(log, "id", parent, "id", IVM_ENFORCED, &enforced), IVM_OK);
    PUT(parent, 1, ivm_int64(1), ivm_null());
    PUT(log, 3, ivm_int64(1), ivm_int64(1));
    PUT(log, 1, ivm_int64(1), ivm_int64(5));
    cr_assert(!tracked->track->held.whole && track_orphans(tracked) == 1 && !enforced->track);
    cr_assert_eq(put(log, 1, IVM_VALUES(ivm_int64(2), ivm_null())), IVM_FK_VIOLATION);
    track_close(&tested);
}

Test(engine_track_facts, an_enforced_fact_of_rows_not_kept_knows_who_holds)
{
    track_open(&tested, 11);
    ivm_table *parent = table_make("p", "id", NULL), *log = table_make("log", NULL, &(ivm_table_options){ .transient = true });
    ivm_fact *fact = NULL;
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(declare(log, "up", parent, "id", IVM_ENFORCED, &fact), IVM_OK);
    PUT(parent, 1, ivm_int64(1), ivm_null());
    PUT(parent, 1, ivm_int64(2), ivm_null());
    PUT(log, 2, ivm_int64(7), ivm_int64(1));
    cr_assert_eq(put(log, 1, IVM_VALUES(ivm_int64(7), ivm_int64(3))), IVM_FK_VIOLATION);
    PUT(parent, -1, ivm_int64(2), ivm_null());
    cr_assert_eq(put(parent, -1, IVM_VALUES(ivm_int64(1), ivm_null())), IVM_FK_VIOLATION);
    cr_assert_str_eq(tested.error.message, "table log: rows still refer through (up) to key (1) of p, which goes");
    PUT(log, -1, ivm_int64(7), ivm_int64(1));
    cr_assert_eq(put(parent, -1, IVM_VALUES(ivm_int64(1), ivm_null())), IVM_FK_VIOLATION);
    ivm_batch *batch = batch_of();
    ivm_batch_delete(batch, parent, ivm_int64(1), ivm_null());
    ivm_batch_delete(batch, log, ivm_int64(7), ivm_int64(1));
    cr_assert_eq(track_push(&tested, batch), IVM_OK, "%s", tested.error.message);
    cr_assert(track_orphans(fact) == 0 && ivm_read_orphans(fact, &snapshot, NULL) == IVM_OK);
    cr_assert_eq(ivm_snapshot_rows_count(snapshot), 0);
    ivm_snapshot_close(snapshot);
    track_close(&tested);
}

Test(engine_track_facts, signs_of_rows_not_kept_cannot_be_told)
{
    track_open(&tested, 12);
    ivm_table *parent = table_make("p", "id", NULL);
    ivm_table *log = table_make("log", NULL, &(ivm_table_options){ .transient = true, .allow_negative = true });
    cr_assert_eq(declare(log, "up", parent, "id", IVM_TRACKED, NULL), IVM_UNSUPPORTED);
    cr_assert_eq(declare(log, "up", parent, "id", IVM_RELY, NULL), IVM_OK);
    track_close(&tested);
}
