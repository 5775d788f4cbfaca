/* `ivm bench latency`: pushes of one row, each timed by itself. Kinds of change take turns in one engine, a round is a histogram a kind, and each
 * percentile is the median of the rounds'. The second part starts with few rows and pushes one after the other, so that tables and indexes grow, pages
 * are added and slots rehashed, while pushes are timed; the third does the same with strings, each new to the engine and a new group of a view. The last pushes
 * into a view that others read: a push copies what they hold and it writes to, whatever the view's size. Making a batch is not timed, nor is taking and
 * closing a snapshot. */
#include "arena.h"
#include "command.h"
#include "histogram.h"
#include "option.h"
#include "star_model.h"

#include <pthread.h>
#include <stdlib.h>

static const char help[] = "usage: ivm bench latency [OPTIONS]\n"
                           "\n"
                           "Pushes of one row against a star of four dimensions of 100,000 rows, by kind: a fact row comes or goes, a\n"
                           "dimension row comes, changes (with the fact rows that refer to it, about ten of a million) or goes.\n"
                           "Percentiles in nanoseconds, from histograms with logarithmic buckets. Then the same while the star grows\n"
                           "from nearly nothing: fact rows and dimension rows that come one by one. Then rows of a table with a key\n"
                           "of strings, each of which is a new group of a view. Then a row into a view of 1,000 groups and into one\n"
                           "of N, one after the other: beside nobody, beside a snapshot of it taken before each push, and in an\n"
                           "engine of two threads that read it. Views are compared with recomputation.\n"
                           "\n"
                           "  --rows N     fact rows before, and groups of the large view (default 1000000)\n"
                           "  --pushes N   of each kind and round, and a hundredth more before that does not count (default 10000)\n"
                           "  --grow N     rows that come one by one in the growing part (default 200000)\n"
                           "  --runs N     rounds (default 5)\n"
                           "  --json       one line per figure: KIND_ns with per_mille 500, 900, 990, 999, KIND_slowest_us,\n"
                           "               KIND_p99_over_p50, and p99_over_p50, the largest of those of a star that is there;\n"
                           "               beside readers KIND is beside_nobody_N, beside_snapshot_N or beside_threads_N, of N groups\n";

#define PERCENTILES 4
#define GROW_FIRST 100
static const uint64_t per_milles[PERCENTILES] = { 500, 900, 990, 999 };
static const char *const percentile_names[PERCENTILES] = { "p50", "p90", "p99", "p99.9" };

typedef struct percentile_rounds {
    double values[PERCENTILES][RUNS_MAX], slowest[RUNS_MAX], ratio[RUNS_MAX]; /* of p99 over p50 */
} percentile_rounds;

typedef struct latency_bench {
    uint64_t rows, pushes, grow, runs;
    bool json;
    double worst;
    uint64_t unequal;
    star_model model;
    histogram kinds[MODEL_CHANGES];
    percentile_rounds rounds[MODEL_CHANGES];
} latency_bench;

static void percentiles_take(percentile_rounds *rounds, const histogram *h, size_t round)
{
    for (size_t p = 0; p < PERCENTILES; p++) {
        rounds->values[p][round] = (double)histogram_per_mille(h, per_milles[p]);
    }
    rounds->slowest[round] = (double)histogram_per_mille(h, 1000) / 1000;
    rounds->ratio[round] = rounds->values[2][round] / rounds->values[0][round];
}

/* Returns the median of p99 over p50. */
static double percentiles_show(const latency_bench *bench, percentile_rounds *rounds, const char *kind, uint64_t pushes)
{
    char metric[64];
    size_t runs = (size_t)bench->runs;
    spread ratio = spread_of(rounds->ratio, runs), slowest = spread_of(rounds->slowest, runs);
    snprintf(metric, sizeof metric, "%s_ns", kind);
    if (!bench->json) {
        printf("%-24s", kind);
    }
    for (size_t p = 0; p < PERCENTILES; p++) {
        spread value = spread_of(rounds->values[p], runs);
        figure_add(&(figure){ "latency", metric, value.median, "per_mille", per_milles[p], NULL, value.low, value.high, runs, pushes });
        if (!bench->json) {
            printf("  %s %8.0f ns", percentile_names[p], value.median);
        }
    }
    snprintf(metric, sizeof metric, "%s_slowest_us", kind);
    figure_add(&(figure){ "latency", metric, slowest.median, NULL, 0, NULL, slowest.low, slowest.high, runs, pushes });
    snprintf(metric, sizeof metric, "%s_p99_over_p50", kind);
    figure_add(&(figure){ "latency", metric, ratio.median, NULL, 0, NULL, ratio.low, ratio.high, runs, pushes });
    if (!bench->json) {
        printf("  slowest %6.0f us   p99 over p50 %.1f (%.1f to %.1f)\n", slowest.median, ratio.median, ratio.low, ratio.high);
        fflush(stdout);
    }
    return ratio.median;
}

