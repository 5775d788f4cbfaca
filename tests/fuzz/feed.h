/* Rows for whatever tables and views an engine has, for targets that made them from their input: nothing is known of them but what the catalog
 * says. Statuses are not judged: a batch that breaks a constraint fails, as it should. */
#ifndef FEED_H
#define FEED_H

#include "ivm/ivm.h"

#define FEED_BYTES_MAX ((size_t)256 << 20) /* that all engines of feed_open() together may hold: past it allocation fails */

/* An engine without tables; its memory is counted. */
ivm_engine *feed_open(uint64_t hash_seed);
/* The last one: ends the process where any memory is left. */
void feed_close(ivm_engine *engine);

/* A batch for each table, in order: some rows come, some that are there go. All drawn from the seed. */
void feed_push(ivm_engine *engine, uint64_t seed);
/* Refreshes deferred views, reads every view and what last changed in it, audits and explains it. */
void feed_look(ivm_engine *engine);

#endif
