/* tests engine/catalog/column.c and engine/store/store_rewrite.c */
#include <criterion/criterion.h>
#include <stdio.h>

#include "index.h"
#include "ivm/batch.h"
#include "world.h"

static world tested;
static const uint32_t all[3] = { 0, 1, 2 };

static ivm_view *over(const char *name, ivm_refresh refresh, uint32_t table, const uint32_t *columns, uint32_t count)
{
    ivm_view *view = NULL;
    ivm__source source = { .table = tested.tables[table] };
    cr_assert_eq(copies_create(tested.engine, name, refresh, &source, 1, columns, count, &view), IVM_OK);
    return view;
}

static ivm_status add(uint32_t table, const char *name, ivm_type type)
{
    ivm_column_definition column = { name, type, false };
    return ivm_table_column_add(tested.tables[table], &column, &tested.error);
}

static ivm_status drop(uint32_t table, const char *name)
{
    return ivm_table_column_drop(tested.tables[table], name, &tested.error);
}

static void is_whole(void)
{
    cr_assert_null(copies_at_rest(tested.engine), "%s", copies_at_rest(tested.engine));
    for (ivm_view *view = tested.engine->views; view; view = view->next) {
        cr_assert_null(copies_of(view)->wrong, "view %s: %s", view->name, copies_of(view)->wrong);
        cr_assert(view->refresh == IVM_DEFERRED || copies_is_current(view), "view %s", view->name);
    }
}

static ivm_snapshot *table_rows(uint32_t table)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_table(tested.tables[table], &snapshot, NULL), IVM_OK);
    return snapshot;
}

/* ---- Renaming -------------------------------------------------------------------------------------------------------------------------- */

