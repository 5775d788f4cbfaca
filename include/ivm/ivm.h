/* ivm keeps joins and aggregates over changing tables up to date. Read on in: status.h (codes, errors), value.h (types, values, column
 * arrays), engine.h (engines, tables, foreign keys), batch.h (changes, pushing), plan.h (what a view computes), view.h (views,
 * snapshots, explain), checkpoint.h (engines as streams of bytes), durable.h (engines that live in a directory), arrow.h (batches from and
 * snapshots as Arrow arrays and streams), version.h. */
#ifndef IVM_H
#define IVM_H

#include "ivm/arrow.h"
#include "ivm/batch.h"
#include "ivm/checkpoint.h"
#include "ivm/durable.h"
#include "ivm/engine.h"
#include "ivm/plan.h"
#include "ivm/status.h"
#include "ivm/value.h"
#include "ivm/version.h"
#include "ivm/view.h"

#endif
