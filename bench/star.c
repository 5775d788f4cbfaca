/* `ivm bench star`: fact rows joined to four dimensions of 100,000 rows, grouped by their attributes (16 x 16 x 4 x 4), sum and count. The
 * engine takes them in batches of borrowed columns, the floor the same batches, the bare probes all fact rows at once; they run in turn in one
 * process, the first round uncounted, and a round's ratios are taken from that round. Making the data, the dimensions and what probes them (the
 * engine's at the first thousand fact rows) is not timed. */
#include "arena.h"
#include "command.h"
#include "floor.h"
#include "measure.h"
#include "option.h"
#include "star_engine.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] = "usage: ivm bench star [OPTIONS]\n"
                           "\n"
                           "Fact rows (four keys and an amount, int64) joined to four dimensions of 100,000 rows each and\n"
                           "aggregated into 4096 groups: nanoseconds a fact row of the engine, of a loop written by hand for the same\n"
                           "query that keeps the same rows (the floor), and of bare probes over packed rows, which show that\n"
                           "the floor is no slow one. Both results are compared group by group.\n"
                           "\n"
                           "  --rows N    fact rows a round (default 2000000)\n"
                           "  --batch N   fact rows a batch (default: 1000, then 100000)\n"
                           "  --runs N    rounds that count, after one that does not (default 5)\n"
                           "  --threads N engines with so many threads, too, in turn with those of one (default 1: none)\n"
                           "  --json      one line per figure: engine_over_floor (the larger of the batch sizes),\n"
                           "              floor_over_probe, and per batch size engine_ns, floor_ns and their ratio\n";

#define SIZES_MAX 2
#define FIRST_FACT_ROWS 1000 /* pushed before the clock starts */

typedef struct batch_timing {
    double engine[RUNS_MAX], floor[RUNS_MAX], ratio[RUNS_MAX], threaded[RUNS_MAX], speedup[RUNS_MAX];
} batch_timing;

typedef struct star_bench {
    star_data data;
    floor_star floor;
    probe_row *probe_rows;
    uint64_t sizes[SIZES_MAX];
    size_t sizes_count, runs;
    uint32_t threads; /* 1: no pass with more */
    batch_timing timings[SIZES_MAX];
    double probe[RUNS_MAX], probe_ratio[RUNS_MAX];
    uint64_t unequal;
} star_bench;

/* ---- One pass ------------------------------------------------------------------------------------------------------------------ */

static size_t batch_count(const star_bench *bench, size_t at, uint64_t size)
{
    size_t left = bench->data.shape.fact_rows - at;
    return left < size ? left : (size_t)size;
}

static double floor_pass(star_bench *bench, uint64_t size)
{
    size_t rows = bench->data.shape.fact_rows;
    floor_clear(&bench->floor);
    uint64_t start = clock_nanoseconds();
    for (size_t at = 0; at < rows; at += size) {
        floor_push(&bench->floor, &bench->data, at, batch_count(bench, at, size));
    }
    return (double)(clock_nanoseconds() - start) / (double)rows;
}

typedef struct group_comparison {
    const star_bench *bench;
    uint64_t groups, unequal;
} group_comparison;

static void group_compare(void *context, const int64_t *cells, size_t cells_count)
{
    group_comparison *comparison = context;
    const floor_star *floor = &comparison->bench->floor;
    uint32_t number = 0;
    for (size_t d = 0; d + 2 < cells_count; d++) {
        number = number * floor->dimensions[d].codes_count + (uint32_t)cells[d];
    }
    const floor_group *group = &floor->groups[number];
    comparison->groups++;
    comparison->unequal += group->sum != cells[cells_count - 2] || group->count != cells[cells_count - 1];
}

