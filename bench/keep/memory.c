/* `ivm bench memory`: what rows cost. Fact rows are made batch by batch, so that the command itself holds no more than one. */
#include "arena.h"
#include "command.h"
#include "engine_memory.h"
#include "measure.h"
#include "option.h"
#include "star_engine.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: ivm bench memory [OPTIONS]\n"
    "\n"
    "A star of four dimensions of 100,000 rows (key and attribute: 16 bytes raw), fact rows of four keys and an\n"
    "amount (40 bytes raw), grouped by the attributes into 4096 groups. Bytes are those of the engine's own\n"
    "jemalloc arena.\n"
    "\n"
    "  dimension rows   loaded in batches of 1,000 with fact rows among them, so that all indexes that terms read\n"
    "                   are there: bytes a row at the end, and the most in the second half of the load, beyond those\n"
    "                   of the same engine with its first batch of dimension rows and all groups of its view\n"
    "  fact rows        pruned, so that no term reads them: bytes a row over the raw 40; then with the reverse\n"
    "                   indexes by all four keys, made ahead (ivm_view_prepare)\n"
    "  transient rows   of a fact table that keeps none: what the engine grows by from a tenth of them on\n"
    "\n"
    "  --kept N    fact rows that are kept (default 2000000)\n"
    "  --rows N    transient fact rows (default 100000000)\n"
    "  --json      one line per figure: dimension_row_bytes, dimension_row_bytes_max, fact_row_over_raw,\n"
    "              fact_row_over_raw_indexed, transient_growth_bytes, transient_bytes\n";

#define DIMENSIONS 4
#define DIMENSION_ROWS 100000
#define ROWS_A_BATCH 1000
#define FACT_ROWS_A_BATCH 100000
#define FACT_ROWS_BESIDE 10 /* a batch of dimension rows */
#define FACT_ROW_RAW 40.0

typedef struct memory_bench {
    star_data data; /* dimensions; fact columns have room for one batch */
    random_state random;
    star_engine star;
    double dimension_row, dimension_row_max;
    double fact_row, fact_row_indexed;
    uint64_t transient_start, transient_end;
    uint64_t kept, rows;
    bool wrong;
} memory_bench;

/* ---- Filling ------------------------------------------------------------------------------------------------------------------- */

/* `count` fact rows that refer to the first `known` rows of each dimension, in the batch under way. */
static void fact_rows_fill(memory_bench *bench, ivm_batch *batch, size_t count, uint32_t known)
{
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        for (size_t i = 0; i < count; i++) {
            bench->data.fact_columns[d][i] = bench->data.keys[d][random_below(&bench->random, known)];
        }
    }
    for (size_t i = 0; i < count; i++) {
        bench->data.fact_columns[DIMENSIONS][i] = random_below(&bench->random, 1000);
    }
    star_batch_fact_rows(&bench->star, batch, (star_part){ &bench->data, 0, count });
}

static void fact_rows_push(memory_bench *bench, uint64_t count, uint32_t known)
{
    for (uint64_t at = 0; at < count; at += FACT_ROWS_A_BATCH) {
        ivm_batch *batch = star_batch(&bench->star);
        fact_rows_fill(bench, batch, (size_t)(count - at < FACT_ROWS_A_BATCH ? count - at : FACT_ROWS_A_BATCH), known);
        star_push(&bench->star, batch, NULL);
    }
}

static void dimension_rows_push(memory_bench *bench, uint32_t first)
{
    ivm_batch *batch = star_batch(&bench->star);
    for (uint32_t d = 0; d < DIMENSIONS; d++) {
        star_batch_dimension(&bench->star, batch, d, (star_part){ &bench->data, first, ROWS_A_BATCH });
    }
    fact_rows_fill(bench, batch, FACT_ROWS_BESIDE, first + ROWS_A_BATCH);
    star_push(&bench->star, batch, NULL);
}

/* All fact rows that were pushed are in the view's groups. */
static void group_count(void *context, const int64_t *cells, size_t cells_count)
{
    *(uint64_t *)context += (uint64_t)cells[cells_count - 1];
}

static void fact_rows_check(memory_bench *bench, uint64_t pushed)
{
    uint64_t counted = 0;
    star_rows(&bench->star, group_count, &counted);
    bench->wrong |= counted != pushed;
}

/* ---- Kept rows ----------------------------------------------------------------------------------------------------------------- */

/* The view's groups and what a push leaves over are there before the rows that count. */
static void dimensions_measure(memory_bench *bench)
{
    dimension_rows_push(bench, 0);
    fact_rows_push(bench, FACT_ROWS_A_BATCH, ROWS_A_BATCH);
    double before = (double)engine_memory_bytes();
    for (uint32_t first = ROWS_A_BATCH; first < DIMENSION_ROWS; first += ROWS_A_BATCH) {
        dimension_rows_push(bench, first);
        bench->dimension_row = ((double)engine_memory_bytes() - before) / ((double)first * DIMENSIONS);
        if (first > DIMENSION_ROWS / 2 && bench->dimension_row > bench->dimension_row_max) {
            bench->dimension_row_max = bench->dimension_row;
        }
    }
}

