/* The catalog: which names, tables and foreign keys may be, how they are found and dropped, and nothing left of a call that failed. */
#include "catalog.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "allocator.h"

static test_allocator allocator;
static ivm_engine *engine;
static ivm_error error;

static void open_engine(void)
{
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    test_allocator_init(&allocator);
    options.allocator = test_allocator_functions(&allocator);
    options.hash_seed = 3;
    cr_assert_eq(ivm_engine_open(&options, &engine, &error), IVM_OK, "%s", error.message);
}

static void close_engine(void)
{
    cr_assert_eq(ivm_engine_close(engine, &error), IVM_OK, "%s", error.message);
    cr_assert(test_allocator_is_clean(&allocator), "%ld blocks left", (long)allocator.blocks);
}

TestSuite(engine_catalog, .init = open_engine, .fini = close_engine);

static const ivm_column_definition four[] = {
    { "a", IVM_INT64, true }, { "b", IVM_STRING, false }, { "c", IVM_DECIMAL(10, 2), false }, { "d", IVM_INT64, false }
};

static ivm_table *make(const char *name, const char *key)
{
    ivm_table *table = NULL;
    ivm_table_options options = { .columns = four, .columns_count = 4, .key = key };
    cr_assert_eq(ivm_table_create(engine, name, &options, &table, &error), IVM_OK, "%s", error.message);
    return table;
}

/* The last call failed with this status and named this. */
static void failed(ivm_status given, ivm_status want, const char *part)
{
    cr_assert_eq(given, want, "%s, not %s: %s", ivm_status_name(given), ivm_status_name(want), error.message);
    cr_assert_eq(error.status, want);
    cr_assert_not_null(strstr(error.message, part), "\"%s\" is not in \"%s\"", part, error.message);
    cr_assert_null(strchr(error.message, '\n'));
}

/* ---- Lists of names ---------------------------------------------------------------------------------------------------------------- */

static void assert_names(const char *text, const char *const *want, uint32_t count)
{
    const char *name = NULL, *rest = text;
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(ivm__name_next(&rest, &name, &size), "name %u of \"%s\"", i, text);
        cr_assert(strlen(want[i]) == size && memcmp(want[i], name, size) == 0, "\"%.*s\" of \"%s\"", (int)size, name, text);
    }
    cr_assert_not(ivm__name_next(&rest, &name, &size), "\"%s\" has one more", text);
}

#define NAMES(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *)

Test(engine_catalog, lists_of_names_are_split_at_commas)
{
    assert_names("a", NAMES("a"));
    assert_names(" a ,\tb.c\n,d d ", NAMES("a", "b.c", "d d"));
    assert_names("a,,b,", NAMES("a", "", "b", ""));
    assert_names("", NAMES(""));
    assert_names("  ", NAMES(""));
    assert_names(" , ", NAMES("", ""));
}

/* ---- Tables -------------------------------------------------------------------------------------------------------------------------- */

Test(engine_catalog, a_table_tells_what_it_was_declared_as)
{
    char name[] = "orders", key[] = "d, a";
    ivm_table *table = NULL, *found = NULL;
    ivm_table_options options = { .version = 0, .columns = four, .columns_count = 4, .key = key, .append_only = true };
    cr_assert_eq(ivm_table_create(engine, name, &options, &table, &error), IVM_OK);
    memset(name, 'x', sizeof name - 1);
    memset(key, 'x', sizeof key - 1); /* all was copied */
    cr_assert_str_eq(ivm_table_name(table), "orders");
    cr_assert_eq(ivm_table_columns_count(table), 4u);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_str_eq(ivm_table_column_name(table, i), four[i].name);
        cr_assert_eq(ivm_table_column_type(table, i), four[i].type);
        cr_assert_eq(table->columns[i].nullable, i == 1 || i == 2, "key columns are never null");
    }
    cr_assert_null(ivm_table_column_name(table, 4));
    cr_assert_eq(ivm_table_column_type(table, 4), 0u);
    size_t columns[3] = { 9, 9, 9 };
    cr_assert_eq(ivm_table_key(table, NULL, 0), 2u);
    cr_assert_eq(ivm_table_key(table, columns, 1), 2u);
    cr_assert_eq(columns[1], 9u);
    cr_assert_eq(ivm_table_key(table, columns, 3), 2u);
    cr_assert(columns[0] == 3 && columns[1] == 0 && columns[2] == 9, "in the key's order");
    cr_assert(table->append_only);
    cr_assert_eq(ivm_table_find(engine, "orders", &found, &error), IVM_OK);
    cr_assert_eq(found, table);
    cr_assert_eq(ivm_table_key(make("bag", ""), columns, 3), 0u);
}

