/* Reading CSV: zstd gives blocks of text, libcsv cuts them into cells, which are appended to one text. */
#include "sheet.h"

#include "arena.h"
#include "option.h"

#include <csv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

typedef struct sheet_reader {
    sheet *sheet;
    size_t text_size, text_capacity;
    size_t cells_count, cells_capacity;
    size_t row_cells; /* of the row under way */
    const char *mistake;
} sheet_reader;

static void cell_take(void *bytes, size_t size, void *context)
{
    sheet_reader *reader = context;
    sheet *s = reader->sheet;
    if (reader->text_size + size + 1 > reader->text_capacity) {
        reader->text_capacity = (reader->text_size + size + 1) * 2;
        s->text = memory_grow(s->text, reader->text_capacity);
    }
    s->cells = memory_room(s->cells, reader->cells_count, &reader->cells_capacity, sizeof *s->cells);
    s->cells[reader->cells_count++] = (uint32_t)reader->text_size;
    memcpy(s->text + reader->text_size, bytes, size);
    s->text[reader->text_size + size] = 0;
    reader->text_size += size + 1;
    reader->row_cells++;
    if (reader->text_size > UINT32_MAX) {
        reader->mistake = "too large";
    }
}

static void row_end(int character, void *context)
{
    (void)character;
    sheet_reader *reader = context;
    sheet *s = reader->sheet;
    if (!s->columns_count) {
        s->columns_count = reader->row_cells;
    } else if (reader->row_cells == s->columns_count) {
        s->rows_count++;
    } else {
        reader->mistake = "a row has another number of cells than the first";
    }
    reader->row_cells = 0;
}

/* Feeds the decompressed file to the parser. */
static void file_parse(FILE *file, struct csv_parser *parser, sheet_reader *reader)
{
    size_t in_size = ZSTD_DStreamInSize(), out_size = ZSTD_DStreamOutSize(), left = 0;
    char *in = memory_take(in_size), *out = memory_take(out_size);
    ZSTD_DStream *stream = ZSTD_createDStream();
    reader->mistake = stream ? NULL : "no memory";
    for (size_t size; !reader->mistake && (size = fread(in, 1, in_size, file)) > 0;) {
        ZSTD_inBuffer from = { in, size, 0 };
        while (from.pos < from.size && !reader->mistake) {
            ZSTD_outBuffer to = { out, out_size, 0 };
            left = ZSTD_decompressStream(stream, &to, &from);
            if (ZSTD_isError(left)) {
                reader->mistake = ZSTD_getErrorName(left);
            } else if (csv_parse(parser, out, to.pos, cell_take, row_end, reader) != to.pos) {
                reader->mistake = csv_strerror(csv_error(parser));
            }
        }
    }
    if (!reader->mistake && (ferror(file) || left)) {
        reader->mistake = "the file ends early";
    }
    ZSTD_freeDStream(stream);
    free(in);
    free(out);
}

bool sheet_read(sheet *s, const char *directory, const char *name)
{
    char path[4096];
    struct csv_parser parser;
    sheet_reader reader = { .sheet = s };
    *s = (sheet){ 0 };
    snprintf(path, sizeof path, "%s/%s.csv.zst", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        usage_error("%s: cannot read: %s", path, strerror(errno));
        return false;
    }
    if (csv_init(&parser, CSV_STRICT) != 0) {
        reader.mistake = "no memory";
    } else {
        file_parse(file, &parser, &reader);
        csv_fini(&parser, cell_take, row_end, &reader);
        csv_free(&parser);
    }
    fclose(file);
    if (!reader.mistake && !s->columns_count) {
        reader.mistake = "the file is empty";
    }
    if (reader.mistake) {
        usage_error("%s: %s", path, reader.mistake);
        sheet_free(s);
        return false;
    }
    return true;
}

void sheet_free(sheet *s)
{
    free(s->text);
    free(s->cells);
    *s = (sheet){ 0 };
}

size_t sheet_column(const sheet *s, const char *name)
{
    size_t column = 0;
    while (column < s->columns_count && strcmp(s->text + s->cells[column], name) != 0) {
        column++;
    }
    return column;
}
