/* Random rows of every type, their order by a comparison of its own, and chunks of them: for the tests of rows as bytes and of their order. */
#ifndef ROW_MODEL_H
#define ROW_MODEL_H

#include "allocator.h"
#include "row_code.h"

#define ROW_MODEL_COLUMNS_MAX 8u

typedef struct row_model_row {
    ivm__wide cells[ROW_MODEL_COLUMNS_MAX];
    bool nulls[ROW_MODEL_COLUMNS_MAX];
    int64_t weight;
} row_model_row;

typedef struct row_model {
    test_allocator allocator;
    ivm__memory memory;
    ivm__texts texts;
    ivm__arena arena;
    ivm_error error;
    uint64_t state;
    ivm_type types[ROW_MODEL_COLUMNS_MAX];
    uint32_t columns_count;
    uint32_t domain;         /* cells of a column are of so many, about */
    uint32_t nulls_per_cent; /* in each column */
    row_model_row *rows;
    uint32_t rows_count;
} row_model;

uint64_t row_model_random(row_model *with);
void row_model_open(row_model *with, uint64_t seed, const ivm_type *types, uint32_t columns_count);
void row_model_close(row_model *with); /* nothing lives then */
/* So many random rows behind those there are, weights 1, or of all kinds above 0, or of both signs. */
void row_model_fill(row_model *with, uint32_t rows_count, ivm__weights_kind weights);
/* By the order's columns (NULL: all), nulls last. */
int row_model_compare(const row_model *with, const row_model_row *a, const row_model_row *b, const uint32_t *order, uint32_t order_count);
/* Sorts, and makes equal rows one, their weights added. */
void row_model_sort(row_model *with, const uint32_t *order, uint32_t order_count);
/* Rows from `first` on as a chunk in the arena. */
ivm__chunk *row_model_chunk(row_model *with, uint32_t first, uint32_t count);
/* Whether the chunk is these rows. */
bool row_model_chunk_is(const row_model *with, const ivm__chunk *chunk, uint32_t first);

#endif
