/* Scenario files judged by the oracle alone: the conformance cases hold it as they hold the engine. */
#ifndef NAIVE_SCENARIO_H
#define NAIVE_SCENARIO_H

#include "naive.h"

#include <jansson.h>

/* A plan from JSON (scenario_plan.c); strings are borrowed from it. invalid_plan, invalid_argument (a type). */
ivm_status naive_plan_read(naive_pool *pool, const json_t *json, naive_plan **plan);

#endif
