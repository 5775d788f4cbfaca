/* Snapshots as Arrow streams: the snapshot's cursor, a piece of a thousand rows at a time, gathered into arrays of more. A row without a field for its weight is
 * given as often as it weighs; how often the present one is still to be given is kept from array to array. */
#include <errno.h>
#include <stdio.h>

#include "arrow_build.h"
#include "snapshot.h"

#define CHUNK_ROWS 65536u

typedef struct streaming {
    ivm_allocator allocator;
    size_t size;
    ivm_snapshot *snapshot;
    bool borrowed, weighted, strings_binary;
    bool ended; /* the cursor is at its end, and would begin again */
    uint32_t chunk_rows;
    uint32_t columns_count; /* the weights' among them */
    ivm_type *types;
    char **names;       /* behind it, with their bytes */
    ivm_rows piece;     /* of the cursor's */
    size_t piece_at;    /* its next row */
    uint64_t row_given; /* how often that one has been given */
    int failed;         /* what the stream ended with */
    char said[IVM_ERROR_MESSAGE_SIZE];
} streaming;

static int stream_fail(streaming *it, int code, const char *what)
{
    ivm_error error;
    (void)ivm__fail(&error, IVM_IO, "%s", what);
    memcpy(it->said, error.message, sizeof it->said);
    it->failed = code;
    return code;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------------------------------ */

/* Sees to it that the piece has a row, unless the cursor is at its end. */
static int piece_want(streaming *it)
{
    if (it->ended || it->piece_at < it->piece.rows_count) {
        return 0;
    }
    it->piece_at = 0;
    if (ivm_snapshot_next(it->snapshot, &it->piece)) {
        return 0;
    }
    it->piece.rows_count = 0;
    it->ended = true;
    ivm_status status = ivm_snapshot_status(it->snapshot);
    if (status == IVM_OK) {
        return 0;
    }
    return status == IVM_OUT_OF_MEMORY ? stream_fail(it, ENOMEM, "out of memory")
                                       : stream_fail(it, EOVERFLOW, "a row's strings do not fit an array");
}

static int weight_fail(streaming *it, int64_t weight)
{
    char what[96];
    (void)snprintf(what, sizeof what, "a row of weight %lld, and no field for weights is asked for", (long long)weight);
    return stream_fail(it, EINVAL, what);
}

/* How many rows from the next one on may go into the array at once: those of weight 1, or of any where there is a field for it. */
static size_t rows_alike(const streaming *it, size_t most)
{
    size_t left = it->piece.rows_count - it->piece_at, count = 0;
    left = left < most ? left : most;
    if (it->weighted || !it->piece.weights) {
        return left;
    }
    while (count < left && it->piece.weights[it->piece_at + count] == 1) {
        count++;
    }
    return count;
}

/* Fewer where strings are long; 0: the array is full. */
static size_t rows_fitting(const streaming *it, const ivm__arrow_build *build, size_t count)
{
    while (count > 0 && !ivm__arrow_build_fits(build, &it->piece, it->piece_at, count)) {
        count /= 2;
    }
    return count;
}

/* Adds one row until it has been given as often as it weighs or the array is full. */
static int row_repeat(streaming *it, ivm__arrow_build *build, bool *full)
{
    int64_t weight = it->piece.weights[it->piece_at];
    if (weight < 0) {
        return weight_fail(it, weight);
    }
    for (; it->row_given < (uint64_t)weight; it->row_given++) {
        if (build->rows_count == it->chunk_rows || rows_fitting(it, build, 1) == 0) {
            *full = true;
            return 0;
        }
        if (ivm__arrow_build_add(build, &it->piece, it->piece_at, 1) != IVM_OK) {
            return stream_fail(it, ENOMEM, "out of memory");
        }
    }
    it->row_given = 0;
    it->piece_at++;
    return 0;
}

/* Adds what the piece has; *full: no more fits. */
static int piece_add(streaming *it, ivm__arrow_build *build, bool *full)
{
    size_t alike = rows_alike(it, it->chunk_rows - build->rows_count);
    if (alike == 0) {
        return row_repeat(it, build, full);
    }
    size_t count = rows_fitting(it, build, alike);
    *full = count == 0;
    if (count > 0 && ivm__arrow_build_add(build, &it->piece, it->piece_at, count) != IVM_OK) {
        return stream_fail(it, ENOMEM, "out of memory");
    }
    it->piece_at += count;
    return 0;
}

static int array_fill(streaming *it, ivm__arrow_build *build)
{
    bool full = false;
    while (!full && build->rows_count < it->chunk_rows) {
        int code = piece_want(it);
        if (code || it->ended) {
            return code;
        }
        code = piece_add(it, build, &full);
        if (code) {
            return code;
        }
    }
    return 0;
}

/* ---- The stream's calls ------------------------------------------------------------------------------------------------------------------ */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    streaming *it = stream->private_data;
    const ivm__arrow_heading heading = {
        it->types, (const char *const *)it->names, it->columns_count, it->weighted, it->strings_binary,
    };
    if (ivm__arrow_schema_make(&it->allocator, &heading, schema) != IVM_OK) {
        (void)snprintf(it->said, sizeof it->said, "out of memory");
        return ENOMEM;
    }
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    streaming *it = stream->private_data;
    ivm__arrow_build build;
    if (it->failed) {
        return it->failed;
    }
    int code = 0;
    if (ivm__arrow_build_init(&build, &it->allocator, it->types, it->columns_count) != IVM_OK) {
        code = stream_fail(it, ENOMEM, "out of memory");
    }
    code = code ? code : array_fill(it, &build);
    if (code == 0 && build.rows_count == 0) {
        array->release = NULL; /* the end */
    } else if (code == 0 && ivm__arrow_build_finish(&build, array) != IVM_OK) {
        code = stream_fail(it, ENOMEM, "out of memory");
    }
    ivm__arrow_build_free(&build);
    return code;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const streaming *it = stream->private_data;
    return it->said[0] ? it->said : NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    streaming *it = stream->private_data;
    ivm_allocator allocator = it->allocator;
    if (!it->borrowed) {
        ivm_snapshot_close(it->snapshot);
    }
    allocator.release(allocator.context, it, it->size);
    stream->release = NULL;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------------------------- */

#define NUMBERED_SIZE 24

static const ivm_arrow_options defaults = { .version = IVM_ARROW_OPTIONS_VERSION };

/* Of a view or table that is named; NULL: neither is. */
static const ivm__column *columns_of(const ivm_arrow_options *options)
{
    return options->view ? options->view->columns : options->table ? options->table->columns : NULL;
}

/* Without any name of the caller's it is written into `numbered`. NULL: the names' array has none. */
static const char *name_of(const ivm_arrow_options *options, uint32_t column, char numbered[NUMBERED_SIZE])
{
    if (columns_of(options)) {
        return columns_of(options)[column].name;
    }
    if (options->names) {
        return options->names[column];
    }
    (void)snprintf(numbered, NUMBERED_SIZE, "column_%u", column);
    return numbered;
}

/* That a view or table whose names are to be used has the snapshot's columns. */
static ivm_status heading_check(const ivm_snapshot *snapshot, const ivm_arrow_options *options, ivm_error *error)
{
    const ivm__column *columns = columns_of(options);
    if (!columns) {
        return IVM_OK;
    }
    size_t count = ivm_snapshot_columns_count(snapshot);
    uint32_t wanted = options->view ? options->view->columns_count : options->table->columns_count;
    const char *whose = options->view ? options->view->name : options->table->name;
    if (wanted != count) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s has %u columns, the snapshot %zu", whose, wanted, count);
    }
    for (size_t c = 0; c < count; c++) {
        if (columns[c].type != ivm_snapshot_column_type(snapshot, c)) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "%s has another type in column %s than the snapshot", whose, columns[c].name);
        }
    }
    return IVM_OK;
}

