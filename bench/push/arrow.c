/* `ivm bench arrow`: rows pushed as column arrays, as an Arrow array that lies as columns do, and as one that must be converted (narrow integers, floats, a
 * dictionary), into a table whose rows are aggregated and not kept; and rows of a kept table read by cursor and as an Arrow stream. All three
 * must leave the same in the view, and the stream must give every row. */
#include "ivm/ivm.h"

#include "command.h"
#include "measure.h"
#include "option.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: ivm bench arrow [OPTIONS]\n"
    "\n"
    "One batch a run of two int64, a float64 and a string column, summed by the first; by columns, by an Arrow array read\n"
    "in place, and by one that is converted. Then a table of as many rows read by cursor and as an Arrow stream.\n"
    "\n"
    "  --rows N       (default 1000000)\n"
    "  --runs N       (default 5)\n"
    "  --json         one line per figure\n";

#define KEYS 100
#define WORDS 16
#define WORD_SIZE 8
#define COLUMNS 4
enum { BY_COLUMNS, IN_PLACE, CONVERTED, BY_CURSOR, AS_STREAM, WAYS };
static const char *const way_names[WAYS] = { "columns", "in_place", "converted", "cursor", "stream" };
static const char *const names[COLUMNS] = { "k", "v", "f", "s" };

/* The same rows, wide and narrow. */
typedef struct rows_made {
    int64_t *k, *v;
    double *f;
    int32_t *offsets, *k_narrow, word_offsets[WORDS + 1];
    int16_t *v_narrow;
    float *f_narrow;
    uint8_t *word;
    char *bytes, words[WORDS * WORD_SIZE];
} rows_made;

typedef struct arrow_bench {
    uint64_t rows, runs;
    bool json, wrong;
    rows_made made;
    ivm_engine *engine;
    ivm_table *passing, *kept;
    ivm_view *view;
    double nanoseconds[WAYS][RUNS_MAX];
} arrow_bench;

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench arrow: %s", error->message));
    }
}

static void *block(uint64_t count, size_t size)
{
    void *made = calloc(count, size);
    if (!made) {
        exit(usage_error("bench arrow: out of memory"));
    }
    return made;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------------------- */

static void rows_make(rows_made *it, uint64_t rows)
{
    random_state random = { 1 };
    *it = (rows_made){ .k = block(rows, 8), .v = block(rows, 8), .f = block(rows, 8), .offsets = block(rows + 1, 4) };
    it->k_narrow = block(rows, 4);
    it->v_narrow = block(rows, 2);
    it->f_narrow = block(rows, 4);
    it->word = block(rows, 1);
    it->bytes = block(rows, WORD_SIZE);
    for (int i = 0; i < WORDS; i++) {
        memcpy(it->words + i * WORD_SIZE, "word....", WORD_SIZE);
        it->words[i * WORD_SIZE + 4] = (char)('a' + i);
        it->word_offsets[i + 1] = (i + 1) * WORD_SIZE;
    }
    for (uint64_t r = 0; r < rows; r++) {
        it->k[r] = it->k_narrow[r] = (int32_t)random_below(&random, KEYS);
        it->v[r] = it->v_narrow[r] = (int16_t)random_below(&random, 1000);
        it->f[r] = it->f_narrow[r] = (float)random_below(&random, 1000) / 4;
        it->word[r] = (uint8_t)random_below(&random, WORDS);
        memcpy(it->bytes + r * WORD_SIZE, it->words + it->word[r] * WORD_SIZE, WORD_SIZE);
        it->offsets[r + 1] = (int32_t)((r + 1) * WORD_SIZE);
    }
}

static void rows_free(rows_made *it)
{
    void *blocks[] = { it->k, it->v, it->f, it->offsets, it->k_narrow, it->v_narrow, it->f_narrow, it->word, it->bytes };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        free(blocks[i]);
    }
}

/* ---- As Arrow ------------------------------------------------------------------------------------------------------------------------ */

typedef struct arrow_rows {
    struct ArrowSchema schema, fields[COLUMNS], *fields_list[COLUMNS], words_schema;
    struct ArrowArray array, children[COLUMNS], *children_list[COLUMNS], words;
    const void *none[1], *buffers[COLUMNS][3], *words_buffers[3];
} arrow_rows;

