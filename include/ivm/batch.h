/* Batches: what a user pushes. A batch collects changes of any number of tables and is applied as one: all of it or nothing. */
#ifndef IVM_BATCH_H
#define IVM_BATCH_H

#include "ivm/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes of tables of one engine, filled and then pushed. One thread at a time. */
typedef struct ivm_batch ivm_batch;

/* INSERT adds each row once, DELETE takes each away once: the whole row, as it is there. UPSERT replaces the row of the same key or inserts;
 * DELETE_KEY takes the key's columns alone, in the key's order. Both are invalid_argument for a table without a key, unsupported for a transient one.
 * WEIGHTED adds each row its weight many times, or takes it away where negative. */
typedef enum ivm_change { IVM_INSERT, IVM_DELETE, IVM_WEIGHTED, IVM_UPSERT, IVM_DELETE_KEY } ivm_change;

/* Makes an empty batch for one engine. The caller owns it until ivm_push_batch() takes it. Filling it touches no engine state, so that
 * one thread may fill while another pushes. */
IVM_API ivm_status ivm_batch_create(ivm_engine *engine, ivm_batch **batch, ivm_error *error) IVM_MUST_CHECK;
/* Frees a batch that was not pushed, and gives back what it borrowed. NULL is fine. */
IVM_API void ivm_batch_free(ivm_batch *batch);

/* Adds one change; values are copied, strings too. Changes apply in the order in which they are added; constraints are judged on the
 * batch's net result. `weight` counts for IVM_WEIGHTED alone. An int64 value fits a float64 or decimal column where it is exact in it.
 * The first mistake is remembered: a wrong count or type is type_mismatch, a null where none may be null_violation. Later calls that fill the
 * batch add nothing and return its status, and ivm_push_batch() fails with it: nothing need be checked in between, and who wants to know why
 * at once asks ivm_batch_status(). (A null in the key of IVM_DELETE_KEY finds no row: row_not_found when pushed.) */
IVM_API ivm_status ivm_batch_row(ivm_batch *batch, ivm_table *table, ivm_change change, int64_t weight, const ivm_value *values,
                                 size_t values_count);

/* The batch's first mistake so far, what it was told with by the call that made it and will be by ivm_push_batch(); IVM_OK where there is none. Where
 * a row is at fault the message says which, here and when pushed: "row 3" is the fourth that was added of its table, by whichever calls, whatever was
 * added of other tables in between. Takes no lock. */
IVM_API ivm_status ivm_batch_status(const ivm_batch *batch, ivm_error *error) IVM_MUST_CHECK;

#if !defined(__cplusplus)
/* ivm_batch_insert(batch, table, ivm_int64(1), ivm_string("a")) and the like: ivm_batch_row() of one row, in C alone. */
#define IVM_VALUES(...) (const ivm_value[]){ __VA_ARGS__ }, sizeof((const ivm_value[]){ __VA_ARGS__ }) / sizeof(ivm_value)
#define ivm_batch_insert(batch, table, ...) ivm_batch_row(batch, table, IVM_INSERT, 1, IVM_VALUES(__VA_ARGS__))
#define ivm_batch_delete(batch, table, ...) ivm_batch_row(batch, table, IVM_DELETE, 1, IVM_VALUES(__VA_ARGS__))
#define ivm_batch_upsert(batch, table, ...) ivm_batch_row(batch, table, IVM_UPSERT, 1, IVM_VALUES(__VA_ARGS__))
#define ivm_batch_delete_key(batch, table, ...) ivm_batch_row(batch, table, IVM_DELETE_KEY, 1, IVM_VALUES(__VA_ARGS__))
#endif

/* Adds many rows at once as column arrays of the table's types, in its order (IVM_DELETE_KEY: the key's columns). The arrays are borrowed:
 * they must stay as they are until the batch is pushed or freed. More than IVM_BATCH_ROWS_MAX rows are an overflow, remembered, or told when pushed
 * where parts come to more together; none of them is read. `rows->weights` counts for IVM_WEIGHTED alone. One call for a million
 * rows is the fast road: int64, float64 and timestamp columns are read in place. */
IVM_API ivm_status ivm_batch_columns(ivm_batch *batch, ivm_table *table, ivm_change change, const ivm_rows *rows);

/* What one table's part of a batch comes to once equal rows are added and zeros dropped: UNCHANGED: nothing; INSERT_ONLY: rows that come; MIXED:
 * others. */
typedef enum ivm_shape { IVM_UNCHANGED, IVM_INSERT_ONLY, IVM_MIXED } ivm_shape;

/* States that a table's part is already net and of this shape (INSERT_ONLY: no weight is negative). ivm_push_batch() checks it:
 * invalid_argument where it is not so. */
IVM_API ivm_status ivm_batch_state_shape(ivm_batch *batch, ivm_table *table, ivm_shape shape);

/* The net shape of a table's part as ivm_push_batch() would find it now. Cost: consolidating that part. Codes: those of a push of the
 * part alone. */
IVM_API ivm_status ivm_batch_shape(ivm_batch *batch, ivm_table *table, ivm_shape *shape, ivm_error *error) IVM_MUST_CHECK;

/* What the caller wants to find again: where in its input the batch ends. Any bytes, at most IVM_POSITION_SIZE_MAX (invalid_argument, remembered);
 * copied. The engine has it from the moment the batch is in, all or nothing with it; a batch without one leaves it as it was. A batch may be a
 * position alone. */
IVM_API ivm_status ivm_batch_position(ivm_batch *batch, const void *bytes, size_t size);

/* Applies the batch and brings every view up to date. Takes the batch: it is freed whatever the outcome. All or nothing: after any error
 * tables, views and statistics are as they were. `stats` (of this push) and `error` may be NULL. Cost: the batch's rows times the
 * probes of the terms that run.
 * Codes: the batch's remembered mistake, unknown_table (dropped since), type_mismatch (a column came or went since), row_not_found, duplicate_key,
 * append_only_violation, fk_violation, overflow, invalid_argument, unsupported (more than IVM_MASKS_RUN_MAX masks), in_use from inside a callback,
 * cancelled (ivm_engine_cancel()), out_of_memory. */
IVM_API ivm_status ivm_push_batch(ivm_engine *engine, ivm_batch *batch, ivm_stats *stats, ivm_error *error) IVM_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
