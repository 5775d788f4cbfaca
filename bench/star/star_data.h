/* A star's rows as column arrays, made from a seed: a fact table F(k0 .. kN-1, amount) and dimensions D0 .. DN-1 of (key, attribute), all
 * int64 and not null, keys spread over 63 bits and never dense, each key of a fact row drawn from its dimension's keys, evenly or by Zipf's law. */
#ifndef IVM_BENCH_STAR_DATA_H
#define IVM_BENCH_STAR_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAR_DIMENSIONS_MAX 8

typedef struct star_shape {
    uint32_t dimensions;
    uint32_t dimension_rows;
    uint32_t attributes[STAR_DIMENSIONS_MAX]; /* an attribute is one of 0 .. attributes - 1 */
    uint32_t fact_rows;
    /* Dimensions that grow: the first `fact_rows_first` facts refer to the first `rows_first` rows of each, the next `fact_rows_step` to
     * `rows_step` more, and so on. All zero: every fact row refers to any row. */
    uint32_t fact_rows_first, rows_first, fact_rows_step, rows_step;
    uint32_t rows_leaving;              /* of the first rows of each: only the first `fact_rows_first` facts refer to them */
    uint32_t rows[STAR_DIMENSIONS_MAX]; /* of a dimension, in place of `dimension_rows` unless 0; such dimensions do not grow */
    uint32_t rows_spare;                /* the last ones of each dimension: no fact row refers to them; such dimensions do not grow */
    bool zipf;    /* the k-th of a dimension's keys, in an order of its own, is drawn with a weight of 1/k; none grow */
    bool strings; /* attributes are strings, which end in six digits: the number */
} star_shape;

typedef struct star_data {
    star_shape shape;
    int64_t *keys[STAR_DIMENSIONS_MAX];
    int64_t *attributes[STAR_DIMENSIONS_MAX];
    int64_t *fact_columns[STAR_DIMENSIONS_MAX + 1]; /* the keys, then the amount */
    char *texts[STAR_DIMENSIONS_MAX];               /* attributes as strings of STAR_TEXT_SIZE bytes, if they are */
    int32_t *text_offsets[STAR_DIMENSIONS_MAX];
} star_data;
#define STAR_TEXT_SIZE 27 /* "attribute of star D2 000017" */

/* STAR4: four dimensions of 100,000 rows, 16 x 16 x 4 x 4 groups. STAR4L: of 1,000,000, 100,000, 10,000 and 1,000 rows, 10,000 groups. WIDE: STAR4
 * with strings for attributes and 100,000 groups. */
typedef enum star_name { STAR4, STAR4L, STAR_WIDE } star_name;
star_shape star_shape_named(star_name name, uint32_t fact_rows);

void star_data_make(star_data *data, const star_shape *shape);
void star_data_free(star_data *data);

uint32_t star_dimension_rows(const star_shape *shape, uint32_t dimension);
/* Groups of all attributes, the last varying fastest. */
uint32_t star_groups_count(const star_shape *shape);

#endif
