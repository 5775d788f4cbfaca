/* Tests of engine/saved/row_order.c and row_sort.c: random rows in a store come out as qsort puts them, equal ones as one, through windows of any size;
 * memory failing makes windows smaller or leaves nothing. */
#include "row_order.h"

#include <criterion/criterion.h>

#include "row_model.h"

static const ivm_type all_types[] = { IVM_BOOL, IVM_INT64, IVM_FLOAT64, IVM_STRING, IVM_DATE, IVM_TIMESTAMP, IVM_DECIMAL(38, 4) };
#define ALL_TYPES (sizeof all_types / sizeof *all_types)

/* ---- A store of the model's rows ------------------------------------------------------------------------------------------------------- */

typedef struct filled {
    ivm__layout *layout;
    ivm__store store;
} filled;

static void rows_put(row_model *with, ivm__store *store)
{
    for (uint32_t i = 0, count; i < with->rows_count; i += count) {
        count = with->rows_count - i < IVM__CHUNK_ROWS ? with->rows_count - i : IVM__CHUNK_ROWS;
        cr_assert_eq(ivm__store_put_chunk(store, row_model_chunk(with, i, count), NULL), IVM_OK);
        ivm__arena_reset(&with->arena);
    }
    ivm__store_commit(store);
}

/* Some of the rows go again: those whose number in the model is of the class. */
static void rows_take(row_model *with, ivm__store *store, uint32_t every)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < with->rows_count; i++) {
        if (i % every == every - 1) {
            cr_assert_eq(ivm__store_touch(store, i), IVM_OK);
            ivm__store_weight_set(store, i, 0);
        } else {
            with->rows[kept++] = with->rows[i];
        }
    }
    with->rows_count = kept;
    ivm__store_commit(store);
}

static void filled_open(filled *in, row_model *with, uint32_t every)
{
    cr_assert_eq(ivm__layout_create(&with->memory, with->types, NULL, with->columns_count, true, &in->layout), IVM_OK);
    cr_assert_eq(ivm__store_init(&in->store, &with->memory, &with->texts, 1, in->layout), IVM_OK);
    rows_put(with, &in->store);
    if (every) {
        rows_take(with, &in->store, every);
    }
}

static void filled_close(filled *in)
{
    ivm__store_deinit(&in->store);
    ivm__layout_release(in->layout);
}

static row_model_row row_of(const filled *in, ivm__row_id id)
{
    row_model_row row = { .weight = 1 };
    const uint8_t *at = ivm__store_row(&in->store, id);
    for (uint32_t c = 0; c < in->layout->columns_count; c++) {
        row.nulls[c] = ivm__row_is_null(in->layout, at, c);
        row.cells[c] =
            ivm__type_is_wide(in->layout->types[c]) ? ivm__row_wide(in->layout, at, c) : (ivm__wide)ivm__row_word(in->layout, at, c);
    }
    return row;
}

/* All rows, `capacity` at a time, are those of the model, which is sorted. */
static ivm_status order_agrees(row_model *with, const filled *in, const uint32_t *columns, uint32_t columns_count, size_t sort_bytes)
{
    ivm__row_pages pages = ivm__store_row_pages(&in->store);
    ivm__row_order order;
    ivm__row_id ids[1000];
    int64_t weights[1000];
    uint32_t done = 0, count = 1, capacity = 1 + (uint32_t)(sort_bytes % 999);
    ivm_status status = ivm__row_order_init(&order, &with->memory, &pages, columns, columns_count, sort_bytes);
    while (status == IVM_OK && (status = ivm__row_order_next(&order, capacity, ids, weights, &count)) == IVM_OK && count) {
        for (uint32_t i = 0; i < count; i++, done++) {
            cr_assert_lt(done, with->rows_count);
            row_model_row row = row_of(in, ids[i]);
            cr_assert(row_model_compare(with, &row, &with->rows[done], columns, columns_count) == 0, "row %u of %u, %zu bytes", done,
                      with->rows_count, sort_bytes);
            cr_assert_eq(weights[i], with->rows[done].weight);
        }
    }
    cr_assert(status != IVM_OK || done == with->rows_count, "%u rows of %u, %zu bytes", done, with->rows_count, sort_bytes);
    ivm__row_order_deinit(&order);
    return status;
}

