/* Exhaustive: every change from every tiny Z-set to every other, for joins of two and three leaves over bags with nulls, weights and a table
 * joined to itself. The view's weights equal the products of the tables' weights. */
#include "allocator.h"
#include "ivm/ivm.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define TABLES_MAX 3u
#define VARIABLES_MAX 3u
#define TUPLES_MAX 16u /* of one table */
#define ROWS_MAX 729u  /* of the view */

/* Columns of a leaf are variables; leaves that share one are joined by it. Values are 0, 1, ... and, at last, null. */
typedef struct tiny {
    uint32_t values_count;
    bool has_null; /* the last value is null */
    uint32_t weight_max;
    uint32_t tables_count, columns_count[TABLES_MAX];
    uint32_t leaves_count, table_of[TABLES_MAX], variable_of[TABLES_MAX][2];
    /* made */
    test_allocator allocator;
    ivm_engine *engine;
    ivm_error error;
    ivm_table *tables[TABLES_MAX];
    ivm_view *view;
    uint32_t tuples_count[TABLES_MAX]; /* of each table */
    int64_t weights[TABLES_MAX][TUPLES_MAX];
} tiny;

static void make_tables(tiny *it)
{
    static const ivm_column_definition columns[] = { { "a", IVM_INT64, false }, { "b", IVM_INT64, false } };
    for (uint32_t t = 0; t < it->tables_count; t++) {
        char name[16];
        ivm_table_options options = { .columns = columns, .columns_count = it->columns_count[t] };
        snprintf(name, sizeof name, "t%u", t);
        cr_assert_eq(ivm_table_create(it->engine, name, &options, &it->tables[t], &it->error), IVM_OK, "%s", it->error.message);
        it->tuples_count[t] = it->columns_count[t] == 1 ? it->values_count : it->values_count * it->values_count;
    }
}

/* The join of the leaves, all columns. */
static void make_view(tiny *it)
{
    ivm_plan *inputs[TABLES_MAX];
    char on[256] = "", name[16], column[16], first[VARIABLES_MAX][16] = { "" };
    size_t size = 0;
    for (uint32_t l = 0; l < it->leaves_count; l++) {
        snprintf(name, sizeof name, "l%u", l);
        inputs[l] = ivm_plan_scan(it->tables[it->table_of[l]], name);
        for (uint32_t c = 0; c < it->columns_count[it->table_of[l]]; c++) {
            uint32_t variable = it->variable_of[l][c];
            snprintf(column, sizeof column, "l%u.%c", l, 'a' + (char)c);
            if (first[variable][0]) {
                size += (size_t)snprintf(on + size, sizeof on - size, "%s%s = %s", size ? ", " : "", first[variable], column);
            } else {
                memcpy(first[variable], column, sizeof column);
            }
        }
    }
    ivm_plan *plan = ivm_plan_project(ivm_plan_join_many(inputs, it->leaves_count, on), NULL);
    for (uint32_t l = 0, n = 0; l < it->leaves_count; l++) {
        for (uint32_t c = 0; c < it->columns_count[it->table_of[l]]; c++, n++) {
            snprintf(name, sizeof name, "c%u", n);
            snprintf(column, sizeof column, "l%u.%c", l, 'a' + (char)c);
            plan = ivm_plan_compute(plan, name, ivm_column(column));
        }
    }
    cr_assert_eq(ivm_view_create(it->engine, "v", plan, NULL, &it->view, &it->error), IVM_OK, "%s", it->error.message);
}

static void tiny_open(tiny *it)
{
    test_allocator_init(&it->allocator);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->allocator);
    cr_assert_eq(ivm_engine_open(&options, &it->engine, &it->error), IVM_OK, "%s", it->error.message);
    make_tables(it);
    make_view(it);
}

static void tiny_close(tiny *it)
{
    cr_assert_eq(ivm_engine_close(it->engine, &it->error), IVM_OK, "%s", it->error.message);
    cr_assert(test_allocator_is_clean(&it->allocator));
}

/* ---- States --------------------------------------------------------------------------------------------------------------------------- */

static uint64_t states_count(const tiny *it)
{
    uint64_t count = 1;
    for (uint32_t t = 0; t < it->tables_count; t++) {
        for (uint32_t i = 0; i < it->tuples_count[t]; i++) {
            count *= it->weight_max + 1;
        }
    }
    return count;
}

