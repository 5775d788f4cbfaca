/* Enforced facts through the public API: what is refused, what the message names, and that nothing changes. */
#include <criterion/criterion.h>
#include <string.h>

#include "allocator.h"
#include "ivm/ivm.h"

typedef struct enforced {
    ivm_engine *engine;
    ivm_table *product, *sale;
    ivm_error error;
} enforced;

static void open_with(enforced *it, const ivm_allocator *allocator)
{
    static const ivm_column_definition product[] = { { "name", IVM_STRING, false },
                                                     { "shop", IVM_INT64, true },
                                                     { "id", IVM_INT64, true } };
    static const ivm_column_definition sale[] = { { "id", IVM_INT64, true },
                                                  { "product", IVM_INT64, false },
                                                  { "shop", IVM_INT64, false } };
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    *it = (enforced){ 0 };
    if (allocator) {
        options.allocator = *allocator;
    }
    ivm_table_options products = { .columns = product, .columns_count = 3, .key = "shop, id" };
    ivm_table_options sales = { .columns = sale, .columns_count = 3, .key = "id" };
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK);
    cr_assert_eq(ivm_table_create(it->engine, "product", &products, &it->product, &it->error), IVM_OK);
    cr_assert_eq(ivm_table_create(it->engine, "sale", &sales, &it->sale, &it->error), IVM_OK);
}

static ivm_status declare(enforced *it)
{
    return ivm_foreign_key_declare(it->sale, "product, shop", it->product, "id, shop", IVM_ENFORCED, NULL, &it->error);
}

static ivm_batch *batch_of(enforced *it)
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    return batch;
}

static ivm_status sell(enforced *it, int64_t id, ivm_value product, ivm_value shop)
{
    ivm_batch *batch = batch_of(it);
    ivm_batch_insert(batch, it->sale, ivm_int64(id), product, shop);
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

static ivm_status offer(enforced *it, int64_t id, int64_t shop)
{
    ivm_batch *batch = batch_of(it);
    ivm_batch_upsert(batch, it->product, ivm_string("a"), ivm_int64(shop), ivm_int64(id));
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

static ivm_status withdraw(enforced *it, int64_t id, int64_t shop)
{
    ivm_batch *batch = batch_of(it);
    ivm_batch_delete_key(batch, it->product, ivm_int64(shop), ivm_int64(id));
    return ivm_push_batch(it->engine, batch, NULL, &it->error);
}

static uint64_t rows_of(ivm_table *table)
{
    ivm_snapshot *snapshot = NULL;
    cr_assert_eq(ivm_read_table(table, &snapshot, NULL), IVM_OK);
    uint64_t rows = ivm_snapshot_rows_count(snapshot);
    ivm_snapshot_close(snapshot);
    return rows;
}

static void close_all(enforced *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK);
}

Test(engine_enforce, a_child_finds_its_parent_and_a_null_needs_none)
{
    enforced it;
    open_with(&it, NULL);
    cr_assert_eq(declare(&it), IVM_OK);
    cr_assert_eq(sell(&it, 1, ivm_int64(7), ivm_int64(2)), IVM_FK_VIOLATION);
    cr_assert(strstr(it.error.message, "sale") && strstr(it.error.message, "(2, 7)") && strstr(it.error.message, "product"), "%s",
              it.error.message);
    cr_assert_eq(rows_of(it.sale), 0);
    cr_assert_eq(offer(&it, 7, 2), IVM_OK);
    cr_assert_eq(sell(&it, 1, ivm_int64(2), ivm_int64(7)), IVM_FK_VIOLATION, "columns are paired as declared");
    cr_assert_eq(sell(&it, 1, ivm_int64(7), ivm_int64(2)), IVM_OK);
    cr_assert_eq(sell(&it, 2, ivm_null(), ivm_int64(9)), IVM_OK);
    cr_assert_eq(rows_of(it.sale), 2);
    close_all(&it);
}

Test(engine_enforce, a_parent_goes_only_where_no_child_holds_it)
{
    enforced it;
    open_with(&it, NULL);
    cr_assert_eq(declare(&it), IVM_OK);
    cr_assert_eq(offer(&it, 7, 2), IVM_OK);
    cr_assert_eq(offer(&it, 8, 2), IVM_OK);
    cr_assert_eq(sell(&it, 1, ivm_int64(7), ivm_int64(2)), IVM_OK);
    cr_assert_eq(withdraw(&it, 8, 2), IVM_OK);
    cr_assert_eq(withdraw(&it, 7, 2), IVM_FK_VIOLATION);
    cr_assert(strstr(it.error.message, "(2, 7)"), "%s", it.error.message);
    cr_assert_eq(rows_of(it.product), 1);
    cr_assert_eq(offer(&it, 7, 2), IVM_OK, "the row changes, the key stays");
    ivm_batch *batch = batch_of(&it);
    ivm_batch_delete_key(batch, it.product, ivm_int64(2), ivm_int64(7));
    ivm_batch_delete_key(batch, it.sale, ivm_int64(1));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "both in one batch, in any order");
    close_all(&it);
}

Test(engine_enforce, declared_over_rows_that_break_it_it_is_refused)
{
    enforced it;
    open_with(&it, NULL);
    cr_assert_eq(sell(&it, 1, ivm_int64(7), ivm_int64(2)), IVM_OK);
    cr_assert_eq(declare(&it), IVM_FK_VIOLATION);
    cr_assert_eq(sell(&it, 2, ivm_int64(7), ivm_int64(2)), IVM_OK, "no fact came to be");
    cr_assert_eq(offer(&it, 7, 2), IVM_OK);
    cr_assert_eq(declare(&it), IVM_OK);
    cr_assert_eq(sell(&it, 3, ivm_int64(9), ivm_int64(2)), IVM_FK_VIOLATION);
    close_all(&it);
}