/* ---- A star that is there ------------------------------------------------------------------------------------------------------ */

static void round_run(latency_bench *bench, uint64_t pushes)
{
    for (int kind = 0; kind < MODEL_CHANGES; kind++) {
        bench->kinds[kind] = (histogram){ 0 };
    }
    for (uint64_t i = 0; i < pushes; i++) {
        for (int kind = 0; kind < MODEL_CHANGES; kind++) {
            histogram_add(&bench->kinds[kind], star_model_push(&bench->model, (model_change)kind));
        }
    }
}

static void kinds_measure(latency_bench *bench)
{
    uint64_t warm = bench->pushes / 100 + 10, all = bench->pushes * bench->runs + warm;
    star_shape shape = star_shape_named(STAR4, (uint32_t)(bench->rows + all));
    shape.dimension_rows += (uint32_t)all;
    star_model_open(&bench->model, &shape, (uint32_t)bench->rows, (uint32_t)all);
    round_run(bench, warm);
    for (size_t round = 0; round < bench->runs; round++) {
        round_run(bench, bench->pushes);
        for (int kind = 0; kind < MODEL_CHANGES; kind++) {
            percentiles_take(&bench->rounds[kind], &bench->kinds[kind], round);
        }
    }
    bench->unequal += star_model_unequal(&bench->model);
    for (int kind = 0; kind < MODEL_CHANGES && !bench->unequal; kind++) {
        double ratio = percentiles_show(bench, &bench->rounds[kind], model_change_names[kind], bench->pushes);
        bench->worst = ratio > bench->worst ? ratio : bench->worst;
    }
    if (!bench->unequal) {
        figure_add(&(figure){ "latency", "p99_over_p50", bench->worst, NULL, 0, NULL, 0, 0, 0, bench->pushes });
    }
    star_model_close(&bench->model);
}

/* ---- A star that grows --------------------------------------------------------------------------------------------------------- */

/* Fact rows of a round refer to the few rows that were there at its start. */
static void growing_measure(latency_bench *bench)
{
    star_shape shape = star_shape_named(STAR4, (uint32_t)(bench->grow + GROW_FIRST));
    shape.dimension_rows = (uint32_t)(GROW_FIRST + bench->grow);
    for (size_t round = 0; round < bench->runs; round++) {
        histogram facts = { 0 }, dimensions = { 0 };
        star_model_open(&bench->model, &shape, GROW_FIRST, (uint32_t)bench->grow);
        for (uint64_t i = 0; i < bench->grow; i++) {
            histogram_add(&facts, star_model_push(&bench->model, FACT_INSERT));
            histogram_add(&dimensions, star_model_push(&bench->model, DIMENSION_INSERT));
        }
        percentiles_take(&bench->rounds[0], &facts, round);
        percentiles_take(&bench->rounds[1], &dimensions, round);
        bench->unequal += star_model_unequal(&bench->model);
        star_model_close(&bench->model);
    }
    if (!bench->unequal) {
        percentiles_show(bench, &bench->rounds[0], "growing_fact", bench->grow);
        percentiles_show(bench, &bench->rounds[1], "growing_dimension", bench->grow);
    }
}

/* ---- Strings and groups that grow ---------------------------------------------------------------------------------------------- */

typedef struct string_groups {
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *view;
} string_groups;

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench latency: %s: %s", ivm_status_name(status), error->message));
    }
}

static void strings_open(string_groups *it)
{
    const ivm_column_definition columns[] = { { "name", IVM_STRING, true }, { "amount", IVM_INT64, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 2, .key = "name" };
    ivm_engine_options how = IVM_ENGINE_OPTIONS_INIT;
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_open(&how, &it->engine, &error), &error);
    must(ivm_table_create(it->engine, "customers", &options, &it->table, &error), &error);
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(it->table, NULL), "name"), "total", "sum", ivm_column("amount"));
    must(ivm_view_create(it->engine, "totals", plan, NULL, &it->view, &error), &error);
}

