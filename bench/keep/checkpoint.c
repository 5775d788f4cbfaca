/* `ivm bench checkpoint`: a table of sales, a keyed one of products, and views that keep groups, rows and match counts, written as a stream into memory and
 * restored from it into an engine that declared the same. Beside the checkpoint another thread asks for the engine's position, again and again: the
 * longest that it waits is how long pushes would. What was restored must be written as the same bytes. */
#include "ivm/ivm.h"

#include "command.h"
#include "measure.h"
#include "option.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: ivm bench checkpoint [OPTIONS]\n"
    "\n"
    "Sales joined to products: by product sum, count and least, by day, and the sales of a tenth of the products as rows;\n"
    "products left without a sale. The engine is written as a stream into memory, uncompressed and compressed, and\n"
    "restored; views made anew over the same tables are the other side.\n"
    "\n"
    "  --rows N       sales (default 2000000)\n"
    "  --products N   (default 100000)\n"
    "  --runs N       (default 5)\n"
    "  --json         one line per figure\n";

#define DAYS 1000
#define FILL_ROWS 50000
#define PROBE_MICROSECONDS 50
enum { PLAIN, COMPRESSED, KINDS };
static const char *const kind_names[KINDS] = { "plain", "zstd" };

typedef struct stream {
    uint8_t *bytes;
    size_t size, capacity, at;
} stream;

typedef struct checkpoint_bench {
    uint64_t rows, products, runs;
    bool json, wrong;
    ivm_engine *engine, *restored;
    stream streams[KINDS];
    double written[KINDS][RUNS_MAX], waited[KINDS][RUNS_MAX], read[KINDS][RUNS_MAX], made[RUNS_MAX];
} checkpoint_bench;

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench checkpoint: %s", error->message));
    }
}

/* ---- The engine -------------------------------------------------------------------------------------------------------------------- */

static ivm_engine *engine_open(void)
{
    static const ivm_column_definition products[] = { { "id", IVM_INT64, true }, { "name", IVM_STRING } };
    static const ivm_column_definition sales[] = {
        { "product", IVM_INT64, true }, { "day", IVM_DATE, true }, { "amount", IVM_INT64 }, { "price", IVM_FLOAT64 }
    };
    ivm_error error = IVM_ERROR_INIT;
    ivm_engine *engine = NULL;
    ivm_table *product = NULL, *sale = NULL;
    ivm_table_options keyed = { .columns = products, .columns_count = 2, .key = "id" }, bag = { .columns = sales, .columns_count = 4 };
    must(ivm_engine_open(NULL, &engine, &error), &error);
    must(ivm_table_create(engine, "product", &keyed, &product, &error), &error);
    must(ivm_table_create(engine, "sale", &bag, &sale, &error), &error);
    must(ivm_foreign_key_declare(sale, "product", product, "id", IVM_TRACKED, NULL, &error), &error);
    return engine;
}

static ivm_plan *joined(void)
{
    return ivm_plan_join(ivm_plan_scan_name("sale", "s"), ivm_plan_scan_name("product", "p"), "s.product = p.id");
}

static ivm_plan *totals(const char *by)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(joined(), by), "sales");
    plan = ivm_plan_add(plan, "amount", "sum", ivm_column("amount"));
    return ivm_plan_add(plan, "least", "min", ivm_column("price"));
}

static void views_make(ivm_engine *engine)
{
    ivm_plan *some = ivm_plan_filter(
        joined(), ivm_call2("=", ivm_call2("%", ivm_column("p.id"), ivm_literal(ivm_int64(10))), ivm_literal(ivm_int64(0))));
    ivm_plan *idle =
        ivm_plan_join_kind(IVM_ANTI_JOIN, ivm_plan_scan_name("product", "p"), ivm_plan_scan_name("sale", "s"), "p.id = s.product");
    struct {
        const char *name;
        ivm_plan *plan;
    } views[] = { { "by_product", totals("p.id, name") }, { "by_day", totals("day") }, { "some", some }, { "idle", idle } };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        ivm_error error = IVM_ERROR_INIT;
        ivm_view *view;
        must(ivm_view_create(engine, views[i].name, views[i].plan, NULL, &view, &error), &error);
    }
}

static void products_push(const checkpoint_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_batch *batch = NULL;
    ivm_table *product = NULL;
    must(ivm_table_find(bench->engine, "product", &product, &error), &error);
    must(ivm_batch_create(bench->engine, &batch, &error), &error);
    for (uint64_t i = 0; i < bench->products; i++) {
        char name[32];
        snprintf(name, sizeof name, "product %llu", (unsigned long long)i);
        ivm_batch_insert(batch, product, ivm_int64((int64_t)i), ivm_string(name));
    }
    must(ivm_push_batch(bench->engine, batch, NULL, &error), &error);
}

