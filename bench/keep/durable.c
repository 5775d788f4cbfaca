/* `ivm bench durable`: pushes of one row to a table under an aggregate, kept in a directory: what a sync costs, and what threads that share one save. The
 * floor is a file in the same directory to which as many bytes are written and synced. Then the directory is opened again: each push is
 * carried through the view once more, and what it shows must be what was pushed. */
#include "command.h"
#include "ivm/ivm.h"
#include "measure.h"
#include "option.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] = "usage: ivm bench durable [OPTIONS]\n"
                           "\n"
                           "Pushes of one row each to an engine in memory and to one in a directory: not synced until the end, each\n"
                           "synced before it is seen, and so by several threads, whose pushes share syncs; a file written and synced\n"
                           "as often; and the time to open the directory again.\n"
                           "\n"
                           "  --dir DIR      where the directory is made (default .)\n"
                           "  --pushes N     of each kind (default 2000)\n"
                           "  --threads N    that push at once (default 8)\n"
                           "  --json         one line per figure: push_us, pushes_a_sync, replay_us\n";

#define GROUPS 100
#define RECORD_BYTES 128 /* of a push of one row, about */
#define THREADS_MAX 64

typedef struct durable_bench {
    const char *parent;
    char directory[4096];
    uint64_t pushes, threads;
    bool json, wrong;
    ivm_engine *engine;
    ivm_table *table;
    ivm_error error;
} durable_bench;

typedef struct pusher {
    durable_bench *bench;
    uint64_t first, count;
} pusher;

static void must(const durable_bench *bench, ivm_status status)
{
    if (status != IVM_OK) {
        exit(usage_error("bench durable: %s", bench->error.message));
    }
}

static void directory_clear(const durable_bench *bench)
{
    char path[4400];
    DIR *files = opendir(bench->directory);
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        snprintf(path, sizeof path, "%s/%s", bench->directory, entry->d_name);
        unlink(path); /* but for . and .. */
    }
    if (files) {
        closedir(files);
        rmdir(bench->directory);
    }
}

static void declare(durable_bench *bench)
{
    ivm_column_definition columns[] = { { "id", IVM_INT64, true }, { "g", IVM_INT64, true }, { "n", IVM_INT64, true } };
    ivm_table_options options = { .columns = columns, .columns_count = 3, .key = "id" };
    ivm_view *view;
    must(bench, ivm_table_create(bench->engine, "t", &options, &bench->table, &bench->error));
    ivm_plan *plan = ivm_plan_count(ivm_plan_aggregate(ivm_plan_scan(bench->table, "t"), "t.g"), "c");
    plan = ivm_plan_add(plan, "s", "sum", ivm_column("t.n"));
    must(bench, ivm_view_create(bench->engine, "v", plan, NULL, &view, &bench->error));
}

static void *pusher_run(void *context)
{
    const pusher *self = context;
    for (uint64_t i = 0; i < self->count; i++) {
        ivm_batch *batch;
        ivm_error error = IVM_ERROR_INIT;
        int64_t id = (int64_t)(self->first + i);
        if (ivm_batch_create(self->bench->engine, &batch, &error) != IVM_OK) {
            exit(usage_error("bench durable: %s", error.message));
        }
        ivm_batch_insert(batch, self->bench->table, ivm_int64(id), ivm_int64(id % GROUPS), ivm_int64(id));
        ivm_batch_position(batch, &id, sizeof id);
        if (ivm_push_batch(self->bench->engine, batch, NULL, &error) != IVM_OK) {
            exit(usage_error("bench durable: %s", error.message));
        }
    }
    return NULL;
}

/* Microseconds a push. */
static double pushes_time(durable_bench *bench, uint64_t threads_count)
{
    pthread_t threads[THREADS_MAX];
    pusher pushers[THREADS_MAX];
    uint64_t each = bench->pushes / threads_count, start = clock_nanoseconds();
    for (uint64_t i = 0; i < threads_count; i++) {
        pushers[i] = (pusher){ bench, i * each, each };
        if (pthread_create(&threads[i], NULL, pusher_run, &pushers[i]) != 0) {
            exit(usage_error("bench durable: no thread"));
        }
    }
    for (uint64_t i = 0; i < threads_count; i++) {
        pthread_join(threads[i], NULL);
    }
    return (double)(clock_nanoseconds() - start) / 1000 / (double)(each * threads_count);
}