/* Nanoseconds of the push. Names in no order. */
static uint64_t string_push(const string_groups *it, uint64_t number)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    char name[32];
    snprintf(name, sizeof name, "customer %016llx", (unsigned long long)((number + 1) * UINT64_C(0x9E3779B97F4A7C15)));
    must(ivm_batch_create(it->engine, &batch, &error), &error);
    ivm_batch_insert(batch, it->table, ivm_string(name), ivm_int64((int64_t)number));
    uint64_t start = clock_nanoseconds();
    must(ivm_push_batch(it->engine, batch, NULL, &error), &error);
    return clock_nanoseconds() - start;
}

/* How many groups there are more or fewer than rows, and one more where their totals do not add up. */
static uint64_t strings_unequal(const string_groups *it, uint64_t rows_count)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *snapshot;
    ivm_rows rows;
    uint64_t total = 0, groups;
    must(ivm_read_view(it->view, &snapshot, &error), &error);
    groups = ivm_snapshot_rows_count(snapshot);
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            total += (uint64_t)ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64;
        }
    }
    ivm_snapshot_close(snapshot);
    uint64_t unequal = groups > rows_count ? groups - rows_count : rows_count - groups;
    return unequal + (total != rows_count * (rows_count - 1) / 2);
}

static void strings_measure(latency_bench *bench)
{
    for (size_t round = 0; round < bench->runs; round++) {
        histogram pushes = { 0 };
        string_groups it;
        ivm_error error = IVM_ERROR_INIT;
        strings_open(&it);
        for (uint64_t i = 0; i < bench->grow; i++) {
            histogram_add(&pushes, string_push(&it, i));
        }
        percentiles_take(&bench->rounds[0], &pushes, round);
        bench->unequal += strings_unequal(&it, bench->grow);
        must(ivm_engine_close(it.engine, &error), &error);
    }
    if (!bench->unequal) {
        percentiles_show(bench, &bench->rounds[0], "growing_strings", bench->grow);
    }
}

/* ---- Beside readers ------------------------------------------------------------------------------------------------------------ */

#define GROUPS_FEW 1000
#define READ_EVERY 500 /* pushes: what is published for other threads is given up where nobody reads it for long */

typedef enum beside { BESIDE_NOBODY, BESIDE_SNAPSHOT, BESIDE_THREADS, BESIDES } beside;
static const char *const beside_names[BESIDES] = { "nobody", "snapshot", "threads" };

typedef struct readers_engine {
    ivm_engine *engine;
    ivm_table *table;
    ivm_view *view;
    uint64_t groups, pushed;
} readers_engine;

static ivm_snapshot *readers_snapshot(const readers_engine *it)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_snapshot *snapshot;
    must(ivm_read_view(it->view, &snapshot, &error), &error);
    return snapshot;
}

static void *readers_thread(void *argument)
{
    ivm_snapshot_close(readers_snapshot(argument));
    return NULL;
}

/* Nanoseconds of the push of so many rows, each of the next group. */
static uint64_t readers_push(readers_engine *it, uint64_t rows)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch;
    must(ivm_batch_create(it->engine, &batch, &error), &error);
    for (; rows; rows--) {
        ivm_batch_insert(batch, it->table, ivm_int64((int64_t)(it->pushed++ % it->groups)), ivm_int64(1));
    }
    uint64_t start = clock_nanoseconds();
    must(ivm_push_batch(it->engine, batch, NULL, &error), &error);
    return clock_nanoseconds() - start;
}

static void readers_open(readers_engine *it, uint64_t groups, beside who)
{
    const ivm_column_definition columns[] = { { "product", IVM_INT64, false }, { "amount", IVM_INT64, false } };
    ivm_table_options options = { .columns = columns, .columns_count = 2 };
    ivm_error error = IVM_ERROR_INIT;
    pthread_t thread;
    *it = (readers_engine){ .groups = groups };
    must(ivm_engine_open(NULL, &it->engine, &error), &error);
    must(ivm_table_create(it->engine, "sales", &options, &it->table, &error), &error);
    ivm_plan *plan = ivm_plan_add(ivm_plan_aggregate(ivm_plan_scan(it->table, NULL), "product"), "total", "sum", ivm_column("amount"));
    must(ivm_view_create(it->engine, "totals", plan, NULL, &it->view, &error), &error);
    readers_push(it, groups);
    if (who == BESIDE_THREADS && pthread_create(&thread, NULL, readers_thread, it) == 0) {
        pthread_join(thread, NULL);
    }
}

