/* `ivm feed`: newline-delimited JSON in, the views' changes out as newline-delimited JSON, for as long as lines come.
 *
 *     lines (feed_input.c, feed_inputs.c) -> a batch of lines -> changes of tables (feed_line.c, feed_row.c, feed_schema.c) -> push (feed_push.c)
 *           -> changes of views (feed_write.c) -> now and then a checkpoint (feed_checkpoint.c, feed_durable.c)
 *
 * Its plan is judged in feed_plan.c. Held at any time: one batch of lines, its changes, and the engine. The next lines are read when the changes
 * have been written, so that a slow reader behind slows the writer before. */
#ifndef IVM_BENCH_FEED_H
#define IVM_BENCH_FEED_H

#include "replay.h"

#include <assert.h>

typedef enum feed_format { FEED_FELDERA, FEED_DEBEZIUM, FEED_UPSERT, FEED_ROWS } feed_format; /* ROWS: in alone */
typedef enum feed_integers { FEED_MICROS, FEED_MILLIS, FEED_NANOS } feed_integers; /* what an integer in a timestamp column counts */

/* A table or view with what is asked of it for every line. Names live as long as the engine's catalog. */
typedef struct feed_table {
    ivm_table *table;
    const char *name;
    size_t columns_count, key_count;
    size_t key[IVM_TABLE_COLUMNS_MAX];
} feed_table;

typedef struct feed_view {
    ivm_view *view;
    size_t columns_count, key_count; /* key: leading columns, for the upsert format */
    char *quoted;                    /* its name as JSON */
    char **members;                  /* each column's, too */
} feed_view;

/* How far an input was read. */
typedef struct feed_place {
    uint64_t bytes, lines;
} feed_place;

#define FEED_INPUTS_MAX 13 /* as many as a position has room for */

/* Where a feed stands in its inputs and in its output file. It is the engine's position, cut behind the last input. */
typedef struct feed_position {
    uint64_t bad, output_bytes;
    uint64_t written; /* 1: the output has all up to output_bytes; 0: what the last batch changed comes behind, or is not there */
    uint64_t inputs_hash, inputs_count; /* hash: of what they are called, where they are several */
    feed_place inputs[FEED_INPUTS_MAX];
} feed_position;
static_assert(sizeof(feed_position) <= IVM_POSITION_SIZE_MAX, "a batch can carry it");

typedef struct feed_options {
    int from, to, integers; /* feed_format twice, feed_integers */
    const char *table, *views, *key, *output, *checkpoint, *durable;
    uint64_t batch_lines, wait_ms, line_max, every_ms, bad_max; /* bad_max 0: no limit */
    bool strict, stop, goes_on;
} feed_options;

/* A line of the batch under way: where in the batch, of which input, and the place behind it there. */
typedef struct feed_text {
    size_t at, size, input;
    feed_place end;
    bool left_out; /* found to be bad, and told */
} feed_text;

typedef struct feed_batch {
    char *bytes;
    size_t bytes_count, bytes_capacity;
    feed_text *lines;
    size_t lines_count, lines_capacity;
} feed_batch;

/* ---- Inputs (feed_input.c, feed_inputs.c) ------------------------------------------------------------------------------------------------ */

typedef struct feed_input {
    char *path;              /* NULL: standard input */
    const feed_table *table; /* of every line; NULL: a line says it */
    int descriptor;          /* -1: not open */
    bool is_file;
    char *bytes; /* read and not yet taken: from `first` to `end` */
    size_t first, end, capacity, line_max;
    size_t searched;  /* of them, without a line's end */
    uint64_t skipped; /* bytes still to be passed over, of a pipe */
    feed_place place; /* behind the last line that was taken */
    bool skipping;    /* within a line that is too long */
    bool ended, failed;
    bool done; /* ended, and every line was taken */
} feed_input;

typedef struct feed_inputs {
    feed_input list[FEED_INPUTS_MAX];
    size_t count, turn; /* turn: whose line comes next, if it has one */
} feed_inputs;

/* END: all have ended. INTERRUPTED: by a signal. FAILED, after a line on standard error: one cannot be read on; SHORT: or ends before the position. */
typedef enum feed_got { FEED_LINE, FEED_LINE_TOO_LONG, FEED_NOTHING_YET, FEED_INTERRUPTED, FEED_END, FEED_FAILED, FEED_SHORT } feed_got;

/* Opens a path that is set, or takes standard input, from `place` on: what lies before is passed over, unless it is standard input or a pipe and `goes_on`. False
 * after a line on standard error. */
bool input_open(feed_input *input, feed_place place, uint64_t line_max, bool goes_on);
/* Reads once, up to 64 KB. */
void input_read(feed_input *input);
/* The next line, without its end, borrowed until the next input_read(); END: there will be none. */
feed_got input_line(feed_input *input, const char **bytes, size_t *size);
void input_close(feed_input *input);

typedef struct feed_line {
    const char *bytes;
    size_t size, input;
} feed_line;

#define FEED_UNKNOWN_MAX 16
/* Members that are no columns, as "table.name", each once, in the order in which they came: so many are told of. */
typedef struct feed_unknown {
    char *names[FEED_UNKNOWN_MAX];
    size_t count, told;
    bool more, more_told; /* others have come */
} feed_unknown;

