/* Making a star's rows; see star_data.h. */
#include "star_data.h"

#include "arena.h"
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define AMOUNT_LIMIT 1000
#define SPREAD_PRIME 2654435761u

star_shape star_shape_named(star_name name, uint32_t fact_rows)
{
    star_shape shape = { .dimensions = 4, .dimension_rows = 100000, .attributes = { 16, 16, 4, 4 }, .fact_rows = fact_rows };
    if (name == STAR4L) {
        return (star_shape){
            .dimensions = 4, .attributes = { 10, 10, 10, 10 }, .fact_rows = fact_rows, .rows = { 1000000, 100000, 10000, 1000 }
        };
    }
    if (name == STAR_WIDE) {
        return (star_shape){
            .dimensions = 4, .dimension_rows = 100000, .attributes = { 25, 20, 20, 10 }, .fact_rows = fact_rows, .strings = true
        };
    }
    return shape;
}

uint32_t star_dimension_rows(const star_shape *shape, uint32_t dimension)
{
    return shape->rows[dimension] ? shape->rows[dimension] : shape->dimension_rows;
}

/* ---- Dimensions ---------------------------------------------------------------------------------------------------------------- */

/* Multiplying by an odd number permutes the numbers below 2^63: keys are distinct and far apart. */
static int64_t key_of(uint32_t dimension, uint32_t row)
{
    uint64_t scattered = ((uint64_t)row + 1 + ((uint64_t)dimension << 40)) * 0x9E3779B97F4A7C15ull;
    return (int64_t)(scattered & INT64_MAX);
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

static void texts_make(star_data *data, uint32_t dimension)
{
    uint32_t rows = star_dimension_rows(&data->shape, dimension);
    char *text = data->texts[dimension] = memory_take((size_t)rows * STAR_TEXT_SIZE + 1);
    data->text_offsets[dimension] = memory_take((rows + 1) * sizeof(int32_t));
    for (uint32_t i = 0; i < rows; i++) {
        data->text_offsets[dimension][i + 1] = (int32_t)((i + 1) * STAR_TEXT_SIZE);
        snprintf(text + (size_t)i * STAR_TEXT_SIZE, STAR_TEXT_SIZE + 1, "attribute of star D%u %06u", dimension % 10,
                 (unsigned)data->attributes[dimension][i] % 1000000);
    }
}

/* ---- Fact rows ----------------------------------------------------------------------------------------------------------------- */

/* Zipf's law with exponent 1 over 1 .. rows by rejection from the curve 1/x, whose integral is a logarithm (W. Hormann, G. Derflinger, 1996). */
static uint32_t zipf_rank(random_state *random, uint32_t rows)
{
    const double from = log(1.5) - 1, to = log(rows + 0.5);
    for (;;) {
        double u = from + (double)(random_next(random) >> 11) * 0x1p-53 * (to - from);
        double k = floor(exp(u) + 0.5);
        k = k < 1 ? 1 : k > rows ? rows : k;
        if (u >= log(k + 0.5) - 1 / k) {
            return (uint32_t)k;
        }
    }
}

/* Ranks are spread over the rows, so that hot rows are no neighbours. */
static void fact_keys_make_zipf(star_data *data, uint32_t dimension, random_state *random)
{
    uint32_t rows = star_dimension_rows(&data->shape, dimension);
    int64_t *keys = data->fact_columns[dimension] = memory_take(data->shape.fact_rows * sizeof(int64_t));
    for (uint32_t i = 0; i < data->shape.fact_rows; i++) {
        keys[i] = data->keys[dimension][(uint64_t)zipf_rank(random, rows) * SPREAD_PRIME % rows];
    }
}

static uint32_t rows_known(const star_shape *shape, uint32_t dimension, uint32_t row)
{
    if (!shape->fact_rows_step || shape->rows[dimension]) {
        return star_dimension_rows(shape, dimension) - shape->rows_spare;
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
        if (shape->strings) {
            texts_make(data, d);
        }
        if (shape->zipf) {
            fact_keys_make_zipf(data, d, &random);
        } else {
            fact_keys_make(data, d, &random);
        }
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
        free(data->texts[d]);
        free(data->text_offsets[d]);
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
