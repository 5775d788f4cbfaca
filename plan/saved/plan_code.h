/* Plans as bytes: what a user built, names as they were then, so that a view can be made again.
 *
 *     plan     op, count of inputs, inputs, then what the op has        expression     kind, then what the kind has
 *
 * Equal plans give equal bytes, however they were built: an alias that is the table's own name is none, and a scan by handle is one by name. */
#ifndef IVM__PLAN_CODE_H
#define IVM__PLAN_CODE_H

#include "code.h"
#include "plan.h"

void ivm__plan_code(ivm__code *code, const ivm_plan *plan);
/* Goes through the builders: what they refuse is corrupt, and so are bytes that are left. The caller owns *plan. corrupt, out_of_memory. */
ivm_status ivm__plan_decode(const uint8_t *bytes, size_t size, ivm_plan **plan, ivm_error *error) IVM_MUST_CHECK;

#endif
