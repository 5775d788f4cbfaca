/* `ivm bench cancel`: how soon a call ends once ivm_engine_cancel() was called. A star of four dimensions, a table of texts and views that keep groups,
 * rows and match counts; long calls of each kind are cancelled by another thread at random moments. Told are the times from the request to the end of
 * the call, as they pass and as the calling thread ran: they cover what was under way and undoing it. A call that went through after all is put
 * back by a restore, and not counted. */
#include "arena.h"
#include "command.h"
#include "measure.h"
#include "option.h"
#include "star_engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "usage: ivm bench cancel [OPTIONS]\n"
    "\n"
    "Long calls, cancelled at random moments by another thread: the time from the request to the end of the call,\n"
    "undoing included, by kind of call: median, 99th percentile, greatest, and those of the calling thread's own time.\n"
    "\n"
    "  --rows N      fact rows that are there (default 5000000)\n"
    "  --batch N     rows of a push (default 1000000)\n"
    "  --runs N      cancelled calls of each kind (default 20)\n"
    "  --threads N   of the engine (default 1)\n"
    "  --only NAME   one kind of call: those that are printed\n"
    "  --json        one line per figure: wall_ms and cpu_ms, each as median, p99 and max, by kind\n";

#define CALLS_MAX 1000

typedef struct cancel_bench cancel_bench;

typedef struct cancel_kind {
    const char *name;
    ivm_status (*run)(cancel_bench *bench, ivm_error *error);
    void (*before)(cancel_bench *bench); /* outside the clock; NULL: nothing */
    bool spoils;                         /* what went through is put back */
} cancel_kind;

struct cancel_bench {
    uint64_t rows, batch, runs, threads;
    const char *only;
    bool json;
    star_data data;
    star_engine star;
    ivm_table *named;
    char *texts;
    int32_t *offsets;
    int64_t *ids;
    uint8_t *saved; /* a checkpoint of all of it */
    size_t saved_size, saved_capacity, saved_at;
    ivm_batch *pushed;
    ivm_snapshot *sorted;
    bool waits; /* there is something to refresh */
    /* The other thread's. */
    pthread_mutex_t lock;
    clockid_t caller;
    uint64_t ask_at, asked_wall, asked_cpu; /* 0: not, or not yet */
    bool over;
};

static void must(ivm_status status, const ivm_error *error)
{
    if (status != IVM_OK) {
        exit(usage_error("bench cancel: %s: %s", ivm_status_name(status), error->message));
    }
}

/* ---- The other thread ---------------------------------------------------------------------------------------------------------------- */

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *ask(void *subject)
{
    cancel_bench *bench = subject;
    for (bool over = false; !over;) {
        pthread_mutex_lock(&bench->lock);
        if (bench->ask_at && clock_of(CLOCK_MONOTONIC) >= bench->ask_at) {
            bench->ask_at = 0;
            bench->asked_wall = clock_of(CLOCK_MONOTONIC);
            bench->asked_cpu = clock_of(bench->caller);
            ivm_engine_cancel(bench->star.engine);
        }
        over = bench->over;
        pthread_mutex_unlock(&bench->lock);
        nanosleep(&(struct timespec){ 0, 50000 }, NULL);
    }
    return NULL;
}

