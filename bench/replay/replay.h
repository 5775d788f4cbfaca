/* Replaying scenario files. A file is read whole (scenario_file.c), then its lines are applied in order to one fresh engine (replay.c):
 * replay_catalog.c declares, replay_push.c pushes and refreshes, replay_expect.c compares contents with replay_bag.c, replay_terms.c compares join
 * terms, replay_checkpoint.c saves and restores; replay_durable.c keeps engines in directories; replay_audit.c audits and replay_digest.c sums up
 * what the views hold. All values pass through replay_cell.c. */
#ifndef IVM_BENCH_REPLAY_H
#define IVM_BENCH_REPLAY_H

#include "arena.h"
#include "ivm/ivm.h"

#include <jansson.h>
#include <stdio.h>

/* ---- Files (scenario_file.c) --------------------------------------------------------------------------------------------------- */

typedef struct scenario_line {
    json_t *json; /* an object */
    size_t number;
} scenario_line;

typedef struct scenario_file {
    const char *path;
    scenario_line *lines;
    size_t lines_count, lines_capacity;
} scenario_file;

/* Reads all lines, "-" from standard input. False after one line on standard error that names the file and the line. */
bool scenario_file_read(const char *path, scenario_file *file);
/* The same of an open stream, called `path` in messages. */
bool scenario_file_take(FILE *in, const char *path, scenario_file *file);
void scenario_file_free(scenario_file *file);

/* A number too great for JSON's C types comes as {"big": "its digits"}: valid for a decimal or a float64, for nothing else. */
#define BIG_NUMBER "big"
/* One line as JSON, such numbers wrapped, and `exact` those with a point or an exponent too. NULL: it is none. The caller owns it. */
json_t *json_line_parse(const char *line, size_t size, bool exact, json_error_t *error);

/* ---- One scenario (replay.c) --------------------------------------------------------------------------------------------------- */

/* A running sum of what the views hold after each step (replay_digest.c). All zero: not asked for. */
typedef struct replay_digest {
    bool wanted;
    uint64_t value;
    const char **views; /* in the order in which they were made; names borrowed from the file's lines */
    size_t views_count, views_capacity;
} replay_digest;

typedef struct replay_session {
    ivm_engine *engine;
    piece_arena memory; /* of the line under way */
    json_t *explained;  /* borrowed: the last explain, if no push or refresh came after it */
    ivm_error error;    /* why the line under way failed */
    char *unheld;       /* what its expectation found instead; freed by the runner */
    replay_digest digest;
    bool audits;                /* every view is audited after each push and refresh */
    bool restored;              /* before each push and refresh the engine is saved and restored */
    const char *durable;        /* where the engine's directory is made; NULL: it has none */
    bool is_durable;            /* the engine is, still */
    uint64_t reopened;          /* how often it was saved and restored, or closed and opened */
    ivm_engine_options how;     /* it was opened with */
    struct replay_saved *saved; /* checkpoints by name */
    size_t saved_count, saved_capacity;
} replay_session;

typedef struct replay_counts {
    size_t scenarios, expectations, wrong;
    size_t failed; /* commands among the wrong */
} replay_counts;

/* Opens an engine with these options, in a directory where `durable` is one. False after a line on standard error. */
bool replay_open(replay_session *replay, const ivm_engine_options *options, const char *durable);
/* The view that this line of the file makes, if it is still there and no earlier line names it; else NULL. */
ivm_view *replay_view_made(replay_session *replay, const scenario_file *file, size_t at);
/* Audits the views that are there after line `at`, a push or refresh that went through (replay_audit.c). What differs is counted as wrong and told. */
void replay_audit(replay_session *replay, const scenario_file *file, size_t at, replay_counts *counts);
/* Applies all lines. What does not hold is counted and told on standard error; silent: of commands alone, not of expectations. */
void replay_run(replay_session *replay, const scenario_file *file, bool silent, replay_counts *counts);
void replay_close(replay_session *replay);

/* The words of the options in the order of their values: row, batch, off; auto, mobius, telescoping. */
extern const char *const fk_pruning_words[];
extern const char *const join_rule_words[];
int word_position(const char *const *words, const char *word); /* -1: none of them */