static void state_of(const tiny *it, uint64_t number, int64_t weights[TABLES_MAX][TUPLES_MAX])
{
    for (uint32_t t = 0; t < it->tables_count; t++) {
        for (uint32_t i = 0; i < it->tuples_count[t]; i++) {
            weights[t][i] = (int64_t)(number % (it->weight_max + 1));
            number /= it->weight_max + 1;
        }
    }
}

static ivm_value value_of(const tiny *it, uint32_t value)
{
    return it->has_null && value + 1 == it->values_count ? ivm_null() : ivm_int64(value);
}

static void go_to(tiny *it, int64_t weights[TABLES_MAX][TUPLES_MAX])
{
    ivm_batch *batch = NULL;
    cr_assert_eq(ivm_batch_create(it->engine, &batch, &it->error), IVM_OK);
    for (uint32_t t = 0; t < it->tables_count; t++) {
        for (uint32_t i = 0; i < it->tuples_count[t]; i++) {
            int64_t weight = weights[t][i] - it->weights[t][i];
            ivm_value values[] = { value_of(it, i % it->values_count), value_of(it, i / it->values_count) };
            if (weight) {
                cr_assert_eq(ivm_batch_row(batch, it->tables[t], IVM_WEIGHTED, weight, values, it->columns_count[t]), IVM_OK);
            }
        }
    }
    cr_assert_eq(ivm_push_batch(it->engine, batch, NULL, &it->error), IVM_OK, "%s", it->error.message);
    memcpy(it->weights, weights, sizeof it->weights);
}

/* ---- The view ------------------------------------------------------------------------------------------------------------------------------ */

/* The weight of every row of the view there can be, by the values of its columns as digits. */
static uint32_t view_weights(const tiny *it, int64_t weights[TABLES_MAX][TUPLES_MAX], int64_t rows[ROWS_MAX])
{
    uint32_t columns_count = 0, rows_count = 1;
    for (uint32_t l = 0; l < it->leaves_count; l++) {
        columns_count += it->columns_count[it->table_of[l]];
    }
    for (uint32_t c = 0; c < columns_count; c++) {
        rows_count *= it->values_count;
    }
    cr_assert_leq(rows_count, ROWS_MAX);
    for (uint32_t row = 0; row < rows_count; row++) {
        uint32_t rest = row, bound[VARIABLES_MAX] = { 0 };
        rows[row] = 1;
        for (uint32_t l = 0; l < it->leaves_count; l++) {
            uint32_t table = it->table_of[l], tuple = 0;
            for (uint32_t c = 0; c < it->columns_count[table]; c++) {
                uint32_t value = rest % it->values_count, *held = &bound[it->variable_of[l][c]];
                rest /= it->values_count;
                tuple += c ? value * it->values_count : value;
                bool is_null = it->has_null && value + 1 == it->values_count;
                rows[row] = *held && (*held != value + 1 || is_null) ? 0 : rows[row];
                *held = value + 1;
            }
            rows[row] *= weights[table][tuple];
        }
    }
    return rows_count;
}

static void read_view(tiny *it, int64_t rows_of[ROWS_MAX])
{
    ivm_snapshot *snapshot = NULL;
    memset(rows_of, 0, ROWS_MAX * sizeof *rows_of);
    cr_assert_eq(ivm_read_view(it->view, &snapshot, &it->error), IVM_OK);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t at = 0; at < rows.rows_count; at++) {
            uint32_t row = 0;
            for (size_t c = rows.columns_count; c-- > 0;) {
                ivm_value value = ivm_rows_value(&rows, IVM_INT64, at, c);
                row = row * it->values_count + (value.is_null ? it->values_count - 1 : (uint32_t)value.as.int64);
            }
            cr_assert_eq(rows_of[row], 0, "a row stands once");
            rows_of[row] = rows.weights[at];
        }
    }
    ivm_snapshot_close(snapshot);
}

static void assert_view(tiny *it, uint64_t from, uint64_t to)
{
    static int64_t want[ROWS_MAX], got[ROWS_MAX];
    uint32_t rows_count = view_weights(it, it->weights, want);
    read_view(it, got);
    for (uint32_t row = 0; row < rows_count; row++) {
        cr_assert(got[row] == want[row], "state %llu to %llu: row %u weighs %lld, not %lld", (unsigned long long)from,
                  (unsigned long long)to, row, (long long)got[row], (long long)want[row]);
    }
}

