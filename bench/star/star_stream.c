/* Reading a folder of batches, and what a program that carried them through writes; see star_stream.h. */
#include "star_stream.h"

#include "arena.h"
#include "measure.h"
#include "option.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_SIZE 4096

static FILE *file_open(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        exit(usage_error("%s: cannot read", path));
    }
    return file;
}

/* ---- The text ------------------------------------------------------------------------------------------------------------------ */

/* Reads "d0 + 100" from its table's name on; cells are placed later. False where it is no such thing. */
static bool part_read(const star_stream *stream, const char *table, char **rest, stream_part *part)
{
    const char *sign = strtok_r(NULL, " \n", rest), *rows = strtok_r(NULL, " \n", rest);
    if (!sign || !rows || (*sign != '+' && *sign != '-')) {
        return false;
    }
    *part = (stream_part){ .table = *table == 'f' ? stream->dimensions : (uint32_t)strtoul(table + 1, NULL, 10),
                           .going = *sign == '-',
                           .rows_count = strtoull(rows, NULL, 10) };
    return (*table == 'f' || *table == 'd') && part->table <= stream->dimensions && part->rows_count > 0;
}

typedef struct capacities {
    size_t pushes, parts;
} capacities;

static bool push_read(star_stream *stream, char **rest, capacities *room)
{
    const char *phase = strtok_r(NULL, " \n", rest);
    stream->pushes = memory_room(stream->pushes, stream->pushes_count, &room->pushes, sizeof *stream->pushes);
    stream_push *push = &stream->pushes[stream->pushes_count++];
    *push = (stream_push){ .timed = phase && strcmp(phase, "timed") == 0, .first = stream->parts_count };
    stream->timed_count += push->timed;
    for (const char *table; (table = strtok_r(NULL, " \n", rest)); push->parts_count++) {
        stream_part part;
        if (!part_read(stream, table, rest, &part) || push->parts_count == STREAM_PARTS_MAX) {
            return false;
        }
        stream->parts = memory_room(stream->parts, stream->parts_count, &room->parts, sizeof *stream->parts);
        stream->parts[stream->parts_count++] = part;
    }
    return push->parts_count > 0;
}

static bool line_read(star_stream *stream, char *line, capacities *room)
{
    char *rest;
    const char *word = strtok_r(line, " \n", &rest);
    if (word && strcmp(word, "attributes") == 0) {
        for (const char *n; stream->dimensions < STAR_DIMENSIONS_MAX && (n = strtok_r(NULL, " \n", &rest));) {
            stream->attributes[stream->dimensions++] = (uint32_t)strtoul(n, NULL, 10);
        }
        return stream->dimensions > 0;
    }
    if (word && strcmp(word, "unit") == 0) {
        const char *unit = strtok_r(NULL, " \n", &rest), *units = strtok_r(NULL, " \n", &rest);
        snprintf(stream->unit, sizeof stream->unit, "%s", unit ? unit : "");
        stream->units = units ? strtoull(units, NULL, 10) : 0;
        return stream->units > 0;
    }
    return word && strcmp(word, "push") == 0 && push_read(stream, &rest, room);
}

static void text_read(star_stream *stream, const char *directory)
{
    char line[LINE_SIZE];
    capacities room = { 0 };
    bool sound;
    FILE *text = file_open(directory, "star.txt");
    sound = fgets(line, sizeof line, text) && strcmp(line, "ivm star 1\n") == 0;
    while (sound && fgets(line, sizeof line, text)) {
        sound = line_read(stream, line, &room);
    }
    fclose(text);
    if (!sound || !stream->timed_count || !stream->units) {
        exit(usage_error("%s/star.txt is not what ivm bench dump writes", directory));
    }
}

/* ---- The cells ----------------------------------------------------------------------------------------------------------------- */

/* Gives each part its columns and returns the number of cells. */
static size_t cells_place(star_stream *stream)
{
    size_t at = 0;
    for (size_t p = 0; p < stream->parts_count; p++) {
        stream_part *part = &stream->parts[p];
        for (size_t c = 0; c < stream_columns_count(stream, part); c++) {
            part->columns[c] = stream->cells ? stream->cells + at : NULL;
            at += part->rows_count;
        }
    }
    return at;
}

void star_stream_read(star_stream *stream, const char *directory)
{
    *stream = (star_stream){ 0 };
    text_read(stream, directory);
    size_t count = cells_place(stream);
    stream->cells = memory_take(count * sizeof *stream->cells);
    FILE *cells = file_open(directory, "star.bin");
    if (fread(stream->cells, sizeof *stream->cells, count, cells) != count || fgetc(cells) != EOF) {
        exit(usage_error("%s/star.bin has not the rows that star.txt tells", directory));
    }
    fclose(cells);
    cells_place(stream);
}

void star_stream_free(star_stream *stream)
{
    free(stream->pushes);
    free(stream->parts);
    free(stream->cells);
    *stream = (star_stream){ 0 };
}

/* ---- Times --------------------------------------------------------------------------------------------------------------------- */

void stream_times_open(stream_times *times, const star_stream *stream)
{
    *times = (stream_times){ .pushes = memory_take((stream->pushes_count + 1) * sizeof *times->pushes) };
}

static uint64_t processor_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void stream_times_start(stream_times *times)
{
    times->start_processor = processor_nanoseconds();
    times->start = clock_nanoseconds();
}

void stream_times_stop(stream_times *times, const stream_push *push)
{
    double spent = (double)(clock_nanoseconds() - times->start);
    if (push->timed) {
        times->timed_processor += (double)(processor_nanoseconds() - times->start_processor);
        times->timed += spent;
        times->pushes[times->pushes_count++] = spent;
    } else {
        times->before += spent;
    }
}

void stream_times_print(stream_times *times, const star_stream *stream, const char *about)
{
    double middle = median(times->pushes, times->pushes_count); /* sorts */
    size_t late = times->pushes_count * 99 / 100;
    double p99 = times->pushes[late];
    printf("{\"timed_ns\": %.0f, \"timed_cpu_ns\": %.0f, \"pushes\": %zu, \"p50_ns\": %.0f, \"p99_ns\": %.0f, \"before_ns\": %.0f, ",
           times->timed, times->timed_processor, times->pushes_count, middle, p99, times->before);
    printf("\"unit\": \"%s\", \"units\": %llu, %s}\n", stream->unit, (unsigned long long)stream->units, about);
}

void stream_times_close(stream_times *times)
{
    free(times->pushes);
    *times = (stream_times){ 0 };
}

/* ---- The view ------------------------------------------------------------------------------------------------------------------ */

FILE *stream_view_open(const char *path)
{
    FILE *view = fopen(path, "wb");
    if (!view) {
        exit(usage_error("%s: cannot write", path));
    }
    return view;
}

void stream_view_row(FILE *view, const int64_t *cells, size_t cells_count)
{
    fwrite(cells, sizeof *cells, cells_count, view);
}

void stream_view_close(FILE *view)
{
    if (ferror(view) || fclose(view) != 0) {
        exit(usage_error("the view could not be written"));
    }
}
