/* Tests of engine/sums/sorted.c: rows of every type under random orders against a plain list kept in order by comparisons of its own, values at the ends
 * of their ranges and texts that begin alike among them. */
#include "sorted.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "allocator.h"
#include "random.h"

/* ---- Rows ----------------------------------------------------------------------------------------------------------------------------- */

enum { INT, FLOAT, TEXT, DECIMAL, BOOL, DATE, SERIAL, COLUMNS };
static const ivm_type types[COLUMNS] = { IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DECIMAL(38, 2), IVM_BOOL, IVM_DATE, IVM_INT64 };

#define TOP ((((__int128)1 << 100) - 1))
static const int64_t ints[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, 7, INT64_MAX - 1, INT64_MAX };
static const double floats[] = { -INFINITY, -DBL_MAX, -1, -5e-324, 0, 5e-324, DBL_MAX, INFINITY, NAN };
static const __int128 decimals[] = { -TOP, -((__int128)1 << 64), -((__int128)1 << 64) + 1, -1, 0, 1, (__int128)1 << 64, TOP };
static const struct {
    const char *bytes;
    size_t size;
} texts[] = { { "", 0 },
              { "\0", 1 },
              { "a", 1 },
              { "a\0", 2 },
              { "sixteen bytes ok", 16 },
              { "sixteen bytes ok\0", 17 },
              { "sixteen bytes ok, and more", 26 },
              { "sixteen bytes ok, and most", 26 },
              { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16 },
              { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 17 } };
#define COUNT(array) (sizeof(array) / sizeof *(array))
static const uint32_t values_count[COLUMNS] = { COUNT(ints), COUNT(floats), COUNT(texts), COUNT(decimals), 2, 5, 1 };

#define ROWS_MAX 30000u
#define NO_VALUE UINT32_MAX

/* By row id: which value of each column's ascending ones the row has, so that values compare as their numbers do; texts stand in order too. */
static uint32_t value_of[ROWS_MAX][COLUMNS];

static const ivm__text *text_of[COUNT(texts)]; /* by value; where it lies is its order in a key of groups */

typedef struct fixture {
    test_allocator allocator;
    ivm__memory memory;
    ivm__texts texts;
    ivm__arena arena;
    ivm__store store;
    ivm__sorted_key keys[COLUMNS];
    ivm__sorted sorted;
} fixture;

static void fixture_open(fixture *with, const ivm__sorted_key *keys, uint32_t keys_count, uint32_t groups_count)
{
    test_allocator_init(&with->allocator);
    ivm_allocator functions = test_allocator_functions(&with->allocator);
    ivm__layout *layout;
    ivm__memory_init(&with->memory, &functions);
    ivm__texts_init(&with->texts, &with->memory, 1);
    ivm__arena_init(&with->arena, &with->memory);
    cr_assert_eq(ivm__layout_create(&with->memory, types, NULL, COLUMNS, true, &layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&with->store, &with->memory, &with->texts, 1, layout), IVM_OK);
    ivm__layout_release(layout);
    memcpy(with->keys, keys, keys_count * sizeof *keys);
    ivm__sorted_init(&with->sorted, &with->store, with->keys, keys_count, groups_count);
}

static void fixture_close(fixture *with)
{
    ivm__sorted_deinit(&with->sorted);
    ivm__store_deinit(&with->store);
    ivm__arena_deinit(&with->arena);
    ivm__texts_deinit(&with->texts);
    cr_assert(test_allocator_is_clean(&with->allocator));
}

static ivm__wide cell_of(fixture *with, uint32_t column, uint32_t value, ivm__row_id row)
{
    const ivm__text *text;
    switch (column) {
    case INT:
        return (uint64_t)ints[value];
    case FLOAT:
        return ivm__float_word(floats[value]);
    case TEXT:
        cr_assert_eq(ivm__texts_intern(&with->texts, texts[value].bytes, texts[value].size, &text), IVM_OK);
        text_of[value] = text;
        return (ivm__wide)(uintptr_t)text;
    case DECIMAL:
        return decimals[value];
    case BOOL:
        return value;
    case DATE:
        return (uint64_t)((int64_t)value - 2);
    default:
        return row;
    }
}

