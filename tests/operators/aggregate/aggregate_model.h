/* Aggregates for tests, inside: what every function is of, for the operator (aggregate_case.c) and its model (aggregate_model.c). */
#ifndef TEST_AGGREGATE_MODEL_H
#define TEST_AGGREGATE_MODEL_H

#include "aggregate_case.h"

enum { AGG_G, AGG_H, AGG_V, AGG_D, AGG_M, AGG_S, AGG_B, AGG_T };

#define AGG_NO_ARGUMENT UINT32_MAX
#define AGG_UNTYPED_NULL (UINT32_MAX - 1)

typedef struct agg_function {
    ivm__aggregate_function function;
    uint32_t column;
    bool where; /* v > 0 */
} agg_function;

extern const ivm_type agg_types[AGG_COLUMNS];
extern const agg_function agg_functions[AGG_FUNCTIONS];

agg_output *agg_outputs_next(agg_outputs *outputs);

#endif