static void refuses(const char *name, const ivm_table_options *options, ivm_status want, const char *part)
{
    int64_t blocks = allocator.blocks;
    ivm_table *table = (ivm_table *)1;
    failed(ivm_table_create(engine, name, options, &table, &error), want, part);
    cr_assert_eq(table, (ivm_table *)1);
    cr_assert_eq(allocator.blocks, blocks, "nothing is left of it");
}

static void refuses_column(ivm_column_definition column, ivm_status want, const char *part)
{
    ivm_column_definition columns[] = { four[0], column };
    refuses("t", &(ivm_table_options){ .columns = columns, .columns_count = 2 }, want, part);
}

Test(engine_catalog, names_that_no_table_may_have)
{
    ivm_table_options options = { .columns = four, .columns_count = 4 };
    char longest[IVM_NAME_SIZE_MAX + 2];
    memset(longest, 'n', sizeof longest);
    longest[IVM_NAME_SIZE_MAX + 1] = 0;
    refuses(NULL, &options, IVM_INVALID_ARGUMENT, "name");
    refuses("", &options, IVM_INVALID_ARGUMENT, "name");
    refuses(longest, &options, IVM_INVALID_ARGUMENT, "256 bytes");
    longest[IVM_NAME_SIZE_MAX] = 0;
    make(longest, NULL);
    make("t", NULL);
    refuses("t", &options, IVM_ALREADY_EXISTS, "t");
    make("T", NULL); /* names are bytes */
}

Test(engine_catalog, columns_that_no_table_may_have)
{
    static ivm_column_definition many[IVM_TABLE_COLUMNS_MAX + 1];
    static char names[IVM_TABLE_COLUMNS_MAX + 1][8];
    char longest[IVM_NAME_SIZE_MAX + 2];
    memset(longest, 'n', sizeof longest);
    longest[IVM_NAME_SIZE_MAX + 1] = 0;
    refuses("t", NULL, IVM_INVALID_ARGUMENT, "");
    refuses("t", &(ivm_table_options){ .columns = NULL, .columns_count = 1 }, IVM_INVALID_ARGUMENT, "columns");
    refuses("t", &(ivm_table_options){ .columns = four, .columns_count = 0 }, IVM_INVALID_ARGUMENT, "columns");
    refuses("t", &(ivm_table_options){ .version = IVM_TABLE_OPTIONS_VERSION + 1, .columns = four, .columns_count = 4 },
            IVM_INVALID_ARGUMENT, "version");
    refuses_column((ivm_column_definition){ NULL, IVM_INT64, false }, IVM_INVALID_ARGUMENT, "name");
    refuses_column((ivm_column_definition){ "", IVM_INT64, false }, IVM_INVALID_ARGUMENT, "name");
    refuses_column((ivm_column_definition){ longest, IVM_INT64, false }, IVM_INVALID_ARGUMENT, "name");
    refuses_column((ivm_column_definition){ "a", IVM_STRING, false }, IVM_AMBIGUOUS_COLUMN, "a");
    refuses_column((ivm_column_definition){ "x", 0, false }, IVM_INVALID_ARGUMENT, "x");
    refuses_column((ivm_column_definition){ "x", 8, false }, IVM_INVALID_ARGUMENT, "x");
    refuses_column((ivm_column_definition){ "x", IVM_DECIMAL_KIND, false }, IVM_INVALID_ARGUMENT, "x");
    refuses_column((ivm_column_definition){ "x", IVM_DECIMAL(39, 2), false }, IVM_INVALID_ARGUMENT, "column x: decimal(39,2) is no type");
    refuses_column((ivm_column_definition){ "x", IVM_DECIMAL(5, 6), false }, IVM_INVALID_ARGUMENT, "decimal(5,6)");
    refuses_column((ivm_column_definition){ "x", IVM_DECIMAL(5, 2) | 1u << 24, false }, IVM_INVALID_ARGUMENT, "x: 16909575 is no type");
    refuses_column((ivm_column_definition){ "x", IVM_INT64 | 5u << 8, false }, IVM_INVALID_ARGUMENT, "x");
    for (uint32_t i = 0; i <= IVM_TABLE_COLUMNS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "c%u", i);
        many[i] = (ivm_column_definition){ names[i], IVM_BOOL, false };
    }
    refuses("t", &(ivm_table_options){ .columns = many, .columns_count = IVM_TABLE_COLUMNS_MAX + 1 }, IVM_INVALID_ARGUMENT, "1024");
    ivm_table *table = NULL;
    ivm_table_options options = { .columns = many, .columns_count = IVM_TABLE_COLUMNS_MAX, .key = "c1023, c0" };
    cr_assert_eq(ivm_table_create(engine, "t", &options, &table, &error), IVM_OK, "%s", error.message);
}

