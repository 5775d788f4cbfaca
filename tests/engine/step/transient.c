/* Tables whose rows are not kept, without a view: what they are made of, what a batch may do to them, and that nothing stays. */
#include <criterion/criterion.h>
#include <string.h>

#include "allocator.h"
#include "catalog.h"
#include "ivm/ivm.h"

static test_allocator memory;
static ivm_engine *engine;
static ivm_table *table;
static ivm_error error;

static ivm_status make(const char *name, const ivm_table_options *like, ivm_table **made)
{
    static const ivm_column_definition columns[] = { { "a", IVM_INT64, true }, { "b", IVM_STRING, false } };
    ivm_table_options options = *like;
    options.columns = columns;
    options.columns_count = 2;
    options.transient = true;
    return ivm_table_create(engine, name, &options, made, &error);
}

static void open_table(void)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    test_allocator_init(&memory);
    options.allocator = test_allocator_functions(&memory);
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OK);
    cr_assert_eq(make("t", &(ivm_table_options){ 0 }, &table), IVM_OK, "%s", error.message);
}

static void close_table(void)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK);
    cr_assert(test_allocator_is_clean(&memory));
}

TestSuite(engine_transient, .init = open_table, .fini = close_table);

static ivm_batch *batch_of(void)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(engine, &batch, &error), IVM_OK);
    return batch;
}

static ivm_status push(ivm_batch *batch)
{
    return ivm_push_batch(engine, batch, NULL, &error);
}

static ivm_status push_row(ivm_table *into, int64_t a, const char *b, int64_t weight)
{
    ivm_batch *batch = batch_of();
    ivm_value values[] = { ivm_int64(a), b ? ivm_string(b) : ivm_null() };
    ivm_batch_row(batch, into, IVM_WEIGHTED, weight, values, 2);
    return push(batch);
}

static void says(const char *part)
{
    cr_assert(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
}

Test(engine_transient, a_key_is_unsupported_all_else_goes)
{
    ivm_table *made = NULL;
    cr_assert_eq(make("keyed", &(ivm_table_options){ .key = "a" }, &made), IVM_UNSUPPORTED);
    says("keyed");
    cr_assert_eq(make("u", &(ivm_table_options){ .append_only = true }, &made), IVM_OK);
    cr_assert_eq(make("v", &(ivm_table_options){ .allow_negative = true }, &made), IVM_OK);
    cr_assert_eq(make("w", &(ivm_table_options){ .allow_negative = true, .append_only = true }, &made), IVM_INVALID_ARGUMENT);
}

Test(engine_transient, changes_by_key_and_reading_are_unsupported)
{
    ivm_snapshot *snapshot = NULL;
    ivm_batch *batch = batch_of();
    cr_assert_eq(ivm_batch_upsert(batch, table, ivm_int64(1), ivm_string("a")), IVM_UNSUPPORTED);
    cr_assert_eq(push(batch), IVM_UNSUPPORTED);
    says("table t");
    batch = batch_of();
    ivm_rows none = { .columns_count = 0 };
    cr_assert_eq(ivm_batch_columns(batch, table, IVM_DELETE_KEY, &none), IVM_UNSUPPORTED);
    cr_assert_eq(push(batch), IVM_UNSUPPORTED);
    says("table t");
    cr_assert_eq(ivm_read_table(table, &snapshot, &error), IVM_UNSUPPORTED);
    says("table t");
    cr_assert_null(snapshot);
}

Test(engine_transient, rows_are_checked_and_dropped)
{
    for (int64_t i = 0; i < 500; i++) {
        cr_assert_eq(push_row(table, i, "text", 1), IVM_OK);
        cr_assert_eq(table->store.rows_end, 0);
    }
    int64_t bytes = memory.bytes;
    for (int64_t i = 0; i < 500; i++) {
        cr_assert_eq(push_row(table, i, "text", 3), IVM_OK);
    }
    cr_assert_eq(memory.bytes, bytes);
    ivm_batch *batch = batch_of();
    ivm_value wrong[] = { ivm_string("x"), ivm_null() }, null[] = { ivm_null(), ivm_null() };
    cr_assert_eq(ivm_batch_row(batch, table, IVM_INSERT, 1, wrong, 2), IVM_TYPE_MISMATCH);
    ivm_batch_free(batch);
    batch = batch_of();
    cr_assert_eq(ivm_batch_row(batch, table, IVM_INSERT, 1, null, 2), IVM_NULL_VIOLATION);
    ivm_batch_free(batch);
}

Test(engine_transient, nothing_is_row_not_found)
{
    cr_assert_eq(push_row(table, 1, "a", -1), IVM_OK, "%s", error.message);
    cr_assert_eq(push_row(table, 1, NULL, INT64_MIN), IVM_OK, "%s", error.message);
    cr_assert_eq(table->store.rows_end, 0);
}

Test(engine_transient, append_only_and_stated_shapes_hold)
{
    ivm_table *grows = NULL;
    cr_assert_eq(make("grows", &(ivm_table_options){ .append_only = true }, &grows), IVM_OK);
    cr_assert_eq(push_row(grows, 1, "a", 1), IVM_OK);
    cr_assert_eq(push_row(grows, 1, "a", -1), IVM_APPEND_ONLY_VIOLATION);
    says("grows");
    ivm_batch *batch = batch_of();
    ivm_batch_delete(batch, grows, ivm_int64(1), ivm_string("a"));
    ivm_batch_insert(batch, grows, ivm_int64(1), ivm_string("a"));
    cr_assert_eq(push(batch), IVM_OK, "what cancels deletes nothing");
    batch = batch_of();
    ivm_batch_delete(batch, table, ivm_int64(1), ivm_string("a"));
    ivm_batch_state_shape(batch, table, IVM_INSERT_ONLY);
    cr_assert_eq(push(batch), IVM_INVALID_ARGUMENT);
    says("stated insert_only");
    ivm_shape shape = IVM_UNCHANGED;
    batch = batch_of();
    ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("a"));
    cr_assert_eq(ivm_batch_shape(batch, table, &shape, &error), IVM_OK);
    cr_assert_eq(shape, IVM_INSERT_ONLY);
    ivm_batch_free(batch);
}