/* From every state to every other, and back. */
static void run(tiny it)
{
    int64_t from[TABLES_MAX][TUPLES_MAX], to[TABLES_MAX][TUPLES_MAX];
    tiny_open(&it);
    uint64_t count = states_count(&it);
    memset(from, 0, sizeof from);
    memset(to, 0, sizeof to);
    for (int rule = IVM_JOIN_MOBIUS; rule <= IVM_JOIN_TELESCOPING; rule++) {
        ivm_planner_options options = { rule == IVM_JOIN_MOBIUS ? IVM_FK_PRUNING_BATCH : IVM_FK_PRUNING_ROW, (ivm_join_rule)rule,
                                        rule != IVM_JOIN_MOBIUS };
        cr_assert_eq(ivm_engine_planner_set(it.engine, &options, &it.error), IVM_OK);
        for (uint64_t i = 0; i < count; i++) {
            state_of(&it, i, from);
            go_to(&it, from);
            for (uint64_t j = 0; j < count; j++) {
                state_of(&it, j, to);
                go_to(&it, to);
                assert_view(&it, i, j);
                go_to(&it, from);
            }
            assert_view(&it, i, i);
        }
    }
    tiny_close(&it);
}

Test(view_exhaustive_zsets, two_leaves_with_weights)
{
    run((tiny){
        .values_count = 2, .weight_max = 2, .tables_count = 2, .columns_count = { 1, 1 }, .leaves_count = 2, .table_of = { 0, 1 } });
}

Test(view_exhaustive_zsets, two_leaves_with_nulls)
{
    run((tiny){ .values_count = 3,
                .has_null = true,
                .weight_max = 1,
                .tables_count = 2,
                .columns_count = { 1, 1 },
                .leaves_count = 2,
                .table_of = { 0, 1 } });
}

Test(view_exhaustive_zsets, a_cross_product)
{
    run((tiny){ .values_count = 2,
                .has_null = true,
                .weight_max = 2,
                .tables_count = 2,
                .columns_count = { 1, 1 },
                .leaves_count = 2,
                .table_of = { 0, 1 },
                .variable_of = { { 0 }, { 1 } } });
}

/* Two columns of one leaf are equal to one of the other. */
Test(view_exhaustive_zsets, two_columns_at_once)
{
    run((tiny){ .values_count = 2,
                .has_null = true,
                .weight_max = 1,
                .tables_count = 2,
                .columns_count = { 1, 2 },
                .leaves_count = 2,
                .table_of = { 0, 1 },
                .variable_of = { { 0 }, { 0, 0 } } });
    run((tiny){ .values_count = 2,
                .weight_max = 1,
                .tables_count = 2,
                .columns_count = { 1, 2 },
                .leaves_count = 2,
                .table_of = { 0, 1 },
                .variable_of = { { 0 }, { 0, 0 } } });
}

Test(view_exhaustive_zsets, three_leaves_in_a_chain)
{
    run((tiny){ .values_count = 2,
                .weight_max = 1,
                .tables_count = 3,
                .columns_count = { 1, 2, 1 },
                .leaves_count = 3,
                .table_of = { 0, 1, 2 },
                .variable_of = { { 0 }, { 0, 1 }, { 1 } } });
}

Test(view_exhaustive_zsets, a_table_joined_to_itself)
{
    run((tiny){ .values_count = 2,
                .weight_max = 2,
                .tables_count = 1,
                .columns_count = { 2 },
                .leaves_count = 2,
                .table_of = { 0, 0 },
                .variable_of = { { 0, 1 }, { 1, 2 } } });
}

Test(view_exhaustive_zsets, triangles_of_one_table)
{
    run((tiny){ .values_count = 2,
                .weight_max = 1,
                .tables_count = 1,
                .columns_count = { 2 },
                .leaves_count = 3,
                .table_of = { 0, 0, 0 },
                .variable_of = { { 0, 1 }, { 1, 2 }, { 2, 0 } } });
    run((tiny){ .values_count = 2,
                .has_null = true,
                .weight_max = 1,
                .tables_count = 1,
                .columns_count = { 2 },
                .leaves_count = 3,
                .table_of = { 0, 0, 0 },
                .variable_of = { { 0, 1 }, { 1, 2 }, { 2, 0 } } });
}

Test(view_exhaustive_zsets, three_leaves_of_two_tables)
{
    run((tiny){
        .values_count = 2, .weight_max = 2, .tables_count = 2, .columns_count = { 1, 1 }, .leaves_count = 3, .table_of = { 0, 1, 0 } });
}
