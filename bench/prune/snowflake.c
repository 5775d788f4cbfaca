/* `ivm bench snowflake`: a fact table with three dimensions, each of which refers to one of its own: seven leaves, 127 masks. Every batch brings fact
 * rows, rows of all dimensions and outer rows, which the new rows refer to with the old ones. Three engines that differ in pruning and in how a
 * join's change is written get the same batches in turn; after each round their views are compared with a loop of our own over the rows. */
#include "snowflake.h"
#include "arena.h"
#include "command.h"
#include "measure.h"
#include "option.h"

#include <stdlib.h>

static const char help[] = "usage: ivm bench snowflake [OPTIONS]\n"
                           "\n"
                           "Fact rows joined to three dimensions, each joined to an outer dimension, grouped by two outer attributes\n"
                           "and one of a dimension. Every batch brings 1,000 fact rows, 50 rows of each dimension and 5 of each outer\n"
                           "one. Nanoseconds a fact row as it comes, and over it without pruning in the Moebius form (127 terms) and\n"
                           "in the telescoping form (7). Views are compared with a recomputation.\n"
                           "\n"
                           "  --rows N      fact rows before (default 100000), with 10,000 rows a dimension, 500 an outer one\n"
                           "  --batches N   timed batches a round (default 20)\n"
                           "  --runs N      rounds (default 3)\n"
                           "  --json        one line per figure: pruned_ns, unpruned_ns, telescoping_ns, pruned_speedup,\n"
                           "                telescoping_speedup\n";

#define WARM_BATCHES 1
enum { PRUNED, MOBIUS, TELESCOPING, SIDES };

typedef struct snowflake_bench {
    uint64_t rows, batches, runs;
    bool json;
    snowflake_data data;
    double spent[SIDES][RUNS_MAX], ratio[SIDES][RUNS_MAX];
    uint64_t unequal;
} snowflake_bench;

static void round_run(snowflake_bench *bench, size_t round)
{
    static const ivm_planner_options planners[SIDES] = { { IVM_FK_PRUNING_ROW, IVM_JOIN_AUTO, false },
                                                         { IVM_FK_PRUNING_OFF, IVM_JOIN_MOBIUS, false },
                                                         { IVM_FK_PRUNING_OFF, IVM_JOIN_TELESCOPING, false } };
    snowflake_engine engines[SIDES];
    uint64_t spent[SIDES] = { 0 }, batches = bench->batches + WARM_BATCHES;
    for (int side = 0; side < SIDES; side++) {
        snowflake_open(&engines[side], &planners[side]);
        snowflake_push(&engines[side], &bench->data, 0);
    }
    for (uint64_t number = 1; number <= batches; number++) {
        for (int turn = 0; turn < SIDES; turn++) {
            int side = (int)(((uint64_t)turn + number) % SIDES);
            uint64_t push = snowflake_push(&engines[side], &bench->data, number);
            spent[side] += number <= WARM_BATCHES ? 0 : push;
        }
    }
    for (int side = 0; side < SIDES; side++) {
        bench->unequal += snowflake_unequal(&engines[side], &bench->data, batches);
        bench->spent[side][round] = (double)spent[side] / (double)(bench->batches * SNOWFLAKE_FACTS_A_BATCH);
        bench->ratio[side][round] = bench->spent[side][round] / bench->spent[PRUNED][round];
        snowflake_close(&engines[side]);
    }
}

static void figures_show(snowflake_bench *bench)
{
    static const char *const times[SIDES] = { "pruned_ns", "unpruned_ns", "telescoping_ns" };
    static const char *const ratios[SIDES] = { NULL, "pruned_speedup", "telescoping_speedup" };
    static const char *const texts[SIDES] = { "pruned", "all 127 terms (Moebius)", "7 terms (telescoping)" };
    size_t runs = (size_t)bench->runs;
    uint64_t rows = bench->batches * SNOWFLAKE_FACTS_A_BATCH;
    for (int side = 0; side < SIDES; side++) {
        spread ns = spread_of(bench->spent[side], runs), ratio = spread_of(bench->ratio[side], runs);
        figure_add(&(figure){ "snowflake", times[side], ns.median, NULL, 0, NULL, ns.low, ns.high, runs, rows });
        if (side != PRUNED) {
            figure_add(&(figure){ "snowflake", ratios[side], ratio.median, NULL, 0, NULL, ratio.low, ratio.high, runs, rows });
        }
        if (!bench->json) {
            printf("seven leaves gaining rows, %-24s %9.1f ns a fact row (%.1f to %.1f), %.1f times as long as pruned\n", texts[side],
                   ns.median, ns.low, ns.high, ratio.median);
        }
    }
}

int snowflake_command(int argc, char **argv)
{
    snowflake_bench *bench = memory_take(sizeof *bench);
    *bench = (snowflake_bench){ .rows = 100000, .batches = 20, .runs = 3 };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &bench->rows },
                                          { "--batches", OPTION_NUMBER, &bench->batches },
                                          { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &bench->json },
                                          { NULL } };
    bool read = options_read(options, help, argc, argv, &operands, &code);
    if (!read || operands.count || bench->runs > RUNS_MAX || bench->rows > 100000000 || bench->batches > 10000) {
        free(bench);
        return read ? usage_error("bench snowflake: at most 100000000 rows, 10000 batches, %d runs; --help says more", RUNS_MAX) : code;
    }
    snowflake_data_make(&bench->data, (uint32_t)bench->rows, (uint32_t)(bench->batches + WARM_BATCHES));
    for (size_t round = 0; round < bench->runs; round++) {
        round_run(bench, round);
    }
    code = bench->unequal ? EXIT_WRONG : EXIT_HOLDS;
    if (!bench->unequal) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench snowflake: %llu groups differ from recomputation\n", (unsigned long long)bench->unequal);
    }
    snowflake_data_free(&bench->data);
    free(bench);
    return code;
}