static const size_t sort_sizes[] = { 0, 17 * 32, 100 * 32, 999 * 32, 1 << 20 };

static void orders_agree(uint64_t seed, const ivm_type *types, uint32_t columns_count, uint32_t rows_count, uint32_t domain)
{
    row_model with;
    filled in;
    uint32_t columns[ROW_MODEL_COLUMNS_MAX];
    row_model_open(&with, seed, types, columns_count);
    with.domain = domain;
    with.nulls_per_cent = seed % 3 == 0 ? 40 : 5;
    row_model_fill(&with, rows_count, seed % 2 ? IVM__WEIGHTS_ABOVE_0 : IVM__WEIGHTS_NOT_0);
    filled_open(&in, &with, seed % 4 ? 1 + (uint32_t)(seed % 4) * 2 : 0);
    for (uint32_t i = 0; i < columns_count; i++) {
        columns[i] = (uint32_t)(i + seed) % columns_count;
    }
    uint32_t used = seed % 5 ? columns_count : 1 + (uint32_t)(seed % columns_count);
    bool plain = seed % 2 && used == columns_count;
    row_model_sort(&with, plain ? NULL : columns, used);
    for (uint32_t i = rows_count > 5000 ? 2 : 0; i < sizeof sort_sizes / sizeof *sort_sizes; i++) {
        cr_assert_eq(order_agrees(&with, &in, plain ? NULL : columns, used, sort_sizes[i]), IVM_OK);
    }
    filled_close(&in);
    row_model_close(&with);
}

/* ---- Tests --------------------------------------------------------------------------------------------------------------------------- */

Test(engine_row_order, random_rows_come_as_qsort_puts_them)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint32_t domain = seed % 6 == 0 ? 2 : seed % 6 == 1 ? 100000 : 30;
        orders_agree(seed, all_types, ALL_TYPES, (uint32_t)(seed * 37 % 1500), domain);
    }
}

Test(engine_row_order, one_column_of_each_type)
{
    for (uint32_t t = 0; t < ALL_TYPES; t++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            static const uint32_t domains[] = { 1, 2, 300, 100000 };
            orders_agree(seed, &all_types[t], 1, 2000, domains[seed % 4]);
        }
    }
}

Test(engine_row_order, many_rows_of_few_columns)
{
    static const ivm_type types[] = { IVM_BOOL, IVM_STRING, IVM_INT64 };
    for (uint64_t seed = 1; seed <= 4; seed++) {
        orders_agree(seed, types, 3, 20000, seed % 2 ? 50 : 5000);
    }
}

Test(engine_row_order, none_and_one)
{
    for (uint32_t rows_count = 0; rows_count < 4; rows_count++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            orders_agree(seed, all_types, ALL_TYPES, rows_count, 3);
        }
    }
}

/* Ascending, descending, all equal: windows cut at their median as they come to it. */
Test(engine_row_order, rows_that_are_in_some_order_already)
{
    static const ivm_type types[] = { IVM_INT64, IVM_INT64 };
    for (uint32_t way = 0; way < 5; way++) {
        row_model with;
        filled in;
        row_model_open(&with, 1, types, 2);
        with.nulls_per_cent = 0;
        row_model_fill(&with, 5000, IVM__WEIGHTS_ABOVE_0);
        for (uint32_t i = 0; i < 5000; i++) {
            with.rows[i].cells[0] = way == 0 ? i : way == 1 ? 5000 - i : way == 2 ? 7u : way == 3 ? i / 2500 : 5u;
            with.rows[i].cells[1] = way == 2 ? 7u : way == 3 ? i % 3 : i;
        }
        filled_open(&in, &with, 0);
        row_model_sort(&with, NULL, 0);
        for (uint32_t i = 0; i < sizeof sort_sizes / sizeof *sort_sizes; i++) {
            cr_assert_eq(order_agrees(&with, &in, NULL, 2, sort_sizes[i]), IVM_OK, "way %u", way);
        }
        filled_close(&in);
        row_model_close(&with);
    }
}