static void kept_measure(memory_bench *bench)
{
    ivm_allocator allocator = engine_memory_open();
    ivm_error error = IVM_ERROR_INIT;
    star_engine_open(&bench->star, &bench->data.shape, &(star_options){ .grouped = DIMENSIONS, .allocator = &allocator });
    dimensions_measure(bench);
    uint64_t before = engine_memory_bytes();
    fact_rows_push(bench, bench->kept, DIMENSION_ROWS);
    bench->fact_row = (double)(engine_memory_bytes() - before) / (double)bench->kept / FACT_ROW_RAW;
    if (ivm_view_prepare(bench->star.view, &error) != IVM_OK) {
        exit(usage_error("bench memory: %s", error.message));
    }
    bench->fact_row_indexed = (double)(engine_memory_bytes() - before) / (double)bench->kept / FACT_ROW_RAW;
    fact_rows_check(bench, DIMENSION_ROWS / ROWS_A_BATCH * FACT_ROWS_BESIDE + FACT_ROWS_A_BATCH + bench->kept);
    star_engine_close(&bench->star);
}

/* ---- Transient rows ------------------------------------------------------------------------------------------------------------ */

static void transient_measure(memory_bench *bench)
{
    ivm_allocator allocator = engine_memory_open();
    uint64_t first = bench->rows / 10 ? bench->rows / 10 : 1;
    star_engine_open(&bench->star, &bench->data.shape,
                     &(star_options){ .grouped = DIMENSIONS, .allocator = &allocator, .transient = true });
    for (uint32_t row = 0; row < DIMENSION_ROWS; row += ROWS_A_BATCH) {
        dimension_rows_push(bench, row);
    }
    fact_rows_push(bench, first, DIMENSION_ROWS);
    bench->transient_start = engine_memory_bytes();
    fact_rows_push(bench, bench->rows - first, DIMENSION_ROWS);
    bench->transient_end = engine_memory_bytes();
    fact_rows_check(bench, DIMENSION_ROWS / ROWS_A_BATCH * FACT_ROWS_BESIDE + bench->rows);
    star_engine_close(&bench->star);
}

/* ---- The command --------------------------------------------------------------------------------------------------------------- */

static void figures_print(const memory_bench *bench, bool json)
{
    double growth = (double)bench->transient_end - (double)bench->transient_start;
    figure_add(&(figure){ "memory", "dimension_row_bytes", bench->dimension_row, NULL, 0 });
    figure_add(&(figure){ "memory", "dimension_row_bytes_max", bench->dimension_row_max, NULL, 0 });
    figure_add(&(figure){ "memory", "fact_row_over_raw", bench->fact_row, "rows", bench->kept });
    figure_add(&(figure){ "memory", "fact_row_over_raw_indexed", bench->fact_row_indexed, "rows", bench->kept });
    figure_add(&(figure){ "memory", "transient_bytes", (double)bench->transient_end, "rows", bench->rows });
    figure_add(&(figure){ "memory", "transient_growth_bytes", growth, "rows", bench->rows });
    if (json) {
        return;
    }
    printf("a dimension row (16 bytes raw)   %.1f bytes, %.1f at most\n", bench->dimension_row, bench->dimension_row_max);
    printf("a fact row (40 bytes raw)        %.1f bytes, %.2f times raw; with four reverse indexes %.1f, %.2f times\n",
           bench->fact_row * FACT_ROW_RAW, bench->fact_row, bench->fact_row_indexed * FACT_ROW_RAW, bench->fact_row_indexed);
    printf("%llu transient fact rows  %.1f MB held at the end, %.0f bytes more than after the first tenth\n",
           (unsigned long long)bench->rows, (double)bench->transient_end / 1048576, growth);
}

int memory_command(int argc, char **argv)
{
    uint64_t kept = 2000000, rows = 100000000;
    bool json = false;
    int code;
    operand_list operands;
    const option_definition options[] = {
        { "--kept", OPTION_NUMBER, &kept }, { "--rows", OPTION_NUMBER, &rows }, { "--json", OPTION_FLAG, &json }, { NULL }
    };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || kept > 1000000000) {
        return usage_error("bench memory takes options only, and keeps at most 1000000000 rows; --help says more");
    }
    memory_bench *bench = memory_take(sizeof *bench);
    const star_shape shape = {
        .dimensions = DIMENSIONS, .dimension_rows = DIMENSION_ROWS, .attributes = { 16, 16, 4, 4 }, .fact_rows = FACT_ROWS_A_BATCH
    };
    star_data_make(&bench->data, &shape);
    bench->random.state = 0x452821E638D01377ull;
    bench->kept = kept;
    bench->rows = rows;
    kept_measure(bench);
    transient_measure(bench);
    figures_print(bench, json);
    code = bench->wrong ? EXIT_WRONG : EXIT_HOLDS;
    if (bench->wrong) {
        fprintf(stderr, "ivm: bench memory: a view does not count the fact rows that were pushed\n");
    }
    star_data_free(&bench->data);
    free(bench);
    return code;
}
