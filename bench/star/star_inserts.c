/* Fact rows that come: the engine takes them in batches of borrowed columns, the floor the same batches, the bare probes all fact rows at once; they
 * run in turn in one process, the first round uncounted, and a round's ratios are taken from that round. Making the data, the dimensions and what
 * probes them (the engine's at the first thousand fact rows) is not timed. Every group is compared with the floor's. */
#include "arena.h"
#include "floor.h"
#include "star.h"

#include <stdlib.h>

#define SIZES_MAX 7
#define FIRST_FACT_ROWS 1000 /* pushed before the clock starts */
#define PUSHES_MAX 20000     /* a pass of small batches takes no more of them */

typedef struct batch_timing {
    uint64_t size, rows;
    double engine[RUNS_MAX], floor[RUNS_MAX], ratio[RUNS_MAX], threaded[RUNS_MAX], speedup[RUNS_MAX];
} batch_timing;

typedef struct inserts_bench {
    const star_request *request;
    star_data data;
    floor_star floor;
    probe_row *probe_rows;
    size_t sizes_count, runs;
    batch_timing timings[SIZES_MAX];
    double probe[RUNS_MAX], probe_ratio[RUNS_MAX];
    uint64_t unequal;
} inserts_bench;

/* ---- One pass ------------------------------------------------------------------------------------------------------------------ */

static double floor_pass(inserts_bench *bench, const batch_timing *timing)
{
    floor_clear(&bench->floor);
    uint64_t start = clock_nanoseconds();
    for (size_t at = 0; at < timing->rows; at += timing->size) {
        size_t left = timing->rows - at;
        floor_push(&bench->floor, &bench->data, at, left < timing->size ? left : (size_t)timing->size);
    }
    return (double)(clock_nanoseconds() - start) / (double)timing->rows;
}

/* Pushes the fact rows from `first` to before `end` in batches. */
static void engine_push(inserts_bench *bench, star_engine *star, size_t first, size_t end, uint64_t size)
{
    for (size_t at = first; at < end; at += size) {
        size_t count = end - at < size ? end - at : (size_t)size;
        ivm_batch *batch = star_batch(star);
        star_batch_fact_rows(star, batch, (star_part){ &bench->data, at, count });
        star_push(star, batch, NULL);
    }
}

/* The floor's tables are made outside the clock; so are the engine's, which makes them when the first fact rows ask for them. */
static double engine_pass(inserts_bench *bench, const batch_timing *timing, uint32_t threads)
{
    const star_shape *shape = &bench->data.shape;
    size_t first = timing->rows / 2 < FIRST_FACT_ROWS ? timing->rows / 2 : FIRST_FACT_ROWS;
    star_engine star;
    star_engine_open(&star, shape, &(star_options){ .grouped = shape->dimensions, .threads = threads });
    ivm_batch *batch = star_batch(&star);
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        star_batch_dimension(&star, batch, d, (star_part){ &bench->data, 0, star_dimension_rows(shape, d) });
    }
    star_push(&star, batch, NULL);
    engine_push(bench, &star, 0, first, FIRST_FACT_ROWS);
    uint64_t start = clock_nanoseconds();
    engine_push(bench, &star, first, timing->rows, timing->size);
    double spent = (double)(clock_nanoseconds() - start) / (double)(timing->rows - first);
    bench->unequal += floor_unequal(&bench->floor, &star);
    star_engine_close(&star);
    return spent;
}

/* Over what the largest batches pushed, so that the two are alike. */
static double probe_pass(inserts_bench *bench, uint64_t rows)
{
    floor_clear(&bench->floor);
    uint64_t start = clock_nanoseconds();
    probe_run(&bench->floor, bench->probe_rows, rows);
    return (double)(clock_nanoseconds() - start) / (double)rows;
}

/* Round 0 warms memory up and counts for nothing; round r writes place r - 1. */
static void round_run(inserts_bench *bench, size_t round)
{
    size_t place = round ? round - 1 : 0;
    const batch_timing *last = &bench->timings[bench->sizes_count - 1];
    for (size_t s = 0; s < bench->sizes_count; s++) {
        batch_timing *timing = &bench->timings[s];
        timing->floor[place] = floor_pass(bench, timing);
        timing->engine[place] = engine_pass(bench, timing, 1);
        timing->ratio[place] = timing->engine[place] / timing->floor[place];
        if (bench->request->threads > 1) {
            timing->threaded[place] = engine_pass(bench, timing, (uint32_t)bench->request->threads);
            timing->speedup[place] = timing->engine[place] / timing->threaded[place];
        }
    }
    bench->probe[place] = probe_pass(bench, last->rows);
    bench->probe_ratio[place] = last->floor[place] / bench->probe[place];
}

/* ---- Figures ------------------------------------------------------------------------------------------------------------------- */

