/* `ivm bench stream`: the engine's side of bench/peers. Carries the batches of a folder through one engine, each push timed by itself from making
 * the batch to the committed view, and writes the view for comparison. The batches lie in memory as columns; the engine borrows them. */
#include "command.h"
#include "option.h"
#include "star_engine.h"
#include "star_stream.h"

#include <stdlib.h>

static const char help[] = "usage: ivm bench stream DIRECTORY [VIEW]\n"
                           "\n"
                           "Pushes the batches that ivm bench dump wrote into DIRECTORY and prints one JSON line: nanoseconds of\n"
                           "the timed pushes in all, their median and 99th percentile, and of those before them. Writes the view's\n"
                           "rows as int64 cells to the file VIEW.\n";

static void push_part(star_engine *star, ivm_batch *batch, const star_stream *stream, const stream_part *part)
{
    bool fact_rows = part->table == stream->dimensions;
    star_columns columns = { .columns_count = stream_columns_count(stream, part), .rows_count = part->rows_count };
    for (size_t c = 0; c < columns.columns_count; c++) {
        columns.columns[c] = part->columns[c];
    }
    star_batch_columns(batch, fact_rows ? star->fact_table : star->dimensions[part->table], part->going ? IVM_DELETE : IVM_INSERT,
                       &columns);
}

static void push_all(star_engine *star, const star_stream *stream, stream_times *times)
{
    for (size_t p = 0; p < stream->pushes_count; p++) {
        const stream_push *push = &stream->pushes[p];
        stream_times_start(times);
        ivm_batch *batch = star_batch(star);
        for (size_t i = 0; i < push->parts_count; i++) {
            push_part(star, batch, stream, &stream->parts[push->first + i]);
        }
        star_push(star, batch, NULL);
        stream_times_stop(times, push);
    }
}

static void view_row_write(void *context, const int64_t *cells, size_t cells_count)
{
    stream_view_row(context, cells, cells_count);
}

int stream_command(int argc, char **argv)
{
    int code;
    operand_list operands;
    const option_definition options[] = { { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count < 1 || operands.count > 2) {
        return usage_error("bench stream takes a directory and a file; --help says more");
    }
    star_stream stream;
    stream_times times;
    star_engine star;
    star_stream_read(&stream, operands.texts[0]);
    star_shape shape = { .dimensions = stream.dimensions };
    star_engine_open(&star, &shape, &(star_options){ .grouped = stream.dimensions });
    stream_times_open(&times, &stream);
    push_all(&star, &stream, &times);
#ifdef IVM_BENCH_JEMALLOC
    stream_times_print(&times, &stream, "\"program\": \"ivm\", \"allocator\": \"jemalloc\"");
#else
    stream_times_print(&times, &stream, "\"program\": \"ivm\", \"allocator\": \"malloc\"");
#endif
    if (operands.count == 2) {
        FILE *view = stream_view_open(operands.texts[1]);
        star_rows(&star, view_row_write, view);
        stream_view_close(view);
    }
    star_engine_close(&star);
    stream_times_close(&times);
    star_stream_free(&stream);
    return EXIT_HOLDS;
}