static void schema_kept(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void array_kept(struct ArrowArray *array)
{
    array->release = NULL;
}

static void arrow_make(arrow_rows *it, const rows_made *made, int64_t rows, bool narrow)
{
    const char *const formats[COLUMNS] = { narrow ? "i" : "l", narrow ? "s" : "l", narrow ? "f" : "g", narrow ? "C" : "u" };
    const void *const values[COLUMNS] = { narrow ? (const void *)made->k_narrow : made->k, narrow ? (const void *)made->v_narrow : made->v,
                                          narrow ? (const void *)made->f_narrow : made->f,
                                          narrow ? (const void *)made->word : made->offsets };
    *it = (arrow_rows){ .none = { NULL } };
    for (int c = 0; c < COLUMNS; c++) {
        it->fields[c] = (struct ArrowSchema){ .format = formats[c], .name = names[c], .release = schema_kept };
        it->buffers[c][1] = values[c];
        it->children[c] =
            (struct ArrowArray){ .length = rows, .n_buffers = c == 3 && !narrow ? 3 : 2, .buffers = it->buffers[c], .release = array_kept };
        it->fields_list[c] = &it->fields[c];
        it->children_list[c] = &it->children[c];
    }
    it->buffers[3][2] = made->bytes;
    it->words_buffers[1] = made->word_offsets;
    it->words_buffers[2] = made->words;
    it->words_schema = (struct ArrowSchema){ .format = "u", .release = schema_kept };
    it->words = (struct ArrowArray){ .length = WORDS, .n_buffers = 3, .buffers = it->words_buffers, .release = array_kept };
    it->fields[3].dictionary = narrow ? &it->words_schema : NULL;
    it->children[3].dictionary = narrow ? &it->words : NULL;
    it->schema = (struct ArrowSchema){ .format = "+s", .n_children = COLUMNS, .children = it->fields_list, .release = schema_kept };
    it->array = (struct ArrowArray){
        .length = rows, .n_buffers = 1, .buffers = it->none, .n_children = COLUMNS, .children = it->children_list, .release = array_kept
    };
}

/* ---- Ways ---------------------------------------------------------------------------------------------------------------------------- */

static void way_push(const arrow_bench *bench, int way, ivm_table *table)
{
    const rows_made *made = &bench->made;
    const ivm_column_data columns[COLUMNS] = {
        { .values = made->k }, { .values = made->v }, { .values = made->f }, { .values = made->bytes, .offsets = made->offsets }
    };
    const ivm_rows rows = { bench->rows, COLUMNS, columns, NULL };
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch = NULL;
    arrow_rows as_arrow;
    must(ivm_batch_create(bench->engine, &batch, &error), &error);
    if (way == BY_COLUMNS) {
        (void)ivm_batch_columns(batch, table, IVM_INSERT, &rows);
    } else {
        arrow_make(&as_arrow, made, (int64_t)bench->rows, way == CONVERTED);
        (void)ivm_batch_arrow(batch, table, IVM_INSERT, &as_arrow.array, &as_arrow.schema, NULL);
    }
    must(ivm_push_batch(bench->engine, batch, NULL, &error), &error);
}

/* What the view has: all numbers in it. */
static double view_sum(const arrow_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *snapshot = NULL;
    ivm_rows rows;
    double sum = 0;
    must(ivm_read_view(bench->view, &snapshot, &error), &error);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t r = 0; r < rows.rows_count; r++) {
            sum += (double)(ivm_rows_value(&rows, IVM_INT64, r, 1).as.int64 + ivm_rows_value(&rows, IVM_INT64, r, 3).as.int64);
            sum += ivm_rows_value(&rows, IVM_FLOAT64, r, 2).as.float64;
        }
    }
    ivm_snapshot_close(snapshot);
    return sum;
}