/* A new row of these values; NO_VALUE is a null. */
static ivm__row_id row_add(fixture *with, const uint32_t *values)
{
    ivm__chunk *chunk = ivm__chunk_make(&with->arena, types, COLUMNS);
    ivm__row_id row = with->store.rows_end;
    cr_assert_lt(row, ROWS_MAX);
    chunk->rows_count = 1;
    for (uint32_t c = 0; c < COLUMNS; c++) {
        cr_assert(ivm__vector_make(&with->arena, &chunk->columns[c], types[c], 1, true));
        chunk->columns[c].nulls[0] = values[c] == NO_VALUE;
        ivm__wide cell = values[c] == NO_VALUE ? 0 : cell_of(with, c, values[c], row);
        memcpy(chunk->columns[c].cells, &cell, ivm__type_words(types[c]) * sizeof(uint64_t));
    }
    cr_assert_eq(ivm__store_put_chunk(&with->store, chunk, NULL), IVM_OK);
    ivm__arena_reset(&with->arena);
    memcpy(value_of[row], values, sizeof value_of[row]);
    value_of[row][SERIAL] = row;
    return row;
}

static ivm__row_id row_draw(fixture *with, uint64_t *state)
{
    uint32_t values[COLUMNS];
    for (uint32_t c = 0; c < COLUMNS; c++) {
        bool null = c != SERIAL && random_next(state) % 6 == 0;
        values[c] = null ? NO_VALUE : (uint32_t)(random_next(state) % values_count[c]);
    }
    return row_add(with, values);
}

/* ---- The list -------------------------------------------------------------------------------------------------------------------------- */

static int list_compare(const fixture *with, uint32_t keys_count, ivm__row_id a, ivm__row_id b)
{
    for (uint32_t k = 0; k < keys_count; k++) {
        const ivm__sorted_key *key = &with->keys[k];
        uint32_t x = value_of[a][key->column], y = value_of[b][key->column];
        if (x == y) {
            continue;
        }
        if (x == NO_VALUE || y == NO_VALUE) {
            return (x == NO_VALUE) == key->nulls_first ? -1 : 1;
        }
        bool by_place = key->column == TEXT && k < with->sorted.groups_count;
        bool less = by_place ? (uintptr_t)text_of[x] < (uintptr_t)text_of[y] : x < y;
        return less != key->descending ? -1 : 1;
    }
    return 0;
}

typedef struct list {
    ivm__row_id rows[ROWS_MAX];
    uint32_t count;
} list;

/* How many rows of the list are before this one by the first keys. */
static uint32_t list_rank(const list *in, const fixture *with, uint32_t keys_count, ivm__row_id row)
{
    uint32_t rank = 0;
    while (rank < in->count && list_compare(with, keys_count, in->rows[rank], row) < 0) {
        rank++;
    }
    return rank;
}

static void list_insert(list *to, const fixture *with, ivm__row_id row)
{
    uint32_t at = list_rank(to, with, with->sorted.keys_count, row);
    memmove(to->rows + at + 1, to->rows + at, (to->count - at) * sizeof *to->rows);
    to->rows[at] = row;
    to->count++;
}

static void list_remove(list *from, uint32_t at)
{
    from->count--;
    memmove(from->rows + at, from->rows + at + 1, (from->count - at) * sizeof *from->rows);
}

