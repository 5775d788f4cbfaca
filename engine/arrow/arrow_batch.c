/* Arrow arrays and streams into batches, and schemas into tables: fields are found by name, each child becomes a column, and the array goes with the batch, which
 * releases it when it is freed. Cost: fields times columns to find them, and what arrow_read.c says. */
#include "arrow_read.h"

#include <errno.h>
#include <stdio.h>

#define WHERE_SIZE 600 /* a table's and a column's name, which have 255 bytes each */

/* One array on its way into a batch. */
typedef struct intake {
    ivm_batch *batch;
    ivm_table *table;
    ivm_change change;
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    const ivm_arrow_options *options;
} intake;

/* An array that a batch keeps until it is freed. */
typedef struct kept_array {
    ivm__kept head;
    struct ArrowArray array;
} kept_array;

static void array_release(struct ArrowArray *array)
{
    if (array && array->release) {
        array->release(array);
        array->release = NULL;
    }
}

static void kept_release(ivm__kept *held)
{
    array_release(&((kept_array *)held)->array);
}

/* ---- Fields and columns ------------------------------------------------------------------------------------------------------------------ */

/* The field of a name; *found is left alone where there is none. `what` and the name are for the message. */
static ivm_status field_find(const intake *it, const char *what, const char *name, int64_t *found)
{
    bool seen = false;
    for (int64_t i = 0; i < it->schema->n_children; i++) {
        if (strcmp(ivm__arrow_name(it->schema->children[i]), name) != 0) {
            continue;
        }
        if (seen) {
            return ivm__fail(&it->batch->mistake, IVM_TYPE_MISMATCH, "table %s, %s %s: two fields of this name", it->table->name, what,
                             name);
        }
        seen = true;
        *found = i;
    }
    return seen ? IVM_OK
                : ivm__fail(&it->batch->mistake, IVM_TYPE_MISMATCH, "table %s, %s %s: no field of this name", it->table->name, what, name);
}

/* Reads a field as a column of this type. */
static ivm_status field_read(const intake *it, const char *what, const char *name, ivm_type type, ivm_column_data *data)
{
    char where[WHERE_SIZE];
    int64_t field = 0;
    ivm__arrow_form indexes;
    (void)snprintf(where, sizeof where, "table %s, %s %s", it->table->name, what, name);
    IVM_TRY(field_find(it, what, name, &field));
    const struct ArrowSchema *schema = it->schema->children[field];
    ivm__arrow_reading in = { .batch = it->batch,
                              .where = where,
                              .array = it->array->children[field],
                              .type = type,
                              .at = (size_t)it->array->offset,
                              .rows = (size_t)it->array->length,
                              .format = schema->dictionary ? schema->dictionary->format : schema->format };
    IVM_TRY(ivm__arrow_field_parse(schema, where, &in.form, &indexes, &it->batch->mistake));
    if (!ivm__arrow_form_fits(&in.form, type)) {
        char text[IVM_TYPE_TEXT_SIZE];
        ivm_type_format(type, text);
        return ivm__fail(&it->batch->mistake, IVM_TYPE_MISMATCH, "%s: a field of format \"%s\", where %s is wanted", where, in.format,
                         text);
    }
    return schema->dictionary ? ivm__arrow_dictionary_read(&in, &indexes, data) : ivm__arrow_read(&in, data);
}

/* Before anything is read of it. */
static ivm_status schema_check(const char *table, const struct ArrowSchema *schema, ivm_error *error)
{
    char where[WHERE_SIZE];
    (void)snprintf(where, sizeof where, "table %s", table);
    return ivm__arrow_schema_check(schema, where, error);
}