static void ask_set(cancel_bench *bench, uint64_t at)
{
    pthread_mutex_lock(&bench->lock);
    bench->ask_at = at;
    bench->asked_wall = bench->asked_cpu = 0;
    pthread_mutex_unlock(&bench->lock);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------------ */

static void facts_before(cancel_bench *bench)
{
    bench->pushed = star_batch(&bench->star);
    star_batch_fact_rows(&bench->star, bench->pushed, (star_part){ &bench->data, bench->rows, bench->batch });
}

/* The first of them; the table has no index of whole rows yet. */
static void delete_before(cancel_bench *bench)
{
    star_columns columns = { .columns_count = 5, .rows_count = bench->batch < bench->rows ? bench->batch : bench->rows };
    for (size_t c = 0; c < 5; c++) {
        columns.columns[c] = bench->data.fact_columns[c];
    }
    bench->pushed = star_batch(&bench->star);
    star_batch_columns(bench->pushed, bench->star.fact_table, IVM_DELETE, &columns);
}

static void update_before(cancel_bench *bench, uint32_t rows)
{
    bench->pushed = star_batch(&bench->star);
    for (uint32_t row = 0; row < rows; row++) {
        ivm_batch_upsert(bench->pushed, bench->star.dimensions[0], ivm_int64(bench->data.keys[0][row]),
                         ivm_int64(bench->data.attributes[0][row] + 1));
    }
}

/* One row, of which no index of fact rows tells yet. */
static void first_update_before(cancel_bench *bench)
{
    update_before(bench, 1);
}

static void update_all_before(cancel_bench *bench)
{
    update_before(bench, star_dimension_rows(&bench->data.shape, 0));
}

static void texts_fill(cancel_bench *bench, uint64_t first)
{
    ivm_column_data columns[] = { { .values = bench->ids + first }, { .values = bench->texts, .offsets = bench->offsets + first } };
    ivm_rows rows = { .rows_count = bench->batch, .columns_count = 2, .columns = columns };
    bench->pushed = star_batch(&bench->star);
    (void)ivm_batch_columns(bench->pushed, bench->named, IVM_INSERT, &rows);
}

static void texts_before(cancel_bench *bench)
{
    texts_fill(bench, bench->batch);
}

static ivm_status push_run(cancel_bench *bench, ivm_error *error)
{
    return ivm_push_batch(bench->star.engine, bench->pushed, NULL, error);
}

static ivm_view *view_named(cancel_bench *bench, const char *name)
{
    ivm_view *view;
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_view_find(bench->star.engine, name, &view, &error), &error);
    return view;
}

static ivm_status refresh_run(cancel_bench *bench, ivm_error *error)
{
    return ivm_refresh_view(view_named(bench, "late"), NULL, error);
}

/* Rows that wait for it. */
static void refresh_before(cancel_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    if (!bench->waits) {
        facts_before(bench);
        must(push_run(bench, &error), &error);
        bench->waits = true;
    }
}

/* A view that is made goes again, which is part of the time of a call that was not cancelled. */
static ivm_status view_try(cancel_bench *bench, ivm_plan *plan, const ivm_view_options *options, ivm_error *error)
{
    ivm_view *made = NULL;
    ivm_status status = ivm_view_create(bench->star.engine, "made", plan, options, &made, error);
    if (status == IVM_OK) {
        must(ivm_view_drop(made, error), error);
    }
    return status;
}

/* As many groups as rows, nearly. */
static ivm_status view_run(cancel_bench *bench, ivm_error *error)
{
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_name("f", NULL), "k0, k1"), "n");
    return view_try(bench, plan, NULL, error);
}

static ivm_status outer_run(cancel_bench *bench, ivm_error *error)
{
    ivm_plan *plan = ivm_plan_join_kind(IVM_LEFT_JOIN, ivm_plan_scan_name("f", NULL), ivm_plan_scan_name("d0", NULL), "f.k0 = d0.id");
    return view_try(bench, ivm_plan_count(ivm_plan_aggregate(plan, "d0.attribute"), "n"), NULL, error);
}

static ivm_status eager_run(cancel_bench *bench, ivm_error *error)
{
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .indexes = IVM_INDEXES_EAGER };
    ivm_plan *plan = ivm_plan_join(ivm_plan_scan_name("f", NULL), ivm_plan_scan_name("d1", NULL), "f.k1 = d1.id");
    plan = ivm_plan_count(ivm_plan_aggregate(plan, "d1.attribute"), "n");
    return view_try(bench, plan, &options, error);
}

