/* See arrow_case.h. */
#include "arrow_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Record batches ---------------------------------------------------------------------------------------------------------------------- */

static void buffers_free(arrow_case *it)
{
    for (int n = 0; n < it->nodes; n++) {
        for (int b = 0; b < ARROW_CASE_BUFFERS; b++) {
            free(it->buffers[n][b] ? (uint8_t *)(uintptr_t)it->buffers[n][b] - it->shift : NULL);
            it->buffers[n][b] = NULL;
        }
    }
    free((void *)(uintptr_t)it->base_buffers[0]);
    it->base_buffers[0] = NULL;
}

static void base_release(struct ArrowArray *array)
{
    arrow_case *it = array->private_data;
    it->released++;
    cr_assert_eq(it->released, 1, "released twice");
    buffers_free(it);
    array->release = NULL;
}

static void child_release(struct ArrowArray *array)
{
    (void)array;
    cr_assert_fail("a child was released");
}

static void schema_release(struct ArrowSchema *schema)
{
    (void)schema;
    cr_assert_fail("the schema was released");
}

void arrow_case_init(arrow_case *it, int64_t length)
{
    *it = (arrow_case){ .nodes = 0 };
    it->schema = (struct ArrowSchema){ .format = "+s", .name = "", .children = it->schema_children, .release = schema_release };
    it->array = (struct ArrowArray){
        .length = length, .n_buffers = 1, .buffers = it->base_buffers, .children = it->children, .release = base_release, .private_data = it
    };
}

static int node_add(arrow_case *it, const char *name, const char *format, int64_t length)
{
    int n = it->nodes++;
    cr_assert_lt(n, ARROW_CASE_NODES);
    it->schemas[n] = (struct ArrowSchema){ .format = format, .name = name, .flags = ARROW_FLAG_NULLABLE, .release = schema_release };
    it->arrays[n] = (struct ArrowArray){ .length = length, .buffers = it->buffers[n], .release = child_release };
    return n;
}

struct ArrowArray *arrow_case_field(arrow_case *it, const char *name, const char *format)
{
    int n = node_add(it, name, format, it->array.length);
    it->schema_children[it->schema.n_children++] = &it->schemas[n];
    it->children[it->array.n_children++] = &it->arrays[n];
    return &it->arrays[n];
}

struct ArrowArray *arrow_case_dictionary(arrow_case *it, const char *format, int64_t length)
{
    int n = node_add(it, "", format, length);
    it->schema_children[it->schema.n_children - 1]->dictionary = &it->schemas[n];
    it->children[it->array.n_children - 1]->dictionary = &it->arrays[n];
    return &it->arrays[n];
}

void arrow_case_buffer(arrow_case *it, struct ArrowArray *array, const void *bytes, size_t size)
{
    size_t shift = array == &it->array ? 0 : it->shift;
    uint8_t *block = bytes ? (uint8_t *)malloc(shift + size) + shift : NULL;
    if (bytes && size) {
        memcpy(block, bytes, size);
    }
    if (array == &it->array) {
        it->base_buffers[0] = block;
        return;
    }
    cr_assert_lt(array->n_buffers, ARROW_CASE_BUFFERS);
    it->buffers[array - it->arrays][array->n_buffers++] = block;
}

struct ArrowArray *arrow_case_values(arrow_case *it, const char *name, const char *format, const void *values, size_t size)
{
    struct ArrowArray *array = arrow_case_field(it, name, format);
    arrow_case_buffer(it, array, NULL, 0);
    arrow_case_buffer(it, array, values, size);
    return array;
}

struct ArrowArray *arrow_case_strings(arrow_case *it, const char *name, const int32_t *offsets, size_t offsets_size, const char *bytes)
{
    struct ArrowArray *array = arrow_case_values(it, name, "u", offsets, offsets_size);
    arrow_case_buffer(it, array, bytes, bytes ? strlen(bytes) : 0);
    return array;
}

const ivm_column_definition arrow_columns_good[ARROW_FIELDS_GOOD] = { { "i", IVM_INT64 }, { "s", IVM_STRING }, { "n", IVM_DECIMAL(4, 1) } };

/* Three good rows: (1, "a", 0.5), (2, "bb", -2.0), (3, "", null). */
void arrow_case_good(arrow_case *it)
{
    arrow_case_init(it, 3);
    arrow_case_values(it, "i", "l", (int64_t[]){ 1, 2, 3 }, 24);
    arrow_case_strings(it, "s", (int32_t[]){ 0, 1, 3, 3 }, 16, "abb");
    struct ArrowArray *n = arrow_case_field(it, "n", "d:4,1,64");
    arrow_case_buffer(it, n, &(uint8_t){ 3 }, 1);
    arrow_case_buffer(it, n, (int64_t[]){ 5, -20, 0 }, 24);
    n->null_count = 1;
}

