/* `ivm bench prune`: stars of N dimensions, all of which gain rows in every batch beside the fact table. The Moebius form without pruning
 * runs 2^(N+1) - 1 terms a batch, with pruning one. Both engines get the same batches in turn; only pushes are timed, not the filling
 * nor the first batch, which builds the indexes. */
#include "arena.h"
#include "command.h"
#include "measure.h"
#include "option.h"
#include "star_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "usage: ivm bench prune [OPTIONS]\n"
                           "\n"
                           "Stars of 3, 4, 5 and 8 dimensions whose foreign keys are declared: every batch brings 1,000 fact rows\n"
                           "and 100 new rows of each dimension, they refer to old and new rows alike. Time of the pushes\n"
                           "with all join terms (Moebius form, pruning off) over the time of those that pruning leaves.\n"
                           "\n"
                           "  --dimensions N   this star alone, 1 to 8\n"
                           "  --rows N         fact rows before the first batch (default 100000)\n"
                           "  --batches N      batches a round (default 10)\n"
                           "  --runs N         rounds (default 3)\n"
                           "  --json           one line per figure: pruned_speedup_N, pruned_ns and unpruned_ns a fact row\n";

#define FACT_ROWS_A_BATCH 1000
#define ROWS_A_BATCH 100
#define DIMENSION_ROWS_OLD 1000
#define GROUPED 2

typedef struct prune_bench {
    uint64_t rows, batches, runs;
    star_data data;
    double pruned[RUNS_MAX], unpruned[RUNS_MAX], ratio[RUNS_MAX];
    uint64_t pruned_terms, unpruned_terms; /* run in a round's timed batches */
    bool unequal;
} prune_bench;

/* ---- A round ------------------------------------------------------------------------------------------------------------------- */

static void star_fill(star_engine *star, const prune_bench *bench)
{
    ivm_batch *batch = star_batch(star);
    for (uint32_t d = 0; d < bench->data.shape.dimensions; d++) {
        star_batch_dimension(star, batch, d, (star_part){ &bench->data, 0, DIMENSION_ROWS_OLD });
    }
    star_batch_fact_rows(star, batch, (star_part){ &bench->data, 0, bench->rows });
    star_push(star, batch, NULL);
}

static uint64_t batch_push(star_engine *star, const prune_bench *bench, uint64_t number, uint64_t *terms)
{
    ivm_batch *batch = star_batch(star);
    ivm_stats stats;
    for (uint32_t d = 0; d < bench->data.shape.dimensions; d++) {
        star_batch_dimension(star, batch, d, (star_part){ &bench->data, DIMENSION_ROWS_OLD + number * ROWS_A_BATCH, ROWS_A_BATCH });
    }
    star_batch_fact_rows(star, batch, (star_part){ &bench->data, bench->rows + number * FACT_ROWS_A_BATCH, FACT_ROWS_A_BATCH });
    uint64_t start = clock_nanoseconds();
    star_push(star, batch, &stats);
    *terms += number ? stats.terms_run : 0;
    return number ? clock_nanoseconds() - start : 0;
}

/* A sum over rows that does not depend on their order and takes every cell into account. */
static void row_digest(void *context, const int64_t *cells, size_t cells_count)
{
    uint64_t digest = 0, *sum = context;
    for (size_t c = 0; c < cells_count; c++) {
        digest = (digest ^ (uint64_t)cells[c]) * 0x9E3779B97F4A7C15ull + (digest >> 29);
    }
    *sum += digest | 1;
}

static void round_run(prune_bench *bench, size_t round)
{
    const ivm_planner_options with = { IVM_FK_PRUNING_BATCH, IVM_JOIN_MOBIUS, true };
    const ivm_planner_options without = { IVM_FK_PRUNING_OFF, IVM_JOIN_MOBIUS, true };
    star_engine pruned, unpruned;
    uint64_t pruned_spent = 0, unpruned_spent = 0, pruned_digest = 0, unpruned_digest = 0;
    star_engine_open(&pruned, &bench->data.shape, GROUPED, &with);
    star_engine_open(&unpruned, &bench->data.shape, GROUPED, &without);
    star_fill(&pruned, bench);
    star_fill(&unpruned, bench);
    bench->pruned_terms = bench->unpruned_terms = 0;
    for (uint64_t b = 0; b <= bench->batches; b++) {
        pruned_spent += batch_push(&pruned, bench, b, &bench->pruned_terms);
        unpruned_spent += batch_push(&unpruned, bench, b, &bench->unpruned_terms);
    }
    star_rows(&pruned, row_digest, &pruned_digest);
    star_rows(&unpruned, row_digest, &unpruned_digest);
    double rows = (double)(bench->batches * FACT_ROWS_A_BATCH);
    bench->pruned[round] = (double)pruned_spent / rows;
    bench->unpruned[round] = (double)unpruned_spent / rows;
    bench->ratio[round] = bench->unpruned[round] / bench->pruned[round];
    bench->unequal |= pruned_digest != unpruned_digest;
    star_engine_close(&pruned);
    star_engine_close(&unpruned);
}