static void sales_push(const checkpoint_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    ivm_table *sale = NULL;
    random_state random = { 0x9E3779B97F4A7C15ull };
    must(ivm_table_find(bench->engine, "sale", &sale, &error), &error);
    for (uint64_t done = 0; done < bench->rows;) {
        ivm_batch *batch = NULL;
        uint64_t end = done + FILL_ROWS < bench->rows ? done + FILL_ROWS : bench->rows;
        must(ivm_batch_create(bench->engine, &batch, &error), &error);
        for (; done < end; done++) {
            ivm_batch_insert(batch, sale, ivm_int64(random_below(&random, (uint32_t)bench->products)),
                             ivm_date((int32_t)(20000 + done * DAYS / bench->rows)), ivm_int64(1 + random_below(&random, 20)),
                             ivm_float64((double)random_below(&random, 100000) / 100));
        }
        must(ivm_push_batch(bench->engine, batch, NULL, &error), &error);
    }
}

/* ---- Writing and reading ------------------------------------------------------------------------------------------------------------ */

static ivm_status stream_write(void *context, const void *bytes, size_t size)
{
    stream *it = context;
    if (it->size + size > it->capacity) {
        it->capacity = 2 * (it->size + size);
        it->bytes = realloc(it->bytes, it->capacity);
        if (!it->bytes) {
            return IVM_OUT_OF_MEMORY;
        }
    }
    memcpy(it->bytes + it->size, bytes, size);
    it->size += size;
    return IVM_OK;
}

static ivm_status stream_read(void *context, void *bytes, size_t size, size_t *got)
{
    stream *it = context;
    *got = size < it->size - it->at ? size : it->size - it->at;
    memcpy(bytes, it->bytes + it->at, *got);
    it->at += *got;
    return IVM_OK;
}

/* Whoever else wants the engine. */
typedef struct probe {
    ivm_engine *engine;
    atomic_bool over;
    uint64_t longest; /* nanoseconds */
} probe;

/* Waiting is no time that a thread runs. */
static uint64_t wall_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *probe_run(void *context)
{
    probe *it = context;
    while (!atomic_load(&it->over)) {
        size_t size;
        uint64_t start = wall_nanoseconds();
        ivm_status status = ivm_engine_position(it->engine, NULL, 0, &size, NULL);
        uint64_t waited = wall_nanoseconds() - start;
        it->longest = status == IVM_OK && waited > it->longest ? waited : it->longest;
        usleep(PROBE_MICROSECONDS);
    }
    return NULL;
}

static ivm_status checkpoint_write(ivm_engine *engine, int kind, stream *to)
{
    ivm_checkpoint_options options = { .version = IVM_CHECKPOINT_OPTIONS_VERSION,
                                       .compression = kind == PLAIN ? IVM_COMPRESSION_NONE : IVM_COMPRESSION_ZSTD };
    ivm_error error = IVM_ERROR_INIT;
    to->size = 0;
    ivm_status status = ivm_checkpoint(engine, stream_write, to, &options, &error);
    return status == IVM_UNSUPPORTED ? status : (must(status, &error), IVM_OK);
}

static void write_measure(checkpoint_bench *bench, int kind, size_t run)
{
    probe beside = { .engine = bench->engine };
    pthread_t thread;
    if (pthread_create(&thread, NULL, probe_run, &beside) != 0) {
        exit(usage_error("bench checkpoint: no thread"));
    }
    uint64_t start = clock_nanoseconds();
    (void)checkpoint_write(bench->engine, kind, &bench->streams[kind]);
    bench->written[kind][run] = (double)(clock_nanoseconds() - start) / 1e6;
    atomic_store(&beside.over, true);
    pthread_join(thread, NULL);
    bench->waited[kind][run] = (double)beside.longest / 1e6;
}

static void read_measure(checkpoint_bench *bench, int kind, size_t run)
{
    ivm_error error = IVM_ERROR_INIT;
    bench->streams[kind].at = 0;
    uint64_t start = clock_nanoseconds();
    must(ivm_restore(bench->restored, stream_read, &bench->streams[kind], &error), &error);
    bench->read[kind][run] = (double)(clock_nanoseconds() - start) / 1e6;
}