static ivm_status top_run(cancel_bench *bench, ivm_error *error)
{
    ivm_plan *plan = ivm_plan_top_k(ivm_plan_scan_name("f", NULL), 10, 0);
    plan = ivm_plan_order_by(ivm_plan_partition_by(plan, ivm_column("k3")), ivm_column("amount"), true, false);
    return view_try(bench, plan, NULL, error);
}

static ivm_status view_audit(ivm_view *view, ivm_error *error)
{
    ivm_snapshot *differences = NULL;
    ivm_status status = ivm_audit_view(view, &differences, error);
    ivm_snapshot_close(differences);
    return status;
}

static ivm_status audit_run(cancel_bench *bench, ivm_error *error)
{
    return view_audit(view_named(bench, "by_text"), error);
}

static ivm_status audit_late_run(cancel_bench *bench, ivm_error *error)
{
    return view_audit(view_named(bench, "late"), error);
}

static void sort_before(cancel_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_read_table(bench->star.fact_table, &bench->sorted, &error), &error);
}

static void sort_texts_before(cancel_bench *bench)
{
    ivm_error error = IVM_ERROR_INIT;
    must(ivm_read_view(view_named(bench, "by_text"), &bench->sorted, &error), &error);
}

static ivm_status sort_run(cancel_bench *bench, ivm_error *error)
{
    ivm_status status = ivm_snapshot_sort(bench->sorted, error);
    ivm_snapshot_close(bench->sorted);
    return status;
}

static ivm_status bytes_drop(void *context, const void *bytes, size_t size)
{
    (void)context, (void)bytes, (void)size;
    return IVM_OK;
}

static ivm_status checkpoint_run(cancel_bench *bench, ivm_error *error)
{
    return ivm_checkpoint(bench->star.engine, bytes_drop, NULL, NULL, error);
}

static ivm_status bytes_keep(void *context, const void *bytes, size_t size)
{
    cancel_bench *bench = context;
    while (bench->saved_capacity < bench->saved_size + size) {
        bench->saved = memory_room(bench->saved, bench->saved_capacity, &bench->saved_capacity, 1);
    }
    memcpy(bench->saved + bench->saved_size, bytes, size);
    bench->saved_size += size;
    return IVM_OK;
}

static ivm_status bytes_read(void *context, void *bytes, size_t size, size_t *got)
{
    cancel_bench *bench = context;
    *got = size < bench->saved_size - bench->saved_at ? size : bench->saved_size - bench->saved_at;
    memcpy(bytes, bench->saved + bench->saved_at, *got);
    bench->saved_at += *got;
    return IVM_OK;
}

static ivm_status restore_run(cancel_bench *bench, ivm_error *error)
{
    bench->saved_at = 0;
    ivm_status status = ivm_restore(bench->star.engine, bytes_read, bench, error);
    bench->waits &= status != IVM_OK;
    return status;
}

static ivm_status shape_run(cancel_bench *bench, ivm_error *error)
{
    ivm_shape shape;
    ivm_status status = ivm_batch_shape(bench->pushed, bench->star.fact_table, &shape, error);
    ivm_batch_free(bench->pushed);
    return status;
}

static const cancel_kind kinds[] = {
    { "push", push_run, facts_before, true },
    { "push_texts", push_run, texts_before, true },
    { "push_first_delete", push_run, delete_before, true },
    { "push_first_update", push_run, first_update_before, true },
    { "push_update_all", push_run, update_all_before, true },
    { "batch_shape", shape_run, delete_before, true },
    { "refresh", refresh_run, refresh_before, true },
    { "view_groups", view_run, NULL, false },
    { "view_outer", outer_run, NULL, false },
    { "view_top", top_run, NULL, false },
    { "view_eager", eager_run, NULL, false },
    { "audit_texts", audit_run, NULL, false },
    { "audit_deferred", audit_late_run, refresh_before, false },
    { "sort", sort_run, sort_before, false },
    { "sort_texts", sort_run, sort_texts_before, false },
    { "checkpoint", checkpoint_run, NULL, false },
    { "restore", restore_run, NULL, false },
};