/* ---- Stars --------------------------------------------------------------------------------------------------------------------- */

static void figures_print(prune_bench *bench, bool json)
{
    uint32_t n = bench->data.shape.dimensions;
    double pruned = median(bench->pruned, bench->runs), unpruned = median(bench->unpruned, bench->runs);
    double ratio = median(bench->ratio, bench->runs);
    char metric[32];
    snprintf(metric, sizeof metric, "pruned_speedup_%u", n);
    if (json) {
        figure_print(&(figure){ "prune", "pruned_ns", pruned, "dimensions", n });
        figure_print(&(figure){ "prune", "unpruned_ns", unpruned, "dimensions", n });
        figure_print(&(figure){ "prune", metric, ratio, "dimensions", n });
        return;
    }
    printf("%u dimensions   all %4llu terms a batch: %8.1f ns a fact row   pruned to %llu: %6.1f   %5.1f times as fast (%.1f to %.1f)\n", n,
           (unsigned long long)(bench->unpruned_terms / bench->batches), unpruned,
           (unsigned long long)(bench->pruned_terms / bench->batches), pruned, ratio, bench->ratio[0], bench->ratio[bench->runs - 1]);
    fflush(stdout);
}

static void star_measure(prune_bench *bench, uint32_t dimensions, bool json)
{
    uint64_t batches = bench->batches + 1;
    star_shape shape = { .dimensions = dimensions,
                         .dimension_rows = (uint32_t)(DIMENSION_ROWS_OLD + batches * ROWS_A_BATCH),
                         .fact_rows = (uint32_t)(bench->rows + batches * FACT_ROWS_A_BATCH),
                         .fact_rows_first = (uint32_t)bench->rows,
                         .rows_first = DIMENSION_ROWS_OLD,
                         .fact_rows_step = FACT_ROWS_A_BATCH,
                         .rows_step = ROWS_A_BATCH };
    for (uint32_t d = 0; d < dimensions; d++) {
        shape.attributes[d] = 16;
    }
    star_data_make(&bench->data, &shape);
    for (uint64_t round = 0; round < bench->runs; round++) {
        round_run(bench, (size_t)round);
    }
    figures_print(bench, json);
    star_data_free(&bench->data);
}

int prune_command(int argc, char **argv)
{
    static const uint32_t stars[] = { 3, 4, 5, 8 };
    uint64_t dimensions = 0;
    bool json = false;
    int code;
    operand_list operands;
    prune_bench *bench = memory_take(sizeof *bench);
    bench->rows = 100000;
    bench->batches = 10;
    bench->runs = 3;
    const option_definition options[] = { { "--dimensions", OPTION_NUMBER, &dimensions },
                                          { "--rows", OPTION_NUMBER, &bench->rows },
                                          { "--batches", OPTION_NUMBER, &bench->batches },
                                          { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &json },
                                          { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        free(bench);
        return code;
    }
    bool fits = !operands.count && bench->runs <= RUNS_MAX && dimensions <= STAR_DIMENSIONS_MAX && bench->batches <= 10000;
    if (!fits) {
        free(bench);
        return usage_error("bench prune: at most %d dimensions, %d runs, 10000 batches; --help says more", STAR_DIMENSIONS_MAX, RUNS_MAX);
    }
    for (size_t i = 0; i < sizeof stars / sizeof *stars && !dimensions; i++) {
        star_measure(bench, stars[i], json);
    }
    if (dimensions) {
        star_measure(bench, (uint32_t)dimensions, json);
    }
    code = bench->unequal ? EXIT_WRONG : EXIT_HOLDS;
    if (bench->unequal) {
        fprintf(stderr, "ivm: bench prune: the views differ with and without pruning\n");
    }
    free(bench);
    return code;
}
