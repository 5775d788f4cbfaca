/* A star's batches in a folder, so that every engine that is compared reads the same ones: `ivm bench dump` writes it, `ivm bench stream` and the programs of
 * bench/peers read it. `star.bin` has int64 cells, little endian, part after part, a part's columns one after another; `star.txt` tells what they are:
 *
 *   ivm star 1
 *   attributes 16 16 4 4            as many as there are dimensions; groups are all combinations
 *   unit fact_row 1000000           what a time is divided by: how many of it the timed pushes have in all
 *   push load d0 + 100000 d1 + 1    one batch: table, + for rows that come and - for rows that go, rows
 *   push timed d0 - 1 d0 + 1 f + 1000
 *
 * Columns of d0, d1, ... are key and attribute, those of f a key for each dimension and the amount. Pushes that are not `timed` fill tables
 * and warm up. Within a push the rows of each table that go stand before those that come, and dimensions before f. */
#ifndef IVM_BENCH_STAR_STREAM_H
#define IVM_BENCH_STAR_STREAM_H

#include "star_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct stream_part {
    uint32_t table; /* a dimension's number; `dimensions` is the fact table */
    bool going;
    size_t rows_count;
    const int64_t *columns[STAR_DIMENSIONS_MAX + 1];
} stream_part;

#define STREAM_PARTS_MAX (2 * STAR_DIMENSIONS_MAX + 2)

typedef struct stream_push {
    bool timed;
    size_t first, parts_count; /* among the stream's parts */
} stream_push;

typedef struct star_stream {
    uint32_t dimensions, attributes[STAR_DIMENSIONS_MAX];
    char unit[32];
    uint64_t units;
    stream_push *pushes;
    stream_part *parts;
    size_t pushes_count, timed_count, parts_count; /* at least one push is timed */
    int64_t *cells;
} star_stream;

/* A folder that cannot be read ends the process with a line and exit code 2. */
void star_stream_read(star_stream *stream, const char *directory);
void star_stream_free(star_stream *stream);

static inline size_t stream_columns_count(const star_stream *stream, const stream_part *part)
{
    return part->table == stream->dimensions ? stream->dimensions + 1 : 2;
}

/* What the pushes took: each between stream_times_start() and stream_times_stop(). Processor time is that of all threads and tells more than the clock
 * where others use the machine too. stream_times_print() prints one JSON line: timed nanoseconds in all by both, median and 99th
 * percentile of a push by the clock, nanoseconds of the pushes before, and `about`, members without braces. */
typedef struct stream_times {
    double *pushes;
    size_t pushes_count;
    double timed, timed_processor, before;
    uint64_t start, start_processor;
} stream_times;
void stream_times_open(stream_times *times, const star_stream *stream);
void stream_times_start(stream_times *times);
void stream_times_stop(stream_times *times, const stream_push *push);
void stream_times_print(stream_times *times, const star_stream *stream, const char *about);
void stream_times_close(stream_times *times);

/* The view as a file of int64 cells: attributes, total and number of fact rows of each group, in any order. */
FILE *stream_view_open(const char *path);
void stream_view_row(FILE *view, const int64_t *cells, size_t cells_count);
void stream_view_close(FILE *view);

#endif
