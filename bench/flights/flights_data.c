/* The rows of the main job, as text cells, and for each flight the row of every dimension that it names: found by sorting the dimension
 * on its key and searching, n log n. That it can be found decides which foreign keys are relied on. */
#include "flights.h"

#include "arena.h"
#include "option.h"

#include <stdlib.h>
#include <string.h>

const table_schema table_schemas[TABLES_COUNT] = {
    [AIRLINE] = { "airline", "airlines", "carrier", { { "carrier", "string", true }, { "name", "string", true } } },
    [AIRPORT] = { "airport",
                  "airports",
                  "faa",
                  { { "faa", "string", true },
                    { "name", "string", true },
                    { "lat", "float64", false },
                    { "lon", "float64", false },
                    { "alt", "int64", false },
                    { "tz", "int64", false },
                    { "dst", "string", false },
                    { "tzone", "string", false } } },
    [PLANE] = { "plane",
                "planes",
                "tailnum",
                { { "tailnum", "string", true },
                  { "year", "int64", false },
                  { "type", "string", false },
                  { "manufacturer", "string", true },
                  { "model", "string", false },
                  { "engines", "int64", false },
                  { "seats", "int64", false },
                  { "speed", "int64", false },
                  { "engine", "string", false } } },
    [WEATHER] = { "weather",
                  "weather",
                  "origin, time_hour",
                  { { "origin", "string", true },
                    { "time_hour", "timestamp", true },
                    { "temp", "float64", false },
                    { "dewp", "float64", false },
                    { "humid", "float64", false },
                    { "wind_dir", "int64", false },
                    { "wind_speed", "float64", false },
                    { "wind_gust", "float64", false },
                    { "precip", "float64", false },
                    { "pressure", "float64", false },
                    { "visib", "decimal(4,2)", true } } },
    [FLIGHT] = { "flight",
                 "flights",
                 NULL,
                 { { "year", "int64", true },
                   { "month", "int64", true },
                   { "day", "int64", true },
                   { "carrier", "string", true },
                   { "flight", "int64", true },
                   { "tailnum", "string", false },
                   { "origin", "string", true },
                   { "dest", "string", true },
                   { "time_hour", "timestamp", true },
                   { "sched_dep_time", "int64", false },
                   { "dep_delay", "int64", false },
                   { "arr_delay", "int64", false },
                   { "air_time", "int64", false },
                   { "distance", "int64", false } } },
};

/* A key is relied on only where every flight of the slice keeps it: destinations, tail numbers and hours without a parent exist. */
const flights_link flights_links[LINKS_COUNT] = {
    [BY_CARRIER] = { "carrier", "carrier", "carrier", { "carrier" }, { "carrier" }, AIRLINE, IVM_RELY },
    [BY_ORIGIN] = { "origin", "origin", "faa", { "origin" }, { "faa" }, AIRPORT, IVM_RELY },
    [BY_DESTINATION] = { "destination", "dest", "faa", { "dest" }, { "faa" }, AIRPORT, IVM_TRACKED },
    [BY_TAIL_NUMBER] = { "tail_number", "tailnum", "tailnum", { "tailnum" }, { "tailnum" }, PLANE, IVM_TRACKED },
    [BY_HOUR] = { "hour",
                  "origin, time_hour",
                  "origin, time_hour",
                  { "origin", "time_hour" },
                  { "origin", "time_hour" },
                  WEATHER,
                  IVM_TRACKED },
};

const flights_view flights_views[FLIGHTS_VIEWS_COUNT] = {
    { "delay_by_carrier",
      "average delay in minutes by carrier",
      { BY_CARRIER },
      1,
      { { "carrier", "name", BY_CARRIER } },
      1,
      { { "departure", "dep_delay", AVERAGE_OF_FLIGHT }, { "arrival", "arr_delay", AVERAGE_OF_FLIGHT } },
      2 },
    { "fleet_by_manufacturer",
      "flights and seats by plane manufacturer",
      { BY_TAIL_NUMBER },
      1,
      { { "manufacturer", "manufacturer", BY_TAIL_NUMBER } },
      1,
      { { "seats", "seats", SUM_OF_PARENT } },
      1 },
    { "delay_by_visibility",
      "average delay in minutes by origin airport and visibility in miles",
      { BY_ORIGIN, BY_HOUR },
      2,
      { { "airport", "name", BY_ORIGIN }, { "visibility", "visib", BY_HOUR } },
      2,
      { { "departure", "dep_delay", AVERAGE_OF_FLIGHT } },
      1 },
};

/* ---- Columns ------------------------------------------------------------------------------------------------------------------- */