/* The tree's rows from the first of the row's group on are the list's, and those of the group are told from the others. */
static void agree(const fixture *with, const list *model, ivm__row_id row, uint64_t seed)
{
    uint32_t groups_count = with->sorted.groups_count, at = list_rank(model, with, groups_count, row);
    bool there = at < model->count && list_compare(with, groups_count, model->rows[at], row) == 0;
    ivm__ordered_key entry = ivm__sorted_entry(&with->sorted, row);
    ivm__ordered_path path;
    cr_assert_eq(ivm__sorted_find_group(&with->sorted, entry, &path), there, "seed %lu", (unsigned long)seed);
    for (bool more = there; more; at++) {
        cr_assert_lt(at, model->count);
        ivm__ordered_key read = ivm__sorted_at(&path);
        cr_assert_eq(read.group, model->rows[at], "seed %lu, place %u", (unsigned long)seed, at);
        cr_assert_eq(ivm__sorted_same_group(&with->sorted, read, entry), list_compare(with, groups_count, read.group, row) == 0,
                     "seed %lu, place %u", (unsigned long)seed, at);
        more = ivm__sorted_next(&with->sorted, &path);
        cr_assert_eq(more, at + 1 < model->count);
    }
}

static void valid(const fixture *with, uint64_t seed)
{
    const char *reason = ivm__sorted_validate(&with->sorted);
    cr_assert_null(reason, "seed %lu: %s", (unsigned long)seed, reason);
}

/* Some columns in some order, and the serial. */
static uint32_t keys_draw(ivm__sorted_key *keys, uint64_t *state)
{
    uint32_t count = 0, wanted = (uint32_t)(random_next(state) % COLUMNS);
    while (count < wanted) {
        uint32_t column = (uint32_t)(random_next(state) % SERIAL), k = 0;
        while (k < count && keys[k].column != column) {
            k++;
        }
        if (k == count) {
            keys[count++] = (ivm__sorted_key){ column, random_next(state) % 2, random_next(state) % 2 };
        }
    }
    keys[count] = (ivm__sorted_key){ SERIAL, random_next(state) % 2, false };
    return count + 1;
}

static list model;

static void orders_run(uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull;
    ivm__sorted_key keys[COLUMNS];
    uint32_t keys_count = keys_draw(keys, &state);
    fixture with;
    fixture_open(&with, keys, keys_count, (uint32_t)(random_next(&state) % keys_count));
    model.count = 0;
    for (uint32_t n = 0; n < 400; n++) {
        ivm__row_id row = row_draw(&with, &state);
        bool growing = n % 200 < 120;
        if (random_next(&state) % 8 < (growing ? 7 : 2)) {
            cr_assert_eq(ivm__sorted_insert(&with.sorted, ivm__sorted_entry(&with.sorted, row)), IVM_OK);
            list_insert(&model, &with, row);
        } else if (model.count) {
            uint32_t at = (uint32_t)(random_next(&state) % model.count);
            ivm__sorted_remove(&with.sorted, model.rows[at]);
            list_remove(&model, at);
        }
        valid(&with, seed);
        agree(&with, &model, row, seed);
    }
    cr_assert_eq(with.sorted.tree.entries_count, model.count);
    fixture_close(&with);
}

Test(engine_sorted, random_orders_equal_a_list, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        orders_run(seed);
    }
}

Test(engine_sorted, each_column_alone_orders_rows_in_both_directions)
{
    for (uint32_t order = 0; order < 8 * SERIAL; order++) {
        ivm__sorted_key keys[] = { { order / 8, order & 1, order & 2 }, { .column = SERIAL } };
        uint32_t values[COLUMNS] = { 0 }, column = order / 8, groups_count = order / 4 % 2;
        fixture with;
        fixture_open(&with, keys, 2, groups_count);
        model.count = 0;
        for (uint32_t n = 0; n < 3 * (values_count[column] + 1); n++) {
            uint32_t value = n * 7 % (values_count[column] + 1);
            values[column] = value ? value - 1 : NO_VALUE;
            ivm__row_id row = row_add(&with, values);
            cr_assert_eq(ivm__sorted_insert(&with.sorted, ivm__sorted_entry(&with.sorted, row)), IVM_OK);
            list_insert(&model, &with, row);
            valid(&with, order);
        }
        for (uint32_t i = 0; i < model.count; i++) {
            agree(&with, &model, model.rows[i], order);
        }
        fixture_close(&with);
    }
}

/* ---- Sorting ---------------------------------------------------------------------------------------------------------------------------- */