static bool is_column(const intake *it, const char *name)
{
    for (uint32_t c = 0; c < ivm__change_columns(it->table, it->change); c++) {
        if (strcmp(it->table->columns[ivm__change_column(it->table, it->change, c)].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static ivm_status fields_check(const intake *it)
{
    if (it->options && it->options->fields_ignored) {
        return IVM_OK;
    }
    for (int64_t i = 0; i < it->schema->n_children; i++) {
        const struct ArrowSchema *field = it->schema->children[i];
        if (!ivm__arrow_is_weight(field, it->options) && !is_column(it, ivm__arrow_name(field))) {
            return ivm__fail(&it->batch->mistake, IVM_TYPE_MISMATCH, "table %s: field \"%s\" is none of its %s", it->table->name,
                             ivm__arrow_name(field), it->change == IVM_DELETE_KEY ? "key's columns" : "columns");
        }
    }
    return IVM_OK;
}

static bool has_weights(const ivm_arrow_options *options)
{
    return options && options->weight && *options->weight;
}

static ivm_status weights_read(const intake *it, const int64_t **weights)
{
    ivm_column_data data;
    IVM_TRY(field_read(it, "weight", it->options->weight, IVM_INT64, &data));
    for (size_t i = 0; data.validity && i < (size_t)it->array->length; i++) {
        if (!ivm__arrow_bit(data.validity, data.offset + i)) {
            return ivm__fail(&it->batch->mistake, IVM_NULL_VIOLATION, "table %s, weight %s: null in row %zu", it->table->name,
                             it->options->weight, i);
        }
    }
    *weights = data.values ? (const int64_t *)(const void *)((const uint8_t *)data.values + data.offset * sizeof(int64_t)) : NULL;
    return IVM_OK;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status options_check(const intake *it)
{
    if (it->options && it->options->version > IVM_ARROW_OPTIONS_VERSION) {
        return ivm__fail(&it->batch->mistake, IVM_UNSUPPORTED, "table %s: Arrow options of version %u, at most %u is known",
                         it->table->name, it->options->version, IVM_ARROW_OPTIONS_VERSION);
    }
    if (has_weights(it->options) && it->change != IVM_WEIGHTED) {
        return ivm__fail(&it->batch->mistake, IVM_INVALID_ARGUMENT, "table %s, weight %s: weights are for IVM_WEIGHTED alone",
                         it->table->name, it->options->weight);
    }
    if (has_weights(it->options) && is_column(it, it->options->weight)) {
        return ivm__fail(&it->batch->mistake, IVM_INVALID_ARGUMENT, "table %s, weight %s: a column has this name", it->table->name,
                         it->options->weight);
    }
    return IVM_OK;
}

/* Of the struct itself. */
static ivm_status array_check(const intake *it)
{
    const struct ArrowArray *array = it->array;
    ivm_error *mistake = &it->batch->mistake;
    const char *name = it->table->name;
    if (!array || !array->release) {
        return ivm__fail(mistake, IVM_INVALID_ARGUMENT, "table %s: the array %s", name, array ? "was released" : "is NULL");
    }
    if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX - array->length || array->null_count < -1) {
        return ivm__fail(mistake, IVM_INVALID_ARGUMENT, "table %s: an array of length %lld, offset %lld and %lld nulls", name,
                         (long long)array->length, (long long)array->offset, (long long)array->null_count);
    }
    if (array->length > IVM_BATCH_ROWS_MAX) {
        return ivm__fail(mistake, IVM_OVERFLOW, "table %s: %lld rows in one batch, at most %u", name, (long long)array->length,
                         IVM_BATCH_ROWS_MAX);
    }
    if (array->n_buffers != 1 || !array->buffers || array->dictionary) {
        return ivm__fail(mistake, IVM_INVALID_ARGUMENT, "table %s: an array of %lld buffers%s%s, where a struct has one", name,
                         (long long)array->n_buffers, array->buffers ? "" : " that are NULL", array->dictionary ? " and a dictionary" : "");
    }
    if (array->n_children != it->schema->n_children || (array->n_children > 0 && !array->children)) {
        return ivm__fail(mistake, IVM_INVALID_ARGUMENT, "table %s: an array of %lld children%s, where its schema has %lld", name,
                         (long long)array->n_children, array->children ? "" : " that are NULL", (long long)it->schema->n_children);
    }
    return IVM_OK;
}

/* A row may have nulls, but not be one. */
static ivm_status rows_check(const intake *it)
{
    const uint8_t *validity = it->array->buffers[0];
    for (size_t i = 0; validity && i < (size_t)it->array->length; i++) {
        if (!ivm__arrow_bit(validity, (size_t)it->array->offset + i)) {
            return ivm__fail(&it->batch->mistake, IVM_NULL_VIOLATION, "table %s: row %zu of the array is null as a whole", it->table->name,
                             i);
        }
    }
    return IVM_OK;
}

static ivm_status columns_read(const intake *it, ivm_column_data *columns)
{
    for (uint32_t c = 0; c < ivm__change_columns(it->table, it->change); c++) {
        uint32_t column = ivm__change_column(it->table, it->change, c);
        IVM_TRY(field_read(it, "column", it->table->columns[column].name, it->table->types[column], &columns[c]));
    }
    return IVM_OK;
}

/* The array's rows as a part of the batch, which borrows its buffers. */
static ivm_status array_add(const intake *it)
{
    ivm_rows rows = { .columns_count = ivm__change_columns(it->table, it->change) };
    IVM_TRY(options_check(it));
    IVM_TRY(schema_check(it->table->name, it->schema, &it->batch->mistake));
    IVM_TRY(array_check(it));
    IVM_TRY(fields_check(it));
    IVM_TRY(rows_check(it));
    ivm_column_data *columns = ivm__arrow_block(it->batch, rows.columns_count * sizeof *columns);
    if (!columns) {
        return IVM_OUT_OF_MEMORY;
    }
    IVM_TRY(columns_read(it, columns));
    if (has_weights(it->options)) {
        IVM_TRY(weights_read(it, &rows.weights));
    }
    rows.rows_count = (size_t)it->array->length;
    rows.columns = columns;
    return ivm_batch_columns(it->batch, it->table, it->change, &rows);
}

/* Takes the array into the batch, or releases it. */
static ivm_status array_take(const intake *it, struct ArrowArray *array)
{
    ivm_status status = ivm__batch_accepts(it->batch, it->table, it->change);
    kept_array *kept = NULL;
    intake with = *it;
    with.array = array;
    if (status == IVM_OK) {
        status = array_add(&with);
    }
    if (status == IVM_OK && array->length > 0) {
        kept = (kept_array *)ivm__batch_hold(it->batch, sizeof *kept);
        status = kept ? IVM_OK : it->batch->mistake.status;
    }
    if (!kept) {
        array_release(array);
        return status;
    }
    kept->array = *array;
    kept->head.release = kept_release;
    array->release = NULL;
    return IVM_OK;
}

ivm_status ivm_batch_arrow(ivm_batch *batch, ivm_table *table, ivm_change change, struct ArrowArray *array,
                           const struct ArrowSchema *schema, const ivm_arrow_options *options)
{
    if (!batch) {
        array_release(array);
        return IVM_INVALID_ARGUMENT;
    }
    intake it = { .batch = batch, .table = table, .change = change, .schema = schema, .options = options };
    return array_take(&it, array);
}

/* ---- Streams ----------------------------------------------------------------------------------------------------------------------------- */

static ivm_status stream_fail(const intake *it, struct ArrowArrayStream *stream, const char *call, int code)
{
    const char *said = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    return ivm__fail(&it->batch->mistake, code == ENOMEM ? IVM_OUT_OF_MEMORY : IVM_IO, "table %s: the stream's %s failed with %d: %s",
                     it->table->name, call, code, said ? said : "no reason given");
}

static ivm_status arrays_take(const intake *it, struct ArrowArrayStream *stream)
{
    int64_t rows = 0;
    for (;;) {
        struct ArrowArray array = { .release = NULL };
        int code = stream->get_next(stream, &array);
        if (code) {
            return stream_fail(it, stream, "get_next", code);
        }
        if (!array.release) {
            return IVM_OK;
        }
        int64_t length = array.length;
        IVM_TRY(array_take(it, &array));
        rows += length;
        if (rows > IVM_BATCH_ROWS_MAX) {
            return ivm__fail(&it->batch->mistake, IVM_OVERFLOW, "table %s: a stream of more than %u rows in one batch", it->table->name,
                             IVM_BATCH_ROWS_MAX);
        }
    }
}

static ivm_status stream_take(const intake *it, struct ArrowArrayStream *stream)
{
    struct ArrowSchema schema = { .release = NULL };
    IVM_TRY(ivm__batch_accepts(it->batch, it->table, it->change));
    if (!stream || !stream->release) {
        return ivm__fail(&it->batch->mistake, IVM_INVALID_ARGUMENT, "table %s: the stream %s", it->table->name,
                         stream ? "was released" : "is NULL");
    }
    int code = stream->get_schema(stream, &schema);
    if (code) {
        return stream_fail(it, stream, "get_schema", code);
    }
    intake with = *it;
    with.schema = &schema;
    ivm_status status = schema_check(it->table->name, &schema, &it->batch->mistake);
    if (status == IVM_OK) {
        status = arrays_take(&with, stream);
    }
    if (schema.release) {
        schema.release(&schema);
    }
    return status;
}

ivm_status ivm_batch_arrow_stream(ivm_batch *batch, ivm_table *table, ivm_change change, struct ArrowArrayStream *stream,
                                  const ivm_arrow_options *options)
{
    intake it = { .batch = batch, .table = table, .change = change, .options = options };
    ivm_status status = batch ? stream_take(&it, stream) : IVM_INVALID_ARGUMENT;
    if (stream && stream->release) {
        stream->release(stream);
        stream->release = NULL;
    }
    return status;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------------ */

static ivm_status definitions_fill(const char *name, const struct ArrowSchema *schema, const ivm_arrow_options *arrow,
                                   ivm_table_options *options, ivm_column_definition *columns, ivm_error *error)
{
    size_t count = 0;
    char where[WHERE_SIZE];
    (void)snprintf(where, sizeof where, "table %s", name);
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *field = schema->children[i];
        ivm__arrow_form form, indexes;
        if (ivm__arrow_is_weight(field, arrow)) {
            continue;
        }
        IVM_TRY(ivm__arrow_field_parse(field, where, &form, &indexes, error));
        if (form.layout == IVM__ARROW_NULLS) {
            return ivm__fail(error, IVM_UNSUPPORTED, "table %s: field %s is all null and makes a column of no type", name,
                             ivm__arrow_name(field));
        }
        columns[count++] = (ivm_column_definition){ ivm__arrow_name(field), form.type, !(field->flags & ARROW_FLAG_NULLABLE) };
    }
    options->columns = columns;
    options->columns_count = count;
    return IVM_OK;
}

ivm_status ivm_table_create_arrow(ivm_engine *engine, const char *name, const struct ArrowSchema *schema, const ivm_table_options *options,
                                  const ivm_arrow_options *arrow, ivm_table **table, ivm_error *error)
{
    ivm_table_options own = options ? *options : (ivm_table_options){ .version = IVM_TABLE_OPTIONS_VERSION };
    if (!engine || !name) {
        return ivm__fail_null(error, "ivm_table_create_arrow", engine ? "name" : "engine");
    }
    if (own.columns || own.columns_count) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "ivm_table_create_arrow: columns are the schema's");
    }
    IVM_TRY(schema_check(name, schema, error));
    if (schema->n_children > IVM_TABLE_COLUMNS_MAX + 1) {
        return ivm__fail(error, IVM_INVALID_ARGUMENT, "table %s: a schema of %lld fields, at most %d are columns", name,
                         (long long)schema->n_children, IVM_TABLE_COLUMNS_MAX);
    }
    size_t size = (size_t)schema->n_children * sizeof(ivm_column_definition);
    ivm__memory memory;
    ivm__memory_init(&memory, &engine->memory.allocator);
    ivm_column_definition *columns = ivm__allocate(&memory, size);
    if (!columns) {
        return ivm__fail_memory(error);
    }
    ivm_status status = definitions_fill(name, schema, arrow, &own, columns, error);
    if (status == IVM_OK) {
        status = ivm_table_create(engine, name, &own, table, error);
    }
    ivm__release(&memory, columns, size);
    return status;
}