size_t flights_column(flights_table table, const char *name)
{
    const table_column *columns = table_schemas[table].columns;
    size_t column = 0;
    while (strcmp(columns[column].name, name) != 0) {
        column++;
    }
    return column;
}

static bool sheets_read(flights_data *data, const char *directory)
{
    for (int t = 0; t < TABLES_COUNT; t++) {
        const table_schema *schema = &table_schemas[t];
        sheet *s = &data->sheets[t];
        if (!sheet_read(s, directory, schema->file)) {
            return false;
        }
        for (size_t c = 0; schema->columns[c].name; c++) {
            data->columns[t][c] = sheet_column(s, schema->columns[c].name);
            if (data->columns[t][c] == s->columns_count) {
                usage_error("%s/%s.csv.zst: column %s is missing", directory, schema->file, schema->columns[c].name);
                return false;
            }
        }
    }
    return true;
}

static const char *raw_cell(const flights_data *data, flights_table table, size_t row, const char *column)
{
    return sheet_cell(&data->sheets[table], row, data->columns[table][flights_column(table, column)]);
}

/* ---- Parents ------------------------------------------------------------------------------------------------------------------- */

/* Rows of a dimension in the order of the link's key. */
typedef struct parent_order {
    const sheet *sheet;
    size_t columns[2], columns_count;
    uint32_t *rows;
} parent_order;

static int row_compare(const void *a, const void *b, void *context)
{
    const parent_order *order = context;
    int result = 0;
    for (size_t c = 0; c < order->columns_count && !result; c++) {
        result = strcmp(sheet_cell(order->sheet, *(const uint32_t *)a, order->columns[c]),
                        sheet_cell(order->sheet, *(const uint32_t *)b, order->columns[c]));
    }
    return result;
}