/* The views alone, over tables that are there: what restoring them saves. */
static void views_measure(checkpoint_bench *bench, size_t run)
{
    static const char *const names[] = { "idle", "some", "by_day", "by_product" };
    ivm_error error = IVM_ERROR_INIT;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ivm_view *view = NULL;
        must(ivm_view_find(bench->restored, names[i], &view, &error), &error);
        must(ivm_view_drop(view, &error), &error);
    }
    uint64_t start = clock_nanoseconds();
    views_make(bench->restored);
    bench->made[run] = (double)(clock_nanoseconds() - start) / 1e6;
}

static void measure(checkpoint_bench *bench)
{
    stream again = { 0 };
    bench->engine = engine_open();
    bench->restored = engine_open();
    views_make(bench->engine);
    views_make(bench->restored);
    products_push(bench);
    sales_push(bench);
    for (size_t run = 0; run < bench->runs; run++) {
        for (int kind = 0; kind < KINDS; kind++) {
            write_measure(bench, kind, run);
            if (bench->streams[kind].size) {
                read_measure(bench, kind, run);
            }
        }
        (void)checkpoint_write(bench->restored, PLAIN, &again);
        bench->wrong |= again.size != bench->streams[PLAIN].size || memcmp(again.bytes, bench->streams[PLAIN].bytes, again.size) != 0;
        views_measure(bench, run);
    }
    free(again.bytes);
}

/* ---- The command --------------------------------------------------------------------------------------------------------------------- */

static void figure_of(const checkpoint_bench *bench, const char *metric, const char *variant, double value, const spread *over)
{
    figure one = { .bench = "checkpoint", .metric = metric, .value = value, .variant = variant, .rows = bench->rows };
    if (over) {
        one.low = over->low;
        one.high = over->high;
        one.runs = bench->runs;
    }
    figure_add(&one);
}

static void kind_print(checkpoint_bench *bench, int kind)
{
    double raw = (double)bench->streams[PLAIN].size / 1e6, size = (double)bench->streams[kind].size / 1e6;
    spread written = spread_of(bench->written[kind], bench->runs), read = spread_of(bench->read[kind], bench->runs),
           waited = spread_of(bench->waited[kind], bench->runs);
    if (!bench->streams[kind].size) {
        return; /* a build without zstd */
    }
    figure_of(bench, "stream_mb", kind_names[kind], size, NULL);
    figure_of(bench, "write_mb_s", kind_names[kind], raw / written.median * 1e3, NULL);
    figure_of(bench, "restore_mb_s", kind_names[kind], raw / read.median * 1e3, NULL);
    figure_of(bench, "write_ms", kind_names[kind], written.median, &written);
    figure_of(bench, "restore_ms", kind_names[kind], read.median, &read);
    figure_of(bench, "locked_ms", kind_names[kind], waited.median, &waited);
    if (!bench->json) {
        printf("%-6s %7.1f MB   written in %6.0f ms (%4.0f MB/s of content), pushes wait %5.1f ms   restored in %6.0f ms (%4.0f MB/s)\n",
               kind_names[kind], size, written.median, raw / written.median * 1e3, waited.median, read.median, raw / read.median * 1e3);
    }
}

int checkpoint_command(int argc, char **argv)
{
    static checkpoint_bench bench = { .rows = 2000000, .products = 100000, .runs = 5 };
    int code;
    operand_list operands;
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &bench.rows },
                                          { "--products", OPTION_NUMBER, &bench.products },
                                          { "--runs", OPTION_NUMBER, &bench.runs },
                                          { "--json", OPTION_FLAG, &bench.json },
                                          { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || bench.runs > RUNS_MAX || bench.products > UINT32_MAX || bench.rows > 1000000000) {
        return usage_error("bench checkpoint takes options only, %d runs and 1000000000 rows at most; --help says more", RUNS_MAX);
    }
    measure(&bench);
    for (int kind = 0; kind < KINDS; kind++) {
        kind_print(&bench, kind);
        free(bench.streams[kind].bytes);
    }
    spread made = spread_of(bench.made, bench.runs);
    figure_of(&bench, "views_anew_ms", NULL, made.median, &made);
    if (!bench.json) {
        printf("the views alone, made anew over tables that are there: %.0f ms\n", made.median);
    }
    if (bench.wrong) {
        fprintf(stderr, "ivm: bench checkpoint: what was restored is written as other bytes\n");
    }
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_engine_close(bench.engine, &error), &error);
    must(ivm_engine_close(bench.restored, &error), &error);
    return bench.wrong ? EXIT_WRONG : EXIT_HOLDS;
}