/* Sets the error and gives its status. */
ivm_status replay_fail(replay_session *replay, ivm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Members by name: NULL where there is none or it is no string. */
const char *member_text(const json_t *object, const char *name);
/* A list of names as "a, b", in the line's memory; NULL where it is no list of strings. A missing list is "". */
const char *member_names(replay_session *replay, const json_t *object, const char *name);

/* ---- Commands ------------------------------------------------------------------------------------------------------------------ */

ivm_status replay_table(replay_session *replay, const json_t *line);
ivm_status replay_foreign_key(replay_session *replay, const json_t *line);
ivm_status replay_view(replay_session *replay, const json_t *line);
/* A view line's plan; NULL, which is none, fails too. The caller owns *plan. */
ivm_status plan_read(const json_t *json, ivm_plan **plan, ivm_error *error);
ivm_status replay_set(replay_session *replay, const json_t *line);
ivm_status replay_drop_table(replay_session *replay, const json_t *line);
ivm_status replay_drop_view(replay_session *replay, const json_t *line);
ivm_status replay_push(replay_session *replay, const json_t *line);
ivm_status replay_refresh(replay_session *replay, const json_t *line);
ivm_status replay_checkpoint(replay_session *replay, const json_t *line);
ivm_status replay_restore(replay_session *replay, const json_t *line);
ivm_status replay_expect(replay_session *replay, const json_t *line);
ivm_status replay_expect_changes(replay_session *replay, const json_t *line);
ivm_status replay_explain(replay_session *replay, const json_t *line);
ivm_status replay_expect_terms(replay_session *replay, const json_t *line);
ivm_status replay_expect_deltas(replay_session *replay, const json_t *line);
/* Writes "missing [rows]; unexpected [rows]" of what ivm_audit_view() found, with their weights (replay_expect.c). */
ivm_status replay_differences_write(replay_session *replay, ivm_view *view, ivm_snapshot *differences, FILE *out);

/* Saves the engine and goes on from what was saved, in it or in a new one in turn (replay_checkpoint.c). */
ivm_status replay_reopen(replay_session *replay);
void checkpoints_free(replay_session *replay);

/* Engines in directories (replay_durable.c). */
ivm_status replay_durable_open(replay_session *replay, bool anew);
ivm_status replay_durable_reopen(replay_session *replay); /* where it fails the engine may be an empty one, not durable */
void replay_durable_end(replay_session *replay);

/* ---- Digests (replay_digest.c) ------------------------------------------------------------------------------------------------- */

void digest_view_made(replay_digest *digest, const char *name);
void digest_view_dropped(replay_digest *digest, const char *name);
/* Takes in how a push or refresh ended and what every view holds after it. */
ivm_status digest_step(replay_session *replay, ivm_status ended);
/* Takes in bytes, where a digest is wanted. */
void digest_bytes(replay_digest *digest, const void *bytes, size_t size);
/* Other views from now on: the array is copied. */
void digest_views_set(replay_digest *digest, const char *const *views, size_t count);
void digest_free(replay_digest *digest);

/* ---- Values (replay_cell.c) ---------------------------------------------------------------------------------------------------- */

/* False where the JSON is no value of the type. Strings are borrowed from the JSON. */
bool cell_read(ivm_type type, const json_t *json, ivm_value *value);
void cell_write(ivm_type type, const ivm_value *value, FILE *out);

/* ---- Bags (replay_bag.c) ------------------------------------------------------------------------------------------------------- */

#define WEIGHT_LISTED_MAX 10000 /* of a row that an expectation lists as often as its weight says */

typedef struct bag_row {
    int64_t weight;
    ivm_value *cells; /* NULL: this row can equal no other */
    const json_t *json;
} bag_row;

typedef struct row_bag {
    bag_row *rows;
    size_t rows_count, rows_capacity;
} row_bag;

/* How two bags are compared: `near` marks the columns whose values may differ by a relative 1e-12. */
typedef struct bag_columns {
    size_t count;
    const ivm_type *types;
    const bool *near;
} bag_columns;

void bag_add(row_bag *bag, bag_row row);
/* Adds the snapshot's rows; cells and their strings are in `memory`. */
ivm_status bag_take(row_bag *bag, ivm_snapshot *snapshot, const bag_columns *columns, piece_arena *memory);
void bag_free(row_bag *bag);
/* Adds equal rows' weights, drops zeros, and with `repeat` lists each row as often as its weight says. */
void bag_net(row_bag *bag, const bag_columns *columns, bool repeat);
/* Removes from both the rows that they share; what stays is missing from one or unexpected in the other. Sorts both. */
void bag_cancel(row_bag *want, row_bag *got, const bag_columns *columns);

#endif