typedef struct feed_session {
    feed_options options;
    replay_session replay; /* its engine */
    feed_table *tables;
    feed_view *views;
    size_t tables_count, views_count;
    bool exact; /* a column is decimal: numbers with a point are kept as their digits */
    FILE *out;
    feed_inputs inputs;
    feed_position position;            /* behind the last lines that were pushed or found to be bad */
    uint64_t lines_before, bad_before; /* this run */
    uint64_t changes_count, absent_count;
    feed_unknown *unknown;
    bool restored; /* it goes on from a checkpoint, or a directory */
    bool stopped;  /* by a bad line */
} feed_session;

/* Takes "FILE" and "FILE:TABLE", "-" for standard input, which it is where there are none. False after a line on standard error. */
bool inputs_find(feed_session *feed, char *const *texts, size_t count);
bool inputs_open(feed_session *feed);
/* The next line of any of them: of files in the order given, each to its end, then of pipes as lines come, in turns. Waits `wait_ms` at most, for ever
 * below 0. Once a signal asked to end: the whole lines that were read already, then INTERRUPTED. */
feed_got inputs_next(feed_inputs *inputs, int wait_ms, feed_line *line);
void inputs_close(feed_inputs *inputs);

/* SIGTERM and SIGINT end the input from now on; SIGPIPE is a failed write. */
void signals_take(void);

/* ---- Lines (feed_line.c, feed_row.c) ---------------------------------------------------------------------------------------------------- */

typedef struct feed_change {
    const feed_table *table;
    ivm_change change;
    size_t values_count;
    ivm_value values[IVM_TABLE_COLUMNS_MAX];
} feed_change;

#define FEED_CHANGES_MAX 2
/* What one line says: no change at all (a tombstone behind a deletion), one, or two. */
typedef struct feed_changes {
    const feed_table *table; /* given: of every line of the input; NULL: the line says it */
    json_t *json;            /* owns the strings */
    const json_t *schema;    /* of the line's rows, borrowed from it; NULL: it has none */
    feed_change list[FEED_CHANGES_MAX];
    size_t count;
    char message[IVM_ERROR_MESSAGE_SIZE]; /* why a line is bad */
} feed_changes;

/* False, and a message, where the line is none of the format. changes_free() either way. */
bool line_read(const feed_session *feed, const char *bytes, size_t size, feed_changes *changes);
void changes_free(feed_changes *changes);

/* Notes why a line is bad; false. */
bool line_bad(feed_changes *changes, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next change of the line: a row given as an object by column names, or as an array in the table's order. `fallback` (may be NULL) has the columns that
 * `row` has not. */
bool row_read(const feed_session *feed, const feed_table *table, ivm_change change, const json_t *row, const json_t *fallback,
              feed_changes *changes);
void unknown_free(feed_unknown *unknown);
/* The same for a key: an object with its columns at least, or, of a key of one column, its value. */
bool key_read(const feed_session *feed, const feed_table *table, const json_t *key, feed_changes *changes);

/* What a line says of its own columns (feed_schema.c). NULL schemas say nothing. */
const json_t *schema_of_row(const json_t *line);
feed_integers schema_integers(const json_t *row_schema, const char *column, feed_integers otherwise);
/* False where the schema does not make the value a decimal in bytes; else *read says whether it is one of the type. */
bool schema_decimal(const json_t *row_schema, const char *column, const json_t *json, ivm_type type, bool *read, ivm_value *value);

/* ---- Pushing and writing ------------------------------------------------------------------------------------------------------------------ */

/* Pushes the lines and writes what they change; a bad line is told and left out, or ends the run where that is asked for. False where the run cannot go
 * on: after a line on standard error. The batch is empty afterwards. */
bool feed_push(feed_session *feed, feed_batch *batch);
void batch_add(feed_batch *batch, const feed_line *line, feed_place end);
void feed_tell_bad(feed_session *feed, size_t input, uint64_t number, const char *message);

/* Opens the output, cut to where the position says. False after a line on standard error. */
bool output_open(feed_session *feed);
bool output_close(feed_session *feed, bool ok);
/* What was written is on the disk, where it is a file. */
bool output_sync(feed_session *feed);
/* Writes what the last push changed in each view, or the `whole` view as insertions, and hands it on. False after a line on standard error. */
bool feed_write(feed_session *feed, bool whole);
bool views_find(feed_session *feed, const scenario_file *plan);
/* Whether a plan is one; else false after one line on standard error that names the file and the line. */
bool plan_is_catalog(const scenario_file *plan);
void views_free(feed_session *feed);

/* Goes on from the checkpoint file, if it is there, or from where the directory's engine is. */
bool feed_restore(feed_session *feed);
/* Writes it beside and renames it: a crash leaves the one before or this. */
bool feed_save(feed_session *feed);
/* The engine's position as a feed's; of a feed of other inputs it is refused. How to give one to a batch, and a batch that is it alone. */
bool position_read(feed_session *feed, ivm_error *error);
void position_put(ivm_batch *batch, const feed_position *position);
ivm_status position_give(feed_session *feed, ivm_error *error);

/* Opens the directory (feed_durable.c); *made: so many of the plan's lines are in it, the last of them the last that could be. False after a line on
 * standard error. */
bool durable_open(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan, size_t *made);
/* Goes on from the engine's position, if lines have come. */
bool durable_restore(feed_session *feed);
/* Notes that all is written, and drops the log before. */
bool durable_save(feed_session *feed);

#endif
