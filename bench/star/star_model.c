/* A star changed a row at a time; see star_model.h. */
#include "star_model.h"

#include "floor.h"
#include "option.h"

#include <assert.h>
#include <stdlib.h>

const char *const model_change_names[MODEL_CHANGES] = { "fact_insert", "fact_delete", "dimension_insert", "dimension_update",
                                                        "dimension_delete" };

static uint32_t spare_start(const star_model *model, uint32_t dimension)
{
    return star_dimension_rows(&model->data.shape, dimension) - model->spare_rows;
}

void star_model_open(star_model *model, const star_shape *shape, uint32_t fact_rows, uint32_t spare_rows)
{
    ivm_error error = IVM_ERROR_INIT;
    star_shape referred = *shape;
    *model = (star_model){ .fact_end = fact_rows, .spare_rows = spare_rows, .random = { 0xA4093822299F31D0ull } };
    referred.rows_spare = spare_rows;
    star_data_make(&model->data, &referred);
    star_engine_open(&model->star, &referred, &(star_options){ .grouped = MODEL_DIMENSIONS });
    ivm_batch *batch = star_batch(&model->star);
    for (uint32_t d = 0; d < MODEL_DIMENSIONS; d++) {
        star_batch_dimension(&model->star, batch, d, (star_part){ &model->data, 0, spare_start(model, d) });
    }
    star_batch_fact_rows(&model->star, batch, (star_part){ &model->data, 0, fact_rows });
    star_push(&model->star, batch, NULL);
    if (ivm_view_prepare(model->star.view, &error) != IVM_OK) {
        exit(usage_error("%s", error.message));
    }
}

void star_model_close(star_model *model)
{
    star_engine_close(&model->star);
    star_data_free(&model->data);
}

static void fact_change(star_model *model, ivm_batch *batch, ivm_change change, uint32_t row)
{
    ivm_value values[MODEL_DIMENSIONS + 1];
    for (int c = 0; c <= MODEL_DIMENSIONS; c++) {
        values[c] = ivm_int64(model->data.fact_columns[c][row]);
    }
    (void)ivm_batch_row(batch, model->star.fact_table, change, 1, values, MODEL_DIMENSIONS + 1);
}

static void row_update(star_model *model, ivm_batch *batch)
{
    uint32_t row = random_below(&model->random, spare_start(model, 0));
    int64_t *attribute = &model->data.attributes[0][row];
    *attribute = (*attribute + 1) % model->data.shape.attributes[0];
    ivm_batch_upsert(batch, model->star.dimensions[0], ivm_int64(model->data.keys[0][row]), ivm_int64(*attribute));
}

/* The number-th spare row, counted over dimensions that take turns. */
static void spare_change(star_model *model, ivm_batch *batch, bool come, uint32_t number)
{
    uint32_t d = number % MODEL_DIMENSIONS, row = spare_start(model, d) + number / MODEL_DIMENSIONS;
    ivm_value values[] = { ivm_int64(model->data.keys[d][row]), ivm_int64(model->data.attributes[d][row]) };
    assert(number / MODEL_DIMENSIONS < model->spare_rows);
    (void)ivm_batch_row(batch, model->star.dimensions[d], come ? IVM_INSERT : IVM_DELETE_KEY, 1, values, come ? 2 : 1);
}

static void change_fill(star_model *model, ivm_batch *batch, model_change change)
{
    switch (change) {
    case FACT_INSERT:
        assert(model->fact_end < model->data.shape.fact_rows);
        fact_change(model, batch, IVM_INSERT, model->fact_end++);
        return;
    case FACT_DELETE:
        assert(model->fact_first < model->fact_end);
        fact_change(model, batch, IVM_DELETE, model->fact_first++);
        return;
    case DIMENSION_INSERT:
        spare_change(model, batch, true, model->spare_come++);
        return;
    case DIMENSION_DELETE:
        assert(model->spare_gone < model->spare_come);
        spare_change(model, batch, false, model->spare_gone++);
        return;
    default:
        row_update(model, batch);
    }
}

uint64_t star_model_push(star_model *model, model_change change)
{
    ivm_batch *batch = star_batch(&model->star);
    change_fill(model, batch, change);
    uint64_t start = clock_nanoseconds();
    star_push(&model->star, batch, NULL);
    return clock_nanoseconds() - start;
}

uint64_t star_model_unequal(star_model *model)
{
    floor_star floor;
    floor_open(&floor, &model->data);
    floor_push(&floor, &model->data, model->fact_first, model->fact_end - model->fact_first);
    uint64_t unequal = floor_unequal(&floor, &model->star);
    floor_close(&floor);
    return unequal;
}