Test(engine_catalog, keys_that_no_table_may_have)
{
    ivm_table_options options = { .columns = four, .columns_count = 4, .key = "a, e" };
    refuses("t", &options, IVM_UNKNOWN_COLUMN, "e");
    options.key = "a, a";
    refuses("t", &options, IVM_INVALID_ARGUMENT, "twice");
    options.key = "a,";
    refuses("t", &options, IVM_UNKNOWN_COLUMN, "no column ");
    options.key = " ";
    refuses("t", &options, IVM_UNKNOWN_COLUMN, "no column ");
    options.key = "t.a";
    refuses("t", &options, IVM_UNKNOWN_COLUMN, "t.a");
}

Test(engine_catalog, arguments_are_wanted)
{
    ivm_table_options options = { .columns = four, .columns_count = 4 };
    ivm_table *table = NULL;
    ivm_view *view = NULL;
    failed(ivm_table_create(NULL, "t", &options, &table, &error), IVM_INVALID_ARGUMENT, "ivm_table_create: engine is NULL");
    failed(ivm_table_create(engine, "t", NULL, &table, &error), IVM_INVALID_ARGUMENT, "ivm_table_create: options is NULL");
    failed(ivm_table_create(engine, "t", &options, NULL, &error), IVM_INVALID_ARGUMENT, "ivm_table_create: table is NULL");
    failed(ivm_table_create(engine, "t", &(ivm_table_options){ .version = 7 }, &table, &error), IVM_INVALID_ARGUMENT,
           "ivm_table_create: options of version 7, at most 1 is known");
    failed(ivm_table_drop(NULL, &error), IVM_INVALID_ARGUMENT, "ivm_table_drop: table is NULL");
    failed(ivm_table_find(engine, NULL, &table, &error), IVM_INVALID_ARGUMENT, "ivm_table_find: name is NULL");
    failed(ivm_table_find(engine, "t", NULL, &error), IVM_INVALID_ARGUMENT, "ivm_table_find: table is NULL");
    failed(ivm_view_find(NULL, "v", &view, &error), IVM_INVALID_ARGUMENT, "engine");
    cr_assert_eq(ivm_table_find(engine, "t", &table, NULL), IVM_UNKNOWN_TABLE, "no error need be given");
}