/* Bytes that the names take, that of weights too. */
static ivm_status names_measure(const ivm_snapshot *snapshot, const ivm_arrow_options *options, size_t *size, ivm_error *error)
{
    *size = options->weight ? strlen(options->weight) + 1 : 1;
    for (uint32_t c = 0; c < ivm_snapshot_columns_count(snapshot); c++) {
        char numbered[NUMBERED_SIZE];
        const char *name = name_of(options, c, numbered);
        if (!name) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "the name of column %u is NULL", c);
        }
        if (options->weight && *options->weight && strcmp(name, options->weight) == 0) {
            return ivm__fail(error, IVM_INVALID_ARGUMENT, "weight %s: a column has this name", name);
        }
        *size += strlen(name) + 1;
    }
    return IVM_OK;
}

static void names_copy(streaming *it, const ivm_arrow_options *options, char *bytes)
{
    for (uint32_t c = 0; c < it->columns_count; c++) {
        char numbered[NUMBERED_SIZE];
        bool is_weight = it->weighted && c + 1 == it->columns_count;
        const char *name = is_weight ? options->weight : name_of(options, c, numbered);
        size_t size = strlen(name) + 1;
        it->names[c] = memcpy(bytes, name, size);
        it->types[c] = is_weight ? IVM_INT64 : ivm_snapshot_column_type(it->snapshot, c);
        bytes += size;
    }
}