/* ---- Measuring ---------------------------------------------------------------------------------------------------------------------------- */

static double percentile(double *values, size_t count, size_t per_cent)
{
    size_t at = (count * per_cent + 99) / 100;
    return values[at ? at - 1 : 0];
}

static void figures_show(const cancel_bench *bench, const cancel_kind *kind, double *values[2], size_t count)
{
    static const char *const names[2] = { "wall_ms", "cpu_ms" };
    for (int c = 0; c < 2 && count; c++) {
        spread all = spread_of(values[c], count);
        double p99 = percentile(values[c], count, 99);
        char metric[32];
        figure_add(&(figure){ "cancel", names[c], all.median, NULL, 0, kind->name, all.low, all.high, count, bench->rows });
        snprintf(metric, sizeof metric, "%s_p99", names[c]);
        figure_add(&(figure){ "cancel", metric, p99, NULL, 0, kind->name, 0, 0, count, bench->rows });
        if (!bench->json) {
            printf("%s median %7.1f  p99 %7.1f  max %7.1f%s", names[c], all.median, p99, all.high, c ? "\n" : "   ");
        }
    }
    fflush(stdout);
}

/* One call; the request comes `after` nanoseconds, 0: none. How long it took, and whether it was cancelled. */
static uint64_t call(cancel_bench *bench, const cancel_kind *kind, uint64_t after, bool *cancelled, double spans[2])
{
    ivm_error error = IVM_ERROR_INIT;
    if (kind->before) {
        kind->before(bench);
    }
    uint64_t began = clock_of(CLOCK_MONOTONIC);
    ask_set(bench, after ? began + after : 0);
    ivm_status status = kind->run(bench, &error);
    uint64_t wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(bench->caller);
    pthread_mutex_lock(&bench->lock);
    spans[0] = (double)(wall - bench->asked_wall) / 1e6;
    spans[1] = (double)(cpu - bench->asked_cpu) / 1e6;
    bench->ask_at = 0;
    pthread_mutex_unlock(&bench->lock);
    *cancelled = status == IVM_CANCELLED;
    must(*cancelled ? IVM_OK : status, &error);
    if (status == IVM_OK && kind->spoils) {
        must(restore_run(bench, &error), &error);
    }
    return wall - began;
}

static void kind_run(cancel_bench *bench, const cancel_kind *kind, random_state *random)
{
    static double wall[CALLS_MAX], cpu[CALLS_MAX];
    double spans[2];
    bool cancelled;
    size_t count = 0;
    uint64_t whole = call(bench, kind, 0, &cancelled, spans);
    for (uint64_t tries = 0; count < bench->runs && tries < 3 * bench->runs; tries++) {
        (void)call(bench, kind, 1 + random_next(random) % whole, &cancelled, spans);
        wall[count] = spans[0];
        cpu[count] = spans[1];
        count += cancelled;
    }
    if (!bench->json) {
        printf("%-18s %7.0f ms, cancelled %3zu times: ", kind->name, (double)whole / 1e6, count);
    }
    figures_show(bench, kind, (double *[2]){ wall, cpu }, count);
}

/* ---- Filling -------------------------------------------------------------------------------------------------------------------------------- */

static void view_make(cancel_bench *bench, const char *name, ivm_plan *plan, ivm_refresh refresh)
{
    ivm_view *view;
    ivm_error error = IVM_ERROR_INIT;
    ivm_view_options options = { .version = IVM_VIEW_OPTIONS_VERSION, .refresh = refresh };
    must(ivm_view_create(bench->star.engine, name, plan, &options, &view, &error), &error);
}

