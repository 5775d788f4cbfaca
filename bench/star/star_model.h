/* A star of four dimensions in the engine beside what it should hold, changed a row at a time: what `latency` and `scale` push. The rows are those of a
 * star_data in order: fact rows come from the end of those loaded on and leave from the front, so that the ones there stand side by side; a dimension's
 * spare rows, which no fact row refers to, come and leave likewise. */
#ifndef IVM_BENCH_STAR_MODEL_H
#define IVM_BENCH_STAR_MODEL_H

#include "measure.h"
#include "star_engine.h"

#define MODEL_DIMENSIONS 4

typedef struct star_model {
    star_data data;
    star_engine star;
    uint32_t fact_first, fact_end;               /* the fact rows that are there */
    uint32_t spare_rows, spare_come, spare_gone; /* of each dimension; in all dimensions, which take turns */
    random_state random;
} star_model;

/* One row of a push. An update is of a dimension row's attribute, in dimension 0. */
typedef enum model_change { FACT_INSERT, FACT_DELETE, DIMENSION_INSERT, DIMENSION_UPDATE, DIMENSION_DELETE, MODEL_CHANGES } model_change;
extern const char *const model_change_names[MODEL_CHANGES];

/* `shape` counts all fact rows that will ever come and, in dimension_rows or rows, all dimension rows; of these `spare_rows` a dimension are spare.
 * `fact_rows` are loaded, and all dimension rows but the spare ones. What a change of each kind needs is built. */
void star_model_open(star_model *model, const star_shape *shape, uint32_t fact_rows, uint32_t spare_rows);
void star_model_close(star_model *model);

/* Nanoseconds of the push. */
uint64_t star_model_push(star_model *model, model_change change);
/* How many groups of the view are not what recomputation gives. */
uint64_t star_model_unequal(star_model *model);

#endif