Test(engine_enforce, a_refusal_names_both_tables_all_columns_and_the_key)
{
    static const ivm_column_definition parent[] = { { "n", IVM_INT64, true },
                                                    { "s", IVM_STRING, true },
                                                    { "m", IVM_DECIMAL(20, 2), true } };
    static const ivm_column_definition child[] = { { "c", IVM_DECIMAL(20, 2), false },
                                                   { "a", IVM_INT64, false },
                                                   { "b", IVM_STRING, false } };
    ivm_table_options parents = { .columns = parent, .columns_count = 3, .key = "n, s" };
    ivm_table_options children = { .columns = child, .columns_count = 3 };
    ivm_table *d, *f;
    enforced it;
    open_with(&it, NULL);
    cr_assert_eq(ivm_table_create(it.engine, "d", &parents, &d, &it.error), IVM_OK);
    cr_assert_eq(ivm_table_create(it.engine, "f", &children, &f, &it.error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(f, "b, a", d, "s, n", IVM_ENFORCED, NULL, &it.error), IVM_OK);
    ivm_batch *batch = batch_of(&it);
    ivm_batch_insert(batch, f, ivm_null(), ivm_int64(1), ivm_string("x"));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_FK_VIOLATION);
    cr_assert_str_eq(it.error.message, "table f: a row refers through (a, b) to key (1, \"x\"), which is not in d");
    batch = batch_of(&it);
    ivm_batch_insert(batch, f, ivm_null(), ivm_int64(1), ivm_string("x"));
    ivm_batch_insert(batch, f, ivm_null(), ivm_null(), ivm_string("x"));
    ivm_batch_insert(batch, f, ivm_null(), ivm_int64(1), ivm_null());
    ivm_batch_insert(batch, d, ivm_int64(1), ivm_string("x"), ivm_decimal(IVM_DECIMAL(20, 2), (ivm_int128){ 0, 0 }));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "the parent may come after its child: %s", it.error.message);
    batch = batch_of(&it);
    ivm_batch_delete_key(batch, d, ivm_int64(1), ivm_string("x"));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_FK_VIOLATION);
    cr_assert_str_eq(it.error.message, "table f: rows still refer through (a, b) to key (1, \"x\") of d, which goes");
    batch = batch_of(&it);
    ivm_batch_delete_key(batch, d, ivm_int64(1), ivm_string("x"));
    ivm_batch_insert(batch, d, ivm_int64(1), ivm_string("x"), ivm_decimal(IVM_DECIMAL(20, 2), (ivm_int128){ 5, 0 }));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "it goes and comes back: %s", it.error.message);
    close_all(&it);
}

Test(engine_enforce, rows_of_one_table_refer_to_each_other)
{
    static const ivm_column_definition node[] = { { "id", IVM_INT64, true }, { "up", IVM_INT64, false } };
    ivm_table_options nodes = { .columns = node, .columns_count = 2, .key = "id" };
    ivm_table *tree;
    enforced it;
    open_with(&it, NULL);
    cr_assert_eq(ivm_table_create(it.engine, "tree", &nodes, &tree, &it.error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(tree, "up", tree, "id", IVM_ENFORCED, NULL, &it.error), IVM_OK);
    ivm_batch *batch = batch_of(&it);
    ivm_batch_insert(batch, tree, ivm_int64(1), ivm_int64(2));
    ivm_batch_insert(batch, tree, ivm_int64(2), ivm_int64(1));
    ivm_batch_insert(batch, tree, ivm_int64(3), ivm_int64(3));
    ivm_batch_insert(batch, tree, ivm_int64(4), ivm_null());
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
    batch = batch_of(&it);
    ivm_batch_delete_key(batch, tree, ivm_int64(2));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_FK_VIOLATION);
    batch = batch_of(&it);
    ivm_batch_delete_key(batch, tree, ivm_int64(3)); /* held by itself alone */
    ivm_batch_delete_key(batch, tree, ivm_int64(2));
    ivm_batch_upsert(batch, tree, ivm_int64(1), ivm_int64(4));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_OK, "%s", it.error.message);
    batch = batch_of(&it);
    ivm_batch_upsert(batch, tree, ivm_int64(4), ivm_int64(2));
    cr_assert_eq(ivm_push_batch(it.engine, batch, NULL, &it.error), IVM_FK_VIOLATION);
    cr_assert_eq(rows_of(tree), 2);
    close_all(&it);
}

Test(engine_enforce, out_of_memory_at_every_call_refuses_and_changes_nothing)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        test_allocator memory;
        enforced it;
        test_allocator_init(&memory);
        ivm_allocator functions = test_allocator_functions(&memory);
        open_with(&it, &functions);
        cr_assert_eq(declare(&it), IVM_OK);
        cr_assert_eq(offer(&it, 7, 2), IVM_OK);
        cr_assert_eq(sell(&it, 1, ivm_int64(7), ivm_int64(2)), IVM_OK);
        ivm_batch *batch = batch_of(&it);
        ivm_batch_delete_key(batch, it.product, ivm_int64(2), ivm_int64(7));
        test_allocator_arm(&memory, n);
        ivm_status status = ivm_push_batch(it.engine, batch, NULL, &it.error);
        test_allocator_disarm(&memory);
        done = status == IVM_FK_VIOLATION;
        cr_assert(done || status == IVM_OUT_OF_MEMORY, "call %llu: %s", (unsigned long long)n, it.error.message);
        cr_assert_eq(rows_of(it.product), 1);
        cr_assert_eq(withdraw(&it, 7, 2), IVM_FK_VIOLATION);
        close_all(&it);
        cr_assert(test_allocator_is_clean(&memory));
    }
}