static void texts_make(cancel_bench *bench)
{
    enum { SIZE = 32 };
    size_t count = 2 * bench->batch;
    bench->ids = memory_take(count * sizeof *bench->ids);
    bench->texts = memory_take(count * SIZE);
    bench->offsets = memory_take((count + 1) * sizeof *bench->offsets);
    for (size_t i = 0; i < count; i++) {
        char text[SIZE + 1];
        snprintf(text, sizeof text, "a text that is not short %07zu", (i * 2654435761u) % 10000000);
        memcpy(bench->texts + i * SIZE, text, SIZE);
        bench->ids[i] = (int64_t)i;
        bench->offsets[i + 1] = (int32_t)((i + 1) * SIZE);
    }
}

static void fill(cancel_bench *bench)
{
    static const ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "text", IVM_STRING, true } };
    ivm_error error = IVM_ERROR_INIT;
    star_shape shape = star_shape_named(STAR4, (uint32_t)(bench->rows + bench->batch));
    star_data_make(&bench->data, &shape);
    star_engine_open(&bench->star, &shape, &(star_options){ .grouped = 4, .threads = (uint32_t)bench->threads, .trust = IVM_TRACKED });
    must(ivm_table_create(bench->star.engine, "named", &(ivm_table_options){ .columns = columns, .columns_count = 2, .key = "id" },
                          &bench->named, &error),
         &error);
    view_make(bench, "by_text", ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_name("named", NULL), "text"), "n"), IVM_IMMEDIATE);
    view_make(bench, "late", ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan_name("f", NULL), "k0"), "n"), IVM_DEFERRED);
    for (uint32_t d = 0; d < 4; d++) {
        bench->pushed = star_batch(&bench->star);
        star_batch_dimension(&bench->star, bench->pushed, d, (star_part){ &bench->data, 0, star_dimension_rows(&shape, d) });
        must(push_run(bench, &error), &error);
    }
    bench->pushed = star_batch(&bench->star);
    star_batch_fact_rows(&bench->star, bench->pushed, (star_part){ &bench->data, 0, bench->rows });
    must(push_run(bench, &error), &error);
    texts_make(bench);
    texts_fill(bench, 0);
    must(push_run(bench, &error), &error);
    must(refresh_run(bench, &error), &error);
    must(ivm_checkpoint(bench->star.engine, bytes_keep, bench, NULL, &error), &error);
}

int cancel_command(int argc, char **argv)
{
    static cancel_bench bench = { .rows = 5000000, .batch = 1000000, .runs = 20, .threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER };
    int code;
    pthread_t thread;
    operand_list operands;
    random_state random = { 0x9E3779B97F4A7C15ull };
    const option_definition options[] = { { "--rows", OPTION_NUMBER, &bench.rows },
                                          { "--batch", OPTION_NUMBER, &bench.batch },
                                          { "--runs", OPTION_NUMBER, &bench.runs },
                                          { "--threads", OPTION_NUMBER, &bench.threads },
                                          { "--only", OPTION_TEXT, &bench.only },
                                          { "--json", OPTION_FLAG, &bench.json },
                                          { NULL } };
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || bench.rows > 100000000 || bench.batch > 30000000 || bench.runs > CALLS_MAX) {
        return usage_error("bench cancel: at most 100000000 rows, 30000000 a batch, %d runs; --help says more", CALLS_MAX);
    }
    fill(&bench);
    must(pthread_getcpuclockid(pthread_self(), &bench.caller) == 0 ? IVM_OK : IVM_UNSUPPORTED, &(ivm_error){ .message = "no clock" });
    must(pthread_create(&thread, NULL, ask, &bench) == 0 ? IVM_OK : IVM_UNSUPPORTED, &(ivm_error){ .message = "no thread" });
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!bench.only || strcmp(bench.only, kinds[k].name) == 0) {
            kind_run(&bench, &kinds[k], &random);
        }
    }
    pthread_mutex_lock(&bench.lock);
    bench.over = true;
    pthread_mutex_unlock(&bench.lock);
    pthread_join(thread, NULL);
    star_engine_close(&bench.star);
    star_data_free(&bench.data);
    free(bench.ids);
    free(bench.texts);
    free(bench.offsets);
    free(bench.saved);
    return EXIT_HOLDS;
}