/* How many rows the kept table gave. */
static uint64_t way_read(const arrow_bench *bench, int way)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *snapshot = NULL;
    ivm_rows rows;
    uint64_t given = 0;
    must(ivm_read_table(bench->kept, &snapshot, &error), &error);
    if (way == BY_CURSOR) {
        while (ivm_snapshot_next(snapshot, &rows)) {
            given += rows.rows_count;
        }
        ivm_snapshot_close(snapshot);
        return given;
    }
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    must(ivm_snapshot_arrow_stream(snapshot, &(ivm_arrow_options){ .table = bench->kept, .weight = "w" }, &stream, &error), &error);
    while (stream.get_next(&stream, &array) == 0 && array.release) {
        given += (uint64_t)array.length;
        array.release(&array);
    }
    stream.release(&stream);
    return given;
}

static void measure(arrow_bench *bench)
{
    double sum = 0, first = 0;
    for (size_t run = 0; run < bench->runs; run++) {
        for (int way = 0; way < WAYS; way++) {
            uint64_t given = bench->rows, start = clock_nanoseconds();
            if (way <= CONVERTED) {
                way_push(bench, way, bench->passing);
            } else {
                given = way_read(bench, way);
            }
            bench->nanoseconds[way][run] = (double)(clock_nanoseconds() - start) / (double)bench->rows;
            double added = way <= CONVERTED ? view_sum(bench) - sum : first;
            sum += way <= CONVERTED ? added : 0;
            first = run == 0 && way == 0 ? added : first;
            bench->wrong |= given != bench->rows || added != first;
        }
    }
}

/* ---- The command --------------------------------------------------------------------------------------------------------------------- */

static void engine_open(arrow_bench *bench)
{
    const ivm_column_definition columns[COLUMNS] = {
        { names[0], IVM_INT64, true }, { names[1], IVM_INT64, true }, { names[2], IVM_FLOAT64, true }, { names[3], IVM_STRING, true }
    };
    ivm_table_options options = { .columns = columns, .columns_count = COLUMNS };
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_open(NULL, &bench->engine, &error), &error);
    must(ivm_table_create(bench->engine, "kept", &options, &bench->kept, &error), &error);
    options.transient = true;
    must(ivm_table_create(bench->engine, "passing", &options, &bench->passing, &error), &error);
    way_push(bench, IN_PLACE, bench->kept);
    ivm_plan *plan = ivm_plan_aggregate(ivm_plan_scan(bench->passing, "p"), "k");
    plan = ivm_plan_add(plan, "v", "sum", ivm_column("v"));
    plan = ivm_plan_count(ivm_plan_add(plan, "f", "sum", ivm_column("f")), "n");
    must(ivm_view_create(bench->engine, "sums", plan, NULL, &bench->view, &error), &error);
}

static void way_print(arrow_bench *bench, int way)
{
    spread over = spread_of(bench->nanoseconds[way], bench->runs);
    figure_add(&(figure){ .bench = "arrow",
                          .metric = way <= CONVERTED ? "push_ns" : "read_ns",
                          .value = over.median,
                          .variant = way_names[way],
                          .low = over.low,
                          .high = over.high,
                          .runs = bench->runs,
                          .rows = bench->rows });
    if (!bench->json) {
        printf("%-6s %-10s %7.1f ns a row (%.1f to %.1f)\n", way <= CONVERTED ? "pushed" : "read", way_names[way], over.median, over.low,
               over.high);
    }
}

int arrow_command(int argc, char **argv)
{
    static arrow_bench bench = { .rows = 1000000, .runs = 5 };
    int code;
    operand_list operands;
    const option_definition options[] = {
        { "--rows", OPTION_NUMBER, &bench.rows }, { "--runs", OPTION_NUMBER, &bench.runs }, { "--json", OPTION_FLAG, &bench.json }, { NULL }
    };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || bench.runs > RUNS_MAX || bench.rows > 100000000) {
        return usage_error("bench arrow takes options only, %d runs and 100000000 rows at most; --help says more", RUNS_MAX);
    }
    rows_make(&bench.made, bench.rows);
    engine_open(&bench);
    measure(&bench);
    for (int way = 0; way < WAYS; way++) {
        way_print(&bench, way);
    }
    if (bench.wrong) {
        fprintf(stderr, "ivm: bench arrow: not all ways give the same\n");
    }
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_close(bench.engine, &error), &error);
    rows_free(&bench.made);
    return bench.wrong ? EXIT_WRONG : EXIT_HOLDS;
}
