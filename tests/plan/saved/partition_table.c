/* Tables with a partition column: what may be one, what values it takes, and how it goes along when columns are renamed, come and go. */
#include "checkpoint_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const ivm_table_options partitioned = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = "part" };

static void assert_says(const fixture *it, const char *part)
{
    cr_assert_not_null(strstr(it->error.message, part), "\"%s\" is not in \"%s\"", part, it->error.message);
}

static ivm_status create(fixture *it, const char *column, ivm_type type, uint32_t version, ivm_table **table)
{
    ivm_column_definition columns[] = { { "n", IVM_INT64, false }, { column, type, false } };
    ivm_table_options options = { .version = version, .columns = columns, .columns_count = 2, .partition = "part" };
    return ivm_table_create(it->engine, "t", &options, table, &it->error);
}

Test(plan_partition_table, is_a_column_of_int64)
{
    fixture it;
    ivm_table *table = NULL;
    fixture_open(&it);
    cr_expect_eq(create(&it, "other", IVM_INT64, IVM_TABLE_OPTIONS_VERSION, &table), IVM_UNKNOWN_COLUMN);
    assert_says(&it, "part");
    cr_expect_eq(create(&it, "part", IVM_STRING, IVM_TABLE_OPTIONS_VERSION, &table), IVM_TYPE_MISMATCH);
    assert_says(&it, "column part is string");
    cr_expect_eq(create(&it, "part", IVM_INT64, IVM_TABLE_OPTIONS_VERSION + 1, &table), IVM_INVALID_ARGUMENT);
    cr_assert_eq(create(&it, "part", IVM_INT64, 0, &table), IVM_OK, "%s", it.error.message);
    cr_expect_eq(fixture_push(&it, table, IVM_INSERT, "1,null"), IVM_NULL_VIOLATION, "options of version 0 count whole");
    fixture_close(&it);
}

/* Batches that are refused leave nothing, and name column, value and row. */
Test(plan_partition_table, takes_numbers_of_partitions_alone)
{
    fixture it;
    fixture_open(&it);
    ivm_table *bag = fixture_table_like(&it, "bag", "n int64; part int64", &partitioned);
    ivm_view *view = fixture_make(&it, "v", scan_of("bag", NULL));
    cr_assert_eq(fixture_push(&it, bag, IVM_INSERT, "1,0 2,65535"), IVM_OK, "%s", it.error.message);
    cr_expect_eq(fixture_push(&it, bag, IVM_INSERT, "1,0 2,65536"), IVM_OVERFLOW);
    assert_says(&it, "table bag, row 1, column part: 65536 is no partition");
    cr_expect_eq(fixture_push(&it, bag, IVM_INSERT, "1,-1 2,3"), IVM_OVERFLOW);
    assert_says(&it, "row 0, column part: -1 is no partition");
    cr_expect_eq(fixture_push(&it, bag, IVM_INSERT, "1,null 1,-1"), IVM_NULL_VIOLATION);
    cr_expect_eq(fixture_push(&it, bag, IVM_DELETE, "1,70000"), IVM_OVERFLOW);
    cr_expect_str_eq(fixture_view(&it, view), "1*1,0 1*2,65535");
    cr_assert_eq(fixture_push(&it, bag, IVM_DELETE, "1,0"), IVM_OK, "%s", it.error.message);

    ivm_table_options keyed = partitioned;
    keyed.key = "part, n";
    ivm_table *table = fixture_table_like(&it, "t", "part int64; n int64; x float64", &keyed);
    cr_assert_eq(fixture_push(&it, table, IVM_UPSERT, "5,1,0.5"), IVM_OK, "%s", it.error.message);
    cr_expect_eq(fixture_push(&it, table, IVM_UPSERT, "5,1,0.5 99999,1,0.5"), IVM_OVERFLOW);
    cr_expect_eq(fixture_push(&it, table, IVM_DELETE_KEY, "99999,1"), IVM_ROW_NOT_FOUND); /* as any key that is not there */
    fixture_close(&it);
}

Test(plan_partition_table, goes_along_with_its_column)
{
    fixture it, other;
    tape saved = { 0 };
    fixture_open(&it);
    ivm_table *t = fixture_table_like(&it, "t", "n int64; part int64; m int64", &partitioned);
    cr_expect_eq(ivm_table_column_drop(t, "part", &it.error), IVM_IN_USE);
    assert_says(&it, "table t: column part is the partition");
    cr_assert_eq(ivm_table_column_rename(t, "part", "shard", &it.error), IVM_OK, "%s", it.error.message);
    cr_assert_eq(ivm_table_column_drop(t, "n", &it.error), IVM_OK, "%s", it.error.message);
    cr_expect_eq(ivm_table_column_drop(t, "shard", &it.error), IVM_IN_USE);
    cr_assert_eq(ivm_table_column_add(t, &(ivm_column_definition){ "more", IVM_INT64, false }, &it.error), IVM_OK);
    cr_expect_eq(fixture_push(&it, t, IVM_INSERT, "70000,1,2"), IVM_OVERFLOW);
    cr_assert_eq(fixture_push(&it, t, IVM_INSERT, "5,70000,70000"), IVM_OK, "%s", it.error.message);
    case_save(&it, &saved);
    fixture_open(&other);
    cr_assert_eq(case_restore(&other, &saved), IVM_OK, "%s", other.error.message);
    t = fixture_table_find(&other, "t");
    cr_expect_eq(fixture_push(&other, t, IVM_INSERT, "70000,1,2"), IVM_OVERFLOW);
    assert_says(&other, "column shard");
    case_assert_saved_as(&other, &saved, "restored");
    tape_free(&saved);
    fixture_close(&it);
    fixture_close(&other);
}

/* It is part of what a program is. */
Test(plan_partition_table, another_partition_is_another_catalog)
{
    uint64_t prints[3];
    static const char *const names[] = { NULL, "a", "b" };
    for (size_t i = 0; i < 3; i++) {
        fixture it;
        fixture_open(&it);
        ivm_table_options options = { .version = IVM_TABLE_OPTIONS_VERSION, .partition = names[i] };
        fixture_table_like(&it, "t", "a int64 not null; b int64 not null", &options);
        cr_assert_eq(ivm_engine_fingerprint(it.engine, &prints[i], &it.error), IVM_OK);
        fixture_close(&it);
    }
    cr_expect_neq(prints[0], prints[1]);
    cr_expect_neq(prints[0], prints[2]);
    cr_expect_neq(prints[1], prints[2]);
}