static void figure_of(const inserts_bench *bench, const char *metric, spread value, const batch_timing *timing)
{
    figure_add(&(figure){ "star", metric, value.median, timing ? "batch" : NULL, timing ? timing->size : 0, bench->request->variant,
                          value.low, value.high, bench->runs, timing ? timing->rows : bench->data.shape.fact_rows });
}

static void threads_print(const inserts_bench *bench, batch_timing *timing)
{
    spread threaded = spread_of(timing->threaded, bench->runs), speedup = spread_of(timing->speedup, bench->runs);
    figure_of(bench, "threaded_ns", threaded, timing);
    figure_of(bench, "one_thread_over_threads", speedup, timing);
    if (!bench->request->json) {
        printf("%-20s batches of %7llu   %llu threads %5.1f ns a fact row   one thread over them %.2f (%.2f to %.2f)\n",
               bench->request->variant, (unsigned long long)timing->size, (unsigned long long)bench->request->threads, threaded.median,
               speedup.median, speedup.low, speedup.high);
    }
}

static spread size_print(inserts_bench *bench, batch_timing *timing)
{
    spread floor = spread_of(timing->floor, bench->runs), engine = spread_of(timing->engine, bench->runs);
    spread ratio = spread_of(timing->ratio, bench->runs);
    figure_of(bench, "floor_ns", floor, timing);
    figure_of(bench, "engine_ns", engine, timing);
    figure_of(bench, "engine_over_floor_of_batch", ratio, timing);
    if (!bench->request->json) {
        printf("%-20s batches of %7llu   engine %7.1f ns a fact row   floor %6.1f   engine over floor %.2f (%.2f to %.2f)   %llu rows\n",
               bench->request->variant, (unsigned long long)timing->size, engine.median, floor.median, ratio.median, ratio.low, ratio.high,
               (unsigned long long)timing->rows);
    }
    if (bench->request->threads > 1) {
        threads_print(bench, timing);
    }
    return ratio;
}

/* The bars are about batches of 1,000 rows and more. */
static void figures_show(inserts_bench *bench)
{
    spread worst = { 0 };
    for (size_t s = 0; s < bench->sizes_count; s++) {
        spread ratio = size_print(bench, &bench->timings[s]);
        if (ratio.median > worst.median && (bench->timings[s].size >= 1000 || bench->sizes_count == 1)) {
            worst = ratio;
        }
    }
    spread probe = spread_of(bench->probe, bench->runs), over_probe = spread_of(bench->probe_ratio, bench->runs);
    figure_of(bench, "probe_ns", probe, NULL);
    figure_of(bench, "floor_over_probe", over_probe, NULL);
    figure_of(bench, "engine_over_floor", worst, NULL);
    if (!bench->request->json) {
        printf("%-20s probes alone %.1f ns a fact row, floor over probes %.2f (%.2f to %.2f); medians of %zu rounds\n",
               bench->request->variant, probe.median, over_probe.median, over_probe.low, over_probe.high, bench->runs);
        fflush(stdout);
    }
}

/* ---- All of it ----------------------------------------------------------------------------------------------------------------- */

static void sizes_set(inserts_bench *bench)
{
    const star_request *request = bench->request;
    uint64_t sizes[SIZES_MAX] = { 1000, 100000 };
    bench->sizes_count = request->sweep ? SIZES_MAX : request->batch ? 1 : 2;
    if (request->batch) {
        sizes[0] = request->batch;
    }
    for (uint64_t s = 0, size = 1; request->sweep && s < SIZES_MAX; s++, size *= 10) {
        sizes[s] = size;
    }
    for (size_t s = 0; s < bench->sizes_count; s++) {
        uint64_t most = sizes[s] * PUSHES_MAX;
        bench->timings[s] = (batch_timing){ .size = sizes[s], .rows = request->rows < most ? request->rows : most };
    }
}

bool star_inserts(const star_request *request)
{
    inserts_bench *bench = memory_take(sizeof *bench);
    star_shape shape = star_shape_named(request->name, (uint32_t)request->rows);
    shape.zipf = request->zipf;
    bench->request = request;
    bench->runs = (size_t)request->runs;
    sizes_set(bench);
    star_data_make(&bench->data, &shape);
    floor_open(&bench->floor, &bench->data);
    bench->probe_rows = probe_rows_make(&bench->data);
    for (size_t round = 0; round <= bench->runs; round++) {
        round_run(bench, round);
    }
    uint64_t unequal = bench->unequal;
    if (!unequal) {
        figures_show(bench);
    } else {
        fprintf(stderr, "ivm: bench star: %llu groups differ between engine and floor\n", (unsigned long long)unequal);
    }
    free(bench->probe_rows);
    floor_close(&bench->floor);
    star_data_free(&bench->data);
    free(bench);
    return !unequal;
}