Test(engine_catalog, what_is_not_there_is_not_found)
{
    ivm_table *table = (ivm_table *)1;
    ivm_view *view = (ivm_view *)1;
    make("t", NULL);
    failed(ivm_table_find(engine, "tt", &table, &error), IVM_UNKNOWN_TABLE, "tt");
    failed(ivm_table_find(engine, "", &table, &error), IVM_UNKNOWN_TABLE, "");
    failed(ivm_view_find(engine, "t", &view, &error), IVM_UNKNOWN_VIEW, "t");
    cr_assert(table == (ivm_table *)1 && view == (ivm_view *)1);
}

Test(engine_catalog, a_dropped_table_is_gone_and_its_name_free)
{
    ivm_table *first = make("t", "a"), *second = make("u", "a"), *third = make("w", NULL), *found = NULL;
    uint64_t id = second->id;
    cr_assert_eq(ivm_table_drop(second, &error), IVM_OK);
    cr_assert_eq(ivm_table_find(engine, "u", &found, &error), IVM_UNKNOWN_TABLE);
    cr_assert_eq(ivm_table_find(engine, "t", &found, &error), IVM_OK);
    cr_assert_eq(found, first);
    cr_assert_eq(ivm_table_find(engine, "w", &found, &error), IVM_OK);
    cr_assert_eq(found, third);
    cr_assert_gt(make("u", NULL)->id, id, "an id is never given twice");
    cr_assert_eq(ivm_table_drop(first, &error), IVM_OK);
    cr_assert_eq(ivm_table_drop(third, &error), IVM_OK);
}

Test(engine_catalog, a_table_that_is_read_is_not_dropped)
{
    ivm_table *table = make("t", "a");
    ivm_view view = { .engine = engine, .name = (char *)"totals", .tables = &table, .tables_count = 1 };
    table->readers_count = 1;
    ivm__view_enlist(&view);
    failed(ivm_table_drop(table, &error), IVM_IN_USE, "totals");
    cr_assert_eq(ivm_table_find(engine, "t", &table, &error), IVM_OK);
    ivm_table_options options = { .columns = four, .columns_count = 4 };
    refuses("totals", &options, IVM_ALREADY_EXISTS, "view totals");
    ivm__view_delist(&view);
    table->readers_count = 0;
}

/* Names are found and lists in order whatever comes and goes; once all is gone nothing is kept of them. */
Test(engine_catalog, many_tables_come_and_go)
{
    enum { MANY = 300 };
    ivm_table *tables[MANY] = { NULL };
    uint64_t random = 7;
    int64_t blocks = allocator.blocks;
    char name[16];
    for (int round = 0; round < 4000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t at = (uint32_t)(random >> 33) % MANY;
        snprintf(name, sizeof name, "t%u", at);
        if (tables[at]) {
            cr_assert_eq(ivm_table_drop(tables[at], &error), IVM_OK);
            tables[at] = NULL;
        } else {
            tables[at] = make(name, "a");
        }
        ivm_table *found = NULL;
        cr_assert_eq(ivm_table_find(engine, name, &found, &error), tables[at] ? IVM_OK : IVM_UNKNOWN_TABLE);
        cr_assert_eq(found, tables[at]);
    }
    uint64_t id = 0;
    uint32_t count = 0;
    for (ivm_table *table = engine->tables; table; table = table->next, count++) {
        cr_assert_gt(table->id, id);
        id = table->id;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        count -= tables[i] != NULL;
        cr_assert(!tables[i] || ivm_table_drop(tables[i], &error) == IVM_OK);
    }
    cr_assert(count == 0 && !engine->tables && allocator.blocks == blocks);
}

