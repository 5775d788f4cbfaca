/* A table of every type whose rows are numbered, for the tests of snapshots. */
#ifndef TEST_SNAPSHOT_CASE_H
#define TEST_SNAPSHOT_CASE_H

#include "allocator.h"
#include "snapshot.h"

#define SNAPSHOT_COLUMNS 8u /* the id, then seven of other types */

extern test_allocator snapshot_allocator;
extern ivm_engine *snapshot_engine;
extern ivm_error snapshot_error;
extern const ivm_column_definition snapshot_every[SNAPSHOT_COLUMNS];

void snapshot_open(void);
void snapshot_close(void); /* asserts that nothing is left */
ivm_table *snapshot_table(const char *name, const char *key);
/* Row i of any number of rows, all different; some cells null, never the id, which is i times an odd number. */
void snapshot_row_of(uint64_t i, ivm_value values[SNAPSHOT_COLUMNS], char text[32]);
bool snapshot_is_row(const ivm_rows *rows, size_t at, uint64_t i);
/* One batch of rows first .. first + count. */
void snapshot_push(ivm_table *table, ivm_change change, uint64_t first, uint64_t count);
ivm_snapshot *snapshot_read(ivm_table *table);
bool snapshot_same_value(const ivm_value *a, const ivm_value *b);

#endif
