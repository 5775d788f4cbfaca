/* Columns from Arrow: batches come as streams of Arrow's C interface, a view's changes go as one. Neither side links anything of Arrow's: the three structs in
 * ivm/arrow.h are all there is between them. Here a small producer stands for DuckDB, Polars or pyarrow, and a printer for who takes the changes.
 *
 * The table is declared by the producer's own schema. Its rows carry weights, so a sale that is taken back is a row as any other; and so do the changes:
 * the stream that comes out could go into another engine as it is. Numbers and strings are read where the producer has them, and its arrays
 * are released when the push is done.
 *
 * It prints:
 *
 *     morning: 3 rows in 2 arrays, all released
 *     shop  sold  weight
 *     north 15    1
 *     south 14    1
 *     evening: 2 rows in 1 array, all released
 *     shop  sold  weight
 *     east  3     1
 *     north 5     1
 *     north 15    -1
 */
#include <ivm/ivm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ivm_error error = IVM_ERROR_INIT;

static void must(ivm_status status)
{
    if (status != IVM_OK) {
        fprintf(stderr, "%s: %s\n", ivm_status_name(status), error.message);
        exit(1);
    }
}

static void *take(size_t size)
{
    void *taken = calloc(1, size);
    if (!taken) {
        exit(1);
    }
    return taken;
}

/* ---- A producer ------------------------------------------------------------------------------------------------------------------------ */

typedef struct sale {
    const char *shop;
    int64_t amount, weight;
} sale;

static const sale morning[] = { { "north", 10, 1 }, { "south", 7, 2 }, { "north", 5, 1 } };
static const sale evening[] = { { "north", 10, -1 }, { "east", 3, 1 } };

#define COLUMNS 3
#define ARRAY_ROWS 2 /* at most, so that a stream has several arrays */

static size_t arrays_made, arrays_released; /* structs, without their children */

/* An array owns its buffers and its children, each from malloc(): a consumer may move a child elsewhere and release the rest. */
static void array_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release) {
            array->children[i]->release(array->children[i]);
        }
        free(array->children[i]);
    }
    for (int64_t i = 0; i < array->n_buffers; i++) {
        free((void *)array->buffers[i]);
    }
    arrays_released += array->n_children > 0;
    free(array->children);
    free(array->buffers);
    array->release = NULL;
}

static struct ArrowArray array_of(int64_t rows_count, int64_t buffers_count, int64_t children_count)
{
    struct ArrowArray array = { .length = rows_count, .n_buffers = buffers_count, .n_children = children_count, .release = array_release };
    array.buffers = take((size_t)buffers_count * sizeof *array.buffers); /* the first, of validity, stays NULL: nothing is null */
    array.children = children_count ? take((size_t)children_count * sizeof *array.children) : NULL;
    for (int64_t i = 0; i < children_count; i++) {
        array.children[i] = take(sizeof **array.children);
    }
    return array;
}

static struct ArrowArray array_of_shops(const sale *sales, size_t count)
{
    struct ArrowArray array = array_of((int64_t)count, 3, 0);
    int32_t *offsets = take((count + 1) * sizeof *offsets);
    char *bytes = take(16 * count);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(sales[i].shop);
        memcpy(bytes + offsets[i], sales[i].shop, size);
        offsets[i + 1] = offsets[i] + (int32_t)size;
    }
    array.buffers[1] = offsets;
    array.buffers[2] = bytes;
    return array;
}

static struct ArrowArray array_of_numbers(const int64_t *first, size_t count)
{
    struct ArrowArray array = array_of((int64_t)count, 2, 0);
    int64_t *numbers = take(count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = *(const int64_t *)((const char *)first + i * sizeof(sale));
    }
    array.buffers[1] = numbers;
    return array;
}

static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release) {
            schema->children[i]->release(schema->children[i]);
        }
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = NULL;
}

static int sales_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static const char *const fields[COLUMNS][2] = { { "shop", "u" }, { "amount", "l" }, { "weight", "l" } };
    (void)stream;
    *out = (struct ArrowSchema){ .format = "+s", .name = "", .n_children = COLUMNS, .release = schema_release };
    out->children = take(COLUMNS * sizeof *out->children);
    for (size_t i = 0; i < COLUMNS; i++) {
        out->children[i] = take(sizeof **out->children);
        *out->children[i] = (struct ArrowSchema){ .format = fields[i][1], .name = fields[i][0], .release = schema_release };
    }
    return 0;
}

typedef struct sales_left {
    const sale *first;
    size_t count;
} sales_left;