/* ---- Making it --------------------------------------------------------------------------------------------------------------------------- */

static ivm_status options_check(const ivm_snapshot *snapshot, const ivm_arrow_options *options, ivm_error *error)
{
    if (options->version > IVM_ARROW_OPTIONS_VERSION) {
        return ivm__fail(error, IVM_UNSUPPORTED, "Arrow options of version %u, at most %u is known", options->version,
                         IVM_ARROW_OPTIONS_VERSION);
    }
    return heading_check(snapshot, options, error);
}

/* In one block: the struct, names, types, the names' bytes. */
static ivm_status streaming_make(ivm_snapshot *snapshot, const ivm_arrow_options *options, streaming **made, ivm_error *error)
{
    size_t bytes;
    IVM_TRY(options_check(snapshot, options, error));
    IVM_TRY(names_measure(snapshot, options, &bytes, error));
    bool weighted = options->weight && *options->weight;
    uint32_t columns_count = (uint32_t)ivm_snapshot_columns_count(snapshot) + weighted;
    size_t size = sizeof(streaming) + columns_count * (sizeof(char *) + sizeof(ivm_type)) + bytes;
    const ivm_allocator allocator = snapshot->memory->allocator;
    streaming *it = allocator.allocate(allocator.context, size);
    if (!it) {
        return ivm__fail(error, IVM_OUT_OF_MEMORY, "out of memory");
    }
    *it = (streaming){ .allocator = allocator,
                       .size = size,
                       .snapshot = snapshot,
                       .borrowed = options->borrowed,
                       .weighted = weighted,
                       .strings_binary = options->strings_binary,
                       .chunk_rows = options->chunk_rows ? options->chunk_rows : CHUNK_ROWS,
                       .columns_count = columns_count };
    it->names = (char **)(it + 1);
    it->types = (ivm_type *)(it->names + columns_count);
    names_copy(it, options, (char *)(it->types + columns_count));
    *made = it;
    return IVM_OK;
}

ivm_status ivm_snapshot_arrow_stream(ivm_snapshot *snapshot, const ivm_arrow_options *options, struct ArrowArrayStream *stream,
                                     ivm_error *error)
{
    options = options ? options : &defaults;
    streaming *it = NULL;
    ivm_status status = snapshot && stream ? streaming_make(snapshot, options, &it, error)
                                           : ivm__fail_null(error, "ivm_snapshot_arrow_stream", snapshot ? "stream" : "snapshot");
    if (status != IVM_OK) {
        if (!options->borrowed) {
            ivm_snapshot_close(snapshot);
        }
        return status;
    }
    snapshot->next = 0; /* from the first row on */
    *stream = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, stream_release, it };
    return IVM_OK;
}
