/* A CSV file in memory: the first line names the columns, every cell stays text. */
#ifndef IVM_BENCH_SHEET_H
#define IVM_BENCH_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sheet {
    char *text;                       /* all cells, each with a null byte behind it */
    uint32_t *cells;                  /* where each begins, row after row, the names first */
    size_t columns_count, rows_count; /* rows without the names */
} sheet;

/* Reads DIRECTORY/NAME.csv.zst. False after one line on standard error. */
bool sheet_read(sheet *s, const char *directory, const char *name);
void sheet_free(sheet *s);

/* The position of the column of this name; columns_count where there is none. */
size_t sheet_column(const sheet *s, const char *name);

static inline const char *sheet_cell(const sheet *s, size_t row, size_t column)
{
    return s->text + s->cells[(row + 1) * s->columns_count + column];
}

#endif
