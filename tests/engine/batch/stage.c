/* tests engine/batch/stage.c and the files beside it: batches against the model. */
#include "stage.h"

#include <criterion/criterion.h>

#include "stage_model.h"

static model tested;
static model_batch batch;
static ivm_error error;

#define PUSH(expected)                                                                                                                     \
    do {                                                                                                                                   \
        ivm_status got_ = model_push(&tested, &batch, 77, NULL, &error);                                                                   \
        cr_assert_eq(got_, expected, "%s, not %s: %s", ivm_status_name(got_), ivm_status_name(expected), error.message);                   \
        cr_assert_eq(model_stage(&tested, &batch, true), expected, "the model says otherwise");                                            \
        cr_assert_null(model_differs(&tested), "%s", model_differs(&tested));                                                              \
        cr_assert(got_ != IVM_OK || !model_deltas_differ(&tested), "%s", model_deltas_differ(&tested));                                    \
        model_batch_clear(&batch);                                                                                                         \
    } while (0)

enum { BAG, BY_K, BY_S_K, LOG, KEYED_LOG, PLAIN, SIGNED };

/* ---- Against the model ----------------------------------------------------------------------------------------------------------- */

static void shapes_compare(uint64_t seed, uint64_t state)
{
    for (uint32_t t = 0; t < MODEL_TABLES; t++) {
        model_batch alone = { 0 };
        for (uint32_t p = 0; p < batch.parts_count; p++) {
            if (batch.parts[p].table == t) {
                alone.parts[alone.parts_count++] = batch.parts[p];
            }
        }
        ivm_shape shape = IVM_UNCHANGED, wanted = IVM_UNCHANGED;
        ivm_status status = model_stage(&tested, &alone, false);
        cr_assert_eq(model_shape(&tested, &batch, t, state, &shape), status, "seed %llu", (unsigned long long)seed);
        for (uint32_t r = 0; status == IVM_OK && r < MODEL_ROWS; r++) {
            ivm_shape row = tested.deltas[t][r] < 0 ? IVM_MIXED : tested.deltas[t][r] > 0 ? IVM_INSERT_ONLY : IVM_UNCHANGED;
            wanted = row > wanted ? row : wanted;
        }
        cr_assert_eq(shape, wanted, "seed %llu: table %u is %d, not %d", (unsigned long long)seed, t, shape, wanted);
    }
}

static uint64_t counts[IVM_STATUS_COUNT];

static void push_compare(uint64_t seed, uint64_t *state)
{
    model_batch_random(&tested, state, &batch);
    uint64_t lie = random_next(state);
    if (lie % 8 == 0) {
        shapes_compare(seed, lie);
    }
    uint32_t commits = model_view_commits(&tested);
    ivm_status got = model_push(&tested, &batch, lie, NULL, &error), wanted = model_stage(&tested, &batch, true);
    cr_assert_eq(got, wanted, "seed %llu: %s, not %s: %s", (unsigned long long)seed, ivm_status_name(got), ivm_status_name(wanted),
                 error.message);
    cr_assert_eq(model_view_commits(&tested), commits + (got == IVM_OK));
    const char *wrong = model_differs(&tested);
    cr_assert_null(wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
    wrong = got == IVM_OK ? model_deltas_differ(&tested) : NULL;
    cr_assert_null(wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
    if (got != IVM_OK) {
        cr_assert(error.status == got && error.message[0] && !strchr(error.message, '\n'));
    }
    counts[got]++;
    model_batch_clear(&batch);
}

Test(engine_stage, random_batches_equal_the_model)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15ull;
        model_open(&tested);
        for (uint32_t i = 0; i < 300; i++) {
            push_compare(seed, &state);
        }
        model_close(&tested);
    }
    static const ivm_status met[] = { IVM_OK,       IVM_NULL_VIOLATION,       IVM_DUPLICATE_KEY, IVM_ROW_NOT_FOUND,
                                      IVM_OVERFLOW, IVM_APPEND_ONLY_VIOLATION };
    for (uint32_t i = 0; i < sizeof met / sizeof *met; i++) {
        cr_assert_gt(counts[met[i]], 20, "%s is hardly tested", ivm_status_name(met[i]));
    }
}