/* Texts that begin alike for longer than images are made, of which some end there. */
Test(engine_row_order, texts_that_begin_alike)
{
    static const ivm_type type = IVM_STRING;
    row_model with;
    filled in;
    row_model_open(&with, 5, &type, 1);
    row_model_fill(&with, 3000, IVM__WEIGHTS_ONE);
    for (uint32_t i = 0; i < 3000; i++) {
        char bytes[64] = { 0 };
        size_t size = row_model_random(&with) % 60;
        for (size_t at = 0; at < size; at++) {
            bytes[at] = (char)(at % 20 == 19 ? (int)(row_model_random(&with) % 3) : at % 2 ? 0 : -1);
        }
        const ivm__text *text = NULL;
        cr_assert_eq(ivm__texts_intern(&with.texts, bytes, size, &text), IVM_OK);
        with.rows[i].cells[0] = (ivm__wide)(uintptr_t)text;
        with.rows[i].nulls[0] = false;
    }
    filled_open(&in, &with, 0);
    row_model_sort(&with, NULL, 0);
    for (uint32_t i = 0; i < sizeof sort_sizes / sizeof *sort_sizes; i++) {
        cr_assert_eq(order_agrees(&with, &in, NULL, 1, sort_sizes[i]), IVM_OK);
    }
    filled_close(&in);
    row_model_close(&with);
}

Test(engine_row_order, rows_of_no_columns_are_one)
{
    row_model with;
    filled in;
    row_model_open(&with, 5, all_types, 2);
    row_model_fill(&with, 300, IVM__WEIGHTS_ABOVE_0);
    filled_open(&in, &with, 0);
    int64_t sum = 0;
    for (uint32_t i = 0; i < with.rows_count; i++) {
        sum += with.rows[i].weight;
    }
    with.rows_count = 1;
    with.rows[0].weight = sum;
    for (uint32_t i = 0; i < sizeof sort_sizes / sizeof *sort_sizes; i++) {
        const uint32_t none = 0;
        cr_assert_eq(order_agrees(&with, &in, &none, 0, sort_sizes[i]), IVM_OK);
    }
    filled_close(&in);
    row_model_close(&with);
}

Test(engine_row_order, sums_past_int64_overflow)
{
    static const ivm_type type = IVM_INT64;
    row_model with;
    filled in;
    row_model_open(&with, 5, &type, 1);
    with.nulls_per_cent = 0;
    row_model_fill(&with, 100, IVM__WEIGHTS_ONE);
    for (uint32_t i = 0; i < 100; i++) {
        with.rows[i].cells[0] = 3;
        with.rows[i].weight = INT64_MAX / 2;
    }
    filled_open(&in, &with, 0);
    for (uint32_t i = 0; i < sizeof sort_sizes / sizeof *sort_sizes; i++) {
        cr_assert_eq(order_agrees(&with, &in, NULL, 1, sort_sizes[i]), IVM_OVERFLOW);
    }
    filled_close(&in);
    row_model_close(&with);
}

/* Of ids from one on: what came since. */
Test(engine_row_order, a_range_of_ids)
{
    row_model with;
    filled in;
    row_model_open(&with, 8, all_types, ALL_TYPES);
    row_model_fill(&with, 1000, IVM__WEIGHTS_ONE);
    filled_open(&in, &with, 0);
    ivm__row_pages pages = ivm__store_row_pages(&in.store);
    pages.first = 900;
    ivm__row_order order;
    ivm__row_id ids[300];
    int64_t weights[300], sum = 0;
    uint32_t count;
    cr_assert_eq(ivm__row_order_init(&order, &with.memory, &pages, NULL, ALL_TYPES, 0), IVM_OK);
    cr_assert_eq(ivm__row_order_next(&order, 300, ids, weights, &count), IVM_OK);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_geq(ids[i], 900);
        sum += weights[i];
    }
    cr_assert_eq(sum, 100);
    ivm__row_order_deinit(&order);
    filled_close(&in);
    row_model_close(&with);
}

