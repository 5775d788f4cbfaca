/* What the main job prints: a bar while it runs (a line every ten days where there is no terminal) and the top of each view after. */
#include "flights.h"

#include "arena.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_SIZE 6
#define TOP_ROWS 5
#define LINE_EVERY 10 /* days */
#define NAME_WIDTH 34

/* ---- While it runs ------------------------------------------------------------------------------------------------------------- */

static void date_write(const flights_data *data, size_t day, char text[16])
{
    size_t flight = data->days[day];
    char cell[3][CELL_TEXT_SIZE];
    static const char *const names[] = { "year", "month", "day" };
    int parts[3];
    for (int i = 0; i < 3; i++) {
        const char *number = flights_cell(data, FLIGHT, flight, flights_column(FLIGHT, names[i]), cell[i]);
        parts[i] = number ? atoi(number) : 0;
    }
    snprintf(text, 16, "%04u-%02u-%02u", (unsigned)parts[0] % 10000, (unsigned)parts[1] % 100, (unsigned)parts[2] % 100);
}

/* The bar's line fits 80 columns, or it could not be drawn over itself. */
static void bar_draw(const char *date, size_t day, size_t days, const flights_totals *totals)
{
    static const char full[] = "######", none[] = "......";
    int filled = (int)((day + 1) * BAR_SIZE / days);
    const ivm_stats *s = &totals->stats;
    printf("\r%s [%.*s%.*s] %5llu flights, %4llu of %4llu terms, %4llu pruned, %4llu empty", date, filled, full, BAR_SIZE - filled, none,
           (unsigned long long)totals->flights, (unsigned long long)s->terms_run, (unsigned long long)totals->masks,
           (unsigned long long)s->terms_pruned, (unsigned long long)s->terms_empty);
    if (day + 1 == days) {
        putchar('\n');
    }
}

static void line_print(const char *date, size_t day, size_t days, const flights_totals *totals)
{
    const ivm_stats *s = &totals->stats;
    printf(
        "%s  day %2zu of %zu  %6llu flights  %5llu dimension rows  %4llu corrected  terms: %4llu of %4llu run  %4llu pruned  %4llu empty\n",
        date, day + 1, days, (unsigned long long)totals->flights, (unsigned long long)totals->dimension_rows,
        (unsigned long long)totals->corrections, (unsigned long long)s->terms_run, (unsigned long long)totals->masks,
        (unsigned long long)s->terms_pruned, (unsigned long long)s->terms_empty);
}

void flights_progress(const flights_data *data, size_t day, size_t days, const flights_totals *totals)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;
    char date[16];
    if (!terminal && (day + 1) % LINE_EVERY != 0 && day + 1 != days) {
        return;
    }
    date_write(data, day, date);
    if (terminal) {
        bar_draw(date, day, days, totals);
    } else {
        line_print(date, day, days, totals);
    }
    fflush(stdout);
}

/* ---- After it ------------------------------------------------------------------------------------------------------------------ */

typedef struct shown_row {
    int64_t flights;
    ivm_value *cells;
} shown_row;

typedef struct shown_rows {
    shown_row *rows;
    size_t count, capacity;
    piece_arena memory;
} shown_rows;

static int shown_order(const void *a, const void *b)
{
    int64_t x = ((const shown_row *)a)->flights, y = ((const shown_row *)b)->flights;
    return (x < y) - (x > y);
}

static void rows_take(const flights_view *view, ivm_snapshot *snapshot, shown_rows *shown)
{
    size_t columns = ivm_snapshot_columns_count(snapshot);
    ivm_rows rows;
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            ivm_value *cells = arena_take(&shown->memory, columns * sizeof *cells);
            for (size_t c = 0; c < columns; c++) {
                ivm_type type = ivm_snapshot_column_type(snapshot, c);
                cells[c] = ivm_rows_value(&rows, type, r, c);
                if (type == IVM_STRING) {
                    cells[c].as.string.bytes = arena_text(&shown->memory, cells[c].as.string.bytes, cells[c].as.string.size);
                }
            }
            shown->rows = memory_room(shown->rows, shown->count, &shown->capacity, sizeof *shown->rows);
            shown->rows[shown->count++] = (shown_row){ cells[view->groups_count].as.int64, cells };
        }
    }
}

/* Texts to the left, numbers to the right; averages with one digit. */
static void cell_show(const ivm_value *value, bool text)
{
    char shown[CELL_TEXT_SIZE];
    if (!value->is_null && value->type == IVM_FLOAT64) {
        snprintf(shown, sizeof shown, "%.1f", value->as.float64);
    } else {
        ivm_value_format(value, shown, sizeof shown);
    }
    printf(text ? "  %-*s" : "  %*s", text ? NAME_WIDTH : 10, shown);
}

void flights_top_show(const flights_view *view, ivm_view *kept)
{
    ivm_snapshot *snapshot;
    ivm_error error = IVM_ERROR_INIT;
    shown_rows shown = { 0 };
    if (ivm_read_view(kept, &snapshot, &error) != IVM_OK) {
        return;
    }
    rows_take(view, snapshot, &shown);
    qsort(shown.rows, shown.count, sizeof *shown.rows, shown_order);
    printf("\n%s: %s, %zu rows\n", view->name, view->title, shown.count);
    size_t columns = ivm_view_columns_count(kept);
    for (size_t c = 0; c < columns; c++) {
        bool text = ivm_view_column_type(kept, c) == IVM_STRING;
        printf(text ? "  %-*s" : "  %*s", text ? NAME_WIDTH : 10, ivm_view_column_name(kept, c));
    }
    putchar('\n');
    for (size_t r = 0; r < shown.count && r < TOP_ROWS; r++) {
        for (size_t c = 0; c < columns; c++) {
            cell_show(&shown.rows[r].cells[c], ivm_view_column_type(kept, c) == IVM_STRING);
        }
        putchar('\n');
    }
    ivm_snapshot_close(snapshot);
    arena_clear(&shown.memory);
    free(shown.rows);
}
