/* `ivm bench scale`: one changed row as the base grows. Three stars stay open, each with ten times the fact rows of the one before; a dimension grows
 * with them, so that the rows whose change is timed have ten fact rows in each, and the other three have 100,000 rows in all. Changes take turns
 * between the three, a round gives a median push for each, and its ratio is that of the largest over the smallest. */
#include "arena.h"
#include "command.h"
#include "option.h"
#include "star_model.h"

#include <stdlib.h>

static const char help[] = "usage: ivm bench scale [OPTIONS]\n"
                           "\n"
                           "Pushes of one row against stars that differ in their number of fact rows, from a hundredth of N to N: a\n"
                           "fact row comes, goes, a dimension row that ten fact rows refer to changes. Median nanoseconds of each, and\n"
                           "of the largest star over the smallest. Views are compared with recomputation.\n"
                           "\n"
                           "  --rows N     fact rows of the largest (default 10000000)\n"
                           "  --pushes N   of each kind, star and round (default 2000)\n"
                           "  --runs N     rounds (default 5)\n"
                           "  --json       one line per figure: KIND_ns with facts, KIND_ratio, and ratio, the largest of those\n";

#define SIZES 3
#define KINDS 3
#define FAN_OUT 10
#define WARM_PUSHES 100
static const model_change kinds[KINDS] = { FACT_INSERT, FACT_DELETE, DIMENSION_UPDATE };

typedef struct scale_bench {
    uint64_t rows[SIZES], pushes, runs;
    bool json;
    star_model models[SIZES];
    double *spent[SIZES][KINDS]; /* of the pushes of one round */
    double medians[SIZES][KINDS][RUNS_MAX], ratios[KINDS][RUNS_MAX];
} scale_bench;

static void round_run(scale_bench *bench, size_t round)
{
    for (uint64_t i = 0; i < bench->pushes; i++) {
        for (int k = 0; k < KINDS; k++) {
            for (int s = 0; s < SIZES; s++) {
                bench->spent[s][k][i] = (double)star_model_push(&bench->models[s], kinds[k]);
            }
        }
    }
    for (int k = 0; k < KINDS; k++) {
        for (int s = 0; s < SIZES; s++) {
            bench->medians[s][k][round] = median(bench->spent[s][k], (size_t)bench->pushes);
        }
        bench->ratios[k][round] = bench->medians[SIZES - 1][k][round] / bench->medians[0][k][round];
    }
}

static void models_open(scale_bench *bench)
{
    uint64_t come = bench->pushes * bench->runs + WARM_PUSHES;
    for (int s = 0; s < SIZES; s++) {
        star_shape shape = star_shape_named(STAR4, (uint32_t)(bench->rows[s] + come));
        shape.rows[0] = (uint32_t)(bench->rows[s] / FAN_OUT ? bench->rows[s] / FAN_OUT : 1);
        star_model_open(&bench->models[s], &shape, (uint32_t)bench->rows[s], 0);
        for (int k = 0; k < KINDS; k++) {
            bench->spent[s][k] = memory_take(bench->pushes * sizeof(double));
            for (int i = 0; i < WARM_PUSHES; i++) {
                star_model_push(&bench->models[s], kinds[k]);
            }
        }
    }
}

static uint64_t models_close(scale_bench *bench)
{
    uint64_t unequal = 0;
    for (int s = 0; s < SIZES; s++) {
        unequal += star_model_unequal(&bench->models[s]);
        star_model_close(&bench->models[s]);
        for (int k = 0; k < KINDS; k++) {
            free(bench->spent[s][k]);
        }
    }
    return unequal;
}

static void figures_show(scale_bench *bench)
{
    size_t runs = (size_t)bench->runs;
    spread worst = { 0 };
    for (int k = 0; k < KINDS; k++) {
        const char *kind = model_change_names[kinds[k]];
        char metric[64];
        if (!bench->json) {
            printf("%-18s", kind);
        }
        for (int s = 0; s < SIZES; s++) {
            spread ns = spread_of(bench->medians[s][k], runs);
            snprintf(metric, sizeof metric, "%s_ns", kind);
            figure_add(&(figure){ "scale", metric, ns.median, "facts", bench->rows[s], NULL, ns.low, ns.high, runs, bench->pushes });
            if (!bench->json) {
                printf("  %8.0f ns of %8llu", ns.median, (unsigned long long)bench->rows[s]);
            }
        }
        spread ratio = spread_of(bench->ratios[k], runs);
        worst = ratio.median > worst.median ? ratio : worst;
        snprintf(metric, sizeof metric, "%s_ratio", kind);
        figure_add(&(figure){ "scale", metric, ratio.median, NULL, 0, NULL, ratio.low, ratio.high, runs, bench->pushes });
        if (!bench->json) {
            printf("   ratio %.2f (%.2f to %.2f)\n", ratio.median, ratio.low, ratio.high);
        }
    }
    figure_add(&(figure){ "scale", "ratio", worst.median, NULL, 0, NULL, worst.low, worst.high, runs, bench->pushes });
}

int scale_command(int argc, char **argv)
{
    scale_bench *bench = memory_take(sizeof *bench);
    *bench = (scale_bench){ .rows = { [SIZES - 1] = 10000000 }, .pushes = 2000, .runs = 5 };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &bench->rows[SIZES - 1] },
                                          { "--pushes", OPTION_NUMBER, &bench->pushes },
                                          { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &bench->json },
                                          { NULL } };
    bool read = options_read(options, help, argc, argv, &operands, &code);
    if (!read || operands.count || bench->runs > RUNS_MAX || bench->pushes > 1000000 || bench->rows[SIZES - 1] > 100000000 ||
        bench->rows[SIZES - 1] < 10000) {
        free(bench);
        return read ? usage_error("bench scale: 10000 to 100000000 rows, at most 1000000 pushes, %d runs; --help says more", RUNS_MAX)
                    : code;
    }
    for (int s = SIZES - 1; s > 0; s--) {
        bench->rows[s - 1] = bench->rows[s] / 10;
    }
    models_open(bench);
    for (size_t round = 0; round < bench->runs; round++) {
        round_run(bench, round);
    }
    uint64_t unequal = models_close(bench);
    if (!unequal) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench scale: %llu groups differ from recomputation\n", (unsigned long long)unequal);
    }
    free(bench);
    return unequal ? EXIT_WRONG : EXIT_HOLDS;
}
