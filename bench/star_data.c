/* Making a star's rows; see star_data.h. */
#include "star_data.h"

#include "arena.h"
#include "measure.h"

#include <stdlib.h>

#define AMOUNT_LIMIT 1000

star_shape star_shape_named(star_name name, uint32_t fact_rows)
{
    star_shape shape = { .dimensions = 4, .dimension_rows = 100000, .attributes = { 16, 16, 4, 4 }, .fact_rows = fact_rows };
    if (name == STAR4L) {
        return (star_shape){
            .dimensions = 4, .attributes = { 10, 10, 10, 10 }, .fact_rows = fact_rows, .rows = { 1000000, 100000, 10000, 1000 }
        };
    }
    return shape;
}

uint32_t star_dimension_rows(const star_shape *shape, uint32_t dimension)
{
    return shape->rows[dimension] ? shape->rows[dimension] : shape->dimension_rows;
}

/* Multiplying by an odd number permutes the numbers below 2^63: keys are distinct and far apart. */
static int64_t key_of(uint32_t dimension, uint32_t row)
{
    uint64_t spread = ((uint64_t)row + 1 + ((uint64_t)dimension << 40)) * 0x9E3779B97F4A7C15ull;
    return (int64_t)(spread & INT64_MAX);
}

static void dimension_make(star_data *data, uint32_t dimension, random_state *random)
{
    uint32_t rows = star_dimension_rows(&data->shape, dimension);
    data->keys[dimension] = memory_take(rows * sizeof(int64_t));
    data->attributes[dimension] = memory_take(rows * sizeof(int64_t));
    for (uint32_t i = 0; i < rows; i++) {
        data->keys[dimension][i] = key_of(dimension, i);
        data->attributes[dimension][i] = random_below(random, data->shape.attributes[dimension]);
    }
}

static uint32_t rows_known(const star_shape *shape, uint32_t dimension, uint32_t row)
{
    if (!shape->fact_rows_step || shape->rows[dimension]) {
        return star_dimension_rows(shape, dimension);
    }
    uint32_t steps = row < shape->fact_rows_first ? 0 : (row - shape->fact_rows_first) / shape->fact_rows_step + 1;
    return shape->rows_first + steps * shape->rows_step;
}

static void fact_keys_make(star_data *data, uint32_t dimension, random_state *random)
{
    const star_shape *shape = &data->shape;
    int64_t *keys = data->fact_columns[dimension] = memory_take(shape->fact_rows * sizeof(int64_t));
    for (uint32_t i = 0; i < shape->fact_rows; i++) {
        uint32_t first = i < shape->fact_rows_first ? 0 : shape->rows_leaving;
        keys[i] = data->keys[dimension][first + random_below(random, rows_known(shape, dimension, i) - first)];
    }
}

void star_data_make(star_data *data, const star_shape *shape)
{
    random_state random = { 0x243F6A8885A308D3ull };
    *data = (star_data){ .shape = *shape };
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        dimension_make(data, d, &random);
        fact_keys_make(data, d, &random);
    }
    int64_t *amounts = data->fact_columns[shape->dimensions] = memory_take(shape->fact_rows * sizeof(int64_t));
    for (uint32_t i = 0; i < shape->fact_rows; i++) {
        amounts[i] = random_below(&random, AMOUNT_LIMIT);
    }
}

void star_data_free(star_data *data)
{
    for (uint32_t d = 0; d < data->shape.dimensions; d++) {
        free(data->keys[d]);
        free(data->attributes[d]);
        free(data->fact_columns[d]);
    }
    free(data->fact_columns[data->shape.dimensions]);
    *data = (star_data){ 0 };
}

uint32_t star_groups_count(const star_shape *shape)
{
    uint32_t groups = 1;
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        groups *= shape->attributes[d];
    }
    return groups;
}