/* ---- One by one ------------------------------------------------------------------------------------------------------------------ */

static void part(uint32_t table, ivm_change change)
{
    model_part_add(&batch, table, change, false);
}

static void row(int k, int s, int n)
{
    model_row_add(&batch, k, s, n, 1);
}

Test(engine_stage, parts_apply_in_order)
{
    model_open(&tested);
    part(BY_K, IVM_INSERT), row(1, 0, 0);
    part(BY_K, IVM_UPSERT), row(1, 1, 0);
    part(BY_K, IVM_DELETE_KEY), row(1, -1, -1);
    part(BY_K, IVM_INSERT), row(1, 2, 1);
    PUSH(IVM_OK);
    part(BY_K, IVM_DELETE_KEY), row(1, -1, -1);
    part(BY_K, IVM_UPSERT), row(1, 2, 1);
    PUSH(IVM_OK);
    part(BY_K, IVM_UPSERT), row(1, 0, 0), row(1, 1, 0), row(1, 0, 1), row(1, 2, 1);
    PUSH(IVM_OK);
    part(BY_K, IVM_DELETE_KEY), row(1, -1, -1), row(1, -1, -1);
    PUSH(IVM_ROW_NOT_FOUND);
    cr_assert_str_eq(error.message, "table by_k, row 1: no row with key (5)");
    part(BY_K, IVM_UPSERT), row(2, 0, 0);
    part(BY_K, IVM_INSERT), row(2, 0, 1);
    PUSH(IVM_DUPLICATE_KEY);
    cr_assert_str_eq(error.message, "table by_k, row 1: a second row with key (0)");
    model_close(&tested);
}

Test(engine_stage, cancelling_rows_leave_nothing)
{
    model_open(&tested);
    part(BAG, IVM_INSERT), row(1, 1, 1), row(2, -1, 1);
    part(BAG, IVM_DELETE), row(2, -1, 1), row(1, 1, 1);
    PUSH(IVM_OK);
    cr_assert_null(tested.handles[BAG]->whole, "nothing was looked up");
    part(LOG, IVM_DELETE), row(1, 1, 1);
    part(LOG, IVM_INSERT), row(1, 1, 1), row(0, 0, 0);
    PUSH(IVM_OK);
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 1, 1, 1, 0);
    PUSH(IVM_OK);
    model_close(&tested);
}

Test(engine_stage, copies_are_taken_from_rows_one_after_the_other)
{
    model_open(&tested);
    for (int i = 0; i < 4; i++) {
        part(BAG, IVM_WEIGHTED), model_row_add(&batch, 1, 1, 1, i + 1);
        PUSH(IVM_OK);
    }
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 1, 1, 1, -7);
    PUSH(IVM_OK);
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 1, 1, 1, -4);
    PUSH(IVM_ROW_NOT_FOUND);
    cr_assert_str_eq(error.message, "table bag, row 0: no row (5, \"b\", -12676506002282294014967032053.83) is left to delete");
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 1, 1, 1, -3);
    PUSH(IVM_OK);
    cr_assert_eq(tested.handles[BAG]->store.rows_live, 0);
    model_close(&tested);
}

Test(engine_stage, weights_add_up_to_int64_and_no_further)
{
    model_open(&tested);
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 0, 0, 0, INT64_MAX - 1);
    PUSH(IVM_OK);
    part(BAG, IVM_INSERT), row(0, 0, 0);
    PUSH(IVM_OK);
    part(BAG, IVM_INSERT), row(0, 0, 0);
    PUSH(IVM_OVERFLOW);
    part(BAG, IVM_INSERT), row(1, 0, 0);
    PUSH(IVM_OK);
    part(PLAIN, IVM_WEIGHTED), model_row_add(&batch, 0, 0, 0, INT64_MAX), model_row_add(&batch, 0, 0, 0, INT64_MAX);
    PUSH(IVM_OVERFLOW);
    part(BY_K, IVM_WEIGHTED), model_row_add(&batch, 0, 0, 0, INT64_MAX), model_row_add(&batch, 0, 0, 0, 1);
    PUSH(IVM_OVERFLOW);
    part(BY_K, IVM_WEIGHTED), model_row_add(&batch, 0, 0, 0, 2);
    PUSH(IVM_DUPLICATE_KEY);
    part(BAG, IVM_WEIGHTED), model_row_add(&batch, 0, 0, 0, -INT64_MAX), model_row_add(&batch, 2, 0, 0, 3000000000);
    PUSH(IVM_OK);
    model_close(&tested);
}

