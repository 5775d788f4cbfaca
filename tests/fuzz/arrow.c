/* Fuzzes what comes in by Arrow: a table's columns, and a record batch or a stream of some that are made of the input (arrow_make.h), with every kind of change. Whatever
 * they are, each array is released once and the buffers are read only where they are; what is refused is told in one line and has changed nothing; what is taken
 * and given out again as a stream, and taken into another table, is the same rows. */
#include "arrow_make.h"

#include <errno.h>
#include <string.h>

#define ARRAYS_MAX 2

static ivm_error error;

/* A stream of batches, all of the first one's schema; `fails` is the call that does, 0: none. */
typedef struct made_stream {
    made_batch batches[ARRAYS_MAX];
    size_t count, given, calls, fails;
    bool released;
} made_stream;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    made_stream *made = stream->private_data;
    *out = made->batches[0].schema;
    return ++made->calls == made->fails ? EIO : 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    made_stream *made = stream->private_data;
    if (++made->calls == made->fails) {
        return ENOMEM;
    }
    out->release = NULL;
    if (made->given < made->count) {
        struct ArrowArray *array = &made->batches[made->given++].array;
        *out = *array; /* moved */
        array->release = NULL;
    }
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    made_stream *made = stream->private_data;
    NEED(!made->released);
    made->released = true;
    stream->release = NULL;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_table *table_draw(ivm_engine *engine, byte_source *from, size_t *columns_count, bool *keyed)
{
    static const ivm_type types[] = { IVM_INT64,          IVM_STRING, IVM_FLOAT64, IVM_TIMESTAMP,
                                      IVM_DECIMAL(10, 2), IVM_DATE,   IVM_BOOL,    IVM_DECIMAL(38, 0) };
    static const char *const names[] = { "a", "b", "c" };
    ivm_column_definition columns[3];
    ivm_table *table;
    *columns_count = 1 + draw_below(from, 3);
    *keyed = byte_draw(from) & 1;
    for (size_t i = 0; i < *columns_count; i++) {
        columns[i] = (ivm_column_definition){ names[i], types[draw_below(from, sizeof types / sizeof *types)], *keyed && i == 0 };
    }
    ivm_table_options options = { .columns = columns, .columns_count = *columns_count, .key = *keyed ? "a" : NULL };
    NEED(ivm_table_create(engine, "t", &options, &table, &error) == IVM_OK);
    return table;
}

/* A table of the schema's fields, or the one that there is where they make none. */
static ivm_table *table_of_schema(ivm_engine *engine, const struct ArrowSchema *schema, const ivm_arrow_options *options, ivm_table *table)
{
    ivm_table *made;
    error = (ivm_error)IVM_ERROR_INIT;
    if (ivm_table_create_arrow(engine, "made", schema, NULL, options, &made, &error) == IVM_OK) {
        return made;
    }
    NEED(error.message[0] && !strchr(error.message, '\n'));
    return table;
}

/* A table with the columns of another, and no key. */
static ivm_table *table_alike(ivm_engine *engine, const ivm_table *table)
{
    ivm_column_definition columns[MADE_FIELDS];
    ivm_table *made;
    size_t count = ivm_table_columns_count(table);
    for (size_t i = 0; i < count; i++) {
        columns[i] = (ivm_column_definition){ ivm_table_column_name(table, i), ivm_table_column_type(table, i), false };
    }
    NEED(ivm_table_create(engine, "copy", &(ivm_table_options){ .columns = columns, .columns_count = count }, &made, &error) == IVM_OK);
    return made;
}

/* All rows in order, as text; *size without the null byte behind it. */
static char *table_text(ivm_table *table, size_t *size)
{
    char *text = NULL, value[IVM_VALUE_TEXT_SIZE + 256];
    ivm_snapshot *snapshot;
    FILE *out = open_memstream(&text, size);
    NEED(out && ivm_read_table(table, &snapshot, &error) == IVM_OK && ivm_snapshot_sort(snapshot, &error) == IVM_OK);
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            for (size_t c = 0; c < ivm_snapshot_columns_count(snapshot); c++) {
                ivm_value cell = ivm_rows_value(&rows, ivm_snapshot_column_type(snapshot, c), i, c);
                size_t length = ivm_value_format(&cell, value, sizeof value);
                fprintf(out, "%zu:", length);
                fwrite(value, 1, length < sizeof value ? length : sizeof value - 1, out);
            }
            fprintf(out, "*%lld\n", rows.weights ? (long long)rows.weights[i] : 1);
        }
    }
    NEED(ivm_snapshot_status(snapshot) == IVM_OK);
    ivm_snapshot_close(snapshot);
    NEED(fclose(out) == 0);
    return text;
}

/* ---- In, and out again --------------------------------------------------------------------------------------------------------------------- */

