/* `ivm feed`: newline-delimited JSON in, the views' changes out as newline-delimited JSON, for as long as lines come.
 *
 *     lines (feed_input.c) -> a batch of lines -> changes of tables (feed_line.c, feed_row.c, feed_schema.c) -> push (feed_push.c)
 *           -> changes of views (feed_write.c) -> now and then a checkpoint (feed_checkpoint.c)
 *
 * Held at any time: one batch of lines, its changes, and the engine. The next lines are read when the changes have been written, so that a slow
 * reader behind slows the writer before. */
#ifndef IVM_BENCH_FEED_H
#define IVM_BENCH_FEED_H

#include "replay.h"

typedef enum feed_format { FEED_FELDERA, FEED_DEBEZIUM, FEED_UPSERT } feed_format;
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

/* Where in its input, and in its output file, a feed stands. It is the engine's position. */
typedef struct feed_position {
    uint64_t input_bytes, lines, bad, output_bytes;
    uint64_t written; /* 1: what was changed up to there; 0: what the last batch changed may not be */
} feed_position;

typedef struct feed_options {
    int from, to, integers; /* feed_format twice, feed_integers */
    const char *table, *views, *key, *input, *output, *checkpoint, *durable;
    uint64_t batch_lines, wait_ms, line_max, every_ms;
    bool strict, stop, goes_on;
} feed_options;

/* A line of the batch under way. `end` is the input's offset behind it. */
typedef struct feed_text {
    size_t at, size;
    uint64_t number, end;
    bool left_out; /* found to be bad, and told */
} feed_text;

typedef struct feed_batch {
    char *bytes;
    size_t bytes_count, bytes_capacity;
    feed_text *lines;
    size_t lines_count, lines_capacity;
} feed_batch;

typedef struct feed_session {
    feed_options options;
    replay_session replay; /* its engine */
    feed_table *tables;
    feed_view *views;
    size_t tables_count, views_count;
    bool exact; /* a column is decimal: numbers with a point are kept as their digits */
    FILE *out;
    feed_position position; /* behind the last line that was pushed or found to be bad */
    uint64_t changes_count, absent_count;
    bool restored; /* it goes on from a checkpoint */
    bool stopped;  /* by a bad line */
} feed_session;

/* ---- Input (feed_input.c) -------------------------------------------------------------------------------------------------------------- */

typedef struct feed_input {
    int descriptor;
    char *bytes; /* read and not yet taken: from `first` to `end` */
    size_t first, end, capacity, line_max;
    size_t searched; /* of them, without a line's end */
    uint64_t offset, number;
    bool skipping; /* within a line that is too long */
    bool ended, failed;
} feed_input;

typedef enum feed_got { FEED_LINE, FEED_LINE_TOO_LONG, FEED_NOTHING_YET, FEED_INTERRUPTED, FEED_END, FEED_FAILED } feed_got;

/* From the position on: what lies before it is passed over, unless the input goes on there. False after a line on standard error. */
bool input_open(feed_input *input, const feed_options *options, const feed_position *position);
/* The next line, without its end; borrowed until the next call. Waits `wait_ms` at most, for ever below 0. Once a signal asked to end: the whole lines that
 * were read already, then INTERRUPTED. */
feed_got input_next(feed_input *input, int wait_ms, const char **bytes, size_t *size);
void input_close(feed_input *input);

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
    json_t *json;         /* owns the strings */
    const json_t *schema; /* of the line's rows, borrowed from it; NULL: it has none */
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
void batch_add(feed_batch *batch, const char *bytes, size_t size, uint64_t number, uint64_t end);
void feed_tell_bad(feed_session *feed, uint64_t number, const char *message);

/* Opens the output, cut to where the position says. False after a line on standard error. */
bool output_open(feed_session *feed);
bool output_close(feed_session *feed, bool ok);
/* Writes what the last push changed in each view, or the `whole` view as insertions, and hands it on. False after a line on standard error. */
bool feed_write(feed_session *feed, bool whole);
bool views_find(feed_session *feed, const scenario_file *plan);
void views_free(feed_session *feed);

/* Goes on from the checkpoint file, if it is there. */
bool feed_restore(feed_session *feed);
/* Writes it beside and renames it: a crash leaves the one before or this. */
bool feed_save(feed_session *feed);
/* The engine's position as a feed's, and a batch that is it alone. */
bool position_read(feed_session *feed, ivm_error *error);
ivm_status position_give(feed_session *feed, ivm_error *error);

/* Opens the directory (feed_durable.c); *created: it is new, and its catalog empty. False after a line on standard error. */
bool durable_open(feed_session *feed, const ivm_engine_options *how, const scenario_file *plan, bool *created);
/* Notes that all is written, and drops the log before. */
bool durable_save(feed_session *feed);

#endif