static uint64_t readers_push_timed(readers_engine *it, beside who, uint64_t nth)
{
    bool reads = who == BESIDE_SNAPSHOT || (who == BESIDE_THREADS && nth % READ_EVERY == 0);
    ivm_snapshot *snapshot = reads ? readers_snapshot(it) : NULL;
    if (who == BESIDE_THREADS) {
        ivm_snapshot_close(snapshot);
        snapshot = NULL;
    }
    uint64_t nanoseconds = readers_push(it, 1);
    ivm_snapshot_close(snapshot);
    return nanoseconds;
}

/* How far the groups and their totals are from what was pushed. */
static uint64_t readers_unequal(const readers_engine *it)
{
    ivm_snapshot *snapshot = readers_snapshot(it);
    ivm_rows rows;
    uint64_t unequal = ivm_snapshot_rows_count(snapshot) != it->groups;
    while (ivm_snapshot_next(snapshot, &rows)) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            uint64_t group = (uint64_t)ivm_rows_value(&rows, IVM_INT64, i, 0).as.int64;
            uint64_t expected = it->pushed / it->groups + (group < it->pushed % it->groups);
            unequal += (uint64_t)ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64 != expected;
        }
    }
    ivm_snapshot_close(snapshot);
    return unequal;
}

static void readers_measure_of(latency_bench *bench, uint64_t groups, beside who)
{
    readers_engine it;
    ivm_error error = IVM_ERROR_INIT;
    char kind[48];
    readers_open(&it, groups, who);
    for (uint64_t i = 0; i < bench->pushes / 100 + 10; i++) {
        readers_push_timed(&it, who, i);
    }
    for (size_t round = 0; round < bench->runs; round++) {
        histogram pushes = { 0 };
        for (uint64_t i = 0; i < bench->pushes; i++) {
            histogram_add(&pushes, readers_push_timed(&it, who, i));
        }
        percentiles_take(&bench->rounds[0], &pushes, round);
    }
    uint64_t unequal = readers_unequal(&it);
    must(ivm_engine_close(it.engine, &error), &error);
    bench->unequal += unequal;
    if (!unequal) {
        snprintf(kind, sizeof kind, "beside_%s_%llu", beside_names[who], (unsigned long long)groups);
        percentiles_show(bench, &bench->rounds[0], kind, bench->pushes);
    }
}

static void readers_measure(latency_bench *bench)
{
    for (int who = 0; who < BESIDES; who++) {
        readers_measure_of(bench, GROUPS_FEW, (beside)who);
        if (bench->rows > GROUPS_FEW) {
            readers_measure_of(bench, bench->rows, (beside)who);
        }
    }
}

int latency_command(int argc, char **argv)
{
    latency_bench *bench = memory_take(sizeof *bench);
    *bench = (latency_bench){ .rows = 1000000, .pushes = 10000, .grow = 200000, .runs = 5 };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &bench->rows }, { "--pushes", OPTION_NUMBER, &bench->pushes },
                                          { "--grow", OPTION_NUMBER, &bench->grow }, { "--runs", OPTION_NUMBER, &bench->runs },
                                          { "--json", OPTION_FLAG, &bench->json },   { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        free(bench);
        return code;
    }
    if (operands.count || bench->runs > RUNS_MAX || bench->rows > 100000000 || bench->pushes > 1000000 || bench->grow > 10000000) {
        free(bench);
        return usage_error("bench latency: at most 100000000 rows, 1000000 pushes, 10000000 to grow, %d runs; --help says more", RUNS_MAX);
    }
    kinds_measure(bench);
    growing_measure(bench);
    strings_measure(bench);
    readers_measure(bench);
    uint64_t unequal = bench->unequal;
    free(bench);
    if (unequal) {
        fprintf(stderr, "ivm: bench latency: %llu groups differ from recomputation\n", (unsigned long long)unequal);
    }
    return unequal ? EXIT_WRONG : EXIT_HOLDS;
}