Test(engine_catalog, memory_failing_for_names_leaves_them)
{
    ivm_table *table = NULL;
    ivm_table_options options = { .columns = four, .columns_count = 4 };
    char name[16];
    for (uint32_t i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "t%u", i);
        test_allocator_arm(&allocator, 1);
        cr_assert_eq(ivm_table_create(engine, name, &options, &table, &error), IVM_OUT_OF_MEMORY);
        cr_assert(test_allocator_disarm(&allocator));
        cr_assert_eq(ivm_table_find(engine, name, &table, &error), IVM_UNKNOWN_TABLE);
        (void)make(name, NULL);
        snprintf(name, sizeof name, "t%u", i / 2);
        cr_assert_eq(ivm_table_find(engine, name, &table, &error), IVM_OK);
    }
}

/* ---- Foreign keys -------------------------------------------------------------------------------------------------------------------- */

static ivm_table *child, *parent;

static void refuses_fact(const char *columns, const char *parent_columns, ivm_status want, const char *part)
{
    int64_t blocks = allocator.blocks;
    uint64_t version = engine->facts_version;
    ivm_fact *fact = (ivm_fact *)1;
    failed(ivm_foreign_key_declare(child, columns, parent, parent_columns, IVM_RELY, &fact, &error), want, part);
    cr_assert_eq(fact, (ivm_fact *)1);
    cr_assert_eq(allocator.blocks, blocks);
    cr_assert_eq(engine->facts_version, version);
}

Test(engine_catalog, a_fact_pairs_columns_with_the_whole_key)
{
    ivm_fact *fact = NULL;
    child = make("c", NULL);
    parent = make("p", "a, c");
    cr_assert_eq(ivm_foreign_key_declare(child, " c , d ", parent, "c,a", IVM_RELY, &fact, &error), IVM_OK, "%s", error.message);
    cr_assert(fact->child == child && fact->parent == parent && fact->columns_count == 2 && fact->trust == IVM_RELY);
    cr_assert(fact->child_columns[0] == 2 && fact->child_columns[1] == 3 && fact->parent_columns[0] == 2 && fact->parent_columns[1] == 0);
    refuses_fact("d", "a", IVM_INVALID_ARGUMENT, "a is not the key of p (a, c)");
    refuses_fact("d, d, c", "a, a, c", IVM_INVALID_ARGUMENT, "a, a, c is not the key of p (a, c)");
    refuses_fact("d, d", "a, a", IVM_INVALID_ARGUMENT, "a, a is not the key of p (a, c)");
    refuses_fact("d", "c", IVM_INVALID_ARGUMENT, "c is not the key of p (a, c)"); /* whatever its type */
    refuses_fact("d, c", "a", IVM_INVALID_ARGUMENT, "pairs");
    refuses_fact("d", "a, c", IVM_INVALID_ARGUMENT, "pairs");
    refuses_fact("", "", IVM_INVALID_ARGUMENT, "pairs");
    refuses_fact(NULL, NULL, IVM_INVALID_ARGUMENT, "pairs");
    refuses_fact("c, d", "a, c", IVM_TYPE_MISMATCH, "c.c");
    refuses_fact("d, e", "a, c", IVM_UNKNOWN_COLUMN, "e");
    refuses_fact("d, c", "a, x", IVM_UNKNOWN_COLUMN, "x");
    refuses_fact("a,a,a,a,a", "a,a,a,a,a", IVM_INVALID_ARGUMENT, "more columns");
    parent = make("bag", NULL);
    refuses_fact("a", "a", IVM_INVALID_ARGUMENT, "a is not the key of bag, which has none");
}

Test(engine_catalog, facts_of_no_trust_or_table_are_refused)
{
    ivm_fact *fact = NULL;
    child = make("c", NULL);
    parent = make("p", "a");
    int64_t blocks = allocator.blocks;
    failed(ivm_foreign_key_declare(child, "e", parent, "a", IVM_TRACKED, &fact, &error), IVM_UNKNOWN_COLUMN, "e");
    failed(ivm_foreign_key_declare(child, "d", parent, "a", (ivm_trust)3, &fact, &error), IVM_INVALID_ARGUMENT, "trust");
    failed(ivm_foreign_key_declare(NULL, "d", parent, "a", IVM_RELY, &fact, &error), IVM_INVALID_ARGUMENT,
           "ivm_foreign_key_declare: child is NULL");
    failed(ivm_foreign_key_declare(child, "d", NULL, "a", IVM_RELY, &fact, &error), IVM_INVALID_ARGUMENT,
           "ivm_foreign_key_declare: parent is NULL");
    failed(ivm_foreign_key_remove(NULL, &error), IVM_INVALID_ARGUMENT, "foreign_key_remove");
    cr_assert(!fact && !engine->facts && allocator.blocks == blocks);
}