Test(engine_column, renaming_changes_the_name_alone)
{
    world_open(&tested, 1);
    ivm_table *table = tested.tables[WORLD_KEYED];
    world_put(&tested, WORLD_KEYED, 1, 1, "a", 1);
    ivm_view *view = over("v", IVM_IMMEDIATE, WORLD_KEYED, all, 3);
    ivm_batch *batch = world_row(&tested, WORLD_KEYED, 2, 1, "a", 1);
    cr_assert_eq(ivm_table_column_rename(table, "k", "key", &tested.error), IVM_OK);
    cr_assert_str_eq(ivm_table_column_name(table, 0), "key");
    cr_assert_eq(world_push(&tested, batch), IVM_OK); /* it was filled before */
    cr_assert_eq(world_rows(world_read(view)), 2);
    cr_assert_eq(ivm_table_column_rename(table, "k", "x", &tested.error), IVM_UNKNOWN_COLUMN);
    cr_assert_str_eq(tested.error.message, "table keyed has no column k");
    cr_assert_eq(ivm_table_column_rename(table, "key", "v", &tested.error), IVM_ALREADY_EXISTS);
    cr_assert_str_eq(tested.error.message, "table keyed has a column v already");
    cr_assert_eq(ivm_table_column_rename(table, "key", "key", NULL), IVM_ALREADY_EXISTS);
    cr_assert_eq(ivm_table_column_rename(table, "key", "", NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_rename(table, "key", NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_rename(NULL, "key", "x", NULL), IVM_INVALID_ARGUMENT);
    is_whole();
    world_close(&tested);
}

/* ---- Adding ---------------------------------------------------------------------------------------------------------------------------- */

Test(engine_column, a_new_one_is_null_in_the_rows_that_are_there)
{
    static const ivm_type types[] = { IVM_INT64, IVM_STRING, IVM_DECIMAL(20, 2), IVM_BOOL };
    for (uint32_t table = 0; table < WORLD_TABLES; table++) {
        world_open(&tested, 2);
        for (int64_t i = 0; i < 700; i++) {
            world_put(&tested, table, i, i % 2, i % 3 ? "text" : NULL, 1);
        }
        world_put(&tested, table, 5, 1, "text", -1);
        ivm_snapshot *before = table_rows(table);
        ivm_view *view = over("v", IVM_IMMEDIATE, table, all, 3), *late = over("late", IVM_DEFERRED, table, all, 3);
        for (uint32_t i = 0; i < 4; i++) {
            const char name[2] = { (char)('a' + i), 0 };
            cr_assert_eq(add(table, name, types[i]), IVM_OK, "%s", tested.error.message);
            cr_assert_eq(ivm_table_columns_count(tested.tables[table]), 4 + i);
            cr_assert_eq(ivm_table_column_type(tested.tables[table], 3 + i), types[i]);
            is_whole();
        }
        ivm_rows rows;
        ivm_snapshot *after = table_rows(table);
        cr_assert(ivm_snapshot_rows_count(after) == 699 && ivm_snapshot_columns_count(after) == 7);
        cr_assert(ivm_snapshot_next(after, &rows));
        for (size_t c = 3; c < 7; c++) {
            cr_assert(ivm_rows_value(&rows, types[c - 3], 17, c).is_null);
        }
        ivm_snapshot_close(after);
        cr_assert_eq(world_weight(before, 17, 1, "text"), 1);
        world_put(&tested, table, 700, 1, "text", 1);
        world_put(&tested, table, 17, 1, "text", -1); /* found by its whole content, the nulls too */
        is_whole();
        cr_assert_eq(world_rows(world_changes(view)), 1);
        cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
        cr_assert(copies_of(late)->delta_rows[0] == 2 && copies_is_current(late));
        world_close(&tested);
    }
}

Test(engine_column, one_that_cannot_be_is_refused)
{
    world_open(&tested, 3);
    ivm_column_definition column = { "n", IVM_INT64, true };
    ivm_table *table = tested.tables[WORLD_BAG];
    cr_assert_eq(ivm_table_column_add(table, &column, &tested.error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(tested.error.message, "table bag: column n is null in the rows that are there");
    cr_assert_eq(add(WORLD_BAG, "v", IVM_INT64), IVM_ALREADY_EXISTS);
    cr_assert_eq(add(WORLD_BAG, "", IVM_INT64), IVM_INVALID_ARGUMENT);
    cr_assert_eq(add(WORLD_BAG, "n", 77), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_add(table, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_add(NULL, &column, NULL), IVM_INVALID_ARGUMENT);
    for (uint32_t i = 3; i < IVM_TABLE_COLUMNS_MAX; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%u", i);
        cr_assert_eq(add(WORLD_BAG, name, IVM_INT64), IVM_OK);
    }
    cr_assert_eq(add(WORLD_BAG, "n", IVM_INT64), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_columns_count(table), IVM_TABLE_COLUMNS_MAX);
    world_close(&tested);
}

/* ---- Dropping -------------------------------------------------------------------------------------------------------------------------- */

Test(engine_column, one_that_is_used_stays)
{
    world_open(&tested, 4);
    ivm_table *keyed = tested.tables[WORLD_KEYED], *bag = tested.tables[WORLD_BAG];
    cr_assert_eq(ivm_foreign_key_declare(bag, "v", keyed, "k", IVM_RELY, NULL, &tested.error), IVM_OK);
    ivm_view *view = over("v", IVM_IMMEDIATE, WORLD_KEYED, (uint32_t[]){ 0, 2 }, 2);
    cr_assert_eq(drop(WORLD_KEYED, "s"), IVM_IN_USE);
    cr_assert_str_eq(tested.error.message, "table keyed: column s is read by view v");
    cr_assert_eq(drop(WORLD_KEYED, "k"), IVM_IN_USE);
    cr_assert_eq(drop(WORLD_BAG, "v"), IVM_OK); /* the foreign key goes with it */
    cr_assert_null(tested.engine->facts);
    cr_assert_eq(drop(WORLD_KEYED, "n"), IVM_UNKNOWN_COLUMN);
    cr_assert_eq(drop(WORLD_KEYED, "v"), IVM_OK, "%s", tested.error.message);
    copies_drop(view);
    cr_assert_eq(drop(WORLD_KEYED, "s"), IVM_OK);
    cr_assert_eq(drop(WORLD_KEYED, "k"), IVM_IN_USE);
    cr_assert_str_eq(tested.error.message, "table keyed: column k is one of the key");
    view = over("v", IVM_IMMEDIATE, WORLD_SIGNED, (uint32_t[]){ 0 }, 1);
    cr_assert_eq(drop(WORLD_SIGNED, "v"), IVM_IN_USE); /* where a row is there depends on all of it */
    copies_drop(view);
    cr_assert_eq(drop(WORLD_SIGNED, "v"), IVM_OK);
    cr_assert_eq(drop(WORLD_SIGNED, "s"), IVM_OK);
    cr_assert_eq(drop(WORLD_SIGNED, "k"), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_drop(bag, NULL, NULL), IVM_INVALID_ARGUMENT);
    cr_assert_eq(ivm_table_column_drop(NULL, "k", NULL), IVM_INVALID_ARGUMENT);
    world_close(&tested);
}

Test(engine_column, facts_and_keys_follow)
{
    world_open(&tested, 5);
    ivm_table *keyed = tested.tables[WORLD_KEYED], *bag = tested.tables[WORLD_BAG], *other;
    ivm_column_definition columns[] = { { "x", IVM_STRING, false }, { "y", IVM_INT64, false }, { "z", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "z,y" };
    ivm_fact *first, *second;
    cr_assert_eq(ivm_table_create(tested.engine, "other", &options, &other, NULL), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(bag, "v", keyed, "k", IVM_RELY, &first, NULL), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(keyed, "k,v", other, "y,z", IVM_RELY, &second, NULL), IVM_OK);
    cr_assert_eq(ivm_table_column_drop(other, "x", NULL), IVM_OK);
    cr_assert_eq(drop(WORLD_BAG, "k"), IVM_OK);
    cr_assert(first->child_columns[0] == 0 && first->parent_columns[0] == 0);
    cr_assert(second->parent_columns[0] == 0 && second->parent_columns[1] == 1 && second->child_columns[1] == 1);
    size_t key[2];
    cr_assert(ivm_table_key(other, key, 2) == 2 && key[0] == 1 && key[1] == 0);
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    ivm_batch_insert(batch, other, ivm_int64(1), ivm_int64(2));
    ivm_batch_delete_key(batch, other, ivm_int64(2), ivm_int64(1));
    cr_assert_eq(world_push(&tested, batch), IVM_OK, "%s", tested.error.message);
    world_close(&tested);
}

Test(engine_column, rows_of_a_bag_that_become_equal_stay_as_many)
{
    world_open(&tested, 6);
    for (int64_t i = 0; i < 4; i++) {
        world_put(&tested, WORLD_BAG, 1, i, "a", 1);
        world_put(&tested, WORLD_SIGNED, 1, i, "a", i - 1);
    }
    world_put(&tested, WORLD_BAG, 1, 3, "a", -1);
    ivm_view *late = over("late", IVM_DEFERRED, WORLD_BAG, (uint32_t[]){ 0, 2 }, 2);
    world_put(&tested, WORLD_BAG, 1, 2, "a", -1);
    world_put(&tested, WORLD_BAG, 1, 7, "a", 1); /* what is pending comes to nothing once v is gone */
    cr_assert_eq(drop(WORLD_BAG, "v"), IVM_OK);
    cr_assert_eq(drop(WORLD_SIGNED, "v"), IVM_OK);
    is_whole();
    cr_assert(tested.tables[WORLD_BAG]->store.rows_live == 3 && tested.tables[WORLD_SIGNED]->store.rows_live == 1);
    cr_assert_eq(ivm_refresh_view(late, NULL, NULL), IVM_OK);
    cr_assert(copies_of(late)->delta_rows[0] == 0 && copies_is_current(late));
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    (void)ivm_batch_row(batch, tested.tables[WORLD_BAG], IVM_WEIGHTED, -3, IVM_VALUES(ivm_int64(1), ivm_string("a")));
    (void)ivm_batch_row(batch, tested.tables[WORLD_SIGNED], IVM_WEIGHTED, -2, IVM_VALUES(ivm_int64(1), ivm_string("a")));
    cr_assert_eq(world_push(&tested, batch), IVM_OK, "%s", tested.error.message);
    cr_assert(tested.tables[WORLD_BAG]->store.rows_live == 0 && tested.tables[WORLD_SIGNED]->store.rows_live == 0);
    world_close(&tested);
}

Test(engine_column, rows_that_become_equal_may_weigh_too_much)
{
    for (uint32_t table = WORLD_BAG; table < WORLD_TABLES; table++) {
        world_open(&tested, 7);
        world_put(&tested, table, 1, 1, "a", INT64_MAX);
        world_put(&tested, table, 2, 2, "a", INT64_MAX);
        cr_assert_eq(drop(table, "v"), IVM_OK, "%s", tested.error.message);
        cr_assert_eq(drop(table, "k"), IVM_OVERFLOW);
        is_whole();
        cr_assert_eq(ivm_table_columns_count(tested.tables[table]), 2);
        cr_assert_eq(world_rows(table_rows(table)), 2);
        world_close(&tested);
    }
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------------------- */

Test(engine_column, a_batch_filled_before_is_refused)
{
    world_open(&tested, 8);
    ivm_batch *before = world_row(&tested, WORLD_BAG, 1, 1, "a", 1), *both = world_row(&tested, WORLD_BAG, 1, 1, "a", 1);
    ivm_batch *other = world_row(&tested, WORLD_KEYED, 1, 1, "a", 1);
    cr_assert_eq(add(WORLD_BAG, "n", IVM_INT64), IVM_OK);
    cr_assert_eq(drop(WORLD_BAG, "v"), IVM_OK); /* as many as before, of equal types */
    (void)ivm_batch_row(both, tested.tables[WORLD_BAG], IVM_INSERT, 1, IVM_VALUES(ivm_int64(1), ivm_string("a"), ivm_int64(1)));
    cr_assert_eq(world_push(&tested, before), IVM_TYPE_MISMATCH);
    cr_assert_str_eq(tested.error.message, "table bag: its columns have changed since the batch was filled");
    cr_assert_eq(world_push(&tested, both), IVM_TYPE_MISMATCH);
    cr_assert_eq(world_push(&tested, other), IVM_OK);
    world_close(&tested);
}

/* ---- Any history ----------------------------------------------------------------------------------------------------------------------- */

static uint64_t history_seed;

static void tell_seed(void)
{
    if (history_seed) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)history_seed);
    }
}

/* Changes columns that no view reads while the n-th allocation fails, for every n. Where it fails nothing has changed. */
static uint64_t change_through(uint32_t table, const char *name, bool adds)
{
    ivm_table *of = tested.tables[table];
    size_t columns = ivm_table_columns_count(of);
    uint64_t rows = world_rows(table_rows(table));
    for (uint64_t n = 1;; n++) {
        test_allocator_arm(&tested.allocator, n);
        ivm_status status = adds ? add(table, name, world_random(&tested, 2) ? IVM_STRING : IVM_DECIMAL(30, 1)) : drop(table, name);
        bool failed = test_allocator_disarm(&tested.allocator);
        is_whole();
        if (status != IVM_OUT_OF_MEMORY) {
            cr_assert_eq(status, IVM_OK, "%s", tested.error.message);
            cr_assert_eq(ivm_table_columns_count(of), columns + (adds ? 1 : -1));
            return n;
        }
        cr_assert(failed && ivm_table_columns_count(of) == columns && world_rows(table_rows(table)) == rows);
    }
}

/* Rows for the tables as they are: values by name, the columns that came null but for a few. */
static void push_rows(void)
{
    ivm_batch *batch;
    cr_assert_eq(ivm_batch_create(tested.engine, &batch, NULL), IVM_OK);
    for (uint64_t i = world_random(&tested, 6); i-- > 0;) {
        uint32_t table = (uint32_t)world_random(&tested, WORLD_TABLES), count = tested.tables[table]->columns_count;
        ivm_value values[16];
        for (uint32_t c = 0; c < count; c++) {
            ivm_type type = ivm_table_column_type(tested.tables[table], c);
            values[c] = type == IVM_INT64    ? ivm_int64((int64_t)world_random(&tested, 4))
                        : type == IVM_STRING ? ivm_string(world_random(&tested, 2) ? "a" : "b")
                                             : ivm_null();
        }
        bool upserts = table == WORLD_KEYED && world_random(&tested, 2);
        (void)ivm_batch_row(batch, tested.tables[table], upserts ? IVM_UPSERT : IVM_WEIGHTED, 1 - (int64_t)world_random(&tested, 3), values,
                            count);
    }
    (void)world_push(&tested, batch); /* some are refused */
}

static uint64_t history(uint64_t seed)
{
    world_open(&tested, seed);
    uint64_t most = 0;
    ivm_view *late[2], *now;
    ivm_snapshot *held = NULL;
    now = over("now", IVM_IMMEDIATE, WORLD_KEYED, (uint32_t[]){ 0, 2 }, 2);
    late[0] = over("late0", IVM_DEFERRED, WORLD_KEYED, (uint32_t[]){ 2, 0 }, 2);
    late[1] = over("late1", IVM_DEFERRED, WORLD_BAG, (uint32_t[]){ 0 }, 1);
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t table = (uint32_t)world_random(&tested, WORLD_TABLES);
        ivm_table *of = tested.tables[table];
        char name[2] = { (char)('A' + i), 0 };
        push_rows();
        if (i % 3 == 0 && of->columns_count < 8) {
            uint64_t n = change_through(table, name, true);
            most = n > most ? n : most;
        } else if (i % 3 == 1) {
            const char *victim = ivm_table_column_name(of, world_random(&tested, of->columns_count));
            bool mine = *victim == 'v' || *victim < 'a' || (table == WORLD_BAG && *victim == 's');
            snprintf(name, sizeof name, "%s", victim);
            most = mine && of->columns_count > 1 ? change_through(table, name, false) : most;
        } else if (world_random(&tested, 2)) {
            ivm_view *view = late[world_random(&tested, 2)];
            cr_assert_eq(ivm_refresh_view(view, NULL, NULL), IVM_OK);
            cr_assert(copies_is_current(view), "view %s", view->name);
        }
        if (i % 7 == 3) {
            ivm_snapshot_close(held);
            held = table_rows(table);
        }
        is_whole();
    }
    cr_assert_eq(copies_of(now)->undos, 0);
    ivm_snapshot_close(held);
    world_close(&tested);
    return most;
}

Test(engine_column, views_keep_their_state_and_every_allocation_may_fail, .fini = tell_seed)
{
    uint64_t most = 0;
    for (history_seed = 1; history_seed <= 25; history_seed++) {
        uint64_t n = history(history_seed);
        most = n > most ? n : most;
    }
    history_seed = 0;
    cr_assert_gt(most, 15);
}