/* Groups that are not the same in both, or in one of them alone. */
static uint64_t unequal_count(const star_bench *bench, star_engine *star)
{
    group_comparison comparison = { .bench = bench };
    uint64_t filled = 0;
    star_rows(star, group_compare, &comparison);
    for (uint32_t g = 0; g < bench->floor.groups_count; g++) {
        filled += bench->floor.groups[g].count != 0;
    }
    return comparison.unequal + (filled > comparison.groups ? filled - comparison.groups : comparison.groups - filled);
}

/* Pushes the fact rows from `first` to before `end` in batches. */
static void engine_push(star_bench *bench, star_engine *star, size_t first, size_t end, uint64_t size)
{
    for (size_t at = first; at < end; at += size) {
        size_t count = end - at < size ? end - at : (size_t)size;
        ivm_batch *batch = star_batch(star);
        star_batch_fact_rows(star, batch, (star_part){ &bench->data, at, count });
        star_push(star, batch, NULL);
    }
}

/* The floor's tables are made outside the clock; so are the engine's, which makes them when the first fact rows ask for them. */
static double engine_pass(star_bench *bench, uint64_t size, uint32_t threads)
{
    const star_shape *shape = &bench->data.shape;
    size_t first = shape->fact_rows / 2 < FIRST_FACT_ROWS ? shape->fact_rows / 2 : FIRST_FACT_ROWS;
    star_engine star;
    star_engine_open(&star, shape, &(star_options){ .grouped = shape->dimensions, .threads = threads });
    ivm_batch *batch = star_batch(&star);
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        star_batch_dimension(&star, batch, d, (star_part){ &bench->data, 0, shape->dimension_rows });
    }
    star_push(&star, batch, NULL);
    engine_push(bench, &star, 0, first, FIRST_FACT_ROWS);
    uint64_t start = clock_nanoseconds();
    engine_push(bench, &star, first, shape->fact_rows, size);
    double spent = (double)(clock_nanoseconds() - start) / (double)(shape->fact_rows - first);
    bench->unequal += unequal_count(bench, &star);
    star_engine_close(&star);
    return spent;
}

static double probe_pass(star_bench *bench)
{
    size_t rows = bench->data.shape.fact_rows;
    floor_clear(&bench->floor);
    uint64_t start = clock_nanoseconds();
    probe_run(&bench->floor, bench->probe_rows, rows);
    return (double)(clock_nanoseconds() - start) / (double)rows;
}

/* ---- Rounds -------------------------------------------------------------------------------------------------------------------- */

/* Round 0 warms memory up and counts for nothing; round r writes place r - 1. */
static void round_run(star_bench *bench, size_t round)
{
    double floor = 0;
    size_t place = round ? round - 1 : 0;
    for (size_t s = 0; s < bench->sizes_count; s++) {
        batch_timing *timing = &bench->timings[s];
        timing->floor[place] = floor = floor_pass(bench, bench->sizes[s]);
        timing->engine[place] = engine_pass(bench, bench->sizes[s], 1);
        if (bench->threads > 1) {
            timing->threaded[place] = engine_pass(bench, bench->sizes[s], bench->threads);
            timing->speedup[place] = timing->engine[place] / timing->threaded[place];
        }
        timing->ratio[place] = timing->engine[place] / floor;
    }
    bench->probe[place] = probe_pass(bench);
    bench->probe_ratio[place] = floor / bench->probe[place];
}

static void threads_print(star_bench *bench, size_t s, bool json)
{
    batch_timing *timing = &bench->timings[s];
    double threaded = median(timing->threaded, bench->runs), speedup = median(timing->speedup, bench->runs);
    if (json) {
        figure_print(&(figure){ "star", "threaded_ns", threaded, "batch", bench->sizes[s] });
        figure_print(&(figure){ "star", "one_thread_over_threads", speedup, "batch", bench->sizes[s] });
    } else {
        printf("batches of %6llu   %u threads %5.1f ns a fact row   one thread over %u %.2f (%.2f to %.2f), of the best rounds %.2f\n",
               (unsigned long long)bench->sizes[s], bench->threads, threaded, bench->threads, speedup, timing->speedup[0],
               timing->speedup[bench->runs - 1], timing->engine[0] / timing->threaded[0]);
    }
}