void arrow_case_free(arrow_case *it)
{
    if (it->array.release) {
        it->array.release(&it->array);
    }
}

/* ---- Streams ----------------------------------------------------------------------------------------------------------------------------- */

static void feed_schema_release(struct ArrowSchema *schema)
{
    arrow_feed *it = schema->private_data;
    it->schemas_released++;
    schema->release = NULL;
}

static int feed_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    arrow_feed *it = stream->private_data;
    if (it->schema_fails) {
        return it->code;
    }
    *out = it->cases[0].schema;
    out->release = feed_schema_release;
    out->private_data = it;
    return 0;
}

static int feed_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    arrow_feed *it = stream->private_data;
    if (it->fail_at && it->given + 1 == it->fail_at) {
        return it->code;
    }
    out->release = NULL;
    if (it->given < it->count) {
        *out = it->cases[it->given].array;
        it->cases[it->given++].array.release = NULL;
    }
    return 0;
}

static const char *feed_error(struct ArrowArrayStream *stream)
{
    return ((arrow_feed *)stream->private_data)->silent ? NULL : "the wire\nwas cut";
}

static void feed_release(struct ArrowArrayStream *stream)
{
    arrow_feed *it = stream->private_data;
    it->released++;
    for (int i = it->given; i < it->count; i++) {
        arrow_case_free(&it->cases[i]);
    }
    stream->release = NULL;
}

void arrow_feed_init(arrow_feed *it, void (*make)(arrow_case *it), int count)
{
    *it = (arrow_feed){ .make = make, .count = count, .stream = { feed_schema, feed_next, feed_error, feed_release, it } };
    cr_assert_leq(count, 4);
    for (int i = 0; i < count; i++) {
        make(&it->cases[i]);
    }
}

/* ---- Where they go --------------------------------------------------------------------------------------------------------------------- */

void arrow_host_open(arrow_host *it, const ivm_column_definition *columns, uint32_t columns_count)
{
    const ivm_table_options table = { .columns = columns, .columns_count = columns_count };
    test_allocator_init(&it->counted);
    ivm_engine_options options = IVM_ENGINE_OPTIONS_INIT;
    options.allocator = test_allocator_functions(&it->counted);
    cr_assert_eq(ivm_engine_open(&options, &it->engine, NULL), IVM_OK);
    cr_assert_eq(ivm_table_create(it->engine, "t", &table, &it->table, NULL), IVM_OK);
    arrow_host_batch(it);
}

void arrow_host_batch(arrow_host *it)
{
    cr_assert_eq(ivm_batch_create(it->engine, &it->batch, NULL), IVM_OK);
}

void arrow_host_close(arrow_host *it)
{
    ivm_batch_free(it->batch);
    cr_assert_eq(ivm_engine_close(it->engine, NULL), IVM_OK);
    cr_assert(test_allocator_is_clean(&it->counted));
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------------------------- */

static size_t value_text(const ivm_rows *rows, ivm_type type, size_t row, size_t column, char *text, size_t size)
{
    ivm_value value = ivm_rows_value(rows, type, row, column);
    if (value.type == IVM_STRING && !value.is_null) {
        return (size_t)snprintf(text, size, "\"%.*s\"", (int)value.as.string.size, value.as.string.bytes);
    }
    return ivm_value_format(&value, text, size);
}

void arrow_rows_text(ivm_snapshot *snapshot, char text[ARROW_TEXT_SIZE])
{
    ivm_rows rows;
    size_t used = 0;
    text[0] = 0;
    cr_assert_eq(ivm_snapshot_sort(snapshot, NULL), IVM_OK);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            for (size_t c = 0; c < rows.columns_count; c++) {
                used += (size_t)snprintf(text + used, ARROW_TEXT_SIZE - used, c ? "," : "(");
                used += value_text(&rows, ivm_snapshot_column_type(snapshot, c), r, c, text + used, ARROW_TEXT_SIZE - used);
            }
            used +=
                (size_t)snprintf(text + used, ARROW_TEXT_SIZE - used, rows.weights[r] == 1 ? ")" : ")*%lld", (long long)rows.weights[r]);
            cr_assert_lt(used, ARROW_TEXT_SIZE);
        }
    }
}

void arrow_table_text(ivm_table *table, char text[ARROW_TEXT_SIZE])
{
    ivm_snapshot *snapshot;
    cr_assert_eq(ivm_read_table(table, &snapshot, NULL), IVM_OK);
    arrow_rows_text(snapshot, text);
    ivm_snapshot_close(snapshot);
}