/* The next rows; behind the last an array without a release, which is how a stream ends. */
static int sales_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    sales_left *left = stream->private_data;
    size_t count = left->count < ARRAY_ROWS ? left->count : ARRAY_ROWS;
    if (!count) {
        out->release = NULL;
        return 0;
    }
    *out = array_of((int64_t)count, 1, COLUMNS);
    *out->children[0] = array_of_shops(left->first, count);
    *out->children[1] = array_of_numbers(&left->first->amount, count);
    *out->children[2] = array_of_numbers(&left->first->weight, count);
    *left = (sales_left){ left->first + count, left->count - count };
    arrays_made++;
    return 0;
}

static const char *sales_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL; /* nothing here fails */
}

static void sales_release(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
}

static struct ArrowArrayStream sales_stream(const sale *sales, size_t count)
{
    sales_left *left = take(sizeof *left);
    *left = (sales_left){ sales, count };
    return (struct ArrowArrayStream){ sales_schema, sales_next, sales_error, sales_release, left };
}

/* ---- A consumer ------------------------------------------------------------------------------------------------------------------------ */

static void cell_print(const struct ArrowSchema *field, const struct ArrowArray *array, int64_t row)
{
    const void *values = array->buffers[1];
    row += array->offset;
    if (*field->format == 'u') {
        const int32_t *ends = values;
        printf("%-5.*s ", (int)(ends[row + 1] - ends[row]), (const char *)array->buffers[2] + ends[row]);
    } else {
        printf(strcmp(field->name, "weight") == 0 ? "%" PRId64 "\n" : "%-5" PRId64 " ", ((const int64_t *)values)[row]);
    }
}

/* Strings and int64, none of them null; all that a stream has is released by who was given it. */
static void stream_print(struct ArrowArrayStream *stream)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    if (stream->get_schema(stream, &schema) != 0) {
        exit(1);
    }
    printf("%-5s %-5s %s\n", schema.children[0]->name, schema.children[1]->name, schema.children[2]->name);
    while (stream->get_next(stream, &array) == 0 && array.release) {
        for (int64_t row = 0; row < array.length; row++) {
            for (int64_t i = 0; i < schema.n_children; i++) {
                cell_print(schema.children[i], array.children[i], row);
            }
        }
        array.release(&array);
    }
    schema.release(&schema);
    stream->release(stream);
}

/* ---- The engine between them ----------------------------------------------------------------------------------------------------------- */

static const ivm_arrow_options weighted = { .weight = "weight" };

static ivm_table *table_declare(ivm_engine *engine)
{
    struct ArrowArrayStream stream = sales_stream(NULL, 0);
    struct ArrowSchema schema;
    ivm_table *table;
    stream.get_schema(&stream, &schema);
    must(ivm_table_create_arrow(engine, "sales", &schema, NULL, &weighted, &table, &error));
    schema.release(&schema);
    stream.release(&stream);
    return table;
}

static void push_and_print(ivm_engine *engine, ivm_table *table, ivm_view *sold, const char *when, const sale *sales, size_t count)
{
    struct ArrowArrayStream stream = sales_stream(sales, count);
    ivm_batch *batch;
    ivm_snapshot *changes;
    arrays_made = arrays_released = 0;
    must(ivm_batch_create(engine, &batch, &error));
    (void)ivm_batch_arrow_stream(batch, table, IVM_WEIGHTED, &stream, &weighted); /* takes the stream; the push tells of mistakes */
    must(ivm_push_batch(engine, batch, NULL, &error));
    printf("%s: %zu rows in %zu array%s, %s released\n", when, count, arrays_made, arrays_made == 1 ? "" : "s",
           arrays_released == arrays_made ? "all" : "not all");

    must(ivm_read_changes(sold, &changes, &error));
    must(ivm_snapshot_sort(changes, &error));
    must(ivm_snapshot_arrow_stream(changes, &(ivm_arrow_options){ .view = sold, .weight = "weight" }, &stream, &error)); /* takes them */
    stream_print(&stream);
}

int main(void)
{
    ivm_engine *engine;
    ivm_view *sold;
    must(ivm_engine_open(NULL, &engine, &error));
    ivm_table *table = table_declare(engine);
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(table, NULL), "shop"), "sold", "sum", ivm_column("amount"));
    must(ivm_view_create(engine, "sold", plan, NULL, &sold, &error));
    push_and_print(engine, table, sold, "morning", morning, sizeof morning / sizeof *morning);
    push_and_print(engine, table, sold, "evening", evening, sizeof evening / sizeof *evening);
    must(ivm_engine_close(engine, &error));
    return 0;
}