static void figures_print(star_bench *bench, bool json)
{
    double worst = 0, probe = median(bench->probe, bench->runs), over_probe = median(bench->probe_ratio, bench->runs);
    for (size_t s = 0; s < bench->sizes_count; s++) {
        batch_timing *timing = &bench->timings[s];
        double floor = median(timing->floor, bench->runs), engine = median(timing->engine, bench->runs);
        double ratio = median(timing->ratio, bench->runs);
        worst = ratio > worst ? ratio : worst;
        if (json) {
            figure_print(&(figure){ "star", "floor_ns", floor, "batch", bench->sizes[s] });
            figure_print(&(figure){ "star", "engine_ns", engine, "batch", bench->sizes[s] });
            figure_print(&(figure){ "star", "engine_over_floor_of_batch", ratio, "batch", bench->sizes[s] });
        } else {
            printf("batches of %6llu   engine %6.1f ns a fact row   floor %6.1f   engine over floor %.2f (%.2f to %.2f)\n",
                   (unsigned long long)bench->sizes[s], engine, floor, ratio, timing->ratio[0], timing->ratio[bench->runs - 1]);
        }
        if (bench->threads > 1) {
            threads_print(bench, s, json);
        }
    }
    if (json) {
        figure_print(&(figure){ "star", "probe_ns", probe, NULL, 0 });
        figure_print(&(figure){ "star", "floor_over_probe", over_probe, NULL, 0 });
        figure_print(&(figure){ "star", "engine_over_floor", worst, NULL, 0 });
    } else {
        printf("probes alone %.1f ns a fact row, floor over probes %.2f; %zu rounds of %u fact rows, medians\n", probe, over_probe,
               bench->runs, bench->data.shape.fact_rows);
    }
}

static void bench_run(star_bench *bench, uint64_t rows)
{
    const star_shape shape = {
        .dimensions = FLOOR_DIMENSIONS, .dimension_rows = 100000, .attributes = { 16, 16, 4, 4 }, .fact_rows = (uint32_t)rows
    };
    star_data_make(&bench->data, &shape);
    floor_open(&bench->floor, &bench->data);
    bench->probe_rows = probe_rows_make(&bench->data);
    for (size_t round = 0; round <= bench->runs; round++) {
        round_run(bench, round);
    }
    free(bench->probe_rows);
    floor_close(&bench->floor);
}

int star_command(int argc, char **argv)
{
    uint64_t rows = 2000000, batch = 0, runs = 5, threads = 1;
    bool json = false;
    int code;
    operand_list operands;
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &rows }, { "--batch", OPTION_NUMBER, &batch },
                                          { "--runs", OPTION_NUMBER, &runs }, { "--threads", OPTION_NUMBER, &threads },
                                          { "--json", OPTION_FLAG, &json },   { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || runs > RUNS_MAX || threads > IVM_THREADS_MAX) {
        return usage_error("bench star takes options only, at most %d runs and %u threads; --help says more", RUNS_MAX, IVM_THREADS_MAX);
    }
    star_bench *bench = memory_take(sizeof *bench);
    bench->sizes_count = batch ? 1 : 2;
    bench->sizes[0] = batch ? batch : 1000;
    bench->sizes[1] = 100000;
    bench->runs = (size_t)runs;
    bench->threads = (uint32_t)threads;
    bench_run(bench, rows);
    figures_print(bench, json);
    code = bench->unequal ? EXIT_WRONG : EXIT_HOLDS;
    if (bench->unequal) {
        fprintf(stderr, "ivm: bench star: %llu groups differ between engine and floor\n", (unsigned long long)bench->unequal);
    }
    star_data_free(&bench->data);
    free(bench);
    return code;
}