/* One failing makes smaller windows, or, where these are small already, leaves nothing. */
static void memory_fails(uint32_t rows_count, size_t sort_bytes, bool halves)
{
    row_model with;
    filled in;
    uint32_t failed = 0;
    row_model_open(&with, 8, all_types, 3);
    with.domain = 30;
    row_model_fill(&with, rows_count, IVM__WEIGHTS_ABOVE_0);
    filled_open(&in, &with, 7);
    row_model_sort(&with, NULL, 0);
    for (uint64_t n = 1, done = 0; !done; n++) {
        int64_t bytes = with.allocator.bytes;
        test_allocator_arm(&with.allocator, n);
        ivm_status status = order_agrees(&with, &in, NULL, 3, sort_bytes);
        done = !test_allocator_disarm(&with.allocator);
        cr_assert(status == IVM_OK || (status == IVM_OUT_OF_MEMORY && !done), "call %lu", (unsigned long)n);
        cr_assert_eq(with.allocator.bytes, bytes);
        failed += status != IVM_OK;
    }
    cr_assert_eq(failed > 0, !halves);
    filled_close(&in);
    row_model_close(&with);
}

Test(engine_row_order, memory_failing)
{
    memory_fails(1000, 0, false);
    memory_fails(1000, 100 * 32, false);
    memory_fails(1000, 1 << 20, false);
    memory_fails(15000, 12000 * 32, false); /* for bounds and sums */
    memory_fails(15000, 1 << 20, true);
}

Test(engine_row_order, memory_is_bounded)
{
    static const ivm_type type = IVM_INT64;
    row_model with;
    filled in;
    row_model_open(&with, 8, &type, 1);
    with.domain = 1000000;
    row_model_fill(&with, 100000, IVM__WEIGHTS_ONE);
    filled_open(&in, &with, 0);
    ivm__row_pages pages = ivm__store_row_pages(&in.store);
    ivm__row_order order;
    int64_t before = with.allocator.bytes;
    cr_assert_eq(ivm__row_order_init(&order, &with.memory, &pages, NULL, 1, 1 << 16), IVM_OK);
    for (uint32_t count = 1; count;) {
        ivm__row_id ids[1000];
        int64_t weights[1000];
        cr_assert_eq(ivm__row_order_next(&order, 1000, ids, weights, &count), IVM_OK);
        cr_assert_leq(with.allocator.bytes - before, (1 << 16) * 3 / 2 + 4096);
    }
    ivm__row_order_deinit(&order);
    filled_close(&in);
    row_model_close(&with);
}

/* Who is asked to end ends before the window is filled; what was begun is given back. */
Test(engine_row_order, a_window_is_left_where_it_is_asked_for)
{
    static const ivm_type type = IVM_INT64;
    _Atomic uint64_t requests = 3;
    ivm__cancel cancel = { &requests, 3 };
    row_model with;
    filled in;
    row_model_open(&with, 8, &type, 1);
    with.domain = 1000000;
    row_model_fill(&with, 20000, IVM__WEIGHTS_ONE);
    filled_open(&in, &with, 0);
    ivm__row_pages pages = ivm__store_row_pages(&in.store);
    ivm__row_order order;
    ivm__row_id ids[1000];
    int64_t weights[1000];
    uint32_t count = 0;
    cr_assert_eq(ivm__row_order_init(&order, &with.memory, &pages, NULL, 1, 5000 * 32), IVM_OK);
    order.sorter.cancel = &cancel;
    cr_assert_eq(ivm__row_order_next(&order, 1000, ids, weights, &count), IVM_OK);
    cr_assert_eq(count, 1000u);
    requests++;
    ivm_status status = IVM_OK;
    for (uint32_t given = count; status == IVM_OK; given += count) {
        status = ivm__row_order_next(&order, 1000, ids, weights, &count);
        cr_assert_lt(given, 10000u, "the present window at most");
    }
    cr_assert_eq(status, IVM_CANCELLED);
    ivm__row_order_deinit(&order);
    filled_close(&in);
    row_model_close(&with);
}