Test(engine_transient, a_batch_whose_weights_leave_int64_is_an_overflow)
{
    static const struct {
        int64_t first, second;
        ivm_status status;
    } pairs[] = { { INT64_MAX, 1, IVM_OVERFLOW },
                  { INT64_MAX - 1, 1, IVM_OK },
                  { INT64_MIN, -1, IVM_OVERFLOW },
                  { INT64_MIN + 1, -1, IVM_OK },
                  { INT64_MAX, INT64_MIN, IVM_OK } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ivm_batch *batch = batch_of();
        ivm_value values[] = { ivm_int64(1), ivm_string("a") };
        ivm_batch_row(batch, table, IVM_WEIGHTED, pairs[i].first, values, 2);
        ivm_batch_row(batch, table, IVM_WEIGHTED, pairs[i].second, values, 2);
        cr_assert_eq(push(batch), pairs[i].status, "pair %zu: %s", i, error.message);
    }
    cr_assert_eq(push_row(table, 1, "a", INT64_MAX), IVM_OK, "one batch knows nothing of another");
    cr_assert_eq(push_row(table, 1, "a", INT64_MAX), IVM_OK);
}

Test(engine_transient, it_has_changed_once_a_push_that_succeeds_changes_it_net)
{
    ivm_batch *batch = batch_of();
    ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("a"));
    ivm_batch_delete(batch, table, ivm_int64(1), ivm_string("a"));
    cr_assert_eq(push(batch), IVM_OK);
    cr_assert_not(table->came);
    cr_assert_eq(push_row(table, 1, "a", 0), IVM_OK);
    cr_assert_not(table->came);
    ivm_shape shape;
    batch = batch_of();
    ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("a"));
    cr_assert_eq(ivm_batch_shape(batch, table, &shape, &error), IVM_OK);
    cr_assert_not(table->came, "a look at a batch is no push");
    cr_assert_eq(push(batch), IVM_OK);
    cr_assert(table->came);
}

Test(engine_transient, columns_come_and_go)
{
    ivm_column_definition more = { "c", IVM_INT64, false };
    cr_assert_eq(push_row(table, 1, "a", 1), IVM_OK);
    cr_assert_eq(ivm_table_column_add(table, &more, &error), IVM_OK, "%s", error.message);
    ivm_batch *batch = batch_of();
    ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("a"), ivm_int64(2));
    cr_assert_eq(push(batch), IVM_OK, "%s", error.message);
    cr_assert_eq(ivm_table_column_drop(table, "b", &error), IVM_OK, "%s", error.message);
    batch = batch_of();
    ivm_batch_delete(batch, table, ivm_int64(1), ivm_int64(2));
    cr_assert_eq(push(batch), IVM_OK, "%s", error.message);
}

Test(engine_transient, out_of_memory_in_a_push_is_told)
{
    cr_assert_eq(push_row(table, 1, "a", 1), IVM_OK);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        ivm_batch *batch = batch_of();
        ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("new"));
        ivm_batch_delete(batch, table, ivm_int64(1), ivm_string("a"));
        test_allocator_arm(&memory, n);
        ivm_status status = push(batch);
        done = !test_allocator_disarm(&memory);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(engine->pushes, done ? 2u : 1u);
    }
}