/* taken: the push went through. */
static void round_trip(ivm_engine *engine, ivm_table *table, bool taken)
{
    static const ivm_arrow_options in = { .weight = "weight" };
    const ivm_arrow_options out = { .table = table, .weight = "weight", .chunk_rows = 5 };
    struct ArrowArrayStream stream;
    ivm_snapshot *snapshot;
    ivm_batch *batch;
    ivm_table *copy = table_alike(engine, table);
    NEED(ivm_read_table(table, &snapshot, &error) == IVM_OK && ivm_snapshot_arrow_stream(snapshot, &out, &stream, &error) == IVM_OK);
    NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
    NEED(ivm_batch_arrow_stream(batch, copy, IVM_WEIGHTED, &stream, &in) == IVM_OK);
    NEED(ivm_push_batch(engine, batch, NULL, &error) == IVM_OK);
    size_t size, size_again;
    char *text = table_text(table, &size), *again = table_text(copy, &size_again);
    NEED(size == size_again && memcmp(text, again, size) == 0 && (taken || !size));
    free(text);
    free(again);
}

/* As one array, or as a stream of some. Schemas are gone when it returns. */
static ivm_status arrays_give(made_stream *made, ivm_batch *batch, ivm_table *table, ivm_change change, const ivm_arrow_options *options,
                              bool streamed)
{
    struct ArrowArrayStream stream = { stream_schema, stream_next, stream_error, stream_release, made };
    ivm_status status;
    if (streamed) {
        status = ivm_batch_arrow_stream(batch, table, change, &stream, options);
        NEED(made->released && !stream.release);
    } else {
        made->given = 1;
        status = ivm_batch_arrow(batch, table, change, &made->batches[0].array, &made->batches[0].schema, options);
        NEED(!made->batches[0].array.release);
    }
    for (size_t i = 0; i < made->count; i++) {
        memset(&made->batches[i].schema, 0xa5, sizeof made->batches[i].schema);
        for (size_t j = 0; j < MADE_NODES; j++) {
            memset(&made->batches[i].nodes[j].schema, 0xa5, sizeof made->batches[i].nodes[j].schema);
        }
    }
    return status;
}

static void run(ivm_engine *engine, byte_source *from)
{
    static const ivm_change changes[] = { IVM_INSERT, IVM_WEIGHTED, IVM_UPSERT, IVM_DELETE, IVM_DELETE_KEY };
    static const char *const weights[] = { NULL, "d", "a" };
    static made_stream made;
    size_t columns_count;
    bool keyed;
    ivm_table *table = table_draw(engine, from, &columns_count, &keyed);
    ivm_change change = changes[draw_below(from, 5)];
    bool streamed = byte_draw(from) & 1, of_schema = byte_draw(from) & 1;
    ivm_arrow_options options = { .weight = weights[change == IVM_WEIGHTED ? draw_below(from, 3) : 0],
                                  .fields_ignored = byte_draw(from) & 1 };
    size_t fields = change == IVM_DELETE_KEY ? 1 : columns_count;
    if (options.weight && *options.weight == 'd') {
        fields = MADE_FIELDS; /* the last of them the weight; one may be of no column */
        options.fields_ignored = true;
    }
    made.count = streamed ? draw_below(from, ARRAYS_MAX + 1) : 1;
    made.given = made.calls = 0;
    made.fails = streamed && byte_draw(from) % 16 == 15 ? 1 + draw_below(from, 3) : 0;
    made.released = false;
    made_batch_draw(&made.batches[0], from, fields, NULL);
    made_batch_draw(&made.batches[1], from, fields, &made.batches[0]);
    if (of_schema) {
        table = table_of_schema(engine, &made.batches[0].schema, &options, table);
    }
    ivm_batch *batch;
    NEED(ivm_batch_create(engine, &batch, &error) == IVM_OK);
    ivm_status status = arrays_give(&made, batch, table, change, &options, streamed);
    error = (ivm_error)IVM_ERROR_INIT;
    ivm_status pushed = ivm_push_batch(engine, batch, NULL, &error);
    NEED(status == IVM_OK || status == pushed);
    NEED(pushed == IVM_OK || (error.message[0] && !strchr(error.message, '\n') && pushed != IVM_CORRUPT));
    for (size_t i = 0; i < ARRAYS_MAX; i++) {
        NEED(made.batches[i].released == (i < made.given));
        made_batch_free(&made.batches[i]);
    }
    round_trip(engine, table, pushed == IVM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    byte_source from = { data, size };
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    ivm_engine *engine;
    how.hash_seed = 7;
    NEED(ivm_engine_open(&how, &engine, &error) == IVM_OK);
    run(engine, &from);
    NEED(ivm_engine_close(engine, &error) == IVM_OK);
    return 0;
}