static void declares(const char *columns, const char *parent_columns, ivm_trust trust, const char *part)
{
    int64_t blocks = allocator.blocks;
    ivm_fact *fact = NULL;
    ivm_status status = ivm_foreign_key_declare(child, columns, parent, parent_columns, trust, &fact, &error);
    if (part) {
        failed(status, IVM_ALREADY_EXISTS, part);
        cr_assert(!fact && allocator.blocks == blocks);
    } else {
        cr_assert_eq(status, IVM_OK, "%s", error.message);
    }
}

Test(engine_catalog, a_fact_is_trusted_in_one_way)
{
    child = make("c", NULL);
    parent = make("p", "a, c");
    declares("c, d", "c, a", IVM_TRACKED, NULL);
    declares("c, d", "c, a", IVM_RELY, "the foreign key of c (d, c) to p is there as tracked already, and cannot be rely too");
    declares("d, c", "a, c", IVM_ENFORCED, "is there as tracked already, and cannot be enforced too");
    declares("d, c", "a, c", IVM_TRACKED, NULL);
    declares("a, c", "a, c", IVM_RELY, NULL);
    parent = make("q", "a, c");
    declares("d, c", "a, c", IVM_ENFORCED, NULL);
    cr_assert_eq(ivm_foreign_key_remove(engine->facts, &error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_remove(engine->facts, &error), IVM_OK);
    parent = engine->tables->next;
    declares("c, d", "c, a", IVM_RELY, NULL);
}

/* Functions without a status. */
Test(engine_catalog, of_nothing_nothing_is_told)
{
    size_t column = 9;
    ivm_rows rows = { .rows_count = 9 }, none = { .rows_count = 0 };
    ivm_stats stats = { .batches = 5 };
    cr_assert(!ivm_table_name(NULL) && !ivm_table_column_name(NULL, 0) && ivm_table_column_type(NULL, 0) == 0);
    cr_assert(ivm_table_columns_count(NULL) == 0 && ivm_table_key(NULL, &column, 1) == 0 && column == 9);
    cr_assert(!ivm_fact_child(NULL) && !ivm_fact_parent(NULL) && ivm_fact_columns(NULL, &column, &column, 1) == 0);
    cr_assert(!ivm_snapshot_next(NULL, &rows) && ivm_snapshot_status(NULL) == IVM_INVALID_ARGUMENT && rows.rows_count == 9);
    cr_assert(ivm_snapshot_rows_count(NULL) == 0 && ivm_snapshot_columns_count(NULL) == 0 && ivm_snapshot_column_type(NULL, 0) == 0);
    cr_assert_eq(ivm_snapshot_chunks_count(NULL), 0u);
    cr_assert(ivm_rows_value(NULL, IVM_INT64, 0, 0).is_null && ivm_rows_value(&none, IVM_INT64, 0, 0).is_null);
    cr_assert_eq(ivm_engine_planner(NULL).fk_pruning, IVM_FK_PRUNING_ROW);
    ivm_engine_stats(NULL, &stats);
    ivm_engine_stats(engine, NULL);
    cr_assert_eq(stats.batches, 5u);
}

Test(engine_catalog, what_there_is_is_listed_in_the_order_of_its_making)
{
    cr_assert(!ivm_table_next(engine, NULL) && !ivm_view_next(engine, NULL) && !ivm_fact_next(engine, NULL));
    cr_assert(!ivm_table_next(NULL, NULL) && !ivm_view_next(NULL, NULL) && !ivm_fact_next(NULL, NULL));
    ivm_table *first = make("z", "a"), *second = make("y", NULL), *third = make("x", "a");
    cr_assert(ivm_table_next(engine, NULL) == first && ivm_table_next(engine, first) == second);
    cr_assert(ivm_table_next(engine, second) == third && !ivm_table_next(engine, third));
    cr_assert_eq(ivm_table_drop(second, &error), IVM_OK);
    cr_assert(ivm_table_next(engine, first) == third);
}

Test(engine_catalog, facts_of_two_engines_do_not_mix)
{
    ivm_engine *other = NULL;
    ivm_table *foreign = NULL;
    ivm_table_options options = { .columns = four, .columns_count = 4, .key = "a" };
    cr_assert_eq(ivm_engine_open(NULL, &other, &error), IVM_OK);
    cr_assert_eq(ivm_table_create(other, "p", &options, &foreign, &error), IVM_OK);
    failed(ivm_foreign_key_declare(make("c", NULL), "d", foreign, "a", IVM_RELY, NULL, &error), IVM_INVALID_ARGUMENT, "one engine");
    cr_assert_eq(ivm_engine_close(other, &error), IVM_OK);
}

static uint32_t facts_count(void)
{
    uint32_t count = 0;
    for (const ivm_fact *fact = engine->facts; fact; fact = fact->next) {
        count++;
    }
    return count;
}

Test(engine_catalog, facts_go_with_either_table)
{
    ivm_fact *fact = NULL;
    ivm_table *a = make("a", "a"), *b = make("b", "a"), *c = make("c", "a");
    cr_assert_eq(ivm_foreign_key_declare(a, "d", b, "a", IVM_RELY, NULL, &error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(b, "d", c, "a", IVM_RELY, &fact, &error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(c, "d", c, "a", IVM_RELY, NULL, &error), IVM_OK);
    cr_assert_eq(ivm_foreign_key_declare(a, "d", c, "a", IVM_RELY, NULL, &error), IVM_OK);
    uint64_t version = engine->facts_version;
    cr_assert_eq(ivm_foreign_key_remove(fact, &error), IVM_OK);
    cr_assert_gt(engine->facts_version, version);
    cr_assert_eq(facts_count(), 3u);
    version = engine->facts_version;
    cr_assert_eq(ivm_table_drop(c, &error), IVM_OK);
    cr_assert_eq(facts_count(), 1u);
    cr_assert_gt(engine->facts_version, version);
    cr_assert_eq(ivm_table_drop(a, &error), IVM_OK);
    cr_assert_eq(facts_count(), 0u);
    cr_assert_eq(ivm_table_drop(b, &error), IVM_OK);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_catalog, out_of_memory_making_a_table_leaves_none)
{
    ivm_table_options options = { .columns = four, .columns_count = 4, .key = "a, d" };
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        ivm_table *table = NULL;
        int64_t blocks = allocator.blocks;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm_table_create(engine, "t", &options, &table, &error);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(table != NULL, done);
        cr_assert(done || allocator.blocks == blocks, "call %lu", (unsigned long)n);
    }
    cr_assert_gt(n, 10u);
}

Test(engine_catalog, out_of_memory_declaring_a_fact_leaves_none)
{
    uint64_t n = 1;
    child = make("c", NULL);
    parent = make("p", "a");
    for (bool done = false; !done; n++) {
        int64_t blocks = allocator.blocks;
        test_allocator_arm(&allocator, n);
        ivm_status status = ivm_foreign_key_declare(child, "d", parent, "a", IVM_RELY, NULL, &error);
        done = !test_allocator_disarm(&allocator);
        cr_assert_eq(status, done ? IVM_OK : IVM_OUT_OF_MEMORY);
        cr_assert_eq(facts_count(), done ? 1u : 0u);
        cr_assert(done || allocator.blocks == blocks);
    }
    cr_assert_gt(n, 3u);
}
