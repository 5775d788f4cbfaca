/* The main job: flights out of New York joined to their airlines, airports, planes and weather, a day a batch. flights_data.c has the
 * rows and which of them refer to which, flights_engine.c feeds them to the engine, flights_check.c computes the views again without
 * it, flights_show.c prints, flights.c runs the days. */
#ifndef IVM_BENCH_FLIGHTS_H
#define IVM_BENCH_FLIGHTS_H

#include "ivm/ivm.h"
#include "sheet.h"

#include <stdio.h>

/* ---- What there is (flights_data.c) -------------------------------------------------------------------------------------------- */

typedef enum flights_table { AIRLINE, AIRPORT, PLANE, WEATHER, DIMENSIONS_COUNT, FLIGHT = DIMENSIONS_COUNT, TABLES_COUNT } flights_table;

#define TABLE_COLUMNS_MAX 16
#define PARENT_NONE UINT32_MAX

typedef struct table_column {
    const char *name, *type;
    bool not_null;
} table_column;

typedef struct table_schema {
    const char *name, *file, *key; /* key NULL: a bag */
    table_column columns[TABLE_COLUMNS_MAX];
} table_schema;
extern const table_schema table_schemas[TABLES_COUNT];

/* Columns of a flight that name a row of a dimension, declared as a foreign key: relied on where every flight has its parent, tracked where
 * some have none. */
typedef struct flights_link {
    const char *name, *columns, *parent_columns;
    const char *child[2], *parents[2]; /* the same one by one */
    flights_table parent;
    ivm_trust trust;
} flights_link;
typedef enum flights_link_name { BY_CARRIER, BY_ORIGIN, BY_DESTINATION, BY_TAIL_NUMBER, BY_HOUR, LINKS_COUNT } flights_link_name;
extern const flights_link flights_links[LINKS_COUNT];

/* A view: flights joined by links, grouped by dimension columns, flights counted, and measures of them taken. */
typedef enum measure_kind { AVERAGE_OF_FLIGHT, SUM_OF_PARENT } measure_kind;
typedef struct view_measure {
    const char *name, *column;
    measure_kind kind;
} view_measure;
typedef struct view_group {
    const char *name, *column;
    flights_link_name link;
} view_group;
typedef struct flights_view {
    const char *name, *title;
    flights_link_name links[2];
    size_t links_count;
    view_group groups[2];
    size_t groups_count;
    view_measure measures[2];
    size_t measures_count;
} flights_view;
#define FLIGHTS_VIEWS_COUNT 3
extern const flights_view flights_views[FLIGHTS_VIEWS_COUNT];

typedef struct flights_data {
    sheet sheets[TABLES_COUNT];
    size_t columns[TABLES_COUNT][TABLE_COLUMNS_MAX]; /* of the schema, in the sheet */
    uint32_t *parents[LINKS_COUNT];                  /* of each flight: the parent's row or PARENT_NONE */
    size_t *days;                                    /* each day's first flight, and the end */
    size_t days_count;
    bool *arrived[DIMENSIONS_COUNT];   /* rows that the engine has */
    bool *corrected[DIMENSIONS_COUNT]; /* rows that a correction has reached */
} flights_data;

bool flights_data_read(flights_data *data, const char *directory);
void flights_data_free(flights_data *data);
/* Whether the flight's key of this link has no empty part and no parent. */
bool flights_orphan(const flights_data *data, flights_link_name link, size_t flight);
/* The position of the schema's column; it must exist. */
size_t flights_column(flights_table table, const char *name);
/* A cell as it is known now: before its correction some are as first reported. NULL for no value. Long enough a `text` may be used. */
#define CELL_TEXT_SIZE 64
const char *flights_cell(const flights_data *data, flights_table table, size_t row, size_t column, char text[CELL_TEXT_SIZE]);
/* Whether a correction changes this row. */
bool flights_correctable(const flights_data *data, flights_table table, size_t row);

/* ---- The engine's side (flights_engine.c) -------------------------------------------------------------------------------------- */

typedef struct flights_engine {
    ivm_engine *engine;
    ivm_table *tables[TABLES_COUNT];
    ivm_view *views[FLIGHTS_VIEWS_COUNT];
    ivm_fact *facts[LINKS_COUNT];
} flights_engine;

typedef struct flights_totals {
    ivm_stats stats; /* summed over pushes */
    uint64_t flights, dimension_rows, corrections, masks;
} flights_totals;

bool flights_engine_open(flights_engine *engine, const ivm_planner_options *planner);
void flights_engine_close(flights_engine *engine);
/* Pushes a day: rows of dimensions that its flights are the first to need, corrections that are due, its flights. */
bool flights_day_push(flights_engine *engine, flights_data *data, size_t day, flights_totals *totals);

/* ---- Checking and showing ------------------------------------------------------------------------------------------------------ */

/* Computes the view from the first `flights` flights and compares every row. The number of rows that differ or are missing. */
size_t flights_view_check(const flights_data *data, size_t flights, const flights_view *view, ivm_view *kept, size_t *rows_count);
/* Has the engine compute the view anew. The number of rows in which it differs, at least 1 if that failed, which is told. */
uint64_t flights_view_audit(ivm_view *kept);
/* Counts those of the first `flights` flights that wait for each key of a tracked link and compares with how the fact stands, key by key. The
 * number of keys that differ or are missing, and one if the fact's own counts differ. */
size_t flights_link_check(const flights_data *data, size_t flights, flights_link_name link, ivm_fact *fact, ivm_fact_state *state);

void flights_progress(const flights_data *data, size_t day, size_t days, const flights_totals *totals);
void flights_top_show(const flights_view *view, ivm_view *kept);

#endif