Test(engine_stage, a_retraction_may_come_before_its_row)
{
    model_open(&tested);
    part(SIGNED, IVM_DELETE), row(1, 1, -1);
    PUSH(IVM_OK);
    part(SIGNED, IVM_WEIGHTED), model_row_add(&batch, 1, 1, -1, -5), model_row_add(&batch, 2, 0, 0, INT64_MIN);
    PUSH(IVM_OK);
    cr_assert_eq(tested.handles[SIGNED]->store.rows_live, 2);
    part(SIGNED, IVM_INSERT), row(1, 1, -1), row(1, 1, -1), row(1, 1, -1); /* no negative weight: not consolidated */
    PUSH(IVM_OK);
    part(SIGNED, IVM_DELETE), row(2, 0, 0);
    PUSH(IVM_OVERFLOW);
    cr_assert_str_eq(error.message, "table signed: the weight is out of range of (0, \"\", 12.34)");
    part(SIGNED, IVM_WEIGHTED), model_row_add(&batch, 3, 0, 0, INT64_MIN), model_row_add(&batch, 3, 0, 0, -1);
    PUSH(IVM_OVERFLOW);
    part(SIGNED, IVM_WEIGHTED), model_row_add(&batch, 2, 0, 0, INT64_MAX), model_row_add(&batch, 2, 0, 0, 1);
    PUSH(IVM_OVERFLOW); /* it would come to nothing, but the batch's own weight is past int64 */
    part(SIGNED, IVM_WEIGHTED), model_row_add(&batch, 1, 1, -1, 3), model_row_add(&batch, 2, 0, 0, INT64_MAX);
    PUSH(IVM_OK);
    part(SIGNED, IVM_INSERT), row(2, 0, 0);
    PUSH(IVM_OK);
    cr_assert_eq(tested.handles[SIGNED]->store.rows_live, 0);
    cr_assert_eq(tested.handles[SIGNED]->whole->used, 0);
    model_close(&tested);
}

Test(engine_stage, negative_weights_go_with_no_key)
{
    model_open(&tested);
    ivm_column_definition column = { "k", IVM_INT64, false };
    ivm_table_options keyed = { .columns = &column, .columns_count = 1, .key = "k", .allow_negative = true };
    ivm_table_options append_only = { .columns = &column, .columns_count = 1, .append_only = true, .allow_negative = true };
    ivm_table *table;
    cr_assert_eq(ivm_table_create(tested.engine, "t", &keyed, &table, &error), IVM_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "table t: negative weights go with neither a key nor append_only");
    cr_assert_eq(ivm_table_create(tested.engine, "t", &append_only, &table, &error), IVM_INVALID_ARGUMENT);
    part(SIGNED, IVM_UPSERT), row(1, 1, 1);
    cr_assert_eq(model_push(&tested, &batch, 1, NULL, &error), IVM_INVALID_ARGUMENT);
    model_batch_clear(&batch);
    model_close(&tested);
}

Test(engine_stage, tables_are_judged_in_the_order_named)
{
    model_open(&tested);
    part(BY_K, IVM_INSERT), row(0, 0, 0);
    PUSH(IVM_OK);
    part(BY_K, IVM_INSERT), row(0, 1, 0); /* duplicate_key */
    part(LOG, IVM_DELETE), row(0, 0, 0);  /* append_only_violation */
    PUSH(IVM_DUPLICATE_KEY);
    part(LOG, IVM_DELETE), row(0, 0, 0);
    part(BY_K, IVM_INSERT), row(0, 1, 0);
    PUSH(IVM_APPEND_ONLY_VIOLATION);
    part(BY_K, IVM_INSERT), row(0, 1, 0);
    part(BY_S_K, IVM_DELETE_KEY), row(0, 1, 0); /* row_not_found comes while parts are read */
    PUSH(IVM_ROW_NOT_FOUND);
    part(BY_K, IVM_INSERT), row(0, 1, 0);
    part(BY_K, IVM_DELETE), row(3, 1, 0);
    PUSH(IVM_ROW_NOT_FOUND);
    model_close(&tested);
}