Test(engine_sorted, entries_are_put_in_the_order_of_the_tree)
{
    static ivm__ordered_key entries[600], spare[600];
    uint64_t state = 77;
    for (uint32_t round = 0; round < 40; round++) {
        ivm__sorted_key keys[COLUMNS];
        uint32_t keys_count = keys_draw(keys, &state), count = round < 10 ? round : (uint32_t)(random_next(&state) % 600);
        fixture with;
        fixture_open(&with, keys, keys_count, 0);
        for (uint32_t i = 0; i < count; i++) {
            entries[i] = ivm__sorted_entry(&with.sorted, row_draw(&with, &state));
        }
        cr_assert_eq(ivm__sorted_sort(&with.sorted, entries, spare, count, NULL), IVM_OK);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            sum += entries[i].group;
            cr_assert(i == 0 || list_compare(&with, keys_count, entries[i - 1].group, entries[i].group) < 0, "round %u", round);
            cr_assert(i == 0 || ivm__sorted_compare(&with.sorted, entries[i], entries[i - 1]) > 0, "round %u", round);
        }
        cr_assert_eq(sum, (uint64_t)count * (count ? count - 1 : 0) / 2, "each once");
        fixture_close(&with);
    }
}

/* ---- Large trees ------------------------------------------------------------------------------------------------------------------------ */

Test(engine_sorted, large_trees_come_and_go)
{
    static const ivm__sorted_key keys[] = { { .column = TEXT }, { INT, true, true }, { .column = SERIAL } };
    uint64_t state = 5;
    fixture with;
    fixture_open(&with, keys, 3, 2);
    for (uint32_t n = 0; n < ROWS_MAX; n++) {
        ivm__row_id row = row_draw(&with, &state);
        cr_assert_eq(ivm__sorted_insert(&with.sorted, ivm__sorted_entry(&with.sorted, row)), IVM_OK);
    }
    valid(&with, 0);
    cr_assert_geq(with.sorted.tree.height, 3);
    cr_assert_leq(ivm__sorted_bytes(&with.sorted), ROWS_MAX * 42, "%lu", (unsigned long)ivm__sorted_bytes(&with.sorted));
    for (uint32_t n = 0; n < ROWS_MAX; n++) {
        uint64_t calls_before = with.allocator.calls;
        ivm__sorted_remove(&with.sorted, (ivm__row_id)((uint64_t)n * 7919 % ROWS_MAX));
        cr_assert_eq(with.allocator.calls, calls_before);
        if (n % 1000 == 0) {
            valid(&with, n);
        }
    }
    cr_assert_null(with.sorted.tree.root);
    cr_assert_eq(ivm__sorted_bytes(&with.sorted), 0);
    fixture_close(&with);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------------------------ */

Test(engine_sorted, an_insertion_that_runs_out_of_memory_changes_nothing)
{
    static const ivm__sorted_key keys[] = { { .column = BOOL }, { .column = SERIAL } };
    uint64_t state = 9, failures = 0;
    fixture with;
    fixture_open(&with, keys, 2, 1);
    model.count = 0;
    for (uint32_t n = 0; n < 3000; n++) {
        ivm__row_id row = row_draw(&with, &state);
        ivm__ordered_key entry = ivm__sorted_entry(&with.sorted, row);
        uint64_t bytes = with.memory.bytes_held;
        ivm_status status = IVM_OUT_OF_MEMORY;
        for (uint64_t nth = 1; status != IVM_OK; nth++) {
            test_allocator_arm(&with.allocator, nth);
            status = ivm__sorted_insert(&with.sorted, entry);
            bool failed = test_allocator_disarm(&with.allocator);
            cr_assert_eq(status, failed ? IVM_OUT_OF_MEMORY : IVM_OK);
            failures += failed;
            cr_assert(!failed || with.memory.bytes_held == bytes);
            if (failed) {
                valid(&with, n);
                cr_assert_eq(with.sorted.tree.entries_count, n);
            }
        }
    }
    cr_assert_gt(failures, 100);
    valid(&with, 0);
    fixture_close(&with);
}