static uint32_t parent_find(const parent_order *order, const char *const key[2])
{
    size_t low = 0, high = order->sheet->rows_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int result = 0;
        for (size_t c = 0; c < order->columns_count && !result; c++) {
            result = strcmp(key[c], sheet_cell(order->sheet, order->rows[middle], order->columns[c]));
        }
        if (!result) {
            return order->rows[middle];
        }
        if (result < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return PARENT_NONE;
}

/* False where two rows share a key. */
static bool order_make(const flights_data *data, const flights_link *link, parent_order *order)
{
    const sheet *s = &data->sheets[link->parent];
    *order = (parent_order){ .sheet = s, .rows = memory_take(s->rows_count * sizeof(uint32_t)) };
    for (; order->columns_count < 2 && link->parents[order->columns_count]; order->columns_count++) {
        size_t column = flights_column(link->parent, link->parents[order->columns_count]);
        order->columns[order->columns_count] = data->columns[link->parent][column];
    }
    for (uint32_t i = 0; i < s->rows_count; i++) {
        order->rows[i] = i;
    }
    qsort_r(order->rows, s->rows_count, sizeof *order->rows, row_compare, order);
    for (size_t i = 1; i < s->rows_count; i++) {
        if (row_compare(&order->rows[i - 1], &order->rows[i], order) == 0) {
            usage_error("%s: two rows of one key", table_schemas[link->parent].file);
            return false;
        }
    }
    return true;
}

static bool empty(const char *cell)
{
    return !*cell || strcmp(cell, "NA") == 0;
}

/* The cells of a flight that name its parent. False where one is empty: it refers to nothing. */
static bool child_key(const flights_data *data, const flights_link *link, size_t flight, const char *key[2])
{
    for (size_t c = 0; c < 2 && link->child[c]; c++) {
        key[c] = raw_cell(data, FLIGHT, flight, link->child[c]);
        if (empty(key[c])) {
            return false;
        }
    }
    return true;
}

static bool parents_find(flights_data *data, flights_link_name name)
{
    const flights_link *link = &flights_links[name];
    size_t flights = data->sheets[FLIGHT].rows_count;
    parent_order order;
    bool unique = order_make(data, link, &order);
    data->parents[name] = memory_take(flights * sizeof(uint32_t));
    for (size_t f = 0; f < flights && unique; f++) {
        const char *key[2] = { NULL, NULL };
        data->parents[name][f] = child_key(data, link, f, key) ? parent_find(&order, key) : PARENT_NONE;
    }
    free(order.rows);
    return unique;
}

bool flights_orphan(const flights_data *data, flights_link_name link, size_t flight)
{
    const char *key[2];
    return data->parents[link][flight] == PARENT_NONE && child_key(data, &flights_links[link], flight, key);
}

/* ---- Days ---------------------------------------------------------------------------------------------------------------------- */

static bool same_day(const flights_data *data, size_t a, size_t b)
{
    return strcmp(raw_cell(data, FLIGHT, a, "day"), raw_cell(data, FLIGHT, b, "day")) == 0 &&
           strcmp(raw_cell(data, FLIGHT, a, "month"), raw_cell(data, FLIGHT, b, "month")) == 0;
}

static void days_cut(flights_data *data)
{
    size_t flights = data->sheets[FLIGHT].rows_count, capacity = 0;
    for (size_t f = 0; f < flights; f++) {
        if (!f || !same_day(data, f - 1, f)) {
            data->days = memory_room(data->days, data->days_count + 1, &capacity, sizeof *data->days);
            data->days[data->days_count++] = f;
        }
    }
    data->days = memory_grow(data->days, (data->days_count + 1) * sizeof *data->days);
    data->days[data->days_count] = flights;
}

bool flights_data_read(flights_data *data, const char *directory)
{
    *data = (flights_data){ 0 };
    bool ok = sheets_read(data, directory);
    for (int l = 0; l < LINKS_COUNT && ok; l++) {
        ok = parents_find(data, (flights_link_name)l);
    }
    if (!ok) {
        flights_data_free(data);
        return false;
    }
    days_cut(data);
    for (int t = 0; t < DIMENSIONS_COUNT; t++) {
        data->arrived[t] = memory_take(data->sheets[t].rows_count);
        data->corrected[t] = memory_take(data->sheets[t].rows_count);
    }
    return true;
}

void flights_data_free(flights_data *data)
{
    for (int t = 0; t < TABLES_COUNT; t++) {
        sheet_free(&data->sheets[t]);
    }
    for (int l = 0; l < LINKS_COUNT; l++) {
        free(data->parents[l]);
    }
    for (int t = 0; t < DIMENSIONS_COUNT; t++) {
        free(data->arrived[t]);
        free(data->corrected[t]);
    }
    free(data->days);
    *data = (flights_data){ 0 };
}

/* ---- Corrections --------------------------------------------------------------------------------------------------------------- */

/* What a correction changes: an airline loses the "Inc." of its name, makers written in several ways become one, and a visibility
 * that was first reported in whole miles gets its fraction. */
static const char *corrected_maker(const char *maker)
{
    static const char *const makers[][2] = { { "AIRBUS INDUSTRIE", "AIRBUS" },
                                             { "MCDONNELL DOUGLAS AIRCRAFT CO", "MCDONNELL DOUGLAS" },
                                             { "MCDONNELL DOUGLAS CORPORATION", "MCDONNELL DOUGLAS" },
                                             { "CANADAIR LTD", "CANADAIR" } };
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        if (strcmp(makers[i][0], maker) == 0) {
            return makers[i][1];
        }
    }
    return maker;
}

static size_t corrected_name_size(const char *name)
{
    static const char *const endings[] = { " Inc.", " Co.", " Corporation" };
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (size > ending && strcmp(name + size - ending, endings[i]) == 0) {
            return size - ending;
        }
    }
    return size;
}

bool flights_correctable(const flights_data *data, flights_table table, size_t row)
{
    const char *cell;
    switch (table) {
    case AIRLINE:
        cell = raw_cell(data, table, row, "name");
        return cell[corrected_name_size(cell)] != 0;
    case PLANE:
        cell = raw_cell(data, table, row, "manufacturer");
        return corrected_maker(cell) != cell;
    case WEATHER:
        return strchr(raw_cell(data, table, row, "visib"), '.') != NULL;
    default:
        return false;
    }
}

const char *flights_cell(const flights_data *data, flights_table table, size_t row, size_t column, char text[CELL_TEXT_SIZE])
{
    const char *cell = sheet_cell(&data->sheets[table], row, data->columns[table][column]);
    bool corrected = table < DIMENSIONS_COUNT && data->corrected[table][row];
    size_t size = strlen(cell);
    if (empty(cell)) {
        return NULL;
    }
    if (table == PLANE && corrected && column == flights_column(PLANE, "manufacturer")) {
        return corrected_maker(cell);
    }
    if (table == AIRLINE && corrected && column == flights_column(AIRLINE, "name")) {
        size = corrected_name_size(cell);
    } else if (table == WEATHER && !corrected && column == flights_column(WEATHER, "visib")) {
        size = strcspn(cell, ".");
    }
    if (!cell[size]) {
        return cell;
    }
    snprintf(text, CELL_TEXT_SIZE, "%.*s", (int)size, cell);
    return text;
}