/* Rows that the view has counted. */
static uint64_t rows_counted(durable_bench *bench)
{
    ivm_view *view;
    ivm_snapshot *snapshot;
    uint64_t count = 0;
    must(bench, ivm_view_find(bench->engine, "v", &view, &bench->error));
    must(bench, ivm_read_view(view, &snapshot, &bench->error));
    for (ivm_rows rows; ivm_snapshot_next(snapshot, &rows);) {
        for (size_t i = 0; i < rows.rows_count; i++) {
            count += (uint64_t)ivm_rows_value(&rows, IVM_INT64, i, 1).as.int64;
        }
    }
    ivm_snapshot_close(snapshot);
    return count;
}

static void show(const durable_bench *bench, const char *metric, const char *variant, double value, const char *what)
{
    figure_add(&(figure){ "durable", metric, value, "threads", strcmp(variant, "shared") == 0 ? bench->threads : 1, variant, 0, 0, 0,
                          bench->pushes });
    if (!bench->json) {
        printf("%-8s %10.1f %s\n", variant, value, what);
    }
}

static void in_memory(durable_bench *bench)
{
    must(bench, ivm_engine_open(NULL, &bench->engine, &bench->error));
    declare(bench);
    show(bench, "push_us", "memory", pushes_time(bench, 1), "us a push");
    must(bench, ivm_engine_close(bench->engine, &bench->error));
}

static void floor_run(const durable_bench *bench)
{
    char path[4400], bytes[RECORD_BYTES] = { 0 };
    snprintf(path, sizeof path, "%s.floor", bench->directory);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    uint64_t start = clock_nanoseconds();
    for (uint64_t i = 0; i < bench->pushes; i++) {
        if (file < 0 || write(file, bytes, sizeof bytes) != sizeof bytes || fdatasync(file) != 0) {
            exit(usage_error("bench durable: %s cannot be written", path));
        }
    }
    show(bench, "push_us", "floor", (double)(clock_nanoseconds() - start) / 1000 / (double)bench->pushes, "us a write and sync");
    close(file);
    unlink(path);
}

/* One kind of pushes, and the directory opened again. */
static void durable_run(durable_bench *bench, const char *variant, ivm_sync sync, uint64_t threads)
{
    ivm_durable_options options = { .version = IVM_DURABLE_OPTIONS_VERSION, .sync = sync };
    ivm_durable_status before = { .version = IVM_DURABLE_STATUS_VERSION }, after = before;
    directory_clear(bench);
    must(bench, ivm_durable_open(bench->directory, &options, &bench->engine, NULL, &bench->error));
    declare(bench);
    must(bench, ivm_durable_state(bench->engine, &before, &bench->error));
    show(bench, "push_us", variant, pushes_time(bench, threads), "us a push");
    must(bench, ivm_durable_state(bench->engine, &after, &bench->error));
    uint64_t rows = rows_counted(bench), syncs = after.syncs - before.syncs;
    if (syncs) {
        show(bench, "pushes_a_sync", variant, (double)rows / (double)syncs, "pushes a sync");
    }
    must(bench, ivm_engine_close(bench->engine, &bench->error));
    uint64_t start = clock_nanoseconds();
    must(bench, ivm_durable_open(bench->directory, &options, &bench->engine, NULL, &bench->error));
    show(bench, "replay_us", variant, (double)(clock_nanoseconds() - start) / 1000 / (double)rows, "us a push, opened again");
    bench->wrong |= rows_counted(bench) != rows || rows != bench->pushes / threads * threads;
    must(bench, ivm_engine_close(bench->engine, &bench->error));
    directory_clear(bench);
}

int durable_command(int argc, char **argv)
{
    durable_bench bench = { .parent = ".", .pushes = 2000, .threads = 8, .error = IVM_ERROR_INIT };
    const option_definition options[] = { { "--dir", OPTION_TEXT, &bench.parent },
                                          { "--pushes", OPTION_NUMBER, &bench.pushes },
                                          { "--threads", OPTION_NUMBER, &bench.threads },
                                          { "--json", OPTION_FLAG, &bench.json },
                                          { NULL } };
    operand_list operands;
    int code;
    if (!options_read(options, help, argc, argv, &operands, &code)) {
        return code;
    }
    if (operands.count || bench.threads > THREADS_MAX || bench.pushes < bench.threads) {
        return usage_error("bench durable takes no file, at most %d threads and a push for each", THREADS_MAX);
    }
    snprintf(bench.directory, sizeof bench.directory, "%s/ivm-bench-durable", bench.parent);
    in_memory(&bench);
    floor_run(&bench);
    durable_run(&bench, "asked", IVM_SYNC_ASKED, 1);
    durable_run(&bench, "alone", IVM_SYNC_PUSH, 1);
    durable_run(&bench, "shared", IVM_SYNC_PUSH, bench.threads);
    if (bench.wrong) {
        fputs("ivm: bench durable: a view does not hold what was pushed\n", stderr);
    }
    return bench.wrong ? EXIT_WRONG : EXIT_HOLDS;
}