Test(engine_stage, a_null_key_is_never_found)
{
    model_open(&tested);
    part(BY_S_K, IVM_INSERT), row(0, 0, 0);
    PUSH(IVM_OK);
    part(BY_S_K, IVM_DELETE_KEY), row(0, -1, -1);
    PUSH(IVM_ROW_NOT_FOUND);
    model_part_add(&batch, BY_S_K, IVM_DELETE_KEY, true), row(0, 0, -1), row(-1, 0, -1);
    PUSH(IVM_ROW_NOT_FOUND);
    part(BY_K, IVM_INSERT), row(2, 0, 0); /* whose key's cell is 0 */
    part(BY_K, IVM_DELETE_KEY), row(-1, -1, -1);
    PUSH(IVM_ROW_NOT_FOUND);
    model_close(&tested);
}

/* Keys are judged one after the other, whether they are there and whether they are values at all. */
Test(engine_stage, a_key_that_is_no_value_comes_in_its_turn)
{
    model_open(&tested);
    for (int bad = 0; bad < 2; bad++) {
        static _Alignas(16) __int128 n[2];
        n[bad] = -3 * ((__int128)1 << 125); /* past 38 digits */
        n[!bad] = 1;
        int64_t k[2] = { 1, 1 };
        ivm_column_data columns[] = { { .values = n }, { .values = k } };
        ivm_rows rows = { 2, 2, columns, NULL };
        ivm_batch *made;
        cr_assert_eq(ivm_batch_create(tested.engine, &made, NULL), IVM_OK);
        cr_assert_eq(ivm_batch_columns(made, tested.handles[KEYED_LOG], IVM_DELETE_KEY, &rows), IVM_OK);
        ivm_status status = ivm_push_batch(tested.engine, made, NULL, &error);
        cr_assert_eq(status, bad ? IVM_ROW_NOT_FOUND : IVM_TYPE_MISMATCH, "%s", error.message);
        cr_assert_eq(strncmp(error.message, "table keyed_log, row 0", 22), 0, "%s", error.message);
    }
    model_close(&tested);
}

/* Each row of a batch meets a table and a batch that change under it. */
Test(engine_stage, a_key_changed_a_hundred_thousand_times_is_one_change)
{
    model_open(&tested);
    part(BY_K, IVM_INSERT), row(3, 0, 0);
    PUSH(IVM_OK);
    part(BY_K, IVM_UPSERT);
    for (int i = 0; i < 100000; i++) {
        row(3, i % 3, i % 2);
    }
    PUSH(IVM_OK);
    cr_assert_eq(tested.handles[BY_K]->store.rows_live, 1);
    model_close(&tested);
}

/* Quadratic work would take minutes. */
Test(engine_stage, a_key_inserted_half_a_million_times_is_refused_soon)
{
    model_open(&tested);
    part(BY_K, IVM_INSERT), row(0, 0, 0);
    PUSH(IVM_OK);
    part(BY_K, IVM_INSERT);
    for (int i = 0; i < 500000; i++) {
        row(2, i % 3, i % 2);
    }
    PUSH(IVM_DUPLICATE_KEY);
    cr_assert_str_eq(error.message, "table by_k, row 1: a second row with key (0)");
    model_close(&tested);
}

Test(engine_stage, rows_that_come_and_go_take_no_more_room)
{
    model_open(&tested);
    for (uint32_t table = BAG; table <= BY_K; table++) {
        for (int i = 0; i < 40; i++) {
            part(table, i % 2 ? IVM_DELETE : IVM_INSERT);
            row(0, 0, 0), row(1, 0, 0), row(2, 0, 0);
            PUSH(IVM_OK);
        }
        cr_assert_leq(tested.handles[table]->store.rows_end, 9);
    }
    model_close(&tested);
}
